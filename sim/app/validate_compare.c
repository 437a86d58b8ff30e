#include "validate_compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A row that was predicted, and its place in the table. */
typedef struct {
  const RowResult *r;
  guint row;
} Item;

static GArray *
items_of (const CsvTable *t, const ValidateResult *r, gboolean skipped_too)
{
  g_autoptr (GHashTable) rows = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  int id_col = csv_col (t, "id");
  for (guint i = 0; i < csv_n_rows (t); i++) {
    const char *id = csv_cell (t, i, id_col);
    g_hash_table_insert (rows, *id != '\0' ? g_strdup (id) : g_strdup_printf ("%u", i + 1),
                         GUINT_TO_POINTER (i + 1));
  }
  GArray *items = g_array_new (FALSE, FALSE, sizeof (Item));
  for (guint i = 0; i < r->rows->len; i++) {
    const RowResult *x = &g_array_index (r->rows, RowResult, i);
    guint row = GPOINTER_TO_UINT (g_hash_table_lookup (rows, x->id));
    Item it = {x, row - 1};
    if (row > 0 && (skipped_too || x->status != ROW_SKIPPED))
      g_array_append_val (items, it);
  }
  return items;
}

static const char *
cell (const CsvTable *t, guint row, const char *column)
{
  return csv_cell (t, row, csv_col (t, column));
}

static char *
key_of (const CsvTable *t, const Item *it, const char *const *columns)
{
  GString *key = g_string_new (it->r->metric);
  for (gsize i = 0; columns[i] != NULL; i++)
    g_string_append_printf (key, "\x1f%s", cell (t, it->row, columns[i]));
  return g_string_free (key, FALSE);
}

/* ---- ranks ---- */

/* A layout is fast when its time is short or its rate high. */
static double
slowness (const RowResult *r, double value)
{
  return strcmp (r->metric, "step_time_s") == 0 ? value : 1.0 / value;
}

static double
kendall_tau_b (const GArray *items)
{
  double up = 0, down = 0, tied_a = 0, tied_b = 0;
  for (guint i = 0; i < items->len; i++)
    for (guint k = 0; k < i; k++) {
      const RowResult *a = g_array_index (items, Item, i).r, *b = g_array_index (items, Item, k).r;
      double x = slowness (a, a->published) - slowness (b, b->published);
      double y = slowness (a, a->predicted) - slowness (b, b->predicted);
      tied_a += x == 0;
      tied_b += y == 0;
      up += x * y > 0;
      down += x * y < 0;
    }
  double pairs = (double)items->len * (items->len - 1) / 2;
  double norm = sqrt ((pairs - tied_a) * (pairs - tied_b));
  return norm > 0 ? (up - down) / norm : 0;
}

static guint
place_of_fastest (const GArray *items)
{
  const RowResult *best = NULL;
  guint place = 1;
  for (guint i = 0; i < items->len; i++) {
    const RowResult *x = g_array_index (items, Item, i).r;
    if (best == NULL || slowness (x, x->published) < slowness (best, best->published))
      best = x;
  }
  for (guint i = 0; i < items->len; i++) {
    const RowResult *x = g_array_index (items, Item, i).r;
    place += slowness (x, x->predicted) < slowness (best, best->predicted);
  }
  return place;
}

/* Settings of a layout; rows that share them are one layout measured again, or told apart in prose.
 */
static guint
n_layouts (const CsvTable *t, const GArray *items)
{
  static const char *const columns[] = {"tp",           "pp",       "cp",       "dp",
                                        "ep",           "vp",       "mbs",      "recompute",
                                        "seq_parallel", "sharding", "schedule", NULL};
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < items->len; i++)
    g_hash_table_add (seen, key_of (t, &g_array_index (items, Item, i), columns));
  return g_hash_table_size (seen);
}

static void
rank_clear (gpointer p)
{
  g_free (((RankGroup *)p)->name);
}

