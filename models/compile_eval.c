#include "compile_eval.h"

#include <string.h>

#include "compile_int.h"
#include "exec.h"

#define NONE G_MAXUINT32

typedef struct {
  Row row;
  guint32 next;         /* action to come */
  gboolean owes_send;   /* the transfer of the action before */
  guint32 first_parked; /* ranks that wait for this one to go on */
  guint32 next_parked;
  guint32 on, need; /* what this one waits for: operations of a stream of that rank */
  guint stream;
} Cursor;

typedef struct {
  Compile c;
  ProgramBuilder *costs; /* the builder of compile_prepare: owns the costs of the stages */
  ProgramBuilder *eval;
  Cursor *cur;
  guint32 *stack;
  guint n_stack;
  guint32 *slot_offset;
  guint n_rows; /* that are followed: all, or the first half, which the others mirror */
} Eval;

/* What a rank sends on, its mirror sends back. */
static const guint8 mirror[STREAM_COUNT] = {STREAM_COMPUTE, STREAM_PREV,  STREAM_NEXT, STREAM_DP,
                                            STREAM_HOST,    STREAM_OUTER, STREAM_CPU};

/* Does rank n - 1 - r do what rank r does, on the other copy of the model, for all r? (DualPipe is
 * made so.) Then its times are those of r, and copies of a stage that meet to reduce never wait for
 * each other. Two ranks have but one neighbour, ahead and back. */
static gboolean
is_mirrored (const SchedTable *t)
{
  guint n = t->ranks, depth = sched_depth (t), half = sched_pipeline_microbatches (t);
  if (t->pipelines != 2 || n % 2 != 0 || n < 4 || t->stages != 2 * n)
    return FALSE;
  for (guint s = 0; s < depth; s++)
    if (t->stage_rank[s] != s || t->stage_rank[s + depth] != n - 1 - s)
      return FALSE;
  for (guint r = 0; r < n / 2; r++) {
    const SchedAction *a = t->actions + t->first[r], *b = t->actions + t->first[n - 1 - r];
    guint32 len = t->first[r + 1] - t->first[r];
    if (t->first[n - r] - t->first[n - 1 - r] != len)
      return FALSE;
    for (guint32 i = 0; i < len; i++, a++, b++)
      if (a->kind != b->kind || a->pair != b->pair ||
          (a->stage + depth) % (2 * depth) != b->stage ||
          (a->microbatch + half) % (2 * half) != b->microbatch)
        return FALSE;
  }
  return TRUE;
}

/* Notes what k waits for, if it has not happened yet. */
static inline gboolean
must_wait (const Eval *x, Cursor *k, guint on, guint stream, guint32 need)
{
  if (program_eval_stream (program_eval_of (x->eval), on, stream)->n >= need)
    return FALSE;
  k->on = on;
  k->stream = stream;
  k->need = need;
  return TRUE;
}

/* The transfer of the last action can be called when nobody waits for it, or its receiver is as far
 * as a rendezvous needs. */
static inline gboolean
send_waits (const Eval *x, Cursor *k)
{
  const Compile *c = &x->c;
  const SchedAction *a = &c->t->actions[k->next - 1];
  if (!c->rendezvous || !compile_feeds (c, a))
    return FALSE;
  gboolean forward = a->kind == SCHED_F;
  guint to = c->t->stage_rank[forward ? a->stage + 1 : a->stage - 1];
  if (to == k->row.rank)
    return FALSE;
  gsize at = compile_at (c, forward ? a->stage + 1u : a->stage - 1u, a->microbatch);
  return must_wait (x, k, to, STREAM_COMPUTE, forward ? c->pos_f[at] : c->pos_b[at]);
}

static inline gboolean
input_waits (const Eval *x, Cursor *k)
{
  const Compile *c = &x->c;
  const SchedAction *a = &c->t->actions[k->next];
  if (!compile_is_fed (c, a))
    return FALSE;
  gboolean forward = a->kind == SCHED_F;
  guint from = c->t->stage_rank[forward ? a->stage - 1 : a->stage + 1];
  if (from == k->row.rank)
    return FALSE;
  gsize at = compile_at (c, forward ? a->stage - 1u : a->stage + 1u, a->microbatch);
  guint stream = compile_send_stream (c, from, k->row.rank, !forward);
  return must_wait (x, k, from, stream, forward ? c->act_count[at] : c->grad_count[at]);
}

static void
park (Eval *x, guint rank)
{
  guint32 on = x->cur[rank].on;
  if (on >= x->n_rows) /* for its mirror, which may be rank itself: that would be a deadlock */
    on = x->c.t->ranks - 1 - on;
  x->cur[rank].next_parked = x->cur[on].first_parked;
  x->cur[on].first_parked = rank;
}

