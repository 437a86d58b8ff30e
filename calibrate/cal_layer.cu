/* cal_layer: a real training step on one GPU, to be predicted: the transformer that the simulator
 * counts (RMS norm, causal attention made of batched GEMMs and a softmax kernel, ReLU MLP, untied
 * head, Adam) in bf16 with fp32 gradients and master weights, on cuBLASLt and the kernels of
 * cal_kernels.cuh. usage: cal_layer [--layers L] [--hidden H] [--heads A] [--seq S] [--mbs B]
 * [--vocab V] [--steps N] Prints one JSON line with the median step. The loss must fall, else the
 * program fails. */
#include "cal_kernels.cuh"

#include <cmath>
#include <cublasLt.h>

#define LT(call)                                                                                   \
  do {                                                                                             \
    cublasStatus_t s_ = (call);                                                                    \
    if (s_ != CUBLAS_STATUS_SUCCESS) {                                                             \
      fprintf (stderr, "%s:%d: %s: cuBLASLt status %d\n", __FILE__, __LINE__, #call, (int)s_);     \
      exit (1);                                                                                    \
    }                                                                                              \
  } while (0)

/* Row-major C[m,n] (+)= op (A) op (B), batch times, by a plan that is kept for its shape. */
struct Plan {
  int64_t key[16];
  cublasLtMatmulDesc_t op;
  cublasLtMatrixLayout_t a, b, c;
  cublasLtMatmulAlgo_t algo;
};

struct Blas {
  cublasLtHandle_t lt;
  void *workspace;
  size_t bytes = 64u << 20;
  std::vector<Plan> plans;
  cudaStream_t stream;
};

struct Mat {
  void *p;
  int64_t ld, step; /* row length in memory; distance of two of a batch */
  bool transposed;
};

static cublasLtMatrixLayout_t
layout (cudaDataType_t type, int64_t rows, int64_t cols, int64_t ld, int64_t batch, int64_t step)
{
  cublasLtMatrixLayout_t l;
  int32_t n = (int32_t)batch;
  LT (cublasLtMatrixLayoutCreate (&l, type, (uint64_t)rows, (uint64_t)cols, ld));
  LT (cublasLtMatrixLayoutSetAttribute (l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n, sizeof n));
  LT (cublasLtMatrixLayoutSetAttribute (l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                        sizeof step));
  return l;
}

static Plan &
plan_for (Blas &bl, const int64_t *key, int64_t m, int64_t n, int64_t k, int64_t batch,
          const Mat &a, const Mat &b, const Mat &c, bool fp32)
{
  for (Plan &p : bl.plans)
    if (memcmp (p.key, key, sizeof p.key) == 0)
      return p;
  Plan p{};
  cublasOperation_t ta = a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                    tb = b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  cudaDataType_t out = fp32 ? CUDA_R_32F : CUDA_R_16BF;
  memcpy (p.key, key, sizeof p.key);
  LT (cublasLtMatmulDescCreate (&p.op, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  LT (cublasLtMatmulDescSetAttribute (p.op, CUBLASLT_MATMUL_DESC_TRANSA, &tb, sizeof tb));
  LT (cublasLtMatmulDescSetAttribute (p.op, CUBLASLT_MATMUL_DESC_TRANSB, &ta, sizeof ta));
  /* column-major: a row-major [r,c] is [c,r] there */
  p.b = b.transposed ? layout (CUDA_R_16BF, k, n, b.ld, batch, b.step)
                     : layout (CUDA_R_16BF, n, k, b.ld, batch, b.step);
  p.a = a.transposed ? layout (CUDA_R_16BF, m, k, a.ld, batch, a.step)
                     : layout (CUDA_R_16BF, k, m, a.ld, batch, a.step);
  p.c = layout (out, n, m, c.ld, batch, c.step);
  cublasLtMatmulPreference_t pref;
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  LT (cublasLtMatmulPreferenceCreate (&pref));
  LT (cublasLtMatmulPreferenceSetAttribute (pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                            &bl.bytes, sizeof bl.bytes));
  LT (cublasLtMatmulAlgoGetHeuristic (bl.lt, p.op, p.b, p.a, p.c, p.c, pref, 1, &found, &count));
  LT (cublasLtMatmulPreferenceDestroy (pref));
  p.algo = found.algo;
  bl.plans.push_back (p);
  return bl.plans.back ();
}

/* beta 1 and an fp32 result: a weight gradient that adds up. */
static void
gemm (Blas &bl, int64_t m, int64_t n, int64_t k, int64_t batch, Mat a, Mat b, Mat c,
      bool accumulate = false)
{
  const float one = 1, beta = accumulate ? 1 : 0;
  const int64_t key[16] = {m,      n,    k,      batch,        a.ld,         a.step,    b.ld,
                           b.step, c.ld, c.step, a.transposed, b.transposed, accumulate};
  Plan &p = plan_for (bl, key, m, n, k, batch, a, b, c, accumulate);
  LT (cublasLtMatmul (bl.lt, p.op, &one, b.p, p.b, a.p, p.a, &beta, c.p, p.c, c.p, p.c, &p.algo,
                      bl.workspace, bl.bytes, bl.stream));
}

__global__ static void
k_relu (bf16 *x, size_t n)
{
  Vec8 *v = (Vec8 *)x;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n / 8;
       i += (size_t)gridDim.x * blockDim.x) {
    Vec8 a = v[i];
    for (int j = 0; j < 8; j++)
      a.v[j] = (float)a.v[j] > 0 ? a.v[j] : (bf16)0.0f;
    v[i] = a;
  }
}

/* Rows of width values between strides: the copies that put heads together and take them apart. */
__global__ static void
k_rows (const bf16 *from, int64_t from_ld, bf16 *to, int64_t to_ld, int width, int64_t rows)
{
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < rows * (width / 8);
       i += (int64_t)gridDim.x * blockDim.x) {
    int64_t r = i / (width / 8), c = i % (width / 8);
    ((Vec8 *)(to + r * to_ld))[c] = ((const Vec8 *)(from + r * from_ld))[c];
  }
}

__global__ static void
k_embed_back (const int *token, const bf16 *dy, bf16 *table, int width)
{
  bf16 *to = table + (size_t)token[blockIdx.x] * width;
  for (int i = threadIdx.x; i < width; i += blockDim.x)
    atomicAdd (&to[i], dy[(size_t)blockIdx.x * width + i]);
}

__global__ static void
k_accumulate (const bf16 *x, float *g, size_t n)
{
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
       i += (size_t)gridDim.x * blockDim.x)
    g[i] += (float)x[i];
}

