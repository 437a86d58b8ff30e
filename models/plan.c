#include "plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_profile.h"
#include "memory.h"

const char *const plan_order_names[] = {"time", "cost", "memory", NULL};
const char *const plan_state_names[] = {
    "unseen", "illegal", "does not fit", "too slow", "dominated", "predicted", NULL};

#define UNFIT_KEPT 16
#define EDGE_SLACK 1.5
#define TELL_EVERY 256 /* points between two calls of progress */

typedef struct {
  const Spec *base;
  const PlanOptions *opt;
  PlanResult *out;
  PredictCache *cache;
  GArray *edge; /* of guint64: indices in all, of layouts that no other beats in time and memory */
  GArray *best; /* of double: keys of the best so far, sorted, at most top */
  double fastest_s;
  guint64 done;
} Search;

static PlanPoint *
point_at (const Search *x, guint64 i)
{
  return &g_array_index (x->out->all, PlanPoint, i);
}

/* ---- order ---- */

static double
key_of (PlanOrder order, const PlanPoint *p)
{
  return order == PLAN_BY_MEMORY ? (double)p->peak_bytes : p->step_s;
}

static int
by_bound (gconstpointer a, gconstpointer b, gpointer all)
{
  const PlanPoint *x = &g_array_index ((GArray *)all, PlanPoint, *(const guint *)a);
  const PlanPoint *y = &g_array_index ((GArray *)all, PlanPoint, *(const guint *)b);
  if (x->bound_s != y->bound_s)
    return x->bound_s < y->bound_s ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

static int
by_key (gconstpointer a, gconstpointer b, gpointer order)
{
  const PlanPoint *x = a, *y = b;
  double kx = key_of (*(const PlanOrder *)order, x), ky = key_of (*(const PlanOrder *)order, y);
  if (kx != ky)
    return kx < ky ? -1 : 1;
  if (x->step_s != y->step_s)
    return x->step_s < y->step_s ? -1 : 1;
  if (x->peak_bytes != y->peak_bytes)
    return x->peak_bytes < y->peak_bytes ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

static int
by_peak (gconstpointer a, gconstpointer b)
{
  const PlanPoint *x = a, *y = b;
  if (x->peak_bytes != y->peak_bytes)
    return x->peak_bytes < y->peak_bytes ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

/* ---- what is proven ---- */

/* What the last of the best has; INFINITY while there are too few. */
static double
threshold (const Search *x)
{
  guint top = MAX (x->opt->top, 1);
  return x->best->len < top ? INFINITY : g_array_index (x->best, double, top - 1);
}

/* Above this bound nothing is of interest. */
static double
limit_s (const Search *x)
{
  double slack = x->opt->slack > 0 ? x->opt->slack : EDGE_SLACK;
  if (x->opt->order == PLAN_BY_MEMORY)
    return INFINITY;
  return MAX (threshold (x), slack * x->fastest_s);
}

/* Whether the point cannot be on the edge, as its memory and the bound of its time tell. */
static gboolean
dominated (const Search *x, const PlanPoint *p)
{
  for (guint i = 0; i < x->edge->len; i++) {
    const PlanPoint *e = point_at (x, g_array_index (x->edge, guint, i));
    if (e->step_s <= p->bound_s && e->peak_bytes <= p->peak_bytes &&
        (e->step_s < p->bound_s || e->peak_bytes < p->peak_bytes))
      return TRUE;
  }
  return FALSE;
}

/* A fitting point that need not be predicted. */
static gboolean
needless (const Search *x, const PlanPoint *p)
{
  double at_least = x->opt->order == PLAN_BY_MEMORY ? (double)p->peak_bytes : p->bound_s;
  return at_least > threshold (x) && dominated (x, p);
}

static gboolean
beats (const PlanPoint *a, const PlanPoint *b)
{
  return a->step_s <= b->step_s && a->peak_bytes <= b->peak_bytes &&
         (a->step_s < b->step_s || a->peak_bytes < b->peak_bytes);
}

static void
extend_edge (Search *x, guint at)
{
  const PlanPoint *p = point_at (x, at);
  for (guint i = 0; i < x->edge->len; i++)
    if (beats (point_at (x, g_array_index (x->edge, guint, i)), p))
      return;
  for (guint i = x->edge->len; i-- > 0;)
    if (beats (p, point_at (x, g_array_index (x->edge, guint, i))))
      g_array_remove_index_fast (x->edge, i);
  g_array_append_val (x->edge, at);
}

static void
note_prediction (Search *x, guint at)
{
  PlanPoint *p = point_at (x, at);
  guint top = MAX (x->opt->top, 1), i = x->best->len;
  double key = key_of (x->opt->order, p);
  p->state = PLAN_PREDICTED;
  x->fastest_s = MIN (x->fastest_s, p->step_s);
  extend_edge (x, at);
  while (i > 0 && key < g_array_index (x->best, double, i - 1))
    i--;
  if (i >= top)
    return;
  g_array_insert_val (x->best, i, key);
  if (x->best->len > top)
    g_array_set_size (x->best, top);
}

/* ---- looking at one ---- */

static void
take_result (PlanPoint *p, const Prediction *r)
{
  p->step_s = r->step_s;
  p->fits = r->memory.fits;
  p->peak_bytes = r->memory.peak_bytes;
  p->usd_per_1e9_tokens = r->usd_per_1e9_tokens;
  p->mfu = r->mfu;
  memcpy (p->part_s, r->part_s, sizeof p->part_s);
}

/* memory alone, or all. */
static gboolean
evaluate (Search *x, PlanPoint *p, gboolean memory)
{
  Spec s = plan_spec (x->base, p);
  PredictOptions o = {.only_memory = memory};
  Prediction r;
  if (!spec_check (&s, NULL, NULL) || !predict (&s, x->cache, &o, &r, NULL))
    return FALSE;
  take_result (p, &r);
  prediction_clear (&r);
  return TRUE;
}

static gboolean
look_at (Search *x, guint at, GError **error)
{
  PlanPoint *p = point_at (x, at);
  if (!evaluate (x, p, TRUE)) {
    p->state = PLAN_ILLEGAL;
    return TRUE;
  }
  p->state = p->fits ? PLAN_DOMINATED : PLAN_UNFIT;
  if (!p->fits || (!x->opt->exhaustive && needless (x, p)))
    return TRUE;
  if (x->opt->known_only) {
    x->out->missing++;
    return TRUE;
  }
  if (!evaluate (x, p, FALSE)) {
    p->state = PLAN_ILLEGAL;
    return TRUE;
  }
  x->out->made++;
  note_prediction (x, at);
  return x->opt->took == NULL || x->opt->took (x->opt->data, p, error);
}

/* Earlier predictions go first: they are what the others are held against. */
static void
take_known (Search *x)
{
  for (guint i = 0; x->opt->known != NULL && i < x->out->all->len; i++) {
    PlanPoint *p = point_at (x, i);
    if (!x->opt->known (x->opt->data, p))
      continue;
    p->fits = TRUE;
    note_prediction (x, i);
  }
}

static gboolean
stopped (const PlanOptions *opt)
{
  if (opt->stop != NULL && *opt->stop != 0)
    return TRUE;
  /* lint: allow clock: cut short only on request, and then it says so (complete) */
  return opt->deadline != 0 && g_get_monotonic_time () > opt->deadline;
}

static void
tell (const Search *x)
{
  const PlanPoint *best = NULL;
  if (x->opt->progress == NULL || x->done % TELL_EVERY != 0)
    return;
  for (guint i = 0; i < x->edge->len; i++) {
    const PlanPoint *e = point_at (x, g_array_index (x->edge, guint, i));
    if (best == NULL || by_key (e, best, (gpointer)&x->opt->order) < 0)
      best = e;
  }
  x->opt->progress (x->opt->data, x->done, x->out->all->len, best);
}

static gboolean
search (Search *x, GError **error)
{
  guint n = x->out->all->len;
  g_autofree guint *turn = g_new (guint, n + 1);
  for (guint i = 0; i < n; i++)
    turn[i] = i;
  if (n > 1)
    g_qsort_with_data (turn, (gint)n, sizeof *turn, by_bound, x->out->all);
  take_known (x);
  for (guint k = 0; k < n; k++, x->done++) {
    const PlanPoint *p = point_at (x, turn[k]);
    if (!x->opt->exhaustive && p->bound_s > limit_s (x))
      break;
    if (stopped (x->opt)) {
      x->out->complete = FALSE;
      break;
    }
    tell (x);
    if (p->state == PLAN_UNSEEN && !look_at (x, turn[k], error))
      return FALSE;
  }
  return TRUE;
}

/* ---- the answer ---- */

/* By the final best and edge: the same whatever was predicted beyond what was needed. */
static void
settle_point (const Search *x, PlanPoint *p)
{
  if (p->state == PLAN_ILLEGAL || x->opt->exhaustive)
    return;
  if (p->bound_s > limit_s (x))
    p->state = PLAN_SLOW;
  else if (p->state == PLAN_PREDICTED && needless (x, p))
    p->state = PLAN_DOMINATED;
}

static void
count (PlanResult *out, const PlanPoint *p)
{
  out->listed += p->state != PLAN_ILLEGAL;
  out->illegal += p->state == PLAN_ILLEGAL;
  out->n_unfit += p->state == PLAN_UNFIT;
  out->pruned += p->state == PLAN_SLOW || p->state == PLAN_DOMINATED;
  out->predicted += p->state == PLAN_PREDICTED;
}

/* Layouts whose schedule cannot be made are found out only when looked at; those beyond the limit
 * are left as they are, so that the numbers do not depend on how far a run looked. */
static void
settle (Search *x)
{
  PlanResult *out = x->out;
  double slack = x->opt->slack > 0 ? x->opt->slack : EDGE_SLACK;
  for (guint i = 0; i < x->edge->len; i++) {
    PlanPoint *e = point_at (x, g_array_index (x->edge, guint, i));
    e->pareto = x->opt->order == PLAN_BY_MEMORY || e->step_s <= slack * x->fastest_s;
  }
  for (guint i = 0; i < out->all->len; i++) {
    PlanPoint *p = point_at (x, i);
    if (p->state == PLAN_ILLEGAL && !x->opt->exhaustive && p->bound_s > limit_s (x))
      p->state = PLAN_SLOW;
    settle_point (x, p);
    count (out, p);
    if (p->state == PLAN_PREDICTED)
      g_array_append_val (out->points, *p);
    if (p->state == PLAN_UNFIT)
      g_array_append_val (out->unfit, *p);
  }
  g_array_sort_with_data (out->points, by_key, (gpointer)&x->opt->order);
  g_array_sort (out->unfit, by_peak);
  g_array_set_size (out->unfit, MIN (out->unfit->len, UNFIT_KEPT));
}

static void
own_layout (const Spec *base, PredictCache *cache, PlanPoint *own)
{
  Prediction r;
  Spec s = *base;
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
  memset (&s.hetero, 0, sizeof s.hetero);
  if (own->schedule == NULL || !spec_check (&s, NULL, NULL) || !predict (&s, cache, NULL, &r, NULL))
    return;
  own->state = PLAN_PREDICTED;
  take_result (own, &r);
  prediction_clear (&r);
}

/* The points of this part, from the list of all. */
static void
list_part (const Spec *base, const PlanOptions *opt, GArray *all)
{
  plan_list (base, opt->allow, opt->data, all);
  guint64 step = MAX (opt->step, 1), n = 0;
  for (guint64 i = opt->first; step > 1 && i < all->len; i += step)
    g_array_index (all, PlanPoint, n++) = g_array_index (all, PlanPoint, i);
  if (step > 1)
    g_array_set_size (all, (guint)n);
}

static gboolean
nothing_fits (const Spec *base, const PlanResult *out, GError **error)
{
  if (out->unfit->len > 0)
    g_set_error (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT,
                 "no layout of %s fits %" G_GINT64_FORMAT
                 " x %s: the smallest needs %.1f of %.1f GiB a GPU",
                 base->model.name, base->cluster.gpus, gpu_name (base->gpu),
                 (double)g_array_index (out->unfit, PlanPoint, 0).peak_bytes / (1 << 30),
                 (double)gpu_capacity_bytes (base->gpu) / (1 << 30));
  else
    g_set_error (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT,
                 "no layout is legal: %" G_GINT64_FORMAT " GPUs and a batch of %" G_GINT64_FORMAT
                 " sequences do not go together",
                 base->cluster.gpus, base->train.global_batch_sequences);
  return FALSE;
}

gboolean
plan_run (const Spec *base, const PlanOptions *opt, PlanResult *out, GError **error)
{
  g_autoptr (PredictCache) cache = predict_cache_new ();
  g_autoptr (GArray) edge = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autoptr (GArray) best = g_array_new (FALSE, FALSE, sizeof (double));
  memset (out, 0, sizeof *out);
  out->points = g_array_new (FALSE, TRUE, sizeof (PlanPoint));
  out->unfit = g_array_new (FALSE, TRUE, sizeof (PlanPoint));
  out->all = g_array_new (FALSE, TRUE, sizeof (PlanPoint));
  out->complete = TRUE;
  Search x = {base, opt, out, cache, edge, best, INFINITY, 0};
  own_layout (base, cache, &out->own);
  list_part (base, opt, out->all);
  gboolean ok = search (&x, error);
  if (ok) {
    settle (&x);
    ok = out->points->len > 0 || !out->complete || opt->step > 1 || out->missing > 0 ||
         nothing_fits (base, out, error);
  }
  if (!ok)
    plan_clear (out);
  return ok;
}

void
plan_clear (PlanResult *r)
{
  g_clear_pointer (&r->points, g_array_unref);
  g_clear_pointer (&r->unfit, g_array_unref);
  g_clear_pointer (&r->all, g_array_unref);
}

/* ---- why ---- */

static char *
why_slower (const PlanPoint *a, const PlanPoint *b)
{
  guint worst = 0;
  for (guint i = 1; i < PART_COUNT; i++)
    if (b->part_s[i] - a->part_s[i] > b->part_s[worst] - a->part_s[worst])
      worst = i;
  return g_strdup_printf ("slower by %.1f %%: %s %.3g s more",
                          100.0 * (b->step_s / a->step_s - 1.0), part_names[worst],
                          b->part_s[worst] - a->part_s[worst]);
}

char *
plan_why (PlanOrder order, const PlanPoint *a, const PlanPoint *b, gint64 capacity_bytes)
{
  const double gib = 1 << 30;
  double bound_pct = a != NULL && a->step_s > 0 ? 100.0 * (b->bound_s / a->step_s - 1.0) : 0;
  if (b->state == PLAN_UNFIT || (b->step_s > 0 && !b->fits))
    return g_strdup_printf ("does not fit: %.1f GiB, %.1f too many", (double)b->peak_bytes / gib,
                            (double)(b->peak_bytes - capacity_bytes) / gib);
  if (b->state == PLAN_SLOW)
    return g_strdup_printf ("slower by %.1f %% at least: its compute alone takes %.4g s", bound_pct,
                            b->bound_s);
  if (b->state == PLAN_DOMINATED)
    return g_strdup_printf ("slower by %.1f %% at least, without less memory than a layout that is "
                            "as fast",
                            bound_pct);
  if (b->state != PLAN_PREDICTED || a == NULL || a == b)
    return g_strdup (b->state == PLAN_UNSEEN ? "not looked at" : "");
  if (order == PLAN_BY_MEMORY && b->peak_bytes > a->peak_bytes)
    return g_strdup_printf ("%.2f GiB more", (double)(b->peak_bytes - a->peak_bytes) / gib);
  if (b->step_s > a->step_s)
    return why_slower (a, b);
  return g_strdup (b->step_s < a->step_s ? "faster" : "as fast");
}
