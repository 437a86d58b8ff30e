/* cal_overlap_coll: what a GEMM costs beside an all-reduce of NCCL, and the reverse, on all GPUs of
 * this node at once, as in a training step. usage: cal_overlap_coll [--minutes M]
 *
 * A stream for GEMMs and one for NCCL on each GPU; a time is that of the slowest GPU. The work
 * beside goes on until what is measured has ended, else the repeat does not count. The sum of the
 * all-reduce is checked first. With one GPU it says so and prints an empty set. */
#include "cal_overlap.cuh"

#include <nccl.h>

#define NC(call)                                                                                   \
  do {                                                                                             \
    ncclResult_t r_ = (call);                                                                      \
    if (r_ != ncclSuccess) {                                                                       \
      fprintf (stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, ncclGetErrorString (r_));     \
      exit (1);                                                                                    \
    }                                                                                              \
  } while (0)

struct Gpu {
  int id;
  Square *gemm;
  ncclComm_t comm;
  float *in, *out;
  cudaStream_t compute, network;
  cudaEvent_t start, stop, ended; /* of what is measured; of what is beside */
};

struct Node {
  std::vector<Gpu> gpu;
  size_t count = 0; /* floats of the all-reduce */
};

enum { GEMMS = 8 };

static void
gemms (Node &n)
{
  for (Gpu &g : n.gpu) {
    CHECK (cudaSetDevice (g.id));
    for (int i = 0; i < GEMMS; i++)
      g.gemm->run (g.compute);
  }
}

static void
all_reduce (Node &n)
{
  NC (ncclGroupStart ());
  for (Gpu &g : n.gpu)
    NC (ncclAllReduce (g.in, g.out, n.count, ncclFloat, ncclSum, g.comm, g.network));
  NC (ncclGroupEnd ());
}

static void
synchronise (Node &n)
{
  for (Gpu &g : n.gpu) {
    CHECK (cudaSetDevice (g.id));
    CHECK (cudaDeviceSynchronize ());
  }
}

static void
open_node (Node &n, int count)
{
  std::vector<int> ids;
  std::vector<ncclComm_t> comms ((size_t)count);
  n.count = (size_t)64 << 20;
  for (int i = 0; i < count; i++) {
    Gpu g{};
    g.id = i;
    CHECK (cudaSetDevice (i));
    g.gemm = new Square (8192);
    g.in = device_random<float> (n.count, 7);
    g.out = device_random<float> (n.count, 8);
    CHECK (cudaStreamCreateWithFlags (&g.compute, cudaStreamNonBlocking));
    CHECK (cudaStreamCreateWithFlags (&g.network, cudaStreamNonBlocking));
    for (cudaEvent_t *e : {&g.start, &g.stop, &g.ended})
      CHECK (cudaEventCreate (e));
    n.gpu.push_back (g);
    ids.push_back (i);
  }
  NC (ncclCommInitAll (comms.data (), count, ids.data ()));
  for (size_t i = 0; i < comms.size (); i++)
    n.gpu[i].comm = comms[i];
}

/* All ranks hold the same, so a sum is so many times as much. */
static void
check (Node &n)
{
  std::vector<float> in (4096), out (4096);
  all_reduce (n);
  synchronise (n);
  for (Gpu &g : n.gpu) {
    CHECK (cudaSetDevice (g.id));
    CHECK (cudaMemcpy (in.data (), g.in, in.size () * sizeof (float), cudaMemcpyDeviceToHost));
    CHECK (cudaMemcpy (out.data (), g.out, out.size () * sizeof (float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < in.size (); i++) {
      float e = out[i] - in[i] * (float)n.gpu.size ();
      if (!(e < 1e-4f && e > -1e-4f)) {
        fprintf (stderr, "cal_overlap_coll: GPU %d has a wrong sum\n", g.id);
        exit (1);
      }
    }
  }
}

/* network: the all-reduce is measured beside GEMMs, else the reverse; times 0: alone. */
static Timing
timed (Node &n, bool network, int times)
{
  std::vector<double> v;
  for (int r = -2; r < 9; r++) {
    double longest = 0, least_after = 1;
    for (int i = 0; i < times; i++)
      network ? gemms (n) : all_reduce (n);
    for (Gpu &g : n.gpu) {
      cudaStream_t s = network ? g.network : g.compute;
      CHECK (cudaSetDevice (g.id));
      CHECK (cudaEventRecord (g.ended, network ? g.compute : g.network));
      spin<<<1, 1, 0, s>>> (4000000); /* until the last GPU has its work too */
      CHECK (cudaEventRecord (g.start, s));
    }
    network ? all_reduce (n) : gemms (n);
    for (Gpu &g : n.gpu) {
      CHECK (cudaSetDevice (g.id));
      CHECK (cudaEventRecord (g.stop, network ? g.network : g.compute));
    }
    synchronise (n);
    for (Gpu &g : n.gpu) {
      float ms = 0, after = 0;
      CHECK (cudaSetDevice (g.id));
      CHECK (cudaEventElapsedTime (&ms, g.start, g.stop));
      CHECK (cudaEventElapsedTime (&after, g.stop, g.ended));
      longest = std::max (longest, 1e3 * (double)ms);
      least_after = std::min (least_after, (double)after);
    }
    if (r >= 0 && (times == 0 || least_after > 0))
      v.push_back (longest);
  }
  return summary (v);
}

int
main (int argc, char **argv)
{
  Cal c (argc, argv, 0.2);
  Node n;
  int count = 0, version = 0;
  CHECK (cudaGetDeviceCount (&count));
  if (count < 2) {
    fprintf (stderr, "cal_overlap_coll: one GPU: no collective to run beside\n");
    c.end ();
    return 0;
  }
  NC (ncclGetVersion (&version));
  c.versions +=
      ", cuBLASLt " + std::to_string (cublasLtGetVersion ()) + ", NCCL " + std::to_string (version);
  open_node (n, count);
  check (n);
  double gemm = timed (n, false, 0).median_us, coll = timed (n, true, 0).median_us;
  std::string on = " on " + std::to_string (count) + " GPUs";
  if (c.spent ())
    c.left_out += 2;
  else {
    print_overlap (c, "gemm beside all_reduce" + on, gemm,
                   timed (n, false, times_to_outlast (gemm, coll)));
    print_overlap (c, "all_reduce beside gemm" + on, coll,
                   timed (n, true, times_to_outlast (coll, gemm)));
  }
  for (Gpu &g : n.gpu)
    ncclCommDestroy (g.comm);
  c.end ();
  return 0;
}
