/* model: counts and FLOPs against closed forms and published figures. */
#include "model.h"

#include <string.h>

static ModelSpec
gpt (gint64 layers, gint64 hidden, gint64 heads, gint64 vocab, gint64 seq)
{
  ModelSpec m;

  model_init (&m);
  m.num_layers = layers;
  m.hidden = hidden;
  m.ffn_hidden = 4 * hidden;
  m.heads = m.kv_heads = heads;
  m.head_dim = hidden / heads;
  m.vocab = vocab;
  m.pos = POS_LEARNED;
  m.max_positions = seq;
  m.tied_embeddings = m.qkv_bias = m.attn_out_bias = m.mlp_bias = m.norm_bias = TRUE;
  return m;
}

static ModelSpec
llama (gint64 layers, gint64 hidden, gint64 ffn, gint64 heads, gint64 kv_heads, gint64 vocab)
{
  ModelSpec m;

  model_init (&m);
  m.num_layers = layers;
  m.hidden = hidden;
  m.ffn_hidden = ffn;
  m.heads = heads;
  m.kv_heads = kv_heads;
  m.head_dim = hidden / heads;
  m.vocab = vocab;
  m.norm = NORM_RMSNORM;
  m.act = ACT_SILU;
  m.gated_mlp = TRUE;
  return m;
}

static ModelSpec
deepseek_v3 (void)
{
  ModelSpec m = llama (61, 7168, 18432, 128, 128, 129280);

  m.head_dim = 192;
  m.num_experts = 256;
  m.experts_per_token = 8;
  m.moe_ffn_hidden = m.shared_ffn_hidden = 2048;
  m.shared_experts = 1;
  m.dense_first_layers = 3;
  m.router_bias = TRUE;
  m.q_lora_rank = 1536;
  m.kv_lora_rank = 512;
  m.qk_nope_dim = m.v_head_dim = 128;
  m.qk_rope_dim = 64;
  m.mtp_layers = 1;
  return m;
}

/* arXiv 2104.04473, equation 2: P = 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)); it leaves out the
 * final norm, 2 h. */
static void
test_gpt_closed_form (void)
{
  static const gint64 sizes[][3] = {
      {24, 2304, 24}, {96, 12288, 96}, {105, 20480, 128}, {128, 25600, 160}};

  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    const gint64 l = sizes[i][0], h = sizes[i][1], v = 51200, s = 2048;
    const ModelSpec m = gpt (l, h, sizes[i][2], v, s);

    g_assert_true (model_check (&m, NULL));
    g_assert_cmpint (model_params_total (&m), ==,
                     12 * l * h * h + 13 * l * h + (v + s) * h + 2 * h);
    g_assert_cmpint (model_params_active (&m), ==, model_params_total (&m));
  }
}

/* Totals printed by the models' own publishers, see shared facts. */
static void
test_published_totals (void)
{
  ModelSpec m = gpt (12, 768, 12, 50257, 1024);
  g_assert_cmpint (model_params_total (&m), ==, 124439808); /* GPT-2 */
  m = llama (32, 4096, 11008, 32, 32, 32000);
  g_assert_cmpint (model_params_total (&m), ==, 6738415616); /* Llama 2 7B */
  m = llama (32, 4096, 14336, 32, 8, 128256);
  g_assert_cmpint (model_params_total (&m), ==, 8030261248);
  m = llama (80, 8192, 28672, 64, 8, 128256);
  g_assert_cmpint (model_params_total (&m), ==, 70553706496);
  m = llama (126, 16384, 53248, 128, 8, 128256);
  g_assert_cmpint (model_params_total (&m), ==, 405853388800);
  m = llama (28, 3584, 18944, 28, 4, 152064);
  m.qkv_bias = TRUE;
  g_assert_cmpint (model_params_total (&m), ==, 7615616512); /* Qwen2 7B */
  m = deepseek_v3 ();
  g_assert_cmpint (model_params_total (&m), ==, 671026419200);
  g_assert_cmpint (model_params_active (&m), ==, 37552297472);
}

