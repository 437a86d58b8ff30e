/* Where the time of a rank goes: cases whose parts are known, and sums to the tick. */
#include "../core_util.h"

#include <string.h>

#include "breakdown.h"

static const char *const names[] = {"compute", "side", NULL};
enum { COMPUTE, SIDE, STREAMS };

typedef struct {
  Part part;
  SimTime ticks;
} Want;

/* The parts of a rank are those of want (ended by ticks -1), all others 0, and add up to the step.
 */
static void
told (const ProgramSet *set, const ExecResult *res, guint rank, const Want *want)
{
  Breakdown bd;
  SimTime expect[PART_COUNT] = {0}, sum = 0;
  for (; want->ticks >= 0; want++)
    expect[want->part] = want->ticks;
  breakdown_compute (set, res, rank, COMPUTE, &bd);
  for (guint p = 0; p < PART_COUNT; p++) {
    if (bd.part[p] != expect[p])
      g_error ("rank %u: %s is %" G_GINT64_FORMAT ", not %" G_GINT64_FORMAT, rank, part_names[p],
               bd.part[p], expect[p]);
    sum += bd.part[p];
  }
  g_assert_cmpint (sum, ==, res->end);
  g_assert_cmpint (bd.total, ==, res->end);
}

#define TOLD(set, res, rank, ...) told (set, res, rank, (const Want[]){__VA_ARGS__, {0, -1}})

static ProgramSet *
even (const char *name, guint p, guint v, guint m, gint64 f, gint64 b, gint64 p2p)
{
  g_autoptr (SchedTable) t = ut_table (name, p, v, m);
  g_autofree gint64 *cost = g_new0 (gint64, 4 * t->stages);
  for (guint s = 0; s < t->stages; s++) {
    cost[4 * s] = f;
    cost[4 * s + 1] = b;
  }
  return lower_table (t, (const gint64 (*)[4]) (void *)cost, p2p);
}

/* Free sends: every rank computes m v (f + b) and waits (p - 1)(f + b), whether it begins late (the
 * last ranks) or ends early. */
static void
test_pure_bubble (void)
{
  static const struct {
    const char *name;
    guint p, v, m;
  } cases[] = {{"1f1b", 8, 1, 32}, {"gpipe", 4, 1, 8}, {"interleaved", 4, 3, 8}, {"1f1b", 1, 1, 5}};
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    guint p = cases[i].p, mv = cases[i].m * cases[i].v;
    g_autoptr (ProgramSet) set = even (cases[i].name, p, cases[i].v, cases[i].m, 1000, 2000, 0);
    ExecResult res = ut_run_both (set);
    for (guint r = 0; r < p; r++)
      TOLD (set, &res, r, {PART_COMPUTE, (gint64)mv * 3000}, {PART_BUBBLE, (gint64)(p - 1) * 3000});
    exec_result_clear (&res);
  }
}

/* One micro-batch on two ranks, F 10, B 20, sends 7: F0 s F1 B1 s B0, in all 74.
 * Rank 0 waits from 10 to 54: for the gradient's send at its end (7), before that for rank 1 (37).
 * Rank 1 waits for F0 (10) and its send (7); after B1 (47) its own send (7), then for B0 (20). */
static void
test_exposed_send (void)
{
  g_autoptr (ProgramSet) set = even ("1f1b", 2, 1, 1, 10, 20, 7);
  ExecResult res = ut_run_both (set);
  g_assert_cmpint (res.end, ==, 74);
  g_assert_cmpuint (res.last_rank, ==, 0);
  TOLD (set, &res, 0, {PART_COMPUTE, 30}, {PART_PP_COMM, 7}, {PART_BUBBLE, 37});
  TOLD (set, &res, 1, {PART_COMPUTE, 30}, {PART_PP_COMM, 14}, {PART_BUBBLE, 30});
  exec_result_clear (&res);
}

