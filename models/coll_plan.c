#include "coll_plan_priv.h"

#include <math.h>
#include <string.h>

const char *const plan_algo_names[] = {
    "Ring",         "Tree", "NVLS",         "NVLSTree", "CollNetDirect",
    "CollNetChain", "PAT",  "Hierarchical", "Pairs",    NULL};

#define DEFAULT_SLOT_BYTES (512 << 10) /* NCCL: 4 MiB buffer in 8 steps */
#define MAX_EDGES          ((guint32)1 << 23)

PlanAlgo
plan_algo_of (CollOp op, CollAlgo algo)
{
  if (op == COLL_ALLTOALL || op == COLL_SENDRECV)
    return PLAN_PAIRS;
  switch (algo) {
  case ALGO_TREE:
    return PLAN_TREE;
  case ALGO_NVLS:
    return PLAN_NVLS;
  case ALGO_NVLSTREE:
    return PLAN_NVLSTREE;
  case ALGO_PAT:
    return PLAN_PAT;
  case ALGO_COLLNET_DIRECT:
    return PLAN_COLLNET_DIRECT;
  case ALGO_COLLNET_CHAIN:
    return PLAN_COLLNET_CHAIN;
  case ALGO_RING:
  case ALGO_AUTO:
  case ALGO_COUNT:
    break;
  }
  return PLAN_RING;
}

gboolean
plan_fail (const Builder *b, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (b->error, TOPO_ERROR, TOPO_ERROR_RANGE, "%s of %u ranks as %s: %s",
               coll_op_names[b->s->op], b->s->n, plan_algo_names[b->s->algo], text);
  return FALSE;
}

/* ---- the builder's parts --------------------------------------------------------------------- */

void
plan_phase_begin (Builder *b)
{
  CollPhase ph = {.channel = b->p->channels->len};
  g_array_append_val (b->p->phases, ph);
}

void
plan_phase_end (Builder *b, double alpha_s)
{
  CollPhase *ph = &g_array_index (b->p->phases, CollPhase, b->p->phases->len - 1);
  ph->n_channel = b->p->channels->len - ph->channel;
  ph->alpha_s = alpha_s;
}

void
plan_channel_begin (Builder *b, gint64 amount, double cap_Bps, guint32 slots, guint32 lag)
{
  b->ch = (CollChannel){.amount = amount, .cap_Bps = cap_Bps, .edge = b->p->edges->len};
  b->slots = slots;
  b->lag = lag;
  g_array_set_size (b->touched, 0);
}

static int
compare_u32 (gconstpointer a, gconstpointer b)
{
  guint32 x = *(const guint32 *)a, y = *(const guint32 *)b;
  return x < y ? -1 : x > y;
}

/* The union of the edges' routes becomes the channel's path, by link number. */
void
plan_channel_end (Builder *b)
{
  g_array_sort (b->touched, compare_u32);
  b->ch.path = b->p->links->len;
  b->ch.n_path = b->touched->len;
  for (guint i = 0; i < b->touched->len; i++) {
    guint32 l = g_array_index (b->touched, guint32, i);
    g_array_append_val (b->p->links, l);
    g_array_append_val (b->p->coefs, b->acc[l]);
    b->acc[l] = 0;
  }
  b->ch.n_edge = b->p->edges->len - b->ch.edge;
  g_array_append_val (b->p->channels, b->ch);
}

guint32
plan_edge (Builder *b, guint32 src, double weight, double alpha_s)
{
  for (guint i = 0; i < b->path.n; i++) {
    guint32 l = b->path.links[i];
    if (b->acc[l] == 0)
      g_array_append_val (b->touched, l);
    b->acc[l] += weight * b->path.coef[i];
  }
  if (!b->s->steps)
    return 0;
  CollEdge e = {.src = src,
                .path = b->p->links->len,
                .n_path = b->path.n,
                .slots = b->slots,
                .lag = b->lag,
                .bytes = (gint64)llround (weight * (double)b->ch.amount),
                .cap_Bps = b->ch.cap_Bps * weight,
                .alpha_s = alpha_s};
  g_array_append_vals (b->p->links, b->path.links, b->path.n);
  g_array_append_vals (b->p->coefs, b->path.coef, b->path.n);
  g_array_append_val (b->p->edges, e);
  return b->p->edges->len - 1;
}

