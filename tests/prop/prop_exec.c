/* Properties of the executors over random program sets and over compiled steps of random scenarios:
 * fast = events = a naive sweep on every operation, the same deadlocks with the same message, any
 * order of ties, parts of the breakdown that add up. Replay with --seed (the seed is printed). */
#include "../core_util.h"

#include <string.h>

#include "breakdown.h"
#include "compile.h"
#include "compile_eval.h"

static guint
rnd (guint low, guint high)
{
  return (guint)g_test_rand_int_range ((gint32)low, (gint32)high + 1);
}

/* n cases; fewer with sanitizers, more in make test-full. */
static guint
scaled (guint n)
{
  const char *san = g_getenv ("SANITIZED");
  n = g_getenv ("CLUSTERSIM_TEST_FULL") != NULL ? 5 * n : n;
  return san != NULL && *san != '\0' ? n / 4 : n;
}

static gboolean
flip (void)
{
  return g_test_rand_bit () != 0;
}

/* ---- random programs ---- */

enum { RANKS = 6, STREAMS = 4, OPS = 24, PEERS = 3, SLOTS = 2, GROUPS = 3 };
static const char *const names[] = {"a", "b", "c", "d", NULL};

/* Some waits go anywhere (and may deadlock), most to operations a little lower in their stream. */
static void
random_program (ProgramBuilder *b, guint n_costs, guint wild, guint grouped)
{
  guint n = rnd (0, OPS);
  program_begin (b);
  for (guint i = 0; i < n; i++)
    for (guint s = 0; s < STREAMS; s++) {
      if (rnd (0, 5) == 0)
        continue;
      static const OpKind kinds[] = {OP_COMPUTE, OP_SEND, OP_COLL, OP_HOST, OP_MARK};
      program_op (b, s, kinds[rnd (0, 4)], rnd (0, n_costs - 1), OP_TAG (rnd (0, 14), s, i));
      for (guint k = rnd (0, 3); k > 0; k--) {
        guint32 count = rnd (0, 99) < wild ? rnd (0, OPS) : rnd (0, MAX (i * 2 / 3, 1) - 1);
        program_wait (b, s, (gint)rnd (0, PEERS) - 1, rnd (0, STREAMS - 1), count);
      }
      if (s < SLOTS && rnd (0, 99) < grouped) /* one stream a slot */
        program_group (b, s, s);
    }
}

static ProgramSet *
random_set (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (STREAMS, names);
  guint n_costs = rnd (1, 6), wild = rnd (0, 3) == 0 ? 30 : 0, grouped = rnd (0, 2) == 0 ? 5 : 0;
  for (guint i = 0; i < n_costs; i++) {
    SimTime parts[PART_COUNT] = {0};
    for (guint p = rnd (0, 3); p > 0; p--)
      parts[rnd (0, PART_COUNT - 1)] = rnd (0, 1000);
    program_cost_parts (b, parts);
  }
  guint n_ranks = rnd (1, RANKS), n_programs = rnd (1, n_ranks);
  for (guint p = 0; p < n_programs; p++)
    random_program (b, n_costs, wild, grouped);
  ProgramSet *set = program_builder_finish (b, n_ranks, PEERS, SLOTS, GROUPS);
  for (guint r = 0; r < n_ranks; r++) {
    for (guint k = 0; k < PEERS; k++)
      set->peers[r * PEERS + k] = rnd (0, n_ranks - 1);
    for (guint k = 0; k < SLOTS; k++) {
      guint g = rnd (0, GROUPS);
      if (g == GROUPS || (k > 0 && set->groups[r * SLOTS + k - 1] == g))
        continue;
      set->groups[r * SLOTS + k] = g;
      set->group_size[g]++;
    }
  }
  return set;
}

/* Ends of all operations by sweeping until nothing moves; FALSE when some never end. */
typedef struct {
  const ProgramSet *set;
  SimTime *ends;    /* by rank, stream, operation */
  guint32 *pc;      /* by rank, stream */
  guint32 *arrived; /* by rank, stream: 1 when it stands at a rendezvous */
  SimTime *at;      /* by rank, stream: when it came there */
} Naive;

static SimTime *
naive_end (const Naive *n, guint rank, guint stream, guint32 i)
{
  return &n->ends[((gsize)rank * n->set->n_streams + stream) * OPS + i];
}

