/* cal_mpi: timings of collectives over MPI, as JSON lines. Run by mpirun, one rank a node or
 * several. usage: cal_mpi [--op all_reduce|sendrecv] [--algo ring|doubling|mpi] [--nodes N]
 * [--sizes 1,4,16]
 *                [--reps R] [--name DEVICE]
 *
 * ring, doubling: all-reduces written out with point-to-point messages (reduce-scatter and gather
 * round a ring; pairwise exchange of everything, log2 n times); mpi: the library's own. Sizes in
 * MiB. The result of the first call of each size is checked. A time is that of the slowest rank;
 * the line has the median of the repeats. Rank r is on node r / (ranks / nodes). */
#include "cal_priority.h"

#include <glib.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
  const char *op, *algo, *name;
  char versions[80];
  int rank, ranks, nodes, reps;
  float *data, *in;
} Cal;

static void
add (float *to, const float *more, long n)
{
  for (long i = 0; i < n; i++)
    to[i] += more[i];
}

/* Chunk i of n floats over r ranks. */
static long
bound (long n, int ranks, int i)
{
  return n * i / ranks;
}

/* 2(r-1) steps; each rank sends one chunk to the next while one comes from the one before. */
static void
ring (Cal *c, long n)
{
  int r = c->ranks, next = (c->rank + 1) % r, before = (c->rank + r - 1) % r;
  for (int s = 0; s < 2 * (r - 1); s++) {
    int reduce = s < r - 1;
    int out = (c->rank - s + (reduce ? 0 : 1) + (s >= r - 1 ? r - 1 : 0) + 4 * r) % r;
    int in = (out + r - 1) % r;
    long from = bound (n, r, out), to = bound (n, r, in), n_in = bound (n, r, in + 1) - to;
    MPI_Request q[2];
    float *where = reduce ? c->in : c->data + to;
    MPI_Irecv (where, (int)n_in, MPI_FLOAT, before, s, MPI_COMM_WORLD, &q[0]);
    MPI_Isend (c->data + from, (int)(bound (n, r, out + 1) - from), MPI_FLOAT, next, s,
               MPI_COMM_WORLD, &q[1]);
    MPI_Waitall (2, q, MPI_STATUSES_IGNORE);
    if (reduce)
      add (c->data + to, c->in, n_in);
  }
}

/* Ranks a power of two. */
static void
doubling (Cal *c, long n)
{
  for (int bit = 1; bit < c->ranks; bit *= 2) {
    int peer = c->rank ^ bit;
    MPI_Request q[2];
    MPI_Irecv (c->in, (int)n, MPI_FLOAT, peer, bit, MPI_COMM_WORLD, &q[0]);
    MPI_Isend (c->data, (int)n, MPI_FLOAT, peer, bit, MPI_COMM_WORLD, &q[1]);
    MPI_Waitall (2, q, MPI_STATUSES_IGNORE);
    add (c->data, c->in, n);
  }
}

/* One message each way between rank i and its partner in the other half. */
static void
sendrecv (Cal *c, long n)
{
  int half = c->ranks / 2, peer = c->rank < half ? c->rank + half : c->rank - half;
  MPI_Request q[2];
  MPI_Irecv (c->in, (int)n, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, &q[0]);
  MPI_Isend (c->data, (int)n, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, &q[1]);
  MPI_Waitall (2, q, MPI_STATUSES_IGNORE);
}

static void
fill (Cal *c, long n)
{
  for (long i = 0; i < n; i++)
    c->data[i] = (float)(c->rank + 1) + (float)(i % 5);
}