static void
add_rank (const CsvTable *t, const GArray *items, GArray *out)
{
  const Item *first = &g_array_index (items, Item, 0);
  RankGroup g = {
      .name = g_strdup_printf ("%s: %s (%s layers, hidden %s), %s x %s, batch %s",
                               cell (t, first->row, "source_title"), cell (t, first->row, "model"),
                               cell (t, first->row, "num_layers"), cell (t, first->row, "hidden"),
                               cell (t, first->row, "num_gpus"), cell (t, first->row, "gpu"),
                               cell (t, first->row, "gbs")),
      .n = items->len,
      .tau = kendall_tau_b (items),
      .place = place_of_fastest (items)};
  g_array_append_val (out, g);
}

GArray *
validate_ranks (const CsvTable *t, const ValidateResult *r)
{
  static const char *const columns[] = {"source_title", "gpu",         "num_gpus",   "interconnect",
                                        "num_layers",   "hidden",      "ffn_hidden", "heads",
                                        "kv_heads",     "moe_experts", "vocab",      "seq_len",
                                        "gbs",          "precision",   NULL};
  g_autoptr (GArray) items = items_of (t, r, FALSE);
  g_autoptr (GHashTable) by_key =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
  g_autoptr (GPtrArray) order = g_ptr_array_new (); /* groups, as they first appear */
  for (guint i = 0; i < items->len; i++) {
    const Item *it = &g_array_index (items, Item, i);
    char *key = key_of (t, it, columns);
    GArray *group = g_hash_table_lookup (by_key, key);
    if (group == NULL) {
      group = g_array_new (FALSE, FALSE, sizeof (Item));
      g_hash_table_insert (by_key, key, group);
      g_ptr_array_add (order, group);
    } else {
      g_free (key);
    }
    g_array_append_val (group, *it);
  }
  GArray *out = g_array_new (FALSE, FALSE, sizeof (RankGroup));
  g_array_set_clear_func (out, rank_clear);
  for (guint i = 0; i < order->len; i++) {
    const GArray *group = g_ptr_array_index (order, i);
    if (n_layouts (t, group) >= RANK_ROWS_MIN)
      add_rank (t, group, out);
  }
  return out;
}

RankSummary
validate_ranks_summary (const GArray *ranks)
{
  RankSummary s = {0};
  for (guint i = 0; i < ranks->len; i++) {
    const RankGroup *g = &g_array_index (ranks, RankGroup, i);
    s.mean_tau += g->tau / ranks->len;
    s.in_top += g->place <= RANK_TOP ? 1 : 0;
  }
  return s;
}

/* ---- pairs ---- */

/* What must be the same in both rows of any pair. */
static const char *const same_run[] = {
    "source_title", "framework",  "year",      "gpu",         "gpus_per_node", "num_gpus",
    "interconnect", "num_layers", "hidden",    "ffn_hidden",  "heads",         "kv_heads",
    "vocab",        "seq_len",    "gated_mlp", "moe_experts", "moe_topk",      "moe_ffn_hidden",
    "gbs",          "trainable",  NULL};

/* The settings; a pair differs in the columns of one of them alone. */
static const struct {
  const char *kind;
  const char *columns[6];
} settings[] = {
    {"layout (tp, pp, cp, dp, ep)", {"tp", "pp", "cp", "dp", "ep", NULL}},
    {"micro-batch", {"mbs", NULL}},
    {"interleaving", {"vp", NULL}},
    {"schedule", {"schedule", NULL}},
    {"recompute", {"recompute", NULL}},
    {"sequence parallelism", {"seq_parallel", NULL}},
    {"sharding", {"sharding", NULL}},
    {"precision", {"precision", NULL}},
    {"overlap and other settings of the comments", {"comments", NULL}},
};

/* Index of the only setting that differs; -1 when none or several do. Comments are prose: they
 * count only where nothing else differs. */
