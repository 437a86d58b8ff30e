#include "predict.h"

#include <string.h>

#include "breakdown.h"
#include "coll_cost.h"
#include "compile_eval.h"
#include "exec.h"
#include "outer.h"

struct PredictCache {
  GHashTable *tables; /* "name/pp/vpp/m" → SchedTable*; only looked up, never walked */
  gsize table_bytes;  /* of all of them */
};

/* A sweep over batch sizes makes a table a point: beyond this the old ones are dropped. */
#define CACHE_BYTES_MAX ((gsize)32 << 20)

PredictCache *
predict_cache_new (void)
{
  PredictCache *c = g_new0 (PredictCache, 1);
  c->tables =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify)sched_table_free);
  return c;
}

void
predict_cache_free (PredictCache *c)
{
  if (c == NULL)
    return;
  g_hash_table_unref (c->tables);
  g_free (c);
}

void
prediction_clear (Prediction *p)
{
  memory_clear (&p->memory);
  g_clear_pointer (&p->stage_layers, g_free);
  g_clear_pointer (&p->rank_layers, g_free);
  g_clear_pointer (&p->net_rows, g_array_unref);
}

static const SchedTable *
table_for (const Spec *s, PredictCache *cache, GError **error)
{
  const ParallelSpec *p = &s->parallel;
  char key[160];
  g_snprintf (key, sizeof key, "%s/%" G_GINT64_FORMAT "/%" G_GINT64_FORMAT "/%" G_GINT64_FORMAT,
              p->schedule, p->pp, p->vpp, spec_microbatches (s));
  SchedTable *t = g_hash_table_lookup (cache->tables, key);
  if (t != NULL)
    return t;
  t = sched_generate (p->schedule, (guint)p->pp, (guint)p->vpp, (guint)spec_microbatches (s),
                      error);
  if (t == NULL)
    return NULL;
  if (!sched_verify (t, error)) {
    sched_table_free (t);
    return NULL;
  }
  gsize bytes = (gsize)t->first[t->ranks] * sizeof (SchedAction);
  if (cache->table_bytes + bytes > CACHE_BYTES_MAX) {
    g_hash_table_remove_all (cache->tables);
    cache->table_bytes = 0;
  }
  cache->table_bytes += bytes;
  g_hash_table_insert (cache->tables, g_strdup (key), t);
  return t;
}

/* FLOPs of one sequence that backward runs again, forward only. */
static double
flops_again (const Spec *s, gboolean causal, double forward)
{
  const ModelSpec *m = &s->model;
  double seq = (double)s->train.sequence_tokens, sum = 0;
  double mats = m->gated_mlp ? 3.0 : 2.0, h = (double)m->hidden;
  if (s->train.recompute == RECOMPUTE_NONE)
    return 0;
  if (s->train.recompute == RECOMPUTE_FULL) {
    gint64 every = MAX (s->train.recompute_every, 1);
    double share = (double)((m->num_layers + every - 1) / every) / (double)m->num_layers;
    return share * (forward - model_flops_head (m, s->train.sequence_tokens));
  }
  double up = (double)(m->q_lora_rank * m->heads * (m->qk_nope_dim + m->qk_rope_dim) +
                       m->kv_lora_rank * m->heads * (m->qk_nope_dim + m->v_head_dim));
  double shared = (double)(m->shared_experts * m->shared_ffn_hidden);
  double experts = (double)(m->experts_per_token * m->moe_ffn_hidden) + shared;
  if (spec_recomputes (s, RECOMP_CORE_ATTN))
    sum += model_flops_core (m, s->train.sequence_tokens, causal);
  for (gint64 i = 0; i < m->num_layers; i++) {
    gboolean moe = model_layer_is_moe (m, i), linear = model_layer_is_linear (m, i);
    double ffn = 0;
    if (!linear && spec_recomputes (s, RECOMP_MLA_UP))
      sum += 2.0 * seq * up;
    if (moe && spec_recomputes (s, RECOMP_MOE))
      ffn = experts;
    else if (moe && spec_recomputes (s, RECOMP_SHARED))
      ffn = shared;
    else if (!moe && spec_recomputes (s, RECOMP_MLP))
      ffn = (double)m->ffn_hidden;
    sum += 2.0 * seq * mats * h * ffn;
  }
  return sum;
}

