/* One row of the table of training runs → Spec, by documented rules: scenarios/published/rules.json
 * (see the README there). */
#include "row_rules.h"

#include <string.h>

#include "text.h"

/* A cell that must hold a whole number and does not: empty, or something else. */
static gboolean
skip_integer (const RunContext *c, guint row, const char *col, const char *what, char **reason)
{
  const char *found = row_cell (c, row, col);
  if (*found == '\0')
    return row_skip (reason, "%s is not stated", what);
  g_autofree char *shown = text_quoted (found);
  return row_skip (reason, "%s is no whole number from 1 to 1e15 (found %s)", what, shown);
}

/* ---- the parts of a Spec ---- */

static gboolean
row_precision (const RunContext *c, guint row, Spec *s, const RunRule *software, GString *assumed,
               char **reason)
{
  static const struct {
    const char *text;
    DType type;
  } known[] = {{"mxfp8", DT_MXFP8}, {"fp8-mx", DT_MXFP8}, {"nvfp4", DT_FP4}, {"fp8", DT_FP8},
               {"bf16", DT_BF16},   {"fp16", DT_FP16},    {"tf32", DT_TF32}, {"fp32", DT_FP32}};
  const char *stated = row_cell (c, row, "precision");
  if (*stated == '\0' && software->precision_default != NULL) {
    stated = software->precision_default;
    row_assume (assumed, "16-bit training");
  }
  g_autofree char *text = g_ascii_strdown (stated, -1);
  if (*text == '\0')
    return row_skip (reason, "precision is not stated");
  for (gsize i = 0; i < G_N_ELEMENTS (known); i++)
    if (strstr (text, known[i].text) != NULL) {
      s->train.precision = known[i].type;
      return TRUE;
    }
  g_autofree char *shown = text_quoted (stated);
  return row_skip (reason, "precision %s is not known", shown);
}

static gboolean
row_train (const RunContext *c, guint row, Spec *s, const RunRule *software, GString *assumed,
           char **reason)
{
  TrainSpec *t = &s->train;
  if (s->model.graph != NULL && s->model.graph->sample_tokens > 0)
    t->sequence_tokens = s->model.graph->sample_tokens; /* images */
  else if (!row_integer (c, row, "seq_len", &t->sequence_tokens))
    return skip_integer (c, row, "seq_len", "sequence length", reason);
  if (!row_integer (c, row, "gbs", &t->global_batch_sequences))
    return skip_integer (c, row, "gbs", "global batch", reason);
  if (!row_integer (c, row, "mbs", &t->micro_batch_sequences))
    t->micro_batch_sequences = 1; /* row_fill */
  const char *rc = row_cell (c, row, "recompute");
  if (recompute_parse (rc, &t->recompute, &t->recompute_modules))
    ;
  else if (g_str_has_prefix (rc, "full"))
    t->recompute = RECOMPUTE_FULL;
  else if (g_str_has_prefix (rc, "minimal")) { /* JAX: every matrix product is kept */
    t->recompute = RECOMPUTE_NONE;
    row_assume (assumed, "no matrix product is recomputed");
  } else if (*rc != '\0')
    return row_skip (reason, "recompute mode \"%.60s\" is not known", rc);
  else {
    double year = 0;
    row_number (c, row, "year", &year);
    gboolean full = year > 0 && year < 2023 && s->model.graph == NULL; /* of large decoders */
    t->recompute = full ? RECOMPUTE_FULL : RECOMPUTE_NONE;             /* row_fill */
  }
  return row_precision (c, row, s, software, assumed, reason);
}

