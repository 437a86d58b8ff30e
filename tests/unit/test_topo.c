/* test_topo: sizes of networks against published tables, routes against what must hold for any
 * route (what goes into a switch comes out of it), failures, bad input, placement. */
#include "topo.h"
#include "rng.h"
#include "topo_priv.h"

#include <math.h>
#include <string.h>

#define GB 1e9

static TopoDesc *
dgx_h100 (void)
{
  TopoNodeSpec s = {.name = "dgx-h100",
                    .gpus = 8,
                    .numa = 2,
                    .pcie_switches = 8,
                    .nics = 8,
                    .scale_up = TOPO_UP_NVSWITCH,
                    .nvlink_Bps = 450 * GB,
                    .pcie_Bps = 63 * GB};
  g_autoptr (GError) error = NULL;
  TopoDesc *d = topo_node_build (&s, &error);
  g_assert_no_error (error);
  return d;
}

static TopoSpec
superpod (const TopoDesc *node, guint32 nodes)
{
  return (TopoSpec){.node = node,
                    .nodes = nodes,
                    .net = nodes <= 256 ? TOPO_NET_LEAF_SPINE : TOPO_NET_CLOS3,
                    .rail_optimised = TRUE,
                    .nic_Bps = 50 * GB,
                    .leaf_ports = 32,
                    .spine_ports = nodes <= 256 ? 64 : 32,
                    .pod_leaves = 8,
                    .core_ports = 64,
                    .switch_s = 300e-9};
}

static Topo *
make (const TopoSpec *s)
{
  g_autoptr (GError) error = NULL;
  Topo *t = topo_new (s, &error);
  g_assert_no_error (error);
  return t;
}

/* SuperPOD B200, compute fabric: nodes, leaf, spine, core (NVIDIA's table). */
static void
test_superpod_counts (void)
{
  static const guint32 row[][4] = {{64, 16, 8, 0},        {128, 32, 16, 0},
                                   {256, 64, 32, 0},      {512, 128, 128, 64},
                                   {1024, 256, 256, 128}, {2048, 512, 512, 256}};
  g_autoptr (TopoDesc) node = dgx_h100 ();
  for (gsize i = 0; i < G_N_ELEMENTS (row); i++) {
    TopoSpec s = superpod (node, row[i][0]);
    g_autoptr (Topo) t = make (&s);
    for (int tier = 0; tier < 3; tier++)
      g_assert_cmpuint (topo_n_tier (t, tier), ==, row[i][tier + 1]);
  }
}

/* ---- routes --------------------------------------------------------------------------------- */

/* Flow conservation at every switch, 1 out of the source's NICs and 1 into the target's. */
static void
assert_route (Topo *t, guint32 a, guint32 b, const TopoPath *p)
{
  g_autofree double *net = g_new0 (double, t->n_sw + 1);
  double up = 0, down = 0;
  for (guint i = 0; i < p->n; i++) {
    guint32 l = p->links[i];
    g_assert_true (p->coef[i] > 0 && p->coef[i] <= 1 + 1e-12);
    if (l < t->first_port)
      continue;
    if (l < t->first_cable) {
      guint32 port = (l - t->first_port) / 2, node = port / (guint32)t->planes / t->nics;
      gboolean goes_up = (l - t->first_port) % 2 == 0;
      g_assert_cmpuint (node, ==, (goes_up ? a : b) / t->gpus);
      net[t->leaf[port]] += goes_up ? p->coef[i] : -p->coef[i];
      *(goes_up ? &up : &down) += p->coef[i];
      continue;
    }
    guint32 c = (l - t->first_cable) / 2;
    gboolean back = (l - t->first_cable) % 2;
    net[back ? t->cable_b[c] : t->cable_a[c]] -= p->coef[i];
    net[back ? t->cable_a[c] : t->cable_b[c]] += p->coef[i];
  }
  for (guint32 v = 0; v < t->n_sw; v++)
    g_assert_cmpfloat (fabs (net[v]), <, 1e-9);
  gboolean leaves = a / t->gpus != b / t->gpus;
  g_assert_cmpfloat_with_epsilon (up, leaves ? 1 : 0, 1e-9);
  g_assert_cmpfloat_with_epsilon (down, leaves ? 1 : 0, 1e-9);
}

