#include "memory.h"

#include "adapter.h"
#include "layout.h"
#include "outer.h"

#include <math.h>

#include "gpu_profile.h"

GQuark
memory_error_quark (void)
{
  return g_quark_from_static_string ("clustersim-memory-error");
}

static void
add (RankParams *sum, RankParams r)
{
  sum->dense += r.dense;
  sum->experts += r.experts;
}

/* Layers before those of stage in its copy of the model. */
static gint64
first_layer (const SchedTable *t, const gint64 *layers_of_stage, guint stage)
{
  gint64 first = 0;

  for (guint v = stage - sched_part (t, stage); v < stage; v++)
    first += layers_of_stage[v];
  return first;
}

/* Whether rank has that part of the model, in any copy. */
static gboolean
holds_part (const SchedTable *t, guint rank, guint part)
{
  for (guint v = part; v < t->stages; v += sched_depth (t))
    if (t->stage_rank[v] == rank)
      return TRUE;
  return FALSE;
}

/* Prediction modules of a part of the model: on the last unless the layout says otherwise. */
static gint64
modules_at (const Spec *s, const SchedTable *t, guint part)
{
  gint64 n = part + 1 == sched_depth (t) ? s->model.mtp_layers : 0;
  Layout l;

  if (s->model.mtp_layers == 0 || s->parallel.layout == NULL ||
      !layout_parse (s->parallel.layout, &l, NULL))
    return n;
  if (l.total_mtp > 0 && part < l.n_stages)
    n = l.mtp[part];
  layout_clear (&l);
  return n;
}

static gint64
rank_modules (const Spec *s, const SchedTable *t, guint rank)
{
  gint64 n = 0;

  for (guint v = 0; s->model.mtp_layers > 0 && v < t->stages; v++)
    if (t->stage_rank[v] == rank)
      n += modules_at (s, t, sched_part (t, v));
  return n;
}

RankParams
memory_rank_params (const Spec *s, const SchedTable *t, const gint64 *layers_of_stage, guint rank)
{
  const ModelSpec *m = &s->model;
  const gint64 tp = MAX (s->parallel.tp, 1), ep = MAX (s->parallel.ep, 1), etp = spec_expert_tp (s);
  const gint64 vocab = spec_padded_vocab (s);
  const gint64 width = m->embed_dim > 0 ? m->embed_dim : m->hidden;
  RankParams sum = {0, 0};

  for (guint v = 0; v < t->stages; v++) {
    if (t->stage_rank[v] != rank)
      continue;
    const gint64 from = first_layer (t, layers_of_stage, v);
    for (gint64 i = from; i < from + layers_of_stage[v]; i++)
      add (&sum, model_rank_layer (m, i, tp, ep, etp));
  }
  if (holds_part (t, rank, 0))
    sum.dense += model_rank_embedding (m, vocab, tp);
  if (holds_part (t, rank, sched_depth (t) - 1)) {
    sum.dense += model_rank_head (m, vocab, tp);
    /* the head of a tied model is a copy here */
    if (!holds_part (t, rank, 0) && m->tied_embeddings)
      sum.dense += vocab / tp * width;
  }
  const gint64 modules = rank_modules (s, t, rank);
  if (modules > 0) {
    const RankParams r = model_rank_mtp (m, tp, ep, etp);
    const gboolean tied = m->tied_embeddings && holds_part (t, rank, sched_depth (t) - 1);
    if (!holds_part (t, rank, 0) && !tied) /* so is the embedding that the modules read */
      sum.dense += vocab / tp * width;
    add (&sum,
         (RankParams){r.dense * modules / m->mtp_layers, r.experts * modules / m->mtp_layers});
  }
  return sum;
}

typedef struct {
  double dense, experts; /* ranks that hold a share each */
} Shards;

static Shards
zero_shards (const Spec *s)
{
  const ParallelSpec *p = &s->parallel;
  const double dp = (double)(MAX (p->dp, 1) * MAX (p->cp, 1));
  const double ep = (double)(MAX (p->ep, 1) * spec_expert_tp (s)), limit = (double)p->shard_size;
  Shards n = {dp, MAX (1, dp * (double)MAX (p->tp, 1) / ep)};

  /* A copy of the optimizer spans as many of the ranks that share experts as are in its group. */
  if (p->shard_size > 0 && limit < n.dense) {
    n.experts = MAX (1, n.experts * limit / n.dense);
    n.dense = limit;
  }
  return n;
}

