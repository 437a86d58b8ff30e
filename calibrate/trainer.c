/* trainer: a small transformer, really trained, on MPI ranks of one core each: data parallel, or a
 * pipeline of two stages. It exists to be predicted: its layer is the one that the simulator counts
 * (models/layer_emit.c: RMS norm, unfused causal attention, ReLU MLP, untied head, Adam in fp32),
 * and its communication is what the schedule says and no more.
 *
 * usage: trainer [--layers L] [--hidden H] [--heads A] [--ffn F] [--vocab V] [--seq S] [--mbs B]
 *                [--micro M] [--pp 1|2] [--schedule gpipe|1f1b] [--steps N] [--check 1]
 * Every rank prints nothing but rank 0, which prints one JSON line with the step times.
 * --check compares gradients with differences of the loss on a tiny model and ends. */
#include "cal_priority.h"
#include "cpu_ops.h"

#include <cblas.h>
#include <glib.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_ACT = 1, TAG_GRAD, TAG_ACK };

typedef struct {
  int layers, hidden, heads, ffn, vocab, seq, mbs, micro, pp, steps, check;
  char schedule[16];
} Config;

typedef struct {
  long g1, wqkv, wo, g2, w1, w2; /* offsets into the flat parameters */
} Layer;

/* What the backward of one micro-batch needs, per layer. */
typedef struct {
  float *x, *n1, *inv1, *qkv, *p, *ctx, *x2, *n2, *inv2, *act;
} Saved;

typedef struct {
  Config c;
  int rank, ranks, stage, stages, n_layers, tokens;
  long n_params, table, gf, head;
  Layer *layer;
  float *w, *g, *m, *v;                 /* flat */
  Saved *saved;                         /* [micro][layer] */
  float **out, **norm, **inv, **logits; /* [micro]: last hidden state, final norm, loss */
  float **loss_inv;
  int **token, **target;
  float *t1, *t2, *t3, *t4, *tqkv, *tact, *tp, *thead[4], *ttable; /* scratch */
  double loss;
  unsigned long long random_state;
} Trainer;

static void
die (const char *what)
{
  fprintf (stderr, "trainer: %s\n", what);
  MPI_Abort (MPI_COMM_WORLD, 2);
  exit (2);
}

static float *
floats (long n)
{
  return g_aligned_alloc0 ((gsize)n, sizeof (float), 64);
}

static double
uniform (Trainer *t)
{
  t->random_state ^= t->random_state << 13;
  t->random_state ^= t->random_state >> 7;
  t->random_state ^= t->random_state << 17;
  return (double)(t->random_state >> 11) * 0x1p-53;
}

/* ---- set-up ---- */

static long
place (Trainer *t, long n)
{
  long at = t->n_params;
  t->n_params += n;
  return at;
}

static void
place_parameters (Trainer *t)
{
  long h = t->c.hidden, f = t->c.ffn, table = (long)t->c.vocab * h;
  t->layer = g_new0 (Layer, t->n_layers);
  t->table = t->stage == 0 ? place (t, table) : -1;
  for (int i = 0; i < t->n_layers; i++) {
    Layer *l = &t->layer[i];
    l->g1 = place (t, h);
    l->wqkv = place (t, 3 * h * h);
    l->wo = place (t, h * h);
    l->g2 = place (t, h);
    l->w1 = place (t, f * h);
    l->w2 = place (t, h * f);
  }
  t->gf = t->head = -1;
  if (t->stage + 1 == t->stages) {
    t->gf = place (t, h);
    t->head = place (t, table);
  }
}

static void
init_parameters (Trainer *t)
{
  t->w = floats (t->n_params);
  t->g = floats (t->n_params);
  t->m = floats (t->n_params);
  t->v = floats (t->n_params);
  t->random_state = 88172645463325252ull + (unsigned long long)t->stage;
  for (long i = 0; i < t->n_params; i++)
    t->w[i] = (float)(0.16 * (uniform (t) - 0.5));
  for (int i = 0; i < t->n_layers; i++)
    for (int k = 0; k < t->c.hidden; k++)
      t->w[t->layer[i].g1 + k] = t->w[t->layer[i].g2 + k] = 1;
  for (int k = 0; t->gf >= 0 && k < t->c.hidden; k++)
    t->w[t->gf + k] = 1;
}

