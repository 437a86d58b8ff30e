#include "topo_priv.h"

#include "rng.h"

#include <string.h>

const char *const topo_route_names[] = {"static", "ecmp", "adaptive", NULL};

/* ---- facts ---------------------------------------------------------------------------------- */

guint32
topo_n_gpus (const Topo *t)
{
  return t->nodes * t->gpus;
}

guint32
topo_gpus_per_node (const Topo *t)
{
  return t->gpus;
}

guint32
topo_nics_per_node (const Topo *t)
{
  return t->nics;
}

guint32
topo_n_nodes (const Topo *t)
{
  return t->nodes;
}

guint32
topo_n_links (const Topo *t)
{
  return t->n_links;
}

guint32
topo_n_switches (const Topo *t)
{
  return t->n_sw;
}

guint32
topo_n_tier (const Topo *t, int tier)
{
  guint32 n = 0;
  for (guint32 v = 0; v < t->n_sw; v++)
    n += t->tier[v] == tier;
  return n;
}

const double *
topo_link_caps (const Topo *t)
{
  return t->cap;
}

gboolean
topo_link_is_net (const Topo *t, guint32 link)
{
  return link >= t->first_port;
}

const TopoDesc *
topo_peek_node (const Topo *t)
{
  return t->node;
}

char *
topo_host_of (const Topo *t, guint32 gpu)
{
  guint32 local = gpu % t->gpus, seen = 0;
  for (guint i = 0; i < t->node->vertices->len; i++) {
    const TopoVertex *v = topo_desc_vertex (t->node, i);
    if (v->kind == TOPO_GPU && seen++ == local)
      return g_strdup (t->host_names[gpu / t->gpus * t->hosts + (guint32)MAX (0, v->host)]);
  }
  g_assert_not_reached ();
}

char *
topo_link_name (const Topo *t, guint32 link)
{
  g_assert (link < t->n_links);
  if (link < t->first_port) {
    const TopoEdge *e = topo_desc_edge (t->node, link % t->node_links / 2);
    const char *a = topo_desc_vertex (t->node, e->a)->name;
    const char *b = topo_desc_vertex (t->node, e->b)->name;
    guint32 node = link / t->node_links;
    return g_strdup_printf ("%s/%s -> %s (%s)", t->host_names[node * t->hosts], link % 2 ? b : a,
                            link % 2 ? a : b, topo_link_names[e->kind]);
  }
  if (link < t->first_cable) {
    guint32 port = (link - t->first_port) / 2, nic = port / (guint32)t->planes;
    const char *form = (link - t->first_port) % 2 ? "switch%u -> %s/nic%u" : NULL;
    const char *host = t->host_names[nic / t->nics * t->hosts];
    return form ? g_strdup_printf ("switch%u -> %s/nic%u", t->leaf[port], host, nic % t->nics)
                : g_strdup_printf ("%s/nic%u -> switch%u", host, nic % t->nics, t->leaf[port]);
  }
  guint32 c = (link - t->first_cable) / 2;
  gboolean back = (link - t->first_cable) % 2;
  return g_strdup_printf ("switch%u -> switch%u", back ? t->cable_b[c] : t->cable_a[c],
                          back ? t->cable_a[c] : t->cable_b[c]);
}

static guint32
port_of (const Topo *t, guint32 node, int nic, int plane)
{
  g_assert (node < t->nodes && nic >= 0 && (guint32)nic < t->nics && plane >= 0 &&
            plane < t->planes);
  return (node * t->nics + (guint32)nic) * (guint32)t->planes + (guint32)plane;
}

guint32
topo_nic_link (const Topo *t, guint32 node, int nic, int plane, gboolean up)
{
  return t->first_port + 2 * port_of (t, node, nic, plane) + (up ? 0 : 1);
}

guint32
topo_leaf_of_nic (const Topo *t, guint32 node, int nic, int plane)
{
  return t->leaf[port_of (t, node, nic, plane)];
}

