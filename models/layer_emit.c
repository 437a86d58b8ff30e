/* The kernels of a dense transformer layer, forward and backward, in the order a framework issues
 * them. Bytes per element: activations act_bytes (2 in 16-bit training), dropout masks 1, fp32 4.
 */
#include "graph_emit.h"

#include "adapter.h"

typedef struct {
  gint64 T, Tsp, h;  /* tokens in tp regions and in sequence-parallel regions; hidden */
  gint64 q, kv, qkv; /* columns per tp rank */
  gint64 ffn, up;    /* ffn per tp rank, columns of the first MLP matrix (2 ffn when gated) */
  double a;          /* bytes of an activation element */
} Dims;

static void
dims (const Pricing *p, Dims *d)
{
  const ModelSpec *m = &p->s->model;
  gint64 tp = p->s->parallel.tp;
  d->T = p->tokens;
  d->Tsp = p->tokens_sp;
  d->h = m->hidden;
  d->q = m->heads * m->head_dim / tp;
  d->kv = MAX (m->kv_heads / tp, 1) * m->head_dim;
  d->qkv = d->q + 2 * d->kv + (m->attn_gate ? d->q : 0);
  d->ffn = m->ffn_hidden / tp;
  d->up = m->gated_mlp ? 2 * d->ffn : d->ffn;
  d->a = p->act_bytes;
}

static double
tp_bytes (const Emit *e)
{
  const Pricing *p = e->p;
  double scale = e->message_scale > 0 ? e->message_scale : 1.0;
  return scale * (double)p->tokens * (double)p->s->model.hidden * p->act_bytes;
}

/* Gathers of a linear layer's input; reductions always move activations. */
static double
op_bytes (const Emit *e, CollOp op)
{
  gboolean narrow =
      op == COLL_ALL_GATHER && !e->wide && spec_narrow (e->p->s) && e->p->s->software.fp8_tp_gather;
  return narrow ? tp_bytes (e) / e->p->act_bytes : tp_bytes (e);
}

static gboolean
is_sp (const Emit *e)
{
  return e->p->s->parallel.sequence_parallel && e->p->s->parallel.tp > 1;
}

/* A collective cut into tp pieces beside the kernel that follows: the first piece is exposed, the
 * rest runs beside it (Wang et al. 2023, decomposed collectives). Returns the count to join
 * afterwards. */
static guint32
pipelined_comm (Emit *e, const char *name, CollOp op)
{
  const Spec *s = e->p->s;
  double bytes = op_bytes (e, op);
  double t = coll_time_s (s->fabric, op, &e->p->groups.tp, bytes, NULL);
  double piece = t / (double)s->parallel.tp;
  double piece_bytes = bytes / (double)s->parallel.tp;
  emit_comm_s (e, name, PART_TP_COMM, piece, piece_bytes, FALSE);
  e->beside_s = t - piece;
  /* the rest starts with the kernel: it needs only what the first piece needed */
  return emit_comm_s (e, name, PART_TP_COMM, t - piece, bytes - piece_bytes, TRUE);
}

/* Column-parallel linear forward: gather the sequence first when it is divided. */
static void
column_forward (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k)
{
  guint32 later = 0;
  gboolean own = is_sp (e) && e->p->s->software.fp8_tp_gather; /* quantised before it is gathered */
  emit_quantise_normed (e, "quantise",
                        (double)(own ? tokens / e->p->s->parallel.tp : tokens) * (double)k);
  if (is_sp (e)) {
    if (e->p->s->software.tp_overlap == TPOV_PIPELINED)
      later = pipelined_comm (e, "tp all-gather", COLL_ALL_GATHER);
    else
      emit_tp_comm (e, "tp all-gather", COLL_ALL_GATHER, op_bytes (e, COLL_ALL_GATHER), FALSE);
  }
  emit_gemm (e, name, GEMM_FORWARD, tokens, n, k, 1);
  e->join = MAX (e->join, later);
  emit_adapter_forward (e, name, tokens, n, k);
}

/* Row-parallel linear forward: reduce (scatter) the partial sums. */
static void
row_forward (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k)
{
  guint32 later = 0;
  gboolean pipelined = is_sp (e) && e->p->s->software.tp_overlap == TPOV_PIPELINED;
  emit_quantise (e, "quantise", (double)tokens * (double)k, TRUE);
  if (pipelined)
    later = pipelined_comm (e, "tp reduce-scatter", COLL_REDUCE_SCATTER);
  emit_gemm (e, name, GEMM_FORWARD, tokens, n, k, 1);
  e->join = MAX (e->join, later);
  emit_adapter_forward (e, name, tokens, n, k);
  if (!pipelined)
    emit_tp_comm (e, is_sp (e) ? "tp reduce-scatter" : "tp all-reduce",
                  is_sp (e) ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE, tp_bytes (e), FALSE);
}

