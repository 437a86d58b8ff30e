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

static gboolean
is_rendezvous (const ProgramSet *set, guint rank, const Op *op)
{
  return op->group != OP_NO_GROUP &&
         set->groups[(gsize)rank * set->n_slots + op->group] != GROUP_NONE;
}

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

/* The same for an operation that took ticks in place of its cost's duration (jitter, a slow rank):
 * each part in proportion, what rounding leaves to the largest. */
static void
add_scaled (Breakdown *out, const OpCost *c, SimTime ticks)
{
  SimTime left = ticks;
  guint largest = 0;
  if (ticks == c->duration) {
    add_op (out, c);
    return;
  }
  for (guint p = 0; p < PART_COUNT; p++) {
    SimTime part =
        c->duration > 0 ? (SimTime)((double)c->part[p] / (double)c->duration * (double)ticks) : 0;
    part = MIN (part, left);
    out->part[p] += part;
    left -= part;
    if (c->part[p] > c->part[largest])
      largest = p;
  }
  out->part[largest] += left;
}

/* Tells the wait before an operation that ended at end, and returns when it began. */
static SimTime
add_wait (Walk *w, guint rank, const Op *op, SimTime now, SimTime end)
{
  SimTime begin = end - w->set->costs[op->cost].duration;
  guint peer = 0, st = 0, index = 0;
  if (begin == now)
    return now;
  SimTime arrival = now;
  if (latest_wait (w, rank, op, &peer, &st, &index))
    arrival = CLAMP (exec_op_end (w->set, w->res, peer, st, index), now, end);
  if (!is_rendezvous (w->set, rank, op))
    begin = arrival; /* it starts when the last of its waits holds, however long it then takes */
  begin = CLAMP (begin, now, end);
  arrival = MIN (arrival, begin);
  if (arrival > now)
    attribute_wait (w, peer, st, index, now, arrival);
  /* what is left is a rendezvous waiting for its other members */
  w->out->part[PART_BUBBLE] += begin - arrival;
  return begin;
}

/* From tick now on, where the stream starts or the step does, to tick until. */
static void
walk (const ProgramSet *set, const ExecResult *res, guint rank, guint stream, SimTime now,
      SimTime until, Breakdown *out)
{
  Walk w = {set, res, out};
  SimTime from = now;
  guint n = program_ops_of (set, set->rank_program[rank], stream);
  memset (out, 0, sizeof *out);
  for (guint i = 0; i < n; i++) {
    const Op *op = op_at (set, rank, stream, i);
    SimTime end = exec_op_end (set, res, rank, stream, i);
    SimTime begin = add_wait (&w, rank, op, now, end);
    add_scaled (out, &set->costs[op->cost], end - begin);
    now = end;
  }
  if (now < until) {
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
                      until);
    else
      out->part[PART_BUBBLE] += until - now;
  }
  out->total = until - from;
}

void
breakdown_compute (const ProgramSet *set, const ExecResult *res, guint rank, guint stream,
                   Breakdown *out)
{
  walk (set, res, rank, stream, 0, res->end, out);
}

SimTime
breakdown_span (const ProgramSet *set, const ExecResult *res, guint rank, guint stream,
                Breakdown *out)
{
  SimTime start = 0;
  if (program_ops_of (set, set->rank_program[rank], stream) > 0) {
    const Op *op = op_at (set, rank, stream, 0);
    start = exec_op_end (set, res, rank, stream, 0) - set->costs[op->cost].duration;
  }
  if (out != NULL)
    walk (set, res, rank, stream, start, res->rank_end[rank], out);
  return res->rank_end[rank] - start;
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
