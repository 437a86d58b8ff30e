/* Jobs whose GPUs are not all alike: closed forms of stalls, folded against unfolded, chance by
 * seed. */
#include <string.h>

#include "predict.h"
#include "rng.h"
#include "scenario.h"
#include "unfold.h"

/* One pipeline stage, four GPUs in data parallel: the slowest sets the pace. */
static double
step (const char *hetero, Prediction *p)
{
  static const char *const base[] = {"cluster.nodes=1",     "cluster.gpus=4",
                                     "parallel={\"tp\":1}", "train.global_batch_sequences=16",
                                     "model.num_layers=4",  NULL};
  g_autoptr (GError) error = NULL;
  g_autofree char *set = hetero != NULL ? g_strconcat ("heterogeneity=", hetero, NULL) : NULL;
  const char *sets[8];
  memcpy (sets, base, sizeof base);
  sets[5] = set;
  sets[6] = NULL;
  Spec s;
  g_assert_true (scenario_load ("llama-3-8b-h100", sets, &s, &error));
  g_assert_no_error (error);
  g_assert_true (predict (&s, NULL, NULL, p, &error));
  g_assert_no_error (error);
  spec_clear (&s);
  prediction_clear (p);
  return p->step_s;
}

static void
test_stall (void)
{
  Prediction p;
  double healthy = step (NULL, &p);
  g_assert_cmpfloat (p.hetero.healthy_s, ==, 0);
  double stalled =
      step ("{\"data_stall\":{\"probability\":1,\"duration_s\":0.25},\"steps\":3}", &p);
  g_assert_cmpfloat_with_epsilon (stalled, healthy + 0.25, 1e-9);
  g_assert_cmpfloat_with_epsilon (p.hetero.healthy_s, healthy, 1e-12);
  g_assert_cmpfloat (p.hetero.min_s, ==, p.hetero.max_s);
  g_assert_cmpuint (p.hetero.steps, ==, 3);
  double sum = 0;
  for (guint i = 0; i < PART_COUNT; i++)
    sum += p.part_s[i];
  g_assert_cmpfloat_with_epsilon (sum, stalled, 1e-9);
}

static void
test_slow (void)
{
  Prediction p, q;
  double healthy = step (NULL, &p);
  double one = step ("{\"slow_gpus\":[{\"gpu\":2,\"factor\":1.5}]}", &p);
  g_assert_true (p.hetero.folded);
  g_assert_cmpuint (p.hetero.simulated, ==, 2);
  double same = step ("{\"slow_gpus\":[{\"gpu\":2,\"factor\":1.5}],\"unfold\":true}", &q);
  g_assert_false (q.hetero.folded);
  g_assert_cmpfloat (one, ==, same);
  g_assert_cmpfloat (one, >, healthy);
  g_assert_cmpfloat (one, <, 1.5 * healthy);
  /* a whole node is as slow as its slowest, and a fast one waits */
  g_assert_cmpfloat (step ("{\"slow_gpus\":[{\"node\":0,\"factor\":1.5}]}", &p), ==, one);
  g_assert_cmpfloat (step ("{\"slow_gpus\":[{\"gpu\":1,\"factor\":0.5}]}", &p), ==, healthy);
}

static void
test_chance (void)
{
  Prediction p;
  double a = step ("{\"jitter\":0.05}", &p), b = step ("{\"jitter\":0.05}", &p);
  double c = step ("{\"jitter\":0.05,\"steps\":2}", &p);
  g_assert_cmpfloat (a, ==, b);
  g_assert_cmpfloat (a, >, p.hetero.healthy_s);
  g_assert_cmpfloat (p.hetero.min_s, <, p.hetero.max_s);
  g_assert_cmpfloat (c, ==, p.hetero.mean_s);
}

static void
test_second_gpu (void)
{
  Prediction p;
  double healthy = step (NULL, &p);
  double mixed =
      step ("{\"second_gpu\":{\"gpu\":\"A100-SXM-80GB\",\"first_node\":0,\"nodes\":1}}", &p);
  g_assert_cmpfloat (mixed, >, 1.8 * healthy);
  gint64 large = p.memory.capacity_bytes; /* 80 GB both */
  step ("{\"second_gpu\":{\"gpu\":\"A100-SXM-40GB\",\"first_node\":0,\"nodes\":1}}", &p);
  g_assert_cmpint (p.memory.capacity_bytes, <, large);
}

