/* gpu_gemm: the tile and wave model of one (batched) GEMM.
 *
 * C[m,n] is cut into tiles Tm x Tn; SMs work on one tile each, so tiles go in waves. A tile costs
 *   2 Tm Tn (k/s + k0) / (rate of an SM),  rate = efficiency * peak / SMs / (1 + small (1/Tm +
 * 1/Tn)) where k0 is prologue and epilogue, the small-tile term is the operand traffic from L2
 * (proportional to the half perimeter of the tile), and s cuts k to fill the SMs. The library picks
 * tile and s; we take the fastest. The memory side moves every operand once. Both sides overlap
 * only in part: t = floor + (compute^4 + memory^4)^(1/4) which is their maximum, 19 % more where
 * they are equal. Only sqrt is used from libm, so that the result does not depend on the library's
 * version.
 */
#include "gpu_profile.h"

#include <math.h>

/* Index into align_factor: the largest power of two (2 .. 128 bytes) that divides the row lengths.
 */
static int
align_class (gint64 a, gint64 b, double elem_bytes)
{
  guint64 both = (guint64)a | (guint64)b;
  double bytes = elem_bytes;
  int c = 0;

  for (; (both & 1) == 0 && bytes < 128; both >>= 1)
    bytes *= 2;
  while (c + 1 < GEMM_N_ALIGN && bytes >= (double)(4 << c))
    c++;
  return c;
}

/* Rows that lie contiguous in memory: k and n in the forward (X W^T) and input-gradient layouts, m
 * and n where the weight gradient reads both operands across their rows. */
static double
align_factor (const GemmParams *p, const GemmShape *s)
{
  gint64 other = s->role == GEMM_WGRAD ? s->m : s->k;
  return p->align_factor[align_class (s->n, other, dtype_bytes (s->dtype))];
}

/* Burst rate while the part is cool, sustained when it is power limited: by the length of the
 * kernel itself (its FLOPs) and by how busy the part was before (duty). */
static double
efficiency (const GemmParams *p, double flops, double duty)
{
  double warm = flops / (flops + p->half_flops);
  double w = duty <= 1 ? 1 - (1 - warm) * (1 - duty) : duty;
  return p->burst_efficiency + w * (p->sustained_efficiency - p->burst_efficiency);
}

static double
gemm_bytes (const GemmShape *s)
{
  double m = (double)s->m, n = (double)s->n, k = (double)s->k;
  double elem = dtype_bytes (s->dtype);
  double out = elem < 2 ? 2 : elem; /* 8-bit and 4-bit operands give 16-bit results */

  if (s->bytes > 0)
    return s->bytes;
  if (s->accumulate)
    out = 8; /* fp32 read and written */
  return (double)s->batch * ((m * k + k * n) * elem + m * n * out);
}

/* Fastest tile and split; returns the compute time at efficiency 1. */
static double
best_tile (const GpuProfile *g, const GemmParams *p, const GemmShape *s, GemmPlan *plan)
{
  const GemmTile *tiles = g->tiles[s->dtype];
  double m = (double)s->m, n = (double)s->n, batch = (double)s->batch;
  double kq = ceil ((double)s->k / p->k_quantum) * p->k_quantum;
  double best = G_MAXDOUBLE, sms = g->sm_count;

  for (int i = 0; i < g->n_tiles; i++) {
    double n_tiles = ceil (m / tiles[i].tile_m) * ceil (n / tiles[i].tile_n) * batch;
    for (int j = 0; j < g->n_splits; j++) {
      double split = g->splits[j], x, waves, t;
      if (j > 0 && n_tiles * split > 2 * sms)
        break; /* the SMs are full already */
      x = n_tiles * split / sms;
      waves = ceil (x);
      if (x > 1)
        waves -= p->wave_smoothing * (waves - x);
      t = waves * tiles[i].step_s * (MAX (kq / split, p->k_quantum) + p->k0) +
          (j > 0 ? p->split_s : 0);
      if (t < best) {
        best = t;
        plan->tile = i;
        plan->split = j;
        plan->waves = waves;
      }
    }
  }
  return best;
}

void
gpu_gemm_formula (const GpuProfile *g, const GemmShape *s, double duty, GemmPlan *out)
{
  const GemmParams *p;
  double flops, c2, m2;

  g_assert (s->m >= 0 && s->n >= 0 && s->k >= 0 && s->batch >= 1);
  g_assert (s->dtype < DT_COUNT && duty >= 0 && duty <= GPU_MAX_DUTY);
  *out = (GemmPlan){.tile = -1, .split = -1, .table = 1};
  if (s->m == 0 || s->n == 0 || s->k == 0)
    return;
  p = &g->gemm_used[s->dtype];
  g_assert (p->present);
  flops = 2.0 * (double)s->m * (double)s->n * (double)s->k * (double)s->batch;
  out->bytes = gemm_bytes (s);
  out->efficiency = efficiency (p, flops, duty) * align_factor (p, s);
  out->compute_s = best_tile (g, p, s, out) * p->role_factor[s->role] / out->efficiency;
  out->memory_s = out->bytes / (p->memory_fraction * g->hbm_Bps);
  c2 = out->compute_s * out->compute_s;
  m2 = out->memory_s * out->memory_s;
  out->total_s = p->floor_s + sqrt (sqrt (c2 * c2 + m2 * m2));
}

void
gpu_gemm_plan (const GpuProfile *g, const GemmShape *s, double duty, GemmPlan *out)
{
  int node[8];
  double weight[8], ratio = 0;

  g_assert (g->ready);
  gpu_gemm_formula (g, s, duty, out);
  if (!g->has_table[s->dtype] || !gemm_table_around (s, node, weight))
    return;
  for (int c = 0; c < 8; c++)
    ratio += weight[c] * (double)g->table_ratio[s->dtype][node[c]];
  out->table = ratio;
  out->total_s *= ratio;
}

double
gpu_gemm_s (const GpuProfile *g, const GemmShape *s, double duty)
{
  GemmPlan plan;
  gpu_gemm_plan (g, s, duty, &plan);
  return plan.total_s;
}
