/* gpu: a device profile and the time of one kernel on it.
 *
 * All times are seconds of GPU time for one kernel (or one fused group), without the host's
 * dispatch, which software.h owns. Profiles are data: scenarios/hw/<name>.json, every number with
 * its source.
 *
 * GEMM (facts: tile/wave model): C[m,n] = A[m,k] B[k,n], batch times.
 *   t = floor + max over {compute, memory}, compute = waves * 2 Tm Tn (k/s + k0) / rate_per_SM, the
 *   minimum over the tiles and split-k of the profile; memory = bytes / (fraction * HBM bandwidth).
 *   rate falls from burst to sustained efficiency with the FLOPs of a kernel on power-limited
 * parts.
 */
#ifndef CLUSTERSIM_GPU_H
#define CLUSTERSIM_GPU_H

#include "types.h"

typedef enum {
  ATTN_UNFUSED,
  ATTN_FLASH1,
  ATTN_TRITON,
  ATTN_FLASH2,
  ATTN_FLASH3,
  ATTN_CUDNN,
  ATTN_XFORMERS,   /* memory-efficient attention of xformers, 2022-23 */
  ATTN_TRTLLM_MHA, /* TensorRT-LLM's fused kernel alone, forward */
  ATTN_TRTLLM,     /* its context operator, which also rotates and stores keys and values */
  ATTN_AITER,      /* AMD assembly kernels; backward sums dq in fp32 */
  ATTN_AITER16,    /* the same, backward sums dq in 16 bit */
  ATTN_COUNT
} AttnKernel;
extern const char *const attn_kernel_names[]; /* "unfused", "flash1" … */

typedef enum { PASS_FORWARD, PASS_BACKWARD } Pass;

/* Classes of memory-bound kernels; each has a fraction of HBM bandwidth in the profile. */
typedef enum {
  MEMK_STREAM,      /* large copies, adds, casts: the best a kernel reaches */
  MEMK_ELEMENTWISE, /* bias+gelu, dropout+add, swiglu, rope */
  MEMK_NORM_FWD,
  MEMK_NORM_BWD,
  MEMK_SOFTMAX_FWD, /* fused scale-mask-softmax of unfused attention */
  MEMK_SOFTMAX_BWD,
  MEMK_XENT,      /* cross entropy over the vocabulary */
  MEMK_OPTIMIZER, /* multi-tensor Adam */
  MEMK_EMBEDDING, /* gather and scatter-add of table rows */
  MEMK_COUNT
} MemKernel;
extern const char *const memk_names[];

typedef enum { GEMM_FORWARD, GEMM_DGRAD, GEMM_WGRAD } GemmRole;

typedef struct {
  gint64 m, n, k, batch; /* batch >= 1: strided batched GEMM */
  DType dtype;           /* of the operands */
  GemmRole role;
  gboolean
      accumulate; /* output is read, added to and written as fp32 (fused gradient accumulation) */
  double bytes;   /* memory traffic where it is not that of the operands (implicit GEMM); 0: is */
} GemmShape;

typedef struct {
  gint64 batch, heads, kv_heads, seq_q, seq_kv;
  gint64 head_dim_qk, head_dim_v;
  gint64 window; /* sliding window, 0 none */
  gboolean causal;
  DType dtype;
  Pass pass;
} AttnShape;

typedef struct GpuProfile GpuProfile; /* see gpu_profile.h for the fields */

/* Time of one GEMM. duty: 0 = isolated (burst clocks), 1 = back to back as kernel tables measure it
 * (milliseconds: sustained clocks); above 1 the same fall is drawn on, since a part that is power
 * limited in a test of milliseconds is more so in hours of training, when links and memory draw
 * power beside the tensor cores. */
#define GPU_MAX_DUTY 4.0
double gpu_gemm_s (const GpuProfile *g, const GemmShape *s, double duty);

/* Flash-like fused attention of the given kernel; not for ATTN_UNFUSED, which is made of batched
 * GEMMs and softmax kernels by the caller. FLOPs: 2 b h s_q s_kv (d_qk + d_v) forward, (3 d_qk + 2
 * d_v) in place of (d_qk + d_v) backward (2.5 times when they are equal), halved when causal. A
 * kernel that the profile lacks is replaced as gpu_attention_kernel (gpu_profile.h) says. Both
 * functions need gpu_peak_flops > 0 for the type (fp8 attention falls back to 16 bit). */
double gpu_attention_s (const GpuProfile *g, AttnKernel kernel, const AttnShape *s, double duty);

/* A memory-bound kernel that moves bytes (read + written). */
double gpu_memory_s (const GpuProfile *g, MemKernel kind, double bytes);

double gpu_peak_flops (const GpuProfile *g,
                       DType t); /* dense, per second; 0 if the part lacks it */
gint64 gpu_capacity_bytes (const GpuProfile *g);
const char *gpu_name (const GpuProfile *g);

#endif
