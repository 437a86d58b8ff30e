/* The two executors against closed forms, to the tick, and against each other. */
#include "../core_util.h"

#include <glib/gstdio.h>
#include <string.h>

/* ---- closed forms of schedules: p ranks, m micro-batches, sends free ---- */

/* Even stages: cost[s] = {f, b, i, w} for all. */
static SimTime
makespan_even (const char *name, guint p, guint v, guint m, gint64 f, gint64 b)
{
  g_autoptr (SchedTable) t = ut_table (name, p, v, m);
  g_autofree gint64 *cost = g_new (gint64, t->stages * 4);
  for (guint s = 0; s < t->stages; s++) {
    cost[4 * s] = f;
    cost[4 * s + 1] = b;
    cost[4 * s + 2] = b / 2;
    cost[4 * s + 3] = b - b / 2;
  }
  g_autoptr (ProgramSet) set = lower_table (t, (const gint64 (*)[4]) (void *)cost, 0);
  ExecResult res = ut_run_both (set);
  SimTime end = res.end;
  exec_result_clear (&res);
  return end;
}

/* GPipe and 1F1B: (m + p - 1)(f + b). The last of 32 micro-batches on 8 stages has a bubble of 7/32
 * = 0.21875 of the work, to the last digit. */
static void
test_1f1b_gpipe (void)
{
  static const guint shapes[][2] = {{1, 1}, {1, 9}, {2, 1},  {2, 2},    {3, 7},
                                    {4, 4}, {4, 3}, {8, 32}, {16, 128}, {5, 64}};
  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++) {
    guint p = shapes[i][0], m = shapes[i][1];
    for (guint k = 0; k < 3; k++) {
      const gint64 f = (const gint64[]){1000, 7, 123456789}[k], b = (const gint64[]){2000, 5, 1}[k];
      SimTime want = (gint64)(m + p - 1) * (f + b);
      g_assert_cmpint (makespan_even ("1f1b", p, 1, m, f, b), ==, want);
      g_assert_cmpint (makespan_even ("gpipe", p, 1, m, f, b), ==, want);
    }
  }
  SimTime work = 32 * 3000, end = makespan_even ("1f1b", 8, 1, 32, 1000, 2000);
  g_assert_cmpint ((end - work) * 32, ==, 7 * work);
}

/* v chunks of 1/v each: (m v + p - 1)(f + b) with f, b of one chunk. */
static void
test_interleaved (void)
{
  static const guint shapes[][3] = {{2, 2, 2}, {4, 2, 8}, {8, 3, 64}, {4, 5, 4}, {3, 4, 9}};
  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++) {
    guint p = shapes[i][0], v = shapes[i][1], m = shapes[i][2];
    SimTime want = (gint64)(m * v + p - 1) * (11 + 22);
    g_assert_cmpint (makespan_even ("interleaved", p, v, m, 11, 22), ==, want);
    g_assert_cmpint (makespan_even ("bfs", p, v, m, 11, 22), ==, want);
  }
}

/* GPipe with unequal stages is two flow shops of m equal jobs, one after the other:
 *   sum f + (m - 1) max f + sum b + (m - 1) max b. */
static void
test_gpipe_uneven (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (20240501);
  for (guint round = 0; round < 50; round++) {
    guint p = (guint)g_rand_int_range (rand, 1, 9), m = (guint)g_rand_int_range (rand, 1, 20);
    gint64 cost[8][4] = {{0}}, sum = 0, max_f = 0, max_b = 0;
    for (guint s = 0; s < p; s++) {
      cost[s][SCHED_F] = g_rand_int_range (rand, 0, 1000);
      cost[s][SCHED_B] = g_rand_int_range (rand, 0, 1000);
      sum += cost[s][SCHED_F] + cost[s][SCHED_B];
      max_f = MAX (max_f, cost[s][SCHED_F]);
      max_b = MAX (max_b, cost[s][SCHED_B]);
    }
    g_autoptr (SchedTable) t = ut_table ("gpipe", p, 1, m);
    g_autoptr (ProgramSet) set = lower_table (t, (const gint64 (*)[4])cost, 0);
    ExecResult res = ut_run_both (set);
    g_assert_cmpint (res.end, ==, sum + (gint64)(m - 1) * (max_f + max_b));
    exec_result_clear (&res);
  }
}

