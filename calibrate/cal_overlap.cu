/* cal_overlap: what a GEMM costs beside a copy, and the reverse: the slow-down factors of a
 * software profile. usage: cal_overlap [--minutes M] [--gpu I] Two streams; the work beside goes on
 * until what is measured has ended, else the repeat does not count (cal_overlap_coll: the same
 * beside a collective). The copy is device to device by a kernel on a part of the multiprocessors,
 * as a collective's is, and by the copy engine from the host. */
#include "cal_overlap.cuh"

__global__ static void
k_copy (const float4 *a, float4 *y, size_t n, int times)
{
  for (int t = 0; t < times; t++)
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
      y[i] = a[i];
}

/* Time of measured (stream) with beside (stream), as often as times says, on another stream all
 * along; alone with times 0. Repeats that the other did not outlast are dropped. */
template <class M, class B>
static Timing
timed (Cal &c, cudaStream_t other, M measured, B beside, int times)
{
  std::vector<double> v;
  cudaEvent_t ended;
  CHECK (cudaEventCreate (&ended));
  for (int r = -2; r < 9; r++) {
    float ms = 0, after = 1;
    for (int i = 0; i < times; i++)
      beside (other);
    CHECK (cudaEventRecord (ended, other));
    spin<<<1, 1, 0, c.stream>>> (2000000); /* the other is under way by then */
    CHECK (cudaEventRecord (c.a, c.stream));
    measured (c.stream);
    CHECK (cudaEventRecord (c.b, c.stream));
    CHECK (cudaDeviceSynchronize ());
    CHECK (cudaEventElapsedTime (&ms, c.a, c.b));
    if (times > 0)
      CHECK (cudaEventElapsedTime (&after, c.b, ended));
    if (r >= 0 && after > 0)
      v.push_back (1e3 * ms);
  }
  CHECK (cudaEventDestroy (ended));
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
  double alone = timed (c, other, measured, beside, 0).median_us;
  double unit = timed (c, other, beside, measured, 0).median_us;
  print_overlap (c, what, alone,
                 timed (c, other, measured, beside, times_to_outlast (alone, unit)));
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
  auto copy16 = [&] (cudaStream_t s) { k_copy<<<16, 512, 0, s>>> (from, to, n, 4); };
  auto engine = [&] (cudaStream_t s) {
    CHECK (cudaMemcpyAsync (to, host, 256u << 20, cudaMemcpyHostToDevice, s));
  };
  c.versions += ", cuBLASLt " + std::to_string (cublasLtGetVersion ());
  pair (c, other, "gemm beside copy by 16 blocks", gemms, copy16);
  pair (c, other, "copy by 16 blocks beside gemm", copy16, gemms);
  pair (c, other, "gemm beside copy from host", gemms, engine);
  pair (c, other, "copy from host beside gemm", engine, gemms);
  c.end ();
  return 0;
}
