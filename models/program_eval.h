/* program_eval: the calls that make a program, inline: a step that is evaluated (program.h) makes
 * tens of thousands of them. What lies in the structures is program.c's own. Included by program.h.
 */
#ifndef CLUSTERSIM_PROGRAM_EVAL_H
#define CLUSTERSIM_PROGRAM_EVAL_H

#include "program.h"

/* A stream of one rank while it is evaluated. */
typedef struct {
  SimTime *ends;
  guint32 n, cap;
  SimTime begin, duration; /* of the newest operation */
} EvalStream;

typedef struct {
  EvalStream *all;                          /* n_ranks * n_streams; NULL while building */
  EvalStream *now;                          /* of the selected rank */
  guint n_streams, rank, n_ranks, selected; /* ranks that are evaluated come first */
  guint32 *slot_offset;
  guint8 mirror[PROGRAM_MAX_STREAMS];
  gboolean unresolved, late;
  const OpCost *costs; /* of the builder */
} ProgramEval;

/* What every builder begins with. */
static inline ProgramEval *
program_eval_of (ProgramBuilder *b)
{
  return (ProgramEval *)(void *)b;
}

static inline EvalStream *
program_eval_stream (const ProgramEval *v, guint rank, guint stream)
{
  if (G_UNLIKELY (rank >= v->selected)) {
    rank = v->n_ranks - 1 - rank;
    stream = v->mirror[stream];
  }
  return &v->all[(gsize)rank * v->n_streams + stream];
}

/* Makes room for one more. */
void program_eval_grow (EvalStream *e);

static inline void
program_eval_end (ProgramEval *v, EvalStream *e)
{
  if (G_UNLIKELY (__builtin_add_overflow (e->begin, e->duration, &e->ends[e->n - 1]))) {
    e->ends[e->n - 1] = SIM_TIME_MAX;
    v->late = TRUE;
  }
}

/* Appends to a stream; returns the number of operations in it afterwards (the count to wait for).
 */
static inline guint32
program_op (ProgramBuilder *b, guint stream, OpKind kind, guint32 cost, guint32 tag)
{
  ProgramEval *v = program_eval_of (b);
  if (v->all == NULL)
    return program_append_op (b, stream, kind, cost, tag);
  EvalStream *e = &v->now[stream];
  if (G_UNLIKELY (e->n == e->cap))
    program_eval_grow (e);
  e->begin = e->n > 0 ? e->ends[e->n - 1] : 0;
  e->duration = v->costs[cost].duration;
  e->n++;
  program_eval_end (v, e);
  return e->n;
}

/* Adds a wait to the operation appended last to stream; count 0 is dropped. */
static inline void
program_wait (ProgramBuilder *b, guint stream, gint peer, guint wait_stream, guint32 count)
{
  ProgramEval *v = program_eval_of (b);
  if (v->all == NULL) {
    program_append_wait (b, stream, peer, wait_stream, count);
    return;
  }
  if (count == 0)
    return;
  EvalStream *e = &v->now[stream], *target = &v->now[wait_stream];
  if (peer >= 0) {
    guint rank = v->rank + v->slot_offset[peer];
    rank -= rank >= v->n_ranks ? v->n_ranks : 0;
    target = program_eval_stream (v, rank, wait_stream);
  }
  if (G_UNLIKELY (target->n < count)) {
    v->unresolved = TRUE;
    return;
  }
  if (target->ends[count - 1] > e->begin) {
    e->begin = target->ends[count - 1];
    program_eval_end (v, e);
  }
}

/* Makes the last op a rendezvous of the slot's group: it starts when every member has come. The
 * calls of one slot must all be on one stream, and a rank is a member of a group once: who comes to
 * which meeting would hang on the order of evaluation otherwise (program_verify refuses it). An
 * evaluation is for slots that are nobody's rendezvous, or one of ranks that mirror each other. */
static inline void
program_group (ProgramBuilder *b, guint stream, guint slot)
{
  if (program_eval_of (b)->all == NULL)
    program_append_group (b, stream, slot);
}

/* Of the current program, so far. */
static inline guint32
program_count (ProgramBuilder *b, guint stream)
{
  const ProgramEval *v = program_eval_of (b);
  return v->all != NULL ? v->now[stream].n : program_append_count (b, stream);
}

#endif
