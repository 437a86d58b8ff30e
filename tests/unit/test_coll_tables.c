/* The shipped fabrics against published nccl-tests tables (CLUSTERSIM_SHARED/data/collectives.csv),
 * healthy rows of 64 KiB and more. One fabric per system by the rules of fabric_of; nothing is
 * tuned to a set. Per set the median of |predicted / published - 1|; per class the median of those,
 * under its target. */
#include "../fabric_util.h"

#include "coll_cost.h"
#include "csv.h"
#include "paths.h"
#include "read_fabric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum { ONE_NODE, INFINIBAND, CLOUD, RACK, CLASS_COUNT } TableClass;
static const char *const class_names[] = {"one node", "InfiniBand", "cloud and RoCE", "rack"};
static const double target_pct[] = {8, 10, 15, 10};

typedef struct {
  char *name;
  TableClass class;
  double error_pct; /* median */
  double bias_pct;  /* mean with its sign */
} SetResult;

static gboolean
has (const char *text, const char *part)
{
  return strstr (text, part) != NULL;
}

/* Which shipped fabric a system is; NULL: none is. */
static const char *
fabric_of (const char *gpu, const char *system, const char *nic)
{
  if (has (gpu, "GB200") || has (gpu, "GB300"))
    return has (gpu, "GB200") ? "gb200-nvl72" : "gb300-nvl72";
  if (has (gpu, "A100"))
    return has (nic, "EFA")       ? "aws-p4d"
           : has (nic, "16x100G") ? "a100-roce-16x100"
                                  : "dgx-a100-hdr";
  if (has (gpu, "H100 PCIe"))
    return NULL;
  if (has (gpu, "H100") || has (gpu, "H200"))
    return has (nic, "EFAv2")   ? "aws-p5"
           : has (nic, "EFAv3") ? "aws-p5en"
           : has (nic, "TCPXO") ? "gcp-a3-mega"
           : has (nic, "TCPX")  ? "gcp-a3"
           : has (nic, "RoCE")  ? "roce-400g-clos"
                                : "dgx-h100-ndr";
  if (has (gpu, "B200") || has (gpu, "B300"))
    return has (nic, "EFA") ? "aws-p6-b200" : has (nic, "RoCE") ? "gcp-a4" : "dgx-b200-ndr";
  if (has (gpu, "V100") && (has (system, "DGX-1") || has (system, "hybrid cube mesh")))
    return "dgx-1-v100-4x100";
  if (has (gpu, "RTX PRO 6000"))
    return "rtx-pro-6000-pcie5";
  return has (gpu, "L40S") ? "l40s-pcie4" : NULL;
}

static const char *
cell (const CsvTable *t, guint row, const char *column)
{
  return csv_cell (t, row, csv_col (t, column));
}

static double
number (const CsvTable *t, guint row, const char *column)
{
  const char *text = cell (t, row, column);
  return *text ? g_ascii_strtod (text, NULL) : 0;
}

static int
index_of (const char *const *names, const char *name)
{
  for (int i = 0; names[i] != NULL; i++)
    if (strcmp (names[i], name) == 0)
      return i;
  return -1;
}

/* Signed error of a row as a fraction; NAN when it says too little. */
static double
row_error (const CsvTable *t, guint row, const Fabric *f)
{
  int op = index_of (coll_op_names, cell (t, row, "op"));
  int ranks = (int)number (t, row, "ranks"), nodes = MAX (1, (int)number (t, row, "nodes"));
  double bytes = number (t, row, "size_bytes"), time_us = number (t, row, "time_us");
  double busbw = number (t, row, "busbw_GBps");
  if (op < 0 || ranks < 2 || bytes < 65536 || ranks % nodes != 0)
    return NAN;
  if (!(time_us > 0) && busbw > 0)
    time_us = bytes * coll_bus_factor ((CollOp)op, ranks) / busbw / 1e3;
  if (f->domain_gpus > 8 && ranks <= f->domain_gpus)
    nodes = 1;
  CollGroup g = {ranks, ranks / nodes, nodes, 1, {0}};
  CollChoice how = {(CollAlgo)index_of (coll_algo_names, cell (t, row, "algo")),
                    (CollProto)index_of (coll_proto_names, cell (t, row, "proto"))};
  return time_us > 0 ? coll_time_s (f, (CollOp)op, &g, bytes, &how) * 1e6 / time_us - 1 : NAN;
}

