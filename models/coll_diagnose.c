#include "coll_diagnose.h"

#include <math.h>
#include <stdlib.h>

const char *const coll_cause_names[] = {
    "host-staged", "pcie-crowded", "midsize-dip",  "timeouts",   "unstable",
    "sockets",     "many-nodes",   "one-gpu-nics", "slow-gdr",   "small-latency",
    "half-rate",   "two-modes",    "small-jitter", "regression", NULL};

const char *const coll_cause_texts[] = {
    "GPUs of a node talk through host memory: peer to peer is off (NCCL_P2P_DISABLE, ACS or IOMMU, "
    "a "
    "virtual machine, no NVLink bridge); nvidia-smi topo -p2p r tells",
    "PCIe cards share root ports and the link between sockets: the more of them, the less for "
    "each; "
    "use fewer a job, or pairs under one switch",
    "a dip at middle sizes alone: NCCL changes algorithm or protocol at the wrong size; compare "
    "NCCL_PROTO=LL128 or Simple and NCCL_ALGO=Ring or Tree there",
    "a step of many milliseconds from one size to the next: packets are lost and sent again; "
    "switch "
    "adaptive routing on, look at flow control (PFC, ECN) and error counters",
    "large messages are far off and uneven: congestion or a bad cable or port; run pairs of nodes "
    "to "
    "find it (ibqueryerrors, ethtool -S)",
    "about what TCP sockets give: the RDMA plugin or driver was not loaded (NCCL_DEBUG=INFO names "
    "the "
    "network; aws-ofi-nccl, gIB, CXI or IB verbs missing in the container)",
    "more than two nodes get a part of what two get: the tree over two nodes hid it, or rings "
    "leave "
    "by the wrong NICs; compare two nodes, NCCL_ALGO=Ring, NCCL_CROSS_NIC=0, and the plugin's "
    "version",
    "one GPU a node cannot fill all NICs: its PCIe link is the limit; use more GPUs a node",
    "GPUDirect RDMA is slow or off: compare ib_write_bw --use_cuda with host memory; look at ACS, "
    "nvidia-peermem or dma-buf, NCCL_NET_GDR_LEVEL, PCIe ordering",
    "small messages take several times as long, whatever their size: CPU frequency and sleep "
    "states, "
    "proxy threads without cores of their own, a virtual network, NCCL_PROTO without LL",
    "a half or less of the NICs' line rate: NICs unused (NCCL_IB_HCA), ports down or at a lower "
    "rate, "
    "half of the lanes, or the fabric has fewer NICs than assumed",
    "the same call takes one of two times: another job on the same links, or two paths by hash; "
    "look "
    "at placement and routing",
    "small messages are uneven: virtual functions (SR-IOV), interrupts or noise of the system on "
    "the "
    "proxy's cores",
    "slower within the node than this part does elsewhere: a version or flag; compare the NCCL "
    "version before, and NCCL_ variables unset"};

#define KIB 1024.0
#define MIB (1024 * KIB)

