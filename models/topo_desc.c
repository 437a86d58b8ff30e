#include "topo.h"

#include <math.h>

G_DEFINE_QUARK (clustersim - topo - error, topo_error)

const char *const topo_kind_names[] = {"gpu",      "nic",  "pci-switch", "cpu",
                                       "nvswitch", "host", "switch",     NULL};
const char *const topo_link_names[] = {"nvlink", "pci", "smp", "net", NULL};

static void
vertex_clear (gpointer v)
{
  g_free (((TopoVertex *)v)->name);
}

TopoDesc *
topo_desc_new (const char *name)
{
  TopoDesc *d = g_new0 (TopoDesc, 1);
  d->name = g_strdup (name ? name : "");
  d->vertices = g_array_new (FALSE, TRUE, sizeof (TopoVertex));
  g_array_set_clear_func (d->vertices, vertex_clear);
  d->edges = g_array_new (FALSE, TRUE, sizeof (TopoEdge));
  d->notes = g_ptr_array_new_with_free_func (g_free);
  return d;
}

void
topo_desc_free (TopoDesc *d)
{
  if (!d)
    return;
  g_free (d->name);
  g_array_unref (d->vertices);
  g_array_unref (d->edges);
  g_ptr_array_unref (d->notes);
  g_free (d);
}

guint32
topo_desc_add (TopoDesc *d, TopoKind kind, const char *name, int host)
{
  TopoVertex v = {.kind = kind, .name = g_strdup (name ? name : ""), .host = host};
  g_array_append_val (d->vertices, v);
  return d->vertices->len - 1;
}

void
topo_desc_link (TopoDesc *d, guint32 a, guint32 b, TopoLinkKind kind, double Bps, int lanes)
{
  TopoEdge e = {.a = a, .b = b, .kind = kind, .Bps = Bps, .lanes = lanes};
  g_array_append_val (d->edges, e);
}

void
topo_desc_note (TopoDesc *d, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_ptr_array_add (d->notes, g_strdup_vprintf (format, args));
  va_end (args);
}

const TopoVertex *
topo_desc_vertex (const TopoDesc *d, guint32 i)
{
  g_assert (i < d->vertices->len);
  return &g_array_index (d->vertices, TopoVertex, i);
}

const TopoEdge *
topo_desc_edge (const TopoDesc *d, guint i)
{
  g_assert (i < d->edges->len);
  return &g_array_index (d->edges, TopoEdge, i);
}

guint
topo_desc_count (const TopoDesc *d, TopoKind kind)
{
  guint n = 0;
  for (guint i = 0; i < d->vertices->len; i++)
    n += topo_desc_vertex (d, i)->kind == kind;
  return n;
}

void
topo_desc_join (TopoDesc *d, const char *name)
{
  guint n = d->vertices->len, tops = 0;
  g_autofree guint8 *child = g_malloc0 (n + 1);
  for (guint i = 0; i < d->edges->len; i++)
    child[topo_desc_edge (d, i)->a] = TRUE;
  for (guint i = 0; i < n; i++)
    tops += topo_desc_vertex (d, i)->kind == TOPO_SWITCH && !child[i];
  if (tops < 2)
    return;
  guint32 root = topo_desc_add (d, TOPO_SWITCH, name, 0);
  for (guint32 i = 0; i < n; i++)
    if (topo_desc_vertex (d, i)->kind == TOPO_SWITCH && !child[i])
      topo_desc_link (d, i, root, TOPO_LINK_NET, 0, 1);
}

void
topo_desc_default_Bps (TopoDesc *d, TopoLinkKind kind, double lane_Bps)
{
  for (guint i = 0; i < d->edges->len; i++) {
    TopoEdge *e = &g_array_index (d->edges, TopoEdge, i);
    if (e->kind == kind && !(e->Bps > 0))
      e->Bps = lane_Bps * e->lanes;
  }
}

/* ---- checks --------------------------------------------------------------------------------- */

static guint32
root_of (guint32 *up, guint32 i)
{
  while (up[i] != i) {
    up[i] = up[up[i]];
    i = up[i];
  }
  return i;
}

