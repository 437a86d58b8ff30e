/* Fully sharded data parallelism: parameters live in shards and are gathered unit by unit.
 *
 * A unit is a layer (or a few); embedding and head of a stage make the root unit. Before a unit
 * runs, forward and backward, its parameters are gathered over the shard group; prefetch depth d
 * lets the gather of a unit start when the unit d + 1 places before it is done, so that the memory
 * of d + 1 units is enough. Gradients are reduce-scattered as soon as backward has left the unit,
 * in every micro-batch or in the last one alone. Gathers and reductions share one in-order stream,
 * as the calls of one NCCL communicator do; in the order of issue of PyTorch's FSDP (arXiv
 * 2304.11277): the next gather goes before the reduction of the unit at work. With hybrid sharding
 * the shards are then all-reduced over the replicas on a stream of their own. What is exposed
 * follows from the waits.
 */
#include "compile_fsdp.h"

#include <string.h>

typedef struct {
  StageParams params;  /* of one rank before sharding */
  StageParams trained; /* of them: whose gradients are reduced */
  SimTime gather[2];   /* forward, backward */
  SimTime reduce, replicate;
  guint32 gather_cost[2], reduce_cost, replicate_cost;
  guint32 held; /* 0: sharded; else the count of its gather on STREAM_DP, plus one */
  gboolean root;
  guint last_piece; /* backward leaves the unit after this piece */
} Unit;

typedef enum { PIECE_EMBEDDING, PIECE_LAYERS, PIECE_MTP, PIECE_HEAD } PieceKind;

typedef struct {
  PieceKind kind;
  guint unit;
  gint64 first, n; /* layers */
  guint32 cost[LP_COUNT];
} Piece;

typedef struct {
  guint n_units, n_pieces;
  Unit *unit;
  Piece *piece; /* in the order of forward */
} StageUnits;

struct Fsdp {
  guint n_stages, depth;
  gboolean reshard, every, barrier;
  gboolean overlap; /* reductions run beside the backward of the next unit */
  guint32 *blocked; /* per rank: operations of STREAM_DP that the next piece must wait for */
  StageUnits *stage;
};

/* ---- what there is ---- */

static guint
add_unit (StageUnits *su, gboolean root)
{
  su->unit[su->n_units] = (Unit){.root = root};
  return su->n_units++;
}

static void
add_piece (StageUnits *su, PieceKind kind, guint unit, gint64 first, gint64 n)
{
  su->piece[su->n_pieces++] = (Piece){.kind = kind, .unit = unit, .first = first, .n = n};
}

static void
add_params (StageParams *sum, StageParams p)
{
  sum->dense += p.dense;
  sum->experts += p.experts;
}

/* Tables and modules: frozen beside adapters. */
static void
add_both (const Compile *c, Unit *u, StageParams p)
{
  add_params (&u->params, p);
  if (c->s->train.adapter_rank == 0)
    add_params (&u->trained, p);
}

static void
stage_units (Compile *c, guint stage, StageUnits *su)
{
  const SoftwareProfile *sw = &c->s->software;
  const ModelSpec *m = &c->s->model;
  gint64 n = c->sl->n_layers[stage], per = MAX (1, (gint64)sw->fsdp_unit_layers);
  gboolean first = stage == 0, last = stage + 1 == c->sl->n_stages;
  guint root = 0;
  su->unit = g_new0 (Unit, n + 3);
  su->piece = g_new0 (Piece, n + 3);
  if (first) {
    root = add_unit (su, sw->fsdp_root_held);
    add_piece (su, PIECE_EMBEDDING, root, 0, 0);
    add_both (c, &su->unit[root], (StageParams){stage_input_params (c->s), 0});
  }
  for (gint64 i = 0; i < n; i += per) {
    guint u = add_unit (su, FALSE);
    gint64 k = MIN (per, n - i);
    add_piece (su, PIECE_LAYERS, u, c->sl->first_layer[stage] + i, k);
    for (gint64 l = 0; l < k; l++) {
      add_params (&su->unit[u].params, compile_layer_params (c, c->sl->first_layer[stage] + i + l));
      add_params (&su->unit[u].trained,
                  compile_layer_trainable (c, c->sl->first_layer[stage] + i + l));
    }
  }
  gint64 modules = stage_mtp (c->sl, m, stage);
  if (modules > 0) {
    RankParams r = model_rank_mtp (m, c->s->parallel.tp, c->s->parallel.ep, spec_expert_tp (c->s));
    guint u = add_unit (su, FALSE);
    add_piece (su, PIECE_MTP, u, 0, 0);
    double part = (double)modules / (double)m->mtp_layers;
    add_both (c, &su->unit[u], (StageParams){(double)r.dense * part, (double)r.experts * part});
  }
  if (last) {
    gboolean shared = first && m->tied_embeddings && m->graph == NULL;
    if (!first || !(sw->fsdp_root_held || shared))
      root = add_unit (su, sw->fsdp_root_held);
    add_piece (su, PIECE_HEAD, root, 0, 0);
    if (!shared)
      add_both (c, &su->unit[root], (StageParams){stage_output_params (c->s), 0});
  }
  if (su->n_pieces == 0) /* a stage without layers: only passes on what comes */
    add_piece (su, PIECE_LAYERS, add_unit (su, FALSE), 0, 0);
  for (guint i = su->n_pieces; i-- > 0;)
    su->unit[su->piece[i].unit].last_piece = i;
}

