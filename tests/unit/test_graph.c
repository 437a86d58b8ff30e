/* Models of operators: expressions of sizes, what is refused, exact FLOPs, the kernels' closed
 * forms, memory, tensor parallelism and the input pipeline. Parameter counts are in
 * test_read_model.c. */
#include <math.h>
#include <string.h>

#include "gpu_profile.h"
#include "layer_cost.h"
#include "memory.h"
#include "predict.h"
#include "read_graph.h"
#include "scenario.h"

static void
load (const char *name, const char *const *sets, Spec *s)
{
  g_autoptr (GError) error = NULL;
  gboolean ok = scenario_load (name, sets, s, &error);
  g_assert_no_error (error);
  g_assert_true (ok);
}

static void
test_expressions (void)
{
  static const NamedSize sizes[] = {{"hidden", 768}, {"heads", 12}, {"h", 5}};
  static const struct {
    const char *text;
    gint64 value; /* -1: refused */
  } cases[] = {{"hidden", 768},
               {"4*hidden", 3072},
               {"hidden/heads", 64},
               {"2+3*h-1", 16},
               {"(2 + 3) * h", 25},
               {"7/2", 3},
               {"hidden*heads/(h-5)", -1},
               {"width", -1},
               {"hidden hidden", -1},
               {"(hidden", -1},
               {"", -1},
               {"h-6", -1},
               {"99999999999", -1},
               {"2147483647*2147483647*2147483647", -1},
               {"2147483647*2", -1}};
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gint64 v = 0;
    const char *why = NULL;
    gboolean ok = size_expression (cases[i].text, sizes, G_N_ELEMENTS (sizes), &v, &why);
    g_test_message ("%s: %s", cases[i].text, ok ? "read" : why);
    g_assert_cmpint (ok, ==, cases[i].value >= 0);
    g_assert_cmpint (why == NULL, ==, ok);
    if (ok)
      g_assert_cmpint (v, ==, cases[i].value);
  }
}

#define MODEL(sizes, ops, layers)                                                                  \
  "{ \"sizes\": {" sizes "}, \"hidden\": 8, \"input\": { \"ops\": [] }, \"blocks\": { \"a\": { "   \
  "\"ops\": [" ops "] } }, " layers ", \"output\": { \"ops\": [] } }"
#define LINEAR "{ \"op\": \"linear\", \"in\": 8, \"out\": \"n\", \"bias\": true }"

