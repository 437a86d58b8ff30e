/* What a plan takes alone, and costs from a fabric's profile. */
#include "coll_cost.h"
#include "coll_plan.h"
#include "maxmin.h"

#include <math.h>

/* Channels of a phase alone on the network: filled together, again whenever one ends. */
double
coll_plan_phase_time_s (const CollPlan *p, guint phase)
{
  const CollPhase *ph = coll_plan_phase (p, phase);
  const double *cap = topo_link_caps (p->topo);
  const guint32 *links = (const guint32 *)(const void *)p->links->data;
  const double *coefs = (const double *)(const void *)p->coefs->data;
  guint n = ph->n_channel;
  g_autoptr (MaxMin) m = maxmin_new (topo_n_links (p->topo), cap);
  g_autofree guint32 *id = g_new (guint32, n);
  g_autofree double *left = g_new (double, n);
  double now = 0;
  guint live = 0;
  for (guint c = 0; c < n; c++) {
    const CollChannel *ch = coll_plan_channel (p, ph->channel + c);
    left[c] = (double)ch->amount;
    id[c] = G_MAXUINT32;
    if (ch->n_path == 0 || ch->amount <= 0)
      continue;
    id[c] = maxmin_add (m, links + ch->path, coefs + ch->path, ch->n_path,
                        ch->cap_Bps > 0 ? ch->cap_Bps : INFINITY);
    live++;
  }
  while (live > 0) {
    double next = INFINITY;
    maxmin_solve (m, NULL);
    for (guint c = 0; c < n; c++)
      if (id[c] != G_MAXUINT32)
        next = MIN (next, left[c] / maxmin_rate (m, id[c]));
    if (isinf (next))
      return INFINITY;
    now += next;
    for (guint c = 0; c < n; c++) {
      if (id[c] == G_MAXUINT32)
        continue;
      double rate = maxmin_rate (m, id[c]);
      gboolean ends = left[c] / rate <= next * (1 + 1e-12);
      left[c] -= rate * next;
      if (!ends)
        continue;
      maxmin_remove (m, id[c]);
      id[c] = G_MAXUINT32;
      live--;
    }
  }
  return now;
}

double
coll_plan_time_s (const CollPlan *p)
{
  double t = p->start_s;
  for (guint i = 0; i < p->phases->len; i++)
    t += coll_plan_phase_time_s (p, i) + coll_plan_phase (p, i)->alpha_s;
  return p->phases->len > 0 ? t : 0;
}

CollCosts
coll_costs_from_fabric (const Fabric *f, CollOp op, const CollGroup *g, CollChoice how,
                        double bytes)
{
  CollProto proto = how.proto == PROTO_AUTO ? PROTO_SIMPLE : how.proto;
  CollChoice fixed = {how.algo, proto};
  /* With endless bandwidth only alpha is left. */
  Fabric fast = *f;
  fast.cache = NULL;
  fast.env = (NcclEnv){0};
  fast.nic_Bps = fast.nvls_curve.Bps = fast.nvlstree.Bps = fast.a2a.Bps = fast.p2p.Bps = INFINITY;
  fast.net_p2p.Bps = INFINITY;
  for (int i = 0; i < PROTO_COUNT; i++)
    fast.ring[i].bus_Bps = INFINITY;
  gboolean pairs = op == COLL_ALLTOALL || op == COLL_SENDRECV;
  CollCosts c = {.base_s = f->ring[proto].base_s + (g->nodes > 1 ? f->net_base_s : 0),
                 .hop_s = f->ring[proto].hop_s,
                 .net_hop_s = f->net_hop_s[proto],
                 .bus_Bps = coll_bus_Bps (f, g, proto)};
  double eff =
      g->nodes > 1 && f->nics > 0 ? coll_net_Bps (f, g, proto) / fabric_group_net_Bps (f, g) : 1;
  if (pairs) {
    c.base_s = op == COLL_ALLTOALL ? f->a2a.base_s : f->p2p.base_s;
    c.hop_s = op == COLL_ALLTOALL ? f->a2a.hop_s : 0;
    c.net_hop_s = op == COLL_ALLTOALL ? f->a2a_net_hop_s : 0;
    c.bus_Bps = op == COLL_ALLTOALL ? coll_alltoall_Bps (f, g) : f->p2p.Bps;
    eff = f->a2a_efficiency;
  } else if (how.algo == ALGO_TREE) {
    eff *= f->tree_efficiency / f->efficiency;
  } else if (how.algo == ALGO_NVLS || how.algo == ALGO_NVLSTREE) {
    const FabricCurve *curve = how.algo == ALGO_NVLS ? &f->nvls_curve : &f->nvlstree;
    c.base_s = curve->base_s;
    c.hop_s = 0;
    c.net_hop_s = f->nvlstree.hop_s;
    c.algo_Bps = curve->Bps;
    eff = f->nvlstree_efficiency;
    if (f->nvlstree_nics > 0)
      eff *= MIN (1, f->nvlstree_nics / (g->ranks_per_node * fabric_nics_per_gpu (f)));
  } else if (how.algo == ALGO_COLLNET_DIRECT || how.algo == ALGO_COLLNET_CHAIN) {
    c.net_hop_s = f->sharp_hop_s;
    eff = f->sharp_efficiency;
  } else if (how.algo == ALGO_PAT) {
    eff = f->pat_efficiency;
  }
  c.nic_Bps = g->nodes > 1 ? eff * f->nic_Bps : 0;
  if (op == COLL_SENDRECV && g->nodes > 1) /* one message takes all NICs of its GPU */
    c.nic_Bps = coll_p2p_net_Bps (f);
  c.total_s = coll_algo_time_s (&fast, op, g, fixed, bytes);
  coll_cache_free (fast.cache);
  return c;
}
