/* csv: what RFC 4180 allows is read, what it does not is refused with the line, and nothing
 * crashes. Expected cells are written out by hand beside each text. */
#include "csv.h"

#include <string.h>
#include <time.h>

#include <glib/gstdio.h>

static CsvTable *
must_parse (const char *text)
{
  GError *error = NULL;
  CsvTable *t = csv_parse ("t.csv", text, strlen (text), &error);
  g_assert_no_error (error);
  g_assert_nonnull (t);
  return t;
}

/* The text is refused with exactly this message. */
static void
refused_len (const char *text, gsize len, const char *message)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (CsvTable) t = csv_parse ("t.csv", text, len, &error);
  g_assert_null (t);
  g_assert_nonnull (error);
  g_assert_cmpstr (error->message, ==, message);
}

static void
refused (const char *text, const char *message)
{
  refused_len (text, strlen (text), message);
}

static void
test_plain (void)
{
  g_autoptr (CsvTable) t = must_parse ("id,gpus,note\na,8,\nb,16,x y\n");
  g_assert_cmpuint (csv_n_rows (t), ==, 2);
  g_assert_cmpuint (csv_n_cols (t), ==, 3);
  g_assert_cmpint (csv_col (t, "gpus"), ==, 1);
  g_assert_cmpint (csv_col (t, "GPUS"), ==, -1);
  g_assert_cmpint (csv_col (t, ""), ==, -1);
  g_assert_cmpstr (csv_col_name (t, 2), ==, "note");
  g_assert_cmpstr (csv_cell (t, 0, 0), ==, "a");
  g_assert_cmpstr (csv_cell (t, 0, 2), ==, "");
  g_assert_cmpstr (csv_cell (t, 1, 2), ==, "x y");
  g_assert_cmpstr (csv_cell (t, 1, -1), ==, ""); /* an absent column has no entries */
  g_assert_cmpuint (csv_line (t, 0), ==, 2);
  g_assert_cmpuint (csv_line (t, 1), ==, 3);
  g_assert_cmpstr (csv_name (t), ==, "t.csv");
}

/* Quoted fields: separators, doubled quotes, line breaks of both kinds inside; lines count on. */
static void
test_quoted (void)
{
  g_autoptr (CsvTable) t = must_parse ("\"a\",\"b,c\"\r\n"
                                       "\"x\"\"y\",\"two\nlines\r\nand three\"\r\n"
                                       "\"\",\"\"\"\"\r\n"
                                       "\"\n\n\",last");
  g_assert_cmpuint (csv_n_rows (t), ==, 3);
  g_assert_cmpint (csv_col (t, "b,c"), ==, 1);
  g_assert_cmpstr (csv_cell (t, 0, 0), ==, "x\"y");
  g_assert_cmpstr (csv_cell (t, 0, 1), ==, "two\nlines\r\nand three");
  g_assert_cmpstr (csv_cell (t, 1, 0), ==, "");
  g_assert_cmpstr (csv_cell (t, 1, 1), ==, "\"");
  g_assert_cmpstr (csv_cell (t, 2, 0), ==, "\n\n");
  g_assert_cmpstr (csv_cell (t, 2, 1), ==, "last");
  g_assert_cmpuint (csv_line (t, 0), ==, 2);
  g_assert_cmpuint (csv_line (t, 1), ==, 5); /* the record before took lines 2, 3 and 4 */
  g_assert_cmpuint (csv_line (t, 2), ==, 6);
}

