#include "model.h"

#include <string.h>

const char *const norm_names[] = {"layernorm", "rmsnorm", NULL};
const char *const act_names[] = {"gelu", "silu", "relu", "relu2", NULL};
const char *const pos_names[] = {"learned", "rotary", "alibi", "none", NULL};

GQuark
model_error_quark (void)
{
  return g_quark_from_static_string ("clustersim-model-error");
}

void
model_init (ModelSpec *m)
{
  memset (m, 0, sizeof *m);
  m->pos = POS_ROTARY;
  m->final_norm = TRUE;
  m->norms_per_layer = 2;
  m->moe_every = 1;
  m->causal = TRUE;
}

void
model_clear (ModelSpec *m)
{
  g_clear_pointer (&m->name, g_free);
  g_clear_pointer (&m->graph, graph_unref);
}

void
model_copy (ModelSpec *dst, const ModelSpec *src)
{
  *dst = *src;
  dst->name = g_strdup (src->name);
  dst->graph = graph_ref (src->graph);
}

gboolean
model_layer_is_moe (const ModelSpec *m, gint64 i)
{
  if (m->num_experts == 0 || i < m->dense_first_layers)
    return FALSE;
  return m->moe_every <= 1 || (i - m->dense_first_layers + 1) % m->moe_every == 0;
}

gboolean
model_layer_is_linear (const ModelSpec *m, gint64 i)
{
  return m->linear_period > 0 && (i + 1) % m->linear_period != 0;
}

gint64
model_layer_window (const ModelSpec *m, gint64 i)
{
  if (m->sliding_window == 0)
    return 0;
  if (m->sliding_period > 0 && (i + 1) % m->sliding_period == 0)
    return 0;
  return m->sliding_window;
}

static gboolean fail (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
fail (GError **error, const char *format, ...)
{
  va_list ap;

  va_start (ap, format);
  g_autofree char *text = g_strdup_vprintf (format, ap);
  va_end (ap);
  g_set_error_literal (error, MODEL_ERROR, 0, text);
  return FALSE;
}

/* Sizes so large that no product of three of them leaves 63 bits are typing errors. */
#define SIZE_MAX_ALLOWED (G_GINT64_CONSTANT (1) << 26)

static gboolean
check_sizes (const ModelSpec *m, GError **error)
{
  const struct {
    const char *name;
    gint64 value, min;
  } sizes[] = {
      {"num_layers", m->num_layers, 1},
      {"hidden", m->hidden, 1},
      {"ffn_hidden", m->ffn_hidden, 0},
      {"heads", m->heads, 1},
      {"kv_heads", m->kv_heads, 1},
      {"head_dim", m->head_dim, 1},
      {"vocab", m->vocab, 1},
      {"max_positions", m->max_positions, 0},
      {"embed_dim", m->embed_dim, 0},
      {"norms_per_layer", m->norms_per_layer, 0},
      {"sliding_window", m->sliding_window, 0},
      {"sliding_period", m->sliding_period, 0},
      {"num_experts", m->num_experts, 0},
      {"dense_first_layers", m->dense_first_layers, 0},
      {"moe_every", m->moe_every, 1},
      {"mtp_layers", m->mtp_layers, 0},
      {"q_lora_rank", m->q_lora_rank, 0},
      {"kv_lora_rank", m->kv_lora_rank, 0},
      {"shared_experts", m->shared_experts, 0},
  };

  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    if (sizes[i].value < sizes[i].min || sizes[i].value > SIZE_MAX_ALLOWED)
      return fail (error, "%s is out of range (%" G_GINT64_FORMAT "; %" G_GINT64_FORMAT " to %d)",
                   sizes[i].name, sizes[i].value, sizes[i].min, 1 << 26);
  return TRUE;
}

static gboolean
check_moe (const ModelSpec *m, GError **error)
{
  if (m->num_experts == 0) {
    if (m->ffn_hidden < 1)
      return fail (error, "ffn_hidden must be positive in a dense model");
    return TRUE;
  }
  if (m->experts_per_token < 1 || m->experts_per_token > m->num_experts)
    return fail (error,
                 "experts_per_token is out of range (%" G_GINT64_FORMAT
                 "; 1 to num_experts %" G_GINT64_FORMAT ")",
                 m->experts_per_token, m->num_experts);
  if (m->router_groups > 0 &&
      (m->num_experts % m->router_groups != 0 || m->router_topk_groups < 1 ||
       m->router_topk_groups > m->router_groups))
    return fail (error,
                 "router_groups must divide num_experts (%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT
                 "), and router_topk_groups be 1 to router_groups (%" G_GINT64_FORMAT ")",
                 m->router_groups, m->num_experts, m->router_topk_groups);
  if (m->moe_ffn_hidden < 1)
    return fail (error, "moe_ffn_hidden must be positive in a model with experts");
  if (m->shared_experts > 0 && m->shared_ffn_hidden < 1)
    return fail (error, "shared_ffn_hidden must be positive with shared_experts");
  if (m->dense_first_layers > m->num_layers)
    return fail (error,
                 "dense_first_layers exceeds num_layers (%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT
                 ")",
                 m->dense_first_layers, m->num_layers);
  if (m->ffn_hidden < 1 && (m->dense_first_layers > 0 || m->moe_every > 1))
    return fail (error, "ffn_hidden must be positive: some layers are dense");
  return TRUE;
}

static gboolean
check_attention (const ModelSpec *m, GError **error)
{
  if (m->heads % m->kv_heads != 0)
    return fail (error,
                 "heads must be a multiple of kv_heads (%" G_GINT64_FORMAT
                 " heads, %" G_GINT64_FORMAT " kv_heads)",
                 m->heads, m->kv_heads);
  if (m->kv_lora_rank > 0 && (m->qk_nope_dim < 0 || m->qk_rope_dim < 0 || m->v_head_dim < 1 ||
                              m->qk_nope_dim + m->qk_rope_dim < 1))
    return fail (error,
                 "latent attention (kv_lora_rank) needs qk_nope_dim, qk_rope_dim and v_head_dim");
  if (m->kv_lora_rank == 0 && m->q_lora_rank > 0)
    return fail (error, "q_lora_rank without kv_lora_rank is not a known attention");
  if (m->index_heads > 0 && (m->q_lora_rank < 1 || m->index_head_dim < 1 || m->index_topk < 1))
    return fail (error, "index_heads needs q_lora_rank, index_head_dim and index_topk");
  if (m->qk_norm_wide && !m->qk_norm)
    return fail (error, "qk_norm_wide needs qk_norm");
  if (m->linear_period > 0 &&
      (m->linear_key_heads < 1 || m->linear_value_heads < 1 || m->linear_key_dim < 1 ||
       m->linear_value_dim < 1 || m->linear_conv < 1))
    return fail (error, "linear_period needs linear_key_heads, linear_value_heads, linear_key_dim, "
                        "linear_value_dim and linear_conv");
  if ((m->pos == POS_LEARNED) != (m->max_positions > 0))
    return fail (error, m->pos == POS_LEARNED
                            ? "pos learned needs max_positions"
                            : "max_positions is the size of a learned table: pos must be learned");
  return TRUE;
}

gboolean
model_check (const ModelSpec *m, GError **error)
{
  if (m->graph != NULL)
    return check_sizes (m, error) && graph_check (m->graph, error);
  return check_sizes (m, error) && check_attention (m, error) && check_moe (m, error);
}