static void
once (Cal *c, long n)
{
  if (strcmp (c->op, "sendrecv") == 0)
    sendrecv (c, n);
  else if (strcmp (c->algo, "ring") == 0)
    ring (c, n);
  else if (strcmp (c->algo, "doubling") == 0)
    doubling (c, n);
  else
    MPI_Allreduce (MPI_IN_PLACE, c->data, (int)n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void
check (Cal *c, long n)
{
  float sum = (float)c->ranks * (float)(c->ranks + 1) / 2;
  for (long i = 0; i < n && strcmp (c->op, "sendrecv") != 0; i++)
    if (c->data[i] != sum + (float)c->ranks * (float)(i % 5)) {
      fprintf (stderr, "cal_mpi: rank %d has a wrong sum at %ld\n", c->rank, i);
      MPI_Abort (MPI_COMM_WORLD, 1);
    }
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void
measure (Cal *c, double mib, const char *date)
{
  enum { MOST = 64 };
  double t[MOST];
  long n = (long)(mib * 1048576.0 / sizeof (float));
  int reps = c->reps < MOST ? c->reps : MOST;
  c->data = g_new (float, (gsize)n);
  c->in = g_new (float, (gsize)n);
  for (int i = -1; i < reps; i++) {
    double mine, longest;
    fill (c, n);
    MPI_Barrier (MPI_COMM_WORLD);
    mine = MPI_Wtime ();
    once (c, n);
    mine = MPI_Wtime () - mine;
    MPI_Allreduce (&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (i < 0)
      check (c, n);
    else
      t[i] = longest;
  }
  qsort (t, (size_t)reps, sizeof *t, compare);
  if (c->rank == 0) {
    /* the exchange of everything is made of messages: it is no algorithm of the fabric's formulas
     */
    int messages = strcmp (c->op, "sendrecv") == 0;
    printf ("{\"kind\": \"coll\", \"device\": \"%s\", \"date\": \"%s\", \"versions\": \"%s\", "
            "\"op\": \"%s\", %s"
            "\"ranks\": %d, \"nodes\": %d, \"bytes\": %.0f, \"library\": \"Open MPI, %s\", "
            "\"time_us\": %.1f, \"p10_us\": %.1f, \"p90_us\": %.1f, \"reps\": %d}\n",
            c->name, date, c->versions, c->op,
            messages ? "" : "\"algo\": \"Ring\", \"proto\": \"Simple\", ", c->ranks, c->nodes,
            (double)n * sizeof (float), c->algo, t[reps / 2] * 1e6, t[reps / 10] * 1e6,
            t[reps * 9 / 10] * 1e6, reps);
    fflush (stdout);
  }
  g_free (c->data);
  g_free (c->in);
}

/* "Open MPI v4.1.4": what the library says of itself, up to the first comma. */
static void
name_version (char *out, size_t n)
{
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int len = 0;
  MPI_Get_library_version (text, &len);
  text[strcspn (text, ",\n\"\\")] = '\0';
  snprintf (out, n, "%.70s", text);
}

int
main (int argc, char **argv)
{
  Cal c = {.op = "all_reduce", .algo = "mpi", .name = "netns", .reps = 5};
  char sizes[256] = "1,4", date[16], *at = sizes;
  time_t now = time (NULL);
  int samples = 0;
  cal_priority ();
  MPI_Init (&argc, &argv);
  MPI_Comm_rank (MPI_COMM_WORLD, &c.rank);
  MPI_Comm_size (MPI_COMM_WORLD, &c.ranks);
  c.nodes = c.ranks;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp (argv[i], "--op") == 0)
      c.op = argv[i + 1];
    else if (strcmp (argv[i], "--algo") == 0)
      c.algo = argv[i + 1];
    else if (strcmp (argv[i], "--name") == 0)
      c.name = argv[i + 1];
    else if (strcmp (argv[i], "--nodes") == 0)
      c.nodes = (int)g_ascii_strtod (argv[i + 1], NULL);
    else if (strcmp (argv[i], "--reps") == 0)
      c.reps = (int)g_ascii_strtod (argv[i + 1], NULL);
    else if (strcmp (argv[i], "--sizes") == 0)
      snprintf (sizes, sizeof sizes, "%s", argv[i + 1]);
  }
  name_version (c.versions, sizeof c.versions);
  strftime (date, sizeof date, "%Y-%m-%d", gmtime (&now));
  if (c.ranks < 2 || c.nodes < 1 || c.ranks % c.nodes != 0 || c.reps < 1 ||
      (strcmp (c.algo, "doubling") == 0 && (c.ranks & (c.ranks - 1)) != 0)) {
    fprintf (stderr, "cal_mpi: ranks, nodes and algorithm do not go together\n");
    MPI_Abort (MPI_COMM_WORLD, 2);
  }
  for (char *part; (part = strsep (&at, ",")) != NULL; samples++)
    measure (&c, g_ascii_strtod (part, NULL), date);
  if (c.rank == 0)
    printf ("{\"kind\": \"end\", \"device\": \"%s\", \"samples\": %d}\n", c.name, samples);
  MPI_Finalize ();
  return 0;
}
