/* The search of layouts: the bound is safe, what it says is best is best of all. */
#include "plan.h"

#include <string.h>

#include "scenario.h"

static void
load (Spec *s)
{
  static const char *const sets[] = {"cluster.nodes=2", "train.global_batch_sequences=64",
                                     "train.sequence_tokens=4096", "parallel={\"tp\":2,\"pp\":2}",
                                     NULL};
  g_autoptr (GError) error = NULL;
  g_assert_true (scenario_load ("llama-3-8b-h100", sets, s, &error));
  g_assert_no_error (error);
}

/* top so large that nothing is pruned: every legal layout is predicted. */
static void
test_bound (void)
{
  Spec s;
  PlanResult all, few;
  g_autoptr (GError) error = NULL;
  PlanOptions o = {.top = 100000};
  load (&s);
  g_assert_true (plan_run (&s, &o, &all, &error));
  g_assert_no_error (error);
  g_assert_true (all.complete);
  g_assert_cmpuint (all.pruned, ==, 0);
  g_assert_cmpuint (all.points->len, ==, all.predicted);
  g_assert_cmpuint (all.predicted, >, 50);
  g_assert_cmpuint (all.n_unfit, >, 0);
  for (guint i = 0; i < all.points->len; i++) {
    const PlanPoint *p = &g_array_index (all.points, PlanPoint, i);
    g_assert_cmpfloat (p->bound_s, <=, p->step_s);
    g_assert_true (p->fits);
    g_assert_true (i == 0 || p[-1].step_s <= p->step_s);
  }
  g_assert_true (g_array_index (all.points, PlanPoint, 0).pareto);
  for (guint i = 0; i < all.unfit->len; i++)
    g_assert_cmpint (g_array_index (all.unfit, PlanPoint, i).peak_bytes, >,
                     (gint64)gpu_capacity_bytes (s.gpu));
  o.top = 3; /* pruned: the same best three */
  g_assert_true (plan_run (&s, &o, &few, &error));
  for (guint i = 0; i < 3; i++)
    g_assert_cmpfloat (g_array_index (few.points, PlanPoint, i).step_s, ==,
                       g_array_index (all.points, PlanPoint, i).step_s);
  g_assert_cmpfloat (few.own.step_s, >=, g_array_index (few.points, PlanPoint, 0).step_s);
  plan_clear (&all);
  plan_clear (&few);
  spec_clear (&s);
}

static void
test_memory_order (void)
{
  Spec s;
  PlanResult r;
  PlanOptions o = {.top = 1, .order = PLAN_BY_MEMORY};
  load (&s);
  g_assert_true (plan_run (&s, &o, &r, NULL));
  for (guint i = 1; i < r.points->len; i++)
    g_assert_cmpint (g_array_index (r.points, PlanPoint, i - 1).peak_bytes, <=,
                     g_array_index (r.points, PlanPoint, i).peak_bytes);
  plan_clear (&r);
  spec_clear (&s);
}

/* Stopped at once: whole, and says that it is not the end. */
static void
test_deadline (void)
{
  Spec s;
  PlanResult r;
  PlanOptions o = {.top = 1, .deadline = 1};
  load (&s);
  g_assert_true (plan_run (&s, &o, &r, NULL));
  g_assert_false (r.complete);
  plan_clear (&r);
  spec_clear (&s);
}

static void
test_impossible (void)
{
  g_autoptr (GError) error = NULL;
  Spec s;
  const char *const product[] = {"cluster.nodes=256", "parallel={\"tp\":8,\"pp\":64,\"dp\":16}",
                                 "train.global_batch_sequences=1536", NULL};
  g_assert_false (scenario_load ("gpt3-175b-h100", product, &s, &error));
  g_assert_nonnull (strstr (error->message,
                            "8-way tensor, 1-way context, 64-way pipeline and 16-way data parallel "
                            "multiply to 8192 GPUs, the cluster has 2048"));
  g_assert_nonnull (strstr (error->message, "tp 8 x cp 1 x pp 64 x dp 4"));
  g_assert_nonnull (strstr (error->message, "tp 8 x cp 1 x pp 16 x dp 16"));
  g_clear_error (&error);
  /* too large for one node, whatever the layout */
  const char *const large[] = {"model=llama-3.1-405b", "cluster.nodes=1", "parallel={\"tp\":8}",
                               NULL};
  PlanResult r;
  PlanOptions o = {.top = 1};
  g_assert_true (scenario_load ("gpt3-175b-h100", large, &s, &error));
  g_assert_false (plan_run (&s, &o, &r, &error));
  g_assert_nonnull (strstr (error->message, "the smallest needs"));
  spec_clear (&s);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/plan/bound", test_bound);
  g_test_add_func ("/plan/memory-order", test_memory_order);
  g_test_add_func ("/plan/deadline", test_deadline);
  g_test_add_func ("/plan/impossible", test_impossible);
  return g_test_run ();
}
