#include "compile.h"

#include <string.h>

#include "adapter.h"
#include "compile_fsdp.h"
#include "compress.h"
#include "offload.h"
#include "gpu_profile.h"

static const char *const stream_names[] = {"compute",       "to next", "to previous",
                                           "data parallel", "host",    "data parallel, outer",
                                           "processors",    NULL};

/* ---- where things are: counts on the senders' streams, positions on the receivers' ---- */

static StageCost *
stage_cost (const Compile *c, guint stage)
{
  return &c->stage[sched_part (c->t, stage)];
}

static gboolean
completes_gradients (const SchedAction *a)
{
  return a->kind == SCHED_B || a->kind == SCHED_W;
}

/* Steps forward round the ring of n ranks; no division: this runs for every action. */
static inline guint
ring_distance (guint from, guint to, guint n)
{
  return to >= from ? to - from : to + n - from;
}

/* Does the action complete the gradients of its stage? */
static gboolean
is_last_backward (const Compile *c, const SchedAction *a, guint row_index)
{
  return completes_gradients (a) && c->last_back[a->stage] == row_index;
}

/* Is its backward cut into pieces, to reduce gradients beside it? */
static gboolean
is_cut (const Compile *c, const SchedAction *a, guint row_index)
{
  return c->split && completes_gradients (a) && (c->every || c->last_back[a->stage] == row_index);
}

static guint
compute_ops_of (const Compile *c, const SchedAction *a, guint row_index)
{
  guint n = 1;
  if (c->fsdp != NULL)
    n = fsdp_compute_ops (c, a, is_last_backward (c, a, row_index));
  else if (is_cut (c, a, row_index))
    n = stage_cost (c, a->stage)->n_pieces;
  return n + (c->host_bound ? 1 : 0);
}

static void
find_last_backward (Compile *c)
{
  c->last_back = g_new (guint32, c->t->stages);
  c->begun = g_new0 (guint8, c->t->stages);
  for (guint r = 0; r < c->t->ranks; r++)
    for (guint32 i = c->t->first[r]; i < c->t->first[r + 1]; i++)
      if (completes_gradients (&c->t->actions[i]))
        c->last_back[c->t->actions[i].stage] = i;
}

gboolean
compile_has_dp (const Compile *c)
{
  return c->p.groups.dp.ranks > 1;
}

gboolean
compile_gathers_params (const Compile *c)
{
  return compile_has_dp (c) && c->s->parallel.zero_stage >= 1 && c->fsdp == NULL;
}

/* Compute operations that put_begin adds before the first action. */
static guint32
begin_ops (const Compile *c)
{
  return (guint32)(c->s->software.data_step_us > 0) +
         (guint32)(compile_gathers_params (c) && c->s->software.dp_overlap_param);
}

static void
count_positions (Compile *c)
{
  const SchedTable *t = c->t;
  gsize n = (gsize)t->stages * t->microbatches;
  c->act_count = g_new0 (guint32, n);
  c->grad_count = g_new0 (guint32, n);
  if (c->rendezvous) { /* nobody else asks */
    c->pos_f = g_new0 (guint32, n);
    c->pos_b = g_new0 (guint32, n);
  }
  for (guint r = 0; r < t->ranks; r++) {
    guint32 sent[2] = {0, 0}, pos = c->rendezvous ? begin_ops (c) : 0;
    for (guint32 i = t->first[r]; i < t->first[r + 1]; i++) {
      const SchedAction *a = &t->actions[i];
      gsize k = compile_at (c, a->stage, a->microbatch);
      if (a->kind == SCHED_F) {
        if (c->rendezvous)
          c->pos_f[k] = pos;
        if (compile_feeds (c, a) && t->stage_rank[a->stage + 1] != r)
          c->act_count[k] =
              ++sent[compile_send_stream (c, r, t->stage_rank[a->stage + 1], FALSE) == STREAM_PREV];
      } else if (a->kind != SCHED_W) {
        if (c->rendezvous)
          c->pos_b[k] = pos;
        if (compile_feeds (c, a) && t->stage_rank[a->stage - 1] != r)
          c->grad_count[k] =
              ++sent[compile_send_stream (c, r, t->stage_rank[a->stage - 1], TRUE) == STREAM_PREV];
      }
      if (c->rendezvous)
        pos += compute_ops_of (c, a, i);
    }
  }
}

/* Peers are offsets on the ring of ranks: +1 and -1 for all that the generators make, others where
 * a table from a file places its stages otherwise. */