/* Those that have what they waited for go on. */
static void
wake (Eval *x, Cursor *k)
{
  guint32 *link = &k->first_parked;
  while (*link != NONE) {
    Cursor *w = &x->cur[*link];
    if (program_eval_stream (program_eval_of (x->eval), w->on, w->stream)->n >= w->need) {
      x->stack[x->n_stack++] = *link;
      *link = w->next_parked;
    } else {
      link = &w->next_parked;
    }
  }
}

/* Follows one row as far as it goes. */
static void
follow (Eval *x, guint rank)
{
  Cursor *k = &x->cur[rank];
  guint32 last = x->c.t->first[rank + 1];
  gboolean waits = FALSE;
  program_select (x->eval, rank);
  while (k->owes_send || k->next < last) {
    waits = k->owes_send ? send_waits (x, k) : input_waits (x, k);
    if (waits)
      break;
    if (k->owes_send) {
      compile_send (&k->row, &x->c.t->actions[k->next - 1]);
      k->owes_send = FALSE;
    } else {
      compile_action (&k->row, &x->c.t->actions[k->next], k->next);
      k->next++;
      k->owes_send = TRUE;
    }
  }
  wake (x, k);
  if (waits)
    park (x, rank);
}

static gboolean
follow_all (Eval *x)
{
  const SchedTable *t = x->c.t;
  for (guint r = 0; r < x->n_rows; r++) {
    guint32 n = t->first[r + 1] - t->first[r];
    x->cur[r] = (Cursor){.row = {.c = &x->c, .rank = r},
                         .next = t->first[r],
                         .first_parked = NONE,
                         .next_parked = NONE};
    program_reserve (x->eval, r, STREAM_COMPUTE, n + 64);
    program_reserve (x->eval, r, STREAM_NEXT, n / 2 + 1);
    program_reserve (x->eval, r, STREAM_PREV, n / 2 + 1);
    program_select (x->eval, r);
    compile_begin (&x->cur[r].row);
  }
  for (guint r = x->n_rows; r-- > 0;)
    x->stack[x->n_stack++] = r;
  while (x->n_stack > 0)
    follow (x, x->stack[--x->n_stack]);
  for (guint r = 0; r < x->n_rows; r++)
    if (x->cur[r].owes_send || x->cur[r].next < t->first[r + 1])
      return FALSE;
  return !program_eval_unresolved (x->eval);
}

static SimTime
last_end (const Eval *x, guint rank, guint stream)
{
  guint32 n = program_eval_count (x->eval, rank, stream);
  return n > 0 ? program_eval_ends (x->eval, rank, stream)[n - 1] : 0;
}

/* The end of the step as programs: each stream begins with one operation that stands for all that
 * was evaluated, of a part that tells a waiter what it waits for. */
static ProgramSet *
build_end (Eval *x)
{
  static const Part part[STREAM_COUNT] = {PART_OTHER, PART_PP_COMM, PART_PP_COMM,  PART_DP_COMM,
                                          PART_HOST,  PART_DP_COMM, PART_OPTIMIZER};
  Compile *c = &x->c;
  ProgramBuilder *b = program_builder_new (STREAM_COUNT, c->stream_names);
  program_copy_costs (b, x->costs);
  c->b = b;
  for (guint r = 0; r < c->t->ranks; r++) {
    program_begin (b);
    for (guint s = 0; s < STREAM_COUNT; s++)
      program_op (b, s, OP_COLL, program_cost (b, part[s], last_end (x, r, s)), 0);
    Row row = {.c = c, .rank = r};
    compile_end (&row);
  }
  ProgramSet *set = compile_link (c);
  program_builder_free (b);
  return set;
}

/* Programs of a rank and of its peers, the others empty, with the times that were evaluated. */
static ProgramSet *
build_neighbours (Eval *x, guint rank, ExecResult *res)
{
  Compile *c = &x->c;
  guint n = c->t->ranks;
  ProgramBuilder *b = program_builder_new (STREAM_COUNT, c->stream_names);
  g_autofree gboolean *wanted = g_new0 (gboolean, n);
  wanted[rank] = TRUE;
  for (guint i = 0; i < c->n_peers; i++)
    wanted[(rank + x->slot_offset[i]) % n] = TRUE;
  program_copy_costs (b, x->costs);
  c->b = b;
  for (guint r = 0; r < n; r++) {
    program_begin (b);
    Row row = {.c = c, .rank = r};
    if (wanted[r])
      compile_row (&row);
  }
  ProgramSet *set = compile_link (c);
  program_builder_free (b);
  memset (res, 0, sizeof *res);
  res->rank_base = g_new (gsize, n);
  res->ends = g_new (SimTime, MAX (set->n_ops, 1));
  for (guint r = 0; r < n; r++) {
    res->rank_base[r] = set->first_op[r * STREAM_COUNT];
    for (guint s = 0; wanted[r] && s < STREAM_COUNT; s++) {
      guint32 first = set->first_op[r * STREAM_COUNT + s];
      guint32 count = set->first_op[r * STREAM_COUNT + s + 1] - first;
      g_assert (count == program_eval_count (x->eval, r, s));
      if (count > 0)
        memcpy (res->ends + first, program_eval_ends (x->eval, r, s), count * sizeof (SimTime));
    }
  }
  return set;
}

