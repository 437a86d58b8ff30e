#include "validate_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cross.h"
#include "fit_errors.h"
#include "validate_compare.h"

#define SOURCE_ROWS 5  /* a source counts from so many rows on */
#define BIAS_ROWS   20 /* … for its mean signed error */

typedef gboolean (*Chosen) (const RowResult *row);

static int
compare (const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Quantile q of |error| of chosen rows of a group (NULL: all); n: how many there are. */
static double
quantile_of (const GArray *rows, const char *group, Chosen chosen, double q, guint *n)
{
  g_autofree double *e = g_new (double, rows->len + 1);
  *n = 0;
  for (guint i = 0; i < rows->len; i++) {
    const RowResult *row = &g_array_index (rows, RowResult, i);
    if (row->status != ROW_SKIPPED && (group == NULL || strcmp (group, row->group) == 0) &&
        (chosen == NULL || chosen (row)))
      e[(*n)++] = fabs (row->error_pct);
  }
  if (*n == 0)
    return 0;
  qsort (e, *n, sizeof *e, compare);
  const double at = q * (*n - 1);
  const guint i = (guint)at, k = MIN (i + 1, *n - 1);
  return e[i] + (e[k] - e[i]) * (at - i);
}

static Target *
put (GArray *out, const char *what, const char *unit, double low, double high)
{
  const Target t = {.what = what, .unit = unit, .low = low, .high = high};
  g_array_append_val (out, t);
  return &g_array_index (out, Target, out->len - 1);
}

static void
put_quantile (GArray *out, const char *what, double high, const GArray *rows, Chosen chosen,
              double q)
{
  Target *t = put (out, what, "%", 0, high);
  t->measured = quantile_of (rows, NULL, chosen, q, &t->n);
}

/* ---- training runs ---- */

static gboolean
is_vtrain (const RowResult *row)
{
  return g_str_has_prefix (row->group, "vTrain");
}

static gboolean
is_other (const RowResult *row)
{
  return !is_vtrain (row);
}

static gboolean
is_vtrain_single (const RowResult *row)
{
  return is_vtrain (row) && strstr (row->group, "one node") != NULL;
}

static gboolean
is_vtrain_multi (const RowResult *row)
{
  return is_vtrain (row) && !is_vtrain_single (row);
}

static GPtrArray *
groups_of (const GArray *rows)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  GPtrArray *names = g_ptr_array_new ();
  for (guint i = 0; i < rows->len; i++) {
    char *g = g_array_index (rows, RowResult, i).group;
    if (g_hash_table_add (seen, g))
      g_ptr_array_add (names, g);
  }
  return names;
}

static void
put_sources (GArray *out, const GArray *rows)
{
  g_autoptr (GPtrArray) names = groups_of (rows);
  Target *median = put (out, "runs A, B: mean of the sources' medians (5 rows or more)", "%", 0, 6);
  double worst_median = 0, worst = 0;
  guint missed = 0, biased = 0;
  const char *worst_name = NULL;
  g_autofree char *median_name = NULL;
  for (guint g = 0; g < names->len; g++) {
    const char *name = g_ptr_array_index (names, g);
    guint n = 0;
    const double m = quantile_of (rows, name, NULL, 0.5, &n);
    double mean = 0;
    if (n < SOURCE_ROWS)
      continue;
    median->n++;
    median->measured += m;
    if (m > worst_median) {
      worst_median = m;
      g_free (median_name);
      median_name = g_strdup_printf ("most %.1f %%: %.60s", m, name);
    }
    if (n < BIAS_ROWS)
      continue;
    for (guint i = 0; i < rows->len; i++) {
      const RowResult *row = &g_array_index (rows, RowResult, i);
      if (row->status != ROW_SKIPPED && strcmp (row->group, name) == 0)
        mean += row->error_pct / n;
    }
    biased++;
    missed += fabs (mean) > 5 ? 1 : 0;
    if (fabs (mean) > fabs (worst)) {
      worst = mean;
      worst_name = name;
    }
  }
  median->measured /= MAX (median->n, 1);
  median->detail = g_steal_pointer (&median_name);
  put_quantile (out, "runs A, B without vTrain: 90 % of rows below", 15, rows, is_other, 0.9);
  Target *bias =
      put (out, "runs A, B: mean signed error of the worst source of 20 rows or more", "%", -5, 5);
  bias->measured = worst;
  bias->n = biased;
  if (worst_name != NULL)
    bias->detail = g_strdup_printf ("%u of %u sources outside; %.60s", missed, biased, worst_name);
  put_quantile (out, "vTrain, one node: median", 6, rows, is_vtrain_single, 0.5);
  put_quantile (out, "vTrain, several nodes: median", 5, rows, is_vtrain_multi, 0.5);
}