/* One micro-batch through p stages and back meets 2 (p - 1) sends: p (f + b) + 2 (p - 1) s. */
static void
test_sends (void)
{
  for (guint p = 1; p < 7; p++) {
    g_autoptr (SchedTable) t = ut_table ("1f1b", p, 1, 1);
    gint64 cost[6][4];
    for (guint s = 0; s < p; s++)
      memcpy (cost[s], (const gint64[4]){100, 200, 0, 0}, sizeof cost[s]);
    g_autoptr (ProgramSet) set = lower_table (t, (const gint64 (*)[4])cost, 20);
    ExecResult res = ut_run_both (set);
    g_assert_cmpint (res.end, ==, (gint64)p * 300 + 2 * (gint64)(p - 1) * 20);
    exec_result_clear (&res);
  }
}

/* 1F1B waits on each send: with s = f / 50 on 16 stages and 128 micro-batches the step is longer
 * than the closed form plus its 2 (p - 1) sends, by the steady state's (m - p) s or so; equal to
 * the dry run. */
static void
test_1f1b_sends (void)
{
  g_autoptr (SchedTable) t = ut_table ("1f1b", 16, 1, 128);
  gint64 cost[16][4];
  for (guint s = 0; s < 16; s++)
    memcpy (cost[s], (const gint64[4]){1000, 2000, 0, 0}, sizeof cost[s]);
  g_autoptr (ProgramSet) set = lower_table (t, (const gint64 (*)[4])cost, 20);
  ExecResult res = ut_run_both (set);
  SchedCosts dry = {{1000, 2000, 0, 0}, NULL, 20, 0};
  SchedRun run = {0};
  g_assert_true (sched_dry_run (t, &dry, &run, NULL));
  g_assert_cmpint (res.end, ==, run.makespan);
  g_assert_cmpint (res.end, >, 143 * 3000 + 30 * 20);
  exec_result_clear (&res);
}

/* ---- small programs ---- */

static const char *const names[] = {"a", "b", NULL};

/* a: 10, 20; b: 5 after a's first, then nothing, then 0 after a's second: b ends at 15, 30. */
static void
test_streams (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (2, names);
  const guint32 c0 = program_cost (b, PART_OTHER, 0), c5 = program_cost (b, PART_COMPUTE, 5),
                c10 = program_cost (b, PART_COMPUTE, 10), c20 = program_cost (b, PART_COMPUTE, 20);
  program_begin (b);
  program_op (b, 0, OP_COMPUTE, c10, 0);
  program_op (b, 0, OP_COMPUTE, c20, 0);
  program_op (b, 1, OP_COMPUTE, c5, 0);
  program_wait (b, 1, PEER_SELF, 0, 1);
  program_op (b, 1, OP_MARK, c0, 0);
  program_op (b, 1, OP_MARK, c0, 0);
  program_wait (b, 1, PEER_SELF, 0, 2);
  program_wait (b, 1, PEER_SELF, 0, 1);
  g_autoptr (ProgramSet) set = program_builder_finish (b, 1, 0, 0, 0);
  ExecResult res = ut_run_both (set);
  g_assert_cmpint (exec_op_end (set, &res, 0, 1, 0), ==, 15);
  g_assert_cmpint (exec_op_end (set, &res, 0, 1, 1), ==, 15);
  g_assert_cmpint (exec_op_end (set, &res, 0, 1, 2), ==, 30);
  g_assert_cmpint (res.end, ==, 30);
  exec_result_clear (&res);
}

/* Nothing at all, and operations of no time only: the step ends at 0. */
static void
test_no_time (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (2, names);
  program_begin (b);
  program_begin (b);
  guint32 zero = program_cost (b, PART_OTHER, 0);
  for (guint i = 0; i < 10; i++) {
    program_op (b, 0, OP_MARK, zero, 0);
    program_op (b, 1, OP_MARK, zero, 0);
    program_wait (b, 1, PEER_SELF, 0, i + 1);
    program_wait (b, 0, PEER_SELF, 1, i);
  }
  g_autoptr (ProgramSet) set = program_builder_finish (b, 2, 0, 0, 0);
  ExecResult res = ut_run_both (set);
  g_assert_cmpint (res.end, ==, 0);
  g_assert_cmpuint (res.operations, ==, 20);
  g_assert_cmpuint (res.last_rank, ==, 0);
  exec_result_clear (&res);
}

/* A ring of n ranks with one program: each waits for k operations of the rank before; rank 0 has a
 * program of its own that starts. End of rank r, operation k: (r + 1 + k) d. */
