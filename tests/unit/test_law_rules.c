/* Batch sizes, learning rates, and rules of thumb as remarks on scenarios. */
#include "law.h"

#include <math.h>
#include <string.h>

#define assert_near(x, want, rel) assert_near_at (__LINE__, (x), (want), (rel))

static void
assert_near_at (int line, double x, double want, double rel)
{
  if (!(fabs (x - want) <= rel * fabs (want)))
    g_test_message ("line %d: %.10g, wanted %.10g within %g", line, x, want, rel);
  g_assert_true (fabs (x - want) <= rel * fabs (want));
}

/* Kaplan: B* / L^(1 / 0.21): at L = 1 B*, and halving the loss is a factor 2^4.76 = 27.1.
 * McCandlish: at B_crit both factors are 2, and (S/Smin - 1)(E/Emin - 1) = 1 at any batch.
 * Zhang: 22.91 (D/1e6)^ 0.47 sequences of 512: at 3.072e9 tokens 998 sequences. Bergsma at 1e11:
 * 0.0471 x 1e11^0.462. */
static void
test_batch (void)
{
  BatchLaw k;
  batch_law_init (&k);
  k.variable = BATCH_OF_LOSS;
  k.coef = 2.1e8;
  k.exponent = -1 / 0.21;
  assert_near (batch_law_tokens (&k, 1), 2.1e8, 1e-12);
  assert_near (batch_law_tokens (&k, 1.5) / batch_law_tokens (&k, 3), pow (2, 1 / 0.21), 1e-12);
  BatchLaw z = k;
  z.variable = BATCH_OF_TOKENS;
  z.coef = 22.91;
  z.exponent = 0.47;
  z.unit = 1e6;
  z.sequence_tokens = 512;
  z.overhead = 0.2;
  assert_near (batch_law_tokens (&z, 3.072e9) / 512, 998, 1e-3);
  double crit = batch_law_tokens (&z, 3.072e9);
  assert_near (batch_law_overhead (&z, crit, crit), 0.2, 1e-12);
  for (double batch = 1e4; batch < 1e9; batch *= 7)
    assert_near ((law_batch_step_factor (batch, 1e6) - 1) *
                     (law_batch_token_factor (batch, 1e6) - 1),
                 1, 1e-12);
  assert_near (law_batch_step_factor (1e6, 1e6), 2, 1e-12);
  g_assert_cmpfloat (law_batch_replicas (4194304, 1, 8192), ==, 512);
  g_assert_cmpfloat (law_batch_replicas (4194304, 3, 8192), ==, 170);
  g_assert_cmpfloat (law_batch_replicas (10, 1, 8192), ==, 1);
  BatchLaw s = z;
  g_assert_true (isnan (batch_law_lr (&s, 1e9, 1e11, 6e20)));
  s.lr_coef = 1.79;
  s.lr_n = -0.713;
  s.lr_d = 0.307;
  assert_near (batch_law_lr (&s, 1e9, 1e11, 6e20), 1.79 * pow (1e9, -0.713) * pow (1e11, 0.307),
               1e-12);
}

/* Twice the batch: twice, sqrt 2, and for a noise scale far above both again twice, far below
 * unchanged. */
static void
test_learning_rate (void)
{
  assert_near (law_lr_at (LR_LINEAR, 3e-4, 1e6, 2e6, 0), 6e-4, 1e-12);
  assert_near (law_lr_at (LR_SQRT, 3e-4, 1e6, 2e6, 0), 3e-4 * sqrt (2), 1e-12);
  assert_near (law_lr_at (LR_NOISE, 3e-4, 1e6, 2e6, 1e15), 6e-4, 1e-6);
  assert_near (law_lr_at (LR_NOISE, 3e-4, 1e6, 2e6, 1e-3), 3e-4, 1e-6);
}

/* ---- remarks ---- */

