/* The kernels of a mixture-of-experts layer's second half.
 *
 * Pieces, in the order of forward: route (router GEMM, top-k, sorting of tokens by destination),
 * dispatch (all-to-all), experts (grouped GEMMs), combine (all-to-all back), collect (weighted
 * sum). Under sequence parallelism every rank routes its own tokens, T/tp of them; with etp > 1 the
 * ranks of an expert-tensor group gather theirs. All ranks wait in the combine for the busiest one,
 * so that one is priced: load = its rows over the mean.
 *
 * Sources: Megatron-Core's token dispatchers (arXiv 2504.14960) for the plain form; DeepSeek-V3
 * (arXiv 2412.19437, section 3.2.2) for one copy of a token per destination node and per
 * destination GPU.
 */
#include <math.h>

#include "fabric.h"
#include "layer_emit.h"

#define ROUTER_PASSES                                                                              \
  16.0 /* softmax, top-k, scatter, counts, auxiliary loss as kernels of their own */
#define ROUTER_PASSES_FUSED  4.0
#define ROUTER_KERNELS       14
#define ROUTER_KERNELS_FUSED 3

typedef struct {
  double tokens, h, k, a; /* tokens that this rank routes */
  double rows;            /* rows of the busiest rank's experts */
  double rows_sent;       /* copies of tokens: tokens * k */
  gint64 local, per_expert;
  gint64 ffn, up; /* columns of an expert on this rank */
} MoeDims;

static void
moe_dims (const Pricing *p, MoeDims *d)
{
  const Spec *s = p->s;
  const ModelSpec *m = &s->model;
  gint64 etp = spec_expert_tp (s);
  d->tokens = (double)p->tokens_sp;
  d->h = (double)m->hidden;
  d->k = (double)m->experts_per_token;
  d->a = p->act_bytes;
  d->rows_sent = d->tokens * d->k;
  d->rows = d->rows_sent * spec_moe_load (s);
  if (s->parallel.sequence_parallel) /* the ranks of an expert-tensor group have different tokens */
    d->rows *= (double)etp;
  d->local = m->num_experts / s->parallel.ep;
  d->per_expert = (gint64)MAX (1.0, ceil (d->rows / (double)d->local));
  d->ffn = m->moe_ffn_hidden / etp;
  d->up = m->gated_mlp ? 2 * d->ffn : d->ffn;
}

/* ---- dispatch and combine ---- */

/* Expected number of different groups among n equal ones that the k experts of a token lie in:
 * n (1 - C(E - E/n, k) / C(E, k)) for k different experts drawn evenly. */
static double
distinct (double experts, double k, double n)
{
  double none = 1, in_group = experts / n;
  for (double i = 0; i < k; i++)
    none *= MAX (0.0, (experts - in_group - i) / (experts - i));
  return n * (1 - none);
}

/* The same where a token's experts are drawn from some of the router's groups (node-limited
 * routing, arXiv 2412.19437, section 2.1.2): groups and ranks are both runs of consecutive experts.
 */
static double
reached (const ModelSpec *m, double n)
{
  double experts = (double)m->num_experts, k = (double)m->experts_per_token;
  double groups = (double)m->router_groups, drawn = (double)m->router_topk_groups;
  if (groups <= 1 || drawn >= groups)
    return distinct (experts, k, n);
  double within = n >= groups ? n * drawn / groups : distinct (groups, drawn, n);
  return distinct (experts * drawn / groups, k, within);
}

static double
kernel_dispatch_s (const Pricing *p, const MoeDims *d, double elem, double *bytes)
{
  const Spec *s = p->s;
  const Fabric *f = s->fabric;
  const CollGroup *g = &p->groups.ep;
  const SoftwareProfile *sw = &s->software;
  double load = spec_moe_load (s);
  double row = d->h * elem * d->tokens * load, r = g->ranks_per_node;
  double nv = row * reached (&s->model, g->ranks) * (r - 1) / r;
  double t = nv / (sw->ep_nvlink_efficiency * f->a2a.Bps * fabric_alltoall_share (f, g));
  *bytes = nv;
  if (g->nodes > 1) {
    double net = row * reached (&s->model, g->nodes) * (g->nodes - 1) / g->nodes;
    *bytes += net;
    t = MAX (t, r * net / (sw->ep_net_efficiency * fabric_group_net_Bps (f, g)));
    t += f->net_base_s;
    /* an all-to-all of this size crosses nodes with as many bytes */
    t = coll_shared_s (f, COLL_ALLTOALL, g, net * g->nodes / (g->nodes - 1), t);
  }
  return t + sw->ep_base_us * 1e-6;
}