static void
test_shared_program (void)
{
  enum { RANKS = 100, OPS = 20, D = 7 };
  g_autoptr (ProgramBuilder) b = program_builder_new (1, names);
  guint32 cost = program_cost (b, PART_COMPUTE, D);
  for (guint p = 0; p < 2; p++) {
    program_begin (b);
    for (guint i = 0; i < OPS; i++) {
      program_op (b, 0, OP_COMPUTE, cost, 0);
      if (p == 1)
        program_wait (b, 0, 0, 0, i + 1);
    }
  }
  g_autoptr (ProgramSet) set = program_builder_finish (b, RANKS, 1, 0, 0);
  for (guint r = 0; r < RANKS; r++)
    set->peers[r] = (r + RANKS - 1) % RANKS;
  ExecResult res = ut_run_both (set);
  for (guint r = 0; r < RANKS; r++)
    for (guint i = 0; i < OPS; i++)
      g_assert_cmpint (exec_op_end (set, &res, r, 0, i), ==, (gint64)(r + 1 + i) * D);
  g_assert_cmpuint (res.last_rank, ==, RANKS - 1);
  exec_result_clear (&res);
}

/* ---- rendezvous ---- */

/* Rank r computes (r + 1) x 10 and meets the others for 5, three times: the meeting starts when the
 * slowest arrives, so round k ends at k (10 n + 5). A rank without the group does the call alone.
 */
static void
test_groups (void)
{
  enum { RANKS = 5, ROUNDS = 3 };
  g_autoptr (ProgramBuilder) b = program_builder_new (1, names);
  guint32 coll = program_cost (b, PART_DP_COMM, 5);
  for (guint r = 0; r <= RANKS; r++) {
    guint32 own = program_cost (b, PART_COMPUTE, 10 * (r % RANKS + 1));
    program_begin (b);
    for (guint k = 0; k < ROUNDS; k++) {
      program_op (b, 0, OP_COMPUTE, own, 0);
      program_op (b, 0, OP_COLL, coll, 0);
      program_group (b, 0, 1);
    }
  }
  g_autoptr (ProgramSet) set = program_builder_finish (b, RANKS + 1, 0, 2, 3);
  for (guint r = 0; r < RANKS; r++)
    set->groups[2 * r + 1] = 2;
  set->group_size[2] = RANKS;
  ExecResult res = ut_run_both (set);
  for (guint r = 0; r < RANKS; r++)
    for (guint k = 0; k < ROUNDS; k++)
      g_assert_cmpint (exec_op_end (set, &res, r, 0, 2 * k + 1), ==,
                       (gint64)(k + 1) * (10 * RANKS + 5));
  g_assert_cmpint (res.rank_end[RANKS], ==, 3 * (10 + 5)); /* alone */
  exec_result_clear (&res);
}

/* Members state different durations: the longest holds for all. A group of one, and one of no time.
 */
static void
test_group_durations (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (1, names);
  for (guint r = 0; r < 3; r++) {
    program_begin (b);
    program_op (b, 0, OP_COLL, program_cost (b, PART_DP_COMM, (SimTime)(r + 1) * 100), 0);
    program_group (b, 0, 0);
    program_op (b, 0, OP_COLL, program_cost (b, PART_DP_COMM, 7), 0);
    program_group (b, 0, 1);
    program_op (b, 0, OP_COLL, program_cost (b, PART_DP_COMM, 0), 0);
    program_group (b, 0, 0);
  }
  g_autoptr (ProgramSet) set = program_builder_finish (b, 3, 0, 2, 4);
  set->group_size[0] = 3;
  for (guint r = 0; r < 3; r++) {
    set->groups[2 * r] = 0;
    set->groups[2 * r + 1] = r + 1;
    set->group_size[r + 1] = 1;
  }
  ExecResult res = ut_run_both (set);
  for (guint r = 0; r < 3; r++) {
    g_assert_cmpint (exec_op_end (set, &res, r, 0, 0), ==, 300);
    g_assert_cmpint (exec_op_end (set, &res, r, 0, 1), ==, 307);
    g_assert_cmpint (exec_op_end (set, &res, r, 0, 2), ==, 307);
  }
  exec_result_clear (&res);
}

/* ---- what goes wrong ---- */

