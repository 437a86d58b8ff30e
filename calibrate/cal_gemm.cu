/* cal_gemm: GEMM through cuBLASLt in every precision the part has, in the layouts of the forward,
 * input-gradient and weight-gradient GEMMs, burst and sustained.
 * usage: cal_gemm [--minutes M] [--gpu I]
 *
 * A layer's Y[m,n] = X[m,k] W[n,k]^T, dX[m,k] = dY[m,n] W[n,k], dW[n,k] = dY[m,n]^T X[m,k], all
 * row-major. A sample's m, n, k are those of its own result: rows, columns, summed. Operands of 8
 * bits and fewer know one layout, so their gradients are timed in it, as frameworks run them (on
 * transposed copies). Each precision and layout is checked once against a plain kernel in fp64. */
#include "cal_common.cuh"

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

enum Role { FORWARD, DGRAD, WGRAD };
static const char *const role_names[] = {"forward", "dgrad", "wgrad"};

/* How the operands of narrow types are scaled: one number each, or one for every few along k. */
enum Scaling { NO_SCALE, PER_TENSOR, PER_32, PER_16 };

struct Precision {
  const char *name;
  cudaDataType_t in, out;
  cublasComputeType_t compute;
  int bits, needs; /* of an operand's element; compute capability times ten */
  Scaling scaling;
  double share;     /* of the budget, beside those of the other precisions that the part has */
  double tolerance; /* of a result, over their root mean square: rounding of out and of compute */
};

