/* cpu_ops: the kernels of a transformer layer on one core, in fp32, for the collector and the
 * trainer.
 *
 * GEMMs are OpenBLAS's; the rest are loops that the compiler vectorises, each one pass or two over
 * its operands as the simulator counts them (models/layer_emit.c); the bytes are said at each.
 * Matrices are row-major. Nothing here allocates. */
#ifndef CLUSTERSIM_CPU_OPS_H
#define CLUSTERSIM_CPU_OPS_H

/* One thread, whatever the environment says: a rank is a core. Call it first. */
void op_init (void);
const char *op_library (void); /* what OpenBLAS says of itself; its own string */

/* y[m,n] = x[m,k] w[n,k]^T, or += with beta 1. Layout "forward". */
void op_linear (int m, int n, int k, const float *x, const float *w, float *y);
/* dx[m,k] = dy[m,n] w[n,k]. Layout "dgrad": m rows, k columns, n summed. */
void op_dgrad (int m, int n, int k, const float *dy, const float *w, float *dx);
/* dw[n,k] += dy[m,n]^T x[m,k]. Layout "wgrad": n rows, k columns, m summed; accumulates. */
void op_wgrad (int m, int n, int k, const float *dy, const float *x, float *dw);

/* Root-mean-square norm: 2 passes (8 bytes an element). inv[rows] is kept for the backward. */
void op_norm (int rows, int width, const float *x, const float *g, float *y, float *inv);
/* Reads x and dy, writes dx: 12 bytes an element. dg accumulates. */
void op_norm_back (int rows, int width, const float *x, const float *g, const float *inv,
                   const float *dy, float *dx, float *dg);

/* Scale, causal mask and softmax in place over rows of n scores, n rows: 8 bytes an element. */
void op_softmax (int n, float scale, float *p);
/* dp becomes the gradient of the scores: reads p, dp, writes: 12 bytes an element. */
void op_softmax_back (int n, float scale, const float *p, float *dp);

void op_relu (long n, float *x);                                /* 8 bytes an element */
void op_relu_back (long n, const float *y, float *dy);          /* 12 */
void op_add (long n, const float *a, const float *b, float *y); /* 12 */
void op_copy (int rows, int width, const float *from, int from_stride, float *to, int to_stride);

/* Cross entropy over rows of vocab logits, which become exp (logit - maximum): 12 bytes a logit;
 * inv holds the rows' factors. Returns the sum of the losses. */
double op_loss (int rows, int vocab, float *logits, const int *target, float *inv);
void op_loss_back (int rows, int vocab, float *logits, const int *target, const float *inv,
                   float scale); /* logits become their gradient: 8 bytes a logit */

void op_embed (int rows, int width, const int *token, const float *table, float *y); /* 8 */
/* Scatter-add into a zeroed table: 12 bytes an element of dy. */
void op_embed_back (int rows, int width, const int *token, const float *dy, float *table);

double op_square_sum (long n, const float *g); /* 4 bytes an element */
/* Adam: reads w, g, m, v, writes w, m, v, zeroes g: 32 bytes a parameter. */
void op_adam (long n, float lr, float scale, int step, float *w, float *g, float *m, float *v);

void op_triad (long n, const float *a, const float *b, float *y); /* y = a + 3 b: 12 */

/* A loop of multiply-adds in registers: FLOPs a second of the core for fp32. */
double op_peak_flops (double seconds);

double op_now_s (void); /* monotonic clock */

#endif