static void
random_routes (Topo *t, guint n)
{
  SimRng r = sim_rng_stream (7, 0, "test.topo", 0);
  TopoPath p = {0};
  for (guint i = 0; i < n; i++) {
    TopoRouteOpts o = {
        .mode = (TopoRouteMode)(i % TOPO_ROUTE_COUNT), .seed = 3, .key = i, .nic = -1};
    guint32 a = (guint32)sim_rng_below (&r, topo_n_gpus (t));
    guint32 b = (guint32)sim_rng_below (&r, topo_n_gpus (t));
    topo_path_reset (&p);
    g_assert_true (topo_route (t, a, b, &o, &p));
    assert_route (t, a, b, &p);
  }
  topo_path_clear (&p);
}

static void
test_routes (void)
{
  g_autoptr (TopoDesc) node = dgx_h100 ();
  for (int kind = 0; kind < 6; kind++) {
    TopoSpec s = superpod (node, kind == 1 ? 512 : 96);
    s.net = kind == 1   ? TOPO_NET_CLOS3
            : kind == 2 ? TOPO_NET_DRAGONFLY
            : kind == 3 ? TOPO_NET_SINGLE
                        : TOPO_NET_LEAF_SPINE;
    s.planes = kind == 4 ? 2 : 1;
    s.rail_optimised = kind != 5;
    s.leaf_oversub = kind == 5 ? 7 : 1;
    g_autoptr (Topo) t = make (&s);
    random_routes (t, 300);
  }
}

static guint
count_links (const Topo *t, const TopoPath *p, gboolean net)
{
  guint n = 0;
  for (guint i = 0; i < p->n; i++)
    n += topo_link_is_net (t, p->links[i]) == net;
  return n;
}

/* Same rail, same leaf: two network links and the PCIe ways. Another rail: over NVLink to the
 * owner of the NIC on the target's rail (PXN) and two network links; without, over a spine. */
static void
test_rails (void)
{
  g_autoptr (TopoDesc) node = dgx_h100 ();
  TopoSpec s = superpod (node, 64);
  s.node_latency_s = 100e-9;
  g_autoptr (Topo) t = make (&s);
  TopoRouteOpts o = {.mode = TOPO_ROUTE_ECMP, .nic = -1};
  TopoPath p = {0};
  topo_route (t, 3, 8 + 3, &o, &p);
  g_assert_cmpuint (count_links (t, &p, TRUE), ==, 2);
  g_assert_cmpuint (count_links (t, &p, FALSE), ==, 4);
  g_assert_cmpfloat_with_epsilon (p.latency_s, 4 * 100e-9 + 300e-9, 1e-12);
  topo_path_reset (&p);
  topo_route (t, 3, 8 + 5, &o, &p);
  g_assert_cmpuint (count_links (t, &p, TRUE), ==, 2);
  g_assert_cmpuint (count_links (t, &p, FALSE), ==, 6);
  topo_path_reset (&p);
  o.no_pxn = TRUE;
  topo_route (t, 3, 8 + 5, &o, &p);
  g_assert_cmpuint (count_links (t, &p, TRUE), ==, 4);
  topo_path_reset (&p);
  topo_route (t, 3, 32 * 8 + 3, &o, &p); /* another leaf of the rail */
  g_assert_cmpuint (count_links (t, &p, TRUE), ==, 4);
  topo_path_reset (&p);
  o.mode = TOPO_ROUTE_ADAPTIVE; /* 8 spines by 4 cables, up and down */
  topo_route (t, 3, 32 * 8 + 3, &o, &p);
  g_assert_cmpuint (count_links (t, &p, TRUE), ==, 2 + 2 * 32);
  topo_path_clear (&p);
}