/* When the operation at hand may start, or -1. */
static SimTime
naive_ready (const Naive *n, guint rank, guint stream, const Op *op)
{
  guint32 pc = n->pc[rank * n->set->n_streams + stream];
  SimTime t = pc > 0 ? *naive_end (n, rank, stream, pc - 1) : 0;
  for (guint k = 0; k < op->n_waits; k++) {
    const Wait *w = &n->set->waits[op->wait0 + k];
    guint peer = w->peer < 0 ? rank : n->set->peers[rank * n->set->n_peers + (gsize)w->peer];
    if (n->pc[peer * n->set->n_streams + w->stream] < w->count)
      return -1;
    t = MAX (t, *naive_end (n, peer, w->stream, w->count - 1));
  }
  return t;
}

static const Op *
naive_op (const Naive *n, guint rank, guint stream)
{
  guint p = n->set->rank_program[rank];
  return &n->set->ops[n->set->first_op[p * n->set->n_streams + stream] +
                      n->pc[rank * n->set->n_streams + stream]];
}

/* Ends a rendezvous that has all its members. */
static gboolean
naive_meet (Naive *n, guint32 g)
{
  const ProgramSet *set = n->set;
  SimTime start = 0, duration = 0;
  guint32 here = 0;
  for (guint id = 0; id < set->n_ranks * set->n_streams; id++) {
    if (!n->arrived[id])
      continue;
    const Op *op = naive_op (n, id / set->n_streams, id % set->n_streams);
    if (set->groups[id / set->n_streams * set->n_slots + op->group] != g)
      continue;
    here++;
    start = MAX (start, n->at[id]);
    duration = MAX (duration, set->costs[op->cost].duration);
  }
  if (here < set->group_size[g] || here == 0)
    return FALSE;
  for (guint id = 0; id < set->n_ranks * set->n_streams; id++) {
    guint rank = id / set->n_streams, stream = id % set->n_streams;
    if (!n->arrived[id] ||
        set->groups[rank * set->n_slots + naive_op (n, rank, stream)->group] != g)
      continue;
    *naive_end (n, rank, stream, n->pc[id]++) = start + duration;
    n->arrived[id] = 0;
  }
  return TRUE;
}

static gboolean
naive_step (Naive *n, guint rank, guint stream)
{
  const ProgramSet *set = n->set;
  guint id = rank * set->n_streams + stream;
  if (n->arrived[id] || n->pc[id] == program_ops_of (set, set->rank_program[rank], stream))
    return FALSE;
  const Op *op = naive_op (n, rank, stream);
  SimTime t = naive_ready (n, rank, stream, op);
  if (t < 0)
    return FALSE;
  guint32 g = op->group == OP_NO_GROUP ? GROUP_NONE : set->groups[rank * set->n_slots + op->group];
  if (g != GROUP_NONE) {
    n->arrived[id] = 1;
    n->at[id] = t;
    naive_meet (n, g);
    return TRUE;
  }
  *naive_end (n, rank, stream, n->pc[id]++) = t + set->costs[op->cost].duration;
  return TRUE;
}

static gboolean
naive_run (Naive *n)
{
  const ProgramSet *set = n->set;
  gboolean moved = TRUE, all = TRUE;
  while (moved) {
    moved = FALSE;
    for (guint r = 0; r < set->n_ranks; r++)
      for (guint s = 0; s < set->n_streams; s++)
        moved |= naive_step (n, r, s);
  }
  for (guint r = 0; r < set->n_ranks; r++)
    for (guint s = 0; s < set->n_streams; s++)
      all &= n->pc[r * set->n_streams + s] == program_ops_of (set, set->rank_program[r], s);
  return all;
}

/* Where it stops is the same whatever the order of evaluation: both executors must say the same. */
static void
check_deadlock (const ProgramSet *set)
{
  g_autoptr (GError) fast = NULL, slow = NULL;
  g_autoptr (SimEngine) engine = ut_engine (1, FALSE);
  ExecResult res;
  g_assert_false (exec_run_fast (set, &res, &fast));
  g_assert_error (fast, PROGRAM_ERROR, PROGRAM_ERROR_DEADLOCK);
  g_assert_false (exec_run_events (set, engine, NULL, &res, &slow));
  g_assert_error (slow, PROGRAM_ERROR, PROGRAM_ERROR_DEADLOCK);
  g_assert_cmpstr (fast->message, ==, slow->message);
}

