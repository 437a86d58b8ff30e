/* exec: runs programs.
 *
 * Two executors with one result. exec_run_events drives the event engine: one event per operation,
 * for everything (jitter, contention, failures, traces of unfolded runs). exec_run_fast evaluates
 * the same programs as a max-plus recurrence in dependency order, without a queue, and is exact
 * where nothing is contended or random: end(op) = max (end (previous op of the stream), end of
 * every operation waited for) + duration, a rendezvous starting at the latest arrival of its
 * members. A test holds the two equal to the tick.
 *
 * Timeline: ends[] holds the completion of every operation of every rank, at
 * rank_base[rank] + index of the operation in its program; starts follow by the duration.
 * Errors: PROGRAM_ERROR_DEADLOCK names the first blocked operation; the engine's own limits pass
 * through.
 */
#ifndef CLUSTERSIM_EXEC_H
#define CLUSTERSIM_EXEC_H

#include "engine.h"
#include "program.h"
#include "trace.h"

typedef struct {
  SimTime end;     /* of the last operation of any rank */
  guint last_rank; /* the last to finish (lowest number among equals) */
  guint64 operations;
  guint64 fingerprint; /* of the timeline (fast) or of the events (events) */
  SimTime *rank_end;   /* n_ranks */
  SimTime *ends;       /* completion per operation, or NULL when not recorded */
  gsize *rank_base;    /* n_ranks: offset of each rank in ends, or NULL */
} ExecResult;

void exec_result_clear (ExecResult *res);

/* A pause of one rank: operation op (0-based) of its stream 0 takes that much longer. */
typedef struct {
  guint32 rank, op;
  SimTime extra;
} ExecDelay;

typedef struct {
  gboolean record;          /* keep ends[] (8 bytes per operation) */
  const double *rank_scale; /* per rank: factor on the compute operations, or NULL */
  double jitter;           /* relative spread (lognormal sigma) of each compute operation; 0 none */
  const ExecDelay *delays; /* sorted by rank and operation, no two alike; or NULL */
  guint n_delays;
  const guint8 *record_ranks; /* with record: only ranks with a 1 (rank_base of the others is
                               * G_MAXSIZE), or NULL: all. Of exec_run_events. */
} ExecOptions;

gboolean exec_run_fast (const ProgramSet *set, ExecResult *res, GError **error);
/* The same with rank_scale and delays; there must be no jitter. */
gboolean exec_run_fast_with (const ProgramSet *set, const ExecOptions *opt, ExecResult *res,
                             GError **error);

/* The same for jobs with every GPU in them, with jitter too (of exec_run_events' stream for seed
 * and run, to the tick), and without keeping all end times: exec_lean.c. Families of ranks that
 * wait for one another are followed one by one. Recording as in exec_run_events. The fingerprint is
 * of the ranks' ends. With jitter only where compute is on the first stream alone
 * (exec_lean_serves). */
gboolean exec_run_lean (const ProgramSet *set, const ExecOptions *opt, guint64 seed, guint64 run,
                        ExecResult *res, GError **error);
gboolean exec_lean_serves (const ProgramSet *set);

/* Where the delays of each rank start: n_ranks + 1 offsets, or NULL without delays; free it. */
guint32 *exec_delay_index (const ProgramSet *set, const ExecOptions *opt);
gboolean exec_run_events (const ProgramSet *set, SimEngine *engine, const ExecOptions *opt,
                          ExecResult *res, GError **error);

/* Fingerprint of a timeline: every completion time, rank by rank and stream by stream. */
typedef struct {
  guint64 lane[4], n, seed;
} ExecHash;
void exec_hash_begin (ExecHash *h, guint64 operations);
void exec_hash_add (ExecHash *h, const SimTime *ends, gsize n);
guint64 exec_hash_end (const ExecHash *h);

/* Writes the timeline of a recorded run, one track per stream; ranks [first, last]. */
void exec_trace (const ProgramSet *set, const ExecResult *res, SimTrace *trace, guint first,
                 guint last);

/* Completion time of operation i (0-based) of a stream of a rank in a recorded run. */
static inline SimTime
exec_op_end (const ProgramSet *set, const ExecResult *res, guint rank, guint stream, guint i)
{
  guint p = set->rank_program[rank];
  return res->ends[res->rank_base[rank] + set->first_op[p * set->n_streams + stream] -
                   set->first_op[p * set->n_streams] + i];
}

/* Newly allocated name of an operation: "F 3.12" (stage 3, micro-batch 12). */
char *op_tag_name (guint32 tag);

#endif