/* Hybrid cube mesh: neighbours by their own lanes; 0 to 7 by two NVLink hops, evenly over both
 * ways (through 3 and 4). */
static void
test_dgx1 (void)
{
  TopoNodeSpec s = {.name = "dgx-1",
                    .gpus = 8,
                    .numa = 2,
                    .pcie_switches = 4,
                    .nics = 4,
                    .scale_up = TOPO_UP_MESH,
                    .nvlink_Bps = 25 * GB,
                    .mesh = topo_mesh_dgx1_v100,
                    .n_mesh = topo_mesh_dgx1_v100_n,
                    .pcie_Bps = 12 * GB};
  g_autoptr (GError) error = NULL;
  g_autoptr (TopoDesc) d = topo_node_build (&s, &error);
  g_assert_no_error (error);
  TopoSpec one = {.node = d, .nodes = 1};
  g_autoptr (Topo) t = make (&one);
  TopoRouteOpts o = {.nic = -1};
  TopoPath p = {0};
  g_assert_true (topo_route (t, 0, 3, &o, &p));
  g_assert_cmpuint (p.n, ==, 1);
  g_assert_cmpfloat (topo_link_caps (t)[p.links[0]], ==, 50 * GB);
  topo_path_reset (&p);
  g_assert_true (topo_route (t, 0, 7, &o, &p));
  g_assert_cmpuint (p.n, ==, 4);
  for (guint i = 0; i < p.n; i++)
    g_assert_cmpfloat (p.coef[i], ==, 0.5);
  for (guint32 g = 0; g < 8; g++)
    g_assert_cmpfloat (topo_scale_up_Bps (t, g), ==, 150 * GB);
  const guint8 *nics = NULL;
  g_assert_cmpuint (topo_nics_of_gpu (t, 5, &nics), ==, 1);
  g_assert_cmpuint (nics[0], ==, 2); /* two GPUs share each of the four NICs */
  topo_path_clear (&p);
}

/* NVL72: 18 trays of 4 GPUs and 4 NICs, one NVLink domain. Rails are NICs of a tray. */
static void
test_nvl72 (void)
{
  TopoNodeSpec s = {.name = "nvl72",
                    .hosts = 18,
                    .gpus = 4,
                    .numa = 2,
                    .nics = 4,
                    .scale_up = TOPO_UP_NVSWITCH,
                    .nvlink_Bps = 900 * GB,
                    .pcie_Bps = 63 * GB};
  g_autoptr (GError) error = NULL;
  g_autoptr (TopoDesc) d = topo_node_build (&s, &error);
  g_assert_no_error (error);
  TopoSpec racks = {.node = d,
                    .nodes = 8,
                    .net = TOPO_NET_LEAF_SPINE,
                    .rail_optimised = TRUE,
                    .nic_Bps = 50 * GB,
                    .leaf_ports = 36,
                    .spine_ports = 72};
  g_autoptr (Topo) t = make (&racks);
  g_assert_cmpuint (topo_n_gpus (t), ==, 576);
  g_assert_cmpuint (topo_n_tier (t, 0), ==, 16); /* 144 trays, 36 a leaf, 4 rails */
  g_assert_true (topo_has_nvlink (t, 0, 71));
  g_assert_false (topo_has_nvlink (t, 0, 72));
  g_autofree char *host = topo_host_of (t, 72 + 5);
  g_assert_cmpstr (host, ==, "node0019");
  random_routes (t, 300);
}

/* 7:1 at the leaf: down 32 x 50 GB/s, up 5 cables of 50 (rounded up from 4.57). */
static void
test_oversubscription (void)
{
  g_autoptr (TopoDesc) node = dgx_h100 ();
  TopoSpec s = superpod (node, 64);
  s.leaf_oversub = 7;
  s.efficiency = 0.9;
  g_autoptr (Topo) t = make (&s);
  double up = 0;
  for (guint32 c = 0; c < t->n_cables; c++)
    if (t->cable_a[c] == 0)
      up += t->cap[t->first_cable + 2 * c];
  g_assert_cmpfloat_with_epsilon (up, 5 * 50 * GB * 0.9, 1);
  g_assert_cmpfloat_with_epsilon (t->cap[topo_nic_link (t, 0, 0, 0, TRUE)], 45 * GB, 1);
}