void
predict_flops (const Spec *s, gboolean causal, double *model, double *hardware)
{
  double per_gpu = (double)s->train.global_batch_sequences / (double)s->cluster.gpus;
  double forward = model_flops_forward (&s->model, s->train.sequence_tokens, causal);
  /* frozen maps have no weight gradient */
  double passes = s->train.adapter_rank > 0 ? 2.0 : 3.0;
  *model = passes * forward * per_gpu;
  *hardware = (passes * forward + flops_again (s, causal, forward)) * per_gpu;
}

/* The input pipeline of images works ahead, beside the steps: a step cannot be shorter than what it
 * needs for the samples of a rank, or for those of a node, whose processors all ranks share. */
static void
wait_for_data (const Spec *s, Prediction *out)
{
  const SoftwareProfile *sw = &s->software;
  if (s->model.graph == NULL || !s->model.graph->images)
    return;
  double samples = (double)s->train.global_batch_sequences / (double)s->cluster.gpus;
  double ranks = (double)MIN (s->cluster.gpus_per_node, s->cluster.gpus);
  double data = samples * 1e-6 * MAX (sw->data_rank_sample_us, sw->data_node_sample_us * ranks);
  if (data <= out->step_s)
    return;
  out->part_s[PART_DATA] += data - out->step_s;
  out->step_s = data;
}

static void
rates (const Spec *s, Prediction *out)
{
  double tokens = (double)s->train.global_batch_sequences * (double)s->train.sequence_tokens;
  double gpus = (double)s->cluster.gpus, model = 0, hardware = 0;
  predict_flops (s, s->train.causal_flops, &model, &hardware);
  out->tokens_per_s = tokens / out->step_s;
  out->tokens_per_s_per_gpu = out->tokens_per_s / gpus;
  out->model_tflops_per_gpu = model / out->step_s * 1e-12;
  out->hardware_tflops_per_gpu = hardware / out->step_s * 1e-12;
  out->peak_tflops = gpu_peak_flops (s->gpu, s->train.precision) * 1e-12;
  out->mfu = out->model_tflops_per_gpu / out->peak_tflops;
  out->hfu = out->hardware_tflops_per_gpu / out->peak_tflops;
  out->flops_per_token = model * gpus / tokens;
  out->parameters = model_params_total (&s->model);
  out->active_parameters = model_params_active (&s->model);
  out->gpu_hours_per_1e9_tokens = gpus * 1e9 / out->tokens_per_s / 3600.0;
  out->usd_per_1e9_tokens = s->cluster.price_usd_per_gpu_hour > 0
                                ? out->gpu_hours_per_1e9_tokens * s->cluster.price_usd_per_gpu_hour
                                : -1.0;
  out->kwh_per_1e9_tokens = s->cluster.node_power_w > 0
                                ? out->gpu_hours_per_1e9_tokens / (double)s->cluster.gpus_per_node *
                                      s->cluster.node_power_w * 1e-3 *
                                      (s->cluster.pue > 0 ? s->cluster.pue : 1.0)
                                : -1.0;
}

static void
take_times (const StepTimes *st, Prediction *out)
{
  out->step_s = sim_time_to_s (st->end, SIM_TICKS_PS);
  for (guint i = 0; i < PART_COUNT; i++)
    out->part_s[i] = sim_time_to_s (st->breakdown.part[i], SIM_TICKS_PS);
  out->bubble_share = out->step_s > 0 ? out->part_s[PART_BUBBLE] / out->step_s : 0;
  out->operations = st->operations;
  out->fingerprint = st->fingerprint;
}

static gboolean
check_positive (const Prediction *p, GError **error)
{
  if (p->step_s > 0)
    return TRUE;
  g_set_error (error, PROGRAM_ERROR, PROGRAM_ERROR_INVALID, "the step takes no time");
  return FALSE;
}

/* Steps without a barrier follow each other as each rank is done: the period is the longest time
 * that a rank is at work, and is told of that rank. */
static void
take_period (const ProgramSet *set, const ExecResult *res, StepTimes *st)
{
  st->end = 0;
  for (guint r = 0; r < set->n_ranks; r++) {
    SimTime span = breakdown_span (set, res, r, STREAM_COMPUTE, NULL);
    if (span > st->end) {
      st->end = span;
      st->last_rank = r;
    }
  }
  breakdown_span (set, res, st->last_rank, STREAM_COMPUTE, &st->breakdown);
}

