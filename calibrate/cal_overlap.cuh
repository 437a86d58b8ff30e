/* cal_overlap: what the two collectors of slow-downs share: a square GEMM, and how a time beside
 * other work is told from a time alone. */
#ifndef CAL_OVERLAP_CUH
#define CAL_OVERLAP_CUH

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

/* A bf16 GEMM of n x n x n on the GPU that was current when it was made. */
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

/* How often work of unit_us must be done to outlast measured_us, also when the two slow each other
 * down. */
inline int
times_to_outlast (double measured_us, double unit_us)
{
  return (int)std::min (400.0, 3 + 3 * measured_us / std::max (unit_us, 1.0));
}

inline void
print_overlap (Cal &c, const std::string &what, double alone_us, const Timing &beside)
{
  if (beside.reps < 5) { /* the other work ended too early to be beside it */
    c.left_out++;
    return;
  }
  c.head ("overlap");
  printf (", \"what\": \"%s\", \"alone_us\": %.3f", what.c_str (), alone_us);
  c.tail (beside);
}

#endif
