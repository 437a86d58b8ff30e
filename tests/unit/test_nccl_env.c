/* test_nccl_env: every variable of NCCL that is an input has the effect that it should have. */
#include "../fabric_util.h"

#include "coll_cost.h"
#include "nccl_tuner.h"
#include "read_fabric.h"

#include <math.h>
#include <string.h>

#define KIB 1024.0
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static CollGroup
group (int per_node, int nodes)
{
  return (CollGroup){
      .ranks = per_node * nodes, .ranks_per_node = per_node, .nodes = nodes, .sharers = 1};
}

static void
set (Fabric *f, const char *name, const char *value)
{
  g_autoptr (GError) error = NULL;
  g_assert_true (nccl_env_set (&f->env, name, value, &error));
  g_assert_no_error (error);
  fabric_changed (f);
}

static void
refused (const char *name, const char *value, const char *part)
{
  NcclEnv e = {0};
  g_autoptr (GError) error = NULL;
  g_assert_false (nccl_env_set (&e, name, value, &error));
  g_assert_nonnull (error);
  if (!strstr (error->message, part))
    g_test_message ("\"%s\" lacks \"%s\"", error->message, part);
  g_assert_nonnull (strstr (error->message, part));
}

static CollChoice
choice (const Fabric *f, CollOp op, CollGroup g, double bytes, double *time_s)
{
  CollChoice how = {ALGO_AUTO, PROTO_AUTO};
  *time_s = coll_direct_time_s (f, op, &g, bytes, &how);
  return how;
}

/* Lists, all but, by operation; what they forbid is never chosen, at no size. */
static void
test_lists (void)
{
  static const struct {
    const char *name, *value;
    CollOp op;
    guint algos, protos; /* bits that may be chosen */
  } x[] = {
      {"NCCL_ALGO", "Ring", COLL_ALL_REDUCE, 1u << ALGO_RING, 7},
      {"NCCL_ALGO", "tree", COLL_ALL_REDUCE, 1u << ALGO_TREE, 7},
      {"NCCL_ALGO", "Ring,Tree", COLL_ALL_REDUCE, 1u << ALGO_RING | 1u << ALGO_TREE, 7},
      {"NCCL_ALGO", "^NVLSTree,Ring", COLL_ALL_REDUCE, ~(1u << ALGO_NVLSTREE | 1u << ALGO_RING), 7},
      {"NCCL_ALGO", "allreduce:tree;allgather:ring", COLL_ALL_REDUCE, 1u << ALGO_TREE, 7},
      {"NCCL_ALGO", "allgather:ring", COLL_ALL_GATHER, 1u << ALGO_RING, 7},
      {"NCCL_PROTO", "LL", COLL_ALL_REDUCE, ~0u, 1u << PROTO_LL},
      {"NCCL_PROTO", "LL128", COLL_ALL_REDUCE, ~0u, 1u << PROTO_LL128},
      {"NCCL_PROTO", "^LL,LL128", COLL_ALL_REDUCE, ~0u, 1u << PROTO_SIMPLE}};
  for (gsize i = 0; i < G_N_ELEMENTS (x); i++) {
    g_autoptr (Fabric) f = ut_fabric_nccl ("dgx-h100-ndr", 22707);
    set (f, x[i].name, x[i].value);
    for (int nodes = 1; nodes <= 16; nodes *= 4)
      for (double s = 8; s <= 8 * GIB; s *= 4) {
        double t;
        CollChoice how = choice (f, x[i].op, group (8, nodes), s, &t);
        g_assert_true (x[i].algos >> how.algo & 1);
        g_assert_true (x[i].protos >> how.proto & 1);
        g_assert_true (isfinite (t) && t > 0);
      }
  }
  refused ("NCCL_ALGO", "star", "Ring");
  refused ("NCCL_ALGO", "^Ring,Tree,NVLS,NVLSTree,PAT,CollNetDirect,CollNetChain", "leaves one");
  refused ("NCCL_ALGO", "allfoo:ring", "allreduce");
  refused ("NCCL_PROTO", "", "LL128");
  refused ("NCCL_PROTOS", "LL", "NCCL_PROTO");
  refused ("NCCL_NTHREADS", "100", "256");
  refused ("NCCL_NTHREADS", "32", "64");
  refused ("NCCL_BUFFSIZE", "1K", "4096");
  refused ("NCCL_CROSS_NIC", "3", "0 to 2");
  refused ("NCCL_MIN_CTAS", "65", "64");
}

