/* cal_common: what the CUDA collectors share. Includes nothing of the simulator: their only tie to
 * it is the JSON lines that they print (README.md).
 *
 * Measuring: CUDA events, a warm-up, the median of repeats, p10 and p90 kept. "burst": isolated
 * kernels with the L2 cache flushed before each and a pause that lets the clocks recover;
 * "sustained": back to back for a while, so that the power limit acts. Data are random: zeros
 * switch fewer wires and run faster on power-limited parts. Clock, power and temperature come from
 * NVML where its library is there. Every collector has a budget (--minutes) and says what it left
 * out. Errors end the program with status 1 and no end line, so that a cut file is seen as cut. */
#ifndef CAL_COMMON_CUH
#define CAL_COMMON_CUH

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#define CHECK(call)                                                                                \
  do {                                                                                             \
    cudaError_t e_ = (call);                                                                       \
    if (e_ != cudaSuccess) {                                                                       \
      fprintf (stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString (e_));     \
      exit (1);                                                                                    \
    }                                                                                              \
  } while (0)

/* ---- NVML, found at run time ---- */

struct Nvml {
  void *lib = nullptr, *device = nullptr;
  int (*clock) (void *, int, unsigned *) = nullptr;
  int (*power) (void *, unsigned *) = nullptr;
  int (*temperature) (void *, int, unsigned *) = nullptr;
  char driver[80] = "";

  explicit Nvml (const char *bus_id)
  {
    lib = dlopen ("libnvidia-ml.so.1", RTLD_LAZY);
    if (lib == nullptr)
      return;
    auto init = (int (*) ())dlsym (lib, "nvmlInit_v2");
    auto handle = (int (*) (const char *, void **))dlsym (lib, "nvmlDeviceGetHandleByPciBusId_v2");
    auto version = (int (*) (char *, unsigned))dlsym (lib, "nvmlSystemGetDriverVersion");
    if (init == nullptr || handle == nullptr || init () != 0 || handle (bus_id, &device) != 0) {
      device = nullptr;
      return;
    }
    if (version != nullptr)
      version (driver, sizeof driver);
    clock = (int (*) (void *, int, unsigned *))dlsym (lib, "nvmlDeviceGetClockInfo");
    power = (int (*) (void *, unsigned *))dlsym (lib, "nvmlDeviceGetPowerUsage");
    temperature = (int (*) (void *, int, unsigned *))dlsym (lib, "nvmlDeviceGetTemperature");
  }
};

/* ---- timings ---- */

struct Timing {
  double median_us = 0, p10_us = 0, p90_us = 0;
  int reps = 0;
};

inline Timing
summary (std::vector<double> v)
{
  Timing t;
  std::sort (v.begin (), v.end ());
  t.reps = (int)v.size ();
  if (v.empty ())
    return t;
  t.median_us = v[v.size () / 2];
  t.p10_us = v[v.size () / 10];
  t.p90_us = v[v.size () * 9 / 10];
  return t;
}

inline double
now_s ()
{
  timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Values in -1 … 1 that depend on the index alone. */
template <class T>
__global__ void
fill_random (T *p, size_t n, unsigned seed)
{
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
       i += (size_t)gridDim.x * blockDim.x) {
    unsigned x = (unsigned)i * 2654435761u + seed;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    p[i] = T ((float)(int)(x & 0xffff) / 32768.0f - 1.0f);
  }
}

/* Keeps the device busy for about so many cycles, so that what is queued behind it is not waiting
 * for the host when it starts. */
__global__ static void
spin (long long cycles)
{
  long long start = clock64 ();
  while (clock64 () - start < cycles)
    ;
}

/* ---- a collector ---- */

struct Cal {
  int index = 0;
  cudaDeviceProp prop{};
  std::string name, date, versions; /* a collector appends its libraries to versions */
  Nvml *nvml = nullptr;
  double end_s = 0, minutes = 1;
  int samples = 0, left_out = 0;
  void *flush = nullptr;
  size_t flush_bytes = 0;
  cudaStream_t stream = nullptr;
  cudaEvent_t a = nullptr, b = nullptr;

  Cal (int argc, char **argv, double default_minutes)
  {
    char today[16];
    time_t t = time (nullptr);
    int count = 0;
    minutes = default_minutes;
    for (int i = 1; i < argc; i++)
      if (strcmp (argv[i], "--help") == 0)
        usage (argv[0], stdout, 0);
      else if (i + 1 < argc && strcmp (argv[i], "--minutes") == 0)
        minutes = atof (argv[i + 1]);
      else if (i + 1 < argc && strcmp (argv[i], "--gpu") == 0)
        index = atoi (argv[i + 1]);
    if (!(minutes > 0 && minutes < 1e4) || index < 0)
      usage (argv[0], stderr, 2);
    cudaError_t e = cudaGetDeviceCount (&count);
    if (e != cudaSuccess || count <= index) {
      fprintf (stderr, "no CUDA device %d (%s)\n", index,
               e != cudaSuccess ? cudaGetErrorString (e) : "not that many devices");
      exit (77); /* the status by which a test says that it was skipped */
    }
    CHECK (cudaSetDevice (index));
    CHECK (cudaGetDeviceProperties (&prop, index));
    char bus[32] = "";
    CHECK (cudaDeviceGetPCIBusId (bus, sizeof bus, index));
    name = prop.name;
    strftime (today, sizeof today, "%Y-%m-%d", gmtime (&t));
    date = today;
    nvml = new Nvml (bus);
    int driver = 0, runtime = 0;
    CHECK (cudaDriverGetVersion (&driver));
    CHECK (cudaRuntimeGetVersion (&runtime));
    versions = "CUDA driver " + std::to_string (driver) + ", runtime " + std::to_string (runtime);
    flush_bytes = (size_t)prop.l2CacheSize * 2 + (1u << 20);
    CHECK (cudaMalloc (&flush, flush_bytes));
    CHECK (cudaStreamCreate (&stream));
    CHECK (cudaEventCreate (&a));
    CHECK (cudaEventCreate (&b));
    end_s = now_s () + 60 * minutes;
  }