static void
init_buffers (Trainer *t)
{
  const Config *c = &t->c;
  long n = (long)t->tokens * c->hidden, scores = (long)c->mbs * c->heads * c->seq * c->seq;
  long head_floats = (long)c->seq * (c->hidden / c->heads), micro = c->micro;
  t->saved = g_new0 (Saved, micro * t->n_layers);
  t->out = g_new0 (float *, micro * 5);
  t->norm = t->out + micro;
  t->inv = t->norm + micro;
  t->logits = t->inv + micro;
  t->loss_inv = t->logits + micro;
  t->token = g_new0 (int *, micro * 2);
  t->target = t->token + micro;
  for (long i = 0; i < micro * t->n_layers; i++)
    t->saved[i] = (Saved){floats (n),         floats (n),
                          floats (t->tokens), floats (3 * n),
                          floats (scores),    floats (n),
                          floats (n),         floats (n),
                          floats (t->tokens), floats ((long)t->tokens * c->ffn)};
  for (long i = 0; i < micro; i++) {
    t->out[i] = floats (n);
    t->token[i] = g_new0 (int, t->tokens);
    t->target[i] = g_new0 (int, t->tokens);
    if (t->head >= 0) {
      t->norm[i] = floats (n);
      t->inv[i] = floats (t->tokens);
      t->logits[i] = floats ((long)t->tokens * c->vocab);
      t->loss_inv[i] = floats (t->tokens);
    }
  }
  t->t1 = floats (n);
  t->t2 = floats (n);
  t->t3 = floats (n);
  t->t4 = floats (n);
  t->tqkv = floats (3 * n);
  t->tact = floats ((long)t->tokens * c->ffn);
  t->tp = floats ((long)c->seq * c->seq);
  for (int i = 0; i < 4; i++)
    t->thead[i] = floats (head_floats);
  t->ttable = t->table >= 0 ? floats ((long)c->vocab * c->hidden) : NULL;
}

/* A sequence that can be learnt: the next token is a fixed function of this one, mostly. */
static void
draw_tokens (Trainer *t, int micro)
{
  int at = (int)(uniform (t) * t->c.vocab) % t->c.vocab;
  for (int i = 0; i < t->tokens; i++) {
    t->token[micro][i] = at;
    at = uniform (t) < 0.9 ? (at * 7 + 3) % t->c.vocab
                           : (int)(uniform (t) * t->c.vocab) % t->c.vocab;
    t->target[micro][i] = at;
  }
}

/* ---- the layer ---- */

/* One head of one sequence: q, k, v lie in qkv with a stride of 3 hidden. */
static void
attention_forward (Trainer *t, const float *qkv, float *p, float *ctx)
{
  const Config *c = &t->c;
  int s = c->seq, h = c->hidden, d = h / c->heads;
  float scale = 1 / sqrtf ((float)d);
  for (int b = 0; b < c->mbs; b++)
    for (int a = 0; a < c->heads; a++, p += (long)s * s) {
      const float *q = qkv + (long)b * s * 3 * h + a * d;
      cblas_sgemm (CblasRowMajor, CblasNoTrans, CblasTrans, s, s, d, 1, q, 3 * h, q + h, 3 * h, 0,
                   p, s);
      op_softmax (s, scale, p);
      cblas_sgemm (CblasRowMajor, CblasNoTrans, CblasNoTrans, s, d, s, 1, p, s, q + 2 * h, 3 * h, 0,
                   t->thead[0], d);
      op_copy (s, d, t->thead[0], d, ctx + (long)b * s * h + a * d, h);
    }
}