guint
topo_nics_of_gpu (const Topo *t, guint32 gpu, const guint8 **nics)
{
  guint32 g = gpu % t->gpus;
  *nics = t->gpu_nics + t->gpu_nic_first[g];
  return t->gpu_nic_first[g + 1] - t->gpu_nic_first[g];
}

gboolean
topo_share_nic (const Topo *t, guint32 a, guint32 b, int nic)
{
  guint32 end = t->gpus + (guint32)nic;
  return a / t->gpus == b / t->gpus &&
         t->path_cost[a % t->gpus * t->n_ends + end] == t->path_cost[b % t->gpus * t->n_ends + end];
}

gboolean
topo_has_nvlink (const Topo *t, guint32 a, guint32 b)
{
  return a / t->gpus == b / t->gpus && t->path_nvlink[a % t->gpus * t->n_ends + b % t->gpus];
}

double
topo_scale_up_Bps (const Topo *t, guint32 gpu)
{
  guint32 local = gpu % t->gpus, seen = 0, vertex = G_MAXUINT32;
  double nvlink = 0, pci = 0;
  for (guint32 i = 0; i < t->node->vertices->len && vertex == G_MAXUINT32; i++)
    if (topo_desc_vertex (t->node, i)->kind == TOPO_GPU && seen++ == local)
      vertex = i;
  for (guint i = 0; i < t->node->edges->len; i++) {
    const TopoEdge *e = topo_desc_edge (t->node, i);
    if (e->a != vertex && e->b != vertex)
      continue;
    *(e->kind == TOPO_LINK_NVLINK ? &nvlink : &pci) += e->Bps;
  }
  return nvlink > 0 ? nvlink : pci;
}

void
topo_set_link_up (Topo *t, guint32 link, gboolean up)
{
  g_assert (link < t->n_links);
  if (t->down[link] == !up)
    return;
  t->down[link] = !up;
  t->n_down = up ? t->n_down - 1 : t->n_down + 1;
  for (guint32 v = 0; v < t->n_sw; v++)
    g_clear_pointer (&t->dist[v], g_free);
}

void
topo_scale_link (Topo *t, guint32 link, double factor)
{
  g_assert (link < t->n_links && factor > 0);
  t->cap[link] *= factor;
}

guint32
topo_cable_above (const Topo *t, int tier, guint32 index)
{
  for (guint32 c = 0; c < t->n_cables; c++)
    if (t->tier[t->cable_a[c]] == tier && t->tier[t->cable_b[c]] >= MAX (1, tier) && index-- == 0)
      return t->first_cable + 2 * c;
  return G_MAXUINT32;
}

/* ---- paths ---------------------------------------------------------------------------------- */

void
topo_path_reset (TopoPath *p)
{
  p->n = 0;
  p->latency_s = 0;
}

void
topo_path_clear (TopoPath *p)
{
  g_free (p->links);
  g_free (p->coef);
  *p = (TopoPath){0};
}

void
topo_path_add (TopoPath *p, guint32 link, double coef)
{
  if (p->n == p->alloc) {
    p->alloc = MAX (16, 2 * p->alloc);
    p->links = g_renew (guint32, p->links, p->alloc);
    p->coef = g_renew (double, p->coef, p->alloc);
  }
  p->links[p->n] = link;
  p->coef[p->n++] = coef;
}

/* Between two ends (GPU or NIC) of one node; the latency is returned. */
static double
add_inner (const Topo *t, guint32 node, guint32 a, guint32 b, double weight, TopoPath *p)
{
  gsize pair = (gsize)a * t->n_ends + b;
  for (guint32 i = t->path_first[pair]; i < t->path_first[pair + 1]; i++)
    topo_path_add (p, node * t->node_links + t->path_link[i], weight * t->path_coef[i]);
  return (double)t->path_latency_s[pair];
}

/* ---- over the switches ----------------------------------------------------------------------- */

