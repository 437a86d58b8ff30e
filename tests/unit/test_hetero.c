/* Jobs whose GPUs are not all alike: closed forms of stalls, folded against unfolded, chance by
 * seed. */
#include <string.h>

#include "predict.h"
#include "scenario.h"

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
  return g_test_run ();
}
