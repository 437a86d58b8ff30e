/* coll_plan: a collective as transfers on a topology, for three fidelities behind one call.
 *
 * A plan is phases, one after the other; a phase is channels, all at once; a channel moves `amount`
 * bytes in lockstep over edges (GPU to GPU, GPU to switch), each carrying weight * amount.
 *   analytic  one date: alpha plus the time that the channels need alone on the network
 *   flow      one coupled flow a channel over the union of its edges' routes; then alpha
 *   step      every slot (chunk step) of every edge as a flow with its dependencies
 * Why coupled: a pipelined ring or tree runs at the pace of its slowest edge, since buffers hold
 * only a few chunks; it leaves the rest of the other links to others.
 *
 * Alpha (time that is no bandwidth) follows NCCL's own counting of steps (facts: base, hop within
 * the node, hop between nodes; see fabric.h): ring K = 2(n-1) or n-1 steps, 2(N-1) or N-1 of them
 * between nodes; tree 2((r-1) hop + log2 N net_hop); PAT log2 N net_hop. With n ranks, N nodes.
 *
 * step against flow: with slots of equal time the ring is equal but for rounding (half a tick a
 * slot). Unequal edges: flow counts the mean of the hops, step the slowest edge at each slot, so
 * flow <= step <= flow + K (largest hop - mean hop). Pipelines (tree, broadcast, NVLS) add their
 * filling: at most depth * slot bytes / slowest rate.
 *
 * Idealised: no credit window (a sender may run ahead), reductions and copies cost only what alpha
 * says. Ownership: plan borrows the topology, owns the rest. Errors: TOPO_ERROR.
 */
#ifndef CLUSTERSIM_COLL_PLAN_H
#define CLUSTERSIM_COLL_PLAN_H

#include "coll.h"
#include "net.h"
#include "topo.h"

typedef enum {
  PLAN_RING,
  PLAN_TREE, /* double binary tree over nodes, chains within */
  PLAN_NVLS, /* in the NVSwitch, one node */
  PLAN_NVLSTREE,
  PLAN_COLLNET_DIRECT, /* in the network's switches (SHARP); slices to heads within the node */
  PLAN_COLLNET_CHAIN,
  PLAN_PAT,
  PLAN_HIERARCHICAL, /* in the node, between nodes by rail, in the node */
  PLAN_PAIRS,        /* alltoall, sendrecv */
  PLAN_ALGO_COUNT
} PlanAlgo;
extern const char *const plan_algo_names[];

/* What NCCL's algorithm is here; PAIRS for alltoall and sendrecv. */
PlanAlgo plan_algo_of (CollOp op, CollAlgo algo);

typedef struct {
  double base_s;           /* once a call */
  double hop_s, net_hop_s; /* a step within a node, between nodes */
  double total_s;          /* > 0: all of alpha; what base and hops do not explain is once a call */
  double bus_Bps; /* most that a GPU sends within its node, over all channels; 0: no limit */
  double nic_Bps; /* most that a NIC sends, beside the link's own limit; 0: no limit. sendrecv: most
                   * that a GPU sends over its NICs */
  double algo_Bps; /* most bytes of the buffer a second (NVLS); 0: no limit */
  gboolean wire;   /* add the topology's latencies to the hops */
} CollCosts;

typedef struct {
  Topo *topo;         /* borrowed, also by the plan */
  const guint32 *gpu; /* by rank; borrowed during the call */
  guint32 n;
  CollOp op;
  PlanAlgo algo;
  gint64 bytes;      /* as nccl-tests counts: the full buffer for all_gather and reduce_scatter */
  int channels;      /* 0: one for each NIC that the group drives, each ring of a mesh, else one */
  gint64 slot_bytes; /* of a pipeline's step; 0: 512 KiB */
  TopoRouteOpts route; /* nic is set by the plan; .nic = -1 to begin with */
  CollCosts costs;
  gboolean cross_nic; /* a ring enters a node by another NIC than it left the last by, which takes
                       * it off its rail (NCCL_CROSS_NIC=1) */
  gboolean steps;     /* keep edges: needed for the step fidelity */
  double *scratch; /* NULL, or one 0 for each link, borrowed: spares many small plans the making */
} CollPlanSpec;

typedef struct {
  guint32 src;  /* rank that sends */
  guint32 path; /* first link in the plan's pool */
  guint32 n_path;
  guint32 slots, lag; /* slot j may go when every edge it waits for has done slot j - lag */
  guint32 pred, n_pred, succ, n_succ; /* in the plan's pools, edge numbers */
  gint64 bytes;                       /* over all slots */
  double cap_Bps;                     /* 0: none */
  double alpha_s; /* of each slot if lag > 0, else of the first: later ones are in the pipe */
} CollEdge;

typedef struct {
  gint64 amount;
  double cap_Bps; /* of amount; 0: none */
  guint32 path, n_path;
  guint32 edge, n_edge;
} CollChannel;

typedef struct {
  guint32 channel, n_channel;
  double alpha_s;
} CollPhase;

typedef struct {
  Topo *topo;
  CollOp op;
  PlanAlgo algo;
  guint32 n;
  gint64 bytes;
  double start_s; /* once: base, and what hops do not explain */
  GArray *phases, *channels, *edges;
  GArray *links, *coefs; /* pool of paths */
  GArray *deps;          /* pool of pred and succ */
  gboolean steps;
} CollPlan;

/* NULL with error: an algorithm that the operation or the topology does not have, ranks that no
 * path joins, more transfers than fit. One rank or no bytes: a plan without phases. */
CollPlan *coll_plan_new (const CollPlanSpec *s, GError **error);
void coll_plan_free (CollPlan *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (CollPlan, coll_plan_free)

const CollPhase *coll_plan_phase (const CollPlan *p, guint i);
const CollChannel *coll_plan_channel (const CollPlan *p, guint i);
const CollEdge *coll_plan_edge (const CollPlan *p, guint i);

/* Time alone on the network, its links at the topology's capacities. INFINITY over a dead link. */
double coll_plan_time_s (const CollPlan *p);

/* One phase of it, without its alpha. */
double coll_plan_phase_time_s (const CollPlan *p, guint phase);

/* Bytes that the plan moves over a link. */
double coll_plan_link_bytes (const CollPlan *p, guint32 link);

/* Costs as the fabric's profile has them, so that the three fidelities agree with coll_time_s as
 * far as topology and profile agree on bandwidth. */
CollCosts coll_costs_from_fabric (const Fabric *f, CollOp op, const CollGroup *g, CollChoice how,
                                  double bytes);

/* ---- running (coll_run.c) ---------------------------------------------------------------------
 */

typedef enum { COLL_ANALYTIC, COLL_FLOW, COLL_STEP, COLL_FIDELITY_COUNT } CollFidelity;
extern const char *const coll_fidelity_names[];

typedef struct CollRun CollRun;

/* Starts a plan now; done is called once, at its end, in an event. The plan and net are borrowed
 * until then. offset: NULL, or by rank how many ticks after now it joins in: analytic and flow wait
 * for the last, step lets each begin on its own. STEP needs a plan with steps. The run frees itself
 * after done. */
CollRun *coll_run_start (Net *net, const CollPlan *plan, CollFidelity fidelity,
                         const SimTime *offset, NetDone done, gpointer self, guint64 arg);

/* Transfers that a step run makes in all. */
guint64 coll_plan_n_transfers (const CollPlan *p);

#endif
