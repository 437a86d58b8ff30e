/* Prices of the stages' passes for compile.c. */
#include "adapter.h"
#include "compress.h"
#include "offload.h"
#include "compile_fsdp.h"

#include <string.h>

SimTime
compile_ticks (Compile *c, double seconds)
{
  SimTime t = 0;
  if (sim_time_from_s (seconds, SIM_TICKS_PS, &t) && t <= PASS_TICKS_MAX)
    return t;
  c->overflow = TRUE;
  return 0;
}

guint
compile_layer_kind (const Spec *s, gint64 layer)
{
  const ModelSpec *m = &s->model;
  if (m->graph != NULL)
    return m->graph->layer[layer] - GRAPH_LAYERS;
  guint k = model_layer_is_moe (m, layer) ? 1 : 0;
  if (m->sliding_window > 0 && model_layer_window (m, layer) == 0)
    k += 2;
  k += model_layer_is_linear (m, layer) ? 4 : 0;
  return k + (spec_layer_recompute (s, layer) == RECOMPUTE_NONE ? 8 : 0);
}

static void
wait_for_host (Compile *c, gint64 layer, PassCost *cost)
{
  double total = sim_time_to_s (cost->total, SIM_TICKS_PS);
  SimTime wait = compile_ticks (c, offload_wait_s (c->s, layer, total));
  cost->part[PART_HOST] += wait;
  cost->total += wait;
}

const PassCost *
compile_layer_cost (Compile *c, gint64 layer, LayerPass pass)
{
  guint k = compile_layer_kind (c->s, layer);
  if (!c->have[k][pass]) {
    layer_pass_cost (&c->p, layer, pass, &c->layer[k][pass]);
    if (pass != LP_WEIGHT_GRAD) /* activations leave, or come back */
      wait_for_host (c, layer, &c->layer[k][pass]);
    c->have[k][pass] = TRUE;
  }
  return &c->layer[k][pass];
}

/* Host time that cannot run ahead (the host waits for each transfer) shows as idle GPU time. */
void
compile_host_gap (Compile *c, PassCost *cost)
{
  SimTime gap = compile_ticks (c, c->s->software.host_chunk_us * 1e-6);
  cost->part[PART_HOST] += gap;
  cost->total += gap;
}

static void
measured_pass (Compile *c, LayerPass pass, PassCost *out)
{
  const StageTimes *st = c->times;
  double t = pass == LP_FORWARD       ? st->forward_s
             : pass == LP_INPUT_GRAD  ? st->input_grad_s
             : pass == LP_WEIGHT_GRAD ? st->weight_grad_s
                                      : st->input_grad_s + st->weight_grad_s;
  memset (out, 0, sizeof *out);
  out->part[PART_COMPUTE] = out->total = compile_ticks (c, t / (double)c->s->parallel.vpp);
}

/* The loss of the model, and of those prediction modules that stand on stages before. */
void
compile_head_cost (const Compile *c, LayerPass pass, PassCost *out)
{
  PassCost one;
  gint64 far = stage_mtp_before (c->sl, c->sl->n_stages - 1);
  head_pass_cost (&c->p, pass, out);
  one = *out;
  for (gint64 i = 0; i < far; i++)
    pass_cost_add (out, &one);
}

void
compile_mtp_cost (const Compile *c, guint stage, LayerPass pass, PassCost *out)
{
  PassCost one;
  gint64 n = stage_mtp (c->sl, &c->s->model, stage);
  memset (out, 0, sizeof *out);
  if (n == 0)
    return;
  if (stage + 1 == c->sl->n_stages)
    mtp_pass_cost (&c->p, pass, &one);
  else
    mtp_body_cost (&c->p, pass, &one);
  for (gint64 i = 0; i < n; i++)
    pass_cost_add (out, &one);
}

/* The host waits for the device after each pass. (Sharded parameters have their own host stream.)
 */
static gboolean
in_step (const Compile *c)
{
  return c->s->software.p2p_sync && c->fsdp == NULL;
}

/* Where the host waits for the device after each pass, both begin a pass together: the device goes
 * on with what comes next when it is done with what came before and the host has issued it. sum
 * holds the pass so far, host the host's time up to its end; what the device waits is PART_HOST. */
static void
add_issued (PassCost *sum, SimTime *host, const PassCost *more)
{
  pass_cost_add (sum, more);
  *host += more->host;
  if (*host > sum->total && !sum->overflow) {
    sum->part[PART_HOST] += *host - sum->total;
    sum->total = *host;
  }
  sum->host = 0;
}

static void
add_part (const Compile *c, PassCost *sum, SimTime *host, const PassCost *more)
{
  if (in_step (c))
    add_issued (sum, host, more);
  else
    pass_cost_add (sum, more);
}