static void
both_fail (const ProgramSet *set, GQuark domain, int code, const char *const *says)
{
  g_autoptr (GError) fast = NULL, slow = NULL;
  ExecResult a, b;
  g_autoptr (SimEngine) engine = ut_engine (1, FALSE);
  const ExecOptions o = {.record = TRUE};
  g_assert_false (exec_run_fast (set, &a, &fast));
  g_assert_error (fast, PROGRAM_ERROR, code);
  g_assert_false (exec_run_events (set, engine, &o, &b, &slow));
  g_assert_true (
      g_error_matches (slow, domain, domain == PROGRAM_ERROR ? code : SIM_ERROR_OVERFLOW));
  for (guint i = 0; says[i] != NULL; i++) {
    g_assert_nonnull (strstr (fast->message, says[i]));
    g_assert_nonnull (strstr (slow->message, says[i]));
  }
  if (domain == PROGRAM_ERROR)
    g_assert_cmpstr (fast->message, ==, slow->message);
  g_assert_null (a.ends);
  g_assert_null (b.ends);
}

/* Rank 1's second operation on b waits for one of rank 0 that waits for rank 1. */
static void
test_deadlock (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (2, names);
  guint32 cost = program_cost (b, PART_COMPUTE, 3);
  for (guint r = 0; r < 2; r++) {
    program_begin (b);
    program_op (b, 0, OP_COMPUTE, cost, OP_TAG (TAG_FORWARD, r, 0));
    program_op (b, 1, OP_COMPUTE, cost, OP_TAG (TAG_FORWARD, r, 1));
    program_op (b, 1, OP_COMPUTE, cost, OP_TAG (TAG_BACKWARD, r, 12));
    program_wait (b, 1, 0, 1, 2);
  }
  g_autoptr (ProgramSet) set = program_builder_finish (b, 2, 1, 0, 0);
  set->peers[0] = 1;
  set->peers[1] = 0;
  g_assert_true (program_verify (set, NULL));
  both_fail (set, PROGRAM_ERROR, PROGRAM_ERROR_DEADLOCK,
             (const char *const[]){"deadlock", "rank 0", "stream b", "operation 2 of 2",
                                   "B stage 0 micro-batch 12", NULL});
}

/* A member that never comes leaves the others waiting. */
static void
test_group_deadlock (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (2, names);
  guint32 cost = program_cost (b, PART_DP_COMM, 3);
  program_begin (b);
  program_op (b, 0, OP_COLL, cost, OP_TAG (TAG_GRAD_NORM, 0, 0));
  program_group (b, 0, 0);
  program_begin (b);
  program_op (b, 0, OP_COMPUTE, cost, 0);
  g_autoptr (ProgramSet) set = program_builder_finish (b, 2, 0, 1, 1);
  set->groups[0] = set->groups[1] = 0;
  set->group_size[0] = 2;
  both_fail (set, PROGRAM_ERROR, PROGRAM_ERROR_DEADLOCK,
             (const char *const[]){"rank 0", "stream a", "operation 1 of 1", "grad norm", NULL});
}

/* A wait for more operations than there are is a deadlock, not a read beyond the end. */
static void
test_wait_too_far (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (2, names);
  program_begin (b);
  program_op (b, 0, OP_COMPUTE, program_cost (b, PART_COMPUTE, 1), 0);
  program_wait (b, 0, PEER_SELF, 1, 9);
  g_autoptr (ProgramSet) set = program_builder_finish (b, 1, 0, 0, 0);
  both_fail (set, PROGRAM_ERROR, PROGRAM_ERROR_DEADLOCK, (const char *const[]){"rank 0", NULL});
}

/* Sums beyond the clock (2^63 ticks = 106 days) are an error of both. */
static void
test_overflow (void)
{
  for (guint grouped = 0; grouped < 2; grouped++) {
    g_autoptr (ProgramBuilder) b = program_builder_new (1, names);
    guint32 cost = program_cost (b, PART_COMPUTE, G_MAXINT64 / 2);
    program_begin (b);
    for (guint i = 0; i < 3; i++) {
      program_op (b, 0, OP_COMPUTE, cost, 0);
      if (grouped)
        program_group (b, 0, 0);
    }
    g_autoptr (ProgramSet) set = program_builder_finish (b, 1, 0, 1, 1);
    set->groups[0] = 0;
    set->group_size[0] = 1;
    both_fail (set, SIM_ERROR, PROGRAM_ERROR_OVERFLOW, (const char *const[]){"clock", NULL});
  }
}

