/* breakdown: where the time of one rank went.
 *
 * The timeline of a reference rank's compute stream is walked from 0 to the end of the step; every
 * tick is either inside an operation, whose cost says how it divides, or a wait. A wait is
 * attributed by what was happening on the stream waited for: while a transfer or collective was
 * running, to its part; while that stream was itself waiting for work from another rank, to the
 * bubble. The parts add up to the end of the step because the walk covers it, not because one of
 * them is a remainder.
 */
#ifndef CLUSTERSIM_BREAKDOWN_H
#define CLUSTERSIM_BREAKDOWN_H

#include "exec.h"

typedef struct {
  SimTime part[PART_COUNT];
  SimTime total; /* = end of the step */
} Breakdown;

/* stream: the stream whose timeline is told (compute). The run must be recorded. If the stream ends
 * before the step, the rest is attributed to what the rank's other streams do, and then to the
 * bubble. */
void breakdown_compute (const ProgramSet *set, const ExecResult *res, guint rank, guint stream,
                        Breakdown *out);

/* The same from the start of the stream's first operation to the rank's own end; returns that time.
 * For steps that follow each other without a barrier, each rank starting when its own step before
 * is done. The run must be without jitter. out may be NULL. */
SimTime breakdown_span (const ProgramSet *set, const ExecResult *res, guint rank, guint stream,
                        Breakdown *out);

/* Ticks the stream of the rank is inside operations, per part; no waits. */
void breakdown_busy (const ProgramSet *set, const ExecResult *res, guint rank, guint stream,
                     Breakdown *out);

#endif
