/* The attention core: scores, softmax, values. Unfused it is batched GEMMs and memory-bound kernels
 * on s*s elements; fused it is one flash-like kernel. With context parallelism the keys and values
 * travel round a ring beside the attention of the block at hand. */
#include "layer_emit.h"

typedef struct {
  gint64 b, a, akv, s, hd, hdv;
  double eb;
} Core;

static void
core_dims (const Pricing *p, Core *c)
{
  const ModelSpec *m = &p->s->model;
  gint64 tp = p->s->parallel.tp;
  c->b = p->s->train.micro_batch_sequences;
  c->a = m->heads / tp;
  c->akv = MAX (m->kv_heads / tp, 1);
  c->s = p->s->train.sequence_tokens;
  gboolean latent = m->kv_lora_rank > 0;
  c->hd = latent ? m->qk_nope_dim + m->qk_rope_dim : m->head_dim;
  c->hdv = latent ? m->v_head_dim : m->head_dim;
  if (latent)
    c->akv = c->a;
  c->eb = p->act_bytes;
}

/* Megatron's fused softmax works on four rows of the batch of heads at once, and on no other number
 * (fused_softmax.py, is_kernel_available). */
static gboolean
softmax_fuses (const Emit *e, gint64 batch)
{
  return e->p->s->software.fused_softmax && batch % 4 == 0;
}

static void
unfused_forward (Emit *e, const Core *c)
{
  const SoftwareProfile *sw = &e->p->s->software;
  gint64 batch = c->b * c->a, sq = c->s / e->p->s->parallel.cp;
  double el = (double)batch * (double)sq * (double)c->s;
  emit_gemm (e, "scores", GEMM_FORWARD, sq, c->s, c->hd, batch);
  if (softmax_fuses (e, batch)) {
    emit_memory (e, "softmax", MEMK_SOFTMAX_FWD, el * 2.0 * c->eb);
  } else { /* one kernel each, in fp32: forward_torch_softmax of the same file */
    emit_memory (e, "scores to fp32", MEMK_ELEMENTWISE, el * (c->eb + 4.0));
    emit_memory (e, "scale", MEMK_ELEMENTWISE, el * (4.0 + 4.0));
    emit_memory (e, "mask", MEMK_ELEMENTWISE, el * (4.0 + 1.0 + 4.0));
    emit_memory (e, "softmax", MEMK_SOFTMAX_FWD, el * (4.0 + 4.0));
    emit_memory (e, "softmax to 16 bits", MEMK_ELEMENTWISE, el * (4.0 + c->eb));
  }
  if (sw->dropout)
    emit_memory (e, "attention dropout", MEMK_ELEMENTWISE, el * (2.0 * c->eb + 1.0));
  emit_gemm (e, "values", GEMM_FORWARD, sq, c->hdv, c->s, batch);
  emit_memory (e, "context copy", MEMK_ELEMENTWISE,
               2.0 * c->eb * (double)batch * (double)sq * (double)c->hd);
}

static void
unfused_backward (Emit *e, const Core *c)
{
  const SoftwareProfile *sw = &e->p->s->software;
  gint64 batch = c->b * c->a, sq = c->s / e->p->s->parallel.cp;
  double el = (double)batch * (double)sq * (double)c->s;
  double qkv = (double)batch * (double)sq * (double)c->hd;
  emit_memory (e, "context grad copy", MEMK_ELEMENTWISE, 2.0 * c->eb * qkv);
  emit_gemm (e, "values dgrad", GEMM_DGRAD, sq, c->s, c->hdv, batch);
  emit_gemm (e, "values dv", GEMM_DGRAD, c->s, c->hdv, sq, batch);
  if (sw->dropout)
    emit_memory (e, "attention dropout backward", MEMK_ELEMENTWISE, el * (2.0 * c->eb + 1.0));
  if (softmax_fuses (e, batch)) {
    emit_memory (e, "softmax backward", MEMK_SOFTMAX_BWD, el * 3.0 * c->eb);
  } else {
    emit_memory (e, "softmax grad to fp32", MEMK_ELEMENTWISE, el * (c->eb + 4.0));
    emit_memory (e, "softmax backward", MEMK_SOFTMAX_BWD, el * 3.0 * 4.0);
    emit_memory (e, "mask backward", MEMK_ELEMENTWISE, el * (4.0 + 1.0 + 4.0));
    emit_memory (e, "scale backward", MEMK_ELEMENTWISE, el * (4.0 + 4.0));
    emit_memory (e, "scores grad to 16 bits", MEMK_ELEMENTWISE, el * (4.0 + c->eb));
  }
  emit_gemm (e, "scores dq", GEMM_DGRAD, sq, c->hd, c->s, batch);
  emit_gemm (e, "scores dk", GEMM_DGRAD, c->s, c->hd, sq, batch);
  emit_memory (e, "qkv grad cat", MEMK_ELEMENTWISE, 6.0 * c->eb * qkv);
}

