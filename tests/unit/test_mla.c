/* Latent attention, multi-token prediction, windows, the delta rule: FLOPs against closed forms. */
#include "../moe_util.h"

#include "compile.h"
#include "predict.h"

static void
load (Spec *s)
{
  ut_load (s, "deepseek-v3-h100");
  s->train.moe_imbalance = 1;
  s->train.recompute = RECOMPUTE_NONE;
  s->train.precision = DT_BF16;
}

/* Products of DeepSeek-V3's attention for T tokens, all tensor-parallel ranks together where they
 * are divided: q 7168 x 1536, 1536 x 128 192; kv 7168 x 576, 512 x 128 256; out 128 128 x 7168;
 * scores and values 2 T^2 128 (192 + 128). */
static void
test_flops (void)
{
  Spec s;
  load (&s);
  s.software.attention = ATTN_UNFUSED;
  double T = 4096, h = 7168, tp = 2;
  UtSum down = ut_sum (&s, 5, LP_FORWARD, "q down", FALSE);
  UtSum kv = ut_sum (&s, 5, LP_FORWARD, "kv down", FALSE);
  /* narrow products run on the rank's own tokens */
  ut_near (down.flops * tp, 2 * T * h * 1536, 1e-12);
  ut_near (kv.flops * tp, 2 * T * h * 576, 1e-12);
  ut_near (ut_sum (&s, 5, LP_FORWARD, "q up", FALSE).flops * tp, 2 * T * 1536 * 128 * 192, 1e-12);
  ut_near (ut_sum (&s, 5, LP_FORWARD, "kv up", FALSE).flops * tp, 2 * T * 512 * 128 * 256, 1e-12);
  ut_near (ut_sum (&s, 5, LP_FORWARD, "scores", FALSE).flops * tp, 2 * T * T * 128 * 192, 1e-12);
  ut_near (ut_sum (&s, 5, LP_FORWARD, "values", FALSE).flops * tp, 2 * T * T * 128 * 128, 1e-12);
  /* the whole layer, dense and with experts, as the model counts it */
  double all = ut_sum (&s, 5, LP_FORWARD, "", FALSE).flops -
               ut_sum (&s, 5, LP_FORWARD, "router", FALSE).flops;
  double dense = ut_sum (&s, 0, LP_FORWARD, "", FALSE).flops;
  double head = 2 * T * h * 129280, join = 2 * T * 2 * h * h;
  ut_near (tp * (58 * all + 3 * dense) + head + tp * all + join + head,
           model_flops_forward (&s.model, 4096, FALSE), 1e-12);
  spec_clear (&s);
}

/* Backward: twice the forward; the modules run again add theirs. */
static void
test_backward (void)
{
  Spec s;
  load (&s);
  s.software.attention = ATTN_UNFUSED;
  double forward = ut_sum (&s, 5, LP_FORWARD, "", FALSE).flops;
  double up = ut_sum (&s, 5, LP_FORWARD, "q up", FALSE).flops +
              ut_sum (&s, 5, LP_FORWARD, "kv up", FALSE).flops;
  ut_near (ut_sum (&s, 5, LP_BACKWARD, "", FALSE).flops, 2 * forward, 1e-12);
  double inputs = ut_sum (&s, 5, LP_INPUT_GRAD, "", FALSE).flops;
  double weights = ut_sum (&s, 5, LP_WEIGHT_GRAD, "", FALSE).flops;
  ut_near (inputs + weights, 2 * forward, 1e-12);
  s.train.recompute = RECOMPUTE_SELECTIVE;
  s.train.recompute_modules = RECOMP_MLA_UP;
  ut_near (ut_sum (&s, 5, LP_BACKWARD, "", FALSE).flops, 2 * forward + up, 1e-12);
  double model, hardware;
  predict_flops (&s, FALSE, &model, &hardware);
  double per_gpu = 8192.0 / 1024.0;
  ut_near (hardware - model, 61 * 2.0 * up * per_gpu, 1e-12);
  s.train.recompute = RECOMPUTE_FULL;
  ut_near (ut_sum (&s, 5, LP_BACKWARD, "", FALSE).flops, 3 * forward, 1e-12);
  spec_clear (&s);
}

/* Without a query rank q is one column-parallel product (DeepSeek-V2 Lite). */
static void
test_no_q_rank (void)
{
  Spec s;
  load (&s);
  s.model.q_lora_rank = 0;
  g_assert_cmpuint (ut_sum (&s, 5, LP_FORWARD, "q down", FALSE).n, ==, 0);
  ut_near (ut_sum (&s, 5, LP_FORWARD, "q", FALSE).flops * 2, 2.0 * 4096 * 7168 * 128 * 192, 1e-12);
  spec_clear (&s);
}

/* 61 layers, one module and the loss on 32 chunks: two a chunk, one on the last but one, none on
 * the last; a step with the module costs its layer and head more. */
