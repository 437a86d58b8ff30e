/* compile_int: what the two files of compile share; internal. */
#ifndef CLUSTERSIM_COMPILE_INT_H
#define CLUSTERSIM_COMPILE_INT_H

#include "compile.h"

/* Costs of one stage: its passes, and the pieces of the last backward when gradients are reduced
 * beside it (head, layers from the last to the first, embedding). */
typedef struct {
  PassCost pass[LP_COUNT];
  guint32 cost[LP_COUNT]; /* index of the cost, G_MAXUINT32 when not made yet */
  guint32 host[LP_COUNT]; /* … of the host's work on the pass, where it has a stream */
  guint n_pieces;         /* 0: not split */
  guint32 *piece_cost;    /* of the full backward or of the weight gradients */
  guint32 *piece_cost_w;
  StageParams *piece_params; /* parameters whose gradients are complete after the piece */
} StageCost;

typedef struct Fsdp Fsdp;
#define PAIR_KINDS  16 /* MoE or dense, full attention among windows, delta rule, recomputed */
#define LAYER_KINDS GRAPH_MAX_BLOCKS /* … or blocks of a graph */

typedef struct {
  const Spec *s;
  const SchedTable *t;
  const StageLayers *sl;
  const StageTimes *times;
  Pricing p;
  ProgramBuilder *b;
  const char *const *stream_names;
  StageCost *stage;
  PassCost layer[LAYER_KINDS][LP_COUNT]; /* memo by kind of layer */
  gboolean have[LAYER_KINDS][LP_COUNT];
  PassCost pair[PAIR_KINDS][PAIR_KINDS]; /* memo of forward beside backward */
  gboolean have_pair[PAIR_KINDS][PAIR_KINDS];
  guint32 *paired;       /* per action: index of the partner + 1, 0 alone; NULL without overlap */
  GHashTable *pair_cost; /* of compile_pairs.c: index + 1 of a cost; only looked up */
  guint32 *send_cost;    /* per stage: of what passes between it and the next, either way */
  guint32 zero_cost;
  gboolean host_bound; /* some pass needs the host stream */
  gboolean split;      /* the last backward is cut into pieces */
  gboolean every;      /* … and so is every other: gradients are reduced in each */
  gboolean rendezvous; /* a transfer waits until its receiver has posted it */
  gboolean barrier;    /* the ranks end the step together */
  gboolean overflow;   /* a time did not fit the clock */
  Fsdp *fsdp;          /* parameters are sharded and gathered unit by unit; else NULL */
  guint32 *slot;       /* [offset on the ring of ranks]: peer slot, 0 … n_peers-1 */
  guint n_peers;
  gboolean scattered;              /* more peers than a wait can name */
  guint32 *act_count, *grad_count; /* [stage*m + mb]: count on the sender's stream */
  guint32 *pos_f, *pos_b;          /* [stage*m + mb]: compute operations before it on its rank; NULL
                                    * without rendezvous */
  guint8 *begun;                   /* per stage: has its first forward been emitted */
  guint32 *last_back; /* per stage: index in its row of the action that completes gradients */
} Compile;

/* One row of the table while it is emitted. */
typedef struct {
  Compile *c;
  guint rank;
  guint32 sends_next, sends_prev;   /* so far */
  guint32 waited_next, waited_prev; /* of them, by the compute stream */
  guint32 actions;                  /* so far; = host operations */
  /* updated parameters, gathered beside the forward in buckets, in the order of their use */
  guint32 buckets, per_bucket;  /* 0: none; calls of a bucket */
  guint32 gathers_waited, owed; /* calls the compute stream has waited for; must, next time */
  double held, begun_params;    /* of the rank; of the stages that have begun */
} Row;

static inline gsize
compile_at (const Compile *c, guint stage, guint mb)
{
  return (gsize)stage * c->t->microbatches + mb;
}

void compile_prepare (Compile *c); /* costs, peers, positions; c has s, t, sl and times */
void compile_release (Compile *c);
gboolean compile_check (const Compile *c, gboolean overflown, GError **error);
/* Emission of a rank's operations: what comes before the first action, the actions with their
 * transfers, the end of the step. compile_row is begin and all actions. */