/* A send that blocks its own rank: n x (compute 10, send 4, nothing beside it). */
static void
test_blocking_send (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (STREAMS, names);
  guint32 work = program_cost (b, PART_COMPUTE, 10), send = program_cost (b, PART_PP_COMM, 4);
  program_begin (b);
  for (guint i = 0; i < 5; i++) {
    program_op (b, COMPUTE, OP_COMPUTE, work, 0);
    program_wait (b, COMPUTE, PEER_SELF, SIDE, i);
    program_op (b, SIDE, OP_SEND, send, 0);
    program_wait (b, SIDE, PEER_SELF, COMPUTE, i + 1);
  }
  g_autoptr (ProgramSet) set = program_builder_finish (b, 1, 0, 0, 0);
  ExecResult res = ut_run_both (set);
  TOLD (set, &res, 0, {PART_COMPUTE, 50}, {PART_PP_COMM, 20});
  exec_result_clear (&res);
}

/* The host needs h for what the device does in d < h: n kernels end at n h + d, n (h - d) + d of it
 * waiting for the host. With h < d only the first kernel waits. */
static void
test_host_bound (void)
{
  for (guint fast = 0; fast < 2; fast++) {
    const SimTime h = fast ? 4 : 10, d = 6, n = 8;
    g_autoptr (ProgramBuilder) b = program_builder_new (STREAMS, names);
    guint32 work = program_cost (b, PART_COMPUTE, d), issue = program_cost (b, PART_HOST, h);
    program_begin (b);
    for (guint i = 0; i < n; i++) {
      program_op (b, SIDE, OP_HOST, issue, 0);
      program_op (b, COMPUTE, OP_COMPUTE, work, 0);
      program_wait (b, COMPUTE, PEER_SELF, SIDE, i + 1);
    }
    g_autoptr (ProgramSet) set = program_builder_finish (b, 1, 0, 0, 0);
    ExecResult res = ut_run_both (set);
    g_assert_cmpint (res.end, ==, fast ? h + n * d : n * h + d);
    TOLD (set, &res, 0, {PART_COMPUTE, n * d}, {PART_HOST, res.end - n * d});
    exec_result_clear (&res);
  }
}

/* Two gradient buckets of 30, the first beside 20 of compute: of the 60, 40 are exposed; then the
 * optimizer. Nothing is exposed of a reduction of 15 beside 20. */
static void
test_exposed_reduction (void)
{
  for (guint hidden = 0; hidden < 2; hidden++) {
    g_autoptr (ProgramBuilder) b = program_builder_new (STREAMS, names);
    guint32 half = program_cost (b, PART_COMPUTE, 20), update = program_cost (b, PART_OPTIMIZER, 5),
            reduce = program_cost (b, PART_DP_COMM, hidden ? 15 : 30);
    program_begin (b);
    for (guint i = 0; i < 2; i++) {
      program_op (b, COMPUTE, OP_COMPUTE, half, 0);
      if (i == 1 && hidden)
        continue;
      program_op (b, SIDE, OP_COLL, reduce, 0);
      program_wait (b, SIDE, PEER_SELF, COMPUTE, i + 1);
    }
    program_op (b, COMPUTE, OP_COMPUTE, update, 0);
    program_wait (b, COMPUTE, PEER_SELF, SIDE, program_count (b, SIDE));
    g_autoptr (ProgramSet) set = program_builder_finish (b, 1, 0, 0, 0);
    ExecResult res = ut_run_both (set);
    TOLD (set, &res, 0, {PART_COMPUTE, 40}, {PART_DP_COMM, hidden ? 0 : 40}, {PART_OPTIMIZER, 5});
    exec_result_clear (&res);
  }
}

/* Rank r computes (r + 1) 10, then all meet for 5: the early ones wait, which is a bubble. Then
 * rank 1 has 8 more on its other stream, which holds the end of the step: for rank 1 dp_comm, for
 * rank 0 a bubble. */
static void
test_rendezvous_and_tail (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (STREAMS, names);
  guint32 meet = program_cost (b, PART_OPTIMIZER, 5), gather = program_cost (b, PART_DP_COMM, 8);
  for (guint r = 0; r < 2; r++) {
    guint32 work = program_cost (b, PART_COMPUTE, 10 * ((SimTime)r + 1));
    program_begin (b);
    program_op (b, COMPUTE, OP_COMPUTE, work, 0);
    program_op (b, COMPUTE, OP_COLL, meet, 0);
    program_group (b, COMPUTE, 0);
    if (r == 0)
      continue;
    program_op (b, SIDE, OP_COLL, gather, 0);
    program_wait (b, SIDE, PEER_SELF, COMPUTE, 2);
  }
  g_autoptr (ProgramSet) set = program_builder_finish (b, 2, 0, 1, 1);
  set->groups[0] = set->groups[1] = 0;
  set->group_size[0] = 2;
  ExecResult res = ut_run_both (set);
  g_assert_cmpint (res.end, ==, 33);
  TOLD (set, &res, 0, {PART_COMPUTE, 10}, {PART_OPTIMIZER, 5}, {PART_BUBBLE, 18});
  TOLD (set, &res, 1, {PART_COMPUTE, 20}, {PART_OPTIMIZER, 5}, {PART_DP_COMM, 8});
  exec_result_clear (&res);
}

