/* coll: closed forms of the cost, on a fabric of round numbers.
 * Ring over n ranks (all in one node): t = base + K hop + factor S / bus, K = 2(n-1) for all_reduce
 * and n-1 for all_gather, reduce_scatter, broadcast; factor 2(n-1)/n, (n-1)/n, 1. */
#include "coll_cost.h"
#include "fabric.h"

#include <math.h>

#define US 1e-6
#define GB 1e9

/* bus 100 GB/s, 8 NICs of 10 GB/s, base 10 us, hops 1 us inside and 5 us between nodes. */
static Fabric *
round_fabric (void)
{
  Fabric *f = fabric_new ();
  f->nccl_version = 22707;
  f->arch = 80;
  f->domain_gpus = 8;
  f->links = 12;
  f->pci_Bps = 24 * GB;
  f->nvswitch = f->ll128 = TRUE;
  for (int p = 0; p < PROTO_COUNT; p++) {
    f->ring[p] = (FabricProto){10 * US, 1 * US, 100 * GB};
    f->net_hop_s[p] = 5 * US;
  }
  f->nvls_curve = f->nvlstree = (FabricCurve){20 * US, 2 * US, 150 * GB, 0, 0};
  f->a2a = (FabricCurve){10 * US, 1 * US, 50 * GB, 0, 0};
  f->p2p = (FabricCurve){5 * US, 0, 50 * GB, 0, 0};
  f->net_p2p = (FabricCurve){15 * US, 0, 0, 0, 0};
  f->nics = 8;
  f->nic_Bps = 10 * GB;
  f->efficiency = f->ll_efficiency = f->ll128_efficiency = f->tree_efficiency = 1;
  f->nvlstree_efficiency = f->pat_efficiency = f->a2a_efficiency = 1;
  return f;
}

static CollGroup
group (int per_node, int nodes, int sharers)
{
  return (CollGroup){per_node * nodes, per_node, nodes, sharers, {0}};
}

static double
forced (const Fabric *f, CollOp op, CollGroup g, CollAlgo algo, CollProto proto, double bytes)
{
  CollChoice how = {algo, proto};
  double t = coll_time_s (f, op, &g, bytes, &how);
  if (algo != ALGO_AUTO)
    g_assert_cmpint (how.algo, ==, algo);
  if (proto != PROTO_AUTO)
    g_assert_cmpint (how.proto, ==, proto);
  return t;
}

static void
assert_near (double found, double expected)
{
  g_assert_cmpfloat_with_epsilon (found / expected, 1, 1e-12);
}

static void
test_bus_factor (void)
{
  assert_near (coll_bus_factor (COLL_ALL_REDUCE, 8), 1.75);
  assert_near (coll_bus_factor (COLL_ALL_GATHER, 8), 0.875);
  assert_near (coll_bus_factor (COLL_REDUCE_SCATTER, 4), 0.75);
  assert_near (coll_bus_factor (COLL_ALLTOALL, 2), 0.5);
  assert_near (coll_bus_factor (COLL_BROADCAST, 8), 1);
  assert_near (coll_bus_factor (COLL_SENDRECV, 2), 1);
}

static void
test_ring (void)
{
  g_autoptr (Fabric) f = round_fabric ();
  double s = 64 << 20;
  for (int n = 2; n <= 8; n++) {
    CollGroup g = group (n, 1, 1);
    assert_near (forced (f, COLL_ALL_REDUCE, g, ALGO_RING, PROTO_SIMPLE, s),
                 10 * US + 2 * (n - 1) * US + 2.0 * (n - 1) / n * s / (100 * GB));
    assert_near (forced (f, COLL_ALL_GATHER, g, ALGO_RING, PROTO_LL, s),
                 10 * US + (n - 1) * US + (n - 1.0) / n * s / (100 * GB));
    assert_near (forced (f, COLL_REDUCE_SCATTER, g, ALGO_RING, PROTO_LL128, s),
                 10 * US + (n - 1) * US + (n - 1.0) / n * s / (100 * GB));
    assert_near (forced (f, COLL_BROADCAST, g, ALGO_RING, PROTO_SIMPLE, s),
                 10 * US + (n - 1) * US + s / (100 * GB));
  }
}

