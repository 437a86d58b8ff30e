/* Tables of kernel and collective measurements. Kernel tables measure one kernel in a loop of
 * milliseconds on an otherwise idle part, hence duty 0 of the device model. */
#include "validate.h"

#include <math.h>
#include <string.h>

#include "fabric.h"
#include "fifth.h"
#include "gpu_profile.h"

static const StepInterval kernel_interval = {0.8, 1.25};

static const char *
cell (const RunContext *c, guint row, const char *col)
{
  return csv_cell (c->t, row, csv_col (c->t, col));
}

static double
number_at (const RunContext *c, guint row, int col)
{
  const char *text = csv_cell (c->t, row, col);
  char *end = NULL;
  double v = g_ascii_strtod (text, &end);
  return end == text || *end != '\0' || !isfinite (v) || v < 0 || v > 1e18 ? 0 : v;
}

static double
number (const RunContext *c, guint row, const char *col)
{
  return number_at (c, row, csv_col (c->t, col));
}

static int
index_of (const char *const *names, const char *name)
{
  for (int i = 0; names[i] != NULL; i++)
    if (strcmp (names[i], name) == 0)
      return i;
  return -1;
}

static DType
dtype_of (const char *text)
{
  static const struct {
    const char *part;
    DType type;
  } known[] = {{"mxfp8", DT_MXFP8}, {"fp8", DT_FP8},   {"fp4", DT_FP4},   {"bf16", DT_BF16},
               {"fp16", DT_FP16},   {"half", DT_FP16}, {"tf32", DT_TF32}, {"fp32", DT_FP32}};
  for (gsize i = 0; i < G_N_ELEMENTS (known); i++)
    if (strstr (text, known[i].part) != NULL)
      return known[i].type;
  return DT_COUNT;
}

/* Groups a row finer than by one column, when no column was asked for. */
static void G_GNUC_PRINTF (3, 4)
group_as (const RunContext *c, RowResult *r, const char *format, ...)
{
  va_list args;
  if (!c->own_groups)
    return;
  va_start (args, format);
  r->group = g_strdup_vprintf (format, args);
  va_end (args);
}

/* ---- GEMM ---- */

static gboolean
gemm_judged (const GemmShape *s)
{
  double flops = 2.0 * (double)s->m * (double)s->n * (double)s->k * (double)s->batch;
  return flops > 1e10 && fifth_of (s->m, s->n, s->k) == FIFTH_HELD;
}

static gboolean
gemm_shape (const RunContext *c, guint row, DType type, GemmShape *s)
{
  double batch = number (c, row, "batch");
  *s = (GemmShape){.m = (gint64)number (c, row, "m"),
                   .n = (gint64)number (c, row, "n"),
                   .k = (gint64)number (c, row, "k"),
                   .batch = batch > 0 ? (gint64)batch : 1,
                   .dtype = type,
                   .role = GEMM_FORWARD};
  return s->m > 0 && s->n > 0 && s->k > 0;
}

static void
gemm_row (const RunContext *c, guint row, GArray *rows)
{
  GemmShape s;
  DType type = dtype_of (cell (c, row, "dtype"));
  const GpuProfile *g = store_gpu (c->store, cell (c, row, "gpu"), NULL, NULL);
  if (g == NULL || type == DT_COUNT || gpu_peak_flops (g, type) <= 0) {
    g_autofree char *why =
        g_strdup_printf ("no profile for %s in %s", cell (c, row, "gpu"), cell (c, row, "dtype"));
    validate_skip (rows, why);
    return;
  }
  double us = number (c, row, "time_us"), tflops = number (c, row, "tflops");
  if (!gemm_shape (c, row, type, &s) || (us <= 0 && tflops <= 0)) {
    validate_skip (rows, "shape or result is missing");
    return;
  }
  RowResult *r;
  double t = gpu_gemm_s (g, &s, 0);
  double flops = 2.0 * (double)s.m * (double)s.n * (double)s.k * (double)s.batch;
  if (us > 0)
    r = validate_add (rows, "time_us", us, t * 1e6, kernel_interval);
  else
    r = validate_add (rows, "tflops", tflops, flops / t * 1e-12, kernel_interval);
  r->judged = gemm_judged (&s);
  group_as (c, r, "%s %s", cell (c, row, "gpu"), cell (c, row, "dtype"));
}

static gboolean
in_fp8 (const RunContext *c)
{
  g_autofree char *base = g_path_get_basename (csv_name (c->t));
  return strstr (base, "fp8") != NULL;
}

static void
wide_id (const RunContext *c, guint row, const WideColumn *w, RowResult *r)
{
  r->id = g_strdup_printf ("%u:%s", row + 1, csv_col_name (c->t, (guint)w->col));
  r->group = g_strdup (csv_col_name (c->t, (guint)w->col));
}