/* First inside the node, so that all rows for one node leave through the same GPU, then between
 * nodes. */
static double
hierarchical_s (const Pricing *p, double bytes)
{
  const Fabric *f = p->s->fabric;
  const CollGroup *g = &p->groups.ep;
  CollGroup inside = {g->ranks_per_node, g->ranks_per_node, 1, 1, {0}};
  double t = coll_time_s (f, COLL_ALLTOALL, &inside, bytes, NULL);
  if (g->nodes <= 1)
    return t;
  double net = bytes * (g->nodes - 1) / g->nodes * g->ranks_per_node;
  t += net / (p->s->software.ep_net_efficiency * fabric_group_net_Bps (f, g));
  t += f->net_base_s + (g->nodes - 1) * f->a2a_net_hop_s;
  return coll_shared_s (f, COLL_ALLTOALL, g, bytes, t);
}

double
moe_dispatch_s (const Pricing *p, gboolean out, double *bytes)
{
  const Spec *s = p->s;
  MoeDims d;
  moe_dims (p, &d);
  double elem = out && s->software.fp8_dispatch && spec_narrow (s) ? 1.0 : d.a;
  double load = spec_moe_load (s), sent = d.rows_sent * d.h * elem * load, t = 0;
  *bytes = 0;
  if (s->parallel.ep > 1) {
    *bytes = sent;
    if (s->software.ep_dispatch == EP_DEEPEP)
      t = kernel_dispatch_s (p, &d, elem, bytes);
    else if (s->software.ep_dispatch == EP_HIERARCHICAL)
      t = hierarchical_s (p, sent);
    else
      t = coll_time_s (s->fabric, COLL_ALLTOALL, &p->groups.ep, sent, NULL);
  }
  if (p->groups.etp.ranks > 1 && s->parallel.sequence_parallel) {
    double full = sent * p->groups.etp.ranks;
    *bytes += full;
    t += coll_time_s (s->fabric, out ? COLL_ALL_GATHER : COLL_REDUCE_SCATTER, &p->groups.etp, full,
                      NULL);
  } else if (p->groups.etp.ranks > 1 &&
             !out) { /* every rank has all tokens and a part of their sums */
    double full = d.tokens * d.h * d.a;
    *bytes += full;
    t += coll_time_s (s->fabric, COLL_ALL_REDUCE, &p->groups.etp, full, NULL);
  }
  return t;
}

guint32
emit_moe_dispatch (Emit *e, gboolean forward, gboolean beside)
{
  double bytes, t = moe_dispatch_s (e->p, forward, &bytes);
  return emit_ep_comm_s (e, forward ? "ep dispatch" : "ep dispatch backward", t, bytes, beside);
}

guint32
emit_moe_combine (Emit *e, gboolean forward, gboolean beside)
{
  double bytes, t = moe_dispatch_s (e->p, !forward, &bytes);
  return emit_ep_comm_s (e, forward ? "ep combine" : "ep combine backward", t, bytes, beside);
}

/* ---- router, sorting ---- */

static void
router_kernels (Emit *e, const MoeDims *d, const char *name, double share)
{
  gboolean fused = e->p->s->software.moe_fused_router;
  double n = d->tokens * (double)e->p->s->model.num_experts * 4.0;
  emit_memory (e, name, MEMK_ELEMENTWISE,
               share * n * (fused ? ROUTER_PASSES_FUSED : ROUTER_PASSES));
  guint more = (guint)(share * (fused ? ROUTER_KERNELS_FUSED : ROUTER_KERNELS)) - 1;
  e->kernels += more;
  for (guint i = 0; i < more; i++) /* kernels too small to fill the device */
    emit_small (e);
}

/* Copies rows into another order: rows_in read, rows_out written; the unfused form makes an index
 * and goes over the rows once more. */
static void
reorder (Emit *e, const MoeDims *d, const char *name, double rows_in, double rows_out)
{
  double bytes = (rows_in + rows_out) * d->h * d->a;
  emit_memory (e, name, MEMK_ELEMENTWISE, bytes);
  if (!e->p->s->software.moe_fused_permute)
    emit_memory (e, "reorder passes", MEMK_STREAM, 0.5 * bytes);
}

