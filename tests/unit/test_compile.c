/* Layers on stages, the operations that a step is made of, closed forms of compiled schedules, what
 * must never be faster or slower, and the layer times of Korthikanti et al. 2022. */
#include "../core_util.h"

#include <math.h>
#include <string.h>

#include "breakdown.h"
#include "compile.h"
#include "fabric.h"
#include "predict.h"

/* ---- layers on stages ---- */

/* Megatron's rule: even; else with embedding and loss as a layer each; else the first ones have
 * more. */
static void
test_spread (void)
{
  static const struct {
    gint64 layers, pp, vpp;
    gint64 first, second, before_last, last;
  } cases[] = {{96, 8, 3, 4, 4, 4, 4},     {70, 12, 1, 5, 6, 6, 5},  {105, 35, 3, 1, 1, 1, 1},
               {71, 4, 1, 18, 18, 18, 17}, {126, 16, 1, 7, 8, 8, 7}, {126, 16, 8, 0, 1, 1, 0},
               {126, 8, 2, 7, 8, 8, 7},    {10, 3, 1, 3, 4, 4, 3},   {13, 4, 1, 4, 3, 3, 3},
               {3, 2, 1, 2, 2, 2, 1},      {1, 1, 1, 1, 0, 0, 1},    {61, 16, 1, 4, 4, 3, 3}};
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Spec s;
    StageLayers sl;
    g_autoptr (GError) error = NULL;
    gint64 n = cases[i].pp * cases[i].vpp, sum = 0;
    spec_init (&s);
    s.model.num_layers = cases[i].layers;
    s.parallel.pp = cases[i].pp;
    s.parallel.vpp = cases[i].vpp;
    g_assert_true (stage_layers_init (&sl, &s, &error));
    g_assert_no_error (error);
    g_assert_cmpuint (sl.n_stages, ==, (guint)n);
    for (gint64 k = 0; k < n; k++) {
      g_assert_cmpint (sl.first_layer[k], ==, sum);
      sum += sl.n_layers[k];
    }
    g_assert_cmpint (sum, ==, cases[i].layers);
    g_assert_cmpint (sl.n_layers[0], ==, cases[i].first);
    g_assert_cmpint (sl.n_layers[n - 1], ==, cases[i].last);
    if (n > 2) {
      g_assert_cmpint (sl.n_layers[1], ==, cases[i].second);
      g_assert_cmpint (sl.n_layers[n - 2], ==, cases[i].before_last);
    }
    stage_layers_clear (&sl);
    spec_clear (&s);
  }
}

static void
test_too_many_stages (void)
{
  static const gint64 stages[] = {13, 15, 16, 1000};
  for (guint i = 0; i < G_N_ELEMENTS (stages); i++) {
    Spec s;
    StageLayers sl;
    g_autoptr (GError) error = NULL;
    spec_init (&s);
    s.model.num_layers = 12;
    s.parallel.pp = stages[i];
    g_assert_false (stage_layers_init (&sl, &s, &error));
    g_assert_error (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT);
    spec_clear (&s);
  }
}

/* ---- compiling ---- */

typedef struct {
  Spec s;
  SchedTable *t;
  StageLayers sl;
  ProgramSet *set;
  ExecResult res;
} Step;

/* The shipped 175B step (tp 8, pp 8, vpp 3, 64 micro-batches, dp 1) with overrides, then what
 * change does to the Spec; compiled and run by both executors. */
static void
step_make (Step *st, const char *const *sets, void (*change) (Spec *), const StageTimes *times)
{
  g_autoptr (GError) error = NULL;
  memset (st, 0, sizeof *st);
  ut_spec (&st->s, sets);
  if (change != NULL)
    change (&st->s);
  const ParallelSpec *p = &st->s.parallel;
  st->t = sched_generate (p->schedule, (guint)p->pp, (guint)p->vpp,
                          (guint)spec_microbatches (&st->s), &error);
  g_assert_no_error (error);
  g_assert_true (stage_layers_init (&st->sl, &st->s, &error));
  st->set = compile_step (&st->s, st->t, &st->sl, times, &error);
  g_assert_no_error (error);
  st->res = ut_run_both (st->set);
}

static void
step_clear (Step *st)
{
  exec_result_clear (&st->res);
  program_set_free (st->set);
  stage_layers_clear (&st->sl);
  sched_table_free (st->t);
  spec_clear (&st->s);
}

