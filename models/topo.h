/* topo: what connects the GPUs of a cluster: nodes, NICs, switches, links, routes, placement.
 *
 * Three layers. A TopoDesc is a neutral graph, as a reader of somebody's file or a builder makes
 * it: the inside of one node (GPUs, NICs, PCIe switches, CPUs, NVSwitches) or a network (hosts and
 * switches). A TopoSpec says how many nodes of one description hang on which network. A Topo is
 * the cluster made from it: every link in each direction has an index, so that net.h can share it.
 *
 * A "node" is the scale-up domain: an 8-GPU server, an NVL72 rack. A host is what has a name: the
 * server, or one of the rack's 18 trays. A rail is the NIC's number within its host; on a
 * rail-optimised network, NIC k of many hosts shares a leaf. GPU g is GPU g % G of node g / G.
 *
 * Units: bytes/s in one direction, seconds. Errors: domain TOPO_ERROR. Ownership: X_new/X_free.
 */
#ifndef CLUSTERSIM_TOPO_H
#define CLUSTERSIM_TOPO_H

#include <glib.h>

#define TOPO_ERROR topo_error_quark ()
GQuark topo_error_quark (void);
typedef enum {
  TOPO_ERROR_RANGE,       /* a count or rate that makes no sense, or too many links */
  TOPO_ERROR_LOOP,        /* where only trees are allowed */
  TOPO_ERROR_UNREACHABLE, /* parts that no links join */
  TOPO_ERROR_DUPLICATE,   /* two hosts of one name */
  TOPO_ERROR_PLACEMENT    /* ranks that find no GPU */
} TopoError;

#define TOPO_MAX_GPUS  ((guint32)1 << 20)
#define TOPO_MAX_LINKS ((guint32)1 << 23) /* directed */

/* ---- descriptions --------------------------------------------------------------------------- */

typedef enum {
  TOPO_GPU,
  TOPO_NIC,
  TOPO_PCI_SWITCH,
  TOPO_CPU, /* a NUMA node */
  TOPO_NVSWITCH,
  TOPO_HOST,
  TOPO_SWITCH,
  TOPO_KIND_COUNT
} TopoKind;
extern const char *const topo_kind_names[];

typedef enum { TOPO_LINK_NVLINK, TOPO_LINK_PCI, TOPO_LINK_SMP, TOPO_LINK_NET } TopoLinkKind;
extern const char *const topo_link_names[];

typedef struct {
  TopoKind kind;
  char *name;     /* owned; "" if it has none */
  int host;       /* GPU, NIC: host within the node */
  double net_Bps; /* NIC: speed on the network; 0: not stated */
} TopoVertex;

typedef struct {
  guint32 a, b;
  TopoLinkKind kind;
  double Bps;       /* each direction, all lanes together; 0: not stated */
  double latency_s; /* 0: not stated */
  int lanes;        /* cables or NVLinks in it */
} TopoEdge;

typedef struct {
  char *name;
  GArray *vertices; /* TopoVertex */
  GArray *edges;    /* TopoEdge */
  GPtrArray *notes; /* char*: what a reader assumed or left out */
  gboolean tree;    /* a loop is an error (Slurm trees) */
  int sm;           /* compute capability of the GPUs times ten; 0: not stated */
} TopoDesc;

TopoDesc *topo_desc_new (const char *name);
void topo_desc_free (TopoDesc *d);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (TopoDesc, topo_desc_free)
guint32 topo_desc_add (TopoDesc *d, TopoKind kind, const char *name, int host);
void topo_desc_link (TopoDesc *d, guint32 a, guint32 b, TopoLinkKind kind, double Bps, int lanes);
void topo_desc_note (TopoDesc *d, const char *format, ...) G_GNUC_PRINTF (2, 3);
const TopoVertex *topo_desc_vertex (const TopoDesc *d, guint32 i);
const TopoEdge *topo_desc_edge (const TopoDesc *d, guint i);
guint topo_desc_count (const TopoDesc *d, TopoKind kind);

/* Joins what has no common root under one more switch of that name; links must lead from child to
 * parent. Nothing to do for one tree. */
void topo_desc_join (TopoDesc *d, const char *name);

/* Speed of one lane for links that state none. */
void topo_desc_default_Bps (TopoDesc *d, TopoLinkKind kind, double lane_Bps);

/* What a reader can check: all but speeds and, unless `whole`, being in one piece. */
gboolean topo_desc_check_shape (const TopoDesc *d, gboolean whole, GError **error);

/* Sense: ends exist and differ, no zero or infinite speed, host names once each, PCIe trees (and
 * all of it if `tree`) without loops, sizes within the limits, all GPUs or hosts in one piece. */
gboolean topo_desc_check (const TopoDesc *d, GError **error);