static void
test_forms (void)
{
  g_autoptr (CsvTable) bom = must_parse ("\xef\xbb\xbf"
                                         "id , n\r\n1,2\r\n");
  g_assert_cmpint (csv_col (bom, "id"), ==,
                   0); /* neither the mark nor the blanks are in the name */
  g_assert_cmpint (csv_col (bom, "n"), ==, 1);

  g_autoptr (CsvTable) quoted_bom = must_parse ("\xef\xbb\xbf\"id\",n\n1,2");
  g_assert_cmpint (csv_col (quoted_bom, "id"), ==, 0);
  g_assert_cmpstr (csv_cell (quoted_bom, 0, 1), ==, "2");

  g_autoptr (CsvTable) blank = must_parse ("\n\r\nid,n\n\n1,2\r\n\r\n\n3,4\n\n");
  g_assert_cmpuint (csv_n_rows (blank), ==, 2);
  g_assert_cmpuint (csv_line (blank, 0), ==, 5);
  g_assert_cmpuint (csv_line (blank, 1), ==, 8);

  g_autoptr (CsvTable) header_only = must_parse ("id,n");
  g_assert_cmpuint (csv_n_rows (header_only), ==, 0);

  g_autoptr (CsvTable) unnamed = must_parse (",n,\n0,1,2\n"); /* as data frames are often saved */
  g_assert_cmpuint (csv_n_cols (unnamed), ==, 3);
  g_assert_cmpstr (csv_cell (unnamed, 0, csv_col (unnamed, "n")), ==, "1");

  g_autoptr (CsvTable) last_empty = must_parse ("a,b\n1,");
  g_assert_cmpstr (csv_cell (last_empty, 0, 1), ==, "");
}

static void
test_refused (void)
{
  refused ("", "t.csv:1: the table is empty (the first line names the columns)");
  refused ("\n\r\n\n", "t.csv:1: the table is empty (the first line names the columns)");
  refused ("\xef\xbb\xbf", "t.csv:1: the table is empty (the first line names the columns)");
  refused ("a,b\n1,2\n3\n", "t.csv:3: wrong number of fields (found 1; the header has 2)");
  refused ("a,b\n1,2,3\n", "t.csv:2: wrong number of fields (found 3; the header has 2)");
  refused ("a,b\n\"x\ny\",2\n1\n", "t.csv:4: wrong number of fields (found 1; the header has 2)");
  refused ("a,b\n1,\"2\n3,4\n", "t.csv:2: the quote that opens here is never closed");
  refused ("a,\"", "t.csv:1: the quote that opens here is never closed");
  refused ("a,b\n1,\"x\"y\n",
           "t.csv:2: text behind a closing quote (double a quote that is part of a field)");
  refused ("a,b\n1,x\"y\"\n",
           "t.csv:2: a quote inside a field that does not begin with one (quote the whole field)");
  refused ("a,b\r1,2\r", "t.csv:1: carriage return without a line feed");
  refused ("a,b\n1,\"2\"\r", "t.csv:2: carriage return without a line feed");
  refused ("a,b,a\n1,2,3\n", "t.csv:1: column \"a\" stands twice");
  refused ("a,b\n1,\xb1\n", "t.csv:2: the text is not UTF-8 (byte 0xb1; save the table as UTF-8)");
  refused_len ("a,b\n1,\0\n", 8, "t.csv:2: a NUL byte: this is not a text file");
  refused_len ("\xff\xfe"
               "a\0",
               4, "t.csv:1: the text is UTF-16 (save the table as UTF-8)");
}

static void
test_limits (void)
{
  g_autoptr (GString) wide = g_string_new ("c0");
  for (int i = 1; i <= CSV_MAX_COLUMNS; i++)
    g_string_append_printf (wide, ",c%d", i);
  refused (wide->str, "t.csv:1: too many fields (more than 4096)");

  g_autoptr (GString) deep = g_string_new ("a\n\"");
  for (int i = 0; i <= CSV_MAX_FIELD_BYTES; i++)
    g_string_append_c (deep, 'x');
  g_autofree char *plain = g_strconcat ("a\n", deep->str + 3, NULL);
  refused (plain, "t.csv:2: a field is longer than 1 MiB");
  g_string_append (deep, "\"\n");
  refused (
      deep->str,
      "t.csv:2: the quote that opens here is never closed (no field may be longer than 1 MiB)");

  GError *error = NULL;
  g_assert_null (csv_parse ("t.csv", "", CSV_MAX_BYTES + (gsize)1, &error));
  g_assert_error (error, CSV_ERROR, CSV_ERROR_FILE);
  g_clear_error (&error);
}

