/* Activation bytes of one layer, tensor by tensor.
 *
 * Korthikanti et al. (arXiv 2205.05198, section 4.1) list what backward needs; each line below is
 * one of their tensors, with its width in place of the 4 h, a and h of GPT. With 2-byte elements
 * and dropout their sum is s b h (10 + 24 / t + 5 a s / (h t)), and s b h / t (34 + 5 a s / h) with
 * sequence parallelism. Fused attention (arXiv 2205.14135) keeps q, k, v, its output and one fp32
 * number per row in place of the s * s terms. A linear map in 8 or 4 bits keeps its input
 * quantised.
 */
#include "adapter.h"
#include "memory.h"
#include "memory_graph.h"

#define FP32_BYTES 4.0
#define MASK_BYTES 1.0 /* a dropout mask is one byte an element */
#define DELTA_CHUNK_TOKENS                                                                         \
  64 /* chunk of the delta-rule kernels (flash-linear-attention's default) */

typedef struct {
  double tokens;      /* of one micro-batch on one rank of context parallelism */
  double tp, seq_div; /* seq_div: tp where sequence parallelism divides what tp does not */
  double elem, lin;   /* bytes of an activation, and of one kept as the input of a linear map */
  double micro, seq, cp;
} Ctx;

static double
elem_bytes (DType t)
{
  const double b = dtype_bytes (t);

  return b < 2 ? 2 : b; /* 8- and 4-bit training keeps its other activations in 16 bits */
}

static Ctx
context (const Spec *s)
{
  const ParallelSpec *p = &s->parallel;
  Ctx c;

  c.tp = (double)MAX (p->tp, 1);
  c.cp = (double)MAX (p->cp, 1);
  c.micro = (double)s->train.micro_batch_sequences;
  c.seq = (double)s->train.sequence_tokens;
  c.tokens = c.micro * c.seq / c.cp;
  c.seq_div = p->sequence_parallel ? c.tp : 1;
  c.elem = elem_bytes (s->train.precision);
  c.lin = MIN (c.elem, dtype_bytes (s->train.precision));
  return c;
}

double
model_hidden_bytes (const Spec *s)
{
  const Ctx c = context (s);

  return c.elem * c.tokens * (double)s->model.hidden / c.seq_div;
}

/* Scores of unfused attention: softmax output and, with dropout, its mask and output; 5 a s^2 b.
 * Fused: log-sum-exp. This is what selective recomputation drops. */
/* Backward runs the module again, so what it made is not kept. r: the mode that is asked about. */
static gboolean
dropped (const Spec *s, Recompute r, RecomputeModule m)
{
  return r == RECOMPUTE_SELECTIVE &&
         ((s->train.recompute_modules != 0 ? s->train.recompute_modules : RECOMP_CORE_ATTN) & m);
}

static gboolean
unfused (const Spec *s)
{
  return s->software.attention == ATTN_UNFUSED ||
         (s->model.attn_sinks && s->software.attn_sinks_unfused);
}

static double
core_bytes (const Spec *s, const Ctx *c)
{
  const double heads = (double)s->model.heads / c->tp;

  if (!unfused (s))
    return FP32_BYTES * c->tokens * heads;
  const double scores = heads * c->micro * c->seq * (c->seq / c->cp);
  return scores * (c->elem + (s->software.dropout ? MASK_BYTES + c->elem : 0));
}

double
model_scores_bytes (const Spec *s)
{
  const Ctx c = context (s);

  return unfused (s) ? c.elem * (double)s->model.heads / c.tp * c.micro * c.seq * (c.seq / c.cp)
                     : 0;
}

/* Widths of q, k and v of all heads on one rank; kv heads that tp cannot divide are repeated. */
static double
qkv_width (const ModelSpec *m, double tp)
{
  if (m->kv_lora_rank > 0)
    return (double)(m->heads * (2 * (m->qk_nope_dim + m->qk_rope_dim) + m->v_head_dim)) / tp;
  const double kv = (double)m->kv_heads;
  return (double)(m->heads * m->head_dim) / tp + 2 * kv * (double)m->head_dim / MIN (tp, kv);
}

