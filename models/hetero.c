#include "hetero.h"

#include <stdlib.h>
#include <string.h>

#include "exec.h"
#include "fold.h"
#include "unfold.h"

#define SLOWEST_SHARE 0.03

const char *const hetero_cause_names[] = {"slow_gpus",  "second_gpu", "spread",  "jitter",
                                          "data_stall", "gc_pause",   "slowest", NULL};

gboolean
hetero_wanted (const Spec *s)
{
  const HeteroSpec *h = &s->hetero;
  return h->n_slow > 0 || h->spread > 0 || h->stragglers.share > 0 || h->second != NULL ||
         h->jitter > 0 || h->stall_probability > 0 || h->pause_every_steps > 0 || h->unfold;
}

static gboolean
is_random (const HeteroSpec *h)
{
  return h->spread > 0 || h->jitter > 0 || h->stall_probability > 0 || h->pause_every_steps > 0;
}

/* ---- what each rank is ---- */

typedef struct {
  double *scale;
  guint32 *colour;
  guint8 *block;
} Ranks;

/* Factors that GPUs keep. A GPU's draws do not depend on how many there are of other kinds. */
static void
draw_speeds (Ranks *k, const Spec *s)
{
  const HeteroSpec *h = &s->hetero;
  SimRng which = sim_rng_stream (s->run.seed, 0, "stragglers", 0);
  SimRng spread = sim_rng_stream (s->run.seed, 0, "spread of speeds", 0);
  for (gint64 r = 0; r < s->cluster.gpus; r++) {
    if (h->stragglers.share > 0 && sim_rng_uniform (&which) < h->stragglers.share) {
      k->scale[r] *= h->stragglers.factor;
      k->colour[r] |= (guint32)1 << 31;
    }
    if (h->spread > 0)
      k->scale[r] *= sim_rng_lognormal (&spread, 0.0, h->spread);
  }
}

