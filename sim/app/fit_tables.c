/* CSV tables of other collectors, told by their columns. Cells that are empty are points that were
 * not measured, and rows that say they failed are passed over; a time of zero or less is an error.
 */
#include "csv.h"
#include "fabric.h"
#include "fit_samples.h"
#include "text.h"

#include <math.h>
#include <string.h>

typedef struct {
  SampleReader *r;
  const CsvTable *t;
  guint row;
} Row;

static const char *
cell (const Row *w, const char *column)
{
  return csv_cell (w->t, w->row, csv_col (w->t, column));
}

static double
number (const Row *w, const char *column)
{
  const char *text = cell (w, column);
  return *text != '\0' ? g_ascii_strtod (text, NULL) : 0;
}

static gint64
count (const Row *w, const char *column)
{
  return (gint64)number (w, column);
}

static gboolean
is (const Row *w, const char *column, const char *value)
{
  return strcmp (cell (w, column), value) == 0;
}

static int
index_of (const char *const *names, const char *name)
{
  for (int i = 0; names[i] != NULL; i++)
    if (strcmp (names[i], name) == 0)
      return i;
  return -1;
}

/* fp8_e4m3, fp8_block: the same rate; float and half: names of torch. */
static int
dtype_of (const char *name)
{
  if (g_str_has_prefix (name, "fp8"))
    return DT_FP8;
  if (strcmp (name, "bfloat16") == 0 || strcmp (name, "fp16/bf16") == 0)
    return DT_BF16;
  if (strcmp (name, "float16") == 0 || strcmp (name, "half") == 0)
    return DT_FP16;
  return index_of (dtype_names, name);
}

/* Whole numbers from 1, and amounts above zero, of whatever table has them. A cell that is empty
 * says nothing and what needs it is passed over; one that says what cannot be is an error. */
static const char *const counts[] = {
    "m",          "n",           "k",           "batch",        "seq",      "heads",
    "kv_heads",   "head_dim",    "ranks",       "nodes",        "num_gpus", "batch_size",
    "q_seqlen",   "num_q_heads", "kv_seqlen",   "num_kv_heads", "N",        "C",
    "num_tokens", "n_embd",      "head_dim_qk", "head_dim_vo"};
static const char *const amounts[] = {"tflops", "bytes", "size_bytes", "message_bytes", "x_value"};

static gboolean
cell_in (const Row *w, const char *column, gboolean whole, GError **error)
{
  const char *text = cell (w, column);
  char *end = NULL;
  double v = g_ascii_strtod (text, &end);
  if (*text == '\0' || (end != text && *end == '\0' && v > 0 && v <= 1e15 &&
                        (!whole || (v == floor (v) && v <= G_MAXINT))))
    return TRUE;
  g_autofree char *found = text_quoted (text);
  return sample_fail (w->r, csv_line (w->t, w->row), SAMPLES_ERROR_VALUE, error,
                      "%s is %s (allowed: %s)", column, found,
                      whole ? "a whole number from 1 to 2^31 - 1" : "a number above 0");
}

/* For a row that is taken. */
static gboolean
numbers_in (const Row *w, GError **error)
{
  for (gsize i = 0; i < G_N_ELEMENTS (counts); i++)
    if (csv_col (w->t, counts[i]) >= 0 && !cell_in (w, counts[i], TRUE, error))
      return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (amounts); i++)
    if (csv_col (w->t, amounts[i]) >= 0 && !cell_in (w, amounts[i], FALSE, error))
      return FALSE;
  return TRUE;
}

/* Adds the sample of a time that the row states in text; an empty cell is no sample. */
static gboolean
add_time (Row *w, Sample *s, const char *device, const char *text, double unit, GError **error)
{
  if (*text == '\0')
    return TRUE;
  char *end = NULL;
  double v = g_ascii_strtod (text, &end);
  s->line = csv_line (w->t, w->row);
  if (end == text || *end != '\0')
    return sample_fail (w->r, s->line, SAMPLES_ERROR_VALUE, error, "\"%s\" is no time", text);
  s->time_s = v * unit;
  return sample_add (w->r, s, device, error);
}

/* ---- GEMM ---- */

