/* import_timeline: what was measured on a GPU, from a profiler's trace, to put beside a prediction.
 *
 * Kineto (PyTorch profiler, Chrome trace JSON, .gz too): spans of the GPU by category. Of their
 * union over all streams: time with compute, with communication (kernels of NCCL, by collective),
 * communication without compute at the same time (exposed), copies, and nothing (idle). A step is
 * a "ProfilerStep#N" annotation where there are such. Chakra (JSON of a trace of one rank, as
 * "workload_graph" or the nodes of the schema; or the binary .et): sums of the durations by kind;
 * such a file has no start times, so nothing is told of overlap. What is not understood is counted,
 * not refused. Errors: those of JSON; CLI_ERROR_USAGE.
 */
#ifndef CLUSTERSIM_IMPORT_TIMELINE_H
#define CLUSTERSIM_IMPORT_TIMELINE_H

#include <glib.h>

enum { TIMELINE_COLLECTIVES = 7 };
extern const char *const timeline_collectives[]; /* "all_reduce" …, "other"; NULL at the end */

typedef struct {
  gboolean has_times;
  double span_s; /* from the first to the last span of the GPU */
  double compute_s, communication_s, exposed_s, copy_s, idle_s; /* of the union; Chakra: sums */
  double collective_s[TIMELINE_COLLECTIVES];                    /* sums of kernel times */
  double host_s;                                                /* Chakra: sum of CPU operations */
  guint64 kernels, collectives, steps, skipped;
  double step_s; /* median of the steps; 0: none */
} Timeline;

gboolean import_kineto (const char *path, Timeline *out, GError **error);
gboolean import_chakra (const char *path, Timeline *out, GError **error);

#endif
