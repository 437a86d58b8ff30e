/* test_coll_plan: plans against closed forms, and the three fidelities against each other. */
#include "coll_cost.h"
#include "coll_plan.h"
#include "fabric.h"
#include "rng.h"

#include <math.h>
#include <string.h>

#define GB  1e9
#define MIB ((gint64)1 << 20)

typedef struct {
  int gpus, nics, hosts;
  TopoScaleUp up;
  guint32 nodes;
  TopoNetKind net;
  double leaf_oversub;
} Shape;

static Topo *
make (Shape x)
{
  TopoNodeSpec n = {.name = "node",
                    .hosts = x.hosts,
                    .gpus = x.gpus,
                    .numa = 1,
                    .pcie_switches = x.nics,
                    .nics = x.nics,
                    .scale_up = x.up,
                    .nvlink_Bps = x.up == TOPO_UP_MESH ? 25 * GB : 450 * GB,
                    .mesh = topo_mesh_dgx1_v100,
                    .n_mesh = topo_mesh_dgx1_v100_n,
                    .pcie_Bps = 64 * GB};
  g_autoptr (GError) error = NULL;
  g_autoptr (TopoDesc) d = topo_node_build (&n, &error);
  g_assert_no_error (error);
  TopoSpec s = {.node = d,
                .nodes = x.nodes,
                .net = x.net,
                .rail_optimised = TRUE,
                .nic_Bps = 50 * GB,
                .leaf_ports = 4,
                .spine_ports = 16,
                .pod_leaves = 8,
                .core_ports = 64,
                .leaf_oversub = x.leaf_oversub};
  Topo *t = topo_new (&s, &error);
  g_assert_no_error (error);
  return t;
}

static const Shape dgx8 = {8, 8, 1, TOPO_UP_NVSWITCH, 8, TOPO_NET_LEAF_SPINE, 1};

static CollPlan *
plan_at (Topo *t, CollOp op, PlanAlgo algo, guint32 n, gint64 bytes, const CollCosts *c)
{
  g_autofree guint32 *gpu = g_new (guint32, n);
  for (guint32 r = 0; r < n; r++)
    gpu[r] = r;
  CollPlanSpec s = {.topo = t,
                    .gpu = gpu,
                    .n = n,
                    .op = op,
                    .algo = algo,
                    .bytes = bytes,
                    .route = {.mode = TOPO_ROUTE_ADAPTIVE, .nic = -1},
                    .steps = TRUE};
  if (c)
    s.costs = *c;
  g_autoptr (GError) error = NULL;
  CollPlan *p = coll_plan_new (&s, &error);
  g_assert_no_error (error);
  return p;
}

static void
on_done (gpointer self, guint64 arg, SimTime when)
{
  ((SimTime *)self)[arg] = when;
}

/* Plans at once on one net; ends by plan. */
static void
run_many (const CollPlan *const *p, guint n, CollFidelity f, const SimTime *offset, SimTime *end)
{
  SimOptions o = {.ticks_per_s = SIM_TICKS_PS};
  g_autoptr (SimEngine) eng = sim_engine_new (&o);
  const Topo *t = p[0]->topo;
  g_autoptr (Net) net = net_flow_new (eng, topo_n_links (t), topo_link_caps (t));
  g_autoptr (GError) error = NULL;
  for (guint i = 0; i < n; i++)
    coll_run_start (net, p[i], f, offset, on_done, end, i);
  g_assert_true (sim_engine_run (eng, &error));
  g_assert_no_error (error);
}

static SimTime
run_one (const CollPlan *p, CollFidelity f)
{
  SimTime end = -1;
  run_many (&p, 1, f, NULL, &end);
  return end;
}

/* 2 (n-1)/n S / B + base + 2 (n-1) hop, and the same for gather and scatter with half. */
static void
test_ring_one_node (void)
{
  g_autoptr (Topo) t = make (dgx8);
  CollCosts c = {.base_s = 10e-6, .hop_s = 2e-6};
  for (int op = COLL_ALL_REDUCE; op <= COLL_REDUCE_SCATTER; op++) {
    g_autoptr (CollPlan) p = plan_at (t, (CollOp)op, PLAN_RING, 8, 64 * MIB, &c);
    double k = op == COLL_ALL_REDUCE ? 14 : 7;
    double want = 10e-6 + k * 2e-6 + k / 8 * (double)(64 * MIB) / (450 * GB);
    g_assert_cmpfloat_with_epsilon (coll_plan_time_s (p), want, 1e-15);
    SimTime ticks = (SimTime)llround (want * SIM_TICKS_PS);
    g_assert_cmpint (ABS (run_one (p, COLL_ANALYTIC) - ticks), <=, 1);
    g_assert_cmpint (ABS (run_one (p, COLL_FLOW) - run_one (p, COLL_ANALYTIC)), <=, 1);
    g_assert_cmpint (ABS (run_one (p, COLL_STEP) - ticks), <=, (gint64)k); /* half a tick a slot */
  }
}