/* Off the grid of the table too: a straight form stays exact; a curved one within 1 in 1000. */
static void
test_table_is_exact (void)
{
  g_autoptr (Fabric) f = round_fabric ();
  CollGroup g = group (8, 1, 1);
  CollChoice how = {ALGO_RING, PROTO_SIMPLE};
  for (double s = 3; s < 1e12; s *= 1.7) {
    CollChoice same = how;
    assert_near (coll_time_s (f, COLL_ALL_REDUCE, &g, s, &same),
                 coll_algo_time_s (f, COLL_ALL_REDUCE, &g, how, s));
  }
  f->ramp_s = 5 * US;
  f->ramp_bytes = 1 << 20;
  f->reduce_copy_s_per_byte = 1e-12;
  fabric_changed (f);
  for (double s = 3; s < 1e14; s *= 1.7) {
    CollChoice same = how;
    g_assert_cmpfloat_with_epsilon (coll_time_s (f, COLL_ALL_REDUCE, &g, s, &same) /
                                        coll_algo_time_s (f, COLL_ALL_REDUCE, &g, how, s),
                                    1, 1e-3);
  }
}

/* Simple adds c copy + K ramp c / (c + half) for the chunk c = S / n. */
static void
test_ramp_and_copy (void)
{
  g_autoptr (Fabric) f = round_fabric ();
  f->ramp_s = 4 * US;
  f->ramp_bytes = 1 << 20;
  f->reduce_copy_s_per_byte = 1 / (500 * GB);
  double s = 8 << 20; /* chunk of 1 MiB: half the ramp */
  CollGroup g = group (8, 1, 1);
  assert_near (forced (f, COLL_ALL_REDUCE, g, ALGO_RING, PROTO_SIMPLE, s),
               10 * US + 14 * US + 1.75 * s / (100 * GB) + s / 8 / (500 * GB) + 14 * 2 * US);
  assert_near (forced (f, COLL_ALL_REDUCE, g, ALGO_RING, PROTO_LL, s),
               10 * US + 14 * US + 1.75 * s / (100 * GB));
}

/* N nodes of 8: 2(N-1) of the 2(n-1) steps cross, and 80 GB/s of NICs are under the bus of 100. */
static void
test_nodes (void)
{
  g_autoptr (Fabric) f = round_fabric ();
  f->net_base_s = 3 * US;
  double s = 256 << 20;
  for (int nodes = 2; nodes <= 512; nodes *= 4) {
    int n = 8 * nodes, cross = 2 * (nodes - 1);
    assert_near (forced (f, COLL_ALL_REDUCE, group (8, nodes, 1), ALGO_RING, PROTO_SIMPLE, s),
                 13 * US + (2 * (n - 1) - cross) * US + cross * 5 * US +
                     2.0 * (n - 1) / n * s / (80 * GB));
  }
  /* One rank a node, alone: its own NIC; eight such groups: the same, a rail each. */
  double alone = forced (f, COLL_ALL_GATHER, group (1, 4, 1), ALGO_RING, PROTO_SIMPLE, s);
  assert_near (alone, 13 * US + 3 * 5 * US + 0.75 * s / (10 * GB));
  assert_near (forced (f, COLL_ALL_GATHER, group (1, 4, 8), ALGO_RING, PROTO_SIMPLE, s), alone);
}

/* Groups that share the NICs: the part that moves takes twice as long for twice the sharers. */
static void
test_sharers (void)
{
  g_autoptr (Fabric) f = round_fabric ();
  f->nics = 1;
  double s = 1 << 30, fixed = 10 * US + 3 * 5 * US;
  double one = forced (f, COLL_ALL_GATHER, group (1, 4, 1), ALGO_RING, PROTO_SIMPLE, s) - fixed;
  double two = forced (f, COLL_ALL_GATHER, group (1, 4, 2), ALGO_RING, PROTO_SIMPLE, s) - fixed;
  double eight = forced (f, COLL_ALL_GATHER, group (1, 4, 8), ALGO_RING, PROTO_SIMPLE, s) - fixed;
  assert_near (two, 2 * one);
  assert_near (eight, 8 * one);
  /* Inside a node every GPU has its own links. */
  assert_near (forced (f, COLL_ALL_GATHER, group (4, 1, 2), ALGO_RING, PROTO_SIMPLE, s),
               forced (f, COLL_ALL_GATHER, group (4, 1, 1), ALGO_RING, PROTO_SIMPLE, s));
}

