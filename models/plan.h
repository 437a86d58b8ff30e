/* plan: the layouts of a model on a cluster, searched.
 *
 * Every legal combination of tp, cp, pp, vpp, ep, micro-batch, recomputation, sharding and schedule
 * is listed with a lower bound of its step and looked at in the order of the bounds: those that do
 * not fit the memory fall out, the others are predicted in full. When the bound of the next one is
 * above the last that is to be shown, none of the rest can be among the best, and the search ends:
 * what it found is the optimum of the model, not a sample. Stopped before, it has the best so far.
 *
 * Bound (safe: every operation at the peak rate of the GPU, collectives and the host free): the
 * last rank of the pipeline cannot start before the forward of one micro-batch has crossed the p -
 * 1 stages before it, then has all its own work to do, and then its last gradient crosses them
 * back: T >= sum over the first p - 1 stages of (f + b) + m * (its stages' f + b), with f, b the
 * FLOPs of a stage and micro-batch over tp x cp x peak. For tables with split backwards only m
 * times the mean rank's work is used.
 */
#ifndef CLUSTERSIM_PLAN_H
#define CLUSTERSIM_PLAN_H

#include "predict.h"

typedef enum { PLAN_BY_TIME, PLAN_BY_COST, PLAN_BY_MEMORY } PlanOrder;
extern const char *const plan_order_names[];

typedef struct {
  gint64 tp, cp, pp, vpp, ep, mbs, zero_stage;
  gboolean fsdp, sequence_parallel;
  Recompute recompute;
  const char *schedule; /* static */
  double bound_s;
  /* of the full prediction; step_s 0: not predicted */
  double step_s, usd_per_1e9_tokens, part_s[PART_COUNT], mfu;
  gint64 peak_bytes;
  gboolean fits, pareto; /* pareto: no other is both faster and smaller */
} PlanPoint;

typedef struct {
  GArray *points; /* PlanPoint that were predicted and fit, best first */
  GArray *unfit;  /* PlanPoint that need more memory, least lacking first; at most 16 */
  guint64 listed, illegal, n_unfit, pruned, predicted;
  gboolean complete; /* the search came to its end */
  PlanPoint own;     /* the scenario's own layout; step_s 0 when it does not run */
} PlanResult;

typedef struct {
  PlanOrder order;
  guint top;       /* so many are to be proven best; at least 1 */
  gint64 deadline; /* g_get_monotonic_time when to stop; 0: never */
  void (*progress) (gpointer data, guint64 done, guint64 of, const PlanPoint *best); /* or NULL */
  gpointer data;
} PlanOptions;

gboolean plan_run (const Spec *base, const PlanOptions *opt, PlanResult *out, GError **error);
void plan_clear (PlanResult *r);

/* The scenario with the point's layout; a shallow copy that borrows all of base and must not be
 * cleared. */
Spec plan_spec (const Spec *base, const PlanPoint *p);

/* Safe lower bound of the step of a legal scenario, seconds. */
double plan_bound_s (const Spec *s);

/* Why b is behind a, in words: "slower by 3.2 %: bubble 0.41 s more"; newly allocated. */
char *plan_why (const PlanPoint *a, const PlanPoint *b);

#endif