/* Of the gradient that micro-batches add up in; a second, 16-bit one beside it is memory only. */
static double
main_grad_bytes (const Emit *e)
{
  return MIN (e->p->s->software.grad_bytes, 4.0);
}

static void
wgrad (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k)
{
  if (emit_adapter_wgrad (e, name, tokens, n, k)) /* the map is frozen */
    return;
  emit_gemm (e, name, GEMM_WGRAD, n, k, tokens, 1);
  if (spec_is_fsdp (e->p->s)) /* reduced as it is; only shards are added up */
    return;
  if (!e->p->s->software.grad_accum_fusion) /* gradient is added to the main gradient apart */
    emit_memory (e, "grad add", MEMK_STREAM,
                 (double)n * (double)k * (e->p->act_bytes + 2.0 * main_grad_bytes (e)));
}

static double
tp_time (const Emit *e, CollOp op)
{
  const Spec *s = e->p->s;
  return s->parallel.tp > 1 ? coll_time_s (s->fabric, op, &e->p->groups.tp, op_bytes (e, op), NULL)
                            : 0;
}

/* Column-parallel backward: input gradients are reduced over tp; beside the weight-gradient GEMM
 * where the framework does that. With sequence parallelism the input is gathered again, beside
 * dgrad. */
static void
column_backward (Emit *e, const char *name, LayerPass pass, gint64 tokens, gint64 n, gint64 k)
{
  gboolean overlap = e->p->s->software.tp_overlap != TPOV_NONE;
  gboolean both = pass == LP_BACKWARD;
  CollOp red = is_sp (e) ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE;
  guint32 gathered = 0, reduced = 0;
  if (pass != LP_WEIGHT_GRAD) {
    emit_quantise (e, "quantise grad", (double)tokens * (double)n, TRUE);
    if (is_sp (e) && both) {
      gathered = emit_tp_comm (e, "tp all-gather", COLL_ALL_GATHER, op_bytes (e, COLL_ALL_GATHER),
                               overlap);
      e->beside_s = overlap ? tp_time (e, COLL_ALL_GATHER) : 0;
    }
    emit_gemm (e, name, GEMM_DGRAD, tokens, k, n, 1);
    emit_adapter_dgrad (e, name, tokens, n, k);
    if (overlap)
      e->join = MAX (e->join, gathered);
    reduced = emit_tp_comm (e, is_sp (e) ? "tp reduce-scatter" : "tp all-reduce", red, tp_bytes (e),
                            overlap && both);
  } else if (is_sp (e)) {
    emit_tp_comm (e, "tp all-gather", COLL_ALL_GATHER, op_bytes (e, COLL_ALL_GATHER), FALSE);
  }
  if (pass != LP_INPUT_GRAD) {
    e->beside_s = overlap && both ? tp_time (e, red) : 0;
    wgrad (e, name, tokens, n, k);
  }
  if (overlap && both)
    e->join = MAX (e->join, reduced);
}

/* Row-parallel backward: with sequence parallelism the output gradient is gathered first. */
static void
row_backward (Emit *e, const char *name, LayerPass pass, gint64 tokens, gint64 n, gint64 k)
{
  guint32 later = 0;
  gboolean own = is_sp (e) && e->p->s->software.fp8_tp_gather;
  if (pass != LP_WEIGHT_GRAD)
    emit_quantise (e, "quantise grad",
                   (double)(own ? tokens / e->p->s->parallel.tp : tokens) * (double)n, TRUE);
  if (is_sp (e) && pass != LP_WEIGHT_GRAD) {
    if (e->p->s->software.tp_overlap == TPOV_PIPELINED)
      later = pipelined_comm (e, "tp all-gather", COLL_ALL_GATHER);
    else
      emit_tp_comm (e, "tp all-gather", COLL_ALL_GATHER, op_bytes (e, COLL_ALL_GATHER), FALSE);
  }
  if (pass != LP_WEIGHT_GRAD)
    emit_gemm (e, name, GEMM_DGRAD, tokens, k, n, 1);
  e->join = MAX (e->join, later);
  if (pass != LP_WEIGHT_GRAD)
    emit_adapter_dgrad (e, name, tokens, n, k);
  if (pass != LP_INPUT_GRAD)
    wgrad (e, name, tokens, n, k);
}

