/* Trees: over nodes (NCCL's double binary tree), in NVSwitches, in the network's switches. */
#include "coll_plan_priv.h"

#include <math.h>

#define NO_EDGE G_MAXUINT32

/* Parent of node r in the binary tree over n nodes whose inner nodes are the even ones; -1 for the
 * root, 0. (The tree of NCCL's ncclGetBtree, as its rule reads: flip the lowest set bit and set the
 * next, or flip alone when that is out of range.) */
static int
parent0 (int r, int n)
{
  if (r == 0)
    return -1;
  int bit = r & -r, up = (r ^ bit) | (bit << 1);
  return up >= n ? r ^ bit : up;
}

/* Tree 1 is tree 0 mirrored (n even) or shifted by one (n odd): leaves of one are inner nodes of
 * the other. */
static int
parent_of (int tree, int r, int n)
{
  if (tree == 0)
    return parent0 (r, n);
  if (n % 2 == 0) {
    int p = parent0 (n - 1 - r, n);
    return p < 0 ? -1 : n - 1 - p;
  }
  int p = parent0 ((r - 1 + n) % n, n);
  return p < 0 ? -1 : (p + 1) % n;
}

/* Nodes by rising distance from the leaves: children before parents. */
static void
bottom_up (int tree, int n, int *order)
{
  int *depth = g_new (int, n), k = 0, deepest = 0;
  for (int i = 0; i < n; i++) {
    depth[i] = 0;
    for (int p = i; (p = parent_of (tree, p, n)) >= 0;)
      depth[i]++;
    deepest = MAX (deepest, depth[i]);
  }
  for (int d = deepest; d >= 0; d--)
    for (int i = 0; i < n; i++)
      if (depth[i] == d)
        order[k++] = i;
  g_free (depth);
}

static void
wait_all (Builder *b, guint32 edge, const GArray *list)
{
  for (guint i = 0; i < list->len; i++)
    plan_wait (b, edge, g_array_index (list, guint32, i));
}

/* Chain within node i up to its head (order[0] of the node), or down from it. */
static gboolean
chain_up (Builder *b, const guint32 *mine, guint32 m, GArray *inbox)
{
  guint32 last = NO_EDGE, e = 0;
  for (guint32 j = m - 1; j > 0; j--) {
    if (!plan_edge_ranks (b, mine[j], mine[j - 1], -1, 1, &e))
      return FALSE;
    if (last != NO_EDGE)
      plan_wait (b, e, last);
    last = e;
  }
  if (last != NO_EDGE)
    g_array_append_val (inbox, last);
  return TRUE;
}

static gboolean
chain_down (Builder *b, const guint32 *mine, guint32 m, const GArray *from)
{
  guint32 last = NO_EDGE, e = 0;
  for (guint32 j = 1; j < m; j++) {
    if (!plan_edge_ranks (b, mine[j - 1], mine[j], -1, 1, &e))
      return FALSE;
    if (last != NO_EDGE)
      plan_wait (b, e, last);
    else
      wait_all (b, e, from);
    last = e;
  }
  return TRUE;
}

/* All GPUs of a node into its NVSwitch, or out of it. */
static gboolean
switch_up (Builder *b, const guint32 *mine, guint32 m, double weight, GArray *inbox)
{
  for (guint32 j = 0; j < m; j++) {
    topo_path_reset (&b->path);
    if (!topo_route_nvswitch (b->s->topo, b->s->gpu[mine[j]], TRUE, &b->path))
      return plan_fail (b, "a node has no NVSwitch");
    guint32 e = plan_edge (b, mine[j], weight, b->s->costs.hop_s / 2);
    g_array_append_val (inbox, e);
  }
  return TRUE;
}

static gboolean
switch_down (Builder *b, const guint32 *mine, guint32 m, double weight, const GArray *from)
{
  for (guint32 j = 0; j < m; j++) {
    topo_path_reset (&b->path);
    if (!topo_route_nvswitch (b->s->topo, b->s->gpu[mine[j]], FALSE, &b->path))
      return plan_fail (b, "a node has no NVSwitch");
    wait_all (b, plan_edge (b, mine[j], weight, b->s->costs.hop_s / 2), from);
  }
  return TRUE;
}

/* In the node: a chain (tree) or the NVSwitch (nvls). In the switch every GPU sends all of its data
 * up once and the owner of a part sends the sum up again: 1 + 1/m each way. */
static gboolean
node_up (Builder *b, gboolean nvls, const guint32 *mine, guint32 m, GArray *inbox)
{
  return nvls ? switch_up (b, mine, m, 1 + 1.0 / m, inbox) : chain_up (b, mine, m, inbox);
}

static gboolean
node_down (Builder *b, gboolean nvls, const guint32 *mine, guint32 m, const GArray *from)
{
  return nvls ? switch_down (b, mine, m, 1 + 1.0 / m, from) : chain_down (b, mine, m, from);
}

