/* test_coll_diagnose: a log for each symptom, and the cause that it must be given. The predicted
 * times are the fabric's own; "measured" is made from them as the symptom has it, or holds rows of
 * a published case (NCCL and nccl-tests issues) where the figures matter. */
#include "../fabric_util.h"

#include "coll_cost.h"
#include "coll_diagnose.h"
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

/* Measured time of a size from the predicted one and its number in the log. */
typedef double (*Symptom) (double bytes, double predicted_s, guint i);

/* Sizes from 1 KiB to 1 GiB by two. */
static GArray *
log_of (const Fabric *f, CollOp op, const CollGroup *g, Symptom how)
{
  GArray *a = g_array_new (FALSE, FALSE, sizeof (CollPoint));
  guint i = 0;
  for (double s = KIB; s <= GIB; s *= 2, i++) {
    double t = coll_time_s (f, op, g, s, NULL);
    CollPoint p = {s, how (s, t, i), t};
    g_array_append_val (a, p);
  }
  return a;
}

static gboolean
names (const Fabric *f, CollOp op, const CollGroup *g, const GArray *a, CollCause want,
       gboolean first)
{
  CollCause cause[CAUSE_COUNT];
  guint n = coll_diagnose (f, op, g, (const CollPoint *)(const void *)a->data, a->len, cause);
  gboolean found = FALSE;
  for (guint i = 0; i < n; i++)
    found = found || (cause[i] == want && (!first || i == 0));
  if (!found)
    g_test_message ("wanted %s, found %u, first %s", coll_cause_names[want], n,
                    n > 0 ? coll_cause_names[cause[0]] : "none");
  return found;
}

static double
as_it_is (double bytes G_GNUC_UNUSED, double t, guint i G_GNUC_UNUSED)
{
  return t;
}

static double
half_rate (double bytes, double t, guint i G_GNUC_UNUSED)
{
  return bytes >= MIB ? 2 * t : t;
}

/* 32 of 50 GB/s with one NIC. */
static double
slow_gdr (double bytes, double t, guint i G_GNUC_UNUSED)
{
  return bytes >= MIB ? t * 49 / 32 : t;
}

static double
three_quarters (double bytes, double t, guint i G_GNUC_UNUSED)
{
  return bytes >= MIB ? t / 0.72 : t;
}

static double
half_again (double bytes, double t, guint i G_GNUC_UNUSED)
{
  return bytes >= MIB ? t / 0.55 : t;
}

/* Sizes of 128 to 512 KiB three times as long. */
static double
dip (double bytes, double t, guint i G_GNUC_UNUSED)
{
  return bytes >= 128 * KIB && bytes <= 512 * KIB ? 3 * t : t;
}

/* From 16 MiB on 100 ms and more. */
static double
cliff (double bytes, double t, guint i G_GNUC_UNUSED)
{
  return bytes >= 16 * MIB ? t + 0.1 : t;
}

/* 38 times as long, and every second large size twice that. */
static double
unstable (double bytes, double t, guint i)
{
  return bytes >= MIB ? 38 * t * (i % 2 ? 2.2 : 1) : t;
}

/* 500 us whatever the size, until the bytes count. */
static double
slow_small (double bytes G_GNUC_UNUSED, double t, guint i G_GNUC_UNUSED)
{
  return MAX (t, 500e-6);
}

static double
jitter (double bytes, double t, guint i)
{
  return bytes <= 64 * KIB && i % 2 ? 2.5 * t : t;
}

typedef struct {
  const char *fabric;
  int per_node, nodes;
  CollOp op;
  Symptom how;
  CollCause cause; /* CAUSE_COUNT: none */
} Row;