static double
share (RankParams p, Shards n, gboolean sharded)
{
  if (!sharded)
    return (double)(p.dense + p.experts);
  return (double)p.dense / n.dense + (double)p.experts / n.experts;
}

/* fp32 training has no 2-byte copy beside the parameter, and so no master among the states. */
static void
bytes_per_param (const Spec *s, double *param, double *state)
{
  const double wide = dtype_bytes (s->train.precision);

  *param = s->software.param_bytes;
  *state = s->software.optimizer_state_bytes;
  if (wide >= 4 && *param < wide) {
    *param = wide;
    *state = MAX (0, *state - wide);
  }
}

/* Sharded parameters: units at work and fetched ahead, the root unit or, without resharding, all
 * that the rank runs; the second copy of hpZ; and one unit's gradients before they are reduced. */
static double
gathered_bytes (const Spec *s, RankParams held, double layer_params, double gather)
{
  const SoftwareProfile *sw = &s->software;
  const double all = (double)(held.dense + held.experts);
  const double unit = MIN (all, layer_params * MAX (1, sw->fsdp_unit_layers));
  const double root =
      sw->fsdp_root_held ? (double)(spec_padded_vocab (s) * s->model.hidden / s->parallel.tp) : 0;
  double b = unit * sw->dp_reduce_bytes;

  if (spec_reshards (s))
    b += MIN (all, unit * (1 + sw->fsdp_prefetch) + root) * gather;
  else
    b += all * gather;
  if (s->parallel.hpz_size > 0)
    b += all * gather / (double)s->parallel.hpz_size;
  return b;
}

/* The layers, messages and copies that are there beside the states; see memory.h. */
static double
static_buffers (const Spec *s, const SchedTable *t, RankParams held, double layer_params)
{
  const SoftwareProfile *sw = &s->software;
  const double bits = dtype_bytes (s->train.precision);
  const double gather = sw->dp_gather_bytes > 0 ? sw->dp_gather_bytes : 2;
  double b = 0;

  if (t->ranks > 1)
    b += 2 * model_hidden_bytes (s);
  if (spec_is_fsdp (s))
    b += gathered_bytes (s, held, layer_params, gather);
  else if (s->parallel.zero_stage >= 2)
    b += sw->dp_bucket_bytes;
  if (bits < 2) /* the quantised weight and its transpose, as Transformer Engine keeps them */
    b += 2 * bits * (spec_is_fsdp (s) ? layer_params : (double)(held.dense + held.experts));
  return b;
}

double
memory_workspace_bytes (const Spec *s)
{
  const SoftwareProfile *sw = &s->software;
  double b = sw->allocated_base_bytes;

  if (s->gpu != NULL) {
    const double streams = s->model.num_experts > 0 ? sw->grouped_gemm_streams : 0;
    b += sw->blas_handles *
         (sw->blas_config_bytes > 0 ? sw->blas_config_bytes : s->gpu->blas_workspace_bytes);
    b += (sw->te_workspaces + streams) * s->gpu->te_workspace_bytes;
  }
  if (sw->attn_scores_kept)
    b += model_scores_bytes (s);
  return b;
}

/* Pipeline messages of the last micro-batch of each chunk, in and out, are held until the next. */
static double
kept_messages (const Spec *s, const SchedTable *t)
{
  return t->ranks > 1 ? 2.0 * t->stages / t->ranks * model_hidden_bytes (s) : 0;
}

typedef struct {
  double *plain, *full;  /* weight of each stage in flight, without and with the logits */
  double transit;        /* activations on their way to the host or back */
  double working, layer; /* largest working set and parameters of a layer of the rank */
} ActTerms;

