/* JSON lines of the collectors in calibrate/. */
#include "fit_samples.h"
#include "fabric.h"
#include "json_read.h"

#include <string.h>

/* The lines as one JSON array, so that the reader's line numbers are those of the file. */
static char *
as_array (SampleReader *r, const char *text, GError **error)
{
  g_autoptr (GString) out = g_string_new ("[");
  gboolean first = TRUE;
  guint line = 0;
  for (const char *p = text; *p != '\0';) {
    const char *end = strchr (p, '\n');
    gsize len = end != NULL ? (gsize)(end - p) : strlen (p);
    g_autofree char *body = g_strstrip (g_strndup (p, len));
    line++;
    if (*body != '\0') {
      if (*body != '{' || !g_str_has_suffix (body, "}")) {
        sample_fail (r, line, SAMPLES_ERROR_CUT, error,
                     "the line is cut (found \"%.20s\" … \"%s\"; allowed: one object a line)", body,
                     body + MAX (0, (int)strlen (body) - 10));
        return NULL;
      }
      if (!first)
        g_string_append_c (out, ',');
      first = FALSE;
    }
    g_string_append (out, body);
    g_string_append_c (out, '\n');
    p = end != NULL ? end + 1 : p + len;
  }
  g_string_append_c (out, ']');
  return g_string_free (g_steal_pointer (&out), FALSE);
}

/* Keys that every line may have; what is measured beside the time is kept in the file for people.
 */
#define COMMON                                                                                     \
  "kind", "device", "date", "driver", "versions", "host", "note", "time_us", "p10_us", "p90_us",   \
      "reps", "clock_MHz", "power_W", "temp_C", "checked", "library"

typedef struct {
  JsonRef *at;
  GError **error;
} Reading;

static gboolean
get_count (const JsonRef *o, const char *key, gint64 *out, GError **error)
{
  return json_get_int (o, key, 1, G_MAXINT, out, error);
}

static gboolean
read_gemm (const JsonRef *o, Sample *s, GError **error)
{
  static const char *const keys[] = {COMMON, "dtype", "role",       "m",    "n",
                                     "k",    "batch", "accumulate", "mode", NULL};
  static const char *const roles[] = {"forward", "dgrad", "wgrad", NULL};
  const char *types[DT_COUNT + 2];
  static const char *const modes[] = {"burst", "sustained", NULL};
  GemmShape *g = &s->gemm.shape;
  int dtype = 0, role = 0, mode = 0;
  g->batch = 1;
  for (int i = 0; i < DT_COUNT; i++)
    types[i] = dtype_names[i];
  types[DT_COUNT] = "fp64"; /* measured, and no training uses it */
  types[DT_COUNT + 1] = NULL;
  if (!json_check_keys (o, keys, error) || !json_get_enum (o, "dtype", types, &dtype, error) ||
      !json_opt_enum (o, "role", roles, &role, error) ||
      !json_opt_enum (o, "mode", modes, &mode, error) || !get_count (o, "m", &g->m, error) ||
      !get_count (o, "n", &g->n, error) || !get_count (o, "k", &g->k, error) ||
      !json_opt_int (o, "batch", 1, G_MAXINT, &g->batch, error) ||
      !json_opt_bool (o, "accumulate", &g->accumulate, error))
    return FALSE;
  if (dtype == DT_COUNT) {
    s->kind = SAMPLE_KINDS;
    return TRUE;
  }
  g->dtype = (DType)dtype;
  g->role = (GemmRole)role;
  s->gemm.duty = mode;
  return TRUE;
}

static gboolean
read_attention (const JsonRef *o, Sample *s, GError **error)
{
  static const char *const keys[] = {COMMON,  "kernel",      "dtype",  "batch",      "heads",
                                     "seq_q", "kv_heads",    "seq_kv", "head_dim_v", "causal",
                                     "pass",  "head_dim_qk", "window", NULL};
  static const char *const passes[] = {"forward", "backward", "both", NULL};
  AttnShape *a = &s->attention.shape;
  int kernel = 0, dtype = 0, pass = 0;
  if (!json_check_keys (o, keys, error) ||
      !json_get_enum (o, "kernel", attn_kernel_names, &kernel, error) ||
      !json_get_enum (o, "dtype", dtype_names, &dtype, error) ||
      !json_get_enum (o, "pass", passes, &pass, error) ||
      !get_count (o, "batch", &a->batch, error) || !get_count (o, "heads", &a->heads, error) ||
      !get_count (o, "kv_heads", &a->kv_heads, error) ||
      !get_count (o, "seq_q", &a->seq_q, error) || !get_count (o, "seq_kv", &a->seq_kv, error) ||
      !get_count (o, "head_dim_qk", &a->head_dim_qk, error) ||
      !get_count (o, "head_dim_v", &a->head_dim_v, error) ||
      !json_get_bool (o, "causal", &a->causal, error) ||
      !json_opt_int (o, "window", 0, G_MAXINT, &a->window, error))
    return FALSE;
  a->dtype = (DType)dtype;
  s->attention.kernel = (AttnKernel)kernel;
  s->attention.forward = pass != 1;
  s->attention.backward = pass != 0;
  return TRUE;
}

