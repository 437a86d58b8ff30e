/* Kernels of the operators of a graph (graph.h), forward and backward.
 *
 * Bytes are what each kernel's operands need, with what the software profile says of fusion. A
 * convolution is an implicit GEMM: its matrix product has the shape of the unfolded input, its
 * memory traffic is that of the image. Backward visits the operators of a block in reverse.
 */
#include "graph_emit.h"

#include <math.h>

#include "gpu_profile.h"
#include "layer_emit.h"

typedef struct {
  Emit *e;
  const GraphOp *op;
  gint64 tp;    /* that the operator is divided by */
  gint64 m;     /* rows of a micro-batch */
  double el, a; /* rows x width on this rank; bytes of an activation element */
  LayerPass pass;
  gboolean inputs; /* input gradients are wanted */
} Work;

static const Spec *
spec (const Work *o)
{
  return o->e->p->s;
}

static const SoftwareProfile *
sw (const Work *o)
{
  return &o->e->p->s->software;
}

static double
round_rows (double rows)
{
  return MAX (1.0, floor (rows + 0.5));
}

/* Positions that hold no token are left out by kernels for sequences of unequal lengths. */
static double
fill (const Spec *s)
{
  return s->train.sequence_fill > 0 ? s->train.sequence_fill : 1.0;
}

static void
op_init (Work *o, Emit *e, const GraphOp *op, LayerPass pass)
{
  const Spec *s = e->p->s;
  double micro = (double)s->train.micro_batch_sequences;
  double rows = graph_rows (op, s->train.sequence_tokens) * micro;
  if (op->rows_per_token > 0 && op->rows == 0 && op->size == 0)
    rows *= fill (s);
  o->e = e;
  o->op = op;
  o->pass = pass;
  o->inputs = pass != LP_WEIGHT_GRAD;
  o->tp = op->split == SPLIT_NONE ? 1 : s->parallel.tp;
  o->m = (gint64)round_rows (rows);
  o->a = e->p->act_bytes;
  gint64 share = o->tp;
  if (op->split == SPLIT_NONE && s->parallel.sequence_parallel)
    share = s->parallel.tp;
  o->el = (double)o->m * (double)op->in / (double)share;
}

static void
memory (const Work *o, const char *what, MemKernel kind, double bytes)
{
  gboolean half =
      o->a <= 2.0 && (kind == MEMK_ELEMENTWISE || kind == MEMK_NORM_FWD || kind == MEMK_NORM_BWD);
  emit_memory (o->e, what, kind, half ? bytes / sw (o)->half_bandwidth : bytes);
}

static gint64
padded (const Work *o, gint64 n)
{
  gint64 unit = MAX (sw (o)->vocab_pad, 1) * o->tp;
  return o->op->padded ? (n + unit - 1) / unit * unit : n;
}

/* ---- linear ---- */

/* Gradients of several micro-batches add up; one alone is written where it stays. */
static void
grad_add (const Work *o, double weights)
{
  const Spec *s = spec (o);
  gboolean one = spec_microbatches (s) == 1;
  if (spec_is_fsdp (s) || sw (o)->grad_accum_fusion || one)
    return;
  memory (o, "grad add", MEMK_STREAM, weights * (o->a + 2.0 * MIN (sw (o)->grad_bytes, 4.0)));
}

static void
set_message (const Work *o, gint64 width)
{
  double plain = (double)o->e->p->tokens * (double)spec (o)->model.hidden;
  o->e->message_scale = (double)o->m * (double)width / plain;
}

static void
linear_forward (const Work *o)
{
  const GraphOp *op = o->op;
  gint64 n = padded (o, op->out);
  if (op->split == SPLIT_COLUMNS && o->tp > 1) {
    set_message (o, op->in);
    emit_column_forward (o->e, op->name, o->m, n / o->tp, op->in);
  } else if (op->split == SPLIT_ROWS && o->tp > 1) {
    set_message (o, op->out);
    emit_row_forward (o->e, op->name, o->m, n, op->in / o->tp);
  } else {
    emit_quantise (o->e, "quantise", (double)o->m * (double)op->in, TRUE);
    emit_gemm (o->e, op->name, GEMM_FORWARD, o->m, n, op->in, 1);
  }
  o->e->message_scale = 0;
  if (op->bias && sw (o)->bias_kernel)
    memory (o, "bias add", MEMK_ELEMENTWISE, 2.0 * o->a * (double)o->m * (double)n / (double)o->tp);
}

