/* The closed form of a fabric against the same collective on the links of the system's shipped
 * topology, alone on it: what a profile says of NICs and GPUs must reach the plan, for every
 * operation. Equal to 1e-5, since the parts of a buffer are whole bytes. */
#include "../fabric_util.h"

#include "coll_cost.h"
#include "coll_plan.h"
#include "read_fabric.h"
#include "read_topo.h"

#include <math.h>

static void
compare (const Fabric *f, Topo *topo, CollOp op, const CollGroup *g, double bytes)
{
  GError *error = NULL;
  g_autofree guint32 *gpu = g_new (guint32, (gsize)g->ranks);
  guint32 per = topo_gpus_per_node (topo);
  for (int i = 0; i < g->ranks; i++)
    gpu[i] = (guint32)(i / g->ranks_per_node) * per + (guint32)(i % g->ranks_per_node);
  CollChoice how = {ALGO_AUTO, PROTO_AUTO};
  double closed = coll_direct_time_s (f, op, g, bytes, &how);
  CollPlanSpec s = {.topo = topo,
                    .gpu = gpu,
                    .n = (guint32)g->ranks,
                    .op = op,
                    .algo = plan_algo_of (op, how.algo),
                    .bytes = (gint64)bytes,
                    .route = {.mode = TOPO_ROUTE_ADAPTIVE, .nic = -1},
                    .costs = coll_costs_from_fabric (f, op, g, how, bytes)};
  g_autoptr (CollPlan) p = coll_plan_new (&s, &error);
  g_assert_no_error (error);
  double t = coll_plan_time_s (p);
  if (fabs (t / closed - 1) > 1e-5)
    g_test_message ("%s, %s, %d ranks on %d nodes, %g bytes, %s: links %g us, closed form %g us",
                    f->name, coll_op_names[op], g->ranks, g->nodes, bytes,
                    how.algo >= 0 ? coll_algo_names[how.algo] : "pairs", 1e6 * t, 1e6 * closed);
  g_assert_cmpfloat (fabs (t / closed - 1), <=, 1e-5);
}

static void
test_shipped (void)
{
  static const struct {
    const char *fabric, *topology;
    int ranks_per_node[3]; /* 0: no more */
  } systems[] = {{"dgx-h100-ndr", "dgx-h100-superpod", {8, 2, 1}},
                 {"dgx-a100-hdr", "dgx-a100-superpod", {8}},
                 {"dgx-b200-ndr", "dgx-b200-superpod", {8}},
                 {"azure-nd-a100-v4", "azure-nd-a100-v4", {8}},
                 {"aws-p5", "aws-p5", {8}},
                 {"aws-p5en", "aws-p5en", {8}},
                 {"gcp-a3-mega", "gcp-a3-mega", {8}},
                 {"gcp-a4", "gcp-a4", {8}},
                 {"oci-h100", "oci-bm-gpu-h100-8", {8}},
                 {"roce-400g-clos", "meta-24k-roce", {8}},
                 {"gb200-nvl72", "gb200-nvl72", {72, 8}}};
  for (gsize i = 0; i < G_N_ELEMENTS (systems); i++) {
    GError *error = NULL;
    g_autoptr (Fabric) f = ut_fabric (systems[i].fabric);
    g_autoptr (TopoPreset) preset = topo_preset_load (systems[i].topology, NULL, NULL, &error);
    g_assert_no_error (error);
    g_autoptr (Topo) topo = topo_preset_build (preset, MAX (8, preset->spec.nodes), &error);
    g_assert_no_error (error);
    for (int k = 0; k < 3 && systems[i].ranks_per_node[k] > 0; k++)
      for (int nodes = 2; nodes <= (systems[i].ranks_per_node[k] > 8 ? 2 : 8); nodes *= 2)
        for (int op = 0; op < COLL_COUNT; op++) {
          int r = systems[i].ranks_per_node[k];
          CollGroup g = {.ranks = r * nodes, .ranks_per_node = r, .nodes = nodes, .sharers = 1};
          compare (f, topo, (CollOp)op, &g, 65536);
          compare (f, topo, (CollOp)op, &g, 1 << 30);
        }
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_setenv ("CLUSTERSIM_SCENARIOS", "scenarios", FALSE);
  g_test_add_func ("/coll-flow/closed-form", test_shipped);
  return g_test_run ();
}
