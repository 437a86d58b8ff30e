#include "validate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_read.h"

const char *const row_status_names[] = {"ok", "assumed", "skipped", NULL};

static void
row_clear (gpointer p)
{
  RowResult *r = p;
  g_free (r->id);
  g_free (r->group);
  g_free (r->reason);
}

void
validate_result_free (ValidateResult *r)
{
  if (r == NULL)
    return;
  g_array_unref (r->rows);
  g_free (r->group_column);
  g_free (r);
}

/* ---- choosing rows ---- */

typedef struct {
  int col;
  GRegex *regex;
} Where;

static void
where_clear (gpointer p)
{
  g_regex_unref (((Where *)p)->regex);
}

static gboolean
parse_where (const CsvTable *t, const ValidateOptions *opt, GArray *wheres, GError **error)
{
  for (gsize i = 0; opt->where != NULL && opt->where[i] != NULL; i++) {
    const char *tilde = strchr (opt->where[i], '~');
    if (tilde == NULL) {
      g_set_error (error, CSV_ERROR, CSV_ERROR_VALUE,
                   "--where %s: must be COLUMN~REGEX, for example gpu~A100", opt->where[i]);
      return FALSE;
    }
    g_autofree char *name = g_strndup (opt->where[i], (gsize)(tilde - opt->where[i]));
    Where w = {csv_require_col (t, name, error), NULL};
    if (w.col < 0)
      return FALSE;
    w.regex = g_regex_new (tilde + 1, G_REGEX_OPTIMIZE, 0, error);
    if (w.regex == NULL) {
      g_prefix_error (error, "--where %s: ", opt->where[i]);
      return FALSE;
    }
    g_array_append_val (wheres, w);
  }
  return TRUE;
}

static gboolean
row_chosen (const CsvTable *t, guint row, const ValidateOptions *opt, int class_col,
            const GArray *wheres)
{
  if (opt->classes != NULL) {
    g_auto (GStrv) list = g_strsplit (opt->classes, ",", -1);
    if (!g_strv_contains ((const char *const *)list, csv_cell (t, row, class_col)))
      return FALSE;
  }
  for (guint i = 0; i < wheres->len; i++) {
    const Where *w = &g_array_index (wheres, Where, i);
    if (!g_regex_match (w->regex, csv_cell (t, row, w->col), 0, NULL))
      return FALSE;
  }
  return TRUE;
}

/* ---- kinds of tables ---- */

static const TableKind *const kinds[] = {
    &table_memory,         &table_runs,      &table_collectives,    &table_gemm, &table_gemm_aiter,
    &table_gemm_deepbench, &table_attention, &table_attention_wide, &table_ops,  &table_gemm_wide};

static gboolean
has_columns (const CsvTable *t, const TableKind *k)
{
  for (gsize i = 0; k->needed[i] != NULL; i++)
    if (csv_col (t, k->needed[i]) < 0)
      return FALSE;
  return TRUE;
}

static const TableKind *
kind_of (const CsvTable *t, GError **error)
{
  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (has_columns (t, kinds[i]))
      return kinds[i];
  g_autoptr (GString) known = g_string_new (NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++) {
    g_string_append_printf (known, "%s%s:", i > 0 ? "; " : "", kinds[i]->what);
    for (gsize k = 0; kinds[i]->needed[k] != NULL; k++)
      g_string_append_printf (known, " %s", kinds[i]->needed[k]);
  }
  g_set_error (error, CSV_ERROR, CSV_ERROR_COLUMN,
               "%s:1: the columns tell no kind of table (known: %s)", csv_name (t), known->str);
  return NULL;
}

gboolean
validate_knows (const CsvTable *t)
{
  return kind_of (t, NULL) != NULL;
}