/* The gain of a norm in fp32, from dy * x / rms summed over rows (a block a column group). */
__global__ static void
k_gain_back (const bf16 *x, const float *inv, const bf16 *dy, float *dg, int rows, int width)
{
  int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  float sum = 0;
  for (int r = (int)blockIdx.y; c < width && r < rows; r += (int)gridDim.y)
    sum += (float)x[(size_t)r * width + c] * inv[r] * (float)dy[(size_t)r * width + c];
  if (c < width)
    atomicAdd (&dg[c], sum);
}

struct Layer {
  size_t g1, wqkv, wo, g2, w1, w2;
};

struct Saved {
  bf16 *x, *n1, *qkv, *p, *ctx, *x2, *n2, *act;
  float *inv1, *inv2;
};

struct Net {
  int layers = 4, hidden = 4096, heads = 32, ffn = 0, seq = 2048, mbs = 2, vocab = 32000,
      steps = 10;
  int tokens = 0, sms = 0;
  size_t n_params = 0, table = 0, gf = 0, head = 0;
  std::vector<Layer> layer;
  std::vector<Saved> saved;
  float *w, *g, *m, *v, *loss, *inv, *norm_sum;
  bf16 *half, *out, *norm, *logits, *t1, *t2, *t3, *t4, *tqkv, *tact, *tp, *hctx, *hd[3], *dtable;
  int *token, *target;
  Blas bl;
  cudaStream_t s;
};

