/* Sharded parameters in the programs of a step: how often what is gathered, and what it exposes. */
#include <string.h>

#include "coll_cost.h"
#include "compile.h"
#include "exec.h"
#include "predict.h"
#include "scenario.h"

static void
load (Spec *s, const char *const *more)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) sets = g_ptr_array_new ();
  static const char *const base[] = {"cluster.nodes=4",
                                     "train.global_batch_sequences=128",
                                     "train.micro_batch_sequences=1",
                                     "parallel={\"fsdp\":true}",
                                     "software=llm-foundry-2023",
                                     "software.dp_overlap_slowdown.value=1",
                                     "software.fsdp_reduce_copy_bytes.value=0",
                                     NULL};
  for (gsize i = 0; base[i] != NULL; i++)
    g_ptr_array_add (sets, (gpointer)base[i]);
  for (gsize i = 0; more != NULL && more[i] != NULL; i++)
    g_ptr_array_add (sets, (gpointer)more[i]);
  g_ptr_array_add (sets, NULL);
  scenario_load ("llama-3-8b-h100", (const char *const *)sets->pdata, s, &error);
  g_assert_no_error (error);
}

static ProgramSet *
compiled (const Spec *s)
{
  g_autoptr (GError) error = NULL;
  StageLayers sl = {0};
  g_autoptr (SchedTable) t =
      sched_generate (s->parallel.schedule, (guint)s->parallel.pp, (guint)s->parallel.vpp,
                      (guint)spec_microbatches (s), &error);
  g_assert_no_error (error);
  g_assert_true (stage_layers_init (&sl, s, &error));
  ProgramSet *set = compile_step (s, t, &sl, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (program_verify (set, &error));
  stage_layers_clear (&sl);
  return set;
}

static guint
count_ops (const ProgramSet *set, guint program, OpTag what)
{
  guint n = 0;
  for (guint32 i = set->first_op[program * set->n_streams];
       i < set->first_op[(program + 1) * set->n_streams]; i++)
    n += set->ops[i].kind == OP_COLL && OP_TAG_WHAT (set->ops[i].tag) == (guint)what;
  return n;
}

static void
check_counts (const char *const *sets, guint gathers, guint reductions)
{
  Spec s;
  load (&s, sets);
  g_autoptr (ProgramSet) set = compiled (&s);
  g_assert_cmpuint (count_ops (set, 0, TAG_PARAM_GATHER), ==, gathers);
  g_assert_cmpuint (count_ops (set, 0, TAG_GRAD_REDUCE), ==, reductions);
  spec_clear (&s);
}

/* 32 layers and the root unit, 4 micro-batches (128 sequences on 32 ranks). */
static void
test_counts (void)
{
  const char *const full[] = {NULL};
  const char *const kept[] = {"parallel.reshard_after_forward=false", NULL};
  const char *const zero2[] = {"parallel.zero_stage=2", NULL};
  const char *const no_sync[] = {"software.dp_reduce_every=false", NULL};
  const char *const pipe[] = {"parallel.pp=4", NULL}; /* 16 micro-batches, 8 layers a stage */
  const char *const pipe_reshard[] = {"parallel.pp=4", "parallel.reshard_after_forward=true", NULL};
  const char *const hybrid[] = {"parallel.shard_size=8", NULL};
  const char *const units[] = {
      "software.fsdp_unit_layers={\"value\":5,\"kind\":\"assumed\",\"source\":\"test\"}", NULL};
  check_counts (full, 4 * (2 * 32 + 1), 4 * 33);
  check_counts (kept, 4 * 33, 4 * 33);
  check_counts (zero2, 4 * 33, 4 * 33);
  check_counts (no_sync, 4 * (2 * 32 + 1), 33);
  check_counts (pipe, 8 + 1, 16 * 9); /* gathered once, for all micro-batches */
  check_counts (pipe_reshard, 16 * (2 * 8) + 1 + 15, 16 * 9);
  check_counts (hybrid, 4 * 65, 2 * 4 * 33);    /* reduce-scatter, then all-reduce */
  check_counts (units, 4 * (2 * 7 + 1), 4 * 8); /* 5 layers six times, and 2 */
}

static double
predicted (const char *const *sets, Prediction *p)
{
  Spec s;
  g_autoptr (GError) error = NULL;
  load (&s, sets);
  g_assert_true (predict (&s, NULL, NULL, p, &error));
  g_assert_no_error (error);
  spec_clear (&s);
  prediction_clear (p);
  return p->step_s;
}

/* No prefetch and blocking reductions: nothing overlaps, and the exposed time is the sum of all
 * calls: per micro-batch the root once and every layer twice, and one reduction each. */
static void
test_serial (void)
{
  const char *const sets[] = {"software.fsdp_prefetch.value=0", "software.dp_overlap_grad=false",
                              NULL};
  Spec s;
  Prediction p;
  load (&s, sets);
  CollGroup g = {32, 8, 4, 1, {0}};
  double layer = (double)model_params_layer (&s.model, 0);
  double root = 2.0 * (double)spec_padded_vocab (&s) * (double)s.model.hidden;
  double t = 4 * (2 * 32 * coll_time_s (s.fabric, COLL_ALL_GATHER, &g, 2 * layer, NULL) +
                  coll_time_s (s.fabric, COLL_ALL_GATHER, &g, 2 * root, NULL) +
                  32 * coll_time_s (s.fabric, COLL_REDUCE_SCATTER, &g, 2 * layer, NULL) +
                  coll_time_s (s.fabric, COLL_REDUCE_SCATTER, &g, 2 * root, NULL));
  predicted (sets, &p);
  g_assert_cmpfloat_with_epsilon (p.part_s[PART_DP_COMM], t, 1e-9 * t);
  g_assert_cmpfloat (p.part_s[PART_BUBBLE], <, 1e-9);
  spec_clear (&s);
}

/* Overlapped: between the longer and the sum of compute and communication; and the more is fetched
 * ahead the better. */
static void
test_overlap (void)
{
  const char *const serial[] = {"software.fsdp_prefetch.value=0", "software.dp_overlap_grad=false",
                                NULL};
  const char *const none[] = {"software.fsdp_prefetch.value=0", NULL};
  const char *const one[] = {NULL};
  const char *const two[] = {"software.fsdp_prefetch.value=2", NULL};
  const char *const slowed[] = {"software.dp_overlap_slowdown.value=1.4", NULL};
  Prediction a, b, c, d, e;
  double all = predicted (serial, &a);
  double t0 = predicted (none, &b), t1 = predicted (one, &c), t2 = predicted (two, &d);
  g_assert_cmpfloat (t0, <, all);
  g_assert_cmpfloat (t1, <, t0);
  g_assert_cmpfloat (t2, <=, t1);
  g_assert_cmpfloat (t1, >=, MAX (a.part_s[PART_DP_COMM], all - a.part_s[PART_DP_COMM]));
  double slow = predicted (slowed, &e);
  g_assert_cmpfloat (slow, >, t1);
  g_assert_cmpfloat (slow, <, 1.4 * t1);
}

/* Shards inside the node: gathers cross no network; hpZ does that for backward alone. */
static void
test_hybrid (void)
{
  const char *const full[] = {"software.fsdp_prefetch.value=0", "software.dp_overlap_grad=false",
                              NULL};
  const char *const hybrid[] = {"software.fsdp_prefetch.value=0", "software.dp_overlap_grad=false",
                                "parallel.shard_size=8", NULL};
  const char *const hpz[] = {"software.fsdp_prefetch.value=0", "software.dp_overlap_grad=false",
                             "parallel.hpz_size=8", NULL};
  Prediction a, b, c;
  double t_full = predicted (full, &a), t_hybrid = predicted (hybrid, &b),
         t_hpz = predicted (hpz, &c);
  g_assert_cmpfloat (t_hybrid, <, t_full);
  g_assert_cmpfloat (t_hpz, <, t_full);
}

/* Both executors agree to the tick, with a pipeline and resharding too. */
static void
test_executors (void)
{
  static const char *const cases[][4] = {
      {NULL},
      {"parallel.pp=4", "parallel.reshard_after_forward=true", NULL},
      {"parallel.pp=4", "parallel.vpp=2", NULL},
      {"parallel.shard_size=8", "parallel.tp=2", NULL},
      {"parallel.pp=4", "parallel.schedule=zb-h1", NULL},
      {"parallel.pp=4", "parallel.schedule=dualpipe", NULL}};
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    Spec s;
    g_autoptr (GError) error = NULL;
    load (&s, cases[i]);
    g_autoptr (ProgramSet) set = compiled (&s);
    ExecResult fast, events;
    SimOptions so = {.ticks_per_s = SIM_TICKS_PS, .horizon = SIM_TIME_MAX, .seed = 1};
    g_autoptr (SimEngine) engine = sim_engine_new (&so);
    g_assert_true (exec_run_fast (set, &fast, &error));
    g_assert_true (exec_run_events (set, engine, NULL, &events, &error));
    g_assert_cmpint (fast.end, ==, events.end);
    exec_result_clear (&fast);
    exec_result_clear (&events);
    spec_clear (&s);
  }
}

