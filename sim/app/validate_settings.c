#include "validate_settings.h"

#include <string.h>

enum {
  CELL_FRAMEWORK,
  CELL_COMMENTS,
  CELL_GPU,
  CELL_MODEL,
  CELL_PRECISION,
  CELL_NOTE,
  CELL_SOURCE,
  CELL_VP,
  CELL_TRAINABLE,
  CELL_SEQ,
  CELL_GPUS,
  CELL_COUNT
};
static const char *const cell_names[] = {"framework", "comments",    "gpu",          "model",
                                         "precision", "metric_note", "source_title", "vp",
                                         "trainable", "seq_len",     "num_gpus",     NULL};
G_STATIC_ASSERT (G_N_ELEMENTS (cell_names) == CELL_COUNT + 1);

typedef struct {
  GRegex *cell[CELL_COUNT]; /* NULL: any */
  char *set, *value;        /* value may hold \1 of the comments' match */
} Setting;

struct RowSettings {
  GArray *list;
};

static void
setting_clear (gpointer data)
{
  Setting *s = data;
  for (guint i = 0; i < CELL_COUNT; i++)
    g_clear_pointer (&s->cell[i], g_regex_unref);
  g_free (s->set);
  g_free (s->value);
}

void
row_settings_free (RowSettings *s)
{
  if (s == NULL)
    return;
  g_clear_pointer (&s->list, g_array_unref);
  g_free (s);
}

/* ---- settings by name ---- */

static gboolean
enum_of (const char *const *names, const char *value, int *out)
{
  for (int i = 0; names[i] != NULL; i++)
    if (strcmp (names[i], value) == 0) {
      *out = i;
      return TRUE;
    }
  return FALSE;
}

static gboolean
set_dispatch (Spec *s, const char *value)
{
  int v = 0;
  if (!enum_of (ep_dispatch_names, value, &v))
    return FALSE;
  s->software.ep_dispatch = (EpDispatch)v;
  return TRUE;
}

static gboolean
set_recipe (Spec *s, const char *value)
{
  int v = 0;
  if (!enum_of (fp8_recipe_names, value, &v))
    return FALSE;
  s->software.fp8_recipe = (Fp8Recipe)v;
  return TRUE;
}

static gboolean
set_overlap (Spec *s, const char *value)
{
  s->software.ep_overlap = strcmp (value, "true") == 0;
  return s->software.ep_overlap || strcmp (value, "false") == 0;
}

static gboolean
set_etp (Spec *s, const char *value)
{
  s->parallel.etp = strcmp (value, "tp") == 0 ? s->parallel.tp : g_ascii_strtoll (value, NULL, 10);
  return s->parallel.etp > 0;
}

static gboolean
set_imbalance (Spec *s, const char *value)
{
  s->train.moe_imbalance = g_ascii_strtod (value, NULL);
  return s->train.moe_imbalance >= 1;
}

static gboolean
set_capacity (Spec *s, const char *value)
{
  s->train.moe_capacity = g_ascii_strtod (value, NULL);
  return s->train.moe_capacity >= 1;
}

static gboolean
set_mtp (Spec *s, const char *value)
{
  s->model.mtp_layers = g_ascii_strtoll (value, NULL, 10);
  return TRUE;
}

/* none; layers: kernels of fixed shape are in graphs, experts are not; step: the whole iteration is
 * one.
 */
static gboolean
set_graph (Spec *s, const char *value)
{
  gboolean step = strcmp (value, "step") == 0;
  s->software.cuda_graph = strcmp (value, "none") != 0;
  if (step)
    s->software.host_expert_us = s->software.host_moe_sync_us = s->software.host_comm_us =
        s->software.host_pair_us = s->software.host_graph_share = 0;
  return step || !s->software.cuda_graph || strcmp (value, "layers") == 0;
}

/* As many chunks as layers a stage, where the interleaved schedule can have them. */
static gboolean
set_chunks (Spec *s, const char *value)
{
  gint64 layers = s->model.num_layers, pp = s->parallel.pp;
  gint64 mp = s->parallel.tp * s->parallel.cp * pp;
  gint64 unit = s->train.micro_batch_sequences * (s->cluster.gpus / MAX (mp, 1));
  if (strcmp (value, "layers") != 0)
    return FALSE;
  if (pp > 1 && layers % pp == 0 && unit > 0 && s->train.global_batch_sequences / unit % pp == 0)
    s->parallel.vpp = layers / pp;
  return TRUE;
}