static void
attention_backward (Trainer *t, const float *qkv, const float *p, const float *dctx, float *dqkv)
{
  const Config *c = &t->c;
  int s = c->seq, h = c->hidden, d = h / c->heads;
  float scale = 1 / sqrtf ((float)d), *dc = t->thead[0];
  for (int b = 0; b < c->mbs; b++)
    for (int a = 0; a < c->heads; a++, p += (long)s * s) {
      long at = (long)b * s * 3 * h + a * d;
      const float *q = qkv + at;
      op_copy (s, d, dctx + (long)b * s * h + a * d, h, dc, d);
      cblas_sgemm (CblasRowMajor, CblasNoTrans, CblasTrans, s, s, d, 1, dc, d, q + 2 * h, 3 * h, 0,
                   t->tp, s);
      cblas_sgemm (CblasRowMajor, CblasTrans, CblasNoTrans, s, d, s, 1, p, s, dc, d, 0, t->thead[3],
                   d);
      op_softmax_back (s, scale, p, t->tp);
      cblas_sgemm (CblasRowMajor, CblasNoTrans, CblasNoTrans, s, d, s, 1, t->tp, s, q + h, 3 * h, 0,
                   t->thead[1], d);
      cblas_sgemm (CblasRowMajor, CblasTrans, CblasNoTrans, s, d, s, 1, t->tp, s, q, 3 * h, 0,
                   t->thead[2], d);
      for (int part = 0; part < 3; part++)
        op_copy (s, d, t->thead[1 + part], d, dqkv + at + (long)part * h, 3 * h);
    }
}

static void
layer_forward (Trainer *t, const Layer *l, const Saved *s, float *y)
{
  int T = t->tokens, h = t->c.hidden, f = t->c.ffn;
  const float *w = t->w;
  op_norm (T, h, s->x, w + l->g1, s->n1, s->inv1);
  op_linear (T, 3 * h, h, s->n1, w + l->wqkv, s->qkv);
  attention_forward (t, s->qkv, s->p, s->ctx);
  op_linear (T, h, h, s->ctx, w + l->wo, t->t1);
  op_add ((long)T * h, s->x, t->t1, s->x2);
  op_norm (T, h, s->x2, w + l->g2, s->n2, s->inv2);
  op_linear (T, f, h, s->n2, w + l->w1, s->act);
  op_relu ((long)T * f, s->act);
  op_linear (T, h, f, s->act, w + l->w2, t->t1);
  op_add ((long)T * h, s->x2, t->t1, y);
}

/* dy, and then dx in its place. */
static void
layer_backward (Trainer *t, const Layer *l, const Saved *s, float *dy)
{
  int T = t->tokens, h = t->c.hidden, f = t->c.ffn;
  const float *w = t->w;
  float *g = t->g;
  op_dgrad (T, h, f, dy, w + l->w2, t->tact);
  op_wgrad (T, h, f, dy, s->act, g + l->w2);
  op_relu_back ((long)T * f, s->act, t->tact);
  op_dgrad (T, f, h, t->tact, w + l->w1, t->t1);
  op_wgrad (T, f, h, t->tact, s->n2, g + l->w1);
  op_norm_back (T, h, s->x2, w + l->g2, s->inv2, t->t1, t->t2, g + l->g2);
  op_add ((long)T * h, t->t2, dy, t->t3);
  op_dgrad (T, h, h, t->t3, w + l->wo, t->t1);
  op_wgrad (T, h, h, t->t3, s->ctx, g + l->wo);
  attention_backward (t, s->qkv, s->p, t->t1, t->tqkv);
  op_dgrad (T, 3 * h, h, t->tqkv, w + l->wqkv, t->t1);
  op_wgrad (T, 3 * h, h, t->tqkv, s->n1, g + l->wqkv);
  op_norm_back (T, h, s->x, w + l->g1, s->inv1, t->t1, t->t2, g + l->g1);
  op_add ((long)T * h, t->t2, t->t3, dy);
}

/* ---- a stage's pass of a micro-batch ---- */

static Saved *
saved_of (Trainer *t, int micro)
{
  return t->saved + (long)micro * t->n_layers;
}

/* Input of the stage: where a received activation goes. */
static float *
input_of (Trainer *t, int micro)
{
  return saved_of (t, micro)[0].x;
}

