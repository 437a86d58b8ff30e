/* test_read_topo: every shipped topology builds, carries routes and a ring; what is refused. */
#include "coll_plan.h"
#include "paths.h"
#include "read_topo.h"
#include "rng.h"

#include <string.h>

static TopoPreset *
load (const char *name, GPtrArray *prov)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = data_find ("topologies", name, NULL, &error);
  g_assert_no_error (error);
  g_autoptr (JsonDoc) doc = json_doc_load (path, &error);
  g_assert_no_error (error);
  JsonRef root = json_root (doc);
  TopoPreset *p = read_topo (&root, name, prov, &error);
  g_assert_no_error (error);
  return p;
}

static void
use (Topo *t, const char *name)
{
  SimRng r = sim_rng_stream (5, 0, "test.read_topo", 0);
  TopoPath p = {0};
  for (int i = 0; i < 60; i++) {
    TopoRouteOpts o = {.mode = (TopoRouteMode)(i % TOPO_ROUTE_COUNT), .seed = 1, .nic = -1};
    topo_path_reset (&p);
    g_assert_true (topo_route (t, (guint32)sim_rng_below (&r, topo_n_gpus (t)),
                               (guint32)sim_rng_below (&r, topo_n_gpus (t)), &o, &p));
  }
  topo_path_clear (&p);
  guint32 n = MIN (topo_n_gpus (t), 4 * topo_gpus_per_node (t));
  g_autofree guint32 *gpu = g_new (guint32, n);
  for (guint32 i = 0; i < n; i++)
    gpu[i] = i;
  CollPlanSpec s = {.topo = t,
                    .gpu = gpu,
                    .n = n,
                    .op = COLL_ALL_REDUCE,
                    .bytes = (gint64)1 << 30,
                    .route = {.mode = TOPO_ROUTE_ADAPTIVE, .nic = -1}};
  g_autoptr (GError) error = NULL;
  g_autoptr (CollPlan) ring = coll_plan_new (&s, &error);
  g_assert_no_error (error);
  double bus = 2.0 * (n - 1) / n * (double)s.bytes / coll_plan_time_s (ring) / 1e9;
  double nics = topo_nics_per_node (t) * topo_link_caps (t)[topo_nic_link (t, 0, 0, 0, TRUE)] / 1e9;
  g_test_message ("%s: %u GPUs, %u switches, %u links; ring over 4 nodes %.0f GB/s of %.0f", name,
                  topo_n_gpus (t), topo_n_switches (t), topo_n_links (t), bus, nics);
  g_assert_cmpfloat (bus, <=, nics * 8 + 1e-6); /* planes: a link is one port */
  g_assert_cmpfloat (bus, >, 0);
}

static void
test_shipped (void)
{
  g_auto (GStrv) names = data_list ("topologies");
  guint n = g_strv_length (names);
  g_assert_cmpuint (n, >=, 20);
  for (guint i = 0; i < n; i++) {
    g_autoptr (GPtrArray) prov = g_ptr_array_new_with_free_func ((GDestroyNotify)prov_entry_free);
    g_autoptr (TopoPreset) p = load (names[i], prov);
    g_autoptr (GError) error = NULL;
    g_autoptr (Topo) t = topo_preset_build (p, 0, &error);
    g_assert_no_error (error);
    g_assert_cmpuint (prov->len, >, 4);
    if (t)
      use (t, names[i]);
  }
}

/* Sizes that are published: GPUs of Meta's cluster and of its pods, switches of a SuperPOD, racks.
 */
static void
test_sizes (void)
{
  g_autoptr (TopoPreset) meta = load ("meta-24k-roce", NULL);
  g_autoptr (Topo) m = topo_preset_build (meta, 0, NULL);
  g_assert_cmpuint (topo_n_gpus (m), ==, 24576);
  g_assert_cmpuint (topo_n_tier (m, 0), ==, 1536); /* racks of 16 GPUs */
  g_autoptr (TopoPreset) pod = load ("dgx-b200-superpod", NULL);
  g_autoptr (Topo) b = topo_preset_build (pod, 0, NULL);
  g_assert_cmpuint (topo_n_tier (b, 0), ==, 128);
  g_assert_cmpuint (topo_n_tier (b, 1), ==, 128);
  g_assert_cmpuint (topo_n_tier (b, 2), ==, 64);
  g_autoptr (TopoPreset) rack = load ("gb200-nvl72", NULL);
  g_autoptr (Topo) r = topo_preset_build (rack, 2, NULL);
  g_assert_cmpuint (topo_n_gpus (r), ==, 144);
  g_assert_cmpuint (topo_gpus_per_node (r), ==, 72);
}

#define N(v) "{\"value\": " v ", \"kind\": \"assumed\", \"source\": \"test\"}"

static void
assert_refused (const char *text, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonDoc) doc = json_doc_parse ("t.json", text, strlen (text), &error);
  g_assert_no_error (error);
  JsonRef root = json_root (doc);
  g_autoptr (TopoPreset) p = read_topo (&root, "t", NULL, &error);
  g_assert_null (p);
  g_assert_nonnull (error);
  g_assert_nonnull (strstr (error->message, part));
}

static void
test_refused (void)
{
  assert_refused ("{}", "node");
  assert_refused ("{\"node\": {\"gpus_per_host\": 8}}", "/node");
  assert_refused ("{\"node\": {\"gpus_per_host\": " N ("8") "}, \"nods\": 3}", "nods");
  assert_refused ("{\"node\": {\"gpus_per_host\": " N ("8.5") ", \"pcie_GBps\": " N ("1") "}}",
                  "whole");
  assert_refused ("{\"node\": {\"gpus_per_host\": " N ("8") ", \"pcie_GBps\": " N ("0") "}}",
                  "pcie_GBps");
  assert_refused ("{\"node\": {\"gpus_per_host\": " N ("8") ", \"pcie_GBps\": " N (
                      "1") ", \"scale_up\": \"mesh\", \"nvlink_GBps\": " N ("1") "}}",
                  "mesh");
  assert_refused ("{\"node\": {\"gpus_per_host\": " N ("8") ", \"pcie_GBps\": " N (
                      "1") "}, \"network\": {\"kind\": \"ring\"}}",
                  "ring");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/read-topo/shipped", test_shipped);
  g_test_add_func ("/read-topo/sizes", test_sizes);
  g_test_add_func ("/read-topo/refused", test_refused);
  return g_test_run ();
}
