/* Activation bytes of the operators of a graph: what each keeps for its backward is its input, the
 * mask of a dropout, and what attention and a scan make on the way. */
#include <math.h>

#include "memory_graph.h"

#define FP32_BYTES 4.0
#define MASK_BYTES 1.0

static double
elem_bytes (const Spec *s)
{
  const double b = dtype_bytes (s->train.precision);

  return b < 2 ? 2 : b;
}

/* Elements of the input of an operator, for one micro-batch on one rank. */
static double
input_elements (const Spec *s, const GraphOp *op)
{
  const double micro = (double)s->train.micro_batch_sequences, tp = (double)s->parallel.tp;
  const double fill =
      s->train.sequence_fill > 0 && op->rows == 0 && op->size == 0 ? s->train.sequence_fill : 1;
  double rows = graph_rows (op, s->train.sequence_tokens) * fill;

  if (op->kind == GOP_CONV || op->kind == GOP_POOL)
    rows = (double)(op->size * op->size);
  const gboolean inner = op->split != SPLIT_NONE && op->kind != GOP_LINEAR;
  const gboolean divided = inner || op->split == SPLIT_ROWS || s->parallel.sequence_parallel;
  return micro * rows * (double)op->in / (divided ? tp : 1);
}

static double
attention_bytes (const Spec *s, const GraphOp *op)
{
  const double a = elem_bytes (s), tp = op->split != SPLIT_NONE ? (double)s->parallel.tp : 1;
  const double micro = (double)s->train.micro_batch_sequences, heads = (double)op->heads / tp;
  const double q = graph_rows (op, s->train.sequence_tokens),
               kv = graph_kv_rows (op, s->train.sequence_tokens), d = (double)op->head_dim;
  const gboolean plain = s->software.attention == ATTN_UNFUSED || op->relative || a > 2;
  double b = a * micro * d * (q * heads + 2 * kv * (double)op->kv_heads / tp);

  if (!plain)
    return b + FP32_BYTES * micro * heads * q;
  if (spec_recomputes (s, RECOMP_CORE_ATTN))
    return b;
  return b + micro * heads * q * kv * (a + (s->software.dropout ? MASK_BYTES + a : 0));
}

static double
kept_bytes (const Spec *s, const GraphOp *op)
{
  const double a = elem_bytes (s);

  switch (op->kind) {
  case GOP_LINEAR:
    return MIN (a, dtype_bytes (s->train.precision)) * input_elements (s, op);
  case GOP_CONV:
  case GOP_NORM:
  case GOP_BATCH_NORM:
  case GOP_ACTIVATION:
    return a * input_elements (s, op);
  case GOP_DROPOUT:
    return s->software.dropout ? MASK_BYTES * input_elements (s, op) : 0;
  case GOP_POOL:
    return FP32_BYTES * input_elements (s, op) / (double)(op->stride * op->stride); /* indices */
  case GOP_ATTENTION:
    return attention_bytes (s, op);
  case GOP_SCAN: { /* convolution in and out, and a state per chunk */
    const double tp = op->split != SPLIT_NONE ? (double)s->parallel.tp : 1;
    const double rows =
        graph_rows (op, s->train.sequence_tokens) * (double)s->train.micro_batch_sequences;
    const double inner = (double)(op->heads * op->head_dim) / tp;
    return rows * (2 * a * (inner + 2 * (double)(op->groups * op->state) / tp) +
                   FP32_BYTES * inner * (double)op->state / (double)op->chunk);
  }
  default:
    return 0;
  }
}

double
graph_kept_bytes (const Spec *s, const GraphBlock *b, Recompute r)
{
  double sum = 0;

  if (r == RECOMPUTE_FULL)
    return b->n > 0 ? elem_bytes (s) * input_elements (s, &b->ops[0]) : 0;
  for (guint i = 0; i < b->n; i++)
    sum += kept_bytes (s, &b->ops[i]);
  return sum;
}

double
graph_working_bytes (const Spec *s, const GraphBlock *b, Recompute r)
{
  double widest = 0;

  for (guint i = 0; i < b->n; i++)
    widest = MAX (widest, input_elements (s, &b->ops[i]));
  return 3 * elem_bytes (s) * widest + graph_kept_bytes (s, b, RECOMPUTE_NONE) -
         graph_kept_bytes (s, b, r);
}

double
graph_logits_bytes (const Spec *s)
{
  const GraphBlock *b = &s->model.graph->blocks[GRAPH_OUTPUT];
  double sum = 0;

  for (guint i = 0; i < b->n; i++)
    if (b->ops[i].kind == GOP_LOSS)
      sum += s->software.logits_bytes * input_elements (s, &b->ops[i]);
  return sum;
}
