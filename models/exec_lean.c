/* The max-plus pass for jobs with every GPU in them: the recurrence of exec_fast.c with chance in
 * it, and without keeping what nobody will look at again.
 *
 * Ranks that wait for each other all the time (neighbours in a pipeline, ranks in lockstep) are one
 * family; families meet in rendezvous only, at the ends of a step as a rule. One family after the
 * other is followed as far as it goes, in a buffer that the next one uses again; of the end times
 * only those are kept that operations to come wait for, and a family goes on when a rendezvous that
 * it is in has taken place. Which family goes first does not matter:
 * every end time is the same expression, and each rank draws its own random numbers in the order of
 * its compute stream, which is the order in which the event executor draws them. */
#include <math.h>
#include <string.h>

#include "exec.h"
#include "rng.h"

#define NONE G_MAXUINT32
/* A slot that programs call more often than this, on the first stream or on any, makes one family
 * of its members: each meeting of strangers costs a change of buffer. */
#define CALLS_ON_FIRST 4
#define CALLS_ON_ANY   128
/* With more operations to come it is cheaper to keep all of a rank than to see what they need. */
#define FEW_OPS 256

typedef struct {
  SimTime last;
  SimTime *ends; /* of operation base and what follows */
  const Op *ops;
  const guint32 *peers;
  guint32 pc, n, base;
  guint32 waiters, next, need;
  guint32 rank;
} LeanStream; /* one cache line */

typedef struct {
  SimTime latest, duration;
  guint32 arrived, first;
} LeanGroup;

typedef struct {
  const ProgramSet *set;
  const ExecOptions *opt;
  LeanStream *streams;
  LeanGroup *groups;
  guint32 *stack;
  guint n_stack;
  SimRng *rng;
  guint32 *next_delay;
  SimTime *durations;
  guint64 done;
  gboolean overflow;
  /* families */
  guint32 *family, *member, *first; /* per rank; ranks by family; where each family starts */
  guint n_families;
  SimTime *buffer;
  SimTime **kept;   /* per family: its end times while another has the buffer; owned */
  guint32 *pending; /* per family: first stream to go on, linked by next */
  guint32 *queue;   /* families with something pending, a ring of n_families */
  guint32 queue_head, queue_len;
  guint32 at_work; /* the family that has the buffer */
  guint32 *low;    /* per stream of the family at hand */
} Lean;

/* ---- families ---- */

static guint32
root_of (guint32 *of, guint32 r)
{
  while (of[r] != r) {
    of[r] = of[of[r]];
    r = of[r];
  }
  return r;
}

static void
join (guint32 *of, guint32 a, guint32 b)
{
  guint32 x = root_of (of, a), y = root_of (of, b);
  if (x != y)
    of[MAX (x, y)] = MIN (x, y);
}

/* Slots whose rendezvous come all through the step. */
static void
busy_slots (const ProgramSet *set, gboolean busy[OP_NO_GROUP])
{
  guint32 first[OP_NO_GROUP] = {0}, any[OP_NO_GROUP] = {0};
  for (guint i = 0; i < set->n_programs * set->n_streams; i++)
    for (guint32 k = set->first_op[i]; k < set->first_op[i + 1]; k++)
      if (set->ops[k].group != OP_NO_GROUP) {
        any[set->ops[k].group]++;
        first[set->ops[k].group] += i % set->n_streams == 0 ? 1 : 0;
      }
  for (guint k = 0; k < OP_NO_GROUP; k++)
    busy[k] =
        first[k] > CALLS_ON_FIRST * set->n_programs || any[k] > CALLS_ON_ANY * set->n_programs;
}

