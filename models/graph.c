#include "graph.h"

#include <math.h>
#include <string.h>

G_DEFINE_QUARK (clustersim - graph - error - quark, graph_error)

const char *const graph_op_names[] = {
    "linear", "conv",      "attention",  "norm", "batch_norm", "activation",  "dropout", "add",
    "pool",   "embedding", "parameters", "scan", "loss",       "elementwise", NULL};
G_STATIC_ASSERT (G_N_ELEMENTS (graph_op_names) == GOP_COUNT + 1);
const char *const graph_split_names[] = {"none", "columns", "rows", NULL};

ModelGraph *
graph_new (void)
{
  ModelGraph *g = g_new0 (ModelGraph, 1);
  g->ref = 1;
  return g;
}

ModelGraph *
graph_ref (ModelGraph *g)
{
  if (g != NULL)
    g_atomic_int_inc (&g->ref);
  return g;
}

void
graph_unref (ModelGraph *g)
{
  if (g == NULL || !g_atomic_int_dec_and_test (&g->ref))
    return;
  for (guint b = 0; b < g->n_blocks; b++) {
    for (guint i = 0; i < g->blocks[b].n; i++)
      g_free (g->blocks[b].ops[i].name);
    g_free (g->blocks[b].ops);
    g_free (g->blocks[b].name);
  }
  g_free (g->layer);
  g_free (g);
}

/* ---- rows ---- */

gint64
graph_out_size (const GraphOp *op)
{
  return (op->size + op->stride - 1) / MAX (op->stride, 1);
}

double
graph_rows (const GraphOp *op, gint64 seq)
{
  if (op->kind == GOP_CONV || op->kind == GOP_POOL)
    return (double)(graph_out_size (op) * graph_out_size (op));
  if (op->size > 0)
    return (double)(op->size * op->size);
  return op->rows > 0 ? (double)op->rows : op->rows_per_token * (double)seq;
}

double
graph_kv_rows (const GraphOp *op, gint64 seq)
{
  if (op->kv_rows > 0)
    return (double)op->kv_rows;
  return op->kv_per_token > 0 ? op->kv_per_token * (double)seq : graph_rows (op, seq);
}

const GraphBlock *
graph_layer (const ModelGraph *g, gint64 layer)
{
  g_assert (layer >= 0 && layer < g->n_layers);
  return &g->blocks[g->layer[layer]];
}

/* ---- checks ---- */

#define WIDTH_MAX (G_GINT64_CONSTANT (1) << 26)

static gboolean
fail (const GraphOp *op, const char *what, GError **error)
{
  g_set_error (error, GRAPH_ERROR, 0, "%s \"%s\": %s", graph_op_names[op->kind], op->name, what);
  return FALSE;
}

static gboolean
check_images (const GraphOp *op, GError **error)
{
  gboolean sliding = op->kind == GOP_CONV || op->kind == GOP_POOL;
  if (sliding && (op->size < 1 || op->kernel < 1 || op->stride < 1))
    return fail (op, "size, kernel and stride must be positive", error);
  if (op->kind == GOP_CONV &&
      (op->groups < 1 || op->in % op->groups != 0 || op->out % op->groups != 0))
    return fail (op, "groups must divide in and out", error);
  if (op->kind == GOP_BATCH_NORM && op->size < 1)
    return fail (op, "size must be positive", error);
  if (op->size > (1 << 16) || op->kernel > (1 << 10) || op->stride > (1 << 10))
    return fail (op, "size, kernel or stride is out of range", error);
  return TRUE;
}

static gboolean
check_op (const GraphOp *op, GError **error)
{
  const gint64 sizes[] = {op->in,    op->out,   op->heads, op->kv_heads, op->head_dim,
                          op->state, op->chunk, op->rows,  op->kv_rows};
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    if (sizes[i] < 0 || sizes[i] > WIDTH_MAX)
      return fail (op, "a size is out of range", error);
  if (op->kind != GOP_PARAMETERS && op->kind != GOP_ATTENTION && op->kind != GOP_SCAN &&
      (op->in < 1 || op->out < 1))
    return fail (op, "in, out or width must be positive", error);
  if (op->kind == GOP_ATTENTION &&
      (op->heads < 1 || op->kv_heads < 1 || op->head_dim < 1 || op->heads % op->kv_heads != 0))
    return fail (op, "needs heads and head_dim; kv_heads must divide heads", error);
  if (op->kind == GOP_SCAN && (op->heads < 1 || op->head_dim < 1 || op->state < 1 ||
                               op->groups < 1 || op->chunk < 1 || op->kernel < 1))
    return fail (op, "needs heads, head_dim, state, groups, chunk and kernel", error);
  if (op->kind == GOP_PARAMETERS && op->count < 1)
    return fail (op, "count must be positive", error);
  if (!check_images (op, error))
    return FALSE;
  if (!(graph_rows (op, 1) > 0))
    return fail (op, "rows or rows_per_token must be positive", error);
  if (op->causal && graph_kv_rows (op, 1) < graph_rows (op, 1))
    return fail (op, "causal attention needs as many keys as queries", error);
  return TRUE;
}

gboolean
graph_check (const ModelGraph *g, GError **error)
{
  if (g->n_blocks < 3 || g->n_layers < 1) {
    g_set_error (error, GRAPH_ERROR, 0, "a graph needs an input, layers and an output");
    return FALSE;
  }
  for (guint b = 0; b < g->n_blocks; b++)
    for (guint i = 0; i < g->blocks[b].n; i++)
      if (!check_op (&g->blocks[b].ops[i], error))
        return FALSE;
  return TRUE;
}

