/* Random streams: published vectors, independence of streams, draws per sample, and distributions
 * against their closed forms. Seeds are fixed, so the statistical checks cannot fail by chance;
 * their bounds are five standard errors of the estimate. */
#include <math.h>
#include <string.h>

#include "rng.h"

#define N 200000

static void
test_vectors (void)
{
  /* xoshiro256**, state {1, 2, 3, 4} */
  const guint64 xoshiro[] = {11520, 0, 1509978240, G_GUINT64_CONSTANT (1215971899390074240),
                             G_GUINT64_CONSTANT (1216172134540287360)};
  SimRng r = {{1, 2, 3, 4}};
  for (guint i = 0; i < G_N_ELEMENTS (xoshiro); i++)
    g_assert_cmpuint (sim_rng_next (&r), ==, xoshiro[i]);

  /* SplitMix64, seed 1234567 */
  const guint64 splitmix[] = {
      G_GUINT64_CONSTANT (6457827717110365317), G_GUINT64_CONSTANT (3203168211198807973),
      G_GUINT64_CONSTANT (9817491932198370423), G_GUINT64_CONSTANT (4593380528125082431),
      G_GUINT64_CONSTANT (16408922859458223821)};
  guint64 state = 1234567;
  for (guint i = 0; i < G_N_ELEMENTS (splitmix); i++)
    g_assert_cmpuint (sim_splitmix64 (&state), ==, splitmix[i]);

  /* FNV-1a, 64 bits */
  g_assert_cmphex (sim_hash_string (""), ==, G_GUINT64_CONSTANT (0xcbf29ce484222325));
  g_assert_cmphex (sim_hash_string ("a"), ==, G_GUINT64_CONSTANT (0xaf63dc4c8601ec8c));
  g_assert_cmphex (sim_hash_string ("foobar"), ==, G_GUINT64_CONSTANT (0x85944171f73967e8));
}

static void
test_streams_differ (void)
{
  /* A change in any of the four fields gives another stream; swapped fields are not the same; equal
   * fields give the same. */
  const SimRng s[] = {
      sim_rng_stream (1, 2, "a", 3), sim_rng_stream (2, 1, "a", 3), sim_rng_stream (1, 3, "a", 2),
      sim_rng_stream (1, 2, "b", 3), sim_rng_stream (1, 2, "a", 4), sim_rng_stream (0, 0, "", 0),
      sim_rng_stream (0, 0, "", 1),
  };
  for (guint i = 0; i < G_N_ELEMENTS (s); i++) {
    g_assert_cmpuint (s[i].s[0] | s[i].s[1] | s[i].s[2] | s[i].s[3], !=, 0);
    for (guint j = 0; j < i; j++)
      for (int w = 0; w < 4; w++)
        g_assert_cmphex (s[i].s[w], !=, s[j].s[w]);
  }
  SimRng again = sim_rng_stream (1, 2, "a", 3);
  g_assert_true (memcmp (&again, &s[0], sizeof again) == 0);
}

static void
test_streams_uncorrelated (void)
{
  /* Correlation of first draws over neighbouring indices: zero within 5 / sqrt (n). */
  double sum = 0.0;
  for (guint i = 0; i < N; i++) {
    SimRng a = sim_rng_stream (1, 0, "x", i), b = sim_rng_stream (1, 0, "x", i + 1);
    sum += (sim_rng_uniform (&a) - 0.5) * (sim_rng_uniform (&b) - 0.5);
  }
  g_assert_cmpfloat (fabs (12.0 * sum / N), <, 5.0 / sqrt (N));
}

static void
test_draws_per_sample (void)
{
  SimRng a = sim_rng_stream (7, 0, "draws", 0), b = a;
  for (int i = 0; i < 100; i++) {
    double p = 0.05 + 0.3 * i; /* parameters must not matter */
    sim_rng_uniform (&a);
    sim_rng_exponential (&a, p);
    sim_rng_weibull (&a, p, p);
    sim_rng_gamma (&a, p, 1.0);
    sim_rng_normal (&a, p, p);
    sim_rng_lognormal (&a, 0.0, 0.01 * p);
    for (int k = 0; k < 4 + 2 + 2; k++)
      sim_rng_next (&b);
    g_assert_true (memcmp (&a, &b, sizeof a) == 0);
  }
}

