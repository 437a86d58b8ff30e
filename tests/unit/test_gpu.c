/* Device model: closed forms on a profile of round numbers, and the strictness of its reader. */
#include "gpu_profile.h"
#include "read_gpu.h"

#include <math.h>
#include <string.h>

#define ASSERT_NEAR(a, b, rel) g_assert_cmpfloat_with_epsilon ((a), (b), (rel)*fabs ((double)(b)))

/* 10 SMs of 1e11 FLOP/s each, memory so fast that it never matters (unless a test slows it down).
 */
static GpuProfile *
round_profile (void)
{
  GpuProfile *g = gpu_profile_new ("round");
  GemmParams *p = &g->gemm[DT_BF16];
  AttnParams *a = &g->attn[ATTN_FLASH2];

  g->sm_count = 10;
  g->peak_flops[DT_BF16] = 1e12;
  g->memory_bytes = 1e9;
  g->hbm_Bps = 1e20;
  g->kernel_floor_s = 2e-6;
  g->scaleup_domain = 8;
  g->attn_sustained = 1;
  for (int i = 0; i < MEMK_COUNT; i++)
    g->memk_fraction[i] = 0.5;
  g->n_tiles = 1;
  g->tile_m[0] = g->tile_n[0] = 128;
  g->n_splits = 1;
  g->splits[0] = 1;
  *p = (GemmParams){.present = TRUE,
                    .floor_s = 1e-6,
                    .burst_efficiency = 0.5,
                    .sustained_efficiency = 0.5,
                    .half_flops = 1e12,
                    .k_quantum = 1,
                    .memory_fraction = 0.5};
  for (int i = 0; i < GEMM_N_ALIGN; i++)
    p->align_factor[i] = 1;
  for (int i = 0; i < 3; i++)
    p->role_factor[i] = 1;
  *a = (AttnParams){.present = TRUE, .block_q = 128, .dim_quantum = 32};
  for (int pass = 0; pass < 2; pass++) {
    a->floor_s[pass] = 1e-6;
    a->causal_factor[pass] = 1;
    for (int d = 0; d < ATTN_N_DIMS; d++)
      a->efficiency[pass][d] = 0.5;
  }
  return g;
}

static GpuProfile *load_profile (const char *file);

static void
prepare (GpuProfile *g)
{
  GError *error = NULL;
  g_assert_true (gpu_profile_prepare (g, &error));
  g_assert_no_error (error);
}

static GemmShape
gemm (gint64 m, gint64 n, gint64 k)
{
  return (GemmShape){.m = m, .n = n, .k = k, .batch = 1, .dtype = DT_BF16, .role = GEMM_FORWARD};
}

/* t = floor + ceil(tiles / SMs) * 2 Tm Tn k / (eff * peak / SMs): 1280 x 1280 is 100 tiles, 10
 * waves of 2 * 128 * 128 * 500 / 5e10 s. */
static void
test_gemm_waves (void)
{
  g_autoptr (GpuProfile) g = round_profile ();
  GemmShape s = gemm (1280, 1280, 500);
  double wave_s = 2.0 * 128 * 128 * 500 / 5e10;
  GemmPlan plan;

  prepare (g);
  gpu_gemm_plan (g, &s, 0, &plan);
  g_assert_cmpfloat (plan.waves, ==, 10);
  ASSERT_NEAR (gpu_gemm_s (g, &s, 0), 1e-6 + 10 * wave_s, 1e-12);
  s.m = 1281; /* 11 rows of 10 tiles: one wave more */
  ASSERT_NEAR (gpu_gemm_s (g, &s, 0), 1e-6 + 11 * wave_s, 1e-12);
  s.m = 1; /* a single row of tiles is one wave, as is a full one */
  ASSERT_NEAR (gpu_gemm_s (g, &s, 0), 1e-6 + wave_s, 1e-12);
  s.batch = 3; /* batched: 30 tiles, 3 waves */
  ASSERT_NEAR (gpu_gemm_s (g, &s, 0), 1e-6 + 3 * wave_s, 1e-12);
  s.k = 0;
  g_assert_cmpfloat (gpu_gemm_s (g, &s, 0), ==, 0);
}

/* With smoothing w, 15 tiles on 10 SMs take 2 - w (2 - 1.5) waves; below one wave nothing smooths.
 */
