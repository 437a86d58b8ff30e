#include "read_model.h"

#include "read_graph.h"

#include <stddef.h>

#define FIELD_MAX G_MAXINT32

typedef enum { FIELD_INT, FIELD_BOOL, FIELD_NORM, FIELD_ACT, FIELD_POS } FieldKind;

typedef struct {
  const char *name;
  size_t offset;
  FieldKind kind;
  gboolean required;
} Field;

#define INT(f)                                                                                     \
  {                                                                                                \
#f, offsetof(ModelSpec, f), FIELD_INT, FALSE                                                   \
  }
#define NEED(f)                                                                                    \
  {                                                                                                \
#f, offsetof(ModelSpec, f), FIELD_INT, TRUE                                                    \
  }
#define BOOL(f)                                                                                    \
  {                                                                                                \
#f, offsetof(ModelSpec, f), FIELD_BOOL, FALSE                                                  \
  }

/* One table reads, checks keys and writes. clang-format off: it would stack the columns. */
/* clang-format off */
static const Field fields[] = {
  NEED (num_layers), NEED (hidden), INT (ffn_hidden), NEED (heads), INT (kv_heads), INT (head_dim),
  NEED (vocab), INT (max_positions),
  { "norm", offsetof (ModelSpec, norm), FIELD_NORM, FALSE },
  { "act", offsetof (ModelSpec, act), FIELD_ACT, FALSE },
  { "pos", offsetof (ModelSpec, pos), FIELD_POS, FALSE },
  BOOL (gated_mlp), BOOL (tied_embeddings), BOOL (qkv_bias), BOOL (attn_out_bias), BOOL (mlp_bias),
  BOOL (norm_bias), BOOL (head_bias), BOOL (embedding_norm), BOOL (final_norm), BOOL (qk_norm),
  BOOL (qk_norm_wide), BOOL (parallel_block), INT (norms_per_layer), INT (embed_dim),
  BOOL (attn_gate), BOOL (attn_sinks), INT (sliding_window), INT (sliding_period), BOOL (sliding_chunks),
  INT (linear_period), INT (linear_key_heads), INT (linear_value_heads), INT (linear_key_dim),
  INT (linear_value_dim), INT (linear_conv),
  INT (num_experts), INT (experts_per_token), INT (moe_ffn_hidden), INT (shared_experts),
  INT (shared_ffn_hidden), INT (dense_first_layers), INT (moe_every),
  INT (router_groups), INT (router_topk_groups),
  BOOL (router_bias), BOOL (shared_gate), BOOL (expert_bias),
  INT (q_lora_rank), INT (kv_lora_rank), INT (qk_nope_dim), INT (qk_rope_dim), INT (v_head_dim),
  INT (index_heads), INT (index_head_dim), INT (index_topk),
  INT (mtp_layers), BOOL (causal),
};
/* clang-format on */

static const char *const *
names_of (FieldKind kind)
{
  switch (kind) {
  case FIELD_NORM:
    return norm_names;
  case FIELD_ACT:
    return act_names;
  case FIELD_POS:
    return pos_names;
  case FIELD_INT:
  case FIELD_BOOL:
    break;
  }
  g_assert_not_reached ();
}

static int
enum_value (const ModelSpec *m, const Field *f)
{
  switch (f->kind) {
  case FIELD_NORM:
    return (int)m->norm;
  case FIELD_ACT:
    return (int)m->act;
  case FIELD_POS:
    return (int)m->pos;
  case FIELD_INT:
  case FIELD_BOOL:
    break;
  }
  g_assert_not_reached ();
}

static gboolean
read_enum (const JsonRef *root, const Field *f, ModelSpec *m, GError **error)
{
  int value = enum_value (m, f);

  if (!json_opt_enum (root, f->name, names_of (f->kind), &value, error))
    return FALSE;
  if (f->kind == FIELD_NORM)
    m->norm = (NormKind)value;
  else if (f->kind == FIELD_ACT)
    m->act = (ActKind)value;
  else
    m->pos = (PosKind)value;
  return TRUE;
}