static void
find_peers (Compile *c)
{
  const SchedTable *t = c->t;
  guint n = t->ranks;
  c->slot = g_new (guint32, n);
  for (guint i = 0; i < n; i++)
    c->slot[i] = G_MAXUINT32;
  for (guint s = 0; s + 1 < t->stages; s++) {
    guint from = t->stage_rank[s], to = t->stage_rank[s + 1];
    if (from == to || sched_part (t, s + 1) == 0)
      continue;
    guint32 *ahead = &c->slot[ring_distance (from, to, n)],
            *back = &c->slot[ring_distance (to, from, n)];
    if (*ahead == G_MAXUINT32)
      *ahead = c->n_peers++;
    if (*back == G_MAXUINT32)
      *back = c->n_peers++;
  }
}

static gint
peer_slot (const Compile *c, guint rank, guint to)
{
  guint n = c->t->ranks;
  return (gint)c->slot[ring_distance (rank, to, n)];
}

/* ---- one row ---- */

static void
wait_for_input (Row *w, const SchedAction *a)
{
  const Compile *c = w->c;
  const SchedTable *t = c->t;
  gboolean forward = a->kind == SCHED_F;
  if (!compile_is_fed (c, a))
    return;
  guint from = t->stage_rank[forward ? a->stage - 1 : a->stage + 1];
  if (from == w->rank)
    return;
  gsize k = compile_at (c, forward ? a->stage - 1u : a->stage + 1u, a->microbatch);
  guint stream = compile_send_stream (c, from, w->rank, !forward);
  program_wait (c->b, STREAM_COMPUTE, peer_slot (c, w->rank, from), stream,
                forward ? c->act_count[k] : c->grad_count[k]);
}

void
compile_send (Row *w, const SchedAction *a)
{
  Compile *c = w->c;
  const SchedTable *t = c->t;
  gboolean forward = a->kind == SCHED_F;
  if (!compile_feeds (c, a))
    return;
  guint to = t->stage_rank[forward ? a->stage + 1 : a->stage - 1];
  if (to == w->rank)
    return;
  guint stream = compile_send_stream (c, w->rank, to, !forward);
  guint part = sched_part (t, a->stage);
  program_op (c->b, stream, OP_SEND, c->send_cost[forward ? part : part - 1],
              OP_TAG (forward ? TAG_SEND_ACT : TAG_SEND_GRAD, a->stage, a->microbatch));
  program_wait (c->b, stream, PEER_SELF, STREAM_COMPUTE, program_count (c->b, STREAM_COMPUTE));
  if (c->rendezvous) { /* the receiver posts it after the operation before the consumer */
    gsize k = compile_at (c, forward ? a->stage + 1u : a->stage - 1u, a->microbatch);
    program_wait (c->b, stream, peer_slot (c, w->rank, to), STREAM_COMPUTE,
                  forward ? c->pos_f[k] : c->pos_b[k]);
  }
  if (stream == STREAM_NEXT)
    w->sends_next++;
  else
    w->sends_prev++;
}

static LayerPass
pass_of (const SchedAction *a)
{
  static const LayerPass pass[] = {LP_FORWARD, LP_BACKWARD, LP_INPUT_GRAD, LP_WEIGHT_GRAD};
  return pass[a->kind];
}

static guint
tag_of (const SchedAction *a)
{
  static const OpTag tag[] = {TAG_FORWARD, TAG_BACKWARD, TAG_INPUT_GRAD, TAG_WEIGHT_GRAD};
  return tag[a->kind];
}

guint
compile_slot_of (const Compile *c, const CollGroup *group)
{
  return group == &c->p.groups.edp ? COMPILE_SLOT_EDP : COMPILE_SLOT_DP;
}

/* A piece of compute: in lockstep with the ranks that share its layers. */
void
compile_compute (Compile *c, guint32 cost, guint32 tag)
{
  program_op (c->b, STREAM_COMPUTE, OP_COMPUTE, cost, tag);
  program_group (c->b, STREAM_COMPUTE, COMPILE_SLOT_MODEL);
}

