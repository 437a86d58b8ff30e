/* cal_kernels: norms, softmax, activation, cross entropy, Adam, embedding, casts and adds, over
 * sizes of layers. usage: cal_kernels [--minutes M] [--gpu I] Each kernel is checked against the
 * host, in double, on a small case first. */
#include "cal_kernels.cuh"

#include <cmath>

static int
threads_for (int width)
{
  return std::min (1024, std::max (128, (width / 8 + 31) / 32 * 32));
}

/* A device buffer of a small case, and what the host has of it. */
template <class T> struct Pair {
  T *d;
  std::vector<T> h;

  explicit Pair (size_t n, unsigned seed) : d (device_random<T> (n, seed)), h (n)
  {
    pull ();
  }

  ~Pair ()
  {
    CHECK (cudaFree (d));
  }

  void
  pull ()
  {
    CHECK (cudaMemcpy (h.data (), d, h.size () * sizeof (T), cudaMemcpyDeviceToHost));
  }

  double
  operator[] (int i) const
  {
    return (double)(float)h[(size_t)i];
  }
};

/* Within tol, or within tol of its size. */
static void
expect (double got, double want, double tol, const char *what)
{
  if (!(std::fabs (got - want) <= tol * std::max (1.0, std::fabs (want)))) {
    fprintf (stderr, "cal_kernels: %s is wrong: %g for %g\n", what, got, want);
    exit (1);
  }
}

enum { ROWS = 4, WIDTH = 256 };

static void
check_norm ()
{
  Pair<bf16> x (ROWS * WIDTH, 1), g (WIDTH, 2), y (ROWS * WIDTH, 3), dy (ROWS * WIDTH, 4),
      dx (ROWS * WIDTH, 5);
  Pair<float> inv (ROWS, 6);
  k_norm<<<ROWS, 128>>> (x.d, g.d, y.d, inv.d, WIDTH);
  k_norm_back<<<ROWS, 128>>> (x.d, g.d, inv.d, dy.d, dx.d, WIDTH);
  y.pull ();
  dx.pull ();
  for (int r = 0; r < ROWS; r++) {
    double sum = 0, dot = 0;
    for (int i = r * WIDTH; i < (r + 1) * WIDTH; i++) {
      sum += x[i] * x[i];
      dot += x[i] * dy[i] * g[i % WIDTH];
    }
    double f = 1 / std::sqrt (sum / WIDTH + 1e-6);
    for (int i = r * WIDTH; i < (r + 1) * WIDTH; i++) {
      expect (y[i], x[i] * f * g[i % WIDTH], 0.02, "the norm");
      expect (dx[i], dy[i] * g[i % WIDTH] * f - x[i] * dot * f * f * f / WIDTH, 0.02,
              "the gradient of the norm");
    }
  }
}

/* A causal row r of n sums to 1 and has nothing beyond r. */
static void
check_softmax ()
{
  enum { N = 64 };
  const float scale = 0.7f;
  Pair<bf16> s (N * N, 1), p (N * N, 1), dp (N * N, 2), ds (N * N, 2);
  k_softmax<<<N, 128>>> (p.d, N, scale);
  k_softmax_back<<<N, 128>>> (p.d, ds.d, N, scale);
  p.pull ();
  ds.pull ();
  for (int r = 0; r < N; r++) {
    double sum = 0, dot = 0;
    for (int i = 0; i <= r; i++)
      sum += std::exp (scale * s[r * N + i]);
    for (int i = 0; i < N; i++) {
      expect (p[r * N + i], i <= r ? std::exp (scale * s[r * N + i]) / sum : 0, 0.01,
              "the softmax");
      dot += p[r * N + i] * dp[r * N + i];
    }
    for (int i = 0; i < N; i++)
      expect (ds[r * N + i], p[r * N + i] * (dp[r * N + i] - dot) * scale, 0.01,
              "the gradient of the softmax");
  }
}

static void
check_loss ()
{
  const float scale = 0.25f;
  Pair<bf16> x (ROWS * WIDTH, 1), dx (ROWS * WIDTH, 1);
  Pair<float> loss (ROWS, 2);
  const int target[ROWS] = {0, 255, 17, 128};
  int *at;
  CHECK (cudaMalloc (&at, sizeof target));
  CHECK (cudaMemcpy (at, target, sizeof target, cudaMemcpyHostToDevice));
  k_loss<<<ROWS, 128>>> (dx.d, at, loss.d, WIDTH, scale);
  dx.pull ();
  loss.pull ();
  for (int r = 0; r < ROWS; r++) {
    double sum = 0;
    for (int i = 0; i < WIDTH; i++)
      sum += std::exp (x[r * WIDTH + i]);
    expect (loss[r], std::log (sum) - x[r * WIDTH + target[r]], 1e-3, "the cross entropy");
    for (int i = 0; i < WIDTH; i++)
      expect (dx[r * WIDTH + i],
              scale * (std::exp (x[r * WIDTH + i]) / sum - (i == target[r] ? 1 : 0)), 2e-3,
              "the gradient of the cross entropy");
  }
  CHECK (cudaFree (at));
}

