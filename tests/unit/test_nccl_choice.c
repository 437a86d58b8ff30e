/* NCCL's choice against what NCCL's logs say it chose, by version, part and size. */
#include "../fabric_util.h"

#include "fabric.h"
#include "nccl_tuner.h"
#include "read_fabric.h"

#define KIB 1024.0
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static void
assert_choice (const Fabric *f, CollOp op, int per_node, int nodes, double bytes, CollAlgo algo,
               CollProto proto)
{
  CollGroup g = {per_node * nodes, per_node, nodes, 1, {0}};
  NcclPlan plan;
  nccl_plan_init (&plan, f, op, &g);
  CollChoice how = nccl_plan_choose (&plan, bytes, (CollChoice){ALGO_AUTO, PROTO_AUTO});
  if (how.algo != algo || (proto != PROTO_AUTO && how.proto != proto))
    g_test_message ("%s %d x %d, %g bytes: %s %s", coll_op_names[op], nodes, per_node, bytes,
                    coll_algo_names[how.algo], coll_proto_names[how.proto]);
  g_assert_cmpint (how.algo, ==, algo);
  if (proto != PROTO_AUTO)
    g_assert_cmpint (how.proto, ==, proto);
}

/* 8x H200 with 2.27.7 and 8x H100 with 2.26.2: Ring LL to 1 MiB, NVLS Simple from 2 MiB to 16 GiB;
 * all_gather and reduce_scatter stay with the ring. */
static void
test_eight_hopper (void)
{
  const int versions[] = {22707, 22602};
  for (gsize i = 0; i < G_N_ELEMENTS (versions); i++) {
    g_autoptr (Fabric) f = ut_fabric_nccl ("dgx-h100-ndr", versions[i]);
    for (double s = 8; s <= 1 * MIB; s *= 2)
      assert_choice (f, COLL_ALL_REDUCE, 8, 1, s, ALGO_RING, PROTO_LL);
    for (double s = 2 * MIB; s <= 16 * GIB; s *= 2)
      assert_choice (f, COLL_ALL_REDUCE, 8, 1, s, ALGO_NVLS, PROTO_SIMPLE);
    for (double s = 8; s <= 16 * GIB; s *= 2) {
      assert_choice (f, COLL_ALL_GATHER, 8, 1, s, ALGO_RING, PROTO_AUTO);
      assert_choice (f, COLL_REDUCE_SCATTER, 8, 1, s, ALGO_RING, PROTO_AUTO);
    }
  }
}

/* Large all_reduce by GPUs of a node in use: NVLS pays from 5 GPUs on H200, from 6 on B200
 * (2.27.7). */
static void
test_part_of_a_node (void)
{
  g_autoptr (Fabric) h200 = ut_fabric_nccl ("dgx-h100-ndr", 22707);
  g_autoptr (Fabric) b200 = ut_fabric_nccl ("dgx-b200-ndr", 22707);
  for (int n = 4; n <= 8; n++) {
    assert_choice (h200, COLL_ALL_REDUCE, n, 1, 8 * GIB, n >= 5 ? ALGO_NVLS : ALGO_RING,
                   PROTO_SIMPLE);
    assert_choice (b200, COLL_ALL_REDUCE, n, 1, 8 * GIB, n >= 6 ? ALGO_NVLS : ALGO_RING,
                   PROTO_SIMPLE);
  }
}

/* 4 p5en nodes: Ring at 4 GiB. Two HGX H100: busbw of 469 GB/s is above the NICs, which only a tree
 * reaches: NVLSTree. */
static void
test_several_nodes (void)
{
  g_autoptr (Fabric) p5en = ut_fabric_nccl ("aws-p5en", 22707);
  g_autoptr (Fabric) ndr = ut_fabric_nccl ("dgx-h100-ndr", 22602);
  assert_choice (p5en, COLL_ALL_REDUCE, 8, 4, 4 * GIB, ALGO_RING, PROTO_SIMPLE);
  /* By name the tuner's choice does not count: 310 GB/s published with NVLSTree. */
  CollGroup four = {32, 8, 4, 1, {0}};
  CollChoice asked = {ALGO_NVLSTREE, PROTO_AUTO};
  double t = coll_time_s (p5en, COLL_ALL_REDUCE, &four, 4 * GIB, &asked);
  g_assert_cmpint (asked.algo, ==, ALGO_NVLSTREE);
  g_assert_cmpfloat_with_epsilon (4 * GIB * 2 * 31 / 32 / t / 1e9, 310, 15.5);
  for (double s = 64 * MIB; s <= 16 * GIB; s *= 2)
    assert_choice (ndr, COLL_ALL_REDUCE, 8, 2, s, ALGO_NVLSTREE, PROTO_SIMPLE);
  /* Small messages over many nodes take a tree; all_gather has none. */
  assert_choice (ndr, COLL_ALL_REDUCE, 8, 64, 64 * KIB, ALGO_TREE, PROTO_AUTO);
  assert_choice (ndr, COLL_ALL_GATHER, 8, 64, 64 * KIB, ALGO_RING, PROTO_AUTO);
}

