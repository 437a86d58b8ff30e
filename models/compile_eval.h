/* compile_eval: a healthy, uncontended step without building its programs.
 *
 * The rows of the schedule are followed side by side, each as far as what it waits for is known,
 * and the calls that would build the programs (compile.c, the same code) are answered with
 * completion times at once: the max-plus recurrence of exec.h without the memory for operations and
 * waits. The end of the step, with its rendezvous, and the timeline of the reference rank with its
 * neighbours are then built and run as ordinary small programs. The result is that of compile_step
 * and exec_run_fast, to the tick and to the fingerprint; a test holds them equal.
 */
#ifndef CLUSTERSIM_COMPILE_EVAL_H
#define CLUSTERSIM_COMPILE_EVAL_H

#include "breakdown.h"
#include "compile.h"

typedef struct {
  SimTime end;
  guint last_rank;
  guint64 operations, fingerprint;
  Breakdown breakdown; /* of last_rank */
} StepTimes;

/* TRUE: out holds the step. FALSE without error: this step is not one for this way (a deadlock, a
 * wait that cannot be followed): build it. FALSE with error: as compile_step. */
gboolean compile_eval (const Spec *s, const SchedTable *t, const StageLayers *sl,
                       const StageTimes *times, StepTimes *out, GError **error);

#endif
