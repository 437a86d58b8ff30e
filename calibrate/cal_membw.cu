/* cal_membw: the device itself, streams over its memory, and copies from and to the host.
 * usage: cal_membw [--minutes M] [--gpu I]
 * The device line comes first; its bandwidth is that of the memory clock and bus, its peaks are
 * left to the profile that the fit starts from. */
#include "cal_common.cuh"

__global__ static void
k_triad (const float4 *a, const float4 *b, float4 *y, size_t n)
{
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
       i += (size_t)gridDim.x * blockDim.x) {
    float4 u = a[i], v = b[i];
    y[i] = make_float4 (u.x + 3 * v.x, u.y + 3 * v.y, u.z + 3 * v.z, u.w + 3 * v.w);
  }
}

__global__ static void
k_copy (const float4 *a, float4 *y, size_t n)
{
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
       i += (size_t)gridDim.x * blockDim.x)
    y[i] = a[i];
}

static void
device_line (Cal &c)
{
  int driver = 0, runtime = 0, memory_kHz = 0, bus_bits = 0, clock_kHz = 0;
  size_t free_bytes = 0, total = 0;
  CHECK (cudaDriverGetVersion (&driver));
  CHECK (cudaRuntimeGetVersion (&runtime));
  CHECK (cudaMemGetInfo (&free_bytes, &total));
  /* attributes that newer toolkits may drop: without them the line does without */
  (void)cudaDeviceGetAttribute (&memory_kHz, cudaDevAttrMemoryClockRate, c.index);
  (void)cudaDeviceGetAttribute (&bus_bits, cudaDevAttrGlobalMemoryBusWidth, c.index);
  (void)cudaDeviceGetAttribute (&clock_kHz, cudaDevAttrClockRate, c.index);
  (void)cudaGetLastError ();
  c.head ("device");
  printf (", \"driver\": \"%s\", \"versions\": \"CUDA driver %d, runtime %d\", "
          "\"compute_capability\": %d, \"sm_count\": %d, \"memory_GiB\": %.3f",
          c.nvml->driver, driver, runtime, c.prop.major * 10 + c.prop.minor,
          c.prop.multiProcessorCount, (double)total / 1073741824.0);
  if (memory_kHz > 0 && bus_bits > 0)
    printf (", \"hbm_GBps\": %.1f", 2.0 * memory_kHz * 1e3 * bus_bits / 8 * 1e-9);
  if (clock_kHz > 0)
    printf (", \"boost_MHz\": %d", clock_kHz / 1000);
  printf ("}\n");
}

template <class F>
static void
stream (Cal &c, double bytes, F run)
{
  if (c.spent ()) {
    c.left_out++;
    return;
  }
  Timing t = c.burst (run);
  c.head ("memory");
  printf (", \"op\": \"stream\", \"bytes\": %.0f", bytes);
  c.tail (t);
}

static void
host_copies (Cal &c, void *device)
{
  const size_t most = 256u << 20;
  void *host = nullptr;
  CHECK (cudaMallocHost (&host, most));
  memset (host, 1, most);
  for (size_t n = 64u << 10; n <= most; n *= 8)
    for (int up = 0; up < 2; up++) {
      if (c.spent ()) {
        c.left_out++;
        continue;
      }
      Timing t = c.burst ([&] (cudaStream_t s) {
        CHECK (cudaMemcpyAsync (up ? device : host, up ? host : device, n,
                                up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, s));
      });
      c.head ("copy");
      printf (", \"path\": \"%s\", \"bytes\": %zu", up ? "h2d" : "d2h", n);
      c.tail (t);
    }
  CHECK (cudaFreeHost (host));
}

int
main (int argc, char **argv)
{
  Cal c (argc, argv, 0.3);
  size_t most = std::min ((size_t)2 << 30, c.prop.totalGlobalMem / 8), n = most / sizeof (float4);
  int blocks = c.prop.multiProcessorCount * 8;
  float4 *a = (float4 *)device_random<float> (n * 4, 1),
         *b = (float4 *)device_random<float> (n * 4, 2);
  float4 *y = (float4 *)device_random<float> (n * 4, 3);
  device_line (c);
  for (size_t k = n; k >= 4096; k /= 8) {
    double bytes = (double)k * sizeof (float4);
    stream (c, 3 * bytes, [&] (cudaStream_t s) { k_triad<<<blocks, 512, 0, s>>> (a, b, y, k); });
    stream (c, 2 * bytes, [&] (cudaStream_t s) { k_copy<<<blocks, 512, 0, s>>> (a, y, k); });
  }
  host_copies (c, a);
  c.end ();
  return 0;
}
