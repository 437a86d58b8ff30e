#include "read_gpu.h"

/* A number of a table: where it goes, what it may be, and the unit it is multiplied by. */
typedef struct {
  const char *key;
  gsize offset;
  double min, max, unit;
  gboolean optional;
} Field;

static gboolean
read_fields (const JsonRef *obj, const Field *fields, gsize n, void *base, GPtrArray *prov,
             GError **error)
{
  for (gsize i = 0; i < n; i++) {
    const Field *f = &fields[i];
    double *out = (double *)(void *)((char *)base + f->offset);
    double v = 0;
    gboolean ok = f->optional ? json_opt_sourced (obj, f->key, f->min, f->max, &v, prov, error)
                              : json_get_sourced (obj, f->key, f->min, f->max, &v, prov, error);
    if (!ok)
      return FALSE;
    *out = v * f->unit;
  }
  return TRUE;
}

/* Keys of an object that is described by fields, checked against those and the extra names. */
static gboolean
check_field_keys (const JsonRef *obj, const Field *fields, gsize n, const char *const *extra,
                  GError **error)
{
  g_autoptr (GPtrArray) keys = g_ptr_array_new ();

  for (gsize i = 0; i < n; i++)
    g_ptr_array_add (keys, (gpointer)fields[i].key);
  for (; extra != NULL && *extra != NULL; extra++)
    g_ptr_array_add (keys, (gpointer)*extra);
  g_ptr_array_add (keys, NULL);
  return json_check_keys (obj, (const char *const *)keys->pdata, error);
}

#define DEV(key, member, min, max, unit)                                                           \
  {                                                                                                \
    key, offsetof (GpuProfile, member), min, max, unit, FALSE                                      \
  }

static gboolean
read_device (const JsonRef *root, GpuProfile *g, GPtrArray *prov, GError **error)
{
  static const Field fields[] = {
      DEV ("tdp_W", tdp_w, 1, 1e5, 1),
      DEV ("sm_count", sm_count, 1, 1e5, 1),
      DEV ("boost_MHz", boost_Hz, 1, 1e5, 1e6),
      DEV ("memory_GiB", memory_bytes, 0.1, 1e5, 1073741824.0),
      DEV ("hbm_GBps", hbm_Bps, 1, 1e6, 1e9),
      DEV ("nvlink_GBps", nvlink_Bps, 0, 1e6, 1e9),
      DEV ("pcie_GBps", pcie_Bps, 0, 1e6, 1e9),
      DEV ("kernel_floor_us", kernel_floor_s, 1e-3, 1e4, 1e-6),
      DEV ("launch_stream_us", launch_stream_s, 1e-3, 1e4, 1e-6),
      DEV ("launch_graph_us", launch_graph_s, 1e-3, 1e4, 1e-6),
  };
  static const char *const extra[] = {"scaleup_gpus", "blas_workspace_MiB", "te_workspace_MiB",
                                      NULL};
  JsonRef obj;
  double domain = 0, workspace_mib = 0, te_mib = 0;

  if (!json_get_object (root, "device", &obj, error) ||
      !check_field_keys (&obj, fields, G_N_ELEMENTS (fields), extra, error) ||
      !json_opt_sourced (&obj, "blas_workspace_MiB", 0, 4096, &workspace_mib, prov, error) ||
      !json_opt_sourced (&obj, "te_workspace_MiB", 0, 4096, &te_mib, prov, error) ||
      !read_fields (&obj, fields, G_N_ELEMENTS (fields), g, prov, error) ||
      !json_get_sourced (&obj, "scaleup_gpus", 1, 1e6, &domain, prov, error))
    return FALSE;
  g->scaleup_domain = (int)domain;
  g->blas_workspace_bytes = workspace_mib * 1048576.0;
  g->te_workspace_bytes = te_mib * 1048576.0;
  if (g->scaleup_domain != domain)
    return json_fail (&obj, JSON_ERROR_RANGE, error, "scaleup_gpus is not a whole number (%g)",
                      domain);
  return TRUE;
}