static Sample
gemm_sample (const Row *w, int dtype)
{
  Sample s = {.kind = SAMPLE_GEMM};
  s.gemm.shape = (GemmShape){.m = count (w, "m"),
                             .n = count (w, "n"),
                             .k = count (w, "k"),
                             .batch = MAX (1, count (w, "batch")),
                             .dtype = (DType)dtype};
  return s;
}

static gboolean
usable_gemm (const Sample *s)
{
  return s->gemm.shape.m > 0 && s->gemm.shape.n > 0 && s->gemm.shape.k > 0;
}

static gboolean
row_gemm_long (Row *w, GError **error)
{
  int dtype = dtype_of (cell (w, "dtype"));
  const char *device = cell (w, "gpu");
  if (dtype < 0 || !sample_device_wanted (w->r, device))
    return TRUE;
  if (!numbers_in (w, error))
    return FALSE;
  Sample s = gemm_sample (w, dtype);
  if (!usable_gemm (&s))
    return TRUE;
  s.origin = g_string_chunk_insert_const (w->r->set->text, w->r->label);
  if (*cell (w, "time_us") != '\0')
    return add_time (w, &s, device, cell (w, "time_us"), 1e-6, error);
  const GemmShape *g = &s.gemm.shape;
  double tflops = number (w, "tflops");
  s.line = csv_line (w->t, w->row);
  s.time_s = 2.0 * (double)g->m * (double)g->n * (double)g->k * (double)g->batch / (tflops * 1e12);
  return !(tflops > 0) || sample_add (w->r, &s, device, error);
}

static const char *
column_origin (const Row *w, guint col)
{
  g_autofree char *text = g_strdup_printf ("%s %s", w->r->label, csv_col_name (w->t, col));
  return g_string_chunk_insert_const (w->r->set->text, text);
}

static gboolean
row_gemm_wide (Row *w, GError **error)
{
  gboolean fp8 = strstr (w->r->label, "fp8") != NULL;
  if (!numbers_in (w, error))
    return FALSE;
  for (guint c = 0; c < csv_n_cols (w->t); c++) {
    const char *name = csv_col_name (w->t, c);
    if (strlen (name) == 1 || strcmp (name, "batch") == 0 || !sample_device_wanted (w->r, name))
      continue;
    Sample s = gemm_sample (w, fp8 ? DT_FP8 : DT_BF16);
    s.gemm.with_cast = fp8; /* that table times the cast of the activations too */
    s.origin = column_origin (w, c);
    if (usable_gemm (&s) && !add_time (w, &s, name, csv_cell (w->t, w->row, (int)c), 1e-6, error))
      return FALSE;
  }
  return TRUE;
}

/* AITER: the best tuned kernel a shape; the device is its architecture and compute units. Scaling
 * of 8-bit operands by blocks is a type of its own where the device has it. */
static gboolean
row_aiter (Row *w, GError **error)
{
  g_autofree char *device = g_strdup_printf ("%s-%s", cell (w, "gfx"), cell (w, "cu"));
  const char *named = cell (w, "dtype"), *scaling = cell (w, "scaling");
  int dtype = *named != '\0' ? dtype_of (named) : *scaling == '\0' ? DT_BF16 : DT_FP8;
  if (g_str_has_prefix (scaling, "block"))
    dtype = DT_MXFP8;
  Sample s = gemm_sample (w, MAX (dtype, 0));
  if (dtype < 0 || !usable_gemm (&s) || !sample_device_wanted (w->r, device))
    return TRUE;
  return add_time (w, &s, device, cell (w, "latency_us"), 1e-6, error);
}

static gboolean
row_deepbench (Row *w, GError **error)
{
  const char *precision = cell (w, "precision"), *device = cell (w, "gpu");
  int dtype = g_str_has_prefix (precision, "fp16") ? DT_FP16 : DT_FP32;
  if (!sample_device_wanted (w->r, device))
    return TRUE;
  if (!numbers_in (w, error))
    return FALSE;
  Sample s = gemm_sample (w, dtype);
  return !usable_gemm (&s) || add_time (w, &s, device, cell (w, "time_ms"), 1e-3, error);
}

/* ---- attention ---- */