/* ---- memory-bound pieces ---- */

static void
norm_forward (Emit *e, const Dims *d, gint64 tokens, gint64 width)
{
  double bytes = 2.0 * d->a * (double)tokens * (double)width;
  emit_memory (e, "norm", MEMK_NORM_FWD, bytes);
  if (!e->p->s->software.fused_norm) /* separate passes: mean, variance, scale */
    emit_memory (e, "norm passes", MEMK_ELEMENTWISE, bytes);
}

static void
norm_backward (Emit *e, const Dims *d, gint64 tokens, gint64 width)
{
  double bytes = 3.0 * d->a * (double)tokens * (double)width;
  emit_memory (e, "norm backward", MEMK_NORM_BWD, bytes);
  if (!e->p->s->software.fused_norm)
    emit_memory (e, "norm backward passes", MEMK_ELEMENTWISE, bytes);
}

/* bias + dropout + residual add after a row-parallel linear. */
static void
residual_forward (Emit *e, const Dims *d)
{
  const SoftwareProfile *sw = &e->p->s->software;
  double n = (double)d->Tsp * (double)d->h;
  if (sw->fused_bias_dropout_add || !sw->dropout) {
    emit_memory (e, "residual add", MEMK_ELEMENTWISE, n * (3.0 * d->a + (sw->dropout ? 1.0 : 0.0)));
    return;
  }
  emit_memory (e, "bias add", MEMK_ELEMENTWISE, n * 2.0 * d->a);
  emit_memory (e, "dropout", MEMK_ELEMENTWISE, n * (2.0 * d->a + 1.0));
  emit_memory (e, "residual add", MEMK_ELEMENTWISE, n * 3.0 * d->a);
}

static void
residual_backward (Emit *e, const Dims *d, gboolean bias)
{
  const SoftwareProfile *sw = &e->p->s->software;
  double n = (double)d->Tsp * (double)d->h;
  if (sw->dropout)
    emit_memory (e, "dropout backward", MEMK_ELEMENTWISE, n * (2.0 * d->a + 1.0));
  if (bias)
    emit_memory (e, "bias grad", MEMK_ELEMENTWISE, n * d->a);
  /* the residual branch's gradient is added to the norm's */
  emit_memory (e, "residual grad add", MEMK_ELEMENTWISE, n * 3.0 * d->a);
}

static void
activation (Emit *e, const Dims *d, gboolean forward)
{
  const SoftwareProfile *sw = &e->p->s->software;
  double n = (double)d->T * (double)d->ffn * d->a;
  gboolean gated = e->p->s->model.gated_mlp;
  gboolean fused = gated ? sw->fused_swiglu : sw->fused_bias_gelu;
  double passes = gated ? (forward ? 3.0 : 5.0) : (forward ? 2.0 : 3.0);
  emit_memory (e, gated ? "gated activation" : "activation", MEMK_ELEMENTWISE, passes * n);
  if (!fused) /* bias add, activation and product are kernels of their own */
    emit_memory (e, "activation pieces", MEMK_ELEMENTWISE, (gated ? passes : 2.0) * n);
}

static void
rope (Emit *e, const Dims *d, gboolean forward)
{
  const Spec *s = e->p->s;
  if (s->model.pos != POS_ROTARY)
    return;
  double bytes = 2.0 * d->a * (double)d->T * (double)(d->q + d->kv);
  emit_memory (e, forward ? "rope" : "rope backward", MEMK_ELEMENTWISE,
               s->software.fused_rope ? bytes : 3.5 * bytes);
}

/* ---- the layer ---- */

static void
attention_forward (Emit *e, const Dims *d, gint64 layer)
{
  const ModelSpec *m = &e->p->s->model;
  column_forward (e, "qkv", d->T, d->qkv, d->h);
  if (m->qk_norm)
    norm_forward (e, d, d->T, d->q + d->kv);
  rope (e, d, TRUE);
  emit_attention_core (e, layer, PASS_FORWARD);
  if (m->attn_gate)
    emit_memory (e, "attention gate", MEMK_ELEMENTWISE, 3.0 * d->a * (double)d->T * (double)d->q);
  row_forward (e, "attention out", d->T, d->h, d->q);
}

static void
mixer_forward (Emit *e, const Dims *d, gint64 layer)
{
  const ModelSpec *m = &e->p->s->model;
  if (model_layer_is_linear (m, layer))
    emit_delta_forward (e, layer);
  else if (m->kv_lora_rank > 0)
    emit_latent_forward (e, layer);
  else
    attention_forward (e, d, layer);
}