/* Reduced gradients to the host, where the optimizer is. */
void
compile_put_offload (Compile *c, const CollGroup *group, double params)
{
  gboolean divided = c->s->parallel.zero_stage >= 1 || c->fsdp != NULL;
  if (!offload_optimizer (c->s) || c->times != NULL || !(params > 0))
    return;
  double t = offload_gradients_s (c->s, params / (divided ? (double)group->ranks : 1.0));
  program_op (c->b, STREAM_OUTER, OP_COLL,
              program_cost (c->b, PART_OPTIMIZER, compile_ticks (c, t)),
              OP_TAG (TAG_OFFLOAD, 0, 0));
  program_wait (c->b, STREAM_OUTER, PEER_SELF, STREAM_COMPUTE,
                program_count (c->b, STREAM_COMPUTE));
  program_wait (c->b, STREAM_OUTER, PEER_SELF, STREAM_DP, program_count (c->b, STREAM_DP));
}

static void
put_reduce_over (Compile *c, const CollGroup *group, double params)
{
  if (group->ranks <= 1 || !(params > 0)) {
    compile_put_offload (c, group, params);
    return;
  }
  double t = compile_reduce_s (c, group, params);
  guint32 cost = program_cost (c->b, PART_DP_COMM, compile_ticks (c, t));
  program_op (c->b, STREAM_DP, OP_COLL, cost, OP_TAG (TAG_GRAD_REDUCE, 0, 0));
  program_group (c->b, STREAM_DP, compile_slot_of (c, group));
  program_wait (c->b, STREAM_DP, PEER_SELF, STREAM_COMPUTE, program_count (c->b, STREAM_COMPUTE));
  compile_put_offload (c, group, params);
}

/* Experts are reduced over the ranks that hold the same ones, all else over dp*cp. */
void
compile_put_reduce (Compile *c, StageParams p)
{
  put_reduce_over (c, &c->p.groups.dp, p.dense);
  put_reduce_over (c, &c->p.groups.edp, p.experts);
}

/* The last backward of a stage, layer by layer; a bucket of gradients is reduced as it fills. */
static void
put_pieces (Row *w, const SchedAction *a)
{
  Compile *c = w->c;
  StageCost *sc = stage_cost (c, a->stage);
  const guint32 *costs = a->kind == SCHED_B ? sc->piece_cost : sc->piece_cost_w;
  StageParams filled = {0, 0};
  for (guint i = 0; i < sc->n_pieces; i++) {
    if (i > 0)
      compile_compute (c, costs[i], OP_TAG (tag_of (a), a->stage, a->microbatch));
    filled.dense += sc->piece_params[i].dense;
    filled.experts += sc->piece_params[i].experts;
    gboolean end = i + 1 == sc->n_pieces;
    if (compile_bucket_full (c, filled.dense) || end) {
      put_reduce_over (c, &c->p.groups.dp, filled.dense);
      filled.dense = 0;
    }
    if (compile_bucket_full (c, filled.experts) || end) {
      put_reduce_over (c, &c->p.groups.edp, filled.experts);
      filled.experts = 0;
    }
  }
}

static void
put_host (Row *w, const SchedAction *a, guint32 index)
{
  Compile *c = w->c;
  if (!c->host_bound)
    return;
  const StageCost *sc = stage_cost (c, a->stage);
  guint32 cost = sc->host[pass_of (a)];
  if (c->paired != NULL && c->paired[index] != 0)
    cost = program_cost (c->b, PART_HOST,
                         sc->pass[pass_of (a)].host +
                             compile_pair_host (c, sched_part (c->t, a->stage)));
  program_op (c->b, STREAM_HOST, OP_HOST, cost, OP_TAG (TAG_HOST, a->stage, a->microbatch));
  if (c->s->software.p2p_sync &&
      c->t->ranks > 1) /* the host waits for the device before it goes on */
    program_wait (c->b, STREAM_HOST, PEER_SELF, STREAM_COMPUTE,
                  program_count (c->b, STREAM_COMPUTE));
}

