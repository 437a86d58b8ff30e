/* sched: pipeline schedules as tables of actions.
 *
 * One row per pipeline rank; an action is [stage][kind][micro-batch], kinds F forward, B full backward,
 * I input gradient, W weight gradient, in PyTorch's notation: "0F0 0F1 0B0 1W0". stage is the global
 * (virtual) stage 0 … pp*vpp-1; which rank owns it follows from the rows it appears in. Two actions in
 * "(0F3;1B1)OVERLAP_F_B" run as one overlapped pair.
 * Generators only make tables; nothing else in the program knows a schedule's name.
 *
 * Errors (domain SCHED_ERROR): a table that is not complete, out of order or would deadlock is refused
 * with the rank and action; divisibility errors name the nearest legal values.
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

typedef struct {
  guint ranks, stages, microbatches;
  guint32 *first;       /* ranks + 1 offsets into actions */
  SchedAction *actions; /* row by row */
  guint16 *stage_rank;  /* stages: owner of each stage */
} SchedTable;

void sched_table_free (SchedTable *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (SchedTable, sched_table_free)

extern const char *const sched_names[]; /* "gpipe", "1f1b", "interleaved", … NULL-terminated */

/* Generates by name (one of sched_names). "interleaved" with vpp 1 is 1f1b. */
SchedTable *sched_generate (const char *name, guint pp, guint vpp, guint microbatches, GError **error);

/* Text form: one line per rank "rank: actions", '#' comments; also accepts lines without "rank:". */
SchedTable *sched_parse (const char *text, gssize len, GError **error);
char *sched_print (const SchedTable *t);

/* Each (F, B or I+W) of every stage and micro-batch exactly once; B/I after F, W after I on its rank;
 * every stage on one rank; a dry run over all ranks terminates. */
gboolean sched_verify (const SchedTable *t, GError **error);

/* Peak number of micro-batches whose activations rank holds for its local chunk (F done, B or W not),
 * from the table alone. in_flight: array of t->stages; entries of other ranks' stages are 0.
 * For several chunks the peaks of the sum are what memory needs: see sched_peak_weighted. */
void sched_peak_in_flight (const SchedTable *t, guint rank, guint32 *in_flight);

/* Peak over the row of sum over stages of weight[stage] * (micro-batches in flight of that stage). */
double sched_peak_weighted (const SchedTable *t, guint rank, const double *weight);

#endif