static size_t
place (Net &t, size_t n)
{
  size_t at = t.n_params;
  t.n_params += n;
  return at;
}

template <class T>
static T *
room (size_t n)
{
  T *p;
  CHECK (cudaMalloc (&p, n * sizeof (T)));
  CHECK (cudaMemset (p, 0, n * sizeof (T)));
  return p;
}

__global__ static void
k_init (float *w, bf16 *half, size_t n, float size, float value, unsigned seed)
{
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
       i += (size_t)gridDim.x * blockDim.x) {
    unsigned x = (unsigned)i * 2654435761u + seed;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    w[i] = value + size * ((float)(x & 0xffff) / 32768.0f - 1);
    half[i] = (bf16)w[i];
  }
}

static void
init (Net &t)
{
  size_t h = (size_t)t.hidden, f = (size_t)t.ffn, table = (size_t)t.vocab * h;
  size_t n = (size_t)t.tokens * h, scores = (size_t)t.mbs * t.heads * t.seq * t.seq;
  t.table = place (t, table);
  for (int i = 0; i < t.layers; i++) {
    Layer l;
    l.g1 = place (t, h);
    l.wqkv = place (t, 3 * h * h);
    l.wo = place (t, h * h);
    l.g2 = place (t, h);
    l.w1 = place (t, f * h);
    l.w2 = place (t, h * f);
    t.layer.push_back (l);
    t.saved.push_back ({room<bf16> (n), room<bf16> (n), room<bf16> (3 * n), room<bf16> (scores),
                        room<bf16> (n), room<bf16> (n), room<bf16> (n),
                        room<bf16> ((size_t)t.tokens * f), room<float> ((size_t)t.tokens),
                        room<float> ((size_t)t.tokens)});
  }
  t.gf = place (t, h);
  t.head = place (t, table);
  for (float **p : {&t.w, &t.g, &t.m, &t.v})
    *p = room<float> (t.n_params);
  t.half = room<bf16> (t.n_params);
  k_init<<<1024, 256>>> (t.w, t.half, t.n_params, 0.02f, 0, 5);
  for (const Layer &l : t.layer)
    for (size_t at : {l.g1, l.g2})
      k_init<<<16, 256>>> (t.w + at, t.half + at, h, 0, 1, 0);
  k_init<<<16, 256>>> (t.w + t.gf, t.half + t.gf, h, 0, 1, 0);
  for (bf16 **p :
       {&t.out, &t.norm, &t.t1, &t.t2, &t.t3, &t.t4, &t.hctx, &t.hd[0], &t.hd[1], &t.hd[2]})
    *p = room<bf16> (n);
  t.tqkv = room<bf16> (3 * n);
  t.tact = room<bf16> ((size_t)t.tokens * f);
  t.tp = room<bf16> (scores);
  t.logits = room<bf16> ((size_t)t.tokens * t.vocab);
  t.dtable = room<bf16> (table);
  t.loss = room<float> ((size_t)t.tokens);
  t.inv = room<float> ((size_t)t.tokens);
  t.norm_sum = room<float> (1);
  t.token = room<int> ((size_t)t.tokens);
  t.target = room<int> ((size_t)t.tokens);
  std::vector<int> a ((size_t)t.tokens), b ((size_t)t.tokens);
  for (int i = 0, at = 1; i < t.tokens; i++) { /* the next token follows from this one */
    a[(size_t)i] = at;
    at = (int)((at * 7ll + 3) % t.vocab);
    b[(size_t)i] = at;
  }
  CHECK (cudaMemcpy (t.token, a.data (), a.size () * sizeof (int), cudaMemcpyHostToDevice));
  CHECK (cudaMemcpy (t.target, b.data (), b.size () * sizeof (int), cudaMemcpyHostToDevice));
  LT (cublasLtCreate (&t.bl.lt));
  CHECK (cudaMalloc (&t.bl.workspace, t.bl.bytes));
  t.bl.stream = t.s;
}

static int
threads (int width)
{
  return std::min (1024, std::max (128, (width / 8 + 31) / 32 * 32));
}