/* Speeds that GPUs keep: the slowest of four in data parallelism sets the pace. */
static void
test_spread (void)
{
  Prediction p;
  double all = step ("{\"stragglers\":{\"share\":1,\"factor\":1.5}}", &p);
  g_assert_true (p.hetero.folded);
  g_assert_cmpfloat (all, ==, step ("{\"slow_gpus\":[{\"node\":0,\"factor\":1.5}]}", &p));
  SimRng rng = sim_rng_stream (1, 0, "spread of speeds", 0);
  double most = 0;
  for (int i = 0; i < 4; i++) {
    double factor = sim_rng_lognormal (&rng, 0, 0.1);
    most = MAX (most, factor);
  }
  g_autofree char *slow = g_strdup_printf ("{\"slow_gpus\":[{\"gpu\":2,\"factor\":%.17g}]}", most);
  g_assert_cmpfloat_with_epsilon (step ("{\"spread\":0.1}", &p), step (slow, &p), 1e-9);
}

/* What each cause explains: stalls of all ranks, one slow GPU, both. */
static void
test_what_if (void)
{
  Prediction p, q;
  double healthy = step (NULL, &p);
  double slow = step ("{\"slow_gpus\":[{\"gpu\":2,\"factor\":1.5}]}", &p);
  step ("{\"slow_gpus\":[{\"gpu\":2,\"factor\":1.5}],"
        "\"data_stall\":{\"probability\":1,\"duration_s\":0.25},\"what_if\":true}",
        &q);
  g_assert_cmpfloat_with_epsilon (q.hetero.mean_s, slow + 0.25, 1e-9);
  g_assert_cmpfloat_with_epsilon (q.hetero.without_s[CAUSE_STALL], slow, 1e-9);
  g_assert_cmpfloat_with_epsilon (q.hetero.without_s[CAUSE_SLOW], healthy + 0.25, 1e-9);
  g_assert_cmpfloat_with_epsilon (q.hetero.without_s[CAUSE_SLOWEST], healthy + 0.25, 1e-9);
  g_assert_cmpfloat (q.hetero.without_s[CAUSE_JITTER], ==, 0);
  step ("{\"jitter\":0.05,\"what_if\":true}", &q);
  g_assert_cmpfloat_with_epsilon (q.hetero.without_s[CAUSE_JITTER], healthy, 1e-12);
}

/* Fed from both ends, stages i and pp-1-i hold the same parameters twice: their ranks reduce
 * together, so a slow GPU holds up the far end of its pipeline too. */
static void
test_mirrored (void)
{
  static const char *const sets[] = {"cluster.nodes=1",
                                     "parallel={\"pp\":4,\"schedule\":\"dualpipe\"}",
                                     "train.global_batch_sequences=32", "model.num_layers=8", NULL};
  g_autoptr (GError) error = NULL;
  Spec s;
  StageLayers sl = {0};
  g_assert_true (scenario_load ("llama-3-8b-h100", sets, &s, &error));
  g_assert_true (stage_layers_init (&sl, &s, &error));
  g_autoptr (SchedTable) t =
      sched_generate ("dualpipe", 4, 1, (guint)spec_microbatches (&s), &error);
  g_autoptr (ProgramSet) all = unfold_programs (compile_step (&s, t, &sl, NULL, &error), &s, NULL);
  g_assert_no_error (error);
  for (guint r = 0; r < 8; r++) { /* dp 2, innermost; stages outermost */
    guint32 g = all->groups[r * COMPILE_N_SLOTS + COMPILE_SLOT_DP];
    guint far = (3 - r / 2) * 2;
    g_assert_cmpuint (all->group_size[g], ==, 4);
    g_assert_cmpuint (all->groups[far * COMPILE_N_SLOTS + COMPILE_SLOT_DP], ==, g);
    g_assert_cmpuint (all->groups[(far + 1) * COMPILE_N_SLOTS + COMPILE_SLOT_DP], ==, g);
  }
  stage_layers_clear (&sl);
  spec_clear (&s);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/hetero/stall", test_stall);
  g_test_add_func ("/hetero/slow", test_slow);
  g_test_add_func ("/hetero/chance", test_chance);
  g_test_add_func ("/hetero/second-gpu", test_second_gpu);
  g_test_add_func ("/hetero/spread", test_spread);
  g_test_add_func ("/hetero/what-if", test_what_if);
  g_test_add_func ("/hetero/mirrored", test_mirrored);
  return g_test_run ();
}