static gboolean
check_edge (const TopoDesc *d, guint i, gboolean speeds, GError **error)
{
  const TopoEdge *e = topo_desc_edge (d, i);
  if (e->a >= d->vertices->len || e->b >= d->vertices->len || e->a == e->b) {
    g_set_error (error, TOPO_ERROR, TOPO_ERROR_RANGE,
                 "%s: link %u joins a part to itself or to none (found %u and %u of %u parts)",
                 d->name, i, e->a, e->b, d->vertices->len);
    return FALSE;
  }
  const char *a = topo_desc_vertex (d, e->a)->name, *b = topo_desc_vertex (d, e->b)->name;
  gboolean good = e->Bps > 0 || (!speeds && e->Bps == 0);
  if (!good || !isfinite (e->Bps) || e->lanes < 1) {
    g_set_error (error, TOPO_ERROR, TOPO_ERROR_RANGE,
                 "%s: link from %s to %s has no bandwidth (found %g bytes/s in %d lanes; allowed: "
                 "above 0)",
                 d->name, a, b, e->Bps, e->lanes);
    return FALSE;
  }
  return TRUE;
}

static gboolean
check_names (const TopoDesc *d, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < d->vertices->len; i++) {
    const TopoVertex *v = topo_desc_vertex (d, i);
    if (v->kind != TOPO_HOST || v->name[0] == '\0')
      continue;
    if (!g_hash_table_add (seen, v->name)) {
      g_set_error (error, TOPO_ERROR, TOPO_ERROR_DUPLICATE, "%s: two hosts are called %s", d->name,
                   v->name);
      return FALSE;
    }
  }
  return TRUE;
}

/* One pass of union and find over the links that must be a forest, one over all. */
static gboolean
check_joins (const TopoDesc *d, gboolean whole, GError **error)
{
  guint n = d->vertices->len;
  g_autofree guint32 *tree = g_new (guint32, n + 1), *all = g_new (guint32, n + 1);
  for (guint i = 0; i < n; i++)
    tree[i] = all[i] = i;
  for (guint i = 0; i < d->edges->len; i++) {
    const TopoEdge *e = topo_desc_edge (d, i);
    all[root_of (all, e->a)] = root_of (all, e->b);
    if (!d->tree && e->kind != TOPO_LINK_PCI)
      continue;
    guint32 a = root_of (tree, e->a), b = root_of (tree, e->b);
    if (a == b) {
      g_set_error (error, TOPO_ERROR, TOPO_ERROR_LOOP,
                   "%s: the link from %s to %s closes a loop where only a tree is allowed", d->name,
                   topo_desc_vertex (d, e->a)->name, topo_desc_vertex (d, e->b)->name);
      return FALSE;
    }
    tree[a] = b;
  }
  guint32 first = G_MAXUINT32;
  for (guint i = 0; i < n && whole; i++) {
    TopoKind k = topo_desc_vertex (d, i)->kind;
    if (k != TOPO_GPU && k != TOPO_HOST)
      continue;
    if (first == G_MAXUINT32)
      first = i;
    if (root_of (all, i) != root_of (all, first)) {
      g_set_error (error, TOPO_ERROR, TOPO_ERROR_UNREACHABLE, "%s: no links lead from %s %s to %s",
                   d->name, topo_kind_names[k], topo_desc_vertex (d, first)->name,
                   topo_desc_vertex (d, i)->name);
      return FALSE;
    }
  }
  return TRUE;
}

static gboolean
check_all (const TopoDesc *d, gboolean speeds, gboolean whole, GError **error)
{
  if (d->edges->len > TOPO_MAX_LINKS / 2 || d->vertices->len > TOPO_MAX_LINKS / 2) {
    g_set_error (error, TOPO_ERROR, TOPO_ERROR_RANGE,
                 "%s: too big (found %u parts and %u links; allowed: %u of each)", d->name,
                 d->vertices->len, d->edges->len, TOPO_MAX_LINKS / 2);
    return FALSE;
  }
  for (guint i = 0; i < d->edges->len; i++)
    if (!check_edge (d, i, speeds, error))
      return FALSE;
  return check_names (d, error) && check_joins (d, whole, error);
}

gboolean
topo_desc_check_shape (const TopoDesc *d, gboolean whole, GError **error)
{
  return check_all (d, FALSE, whole, error);
}

gboolean
topo_desc_check (const TopoDesc *d, GError **error)
{
  return check_all (d, TRUE, TRUE, error);
}
