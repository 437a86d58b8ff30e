/* test_import_topo: readers of other people's files on small inputs that show the same quirks, on
 * hostile ones, and on the shared collection (CLUSTERSIM_SHARED). */
#include "import_topo.h"

#include <string.h>

static char *
notes_of (const GPtrArray *notes)
{
  GString *s = g_string_new (NULL);
  for (guint i = 0; i < notes->len; i++)
    g_string_append_printf (s, "%s; ", (const char *)g_ptr_array_index (notes, i));
  return g_string_free (s, FALSE);
}

static guint
count_edges (const TopoDesc *d, TopoLinkKind kind, int *lanes)
{
  guint n = 0;
  *lanes = 0;
  for (guint i = 0; i < d->edges->len; i++)
    if (topo_desc_edge (d, i)->kind == kind) {
      n++;
      *lanes += topo_desc_edge (d, i)->lanes;
    }
  return n;
}

typedef TopoDesc *(*Reader) (const char *name, const char *text, gsize len, GError **error);

static TopoDesc *
slurm (const char *name, const char *text, gsize len, GError **error)
{
  return import_slurm_topo_text (name, text, len, NULL, error);
}

static TopoDesc *
ibnet (const char *name, const char *text, gsize len, GError **error)
{
  return import_ibnet_text (name, text, len, NULL, error);
}

static TopoDesc *
read_ok (Reader r, const char *text)
{
  g_autoptr (GError) error = NULL;
  TopoDesc *d = r ("f", text, strlen (text), &error);
  g_assert_no_error (error);
  g_assert_nonnull (d);
  return d;
}

static void
assert_refused (Reader r, const char *text, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (TopoDesc) d = r ("f", text, strlen (text), &error);
  g_assert_null (d);
  g_assert_nonnull (error);
  if (!strstr (error->message, part))
    g_test_message ("\"%s\" lacks \"%s\"", error->message, part);
  g_assert_nonnull (strstr (error->message, part));
}

/* ---- nvidia-smi --------------------------------------------------------------------------------
 */

static void
test_smi (void)
{
  int lanes;
  /* an escape before the header, NIC names as columns, no NUMA column */
  g_autoptr (TopoDesc) a =
      read_ok (import_smi_topo_text, "$ nvidia-smi topo -m\n"
                                     "\t\033[4mGPU0\tGPU1\tmlx5_0\tCPU Affinity\033[0m\n"
                                     "GPU0\t X \tNV2\tPIX\t0-19\n"
                                     "GPU1\tNV2\t X \tPHB\t0-19\n"
                                     "mlx5_0\tPIX\tPHB\t X \n\nLegend:\n\n  X    = Self\n");
  g_assert_cmpuint (topo_desc_count (a, TOPO_GPU), ==, 2);
  g_assert_cmpuint (topo_desc_count (a, TOPO_NIC), ==, 1);
  g_assert_cmpuint (topo_desc_count (a, TOPO_NVSWITCH), ==, 0);
  g_assert_cmpuint (topo_desc_count (a, TOPO_PCI_SWITCH), ==, 1);
  g_assert_cmpuint (count_edges (a, TOPO_LINK_NVLINK, &lanes), ==, 1);
  g_assert_cmpint (lanes, ==, 2);
  g_assert_cmpstr (topo_desc_vertex (a, 2)->name, ==, "mlx5_0");

  /* three affinity columns, blanks for tabs, two NUMA nodes, equal NV18: switches; names below */
  g_autoptr (TopoDesc) b =
      read_ok (import_smi_topo_text,
               "        GPU0    GPU1  GPU2   NIC0  CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
               "GPU0     X      NV18  NV18   PXB   0-55,112-167    0               N/A\n"
               "GPU1    NV18     X    NV18   SYS   56-111          1               N/A\n"
               "GPU2    NV18    NV18   X     SYS   56-111          1               N/A\n"
               "NIC0    PXB     SYS   SYS     X\n\nNIC Legend:\n\n  NIC0: mlx5_7\n");
  g_assert_cmpuint (topo_desc_count (b, TOPO_NVSWITCH), ==, 1);
  g_assert_cmpuint (topo_desc_count (b, TOPO_CPU), ==, 2);
  g_assert_cmpuint (count_edges (b, TOPO_LINK_NVLINK, &lanes), ==, 3);
  g_assert_cmpint (lanes, ==, 54);
  g_assert_cmpstr (topo_desc_vertex (b, 3)->name, ==, "mlx5_7");

  assert_refused (import_smi_topo_text, "hello\n", "begins with GPU0");
  assert_refused (import_smi_topo_text, "\tGPU0\tGPU1\nGPU0\t X \tNV1\n", "row of GPU1 is missing");
  assert_refused (import_smi_topo_text, "\tGPU0\tGPU1\nGPU0\t X \n", "cut off");
  assert_refused (import_smi_topo_text, "\tGPU0\tGPU1\nGPU0\t X \tQQ\n", "unknown connection");
  assert_refused (import_smi_topo_text, "\tGPU0\tGPU1\nGPU0\t X \tNV1\nGPU1\tNV2\t X \n",
                  "not the same");
  assert_refused (import_smi_topo_text, "\tGPU0\tGPU0\nGPU0\t X \tNV1\n", "stands twice");
}