/* Column sharding, or the rule's default. */
static gboolean
row_sharding (const RunContext *c, guint row, Spec *s, const RunRule *software, GString *assumed,
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
  const char *sh = row_cell (c, row, "sharding");
  gsize i = 0;
  if (*sh == '\0') {
    p->zero_stage = software->zero_stage;
    p->fsdp = software->fsdp && p->zero_stage >= 2;
    row_assume (assumed, p->zero_stage == 0   ? "plain data parallelism"
                         : p->zero_stage == 1 ? "distributed optimizer"
                                              : "sharded parameters");
    return TRUE;
  }
  while (i < G_N_ELEMENTS (known) && strcmp (sh, known[i].text) != 0)
    i++;
  if (i == G_N_ELEMENTS (known))
    return row_skip (reason, "sharding %s: not predicted yet", sh);
  p->zero_stage = known[i].stage;
  p->fsdp = known[i].fsdp || (software->fsdp && p->zero_stage >= 2);
  if (strcmp (sh, "hsdp") == 0) { /* a shard group is a node, as in the sources that say so */
    if (!row_integer (c, row, "gpus_per_node", &p->shard_size))
      p->shard_size = 8;
    row_assume (assumed, "shards inside a node");
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
  g_autofree char *text = g_ascii_strdown (row_cell (c, row, "schedule"), -1);
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
  return row_skip (reason, "schedule %s: not predicted yet", text);
}

static gboolean
row_parallel (const RunContext *c, guint row, Spec *s, const RunRule *software, GString *assumed,
              char **reason)
{
  ParallelSpec *p = &s->parallel;
  if (!row_integer (c, row, "tp", &p->tp))
    return skip_integer (c, row, "tp", "tp", reason);
  if (!row_integer (c, row, "pp", &p->pp))
    return skip_integer (c, row, "pp", "pp", reason);
  row_integer (c, row, "cp", &p->cp);
  row_integer (c, row, "vp", &p->vpp);
  if (!row_integer (c, row, "ep", &p->ep) && s->model.num_experts > 0)
    row_assume (assumed, "no expert parallelism");
  p->dp = 0;
  row_integer (c, row, "dp", &p->dp);
  const char *sp = row_cell (c, row, "seq_parallel");
  p->sequence_parallel =
      p->tp > 1 && (*sp != '\0' ? strcmp (sp, "1") == 0 : software->sequence_parallel);
  if (*sp == '\0' && p->tp > 1)
    row_assume (assumed, p->sequence_parallel ? "sequence parallel" : "no sequence parallelism");
  if (!row_sharding (c, row, s, software, assumed, reason))
    return FALSE;
  if (!row_schedule (c, row, p, reason))
    return FALSE;
  return TRUE;
}

/* Whether the rule takes the network of the row for another one; inside a node there is none. */
static gboolean
fabric_stands_in (const RunContext *c, guint row, const Spec *s, const RunRule *fabric)
{
  const char *text = row_cell (c, row, "interconnect");
  if (fabric->stand_in)
    return TRUE;
  return s->cluster.gpus > s->cluster.gpus_per_node && fabric->stands_for != NULL &&
         *text != '\0' && !g_regex_match (fabric->stands_for, text, 0, NULL);
}

static void
tell_stand_in (Spec *s, GString *assumed, const char *what, const char *value)
{
  g_autofree char *text = g_strdup_printf ("%s as %s", what, value);
  row_assume (assumed, text);
  s->stand_in = TRUE;
}

static gboolean
row_machine (const RunContext *c, guint row, Spec *s, const RunRule *software, GString *assumed,
             char **reason)
{
  g_autoptr (GError) err = NULL;
  if (!row_integer (c, row, "num_gpus", &s->cluster.gpus))
    return row_skip (reason, "number of GPUs is not stated");
  s->gpu = store_gpu (c->store, row_cell (c, row, "gpu"), NULL, &err);
  if (s->gpu == NULL)
    return row_skip (reason, "GPU %s has no profile", row_cell (c, row, "gpu"));
  const RunRule *fabric = rule_find (c, c->rules->fabric, row);
  if (fabric == NULL)
    return row_skip (reason, "no fabric rule for %s, \"%.60s\"", row_cell (c, row, "gpu"),
                     row_cell (c, row, "interconnect"));
  s->fabric = store_fabric (c->store, fabric->value, NULL, &err);
  const SoftwareProfile *sw =
      s->fabric != NULL ? store_software (c->store, software->value, NULL, &err) : NULL;
  if (sw == NULL)
    return row_skip (reason, "%s", err->message);
  s->software = *sw;
  s->software.name = g_strdup (sw->name);
  if (!row_integer (c, row, "gpus_per_node", &s->cluster.gpus_per_node))
    s->cluster.gpus_per_node = 8;
  s->cluster.gpus_per_node = MIN (s->cluster.gpus_per_node, s->cluster.gpus);
  s->cluster.nodes = (s->cluster.gpus + s->cluster.gpus_per_node - 1) / s->cluster.gpus_per_node;
  if (software->stand_in)
    tell_stand_in (s, assumed, "software", software->value);
  if (fabric_stands_in (c, row, s, fabric))
    tell_stand_in (s, assumed, "network", fabric->value);
  return TRUE;
}

gboolean
run_row_spec (const RunContext *c, guint row, Spec *s, GString *assumed, char **reason)
{
  s->borrowed = TRUE;
  s->name = g_strdup (row_cell (c, row, "id"));
  const char *comments = row_cell (c, row, "comments");
  if (strstr (comments, "CONTRADICTION") != NULL || strstr (comments, "SUSPECT") != NULL)
    return row_skip (reason, "the row contradicts itself or is suspect: %.80s", comments);
  const RunRule *software = rule_find (c, c->rules->software, row);
  if (software == NULL)
    return row_skip (reason, "no software profile for %s of %s", row_cell (c, row, "framework"),
                     row_cell (c, row, "year"));
  if (!row_model (c, row, s, assumed, reason) ||
      !row_train (c, row, s, software, assumed, reason) ||
      !row_parallel (c, row, s, software, assumed, reason) ||
      !row_machine (c, row, s, software, assumed, reason))
    return FALSE;
  const Recompute before = s->train.recompute;
  const guint modules = s->train.recompute_modules;
  if (!row_settings_apply (c->rules->settings, c->t, row, s, reason))
    return FALSE;
  if (s->train.adapter_rank > 0)
    row_assume (assumed, "rank and targets of the adapters");
  else if (strcmp (row_cell (c, row, "trainable"), "lora") == 0)
    return row_skip (reason, "no rule for the adapters of this framework");
  g_autoptr (GError) err = NULL;
  const gboolean ruled = s->train.recompute != before || s->train.recompute_modules != modules;
  if (!spec_check (s, NULL, &err) ||
      !row_fill (c, row, s, software, !ruled && *row_cell (c, row, "recompute") == '\0', assumed,
                 &err))
    return row_skip (reason, "%s", err->message);
  return TRUE;
}