/* Operations of a stream of a rank with that tag. */
static guint
count (const Step *st, guint rank, guint stream, OpTag what)
{
  const ProgramSet *set = st->set;
  guint p = set->rank_program[rank], n = 0;
  for (guint i = 0; i < program_ops_of (set, p, stream); i++)
    n += OP_TAG_WHAT (set->ops[set->first_op[p * set->n_streams + stream] + i].tag) == what;
  return n;
}

#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define FLAT      "parallel.vpp=1", "parallel.schedule=1f1b"

/* 1F1B, 8 stages, 64 micro-batches: each rank 64 F and B, 64 sends a direction where there is a
 * neighbour, one norm, one optimizer; the tied table is reduced by the first and the last. */
static void
test_operations (void)
{
  Step st;
  step_make (&st, SETS (FLAT), NULL, NULL);
  g_assert_cmpuint (st.set->n_ranks, ==, 8);
  for (guint r = 0; r < 8; r++) {
    g_assert_cmpuint (count (&st, r, STREAM_COMPUTE, TAG_FORWARD), ==, 64);
    g_assert_cmpuint (count (&st, r, STREAM_COMPUTE, TAG_BACKWARD), ==, 64);
    g_assert_cmpuint (count (&st, r, STREAM_NEXT, TAG_SEND_ACT), ==, r < 7 ? 64 : 0);
    g_assert_cmpuint (count (&st, r, STREAM_PREV, TAG_SEND_GRAD), ==, r > 0 ? 64 : 0);
    g_assert_cmpuint (count (&st, r, STREAM_COMPUTE, TAG_GRAD_NORM), ==, 1);
    g_assert_cmpuint (count (&st, r, STREAM_COMPUTE, TAG_OPTIMIZER), ==, 1);
    g_assert_cmpuint (count (&st, r, STREAM_DP, TAG_GRAD_REDUCE), ==, 0);
    g_assert_cmpuint (count (&st, r, STREAM_DP, TAG_EMBED_GRAD), ==, r == 0 || r == 7);
    g_assert_cmpuint (st.set->rank_weight[r], ==, 8);
  }
  step_clear (&st);
}

/* Three chunks a rank: activations also go from the last rank round to the first, 2 of 3 times. */
static void
test_operations_interleaved (void)
{
  Step st;
  step_make (&st, SETS ("parallel.vpp=3"), NULL, NULL);
  for (guint r = 0; r < 8; r++) {
    g_assert_cmpuint (count (&st, r, STREAM_COMPUTE, TAG_FORWARD), ==, 3 * 64);
    g_assert_cmpuint (count (&st, r, STREAM_NEXT, TAG_SEND_ACT), ==, (r < 7 ? 3 : 2) * 64);
    g_assert_cmpuint (count (&st, r, STREAM_PREV, TAG_SEND_GRAD), ==, (r > 0 ? 3 : 2) * 64);
  }
  step_clear (&st);
}

/* Two ranks have one neighbour on both sides, one rank has none. */
static void
test_small_rings (void)
{
  Step st;
  step_make (&st, SETS ("parallel.pp=2", "parallel.vpp=2", "cluster.nodes=2"), NULL, NULL);
  for (guint r = 0; r < 2; r++) {
    guint sends =
        count (&st, r, STREAM_NEXT, TAG_SEND_ACT) + count (&st, r, STREAM_PREV, TAG_SEND_ACT);
    g_assert_cmpuint (sends, ==, (r == 0 ? 2 : 1) * 64);
  }
  step_clear (&st);
  step_make (&st, SETS ("parallel.pp=1", FLAT, "cluster.nodes=1"), NULL, NULL);
  g_assert_cmpuint (st.set->n_ranks, ==, 1);
  g_assert_cmpuint (count (&st, 0, STREAM_DP, TAG_EMBED_GRAD), ==, 0);
  step_clear (&st);
}

/* ---- gradient buckets: pp 8, dp 4, 12 layers a rank ---- */

static double
    bucket_layers; /* of the next step_make: bucket size in layers' gradients; 0: one bucket */

static void
overlap_buckets (Spec *s)
{
  gint64 layer = model_rank_layer (&s->model, 0, s->parallel.tp, 1, 1).dense;
  s->software.dp_overlap_grad = TRUE;
  s->software.dp_bucket_bytes = bucket_layers * (double)layer * s->software.dp_reduce_bytes;
}