/* What the name of a column or an implementation says of its kernel; -1: nothing. */
static int
kernel_of (const SampleReader *r, const char *name)
{
  static const struct {
    const char *part;
    AttnKernel kernel;
  } words[] = {{"cudnn", ATTN_CUDNN},
               {"trtllm_mha", ATTN_TRTLLM_MHA},
               {"trtllm", ATTN_TRTLLM},
               {"trt-llm", ATTN_TRTLLM},
               {"xformers", ATTN_XFORMERS},
               {"(a16)", ATTN_AITER16},
               {"aiter", ATTN_AITER},
               {"fa3", ATTN_FLASH3},
               {"fa2", ATTN_FLASH2},
               {"flashattention-3", ATTN_FLASH3},
               {"flashattention-2", ATTN_FLASH2},
               {"flashattention-1", ATTN_FLASH1}};
  g_autofree char *low = g_ascii_strdown (name, -1);
  if (r->options->attention >= 0)
    return r->options->attention;
  for (gsize i = 0; i < G_N_ELEMENTS (words); i++)
    if (strstr (low, words[i].part) != NULL)
      return (int)words[i].kernel;
  return -1;
}

static Sample
attention_sample (const Row *w)
{
  Sample s = {.kind = SAMPLE_ATTENTION};
  AttnShape *a = &s.attention.shape;
  *a = (AttnShape){.batch = count (w, "batch"), .heads = count (w, "heads"), .dtype = DT_BF16};
  a->kv_heads = count (w, "kv_heads") > 0 ? count (w, "kv_heads") : a->heads;
  a->seq_q = a->seq_kv = count (w, "seq");
  a->head_dim_qk = a->head_dim_v = count (w, "head_dim");
  s.attention.forward = TRUE;
  return s;
}

static gboolean
row_attention_wide (Row *w, GError **error)
{
  static const char *const shape[] = {"batch", "seq", "heads", "kv_heads", "head_dim", NULL};
  gboolean causal = strstr (w->r->label, "noncausal") == NULL;
  if (!numbers_in (w, error))
    return FALSE;
  for (guint c = 0; c < csv_n_cols (w->t); c++) {
    const char *name = csv_col_name (w->t, c);
    int kernel = kernel_of (w->r, name);
    if (g_strv_contains (shape, name) || !sample_device_wanted (w->r, name))
      continue;
    if (kernel < 0)
      return sample_fail (w->r, 1, SAMPLES_ERROR_VALUE, error,
                          "column %s does not name its kernel (allowed: with --attention-kernel)",
                          name);
    Sample s = attention_sample (w);
    s.attention.kernel = (AttnKernel)kernel;
    s.attention.shape.causal = causal;
    s.origin = column_origin (w, c);
    if (!add_time (w, &s, name, csv_cell (w->t, w->row, (int)c), 1e-6, error))
      return FALSE;
  }
  return TRUE;
}

/* FLOPs by the habit of the figures: 4 b h s^2 d forward, 2.5 times that backward, half if causal.
 */
static double
attention_flops (const Sample *s)
{
  const AttnShape *a = &s->attention.shape;
  double f = 4.0 * (double)a->batch * (double)a->heads * (double)a->seq_q * (double)a->seq_kv *
             (double)a->head_dim_qk * (a->causal ? 0.5 : 1);
  return f * (s->attention.forward + 2.5 * s->attention.backward);
}

static gboolean
row_attention_long (Row *w, GError **error)
{
  const char *device = cell (w, "gpu"), *pass = cell (w, "pass");
  int kernel = kernel_of (w->r, cell (w, "impl"));
  if (kernel < 0 || !sample_device_wanted (w->r, device))
    return TRUE;
  if (!numbers_in (w, error))
    return FALSE;
  Sample s = attention_sample (w);
  const AttnShape *a = &s.attention.shape;
  if (a->seq_q <= 0 || a->batch <= 0 || a->heads <= 0 || a->head_dim_qk <= 0)
    return TRUE;
  s.attention.kernel = (AttnKernel)kernel;
  s.attention.shape.causal = number (w, "causal") > 0;
  s.attention.forward = strstr (pass, "fwd") != NULL;
  s.attention.backward = strstr (pass, "bwd") != NULL;
  if (*cell (w, "time_us") != '\0')
    return add_time (w, &s, device, cell (w, "time_us"), 1e-6, error);
  double tflops = number (w, "tflops");
  s.line = csv_line (w->t, w->row);
  s.time_s = attention_flops (&s) / (tflops * 1e12);
  return !(tflops > 0) || sample_add (w->r, &s, device, error);
}

