/* interval_fit: errors of predictions into an IntervalModel (see interval.h). Pure arithmetic.
 *
 * centre: ridge regression of y on the features, robust (Huber's weights). spread: ridge regression
 * of ln |y - centre|. A run weighs 1 / sqrt(runs of its source), so that one source of hundreds of
 * runs does not speak for all. low, high: weighted quantiles of the standardised errors, each from
 * a model fitted without the run's source.
 */
#ifndef CLUSTERSIM_INTERVAL_FIT_H
#define CLUSTERSIM_INTERVAL_FIT_H

#include "interval.h"

typedef struct {
  double y;       /* ln (measured / predicted step time) */
  guint features; /* interval_features */
  guint source;   /* from 0, dense */
} IntervalRun;

/* runs: n > 0 of them. The model is of all; ranges[i] (n entries, or NULL) is what the model fitted
 * without the source of run i, and with the quantiles of the other runs, gives run i. prior: where
 * the spread terms are drawn to (FEATURE_COUNT + 1, the last 0), or NULL for 0. */
void interval_fit (const IntervalRun *runs, guint n, const double *prior, IntervalModel *out,
                   StepInterval *ranges);

/* Minimises sum w_i (y_i - x_i b)^2 + ridge b'b over the first n_pulled of the k coefficients.
 * x: n rows of k. k at most 32. */
void ridge_solve (const double *x, const double *y, const double *w, guint n, guint k,
                  guint n_pulled, double ridge, double *b);

/* Quantile q of values under weights; sorts neither. n > 0. */
double weighted_quantile (const double *values, const double *weights, guint n, double q);

#endif
