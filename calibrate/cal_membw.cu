/* cal_membw: the device itself, streams over its memory, and copies within it, from and to the
 * host. usage: cal_membw [--minutes M] [--gpu I] The device line comes first; its bandwidth is that
 * of the memory clock and bus, its peaks are left to the profile that the fit starts from. */
#include "cal_common.cuh"

#include <cmath>

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
  int memory_kHz = 0, bus_bits = 0, clock_kHz = 0;
  size_t free_bytes = 0, total = 0;
  CHECK (cudaMemGetInfo (&free_bytes, &total));
  /* attributes that newer toolkits may drop: without them the line does without */
  (void)cudaDeviceGetAttribute (&memory_kHz, cudaDevAttrMemoryClockRate, c.index);
  (void)cudaDeviceGetAttribute (&bus_bits, cudaDevAttrGlobalMemoryBusWidth, c.index);
  (void)cudaDeviceGetAttribute (&clock_kHz, cudaDevAttrClockRate, c.index);
  (void)cudaGetLastError ();
  c.head ("device");
  printf (", \"compute_capability\": %d, \"sm_count\": %d, \"memory_GiB\": %.3f",
          c.prop.major * 10 + c.prop.minor, c.prop.multiProcessorCount,
          (double)total / 1073741824.0);
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

/* A value in a thousand of n, read back: what a and y hold, and what the kernel should have made.
 */
static void
check (const char *what, const float4 *a, const float4 *b, const float4 *y, size_t n)
{
  for (size_t i = 0; i < n; i += std::max ((size_t)1, n / 1000)) {
    float4 u, v, w;
    CHECK (cudaMemcpy (&u, a + i, sizeof u, cudaMemcpyDeviceToHost));
    CHECK (cudaMemcpy (&v, b + i, sizeof v, cudaMemcpyDeviceToHost));
    CHECK (cudaMemcpy (&w, y + i, sizeof w, cudaMemcpyDeviceToHost));
    float wrong = a == b ? std::fabs (w.x - u.x) + std::fabs (w.w - u.w)
                         : std::fabs (w.x - u.x - 3 * v.x) + std::fabs (w.w - u.w - 3 * v.w);
    if (!(wrong < 1e-5f)) {
      fprintf (stderr, "cal_membw: the %s is wrong at %zu\n", what, i);
      exit (1);
    }
  }
}

static void
fill_host (char *host, size_t n)
{
  for (size_t i = 0; i < n; i++)
    host[i] = (char)(i * 2654435761u >> 13);
}

/* Bytes to the device and back are those that left. */
static void
check_host_copies (char *host, void *device, size_t n)
{
  fill_host (host, n);
  CHECK (cudaMemcpy (device, host, n, cudaMemcpyHostToDevice));
  memset (host, 0, n);
  CHECK (cudaMemcpy (host, device, n, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < n; i++)
    if (host[i] != (char)(i * 2654435761u >> 13)) {
      fprintf (stderr, "cal_membw: a copy from the host and back is wrong at %zu\n", i);
      exit (1);
    }
}

/* The library's own copy within the device; bytes are those copied, each read and written. */
static void
device_copies (Cal &c, void *from, void *to, size_t most)
{
  for (size_t n = most; n >= 65536; n /= 8) {
    if (c.spent ()) {
      c.left_out++;
      continue;
    }
    Timing t = c.burst ([&] (cudaStream_t s) {
      CHECK (cudaMemcpyAsync (to, from, n, cudaMemcpyDeviceToDevice, s));
    });
    c.head ("copy");
    printf (", \"path\": \"d2d\", \"bytes\": %zu", n);
    c.tail (t);
  }
}

static void
host_copies (Cal &c, void *device)
{
  const size_t most = 256u << 20;
  void *host = nullptr;
  CHECK (cudaMallocHost (&host, most));
  check_host_copies ((char *)host, device, 1u << 20);
  fill_host ((char *)host, most);
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
  k_triad<<<blocks, 512>>> (a, b, y, n);
  check ("triad", a, b, y, n);
  k_copy<<<blocks, 512>>> (a, y, n);
  check ("copy", a, a, y, n);
  for (size_t k = n; k >= 4096; k /= 8) {
    double bytes = (double)k * sizeof (float4);
    stream (c, 3 * bytes, [&] (cudaStream_t s) { k_triad<<<blocks, 512, 0, s>>> (a, b, y, k); });
    stream (c, 2 * bytes, [&] (cudaStream_t s) { k_copy<<<blocks, 512, 0, s>>> (a, y, k); });
  }
  device_copies (c, a, y, n * sizeof (float4));
  host_copies (c, b);
  c.end ();
  return 0;
}
