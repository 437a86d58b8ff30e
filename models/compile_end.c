/* The ends of a step for compile.c: parameters that are gathered before the first action, and,
 * after the last, what is left to reduce, the norm of the gradients and the update. */
#include "adapter.h"
#include "compile_fsdp.h"
#include "compress.h"
#include "gpu_profile.h"
#include "offload.h"

#include <math.h>

/* What a rank holds, or the part of it that is trained. */
static StageParams
rank_params (const Compile *c, guint rank, gboolean trained)
{
  StageParams sum = {0, 0};
  for (guint st = 0; st < c->t->stages; st++)
    if (c->t->stage_rank[st] == rank) {
      guint part = sched_part (c->t, st);
      StageParams p = trained ? stage_trainable_per_rank (c->s, c->sl, part)
                              : stage_params_per_rank (c->s, c->sl, part);
      sum.dense += p.dense;
      sum.experts += p.experts;
    }
  return sum;
}

double
compile_gather_bytes (const Spec *s)
{
  /* scales by block need both orientations, which do not follow from one another: 16 bits travel */
  gboolean narrow = s->software.fp8_param_gather && s->train.precision == DT_FP8;
  return narrow ? s->software.dp_gather_bytes / 2.0 : s->software.dp_gather_bytes;
}

static void
put_gather_over (Compile *c, const CollGroup *group, double params, guint32 after)
{
  const Spec *s = c->s;
  if (group->ranks <= 1 || !(params > 0))
    return;
  double t =
      coll_time_s (s->fabric, COLL_ALL_GATHER, group, params * compile_gather_bytes (s), NULL);
  program_op (c->b, STREAM_DP, OP_COLL, program_cost (c->b, PART_DP_COMM, compile_ticks (c, t)),
              OP_TAG (TAG_PARAM_GATHER, 0, 0));
  program_group (c->b, STREAM_DP, compile_slot_of (c, group));
  program_wait (c->b, STREAM_DP, PEER_SELF, STREAM_COMPUTE, after);
}

static void
put_gather (Compile *c, StageParams p, guint32 after)
{
  put_gather_over (c, compile_scoped (c) ? &c->p.groups.shard : &c->p.groups.dp, p.dense, after);
  put_gather_over (c, &c->p.groups.edp, p.experts, after);
}

/* A stage's first forward starts with the bucket of its first parameters and is not done before
 * that of its last: what follows it waits for those. */
void
compile_wait_params (Row *w, const SchedAction *a)
{
  Compile *c = w->c;
  if (w->buckets == 0 || w->per_bucket == 0)
    return;
  guint32 need = w->owed;
  if (a->kind == SCHED_F && !c->begun[a->stage]) {
    StageParams p = stage_trainable_per_rank (c->s, c->sl, sched_part (c->t, a->stage));
    double per = (double)w->buckets / w->held;
    guint32 first = (guint32)(w->begun_params * per) + 1;
    c->begun[a->stage] = 1;
    w->begun_params += p.dense + p.experts;
    guint32 last = (guint32)ceil (w->begun_params * per - 1e-9);
    need = MAX (need, MIN (first, w->buckets) * w->per_bucket);
    w->owed = MIN (last, w->buckets) * w->per_bucket;
  }
  if (need <= w->gathers_waited)
    return;
  program_wait (c->b, STREAM_COMPUTE, PEER_SELF, STREAM_DP, need);
  w->gathers_waited = need;
}

/* Parameters that a rank updates. */
static double
optimizer_params (const Compile *c, StageParams held)
{
  const Spec *s = c->s;
  gboolean divided = s->parallel.zero_stage >= 1 || c->fsdp != NULL;
  const CollGroup *dp =
      c->fsdp != NULL || compile_scoped (c) ? &c->p.groups.shard : &c->p.groups.dp;
  const CollGroup *edp = c->fsdp != NULL ? compile_expert_shard (c) : &c->p.groups.edp;
  return held.dense / (divided ? (double)dp->ranks : 1.0) +
         held.experts / (divided ? (double)edp->ranks : 1.0);
}

