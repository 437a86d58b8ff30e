#include "maxmin_ref.h"

#include <math.h>

/* Level at which link l is full, given what is frozen; INFINITY when nothing rises on it. */
static double
link_level (const double *cap, guint32 l, const RefFlow *flow, guint n, const gboolean *frozen)
{
  double rem = cap[l], sum = 0;
  for (guint f = 0; f < n; f++)
    for (guint h = 0; flow[f].live && h < flow[f].n; h++) {
      if (flow[f].link[h] != l)
        continue;
      if (frozen[f])
        rem -= flow[f].coef[h] * flow[f].rate;
      else
        sum += flow[f].coef[h];
    }
  return sum > 0 ? MAX (0, rem) / sum : INFINITY;
}

void
maxmin_ref_solve (const double *cap, guint32 n_links, RefFlow *flow, guint n_flows)
{
  g_autofree gboolean *frozen = g_new0 (gboolean, n_flows + 1);
  for (;;) {
    double level = INFINITY;
    guint32 tight = G_MAXUINT32;
    gboolean any = FALSE;
    for (guint f = 0; f < n_flows; f++)
      if (flow[f].live && !frozen[f]) {
        any = TRUE;
        level = MIN (level, flow[f].cap);
      }
    if (!any)
      return;
    for (guint32 l = 0; l < n_links; l++) {
      double here = link_level (cap, l, flow, n_flows, frozen);
      if (here < level) {
        level = here;
        tight = l;
      }
    }
    for (guint f = 0; f < n_flows; f++) {
      gboolean hit = tight == G_MAXUINT32 && flow[f].cap <= level;
      for (guint h = 0; h < flow[f].n; h++)
        hit = hit || flow[f].link[h] == tight;
      if (!flow[f].live || frozen[f] || !hit)
        continue;
      flow[f].rate = level;
      frozen[f] = TRUE;
    }
  }
}
