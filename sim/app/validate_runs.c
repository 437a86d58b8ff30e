/* One row of the table of training runs: row → Spec by documented rules, prediction, error.
 * The rules are data: scenarios/published/rules.json (see the README there). */
#include "validate.h"
#include "text.h"

#include <math.h>
#include <string.h>

#include "json_read.h"
#include "paths.h"
#include "validate_settings.h"

typedef struct {
  GRegex *gpu, *interconnect, *framework, *model, *source, *precision; /* NULL: any */
  gint64 year_min, year_max;
  char *value;             /* fabric, software or model name */
  int sequence_parallel;   /* software rules: default of tp > 1 */
  gint64 zero_stage;       /* software rules: default sharding */
  char *precision_default; /* software rules: what the framework's runs use when it is not stated */
  gboolean fsdp;           /* software rules: zero 2 and 3 are FSDP's */
  gboolean hardware, causal; /* metric rules */
} Rule;

struct RunRules {
  GArray *fabric, *software, *model, *metric;
  RowSettings *settings;
  GArray *wide, *kernel, *collective; /* of the tables of kernels and of collectives */
};

static void
rule_clear (gpointer p)
{
  Rule *r = p;
  g_clear_pointer (&r->gpu, g_regex_unref);
  g_clear_pointer (&r->interconnect, g_regex_unref);
  g_clear_pointer (&r->framework, g_regex_unref);
  g_clear_pointer (&r->model, g_regex_unref);
  g_clear_pointer (&r->source, g_regex_unref);
  g_clear_pointer (&r->precision, g_regex_unref);
  g_free (r->value);
  g_free (r->precision_default);
}

static gboolean
opt_regex (const JsonRef *obj, const char *key, GRegex **out, GError **error)
{
  const char *text = NULL;
  if (!json_opt_string (obj, key, &text, error))
    return FALSE;
  if (text == NULL)
    return TRUE;
  g_autoptr (GError) local = NULL;
  *out = g_regex_new (text, G_REGEX_OPTIMIZE | G_REGEX_CASELESS, 0, &local);
  return *out != NULL || json_fail (obj, JSON_ERROR_RANGE, error, "%s: %s", key, local->message);
}

static gboolean
read_rule (const JsonRef *obj, const char *value_key, Rule *r, GError **error)
{
  const char *const keys[] = {"gpu",
                              "interconnect",
                              "framework",
                              "model",
                              "source_title",
                              "year_min",
                              "precision",
                              "fsdp",
                              "default_precision",
                              "year_max",
                              "sequence_parallel",
                              "zero_stage",
                              "flops",
                              "attention",
                              "why",
                              value_key,
                              NULL};
  const char *value = NULL, *flops = "model", *attention = "full", *precision = NULL;
  gboolean sp = FALSE;
  r->year_max = 9999;
  if (!json_check_keys (obj, keys, error) || !opt_regex (obj, "gpu", &r->gpu, error) ||
      !opt_regex (obj, "interconnect", &r->interconnect, error) ||
      !opt_regex (obj, "framework", &r->framework, error) ||
      !opt_regex (obj, "model", &r->model, error) ||
      !opt_regex (obj, "source_title", &r->source, error) ||
      !opt_regex (obj, "precision", &r->precision, error) ||
      !json_opt_bool (obj, "fsdp", &r->fsdp, error) ||
      !json_opt_string (obj, "default_precision", &precision, error) ||
      !json_opt_int (obj, "year_min", 0, 9999, &r->year_min, error) ||
      !json_opt_int (obj, "year_max", 0, 9999, &r->year_max, error) ||
      !json_opt_int (obj, "zero_stage", 0, 3, &r->zero_stage, error) ||
      !json_opt_bool (obj, "sequence_parallel", &sp, error) ||
      !json_opt_string (obj, "flops", &flops, error) ||
      !json_opt_string (obj, "attention", &attention, error) ||
      (strcmp (value_key, "flops") != 0 && !json_get_string (obj, value_key, &value, error)))
    return FALSE;
  r->value = g_strdup (value);
  r->precision_default = g_strdup (precision);
  r->sequence_parallel = sp;
  r->hardware = strcmp (flops, "hardware") == 0;
  r->causal = strcmp (attention, "causal") == 0;
  return TRUE;
}