RowResult *
validate_add (GArray *rows, const char *metric, double published, double predicted, StepInterval iv)
{
  RowResult r = {.metric = metric,
                 .published = published,
                 .predicted = predicted,
                 .error_pct = 100.0 * (predicted / published - 1.0),
                 .lo = predicted * iv.lo,
                 .hi = predicted * iv.hi,
                 .status = ROW_OK,
                 .reason = g_strdup ("")};
  g_array_append_val (rows, r);
  return &g_array_index (rows, RowResult, rows->len - 1);
}

void
validate_skip (GArray *rows, const char *reason)
{
  RowResult r = {.status = ROW_SKIPPED, .reason = g_strdup (reason)};
  g_array_append_val (rows, r);
}

static void
run_row (const RunContext *c, guint row, GArray *rows)
{
  RowResult r = {0};
  validate_run_row (c, row, &r);
  if (r.reason == NULL)
    r.reason = g_strdup ("");
  g_array_append_val (rows, r);
}

static const char *const runs_needed[] = {"num_layers", "tp", "pp", "gbs", "gpu", "num_gpus", NULL};
const TableKind table_runs = {"runs", runs_needed, "source_title", "training runs", NULL, run_row};

/* Names what a row has added, and groups it. */
static void
label (const CsvTable *t, guint row, int id_col, int group_col, GArray *rows, guint first)
{
  for (guint i = first; i < rows->len; i++) {
    RowResult *r = &g_array_index (rows, RowResult, i);
    const char *id = csv_cell (t, row, id_col);
    if (r->id == NULL)
      r->id = *id != '\0' ? g_strdup (id) : g_strdup_printf ("%u", row + 1);
    if (r->group == NULL)
      r->group = g_strdup (csv_cell (t, row, group_col));
  }
}

static void
wide_column_clear (gpointer p)
{
  WideColumn *w = p;
  g_free (w->gpu);
  g_free (w->kernel);
}

/* Columns of a wide table that a rule knows the device of. */
static GArray *
wide_columns (const CsvTable *t, const RunRules *rules)
{
  GArray *cells = g_array_new (FALSE, TRUE, sizeof (WideColumn));
  g_array_set_clear_func (cells, wide_column_clear);
  for (guint col = 0; col < csv_n_cols (t); col++) {
    const char *name = csv_col_name (t, col);
    const char *gpu = run_rules_find (rules, "wide", name, NULL, NULL);
    WideColumn w = {(int)col, g_strdup (gpu),
                    g_strdup (run_rules_find (rules, "kernel", "", name, NULL))};
    if (gpu != NULL)
      g_array_append_val (cells, w);
    else
      wide_column_clear (&w);
  }
  return cells;
}

ValidateResult *
validate_table (const CsvTable *t, Store *store, const ValidateOptions *opt, GError **error)
{
  if (opt->classes != NULL && csv_require_col (t, "class", error) < 0) {
    g_prefix_error (error, "--class: ");
    return NULL;
  }
  const TableKind *kind = kind_of (t, error);
  if (kind == NULL)
    return NULL;
  const char *group = opt->group != NULL ? opt->group : kind->group;
  int group_col = opt->group != NULL ? csv_require_col (t, group, error)
                  : group != NULL    ? csv_col (t, group)
                                     : -1;
  if (opt->group != NULL && group_col < 0)
    return NULL;
  g_autoptr (GArray) wheres = g_array_new (FALSE, FALSE, sizeof (Where));
  g_array_set_clear_func (wheres, where_clear);
  g_autoptr (RunRules) rules = run_rules_load (error);
  g_autoptr (IntervalTable) intervals = rules != NULL ? interval_table_load (error) : NULL;
  if (intervals == NULL || !parse_where (t, opt, wheres, error))
    return NULL;
  g_autoptr (PredictCache) cache = predict_cache_new ();
  g_autoptr (GArray) cells = wide_columns (t, rules);
  RunContext c = {.t = t,
                  .store = store,
                  .rules = rules,
                  .cache = cache,
                  .intervals = intervals,
                  .stage_times = opt->stage_times,
                  .cells = cells,
                  .own_groups = opt->group == NULL};
  ValidateResult *r = g_new0 (ValidateResult, 1);
  r->table = kind->name;
  r->judged = kind->judged;
  r->group_column = g_strdup (group != NULL ? group : "device");
  r->rows = g_array_new (FALSE, TRUE, sizeof (RowResult));
  g_array_set_clear_func (r->rows, row_clear);
  int class_col = csv_col (t, "class"), id_col = csv_col (t, "id");
  for (guint row = 0; row < csv_n_rows (t); row++) {
    if (!row_chosen (t, row, opt, class_col, wheres))
      continue;
    guint first = r->rows->len;
    kind->row (&c, row, r->rows);
    label (t, row, id_col, group_col, r->rows, first);
  }
  /* An error of 0 % on nothing would look like a perfect answer. */
  if (r->rows->len == 0) {
    g_set_error (error, CSV_ERROR, CSV_ERROR_VALUE,
                 "%s: no row to predict (found %u rows, of which "
                 "--class and --where choose none)",
                 csv_name (t), csv_n_rows (t));
    validate_result_free (r);
    return NULL;
  }
  return r;
}

