/* The pruned search against the exhaustive one, over random small scenarios: the same best, in the
 * same order and to the bit, and the same edge of time and memory; no bound above the step; the
 * search in parts, put together, is the search of the whole. Seeds are printed. */
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "rng.h"
#include "scenario.h"

#define CASES      40
#define CASES_FULL 600

typedef struct {
  char *text[24];
  guint n;
} Sets;

static void add (Sets *s, const char *format, ...) G_GNUC_PRINTF (2, 3);

static void
add (Sets *s, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  s->text[s->n++] = g_strdup_vprintf (format, args);
  va_end (args);
  s->text[s->n] = NULL;
}

static gint64
pick (SimRng *r, gint64 lo, gint64 hi)
{
  return lo + (gint64)sim_rng_below (r, (guint64)(hi - lo + 1));
}

/* A model of a few layers on a few GPUs, wide enough that memory decides sometimes. */
static gboolean
random_case (SimRng *r, Spec *out)
{
  static const char *const scenarios[] = {"llama-3-8b-h100", "gpt3-175b-a100", "qwen3-235b-h100",
                                          "zero-bubble-70b"};
  static const gint64 widths[] = {1024, 8192, 16384, 24576};
  const char *scenario = scenarios[sim_rng_below (r, G_N_ELEMENTS (scenarios))];
  gboolean moe = strncmp (scenario, "qwen", 4) == 0;
  gint64 heads = (gint64)1 << pick (r, 2, 4), gpus = (gint64)1 << pick (r, 1, 3);
  Sets s = {.n = 0};
  add (&s, "parallel={\"tp\":1}");
  add (&s, "model.num_layers=%" G_GINT64_FORMAT, pick (r, 2, 7));
  if (!moe) {
    gint64 width = widths[sim_rng_below (r, G_N_ELEMENTS (widths))];
    add (&s, "model.hidden=%" G_GINT64_FORMAT, width);
    add (&s, "model.heads=%" G_GINT64_FORMAT, heads);
    add (&s, "model.kv_heads=%" G_GINT64_FORMAT, heads);
    add (&s, "model.head_dim=%" G_GINT64_FORMAT, width / heads);
    add (&s, "model.ffn_hidden=%" G_GINT64_FORMAT, 4 * width);
  } else {
    add (&s, "model.num_experts=%d", (int)(8 << pick (r, 0, 1)));
  }
  add (&s, "cluster.nodes=%" G_GINT64_FORMAT, gpus > 4 ? (gint64)2 : (gint64)1);
  add (&s, "cluster.gpus_per_node=%" G_GINT64_FORMAT, gpus > 4 ? gpus / 2 : gpus);
  add (&s, "train.sequence_tokens=%d", 1024 << pick (r, 0, 1));
  add (&s, "train.global_batch_sequences=%" G_GINT64_FORMAT, gpus * pick (r, 1, 3));
  g_autoptr (GError) error = NULL;
  gboolean ok = scenario_load (scenario, (const char *const *)s.text, out, &error);
  if (!ok)
    g_test_message ("no case: %s", error->message);
  for (guint i = 0; i < s.n; i++)
    g_free (s.text[i]);
  return ok;
}

static void
same_answer (const PlanResult *all, const PlanResult *few, guint top)
{
  guint n = MIN (top, all->points->len), edge_all = 0, edge_few = 0;
  g_assert_cmpuint (few->points->len, >=, n);
  for (guint i = 0; i < n; i++) {
    const PlanPoint *a = &g_array_index (all->points, PlanPoint, i);
    const PlanPoint *b = &g_array_index (few->points, PlanPoint, i);
    g_assert_cmpuint (a->index, ==, b->index);
    g_assert_true (a->step_s == b->step_s && a->peak_bytes == b->peak_bytes);
  }
  for (guint i = 0; i < all->points->len; i++) {
    const PlanPoint *a = &g_array_index (all->points, PlanPoint, i);
    g_assert_cmpfloat (a->bound_s, <=, a->step_s);
    edge_all += a->pareto ? 1 : 0;
  }
  for (guint i = 0; i < few->points->len; i++) {
    const PlanPoint *b = &g_array_index (few->points, PlanPoint, i);
    edge_few += b->pareto ? 1 : 0;
    if (b->pareto)
      g_assert_true (g_array_index (all->all, PlanPoint, b->index).pareto);
  }
  g_assert_cmpuint (edge_all, ==, edge_few);
}

