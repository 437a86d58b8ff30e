#include "topo_priv.h"

#include <math.h>
#include <string.h>

const char *const topo_net_names[] = {"none",      "single-switch", "leaf-spine", "clos3",
                                      "dragonfly", "described",     NULL};

typedef struct {
  Topo *t;
  const TopoSpec *s;
  GArray *tier, *pod;         /* guint8, guint32: by switch */
  GArray *a, *b, *Bps;        /* by cable */
  guint32 leaves;             /* per plane */
  double port_Bps, cable_Bps; /* line rates */
  gint64 uplinks;             /* of a leaf */
  GError **error;
} Build;

static gboolean fail (const Build *b, TopoError code, const char *format, ...) G_GNUC_PRINTF (3, 4);
static gboolean
fail (const Build *b, TopoError code, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (b->error, TOPO_ERROR, code, "topology of %u nodes of %s: %s", b->s->nodes,
               b->s->node->name, text);
  return FALSE;
}

/* TRUE if `more` cables still fit; asked before they are made. */
static gboolean
room (const Build *b, double more)
{
  double links = (double)b->t->first_cable + 2 * ((double)b->a->len + more);
  if (links <= TOPO_MAX_LINKS)
    return TRUE;
  return fail (b, TOPO_ERROR_RANGE, "too big (needs %.0f directed links; allowed: %u)", links,
               TOPO_MAX_LINKS);
}

static guint32
add_switch (Build *b, guint8 tier, guint32 pod)
{
  g_array_append_val (b->tier, tier);
  g_array_append_val (b->pod, pod);
  return b->tier->len - 1;
}

static void
add_cable (Build *b, guint32 x, guint32 y, double Bps)
{
  g_array_append_val (b->a, x);
  g_array_append_val (b->b, y);
  g_array_append_val (b->Bps, Bps);
}

/* Smallest divisor of n that is >= least, so that cables deal out evenly; n if none is. */
static gint64
divisor_from (gint64 n, gint64 least)
{
  for (gint64 d = MAX (1, least); d < n; d++)
    if (n % d == 0)
      return d;
  return n;
}

static double
or_one (double x)
{
  return x > 0 ? x : 1;
}

/* ---- tiers ---------------------------------------------------------------------------------- */

/* Leaves [first, first + n) under spines of their own; *n_spines of them from *spine0 on. */
static gboolean
join_leaves (Build *b, guint32 first, guint32 n, guint32 pod, guint32 *spine0, gint64 *n_spines)
{
  gint64 need = (n * b->uplinks + b->s->spine_ports - 1) / b->s->spine_ports;
  if (need > b->uplinks)
    return fail (b, TOPO_ERROR_RANGE,
                 "%u leaves with %" G_GINT64_FORMAT " cables up each need %" G_GINT64_FORMAT
                 " spines of %d ports, which is more than a leaf has cables (more ports, or one "
                 "more tier)",
                 n, b->uplinks, need, b->s->spine_ports);
  if (!room (b, (double)n * (double)b->uplinks))
    return FALSE;
  *n_spines = divisor_from (b->uplinks, need);
  *spine0 = b->tier->len;
  for (gint64 i = 0; i < *n_spines; i++)
    add_switch (b, 1, pod);
  for (guint32 l = first; l < first + n; l++)
    for (gint64 j = 0; j < b->uplinks; j++)
      add_cable (b, l, *spine0 + (guint32)(j % *n_spines), b->cable_Bps);
  return TRUE;
}

static gboolean
add_leaf_spine (Build *b, guint32 leaf0, int plane)
{
  guint32 spine0;
  gint64 n_spines;
  return b->leaves == 1 || join_leaves (b, leaf0, b->leaves, (guint32)plane, &spine0, &n_spines);
}