static void
test_gemm_smoothing (void)
{
  g_autoptr (GpuProfile) g = round_profile ();
  GemmShape s = gemm (128 * 15, 128, 500);
  double wave_s = 2.0 * 128 * 128 * 500 / 5e10;

  g->gemm[DT_BF16].wave_smoothing = 0.4;
  prepare (g);
  ASSERT_NEAR (gpu_gemm_s (g, &s, 0), 1e-6 + 1.8 * wave_s, 1e-12);
  s.m = 128 * 5;
  ASSERT_NEAR (gpu_gemm_s (g, &s, 0), 1e-6 + wave_s, 1e-12);
}

/* One tile on ten SMs: split-k 8 costs (k/8 + k0) steps and split_s, instead of k + k0. */
static void
test_gemm_split (void)
{
  g_autoptr (GpuProfile) g = round_profile ();
  GemmShape s = gemm (128, 128, 8000);
  double step_s = 2.0 * 128 * 128 / 1e11;
  GemmPlan plan;

  g->n_splits = 4;
  for (int i = 0; i < 4; i++)
    g->splits[i] = 1 << i;
  g->gemm[DT_BF16].k0 = 100;
  g->gemm[DT_BF16].split_s = 1e-6;
  prepare (g);
  gpu_gemm_plan (g, &s, 0, &plan);
  g_assert_cmpint (plan.split, ==, 3);
  ASSERT_NEAR (plan.compute_s, (1100 * step_s + 1e-6) / 0.5, 1e-12);
}

/* m = 1: t -> floor + bytes / (fraction * bandwidth); the compute side is 1 % of it, so that the
 * fourth-power sum adds less than 1e-8 of it. bytes = 2 (k + k n + n). */
static void
test_gemm_memory_bound (void)
{
  g_autoptr (GpuProfile) g = round_profile ();
  GemmShape s = gemm (1, 1280, 1000);
  double bytes = 2.0 * (1000 + 1000.0 * 1280 + 1280), wave_s = 2.0 * 128 * 128 * 1000 / 5e10;

  g->hbm_Bps = bytes / 0.5 / (100 * wave_s);
  prepare (g);
  ASSERT_NEAR (gpu_gemm_s (g, &s, 0), 1e-6 + 100 * wave_s, 1e-7);
  s.accumulate = TRUE; /* fp32 read and written: 8 bytes in place of 2 */
  ASSERT_NEAR (gpu_gemm_s (g, &s, 0), 1e-6 + 100 * wave_s * (bytes + 6.0 * 1280) / bytes, 1e-7);
}

/* efficiency = burst + w (sustained - burst), w = 1 - (1 - duty) half / (F + half). */
static void
test_gemm_sustained (void)
{
  g_autoptr (GpuProfile) g = round_profile ();
  GemmShape s = gemm (1280, 1280, 1000);
  double flops = 2.0 * 1280 * 1280 * 1000;
  GemmPlan plan;

  g->gemm[DT_BF16].burst_efficiency = 0.8;
  g->gemm[DT_BF16].sustained_efficiency = 0.6;
  g->gemm[DT_BF16].half_flops = flops;
  prepare (g);
  gpu_gemm_plan (g, &s, 0, &plan);
  ASSERT_NEAR (plan.efficiency, 0.7, 1e-12);
  gpu_gemm_plan (g, &s, 0.5, &plan);
  ASSERT_NEAR (plan.efficiency, 0.65, 1e-12);
  gpu_gemm_plan (g, &s, 1, &plan);
  ASSERT_NEAR (plan.efficiency, 0.6, 1e-12);
}

/* bf16 rows of n = 24 are 48 bytes, aligned to 16: class 3. The weight gradient reads rows of m and
 * n, the forward pass rows of k and n. */
static void
test_gemm_alignment (void)
{
  g_autoptr (GpuProfile) g = round_profile ();
  GemmShape s = gemm (1280, 24, 1280);
  GemmPlan plan;

  for (int i = 0; i < GEMM_N_ALIGN; i++)
    g->gemm[DT_BF16].align_factor[i] = 0.4 + 0.1 * i;
  prepare (g);
  gpu_gemm_plan (g, &s, 0, &plan);
  ASSERT_NEAR (plan.efficiency, 0.5 * 0.7, 1e-12);
  s = gemm (1280, 1280, 1279); /* odd k: 2 bytes */
  gpu_gemm_plan (g, &s, 0, &plan);
  ASSERT_NEAR (plan.efficiency, 0.5 * 0.4, 1e-12);
  s.role = GEMM_WGRAD; /* k is not a row length there */
  gpu_gemm_plan (g, &s, 0, &plan);
  ASSERT_NEAR (plan.efficiency, 0.5 * 1.0, 1e-12);
}