static void
test_buckets (void)
{
  /* A bucket closes with the layer that fills it: 12 layers of one each, of 2.5 (3 layers),
   * of 11.5. */
  static const struct {
    double layers;
    guint buckets;
  } cases[] = {{0, 1}, {0.9, 12}, {2.5, 4}, {4.5, 3}, {11.5, 1}, {100, 1}};
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Step st;
    bucket_layers = cases[i].layers;
    step_make (&st, SETS (FLAT, "cluster.nodes=32", "train.global_batch_sequences=256"),
               overlap_buckets, NULL);
    g_assert_cmpuint (count (&st, 3, STREAM_DP, TAG_GRAD_REDUCE), ==, cases[i].buckets);
    g_assert_cmpuint (count (&st, 3, STREAM_COMPUTE, TAG_BACKWARD), ==, 64 + 11);
    step_clear (&st);
  }
  Step st; /* not beside the backward: one reduction, the backward whole */
  step_make (&st, SETS (FLAT, "cluster.nodes=32", "train.global_batch_sequences=256"), NULL, NULL);
  g_assert_cmpuint (count (&st, 3, STREAM_DP, TAG_GRAD_REDUCE), ==, 1);
  g_assert_cmpuint (count (&st, 3, STREAM_COMPUTE, TAG_BACKWARD), ==, 64);
  step_clear (&st);
}

/* ---- closed forms through compile_step ---- */

/* End of the last pass of any rank: the step without its end. */
static SimTime
end_of_passes (const Step *st)
{
  SimTime end = 0;
  for (guint r = 0; r < st->set->n_ranks; r++) {
    guint p = st->set->rank_program[r];
    for (guint i = 0; i < program_ops_of (st->set, p, STREAM_COMPUTE); i++) {
      guint what = OP_TAG_WHAT (
          st->set->ops[st->set->first_op[p * st->set->n_streams + STREAM_COMPUTE] + i].tag);
      if (what >= TAG_FORWARD && what <= TAG_WEIGHT_GRAD)
        end = MAX (end, exec_op_end (st->set, &st->res, r, STREAM_COMPUTE, i));
    }
  }
  return end;
}

static void
buffered (Spec *s)
{
  s->software.pp_overlap = TRUE;
  s->software.p2p_sync = FALSE;
}

static void
blocking (Spec *s)
{
  s->software.pp_overlap = FALSE;
  s->software.p2p_sync = FALSE;
}

/* Measured stage times, sends free: (m v + p - 1)(f + b)/v, whether sends are buffered or block
 * both ends. f = 3 ms, b = 4 + 2 ms of a stage; 1 tick = 1 ps. */
static void
test_closed_forms (void)
{
  static const struct {
    const char *schedule, *vpp;
    gint64 v;
  } cases[] = {{"parallel.schedule=1f1b", "parallel.vpp=1", 1},
               {"parallel.schedule=gpipe", "parallel.vpp=1", 1},
               {"parallel.schedule=interleaved", "parallel.vpp=3", 3},
               {"parallel.schedule=bfs", "parallel.vpp=3", 3}};
  const StageTimes times = {3e-3, 4e-3, 2e-3, 0};
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    for (guint block = 0; block < 2; block++) {
      Step st;
      step_make (&st, SETS (cases[i].vpp, cases[i].schedule), block ? blocking : buffered, &times);
      gint64 v = cases[i].v, mb = 9000000000 / v; /* f + b of a chunk */
      g_assert_cmpint (end_of_passes (&st), ==, (64 * v + 7) * mb);
      step_clear (&st);
    }
}

/* Every schedule whose actions do not run in pairs, sends free: the dry run's makespan. */
static void
test_dry_run (void)
{
  static const char *const names[] = {"gpipe", "1f1b",  "interleaved", "bfs",
                                      "zb-h1", "zb-h2", "zb-v"};
  const StageTimes times = {3e-3, 4e-3, 2.5e-3, 0};
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    guint v = strcmp (names[i], "zb-v") == 0                                           ? 2
              : strcmp (names[i], "interleaved") == 0 || strcmp (names[i], "bfs") == 0 ? 4
                                                                                       : 1;
    g_autofree char *schedule = g_strdup_printf ("parallel.schedule=%s", names[i]);
    g_autofree char *vpp = g_strdup_printf ("parallel.vpp=%u", v);
    Step st;
    step_make (&st, SETS (vpp, schedule), buffered, &times);
    SchedCosts costs = {
        {3000000000 / v, 6500000000 / v, 4000000000 / v, 2500000000 / v}, NULL, 0, 0};
    SchedRun run = {0};
    g_assert_true (sched_dry_run (st.t, &costs, &run, NULL));
    g_assert_cmpint (end_of_passes (&st), ==, run.makespan);
    step_clear (&st);
  }
}