static void
search (Topo *t, guint32 target)
{
  guint8 *dist = t->dist[target] = g_malloc (t->n_sw);
  guint32 head = 0, tail = 0;
  memset (dist, TOPO_FAR, t->n_sw);
  dist[target] = 0;
  t->queue[tail++] = target;
  while (head < tail) {
    guint32 v = t->queue[head++];
    for (guint32 i = t->adj_first[v]; i < t->adj_first[v + 1]; i++) {
      guint32 u = t->adj[i].to;
      /* the link from u to v is the other direction of this cable */
      guint32 towards = t->first_cable + ((t->adj[i].link - t->first_cable) ^ 1);
      if (dist[u] != TOPO_FAR || t->down[towards] || dist[v] == TOPO_FAR - 1)
        continue;
      dist[u] = (guint8)(dist[v] + 1);
      t->queue[tail++] = u;
    }
  }
}

const guint8 *
topo_distances (Topo *t, guint32 target)
{
  if (!t->dist[target])
    search (t, target);
  return t->dist[target];
}

/* Hops from v to a leaf. On a healthy Clos they follow from tier and pod; else they are searched
 * for, once a target. */
static guint
hops (Topo *t, guint32 v, guint32 target)
{
  if (!t->structured || t->n_down > 0)
    return topo_distances (t, target)[v];
  gboolean same_pod = t->pod[v] == t->pod[target];
  switch (t->tier[v]) {
  case 0:
    return v == target ? 0 : same_pod ? 2 : 4;
  case 1:
    return same_pod ? 1 : 3;
  default:
    return 2;
  }
}

static guint64
hash4 (guint64 a, guint64 b, guint64 c, guint64 d)
{
  guint64 s = a;
  s = sim_splitmix64 (&s) ^ b;
  s = sim_splitmix64 (&s) ^ c;
  s = sim_splitmix64 (&s) ^ d;
  return sim_splitmix64 (&s);
}

static gboolean
leads_on (Topo *t, const TopoAdj *a, guint32 target, guint d)
{
  return !t->down[a->link] && hops (t, a->to, target) == d - 1;
}

/* One shortest path; which of several cables: pick modulo their number, mixed anew at each hop. */
static gboolean
one_path (Topo *t, guint32 v, guint32 target, gboolean hash, guint64 pick, double weight,
          TopoPath *p)
{
  guint d = hops (t, v, target);
  if (d == TOPO_FAR)
    return FALSE;
  for (; d > 0; d--) {
    guint64 n = 0;
    for (guint32 i = t->adj_first[v]; i < t->adj_first[v + 1]; i++)
      n += leads_on (t, &t->adj[i], target, d) ? 1 : 0;
    if (n == 0)
      return FALSE;
    guint64 k = (hash ? hash4 (pick, v, d, 0) : pick) % n;
    for (guint32 i = t->adj_first[v]; i < t->adj_first[v + 1]; i++) {
      if (!leads_on (t, &t->adj[i], target, d) || k-- > 0)
        continue;
      topo_path_add (p, t->adj[i].link, weight);
      v = t->adj[i].to;
      break;
    }
  }
  return TRUE;
}

gboolean
topo_route_leaves (Topo *t, guint32 from, guint32 target, double weight, TopoPath *p)
{
  guint d = hops (t, from, target);
  guint32 n = 1, *here = t->queue, *then = t->next;
  if (d == TOPO_FAR)
    return FALSE;
  here[0] = from;
  t->frac[from] = weight;
  for (; d > 0; d--) {
    guint32 m = 0;
    for (guint32 j = 0; j < n; j++) {
      guint32 v = here[j];
      double rate = 0, part = t->frac[v];
      for (guint32 i = t->adj_first[v]; i < t->adj_first[v + 1]; i++)
        if (leads_on (t, &t->adj[i], target, d))
          rate += t->cap[t->adj[i].link];
      for (guint32 i = t->adj_first[v]; i < t->adj_first[v + 1]; i++) {
        const TopoAdj *a = &t->adj[i];
        if (!leads_on (t, a, target, d))
          continue;
        double share = part * t->cap[a->link] / rate;
        topo_path_add (p, a->link, share);
        if (!(t->frac[a->to] > 0))
          then[m++] = a->to;
        t->frac[a->to] += share;
      }
      t->frac[v] = 0;
    }
    guint32 *swap = here;
    here = then;
    then = swap;
    n = m;
  }
  for (guint32 j = 0; j < n; j++)
    t->frac[here[j]] = 0;
  return TRUE;
}

