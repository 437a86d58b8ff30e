/* Trees in the switches: what SHARP-like reduction loads. */
#include "topo_priv.h"

/* pick-th among the switches of `list` that all leaves reach within `most` hops; G_MAXUINT32: none.
 */
static guint32
choose_root (Topo *t, const GArray *list, const guint32 *leaves, guint n, guint most, guint pick)
{
  g_autoptr (GArray) fit = g_array_new (FALSE, FALSE, sizeof (guint32));
  for (guint i = 0; i < list->len; i++) {
    guint32 v = g_array_index (list, guint32, i);
    const guint8 *dist = topo_distances (t, v);
    gboolean all = TRUE;
    for (guint j = 0; j < n && all; j++)
      all = dist[leaves[j]] <= most;
    if (all)
      g_array_append_val (fit, v);
  }
  return fit->len > 0 ? g_array_index (fit, guint32, pick % fit->len) : G_MAXUINT32;
}

static void
neighbours (const Topo *t, const GArray *of, guint8 *seen, GArray *out)
{
  for (guint k = 0; k < of->len; k++) {
    guint32 v = g_array_index (of, guint32, k);
    for (guint32 i = t->adj_first[v]; i < t->adj_first[v + 1]; i++) {
      guint32 to = t->adj[i].to;
      if (seen[to] || t->tier[to] <= t->tier[v])
        continue;
      seen[to] = TRUE;
      g_array_append_val (out, to);
    }
  }
}

static guint32
find_root (Topo *t, const guint32 *leaves, guint n, guint pick)
{
  g_autofree guint8 *seen = g_malloc0 (t->n_sw);
  g_autoptr (GArray) here = g_array_new (FALSE, FALSE, sizeof (guint32));
  g_autoptr (GArray) first = NULL;
  guint32 root = G_MAXUINT32;
  g_array_append_val (here, leaves[0]);
  for (guint most = 1; here->len > 0 && root == G_MAXUINT32; most++) {
    GArray *up = g_array_new (FALSE, FALSE, sizeof (guint32));
    neighbours (t, here, seen, up);
    root = choose_root (t, up, leaves, n, most, pick);
    g_array_unref (here);
    here = up;
    if (most == 1)
      first = g_array_ref (up);
  }
  /* Without a common top (dragonfly) any spine that all reach. */
  if (root == G_MAXUINT32 && first)
    root = choose_root (t, first, leaves, n, TOPO_FAR - 1, pick);
  return root;
}

gboolean
topo_aggregation_tree (Topo *t, const guint32 *leaves, guint n, guint pick, TopoPath *up,
                       TopoPath *down)
{
  gboolean one = TRUE;
  for (guint i = 1; i < n; i++)
    one = one && leaves[i] == leaves[0];
  if (one)
    return TRUE;
  guint32 root = find_root (t, leaves, n, pick);
  if (root == G_MAXUINT32)
    return FALSE;
  const guint8 *dist = topo_distances (t, root);
  g_autofree guint8 *joined = g_malloc0 (t->n_sw);
  joined[root] = TRUE;
  for (guint i = 0; i < n; i++)
    for (guint32 v = leaves[i]; !joined[v];) {
      guint ways = 0, k = 0;
      joined[v] = TRUE;
      for (guint32 a = t->adj_first[v]; a < t->adj_first[v + 1]; a++)
        ways += dist[t->adj[a].to] + 1 == dist[v] && !t->down[t->adj[a].link];
      for (guint32 a = t->adj_first[v]; a < t->adj_first[v + 1]; a++) {
        const TopoAdj *x = &t->adj[a];
        if (dist[x->to] + 1 != dist[v] || t->down[x->link] || k++ != pick % ways)
          continue;
        topo_path_add (up, x->link, 1);
        topo_path_add (down, t->first_cable + ((x->link - t->first_cable) ^ 1), 1);
        v = x->to;
        break;
      }
    }
  return TRUE;
}