/* Trees: 2 S through the links of a node; S through the NICs of two nodes, 2 S of more; depth in
 * log. */
static void
test_trees (void)
{
  g_autoptr (Fabric) f = round_fabric ();
  double s = 1 << 30;
  assert_near (forced (f, COLL_ALL_REDUCE, group (8, 1, 1), ALGO_TREE, PROTO_SIMPLE, s),
               10 * US + 14 * US + 2 * s / (100 * GB));
  assert_near (forced (f, COLL_ALL_REDUCE, group (8, 2, 1), ALGO_TREE, PROTO_SIMPLE, s),
               10 * US + 14 * US + 2 * 5 * US + 2 * s / (100 * GB));
  assert_near (forced (f, COLL_ALL_REDUCE, group (8, 4, 1), ALGO_TREE, PROTO_SIMPLE, s),
               10 * US + 14 * US + 2 * 2 * 5 * US + 2 * s / (80 * GB));
  f->arch = 90;
  f->links = 18;
  f->nvls = TRUE;
  fabric_changed (f);
  assert_near (forced (f, COLL_ALL_REDUCE, group (8, 1, 1), ALGO_NVLS, PROTO_SIMPLE, s),
               20 * US + s / (150 * GB));
  assert_near (forced (f, COLL_ALL_REDUCE, group (8, 2, 1), ALGO_NVLSTREE, PROTO_SIMPLE, s),
               20 * US + 2 * 2 * US + s / (80 * GB));
  assert_near (forced (f, COLL_ALL_REDUCE, group (8, 16, 1), ALGO_NVLSTREE, PROTO_SIMPLE, s),
               20 * US + 2 * 4 * 2 * US + 2 * s / (80 * GB));
}

/* Each of n ranks keeps S/n; in a node (r-1)/n S leaves each GPU, across r (n-r)/n S leaves the
 * node. */
static void
test_alltoall_and_p2p (void)
{
  g_autoptr (Fabric) f = round_fabric ();
  f->a2a_net_hop_s = 1 * US;
  double s = 1 << 30;
  assert_near (forced (f, COLL_ALLTOALL, group (8, 1, 1), ALGO_AUTO, PROTO_AUTO, s),
               10 * US + 7 * US + 0.875 * s / (50 * GB));
  assert_near (forced (f, COLL_ALLTOALL, group (8, 4, 1), ALGO_AUTO, PROTO_AUTO, s),
               10 * US + 7 * US + 24 * US + 8 * 0.75 * s / (80 * GB));
  assert_near (p2p_time_s (f, TRUE, 1, s), 5 * US + s / (50 * GB));
  assert_near (p2p_time_s (f, FALSE, 1, s), 15 * US + s / (10 * GB));
  assert_near (p2p_time_s (f, FALSE, 2, s), 15 * US + 2 * s / (10 * GB));
  assert_near (forced (f, COLL_SENDRECV, group (1, 2, 1), ALGO_AUTO, PROTO_AUTO, s),
               p2p_time_s (f, FALSE, 1, s));
  f->nics = 32; /* four NICs a GPU */
  assert_near (p2p_time_s (f, FALSE, 1, s), 15 * US + s / (40 * GB));
}

static void
test_nothing_to_do (void)
{
  g_autoptr (Fabric) f = round_fabric ();
  for (int op = 0; op < COLL_COUNT; op++) {
    CollGroup one = group (1, 1, 1), eight = group (8, 1, 1);
    g_assert_cmpfloat (coll_time_s (f, (CollOp)op, &one, 1e9, NULL), ==, 0);
    g_assert_cmpfloat (coll_time_s (f, (CollOp)op, &eight, 0, NULL), ==, 0);
    g_assert_cmpfloat (coll_time_s (f, (CollOp)op, &eight, 0.5, NULL), >, 0);
  }
  g_assert_cmpfloat (p2p_time_s (f, FALSE, 1, 0), ==, 0);
  f->nics = 0;
  fabric_changed (f);
  CollGroup apart = group (1, 2, 1);
  g_assert_true (isinf (coll_time_s (f, COLL_ALL_REDUCE, &apart, 1e6, NULL)));
}

