/* The event-driven executor of exec.h: one event per operation that takes time. A stream that
 * cannot start its next operation is linked to the one stream it waits for and costs nothing until
 * that one advances; 32 bytes of state per stream, nothing per operation unless the timeline is
 * recorded. */
#include <math.h>
#include <string.h>

#include "exec.h"

#define NONE     G_MAXUINT32
#define GROUP_EV ((guint64)1 << 32)

typedef struct {
  guint32 pc;      /* operations done */
  guint32 waiters; /* first stream blocked on this one */
  guint32 next;
  guint32 need;
  guint32 n;
  guint32 first; /* of its operations in the set */
  guint32 rank;
  guint32 rank0; /* first stream of its rank */
} StreamState;   /* half a cache line */
G_STATIC_ASSERT (sizeof (StreamState) == 32);

typedef struct {
  guint32 arrived, first;
  SimTime duration;
} GroupState;

typedef struct {
  const ProgramSet *set;
  SimEngine *eng;
  guint16 kind;
  StreamState *streams;
  GroupState *groups;
  guint32 *ready;
  guint n_ready, cap_ready;
  const ExecOptions *opt;
  SimRng *rng;         /* per rank, when there is jitter */
  guint32 *next_delay; /* per rank, when there are delays; else NULL */
  ExecResult *res;
} Exec;

static void
push_ready (Exec *x, guint32 id)
{
  if (x->n_ready == x->cap_ready) {
    x->cap_ready = MAX (64, x->cap_ready * 2);
    x->ready = g_renew (guint32, x->ready, x->cap_ready);
  }
  x->ready[x->n_ready++] = id;
}

static gboolean
waits_hold (Exec *x, guint32 id, const Op *op)
{
  const ProgramSet *set = x->set;
  StreamState *s = &x->streams[id];
  const guint32 *peers = set->peers + (gsize)s->rank * set->n_peers;
  const Wait *w = set->waits + op->wait0;
  for (guint i = 0; i < op->n_waits; i++, w++) {
    guint32 of = w->peer < 0 ? s->rank0 : peers[w->peer] * set->n_streams;
    StreamState *target = &x->streams[of + w->stream];
    if (target->pc < w->count) {
      s->need = w->count;
      s->next = target->waiters;
      target->waiters = id;
      return FALSE;
    }
  }
  return TRUE;
}

static void
complete (Exec *x, guint32 id)
{
  StreamState *s = &x->streams[id];
  SimTime now = sim_engine_now (x->eng);
  if (x->res->ends != NULL && x->res->rank_base[s->rank] != G_MAXSIZE) {
    guint32 base = x->set->first_op[x->set->rank_program[s->rank] * x->set->n_streams];
    x->res->ends[x->res->rank_base[s->rank] + (s->first - base) + s->pc] = now;
  }
  x->res->operations++;
  if (++s->pc == s->n) /* the last stream of the rank to end writes last */
    x->res->rank_end[s->rank] = now;
  guint32 *link = &s->waiters;
  while (*link != NONE) {
    StreamState *w = &x->streams[*link];
    if (w->need <= s->pc) {
      push_ready (x, *link);
      *link = w->next;
    } else {
      link = &w->next;
    }
  }
}

static SimTime
scaled_duration (Exec *x, guint rank, const Op *op)
{
  SimTime d = x->set->costs[op->cost].duration;
  if (op->kind != OP_COMPUTE || x->opt == NULL)
    return d;
  double scale = x->opt->rank_scale != NULL ? x->opt->rank_scale[rank] : 1.0;
  if (x->rng != NULL)
    scale *= sim_rng_lognormal (&x->rng[rank], 0.0, x->opt->jitter);
  return scale == 1.0 ? d : (SimTime)llround ((double)d * scale);
}

static SimTime
duration_of (Exec *x, guint32 id, guint rank, const Op *op)
{
  SimTime d = scaled_duration (x, rank, op);
  if (x->next_delay == NULL || id != rank * x->set->n_streams)
    return d;
  guint32 next = x->next_delay[rank];
  if (next < x->opt->n_delays && x->opt->delays[next].rank == rank &&
      x->opt->delays[next].op == x->streams[id].pc) {
    d += x->opt->delays[next].extra;
    x->next_delay[rank]++;
  }
  return d;
}

/* TRUE when the operation is under way or parked; FALSE when it was done at once. */
static gboolean
start_group (Exec *x, guint32 id, guint32 g, SimTime duration)
{
  GroupState *grp = &x->groups[g];
  grp->duration = MAX (grp->duration, duration);
  x->streams[id].next = grp->first;
  grp->first = id;
  if (++grp->arrived == x->set->group_size[g])
    sim_engine_after (x->eng, grp->duration, SIM_PRIO_DONE, x->kind, x, GROUP_EV | g);
  return TRUE;
}

