/* Which ranks a group of each kind spans, and how its members lie over the nodes.
 * Order of ranks: tp innermost, then cp, dp, pp (Megatron's default tp-cp-ep-dp-pp). Experts have
 * an order of their own over the same tp*cp*dp ranks: etp innermost, then ep, edp (MoE Parallel
 * Folding, arXiv 2504.14960). A node is a scale-up domain. */
#include <math.h>

#include "fabric.h"
#include "layer_cost.h"

/* A group of n ranks with the given stride, on nodes of gpn GPUs. */
static CollGroup
group_of (gint64 n, gint64 stride, gint64 gpn)
{
  CollGroup g;
  gint64 per_node = stride >= gpn ? 1 : MAX (1, MIN (n, gpn / stride));
  while (n % per_node != 0) /* uneven fill: take the next smaller even one */
    per_node--;
  g.ranks = (int)n;
  g.ranks_per_node = (int)per_node;
  g.nodes = (int)(n / per_node);
  g.sharers = g.nodes > 1 ? (int)MAX (1, gpn / per_node) : 1;
  return g;
}

void
rank_groups (const Spec *s, RankGroups *out)
{
  const ParallelSpec *p = &s->parallel;
  gint64 gpn = spec_domain_gpus (s), etp = spec_expert_tp (s);
  out->tp = group_of (p->tp, 1, gpn);
  out->cp = group_of (p->cp, p->tp, gpn);
  out->etp = group_of (etp, 1, gpn);
  out->ep = group_of (p->ep, etp, gpn);
  out->edp = group_of (MAX (1, p->tp * p->cp * p->dp / (etp * p->ep)), etp * p->ep, gpn);
  out->dp = group_of (p->dp * p->cp, p->tp, gpn);
  out->dp_only = group_of (p->dp, p->tp * p->cp, gpn);
  gint64 shard = spec_shard_ranks (s);
  out->shard = group_of (shard, p->tp, gpn);
  out->replica = group_of (p->dp * p->cp / shard, p->tp * shard, gpn);
  out->hpz = group_of (p->hpz_size > 0 ? p->hpz_size : shard, p->tp, gpn);
  out->all = group_of (s->cluster.gpus, 1, gpn);
  gint64 stride = p->tp * p->cp * p->dp;
  out->pp_same_node = stride * p->pp <= gpn;
  out->pp_members = (int)MIN (gpn, stride);
  out->pp_sharers = out->pp_members;
  if (s->fabric != NULL && s->fabric->nics > 0) /* messages of a node through one of its NICs */
    out->pp_sharers = (int)MAX (1.0, ceil ((double)out->pp_members / s->fabric->nics));
}