static gboolean
read_field (const JsonRef *root, const Field *f, ModelSpec *m, GError **error)
{
  void *at = (char *)m + f->offset;

  if (f->kind == FIELD_BOOL)
    return json_opt_bool (root, f->name, at, error);
  if (f->kind != FIELD_INT)
    return read_enum (root, f, m, error);
  if (f->required)
    return json_get_int (root, f->name, 1, FIELD_MAX, at, error);
  return json_opt_int (root, f->name, 0, FIELD_MAX, at, error);
}

static gboolean
check_keys (const JsonRef *root, GError **error)
{
  const char *keys[G_N_ELEMENTS (fields) + 3];
  guint n = 0;

  for (guint i = 0; i < G_N_ELEMENTS (fields); i++)
    keys[n++] = fields[i].name;
  keys[n++] = "name";
  keys[n++] = "source";
  keys[n] = NULL;
  return json_check_keys (root, keys, error);
}

static gboolean
read_all (const JsonRef *root, ModelSpec *m, GError **error)
{
  const char *text = NULL;

  if (!check_keys (root, error))
    return FALSE;
  if (!json_opt_string (root, "source", &text, error))
    return FALSE;
  text = NULL;
  if (!json_opt_string (root, "name", &text, error))
    return FALSE;
  m->name = g_strdup (text != NULL ? text : "model");
  for (guint i = 0; i < G_N_ELEMENTS (fields); i++)
    if (!read_field (root, &fields[i], m, error))
      return FALSE;
  if (!json_has (root, "kv_heads"))
    m->kv_heads = m->heads;
  if (!json_has (root, "head_dim")) {
    if (m->hidden % m->heads != 0)
      return json_fail (root, JSON_ERROR_INCONSISTENT, error,
                        "head_dim is needed: hidden is not a multiple of heads (%" G_GINT64_FORMAT
                        " by %" G_GINT64_FORMAT ")",
                        m->hidden, m->heads);
    m->head_dim = m->hidden / m->heads;
  }
  g_autoptr (GError) why = NULL;
  if (!model_check (m, &why))
    return json_fail (root, JSON_ERROR_INCONSISTENT, error, "%s", why->message);
  return TRUE;
}

gboolean
read_model (const JsonRef *root, ModelSpec *out, GError **error)
{
  model_init (out);
  if (is_graph_model (root) ? read_graph_model (root, out, error) : read_all (root, out, error))
    return TRUE;
  model_clear (out);
  return FALSE;
}

static void
write_field (JsonWriter *w, const Field *f, const ModelSpec *m, const ModelSpec *plain)
{
  const void *at = (const char *)m + f->offset, *def = (const char *)plain + f->offset;

  if (f->kind == FIELD_INT) {
    if (*(const gint64 *)at != *(const gint64 *)def)
      jw_int (w, f->name, *(const gint64 *)at);
  } else if (f->kind == FIELD_BOOL) {
    if (*(const gboolean *)at != *(const gboolean *)def)
      jw_bool (w, f->name, *(const gboolean *)at);
  } else {
    jw_string (w, f->name, names_of (f->kind)[enum_value (m, f)]);
  }
}

void
write_model (JsonWriter *w, const char *key, const ModelSpec *m, const char *source)
{
  ModelSpec plain;

  g_assert (m->graph == NULL);
  model_init (&plain);
  plain.kv_heads = m->heads;
  plain.head_dim = m->heads > 0 && m->hidden % m->heads == 0 ? m->hidden / m->heads : 0;
  jw_begin_object (w, key);
  jw_string (w, "name", m->name);
  if (source != NULL)
    jw_string (w, "source", source);
  for (guint i = 0; i < G_N_ELEMENTS (fields); i++)
    write_field (w, &fields[i], m, &plain);
  jw_end_object (w);
}