static gboolean
read_peaks (const JsonRef *root, GpuProfile *g, GPtrArray *prov, GError **error)
{
  JsonRef obj;

  if (!json_get_object (root, "peak_TFLOPs", &obj, error) ||
      !json_check_keys (&obj, dtype_names, error))
    return FALSE;
  if (json_len (&obj) == 0)
    return json_fail (&obj, JSON_ERROR_MISSING, error, "no peak at all (at least one type)");
  for (int t = 0; t < DT_COUNT; t++) {
    double v = 0;
    if (!json_opt_sourced (&obj, dtype_names[t], 1e-3, 1e9, &v, prov, error))
      return FALSE;
    g->peak_flops[t] = v * 1e12;
  }
  return TRUE;
}

static gboolean
read_memory_fractions (const JsonRef *root, GpuProfile *g, GPtrArray *prov, GError **error)
{
  static const char *const extra[] = {"cast_fp8", NULL};
  Field fields[MEMK_COUNT];
  JsonRef obj;

  for (gsize i = 0; i < MEMK_COUNT; i++)
    fields[i] = (Field){
        memk_names[i], offsetof (GpuProfile, memk_fraction) + i * sizeof (double), 1e-3, 1.5, 1,
        FALSE};
  return json_get_object (root, "memory_fraction", &obj, error) &&
         check_field_keys (&obj, fields, MEMK_COUNT, extra, error) &&
         read_fields (&obj, fields, MEMK_COUNT, g, prov, error) &&
         json_opt_sourced (&obj, "cast_fp8", 1e-3, 1.5, &g->cast_fp8_fraction, prov, error);
}

