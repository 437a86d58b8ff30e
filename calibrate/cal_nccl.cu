/* cal_nccl: every collective of NCCL, every algorithm and protocol, 8 B to 8 GiB: the samples of a
 * fabric. usage: cal_nccl [--minutes M] [--only-auto 1]            one process, all GPUs of this
 * node mpirun … cal_nccl …                                one process a GPU (built with MPI)
 *
 * First what NCCL chooses by itself, then each algorithm and protocol that it can be made to use;
 * of each operation the large and the small end come first. A time is that of the slowest rank.
 * Sums are checked. NCCL reads NCCL_ALGO and NCCL_PROTO when a communicator is made, so each
 * combination has its own. */
#include "cal_common.cuh"

#include <nccl.h>
#ifdef CAL_MPI
#include <mpi.h>
#endif

#define NC(call)                                                                                   \
  do {                                                                                             \
    ncclResult_t r_ = (call);                                                                      \
    if (r_ != ncclSuccess) {                                                                       \
      fprintf (stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, ncclGetErrorString (r_));     \
      exit (1);                                                                                    \
    }                                                                                              \
  } while (0)

enum Op { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, ALLTOALL, SENDRECV, OPS };
static const char *const op_names[] = {"all_reduce", "all_gather", "reduce_scatter",
                                       "broadcast",  "alltoall",   "sendrecv"};

/* One GPU that this process drives. */
struct Local {
  int gpu, rank;
  float *in, *out;
  ncclComm_t comm;
  cudaStream_t stream;
  cudaEvent_t a, b;
};

struct World {
  std::vector<Local> local;
  int ranks = 1, nodes = 1, process = 0;
  size_t most = 0; /* bytes of a buffer */
};

