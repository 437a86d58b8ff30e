/* cal_nccl: every collective of NCCL, every algorithm and protocol, 8 B to 8 GiB: the samples of a
 * fabric. usage: cal_nccl [--minutes M] [--only-auto 1]            one process, all GPUs of this
 * node mpirun … cal_nccl …                                one process a GPU (built with MPI)
 *
 * First what NCCL chooses by itself, then each algorithm and protocol that it can be made to use;
 * of each operation the large and the small end come first. A time is that of the slowest rank.
 * Every collective is checked by every algorithm and protocol. NCCL reads NCCL_ALGO and NCCL_PROTO
 * when a communicator is made, so each combination has its own. */
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

/* Those before ALLTOALL have algorithms; the others are made of messages. */
enum Op {
  ALL_REDUCE,
  ALL_GATHER,
  REDUCE_SCATTER,
  BROADCAST,
  REDUCE,
  ALLTOALL,
  SENDRECV,
  GATHER,
  SCATTER,
  OPS
};
static const char *const op_names[] = {"all_reduce", "all_gather", "reduce_scatter",
                                       "broadcast",  "reduce",     "alltoall",
                                       "sendrecv",   "gather",     "scatter"};

/* What can be asked for with NCCL_ALGO, and for which operations (bits of Op) and protocols. */
struct Algorithm {
  const char *name;
  unsigned ops;
  bool simple_only;
};
enum { SIZES = 18 };
enum { BIT_AR = 1 << ALL_REDUCE, BIT_AG = 1 << ALL_GATHER, BIT_RS = 1 << REDUCE_SCATTER };
static const Algorithm algorithms[] = {
    {"Ring", BIT_AR | BIT_AG | BIT_RS | 1 << BROADCAST | 1 << REDUCE, false},
    {"Tree", BIT_AR, false},
    {"NVLS", BIT_AR | BIT_AG | BIT_RS, true},
    {"NVLSTree", BIT_AR, true},
    {"PAT", BIT_AG | BIT_RS, true},
    {"CollNetDirect", BIT_AR | BIT_AG | BIT_RS, true},
    {"CollNetChain", BIT_AR, true},
};

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

/* Sends and receives of one part with every rank (alltoall), or with the first alone. */
static ncclResult_t
parts (const World &w, const Local &l, int op, size_t part)
{
  char *in = (char *)l.in, *out = (char *)l.out;
  ncclResult_t r = ncclSuccess;
  for (int p = 0; p < w.ranks && r == ncclSuccess; p++) {
    if (op == ALLTOALL || (op == SCATTER && l.rank == 0) || (op == GATHER && p == 0))
      r = ncclSend (in + (op == GATHER ? 0 : (size_t)p * part), part, ncclChar, p, l.comm,
                    l.stream);
    if (r == ncclSuccess &&
        (op == ALLTOALL || (op == GATHER && l.rank == 0) || (op == SCATTER && p == 0)))
      r = ncclRecv (out + (op == SCATTER ? 0 : (size_t)p * part), part, ncclChar, p, l.comm,
                    l.stream);
  }
  return r;
}

/* bytes of the full buffer, as nccl-tests counts. Sums are of floats; what is only moved is moved
 * as bytes, so that 8 of them can be shared by 8 ranks. */