static void
act_terms (const Spec *s, const SchedTable *t, const gint64 *layers_of_stage, guint rank,
           ActTerms *a)
{
  const ModelSpec *m = &s->model;
  const gint64 tp = MAX (s->parallel.tp, 1), ep = MAX (s->parallel.ep, 1), etp = spec_expert_tp (s);
  const double logits = model_logits_bytes (s);

  a->working = a->layer = a->transit = 0;
  for (guint v = 0; v < t->stages; v++) {
    a->plain[v] = a->full[v] = 0;
    if (t->stage_rank[v] != rank)
      continue;
    const gint64 from = first_layer (t, layers_of_stage, v);
    for (gint64 i = from; i < from + layers_of_stage[v]; i++) {
      const RankParams p = model_rank_layer (m, i, tp, ep, etp);

      const Recompute r = spec_layer_recompute (s, i);
      /* offloaded activations are here while they come and go, two layers at a time */
      const double kept = model_activation_bytes_layer (s, i, r), away = s->offload.activations;
      a->plain[v] += (1 - away) * kept;
      a->transit = MAX (a->transit, 2 * away * kept);
      a->working = MAX (a->working, model_working_bytes_layer (s, i, r));
      a->layer = MAX (a->layer, (double)(p.dense + p.experts));
    }
    if (sched_part (t, v) == 0)
      a->plain[v] += model_activation_bytes_embedding (s);
    /* a module: its layer, the two norms' inputs, their join, and a head of its own */
    const double modules = m->mtp_layers > 0 ? (double)modules_at (s, t, sched_part (t, v)) : 0;
    if (modules > 0)
      a->plain[v] +=
          modules * (model_activation_bytes_layer (s, m->num_layers - 1, s->train.recompute) +
                     4 * model_hidden_bytes (s));
    a->full[v] = a->plain[v];
    if (sched_part (t, v) == sched_depth (t) - 1) {
      const double mtp = (double)m->mtp_layers;
      a->plain[v] +=
          s->software.head_recompute ? model_hidden_bytes (s) : model_activation_bytes_head (s);
      a->full[v] = a->plain[v] + (s->software.head_recompute ? 0 : (1 + mtp) * logits);
    }
  }
}

/* Adapters of a rank, which are beside the model's own parameters; 0 without. */
static double
rank_adapters (const Spec *s, const SchedTable *t, const gint64 *layers_of_stage, guint rank)
{
  double sum = 0;

  for (guint v = 0; s->train.adapter_rank > 0 && v < t->stages; v++) {
    if (t->stage_rank[v] != rank)
      continue;
    const gint64 from = first_layer (t, layers_of_stage, v);
    for (gint64 i = from; i < from + layers_of_stage[v]; i++)
      sum += adapter_params_layer (s, i) / (double)s->parallel.tp;
  }
  return sum;
}

/* Parameters with gradients and optimizer states. */
static RankParams
trained_params (const Spec *s, const SchedTable *t, const gint64 *layers_of_stage, guint rank,
                RankParams held)
{
  if (s->train.adapter_rank == 0)
    return held;
  return (RankParams){llround (rank_adapters (s, t, layers_of_stage, rank)), 0};
}

static StageMemory
stage_memory (const Spec *s, const SchedTable *t, const gint64 *layers_of_stage, guint rank,
              ActTerms *a)
{
  const SoftwareProfile *sw = &s->software;
  const RankParams held = memory_rank_params (s, t, layers_of_stage, rank);
  const Shards n = zero_shards (s);
  const gboolean fsdp = spec_is_fsdp (s);
  const gint64 zero = fsdp ? 3 : s->parallel.zero_stage;
  const gboolean last = holds_part (t, rank, sched_depth (t) - 1);
  double param, state, activations, working;
  StageMemory o;

  bytes_per_param (s, &param, &state);
  act_terms (s, t, layers_of_stage, rank, a);
  /* Two moments compete: the loss, with the logits there, and the backward of the widest layer. */
  const double at_layer = sched_peak_weighted (t, rank, a->plain);
  const double head = last && sw->head_recompute ? model_logits_bytes (s) : 0;
  const double at_loss = last ? sched_peak_weighted (t, rank, a->full) : 0;
  activations = at_layer;
  working = a->working;
  if (at_loss + head > at_layer + working) {
    activations = at_loss;
    working = head;
  }
  o.weights_bytes =
      llround (param * (share (held, n, zero >= 3) + rank_adapters (s, t, layers_of_stage, rank)));
  const RankParams trained = trained_params (s, t, layers_of_stage, rank, held);
  o.gradients_bytes = llround (sw->grad_bytes * share (trained, n, zero >= 2));
  /* offloaded: the states are in the host, and so are gradients that are sharded */
  const gboolean away = s->offload.optimizer != OFFLOAD_NONE;
  if (away && zero >= 2)
    o.gradients_bytes = 0;
  o.optimizer_bytes =
      llround (((away ? 0 : state) + outer_state_bytes (s)) * share (trained, n, zero >= 1));
  o.activations_bytes = llround (activations);
  o.buffers_bytes = llround (working + a->transit + static_buffers (s, t, held, a->layer));
  const double workspace = memory_workspace_bytes (s);
  o.framework_bytes = llround (sw->framework_bytes + workspace + sw->fragmentation * activations);
  o.peak_bytes = o.weights_bytes + o.gradients_bytes + o.optimizer_bytes + o.activations_bytes +
                 o.buffers_bytes + o.framework_bytes;
  o.allocated_bytes =
      o.peak_bytes - llround (sw->framework_bytes) - llround (sw->fragmentation * activations);
  o.reserved_bytes =
      o.allocated_bytes + llround (MAX (sw->fragmentation * activations,
                                        sw->reserved_share * (double)o.allocated_bytes));
  o.after_step_bytes = o.weights_bytes + o.gradients_bytes + o.optimizer_bytes +
                       llround (workspace + kept_messages (s, t));
  return o;
}

