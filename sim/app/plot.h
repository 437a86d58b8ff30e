/* plot: the standard pictures, drawn by gnuplot from a table.
 *
 * What a kind needs is checked here (columns, numbers, how many rows), so that gnuplot sees only
 * what it can draw: the columns of the kind, separated by tabs, without quotes. The scripts are
 * plots/KIND.gp, looked for in $CLUSTERSIM_PLOTS, then "plots" above the program's folder, then
 * share/clustersim/plots beside it, then CLUSTERSIM_DATADIR/plots. gnuplot runs without a shell and
 * without the user's own settings, so the same table gives the same SVG.
 *
 * Errors: PLOT_ERROR for a kind or file name, CSV_ERROR for the table, G_SPAWN_ERROR and
 * G_SPAWN_EXIT_ERROR when gnuplot is missing or fails, FILEIO_ERROR when out cannot be written. */
#ifndef CLUSTERSIM_PLOT_H
#define CLUSTERSIM_PLOT_H

#include "csv.h"

#define PLOT_ERROR plot_error_quark ()
GQuark plot_error_quark (void);
typedef enum {
  PLOT_ERROR_KIND,   /* no such kind; the nearest is named */
  PLOT_ERROR_FORMAT, /* out ends in neither .svg nor .png */
  PLOT_ERROR_SCRIPT  /* the script of the kind is nowhere */
} PlotError;

extern const char *const plot_kinds[]; /* NULL-terminated */

/* What is wrong with the call, before any file is read; plot_draw asks it too. */
gboolean plot_check (const char *kind, const char *out, GError **error);

/* Draws table to out (*.svg or *.png), which is replaced as a whole or not at all. title and
 * caption may be NULL. n_left_out, may be NULL: rows that the kind leaves out (validate: no
 * prediction). */
gboolean plot_draw (const char *kind, const CsvTable *table, const char *out, const char *title,
                    const char *caption, guint *n_left_out, GError **error);

#endif