static void
test_failures (void)
{
  g_autoptr (TopoDesc) node = dgx_h100 ();
  TopoSpec s = superpod (node, 64);
  g_autoptr (Topo) t = make (&s);
  TopoRouteOpts o = {.mode = TOPO_ROUTE_ADAPTIVE, .nic = -1};
  TopoPath p = {0};
  topo_route (t, 0, 8 * 40, &o, &p);
  guint32 dead = p.links[3];
  for (guint i = 0; i < p.n && !topo_link_is_net (t, dead); i++)
    dead = p.links[i];
  for (guint i = 0; i < p.n; i++)
    if (p.links[i] >= t->first_cable)
      dead = p.links[i];
  topo_set_link_up (t, dead, FALSE);
  topo_path_reset (&p);
  g_assert_true (topo_route (t, 0, 8 * 40, &o, &p));
  assert_route (t, 0, 8 * 40, &p);
  for (guint i = 0; i < p.n; i++)
    g_assert_cmpuint (p.links[i], !=, dead);
  topo_set_link_up (t, dead, TRUE);
  topo_set_link_up (t, topo_nic_link (t, 0, 0, 0, TRUE), FALSE);
  topo_path_reset (&p);
  g_assert_false (topo_route (t, 0, 8 * 40, &o, &p));
  topo_path_clear (&p);
}

/* ---- bad input ------------------------------------------------------------------------------ */

static void
assert_bad_desc (TopoDesc *d, TopoError code, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_assert_false (topo_desc_check (d, &error));
  g_assert_error (error, TOPO_ERROR, (int)code);
  g_assert_nonnull (strstr (error->message, part));
}

static void
test_bad_desc (void)
{
  g_autoptr (TopoDesc) loop = topo_desc_new ("loop");
  for (int i = 0; i < 3; i++)
    topo_desc_add (loop, TOPO_PCI_SWITCH, "sw", 0);
  for (guint32 i = 0; i < 3; i++)
    topo_desc_link (loop, i, (i + 1) % 3, TOPO_LINK_PCI, GB, 1);
  assert_bad_desc (loop, TOPO_ERROR_LOOP, "closes a loop");

  g_autoptr (TopoDesc) apart = topo_desc_new ("apart");
  topo_desc_add (apart, TOPO_GPU, "gpu0", 0);
  topo_desc_add (apart, TOPO_GPU, "gpu1", 0);
  assert_bad_desc (apart, TOPO_ERROR_UNREACHABLE, "gpu1");

  g_autoptr (TopoDesc) zero = topo_desc_new ("zero");
  topo_desc_add (zero, TOPO_GPU, "gpu0", 0);
  topo_desc_add (zero, TOPO_GPU, "gpu1", 0);
  topo_desc_link (zero, 0, 1, TOPO_LINK_NVLINK, 0, 1);
  assert_bad_desc (zero, TOPO_ERROR_RANGE, "no bandwidth");

  g_autoptr (TopoDesc) twins = topo_desc_new ("twins");
  topo_desc_add (twins, TOPO_HOST, "n1", 0);
  topo_desc_add (twins, TOPO_HOST, "n1", 0);
  topo_desc_add (twins, TOPO_SWITCH, "s", 0);
  topo_desc_link (twins, 0, 2, TOPO_LINK_NET, GB, 1);
  topo_desc_link (twins, 1, 2, TOPO_LINK_NET, GB, 1);
  assert_bad_desc (twins, TOPO_ERROR_DUPLICATE, "n1");
}

static void
assert_bad_spec (TopoSpec s, TopoError code)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (Topo) t = topo_new (&s, &error);
  g_assert_null (t);
  g_assert_error (error, TOPO_ERROR, (int)code);
}

