/* fit_fabric: timings of collectives → the numbers of a fabric.
 *
 * f is the fabric to start from. A sample whose algorithm and protocol are stated is held against
 * that formula (models/coll_cost.c); else against the one NCCL's planner would have taken, which
 * depends on nothing that is fitted. Numbers that no sample feels stay as they are.
 * like_simple: the transport has one protocol (MPI): the numbers of LL and LL128, and of the trees'
 * and alltoall's share of the line rate where no sample says, are those of the ring with Simple, so
 * that whatever the planner takes costs the same. */
#ifndef CLUSTERSIM_FIT_FABRIC_H
#define CLUSTERSIM_FIT_FABRIC_H

#include "fabric.h"
#include "fit_report.h"

gboolean fit_fabric (Fabric *f, const SampleSet *s, gboolean like_simple, const FitOptions *o,
                     FitReport *r, GError **error);

#endif