static int
setting_that_differs (const CsvTable *t, guint a, guint b)
{
  int found = -1;
  for (gsize i = 0; i < G_N_ELEMENTS (settings); i++) {
    gboolean same = TRUE;
    for (gsize k = 0; settings[i].columns[k] != NULL; k++)
      same = same &&
             strcmp (cell (t, a, settings[i].columns[k]), cell (t, b, settings[i].columns[k])) == 0;
    if (same || (i + 1 == G_N_ELEMENTS (settings) && found >= 0))
      continue;
    if (found >= 0)
      return -1;
    found = (int)i;
  }
  return found;
}

/* TP against PP has its own name. */
static const char *
kind_name (const CsvTable *t, guint a, guint b, int setting)
{
  gboolean tp = strcmp (cell (t, a, "tp"), cell (t, b, "tp")) != 0;
  gboolean pp = strcmp (cell (t, a, "pp"), cell (t, b, "pp")) != 0;
  gboolean dp = strcmp (cell (t, a, "dp"), cell (t, b, "dp")) != 0;
  gboolean rest = strcmp (cell (t, a, "cp"), cell (t, b, "cp")) != 0 ||
                  strcmp (cell (t, a, "ep"), cell (t, b, "ep")) != 0;
  if (setting != 0)
    return settings[setting].kind;
  if (rest)
    return "cp or ep against the others";
  return tp && pp && !dp ? "tp against pp"
         : tp && pp      ? "tp, pp and dp"
         : tp            ? "tp against dp"
                         : "pp against dp";
}

static void
add_pairs (const CsvTable *t, const GArray *group, GArray *out)
{
  for (guint i = 0; i < group->len; i++)
    for (guint k = i + 1; k < group->len; k++) {
      const Item *a = &g_array_index (group, Item, i), *b = &g_array_index (group, Item, k);
      int setting = setting_that_differs (t, a->row, b->row);
      if (setting < 0)
        continue;
      RowPair p = {.a = a->r,
                   .b = b->r,
                   .published_pct = 100 * (b->r->published / a->r->published - 1),
                   .predicted_pct = 100 * (b->r->predicted / a->r->predicted - 1)};
      if (fabs (p.published_pct) <= PAIR_MIN_PCT)
        continue;
      p.kind = kind_name (t, a->row, b->row, setting);
      p.right = p.published_pct * p.predicted_pct > 0;
      g_array_append_val (out, p);
    }
}

GArray *
validate_pairs (const CsvTable *t, const ValidateResult *r)
{
  g_autoptr (GArray) items = items_of (t, r, FALSE);
  g_autoptr (GHashTable) by_key =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
  g_autoptr (GPtrArray) order = g_ptr_array_new ();
  for (guint i = 0; i < items->len; i++) {
    const Item *it = &g_array_index (items, Item, i);
    g_autofree char *key = key_of (t, it, same_run);
    GArray *group = g_hash_table_lookup (by_key, key);
    if (group == NULL) {
      group = g_array_new (FALSE, FALSE, sizeof (Item));
      g_hash_table_insert (by_key, g_steal_pointer (&key), group);
      g_ptr_array_add (order, group);
    }
    g_array_append_val (group, *it);
  }
  GArray *out = g_array_new (FALSE, FALSE, sizeof (RowPair));
  for (guint i = 0; i < order->len; i++)
    add_pairs (t, g_ptr_array_index (order, i), out);
  return out;
}

/* ---- features ---- */

static gboolean
above_one (const CsvTable *t, guint row, const char *column)
{
  return g_ascii_strtod (cell (t, row, column), NULL) > 1;
}

static gboolean
sharded (const CsvTable *t, guint row, const char *how)
{
  return strstr (cell (t, row, "sharding"), how) != NULL;
}

static const char *const feature_names[] = {"experts (MoE)",
                                            "expert parallelism",
                                            "context parallelism",
                                            "FSDP, HSDP",
                                            "ZeRO 1",
                                            "ZeRO 2 and 3",
                                            "tensor parallelism",
                                            "pipeline",
                                            "interleaved pipeline",
                                            "8 bits and fewer"};