static GArray *
read_rules (const JsonRef *root, const char *key, const char *value_key, GError **error)
{
  JsonRef arr;
  if (!json_get_array (root, key, &arr, error))
    return NULL;
  g_autoptr (GArray) rules = g_array_new (FALSE, TRUE, sizeof (Rule));
  g_array_set_clear_func (rules, rule_clear);
  for (int i = 0; i < json_len (&arr); i++) {
    JsonRef item = json_item (&arr, i);
    Rule r = {0};
    gboolean ok = read_rule (&item, value_key, &r, error);
    g_array_append_val (rules, r);
    if (!ok)
      return NULL;
  }
  return g_steal_pointer (&rules);
}

RunRules *
run_rules_load (GError **error)
{
  g_autofree char *path = data_find ("published", "rules", NULL, error);
  g_autoptr (JsonDoc) doc = path != NULL ? json_doc_load (path, error) : NULL;
  if (doc == NULL)
    return NULL;
  JsonRef root = json_root (doc);
  g_autoptr (RunRules) r = g_new0 (RunRules, 1);
  static const char *const keys[] = {"format",   "why",  "fabric", "software",   "model", "metric",
                                     "settings", "wide", "kernel", "collective", NULL};
  if (!json_check_keys (&root, keys, error) ||
      (r->fabric = read_rules (&root, "fabric", "fabric", error)) == NULL ||
      (r->software = read_rules (&root, "software", "software", error)) == NULL ||
      (r->model = read_rules (&root, "model", "architecture", error)) == NULL ||
      (r->metric = read_rules (&root, "metric", "flops", error)) == NULL ||
      (r->wide = read_rules (&root, "wide", "device", error)) == NULL ||
      (r->kernel = read_rules (&root, "kernel", "kernel", error)) == NULL ||
      (r->collective = read_rules (&root, "collective", "fabric", error)) == NULL ||
      (r->settings = row_settings_read (&root, error)) == NULL)
    return NULL;
  return g_steal_pointer (&r);
}

void
run_rules_free (RunRules *r)
{
  if (r == NULL)
    return;
  g_clear_pointer (&r->fabric, g_array_unref);
  g_clear_pointer (&r->software, g_array_unref);
  g_clear_pointer (&r->model, g_array_unref);
  g_clear_pointer (&r->metric, g_array_unref);
  g_clear_pointer (&r->wide, g_array_unref);
  g_clear_pointer (&r->kernel, g_array_unref);
  g_clear_pointer (&r->collective, g_array_unref);
  g_clear_pointer (&r->settings, row_settings_free);
  g_free (r);
}

static gboolean
matches (GRegex *re, const char *text)
{
  return re == NULL || g_regex_match (re, text != NULL ? text : "", 0, NULL);
}

const char *
run_rules_find (const RunRules *r, const char *list, const char *gpu, const char *text,
                const char *other)
{
  const GArray *rules = strcmp (list, "wide") == 0     ? r->wide
                        : strcmp (list, "kernel") == 0 ? r->kernel
                                                       : r->collective;
  for (guint i = 0; i < rules->len; i++) {
    const Rule *rule = &g_array_index (rules, Rule, i);
    if (matches (rule->gpu, gpu) && matches (rule->interconnect, text) &&
        matches (rule->model, other))
      return rule->value;
  }
  return NULL;
}

/* ---- cells ---- */

static const char *
cell (const RunContext *c, guint row, const char *col)
{
  return csv_cell (c->t, row, csv_col (c->t, col));
}