static void
test_reading (void)
{
  static const struct {
    const char *text, *part; /* of the message; NULL: is read */
  } cases[] = {
      {MODEL ("\"n\": 3", LINEAR, "\"pattern\": \"aa\""), NULL},
      {MODEL ("\"n\": 3, \"m\": \"n+1\"", LINEAR,
              "\"layers\": [{ \"block\": \"a\", \"repeat\": \"m\" }]"),
       NULL},
      {MODEL ("\"m\": 3", LINEAR, "\"pattern\": \"a\""), "there is no such size"},
      {MODEL ("\"n\": 3", LINEAR, "\"pattern\": \"ab\""), "no block is named \"b\""},
      {MODEL ("\"n\": 3", LINEAR, "\"layers\": []"), "num_layers is out of range"},
      {MODEL ("\"n\": 3", "{ \"op\": \"linear\", \"in\": 8 }", "\"pattern\": \"a\""),
       "must be positive"},
      {MODEL ("\"n\": 3", "{ \"op\": \"linaer\", \"in\": 8 }", "\"pattern\": \"a\""), "linear"},
      {MODEL ("\"n\": 3", "{ \"op\": \"linear\", \"inn\": 8 }", "\"pattern\": \"a\""), "inn"},
      {MODEL ("\"n\": 3",
              "{ \"op\": \"attention\", \"heads\": 3, \"kv_heads\": 2, \"head_dim\": 4 }",
              "\"pattern\": \"a\""),
       "kv_heads must divide heads"},
      {MODEL ("\"n\": 3", "{ \"op\": \"conv\", \"in\": 3, \"out\": 8, \"kernel\": 3 }",
              "\"pattern\": \"a\""),
       "size, kernel and stride"},
      {MODEL (
           "\"n\": 3",
           "{ \"op\": \"conv\", \"in\": 3, \"out\": 8, \"kernel\": 3, \"size\": 4, \"groups\": 2 }",
           "\"pattern\": \"a\""),
       "groups must divide"},
      {MODEL ("\"n\": 3", "{ \"op\": \"add\", \"width\": 8, \"rows_per_token\": 0 }",
              "\"pattern\": \"a\""),
       "rows"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (JsonDoc) doc =
        json_doc_parse ("case", cases[i].text, strlen (cases[i].text), &error);
    g_assert_no_error (error);
    JsonRef root = json_root (doc);
    ModelSpec m;
    model_init (&m);
    g_assert_true (is_graph_model (&root));
    gboolean ok = read_graph_model (&root, &m, &error);
    if (!ok)
      g_test_message ("%u: %s", i, error->message);
    g_assert_cmpint (ok, ==, cases[i].part == NULL);
    if (ok && m.num_layers == 2) /* 2 layers of 8 x 3 + 3 */
      g_assert_cmpint (model_params_total (&m), ==, 54);
    if (ok && m.num_layers == 4)
      g_assert_cmpfloat (model_flops_forward (&m, 10, TRUE), ==, 4 * 2.0 * 10 * 8 * 3);
    if (!ok)
      g_assert_nonnull (strstr (error->message, cases[i].part));
    model_clear (&m);
  }
}

static double
flops (const char *model, const char *seq)
{
  g_autofree char *name = g_strdup_printf ("model=%s", model);
  g_autofree char *tokens = g_strdup_printf ("train.sequence_tokens=%s", seq);
  const char *const sets[] = {name, tokens, NULL};
  Spec s;
  load ("bert-large-dgx-a100", sets, &s);
  double f = model_flops_forward (&s.model, s.train.sequence_tokens, TRUE);
  spec_clear (&s);
  return f;
}

static void
test_flops (void)
{
  /* multiply-adds that torchvision prints: 4.089, 7.801 and 11.514 x 10^9 */
  g_assert_cmpfloat (flops ("resnet-50", "1"), ==, 2 * 4089184256.0);
  g_assert_cmpfloat_with_epsilon (flops ("resnet-101", "1"), 2 * 7.801e9, 2e6);
  g_assert_cmpfloat_with_epsilon (flops ("resnet-152", "1"), 2 * 11.514e9, 2e6);
  /* 197 rows: 12 h h of maps and 2 s h of scores and values a layer; patches; classes */
  double h = 768, s = 197;
  g_assert_cmpfloat (flops ("vit-b-16", "1"), ==,
                     2 * (s * h * h + 12 * s * (12 * h * h + 2 * s * h) + h * 1000));
  /* 20 of 128 positions are predicted: a map, and the vocabulary; pooler and two classes */
  s = 128;
  g_assert_cmpfloat (
      flops ("bert-base", "128"), ==,
      2 * (12 * s * (12 * h * h + 2 * s * h) + 20 * (h * h + h * 30522) + h * h + h * 2));
  /* encoder 512, decoder 128: 4 h h attention and 2 h f MLP; cross attention has q and o of the
   * decoder, k and v of the encoder; causal half of 128 x 128 */
  double e = 512, d = 128, f = 3072;
  double maps = e * (4 * h * h + 2 * h * f) + d * (6 * h * h + 2 * h * f) + e * 2 * h * h;
  double pairs = 2 * h * (e * e + d * d / 2 + d * e);
  g_assert_cmpfloat (flops ("t5-base", "512"), ==, 2 * (12 * (maps + pairs) + d * h * 32128));
}

/* A convolution of 1 x 1 is a matrix product: same time when its traffic is that of the operands,
 * and its memory bound when there is more. */
static void
test_implicit_gemm (void)
{
  Spec s;
  load ("resnet-50-dgx1", NULL, &s);
  GemmShape g = {.m = 100352, .n = 256, .k = 64, .batch = 1, .dtype = DT_FP16};
  double plain = gpu_gemm_s (s.gpu, &g, 1.0);
  g.bytes = 2.0 * (100352.0 * 64 + 64.0 * 256 + 100352.0 * 256);
  g_assert_cmpfloat (gpu_gemm_s (s.gpu, &g, 1.0), ==, plain);
  g.bytes *= 1000; /* floor + (compute^4 + memory^4)^(1/4) */
  const GemmParams *p = &s.gpu->gemm_used[DT_FP16];
  double memory = g.bytes / (p->memory_fraction * s.gpu->hbm_Bps);
  g_assert_cmpfloat_with_epsilon (gpu_gemm_s (s.gpu, &g, 1.0), p->floor_s + memory, 1e-6 * memory);
  spec_clear (&s);
}

/* Korthikanti et al. 2022, section 4.1: s b h (34 + 5 a s / h) bytes a layer, in 16 bits with
 * dropout and unfused attention. */
static void
test_memory (void)
{
  Spec s;
  load ("bert-large-dgx-a100", NULL, &s);
  s.train.sequence_fill = 0;
  double sbh = 512.0 * 32 * 1024;
  g_assert_cmpfloat_with_epsilon (model_activation_bytes_layer (&s, 3, RECOMPUTE_NONE),
                                  sbh * (34 + 5.0 * 16 * 512 / 1024), 1);
  g_assert_cmpfloat (model_activation_bytes_layer (&s, 3, RECOMPUTE_FULL), ==, 2 * sbh);
  spec_clear (&s);
}

/* tp 8 of Nemotron-H 8B: matrices, scan and table are divided; norms over the hidden size are not,
 * the gated one is divided with its channels. */
static void
test_tensor_parallel (void)
{
  static const char *const sets[] = {"model=nemotron-h-8b",
                                     "parallel.tp=8",
                                     "parallel.sequence_parallel=true",
                                     "train.global_batch_sequences=32",
                                     "train.micro_batch_sequences=1",
                                     "train.precision=bf16",
                                     "software=megatron-core-2024",
                                     "train.sequence_fill=1",
                                     NULL};
  Spec s;
  load ("bert-large-dgx-a100", sets, &s);
  gint64 all = model_params_total (&s.model), rank = graph_params (s.model.graph, 8);
  gint64 norms = 53 * G_GINT64_CONSTANT (4096), gated = 24 * G_GINT64_CONSTANT (8192);
  g_assert_cmpint (8 * (rank - norms - gated) + norms + gated, ==, all);
  PassCost forward, backward, input, weight;
  Pricing p;
  pricing_init (&p, &s);
  for (gint64 layer = 0; layer < 9; layer++) {
    layer_pass_cost (&p, layer, LP_FORWARD, &forward);
    layer_pass_cost (&p, layer, LP_BACKWARD, &backward);
    layer_pass_cost (&p, layer, LP_INPUT_GRAD, &input);
    layer_pass_cost (&p, layer, LP_WEIGHT_GRAD, &weight);
    g_assert_cmpint (forward.part[PART_TP_COMM], >, 0);
    g_assert_cmpint (backward.total, >, forward.total);
    g_assert_cmpint (input.total, >, 0);
    g_assert_cmpint (weight.total, >, 0);
    g_assert_cmpint (input.part[PART_COMPUTE] + weight.part[PART_COMPUTE], >=,
                     backward.part[PART_COMPUTE] * 9 / 10);
  }
  spec_clear (&s);
  static const char *const wrong[] = {"model=bert-large", "parallel.tp=3", "cluster.gpus=3", NULL};
  g_autoptr (GError) error = NULL;
  g_assert_false (scenario_load ("bert-large-dgx-a100", wrong, &s, &error));
  g_assert_nonnull (strstr (error->message, "not divisible by tp 3"));
}

/* A step is as long as the slower of kernels and input pipeline: 1536 samples on 8 GPUs of a node
 * at 1 ms each are 1.536 s. */
static void
test_input_pipeline (void)
{
  static const char *const slow[] = {"software.data_node_sample_us.value=1000", NULL};
  Spec s;
  Prediction fast, held;
  g_autoptr (GError) error = NULL;
  load ("resnet-50-dgx1", NULL, &s);
  g_assert_true (predict (&s, NULL, NULL, &fast, &error));
  spec_clear (&s);
  load ("resnet-50-dgx1", slow, &s);
  g_assert_true (predict (&s, NULL, NULL, &held, &error));
  spec_clear (&s);
  g_assert_cmpfloat (fast.part_s[PART_DATA], ==, 0);
  g_assert_cmpfloat (fast.step_s, <, 0.3);
  g_assert_cmpfloat_with_epsilon (held.step_s, 1.536, 1e-9);
  g_assert_cmpfloat_with_epsilon (held.part_s[PART_DATA], 1.536 - fast.step_s, 1e-9);
  prediction_clear (&fast);
  prediction_clear (&held);
}

/* Gradients held to a rate of 1 GB/s: a ring of 8 moves 2 x 7/8 of 2 bytes for each of 25,557,032
 * parameters past every rank; and the fixed time of a step with several ranks. */
static void
test_slow_transport (void)
{
  static const char *const sets[] = {
      "software.dp_overlap_grad=false",
      "software.dp_rate_max_Bps={\"value\":1e9,\"kind\":\"assumed\",\"source\":\"a test\"}",
      "software.dp_step_us.value=1000", NULL};
  Spec s;
  Prediction p;
  g_autoptr (GError) error = NULL;
  load ("resnet-50-dgx1", sets, &s);
  g_assert_true (predict (&s, NULL, NULL, &p, &error));
  g_assert_cmpfloat_with_epsilon (p.part_s[PART_DP_COMM], 1.75 * 2 * 25557032 / 1e9 + 1e-3, 1e-6);
  prediction_clear (&p);
  spec_clear (&s);
}

/* Images of a node do not see a sequence length; sequences need one. */
static void
test_sample_tokens (void)
{
  static const char *const sets[] = {"model=bert-base", NULL};
  Spec s;
  g_autoptr (GError) error = NULL;
  load ("resnet-50-dgx1", NULL, &s);
  g_assert_cmpint (s.train.sequence_tokens, ==, 1);
  spec_clear (&s);
  g_assert_false (scenario_load ("resnet-50-dgx1", sets, &s, &error));
  g_assert_nonnull (strstr (error->message, "sequence_tokens"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/graph/expressions", test_expressions);
  g_test_add_func ("/graph/reading", test_reading);
  g_test_add_func ("/graph/flops", test_flops);
  g_test_add_func ("/graph/implicit-gemm", test_implicit_gemm);
  g_test_add_func ("/graph/memory", test_memory);
  g_test_add_func ("/graph/tensor-parallel", test_tensor_parallel);
  g_test_add_func ("/graph/input-pipeline", test_input_pipeline);
  g_test_add_func ("/graph/slow-transport", test_slow_transport);
  g_test_add_func ("/graph/sample-tokens", test_sample_tokens);
  return g_test_run ();
}