static gboolean
sorts_before (const Emit *e) /* plain all-to-alls need rows in the order of their destinations */
{
  return e->p->s->software.ep_dispatch != EP_DEEPEP || e->p->s->parallel.ep <= 1;
}

static gboolean
sorts_after (const Emit *e, const MoeDims *d)
{
  return !sorts_before (e) || (d->local > 1 && e->p->s->parallel.ep > 1);
}

/* ---- shared experts ---- */

static gint64
shared_ffn (const Emit *e)
{
  const ModelSpec *m = &e->p->s->model;
  return m->shared_experts * m->shared_ffn_hidden / e->p->s->parallel.tp;
}

static void
shared_forward (Emit *e)
{
  const ModelSpec *m = &e->p->s->model;
  gint64 ffn = shared_ffn (e), T = e->p->tokens;
  if (ffn <= 0)
    return;
  emit_column_forward (e, "shared up", T, m->gated_mlp ? 2 * ffn : ffn, m->hidden);
  emit_activation (e, TRUE, T, ffn);
  emit_row_forward (e, "shared down", T, m->hidden, ffn);
}

static void
shared_backward (Emit *e, LayerPass pass)
{
  const ModelSpec *m = &e->p->s->model;
  gint64 ffn = shared_ffn (e), T = e->p->tokens;
  if (ffn <= 0)
    return;
  if (pass != LP_WEIGHT_GRAD && spec_recomputes (e->p->s, RECOMP_SHARED))
    shared_forward (e);
  emit_row_backward (e, "shared down", pass, T, m->hidden, ffn);
  if (pass != LP_WEIGHT_GRAD)
    emit_activation (e, FALSE, T, ffn);
  emit_column_backward (e, "shared up", pass, T, m->gated_mlp ? 2 * ffn : ffn, m->hidden);
}

/* ---- forward ---- */

static void
router_forward (Emit *e, const MoeDims *d)
{
  const ModelSpec *m = &e->p->s->model;
  gboolean wide = e->wide;
  e->wide = TRUE;
  emit_gemm (e, "router", GEMM_FORWARD, e->p->tokens_sp, m->num_experts, m->hidden, 1);
  e->wide = wide;
  router_kernels (e, d, "router top-k", 1.0);
}

void
emit_moe_route (Emit *e)
{
  MoeDims d;
  moe_dims (e->p, &d);
  router_forward (e, &d);
  if (sorts_before (e))
    reorder (e, &d, "permute", d.tokens, d.rows_sent);
  if (!e->p->s->software.moe_shared_overlap)
    shared_forward (e);
}

void
emit_moe_experts (Emit *e)
{
  const ModelSpec *m = &e->p->s->model;
  MoeDims d;
  moe_dims (e->p, &d);
  gint64 rows = d.per_expert * d.local;
  if (e->p->s->train.moe_capacity <= 0)
    emit_host_gap (e, e->p->s->software.host_moe_sync_us);
  if (sorts_after (e, &d))
    reorder (e, &d, "sort by expert", d.rows, d.rows);
  e->experts = d.local;
  emit_quantise (e, "quantise expert input", (double)rows * d.h, TRUE);
  emit_gemm (e, "experts up", GEMM_FORWARD, d.per_expert, d.up, m->hidden, d.local);
  e->experts = 0;
  emit_activation (e, TRUE, rows, d.ffn);
  e->experts = d.local;
  emit_quantise (e, "quantise expert hidden", (double)rows * (double)d.ffn, TRUE);
  emit_gemm (e, "experts down", GEMM_FORWARD, d.per_expert, m->hidden, d.ffn, d.local);
  e->experts = 0;
  if (sorts_after (e, &d))
    reorder (e, &d, "unsort", d.rows, d.rows);
}

void
emit_moe_collect (Emit *e)
{
  MoeDims d;
  moe_dims (e->p, &d);
  if (sorts_before (e))
    reorder (e, &d, "unpermute", d.rows_sent, d.tokens);
  if (shared_ffn (e) > 0)
    emit_memory (e, "add shared", MEMK_ELEMENTWISE, 3.0 * d.tokens * d.h * d.a);
}

void
emit_moe_forward (Emit *e)
{
  gboolean overlap = e->p->s->software.moe_shared_overlap;
  emit_moe_route (e);
  guint32 there = emit_moe_dispatch (e, TRUE, overlap);
  if (overlap)
    shared_forward (e);
  e->join_ep = MAX (e->join_ep, there);
  emit_moe_experts (e);
  emit_moe_combine (e, TRUE, FALSE);
  emit_moe_collect (e);
}