/* Bytes out of a node over its NICs per byte of the buffer: the bus factor of the group of n for
 * rings; at most 1, 1.5, 2 for trees over 2, 3, more nodes (an inner node sends half the buffer up
 * and to each of its two children, and as a leaf of the other tree up); 1 in the network. */
static double
node_out (const Topo *t, const CollPlan *p, guint32 node)
{
  double sum = 0;
  for (int k = 0; k < 8; k++)
    sum += coll_plan_link_bytes (p, topo_nic_link (t, node, k, 0, TRUE));
  return sum / (double)p->bytes;
}

static void
test_bytes (void)
{
  g_autoptr (Topo) t = make (dgx8);
  for (guint32 nodes = 2; nodes <= 8; nodes++) {
    guint32 n = 8 * nodes;
    for (int op = COLL_ALL_REDUCE; op <= COLL_REDUCE_SCATTER; op++) {
      g_autoptr (CollPlan) p = plan_at (t, (CollOp)op, PLAN_RING, n, 64 * MIB, NULL);
      for (guint32 i = 0; i < nodes; i++)
        g_assert_cmpfloat_with_epsilon (node_out (t, p, i), coll_bus_factor ((CollOp)op, (int)n),
                                        1e-12);
    }
    g_autoptr (CollPlan) tree = plan_at (t, COLL_ALL_REDUCE, PLAN_TREE, n, 64 * MIB, NULL);
    g_autoptr (CollPlan) nvls = plan_at (t, COLL_ALL_REDUCE, PLAN_NVLSTREE, n, 64 * MIB, NULL);
    g_autoptr (CollPlan) sharp =
        plan_at (t, COLL_ALL_REDUCE, PLAN_COLLNET_DIRECT, n, 64 * MIB, NULL);
    g_autoptr (CollPlan) all = plan_at (t, COLL_ALLTOALL, PLAN_PAIRS, n, 64 * MIB, NULL);
    double most = 0, sum = 0;
    for (guint32 i = 0; i < nodes; i++) {
      most = MAX (most, node_out (t, tree, i));
      sum += node_out (t, tree, i);
      g_assert_cmpfloat_with_epsilon (node_out (t, tree, i), node_out (t, nvls, i), 1e-12);
      g_assert_cmpfloat_with_epsilon (node_out (t, sharp, i), 1, 1e-12);
      g_assert_cmpfloat_with_epsilon (node_out (t, all, i), 8.0 * (n - 8) / n, 1e-9);
    }
    g_assert_cmpfloat_with_epsilon (most, nodes == 2 ? 1 : nodes == 3 ? 1.5 : 2, 1e-12);
    g_assert_cmpfloat_with_epsilon (sum, 2.0 * (nodes - 1), 1e-12); /* N-1 edges, both ways */
  }
}

/* The net carries just what the plan says, whatever the fidelity. */
static void
test_bytes_delivered (void)
{
  g_autoptr (Topo) t = make (dgx8);
  g_autoptr (CollPlan) p = plan_at (t, COLL_ALL_REDUCE, PLAN_RING, 16, 64 * MIB, NULL);
  for (int f = COLL_FLOW; f <= COLL_STEP; f++) {
    SimOptions o = {.ticks_per_s = SIM_TICKS_PS};
    g_autoptr (SimEngine) eng = sim_engine_new (&o);
    g_autoptr (Net) net = net_flow_new (eng, topo_n_links (t), topo_link_caps (t));
    SimTime end;
    coll_run_start (net, p, (CollFidelity)f, NULL, on_done, &end, 0);
    g_assert_true (sim_engine_run (eng, NULL));
    for (guint32 l = 0; l < topo_n_links (t); l++)
      g_assert_cmpfloat_with_epsilon (net_link_bytes (net, l), coll_plan_link_bytes (p, l), 64);
  }
}