/* cuDNN frontend: one time a row (profile_pass), or forward and backward beside each other. */
static gboolean
row_cudnn_sdpa (Row *w, GError **error)
{
  const char *device = cell (w, "gpu_name");
  int kernel = is (w, "backend", "cudnn") ? ATTN_CUDNN : -1,
      dtype = dtype_of (cell (w, "data_type"));
  gboolean once = csv_col (w->t, "time_ms") >= 0;
  if (!is (w, "success", "True") || kernel < 0 || dtype < 0 || !sample_device_wanted (w->r, device))
    return TRUE;
  if (!numbers_in (w, error))
    return FALSE;
  for (int pass = 0; pass < 2; pass++) {
    Sample s = {.kind = SAMPLE_ATTENTION};
    s.attention.kernel = (AttnKernel)kernel;
    s.attention.shape = (AttnShape){.batch = count (w, "batch_size"),
                                    .heads = count (w, "num_q_heads"),
                                    .kv_heads = count (w, "num_kv_heads"),
                                    .seq_q = count (w, "q_seqlen"),
                                    .seq_kv = count (w, "kv_seqlen"),
                                    .head_dim_qk = count (w, "head_dim_qk"),
                                    .head_dim_v = count (w, "head_dim_vo"),
                                    .window = count (w, "sliding_window_size"),
                                    .causal = is (w, "attn_mask", "top_left"),
                                    .dtype = (DType)dtype};
    s.attention.forward = pass == 0;
    s.attention.backward = pass == 1;
    if (once && !is (w, "profile_pass", pass == 0 ? "fwd" : "bwd"))
      continue;
    const char *column = once ? "time_ms" : pass == 0 ? "fwd_time_ms" : "bwd_time_ms";
    if (strcmp (cell (w, column), "inf") != 0 &&
        !add_time (w, &s, device, cell (w, column), 1e-3, error))
      return FALSE;
  }
  return TRUE;
}

/* ---- memory-bound kernels ---- */

static gboolean
add_memory (Row *w, const char *device, int kind, double bytes, const char *text, double unit,
            GError **error)
{
  Sample s = {.kind = SAMPLE_MEMORY};
  s.memory.kind = kind;
  s.memory.bytes = bytes;
  return !(bytes > 0) || add_time (w, &s, device, text, unit, error);
}

/* Norms in 16 bit: forward reads x and writes y, backward reads x and dy and writes dx. */
static gboolean
row_cudnn_norms (Row *w, GError **error)
{
  const char *device = cell (w, "gpu_name");
  double cells = number (w, "N") * number (w, "C");
  if (!is (w, "success", "True") || !is (w, "backend", "cudnn") ||
      !sample_device_wanted (w->r, device))
    return TRUE;
  if (!numbers_in (w, error))
    return FALSE;
  return add_memory (w, device, MEMK_NORM_FWD, 4 * cells, cell (w, "fwd_time_ms"), 1e-3, error) &&
         add_memory (w, device, MEMK_NORM_BWD, 6 * cells, cell (w, "bwd_time_ms"), 1e-3, error);
}

/* A number out of a small JSON object in a cell: "B": 8. */
static double
config_number (const char *json, const char *key)
{
  g_autofree char *quoted = g_strdup_printf ("\"%s\":", key);
  const char *at = strstr (json, quoted);
  return at != NULL ? g_ascii_strtod (at + strlen (quoted), NULL) : 0;
}

/* Liger's own kernels (provider "liger"); bytes are what the operands need. Cross entropy reads the
 * logits twice and writes their gradient in one kernel, in fp32 here. */
static gboolean
row_liger (Row *w, GError **error)
{
  const char *device = cell (w, "gpu_name"), *kernel = cell (w, "kernel_name"),
             *config = cell (w, "config_json");
  double x = number (w, "x_value"), bytes = 0;
  double elem = strstr (config, "bfloat16") != NULL ? 2 : 4;
  gboolean forward = is (w, "mode", "forward"), backward = is (w, "mode", "backward");
  int kind = -1;
  if (!is (w, "provider", "liger") || (!forward && !backward) ||
      !sample_device_wanted (w->r, device))
    return TRUE;
  if (!numbers_in (w, error))
    return FALSE;
  if (strcmp (kernel, "rms_norm") == 0 || strcmp (kernel, "layer_norm") == 0) {
    kind = forward ? MEMK_NORM_FWD : MEMK_NORM_BWD;
    bytes = (forward ? 2 : 3) * config_number (config, "M") * x * elem;
  } else if (strcmp (kernel, "cross_entropy") == 0 && forward) {
    kind = MEMK_XENT;
    bytes = 3 * config_number (config, "B") * config_number (config, "T") * x * elem;
  } else if (strcmp (kernel, "rope") == 0) {
    kind = MEMK_ELEMENTWISE;
    bytes = 2 * config_number (config, "seq_len") * x * elem;
    bytes *=
        1 + config_number (config, "num_kv_heads") / MAX (1, config_number (config, "num_q_heads"));
  }
  return kind < 0 || strcmp (cell (w, "x_name"), "T") == 0 ||
         add_memory (w, device, kind, bytes, cell (w, "ms_p50"), 1e-3, error);
}

