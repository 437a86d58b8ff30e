/* scenarios/published/runs.csv: the table that ships is whole and says what it claims.
 * Checked: 1,849 rows with unique ids and a source; every tag is key=value and its key stands in
 * the folder's README; tp*pp*cp*dp = num_gpus, gbs divisible by mbs*dp, ep <= tp*cp*dp, and gbs*seq
 * = tokens/s * GPUs * step time (within 2 %), unless the row is flagged as contradictory. */
#include "csv.h"

#include <math.h>
#include <string.h>

static CsvTable *
load (void)
{
  const char *top = g_getenv ("G_TEST_SRCDIR");
  g_autofree char *path =
      g_build_filename (top ? top : ".", "scenarios", "published", "runs.csv", NULL);
  GError *error = NULL;
  CsvTable *t = csv_load (path, &error);
  g_assert_no_error (error);
  return t;
}

static void wrong (const CsvTable *t, guint row, const char *format, ...) G_GNUC_PRINTF (3, 4);

static void
wrong (const CsvTable *t, guint row, const char *format, ...)
{
  va_list ap;
  va_start (ap, format);
  g_autofree char *what = g_strdup_vprintf (format, ap);
  va_end (ap);
  g_test_message ("%s:%u: %s", csv_name (t), csv_line (t, row), what);
  g_test_fail ();
}

static const char *
cell (const CsvTable *t, guint row, const char *column)
{
  int col = csv_col (t, column);
  g_assert_cmpint (col, >=, 0);
  return csv_cell (t, row, col);
}

/* 0 when the cell is empty; every other cell of a numeric column must be a number. */
static double
number (const CsvTable *t, guint row, const char *column)
{
  g_autoptr (GError) error = NULL;
  double v = 0;
  if (*cell (t, row, column) != '\0')
    csv_double (t, row, csv_col (t, column), &v, &error);
  g_assert_no_error (error);
  return v;
}

static void
test_rows (void)
{
  g_autoptr (CsvTable) t = load ();
  g_assert_cmpuint (csv_n_rows (t), ==, 1849);
  g_assert_cmpuint (csv_n_cols (t), ==, 47);
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint r = 0; r < csv_n_rows (t); r++) {
    g_assert_true (g_hash_table_add (seen, (gpointer)cell (t, r, "id")));
    g_assert_cmpstr (cell (t, r, "source_title"), !=, "");
    g_assert_cmpstr (cell (t, r, "source_ref"), !=, "");
    g_assert_nonnull (strchr ("ABC", *cell (t, r, "class")));
    g_assert_true (*cell (t, r, "step_time_s") || *cell (t, r, "tokens_per_s_per_gpu") ||
                   *cell (t, r, "tflops_per_gpu") || *cell (t, r, "mfu_pct") ||
                   *cell (t, r, "time_to_train") ||
                   strstr (cell (t, r, "metric_note"), "printed_total_"));
  }
}

static void
test_tags (void)
{
  static const char *const columns[] = {"metric_note", "comments"};
  g_autoptr (CsvTable) t = load ();
  const char *top = g_getenv ("G_TEST_SRCDIR");
  g_autofree char *path =
      g_build_filename (top ? top : ".", "scenarios", "published", "README.md", NULL);
  g_autofree char *readme = NULL;
  g_assert_true (g_file_get_contents (path, &readme, NULL, NULL));
  guint tags = 0;
  for (guint r = 0; r < csv_n_rows (t); r++)
    for (gsize c = 0; c < G_N_ELEMENTS (columns); c++) {
      g_auto (GStrv) words = g_strsplit (cell (t, r, columns[c]), " ", -1);
      for (char **w = words; *w; w++, tags++) {
        char *equals = strchr (*w, '=');
        if (equals == NULL || equals == *w || equals[1] == '\0') {
          wrong (t, r, "\"%s\" is not key=value", *w);
          continue;
        }
        *equals = '\0';
        g_autofree char *quoted = g_strdup_printf ("`%s`", *w);
        if (strstr (readme, quoted) == NULL)
          wrong (t, r, "tag %s is not explained in README.md", quoted);
      }
    }
  g_assert_cmpuint (tags, >, 3000);
}

static gboolean
flagged (const CsvTable *t, guint row)
{
  return strstr (cell (t, row, "comments"), "CONTRADICTION") != NULL;
}

static void
test_layouts (void)
{
  g_autoptr (CsvTable) t = load ();
  guint checked = 0, flags = 0;
  for (guint r = 0; r < csv_n_rows (t); r++) {
    double tp = number (t, r, "tp"), pp = number (t, r, "pp"), dp = number (t, r, "dp");
    double gpus = number (t, r, "num_gpus"), mbs = number (t, r, "mbs");
    double gbs = number (t, r, "gbs"), ep = number (t, r, "ep");
    double cp = fmax (1, number (t, r, "cp"));
    flags += flagged (t, r) ? 1 : 0;
    if (flagged (t, r) || tp * pp * dp * gpus <= 0)
      continue;
    checked++;
    if (tp * pp * cp * dp != gpus || ep > tp * cp * dp ||
        (mbs * gbs > 0 && fmod (gbs, mbs * dp) != 0))
      wrong (t, r, "the layout does not multiply to the GPUs or the batch");
  }
  g_assert_cmpuint (checked, >, 1500);
  g_assert_cmpuint (flags, ==, 13);
}

static void
test_rates (void)
{
  g_autoptr (CsvTable) t = load ();
  guint checked = 0;
  for (guint r = 0; r < csv_n_rows (t); r++) {
    double batch_tokens = number (t, r, "gbs") * number (t, r, "seq_len");
    double by_rate = number (t, r, "tokens_per_s_per_gpu") * number (t, r, "num_gpus") *
                     number (t, r, "step_time_s");
    if (flagged (t, r) || batch_tokens * by_rate <= 0)
      continue;
    checked++;
    if (fabs (by_rate / batch_tokens - 1) > 0.02)
      wrong (t, r, "rate and step time disagree");
  }
  g_assert_cmpuint (checked, >, 200);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/published/rows", test_rows);
  g_test_add_func ("/published/tags", test_tags);
  g_test_add_func ("/published/layouts", test_layouts);
  g_test_add_func ("/published/rates", test_rates);
  return g_test_run ();
}
