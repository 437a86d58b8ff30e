/* topo_priv: the inside of a Topo, shared by topo.c, topo_build.c, topo_inner.c and topo_place.c.
 */
#ifndef CLUSTERSIM_TOPO_PRIV_H
#define CLUSTERSIM_TOPO_PRIV_H

#include "topo.h"

typedef struct {
  guint32 link, to;
} TopoAdj;

struct Topo {
  /* the node: GPUs are ends 0 …, NICs follow */
  TopoDesc *node;
  guint32 nodes, gpus, nics, hosts, node_links;
  guint32 n_ends;
  guint32 *path_first; /* n_ends² + 1 */
  guint32 *path_link;  /* link in the node */
  double *path_coef;
  float *path_latency_s; /* n_ends² */
  guint8 *path_nvlink;   /* n_ends²: over NVLinks alone */
  guint32 *path_cost;    /* n_ends² */
  guint32 *gpu_nic_first;
  guint8 *gpu_nics;
  guint32 *nic_owner; /* first GPU that uses it, or G_MAXUINT32 */
  double node_latency_s;

  /* all links; those of nodes first, then NIC ports, then cables between switches */
  guint32 n_links, first_port, first_cable;
  double *cap;
  guint8 *down;
  guint32 n_down;

  /* the network */
  int planes;
  gboolean rails;
  double switch_s;
  guint32 n_sw;
  guint8 *tier;
  guint32 *pod; /* pod and plane as one number */
  guint32 n_cables, *cable_a, *cable_b;
  guint32 *adj_first;
  TopoAdj *adj;
  guint32 *leaf;       /* of a port */
  gboolean structured; /* distances follow from tier and pod */
  guint8 **dist;       /* by target switch: hops from each switch, 255: none; made when asked for */
  double *frac;        /* scratch of routes: part of the flow at a switch, 0 between calls */
  guint32 *queue, *next;
  char **host_names; /* nodes * hosts */
};

/* topo_inner.c: routes within the node; fills the path_* and gpu_nic* fields. */
gboolean topo_inner_routes (Topo *t, GError **error);

/* topo.c: hops from every switch to this one; borrowed until links fail or recover. */
const guint8 *topo_distances (Topo *t, guint32 target);

#define TOPO_FAR 255

#endif
