/* Which ranks a group of each kind spans, and how its members lie over the nodes.
 * Order of ranks: parallel.order, by default tp innermost, then cp, dp, pp. Experts have an order
 * of their own over the same tp*cp*dp ranks: etp innermost, then ep, edp (MoE Parallel Folding,
 * arXiv 2504.14960). A node is a scale-up domain. */
#include <math.h>

#include "fabric.h"
#include "layer_cost.h"
#include "rank_order.h"

/* A group of n ranks with the given stride, on nodes of gpn GPUs. */
static CollGroup
group_of (gint64 n, gint64 stride, gint64 gpn)
{
  CollGroup g = {.span = {SPAN_NONE, {(int)n, 1}, {stride, 1}}};
  gint64 per_node = stride >= gpn ? 1 : MAX (1, MIN (n, gpn / stride));
  while (n % per_node != 0) /* uneven fill: take the next smaller even one */
    per_node--;
  g.ranks = (int)n;
  g.ranks_per_node = (int)per_node;
  g.nodes = (int)(n / per_node);
  g.sharers = g.nodes > 1 ? (int)MAX (1, gpn / per_node) : 1;
  return g;
}

/* A group over two dimensions, n1 ranks at stride s1 for each of n2 at stride s2. */
static CollGroup
group_of_two (gint64 n1, gint64 s1, gint64 n2, gint64 s2, gint64 gpn)
{
  if (n2 == 1 || s2 == n1 * s1)
    return group_of (n1 * n2, s1, gpn);
  if (n1 == 1)
    return group_of (n2, s2, gpn);
  CollGroup in = group_of (n1, s1, gpn), out = group_of (n2, s2, gpn);
  CollGroup g = {.ranks = (int)(n1 * n2),
                 .ranks_per_node = in.ranks_per_node * out.ranks_per_node,
                 .sharers = 1,
                 .span = {SPAN_NONE, {(int)n1, (int)n2}, {s1, s2}}};
  g.nodes = g.ranks / g.ranks_per_node;
  g.sharers = g.nodes > 1 ? (int)MAX (1, gpn / g.ranks_per_node) : 1;
  return g;
}

/* The first n ranks of cp and dp, cp before dp. */
static CollGroup
group_of_data (const ParallelSpec *p, const gint64 stride[DIM_COUNT], gint64 n, gint64 gpn)
{
  gint64 in = MIN (n, p->cp);
  return group_of_two (in, stride[DIM_CP], n / in, stride[DIM_DP], gpn);
}

static void
expert_groups (const Spec *s, const gint64 stride[DIM_COUNT], gint64 gpn, RankGroups *out)
{
  const ParallelSpec *p = &s->parallel;
  gint64 etp = spec_expert_tp (s), block = p->tp * p->cp, ranks = block * p->dp;
  gint64 edp = MAX (1, ranks / (etp * p->ep));
  out->etp = group_of (etp, stride[DIM_TP], gpn);
  if (stride[DIM_TP] == 1 && stride[DIM_CP] == p->tp && stride[DIM_DP] == block) {
    out->ep = group_of (p->ep, etp, gpn);
    out->edp = group_of (edp, etp * p->ep, gpn);
    return;
  }
  /* another order: inside tp x cp as far as it goes, then along dp */
  gint64 in = CLAMP (block / etp, 1, p->ep);
  out->ep = group_of_two (in, etp * stride[DIM_TP], p->ep / in, stride[DIM_DP], gpn);
  out->edp = group_of (edp, stride[DIM_DP] * (p->ep / in), gpn);
}

static void
name_groups (RankGroups *out)
{
  out->tp.span.kind = SPAN_TP;
  out->cp.span.kind = SPAN_CP;
  out->ep.span.kind = SPAN_EP;
  out->etp.span.kind = SPAN_ETP;
  out->edp.span.kind = SPAN_EDP;
  out->pp.span.kind = SPAN_PP;
  out->dp.span.kind = out->dp_only.span.kind = SPAN_DP;
  out->shard.span.kind = out->replica.span.kind = out->hpz.span.kind = SPAN_DP;
}

void
rank_groups (const Spec *s, RankGroups *out)
{
  const ParallelSpec *p = &s->parallel;
  gint64 gpn = spec_domain_gpus (s), shard = spec_shard_ranks (s);
  const gint64 size[DIM_COUNT] = {p->tp, p->cp, p->dp, p->pp};
  gint64 stride[DIM_COUNT];
  rank_order_strides (p->order, size, stride);
  out->tp = group_of (p->tp, stride[DIM_TP], gpn);
  out->cp = group_of (p->cp, stride[DIM_CP], gpn);
  expert_groups (s, stride, gpn, out);
  out->dp = group_of_data (p, stride, p->dp * p->cp, gpn);
  out->dp_only = group_of (p->dp, stride[DIM_DP], gpn);
  out->all = group_of (s->cluster.gpus, 1, gpn);
  out->shard = group_of_data (p, stride, shard, gpn);
  if (shard >= p->cp) /* every so many ranks of dp */
    out->replica = group_of (p->dp * p->cp / shard, stride[DIM_DP] * (shard / p->cp), gpn);
  else
    out->replica = group_of_two (p->cp / shard, stride[DIM_CP] * shard, p->dp, stride[DIM_DP], gpn);
  out->hpz = group_of_data (p, stride, p->hpz_size > 0 ? p->hpz_size : shard, gpn);
  out->pp = group_of (p->pp, stride[DIM_PP], gpn);
  name_groups (out);
  out->pp_same_node = stride[DIM_PP] * p->pp <= gpn;
  out->pp_members = (int)MIN (gpn, stride[DIM_PP]);
  out->pp_sharers = out->pp_members;
  if (s->fabric != NULL && s->fabric->nics > 0) /* messages of a node through one of its NICs */
    out->pp_sharers = (int)MAX (1.0, ceil ((double)out->pp_members / s->fabric->nics));
}