static void
linear (Net &t, int64_t rows, int64_t out, int64_t in, bf16 *x, size_t w, bf16 *y)
{
  gemm (t.bl, rows, out, in, 1, {x, in, 0, false}, {t.half + w, in, 0, true}, {y, out, 0, false});
}

static void
dgrad (Net &t, int64_t rows, int64_t out, int64_t in, bf16 *dy, size_t w, bf16 *dx)
{
  gemm (t.bl, rows, in, out, 1, {dy, out, 0, false}, {t.half + w, in, 0, false},
        {dx, in, 0, false});
}

static void
wgrad (Net &t, int64_t rows, int64_t out, int64_t in, bf16 *dy, bf16 *x, size_t w)
{
  gemm (t.bl, out, in, rows, 1, {dy, out, 0, true}, {x, in, 0, false}, {t.g + w, in, 0, false},
        true);
}

static void
norm (Net &t, bf16 *x, size_t g, bf16 *y, float *inv)
{
  k_norm<<<t.tokens, threads (t.hidden), 0, t.s>>> (x, t.half + g, y, inv, t.hidden);
}

static void
norm_back (Net &t, bf16 *x, size_t g, float *inv, bf16 *dy, bf16 *dx)
{
  dim3 grid ((unsigned)(t.hidden + 255) / 256, 64);
  k_norm_back<<<t.tokens, threads (t.hidden), 0, t.s>>> (x, t.half + g, inv, dy, dx, t.hidden);
  k_gain_back<<<grid, 256, 0, t.s>>> (x, inv, dy, t.g + g, t.tokens, t.hidden);
}

static void
add (Net &t, bf16 *a, bf16 *b, bf16 *y)
{
  k_add<<<t.sms * 8, 256, 0, t.s>>> (a, b, y, (size_t)t.tokens * t.hidden);
}

/* A sequence at a time: its heads are a batch with a stride of the head's width. */
static void
attention_forward (Net &t, Saved &sv)
{
  int64_t s = t.seq, h = t.hidden, a = t.heads, d = h / a;
  float scale = 1 / std::sqrt ((float)d);
  for (int64_t b = 0; b < t.mbs; b++) {
    bf16 *q = sv.qkv + b * s * 3 * h, *p = sv.p + b * a * s * s;
    gemm (t.bl, s, s, d, a, {q, 3 * h, d, false}, {q + h, 3 * h, d, true}, {p, s, s * s, false});
  }
  k_softmax<<<(unsigned)(t.mbs * a * s), threads (t.seq), 0, t.s>>> (sv.p, t.seq, scale);
  for (int64_t b = 0; b < t.mbs; b++) {
    bf16 *q = sv.qkv + b * s * 3 * h, *p = sv.p + b * a * s * s;
    gemm (t.bl, s, d, s, a, {p, s, s * s, false}, {q + 2 * h, 3 * h, d, false},
          {t.hctx + b * s * h, h, d, false});
  }
  k_rows<<<t.sms * 8, 256, 0, t.s>>> (t.hctx, h, sv.ctx, h, t.hidden, t.tokens);
}

static void
attention_backward (Net &t, Saved &sv, bf16 *dctx, bf16 *dqkv)
{
  int64_t s = t.seq, h = t.hidden, a = t.heads, d = h / a;
  float scale = 1 / std::sqrt ((float)d);
  k_rows<<<t.sms * 8, 256, 0, t.s>>> (dctx, h, t.hctx, h, t.hidden, t.tokens);
  for (int64_t b = 0; b < t.mbs; b++) {
    bf16 *q = sv.qkv + b * s * 3 * h, *p = sv.p + b * a * s * s, *dp = t.tp + b * a * s * s;
    bf16 *dc = t.hctx + b * s * h;
    gemm (t.bl, s, s, d, a, {dc, h, d, false}, {q + 2 * h, 3 * h, d, true}, {dp, s, s * s, false});
    gemm (t.bl, s, d, s, a, {p, s, s * s, true}, {dc, h, d, false},
          {t.hd[2] + b * s * h, h, d, false});
  }
  k_softmax_back<<<(unsigned)(t.mbs * a * s), threads (t.seq), 0, t.s>>> (sv.p, t.tp, t.seq, scale);
  for (int64_t b = 0; b < t.mbs; b++) {
    bf16 *q = sv.qkv + b * s * 3 * h, *dp = t.tp + b * a * s * s;
    gemm (t.bl, s, d, s, a, {dp, s, s * s, false}, {q + h, 3 * h, d, false},
          {t.hd[0] + b * s * h, h, d, false});
    gemm (t.bl, s, d, s, a, {dp, s, s * s, true}, {q, 3 * h, d, false},
          {t.hd[1] + b * s * h, h, d, false});
  }
  for (int i = 0; i < 3; i++)
    k_rows<<<t.sms * 8, 256, 0, t.s>>> (t.hd[i], h, dqkv + i * h, 3 * h, t.hidden, t.tokens);
}

