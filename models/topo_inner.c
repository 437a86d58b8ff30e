/* Routes within a node: cheapest paths between its GPUs and NICs, evenly over equal ones. NVLink
 * is preferred to PCIe, PCIe to the link between CPUs. A GPU passes traffic on from NVLink to
 * NVLink (at a price), a NIC never. */
#include "topo_priv.h"

#include <string.h>

enum { COST_NVLINK = 1, COST_THROUGH_GPU = 2, COST_PCI = 4, COST_SMP = 16, UNREACHED = 1 << 29 };

typedef struct {
  guint32 to, link; /* directed link in the node */
  guint32 cost;
  gboolean nvlink;
  float latency_s;
} Arc;

typedef struct {
  const TopoDesc *d;
  guint32 n_v, *first, *end_of, *vertex_of;
  Arc *arc;
  guint32 *dist, *order;
  guint8 *nv, *done;
  double *frac;
} Work;

static gpointer
copy_array (const GArray *a)
{
  gsize bytes = (gsize)a->len * g_array_get_element_size ((GArray *)a);
  gpointer copy = g_malloc (bytes + 1);
  memcpy (copy, a->len > 0 ? a->data : "", bytes);
  return copy;
}

static void
make_arcs (Work *w, const Topo *t)
{
  const TopoDesc *d = w->d;
  w->first = g_new0 (guint32, w->n_v + 1);
  w->arc = g_new (Arc, 2 * d->edges->len + 1);
  for (guint i = 0; i < d->edges->len; i++) {
    w->first[topo_desc_edge (d, i)->a]++;
    w->first[topo_desc_edge (d, i)->b]++;
  }
  guint32 sum = 0;
  for (guint32 v = 0; v <= w->n_v; v++) {
    guint32 n = v < w->n_v ? w->first[v] : 0;
    w->first[v] = sum;
    sum += n;
  }
  g_autofree guint32 *fill = g_memdup2 (w->first, (w->n_v + 1) * sizeof (guint32));
  for (guint32 i = 0; i < d->edges->len; i++) {
    const TopoEdge *e = topo_desc_edge (d, i);
    Arc a = {.cost = e->kind == TOPO_LINK_NVLINK ? COST_NVLINK
                     : e->kind == TOPO_LINK_SMP  ? COST_SMP
                                                 : COST_PCI,
             .nvlink = e->kind == TOPO_LINK_NVLINK,
             .latency_s = (float)(e->latency_s > 0 ? e->latency_s : t->node_latency_s)};
    a.to = e->b;
    a.link = 2 * i;
    w->arc[fill[e->a]++] = a;
    a.to = e->a;
    a.link = 2 * i + 1;
    w->arc[fill[e->b]++] = a;
  }
}

/* Cost of going on from u over an arc, or UNREACHED when u does not pass it on. */
static guint32
step_cost (const Work *w, guint32 source, guint32 u, const Arc *a)
{
  TopoKind k = topo_desc_vertex (w->d, u)->kind;
  if (u == source)
    return a->cost;
  if (k == TOPO_NIC)
    return UNREACHED;
  if (k != TOPO_GPU)
    return a->cost;
  return a->nvlink && w->nv[u] ? a->cost + COST_THROUGH_GPU : UNREACHED;
}

/* Dijkstra; order receives the vertices by rising distance. */
static guint32
distances (Work *w, guint32 source)
{
  guint32 n = 0;
  for (guint32 v = 0; v < w->n_v; v++) {
    w->dist[v] = UNREACHED;
    w->nv[v] = w->done[v] = FALSE;
  }
  w->dist[source] = 0;
  w->nv[source] = TRUE;
  for (;;) {
    guint32 u = w->n_v;
    for (guint32 v = 0; v < w->n_v; v++)
      if (!w->done[v] && w->dist[v] < UNREACHED && (u == w->n_v || w->dist[v] < w->dist[u]))
        u = v;
    if (u == w->n_v)
      return n;
    w->done[u] = TRUE;
    w->order[n++] = u;
    for (guint32 i = w->first[u]; i < w->first[u + 1]; i++) {
      const Arc *a = &w->arc[i];
      guint32 via = w->dist[u] + step_cost (w, source, u, a);
      if (via >= w->dist[a->to])
        continue;
      w->dist[a->to] = via;
      w->nv[a->to] = w->nv[u] && a->nvlink;
    }
  }
}

/* The way back from target, split evenly where cheapest paths meet. */
static void
trace_back (Work *w, guint32 source, guint32 target, guint32 n_order, GArray *links, GArray *coefs,
            float *latency_s)
{
  memset (w->frac, 0, w->n_v * sizeof (double));
  w->frac[target] = 1;
  *latency_s = 0;
  for (guint32 k = n_order; k-- > 0;) {
    guint32 v = w->order[k], n = 0;
    if (!(w->frac[v] > 0) || v == source)
      continue;
    for (int pass = 0; pass < 2; pass++)
      for (guint32 i = w->first[v]; i < w->first[v + 1]; i++) {
        guint32 u = w->arc[i].to; /* the arc back has the same cost */
        if (w->dist[u] >= UNREACHED ||
            w->dist[u] + step_cost (w, source, u, &w->arc[i]) != w->dist[v])
          continue;
        if (pass == 0) {
          n++;
          continue;
        }
        double part = w->frac[v] / n;
        guint32 link = w->arc[i].link ^ 1;
        w->frac[u] += part;
        g_array_append_val (links, link);
        g_array_append_val (coefs, part);
        *latency_s += (float)part * w->arc[i].latency_s;
      }
  }
}

