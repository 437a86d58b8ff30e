#include "plot.h"
#include "fileio.h"
#include "json_read.h"
#include "text.h"

#include <string.h>

#include <glib/gstdio.h>

G_DEFINE_QUARK (clustersim - plot - error - quark, plot_error)

typedef enum {
  CELL_TEXT,
  CELL_AMOUNT,            /* a number that is not negative */
  CELL_POSITIVE,          /* has a place on a logarithmic axis */
  CELL_POSITIVE_KEY,      /* the same; the column may be called by a key that ends so */
  CELL_POSITIVE_OR_EMPTY, /* empty: the row is left out */
  CELL_AMOUNT_OR_NONE,    /* empty: the row is drawn without it */
  CELL_TEXT_OPTIONAL,     /* the column may be absent */
  CELL_AMOUNT_OPTIONAL    /* the same, and it may be empty */
} CellKind;

typedef struct {
  const char *name;
  CellKind kind;
} Column;

static const Column scaling_columns[] = {{"series", CELL_TEXT},
                                         {"gpus", CELL_POSITIVE_OR_EMPTY},
                                         {"tokens_per_s", CELL_POSITIVE_OR_EMPTY},
                                         {"mfu", CELL_AMOUNT},
                                         {NULL, CELL_TEXT}};
static const Column step_columns[] = {
    {"label", CELL_TEXT},       {"compute_s", CELL_AMOUNT}, {"tp_comm_s", CELL_AMOUNT},
    {"cp_comm_s", CELL_AMOUNT}, {"ep_comm_s", CELL_AMOUNT}, {"pp_comm_s", CELL_AMOUNT},
    {"dp_comm_s", CELL_AMOUNT}, {"bubble_s", CELL_AMOUNT},  {"optimizer_s", CELL_AMOUNT},
    {"host_s", CELL_AMOUNT},    {"data_s", CELL_AMOUNT},    {"other_s", CELL_AMOUNT},
    {NULL, CELL_TEXT}};
static const Column memory_columns[] = {{"stage", CELL_TEXT},
                                        {"weights_GiB", CELL_AMOUNT},
                                        {"gradients_GiB", CELL_AMOUNT},
                                        {"optimizer_GiB", CELL_AMOUNT},
                                        {"activations_GiB", CELL_AMOUNT},
                                        {"buffers_GiB", CELL_AMOUNT},
                                        {"framework_GiB", CELL_AMOUNT},
                                        {"capacity_GiB", CELL_AMOUNT},
                                        {NULL, CELL_TEXT}};
static const Column validate_columns[] = {{"id", CELL_TEXT},
                                          {"group", CELL_TEXT},
                                          {"published", CELL_POSITIVE_OR_EMPTY},
                                          {"predicted", CELL_POSITIVE_OR_EMPTY},
                                          {NULL, CELL_TEXT}};

static const Column checkpoint_columns[] = {{"series", CELL_TEXT},
                                            {"kind", CELL_TEXT},
                                            {"interval_s", CELL_POSITIVE},
                                            {"goodput_percent", CELL_AMOUNT},
                                            {"lo_percent", CELL_AMOUNT},
                                            {"hi_percent", CELL_AMOUNT},
                                            {NULL, CELL_TEXT}};
static const Column goodput_columns[] = {
    {"series", CELL_TEXT}, {"cause", CELL_TEXT}, {"percent", CELL_AMOUNT}, {NULL, CELL_TEXT}};
static const Column cost_columns[] = {
    {"series", CELL_TEXT},        {"gpus", CELL_POSITIVE},
    {"days", CELL_POSITIVE},      {"days_lo", CELL_POSITIVE},
    {"days_hi", CELL_POSITIVE},   {"undisturbed_days", CELL_AMOUNT_OR_NONE},
    {"usd", CELL_AMOUNT_OR_NONE}, {NULL, CELL_TEXT}};

static const Column loss_columns[] = {{"series", CELL_TEXT},
                                      {"kind", CELL_TEXT},
                                      {"compute_flops", CELL_POSITIVE},
                                      {"loss", CELL_POSITIVE},
                                      {NULL, CELL_TEXT}};

static const Column gantt_columns[] = {
    {"rank", CELL_AMOUNT},    {"thread", CELL_TEXT},  {"name", CELL_TEXT}, {"category", CELL_TEXT},
    {"begin_s", CELL_AMOUNT}, {"end_s", CELL_AMOUNT}, {NULL, CELL_TEXT}};
static const Column busbw_columns[] = {{"size_bytes", CELL_POSITIVE},
                                       {"busbw_GBps", CELL_AMOUNT},
                                       {"series", CELL_TEXT_OPTIONAL},
                                       {"measured_busbw_GBps", CELL_AMOUNT_OPTIONAL},
                                       {"algo", CELL_TEXT_OPTIONAL},
                                       {"proto", CELL_TEXT_OPTIONAL},
                                       {NULL, CELL_TEXT}};
