/* fileio: output that is whole or not there.
 *
 * An Output is written beside its target, in the same folder, and takes the target's name only in
 * output_commit; until then, and after any error, a file that was there before is untouched. What
 * is not a regular file (a device, a pipe) is written directly. "-" or NULL is standard output.
 * Errors: domain FILEIO_ERROR, message "FILE: what is wrong (why)". */
#ifndef CLUSTERSIM_FILEIO_H
#define CLUSTERSIM_FILEIO_H

#include <glib.h>
#include <stdio.h>

#define FILEIO_ERROR fileio_error_quark ()
GQuark fileio_error_quark (void);
typedef enum { FILEIO_ERROR_OPEN, FILEIO_ERROR_WRITE } FileioError;

typedef struct Output Output;

Output *output_open (const char *path, GError **error);
FILE *output_stream (Output *o); /* borrowed; valid until commit or abort */

/* Flushes, puts the file in its place and frees o, in any case. FALSE with error when it could not;
 * the target is then as it was. */
gboolean output_commit (Output *o, GError **error);

/* Drops what was written (nothing can be taken back from standard output) and frees o. */
void output_abort (Output *o);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Output, output_abort)

/* All at once; len -1 for NUL-terminated text. */
gboolean output_write (const char *path, const char *data, gssize len, GError **error);

#endif