/* Sends that cost time: blocking both ends is never faster than buffering, and one that is hidden
 * behind compute costs 2 (p - 1) sends of ramp at least. */
static void
test_send_costs (void)
{
  const StageTimes times = {3e-3, 4e-3, 2e-3, 1e-4};
  Step a, b;
  step_make (&a, SETS (FLAT), buffered, &times);
  step_make (&b, SETS (FLAT), blocking, &times);
  g_assert_cmpint (end_of_passes (&a), >=, 71 * G_GINT64_CONSTANT (9000000000) + 14 * 100000000);
  g_assert_cmpint (end_of_passes (&b), >=, end_of_passes (&a));
  step_clear (&a);
  step_clear (&b);
}

/* A table from a file may place stages anywhere: 4 stages on ranks 0, 2, 1, 3. One micro-batch,
 * sends free: 4 (f + b). The transfers between ranks 0 and 2, and 1 and 3, go to neither neighbour.
 */
static void
test_any_placement (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (SchedTable) t =
      sched_parse ("rank 0: 0F0 0F1 0B0 0B1\nrank 1: 2F0 2F1 2B0 2B1\nrank 2: 1F0 1F1 1B0 1B1\n"
                   "rank 3: 3F0 3B0 3F1 3B1\n",
                   -1, &error);
  g_assert_no_error (error);
  g_assert_true (sched_verify (t, &error));
  Spec s;
  StageLayers sl;
  ut_spec (&s, SETS (FLAT, "parallel.pp=4", "cluster.nodes=4", "train.global_batch_sequences=2"));
  buffered (&s);
  g_assert_true (stage_layers_init (&sl, &s, NULL));
  const StageTimes times = {3e-3, 4e-3, 2e-3, 0};
  Step st = {.t = t, .set = compile_step (&s, t, &sl, &times, &error)};
  g_assert_no_error (error);
  st.res = ut_run_both (st.set);
  SchedCosts costs = {{3000000000, 6000000000, 0, 0}, NULL, 0, 0};
  SchedRun run = {0};
  g_assert_true (sched_dry_run (t, &costs, &run, NULL));
  g_assert_cmpint (end_of_passes (&st), ==, run.makespan);
  exec_result_clear (&st.res);
  program_set_free (st.set);
  stage_layers_clear (&sl);
  spec_clear (&s);
}

/* ---- what must not be faster or slower ---- */

static double
step_s (const char *const *sets, void (*change) (Spec *))
{
  Spec s;
  Prediction p;
  g_autoptr (GError) error = NULL;
  ut_spec (&s, sets);
  if (change != NULL)
    change (&s);
  g_assert_true (predict (&s, NULL, NULL, &p, &error));
  g_assert_no_error (error);
  double t = p.step_s;
  prediction_clear (&p);
  spec_clear (&s);
  return t;
}

#define DP4 "cluster.nodes=32", "train.global_batch_sequences=256"

static void
test_overlap (void)
{
  bucket_layers = 2.5;
  g_assert_cmpfloat (step_s (SETS (FLAT, DP4), overlap_buckets), <,
                     step_s (SETS (FLAT, DP4), NULL));
  static const char *const off[] = {"software.tp_overlap=none", FLAT, NULL},
                           *const dgrad[] = {"software.tp_overlap=dgrad", FLAT, NULL},
                           *const all[] = {"software.tp_overlap=pipelined", FLAT, NULL};
  g_assert_cmpfloat (step_s (dgrad, NULL), <, step_s (off, NULL));
  g_assert_cmpfloat (step_s (all, NULL), <, step_s (off, NULL));
  g_assert_cmpfloat (step_s (SETS (FLAT), buffered), <=, step_s (SETS (FLAT), blocking));
}

static double scale;

static void
scale_network (Spec *s)
{
  s->fabric->nic_Bps *= scale;
  fabric_changed (s->fabric);
}

