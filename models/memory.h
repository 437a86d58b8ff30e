/* memory: bytes that one GPU of each pipeline stage needs at the worst moment of a step.
 *
 * Parts, and where each rule is from:
 *   weights, gradients, optimizer: bytes per parameter of the software profile, times the
 * parameters of a rank (model_rank_layer …); ZeRO (arXiv 1910.02054) divides the optimizer (stage
 * 1), the gradients (2) and the weights (3) by the data-parallel ranks, experts by theirs. With
 * bf16, fp32 main gradients and Adam that is the 6 P + 12 P / DP of Megatron's distributed
 * optimizer. activations: what forward keeps for backward, per layer (Korthikanti et al., arXiv
 * 2205.05198, section 4, generalised: see memory_act.c), times the micro-batches in flight, which
 * the schedule table gives; embedding, head and logits on their stages. buffers: what lives only
 * while one layer runs (gradients of its activations, recomputed activations, the gathered input of
 * sequence parallelism, dispatched tokens, gathered weights of ZeRO 3), pipeline messages,
 * quantised copies of the weights in 8- and 4-bit training. framework: CUDA context, NCCL and
 * workspaces, and the allocator's loss on activations. The peak is the sum. Workspaces (of GEMM
 * libraries, by device; see memory_workspace_bytes) count as allocated, the loss as reserved.
 */
#ifndef CLUSTERSIM_MEMORY_H
#define CLUSTERSIM_MEMORY_H

#include "sched.h"
#include "spec.h"

#define MEMORY_ERROR memory_error_quark ()
GQuark memory_error_quark (void);

typedef struct {
  gint64 weights_bytes, gradients_bytes, optimizer_bytes, activations_bytes, buffers_bytes,
      framework_bytes, peak_bytes;
  /* The same as frameworks report it: allocated tensors between two steps, and at the worst moment;
   * what the allocator has reserved then. peak_bytes is what the step cannot do
   * without: the allocated peak, what fragmentation loses, and outside of the allocator the CUDA
   * context and the buffers of NCCL; a run with room shows more, its allocator keeps freed blocks.
   */
  gint64 after_step_bytes, allocated_bytes, reserved_bytes;
} StageMemory;

typedef struct {
  gboolean fits;
  gint64 capacity_bytes, peak_bytes; /* peak: of the worst stage */
  gint64 host_bytes;                 /* offloaded, of the node that holds most; 0: nothing */
  gint64 host_capacity_bytes;        /* of a node; 0: not known */
  int worst_stage;
  guint n_stages;      /* pipeline ranks: a rank with several chunks is one stage here */
  StageMemory *stages; /* owned */
} MemReport;

/* layers_of_stage: layers of each virtual stage, t->stages entries, that add up to the model's. The
 * A schedule with two copies of the model states its layers twice, copy by copy. The
 * spec must have passed spec_check. Without a GPU profile capacity is 0 and fits is TRUE. out is
 * set only on success and is then cleared with memory_clear. */
gboolean memory_estimate (const Spec *s, const SchedTable *t, const gint64 *layers_of_stage,
                          MemReport *out, GError **error);
void memory_clear (MemReport *r);

/* In the allocator beside the states, from step to step: the workspaces of cuBLAS for each handle
 * and of Transformer Engine for each stream of GEMMs (sizes of the device, counts of the software),
 * the scores that unfused attention keeps where it does (2 a s^2 b / t), a batch of tokens. */
double memory_workspace_bytes (const Spec *s);

/* Parameters that one GPU of pipeline rank holds: its layers, embedding, head (a tied table again
 * on the last rank when it is not the first) and MTP modules. ZeRO is not in here. */
RankParams memory_rank_params (const Spec *s, const SchedTable *t, const gint64 *layers_of_stage,
                               guint rank);

/* Kept from forward to backward by one layer for one micro-batch on one GPU. */
double model_activation_bytes_layer (const Spec *s, gint64 layer_index, Recompute r);
/* Lives only while the backward of that layer runs. */
double model_working_bytes_layer (const Spec *s, gint64 layer_index, Recompute r);
/* Of the first stage beside its layers, of the last one, and of the logits, for one micro-batch. */
double model_activation_bytes_embedding (const Spec *s);
double model_activation_bytes_head (const Spec *s);
double model_logits_bytes (const Spec *s);
/* One tensor of attention scores of one layer, 0 where a fused kernel makes none. */
double model_scores_bytes (const Spec *s);
/* One activation of one micro-batch as a stage holds it: its input, or the message between stages.
 */
double model_hidden_bytes (const Spec *s);

#endif