static gboolean
read_memory (const JsonRef *o, Sample *s, GError **error)
{
  static const char *const keys[] = {COMMON, "op", "bytes", NULL};
  const char *names[MEMK_COUNT + 2];
  for (int i = 0; i < MEMK_COUNT; i++)
    names[i] = memk_names[i];
  names[SAMPLE_CAST_FP8] = "cast_fp8";
  names[MEMK_COUNT + 1] = NULL;
  return json_check_keys (o, keys, error) &&
         json_get_enum (o, "op", names, &s->memory.kind, error) &&
         json_get_double (o, "bytes", 1, 1e15, &s->memory.bytes, error);
}

static gboolean
read_launch (const JsonRef *o, Sample *s, GError **error)
{
  static const char *const keys[] = {COMMON, "how", NULL};
  int how = 0;
  if (!json_check_keys (o, keys, error) || !json_get_enum (o, "how", launch_names, &how, error))
    return FALSE;
  s->launch = (LaunchHow)how;
  return TRUE;
}

static gboolean
read_copy (const JsonRef *o, Sample *s, GError **error)
{
  static const char *const keys[] = {COMMON, "path", "bytes", NULL};
  int path = 0;
  if (!json_check_keys (o, keys, error) || !json_get_enum (o, "path", copy_names, &path, error) ||
      !json_get_double (o, "bytes", 1, 1e15, &s->copy.bytes, error))
    return FALSE;
  s->copy.path = (CopyPath)path;
  return TRUE;
}

/* names, then further ones, into an array of their own. */
static const char **
names_with (const char *const *names, const char *const *more)
{
  GPtrArray *all = g_ptr_array_new ();
  for (guint i = 0; names[i] != NULL; i++)
    g_ptr_array_add (all, (gpointer)names[i]);
  for (guint i = 0; more[i] != NULL; i++)
    g_ptr_array_add (all, (gpointer)more[i]);
  g_ptr_array_add (all, NULL);
  return (const char **)g_ptr_array_free (all, FALSE);
}

/* What NCCL has and the simulator has not is read and passed over. */
static gboolean
read_coll (const JsonRef *o, Sample *s, GError **error)
{
  static const char *const keys[] = {COMMON,  "op",    "algo",    "proto",        "ranks",
                                     "nodes", "bytes", "sharers", "nccl_version", NULL};
  static const char *const more_ops[] = {"reduce", "gather", "scatter", NULL};
  static const char *const more_algos[] = {"CollNetDirect", "CollNetChain", NULL};
  g_autofree const char **ops = names_with (coll_op_names, more_ops);
  g_autofree const char **algos = names_with (coll_algo_names, more_algos);
  gint64 ranks = 0, nodes = 1, sharers = 1;
  int op = 0, algo = ALGO_AUTO, proto = PROTO_AUTO;
  const char *version = NULL;
  if (!json_check_keys (o, keys, error) || !json_get_enum (o, "op", ops, &op, error) ||
      !json_opt_enum (o, "algo", algos, &algo, error) ||
      !json_opt_enum (o, "proto", coll_proto_names, &proto, error) ||
      !json_get_int (o, "ranks", 2, 1 << 24, &ranks, error) ||
      !json_opt_int (o, "nodes", 1, 1 << 24, &nodes, error) ||
      !json_opt_int (o, "sharers", 1, 1 << 20, &sharers, error) ||
      !json_opt_string (o, "nccl_version", &version, error) ||
      !json_get_double (o, "bytes", 1, 1e15, &s->coll.bytes, error))
    return FALSE;
  if (ranks % nodes != 0)
    return json_fail (o, JSON_ERROR_INCONSISTENT, error,
                      "%" G_GINT64_FORMAT " ranks do not divide over %" G_GINT64_FORMAT " nodes",
                      ranks, nodes);
  if (op >= COLL_COUNT || algo >= ALGO_COUNT)
    s->kind = SAMPLE_KINDS;
  s->coll.op = (CollOp)op;
  s->coll.how = (CollChoice){(CollAlgo)algo, (CollProto)proto};
  s->coll.group = (CollGroup){(int)ranks, (int)(ranks / nodes), (int)nodes, (int)sharers, {0}};
  s->coll.version = version != NULL ? nccl_version_parse (version) : 0;
  return TRUE;
}

