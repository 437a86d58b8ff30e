/* layer_cost: the operations of one layer, priced, and the time they take together.
 *
 * A pass (forward, backward, its input-gradient or weight-gradient half, or the recomputation) of a
 * layer is a small program of two streams, compute and communication, made of the kernels that the
 * software profile says a framework launches. It is run by the same executor as the step, so that
 * what a tensor-parallel collective leaves exposed beside a GEMM is simulated. Layers begin and end
 * with both streams empty, hence a chunk's pass is the sum of its layers'.
 *
 * Sources of the operation list: Narayanan et al. 2021 (arXiv 2104.04473) for the tensor-parallel
 * transformer layer, Korthikanti et al. 2022 (2205.05198) for sequence parallelism and selective
 * recomputation, Liu et al. 2023 (2310.01889) for ring attention; bytes per element of each
 * memory-bound kernel are what its operands need (2-byte activations, 1-byte masks).
 */
#ifndef CLUSTERSIM_LAYER_COST_H
#define CLUSTERSIM_LAYER_COST_H

#include "program.h"
#include "spec.h"

typedef enum {
  LP_FORWARD,
  LP_BACKWARD,   /* recomputation + input and weight gradients, with their overlap */
  LP_INPUT_GRAD, /* recomputation + input gradients */
  LP_WEIGHT_GRAD,
  LP_COUNT
} LayerPass;

typedef struct {
  SimTime part[PART_COUNT]; /* GPU time of the compute stream: compute, exposed collectives */
  SimTime total;
  SimTime host; /* time the host needs to issue it */
  guint kernels;
  gboolean overflow; /* a time did not fit: the others mean nothing */
} PassCost;

/* The longest pass, and the longest kernel: 80 hours and 75 minutes. What is longer is an absurd
 * input that would run over the end of the clock. */
#define PASS_TICKS_MAX   ((SimTime)1 << 58)
#define KERNEL_TICKS_MAX ((SimTime)1 << 52)

/* Groups of ranks of a rank, by the order tp, cp, (ep), dp, pp (innermost first). */
typedef struct {
  CollGroup tp, cp, dp, dp_only; /* dp: dp*cp ranks that hold the same weights */
  CollGroup etp, ep,
      edp;       /* experts: tensor parallel, expert parallel, ranks with the same experts */
  CollGroup all; /* every rank of the job */
  CollGroup shard, replica, hpz; /* sharded parameters: who shares one copy, who holds the same
                                  * shard, who shares the second copy (spec_shard_ranks) */
  CollGroup pp;                  /* the stages of a pipeline */
  gboolean pp_same_node;
  int pp_members; /* GPUs of a node that send to the next stage at the same time */
  int pp_sharers; /* of them through one NIC */
} RankGroups;

void rank_groups (const Spec *s, RankGroups *out);

/* Everything a pricing needs, computed once per scenario. */
typedef struct {
  const Spec *s;
  RankGroups groups;
  gint64 tokens;    /* of a micro-batch on one rank (divided by cp) */
  gint64 tokens_sp; /* of the regions that sequence parallelism divides */
  gint64 vocab_padded;
  double act_bytes;     /* bytes of an activation element */
  DType gemm_dtype;     /* of the linear layers' GEMMs */
  DType wide_dtype;     /* of those that stay in 16 bits: head, router, attention */
  AttnKernel attention; /* the software's, or what the part has in its place */
} Pricing;

void pricing_init (Pricing *p, const Spec *s);

/* Time of a layer's pass. */
void layer_pass_cost (const Pricing *p, gint64 layer, LayerPass pass, PassCost *out);
void embedding_pass_cost (const Pricing *p, LayerPass pass, PassCost *out);
void head_pass_cost (const Pricing *p, LayerPass pass,
                     PassCost *out);                                  /* final norm, logits, loss */
void mtp_pass_cost (const Pricing *p, LayerPass pass, PassCost *out); /* one multi-token module */
void mtp_body_cost (const Pricing *p, LayerPass pass, PassCost *out); /* … without its head */

/* Forward of one layer and backward of another, of different micro-batches, together: the
 * all-to-all of each runs beside the compute of the other (DualPipe, arXiv 2412.19437,
 * section 3.2.1; Megatron-Core's 1F1B overlap). Both must be mixture-of-experts layers. */
void layer_pair_cost (const Pricing *p, gint64 forward_layer, gint64 backward_layer, PassCost *out);

void pass_cost_add (PassCost *sum, const PassCost *more);

/* One kernel of a pass, for `explain` and tests. */
typedef struct {
  const char *name;
  const char *kind; /* "gemm", "attention", "memory", "collective" */
  double time_s;
  double flops, bytes;
  gboolean comm;
} KernelRow;
/* rows: array of KernelRow, appended in order of issue. */
void layer_pass_kernels (const Pricing *p, gint64 layer, LayerPass pass, GArray *rows);

#endif