static void
find_families (Lean *x)
{
  const ProgramSet *set = x->set;
  guint n = set->n_ranks;
  gboolean busy[OP_NO_GROUP];
  g_autofree guint32 *of = g_new (guint32, n), *met = g_new (guint32, MAX (set->n_groups, 1));
  busy_slots (set, busy);
  for (guint r = 0; r < n; r++)
    of[r] = r;
  for (guint g = 0; g < set->n_groups; g++)
    met[g] = NONE;
  for (guint r = 0; r < n; r++) {
    for (guint k = 0; k < set->n_peers; k++)
      join (of, r, set->peers[(gsize)r * set->n_peers + k]);
    for (guint k = 0; k < set->n_slots; k++) {
      guint32 g = set->groups[(gsize)r * set->n_slots + k];
      if (g == GROUP_NONE || !busy[k])
        continue;
      if (met[g] != NONE)
        join (of, r, met[g]);
      met[g] = r;
    }
  }
  x->family = g_new (guint32, n);
  for (guint r = 0; r < n; r++) /* roots are the lowest of their family */
    x->family[r] = of[r] == r ? x->n_families++ : x->family[root_of (of, r)];
  x->first = g_new0 (guint32, x->n_families + 2);
  for (guint r = 0; r < n; r++)
    x->first[x->family[r] + 2]++;
  for (guint f = 2; f < x->n_families + 2; f++)
    x->first[f] += x->first[f - 1];
  x->member = g_new (guint32, MAX (n, 1));
  for (guint r = 0; r < n; r++)
    x->member[x->first[x->family[r] + 1]++] = r;
}

/* ---- following ---- */

static inline SimTime
end_of (Lean *x, SimTime t, SimTime duration)
{
  SimTime end;
  if (G_LIKELY (!__builtin_add_overflow (t, duration, &end)))
    return end;
  x->overflow = TRUE;
  return SIM_TIME_MAX;
}

static inline void
complete (Lean *x, LeanStream *s, SimTime end)
{
  s->last = end;
  s->ends[s->pc - s->base] = end;
  s->pc++;
  x->done++;
}

/* A stream can run again: at once, or when its family has the buffer. */
static void
go_on (Lean *x, guint32 id)
{
  LeanStream *s = &x->streams[id];
  guint32 f = x->family[s->rank];
  if (f == x->at_work) {
    x->stack[x->n_stack++] = id;
    return;
  }
  if (x->pending[f] == NONE)
    x->queue[(x->queue_head + x->queue_len++) % x->n_families] = f;
  s->next = x->pending[f];
  x->pending[f] = id;
}

static gboolean
arrive (Lean *x, guint32 id, guint32 g, SimTime t, SimTime duration)
{
  LeanGroup *grp = &x->groups[g];
  LeanStream *s = &x->streams[id];
  grp->latest = MAX (grp->latest, t);
  grp->duration = MAX (grp->duration, duration);
  s->next = grp->first;
  grp->first = id;
  if (++grp->arrived < x->set->group_size[g])
    return FALSE;
  SimTime end = end_of (x, grp->latest, grp->duration);
  for (guint32 m = grp->first; m != NONE;) {
    guint32 next = x->streams[m].next;
    complete (x, &x->streams[m], end);
    if (m != id)
      go_on (x, m);
    m = next;
  }
  *grp = (LeanGroup){.first = NONE};
  return TRUE;
}

static void
wake (Lean *x, LeanStream *s)
{
  guint32 *link = &s->waiters;
  while (*link != NONE) {
    LeanStream *w = &x->streams[*link];
    if (w->need <= s->pc) {
      x->stack[x->n_stack++] = *link;
      *link = w->next;
    } else {
      link = &w->next;
    }
  }
}

static inline gboolean
waits_hold (Lean *x, guint32 id, const Op *op, SimTime *t)
{
  const ProgramSet *set = x->set;
  LeanStream *s = &x->streams[id];
  const Wait *w = set->waits + op->wait0;
  for (guint i = 0; i < op->n_waits; i++, w++) {
    guint peer = w->peer < 0 ? s->rank : s->peers[w->peer];
    LeanStream *target = &x->streams[peer * set->n_streams + w->stream];
    if (target->pc < w->count) {
      s->need = w->count;
      s->next = target->waiters;
      target->waiters = id;
      return FALSE;
    }
    SimTime end = target->ends[w->count - 1 - target->base];
    if (end > *t)
      *t = end;
  }
  return TRUE;
}

/* As the event executor does it: factor of the rank and of chance on compute, then its pause. */
static inline SimTime
duration_of (Lean *x, const LeanStream *s, guint32 id, const Op *op)
{
  SimTime d = x->durations[op->cost];
  if (op->kind == OP_COMPUTE) {
    double scale = x->opt->rank_scale != NULL ? x->opt->rank_scale[s->rank] : 1.0;
    if (x->rng != NULL)
      scale *= sim_rng_lognormal (&x->rng[s->rank], 0.0, x->opt->jitter);
    d = scale == 1.0 ? d : (SimTime)llround ((double)d * scale);
  }
  if (x->next_delay == NULL || id != s->rank * x->set->n_streams)
    return d;
  guint32 next = x->next_delay[s->rank];
  if (next < x->opt->n_delays && x->opt->delays[next].rank == s->rank &&
      x->opt->delays[next].op == s->pc) {
    d += x->opt->delays[next].extra;
    x->next_delay[s->rank]++;
  }
  return d;
}