static void
put_coverage (GArray *out, const GArray *rows)
{
  guint n = 0, in = 0, skipped = 0;
  for (guint i = 0; i < rows->len; i++) {
    const RowResult *row = &g_array_index (rows, RowResult, i);
    skipped += row->status == ROW_SKIPPED ? 1 : 0;
    n += row->status != ROW_SKIPPED ? 1 : 0;
    in += row->status != ROW_SKIPPED && row->published >= row->lo && row->published <= row->hi;
  }
  Target *t = put (out, "runs A, B: rows inside the printed range", "%", 75, 85);
  t->n = n;
  t->measured = n > 0 ? 100.0 * in / n : 0;
  t = put (out, "runs A, B: rows that cannot be predicted", "%", 0, 5);
  t->n = n + skipped;
  t->measured = t->n > 0 ? 100.0 * skipped / t->n : 0;
}

static gboolean
put_runs (GArray *out, const CsvTable *t, Store *store, GError **error)
{
  const ValidateOptions o = {.classes = "A,B"};
  g_autoptr (ValidateResult) r = validate_table (t, store, &o, error);
  if (r == NULL)
    return FALSE;
  put_sources (out, r->rows);
  g_autoptr (GArray) groups = validate_ranks (t, r);
  const RankSummary ranks = validate_ranks_summary (groups);
  Target *x = put (out, "groups of 5 layouts or more: mean Kendall tau", "", 0.8, 1);
  x->measured = ranks.mean_tau;
  x->n = groups->len;
  x = put (out, "layouts: fastest published is in our top 3", "%", 90, 100);
  x->measured = groups->len > 0 ? 100.0 * ranks.in_top / groups->len : 0;
  x->n = groups->len;
  put_coverage (out, r->rows);
  g_autoptr (CrossResult) c = cross_validate (t, store, "A,B", "source_title", NULL, NULL, error);
  if (c == NULL)
    return FALSE;
  x = put (out, "runs A, B of a left-out source inside the range, mean of sources", "%", 75, 85);
  x->measured = fit_errors_coverage (c, &x->n);
  return TRUE;
}

/* ---- kernels and memory ---- */

static gboolean
is_judged (const RowResult *row)
{
  return row->judged;
}

static gboolean
is_judged_forward (const RowResult *row)
{
  return row->judged && strstr (row->group, "bwd") == NULL;
}

static gboolean
is_judged_backward (const RowResult *row)
{
  return row->judged && !is_judged_forward (row);
}

static gboolean
is_after_step (const RowResult *row)
{
  return strcmp (row->metric, "allocated_after_step_bytes") == 0;
}

static gboolean
is_peak (const RowResult *row)
{
  return !is_after_step (row);
}

typedef struct {
  GArray *gemm, *attention, *memory; /* RowResult whose texts are those of kept */
  GPtrArray *kept;                   /* ValidateResult* */
} Pool;

/* A table of the folder into its pool; what is no table of a known kind, or has none of our rows,
 * is passed over. */
static gboolean
pool_table (Pool *p, const char *path, Store *store, GError **error)
{
  g_autoptr (GError) local = NULL;
  g_autoptr (CsvTable) t = csv_load (path, &local);
  const ValidateOptions o = {0};
  ValidateResult *r = t != NULL && validate_knows (t) && csv_col (t, "source_title") < 0
                          ? validate_table (t, store, &o, &local)
                          : NULL;
  if (t == NULL && local->code == CSV_ERROR_FILE) {
    g_propagate_error (error, g_steal_pointer (&local));
    return FALSE;
  }
  if (r == NULL)
    return TRUE;
  g_ptr_array_add (p->kept, r);
  GArray *pool = strcmp (r->table, "gemm") == 0        ? p->gemm
                 : strcmp (r->table, "attention") == 0 ? p->attention
                 : strcmp (r->table, "memory") == 0    ? p->memory
                                                       : NULL;
  if (pool != NULL && r->rows->len > 0)
    g_array_append_vals (pool, r->rows->data, r->rows->len);
  return TRUE;
}

static int
compare_name (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

static gboolean
pool_folder (Pool *p, const char *folder, Store *store, GError **error)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, error);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  const char *name;
  if (dir == NULL)
    return FALSE;
  while ((name = g_dir_read_name (dir)) != NULL)
    if (g_str_has_suffix (name, ".csv"))
      g_ptr_array_add (names, g_build_filename (folder, name, NULL));
  g_ptr_array_sort (names, compare_name);
  for (guint i = 0; i < names->len; i++)
    if (!pool_table (p, g_ptr_array_index (names, i), store, error))
      return FALSE;
  return TRUE;
}