static gboolean
has_feature (const CsvTable *t, guint row, guint f)
{
  const char *precision = cell (t, row, "precision");
  const gboolean has[] = {*cell (t, row, "moe_experts") != '\0',
                          above_one (t, row, "ep"),
                          above_one (t, row, "cp"),
                          sharded (t, row, "fsdp") || sharded (t, row, "hsdp"),
                          sharded (t, row, "zero1"),
                          sharded (t, row, "zero2") || sharded (t, row, "zero3"),
                          above_one (t, row, "tp"),
                          above_one (t, row, "pp"),
                          above_one (t, row, "vp"),
                          strstr (precision, "8") != NULL || strstr (precision, "FP4") != NULL ||
                              strstr (precision, "fp4") != NULL};
  return has[f];
}

static int
by_size (gconstpointer a, gconstpointer b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double
quantile_of (const GArray *sorted, double q)
{
  if (sorted->len == 0)
    return 0;
  double pos = q * (sorted->len - 1), frac = pos - floor (pos);
  guint i = (guint)pos, next = MIN (i + 1, sorted->len - 1);
  return g_array_index (sorted, double, i) * (1 - frac) +
         g_array_index (sorted, double, next) * frac;
}

GArray *
validate_features (const CsvTable *t, const ValidateResult *r)
{
  g_autoptr (GArray) items = items_of (t, r, TRUE);
  GArray *out = g_array_new (FALSE, FALSE, sizeof (FeatureErrors));
  for (guint f = 0; f < G_N_ELEMENTS (feature_names); f++) {
    FeatureErrors e = {.feature = feature_names[f]};
    g_autoptr (GArray) errors = g_array_new (FALSE, FALSE, sizeof (double));
    for (guint i = 0; i < items->len; i++) {
      const Item *it = &g_array_index (items, Item, i);
      if (!has_feature (t, it->row, f))
        continue;
      if (it->r->status == ROW_SKIPPED) {
        e.skipped++;
        continue;
      }
      double abs_pct = fabs (it->r->error_pct);
      e.mean_pct += it->r->error_pct;
      g_array_append_val (errors, abs_pct);
    }
    g_array_sort (errors, by_size);
    e.n = errors->len;
    e.mean_pct = e.n > 0 ? e.mean_pct / e.n : 0;
    e.median_pct = quantile_of (errors, 0.5);
    e.p90_pct = quantile_of (errors, 0.9);
    if (e.n + e.skipped > 0)
      g_array_append_val (out, e);
  }
  return out;
}

/* ---- printing ---- */

void
validate_ranks_print (const GArray *ranks, gboolean json, GString *out)
{
  const RankSummary all = validate_ranks_summary (ranks);
  g_autoptr (JsonWriter) w = json ? json_writer_new (out, 1) : NULL;
  if (json) {
    jw_begin_object (w, NULL);
    jw_begin_array (w, "ranks");
  } else {
    g_string_append (out, "    n     tau   place of the fastest   group\n");
  }
  for (guint i = 0; i < ranks->len; i++) {
    const RankGroup *g = &g_array_index (ranks, RankGroup, i);
    if (json) {
      jw_begin_object (w, NULL);
      jw_string (w, "group", g->name);
      jw_int (w, "n", g->n);
      jw_double (w, "tau", g->tau);
      jw_int (w, "place_of_fastest", g->place);
      jw_end_object (w);
    } else {
      g_string_append_printf (out, "%5u %+7.3f   %5u                  %.100s\n", g->n, g->tau,
                              g->place, g->name);
    }
  }
  if (json) {
    jw_end_array (w);
    jw_double (w, "mean_tau", all.mean_tau);
    jw_int (w, "groups", ranks->len);
    jw_int (w, "fastest_in_top_3", all.in_top);
    jw_end_object (w);
    g_string_append_c (out, '\n');
  } else {
    g_string_append_printf (out, "mean tau %.3f of %u groups; the fastest is in the top %d in %u\n",
                            all.mean_tau, ranks->len, RANK_TOP, all.in_top);
  }
}

typedef struct {
  const char *kind;
  guint n, right;
} KindCount;

static GArray *
count_kinds (const GArray *pairs)
{
  GArray *kinds = g_array_new (FALSE, FALSE, sizeof (KindCount));
  for (guint i = 0; i < pairs->len; i++) {
    const RowPair *p = &g_array_index (pairs, RowPair, i);
    guint k = 0;
    while (k < kinds->len && strcmp (g_array_index (kinds, KindCount, k).kind, p->kind) != 0)
      k++;
    KindCount none = {p->kind, 0, 0};
    if (k == kinds->len)
      g_array_append_val (kinds, none);
    g_array_index (kinds, KindCount, k).n++;
    g_array_index (kinds, KindCount, k).right += p->right ? 1 : 0;
  }
  return kinds;
}

static void
print_wrong (const GArray *pairs, GString *out)
{
  for (guint i = 0; i < pairs->len; i++) {
    const RowPair *p = &g_array_index (pairs, RowPair, i);
    if (!p->right)
      g_string_append_printf (out, "%-28.28s published %+7.1f %%  predicted %+7.1f %%  %s, %s\n",
                              p->kind, p->published_pct, p->predicted_pct, p->a->id, p->b->id);
  }
}

void
validate_pairs_print (const GArray *pairs, gboolean rows, gboolean json, GString *out)
{
  g_autoptr (GArray) kinds = count_kinds (pairs);
  g_autoptr (JsonWriter) w = json ? json_writer_new (out, 1) : NULL;
  guint right = 0;
  if (json) {
    jw_begin_object (w, NULL);
    jw_begin_array (w, "kinds");
  } else {
    if (rows)
      print_wrong (pairs, out);
    g_string_append (out, "pairs  right  right %   kind\n");
  }
  for (guint i = 0; i < kinds->len; i++) {
    const KindCount *k = &g_array_index (kinds, KindCount, i);
    right += k->right;
    if (json) {
      jw_begin_object (w, NULL);
      jw_string (w, "kind", k->kind);
      jw_int (w, "pairs", k->n);
      jw_int (w, "right", k->right);
      jw_end_object (w);
    } else {
      g_string_append_printf (out, "%5u  %5u  %7.1f   %s\n", k->n, k->right,
                              100.0 * k->right / k->n, k->kind);
    }
  }
  if (json) {
    jw_end_array (w);
    jw_int (w, "pairs", pairs->len);
    jw_int (w, "right", right);
    jw_end_object (w);
    g_string_append_c (out, '\n');
  } else {
    g_string_append_printf (
        out, "%5u  %5u  %7.1f   all pairs whose published difference is over %g %%\n", pairs->len,
        right, pairs->len > 0 ? 100.0 * right / pairs->len : 0, PAIR_MIN_PCT);
  }
}

void
validate_features_print (const GArray *features, gboolean json, GString *out)
{
  g_autoptr (JsonWriter) w = json ? json_writer_new (out, 1) : NULL;
  if (json) {
    jw_begin_object (w, NULL);
    jw_begin_array (w, "features");
  } else {
    g_string_append (out, "    n skipped  median %     p90 %    mean %   feature\n");
  }
  for (guint i = 0; i < features->len; i++) {
    const FeatureErrors *e = &g_array_index (features, FeatureErrors, i);
    if (json) {
      jw_begin_object (w, NULL);
      jw_string (w, "feature", e->feature);
      jw_int (w, "n", e->n);
      jw_int (w, "skipped", e->skipped);
      jw_double (w, "median_abs_error_pct", e->median_pct);
      jw_double (w, "p90_abs_error_pct", e->p90_pct);
      jw_double (w, "mean_error_pct", e->mean_pct);
      jw_end_object (w);
    } else {
      g_string_append_printf (out, "%5u %7u %9.1f %9.1f %+9.1f   %s\n", e->n, e->skipped,
                              e->median_pct, e->p90_pct, e->mean_pct, e->feature);
    }
  }
  if (!json)
    return;
  jw_end_array (w);
  jw_end_object (w);
  g_string_append_c (out, '\n');
}
