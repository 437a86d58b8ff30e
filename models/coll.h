/* coll: the time of a collective, and what NCCL would choose.
 *
 * Analytic level: no contention with other traffic except the sharing that the group itself states.
 * The formulas are NCCL's own cost model as facts (latency and bandwidth per algorithm and
 * protocol) for the choice, and alpha-beta terms fitted to published nccl-tests tables for the
 * cost; the two are kept apart (CollChoice says which algorithm and protocol; time_s says what it
 * costs). Profiles: scenarios/fabrics/<name>.json, every number with its source.
 */
#ifndef CLUSTERSIM_COLL_H
#define CLUSTERSIM_COLL_H

#include "types.h"

typedef enum {
  COLL_ALL_REDUCE,
  COLL_ALL_GATHER,
  COLL_REDUCE_SCATTER,
  COLL_BROADCAST,
  COLL_ALLTOALL,
  COLL_SENDRECV,
  COLL_COUNT
} CollOp;
extern const char *const coll_op_names[]; /* names of collectives.csv: "all_reduce" … */

/* PAT: NCCL's logarithmic all_gather and reduce_scatter, used with one GPU per node (2.23 and
 * later). */
typedef enum {
  ALGO_AUTO = -1,
  ALGO_RING,
  ALGO_TREE,
  ALGO_NVLS,
  ALGO_NVLSTREE,
  ALGO_PAT,
  ALGO_COLLNET_DIRECT, /* SHARP: switches reduce; every GPU sends slices to the heads of its node */
  ALGO_COLLNET_CHAIN,  /* the same with a chain within the node */
  ALGO_COUNT
} CollAlgo;
typedef enum { PROTO_AUTO = -1, PROTO_LL, PROTO_LL128, PROTO_SIMPLE, PROTO_COUNT } CollProto;
extern const char *const coll_algo_names[];
extern const char *const coll_proto_names[];

/* Who takes part. ranks = nodes * ranks_per_node (node = scale-up domain: NVLink island or PCIe
 * box). sharers: how many groups like this one run at the same time through the same node's NICs
 * (tp*pp members of one node that each do their own dp all-reduce), so that each gets 1/sharers of
 * them. */
/* What a group of a job is for; SPAN_NONE: no group of a job (a benchmark, a pair). */
typedef enum {
  SPAN_NONE,
  SPAN_TP,
  SPAN_CP,
  SPAN_EP,
  SPAN_ETP, /* tensor parallelism of experts */
  SPAN_DP,  /* gradients and sharded parameters */
  SPAN_EDP, /* … of experts */
  SPAN_PP,
  SPAN_COUNT
} SpanKind;
extern const char *const span_names[]; /* "none", "tp" … */

/* Which ranks of the job it spans: n[0] at stride[0] for each of n[1] at stride[1]; all groups of
 * that kind follow from it. */
typedef struct {
  SpanKind kind;
  int n[2];
  gint64 stride[2];
} CollSpan;

typedef struct {
  int ranks, ranks_per_node, nodes, sharers;
  CollSpan span; /* zero where it is no group of a job */
} CollGroup;

typedef struct {
  CollAlgo algo;
  CollProto proto;
} CollChoice;

typedef struct Fabric Fabric; /* see fabric.h for the fields */

/* Time of one call on bytes (the full buffer for all_gather and reduce_scatter, as nccl-tests
 * counts). choice may be NULL; on input algo/proto other than AUTO force that one, where the
 * planner has it for this operation and fabric (else it chooses among all); on output it is what
 * was used. alltoall and sendrecv are point-to-point kernels: AUTO and Simple. 0 s for one rank and
 * for no bytes. Never falls when bytes
 * grow, nor (powers of two) when nodes of the same shape are added. Precomputes per group shape
 * inside f: not for two threads on one Fabric. */
double coll_time_s (const Fabric *f, CollOp op, const CollGroup *g, double bytes,
                    CollChoice *choice);

/* One point-to-point message; same_node tells the path. sharers: messages at the same time through
 * the same NIC. */
double p2p_time_s (const Fabric *f, gboolean same_node, int sharers, double bytes);

/* The same as a hop of a group's neighbours in rank, all of them at once: with what a network that
 * they share adds (Fabric.net). */
double p2p_group_time_s (const Fabric *f, const CollGroup *g, gboolean same_node, int sharers,
                         double bytes);

/* A price t of one's own for an exchange within g, with what a shared network adds for so many
 * bytes. */
double coll_shared_s (const Fabric *f, CollOp op, const CollGroup *g, double bytes, double t);

/* busbw factor of nccl-tests: 2(n-1)/n, (n-1)/n or 1. */
double coll_bus_factor (CollOp op, int ranks);

#endif
