/* Predictions end to end: fast pass = event engine on what ships, sums, and the arithmetic of
 * rates, MFU and cost against formulas written out here. */
#include "../core_util.h"

#include <math.h>
#include <string.h>

#include "gpu_profile.h"
#include "paths.h"
#include "predict.h"

#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

static Prediction
run (const Spec *s)
{
  g_autoptr (GError) error = NULL;
  Prediction p;
  if (!predict (s, NULL, NULL, &p, &error))
    g_error ("%s", error->message);
  return p;
}

static Prediction
run_sets (const char *const *sets)
{
  Spec s;
  ut_spec (&s, sets);
  Prediction p = run (&s);
  spec_clear (&s);
  return p;
}

static void
close_to (double a, double b)
{
  if (!(fabs (a - b) <= 1e-12 * fabs (b)))
    g_error ("%.17g is not %.17g", a, b);
}

static void
same_step (const Prediction *a, const Prediction *b)
{
  g_assert_cmpfloat (a->step_s, ==, b->step_s);
  g_assert_cmpuint (a->operations, ==, b->operations);
  for (guint i = 0; i < PART_COUNT; i++)
    g_assert_cmpfloat (a->part_s[i], ==, b->part_s[i]);
}

/* Every shipped scenario: the same step from both executors and in any order of ties; the same seed
 * gives the same fingerprint; parts add up; less than 1 % is "other". */
static void
test_shipped (void)
{
  g_auto (GStrv) names = data_list ("train");
  g_assert_nonnull (names[0]);
  for (guint i = 0; names[i] != NULL; i++) {
    g_autoptr (GError) error = NULL;
    Spec s;
    g_assert_true (scenario_load (names[i], NULL, &s, &error));
    g_assert_no_error (error);
    Prediction fast = run (&s), again = run (&s);
    s.run.exact_events = TRUE;
    Prediction events = run (&s), events2 = run (&s);
    s.run.shuffle_ties = TRUE;
    s.run.seed = 7;
    Prediction shuffled = run (&s);
    double sum = 0;
    same_step (&fast, &events);
    same_step (&fast, &shuffled);
    g_assert_cmpuint (fast.fingerprint, ==, again.fingerprint);
    g_assert_cmpuint (events.fingerprint, ==, events2.fingerprint);
    for (guint k = 0; k < PART_COUNT; k++)
      sum += fast.part_s[k];
    close_to (sum, fast.step_s);
    g_assert_cmpfloat (fast.part_s[PART_OTHER], <, 0.01 * fast.step_s);
    prediction_clear (&fast);
    prediction_clear (&again);
    prediction_clear (&events);
    prediction_clear (&events2);
    prediction_clear (&shuffled);
    spec_clear (&s);
  }
}

/* 175B, Korthikanti et al.: model FLOPs of a step 72 B L s h^2 (1 + s/6h + V/12hL) with full
 * attention, the causal half of the s/6h term; per GPU and second, over the peak of 312 TFLOP/s. */
static void
test_mfu (void)
{
  const double B = 64, L = 96, s = 2048, h = 12288, V = 51200, gpus = 64;
  for (guint causal = 0; causal < 2; causal++)
    for (guint r = 0; r < 3; r++) {
      g_autofree char *recompute = g_strdup_printf ("train.recompute=%s", recompute_names[r]);
      Prediction p = run_sets (
          SETS (recompute, causal ? "train.mfu_convention=causal" : "train.mfu_convention=full"));
      const double half = causal ? 0.5 : 1, matrices = 24 * B * L * s * h * h,
                   core = half * 4 * B * L * s * s * h, head = 2 * B * s * h * V;
      const double model = 3 * (matrices + core + head), again = r == RECOMPUTE_FULL
                                                                     ? matrices + core
                                                                 : r == RECOMPUTE_SELECTIVE ? core
                                                                                            : 0;
      close_to (p.model_tflops_per_gpu, model / gpus / p.step_s * 1e-12);
      close_to (p.hardware_tflops_per_gpu, (model + again) / gpus / p.step_s * 1e-12);
      close_to (p.peak_tflops, 312);
      close_to (p.mfu, p.model_tflops_per_gpu / 312);
      close_to (p.hfu, p.hardware_tflops_per_gpu / 312);
      close_to (p.flops_per_token, model / (B * s));
      prediction_clear (&p);
    }
}