/* Vidur: operators of a layer on tokens x width, fp16. Its clock ticks in us, so operators of less
 * than 20 us say nothing. */
static gboolean
row_vidur (Row *w, GError **error)
{
  static const struct {
    const char *column;
    int kind;
    double passes; /* reads and writes of tokens x width */
  } ops[] = {{"add_ms", MEMK_STREAM, 3},
             {"input_layernorm_ms", MEMK_NORM_FWD, 2},
             {"post_attention_layernorm_ms", MEMK_NORM_FWD, 2},
             {"emb_ms", MEMK_EMBEDDING, 2}};
  const char *device = cell (w, "gpu");
  double cells = number (w, "num_tokens") * number (w, "n_embd");
  if (!sample_device_wanted (w->r, device))
    return TRUE;
  if (!numbers_in (w, error))
    return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (ops); i++)
    if ((number (w, ops[i].column) >= 0.02 || number (w, ops[i].column) < 0) &&
        !add_memory (w, device, ops[i].kind, 2 * ops[i].passes * cells, cell (w, ops[i].column),
                     1e-3, error))
      return FALSE;
  return TRUE;
}

/* Operators with their bytes: streams, norms, softmax, copies. */
static gboolean
row_ops (Row *w, GError **error)
{
  static const struct {
    const char *prefix;
    int kind;
  } words[] = {{"stream_triad", MEMK_STREAM},           {"stream_scale", MEMK_STREAM},
               {"softmax_fwd", MEMK_SOFTMAX_FWD},       {"rms_norm_fwd (cudnn)", MEMK_NORM_FWD},
               {"rms_norm_bwd (cudnn)", MEMK_NORM_BWD}, {"layernorm_fwd", MEMK_NORM_FWD}};
  const char *device = cell (w, "gpu"), *op = cell (w, "op");
  double bytes = number (w, "bytes");
  if (!sample_device_wanted (w->r, device) || *cell (w, "time_us") == '\0')
    return TRUE;
  if (!numbers_in (w, error))
    return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (words); i++)
    if (g_str_has_prefix (op, words[i].prefix))
      return add_memory (w, device, words[i].kind, bytes, cell (w, "time_us"), 1e-6, error);
  return TRUE;
}

/* ---- collectives ---- */

static gboolean
row_collectives (Row *w, GError **error)
{
  const char *device = cell (w, "gpu");
  int op = index_of (coll_op_names, cell (w, "op"));
  if (op < 0 || is (w, "healthy", "0") || !sample_device_wanted (w->r, device))
    return TRUE;
  if (!numbers_in (w, error))
    return FALSE;
  int ranks = (int)number (w, "ranks"), nodes = MAX (1, (int)number (w, "nodes"));
  double us = number (w, "time_us"), busbw = number (w, "busbw_GBps");
  Sample s = {.kind = SAMPLE_COLL, .line = csv_line (w->t, w->row)};
  s.coll.bytes = number (w, "size_bytes");
  if (ranks < 2 || ranks % nodes != 0 || !(s.coll.bytes > 0))
    return TRUE;
  if (*cell (w, "time_us") == '\0') {
    if (!cell_in (w, "busbw_GBps", FALSE, error))
      return FALSE;
    if (*cell (w, "busbw_GBps") == '\0')
      return TRUE;
    us = s.coll.bytes * coll_bus_factor ((CollOp)op, ranks) / busbw * 1e-3;
  }
  s.coll.op = (CollOp)op;
  s.coll.group = (CollGroup){ranks, ranks / nodes, nodes, 1, {0}};
  s.coll.how = (CollChoice){(CollAlgo)index_of (coll_algo_names, cell (w, "algo")),
                            (CollProto)index_of (coll_proto_names, cell (w, "proto"))};
  s.coll.version = nccl_version_parse (cell (w, "nccl_version"));
  s.time_s = us * 1e-6;
  return sample_add (w->r, &s, device, error);
}

