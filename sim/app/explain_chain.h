/* explain_chain: the parts of `explain` that are words: which numbers of the profiles a prediction
 * takes, the equations in the order in which they are used, how memory adds up, and what made the
 * range. */
#ifndef CLUSTERSIM_EXPLAIN_CHAIN_H
#define CLUSTERSIM_EXPLAIN_CHAIN_H

#include "interval.h"
#include "json_write.h"
#include "predict.h"

/* Whether the scenario's step or memory takes this number of a profile ("hw/NAME:/gemm/types/…").
 */
gboolean explain_uses (const Spec *s, const char *number);

/* Appends to out, or to w when it is not NULL. */
void explain_equations (const Spec *s, const Prediction *p, GString *out, JsonWriter *w);
void explain_memory (const Spec *s, const Prediction *p, GString *out, JsonWriter *w);
void explain_range (const IntervalTable *t, const Spec *s, const Prediction *p, GString *out,
                    JsonWriter *w);

#endif
