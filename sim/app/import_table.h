/* import_table: an nccl-tests log as rows of a table of collectives, which `validate` reads (csv),
 * or as an object. given: op, gpu, nic, gpus_per_node, nodes, set: what the log does not say. */
#ifndef CLUSTERSIM_IMPORT_TABLE_H
#define CLUSTERSIM_IMPORT_TABLE_H

#include "import_topo.h"

gboolean import_table_json (const CollTable *t, const char *const *given, GString *out,
                            GError **error);
/* Needs the operation: from the log, or op=NAME. */
gboolean import_table_csv (const CollTable *t, const char *const *given, GString *out,
                           GError **error);

#endif
