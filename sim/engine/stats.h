/* stats: numbers about numbers, all in the order in which they come, so that equal runs give equal
 * bits.
 *
 * Units are those of the samples. All structs are values: *_init and *_clear where there is
 * something to free, else zero-initialise or *_init. Samples must be finite; anything else is an
 * assertion.
 */
#ifndef CLUSTERSIM_STATS_H
#define CLUSTERSIM_STATS_H

#include <glib.h>

#include "simtime.h"

/* ---- running moments: Welford (1962); merging by Chan, Golub, LeVeque (1979) ---- */

typedef struct {
  guint64 n;
  double mean, m2; /* m2: sum of squared deviations from the mean */
  double min, max; /* 0 while n is 0 */
} SimMoments;      /* all zero: empty */

void sim_moments_add (SimMoments *m, double x);
void sim_moments_merge (SimMoments *m,
                        const SimMoments *other);  /* as if its samples had been added */
double sim_moments_variance (const SimMoments *m); /* of the sample, n - 1 below; 0 for n < 2 */
double sim_moments_stddev (const SimMoments *m);
double
sim_moments_std_error (const SimMoments *m); /* of the mean: stddev / sqrt (n); 0 for n < 2 */

/* ---- mean of a value that holds between changes: (integral of value dt) / (elapsed) ---- */

typedef struct {
  SimTime begin, last;
  double value, mean; /* mean over [begin, last] */
  double min, max;    /* of all values set */
} SimTimeMean;

void sim_time_mean_init (SimTimeMean *m, SimTime begin, double value);
/* From t on the value is another; t not before the last change. */
void sim_time_mean_set (SimTimeMean *m, SimTime t, double value);
/* Mean over [begin, t]; the present value if that is empty. t not before the last change. */
double sim_time_mean_at (const SimTimeMean *m, SimTime t);

/* ---- exact quantiles: keeps all samples, 8 bytes each ---- */

typedef struct {
  double *x;
  gsize n, cap;
  gboolean sorted;
} SimQuantiles;

void sim_quantiles_init (SimQuantiles *q);
void sim_quantiles_clear (SimQuantiles *q);
void sim_quantiles_add (SimQuantiles *q, double x);
/* p in [0, 1]; n > 0. Linear between order statistics: of the sorted x[0 … n-1] the one at
 * p (n - 1) (Hyndman and Fan's type 7). Sorts when something was added since. */
double sim_quantiles_get (SimQuantiles *q, double p);

/* ---- histogram of equal bins, linear or in log10 ---- */

typedef struct {
  double lo, hi; /* bin i is [lo + i w, lo + (i + 1) w); of log10 x if log10_bins */
  gboolean log10_bins;
  guint n_bins;
  guint64 *bins;                  /* n_bins of them */
  guint64 underflow, overflow, n; /* below lo, at or above hi; all samples */
} SimHistogram;

/* lo < hi in the units of x; with log10_bins both positive, and samples <= 0 are underflow. */
void sim_histogram_init (SimHistogram *h, double lo, double hi, guint n_bins, gboolean log10_bins);
void sim_histogram_clear (SimHistogram *h);
void sim_histogram_add (SimHistogram *h, double x);
double sim_histogram_edge (const SimHistogram *h,
                           guint i); /* lower edge of bin i; i = n_bins: hi */

#endif
