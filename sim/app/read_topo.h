/* read_topo: a topology in our own JSON form (scenarios/topologies/<name>.json; keys in the
 * README.md there): one kind of node, how many, and the network that joins them.
 *
 * Every number is { "value", "kind", "source" }. Errors: JSON_ERROR with the place; what no
 * topology can be is TOPO_ERROR when it is built.
 */
#ifndef CLUSTERSIM_READ_TOPO_H
#define CLUSTERSIM_READ_TOPO_H

#include "json_read.h"
#include "topo.h"

typedef struct {
  char *name;
  TopoNodeSpec node; /* borrows name and mesh from here */
  TopoSpec spec;     /* without its node */
  GArray *mesh;      /* TopoMeshLink */
  TopoDesc *graph;   /* the node part by part; NULL: from the numbers in node */
  TopoDesc *net;     /* the network likewise, whose hosts say how many nodes there are */
} TopoPreset;

void topo_preset_free (TopoPreset *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TopoPreset, topo_preset_free)

/* name: what it is called where the object does not say. prov: array of ProvEntry* that is added
 * to, or NULL. */
TopoPreset *read_topo (const JsonRef *root, const char *name, GPtrArray *prov, GError **error);

/* By the name of a shipped topology or a path, "extends" followed. from: the file that mentions it,
 * or NULL. */
TopoPreset *topo_preset_load (const char *name, const char *from, GPtrArray *prov, GError **error);

/* "graph": { "source", "parts", "links", "lane_GBps" }. Checked as a whole. */
TopoDesc *read_topo_graph (const JsonRef *obj, const char *name, GPtrArray *prov, GError **error);

/* nodes: how many, 0 for the preset's own number. A network given part by part has its own. */
Topo *topo_preset_build (const TopoPreset *p, guint32 nodes, GError **error);

#endif