static double
attention_bytes (const Spec *s, const Ctx *c, Recompute r)
{
  const ModelSpec *m = &s->model;
  const double q = (double)(m->heads * m->head_dim) / c->tp, qkv = qkv_width (m, c->tp);
  const double v_dim = (double)(m->kv_lora_rank > 0 ? m->v_head_dim : m->head_dim);
  double b = dropped (s, r, RECOMP_MLA_UP) && m->kv_lora_rank > 0 ? 0 : c->elem * qkv;

  if (m->kv_lora_rank > 0) {
    /* compressed q and kv before their norms, and after them as inputs of the up-projections */
    b += c->elem * (double)(m->q_lora_rank + m->kv_lora_rank + m->qk_rope_dim) / c->seq_div;
    b += c->lin * (double)(m->q_lora_rank + m->kv_lora_rank) / c->seq_div;
    b +=
        c->elem * (double)((m->index_heads + 1) * m->index_head_dim) * (m->index_heads > 0 ? 1 : 0);
  } else if (m->qk_norm) {
    const double kv = (double)m->kv_heads;
    b += c->elem * (q + kv * (double)m->head_dim / MIN (c->tp, kv)); /* before the norms */
  }
  if (m->attn_gate)
    b += 2 * c->elem * q; /* the gate, and the output before it */
  /* output of the core = input of the output projection; a fused kernel keeps it in full width too
   */
  const double o = (double)m->heads * v_dim / c->tp;
  b += unfused (s) ? c->lin * o : c->elem * o + (c->lin < c->elem ? c->lin * o : 0);
  return c->tokens * b + (dropped (s, r, RECOMP_CORE_ATTN) ? 0 : core_bytes (s, c));
}

/* Convolution in and out, q, k, v, the gate and the gated output, and one state per chunk and head.
 */
static double
delta_bytes (const Spec *s, const Ctx *c)
{
  const ModelSpec *m = &s->model;
  const double k = (double)(m->linear_key_heads * m->linear_key_dim);
  const double v = (double)(m->linear_value_heads * m->linear_value_dim);
  const double state = v * (double)m->linear_key_dim / DELTA_CHUNK_TOKENS;

  return c->tokens * (c->elem * (2 * (2 * k + v) + 2 * v + state) + c->lin * v) / c->tp;
}

/* Tensors of width ffn between the two maps of an MLP: the input of the activation and its output.
 */
static double
ffn_bytes (const Spec *s, const Ctx *c)
{
  if (s->model.gated_mlp) /* unfused SwiGLU keeps the activated gate beside gate and up */
    return (s->software.fused_swiglu ? 2 : 3) * c->elem + c->lin;
  if (s->model.act == ACT_RELU) /* its backward needs only its output */
    return c->lin;
  return c->elem + c->lin;
}

static double
expert_tp (const Spec *s)
{
  return (double)spec_expert_tp (s);
}

/* Rows that the experts of the busiest rank work on. */
static double
routed_tokens (const Spec *s, const Ctx *c)
{
  const double k = (double)s->model.experts_per_token * spec_moe_load (s);

  return c->seq_div > 1 ? c->tokens / c->seq_div * k * expert_tp (s) : c->tokens * k;
}

static double
mlp_bytes (const Spec *s, const Ctx *c, gint64 layer, Recompute r)
{
  const ModelSpec *m = &s->model;

  if (!model_layer_is_moe (m, layer))
    return dropped (s, r, RECOMP_MLP)
               ? 0
               : c->tokens * (double)m->ffn_hidden / c->tp * ffn_bytes (s, c);
  if (dropped (s, r, RECOMP_MOE))
    return 0;
  const double routed = routed_tokens (s, c);
  const double kept = ffn_bytes (s, c) - (dropped (s, r, RECOMP_MOE_ACT) ? c->lin : 0);
  double b =
      routed * ((double)m->hidden * c->lin + (double)m->moe_ffn_hidden / expert_tp (s) * kept);
  /* outputs of the experts, for the gradient of the routing weights; logits and probabilities */
  b += c->tokens / c->seq_div * (double)(m->experts_per_token * m->hidden) * c->elem;
  b += c->tokens / c->seq_div * (double)m->num_experts * 2 * FP32_BYTES;
  if (!dropped (s, r, RECOMP_SHARED))
    b += c->tokens * (double)(m->shared_experts * m->shared_ffn_hidden) / c->tp * ffn_bytes (s, c);
  return b;
}