/* bf16 gets most of the time. */
static const Precision precisions[] = {
    {"bf16", CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 16, 80, NO_SCALE, 0.55, 0.03},
    {"fp8", CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 8, 89, PER_TENSOR, 0.2, 0.03},
#if CUDART_VERSION >= 12080
    {"mxfp8", CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 8, 100, PER_32, 0.15, 0.03},
    {"fp4", CUDA_R_4F_E2M1, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 4, 100, PER_16, 0.15, 0.03},
#endif
    {"fp16", CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, 16, 70, NO_SCALE, 0.08, 0.01},
    {"tf32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 32, 80, NO_SCALE, 0.07, 0.02},
    {"fp32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 32, 70, NO_SCALE, 0.05, 1e-4},
    {"fp64", CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, 64, 60, NO_SCALE, 0.03, 1e-10},
};

/* Two fp4 values a byte, as CUDA_R_4F_E2M1 holds them. */
struct Nibbles {
  unsigned char b;
};

struct Shape {
  int role;
  int64_t m, n, k, batch;
};

struct Lt {
  cublasLtHandle_t handle;
  void *workspace;
  size_t workspace_bytes = 64u << 20;
  float *scale; /* of 8-bit operands: 1 */
  unsigned char
      *block_scale; /* of blocks along k, all of them 1, so that their order is no matter */
  size_t block_scales = 0;
  char *a, *b, *c;
  size_t bytes_each;
};

/* One prepared GEMM. Column-major for the library: C^T[n,m] = op (B) op (A). */
struct Gemm {
  cublasLtMatmulDesc_t op = nullptr;
  cublasLtMatrixLayout_t x = nullptr, y = nullptr, z = nullptr;
  cublasLtMatmulAlgo_t algo{};
  bool ok = false, wide = false; /* wide: alpha and beta are doubles */
};

static cublasLtMatrixLayout_t
layout (cudaDataType_t type, int64_t rows, int64_t cols, int64_t batch)
{
  cublasLtMatrixLayout_t l;
  int32_t count = (int32_t)batch;
  int64_t stride = rows * cols;
  LT (cublasLtMatrixLayoutCreate (&l, type, (uint64_t)rows, (uint64_t)cols, rows));
  if (batch > 1) {
    LT (cublasLtMatrixLayoutSetAttribute (l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                          sizeof count));
    LT (cublasLtMatrixLayoutSetAttribute (l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                          sizeof stride));
  }
  return l;
}

static void
set_scales (Lt &lt, const Precision &p, cublasLtMatmulDesc_t op)
{
  void *scale = p.scaling == PER_TENSOR ? (void *)lt.scale : (void *)lt.block_scale;
#if CUDART_VERSION >= 12080
  if (p.scaling != PER_TENSOR) {
    cublasLtMatmulMatrixScale_t mode = p.scaling == PER_32
                                           ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0
                                           : CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
    LT (cublasLtMatmulDescSetAttribute (op, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &mode, sizeof mode));
    LT (cublasLtMatmulDescSetAttribute (op, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &mode, sizeof mode));
  }
#endif
  LT (cublasLtMatmulDescSetAttribute (op, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale,
                                      sizeof scale));
  LT (cublasLtMatmulDescSetAttribute (op, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &scale,
                                      sizeof scale));
}

/* forward: first operand transposed ("TN"); dgrad: none ("NN"); wgrad: second ("NT"). */
static Gemm
prepare (Lt &lt, const Precision &p, const Shape &s)
{
  Gemm g;
  bool narrow = p.bits <= 8, wide = p.bits == 64;
  cublasOperation_t tx = s.role == FORWARD || narrow ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasOperation_t ty = s.role == WGRAD && !narrow ? CUBLAS_OP_T : CUBLAS_OP_N;
  LT (cublasLtMatmulDescCreate (&g.op, p.compute, wide ? CUDA_R_64F : CUDA_R_32F));
  LT (cublasLtMatmulDescSetAttribute (g.op, CUBLASLT_MATMUL_DESC_TRANSA, &tx, sizeof tx));
  LT (cublasLtMatmulDescSetAttribute (g.op, CUBLASLT_MATMUL_DESC_TRANSB, &ty, sizeof ty));
  if (p.scaling != NO_SCALE)
    set_scales (lt, p, g.op);
  g.x = tx == CUBLAS_OP_T ? layout (p.in, s.k, s.n, s.batch) : layout (p.in, s.n, s.k, s.batch);
  g.y = ty == CUBLAS_OP_T ? layout (p.in, s.m, s.k, s.batch) : layout (p.in, s.k, s.m, s.batch);
  g.z = layout (p.out, s.n, s.m, s.batch);
  cublasLtMatmulPreference_t pref;
  cublasLtMatmulHeuristicResult_t found{};
  int n = 0;
  LT (cublasLtMatmulPreferenceCreate (&pref));
  LT (cublasLtMatmulPreferenceSetAttribute (pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                            &lt.workspace_bytes, sizeof lt.workspace_bytes));
  g.ok = cublasLtMatmulAlgoGetHeuristic (lt.handle, g.op, g.x, g.y, g.z, g.z, pref, 1, &found,
                                         &n) == CUBLAS_STATUS_SUCCESS &&
         n > 0;
  g.algo = found.algo;
  g.wide = wide;
  cublasLtMatmulPreferenceDestroy (pref);
  return g;
}

static void
destroy (Gemm &g)
{
  cublasLtMatrixLayoutDestroy (g.x);
  cublasLtMatrixLayoutDestroy (g.y);
  cublasLtMatrixLayoutDestroy (g.z);
  cublasLtMatmulDescDestroy (g.op);
}

static void
launch (Lt &lt, const Gemm &g, cudaStream_t stream)
{
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  const void *alpha = g.wide ? (const void *)&one64 : &one,
             *beta = g.wide ? (const void *)&zero64 : &zero;
  LT (cublasLtMatmul (lt.handle, g.op, alpha, lt.b, g.x, lt.a, g.y, beta, lt.c, g.z, lt.c, g.z,
                      &g.algo, lt.workspace, lt.workspace_bytes, stream));
}

/* ---- check ---- */

template <class T>
__device__ double
value_at (const T *p, size_t i)
{
  return (double)(float)p[i];
}

template <>
__device__ double
value_at (const double *p, size_t i)
{
  return p[i];
}

/* e2m1: sign, two bits of exponent, one of mantissa. */
template <>
__device__ double
value_at (const Nibbles *p, size_t i)
{
  unsigned v = p[i / 2].b >> (i % 2 * 4) & 15, e = v >> 1 & 3, m = v & 1;
  double size = e == 0 ? 0.5 * m : (1 + 0.5 * m) * (1 << e) / 2;
  return v >= 8 ? -size : size;
}

/* out[i] = C[i / n, i % n] by the roles' own definition. */
template <class T>
__global__ void
reference (const T *a, const T *b, double *out, int m, int n, int k, int ta, int tb)
{
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= m * n)
    return;
  int r = i / n, c = i % n;
  double sum = 0;
  for (int j = 0; j < k; j++) /* a: the rows' operand, b: the columns' */
    sum += value_at (a, ta ? (size_t)j * m + r : (size_t)r * k + j) *
           value_at (b, tb ? (size_t)c * k + j : (size_t)j * n + c);
  out[i] = sum;
}

__global__ static void
fill_bytes (unsigned char *p, size_t n, unsigned seed)
{
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
       i += (size_t)gridDim.x * blockDim.x) {
    unsigned x = (unsigned)i * 2654435761u + seed;
    x ^= x >> 15;
    x *= 2246822519u;
    p[i] = (unsigned char)(x >> 13);
  }
}

template <class T>
static void
fill (char *at, size_t n, unsigned seed)
{
  fill_random<<<1024, 256>>> ((T *)at, n, seed);
  CHECK (cudaGetLastError ());
}