static void
test_mtp (void)
{
  Spec s;
  StageLayers sl = {0};
  g_autoptr (GError) error = NULL;
  Pricing p;
  PassCost module, head, layer;
  load (&s);
  g_assert_true (stage_layers_init (&sl, &s, &error));
  g_assert_cmpint (sl.n_layers[0], ==, 2);
  g_assert_cmpint (sl.n_layers[29], ==, 2);
  g_assert_cmpint (sl.n_layers[30], ==, 1);
  g_assert_cmpint (sl.n_layers[31], ==, 0);
  StageParams with = stage_params_per_rank (&s, &sl, 31);
  g_assert_cmpfloat (with.experts, ==, 256.0 / 64.0 * 3.0 * 7168.0 * 2048.0);
  pricing_init (&p, &s);
  mtp_pass_cost (&p, LP_FORWARD, &module);
  head_pass_cost (&p, LP_FORWARD, &head);
  layer_pass_cost (&p, 60, LP_FORWARD, &layer);
  g_assert_cmpint (module.total, >, head.total + layer.total);
  g_assert_cmpint (module.total, <, 2 * (head.total + layer.total));
  s.model.mtp_layers = 0;
  stage_layers_clear (&sl);
  g_assert_true (stage_layers_init (&sl, &s, &error));
  g_assert_cmpint (sl.n_layers[31], >=, 1);
  g_assert_cmpfloat (stage_params_per_rank (&s, &sl, 31).dense, <, with.dense);
  stage_layers_clear (&sl);
  spec_clear (&s);
}

/* A window makes attention cheaper, a chunk of the sequence cheaper still; full layers keep theirs.
 */
static void
test_windows (void)
{
  Spec s;
  ut_load (&s, "qwen3-235b-h100");
  s.train.sequence_tokens = 32768;
  double full = ut_sum (&s, 5, LP_FORWARD, "attention", FALSE).time_s;
  s.model.sliding_window = 4096;
  s.model.sliding_period = 6;
  double band = ut_sum (&s, 4, LP_FORWARD, "attention", FALSE).time_s;
  g_assert_cmpfloat (band, <, 0.5 * full);
  g_assert_cmpfloat (ut_sum (&s, 5, LP_FORWARD, "attention", FALSE).time_s, ==, full);
  s.model.sliding_chunks = TRUE;
  g_assert_cmpfloat (ut_sum (&s, 4, LP_FORWARD, "attention", FALSE).time_s, <, band);
  spec_clear (&s);
}

/* Sinks without a fused kernel: scores go through memory. */
static void
test_sinks (void)
{
  Spec s;
  ut_load (&s, "qwen3-235b-h100");
  s.model.attn_sinks = TRUE;
  g_assert_cmpuint (ut_sum (&s, 5, LP_FORWARD, "scores", FALSE).n, ==, 0);
  double fused = ut_layer_s (&s, 5, LP_FORWARD);
  s.software.attn_sinks_unfused = TRUE;
  g_assert_cmpuint (ut_sum (&s, 5, LP_FORWARD, "scores", FALSE).n, ==, 1);
  g_assert_cmpfloat (ut_layer_s (&s, 5, LP_FORWARD), >, fused);
  g_assert_cmpfloat (model_activation_bytes_layer (&s, 5, RECOMPUTE_NONE), >,
                     2.0 * 32 * 4096.0 * 4096.0);
  spec_clear (&s);
}

/* Qwen3-Next: three of four layers are the gated delta rule; its time is linear in the sequence. */
static void
test_delta (void)
{
  Spec s;
  ut_load (&s, "qwen3-235b-h100");
  s.model.linear_period = 4;
  s.model.linear_key_heads = 16;
  s.model.linear_value_heads = 32;
  s.model.linear_key_dim = s.model.linear_value_dim = 128;
  s.model.linear_conv = 4;
  UtSum in = ut_sum (&s, 0, LP_FORWARD, "delta projections", FALSE);
  UtSum out = ut_sum (&s, 0, LP_FORWARD, "delta out", FALSE);
  ut_near (in.flops * 2, 2.0 * 4096 * 4096 * (2 * 2048 + 2 * 4096 + 2 * 32), 1e-12);
  ut_near (out.flops * 2, 2.0 * 4096 * 4096 * 4096, 1e-12);
  g_assert_cmpuint (ut_sum (&s, 0, LP_FORWARD, "attention", FALSE).n, ==, 0);
  g_assert_cmpuint (ut_sum (&s, 3, LP_FORWARD, "attention", FALSE).n, >, 0);
  double chunk = ut_sum (&s, 0, LP_FORWARD, "delta k k", FALSE).flops;
  s.train.sequence_tokens *= 4;
  ut_near (ut_sum (&s, 0, LP_FORWARD, "delta k k", FALSE).flops, 4 * chunk, 1e-12);
  spec_clear (&s);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/mla/flops", test_flops);
  g_test_add_func ("/mla/backward", test_backward);
  g_test_add_func ("/mla/no-q-rank", test_no_q_rank);
  g_test_add_func ("/mla/mtp", test_mtp);
  g_test_add_func ("/mla/windows", test_windows);
  g_test_add_func ("/mla/sinks", test_sinks);
  g_test_add_func ("/mla/delta", test_delta);
  return g_test_run ();
}