/* "RANK:TARGETS" of a run that trains adapters. */
static gboolean
set_adapters (Spec *s, const char *value)
{
  char *end = NULL;
  s->train.adapter_rank = g_ascii_strtoll (value, &end, 10);
  s->train.adapter_targets = *end == ':' ? adapter_parse (end + 1) : 0;
  return s->train.adapter_rank > 0 && s->train.adapter_targets != 0;
}

static gboolean
set_sinks (Spec *s, const char *value)
{
  s->software.attn_sinks_unfused = strcmp (value, "true") == 0;
  return TRUE;
}

/* Ranks that share one copy of what is sharded. */
static gboolean
set_shard (Spec *s, const char *value)
{
  s->parallel.shard_size = g_ascii_strtoll (value, NULL, 10);
  return s->parallel.shard_size > 0;
}

/* Share of positions that hold a token, where kernels leave out the others. */
static gboolean
set_fill (Spec *s, const char *value)
{
  s->train.sequence_fill = g_ascii_strtod (value, NULL);
  return s->train.sequence_fill > 0 && s->train.sequence_fill <= 1;
}

static gboolean
set_no_grad_norm (Spec *s, const char *value)
{
  s->software.no_grad_norm = strcmp (value, "true") == 0;
  return s->software.no_grad_norm || strcmp (value, "false") == 0;
}

/* Of an update that is not fused, which depends on the optimizer and on the tensors of the model.
 */
static gboolean
set_host_optimizer (Spec *s, const char *value)
{
  s->software.host_optimizer_us = g_ascii_strtod (value, NULL);
  return s->software.host_optimizer_us >= 0;
}

static gboolean
set_tp_overlap (Spec *s, const char *value)
{
  int v = 0;
  if (!enum_of (tp_overlap_names, value, &v))
    return FALSE;
  s->software.tp_overlap = (TpOverlap)v;
  return TRUE;
}

/* Tokens of a sample where several are packed into a sequence and do not attend to one another. */
static gboolean
set_sample (Spec *s, const char *value)
{
  ModelSpec *m = &s->model;
  const gint64 tokens = g_ascii_strtoll (value, NULL, 10);
  if (m->graph != NULL || m->sliding_window > 0 || tokens <= 0 ||
      s->train.sequence_tokens % tokens != 0)
    return FALSE;
  m->sliding_window = tokens;
  m->sliding_chunks = TRUE;
  return TRUE;
}

static gboolean
set_bool (gboolean *to, const char *value)
{
  *to = strcmp (value, "true") == 0;
  return *to || strcmp (value, "false") == 0;
}

static gboolean
set_pp_overlap (Spec *s, const char *value)
{
  return set_bool (&s->software.pp_overlap, value);
}

/* Of gradients with backward and of updated parameters with the next forward. */
static gboolean
set_dp_overlap (Spec *s, const char *value)
{
  return set_bool (&s->software.dp_overlap_grad, value) &&
         set_bool (&s->software.dp_overlap_param, value);
}

static gboolean
set_parallel_block (Spec *s, const char *value)
{
  return set_bool (&s->model.parallel_block, value);
}

static gboolean
set_recompute (Spec *s, const char *value)
{
  return recompute_parse (value, &s->train.recompute, &s->train.recompute_modules);
}

static const struct {
  const char *name;
  gboolean (*apply) (Spec *s, const char *value);
} known[] = {
    {"shard_size", set_shard},
    {"adapters", set_adapters},
    {"ep_dispatch", set_dispatch},
    {"ep_overlap", set_overlap},
    {"etp", set_etp},
    {"moe_imbalance", set_imbalance},
    {"moe_capacity", set_capacity},
    {"mtp_layers", set_mtp},
    {"cuda_graph", set_graph},
    {"fp8_recipe", set_recipe},
    {"attn_sinks_unfused", set_sinks},
    {"chunks", set_chunks},
    {"sequence_fill", set_fill},
    {"no_grad_norm", set_no_grad_norm},
    {"host_optimizer_us", set_host_optimizer},
    {"tp_overlap", set_tp_overlap},
    {"pp_overlap", set_pp_overlap},
    {"dp_overlap", set_dp_overlap},
    {"parallel_block", set_parallel_block},
    {"recompute", set_recompute},
    {"sample_tokens", set_sample},
};

static gboolean
apply_one (Spec *s, const char *set, const char *value)
{
  for (gsize i = 0; i < G_N_ELEMENTS (known); i++)
    if (strcmp (known[i].name, set) == 0)
      return known[i].apply (s, value);
  return FALSE;
}

/* ---- reading ---- */

