/* software: what a training framework of a year does with the hardware.
 *
 * Profiles: scenarios/software/<name>.json. A profile says which kernels are fused, which
 * collectives overlap with what, what the host costs, how the vocabulary is padded and what the
 * optimizer keeps. Numbers carry their source; switches carry a comment ("why").
 */
#ifndef CLUSTERSIM_SOFTWARE_H
#define CLUSTERSIM_SOFTWARE_H

#include "types.h"
#include "gpu.h"

typedef enum { TPOV_NONE, TPOV_DGRAD, TPOV_PIPELINED } TpOverlap;
/* none: every TP collective is exposed; dgrad: backward's input-gradient all-reduce (and the gather
 * of sequence parallelism) runs beside the weight-gradient GEMM; pipelined: collectives are cut in
 * tp pieces that run beside their GEMM, forward and backward. */
extern const char *const tp_overlap_names[];

typedef enum { OPT_ADAM, OPT_SGD, OPT_ADAM8BIT, OPT_LAMB } OptimizerKind;
extern const char *const optimizer_names[];

/* How tokens reach their experts. plain: NCCL's all-to-all of one copy of a token for each of its
 * experts. hierarchical: the same copies, first gathered inside the node by destination rank, then
 * between nodes. deepep: kernels that send a token once to each destination node and once to each
 * destination GPU (DeepEP, HybridEP). */
typedef enum { EP_PLAIN, EP_HIERARCHICAL, EP_DEEPEP } EpDispatch;
extern const char *const ep_dispatch_names[];

/* Scales of 8-bit training where the precision is fp8: one for a tensor from earlier steps
 * (delayed), one for a tensor from itself (current), or one for a block of 128 (block). */
typedef enum { FP8_DELAYED, FP8_CURRENT, FP8_BLOCK } Fp8Recipe;
extern const char *const fp8_recipe_names[];