/* FALSE when the cell is empty or no positive number. */
static gboolean
number (const RunContext *c, guint row, const char *col, double *out)
{
  const char *text = cell (c, row, col);
  char *end = NULL;
  if (*text == '\0')
    return FALSE;
  double v = g_ascii_strtod (text, &end);
  if (end == text || *end != '\0' || !isfinite (v) || v < 0 || v > 1e15)
    return FALSE;
  *out = v;
  return TRUE;
}

static gboolean
integer (const RunContext *c, guint row, const char *col, gint64 *out)
{
  double v;
  if (!number (c, row, col, &v) || v != floor (v) || v < 1)
    return FALSE;
  *out = (gint64)v;
  return TRUE;
}

static const Rule *
find_rule (const RunContext *c, const GArray *rules, guint row)
{
  double year = 0;
  number (c, row, "year", &year);
  for (guint i = 0; i < rules->len; i++) {
    const Rule *r = &g_array_index (rules, Rule, i);
    if (matches (r->gpu, cell (c, row, "gpu")) &&
        matches (r->interconnect, cell (c, row, "interconnect")) &&
        matches (r->framework, cell (c, row, "framework")) &&
        matches (r->model, cell (c, row, "model")) &&
        matches (r->source, cell (c, row, "source_title")) &&
        matches (r->precision, cell (c, row, "precision")) &&
        (year == 0 || ((gint64)year >= r->year_min && (gint64)year <= r->year_max)))
      return r;
  }
  return NULL;
}

static void
assume (GString *assumed, const char *what)
{
  if (assumed->len > 0)
    g_string_append (assumed, "; ");
  g_string_append (assumed, what);
}

