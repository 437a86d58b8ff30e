/* rng: random streams, one for each purpose and index.
 *
 * A stream is xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators",
 * 2021; 256 bits of state, period 2^256 - 1), seeded by SplitMix64 over (seed, run, hash (purpose),
 * index). Streams are values: copying one forks it, and nothing has to be freed. Draws of one
 * stream never move those of another, so a new source of randomness leaves the old ones as they
 * were.
 *
 * Draws per sample are part of the contract (streams stay aligned whatever the parameters are):
 *   next, uniform, exponential, weibull, gamma   1
 *   normal, lognormal                            2
 *   below                                        1, or more with a probability under n / 2^64
 * Samples depend on log, exp, pow, cos of the C library: equal on one system, perhaps not in the
 * last bit on another.
 */
#ifndef CLUSTERSIM_RNG_H
#define CLUSTERSIM_RNG_H

#include <glib.h>

typedef struct {
  guint64 s[4]; /* never all zero */
} SimRng;

/* The stream of a purpose ("fault.gpu") and an index in it (the GPU's number). */
SimRng sim_rng_stream (guint64 seed, guint64 run, const char *purpose, guint64 index);

/* A stream from one number alone; what sim_rng_stream uses in the end. */
SimRng sim_rng_from_u64 (guint64 x);

/* SplitMix64 (Steele, Lea, Flood, 2014): moves *state on and returns the next number. */
guint64 sim_splitmix64 (guint64 *state);

/* FNV-1a, 64 bits, of the bytes of a string. */
guint64 sim_hash_string (const char *s);

guint64 sim_rng_next (SimRng *r);

/* Uniform in [0, 1), a multiple of 2^-53. */
double sim_rng_uniform (SimRng *r);

/* Uniform among 0 … n-1, exactly (Lemire's multiplication with rejection, 2019); n > 0. */
guint64 sim_rng_below (SimRng *r, guint64 n);

/* Exponential by inversion: -mean ln (1 - u); mean >= 0. */
double sim_rng_exponential (SimRng *r, double mean);

/* Normal by Box and Muller's cosine branch; sd >= 0. */
double sim_rng_normal (SimRng *r, double mean, double sd);

/* exp (normal (mu, sigma)): mean exp (mu + sigma^2 / 2), median exp (mu). */
double sim_rng_lognormal (SimRng *r, double mu, double sigma);

/* Weibull by inversion: scale (-ln (1 - u))^(1 / shape); mean scale Γ(1 + 1 / shape). */
double sim_rng_weibull (SimRng *r, double scale, double shape);

/* Gamma of mean shape * scale and variance shape * scale^2 by Marsaglia and Tsang (2000). Rejection
 * needs a varying number of draws: they come from a stream of its own that one draw of r seeds. */
double sim_rng_gamma (SimRng *r, double shape, double scale);

#endif