static void
linear_backward (const Work *o)
{
  const GraphOp *op = o->op;
  gint64 n = padded (o, op->out);
  if (op->bias && o->inputs)
    memory (o, "bias grad", MEMK_ELEMENTWISE, o->a * (double)o->m * (double)n / (double)o->tp);
  if (op->split == SPLIT_COLUMNS && o->tp > 1) {
    set_message (o, op->in);
    emit_column_backward (o->e, op->name, o->pass, o->m, n / o->tp, op->in);
  } else if (op->split == SPLIT_ROWS && o->tp > 1) {
    set_message (o, op->out);
    emit_row_backward (o->e, op->name, o->pass, o->m, n, op->in / o->tp);
  } else {
    if (o->inputs)
      emit_quantise (o->e, "quantise grad", (double)o->m * (double)n, TRUE);
    if (o->inputs && !op->first)
      emit_gemm (o->e, op->name, GEMM_DGRAD, o->m, op->in, n, 1);
    if (o->pass != LP_INPUT_GRAD) {
      emit_gemm (o->e, op->name, GEMM_WGRAD, n, op->in, o->m, 1);
      grad_add (o, (double)op->in * (double)n);
    }
  }
  o->e->message_scale = 0;
}

/* ---- images ---- */

/* One implicit GEMM: images are read and written once, and the other way round again where the
 * layout is not the tensor cores' own. */
static void
conv (const Work *o, GemmRole role, gint64 m, gint64 n, gint64 k)
{
  const GraphOp *op = o->op;
  double micro = (double)spec (o)->train.micro_batch_sequences, side = (double)op->size;
  double in = micro * side * side * (double)op->in;
  double out = (double)o->m * (double)op->out;
  double weights = (double)graph_op_params (op, 1);
  double wide = dtype_bytes (o->e->p->gemm_dtype);
  emit_conv (o->e, op->name, role, m, n, k, op->groups, (in + out + weights) * wide);
  double passes = o->e->p->gemm_dtype == DT_TF32 ? sw (o)->conv_layout_passes_tf32
                  : wide <= 2.0                  ? sw (o)->conv_layout_passes
                                                 : 0;
  if (passes > 0)
    memory (o, "layout", MEMK_STREAM, passes * wide * (in + out));
}

static void
conv_forward (const Work *o)
{
  const GraphOp *op = o->op;
  gint64 window = op->kernel * op->kernel;
  conv (o, GEMM_FORWARD, o->m, op->out / op->groups, op->in / op->groups * window);
  if (op->bias && sw (o)->bias_kernel)
    memory (o, "bias add", MEMK_ELEMENTWISE, 2.0 * o->a * (double)o->m * (double)op->out);
}

static void
conv_backward (const Work *o)
{
  const GraphOp *op = o->op;
  gint64 window = op->kernel * op->kernel, micro = spec (o)->train.micro_batch_sequences;
  if (op->bias && o->inputs)
    memory (o, "bias grad", MEMK_ELEMENTWISE, o->a * (double)o->m * (double)op->out);
  if (o->inputs && !op->first) /* as many products as forward, spread over the input image */
    conv (o, GEMM_DGRAD, micro * op->size * op->size, op->in / op->groups,
          MAX (op->out / op->groups * window / (op->stride * op->stride), 1));
  if (o->pass == LP_INPUT_GRAD)
    return;
  conv (o, GEMM_WGRAD, op->out / op->groups, op->in / op->groups * window, o->m);
  grad_add (o, (double)graph_op_params (op, 1));
}

/* Statistics and normalisation read the image batch_norm_reads times; a ReLU and a residual add are
 * part of the kernel or kernels of their own. */
static void
batch_norm (const Work *o, gboolean forward)
{
  const GraphOp *op = o->op;
  double el = o->el * o->a, reads = sw (o)->batch_norm_reads;
  gboolean fused = sw (o)->fused_batch_norm;
  double extra = fused && op->residual ? 1.0 : 0.0;
  if (forward) {
    memory (o, "batch norm", MEMK_STREAM, el * (reads + 1.0 + extra));
    if (!fused && op->residual)
      memory (o, "residual add", MEMK_ELEMENTWISE, 3.0 * el);
    if (!fused && op->relu)
      memory (o, "relu", MEMK_ELEMENTWISE, 2.0 * el);
    return;
  }
  if (!fused && op->relu)
    memory (o, "relu backward", MEMK_ELEMENTWISE, 3.0 * el);
  memory (o, "batch norm backward", MEMK_STREAM, el * (2.0 * reads + 1.0 + extra));
  if (op->residual) /* gradients of the two branches meet */
    memory (o, "residual grad add", MEMK_ELEMENTWISE, 3.0 * el);
}

