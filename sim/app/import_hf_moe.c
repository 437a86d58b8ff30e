/* Families with experts; each function reads the keys that only they have. */
#include "import_hf_priv.h"

#include <string.h>

/* mlp_only_layers lists dense layers; we know "the first k" and "every k-th is MoE". */
static void
dense_layers (Hf *h, ModelSpec *m, const char *key)
{
  JsonRef list;
  gint64 step = 1;

  hf_int (h, &step, "decoder_sparse_step", NULL);
  m->moe_every = MAX (step, 1);
  if (!hf_array (h, key, &list))
    return;
  for (int i = 0; i < json_len (&list); i++) {
    const JsonRef item = json_item (&list, i);
    gint64 layer = 0;

    if (!json_value_int (&item, 0, HF_INT_MAX, &layer, &h->error))
      return;
    if (layer != i)
      hf_fail (h, key, "dense layers that are not the first ones are not supported");
  }
  m->dense_first_layers = json_len (&list);
}

void
hf_moe_mixtral (Hf *h, ModelSpec *m)
{
  hf_need (h, &m->num_experts, "num_local_experts", NULL);
  hf_need (h, &m->experts_per_token, "num_experts_per_tok", NULL);
  m->moe_ffn_hidden = m->ffn_hidden;
  m->ffn_hidden = 0;
  hf_sliding (h, m, 0);
}

static void
qwen_experts (Hf *h, ModelSpec *m)
{
  hf_need (h, &m->num_experts, "num_experts", NULL);
  hf_need (h, &m->experts_per_token, "num_experts_per_tok", NULL);
  hf_need (h, &m->moe_ffn_hidden, "moe_intermediate_size", NULL);
  dense_layers (h, m, "mlp_only_layers");
  gboolean on = FALSE;
  hf_bool (h, &on, "use_sliding_window", NULL);
  hf_mark (h, "sliding_window");
  hf_mark (h, "max_window_layers");
  if (on)
    hf_sliding (h, m, 0);
}

static void
qwen_shared (Hf *h, ModelSpec *m)
{
  hf_int (h, &m->shared_ffn_hidden, "shared_expert_intermediate_size", NULL);
  m->shared_experts = m->shared_ffn_hidden > 0 ? 1 : 0;
  m->shared_gate = m->shared_experts > 0;
}

void
hf_moe_qwen2 (Hf *h, ModelSpec *m)
{
  qwen_experts (h, m);
  qwen_shared (h, m);
}

void
hf_moe_qwen3 (Hf *h, ModelSpec *m)
{
  m->qk_norm = TRUE;
  qwen_experts (h, m);
}

void
hf_moe_qwen3_next (Hf *h, ModelSpec *m)
{
  m->qk_norm = m->attn_gate = TRUE;
  m->linear_period = 4; /* defaults of its class */
  m->linear_conv = 4;
  hf_int (h, &m->linear_period, "full_attention_interval", NULL);
  hf_need (h, &m->linear_key_heads, "linear_num_key_heads", NULL);
  hf_need (h, &m->linear_value_heads, "linear_num_value_heads", NULL);
  hf_need (h, &m->linear_key_dim, "linear_key_head_dim", NULL);
  hf_need (h, &m->linear_value_dim, "linear_value_head_dim", NULL);
  hf_int (h, &m->linear_conv, "linear_conv_kernel_dim", NULL);
  qwen_experts (h, m);
  qwen_shared (h, m);
}

/* n_routed_experts, absent or null in a dense model of the family. */
void
hf_moe_deepseek (Hf *h, ModelSpec *m)
{
  gint64 freq = 1;
  const char *method = NULL;

  hf_int (h, &m->mtp_layers, "num_nextn_predict_layers", NULL);
  if (!hf_int (h, &m->num_experts, "n_routed_experts", NULL) || m->num_experts == 0)
    return;
  hf_need (h, &m->experts_per_token, "num_experts_per_tok", NULL);
  hf_need (h, &m->moe_ffn_hidden, "moe_intermediate_size", NULL);
  hf_int (h, &m->shared_experts, "n_shared_experts", NULL);
  m->shared_ffn_hidden = m->shared_experts > 0 ? m->moe_ffn_hidden : 0;
  hf_int (h, &m->dense_first_layers, "first_k_dense_replace", NULL);
  hf_int (h, &m->router_groups, "n_group", NULL);
  hf_int (h, &m->router_topk_groups, "topk_group", NULL);
  hf_int (h, &freq, "moe_layer_freq", NULL);
  if (freq != 1)
    hf_fail (h, "moe_layer_freq", "only moe_layer_freq 1 is supported (%" G_GINT64_FORMAT ")",
             freq);
  if (hf_string (h, &method, "topk_method", NULL))
    m->router_bias = strcmp (method, "noaux_tc") == 0; /* balanced by a bias in place of a loss */
}