/* ---- what it costs ---- */

static double
sharded_s (const Compile *c, CollOp op, const CollGroup *g, double params, double elem, double copy)
{
  const Spec *s = c->s;
  if (params <= 0)
    return 0;
  return coll_time_s (s->fabric, op, g, params * elem, NULL) / s->software.fsdp_net_efficiency +
         (copy > 0 ? gpu_memory_s (s->gpu, MEMK_STREAM, params * copy) : 0);
}

/* A unit's dense parameters over one group and its experts over theirs. */
static SimTime
both (Compile *c, CollOp op, const CollGroup *dense, const StageParams *p, double elem, double copy)
{
  return compile_ticks (c, sharded_s (c, op, dense, p->dense, elem, copy) +
                               sharded_s (c, op, compile_expert_shard (c), p->experts, elem, copy));
}

static void
unit_costs (Compile *c, Unit *u)
{
  const SoftwareProfile *sw = &c->s->software;
  const RankGroups *g = &c->p.groups;
  double ge = compile_gather_bytes (c->s), re = sw->dp_reduce_bytes;
  const CollGroup *back = c->s->parallel.hpz_size > 0 ? &g->hpz : &g->shard;
  double trained = u->trained.dense + u->trained.experts;
  u->gather[0] = both (c, COLL_ALL_GATHER, &g->shard, &u->params, ge, sw->fsdp_gather_copy_bytes);
  u->gather[1] = both (c, COLL_ALL_GATHER, back, &u->params, ge, sw->fsdp_gather_copy_bytes);
  u->reduce = both (c, COLL_REDUCE_SCATTER, &g->shard, &u->trained, re, sw->fsdp_reduce_copy_bytes);
  if (g->replica.ranks > 1)
    u->replicate = compile_ticks (
        c, sharded_s (c, COLL_ALL_REDUCE, &g->replica, trained / (double)g->shard.ranks, re, 0));
  for (int i = 0; i < 2; i++)
    u->gather_cost[i] = program_cost (c->b, PART_DP_COMM, u->gather[i]);
  u->reduce_cost = program_cost (c->b, PART_DP_COMM, u->reduce);
  u->replicate_cost = program_cost (c->b, PART_DP_COMM, u->replicate);
}

static gboolean
has_grads (LayerPass pass)
{
  return pass == LP_BACKWARD || pass == LP_WEIGHT_GRAD;
}

/* Collectives in flight while piece i of a pass runs: the gather of the piece that comes next, and
 * the reduction of the one before. */
static SimTime
beside (const Fsdp *f, const StageUnits *su, LayerPass pass, guint i)
{
  gboolean forward = pass == LP_FORWARD;
  SimTime t = 0;
  gint next = (gint)i + (forward ? 1 : -1), before = (gint)i + (forward ? -1 : 1);
  if (pass != LP_WEIGHT_GRAD && f->depth > 0 && next >= 0 && next < (gint)su->n_pieces &&
      (forward || f->reshard) && !su->unit[su->piece[next].unit].root)
    t += su->unit[su->piece[next].unit].gather[!forward];
  if (has_grads (pass) && f->every && f->overlap && before >= 0 && before < (gint)su->n_pieces &&
      (gint)su->unit[su->piece[before].unit].last_piece == before)
    t += su->unit[su->piece[before].unit].reduce;
  return t;
}

