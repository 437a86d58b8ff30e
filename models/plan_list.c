/* The list of layouts and their bounds. */
#include <string.h>

#include "compile_int.h"
#include "plan.h"

/* ---- bound ---- */

/* What the passes cost depends on these alone; the groups of ranks, which set what collectives
 * cost, on all but mbs and recompute. */
typedef struct {
  gint64 tp, cp, pp, ep, mbs, recompute, sharded, sequence_parallel;
} PriceKey;

/* Seconds of a forward, of a whole backward, and of one in two halves. */
typedef struct {
  double f, b, iw;
} PassPrice;

/* Every pass alone, with what it leaves exposed of its collectives; and its compute, which is left
 * when collectives run beside another micro-batch's pass. */
typedef struct {
  PassPrice alone, compute;
} Price;

typedef struct {
  PriceKey key;
  Price layer[LAYER_KINDS], embed, head, mtp;
  gboolean have[LAYER_KINDS];
  Pricing pricing;
} Prices;

struct PlanPrices {
  GHashTable *prices; /* PriceKey in Prices → Prices; only looked up */
};

static guint
key_hash (gconstpointer p)
{
  const PriceKey *k = p;
  guint64 h = 0;
  const gint64 v[] = {k->tp, k->cp, k->pp, k->ep, k->mbs, k->recompute, k->sharded};
  for (gsize i = 0; i < G_N_ELEMENTS (v); i++)
    h = (h ^ (guint64)v[i]) * 1099511628211u;
  return (guint)(h ^ h >> 32);
}

static gboolean
key_equal (gconstpointer a, gconstpointer b)
{
  return memcmp (a, b, sizeof (PriceKey)) == 0;
}

PlanPrices *
plan_prices_new (void)
{
  PlanPrices *c = g_new0 (PlanPrices, 1);
  c->prices = g_hash_table_new_full (key_hash, key_equal, NULL, g_free);
  return c;
}

void
plan_prices_free (PlanPrices *c)
{
  if (c == NULL)
    return;
  g_hash_table_unref (c->prices);
  g_free (c);
}

static void
price_passes (const PassCost c[LP_COUNT], Price *out)
{
  double alone[LP_COUNT] = {0}, compute[LP_COUNT] = {0};
  for (int i = 0; i < LP_COUNT; i++) {
    if (c[i].overflow)
      continue;
    alone[i] = sim_time_to_s (c[i].total, SIM_TICKS_PS);
    compute[i] = sim_time_to_s (c[i].part[PART_COMPUTE], SIM_TICKS_PS);
  }
  out->alone = (PassPrice){alone[LP_FORWARD], alone[LP_BACKWARD],
                           alone[LP_INPUT_GRAD] + alone[LP_WEIGHT_GRAD]};
  out->compute = (PassPrice){compute[LP_FORWARD], compute[LP_BACKWARD],
                             compute[LP_INPUT_GRAD] + compute[LP_WEIGHT_GRAD]};
}

typedef void (*PassFunc) (const Pricing *p, LayerPass pass, PassCost *out);

static void
price_part (const Pricing *p, PassFunc pass, Price *out)
{
  PassCost c[LP_COUNT];
  for (int i = 0; i < LP_COUNT; i++)
    pass (p, (LayerPass)i, &c[i]);
  price_passes (c, out);
}

static Prices *
prices_for (const Spec *s, PlanPrices *cache)
{
  PriceKey key = {s->parallel.tp,
                  s->parallel.cp,
                  s->parallel.pp,
                  s->parallel.ep,
                  s->train.micro_batch_sequences,
                  s->train.recompute,
                  spec_is_fsdp (s),
                  s->parallel.sequence_parallel};
  Prices *x = g_hash_table_lookup (cache->prices, &key);
  if (x != NULL) {
    x->pricing.s = s; /* another copy with the same prices */
    return x;
  }
  x = g_new0 (Prices, 1);
  x->key = key;
  pricing_init (&x->pricing, s);
  price_part (&x->pricing, embedding_pass_cost, &x->embed);
  price_part (&x->pricing, head_pass_cost, &x->head);
  if (s->model.mtp_layers > 0)
    price_part (&x->pricing, mtp_pass_cost, &x->mtp);
  g_hash_table_insert (cache->prices, &x->key, x);
  return x;
}

static const Price *
layer_price (Prices *x, gint64 layer)
{
  guint k = compile_layer_kind (x->pricing.s, layer);
  if (!x->have[k]) {
    PassCost c[LP_COUNT];
    for (int i = 0; i < LP_COUNT; i++)
      layer_pass_cost (&x->pricing, layer, (LayerPass)i, &c[i]);
    price_passes (c, &x->layer[k]);
    x->have[k] = TRUE;
  }
  return &x->layer[k];
}