static gboolean
row_aic_nccl (Row *w, GError **error)
{
  const char *device = cell (w, "device"), *name = cell (w, "collective");
  int op = index_of (coll_op_names, name);
  if (op < 0 || csv_col (w->t, "nccl_version") < 0 ||
      !(sample_device_wanted (w->r, device) || sample_device_wanted (w->r, cell (w, "system"))))
    return TRUE;
  if (!numbers_in (w, error))
    return FALSE;
  int ranks = (int)number (w, "num_gpus");
  Sample s = {.kind = SAMPLE_COLL};
  if (ranks < 2)
    return TRUE;
  s.coll.op = (CollOp)op;
  s.coll.group = (CollGroup){ranks, ranks, 1, 1, {0}};
  s.coll.how = (CollChoice){ALGO_AUTO, PROTO_AUTO};
  s.coll.bytes = number (w, "message_bytes");
  s.coll.version = nccl_version_parse (cell (w, "nccl_version"));
  return add_time (w, &s, device, cell (w, "latency_us"), 1e-6, error);
}

/* ---- which table ---- */

static const struct {
  const char *needs[5]; /* columns that name it */
  gboolean (*row) (Row *w, GError **error);
} kinds[] = {
    {{"gpu", "dtype", "m", "n", "k"}, row_gemm_long},
    {{"gpu", "a_transpose", "m", "n", "k"}, row_deepbench},
    {{"gfx", "cu", "m", "n", "k"}, row_aiter},
    {{"gpu", "impl", "seq", "head_dim", "pass"}, row_attention_long},
    {{"gpu_name", "attn_mask", "q_seqlen"}, row_cudnn_sdpa},
    {{"gpu_name", "norm_name", "N", "C"}, row_cudnn_norms},
    {{"kernel_name", "provider", "ms_p50"}, row_liger},
    {{"gpu", "num_tokens", "n_embd", "add_ms"}, row_vidur},
    {{"op", "size_bytes", "ranks", "busbw_GBps"}, row_collectives},
    {{"collective", "num_gpus", "message_bytes", "latency_us"}, row_aic_nccl},
    {{"gpu", "op", "bytes", "time_us"}, row_ops},
    {{"batch", "seq", "heads", "head_dim"}, row_attention_wide},
    {{"m", "n", "k"}, row_gemm_wide},
};

static int
kind_of (const CsvTable *t)
{
  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++) {
    gboolean all = TRUE;
    for (gsize c = 0; c < G_N_ELEMENTS (kinds[i].needs) && kinds[i].needs[c] != NULL; c++)
      all = all && csv_col (t, kinds[i].needs[c]) >= 0;
    if (all)
      return (int)i;
  }
  return -1;
}

/* Every "COLUMN~TEXT" of --where whose column this table has must be in the row. */
static gboolean
row_wanted (const Row *w)
{
  char **where = w->r->options->where;
  for (guint i = 0; where != NULL && where[i] != NULL; i++) {
    const char *tilde = strchr (where[i], '~');
    if (tilde == NULL)
      continue;
    g_autofree char *column = g_strndup (where[i], (gsize)(tilde - where[i]));
    if (csv_col (w->t, column) >= 0 && strstr (cell (w, column), tilde + 1) == NULL)
      return FALSE;
  }
  return TRUE;
}

gboolean
samples_read_csv (SampleReader *r, GError **error)
{
  g_autoptr (CsvTable) t = csv_load (r->path, error);
  if (t == NULL)
    return FALSE;
  int kind = kind_of (t);
  if (kind < 0)
    return sample_fail (r, 1, SAMPLES_ERROR_FILE, error,
                        "the columns are those of no table that fit knows (allowed: GEMM, "
                        "attention, norms, kernels or collectives; see calibrate/README.md)");
  for (guint row = 0; row < csv_n_rows (t); row++) {
    Row w = {r, t, row};
    if (row_wanted (&w) && !kinds[kind].row (&w, error))
      return FALSE;
  }
  return TRUE;
}
