#include "plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_profile.h"
#include "memory.h"

const char *const plan_order_names[] = {"time", "cost", "memory", NULL};

#define UNFIT_KEPT 16

/* ---- bound ---- */

/* FLOPs of forward and backward of one micro-batch, over tp x cp and the peak: of a mean layer, and
 * of the head. */
static void
ideal (const Spec *s, double *layer_s, double *head_s)
{
  const ModelSpec *m = &s->model;
  double seqs = (double)s->train.micro_batch_sequences;
  double head = 2.0 * (double)s->train.sequence_tokens * (double)m->hidden * (double)m->vocab;
  double all = model_flops_forward (m, s->train.sequence_tokens, m->causal);
  gboolean every = s->train.recompute == RECOMPUTE_FULL && s->train.recompute_every <= 1;
  double again = every && !s->software.recompute_early_stop ? 1 : 0;
  double passes = s->train.adapter_rank > 0 ? 2.0 : 3.0; /* frozen: no weight gradient */
  double rate =
      gpu_peak_flops (s->gpu, s->train.precision) * (double)(s->parallel.tp * s->parallel.cp);
  *layer_s = seqs * (passes + again) * MAX (0, all - head) / (double)m->num_layers / rate;
  *head_s = seqs * passes * head / rate;
}

static gboolean
layers_alike (const ModelSpec *m)
{
  return m->num_experts == 0 && m->sliding_period <= 1 && m->linear_period == 0 &&
         m->mtp_layers == 0;
}

double
plan_bound_s (const Spec *s)
{
  const ParallelSpec *p = &s->parallel;
  double layer = 0, head = 0, m = (double)spec_microbatches (s);
  StageLayers sl = {0};
  ideal (s, &layer, &head);
  double mean = m * (layer * (double)s->model.num_layers + head) / (double)p->pp;
  gboolean whole = strcmp (p->schedule, "1f1b") == 0 || strcmp (p->schedule, "gpipe") == 0 ||
                   strcmp (p->schedule, "interleaved") == 0;
  if (!whole || !layers_alike (&s->model) || !stage_layers_init (&sl, s, NULL))
    return mean;
  double before = 0, own = head;
  for (gint64 v = 0; v < sl.n_stages; v++) {
    if (v < p->pp - 1)
      before += layer * (double)sl.n_layers[v];
    if (v % p->pp == p->pp - 1)
      own += layer * (double)sl.n_layers[v];
  }
  stage_layers_clear (&sl);
  return MAX (mean, before + m * own);
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
  PlanResult *out;
  GArray *list; /* PlanPoint */
} Search;

static void
add_point (Search *x, const PlanPoint *p)
{
  Spec s = plan_spec (x->base, p);
  if (!spec_check (&s, NULL, NULL)) {
    x->out->illegal++;
    return;
  }
  PlanPoint q = *p;
  q.bound_s = plan_bound_s (&s);
  g_array_append_val (x->list, q);
}

static void
list_training (Search *x, PlanPoint p)
{
  static const Recompute recomputes[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL};
  gint64 gbs = x->base->train.global_batch_sequences;
  gint64 dp = x->base->cluster.gpus / (p.tp * p.cp * p.pp);
  for (p.mbs = 1; p.mbs <= 16 && p.mbs * dp <= gbs; p.mbs *= 2)
    for (guint r = 0; r < G_N_ELEMENTS (recomputes); r++) {
      p.recompute = recomputes[r];
      p.zero_stage = 1;
      p.fsdp = FALSE;
      add_point (x, &p);
      p.zero_stage = 3;
      p.fsdp = TRUE;
      if (dp * p.cp > 1 && p.pp == 1)
        add_point (x, &p);
    }
}

static void
list_pipeline (Search *x, PlanPoint p)
{
  gint64 layers = x->base->model.num_layers;
  p.vpp = 1;
  p.schedule = "1f1b";
  list_training (x, p);
  if (p.pp == 1)
    return;
  p.schedule = "zb-h1";
  list_training (x, p);
  p.schedule = "interleaved";
  for (p.vpp = 2; p.vpp * p.pp <= layers + 2; p.vpp++) {
    gint64 n = p.vpp * p.pp; /* uneven spreads are legal, and never better than a neighbour's */
    if (layers % n == 0 || (layers + 2) % n == 0)
      list_training (x, p);
  }
}