static gboolean skip (char **reason, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
skip (char **reason, const char *format, ...)
{
  va_list ap;
  va_start (ap, format);
  *reason = g_strdup_vprintf (format, ap);
  va_end (ap);
  return FALSE;
}

/* A cell that must hold a whole number and does not: empty, or something else. */
static gboolean
skip_integer (const RunContext *c, guint row, const char *col, const char *what, char **reason)
{
  const char *found = cell (c, row, col);
  if (*found == '\0')
    return skip (reason, "%s is not stated", what);
  g_autofree char *shown = text_quoted (found);
  return skip (reason, "%s is no whole number from 1 to 1e15 (found %s)", what, shown);
}

/* ---- the parts of a Spec ---- */

static void
style_of_model (ModelSpec *m, gboolean gated)
{
  gboolean gpt = !gated;
  m->gated_mlp = gated;
  m->norm = gpt ? NORM_LAYERNORM : NORM_RMSNORM;
  m->act = gpt ? ACT_GELU : ACT_SILU;
  m->pos = gpt ? POS_LEARNED : POS_ROTARY;
  m->qkv_bias = m->attn_out_bias = m->mlp_bias = m->norm_bias = gpt;
  m->tied_embeddings = gpt;
}

static gboolean
has_experts (const RunContext *c, guint row)
{
  gint64 n = 0;
  return integer (c, row, "moe_experts", &n);
}

/* A dense architecture lends its style to other sizes of its family. One with experts or latent
 * attention is taken whole, so the row must have its shape; NULL when it has not. */
static const ModelSpec *
agreeing (const RunContext *c, guint row, const ModelSpec *known)
{
  gint64 hidden = 0, heads = 0;
  if (known == NULL)
    return NULL;
  if (!has_experts (c, row))
    return known->num_experts > 0 ? NULL : known;
  integer (c, row, "hidden", &hidden);
  integer (c, row, "heads", &heads);
  return known->num_experts > 0 && known->hidden == hidden && known->heads == heads ? known : NULL;
}

static gboolean
row_model (const RunContext *c, guint row, Spec *s, GString *assumed, char **reason)
{
  ModelSpec *m = &s->model;
  double gated = 0;
  const Rule *r = find_rule (c, c->rules->model, row);
  const ModelSpec *known = r != NULL ? store_model (c->store, r->value, NULL, NULL) : NULL;
  number (c, row, "gated_mlp", &gated);
  known = agreeing (c, row, known);
  if (known != NULL)
    model_copy (m, known);
  else
    style_of_model (m, gated != 0);
  if (!row_experts (c->t, row, known != NULL, m, reason))
    return FALSE;
  if (!integer (c, row, "num_layers", &m->num_layers) || !integer (c, row, "hidden", &m->hidden) ||
      !integer (c, row, "heads", &m->heads))
    return skip (reason, "not a transformer with layers, hidden size and heads stated");
  if (!integer (c, row, "kv_heads", &m->kv_heads)) {
    m->kv_heads = m->heads;
  }
  if (!integer (c, row, "ffn_hidden", &m->ffn_hidden) && m->num_experts == 0) {
    m->ffn_hidden = 4 * m->hidden;
    assume (assumed, "ffn_hidden 4 x hidden");
  }
  if (!integer (c, row, "vocab", &m->vocab)) {
    m->vocab = 50257;
    assume (assumed, "vocabulary 50257");
  }
  if (known == NULL || known->hidden != m->hidden || known->heads != m->heads)
    m->head_dim = m->hidden / m->heads;
  if (m->pos == POS_LEARNED && !integer (c, row, "seq_len", &m->max_positions))
    m->max_positions = 2048;
  g_free (m->name);
  m->name = g_strdup (cell (c, row, "model"));
  return TRUE;
}

static gboolean
row_precision (const RunContext *c, guint row, Spec *s, const Rule *software, GString *assumed,
               char **reason)
{
  static const struct {
    const char *text;
    DType type;
  } known[] = {{"mxfp8", DT_MXFP8}, {"fp8-mx", DT_MXFP8}, {"nvfp4", DT_FP4}, {"fp8", DT_FP8},
               {"bf16", DT_BF16},   {"fp16", DT_FP16},    {"tf32", DT_TF32}, {"fp32", DT_FP32}};
  const char *stated = cell (c, row, "precision");
  if (*stated == '\0' && software->precision_default != NULL) {
    stated = software->precision_default;
    assume (assumed, "16-bit training");
  }
  g_autofree char *text = g_ascii_strdown (stated, -1);
  if (*text == '\0')
    return skip (reason, "precision is not stated");
  for (gsize i = 0; i < G_N_ELEMENTS (known); i++)
    if (strstr (text, known[i].text) != NULL) {
      s->train.precision = known[i].type;
      return TRUE;
    }
  g_autofree char *shown = text_quoted (stated);
  return skip (reason, "precision %s is not known", shown);
}

static gboolean
row_train (const RunContext *c, guint row, Spec *s, const Rule *software, GString *assumed,
           char **reason)
{
  TrainSpec *t = &s->train;
  if (!integer (c, row, "seq_len", &t->sequence_tokens))
    return skip_integer (c, row, "seq_len", "sequence length", reason);
  if (!integer (c, row, "gbs", &t->global_batch_sequences))
    return skip_integer (c, row, "gbs", "global batch", reason);
  if (!integer (c, row, "mbs", &t->micro_batch_sequences)) {
    t->micro_batch_sequences = 1;
    assume (assumed, "micro-batch 1");
  }
  const char *rc = cell (c, row, "recompute");
  if (recompute_parse (rc, &t->recompute, &t->recompute_modules))
    ;
  else if (g_str_has_prefix (rc, "full"))
    t->recompute = RECOMPUTE_FULL;
  else if (g_str_has_prefix (rc, "minimal")) { /* JAX: every matrix product is kept */
    t->recompute = RECOMPUTE_NONE;
    assume (assumed, "no matrix product is recomputed");
  } else if (*rc != '\0')
    return skip (reason, "recompute mode \"%.60s\" is not known", rc);
  else {
    double year = 0;
    number (c, row, "year", &year);
    t->recompute = year > 0 && year < 2023 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
    assume (assumed, year > 0 && year < 2023 ? "recompute full" : "recompute none");
  }
  return row_precision (c, row, s, software, assumed, reason);
}

/* Column sharding, or the rule's default. */
static gboolean
row_sharding (const RunContext *c, guint row, Spec *s, const Rule *software, GString *assumed,
              char **reason)
{
  static const struct {
    const char *text;
    gint64 stage;
    gboolean fsdp;
  } known[] = {{"ddp", 0, FALSE},
               {"zero1", 1, FALSE},
               {"zero2", 2, FALSE},
               {"zero3", 3, FALSE},
               {"fsdp", 3, TRUE},
               {"hsdp", 3, TRUE},
               {"fsdp (ZeRO-2-like: no reshard after forward)", 2, TRUE}};
  ParallelSpec *p = &s->parallel;
  const char *sh = cell (c, row, "sharding");
  gsize i = 0;
  if (*sh == '\0') {
    p->zero_stage = software->zero_stage;
    p->fsdp = software->fsdp && p->zero_stage >= 2;
    assume (assumed, p->zero_stage == 0   ? "plain data parallelism"
                     : p->zero_stage == 1 ? "distributed optimizer"
                                          : "sharded parameters");
    return TRUE;
  }
  while (i < G_N_ELEMENTS (known) && strcmp (sh, known[i].text) != 0)
    i++;
  if (i == G_N_ELEMENTS (known))
    return skip (reason, "sharding %s: not predicted yet", sh);
  p->zero_stage = known[i].stage;
  p->fsdp = known[i].fsdp || (software->fsdp && p->zero_stage >= 2);
  if (strcmp (sh, "hsdp") == 0) { /* a shard group is a node, as in the sources that say so */
    if (!integer (c, row, "gpus_per_node", &p->shard_size))
      p->shard_size = 8;
    assume (assumed, "shards inside a node");
  }
  return TRUE;
}

/* Names of the zero-bubble paper: ZB-1p and ZB-2p keep the activations of p and 2p micro-batches.
 */
static gboolean
row_schedule (const RunContext *c, guint row, ParallelSpec *p, char **reason)
{
  static const struct {
    const char *text, *schedule;
  } known[] = {{"1f1b", NULL},          {"1f1b-i", "interleaved"}, {"interleaved", "interleaved"},
               {"zb-1p", "zb-h1"},      {"zb-2p", "zb-h2"},        {"zb-h1", "zb-h1"},
               {"zb-h2", "zb-h2"},      {"zb-v", "zb-v"},          {"gpipe", "gpipe"},
               {"dualpipe", "dualpipe"}};
  g_autofree char *text = g_ascii_strdown (cell (c, row, "schedule"), -1);
  if (*text == '\0')
    return TRUE;
  for (gsize i = 0; i < G_N_ELEMENTS (known); i++)
    if (strcmp (text, known[i].text) == 0) {
      g_free (p->schedule);
      p->schedule = g_strdup (known[i].schedule);
      return TRUE;
    }
  if (g_str_has_prefix (text, "1f1b"))
    return TRUE;
  return skip (reason, "schedule %s: not predicted yet", text);
}

/* Column stage_ms: "T_F/T_B/T_W/T_comm", milliseconds of one stage and micro-batch. */
static gboolean
row_stage_times (const RunContext *c, guint row, StageTimes *out)
{
  g_auto (GStrv) parts = g_strsplit (cell (c, row, "stage_ms"), "/", -1);
  double v[4];
  if (g_strv_length (parts) != G_N_ELEMENTS (v))
    return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (v); i++) {
    char *end = NULL;
    v[i] = g_ascii_strtod (parts[i], &end);
    if (end == parts[i] || *end != '\0' || !(v[i] >= 0 && v[i] < 1e9))
      return FALSE;
  }
  *out = (StageTimes){v[0] * 1e-3, v[1] * 1e-3, v[2] * 1e-3, v[3] * 1e-3};
  return TRUE;
}