/* What a GPU of a rank keeps in host memory: states, gradients on their way, activations in flight.
 * States on drives pass through. */
static double
away_bytes (const Spec *s, const SchedTable *t, const gint64 *layers_of_stage, guint rank,
            ActTerms *a)
{
  const OffloadSpec *o = &s->offload;
  const RankParams held = memory_rank_params (s, t, layers_of_stage, rank);
  const RankParams trained = trained_params (s, t, layers_of_stage, rank, held);
  const Shards n = zero_shards (s);
  const gboolean sharded = spec_is_fsdp (s) || s->parallel.zero_stage >= 1;
  double param, state, b = 0;

  bytes_per_param (s, &param, &state);
  if (o->optimizer != OFFLOAD_NONE)
    b += ((o->optimizer == OFFLOAD_CPU ? state : 0) + s->software.dp_reduce_bytes) *
         share (trained, n, sharded);
  if (o->activations > 0) {
    Spec here = *s; /* borrows everything */
    here.offload.activations = 0;
    act_terms (&here, t, layers_of_stage, rank, a);
    b += o->activations * sched_peak_weighted (t, rank, a->plain);
  }
  return b;
}

static void
host_memory (const Spec *s, const SchedTable *t, const gint64 *layers_of_stage, ActTerms *a,
             MemReport *r)
{
  const double gpus = (double)MIN (s->cluster.gpus_per_node, s->cluster.gpus);

  if (s->offload.optimizer == OFFLOAD_NONE && !(s->offload.activations > 0))
    return;
  for (guint i = 0; i < t->ranks; i++)
    r->host_bytes = MAX (r->host_bytes, llround (gpus * away_bytes (s, t, layers_of_stage, i, a)));
  r->host_capacity_bytes = llround (s->offload.host.memory_bytes);
  if (r->host_capacity_bytes > 0 && r->host_bytes > r->host_capacity_bytes)
    r->fits = FALSE;
}

gboolean
memory_estimate (const Spec *s, const SchedTable *t, const gint64 *layers_of_stage, MemReport *out,
                 GError **error)
{
  const guint end = sched_depth (t) - 1;
  const gint64 layers = first_layer (t, layers_of_stage, end) + layers_of_stage[end];
  MemReport r = {.fits = TRUE, .n_stages = t->ranks};

  if (layers != s->model.num_layers) {
    g_set_error (error, MEMORY_ERROR, 0,
                 "the stages hold %" G_GINT64_FORMAT " layers, the model has %" G_GINT64_FORMAT,
                 layers, s->model.num_layers);
    return FALSE;
  }
  g_autofree double *plain = g_new0 (double, t->stages), *full = g_new0 (double, t->stages);
  ActTerms a = {.plain = plain, .full = full};
  r.stages = g_new0 (StageMemory, t->ranks);
  for (guint i = 0; i < t->ranks; i++) {
    r.stages[i] = stage_memory (s, t, layers_of_stage, i, &a);
    if (r.stages[i].peak_bytes > r.peak_bytes) {
      r.peak_bytes = r.stages[i].peak_bytes;
      r.worst_stage = (int)i;
    }
  }
  if (s->gpu != NULL) {
    r.capacity_bytes = gpu_capacity_bytes (s->gpu);
    if (s->hetero.second != NULL) /* any stage may lie on either */
      r.capacity_bytes = MIN (r.capacity_bytes, gpu_capacity_bytes (s->hetero.second));
    r.fits = r.peak_bytes <= r.capacity_bytes;
  }
  host_memory (s, t, layers_of_stage, &a, &r);
  *out = r;
  return TRUE;
}

void
memory_clear (MemReport *r)
{
  g_clear_pointer (&r->stages, g_free);
  r->n_stages = 0;
}
