/* The shipped profiles against published kernel tables. The tables are not part of the project:
 * CLUSTERSIM_SHARED names the folder that holds data/; without it every case is skipped.
 *
 * error = |ln (predicted / measured)|; per table: median, 90th percentile and signed median. The
 * handful of numbers of a profile was fitted on a half or a third of the rows of most of these
 * tables (scenarios/hw/README.md says which), so this measures how well the model's form holds, and
 * guards it.
 */
#include "csv.h"
#include "gpu_profile.h"
#include "read_gpu.h"

#include <math.h>
#include <string.h>

typedef struct {
  GArray *abs_err, *err;
} Errors;

static Errors
errors_new (void)
{
  return (Errors){g_array_new (FALSE, FALSE, sizeof (double)),
                  g_array_new (FALSE, FALSE, sizeof (double))};
}

static void
errors_add (Errors *e, double predicted, double measured)
{
  double l = log (predicted / measured), a = fabs (l);
  g_array_append_val (e->err, l);
  g_array_append_val (e->abs_err, a);
}

static int
compare (gconstpointer a, gconstpointer b)
{
  const double *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static double
quantile (GArray *a, double q)
{
  if (a->len == 0)
    return NAN;
  g_array_sort (a, compare);
  return g_array_index (a, double, (guint)(q * (a->len - 1) + 0.5));
}

/* Prints a row of the table and returns the median; limits of 0 assert nothing. */
static void
errors_report (Errors *e, const char *label, double max_median, double max_p90)
{
  double p50 = quantile (e->abs_err, 0.5), p90 = quantile (e->abs_err, 0.9);

  g_test_message ("%-58s n %5u  median %5.1f %%  p90 %5.1f %%  bias %+5.1f %%", label, e->err->len,
                  100 * p50, 100 * p90, 100 * quantile (e->err, 0.5));
  if (max_median > 0) {
    g_assert_cmpuint (e->err->len, >, 0);
    g_assert_cmpfloat (p50, <=, max_median);
    g_assert_cmpfloat (p90, <=, max_p90);
  }
  g_array_unref (e->abs_err);
  g_array_unref (e->err);
}

static CsvTable *
load_table (const char *file)
{
  const char *shared = g_getenv ("CLUSTERSIM_SHARED");
  g_autofree char *path = NULL;
  GError *error = NULL;
  CsvTable *t;

  if (shared == NULL) {
    g_test_skip ("CLUSTERSIM_SHARED is not set");
    return NULL;
  }
  path = g_build_filename (shared, "data", file, NULL);
  if (!g_file_test (path, G_FILE_TEST_EXISTS)) {
    g_test_skip_printf ("%s is not there", path);
    return NULL;
  }
  t = csv_load (path, &error);
  g_assert_no_error (error);
  return t;
}

static GpuProfile *
load_profile (const char *name)
{
  const char *scenarios = g_getenv ("CLUSTERSIM_SCENARIOS");
  g_autofree char *file = g_strconcat (name, ".json", NULL);
  g_autofree char *path =
      g_build_filename (scenarios != NULL ? scenarios : "scenarios", "hw", file, NULL);
  GError *error = NULL;
  g_autoptr (JsonDoc) doc = json_doc_load (path, &error);
  JsonRef root;
  GpuProfile *g;

  g_assert_no_error (error);
  root = json_root (doc);
  g = read_gpu_profile (&root, name, NULL, &error);
  g_assert_no_error (error);
  return g;
}

/* Number in a cell, or 0 when it is empty or no number. */
static double
num (const CsvTable *t, guint row, const char *col)
{
  return g_ascii_strtod (csv_cell (t, row, csv_col (t, col)), NULL);
}

static GemmShape
gemm_of_row (const CsvTable *t, guint row, DType dtype)
{
  double batch = num (t, row, "batch");
  return (GemmShape){.m = (gint64)num (t, row, "m"),
                     .n = (gint64)num (t, row, "n"),
                     .k = (gint64)num (t, row, "k"),
                     .batch = batch > 0 ? (gint64)batch : 1,
                     .dtype = dtype,
                     .role = GEMM_FORWARD};
}

static double
gemm_flops (const GemmShape *s)
{
  return 2.0 * (double)s->m * (double)s->n * (double)s->k * (double)s->batch;
}

/* ---- GEMM, one latency column a device ---- */

typedef struct {
  const char *column, *profile;
  double median, p90; /* asserted above 1e10 FLOPs; 0: only shown */
} WideCase;

static void
wide_gemm (const char *file, DType dtype, const WideCase *cases, guint n)
{
  g_autoptr (CsvTable) t = load_table (file);

  for (guint c = 0; t != NULL && c < n; c++) {
    g_autoptr (GpuProfile) g = load_profile (cases[c].profile);
    int col = csv_col (t, cases[c].column);
    Errors big = errors_new (), small = errors_new ();
    g_autofree char *label = g_strdup_printf ("%s, > 1e10 FLOPs", cases[c].column);
    g_autofree char *label2 = g_strdup_printf ("%s, the rest", cases[c].column);
    g_assert_cmpint (col, >=, 0);
    for (guint row = 0; row < csv_n_rows (t); row++) {
      double us = g_ascii_strtod (csv_cell (t, row, col), NULL);
      GemmShape s = gemm_of_row (t, row, dtype);
      double time_s = gpu_gemm_s (g, &s, 0);
      if (dtype == DT_FP8) /* that table times the cast of the activations too */
        time_s += gpu_cast_fp8_s (g, (double)s.m * (double)s.k);
      if (us > 0)
        errors_add (gemm_flops (&s) > 1e10 ? &big : &small, 1e6 * time_s, us);
    }
    errors_report (&big, label, cases[c].median, cases[c].p90);
    errors_report (&small, label2, 0, 0);
  }
}

static void
test_gemm_bf16 (void)
{
  static const WideCase cases[] = {
      {"a100_sxm80_sglang", "A100-SXM-80GB", 0.09, 0.25},
      {"h100_sxm_sglang", "H100-SXM-80GB", 0.09, 0.25},
      {"h200_sxm_sglang", "H200-SXM-141GB", 0.09, 0.25},
      {"b200_sxm_sglang", "B200-SXM-180GB", 0.09, 0.25},
      {"gb200_sglang", "GB200-186GB", 0.09, 0.25},
      {"gb300_sglang", "GB300-288GB", 0.09, 0.25},
      {"b300_sxm_trtllm", "B300-SXM-288GB", 0.09, 0.25},
      {"l40s_sglang", "L40S-48GB", 0.09, 0.25},
      {"rtxpro6000_sglang", "RTX-PRO-6000-96GB", 0.09, 0.25},
  };
  wide_gemm ("ops/aiconfigurator_gemm_bf16_us.csv", DT_BF16, cases, G_N_ELEMENTS (cases));
}

static void
test_gemm_fp8 (void)
{
  static const WideCase cases[] = {
      {"h100_sxm_sglang", "H100-SXM-80GB", 0.10, 0.55},
      {"h200_sxm_sglang", "H200-SXM-141GB", 0.10, 0.55},
      {"b200_sxm_sglang", "B200-SXM-180GB", 0.10, 0.55},
      {"gb300_sglang", "GB300-288GB", 0.10, 0.55},
      {"l40s_sglang", "L40S-48GB", 0.10, 0.55},
  };
  wide_gemm ("ops/aiconfigurator_gemm_fp8_us.csv", DT_FP8, cases, G_N_ELEMENTS (cases));
}

/* ---- GEMM, long table ---- */

typedef struct {
  const char *gpu, *dtype, *library; /* library: a part of the name; NULL any */
  const char *profile;
  DType type;
  double median, p90;
} LongCase;

static const LongCase long_cases[] = {
    {"A100-SXM-80GB", "bf16", "trtllm", "A100-SXM-80GB", DT_BF16, 0.09, 0.25},
    {"H100-SXM", "bf16", NULL, "H100-SXM-80GB", DT_BF16, 0.09, 0.25},
    {"H100-SXM", "tf32", NULL, "H100-SXM-80GB", DT_TF32, 0.09, 0.25},
    {"H200-SXM", "bf16", "trtllm", "H200-SXM-141GB", DT_BF16, 0.09, 0.25},
    {"B200-SXM", "bf16", "trtllm", "B200-SXM-180GB", DT_BF16, 0.09, 0.25},
    {"GB200", "bf16", "trtllm", "GB200-186GB", DT_BF16, 0.09, 0.25},
    {"GB300", "bf16", "trtllm", "GB300-288GB", DT_BF16, 0.09, 0.25},
    {"H100-PCIe", "bf16", NULL, "H100-PCIe-80GB", DT_BF16, 0.12, 0.5},
    {"A100-PCIe-40GB", "bf16", NULL, "A100-PCIe-40GB", DT_BF16, 0.12, 0.5},
    {"A100-PCIe", "bf16", NULL, "A100-PCIe-80GB", DT_BF16, 0, 0},
    {"H20", "bf16", NULL, "H20-SXM-96GB", DT_BF16, 0.09, 0.25},
    {"H800-SXM", "fp16", "TileLang", "H800-SXM-80GB", DT_FP16, 0, 0},
    {"H800-SXM5", "fp8_block", NULL, "H800-SXM-80GB", DT_FP8, 0, 0},
    {"A40", "bf16", NULL, "A40-48GB", DT_BF16, 0.12, 0.5},
    {"L4", "bf16", NULL, "L4-24GB", DT_BF16, 0.25, 0.5},
    {"RTX 4090", "bf16", "torch.mm torch", "RTX-4090-24GB", DT_BF16, 0.12, 0.5},
    {"RTX 5090", "bf16", NULL, "RTX-5090-32GB", DT_BF16, 0.12, 0.5},
    {"V100-SXM2-16GB", "fp16", NULL, "V100-SXM2-16GB", DT_FP16, 0.15, 0.5},
    {"A100-80GB", "fp16", NULL, "A100-SXM-80GB", DT_FP16, 0, 0},
};

static void
test_gemm_long (void)
{
  g_autoptr (CsvTable) t = load_table ("gemm.csv");

  for (guint c = 0; t != NULL && c < G_N_ELEMENTS (long_cases); c++) {
    g_autoptr (GpuProfile) g = load_profile (long_cases[c].profile);
    Errors e = errors_new ();
    g_autofree char *label =
        g_strdup_printf ("%s %s %s, > 1e10 FLOPs", long_cases[c].gpu, long_cases[c].dtype,
                         long_cases[c].library != NULL ? long_cases[c].library : "all");
    for (guint row = 0; row < csv_n_rows (t); row++) {
      GemmShape s = gemm_of_row (t, row, long_cases[c].type);
      double us = num (t, row, "time_us"), tflops = num (t, row, "tflops");
      if (strcmp (csv_cell (t, row, csv_col (t, "gpu")), long_cases[c].gpu) != 0 ||
          strcmp (csv_cell (t, row, csv_col (t, "dtype")), long_cases[c].dtype) != 0 ||
          (long_cases[c].library != NULL &&
           strstr (csv_cell (t, row, csv_col (t, "library")), long_cases[c].library) == NULL))
        continue;
      if (us == 0 && tflops > 0)
        us = gemm_flops (&s) / tflops * 1e-6;
      if (us > 0 && gemm_flops (&s) > 1e10)
        errors_add (&e, 1e6 * gpu_gemm_s (g, &s, 0), us);
    }
    errors_report (&e, label, long_cases[c].median, long_cases[c].p90);
  }
}

static void
test_gemm_v100 (void)
{
  g_autoptr (CsvTable) t = load_table ("ops/deepbench_gemm_train.csv");
  g_autoptr (GpuProfile) g = NULL;
  Errors e;

  if (t == NULL)
    return;
  g = load_profile ("V100-SXM2-16GB");
  e = errors_new ();
  for (guint row = 0; row < csv_n_rows (t); row++) {
    GemmShape s = gemm_of_row (t, row, DT_FP16);
    if (strcmp (csv_cell (t, row, csv_col (t, "gpu")), "V100") == 0 &&
        g_str_has_prefix (csv_cell (t, row, csv_col (t, "precision")), "fp16") &&
        gemm_flops (&s) > 1e10 && s.m % 8 == 0 && s.n % 8 == 0 && s.k % 8 == 0)
      errors_add (&e, 1e3 * gpu_gemm_s (g, &s, 0), num (t, row, "time_ms"));
  }
  errors_report (&e, "V100 DeepBench fp16, aligned, > 1e10 FLOPs", 0.12, 0.3);
}

/* ---- attention ---- */

typedef struct {
  const char *label, *profile;
  AttnKernel kernel;
  double median;
} AttnCase;

static double
attention_time_s (const GpuProfile *g, AttnKernel kernel, AttnShape s, const char *pass)
{
  double t = 0;
  if (strstr (pass, "fwd") != NULL) {
    s.pass = PASS_FORWARD;
    t += gpu_attention_s (g, kernel, &s, 0);
  }
  if (strstr (pass, "bwd") != NULL) {
    s.pass = PASS_BACKWARD;
    t += gpu_attention_s (g, kernel, &s, 0);
  }
  return t;
}

static AttnShape
attention_of_row (const CsvTable *t, guint row, gboolean causal)
{
  double kv = num (t, row, "kv_heads");
  AttnShape s = {.batch = (gint64)num (t, row, "batch"),
                 .heads = (gint64)num (t, row, "heads"),
                 .seq_q = (gint64)num (t, row, "seq"),
                 .head_dim_qk = (gint64)num (t, row, "head_dim"),
                 .causal = causal,
                 .dtype = DT_BF16};
  s.kv_heads = kv > 0 ? (gint64)kv : s.heads;
  s.seq_kv = s.seq_q;
  s.head_dim_v = s.head_dim_qk;
  return s;
}

static void
wide_attention (const char *file, gboolean causal, const AttnCase *cases, guint n)
{
  g_autoptr (CsvTable) t = load_table (file);

  for (guint c = 0; t != NULL && c < n; c++) {
    g_autoptr (GpuProfile) g = load_profile (cases[c].profile);
    int col = csv_col (t, cases[c].label);
    Errors e = errors_new ();
    g_autofree char *label =
        g_strdup_printf ("%s %s fwd, seq >= 2048", cases[c].label, causal ? "causal" : "full");
    g_assert_cmpint (col, >=, 0);
    for (guint row = 0; row < csv_n_rows (t); row++) {
      AttnShape s = attention_of_row (t, row, causal);
      double us = g_ascii_strtod (csv_cell (t, row, col), NULL);
      if (us > 0 && s.seq_q >= 2048)
        errors_add (&e, 1e6 * attention_time_s (g, cases[c].kernel, s, "fwd"), us);
    }
    errors_report (&e, label, cases[c].median, 0.45);
  }
}

static void
test_attention_wide (void)
{
  static const AttnCase causal[] = {
      {"a100_sxm80_sglang_fa", "A100-SXM-80GB", ATTN_FLASH2, 0.10},
      {"a100_sxm80_vllm_fa2", "A100-SXM-80GB", ATTN_FLASH2, 0.10},
      {"h100_sxm_sglang_fa3", "H100-SXM-80GB", ATTN_FLASH3, 0.10},
      {"h100_sxm_vllm_fa3", "H100-SXM-80GB", ATTN_FLASH3, 0.10},
      {"h200_sxm_sglang_fa3", "H200-SXM-141GB", ATTN_FLASH3, 0.10},
      {"b200_sxm_sglang_trtllm_mha", "B200-SXM-180GB", ATTN_FLASH3, 0.10},
      {"l40s_vllm_fa2", "L40S-48GB", ATTN_FLASH2, 0.10},
      {"rtxpro6000_trtllm", "RTX-PRO-6000-96GB", ATTN_FLASH2, 0.10},
  };
  wide_attention ("ops/aiconfigurator_attention_causal_fwd_bf16_us.csv", TRUE, causal,
                  G_N_ELEMENTS (causal));
}

static void
test_attention_wide_full (void)
{
  static const AttnCase full[] = {
      {"h100_sxm_sglang_fa3", "H100-SXM-80GB", ATTN_FLASH3, 0.10},
      {"h200_sxm_sglang_fa3", "H200-SXM-141GB", ATTN_FLASH3, 0.10},
      {"l40s_vllm", "L40S-48GB", ATTN_FLASH2, 0.10},
  };
  wide_attention ("ops/aiconfigurator_attention_noncausal_fwd_bf16_us.csv", FALSE, full,
                  G_N_ELEMENTS (full));
}

/* Training kernels: forward and backward together, from FLOP rates (3.5 times forward). */
static void
test_attention_figures (void)
{
  static const AttnCase cases[] = {
      {"FlashAttention-1", "A100-SXM-80GB", ATTN_FLASH1, 0.10},
      {"FlashAttention-2", "A100-SXM-80GB", ATTN_FLASH2, 0.05},
  };
  g_autoptr (CsvTable) t = load_table ("attention.csv");

  for (guint c = 0; t != NULL && c < G_N_ELEMENTS (cases); c++) {
    g_autoptr (GpuProfile) g = load_profile (cases[c].profile);
    Errors e = errors_new ();
    g_autofree char *label = g_strdup_printf ("%s A100 fwd+bwd, seq >= 2048", cases[c].label);
    for (guint row = 0; row < csv_n_rows (t); row++) {
      gboolean causal = num (t, row, "causal") != 0;
      AttnShape s = attention_of_row (t, row, causal);
      double flops = 3.5 * 4 * (double)s.batch * (double)s.heads * (double)s.seq_q *
                     (double)s.seq_q * (double)s.head_dim_qk / (causal ? 2 : 1);
      if (strcmp (csv_cell (t, row, csv_col (t, "impl")), cases[c].label) == 0 && s.seq_q >= 2048)
        errors_add (&e, attention_time_s (g, cases[c].kernel, s, "fwdbwd"),
                    flops / (num (t, row, "tflops") * 1e12));
    }
    errors_report (&e, label, cases[c].median, 0.25);
  }
}

/* cuDNN on H200: forward and backward times of the same row, in ms. */
static void
cudnn_h200 (const char *file, Errors *fwd, Errors *bwd)
{
  g_autofree char *path = g_strconcat ("ops/cudnn-frontend_sdpa_h200_919_only_cudnn_", file, NULL);
  g_autoptr (CsvTable) t = load_table (path);
  g_autoptr (GpuProfile) g = NULL;

  if (t == NULL)
    return;
  g = load_profile ("H100-SXM-80GB"); /* same die; the profile claims these kernels */
  for (guint row = 0; row < csv_n_rows (t); row++) {
    AttnShape s = {.batch = (gint64)num (t, row, "batch_size"),
                   .heads = (gint64)num (t, row, "num_q_heads"),
                   .kv_heads = (gint64)num (t, row, "num_kv_heads"),
                   .seq_q = (gint64)num (t, row, "q_seqlen"),
                   .seq_kv = (gint64)num (t, row, "kv_seqlen"),
                   .head_dim_qk = (gint64)num (t, row, "head_dim_qk"),
                   .head_dim_v = (gint64)num (t, row, "head_dim_vo"),
                   .window = (gint64)num (t, row, "sliding_window_size"),
                   .dtype = DT_BF16};
    s.causal = strcmp (csv_cell (t, row, csv_col (t, "attn_mask")), "top_left") == 0;
    if (strcmp (csv_cell (t, row, csv_col (t, "success")), "True") != 0 ||
        strcmp (csv_cell (t, row, csv_col (t, "data_type")), "bfloat16") != 0)
      continue;
    errors_add (fwd, 1e3 * attention_time_s (g, ATTN_CUDNN, s, "fwd"), num (t, row, "fwd_time_ms"));
    errors_add (bwd, 1e3 * attention_time_s (g, ATTN_CUDNN, s, "bwd"), num (t, row, "bwd_time_ms"));
  }
}

static void
test_attention_cudnn (void)
{
  Errors fwd, bwd;

  if (g_getenv ("CLUSTERSIM_SHARED") == NULL) {
    g_test_skip ("CLUSTERSIM_SHARED is not set");
    return;
  }
  fwd = errors_new ();
  bwd = errors_new ();
  cudnn_h200 ("llama3.1_20260227_034703.csv", &fwd, &bwd);
  cudnn_h200 ("dsv3_20260227_034744.csv", &fwd, &bwd);
  cudnn_h200 ("gpt_oss_20260227_034819.csv", &fwd, &bwd);
  errors_report (&fwd, "cuDNN H200 (H100 profile) fwd, seq >= 2048", 0.10, 0.25);
  errors_report (&bwd, "cuDNN H200 (H100 profile) bwd, seq >= 2048", 0.10, 0.25);
}

/* ---- memory-bound kernels ---- */

typedef struct {
  const char *gpu, *profile;
} MemCase;

/* Residual add over tokens x width fp16: two reads and a write. Times are rounded to 1 us there, so
 * only those of 20 us and more count. */
static void
test_memory_vidur (void)
{
  static const MemCase cases[] = {
      {"a100", "A100-SXM-80GB"}, {"h100", "H100-SXM-80GB"}, {"a40", "A40-48GB"}};
  g_autoptr (CsvTable) t = load_table ("ops/vidur_mlp_median_ms.csv");

  for (guint c = 0; t != NULL && c < G_N_ELEMENTS (cases); c++) {
    g_autoptr (GpuProfile) g = load_profile (cases[c].profile);
    Errors e = errors_new ();
    g_autofree char *label = g_strdup_printf ("%s residual add, >= 20 us", cases[c].gpu);
    for (guint row = 0; row < csv_n_rows (t); row++) {
      double us = 1e3 * num (t, row, "add_ms");
      double bytes = 6 * num (t, row, "num_tokens") * num (t, row, "n_embd");
      if (strcmp (csv_cell (t, row, csv_col (t, "gpu")), cases[c].gpu) == 0 && us >= 20)
        errors_add (&e, 1e6 * gpu_memory_s (g, MEMK_STREAM, bytes), us);
    }
    errors_report (&e, label, 0.20, 0.35);
  }
}

/* Norms of cuDNN in bf16: forward reads x and writes y; backward reads x, dy and writes dx. */
static void
test_memory_norms (void)
{
  g_autoptr (CsvTable) t =
      load_table ("ops/cudnn-frontend_norms_h200_all_models_20260227_035147.csv");
  g_autoptr (GpuProfile) g = NULL;
  Errors fwd, bwd;

  if (t == NULL)
    return;
  g = load_profile ("H200-SXM-141GB");
  fwd = errors_new ();
  bwd = errors_new ();
  for (guint row = 0; row < csv_n_rows (t); row++) {
    double cells = num (t, row, "N") * num (t, row, "C");
    if (strcmp (csv_cell (t, row, csv_col (t, "backend")), "cudnn") != 0 || cells < 1e7)
      continue;
    errors_add (&fwd, 1e3 * gpu_memory_s (g, MEMK_NORM_FWD, 4 * cells),
                num (t, row, "fwd_time_ms"));
    errors_add (&bwd, 1e3 * gpu_memory_s (g, MEMK_NORM_BWD, 6 * cells),
                num (t, row, "bwd_time_ms"));
  }
  errors_report (&fwd, "H200 cuDNN norms fwd, >= 10 M cells", 0.15, 0.5);
  errors_report (&bwd, "H200 cuDNN norms bwd, >= 10 M cells", 0.15, 0.5);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/gpu-tables/gemm/bf16", test_gemm_bf16);
  g_test_add_func ("/gpu-tables/gemm/fp8", test_gemm_fp8);
  g_test_add_func ("/gpu-tables/gemm/long", test_gemm_long);
  g_test_add_func ("/gpu-tables/gemm/v100", test_gemm_v100);
  g_test_add_func ("/gpu-tables/attention/causal", test_attention_wide);
  g_test_add_func ("/gpu-tables/attention/full", test_attention_wide_full);
  g_test_add_func ("/gpu-tables/attention/figures", test_attention_figures);
  g_test_add_func ("/gpu-tables/attention/cudnn", test_attention_cudnn);
  g_test_add_func ("/gpu-tables/memory/add", test_memory_vidur);
  g_test_add_func ("/gpu-tables/memory/norms", test_memory_norms);
  return g_test_run ();
}