void
compile_action (Row *w, const SchedAction *a, guint32 index)
{
  Compile *c = w->c;
  gboolean pieces = c->fsdp == NULL && is_cut (c, a, index);
  const StageCost *sc = stage_cost (c, a->stage);
  guint32 cost = sc->cost[pass_of (a)];
  if (c->paired != NULL && c->paired[index] != 0) {
    guint other = sched_part (c->t, c->t->actions[c->paired[index] - 1].stage);
    guint own = sched_part (c->t, a->stage);
    gboolean forward = a->kind == SCHED_F;
    cost = compile_pair_cost (c, forward ? own : other, forward ? other : own, forward);
  }
  if (c->fsdp != NULL)
    cost = fsdp_begin (c, a);
  else if (pieces)
    cost = (a->kind == SCHED_B ? sc->piece_cost : sc->piece_cost_w)[0];
  put_host (w, a, index);
  compile_compute (c, cost, OP_TAG (tag_of (a), a->stage, a->microbatch));
  wait_for_input (w, a);
  compile_wait_params (w, a);
  if (!c->s->software.pp_overlap) { /* the transfer before blocks the stream */
    if (w->waited_next != w->sends_next)
      program_wait (c->b, STREAM_COMPUTE, PEER_SELF, STREAM_NEXT, w->sends_next);
    if (w->waited_prev != w->sends_prev)
      program_wait (c->b, STREAM_COMPUTE, PEER_SELF, STREAM_PREV, w->sends_prev);
    w->waited_next = w->sends_next;
    w->waited_prev = w->sends_prev;
  }
  if (c->host_bound)
    program_wait (c->b, STREAM_COMPUTE, PEER_SELF, STREAM_HOST, w->actions);
  if (c->fsdp != NULL)
    fsdp_rest (c, a, OP_TAG (tag_of (a), a->stage, a->microbatch), is_last_backward (c, a, index));
  else if (pieces)
    put_pieces (w, a);
  w->actions++;
  if (c->host_bound) { /* the device cannot end before the host has issued the last kernel */
    program_op (c->b, STREAM_COMPUTE, OP_MARK, c->zero_cost,
                OP_TAG (TAG_HOST, a->stage, a->microbatch));
    program_wait (c->b, STREAM_COMPUTE, PEER_SELF, STREAM_HOST, w->actions);
  }
}

/* Slots in which the two holders of a stage of a model fed from both ends meet. */
static const guint mirrored_slots[] = {COMPILE_SLOT_DP, COMPILE_SLOT_EDP, COMPILE_SLOT_SHARD};

static void
link_mirrored (ProgramSet *set, guint n, guint32 group)
{
  for (guint k = 0; k < G_N_ELEMENTS (mirrored_slots); k++)
    for (guint r = 0; r < n / 2; r++, group++) {
      set->group_size[group] = 2;
      set->groups[r * COMPILE_N_SLOTS + mirrored_slots[k]] = group;
      set->groups[(n - 1 - r) * COMPILE_N_SLOTS + mirrored_slots[k]] = group;
    }
}

ProgramSet *
compile_link (Compile *c)
{
  guint n = c->t->ranks;
  gboolean mirrored = c->t->pipelines == 2 && n % 2 == 0;
  guint first = c->t->stage_rank[0], last = c->t->stage_rank[sched_depth (c->t) - 1];
  gboolean embed = compile_shares_table (c->s) && first != last;
  ProgramSet *set = program_builder_finish (c->b, n, c->n_peers, COMPILE_N_SLOTS,
                                            (embed ? 2 : 1) + (mirrored ? 3 * (n / 2) : 0));
  guint32 weight = (guint32)(c->s->cluster.gpus / n);
  set->group_size[0] = n;
  for (guint r = 0; r < n; r++) {
    for (guint offset = 0; offset < n; offset++)
      if (c->slot[offset] != G_MAXUINT32)
        set->peers[r * c->n_peers + c->slot[offset]] = (r + offset) % n;
    set->groups[r * COMPILE_N_SLOTS + COMPILE_SLOT_STEP] = 0;
    set->rank_weight[r] = weight;
  }
  if (embed) {
    set->group_size[1] = 2;
    set->groups[first * COMPILE_N_SLOTS + COMPILE_SLOT_EMBED] = 1;
    set->groups[last * COMPILE_N_SLOTS + COMPILE_SLOT_EMBED] = 1;
  }
  if (mirrored)
    link_mirrored (set, n, embed ? 2 : 1);
  return set;
}

/* Transfers that block both ends are for schedules with one stage a rank and whole backwards. The
 * others (interleaved, zero bubble, both directions) were made for sends that are buffered, and
 * most of them would wait in a circle without. */
static gboolean
may_rendezvous (const SchedTable *t)
{
  if (t->stages != t->ranks)
    return FALSE;
  for (guint32 i = 0; i < t->first[t->ranks]; i++)
    if (t->actions[i].kind == SCHED_I || t->actions[i].kind == SCHED_W)
      return FALSE;
  return TRUE;
}

/* The copies of a model that is fed from both ends reduce their gradients together: as many times
 * the ranks, on the nodes of another stage. */