static void
test_memory_kernel (void)
{
  g_autoptr (GpuProfile) g = round_profile ();

  g->hbm_Bps = 1e12;
  prepare (g);
  g_assert_cmpfloat (gpu_memory_s (g, MEMK_STREAM, 0), ==, 0);
  ASSERT_NEAR (gpu_memory_s (g, MEMK_NORM_FWD, 1e9), 2e-6 + 1e9 / 5e11, 1e-12);
}

/* 10 heads, 1024 queries: 80 blocks on 10 SMs are 8 waves of 128 rows * 1024 keys * 2 (64 + 64)
 * FLOPs at 5e10 FLOP/s. Backward is 2.5 times that. A causal mask leaves (1024 + 128) / 2 keys. */
static void
test_attention (void)
{
  g_autoptr (GpuProfile) g = round_profile ();
  AttnShape s = {.batch = 1,
                 .heads = 10,
                 .kv_heads = 10,
                 .seq_q = 1024,
                 .seq_kv = 1024,
                 .head_dim_qk = 64,
                 .head_dim_v = 64,
                 .dtype = DT_BF16,
                 .pass = PASS_FORWARD};
  double full_s = 8 * 128.0 * 1024 * 256 / 5e10;

  prepare (g);
  ASSERT_NEAR (gpu_attention_s (g, ATTN_FLASH2, &s, 0), 1e-6 + full_s, 1e-12);
  s.pass = PASS_BACKWARD;
  ASSERT_NEAR (gpu_attention_s (g, ATTN_FLASH2, &s, 0), 1e-6 + 2.5 * full_s, 1e-12);
  s.pass = PASS_FORWARD;
  s.causal = TRUE;
  ASSERT_NEAR (gpu_attention_s (g, ATTN_FLASH2, &s, 0), 1e-6 + full_s * 576 / 1024, 1e-12);
  s.window = 256; /* 256 - 256^2 / 2048 keys a row, 128 more a block */
  ASSERT_NEAR (gpu_attention_s (g, ATTN_FLASH2, &s, 0), 1e-6 + full_s * 352 / 1024, 1e-12);
  s.window = 0;
  s.causal = FALSE;
  s.head_dim_qk = s.head_dim_v = 40; /* padded to 64 */
  ASSERT_NEAR (gpu_attention_s (g, ATTN_FLASH2, &s, 0), 1e-6 + full_s, 1e-12);
  s.seq_q = 0;
  g_assert_cmpfloat (gpu_attention_s (g, ATTN_FLASH2, &s, 0), ==, 0);
}

/* The nearest older kernel stands in, then the nearest newer, then none. */
static void
test_attention_kernel (void)
{
  g_autoptr (GpuProfile) g = round_profile ();

  prepare (g);
  g_assert_cmpint (gpu_attention_kernel (g, ATTN_CUDNN), ==, ATTN_FLASH2);
  g_assert_cmpint (gpu_attention_kernel (g, ATTN_FLASH1), ==, ATTN_FLASH2);
  g_assert_cmpint (gpu_attention_kernel (g, ATTN_UNFUSED), ==, ATTN_UNFUSED);
  g->attn[ATTN_FLASH2].present = FALSE;
  g_assert_cmpint (gpu_attention_kernel (g, ATTN_FLASH2), ==, ATTN_UNFUSED);
}

/* A table with one node, of twice the formula's time there. The node is doubled; halfway to the
 * next in m, where sqrt (x / lower) - 1 = 1/2, so x = 2.25 lower, one and a half times the formula;
 * a shape whose eight nodes are all unmeasured, and a batch of two, are the formula's. */
