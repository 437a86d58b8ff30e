/* fabric: what connects the GPUs of a cluster, as numbers. No JSON in here.
 *
 * A "node" is the scale-up domain: eight GPUs behind NVSwitches, 72 GPUs of an NVL72 rack, a PCIe
 * box. The cost numbers are alpha-beta terms per step, fitted to published nccl-tests tables; the
 * planner numbers (arch, links, cpu, version) only feed NCCL's own choice of algorithm
 * (nccl_tuner.h). One set of numbers serves every size, rank count and operation: there is no table
 * of sizes.
 *
 * Ring over n ranks, chunk c = bytes/n, K steps of which Kn cross nodes (facts of the wire: 2(n-1)
 * or n-1 steps, bus factor as in nccl-tests): t = base + (K-Kn) hop + Kn net_hop + wire / min(bus,
 * NICs)
 *       + [Simple] c * copy + ((K-Kn) ramp + Kn net_ramp) * c / (c + ramp_bytes)
 * copy is the local pass over a rank's own chunk; ramp is the further time of a step once its chunk
 * is large enough to fill the pipeline buffers.
 *
 * Units: seconds, bytes, bytes per second. Reader: sim/app/read_fabric.h. Ownership: fabric_free
 * frees strings and cache.
 */
#ifndef CLUSTERSIM_FABRIC_H
#define CLUSTERSIM_FABRIC_H

#include "coll.h"
#include "nccl_env.h"

typedef enum { FABRIC_NVLINK, FABRIC_PCI } FabricLink;
typedef enum { FABRIC_INTEL, FABRIC_AMD, FABRIC_ARM, FABRIC_POWER } FabricCpu;
typedef enum { FABRIC_TUNER_NCCL, FABRIC_TUNER_AWS_OFI } FabricTuner; /* who has the last word */
extern const char *const fabric_tuner_names[];
extern const char *const fabric_link_names[];
extern const char *const fabric_cpu_names[];

/* One protocol: time of a call on its own, time per step, and bus bandwidth of one GPU. */
typedef struct {
  double base_s, hop_s, bus_Bps;
} FabricProto;

/* time = base_s + hop_s * steps + bytes / Bps + ramp_s * bytes / (bytes + ramp_bytes) */
typedef struct {
  double base_s, hop_s, Bps, ramp_s, ramp_bytes;
} FabricCurve;

/* What sharing the links of a cluster adds to the time of a call that takes alone_s by the profile,
 * when all groups of its kind make it at once. Returns the whole time. See netprice.h. */
typedef struct {
  gpointer self;
  double (*shared_s) (gpointer self, CollOp op, const CollGroup *g, CollChoice how, double bytes,
                      double alone_s);
} FabricNet;

struct Fabric {
  char *name, *node, *network; /* owned; network NULL: one node only */
  int nccl_version;            /* 2.27.7 is 22707 */

  /* the node */
  int arch;        /* compute capability times ten: 70, 80, 89, 90, 100, 120 */
  int domain_gpus; /* GPUs of one scale-up domain */
  FabricLink link;
  FabricCpu cpu;
  gboolean nvswitch, nvls, ll128;
  double links;          /* NVLinks per GPU (planner) */
  double pci_Bps;        /* PCIe speed of a GPU as the planner sees it */
  double share2, share4; /* part of the bus that groups of 2 and of 3 to 4 GPUs reach (meshes) */
  FabricProto ring[PROTO_COUNT];
  double ramp_s, ramp_bytes;     /* Simple, per step; chunk size of half the ramp */
  double reduce_copy_s_per_byte; /* all_reduce, reduce_scatter: local pass over one chunk */
  double gather_copy_s_per_byte; /* all_gather, broadcast */
  FabricCurve nvls_curve;        /* Bps: algorithm bandwidth of an all-reduce through the switch */
  FabricCurve a2a; /* hop per peer; Bps: per GPU; copy of the own part is in a2a_copy */
  double a2a_copy_s_per_byte;
  double a2a_share2, a2a_share4; /* as share2, share4, for alltoall; 0: those */
  FabricCurve p2p;               /* one message between two GPUs of a node */
  double channel_Bps;            /* of one channel of 512 threads, Simple; 0: not known, no limit */
  double slice_s; /* once for each slice of a channel's pipeline (half a chunk); 0: none */

  /* the network */
  FabricTuner tuner;
  double nics;       /* per node (scale-up domain); 0: none */
  double nic_Bps;    /* line rate of one, one direction */
  double efficiency; /* ring Simple plateau of the bus bandwidth over the line rate */
  double ll_efficiency, ll128_efficiency; /* the same for the other protocols */
  double tree_efficiency, nvlstree_efficiency, pat_efficiency,
      a2a_efficiency;                        /* of the line rate */
  double net_base_s;                         /* further base time of a call that leaves the node */
  double net_hop_s[PROTO_COUNT], net_ramp_s; /* per step between nodes */
  double pat_rank_s;                         /* PAT: per rank */
  FabricCurve nvlstree;                      /* hop per level, up and down; Bps: inside the node */
  double nvlstree_nics;                      /* of a node that it drives at most; 0: all */
  double a2a_net_hop_s;                      /* per remote peer */
  FabricCurve net_p2p;                       /* one message; Bps 0: what a GPU's NICs give */

  const FabricNet *net;    /* borrowed, or NULL: groups have the network to themselves */
  gboolean sharp;          /* switches can reduce; used if NCCL_COLLNET_ENABLE is set */
  double sharp_efficiency; /* of the line rate */
  double sharp_hop_s;      /* up and down the tree of switches */

  NcclEnv env; /* what the user sets */

  struct CollCache *cache; /* owned by coll_cost.c; see fabric_changed */
};

Fabric *fabric_new (void); /* all zero but shares (1) and empty strings */
void fabric_free (Fabric *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Fabric, fabric_free)

/* Must be called after a field was changed once times have been asked for: drops what was
 * precomputed. */
void fabric_changed (Fabric *f);

/* "2.27.7" or "2.27" as 22707 or 22700; 0 when it is no such version. */
int nccl_version_parse (const char *text);

/* NICs that one GPU drives: nics / GPUs, at least 1. */
double fabric_nics_per_gpu (const Fabric *f);

/* Part of the node's bus that the group reaches: share2, share4 or 1 by its ranks in a node. */
double fabric_share (const Fabric *f, const CollGroup *g);
/* The same for alltoall: a2a_share2 and a2a_share4 where they are given. */
double fabric_alltoall_share (const Fabric *f, const CollGroup *g);

/* Line rate, bytes/s in one direction, that a group gets: its GPUs' NICs, at most its share of the
 * node's. */
double fabric_group_net_Bps (const Fabric *f, const CollGroup *g);

#endif