static GArray **
new_lists (guint32 n)
{
  GArray **l = g_new (GArray *, n);
  for (guint32 i = 0; i < n; i++)
    l[i] = g_array_new (FALSE, FALSE, sizeof (guint32));
  return l;
}

static void
free_lists (GArray **l, guint32 n)
{
  for (guint32 i = 0; i < n; i++)
    g_array_unref (l[i]);
  g_free (l);
}

static gboolean
tree_channel (Builder *b, gboolean nvls, int tree, const guint32 *order, int nic)
{
  int n = (int)b->n_nodes;
  g_autofree int *walk = g_new (int, n);
  GArray **up = new_lists (b->n_nodes), **down = new_lists (b->n_nodes);
  gboolean ok = TRUE;
  guint32 e = 0;
  bottom_up (tree, n, walk);
  for (int k = 0; ok && k < n; k++) {
    const NodeRanks *w = &b->node[walk[k]];
    int parent = parent_of (tree, walk[k], n);
    ok = node_up (b, nvls, order + w->first, w->n, up[walk[k]]);
    if (!ok || parent < 0)
      continue;
    ok = plan_edge_ranks (b, order[w->first], order[b->node[parent].first], nic, 1, &e);
    wait_all (b, e, up[walk[k]]);
    g_array_append_val (up[parent], e);
  }
  for (int k = n - 1; ok && k >= 0; k--) { /* the root first */
    const NodeRanks *w = &b->node[walk[k]];
    int parent = parent_of (tree, walk[k], n);
    if (parent >= 0) {
      ok = plan_edge_ranks (b, order[b->node[parent].first], order[w->first], nic, 1, &e);
      wait_all (b, e, down[parent]);
      g_array_append_val (down[walk[k]], e);
    } else {
      g_array_append_vals (down[walk[k]], up[walk[k]]->data, up[walk[k]]->len);
    }
    ok = ok && node_down (b, nvls, order + w->first, w->n, down[walk[k]]);
  }
  free_lists (up, b->n_nodes);
  free_lists (down, b->n_nodes);
  return ok;
}

static gboolean
all_trees (Builder *b, gboolean nvls, double alpha_s)
{
  const CollPlanSpec *s = b->s;
  guint per_tree = s->channels > 0 ? (guint)s->channels : MAX (1, b->n_nics);
  guint trees = b->n_nodes > 1 ? 2 : 1, c_n = per_tree * trees;
  double net = b->n_nodes == 2 ? 1 : 2; /* bytes out of a node per byte of the buffer */
  double cap = nvls ? s->costs.algo_Bps : s->costs.bus_Bps / 2;
  if (b->n_nodes > 1)
    cap = plan_limit (cap, s->costs.nic_Bps * MAX (1, b->n_nics) / net);
  g_autofree guint32 *order = g_new (guint32, s->n);
  plan_phase_begin (b);
  for (guint c = 0; c < c_n; c++) {
    gint64 amount = plan_part (s->bytes, c, c_n);
    plan_ring_order (b, c / trees, order);
    plan_channel_begin (b, amount, cap / c_n, plan_slots (b, amount), 0);
    int nic = b->n_nics > 0 ? b->nics[c / trees % b->n_nics] : -1;
    if (!tree_channel (b, nvls, (int)(c % trees), order, nic))
      return FALSE;
    plan_channel_end (b);
  }
  plan_phase_end (b, alpha_s);
  return TRUE;
}

gboolean
plan_tree (Builder *b)
{
  const CollCosts *c = &b->s->costs;
  return all_trees (b, FALSE, 2 * ((b->ppn - 1) * c->hop_s + log2 (b->n_nodes) * c->net_hop_s));
}

gboolean
plan_nvlstree (Builder *b)
{
  const CollCosts *c = &b->s->costs;
  if (b->n_nodes < 2)
    return plan_fail (b, "it needs several nodes");
  return all_trees (b, TRUE, c->hop_s + 2 * log2 (b->n_nodes) * c->net_hop_s);
}

gboolean
plan_nvls (Builder *b)
{
  const CollPlanSpec *s = b->s;
  double m = s->n;
  if (b->n_nodes != 1)
    return plan_fail (b, "it needs one node with NVSwitches (NVLSTree is for several)");
  double up = s->op == COLL_ALL_GATHER ? 1 / m : s->op == COLL_REDUCE_SCATTER ? 1 : 1 + 1 / m;
  double down = s->op == COLL_ALL_GATHER ? 1 : s->op == COLL_REDUCE_SCATTER ? 1 / m : 1 + 1 / m;
  g_autoptr (GArray) inbox = g_array_new (FALSE, FALSE, sizeof (guint32));
  plan_phase_begin (b);
  plan_channel_begin (b, s->bytes, s->costs.algo_Bps, plan_slots (b, s->bytes), 0);
  if (!switch_up (b, b->by_node, s->n, up, inbox) ||
      !switch_down (b, b->by_node, s->n, down, inbox))
    return FALSE;
  plan_channel_end (b);
  plan_phase_end (b, s->costs.hop_s);
  return TRUE;
}

