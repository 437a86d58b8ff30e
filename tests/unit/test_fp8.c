/* 8- and 4-bit training: what is converted, what stays in 16 bits, what travels. */
#include "../moe_util.h"

#include "gpu_profile.h"
#include "predict.h"

static void
load (Spec *s, DType precision)
{
  ut_load (s, "llama-3-70b-h100");
  s->train.precision = precision;
}

/* Bytes of a conversion of n elements: 2 read, 1 written for each orientation; tensor scales read
 * twice. Forward converts the inputs of four linear layers (qkv, out, up, down) and backward the
 * gradients of their outputs; the head is not among them. */
static void
test_conversions (void)
{
  Spec s;
  load (&s, DT_FP8);
  s.parallel.tp = s.parallel.cp = 1;
  s.parallel.sequence_parallel = FALSE;
  s.software.fp8_recipe = FP8_DELAYED;
  double T = 8192, h = 8192, ffn = 28672, qkv = 8192 + 2 * 1024;
  UtSum f = ut_sum (&s, 5, LP_FORWARD, "quantise", FALSE);
  UtSum b = ut_sum (&s, 5, LP_BACKWARD, "quantise", FALSE);
  g_assert_cmpuint (f.n, ==, 4);
  g_assert_cmpuint (b.n, ==, 4);
  ut_near (f.bytes, T * (2 * 2 * h + 4 * (h + ffn)), 1e-12); /* two after norms: transposes */
  ut_near (b.bytes, 4 * T * (2 * h + qkv + 2 * ffn), 1e-12);
  s.software.fp8_recipe = FP8_CURRENT;
  ut_near (ut_sum (&s, 5, LP_FORWARD, "quantise", FALSE).bytes, 6 * T * (3 * h + ffn), 1e-12);
  s.train.precision = DT_BF16;
  g_assert_cmpuint (ut_sum (&s, 5, LP_FORWARD, "quantise", FALSE).n, ==, 0);
  spec_clear (&s);
}

static double
head_s (const Spec *s)
{
  Pricing p;
  PassCost c;
  pricing_init (&p, s);
  head_pass_cost (&p, LP_FORWARD, &c);
  return sim_time_to_s (c.total, SIM_TICKS_PS);
}

/* Linear layers run at the 8-bit rate, head and attention as before; the layer gains less than two.
 */
static void
test_what_is_narrow (void)
{
  Spec wide, narrow;
  load (&wide, DT_BF16);
  load (&narrow, DT_FP8);
  g_assert_cmpfloat (head_s (&narrow), ==, head_s (&wide));
  g_assert_cmpfloat (ut_sum (&narrow, 5, LP_FORWARD, "attention ", FALSE).n, ==,
                     ut_sum (&wide, 5, LP_FORWARD, "attention ", FALSE).n);
  double up16 = ut_sum (&wide, 5, LP_FORWARD, "mlp up", FALSE).time_s;
  double up8 = ut_sum (&narrow, 5, LP_FORWARD, "mlp up", FALSE).time_s;
  g_assert_cmpfloat (up8, <, 0.7 * up16);
  double gain = ut_layer_s (&wide, 5, LP_FORWARD) / ut_layer_s (&narrow, 5, LP_FORWARD);
  g_assert_cmpfloat (gain, >, 1.05);
  g_assert_cmpfloat (gain, <, 1.9);
  spec_clear (&wide);
  spec_clear (&narrow);
}

/* Gathers of sequence parallelism move one byte an element when they move the quantised input, and
 * the rank converts only its own tokens; reductions move two. */