static void
run_stream (Lean *x, guint32 id)
{
  const ProgramSet *set = x->set;
  LeanStream *s = &x->streams[id];
  while (s->pc < s->n) {
    const Op *op = &s->ops[s->pc];
    SimTime t = s->last;
    if (!waits_hold (x, id, op, &t))
      break;
    SimTime duration = duration_of (x, s, id, op);
    guint32 g = op->group == OP_NO_GROUP ? GROUP_NONE
                                         : set->groups[(gsize)s->rank * set->n_slots + op->group];
    if (g != GROUP_NONE) {
      if (!arrive (x, id, g, t, duration))
        break;
      continue;
    }
    complete (x, s, end_of (x, t, duration));
  }
  if (s->waiters != NONE)
    wake (x, s);
}

/* ---- one family ---- */

static gboolean
is_recorded (const Lean *x, guint32 rank)
{
  return x->opt->record && (x->opt->record_ranks == NULL || x->opt->record_ranks[rank]);
}

static void
begin_rank (Lean *x, ExecResult *res, guint32 rank, gsize *used)
{
  const ProgramSet *set = x->set;
  guint p = set->rank_program[rank] * set->n_streams;
  gboolean recorded = is_recorded (x, rank);
  for (guint st = 0; st < set->n_streams; st++) {
    guint32 first = set->first_op[p + st];
    LeanStream *s = &x->streams[rank * set->n_streams + st];
    *s = (LeanStream){.ops = set->ops + first,
                      .n = set->first_op[p + st + 1] - first,
                      .peers = set->peers + (gsize)rank * set->n_peers,
                      .waiters = NONE,
                      .next = NONE,
                      .rank = rank};
    if (recorded) {
      s->ends = res->ends + res->rank_base[rank] + (first - set->first_op[p]);
    } else {
      s->ends = x->buffer + *used;
      *used += s->n;
    }
  }
}

/* The oldest end times that operations to come of this rank wait for. */
static void
lower (Lean *x, guint32 rank)
{
  const ProgramSet *set = x->set;
  const LeanStream *own = &x->streams[rank * set->n_streams];
  gsize left = 0;
  for (guint st = 0; st < set->n_streams; st++)
    left += own[st].n - own[st].pc;
  if (left > FEW_OPS) { /* keep all that it can see */
    for (guint st = 0; st < set->n_streams; st++) {
      x->low[rank * set->n_streams + st] = 0;
      for (guint k = 0; k < set->n_peers; k++)
        x->low[own->peers[k] * set->n_streams + st] = 0;
    }
    return;
  }
  for (guint st = 0; st < set->n_streams; st++) {
    const LeanStream *s = &own[st];
    for (guint32 i = s->pc; i < s->n; i++)
      for (guint k = 0; k < s->ops[i].n_waits; k++) {
        const Wait *w = &set->waits[s->ops[i].wait0 + k];
        guint32 of = (w->peer < 0 ? rank : s->peers[w->peer]) * set->n_streams + w->stream;
        x->low[of] = MIN (x->low[of], (guint32)w->count - 1);
      }
  }
}

/* Streams of a family: member by member. id: a guint32 of the caller. */
#define FOR_STREAMS(x, family, id)                                                                 \
  for (guint32 m_ = (x)->first[family]; m_ < (x)->first[(family) + 1]; m_++)                       \
    for (guint32 k_ = 0;                                                                           \
         k_ < (x)->set->n_streams && ((id) = (x)->member[m_] * (x)->set->n_streams + k_, TRUE);    \
         k_++)

/* The buffer goes to another family: what is still looked at moves out of it, and room for the one
 * operation that each stream can end in a rendezvous meanwhile. */
