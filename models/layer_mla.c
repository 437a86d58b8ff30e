/* Mixers other than plain attention: latent attention and the gated delta rule.
 *
 * Latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): queries and keys+values pass
 * through narrow projections that every tensor-parallel rank holds whole; with sequence parallelism
 * they run on the rank's own tokens and the narrow result is gathered, as Megatron-Core does.
 * Attention has d_qk = nope + rope and d_v of its own. Gated delta rule (arXiv 2412.06464) in its
 * chunked form: products of chunks of 64 tokens.
 */
#include "layer_emit.h"

#define DELTA_CHUNK_TOKENS 64 /* flash-linear-attention's default */

typedef struct {
  gint64 T, Tsp, h, heads, qk, nope, rope, v, q_rank, kv_rank;
  double a;
} LatentDims;

static void
latent_dims (const Pricing *p, LatentDims *d)
{
  const ModelSpec *m = &p->s->model;
  d->T = p->tokens;
  d->Tsp = p->tokens_sp;
  d->h = m->hidden;
  d->heads = m->heads / p->s->parallel.tp;
  d->nope = m->qk_nope_dim;
  d->rope = m->qk_rope_dim;
  d->qk = d->nope + d->rope;
  d->v = m->v_head_dim;
  d->q_rank = m->q_lora_rank;
  d->kv_rank = m->kv_lora_rank;
  d->a = p->act_bytes;
}

static void
narrow_comm (Emit *e, const LatentDims *d, CollOp op, gint64 width)
{
  if (e->p->s->parallel.sequence_parallel)
    emit_tp_comm (e, op == COLL_ALL_GATHER ? "tp all-gather latent" : "tp reduce-scatter latent",
                  op, d->a * (double)d->T * (double)width, FALSE);
  else if (op != COLL_ALL_GATHER)
    emit_tp_comm (e, "tp all-reduce latent", COLL_ALL_REDUCE, d->a * (double)d->T * (double)width,
                  FALSE);
}

static void
linear_forward (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k)
{
  emit_quantise (e, "quantise", (double)tokens * (double)k, TRUE);
  emit_gemm (e, name, GEMM_FORWARD, tokens, n, k, 1);
}

static void
linear_backward (Emit *e, const char *name, LayerPass pass, gint64 tokens, gint64 n, gint64 k)
{
  if (pass != LP_WEIGHT_GRAD) {
    emit_quantise (e, "quantise grad", (double)tokens * (double)n, TRUE);
    emit_gemm (e, name, GEMM_DGRAD, tokens, k, n, 1);
  }
  if (pass != LP_INPUT_GRAD)
    emit_wgrad (e, name, tokens, n, k);
}

/* Rotation of the rope parts and the join of keys: q in place, the up-projected k and v read and k
 * written with its rope part repeated for each head. */
static void
latent_rope (Emit *e, const LatentDims *d, gboolean forward)
{
  double per_head = 2.0 * (double)d->rope + (double)(d->nope + d->v) + (double)(d->qk + d->v);
  double bytes = d->a * (double)d->T * (double)d->heads * per_head;
  emit_memory (e, forward ? "latent rope" : "latent rope backward", MEMK_ELEMENTWISE,
               e->p->s->software.fused_rope ? bytes : 2.5 * bytes);
}

static void
up_forward (Emit *e, const LatentDims *d)
{
  if (d->q_rank > 0)
    linear_forward (e, "q up", d->T, d->heads * d->qk, d->q_rank);
  linear_forward (e, "kv up", d->T, d->heads * (d->nope + d->v), d->kv_rank);
  latent_rope (e, d, TRUE);
}

/* Scores of the sparse-attention indexer (DeepSeek-V3.2): all pairs, few narrow heads. */
static void
indexer (Emit *e, const LatentDims *d, gboolean forward)
{
  const ModelSpec *m = &e->p->s->model;
  gint64 b = e->p->s->train.micro_batch_sequences, s = e->p->s->train.sequence_tokens;
  if (m->index_heads <= 0)
    return;
  gint64 rows = d->T / b, pairs = m->causal ? MAX (s / 2, 1) : s;
  GemmRole role = forward ? GEMM_FORWARD : GEMM_DGRAD;
  emit_gemm (e, "indexer projections", role, d->T, m->index_heads * m->index_head_dim, d->q_rank,
             1);
  for (int i = forward ? 1 : 2; i > 0; i--)
    emit_gemm (e, "indexer scores", role, rows, pairs, m->index_head_dim, b * m->index_heads);
  emit_memory (e, "indexer top-k", MEMK_ELEMENTWISE,
               3.0 * 4.0 * (double)(b * rows) * (double)pairs);
}

void
emit_latent_forward (Emit *e, gint64 layer)
{
  LatentDims d;
  latent_dims (e->p, &d);
  if (d.q_rank > 0) {
    linear_forward (e, "q down", d.Tsp, d.q_rank, d.h);
    emit_norm (e, TRUE, d.Tsp, d.q_rank);
    narrow_comm (e, &d, COLL_ALL_GATHER, d.q_rank);
  } else {
    emit_column_forward (e, "q", d.T, d.heads * d.qk, d.h);
  }
  linear_forward (e, "kv down", d.Tsp, d.kv_rank + d.rope, d.h);
  emit_norm (e, TRUE, d.Tsp, d.kv_rank);
  narrow_comm (e, &d, COLL_ALL_GATHER, d.kv_rank + d.rope);
  up_forward (e, &d);
  indexer (e, &d, TRUE);
  emit_attention_core (e, layer, PASS_FORWARD);
  emit_row_forward (e, "attention out", d.T, d.h, d.heads * d.v);
}