static void
scale_node (Spec *s)
{
  for (guint i = 0; i < PROTO_COUNT; i++)
    s->fabric->ring[i].bus_Bps *= scale;
  fabric_changed (s->fabric);
}

/* More bandwidth never makes a step slower. */
static void
test_bandwidth (void)
{
  double last[2] = {INFINITY, INFINITY};
  for (scale = 0.25; scale < 9; scale *= 2) {
    double net = step_s (SETS ("parallel.vpp=3", DP4), scale_network),
           node = step_s (SETS ("parallel.vpp=3", DP4), scale_node);
    g_assert_cmpfloat (net, <=, last[0]);
    g_assert_cmpfloat (node, <=, last[1]);
    last[0] = net;
    last[1] = node;
  }
}

static void
host_time (Spec *s)
{
  s->software.host_kernel_us = scale;
  s->software.host_comm_us = scale;
  s->software.cuda_graph = FALSE;
}

/* More host time never makes it faster, and enough of it rules the step. */
static void
test_host (void)
{
  double last = 0, first = 0;
  for (guint i = 0; i < 6; i++) {
    scale = (const double[]){0, 1, 5, 20, 100, 1000}[i];
    double t = step_s (SETS (FLAT), host_time);
    g_assert_cmpfloat (t, >=, last);
    last = t;
    first = i == 0 ? t : first;
  }
  g_assert_cmpfloat (last, >, 2 * first);
}

static void
in_step (Spec *s)
{
  s->software.host_layer_fwd_us = 1e6;
  s->software.host_layer_bwd_us = 2e6;
  s->software.host_kernel_us = s->software.host_comm_us = 0;
  s->software.host_microbatch_us = s->software.host_chunk_us = 0;
  s->software.p2p_sync = TRUE;
}

/* Where the host waits after each pass and is far slower than the device (3 s a layer of forward
 * and backward, 96 layers on 8 stages, 64 micro-batches), the bubble is as long as the host's time:
 * (64 + 7) * 12 * 3 s, and the embedding and the head (3 s each) once a micro-batch. */
static void
test_in_step (void)
{
  double t = step_s (SETS (FLAT), in_step), layers = 71 * 12 * 3.0;
  g_assert_cmpfloat (t, >, layers);
  g_assert_cmpfloat (t, <, 1.02 * (layers + 71 * 3.0));
}

/* Kernels of days are an error with words, not a sum that runs over. */
static void
test_overflow (void)
{
  Spec s;
  Prediction p;
  g_autoptr (GError) error = NULL;
  ut_spec (&s, SETS ("train.sequence_tokens=100000000"));
  g_assert_false (predict (&s, NULL, NULL, &p, &error));
  g_assert_error (error, PROGRAM_ERROR, PROGRAM_ERROR_OVERFLOW);
  g_assert_nonnull (strstr (error->message, "days"));
  spec_clear (&s);
}

/* Any number of GPUs: 20 on nodes of 8, groups that fill them unevenly. */
static void
test_uneven_nodes (void)
{
  double t = step_s (
      SETS (FLAT, "cluster.nodes=3", "cluster.gpus=20", "parallel.tp=4", "parallel.pp=5"), NULL);
  g_assert_cmpfloat (t, >, 0);
}

/* ---- a layer ---- */

typedef struct {
  double flops, comm_bytes;
  guint collectives;
} LayerSum;

static LayerSum
sum_layer (const Spec *s, LayerPass pass)
{
  Pricing p;
  LayerSum sum = {0};
  pricing_init (&p, s);
  g_autoptr (GArray) rows = g_array_new (FALSE, FALSE, sizeof (KernelRow));
  layer_pass_kernels (&p, 1, pass, rows);
  for (guint i = 0; i < rows->len; i++) {
    const KernelRow *k = &g_array_index (rows, KernelRow, i);
    g_assert_cmpfloat (k->time_s, >, 0);
    sum.flops += k->flops;
    if (k->comm) {
      sum.comm_bytes += k->bytes;
      sum.collectives++;
    }
  }
  return sum;
}

/* Per layer and micro-batch, b s h two-byte elements each: tensor parallel 2 all-reduces forward
 * and 2 backward; sequence parallel 2 all-gathers and 2 reduce-scatters forward, backward those and
 * 2 gathers of the inputs again (Korthikanti et al., section 4.2). Full recomputation adds a
 * forward. */
