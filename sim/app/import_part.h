/* import_part: what import_topo.h read, as a part of a scenario.
 *
 * A node (nvidia-smi, NCCL's XML) becomes a fabric, for cluster.fabric, or a topology
 * (part=topology); a network (Slurm, ibnetdiscover) becomes a topology on the nodes of a shipped
 * one (system=NAME); an nccl-tests log becomes a table. Which parts stand for what the file shows
 * is ruled by scenarios/import/nodes.json. given: "NAME=VALUE", NULL-terminated, names as in each
 * list of import_part.c. What was assumed is added to notes (char*) and stands in the part's
 * "note". import_part_network fills in speeds and cables that d does not state.
 *
 * Errors: IMPORT_ERROR_* and those of the readers; a name that is not known is IMPORT_ERROR_MISSING
 * with the nearest or all allowed.
 */
#ifndef CLUSTERSIM_IMPORT_PART_H
#define CLUSTERSIM_IMPORT_PART_H

#include "import_topo.h"
#include "json_write.h"

gboolean import_part_node (const TopoDesc *d, const char *kind, const char *const *given,
                           JsonWriter *w, GPtrArray *notes, GError **error);
gboolean import_part_network (TopoDesc *d, const char *kind, const char *const *given,
                              JsonWriter *w, GPtrArray *notes, GError **error);

/* Value of a name among given, or NULL. */
const char *import_given (const char *const *given, const char *name);
/* Every one of given must be NAME=VALUE with a name of the list. */
gboolean import_given_check (const char *file, const char *const *given, const char *const *names,
                             GError **error);

#endif