static void
all_paths (Topo *t, Work *w)
{
  g_autoptr (GArray) links = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autoptr (GArray) coefs = g_array_new (FALSE, FALSE, sizeof (double));
  gsize n = t->n_ends, pairs = n * n;
  t->path_first = g_new (guint32, pairs + 1);
  t->path_latency_s = g_new0 (float, pairs + 1);
  t->path_nvlink = g_new0 (guint8, pairs + 1);
  t->path_cost = g_new0 (guint32, pairs + 1);
  for (gsize a = 0; a < n; a++) {
    guint32 n_order = distances (w, w->vertex_of[a]);
    for (gsize b = 0; b < n; b++) {
      gsize p = a * n + b;
      guint32 target = w->vertex_of[b];
      t->path_first[p] = links->len;
      t->path_cost[p] = w->dist[target];
      t->path_nvlink[p] = w->nv[target];
      if (a != b && w->dist[target] < UNREACHED)
        trace_back (w, w->vertex_of[a], target, n_order, links, coefs, &t->path_latency_s[p]);
    }
  }
  t->path_first[pairs] = links->len;
  t->path_link = copy_array (links);
  t->path_coef = copy_array (coefs);
}

/* ---- which NICs a GPU uses ------------------------------------------------------------------- */

static guint32
nearest_nics (const Topo *t, guint32 gpu, const int *host_of, guint8 *out)
{
  guint32 best = UNREACHED, n = 0;
  for (guint32 k = 0; k < t->nics; k++) {
    guint32 cost = t->path_cost[gpu * t->n_ends + t->gpus + k];
    if (host_of[t->gpus + k] != host_of[gpu] || cost >= UNREACHED || cost > best)
      continue;
    if (cost < best)
      n = 0;
    best = cost;
    out[n++] = (guint8)k;
  }
  return n;
}

/* GPUs with the same nearest NICs deal them out among themselves, each at least one. */
static gboolean
deal_nics (Topo *t, const int *host_of, GError **error)
{
  guint8 mine[256], other[256];
  g_autoptr (GArray) nics = g_array_new (FALSE, FALSE, 1);
  t->gpu_nic_first = g_new0 (guint32, t->gpus + 1);
  for (guint32 g = 0; g < t->gpus; g++) {
    t->gpu_nic_first[g] = nics->len;
    guint32 n = nearest_nics (t, g, host_of, mine), rank = 0, sharers = 0;
    if (n == 0 && t->nics > 0) {
      g_set_error (error, TOPO_ERROR, TOPO_ERROR_UNREACHABLE,
                   "%s: GPU %u reaches no NIC of its host", t->node->name, g);
      return FALSE;
    }
    for (guint32 h = 0; h < t->gpus; h++) {
      guint32 m = nearest_nics (t, h, host_of, other);
      if (m != n || memcmp (mine, other, n) != 0)
        continue;
      rank += h < g;
      sharers++;
    }
    if (n >= sharers)
      g_array_append_vals (nics, mine + rank * n / sharers,
                           (rank + 1) * n / sharers - rank * n / sharers);
    else if (n > 0)
      g_array_append_vals (nics, mine + rank * n / sharers, 1);
  }
  t->gpu_nic_first[t->gpus] = nics->len;
  t->gpu_nics = copy_array (nics);
  t->nic_owner = g_new (guint32, t->nics + 1);
  memset (t->nic_owner, 0xff, (t->nics + 1) * sizeof (guint32));
  for (guint32 g = t->gpus; g-- > 0;)
    for (guint32 i = t->gpu_nic_first[g]; i < t->gpu_nic_first[g + 1]; i++)
      t->nic_owner[t->gpu_nics[i]] = g;
  return TRUE;
}

gboolean
topo_inner_routes (Topo *t, GError **error)
{
  Work w = {.d = t->node, .n_v = t->node->vertices->len};
  g_autofree int *host_of = g_new0 (int, t->n_ends + 1);
  w.vertex_of = g_new (guint32, t->n_ends + 1);
  guint32 gpu = 0, nic = t->gpus;
  for (guint32 v = 0; v < w.n_v; v++) {
    const TopoVertex *x = topo_desc_vertex (t->node, v);
    if (x->kind != TOPO_GPU && x->kind != TOPO_NIC)
      continue;
    guint32 end = x->kind == TOPO_GPU ? gpu++ : nic++;
    w.vertex_of[end] = v;
    host_of[end] = x->host;
  }
  make_arcs (&w, t);
  w.dist = g_new (guint32, w.n_v + 1);
  w.order = g_new (guint32, w.n_v + 1);
  w.nv = g_new (guint8, w.n_v + 1);
  w.done = g_new (guint8, w.n_v + 1);
  w.frac = g_new (double, w.n_v + 1);
  all_paths (t, &w);
  gboolean ok = deal_nics (t, host_of, error);
  for (guint32 a = 0; ok && a < t->gpus; a++)
    for (guint32 b = 0; ok && b < t->gpus; b++)
      if (t->path_cost[a * t->n_ends + b] >= UNREACHED) {
        g_set_error (error, TOPO_ERROR, TOPO_ERROR_UNREACHABLE, "%s: no path from GPU %u to GPU %u",
                     t->node->name, a, b);
        ok = FALSE;
      }
  g_free (w.first);
  g_free (w.arc);
  g_free (w.vertex_of);
  g_free (w.dist);
  g_free (w.order);
  g_free (w.nv);
  g_free (w.done);
  g_free (w.frac);
  return ok;
}