/* The search in three parts; what they predicted, as earlier predictions of the whole. */
typedef struct {
  PlanResult part[3];
} Parts;

static gboolean
known (gpointer data, PlanPoint *p)
{
  const PlanResult *r = &((const Parts *)data)->part[p->index % 3];
  const PlanPoint *q = &g_array_index (r->all, PlanPoint, p->index / 3);
  g_assert_cmpuint (q->index, ==, p->index);
  if (q->step_s <= 0)
    return FALSE;
  *p = *q;
  p->state = PLAN_UNSEEN;
  p->pareto = FALSE;
  return TRUE;
}

static void
same_in_parts (const Spec *s, const PlanOptions *opt, const PlanResult *whole)
{
  Parts parts;
  PlanResult merged;
  PlanOptions o = *opt;
  o.step = 3;
  for (o.first = 0; o.first < 3; o.first++)
    g_assert_true (plan_run (s, &o, &parts.part[o.first], NULL));
  o = *opt;
  o.known = known;
  o.known_only = TRUE;
  o.data = &parts;
  g_assert_true (plan_run (s, &o, &merged, NULL));
  g_assert_cmpuint (merged.missing, ==, 0);
  g_assert_cmpuint (merged.made, ==, 0);
  g_assert_cmpuint (merged.points->len, ==, whole->points->len);
  g_assert_cmpuint (merged.pruned, ==, whole->pruned);
  g_assert_cmpuint (merged.n_unfit, ==, whole->n_unfit);
  for (guint i = 0; i < MIN (merged.points->len, whole->points->len); i++) {
    const PlanPoint *a = &g_array_index (merged.points, PlanPoint, i);
    const PlanPoint *b = &g_array_index (whole->points, PlanPoint, i);
    g_assert_true (a->index == b->index && a->step_s == b->step_s && a->pareto == b->pareto);
  }
  for (guint i = 0; i < 3; i++)
    plan_clear (&parts.part[i]);
  plan_clear (&merged);
}

static void
test_search (void)
{
  guint n = g_getenv ("CLUSTERSIM_TEST_FULL") != NULL ? CASES_FULL : CASES, done = 0, tight = 0;
  guint64 listed = 0, predicted = 0;
  for (guint seed = 1; seed <= n; seed++) {
    SimRng r = sim_rng_stream (seed, 0, "prop.plan", 0);
    Spec s;
    PlanResult all, few;
    if (!random_case (&r, &s))
      continue;
    PlanOptions o = {.top = (guint)pick (&r, 1, 6),
                     .order = sim_rng_below (&r, 4) == 0 ? PLAN_BY_MEMORY : PLAN_BY_TIME,
                     .slack = 1 + sim_rng_uniform (&r),
                     .exhaustive = TRUE};
    g_test_message ("seed %u: %s, %" G_GINT64_FORMAT " GPUs, top %u by %s", seed, s.name,
                    s.cluster.gpus, o.top, plan_order_names[o.order]);
    if (plan_run (&s, &o, &all, NULL)) {
      o.exhaustive = FALSE;
      g_assert_true (plan_run (&s, &o, &few, NULL));
      same_answer (&all, &few, o.top);
      same_in_parts (&s, &o, &few);
      done++;
      tight += few.n_unfit > 0;
      listed += all.predicted;
      predicted += few.made;
      plan_clear (&all);
      plan_clear (&few);
    }
    spec_clear (&s);
    if (g_test_failed ())
      break;
  }
  g_test_message ("%u searches, %u with layouts that do not fit: %" G_GUINT64_FORMAT
                  " of %" G_GUINT64_FORMAT " predicted",
                  done, tight, predicted, listed);
  g_assert_cmpuint (done, >, n / 2);
  g_assert_cmpuint (tight, >, 0);
  g_assert_cmpuint (predicted, <, listed / 2);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/plan/pruned-equals-exhaustive", test_search);
  return g_test_run ();
}
