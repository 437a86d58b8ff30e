/* gpu: life of a profile, its checks, and the memory-bound kernels. */
#include "gpu_profile.h"

#include <string.h>

const char *const attn_kernel_names[] = {"unfused", "flash1", "triton",   "flash2",
                                         "flash3",  "cudnn",  "xformers", "trtllm_mha",
                                         "trtllm",  "aiter",  "aiter16",  NULL};
const char *const memk_names[] = {"stream",      "elementwise", "norm_fwd", "norm_bwd",
                                  "softmax_fwd", "softmax_bwd", "xent",     "optimizer",
                                  "embedding",   NULL};
const double attn_dims[ATTN_N_DIMS] = {32, 64, 128, 256};

G_DEFINE_QUARK (clustersim - gpu - error - quark, gpu_error)

GpuProfile *
gpu_profile_new (const char *name)
{
  GpuProfile *g = g_new0 (GpuProfile, 1);
  g->name = g_strdup (name);
  return g;
}

void
gpu_profile_free (GpuProfile *g)
{
  if (g == NULL)
    return;
  g_free (g->name);
  g_strfreev (g->aliases);
  g_free (g);
}

/* Types whose GEMMs run on the same kernels, by rising cost of being wrong: a type without numbers
 * of its own takes those of the first kin that has them. The peak is always its own. */
static const DType kin[DT_COUNT][3] = {
    [DT_FP32] = {DT_TF32, DT_FP16, DT_BF16}, [DT_TF32] = {DT_BF16, DT_FP16, DT_FP32},
    [DT_FP16] = {DT_BF16, DT_FP32, DT_TF32}, [DT_BF16] = {DT_FP16, DT_FP32, DT_TF32},
    [DT_FP8] = {DT_MXFP8, DT_BF16, DT_FP16}, [DT_MXFP8] = {DT_FP8, DT_BF16, DT_FP16},
    [DT_FP4] = {DT_MXFP8, DT_FP8, DT_BF16},
};

static const GemmParams *
find_params (const GpuProfile *g, DType t)
{
  if (g->gemm[t].present)
    return &g->gemm[t];
  for (int i = 0; i < 3; i++)
    if (g->gemm[kin[t][i]].present)
      return &g->gemm[kin[t][i]];
  return NULL;
}

static gboolean
fail (const GpuProfile *g, GError **error, GpuError code, const char *what)
{
  g_set_error (error, GPU_ERROR, (int)code, "%s: %s", g->name, what);
  return FALSE;
}

static gboolean
check_gemm (const GpuProfile *g, const GemmParams *p, GError **error)
{
  if (p->floor_s <= 0 || p->half_flops <= 0 || p->memory_fraction <= 0 || p->k_quantum < 1)
    return fail (g, error, GPU_ERROR_MISSING,
                 "gemm: floor, half_flops, memory_fraction or k_quantum");
  if (p->burst_efficiency <= 0 || p->sustained_efficiency <= 0 ||
      p->sustained_efficiency > p->burst_efficiency)
    return fail (g, error, GPU_ERROR_RANGE, "gemm: need 0 < sustained <= burst efficiency");
  if (p->wave_smoothing < 0 || p->wave_smoothing > 1 || p->k0 < 0 || p->small_tile < 0 ||
      p->split_s < 0)
    return fail (g, error, GPU_ERROR_RANGE, "gemm: wave_smoothing, k0, small_tile or split");
  for (int i = 0; i < GEMM_N_ALIGN; i++)
    if (p->align_factor[i] <= 0)
      return fail (g, error, GPU_ERROR_MISSING, "gemm: align_factor");
  for (int i = 0; i < 3; i++)
    if (p->role_factor[i] <= 0)
      return fail (g, error, GPU_ERROR_MISSING, "gemm: role_factor");
  return TRUE;
}

static gboolean
check_attention (const GpuProfile *g, const AttnParams *p, GError **error)
{
  for (int pass = 0; pass < 2; pass++) {
    if (p->floor_s[pass] <= 0 || p->causal_factor[pass] <= 0 || p->kv0[pass] < 0)
      return fail (g, error, GPU_ERROR_MISSING, "attention: floor, causal_factor or kv0");
    for (int d = 0; d < ATTN_N_DIMS; d++)
      if (p->efficiency[pass][d] <= 0)
        return fail (g, error, GPU_ERROR_MISSING, "attention: efficiency");
  }
  if (p->block_q < 1 || p->dim_quantum < 1)
    return fail (g, error, GPU_ERROR_MISSING, "attention: block_q or dim_quantum");
  return TRUE;
}