static void
piece_cost (Compile *c, guint stage, StageUnits *su, guint i, LayerPass pass)
{
  Piece *p = &su->piece[i];
  PassCost pc;
  memset (&pc, 0, sizeof pc);
  if (p->kind == PIECE_EMBEDDING)
    embedding_pass_cost (&c->p, pass, &pc);
  else if (p->kind == PIECE_HEAD)
    compile_head_cost (c, pass, &pc);
  else if (p->kind == PIECE_MTP)
    compile_mtp_cost (c, stage, pass, &pc);
  for (gint64 l = 0; p->kind == PIECE_LAYERS && l < p->n; l++)
    pass_cost_add (&pc, compile_layer_cost (c, p->first + l, pass));
  if (i == (pass == LP_FORWARD ? 0 : su->n_pieces - 1))
    compile_host_gap (c, &pc);
  compile_slow_beside (c, &pc, beside (c->fsdp, su, pass, i));
  p->cost[pass] = program_cost_parts (c->b, pc.part);
}

static void
stage_host (Compile *c, guint stage, const StageUnits *su, LayerPass pass)
{
  const SoftwareProfile *sw = &c->s->software;
  double calls = pass == LP_WEIGHT_GRAD ? 0 : su->n_units;
  if (has_grads (pass))
    calls += su->n_units;
  PassCost *pc = &c->stage[stage].pass[pass];
  pc->host +=
      compile_ticks (c, 1e-6 * (calls * sw->host_comm_us + su->n_units * sw->fsdp_host_unit_us));
  if (pc->host > pc->total)
    c->host_bound = TRUE;
}

void
fsdp_init (Compile *c)
{
  const Spec *s = c->s;
  Fsdp *f = c->fsdp = g_new0 (Fsdp, 1);
  f->n_stages = c->t->stages; /* of both copies, where there are two */
  f->depth = (guint)s->software.fsdp_prefetch;
  f->reshard = spec_reshards (s);
  f->every = s->software.dp_reduce_every;
  f->overlap = s->software.dp_overlap_grad;
  f->barrier = s->software.fsdp_barrier && s->parallel.pp == 1;
  f->stage = g_new0 (StageUnits, f->n_stages);
  f->blocked = g_new0 (guint32, c->t->ranks);
}

/* Units and pieces of a stage that is like another: the same, with a state of their own. */
static void
copy_units (StageUnits *su, const StageUnits *like)
{
  *su = *like;
  su->unit = g_memdup2 (like->unit, like->n_units * sizeof (Unit));
  su->piece = g_memdup2 (like->piece, like->n_pieces * sizeof (Piece));
}

/* The stage whose units this one shares: the same part of the first copy of the model, or the one
 * before where layers and prediction modules are alike; itself when there is none. */
static guint
stage_like (const Compile *c, guint st)
{
  guint part = sched_part (c->t, st);
  if (st >= c->sl->n_stages)
    return part;
  gboolean modules = stage_mtp (c->sl, &c->s->model, st) > 0 ||
                     (st > 0 && stage_mtp (c->sl, &c->s->model, st - 1) > 0);
  return !modules && compile_like_before (c, st) ? st - 1 : st;
}

void
fsdp_costs (Compile *c, const gboolean kinds[4])
{
  static const LayerPass pass_of[4] = {LP_FORWARD, LP_BACKWARD, LP_INPUT_GRAD, LP_WEIGHT_GRAD};
  for (guint st = 0; st < c->fsdp->n_stages; st++) {
    StageUnits *su = &c->fsdp->stage[st];
    guint like = stage_like (c, st);
    if (like != st) {
      copy_units (su, &c->fsdp->stage[like]);
      for (guint k = 0; k < 4 && st < c->sl->n_stages; k++)
        if (kinds[k])
          stage_host (c, st, su, pass_of[k]);
      continue;
    }
    stage_units (c, sched_part (c->t, st), su);
    for (guint u = 0; u < su->n_units; u++)
      unit_costs (c, &su->unit[u]);
    for (guint k = 0; k < 4; k++) {
      if (!kinds[k])
        continue;
      if (st < c->sl->n_stages)
        stage_host (c, st, su, pass_of[k]);
      for (guint i = 0; i < su->n_pieces; i++)
        piece_cost (c, sched_part (c->t, st), su, i, pass_of[k]);
    }
  }
}