static void
pool (const Work *o, gboolean forward)
{
  double micro = (double)spec (o)->train.micro_batch_sequences;
  double in = micro * (double)(o->op->size * o->op->size * o->op->in);
  double out = (double)o->m * (double)o->op->in;
  memory (o, forward ? "pool" : "pool backward", MEMK_ELEMENTWISE,
          o->a * (forward ? in + out : 2.0 * in + out));
}

/* ---- sequences ---- */

static void
norm (const Work *o, gboolean forward)
{
  double el = o->el * o->a, more = MAX (0, sw (o)->norm_passes - 2.0) * el;
  memory (o, "norm", forward ? MEMK_NORM_FWD : MEMK_NORM_BWD, el * (forward ? 2.0 : 3.0));
  if (!sw (o)->fused_norm)
    memory (o, "norm passes", MEMK_ELEMENTWISE, forward ? more : 1.5 * more);
}

static void
activation (const Work *o, gboolean forward)
{
  const GraphOp *op = o->op;
  gboolean fused = op->gated ? sw (o)->fused_swiglu : sw (o)->fused_bias_gelu;
  double el = o->el * o->a * (op->gated ? 0.5 : 1.0), passes = op->gated ? 3.0 : 2.0;
  double more = MAX (0, sw (o)->activation_passes - 2.0);
  memory (o, op->name, MEMK_ELEMENTWISE, el * (forward ? passes : passes + (op->gated ? 2 : 1)));
  if (!fused)
    memory (o, "activation pieces", MEMK_ELEMENTWISE, el * (forward ? more : 1.5 * more));
}

static void
dropout (const Work *o, gboolean forward)
{
  if (!sw (o)->dropout)
    return;
  if (forward && sw (o)->fused_bias_dropout_add) /* part of the residual add */
    memory (o, "dropout mask", MEMK_ELEMENTWISE, o->el);
  else
    memory (o, forward ? "dropout" : "dropout backward", MEMK_ELEMENTWISE,
            o->el * (2.0 * o->a + 1.0 + (forward ? sw (o)->dropout_extra_bytes : 0)));
}

static void
embedding (const Work *o, gboolean forward)
{
  double act = (double)o->m * (double)o->op->out * o->a;
  double table = (double)padded (o, o->op->in) / (double)o->tp * (double)o->op->out;
  if (forward) {
    memory (o, o->op->name, MEMK_EMBEDDING, 2.0 * act);
    if (o->tp > 1) {
      set_message (o, o->op->out);
      emit_tp_comm (o->e, "tp embedding", COLL_ALL_REDUCE, act, FALSE);
      o->e->message_scale = 0;
    }
    return;
  }
  if (o->pass == LP_INPUT_GRAD)
    return;
  memory (o, "embedding grad", MEMK_EMBEDDING, 3.0 * act);
  memory (o, "embedding grad table", MEMK_STREAM, table * (2.0 * o->a));
}

static void
loss (const Work *o, gboolean forward)
{
  double logits = (double)o->m * (double)padded (o, o->op->in) / (double)o->tp;
  memory (o, forward ? "loss" : "loss backward", MEMK_XENT,
          logits * sw (o)->xent_passes * (forward ? 0.7 : 0.3));
}

/* ---- attention ---- */

typedef struct {
  gint64 batch, q, kv, dim;
  double scores, wide_q, wide_kv;
} Core;

static void
core_init (const Work *o, Core *c)
{
  const Spec *s = spec (o);
  const GraphOp *op = o->op;
  double micro = (double)s->train.micro_batch_sequences, f = op->rows > 0 ? 1.0 : fill (s);
  c->q = (gint64)round_rows (graph_rows (op, s->train.sequence_tokens) * f);
  c->kv = (gint64)round_rows (graph_kv_rows (op, s->train.sequence_tokens) *
                              (op->kv_rows > 0 ? 1.0 : f));
  c->dim = op->head_dim;
  c->batch = (gint64)micro * op->heads / o->tp;
  c->scores = (double)c->batch * (double)c->q * (double)c->kv;
  c->wide_q = (double)c->batch * (double)c->q * (double)c->dim;
  c->wide_kv =
      (double)c->batch * (double)op->kv_heads / (double)op->heads * (double)c->kv * (double)c->dim;
}

/* Scores, scale and mask, softmax, dropout, values. Relative attention makes a second score matrix
 * from the distances, shifts it row by row (a copy) and adds it. */