static ncclResult_t
issue (const World &w, const Local &l, int op, size_t bytes)
{
  size_t part = bytes / (size_t)w.ranks, floats = bytes / sizeof (float);
  switch (op) {
  case ALL_REDUCE:
    return ncclAllReduce (l.in, l.out, floats, ncclFloat, ncclSum, l.comm, l.stream);
  case ALL_GATHER:
    return ncclAllGather (l.in, l.out, part, ncclChar, l.comm, l.stream);
  case REDUCE_SCATTER:
    return ncclReduceScatter (l.in, l.out, part / sizeof (float), ncclFloat, ncclSum, l.comm,
                              l.stream);
  case BROADCAST:
    return ncclBroadcast (l.in, l.out, bytes, ncclChar, 0, l.comm, l.stream);
  case REDUCE:
    return ncclReduce (l.in, l.out, floats, ncclFloat, ncclSum, 0, l.comm, l.stream);
  case SENDRECV: { /* to the next, from the one before */
    ncclResult_t r = ncclSend (l.in, bytes, ncclChar, (l.rank + 1) % w.ranks, l.comm, l.stream);
    return r != ncclSuccess ? r
                            : ncclRecv (l.out, bytes, ncclChar, (l.rank + w.ranks - 1) % w.ranks,
                                        l.comm, l.stream);
  }
  default:
    return parts (w, l, op, part);
  }
}

/* What an operation can be done on: whole floats for a sum, the same for every rank where it is cut
 * in parts. */
static size_t
usable (const World &w, int op, size_t bytes)
{
  size_t unit = op == ALL_REDUCE || op == REDUCE    ? sizeof (float)
                : op == BROADCAST || op == SENDRECV ? 1
                : op == REDUCE_SCATTER              ? sizeof (float) * (size_t)w.ranks
                                                    : (size_t)w.ranks;
  return bytes / unit * unit;
}

