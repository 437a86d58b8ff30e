/* bench_coll: one ring all-reduce over 4,096 GPUs (512 nodes of 8, rail-optimised Clos, one
 * channel) at each fidelity, building the plan included; with ranks that join 0 to 5 ms late; and a
 * cluster of 131,072 GPUs with an eight-channel ring over all of them. Processor time. Exit status
 * 1 when flow takes over 20 ms, the 33.5 million transfers of step over 20 s or 1 GiB, or jitter
 * more than doubles that. BENCH_QUICK=1 runs 1,024 GPUs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "coll_plan.h"
#include "rng.h"

#define GB 1e9

/* Processor time of this process: on a machine with other work, wall time says little. */
static double
now_s (void)
{
  struct rusage u;
  getrusage (RUSAGE_SELF, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static double
peak_MiB (void)
{
  struct rusage u;
  getrusage (RUSAGE_SELF, &u);
  return (double)u.ru_maxrss / 1024;
}

static Topo *
make (guint32 nodes)
{
  TopoNodeSpec n = {.gpus = 8,
                    .numa = 2,
                    .pcie_switches = 8,
                    .nics = 8,
                    .scale_up = TOPO_UP_NVSWITCH,
                    .nvlink_Bps = 450 * GB,
                    .pcie_Bps = 63 * GB};
  g_autoptr (TopoDesc) d = topo_node_build (&n, NULL);
  TopoSpec s = {.node = d,
                .nodes = nodes,
                .net = nodes > 1024 ? TOPO_NET_CLOS3 : TOPO_NET_LEAF_SPINE,
                .rail_optimised = TRUE,
                .nic_Bps = 50 * GB,
                .leaf_ports = 32,
                .spine_ports = nodes > 1024 ? 32 : 256,
                .pod_leaves = 8,
                .core_ports = 512};
  g_autoptr (GError) error = NULL;
  Topo *t = topo_new (&s, &error);
  if (!t) {
    fprintf (stderr, "bench_coll: %s\n", error->message);
    exit (1);
  }
  return t;
}

static CollPlan *
make_plan (Topo *t, guint32 n, int channels, gboolean steps)
{
  g_autofree guint32 *gpu = g_new (guint32, n);
  for (guint32 r = 0; r < n; r++)
    gpu[r] = r;
  CollPlanSpec s = {.topo = t,
                    .gpu = gpu,
                    .n = n,
                    .op = COLL_ALL_REDUCE,
                    .bytes = (gint64)n << 20,
                    .channels = channels,
                    .route = {.mode = TOPO_ROUTE_ECMP, .seed = 1, .nic = -1},
                    .costs = {.base_s = 10e-6, .hop_s = 2e-6, .net_hop_s = 2e-6},
                    .steps = steps};
  g_autoptr (GError) error = NULL;
  CollPlan *p = coll_plan_new (&s, &error);
  if (!p) {
    fprintf (stderr, "bench_coll: %s\n", error->message);
    exit (1);
  }
  return p;
}

static void
on_done (gpointer self, guint64 arg, SimTime when)
{
  (void)arg;
  *(SimTime *)self = when;
}

/* Processor seconds; *end: the simulated date. */
static double
run (Topo *t, guint32 n, CollFidelity f, const SimTime *offset, SimTime *end)
{
  double t0 = now_s ();
  g_autoptr (CollPlan) p = make_plan (t, n, 1, f == COLL_STEP);
  SimOptions o = {.ticks_per_s = SIM_TICKS_PS};
  g_autoptr (SimEngine) eng = sim_engine_new (&o);
  g_autoptr (Net) net = net_flow_new (eng, topo_n_links (t), topo_link_caps (t));
  g_autoptr (GError) error = NULL;
  *end = -1;
  coll_run_start (net, p, f, offset, on_done, end, 0);
  if (!sim_engine_run (eng, &error)) {
    fprintf (stderr, "bench_coll: %s\n", error->message);
    exit (1);
  }
  return now_s () - t0;
}

static void
big (void)
{
  double t0 = now_s ();
  g_autoptr (Topo) t = make (16384);
  double t1 = now_s ();
  g_autoptr (CollPlan) p = make_plan (t, 131072, 0, FALSE);
  double t2 = now_s ();
  printf (
      "topo    131,072 GPUs, %u links, %u switches: built in %.2f s; ring of %u channels over all "
      "planned in %.2f s; peak %.0f MiB\n",
      topo_n_links (t), topo_n_switches (t), t1 - t0, p->channels->len, t2 - t1, peak_MiB ());
}

int
main (void)
{
  guint32 n = g_getenv ("BENCH_QUICK") ? 1024 : 4096;
  g_autoptr (Topo) t = make (n / 8);
  g_autofree SimTime *offset = g_new (SimTime, n);
  SimRng r = sim_rng_stream (1, 0, "bench.coll", 0);
  for (guint32 i = 0; i < n; i++)
    offset[i] = (SimTime)sim_rng_below (&r, 5000000000);
  SimTime end[4];
  double analytic = run (t, n, COLL_ANALYTIC, NULL, &end[0]);
  double flow = run (t, n, COLL_FLOW, NULL, &end[1]);
  double step = run (t, n, COLL_STEP, NULL, &end[2]);
  double mem = peak_MiB ();
  double jitter = run (t, n, COLL_STEP, offset, &end[3]);
  printf (
      "ring    %u GPUs: analytic %.1f ms, flow %.1f ms, step %.1f s (%.1f M transfers, %.1f M/s), "
      "with 0-5 ms jitter %.1f s; peak %.0f MiB; simulated %.3f %.3f %.3f %.3f ms\n",
      n, analytic * 1e3, flow * 1e3, step, 2.0 * n * (n - 1) * 1e-6,
      2.0 * n * (n - 1) * 1e-6 / step, jitter, mem, (double)end[0] / 1e9, (double)end[1] / 1e9,
      (double)end[2] / 1e9, (double)end[3] / 1e9);
  big ();
  return flow > 0.020 || step > 20 || mem > 1024 || jitter > 2 * step;
}