static gboolean
read_setting (const JsonRef *obj, Setting *s, GError **error)
{
  static const char *const keys[] = {
      "framework",   "comments",     "gpu",      "model",     "precision",
      "metric_note", "source_title", "vp",       "trainable", "set",
      "value",       "why",          "num_gpus", "seq_len",   NULL};
  const char *set = NULL, *value = NULL;
  if (!json_check_keys (obj, keys, error) || !json_get_string (obj, "set", &set, error) ||
      !json_get_string (obj, "value", &value, error))
    return FALSE;
  for (guint i = 0; i < CELL_COUNT; i++) {
    const char *text = NULL;
    if (!json_opt_string (obj, cell_names[i], &text, error))
      return FALSE;
    g_autoptr (GError) local = NULL;
    if (text != NULL)
      s->cell[i] = g_regex_new (text, G_REGEX_OPTIMIZE | G_REGEX_CASELESS, 0, &local);
    if (text != NULL && s->cell[i] == NULL)
      return json_fail (obj, JSON_ERROR_RANGE, error, "%s: %s", cell_names[i], local->message);
  }
  s->set = g_strdup (set);
  s->value = g_strdup (value);
  gboolean found = strcmp (set, "skip") == 0;
  for (gsize i = 0; i < G_N_ELEMENTS (known); i++)
    found |= strcmp (known[i].name, set) == 0;
  return found || json_fail (obj, JSON_ERROR_RANGE, error, "no such setting (found \"%s\")", set);
}

RowSettings *
row_settings_read (const JsonRef *rules, GError **error)
{
  JsonRef arr;
  if (!json_get_array (rules, "settings", &arr, error))
    return NULL;
  g_autoptr (RowSettings) s = g_new0 (RowSettings, 1);
  s->list = g_array_new (FALSE, TRUE, sizeof (Setting));
  g_array_set_clear_func (s->list, setting_clear);
  for (int i = 0; i < json_len (&arr); i++) {
    JsonRef item = json_item (&arr, i);
    Setting one = {{NULL}, NULL, NULL};
    gboolean ok = read_setting (&item, &one, error);
    g_array_append_val (s->list, one);
    if (!ok)
      return NULL;
  }
  return g_steal_pointer (&s);
}

gboolean
row_settings_apply (const RowSettings *s, const CsvTable *t, guint row, Spec *spec, char **reason)
{
  for (guint i = 0; i < s->list->len; i++) {
    const Setting *one = &g_array_index (s->list, Setting, i);
    gboolean all = TRUE;
    g_autofree char *value = g_strdup (one->value);
    for (guint k = 0; k < CELL_COUNT && all; k++) {
      const char *text = csv_cell (t, row, csv_col (t, cell_names[k]));
      g_autoptr (GMatchInfo) match = NULL;
      all = one->cell[k] == NULL || g_regex_match (one->cell[k], text, 0, &match);
      if (all && k == CELL_COMMENTS && match != NULL && strchr (one->value, '\\') != NULL) {
        g_free (value);
        value = g_match_info_expand_references (match, one->value, NULL);
      }
    }
    if (all && strcmp (one->set, "skip") == 0) {
      *reason = g_steal_pointer (&value);
      return FALSE;
    }
    if (all && value != NULL)
      apply_one (spec, one->set, value);
  }
  return TRUE;
}

/* ---- columns of experts ---- */

static gboolean
column (const CsvTable *t, guint row, const char *name, gint64 *out)
{
  const char *text = csv_cell (t, row, csv_col (t, name));
  char *end = NULL;
  gint64 v = g_ascii_strtoll (text, &end, 10);
  if (end == text || *end != '\0' || v < 1 || v > (1 << 26))
    return FALSE;
  *out = v;
  return TRUE;
}

gboolean
row_experts (const CsvTable *t, guint row, gboolean is_known, ModelSpec *m, char **reason)
{
  gint64 topk = 0, ffn = 0;
  if (!column (t, row, "moe_experts", &m->num_experts))
    return TRUE; /* dense */
  if (column (t, row, "moe_topk", &topk))
    m->experts_per_token = topk;
  else if (!is_known) {
    *reason = g_strdup ("experts a token (moe_topk) is not stated");
    return FALSE;
  }
  if (column (t, row, "moe_ffn_hidden", &ffn))
    m->moe_ffn_hidden = ffn;
  else if (!is_known) {
    *reason = g_strdup ("width of an expert (moe_ffn_hidden) is not stated");
    return FALSE;
  }
  if (!is_known) {
    m->shared_experts = m->dense_first_layers = 0;
    m->moe_every = 1;
  }
  return TRUE;
}