/* Every spine number of the pods has core switches of its own. */
static gboolean
add_core (Build *b, guint32 pods, const guint32 *spine0, gint64 n_spines, int plane)
{
  const TopoSpec *s = b->s;
  double down = (double)(MIN ((guint32)s->pod_leaves, b->leaves) * b->uplinks) / (double)n_spines;
  gint64 up = MAX (1, (gint64)ceil (down / or_one (s->spine_oversub) - 1e-9));
  gint64 need = (pods * up + s->core_ports - 1) / s->core_ports;
  if (need > up)
    return fail (b, TOPO_ERROR_RANGE,
                 "%u pods with %" G_GINT64_FORMAT
                 " cables up from each spine need %" G_GINT64_FORMAT
                 " core switches of %d ports, which is more than a spine has cables",
                 pods, up, need, s->core_ports);
  if (!room (b, (double)pods * (double)n_spines * (double)up))
    return FALSE;
  gint64 cores = divisor_from (up, need);
  for (guint32 k = 0; k < n_spines; k++) {
    guint32 core0 = b->tier->len;
    for (gint64 i = 0; i < cores; i++)
      add_switch (b, 2, (guint32)plane);
    for (guint32 p = 0; p < pods; p++)
      for (gint64 j = 0; j < up; j++)
        add_cable (b, spine0[p] + k, core0 + (guint32)(j % cores), b->cable_Bps);
  }
  return TRUE;
}

/* Every pair of groups gets the same number of cables, dealt over the spines of both. */
static gboolean
add_global (Build *b, guint32 groups, const guint32 *spine0, gint64 n_spines)
{
  const TopoSpec *s = b->s;
  double rate = (double)s->pod_leaves * s->leaf_ports * b->port_Bps;
  double per_pair = floor (rate / (or_one (s->spine_oversub) * b->cable_Bps) / (groups - 1) + 1e-9);
  gint64 lanes = (gint64)CLAMP (per_pair, 1, 1e6);
  if (!room (b, (double)groups * (groups - 1) / 2 * (double)lanes))
    return FALSE;
  g_autofree guint32 *next = g_new0 (guint32, groups);
  for (guint32 p = 0; p < groups; p++)
    for (guint32 q = p + 1; q < groups; q++)
      for (gint64 j = 0; j < lanes; j++)
        add_cable (b, spine0[p] + next[p]++ % (guint32)n_spines,
                   spine0[q] + next[q]++ % (guint32)n_spines, b->cable_Bps);
  return TRUE;
}

/* Pods are built whole: the last may have leaves without hosts. */
static gboolean
add_pods (Build *b, guint32 leaf0, int plane)
{
  guint32 per = (guint32)b->s->pod_leaves, pods = b->leaves / per;
  g_autofree guint32 *spine0 = g_new (guint32, pods);
  gint64 n_spines = 1;
  for (guint32 p = 0; p < pods; p++) {
    guint32 pod = p * (guint32)b->t->planes + (guint32)plane;
    for (guint32 l = 0; l < per; l++)
      g_array_index (b->pod, guint32, leaf0 + p * per + l) = pod;
    if (!join_leaves (b, leaf0 + p * per, per, pod, &spine0[p], &n_spines))
      return FALSE;
  }
  if (pods == 1)
    return TRUE;
  return b->s->net == TOPO_NET_CLOS3 ? add_core (b, pods, spine0, n_spines, plane)
                                     : add_global (b, pods, spine0, n_spines);
}

/* ---- which leaf a NIC's port goes to --------------------------------------------------------- */

static gboolean
count_leaves (Build *b)
{
  const TopoSpec *s = b->s;
  Topo *t = b->t;
  guint32 per_host = t->nics / t->hosts, hosts = t->nodes * t->hosts;
  guint32 ports = (guint32)s->leaf_ports;
  if (s->net == TOPO_NET_SINGLE) {
    b->leaves = 1;
  } else if (s->rail_optimised) {
    b->leaves = (hosts + ports - 1) / ports * per_host;
  } else if (ports < per_host) {
    return fail (b, TOPO_ERROR_RANGE, "a leaf of %u ports takes no host of %u NICs", ports,
                 per_host);
  } else {
    guint32 per_leaf = ports / per_host;
    b->leaves = (hosts + per_leaf - 1) / per_leaf;
  }
  if (s->net == TOPO_NET_CLOS3 || s->net == TOPO_NET_DRAGONFLY) {
    guint32 pod = (guint32)s->pod_leaves;
    b->leaves = (b->leaves + pod - 1) / pod * pod;
  }
  return room (b, b->leaves);
}

static guint32
leaf_number (const Build *b, guint32 host, guint32 rail)
{
  const Topo *t = b->t;
  guint32 per_host = t->nics / t->hosts, ports = (guint32)b->s->leaf_ports;
  if (b->s->net == TOPO_NET_SINGLE)
    return 0;
  if (b->s->rail_optimised)
    return host / ports * per_host + rail;
  return host / (ports / per_host);
}