static void
test_tp_collectives (void)
{
  static const struct {
    const char *sp, *recompute;
    guint forward, backward;
  } cases[] = {{"parallel.sequence_parallel=false", "train.recompute=none", 2, 2},
               {"parallel.sequence_parallel=true", "train.recompute=none", 4, 6},
               {"parallel.sequence_parallel=true", "train.recompute=selective", 4, 6},
               {"parallel.sequence_parallel=false", "train.recompute=full", 2, 4},
               {"parallel.sequence_parallel=true", "train.recompute=full", 4, 10}};
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Spec s;
    ut_spec (&s, SETS (cases[i].sp, cases[i].recompute));
    const double bytes = 2048.0 * 12288 * 2;
    LayerSum f = sum_layer (&s, LP_FORWARD), b = sum_layer (&s, LP_BACKWARD);
    g_assert_cmpuint (f.collectives, ==, cases[i].forward);
    g_assert_cmpuint (b.collectives, ==, cases[i].backward);
    g_assert_cmpfloat (f.comm_bytes, ==, cases[i].forward * bytes);
    g_assert_cmpfloat (b.comm_bytes, ==, cases[i].backward * bytes);
    spec_clear (&s);
  }
}

/* GEMM FLOPs of a layer on one of t ranks: 24 b s h^2 (1 + s / 6h) / t forward, twice that
 * backward, the attention core 4 b s^2 h / t once more (selective), all of forward (full). */
static void
test_layer_flops (void)
{
  const double bs = 2048, h = 12288, core = 4 * bs * 2048 * h / 8, matrices = 24 * bs * h * h / 8;
  for (guint i = 0; i < 3; i++) {
    g_autofree char *set = g_strdup_printf ("train.recompute=%s", recompute_names[i]);
    const double again = i == RECOMPUTE_FULL        ? matrices + core
                         : i == RECOMPUTE_SELECTIVE ? core
                                                    : 0;
    Spec s;
    ut_spec (&s, SETS (set));
    double f = sum_layer (&s, LP_FORWARD).flops, b = sum_layer (&s, LP_BACKWARD).flops,
           ig = sum_layer (&s, LP_INPUT_GRAD).flops, wg = sum_layer (&s, LP_WEIGHT_GRAD).flops;
    g_assert_cmpfloat_with_epsilon (f / (matrices + core), 1, 1e-12);
    g_assert_cmpfloat_with_epsilon (b / (2 * (matrices + core) + again), 1, 1e-12);
    g_assert_cmpfloat_with_epsilon ((ig + wg) / b, 1, 1e-12);
    g_assert_cmpfloat_with_epsilon (wg / matrices, 1, 1e-12);
    spec_clear (&s);
  }
}

/* Table 4 of Korthikanti et al. 2022 (arXiv 2205.05198): one layer of the 22B model, micro-batch 4,
 * tp 8 on A100; milliseconds forward and backward with recomputation. Within 12 %. */
static void
test_korthikanti (void)
{
  static const struct {
    const char *sp, *recompute;
    double forward_ms, backward_ms;
  } cases[] = {{"parallel.sequence_parallel=false", "train.recompute=none", 7.7, 11.9},
               {"parallel.sequence_parallel=true", "train.recompute=none", 7.2, 11.8},
               {"parallel.sequence_parallel=false", "train.recompute=full", 7.7, 19.5},
               {"parallel.sequence_parallel=false", "train.recompute=selective", 7.7, 13.2},
               {"parallel.sequence_parallel=true", "train.recompute=selective", 7.2, 13.1}};
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Spec s;
    Pricing p;
    PassCost f, b;
    ut_spec (&s, SETS ("model=korthikanti-22b", "parallel.pp=1", FLAT, "cluster.nodes=1",
                       "train.micro_batch_sequences=4", cases[i].sp, cases[i].recompute));
    pricing_init (&p, &s);
    layer_pass_cost (&p, 1, LP_FORWARD, &f);
    layer_pass_cost (&p, 1, LP_BACKWARD, &b);
    double fe = (double)f.total * 1e-9 / cases[i].forward_ms - 1,
           be = (double)b.total * 1e-9 / cases[i].backward_ms - 1;
    g_test_message ("%s %s: forward %.2f ms (%+.1f %%), backward %.2f ms (%+.1f %%)",
                    cases[i].sp + 27, cases[i].recompute + 16, (double)f.total * 1e-9, 100 * fe,
                    (double)b.total * 1e-9, 100 * be);
    g_assert_cmpfloat (fabs (fe), <, 0.12);
    g_assert_cmpfloat (fabs (be), <, 0.12);
    spec_clear (&s);
  }
}

