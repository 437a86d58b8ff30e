/* netprice: collectives of a job priced on the network that its groups share.
 *
 * The profile of a fabric says what a collective costs a group that has its NICs to itself (or its
 * share of them). What a network adds is found by running all groups of one kind at the same time,
 * flow by flow or step by step (coll_plan.h), over the links of the cluster's topology:
 *   time = profile's time + time of that run - time of the same run as flows on the same nodes
 *          joined by one switch without a bottleneck
 * So a network that is no bottleneck adds nothing, to the tick, at the flow level; the step level
 * adds the filling of pipelines too. The time of a run is that of its slowest group, since a step
 * waits for it.
 *
 * Rates of the flow level do not depend on size, so one run serves every size of the same
 * operation, algorithm and protocol; a flapping link and the step level are run at each size.
 * A flapping link is met at NET_FLAP_PHASES evenly spaced points of its period, and the mean is
 * taken. Groups of different kinds are not run together (their overlap is a matter of the
 * schedule), nor is the all-reduce of eight bytes that ends a step.
 */
#ifndef CLUSTERSIM_NETPRICE_H
#define CLUSTERSIM_NETPRICE_H

#include "coll_plan.h"
#include "fabric.h"
#include "spec.h"

#define NET_FLAP_PHASES 16

/* One operation of one kind of group, as of its largest call. */
typedef struct {
  SpanKind kind;
  Fidelity fidelity;
  CollOp op;
  CollChoice how;
  guint ranks, nodes, groups; /* of a group; groups that make it at once */
  double bytes, alone_s, time_s;
  char *busiest; /* link of the network with the most to carry, or NULL: none is used; owned */
  double busiest_load; /* part of its rate that is in use while the collectives run */
} NetRow;
void net_row_clear (NetRow *r);

typedef struct NetPrice NetPrice;

/* TRUE if some kind of group is not analytic: then predictions need a NetPrice. */
gboolean netprice_wanted (const Spec *s);

/* s is borrowed. NULL with error (TOPO_ERROR): a network that cannot be, too small for the jobs, or
 * with other NICs than the fabric's profile. */
NetPrice *netprice_new (const Spec *s, GError **error);
void netprice_free (NetPrice *n);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (NetPrice, netprice_free)

/* own becomes the scenario of n with *fabric for its fabric, whose prices are those of n. Both
 * borrow all else; end with coll_cache_free (fabric->cache), before n. */
void netprice_apply (const NetPrice *n, Spec *own, Fabric *fabric);

/* Prices cannot fail where they are asked for: what went wrong is kept. TRUE if nothing did. */
gboolean netprice_check (NetPrice *n, GError **error);

/* The rows so far, by kind and operation; the caller owns the array, which clears its rows. */
GArray *netprice_take_rows (NetPrice *n);

/* The topology that prices are made on, for tests and reports; borrowed. */
Topo *netprice_peek_topo (const NetPrice *n);

/* ---- netprice_topo.c --------------------------------------------------------------------------
 */

/* The cluster of a scenario: its nodes (from the named topology or the fabric's profile) joined by
 * `net`. jobs: nodes that are asked for when the scenario gives no number. */
Topo *netprice_make_topo (const Spec *s, TopoNetKind net, guint32 nodes, GError **error);

/* GPUs of the job's ranks, then of the neighbour's (NULL when there is none). */
gboolean netprice_place (const Spec *s, const Topo *t, guint32 *job, guint32 *neighbour,
                         guint32 n_neighbour, GError **error);

/* Marks the scenario's fault on the topology; links: those that flap (guint32). */
gboolean netprice_break (const Spec *s, Topo *t, GArray *links, GError **error);

/* ---- netprice_run.c ---------------------------------------------------------------------------
 */

/* A network to run on, with what disturbs it. */
typedef struct {
  Topo *topo;        /* owned */
  double *scratch;   /* for CollPlanSpec; owned */
  GPtrArray *beside; /* CollPlan*: of the neighbour; owned, may be NULL */
  double load;       /* part of what it would send alone */
  GArray *flapping;  /* guint32; owned, may be NULL */
  double up_s, down_s;
} NetWorld;
void net_world_clear (NetWorld *w);

/* Messages that start together. */
typedef struct {
  TopoPath path; /* of all of them, one after the other */
  GArray *first; /* guint32: where each begins, and the end */
  gint64 bytes;
  double cap_Bps; /* of one; 0: none */
} NetPairs;

/* All plans (or pairs) at once; *end_s is when the last ends. phase: of the flapping, 0 … 1. */
gboolean net_world_run (const NetWorld *w, const GPtrArray *plans, const NetPairs *pairs,
                        CollFidelity fidelity, double phase, double *end_s, GError **error);

#endif