static void
list_all (Search *x)
{
  const Spec *b = x->base;
  gint64 gpus = b->cluster.gpus, domain = spec_domain_gpus (b);
  PlanPoint p = {0};
  for (p.tp = 1; p.tp <= MIN (domain, b->model.heads); p.tp++) {
    if (gpus % p.tp != 0)
      continue;
    for (p.cp = 1; p.cp == 1 || b->train.sequence_tokens / p.cp >= 2048; p.cp *= 2)
      for (p.pp = 1; p.pp <= b->model.num_layers + 2 && p.tp * p.cp * p.pp <= gpus; p.pp++) {
        if (gpus % (p.tp * p.cp * p.pp) != 0)
          continue;
        p.sequence_parallel = p.tp > 1;
        gint64 most = MAX (b->model.num_experts, 1);
        for (p.ep = 1; p.ep <= most && p.ep <= gpus / p.pp; p.ep *= 2)
          list_pipeline (x, p);
      }
  }
  x->out->listed = x->list->len;
}

/* ---- order ---- */

static double
key_of (PlanOrder order, const PlanPoint *p)
{
  return order == PLAN_BY_MEMORY ? (double)p->peak_bytes : p->step_s;
}

static int
by_bound (const void *a, const void *b)
{
  const PlanPoint *x = a, *y = b;
  if (x->bound_s != y->bound_s)
    return x->bound_s < y->bound_s ? -1 : 1;
  if (x->recompute != y->recompute)
    return x->recompute < y->recompute ? -1 : 1;
  return (x->tp > y->tp) - (x->tp < y->tp);
}

static int
by_key (gconstpointer a, gconstpointer b, gpointer order)
{
  const PlanPoint *x = a, *y = b;
  double kx = key_of (*(const PlanOrder *)order, x), ky = key_of (*(const PlanOrder *)order, y);
  if (kx != ky)
    return kx < ky ? -1 : 1;
  return (x->step_s > y->step_s) - (x->step_s < y->step_s);
}

static int
by_peak (const void *a, const void *b)
{
  const PlanPoint *x = a, *y = b;
  return (x->peak_bytes > y->peak_bytes) - (x->peak_bytes < y->peak_bytes);
}

/* ---- the search ---- */

static gboolean
evaluate (const Spec *base, PlanPoint *p, PredictCache *cache)
{
  Spec s = plan_spec (base, p);
  PredictOptions o = {.only_fitting = TRUE};
  Prediction r;
  if (!spec_check (&s, NULL, NULL) || !predict (&s, cache, &o, &r, NULL))
    return FALSE;
  p->step_s = r.step_s;
  p->fits = r.memory.fits;
  p->peak_bytes = r.memory.peak_bytes;
  p->usd_per_1e9_tokens = r.usd_per_1e9_tokens;
  p->mfu = r.mfu;
  memcpy (p->part_s, r.part_s, sizeof p->part_s);
  prediction_clear (&r);
  return TRUE;
}

/* The time that the last of the best has; nothing slower need be looked at. Not for other orders
 * than time and cost (which is time on a fixed cluster). */
static double
threshold (const PlanOptions *opt, const GArray *best)
{
  if (opt->order == PLAN_BY_MEMORY || best->len < MAX (opt->top, 1))
    return INFINITY;
  return g_array_index (best, PlanPoint, MAX (opt->top, 1) - 1).step_s;
}

static void
keep_unfit (PlanResult *out, const PlanPoint *p)
{
  out->n_unfit++;
  g_array_append_val (out->unfit, *p);
  if (out->unfit->len < 4 * UNFIT_KEPT)
    return;
  qsort (out->unfit->data, out->unfit->len, sizeof (PlanPoint), by_peak);
  g_array_set_size (out->unfit, UNFIT_KEPT);
}

/* Sorted insertion: the list of the predicted stays in order. */
static void
keep (GArray *best, const PlanPoint *p, PlanOrder order)
{
  guint i = best->len;
  while (i > 0 && by_key (p, &g_array_index (best, PlanPoint, i - 1), &order) < 0)
    i--;
  g_array_insert_val (best, i, *p);
}

static void
mark_pareto (GArray *points)
{
  for (guint i = 0; i < points->len; i++) {
    PlanPoint *p = &g_array_index (points, PlanPoint, i);
    p->pareto = TRUE;
    for (guint k = 0; k < points->len && p->pareto; k++) {
      const PlanPoint *q = &g_array_index (points, PlanPoint, k);
      p->pareto = !(q->step_s <= p->step_s && q->peak_bytes <= p->peak_bytes &&
                    (q->step_s < p->step_s || q->peak_bytes < p->peak_bytes));
    }
  }
}