static void
test_rates (void)
{
  Prediction p = run_sets (NULL);
  close_to (p.tokens_per_s, 64 * 2048 / p.step_s);
  close_to (p.tokens_per_s_per_gpu, 2048 / p.step_s);
  close_to (p.bubble_share, p.part_s[PART_BUBBLE] / p.step_s);
  /* arXiv 2205.05198, table 5: 175 B parameters */
  g_assert_cmpint (p.parameters, ==, p.active_parameters);
  g_assert_cmpfloat (fabs ((double)p.parameters / 175e9 - 1), <, 0.01);
  g_assert_cmpuint (p.n_stages, ==, 24);
  for (guint i = 0; i < 24; i++)
    g_assert_cmpint (p.stage_layers[i], ==, 4);
  for (guint r = 0; r < 8; r++)
    g_assert_cmpint (p.rank_layers[r], ==, 12);
  prediction_clear (&p);
}

/* 1e9 tokens on 64 GPUs: hours of a GPU, times its price; a node of 8 at 6.5 kW, PUE 1.2. */
static void
test_cost (void)
{
  Prediction p = run_sets (NULL);
  const double hours = 64 * 1e9 / p.tokens_per_s / 3600;
  close_to (p.gpu_hours_per_1e9_tokens, hours);
  g_assert_cmpfloat (p.usd_per_1e9_tokens, <, 0); /* not known */
  g_assert_cmpfloat (p.kwh_per_1e9_tokens, <, 0);
  prediction_clear (&p);
  p = run_sets (SETS ("cluster.price_usd_per_gpu_hour=2.5", "cluster.node_power_W=6500"));
  close_to (p.usd_per_1e9_tokens, hours * 2.5);
  close_to (p.kwh_per_1e9_tokens, hours / 8 * 6.5);
  prediction_clear (&p);
  p = run_sets (SETS ("cluster.node_power_W=6500", "cluster.pue=1.2"));
  close_to (p.kwh_per_1e9_tokens, hours / 8 * 6.5 * 1.2);
  prediction_clear (&p);
}

/* Twice the batch: the same work a micro-batch; the step grows by exactly one batch of steady
 * state. */
static void
test_batch (void)
{
  Prediction a = run_sets (SETS ("train.global_batch_sequences=64")),
             b = run_sets (SETS ("train.global_batch_sequences=128")),
             c = run_sets (SETS ("train.global_batch_sequences=192"));
  g_assert_cmpfloat_with_epsilon ((b.step_s - a.step_s) / (c.step_s - b.step_s), 1, 1e-9);
  g_assert_cmpfloat (b.mfu, >, a.mfu);
  g_assert_cmpfloat (b.part_s[PART_BUBBLE] / b.step_s, <, a.part_s[PART_BUBBLE] / a.step_s);
  prediction_clear (&a);
  prediction_clear (&b);
  prediction_clear (&c);
}

/* Tables are made once; what a cache gives is what a prediction without one gives. */
static void
test_cache (void)
{
  g_autoptr (PredictCache) cache = predict_cache_new ();
  for (guint i = 0; i < 6; i++) {
    g_autofree char *vpp = g_strdup_printf ("parallel.vpp=%u", 1 + i % 3);
    Spec s;
    Prediction p;
    ut_spec (&s,
             SETS (vpp, i % 3 == 0 ? "parallel.schedule=1f1b" : "parallel.schedule=interleaved"));
    g_assert_true (predict (&s, cache, NULL, &p, NULL));
    Prediction alone = run (&s);
    same_step (&p, &alone);
    g_assert_cmpuint (p.fingerprint, ==, alone.fingerprint);
    prediction_clear (&p);
    prediction_clear (&alone);
    spec_clear (&s);
  }
}

/* All schedules on one layout: parts add up, and the splits that halve the bubble have less of it.
 */
