/* plan: the layouts of a model on a cluster, searched.
 *
 * What is searched, all of it: tp (every divisor of the GPUs and heads up to the scale-up domain),
 * cp (powers of two with PLAN_CP_TOKENS tokens a rank at least), pp, dp, ep (every divisor of the
 * experts), vpp (every number of chunks that spreads the layers evenly, with or without embedding
 * and loss), every schedule of sched_names, every micro-batch that divides the batch of a rank,
 * recomputation none, selective and full, and sharding: zero 1, 2, fully sharded, and 0 where the
 * scenario has it. Sequence parallelism goes with tp, unless the scenario has tp without it.
 *
 * Each has a lower bound of its step. Layouts are looked at in the order of the bounds, and left
 * out, without a full prediction, only where that is proven to change nothing in the answer, which
 * is the `top` best and the edge of time and memory up to `slack` times the best time:
 *   it needs more memory than the GPU has; or
 *   its bound is above both the last of the best and slack x the best; or
 *   its bound is above the last of the best, and some layout that was predicted takes no longer
 *   than that bound and no more memory, one of them less.
 * By memory, the second rule falls away and the first part of the third asks for its memory.
 * Which of the layouts count as predicted is told at the end, by the same rules with the final
 * best and edge: any run that looked at enough, in whatever order, in parts or resumed, therefore
 * has the same result.
 *
 * Bound (safe by construction: each pass as the device model prices it, all else free): a rank
 * computes its operations one after another, but not before the forward of one micro-batch has
 * crossed the stages before its first; and, in tables with whole backwards, the gradient of its
 * last operation still has to cross them back. T >= max over ranks of (forwards before it + m * its
 * own passes + backwards before it). Where passes run beside each other (DualPipe) only their
 * compute counts; where steps follow each other without a barrier, only the rank's own work.
 */
#ifndef CLUSTERSIM_PLAN_H
#define CLUSTERSIM_PLAN_H

#include <signal.h>

#include "predict.h"

#define PLAN_CP_TOKENS 1024

typedef enum { PLAN_BY_TIME, PLAN_BY_COST, PLAN_BY_MEMORY } PlanOrder;
extern const char *const plan_order_names[];

typedef enum {
  PLAN_UNSEEN,
  PLAN_ILLEGAL, /* the schedule cannot be made for this shape */
  PLAN_UNFIT,
  PLAN_SLOW,      /* its bound is above all that is asked for */
  PLAN_DOMINATED, /* its bound is, and its memory */
  PLAN_PREDICTED
} PlanState;
extern const char *const plan_state_names[];

typedef struct {
  guint64 index; /* in the list of all, which depends on the scenario alone */
  gint64 tp, cp, pp, vpp, ep, mbs, zero_stage;
  gboolean fsdp, sequence_parallel;
  Recompute recompute;
  const char *schedule; /* static */
  PlanState state;
  double bound_s;
  /* of the full prediction; step_s 0: not predicted */
  double step_s, usd_per_1e9_tokens, part_s[PART_COUNT], mfu;
  gint64 peak_bytes;     /* 0: not looked at */
  gboolean fits, pareto; /* pareto: no other is both faster and smaller */
} PlanPoint;

typedef struct {
  GArray *points; /* PlanPoint that were predicted and fit, best first */
  GArray *unfit;  /* PlanPoint that need more memory, least lacking first; at most 16 */
  GArray *all;    /* every legal PlanPoint of this part, by index */
  guint64 listed, illegal, n_unfit, pruned, predicted;
  guint64 missing;   /* known_only: points that should be known and are not */
  guint64 made;      /* full predictions made in this run */
  gboolean complete; /* the search came to its end */
  PlanPoint own;     /* the scenario's own layout; step_s 0 when it does not run */
} PlanResult;

typedef struct {
  PlanOrder order;
  guint top;                         /* so many are to be proven best; at least 1 */
  double slack;                      /* the edge goes up to so many times the best time; 0: 1.5 */
  gboolean exhaustive;               /* predict whatever fits */
  gint64 deadline;                   /* g_get_monotonic_time when to stop; 0: never */
  const volatile sig_atomic_t *stop; /* not 0: stop; or NULL */
  guint64 first, step;               /* this part: points first, first + step, …; step 0: all */
  gpointer data;                     /* of the calls, each of which may be NULL */
  gboolean (*allow) (gpointer data, const PlanPoint *p); /* part of the search? */
  void (*progress) (gpointer data, guint64 done, guint64 of, const PlanPoint *best);
  /* Earlier predictions: fills what was predicted, TRUE when it is there. */
  gboolean (*known) (gpointer data, PlanPoint *p);
  gboolean known_only; /* nothing is predicted anew */
  /* Takes a prediction; FALSE ends the search with the error. */
  gboolean (*took) (gpointer data, const PlanPoint *p, GError **error);
} PlanOptions;

gboolean plan_run (const Spec *base, const PlanOptions *opt, PlanResult *out, GError **error);
void plan_clear (PlanResult *r);

/* The scenario with the point's layout, all GPUs alike; a shallow copy that borrows all of base and
 * must not be cleared. */
Spec plan_spec (const Spec *base, const PlanPoint *p);

/* Why b is behind the best a, in words: "slower by 3.2 %: bubble 0.41 s more"; newly allocated.
 * Says so when b does not fit or was not predicted. capacity_bytes: of the GPU. */
char *plan_why (PlanOrder order, const PlanPoint *a, const PlanPoint *b, gint64 capacity_bytes);

/* ---- plan_list.c ---- */

/* Prices of the passes, kept between the bounds of a search. */
typedef struct PlanPrices PlanPrices;
PlanPrices *plan_prices_new (void);
void plan_prices_free (PlanPrices *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PlanPrices, plan_prices_free)

/* Safe lower bound of the step of a legal scenario, seconds. */
double plan_bound_s (const Spec *s, PlanPrices *prices);

/* Appends every legal layout that allow (or NULL) lets through, with index and bound. */
void plan_list (const Spec *base, gboolean (*allow) (gpointer data, const PlanPoint *p),
                gpointer data, GArray *list);

#endif
