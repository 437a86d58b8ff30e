/* nccl_tuner: what NCCL would choose, not what it then costs.
 *
 * NCCL's planner gives every algorithm and protocol a latency and a bandwidth for the communicator
 * and takes the smallest latency + bytes / bandwidth. These are the planner's constants of
 * versions 2.8 to 2.30 as facts (base and hardware latencies, bandwidth caps, correction of trees
 * by size), with a short form of its channel search: highest speed of its list that fits the links,
 * over the NICs that the group's GPUs drive. Good priors and no measurements; coll_cost.h says what
 * a call costs.
 *
 * What the user sets (nccl_env.h) forbids candidates and sets channels and threads; CollNet is a
 * candidate where the network has SHARP and it is switched on. Of tuner plugins no more is modelled
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
  gboolean corrected; /* its bandwidth depends on the size, as a tree's */
  gboolean if_asked;  /* chosen only by name */
} NcclCandidate;

/* The candidates of one operation on one communicator; by value. n is 0 for operations that are not
 * planned (alltoall, sendrecv). */
typedef struct {
  int n;
  int channels, nvls_channels; /* of rings and trees; of NVLS and NVLSTree */
  int threads[PROTO_COUNT];    /* of a channel */
  int ranks;
  NcclCandidate c[ALGO_COUNT * PROTO_COUNT];
} NcclPlan;

void nccl_plan_init (NcclPlan *plan, const Fabric *f, CollOp op, const CollGroup *g);

/* The planner's own estimate of candidate i. */
double nccl_plan_time_us (const NcclPlan *plan, int i, double bytes);

/* Channels that a call of this size uses: NCCL drops channels, to one, and then halves threads
 * while bytes < channels * threads * threshold. *threads: NULL, or set. */
int nccl_plan_channels (const NcclPlan *plan, CollChoice how, double bytes, int *threads);

/* The best candidate that agrees with force (AUTO: any); where none does, with its algorithm alone;
 * else of all. */
CollChoice nccl_plan_choose (const NcclPlan *plan, double bytes, CollChoice force);

#endif