typedef struct {
  char *name;
  AttnKernel attention;
  gboolean fused_softmax; /* scale+mask+softmax in one kernel (unfused attention only) */
  gboolean fused_bias_gelu, fused_bias_dropout_add, fused_swiglu, fused_rope, fused_norm;
  gboolean dropout;               /* masks are made and kept (hidden and attention) */
  gboolean grad_accum_fusion;     /* wgrad GEMM adds into the fp32 main gradient */
  double grad_bytes, param_bytes; /* per parameter kept on the GPU during the step */
  double optimizer_state_bytes;   /* master + moments, per parameter */
  double optimizer_traffic_bytes; /* read + written per parameter by the update */
  OptimizerKind optimizer;
  gint64 vocab_pad;           /* padded to a multiple of vocab_pad * tp */
  gboolean vocab_pad_divided; /* only a vocabulary that tp divides is padded */
  double xent_passes;         /* times the logits are read or written by loss forward + backward */
  double logits_bytes; /* bytes per logit at the loss (16-bit and fp32 copies that live together) */
  gboolean
      recompute_early_stop; /* full recomputation ends with the last tensor that backward needs:
                             * torch.utils.checkpoint without reentry since PyTorch 2.1 */
  gboolean head_recompute;  /* loss and head are inside the recomputed region */
  TpOverlap tp_overlap;
  double tp_overlap_slowdown; /* factor on GEMM time while a collective runs beside it, >= 1 */
  gboolean dp_overlap_grad;   /* gradient reduction runs beside backward, bucket by bucket */
  gboolean dp_overlap_param;  /* gathering of updated parameters runs beside the next forward */
  double dp_overlap_slowdown; /* factor on compute time while a dp collective runs beside it */
  double dp_bucket_bytes;     /* 0: one bucket */
  double dp_reduce_bytes;     /* bytes per gradient element on the wire (2 or 4) */
  double dp_gather_bytes;     /* bytes per parameter element gathered (zero1 …) */
  gboolean dp_reduce_every; /* gradients are reduced in every micro-batch's backward, not the last's
                             * alone (sharded gradients: DeepSpeed ZeRO 2 and 3, FSDP) */
  double fsdp_prefetch;     /* sharded parameters: units gathered ahead of the one at work */
  double fsdp_unit_layers;  /* layers of a unit that is gathered and reduced at once */
  gboolean fsdp_root_held;  /* embedding and head stay gathered from forward to backward */
  gboolean fsdp_barrier;    /* a micro-batch ends with its reductions (PyTorch FSDP) */
  gboolean
      fsdp_replicas_last; /* shards are all-reduced over replicas after the backward, at once */
  double fsdp_gather_copy_bytes; /* read and written by kernels around a gather, per parameter */
  double fsdp_reduce_copy_bytes; /* … around a reduction (casts, scaling, packing) */
  double fsdp_host_unit_us;      /* further host time per unit and pass (hooks) */
  double fsdp_net_efficiency;    /* share of the fabric's bandwidth that the gathers of a framework
                                  * reach: many small messages, broadcasts; 1: one flat message */
  gboolean no_sharded_pipeline;  /* zero 2 and 3 only without pipeline stages (DeepSpeed) */
  gboolean post_validation; /* with split backwards, the optimizer does not wait for the norm of all
                             * ranks: it is checked afterwards (zero-bubble pipelines), and a rank
                             * begins its next step when it is done with its own */
  gboolean pp_overlap;      /* sends do not block the compute stream */
  gboolean p2p_sync;        /* the host waits for the device after each pass: torch.cuda.synchronize
                             * in each p2p batch and in the timers round forward and backward */
  gboolean tp_comm_blocks;  /* the host waits for each tp collective that is not overlapped */
  gboolean
      pp_scatter_gather; /* sequence is split over tp for the transfer, then gathered (Megatron) */
  double pp_elem_bytes;  /* bytes per activation element sent between stages */
  double host_kernel_us; /* host time to issue one kernel */
  double host_layer_fwd_us, host_layer_bwd_us; /* further host time per layer and micro-batch */
  double host_comm_us;                         /* further host time per collective call */
  double host_microbatch_us, host_step_us, host_chunk_us;
  double host_optimizer_us;    /* per step, fixed part of the optimizer on the host */
  gboolean cuda_graph;         /* host time per kernel vanishes */
  double data_step_us;         /* data loader stall per step */
  double framework_bytes;      /* CUDA context, NCCL, workspaces */
  double allocated_base_bytes; /* in the allocator beside the states: a batch of tokens, masks */
  double blas_handles;         /* workspaces of the size that the device profile says: PyTorch's */
  double blas_config_bytes;    /* size of one where CUBLAS_WORKSPACE_CONFIG sets it, else 0 */
  double te_workspaces;        /* … Transformer Engine's for one GEMM at a time */
  double grouped_gemm_streams; /* … and for those of experts that run side by side */
  gboolean attn_scores_kept;   /* unfused attention keeps a buffer of scores from step to step */
  double fragmentation;        /* share of the activations lost to the allocator */
  double reserved_share;       /* what it has reserved beyond the allocated peak, over that peak, in
                                * a run with room; it gives this back where memory is short */
  gboolean recompute_partitioned; /* kept inputs of recomputed layers are split over tp */
  double gemm_duty;               /* share of time in GEMMs that sets the clocks, 0..1 */
  double compute_scale; /* jitter and clock loss seen in long runs, factor >= 1 on GPU kernels */
  /* operator lists (graph.h) */
  gboolean bias_kernel;       /* bias of a linear map or convolution is a kernel of its own */
  gboolean fused_batch_norm;  /* with the ReLU and the residual add after it */
  gboolean no_grad_norm;      /* gradients are not clipped: no norm over them and all ranks */
  double activation_passes;   /* reads and writes of an unfused activation, forward */
  double norm_passes;         /* … of an unfused norm, forward */
  double dropout_extra_bytes; /* an element, beside input, output and mask of dropout, forward */
  double attention_copies;    /* of q, k, v and context: how many are copied to [head, position] */
  double amp_cast_bytes;      /* per parameter and micro-batch: casts of master weights */
  double conv_layout_passes;  /* over image in and out of each 16-bit convolution */
  double conv_layout_passes_tf32; /* … of each TF32 convolution */
  double half_bandwidth;   /* rate of memory-bound kernels on 16-bit elements over those on 32-bit:
                            * kernels without vector loads; 1: as the device profile */
  double conv_efficiency;  /* rate of an implicit-GEMM convolution over a GEMM */
  double batch_norm_reads; /* of the image: 2, statistics then normalisation; 1, kept on chip */
  double dp_rate_max_Bps;  /* bus rate of gradient reductions that a transport without NVLink or
                            * RDMA holds them to; 0: the fabric's */
  double dp_step_us;       /* exposed once a step with several ranks: negotiation, stragglers */
  double norm_collectives; /* small all-reduces that the norm of the gradients takes, one after
                            * another */
  double data_node_sample_us; /* input pipeline of images: a node's time a sample, all cores */
  double data_rank_sample_us; /* … a rank's, one process */
  /* experts; the numbers are 0 and 1 in profiles that do not train them */
  EpDispatch ep_dispatch;
  gboolean expert_tp_one;      /* experts are not divided by tp unless etp says so */
  gboolean ep_overlap;         /* all-to-all of one micro-batch beside compute of another */
  gboolean moe_shared_overlap; /* shared experts run beside the all-to-all */
  gboolean moe_fused_router, moe_fused_permute;
  double ep_overlap_slowdown;  /* factor on compute beside an all-to-all that takes SMs, >= 1 */
  double ep_nvlink_efficiency; /* deepep: of the node's all-to-all rate */
  double ep_net_efficiency;    /* deepep, hierarchical: of the NICs' line rate */
  double ep_base_us;           /* deepep: fixed time of a call (notify, layout) */
  double moe_imbalance;        /* load of the busiest expert rank over the mean, >= 1 */
  double moe_gemm_efficiency;  /* rate of grouped over batched GEMMs, <= 1 */
  double host_expert_us;       /* further host time for each local expert of a grouped GEMM */
  double host_pair_us;         /* further host time of a layer's overlapped forward and backward */
  double host_graph_share; /* with cuda_graph: share of host_layer_*_us that stays outside graphs */
  double host_arm_factor;  /* host times on nodes with ARM processors over those on x86 */
  gboolean
      attn_sinks_unfused;  /* fused kernels lack attention sinks: layers with them run unfused */
  double host_moe_sync_us; /* GPU idle time while the host reads the tokens per expert */
  /* 8- and 4-bit training */
  Fp8Recipe fp8_recipe;
  gboolean fp8_dispatch;     /* tokens travel to the experts in 8 bits (and back in 16) */
  gboolean fp8_param_gather; /* updated parameters are gathered in 8 bits */
  gboolean fp8_tp_gather;    /* sequence-parallel gathers move the quantised input */
} SoftwareProfile;

void software_init (SoftwareProfile *s);
void software_clear (SoftwareProfile *s);

#endif