static void
check_shuffled (const ProgramSet *set, const ExecResult *want)
{
  const ExecOptions o = {.record = TRUE};
  g_autoptr (SimEngine) engine = ut_engine (g_test_rand_int () & 0xffff, TRUE);
  ExecResult res;
  g_assert_true (exec_run_events (set, engine, &o, &res, NULL));
  for (guint64 i = 0; i < want->operations; i++)
    g_assert_cmpint (res.ends[i], ==, want->ends[i]);
  exec_result_clear (&res);
}

static void
check_breakdown (const ProgramSet *set, const ExecResult *res)
{
  for (guint r = 0; r < set->n_ranks; r++) {
    Breakdown bd, busy;
    SimTime sum = 0;
    breakdown_compute (set, res, r, 0, &bd);
    breakdown_busy (set, res, r, 0, &busy);
    for (guint p = 0; p < PART_COUNT; p++) {
      g_assert_cmpint (bd.part[p], >=, 0);
      sum += bd.part[p];
    }
    g_assert_cmpint (sum, ==, res->end);
    g_assert_cmpint (bd.total, ==, res->end);
    g_assert_cmpint (busy.total, <=, res->end);
    for (guint p = 0; p < PART_COUNT; p++)
      g_assert_cmpint (busy.part[p], <=, bd.part[p]);
  }
}

static void
prop_programs (void)
{
  guint runs = 0, deadlocks = 0, rounds = scaled (4000);
  for (guint round = 0; round < rounds; round++) {
    g_autoptr (ProgramSet) set = random_set ();
    gsize n = (gsize)set->n_ranks * set->n_streams;
    g_autofree SimTime *ends = g_new0 (SimTime, n * OPS), *at = g_new0 (SimTime, n);
    g_autofree guint32 *pc = g_new0 (guint32, n), *arrived = g_new0 (guint32, n);
    Naive naive = {set, ends, pc, arrived, at};
    if (!naive_run (&naive)) {
      check_deadlock (set);
      deadlocks++;
      continue;
    }
    g_autoptr (GError) error = NULL;
    if (!program_verify (set,
                         &error)) { /* a wait of count 0 < pc of a shorter program can be too far */
      g_assert_error (error, PROGRAM_ERROR, PROGRAM_ERROR_INVALID);
      continue;
    }
    ExecResult res = ut_run_both (set);
    for (guint r = 0; r < set->n_ranks; r++)
      for (guint s = 0; s < set->n_streams; s++)
        for (guint i = 0; i < pc[r * set->n_streams + s]; i++)
          g_assert_cmpint (exec_op_end (set, &res, r, s, i), ==, *naive_end (&naive, r, s, i));
    check_shuffled (set, &res);
    check_breakdown (set, &res);
    exec_result_clear (&res);
    runs++;
  }
  g_test_message ("%u ran, %u deadlocked", runs, deadlocks);
  g_assert_cmpuint (runs, >, rounds / 4);
  g_assert_cmpuint (deadlocks, >, rounds / 50);
}

/* Jitter and slow ranks: the parts add up to what it took. */
static void
prop_jitter (void)
{
  for (guint round = 0; round < 200; round++) {
    g_autoptr (ProgramSet) set = random_set ();
    double scale[RANKS];
    for (guint r = 0; r < RANKS; r++)
      scale[r] = rnd (1, 30) / 10.0;
    const ExecOptions o = {.record = TRUE, .rank_scale = scale, .jitter = rnd (0, 3) / 10.0};
    g_autoptr (SimEngine) engine = ut_engine (round, FALSE);
    ExecResult res;
    if (!exec_run_events (set, engine, &o, &res, NULL))
      continue;
    for (guint r = 0; r < set->n_ranks; r++) {
      Breakdown bd;
      SimTime sum = 0;
      breakdown_compute (set, &res, r, 0, &bd);
      for (guint p = 0; p < PART_COUNT; p++) {
        g_assert_cmpint (bd.part[p], >=, 0);
        sum += bd.part[p];
      }
      g_assert_cmpint (sum, ==, res.end);
    }
    exec_result_clear (&res);
  }
}

/* ---- any table: executor = dry run ---- */