static void
own_layout (const Spec *base, PredictCache *cache, PlanPoint *own)
{
  Prediction r;
  *own = (PlanPoint){.tp = base->parallel.tp,
                     .cp = base->parallel.cp,
                     .pp = base->parallel.pp,
                     .vpp = base->parallel.vpp,
                     .ep = base->parallel.ep,
                     .mbs = base->train.micro_batch_sequences,
                     .zero_stage = base->parallel.zero_stage,
                     .fsdp = base->parallel.fsdp,
                     .sequence_parallel = base->parallel.sequence_parallel,
                     .recompute = base->train.recompute,
                     .schedule = base->parallel.schedule};
  if (!predict (base, cache, NULL, &r, NULL))
    return;
  own->step_s = r.step_s;
  own->fits = r.memory.fits;
  own->peak_bytes = r.memory.peak_bytes;
  own->mfu = r.mfu;
  own->usd_per_1e9_tokens = r.usd_per_1e9_tokens;
  memcpy (own->part_s, r.part_s, sizeof own->part_s);
  prediction_clear (&r);
}

static gboolean
search (Search *x, const PlanOptions *opt, PredictCache *cache)
{
  PlanResult *out = x->out;
  for (guint i = 0; i < x->list->len; i++) {
    PlanPoint *p = &g_array_index (x->list, PlanPoint, i);
    if (p->bound_s > threshold (opt, out->points)) {
      out->pruned = x->list->len - i;
      break;
    }
    /* lint: allow clock: cut short only on request, and then it says so (complete) */
    if (opt->deadline != 0 && g_get_monotonic_time () > opt->deadline)
      return FALSE;
    if (!evaluate (x->base, p, cache)) {
      out->illegal++;
      continue;
    }
    if (!p->fits) {
      keep_unfit (out, p);
      continue;
    }
    out->predicted++;
    keep (out->points, p, opt->order);
    if (opt->progress != NULL && out->predicted % 256 == 0)
      opt->progress (opt->data, i, x->list->len, &g_array_index (out->points, PlanPoint, 0));
  }
  return TRUE;
}

gboolean
plan_run (const Spec *base, const PlanOptions *opt, PlanResult *out, GError **error)
{
  g_autoptr (PredictCache) cache = predict_cache_new ();
  memset (out, 0, sizeof *out);
  out->points = g_array_new (FALSE, TRUE, sizeof (PlanPoint));
  out->unfit = g_array_new (FALSE, TRUE, sizeof (PlanPoint));
  Search x = {base, out, g_array_new (FALSE, TRUE, sizeof (PlanPoint))};
  own_layout (base, cache, &out->own);
  list_all (&x);
  if (x.list->len > 1)
    qsort (x.list->data, x.list->len, sizeof (PlanPoint), by_bound);
  out->complete = search (&x, opt, cache);
  if (out->unfit->len > 1)
    qsort (out->unfit->data, out->unfit->len, sizeof (PlanPoint), by_peak);
  g_array_set_size (out->unfit, MIN (out->unfit->len, UNFIT_KEPT));
  mark_pareto (out->points);
  g_array_unref (x.list);
  if (out->points->len > 0 || !out->complete)
    return TRUE;
  if (out->unfit->len > 0)
    g_set_error (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT,
                 "no layout of %s fits %" G_GINT64_FORMAT
                 " x %s: the smallest needs %.1f of %.1f GiB "
                 "a GPU",
                 base->model.name, base->cluster.gpus, gpu_name (base->gpu),
                 (double)g_array_index (out->unfit, PlanPoint, 0).peak_bytes / (1 << 30),
                 (double)gpu_capacity_bytes (base->gpu) / (1 << 30));
  else
    g_set_error (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT,
                 "no layout is legal: %" G_GINT64_FORMAT " GPUs and a batch of %" G_GINT64_FORMAT
                 " sequences do not go together",
                 base->cluster.gpus, base->train.global_batch_sequences);
  plan_clear (out);
  return FALSE;
}

void
plan_clear (PlanResult *r)
{
  g_clear_pointer (&r->points, g_array_unref);
  g_clear_pointer (&r->unfit, g_array_unref);
}

char *
plan_why (const PlanPoint *a, const PlanPoint *b)
{
  guint worst = 0;
  for (guint i = 1; i < PART_COUNT; i++)
    if (b->part_s[i] - a->part_s[i] > b->part_s[worst] - a->part_s[worst])
      worst = i;
  return g_strdup_printf ("slower by %.1f %%: %s %.3g s more",
                          100.0 * (b->step_s / a->step_s - 1.0), part_names[worst],
                          b->part_s[worst] - a->part_s[worst]);
}
