/* cal_launch: what a kernel costs beside its work: back-to-back launches on a stream and inside a
 * graph (interval of empty kernels), and the host's time to issue one. usage: cal_launch [--minutes
 * M] [--gpu I] */
#include "cal_common.cuh"

__global__ static void
k_empty (int *p)
{
  if (p != nullptr && threadIdx.x == 0)
    *p = 1;
}

static void
line (Cal &c, const char *how, const std::vector<double> &v)
{
  if (v.size () < 3) { /* the budget ended before: a median of nothing is no sample */
    c.left_out++;
    return;
  }
  c.head ("launch");
  printf (", \"how\": \"%s\"", how);
  c.tail (summary (v));
}

int
main (int argc, char **argv)
{
  Cal c (argc, argv, 0.1);
  enum { KERNELS = 1000, REPEATS = 15 };
  std::vector<double> by_stream, by_graph, by_host;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  float ms = 0;
  CHECK (cudaStreamBeginCapture (c.stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < KERNELS; i++)
    k_empty<<<1, 32, 0, c.stream>>> (nullptr);
  CHECK (cudaStreamEndCapture (c.stream, &graph));
  CHECK (cudaGraphInstantiate (&exec, graph, 0));
  for (int r = -2; r < REPEATS && !c.spent (); r++) {
    /* the device waits until all are queued, so that the interval is its own */
    spin<<<1, 1, 0, c.stream>>> (20000000);
    CHECK (cudaEventRecord (c.a, c.stream));
    double start = now_s ();
    for (int i = 0; i < KERNELS; i++)
      k_empty<<<1, 32, 0, c.stream>>> (nullptr);
    double issued = now_s () - start;
    CHECK (cudaEventRecord (c.b, c.stream));
    CHECK (cudaEventSynchronize (c.b));
    CHECK (cudaEventElapsedTime (&ms, c.a, c.b));
    if (r >= 0) {
      by_stream.push_back (1e3 * ms / KERNELS);
      by_host.push_back (1e6 * issued / KERNELS);
    }
    CHECK (cudaEventRecord (c.a, c.stream));
    CHECK (cudaGraphLaunch (exec, c.stream));
    CHECK (cudaEventRecord (c.b, c.stream));
    CHECK (cudaEventSynchronize (c.b));
    CHECK (cudaEventElapsedTime (&ms, c.a, c.b));
    if (r >= 0)
      by_graph.push_back (1e3 * ms / KERNELS);
  }
  CHECK (cudaGraphExecDestroy (exec));
  CHECK (cudaGraphDestroy (graph));
  line (c, "stream", by_stream);
  line (c, "graph", by_graph);
  line (c, "host", by_host);
  c.end ();
  return 0;
}