/* ---- nodes from numbers (topo_node.c) -------------------------------------------------------- */

typedef enum { TOPO_UP_NONE, TOPO_UP_MESH, TOPO_UP_NVSWITCH } TopoScaleUp;
typedef struct {
  int a, b, lanes;
} TopoMeshLink;

/* GPUs and NICs are dealt in order over the PCIe switches of their host, these over its NUMA nodes;
 * without switches they hang on the NUMA nodes. */
typedef struct {
  const char *name;
  int hosts;         /* in the node; 0 stands for 1 */
  int gpus;          /* per host */
  int numa;          /* per host; 0 stands for 1 */
  int pcie_switches; /* per host */
  int nics;          /* per host */
  TopoScaleUp scale_up;
  double nvlink_Bps;        /* of one GPU to the NVSwitches, or of one lane of the mesh */
  const TopoMeshLink *mesh; /* borrowed */
  int n_mesh;
  double pcie_Bps;     /* of a GPU */
  double nic_pcie_Bps; /* of a NIC; 0: pcie_Bps */
  double pcie_up_Bps;  /* of a PCIe switch to its CPU; 0: pcie_Bps */
  double smp_Bps;      /* between NUMA nodes; 0: pcie_up_Bps */
} TopoNodeSpec;

TopoDesc *topo_node_build (const TopoNodeSpec *s, GError **error);

/* NVLinks of 8 GPUs in DGX-1 V100 (hybrid cube mesh, 6 lanes a GPU). */
extern const TopoMeshLink topo_mesh_dgx1_v100[];
extern const int topo_mesh_dgx1_v100_n;

/* ---- clusters ------------------------------------------------------------------------------- */

typedef enum {
  TOPO_NET_NONE,
  TOPO_NET_SINGLE,     /* one switch for everything */
  TOPO_NET_LEAF_SPINE, /* two tiers */
  TOPO_NET_CLOS3,      /* pods of leaf and spine under a core */
  TOPO_NET_DRAGONFLY,  /* dragonfly+: groups of leaf and spine, spines joined group to group */
  TOPO_NET_DESC        /* the graph in net_desc */
} TopoNetKind;
extern const char *const topo_net_names[];

typedef struct {
  const TopoDesc *node; /* borrowed during the call */
  guint32 nodes;
  const char *const *host_names; /* nodes * hosts of them, or NULL: node0000 … */
  TopoNetKind net;
  const TopoDesc *net_desc; /* borrowed during the call; its hosts are ours in order */
  gboolean rail_optimised;
  int planes;            /* ports of a NIC, each to a network of its own; 0 stands for 1 */
  double nic_Bps;        /* of a NIC, all ports together */
  double efficiency;     /* usable part of the NICs' and cables' rate; 0 stands for 1 */
  int leaf_ports;        /* NIC ports of a leaf */
  double up_Bps;         /* of one cable between switches; 0: that of a NIC port */
  double leaf_oversub;   /* rate down over rate up; 0 stands for 1 */
  double spine_oversub;  /* three tiers: the same of a spine; dragonfly: rate of a group's NICs over
                            that of its cables to other groups */
  int spine_ports;       /* cables that a spine takes from leaves */
  int pod_leaves;        /* of a pod or group, per plane */
  int core_ports;        /* cables that a core switch takes */
  double switch_s;       /* latency of a switch and the cable behind it */
  double node_latency_s; /* of each link in the node that states none */
} TopoSpec;

typedef struct Topo Topo;

Topo *topo_new (const TopoSpec *spec, GError **error);
void topo_free (Topo *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Topo, topo_free)

guint32 topo_n_gpus (const Topo *t);
guint32 topo_gpus_per_node (const Topo *t);
guint32 topo_nics_per_node (const Topo *t);
guint32 topo_n_nodes (const Topo *t);
guint32 topo_n_links (const Topo *t);
guint32 topo_n_switches (const Topo *t);
guint32 topo_n_tier (const Topo *t, int tier); /* switches of tier 0 (leaf), 1, 2 */
const double *topo_link_caps (const Topo *t);  /* bytes/s, by link */
gboolean topo_link_is_net (const Topo *t, guint32 link);
char *topo_link_name (const Topo *t, guint32 link); /* "node0003/gpu1 -> …" */
char *topo_host_of (const Topo *t, guint32 gpu);    /* newly allocated */
guint32 topo_nic_link (const Topo *t, guint32 node, int nic, int plane, gboolean up);
guint topo_nics_of_gpu (const Topo *t, guint32 gpu,
                        const guint8 **nics); /* in the node, borrowed */
/* Whether two GPUs of a node are equally near to one of its NICs. */
gboolean topo_share_nic (const Topo *t, guint32 gpu_a, guint32 gpu_b, int nic);
gboolean topo_has_nvlink (const Topo *t, guint32 gpu_a,
                          guint32 gpu_b);              /* a path of NVLinks alone */