static gboolean
row_parallel (const RunContext *c, guint row, Spec *s, const Rule *software, GString *assumed,
              char **reason)
{
  ParallelSpec *p = &s->parallel;
  if (!integer (c, row, "tp", &p->tp))
    return skip_integer (c, row, "tp", "tp", reason);
  if (!integer (c, row, "pp", &p->pp))
    return skip_integer (c, row, "pp", "pp", reason);
  integer (c, row, "cp", &p->cp);
  integer (c, row, "vp", &p->vpp);
  if (!integer (c, row, "ep", &p->ep) && s->model.num_experts > 0)
    assume (assumed, "no expert parallelism");
  p->dp = 0;
  integer (c, row, "dp", &p->dp);
  const char *sp = cell (c, row, "seq_parallel");
  p->sequence_parallel =
      p->tp > 1 && (*sp != '\0' ? strcmp (sp, "1") == 0 : software->sequence_parallel);
  if (*sp == '\0' && p->tp > 1)
    assume (assumed, p->sequence_parallel ? "sequence parallel" : "no sequence parallelism");
  if (!row_sharding (c, row, s, software, assumed, reason))
    return FALSE;
  if (!row_schedule (c, row, p, reason))
    return FALSE;
  return TRUE;
}

static gboolean
row_machine (const RunContext *c, guint row, Spec *s, const Rule *software, char **reason)
{
  g_autoptr (GError) err = NULL;
  if (!integer (c, row, "num_gpus", &s->cluster.gpus))
    return skip (reason, "number of GPUs is not stated");
  s->gpu = store_gpu (c->store, cell (c, row, "gpu"), NULL, &err);
  if (s->gpu == NULL)
    return skip (reason, "GPU %s has no profile", cell (c, row, "gpu"));
  const Rule *fabric = find_rule (c, c->rules->fabric, row);
  if (fabric == NULL)
    return skip (reason, "no fabric rule for %s, \"%.60s\"", cell (c, row, "gpu"),
                 cell (c, row, "interconnect"));
  s->fabric = store_fabric (c->store, fabric->value, NULL, &err);
  const SoftwareProfile *sw =
      s->fabric != NULL ? store_software (c->store, software->value, NULL, &err) : NULL;
  if (sw == NULL)
    return skip (reason, "%s", err->message);
  s->software = *sw;
  s->software.name = g_strdup (sw->name);
  if (!integer (c, row, "gpus_per_node", &s->cluster.gpus_per_node))
    s->cluster.gpus_per_node = 8;
  s->cluster.gpus_per_node = MIN (s->cluster.gpus_per_node, s->cluster.gpus);
  s->cluster.nodes = (s->cluster.gpus + s->cluster.gpus_per_node - 1) / s->cluster.gpus_per_node;
  return TRUE;
}