double
model_activation_bytes_layer (const Spec *s, gint64 layer_index, Recompute r)
{
  const ModelSpec *m = &s->model;
  const Ctx c = context (s);
  const double hidden = c.tokens * (double)m->hidden / c.seq_div;

  if (m->graph != NULL)
    return graph_kept_bytes (s, graph_layer (m->graph, layer_index), r);
  if (r == RECOMPUTE_FULL) /* the layer's input */
    return c.elem * hidden / (s->software.recompute_partitioned && c.seq_div <= 1 ? c.tp : 1);
  /* inputs of the norms; outputs of those before attention and MLP; masks after both */
  const gint64 maps = m->parallel_block && m->norms_per_layer < 2 ? 1 : 2;
  double b = hidden * c.elem * (double)m->norms_per_layer;
  if (!dropped (s, r, RECOMP_LAYERNORM))
    b += hidden * c.lin * (double)maps;
  if (s->software.dropout)
    b += 2 * MASK_BYTES * hidden;
  b += model_layer_is_linear (m, layer_index) ? delta_bytes (s, &c) : attention_bytes (s, &c, r);
  b -= adapter_unkept_bytes (s, layer_index, c.tokens, c.lin, c.seq_div);
  return b + mlp_bytes (s, &c, layer_index, r);
}

/* Gradients of the two widest tensors, of the residual stream and of the gathered input, the
 * messages of the experts, and what the recomputation brings back. */
double
model_working_bytes_layer (const Spec *s, gint64 layer_index, Recompute r)
{
  const ModelSpec *m = &s->model;
  const Ctx c = context (s);
  const gboolean moe = model_layer_is_moe (m, layer_index);
  const double wide = m->gated_mlp ? 3 : 2;
  const double ffn = moe ? routed_tokens (s, &c) * (double)m->moe_ffn_hidden / expert_tp (s)
                         : c.tokens * (double)m->ffn_hidden / c.tp;
  double inner = c.elem * wide * ffn, b;

  if (m->graph != NULL)
    return graph_working_bytes (s, graph_layer (m->graph, layer_index), r);
  if (unfused (s) && !model_layer_is_linear (m, layer_index)) {
    const double scores = (double)m->heads / c.tp * c.micro * c.seq * (c.seq / c.cp);
    inner = MAX (inner, 2 * c.elem * scores);
  }
  b = inner + c.elem * c.tokens * (double)m->hidden / c.seq_div;
  if (c.seq_div > 1)
    b += c.elem * c.tokens * (double)m->hidden;
  if (moe)
    b += 2 * c.elem * routed_tokens (s, &c) * (double)m->hidden;
  b += model_activation_bytes_layer (s, layer_index, RECOMPUTE_NONE) -
       model_activation_bytes_layer (s, layer_index, r);
  return b;
}

double
model_activation_bytes_embedding (const Spec *s)
{
  const Ctx c = context (s);
  const double hidden = c.tokens * (double)s->model.hidden / c.seq_div;

  if (s->model.graph != NULL)
    return graph_kept_bytes (s, &s->model.graph->blocks[GRAPH_INPUT], RECOMPUTE_NONE);
  return (s->software.dropout ? MASK_BYTES * hidden : 0) +
         (s->model.embedding_norm ? c.elem * hidden : 0);
}

double
model_activation_bytes_head (const Spec *s)
{
  if (s->model.graph != NULL)
    return graph_kept_bytes (s, &s->model.graph->blocks[GRAPH_OUTPUT], RECOMPUTE_NONE);
  return model_hidden_bytes (s) * (s->model.final_norm ? 2 : 1);
}

double
model_logits_bytes (const Spec *s)
{
  const Ctx c = context (s);

  if (s->model.graph != NULL)
    return graph_logits_bytes (s);
  return s->software.logits_bytes * c.tokens * (double)spec_padded_vocab (s) / c.tp;
}