static void
scenario (Spec *s)
{
  spec_init (s);
  ModelSpec *m = &s->model;
  m->num_layers = 32;
  m->hidden = 4096;
  m->ffn_hidden = 14336;
  m->heads = 32;
  m->kv_heads = 8;
  m->head_dim = 128;
  m->vocab = 128256;
  m->gated_mlp = TRUE;
  s->software.vocab_pad = 128;
  s->cluster.gpus_per_node = 8;
  s->cluster.nodes = 8;
  s->cluster.gpus = 64;
  s->train.sequence_tokens = 8192;
  s->train.global_batch_sequences = 128;
  s->train.micro_batch_sequences = 1;
  s->parallel = (ParallelSpec){.tp = 4,
                               .cp = 1,
                               .pp = 4,
                               .vpp = 1,
                               .ep = 1,
                               .etp = 1,
                               .dp = 4,
                               .sequence_parallel = TRUE,
                               .schedule = g_strdup ("1f1b")};
}

static const LawRemark *
find (const GPtrArray *remarks, const char *rule)
{
  for (guint i = 0; i < remarks->len; i++) {
    const LawRemark *r = g_ptr_array_index (remarks, i);
    if (strcmp (r->rule, rule) == 0)
      return r;
  }
  return NULL;
}

static void
test_remarks (void)
{
  Spec s;
  scenario (&s);
  double n = (double)model_params_active (&s.model);
  g_autoptr (GPtrArray) none = law_remarks (&s, 20 * n, 1e9, FALSE);
  g_assert_cmpuint (none->len, ==, 0);
  g_autoptr (GPtrArray) all = law_remarks (&s, 20.5 * n, 1e9, TRUE);
  g_assert_cmpuint (all->len, >=, 9);
  for (guint i = 0; i < all->len; i++) {
    const LawRemark *r = g_ptr_array_index (all, i);
    g_assert_cmpint (r->level, ==, REMARK_OK);
    g_assert_cmpuint (strlen (r->source), >, 10);
    g_assert_nonnull (strstr (r->source, "20"));
  }
  s.parallel.tp = 16;
  s.parallel.sequence_parallel = FALSE;
  s.parallel.dp = 1;
  s.train.global_batch_sequences = 8;
  s.model.head_dim = 80;
  s.model.num_layers = 128;
  g_autoptr (GPtrArray) bad = law_remarks (&s, 2e9, 1e4, FALSE);
  static const char *const rules[] = {
      "tokens_per_parameter", "width_per_layer",        "head_size",     "tp_inside_node",
      "sequence_parallel",    "microbatches_per_stage", "critical_batch"};
  for (guint i = 0; i < G_N_ELEMENTS (rules); i++)
    g_assert_nonnull (find (bad, rules[i]));
  g_assert_cmpint (find (bad, "tp_inside_node")->level, ==, REMARK_WARNING);
  /* 8 micro-batches over 4 stages: 2 a stage, bubble 3/8 */
  g_assert_cmpfloat (find (bad, "microbatches_per_stage")->value, ==, 2);
  g_assert_nonnull (strstr (find (bad, "microbatches_per_stage")->text, "37.5 %"));
  spec_clear (&s);
}

static void
test_remarks_moe (void)
{
  Spec s;
  scenario (&s);
  s.model.num_experts = 8;
  s.model.experts_per_token = 4;
  s.model.moe_ffn_hidden = 14336;
  s.model.moe_every = 1;
  s.parallel.ep = 16;
  g_autoptr (GPtrArray) r = law_remarks (&s, 0, 0, FALSE);
  g_assert_cmpfloat (find (r, "experts_per_active_expert")->value, ==, 2);
  g_assert_nonnull (find (r, "expert_granularity"));
  g_assert_nonnull (find (r, "ep_inside_node"));
  g_assert_null (find (r, "mlp_width"));
  spec_clear (&s);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/law-rules/batch", test_batch);
  g_test_add_func ("/law-rules/learning-rate", test_learning_rate);
  g_test_add_func ("/law-rules/remarks", test_remarks);
  g_test_add_func ("/law-rules/remarks-moe", test_remarks_moe);
  return g_test_run ();
}
