/* Forward and backward of different micro-batches as one: the all-to-all of each beside the compute
 * of the other. Which neighbours of a row run so, and what the pair costs. */
#include "compile_int.h"
#include "fabric.h"

#include <string.h>

static gboolean
may_pair (const Compile *c, const SchedAction *a, const SchedAction *b)
{
  if (!((a->kind == SCHED_F && b->kind == SCHED_B) || (a->kind == SCHED_B && b->kind == SCHED_F)))
    return FALSE;
  /* a backward that needs the forward beside it cannot run with it */
  gboolean needs = a->kind == SCHED_F && a->stage == b->stage && a->microbatch == b->microbatch;
  return !needs && c->sl->n_layers[sched_part (c->t, a->stage)] > 0 &&
         c->sl->n_layers[sched_part (c->t, b->stage)] > 0;
}

SimTime
compile_pair_host (Compile *c, guint stage)
{
  gint64 n = 0;
  for (gint64 i = 0; i < c->sl->n_layers[stage]; i++)
    n += model_layer_is_moe (&c->s->model, c->sl->first_layer[stage] + i) ? 1 : 0;
  double us = c->s->software.host_pair_us * 0.5 * (double)n;
  if (c->s->fabric->cpu == FABRIC_ARM)
    us *= c->s->software.host_arm_factor;
  return compile_ticks (c, us * 1e-6);
}

static const PassCost *
layer_pair (Compile *c, gint64 forward, gint64 backward)
{
  guint f = compile_layer_kind (c->s, forward), b = compile_layer_kind (c->s, backward);
  if (!c->have_pair[f][b]) {
    layer_pair_cost (&c->p, forward, backward, &c->pair[f][b]);
    c->have_pair[f][b] = TRUE;
  }
  return &c->pair[f][b];
}

/* The i-th MoE layer of a stage, or -1. */
static gint64
moe_layer (const Compile *c, guint stage, gint64 i)
{
  for (gint64 k = 0; k < c->sl->n_layers[stage]; k++) {
    gint64 layer = c->sl->first_layer[stage] + k;
    if (model_layer_is_moe (&c->s->model, layer) && i-- == 0)
      return layer;
  }
  return -1;
}

/* Both stages alone, less what each pair of layers saves. */
static void
joint_cost (Compile *c, guint fs, guint bs, SimTime part[PART_COUNT])
{
  for (guint p = 0; p < PART_COUNT; p++)
    part[p] = c->stage[fs].pass[LP_FORWARD].part[p] + c->stage[bs].pass[LP_BACKWARD].part[p];
  for (gint64 i = 0;; i++) {
    gint64 f = moe_layer (c, fs, i), b = moe_layer (c, bs, i);
    if (f < 0 || b < 0)
      return;
    const PassCost *both = layer_pair (c, f, b);
    const PassCost *one = compile_layer_cost (c, f, LP_FORWARD);
    const PassCost *two = compile_layer_cost (c, b, LP_BACKWARD);
    if (both->total >= one->total + two->total)
      continue; /* nothing gained: the framework would not overlap */
    for (guint p = 0; p < PART_COUNT; p++)
      part[p] += both->part[p] - one->part[p] - two->part[p];
  }
}

/* A part that grows in the pair (compute beside a collective) while others shrink can leave another
 * part a little under zero: what is missing is taken from the largest. */
static void
no_negative (SimTime part[PART_COUNT])
{
  guint most = 0;
  for (guint p = 1; p < PART_COUNT; p++)
    if (part[p] > part[most])
      most = p;
  for (guint p = 0; p < PART_COUNT; p++)
    if (part[p] < 0) {
      part[most] += part[p];
      part[p] = 0;
    }
}

static gpointer
pair_key (guint forward_stage, guint backward_stage, gboolean forward)
{
  return GUINT_TO_POINTER (forward_stage << 17 | backward_stage << 1 | (forward ? 1 : 0));
}

guint32
compile_pair_cost (Compile *c, guint forward_stage, guint backward_stage, gboolean forward)
{
  gpointer key = pair_key (forward_stage, backward_stage, forward);
  guint32 found = GPOINTER_TO_UINT (g_hash_table_lookup (c->pair_cost, key));
  if (found == 0) {
    SimTime part[PART_COUNT], half[PART_COUNT];
    double tf = (double)c->stage[forward_stage].pass[LP_FORWARD].total;
    double tb = (double)c->stage[backward_stage].pass[LP_BACKWARD].total;
    joint_cost (c, forward_stage, backward_stage, part);
    no_negative (part);
    for (guint p = 0; p < PART_COUNT; p++) { /* both end together; a row has one after the other */
      SimTime of_forward = (SimTime)((double)part[p] * tf / (tf + tb));
      half[p] = forward ? of_forward : part[p] - of_forward;
    }
    found = program_cost_parts (c->b, half) + 1;
    g_hash_table_insert (c->pair_cost, key, GUINT_TO_POINTER (found));
  }
  return found - 1;
}

/* TRUE when issuing the two halves takes longer than running them. */
static gboolean
pair_host_bound (Compile *c, guint forward_stage, guint backward_stage)
{
  SimTime part[PART_COUNT], total = 0;
  joint_cost (c, forward_stage, backward_stage, part);
  for (guint p = 0; p < PART_COUNT; p++)
    total += part[p];
  return c->stage[forward_stage].pass[LP_FORWARD].host +
             c->stage[backward_stage].pass[LP_BACKWARD].host +
             compile_pair_host (c, forward_stage) + compile_pair_host (c, backward_stage) >
         total;
}

static void
find_pairs_of_rank (Compile *c, guint rank)
{
  const SchedTable *t = c->t;
  for (guint32 i = t->first[rank]; i + 1 < t->first[rank + 1]; i++) {
    const SchedAction *a = &t->actions[i];
    gboolean last =
        c->split && (c->last_back[a[0].stage] == i || c->last_back[a[1].stage] == i + 1);
    if (last || !may_pair (c, a, a + 1))
      continue;
    gboolean forward_first = a->kind == SCHED_F;
    guint f = sched_part (t, a[forward_first ? 0 : 1].stage);
    guint b = sched_part (t, a[forward_first ? 1 : 0].stage);
    c->paired[i] = i + 2;
    c->paired[i + 1] = i + 1;
    if (!c->host_bound)
      c->host_bound = pair_host_bound (c, f, b);
    compile_pair_cost (c, f, b, TRUE); /* all costs are made before any row is emitted */
    compile_pair_cost (c, f, b, FALSE);
    i++;
  }
}

/* Greedy, along each row. The last backward of a stage stays alone when gradients are reduced
 * beside its pieces. */
void
compile_find_pairs (Compile *c)
{
  const SchedTable *t = c->t;
  const Spec *s = c->s;
  if (!s->software.ep_overlap || s->parallel.ep <= 1 || s->model.num_experts == 0 ||
      c->times != NULL || c->fsdp != NULL)
    return;
  c->paired = g_new0 (guint32, t->first[t->ranks]);
  c->pair_cost = g_hash_table_new (NULL, NULL);
  for (guint r = 0; r < t->ranks; r++)
    find_pairs_of_rank (c, r);
}