void compile_begin (Row *w);
void compile_action (Row *w, const SchedAction *a, guint32 index);
void compile_wait_params (Row *w, const SchedAction *a); /* for the operation appended last */
void compile_send (Row *w, const SchedAction *a);
void compile_row (Row *w);
void compile_end (Row *w);
ProgramSet *compile_link (Compile *c);
/* Whether an action has somebody to send to (feeds) or waits for a transfer (is fed). Inline, as
 * what follows: they are asked for every action, several times. */
static inline gboolean
compile_feeds (const Compile *c, const SchedAction *a)
{
  guint part = sched_part (c->t, a->stage);
  return a->kind == SCHED_F ? part + 1 < sched_depth (c->t) : a->kind != SCHED_W && part > 0;
}

static inline gboolean
compile_is_fed (const Compile *c, const SchedAction *a)
{
  guint part = sched_part (c->t, a->stage);
  return a->kind == SCHED_F ? part > 0 : a->kind != SCHED_W && part + 1 < sched_depth (c->t);
}

/* The stream of a transfer between two ranks: activations prefer the ring's next rank, gradients
 * its previous. */
static inline guint
compile_send_stream (const Compile *c, guint from, guint to, gboolean gradient)
{
  guint n = c->t->ranks;
  if (gradient)
    return (from == 0 ? n - 1 : from - 1) == to ? STREAM_PREV : STREAM_NEXT;
  return (from + 1 == n ? 0 : from + 1) == to ? STREAM_NEXT : STREAM_PREV;
}

void compile_put_offload (Compile *c, const CollGroup *group, double params);
/* Are there ranks with the same weights; are updated parameters gathered by them; do two stages
 * hold one table? */
gboolean compile_has_dp (const Compile *c);
gboolean compile_gathers_params (const Compile *c);
gboolean compile_shares_table (const Spec *s);
guint compile_slot_of (const Compile *c, const CollGroup *group);
void compile_put_reduce (Compile *c, StageParams p);
void compile_compute (Compile *c, guint32 cost, guint32 tag);
void compile_costs (Compile *c);
/* A middle stage of the same kinds of layers, layer by layer, as the one before it. */
gboolean compile_like_before (const Compile *c, guint stage);
/* Cost of the forward of one stage (forward TRUE) or of the backward of another when both run as a
 * pair whose all-to-alls overlap; index into the costs. */
guint32 compile_pair_cost (Compile *c, guint forward_stage, guint backward_stage, gboolean forward);
/* Further host time of one half of a pair on this stage. */
SimTime compile_pair_host (Compile *c, guint stage);
void compile_find_pairs (Compile *c);
guint compile_layer_kind (const Spec *s, gint64 layer); /* 0 … LAYER_KINDS-1 */
const PassCost *compile_layer_cost (Compile *c, gint64 layer, LayerPass pass);
void compile_costs_clear (Compile *c);
void compile_host_gap (Compile *c, PassCost *cost);
void compile_head_cost (const Compile *c, LayerPass pass, PassCost *out);
/* Of the prediction modules that stand on a stage, with their heads on the last one. */
void compile_mtp_cost (const Compile *c, guint stage, LayerPass pass, PassCost *out);
/* Compute of a pass that runs beside so much of a dp collective is slowed by dp_overlap_slowdown.
 */
void compile_slow_beside (const Compile *c, PassCost *pc, SimTime beside);
/* Is the optimizer shared out among fewer ranks than hold the parameters (zero 1 and 2 with
 * shard_size)? Gradients are then reduced to the shards inside that group and all-reduced over the
 * groups, and updated parameters are gathered inside it alone. */
gboolean compile_scoped (const Compile *c);
/* Time to reduce the gradients of so many parameters over a group (0 when there is nothing to do),
 * and whether a bucket of them is full. */
double compile_reduce_s (const Compile *c, const CollGroup *group, double params);
gboolean compile_bucket_full (const Compile *c, double params);
/* Of one layer, on one rank: what it holds, and what of that is trained. */
StageParams compile_layer_params (const Compile *c, gint64 layer);
StageParams compile_layer_trainable (const Compile *c, gint64 layer);
/* Ranks that share one copy of the same experts (sharded parameters). */
const CollGroup *compile_expert_shard (const Compile *c);
double compile_gather_bytes (const Spec *s); /* per gathered parameter */
/* Seconds to ticks; sets c->overflow and returns 0 when the clock cannot hold them. */
SimTime compile_ticks (Compile *c, double seconds);

#endif