static void
test_gemm_table (void)
{
  g_autoptr (GpuProfile) g = round_profile ();
  GemmShape node = gemm (1024, 1024, 1024), between = gemm (2304, 1024, 1024),
            far = gemm (64, 1024, 1024), two = node;
  int at[8], hit = -1;
  double weight[8];
  two.batch = 2;
  prepare (g);
  double plain = gpu_gemm_s (g, &node, 0), mid = gpu_gemm_s (g, &between, 0),
         away = gpu_gemm_s (g, &far, 0), both = gpu_gemm_s (g, &two, 0);
  g_assert_true (gemm_table_around (&node, at, weight));
  for (int c = 0; c < 8; c++)
    if (weight[c] == 1)
      hit = at[c];
  g_assert_cmpint (hit, >=, 0);
  GemmShape back = {0};
  gemm_table_shape (hit, &back);
  g_assert_cmpint (back.m, ==, 1024);
  g_assert_cmpint (back.n, ==, 1024);
  g_assert_cmpint (back.k, ==, 1024);
  g->gemm[DT_BF16].table_s[hit] = (float)(2 * plain);
  prepare (g);
  ASSERT_NEAR (gpu_gemm_s (g, &node, 0), 2 * plain, 1e-6);
  ASSERT_NEAR (gpu_gemm_s (g, &between, 0), 1.5 * mid, 1e-6);
  ASSERT_NEAR (gpu_gemm_s (g, &far, 0), away, 1e-12);
  ASSERT_NEAR (gpu_gemm_s (g, &two, 0), both, 1e-12);
}

/* Table and formula of the shipped profiles check each other: on every node of large GEMMs they
 * are within a factor of 1.8, the median of a type within 12 %. */
static void
test_shipped_tables (void)
{
  static const char *const files[] = {"A100-SXM-80GB.json", "H100-SXM-80GB.json",
                                      "B200-SXM-180GB.json", "MI355X-288GB.json",
                                      "RTX-PRO-6000-96GB.json"};
  for (gsize f = 0; f < G_N_ELEMENTS (files); f++) {
    g_autoptr (GpuProfile) g = load_profile (files[f]);
    guint n = 0, near = 0;
    g_assert_true (g->has_table[DT_BF16]);
    for (int i = 0; i < GEMM_TABLE_NODES; i++) {
      GemmShape s;
      gemm_table_shape (i, &s);
      double r = (double)g->table_ratio[DT_BF16][i];
      if (!(g->gemm[DT_BF16].table_s[i] > 0) ||
          2.0 * (double)s.m * (double)s.n * (double)s.k < 1e10)
        continue;
      g_assert_cmpfloat (r, >, 1 / 1.8);
      g_assert_cmpfloat (r, <, 1.8);
      n++;
      near += r > 0.88 && r < 1.12;
    }
    g_assert_cmpuint (n, >, 30);
    g_assert_cmpuint (2 * near, >=, n);
  }
}

