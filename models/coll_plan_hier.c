/* Plans that are not one ring or tree: by levels, by powers of two, by pairs. */
#include "coll_plan_priv.h"

#include <math.h>

/* ---- in the node, then between nodes by rail --------------------------------------------------
 */

/* A ring (or chain) in every node at once, in one channel. */
static gboolean
inner_phase (Builder *b, double weight, guint32 steps, gboolean chain)
{
  const CollPlanSpec *s = b->s;
  double wire = 0;
  if (b->ppn < 2)
    return TRUE;
  plan_phase_begin (b);
  plan_channel_begin (b, s->bytes, s->costs.bus_Bps / weight,
                      chain ? plan_slots (b, s->bytes) : steps, chain ? 0 : 1);
  for (guint32 i = 0; i < b->n_nodes; i++) {
    double w = 0;
    if (!plan_ring_edges (b, b->by_node + b->node[i].first, b->ppn, -1, weight, chain, &w))
      return FALSE;
    wire = MAX (wire, w);
  }
  plan_channel_end (b);
  plan_phase_end (b, steps * (s->costs.hop_s + wire));
  return TRUE;
}

/* A ring (or chain) over the nodes for every local rank: each has 1/ppn of the buffer, or all of it
 * travels over the first one. */
static gboolean
outer_phase (Builder *b, double weight, guint32 steps, gboolean chain)
{
  const CollPlanSpec *s = b->s;
  guint32 rails = chain ? 1 : b->ppn;
  g_autofree guint32 *rank = g_new (guint32, b->n_nodes);
  double wire = 0, cap = s->costs.nic_Bps * b->n_nics / rails / weight;
  if (b->n_nodes < 2)
    return TRUE;
  plan_phase_begin (b);
  for (guint32 k = 0; k < rails; k++) {
    gint64 amount = chain ? s->bytes : plan_part (s->bytes, k, rails);
    for (guint32 i = 0; i < b->n_nodes; i++)
      rank[i] = b->by_node[b->node[i].first + k];
    plan_channel_begin (b, amount, cap, chain ? plan_slots (b, amount) : steps, chain ? 0 : 1);
    double w = 0;
    if (!plan_ring_edges (b, rank, b->n_nodes, -1, weight, chain, &w))
      return FALSE;
    wire = MAX (wire, w);
    plan_channel_end (b);
  }
  plan_phase_end (b, steps * (s->costs.net_hop_s + wire));
  return TRUE;
}

/* All pairs in each node, or between equal local ranks of all nodes, `weight` of the buffer each.
 */
static gboolean
exchange_phase (Builder *b, gboolean inner)
{
  const CollPlanSpec *s = b->s;
  guint32 m = b->ppn, n = b->n_nodes, peers = inner ? m : n;
  double weight = 1.0 / peers;
  if (peers < 2)
    return TRUE;
  plan_phase_begin (b);
  double cap = inner ? s->costs.bus_Bps : s->costs.nic_Bps * b->n_nics / m;
  plan_channel_begin (b, s->bytes, cap / (weight * (peers - 1)), 1, 0);
  for (guint32 i = 0; i < n; i++)
    for (guint32 j = 0; j < m; j++) {
      guint32 last = 0, e = 0;
      for (guint32 d = 1; d < peers; d++) {
        guint32 to = inner ? b->node[i].first + (j + d) % m : b->node[(i + d) % n].first + j;
        if (!plan_edge_ranks (b, b->by_node[b->node[i].first + j], b->by_node[to], -1, weight, &e))
          return FALSE;
        if (d > 1)
          plan_wait (b, e, last);
        last = e;
      }
    }
  plan_channel_end (b);
  plan_phase_end (b, plan_hop_s (b, !inner));
  return TRUE;
}

gboolean
plan_hierarchical (Builder *b)
{
  guint32 m = b->ppn, n = b->n_nodes;
  double in = (m - 1.0) / m, out = (n - 1.0) / n;
  if (!b->even)
    return plan_fail (b, "nodes have different numbers of ranks");
  switch (b->s->op) {
  case COLL_ALL_REDUCE:
    return inner_phase (b, in, m - 1, FALSE) && outer_phase (b, 2 * out, 2 * (n - 1), FALSE) &&
           inner_phase (b, in, m - 1, FALSE);
  case COLL_ALL_GATHER:
    return outer_phase (b, out, n - 1, FALSE) && inner_phase (b, in, m - 1, FALSE);
  case COLL_REDUCE_SCATTER:
    return inner_phase (b, in, m - 1, FALSE) && outer_phase (b, out, n - 1, FALSE);
  case COLL_BROADCAST:
    return outer_phase (b, 1, n - 1, TRUE) && inner_phase (b, 1, m - 1, TRUE);
  case COLL_ALLTOALL:
    return exchange_phase (b, TRUE) && exchange_phase (b, FALSE);
  case COLL_SENDRECV:
  case COLL_COUNT:
    break;
  }
  return FALSE;
}

