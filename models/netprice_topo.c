/* From a scenario's words about its network to a Topo with the job on it. */
#include <math.h>

#include "netprice.h"

static int
common_divisor (int a, int b)
{
  while (b != 0) {
    int r = a % b;
    a = b;
    b = r;
  }
  return a;
}

/* NICs of a node as a whole number, and the rate of each. */
static int
profile_nics (const Fabric *f, double *Bps)
{
  int n = (int)CLAMP (ceil (f->nics), 1, 255);
  *Bps = f->nics * f->nic_Bps / n;
  return n;
}

/* A node of the fabric's profile. What the inside of a node costs is in the profile, so its links
 * are made wide enough never to be the bottleneck: NVLink at the fastest that the profile has seen
 * on it, PCIe at what the NICs behind it can take. */
static void
profile_node (const Spec *s, TopoNodeSpec *n, double *nic_Bps)
{
  const Fabric *f = s->fabric;
  int node = (int)MIN (s->cluster.gpus_per_node, s->cluster.gpus);
  int gpus = MAX (f->domain_gpus, node), nics = profile_nics (f, nic_Bps);
  int hosts = gpus % node == 0 && nics % (gpus / node) == 0 ? gpus / node : 1;
  int switches = common_divisor (gpus / hosts, nics / hosts);
  double wide = *nic_Bps * (nics / hosts), bus = 0;
  for (int i = 0; i < PROTO_COUNT; i++)
    bus = MAX (bus, f->ring[i].bus_Bps);
  bus = MAX (MAX (bus, f->a2a.Bps), MAX (f->p2p.Bps, 2 * f->nvls_curve.Bps));
  *n = (TopoNodeSpec){.name = f->node != NULL ? f->node : "node",
                      .hosts = hosts,
                      .gpus = gpus / hosts,
                      .numa = 1,
                      .pcie_switches = switches,
                      .nics = nics / hosts,
                      .scale_up = f->link == FABRIC_NVLINK ? TOPO_UP_NVSWITCH : TOPO_UP_NONE,
                      .nvlink_Bps = bus,
                      .pcie_Bps = MAX (f->pci_Bps, wide),
                      .pcie_up_Bps = MAX (f->pci_Bps, wide)};
}

/* Both say how fast a node can send; they must not contradict each other. */
static gboolean
check_nics (const Spec *s, const TopoNodeSpec *n, double nic_Bps, GError **error)
{
  int hosts = MAX (1, n->hosts), gpus = hosts * n->gpus;
  double has = hosts * n->nics * nic_Bps, says = s->fabric->nics * s->fabric->nic_Bps;
  if (gpus < spec_domain_gpus (s)) {
    g_set_error (error, TOPO_ERROR, TOPO_ERROR_RANGE,
                 "the node of the topology has %d GPUs, the job uses %" G_GINT64_FORMAT
                 " of a node (cluster.gpus_per_node)",
                 gpus, spec_domain_gpus (s));
    return FALSE;
  }
  if (fabs (has - says) <= 0.01 * says)
    return TRUE;
  g_set_error (error, TOPO_ERROR, TOPO_ERROR_RANGE,
               "a node of the topology sends %g GB/s (%d NICs of %g), one of the fabric %s %g "
               "(%g NICs of %g); they must agree",
               has * 1e-9, hosts * n->nics, nic_Bps * 1e-9,
               s->fabric->name != NULL ? s->fabric->name : "in place", says * 1e-9, s->fabric->nics,
               s->fabric->nic_Bps * 1e-9);
  return FALSE;
}

/* Leaves of one plane. */
static int
count_leaves (const TopoSpec *t, const TopoNodeSpec *n)
{
  int hosts = (int)MIN (t->nodes * (gint64)MAX (1, n->hosts), TOPO_MAX_GPUS);
  int under = t->rail_optimised ? t->leaf_ports : MAX (1, t->leaf_ports / MAX (1, n->nics));
  return (hosts + under - 1) / under * (t->rail_optimised ? MAX (1, n->nics) : 1);
}