static const Column fabric_columns[] = {{"series", CELL_TEXT},
                                        {"oversubscription", CELL_POSITIVE_KEY},
                                        {"step_time_s", CELL_POSITIVE_OR_EMPTY},
                                        {"tp_comm_s", CELL_AMOUNT},
                                        {"cp_comm_s", CELL_AMOUNT},
                                        {"ep_comm_s", CELL_AMOUNT},
                                        {"pp_comm_s", CELL_AMOUNT},
                                        {"dp_comm_s", CELL_AMOUNT},
                                        {NULL, CELL_TEXT}};
static const Column pareto_columns[] = {
    {"tp", CELL_POSITIVE},    {"cp", CELL_POSITIVE},
    {"pp", CELL_POSITIVE},    {"vpp", CELL_POSITIVE},
    {"ep", CELL_POSITIVE},    {"micro_batch_sequences", CELL_POSITIVE},
    {"recompute", CELL_TEXT}, {"step_time_s", CELL_POSITIVE_OR_EMPTY},
    {"mfu", CELL_AMOUNT},     {"peak_bytes", CELL_POSITIVE},
    {"pareto", CELL_AMOUNT},  {NULL, CELL_TEXT}};

/* max_rows, max_groups: what still makes a picture. group: index of the column that has a line or a
 * colour for each of its texts, -1: none. */
static const struct {
  const Column *columns;
  guint max_rows, max_groups;
  int group;
} kinds[] = {{scaling_columns, 100000, 32, 0},  {step_columns, 200, 0, -1},
             {memory_columns, 2048, 0, -1},     {validate_columns, 200000, 64, 1},
             {checkpoint_columns, 10000, 8, 0}, {goodput_columns, 2000, 40, 0},
             {cost_columns, 2000, 8, 0},        {loss_columns, 20000, 32, 0},
             {gantt_columns, 40000, 0, -1},     {busbw_columns, 5000, 8, 2},
             {pareto_columns, 50000, 0, -1},    {fabric_columns, 2000, 8, 0}};
const char *const plot_kinds[] = {"scaling", "step",   "memory", "validate", "checkpoint",
                                  "goodput", "cost",   "loss",   "gantt",    "busbw",
                                  "pareto",  "fabric", NULL};

static int
find_kind (const char *kind, GError **error)
{
  for (int k = 0; plot_kinds[k] != NULL; k++)
    if (strcmp (plot_kinds[k], kind) == 0)
      return k;
  g_autofree char *quoted = text_quoted (kind), *all = text_list (plot_kinds, 20);
  const char *near = nearest_name (kind, plot_kinds);
  g_set_error (error, PLOT_ERROR, PLOT_ERROR_KIND,
               "unknown kind of plot (found %s; %s%s%sallowed: %s)", quoted,
               near ? "nearest: " : "", near ? near : "", near ? "; " : "", all);
  return -1;
}

/* ---- the table, as gnuplot can take it ---- */

/* gnuplot's word() knows double quotes, and a tab ends a cell. */
static void
append_text (GString *out, const char *text)
{
  if (*text == '\0')
    text = "(none)";
  for (const char *p = text; *p != '\0'; p++)
    g_string_append_c (out, *p == '"' ? '\'' : (guchar)*p < ' ' || *p == 0x7f ? ' ' : *p);
}

static gboolean
check_number (const CsvTable *t, guint row, int col, CellKind kind, GError **error)
{
  double v;
  if (!csv_double (t, row, col, &v, error))
    return FALSE;
  gboolean amount =
      kind == CELL_AMOUNT || kind == CELL_AMOUNT_OR_NONE || kind == CELL_AMOUNT_OPTIONAL;
  if (v > 0 || (v == 0 && amount))
    return TRUE;
  g_set_error (error, CSV_ERROR, CSV_ERROR_VALUE, "%s:%u: column \"%s\" must %s (found %g)",
               csv_name (t), csv_line (t, row), csv_col_name (t, (guint)col),
               amount ? "not be negative" : "be above zero on a logarithmic axis", v);
  return FALSE;
}

/* Appends the row; *whole FALSE when it is to be left out: a point of a sweep that has no answer, a
 * layout that was not predicted. What stands behind the first such cell is empty too. */
