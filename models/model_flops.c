/* FLOPs of one forward pass over one sequence; see model.h for the convention. */
#include "model.h"

/* Pairs (query, key) of one layer that are multiplied. */
static double
attended_pairs (const ModelSpec *m, gint64 i, double s, gboolean half)
{
  double w = (double)model_layer_window (m, i);

  if (m->index_topk > 0)
    w = (double)m->index_topk;
  if (w <= 0 || w >= s)
    return half ? s * s / 2 : s * s;
  if (m->sliding_chunks)
    return half ? s * w / 2 : s * w;
  return half ? w * s - w * w / 2 : w * s;
}

/* Delta rule in its recurrent form, per token and value head: read S k, write the rank-one update,
 * read S q, each 2 dk dv; and the convolution. The chunked form that kernels use does more work. */
static double
linear_mixing (const ModelSpec *m, double s)
{
  const gint64 k = m->linear_key_heads * m->linear_key_dim,
               v = m->linear_value_heads * m->linear_value_dim;

  return s * (6.0 * (double)(v * m->linear_key_dim) + 2.0 * (double)((2 * k + v) * m->linear_conv));
}

/* Elements of the matrices that a token passes through. */
static double
mixer_matrices (const ModelSpec *m, gint64 i)
{
  const gint64 qk = m->qk_nope_dim + m->qk_rope_dim;
  gint64 n;

  if (model_layer_is_linear (m, i)) {
    const gint64 k = m->linear_key_heads * m->linear_key_dim,
                 v = m->linear_value_heads * m->linear_value_dim;

    n = m->hidden * (2 * k + 3 * v + 2 * m->linear_value_heads);
  } else if (m->kv_lora_rank > 0) {
    n = m->q_lora_rank > 0 ? m->q_lora_rank * (m->hidden + m->heads * qk)
                           : m->hidden * m->heads * qk;
    n += m->hidden * (m->kv_lora_rank + m->qk_rope_dim);
    n += m->kv_lora_rank * m->heads * (m->qk_nope_dim + m->v_head_dim);
    n += m->heads * m->v_head_dim * m->hidden;
    if (m->index_heads > 0)
      n += m->q_lora_rank * m->index_heads * m->index_head_dim +
           m->hidden * (m->index_head_dim + m->index_heads);
  } else {
    n = m->hidden * m->head_dim * ((m->attn_gate ? 3 : 2) * m->heads + 2 * m->kv_heads);
  }
  return (double)n;
}

static double
mlp_matrices (const ModelSpec *m, gint64 i)
{
  const gint64 mats = m->gated_mlp ? 3 : 2;

  if (!model_layer_is_moe (m, i))
    return (double)(mats * m->hidden * m->ffn_hidden);
  return (double)(mats * m->hidden *
                  (m->experts_per_token * m->moe_ffn_hidden +
                   m->shared_experts * m->shared_ffn_hidden));
}

/* Scores and values of one layer; 0 for a delta rule. */
static double
core_flops (const ModelSpec *m, gint64 i, double s, gboolean half)
{
  const gint64 dims =
      m->kv_lora_rank > 0 ? m->qk_nope_dim + m->qk_rope_dim + m->v_head_dim : 2 * m->head_dim;

  if (model_layer_is_linear (m, i))
    return 0;
  return 2 * attended_pairs (m, i, s, half) * (double)(m->heads * dims);
}

double
model_flops_core (const ModelSpec *m, gint64 seq, gboolean causal_half)
{
  double f = 0;

  if (m->graph != NULL) {
    GraphFlops g;
    graph_flops (m->graph, seq, causal_half, &g);
    return g.core;
  }
  for (gint64 i = 0; i < m->num_layers; i++)
    f += core_flops (m, i, (double)seq, causal_half && m->causal);
  return f;
}

static double
head_flops (const ModelSpec *m, double s)
{
  const double h = (double)m->hidden, e = m->embed_dim > 0 ? (double)m->embed_dim : h;

  return 2 * s * (e * (double)m->vocab + (m->embed_dim > 0 ? 2 * e * h : 0));
}

double
model_flops_head (const ModelSpec *m, gint64 seq)
{
  if (m->graph != NULL) {
    GraphFlops g;
    graph_flops (m->graph, seq, FALSE, &g);
    return g.output;
  }
  return head_flops (m, (double)seq);
}

static double
layer_flops (const ModelSpec *m, gint64 i, double s, gboolean half)
{
  double f = 2 * s * (mixer_matrices (m, i) + mlp_matrices (m, i));

  if (model_layer_is_linear (m, i)) {
    f += linear_mixing (m, s);
  } else {
    f += core_flops (m, i, s, half);
    if (m->index_heads > 0) /* the indexer scores all pairs */
      f += 2 * (half ? s * s / 2 : s * s) * (double)(m->index_heads * m->index_head_dim);
  }
  return f;
}

double
model_flops_forward (const ModelSpec *m, gint64 seq, gboolean causal_half)
{
  const double s = (double)seq, h = (double)m->hidden;
  const gboolean half = causal_half && m->causal;
  const double head = head_flops (m, s);
  double f = head;

  if (m->graph != NULL) {
    GraphFlops g;
    graph_flops (m->graph, seq, causal_half, &g);
    return g.total;
  }
  for (gint64 i = 0; i < m->num_layers; i++)
    f += layer_flops (m, i, s, half);
  f += (double)m->mtp_layers *
       (layer_flops (m, m->num_layers - 1, s, half) + 2 * s * 2 * h * h + head);
  return f;
}
