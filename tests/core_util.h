/* core_util: what the tests of programs, executors and predictions share.
 *
 * lower_table turns a schedule table into programs with the simplest rules there are, apart from
 * compile.c: one compute stream and one stream a direction, sends that cost p2p ticks. Its makespan
 * is known in closed form for the classic schedules, and for any table from sched_dry_run.
 */
#ifndef CLUSTERSIM_TESTS_CORE_UTIL_H
#define CLUSTERSIM_TESTS_CORE_UTIL_H

#include "exec.h"
#include "scenario.h"
#include "sched.h"

enum { UT_COMPUTE, UT_NEXT, UT_PREV, UT_STREAMS };
static const char *const ut_stream_names[] = {"compute", "next", "prev", NULL};

static inline SimEngine *
ut_engine (guint64 seed, gboolean shuffle)
{
  const SimOptions o = {.ticks_per_s = SIM_TICKS_PS, .seed = seed, .shuffle_ties = shuffle};
  return sim_engine_new (&o);
}

/* Runs both executors, asserts that they agree on every operation to the tick, and returns the fast
 * result (cleared by the caller). */
static inline ExecResult
ut_run_both (const ProgramSet *set)
{
  g_autoptr (GError) error = NULL;
  ExecResult fast, slow;
  gsize total = 0;
  for (guint r = 0; r < set->n_ranks; r++)
    total += set->first_op[(set->rank_program[r] + 1) * set->n_streams] -
             set->first_op[set->rank_program[r] * set->n_streams];
  g_assert_true (program_verify (set, &error));
  g_assert_no_error (error);
  g_assert_true (exec_run_fast (set, &fast, &error));
  g_assert_no_error (error);
  g_autoptr (SimEngine) engine = ut_engine (1, FALSE);
  const ExecOptions o = {.record = TRUE};
  g_assert_true (exec_run_events (set, engine, &o, &slow, &error));
  g_assert_no_error (error);
  g_assert_cmpint (fast.end, ==, slow.end);
  g_assert_cmpuint (fast.last_rank, ==, slow.last_rank);
  g_assert_cmpuint (fast.operations, ==, slow.operations);
  g_assert_cmpuint (fast.operations, ==, total);
  for (guint r = 0; r < set->n_ranks; r++) {
    g_assert_cmpint (fast.rank_end[r], ==, slow.rank_end[r]);
    g_assert_cmpuint (fast.rank_base[r], ==, slow.rank_base[r]);
  }
  for (gsize i = 0; i < total; i++)
    if (fast.ends[i] != slow.ends[i])
      g_error ("operation %zu ends at %" G_GINT64_FORMAT " (fast), %" G_GINT64_FORMAT " (events)",
               i, fast.ends[i], slow.ends[i]);
  exec_result_clear (&slow);
  return fast;
}

typedef struct {
  const SchedTable *t;
  const gint64 (*cost)[4]; /* ticks by stage and kind */
  guint32 *counts[2];      /* of the send of (stage, micro-batch): activations, gradients */
} UtLower;

/* Where what (stage, kind) makes goes: the stage, or -1. */
static inline gint
ut_target (const SchedTable *t, const SchedAction *a)
{
  guint part = sched_part (t, a->stage);
  if (a->kind == SCHED_F)
    return part + 1 < sched_depth (t) ? a->stage + 1 : -1;
  return a->kind != SCHED_W && part > 0 ? a->stage - 1 : -1;
}

static inline guint
ut_direction (const SchedTable *t, guint from, guint to)
{
  return (from + 1) % t->ranks == to ? UT_NEXT : UT_PREV;
}

static inline void
ut_count_sends (UtLower *l)
{
  const SchedTable *t = l->t;
  for (guint r = 0; r < t->ranks; r++) {
    guint32 sent[UT_STREAMS] = {0};
    for (guint32 i = t->first[r]; i < t->first[r + 1]; i++) {
      const SchedAction *a = &t->actions[i];
      gint to = ut_target (t, a);
      if (to < 0 || t->stage_rank[to] == r)
        continue;
      guint32 *count =
          &l->counts[a->kind == SCHED_F ? 0 : 1][a->stage * t->microbatches + a->microbatch];
      *count = ++sent[ut_direction (t, r, t->stage_rank[to])];
    }
  }
}