/* ---- NCCL XML ----------------------------------------------------------------------------------
 */

static void
test_nccl_topo (void)
{
  int lanes;
  /* a skeleton: no gpu elements, speed in two spellings and empty, a NIC with two ports */
  g_autoptr (TopoDesc) a = read_ok (
      import_nccl_topo_text,
      "<!-- c --><system version=\"1\"><cpu numaid=\"-1\">"
      "<pci busid=\"0:1\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"
      "<pci busid=\"0:2\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\"/>"
      "<pci busid=\"0:3\" class=\"0x020700\" link_speed=\"\" link_width=\"0\"><nic>"
      "<net name=\"mlx5_0\" speed=\"200000\"/><net name=\"mlx5_1\" speed=\"200000\"/></nic></pci>"
      "</pci></cpu><cpu numaid=\"-1\"><pci busid=\"0:4\" class=\"0x030000\" link_speed=\"5 GT/s\" "
      "link_width=\"8\"/></cpu></system>");
  g_assert_cmpuint (topo_desc_count (a, TOPO_GPU), ==, 2);
  g_assert_cmpuint (topo_desc_count (a, TOPO_NIC), ==, 2);
  g_assert_cmpuint (topo_desc_count (a, TOPO_CPU), ==, 2);
  g_assert_cmpfloat (topo_desc_vertex (a, 2)->net_Bps, ==, 25e9);
  double most = 0, least = 1e12;
  for (guint i = 0; i < a->edges->len; i++) {
    const TopoEdge *e = topo_desc_edge (a, i);
    most = MAX (most, e->Bps);
    least = e->Bps > 0 ? MIN (least, e->Bps) : least;
  }
  g_assert_cmpfloat_with_epsilon (most, 32e9 * 16 / 8 * 128 / 130, 1);
  g_assert_cmpfloat_with_epsilon (least, 5e9 * 8 / 8 * 0.8, 1);

  /* NVLinks to each other count once, to a switch add up, to itself are left out */
  g_autoptr (TopoDesc) b = read_ok (
      import_nccl_topo_text,
      "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"a\" class=\"0x030200\"><gpu dev=\"0\">"
      "<nvlink target=\"b\" count=\"4\" tclass=\"0x030200\"/>"
      "<nvlink target=\"s1\" count=\"5\" tclass=\"0x068000\"/>"
      "<nvlink target=\"s2\" count=\"4\" tclass=\"0x068000\"/></gpu></pci>"
      "<pci busid=\"b\" class=\"0x030200\"><gpu dev=\"1\">"
      "<nvlink target=\"a\" count=\"4\" tclass=\"0x030200\"/>"
      "<nvlink target=\"b\" count=\"12\" tclass=\"0x030200\"/></gpu></pci></cpu></system>");
  g_assert_cmpuint (count_edges (b, TOPO_LINK_NVLINK, &lanes), ==, 2);
  g_assert_cmpint (lanes, ==, 4 + 9);
  g_autofree char *notes = notes_of (b->notes);
  g_assert_nonnull (strstr (notes, "to itself"));

  assert_refused (import_nccl_topo_text, "<system", "is not XML");
  assert_refused (import_nccl_topo_text, "<html></html>", "outer element");
  assert_refused (import_nccl_topo_text, "<system/>", "no GPU");
  assert_refused (import_nccl_topo_text, "<!DOCTYPE x [<!ENTITY a \"b\">]><system/>",
                  "document type");
  assert_refused (import_nccl_topo_text, "<system><pci class=\"0x030200\"/></system>", "busid");
  assert_refused (import_nccl_topo_text,
                  "<system><cpu><pci busid=\"a\" class=\"0x0302\"/></cpu></system>", "class");
  assert_refused (import_nccl_topo_text,
                  "<system><cpu><pci busid=\"a\" class=\"0x030200\"/>"
                  "<pci busid=\"a\" class=\"0x030200\"/></cpu></system>",
                  "two GPUs");
  g_autoptr (GString) deep = g_string_new ("<system>");
  for (int i = 0; i < 5000; i++)
    g_string_append (deep, "<x>");
  assert_refused (import_nccl_topo_text, deep->str, "too deep");
}