void
hf_moe_deepseek_mla (Hf *h, ModelSpec *m)
{
  hf_int (h, &m->q_lora_rank, "q_lora_rank", NULL);
  hf_need (h, &m->kv_lora_rank, "kv_lora_rank", NULL);
  hf_need (h, &m->qk_nope_dim, "qk_nope_head_dim", NULL);
  hf_need (h, &m->qk_rope_dim, "qk_rope_head_dim", NULL);
  hf_need (h, &m->v_head_dim, "v_head_dim", NULL);
  m->head_dim = m->qk_nope_dim + m->qk_rope_dim;
  hf_mark (h, "qk_head_dim");
  m->kv_heads = m->heads;
  if (hf_int (h, &m->index_heads, "index_n_heads", NULL) && m->index_heads > 0) {
    hf_need (h, &m->index_head_dim, "index_head_dim", NULL);
    hf_need (h, &m->index_topk, "index_topk", NULL);
  }
  hf_moe_deepseek (h, m);
}

/* GLM 4.5: q, k, v have biases (attention_bias), the output has none; the router always has one. */
void
hf_moe_glm4 (Hf *h, ModelSpec *m)
{
  m->attn_out_bias = FALSE;
  hf_bool (h, &m->qk_norm, "use_qk_norm", NULL);
  hf_moe_deepseek (h, m);
  m->router_bias = m->num_experts > 0;
}

void
hf_moe_gpt_oss (Hf *h, ModelSpec *m)
{
  hf_need (h, &m->num_experts, "num_local_experts", "num_experts", NULL);
  hf_need (h, &m->experts_per_token, "num_experts_per_tok", "experts_per_token", NULL);
  m->moe_ffn_hidden = m->ffn_hidden;
  m->ffn_hidden = 0;
  m->attn_sinks = m->router_bias = m->expert_bias = TRUE;
  hf_sliding (h, m, 2);
}

void
hf_moe_dbrx (Hf *h, ModelSpec *m)
{
  JsonRef attn, ffn;
  gint64 width = 0;

  if (hf_object (h, "attn_config", &attn) &&
      !json_opt_int (&attn, "kv_n_heads", 1, HF_INT_MAX, &m->kv_heads, &h->error))
    return;
  if (!hf_object (h, "ffn_config", &ffn)) {
    hf_fail (h, NULL, "ffn_config is missing");
    return;
  }
  if (json_get_int (&ffn, "moe_num_experts", 1, HF_INT_MAX, &m->num_experts, &h->error) &&
      json_get_int (&ffn, "moe_top_k", 1, HF_INT_MAX, &m->experts_per_token, &h->error) &&
      json_get_int (&ffn, "ffn_hidden_size", 1, HF_INT_MAX, &width, &h->error))
    m->moe_ffn_hidden = width;
  m->ffn_hidden = 0;
}

void
hf_moe_grok (Hf *h, ModelSpec *m)
{
  hf_need (h, &m->num_experts, "num_experts", "num_local_experts", NULL);
  hf_need (h, &m->experts_per_token, "num_experts_per_tok", "num_selected_experts", NULL);
  m->moe_ffn_hidden = m->ffn_hidden;
  m->ffn_hidden = 0;
}

/* Layers step-1, 2 step-1, … are MoE; every no_rope_layer_interval-th attends to the whole
 * sequence, the others within chunks. q and k are normalised without weights. */
void
hf_moe_llama4 (Hf *h, ModelSpec *m)
{
  hf_need (h, &m->num_experts, "num_local_experts", NULL);
  m->experts_per_token = 1;
  hf_int (h, &m->experts_per_token, "num_experts_per_tok", NULL);
  m->moe_ffn_hidden = m->shared_ffn_hidden = m->ffn_hidden;
  m->shared_experts = 1;
  hf_int (h, &m->ffn_hidden, "intermediate_size_mlp", NULL);
  hf_int (h, &m->moe_every, "interleave_moe_layer_step", NULL);
  m->moe_every = MAX (m->moe_every, 1);
  hf_mark (h, "moe_layers");
  hf_mark (h, "use_qk_norm");
  m->sliding_period = 4;
  hf_int (h, &m->sliding_period, "no_rope_layer_interval", NULL);
  hf_int (h, &m->sliding_window, "attention_chunk_size", NULL);
  m->sliding_chunks = m->sliding_window > 0;
}

void
hf_moe_minimax (Hf *h, ModelSpec *m)
{
  gint64 modules = 0, layers = 1;
  gboolean mtp = TRUE;

  hf_need (h, &m->num_experts, "num_local_experts", NULL);
  hf_need (h, &m->experts_per_token, "num_experts_per_tok", NULL);
  m->moe_ffn_hidden = m->ffn_hidden;
  m->ffn_hidden = 0;
  hf_bool (h, &m->qk_norm, "use_qk_norm", NULL);
  m->qk_norm_wide = m->qk_norm;
  hf_bool (h, &m->router_bias, "use_routing_bias", NULL);
  hf_int (h, &m->shared_ffn_hidden, "shared_intermediate_size", NULL);
  m->shared_experts = m->shared_ffn_hidden > 0 ? 1 : 0;
  hf_bool (h, &mtp, "use_mtp", NULL);
  hf_int (h, &modules, "num_mtp_modules", NULL);
  hf_int (h, &layers, "mtp_transformer_layers", NULL);
  m->mtp_layers = mtp ? modules * layers : 0;
}