  static void
  usage (const char *program, FILE *to, int status)
  {
    fprintf (to, "usage: %s [--minutes M] [--gpu I]   (further options: calibrate/README.md)\n",
             program);
    exit (status);
  }

  bool
  spent ()
  {
    return now_s () > end_s;
  }

  void
  head (const char *kind)
  {
    printf ("{\"kind\": \"%s\", \"device\": \"%s\", \"date\": \"%s\"", kind, name.c_str (),
            date.c_str ());
    if (nvml->driver[0] != '\0')
      printf (", \"driver\": \"%s\"", nvml->driver);
    printf (", \"versions\": \"%s\"", versions.c_str ());
  }

  /* Closes the line of a sample. */
  void
  tail (const Timing &t)
  {
    unsigned mhz = 0, mw = 0, c = 0;
    printf (", \"time_us\": %.4f, \"p10_us\": %.4f, \"p90_us\": %.4f, \"reps\": %d", t.median_us,
            t.p10_us, t.p90_us, t.reps);
    if (nvml->device != nullptr) {
      if (nvml->clock != nullptr && nvml->clock (nvml->device, 1, &mhz) == 0)
        printf (", \"clock_MHz\": %u", mhz);
      if (nvml->power != nullptr && nvml->power (nvml->device, &mw) == 0)
        printf (", \"power_W\": %.1f", mw * 1e-3);
      if (nvml->temperature != nullptr && nvml->temperature (nvml->device, 0, &c) == 0)
        printf (", \"temp_C\": %u", c);
    }
    printf ("}\n");
    fflush (stdout);
    samples++;
  }

  void
  end ()
  {
    if (left_out > 0) {
      head ("left_out");
      printf (", \"points\": %d, \"why\": \"the budget of %g minutes, or not supported\"}\n",
              left_out, minutes);
    }
    head ("end");
    printf (", \"samples\": %d}\n", samples);
  }

  /* Isolated: flush, run, one event pair each. */
  template <class F>
  Timing
  burst (F run, double seconds = 0.03, int most = 60)
  {
    std::vector<double> v;
    double until = now_s () + seconds;
    run (stream);
    CHECK (cudaStreamSynchronize (stream));
    while ((int)v.size () < most && (v.size () < 5 || now_s () < until)) {
      float ms = 0;
      CHECK (cudaMemsetAsync (flush, (int)v.size (), flush_bytes, stream));
      spin<<<1, 1, 0, stream>>> (20000);
      CHECK (cudaEventRecord (a, stream));
      run (stream);
      CHECK (cudaEventRecord (b, stream));
      CHECK (cudaEventSynchronize (b));
      CHECK (cudaEventElapsedTime (&ms, a, b));
      v.push_back (1e3 * ms);
    }
    return summary (v);
  }

  /* Back to back: batches of repeats long enough for the events, until so many seconds have gone;
   * the first half warms the part up and does not count. */
  template <class F>
  Timing
  sustained (F run, double seconds = 0.4)
  {
    std::vector<double> v;
    float ms = 0;
    run (stream);
    CHECK (cudaEventRecord (a, stream));
    run (stream);
    CHECK (cudaEventRecord (b, stream));
    CHECK (cudaEventSynchronize (b));
    CHECK (cudaEventElapsedTime (&ms, a, b));
    int batch = (int)std::min (1000.0, std::max (1.0, 3.0 / std::max ((double)ms, 1e-3)));
    double start = now_s ();
    while (v.size () < 5 || now_s () < start + seconds) {
      CHECK (cudaEventRecord (a, stream));
      for (int i = 0; i < batch; i++)
        run (stream);
      CHECK (cudaEventRecord (b, stream));
      CHECK (cudaEventSynchronize (b));
      CHECK (cudaEventElapsedTime (&ms, a, b));
      if (v.size () < 3 || now_s () > start + seconds / 2)
        v.push_back (1e3 * ms / batch);
    }
    if (v.size () > 6) /* the three of the warm-up */
      v.erase (v.begin (), v.begin () + 3);
    return summary (v);
  }
};

template <class T>
T *
device_random (size_t n, unsigned seed)
{
  T *p = nullptr;
  CHECK (cudaMalloc (&p, n * sizeof (T)));
  fill_random<<<1024, 256>>> (p, n, seed);
  CHECK (cudaGetLastError ());
  return p;
}

/* The i-th point of Halton's sequence in the given base: fills a space evenly from the start. */
inline double
halton (int i, int base)
{
  double f = 1, r = 0;
  for (; i > 0; i /= base) {
    f /= base;
    r += f * (i % base);
  }
  return r;
}

#endif