static inline void
ut_action (UtLower *l, ProgramBuilder *b, guint r, const SchedAction *a, guint32 send_cost)
{
  static const OpTag tags[] = {TAG_FORWARD, TAG_BACKWARD, TAG_INPUT_GRAD, TAG_WEIGHT_GRAD};
  const SchedTable *t = l->t;
  gint from = a->kind == SCHED_F ? (gint)a->stage - 1 : (gint)a->stage + 1;
  gboolean fed =
      a->kind != SCHED_W && (a->kind == SCHED_F ? sched_part (t, a->stage) > 0
                                                : sched_part (t, a->stage) + 1 < sched_depth (t));
  guint32 cost = program_cost (b, PART_COMPUTE, l->cost[a->stage][a->kind]);
  program_op (b, UT_COMPUTE, OP_COMPUTE, cost, OP_TAG (tags[a->kind], a->stage, a->microbatch));
  if (fed && t->stage_rank[from] != r) {
    guint sender = t->stage_rank[from];
    guint32 count =
        l->counts[a->kind == SCHED_F ? 0 : 1][(guint)from * t->microbatches + a->microbatch];
    program_wait (b, UT_COMPUTE, (r + 1) % t->ranks == sender ? 0 : 1, ut_direction (t, sender, r),
                  count);
  }
  gint to = ut_target (t, a);
  if (to >= 0 && t->stage_rank[to] != r) {
    guint stream = ut_direction (t, r, t->stage_rank[to]);
    program_op (
        b, stream, OP_SEND, send_cost,
        OP_TAG (a->kind == SCHED_F ? TAG_SEND_ACT : TAG_SEND_GRAD, a->stage, a->microbatch));
    program_wait (b, stream, PEER_SELF, UT_COMPUTE, program_count (b, UT_COMPUTE));
  }
}

static inline ProgramSet *
lower_table (const SchedTable *t, const gint64 (*cost)[4], gint64 p2p)
{
  gsize n = (gsize)t->stages * t->microbatches;
  g_autofree guint32 *acts = g_new0 (guint32, n), *grads = g_new0 (guint32, n);
  UtLower l = {t, cost, {acts, grads}};
  g_autoptr (ProgramBuilder) b = program_builder_new (UT_STREAMS, ut_stream_names);
  guint32 send_cost = program_cost (b, PART_PP_COMM, p2p);
  ut_count_sends (&l);
  for (guint r = 0; r < t->ranks; r++) {
    program_begin (b);
    for (guint32 i = t->first[r]; i < t->first[r + 1]; i++)
      ut_action (&l, b, r, &t->actions[i], send_cost);
  }
  ProgramSet *set = program_builder_finish (b, t->ranks, 2, 0, 0);
  for (guint r = 0; r < t->ranks; r++) {
    set->peers[2 * r] = (r + 1) % t->ranks;
    set->peers[2 * r + 1] = (r + t->ranks - 1) % t->ranks;
  }
  return set;
}

/* A table that must exist. */
static inline SchedTable *
ut_table (const char *name, guint pp, guint vpp, guint m)
{
  g_autoptr (GError) error = NULL;
  SchedTable *t = sched_generate (name, pp, vpp, m, &error);
  g_assert_no_error (error);
  g_assert_true (sched_verify (t, &error));
  g_assert_no_error (error);
  return t;
}

/* The shipped 175B step with overrides "KEY=VALUE" (NULL-terminated); cleared by the caller. */
static inline void
ut_spec (Spec *s, const char *const *sets)
{
  g_autoptr (GError) error = NULL;
  if (!scenario_load ("gpt3-175b-a100", sets, s, &error))
    g_error ("%s", error->message);
}

#endif
