/* Layouts in their order; see validate_all.h. */
#include "validate_all.h"

#include <string.h>

#define LEAST_ROWS 5
#define TOP        3

typedef struct {
  double measured, predicted; /* speed: the more the faster */
} Layout;

static const char *const same[] = {"source_title", "num_layers", "hidden", "heads",
                                   "ffn_hidden",   "seq_len",    "vocab",  "moe_experts",
                                   "num_gpus",     "gpu",        "gbs",    "precision"};

static char *
group_of (const CsvTable *t, guint row)
{
  g_autoptr (GString) key = g_string_new (NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (same); i++)
    g_string_append_printf (key, "%s\n", csv_cell (t, row, csv_col (t, same[i])));
  return g_strdup (key->str);
}

/* Pairs in the same order less pairs in the other, over pairs that the measurement orders. */
static double
tau (const GArray *a)
{
  double sum = 0, pairs = 0;
  for (guint i = 0; i < a->len; i++)
    for (guint k = i + 1; k < a->len; k++) {
      const Layout *x = &g_array_index (a, Layout, i), *y = &g_array_index (a, Layout, k);
      const double d = x->measured - y->measured, p = x->predicted - y->predicted;
      if (d == 0)
        continue;
      pairs++;
      sum += d * p > 0 ? 1 : d * p < 0 ? -1 : 0;
    }
  return pairs > 0 ? sum / pairs : 1;
}

static gboolean
fastest_in_top (const GArray *a)
{
  guint best = 0, before = 0;
  for (guint i = 1; i < a->len; i++)
    if (g_array_index (a, Layout, i).measured > g_array_index (a, Layout, best).measured)
      best = i;
  for (guint i = 0; i < a->len; i++)
    before +=
        g_array_index (a, Layout, i).predicted > g_array_index (a, Layout, best).predicted ? 1 : 0;
  return before < TOP;
}

void
layouts_ranked (const CsvTable *t, const ValidateResult *r, double *mean_tau, double *in_top,
                guint *groups)
{
  g_autoptr (GHashTable) rows = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) index = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GPtrArray) lists = g_ptr_array_new_with_free_func ((GDestroyNotify)g_array_unref);
  const int id_col = csv_col (t, "id");
  for (guint i = 0; i < csv_n_rows (t); i++)
    g_hash_table_insert (rows, (gpointer)csv_cell (t, i, id_col), GUINT_TO_POINTER (i + 1));
  for (guint i = 0; i < r->rows->len; i++) {
    const RowResult *row = &g_array_index (r->rows, RowResult, i);
    const guint at = GPOINTER_TO_UINT (g_hash_table_lookup (rows, row->id));
    if (row->status == ROW_SKIPPED || at == 0)
      continue;
    g_autofree char *key = group_of (t, at - 1);
    GArray *list = g_hash_table_lookup (index, key);
    if (list == NULL) {
      list = g_array_new (FALSE, FALSE, sizeof (Layout));
      g_ptr_array_add (lists, list);
      g_hash_table_insert (index, g_steal_pointer (&key), list);
    }
    const double sign = strcmp (row->metric, "step_time_s") == 0 ? -1 : 1;
    const Layout l = {sign * row->published, sign * row->predicted};
    g_array_append_val (list, l);
  }
  *mean_tau = *in_top = 0;
  *groups = 0;
  for (guint i = 0; i < lists->len; i++) {
    const GArray *list = g_ptr_array_index (lists, i);
    if (list->len < LEAST_ROWS)
      continue;
    ++*groups;
    *mean_tau += tau (list);
    *in_top += fastest_in_top (list) ? 1 : 0;
  }
  if (*groups > 0) {
    *mean_tau /= *groups;
    *in_top /= *groups;
  }
}