static void
gemm_wide_row (const RunContext *c, guint row, GArray *rows)
{
  DType type = in_fp8 (c) ? DT_FP8 : DT_BF16;
  GemmShape s;
  for (guint i = 0; i < c->cells->len; i++) {
    const WideColumn *w = &g_array_index (c->cells, WideColumn, i);
    double us = number_at (c, row, w->col);
    const GpuProfile *g = store_gpu (c->store, w->gpu, NULL, NULL);
    if (us <= 0)
      continue;
    if (g == NULL || gpu_peak_flops (g, type) <= 0 || !gemm_shape (c, row, type, &s)) {
      validate_skip (rows, "no profile or no shape");
      wide_id (c, row, w, &g_array_index (rows, RowResult, rows->len - 1));
      continue;
    }
    double t = gpu_gemm_s (g, &s, 0);
    if (type == DT_FP8) /* the collectors time the cast of the activations too */
      t += gpu_cast_fp8_s (g, (double)s.m * (double)s.k);
    RowResult *r = validate_add (rows, "time_us", us, t * 1e6, kernel_interval);
    wide_id (c, row, w, r);
    r->judged = gemm_judged (&s);
  }
}

/* ---- attention ---- */

static double
attention_s (const GpuProfile *g, AttnKernel kernel, AttnShape *s, const char *pass)
{
  double t = 0;
  if (strstr (pass, "fwd") != NULL || strcmp (pass, "both") == 0) {
    s->pass = PASS_FORWARD;
    t += gpu_attention_s (g, kernel, s, 0);
  }
  if (strstr (pass, "bwd") != NULL || strcmp (pass, "both") == 0) {
    s->pass = PASS_BACKWARD;
    t += gpu_attention_s (g, kernel, s, 0);
  }
  return t;
}

static gboolean
attention_shape (const RunContext *c, guint row, gboolean causal, AttnShape *s)
{
  double kv = number (c, row, "kv_heads");
  *s = (AttnShape){.batch = (gint64)number (c, row, "batch"),
                   .heads = (gint64)number (c, row, "heads"),
                   .kv_heads = (gint64)(kv > 0 ? kv : number (c, row, "heads")),
                   .seq_q = (gint64)number (c, row, "seq"),
                   .seq_kv = (gint64)number (c, row, "seq"),
                   .head_dim_qk = (gint64)number (c, row, "head_dim"),
                   .head_dim_v = (gint64)number (c, row, "head_dim"),
                   .causal = causal,
                   .dtype = DT_BF16};
  return s->batch > 0 && s->heads > 0 && s->seq_q > 0 && s->head_dim_qk > 0;
}

static const GpuProfile *
attention_part (const RunContext *c, const char *gpu, const char *kernel_name, AttnKernel *kernel)
{
  const GpuProfile *g = store_gpu (c->store, gpu, NULL, NULL);
  int k = kernel_name != NULL ? index_of (attn_kernel_names, kernel_name) : -1;
  if (g == NULL || k < 0)
    return NULL;
  *kernel = gpu_attention_kernel (g, (AttnKernel)k);
  return *kernel == ATTN_UNFUSED ? NULL : g;
}

static void
attention_row (const RunContext *c, guint row, GArray *rows)
{
  AttnShape s;
  AttnKernel kernel;
  const char *impl = cell (c, row, "impl"), *pass = cell (c, row, "pass");
  const GpuProfile *g = attention_part (
      c, cell (c, row, "gpu"), run_rules_find (c->rules, "kernel", "", impl, NULL), &kernel);
  if (g == NULL) {
    g_autofree char *why = g_strdup_printf ("no profile of %s on %s", impl, cell (c, row, "gpu"));
    validate_skip (rows, why);
    return;
  }
  double us = number (c, row, "time_us"), tflops = number (c, row, "tflops");
  gboolean causal = strcmp (cell (c, row, "causal"), "1") == 0;
  if (!attention_shape (c, row, causal, &s) || (us <= 0 && tflops <= 0)) {
    validate_skip (rows, "shape or result is missing");
    return;
  }
  double t = attention_s (g, kernel, &s, pass);
  double factor = strcmp (pass, "fwd") == 0 ? 1.0 : strcmp (pass, "bwd") == 0 ? 2.5 : 3.5;
  double flops = factor * 4.0 * (double)s.batch * (double)s.heads * (double)s.seq_q *
                 (double)s.seq_q * (double)s.head_dim_qk * (causal ? 0.5 : 1.0);
  RowResult *r = us > 0 ? validate_add (rows, "time_us", us, t * 1e6, kernel_interval)
                        : validate_add (rows, "tflops", tflops, flops / t * 1e-12, kernel_interval);
  r->judged = s.seq_q >= 2048;
  group_as (c, r, "%s %s %s", cell (c, row, "gpu"), impl, pass);
}