static void
test_symptoms (void)
{
  static const Row rows[] = {
      {"dgx-h100-ndr", 8, 1, COLL_ALL_REDUCE, as_it_is, CAUSE_COUNT},
      {"dgx-h100-ndr", 8, 4, COLL_ALL_REDUCE, as_it_is, CAUSE_COUNT},
      {"gcp-a3", 8, 2, COLL_ALL_GATHER, half_rate, CAUSE_HALF_RATE},
      {"dgx-h100-ndr", 8, 2, COLL_ALL_GATHER, half_rate, CAUSE_HALF_RATE},
      {"dgx-h100-ndr", 1, 2, COLL_ALL_GATHER, slow_gdr, CAUSE_SLOW_GDR},
      {"dgx-h100-ndr", 4, 1, COLL_ALLTOALL, three_quarters, CAUSE_REGRESSION},
      {"aws-p4d", 8, 4, COLL_ALL_REDUCE, half_again, CAUSE_MANY_NODES},
      {"aws-p4d", 8, 3, COLL_ALL_REDUCE, half_again, CAUSE_MANY_NODES},
      {"dgx-h100-ndr", 2, 2, COLL_ALL_REDUCE, dip, CAUSE_MIDSIZE_DIP},
      {"dgx-h100-ndr", 8, 1, COLL_ALL_REDUCE, dip, CAUSE_MIDSIZE_DIP},
      {"dgx-b200-ndr", 8, 2, COLL_ALLTOALL, cliff, CAUSE_TIMEOUTS},
      {"dgx-h100-ndr", 8, 3, COLL_ALL_REDUCE, unstable, CAUSE_UNSTABLE},
      {"gcp-a4", 8, 2, COLL_ALL_GATHER, slow_small, CAUSE_SMALL_LATENCY},
      {"dgx-1-v100-4x100", 8, 2, COLL_ALL_REDUCE, jitter, CAUSE_SMALL_JITTER}};
  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++) {
    const Row *r = &rows[i];
    g_autoptr (Fabric) f = ut_fabric (r->fabric);
    CollGroup g = group (r->per_node, r->nodes);
    g_autoptr (GArray) a = log_of (f, r->op, &g, r->how);
    if (r->cause < CAUSE_COUNT) {
      g_test_message ("row %u", (guint)i);
      g_assert_true (names (f, r->op, &g, a, r->cause, TRUE));
    } else {
      CollCause cause[CAUSE_COUNT];
      g_assert_cmpuint (
          coll_diagnose (f, r->op, &g, (const CollPoint *)(const void *)a->data, a->len, cause), ==,
          0);
    }
  }
}

/* Rows of published cases: size, us. */
typedef struct {
  double bytes, us;
} Measured;

static gboolean
published (const char *fabric, CollOp op, CollGroup g, const Measured *m, guint n, CollCause want)
{
  g_autoptr (Fabric) f = ut_fabric (fabric);
  g_autoptr (GArray) a = g_array_new (FALSE, FALSE, sizeof (CollPoint));
  for (guint i = 0; i < n; i++) {
    CollPoint p = {m[i].bytes, m[i].us * 1e-6, coll_time_s (f, op, &g, m[i].bytes, NULL)};
    g_array_append_val (a, p);
  }
  return names (f, op, &g, a, want, TRUE);
}

