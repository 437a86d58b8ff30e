#include "breakdown.h"

#include <string.h>

/* The part an operation's own run counts for while somebody waits for it: its largest share. */
static Part
part_of_op (const ProgramSet *set, const Op *op)
{
  if (op->kind == OP_COMPUTE)
    return PART_BUBBLE; /* waiting for another's compute is a bubble */
  const OpCost *c = &set->costs[op->cost];
  Part best = PART_OTHER;
  SimTime most = 0;
  for (guint p = 0; p < PART_COUNT; p++)
    if (c->part[p] > most) {
      most = c->part[p];
      best = (Part)p;
    }
  return best;
}

typedef struct {
  const ProgramSet *set;
  const ExecResult *res;
  Breakdown *out;
} Walk;

static const Op *
op_at (const ProgramSet *set, guint rank, guint stream, guint i)
{
  return &set->ops[set->first_op[set->rank_program[rank] * set->n_streams + stream] + i];
}

/* Attributes [from, to) by what stream (rank, st) was doing up to its operation last: backwards
 * over its operations; inside one to its part, in its gaps to the bubble. */
static void
attribute_wait (Walk *w, guint rank, guint st, guint last, SimTime from, SimTime to)
{
  guint i = last + 1;
  while (to > from && i-- > 0) {
    const Op *op = op_at (w->set, rank, st, i);
    SimTime end = exec_op_end (w->set, w->res, rank, st, i);
    SimTime begin = end - w->set->costs[op->cost].duration;
    if (end < to) {
      w->out->part[PART_BUBBLE] += to - MAX (end, from);
      to = MAX (end, from);
    }
    if (begin < to) {
      SimTime b = MAX (begin, from);
      w->out->part[part_of_op (w->set, op)] += to - b;
      to = b;
    }
  }
  if (to > from)
    w->out->part[PART_BUBBLE] += to - from;
}

/* The wait of op that ended last: which stream, which operation. FALSE when it waited for nothing.
 */
static gboolean
latest_wait (const Walk *w, guint rank, const Op *op, guint *peer, guint *st, guint *index)
{
  SimTime latest = -1;
  for (guint i = 0; i < op->n_waits; i++) {
    const Wait *wait = &w->set->waits[op->wait0 + i];
    guint p =
        wait->peer < 0 ? rank : w->set->peers[(gsize)rank * w->set->n_peers + (gsize)wait->peer];
    SimTime end = exec_op_end (w->set, w->res, p, wait->stream, wait->count - 1);
    if (end > latest) {
      latest = end;
      *peer = p;
      *st = wait->stream;
      *index = wait->count - 1;
    }
  }
  return latest >= 0;
}

static void
add_op (Breakdown *out, const OpCost *c)
{
  for (guint p = 0; p < PART_COUNT; p++)
    out->part[p] += c->part[p];
}

void
breakdown_compute (const ProgramSet *set, const ExecResult *res, guint rank, guint stream,
                   Breakdown *out)
{
  Walk w = {set, res, out};
  SimTime now = 0;
  guint n = program_ops_of (set, set->rank_program[rank], stream);
  memset (out, 0, sizeof *out);
  for (guint i = 0; i < n; i++) {
    const Op *op = op_at (set, rank, stream, i);
    SimTime end = exec_op_end (set, res, rank, stream, i);
    SimTime begin = end - set->costs[op->cost].duration;
    if (begin > now) {
      guint peer = 0, st = 0, index = 0;
      SimTime arrival = begin;
      if (latest_wait (&w, rank, op, &peer, &st, &index)) {
        arrival = CLAMP (exec_op_end (set, res, peer, st, index), now, begin);
        attribute_wait (&w, peer, st, index, now, arrival);
      } else {
        arrival = now;
      }
      /* what is left is a rendezvous waiting for its other members */
      out->part[PART_BUBBLE] += begin - arrival;
    }
    add_op (out, &set->costs[op->cost]);
    now = end;
  }
  if (now < res->end) {
    /* the compute stream is done; another stream of the rank holds the end of the step */
    guint best = stream;
    SimTime latest = -1;
    for (guint s = 0; s < set->n_streams; s++) {
      guint m = program_ops_of (set, set->rank_program[rank], s);
      if (s != stream && m > 0 && exec_op_end (set, res, rank, s, m - 1) > latest) {
        latest = exec_op_end (set, res, rank, s, m - 1);
        best = s;
      }
    }
    if (best != stream)
      attribute_wait (&w, rank, best, program_ops_of (set, set->rank_program[rank], best) - 1, now,
                      res->end);
    else
      out->part[PART_BUBBLE] += res->end - now;
  }
  out->total = res->end;
}

void
breakdown_busy (const ProgramSet *set, const ExecResult *res, guint rank, guint stream,
                Breakdown *out)
{
  guint n = program_ops_of (set, set->rank_program[rank], stream);
  memset (out, 0, sizeof *out);
  for (guint i = 0; i < n; i++)
    add_op (out, &set->costs[op_at (set, rank, stream, i)->cost]);
  for (guint p = 0; p < PART_COUNT; p++)
    out->total += out->part[p];
  (void)res;
}
