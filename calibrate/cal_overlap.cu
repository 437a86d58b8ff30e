/* cal_overlap: what a GEMM costs beside a copy, and the reverse: the slow-down factors of a
 * software profile. usage: cal_overlap [--minutes M] [--gpu I] Two streams; the GEMMs run for as
 * long as the copy is in flight and the other way round. The copy is device to device by a kernel
 * on a part of the multiprocessors, as a collective's is, and by the copy engine from the host. */
#include "cal_common.cuh"

#include <cublasLt.h>

#define LT(call)                                                                                   \
  do {                                                                                             \
    cublasStatus_t s_ = (call);                                                                    \
    if (s_ != CUBLAS_STATUS_SUCCESS) {                                                             \
      fprintf (stderr, "%s:%d: %s: cuBLASLt status %d\n", __FILE__, __LINE__, #call, (int)s_);     \
      exit (1);                                                                                    \
    }                                                                                              \
  } while (0)

__global__ static void
k_copy (const float4 *a, float4 *y, size_t n, int times)
{
  for (int t = 0; t < times; t++)
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
      y[i] = a[i];
}

struct Square {
  cublasLtHandle_t lt;
  cublasLtMatmulDesc_t op;
  cublasLtMatrixLayout_t shape;
  void *a, *b, *c, *workspace;
  size_t bytes = 64u << 20;

  explicit Square (int64_t n)
  {
    LT (cublasLtCreate (&lt));
    LT (cublasLtMatmulDescCreate (&op, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    LT (cublasLtMatrixLayoutCreate (&shape, CUDA_R_16BF, (uint64_t)n, (uint64_t)n, n));
    a = device_random<__nv_bfloat16> ((size_t)(n * n), 1);
    b = device_random<__nv_bfloat16> ((size_t)(n * n), 2);
    c = device_random<__nv_bfloat16> ((size_t)(n * n), 3);
    CHECK (cudaMalloc (&workspace, bytes));
  }

  void
  run (cudaStream_t s)
  {
    const float one = 1, zero = 0;
    LT (cublasLtMatmul (lt, op, &one, a, shape, b, shape, &zero, c, shape, c, shape, nullptr,
                        workspace, bytes, s));
  }
};

/* Time of measured() with beside() keeping the other stream busy all along; 0 without beside. */
template <class M, class B>
static Timing
timed (Cal &c, cudaStream_t other, M measured, B beside, bool busy)
{
  std::vector<double> v;
  for (int r = -2; r < 9; r++) {
    float ms = 0;
    if (busy)
      beside (other);
    spin<<<1, 1, 0, c.stream>>> (2000000); /* the other is under way by then */
    CHECK (cudaEventRecord (c.a, c.stream));
    measured (c.stream);
    CHECK (cudaEventRecord (c.b, c.stream));
    CHECK (cudaDeviceSynchronize ());
    CHECK (cudaEventElapsedTime (&ms, c.a, c.b));
    if (r >= 0)
      v.push_back (1e3 * ms);
  }
  return summary (v);
}

template <class M, class B>
static void
pair (Cal &c, cudaStream_t other, const char *what, M measured, B beside)
{
  if (c.spent ()) {
    c.left_out++;
    return;
  }
  Timing alone = timed (c, other, measured, beside, false);
  Timing both = timed (c, other, measured, beside, true);
  c.head ("overlap");
  printf (", \"what\": \"%s\", \"alone_us\": %.3f", what, alone.median_us);
  c.tail (both);
}

int
main (int argc, char **argv)
{
  Cal c (argc, argv, 0.2);
  cudaStream_t other;
  Square gemm (8192);
  size_t n = ((size_t)256 << 20) / sizeof (float4);
  float4 *from = (float4 *)device_random<float> (n * 4, 4),
         *to = (float4 *)device_random<float> (n * 4, 5);
  void *host = nullptr;
  CHECK (cudaMallocHost (&host, 256u << 20));
  memset (host, 1, 256u << 20);
  CHECK (cudaStreamCreateWithFlags (&other, cudaStreamNonBlocking));
  CHECK (cudaStreamDestroy (c.stream));
  CHECK (cudaStreamCreateWithFlags (&c.stream, cudaStreamNonBlocking));
  auto gemms = [&] (cudaStream_t s) {
    for (int i = 0; i < 8; i++)
      gemm.run (s);
  };
  auto many_gemms = [&] (cudaStream_t s) {
    for (int i = 0; i < 64; i++)
      gemm.run (s);
  };
  auto copy16 = [&] (cudaStream_t s) { k_copy<<<16, 512, 0, s>>> (from, to, n, 4); };
  auto long_copy16 = [&] (cudaStream_t s) { k_copy<<<16, 512, 0, s>>> (from, to, n, 64); };
  auto engine = [&] (cudaStream_t s) {
    CHECK (cudaMemcpyAsync (to, host, 256u << 20, cudaMemcpyHostToDevice, s));
  };
  auto long_engine = [&] (cudaStream_t s) {
    for (int i = 0; i < 8; i++)
      CHECK (cudaMemcpyAsync (to, host, 256u << 20, cudaMemcpyHostToDevice, s));
  };
  pair (c, other, "gemm beside copy by 16 blocks", gemms, long_copy16);
  pair (c, other, "copy by 16 blocks beside gemm", copy16, many_gemms);
  pair (c, other, "gemm beside copy from host", gemms, long_engine);
  pair (c, other, "copy from host beside gemm", engine, many_gemms);
  c.end ();
  return 0;
}
