/* import_slurm_priv: what topology.conf and topology.yaml have in common. */
#ifndef CLUSTERSIM_IMPORT_SLURM_PRIV_H
#define CLUSTERSIM_IMPORT_SLURM_PRIV_H

#include "import_topo.h"

/* A switch or block as it stands in the file; lists are owned, NULL if it has none. */
typedef struct {
  char *name, *children, *nodes;
  guint line;
} SlurmSwitch;

/* switches: array of SlurmSwitch. block: they are blocks, which no switch joins. */
TopoDesc *slurm_to_desc (const char *name, const GArray *switches, gboolean block, GPtrArray *notes,
                         GError **error);

TopoDesc *import_slurm_yaml (const char *name, const char *text, gsize len, const char *which,
                             GError **error);
#endif