void
emit_latent_backward (Emit *e, gint64 layer, LayerPass pass)
{
  LatentDims d;
  latent_dims (e->p, &d);
  gboolean inputs = pass != LP_WEIGHT_GRAD;
  if (inputs && spec_recomputes (e->p->s, RECOMP_MLA_UP))
    up_forward (e, &d);
  emit_row_backward (e, "attention out", pass, d.T, d.h, d.heads * d.v);
  if (inputs) {
    emit_attention_core (e, layer, PASS_BACKWARD);
    indexer (e, &d, FALSE);
    latent_rope (e, &d, FALSE);
  }
  linear_backward (e, "kv up", pass, d.T, d.heads * (d.nope + d.v), d.kv_rank);
  if (inputs) {
    narrow_comm (e, &d, COLL_REDUCE_SCATTER, d.kv_rank + d.rope);
    emit_norm (e, FALSE, d.Tsp, d.kv_rank);
  }
  linear_backward (e, "kv down", pass, d.Tsp, d.kv_rank + d.rope, d.h);
  if (d.q_rank > 0) {
    linear_backward (e, "q up", pass, d.T, d.heads * d.qk, d.q_rank);
    if (inputs) {
      narrow_comm (e, &d, COLL_REDUCE_SCATTER, d.q_rank);
      emit_norm (e, FALSE, d.Tsp, d.q_rank);
    }
    linear_backward (e, "q down", pass, d.Tsp, d.q_rank, d.h);
  } else {
    emit_column_backward (e, "q", pass, d.T, d.heads * d.qk, d.h);
  }
  if (inputs) /* gradients of the two branches are added */
    emit_memory (e, "latent grad add", MEMK_ELEMENTWISE, 3.0 * d.a * (double)d.Tsp * (double)d.h);
}

/* ---- gated delta rule ---- */

typedef struct {
  gint64 T, h, k, v, dk, dv, heads, chunks;
  double a;
} DeltaDims;

static void
delta_dims (const Pricing *p, DeltaDims *d)
{
  const ModelSpec *m = &p->s->model;
  gint64 tp = p->s->parallel.tp;
  d->T = p->tokens;
  d->h = m->hidden;
  d->heads = MAX (m->linear_value_heads / tp, 1);
  d->k = MAX (m->linear_key_heads / tp, 1) * m->linear_key_dim;
  d->v = d->heads * m->linear_value_dim;
  d->dk = m->linear_key_dim;
  d->dv = m->linear_value_dim;
  d->chunks = MAX (d->T / DELTA_CHUNK_TOKENS, 1);
  d->a = p->act_bytes;
}

/* Products of one chunk: k k', its inverse applied to k and v, q k' and its product with v inside
 * the chunk; k S, q S and the state's update across chunks. Backward does each twice. */
static void
delta_chunks (Emit *e, const DeltaDims *d, gboolean forward)
{
  gint64 c = DELTA_CHUNK_TOKENS, n = d->chunks * d->heads;
  GemmRole role = forward ? GEMM_FORWARD : GEMM_DGRAD;
  gboolean wide = e->wide;
  e->wide = TRUE;
  for (int i = forward ? 1 : 2; i > 0; i--) {
    emit_gemm (e, "delta k k", role, c, c, d->dk, n);
    emit_gemm (e, "delta inverse k", role, c, d->dk, c, n);
    emit_gemm (e, "delta inverse v", role, c, d->dv, c, n);
    emit_gemm (e, "delta k S", role, c, d->dv, d->dk, n);
    emit_gemm (e, "delta q S", role, c, d->dv, d->dk, n);
    emit_gemm (e, "delta q k", role, c, c, d->dk, n);
    emit_gemm (e, "delta scores v", role, c, d->dv, c, n);
    emit_gemm (e, "delta update S", role, d->dk, d->dv, c, n);
  }
  e->wide = wide;
  emit_memory (e, "delta gates", MEMK_ELEMENTWISE,
               (forward ? 2.0 : 4.0) * d->a * (double)d->T * (double)(2 * d->k + 2 * d->v));
}

void
emit_delta_forward (Emit *e, gint64 layer)
{
  DeltaDims d;
  (void)layer;
  delta_dims (e->p, &d);
  emit_column_forward (e, "delta projections", d.T, 2 * d.k + 2 * d.v + 2 * d.heads, d.h);
  emit_memory (e, "delta convolution", MEMK_ELEMENTWISE,
               2.0 * d.a * (double)d.T * (double)(2 * d.k + d.v));
  emit_norm (e, TRUE, d.T, 2 * d.k);
  delta_chunks (e, &d, TRUE);
  emit_norm (e, TRUE, d.T, d.v);
  emit_memory (e, "delta gate", MEMK_ELEMENTWISE, 3.0 * d.a * (double)d.T * (double)d.v);
  emit_row_forward (e, "delta out", d.T, d.h, d.v);
}

void
emit_delta_backward (Emit *e, gint64 layer, LayerPass pass)
{
  DeltaDims d;
  (void)layer;
  delta_dims (e->p, &d);
  emit_row_backward (e, "delta out", pass, d.T, d.h, d.v);
  if (pass != LP_WEIGHT_GRAD) {
    emit_memory (e, "delta gate backward", MEMK_ELEMENTWISE, 5.0 * d.a * (double)d.T * (double)d.v);
    emit_norm (e, FALSE, d.T, d.v);
    delta_chunks (e, &d, FALSE);
    emit_norm (e, FALSE, d.T, 2 * d.k);
    emit_memory (e, "delta convolution backward", MEMK_ELEMENTWISE,
                 4.0 * d.a * (double)d.T * (double)(2 * d.k + d.v));
  }
  emit_column_backward (e, "delta projections", pass, d.T, 2 * d.k + 2 * d.v + 2 * d.heads, d.h);
}
