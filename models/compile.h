/* compile: scenario + schedule table → programs of a training step, one per pipeline stage.
 *
 * All ranks of a stage (tp, cp, dp) run the same program at the same time when the job is healthy
 * and homogeneous, so one of each stage is simulated; its collectives are priced for the whole
 * group. Streams of a rank: compute; transfers to the next and to the previous stage; data-parallel
 * collectives; host. Every one is in order; what a transfer or a gradient bucket leaves exposed
 * follows from the waits.
 */
#ifndef CLUSTERSIM_COMPILE_H
#define CLUSTERSIM_COMPILE_H

#include "layer_cost.h"
#include "sched.h"

enum {
  STREAM_COMPUTE,
  STREAM_NEXT,
  STREAM_PREV,
  STREAM_DP,
  STREAM_HOST,
  STREAM_OUTER, /* all-reduce of shards over their replicas; gradients to the host */
  STREAM_CPU,   /* an update by the host's processors, beside the next step */
  STREAM_COUNT
};

/* Slots of rendezvous. In compile_step's own set, where one rank stands for all of its stage, only
 * the first two have groups, and, where a model is fed from both ends, those in which the two ranks
 * with the same stages reduce; unfold.h gives the others theirs. */
enum {
  COMPILE_SLOT_STEP,    /* everybody, at the end */
  COMPILE_SLOT_EMBED,   /* first and last stage of a tied model */
  COMPILE_SLOT_MODEL,   /* ranks whose compute is in lockstep: tp x cp, and ep */
  COMPILE_SLOT_DP,      /* gradients and gathered parameters, over dp x cp */
  COMPILE_SLOT_EDP,     /* … of experts */
  COMPILE_SLOT_SHARD,   /* sharded parameters: one copy */
  COMPILE_SLOT_HPZ,     /* … the second copy */
  COMPILE_SLOT_REPLICA, /* … the same shard */
  COMPILE_N_SLOTS
};

/* How the layers lie on the stages (global, virtual). */
typedef struct {
  guint n_stages;
  gint64 *first_layer, *n_layers;
  gint64 *mtp; /* multi-token-prediction modules of each stage; NULL: all on the last */
} StageLayers;

/* The framework's rule: even if it divides; else, when embedding and loss count as one layer each,
 * one fewer on the first and on the last; else the extra layers go to the earliest stages. */
gboolean stage_layers_init (StageLayers *sl, const Spec *s, GError **error);
void stage_layers_clear (StageLayers *sl);

/* Modules that stand on this stage, and those whose hidden state a stage passes on. */
gint64 stage_mtp (const StageLayers *sl, const ModelSpec *m, guint stage);
gint64 stage_mtp_before (const StageLayers *sl, guint stage); /* on stages before it */

/* Parameters of one stage that one rank holds. */
typedef struct {
  double dense;   /* reduced over dp*cp */
  double experts; /* routed experts: reduced over the ranks with the same ones (edp) */
} StageParams;
/* … of the input and of the output, whose tied table counts here too. */
double stage_input_params (const Spec *s);
double stage_output_params (const Spec *s);
StageParams stage_params_per_rank (const Spec *s, const StageLayers *sl, guint stage);

/* Measured times of one stage and micro-batch in place of the device model (validate
 * --stage-times); seconds, negative: not given. */
typedef struct {
  double forward_s, input_grad_s, weight_grad_s, p2p_s;
} StageTimes;

/* Do all ranks wait for each other at the end of the step (gradient norm)? */
gboolean compile_has_barrier (const Spec *s, const SchedTable *t);

ProgramSet *compile_step (const Spec *s, const SchedTable *t, const StageLayers *sl,
                          const StageTimes *times, GError **error);

#endif
