/* fit_table: a table of GEMM times for a profile, out of samples that the formula was fitted to.
 *
 * What the formula leaves of each sample, ln (measured / formula), is spread over the eight nodes
 * round its shape by their weights (models/gpu_table.c) and averaged there; what that leaves is
 * spread again, a few times, so that interpolating the nodes gives the samples back as well as a
 * grid so coarse can. A node with little weight stays near the formula. Small GEMMs are left to the
 * formula: their times are floors and launches.
 */
#include "fit_device.h"

#include <math.h>
#include <string.h>

enum { FEWEST_SAMPLES = 200, ROUNDS = 6 };
static const double smallest_flops = 2e9, fewest_weight = 1, shrink_weight = 1;

typedef struct {
  int node[8];
  double weight[8], left;
} Spread;

/* ln (measured / formula) of the GEMM alone; a cast that was timed with it is taken off. */
static gboolean
left_over (const GpuProfile *g, const Sample *s, double *left)
{
  GemmPlan plan;
  const GemmShape *shape = &s->gemm.shape;
  double cast = s->gemm.with_cast ? gpu_cast_fp8_s (g, (double)shape->m * (double)shape->k) : 0;
  gpu_gemm_formula (g, shape, s->gemm.duty, &plan);
  if (2.0 * (double)shape->m * (double)shape->n * (double)shape->k < smallest_flops)
    return FALSE;
  *left = log (MAX (s->time_s - cast, 0.3 * plan.total_s) / plan.total_s);
  return TRUE;
}

void
fit_gemm_table (GpuProfile *g, DType dtype, const Sample *const *samples, guint n)
{
  g_autofree Spread *spread = g_new0 (Spread, MAX (n, 1));
  g_autofree double *value = g_new0 (double, GEMM_TABLE_NODES);
  g_autofree double *sum = g_new0 (double, GEMM_TABLE_NODES);
  g_autofree double *weight = g_new0 (double, GEMM_TABLE_NODES);
  guint used = 0;
  memset (g->gemm[dtype].table_s, 0, sizeof g->gemm[dtype].table_s);
  for (guint i = 0; i < n; i++)
    if (samples[i]->gemm.duty < 0.5 && samples[i]->gemm.shape.role == GEMM_FORWARD &&
        gemm_table_around (&samples[i]->gemm.shape, spread[used].node, spread[used].weight) &&
        left_over (g, samples[i], &spread[used].left))
      used++;
  if (used < FEWEST_SAMPLES)
    return;
  for (int round = 0; round < ROUNDS; round++) {
    memset (sum, 0, GEMM_TABLE_NODES * sizeof *sum);
    memset (weight, 0, GEMM_TABLE_NODES * sizeof *weight);
    for (guint i = 0; i < used; i++) {
      double has = 0;
      for (int c = 0; c < 8; c++)
        has += spread[i].weight[c] * value[spread[i].node[c]];
      for (int c = 0; c < 8; c++) {
        sum[spread[i].node[c]] += spread[i].weight[c] * (spread[i].left - has);
        weight[spread[i].node[c]] += spread[i].weight[c];
      }
    }
    for (int j = 0; j < GEMM_TABLE_NODES; j++)
      value[j] += sum[j] / (weight[j] + shrink_weight);
  }
  for (int j = 0; j < GEMM_TABLE_NODES; j++) {
    GemmShape s = {.dtype = dtype, .role = GEMM_FORWARD};
    GemmPlan plan;
    if (weight[j] < fewest_weight)
      continue;
    gemm_table_shape (j, &s);
    gpu_gemm_formula (g, &s, 0, &plan);
    g->gemm[dtype].table_s[j] = (float)(plan.total_s * exp (value[j]));
  }
}