static int
slower_first (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* The slowest few run at the ideal speed; of equals all. */
static void
fix_slowest_ranks (Ranks *k, gsize n)
{
  gsize few = MAX ((gsize)((double)n * SLOWEST_SHARE), 1);
  g_autofree double *sorted = g_memdup2 (k->scale, n * sizeof *sorted);
  qsort (sorted, n, sizeof *sorted, slower_first);
  double limit = MAX (sorted[few - 1], 1.0);
  for (gsize r = 0; r < n; r++)
    if (k->scale[r] >= limit) {
      k->scale[r] = 1.0;
      k->colour[r] = 0;
    }
}

static void
ranks_init (Ranks *k, const Spec *s, gboolean fix_slowest)
{
  const HeteroSpec *h = &s->hetero;
  gsize n = (gsize)s->cluster.gpus;
  k->scale = g_new (double, n);
  k->colour = g_new0 (guint32, n);
  k->block = g_new0 (guint8, n);
  for (gsize r = 0; r < n; r++)
    k->scale[r] = 1.0;
  for (guint i = 0; i < h->n_slow; i++)
    for (gint64 r = h->slow[i].first; r <= h->slow[i].last; r++) {
      k->scale[r] *= h->slow[i].factor;
      k->colour[r] = k->colour[r] * (h->n_slow + 1) + i + 1; /* which entries apply, in order */
    }
  draw_speeds (k, s);
  if (fix_slowest)
    fix_slowest_ranks (k, n);
  for (gint64 r = h->second_first; h->second != NULL && r <= h->second_last; r++)
    k->block[r] = 1;
}

static void
ranks_clear (Ranks *k)
{
  g_free (k->scale);
  g_free (k->colour);
  g_free (k->block);
}

static ProgramSet *
all_programs (const Spec *s, const SchedTable *t, const StageLayers *sl, const Ranks *k,
              GError **error)
{
  ProgramSet *set = compile_step (s, t, sl, NULL, error);
  if (set == NULL)
    return NULL;
  if (s->hetero.second != NULL) {
    Spec other = *s; /* borrows everything */
    other.gpu = s->hetero.second;
    ProgramSet *more = compile_step (&other, t, sl, NULL, error);
    if (more == NULL) {
      program_set_free (set);
      return NULL;
    }
    for (guint i = 0; i < set->n_programs * set->n_streams; i++)
      if (set->first_op[i + 1] - set->first_op[i] != more->first_op[i + 1] - more->first_op[i]) {
        g_set_error (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT,
                     "the second type of GPU would run other operations than the first (one of "
                     "them is bound by the host, the other is not)");
        program_set_free (more);
        program_set_free (set);
        return NULL;
      }
    unfold_add_block (set, more);
  }
  return unfold_programs (set, s, k->block);
}

/* ---- chance ---- */

static int
by_place (const void *a, const void *b)
{
  const ExecDelay *x = a, *y = b;
  if (x->rank != y->rank)
    return x->rank < y->rank ? -1 : 1;
  return (x->op > y->op) - (x->op < y->op);
}

static SimTime
ticks (double seconds)
{
  SimTime t = 0;
  gboolean ok = sim_time_from_s (seconds, SIM_TICKS_PS, &t);
  g_assert (ok);
  return t;
}

/* Stalls before the first operation, pauses at any, of one step. */
static GArray *
draw_delays (const Spec *s, const ProgramSet *set, guint step)
{
  const HeteroSpec *h = &s->hetero;
  GArray *d = g_array_new (FALSE, FALSE, sizeof (ExecDelay));
  SimRng stall = sim_rng_stream (s->run.seed, step, "data stall", 0);
  SimRng pause = sim_rng_stream (s->run.seed, step, "collection pause", 0);
  for (guint r = 0; r < set->n_ranks; r++) {
    guint n = program_ops_of (set, set->rank_program[r], STREAM_COMPUTE);
    if (h->stall_probability > 0 && sim_rng_uniform (&stall) < h->stall_probability) {
      ExecDelay e = {r, 0, ticks (h->stall_s)};
      g_array_append_val (d, e);
    }
    if (h->pause_every_steps > 0 && sim_rng_uniform (&pause) * (double)h->pause_every_steps < 1.0) {
      ExecDelay e = {r, (guint32)sim_rng_below (&pause, n), ticks (h->pause_s)};
      if (d->len > 0 && e.op == 0 && g_array_index (d, ExecDelay, d->len - 1).rank == r)
        g_array_index (d, ExecDelay, d->len - 1).extra += e.extra;
      else
        g_array_append_val (d, e);
    }
  }
  if (d->len > 1)
    qsort (d->data, d->len, sizeof (ExecDelay), by_place);
  return d;
}

/* ---- runs ---- */

static void
tell (const ProgramSet *set, const ExecResult *res, guint rank, StepTimes *out)
{
  out->end = res->end;
  out->last_rank = rank;
  out->operations = res->operations;
  out->fingerprint = res->fingerprint;
  breakdown_compute (set, res, rank, STREAM_COMPUTE, &out->breakdown);
}

static gboolean
run_folded (const ProgramSet *all, const Ranks *k, HeteroResult *result, StepTimes *out,
            GError **error)
{
  Fold f;
  ExecResult res;
  fold_init (&f, all, k->colour);
  g_autofree double *scale = g_new (double, f.n_classes);
  for (guint c = 0; c < f.n_classes; c++)
    scale[c] = k->scale[f.representative[c]];
  ExecOptions o = {.rank_scale = scale};
  gboolean ok = exec_run_fast_with (f.set, &o, &res, error);
  if (ok) {
    tell (f.set, &res, res.last_rank, out);
    result->simulated = f.n_classes;
    result->folded = TRUE;
    result->steps = 1;
    result->mean_s = result->min_s = result->max_s = sim_time_to_s (res.end, SIM_TICKS_PS);
    exec_result_clear (&res);
  }
  fold_clear (&f);
  return ok;
}

static gboolean
run_once (const Spec *s, const ProgramSet *all, const Ranks *k, guint step, const guint8 *mask,
          ExecResult *res, GError **error)
{
  SimOptions so = {.ticks_per_s = SIM_TICKS_PS,
                   .seed = s->run.seed,
                   .run = step,
                   .max_events = s->run.max_events,
                   .horizon = SIM_TIME_MAX,
                   .shuffle_ties = s->run.shuffle_ties};
  g_autoptr (GArray) delays = draw_delays (s, all, step);
  ExecOptions o = {.rank_scale = k->scale,
                   .jitter = s->hetero.jitter,
                   .delays = (const ExecDelay *)(void *)delays->data,
                   .n_delays = delays->len,
                   .record = TRUE,
                   .record_ranks = mask};
  gboolean exact = s->run.exact_events || s->run.shuffle_ties || s->run.max_events > 0;
  if (!exact && exec_lean_serves (all))
    return exec_run_lean (all, &o, s->run.seed, step, res, error);
  g_autoptr (SimEngine) engine = sim_engine_new (&so);
  return exec_run_events (all, engine, &o, res, error);
}

static gboolean
run_unfolded (const Spec *s, const ProgramSet *all, const Ranks *k, guint reference,
              HeteroResult *result, StepTimes *out, GError **error)
{
  guint steps = (guint)MAX (s->hetero.steps, 1);
  double sum = 0;
  /* of the timeline only the reference rank and its peers are kept */
  g_autofree guint8 *mask = g_new0 (guint8, all->n_ranks);
  mask[reference] = 1;
  for (guint i = 0; i < all->n_peers; i++)
    mask[all->peers[(gsize)reference * all->n_peers + i]] = 1;
  for (guint i = 0; i < steps; i++) {
    ExecResult res;
    if (!run_once (s, all, k, i, mask, &res, error))
      return FALSE;
    double t = sim_time_to_s (res.end, SIM_TICKS_PS);
    if (i == 0)
      tell (all, &res, reference, out);
    sum += t;
    result->min_s = i == 0 ? t : MIN (result->min_s, t);
    result->max_s = MAX (result->max_s, t);
    exec_result_clear (&res);
  }
  result->mean_s = sum / steps;
  result->steps = steps;
  result->simulated = all->n_ranks;
  result->folded = FALSE;
  return TRUE;
}

static gboolean
run_steps (const Spec *s, const SchedTable *t, const StageLayers *sl, guint reference_stage,
           gboolean fix_slowest, HeteroResult *result, StepTimes *out, GError **error)
{
  Ranks k;
  ranks_init (&k, s, fix_slowest);
  g_autoptr (ProgramSet) all = all_programs (s, t, sl, &k, error);
  gboolean ok = all != NULL;
  if (ok && !is_random (&s->hetero) && !s->hetero.unfold) {
    ok = run_folded (all, &k, result, out, error);
  } else if (ok) {
    guint r = 0;
    while (all->rank_program[r] % s->parallel.pp != reference_stage)
      r++;
    ok = run_unfolded (s, all, &k, r, result, out, error);
  }
  ranks_clear (&k);
  return ok;
}

/* FALSE: it is not there. */
static gboolean
take_away (HeteroSpec *h, HeteroCause cause)
{
  HeteroSpec was = *h;
  switch (cause) {
  case CAUSE_SLOW:
    h->n_slow = 0;
    h->stragglers.share = 0;
    return was.n_slow > 0 || was.stragglers.share > 0;
  case CAUSE_SECOND:
    h->second = NULL;
    return was.second != NULL;
  case CAUSE_SPREAD:
    h->spread = 0;
    return was.spread > 0;
  case CAUSE_JITTER:
    h->jitter = 0;
    return was.jitter > 0;
  case CAUSE_STALL:
    h->stall_probability = 0;
    return was.stall_probability > 0;
  case CAUSE_PAUSE:
    h->pause_every_steps = 0;
    return was.pause_every_steps > 0;
  case CAUSE_SLOWEST:
    return was.n_slow > 0 || was.stragglers.share > 0 || was.spread > 0;
  case HETERO_CAUSES:
    break;
  }
  g_assert_not_reached ();
}

static gboolean
run_without (const Spec *s, const SchedTable *t, const StageLayers *sl, guint reference_stage,
             HeteroResult *result, GError **error)
{
  for (guint cause = 0; cause < HETERO_CAUSES; cause++) {
    Spec other = *s; /* borrows everything */
    HeteroResult one = {0};
    StepTimes unused;
    if (!take_away (&other.hetero, (HeteroCause)cause))
      continue;
    one.mean_s = result->healthy_s;
    if (hetero_wanted (&other) &&
        !run_steps (&other, t, sl, reference_stage, cause == CAUSE_SLOWEST, &one, &unused, error))
      return FALSE;
    result->without_s[cause] = one.mean_s;
  }
  return TRUE;
}

gboolean
hetero_run (const Spec *s, const SchedTable *t, const StageLayers *sl, double healthy_s,
            guint reference_stage, HeteroResult *result, StepTimes *out, GError **error)
{
  memset (result, 0, sizeof *result);
  result->healthy_s = healthy_s;
  return run_steps (s, t, sl, reference_stage, FALSE, result, out, error) &&
         (!s->hetero.what_if || run_without (s, t, sl, reference_stage, result, error));
}
