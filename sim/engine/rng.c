#include "rng.h"

#include <math.h>

__extension__ typedef unsigned __int128 u128;

guint64
sim_splitmix64 (guint64 *state)
{
  guint64 z = (*state += G_GUINT64_CONSTANT (0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

guint64
sim_hash_string (const char *s)
{
  guint64 h = G_GUINT64_CONSTANT (0xcbf29ce484222325);
  for (; *s != '\0'; s++)
    h = (h ^ (guchar)*s) * G_GUINT64_CONSTANT (0x100000001b3);
  return h;
}

SimRng
sim_rng_from_u64 (guint64 x)
{
  SimRng r;
  /* SplitMix64 is a bijection of a counter, so at most one of four words in a row is zero. */
  for (int i = 0; i < 4; i++)
    r.s[i] = sim_splitmix64 (&x);
  return r;
}

SimRng
sim_rng_stream (guint64 seed, guint64 run, const char *purpose, guint64 index)
{
  /* One SplitMix64 step between the fields: neighbours in any of them share no bits, and
   * (seed, run) = (1, 2) is not (2, 1). */
  guint64 x = seed;
  x = sim_splitmix64 (&x) ^ run;
  x = sim_splitmix64 (&x) ^ sim_hash_string (purpose);
  x = sim_splitmix64 (&x) ^ index;
  return sim_rng_from_u64 (x);
}

static inline guint64
rotl (guint64 x, int k)
{
  return (x << k) | (x >> (64 - k));
}

guint64
sim_rng_next (SimRng *r)
{
  guint64 *s = r->s;
  guint64 result = rotl (s[1] * 5, 7) * 9;
  guint64 t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotl (s[3], 45);
  return result;
}

double
sim_rng_uniform (SimRng *r)
{
  return (double)(sim_rng_next (r) >> 11) * 0x1p-53;
}

guint64
sim_rng_below (SimRng *r, guint64 n)
{
  g_assert (n > 0);
  u128 m = (u128)sim_rng_next (r) * n;
  if ((guint64)m < n) {
    /* 2^64 mod n low parts are too many for an even share; the division is needed only here. */
    guint64 surplus = (0 - n) % n;
    while ((guint64)m < surplus)
      m = (u128)sim_rng_next (r) * n;
  }
  return (guint64)(m >> 64);
}

/* A unit exponential: 1 - u is in (0, 1], so the logarithm is finite. */
static double
unit_exponential (SimRng *r)
{
  return -log1p (-sim_rng_uniform (r));
}

double
sim_rng_exponential (SimRng *r, double mean)
{
  g_assert (mean >= 0.0);
  return mean * unit_exponential (r);
}

double
sim_rng_normal (SimRng *r, double mean, double sd)
{
  g_assert (sd >= 0.0);
  double radius = sqrt (2.0 * unit_exponential (r));
  return mean + sd * radius * cos (2.0 * G_PI * sim_rng_uniform (r));
}

double
sim_rng_lognormal (SimRng *r, double mu, double sigma)
{
  return exp (sim_rng_normal (r, mu, sigma));
}

double
sim_rng_weibull (SimRng *r, double scale, double shape)
{
  g_assert (scale >= 0.0);
  g_assert (shape > 0.0);
  return scale * pow (unit_exponential (r), 1.0 / shape);
}

double
sim_rng_gamma (SimRng *r, double shape, double scale)
{
  g_assert (shape > 0.0);
  g_assert (scale >= 0.0);
  SimRng own = sim_rng_from_u64 (sim_rng_next (r));

  /* The method holds for shape >= 1; below, gamma (k) = gamma (k + 1) u^(1/k). */
  double boost = 1.0;
  if (shape < 1.0) {
    boost = pow (1.0 - sim_rng_uniform (&own), 1.0 / shape);
    shape += 1.0;
  }
  double d = shape - 1.0 / 3.0;
  double c = 1.0 / sqrt (9.0 * d);
  for (;;) {
    double x = sim_rng_normal (&own, 0.0, 1.0);
    double u = 1.0 - sim_rng_uniform (&own);
    double v = 1.0 + c * x;
    if (v <= 0.0)
      continue;
    v = v * v * v;
    if (log (u) < 0.5 * x * x + d - d * v + d * log (v))
      return scale * boost * d * v;
  }
}