static gboolean
build_tiers (Build *b)
{
  Topo *t = b->t;
  const TopoSpec *s = b->s;
  guint32 per_host = t->nics / t->hosts;
  if (!count_leaves (b))
    return FALSE;
  b->uplinks = (gint64)ceil (
      MIN (1e7, s->leaf_ports * b->port_Bps / (or_one (s->leaf_oversub) * b->cable_Bps)) - 1e-9);
  b->uplinks = MAX (1, b->uplinks);
  t->structured = s->net != TOPO_NET_DRAGONFLY;
  for (int plane = 0; plane < t->planes; plane++) {
    guint32 leaf0 = b->tier->len;
    for (guint32 l = 0; l < b->leaves; l++)
      add_switch (b, 0, (guint32)plane);
    for (guint32 node = 0; node < t->nodes; node++)
      for (guint32 k = 0; k < t->nics; k++)
        t->leaf[(node * t->nics + k) * (guint32)t->planes + (guint32)plane] =
            leaf0 + leaf_number (b, node * t->hosts + k / per_host, k % per_host);
    gboolean ok = s->net == TOPO_NET_SINGLE ||
                  (s->net == TOPO_NET_LEAF_SPINE ? add_leaf_spine (b, leaf0, plane)
                                                 : add_pods (b, leaf0, plane));
    if (!ok)
      return FALSE;
  }
  return TRUE;
}

/* ---- a network that was described ------------------------------------------------------------ */

/* Ports of a host in the order of its links; a single link stands for all its NICs. */
static gboolean
attach_host (Build *b, guint32 host, guint32 vertex, const GArray *ports, const guint32 *sw_of)
{
  Topo *t = b->t;
  guint32 per_host = t->nics / t->hosts;
  if (ports->len != per_host && ports->len != 1)
    return fail (b, TOPO_ERROR_RANGE, "host %s has %u ports (allowed: %u, one a NIC, or 1)",
                 topo_desc_vertex (b->s->net_desc, vertex)->name, ports->len, per_host);
  for (guint32 k = 0; k < per_host; k++) {
    const TopoEdge *e =
        topo_desc_edge (b->s->net_desc, g_array_index (ports, guint32, ports->len == 1 ? 0 : k));
    guint32 sw = sw_of[e->a == vertex ? e->b : e->a];
    if (sw == G_MAXUINT32)
      return fail (b, TOPO_ERROR_RANGE, "host %s hangs on another host",
                   topo_desc_vertex (b->s->net_desc, vertex)->name);
    guint32 port = (host / t->hosts * t->nics + host % t->hosts * per_host + k);
    t->leaf[port] = sw;
    guint32 link = t->first_port + 2 * port;
    if (ports->len != 1 || per_host == 1)
      t->cap[link] = t->cap[link + 1] = MIN (t->cap[link], e->Bps * or_one (b->s->efficiency));
  }
  return TRUE;
}

/* Tier of a switch: its distance from the hosts. */
static void
tiers_from_hosts (Build *b)
{
  Topo *t = b->t;
  guint32 n = b->tier->len;
  guint8 *tier = (guint8 *)(void *)b->tier->data;
  memset (tier, TOPO_FAR, n);
  for (guint32 p = 0; p < t->nodes * t->nics; p++)
    tier[t->leaf[p]] = 0;
  for (gboolean moved = TRUE; moved;) {
    moved = FALSE;
    for (guint i = 0; i < b->a->len; i++) {
      guint32 x = g_array_index (b->a, guint32, i), y = g_array_index (b->b, guint32, i);
      guint8 *hi = tier[x] > tier[y] ? &tier[x] : &tier[y];
      guint8 lo = MIN (tier[x], tier[y]);
      if (lo < TOPO_FAR - 1 && *hi > lo + 1) {
        *hi = (guint8)(lo + 1);
        moved = TRUE;
      }
    }
  }
}

static void
free_ports (gpointer ports)
{
  if (ports)
    g_array_unref (ports);
}

