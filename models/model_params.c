/* Exact parameter counts. Each block is counted once, as the part that tensor parallelism divides
 * by tp, the part it divides by at most kv_heads, and the part every rank keeps; totals and rank
 * shares both come from that, so they cannot disagree. */
#include "model.h"

typedef struct {
  gint64 split, split_kv, whole;
} Block;

static gint64
block_total (Block b)
{
  return b.split + b.split_kv + b.whole;
}

static gint64
ceil_div (gint64 a, gint64 b)
{
  return (a + b - 1) / b;
}

static gint64
block_rank (const ModelSpec *m, Block b, gint64 tp)
{
  return ceil_div (b.split, tp) + ceil_div (b.split_kv, MIN (tp, m->kv_heads)) + b.whole;
}

static Block
attention_block (const ModelSpec *m)
{
  const gint64 q = m->heads * m->head_dim, kv = m->kv_heads * m->head_dim;
  const gint64 q_out = m->attn_gate ? 2 * q : q;
  Block b = {0};

  b.split = m->hidden * q_out + q * m->hidden + (m->qkv_bias ? q_out : 0) +
            (m->attn_sinks ? m->heads : 0);
  b.split_kv = 2 * (m->hidden * kv + (m->qkv_bias ? kv : 0));
  b.whole = m->attn_out_bias ? m->hidden : 0;
  if (m->qk_norm && m->qk_norm_wide) {
    b.split += q;
    b.split_kv += kv;
  } else if (m->qk_norm) {
    b.whole += 2 * m->head_dim;
  }
  return b;
}

/* DeepSeek-V2 (arXiv 2405.04434), section 2.1, and the indexer of V3.2 (its key norm has a bias).
 */
static Block
latent_block (const ModelSpec *m)
{
  const gint64 qk = m->qk_nope_dim + m->qk_rope_dim;
  Block b = {0};

  if (m->q_lora_rank > 0) {
    b.whole += m->hidden * m->q_lora_rank + m->q_lora_rank + (m->qkv_bias ? m->q_lora_rank : 0);
    b.split += m->q_lora_rank * m->heads * qk;
  } else {
    b.split += m->hidden * m->heads * qk;
  }
  b.whole += m->hidden * (m->kv_lora_rank + m->qk_rope_dim) + m->kv_lora_rank +
             (m->qkv_bias ? m->kv_lora_rank + m->qk_rope_dim : 0);
  b.split += m->kv_lora_rank * m->heads * (m->qk_nope_dim + m->v_head_dim);
  b.split += m->heads * m->v_head_dim * m->hidden;
  b.whole += m->attn_out_bias ? m->hidden : 0;
  if (m->index_heads > 0)
    b.whole += m->q_lora_rank * m->index_heads * m->index_head_dim + m->hidden * m->index_head_dim +
               2 * m->index_head_dim + m->hidden * m->index_heads;
  return b;
}

/* Gated delta rule (arXiv 2412.06464) as in Qwen3-Next: projections to q, k, v and gate z, to beta
 * and alpha, the short convolution, decay and step biases, the gated norm and the output. */
static Block
linear_block (const ModelSpec *m)
{
  const gint64 k = m->linear_key_heads * m->linear_key_dim,
               v = m->linear_value_heads * m->linear_value_dim;
  Block b = {0};

  b.split = m->hidden * (2 * k + 2 * v) + m->hidden * 2 * m->linear_value_heads +
            (2 * k + v) * m->linear_conv + 2 * m->linear_value_heads + v * m->hidden;
  b.whole = m->linear_value_dim;
  return b;
}

static Block
mixer_block (const ModelSpec *m, gint64 i)
{
  if (model_layer_is_linear (m, i))
    return linear_block (m);
  return m->kv_lora_rank > 0 ? latent_block (m) : attention_block (m);
}

static Block
mlp_block (const ModelSpec *m, gint64 ffn, gboolean bias)
{
  Block b = {0};
  const gint64 inputs = m->gated_mlp ? 2 : 1;

  b.split = (inputs + 1) * m->hidden * ffn + (bias ? inputs * ffn : 0);
  b.whole = bias ? m->hidden : 0;
  return b;
}

/* What is beside the routed experts in a MoE layer. */
static Block
moe_dense_block (const ModelSpec *m)
{
  Block b = mlp_block (m, m->shared_experts * m->shared_ffn_hidden, FALSE);

  b.whole += m->hidden * m->num_experts + (m->router_bias ? m->num_experts : 0) +
             (m->shared_gate ? m->hidden : 0);
  return b;
}

gint64
model_params_attention (const ModelSpec *m)
{
  return block_total (m->kv_lora_rank > 0 ? latent_block (m) : attention_block (m));
}

gint64
model_params_attention_layer (const ModelSpec *m, gint64 i)
{
  return block_total (mixer_block (m, i));
}

gint64
model_params_experts (const ModelSpec *m, gint64 i)
{
  if (!model_layer_is_moe (m, i))
    return 0;
  return m->num_experts * block_total (mlp_block (m, m->moe_ffn_hidden, m->expert_bias));
}

gint64
model_params_mlp (const ModelSpec *m, gint64 i)
{
  if (!model_layer_is_moe (m, i))
    return block_total (mlp_block (m, m->ffn_hidden, m->mlp_bias));
  return model_params_experts (m, i) + block_total (moe_dense_block (m));
}