static void
leave_buffer (Lean *x, guint family)
{
  gsize total = 0;
  guint32 id;
  FOR_STREAMS (x, family, id)
  x->low[id] = x->streams[id].n;
  for (guint32 i = x->first[family]; i < x->first[family + 1]; i++)
    lower (x, x->member[i]);
  FOR_STREAMS (x, family, id)
  {
    LeanStream *s = &x->streams[id];
    x->low[id] = CLAMP (x->low[id], s->base, s->pc);
    total += s->pc - x->low[id] + (s->pc < s->n ? 1 : 0);
  }
  SimTime *piece = x->kept[family] = g_new (SimTime, MAX (total, 1));
  FOR_STREAMS (x, family, id)
  {
    LeanStream *s = &x->streams[id];
    if (is_recorded (x, s->rank))
      continue;
    if (s->pc > x->low[id])
      memcpy (piece, s->ends + (x->low[id] - s->base), (s->pc - x->low[id]) * sizeof (SimTime));
    s->ends = piece;
    s->base = x->low[id];
    piece += s->pc - s->base + (s->pc < s->n ? 1 : 0);
  }
}

static void
enter_buffer (Lean *x, guint family)
{
  gsize used = 0;
  guint32 id;
  FOR_STREAMS (x, family, id)
  {
    LeanStream *s = &x->streams[id];
    if (is_recorded (x, s->rank))
      continue;
    if (s->pc > s->base)
      memcpy (x->buffer + used, s->ends, (s->pc - s->base) * sizeof (SimTime));
    s->ends = x->buffer + used;
    used += s->n - s->base;
  }
  g_clear_pointer (&x->kept[family], g_free);
}

static gboolean
is_over (const Lean *x, guint family)
{
  guint32 id;
  FOR_STREAMS (x, family, id)
  if (x->streams[id].pc < x->streams[id].n)
    return FALSE;
  return TRUE;
}

static void
follow (Lean *x, guint family)
{
  while (x->n_stack > 0)
    run_stream (x, x->stack[--x->n_stack]);
  if (!is_over (x, family))
    leave_buffer (x, family);
}

static void
run_families (Lean *x, ExecResult *res)
{
  const ProgramSet *set = x->set;
  for (guint f = 0; f < x->n_families; f++) {
    gsize used = 0;
    x->at_work = f;
    for (guint32 i = x->first[f]; i < x->first[f + 1]; i++)
      begin_rank (x, res, x->member[i], &used);
    for (guint32 i = x->first[f + 1]; i-- > x->first[f];)
      for (guint st = set->n_streams; st-- > 0;)
        x->stack[x->n_stack++] = x->member[i] * set->n_streams + st;
    follow (x, f);
  }
  while (x->queue_len > 0) {
    guint32 f = x->queue[x->queue_head], id = x->pending[f];
    x->queue_head = (x->queue_head + 1) % x->n_families;
    x->queue_len--;
    x->pending[f] = NONE;
    x->at_work = f;
    enter_buffer (x, f);
    while (id != NONE) {
      guint32 next = x->streams[id].next;
      x->stack[x->n_stack++] = id;
      id = next;
    }
    follow (x, f);
  }
}

/* ---- the whole ---- */

static gsize
rank_ops (const ProgramSet *set, guint32 rank)
{
  guint p = set->rank_program[rank];
  return set->first_op[(p + 1) * set->n_streams] - set->first_op[p * set->n_streams];
}

/* Room for the largest family, and for the ranks that are recorded. */
static gsize
make_room (Lean *x, ExecResult *res)
{
  const ProgramSet *set = x->set;
  gsize most = 1, total = 0, recorded = 0;
  res->rank_end = g_new0 (SimTime, set->n_ranks);
  if (x->opt->record)
    res->rank_base = g_new (gsize, set->n_ranks);
  for (guint r = 0; r < set->n_ranks; r++) {
    total += rank_ops (set, r);
    if (x->opt->record)
      res->rank_base[r] = is_recorded (x, r) ? recorded : G_MAXSIZE;
    recorded += is_recorded (x, r) ? rank_ops (set, r) : 0;
  }
  if (x->opt->record)
    res->ends = g_new (SimTime, MAX (recorded, 1));
  for (guint f = 0; f < x->n_families; f++) {
    gsize n = 0;
    for (guint32 i = x->first[f]; i < x->first[f + 1]; i++)
      n += rank_ops (set, x->member[i]);
    most = MAX (most, n);
  }
  x->buffer = g_new (SimTime, most);
  return total;
}

