/* Tables of kernel and collective measurements. Kernel tables measure one kernel in a loop of
 * milliseconds on an otherwise idle part, hence duty 0 of the device model. */
#include "coll_diagnose.h"
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

/* Scaling by blocks is a type of its own on parts that have it. */
static DType
scaled_type (const GpuProfile *g, DType type, gboolean blocks)
{
  gboolean own = g != NULL && gpu_peak_flops (g, DT_MXFP8) > 0;
  return type == DT_FP8 && blocks && own ? DT_MXFP8 : type;
}

static void
gemm_row (const RunContext *c, guint row, GArray *rows)
{
  GemmShape s;
  DType type = dtype_of (cell (c, row, "dtype"));
  const GpuProfile *g = store_gpu (c->store, cell (c, row, "gpu"), NULL, NULL);
  type = scaled_type (g, type, strstr (cell (c, row, "dtype"), "block") != NULL);
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

/* AITER: the best tuned kernel a shape, on a part named by its architecture and compute units. */
static void
gemm_aiter_row (const RunContext *c, guint row, GArray *rows)
{
  g_autofree char *part = g_strdup_printf ("%s-%s", cell (c, row, "gfx"), cell (c, row, "cu"));
  const char *named = cell (c, row, "dtype"), *scaling = cell (c, row, "scaling");
  const char *device = run_rules_find (c->rules, "wide", part, NULL, NULL);
  const GpuProfile *g = device != NULL ? store_gpu (c->store, device, NULL, NULL) : NULL;
  DType type = *named != '\0' ? dtype_of (named) : *scaling != '\0' ? DT_FP8 : DT_BF16;
  GemmShape s;
  double us = number (c, row, "latency_us");
  type = scaled_type (g, type, g_str_has_prefix (scaling, "block"));
  if (g == NULL || type == DT_COUNT || gpu_peak_flops (g, type) <= 0 || us <= 0 ||
      !gemm_shape (c, row, type, &s)) {
    g_autofree char *why = g_strdup_printf ("no profile for %s, or no shape or time", part);
    validate_skip (rows, why);
    return;
  }
  RowResult *r = validate_add (rows, "time_us", us, gpu_gemm_s (g, &s, 0) * 1e6, kernel_interval);
  r->judged = gemm_judged (&s);
  group_as (c, r, "%s %s%s%s", part, dtype_names[type], *scaling != '\0' ? " " : "", scaling);
}

static void
gemm_deepbench_row (const RunContext *c, guint row, GArray *rows)
{
  const char *precision = cell (c, row, "precision");
  const GpuProfile *g = store_gpu (c->store, cell (c, row, "gpu"), NULL, NULL);
  DType type = g_str_has_prefix (precision, "fp16") ? DT_FP16 : DT_FP32;
  GemmShape s;
  double ms = number (c, row, "time_ms");
  if (g == NULL || gpu_peak_flops (g, type) <= 0 || ms <= 0 || !gemm_shape (c, row, type, &s)) {
    validate_skip (rows, "no profile, or no shape or time");
    return;
  }
  RowResult *r =
      validate_add (rows, "time_us", ms * 1e3, gpu_gemm_s (g, &s, 0) * 1e6, kernel_interval);
  r->judged = gemm_judged (&s);
  group_as (c, r, "%s %s", cell (c, row, "gpu"), precision);
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

/* Attention as PyTorch writes it out, on scores of s x s in 16 bits: matrix product, scale, mask
 * where causal, softmax, dropout, matrix product; backward the same in reverse with four products.
 */
static double
unfused_s (const GpuProfile *g, const AttnShape *s)
{
  gint64 batch = s->batch * s->heads;
  double cells = (double)batch * (double)s->seq_q * (double)s->seq_kv;
  GemmShape scores = {
      .m = s->seq_q, .n = s->seq_kv, .k = s->head_dim_qk, .batch = batch, .dtype = DT_FP16};
  GemmShape values = {
      .m = s->seq_q, .n = s->head_dim_v, .k = s->seq_kv, .batch = batch, .dtype = DT_FP16};
  double t = gpu_gemm_s (g, &scores, 0) + gpu_gemm_s (g, &values, 0);

  if (s->pass == PASS_BACKWARD)
    return 2 * t + gpu_memory_s (g, MEMK_SOFTMAX_BWD, 6 * cells) +
           gpu_memory_s (g, MEMK_ELEMENTWISE, 4 * cells);
  return t + gpu_memory_s (g, MEMK_SOFTMAX_FWD, 4 * cells) +
         gpu_memory_s (g, MEMK_ELEMENTWISE, (s->causal ? 8 : 4) * cells);
}

static double
attention_pass_s (const GpuProfile *g, AttnKernel kernel, const AttnShape *s)
{
  return kernel == ATTN_UNFUSED ? unfused_s (g, s) : gpu_attention_s (g, kernel, s, 0);
}

static double
attention_s (const GpuProfile *g, AttnKernel kernel, AttnShape *s, const char *pass)
{
  double t = 0;
  if (strstr (pass, "fwd") != NULL || strcmp (pass, "both") == 0) {
    s->pass = PASS_FORWARD;
    t += attention_pass_s (g, kernel, s);
  }
  if (strstr (pass, "bwd") != NULL || strcmp (pass, "both") == 0) {
    s->pass = PASS_BACKWARD;
    t += attention_pass_s (g, kernel, s);
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
  return *kernel == ATTN_UNFUSED && k != ATTN_UNFUSED ? NULL : g;
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

/* A row that is further off names its likely cause. */
static const double far_off_pct = 40;

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

/* What a row says, beside its prediction. */
typedef struct {
  CollOp op;
  CollGroup group;
  CollPoint point;
} CollRow;

/* NULL, or why the row is skipped. */
static const char *
collective_of (const RunContext *c, guint row, Fabric *f, CollRow *out)
{
  int op = index_of (coll_op_names, cell (c, row, "op"));
  int ranks = (int)number (c, row, "ranks"), nodes = MAX (1, (int)number (c, row, "nodes"));
  double bytes = number (c, row, "size_bytes"), us = number (c, row, "time_us");
  double busbw = number (c, row, "busbw_GBps");
  if (op < 0 || ranks < 2 || bytes <= 0 || ranks % nodes != 0)
    return "ranks or size are missing";
  if (us <= 0 && busbw > 0)
    us = bytes * coll_bus_factor ((CollOp)op, ranks) / busbw / 1e3;
  if (f->domain_gpus > 8 && ranks <= f->domain_gpus)
    nodes = 1; /* one scale-up domain */
  set_version (f, cell (c, row, "nccl_version"));
  CollGroup g = {.ranks = ranks, .ranks_per_node = ranks / nodes, .nodes = nodes, .sharers = 1};
  CollChoice how = {(CollAlgo)index_of (coll_algo_names, cell (c, row, "algo")),
                    (CollProto)index_of (coll_proto_names, cell (c, row, "proto"))};
  double t = nodes > 1 && !(f->nics > 0) ? INFINITY : coll_time_s (f, (CollOp)op, &g, bytes, &how);
  if (us <= 0 || !isfinite (t) || t <= 0)
    return "no time, or no network between the nodes";
  *out = (CollRow){(CollOp)op, g, {bytes, us * 1e-6, t}};
  return NULL;
}

/* The likely cause of a row's error, from its whole set; NULL when nothing tells. Sets stand
 * together in the table. */
static const char *
cause_of (const RunContext *c, guint row, Fabric *f, const CollRow *own)
{
  const char *set = cell (c, row, "set");
  g_autoptr (GArray) points = g_array_new (FALSE, FALSE, sizeof (CollPoint));
  guint first = row, last = row;
  CollCause cause[CAUSE_COUNT];
  if (*set == '\0')
    return NULL;
  while (first > 0 && strcmp (cell (c, first - 1, "set"), set) == 0)
    first--;
  while (last + 1 < csv_n_rows (c->t) && strcmp (cell (c, last + 1, "set"), set) == 0)
    last++;
  for (guint i = first; i <= last; i++) {
    CollRow r;
    if (collective_of (c, i, f, &r) == NULL && r.op == own->op && r.group.ranks == own->group.ranks)
      g_array_append_val (points, r.point);
  }
  guint n = coll_diagnose (f, own->op, &own->group, (const CollPoint *)(const void *)points->data,
                           points->len, cause);
  return n > 0 ? coll_cause_texts[cause[0]] : NULL;
}

static void
collective_row (const RunContext *c, guint row, GArray *rows)
{
  const char *name = run_rules_find (c->rules, "collective", cell (c, row, "gpu"),
                                     cell (c, row, "nic"), cell (c, row, "system"));
  Fabric *f = name != NULL ? store_fabric (c->store, name, NULL, NULL) : NULL;
  if (f == NULL) {
    g_autofree char *why =
        g_strdup_printf ("no fabric for %s, %s", cell (c, row, "gpu"), cell (c, row, "system"));
    validate_skip (rows, why);
    return;
  }
  CollRow r;
  const char *why = collective_of (c, row, f, &r);
  if (why != NULL) {
    validate_skip (rows, why);
    return;
  }
  RowResult *out = validate_add (rows, "time_us", r.point.measured_s * 1e6,
                                 r.point.predicted_s * 1e6, kernel_interval);
  const char *cause = fabs (out->error_pct) > far_off_pct ? cause_of (c, row, f, &r) : NULL;
  if (cause != NULL) {
    g_free (out->reason);
    out->reason = g_strdup (cause);
  }
}

static const char judged_gemm[] =
    "2mnk over 1e10, shapes of the fifth that no fit and no shipped table has seen:";
static const char judged_attention[] = "sequence 2k and over:";

static const char *const gemm_needed[] = {"m", "n", "k", "gpu", "dtype", NULL};
static const char *const gemm_wide_needed[] = {"m", "n", "k", NULL};
static const char *const gemm_aiter_needed[] = {"gfx", "cu", "m", "n", "k", "latency_us", NULL};
static const char *const gemm_deepbench_needed[] = {"gpu", "precision", "m", "n",
                                                    "k",   "time_ms",   NULL};
static const char *const attention_needed[] = {"seq", "head_dim", "pass", "impl", NULL};
static const char *const attention_wide_needed[] = {"batch", "seq", "heads", "head_dim", NULL};
static const char *const coll_needed[] = {"op", "size_bytes", "time_us", "busbw_GBps", NULL};

const TableKind table_gemm = {"gemm", gemm_needed, "gpu", "GEMM", judged_gemm, gemm_row};
const TableKind table_gemm_wide = {"gemm",      gemm_wide_needed, NULL, "GEMM, a column a device",
                                   judged_gemm, gemm_wide_row};
const TableKind table_gemm_aiter = {
    "gemm", gemm_aiter_needed, "gfx", "GEMM, tuned AITER kernels", judged_gemm, gemm_aiter_row};
const TableKind table_gemm_deepbench = {
    "gemm", gemm_deepbench_needed, "gpu", "GEMM of DeepBench", judged_gemm, gemm_deepbench_row};
const TableKind table_attention = {"attention", attention_needed, "gpu",
                                   "attention", judged_attention, attention_row};
const TableKind table_attention_wide = {
    "attention",      attention_wide_needed, NULL, "attention, a column a device",
    judged_attention, attention_wide_row};
const TableKind table_collectives = {"collectives", coll_needed, "set",
                                     "collectives", NULL,        collective_row};