/* What a schedule does with its passes. */
typedef struct {
  const char *name;
  gboolean split;  /* backwards in two halves, some or all */
  gboolean paired; /* collectives beside another pass */
  gboolean v;      /* the second chunks lie on the ranks backwards */
  int copies;      /* of the model, fed from both ends */
} Habits;

static const Habits habits[] = {
    {"gpipe", FALSE, FALSE, FALSE, 1},       {"1f1b", FALSE, FALSE, FALSE, 1},
    {"interleaved", FALSE, FALSE, FALSE, 1}, {"bfs", FALSE, FALSE, FALSE, 1},
    {"zb-h1", TRUE, FALSE, FALSE, 1},        {"zb-h2", TRUE, FALSE, FALSE, 1},
    {"zb-v", TRUE, FALSE, TRUE, 1},          {"dualpipe", TRUE, TRUE, FALSE, 2},
    {"dualpipev", TRUE, TRUE, TRUE, 1}};

/* One stage of the model, for one micro-batch. */
typedef struct {
  double f, b; /* b: the cheaper form of what the schedule may do */
} StageTime;

static void
add_price (StageTime *t, const Price *p, const Habits *h, double n)
{
  const PassPrice *x = h->paired ? &p->compute : &p->alone;
  t->f += n * x->f;
  t->b += n * (h->split ? MIN (x->b, x->iw) : x->b);
}

static void
stage_times (Prices *x, const Spec *s, const StageLayers *sl, const Habits *h, StageTime *out)
{
  for (guint v = 0; v < sl->n_stages; v++) {
    out[v] = (StageTime){0, 0};
    if (v == 0)
      add_price (&out[v], &x->embed, h, 1);
    for (gint64 i = 0; i < sl->n_layers[v]; i++)
      add_price (&out[v], layer_price (x, sl->first_layer[v] + i), h, 1);
  }
  add_price (&out[sl->n_stages - 1], &x->head, h, 1);
  if (s->model.mtp_layers > 0)
    add_price (&out[sl->n_stages - 1], &x->mtp, h, (double)s->model.mtp_layers);
}

/* The rank that holds stage v, of the first copy. */
static gint64
owner (const Habits *h, gint64 pp, gint64 v)
{
  return h->v && v >= pp ? 2 * pp - 1 - v : v % pp;
}

/* Rounding of sums of doubles must not lift a bound over a step that it equals. */
#define BOUND_SAFE (1 - 1e-9)

double
plan_bound_s (const Spec *s, PlanPrices *prices)
{
  const Habits *h = NULL;
  StageLayers sl = {0};
  gint64 pp = s->parallel.pp;
  for (gsize i = 0; i < G_N_ELEMENTS (habits) && h == NULL; i++)
    h = strcmp (habits[i].name, s->parallel.schedule) == 0 ? &habits[i] : NULL;
  if (h == NULL || !stage_layers_init (&sl, s, NULL))
    return 0;
  double m = (double)spec_microbatches (s) / h->copies, worst = 0;
  g_autofree StageTime *t = g_new (StageTime, sl.n_stages);
  g_autofree double *work = g_new0 (double, pp);
  g_autofree double *before = g_new (double, pp); /* first input there, last gradient back */
  stage_times (prices_for (s, prices), s, &sl, h, t);
  for (gint64 r = 0; r < pp; r++)
    before[r] = -1;
  double in = 0, out = 0;
  for (gint64 v = 0; v < sl.n_stages; v++) {
    for (int c = 0; c < h->copies; c++) {
      gint64 r = c == 0 ? owner (h, pp, v) : pp - 1 - owner (h, pp, v);
      double wait = h->split ? (s->software.post_validation ? 0 : in) : in + out;
      work[r] += m * (t[v].f + t[v].b);
      before[r] = before[r] < 0 ? wait : MIN (before[r], wait);
    }
    in += t[v].f;
    out += t[v].b;
  }
  for (gint64 r = 0; r < pp; r++)
    worst = MAX (worst, before[r] + work[r]);
  stage_layers_clear (&sl);
  return worst * BOUND_SAFE;
}

/* ---- the list ---- */

Spec
plan_spec (const Spec *base, const PlanPoint *p)
{
  Spec s = *base;
  s.parallel.tp = p->tp;
  s.parallel.cp = p->cp;
  s.parallel.pp = p->pp;
  s.parallel.vpp = p->vpp;
  s.parallel.ep = p->ep;
  s.parallel.dp = 0;
  s.parallel.zero_stage = p->zero_stage;
  s.parallel.fsdp = p->fsdp;
  s.parallel.shard_size = s.parallel.hpz_size = 0;
  s.parallel.sequence_parallel = p->sequence_parallel;
  s.parallel.schedule = (char *)p->schedule; /* borrowed: the copy is never cleared */
  s.parallel.schedule_file = NULL;
  s.parallel.layout = NULL;
  s.train.micro_batch_sequences = p->mbs;
  s.train.recompute = p->recompute;
  if (p->recompute != RECOMPUTE_FULL)
    s.train.recompute_every = 0;
  memset (&s.hetero, 0, sizeof s.hetero);
  return s;
}