/* Never faster for more bytes, for more nodes at the same algorithm, or for slower links. */
static void
test_monotone (void)
{
  g_autoptr (Fabric) f = round_fabric ();
  g_autoptr (Fabric) slow = round_fabric ();
  for (int p = 0; p < PROTO_COUNT; p++)
    slow->ring[p].bus_Bps /= 2;
  slow->nic_Bps /= 2;
  f->ring[PROTO_LL].bus_Bps = slow->ring[PROTO_LL].bus_Bps = 20 * GB; /* so that switches jump */
  const int shapes[][2] = {{2, 1}, {8, 1}, {8, 2}, {8, 3}, {1, 2}, {1, 64}, {8, 512}, {5, 7}};
  for (int op = 0; op < COLL_COUNT; op++)
    for (gsize i = 0; i < G_N_ELEMENTS (shapes); i++) {
      CollGroup g = group (shapes[i][0], shapes[i][1], 1);
      double before = 0;
      for (double s = 1; s < 1e13; s *= 1.13) {
        double t = coll_time_s (f, (CollOp)op, &g, s, NULL);
        g_assert_cmpfloat (t, >=, before);
        before = t;
      }
    }
  for (double s = 1024; s < 1e11; s *= 8)
    for (int r = 1; r <= 8; r *= 2)
      for (int nodes = 1; nodes < 600; nodes = nodes * 3 / 2 + 1) {
        CollGroup g = group (r, nodes, 1), more = group (r, nodes + 1, 1);
        if (g.ranks == 1)
          continue;
        CollChoice ring = {ALGO_RING, PROTO_SIMPLE}, ring2 = ring, ring3 = ring;
        double t = coll_time_s (f, COLL_ALL_REDUCE, &g, s, &ring);
        g_assert_cmpfloat (coll_time_s (f, COLL_ALL_REDUCE, &more, s, &ring2), >, t);
        g_assert_cmpfloat (coll_time_s (slow, COLL_ALL_REDUCE, &g, s, &ring3), >, t);
      }
}

/* What the planner does not have for an operation is left out of a forced choice. */
static void
test_forced (void)
{
  g_autoptr (Fabric) f = round_fabric ();
  CollGroup g = group (8, 1, 1);
  CollChoice how = {ALGO_NVLS, PROTO_AUTO}; /* no NVLS on this part */
  coll_time_s (f, COLL_ALL_REDUCE, &g, 1 << 20, &how);
  g_assert_cmpint (how.algo, !=, ALGO_NVLS);
  how = (CollChoice){ALGO_TREE, PROTO_AUTO}; /* all_gather has no tree */
  coll_time_s (f, COLL_ALL_GATHER, &g, 1 << 20, &how);
  g_assert_cmpint (how.algo, ==, ALGO_RING);
  f->ll128 = FALSE;
  fabric_changed (f);
  how = (CollChoice){ALGO_RING, PROTO_LL128};
  coll_time_s (f, COLL_ALL_REDUCE, &g, 1 << 20, &how);
  g_assert_cmpint (how.algo, ==, ALGO_RING);
  g_assert_cmpint (how.proto, !=, PROTO_LL128);
  how = (CollChoice){ALGO_AUTO, PROTO_AUTO};
  coll_time_s (f, COLL_ALLTOALL, &g, 1 << 20, &how);
  g_assert_cmpint (how.algo, ==, ALGO_AUTO);
  g_assert_cmpint (how.proto, ==, PROTO_SIMPLE);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/coll/bus-factor", test_bus_factor);
  g_test_add_func ("/coll/ring", test_ring);
  g_test_add_func ("/coll/table-is-exact", test_table_is_exact);
  g_test_add_func ("/coll/ramp-and-copy", test_ramp_and_copy);
  g_test_add_func ("/coll/nodes", test_nodes);
  g_test_add_func ("/coll/sharers", test_sharers);
  g_test_add_func ("/coll/trees", test_trees);
  g_test_add_func ("/coll/alltoall-and-p2p", test_alltoall_and_p2p);
  g_test_add_func ("/coll/nothing-to-do", test_nothing_to_do);
  g_test_add_func ("/coll/monotone", test_monotone);
  g_test_add_func ("/coll/forced", test_forced);
  return g_test_run ();
}