static void
mlp_forward (Emit *e, const Dims *d, gboolean whole)
{
  column_forward (e, "mlp up", d->T, d->up, d->h);
  activation (e, d, TRUE);
  if (whole)
    row_forward (e, "mlp down", d->T, d->h, d->ffn);
}

void
emit_attention_half_forward (Emit *e, gint64 layer)
{
  const ModelSpec *m = &e->p->s->model;
  Dims d;
  dims (e->p, &d);
  norm_forward (e, &d, d.Tsp, d.h);
  mixer_forward (e, &d, layer);
  if (!m->parallel_block) {
    residual_forward (e, &d);
    norm_forward (e, &d, d.Tsp, d.h);
  }
  for (gint64 i = 2; i < m->norms_per_layer; i++)
    norm_forward (e, &d, d.Tsp, d.h);
}

void
emit_mlp_tail_forward (Emit *e)
{
  Dims d;
  dims (e->p, &d);
  residual_forward (e, &d);
}

/* whole FALSE: only what backward needs again. The last map's output is not among it, so that a
 * recomputation that stops early leaves it out. */
static void
layer_forward (Emit *e, const Dims *d, gint64 layer, gboolean whole)
{
  emit_attention_half_forward (e, layer);
  if (model_layer_is_moe (&e->p->s->model, layer))
    emit_moe_forward (e);
  else
    mlp_forward (e, d, whole);
  if (whole)
    emit_mlp_tail_forward (e);
}

static void
mlp_backward (Emit *e, const Dims *d, LayerPass pass)
{
  const ModelSpec *m = &e->p->s->model;
  row_backward (e, "mlp down", pass, d->T, d->h, d->ffn);
  if (pass != LP_WEIGHT_GRAD) {
    activation (e, d, FALSE);
    if (m->mlp_bias)
      emit_memory (e, "bias grad", MEMK_ELEMENTWISE, d->a * (double)d->T * (double)d->up);
  }
  column_backward (e, "mlp up", pass, d->T, d->up, d->h);
}

static void
attention_backward (Emit *e, const Dims *d, gint64 layer, LayerPass pass)
{
  const ModelSpec *m = &e->p->s->model;
  row_backward (e, "attention out", pass, d->T, d->h, d->q);
  if (pass != LP_WEIGHT_GRAD) {
    if (m->attn_gate)
      emit_memory (e, "attention gate backward", MEMK_ELEMENTWISE,
                   5.0 * d->a * (double)d->T * (double)d->q);
    emit_attention_core (e, layer, PASS_BACKWARD);
    rope (e, d, FALSE);
    if (m->qk_norm)
      norm_backward (e, d, d->T, d->q + d->kv);
    if (m->qkv_bias)
      emit_memory (e, "bias grad", MEMK_ELEMENTWISE, d->a * (double)d->T * (double)d->qkv);
  }
  column_backward (e, "qkv", pass, d->T, d->qkv, d->h);
}

static void
mixer_backward (Emit *e, const Dims *d, gint64 layer, LayerPass pass)
{
  const ModelSpec *m = &e->p->s->model;
  if (model_layer_is_linear (m, layer))
    emit_delta_backward (e, layer, pass);
  else if (m->kv_lora_rank > 0)
    emit_latent_backward (e, layer, pass);
  else
    attention_backward (e, d, layer, pass);
}

void
emit_mlp_tail_backward (Emit *e)
{
  Dims d;
  dims (e->p, &d);
  residual_backward (e, &d, e->p->s->model.mlp_bias);
}

void
emit_attention_half_backward (Emit *e, gint64 layer, LayerPass pass)
{
  const ModelSpec *m = &e->p->s->model;
  gboolean inputs = pass != LP_WEIGHT_GRAD;
  Dims d;
  dims (e->p, &d);
  for (gint64 i = 2; inputs && i < m->norms_per_layer; i++)
    norm_backward (e, &d, d.Tsp, d.h);
  if (inputs && !m->parallel_block) {
    norm_backward (e, &d, d.Tsp, d.h);
    residual_backward (e, &d, m->attn_out_bias);
  }
  mixer_backward (e, &d, layer, pass);
  if (inputs)
    norm_backward (e, &d, d.Tsp, d.h);
}