double topo_scale_up_Bps (const Topo *t, guint32 gpu); /* NVLink (or PCIe) out of it */
const TopoDesc *topo_peek_node (const Topo *t);

/* A link out of order for all routes found from now on (net_set_link has the flows). */
void topo_set_link_up (Topo *t, guint32 link, gboolean up);

/* A link that is slower from now on: its capacity times factor (> 0); routes that spread by
 * capacity follow. */
void topo_scale_link (Topo *t, guint32 link, double factor);
/* The index-th cable above the switches of a tier (in a dragonfly those between groups are above
 * tier 1), as its link upwards; the other direction is the link after it. G_MAXUINT32: no such. */
guint32 topo_cable_above (const Topo *t, int tier, guint32 index);

/* ---- routes ---------------------------------------------------------------------------------- */

typedef enum {
  TOPO_ROUTE_STATIC,   /* one shortest path by destination, as InfiniBand's forwarding tables */
  TOPO_ROUTE_ECMP,     /* one shortest path (in each plane) by hash of (seed, ends, key): fat flows
                          may collide */
  TOPO_ROUTE_ADAPTIVE, /* evenly over all shortest paths */
  TOPO_ROUTE_COUNT
} TopoRouteMode;
extern const char *const topo_route_names[];

typedef struct {
  TopoRouteMode mode;
  guint64 seed, key; /* ECMP: key tells flows between the same ends apart */
  guint queue_pairs; /* ECMP: parts of a flow that are hashed each on its own; 0 stands for 1 */
  int nic;           /* NIC of the node to leave and enter by, or -1: that of the GPU */
  int enter;         /* with nic: 1 + NIC to enter by; 0: the same */
  gboolean no_pxn;   /* a GPU uses its own NICs even if the other end's are on another rail */
} TopoRouteOpts;

/* Links with the part of the flow on each; grows by topo_route, emptied by topo_path_reset. */
typedef struct {
  guint32 *links;
  double *coef;
  guint n, alloc;
  double latency_s;
} TopoPath;

void topo_path_reset (TopoPath *p);
void topo_path_clear (TopoPath *p);
void topo_path_add (TopoPath *p, guint32 link, double coef);

/* Appends the route; latency_s becomes at least that of its longest branch. FALSE when no path is
 * left. Nothing is appended for src = dst. Not for two threads on one Topo: it caches. */
gboolean topo_route (Topo *t, guint32 src_gpu, guint32 dst_gpu, const TopoRouteOpts *o,
                     TopoPath *p);

/* From a GPU to the switch fabric of its node or back (NVLS): the NVLink to the NVSwitch. FALSE
 * when the node has none. */
gboolean topo_route_nvswitch (Topo *t, guint32 gpu, gboolean up, TopoPath *p);

/* From one leaf to another over the switches alone, all paths evenly (weight: total coef). */
gboolean topo_route_leaves (Topo *t, guint32 from, guint32 target, double weight, TopoPath *p);
/* The tree by which switches reduce from these leaves (SHARP): each link once, upwards and back.
 * pick chooses among roots. FALSE when no switch reaches them all. */
gboolean topo_aggregation_tree (Topo *t, const guint32 *leaves, guint n, guint pick, TopoPath *up,
                                TopoPath *down);
guint32 topo_leaf_of_nic (const Topo *t, guint32 node, int nic, int plane);
/* From a GPU into its NIC up to the leaf, or back; the NIC's ports evenly. */
void topo_route_nic (Topo *t, guint32 gpu, int nic, gboolean up, TopoPath *p);

/* ---- placement (topo_place.c) -----------------------------------------------------------------
 */

typedef enum {
  TOPO_PLACE_BLOCK,     /* rank after rank, node after node */
  TOPO_PLACE_RAIL,      /* rank r on node r % N: neighbours in rank share a rail */
  TOPO_PLACE_SCATTERED, /* nodes drawn at random, blocks in them */
  TOPO_PLACE_HOSTS,     /* the hosts listed, in this order */
  TOPO_PLACE_COUNT
} TopoPlaceKind;
extern const char *const topo_place_names[];

typedef struct {
  TopoPlaceKind kind;
  guint32 ranks;
  guint32 ranks_per_node; /* GPUs used of a node; 0: all */
  guint64 seed;
  const char *const *hosts; /* NULL-terminated */
} TopoPlaceSpec;

/* gpu: receives spec->ranks GPUs. used: one byte a GPU, FALSE where free, or NULL: all are; those
 * given are marked, so that the next job gets others. */
gboolean topo_place (const Topo *t, const TopoPlaceSpec *spec, guint8 *used, guint32 *gpu,
                     GError **error);

#endif