static void
forward (Trainer *t, int micro)
{
  int T = t->tokens, h = t->c.hidden;
  Saved *s = saved_of (t, micro);
  if (t->stage == 0)
    op_embed (T, h, t->token[micro], t->w + t->table, s[0].x);
  for (int i = 0; i < t->n_layers; i++)
    layer_forward (t, &t->layer[i], &s[i], i + 1 < t->n_layers ? s[i + 1].x : t->out[micro]);
  if (t->head < 0)
    return;
  op_norm (T, h, t->out[micro], t->w + t->gf, t->norm[micro], t->inv[micro]);
  op_linear (T, t->c.vocab, h, t->norm[micro], t->w + t->head, t->logits[micro]);
  t->loss += op_loss (T, t->c.vocab, t->logits[micro], t->target[micro], t->loss_inv[micro]);
}

/* t->t4 holds the gradient of the stage's output and then of its input. */
static void
backward (Trainer *t, int micro)
{
  int T = t->tokens, h = t->c.hidden;
  long table = (long)t->c.vocab * h;
  Saved *s = saved_of (t, micro);
  if (t->head >= 0) {
    op_loss_back (T, t->c.vocab, t->logits[micro], t->target[micro], t->loss_inv[micro],
                  1 / ((float)T * (float)t->c.micro));
    op_dgrad (T, t->c.vocab, h, t->logits[micro], t->w + t->head, t->t1);
    op_wgrad (T, t->c.vocab, h, t->logits[micro], t->norm[micro], t->g + t->head);
    op_norm_back (T, h, t->out[micro], t->w + t->gf, t->inv[micro], t->t1, t->t4, t->g + t->gf);
  }
  for (int i = t->n_layers; i-- > 0;)
    layer_backward (t, &t->layer[i], &s[i], t->t4);
  if (t->stage == 0) { /* a dense gradient table, added to the main one */
    memset (t->ttable, 0, (size_t)table * sizeof *t->ttable);
    op_embed_back (T, h, t->token[micro], t->t4, t->ttable);
    op_add (table, t->g + t->table, t->ttable, t->g + t->table);
  }
}

/* ---- pipeline transfers: a sender goes on when the receiver has it all ---- */