/* Ring attention: cp steps; the keys and values of the next block travel beside the block at hand
 * (backward: also their gradients). With the causal balance every step after the first does half a
 * block, so all ranks work alike. */
static void
ring_attention (Emit *e, const Core *c, AttnShape *shape, Pass pass)
{
  const Spec *s = e->p->s;
  gint64 cp = s->parallel.cp, local = c->s / cp;
  double kv_bytes = (double)c->b * (double)local * (double)(c->akv * (c->hd + c->hdv)) * c->eb;
  if (pass == PASS_BACKWARD)
    kv_bytes *= 2.0;
  gboolean same_node = e->p->groups.cp.nodes <= 1;
  int sharers = e->p->groups.pp_sharers; /* every GPU of a node sends to its neighbour */
  double hop = p2p_time_s (s->fabric, same_node, sharers, kv_bytes);
  for (gint64 i = 0; i < cp; i++) {
    guint32 sent = 0;
    if (i + 1 < cp) {
      sent = emit_comm_s (e, "cp ring", PART_CP_COMM, hop, kv_bytes, TRUE);
      e->beside_s = hop;
    }
    shape->seq_q = local;
    shape->seq_kv = local;
    shape->causal = s->model.causal && i == 0;
    if (s->model.causal && i > 0)
      shape->seq_kv = MAX (local / 2, 1);
    emit_attention (e, pass == PASS_FORWARD ? "attention" : "attention backward", shape);
    e->join = MAX (e->join, sent);
  }
  if (pass == PASS_FORWARD) /* partial results are rescaled and summed */
    emit_memory (e, "cp merge", MEMK_ELEMENTWISE,
                 (double)(cp - 1) * 3.0 * c->eb * (double)(c->b * local * c->a * c->hdv));
}

static void
fused (Emit *e, const Core *c, gint64 layer, Pass pass)
{
  const Spec *s = e->p->s;
  AttnShape shape = {.batch = c->b,
                     .heads = c->a,
                     .kv_heads = c->akv,
                     .seq_q = c->s,
                     .seq_kv = c->s,
                     .head_dim_qk = c->hd,
                     .head_dim_v = c->hdv,
                     .window = s->model.index_topk > 0 ? s->model.index_topk
                                                       : model_layer_window (&s->model, layer),
                     .causal = s->model.causal,
                     .dtype = e->p->act_bytes > 2.0 ? DT_FP32 : DT_BF16,
                     .pass = pass};
  if (s->model.sliding_chunks && shape.window > 0 && shape.window < c->s && s->parallel.cp == 1) {
    shape.batch *= c->s / shape.window; /* chunks are sequences of their own */
    shape.seq_q = shape.seq_kv = shape.window;
    shape.window = 0;
  }
  if (s->parallel.cp > 1)
    ring_attention (e, c, &shape, pass);
  else
    emit_attention (e, pass == PASS_FORWARD ? "attention" : "attention backward", &shape);
}

void
emit_attention_core (Emit *e, gint64 layer, Pass pass)
{
  const Spec *s = e->p->s;
  gboolean is_unfused =
      e->p->attention == ATTN_UNFUSED || (s->model.attn_sinks && s->software.attn_sinks_unfused);
  gboolean wide = e->wide;
  Core c;
  core_dims (e->p, &c);
  e->wide = TRUE; /* scores and values stay in 16 bits */
  if (pass == PASS_BACKWARD && spec_recomputes (s, RECOMP_CORE_ATTN)) {
    if (is_unfused)
      unfused_forward (e, &c);
    else
      fused (e, &c, layer, PASS_FORWARD);
  }
  if (!is_unfused)
    fused (e, &c, layer, pass);
  else if (pass == PASS_FORWARD)
    unfused_forward (e, &c);
  else
    unfused_backward (e, &c);
  e->wide = wide;
}