/* From a NIC of one node to a NIC of another on one plane. *hops_s grows to the latency. */
static gboolean
over_plane (Topo *t, guint32 port_a, guint32 port_b, const TopoRouteOpts *o, double weight,
            TopoPath *p, double *hops_s)
{
  guint32 up = t->first_port + 2 * port_a, down = t->first_port + 2 * port_b + 1;
  guint32 a = t->leaf[port_a], b = t->leaf[port_b];
  guint d = hops (t, a, b);
  if (t->down[up] || t->down[down] || d == TOPO_FAR)
    return FALSE;
  topo_path_add (p, up, weight);
  guint parts = o->mode == TOPO_ROUTE_ECMP ? MAX (1, o->queue_pairs) : 1;
  gboolean ok = o->mode != TOPO_ROUTE_ADAPTIVE || topo_route_leaves (t, a, b, weight, p);
  for (guint i = 0; o->mode != TOPO_ROUTE_ADAPTIVE && ok && i < parts; i++)
    ok = one_path (t, a, b, o->mode == TOPO_ROUTE_ECMP,
                   o->mode == TOPO_ROUTE_ECMP
                       ? hash4 (o->seed, port_a, port_b, o->key ^ ((guint64)i << 32))
                       : port_b,
                   weight / parts, p);
  topo_path_add (p, down, weight);
  *hops_s = MAX (*hops_s, (d + 1) * t->switch_s);
  return ok;
}

static gboolean
over_network (Topo *t, guint32 node_a, int nic_a, guint32 node_b, int nic_b, const TopoRouteOpts *o,
              double weight, TopoPath *p, double *hops_s)
{
  guint32 pa = port_of (t, node_a, nic_a, 0), pb = port_of (t, node_b, nic_b, 0);
  int live[8], n = 0;
  for (int k = 0; k < t->planes; k++) {
    guint32 up = t->first_port + 2 * (pa + (guint32)k);
    guint32 down = t->first_port + 2 * (pb + (guint32)k) + 1;
    if (!t->down[up] && !t->down[down] &&
        hops (t, t->leaf[pa + (guint32)k], t->leaf[pb + (guint32)k]) != TOPO_FAR)
      live[n++] = k;
  }
  if (n == 0)
    return FALSE;
  if (o->mode == TOPO_ROUTE_STATIC) {
    guint32 k = (guint32)live[pb % (guint32)n];
    return over_plane (t, pa + k, pb + k, o, weight, p, hops_s);
  }
  /* the ports of a NIC are used alike (NCCL has queue pairs on each); hashed within their planes */
  for (int i = 0; i < n; i++)
    if (!over_plane (t, pa + (guint32)live[i], pb + (guint32)live[i], o, weight / n, p, hops_s))
      return FALSE;
  return TRUE;
}

/* ---- from GPU to GPU ------------------------------------------------------------------------- */

/* To a NIC: by PCIe if the GPU owns it or has no NVLink to its owner, else over NVLink to the
 * owner and from there (NCCL's PXN). towards: from GPU to NIC, or back. */