static void
join_group (const Compile *c, CollGroup *g)
{
  int copies = (int)c->t->pipelines;
  g->ranks *= copies;
  if (c->p.groups.pp_same_node) {
    g->ranks_per_node *= copies;
    return;
  }
  g->nodes *= copies;
  g->sharers = (int)MAX (1, spec_domain_gpus (c->s) / g->ranks_per_node);
}

static void
join_copies (Compile *c)
{
  if (c->t->pipelines == 1)
    return;
  join_group (c, &c->p.groups.dp);
  join_group (c, &c->p.groups.edp);
  join_group (c, &c->p.groups.shard);
}

/* Once a stage, not once an action. */
static void
host_costs (Compile *c)
{
  for (guint st = 0; c->host_bound && st < c->sl->n_stages; st++) {
    StageCost *sc = &c->stage[st];
    for (guint p = 0; p < LP_COUNT; p++)
      sc->host[p] = st > 0 && sc->pass[p].host == sc[-1].pass[p].host
                        ? sc[-1].host[p]
                        : program_cost (c->b, PART_HOST, sc->pass[p].host);
  }
}

void
compile_prepare (Compile *c)
{
  pricing_init (&c->p, c->s);
  join_copies (c);
  c->stream_names = stream_names;
  c->barrier = compile_has_barrier (c->s, c->t);
  c->b = program_builder_new (STREAM_COUNT, stream_names);
  if (spec_is_fsdp (c->s) && c->times == NULL)
    fsdp_init (c);
  c->split = (compile_has_dp (c) || offload_optimizer (c->s)) && c->s->software.dp_overlap_grad &&
             c->times == NULL && c->fsdp == NULL && c->s->parallel.compression != COMPRESS_ONEBIT;
  c->every = c->s->parallel.zero_stage == 2 && c->s->software.dp_reduce_every;
  c->rendezvous = !c->s->software.pp_overlap && may_rendezvous (c->t);
  compile_costs (c);
  find_peers (c);
  c->scattered = c->n_peers > PROGRAM_MAX_PEERS;
  c->n_peers = MIN (c->n_peers, PROGRAM_MAX_PEERS);
  find_last_backward (c);
  compile_find_pairs (c);
  host_costs (c);
  count_positions (c);
}

void
compile_release (Compile *c)
{
  compile_costs_clear (c);
  program_builder_free (c->b);
  g_free (c->act_count);
  g_free (c->grad_count);
  g_free (c->pos_f);
  g_free (c->pos_b);
  g_free (c->last_back);
  g_free (c->begun);
  g_free (c->slot);
}

void
compile_row (Row *w)
{
  const SchedTable *t = w->c->t;
  compile_begin (w);
  g_assert (program_count (w->c->b, STREAM_COMPUTE) == begin_ops (w->c));
  for (guint32 i = t->first[w->rank]; i < t->first[w->rank + 1]; i++) {
    compile_action (w, &t->actions[i], i);
    compile_send (w, &t->actions[i]);
  }
}

gboolean
compile_check (const Compile *c, gboolean overflown, GError **error)
{
  if (c->overflow)
    g_set_error (error, PROGRAM_ERROR, PROGRAM_ERROR_OVERFLOW,
                 "the step has an operation of days: the clock of a step ends after 106 days");
  else if (overflown)
    g_set_error (error, PROGRAM_ERROR, PROGRAM_ERROR_OVERFLOW,
                 "a rank has more than %u operations on one stream", PROGRAM_MAX_COUNT);
  else if (c->scattered)
    g_set_error (error, PROGRAM_ERROR, PROGRAM_ERROR_INVALID,
                 "the stages lie too scattered: a rank would have more than %d distances to its "
                 "neighbours",
                 PROGRAM_MAX_PEERS);
  else
    return TRUE;
  return FALSE;
}

ProgramSet *
compile_step (const Spec *s, const SchedTable *t, const StageLayers *sl, const StageTimes *times,
              GError **error)
{
  Compile c = {.s = s, .t = t, .sl = sl, .times = times};
  compile_prepare (&c);
  for (guint r = 0; r < t->ranks && !c.scattered; r++) {
    Row w = {.c = &c, .rank = r};
    program_begin (c.b);
    compile_row (&w);
    compile_end (&w);
  }
  gboolean overflown = program_builder_overflown (c.b);
  ProgramSet *set = c.scattered ? NULL : compile_link (&c);
  compile_release (&c);
  if (!compile_check (&c, overflown, error))
    g_clear_pointer (&set, program_set_free);
  return set;
}