static double
slowest (double mine)
{
#ifdef CAL_MPI
  double all = mine;
  MPI_Allreduce (&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
#else
  return mine;
#endif
}

static void
barrier ()
{
#ifdef CAL_MPI
  MPI_Barrier (MPI_COMM_WORLD);
#endif
}

/* count: floats of the full buffer, as nccl-tests counts. */
static ncclResult_t
issue (const World &w, const Local &l, int op, size_t count)
{
  size_t part = count / (size_t)w.ranks;
  switch (op) {
  case ALL_REDUCE:
    return ncclAllReduce (l.in, l.out, count, ncclFloat, ncclSum, l.comm, l.stream);
  case ALL_GATHER:
    return ncclAllGather (l.in, l.out, part, ncclFloat, l.comm, l.stream);
  case REDUCE_SCATTER:
    return ncclReduceScatter (l.in, l.out, part, ncclFloat, ncclSum, l.comm, l.stream);
  case BROADCAST:
    return ncclBroadcast (l.in, l.out, count, ncclFloat, 0, l.comm, l.stream);
  case ALLTOALL:
    for (int p = 0; p < w.ranks; p++) {
      ncclResult_t r = ncclSend (l.in + p * part, part, ncclFloat, p, l.comm, l.stream);
      if (r == ncclSuccess)
        r = ncclRecv (l.out + p * part, part, ncclFloat, p, l.comm, l.stream);
      if (r != ncclSuccess)
        return r;
    }
    return ncclSuccess;
  default: { /* to the next, from the one before */
    ncclResult_t r = ncclSend (l.in, count, ncclFloat, (l.rank + 1) % w.ranks, l.comm, l.stream);
    return r != ncclSuccess ? r
                            : ncclRecv (l.out, count, ncclFloat, (l.rank + w.ranks - 1) % w.ranks,
                                        l.comm, l.stream);
  }
  }
}

static bool
run_once (const World &w, int op, size_t count)
{
  ncclResult_t bad = ncclSuccess, end;
  NC (ncclGroupStart ());
  for (const Local &l : w.local) {
    CHECK (cudaSetDevice (l.gpu));
    ncclResult_t r = issue (w, l, op, count);
    bad = bad == ncclSuccess ? r : bad;
  }
  end = ncclGroupEnd ();
  return bad == ncclSuccess && end == ncclSuccess;
}

static void
synchronise (const World &w)
{
  for (const Local &l : w.local) {
    CHECK (cudaSetDevice (l.gpu));
    CHECK (cudaStreamSynchronize (l.stream));
  }
}

/* Ones summed over the ranks are their number. */
static void
check (World &w)
{
  const size_t n = 1024;
  std::vector<float> one (n, 1), got (n);
  for (Local &l : w.local) {
    CHECK (cudaSetDevice (l.gpu));
    CHECK (cudaMemcpy (l.in, one.data (), n * sizeof (float), cudaMemcpyHostToDevice));
  }
  if (!run_once (w, ALL_REDUCE, n))
    return; /* this combination cannot: the sweep counts it as left out */
  synchronise (w);
  for (Local &l : w.local) {
    CHECK (cudaSetDevice (l.gpu));
    CHECK (cudaMemcpy (got.data (), l.out, n * sizeof (float), cudaMemcpyDeviceToHost));
    for (float f : got)
      if (f != (float)w.ranks) {
        fprintf (stderr, "cal_nccl: rank %d has %g for %d\n", l.rank, f, w.ranks);
        exit (1);
      }
    fill_random<<<256, 256>>> (l.in, w.most / sizeof (float), (unsigned)l.rank);
  }
  synchronise (w);
}

/* Times of one call of batch calls, the slowest GPU of the world each; empty when NCCL refuses. */
static std::vector<double>
time_calls (World &w, int op, size_t count, int repeats, int batch)
{
  std::vector<double> v;
  for (int i = 0; i < 3; i++)
    if (!run_once (w, op, count))
      return v;
  synchronise (w);
  for (int r = 0; r < repeats; r++) {
    barrier ();
    for (Local &l : w.local) {
      CHECK (cudaSetDevice (l.gpu));
      CHECK (cudaEventRecord (l.a, l.stream));
    }
    for (int i = 0; i < batch; i++)
      run_once (w, op, count);
    double longest = 0;
    for (Local &l : w.local) {
      CHECK (cudaSetDevice (l.gpu));
      CHECK (cudaEventRecord (l.b, l.stream));
    }
    synchronise (w);
    for (Local &l : w.local) {
      float ms = 0;
      CHECK (cudaEventElapsedTime (&ms, l.a, l.b));
      longest = std::max (longest, 1e3 * (double)ms / batch);
    }
    v.push_back (slowest (longest));
  }
  return v;
}

static void
point (Cal &c, World &w, int op, size_t bytes, const char *algo, const char *proto)
{
  bool spent = slowest (c.spent () ? 1 : 0) > 0; /* all ranks go on, or none */
  size_t count = bytes / sizeof (float) / (size_t)w.ranks * (size_t)w.ranks;
  if (spent || bytes > w.most || count == 0) {
    c.left_out++;
    return;
  }
  int batch = bytes < (1u << 20) ? 20 : 2;
  std::vector<double> v = time_calls (w, op, count, bytes < (1u << 28) ? 7 : 3, batch);
  if (v.empty ()) {
    c.left_out++;
    return;
  }
  int version = 0;
  NC (ncclGetVersion (&version));
  if (w.process != 0)
    return;
  c.head ("coll");
  printf (", \"op\": \"%s\", \"ranks\": %d, \"nodes\": %d, \"bytes\": %zu, \"nccl_version\": "
          "\"%d.%d.%d\"",
          op_names[op], w.ranks, w.nodes, count * sizeof (float), version / 10000,
          version / 100 % 100, version % 100);
  if (*algo != '\0' && op < ALLTOALL)
    printf (", \"algo\": \"%s\", \"proto\": \"%s\"", algo, proto);
  c.tail (summary (v));
}

static void
sweep (Cal &c, World &w, const char *algo, const char *proto)
{
  static const int order[] = {20, 26, 10, 30, 23, 14, 28, 17, 3, 32, 6, 24, 12, 29, 33, 18, 22, 8};
  for (int o : order)
    for (int op = 0; op < (*algo != '\0' ? (int)ALLTOALL : (int)OPS); op++) {
      if (*algo != '\0' && strstr (algo, "Tree") != nullptr && op != ALL_REDUCE)
        continue; /* trees reduce everywhere or not at all */
      if (strcmp (algo, "PAT") == 0 && op != ALL_GATHER && op != REDUCE_SCATTER)
        continue;
      point (c, w, op, (size_t)1 << o, algo, proto);
    }
}

/* FALSE when no communicator can be made with the environment as it is. */
static bool
connect (World &w)
{
#ifdef CAL_MPI
  ncclUniqueId id;
  if (w.process == 0)
    NC (ncclGetUniqueId (&id));
  MPI_Bcast (&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  CHECK (cudaSetDevice (w.local[0].gpu));
  return ncclCommInitRank (&w.local[0].comm, w.ranks, id, w.process) == ncclSuccess;
#else
  std::vector<int> gpus;
  std::vector<ncclComm_t> comms (w.local.size ());
  for (Local &l : w.local)
    gpus.push_back (l.gpu);
  if (ncclCommInitAll (comms.data (), (int)gpus.size (), gpus.data ()) != ncclSuccess)
    return false;
  for (size_t i = 0; i < comms.size (); i++)
    w.local[i].comm = comms[i];
  return true;
#endif
}

static void
with (Cal &c, World &w, const char *algo, const char *proto)
{
  if (*algo != '\0') {
    setenv ("NCCL_ALGO", algo, 1);
    setenv ("NCCL_PROTO", proto, 1);
  }
  if (slowest (connect (w) ? 0 : 1) > 0) {
    c.left_out++;
    return;
  }
  check (w);
  sweep (c, w, algo, proto);
  for (Local &l : w.local)
    ncclCommDestroy (l.comm);
}

static void
open_gpu (Cal &c, World &w, int gpu, int rank)
{
  Local l{};
  l.gpu = gpu;
  l.rank = rank;
  CHECK (cudaSetDevice (gpu));
  w.most = std::min ((size_t)8 << 30, c.prop.totalGlobalMem / 4);
  CHECK (cudaMalloc (&l.in, w.most));
  CHECK (cudaMalloc (&l.out, w.most));
  CHECK (cudaStreamCreate (&l.stream));
  CHECK (cudaEventCreate (&l.a));
  CHECK (cudaEventCreate (&l.b));
  w.local.push_back (l);
}

int
main (int argc, char **argv)
{
  World w;
  bool only_auto = false;
#ifdef CAL_MPI
  MPI_Init (&argc, &argv);
  MPI_Comm_rank (MPI_COMM_WORLD, &w.process);
  MPI_Comm_size (MPI_COMM_WORLD, &w.ranks);
#endif
  for (int i = 1; i + 1 < argc; i++)
    only_auto |= strcmp (argv[i], "--only-auto") == 0;
  Cal c (argc, argv, 1.0);
  int count = 0;
  CHECK (cudaGetDeviceCount (&count));
#ifdef CAL_MPI
  MPI_Comm node;
  int here = 0, here_rank = 0;
  MPI_Comm_split_type (MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size (node, &here);
  MPI_Comm_rank (node, &here_rank);
  w.nodes = w.ranks / here;
  open_gpu (c, w, here_rank % count, w.process);
#else
  w.ranks = count;
  for (int i = 0; i < count; i++)
    open_gpu (c, w, i, i);
#endif
  if (w.ranks < 2) {
    fprintf (stderr, "cal_nccl: one GPU: nothing to time\n");
  } else {
    static const char *const algos[] = {"Ring", "Tree", "NVLS", "NVLSTree", "PAT"};
    static const char *const protos[] = {"Simple", "LL", "LL128"};
    with (c, w, "", "");
    for (const char *algo : algos)
      for (const char *proto : protos)
        if (!only_auto && (algo[0] != 'N' || strcmp (proto, "Simple") == 0) &&
            (algo[0] != 'P' || strcmp (proto, "Simple") == 0))
          with (c, w, algo, proto);
  }
  if (w.process == 0)
    c.end ();
#ifdef CAL_MPI
  MPI_Finalize ();
#endif
  return 0;
}