static gboolean
run_programs (const Spec *s, const ProgramSet *set, gboolean barrier, const PredictOptions *opt,
              Prediction *out, GError **error)
{
  ExecResult res;
  gboolean ok;
  if (s->run.exact_events) {
    SimOptions so = {.ticks_per_s = SIM_TICKS_PS,
                     .seed = s->run.seed,
                     .run = 0,
                     .max_events = s->run.max_events,
                     .horizon = SIM_TIME_MAX,
                     .shuffle_ties = s->run.shuffle_ties};
    g_autoptr (SimEngine) engine = sim_engine_new (&so);
    ExecOptions eo = {.record = TRUE};
    ok = exec_run_events (set, engine, &eo, &res, error);
  } else {
    ok = exec_run_fast (set, &res, error);
  }
  if (!ok)
    return FALSE;
  Breakdown bd;
  breakdown_compute (set, &res, res.last_rank, STREAM_COMPUTE, &bd);
  StepTimes st = {.end = res.end,
                  .last_rank = res.last_rank,
                  .operations = res.operations,
                  .fingerprint = res.fingerprint,
                  .breakdown = bd};
  if (!barrier)
    take_period (set, &res, &st);
  take_times (&st, out);
  if (opt != NULL && opt->trace != NULL)
    exec_trace (set, &res, opt->trace, opt->trace_first, MIN (opt->trace_last, set->n_ranks - 1));
  exec_result_clear (&res);
  return check_positive (out, error);
}

/* A table of another shape than the scenario's would be read beyond its ends. */
static gboolean
check_table (const Spec *s, const SchedTable *t, const StageLayers *sl, GError **error)
{
  if (t->ranks == s->parallel.pp && sched_depth (t) == sl->n_stages &&
      t->microbatches == spec_microbatches (s))
    return TRUE;
  g_set_error (
      error, PROGRAM_ERROR, PROGRAM_ERROR_INVALID,
      "the schedule has %u ranks, %u stages and %u micro-batches, the scenario %" G_GINT64_FORMAT
      ", %u and %" G_GINT64_FORMAT,
      t->ranks, sched_depth (t), t->microbatches, s->parallel.pp, sl->n_stages,
      spec_microbatches (s));
  return FALSE;
}

/* Layers of every stage of the table, copy by copy, and of every rank. */
static gint64 *
layers_of_table (const SchedTable *t, const StageLayers *sl, gint64 **rank_layers)
{
  gint64 *layers = g_new (gint64, t->stages);
  *rank_layers = g_new0 (gint64, t->ranks);
  for (guint v = 0; v < t->stages; v++) {
    layers[v] = sl->n_layers[sched_part (t, v)];
    (*rank_layers)[t->stage_rank[v]] += layers[v];
  }
  return layers;
}

static gboolean
run_healthy (const Spec *s, const SchedTable *t, const StageLayers *sl, const PredictOptions *opt,
             Prediction *out, guint *last_rank, GError **error)
{
  gboolean whole = s->run.exact_events || (opt != NULL && (opt->trace != NULL || opt->programs));
  if (!whole) {
    GError *why = NULL;
    StepTimes st;
    if (compile_eval (s, t, sl, opt != NULL ? opt->times : NULL, &st, &why)) {
      take_times (&st, out);
      *last_rank = st.last_rank;
      return check_positive (out, error);
    }
    if (why != NULL) {
      g_propagate_error (error, why);
      return FALSE;
    }
  }
  g_autoptr (ProgramSet) set = compile_step (s, t, sl, opt != NULL ? opt->times : NULL, error);
  return set != NULL && run_programs (s, set, compile_has_barrier (s, t), opt, out, error);
}

/* The fast pass has no queue that could stop it; an operation is an event at least. */
static gboolean
check_limit (const Spec *s, const Prediction *p, GError **error)
{
  if (s->run.max_events == 0 || p->operations <= s->run.max_events)
    return TRUE;
  g_set_error (error, SIM_ERROR, SIM_ERROR_LIMIT,
               "the limit of %" G_GUINT64_FORMAT
               " events is reached (the step has %" G_GUINT64_FORMAT " operations)",
               s->run.max_events, p->operations);
  return FALSE;
}