static double
gpu_and_nic (const Topo *t, guint32 gpu, int nic, gboolean towards, double weight, TopoPath *p)
{
  guint32 node = gpu / t->gpus, g = gpu % t->gpus, end = t->gpus + (guint32)nic;
  guint32 owner = t->nic_owner[nic];
  for (guint32 i = t->gpu_nic_first[g]; i < t->gpu_nic_first[g + 1]; i++)
    if (t->gpu_nics[i] == nic)
      owner = g;
  guint32 own_cost = t->path_cost[g * t->n_ends + end];
  if (owner != G_MAXUINT32 && owner != g && t->path_nvlink[g * t->n_ends + owner] &&
      t->path_cost[owner * t->n_ends + end] < own_cost) {
    double lat = towards ? add_inner (t, node, g, owner, weight, p)
                         : add_inner (t, node, owner, g, weight, p);
    return lat + (towards ? add_inner (t, node, owner, end, weight, p)
                          : add_inner (t, node, end, owner, weight, p));
  }
  return towards ? add_inner (t, node, g, end, weight, p) : add_inner (t, node, end, g, weight, p);
}

void
topo_route_nic (Topo *t, guint32 gpu, int nic, gboolean up, TopoPath *p)
{
  guint32 node = gpu / t->gpus;
  gpu_and_nic (t, gpu, nic, up, 1, p);
  for (int k = 0; k < t->planes; k++)
    topo_path_add (p, topo_nic_link (t, node, nic, k, up), 1.0 / t->planes);
}

gboolean
topo_route (Topo *t, guint32 src, guint32 dst, const TopoRouteOpts *o, TopoPath *p)
{
  guint32 a = src / t->gpus, b = dst / t->gpus;
  g_assert (src < topo_n_gpus (t) && dst < topo_n_gpus (t));
  if (src == dst)
    return TRUE;
  if (a == b) {
    double lat = add_inner (t, a, src % t->gpus, dst % t->gpus, 1, p);
    p->latency_s = MAX (p->latency_s, lat);
    return TRUE;
  }
  const guint8 *out = NULL, *in = NULL;
  guint8 forced = (guint8)MAX (0, o->nic);
  guint8 enter = o->enter > 0 ? (guint8)(o->enter - 1) : forced;
  guint n_out = topo_nics_of_gpu (t, src, &out), n_in = topo_nics_of_gpu (t, dst, &in);
  if (o->nic >= 0) {
    out = &forced;
    in = &enter;
    n_out = n_in = 1;
  } else if (!o->no_pxn && t->rails && t->path_nvlink[src % t->gpus * t->n_ends + dst % t->gpus]) {
    out = in; /* leave by the rail of the other end's NICs */
    n_out = n_in;
  }
  guint n = MAX (n_out, n_in);
  if (n == 0 || t->n_sw == 0)
    return FALSE;
  for (guint i = 0; i < n; i++) {
    double net_s = 0, w = 1.0 / n;
    int nic_a = out[i % n_out], nic_b = in[i % n_in];
    double lat = gpu_and_nic (t, src, nic_a, TRUE, w, p);
    if (!over_network (t, a, nic_a, b, nic_b, o, w, p, &net_s))
      return FALSE;
    lat += net_s + gpu_and_nic (t, dst, nic_b, FALSE, w, p);
    p->latency_s = MAX (p->latency_s, lat);
  }
  return TRUE;
}

gboolean
topo_route_nvswitch (Topo *t, guint32 gpu, gboolean up, TopoPath *p)
{
  guint32 node = gpu / t->gpus, seen = 0, vertex = G_MAXUINT32;
  for (guint32 i = 0; i < t->node->vertices->len && vertex == G_MAXUINT32; i++)
    if (topo_desc_vertex (t->node, i)->kind == TOPO_GPU && seen++ == gpu % t->gpus)
      vertex = i;
  double total = 0;
  for (int pass = 0; pass < 2; pass++)
    for (guint32 i = 0; i < t->node->edges->len; i++) {
      const TopoEdge *e = topo_desc_edge (t->node, i);
      guint32 other = e->a == vertex ? e->b : e->b == vertex ? e->a : G_MAXUINT32;
      if (other == G_MAXUINT32 || topo_desc_vertex (t->node, other)->kind != TOPO_NVSWITCH)
        continue;
      if (pass == 0)
        total += e->Bps;
      else
        topo_path_add (p, node * t->node_links + 2 * i + ((e->a == vertex) == up ? 0 : 1),
                       e->Bps / total);
    }
  return total > 0;
}
