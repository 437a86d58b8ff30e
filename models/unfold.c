#include "unfold.h"

#include <string.h>

#include "rank_order.h"

static gint64
gcd (gint64 a, gint64 b)
{
  while (b != 0) {
    gint64 r = a % b;
    a = b;
    b = r;
  }
  return a;
}

gint64
unfold_lockstep (const Spec *s)
{
  const ParallelSpec *p = &s->parallel;
  gint64 block = p->tp * p->cp;
  if (p->ep <= 1)
    return block;
  gint64 experts = p->ep * spec_expert_tp (s);
  return block / gcd (block, experts) * experts;
}

/* Where a rank stands. */
typedef struct {
  gint64 tp, cp, dp, pp; /* coordinates */
  gint64 in_stage;       /* tp innermost, then cp, dp: 0 … tp*cp*dp-1 */
  gint64 data;           /* cp innermost, then dp */
} Place;

typedef struct {
  const Spec *s;
  gint64 stride[DIM_COUNT], size[DIM_COUNT];
  gint64 shard, hpz, lockstep, experts; /* sizes of the groups; experts: ranks of one set of them */
  guint32 first[COMPILE_N_SLOTS];       /* id of the first group of a slot */
  gint64 count[COMPILE_N_SLOTS];        /* groups of a stage (or of the job) */
  gint64 members[COMPILE_N_SLOTS];
  gboolean paired[COMPILE_N_SLOTS]; /* stages i and pp - 1 - i are in it together */
} Unfold;

static Place
place_of (const Unfold *u, gint64 rank)
{
  Place p;
  p.tp = rank / u->stride[DIM_TP] % u->size[DIM_TP];
  p.cp = rank / u->stride[DIM_CP] % u->size[DIM_CP];
  p.dp = rank / u->stride[DIM_DP] % u->size[DIM_DP];
  p.pp = rank / u->stride[DIM_PP] % u->size[DIM_PP];
  p.data = p.cp + u->size[DIM_CP] * p.dp;
  p.in_stage = p.tp + u->size[DIM_TP] * p.data;
  return p;
}

static guint32
rank_at (const Unfold *u, const Place *p, gint64 pp)
{
  return (guint32)(p->tp * u->stride[DIM_TP] + p->cp * u->stride[DIM_CP] +
                   p->dp * u->stride[DIM_DP] + pp * u->stride[DIM_PP]);
}

/* Number of the group of a slot among those of its stage. */
static gint64
group_in_stage (const Unfold *u, const Place *p, guint slot)
{
  gint64 tp = u->size[DIM_TP];
  switch (slot) {
  case COMPILE_SLOT_MODEL:
    return p->in_stage / u->lockstep;
  case COMPILE_SLOT_DP:
    return p->tp;
  case COMPILE_SLOT_EDP:
    return p->in_stage % u->experts;
  case COMPILE_SLOT_SHARD:
    return p->tp + tp * (p->data / u->shard);
  case COMPILE_SLOT_HPZ:
    return p->tp + tp * (p->data / u->hpz);
  case COMPILE_SLOT_REPLICA:
    return p->tp + tp * (p->data % u->shard);
  default:
    g_assert_not_reached ();
  }
}

static void
set_slot (Unfold *u, guint slot, gint64 members, gboolean paired)
{
  gint64 in_stage = u->size[DIM_TP] * u->size[DIM_CP] * u->size[DIM_DP];
  u->members[slot] = members;
  u->paired[slot] = paired;
  u->count[slot] = members > 1 || paired ? in_stage / members : 0; /* alone: no rendezvous */
}

static void
init (Unfold *u, const Spec *s, const ProgramSet *folded)
{
  const ParallelSpec *p = &s->parallel;
  gint64 ranks = p->tp * p->cp * p->dp, data = p->cp * p->dp;
  *u = (Unfold){.s = s, .size = {p->tp, p->cp, p->dp, p->pp}};
  rank_order_strides (p->order, u->size, u->stride);
  u->shard = spec_shard_ranks (s);
  u->hpz = p->hpz_size > 0 ? p->hpz_size : u->shard;
  u->lockstep = unfold_lockstep (s);
  u->experts = MIN (ranks, p->ep * spec_expert_tp (s));
  gboolean paired = folded->groups[COMPILE_SLOT_DP] != GROUP_NONE;
  set_slot (u, COMPILE_SLOT_MODEL, u->lockstep, FALSE);
  set_slot (u, COMPILE_SLOT_DP, data, paired);
  set_slot (u, COMPILE_SLOT_EDP, ranks / u->experts, paired);
  set_slot (u, COMPILE_SLOT_SHARD, u->shard, paired);
  set_slot (u, COMPILE_SLOT_HPZ, u->hpz, FALSE);
  set_slot (u, COMPILE_SLOT_REPLICA, data / u->shard, FALSE);
}