static void
test_published (void)
{
  /* 4 V100 without NVLink or peer to peer: 7.2 GB/s (NCCL 2.26.2) */
  static const Measured staged[] = {{4096, 23.06},      {65536, 39.85},     {1048576, 236.8},
                                    {16777216, 3532.4}, {268435456, 55825}, {1073741824, 222838}};
  g_assert_true (published ("dgx-1-v100-4x100", COLL_ALL_REDUCE, group (4, 1), staged,
                            G_N_ELEMENTS (staged), CAUSE_HOST_STAGED));
  /* 8 L40S: 1.4 GB/s (aiconfigurator, NCCL 2.27.3) */
  static const Measured crowded[] = {{65536, 164.5},      {1048576, 863.2},    {16777216, 19376},
                                     {134217728, 162481}, {268435456, 323906}, {536870912, 649471}};
  g_assert_true (published ("l40s-pcie4", COLL_ALL_REDUCE, group (8, 1), crowded,
                            G_N_ELEMENTS (crowded), CAUSE_PCIE_CROWDED));
  /* 2 x 8 RTX 6000D, adaptive routing off (NCCL 2.30.3), beside a fabric of 400 Gb/s NICs */
  static const Measured cliffs[] = {{4096, 30.39},       {1048576, 72.16},    {8388608, 263.35},
                                    {16777216, 10642.5}, {67108864, 44747},   {268435456, 99106},
                                    {1073741824, 99880}, {4294967296, 138053}};
  g_assert_true (published ("dgx-h100-ndr", COLL_ALLTOALL, group (8, 2), cliffs,
                            G_N_ELEMENTS (cliffs), CAUSE_TIMEOUTS));
  /* 2 x 4 GH200 without the fabric's plugin: 5.4 in place of 122 GB/s (Alps) */
  static const Measured sockets[] = {{2097152, 921.8},   {4194304, 1443.1}, {8388608, 2437.7},
                                     {16777216, 5036.9}, {67108864, 21253}, {134217728, 43293}};
  g_assert_true (published ("dgx-h100-ndr", COLL_ALL_REDUCE, group (4, 2), sockets,
                            G_N_ELEMENTS (sockets), CAUSE_SOCKETS));
  /* 8 x 8 V100 with 100 Gb/s: 4.3 of 12.5 GB/s, more than two nodes */
  static const Measured low[] = {{268435456, 122131}, {536870912, 244833}};
  g_assert_true (published ("dgx-1-v100-1x100", COLL_ALL_REDUCE, group (8, 8), low,
                            G_N_ELEMENTS (low), CAUSE_HALF_RATE));
  /* 8 nodes of H200, the same all_reduce ten times: six near 10.5 ms, four near 14.3 ms (MLPerf) */
  static const Measured modes[] = {
      {1730e6, 10352}, {1730e6, 10402}, {1730e6, 14195}, {1730e6, 10655}, {1730e6, 14301},
      {1730e6, 10498}, {1730e6, 14446}, {1730e6, 10455}, {1730e6, 14250}, {1730e6, 10600}};
  g_assert_true (published ("gcp-a4", COLL_ALL_REDUCE, group (8, 8), modes, G_N_ELEMENTS (modes),
                            CAUSE_TWO_MODES));
}

/* One GPU a node with four NICs in reach: as much as its PCIe link carries. */
static void
test_one_gpu (void)
{
  g_autoptr (Fabric) f = ut_fabric ("dgx-h100-ndr");
  f->domain_gpus = 2; /* 8 NICs for 2 GPUs: 4 each */
  fabric_changed (f);
  CollGroup g = group (1, 2);
  g_autoptr (GArray) a = log_of (f, COLL_ALL_REDUCE, &g, half_again);
  g_assert_true (names (f, COLL_ALL_REDUCE, &g, a, CAUSE_ONE_GPU_NICS, TRUE));
}

/* Each cause has a name and a text, and none is without a test above. */
static void
test_texts (void)
{
  for (int i = 0; i < CAUSE_COUNT; i++) {
    g_assert_cmpuint (strlen (coll_cause_names[i]), >, 3);
    g_assert_cmpuint (strlen (coll_cause_texts[i]), >, 30);
  }
  g_assert_null (coll_cause_names[CAUSE_COUNT]);
  CollCause cause[CAUSE_COUNT];
  g_autoptr (Fabric) f = ut_fabric ("dgx-h100-ndr");
  CollGroup g = group (8, 1);
  g_assert_cmpuint (coll_diagnose (f, COLL_ALL_REDUCE, &g, NULL, 0, cause), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_setenv ("CLUSTERSIM_SCENARIOS", "scenarios", FALSE);
  g_test_add_func ("/coll-diagnose/symptoms", test_symptoms);
  g_test_add_func ("/coll-diagnose/published", test_published);
  g_test_add_func ("/coll-diagnose/one-gpu", test_one_gpu);
  g_test_add_func ("/coll-diagnose/texts", test_texts);
  return g_test_run ();
}
