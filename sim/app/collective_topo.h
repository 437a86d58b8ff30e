/* collective_topo: one collective at a time over the links of a topology, for `collective
 * --topology`.
 *
 * Costs come from the fabric, links and routes from the topology; what the profile says and what
 * the links carry are held against each other by the plan (coll_plan.h). Jobs: so many groups of
 * the same shape, placed one after the other, that make the same call at the same time; the time is
 * the first one's. Errors: those of reading, TOPO_ERROR, CLI_ERROR_USAGE.
 */
#ifndef CLUSTERSIM_COLLECTIVE_TOPO_H
#define CLUSTERSIM_COLLECTIVE_TOPO_H

#include "coll_plan.h"

typedef struct {
  const char *topology;  /* a name or a path */
  const char *fidelity;  /* NULL: flow */
  const char *placement; /* NULL: block; block, rail, scattered, or a file of hosts, one a line */
  const char *routing;   /* NULL: adaptive */
  int jobs;              /* 0 stands for 1 */
  int channels;          /* 0: one a NIC; up to 64 */
  gboolean hierarchical; /* in place of NCCL's algorithms */
  guint64 seed;
} CollTopoSpec;

typedef struct CollTopo CollTopo;

CollTopo *coll_topo_new (const CollTopoSpec *s, const Fabric *f, const CollGroup *g,
                         GError **error);
void coll_topo_free (CollTopo *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (CollTopo, coll_topo_free)

/* Seconds; 0 with error when there is no such plan or no path is left. */
double coll_topo_time_s (CollTopo *t, CollOp op, CollChoice how, double bytes, GError **error);

const char *coll_topo_name (const CollTopo *t);

#endif
