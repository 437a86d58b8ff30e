/* hetero: a step of a job whose GPUs are not all alike.
 *
 * Slow GPUs, a second type of GPU on some nodes, jitter of every kernel group, stalls of the data
 * loader and pauses for garbage collection. Without chance in it the job is folded (fold.h) and one
 * step is run; with chance every GPU is simulated, for as many steps as asked, and the step is
 * their mean. The healthy step of the same job, without all that, is told beside it: what the
 * stragglers cost. Prices are those of the first type of GPU; memory is the smaller one's.
 */
#ifndef CLUSTERSIM_HETERO_H
#define CLUSTERSIM_HETERO_H

#include "compile_eval.h"

/* What a step can be repeated without, as studies of stragglers do (Lin et al., arXiv 2505.05713:
 * the slowdown is the step over the one with every operation at its ideal time, and a cause
 * explains the part that goes away with it). slowest: the slowest 3 % of GPUs at the ideal speed.
 */
typedef enum {
  CAUSE_SLOW,   /* slow_gpus and stragglers */
  CAUSE_SECOND, /* second type of GPU */
  CAUSE_SPREAD,
  CAUSE_JITTER,
  CAUSE_STALL,
  CAUSE_PAUSE,
  CAUSE_SLOWEST,
  HETERO_CAUSES
} HeteroCause;
extern const char *const hetero_cause_names[];

typedef struct {
  double healthy_s;            /* all GPUs alike; 0: no heterogeneity */
  double mean_s, min_s, max_s; /* over the steps */
  guint steps;
  guint simulated; /* GPUs, or classes of them, in a step */
  gboolean folded;
  double
      without_s[HETERO_CAUSES]; /* with what_if: the mean step without that cause; 0: not there */
} HeteroResult;

gboolean hetero_wanted (const Spec *s);

/* healthy_s: as predicted already. out: the mean step; breakdown of a rank of the last stage to
 * finish.
 */
gboolean hetero_run (const Spec *s, const SchedTable *t, const StageLayers *sl, double healthy_s,
                     guint reference_stage, HeteroResult *result, StepTimes *out, GError **error);

#endif
