/* network: what a scenario says about the network of its cluster (no JSON in here): the topology
 * that the job lies on, where, how packets find their way, and what disturbs it.
 *
 * Units: bytes/s in one direction, seconds. A node is a scale-up domain (topo.h).
 */
#ifndef CLUSTERSIM_NETWORK_H
#define CLUSTERSIM_NETWORK_H

#include "coll.h"
#include "topo.h"

typedef enum { NET_FAULT_NIC, NET_FAULT_LEAF, NET_FAULT_SPINE } NetFaultWhere;
extern const char *const net_fault_names[]; /* "nic", "leaf", "spine" */

/* Links that are not as they should be, in both directions: ports of NICs, cables above leaves or
 * above spines, `count` of them from the first-th. */
typedef struct {
  NetFaultWhere where;
  guint32 first, count; /* count 0: no fault */
  double rate;          /* part of the rate that is left; 0: dead, and routes avoid it */
  double up_s, down_s;  /* down_s > 0: flapping; routes do not notice */
} NetFault;

/* Another job on the same network, without end: all its GPUs in one collective over all its NICs.
 */
typedef struct {
  guint32 nodes; /* 0: none */
  CollOp op;
  double load; /* part of what its NICs can send */
  TopoPlaceKind placement;
} NetNeighbour;

typedef struct {
  gboolean given;
  char *name;        /* of the topology, or NULL: the node follows from the fabric's profile */
  gboolean has_node; /* node is that of a topology */
  TopoNodeSpec node; /* may borrow from preset */
  TopoSpec topo;     /* without node and nodes */
  guint32 nodes;     /* on the whole network; 0: as many as the jobs need */
  TopoRouteMode routing;
  guint queue_pairs; /* of a connection, each hashed on its own by ECMP */
  TopoPlaceKind placement;
  char **hosts; /* for TOPO_PLACE_HOSTS; owned */
  NetFault fault;
  NetNeighbour neighbour;
  gpointer preset; /* owned, freed by preset_free */
  GDestroyNotify preset_free;
} NetworkSpec;

void network_init (NetworkSpec *n);
void network_clear (NetworkSpec *n);

/* "leaf-spine 2:1, rail-optimised, adaptive", and what disturbs it; the caller frees. */
char *network_text (const NetworkSpec *n);

#endif