/* ---- in the network ---------------------------------------------------------------------------
 */

/* Slices to the head and back: from every GPU at once (direct), or along a chain. */
static gboolean
slices (Builder *b, gboolean up, const guint32 *mine, guint32 m, GArray *box)
{
  if (b->s->algo == PLAN_COLLNET_CHAIN)
    return up ? chain_up (b, mine, m, box) : chain_down (b, mine, m, box);
  for (guint32 j = 1; j < m; j++) {
    guint32 e = 0;
    if (!plan_edge_ranks (b, up ? mine[j] : mine[0], up ? mine[0] : mine[j], -1, 1, &e))
      return FALSE;
    if (up)
      g_array_append_val (box, e);
    else
      wait_all (b, e, box);
  }
  return TRUE;
}

static gboolean
collnet_channel (Builder *b, const guint32 *order, int nic, guint pick)
{
  Topo *t = b->s->topo;
  g_autofree guint32 *leaf = g_new (guint32, b->n_nodes);
  g_autoptr (GArray) sent = g_array_new (FALSE, FALSE, sizeof (guint32));
  TopoPath tree[2] = {{0}, {0}};
  gboolean ok = TRUE;
  for (guint32 i = 0; ok && i < b->n_nodes; i++) {
    const guint32 *mine = order + b->node[i].first;
    g_autoptr (GArray) inbox = g_array_new (FALSE, FALSE, sizeof (guint32));
    leaf[i] = topo_leaf_of_nic (t, b->node[i].node, nic, 0);
    ok = slices (b, TRUE, mine, b->node[i].n, inbox);
    topo_path_reset (&b->path);
    topo_route_nic (t, b->s->gpu[mine[0]], nic, TRUE, &b->path);
    guint32 e = plan_edge (b, mine[0], 1, b->s->costs.net_hop_s / 2);
    wait_all (b, e, inbox);
    g_array_append_val (sent, e);
  }
  if (ok && !topo_aggregation_tree (t, leaf, b->n_nodes, pick, &tree[0], &tree[1]))
    ok = plan_fail (b, "the network has no switch that all leaves reach");
  for (int k = 0; ok && k < 2; k++) { /* up the switches, then down */
    topo_path_reset (&b->path);
    for (guint i = 0; i < tree[k].n; i++)
      topo_path_add (&b->path, tree[k].links[i], tree[k].coef[i]);
    guint32 e = plan_edge (b, order[0], 1, 0);
    wait_all (b, e, sent);
    g_array_set_size (sent, 0);
    g_array_append_val (sent, e);
  }
  for (guint32 i = 0; ok && i < b->n_nodes; i++) {
    const guint32 *mine = order + b->node[i].first;
    topo_path_reset (&b->path);
    topo_route_nic (t, b->s->gpu[mine[0]], nic, FALSE, &b->path);
    guint32 e = plan_edge (b, mine[0], 1, b->s->costs.net_hop_s / 2);
    wait_all (b, e, sent);
    g_autoptr (GArray) inbox = g_array_new (FALSE, FALSE, sizeof (guint32));
    g_array_append_val (inbox, e);
    ok = slices (b, FALSE, mine, b->node[i].n, inbox);
  }
  topo_path_clear (&tree[0]);
  topo_path_clear (&tree[1]);
  return ok;
}

gboolean
plan_collnet (Builder *b)
{
  const CollPlanSpec *s = b->s;
  const CollCosts *c = &s->costs;
  if (b->n_nodes < 2 || b->n_nics == 0)
    return plan_fail (b, "it needs several nodes with NICs");
  if (b->ppn > 8)
    return plan_fail (b, "it takes at most 8 ranks in a node (found %u)", b->ppn);
  guint c_n = s->channels > 0 ? (guint)s->channels : b->n_nics;
  double cap = plan_limit (s->costs.bus_Bps / (b->ppn > 1 ? 2 : 1), s->costs.nic_Bps * b->n_nics);
  g_autofree guint32 *order = g_new (guint32, s->n);
  plan_phase_begin (b);
  for (guint k = 0; k < c_n; k++) {
    gint64 amount = plan_part (s->bytes, k, c_n);
    plan_ring_order (b, k, order);
    plan_channel_begin (b, amount, cap / c_n, plan_slots (b, amount), 0);
    if (!collnet_channel (b, order, b->nics[k % b->n_nics], k))
      return FALSE;
    plan_channel_end (b);
  }
  double inner = s->algo == PLAN_COLLNET_CHAIN ? 2.0 * (b->ppn - 1) * c->hop_s
                 : b->ppn > 1                  ? 2 * c->hop_s
                                               : 0;
  plan_phase_end (b, inner + c->net_hop_s);
  return TRUE;
}
