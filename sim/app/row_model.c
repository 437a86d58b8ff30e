/* The architecture of a row of training runs: a shipped one that its name selects, with the row's
 * own sizes, or a decoder of the style that its columns tell. */
#include "row_rules.h"

#include "store.h"

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
  return row_integer (c, row, "moe_experts", &n);
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
  row_integer (c, row, "hidden", &hidden);
  row_integer (c, row, "heads", &heads);
  return known->num_experts > 0 && known->hidden == hidden && known->heads == heads ? known : NULL;
}

/* A row without a shape: its model has one size only, or is of the size that the row states. */
static gboolean
has_size_of (const RunContext *c, guint row, const ModelSpec *m)
{
  double stated = 0, count = (double)model_params_total (m) * 1e-9;
  if (!row_number (c, row, "params_b", &stated))
    return m->graph->images && m->graph->sample_tokens == 1;
  return stated > 0.9 * count && stated < 1.1 * count;
}

/* A model of operators, with the sizes that the row states. */
static gboolean
row_graph (const RunContext *c, guint row, const char *name, ModelSpec *m, char **reason)
{
  static const char *const sizes[] = {"num_layers", "hidden",     "heads",
                                      "kv_heads",   "ffn_hidden", "vocab"};
  const char *stated[G_N_ELEMENTS (sizes)];
  gint64 values[G_N_ELEMENTS (sizes)], layers = 0;
  guint n = 0;
  g_autoptr (GError) err = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    if (row_integer (c, row, sizes[i], &values[n]))
      stated[n++] = sizes[i];
  model_clear (m);
  if (!store_model_sized (name, stated, values, n, m, &err)) {
    model_init (m);
    return row_skip (reason, "%s", err->message);
  }
  if (!row_integer (c, row, "hidden", &layers) && !has_size_of (c, row, m))
    return row_skip (reason,
                     "neither its shape is stated nor a number of parameters near that of "
                     "the architecture %s",
                     name);
  if (row_integer (c, row, "num_layers", &layers) && m->num_layers % layers != 0)
    return row_skip (reason, "the row has %" G_GINT64_FORMAT " layers, %s %" G_GINT64_FORMAT,
                     layers, name, m->num_layers);
  g_free (m->name);
  m->name = g_strdup (row_cell (c, row, "model"));
  return TRUE;
}

gboolean
row_model (const RunContext *c, guint row, Spec *s, GString *assumed, char **reason)
{
  ModelSpec *m = &s->model;
  double gated = 0;
  const RunRule *r = rule_find (c, c->rules->model, row);
  const ModelSpec *known = r != NULL ? store_model (c->store, r->value, NULL, NULL) : NULL;
  if (known != NULL && known->graph != NULL)
    return row_graph (c, row, r->value, m, reason);
  row_number (c, row, "gated_mlp", &gated);
  known = agreeing (c, row, known);
  if (known != NULL)
    model_copy (m, known);
  else
    style_of_model (m, gated != 0);
  if (!row_experts (c->t, row, known != NULL, m, reason))
    return FALSE;
  if (!row_integer (c, row, "num_layers", &m->num_layers) ||
      !row_integer (c, row, "hidden", &m->hidden) || !row_integer (c, row, "heads", &m->heads))
    return row_skip (reason, "not a transformer with layers, hidden size and heads stated");
  if (!row_integer (c, row, "kv_heads", &m->kv_heads)) {
    m->kv_heads = m->heads;
  }
  if (!row_integer (c, row, "ffn_hidden", &m->ffn_hidden) && m->num_experts == 0) {
    m->ffn_hidden = 4 * m->hidden;
    row_assume (assumed, "ffn_hidden 4 x hidden");
  }
  if (!row_integer (c, row, "vocab", &m->vocab)) {
    m->vocab = 50257;
    row_assume (assumed, "vocabulary 50257");
  }
  if (known == NULL || known->hidden != m->hidden || known->heads != m->heads)
    m->head_dim = m->hidden / m->heads;
  if (m->pos == POS_LEARNED && !row_integer (c, row, "seq_len", &m->max_positions))
    m->max_positions = 2048;
  g_free (m->name);
  m->name = g_strdup (row_cell (c, row, "model"));
  return TRUE;
}
