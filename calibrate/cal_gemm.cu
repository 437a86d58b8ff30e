/* cal_gemm: GEMM through cuBLASLt in every precision the part has, in the layouts of the forward,
 * input-gradient and weight-gradient GEMMs, burst and sustained.
 * usage: cal_gemm [--minutes M] [--gpu I]
 *
 * A layer's Y[m,n] = X[m,k] W[n,k]^T, dX[m,k] = dY[m,n] W[n,k], dW[n,k] = dY[m,n]^T X[m,k], all
 * row-major. A sample's m, n, k are those of its own result: rows, columns, summed. 8-bit operands
 * know one layout, so their gradients are timed in it, as frameworks run them (on transposed
 * copies). Each precision and layout is checked once against a plain kernel. */
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

struct Precision {
  const char *name;
  cudaDataType_t in, out;
  cublasComputeType_t compute;
  int bytes, needs; /* of an element; compute capability times ten */
};

static const Precision precisions[] = {
    {"bf16", CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2, 80},
    {"fp8", CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1, 89},
    {"fp16", CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, 2, 70},
    {"tf32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4, 80},
    {"fp32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 4, 70},
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
  char *a, *b, *c;
  size_t bytes_each;
};

/* One prepared GEMM. Column-major for the library: C^T[n,m] = op (B) op (A). */
struct Gemm {
  cublasLtMatmulDesc_t op = nullptr;
  cublasLtMatrixLayout_t x = nullptr, y = nullptr, z = nullptr;
  cublasLtMatmulAlgo_t algo{};
  bool ok = false;
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

/* forward: first operand transposed ("TN"); dgrad: none ("NN"); wgrad: second ("NT"). */
static Gemm
prepare (Lt &lt, const Precision &p, const Shape &s)
{
  Gemm g;
  bool eight = p.bytes == 1;
  cublasOperation_t tx = s.role == FORWARD || eight ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasOperation_t ty = s.role == WGRAD && !eight ? CUBLAS_OP_T : CUBLAS_OP_N;
  LT (cublasLtMatmulDescCreate (&g.op, p.compute, CUDA_R_32F));
  LT (cublasLtMatmulDescSetAttribute (g.op, CUBLASLT_MATMUL_DESC_TRANSA, &tx, sizeof tx));
  LT (cublasLtMatmulDescSetAttribute (g.op, CUBLASLT_MATMUL_DESC_TRANSB, &ty, sizeof ty));
  if (eight) {
    LT (cublasLtMatmulDescSetAttribute (g.op, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &lt.scale,
                                        sizeof lt.scale));
    LT (cublasLtMatmulDescSetAttribute (g.op, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &lt.scale,
                                        sizeof lt.scale));
  }
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
  LT (cublasLtMatmul (lt.handle, g.op, &one, lt.b, g.x, lt.a, g.y, &zero, lt.c, g.z, lt.c, g.z,
                      &g.algo, lt.workspace, lt.workspace_bytes, stream));
}

/* ---- check ---- */

template <class T>
__device__ float
as_float (T v)
{
  return (float)v;
}

/* out[i] = C[i / n, i % n] by the roles' own definition. */
template <class T>
__global__ void
reference (const T *a, const T *b, float *out, int m, int n, int k, int ta, int tb)
{
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= m * n)
    return;
  int r = i / n, c = i % n;
  float sum = 0;
  for (int j = 0; j < k; j++) /* a: the rows' operand, b: the columns' */
    sum += as_float (ta ? a[(size_t)j * m + r] : a[(size_t)r * k + j]) *
           as_float (tb ? b[(size_t)c * k + j] : b[(size_t)j * n + c]);
  out[i] = sum;
}

template <class T, class O>
static double
largest_error (Lt &lt, const Precision &p, int role)
{
  const int m = 96, n = 160, k = 192;
  Shape s = {role, m, n, k, 1};
  Gemm g = prepare (lt, p, s);
  if (!g.ok)
    return -1;
  float *expect;
  CHECK (cudaMalloc (&expect, sizeof (float) * m * n));
  fill_random<<<64, 256>>> ((T *)lt.a, (size_t)m * k, 1u);
  fill_random<<<64, 256>>> ((T *)lt.b, (size_t)n * k, 2u);
  launch (lt, g, nullptr);
  bool eight = p.bytes == 1;
  reference<T><<<(m * n + 127) / 128, 128>>> ((T *)lt.a, (T *)lt.b, expect, m, n, k,
                                              role == WGRAD && !eight, role == FORWARD || eight);
  CHECK (cudaDeviceSynchronize ());
  std::vector<float> want (m * n);
  std::vector<O> got (m * n);
  CHECK (cudaMemcpy (want.data (), expect, sizeof (float) * m * n, cudaMemcpyDeviceToHost));
  CHECK (cudaMemcpy (got.data (), lt.c, sizeof (O) * m * n, cudaMemcpyDeviceToHost));
  double worst = 0;
  for (int i = 0; i < m * n; i++)
    worst = std::max (worst, std::fabs ((double)want[i] - (double)(float)got[i]));
  CHECK (cudaFree (expect));
  destroy (g);
  return worst; /* results are of the order of 5; rounding to 16 bit is 0.03 of that */
}

static void
check (Lt &lt, const Precision &p)
{
  for (int role = 0; role < 3; role++) {
    double e = p.bytes == 1         ? largest_error<__nv_fp8_e4m3, __nv_bfloat16> (lt, p, role)
               : p.in == CUDA_R_16F ? largest_error<__half, __half> (lt, p, role)
               : p.bytes == 2       ? largest_error<__nv_bfloat16, __nv_bfloat16> (lt, p, role)
                                    : largest_error<float, float> (lt, p, role);
    if (e > 0.25) {
      fprintf (stderr, "cal_gemm: the %s GEMM in %s is wrong by %g\n", role_names[role], p.name, e);
      exit (1);
    }
  }
}

/* ---- points ---- */

static void
sample (Cal &c, Lt &lt, const Precision &p, const Shape &s, bool sustained)
{
  size_t a = (size_t)(s.m * s.k * s.batch * p.bytes), b = (size_t)(s.n * s.k * s.batch * p.bytes),
         z = (size_t)(s.m * s.n * s.batch * 4);
  if (c.spent () || a > lt.bytes_each || b > lt.bytes_each || z > lt.bytes_each) {
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
  return v;
}

static Shape
spread_shape (int i)
{
  auto size = [] (double u, double lo, double hi) {
    return ((int64_t)(lo * std::pow (hi / lo, u)) + 15) / 16 * 16;
  };
  return {i % 3, size (halton (i, 2), 16, 16384), size (halton (i, 3), 64, 32768),
          size (halton (i, 5), 64, 32768), 1};
}

int
main (int argc, char **argv)
{
  Cal c (argc, argv, 1.5);
  Lt lt{};
  float one = 1;
  lt.bytes_each = std::min ((size_t)4 << 30, c.prop.totalGlobalMem / 8);
  LT (cublasLtCreate (&lt.handle));
  CHECK (cudaMalloc (&lt.workspace, lt.workspace_bytes));
  CHECK (cudaMalloc (&lt.scale, sizeof one));
  CHECK (cudaMemcpy (lt.scale, &one, sizeof one, cudaMemcpyHostToDevice));
  for (char **p : {&lt.a, &lt.b, &lt.c})
    CHECK (cudaMalloc (p, lt.bytes_each));
  std::vector<Shape> layers = layer_shapes ();
  double end = c.end_s, start = now_s ();
  /* bf16 gets most of the time, the others what follows; each its own share of the budget */
  static const double share[] = {0.55, 0.8, 0.88, 0.95, 1.0};
  for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
    const Precision &p = precisions[i];
    if (c.prop.major * 10 + c.prop.minor < p.needs)
      continue;
    c.end_s = start + share[i] * (end - start);
    check (lt, p);
    size_t n = lt.bytes_each / (size_t)p.bytes;
    for (char *at : {lt.a, lt.b})
      if (p.bytes == 1)
        fill_random<<<1024, 256>>> ((__nv_fp8_e4m3 *)at, n, 3u);
      else if (p.in == CUDA_R_16F)
        fill_random<<<1024, 256>>> ((__half *)at, n, 3u);
      else if (p.bytes == 2)
        fill_random<<<1024, 256>>> ((__nv_bfloat16 *)at, n, 3u);
      else
        fill_random<<<1024, 256>>> ((float *)at, n, 3u);
    /* every layer shape once in burst, then spread shapes; now and then one under sustained load */
    for (size_t j = 0; j < layers.size () + 400; j++) {
      /* 7 does not divide their number: neighbours in time are far apart in size */
      Shape s = j < layers.size () ? layers[j * 7 % layers.size ()]
                                   : spread_shape ((int)(j - layers.size ()) + 1);
      if (j < layers.size () && j % 3 == 2)
        s = spread_shape (1000 + (int)j);
      sample (c, lt, p, s, false);
      if (j % 4 == 0 && 2.0 * (double)s.m * (double)s.n * (double)s.k > 1e11)
        sample (c, lt, p, s, true);
    }
  }
  c.end ();
  return 0;
}
