/* interval: the range that should hold the measured step four times in five.
 *
 * From the errors of the predictions on published runs, by kind of run:
 * scenarios/published/errors.json holds for each kind the 10 % and 90 % quantile of measured /
 * predicted step time, with the number of rows they come from (`make validate` prints them anew).
 * Kinds, in order of precedence: "fp8", "moe", "fully-sharded", "host-bound" (the host takes a
 * tenth of the step or more), "pipeline" (pp > 1) and "dense".
 */
#ifndef CLUSTERSIM_INTERVAL_H
#define CLUSTERSIM_INTERVAL_H

#include "predict.h"

/* Factors on the predicted step time, lo <= 1 <= hi. */
typedef struct {
  double lo, hi;
} StepInterval;

typedef struct IntervalTable IntervalTable;
IntervalTable *interval_table_load (GError **error);
void interval_table_free (IntervalTable *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (IntervalTable, interval_table_free)

/* Name of the kind of a prediction; static. */
const char *interval_kind (const Spec *s, const Prediction *p);
StepInterval interval_for (const IntervalTable *t, const Spec *s, const Prediction *p);

#endif