void
plan_wait (Builder *b, guint32 edge, guint32 for_edge)
{
  if (!b->s->steps)
    return;
  g_array_append_val (b->pred_a, edge);
  g_array_append_val (b->pred_b, for_edge);
}

gboolean
plan_crosses (const Builder *b, guint32 rank_a, guint32 rank_b)
{
  guint32 per = topo_gpus_per_node (b->s->topo);
  return b->s->gpu[rank_a] / per != b->s->gpu[rank_b] / per;
}

double
plan_hop_s (const Builder *b, gboolean cross)
{
  return cross ? b->s->costs.net_hop_s : b->s->costs.hop_s;
}

gboolean
plan_edge_ranks (Builder *b, guint32 from, guint32 to, int nic, double weight, guint32 *edge)
{
  TopoRouteOpts o = b->s->route;
  gboolean cross = plan_crosses (b, from, to);
  if (b->p->edges->len >= MAX_EDGES)
    return plan_fail (b, "more than %u edges (use a lower fidelity)", MAX_EDGES);
  o.nic = cross ? nic : -1;
  o.enter = cross ? b->enter : 0;
  topo_path_reset (&b->path);
  if (!topo_route (b->s->topo, b->s->gpu[from], b->s->gpu[to], &o, &b->path))
    return plan_fail (b, "no path is left from GPU %u to GPU %u", b->s->gpu[from], b->s->gpu[to]);
  double wire = b->s->costs.wire ? b->path.latency_s : 0;
  guint32 e = plan_edge (b, from, weight, plan_hop_s (b, cross) + wire);
  if (edge)
    *edge = e;
  return TRUE;
}

gint64
plan_part (gint64 amount, guint32 k, guint32 n)
{
  return amount / n + (k < amount % n);
}

guint32
plan_slots (const Builder *b, gint64 amount)
{
  gint64 slot = b->s->slot_bytes > 0 ? b->s->slot_bytes : DEFAULT_SLOT_BYTES;
  return (guint32)CLAMP ((amount + slot - 1) / slot, 1, G_MAXUINT32 / 2);
}

double
plan_limit (double a, double b)
{
  return a > 0 && b > 0 ? MIN (a, b) : MAX (a, b);
}

/* ---- rings ----------------------------------------------------------------------------------- */

/* One node's part: it is entered at a GPU that owns the channel's NIC and left, where there is one,
 * by another GPU just as near to it, so that each PCIe way carries one ring out and one in (else
 * by the last, over NVLink to the owner). Between them in turn, or along a mesh's direct links. */
static void
node_order (const Builder *b, const NodeRanks *w, guint c, guint32 *out)
{
  const guint32 *rank = b->by_node + w->first;
  guint32 start = c % w->n, leave = w->n;
  int nic = b->n_nics > 0 ? b->nics[c % b->n_nics] : -1;
  for (guint32 j = 0; nic >= 0 && j < w->n; j++) {
    const guint8 *own = NULL;
    guint n = topo_nics_of_gpu (b->s->topo, b->s->gpu[rank[j]], &own);
    for (guint m = 0; m < n; m++)
      if (own[m] == nic)
        start = j;
  }
  for (guint32 j = 1; nic >= 0 && j < w->n && leave == w->n; j++) {
    guint32 other = (start + w->n - j) % w->n;
    if (topo_share_nic (b->s->topo, b->s->gpu[rank[start]], b->s->gpu[rank[other]], nic))
      leave = other;
  }
  guint32 k = 0;
  out[k++] = rank[start];
  for (guint32 j = 1; j < w->n; j++)
    if ((start + j) % w->n != leave)
      out[k++] = rank[(start + j) % w->n];
  if (leave < w->n)
    out[k++] = rank[leave];
  if (nic >= 0)
    plan_mesh_path (b, out, w->n);
}

/* Nodes in the order of their first rank. */
void
plan_ring_order (const Builder *b, guint c, guint32 *order)
{
  for (guint32 i = 0; i < b->n_nodes; i++)
    node_order (b, &b->node[i], c, order + b->node[i].first);
}