static bool
run_once (const World &w, int op, size_t bytes)
{
  ncclResult_t bad = ncclSuccess, end;
  NC (ncclGroupStart ());
  for (const Local &l : w.local) {
    CHECK (cudaSetDevice (l.gpu));
    ncclResult_t r = issue (w, l, op, bytes);
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

/* What rank holds at i before, and what it must hold at i after; -1: nothing that is said. All are
 * small whole numbers, so that sums are exact. n: floats of a full buffer. */
static float
held (int rank, size_t i)
{
  return (float)(rank % 64 + 1) + (float)(i % 7);
}

static float
wanted (const World &w, int op, int rank, size_t i, size_t n)
{
  size_t part = n / (size_t)w.ranks;
  float sum = 0;
  switch (op) {
  case ALL_REDUCE:
  case REDUCE:
  case REDUCE_SCATTER:
    if (op == REDUCE ? rank != 0 : op == REDUCE_SCATTER && i >= part)
      return -1;
    for (int p = 0; p < w.ranks; p++)
      sum += held (p, op == REDUCE_SCATTER ? (size_t)rank * part + i : i);
    return sum;
  case BROADCAST:
    return held (0, i);
  case SENDRECV:
    return held ((rank + w.ranks - 1) % w.ranks, i);
  case ALL_GATHER:
  case GATHER:
    return op == GATHER && rank != 0 ? -1 : held ((int)(i / part), i % part);
  case SCATTER:
    return i < part ? held (0, (size_t)rank * part + i) : -1;
  default: /* ALLTOALL */
    return held ((int)(i / part), (size_t)rank * part + i % part);
  }
}

/* One collective against what it is by definition. An algorithm that cannot do it is no error here:
 * the sweep counts it as left out. */
static void
check (World &w, int op, const char *algo)
{
  const size_t n = 256 * (size_t)w.ranks;
  std::vector<float> before (n), got (n);
  if (n * sizeof (float) > w.most)
    return;
  for (Local &l : w.local) {
    for (size_t i = 0; i < n; i++)
      before[i] = held (l.rank, i);
    CHECK (cudaSetDevice (l.gpu));
    CHECK (cudaMemcpy (l.in, before.data (), n * sizeof (float), cudaMemcpyHostToDevice));
    CHECK (cudaMemset (l.out, 0, n * sizeof (float)));
  }
  synchronise (w);
  if (!run_once (w, op, n * sizeof (float)))
    return;
  synchronise (w);
  for (Local &l : w.local) {
    CHECK (cudaSetDevice (l.gpu));
    CHECK (cudaMemcpy (got.data (), l.out, n * sizeof (float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < n; i++) {
      float want = wanted (w, op, l.rank, i, n);
      if (want >= 0 && got[i] != want) {
        fprintf (stderr, "cal_nccl: %s %s: rank %d has %g at %zu for %g\n", op_names[op], algo,
                 l.rank, (double)got[i], i, (double)want);
        exit (1);
      }
    }
  }
}

static void
fill (World &w)
{
  for (Local &l : w.local) {
    CHECK (cudaSetDevice (l.gpu));
    fill_random<<<256, 256>>> (l.in, w.most / sizeof (float), (unsigned)l.rank);
    CHECK (cudaGetLastError ());
  }
  synchronise (w);
}

/* Times of one call of batch calls, the slowest GPU of the world each; empty when NCCL refuses. */
static std::vector<double>
time_calls (World &w, int op, size_t bytes, int repeats, int batch)
{
  std::vector<double> v;
  for (int i = 0; i < 3; i++)
    if (!run_once (w, op, bytes))
      return v;
  synchronise (w);
  for (int r = 0; r < repeats; r++) {
    barrier ();
    for (Local &l : w.local) {
      CHECK (cudaSetDevice (l.gpu));
      CHECK (cudaEventRecord (l.a, l.stream));
    }
    for (int i = 0; i < batch; i++)
      run_once (w, op, bytes);
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
point (Cal &c, World &w, int op, size_t asked, const char *algo, const char *proto)
{
  bool spent = slowest (c.spent () ? 1 : 0) > 0; /* all ranks go on, or none */
  size_t bytes = usable (w, op, asked);
  if (spent || bytes > w.most || bytes == 0) {
    c.left_out++;
    return;
  }
  int batch = bytes < (1u << 20) ? 20 : 2;
  std::vector<double> v = time_calls (w, op, bytes, bytes < (1u << 28) ? 7 : 3, batch);
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
          op_names[op], w.ranks, w.nodes, bytes, version / 10000, version / 100 % 100,
          version % 100);
  if (*algo != '\0' && op < ALLTOALL)
    printf (", \"algo\": \"%s\", \"proto\": \"%s\"", algo, proto);
  c.tail (summary (v));
}

/* ops: bits of Op. */
static void
sweep (Cal &c, World &w, unsigned ops, const char *algo, const char *proto)
{
  static const int order[SIZES] = {20, 26, 10, 30, 23, 14, 28, 17, 3,
                                   32, 6,  24, 12, 29, 33, 18, 22, 8};
  for (int op = 0; op < (int)OPS; op++)
    if ((ops >> op & 1) != 0)
      check (w, op, algo);
  fill (w);
  for (int o : order)
    for (int op = 0; op < (int)OPS; op++)
      if ((ops >> op & 1) != 0)
        point (c, w, op, (size_t)1 << o, algo, proto);
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
with (Cal &c, World &w, unsigned ops, const char *algo, const char *proto)
{
  if (slowest (c.spent () ? 1 : 0) > 0) { /* a communicator takes a second to make */
    c.left_out += SIZES * __builtin_popcount (ops);
    return;
  }
  if (*algo != '\0') {
    setenv ("NCCL_ALGO", algo, 1);
    setenv ("NCCL_PROTO", proto, 1);
  }
  if (slowest (connect (w) ? 0 : 1) > 0) {
    c.left_out += SIZES * __builtin_popcount (ops);
    return;
  }
  sweep (c, w, ops, algo, proto);
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
    static const char *const protos[] = {"Simple", "LL", "LL128"};
    with (c, w, (1u << OPS) - 1, "", "");
    for (const Algorithm &a : algorithms)
      for (const char *proto : protos)
        if (!only_auto && (!a.simple_only || strcmp (proto, "Simple") == 0))
          with (c, w, a.ops, a.name, proto);
  }
  if (w.process == 0)
    c.end ();
#ifdef CAL_MPI
  MPI_Finalize ();
#endif
  return 0;
}