static void
test_schedules (void)
{
  static const char *const names[] = {"1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe"},
                           *const vpp[] = {"1", "3", "1", "2", "1"};
  double bubble[G_N_ELEMENTS (names)];
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *schedule = g_strdup_printf ("parallel.schedule=%s", names[i]);
    g_autofree char *v = g_strdup_printf ("parallel.vpp=%s", vpp[i]);
    Prediction p = run_sets (SETS (v, schedule));
    double sum = 0;
    for (guint k = 0; k < PART_COUNT; k++)
      sum += p.part_s[k];
    close_to (sum, p.step_s);
    bubble[i] = p.part_s[PART_BUBBLE];
    gint64 layers = 0;
    for (guint r = 0; r < 8; r++)
      layers += p.rank_layers[r];
    g_assert_cmpint (layers, ==, i == 4 ? 2 * 96 : 96); /* dualpipe holds the model twice */
    prediction_clear (&p);
  }
  for (guint i = 1; i < G_N_ELEMENTS (names); i++)
    g_assert_cmpfloat (bubble[i], <, bubble[0]);
}

/* A table of another shape than the scenario is refused. */
static void
test_wrong_table (void)
{
  static const guint shapes[][3] = {{4, 1, 64}, {8, 1, 63}, {8, 2, 64}};
  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++) {
    g_autoptr (SchedTable) t = ut_table ("bfs", shapes[i][0], shapes[i][1], shapes[i][2]);
    const PredictOptions o = {.table = t};
    g_autoptr (GError) error = NULL;
    Prediction p;
    Spec s;
    ut_spec (&s, SETS ("parallel.vpp=1", "parallel.schedule=1f1b"));
    g_assert_false (predict (&s, NULL, &o, &p, &error));
    g_assert_error (error, PROGRAM_ERROR, PROGRAM_ERROR_INVALID);
    spec_clear (&s);
  }
}

/* What cannot be scheduled is an error with the numbers in it. */
static void
test_errors (void)
{
  static const struct {
    const char *sets[4], *says;
  } cases[] = {
      {{"train.global_batch_sequences=60", NULL}, "60"},
      {{"parallel.schedule=dualpipe", "parallel.vpp=1", "train.global_batch_sequences=8", NULL},
       "2 pp"},
      {{"parallel.schedule=zb-v", NULL}, "vpp 2"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    Prediction p;
    Spec s;
    ut_spec (&s, cases[i].sets);
    g_assert_false (predict (&s, NULL, NULL, &p, &error));
    g_assert_nonnull (error);
    g_assert_nonnull (strstr (error->message, cases[i].says));
    spec_clear (&s);
  }
}

/* The interface's example of 16,384 GPUs: 126 layers on 16 x 8 chunks, one a chunk, none on the
 * first and last. */
static void
test_slots (void)
{
  g_autoptr (GError) error = NULL;
  Spec s;
  ut_spec (&s, SETS ("cluster.gpu=H100-SXM-80GB", "cluster.fabric=roce-400g-clos",
                     "cluster.nodes=2048", "model=llama-3.1-405b", "software=megatron-core-2024",
                     "train.sequence_tokens=8192", "train.global_batch_sequences=2048",
                     "train.precision=bf16", "train.recompute=none", "parallel.pp=16",
                     "parallel.vpp=8", "parallel.zero_stage=1"));
  Prediction p = run (&s);
  g_assert_cmpuint (p.n_stages, ==, 128);
  g_assert_cmpint (p.stage_layers[0], ==, 0);
  g_assert_cmpint (p.stage_layers[127], ==, 0);
  g_assert_cmpint (p.rank_layers[0], ==, 7);
  g_assert_cmpint (p.rank_layers[7], ==, 8);
  g_assert_cmpfloat (p.mfu, >, 0.2);
  g_assert_cmpfloat (p.mfu, <, 0.7);
  prediction_clear (&p);
  spec_clear (&s);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/predict/shipped", test_shipped);
  g_test_add_func ("/predict/mfu", test_mfu);
  g_test_add_func ("/predict/rates", test_rates);
  g_test_add_func ("/predict/cost", test_cost);
  g_test_add_func ("/predict/batch", test_batch);
  g_test_add_func ("/predict/cache", test_cache);
  g_test_add_func ("/predict/schedules", test_schedules);
  g_test_add_func ("/predict/wrong-table", test_wrong_table);
  g_test_add_func ("/predict/errors", test_errors);
  g_test_add_func ("/predict/slots", test_slots);
  return g_test_run ();
}