static void
test_bad_spec (void)
{
  g_autoptr (TopoDesc) node = dgx_h100 ();
  static const char *const twins[] = {"a", "b", "a"};
  TopoSpec s = superpod (node, 64);
  s.nodes = 0;
  assert_bad_spec (s, TOPO_ERROR_RANGE);
  s.nodes = G_MAXUINT32;
  assert_bad_spec (s, TOPO_ERROR_RANGE);
  s = superpod (node, 64);
  s.nic_Bps = 0;
  assert_bad_spec (s, TOPO_ERROR_RANGE);
  s = superpod (node, 64);
  s.leaf_ports = 0;
  assert_bad_spec (s, TOPO_ERROR_RANGE);
  s = superpod (node, 8192); /* 10 million links: 131,072 NICs by 80 cables */
  s.nodes = 16384;
  s.up_Bps = 0.5 * GB;
  s.spine_ports = 65536;
  assert_bad_spec (s, TOPO_ERROR_RANGE);
  s = superpod (node, 3);
  s.host_names = twins;
  assert_bad_spec (s, TOPO_ERROR_DUPLICATE);
  s = superpod (node, 64);
  s.spine_ports = 4; /* more spines than a leaf has cables */
  assert_bad_spec (s, TOPO_ERROR_RANGE);
  s.net = TOPO_NET_NONE;
  assert_bad_spec (s, TOPO_ERROR_UNREACHABLE);
}

/* ---- placement ------------------------------------------------------------------------------ */

static void
test_place (void)
{
  g_autoptr (TopoDesc) node = dgx_h100 ();
  TopoSpec s = superpod (node, 8);
  g_autoptr (Topo) t = make (&s);
  g_autoptr (GError) error = NULL;
  guint8 used[64] = {0};
  guint32 gpu[64];
  static const char *const hosts[] = {"node0005", "node0002", NULL};
  TopoPlaceSpec p = {.kind = TOPO_PLACE_BLOCK, .ranks = 12};
  g_assert_true (topo_place (t, &p, used, gpu, &error));
  g_assert_cmpuint (gpu[11], ==, 11);
  p = (TopoPlaceSpec){.kind = TOPO_PLACE_HOSTS, .ranks = 16, .hosts = hosts};
  g_assert_true (topo_place (t, &p, used, gpu, &error));
  g_assert_cmpuint (gpu[0], ==, 40);
  g_assert_cmpuint (gpu[8], ==, 16);
  p = (TopoPlaceSpec){.kind = TOPO_PLACE_RAIL, .ranks = 16};
  g_assert_true (
      topo_place (t, &p, used, gpu, &error)); /* nodes 3 and 4: 0, 1 and 5 are not free */
  g_assert_cmpuint (gpu[0], ==, 24);
  g_assert_cmpuint (gpu[1], ==, 32);
  g_assert_cmpuint (gpu[2], ==, 25);
  p = (TopoPlaceSpec){.kind = TOPO_PLACE_SCATTERED, .ranks = 16, .seed = 5};
  g_assert_true (topo_place (t, &p, used, gpu, &error));
  g_assert_cmpuint (gpu[0] % 8, ==, 0);
  p = (TopoPlaceSpec){.kind = TOPO_PLACE_BLOCK, .ranks = 16};
  g_assert_false (topo_place (t, &p, used, gpu, &error));
  g_assert_error (error, TOPO_ERROR, TOPO_ERROR_PLACEMENT);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/topo/superpod-counts", test_superpod_counts);
  g_test_add_func ("/topo/routes", test_routes);
  g_test_add_func ("/topo/rails", test_rails);
  g_test_add_func ("/topo/dgx1", test_dgx1);
  g_test_add_func ("/topo/nvl72", test_nvl72);
  g_test_add_func ("/topo/oversubscription", test_oversubscription);
  g_test_add_func ("/topo/failures", test_failures);
  g_test_add_func ("/topo/bad-desc", test_bad_desc);
  g_test_add_func ("/topo/bad-spec", test_bad_spec);
  g_test_add_func ("/topo/place", test_place);
  return g_test_run ();
}