static void
put_pools (GArray *out, const Pool *p)
{
  put_quantile (out, "GEMM over 1e10 operations, shapes that no fit saw: median", 9, p->gemm,
                is_judged, 0.5);
  put_quantile (out, "GEMM, the same: 90 % of rows below", 25, p->gemm, is_judged, 0.9);
  put_quantile (out, "attention, sequence 2k and over, forward: median", 10, p->attention,
                is_judged_forward, 0.5);
  put_quantile (out, "attention, sequence 2k and over, with backward: median", 10, p->attention,
                is_judged_backward, 0.5);
  put_quantile (out, "memory, allocated after a step: median", 2, p->memory, is_after_step, 0.5);
  put_quantile (out, "memory, allocated at the peak: median", 6, p->memory, is_peak, 0.5);
}

static void
target_clear (gpointer data)
{
  g_free (((Target *)data)->detail);
}

static void
result_free (gpointer data)
{
  validate_result_free (data);
}

GArray *
validate_all (const char *folder, Store *store, GError **error)
{
  g_autoptr (GArray) out = g_array_new (FALSE, TRUE, sizeof (Target));
  g_array_set_clear_func (out, target_clear);
  g_autofree char *runs = g_build_filename (folder, "runs.csv", NULL);
  g_autofree char *ops = g_build_filename (folder, "ops", NULL);
  g_autoptr (CsvTable) t = csv_load (runs, error);
  if (t == NULL || !put_runs (out, t, store, error))
    return NULL;
  Pool p = {g_array_new (FALSE, FALSE, sizeof (RowResult)),
            g_array_new (FALSE, FALSE, sizeof (RowResult)),
            g_array_new (FALSE, FALSE, sizeof (RowResult)),
            g_ptr_array_new_with_free_func (result_free)};
  gboolean ok = pool_folder (&p, folder, store, error) &&
                (!g_file_test (ops, G_FILE_TEST_IS_DIR) || pool_folder (&p, ops, store, error));
  if (ok)
    put_pools (out, &p);
  g_array_unref (p.gemm);
  g_array_unref (p.attention);
  g_array_unref (p.memory);
  g_ptr_array_unref (p.kept);
  return ok ? g_steal_pointer (&out) : NULL;
}

/* ---- output ---- */

gboolean
target_holds (const Target *t)
{
  return t->n > 0 && t->measured >= t->low && t->measured <= t->high;
}

static char *
target_words (const Target *t)
{
  const char *space = t->unit[0] != '\0' ? " " : "";
  if (t->low == 0)
    return g_strdup_printf ("at most %g%s%s", t->high, space, t->unit);
  if (t->high == 100 || t->high == 1)
    return g_strdup_printf ("at least %g%s%s", t->low, space, t->unit);
  return g_strdup_printf ("%g to %g%s%s", t->low, t->high, space, t->unit);
}

static char *
verdict (const Target *t)
{
  if (t->n == 0)
    return g_strdup ("no rows");
  if (target_holds (t))
    return g_strdup ("holds");
  const double by = t->measured > t->high ? t->measured - t->high : t->low - t->measured;
  return g_strdup_printf ("missed by %.2f", by);
}

void
targets_text (const GArray *targets, GString *out)
{
  guint held = 0;
  for (guint i = 0; i < targets->len; i++) {
    const Target *t = &g_array_index (targets, Target, i);
    g_autofree char *want = target_words (t), *how = verdict (t);
    held += target_holds (t) ? 1 : 0;
    g_string_append_printf (out, "%-68s %-16s %8.2f  %-16s %6u%s%s\n", t->what, want, t->measured,
                            how, t->n, t->detail != NULL ? "  " : "",
                            t->detail != NULL ? t->detail : "");
  }
  g_string_append_printf (out, "%u of %u hold\n", held, targets->len);
}

void
targets_json (const GArray *targets, GString *out)
{
  g_autoptr (JsonWriter) w = json_writer_new (out, 1);
  jw_begin_object (w, NULL);
  jw_begin_array (w, "targets");
  for (guint i = 0; i < targets->len; i++) {
    const Target *t = &g_array_index (targets, Target, i);
    jw_begin_object (w, NULL);
    jw_string (w, "what", t->what);
    jw_string (w, "unit", t->unit);
    jw_double (w, "low", t->low);
    jw_double (w, "high", t->high);
    jw_double (w, "measured", t->measured);
    jw_int (w, "n", t->n);
    jw_bool (w, "holds", target_holds (t));
    jw_string (w, "detail", t->detail);
    jw_end_object (w);
  }
  jw_end_array (w);
  jw_end_object (w);
  g_string_append_c (out, '\n');
}

void
targets_csv (const GArray *targets, GString *out)
{
  g_string_append (out, "what,target,measured,verdict,n,detail\n");
  for (guint i = 0; i < targets->len; i++) {
    const Target *t = &g_array_index (targets, Target, i);
    g_autofree char *want = target_words (t), *how = verdict (t);
    report_csv_field (out, t->what);
    g_string_append_printf (out, ",%s,%.2f,%s,%u,", want, t->measured, how, t->n);
    report_csv_field (out, t->detail != NULL ? t->detail : "");
    g_string_append_c (out, '\n');
  }
}