static void
unfused_forward (const Work *o, const Core *c)
{
  double el = c->scores * o->a, copies = sw (o)->attention_copies;
  memory (o, "head copies", MEMK_ELEMENTWISE,
          2.0 * o->a * copies / 4.0 * (2.0 * c->wide_q + 2.0 * c->wide_kv));
  emit_gemm (o->e, "scores", GEMM_FORWARD, c->q, c->kv, c->dim, c->batch);
  if (o->op->relative) {
    emit_gemm (o->e, "distance scores", GEMM_FORWARD, c->q, c->kv, c->dim, c->batch);
    memory (o, "relative bias", MEMK_ELEMENTWISE, 4.0 * o->a * c->wide_q);
    memory (o, "relative shift", MEMK_ELEMENTWISE, 4.0 * el);
    memory (o, "relative add", MEMK_ELEMENTWISE, 3.0 * el);
  }
  if (!sw (o)->fused_softmax)
    memory (o, "scale and mask", MEMK_ELEMENTWISE, 4.0 * el);
  memory (o, "softmax", MEMK_SOFTMAX_FWD, 2.0 * el);
  if (sw (o)->dropout)
    memory (o, "attention dropout", MEMK_ELEMENTWISE,
            2.0 * el + c->scores * (1.0 + sw (o)->dropout_extra_bytes));
  emit_gemm (o->e, "values", GEMM_FORWARD, c->q, c->dim, c->kv, c->batch);
}

static void
unfused_backward (const Work *o, const Core *c)
{
  double el = c->scores * o->a, copies = sw (o)->attention_copies;
  emit_gemm (o->e, "values dgrad", GEMM_DGRAD, c->q, c->kv, c->dim, c->batch);
  emit_gemm (o->e, "values dv", GEMM_DGRAD, c->kv, c->dim, c->q, c->batch);
  if (sw (o)->dropout)
    memory (o, "attention dropout backward", MEMK_ELEMENTWISE, 2.0 * el + c->scores);
  memory (o, "softmax backward", MEMK_SOFTMAX_BWD, 3.0 * el);
  if (!sw (o)->fused_softmax)
    memory (o, "scale and mask backward", MEMK_ELEMENTWISE, 2.0 * el);
  for (int i = o->op->relative ? 2 : 1; i > 0; i--) {
    emit_gemm (o->e, "scores dq", GEMM_DGRAD, c->q, c->dim, c->kv, c->batch);
    emit_gemm (o->e, "scores dk", GEMM_DGRAD, c->kv, c->dim, c->q, c->batch);
  }
  if (o->op->relative) {
    memory (o, "relative shift backward", MEMK_ELEMENTWISE, 4.0 * el);
    memory (o, "relative bias backward", MEMK_ELEMENTWISE, 4.0 * o->a * c->wide_q);
  }
  memory (o, "head copies backward", MEMK_ELEMENTWISE,
          2.0 * o->a * copies / 4.0 * (2.0 * c->wide_q + 2.0 * c->wide_kv));
}

static void
fused (const Work *o, const Core *c, Pass pass)
{
  gint64 micro = spec (o)->train.micro_batch_sequences;
  AttnShape shape = {.batch = micro,
                     .heads = o->op->heads / o->tp,
                     .kv_heads = MAX (o->op->kv_heads / o->tp, 1),
                     .seq_q = c->q,
                     .seq_kv = c->kv,
                     .head_dim_qk = c->dim,
                     .head_dim_v = c->dim,
                     .causal = o->op->causal,
                     .dtype = o->e->p->wide_dtype,
                     .pass = pass};
  emit_attention (o->e, pass == PASS_FORWARD ? "attention" : "attention backward", &shape);
}

/* Fused kernels are for 16 bits and for plain scores. */
static void
attention (const Work *o, gboolean forward)
{
  Core c;
  gboolean wide = o->e->wide;
  gboolean plain = o->e->p->attention == ATTN_UNFUSED || o->op->relative || o->a > 2.0;
  core_init (o, &c);
  o->e->wide = TRUE;
  if (forward || spec_recomputes (spec (o), RECOMP_CORE_ATTN)) {
    if (plain)
      unfused_forward (o, &c);
    else
      fused (o, &c, PASS_FORWARD);
  }
  if (!forward && plain)
    unfused_backward (o, &c);
  else if (!forward)
    fused (o, &c, PASS_BACKWARD);
  o->e->wide = wide;
}

/* ---- Mamba-2 ---- */