static void
test_prepare_refuses (void)
{
  g_autoptr (GpuProfile) g = gpu_profile_new ("empty");
  g_autoptr (GpuProfile) h = round_profile ();
  GError *error = NULL;

  g_assert_false (gpu_profile_prepare (g, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_MISSING);
  g_clear_error (&error);
  h->gemm[DT_BF16].sustained_efficiency = 0.6; /* above burst */
  g_assert_false (gpu_profile_prepare (h, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_RANGE);
  g_clear_error (&error);
}

/* ---- shipped profiles ---- */

static char *
hw_folder (void)
{
  const char *root = g_getenv ("CLUSTERSIM_SCENARIOS");
  return g_build_filename (root != NULL ? root : "scenarios", "hw", NULL);
}

static JsonDoc *
load_doc (const char *file)
{
  g_autofree char *folder = hw_folder ();
  g_autofree char *path = g_build_filename (folder, file, NULL);
  GError *error = NULL;
  JsonDoc *doc = json_doc_load (path, &error);

  g_assert_no_error (error);
  return doc;
}

static GpuProfile *
load_profile (const char *file)
{
  g_autoptr (JsonDoc) doc = load_doc (file);
  JsonRef root = json_root (doc);
  GError *error = NULL;
  GpuProfile *g = read_gpu_profile (&root, file, NULL, &error);

  g_assert_no_error (error);
  return g;
}

/* Longer in any dimension (by whole aligned tiles) is never faster; busier is never faster. */
static void
test_shipped_monotone (void)
{
  g_autoptr (GpuProfile) g = load_profile ("A100-SXM-80GB.json");
  static const gint64 sizes[] = {128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192};
  guint n = G_N_ELEMENTS (sizes);

  for (guint i = 0; i < n; i++)
    for (guint j = 0; j < n; j++)
      for (guint k = 0; k + 1 < n; k++) {
        GemmShape s = gemm (sizes[i], sizes[j], sizes[k]), longer = s;
        double t = gpu_gemm_s (g, &s, 0);
        longer.k = sizes[k + 1];
        g_assert_cmpfloat (gpu_gemm_s (g, &longer, 0), >=, t);
        longer = gemm (sizes[k + 1], sizes[j], sizes[i]);
        s = gemm (sizes[k], sizes[j], sizes[i]);
        g_assert_cmpfloat (gpu_gemm_s (g, &longer, 0), >=, gpu_gemm_s (g, &s, 0));
        g_assert_cmpfloat (gpu_gemm_s (g, &s, 1), >=, gpu_gemm_s (g, &s, 0));
      }
}

/* No kernel beats the peak (where efficiencies are below 1) or the memory. */
static void
test_shipped_bounds (void)
{
  g_autoptr (GpuProfile) g = load_profile ("H100-SXM-80GB.json");

  ASSERT_NEAR (gpu_peak_flops (g, DT_BF16), 989.4e12, 1e-12);
  g_assert_cmpfloat (gpu_peak_flops (g, DT_FP4), ==, 0);
  g_assert_cmpint (gpu_capacity_bytes (g), >, G_GINT64_CONSTANT (79) << 30);
  for (gint64 m = 1; m < 40000; m = m * 3 + 1) {
    GemmShape s = gemm (m, 4096, 8192);
    double flops = 2.0 * (double)m * 4096 * 8192;
    double bytes = 2.0 * ((double)m * 8192 + 4096.0 * 8192 + (double)m * 4096);
    double t = gpu_gemm_s (g, &s, 0);
    g_assert_cmpfloat (t, >, flops / gpu_peak_flops (g, DT_BF16));
    g_assert_cmpfloat (t, >, bytes / g->hbm_Bps);
  }
}

/* Every file is readable and its names are its own; every number has a source. */
static void
test_shipped_all (void)
{
  g_autofree char *folder = hw_folder ();
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  g_autoptr (GHashTable) names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  guint n = 0;

  g_assert_nonnull (dir);
  for (const char *file; (file = g_dir_read_name (dir)) != NULL;) {
    g_autoptr (GpuProfile) g = NULL;
    g_autofree char *stem = NULL;
    if (!g_str_has_suffix (file, ".json"))
      continue;
    n++;
    g = load_profile (file);
    stem = g_strndup (file, strlen (file) - strlen (".json"));
    g_assert_cmpstr (gpu_name (g), ==, stem);
    g_assert_true (g_hash_table_add (names, g_strdup (stem)));
    for (char **a = g->aliases; *a != NULL; a++)
      if (!g_hash_table_add (names, g_strdup (*a)))
        g_error ("%s: the alias %s is taken", file, *a);
  }
  g_assert_cmpuint (n, >=, 20);
}

static void
expect_refused (const char *path, const char *value, JsonError code)
{
  g_autoptr (JsonDoc) doc = load_doc ("A100-SXM-80GB.json");
  g_autoptr (GpuProfile) g = NULL;
  GError *error = NULL;
  JsonRef root;

  g_assert_true (json_doc_set (doc, path, value, &error));
  g_assert_no_error (error);
  root = json_root (doc);
  g = read_gpu_profile (&root, "x", NULL, &error);
  if (g != NULL)
    g_error ("%s = %s was accepted", path, value);
  g_assert_error (error, JSON_ERROR, (int)code);
  g_clear_error (&error);
}

static void
expect_missing (const char *patch)
{
  g_autoptr (JsonDoc) doc = load_doc ("A100-SXM-80GB.json");
  GError *error = NULL;
  g_autoptr (JsonDoc) p = json_doc_parse ("patch", patch, strlen (patch), &error);
  g_autoptr (GpuProfile) g = NULL;
  JsonRef root;

  g_assert_no_error (error);
  json_doc_merge (doc, p); /* null deletes */
  root = json_root (doc);
  g = read_gpu_profile (&root, "x", NULL, &error);
  if (g != NULL)
    g_error ("%s was accepted", patch);
  g_assert_error (error, JSON_ERROR, JSON_ERROR_MISSING);
  g_clear_error (&error);
}

static void
test_reader_refuses (void)
{
  expect_refused ("device.hbm_GBps", "2039", JSON_ERROR_TYPE); /* bare number */
  expect_refused ("device.hbm_GBps", "{\"value\": 2039, \"kind\": \"vendor\"}", JSON_ERROR_MISSING);
  expect_refused ("device.hbm_GBps", "{\"value\": 0, \"kind\": \"vendor\", \"source\": \"x\"}",
                  JSON_ERROR_RANGE);
  expect_refused ("device.bandwidth", "1", JSON_ERROR_UNKNOWN_KEY);
  expect_refused ("gemm.types.bf16.sustained_efficiency.value", "1.5", JSON_ERROR_INCONSISTENT);
  expect_refused ("gemm.types.fp8", "{}", JSON_ERROR_INCONSISTENT); /* no such peak */
  expect_refused ("gemm.types.bf15", "{}", JSON_ERROR_UNKNOWN_KEY);
  expect_refused ("gemm.splits", "[2, 4]", JSON_ERROR_RANGE);
  expect_refused ("gemm.tiles", "[[64]]", JSON_ERROR_TYPE);
  expect_refused ("attention.kernels.unfused", "{}", JSON_ERROR_UNKNOWN_KEY);
  expect_refused ("device.scaleup_gpus.value", "2.5", JSON_ERROR_RANGE);
  expect_refused ("format", "2", JSON_ERROR_RANGE);
  expect_missing ("{\"device\": {\"sm_count\": null}}");
  expect_missing ("{\"memory_fraction\": {\"xent\": null}}");
  expect_missing ("{\"gemm\": {\"types\": {\"bf16\": {\"k0\": null}}}}");
  expect_missing ("{\"gemm\": {\"types\": {\"bf16\": {\"align_factor\": {\"32\": null}}}}}");
  expect_missing ("{\"attention\": {\"kernels\": {\"flash2\": {\"backward\": {\"kv0\": null}}}}}");
  expect_missing ("{\"attention\": null}");
}

/* Values arrive in SI units, and each with its source. */
static void
test_reader_values (void)
{
  g_autoptr (JsonDoc) doc = load_doc ("A100-SXM-80GB.json");
  g_autoptr (GPtrArray) prov = g_ptr_array_new_with_free_func ((GDestroyNotify)prov_entry_free);
  JsonRef root = json_root (doc);
  GError *error = NULL;
  g_autoptr (GpuProfile) g = read_gpu_profile (&root, "x", prov, &error);

  g_assert_no_error (error);
  ASSERT_NEAR (g->hbm_Bps, 2039e9, 1e-12);
  ASSERT_NEAR (gpu_nvlink_Bps (g), 300e9, 1e-12);
  ASSERT_NEAR (gpu_tdp_w (g), 400, 1e-12);
  ASSERT_NEAR (gpu_sm_count (g), 108, 1e-12);
  g_assert_cmpint (gpu_scaleup_domain (g), ==, 8);
  g_assert_cmpfloat (gpu_kernel_floor_s (g), <, 1e-5);
  g_assert_cmpfloat (gpu_launch_stream_s (g), >=, g->launch_graph_s);
  g_assert_cmpuint (prov->len, >, 100);
  for (guint i = 0; i < prov->len; i++) {
    const ProvEntry *e = g_ptr_array_index (prov, i);
    g_assert_cmpuint (strlen (e->source), >, 0);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/gpu/gemm/waves", test_gemm_waves);
  g_test_add_func ("/gpu/gemm/smoothing", test_gemm_smoothing);
  g_test_add_func ("/gpu/gemm/split", test_gemm_split);
  g_test_add_func ("/gpu/gemm/memory-bound", test_gemm_memory_bound);
  g_test_add_func ("/gpu/gemm/sustained", test_gemm_sustained);
  g_test_add_func ("/gpu/gemm/alignment", test_gemm_alignment);
  g_test_add_func ("/gpu/gemm/table", test_gemm_table);
  g_test_add_func ("/gpu/shipped/tables", test_shipped_tables);
  g_test_add_func ("/gpu/memory", test_memory_kernel);
  g_test_add_func ("/gpu/attention/closed-form", test_attention);
  g_test_add_func ("/gpu/attention/kernel", test_attention_kernel);
  g_test_add_func ("/gpu/prepare/refuses", test_prepare_refuses);
  g_test_add_func ("/gpu/shipped/monotone", test_shipped_monotone);
  g_test_add_func ("/gpu/shipped/bounds", test_shipped_bounds);
  g_test_add_func ("/gpu/shipped/all", test_shipped_all);
  g_test_add_func ("/gpu/reader/refuses", test_reader_refuses);
  g_test_add_func ("/gpu/reader/values", test_reader_values);
  return g_test_run ();
}