template <>
void
fill<Nibbles> (char *at, size_t n, unsigned seed)
{
  fill_bytes<<<1024, 256>>> ((unsigned char *)at, n / 2, seed);
  CHECK (cudaGetLastError ());
}

/* Largest error over the root mean square of the results; -1 where the library has no such GEMM. */
template <class T, class O>
static double
largest_error (Lt &lt, const Precision &p, int role)
{
  const int m = 128, n = 160, k = 192;
  Shape s = {role, m, n, k, 1};
  Gemm g = prepare (lt, p, s);
  if (!g.ok) {
    destroy (g);
    return -1;
  }
  double *expect;
  CHECK (cudaMalloc (&expect, sizeof (double) * m * n));
  fill<T> (lt.a, (size_t)m * k, 1u);
  fill<T> (lt.b, (size_t)n * k, 2u);
  launch (lt, g, nullptr);
  bool narrow = p.bits <= 8;
  reference<T><<<(m * n + 127) / 128, 128>>> ((T *)lt.a, (T *)lt.b, expect, m, n, k,
                                              role == WGRAD && !narrow, role == FORWARD || narrow);
  CHECK (cudaDeviceSynchronize ());
  std::vector<double> want (m * n);
  std::vector<O> got (m * n);
  CHECK (cudaMemcpy (want.data (), expect, sizeof (double) * m * n, cudaMemcpyDeviceToHost));
  CHECK (cudaMemcpy (got.data (), lt.c, sizeof (O) * m * n, cudaMemcpyDeviceToHost));
  double worst = 0, squares = 0;
  for (int i = 0; i < m * n; i++) {
    double e = std::fabs (want[i] - (double)got[i]);
    worst = std::max (worst, std::isnan (e) ? HUGE_VAL : e);
    squares += want[i] * want[i];
  }
  CHECK (cudaFree (expect));
  destroy (g);
  return worst / std::sqrt (squares / (m * n));
}

/* Checks every layout, then leaves random operands behind. */
template <class T, class O>
static void
check (Lt &lt, const Precision &p)
{
  for (int role = 0; role < 3; role++) {
    double e = largest_error<T, O> (lt, p, role);
    if (!(e <= p.tolerance)) {
      fprintf (stderr, "cal_gemm: the %s GEMM in %s is wrong by %g of its size\n", role_names[role],
               p.name, e);
      exit (1);
    }
  }
  size_t n = lt.bytes_each / (size_t)p.bits * 8;
  fill<T> (lt.a, n, 3u);
  fill<T> (lt.b, n, 4u);
}

static void
check_precision (Lt &lt, const Precision &p)
{
  if (p.scaling == PER_32 || p.scaling == PER_16) /* 1 as ue8m0, as ue4m3 */
    CHECK (cudaMemset (lt.block_scale, p.scaling == PER_32 ? 0x7f : 0x38, lt.block_scales));
  if (p.bits == 4)
    check<Nibbles, __nv_bfloat16> (lt, p);
  else if (p.bits == 8)
    check<__nv_fp8_e4m3, __nv_bfloat16> (lt, p);
  else if (p.bits == 64)
    check<double, double> (lt, p);
  else if (p.bits == 32)
    check<float, float> (lt, p);
  else if (p.in == CUDA_R_16F)
    check<__half, __half> (lt, p);
  else
    check<__nv_bfloat16, __nv_bfloat16> (lt, p);
}

/* ---- points ---- */

static void
sample (Cal &c, Lt &lt, const Precision &p, const Shape &s, bool sustained)
{
  size_t a = (size_t)(s.m * s.k * s.batch * p.bits / 8),
         b = (size_t)(s.n * s.k * s.batch * p.bits / 8),
         z = (size_t)(s.m * s.n * s.batch * std::max (4, p.bits / 8));
  /* scales lie in tiles of 128 rows by 4 blocks */
  size_t blocks =
      (size_t)(((std::max (s.m, s.n) + 127) / 128 * 128) * ((s.k + 63) / 64 * 4) * s.batch);
  if (c.spent () || a > lt.bytes_each || b > lt.bytes_each || z > lt.bytes_each ||
      (p.scaling > PER_TENSOR && blocks > lt.block_scales)) {
    c.left_out++;
    return;
  }
  Gemm g = prepare (lt, p, s);
  if (!g.ok) {
    c.left_out++;
    destroy (g);
    return;
  }
  auto run = [&] (cudaStream_t st) { launch (lt, g, st); };
  Timing t = sustained ? c.sustained (run, 0.25) : c.burst (run);
  c.head ("gemm");
  printf (", \"dtype\": \"%s\", \"role\": \"%s\", \"mode\": \"%s\", \"m\": %lld, \"n\": %lld, "
          "\"k\": %lld, \"batch\": %lld, \"library\": \"cuBLASLt %zu\"",
          p.name, role_names[s.role], sustained ? "sustained" : "burst", (long long)s.m,
          (long long)s.n, (long long)s.k, (long long)s.batch, cublasLtGetVersion ());
  c.tail (t);
  destroy (g);
}