static void
test_uniform (void)
{
  SimRng r = sim_rng_stream (1, 0, "uniform", 0);
  double sum = 0.0, lo = 1.0, hi = 0.0;
  for (int i = 0; i < N; i++) {
    double u = sim_rng_uniform (&r);
    sum += u;
    lo = MIN (lo, u);
    hi = MAX (hi, u);
  }
  g_assert_cmpfloat (lo, >=, 0.0);
  g_assert_cmpfloat (hi, <, 1.0);
  g_assert_cmpfloat (fabs (sum / N - 0.5), <, 5.0 / sqrt (12.0 * N));

  /* The ends: all bits clear give 0, all bits set give 1 - 2^-53. rotl (s1 * 5, 7) * 9 is zero for
   * s1 = 0; all ones need s1 = rotr (-1 / 9, 7) / 5 modulo 2^64. */
  SimRng zero = {{1, 0, 0, 0}};
  g_assert_cmpfloat (sim_rng_uniform (&zero), ==, 0.0);
  guint64 ninth = 1, fifth = 1; /* Newton: x (2 - a x) doubles the right bits of 1 / a */
  for (int i = 0; i < 6; i++) {
    ninth *= 2 - 9 * ninth;
    fifth *= 2 - 5 * fifth;
  }
  guint64 x = G_MAXUINT64 * ninth;
  SimRng ones = {{1, ((x >> 7) | (x << 57)) * fifth, 0, 0}};
  g_assert_cmpfloat (sim_rng_uniform (&ones), ==, 1.0 - 0x1p-53);
}

static void
test_below (void)
{
  SimRng r = sim_rng_stream (1, 0, "below", 0);
  guint64 count[7] = {0};
  for (int i = 0; i < N; i++)
    count[sim_rng_below (&r, 7)]++;
  /* chi squared with 6 degrees of freedom: above 35.9 with a probability of 3e-6 */
  double chi2 = 0.0;
  for (int k = 0; k < 7; k++)
    chi2 += pow ((double)count[k] - N / 7.0, 2.0) / (N / 7.0);
  g_assert_cmpfloat (chi2, <, 35.9);

  for (int i = 0; i < 100; i++)
    g_assert_cmpuint (sim_rng_below (&r, 1), ==, 0);

  /* n = 3 * 2^62: without rejection, a third of the results (those that two of 2^64 numbers map to)
   * would come up twice as often; in thirds of the range all must be as frequent. */
  guint64 n = G_GUINT64_CONSTANT (3) << 62, third[3] = {0}, odd = 0;
  for (int i = 0; i < N; i++) {
    guint64 v = sim_rng_below (&r, n);
    g_assert_cmpuint (v, <, n);
    third[v % 3]++;
    odd += v & 1;
  }
  for (int k = 0; k < 3; k++)
    g_assert_cmpfloat (fabs ((double)third[k] / N - 1.0 / 3.0), <, 5.0 * sqrt (2.0 / 9.0 / N));
  g_assert_cmpfloat (fabs ((double)odd / N - 0.5), <, 2.5 / sqrt (N));
}

/* Mean and variance of N samples against the closed form. kurt: fourth central moment over the
 * square of the variance, which gives the standard error of the variance. */
static void
check_moments (const double *x, double mean, double var, double kurt)
{
  double m = 0.0, v = 0.0;
  for (int i = 0; i < N; i++)
    m += x[i] / N;
  for (int i = 0; i < N; i++)
    v += (x[i] - m) * (x[i] - m) / N;
  g_assert_cmpfloat (fabs (m - mean), <, 5.0 * sqrt (var / N));
  g_assert_cmpfloat (fabs (v - var), <, 5.0 * var * sqrt ((kurt - 1.0) / N));
}

/* The share of samples at or below x against the distribution function there. */
static void
check_cdf (const double *x, double at, double p)
{
  int below = 0;
  for (int i = 0; i < N; i++)
    below += x[i] <= at;
  g_assert_cmpfloat (fabs ((double)below / N - p), <, 5.0 * sqrt (p * (1.0 - p) / N));
}

static void
test_exponential (void)
{
  /* mean m, variance m^2, kurtosis 9, F (x) = 1 - exp (-x / m) */
  SimRng r = sim_rng_stream (1, 0, "exponential", 0);
  g_autofree double *x = g_new (double, N);
  for (int i = 0; i < N; i++)
    x[i] = sim_rng_exponential (&r, 3.0);
  check_moments (x, 3.0, 9.0, 9.0);
  check_cdf (x, 0.3, 1.0 - exp (-0.1));
  check_cdf (x, 9.0, 1.0 - exp (-3.0));
  g_assert_cmpfloat (sim_rng_exponential (&r, 0.0), ==, 0.0);
}