void
compile_begin (Row *w)
{
  Compile *c = w->c;
  const SoftwareProfile *sw = &c->s->software;
  if (c->fsdp != NULL)
    fsdp_row (c, w->rank);
  if (offload_optimizer (c->s) && c->s->offload.delayed && c->times == NULL) {
    double t = offload_update_s (c->s, optimizer_params (c, rank_params (c, w->rank, TRUE)));
    program_op (c->b, STREAM_CPU, OP_COLL,
                program_cost (c->b, PART_OPTIMIZER, compile_ticks (c, t)),
                OP_TAG (TAG_OFFLOAD, 0, 0));
  }
  if (sw->data_step_us > 0) {
    program_op (c->b, STREAM_COMPUTE, OP_COMPUTE,
                program_cost (c->b, PART_DATA, compile_ticks (c, sw->data_step_us * 1e-6)),
                OP_TAG (TAG_DATA, 0, 0));
  }
  if (compile_gathers_params (c) &&
      sw->dp_overlap_param) { /* parameters updated by the step before */
    StageParams held = rank_params (c, w->rank, TRUE);
    double params = held.dense + held.experts;
    guint parts = sw->dp_bucket_bytes > 0
                      ? (guint)CLAMP (params * sw->dp_gather_bytes / sw->dp_bucket_bytes, 1, 64)
                      : 1;
    w->buckets = parts;
    w->held = params;
    for (guint i = 0; i < parts; i++)
      put_gather (c, (StageParams){held.dense / parts, held.experts / parts}, 0);
    w->per_bucket = program_count (c->b, STREAM_DP) / parts;
    w->gathers_waited = MIN (1, program_count (c->b, STREAM_DP));
    for (guint st = 0; st < c->t->stages; st++)
      if (c->t->stage_rank[st] == w->rank)
        c->begun[st] = 0;
    program_op (c->b, STREAM_COMPUTE, OP_MARK, c->zero_cost, OP_TAG (TAG_PARAM_GATHER, 0, 0));
    program_wait (c->b, STREAM_COMPUTE, PEER_SELF, STREAM_DP,
                  MIN (1, program_count (c->b, STREAM_DP))); /* a rank may hold nothing */
  }
}

/* The gradient of a table that the first and the last stage have. */
gboolean
compile_shares_table (const Spec *s)
{
  return s->model.tied_embeddings && s->train.adapter_rank == 0;
}

static double
optimizer_s (const Compile *c, StageParams held, guint rank)
{
  const Spec *s = c->s;
  const CollGroup *dp = &c->p.groups.dp;
  double params = optimizer_params (c, held);
  double update =
      gpu_memory_s (s->gpu, MEMK_OPTIMIZER, params * s->software.optimizer_traffic_bytes);
  if (offload_optimizer (s))
    update =
        (s->offload.delayed ? 0 : offload_update_s (s, params)) + offload_parameters_s (s, params);
  update += compress_kernels_s (s, dp, params);
  StageParams all = rank_params (c, rank, FALSE);
  if (spec_narrow (s)) /* quantised copies of the weights, made once a step */
    update += gpu_cast_fp8_s (s->gpu, (all.dense + all.experts) *
                                          (2.0 + 2.0 * dtype_bytes (s->train.precision)) / 3.0);
  if (s->software.no_grad_norm)
    return update;
  /* norm and scaling read the gradients once more */
  return update + gpu_memory_s (s->gpu, MEMK_STREAM, params * s->software.grad_bytes);
}

gboolean
compile_has_barrier (const Spec *s, const SchedTable *t)
{
  gboolean split = FALSE;
  for (guint32 i = 0; i < t->first[t->ranks] && !split; i++)
    split = t->actions[i].kind == SCHED_W;
  return !(split && s->software.post_validation);
}

