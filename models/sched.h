/* sched: pipeline schedules as tables of actions.
 *
 * One row per pipeline rank; an action is [stage][kind][micro-batch], kinds F forward, B full
 * backward, I input gradient, W weight gradient, in PyTorch's notation: "0F0 0F1 0B0 1W0". stage is
 * the global (virtual) stage 0 … pp*vpp-1; which rank owns it follows from the rows it appears in.
 * Two actions in "(0F3;1B1)OVERLAP_F_B" run as one overlapped pair.
 * A schedule that keeps the model twice and feeds it from both ends (DualPipe) has pipelines = 2:
 * stages 0 … stages/2-1 are the first copy, the others the second, and each copy takes half the
 * micro-batches. Generators only make tables; nothing else in the program knows a schedule's name.
 *
 * Errors (domain SCHED_ERROR): a table that is not complete, out of order or would deadlock is
 * refused with the rank and action; divisibility errors name the nearest legal values.
 */
#ifndef CLUSTERSIM_SCHED_H
#define CLUSTERSIM_SCHED_H

#include <glib.h>

#define SCHED_ERROR sched_error_quark ()
GQuark sched_error_quark (void);
typedef enum { SCHED_ERROR_SYNTAX, SCHED_ERROR_ILLEGAL, SCHED_ERROR_DIVISIBILITY } SchedError;

typedef enum { SCHED_F, SCHED_B, SCHED_I, SCHED_W } SchedKind;

typedef struct {
  guint32 microbatch;
  guint16 stage;
  guint8 kind;
  guint8 pair; /* 1: this and the next action are one overlapped pair */
} SchedAction; /* 8 bytes */

/* Tables with more actions are refused, by the generators and by the parser (80 MB). */
#define SCHED_MAX_ACTIONS 10000000u

typedef struct {
  guint ranks, stages, microbatches;
  guint pipelines;      /* independent copies of the model; 1, for DualPipe 2; divides both above */
  guint32 *first;       /* ranks + 1 offsets into actions */
  SchedAction *actions; /* row by row */
  guint16 *stage_rank;  /* stages: owner of each stage */
} SchedTable;

/* Model parts, and the part (0 … depth-1) that a stage holds. F of part > 0 follows F of stage - 1,
 * B and I of part < depth-1 follow B or I of stage + 1, for the same micro-batch. */
static inline guint
sched_depth (const SchedTable *t)
{
  return t->pipelines == 1   ? t->stages
         : t->pipelines == 2 ? t->stages >> 1
                             : t->stages / t->pipelines;
}
static inline guint
sched_part (const SchedTable *t, guint stage)
{
  if (t->pipelines == 1)
    return stage;
  guint half = t->stages >> 1; /* no division where it is asked for every action */
  if (t->pipelines == 2)
    return stage < half ? stage : stage - half;
  return stage % sched_depth (t);
}
/* Micro-batches of one pipeline, and the first of those that stage works on. */
static inline guint
sched_pipeline_microbatches (const SchedTable *t)
{
  return t->microbatches / t->pipelines;
}
static inline guint
sched_first_microbatch (const SchedTable *t, guint stage)
{
  return stage / sched_depth (t) * sched_pipeline_microbatches (t);
}

void sched_table_free (SchedTable *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (SchedTable, sched_table_free)

extern const char *const sched_names[]; /* "gpipe", "1f1b", "interleaved", … NULL-terminated */

/* Generates by name (one of sched_names). "interleaved" with vpp 1 is 1f1b. O(actions).
 * Sources, bubbles and memory of each are in SCHEDULES.md. */
SchedTable *sched_generate (const char *name, guint pp, guint vpp, guint microbatches,
                            GError **error);

/* Text form: one line per rank "rank N: actions" (or "N: actions"), blanks or commas between the
 * actions, '#' comments; also accepts lines without prefix, which count up from 0; a line
 * "pipelines 2" before the first rank for DualPipe. Errors carry line and column. A parsed table is
 * not yet verified. len -1: text ends with NUL. What sched_print returns (g_free it) parses to the
 * same table. */
SchedTable *sched_parse (const char *text, gssize len, GError **error);
char *sched_print (const SchedTable *t);

/* Text of one action without its pair, "12B345". */
#define SCHED_ACTION_CHARS 20
void sched_action_text (const SchedAction *a, char text[SCHED_ACTION_CHARS]);

/* Each (F, B or I+W) of every stage and micro-batch exactly once; B/I after F, W after I on its
 * rank; every stage on one rank; a dry run over all ranks terminates. */
gboolean sched_verify (const SchedTable *t, GError **error);

/* Durations for a dry run, in any integer unit (ticks), none negative. */
typedef struct {
  gint64 kind[4];           /* by SchedKind, of one stage (chunk) and micro-batch */
  const gint64 (*stage)[4]; /* NULL, or t->stages rows that replace kind */
  gint64 p2p;               /* added when the neighbour stage is on another rank */
  gint64 pair_saved;        /* a pair lasts the sum of its two less this, at least the longer one */
} SchedCosts;

/* What a dry run found. The arrays are the caller's, t->ranks each, or NULL when not wanted. */
typedef struct {
  gint64 makespan;
  gint64 *busy;  /* sum of durations */
  gint64 *start; /* of the rank's first action */
  gint64 *end;   /* of its last */
} SchedRun;

/* Runs a verified table: each rank in order, each action when its input has arrived, sends free but
 * for p2p. FALSE with SCHED_ERROR_ILLEGAL on a deadlock. Sums saturate at G_MAXINT64.
 * O(actions). */
gboolean sched_dry_run (const SchedTable *t, const SchedCosts *costs, SchedRun *run,
                        GError **error);

/* Peak number of micro-batches whose activations rank holds for its local chunk (F done, B or W
 * not), from the table alone. in_flight: array of t->stages; entries of other ranks' stages are 0.
 * For several chunks the peaks of the sum are what memory needs: see sched_peak_weighted. */
void sched_peak_in_flight (const SchedTable *t, guint rank, guint32 *in_flight);

/* Peak over the row of the sum over stages of weight[stage] * (micro-batches in flight there). */
double sched_peak_weighted (const SchedTable *t, guint rank, const double *weight);

#endif