static void
refused (const char *set, const char *words)
{
  Spec s;
  g_autoptr (GError) error = NULL;
  const char *sets[] = {set, NULL};
  g_assert_false (scenario_load ("llama-3-8b-h100", sets, &s, &error));
  g_assert_nonnull (strstr (error->message, words));
}

static void
test_refusals (void)
{
  refused ("parallel={\"fsdp\":true,\"zero_stage\":1}", "fsdp shards more than the optimizer");
  refused ("parallel={\"fsdp\":true,\"shard_size\":3}", "not divisible by shard_size 3");
  refused ("parallel={\"zero_stage\":0,\"shard_size\":8}",
           "a shard group needs something to share out");
  refused ("parallel={\"fsdp\":true,\"hpz_size\":5}", "not divisible by hpz_size 5");
}

/* Zero 1 whose optimizer is shared out inside a node, nothing beside anything: gradients are
 * scattered over the 8 of a node and all-reduced, an eighth of them, over the 4 nodes; parameters
 * are gathered inside the node. As many ranks as there are: plain zero 1, to the tick. */
static void
test_scope (void)
{
  const char *scope[] = {"parallel={\"tp\":1,\"zero_stage\":1}",
                         "parallel={\"tp\":1,\"zero_stage\":1,\"shard_size\":32}",
                         "parallel={\"tp\":1,\"zero_stage\":1,\"shard_size\":8}"};
  double step_s[3];
  for (guint i = 0; i < 3; i++) {
    const char *sets[] = {"software=megatron-core-2024", scope[i], "software.dp_overlap_grad=false",
                          "software.dp_overlap_param=false", NULL};
    Spec s;
    Prediction p;
    StageLayers sl = {0};
    RankGroups g;
    load (&s, sets);
    g_assert_true (predict (&s, NULL, NULL, &p, NULL));
    g_assert_true (stage_layers_init (&sl, &s, NULL));
    rank_groups (&s, &g);
    double params = stage_params_per_rank (&s, &sl, 0).dense;
    double reduce = params * s.software.dp_reduce_bytes;
    double gather = params * s.software.dp_gather_bytes;
    double expected =
        i < 2 ? coll_time_s (s.fabric, COLL_REDUCE_SCATTER, &g.dp, reduce, NULL) +
                    coll_time_s (s.fabric, COLL_ALL_GATHER, &g.dp, gather, NULL)
              : coll_time_s (s.fabric, COLL_REDUCE_SCATTER, &g.shard, reduce, NULL) +
                    coll_time_s (s.fabric, COLL_ALL_REDUCE, &g.replica, reduce / 8, NULL) +
                    coll_time_s (s.fabric, COLL_ALL_GATHER, &g.shard, gather, NULL);
    g_assert_cmpfloat_with_epsilon (p.part_s[PART_DP_COMM], expected, 1e-9);
    step_s[i] = p.step_s;
    stage_layers_clear (&sl);
    prediction_clear (&p);
    spec_clear (&s);
  }
  g_assert_cmpfloat (step_s[0], ==, step_s[1]);
  g_assert_cmpfloat (step_s[2], !=, step_s[0]);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/fsdp/counts", test_counts);
  g_test_add_func ("/fsdp/serial", test_serial);
  g_test_add_func ("/fsdp/overlap", test_overlap);
  g_test_add_func ("/fsdp/hybrid", test_hybrid);
  g_test_add_func ("/fsdp/executors", test_executors);
  g_test_add_func ("/fsdp/refusals", test_refusals);
  g_test_add_func ("/fsdp/scope", test_scope);
  return g_test_run ();
}
