/* plot: a picture or an error, never half a file; hostile texts draw as text. Tests that draw are
 * skipped where gnuplot is not installed. */
#include "plot.h"
#include "fileio.h"

#include <string.h>

#include <glib/gstdio.h>

static CsvTable *
parse (const char *text)
{
  GError *error = NULL;
  CsvTable *t = csv_parse ("t.csv", text, strlen (text), &error);
  g_assert_no_error (error);
  return t;
}

static char *
make_folder (void)
{
  GError *error = NULL;
  char *folder = g_dir_make_tmp ("test-plot-XXXXXX", &error);
  g_assert_no_error (error);
  return folder;
}

static gboolean
no_gnuplot (void)
{
  g_autofree char *found = g_find_program_in_path ("gnuplot");
  if (found == NULL)
    g_test_skip ("gnuplot is not installed");
  return found == NULL;
}

/* The table is refused with exactly this message, and nothing is written. */
static void
refused (const char *kind, const char *out, const char *text, const char *message)
{
  g_autofree char *folder = make_folder ();
  g_autofree char *path = g_build_filename (folder, out, NULL);
  g_autoptr (CsvTable) t = parse (text);
  g_autoptr (GError) error = NULL;
  g_assert_false (plot_draw (kind, t, path, NULL, NULL, NULL, &error));
  g_assert_nonnull (error);
  if (strstr (message, "%PATH%") != NULL) {
    g_auto (GStrv) parts = g_strsplit (message, "%PATH%", 2);
    g_assert_true (g_str_has_prefix (error->message, parts[0]));
    g_assert_true (g_str_has_suffix (error->message, parts[1]));
  } else
    g_assert_cmpstr (error->message, ==, message);
  g_assert_cmpint (g_rmdir (folder), ==, 0); /* it is empty */
}

#define SCALING "series,gpus,tokens_per_s,mfu\n"

static void
test_refused (void)
{
  refused ("scalng", "a.svg", SCALING,
           "unknown kind of plot (found \"scalng\"; nearest: scaling; allowed: scaling, step, "
           "memory, validate, checkpoint, goodput, cost, loss, gantt, busbw, pareto, "
           "fabric)");
  refused (
      "step", "a.pdf", SCALING,
      "the name of a picture ends in its format (found \"%PATH%/a.pdf\"; allowed: .svg, .png)");
  refused ("scaling", "a.svg", "series,gpus,mfu\nx,8,0.4\n",
           "t.csv:1: column \"tokens_per_s\" is missing (found: series, gpus, mfu)");
  refused ("scaling", "a.svg", SCALING, "t.csv: no rows to draw (found 0, all left out)");
  refused ("scaling", "a.svg", SCALING "x,8,1000,\n",
           "t.csv:2: column \"mfu\": not a finite number (found \"\")");
  refused ("scaling", "a.svg", SCALING "x,8,1000,.4\nx,0,1000,.4\n",
           "t.csv:3: column \"gpus\" must be above zero on a logarithmic axis (found 0)");
  refused ("scaling", "a.svg", SCALING "x,8,nan,.4\n",
           "t.csv:2: column \"tokens_per_s\": not a finite number (found \"nan\")");
  refused ("scaling", "a.svg", SCALING "x,8,1000,-.4\n",
           "t.csv:2: column \"mfu\" must not be negative (found -0.4)");
  refused ("validate", "a.svg", "id,group,published,predicted\na,g,1,\nb,g,,2\n",
           "t.csv: no rows to draw (found 2, all left out)");
}

static void
test_too_many (void)
{
  g_autoptr (GString) series = g_string_new (SCALING);
  for (int i = 0; i < 33; i++)
    g_string_append_printf (series, "s%d,8,1000,.4\n", i);
  refused ("scaling", "a.svg", series->str,
           "t.csv: too many series for a picture of kind scaling (found 33 or more; allowed: 32)");
  g_autoptr (GString) bars =
      g_string_new ("label,compute_s,tp_comm_s,cp_comm_s,ep_comm_s,pp_comm_s,dp_comm_s,bubble_s,"
                    "optimizer_s,host_s,data_s,other_s\n");
  for (int i = 0; i < 201; i++)
    g_string_append (bars, "x,1,1,1,1,1,1,1,1,1,1,1\n");
  refused ("step", "a.svg", bars->str,
           "t.csv: too many rows for a picture of kind step (found 201 or more; allowed: 200)");
}