/* ---- Slurm -------------------------------------------------------------------------------------
 */

static void
test_slurm_conf (void)
{
  g_autoptr (TopoDesc) a = read_ok (slurm, "# c\nSwitchName=top Switches=s[0-1] # x\n"
                                           "switchname=s0 nodes=n[08-11],x \\\n  LinkSpeed=5\n"
                                           "SwitchName=s1 Nodes=r[1-2]n[1-2]\n");
  g_assert_cmpuint (topo_desc_count (a, TOPO_SWITCH), ==, 3);
  g_assert_cmpuint (topo_desc_count (a, TOPO_HOST), ==, 5 + 4);
  g_assert_cmpstr (topo_desc_vertex (a, 4)->name, ==, "n09");
  g_assert_cmpstr (topo_desc_vertex (a, 11)->name, ==, "r2n2");

  g_autoptr (TopoDesc) trunks = read_ok (slurm, "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\n");
  g_autofree char *notes = notes_of (trunks->notes);
  g_assert_nonnull (strstr (notes, "2 trees without a common root"));

  g_autoptr (TopoDesc) block =
      read_ok (slurm, "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8\n");
  g_assert_cmpuint (topo_desc_count (block, TOPO_HOST), ==, 8);

  assert_refused (slurm, "", "no switch and no block");
  assert_refused (slurm, "SwitchName=a Switches=b\n", "described nowhere");
  assert_refused (slurm, "SwitchName=a Switches=a\n", "own child");
  assert_refused (slurm, "SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", "twice");
  assert_refused (slurm,
                  "SwitchName=a Switches=b,c\nSwitchName=b Switches=c\nSwitchName=c Nodes=n\n",
                  "closes a loop");
  assert_refused (slurm, "SwitchName=a Nodes=n[1-99999999999]\n", "too many names");
  assert_refused (slurm, "SwitchName=a Nodes=n[5-1]\n", "range");
  assert_refused (slurm, "SwitchName=a Nodes=n[1-\n", "not closed");
  assert_refused (slurm, "SwitchName=a Nods=n1\n", "unknown key");
  assert_refused (slurm, "SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n", "one of them");
}