static SchedTable *
random_table (guint *vpp)
{
  guint pp = rnd (1, 7), m = rnd (1, 16);
  const char *name = sched_names[rnd (0, 8)];
  *vpp = 1;
  if (strcmp (name, "interleaved") == 0) {
    *vpp = rnd (1, 4);
    m = *vpp > 1 ? pp * rnd (1, 3) : m;
  } else if (strcmp (name, "bfs") == 0) {
    *vpp = rnd (1, 4);
  } else if (strcmp (name, "zb-v") == 0) {
    *vpp = 2;
  } else if (strcmp (name, "dualpipe") == 0) {
    pp = 2 * rnd (1, 3);
    m = 2 * (pp + rnd (0, 5));
  } else if (strcmp (name, "dualpipev") == 0) {
    *vpp = 2;
    m += 2 * pp;
  }
  return ut_table (name, pp, *vpp, m);
}

/* Costs at random by stage and kind, sends free: both executors give the makespan of the dry run.
 * Pairs run one after the other (nothing is saved), as two operations do. */
static void
prop_tables (void)
{
  for (guint round = 0; round < 500; round++) {
    guint vpp;
    g_autoptr (SchedTable) t = random_table (&vpp);
    g_autofree gint64 *cost = g_new (gint64, 4 * t->stages);
    for (guint i = 0; i < 4 * t->stages; i++)
      cost[i] = rnd (0, 1000);
    const gint64 (*rows)[4] = (const gint64 (*)[4]) (void *)cost;
    for (guint32 i = 0; i < t->first[t->ranks];
         i++) /* the dry run starts both of a pair together */
      t->actions[i].pair = 0;
    g_autoptr (ProgramSet) set = lower_table (t, rows, 0);
    SchedCosts dry = {{0}, rows, 0, 0};
    SchedRun run = {0};
    g_assert_true (sched_dry_run (t, &dry, &run, NULL));
    ExecResult res = ut_run_both (set);
    g_assert_cmpint (res.end, ==, run.makespan);
    exec_result_clear (&res);
  }
}

/* ---- compiled steps of random scenarios ---- */

static void
random_layout (Spec *s, guint pp, guint vpp, guint m)
{
  ParallelSpec *p = &s->parallel;
  p->tp = (gint64)1 << rnd (0, 3);
  p->cp = 1;
  p->pp = pp;
  p->vpp = vpp;
  p->dp = (gint64)1 << rnd (0, 4);
  p->zero_stage = rnd (0, 3);
  p->fsdp = p->zero_stage == 3 && flip ();
  p->ep = 1;
  p->sequence_parallel = p->tp > 1 && flip ();
  s->cluster.gpus_per_node = 8;
  s->cluster.gpus = p->tp * p->pp * p->dp;
  s->cluster.nodes = (s->cluster.gpus + 7) / 8;
  s->train.micro_batch_sequences = rnd (1, 2);
  s->train.global_batch_sequences = m * p->dp * s->train.micro_batch_sequences;
  s->train.sequence_tokens = 512 * (gint64)rnd (1, 4);
  s->train.recompute = (Recompute)rnd (0, 2);
  s->model.num_layers = (gint64)pp * vpp * rnd (1, 3) + rnd (0, 3);
  s->model.hidden = 128 * (gint64)rnd (4, 40);
  s->model.ffn_hidden = 4 * s->model.hidden;
  s->model.heads = s->model.kv_heads = 8 * (gint64)rnd (1, 4);
  s->model.head_dim = 64;
  s->model.gated_mlp = flip ();
  s->model.tied_embeddings = flip ();
}

/* Layers of other kinds: experts, windows, a first dense one. */
static void
random_kinds (Spec *s)
{
  ModelSpec *m = &s->model;
  m->num_experts = flip () && flip () ? 8 : 0;
  m->experts_per_token = 2;
  m->moe_ffn_hidden = m->hidden;
  m->moe_every = 1 + flip ();
  m->dense_first_layers = flip ();
  m->sliding_window = flip () ? 256 : 0;
  m->sliding_period = flip () ? 2 : 0;
  if (m->num_experts > 0)
    s->parallel.ep = MIN (s->parallel.dp, (gint64)1 << rnd (0, 3));
}