static void
test_gathers (void)
{
  Spec s;
  load (&s, DT_FP8);
  s.software.fp8_tp_gather = FALSE;
  double all = ut_sum (&s, 5, LP_FORWARD, "tp all-gather", TRUE).bytes;
  double reduced = ut_sum (&s, 5, LP_FORWARD, "tp reduce", TRUE).bytes;
  double cast = ut_sum (&s, 5, LP_FORWARD, "quantise", FALSE).bytes;
  s.software.fp8_tp_gather = TRUE;
  ut_near (ut_sum (&s, 5, LP_FORWARD, "tp all-gather", TRUE).bytes, all / 2, 1e-12);
  ut_near (ut_sum (&s, 5, LP_FORWARD, "tp reduce", TRUE).bytes, reduced, 1e-12);
  g_assert_cmpfloat (ut_sum (&s, 5, LP_FORWARD, "quantise", FALSE).bytes, <, cast);
  spec_clear (&s);
}

/* Parameters gathered in 8 bits: less data-parallel traffic, shown when it is not hidden. */
static void
test_param_gather (void)
{
  Spec s;
  Prediction wide, narrow;
  g_autoptr (GError) error = NULL;
  load (&s, DT_FP8);
  s.software.dp_overlap_param = FALSE;
  s.software.fp8_param_gather = FALSE;
  g_assert_true (predict (&s, NULL, NULL, &wide, &error));
  s.software.fp8_param_gather = TRUE;
  g_assert_true (predict (&s, NULL, NULL, &narrow, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (narrow.part_s[PART_DP_COMM], <, wide.part_s[PART_DP_COMM]);
  prediction_clear (&wide);
  prediction_clear (&narrow);
  spec_clear (&s);
}

/* On a part that has them all: 16, 8 with block scales, 8 with tensor scales, 4 bits, ever faster
 * GEMMs; a part without 4-bit arithmetic refuses it. */
static void
test_types (void)
{
  Spec s;
  const char *key = NULL;
  g_autoptr (GError) error = NULL;
  ut_load (&s, "llama-3-70b-h100");
  s.train.precision = DT_FP4;
  g_assert_false (spec_check (&s, &key, &error));
  g_assert_cmpstr (key, ==, "train.precision");
  spec_clear (&s);
  static const char *const sets[] = {"cluster.gpu=GB200-186GB", "cluster.fabric=gb200-nvl72",
                                     "cluster.gpus_per_node=4", "cluster.nodes=16", NULL};
  static const DType types[] = {DT_BF16, DT_MXFP8, DT_FP8, DT_FP4};
  double last = G_MAXDOUBLE;
  g_clear_error (&error);
  for (guint i = 0; i < G_N_ELEMENTS (types); i++) {
    g_assert_true (scenario_load ("llama-3-70b-h100", sets, &s, &error));
    g_assert_no_error (error);
    s.train.precision = types[i];
    double up = ut_sum (&s, 5, LP_FORWARD, "mlp up", FALSE).time_s;
    g_assert_cmpfloat (up, <, last);
    last = up;
    spec_clear (&s);
  }
}

/* Grouped layers convert each expert's rows apart: three kernels an expert at least. */
static void
test_experts (void)
{
  Spec s;
  ut_load (&s, "deepseek-v3-h100");
  s.software.fp8_recipe = FP8_CURRENT;
  UtSum few = ut_sum (&s, 5, LP_FORWARD, "quantise expert input", FALSE);
  s.parallel.ep = 8; /* 32 experts a rank in place of 4, the same rows */
  UtSum many = ut_sum (&s, 5, LP_FORWARD, "quantise expert input", FALSE);
  ut_near (many.bytes, few.bytes, 1e-12);
  ut_near (many.time_s - few.time_s, 3 * 28 * gpu_kernel_floor_s (s.gpu), 1e-9);
  spec_clear (&s);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/fp8/conversions", test_conversions);
  g_test_add_func ("/fp8/what-is-narrow", test_what_is_narrow);
  g_test_add_func ("/fp8/gathers", test_gathers);
  g_test_add_func ("/fp8/param-gather", test_param_gather);
  g_test_add_func ("/fp8/types", test_types);
  g_test_add_func ("/fp8/experts", test_experts);
  return g_test_run ();
}
