/* gantt: the timeline of a step as text, for small cases and for a terminal.
 *
 * A row a stage (the first and the last 16 when there are more), a column a hundredth of the step:
 * what the compute stream of the rank does for most of that time. Forward passes are the last digit
 * of their micro-batch, backward passes a letter (a: micro-batch 0), "W" a weight gradient, "O" the
 * optimizer, "=" anything else, "." waiting. */
#ifndef CLUSTERSIM_GANTT_H
#define CLUSTERSIM_GANTT_H

#include <glib.h>

/* trace_csv: a file of trace_csv_new. Errors: those of csv.h. */
gboolean gantt_text (GString *out, const char *trace_csv, GError **error);

#endif