/* Switches of one type, with as many ports up as down, where the scenario says no more; a spine
 * that has all leaves of a network under it takes a cable of each at least. */
static void
fill_ports (TopoSpec *t, const TopoNodeSpec *n)
{
  gboolean two = t->net == TOPO_NET_LEAF_SPINE;
  if (t->spine_ports == 0)
    t->spine_ports = two ? MAX (2 * t->leaf_ports, count_leaves (t, n)) : t->leaf_ports;
  if (t->pod_leaves == 0)
    t->pod_leaves = t->leaf_ports;
  if (t->core_ports == 0)
    t->core_ports = 2 * t->leaf_ports;
}

Topo *
netprice_make_topo (const Spec *s, TopoNetKind net, guint32 nodes, GError **error)
{
  const NetworkSpec *n = &s->network;
  TopoNodeSpec node = n->node;
  TopoSpec t = n->topo;
  double nic_Bps = t.nic_Bps;
  if (!n->has_node)
    profile_node (s, &node, &nic_Bps);
  else if (!check_nics (s, &node, nic_Bps, error))
    return NULL;
  g_autoptr (TopoDesc) d = topo_node_build (&node, error);
  if (d == NULL)
    return NULL;
  t.node = d;
  t.nodes = nodes;
  t.net = net;
  t.nic_Bps = nic_Bps;
  if (!(t.efficiency > 0)) /* what the transport leaves of the line rate, on every link alike */
    t.efficiency = CLAMP (s->fabric->efficiency, 1e-3, 1);
  if (net != TOPO_NET_SINGLE)
    fill_ports (&t, &node);
  return topo_new (&t, error);
}

gboolean
netprice_place (const Spec *s, const Topo *t, guint32 *job, guint32 *neighbour, guint32 n_neighbour,
                GError **error)
{
  const NetworkSpec *n = &s->network;
  g_autofree guint8 *used = g_malloc0 (topo_n_gpus (t));
  TopoPlaceSpec mine = {.kind = n->placement,
                        .ranks = (guint32)s->cluster.gpus,
                        .ranks_per_node = (guint32)spec_domain_gpus (s),
                        .seed = s->run.seed,
                        .hosts = (const char *const *)n->hosts};
  if (n->placement == TOPO_PLACE_HOSTS)
    mine.ranks_per_node = (guint32)s->cluster.gpus_per_node;
  TopoPlaceSpec other = {
      .kind = n->neighbour.placement, .ranks = n_neighbour, .seed = s->run.seed + 1};
  return topo_place (t, &mine, used, job, error) &&
         (n_neighbour == 0 || topo_place (t, &other, used, neighbour, error));
}

/* Upward link of the index-th thing of the kind that is broken, or G_MAXUINT32. */
static guint32
fault_link (const Topo *t, int planes, NetFaultWhere where, guint32 index)
{
  if (where != NET_FAULT_NIC)
    return topo_cable_above (t, where == NET_FAULT_LEAF ? 0 : 1, index);
  guint32 port = index % (guint32)planes, nic = index / (guint32)planes;
  guint32 per = topo_nics_per_node (t);
  return nic / per < topo_n_nodes (t)
             ? topo_nic_link (t, nic / per, (int)(nic % per), (int)port, TRUE)
             : G_MAXUINT32;
}

gboolean
netprice_break (const Spec *s, Topo *t, GArray *links, GError **error)
{
  const NetFault *f = &s->network.fault;
  for (guint32 i = f->first; i < f->first + f->count; i++) {
    guint32 up = fault_link (t, MAX (1, s->network.topo.planes), f->where, i);
    if (up == G_MAXUINT32) {
      g_set_error (error, TOPO_ERROR, TOPO_ERROR_RANGE,
                   "fault: there is no link number %u of this kind (%s)", i,
                   net_fault_names[f->where]);
      return FALSE;
    }
    for (guint32 l = up; l <= up + 1; l++) {
      if (f->down_s > 0)
        g_array_append_val (links, l);
      else if (f->rate > 0)
        topo_scale_link (t, l, f->rate);
      else
        topo_set_link_up (t, l, FALSE);
    }
  }
  return TRUE;
}