void
compile_end (Row *w)
{
  Compile *c = w->c;
  const Spec *s = c->s;
  const SoftwareProfile *sw = &s->software;
  StageParams params = rank_params (c, w->rank, TRUE);
  guint first = c->t->stage_rank[0], last = c->t->stage_rank[sched_depth (c->t) - 1];
  gboolean embed =
      compile_shares_table (s) && first != last && (w->rank == first || w->rank == last);
  if ((compile_has_dp (c) || offload_optimizer (s)) && !c->split && c->fsdp == NULL)
    compile_put_reduce (c, params);
  if (c->fsdp != NULL)
    fsdp_end (c, params);
  if (embed) {
    CollGroup two = {2, 1, 2, c->p.groups.pp_members, {0}};
    if (c->p.groups.pp_same_node)
      two = (CollGroup){2, 2, 1, 1, {0}};
    double bytes = (double)c->p.vocab_padded / (double)s->parallel.tp * (double)s->model.hidden *
                   sw->dp_reduce_bytes;
    double t = coll_time_s (s->fabric, COLL_ALL_REDUCE, &two, bytes, NULL);
    program_op (c->b, STREAM_DP, OP_COLL, program_cost (c->b, PART_DP_COMM, compile_ticks (c, t)),
                OP_TAG (TAG_EMBED_GRAD, 0, 0));
    program_group (c->b, STREAM_DP, COMPILE_SLOT_EMBED);
    program_wait (c->b, STREAM_DP, PEER_SELF, STREAM_COMPUTE, program_count (c->b, STREAM_COMPUTE));
  }
  /* gradient norm over all ranks: everybody waits for the last */
  double norm = s->cluster.gpus > 1 && !sw->no_grad_norm
                    ? coll_time_s (s->fabric, COLL_ALL_REDUCE, &c->p.groups.all, 8.0, NULL)
                    : 0;
  program_op (c->b, STREAM_COMPUTE, OP_COLL,
              program_cost (c->b, PART_OPTIMIZER, compile_ticks (c, norm * sw->norm_collectives)),
              OP_TAG (TAG_GRAD_NORM, 0, 0));
  if (c->barrier)
    program_group (c->b, STREAM_COMPUTE, COMPILE_SLOT_STEP);
  program_wait (c->b, STREAM_COMPUTE, PEER_SELF, STREAM_DP, program_count (c->b, STREAM_DP));
  program_wait (c->b, STREAM_COMPUTE, PEER_SELF, STREAM_OUTER, program_count (c->b, STREAM_OUTER));
  program_wait (c->b, STREAM_COMPUTE, PEER_SELF, STREAM_CPU, program_count (c->b, STREAM_CPU));
  SimTime parts[PART_COUNT] = {0};
  parts[PART_OPTIMIZER] =
      compile_ticks (c, optimizer_s (c, params, w->rank) + sw->host_optimizer_us * 1e-6);
  parts[PART_HOST] = compile_ticks (c, sw->host_step_us * 1e-6);
  parts[PART_DP_COMM] = compile_ticks (c, compile_has_dp (c) ? sw->dp_step_us * 1e-6 : 0);
  program_op (c->b, STREAM_COMPUTE, OP_COMPUTE, program_cost_parts (c->b, parts),
              OP_TAG (TAG_OPTIMIZER, 0, 0));
  if (compile_gathers_params (c) && !sw->dp_overlap_param) {
    guint32 updated = program_count (c->b, STREAM_COMPUTE);
    put_gather (c, params, updated);
    program_op (c->b, STREAM_COMPUTE, OP_MARK, c->zero_cost, OP_TAG (TAG_PARAM_GATHER, 0, 0));
    program_wait (c->b, STREAM_COMPUTE, PEER_SELF, STREAM_DP, program_count (c->b, STREAM_DP));
  }
}