/* An operation of several parts tells them all; a wait for it counts as its largest. */
static void
test_mixed_operation (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (STREAMS, names);
  const SimTime a[PART_COUNT] = {[PART_COMPUTE] = 10, [PART_TP_COMM] = 3, [PART_HOST] = 2};
  const SimTime c[PART_COUNT] = {[PART_EP_COMM] = 6, [PART_CP_COMM] = 5};
  guint32 pass = program_cost_parts (b, a), coll = program_cost_parts (b, c);
  program_begin (b);
  program_op (b, COMPUTE, OP_COMPUTE, pass, 0);
  program_op (b, SIDE, OP_COLL, coll, 0);
  program_wait (b, SIDE, PEER_SELF, COMPUTE, 1);
  program_op (b, COMPUTE, OP_COMPUTE, pass, 0);
  program_wait (b, COMPUTE, PEER_SELF, SIDE, 1);
  g_autoptr (ProgramSet) set = program_builder_finish (b, 1, 0, 0, 0);
  ExecResult res = ut_run_both (set);
  TOLD (set, &res, 0, {PART_COMPUTE, 20}, {PART_TP_COMM, 6}, {PART_HOST, 4}, {PART_EP_COMM, 11});
  exec_result_clear (&res);
}

/* A slow rank: its operations take 1.5 times their cost, and so do their parts. */
static void
test_slow_rank (void)
{
  g_autoptr (ProgramSet) set = even ("1f1b", 2, 1, 4, 1000, 2000, 0);
  const double scale[2] = {1, 1.5};
  const ExecOptions o = {.record = TRUE, .rank_scale = scale};
  g_autoptr (SimEngine) engine = ut_engine (1, FALSE);
  ExecResult res;
  g_assert_true (exec_run_events (set, engine, &o, &res, NULL));
  /* F0, then 4 (F + B) at 1.5, then B0 */
  g_assert_cmpint (res.end, ==, 1000 + 4 * 4500 + 2000);
  TOLD (set, &res, 0, {PART_COMPUTE, 12000}, {PART_BUBBLE, 9000});
  TOLD (set, &res, 1, {PART_COMPUTE, 18000}, {PART_BUBBLE, 3000});
  exec_result_clear (&res);
}

/* Busy: the operations of a stream, no waits. */
static void
test_busy (void)
{
  g_autoptr (ProgramSet) set = even ("1f1b", 4, 1, 4, 1000, 2000, 9);
  ExecResult res = ut_run_both (set);
  Breakdown busy;
  breakdown_busy (set, &res, 1, UT_NEXT, &busy);
  g_assert_cmpint (busy.part[PART_PP_COMM], ==, 4 * 9);
  g_assert_cmpint (busy.total, ==, 4 * 9);
  breakdown_busy (set, &res, 3, UT_COMPUTE, &busy);
  g_assert_cmpint (busy.total, ==, 12000);
  exec_result_clear (&res);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/breakdown/pure-bubble", test_pure_bubble);
  g_test_add_func ("/breakdown/exposed-send", test_exposed_send);
  g_test_add_func ("/breakdown/blocking-send", test_blocking_send);
  g_test_add_func ("/breakdown/host-bound", test_host_bound);
  g_test_add_func ("/breakdown/exposed-reduction", test_exposed_reduction);
  g_test_add_func ("/breakdown/rendezvous-and-tail", test_rendezvous_and_tail);
  g_test_add_func ("/breakdown/mixed-operation", test_mixed_operation);
  g_test_add_func ("/breakdown/slow-rank", test_slow_rank);
  g_test_add_func ("/breakdown/busy", test_busy);
  return g_test_run ();
}
