/* interval: the range that should hold the measured step four times in five.
 *
 * Learned from the errors of predictions on published runs: scenarios/published/errors.json, which
 * `clustersim fit errors TABLE.csv` writes. With y = ln(measured / predicted step time) and x the
 * features below (0 or 1, known before a run),
 *   centre  c(x) = c0 + sum c_k x_k
 *   spread  s(x) = exp(s0 + sum s_k x_k)
 *   range   predicted * exp(c + s z), z from `low` to `high`
 * where z are the 10 % and 90 % quantiles of (y - c) / s over runs whose source was left out of the
 * fit. Terms of features with few runs are drawn to 0, so that they borrow from all others.
 */
#ifndef CLUSTERSIM_INTERVAL_H
#define CLUSTERSIM_INTERVAL_H

#include "predict.h"

/* Factors on the predicted step time, lo <= 1 <= hi. */
typedef struct {
  double lo, hi;
} StepInterval;

typedef enum {
  FEATURE_NARROW,   /* 8- or 4-bit training */
  FEATURE_EXPERTS,  /* mixture of experts */
  FEATURE_SHARDED,  /* parameters sharded: FSDP, ZeRO 3 */
  FEATURE_HOST,     /* the host takes a tenth of the step or more */
  FEATURE_NODES,    /* more than one node */
  FEATURE_PIPELINE, /* pipeline stages */
  FEATURE_BORROWED, /* the GPU has no kernel table of its own for this precision */
  FEATURE_ASSUMED,  /* something that changes the answer was filled in */
  FEATURE_STAND_IN, /* framework or network has no profile of its own */
  FEATURE_COUNT
} IntervalFeature;
extern const char *const interval_feature_names[]; /* NULL-terminated */

typedef struct {
  double centre[FEATURE_COUNT + 1], spread[FEATURE_COUNT + 1]; /* the last is of all runs */
  double low, high;
} IntervalModel;

/* Bit k: feature k. */
guint interval_features (const Spec *s, const Prediction *p);
StepInterval interval_of (const IntervalModel *m, guint features);

typedef struct IntervalTable IntervalTable;
IntervalTable *interval_table_load (GError **error);
void interval_table_free (IntervalTable *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (IntervalTable, interval_table_free)

/* t NULL: the prediction itself, as before any errors are known. */
StepInterval interval_for (const IntervalTable *t, const Spec *s, const Prediction *p);
/* The model behind it; borrowed. */
const IntervalModel *interval_model (const IntervalTable *t);

/* Centre and spread alone. */
double interval_centre (const IntervalModel *m, guint features);
double interval_spread (const IntervalModel *m, guint features);

#endif