static void
test_slurm_yaml (void)
{
  const char *text =
      "---\n- topology: t1\n  cluster_default: true\n  tree:\n    switches:\n"
      "      - switch: root\n        children: s[1-2]\n"
      "      - switch: s1\n        nodes: n[1-2]\n"
      "      - {switch: s2, nodes: \"n[3-4]\"}\n"
      "- topology: t2\n  block:\n    blocks:\n      - block: b1\n        nodes: n[1-2]\n"
      "- topology: t3\n  flat: true\n";
  g_autoptr (GError) error = NULL;
  g_autoptr (TopoDesc) a = read_ok (slurm, text);
  g_assert_cmpuint (topo_desc_count (a, TOPO_SWITCH), ==, 3);
  g_assert_cmpuint (topo_desc_count (a, TOPO_HOST), ==, 4);
  g_autoptr (TopoDesc) b = import_slurm_topo_text ("f", text, strlen (text), "t2", &error);
  g_assert_no_error (error);
  g_assert_cmpuint (topo_desc_count (b, TOPO_HOST), ==, 2);
  g_autoptr (TopoDesc) c = import_slurm_topo_text ("f", text, strlen (text), "t3", &error);
  g_assert_null (c);
  g_assert_error (error, IMPORT_ERROR, IMPORT_ERROR_REFUSED);
  assert_refused (slurm, "---\n- a: [\n", "is not YAML");
  assert_refused (slurm, "---\nx: 1\n", "no list of topologies");
  assert_refused (slurm, "---\n- topology: t\n  tree: &a\n    switches: [*a]\n", "has no name");
}

/* ---- ibnetdiscover ------------------------------------------------------------------------------
 */

static const char fabric[] =
    "switchguid=0x1\nSwitch  41 \"S-1\"  # \"MF0;leaf\" enhanced port 0 lid 1\n"
    "[1]  \"H-a\"[1](a)   # \"host1 mlx5_0\" lid 5 4xHDR s=4 w=2\n"
    "[2]  \"H-b\"[1](b)   # \"host1 mlx5_1\" lid 6 4xHDR\n"
    "[3]  \"S-2\"[7]      # \"MF0;spine\" lid 2 4xNDR\n"
    "[4]  \"S-2\"[8]      # \"MF0;spine\" lid 2 4xNDR\n"
    "[41] \"H-z\"[1](z)   # \"Mellanox Technologies Aggregation Node\" lid 9 4xHDR\n\n"
    "Ca 1 \"H-a\"   # \"host1 mlx5_0\"\n[1](a)  \"S-1\"[1]  # lid 5 lmc 0 \"MF0;leaf\" lid 1 "
    "4xHDR\n\n"
    "Ca 1 \"H-b\"   # \"host1 mlx5_1\"\n[1](b)  \"S-1\"[2]  # lid 6 lmc 0 \"MF0;leaf\" lid 1 "
    "4xHDR\n";

static void
test_ibnet (void)
{
  g_autoptr (TopoDesc) d = read_ok (ibnet, fabric);
  g_assert_cmpuint (topo_desc_count (d, TOPO_SWITCH), ==, 2);
  g_assert_cmpuint (topo_desc_count (d, TOPO_HOST), ==, 1); /* two adapters, one host */
  g_assert_cmpuint (d->edges->len, ==, 4); /* each once; both cables to the spine */
  double sum = 0;
  for (guint i = 0; i < d->edges->len; i++)
    sum += topo_desc_edge (d, i)->Bps;
  g_assert_cmpfloat_with_epsilon (sum, 2 * 25e9 + 2 * 50e9, 1);
  g_autoptr (GError) error = NULL;
  g_autoptr (TopoDesc) named =
      import_ibnet_text ("f", fabric, strlen (fabric), "VM_hostname vm7\na\nb\n", &error);
  g_assert_no_error (error);
  gboolean found = FALSE;
  for (guint i = 0; i < named->vertices->len; i++)
    found = found || strcmp (topo_desc_vertex (named, i)->name, "vm7") == 0;
  g_assert_true (found);
  assert_refused (ibnet, "VM_hostname x\na\n", "list of host names");
  assert_refused (ibnet, "nothing\n", "no ports");
  assert_refused (ibnet, "[1] \"S-1\"[1]\n", "before any record");
  assert_refused (ibnet, "Switch 1 \"S-1\"\n[1] S-2\n", "is no port");
  assert_refused (ibnet, "Switch 1\n", "without its GUID");
}

