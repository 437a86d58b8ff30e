/* sweep_point: one point of a sweep → one line of its result.
 *
 * A point is the base scenario with the values of the axes set. A point that cannot run is a line
 * too, with the reason in its last column ("error" in JSON). The same point gives the same line
 * whatever was predicted before it: what is cached (parsed parts, verified schedules) are pure
 * functions of their names. Ownership: borrows base, axes and intervals.
 */
#ifndef CLUSTERSIM_SWEEP_POINT_H
#define CLUSTERSIM_SWEEP_POINT_H

#include "cli.h"
#include "interval.h"
#include "json_read.h"
#include "sweep_axes.h"

typedef struct {
  JsonDoc *base;
  const SweepAxes *axes;
  const IntervalTable *intervals;
  const char *series;  /* name in the result, or NULL: the scenario's */
  OutputFormat format; /* FORMAT_JSON: JSON lines; else CSV */
  gboolean number;     /* lines begin with the number of the point ("point" in JSON) */
} SweepPlan;

typedef struct SweepWorker SweepWorker; /* a plan and its caches */
SweepWorker *sweep_worker_new (const SweepPlan *plan);
void sweep_worker_free (SweepWorker *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (SweepWorker, sweep_worker_free)

/* Appends the line of point i, with its newline. FALSE: it could not run; why then has the reason
 * (the line is there too). */
gboolean sweep_worker_line (SweepWorker *w, guint64 i, GString *out, GError **why);

/* Appends the header of CSV; nothing for JSON. The first column of numbered lines is
 * "point_of_N", with N the points of the whole sweep, so that a merge sees what is missing. */
void sweep_plan_header (const SweepPlan *plan, GString *out);
#define SWEEP_POINT_COLUMN "point_of_"

#endif
