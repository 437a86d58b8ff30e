#include "adapter.h"

#include <string.h>

/* The target that a kernel's name belongs to; 0: a map that never has adapters. */
static guint
target_of (const char *name)
{
  static const struct {
    const char *name;
    AdapterTarget target;
  } known[] = {{"qkv", ADAPT_QKV},
               {"q", ADAPT_QKV},
               {"q down", ADAPT_QKV},
               {"q up", ADAPT_QKV},
               {"kv down", ADAPT_QKV},
               {"kv up", ADAPT_QKV},
               {"attention out", ADAPT_PROJ},
               {"delta out", ADAPT_PROJ},
               {"delta projections", ADAPT_QKV},
               {"mlp up", ADAPT_FC1},
               {"mlp down", ADAPT_FC2},
               {"shared up", ADAPT_FC1},
               {"shared down", ADAPT_FC2}};
  for (gsize i = 0; i < G_N_ELEMENTS (known); i++)
    if (strcmp (known[i].name, name) == 0)
      return known[i].target;
  return 0;
}

static gboolean
adapts (const Emit *e, const char *name)
{
  const TrainSpec *t = &e->p->s->train;
  return t->adapter_rank > 0 && (t->adapter_targets & target_of (name)) != 0;
}

/* The activations between A and B, rank wide, are summed over tp. */
static void
join_ranks (Emit *e, gint64 tokens)
{
  double bytes = (double)tokens * (double)e->p->s->train.adapter_rank * e->p->act_bytes;
  emit_tp_comm (e, "tp adapter", COLL_ALL_REDUCE, bytes, FALSE);
}

void
emit_adapter_forward (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k)
{
  gint64 r = e->p->s->train.adapter_rank;
  if (!adapts (e, name))
    return;
  gboolean wide = e->wide;
  e->wide = TRUE;
  emit_gemm (e, "adapter A", GEMM_FORWARD, tokens, r, k, 1);
  join_ranks (e, tokens);
  emit_gemm (e, "adapter B", GEMM_FORWARD, tokens, n, r, 1);
  e->wide = wide;
  emit_memory (e, "adapter add", MEMK_ELEMENTWISE,
               3.0 * e->p->act_bytes * (double)tokens * (double)n);
}

void
emit_adapter_dgrad (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k)
{
  gint64 r = e->p->s->train.adapter_rank;
  if (!adapts (e, name))
    return;
  gboolean wide = e->wide;
  e->wide = TRUE;
  emit_gemm (e, "adapter B dgrad", GEMM_DGRAD, tokens, r, n, 1);
  join_ranks (e, tokens);
  emit_gemm (e, "adapter A dgrad", GEMM_DGRAD, tokens, k, r, 1);
  e->wide = wide;
  emit_memory (e, "adapter grad add", MEMK_ELEMENTWISE,
               3.0 * e->p->act_bytes * (double)tokens * (double)k);
}

gboolean
emit_adapter_wgrad (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k)
{
  gint64 r = e->p->s->train.adapter_rank;
  if (r == 0)
    return FALSE;
  if (adapts (e, name)) {
    gboolean wide = e->wide;
    e->wide = TRUE;
    emit_gemm (e, "adapter B wgrad", GEMM_WGRAD, n, r, tokens, 1);
    emit_gemm (e, "adapter A wgrad", GEMM_WGRAD, r, k, tokens, 1);
    e->wide = wide;
  }
  return TRUE;
}

/* ---- how many there are ---- */

/* Inputs + outputs of the attention's maps that are targets. */
static double
attention_widths (const Spec *s, gint64 layer)
{
  const ModelSpec *m = &s->model;
  guint of = s->train.adapter_targets;
  double h = (double)m->hidden, sum = 0;
  if (model_layer_is_linear (m, layer)) {
    double k = (double)(m->linear_key_heads * m->linear_key_dim);
    double v = (double)(m->linear_value_heads * m->linear_value_dim);
    sum += of & ADAPT_QKV ? h + 2 * k + 2 * v + 2 * (double)m->linear_value_heads : 0;
    return sum + (of & ADAPT_PROJ ? v + h : 0);
  }
  if (m->kv_lora_rank > 0) {
    double qk = (double)(m->qk_nope_dim + m->qk_rope_dim), a = (double)m->heads;
    double q = (double)m->q_lora_rank, kv = (double)m->kv_lora_rank;
    if (of & ADAPT_QKV) {
      sum += q > 0 ? (h + q) + (q + a * qk) : h + a * qk;
      sum += h + kv + (double)m->qk_rope_dim;
      sum += kv + a * (double)(m->qk_nope_dim + m->v_head_dim);
    }
    return sum + (of & ADAPT_PROJ ? a * (double)m->v_head_dim + h : 0);
  }
  double q = (double)(m->heads * m->head_dim), kv = (double)(m->kv_heads * m->head_dim);
  sum += of & ADAPT_QKV ? h + q * (m->attn_gate ? 2 : 1) + 2 * kv : 0;
  return sum + (of & ADAPT_PROJ ? q + h : 0);
}

double
adapter_params_layer (const Spec *s, gint64 layer)
{
  const ModelSpec *m = &s->model;
  guint of = s->train.adapter_targets;
  double h = (double)m->hidden, sum = attention_widths (s, layer);
  double ffn = model_layer_is_moe (m, layer) ? (double)(m->shared_experts * m->shared_ffn_hidden)
                                             : (double)m->ffn_hidden;
  if (ffn > 0) {
    sum += of & ADAPT_FC1 ? h + ffn * (m->gated_mlp ? 2 : 1) : 0;
    sum += of & ADAPT_FC2 ? ffn + h : 0;
  }
  return (double)s->train.adapter_rank * sum;
}

double
adapter_params (const Spec *s)
{
  double sum = 0;
  for (gint64 i = 0; i < s->model.num_layers; i++)
    sum += adapter_params_layer (s, i);
  return sum;
}

double
adapter_unkept_bytes (const Spec *s, gint64 layer, double tokens, double lin, double seq_div)
{
  const ModelSpec *m = &s->model;
  guint of = s->train.adapter_targets;
  double h = tokens * (double)m->hidden / seq_div * lin, sum = 0;
  if (s->train.adapter_rank == 0 || model_layer_is_moe (m, layer))
    return 0;
  sum += of & ADAPT_QKV ? 0 : h;
  if (!m->parallel_block)
    sum += of & ADAPT_FC1 ? 0 : h;
  double ffn = tokens * (double)m->ffn_hidden / (double)s->parallel.tp * lin;
  return sum + (of & ADAPT_FC2 ? 0 : ffn);
}

StageParams
stage_trainable_per_rank (const Spec *s, const StageLayers *sl, guint stage)
{
  StageParams sum = {0, 0};
  if (s->train.adapter_rank == 0)
    return stage_params_per_rank (s, sl, stage);
  for (gint64 i = 0; i < sl->n_layers[stage]; i++)
    sum.dense += adapter_params_layer (s, sl->first_layer[stage] + i) / (double)s->parallel.tp;
  return sum;
}