static void
test_numbers (void)
{
  g_autoptr (CsvTable) t = must_parse ("v,w\n 1.5e3 ,\nnan,inf\n1 2,0x10\n1e999,-0\n1.,+7\n");
  double v = -1;
  g_autoptr (GError) error = NULL;
  g_assert_true (csv_double (t, 0, 0, &v, &error));
  g_assert_cmpfloat (v, ==, 1500.0);
  g_assert_true (csv_double (t, 4, 0, &v, NULL));
  g_assert_cmpfloat (v, ==, 1.0);
  g_assert_true (csv_double (t, 4, 1, &v, NULL));
  g_assert_cmpfloat (v, ==, 7.0);
  g_assert_true (csv_double (t, 2, 1, &v, NULL)); /* hexadecimal, as C reads it */
  g_assert_cmpfloat (v, ==, 16.0);
  v = 42;
  g_assert_false (csv_double (t, 0, 1, &v, NULL)); /* empty is not zero */
  g_assert_false (csv_double (t, 1, 0, &v, NULL));
  g_assert_false (csv_double (t, 1, 1, &v, NULL));
  g_assert_false (csv_double (t, 3, 0, &v, NULL));
  g_assert_false (csv_double (t, 0, -1, &v, NULL));
  g_assert_cmpfloat (v, ==, 42.0); /* untouched */
  g_assert_false (csv_double (t, 2, 0, &v, &error));
  g_assert_cmpstr (error->message, ==,
                   "t.csv:4: column \"v\": not a finite number (found \"1 2\")");
}

static void
test_columns (void)
{
  g_autoptr (CsvTable) t = must_parse ("id,gpus\n1,2\n");
  g_autoptr (GError) error = NULL;
  g_assert_cmpint (csv_require_col (t, "gpus", &error), ==, 1);
  g_assert_no_error (error);
  g_assert_cmpint (csv_require_col (t, "mfu", &error), ==, -1);
  g_assert_error (error, CSV_ERROR, CSV_ERROR_COLUMN);
  g_assert_cmpstr (error->message, ==, "t.csv:1: column \"mfu\" is missing (found: id, gpus)");
}

static void
test_files (void)
{
  GError *error = NULL;
  g_assert_null (csv_load ("/nonexistent/t.csv", &error));
  g_assert_error (error, CSV_ERROR, CSV_ERROR_FILE);
  g_clear_error (&error);
  g_assert_null (csv_load ("/", &error)); /* a folder opens, but does not read */
  g_assert_error (error, CSV_ERROR, CSV_ERROR_FILE);
  g_clear_error (&error);
  g_assert_null (csv_load ("/dev/zero", &error)); /* without an end */
  g_assert_error (error, CSV_ERROR, CSV_ERROR_FILE);
  g_clear_error (&error);

  g_autofree char *path = NULL;
  int fd = g_file_open_tmp ("test-csv-XXXXXX", &path, &error);
  g_assert_no_error (error);
  g_close (fd, NULL);
  g_assert_true (g_file_set_contents (path, "a,b\n1,\"2\n3\"", -1, &error));
  g_autoptr (CsvTable) t = csv_load (path, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (csv_cell (t, 0, 1), ==, "2\n3");
  g_unlink (path);
}

/* Any cut of a table with every feature, and any one byte of it replaced, is read or refused, never
 * worse; and a table that is read writes back to the same table. */
static char *
written (const CsvTable *t)
{
  GString *s = g_string_new (NULL);
  for (int row = -1; row < (int)csv_n_rows (t); row++)
    for (guint c = 0; c < csv_n_cols (t); c++) {
      const char *cell = row < 0 ? csv_col_name (t, c) : csv_cell (t, (guint)row, (int)c);
      g_auto (GStrv) parts = g_strsplit (cell, "\"", -1);
      g_autofree char *doubled = g_strjoinv ("\"\"", parts);
      g_string_append_printf (s, "\"%s\"%s", doubled, c + 1 < csv_n_cols (t) ? "," : "\n");
    }
  return g_string_free (s, FALSE);
}

static void
read_or_refuse (const char *text, gsize len, guint *read, guint *refused_count)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (CsvTable) t = csv_parse ("t.csv", text, len, &error);
  if (t == NULL) {
    g_assert_nonnull (error);
    g_assert_true (g_str_has_prefix (error->message, "t.csv:"));
    ++*refused_count;
    return;
  }
  g_autofree char *once = written (t);
  g_autoptr (CsvTable) again = must_parse (once);
  g_autofree char *twice = written (again);
  g_assert_cmpstr (once, ==, twice);
  g_assert_cmpuint (csv_n_rows (t), ==, csv_n_rows (again));
  ++*read;
}

