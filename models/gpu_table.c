/* gpu_table: measured GEMM times where there are some, the formula of gpu_gemm.c elsewhere.
 *
 * A table has times at nodes m, n, k = 4^i. What is interpolated between the eight nodes round a
 * shape is the ratio of measured time to the formula's at the node, which varies little, not the
 * time; a node without measurements has ratio 1, so that the formula takes over where the table
 * ends. The place between two nodes is sqrt (x / lower) - 1, near the logarithm but made of sqrt
 * alone, as all of the model is. Duty does not change the ratio.
 */
#include "gpu_profile.h"

#include <math.h>

/* Index of the lower node and the place above it, 0 to 1. */
static int
place (gint64 x, double *above)
{
  double lower = 1;
  int i = 0;

  while (i + 1 < GEMM_TABLE_SIDE && (double)x >= lower * 4) {
    lower *= 4;
    i++;
  }
  *above = i + 1 < GEMM_TABLE_SIDE ? sqrt ((double)x / lower) - 1 : 0;
  return i;
}

gboolean
gemm_table_around (const GemmShape *s, int node[8], double weight[8])
{
  double fm, fn, fk;
  int im, in, ik;

  if (s->batch != 1 || s->m < 1 || s->n < 1 || s->k < 1)
    return FALSE;
  im = place (s->m, &fm);
  in = place (s->n, &fn);
  ik = place (s->k, &fk);
  for (int c = 0; c < 8; c++) {
    int a = MIN (im + (c & 1), GEMM_TABLE_SIDE - 1),
        b = MIN (in + (c >> 1 & 1), GEMM_TABLE_SIDE - 1),
        d = MIN (ik + (c >> 2), GEMM_TABLE_SIDE - 1);
    node[c] = (a * GEMM_TABLE_SIDE + b) * GEMM_TABLE_SIDE + d;
    weight[c] = ((c & 1) ? fm : 1 - fm) * ((c >> 1 & 1) ? fn : 1 - fn) * ((c >> 2) ? fk : 1 - fk);
  }
  return TRUE;
}

void
gemm_table_shape (int node, GemmShape *s)
{
  g_assert (node >= 0 && node < GEMM_TABLE_NODES);
  s->k = (gint64)1 << 2 * (node % GEMM_TABLE_SIDE);
  s->n = (gint64)1 << 2 * (node / GEMM_TABLE_SIDE % GEMM_TABLE_SIDE);
  s->m = (gint64)1 << 2 * (node / GEMM_TABLE_SIDE / GEMM_TABLE_SIDE);
  s->batch = 1;
}

void
gemm_table_prepare (GpuProfile *g, DType t)
{
  const GemmParams *p = &g->gemm_used[t];

  g->has_table[t] = FALSE;
  for (int i = 0; i < GEMM_TABLE_NODES; i++) {
    GemmShape s = {.dtype = t, .role = GEMM_FORWARD};
    GemmPlan plan;
    g->table_ratio[t][i] = 1;
    if (!(p->table_s[i] > 0))
      continue;
    gemm_table_shape (i, &s);
    gpu_gemm_formula (g, &s, 0, &plan);
    g->table_ratio[t][i] = (float)((double)p->table_s[i] / plan.total_s);
    g->has_table[t] = TRUE;
  }
}