static void
test_normal (void)
{
  /* kurtosis 3, F (mean + sd z) = erfc (-z / sqrt 2) / 2 */
  SimRng r = sim_rng_stream (1, 0, "normal", 0);
  g_autofree double *x = g_new (double, N);
  for (int i = 0; i < N; i++)
    x[i] = sim_rng_normal (&r, -1.0, 2.0);
  check_moments (x, -1.0, 4.0, 3.0);
  for (double z = -3.0; z <= 3.0; z += 1.0)
    check_cdf (x, -1.0 + 2.0 * z, 0.5 * erfc (-z / sqrt (2.0)));
  g_assert_cmpfloat (sim_rng_normal (&r, 5.0, 0.0), ==, 5.0);
}

static void
test_lognormal (void)
{
  /* w = exp (sigma^2): mean exp (mu) sqrt w, variance (w - 1) mean^2, kurtosis
   * w^4 + 2 w^3 + 3 w^2 - 3 */
  SimRng r = sim_rng_stream (1, 0, "lognormal", 0);
  g_autofree double *x = g_new (double, N);
  double mu = 0.7, sigma = 0.4, w = exp (sigma * sigma), mean = exp (mu) * sqrt (w);
  for (int i = 0; i < N; i++)
    x[i] = sim_rng_lognormal (&r, mu, sigma);
  check_moments (x, mean, (w - 1.0) * mean * mean,
                 pow (w, 4.0) + 2.0 * pow (w, 3.0) + 3.0 * w * w - 3.0);
  check_cdf (x, exp (mu), 0.5);
}

static void
test_weibull (void)
{
  /* g (j) = Γ(1 + j / k): mean s g1, variance s^2 (g2 - g1^2), F (x) = 1 - exp (-(x / s)^k) */
  const double shapes[] = {0.7, 1.0, 2.5};
  g_autofree double *x = g_new (double, N);
  for (guint c = 0; c < G_N_ELEMENTS (shapes); c++) {
    SimRng r = sim_rng_stream (1, 0, "weibull", c);
    double k = shapes[c], s = 10.0;
    double g1 = tgamma (1 + 1 / k), g2 = tgamma (1 + 2 / k), g3 = tgamma (1 + 3 / k),
           g4 = tgamma (1 + 4 / k);
    double var = g2 - g1 * g1;
    double m4 = g4 - 4 * g3 * g1 + 6 * g2 * g1 * g1 - 3 * pow (g1, 4);
    for (int i = 0; i < N; i++)
      x[i] = sim_rng_weibull (&r, s, k);
    check_moments (x, s * g1, s * s * var, m4 / (var * var));
    check_cdf (x, s, 1.0 - exp (-1.0));
    check_cdf (x, 0.5 * s, 1.0 - exp (-pow (0.5, k)));
  }
}

static void
test_gamma (void)
{
  /* mean k s, variance k s^2, kurtosis 3 + 6 / k; for k = 2: F (x) = 1 - (1 + x / s) exp (-x / s),
   * for k = 1/2, s = 2 (the square of a standard normal): F (1) = erf (1 / sqrt 2) */
  const double shapes[] = {0.5, 1.0, 2.0, 9.0};
  g_autofree double *x = g_new (double, N);
  for (guint c = 0; c < G_N_ELEMENTS (shapes); c++) {
    SimRng r = sim_rng_stream (1, 0, "gamma", c);
    double k = shapes[c];
    for (int i = 0; i < N; i++)
      x[i] = sim_rng_gamma (&r, k, 2.0);
    check_moments (x, 2.0 * k, 4.0 * k, 3.0 + 6.0 / k);
    if (c == 0)
      check_cdf (x, 1.0, erf (1.0 / sqrt (2.0)));
    if (c == 2)
      check_cdf (x, 3.0, 1.0 - 2.5 * exp (-1.5));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/engine/rng/vectors", test_vectors);
  g_test_add_func ("/engine/rng/streams_differ", test_streams_differ);
  g_test_add_func ("/engine/rng/streams_uncorrelated", test_streams_uncorrelated);
  g_test_add_func ("/engine/rng/draws_per_sample", test_draws_per_sample);
  g_test_add_func ("/engine/rng/uniform", test_uniform);
  g_test_add_func ("/engine/rng/below", test_below);
  g_test_add_func ("/engine/rng/exponential", test_exponential);
  g_test_add_func ("/engine/rng/normal", test_normal);
  g_test_add_func ("/engine/rng/lognormal", test_lognormal);
  g_test_add_func ("/engine/rng/weibull", test_weibull);
  g_test_add_func ("/engine/rng/gamma", test_gamma);
  return g_test_run ();
}