static gboolean
build_described (Build *b)
{
  const TopoDesc *d = b->s->net_desc;
  Topo *t = b->t;
  if (!topo_desc_check (d, b->error))
    return FALSE;
  guint32 hosts = topo_desc_count (d, TOPO_HOST);
  if (hosts != t->nodes * t->hosts || t->planes != 1)
    return fail (b, TOPO_ERROR_RANGE,
                 "the network has %u hosts and one plane (found: %u hosts, %d planes)", hosts,
                 t->nodes * t->hosts, t->planes);
  g_autofree guint32 *sw_of = g_new (guint32, d->vertices->len + 1);
  for (guint32 v = 0; v < d->vertices->len; v++)
    sw_of[v] = topo_desc_vertex (d, v)->kind == TOPO_SWITCH ? add_switch (b, 0, 0) : G_MAXUINT32;
  g_autoptr (GPtrArray) ports = g_ptr_array_new_with_free_func (free_ports);
  for (guint32 v = 0; v < d->vertices->len; v++)
    g_ptr_array_add (ports, sw_of[v] == G_MAXUINT32 ? g_array_new (FALSE, FALSE, 4) : NULL);
  for (guint32 i = 0; i < d->edges->len; i++) {
    const TopoEdge *e = topo_desc_edge (d, i);
    if (sw_of[e->a] == G_MAXUINT32)
      g_array_append_val ((GArray *)g_ptr_array_index (ports, e->a), i);
    if (sw_of[e->b] == G_MAXUINT32)
      g_array_append_val ((GArray *)g_ptr_array_index (ports, e->b), i);
    if (sw_of[e->a] == G_MAXUINT32 || sw_of[e->b] == G_MAXUINT32)
      continue;
    if (!room (b, e->lanes))
      return FALSE;
    for (int k = 0; k < e->lanes; k++)
      add_cable (b, sw_of[e->a], sw_of[e->b], e->Bps / e->lanes);
  }
  guint32 host = 0;
  for (guint32 v = 0; v < d->vertices->len; v++)
    if (topo_desc_vertex (d, v)->kind == TOPO_HOST &&
        !attach_host (b, host++, v, g_ptr_array_index (ports, v), sw_of))
      return FALSE;
  tiers_from_hosts (b);
  return TRUE;
}

/* ---- all together ---------------------------------------------------------------------------- */

static gpointer
copy_array (const GArray *a)
{
  gsize bytes = (gsize)a->len * g_array_get_element_size ((GArray *)a);
  gpointer copy = g_malloc (bytes + 1);
  memcpy (copy, a->len > 0 ? a->data : "", bytes);
  return copy;
}

static void
finish_network (Build *b)
{
  Topo *t = b->t;
  double eff = or_one (b->s->efficiency);
  t->n_sw = b->tier->len;
  t->n_cables = b->a->len;
  t->tier = copy_array (b->tier);
  t->pod = copy_array (b->pod);
  t->cable_a = copy_array (b->a);
  t->cable_b = copy_array (b->b);
  t->n_links = t->first_cable + 2 * t->n_cables;
  t->cap = g_renew (double, t->cap, t->n_links + 1);
  t->adj_first = g_new0 (guint32, t->n_sw + 2);
  t->adj = g_new (TopoAdj, 2 * t->n_cables + 1);
  for (guint32 i = 0; i < t->n_cables; i++) {
    guint32 link = t->first_cable + 2 * i;
    t->cap[link] = t->cap[link + 1] = g_array_index (b->Bps, double, i) * eff;
    t->adj_first[t->cable_a[i] + 1]++;
    t->adj_first[t->cable_b[i] + 1]++;
  }
  for (guint32 v = 0; v < t->n_sw; v++)
    t->adj_first[v + 1] += t->adj_first[v];
  g_autofree guint32 *fill = g_memdup2 (t->adj_first, (t->n_sw + 1) * sizeof (guint32));
  for (guint32 i = 0; i < t->n_cables; i++) {
    guint32 link = t->first_cable + 2 * i;
    t->adj[fill[t->cable_a[i]]++] = (TopoAdj){link, t->cable_b[i]};
    t->adj[fill[t->cable_b[i]]++] = (TopoAdj){link + 1, t->cable_a[i]};
  }
  t->down = g_new0 (guint8, t->n_links + 1);
  t->dist = g_new0 (guint8 *, t->n_sw + 1);
  t->frac = g_new0 (double, t->n_sw + 1);
  t->queue = g_new (guint32, t->n_sw + 1);
  t->next = g_new (guint32, t->n_sw + 1);
}