void
fsdp_free (Fsdp *f)
{
  for (guint i = 0; f != NULL && i < f->n_stages; i++) {
    g_free (f->stage[i].unit);
    g_free (f->stage[i].piece);
  }
  if (f != NULL) {
    g_free (f->stage);
    g_free (f->blocked);
  }
  g_free (f);
}

/* ---- one action ---- */

static gboolean
reduces (const Fsdp *f, const SchedAction *a, gboolean last)
{
  return (a->kind == SCHED_B || a->kind == SCHED_W) && (f->every || last);
}

static gboolean
ends_with_barrier (const Fsdp *f, const SchedAction *a, gboolean last)
{
  return f->barrier && reduces (f, a, last);
}

guint
fsdp_compute_ops (const Compile *c, const SchedAction *a, gboolean last)
{
  return c->fsdp->stage[a->stage].n_pieces + (ends_with_barrier (c->fsdp, a, last) ? 1u : 0u);
}

/* Piece at place k of the order in which an action goes through them. */
static guint
piece_at (const StageUnits *su, const SchedAction *a, guint k)
{
  return a->kind == SCHED_F ? k : su->n_pieces - 1 - k;
}

static void
gather (Compile *c, StageUnits *su, const SchedAction *a, guint k)
{
  Unit *u = &su->unit[su->piece[piece_at (su, a, k)].unit];
  if (a->kind == SCHED_W || u->held != 0 || k >= su->n_pieces)
    return;
  program_op (c->b, STREAM_DP, OP_COLL, u->gather_cost[a->kind != SCHED_F],
              OP_TAG (TAG_PARAM_GATHER, a->stage, a->microbatch));
  gboolean second = a->kind != SCHED_F && c->s->parallel.hpz_size > 0;
  program_group (c->b, STREAM_DP, second ? COMPILE_SLOT_HPZ : COMPILE_SLOT_SHARD);
  program_wait (c->b, STREAM_DP, PEER_SELF, STREAM_COMPUTE, program_count (c->b, STREAM_COMPUTE));
  u->held = program_count (c->b, STREAM_DP) + 1;
}

/* Gathers what may be in flight when piece k starts. */
static void
gather_ahead (Compile *c, StageUnits *su, const SchedAction *a, guint k)
{
  for (guint j = k == 0 ? 0 : k + c->fsdp->depth; j <= k + c->fsdp->depth && j < su->n_pieces; j++)
    gather (c, su, a, j);
}

static void
wait_gathered (Compile *c, const StageUnits *su, const SchedAction *a, guint k)
{
  guint32 *blocked = &c->fsdp->blocked[c->t->stage_rank[a->stage]];
  program_wait (c->b, STREAM_COMPUTE, PEER_SELF, STREAM_DP, *blocked);
  *blocked = 0;
  const Unit *u = &su->unit[su->piece[piece_at (su, a, k)].unit];
  if (a->kind != SCHED_W && u->held != 0)
    program_wait (c->b, STREAM_COMPUTE, PEER_SELF, STREAM_DP, u->held - 1);
}