static gboolean
run_step (const Spec *s, const SchedTable *t, const StageLayers *sl, const PredictOptions *opt,
          Prediction *out, GError **error)
{
  g_autofree gint64 *layers = layers_of_table (t, sl, &out->rank_layers);
  if (!memory_estimate (s, t, layers, &out->memory, error))
    return FALSE;
  if (opt != NULL && (opt->only_memory || (opt->only_fitting && !out->memory.fits)))
    return TRUE;
  guint last = 0;
  if (!run_healthy (s, t, sl, opt, out, &last, error) || !check_limit (s, out, error))
    return FALSE;
  if (!hetero_wanted (s) || (opt != NULL && opt->times != NULL))
    return TRUE;
  StepTimes st;
  if (!hetero_run (s, t, sl, out->step_s, last, &out->hetero, &st, error))
    return FALSE;
  take_times (&st, out);
  double mean = out->hetero.mean_s / out->step_s; /* of the steps, over the one that is told */
  out->step_s = out->hetero.mean_s;
  for (guint i = 0; i < PART_COUNT; i++)
    out->part_s[i] *= mean;
  return check_positive (out, error);
}

/* The step of s with prices of a network that its groups share. */
static gboolean
run_on_network (const Spec *s, const SchedTable *t, const StageLayers *sl,
                const PredictOptions *opt, Prediction *out, GError **error)
{
  g_autoptr (NetPrice) net = netprice_new (s, error);
  if (net == NULL)
    return FALSE;
  Fabric fabric;
  Spec own;
  netprice_apply (net, &own, &fabric);
  GError *why = NULL;
  gboolean ok = run_step (&own, t, sl, opt, out, &why);
  coll_cache_free (fabric.cache);
  if (!netprice_check (net, error)) { /* what it led to does not matter */
    g_clear_error (&why);
    return FALSE;
  }
  if (why != NULL)
    g_propagate_error (error, why);
  out->net_rows = netprice_take_rows (net);
  return ok;
}

static gboolean
run_priced (const Spec *s, const SchedTable *t, const StageLayers *sl, const PredictOptions *opt,
            Prediction *out, GError **error)
{
  return netprice_wanted (s) ? run_on_network (s, t, sl, opt, out, error)
                             : run_step (s, t, sl, opt, out, error);
}

/* One site after the other; those without GPUs of their own kind behave alike. */
static gboolean
run_sites (const Spec *s, const SchedTable *t, const StageLayers *sl, const PredictOptions *opt,
           Prediction *out, GError **error)
{
  gint64 sites = s->parallel.outer.sites;
  g_autofree SlowGpus *slow = g_new0 (SlowGpus, MAX (s->hetero.n_slow, 1));
  gboolean plain_done = FALSE;
  double exposed = 0, update = 0;
  for (gint64 i = 0; i < sites; i++) {
    Spec inner = {.hetero.slow = slow};
    Prediction one = {0};
    outer_inner_spec (s, i, &inner);
    gboolean plain = !hetero_wanted (&inner);
    if (plain && plain_done)
      continue;
    plain_done |= plain;
    if (!run_priced (&inner, t, sl, opt, &one, error)) {
      prediction_clear (&one);
      return FALSE;
    }
    Prediction less = one;
    if (i == 0 || one.step_s > out->step_s) { /* a round ends with the slowest site */
      less = *out;
      *out = one;
    }
    prediction_clear (&less);
  }
  if (!(out->step_s > 0))
    return TRUE;
  outer_step_s (s, out->step_s, &exposed, &update);
  out->part_s[PART_DP_COMM] += exposed;
  out->part_s[PART_OPTIMIZER] += update;
  out->step_s += exposed + update;
  out->bubble_share = out->part_s[PART_BUBBLE] / out->step_s;
  return TRUE;
}

gboolean
predict (const Spec *s, PredictCache *cache, const PredictOptions *opt, Prediction *out,
         GError **error)
{
  g_autoptr (PredictCache) own = cache == NULL ? predict_cache_new () : NULL;
  StageLayers sl = {0};
  memset (out, 0, sizeof *out);
  const SchedTable *t = opt != NULL && opt->table != NULL
                            ? opt->table
                            : table_for (s, cache != NULL ? cache : own, error);
  if (t == NULL || !stage_layers_init (&sl, s, error))
    return FALSE;
  gboolean ok = check_table (s, t, &sl, error) &&
                (outer_wanted (s) ? run_sites (s, t, &sl, opt, out, error)
                                  : run_priced (s, t, &sl, opt, out, error));
  if (ok) {
    wait_for_data (s, out);
    if (out->step_s > 0)
      rates (s, out);
    out->n_stages = sl.n_stages;
    out->stage_layers = g_steal_pointer (&sl.n_layers);
  } else {
    prediction_clear (out);
  }
  stage_layers_clear (&sl);
  return ok;
}
