/* The max-plus pass of exec.h. A stream runs on until it meets a wait that is not yet computed;
 * then it is linked to the stream it waits for, which wakes it when it stops in its turn. The order
 * in which streams are visited does not matter for the result: every end time is the same
 * expression. */
#include "exec.h"

#include <math.h>
#include <string.h>

#define NONE G_MAXUINT32

typedef struct {
  SimTime last;  /* end of the newest operation */
  SimTime *ends; /* of this stream */
  const Op *ops;
  guint32 pc, n;
  guint32 waiters; /* first stream blocked on this one */
  guint32 next;    /* next in the list this stream is blocked in */
  guint32 need;    /* operations the blocking stream must have done */
  guint32 rank;
  const guint32 *peers; /* of the rank */
} FastStream;           /* one cache line */

typedef struct {
  SimTime latest;
  guint32 arrived;
  guint32 first; /* parked members, linked by next */
  SimTime duration;
} FastGroup;

typedef struct {
  const ProgramSet *set;
  FastStream *streams;
  FastGroup *groups;
  guint32 *stack;
  guint n_stack;
  const ExecOptions *opt; /* NULL: nothing differs between ranks */
  guint32 *next_delay;    /* per rank, or NULL */
  SimTime *durations;     /* of the costs, side by side: their shares would fill the cache */
  guint64 done;
  gboolean overflow;
} Fast;

/* t + duration; what runs over the end of the clock stays there and is an error in the end. */
static inline SimTime
end_of (Fast *f, SimTime t, SimTime duration)
{
  SimTime end;
  if (G_LIKELY (!__builtin_add_overflow (t, duration, &end)))
    return end;
  f->overflow = TRUE;
  return SIM_TIME_MAX;
}

void
exec_result_clear (ExecResult *res)
{
  g_clear_pointer (&res->rank_end, g_free);
  g_clear_pointer (&res->ends, g_free);
  g_clear_pointer (&res->rank_base, g_free);
}

/* A rendezvous: parks the stream, or, for the last to arrive, completes all members. */
static gboolean
arrive (Fast *f, guint32 id, guint32 g, SimTime t, SimTime duration)
{
  FastGroup *grp = &f->groups[g];
  FastStream *s = &f->streams[id];
  grp->latest = MAX (grp->latest, t);
  grp->duration = MAX (grp->duration, duration);
  s->next = grp->first;
  grp->first = id;
  if (++grp->arrived < f->set->group_size[g])
    return FALSE;
  SimTime end = end_of (f, grp->latest, grp->duration);
  for (guint32 m = grp->first; m != NONE;) {
    FastStream *ms = &f->streams[m];
    guint32 next = ms->next;
    ms->ends[ms->pc++] = end;
    ms->last = end;
    f->done++;
    if (m != id)
      f->stack[f->n_stack++] = m;
    m = next;
  }
  *grp = (FastGroup){.first = NONE};
  return TRUE;
}

static void
wake (Fast *f, FastStream *s)
{
  guint32 *link = &s->waiters;
  while (*link != NONE) {
    FastStream *w = &f->streams[*link];
    if (w->need <= s->pc) {
      f->stack[f->n_stack++] = *link;
      *link = w->next;
    } else {
      link = &w->next;
    }
  }
}

/* TRUE when every wait of op holds; then *t is raised to the latest. Else the stream is linked. */
static inline gboolean
waits_hold (Fast *f, guint32 id, const Op *op, SimTime *t)
{
  const ProgramSet *set = f->set;
  FastStream *s = &f->streams[id];
  const Wait *w = set->waits + op->wait0;
  for (guint i = 0; i < op->n_waits; i++, w++) {
    guint peer = w->peer < 0 ? s->rank : s->peers[w->peer];
    FastStream *target = &f->streams[peer * set->n_streams + w->stream];
    if (target->pc < w->count) {
      s->need = w->count;
      s->next = target->waiters;
      target->waiters = id;
      return FALSE;
    }
    if (target->ends[w->count - 1] > *t)
      *t = target->ends[w->count - 1];
  }
  return TRUE;
}

/* As the event executor does it: factor of the rank on compute, then its pause. */
static SimTime
own_duration (Fast *f, const FastStream *s, guint32 id, const Op *op)
{
  SimTime d = f->durations[op->cost];
  if (op->kind == OP_COMPUTE && f->opt->rank_scale != NULL && f->opt->rank_scale[s->rank] != 1.0)
    d = (SimTime)llround ((double)d * f->opt->rank_scale[s->rank]);
  if (f->next_delay == NULL || id != s->rank * f->set->n_streams)
    return d;
  guint32 next = f->next_delay[s->rank];
  if (next < f->opt->n_delays && f->opt->delays[next].rank == s->rank &&
      f->opt->delays[next].op == s->pc) {
    d += f->opt->delays[next].extra;
    f->next_delay[s->rank]++;
  }
  return d;
}

static void
run_stream (Fast *f, guint32 id)
{
  const ProgramSet *set = f->set;
  FastStream *s = &f->streams[id];
  while (s->pc < s->n) {
    const Op *op = &s->ops[s->pc];
    SimTime t = s->last;
    if (!waits_hold (f, id, op, &t))
      break;
    SimTime duration = f->durations[op->cost];
    if (G_UNLIKELY (f->opt != NULL))
      duration = own_duration (f, s, id, op);
    if (G_UNLIKELY (op->group != OP_NO_GROUP)) {
      guint32 g = set->groups[(gsize)s->rank * set->n_slots + op->group];
      if (g != GROUP_NONE) {
        if (!arrive (f, id, g, t, duration))
          break;
        continue;
      }
    }
    s->last = end_of (f, t, duration);
    s->ends[s->pc++] = s->last;
    f->done++;
  }
  if (s->waiters != NONE)
    wake (f, s);
}