/* flow = analytic to one tick alone; step between flow and flow + K (max hop - mean hop) + filling
 * of the pipeline (depth at most n + 2 slots on the slowest link). */
static void
test_fidelities (void)
{
  static const struct {
    CollOp op;
    PlanAlgo algo;
    guint32 least;
  } x[] = {{COLL_ALL_REDUCE, PLAN_RING, 2},
           {COLL_ALL_GATHER, PLAN_RING, 2},
           {COLL_REDUCE_SCATTER, PLAN_RING, 2},
           {COLL_BROADCAST, PLAN_RING, 2},
           {COLL_ALL_REDUCE, PLAN_TREE, 2},
           {COLL_ALL_REDUCE, PLAN_NVLSTREE, 16},
           {COLL_ALL_REDUCE, PLAN_COLLNET_DIRECT, 16},
           {COLL_ALL_REDUCE, PLAN_COLLNET_CHAIN, 16},
           {COLL_ALL_GATHER, PLAN_PAT, 16},
           {COLL_REDUCE_SCATTER, PLAN_PAT, 16},
           {COLL_ALL_REDUCE, PLAN_HIERARCHICAL, 8},
           {COLL_ALL_GATHER, PLAN_HIERARCHICAL, 8},
           {COLL_REDUCE_SCATTER, PLAN_HIERARCHICAL, 8},
           {COLL_BROADCAST, PLAN_HIERARCHICAL, 8},
           {COLL_ALLTOALL, PLAN_HIERARCHICAL, 8},
           {COLL_ALLTOALL, PLAN_PAIRS, 2},
           {COLL_SENDRECV, PLAN_PAIRS, 2}};
  g_autoptr (Topo) t = make (dgx8);
  for (gsize i = 0; i < G_N_ELEMENTS (x); i++)
    for (guint32 n = 8; n <= 24; n += 8) {
      if (n < x[i].least)
        continue;
      g_autoptr (CollPlan) p = plan_at (t, x[i].op, x[i].algo, n, 96 * MIB, NULL);
      SimTime a = run_one (p, COLL_ANALYTIC), f = run_one (p, COLL_FLOW);
      SimTime s = run_one (p, COLL_STEP);
      g_assert_cmpint (ABS (a - f), <=, 1);
      g_assert_cmpint (a, >, 0);
      double fill_s = (n + 2.0) * (double)(512 << 10) / (50 * GB);
      gboolean free_pairs = x[i].algo == PLAN_PAIRS || x[i].algo == PLAN_PAT ||
                            x[i].op == COLL_ALLTOALL; /* rounds and coupling differ by nature */
      if (!free_pairs && ((double)s < (double)f * 0.999 - 1000 ||
                          (double)s > (double)f * 1.001 + fill_s * SIM_TICKS_PS)) {
        g_test_message ("%s %s n=%u: flow %.3f us, step %.3f us", coll_op_names[x[i].op],
                        plan_algo_names[x[i].algo], n, (double)f / 1e6, (double)s / 1e6);
        g_test_fail ();
      }
      g_assert_cmpint (s, >, 0);
    }
}

/* Two groups that share every NIC: each ring alone T, both 2T. */
static void
test_two_rings (void)
{
  g_autoptr (Topo) t = make ((Shape){2, 1, 1, TOPO_UP_NVSWITCH, 4, TOPO_NET_SINGLE, 1});
  CollPlan *p[2];
  for (guint32 k = 0; k < 2; k++) {
    guint32 gpu[] = {k, 2 + k, 4 + k, 6 + k};
    CollPlanSpec s = {.topo = t,
                      .gpu = gpu,
                      .n = 4,
                      .op = COLL_ALL_REDUCE,
                      .bytes = 64 * MIB,
                      .route = {.nic = -1},
                      .steps = TRUE};
    p[k] = coll_plan_new (&s, NULL);
    g_assert_nonnull (p[k]);
  }
  for (int f = COLL_FLOW; f <= COLL_STEP; f++) {
    SimTime alone = run_one (p[0], (CollFidelity)f), end[2];
    run_many ((const CollPlan *const *)p, 2, (CollFidelity)f, NULL, end);
    g_assert_cmpint (ABS (end[0] - 2 * alone), <=, 8);
    g_assert_cmpint (ABS (end[1] - 2 * alone), <=, 8);
  }
  coll_plan_free (p[0]);
  coll_plan_free (p[1]);
}