static gboolean
check_numbers (const Build *b)
{
  const TopoSpec *s = b->s;
  const Topo *t = b->t;
  double gpus = (double)s->nodes * t->gpus;
  if (s->nodes < 1 || gpus > TOPO_MAX_GPUS)
    return fail (b, TOPO_ERROR_RANGE, "has %.0f GPUs (allowed: 1 to %u)", gpus, TOPO_MAX_GPUS);
  if (s->net == TOPO_NET_NONE && s->nodes > 1)
    return fail (b, TOPO_ERROR_UNREACHABLE, "no network joins the nodes");
  if (s->net == TOPO_NET_NONE)
    return TRUE;
  if (t->nics < 1 || t->nics > 255 || t->nics % t->hosts != 0)
    return fail (
        b, TOPO_ERROR_RANGE,
        "a network needs NICs (found %u in a node of %u hosts; allowed: 1 to 255, the same "
        "number a host)",
        t->nics, t->hosts);
  if (!(s->nic_Bps > 0) || !isfinite (s->nic_Bps) || s->up_Bps < 0 || !isfinite (s->up_Bps))
    return fail (b, TOPO_ERROR_RANGE, "NICs or cables have no bandwidth (found %g and %g bytes/s)",
                 s->nic_Bps, s->up_Bps);
  if (t->planes < 1 || t->planes > 8)
    return fail (b, TOPO_ERROR_RANGE, "a NIC has %d ports (allowed: 1 to 8)", t->planes);
  if (s->leaf_oversub < 0 || s->spine_oversub < 0 || s->leaf_oversub > 1000 ||
      s->spine_oversub > 1000 || s->efficiency < 0 || s->efficiency > 1)
    return fail (b, TOPO_ERROR_RANGE,
                 "oversubscription or efficiency out of range (found %g, %g, %g; allowed: to 1000, "
                 "1000, 1)",
                 s->leaf_oversub, s->spine_oversub, s->efficiency);
  if (s->net == TOPO_NET_SINGLE || s->net == TOPO_NET_DESC)
    return TRUE;
  gboolean pods = s->net != TOPO_NET_LEAF_SPINE;
  if (s->leaf_ports < 1 || s->leaf_ports > 65536 || s->spine_ports < 1 || s->spine_ports > 65536 ||
      (pods && (s->pod_leaves < 1 || s->pod_leaves > 65536)) ||
      (s->net == TOPO_NET_CLOS3 && (s->core_ports < 1 || s->core_ports > 65536)))
    return fail (b, TOPO_ERROR_RANGE,
                 "ports out of range (found leaf %d, spine %d, core %d, leaves of a pod %d; "
                 "allowed: 1 to 65536)",
                 s->leaf_ports, s->spine_ports, s->core_ports, s->pod_leaves);
  return TRUE;
}

static gboolean
name_hosts (Build *b)
{
  Topo *t = b->t;
  guint32 n = t->nodes * t->hosts, k = 0;
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  t->host_names = g_new0 (char *, n + 1);
  for (guint32 h = 0; h < n; h++) {
    if (b->s->host_names) {
      t->host_names[h] = g_strdup (b->s->host_names[h]);
    } else if (b->s->net == TOPO_NET_DESC) {
      while (topo_desc_vertex (b->s->net_desc, k)->kind != TOPO_HOST)
        k++;
      t->host_names[h] = g_strdup (topo_desc_vertex (b->s->net_desc, k++)->name);
    } else {
      t->host_names[h] = g_strdup_printf ("node%04u", h);
    }
    if (!g_hash_table_add (seen, t->host_names[h]))
      return fail (b, TOPO_ERROR_DUPLICATE, "two hosts are called %s", t->host_names[h]);
  }
  return TRUE;
}

/* Capacities of all links in nodes and of all NIC ports. */
static void
fill_ends (Build *b)
{
  Topo *t = b->t;
  t->cap = g_new0 (double, t->first_cable + 1);
  for (guint32 node = 0; node < t->nodes; node++)
    for (guint i = 0; i < t->node->edges->len; i++) {
      guint32 link = node * t->node_links + 2 * i;
      t->cap[link] = t->cap[link + 1] = topo_desc_edge (t->node, i)->Bps;
    }
  for (guint32 l = t->first_port; l < t->first_cable; l++)
    t->cap[l] = b->port_Bps * or_one (b->s->efficiency);
}