static gboolean
read_overlap (SampleReader *r, const JsonRef *o, Sample *s, GError **error)
{
  static const char *const keys[] = {COMMON, "what", "alone_us", NULL};
  double alone = 0;
  if (!json_check_keys (o, keys, error) || !json_get_string (o, "what", &s->overlap.what, error) ||
      !json_get_double (o, "alone_us", -1e12, 1e12, &alone, error))
    return FALSE;
  s->overlap.what = g_string_chunk_insert_const (r->set->text, s->overlap.what);
  s->overlap.alone_s = alone * 1e-6;
  return TRUE;
}

static gboolean
read_facts (const JsonRef *o, DeviceFacts *f, GError **error)
{
  static const char *const keys[] = {
      "kind",        "device",    "date",         "driver",      "versions",           "host",
      "note",        "tdp_W",     "sm_count",     "boost_MHz",   "memory_GiB",         "hbm_GBps",
      "nvlink_GBps", "pcie_GBps", "scaleup_gpus", "peak_TFLOPs", "compute_capability", NULL};
  JsonRef peaks;
  if (!json_check_keys (o, keys, error) ||
      !json_opt_double (o, "tdp_W", 1, 1e5, &f->tdp_W, error) ||
      !json_opt_double (o, "sm_count", 1, 1e5, &f->sm_count, error) ||
      !json_opt_double (o, "boost_MHz", 1, 1e5, &f->boost_MHz, error) ||
      !json_opt_double (o, "memory_GiB", 0.1, 1e5, &f->memory_GiB, error) ||
      !json_opt_double (o, "hbm_GBps", 1, 1e6, &f->hbm_GBps, error) ||
      !json_opt_double (o, "nvlink_GBps", 0, 1e6, &f->nvlink_GBps, error) ||
      !json_opt_double (o, "pcie_GBps", 0, 1e6, &f->pcie_GBps, error) ||
      !json_opt_double (o, "scaleup_gpus", 1, 1e6, &f->scaleup_gpus, error))
    return FALSE;
  if (!json_has (o, "peak_TFLOPs"))
    return TRUE;
  if (!json_get_object (o, "peak_TFLOPs", &peaks, error) ||
      !json_check_keys (&peaks, dtype_names, error))
    return FALSE;
  for (int t = 0; t < DT_COUNT; t++)
    if (!json_opt_double (&peaks, dtype_names[t], 1e-3, 1e9, &f->peak_TFLOPs[t], error))
      return FALSE;
  return TRUE;
}

static gboolean
read_sample (SampleReader *r, const JsonRef *o, int kind, Sample *s, GError **error)
{
  switch ((SampleKind)kind) {
  case SAMPLE_GEMM:
    return read_gemm (o, s, error);
  case SAMPLE_ATTENTION:
    return read_attention (o, s, error);
  case SAMPLE_MEMORY:
    return read_memory (o, s, error);
  case SAMPLE_LAUNCH:
    return read_launch (o, s, error);
  case SAMPLE_COPY:
    return read_copy (o, s, error);
  case SAMPLE_COLL:
    return read_coll (o, s, error);
  case SAMPLE_OVERLAP:
    return read_overlap (r, o, s, error);
  case SAMPLE_KINDS:
    break;
  }
  g_assert_not_reached ();
}

static guint
line_of (const JsonRef *o)
{
  g_autofree char *where = json_where (o);
  const char *colon = strrchr (where, ':');
  return colon != NULL ? (guint)g_ascii_strtoull (colon + 1, NULL, 10) : 0;
}