static void
add_head (Compile *c, LayerPass pass, PassCost *sum, SimTime *host)
{
  PassCost more;
  compile_head_cost (c, pass, &more);
  add_part (c, sum, host, &more);
  compile_mtp_cost (c, c->sl->n_stages - 1, pass, &more);
  add_part (c, sum, host, &more);
  *host = MAX (*host, sum->total); /* the host does not run ahead of the loss and its gradient: in
                                    * host-bound runs the head's GPU time adds to the layers' */
}

/* In the order of issue: embedding, layers, head, and backward the other way round. */
static void
stage_pass (Compile *c, guint stage, LayerPass pass)
{
  PassCost *out = &c->stage[stage].pass[pass], more, modules;
  gboolean forward = pass == LP_FORWARD, last = stage + 1 == c->sl->n_stages;
  SimTime host = 0;
  if (c->times != NULL) {
    measured_pass (c, pass, out);
    return;
  }
  memset (out, 0, sizeof *out);
  memset (&more, 0, sizeof more);
  if (pass != LP_WEIGHT_GRAD)
    more.host = compile_ticks (c, c->s->software.host_microbatch_us * 1e-6);
  add_part (c, out, &host, &more);
  if (!last) /* those of the last stage are told with its head */
    compile_mtp_cost (c, stage, pass, &modules);
  if (last && !forward)
    add_head (c, pass, out, &host);
  else if (!forward)
    add_part (c, out, &host, &modules);
  if (stage == 0)
    embedding_pass_cost (&c->p, pass, &more);
  if (stage == 0 && forward)
    add_part (c, out, &host, &more);
  for (gint64 i = 0; i < c->sl->n_layers[stage]; i++)
    add_part (c, out, &host, compile_layer_cost (c, c->sl->first_layer[stage] + i, pass));
  if (stage == 0 && !forward)
    add_part (c, out, &host, &more);
  if (last && forward)
    add_head (c, pass, out, &host);
  else if (forward)
    add_part (c, out, &host, &modules);
  compile_host_gap (c, out);
}

StageParams
compile_layer_params (const Compile *c, gint64 layer)
{
  StageLayers one = {
      .n_stages = 3, .first_layer = (gint64[]){0, layer, 0}, .n_layers = (gint64[]){0, 1, 0}};
  return stage_params_per_rank (c->s, &one, 1);
}

StageParams
compile_layer_trainable (const Compile *c, gint64 layer)
{
  StageLayers one = {
      .n_stages = 3, .first_layer = (gint64[]){0, layer, 0}, .n_layers = (gint64[]){0, 1, 0}};
  return stage_trainable_per_rank (c->s, &one, 1);
}

const CollGroup *
compile_expert_shard (const Compile *c)
{
  const RankGroups *g = &c->p.groups;
  return g->edp.ranks <= g->shard.ranks ? &g->edp : &g->shard;
}

/* Compute beside a collective runs at 1/f of its speed until one of them ends. */
void
compile_slow_beside (const Compile *c, PassCost *pc, SimTime beside)
{
  double f = c->s->software.dp_overlap_slowdown, slow = (double)pc->part[PART_COMPUTE] * f;
  if (f <= 1 || beside <= 0)
    return;
  double more =
      slow <= (double)beside ? slow - (double)pc->part[PART_COMPUTE] : (double)beside * (1 - 1 / f);
  pc->part[PART_COMPUTE] += (SimTime)more;
  pc->total += (SimTime)more;
}

gboolean
compile_scoped (const Compile *c)
{
  return c->fsdp == NULL && c->s->parallel.zero_stage >= 1 &&
         c->p.groups.shard.ranks < c->p.groups.dp.ranks;
}

/* Of a gradient on the wire; 32-bit training has no shorter one. */
static double
reduce_bytes (const Compile *c)
{
  double b = c->s->software.dp_reduce_bytes;
  return dtype_bytes (c->s->train.precision) >= 4 ? MAX (b, 4.0) : b;
}

double
compile_reduce_s (const Compile *c, const CollGroup *group, double params)
{
  const Spec *s = c->s;
  CollOp op = s->parallel.zero_stage >= 1 ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE;
  if (group->ranks <= 1 || !(params > 0))
    return 0;
  if (s->parallel.compression != COMPRESS_NONE)
    return compress_reduce_s (s, group, params);
  double bytes = params * reduce_bytes (c), n = (double)group->ranks;
  const CollGroup *shard = &c->p.groups.shard;
  if (group == &c->p.groups.dp && compile_scoped (c))
    return coll_time_s (s->fabric, COLL_REDUCE_SCATTER, shard, bytes, NULL) +
           coll_time_s (s->fabric, COLL_ALL_REDUCE, &c->p.groups.replica,
                        bytes / (double)shard->ranks, NULL);
  double t = coll_time_s (s->fabric, op, group, bytes, NULL);
  if (s->software.dp_rate_max_Bps > 0) /* bus rate: 2 (n-1)/n of the bytes pass each link */
    t = MAX (t, (op == COLL_ALL_REDUCE ? 2.0 : 1.0) * (n - 1) / n * bytes /
                    s->software.dp_rate_max_Bps);
  return t;
}