static void
attention_wide_row (const RunContext *c, guint row, GArray *rows)
{
  AttnShape s;
  gboolean causal = csv_col (c->t, "kv_heads") >= 0; /* the other table has no such column */
  for (guint i = 0; i < c->cells->len; i++) {
    const WideColumn *w = &g_array_index (c->cells, WideColumn, i);
    double us = number_at (c, row, w->col);
    AttnKernel kernel;
    const GpuProfile *g = attention_part (c, w->gpu, w->kernel, &kernel);
    if (us <= 0)
      continue;
    if (g == NULL || !attention_shape (c, row, causal, &s))
      validate_skip (rows, "no profile of this kernel on this part");
    else
      validate_add (rows, "time_us", us, attention_s (g, kernel, &s, "fwd") * 1e6, kernel_interval)
          ->judged = s.seq_q >= 2048;
    wide_id (c, row, w, &g_array_index (rows, RowResult, rows->len - 1));
  }
}

/* ---- collectives ---- */

/* The version of a row is an input of NCCL's choice; the cost numbers are the fabric's. */
static void
set_version (Fabric *f, const char *text)
{
  int version = nccl_version_parse (text);
  if (version > 0 && version != f->nccl_version) {
    f->nccl_version = version;
    fabric_changed (f);
  }
}

static void
collective_row (const RunContext *c, guint row, GArray *rows)
{
  int op = index_of (coll_op_names, cell (c, row, "op"));
  const char *name = run_rules_find (c->rules, "collective", cell (c, row, "gpu"),
                                     cell (c, row, "nic"), cell (c, row, "system"));
  Fabric *f = name != NULL ? store_fabric (c->store, name, NULL, NULL) : NULL;
  if (f == NULL || op < 0) {
    g_autofree char *why =
        g_strdup_printf ("no fabric for %s, %s", cell (c, row, "gpu"), cell (c, row, "system"));
    validate_skip (rows, why);
    return;
  }
  int ranks = (int)number (c, row, "ranks"), nodes = MAX (1, (int)number (c, row, "nodes"));
  double bytes = number (c, row, "size_bytes"), us = number (c, row, "time_us");
  double busbw = number (c, row, "busbw_GBps");
  if (ranks < 2 || bytes <= 0 || ranks % nodes != 0) {
    validate_skip (rows, "ranks or size are missing");
    return;
  }
  if (us <= 0 && busbw > 0)
    us = bytes * coll_bus_factor ((CollOp)op, ranks) / busbw / 1e3;
  if (f->domain_gpus > 8 && ranks <= f->domain_gpus)
    nodes = 1; /* one scale-up domain */
  set_version (f, cell (c, row, "nccl_version"));
  CollGroup g = {ranks, ranks / nodes, nodes, 1};
  CollChoice how = {(CollAlgo)index_of (coll_algo_names, cell (c, row, "algo")),
                    (CollProto)index_of (coll_proto_names, cell (c, row, "proto"))};
  double t = nodes > 1 && !(f->nics > 0) ? INFINITY : coll_time_s (f, (CollOp)op, &g, bytes, &how);
  if (us <= 0 || !isfinite (t) || t <= 0)
    validate_skip (rows, "no time, or no network between the nodes");
  else
    validate_add (rows, "time_us", us, t * 1e6, kernel_interval);
}

static const char judged_gemm[] =
    "2mnk over 1e10, shapes of the fifth that no fit and no shipped table has seen:";
static const char judged_attention[] = "sequence 2k and over:";

static const char *const gemm_needed[] = {"m", "n", "k", "gpu", "dtype", NULL};
static const char *const gemm_wide_needed[] = {"m", "n", "k", NULL};
static const char *const attention_needed[] = {"seq", "head_dim", "pass", "impl", NULL};
static const char *const attention_wide_needed[] = {"batch", "seq", "heads", "head_dim", NULL};
static const char *const coll_needed[] = {"op", "size_bytes", "time_us", "busbw_GBps", NULL};

const TableKind table_gemm = {"gemm", gemm_needed, "gpu", "GEMM", judged_gemm, gemm_row};
const TableKind table_gemm_wide = {"gemm", gemm_wide_needed, NULL, "GEMM, a column a device",
                                   judged_gemm, gemm_wide_row};
const TableKind table_attention = {"attention", attention_needed, "gpu", "attention",
                                   judged_attention, attention_row};
const TableKind table_attention_wide = {"attention", attention_wide_needed, NULL,
                                        "attention, a column a device", judged_attention,
                                        attention_wide_row};
const TableKind table_collectives = {"collectives", coll_needed, "set", "collectives", NULL,
                                     collective_row};
