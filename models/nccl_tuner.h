/* nccl_tuner: what NCCL would choose, not what it then costs.
 *
 * NCCL's planner gives every algorithm and protocol a latency and a bandwidth for the communicator
 * and takes the smallest latency + bytes / bandwidth. These are the planner's constants of
 * versions 2.8 to 2.30 as facts (base and hardware latencies, bandwidth caps, correction of trees
 * by size), with a short form of its channel search: highest speed of its list that fits the links,
 * over the NICs that the group's GPUs drive. Good priors and no measurements; coll_cost.h says what
 * a call costs.
 *
 * Not modelled: CollNet (needs a SHARP plugin), environment variables, and of tuner plugins more
 * than that the AWS one keeps to the ring where NCCL would take NVLSTree on more than two nodes.
 */
#ifndef CLUSTERSIM_NCCL_TUNER_H
#define CLUSTERSIM_NCCL_TUNER_H

#include "fabric.h"

typedef struct {
  CollAlgo algo;
  CollProto proto;
  double latency_us, bandwidth_GBps; /* of the planner; algorithm bandwidth */
  double plateau_latency;            /* factor on latency_us from plateau_bytes on */
  double plateau_bytes;
} NcclCandidate;

/* The candidates of one operation on one communicator; by value. n is 0 for operations that are not
 * planned (alltoall, sendrecv). */
typedef struct {
  int n;
  NcclCandidate c[ALGO_COUNT * PROTO_COUNT];
} NcclPlan;

void nccl_plan_init (NcclPlan *plan, const Fabric *f, CollOp op, const CollGroup *g);

/* The planner's own estimate of candidate i. */
double nccl_plan_time_us (const NcclPlan *plan, int i, double bytes);

/* The best candidate that agrees with force (AUTO: any); where none does, with its algorithm alone;
 * else of all. */
CollChoice nccl_plan_choose (const NcclPlan *plan, double bytes, CollChoice force);

#endif