/* A neighbour never makes a collective faster. */
static void
test_contention (void)
{
  g_autoptr (Topo) t = make ((Shape){8, 8, 1, TOPO_UP_NVSWITCH, 8, TOPO_NET_LEAF_SPINE, 4});
  SimRng r = sim_rng_stream (11, 0, "test.coll", 0);
  for (int round = 0; round < 40; round++) {
    guint8 used[64] = {0};
    CollPlan *p[2];
    for (int k = 0; k < 2; k++) {
      guint32 gpu[32];
      TopoPlaceSpec place = {.kind = TOPO_PLACE_SCATTERED,
                             .ranks = 16,
                             .ranks_per_node = sim_rng_below (&r, 2) ? 4 : 8,
                             .seed = sim_rng_next (&r)};
      g_assert_true (topo_place (t, &place, used, gpu, NULL));
      CollPlanSpec s = {
          .topo = t,
          .gpu = gpu,
          .n = 16,
          .op = (CollOp)sim_rng_below (&r, 3),
          .bytes = MIB * (gint64)(1 + sim_rng_below (&r, 64)),
          .route = {.mode = (TopoRouteMode)sim_rng_below (&r, 3), .seed = 1, .nic = -1}};
      p[k] = coll_plan_new (&s, NULL);
      g_assert_nonnull (p[k]);
    }
    SimTime end[2];
    run_many ((const CollPlan *const *)p, 2, COLL_FLOW, NULL, end);
    for (int k = 0; k < 2; k++) {
      g_assert_cmpint (end[k], >=, run_one (p[k], COLL_FLOW) - 2);
      coll_plan_free (p[k]);
    }
  }
}

/* DGX-1V: six rings over 6 lanes of 25 GB/s: 2 (n-1)/n S / 150 GB/s. */
static void
test_mesh (void)
{
  g_autoptr (Topo) t = make ((Shape){8, 4, 1, TOPO_UP_MESH, 1, TOPO_NET_NONE, 1});
  g_autoptr (CollPlan) p = plan_at (t, COLL_ALL_REDUCE, PLAN_RING, 8, 96 * MIB, NULL);
  g_assert_cmpuint (p->channels->len, ==, 6);
  g_assert_cmpfloat_with_epsilon (coll_plan_time_s (p), 1.75 * (double)(96 * MIB) / (150 * GB),
                                  1e-9);
}

/* Monotone in bytes, in 1/bandwidth; by levels no slower than flat while steps cost more than bytes
 * (a flat ring uses NVLink and NICs at once, levels one after the other). */
static void
test_order (void)
{
  g_autoptr (Topo) wide = make (dgx8);
  g_autoptr (Topo) thin = make ((Shape){8, 8, 1, TOPO_UP_NVSWITCH, 8, TOPO_NET_LEAF_SPINE, 8});
  CollCosts c = {.base_s = 10e-6, .hop_s = 2e-6, .net_hop_s = 10e-6};
  double last = 0;
  for (gint64 s = 1; s <= 1024 * MIB; s *= 4) {
    g_autoptr (CollPlan) flat = plan_at (wide, COLL_ALL_REDUCE, PLAN_RING, 64, s, &c);
    g_autoptr (CollPlan) less = plan_at (thin, COLL_ALL_REDUCE, PLAN_RING, 64, s, &c);
    g_autoptr (CollPlan) levels = plan_at (wide, COLL_ALL_REDUCE, PLAN_HIERARCHICAL, 64, s, &c);
    double t = coll_plan_time_s (flat);
    g_assert_cmpfloat (t, >=, last);
    g_assert_cmpfloat (coll_plan_time_s (less), >=, t);
    if (s <= 16 * MIB)
      g_assert_cmpfloat (coll_plan_time_s (levels), <=, t);
    last = t;
  }
}

/* Ranks that join late by up to d: the end is between T and d + T, and not before any rank's own.
 */