gboolean
plan_ring_edges (Builder *b, const guint32 *rank, guint32 n, int nic, double weight, gboolean chain,
                 double *wire_s)
{
  guint32 first = b->p->edges->len, n_edges = chain ? n - 1 : n;
  for (guint32 i = 0; i < n_edges; i++) {
    if (!plan_edge_ranks (b, rank[i], rank[(i + 1) % n], nic, weight, NULL))
      return FALSE;
    *wire_s += b->s->costs.wire ? b->path.latency_s / n_edges : 0;
    if (i > 0)
      plan_wait (b, first + i, first + i - 1);
  }
  if (!chain)
    plan_wait (b, first, first + n - 1);
  return TRUE;
}

/* Turns a ring of n ranks so that the root of a broadcast begins it. As in NCCL the whole ring
 * turns and each node is left where its ring leaves it; those before the root in its node come
 * last. */
static void
root_first (guint32 *rank, guint32 n, guint32 root)
{
  g_autofree guint32 *old = g_memdup2 (rank, n * sizeof (guint32));
  guint32 at = 0;
  while (old[at] != root)
    at++;
  for (guint32 i = 0; i < n; i++)
    rank[i] = old[(at + i) % n];
}

static gboolean
plan_ring (Builder *b)
{
  const CollPlanSpec *s = b->s;
  guint32 n = s->n;
  gboolean chain = s->op == COLL_BROADCAST;
  double factor = coll_bus_factor (s->op, (int)n), wire = 0;
  guint32 steps = s->op == COLL_ALL_REDUCE ? 2 * (n - 1) : n - 1;
  double cross = (s->op == COLL_ALL_REDUCE ? 2.0 : 1.0) * (b->n_nodes - 1);
  g_autofree guint32 *order = g_new (guint32, (gsize)n * 64);
  guint rings = b->n_nodes == 1 ? plan_mesh_rings (b, order, 64) : 0;
  guint c_n = s->channels > 0  ? (guint)s->channels
              : rings > 0      ? rings
              : b->n_nodes > 1 ? MAX (1, b->n_nics)
                               : 1;
  plan_phase_begin (b);
  for (guint c = 0; c < c_n; c++) {
    gint64 amount = plan_part (s->bytes, c, c_n);
    guint32 *mine = order + (rings > 0 ? (gsize)(c % rings) * n : 0);
    if (rings == 0)
      plan_ring_order (b, c, mine);
    if (chain)
      root_first (mine, n, b->by_node[0]);
    double cap = s->costs.bus_Bps / factor / c_n;
    if (b->n_nodes > 1)
      cap = plan_limit (cap, s->costs.nic_Bps * MAX (1, b->n_nics) / factor / c_n);
    plan_channel_begin (b, amount, cap, chain ? plan_slots (b, amount) : steps, chain ? 0 : 1);
    int nic = b->n_nodes > 1 && b->n_nics > 0 ? b->nics[c % b->n_nics] : -1;
    if (s->cross_nic && nic >= 0)
      b->enter = 1 + b->nics[(c + 1) % b->n_nics];
    if (!plan_ring_edges (b, mine, n, nic, factor, chain, &wire))
      return FALSE;
    plan_channel_end (b);
  }
  b->enter = 0;
  plan_phase_end (b, (steps - cross) * s->costs.hop_s + cross * s->costs.net_hop_s +
                         steps * wire / c_n);
  return TRUE;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void
group_by_node (Builder *b)
{
  const CollPlanSpec *s = b->s;
  guint32 per = topo_gpus_per_node (s->topo), nodes = topo_n_nodes (s->topo);
  g_autofree guint32 *slot = g_new0 (guint32, nodes + 1); /* 1 + place in b->node */
  b->node = g_new0 (NodeRanks, s->n + 1);
  b->by_node = g_new (guint32, s->n + 1);
  for (guint32 r = 0; r < s->n; r++) {
    guint32 node = s->gpu[r] / per;
    if (slot[node] == 0) {
      b->node[b->n_nodes].node = node;
      slot[node] = ++b->n_nodes;
    }
    b->node[slot[node] - 1].n++;
  }
  guint32 sum = 0;
  b->even = TRUE;
  b->ppn = b->n_nodes > 0 ? b->node[0].n : 0;
  for (guint32 i = 0; i < b->n_nodes; i++) {
    b->node[i].first = sum;
    sum += b->node[i].n;
    b->even = b->even && b->node[i].n == b->ppn;
    b->node[i].n = 0;
  }
  for (guint32 r = 0; r < s->n; r++) {
    NodeRanks *w = &b->node[slot[s->gpu[r] / per] - 1];
    b->by_node[w->first + w->n++] = r;
  }
}

/* NICs that the GPUs of the group's first node own: a channel each. */
static void
find_nics (Builder *b)
{
  gboolean seen[256] = {FALSE};
  for (guint32 j = 0; b->n_nodes > 1 && j < b->node[0].n; j++) {
    const guint8 *own = NULL;
    guint n = topo_nics_of_gpu (b->s->topo, b->s->gpu[b->by_node[b->node[0].first + j]], &own);
    for (guint m = 0; m < n; m++) {
      if (!seen[own[m]])
        b->nics[b->n_nics++] = own[m];
      seen[own[m]] = TRUE;
    }
  }
}

static gboolean
check_spec (const Builder *b)
{
  const CollPlanSpec *s = b->s;
  gboolean reduce = s->op == COLL_ALL_REDUCE;
  gboolean gather = s->op == COLL_ALL_GATHER || s->op == COLL_REDUCE_SCATTER;
  gboolean pairs = s->op == COLL_ALLTOALL || s->op == COLL_SENDRECV;
  gboolean ok = s->algo == PLAN_RING           ? !pairs
                : s->algo == PLAN_NVLS         ? reduce || gather
                : s->algo == PLAN_PAT          ? gather
                : s->algo == PLAN_HIERARCHICAL ? s->op != COLL_SENDRECV
                : s->algo == PLAN_PAIRS        ? pairs
                                               : reduce;
  if (!ok)
    return plan_fail (b, "there is no such algorithm for this operation");
  if (s->channels < 0 || s->channels > 64)
    return plan_fail (b, "%d channels (allowed: 0 to 64)", s->channels);
  g_autofree guint8 *seen = g_malloc0 (topo_n_gpus (s->topo));
  for (guint32 r = 0; r < s->n; r++) {
    if (s->gpu[r] >= topo_n_gpus (s->topo) || seen[s->gpu[r]])
      return plan_fail (b, "rank %u is on GPU %u, which is not there or taken (%u GPUs)", r,
                        s->gpu[r], topo_n_gpus (s->topo));
    seen[s->gpu[r]] = TRUE;
  }
  return TRUE;
}

/* Pairs of edges become pred and succ lists. */
static void
index_deps (Builder *b)
{
  CollPlan *p = b->p;
  guint n = b->pred_a->len;
  for (int side = 0; side < 2; side++) {
    const GArray *key = side == 0 ? b->pred_a : b->pred_b, *val = side == 0 ? b->pred_b : b->pred_a;
    guint32 base = p->deps->len, sum = base;
    for (guint i = 0; i < n; i++) {
      CollEdge *e = &g_array_index (p->edges, CollEdge, g_array_index (key, guint32, i));
      *(side == 0 ? &e->n_pred : &e->n_succ) += 1;
    }
    for (guint i = 0; i < p->edges->len; i++) {
      CollEdge *e = &g_array_index (p->edges, CollEdge, i);
      *(side == 0 ? &e->pred : &e->succ) = sum;
      sum += side == 0 ? e->n_pred : e->n_succ;
      *(side == 0 ? &e->n_pred : &e->n_succ) = 0;
    }
    g_array_set_size (p->deps, base + n);
    for (guint i = 0; i < n; i++) {
      CollEdge *e = &g_array_index (p->edges, CollEdge, g_array_index (key, guint32, i));
      guint32 at = side == 0 ? e->pred + e->n_pred++ : e->succ + e->n_succ++;
      g_array_index (p->deps, guint32, at) = g_array_index (val, guint32, i);
    }
  }
}

static gboolean
build (Builder *b)
{
  switch (b->s->algo) {
  case PLAN_RING:
    return plan_ring (b);
  case PLAN_TREE:
    return plan_tree (b);
  case PLAN_NVLS:
    return plan_nvls (b);
  case PLAN_NVLSTREE:
    return plan_nvlstree (b);
  case PLAN_COLLNET_DIRECT:
  case PLAN_COLLNET_CHAIN:
    return plan_collnet (b);
  case PLAN_PAT:
    return plan_pat (b);
  case PLAN_HIERARCHICAL:
    return plan_hierarchical (b);
  case PLAN_PAIRS:
    return plan_pairs (b);
  case PLAN_ALGO_COUNT:
    break;
  }
  return FALSE;
}

static void
set_start (Builder *b)
{
  const CollCosts *c = &b->s->costs;
  double hops = 0;
  for (guint i = 0; i < b->p->phases->len; i++)
    hops += coll_plan_phase (b->p, i)->alpha_s;
  b->p->start_s = c->base_s;
  if (c->total_s > 0)
    b->p->start_s = MAX (0, c->total_s - hops);
}

CollPlan *
coll_plan_new (const CollPlanSpec *s, GError **error)
{
  g_autoptr (CollPlan) p = g_new0 (CollPlan, 1);
  p->topo = s->topo;
  p->op = s->op;
  p->algo = s->algo;
  p->n = s->n;
  p->bytes = s->bytes;
  p->steps = s->steps;
  p->phases = g_array_new (FALSE, TRUE, sizeof (CollPhase));
  p->channels = g_array_new (FALSE, TRUE, sizeof (CollChannel));
  p->edges = g_array_new (FALSE, TRUE, sizeof (CollEdge));
  p->links = g_array_new (FALSE, FALSE, sizeof (guint32));
  p->coefs = g_array_new (FALSE, FALSE, sizeof (double));
  p->deps = g_array_new (FALSE, FALSE, sizeof (guint32));
  Builder b = {.s = s, .p = p, .error = error};
  if (!check_spec (&b))
    return NULL;
  if (s->n <= 1 || s->bytes <= 0)
    return g_steal_pointer (&p);
  group_by_node (&b);
  find_nics (&b);
  b.acc = s->scratch ? s->scratch : g_new0 (double, topo_n_links (s->topo));
  b.touched = g_array_new (FALSE, FALSE, sizeof (guint32));
  b.pred_a = g_array_new (FALSE, FALSE, sizeof (guint32));
  b.pred_b = g_array_new (FALSE, FALSE, sizeof (guint32));
  gboolean ok = build (&b);
  if (ok) {
    index_deps (&b);
    set_start (&b);
  }
  g_array_unref (b.touched);
  g_array_unref (b.pred_a);
  g_array_unref (b.pred_b);
  topo_path_clear (&b.path);
  if (!s->scratch)
    g_free (b.acc);
  g_free (b.node);
  g_free (b.by_node);
  return ok ? g_steal_pointer (&p) : NULL;
}

void
coll_plan_free (CollPlan *p)
{
  if (!p)
    return;
  GArray *own[] = {p->phases, p->channels, p->edges, p->links, p->coefs, p->deps};
  for (gsize i = 0; i < G_N_ELEMENTS (own); i++)
    g_array_unref (own[i]);
  g_free (p);
}

const CollPhase *
coll_plan_phase (const CollPlan *p, guint i)
{
  return &g_array_index (p->phases, CollPhase, i);
}

const CollChannel *
coll_plan_channel (const CollPlan *p, guint i)
{
  return &g_array_index (p->channels, CollChannel, i);
}

const CollEdge *
coll_plan_edge (const CollPlan *p, guint i)
{
  return &g_array_index (p->edges, CollEdge, i);
}

guint64
coll_plan_n_transfers (const CollPlan *p)
{
  guint64 n = 0;
  for (guint i = 0; i < p->edges->len; i++)
    n += coll_plan_edge (p, i)->slots;
  return n;
}

double
coll_plan_link_bytes (const CollPlan *p, guint32 link)
{
  double sum = 0;
  for (guint c = 0; c < p->channels->len; c++) {
    const CollChannel *ch = coll_plan_channel (p, c);
    for (guint i = 0; i < ch->n_path; i++)
      if (g_array_index (p->links, guint32, ch->path + i) == link)
        sum += (double)ch->amount * g_array_index (p->coefs, double, ch->path + i);
  }
  return sum;
}