typedef struct {
  const Spec *base;
  gboolean (*allow) (gpointer data, const PlanPoint *p);
  gpointer data;
  GArray *list; /* PlanPoint */
  PlanPrices *prices;
} List;

static void
add_point (List *x, const PlanPoint *p)
{
  if (x->allow != NULL && !x->allow (x->data, p))
    return;
  Spec s = plan_spec (x->base, p);
  if (!spec_check (&s, NULL, NULL))
    return;
  PlanPoint q = *p;
  q.index = x->list->len;
  q.bound_s = plan_bound_s (&s, x->prices);
  g_array_append_val (x->list, q);
}

static void
list_training (List *x, PlanPoint p)
{
  static const Recompute recomputes[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL};
  static const struct {
    gint64 zero_stage;
    gboolean fsdp;
  } shardings[] = {{1, FALSE}, {2, FALSE}, {3, TRUE}, {0, FALSE}};
  guint n = x->base->parallel.zero_stage == 0 ? 4 : 3;
  gint64 dp = x->base->cluster.gpus / (p.tp * p.cp * p.pp);
  gint64 batch = x->base->train.global_batch_sequences / dp;
  if (batch < 1 || batch * dp != x->base->train.global_batch_sequences)
    return;
  for (p.mbs = 1; p.mbs <= batch; p.mbs++)
    for (guint r = 0; batch % p.mbs == 0 && r < G_N_ELEMENTS (recomputes); r++)
      for (guint i = 0; i < n; i++) {
        p.recompute = recomputes[r];
        p.zero_stage = shardings[i].zero_stage;
        p.fsdp = shardings[i].fsdp;
        if (i == 0 || dp * p.cp > 1) /* nobody to share with: all the same */
          add_point (x, &p);
      }
}

/* Layers that spread evenly, embedding and loss counted as layers or not. */
static gboolean
even (gint64 layers, gint64 stages)
{
  return layers % stages == 0 || (layers + 2) % stages == 0;
}

/* What the generators ask of vpp is theirs to say; here only what is cheap to leave out. */
static void
list_pipeline (List *x, PlanPoint p)
{
  gint64 stages = x->base->model.num_layers + 2;
  for (gsize i = 0; sched_names[i] != NULL; i++) {
    const char *name = sched_names[i];
    gboolean many = strcmp (name, "interleaved") == 0 || strcmp (name, "bfs") == 0;
    gboolean two = strcmp (name, "zb-v") == 0 || strcmp (name, "dualpipev") == 0;
    p.schedule = name;
    if (p.pp == 1 && strcmp (name, "1f1b") != 0)
      continue; /* without a pipeline they are all alike */
    if (!many) {
      p.vpp = two ? 2 : 1;
      list_training (x, p);
    }
    for (p.vpp = 2; many && p.vpp * p.pp <= stages; p.vpp++)
      if (even (x->base->model.num_layers, p.vpp * p.pp))
        list_training (x, p);
  }
}

void
plan_list (const Spec *b, gboolean (*allow) (gpointer data, const PlanPoint *p), gpointer data,
           GArray *list)
{
  g_autoptr (PlanPrices) prices = plan_prices_new ();
  List x = {b, allow, data, list, prices};
  gint64 gpus = b->cluster.gpus;
  gboolean sequence = b->parallel.tp <= 1 || b->parallel.sequence_parallel;
  PlanPoint p = {0};
  for (p.tp = 1; p.tp <= MIN (spec_domain_gpus (b), b->model.heads); p.tp++) {
    if (gpus % p.tp != 0 || b->model.heads % p.tp != 0)
      continue;
    p.sequence_parallel = p.tp > 1 && sequence;
    for (p.cp = 1; p.cp == 1 || b->train.sequence_tokens / p.cp >= PLAN_CP_TOKENS; p.cp *= 2)
      for (p.pp = 1; p.pp <= b->model.num_layers + 2 && p.tp * p.cp * p.pp <= gpus; p.pp++) {
        if (gpus % (p.tp * p.cp * p.pp) != 0)
          continue;
        gint64 experts = MAX (b->model.num_experts, 1);
        for (p.ep = 1; p.ep <= MIN (experts, gpus / p.pp); p.ep++)
          if (experts % p.ep == 0)
            list_pipeline (&x, p);
      }
  }
}