static void
send_all (Trainer *t, const float *x, int to, int tag)
{
  int n = t->tokens * t->c.hidden, ack = 0;
  MPI_Request r;
  MPI_Isend (x, n, MPI_FLOAT, to, tag, MPI_COMM_WORLD, &r);
  MPI_Recv (&ack, 1, MPI_INT, to, TAG_ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait (&r, MPI_STATUS_IGNORE);
}

static void
receive_all (Trainer *t, float *x, int from, int tag)
{
  int ack = 1;
  MPI_Recv (x, t->tokens * t->c.hidden, MPI_FLOAT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send (&ack, 1, MPI_INT, from, TAG_ACK, MPI_COMM_WORLD);
}

/* Both ways at once, as a steady 1F1B stage does. */
static void
exchange (Trainer *t, const float *out, int out_tag, float *in, int in_tag, int peer)
{
  int n = t->tokens * t->c.hidden, mine = 1, theirs = 0;
  MPI_Request r[4];
  MPI_Irecv (in, n, MPI_FLOAT, peer, in_tag, MPI_COMM_WORLD, &r[0]);
  MPI_Irecv (&theirs, 1, MPI_INT, peer, TAG_ACK, MPI_COMM_WORLD, &r[2]);
  MPI_Isend (out, n, MPI_FLOAT, peer, out_tag, MPI_COMM_WORLD, &r[1]);
  MPI_Wait (&r[0], MPI_STATUS_IGNORE);
  MPI_Isend (&mine, 1, MPI_INT, peer, TAG_ACK, MPI_COMM_WORLD, &r[3]);
  MPI_Waitall (3, r + 1, MPI_STATUSES_IGNORE);
}

static void
pipeline_gpipe (Trainer *t)
{
  int M = t->c.micro;
  for (int i = 0; i < M; i++) {
    if (t->stage == 1)
      receive_all (t, input_of (t, i), 0, TAG_ACT);
    forward (t, i);
    if (t->stage == 0)
      send_all (t, t->out[i], 1, TAG_ACT);
  }
  for (int i = 0; i < M; i++) {
    if (t->stage == 0)
      receive_all (t, t->t4, 1, TAG_GRAD);
    backward (t, i);
    if (t->stage == 1)
      send_all (t, t->t4, 0, TAG_GRAD);
  }
}

/* Two stages: F0 F1 B0 F2 B1 … on the first, F0 B0 F1 B1 … on the last. */
static void
pipeline_1f1b (Trainer *t)
{
  int M = t->c.micro;
  float *keep = t->t4;
  if (t->stage == 0) {
    forward (t, 0);
    send_all (t, t->out[0], 1, TAG_ACT);
    for (int i = 0; i < M; i++) {
      if (i + 1 < M) {
        forward (t, i + 1);
        exchange (t, t->out[i + 1], TAG_ACT, keep, TAG_GRAD, 1);
      } else
        receive_all (t, keep, 1, TAG_GRAD);
      backward (t, i);
    }
    return;
  }
  receive_all (t, input_of (t, 0), 0, TAG_ACT);
  for (int i = 0; i < M; i++) {
    forward (t, i);
    backward (t, i);
    if (i + 1 < M)
      exchange (t, keep, TAG_GRAD, input_of (t, i + 1), TAG_ACT, 0);
    else
      send_all (t, keep, 0, TAG_GRAD);
  }
}

/* ---- a step ---- */

static void
step (Trainer *t, int number)
{
  double sum = 0, all = 0;
  t->loss = 0;
  if (t->stages == 1)
    for (int i = 0; i < t->c.micro; i++) {
      forward (t, i);
      backward (t, i);
    }
  else if (strcmp (t->c.schedule, "gpipe") == 0)
    pipeline_gpipe (t);
  else
    pipeline_1f1b (t);
  if (t->stages == 1 && t->ranks > 1)
    MPI_Allreduce (MPI_IN_PLACE, t->g, (int)t->n_params, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  sum = op_square_sum (t->n_params, t->g);
  MPI_Allreduce (&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  float scale = 1.0f / (t->stages == 1 ? (float)t->ranks : 1.0f);
  float norm = (float)sqrt (all) * scale;
  op_adam (t->n_params, 1e-3f, norm > 1 ? scale / norm : scale, number, t->w, t->g, t->m, t->v);
}

/* ---- checks and figures ---- */

static double
loss_only (Trainer *t)
{
  t->loss = 0;
  for (int i = 0; i < t->c.micro; i++)
    forward (t, i);
  return t->loss / ((double)t->tokens * t->c.micro);
}

/* Gradients of the first and a middle element of every parameter against central differences. */
static int
check_gradients (Trainer *t)
{
  int bad = 0, n = 0;
  const Layer *l = &t->layer[0];
  const long at[] = {t->table, l->g1, l->wqkv, l->wo, l->g2, l->w1, l->w2, t->gf, t->head};
  for (int i = 0; i < t->c.micro; i++) {
    draw_tokens (t, i);
    forward (t, i);
    backward (t, i);
  }
  for (unsigned k = 0; k < sizeof at / sizeof *at; k++)
    for (int j = 0; j < 2; j++) {
      long i = at[k] + j * 17 + (k == 0 ? (long)t->token[0][0] * t->c.hidden : 0);
      float w = t->w[i], h = 0.01f;
      t->w[i] = w + h;
      double up = loss_only (t);
      t->w[i] = w - h;
      double slope = (up - loss_only (t)) / (2 * (double)h);
      t->w[i] = w;
      n++;
      if (fabs (slope - (double)t->g[i]) > 2e-3 + 0.05 * fabs (slope)) {
        fprintf (stderr, "trainer: gradient %u,%d is %g, differences say %g\n", k, j,
                 (double)t->g[i], slope);
        bad++;
      }
    }
  printf ("gradients: %d of %d agree with differences of the loss\n", n - bad, n);
  return bad == 0 ? 0 : 1;
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void
report (Trainer *t, double *time_s, double first, double last)
{
  int n = t->c.steps;
  qsort (time_s, (size_t)n, sizeof *time_s, compare);
  printf ("{\"ranks\": %d, \"pp\": %d, \"layers\": %d, \"hidden\": %d, \"seq\": %d, \"mbs\": %d, "
          "\"micro\": %d, \"params\": %ld, \"steps\": %d, \"median_s\": %.6f, \"p10_s\": %.6f, "
          "\"p90_s\": %.6f, \"loss_first\": %.3f, \"loss_last\": %.3f}\n",
          t->ranks, t->c.pp, t->c.layers, t->c.hidden, t->c.seq, t->c.mbs, t->c.micro, t->n_params,
          n, time_s[n / 2], time_s[n / 10], time_s[n * 9 / 10], first, last);
}

static double
mean_loss (Trainer *t)
{
  double mine = t->head >= 0 ? t->loss / ((double)t->tokens * t->c.micro) : 0, all = 0;
  MPI_Allreduce (&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all / (t->stages > 1 ? 1 : t->ranks);
}

static void
train (Trainer *t)
{
  double *time_s = g_new0 (double, t->c.steps), first = 0;
  for (int s = -1; s < t->c.steps; s++) { /* the first warms up and is not counted */
    for (int i = 0; i < t->c.micro; i++)
      draw_tokens (t, i);
    MPI_Barrier (MPI_COMM_WORLD);
    double start = op_now_s ();
    step (t, s + 2);
    double took = op_now_s () - start, longest = 0;
    MPI_Allreduce (&took, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (s >= 0)
      time_s[s] = longest;
    double loss = mean_loss (t);
    if (s < 0)
      first = loss;
    if (s + 1 == t->c.steps && t->rank == 0)
      report (t, time_s, first, loss);
  }
  g_free (time_s);
}

static void
parse (Config *c, int argc, char **argv)
{
  struct {
    const char *name;
    int *value;
  } ints[] = {{"--layers", &c->layers}, {"--hidden", &c->hidden}, {"--heads", &c->heads},
              {"--ffn", &c->ffn},       {"--vocab", &c->vocab},   {"--seq", &c->seq},
              {"--mbs", &c->mbs},       {"--micro", &c->micro},   {"--pp", &c->pp},
              {"--steps", &c->steps},   {"--check", &c->check}};
  for (int i = 1; i < argc; i += 2) {
    int known = 0;
    if (i + 1 >= argc)
      die ("an option lacks its value");
    for (unsigned k = 0; k < sizeof ints / sizeof *ints; k++)
      if (strcmp (argv[i], ints[k].name) == 0) {
        *ints[k].value = (int)g_ascii_strtod (argv[i + 1], NULL);
        known = 1;
      }
    if (strcmp (argv[i], "--schedule") == 0) {
      snprintf (c->schedule, sizeof c->schedule, "%s", argv[i + 1]);
      known = 1;
    }
    if (!known)
      die ("unknown option");
  }
}

int
main (int argc, char **argv)
{
  Trainer t = {.c = {2, 256, 4, 0, 1024, 256, 1, 2, 1, 5, 0, "1f1b"}};
  Config *c = &t.c;
  cal_priority ();
  op_init ();
  MPI_Init (&argc, &argv);
  MPI_Comm_rank (MPI_COMM_WORLD, &t.rank);
  MPI_Comm_size (MPI_COMM_WORLD, &t.ranks);
  parse (c, argc, argv);
  if (c->check)
    *c = (Config){1, 32, 2, 0, 64, 16, 2, 2, 1, 1, 1, "1f1b"};
  c->ffn = c->ffn > 0 ? c->ffn : 4 * c->hidden;
  if (c->pp > 2 || c->pp < 1 || (c->pp == 2 && t.ranks != 2))
    die ("--pp is 1, or 2 on two ranks");
  if (c->layers < c->pp || c->layers % c->pp != 0 || c->heads < 1 || c->hidden % c->heads != 0 ||
      c->micro < 1 || c->steps < 1 || c->seq < 1 || c->mbs < 1 || c->vocab < 2)
    die ("sizes that do not go together");
  t.stages = c->pp;
  t.stage = c->pp == 2 ? t.rank : 0;
  t.n_layers = c->layers / c->pp;
  t.tokens = c->mbs * c->seq;
  place_parameters (&t);
  init_parameters (&t);
  init_buffers (&t);
  t.random_state = 1234567u + (c->pp == 2 ? 0u : 1000u * (unsigned)t.rank);
  int bad = 0;
  if (c->check)
    bad = check_gradients (&t);
  else
    train (&t);
  MPI_Finalize ();
  return bad;
}
