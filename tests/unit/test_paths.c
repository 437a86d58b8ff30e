/* Finding shipped files, and output that is whole or not there. */
#include "fileio.h"
#include "json_read.h"
#include "paths.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
  char *dir;
} Fixture;

static void
put (const Fixture *f, const char *folder, const char *name)
{
  g_autofree char *dir = g_build_filename (f->dir, folder, NULL);
  g_autofree char *path = g_build_filename (dir, name, NULL);
  g_assert_cmpint (g_mkdir_with_parents (dir, 0700), ==, 0);
  g_assert_true (g_file_set_contents (path, "{}", 2, NULL));
}

static void
set_up (Fixture *f, gconstpointer data G_GNUC_UNUSED)
{
  f->dir = g_dir_make_tmp ("clustersim-paths-XXXXXX", NULL);
  put (f, "hw", "H100-SXM-80GB.json");
  put (f, "hw", "A100-SXM-80GB.json");
  put (f, "hw", ".hidden.json");
  put (f, "hw", "README.md");
  put (f, "zz-own", "b.json");
  put (f, "zz-own", "a.json");
  g_setenv ("CLUSTERSIM_SCENARIOS", f->dir, TRUE);
}

static void
remove_tree (const char *path)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  const char *entry;
  while (dir != NULL && (entry = g_dir_read_name (dir)) != NULL) {
    g_autofree char *child = g_build_filename (path, entry, NULL);
    if (!g_file_test (child, G_FILE_TEST_IS_SYMLINK) && g_file_test (child, G_FILE_TEST_IS_DIR))
      remove_tree (child);
    else
      g_unlink (child);
  }
  g_rmdir (path);
}

static void
tear_down (Fixture *f, gconstpointer data G_GNUC_UNUSED)
{
  g_unsetenv ("CLUSTERSIM_SCENARIOS");
  remove_tree (f->dir);
  g_free (f->dir);
}

static void
test_find (Fixture *f, gconstpointer data G_GNUC_UNUSED)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *expected = g_build_filename (f->dir, "hw", "H100-SXM-80GB.json", NULL);
  g_autofree char *named = data_find ("hw", "H100-SXM-80GB", NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (named, ==, expected);

  /* A path is relative to the file that mentions it. */
  g_autofree char *from = g_build_filename (f->dir, "zz-own", "a.json", NULL);
  g_autofree char *beside = data_find ("hw", "b.json", from, &error);
  g_autofree char *up = data_find ("hw", "../hw/H100-SXM-80GB.json", from, &error);
  g_autofree char *absolute = data_find ("hw", expected, from, &error);
  g_assert_no_error (error);
  g_assert_true (g_str_has_suffix (beside, "/zz-own/b.json"));
  g_assert_true (g_file_test (up, G_FILE_TEST_EXISTS));
  g_assert_cmpstr (absolute, ==, expected);

  /* … else to the working directory. */
  g_autofree char *was = g_get_current_dir ();
  g_assert_cmpint (g_chdir (f->dir), ==, 0);
  g_autofree char *here = data_find ("hw", "zz-own/a.json", NULL, &error);
  g_autofree char *same = data_find ("hw", "zz-own/a.json", "me.json", &error);
  g_assert_cmpint (g_chdir (was), ==, 0);
  g_assert_no_error (error);
  g_assert_cmpstr (here, ==, "zz-own/a.json");
  g_assert_cmpstr (same, ==, "zz-own/a.json");
}