gboolean
compile_bucket_full (const Compile *c, double params)
{
  const SoftwareProfile *sw = &c->s->software;
  return sw->dp_bucket_bytes > 0 && params * reduce_bytes (c) >= sw->dp_bucket_bytes;
}

/* Reductions under way while the last backward goes on: gradients that fill the bucket at hand, and
 * the time that the full ones still need. */
typedef struct {
  StageParams filled;
  SimTime queue;
  SimTime device, host; /* since the pass began, where they are in step */
} Beside;

static void
piece_beside (Compile *c, Beside *b, PassCost *pc, StageParams params)
{
  if (c->s->software.dp_overlap_slowdown > 1)
    compile_slow_beside (c, pc, b->queue);
  if (in_step (c)) { /* as in add_issued */
    SimTime wait = MAX (0, b->host + pc->host - (b->device + pc->total));
    pc->part[PART_HOST] += wait;
    pc->total += wait;
    b->device += pc->total;
    b->host += pc->host;
  }
  if (c->s->software.dp_overlap_slowdown <= 1)
    return;
  b->queue = MAX (0, b->queue - pc->total);
  b->filled.dense += params.dense;
  b->filled.experts += params.experts;
  if (compile_bucket_full (c, b->filled.dense)) {
    b->queue += compile_ticks (c, compile_reduce_s (c, &c->p.groups.dp, b->filled.dense));
    b->filled.dense = 0;
  }
  if (compile_bucket_full (c, b->filled.experts)) {
    b->queue += compile_ticks (c, compile_reduce_s (c, &c->p.groups.edp, b->filled.experts));
    b->filled.experts = 0;
  }
}

/* All multi-token modules of a stage as one piece; returns its cost. */
static guint32
mtp_piece (Compile *c, guint stage, LayerPass pass, StageParams *params)
{
  const ModelSpec *m = &c->s->model;
  PassCost sum;
  RankParams r = model_rank_mtp (m, c->s->parallel.tp, c->s->parallel.ep, spec_expert_tp (c->s));
  double part = (double)stage_mtp (c->sl, m, stage) / (double)m->mtp_layers;
  compile_mtp_cost (c, stage, pass, &sum);
  if (c->s->train.adapter_rank == 0)
    *params = (StageParams){(double)r.dense * part, (double)r.experts * part};
  return program_cost_parts (c->b, sum.part);
}

/* The last backward of a stage in pieces: head, layers last to first, embedding; one cost each. */
static void
stage_pieces (Compile *c, guint stage, LayerPass pass)
{
  StageCost *sc = &c->stage[stage];
  guint32 *costs = g_new (guint32, c->sl->n_layers[stage] + 3);
  StageParams *params = g_new0 (StageParams, c->sl->n_layers[stage] + 3);
  double trained = c->s->train.adapter_rank > 0 ? 0 : 1; /* with adapters tables are frozen */
  PassCost more;
  Beside beside = {.queue = 0};
  guint n = 0;
  if (pass != LP_WEIGHT_GRAD)
    beside.host = compile_ticks (c, c->s->software.host_microbatch_us * 1e-6);
  if (stage + 1 == c->sl->n_stages) {
    compile_head_cost (c, pass, &more);
    params[n].dense =
        c->s->model.tied_embeddings && c->s->model.graph == NULL && c->sl->n_stages == 1
            ? 0
            : trained * stage_output_params (c->s);
    piece_beside (c, &beside, &more, params[n]);
    costs[n++] = program_cost_parts (c->b, more.part);
  }
  if (stage_mtp (c->sl, &c->s->model, stage) > 0) {
    costs[n] = mtp_piece (c, stage, pass, &params[n]);
    n++;
  }
  for (gint64 i = c->sl->n_layers[stage]; i-- > 0;) {
    gint64 layer = c->sl->first_layer[stage] + i;
    PassCost lc = *compile_layer_cost (c, layer, pass);
    if (n == 0)
      compile_host_gap (c, &lc);
    params[n] = compile_layer_trainable (c, layer);
    piece_beside (c, &beside, &lc, params[n]);
    costs[n++] = program_cost_parts (c->b, lc.part);
  }
  if (stage == 0) {
    embedding_pass_cost (&c->p, pass, &more);
    params[n].dense = trained * stage_input_params (c->s);
    piece_beside (c, &beside, &more, params[n]);
    costs[n++] = program_cost_parts (c->b, more.part);
  }
  if (n == 0) { /* a stage without layers: only passes on what comes */
    memset (&more, 0, sizeof more);
    compile_host_gap (c, &more);
    costs[n++] = program_cost_parts (c->b, more.part);
  }
  sc->n_pieces = n;
  if (pass == LP_BACKWARD)
    sc->piece_cost = costs;
  else
    sc->piece_cost_w = costs;
  g_free (sc->piece_params);
  sc->piece_params = params;
}