gint64
model_params_mlp_active (const ModelSpec *m, gint64 i)
{
  const gint64 all = model_params_experts (m, i);

  if (all == 0)
    return model_params_mlp (m, i);
  return model_params_mlp (m, i) - all + all / m->num_experts * m->experts_per_token;
}

static gint64
norm_params (const ModelSpec *m)
{
  return m->norm_bias ? 2 * m->hidden : m->hidden;
}

gint64
model_params_norms (const ModelSpec *m)
{
  return m->norms_per_layer * norm_params (m);
}

gint64
model_params_layer (const ModelSpec *m, gint64 i)
{
  if (m->graph != NULL)
    return graph_block_params (graph_layer (m->graph, i), 1);
  return model_params_attention_layer (m, i) + model_params_mlp (m, i) + model_params_norms (m);
}

static gint64
embed_dim (const ModelSpec *m)
{
  return m->embed_dim > 0 ? m->embed_dim : m->hidden;
}

static Block
embedding_block (const ModelSpec *m, gint64 vocab)
{
  Block b = {0};

  b.split = vocab * embed_dim (m);
  b.whole = m->max_positions * m->hidden + (m->embedding_norm ? norm_params (m) : 0);
  if (embed_dim (m) != m->hidden)
    b.whole += embed_dim (m) * m->hidden; /* projection in, no bias (OPT 350M) */
  return b;
}

static Block
head_block (const ModelSpec *m, gint64 vocab)
{
  Block b = {0};

  b.split = (m->tied_embeddings ? 0 : vocab * embed_dim (m)) + (m->head_bias ? vocab : 0);
  b.whole = m->final_norm ? norm_params (m) : 0;
  if (embed_dim (m) != m->hidden)
    b.whole += embed_dim (m) * m->hidden;
  return b;
}

gint64
model_params_embedding (const ModelSpec *m)
{
  if (m->graph != NULL)
    return graph_block_params (&m->graph->blocks[GRAPH_INPUT], 1);
  return block_total (embedding_block (m, m->vocab));
}

gint64
model_params_head (const ModelSpec *m)
{
  if (m->graph != NULL)
    return graph_block_params (&m->graph->blocks[GRAPH_OUTPUT], 1);
  return block_total (head_block (m, m->vocab));
}

gint64
model_params_total (const ModelSpec *m)
{
  gint64 sum = model_params_embedding (m) + model_params_head (m);

  for (gint64 i = 0; i < m->num_layers; i++)
    sum += model_params_layer (m, i);
  return sum;
}

gint64
model_params_active (const ModelSpec *m)
{
  gint64 sum = model_params_total (m);

  if (m->graph != NULL)
    return sum;
  for (gint64 i = 0; i < m->num_layers; i++)
    sum -= model_params_mlp (m, i) - model_params_mlp_active (m, i);
  return sum;
}

/* One module (DeepSeek-V3, arXiv 2412.19437, section 2.2): a projection of [hidden state,
 * embedding] with a norm of each, one layer of the last kind, and a norm before the shared head. */
static gint64
mtp_extra (const ModelSpec *m)
{
  return 2 * m->hidden * m->hidden + 3 * norm_params (m);
}

gint64
model_params_mtp (const ModelSpec *m)
{
  return m->mtp_layers * (model_params_layer (m, m->num_layers - 1) + mtp_extra (m));
}

RankParams
model_rank_layer (const ModelSpec *m, gint64 i, gint64 tp, gint64 ep, gint64 etp)
{
  RankParams r = {0, 0};

  g_assert (tp >= 1 && ep >= 1 && etp >= 1);
  if (m->graph != NULL) {
    r.dense = graph_block_params (graph_layer (m->graph, i), tp);
    return r;
  }
  r.dense = block_rank (m, mixer_block (m, i), tp) + model_params_norms (m);
  if (model_layer_is_moe (m, i)) {
    const Block expert = mlp_block (m, m->moe_ffn_hidden, m->expert_bias);

    r.dense += block_rank (m, moe_dense_block (m), tp);
    r.experts = ceil_div (m->num_experts, ep) * block_rank (m, expert, etp);
  } else {
    r.dense += block_rank (m, mlp_block (m, m->ffn_hidden, m->mlp_bias), tp);
  }
  return r;
}

gint64
model_rank_embedding (const ModelSpec *m, gint64 vocab, gint64 tp)
{
  if (m->graph != NULL)
    return graph_block_params (&m->graph->blocks[GRAPH_INPUT], tp);
  return block_rank (m, embedding_block (m, vocab), tp);
}

gint64
model_rank_head (const ModelSpec *m, gint64 vocab, gint64 tp)
{
  if (m->graph != NULL)
    return graph_block_params (&m->graph->blocks[GRAPH_OUTPUT], tp);
  return block_rank (m, head_block (m, vocab), tp);
}

RankParams
model_rank_mtp (const ModelSpec *m, gint64 tp, gint64 ep, gint64 etp)
{
  RankParams r = {0, 0};

  if (m->mtp_layers == 0)
    return r;
  r = model_rank_layer (m, m->num_layers - 1, tp, ep, etp);
  r.dense += ceil_div (2 * m->hidden * m->hidden, tp) + 3 * norm_params (m);
  r.dense *= m->mtp_layers;
  r.experts *= m->mtp_layers;
  return r;
}