static int
compare_doubles (gconstpointer a, gconstpointer b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double
median (double *v, guint n)
{
  qsort (v, n, sizeof *v, compare_doubles);
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static TableClass
class_of (const CsvTable *t, guint row, const char *fabric)
{
  if (has (fabric, "nvl72"))
    return RACK;
  if (number (t, row, "nodes") < 2)
    return ONE_NODE;
  return has (fabric, "ndr") || has (fabric, "hdr") || has (fabric, "v100") ? INFINIBAND : CLOUD;
}

/* Rows first to end-1 are one set; FALSE when no fabric or no row of it counts. */
static gboolean
run_set (const CsvTable *t, guint first, guint end, SetResult *out)
{
  const char *name =
      fabric_of (cell (t, first, "gpu"), cell (t, first, "system"), cell (t, first, "nic"));
  if (name == NULL)
    return FALSE;
  g_autoptr (Fabric) f = ut_fabric (name);
  int version = nccl_version_parse (cell (t, first, "nccl_version"));
  if (version > 0)
    f->nccl_version = version;
  g_autofree double *errors = g_new (double, end - first);
  guint n = 0;
  double sum = 0;
  for (guint row = first; row < end; row++) {
    double e = strcmp (cell (t, row, "healthy"), "1") == 0 ? row_error (t, row, f) : NAN;
    if (isnan (e))
      continue;
    sum += e;
    errors[n++] = fabs (e);
  }
  if (n == 0)
    return FALSE;
  *out = (SetResult){g_strdup (cell (t, first, "set")), class_of (t, first, name),
                     100 * median (errors, n), 100 * sum / n};
  return TRUE;
}

static void
test_published (void)
{
  const char *shared = g_getenv ("CLUSTERSIM_SHARED");
  if (shared == NULL) {
    g_test_skip ("CLUSTERSIM_SHARED is not set: no published tables to compare with");
    return;
  }
  g_autofree char *path = g_build_filename (shared, "data", "collectives.csv", NULL);
  GError *error = NULL;
  g_autoptr (CsvTable) t = csv_load (path, &error);
  g_assert_no_error (error);
  double by_class[CLASS_COUNT][512];
  guint n[CLASS_COUNT] = {0};
  for (guint row = 0, end; row < csv_n_rows (t); row = end) {
    SetResult r;
    for (end = row + 1; end < csv_n_rows (t); end++)
      if (strcmp (cell (t, row, "set"), cell (t, end, "set")) != 0)
        break;
    if (!run_set (t, row, end, &r))
      continue;
    g_test_message ("%-16s %-38s %5.1f %%  mean %+6.1f %%", class_names[r.class], r.name,
                    r.error_pct, r.bias_pct);
    g_free (r.name);
    g_assert_cmpuint (n[r.class], <, G_N_ELEMENTS (by_class[0]));
    by_class[r.class][n[r.class]++] = r.error_pct;
  }
  for (int c = 0; c < CLASS_COUNT; c++) {
    g_assert_cmpuint (n[c], >, 0);
    double m = median (by_class[c], n[c]);
    g_test_message ("%-16s %3u sets: median of medians %.1f %%, worst %.1f %% (target %g %%)",
                    class_names[c], n[c], m, by_class[c][n[c] - 1], target_pct[c]);
    g_assert_cmpfloat (m, <=, target_pct[c]);
  }
}

/* All-reduce inside one A100 node, as vTrain's table has it: us at 1 GiB, 64 MiB and 8 MiB. */
static void
test_a100_node (void)
{
  static const struct {
    int gpus;
    double mib, us;
  } rows[] = {{2, 8, 87},      {2, 64, 404}, {2, 1024, 5450}, {4, 8, 114},    {4, 64, 541},
              {4, 1024, 7280}, {8, 8, 130},  {8, 64, 580},    {8, 1024, 8200}};
  g_autoptr (Fabric) f = ut_fabric ("dgx-a100-hdr");
  f->nccl_version = 22703;
  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++) {
    CollGroup g = {rows[i].gpus, rows[i].gpus, 1, 1, {0}};
    double us = 1e6 * coll_time_s (f, COLL_ALL_REDUCE, &g, rows[i].mib * 1048576, NULL);
    g_test_message ("%d GPUs %5g MiB: %8.1f us, published %g", rows[i].gpus, rows[i].mib, us,
                    rows[i].us);
    g_assert_cmpfloat (fabs (us / rows[i].us - 1), <, 0.1);
  }
}

/* Every shipped fabric reads, has a source for each number, and gives finite times that never fall.
 */
static void
test_all_shipped (void)
{
  g_auto (GStrv) names = data_list ("fabrics");
  g_assert_cmpuint (g_strv_length (names), >=, 20);
  for (int i = 0; names[i] != NULL; i++) {
    g_autoptr (Fabric) f = ut_fabric (names[i]);
    g_assert_cmpstr (f->name, ==, names[i]);
    const int shapes[][2] = {{f->domain_gpus, 1}, {2, 1}, {f->domain_gpus, 64}, {1, 128}};
    for (gsize k = 0; k < G_N_ELEMENTS (shapes); k++) {
      CollGroup g = {shapes[k][0] * shapes[k][1], shapes[k][0], shapes[k][1], 1, {0}};
      if (g.nodes > 1 && f->network == NULL)
        continue;
      for (int op = 0; op < COLL_COUNT; op++)
        for (double s = 1, before = 0; s < 1e12; s *= 4) {
          double t = coll_time_s (f, (CollOp)op, &g, s, NULL);
          g_assert_true (isfinite (t));
          g_assert_cmpfloat (t, >, 0);
          g_assert_cmpfloat (t, >=, before);
          before = t;
        }
    }
    g_assert_cmpfloat (p2p_time_s (f, TRUE, 1, 1e6), >, 0);
  }
}

/* Parameters come from one to four nodes; what follows for up to 128 nodes, and for racks, comes
 * from the topology alone (steps, levels, bytes over NICs). It takes no less time with more nodes,
 * and the bus bandwidth of long messages stays under the limit of NICs and switches. */
static void
test_scale (void)
{
  g_auto (GStrv) names = data_list ("fabrics");
  for (int i = 0; names[i] != NULL; i++) {
    g_autoptr (Fabric) f = ut_fabric (names[i]);
    if (f->network == NULL)
      continue;
    for (int op = 0; op < COLL_COUNT; op++)
      for (double s = 1024; s <= 16.0 * (1 << 30); s *= 8) {
        double before = 0;
        for (int nodes = 2; nodes <= 128; nodes *= 2) {
          CollGroup g = {.ranks = f->domain_gpus * nodes,
                         .ranks_per_node = f->domain_gpus,
                         .nodes = nodes,
                         .sharers = 1};
          double t = coll_time_s (f, (CollOp)op, &g, s, NULL);
          if (t < before)
            g_test_message ("%s %s %g bytes, %d nodes: %g after %g us", names[i], coll_op_names[op],
                            s, nodes, 1e6 * t, 1e6 * before);
          g_assert_cmpfloat (t, >=, before);
          before = t;
        }
        CollGroup g = {.ranks = f->domain_gpus * 128,
                       .ranks_per_node = f->domain_gpus,
                       .nodes = 128,
                       .sharers = 1};
        double bus = s * coll_bus_factor ((CollOp)op, g.ranks) / before;
        double most = op == COLL_ALLTOALL ? fabric_group_net_Bps (f, &g) / f->domain_gpus * 1.01
                                          : fabric_group_net_Bps (f, &g);
        g_assert_cmpfloat (bus, <=, most);
      }
  }
}

/* Several GB200 racks, 16 GiB, as published: all_reduce 683 to 810 GB/s over two, 406 over twenty;
 * alltoall 47.7 over two. Two racks set nvlstree_nics and alltoall_efficiency; twenty follow: an
 * inner node of the double binary tree sends 2 S over its NICs and not S, which halves two racks'
 * bandwidth: 8 NICs of 50 GB/s at 0.956 give 382.4, half of it times 2 (n-1)/n is 382. */
static void
test_racks (void)
{
  static const struct {
    int racks;
    CollOp op;
    double low_GBps, high_GBps;
  } rows[] = {{2, COLL_ALL_REDUCE, 683, 810},
              {20, COLL_ALL_REDUCE, 0.9 * 406, 1.1 * 406},
              {2, COLL_ALLTOALL, 0.95 * 47.7, 1.05 * 47.7}};
  g_autoptr (Fabric) f = ut_fabric ("gb200-nvl72");
  for (gsize i = 0; i < G_N_ELEMENTS (rows); i++) {
    CollGroup g = {
        .ranks = 72 * rows[i].racks, .ranks_per_node = 72, .nodes = rows[i].racks, .sharers = 1};
    CollChoice how = {ALGO_AUTO, PROTO_AUTO};
    double bytes = 16.0 * (1 << 30);
    double t = coll_time_s (f, rows[i].op, &g, bytes, &how);
    double busbw = bytes * coll_bus_factor (rows[i].op, g.ranks) / t / 1e9;
    g_test_message ("%d racks, %s: %.1f GB/s", rows[i].racks, coll_op_names[rows[i].op], busbw);
    g_assert_cmpfloat (busbw, >=, rows[i].low_GBps);
    g_assert_cmpfloat (busbw, <=, rows[i].high_GBps);
    if (rows[i].op == COLL_ALL_REDUCE)
      g_assert_cmpint (how.algo, ==, ALGO_NVLSTREE);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_setenv ("CLUSTERSIM_SCENARIOS", "scenarios", FALSE);
  g_test_add_func ("/coll-tables/all-shipped", test_all_shipped);
  g_test_add_func ("/coll-tables/scale", test_scale);
  g_test_add_func ("/coll-tables/a100-node", test_a100_node);
  g_test_add_func ("/coll-tables/racks", test_racks);
  g_test_add_func ("/coll-tables/published", test_published);
  return g_test_run ();
}