static int
by_value (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double
median (double *v, guint n)
{
  if (n == 0)
    return 0;
  qsort (v, n, sizeof *v, by_value);
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static double
ratio_of (const CollPoint *p)
{
  return p->predicted_s / p->measured_s;
}

/* Median ratio of sizes from least to most; 0 when there are none. */
static double
ratio_between (const CollPoint *p, guint n, double least, double most)
{
  g_autofree double *v = g_new (double, n + 1);
  guint k = 0;
  for (guint i = 0; i < n; i++)
    if (p[i].bytes >= least && p[i].bytes <= most)
      v[k++] = ratio_of (&p[i]);
  return median (v, k);
}

static double
largest (const CollPoint *p, guint n)
{
  double most = 0;
  for (guint i = 0; i < n; i++)
    most = MAX (most, p[i].bytes);
  return most;
}

double
coll_plateau_ratio (const CollPoint *p, guint n)
{
  double most = largest (p, n);
  return ratio_between (p, n, most / 8, most);
}

typedef struct {
  const Fabric *f;
  CollOp op;
  const CollGroup *g;
  const CollPoint *p;
  guint n;
  double plateau, busbw; /* ratio, and what was measured, bytes/s */
  CollCause *cause;
  guint found;
} Case;

static void
say (Case *c, CollCause cause)
{
  c->cause[c->found++] = cause;
}

/* ---- symptoms ---- */

/* From one size to a larger one, the time grows 5 times more than the bytes, to milliseconds. */
static gboolean
has_cliff (const Case *c)
{
  for (guint i = 0; i + 1 < c->n; i++) {
    double bytes = c->p[i + 1].bytes / c->p[i].bytes;
    double time = c->p[i + 1].measured_s / c->p[i].measured_s;
    if (bytes >= 1 && time > 5 * bytes && c->p[i + 1].measured_s > 4e-3 &&
        ratio_of (&c->p[i + 1]) < 0.2)
      return TRUE;
  }
  return FALSE;
}

/* Two clusters among the times of one size, a gap of 15 % between them and two of each at least. */
static gboolean
has_two_modes (const Case *c)
{
  g_autofree double *v = g_new (double, c->n + 1);
  for (guint i = 0; i < c->n; i++) {
    guint k = 0;
    for (guint j = 0; j < c->n; j++)
      if (c->p[j].bytes == c->p[i].bytes)
        v[k++] = c->p[j].measured_s;
    if (k < 4)
      continue;
    qsort (v, k, sizeof *v, by_value);
    for (guint j = 1; j + 2 < k; j++) {
      double gap = v[j + 1] / v[j];
      if (gap > 1.15 && v[j] / v[0] < gap && v[k - 1] / v[j + 1] < gap)
        return TRUE;
    }
  }
  return FALSE;
}

/* Steps up and down of the measured busbw at sizes of 16 MiB and more, where it should only rise.
 */
static gboolean
is_unstable (const Case *c)
{
  double best = 0, worst_fall = 1;
  for (guint i = 0; i < c->n; i++) {
    if (c->p[i].bytes < 16 * MIB)
      continue;
    double rate = c->p[i].bytes / c->p[i].measured_s;
    best = MAX (best, rate);
    worst_fall = MAX (worst_fall, best / rate);
  }
  return worst_fall > 1.6;
}

/* Small messages: how many times the predicted time, and how uneven from size to size. */
static void
small_messages (Case *c)
{
  g_autofree double *v = g_new (double, c->n + 1);
  double jump = 1;
  guint k = 0;
  for (guint i = 0; i < c->n; i++) {
    if (c->p[i].bytes > 32 * KIB)
      continue;
    v[k++] = 1 / ratio_of (&c->p[i]);
    /* a smaller message that takes much longer than the one after it */
    if (i + 1 < c->n && c->p[i + 1].bytes >= c->p[i].bytes && c->p[i + 1].bytes <= 32 * KIB)
      jump = MAX (jump, c->p[i].measured_s / c->p[i + 1].measured_s);
  }
  if (k < 3)
    return;
  if (jump > 1.8)
    say (c, CAUSE_SMALL_JITTER);
  else if (median (v, k) > 4)
    say (c, CAUSE_SMALL_LATENCY);
}

static void
within_node (Case *c)
{
  double pci = c->f->pci_Bps;
  if (c->plateau > 0.85)
    return;
  if (c->plateau < 0.5 && c->f->link == FABRIC_PCI && c->g->ranks > 2)
    say (c, CAUSE_PCIE_CROWDED);
  else if (c->plateau < 0.5 && c->busbw <= 0.7 * pci)
    say (c, CAUSE_HOST_STAGED);
  else
    say (c, CAUSE_REGRESSION);
}

static void
over_network (Case *c)
{
  double line = fabric_group_net_Bps (c->f, c->g);
  /* NICs that a GPU would have to fill; one GPU a node with several NICs in reach */
  gboolean one = c->g->ranks_per_node == 1;
  if (has_cliff (c)) {
    say (c, CAUSE_TIMEOUTS);
    return;
  }
  if (c->plateau > 0.85)
    return;
  if (c->plateau < 0.12 && c->busbw < 8e9 && c->busbw < 0.12 * line && !is_unstable (c))
    say (c, CAUSE_SOCKETS);
  else if (c->plateau < 0.12 || is_unstable (c))
    say (c, CAUSE_UNSTABLE);
  else if (one && fabric_nics_per_gpu (c->f) > 1)
    say (c, CAUSE_ONE_GPU_NICS);
  else if (one)
    say (c, CAUSE_SLOW_GDR);
  else if (c->g->nodes > 2 && c->plateau > 0.4)
    say (c, CAUSE_MANY_NODES);
  if (!one && c->plateau < 0.65 && c->found == 0)
    say (c, CAUSE_HALF_RATE);
  else if (!one && c->plateau < 0.65 && c->cause[c->found - 1] == CAUSE_MANY_NODES)
    say (c, CAUSE_HALF_RATE);
  else if (c->found == 0)
    say (c, CAUSE_REGRESSION);
}

/* Slow from 64 KiB to 8 MiB, right below and above. */
static void
middle_sizes (Case *c)
{
  double below = ratio_between (c->p, c->n, 1, 32 * KIB);
  double most = largest (c->p, c->n);
  guint slow = 0;
  if (most < 64 * MIB || c->plateau < 0.75 || (below > 0 && below < 0.5))
    return;
  for (guint i = 0; i < c->n; i++)
    slow += c->p[i].bytes >= 64 * KIB && c->p[i].bytes <= 8 * MIB && ratio_of (&c->p[i]) < 0.5;
  if (slow >= 2)
    say (c, CAUSE_MIDSIZE_DIP);
}

guint
coll_diagnose (const Fabric *f, CollOp op, const CollGroup *g, const CollPoint *points, guint n,
               CollCause *cause)
{
  Case c = {.f = f, .op = op, .g = g, .p = points, .n = n, .cause = cause};
  g_autofree double *rate = g_new (double, n + 1);
  double most = largest (points, n);
  guint k = 0;
  for (guint i = 0; i < n; i++)
    if (points[i].bytes >= most / 8)
      rate[k++] = points[i].bytes / points[i].measured_s * coll_bus_factor (op, g->ranks);
  c.busbw = median (rate, k);
  c.plateau = coll_plateau_ratio (points, n);
  if (n == 0)
    return 0;
  if (has_two_modes (&c))
    say (&c, CAUSE_TWO_MODES);
  guint before = c.found;
  if (most >= 4 * MIB) {
    if (g->nodes > 1)
      over_network (&c);
    else
      within_node (&c);
    middle_sizes (&c);
  }
  /* A slow mode is no second finding. */
  if (before > 0)
    c.found = before;
  small_messages (&c);
  return c.found;
}