/* The parts of a pass add up to it, and both halves of a backward are no faster than the whole. */
static void
test_passes (void)
{
  Spec s;
  Pricing p;
  PassCost cost[LP_COUNT];
  ut_spec (&s, NULL);
  pricing_init (&p, &s);
  for (guint k = 0; k < LP_COUNT; k++) {
    SimTime sum = 0;
    layer_pass_cost (&p, 1, (LayerPass)k, &cost[k]);
    for (guint i = 0; i < PART_COUNT; i++)
      sum += cost[k].part[i];
    g_assert_cmpint (sum, ==, cost[k].total);
    g_assert_cmpint (cost[k].part[PART_OTHER], ==, 0);
    g_assert_cmpint (cost[k].part[PART_BUBBLE], ==, 0);
    g_assert_cmpuint (cost[k].kernels, >, 0);
    g_assert_cmpint (cost[k].host, >, 0);
  }
  g_assert_cmpint (cost[LP_INPUT_GRAD].total + cost[LP_WEIGHT_GRAD].total, >=,
                   cost[LP_BACKWARD].total);
  spec_clear (&s);
}

/* Where the host waits for each collective: with a host that takes no time a pass is as before;
 * with one that takes 1 s a kernel it is the host's time and, at each collective and at the end,
 * what the device still does (no more than the pass took before); in between, the total never
 * falls. */
static void
test_blocking_collectives (void)
{
  Spec s;
  Pricing p;
  PassCost plain, coupled, last = {.total = 0};
  ut_spec (&s, SETS ("parallel.sequence_parallel=false"));
  s.software.host_layer_fwd_us = s.software.host_layer_bwd_us = s.software.host_comm_us = 0;
  s.software.tp_overlap = TPOV_NONE;
  for (guint i = 0; i < 5; i++) {
    s.software.host_kernel_us = (const double[]){0, 10, 100, 1000, 1e6}[i];
    s.software.tp_comm_blocks = FALSE;
    pricing_init (&p, &s);
    layer_pass_cost (&p, 1, LP_FORWARD, &plain);
    s.software.tp_comm_blocks = TRUE;
    pricing_init (&p, &s);
    layer_pass_cost (&p, 1, LP_FORWARD, &coupled);
    g_assert_cmpint (coupled.total, >=, last.total);
    g_assert_cmpint (coupled.total, >=, MAX (plain.total, plain.host));
    g_assert_cmpint (coupled.total, <=, plain.total + plain.host);
    if (i == 0)
      g_assert_cmpint (coupled.total, ==, plain.total);
    last = coupled;
  }
  spec_clear (&s);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/compile/spread", test_spread);
  g_test_add_func ("/compile/too-many-stages", test_too_many_stages);
  g_test_add_func ("/compile/operations", test_operations);
  g_test_add_func ("/compile/operations-interleaved", test_operations_interleaved);
  g_test_add_func ("/compile/small-rings", test_small_rings);
  g_test_add_func ("/compile/buckets", test_buckets);
  g_test_add_func ("/compile/closed-forms", test_closed_forms);
  g_test_add_func ("/compile/dry-run", test_dry_run);
  g_test_add_func ("/compile/send-costs", test_send_costs);
  g_test_add_func ("/compile/any-placement", test_any_placement);
  g_test_add_func ("/compile/overlap", test_overlap);
  g_test_add_func ("/compile/bandwidth", test_bandwidth);
  g_test_add_func ("/compile/host", test_host);
  g_test_add_func ("/compile/in-step", test_in_step);
  g_test_add_func ("/compile/overflow", test_overflow);
  g_test_add_func ("/compile/uneven-nodes", test_uneven_nodes);
  g_test_add_func ("/compile/tp-collectives", test_tp_collectives);
  g_test_add_func ("/compile/layer-flops", test_layer_flops);
  g_test_add_func ("/compile/korthikanti", test_korthikanti);
  g_test_add_func ("/compile/passes", test_passes);
  g_test_add_func ("/compile/blocking-collectives", test_blocking_collectives);
  return g_test_run ();
}
