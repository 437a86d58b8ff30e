/* Layout strings and rank orders: what they mean, and what is wrong with the others. */
#include "layout.h"

#include <string.h>

#include "layer_cost.h"
#include "rank_order.h"
#include "scenario.h"

static void
check (const char *text, guint stages, const gint64 *layers, gint64 mtp)
{
  g_autoptr (GError) error = NULL;
  Layout l;
  g_assert_true (layout_parse (text, &l, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (l.n_stages, ==, stages);
  gint64 sum = 0;
  for (guint i = 0; i < stages; i++) {
    g_assert_cmpint (l.layers[i], ==, layers[i]);
    sum += layers[i];
  }
  g_assert_cmpint (l.total_layers, ==, sum);
  g_assert_cmpint (l.total_mtp, ==, mtp);
  layout_clear (&l);
}

static void
test_meaning (void)
{
  check ("EtL", 1, (const gint64[]){1}, 0);
  check ("Et*2|(tt|)*3tmL", 5, (const gint64[]){2, 2, 2, 2, 1}, 1);
  check ("E t*3 | , (t t |)*2 L", 4, (const gint64[]){3, 2, 2, 0}, 0);
  check ("E|t|t|L", 4, (const gint64[]){0, 1, 1, 0}, 0);
  /* DeepSeek-V3 as Megatron's recipes cut it: 61 layers on 32 stages */
  g_autofree gint64 *v3 = g_new (gint64, 32);
  for (guint i = 0; i < 32; i++)
    v3[i] = i == 0 ? 1 : i == 31 ? 0 : 2;
  check ("Et|(tt|)*30mL", 32, v3, 1);
}

static void
refused (const char *text, const char *words)
{
  g_autoptr (GError) error = NULL;
  Layout l;
  g_assert_false (layout_parse (text, &l, &error));
  if (strstr (error->message, words) == NULL)
    g_test_message ("%s: %s", text, error->message);
  g_assert_nonnull (strstr (error->message, words));
}

static void
test_refusals (void)
{
  refused ("", "one E");
  refused ("ttL", "one E");
  refused ("Et|EtL", "one E");
  refused ("tEL", "must start with the embedding");
  refused ("Ett", "one L");
  refused ("EtL|t", "must end with the loss");
  refused ("Ex", "column 2: 'x'");
  refused ("E(tt|*3L", "column 2: '(' is never closed");
  refused ("E((t)*2)*2L", "column 3: a group inside a group");
  refused ("Et*L", "column 4: a number must follow");
  refused ("Et*0L", "repeated 0 times");
  refused ("Et*99999999999999999999L", "repeated too often");
  refused ("E(t*50000)*50000L", "longer than 100000 letters");
  refused ("EtmtL", "after a prediction module");
}

static void
load_fails (const char *const *sets, const char *words)
{
  g_autoptr (GError) error = NULL;
  Spec s;
  g_assert_false (scenario_load ("gpt3-175b-a100", sets, &s, &error));
  if (strstr (error->message, words) == NULL)
    g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, words));
}

/* In a scenario: 96 layers, pp 8. vpp follows from the layout. */
static void
test_scenario (void)
{
  g_autoptr (GError) error = NULL;
  Spec s;
  const char *const sets[] = {"parallel={\"tp\":8,\"pp\":8,\"layout\":\"Et*5|(t*6|)*14t*7L\"}",
                              NULL};
  g_assert_true (scenario_load ("gpt3-175b-a100", sets, &s, &error));
  g_assert_no_error (error);
  g_assert_cmpint (s.parallel.vpp, ==, 2);
  g_assert_cmpstr (s.parallel.schedule, ==, "interleaved");
  spec_clear (&s);
  const char *const few[] = {"parallel={\"tp\":8,\"pp\":8,\"layout\":\"Et*5|(t*6|)*14t*6L\"}",
                             NULL};
  load_fails (few, "the layout has 95 layers (t), the model 96");
  const char *const stages[] = {
      "parallel={\"tp\":8,\"pp\":8,\"vpp\":4,\"layout\":\"Et*5|(t*6|)*14t*7L\"}", NULL};
  load_fails (stages, "the layout has 16 stages, pp 8 x vpp 4 = 32");
  const char *const order[] = {"parallel={\"tp\":8,\"pp\":8,\"order\":\"tp-cp-dp\"}", NULL};
  load_fails (order, "a dimension is missing");
}

static void
check_strides (const char *order, gint64 tp, gint64 cp, gint64 dp, gint64 pp)
{
  const gint64 size[DIM_COUNT] = {2, 3, 5, 7};
  gint64 stride[DIM_COUNT];
  rank_order_strides (order, size, stride);
  g_assert_cmpint (stride[DIM_TP], ==, tp);
  g_assert_cmpint (stride[DIM_CP], ==, cp);
  g_assert_cmpint (stride[DIM_DP], ==, dp);
  g_assert_cmpint (stride[DIM_PP], ==, pp);
}

static void
test_strides (void)
{
  check_strides (NULL, 1, 2, 6, 30);
  check_strides ("tp-cp-pp-dp", 1, 2, 42, 6);
  check_strides ("pp-dp-ep-cp-tp", 105, 35, 7, 1);
  RankDim dims[DIM_COUNT];
  g_assert_false (rank_order_parse ("tp-tp-cp-dp-pp", dims, NULL));
  g_assert_false (rank_order_parse ("tp-cp-dp-pp-xp", dims, NULL));
  g_assert_false (rank_order_parse ("", dims, NULL));
}

static RankGroups
groups_of (const char *order)
{
  static const char *const base[] = {"cluster.nodes=4", "parallel.tp=2", "parallel.cp=1",
                                     "parallel.pp=4", NULL};
  Spec s;
  g_autoptr (GError) error = NULL;
  g_autofree char *set = g_strdup_printf ("parallel.order=\"%s\"", order);
  const char *sets[6];
  memcpy (sets, base, sizeof base);
  sets[4] = set;
  sets[5] = NULL;
  RankGroups g;
  g_assert_true (scenario_load ("llama-3-8b-h100", sets, &s, &error));
  g_assert_no_error (error);
  rank_groups (&s, &g);
  spec_clear (&s);
  return g;
}

/* tp 2, dp 4, pp 4 on 4 nodes of 8: which groups stay in a node. */
static void
test_groups (void)
{
  RankGroups a = groups_of ("tp-cp-dp-pp"), b = groups_of ("tp-cp-pp-dp"),
             c = groups_of ("dp-cp-pp-tp");
  g_assert_cmpint (a.tp.nodes, ==, 1);
  g_assert_cmpint (a.dp.nodes, ==, 1); /* 2 x 4 = 8 GPUs: one node a stage */
  g_assert_false (a.pp_same_node);
  g_assert_cmpint (a.pp_members, ==, 8);
  g_assert_cmpint (b.tp.nodes, ==, 1);
  g_assert_true (b.pp_same_node); /* a whole pipeline in a node, gradients across */
  g_assert_cmpint (b.dp.nodes, ==, 4);
  g_assert_cmpint (b.dp.sharers, ==, 8);
  g_assert_cmpint (c.tp.nodes, ==, 2); /* 16 ranks apart */
  g_assert_cmpint (c.dp.nodes, ==, 1);
  g_assert_cmpint (c.dp.ranks, ==, 4);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/layout/meaning", test_meaning);
  g_test_add_func ("/layout/refusals", test_refusals);
  g_test_add_func ("/layout/scenario", test_scenario);
  g_test_add_func ("/order/strides", test_strides);
  g_test_add_func ("/order/groups", test_groups);
  return g_test_run ();
}