static void
random_software (SoftwareProfile *sw)
{
  sw->attention = rnd (0, 1) ? ATTN_UNFUSED : ATTN_FLASH2;
  sw->tp_overlap = (TpOverlap)rnd (0, 2);
  sw->tp_overlap_slowdown = 1 + rnd (0, 3) / 10.0;
  sw->dp_overlap_grad = flip ();
  sw->dp_overlap_param = flip ();
  sw->dp_bucket_bytes = rnd (0, 1) ? 0 : 1e6 * rnd (1, 400);
  sw->pp_overlap = flip ();
  sw->p2p_sync = flip ();
  sw->pp_scatter_gather = flip ();
  sw->host_kernel_us = rnd (0, 40);
  sw->host_comm_us = rnd (0, 40);
  sw->host_microbatch_us = rnd (0, 2) ? 0 : rnd (0, 3000);
  sw->host_chunk_us = rnd (0, 1) ? 0 : rnd (0, 300);
  sw->host_step_us = rnd (0, 1000);
  sw->data_step_us = rnd (0, 1) ? 0 : rnd (0, 5000);
  sw->dropout = flip ();
  sw->cuda_graph = flip () && flip ();
}

/* The short way, where it can be taken: the same step, to the tick. */
static guint
check_eval (const Spec *s, const SchedTable *t, const StageLayers *sl, const ExecResult *res,
            const Breakdown *bd)
{
  StepTimes short_way;
  g_autoptr (GError) error = NULL;
  gboolean ok = compile_eval (s, t, sl, NULL, &short_way, &error);
  g_assert_no_error (error);
  if (!ok)
    return 0;
  g_assert_cmpint (short_way.end, ==, res->end);
  g_assert_cmpuint (short_way.last_rank, ==, res->last_rank);
  g_assert_cmpuint (short_way.operations, ==, res->operations);
  g_assert_cmpuint (short_way.fingerprint, ==, res->fingerprint);
  for (guint p = 0; p < PART_COUNT; p++)
    if (short_way.breakdown.part[p] != bd->part[p])
      g_error ("%s is %" G_GINT64_FORMAT " the short way, %" G_GINT64_FORMAT " by programs",
               part_names[p], short_way.breakdown.part[p], bd->part[p]);
  return 1;
}

static void
prop_steps (void)
{
  guint evaluated = 0, legal = 0, both_ends = 0;
  guint rounds = scaled (400);
  Spec s;
  ut_spec (&s, NULL);
  for (guint round = 0; round < rounds; round++) {
    guint vpp;
    g_autoptr (SchedTable) t = random_table (&vpp);
    g_autoptr (GError) error = NULL;
    if (t->ranks == 1 && vpp > 1)
      continue;
    random_layout (&s, t->ranks, vpp, t->microbatches);
    random_kinds (&s);
    random_software (&s.software);
    g_free (s.parallel.schedule);
    s.parallel.schedule = g_strdup ("1f1b"); /* the table is given */
    if (!spec_check (&s, NULL, &error)) {
      g_assert_error (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT);
      continue;
    }
    legal++;
    StageLayers sl;
    g_assert_true (stage_layers_init (&sl, &s, &error));
    g_autoptr (ProgramSet) set = compile_step (&s, t, &sl, NULL, &error);
    g_assert_no_error (error);
    ExecResult res = ut_run_both (set);
    check_shuffled (set, &res);
    check_breakdown (set, &res);
    Breakdown bd;
    breakdown_compute (set, &res, res.last_rank, STREAM_COMPUTE, &bd);
    g_assert_cmpint (bd.part[PART_OTHER] * 100, <, res.end);
    guint short_way = check_eval (&s, t, &sl, &res, &bd);
    evaluated += short_way;
    both_ends += t->pipelines == 2 ? short_way : 0; /* half the ranks tell all */
    exec_result_clear (&res);
    stage_layers_clear (&sl);
  }
  g_test_message ("%u of %u scenarios legal, %u evaluated without programs", legal, rounds,
                  evaluated);
  g_assert_cmpuint (legal, >, rounds / 2);
  g_assert_cmpuint (evaluated, >, rounds / 4);
  g_assert_cmpuint (both_ends, >, 0);
  spec_clear (&s);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/exec/prop/programs", prop_programs);
  g_test_add_func ("/exec/prop/jitter", prop_jitter);
  g_test_add_func ("/exec/prop/tables", prop_tables);
  g_test_add_func ("/exec/prop/steps", prop_steps);
  return g_test_run ();
}