static void
start (Exec *x, guint32 id)
{
  const ProgramSet *set = x->set;
  StreamState *s = &x->streams[id];
  while (s->pc < s->n) {
    const Op *op = &set->ops[s->first + s->pc];
    if (!waits_hold (x, id, op))
      return;
    SimTime d = duration_of (x, id, s->rank, op);
    guint32 g = op->group == OP_NO_GROUP ? GROUP_NONE
                                         : set->groups[(gsize)s->rank * set->n_slots + op->group];
    if (g != GROUP_NONE) {
      start_group (x, id, g, d);
      return;
    }
    if (d > 0) {
      sim_engine_after (x->eng, d, SIM_PRIO_DONE, x->kind, x, id);
      return;
    }
    complete (x, id);
  }
}

static void
drain (Exec *x)
{
  while (x->n_ready > 0)
    start (x, x->ready[--x->n_ready]);
}

static void
on_done (SimEngine *eng, gpointer self, guint64 arg)
{
  Exec *x = self;
  (void)eng;
  if (arg & GROUP_EV) {
    GroupState *grp = &x->groups[(guint32)arg];
    guint32 id = grp->first;
    *grp = (GroupState){.first = NONE};
    while (id != NONE) {
      guint32 next = x->streams[id].next;
      complete (x, id);
      push_ready (x, id);
      id = next;
    }
  } else {
    complete (x, (guint32)arg);
    push_ready (x, (guint32)arg);
  }
  drain (x);
}

static gsize
init_streams (Exec *x, gboolean record)
{
  const ProgramSet *set = x->set;
  gsize total = 0;
  for (guint r = 0; r < set->n_ranks; r++) {
    guint p = set->rank_program[r];
    gboolean kept = record && (x->opt->record_ranks == NULL || x->opt->record_ranks[r]);
    if (record)
      x->res->rank_base[r] = kept ? total : G_MAXSIZE;
    for (guint s = 0; s < set->n_streams; s++) {
      StreamState *st = &x->streams[(gsize)r * set->n_streams + s];
      st->first = set->first_op[p * set->n_streams + s];
      st->n = set->first_op[p * set->n_streams + s + 1] - st->first;
      st->pc = st->need = 0;
      st->rank = r;
      st->rank0 = r * set->n_streams;
      st->waiters = st->next = NONE;
      total += kept ? st->n : 0;
    }
  }
  return total;
}

static gboolean
check_done (const Exec *x, GError **error)
{
  const ProgramSet *set = x->set;
  for (guint32 id = 0; id < set->n_ranks * set->n_streams; id++) {
    const StreamState *s = &x->streams[id];
    if (s->pc == s->n)
      continue;
    g_autofree char *name = op_tag_name (set->ops[s->first + s->pc].tag);
    g_set_error (error, PROGRAM_ERROR, PROGRAM_ERROR_DEADLOCK,
                 "deadlock: rank %u, stream %s waits for ever at operation %u of %u (%s)",
                 id / set->n_streams, set->stream_names[id % set->n_streams], s->pc + 1, s->n,
                 name);
    return FALSE;
  }
  return TRUE;
}

gboolean
exec_run_events (const ProgramSet *set, SimEngine *engine, const ExecOptions *opt, ExecResult *res,
                 GError **error)
{
  guint n = set->n_ranks * set->n_streams;
  gboolean record = opt != NULL && opt->record;
  memset (res, 0, sizeof *res);
  res->rank_end = g_new0 (SimTime, set->n_ranks);
  Exec x = {.set = set,
            .eng = engine,
            .opt = opt,
            .res = res,
            .streams = g_new (StreamState, n),
            .groups = g_new (GroupState, MAX (set->n_groups, 1))};
  x.kind = sim_engine_kind (engine, "op-done", on_done);
  for (guint g = 0; g < set->n_groups; g++)
    x.groups[g] = (GroupState){.first = NONE};
  if (record)
    res->rank_base = g_new (gsize, set->n_ranks);
  gsize total = init_streams (&x, record);
  if (record)
    res->ends = g_new (SimTime, MAX (total, 1));
  if (opt != NULL && opt->jitter > 0) {
    x.rng = g_new (SimRng, set->n_ranks);
    for (guint r = 0; r < set->n_ranks; r++)
      x.rng[r] = sim_engine_stream (engine, "compute jitter", r);
  }
  x.next_delay = exec_delay_index (set, opt);
  for (guint32 id = 0; id < n; id++) {
    start (&x, id);
    drain (&x);
  }
  gboolean ok = sim_engine_run (engine, error) && check_done (&x, error);
  for (guint r = 0; r < set->n_ranks; r++)
    if (res->rank_end[r] > res->end) {
      res->end = res->rank_end[r];
      res->last_rank = r;
    }
  res->fingerprint = sim_engine_fingerprint (engine);
  g_free (x.streams);
  g_free (x.groups);
  g_free (x.ready);
  g_free (x.rng);
  g_free (x.next_delay);
  if (!ok)
    exec_result_clear (res);
  return ok;
}