static void
layer_forward (Net &t, const Layer &l, Saved &sv, bf16 *y)
{
  int64_t T = t.tokens, h = t.hidden, f = t.ffn;
  norm (t, sv.x, l.g1, sv.n1, sv.inv1);
  linear (t, T, 3 * h, h, sv.n1, l.wqkv, sv.qkv);
  attention_forward (t, sv);
  linear (t, T, h, h, sv.ctx, l.wo, t.t1);
  add (t, sv.x, t.t1, sv.x2);
  norm (t, sv.x2, l.g2, sv.n2, sv.inv2);
  linear (t, T, f, h, sv.n2, l.w1, sv.act);
  k_relu<<<t.sms * 8, 256, 0, t.s>>> (sv.act, (size_t)(T * f));
  linear (t, T, h, f, sv.act, l.w2, t.t1);
  add (t, sv.x2, t.t1, y);
}

static void
layer_backward (Net &t, const Layer &l, Saved &sv, bf16 *dy)
{
  int64_t T = t.tokens, h = t.hidden, f = t.ffn;
  dgrad (t, T, h, f, dy, l.w2, t.tact);
  wgrad (t, T, h, f, dy, sv.act, l.w2);
  k_act_back<<<t.sms * 8, 256, 0, t.s>>> (sv.act, t.tact, (size_t)(T * f));
  dgrad (t, T, f, h, t.tact, l.w1, t.t1);
  wgrad (t, T, f, h, t.tact, sv.n2, l.w1);
  norm_back (t, sv.x2, l.g2, sv.inv2, t.t1, t.t2);
  add (t, t.t2, dy, t.t3);
  dgrad (t, T, h, h, t.t3, l.wo, t.t1);
  wgrad (t, T, h, h, t.t3, sv.ctx, l.wo);
  attention_backward (t, sv, t.t1, t.tqkv);
  dgrad (t, T, 3 * h, h, t.tqkv, l.wqkv, t.t1);
  wgrad (t, T, 3 * h, h, t.tqkv, sv.n1, l.wqkv);
  norm_back (t, sv.x, l.g1, sv.inv1, t.t1, t.t2);
  add (t, t.t2, t.t3, dy);
}