/* Where NCCL has no such algorithm (NVLS on one A100 node) a prediction still says something. */
static void
test_nothing_left (void)
{
  g_autoptr (Fabric) f = ut_fabric_nccl ("dgx-a100-hdr", 22707);
  double t;
  set (f, "NCCL_ALGO", "NVLS");
  CollChoice how = choice (f, COLL_ALL_REDUCE, group (8, 1), GIB, &t);
  g_assert_true (how.algo == ALGO_RING || how.algo == ALGO_TREE);
  g_assert_true (isfinite (t) && t > 0);
}

/* Smaller buffers, fewer threads, fewer channels: never faster, and slower where they bind. A slice
 * (a quarter of the buffer) costs slice_s: each byte bus / channels * slice_s / slice more. */
static void
test_costs (void)
{
  static const struct {
    const char *name, *value;
    double least; /* times as long at 1 GiB over 4 nodes */
  } x[] = {
      {"NCCL_BUFFSIZE", "65536", 1.5}, {"NCCL_NTHREADS", "64", 1.5}, {"NCCL_MAX_CTAS", "2", 2}};
  for (gsize i = 0; i < G_N_ELEMENTS (x); i++) {
    g_autoptr (Fabric) f = ut_fabric_nccl ("dgx-h100-ndr", 22707);
    g_autoptr (Fabric) free_f = ut_fabric_nccl ("dgx-h100-ndr", 22707);
    set (f, "NCCL_ALGO", "Ring");
    set (free_f, "NCCL_ALGO", "Ring");
    set (f, "NCCL_PROTO", "Simple");
    set (free_f, "NCCL_PROTO", "Simple");
    set (f, x[i].name, x[i].value);
    for (double s = 1024; s <= GIB; s *= 4) {
      double with, without;
      choice (f, COLL_ALL_REDUCE, group (8, 4), s, &with);
      choice (free_f, COLL_ALL_REDUCE, group (8, 4), s, &without);
      g_assert_cmpfloat (with, >=, without * (1 - 1e-12));
    }
    double with, without;
    choice (f, COLL_ALL_REDUCE, group (8, 4), GIB, &with);
    choice (free_f, COLL_ALL_REDUCE, group (8, 4), GIB, &without);
    g_test_message ("%s=%s: %.2f times as long", x[i].name, x[i].value, with / without);
    g_assert_cmpfloat (with / without, >=, x[i].least);
  }
  /* the defaults by name change nothing */
  g_autoptr (Fabric) f = ut_fabric_nccl ("dgx-h100-ndr", 22707);
  g_autoptr (Fabric) free_f = ut_fabric_nccl ("dgx-h100-ndr", 22707);
  set (f, "NCCL_BUFFSIZE", "4194304");
  set (f, "NCCL_NTHREADS", "512");
  for (double s = 1024; s <= GIB; s *= 4) {
    double with, without;
    choice (f, COLL_ALL_REDUCE, group (8, 4), s, &with);
    choice (free_f, COLL_ALL_REDUCE, group (8, 4), s, &without);
    g_assert_cmpfloat_with_epsilon (with, without, 1e-12);
  }
}

/* Channels as NCCL's logs show them: 24 on 8 A100 and on 8 H100 (NVLS 16), 16 over 8 NICs; fewer
 * for little data; clamped. */
