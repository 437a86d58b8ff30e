/* compile_int: what the two files of compile share; internal. */
#ifndef CLUSTERSIM_COMPILE_INT_H
#define CLUSTERSIM_COMPILE_INT_H

#include "compile.h"

/* Costs of one stage: its passes, and the pieces of the last backward when gradients are reduced
 * beside it (head, layers from the last to the first, embedding). */
typedef struct {
  PassCost pass[LP_COUNT];
  guint32 cost[LP_COUNT]; /* index of the cost, G_MAXUINT32 when not made yet */
  guint n_pieces;         /* 0: not split */
  guint32 *piece_cost;    /* of the full backward or of the weight gradients */
  guint32 *piece_cost_w;
  double *piece_params; /* parameters whose gradients are complete after the piece */
} StageCost;

typedef struct Fsdp Fsdp;

typedef struct {
  const Spec *s;
  const SchedTable *t;
  const StageLayers *sl;
  const StageTimes *times;
  Pricing p;
  ProgramBuilder *b;
  StageCost *stage;
  PassCost layer[4][LP_COUNT]; /* memo by kind of layer */
  gboolean have[4][LP_COUNT];
  guint32 send_cost, zero_cost;
  gboolean host_bound; /* some pass needs the host stream */
  gboolean split;      /* the last backward is cut into pieces */
  gboolean every;      /* … and so is every other: gradients are reduced in each */
  gboolean rendezvous; /* a transfer waits until its receiver has posted it */
  gboolean overflow;   /* a time did not fit the clock */
  Fsdp *fsdp;          /* parameters are sharded and gathered unit by unit; else NULL */
  guint32 *slot;       /* [offset on the ring of ranks]: peer slot, 0 … n_peers-1 */
  guint n_peers;
  guint32 *act_count, *grad_count; /* [stage*m + mb]: count on the sender's stream */
  guint32 *pos_f, *pos_b;          /* [stage*m + mb]: compute operations before it on its rank */
  guint32 *last_back; /* per stage: index in its row of the action that completes gradients */
} Compile;

void compile_costs (Compile *c);
void compile_costs_clear (Compile *c);
const PassCost *compile_layer_cost (Compile *c, gint64 layer, LayerPass pass);
void compile_host_gap (Compile *c, PassCost *cost);
/* Compute of a pass that runs beside so much of a dp collective is slowed by dp_overlap_slowdown.
 */
void compile_slow_beside (const Compile *c, PassCost *pc, SimTime beside);
/* Time to reduce the gradients of so many parameters, and whether a bucket of them is full. */
double compile_reduce_s (const Compile *c, double params);
gboolean compile_bucket_full (const Compile *c, double params);
/* Parameters of a layer on one rank, added to what dense and experts hold. */
void compile_layer_params (const Compile *c, gint64 layer, double *dense, double *experts);
/* Ranks that hold the same experts. */
const CollGroup *compile_expert_group (const Compile *c);
/* Seconds to ticks; sets c->overflow and returns 0 when the clock cannot hold them. */
SimTime compile_ticks (Compile *c, double seconds);

#endif
