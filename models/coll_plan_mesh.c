/* Rings over direct NVLinks, each lane in each direction used once: what NCCL's search finds on a
 * hybrid cube mesh, by depth-first search with backtracking on one ring at a time. */
#include "coll_plan_priv.h"

enum { MAX_MESH = 16, MAX_TRIES = 200000 };

typedef struct {
  int lanes[MAX_MESH][MAX_MESH];      /* left, from row to column */
  int n, ring[MAX_MESH], tries, last; /* last: GPU to end at, or -1: back to the first */
  gboolean on[MAX_MESH];
} Mesh;

static int
lanes_out (const Mesh *m, int v)
{
  int sum = 0;
  for (int u = 0; u < m->n; u++)
    sum += m->lanes[v][u];
  return sum;
}

/* Goes on from the ring's last GPU; fullest link first, so that doubled links share the load. */
static gboolean
extend (Mesh *m, int len)
{
  int v = m->ring[len - 1];
  gboolean tried[MAX_MESH] = {FALSE};
  if (len == m->n)
    return m->last < 0 ? m->lanes[v][m->ring[0]] > 0 : v == m->last;
  if (++m->tries > MAX_TRIES)
    return FALSE;
  for (;;) {
    int best = -1;
    for (int u = 0; u < m->n; u++)
      if (!m->on[u] && !tried[u] && m->lanes[v][u] > 0 && (u != m->last || len == m->n - 1) &&
          (best < 0 || m->lanes[v][u] > m->lanes[v][best] ||
           (m->lanes[v][u] == m->lanes[v][best] && lanes_out (m, u) > lanes_out (m, best))))
        best = u;
    if (best < 0)
      return FALSE;
    tried[best] = m->on[best] = TRUE;
    m->ring[len] = best;
    if (extend (m, len + 1))
      return TRUE;
    m->on[best] = FALSE;
  }
}

static gboolean
find_ring (Mesh *m)
{
  m->tries = 0;
  for (int v = 0; v < m->n; v++)
    m->on[v] = v == 0;
  m->ring[0] = 0;
  return extend (m, 1);
}

/* Lanes between the GPUs of the group; FALSE when they are not joined GPU to GPU. */
static gboolean
read_mesh (const Builder *b, const guint32 *rank, guint32 n, Mesh *m)
{
  const TopoDesc *d = topo_peek_node (b->s->topo);
  int at[4096], gpu = 0;
  guint32 per = topo_gpus_per_node (b->s->topo), links = 0;
  *m = (Mesh){.n = (int)n, .last = -1};
  if (n > MAX_MESH || n < 2 || per > G_N_ELEMENTS (at))
    return FALSE;
  for (guint32 g = 0; g < per; g++)
    at[g] = -1;
  for (guint32 r = 0; r < n; r++)
    at[b->s->gpu[rank[r]] % per] = (int)r;
  g_autofree int *rank_of = g_new (int, d->vertices->len + 1);
  for (guint32 v = 0; v < d->vertices->len; v++)
    rank_of[v] = topo_desc_vertex (d, v)->kind == TOPO_GPU ? at[gpu++] : -1;
  for (guint i = 0; i < d->edges->len; i++) {
    const TopoEdge *e = topo_desc_edge (d, i);
    int x = rank_of[e->a], y = rank_of[e->b];
    if (e->kind != TOPO_LINK_NVLINK || x < 0 || y < 0)
      continue;
    m->lanes[x][y] += e->lanes;
    m->lanes[y][x] += e->lanes;
    links++;
  }
  return links > 0;
}

void
plan_mesh_path (const Builder *b, guint32 *rank, guint32 n)
{
  Mesh m;
  guint32 old[MAX_MESH];
  if (!read_mesh (b, rank, n, &m))
    return;
  m.last = m.n - 1;
  if (!find_ring (&m))
    return;
  for (guint32 i = 0; i < n; i++)
    old[i] = rank[i];
  for (guint32 i = 0; i < n; i++)
    rank[i] = old[m.ring[i]];
}

guint
plan_mesh_rings (const Builder *b, guint32 *out, guint max)
{
  Mesh m;
  guint found = 0;
  if (!read_mesh (b, b->by_node, b->s->n, &m))
    return 0;
  while (found < max && find_ring (&m)) {
    for (int pass = 0; pass < 2 && found < max; pass++) { /* there, and back over the same links */
      for (int i = 0; i < m.n; i++) {
        int x = m.ring[i], y = m.ring[(i + 1) % m.n];
        if (pass == 0)
          m.lanes[x][y]--;
        else
          m.lanes[y][x]--;
        out[found * b->s->n + (guint)i] = b->by_node[pass == 0 ? m.ring[i] : m.ring[m.n - 1 - i]];
      }
      found++;
      if (m.n == 2)
        break; /* there and back is one ring */
    }
  }
  return found;
}