/* The samples of each kind, in both formats: the right magic bytes, and the same SVG twice. */
static void
test_samples (void)
{
  if (no_gnuplot ())
    return;
  g_autofree char *folder = make_folder ();
  for (guint k = 0; plot_kinds[k] != NULL; k++) {
    g_autofree char *csv = g_strdup_printf ("tests/data/plot/%s.csv", plot_kinds[k]);
    g_autofree char *svg = g_build_filename (folder, "a.svg", NULL);
    g_autofree char *png = g_build_filename (folder, "a.png", NULL);
    g_autofree char *first = NULL, *second = NULL, *image = NULL;
    gsize len;
    guint left_out = 99;
    g_autoptr (GError) error = NULL;
    g_autoptr (CsvTable) t = csv_load (csv, &error);
    g_assert_no_error (error);

    g_assert_true (plot_draw (plot_kinds[k], t, svg, "Title", "A caption", &left_out, &error));
    g_assert_no_error (error);
    g_assert_cmpuint (left_out, ==, strcmp (plot_kinds[k], "validate") == 0 ? 1 : 0);
    g_assert_true (g_file_get_contents (svg, &first, NULL, NULL));
    g_assert_nonnull (strstr (first, "<svg"));
    g_assert_nonnull (strstr (first, "A caption"));
    g_assert_true (plot_draw (plot_kinds[k], t, svg, "Title", "A caption", NULL, &error));
    g_assert_true (g_file_get_contents (svg, &second, NULL, NULL));
    g_assert_cmpstr (first, ==, second);

    g_assert_true (plot_draw (plot_kinds[k], t, png, NULL, NULL, NULL, &error));
    g_assert_no_error (error);
    g_assert_true (g_file_get_contents (png, &image, &len, NULL));
    g_assert_cmpuint (len, >, 5000);
    g_assert_cmpint (memcmp (image, "\x89PNG\r\n\x1a\n", 8), ==, 0);
    g_unlink (svg);
    g_unlink (png);
  }
  g_assert_cmpint (g_rmdir (folder), ==, 0);
}

/* Quotes, commands, macros and mark-up in texts stand in the picture as they are (in SVG escaped).
 */
static void
test_hostile_text (void)
{
  if (no_gnuplot ())
    return;
  g_autofree char *folder = make_folder ();
  g_autofree char *svg = g_build_filename (folder, "it's a \"name\" $x.svg", NULL);
  g_autofree char *mark = g_build_filename (folder, "mark", NULL);
  g_autofree char *title =
      g_strdup_printf ("'; system \"touch %s\" # `touch %s` @x $y <b> {/Bold z}_2", mark, mark);
  g_autofree char *rows = g_strdup_printf (
      SCALING "\"a, \"\"quoted\"\"\n`touch %s` <i>\",8,1000,.4\n\"\",16,1900,.38\n", mark);
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (CsvTable) t = parse (rows);
  g_assert_true (plot_draw ("scaling", t, svg, title, title, NULL, &error));
  g_assert_no_error (error);
  g_assert_false (g_file_test (mark, G_FILE_TEST_EXISTS));
  g_assert_true (g_file_get_contents (svg, &text, NULL, NULL));
  g_assert_nonnull (strstr (text, "&lt;b> {/Bold z}_2"));
  g_assert_nonnull (strstr (text, "a, 'quoted' `touch"));
  g_assert_nonnull (strstr (text, "(none)"));
  g_unlink (svg);
  g_assert_cmpint (g_rmdir (folder), ==, 0);
}

/* What was there stays when the picture cannot be drawn or written. */
static void
test_failures (void)
{
  g_autofree char *folder = make_folder ();
  g_autofree char *svg = g_build_filename (folder, "a.svg", NULL);
  g_autofree char *kept = NULL;
  g_autofree char *path = g_strdup (g_getenv ("PATH"));
  g_autoptr (CsvTable) t = parse (SCALING "x,8,1000,.4\n");
  GError *error = NULL;
  g_assert_true (g_file_set_contents (svg, "kept", -1, NULL));

  g_setenv ("PATH", folder, TRUE);
  g_assert_false (plot_draw ("scaling", t, svg, NULL, NULL, NULL, &error));
  g_assert_error (error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT);
  g_assert_nonnull (strstr (error->message, "gnuplot-nox"));
  g_clear_error (&error);

  g_autofree char *fake = g_build_filename (folder, "gnuplot", NULL);
  g_assert_true (g_file_set_contents (
      fake, "#!/bin/sh\necho '  first' >&2\necho 'last words' >&2\nexit 3\n", -1, NULL));
  g_assert_cmpint (g_chmod (fake, 0700), ==, 0);
  g_assert_false (plot_draw ("scaling", t, svg, NULL, NULL, NULL, &error));
  g_assert_error (error, G_SPAWN_EXIT_ERROR, 3);
  g_assert_cmpstr (error->message, ==, "gnuplot failed (last words)");
  g_clear_error (&error);
  g_setenv ("PATH", path, TRUE);

  g_assert_true (g_file_get_contents (svg, &kept, NULL, NULL));
  g_assert_cmpstr (kept, ==, "kept");
  if (!no_gnuplot ()) {
    g_assert_false (plot_draw ("scaling", t, "/nonexistent/a.svg", NULL, NULL, NULL, &error));
    g_assert_true (error->domain == FILEIO_ERROR);
    g_clear_error (&error);
  }
  g_unlink (svg);
  g_unlink (fake);
  g_assert_cmpint (g_rmdir (folder), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/plot/refused", test_refused);
  g_test_add_func ("/plot/too-many", test_too_many);
  g_test_add_func ("/plot/samples", test_samples);
  g_test_add_func ("/plot/hostile-text", test_hostile_text);
  g_test_add_func ("/plot/failures", test_failures);
  return g_test_run ();
}