static gboolean
append_row (GString *out, const CsvTable *t, guint row, const Column *columns, const int *at,
            gboolean *whole, GError **error)
{
  *whole = TRUE;
  for (guint c = 0; columns[c].name != NULL; c++) {
    const char *cell = csv_cell (t, row, at[c]);
    if (c > 0)
      g_string_append_c (out, '\t');
    gboolean none =
        columns[c].kind == CELL_AMOUNT_OR_NONE || columns[c].kind == CELL_AMOUNT_OPTIONAL;
    if (columns[c].kind == CELL_TEXT || columns[c].kind == CELL_TEXT_OPTIONAL)
      append_text (out, cell);
    else if (columns[c].kind == CELL_POSITIVE_OR_EMPTY && *cell == '\0') {
      *whole = FALSE;
      return TRUE;
    } else if (none && *cell == '\0')
      g_string_append (out, "NaN");
    else if (check_number (t, row, at[c], columns[c].kind, error))
      g_string_append (out, cell);
    else
      return FALSE;
  }
  g_string_append_c (out, '\n');
  return TRUE;
}

static gboolean
too_many (const CsvTable *t, const char *kind, guint found, guint allowed, const char *what,
          GError **error)
{
  g_set_error (error, CSV_ERROR, CSV_ERROR_VALUE,
               "%s: too many %s for a picture of kind %s (found %u or more; allowed: %u)",
               csv_name (t), what, kind, found, allowed);
  return FALSE;
}

/* A sweep's column is called by the whole key: cluster.network.leaf_oversubscription. */
static int
find_column (const CsvTable *t, const Column *c)
{
  int at = csv_col (t, c->name);
  g_autofree char *end = g_strconcat ("_", c->name, NULL);
  for (guint i = 0; at < 0 && c->kind == CELL_POSITIVE_KEY && i < csv_n_cols (t); i++)
    if (g_str_has_suffix (csv_col_name (t, i), end))
      at = (int)i;
  return at;
}

static gboolean
tidy_table (int k, const CsvTable *t, GString *out, guint *n_left_out, GError **error)
{
  const Column *columns = kinds[k].columns;
  int at[16];
  guint drawn = 0;
  g_autoptr (GHashTable) groups = g_hash_table_new (g_str_hash, g_str_equal); /* only counted */
  for (guint c = 0; columns[c].name != NULL; c++) {
    g_assert (c < G_N_ELEMENTS (at));
    gboolean optional =
        columns[c].kind == CELL_TEXT_OPTIONAL || columns[c].kind == CELL_AMOUNT_OPTIONAL;
    at[c] = find_column (t, &columns[c]);
    if (at[c] < 0 && !optional && csv_require_col (t, columns[c].name, error) < 0)
      return FALSE;
    g_string_append_printf (out, "%s%s", c ? "\t" : "", columns[c].name);
  }
  g_string_append_c (out, '\n');
  for (guint row = 0; row < csv_n_rows (t); row++) {
    gsize before = out->len;
    gboolean whole;
    if (!append_row (out, t, row, columns, at, &whole, error))
      return FALSE;
    if (!whole) {
      g_string_truncate (out, before);
      continue;
    }
    if (++drawn > kinds[k].max_rows)
      return too_many (t, plot_kinds[k], drawn, kinds[k].max_rows, "rows", error);
    if (kinds[k].group >= 0) {
      g_hash_table_add (groups, (gpointer)csv_cell (t, row, at[kinds[k].group]));
      if (g_hash_table_size (groups) > kinds[k].max_groups)
        return too_many (t, plot_kinds[k], kinds[k].max_groups + 1, kinds[k].max_groups,
                         columns[kinds[k].group].name, error);
    }
  }
  *n_left_out = csv_n_rows (t) - drawn;
  if (drawn > 0)
    return TRUE;
  g_set_error (error, CSV_ERROR, CSV_ERROR_VALUE, "%s: no rows to draw (found %u, all left out)",
               csv_name (t), *n_left_out);
  return FALSE;
}

/* ---- gnuplot ---- */

static char *
find_script (const char *kind, GError **error)
{
  g_autofree char *file = g_strconcat (kind, ".gp", NULL);
  g_autoptr (GPtrArray) folders = g_ptr_array_new_with_free_func (g_free);
  const char *env = g_getenv ("CLUSTERSIM_PLOTS");
  if (env != NULL && *env != '\0')
    g_ptr_array_add (folders, g_strdup (env));
  g_autofree char *exe = g_file_read_link ("/proc/self/exe", NULL);
  if (exe != NULL) {
    g_autofree char *beside = g_path_get_dirname (exe);
    g_autofree char *above = g_path_get_dirname (beside);
    g_ptr_array_add (folders, g_build_filename (above, "plots", NULL));
    g_ptr_array_add (folders, g_build_filename (above, "share", "clustersim", "plots", NULL));
  }
  g_ptr_array_add (folders, g_build_filename (CLUSTERSIM_DATADIR, "plots", NULL));
  for (guint i = 0; i < folders->len; i++) {
    g_autofree char *path = g_build_filename (g_ptr_array_index (folders, i), file, NULL);
    if (g_file_test (path, G_FILE_TEST_IS_REGULAR))
      return g_steal_pointer (&path);
  }
  g_ptr_array_add (folders, NULL);
  g_autofree char *tried = text_list ((const char *const *)folders->pdata, 10);
  g_set_error (error, PLOT_ERROR, PLOT_ERROR_SCRIPT, "%s is missing (looked in %s)", file, tried);
  return NULL;
}