static void
test_layer_patterns (void)
{
  ModelSpec m = deepseek_v3 ();

  g_assert_false (model_layer_is_moe (&m, 2));
  g_assert_true (model_layer_is_moe (&m, 3));
  g_assert_cmpint (model_params_experts (&m, 0), ==, 0);
  g_assert_cmpint (model_params_experts (&m, 3), ==, G_GINT64_CONSTANT (256) * 3 * 7168 * 2048);
  m.dense_first_layers = 0;
  m.moe_every = 2; /* Llama 4 Maverick: layers 1, 3, 5 … */
  g_assert_false (model_layer_is_moe (&m, 0));
  g_assert_true (model_layer_is_moe (&m, 1));
  m.sliding_window = 128;
  m.sliding_period = 2;
  g_assert_cmpint (model_layer_window (&m, 0), ==, 128);
  g_assert_cmpint (model_layer_window (&m, 1), ==, 0);
  m.linear_period = 4; /* Qwen3-Next: every fourth layer is attention */
  g_assert_true (model_layer_is_linear (&m, 2));
  g_assert_false (model_layer_is_linear (&m, 3));
}

/* The forward and backward GFLOP per token that frameworks print (three times the forward ones):
 * full attention in NeMo's tables of 2024, causal in Megatron-Bridge's. */
static void
test_flops_per_token (void)
{
  ModelSpec v3 = deepseek_v3 (), v3_plain = deepseek_v3 ();
  v3_plain.mtp_layers = 0;
  ModelSpec qwen = llama (48, 2048, 6144, 32, 4, 151936);
  qwen.head_dim = 128;
  qwen.qk_norm = TRUE;
  qwen.num_experts = 128;
  qwen.experts_per_token = 8;
  qwen.moe_ffn_hidden = 768;
  const struct {
    ModelSpec m;
    gint64 seq;
    gboolean half;
    double gflop;
  } cases[] = {
      {llama (32, 4096, 14336, 32, 8, 128256), 8192, FALSE, 57.9},
      {llama (32, 4096, 14336, 32, 8, 128256), 8192, TRUE, 51.5},
      {llama (80, 8192, 28672, 64, 8, 128256), 8192, FALSE, 481.6},
      {llama (80, 8192, 28672, 64, 8, 128256), 8192, TRUE, 449.2},
      {llama (126, 16384, 53248, 128, 8, 128256), 8192, TRUE, 2524},
      {gpt (96, 12288, 96, 51200, 2048), 2048, FALSE, 1076},
      {v3, 4096, TRUE, 260.0},
      {v3_plain, 4096, TRUE, 249.7},
      {qwen, 4096, TRUE, 23.0},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    const double g = 3 * model_flops_forward (&cases[i].m, cases[i].seq, cases[i].half) /
                     (double)cases[i].seq / 1e9;

    g_test_message ("case %u: %.2f GFLOP per token, printed %.1f", i, g, cases[i].gflop);
    g_assert_cmpfloat_with_epsilon (g, cases[i].gflop, 0.002 * cases[i].gflop);
  }
}

/* 6 N + 12 L h s per token exactly, N without token table, norms: arXiv 2204.02311, appendix B. */
static void
test_flops_closed_form (void)
{
  const ModelSpec m = llama (32, 4096, 14336, 32, 8, 128256);
  const double n = (double)(model_params_total (&m) - model_params_embedding (&m) - 65 * m.hidden);
  const double full = 6 * n + 12.0 * 32 * 4096 * 2048, half = 6 * n + 6.0 * 32 * 4096 * 2048;

  g_assert_cmpfloat (3 * model_flops_forward (&m, 2048, FALSE), ==, 2048 * full);
  g_assert_cmpfloat (3 * model_flops_forward (&m, 2048, TRUE), ==, 2048 * half);

  /* a band of w keys: w s - w^2/2 pairs of causal attention; all of them for w = s */
  ModelSpec w = m;
  w.sliding_window = 512;
  const double pairs = 512.0 * 2048 - 512.0 * 512 / 2;
  g_assert_cmpfloat (3 * model_flops_forward (&w, 2048, TRUE), ==,
                     2048 * 6 * n + 3 * 32 * 2 * pairs * 2 * 4096);
  w.sliding_window = 2048;
  g_assert_cmpfloat (model_flops_forward (&w, 2048, TRUE), ==,
                     model_flops_forward (&m, 2048, TRUE));
}

/* tp ranks hold the matrices once and norms, biases after a row-parallel matrix and positions tp
 * times. */