/* ---- statistics ---- */

static int
compare_double (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double
quantile (const double *sorted, guint n, double q)
{
  if (n == 0)
    return 0;
  double pos = q * (n - 1);
  guint i = (guint)pos;
  double frac = pos - i;
  return i + 1 < n ? sorted[i] * (1 - frac) + sorted[i + 1] * frac : sorted[i];
}

typedef struct {
  guint n, skipped, covered;
  double median, mean_abs, p90, max, mean;
} Stats;

/* group NULL: all rows. judged: only those of the part with a target. */
static Stats
stats_of (const ValidateResult *r, const char *group, gboolean judged)
{
  Stats s = {0};
  g_autofree double *abs_err = g_new (double, r->rows->len + 1);
  for (guint i = 0; i < r->rows->len; i++) {
    const RowResult *row = &g_array_index (r->rows, RowResult, i);
    if ((group != NULL && strcmp (row->group, group) != 0) || (judged && !row->judged))
      continue;
    if (row->status == ROW_SKIPPED) {
      s.skipped++;
      continue;
    }
    abs_err[s.n++] = fabs (row->error_pct);
    s.mean += row->error_pct;
    s.mean_abs += fabs (row->error_pct);
    s.covered += row->published >= row->lo && row->published <= row->hi;
  }
  if (s.n == 0)
    return s;
  qsort (abs_err, s.n, sizeof (double), compare_double);
  s.median = quantile (abs_err, s.n, 0.5);
  s.p90 = quantile (abs_err, s.n, 0.9);
  s.max = abs_err[s.n - 1];
  s.mean /= s.n;
  s.mean_abs /= s.n;
  return s;
}

static int
compare_name (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* Sorted names of the groups, borrowed from the rows. */
static GPtrArray *
group_names (const ValidateResult *r)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  GPtrArray *names = g_ptr_array_new ();
  for (guint i = 0; i < r->rows->len; i++) {
    char *g = g_array_index (r->rows, RowResult, i).group;
    if (g_hash_table_add (seen, g))
      g_ptr_array_add (names, g);
  }
  g_ptr_array_sort (names, compare_name);
  return names;
}

static double
mean_of_medians (const ValidateResult *r, const GPtrArray *names)
{
  double sum = 0;
  guint n = 0;
  for (guint i = 0; i < names->len; i++) {
    Stats s = stats_of (r, g_ptr_array_index (names, i), FALSE);
    if (s.n > 0) {
      sum += s.median;
      n++;
    }
  }
  return n > 0 ? sum / n : 0;
}

/* What most rows of a group that are far off say; NULL when none says anything. Only collectives
 * do: the likely cause. */
static const char *
group_cause (const ValidateResult *r, const char *group)
{
  const char *best = NULL;
  guint most = 0;
  for (guint i = 0; i < r->rows->len; i++) {
    const RowResult *row = &g_array_index (r->rows, RowResult, i);
    guint n = 0;
    if (strcmp (row->group, group) != 0 || row->status != ROW_OK || row->reason[0] == '\0')
      continue;
    for (guint k = 0; k < r->rows->len; k++)
      n += strcmp (g_array_index (r->rows, RowResult, k).reason, row->reason) == 0;
    if (n > most)
      best = row->reason;
    most = MAX (most, n);
  }
  return best;
}

/* A set whose median is further off is named with the cause. */
static const double far_off_pct = 40;

/* ---- output ---- */

static void
json_row (JsonWriter *w, const RowResult *row)
{
  jw_begin_object (w, NULL);
  jw_string (w, "id", row->id);
  jw_string (w, "metric", row->metric);
  if (row->status == ROW_SKIPPED) {
    jw_null (w, "published");
    jw_null (w, "predicted");
    jw_null (w, "error_pct");
    jw_null (w, "interval");
  } else {
    jw_double (w, "published", row->published);
    jw_double (w, "predicted", row->predicted);
    jw_double (w, "error_pct", row->error_pct);
    jw_begin_array (w, "interval");
    jw_double (w, NULL, row->lo);
    jw_double (w, NULL, row->hi);
    jw_end_array (w);
  }
  jw_string (w, "status", row_status_names[row->status]);
  jw_string (w, "reason", row->reason);
  jw_end_object (w);
}

void
validate_json (const ValidateResult *r, GString *out)
{
  g_autoptr (JsonWriter) w = json_writer_new (out, 1);
  g_autoptr (GPtrArray) names = group_names (r);
  jw_begin_object (w, NULL);
  jw_string (w, "table", r->table);
  jw_begin_array (w, "rows");
  for (guint i = 0; i < r->rows->len; i++)
    json_row (w, &g_array_index (r->rows, RowResult, i));
  jw_end_array (w);
  jw_begin_array (w, "groups");
  for (guint i = 0; i < names->len; i++) {
    Stats s = stats_of (r, g_ptr_array_index (names, i), FALSE);
    if (s.n == 0)
      continue;
    jw_begin_object (w, NULL);
    jw_string (w, "by", r->group_column);
    jw_string (w, "value", g_ptr_array_index (names, i));
    jw_int (w, "n", s.n);
    jw_double (w, "median_abs_error_pct", s.median);
    jw_double (w, "p90_abs_error_pct", s.p90);
    jw_double (w, "mean_error_pct", s.mean);
    const char *cause =
        s.median > far_off_pct ? group_cause (r, g_ptr_array_index (names, i)) : NULL;
    if (cause != NULL)
      jw_string (w, "cause", cause);
    jw_end_object (w);
  }
  jw_end_array (w);
  Stats s = stats_of (r, NULL, FALSE);
  jw_begin_object (w, "summary");
  jw_int (w, "n", s.n);
  jw_int (w, "skipped", s.skipped);
  jw_double (w, "median_abs_error_pct", s.median);
  jw_double (w, "mean_abs_error_pct", s.mean_abs);
  jw_double (w, "p90_abs_error_pct", s.p90);
  jw_double (w, "max_abs_error_pct", s.max);
  jw_double (w, "mean_of_group_medians_pct", mean_of_medians (r, names));
  jw_double (w, "interval_coverage_pct", s.n > 0 ? 100.0 * s.covered / s.n : 0);
  jw_end_object (w);
  Stats judged = stats_of (r, NULL, TRUE);
  if (r->judged != NULL) {
    jw_begin_object (w, "judged");
    jw_string (w, "rows", r->judged);
    jw_int (w, "n", judged.n);
    jw_double (w, "median_abs_error_pct", judged.median);
    jw_double (w, "p90_abs_error_pct", judged.p90);
    jw_double (w, "mean_error_pct", judged.mean);
    jw_end_object (w);
  }
  jw_end_object (w);
  g_string_append_c (out, '\n');
}

static void
text_stats (GString *out, const char *name, const Stats *s)
{
  g_string_append_printf (out, "%5u %7u %9.1f %9.1f %9.1f %+9.1f   %.70s\n", s->n, s->skipped,
                          s->median, s->p90, s->max, s->mean, name);
}

static void
text_judged (const ValidateResult *r, const GPtrArray *names, GString *out)
{
  Stats all = stats_of (r, NULL, TRUE);
  if (r->judged == NULL || all.n == 0)
    return;
  g_string_append_printf (out, "\n%s\n", r->judged);
  g_string_append_printf (out, "    n skipped  median %%     p90 %%     max %%    mean %%   %s\n",
                          r->group_column);
  for (guint i = 0; i < names->len; i++) {
    Stats s = stats_of (r, g_ptr_array_index (names, i), TRUE);
    if (s.n > 0)
      text_stats (out, g_ptr_array_index (names, i), &s);
  }
  text_stats (out, "all rows", &all);
}

void
validate_text (const ValidateResult *r, gboolean rows, GString *out)
{
  g_autoptr (GPtrArray) names = group_names (r);
  for (guint i = 0; rows && i < r->rows->len; i++) {
    const RowResult *row = &g_array_index (r->rows, RowResult, i);
    if (row->status == ROW_SKIPPED)
      g_string_append_printf (out, "%-52s skipped: %s\n", row->id, row->reason);
    else
      g_string_append_printf (out,
                              "%-52s %-20s published %10.5g  predicted %10.5g  %+6.1f %%%s%s\n",
                              row->id, row->metric, row->published, row->predicted, row->error_pct,
                              row->status == ROW_ASSUMED ? "  assumed: " : "", row->reason);
  }
  g_string_append_printf (out, "    n skipped  median %%     p90 %%     max %%    mean %%   %s\n",
                          r->group_column);
  for (guint i = 0; i < names->len; i++) {
    Stats s = stats_of (r, g_ptr_array_index (names, i), FALSE);
    text_stats (out, g_ptr_array_index (names, i), &s);
  }
  Stats s = stats_of (r, NULL, FALSE);
  text_stats (out, "all rows", &s);
  g_string_append_printf (
      out, "mean of the groups' medians %.2f %%, interval holds %.0f %% of the rows\n",
      mean_of_medians (r, names), s.n > 0 ? 100.0 * s.covered / s.n : 0.0);
  text_judged (r, names, out);
  for (guint i = 0; i < names->len; i++) {
    const char *name = g_ptr_array_index (names, i);
    double median = stats_of (r, name, FALSE).median;
    const char *cause = median > far_off_pct ? group_cause (r, name) : NULL;
    if (cause != NULL)
      g_string_append_printf (out, "%.70s: likely cause: %s\n", name, cause);
  }
}

void
validate_csv (const ValidateResult *r, GString *out)
{
  g_string_append (out, "id,group,metric,published,predicted,error_pct,lo,hi,status,reason\n");
  for (guint i = 0; i < r->rows->len; i++) {
    const RowResult *row = &g_array_index (r->rows, RowResult, i);
    report_csv_field (out, row->id);
    g_string_append_c (out, ',');
    report_csv_field (out, row->group);
    g_string_append_printf (out, ",%s,", row->metric != NULL ? row->metric : "");
    if (row->status == ROW_SKIPPED)
      g_string_append (out, ",,,,,");
    else
      g_string_append_printf (out, "%.9g,%.9g,%.4f,%.9g,%.9g,", row->published, row->predicted,
                              row->error_pct, row->lo, row->hi);
    g_string_append_printf (out, "%s,", row_status_names[row->status]);
    report_csv_field (out, row->reason);
    g_string_append_c (out, '\n');
  }
}
