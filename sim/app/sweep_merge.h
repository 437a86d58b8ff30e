/* sweep_merge: the shards of one sweep into one result, the same bytes as without shards.
 *
 * Shards are CSV (first column point_of_N), JSON lines (members point and points) or databases
 * (*.db). All points must be there, each once. Files are read side by side, a line each, so that
 * memory does not grow with them. Errors: CLI_ERROR_USAGE with the file; CLI_ERROR_FAILED for
 * points that are missing; FILEIO_ERROR. */
#ifndef CLUSTERSIM_SWEEP_MERGE_H
#define CLUSTERSIM_SWEEP_MERGE_H

#include <glib.h>

/* files: NULL-terminated. output: a file, or NULL for stdout. */
gboolean sweep_merge (const char *const *files, const char *output, GError **error);
gboolean sweep_merge_db (const char *const *files, const char *output, GError **error);

#endif