static void
test_jitter (void)
{
  g_autoptr (Topo) t = make (dgx8);
  g_autoptr (CollPlan) p = plan_at (t, COLL_ALL_REDUCE, PLAN_RING, 16, 16 * MIB, NULL);
  const CollPlan *one = p;
  SimTime offset[16], end, alone = run_one (p, COLL_STEP), most = 0;
  SimRng r = sim_rng_stream (3, 0, "test.jitter", 0);
  for (int i = 0; i < 16; i++) {
    offset[i] = (SimTime)sim_rng_below (&r, 5000000000);
    most = MAX (most, offset[i]);
  }
  run_many (&one, 1, COLL_STEP, offset, &end);
  g_assert_cmpint (end, >=, most);
  g_assert_cmpint (end, <=, most + alone + 100);
  run_many (&one, 1, COLL_FLOW, offset, &end);
  g_assert_cmpint (ABS (end - most - run_one (p, COLL_FLOW)), <=, 1);
}

/* A link of the ring is down for d: the whole ring stands still, and ends d later. Half speed for
 * d: d / 2 later. */
static void
test_faults (void)
{
  g_autoptr (Topo) t = make (dgx8);
  g_autoptr (CollPlan) p = plan_at (t, COLL_ALL_REDUCE, PLAN_RING, 8, 512 * MIB, NULL);
  SimTime alone = run_one (p, COLL_FLOW), d = alone / 4;
  guint32 link = g_array_index (p->links, guint32, coll_plan_channel (p, 0)->path);
  for (int half = 0; half < 2; half++) {
    SimOptions o = {.ticks_per_s = SIM_TICKS_PS};
    g_autoptr (SimEngine) eng = sim_engine_new (&o);
    g_autoptr (Net) net = net_flow_new (eng, topo_n_links (t), topo_link_caps (t));
    SimTime end = -1;
    coll_run_start (net, p, COLL_FLOW, NULL, on_done, &end, 0);
    net_set_link_at (net, alone / 4, link, half * 225 * GB);
    net_set_link_at (net, alone / 4 + d, link, 450 * GB);
    g_assert_true (sim_engine_run (eng, NULL));
    g_assert_cmpint (ABS (end - alone - d / (1 + half)), <=, 3);
  }
}

/* Rings between leaves: hashed onto cables some collide, spread evenly none does. */
static void
test_ecmp (void)
{
  g_autoptr (Topo) t = make (dgx8);
  g_autofree guint32 *gpu = g_new (guint32, 64);
  TopoPlaceSpec place = {.kind = TOPO_PLACE_SCATTERED, .ranks = 64, .seed = 4};
  g_assert_true (topo_place (t, &place, NULL, gpu, NULL));
  CollPlanSpec s = {.topo = t, .gpu = gpu, .n = 64, .op = COLL_ALL_REDUCE, .bytes = 64 * MIB};
  s.route = (TopoRouteOpts){.mode = TOPO_ROUTE_ADAPTIVE, .nic = -1};
  g_autoptr (CollPlan) even = coll_plan_new (&s, NULL);
  double least = coll_plan_time_s (even), most = 0;
  for (guint64 seed = 1; seed <= 10; seed++) {
    s.route = (TopoRouteOpts){.mode = TOPO_ROUTE_ECMP, .seed = seed, .nic = -1};
    g_autoptr (CollPlan) a = coll_plan_new (&s, NULL), b = coll_plan_new (&s, NULL);
    double ta = coll_plan_time_s (a);
    g_assert_cmpfloat (ta, ==, coll_plan_time_s (b)); /* the same seed, the same paths */
    g_assert_cmpfloat (ta, >=, least * (1 - 1e-12));
    most = MAX (most, ta);
  }
  g_assert_cmpfloat (most, >=, 2 * least * (1 - 1e-9)); /* two on one cable */
}

/* The plan on a topology with the profile's line rates costs what the profile's closed form says.
 */