static void
check_elementwise ()
{
  enum { N = 2048 };
  Pair<bf16> a (N, 1), b (N, 2), sum (N, 3), glu (N, 3), gelu (N, 1);
  Pair<unsigned char> narrow (N, 4);
  Pair<bf16> picked (2 * WIDTH, 5);
  const int token[2] = {3, 1};
  int *at;
  CHECK (cudaMalloc (&at, sizeof token));
  CHECK (cudaMemcpy (at, token, sizeof token, cudaMemcpyHostToDevice));
  k_add<<<2, 256>>> (a.d, b.d, sum.d, N);
  k_swiglu<<<2, 256>>> (a.d, b.d, glu.d, N);
  k_gelu<<<2, 256>>> (gelu.d, N);
  k_cast_fp8<<<2, 256>>> (a.d, (__nv_fp8_e4m3 *)narrow.d, N);
  k_embed<<<2, 128>>> (at, a.d, picked.d, WIDTH);
  for (Pair<bf16> *p : {&sum, &glu, &gelu, &picked})
    p->pull ();
  narrow.pull ();
  for (int i = 0; i < N; i++) {
    __nv_fp8_e4m3 e;
    e.__x = narrow.h[(size_t)i];
    expect (sum[i], a[i] + b[i], 0.01, "the sum");
    expect (glu[i], a[i] / (1 + std::exp (-a[i])) * b[i], 0.01, "SwiGLU");
    expect (gelu[i],
            0.5 * a[i] * (1 + std::tanh (0.7978845608 * (a[i] + 0.044715 * std::pow (a[i], 3)))),
            0.01, "GELU");
    expect ((double)(float)e, a[i], 0.04, "the cast to 8 bits"); /* half of 2^-3, of up to 1 */
  }
  for (int i = 0; i < 2 * WIDTH; i++)
    expect (picked[i], a[token[i / WIDTH] * WIDTH + i % WIDTH], 0, "the embedding");
  CHECK (cudaFree (at));
}

static void
check_adam ()
{
  enum { N = 1024 };
  const float lr = 0.01f, c1 = 1.2f, c2 = 1.1f;
  Pair<float> w (N, 1), g (N, 2), m (N, 3), v (N, 4), new_w (N, 1), new_g (N, 2), new_m (N, 3),
      new_v (N, 4);
  Pair<bf16> copy (N, 5);
  for (float &x : v.h) /* second moments are not negative */
    x = std::fabs (x);
  CHECK (cudaMemcpy (new_v.d, v.h.data (), N * sizeof (float), cudaMemcpyHostToDevice));
  k_adam<<<1, 256>>> (new_w.d, new_g.d, new_m.d, new_v.d, copy.d, N, lr, c1, c2);
  for (Pair<float> *p : {&new_w, &new_g, &new_m, &new_v})
    p->pull ();
  copy.pull ();
  for (int i = 0; i < N; i++) {
    double mm = 0.9 * m[i] + 0.1 * g[i], vv = 0.95 * v[i] + 0.05 * g[i] * g[i];
    double ww = w[i] - lr * mm * c1 / (std::sqrt (vv * c2) + 1e-8);
    expect (new_m[i], mm, 1e-5, "the first moment of Adam");
    expect (new_v[i], vv, 1e-5, "the second moment of Adam");
    expect (new_w[i], ww, 1e-4, "the weight of Adam");
    expect (copy[i], ww, 0.01, "the 16-bit weight of Adam");
    expect (new_g[i], 0, 0, "the gradient after Adam");
  }
}

template <class F>
static void
sample (Cal &c, const char *op, double bytes, F run)
{
  if (c.spent ()) {
    c.left_out++;
    return;
  }
  Timing t = c.burst (run, 0.02, 40);
  CHECK (cudaGetLastError ());
  c.head ("memory");
  printf (", \"op\": \"%s\", \"bytes\": %.0f", op, bytes);
  c.tail (t);
}

struct Buffers {
  bf16 *a, *b, *y;
  float *f[4], *inv, *loss;
  int *token;
  size_t n; /* elements of the 16-bit ones */
};