static TopoDesc *
copy_desc (const TopoDesc *d)
{
  TopoDesc *c = topo_desc_new (d->name);
  for (guint i = 0; i < d->vertices->len; i++) {
    const TopoVertex *v = topo_desc_vertex (d, i);
    topo_desc_add (c, v->kind, v->name, v->host);
  }
  g_array_append_vals (c->edges, d->edges->data, d->edges->len);
  return c;
}

static gboolean
build_all (Build *b)
{
  const TopoSpec *s = b->s;
  Topo *t = b->t;
  gboolean net = s->net != TOPO_NET_NONE;
  if (!check_numbers (b))
    return FALSE;
  double ends = (double)s->nodes * t->node_links + 2.0 * s->nodes * (net ? t->nics : 0) * t->planes;
  if (ends > TOPO_MAX_LINKS)
    return fail (b, TOPO_ERROR_RANGE, "too big (needs %.0f directed links; allowed: %u)", ends,
                 TOPO_MAX_LINKS);
  t->first_port = s->nodes * t->node_links;
  t->first_cable = (guint32)ends;
  b->port_Bps = s->nic_Bps / t->planes;
  b->cable_Bps = s->up_Bps > 0 ? s->up_Bps : b->port_Bps;
  t->leaf = g_new0 (guint32, (gsize)t->nodes * t->nics * (guint32)t->planes + 1);
  fill_ends (b);
  if (net && !(s->net == TOPO_NET_DESC ? build_described (b) : build_tiers (b)))
    return FALSE;
  if (!name_hosts (b))
    return FALSE;
  finish_network (b);
  return topo_inner_routes (t, b->error);
}

Topo *
topo_new (const TopoSpec *spec, GError **error)
{
  if (!topo_desc_check (spec->node, error))
    return NULL;
  g_autoptr (Topo) t = g_new0 (Topo, 1);
  t->node = copy_desc (spec->node);
  t->nodes = spec->nodes;
  t->gpus = topo_desc_count (t->node, TOPO_GPU);
  t->nics = topo_desc_count (t->node, TOPO_NIC);
  t->hosts = 1;
  for (guint i = 0; i < t->node->vertices->len; i++)
    t->hosts = MAX (t->hosts, (guint32)MAX (0, topo_desc_vertex (t->node, i)->host) + 1);
  t->n_ends = t->gpus + t->nics;
  t->node_links = 2 * t->node->edges->len;
  t->planes = MAX (1, spec->planes);
  t->switch_s = spec->switch_s;
  t->rails = spec->rail_optimised;
  t->node_latency_s = spec->node_latency_s;
  Build b = {.t = t, .s = spec, .error = error};
  b.tier = g_array_new (FALSE, TRUE, 1);
  b.pod = g_array_new (FALSE, TRUE, sizeof (guint32));
  b.a = g_array_new (FALSE, FALSE, sizeof (guint32));
  b.b = g_array_new (FALSE, FALSE, sizeof (guint32));
  b.Bps = g_array_new (FALSE, FALSE, sizeof (double));
  gboolean ok = t->gpus > 0
                    ? build_all (&b)
                    : fail (&b, TOPO_ERROR_RANGE, "a node has no GPU (allowed: at least 1)");
  g_array_unref (b.tier);
  g_array_unref (b.pod);
  g_array_unref (b.a);
  g_array_unref (b.b);
  g_array_unref (b.Bps);
  return ok ? g_steal_pointer (&t) : NULL;
}

void
topo_free (Topo *t)
{
  if (!t)
    return;
  for (guint32 v = 0; t->dist && v < t->n_sw; v++)
    g_free (t->dist[v]);
  for (guint32 h = 0; t->host_names && h < t->nodes * t->hosts; h++)
    g_free (t->host_names[h]);
  gpointer own[] = {t->path_first,  t->path_link, t->path_coef,     t->path_latency_s,
                    t->path_nvlink, t->path_cost, t->gpu_nic_first, t->gpu_nics,
                    t->nic_owner,   t->cap,       t->down,          t->tier,
                    t->pod,         t->cable_a,   t->cable_b,       t->adj_first,
                    t->adj,         t->leaf,      t->dist,          t->frac,
                    t->queue,       t->next,      t->host_names};
  for (gsize i = 0; i < G_N_ELEMENTS (own); i++)
    g_free (own[i]);
  topo_desc_free (t->node);
  g_free (t);
}