/* states: hidden states of prediction modules that travel beside the model's own. */
static guint32
transfer_cost (Compile *c, gint64 states)
{
  const Spec *s = c->s;
  const SoftwareProfile *sw = &s->software;
  double bytes = (double)c->p.tokens * (double)s->model.hidden * sw->pp_elem_bytes;
  gboolean divided = s->parallel.sequence_parallel || sw->pp_scatter_gather;
  double t;
  bytes *= (double)(1 + states);
  if (divided)
    bytes /= (double)s->parallel.tp;
  if (c->times != NULL && c->times->p2p_s >= 0)
    t = c->times->p2p_s;
  else
    t = p2p_group_time_s (s->fabric, &c->p.groups.pp, c->p.groups.pp_same_node,
                          c->p.groups.pp_sharers, bytes);
  if (c->times == NULL && !s->parallel.sequence_parallel && sw->pp_scatter_gather)
    t += coll_time_s (s->fabric, COLL_ALL_GATHER, &c->p.groups.tp, bytes * (double)s->parallel.tp,
                      NULL);
  return program_cost (c->b, PART_PP_COMM, compile_ticks (c, t));
}

static void
transfer_costs (Compile *c)
{
  c->send_cost = g_new (guint32, c->sl->n_stages);
  for (guint st = 0; st < c->sl->n_stages; st++) {
    gint64 before = st > 0 ? stage_mtp_before (c->sl, st) : 0;
    gint64 states = stage_mtp_before (c->sl, st + 1);
    c->send_cost[st] =
        st > 0 && before == states ? c->send_cost[st - 1] : transfer_cost (c, states);
  }
}

gboolean
compile_like_before (const Compile *c, guint stage)
{
  const Spec *s = c->s;
  if (stage < 2 || stage + 1 >= c->sl->n_stages ||
      c->sl->n_layers[stage] != c->sl->n_layers[stage - 1])
    return FALSE;
  gint64 a = c->sl->first_layer[stage - 1], b = c->sl->first_layer[stage];
  for (gint64 i = 0; i < c->sl->n_layers[stage]; i++)
    if (compile_layer_kind (s, a + i) != compile_layer_kind (s, b + i))
      return FALSE;
  return TRUE;
}

void
compile_costs (Compile *c)
{
  gboolean kinds[4] = {FALSE};
  for (guint i = 0; i < c->t->first[c->t->ranks]; i++)
    kinds[c->t->actions[i].kind] = TRUE;
  static const LayerPass pass_of[4] = {LP_FORWARD, LP_BACKWARD, LP_INPUT_GRAD, LP_WEIGHT_GRAD};
  c->stage = g_new0 (StageCost, c->sl->n_stages);
  c->zero_cost = program_cost (c->b, PART_OTHER, 0);
  for (guint s = 0; s < c->sl->n_stages; s++) {
    gboolean same = compile_like_before (c, s);
    for (guint k = 0; k < 4; k++) {
      if (!kinds[k])
        continue;
      LayerPass pass = pass_of[k];
      if (same) {
        c->stage[s].pass[pass] = c->stage[s - 1].pass[pass];
        c->stage[s].cost[pass] = c->stage[s - 1].cost[pass];
      } else {
        stage_pass (c, s, pass);
        c->stage[s].cost[pass] = program_cost_parts (c->b, c->stage[s].pass[pass].part);
      }
      const PassCost *pc = &c->stage[s].pass[pass];
      c->overflow |= pc->overflow;
      if (pc->host > pc->total)
        c->host_bound = TRUE;
      if (c->split && (pass == LP_BACKWARD || pass == LP_WEIGHT_GRAD))
        stage_pieces (c, s, pass);
    }
  }
  if (c->fsdp != NULL)
    fsdp_costs (c, kinds);
  transfer_costs (c);
}

void
compile_costs_clear (Compile *c)
{
  for (guint s = 0; c->stage != NULL && s < c->sl->n_stages; s++) {
    g_free (c->stage[s].piece_cost);
    g_free (c->stage[s].piece_cost_w);
    g_free (c->stage[s].piece_params);
  }
  g_clear_pointer (&c->stage, g_free);
  g_clear_pointer (&c->send_cost, g_free);
  g_clear_pointer (&c->fsdp, fsdp_free);
  g_clear_pointer (&c->paired, g_free);
  g_clear_pointer (&c->pair_cost, g_hash_table_unref);
}
