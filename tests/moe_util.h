/* moe_util: kernels of a pass, summed by what they are. */
#ifndef CLUSTERSIM_TESTS_MOE_UTIL_H
#define CLUSTERSIM_TESTS_MOE_UTIL_H

#include <math.h>
#include <string.h>

#include "layer_emit.h"
#include "scenario.h"

typedef struct {
  double flops, time_s, bytes; /* of all kernels whose name starts with the prefix */
  guint n;
} UtSum;

static inline UtSum
ut_sum (const Spec *s, gint64 layer, LayerPass pass, const char *prefix, gboolean comm)
{
  Pricing p;
  UtSum sum = {0};
  pricing_init (&p, s);
  g_autoptr (GArray) rows = g_array_new (FALSE, FALSE, sizeof (KernelRow));
  layer_pass_kernels (&p, layer, pass, rows);
  for (guint i = 0; i < rows->len; i++) {
    const KernelRow *k = &g_array_index (rows, KernelRow, i);
    if (k->comm != comm || !g_str_has_prefix (k->name, prefix))
      continue;
    sum.flops += k->flops;
    sum.time_s += k->time_s;
    sum.bytes += k->bytes;
    sum.n++;
  }
  return sum;
}

static inline double
ut_layer_s (const Spec *s, gint64 layer, LayerPass pass)
{
  Pricing p;
  PassCost c;
  pricing_init (&p, s);
  layer_pass_cost (&p, layer, pass, &c);
  return sim_time_to_s (c.total, SIM_TICKS_PS);
}

static inline void
ut_load (Spec *s, const char *name)
{
  g_autoptr (GError) error = NULL;
  if (!scenario_load (name, NULL, s, &error))
    g_error ("%s", error->message);
}

static inline void
ut_near (double a, double b, double rel)
{
  if (!(fabs (a - b) <= rel * fabs (b)))
    g_error ("%.17g is not %.17g within %g", a, b, rel);
}

#endif