static void
tell_reference (Eval *x, const ProgramSet *end, const ExecResult *end_res, StepTimes *out)
{
  ExecResult res;
  Breakdown tail;
  SimTime mid = last_end (x, out->last_rank, STREAM_COMPUTE);
  g_autoptr (ProgramSet) set = build_neighbours (x, out->last_rank, &res);
  res.end = mid;
  breakdown_compute (set, &res, out->last_rank, STREAM_COMPUTE, &out->breakdown);
  exec_result_clear (&res);
  breakdown_compute (end, end_res, out->last_rank, STREAM_COMPUTE, &tail);
  tail.part[PART_OTHER] -= mid; /* the operation that stands for what was told above */
  for (guint i = 0; i < PART_COUNT; i++)
    out->breakdown.part[i] += tail.part[i];
  out->breakdown.total = out->end;
}

static void
fingerprint (const Eval *x, const ProgramSet *end, const ExecResult *res, StepTimes *out)
{
  guint n = x->c.t->ranks;
  out->operations = res->operations - (guint64)n * STREAM_COUNT;
  for (guint i = 0; i < n * STREAM_COUNT; i++)
    out->operations += program_eval_count (x->eval, i / STREAM_COUNT, i % STREAM_COUNT);
  ExecHash h;
  exec_hash_begin (&h, out->operations);
  for (guint r = 0; r < n; r++)
    for (guint s = 0; s < STREAM_COUNT; s++) {
      exec_hash_add (&h, program_eval_ends (x->eval, r, s), program_eval_count (x->eval, r, s));
      guint32 first = end->first_op[r * STREAM_COUNT + s];
      exec_hash_add (&h, res->ends + first + 1,
                     end->first_op[r * STREAM_COUNT + s + 1] - first - 1);
    }
  out->fingerprint = exec_hash_end (&h);
}

static gboolean
evaluate (Eval *x, StepTimes *out, GError **error)
{
  Compile *c = &x->c;
  guint n = c->t->ranks;
  for (guint offset = 0; offset < n; offset++)
    if (c->slot[offset] != NONE)
      x->slot_offset[c->slot[offset]] = offset;
  x->costs = c->b;
  x->eval = program_evaluator_new (STREAM_COUNT, c->stream_names, n, x->slot_offset, c->n_peers,
                                   x->n_rows < n ? mirror : NULL);
  program_copy_costs (x->eval, x->costs);
  c->b = x->eval;
  if (!follow_all (x) || program_eval_overflow (x->eval))
    return FALSE;
  ExecResult res;
  g_autoptr (ProgramSet) end = build_end (x);
  if (!compile_check (c, FALSE, error) || !exec_run_fast (end, &res, error))
    return FALSE;
  out->end = res.end;
  out->last_rank = res.last_rank;
  fingerprint (x, end, &res, out);
  tell_reference (x, end, &res, out);
  exec_result_clear (&res);
  return TRUE;
}

gboolean
compile_eval (const Spec *s, const SchedTable *t, const StageLayers *sl, const StageTimes *times,
              StepTimes *out, GError **error)
{
  Eval x = {.c = {.s = s, .t = t, .sl = sl, .times = times}};
  compile_prepare (&x.c);
  gboolean ok = compile_check (&x.c, FALSE, error);
  ok = ok && x.c.barrier;
  gboolean mirrored = ok && is_mirrored (t);
  ok = ok && (t->pipelines == 1 || mirrored); /* copies of a stage meet to reduce, on the way */
  ok =
      ok && x.c.paired == NULL; /* pairs make costs while they are emitted, for one builder alone */
  if (ok) {
    x.cur = g_new (Cursor, t->ranks);
    x.stack = g_new (guint32, 2 * t->ranks + 1);
    x.slot_offset = g_new0 (guint32, MAX (x.c.n_peers, 1));
    x.costs = x.c.b;
    x.n_rows = mirrored ? t->ranks / 2 : t->ranks;
    ok = evaluate (&x, out, error);
    x.c.b = x.costs;
  }
  program_builder_free (x.eval);
  compile_release (&x.c);
  g_free (x.cur);
  g_free (x.stack);
  g_free (x.slot_offset);
  return ok;
}