/* The engine's own limit passes through. */
static void
test_limit (void)
{
  g_autoptr (SchedTable) t = ut_table ("1f1b", 4, 1, 8);
  const gint64 cost[4][4] = {{1, 2, 0, 0}, {1, 2, 0, 0}, {1, 2, 0, 0}, {1, 2, 0, 0}};
  g_autoptr (ProgramSet) set = lower_table (t, cost, 1);
  const SimOptions o = {.ticks_per_s = SIM_TICKS_PS, .max_events = 10};
  g_autoptr (SimEngine) engine = sim_engine_new (&o);
  g_autoptr (GError) error = NULL;
  ExecResult res;
  g_assert_false (exec_run_events (set, engine, NULL, &res, &error));
  g_assert_error (error, SIM_ERROR, SIM_ERROR_LIMIT);
}

/* ---- order, seeds, jitter ---- */

static ExecResult
run_events (const ProgramSet *set, guint64 seed, gboolean shuffle, const ExecOptions *o)
{
  g_autoptr (SimEngine) engine = ut_engine (seed, shuffle);
  g_autoptr (GError) error = NULL;
  ExecResult res;
  g_assert_true (exec_run_events (set, engine, o, &res, &error));
  g_assert_no_error (error);
  return res;
}

static ProgramSet *
pipeline (guint p, guint m, gint64 f, gint64 b, gint64 p2p)
{
  g_autoptr (SchedTable) t = ut_table ("1f1b", p, 1, m);
  g_autofree gint64 *cost = g_new0 (gint64, 4 * p);
  for (guint s = 0; s < p; s++) {
    cost[4 * s] = f;
    cost[4 * s + 1] = b;
  }
  return lower_table (t, (const gint64 (*)[4]) (void *)cost, p2p);
}

/* Any order of ties: the same ends. The same seed: the same fingerprint; not recorded: the same
 * ends. */
static void
test_ties (void)
{
  g_autoptr (ProgramSet) set = pipeline (8, 32, 1000, 2000, 10);
  const ExecOptions o = {.record = TRUE};
  ExecResult plain = run_events (set, 1, FALSE, &o), again = run_events (set, 1, FALSE, NULL);
  g_assert_cmpuint (plain.fingerprint, ==, again.fingerprint);
  g_assert_null (again.ends);
  for (guint64 seed = 1; seed < 20; seed++) {
    ExecResult a = run_events (set, seed, TRUE, &o), b = run_events (set, seed, TRUE, &o);
    g_assert_cmpuint (a.fingerprint, ==, b.fingerprint);
    g_assert_cmpint (a.end, ==, plain.end);
    for (gsize i = 0; i < a.operations; i++)
      g_assert_cmpint (a.ends[i], ==, plain.ends[i]);
    exec_result_clear (&a);
    exec_result_clear (&b);
  }
  exec_result_clear (&plain);
  exec_result_clear (&again);
}

/* The fast pass's fingerprint sees each operation: two inner ones exchanged, all ranks end alike.
 */
static void
test_fast_fingerprint (void)
{
  guint64 prints[2];
  for (guint k = 0; k < 2; k++) {
    g_autoptr (ProgramBuilder) b = program_builder_new (1, names);
    program_begin (b);
    program_op (b, 0, OP_COMPUTE, program_cost (b, PART_COMPUTE, k == 0 ? 3 : 4), 0);
    program_op (b, 0, OP_COMPUTE, program_cost (b, PART_COMPUTE, k == 0 ? 4 : 3), 0);
    g_autoptr (ProgramSet) set = program_builder_finish (b, 1, 0, 0, 0);
    ExecResult res = ut_run_both (set);
    g_assert_cmpint (res.end, ==, 7);
    prints[k] = res.fingerprint;
    exec_result_clear (&res);
  }
  g_assert_cmpuint (prints[0], !=, prints[1]);
}

/* All ranks at half speed take twice as long (sends free); one slow rank is one with longer
 * operations. */