static void
step (Net &t, int number)
{
  int64_t T = t.tokens, h = t.hidden;
  size_t table = (size_t)t.vocab * t.hidden;
  k_embed<<<t.tokens, 256, 0, t.s>>> (t.token, t.half + t.table, t.saved[0].x, t.hidden);
  for (int i = 0; i < t.layers; i++)
    layer_forward (t, t.layer[(size_t)i], t.saved[(size_t)i],
                   i + 1 < t.layers ? t.saved[(size_t)i + 1].x : t.out);
  norm (t, t.out, t.gf, t.norm, t.inv);
  linear (t, T, t.vocab, h, t.norm, t.head, t.logits);
  k_loss<<<t.tokens, 1024, 0, t.s>>> (t.logits, t.target, t.loss, t.vocab, 1.0f / (float)t.tokens);
  dgrad (t, T, t.vocab, h, t.logits, t.head, t.t1);
  wgrad (t, T, t.vocab, h, t.logits, t.norm, t.head);
  norm_back (t, t.out, t.gf, t.inv, t.t1, t.t4);
  for (int i = t.layers; i-- > 0;)
    layer_backward (t, t.layer[(size_t)i], t.saved[(size_t)i], t.t4);
  CHECK (cudaMemsetAsync (t.dtable, 0, table * sizeof (bf16), t.s));
  k_embed_back<<<t.tokens, 256, 0, t.s>>> (t.token, t.t4, t.dtable, t.hidden);
  k_accumulate<<<t.sms * 8, 256, 0, t.s>>> (t.dtable, t.g + t.table, table);
  CHECK (cudaMemsetAsync (t.norm_sum, 0, sizeof (float), t.s));
  k_square_sum<<<t.sms * 4, 256, 0, t.s>>> (t.g, t.norm_sum, t.n_params);
  float c1 = 1 / (1 - std::pow (0.9f, (float)number)),
        c2 = 1 / (1 - std::pow (0.95f, (float)number));
  k_adam<<<t.sms * 8, 256, 0, t.s>>> (t.w, t.g, t.m, t.v, t.half, t.n_params, 1e-4f, c1, c2);
  CHECK (cudaGetLastError ());
}

static double
mean_loss (Net &t)
{
  std::vector<float> l ((size_t)t.tokens);
  double sum = 0;
  CHECK (cudaStreamSynchronize (t.s));
  CHECK (cudaMemcpy (l.data (), t.loss, l.size () * sizeof (float), cudaMemcpyDeviceToHost));
  for (float x : l)
    sum += x;
  return sum / t.tokens;
}

int
main (int argc, char **argv)
{
  Cal c (argc, argv, 2);
  Net t;
  struct {
    const char *name;
    int *value;
  } options[] = {{"--layers", &t.layers}, {"--hidden", &t.hidden}, {"--heads", &t.heads},
                 {"--seq", &t.seq},       {"--mbs", &t.mbs},       {"--vocab", &t.vocab},
                 {"--steps", &t.steps}};
  for (int i = 1; i + 1 < argc; i++)
    for (auto &o : options)
      if (strcmp (argv[i], o.name) == 0)
        *o.value = atoi (argv[i + 1]);
  if (t.layers < 1 || t.heads < 1 || t.hidden % (8 * t.heads) != 0 || t.seq % 8 != 0 ||
      t.vocab % 8 != 0 || t.mbs < 1 || t.steps < 1) {
    fprintf (stderr, "cal_layer: sizes that do not go together\n");
    return 2;
  }
  t.ffn = 4 * t.hidden;
  t.tokens = t.seq * t.mbs;
  t.sms = c.prop.multiProcessorCount;
  t.s = c.stream;
  init (t);
  std::vector<double> v;
  double first = 0, last = 0;
  for (int i = -3; i < t.steps; i++) {
    float ms = 0;
    CHECK (cudaEventRecord (c.a, t.s));
    step (t, i + 4);
    CHECK (cudaEventRecord (c.b, t.s));
    last = mean_loss (t);
    CHECK (cudaEventElapsedTime (&ms, c.a, c.b));
    if (i == -3)
      first = last;
    if (i >= 0)
      v.push_back (1e3 * ms);
  }
  Timing r = summary (v);
  printf (
      "{\"layers\": %d, \"hidden\": %d, \"heads\": %d, \"seq\": %d, \"mbs\": %d, \"vocab\": %d, "
      "\"params\": %zu, \"median_s\": %.6f, \"p10_s\": %.6f, \"p90_s\": %.6f, \"loss_first\": "
      "%.3f, \"loss_last\": %.3f}\n",
      t.layers, t.hidden, t.heads, t.seq, t.mbs, t.vocab, t.n_params, r.median_us * 1e-6,
      r.p10_us * 1e-6, r.p90_us * 1e-6, first, last);
  if (!(last < first)) {
    fprintf (stderr, "cal_layer: the loss does not fall\n");
    return 1;
  }
  return 0;
}