static void
layer_backward (Emit *e, const Dims *d, gint64 layer, LayerPass pass)
{
  if (pass != LP_WEIGHT_GRAD)
    emit_mlp_tail_backward (e);
  if (model_layer_is_moe (&e->p->s->model, layer))
    emit_moe_backward (e, pass);
  else
    mlp_backward (e, d, pass);
  emit_attention_half_backward (e, layer, pass);
}

/* Recomputation. Modules that are run again where their backward is (attention core, expert
 * activation, up-projections, shared experts) are not in here. */
void
emit_layer_again (Emit *e, gint64 layer)
{
  const Spec *s = e->p->s;
  gboolean moe = model_layer_is_moe (&s->model, layer);
  Dims d;
  dims (e->p, &d);
  if (spec_layer_recompute (s, layer) == RECOMPUTE_FULL) {
    e->host_layer_us += s->software.host_layer_fwd_us;
    layer_forward (e, &d, layer, !s->software.recompute_early_stop);
    return;
  }
  for (gint64 i = 0; spec_recomputes (s, RECOMP_LAYERNORM) && i < s->model.norms_per_layer; i++)
    norm_forward (e, &d, d.Tsp, d.h);
  if (moe && spec_recomputes (s, RECOMP_MOE))
    emit_moe_forward (e);
  else if (!moe && spec_recomputes (s, RECOMP_MLP))
    mlp_forward (e, &d, TRUE);
}

void
emit_layer (Emit *e, gint64 layer, LayerPass pass)
{
  const Spec *s = e->p->s;
  Dims d;
  if (s->model.graph != NULL) {
    emit_graph_layer (e, layer, pass);
    return;
  }
  dims (e->p, &d);
  if (pass == LP_FORWARD) {
    e->host_layer_us += s->software.host_layer_fwd_us;
    layer_forward (e, &d, layer, TRUE);
    return;
  }
  if (pass != LP_WEIGHT_GRAD) {
    e->host_layer_us += s->software.host_layer_bwd_us;
    emit_layer_again (e, layer);
  }
  layer_backward (e, &d, layer, pass);
}

/* ---- what the other files use ---- */

void
emit_column_forward (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k)
{
  column_forward (e, name, tokens, n, k);
}

void
emit_row_forward (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k)
{
  row_forward (e, name, tokens, n, k);
}

void
emit_column_backward (Emit *e, const char *name, LayerPass pass, gint64 tokens, gint64 n, gint64 k)
{
  column_backward (e, name, pass, tokens, n, k);
}

void
emit_row_backward (Emit *e, const char *name, LayerPass pass, gint64 tokens, gint64 n, gint64 k)
{
  row_backward (e, name, pass, tokens, n, k);
}

void
emit_wgrad (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k)
{
  wgrad (e, name, tokens, n, k);
}

void
emit_norm (Emit *e, gboolean forward, gint64 tokens, gint64 width)
{
  Dims d;
  dims (e->p, &d);
  if (forward)
    norm_forward (e, &d, tokens, width);
  else
    norm_backward (e, &d, tokens, width);
}

void
emit_activation (Emit *e, gboolean forward, gint64 tokens, gint64 ffn)
{
  Dims d;
  dims (e->p, &d);
  d.T = tokens;
  d.ffn = ffn;
  activation (e, &d, forward);
}

/* ---- first and last stage ---- */

void
emit_embedding (Emit *e, gint64 layer, LayerPass pass)
{
  const Spec *s = e->p->s;
  const ModelSpec *m = &s->model;
  Dims d;
  if (m->graph != NULL) {
    emit_graph_block (e, &m->graph->blocks[GRAPH_INPUT], pass);
    return;
  }
  dims (e->p, &d);
  (void)layer;
  double act = (double)d.T * (double)d.h * d.a;
  double table = (double)e->p->vocab_padded / (double)s->parallel.tp * (double)d.h;
  CollOp op = is_sp (e) ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE;
  if (pass == LP_FORWARD) {
    emit_memory (e, "embedding", MEMK_EMBEDDING, 2.0 * act);
    emit_tp_comm (e, "tp embedding", op, tp_bytes (e), FALSE);
    if (m->max_positions > 0)
      emit_memory (e, "position add", MEMK_ELEMENTWISE, 3.0 * act);
    if (m->embedding_norm)
      norm_forward (e, &d, d.Tsp, d.h);
    if (s->software.dropout)
      emit_memory (e, "dropout", MEMK_ELEMENTWISE, 2.5 * act);
    return;
  }
  if (pass == LP_INPUT_GRAD || s->train.adapter_rank > 0) /* or the table is frozen */
    return;
  if (m->embedding_norm)
    norm_backward (e, &d, d.Tsp, d.h);
  if (is_sp (e))
    emit_tp_comm (e, "tp all-gather", COLL_ALL_GATHER, tp_bytes (e), FALSE);
  emit_memory (e, "embedding grad", MEMK_EMBEDDING, 3.0 * act);
  /* a dense gradient table is zeroed, written and added to the main gradient; a tied one of sharded
   * parameters to the head's */
  double main_grad = spec_is_fsdp (s) ? (m->tied_embeddings ? d.a : 0) : main_grad_bytes (e);
  emit_memory (e, "embedding grad table", MEMK_STREAM, table * (2.0 * d.a + 2.0 * main_grad));
}