static void
test_against_fabric (void)
{
  g_autoptr (Fabric) f = fabric_new ();
  f->nccl_version = 22707;
  f->arch = 90;
  f->domain_gpus = 8;
  f->nics = 8;
  f->nic_Bps = 50 * GB;
  f->links = 18;
  f->nvswitch = f->nvls = TRUE;
  f->efficiency = 0.95;
  f->ll_efficiency = 0.3;
  f->ll128_efficiency = f->tree_efficiency = 0.85;
  f->nvlstree_efficiency = 0.9;
  f->net_base_s = 10e-6;
  f->reduce_copy_s_per_byte = 1 / (700 * GB);
  f->ramp_s = 1e-6;
  f->ramp_bytes = 1e6;
  f->nvls_curve = (FabricCurve){19e-6, 0, 269 * GB, 80e-6, 12e6};
  f->nvlstree = (FabricCurve){19e-6, 30e-6, 252 * GB, 186e-6, 46e6};
  for (int i = 0; i < PROTO_COUNT; i++) {
    f->ring[i] = (FabricProto){5e-6 + i * 4e-6, 1e-6 + i * 1e-6, (150 + 100 * i) * GB};
    f->net_hop_s[i] = 7e-6 + i * 2e-6;
  }
  g_autoptr (Topo) t = make (dgx8);
  for (int nodes = 1; nodes <= 8; nodes++)
    for (int k = 0; k < 7; k++) {
      CollGroup g = {8 * nodes, 8, nodes, 1, {0}};
      CollAlgo algo = k < 3        ? ALGO_RING
                      : k < 5      ? ALGO_TREE
                      : nodes == 1 ? ALGO_NVLS
                                   : ALGO_NVLSTREE;
      CollChoice how = {algo, k == 1 || k == 3 ? PROTO_LL : PROTO_SIMPLE};
      for (gint64 s = 1024; s <= 1024 * MIB; s *= 32) {
        double want = coll_algo_time_s (f, COLL_ALL_REDUCE, &g, how, (double)s);
        CollCosts c = coll_costs_from_fabric (f, COLL_ALL_REDUCE, &g, how, (double)s);
        g_autoptr (CollPlan) p = plan_at (t, COLL_ALL_REDUCE, plan_algo_of (COLL_ALL_REDUCE, algo),
                                          8 * (guint32)nodes, s, &c);
        double got = coll_plan_time_s (p);
        if (fabs (got / want - 1) > 1e-3) {
          g_test_message ("%d nodes, algorithm %d, %" G_GINT64_FORMAT " bytes: plan %.4g us, "
                          "profile %.4g us",
                          nodes, algo, s, got * 1e6, want * 1e6);
          g_test_fail ();
        }
      }
    }
}

static void
test_refused (void)
{
  g_autoptr (Topo) t = make (dgx8);
  guint32 gpu[] = {0, 1, 1, 99};
  static const struct {
    CollOp op;
    PlanAlgo algo;
    guint32 n;
    const char *part;
  } x[] = {{COLL_ALL_REDUCE, PLAN_PAT, 2, "no such algorithm"},
           {COLL_ALLTOALL, PLAN_RING, 2, "no such algorithm"},
           {COLL_ALL_REDUCE, PLAN_RING, 3, "taken"},
           {COLL_ALL_REDUCE, PLAN_RING, 4, "taken"},
           {COLL_ALL_REDUCE, PLAN_NVLSTREE, 2, "several nodes"},
           {COLL_ALL_REDUCE, PLAN_COLLNET_DIRECT, 2, "several nodes"}};
  for (gsize i = 0; i < G_N_ELEMENTS (x); i++) {
    CollPlanSpec s = {.topo = t,
                      .gpu = gpu,
                      .n = x[i].n,
                      .op = x[i].op,
                      .algo = x[i].algo,
                      .bytes = 1000,
                      .route = {.nic = -1}};
    g_autoptr (GError) error = NULL;
    g_autoptr (CollPlan) p = coll_plan_new (&s, &error);
    g_assert_null (p);
    g_assert_nonnull (error);
    g_assert_nonnull (strstr (error->message, x[i].part));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/coll-plan/ring-one-node", test_ring_one_node);
  g_test_add_func ("/coll-plan/bytes", test_bytes);
  g_test_add_func ("/coll-plan/bytes-delivered", test_bytes_delivered);
  g_test_add_func ("/coll-plan/fidelities", test_fidelities);
  g_test_add_func ("/coll-plan/two-rings", test_two_rings);
  g_test_add_func ("/coll-plan/contention", test_contention);
  g_test_add_func ("/coll-plan/mesh", test_mesh);
  g_test_add_func ("/coll-plan/order", test_order);
  g_test_add_func ("/coll-plan/jitter", test_jitter);
  g_test_add_func ("/coll-plan/faults", test_faults);
  g_test_add_func ("/coll-plan/ecmp", test_ecmp);
  g_test_add_func ("/coll-plan/against-fabric", test_against_fabric);
  g_test_add_func ("/coll-plan/refused", test_refused);
  return g_test_run ();
}
