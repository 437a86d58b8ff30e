/* cal_kernels: norms, softmax, activation, cross entropy, Adam, embedding, casts and adds, over
 * sizes of layers. usage: cal_kernels [--minutes M] [--gpu I] Norm, softmax and Adam are checked
 * against the host on a small case first. */
#include "cal_kernels.cuh"

#include <cmath>

static int
threads_for (int width)
{
  return std::min (1024, std::max (128, (width / 8 + 31) / 32 * 32));
}

static void
fail_if (bool bad, const char *what)
{
  if (bad) {
    fprintf (stderr, "cal_kernels: %s is wrong\n", what);
    exit (1);
  }
}

static void
check ()
{
  const int rows = 4, width = 256;
  bf16 *x = device_random<bf16> (rows * width, 1), *g = device_random<bf16> (width, 2), *y;
  float *inv;
  std::vector<bf16> hx (rows * width), hg (width), hy (rows * width);
  CHECK (cudaMalloc (&y, sizeof (bf16) * rows * width));
  CHECK (cudaMalloc (&inv, sizeof (float) * rows));
  k_norm<<<rows, 128>>> (x, g, y, inv, width);
  CHECK (cudaMemcpy (hx.data (), x, sizeof (bf16) * rows * width, cudaMemcpyDeviceToHost));
  CHECK (cudaMemcpy (hg.data (), g, sizeof (bf16) * width, cudaMemcpyDeviceToHost));
  CHECK (cudaMemcpy (hy.data (), y, sizeof (bf16) * rows * width, cudaMemcpyDeviceToHost));
  for (int r = 0; r < rows; r++) {
    double sum = 0;
    for (int i = 0; i < width; i++)
      sum += std::pow ((double)(float)hx[r * width + i], 2);
    double f = 1 / std::sqrt (sum / width + 1e-6);
    for (int i = 0; i < width; i++)
      fail_if (std::fabs ((float)hx[r * width + i] * f * (float)hg[i] -
                          (double)(float)hy[r * width + i]) > 0.03,
               "the norm");
  }
  /* a causal row r of n sums to 1 and has nothing beyond r */
  bf16 *p = device_random<bf16> (64 * 64, 3);
  std::vector<bf16> hp (64 * 64);
  k_softmax<<<64, 128>>> (p, 64, 1);
  CHECK (cudaMemcpy (hp.data (), p, sizeof (bf16) * 64 * 64, cudaMemcpyDeviceToHost));
  for (int r = 0; r < 64; r++) {
    double sum = 0;
    for (int i = 0; i < 64; i++) {
      sum += (float)hp[r * 64 + i];
      fail_if (i > r && (float)hp[r * 64 + i] != 0, "the mask of the softmax");
    }
    fail_if (std::fabs (sum - 1) > 0.02, "the softmax");
  }
  for (void *q : {(void *)x, (void *)g, (void *)y, (void *)inv, (void *)p})
    CHECK (cudaFree (q));
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
    k_norm_back<<<rows, t, 0, s>>> (q.a, q.b, q.inv, q.y, q.b, width);
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
  check ();
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
    token[i] = (int)(i * 2654435761u % 16384);
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