/* ---- PAT --------------------------------------------------------------------------------------
 */

/* Round k sends 2^k blocks (what is left in the last) to the rank 2^k further; a reduce_scatter has
 * the rounds backwards. Together n - 1 blocks: the factor of the ring in log2 n rounds. */
static gboolean
pat_channel (Builder *b, guint32 rounds, int nic)
{
  const CollPlanSpec *s = b->s;
  guint32 n = s->n;
  g_autofree guint32 *edge = g_new (guint32, (gsize)n * 2);
  gboolean gather = s->op == COLL_ALL_GATHER;
  for (guint32 r = 0; r < rounds; r++) {
    guint32 *mine = edge + (r % 2 ? n : 0), *last = edge + (r % 2 ? 0 : n);
    guint32 k = gather ? r : rounds - 1 - r, dist = 1u << k, prev = gather ? dist / 2 : dist * 2;
    double blocks = MIN (dist, n - dist);
    for (guint32 i = 0; i < n; i++) {
      if (!plan_edge_ranks (b, i, (i + dist) % n, nic, blocks / n, &mine[i]))
        return FALSE;
      if (r == 0)
        continue;
      plan_wait (b, mine[i], last[i]);
      plan_wait (b, mine[i], last[(i + n - prev % n) % n]);
    }
  }
  return TRUE;
}

gboolean
plan_pat (Builder *b)
{
  const CollPlanSpec *s = b->s;
  guint32 rounds = 0;
  while ((1u << rounds) < s->n)
    rounds++;
  guint c_n = s->channels > 0 ? (guint)s->channels : MAX (1, b->n_nics);
  double factor = coll_bus_factor (s->op, (int)s->n);
  double cap = b->n_nodes > 1 ? s->costs.nic_Bps * MAX (1, b->n_nics) : s->costs.bus_Bps;
  plan_phase_begin (b);
  for (guint c = 0; c < c_n; c++) {
    plan_channel_begin (b, plan_part (s->bytes, c, c_n), cap / factor / c_n, 1, 0);
    if (!pat_channel (b, rounds, b->n_nics > 0 ? b->nics[c % b->n_nics] : -1))
      return FALSE;
    plan_channel_end (b);
  }
  plan_phase_end (b, b->n_nodes > 1 ? log2 (b->n_nodes) * s->costs.net_hop_s
                                    : log2 (s->n) * s->costs.hop_s);
  return TRUE;
}

/* ---- pairs ------------------------------------------------------------------------------------
 */

/* Every rank to the next one, as sendrecv_perf does: flows of their own. */
static gboolean
plan_shift (Builder *b)
{
  const CollPlanSpec *s = b->s;
  plan_phase_begin (b);
  for (guint32 r = 0; r < s->n; r++) {
    guint32 to = (r + 1) % s->n;
    double cap = plan_crosses (b, r, to) ? s->costs.nic_Bps : s->costs.bus_Bps;
    plan_channel_begin (b, s->bytes, cap, 1, 0);
    if (!plan_edge_ranks (b, r, to, -1, 1, NULL))
      return FALSE;
    plan_channel_end (b);
  }
  plan_phase_end (b, plan_hop_s (b, b->n_nodes > 1));
  return TRUE;
}

gboolean
plan_pairs (Builder *b)
{
  const CollPlanSpec *s = b->s;
  guint32 n = s->n;
  if (s->op == COLL_SENDRECV)
    return plan_shift (b);
  if (n > 8192)
    return plan_fail (b, "more than 8192 ranks are too many pairs (allowed: Hierarchical)");
  /* Of n parts a rank sends ppn - 1 within its node; the node's NICs carry those to the others. */
  double near = b->ppn - 1.0, far = n - b->ppn, cap = 0;
  if (near > 0)
    cap = s->costs.bus_Bps * n / near;
  if (far > 0)
    cap = plan_limit (cap, s->costs.nic_Bps * MAX (1, b->n_nics) * n / (b->ppn * far));
  plan_phase_begin (b);
  plan_channel_begin (b, s->bytes, cap, 1, 0);
  for (guint32 i = 0; i < n; i++) {
    guint32 last = 0, e = 0;
    for (guint32 d = 1; d < n; d++) {
      if (!plan_edge_ranks (b, i, (i + d) % n, -1, 1.0 / n, &e))
        return FALSE;
      if (d > 1)
        plan_wait (b, e, last);
      last = e;
    }
  }
  plan_channel_end (b);
  plan_phase_end (b, (b->ppn - 1.0) * s->costs.hop_s + (n - b->ppn) * s->costs.net_hop_s);
  return TRUE;
}