/* NVLS came with 2.17, NVLSTree with 2.18, PAT with 2.23 (one GPU per node), LL128 needs NVLink. */
static void
test_versions (void)
{
  g_autoptr (Fabric) f = ut_fabric_nccl ("dgx-h100-ndr", 21602);
  assert_choice (f, COLL_ALL_REDUCE, 8, 1, 1 * GIB, ALGO_RING, PROTO_SIMPLE);
  assert_choice (f, COLL_ALL_REDUCE, 8, 2, 1 * GIB, ALGO_RING, PROTO_AUTO);
  f->nccl_version = 21703;
  assert_choice (f, COLL_ALL_REDUCE, 8, 1, 1 * GIB, ALGO_NVLS, PROTO_SIMPLE);
  f->nccl_version = 22105;
  assert_choice (f, COLL_REDUCE_SCATTER, 1, 64, 1 * KIB, ALGO_RING, PROTO_AUTO);
  f->nccl_version = 22304;
  CollGroup g = {64, 1, 64, 8, {0}};
  NcclPlan plan;
  nccl_plan_init (&plan, f, COLL_REDUCE_SCATTER, &g);
  gboolean pat = FALSE;
  for (int i = 0; i < plan.n; i++)
    pat |= plan.c[i].algo == ALGO_PAT;
  g_assert_true (pat);
  g_autoptr (Fabric) pcie = ut_fabric_nccl ("rtx-pro-6000-pcie5", 22902);
  for (double s = 8; s <= 1 * GIB; s *= 2) {
    CollGroup box = {8, 8, 1, 1, {0}};
    nccl_plan_init (&plan, pcie, COLL_ALL_REDUCE, &box);
    CollChoice how = nccl_plan_choose (&plan, s, (CollChoice){ALGO_AUTO, PROTO_AUTO});
    g_assert_cmpint (how.proto, !=, PROTO_LL128);
  }
}

/* The numbers of the planner by hand, 8 A100, 2.27.3: LL 6.6 + 14 0.6 us, at min (87.7, 240/2)
 * 8/14; LL128 14 + 14 1.9 at 0.92 240 8/14; Simple 8.4 + 14 3.4 at 240 8/14. */
static void
test_by_hand (void)
{
  g_autoptr (Fabric) f = ut_fabric_nccl ("dgx-a100-hdr", 22703);
  CollGroup g = {8, 8, 1, 1, {0}};
  const double latency[] = {15, 40.6, 56}, bus[] = {87.7, 220.8, 240};
  NcclPlan plan;
  nccl_plan_init (&plan, f, COLL_ALL_REDUCE, &g);
  int seen = 0;
  for (int i = 0; i < plan.n; i++) {
    const NcclCandidate *c = &plan.c[i];
    if (c->algo != ALGO_RING)
      continue;
    seen++;
    g_assert_cmpfloat_with_epsilon (c->latency_us, latency[c->proto], 1e-9);
    g_assert_cmpfloat_with_epsilon (c->bandwidth_GBps, bus[c->proto] * 8 / 14, 1e-9);
    g_assert_cmpfloat_with_epsilon (nccl_plan_time_us (&plan, i, 1e6),
                                    latency[c->proto] + 1000 / c->bandwidth_GBps, 1e-9);
  }
  g_assert_cmpint (seen, ==, 3);
  /* The jumps of the published tables of this system: LL to Simple at 1 MiB with 2 GPUs. */
  assert_choice (f, COLL_ALL_REDUCE, 2, 1, 512 * KIB, ALGO_RING, PROTO_LL);
  assert_choice (f, COLL_ALL_REDUCE, 2, 1, 1 * MIB, ALGO_RING, PROTO_SIMPLE);
}

static void
test_version_text (void)
{
  g_assert_cmpint (nccl_version_parse ("2.27.7"), ==, 22707);
  g_assert_cmpint (nccl_version_parse ("2.23"), ==, 22300);
  g_assert_cmpint (nccl_version_parse ("2"), ==, 0);
  g_assert_cmpint (nccl_version_parse (""), ==, 0);
  g_assert_cmpint (nccl_version_parse ("2.27.7.1"), ==, 0);
  g_assert_cmpint (nccl_version_parse ("2.x"), ==, 0);
  g_assert_cmpint (nccl_version_parse ("2.127"), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_setenv ("CLUSTERSIM_SCENARIOS", "scenarios", FALSE);
  g_test_add_func ("/nccl/eight-hopper", test_eight_hopper);
  g_test_add_func ("/nccl/part-of-a-node", test_part_of_a_node);
  g_test_add_func ("/nccl/several-nodes", test_several_nodes);
  g_test_add_func ("/nccl/versions", test_versions);
  g_test_add_func ("/nccl/by-hand", test_by_hand);
  g_test_add_func ("/nccl/version-text", test_version_text);
  return g_test_run ();
}