static void
reduce (Compile *c, const Unit *u, const SchedAction *a)
{
  program_op (c->b, STREAM_DP, OP_COLL, u->reduce_cost,
              OP_TAG (TAG_GRAD_REDUCE, a->stage, a->microbatch));
  program_group (c->b, STREAM_DP, COMPILE_SLOT_SHARD);
  program_wait (c->b, STREAM_DP, PEER_SELF, STREAM_COMPUTE, program_count (c->b, STREAM_COMPUTE));
  compile_put_offload (c, &c->p.groups.shard, u->trained.dense + u->trained.experts);
  if (!c->fsdp->overlap)
    c->fsdp->blocked[c->t->stage_rank[a->stage]] = program_count (c->b, STREAM_DP);
  if (u->replicate == 0 || c->s->software.fsdp_replicas_last)
    return;
  program_op (c->b, STREAM_OUTER, OP_COLL, u->replicate_cost,
              OP_TAG (TAG_GRAD_REDUCE, a->stage, a->microbatch));
  program_group (c->b, STREAM_OUTER, COMPILE_SLOT_REPLICA);
  program_wait (c->b, STREAM_OUTER, PEER_SELF, STREAM_DP, program_count (c->b, STREAM_DP));
}

/* After a piece: its parameters are freed, its gradients reduced. */
static void
leave (Compile *c, StageUnits *su, const SchedAction *a, guint k, gboolean last)
{
  const Fsdp *f = c->fsdp;
  guint i = piece_at (su, a, k);
  Unit *u = &su->unit[su->piece[i].unit];
  gboolean left = a->kind == SCHED_F ? !u->root : u->last_piece == i;
  if (left && f->reshard)
    u->held = 0;
  /* kept from forward to backward, not to the next micro-batch, unless a pipeline interleaves them
   */
  if (left && !f->reshard && a->kind != SCHED_F && c->t->ranks == 1)
    u->held = 0;
  if (u->last_piece == i && reduces (f, a, last))
    reduce (c, u, a);
}

void
fsdp_row (Compile *c, guint rank)
{
  c->fsdp->blocked[rank] = 0;
  for (guint st = 0; st < c->fsdp->n_stages; st++)
    for (guint u = 0; c->t->stage_rank[st] == rank && u < c->fsdp->stage[st].n_units; u++)
      c->fsdp->stage[st].unit[u].held = 0;
}

guint32
fsdp_begin (Compile *c, const SchedAction *a)
{
  gather_ahead (c, &c->fsdp->stage[a->stage], a, 0);
  return fsdp_piece (c, a, 0);
}

guint32
fsdp_piece (const Compile *c, const SchedAction *a, guint k)
{
  static const LayerPass pass[] = {LP_FORWARD, LP_BACKWARD, LP_INPUT_GRAD, LP_WEIGHT_GRAD};
  const StageUnits *su = &c->fsdp->stage[a->stage];
  return su->piece[piece_at (su, a, k)].cost[pass[a->kind]];
}

void
fsdp_end (Compile *c, StageParams held)
{
  const Spec *s = c->s;
  const RankGroups *g = &c->p.groups;
  double params = held.dense + held.experts;
  if (!s->software.fsdp_replicas_last || g->replica.ranks <= 1)
    return;
  double t = sharded_s (c, COLL_ALL_REDUCE, &g->replica, params / (double)g->shard.ranks,
                        s->software.dp_reduce_bytes, 0);
  program_op (c->b, STREAM_OUTER, OP_COLL, program_cost (c->b, PART_DP_COMM, compile_ticks (c, t)),
              OP_TAG (TAG_GRAD_REDUCE, 0, 0));
  program_group (c->b, STREAM_OUTER, COMPILE_SLOT_REPLICA);
  program_wait (c->b, STREAM_OUTER, PEER_SELF, STREAM_DP, program_count (c->b, STREAM_DP));
}

void
fsdp_rest (Compile *c, const SchedAction *a, guint32 tag, gboolean last)
{
  StageUnits *su = &c->fsdp->stage[a->stage];
  wait_gathered (c, su, a, 0);
  leave (c, su, a, 0, last);
  for (guint k = 1; k < su->n_pieces; k++) {
    gather_ahead (c, su, a, k);
    compile_compute (c, fsdp_piece (c, a, k), tag);
    wait_gathered (c, su, a, k);
    leave (c, su, a, k, last);
  }
  if (ends_with_barrier (c->fsdp, a, last)) {
    program_op (c->b, STREAM_COMPUTE, OP_MARK, c->zero_cost, OP_TAG (TAG_GRAD_REDUCE, a->stage, 0));
    program_wait (c->b, STREAM_COMPUTE, PEER_SELF, STREAM_DP, program_count (c->b, STREAM_DP));
  }
}