/* What was read is used: two nodes on the fabric of a Slurm tree, and routes across it. */
static void
test_into_topo (void)
{
  g_autoptr (TopoDesc) node =
      read_ok (import_smi_topo_text, "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV12\tPIX\n"
                                     "GPU1\tNV12\t X \tSYS\nNIC0\tPIX\tSYS\t X \n");
  g_autoptr (TopoDesc) net = read_ok (slurm, "SwitchName=top Switches=s[1-2]\n"
                                             "SwitchName=s1 Nodes=a,b\nSwitchName=s2 Nodes=c\n");
  g_autoptr (GError) error = NULL;
  TopoSpec s = {.node = node, .nodes = 3, .net = TOPO_NET_DESC, .net_desc = net, .nic_Bps = 50e9};
  g_autoptr (Topo) none = topo_new (&s, &error);
  g_assert_null (none);
  g_assert_error (error, TOPO_ERROR, TOPO_ERROR_RANGE); /* speeds are still unsaid */
  g_clear_error (&error);
  topo_desc_default_Bps (node, TOPO_LINK_NVLINK, 25e9);
  topo_desc_default_Bps (node, TOPO_LINK_PCI, 31e9);
  topo_desc_default_Bps (node, TOPO_LINK_SMP, 20e9);
  topo_desc_default_Bps (net, TOPO_LINK_NET, 50e9);
  g_autoptr (Topo) t = topo_new (&s, &error);
  g_assert_no_error (error);
  TopoRouteOpts o = {.nic = -1};
  TopoPath p = {0};
  g_assert_true (topo_route (t, 0, 4, &o, &p)); /* host a to host c: over the top */
  guint net_links = 0;
  for (guint i = 0; i < p.n; i++)
    net_links += topo_link_is_net (t, p.links[i]) ? 1 : 0;
  g_assert_cmpuint (net_links, ==, 4);
  topo_path_clear (&p);
}

/* ---- nccl-tests
 * ---------------------------------------------------------------------------------- */

static CollTable *
log_ok (const char *text)
{
  g_autoptr (GError) error = NULL;
  CollTable *t = import_nccl_tests_text ("log", text, strlen (text), &error);
  g_assert_no_error (error);
  return t;
}