static gboolean
read_tiles (const JsonRef *gemm, GpuProfile *g, GError **error)
{
  JsonRef arr;

  if (!json_get_array (gemm, "tiles", &arr, error))
    return FALSE;
  g->n_tiles = json_len (&arr);
  if (g->n_tiles < 1 || g->n_tiles > GEMM_MAX_TILES)
    return json_fail (&arr, JSON_ERROR_RANGE, error, "%d tiles (1 to %d)", g->n_tiles,
                      GEMM_MAX_TILES);
  for (int i = 0; i < g->n_tiles; i++) {
    JsonRef tile = json_item (&arr, i), m, n;
    if (!json_is_array (&tile) || json_len (&tile) != 2)
      return json_fail (&tile, JSON_ERROR_TYPE, error, "a tile is two numbers, [rows, columns]");
    m = json_item (&tile, 0);
    n = json_item (&tile, 1);
    if (!json_value_double (&m, 1, 4096, &g->tile_m[i], error) ||
        !json_value_double (&n, 1, 4096, &g->tile_n[i], error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
read_splits (const JsonRef *gemm, GpuProfile *g, GError **error)
{
  JsonRef arr;

  if (!json_get_array (gemm, "splits", &arr, error))
    return FALSE;
  g->n_splits = json_len (&arr);
  if (g->n_splits < 1 || g->n_splits > GEMM_MAX_SPLITS)
    return json_fail (&arr, JSON_ERROR_RANGE, error, "%d splits (1 to %d)", g->n_splits,
                      GEMM_MAX_SPLITS);
  for (int i = 0; i < g->n_splits; i++) {
    JsonRef item = json_item (&arr, i);
    if (!json_value_double (&item, 1, 1024, &g->splits[i], error))
      return FALSE;
    if (i == 0 ? g->splits[0] != 1 : g->splits[i] <= g->splits[i - 1])
      return json_fail (&item, JSON_ERROR_RANGE, error, "splits start at 1 and ascend");
  }
  return TRUE;
}

#define GEMM(key, member, min, max, unit)                                                          \
  {                                                                                                \
    key, offsetof (GemmParams, member), min, max, unit, FALSE                                      \
  }
#define ALIGN(key, i)                                                                              \
  {                                                                                                \
    key, offsetof (GemmParams, align_factor) + (i) * sizeof (double), 0.01, 1, 1, FALSE            \
  }
#define ROLE(key, role)                                                                            \
  {                                                                                                \
    key, offsetof (GemmParams, role_factor) + (role) * sizeof (double), 0.1, 10, 1, FALSE          \
  }

/* 0 .. 9 for 4^0 .. 4^9; -1 for what is no node. */
static int
node_index (double x)
{
  double at = 1;
  for (int i = 0; i < GEMM_TABLE_SIDE; i++, at *= 4)
    if (x == at)
      return i;
  return -1;
}

/* "table": { "kind", "source", "nodes": [[m, n, k, us], …] } */
static gboolean
read_gemm_table (const JsonRef *obj, GemmParams *p, GError **error)
{
  static const char *const keys[] = {"kind", "source", "nodes", NULL};
  const char *kind = NULL, *source = NULL;
  JsonRef table, nodes;
  if (!json_has (obj, "table"))
    return TRUE;
  if (!json_get_object (obj, "table", &table, error) || !json_check_keys (&table, keys, error) ||
      !json_get_string (&table, "kind", &kind, error) ||
      !json_get_string (&table, "source", &source, error) ||
      !json_get_array (&table, "nodes", &nodes, error))
    return FALSE;
  for (int i = 0; i < json_len (&nodes); i++) {
    JsonRef row = json_item (&nodes, i), cell;
    double v[4] = {0};
    int at[3], flat = 0;
    if (json_len (&row) != 4)
      return json_fail (&row, JSON_ERROR_TYPE, error, "a node is [m, n, k, us]");
    for (int c = 0; c < 4; c++) {
      cell = json_item (&row, c);
      if (!json_value_double (&cell, 1e-3, 1e9, &v[c], error))
        return FALSE;
    }
    for (int c = 0; c < 3; c++) {
      at[c] = node_index (v[c]);
      if (at[c] < 0)
        return json_fail (&row, JSON_ERROR_RANGE, error,
                          "a node has m, n, k of 1, 4, 16 … 262144 (found %g)", v[c]);
      flat = flat * GEMM_TABLE_SIDE + at[c];
    }
    p->table_s[flat] = (float)(v[3] * 1e-6);
  }
  return TRUE;
}

static gboolean
read_gemm_type (const JsonRef *obj, GemmParams *p, GPtrArray *prov, GError **error)
{
  static const Field fields[] = {
      GEMM ("floor_us", floor_s, 1e-3, 1e4, 1e-6),
      GEMM ("burst_efficiency", burst_efficiency, 0.01, 2, 1),
      GEMM ("sustained_efficiency", sustained_efficiency, 0.01, 2, 1),
      GEMM ("half_FLOPs", half_flops, 1, 1e18, 1),
      GEMM ("k0", k0, 0, 1e5, 1),
      GEMM ("k_quantum", k_quantum, 1, 4096, 1),
      GEMM ("small_tile", small_tile, 0, 1e4, 1),
      GEMM ("wave_smoothing", wave_smoothing, 0, 1, 1),
      GEMM ("split_us", split_s, 0, 1e4, 1e-6),
      GEMM ("memory_fraction", memory_fraction, 0.01, 1.5, 1),
  };
  static const Field aligns[] = {ALIGN ("2", 0),  ALIGN ("4", 1),  ALIGN ("8", 2),  ALIGN ("16", 3),
                                 ALIGN ("32", 4), ALIGN ("64", 5), ALIGN ("128", 6)};
  static const Field roles[] = {ROLE ("dgrad", GEMM_DGRAD), ROLE ("wgrad", GEMM_WGRAD)};
  static const char *const extra[] = {"align_factor", "role_factor", "table", NULL};
  JsonRef align, role;

  if (!check_field_keys (obj, fields, G_N_ELEMENTS (fields), extra, error) ||
      !read_fields (obj, fields, G_N_ELEMENTS (fields), p, prov, error))
    return FALSE;
  if (p->sustained_efficiency > p->burst_efficiency)
    return json_fail (obj, JSON_ERROR_INCONSISTENT, error,
                      "sustained_efficiency %g is above burst_efficiency %g",
                      p->sustained_efficiency, p->burst_efficiency);
  if (!json_get_object (obj, "align_factor", &align, error) ||
      !check_field_keys (&align, aligns, G_N_ELEMENTS (aligns), NULL, error) ||
      !read_fields (&align, aligns, G_N_ELEMENTS (aligns), p, prov, error) ||
      !json_get_object (obj, "role_factor", &role, error) ||
      !check_field_keys (&role, roles, G_N_ELEMENTS (roles), NULL, error) ||
      !read_fields (&role, roles, G_N_ELEMENTS (roles), p, prov, error) ||
      !read_gemm_table (obj, p, error))
    return FALSE;
  p->role_factor[GEMM_FORWARD] = 1;
  p->present = TRUE;
  return TRUE;
}

static gboolean
read_gemm (const JsonRef *root, GpuProfile *g, GPtrArray *prov, GError **error)
{
  static const char *const keys[] = {"tiles", "splits", "types", NULL};
  JsonRef gemm, types;

  if (!json_get_object (root, "gemm", &gemm, error) || !json_check_keys (&gemm, keys, error) ||
      !read_tiles (&gemm, g, error) || !read_splits (&gemm, g, error) ||
      !json_get_object (&gemm, "types", &types, error) ||
      !json_check_keys (&types, dtype_names, error))
    return FALSE;
  if (json_len (&types) == 0)
    return json_fail (&types, JSON_ERROR_MISSING, error, "no operand type (at least one)");
  for (int t = 0; t < DT_COUNT; t++) {
    JsonRef type;
    if (!json_has (&types, dtype_names[t]))
      continue;
    if (!json_get_object (&types, dtype_names[t], &type, error))
      return FALSE;
    if (g->peak_flops[t] == 0)
      return json_fail (&type, JSON_ERROR_INCONSISTENT, error, "no peak_TFLOPs.%s", dtype_names[t]);
    if (!read_gemm_type (&type, &g->gemm[t], prov, error))
      return FALSE;
  }
  return TRUE;
}

#define PASS(key, member, pass, min, max, unit, opt)                                               \
  {                                                                                                \
    key, offsetof (AttnParams, member) + (gsize)(pass) * sizeof (double), min, max, unit, opt      \
  }
#define DIM(key, pass, i)                                                                          \
  {                                                                                                \
    key, offsetof (AttnParams, efficiency) + ((gsize)(pass)*ATTN_N_DIMS + (i)) * sizeof (double),  \
        0.01, 2, 1, FALSE                                                                          \
  }

static gboolean
read_attention_pass (const JsonRef *kernel, const char *name, Pass pass, AttnParams *p,
                     GPtrArray *prov, GError **error)
{
  const Field fields[] = {
      PASS ("floor_us", floor_s, pass, 1e-3, 1e4, 1e-6, FALSE),
      PASS ("kv0", kv0, pass, 0, 1e5, 1, FALSE),
      PASS ("causal_factor", causal_factor, pass, 0.1, 1.5, 1, FALSE),
      PASS ("fp8_factor", fp8_factor, pass, 0.01, 2, 1, TRUE),
  };
  const Field dims[] = {DIM ("32", pass, 0), DIM ("64", pass, 1), DIM ("128", pass, 2),
                        DIM ("256", pass, 3)};
  static const char *const extra[] = {"efficiency", NULL};
  JsonRef obj, eff;

  return json_get_object (kernel, name, &obj, error) &&
         check_field_keys (&obj, fields, G_N_ELEMENTS (fields), extra, error) &&
         read_fields (&obj, fields, G_N_ELEMENTS (fields), p, prov, error) &&
         json_get_object (&obj, "efficiency", &eff, error) &&
         check_field_keys (&eff, dims, G_N_ELEMENTS (dims), NULL, error) &&
         read_fields (&eff, dims, G_N_ELEMENTS (dims), p, prov, error);
}

static gboolean
read_attention (const JsonRef *root, GpuProfile *g, GPtrArray *prov, GError **error)
{
  static const char *const keys[] = {"sustained_factor", "kernels", NULL};
  static const char *const parts[] = {"block_q", "dim_quantum", "forward", "backward", NULL};
  JsonRef obj, kernels;

  if (!json_get_object (root, "attention", &obj, error) || !json_check_keys (&obj, keys, error) ||
      !json_get_sourced (&obj, "sustained_factor", 0.1, 1, &g->attn_sustained, prov, error) ||
      !json_get_object (&obj, "kernels", &kernels, error) ||
      /* unfused attention is made of GEMMs and softmax: it has no numbers of its own */
      !json_check_keys (&kernels, attn_kernel_names + ATTN_FLASH1, error))
    return FALSE;
  for (int k = ATTN_FLASH1; k < ATTN_COUNT; k++) {
    AttnParams *p = &g->attn[k];
    JsonRef kernel;
    if (!json_has (&kernels, attn_kernel_names[k]))
      continue;
    if (!json_get_object (&kernels, attn_kernel_names[k], &kernel, error) ||
        !json_check_keys (&kernel, parts, error) ||
        !json_get_sourced (&kernel, "block_q", 1, 4096, &p->block_q, prov, error) ||
        !json_get_sourced (&kernel, "dim_quantum", 1, 256, &p->dim_quantum, prov, error) ||
        !read_attention_pass (&kernel, "forward", PASS_FORWARD, p, prov, error) ||
        !read_attention_pass (&kernel, "backward", PASS_BACKWARD, p, prov, error))
      return FALSE;
    p->present = TRUE;
  }
  return TRUE;
}

char **
read_gpu_aliases (const JsonRef *root, GError **error)
{
  g_autoptr (GPtrArray) out = g_ptr_array_new_with_free_func (g_free);
  JsonRef arr;

  if (json_has (root, "aliases")) {
    if (!json_get_array (root, "aliases", &arr, error))
      return NULL;
    for (int i = 0; i < json_len (&arr); i++) {
      JsonRef item = json_item (&arr, i);
      const char *alias;
      if (!json_value_string (&item, &alias, error))
        return NULL;
      g_ptr_array_add (out, g_strdup (alias));
    }
  }
  g_ptr_array_add (out, NULL);
  return (char **)g_ptr_array_free (g_steal_pointer (&out), FALSE);
}

static gboolean
read_head (const JsonRef *root, GpuProfile *g, GError **error)
{
  static const char *const keys[] = {"format",    "name",        "aliases",         "note",
                                     "device",    "peak_TFLOPs", "memory_fraction", "gemm",
                                     "attention", NULL};
  const char *name = NULL, *note = NULL;
  gint64 format = 0;

  if (!json_check_keys (root, keys, error) ||
      !json_get_int (root, "format", 1, 1, &format, error) ||
      !json_opt_string (root, "name", &name, error) ||
      !json_opt_string (root, "note", &note, error))
    return FALSE;
  if (name != NULL) {
    g_free (g->name);
    g->name = g_strdup (name);
  }
  g->aliases = read_gpu_aliases (root, error);
  return g->aliases != NULL;
}

GpuProfile *
read_gpu_profile (const JsonRef *root, const char *name, GPtrArray *prov, GError **error)
{
  g_autoptr (GpuProfile) g = gpu_profile_new (name);
  GError *local = NULL;

  if (!json_is_object (root)) {
    json_fail (root, JSON_ERROR_TYPE, error, "a device profile is an object");
    return NULL;
  }
  if (!read_head (root, g, error) || !read_device (root, g, prov, error) ||
      !read_peaks (root, g, prov, error) || !read_memory_fractions (root, g, prov, error) ||
      !read_gemm (root, g, prov, error) || !read_attention (root, g, prov, error))
    return NULL;
  if (!gpu_profile_prepare (g, &local)) {
    json_fail (root, JSON_ERROR_INCONSISTENT, error, "%s", local->message);
    g_error_free (local);
    return NULL;
  }
  return g_steal_pointer (&g);
}