static gboolean
check_device (const GpuProfile *g, GError **error)
{
  if (g->sm_count < 1 || g->hbm_Bps <= 0 || g->memory_bytes <= 0 || g->kernel_floor_s <= 0)
    return fail (g, error, GPU_ERROR_MISSING, "sm_count, memory bytes, bandwidth or kernel floor");
  if (g->scaleup_domain < 1)
    return fail (g, error, GPU_ERROR_MISSING, "scale-up domain");
  if (g->n_tiles < 1 || g->n_tiles > GEMM_MAX_TILES || g->n_splits < 1 ||
      g->n_splits > GEMM_MAX_SPLITS || g->splits[0] != 1)
    return fail (g, error, GPU_ERROR_RANGE, "tiles or splits");
  if (g->attn_sustained <= 0 || g->attn_sustained > 1)
    return fail (g, error, GPU_ERROR_RANGE, "attention: sustained factor is outside (0, 1]");
  for (int i = 0; i < MEMK_COUNT; i++)
    if (g->memk_fraction[i] <= 0)
      return fail (g, error, GPU_ERROR_MISSING, memk_names[i]);
  return TRUE;
}

gboolean
gpu_profile_prepare (GpuProfile *g, GError **error)
{
  if (!check_device (g, error))
    return FALSE;
  for (int t = 0; t < DT_COUNT; t++) {
    const GemmParams *p = find_params (g, (DType)t);
    if (p == NULL || g->peak_flops[t] <= 0) {
      g->gemm_used[t].present = FALSE;
      continue;
    }
    if (!check_gemm (g, p, error))
      return FALSE;
    g->gemm_used[t] = *p;
    if (p != &g->gemm[t] && !(t == DT_FP16 && p == &g->gemm[DT_BF16]) &&
        !(t == DT_BF16 && p == &g->gemm[DT_FP16])) /* times of another type say nothing of this */
      memset (g->gemm_used[t].table_s, 0, sizeof g->gemm_used[t].table_s);
    for (int i = 0; i < g->n_tiles; i++) {
      GemmTile *tile = &g->tiles[t][i];
      tile->tile_m = g->tile_m[i];
      tile->tile_n = g->tile_n[i];
      tile->step_s = 2 * tile->tile_m * tile->tile_n *
                     (1 + p->small_tile * (1 / tile->tile_m + 1 / tile->tile_n)) * g->sm_count /
                     g->peak_flops[t];
    }
    gemm_table_prepare (g, (DType)t);
  }
  for (int a = 0; a < ATTN_COUNT; a++)
    if (g->attn[a].present && !check_attention (g, &g->attn[a], error))
      return FALSE;
  g->ready = TRUE;
  return TRUE;
}

double
gpu_memory_s (const GpuProfile *g, MemKernel kind, double bytes)
{
  g_assert (kind < MEMK_COUNT && bytes >= 0);
  if (bytes == 0)
    return 0;
  return g->kernel_floor_s + bytes / (g->memk_fraction[kind] * g->hbm_Bps);
}

double
gpu_cast_fp8_s (const GpuProfile *g, double elements)
{
  double f = g->cast_fp8_fraction > 0 ? g->cast_fp8_fraction : g->memk_fraction[MEMK_ELEMENTWISE];

  g_assert (elements >= 0);
  return elements > 0 ? g->kernel_floor_s + 3 * elements / (f * g->hbm_Bps) : 0;
}

double
gpu_peak_flops (const GpuProfile *g, DType t)
{
  g_assert (t < DT_COUNT);
  return g->peak_flops[t];
}

gint64
gpu_capacity_bytes (const GpuProfile *g)
{
  return (gint64)g->memory_bytes;
}

const char *
gpu_name (const GpuProfile *g)
{
  return g->name;
}

double
gpu_kernel_floor_s (const GpuProfile *g)
{
  return g->kernel_floor_s;
}

double
gpu_launch_stream_s (const GpuProfile *g)
{
  return g->launch_stream_s;
}

double
gpu_nvlink_Bps (const GpuProfile *g)
{
  return g->nvlink_Bps;
}

int
gpu_scaleup_domain (const GpuProfile *g)
{
  return g->scaleup_domain;
}

double
gpu_tdp_w (const GpuProfile *g)
{
  return g->tdp_w;
}

double
gpu_sm_count (const GpuProfile *g)
{
  return g->sm_count;
}