static void
test_hostile (void)
{
  static const char text[] =
      "\xef\xbb\xbfid,\"na\"\"me\",x\r\n1,\"a,\nb\",\xc3\xa9\n\n\"\"\"\",,3\n";
  static const char bytes[] = {0, '\n', '\r', ',', '"', 'x', '\xff', '\xef'};
  gsize len = sizeof text - 1;
  guint read = 0, refused_count = 0;
  for (gsize i = 0; i <= len; i++)
    read_or_refuse (text, i, &read, &refused_count);
  for (gsize i = 0; i < len; i++)
    for (gsize b = 0; b < sizeof bytes; b++) {
      char changed[sizeof text];
      memcpy (changed, text, sizeof text);
      changed[i] = bytes[b];
      read_or_refuse (changed, len, &read, &refused_count);
    }
  g_assert_cmpuint (read, >, 50); /* both happen, or the test tests nothing */
  g_assert_cmpuint (refused_count, >, 100);
}

static double
cpu_ms (void)
{
  struct timespec t;
  g_assert_cmpint (clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t), ==, 0);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* 12,000 rows of 40 columns are read whole; the processor time is told, not judged. */
static void
test_speed (void)
{
  g_autoptr (GString) s = g_string_new ("c0");
  for (int c = 1; c < 40; c++)
    g_string_append_printf (s, ",c%d", c);
  for (int r = 0; r < 12000; r++) {
    g_string_append (s, "\n\"row, with quote\"");
    for (int c = 1; c < 40; c++)
      g_string_append (s, ",1234.5");
  }
  double before = cpu_ms ();
  g_autoptr (CsvTable) t = must_parse (s->str);
  double ms = cpu_ms () - before;
  g_test_message ("12,000 rows of 40 columns: %.1f ms", ms);
  g_assert_cmpuint (csv_n_rows (t), ==, 12000);
}

/* The measurements the facts come from, where they are at hand. */
static void
test_shared (void)
{
  const char *shared = g_getenv ("CLUSTERSIM_SHARED");
  if (shared == NULL) {
    g_test_skip ("CLUSTERSIM_SHARED is not set");
    return;
  }
  static const struct {
    const char *file, *column;
    guint rows;
  } tables[] = {{"data/runs.csv", "step_time_s", 1849},
                {"data/collectives.csv", "busbw_GBps", 0},
                {"data/gemm.csv", "k", 0}};
  for (gsize i = 0; i < G_N_ELEMENTS (tables); i++) {
    g_autofree char *path = g_build_filename (shared, tables[i].file, NULL);
    g_autoptr (GError) error = NULL;
    g_autoptr (CsvTable) t = csv_load (path, &error);
    g_assert_no_error (error);
    g_assert_cmpint (csv_col (t, tables[i].column), >=, 0);
    if (tables[i].rows)
      g_assert_cmpuint (csv_n_rows (t), ==, tables[i].rows);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/csv/plain", test_plain);
  g_test_add_func ("/csv/quoted", test_quoted);
  g_test_add_func ("/csv/forms", test_forms);
  g_test_add_func ("/csv/refused", test_refused);
  g_test_add_func ("/csv/limits", test_limits);
  g_test_add_func ("/csv/numbers", test_numbers);
  g_test_add_func ("/csv/columns", test_columns);
  g_test_add_func ("/csv/files", test_files);
  g_test_add_func ("/csv/hostile", test_hostile);
  g_test_add_func ("/csv/speed", test_speed);
  g_test_add_func ("/csv/shared", test_shared);
  return g_test_run ();
}