gboolean
graph_check_tp (const ModelGraph *g, gint64 tp, GError **error)
{
  for (guint b = 0; b < g->n_blocks; b++)
    for (guint i = 0; i < g->blocks[b].n; i++) {
      const GraphOp *op = &g->blocks[b].ops[i];
      gint64 n = op->heads > 0               ? op->heads
                 : op->split == SPLIT_ROWS   ? op->in
                 : op->kind == GOP_EMBEDDING ? tp /* rows are padded */
                                             : op->out;
      gboolean padded = op->kind == GOP_LOSS;
      if (op->split != SPLIT_NONE && !padded && n % tp != 0) {
        g_set_error (error, GRAPH_ERROR, 0,
                     "%s \"%s\": %" G_GINT64_FORMAT " is not divisible by tp %" G_GINT64_FORMAT,
                     graph_op_names[op->kind], op->name, n, tp);
        return FALSE;
      }
    }
  return TRUE;
}

/* ---- parameters ---- */

static gint64
ceil_div (gint64 a, gint64 b)
{
  return (a + b - 1) / b;
}

/* Short convolution with bias over the inner channels and the groups' B and C; decay, skip and step
 * bias of each head. */
static gint64
scan_params (const GraphOp *op)
{
  return (op->heads * op->head_dim + 2 * op->groups * op->state) * (op->kernel + 1) + 3 * op->heads;
}

gint64
graph_op_params (const GraphOp *op, gint64 tp)
{
  gint64 t = op->split == SPLIT_NONE ? 1 : tp;
  gint64 bias = op->bias ? op->out : 0;
  switch (op->kind) {
  case GOP_LINEAR:
    return (op->tied ? 0 : ceil_div (op->in * op->out, t)) +
           (op->split == SPLIT_ROWS ? bias : ceil_div (bias, t));
  case GOP_CONV:
    return op->in / op->groups * op->out * op->kernel * op->kernel + bias;
  case GOP_NORM:
    return op->rms ? op->in : 2 * op->in;
  case GOP_BATCH_NORM:
    return 2 * op->in;
  case GOP_EMBEDDING:
    return ceil_div (op->in * op->out, t);
  case GOP_PARAMETERS:
    return op->count;
  case GOP_ATTENTION: /* the two biases of relative attention */
    return op->relative ? ceil_div (2 * op->heads * op->head_dim, t) : 0;
  case GOP_SCAN:
    return ceil_div (scan_params (op), t);
  default:
    return 0;
  }
}

gint64
graph_block_params (const GraphBlock *b, gint64 tp)
{
  gint64 sum = 0;
  for (guint i = 0; i < b->n; i++)
    sum += graph_op_params (&b->ops[i], tp);
  return sum;
}

gint64
graph_params (const ModelGraph *g, gint64 tp)
{
  gint64 sum = graph_block_params (&g->blocks[GRAPH_INPUT], tp) +
               graph_block_params (&g->blocks[GRAPH_OUTPUT], tp);
  for (gint64 i = 0; i < g->n_layers; i++)
    sum += graph_block_params (graph_layer (g, i), tp);
  return sum;
}

/* ---- FLOPs ---- */

/* Per chunk of Q tokens: C B' of each group; of each head the product with the inputs inside the
 * chunk, the chunk's state and its read-out; and the convolution. */
static double
scan_flops (const GraphOp *op, double rows)
{
  double q = (double)op->chunk, n = (double)op->state;
  double inner = (double)(op->heads * op->head_dim), g = (double)op->groups;
  return rows * (2 * q * n * g + 2 * q * inner + 4 * n * inner +
                 2 * (double)op->kernel * (inner + 2 * g * n));
}

static double
op_flops (const GraphOp *op, gint64 seq, gboolean half, double *core)
{
  double rows = graph_rows (op, seq);
  if (op->kind == GOP_LINEAR)
    return 2 * rows * (double)op->in * (double)op->out;
  if (op->kind == GOP_CONV)
    return 2 * rows * (double)(op->in / op->groups) * (double)op->out *
           (double)(op->kernel * op->kernel);
  if (op->kind == GOP_SCAN)
    return scan_flops (op, rows);
  if (op->kind != GOP_ATTENTION)
    return 0;
  double kv = graph_kv_rows (op, seq);
  double pairs = rows * kv - (half && op->causal ? rows * rows / 2 : 0);
  double f = 2 * pairs * (double)(op->heads * op->head_dim) * (op->relative ? 3 : 2);
  *core += f;
  return f;
}

static double
block_flops (const GraphBlock *b, gint64 seq, gboolean half, double *core)
{
  double sum = 0;
  for (guint i = 0; i < b->n; i++)
    sum += op_flops (&b->ops[i], seq, half, core);
  return sum;
}

void
graph_flops (const ModelGraph *g, gint64 seq, gboolean half, GraphFlops *out)
{
  out->core = 0;
  out->output = block_flops (&g->blocks[GRAPH_OUTPUT], seq, half, &out->core);
  out->total = out->output + block_flops (&g->blocks[GRAPH_INPUT], seq, half, &out->core);
  for (gint64 i = 0; i < g->n_layers; i++)
    out->total += block_flops (graph_layer (g, i), seq, half, &out->core);
}