static guint32
number_groups (Unfold *u, gboolean embed)
{
  guint32 next = 1; /* 0 is everybody */
  u->first[COMPILE_SLOT_EMBED] = next;
  if (embed)
    next += (guint32)(u->size[DIM_TP] * u->size[DIM_CP] * u->size[DIM_DP]);
  for (guint slot = COMPILE_SLOT_MODEL; slot < COMPILE_N_SLOTS; slot++) {
    u->first[slot] = next;
    next += (guint32)(u->count[slot] * u->size[DIM_PP] / (u->paired[slot] ? 2 : 1));
  }
  return next;
}

/* Of two stages that are in a group together the first. */
static gint64
stage_of (const Unfold *u, const Place *p, guint slot)
{
  return u->paired[slot] ? MIN (p->pp, u->size[DIM_PP] - 1 - p->pp) : p->pp;
}

static void
join_groups (const Unfold *u, ProgramSet *set, guint32 rank, const Place *p, gboolean embed)
{
  guint32 *g = set->groups + (gsize)rank * COMPILE_N_SLOTS;
  for (guint slot = 0; slot < COMPILE_N_SLOTS; slot++)
    g[slot] = GROUP_NONE;
  g[COMPILE_SLOT_STEP] = 0;
  if (embed)
    g[COMPILE_SLOT_EMBED] = u->first[COMPILE_SLOT_EMBED] + (guint32)p->in_stage;
  for (guint slot = COMPILE_SLOT_MODEL; slot < COMPILE_N_SLOTS; slot++)
    if (u->count[slot] > 0)
      g[slot] = u->first[slot] +
                (guint32)(stage_of (u, p, slot) * u->count[slot] + group_in_stage (u, p, slot));
  for (guint slot = 0; slot < COMPILE_N_SLOTS; slot++)
    if (g[slot] != GROUP_NONE)
      set->group_size[g[slot]]++;
}

ProgramSet *
unfold_programs (ProgramSet *folded, const Spec *s, const guint8 *block_of)
{
  Unfold u;
  init (&u, s, folded);
  guint stages = folded->n_ranks, n = (guint)s->cluster.gpus, n_peers = folded->n_peers;
  g_assert (stages == s->parallel.pp && folded->n_slots == COMPILE_N_SLOTS);
  /* which stages the shared embedding joins, as compile_step linked them */
  g_autofree gboolean *embed = g_new0 (gboolean, stages);
  gboolean any = FALSE;
  for (guint st = 0; st < stages; st++) {
    embed[st] = folded->groups[st * COMPILE_N_SLOTS + COMPILE_SLOT_EMBED] != GROUP_NONE;
    any |= embed[st];
  }
  g_autofree guint32 *peers = g_steal_pointer (&folded->peers);
  g_free (folded->rank_program);
  g_free (folded->groups);
  g_free (folded->group_size);
  g_free (folded->rank_weight);
  ProgramSet *set = folded;
  set->n_ranks = n;
  set->n_groups = number_groups (&u, any);
  set->rank_program = g_new (guint32, n);
  set->rank_weight = g_new (guint32, n);
  set->peers = g_new (guint32, (gsize)n * MAX (n_peers, 1));
  set->groups = g_new (guint32, (gsize)n * COMPILE_N_SLOTS);
  set->group_size = g_new0 (guint32, set->n_groups);
  for (guint32 r = 0; r < n; r++) {
    Place p = place_of (&u, r);
    set->rank_program[r] = (guint32)p.pp + stages * (block_of != NULL ? block_of[r] : 0);
    set->rank_weight[r] = 1;
    for (guint k = 0; k < n_peers; k++)
      set->peers[(gsize)r * n_peers + k] = rank_at (&u, &p, peers[(gsize)p.pp * n_peers + k]);
    join_groups (&u, set, r, &p, embed[p.pp]);
  }
  return set;
}

void
unfold_add_block (ProgramSet *set, ProgramSet *more)
{
  g_assert (set->n_streams == more->n_streams && set->n_programs % more->n_programs == 0);
  guint n = set->n_programs * set->n_streams, m = more->n_programs * more->n_streams;
  set->first_op = g_renew (guint32, set->first_op, n + m + 1);
  for (guint i = 0; i <= m; i++)
    set->first_op[n + i] = set->n_ops + more->first_op[i];
  set->ops = g_renew (Op, set->ops, set->n_ops + more->n_ops);
  for (guint i = 0; i < more->n_ops; i++) {
    Op op = more->ops[i];
    op.wait0 += set->n_waits;
    op.cost += set->n_costs;
    set->ops[set->n_ops + i] = op;
  }
  set->waits = g_renew (Wait, set->waits, set->n_waits + more->n_waits);
  if (more->n_waits > 0)
    memcpy (set->waits + set->n_waits, more->waits, more->n_waits * sizeof (Wait));
  set->costs = g_renew (OpCost, set->costs, set->n_costs + more->n_costs);
  memcpy (set->costs + set->n_costs, more->costs, more->n_costs * sizeof (OpCost));
  set->n_programs += more->n_programs;
  set->n_ops += more->n_ops;
  set->n_waits += more->n_waits;
  set->n_costs += more->n_costs;
  program_set_free (more);
}