static void
collect (const Lean *x, ExecResult *res)
{
  const ProgramSet *set = x->set;
  res->operations = x->done;
  for (guint r = 0; r < set->n_ranks; r++) {
    for (guint s = 0; s < set->n_streams; s++)
      res->rank_end[r] = MAX (res->rank_end[r], x->streams[r * set->n_streams + s].last);
    if (res->rank_end[r] > res->end) {
      res->end = res->rank_end[r];
      res->last_rank = r;
    }
  }
  ExecHash h;
  exec_hash_begin (&h, x->done);
  exec_hash_add (&h, res->rank_end, set->n_ranks);
  res->fingerprint = exec_hash_end (&h);
}

static gboolean
report (const Lean *x, gsize total, GError **error)
{
  const ProgramSet *set = x->set;
  if (x->overflow) {
    g_set_error (error, PROGRAM_ERROR, PROGRAM_ERROR_OVERFLOW,
                 "the step is longer than its clock, which ends after 106 days");
    return FALSE;
  }
  for (guint32 id = 0; x->done < total && id < set->n_ranks * set->n_streams; id++) {
    const LeanStream *s = &x->streams[id];
    if (s->pc == s->n)
      continue;
    g_autofree char *name = op_tag_name (s->ops[s->pc].tag);
    g_set_error (error, PROGRAM_ERROR, PROGRAM_ERROR_DEADLOCK,
                 "deadlock: rank %u, stream %s waits for ever at operation %u of %u (%s)",
                 id / set->n_streams, set->stream_names[id % set->n_streams], s->pc + 1, s->n,
                 name);
    return FALSE;
  }
  return TRUE;
}

gboolean
exec_lean_serves (const ProgramSet *set)
{
  for (guint p = 0; p < set->n_programs; p++)
    for (guint32 i = set->first_op[p * set->n_streams + 1];
         i < set->first_op[(p + 1) * set->n_streams]; i++)
      if (set->ops[i].kind == OP_COMPUTE)
        return FALSE;
  return TRUE;
}

gboolean
exec_run_lean (const ProgramSet *set, const ExecOptions *opt, guint64 seed, guint64 run,
               ExecResult *res, GError **error)
{
  guint n = set->n_ranks * set->n_streams;
  Lean x = {.set = set, .opt = opt};
  g_assert (opt->jitter <= 0 || exec_lean_serves (set));
  memset (res, 0, sizeof *res);
  find_families (&x);
  gsize total = make_room (&x, res);
  x.next_delay = exec_delay_index (set, opt);
  x.streams = g_new (LeanStream, n);
  x.groups = g_new (LeanGroup, MAX (set->n_groups, 1));
  x.stack = g_new (guint32, 2 * (gsize)n + 1);
  x.low = g_new (guint32, n);
  x.kept = g_new0 (SimTime *, MAX (x.n_families, 1));
  x.pending = g_new (guint32, MAX (x.n_families, 1));
  x.queue = g_new (guint32, MAX (x.n_families, 1));
  for (guint f = 0; f < x.n_families; f++)
    x.pending[f] = NONE;
  x.durations = g_new (SimTime, MAX (set->n_costs, 1));
  for (guint i = 0; i < set->n_costs; i++)
    x.durations[i] = set->costs[i].duration;
  for (guint g = 0; g < set->n_groups; g++)
    x.groups[g] = (LeanGroup){.first = NONE};
  x.rng = opt->jitter > 0 ? g_new (SimRng, set->n_ranks) : NULL;
  for (guint r = 0; x.rng != NULL && r < set->n_ranks; r++)
    x.rng[r] = sim_rng_stream (seed, run, "compute jitter", r);
  run_families (&x, res);
  gboolean ok = report (&x, total, error);
  if (ok)
    collect (&x, res);
  else
    exec_result_clear (res);
  for (guint f = 0; f < x.n_families; f++)
    g_free (x.kept[f]);
  g_free (x.kept);
  g_free (x.pending);
  g_free (x.queue);
  g_free (x.streams);
  g_free (x.groups);
  g_free (x.stack);
  g_free (x.low);
  g_free (x.durations);
  g_free (x.rng);
  g_free (x.next_delay);
  g_free (x.family);
  g_free (x.member);
  g_free (x.first);
  g_free (x.buffer);
  return ok;
}