static void
loss (Emit *e, const Dims *d, gboolean forward)
{
  const Spec *s = e->p->s;
  double logits = (double)d->T * (double)e->p->vocab_padded / (double)s->parallel.tp;
  emit_memory (e, forward ? "loss" : "loss backward", MEMK_XENT,
               logits * s->software.xent_passes * (forward ? 0.7 : 0.3));
  if (forward &&
      s->parallel.tp > 1) { /* maximum, sum and target logit over the vocabulary shards */
    double t = coll_time_s (s->fabric, COLL_ALL_REDUCE, &e->p->groups.tp, 4.0 * (double)d->T, NULL);
    for (int i = 0; i < 3; i++)
      emit_comm_s (e, "tp loss", PART_TP_COMM, t, 4.0 * (double)d->T, FALSE);
  }
}

static void
head_forward (Emit *e, const Dims *d, gint64 vocab)
{
  if (e->p->s->model.final_norm)
    norm_forward (e, d, d->Tsp, d->h);
  e->wide = TRUE;
  column_forward (e, "logits", d->T, vocab, d->h);
  e->wide = FALSE;
  loss (e, d, TRUE);
}

void
emit_head (Emit *e, gint64 layer, LayerPass pass)
{
  const Spec *s = e->p->s;
  const ModelSpec *m = &s->model;
  Dims d;
  if (m->graph != NULL) {
    e->wide = TRUE;
    emit_graph_block (e, &m->graph->blocks[GRAPH_OUTPUT], pass);
    e->wide = FALSE;
    return;
  }
  dims (e->p, &d);
  (void)layer;
  gint64 vocab = e->p->vocab_padded / s->parallel.tp;
  if (pass == LP_FORWARD) {
    head_forward (e, &d, vocab);
    return;
  }
  if (pass != LP_WEIGHT_GRAD) {
    if (s->software.head_recompute) /* the logits were not kept */
      head_forward (e, &d, vocab);
    loss (e, &d, FALSE);
  }
  e->wide = TRUE;
  column_backward (e, "logits", pass, d.T, vocab, d.h);
  e->wide = FALSE;
  if (pass != LP_WEIGHT_GRAD && m->final_norm)
    norm_backward (e, &d, d.Tsp, d.h);
}

/* One multi-token-prediction module (DeepSeek-V3, arXiv 2412.19437, section 2.2) without its head:
 * the embedding of the next token and the hidden state, a norm of each, their projection to one, a
 * layer. */
void
emit_mtp_body (Emit *e, gint64 layer, LayerPass pass)
{
  Dims d;
  dims (e->p, &d);
  gint64 columns = d.h / e->p->s->parallel.tp;
  if (pass == LP_FORWARD) {
    emit_embedding (e, layer, pass);
    norm_forward (e, &d, d.Tsp, 2 * d.h);
    emit_memory (e, "mtp join", MEMK_ELEMENTWISE, 4.0 * d.a * (double)d.Tsp * (double)d.h);
    column_forward (e, "mtp projection", d.T, columns, 2 * d.h);
    emit_tp_comm (e, "tp all-gather", COLL_ALL_GATHER, tp_bytes (e), FALSE);
    emit_layer (e, layer, pass);
    return;
  }
  emit_layer (e, layer, pass);
  column_backward (e, "mtp projection", pass, d.T, columns, 2 * d.h);
  if (pass != LP_WEIGHT_GRAD)
    norm_backward (e, &d, d.Tsp, 2 * d.h);
  emit_embedding (e, layer, pass);
}

void
emit_mtp (Emit *e, gint64 layer, LayerPass pass)
{
  if (pass != LP_FORWARD)
    emit_head (e, layer, pass);
  emit_mtp_body (e, layer, pass);
  if (pass == LP_FORWARD)
    emit_head (e, layer, pass);
}