static void
test_rank_shares (void)
{
  const ModelSpec g = gpt (48, 7168, 32, 50257, 1024);
  const gint64 h = 7168, tp = 4;
  const gint64 whole = 4 * h + 2 * h; /* two norms; out bias and second MLP bias */

  g_assert_cmpint (tp * model_rank_layer (&g, 0, tp, 1, tp).dense, ==,
                   model_params_layer (&g, 0) + (tp - 1) * whole);
  /* bigscience V100 log, TP4 PP8, 48 layers (M002): a middle rank holds 6 layers, 925,177,344; the
   * first one the padded table (50,688 rows) and positions more, 1,023,350,272; the last one the
   * table again and the final norm, 1,016,024,576. */
  const gint64 middle = 6 * model_rank_layer (&g, 0, tp, 1, tp).dense;
  g_assert_cmpint (middle, ==, 925177344);
  g_assert_cmpint (middle + model_rank_embedding (&g, 50688, tp), ==, 1023350272);
  g_assert_cmpint (middle + model_rank_head (&g, 50688, tp) + 50688 / tp * h, ==, 1016024576);

  const ModelSpec v3 = deepseek_v3 ();
  const RankParams r = model_rank_layer (&v3, 10, 2, 64, 1);
  g_assert_cmpint (r.experts, ==, 4 * 3 * 7168 * 2048);
  const RankParams one = model_rank_layer (&v3, 10, 1, 1, 1);
  g_assert_cmpint (one.dense + one.experts, ==, model_params_layer (&v3, 10));
  g_assert_cmpint (model_rank_mtp (&v3, 1, 1, 1).dense + model_rank_mtp (&v3, 1, 1, 1).experts, ==,
                   model_params_mtp (&v3));

  /* two kv heads on eight ranks: each rank keeps one head of keys and values */
  const ModelSpec q = llama (1, 1024, 4096, 8, 2, 32000);
  g_assert_cmpint (model_rank_layer (&q, 0, 8, 1, 1).dense, ==,
                   2 * 1024 * 128 + 2 * 1024 * 128 + 3 * 1024 * 512 + 2 * 1024);
}

static void
test_check (void)
{
  ModelSpec m = llama (32, 4096, 14336, 32, 8, 128256);
  g_autoptr (GError) error = NULL;

  m.kv_heads = 5;
  g_assert_false (model_check (&m, &error));
  g_assert_error (error, MODEL_ERROR, 0);
  g_assert_nonnull (strstr (error->message, "5 kv_heads"));
  m.kv_heads = 8;
  m.num_experts = 4;
  m.experts_per_token = 5;
  m.moe_ffn_hidden = 1;
  g_assert_false (model_check (&m, NULL));
  m.experts_per_token = 4;
  g_assert_true (model_check (&m, NULL));
  m.max_positions = 10; /* rotary has no table */
  g_assert_false (model_check (&m, NULL));
  m.max_positions = 0;
  m.hidden = G_MAXINT64;
  g_assert_false (model_check (&m, NULL));
}

static void
test_names_and_bytes (void)
{
  g_assert_cmpstr (part_names[PART_OPTIMIZER], ==, "optimizer");
  g_assert_cmpstr (part_names[PART_OTHER], ==, "other");
  g_assert_null (part_names[PART_COUNT]);
  g_assert_cmpstr (dtype_names[DT_FP4], ==, "fp4");
  g_assert_null (dtype_names[DT_COUNT]);
  g_assert_cmpstr (recompute_names[RECOMPUTE_FULL], ==, "full");
  g_assert_cmpfloat (dtype_bytes (DT_TF32), ==, 4);
  g_assert_cmpfloat (dtype_bytes (DT_FP4), ==, 0.5);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/model/gpt-closed-form", test_gpt_closed_form);
  g_test_add_func ("/model/published-totals", test_published_totals);
  g_test_add_func ("/model/layer-patterns", test_layer_patterns);
  g_test_add_func ("/model/flops-per-token", test_flops_per_token);
  g_test_add_func ("/model/flops-closed-form", test_flops_closed_form);
  g_test_add_func ("/model/rank-shares", test_rank_shares);
  g_test_add_func ("/model/check", test_check);
  g_test_add_func ("/model/names", test_names_and_bytes);
  return g_test_run ();
}
