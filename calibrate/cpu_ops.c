#include "cpu_ops.h"

#include <cblas.h>
#include <math.h>
#include <string.h>
#include <time.h>

void
op_init (void)
{
  openblas_set_num_threads (1);
}

const char *
op_library (void)
{
  return openblas_get_config ();
}

double
op_now_s (void)
{
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void
op_linear (int m, int n, int k, const float *x, const float *w, float *y)
{
  cblas_sgemm (CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, x, k, w, k, 0, y, n);
}

void
op_dgrad (int m, int n, int k, const float *dy, const float *w, float *dx)
{
  cblas_sgemm (CblasRowMajor, CblasNoTrans, CblasNoTrans, m, k, n, 1, dy, n, w, k, 0, dx, k);
}

void
op_wgrad (int m, int n, int k, const float *dy, const float *x, float *dw)
{
  cblas_sgemm (CblasRowMajor, CblasTrans, CblasNoTrans, n, k, m, 1, dy, n, x, k, 1, dw, k);
}

void
op_norm (int rows, int width, const float *x, const float *g, float *y, float *inv)
{
  for (int r = 0; r < rows; r++, x += width, y += width) {
    float sum = 0;
    for (int i = 0; i < width; i++)
      sum += x[i] * x[i];
    float f = 1 / sqrtf (sum / (float)width + 1e-6f);
    inv[r] = f;
    for (int i = 0; i < width; i++)
      y[i] = x[i] * f * g[i];
  }
}

void
op_norm_back (int rows, int width, const float *x, const float *g, const float *inv,
              const float *dy, float *dx, float *dg)
{
  for (int r = 0; r < rows; r++, x += width, dy += width, dx += width) {
    float f = inv[r], dot = 0;
    for (int i = 0; i < width; i++)
      dot += dy[i] * g[i] * x[i];
    dot *= f * f * f / (float)width;
    for (int i = 0; i < width; i++) {
      dg[i] += dy[i] * x[i] * f;
      dx[i] = dy[i] * g[i] * f - x[i] * dot;
    }
  }
}

/* exp for x <= 0 or so: 2^(x log2 e) by the exponent's bits and a polynomial, good to 2e-7. Written
 * out because the library's does not vectorise. */
static inline float
fast_exp (float x)
{
  union {
    int i;
    float f;
  } two_to_n;
  x = x < -80 ? -80 : x;
  float z = x * 1.44269504f, n = (float)(int)(z - 0.5f), r = (z - n) * 0.693147181f;
  float p = 1 + r * (1 + r * (0.5f + r * (0.166666667f + r * (0.0416666667f + r * 0.00833333f))));
  two_to_n.i = ((int)n + 127) << 23;
  return p * two_to_n.f;
}

void
op_softmax (int n, float scale, float *p)
{
  for (int r = 0; r < n; r++, p += n) {
    float top = p[0], sum = 0;
    int seen = r + 1; /* causal */
    for (int i = 0; i < seen; i++)
      top = p[i] > top ? p[i] : top;
    for (int i = 0; i < n; i++) { /* all of the row, as a masked kernel does */
      float e = i < seen ? fast_exp ((p[i] - top) * scale) : 0;
      p[i] = e;
      sum += e;
    }
    sum = 1 / sum;
    for (int i = 0; i < n; i++)
      p[i] *= sum;
  }
}

void
op_softmax_back (int n, float scale, const float *p, float *dp)
{
  for (int r = 0; r < n; r++, p += n, dp += n) {
    float dot = 0;
    for (int i = 0; i < n; i++)
      dot += p[i] * dp[i];
    for (int i = 0; i < n; i++)
      dp[i] = p[i] * (dp[i] - dot) * scale;
  }
}

void
op_relu (long n, float *x)
{
  for (long i = 0; i < n; i++)
    x[i] = x[i] > 0 ? x[i] : 0;
}

void
op_relu_back (long n, const float *y, float *dy)
{
  for (long i = 0; i < n; i++)
    dy[i] = y[i] > 0 ? dy[i] : 0;
}

void
op_add (long n, const float *a, const float *b, float *y)
{
  for (long i = 0; i < n; i++)
    y[i] = a[i] + b[i];
}

void
op_triad (long n, const float *a, const float *b, float *y)
{
  for (long i = 0; i < n; i++)
    y[i] = a[i] + 3 * b[i];
}

void
op_copy (int rows, int width, const float *from, int from_stride, float *to, int to_stride)
{
  for (int r = 0; r < rows; r++)
    memcpy (to + (long)r * to_stride, from + (long)r * from_stride, (size_t)width * sizeof *to);
}

double
op_loss (int rows, int vocab, float *logits, const int *target, float *inv)
{
  double loss = 0;
  for (int r = 0; r < rows; r++, logits += vocab) {
    float top = logits[0], sum = 0, at = logits[target[r]];
    for (int i = 0; i < vocab; i++)
      top = logits[i] > top ? logits[i] : top;
    for (int i = 0; i < vocab; i++) {
      float e = fast_exp (logits[i] - top);
      logits[i] = e;
      sum += e;
    }
    inv[r] = 1 / sum;
    loss += logf (sum) - (at - top);
  }
  return loss;
}

void
op_loss_back (int rows, int vocab, float *logits, const int *target, const float *inv, float scale)
{
  for (int r = 0; r < rows; r++, logits += vocab) {
    float f = inv[r] * scale;
    for (int i = 0; i < vocab; i++)
      logits[i] *= f;
    logits[target[r]] -= scale;
  }
}

void
op_embed (int rows, int width, const int *token, const float *table, float *y)
{
  for (int r = 0; r < rows; r++)
    memcpy (y + (long)r * width, table + (long)token[r] * width, (size_t)width * sizeof *y);
}

void
op_embed_back (int rows, int width, const int *token, const float *dy, float *table)
{
  for (int r = 0; r < rows; r++, dy += width) {
    float *t = table + (long)token[r] * width;
    for (int i = 0; i < width; i++)
      t[i] += dy[i];
  }
}

double
op_square_sum (long n, const float *g)
{
  double total = 0;
  for (long at = 0; at < n; at += 4096) { /* blocks keep fp32 sums short */
    long end = at + 4096 < n ? at + 4096 : n;
    float sum = 0;
    for (long i = at; i < end; i++)
      sum += g[i] * g[i];
    total += sum;
  }
  return total;
}

void
op_adam (long n, float lr, float scale, int step, float *w, float *g, float *m, float *v)
{
  const float b1 = 0.9f, b2 = 0.95f;
  float c1 = 1 / (1 - powf (b1, (float)step)), c2 = 1 / (1 - powf (b2, (float)step));
  for (long i = 0; i < n; i++) {
    float d = g[i] * scale;
    m[i] = b1 * m[i] + (1 - b1) * d;
    v[i] = b2 * v[i] + (1 - b2) * d * d;
    w[i] -= lr * m[i] * c1 / (sqrtf (v[i] * c2) + 1e-8f);
    g[i] = 0;
  }
}

/* Eight chains of vectors, so that latency is hidden; each in a variable of its own, which the
 * compiler keeps in a register. */
double
op_peak_flops (double seconds)
{
#ifdef __AVX512F__
  enum { LANES = 16, CHAINS = 8, ROUNDS = 20000 };
#else
  enum { LANES = 8, CHAINS = 8, ROUNDS = 20000 };
#endif
  typedef float vec __attribute__ ((vector_size (LANES * sizeof (float))));
  vec a, b, c0, c1, c2, c3, c4, c5, c6, c7;
  double best = 0, end = op_now_s () + seconds;
  volatile float sink = 0;
  for (int i = 0; i < LANES; i++) {
    a[i] = 0.9999f;
    b[i] = 1e-4f;
  }
  c0 = c1 = c2 = c3 = c4 = c5 = c6 = c7 = b;
  while (op_now_s () < end) {
    double t = op_now_s ();
    for (int r = 0; r < ROUNDS; r++) {
      c0 = c0 * a + b;
      c1 = c1 * a + b;
      c2 = c2 * a + b;
      c3 = c3 * a + b;
      c4 = c4 * a + b;
      c5 = c5 * a + b;
      c6 = c6 * a + b;
      c7 = c7 * a + b;
    }
    t = op_now_s () - t;
    double rate = 2.0 * LANES * CHAINS * ROUNDS / t;
    best = rate > best ? rate : best;
    sink += c0[0] + c1[0] + c2[0] + c3[0] + c4[0] + c5[0] + c6[0] + c7[0];
  }
  (void)sink;
  return best;
}