/* A line of text as gnuplot can show it. */
static char *
one_line (const char *text)
{
  char *valid = g_utf8_make_valid (text != NULL ? text : "", -1);
  for (char *p = valid; *p != '\0'; p++)
    if ((guchar)*p < ' ' || *p == 0x7f)
      *p = ' ';
  return valid;
}

/* The line of gnuplot's complaint that says what is wrong: the last one. */
static char *
last_line (char *text)
{
  g_strchomp (text);
  char *newline = strrchr (text, '\n');
  return newline != NULL ? newline + 1 : text;
}

static gboolean
run_gnuplot (const char *script, const char *data, const char *out, const char *title,
             const char *caption, GError **error)
{
  g_autofree char *above = one_line (title), *below = one_line (caption);
  /* -c: the script finds its arguments as texts, so that nothing in them is looked at by gnuplot.
   */
  const char *argv[] = {"gnuplot", "--default-settings", "-c", script, data, out, above, below,
                        NULL};
  g_autofree char *complaint = NULL;
  g_autoptr (GError) why = NULL;
  int status;
  if (!g_spawn_sync (NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL,
                     NULL, NULL, NULL, &complaint, &status, &why)) {
    if (g_error_matches (why, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT))
      g_set_error_literal (error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT,
                           "gnuplot is not installed (Debian package gnuplot-nox; for PNG also "
                           "fonts-dejavu-core)");
    else
      g_propagate_prefixed_error (error, g_steal_pointer (&why), "gnuplot cannot be run: ");
    return FALSE;
  }
  if (g_spawn_check_wait_status (status, &why) && g_file_test (out, G_FILE_TEST_IS_REGULAR))
    return TRUE;
  g_set_error (error, G_SPAWN_EXIT_ERROR, why != NULL ? why->code : 0, "gnuplot failed (%s)",
               *g_strstrip (complaint) != '\0' ? last_line (complaint)
               : why != NULL                   ? why->message
                                               : "it wrote nothing");
  return FALSE;
}

/* Draws in a folder of its own, so that out is written only when there is a picture. */
static gboolean
draw_in (const char *folder, const char *script, const GString *rows, const char *out,
         const char *title, const char *caption, GError **error)
{
  g_autofree char *data = g_build_filename (folder, "data.tsv", NULL);
  g_autofree char *picture =
      g_build_filename (folder, g_str_has_suffix (out, ".png") ? "out.png" : "out.svg", NULL);
  g_autofree char *bytes = NULL;
  gsize len;
  gboolean ok = g_file_set_contents (data, rows->str, (gssize)rows->len, error) &&
                run_gnuplot (script, data, picture, title, caption, error) &&
                g_file_get_contents (picture, &bytes, &len, error) &&
                output_write (out, bytes, (gssize)len, error);
  g_unlink (data);
  g_unlink (picture);
  return ok;
}

gboolean
plot_check (const char *kind, const char *out, GError **error)
{
  if (find_kind (kind, error) < 0)
    return FALSE;
  if (g_str_has_suffix (out, ".svg") || g_str_has_suffix (out, ".png"))
    return TRUE;
  g_autofree char *quoted = text_quoted (out);
  g_set_error (error, PLOT_ERROR, PLOT_ERROR_FORMAT,
               "the name of a picture ends in its format (found %s; allowed: .svg, .png)", quoted);
  return FALSE;
}

gboolean
plot_draw (const char *kind, const CsvTable *table, const char *out, const char *title,
           const char *caption, guint *n_left_out, GError **error)
{
  guint left_out = 0;
  if (!plot_check (kind, out, error))
    return FALSE;
  int k = find_kind (kind, NULL);
  g_autoptr (GString) rows = g_string_new (NULL);
  if (!tidy_table (k, table, rows, &left_out, error))
    return FALSE;
  g_autofree char *script = find_script (kind, error);
  g_autofree char *folder = script != NULL ? g_dir_make_tmp ("clustersim-XXXXXX", error) : NULL;
  if (folder == NULL)
    return FALSE;
  gboolean ok = draw_in (folder, script, rows, out, title, caption, error);
  g_rmdir (folder);
  if (ok && n_left_out != NULL)
    *n_left_out = left_out;
  return ok;
}