/* Products of a chunk (see graph.c); backward makes each gradient and the products again. */
static void
scan (const Work *o, gboolean forward)
{
  const GraphOp *op = o->op;
  gint64 q = op->chunk, chunks = MAX (o->m / q, 1), heads = op->heads / o->tp;
  gint64 groups = MAX (op->groups / o->tp, 1), n = op->state, d = op->head_dim;
  double inner = (double)(heads * d), mixed = inner + 2.0 * (double)(groups * n);
  double T = (double)o->m, states = 4.0 * (double)(chunks * heads) * (double)(d * n);
  gboolean wide = o->e->wide;
  o->e->wide = TRUE;
  memory (o, "short convolution", MEMK_ELEMENTWISE, (forward ? 2.0 : 4.0) * o->a * T * mixed);
  for (int i = forward ? 1 : 3; i > 0; i--) {
    GemmRole role = forward ? GEMM_FORWARD : GEMM_DGRAD;
    emit_gemm (o->e, "scan C B", role, q, q, n, chunks * groups);
    emit_gemm (o->e, "scan chunk", role, q, d, q, chunks * heads);
    emit_gemm (o->e, "scan state", role, d, n, q, chunks * heads);
    emit_gemm (o->e, "scan read", role, q, d, n, chunks * heads);
    memory (o, "scan states", MEMK_ELEMENTWISE, 4.0 * states);
    memory (o, "scan inputs", MEMK_ELEMENTWISE, 3.0 * o->a * T * mixed);
  }
  o->e->wide = wide;
}

/* ---- one operator, one block ---- */

static void
elementwise (const Work *o, gboolean forward)
{
  double passes = forward ? o->op->forward_passes : o->op->backward_passes;
  memory (o, o->op->name, MEMK_ELEMENTWISE, passes * o->a * o->el);
}

static void
emit_op (const Work *o, gboolean forward)
{
  if (!forward && !o->inputs && o->op->kind != GOP_LINEAR && o->op->kind != GOP_CONV &&
      o->op->kind != GOP_EMBEDDING)
    return;
  switch (o->op->kind) {
  case GOP_LINEAR:
    forward ? linear_forward (o) : linear_backward (o);
    break;
  case GOP_CONV:
    forward ? conv_forward (o) : conv_backward (o);
    break;
  case GOP_ATTENTION:
    attention (o, forward);
    break;
  case GOP_NORM:
    norm (o, forward);
    break;
  case GOP_BATCH_NORM:
    batch_norm (o, forward);
    break;
  case GOP_ACTIVATION:
    activation (o, forward);
    break;
  case GOP_DROPOUT:
    dropout (o, forward);
    break;
  case GOP_ADD:
    memory (o, "residual add", MEMK_ELEMENTWISE, 3.0 * o->a * o->el);
    break;
  case GOP_POOL:
    pool (o, forward);
    break;
  case GOP_EMBEDDING:
    embedding (o, forward);
    break;
  case GOP_SCAN:
    scan (o, forward);
    break;
  case GOP_LOSS:
    loss (o, forward);
    break;
  case GOP_ELEMENTWISE:
    elementwise (o, forward);
    break;
  case GOP_PARAMETERS:
  case GOP_COUNT:
    break;
  }
}

/* Master weights are cast for each forward where the framework's mixed precision does that. */
static void
weight_casts (Emit *e, const GraphBlock *b)
{
  double bytes = e->p->s->software.amp_cast_bytes;
  if (bytes > 0 && e->p->act_bytes <= 2.0)
    emit_memory (e, "weight casts", MEMK_STREAM,
                 bytes * (double)graph_block_params (b, e->p->s->parallel.tp));
}

static void
block_forward (Emit *e, const GraphBlock *b)
{
  weight_casts (e, b);
  for (guint i = 0; i < b->n; i++) {
    Work o;
    op_init (&o, e, &b->ops[i], LP_FORWARD);
    emit_op (&o, TRUE);
  }
}

void
emit_graph_block (Emit *e, const GraphBlock *b, LayerPass pass)
{
  if (pass == LP_FORWARD) {
    block_forward (e, b);
    return;
  }
  for (guint i = b->n; i-- > 0;) {
    Work o;
    op_init (&o, e, &b->ops[i], pass);
    emit_op (&o, FALSE);
  }
}

void
emit_graph_layer (Emit *e, gint64 layer, LayerPass pass)
{
  const Spec *s = e->p->s;
  const GraphBlock *b = graph_layer (s->model.graph, layer);
  gboolean again =
      s->train.recompute == RECOMPUTE_FULL && (pass == LP_BACKWARD || pass == LP_INPUT_GRAD);
  e->host_layer_us += pass == LP_FORWARD       ? s->software.host_layer_fwd_us
                      : pass == LP_WEIGHT_GRAD ? 0
                                               : s->software.host_layer_bwd_us;
  if (again)
    block_forward (e, b);
  emit_graph_block (e, b, pass);
}