gboolean
run_row_spec (const RunContext *c, guint row, Spec *s, GString *assumed, char **reason)
{
  s->borrowed = TRUE;
  s->name = g_strdup (cell (c, row, "id"));
  const char *comments = cell (c, row, "comments");
  if (strstr (comments, "CONTRADICTION") != NULL || strstr (comments, "SUSPECT") != NULL)
    return skip (reason, "the row contradicts itself or is suspect: %.80s", comments);
  const Rule *software = find_rule (c, c->rules->software, row);
  if (software == NULL)
    return skip (reason, "no software profile for %s of %s", cell (c, row, "framework"),
                 cell (c, row, "year"));
  if (!row_model (c, row, s, assumed, reason) ||
      !row_train (c, row, s, software, assumed, reason) ||
      !row_parallel (c, row, s, software, assumed, reason) ||
      !row_machine (c, row, s, software, reason))
    return FALSE;
  if (!row_settings_apply (c->rules->settings, c->t, row, s, reason))
    return FALSE;
  if (s->train.adapter_rank > 0)
    assume (assumed, "rank and targets of the adapters");
  else if (strcmp (cell (c, row, "trainable"), "lora") == 0)
    return skip (reason, "no rule for the adapters of this framework");
  g_autoptr (GError) err = NULL;
  if (!spec_check (s, NULL, &err))
    return skip (reason, "%s", err->message);
  return TRUE;
}

/* ---- what is compared ---- */

