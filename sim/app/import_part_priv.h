/* import_part_priv: what import_part.c (a node) and import_part_net.c (a network) share. */
#ifndef CLUSTERSIM_IMPORT_PART_PRIV_H
#define CLUSTERSIM_IMPORT_PART_PRIV_H

#include "import_part.h"
#include "json_read.h"

#define GBPS 1e9

/* The number NAME=X among what was given; out keeps its value where there is none. file: for the
 * message. */
gboolean import_given_number (const char *file, const char *const *given, const char *name,
                              double min, double max, double *out, GError **error);
void import_part_note (GPtrArray *notes, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* What stands in the part itself: where it is from, and what was assumed. */
void import_part_put_note (JsonWriter *w, const char *source, const GPtrArray *notes);
void import_part_put_number (JsonWriter *w, const char *key, double value, gboolean stated,
                             const char *source);
/* The graph without the parts that keep says to leave out (NULL: all). lanes NULL: none. */
void import_part_put_graph (JsonWriter *w, const TopoDesc *d, const guint8 *keep,
                            const char *source, const JsonRef *lanes);

#endif