static void
test_channels (void)
{
  static const struct {
    const char *fabric;
    int nodes, channels;
  } x[] = {{"dgx-a100-hdr", 1, 24}, {"dgx-h100-ndr", 1, 24}, {"dgx-h100-ndr", 2, 16}};
  for (gsize i = 0; i < G_N_ELEMENTS (x); i++) {
    g_autoptr (Fabric) f = ut_fabric_nccl (x[i].fabric, 22707);
    CollGroup g = group (8, x[i].nodes);
    NcclPlan plan;
    nccl_plan_init (&plan, f, COLL_ALL_REDUCE, &g);
    g_assert_cmpint (plan.channels, ==, x[i].channels);
    g_assert_cmpint (plan.nvls_channels, ==, 16);
    CollChoice ring = {ALGO_RING, PROTO_LL};
    int threads = 0;
    g_assert_cmpint (nccl_plan_channels (&plan, ring, GIB, &threads), ==, x[i].channels);
    g_assert_cmpint (threads, ==, 512);
    g_assert_cmpint (nccl_plan_channels (&plan, ring, 64, &threads), ==, 1);
    g_assert_cmpint (threads, ==, 64);
    set (f, "NCCL_MAX_CTAS", "4");
    nccl_plan_init (&plan, f, COLL_ALL_REDUCE, &g);
    g_assert_cmpint (plan.channels, ==, 4);
    set (f, "NCCL_MAX_CTAS", "64");
    set (f, "NCCL_MIN_CTAS", "32");
    nccl_plan_init (&plan, f, COLL_ALL_REDUCE, &g);
    g_assert_cmpint (plan.channels, ==, 32);
  }
}

/* 8 H100 at 16 GiB (nccl-tests issue 309): 482 GB/s, and 369 without NVLS. */
static void
test_nvls (void)
{
  g_autoptr (Fabric) f = ut_fabric_nccl ("dgx-h100-ndr", 22602);
  double on, off;
  CollChoice how = choice (f, COLL_ALL_REDUCE, group (8, 1), 16 * GIB, &on);
  g_assert_cmpint (how.algo, ==, ALGO_NVLS);
  set (f, "NCCL_NVLS_ENABLE", "0");
  how = choice (f, COLL_ALL_REDUCE, group (8, 1), 16 * GIB, &off);
  g_assert_cmpint (how.algo, ==, ALGO_RING);
  g_assert_cmpfloat (fabs (16 * GIB * 1.75 / on / 482e9 - 1), <, 0.05);
  g_assert_cmpfloat (fabs (16 * GIB * 1.75 / off / 369e9 - 1), <, 0.05);
}

/* SHARP: only where the network has it and the user switches it on; then each NIC carries the
 * buffer's share once, 1/(2 (n-1)/n) of the ring's. */
static void
test_collnet (void)
{
  g_autoptr (Fabric) ib = ut_fabric_nccl ("dgx-a100-hdr", 22707);
  g_autoptr (Fabric) roce = ut_fabric_nccl ("roce-400g-clos", 22707);
  double ring, sharp;
  set (ib, "NCCL_ALGO", "Ring");
  CollChoice how = choice (ib, COLL_ALL_REDUCE, group (8, 16), GIB, &ring);
  g_assert_cmpint (how.algo, ==, ALGO_RING);
  set (ib, "NCCL_ALGO", "CollNetDirect,CollNetChain");
  how = choice (ib, COLL_ALL_REDUCE, group (8, 16), GIB, &sharp);
  g_assert_cmpint (how.algo, ==, ALGO_RING); /* not switched on: as if it were not there */
  set (ib, "NCCL_COLLNET_ENABLE", "1");
  how = choice (ib, COLL_ALL_REDUCE, group (8, 16), GIB, &sharp);
  g_assert_true (how.algo == ALGO_COLLNET_DIRECT || how.algo == ALGO_COLLNET_CHAIN);
  g_assert_cmpfloat (sharp, <, ring);
  set (roce, "NCCL_COLLNET_ENABLE", "1");
  for (double s = 8; s <= GIB; s *= 4) {
    how = choice (roce, COLL_ALL_REDUCE, group (8, 16), s, &sharp);
    g_assert_cmpint (how.algo, <, ALGO_COLLNET_DIRECT);
  }
}