/* ---- backward ---- */

void
emit_moe_collect_backward (Emit *e)
{
  MoeDims d;
  moe_dims (e->p, &d);
  if (sorts_before (e))
    reorder (e, &d, "unpermute backward", d.tokens, d.rows_sent);
}

static void
expert_wgrad (Emit *e, const MoeDims *d, const char *name, gint64 n, gint64 k)
{
  if (e->p->s->train.adapter_rank > 0) /* frozen */
    return;
  e->experts = d->local;
  emit_gemm (e, name, GEMM_WGRAD, n, k, d->per_expert, d->local);
  e->experts = 0;
  if (!e->p->s->software.grad_accum_fusion)
    emit_memory (e, "grad add", MEMK_STREAM,
                 (double)(d->local * n) * (double)k *
                     (e->p->act_bytes + 2.0 * e->p->s->software.grad_bytes));
}

void
emit_moe_experts_backward (Emit *e, LayerPass pass)
{
  const ModelSpec *m = &e->p->s->model;
  MoeDims d;
  moe_dims (e->p, &d);
  gint64 rows = d.per_expert * d.local;
  gboolean inputs = pass != LP_WEIGHT_GRAD, weights = pass != LP_INPUT_GRAD;
  if (inputs) {
    if (sorts_after (e, &d))
      reorder (e, &d, "unsort backward", d.rows, d.rows);
    if (spec_recomputes (e->p->s, RECOMP_MOE_ACT)) {
      emit_activation (e, TRUE, rows, d.ffn);
      emit_quantise (e, "quantise expert hidden", (double)rows * (double)d.ffn, FALSE);
    }
    e->experts = d.local;
    emit_quantise (e, "quantise expert grad", (double)rows * d.h, TRUE);
    emit_gemm (e, "experts down dgrad", GEMM_DGRAD, d.per_expert, d.ffn, m->hidden, d.local);
    e->experts = 0;
  }
  if (weights)
    expert_wgrad (e, &d, "experts down wgrad", m->hidden, d.ffn);
  if (inputs) {
    emit_activation (e, FALSE, rows, d.ffn);
    e->experts = d.local;
    emit_quantise (e, "quantise expert grad", (double)rows * (double)d.up, TRUE);
    emit_gemm (e, "experts up dgrad", GEMM_DGRAD, d.per_expert, m->hidden, d.up, d.local);
    e->experts = 0;
  }
  if (weights)
    expert_wgrad (e, &d, "experts up wgrad", d.up, m->hidden);
  if (inputs && sorts_after (e, &d))
    reorder (e, &d, "sort backward", d.rows, d.rows);
}

void
emit_moe_route_backward (Emit *e, LayerPass pass)
{
  const ModelSpec *m = &e->p->s->model;
  MoeDims d;
  moe_dims (e->p, &d);
  gboolean wide = e->wide;
  if (!e->p->s->software.moe_shared_overlap || pass == LP_WEIGHT_GRAD)
    shared_backward (e, pass);
  if (pass != LP_WEIGHT_GRAD) {
    if (sorts_before (e))
      reorder (e, &d, "permute backward", d.rows_sent, d.tokens);
    router_kernels (e, &d, "router backward", 0.75);
  }
  e->wide = TRUE;
  if (pass != LP_WEIGHT_GRAD)
    emit_gemm (e, "router dgrad", GEMM_DGRAD, e->p->tokens_sp, m->hidden, m->num_experts, 1);
  if (pass != LP_INPUT_GRAD && e->p->s->train.adapter_rank == 0)
    emit_gemm (e, "router wgrad", GEMM_WGRAD, m->num_experts, m->hidden, e->p->tokens_sp, 1);
  e->wide = wide;
}

void
emit_moe_backward (Emit *e, LayerPass pass)
{
  gboolean overlap = e->p->s->software.moe_shared_overlap && pass != LP_WEIGHT_GRAD;
  gboolean inputs = pass != LP_WEIGHT_GRAD;
  if (inputs) {
    emit_moe_collect_backward (e);
    emit_moe_combine (e, FALSE, FALSE);
  }
  emit_moe_experts_backward (e, pass);
  if (inputs) {
    guint32 there = emit_moe_dispatch (e, FALSE, overlap);
    if (overlap)
      shared_backward (e, pass);
    e->join_ep = MAX (e->join_ep, there);
  }
  emit_moe_route_backward (e, pass);
}