/* GEMMs of layers: tokens x (in -> out) of widths in use, divided by tensor parallelism. */
static std::vector<Shape>
layer_shapes ()
{
  static const int64_t tokens[] = {4096, 8192, 2048, 16384, 1024};
  static const int64_t widths[][2] = {{4096, 14336},  {8192, 28672}, {5120, 13824},
                                      {12288, 49152}, {7168, 18432}, {2048, 8192}};
  std::vector<Shape> v;
  for (int64_t t : tokens)
    for (auto &w : widths)
      for (int64_t tp = 1; tp <= 8; tp *= 8) {
        const int64_t lin[][2] = {{3 * w[0] / tp, w[0]}, {w[1] / tp, w[0]}, {w[0], w[1] / tp}};
        for (auto &l : lin) {
          v.push_back ({FORWARD, t, l[0], l[1], 1});
          v.push_back ({DGRAD, t, l[1], l[0], 1});
          v.push_back ({WGRAD, l[0], l[1], t, 1});
        }
      }
  /* scores and values of 32 heads */
  for (int64_t q : {2048, 1024, 4096}) {
    v.push_back ({FORWARD, q, q, 128, 32});
    if (q < 4096)
      v.push_back ({DGRAD, q, 128, q, 32});
  }
  return v;
}

/* Every fifth is of sizes that 16 does not divide, which slower kernels take. */
static Shape
spread_shape (int i)
{
  int64_t step = i % 5 == 4 ? (int64_t)1 << (i / 5 % 4) : 16;
  auto size = [step] (double u, double lo, double hi) {
    return ((int64_t)(lo * std::pow (hi / lo, u)) + step - 1) / step * step;
  };
  return {i % 3, size (halton (i, 2), 16, 16384), size (halton (i, 3), 64, 32768),
          size (halton (i, 5), 64, 32768), 1};
}

/* Every layer shape once in burst, then spread shapes; now and then one under sustained load. */
static void
sweep (Cal &c, Lt &lt, const Precision &p, const std::vector<Shape> &layers)
{
  /* 7 does not divide their number: neighbours in time are far apart in size */
  size_t step = layers.size () % 7 != 0 ? 7 : 11, spread = 0, taken = 0;
  for (size_t j = 0; j < layers.size () * 3 / 2 + 400; j++) {
    bool from_layer = taken < layers.size () && j % 3 != 2;
    Shape s = from_layer ? layers[taken++ * step % layers.size ()] : spread_shape ((int)++spread);
    sample (c, lt, p, s, false);
    if (j % 4 == 0 && 2.0 * (double)s.m * (double)s.n * (double)s.k > 1e11)
      sample (c, lt, p, s, true);
  }
}

int
main (int argc, char **argv)
{
  Cal c (argc, argv, 1.5);
  Lt lt{};
  float one = 1;
  int capability = c.prop.major * 10 + c.prop.minor;
  lt.bytes_each = std::min ((size_t)4 << 30, c.prop.totalGlobalMem / 8);
  lt.block_scales = capability >= 100 ? (size_t)128 << 20 : 16;
  c.versions += ", cuBLASLt " + std::to_string (cublasLtGetVersion ());
  LT (cublasLtCreate (&lt.handle));
  CHECK (cudaMalloc (&lt.workspace, lt.workspace_bytes));
  CHECK (cudaMalloc (&lt.scale, sizeof one));
  CHECK (cudaMalloc (&lt.block_scale, lt.block_scales));
  CHECK (cudaMemcpy (lt.scale, &one, sizeof one, cudaMemcpyHostToDevice));
  for (char **p : {&lt.a, &lt.b, &lt.c})
    CHECK (cudaMalloc (p, lt.bytes_each));
  std::vector<Shape> layers = layer_shapes ();
  double end = c.end_s, start = now_s (), all = 0, so_far = 0;
  for (const Precision &p : precisions)
    all += capability >= p.needs ? p.share : 0;
  for (const Precision &p : precisions) {
    if (capability < p.needs)
      continue;
    so_far += p.share;
    c.end_s = start + so_far / all * (end - start);
    check_precision (lt, p);
    sweep (c, lt, p, layers);
  }
  c.end ();
  return 0;
}
