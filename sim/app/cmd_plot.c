#include "cli.h"
#include "commands.h"
#include "plot.h"
#include "text.h"

#include <stdio.h>

static gboolean
run (const char *kind, const char *path, const CliCommon *c, const char *title, const char *caption,
     GError **error)
{
  guint left_out = 0;
  if (c->output == NULL) {
    g_set_error_literal (error, CLI_ERROR, CLI_ERROR_USAGE,
                         "plot: where to? (missing: -o FILE.svg or -o FILE.png)");
    return FALSE;
  }
  if (!plot_check (kind, c->output, error))
    return FALSE;
  g_autoptr (CsvTable) table = csv_load (path, error);
  if (table == NULL || !plot_draw (kind, table, c->output, title, caption, &left_out, error))
    return FALSE;
  if (left_out > 0 && !c->quiet)
    fprintf (stderr, "clustersim: %s: %u of %u rows have nothing to draw and were left out\n", path,
             left_out, csv_n_rows (table));
  return TRUE;
}

int
cmd_plot_run (int argc, char **argv)
{
  g_auto (CliCommon) c = {0};
  g_autofree char *title = NULL, *caption = NULL;
  GError *error = NULL;
  const GOptionEntry entries[] = {
      {"title", 0, 0, G_OPTION_ARG_STRING, &title, "Line above the picture", "TEXT"},
      {"caption", 0, 0, G_OPTION_ARG_STRING, &caption, "Lines below it: what stood still", "TEXT"},
      G_OPTION_ENTRY_NULL};
  g_autofree char *all = text_list (plot_kinds, 20);
  g_autofree char *summary = g_strdup_printf (
      "Draws a table with gnuplot. KIND: %s.\nplots/README.md lists the columns that each needs.",
      all);
  const CliHelp help = {"KIND DATA.csv -o FILE.svg|.png",
                        summary,
                        "clustersim plot scaling sweep.csv -o scaling.svg --title 'Weak scaling'",
                        2,
                        2,
                        TRUE};
  if (!cli_parse (&argc, &argv, &help, entries, &c, &error))
    return cli_fail (error);
  return run (argv[1], argv[2], &c, title, caption, &error) ? CLI_DONE : cli_fail (error);
}