/* Versions 2.8 to 2.30 at which the planner's tables differ: each plans differently from the one
 * before, on some part, for an all_reduce of 4 nodes or an all_gather of single GPUs. */
static void
test_versions (void)
{
  static const int versions[] = {20803, 21207, 21602, 21803, 22105, 22304, 22501, 22902, 23007};
  static const char *const fabrics[] = {"dgx-1-v100-4x100", "dgx-a100-hdr", "dgx-h100-ndr",
                                        "dgx-b200-ndr"};
  double before[2 * G_N_ELEMENTS (fabrics)][24] = {{0}};
  for (gsize v = 0; v < G_N_ELEMENTS (versions); v++) {
    gboolean changed = FALSE;
    for (gsize i = 0; i < 2 * G_N_ELEMENTS (fabrics); i++) {
      g_autoptr (Fabric) f = ut_fabric_nccl (fabrics[i / 2], versions[v]);
      CollGroup g = i % 2 ? group (1, 64) : group (8, 4);
      NcclPlan plan;
      nccl_plan_init (&plan, f, i % 2 ? COLL_ALL_GATHER : COLL_ALL_REDUCE, &g);
      g_assert_cmpint (plan.n, >=, 2);
      for (int k = 0; k < 24; k++) {
        double best = INFINITY;
        for (int c = 0; c < plan.n; c++)
          best = MIN (best, nccl_plan_time_us (&plan, c, ldexp (64, k)));
        changed = changed || best != before[i][k];
        before[i][k] = best;
      }
    }
    if (!changed)
      g_test_message ("%d plans as the one before", versions[v]);
    g_assert_true (changed);
  }
}

/* "env" of a fabric, strict. */
static void
test_json (void)
{
  static const char head[] = "{\"node\": \"nvlink4-h100\", \"nccl_version\": \"2.27.7\", \"env\": ";
  static const struct {
    const char *env, *part; /* part NULL: read */
  } x[] = {{"{\"NCCL_ALGO\": \"Ring\", \"NCCL_BUFFSIZE\": 65536}}", NULL},
           {"{\"NCCL_ALG\": \"Ring\"}}", "NCCL_ALGO"},
           {"{\"NCCL_ALGO\": \"Rong\"}}", "Rong"},
           {"{\"NCCL_NTHREADS\": 3.5}}", "NCCL_NTHREADS"},
           {"3}", "env"}};
  for (gsize i = 0; i < G_N_ELEMENTS (x); i++) {
    g_autofree char *text = g_strconcat (head, x[i].env, NULL);
    g_autoptr (GError) error = NULL;
    g_autoptr (JsonDoc) doc = json_doc_parse ("t", text, strlen (text), &error);
    g_assert_no_error (error);
    JsonRef root = json_root (doc);
    g_autoptr (Fabric) f = read_fabric (&root, "t", NULL, &error);
    if (x[i].part == NULL) {
      g_assert_no_error (error);
      g_assert_cmpfloat (f->env.buff_bytes, ==, 65536);
    } else {
      g_assert_null (f);
      g_assert_nonnull (strstr (error->message, x[i].part));
    }
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_setenv ("CLUSTERSIM_SCENARIOS", "scenarios", FALSE);
  g_test_add_func ("/nccl-env/lists", test_lists);
  g_test_add_func ("/nccl-env/nothing-left", test_nothing_left);
  g_test_add_func ("/nccl-env/costs", test_costs);
  g_test_add_func ("/nccl-env/channels", test_channels);
  g_test_add_func ("/nccl-env/nvls", test_nvls);
  g_test_add_func ("/nccl-env/collnet", test_collnet);
  g_test_add_func ("/nccl-env/versions", test_versions);
  g_test_add_func ("/nccl-env/json", test_json);
  return g_test_run ();
}