static void
test_unknown (Fixture *f G_GNUC_UNUSED, gconstpointer data G_GNUC_UNUSED)
{
  static const struct {
    const char *kind, *name;
    JsonError code;
    const char *message;
  } cases[] = {
      {"hw", "H100-SXM-80", JSON_ERROR_RANGE,
       "unknown GPU (found \"H100-SXM-80\"; nearest: H100-SXM-80GB; see `clustersim list gpus`)"},
      {"zz-own", "qqqqqq", JSON_ERROR_RANGE, "unknown zz-own (found \"qqqqqq\"; allowed: a, b)"},
      {"zz-none", "x", JSON_ERROR_RANGE,
       "unknown zz-none (found \"x\"; allowed: none; no shipped files were found)"},
      {"hw", "nowhere/x.json", JSON_ERROR_FILE, "no such file (found \"nowhere/x.json\")"},
      {"hw", "x.json", JSON_ERROR_FILE, "no such file (found \"x.json\")"},
      {"zz-own", "", JSON_ERROR_RANGE, "unknown zz-own (found \"\"; allowed: a, b)"},
      {"zz-own", "..", JSON_ERROR_RANGE, "unknown zz-own (found \"..\"; allowed: a, b)"},
      {"zz-own", "\x1b[1m\n", JSON_ERROR_RANGE,
       "unknown zz-own (found \"\\u001b[1m\\n\"; allowed: a, b)"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_assert_null (data_find (cases[i].kind, cases[i].name, NULL, &error));
    g_assert_error (error, JSON_ERROR, (int)cases[i].code);
    g_assert_cmpstr (error->message, ==, cases[i].message);
  }
}

static void
test_list (Fixture *f G_GNUC_UNUSED, gconstpointer data G_GNUC_UNUSED)
{
  g_auto (GStrv) own = data_list ("zz-own");
  g_auto (GStrv) none = data_list ("zz-none");
  g_auto (GStrv) gpus = data_list ("hw");
  g_assert_cmpstr (own[0], ==, "a");
  g_assert_cmpstr (own[1], ==, "b");
  g_assert_null (own[2]);
  g_assert_null (none[0]);
  g_assert_true (g_strv_contains ((const char *const *)gpus, "H100-SXM-80GB"));
  for (guint i = 1; gpus[i] != NULL; i++) /* sorted, each once, whatever else ships */
    g_assert_cmpstr (gpus[i - 1], <, gpus[i]);
}

/* ---- output ---- */

static guint
entries (const char *path)
{
  guint n = 0;
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

static void
assert_contents (const char *path, const char *expected)
{
  g_autofree char *text = NULL;
  g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
  g_assert_cmpstr (text, ==, expected);
}

static void
test_output (Fixture *f, gconstpointer data G_GNUC_UNUSED)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_build_filename (f->dir, "out", NULL);
  g_autofree char *path = g_build_filename (dir, "r.json", NULL);
  g_autofree char *link = g_build_filename (dir, "link", NULL);
  g_mkdir (dir, 0700);
  g_assert_true (output_write (path, "one", -1, &error));
  assert_contents (path, "one");
  g_assert_true (output_write (path, "two", 3, &error));
  g_assert_true (output_write (path, "", 0, &error));
  assert_contents (path, "");
  g_assert_true (output_write (path, "old", -1, &error));

  /* Until the commit the old file is there; an abort leaves it, and nothing beside it. */
  Output *o = output_open (path, &error);
  fputs ("new", output_stream (o));
  assert_contents (path, "old");
  output_abort (o);
  assert_contents (path, "old");
  g_assert_cmpuint (entries (dir), ==, 1);

  /* Mode and link of what was there stay. */
  g_assert_cmpint (g_chmod (path, 0640), ==, 0);
  g_assert_cmpint (symlink ("r.json", link), ==, 0);
  g_assert_true (output_write (link, "through", -1, &error));
  g_assert_no_error (error);
  assert_contents (path, "through");
  g_assert_true (g_file_test (link, G_FILE_TEST_IS_SYMLINK));
  GStatBuf st;
  g_assert_cmpint (g_stat (path, &st), ==, 0);
  g_assert_cmpint (st.st_mode & 0777, ==, 0640);
  g_assert_cmpuint (entries (dir), ==, 2);
}

static void
test_output_errors (Fixture *f, gconstpointer data G_GNUC_UNUSED)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *nowhere = g_build_filename (f->dir, "no", "such", "r.json", NULL);
  g_autofree char *expected =
      g_strconcat (nowhere, ": cannot be written (No such file or directory)", NULL);
  g_assert_false (output_write (nowhere, "x", -1, &error));
  g_assert_error (error, FILEIO_ERROR, FILEIO_ERROR_OPEN);
  g_assert_cmpstr (error->message, ==, expected);
  g_clear_error (&error);
  g_assert_false (output_write (f->dir, "x", -1, &error));
  g_assert_error (error, FILEIO_ERROR, FILEIO_ERROR_OPEN);
  g_clear_error (&error);
  g_assert_false (output_write ("", "x", -1, &error));
  g_assert_error (error, FILEIO_ERROR, FILEIO_ERROR_OPEN);
  g_clear_error (&error);
  /* A device is written in place, and a full one is an error. */
  g_assert_true (output_write ("/dev/null", "x", -1, &error));
  g_assert_true (g_file_test ("/dev/null", G_FILE_TEST_EXISTS));
  g_assert_false (g_file_test ("/dev/null", G_FILE_TEST_IS_REGULAR));
  if (g_file_test ("/dev/full", G_FILE_TEST_EXISTS)) {
    g_assert_false (output_write ("/dev/full", "x", -1, &error));
    g_assert_error (error, FILEIO_ERROR, FILEIO_ERROR_WRITE);
    g_assert_nonnull (strstr (error->message, "No space left"));
    g_clear_error (&error);
    g_autofree char *much = g_strnfill (1 << 20, 'x');
    g_assert_false (output_write ("/dev/full", much, 1 << 20, &error));
    g_assert_nonnull (strstr (error->message, "No space left"));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add ("/paths/find", Fixture, NULL, set_up, test_find, tear_down);
  g_test_add ("/paths/unknown", Fixture, NULL, set_up, test_unknown, tear_down);
  g_test_add ("/paths/list", Fixture, NULL, set_up, test_list, tear_down);
  g_test_add ("/fileio/output", Fixture, NULL, set_up, test_output, tear_down);
  g_test_add ("/fileio/errors", Fixture, NULL, set_up, test_output_errors, tear_down);
  return g_test_run ();
}