static void
test_nccl_tests (void)
{
  /* launcher's tags, #wrong columns, a root, both halves; 16 ranks by the ratio 1.875 */
  g_autoptr (CollTable) a = log_ok (
      "0: #       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "0:            8             2     float     sum      -1    69.12    0.00    0.00      0"
      "    72.43    0.00    0.00      0\n"
      "0:   1073741824     268435456     float     sum      -1   4607.6  233.04  436.95      0"
      "   4565.6  235.18  440.96      0\n"
      "0:   2147483648     5368709\n");
  g_assert_cmpuint (a->rows->len, ==, 2);
  g_assert_cmpint (a->op, ==, COLL_ALL_REDUCE);
  g_assert_cmpint (a->ranks, ==, 16);
  const CollTableRow *r = &g_array_index (a->rows, CollTableRow, 1);
  g_assert_cmpfloat (r->time_us, ==, 4607.6);
  g_assert_cmpfloat (r->ip_busbw_GBps, ==, 440.96);

  /* old: no root, error instead of #wrong, times without a point, empty rows; reduce_scatter of 8
   */
  g_autoptr (CollTable) b = log_ok (
      "# nThread 1 nGpus 8 minBytes 1\n"
      "#   Rank  0 Pid 1 on hostA device  0 [0x00] A100-SXM4-40GB\n"
      "#   Rank  7 Pid 1 on hostA device  7 [0x00] A100-SXM4-40GB\n"
      "           0             0   float     sum    34.88    0.00    0.00    N/A    33.65    "
      "0.00    0.00    N/A\n"
      "  4294967296     134217728   float     sum    16400  261.89  229.15    N/A    16402  "
      "261.86  229.13    N/A\n# Avg bus bandwidth    : 60.168\n");
  g_assert_cmpint (b->op, ==, COLL_REDUCE_SCATTER);
  g_assert_cmpint (b->ranks, ==, 8);
  g_assert_cmpint (b->nodes, ==, 1);
  g_assert_cmpstr (b->gpu, ==, "A100-SXM4-40GB");
  g_assert_cmpfloat (b->avg_busbw_GBps, ==, 60.168);
  g_assert_cmpfloat (g_array_index (b->rows, CollTableRow, 0).time_us, ==, 16400);

  /* no redop: gather or alltoall; one half only, in place; no errors column */
  g_autoptr (CollTable) c =
      log_ok ("  in-place\n  8388608   131072   float   none   -1   166.6   50.34   47.19\n");
  g_assert_cmpint (c->op, ==, -1);
  g_assert_cmpuint (c->could, ==, 1u << COLL_ALL_GATHER | 1u << COLL_ALLTOALL);
  g_assert_cmpint (c->ranks, ==, 16);
  g_assert_cmpfloat (g_array_index (c->rows, CollTableRow, 0).ip_time_us, ==, 166.6);
  g_assert_cmpfloat (g_array_index (c->rows, CollTableRow, 0).time_us, ==, 0);

  /* broadcast: a root of 0, and no reduction */
  g_autoptr (CollTable) d = log_ok ("  1048576  262144  float  none  0  76.02  13.79  13.79  0\n");
  g_assert_cmpint (d->op, ==, COLL_BROADCAST);
  g_autoptr (GError) error = NULL;
  g_assert_null (import_nccl_tests_text ("log", "hello\n", 6, &error));
  g_assert_error (error, IMPORT_ERROR, IMPORT_ERROR_MISSING);
}

/* ---- noise
 * --------------------------------------------------------------------------------------- */

/* Cut anywhere, or with bytes turned over: an answer or an error, never a crash. */
static void
test_noise (void)
{
  static const char smi[] = "\tGPU0\tGPU1\nGPU0\t X \tNV1\nGPU1\tNV1\t X \n";
  static const char xml[] = "<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"a\" "
                            "class=\"0x030200\"><gpu><nvlink target=\"a\" count=\"1\"/></gpu></pci>"
                            "</cpu></system>";
  static const char conf[] = "SwitchName=a Switches=b[1-2]\nSwitchName=b1 Nodes=n[1-3]\n"
                             "SwitchName=b2 Nodes=n[4-6]\n";
  static const char yaml[] =
      "---\n- topology: t\n  tree:\n    switches:\n      - {switch: a, nodes: n}\n";
  static const char log[] = "  8388608   131072   float   none   -1   166.6   50.34   47.19  0\n";
  static const struct {
    Reader r;
    const char *text;
  } x[] = {{import_smi_topo_text, smi},
           {import_nccl_topo_text, xml},
           {slurm, conf},
           {slurm, yaml},
           {ibnet, fabric},
           {NULL, log}};
  for (gsize i = 0; i < G_N_ELEMENTS (x); i++) {
    gsize n = strlen (x[i].text);
    for (gsize k = 0; k < 2 * n; k++) {
      g_autofree char *bad = g_strdup (x[i].text);
      g_autoptr (GError) error = NULL;
      gsize len = k < n ? k : n;
      if (k >= n)
        bad[k - n] = (char)(bad[k - n] ^ (int)(1 + k % 127));
      if (x[i].r) {
        g_autoptr (TopoDesc) d = x[i].r ("f", bad, len, &error);
        g_assert_true ((d == NULL) == (error != NULL));
      } else {
        g_autoptr (CollTable) t = import_nccl_tests_text ("f", bad, len, &error);
        g_assert_true ((t == NULL) == (error != NULL));
      }
    }
  }
}