static gboolean
report_deadlock (const Fast *f, GError **error)
{
  const ProgramSet *set = f->set;
  for (guint32 id = 0; id < set->n_ranks * set->n_streams; id++) {
    const FastStream *s = &f->streams[id];
    if (s->pc == s->n)
      continue;
    g_autofree char *name = op_tag_name (s->ops[s->pc].tag);
    g_set_error (error, PROGRAM_ERROR, PROGRAM_ERROR_DEADLOCK,
                 "deadlock: rank %u, stream %s waits for ever at operation %u of %u (%s)",
                 id / set->n_streams, set->stream_names[id % set->n_streams], s->pc + 1, s->n,
                 name);
    return FALSE;
  }
  g_assert_not_reached ();
}

static gboolean
report_overflow (GError **error)
{
  g_set_error (error, PROGRAM_ERROR, PROGRAM_ERROR_OVERFLOW,
               "the step is longer than its clock, which ends after 106 days");
  return FALSE;
}

void
exec_hash_begin (ExecHash *h, guint64 operations)
{
  for (guint i = 0; i < 4; i++) /* lanes: each step waits for a multiplication */
    h->lane[i] = operations + i;
  h->seed = operations;
  h->n = 0;
}

void
exec_hash_add (ExecHash *h, const SimTime *ends, gsize n)
{
  for (gsize i = 0; i < n; i++, h->n++) {
    guint64 *lane = &h->lane[h->n & 3];
    guint64 x = (*lane ^ (guint64)ends[i]) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
    *lane = x ^ x >> 32;
  }
}

guint64
exec_hash_end (const ExecHash *h)
{
  guint64 x = h->seed;
  for (guint i = 0; i < 4; i++)
    x = (x ^ h->lane[i]) * G_GUINT64_CONSTANT (0xff51afd7ed558ccd);
  return x ^ x >> 32;
}

static void
collect (const Fast *f, ExecResult *res)
{
  const ProgramSet *set = f->set;
  res->end = 0;
  res->last_rank = 0;
  res->operations = f->done;
  for (guint r = 0; r < set->n_ranks; r++) {
    SimTime end = 0;
    for (guint s = 0; s < set->n_streams; s++)
      end = MAX (end, f->streams[r * set->n_streams + s].last);
    res->rank_end[r] = end;
    if (end > res->end) {
      res->end = end;
      res->last_rank = r;
    }
  }
  ExecHash h;
  exec_hash_begin (&h, f->done);
  exec_hash_add (&h, res->ends, f->done);
  res->fingerprint = exec_hash_end (&h);
}

guint32 *
exec_delay_index (const ProgramSet *set, const ExecOptions *opt)
{
  if (opt == NULL || opt->n_delays == 0)
    return NULL;
  guint32 *first = g_new (guint32, set->n_ranks + 1);
  guint i = 0;
  for (guint r = 0; r <= set->n_ranks; r++) {
    while (i < opt->n_delays && opt->delays[i].rank < r)
      i++;
    first[r] = i;
  }
  return first;
}

gboolean
exec_run_fast (const ProgramSet *set, ExecResult *res, GError **error)
{
  return exec_run_fast_with (set, NULL, res, error);
}

gboolean
exec_run_fast_with (const ProgramSet *set, const ExecOptions *opt, ExecResult *res, GError **error)
{
  guint n = set->n_ranks * set->n_streams;
  memset (res, 0, sizeof *res);
  res->rank_end = g_new0 (SimTime, set->n_ranks);
  res->rank_base = g_new (gsize, set->n_ranks);
  gsize total = 0;
  for (guint r = 0; r < set->n_ranks; r++) {
    guint p = set->rank_program[r];
    res->rank_base[r] = total;
    total += set->first_op[(p + 1) * set->n_streams] - set->first_op[p * set->n_streams];
  }
  res->ends = g_new (SimTime, MAX (total, 1));
  g_assert (opt == NULL || opt->jitter <= 0);
  Fast f = {.set = set,
            .opt = opt,
            .next_delay = exec_delay_index (set, opt),
            .streams = g_new (FastStream, n),
            .durations = g_new (SimTime, set->n_costs),
            .stack = g_new (guint32, 2 * n + 1),
            .groups = g_new (FastGroup, MAX (set->n_groups, 1))};
  for (guint i = 0; i < set->n_costs; i++)
    f.durations[i] = set->costs[i].duration;
  for (guint g = 0; g < set->n_groups; g++)
    f.groups[g] = (FastGroup){.first = NONE};
  for (guint32 id = 0; id < n; id++) {
    guint r = id / set->n_streams, st = id % set->n_streams, p = set->rank_program[r];
    guint32 first = set->first_op[p * set->n_streams + st];
    f.streams[id] = (FastStream){.ops = set->ops + first,
                                 .n = set->first_op[p * set->n_streams + st + 1] - first,
                                 .ends = res->ends + res->rank_base[r] +
                                         (first - set->first_op[p * set->n_streams]),
                                 .waiters = NONE,
                                 .next = NONE,
                                 .rank = r,
                                 .peers = set->peers + (gsize)r * set->n_peers};
  }
  for (guint32 id = n; id-- > 0;)
    f.stack[f.n_stack++] = id;
  while (f.n_stack > 0)
    run_stream (&f, f.stack[--f.n_stack]);
  gboolean ok = f.overflow       ? report_overflow (error)
                : f.done < total ? report_deadlock (&f, error)
                                 : TRUE;
  if (ok)
    collect (&f, res);
  else
    exec_result_clear (res);
  g_free (f.streams);
  g_free (f.durations);
  g_free (f.next_delay);
  g_free (f.stack);
  g_free (f.groups);
  return ok;
}
