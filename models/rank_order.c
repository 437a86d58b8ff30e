#include "rank_order.h"

#include <string.h>

#include "spec.h"

static const char *const names[] = {"tp", "cp", "dp", "pp"};

static gboolean
wrong (GError **error, const char *text, const char *what)
{
  g_set_error (
      error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT,
      "rank order \"%.60s\": %s (allowed: tp, cp, dp and pp in any order, innermost first, "
      "such as %s)",
      text, what, RANK_ORDER_DEFAULT);
  return FALSE;
}

gboolean
rank_order_parse (const char *text, RankDim dims[DIM_COUNT], GError **error)
{
  const char *order = text != NULL ? text : RANK_ORDER_DEFAULT;
  g_auto (GStrv) parts = g_strsplit (order, "-", -1);
  gboolean seen[DIM_COUNT] = {FALSE}, ep = FALSE;
  guint n = 0;
  for (gsize i = 0; parts[i] != NULL; i++) {
    guint d = 0;
    while (d < DIM_COUNT && strcmp (parts[i], names[d]) != 0)
      d++;
    if (d == DIM_COUNT && strcmp (parts[i], "ep") == 0 && !ep) {
      ep = TRUE;
      continue;
    }
    if (d == DIM_COUNT)
      return wrong (error, order, "a name that is no dimension, or ep twice");
    if (seen[d])
      return wrong (error, order, "a dimension twice");
    seen[d] = TRUE;
    dims[n++] = (RankDim)d;
  }
  return n == DIM_COUNT || wrong (error, order, "a dimension is missing");
}

void
rank_order_strides (const char *text, const gint64 size[DIM_COUNT], gint64 stride[DIM_COUNT])
{
  RankDim dims[DIM_COUNT];
  gint64 next = 1;
  gboolean ok = rank_order_parse (text, dims, NULL);
  g_assert (ok);
  for (guint i = 0; i < DIM_COUNT; i++) {
    stride[dims[i]] = next;
    next *= size[dims[i]];
  }
}