/* ---- the shared collection
 * ------------------------------------------------------------------------ */

static TopoDesc *
any_slurm (const char *path, GError **error)
{
  return import_slurm_topo (path, NULL, error);
}

static TopoDesc *
any_ibnet (const char *path, GError **error)
{
  return import_ibnet (path, NULL, error);
}

static void
read_folder (const char *shared, const char *folder, TopoDesc *(*read) (const char *, GError **))
{
  g_autofree char *dir = g_build_filename (shared, "data", "inputs", folder, NULL);
  g_autoptr (GDir) d = g_dir_open (dir, 0, NULL);
  g_assert_nonnull (d);
  for (const char *file; d && (file = g_dir_read_name (d)) != NULL;) {
    g_autofree char *path = g_build_filename (dir, file, NULL);
    g_autoptr (GError) error = NULL;
    g_autofree char *notes = NULL;
    if (read) {
      g_autoptr (TopoDesc) t = read (path, &error);
      notes = t ? notes_of (t->notes) : NULL;
      g_test_message ("%s/%s: %s%u gpus %u nics %u hosts %u switches %u links; %s", folder, file,
                      t ? "" : "REFUSED ", t ? topo_desc_count (t, TOPO_GPU) : 0,
                      t ? topo_desc_count (t, TOPO_NIC) : 0, t ? topo_desc_count (t, TOPO_HOST) : 0,
                      t ? topo_desc_count (t, TOPO_SWITCH) : 0, t ? t->edges->len : 0,
                      t ? notes : error->message + strlen (dir) + 1);
      /* two are described without their lower switches, one is no fabric */
      gboolean refusable = strstr (file, "ibstat") != NULL || strstr (file, "test133-case") != NULL;
      g_assert_true (t != NULL || refusable);
    } else {
      g_autoptr (CollTable) t = import_nccl_tests (path, &error);
      g_assert_no_error (error);
      notes = notes_of (t->notes);
      g_test_message ("%s: %u rows, %s, %d ranks, %d nodes, %s, NCCL %s; %s", file, t->rows->len,
                      t->op >= 0 ? coll_op_names[t->op] : "?", t->ranks, t->nodes,
                      t->gpu ? t->gpu : "?", t->version ? t->version : "?", notes);
    }
  }
}

static void
test_shared (void)
{
  const char *shared = g_getenv ("CLUSTERSIM_SHARED");
  if (!shared || !*shared) {
    g_test_skip ("CLUSTERSIM_SHARED is not set: the collection of users' files is not here");
    return;
  }
  read_folder (shared, "nvidia_smi_topo", import_smi_topo);
  read_folder (shared, "nccl_topo", import_nccl_topo);
  read_folder (shared, "slurm", any_slurm);
  read_folder (shared, "fabric", any_ibnet);
  read_folder (shared, "nccl_tests", NULL);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/import/smi", test_smi);
  g_test_add_func ("/import/nccl-topo", test_nccl_topo);
  g_test_add_func ("/import/slurm-conf", test_slurm_conf);
  g_test_add_func ("/import/slurm-yaml", test_slurm_yaml);
  g_test_add_func ("/import/ibnet", test_ibnet);
  g_test_add_func ("/import/into-topo", test_into_topo);
  g_test_add_func ("/import/nccl-tests", test_nccl_tests);
  g_test_add_func ("/import/noise", test_noise);
  g_test_add_func ("/import/shared", test_shared);
  return g_test_run ();
}