/* The convention of a printed TFLOP/s or MFU: tags of metric_note where the table has them, else
 * the rule of the source. */
static void
convention (const RunContext *c, guint row, gboolean *hardware, gboolean *causal)
{
  const Rule *r = find_rule (c, c->rules->metric, row);
  const char *note = cell (c, row, "metric_note");
  *hardware = r != NULL && r->hardware;
  *causal = r != NULL && r->causal;
  if (strstr (note, "flops=hardware") != NULL)
    *hardware = TRUE;
  else if (strstr (note, "flops=model") != NULL)
    *hardware = FALSE;
  if (strstr (note, "attention=causal") != NULL)
    *causal = TRUE;
  else if (strstr (note, "attention=full") != NULL)
    *causal = FALSE;
}

/* The first figure that the row states; one that is stated and is none makes the row useless. */
static gboolean
published (const RunContext *c, guint row, RowResult *out)
{
  static const char *const metrics[] = {"step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu",
                                        "mfu_pct"};
  for (gsize i = 0; i < G_N_ELEMENTS (metrics); i++) {
    const char *found = cell (c, row, metrics[i]);
    if (*found == '\0')
      continue;
    if (number (c, row, metrics[i], &out->published) && out->published > 0) {
      out->metric = metrics[i];
      return TRUE;
    }
    g_autofree char *shown = text_quoted (found);
    return skip (&out->reason, "%s is no positive number (found %s)", metrics[i], shown);
  }
  return skip (&out->reason, "no result that can be compared");
}

static double
predicted_metric (const RunContext *c, guint row, const Spec *s, const Prediction *p,
                  const char *metric, double step_s)
{
  gboolean hardware = FALSE, causal = FALSE;
  double model = 0, hard = 0;
  if (strcmp (metric, "step_time_s") == 0)
    return step_s;
  if (strcmp (metric, "tokens_per_s_per_gpu") == 0)
    return p->tokens_per_s_per_gpu * p->step_s / step_s;
  convention (c, row, &hardware, &causal);
  predict_flops (s, causal, &model, &hard);
  double tflops = (hardware ? hard : model) / step_s * 1e-12;
  return strcmp (metric, "tflops_per_gpu") == 0 ? tflops : 100.0 * tflops / p->peak_tflops;
}

void
validate_run_row (const RunContext *c, guint row, RowResult *out)
{
  Spec s;
  g_autoptr (GString) assumed = g_string_new (NULL);
  out->status = ROW_SKIPPED;
  if (!published (c, row, out))
    return;
  spec_init (&s);
  Prediction p;
  g_autoptr (GError) err = NULL;
  if (!run_row_spec (c, row, &s, assumed, &out->reason)) {
    spec_clear (&s);
    return;
  }
  if (assumed->len > 0) /* the range knows it */
    g_ptr_array_add (s.assumed, g_strdup (assumed->str));
  if (c->adjust != NULL)
    c->adjust (c->adjust_self, &s);
  StageTimes times;
  PredictOptions options = {0};
  if (c->stage_times && row_stage_times (c, row, &times))
    options.times = &times;
  if (!predict (&s, c->cache, &options, &p, &err)) {
    out->reason = g_strdup (err->message);
    spec_clear (&s);
    return;
  }
  StepInterval iv = interval_for (c->intervals, &s, &p);
  double a = predicted_metric (c, row, &s, &p, out->metric, p.step_s * iv.lo);
  double b = predicted_metric (c, row, &s, &p, out->metric, p.step_s * iv.hi);
  out->predicted = predicted_metric (c, row, &s, &p, out->metric, p.step_s);
  out->error_pct = 100.0 * (out->predicted / out->published - 1.0);
  out->features = interval_features (&s, &p);
  out->lo = MIN (a, b);
  out->hi = MAX (a, b);
  out->status = assumed->len > 0 ? ROW_ASSUMED : ROW_OK;
  out->reason = g_strdup (assumed->str);
  prediction_clear (&p);
  spec_clear (&s);
}