static void
sizes (Cal &c, Buffers &q, int rows, int width)
{
  size_t n = (size_t)rows * width;
  int blocks = c.prop.multiProcessorCount * 8, t = threads_for (width);
  double e = (double)n;
  sample (c, "norm_fwd", 4 * e,
          [&] (cudaStream_t s) { k_norm<<<rows, t, 0, s>>> (q.a, q.b, q.y, q.inv, width); });
  sample (c, "norm_bwd", 6 * e, [&] (cudaStream_t s) {
    k_norm_back<<<rows, t, 0, s>>> (q.a, q.b, q.inv, q.y, q.y, width);
  });
  sample (c, "elementwise", 6 * e,
          [&] (cudaStream_t s) { k_add<<<blocks, 256, 0, s>>> (q.a, q.b, q.y, n); });
  sample (c, "elementwise", 6 * 2 * e,
          [&] (cudaStream_t s) { k_swiglu<<<blocks, 256, 0, s>>> (q.a, q.b, q.y, 2 * n); });
  sample (c, "elementwise", 4 * 4 * e,
          [&] (cudaStream_t s) { k_gelu<<<blocks, 256, 0, s>>> (q.a, 4 * n); });
  sample (c, "cast_fp8", 3 * e, [&] (cudaStream_t s) {
    k_cast_fp8<<<blocks, 256, 0, s>>> (q.a, (__nv_fp8_e4m3 *)q.y, n);
  });
  sample (c, "embedding", 4 * e,
          [&] (cudaStream_t s) { k_embed<<<rows, 128, 0, s>>> (q.token, q.a, q.y, width); });
}

static void
wide (Cal &c, Buffers &q)
{
  for (int seq : {1024, 2048, 4096}) {
    int rows = 8 * seq; /* 8 heads */
    double e = (double)rows * seq;
    if (e > (double)q.n)
      continue;
    sample (c, "softmax_fwd", 4 * e, [&] (cudaStream_t s) {
      k_softmax<<<rows, threads_for (seq), 0, s>>> (q.a, seq, 0.1f);
    });
    sample (c, "softmax_bwd", 6 * e, [&] (cudaStream_t s) {
      k_softmax_back<<<rows, threads_for (seq), 0, s>>> (q.a, q.b, seq, 0.1f);
    });
  }
  for (int vocab : {32000, 65536, 131072})
    for (int rows : {1024, 2048}) {
      double e = (double)rows * vocab;
      if (e <= (double)q.n)
        sample (c, "xent", 8 * e, [&] (cudaStream_t s) {
          k_loss<<<rows, 1024, 0, s>>> (q.y, q.token, q.loss, vocab, 1e-4f);
        });
    }
  for (size_t n = 4u << 20; n <= q.n / 4; n *= 4)
    sample (c, "optimizer", 34.0 * (double)n, [&] (cudaStream_t s) {
      k_adam<<<c.prop.multiProcessorCount * 8, 256, 0, s>>> (q.f[0], q.f[1], q.f[2], q.f[3], q.a, n,
                                                             1e-4f, 1.1f, 1.1f);
    });
}

int
main (int argc, char **argv)
{
  Cal c (argc, argv, 0.4);
  Buffers q{};
  check_norm ();
  check_softmax ();
  check_loss ();
  check_elementwise ();
  check_adam ();
  q.n = std::min ((size_t)1 << 29, c.prop.totalGlobalMem / 64);
  q.a = device_random<bf16> (q.n, 1);
  q.b = device_random<bf16> (q.n, 2);
  q.y = device_random<bf16> (q.n, 3);
  for (int i = 0; i < 4; i++)
    q.f[i] = device_random<float> (q.n / 4, (unsigned)i);
  CHECK (cudaMemset (q.f[3], 0, q.n)); /* second moments are not negative */
  q.inv = device_random<float> (1 << 20, 7);
  q.loss = device_random<float> (1 << 20, 8);
  std::vector<int> token (1 << 16);
  for (size_t i = 0; i < token.size (); i++)
    token[i] = (int)(i * 2654435761u % std::min ((size_t)16384, q.n / 12288)); /* of the widest */
  CHECK (cudaMalloc (&q.token, token.size () * sizeof (int)));
  CHECK (cudaMemcpy (q.token, token.data (), token.size () * sizeof (int), cudaMemcpyHostToDevice));
  for (int rows : {4096, 8192, 2048, 16384})
    for (int width : {4096, 8192, 2048, 12288})
      if ((size_t)rows * width * 4 <= q.n)
        sizes (c, q, rows, width);
  wide (c, q);
  c.end ();
  return 0;
}