static void
test_rank_scale (void)
{
  g_autoptr (ProgramSet) set = pipeline (4, 16, 1000, 2000, 0);
  double scale[4] = {2, 2, 2, 2};
  const ExecOptions o = {.rank_scale = scale};
  ExecResult res = run_events (set, 1, FALSE, &o);
  g_assert_cmpint (res.end, ==, 2 * 19 * 3000);
  exec_result_clear (&res);
  for (guint slow = 0; slow < 4; slow++) {
    gint64 cost[4][4] = {{0}};
    for (guint r = 0; r < 4; r++) {
      scale[r] = r == slow ? 1.5 : 1;
      cost[r][SCHED_F] = r == slow ? 1500 : 1000;
      cost[r][SCHED_B] = r == slow ? 3000 : 2000;
    }
    g_autoptr (SchedTable) t = ut_table ("1f1b", 4, 1, 16);
    g_autoptr (ProgramSet) longer = lower_table (t, (const gint64 (*)[4])cost, 0);
    ExecResult want = ut_run_both (longer);
    res = run_events (set, 1, FALSE, &o);
    g_assert_cmpint (res.end, ==, want.end);
    exec_result_clear (&res);
    exec_result_clear (&want);
  }
}

/* A lognormal factor of sigma 0.1 on 4000 operations of one rank: the mean of exp (0.1 z) is
 * exp (0.005); a sum strays by 0.1 / sqrt (4000) = 0.16 %, five times that is allowed. */
static void
test_jitter (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (1, names);
  guint32 cost = program_cost (b, PART_COMPUTE, 1000000);
  program_begin (b);
  for (guint i = 0; i < 4000; i++)
    program_op (b, 0, OP_COMPUTE, cost, 0);
  g_autoptr (ProgramSet) set = program_builder_finish (b, 1, 0, 0, 0);
  const ExecOptions o = {.jitter = 0.1};
  SimTime ends[2];
  for (guint64 seed = 0; seed < 2; seed++) {
    ExecResult x = run_events (set, seed, FALSE, &o), y = run_events (set, seed, FALSE, &o);
    g_assert_cmpint (x.end, ==, y.end);
    g_assert_cmpuint (x.fingerprint, ==, y.fingerprint);
    ends[seed] = x.end;
    double mean = (double)x.end / 4000 / 1e6;
    g_assert_cmpfloat (mean, >, 1.00501 - 0.008);
    g_assert_cmpfloat (mean, <, 1.00501 + 0.008);
    exec_result_clear (&x);
    exec_result_clear (&y);
  }
  g_assert_cmpint (ends[0], !=, ends[1]);
}

/* ---- traces ---- */

/* A span for each operation that takes time, of the ranks asked for. */
static void
test_trace (void)
{
  g_autoptr (ProgramSet) set = pipeline (3, 4, 1000, 2000, 0);
  ExecResult res = ut_run_both (set);
  g_autofree char *path = NULL;
  int fd = g_file_open_tmp ("clustersim-exec-XXXXXX.csv", &path, NULL);
  g_assert_cmpint (fd, >=, 0);
  g_assert_true (g_close (fd, NULL));
  const SimTraceOptions o = {.ticks_per_s = SIM_TICKS_PS};
  SimTrace *trace = trace_csv_new (path, &o, NULL);
  exec_trace (set, &res, trace, 1, 2);
  g_assert_cmpuint (trace_n_spans (trace), ==, 2 * 8); /* sends take no time */
  g_autoptr (GError) error = NULL;
  g_assert_true (trace_close (trace, &error));
  g_assert_no_error (error);
  g_unlink (path);
  exec_result_clear (&res);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/exec/1f1b-gpipe", test_1f1b_gpipe);
  g_test_add_func ("/exec/interleaved", test_interleaved);
  g_test_add_func ("/exec/gpipe-uneven", test_gpipe_uneven);
  g_test_add_func ("/exec/sends", test_sends);
  g_test_add_func ("/exec/1f1b-sends", test_1f1b_sends);
  g_test_add_func ("/exec/streams", test_streams);
  g_test_add_func ("/exec/no-time", test_no_time);
  g_test_add_func ("/exec/shared-program", test_shared_program);
  g_test_add_func ("/exec/groups", test_groups);
  g_test_add_func ("/exec/group-durations", test_group_durations);
  g_test_add_func ("/exec/deadlock", test_deadlock);
  g_test_add_func ("/exec/group-deadlock", test_group_deadlock);
  g_test_add_func ("/exec/wait-too-far", test_wait_too_far);
  g_test_add_func ("/exec/overflow", test_overflow);
  g_test_add_func ("/exec/limit", test_limit);
  g_test_add_func ("/exec/ties", test_ties);
  g_test_add_func ("/exec/fast-fingerprint", test_fast_fingerprint);
  g_test_add_func ("/exec/rank-scale", test_rank_scale);
  g_test_add_func ("/exec/jitter", test_jitter);
  g_test_add_func ("/exec/trace", test_trace);
  return g_test_run ();
}