/* The 10th and 90th percentile of the repeats, which a median lies between. */
static gboolean
read_spread (SampleReader *r, const JsonRef *o, double us, Sample *s, GError **error)
{
  double low = us, high = us;
  if (!json_opt_double (o, "p10_us", -1e15, 1e15, &low, error) ||
      !json_opt_double (o, "p90_us", -1e15, 1e15, &high, error))
    return FALSE;
  if (us > 0 && (!(low > 0) || low > us || high < us))
    return sample_fail (r, s->line, SAMPLES_ERROR_VALUE, error,
                        "the time %g us is not between its p10_us %g and p90_us %g", us, low, high);
  s->p10_s = json_has (o, "p10_us") ? low * 1e-6 : 0;
  s->p90_s = json_has (o, "p90_us") ? high * 1e-6 : 0;
  return TRUE;
}

/* Dates sort as text: 2026-12-01. */
static void
note_date (SampleSet *set, const char *date)
{
  if (set->first_date == NULL || strcmp (date, set->first_date) < 0)
    set->first_date = g_string_chunk_insert_const (set->text, date);
  if (set->last_date == NULL || strcmp (date, set->last_date) > 0)
    set->last_date = g_string_chunk_insert_const (set->text, date);
}

/* One line; *since counts the samples since the last end line. */
static gboolean
read_line (SampleReader *r, const JsonRef *o, guint *since, GError **error)
{
  enum { DEVICE = SAMPLE_KINDS, LEFT_OUT, END };
  static const char *const kinds[] = {"gemm",    "attention", "memory",   "launch", "copy", "coll",
                                      "overlap", "device",    "left_out", "end",    NULL};
  static const char *const end_keys[] = {COMMON, "samples", NULL};
  static const char *const out_keys[] = {COMMON, "points", "why", "what", NULL};
  const char *device = NULL, *date = NULL;
  gint64 count = 0;
  int kind = 0;
  double us = 0;
  if (!json_is_object (o))
    return json_fail (o, JSON_ERROR_TYPE, error, "a line is an object");
  if (!json_get_enum (o, "kind", kinds, &kind, error) ||
      !json_get_string (o, "device", &device, error) || !json_opt_string (o, "date", &date, error))
    return FALSE;
  if (kind == END) {
    if (!json_check_keys (o, end_keys, error) ||
        !json_get_int (o, "samples", 0, G_MAXINT, &count, error))
      return FALSE;
    if (count != *since)
      return sample_fail (r, line_of (o), SAMPLES_ERROR_CUT, error,
                          "samples are missing (found %u; the end line says %" G_GINT64_FORMAT ")",
                          *since, count);
    *since = 0;
    return TRUE;
  }
  if (kind == LEFT_OUT) {
    if (!json_check_keys (o, out_keys, error) ||
        !json_get_int (o, "points", 0, G_MAXINT, &count, error))
      return FALSE;
    r->set->left_out += (guint)count;
    return TRUE;
  }
  gboolean wanted = sample_device_wanted (r, device);
  if (kind == DEVICE && wanted)
    sample_device_seen (r, device);
  if (kind == DEVICE)
    return !wanted || read_facts (o, &r->set->facts, error);
  Sample s = {.kind = (SampleKind)kind, .line = line_of (o)};
  ++*since;
  if (!read_sample (r, o, kind, &s, error) ||
      !json_get_double (o, "time_us", -1e15, 1e15, &us, error) ||
      !read_spread (r, o, us, &s, error))
    return FALSE;
  s.time_s = us * 1e-6;
  if (wanted && date != NULL)
    note_date (r->set, date);
  return !wanted || sample_add (r, &s, device, error);
}

gboolean
samples_read_jsonl (SampleReader *r, const char *text, GError **error)
{
  g_autofree char *array = as_array (r, text, error);
  if (array == NULL)
    return FALSE;
  g_autoptr (JsonDoc) doc = json_doc_parse (r->path, array, strlen (array), error);
  if (doc == NULL)
    return FALSE;
  JsonRef root = json_root (doc);
  guint since = 0;
  gboolean ended = FALSE;
  for (int i = 0; i < json_len (&root); i++) {
    JsonRef item = json_item (&root, i);
    if (!read_line (r, &item, &since, error))
      return FALSE;
    ended = since == 0;
  }
  if (!ended)
    return sample_fail (r, 0, SAMPLES_ERROR_CUT, error,
                        "the samples are cut: %u of them follow the last end line (allowed: a line "
                        "{\"kind\": \"end\", \"samples\": N} at the end)",
                        since);
  return TRUE;
}
