/* fit: parameters from measurements, robustly. Knows no device, no file format, no JSON.
 *
 * A fit minimises the weighted mean of Huber's loss of r = ln (predicted / measured): times span
 * six orders of magnitude and are wrong by factors, not by seconds, and a collector's outlier must
 * not pull the curve. Search: Hooke and Jeeves' pattern search (1961), which needs no derivatives
 * and takes the kinks of a tile model. All of it is deterministic; the bootstrap draws from its
 * seed.
 *
 * Units: none in here, except that measured and predicted have the same one. Ownership: everything
 * is the caller's. */
#ifndef CLUSTERSIM_FIT_H
#define CLUSTERSIM_FIT_H

#include <glib.h>

typedef enum {
  FIT_LINEAR, /* steps are shares of max - min */
  FIT_LOG     /* steps are factors; needs min > 0 */
} FitScale;

typedef struct {
  const char *name; /* for reports; borrowed */
  double start, min, max;
  FitScale scale;
  gboolean fixed; /* keeps its start */
} FitParam;

/* Predicts the samples index[0 … n-1] with the parameters p. */
typedef void (*FitModel) (const double *p, const guint *index, guint n, double *predicted,
                          gpointer user);

typedef struct {
  FitParam *params;
  guint n_params;
  const double *measured; /* > 0, one a sample */
  const double *weight;   /* > 0, or NULL: all alike */
  guint n;                /* samples */
  FitModel model;
  gpointer user;
  double huber; /* of |r|: below it squared, beyond it straight */
} FitProblem;

/* Fixes every parameter that fewer than min_samples of the samples in index feel: a change by a
 * factor of e^1.5 (a third of the range for a linear one) moves them by less than a percent. Such a
 * number cannot come out of these samples. Returns how many are left free. */
guint fit_fix_unseen (FitProblem *f, const guint *index, guint n, guint min_samples);

/* Minimises over the samples in index, from each parameter's start, at most max_rounds passes over
 * the parameters. best[n_params] is the result. Returns the loss. */
double fit_minimise (const FitProblem *f, const guint *index, guint n, guint max_rounds,
                     double *best);

/* Interval that holds each parameter four times in five over resamples of the samples (m-out-of-n
 * bootstrap, m at most max_m so that it stays cheap, widths scaled by sqrt (m/n)). Fixed parameters
 * get their value as both ends. */
void fit_bootstrap (const FitProblem *f, const guint *index, guint n, const double *best,
                    guint resamples, guint max_m, guint64 seed, double *lo, double *hi);

/* Residuals of r = ln (predicted / measured) over the samples in index. */
typedef struct {
  guint n;
  double median_abs, p90_abs, max_abs, bias; /* bias: median of r with its sign */
  guint worst;                               /* the sample of max_abs */
} FitStats;
void fit_stats (const FitProblem *f, const guint *index, guint n, const double *p, FitStats *out);

/* The same from residuals at hand; r is reordered. worst is not set. */
void fit_stats_of (double *r, guint n, FitStats *out);

/* Where a fitted model is off: the samples in index are put in order of x (one value a sample) and
 * cut in up to bins equal parts; the first part of at least 8 samples whose median residual is
 * beyond limit is returned (TRUE), with its range of x and its bias. */
typedef struct {
  double from, to, bias;
  guint n;
} FitLack;
gboolean fit_lack (const FitProblem *f, const guint *index, guint n, const double *p,
                   const double *x, guint bins, double limit, FitLack *out);

/* y = sum_j beta_j x_j with beta >= 0, over n rows of k columns (k <= FIT_MAX_COLUMNS), by
 * iteratively reweighted least squares on the relative residual (y - Xb)/y with Huber's weights.
 * Coefficients that would be negative are 0. FALSE when the columns cannot be told apart. */
#define FIT_MAX_COLUMNS 4
gboolean fit_linear (const double *x, guint k, const double *y, guint n, double huber,
                     double *beta);

/* Splits 0 … n-1 in samples to fit and samples held out, the same way each time: every sample is
 * held out with probability share, by a hash of its number and the seed. Both arrays of guint. */
void fit_split (guint n, double share, guint64 seed, GArray *fit, GArray *held_out);

/* Median of v, which is reordered; NAN when n is 0. */
double fit_median (double *v, guint n);
double fit_quantile (double *v, guint n, double q);

#endif
