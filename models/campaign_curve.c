/* The best interval, the curve about it, and what other changes would buy. */
#include "campaign_int.h"

#include "reliability.h"

#include <math.h>
#include <string.h>

/* Half a point of goodput is what is called flat: less than campaigns differ by chance. */
static const double flat_loss = 0.005;

/* Blocking time of a save of the first level, the failures that matter to it, and what the
 * first-order rules make of them. */
static double
first_guess (const JobSpec *j)
{
  double mtbf = job_mtbf_s (j);
  double block = 0.0;
  for (guint i = 0; i < j->ckpt.n_levels; i++)
    block += j->ckpt.level[i].block_s / j->ckpt.level[i].every;
  if (!isfinite (mtbf))
    return j->ckpt.interval_s > 0.0 ? j->ckpt.interval_s : 3600.0;
  /* A save that hardly blocks is limited by its write, which must be done before the next. */
  double guess = rel_interval_exact (fmax (block, 1e-3), mtbf);
  return fmax (guess, j->ckpt.level[0].persist_s);
}

/* goodput[replica] at an interval. */
static gboolean
sample (const JobSpec *j, double interval_s, guint replicas, guint64 seed, double *goodput,
        GError **error)
{
  for (guint i = 0; i < replicas; i++) {
    CampaignRun run;
    if (!campaign_run_one (j, interval_s, seed, i, &run, error))
      return FALSE;
    goodput[i] = run.elapsed_s > 0.0 ? run.work_s / run.elapsed_s : 0.0;
  }
  return TRUE;
}

/* Top of the parabola in log interval by least squares over points lo … hi of a curve; clamped to
 * the points. */
static double
parabola_top (const double *x, const double *y, guint lo, guint hi)
{
  double s[5] = {0}, b[3] = {0}, origin = 0.5 * (x[lo] + x[hi]);
  for (guint i = lo; i <= hi; i++) {
    double u = x[i] - origin, p = 1.0;
    for (guint k = 0; k < 5; k++, p *= u) {
      s[k] += p;
      if (k < 3)
        b[k] += p * y[i];
    }
  }
  /* Cramer's rule for [s0 s1 s2; s1 s2 s3; s2 s3 s4] c = b. */
  double d = s[0] * (s[2] * s[4] - s[3] * s[3]) - s[1] * (s[1] * s[4] - s[3] * s[2]) +
             s[2] * (s[1] * s[3] - s[2] * s[2]);
  double c1 = s[0] * (b[1] * s[4] - s[3] * b[2]) - b[0] * (s[1] * s[4] - s[3] * s[2]) +
              s[2] * (s[1] * b[2] - b[1] * s[2]);
  double c2 = s[0] * (s[2] * b[2] - b[1] * s[3]) - s[1] * (s[1] * b[2] - b[1] * s[2]) +
              b[0] * (s[1] * s[3] - s[2] * s[2]);
  if (d == 0.0 || c2 / d >= 0.0)
    return y[lo] > y[hi] ? x[lo] : x[hi];
  return CLAMP (origin - 0.5 * c1 / c2, x[lo], x[hi]);
}

static guint
argmax (const double *y, guint n)
{
  guint best = 0;
  for (guint i = 1; i < n; i++)
    if (y[i] > y[best])
      best = i;
  return best;
}

enum { BLOCKS = 10 };

/* Optimum of the mean curve, and its jackknife error over blocks of replicas. */
static void
simulated_optimum (const double *x, const double *goodput, guint n, guint replicas,
                   IntervalCurve *out)
{
  double y[CURVE_POINTS], all = 0.0, tops[BLOCKS], mean = 0.0, v = 0.0;
  guint blocks = MIN ((guint)BLOCKS, replicas), lo = 0, hi = 0;
  for (guint left_out = 0; left_out <= blocks; left_out++) {
    /* The first round leaves none out. */
    for (guint k = 0; k < n; k++) {
      double sum = 0.0;
      guint count = 0;
      for (guint i = 0; i < replicas; i++)
        if (left_out == 0 || i % blocks != left_out - 1) {
          sum += goodput[k * replicas + i];
          count++;
        }
      y[k] = count > 0 ? sum / count : 0.0;
    }
    if (left_out == 0) {
      guint best = argmax (y, n);
      lo = best > 4 ? best - 4 : 0;
      hi = MIN (best + 4, n - 1);
      all = parabola_top (x, y, lo, hi);
    } else {
      tops[left_out - 1] = parabola_top (x, y, lo, hi);
      mean += tops[left_out - 1] / blocks;
    }
  }
  for (guint i = 0; i < blocks; i++)
    v += (tops[i] - mean) * (tops[i] - mean);
  double error = blocks > 1 ? sqrt (v * (blocks - 1.0) / blocks) : NAN;
  out->best_s = exp (all);
  out->best_lo_s = exp (all - 2.262 * error); /* t, 9 degrees of freedom */
  out->best_hi_s = exp (all + 2.262 * error);
}

/* The mean curve between its points, linear in log interval. */
static double
curve_at (const IntervalCurve *c, double interval_s)
{
  guint i = 0;
  while (i + 2 < c->n && c->point[i + 1].interval_s < interval_s)
    i++;
  const CurvePoint *a = &c->point[i], *b = &c->point[i + 1];
  double f = log (interval_s / a->interval_s) / log (b->interval_s / a->interval_s);
  return a->goodput.mean + CLAMP (f, 0.0, 1.0) * (b->goodput.mean - a->goodput.mean);
}

static void
simulated_band (IntervalCurve *c)
{
  c->best_goodput = curve_at (c, c->best_s);
  for (guint i = 0; i < c->n; i++)
    c->best_goodput = fmax (c->best_goodput, c->point[i].goodput.mean);
  double floor_eta = c->best_goodput - flat_loss;
  const double step = 1.01;
  c->flat_lo_s = c->flat_hi_s = c->best_s;
  while (c->flat_lo_s / step > c->point[0].interval_s &&
         curve_at (c, c->flat_lo_s / step) >= floor_eta)
    c->flat_lo_s /= step;
  while (c->flat_hi_s * step < c->point[c->n - 1].interval_s &&
         curve_at (c, c->flat_hi_s * step) >= floor_eta)
    c->flat_hi_s *= step;
  c->half = curve_at (c, c->best_s / 2.0);
  c->twice = curve_at (c, c->best_s * 2.0);
}

static void
exact_optimum (const JobSpec *j, IntervalCurve *c)
{
  double mtbf = job_mtbf_s (j), block = j->ckpt.level[0].block_s;
  double restart = job_restart_s (j), down = job_down_s (j);
  c->exact = TRUE;
  c->best_s = c->best_lo_s = c->best_hi_s = rel_interval_exact (block, mtbf);
  c->best_goodput = job_exact_goodput (j, c->best_s);
  rel_flat_band (block, restart, down, mtbf, flat_loss, &c->flat_lo_s, &c->flat_hi_s);
  c->half = job_exact_goodput (j, c->best_s / 2.0);
  c->twice = job_exact_goodput (j, c->best_s * 2.0);
}

enum { MOVE = 8, MOVES = 16 }; /* two octaves at a time, 32 in all */

/* The intervals that make sense: a step at least, the whole run at most. */
static void
search_limits (const JobSpec *j, double guess, double *least, double *most)
{
  const double shortest_s = 0.1; /* where not even the step is known */
  double length = j->days * 86400.0;
  if (j->work_s > 0.0)
    length = length > 0.0 ? fmin (length, j->work_s) : j->work_s;
  *least = fmin (j->step_time_s > 0.0 ? j->step_time_s : shortest_s, guess / 8.0);
  *most = fmax (length, guess * 8.0);
}

/* Points first … first + n - 1 of the curve. */
static gboolean
sample_points (const JobSpec *j, guint replicas, guint64 seed, guint first, guint n,
               double *goodput, IntervalCurve *out, GError **error)
{
  for (guint k = first; k < first + n; k++) {
    CurvePoint *p = &out->point[k];
    if (!sample (j, p->interval_s, replicas, seed, goodput + (gsize)k * replicas, error))
      return FALSE;
    p->goodput = estimate_clamp (estimate_of (goodput + (gsize)k * replicas, replicas));
  }
  return TRUE;
}

static double
octaves (guint points)
{
  return exp2 (6.0 * points / (CURVE_POINTS - 1.0));
}

/* Moves the points until the best is none of the ends, or the limit is reached. */
static gboolean
bracket (const JobSpec *j, guint replicas, guint64 seed, double least, double most, double *goodput,
         IntervalCurve *out, GError **error)
{
  const gsize kept = CURVE_POINTS - MOVE;
  for (guint moves = 0;; moves++) {
    guint best = 0;
    for (guint k = 1; k < out->n; k++)
      if (out->point[k].goodput.mean > out->point[best].goodput.mean)
        best = k;
    out->rises = best == 0 ? -1 : best == out->n - 1 ? 1 : 0;
    double low = out->point[0].interval_s, high = out->point[out->n - 1].interval_s;
    if (out->rises == 0 || moves == MOVES || (out->rises < 0 ? low <= least : high >= most))
      return TRUE;
    gboolean up = out->rises > 0;
    memmove (&out->point[up ? 0 : MOVE], &out->point[up ? MOVE : 0], kept * sizeof *out->point);
    memmove (goodput + (up ? 0 : (gsize)MOVE * replicas),
             goodput + (up ? (gsize)MOVE * replicas : 0), kept * replicas * sizeof *goodput);
    for (guint k = 0; k < MOVE; k++)
      out->point[up ? (guint)kept + k : k].interval_s =
          up ? high * octaves (k + 1) : low / octaves (MOVE - k);
    if (!sample_points (j, replicas, seed, up ? (guint)kept : 0, MOVE, goodput, out, error))
      return FALSE;
  }
}

gboolean
campaign_interval_curve (const JobSpec *j, guint replicas, guint64 seed, IntervalCurve *out,
                         GError **error)
{
  memset (out, 0, sizeof *out);
  double guess = first_guess (j), mtbf = job_mtbf_s (j), block = j->ckpt.level[0].block_s;
  gboolean exact = job_is_exponential (j) && isfinite (mtbf) && block > 0.0;
  g_autofree double *goodput = g_new (double, (gsize)CURVE_POINTS *replicas);
  double x[CURVE_POINTS];
  out->n = CURVE_POINTS;
  double least, most;
  search_limits (j, guess, &least, &most);
  /* First from an eighth to eight times the guess. */
  for (guint k = 0; k < out->n; k++)
    out->point[k].interval_s = guess / 8.0 * octaves (k);
  if (!sample_points (j, replicas, seed, 0, out->n, goodput, out, error) ||
      (!exact && !bracket (j, replicas, seed, least, most, goodput, out, error)))
    return FALSE;
  for (guint k = 0; k < out->n; k++) {
    CurvePoint *p = &out->point[k];
    x[k] = log (p->interval_s);
    p->exact = exact ? job_exact_goodput (j, p->interval_s) : -1.0;
  }
  if (isfinite (mtbf) && block > 0.0) {
    out->young_s = rel_interval_young (block, mtbf);
    out->daly_s = rel_interval_daly_higher (block, mtbf);
  }
  if (exact) {
    exact_optimum (j, out);
  } else {
    simulated_optimum (x, goodput, out->n, replicas, out);
    if (out->rises != 0) {
      out->best_s = out->point[out->rises < 0 ? 0 : out->n - 1].interval_s;
      out->best_lo_s = out->best_hi_s = NAN;
    }
    simulated_band (out);
  }
  return TRUE;
}

/* ---- sensitivity ---- */

static void
scale_detection (JobSpec *j, double by)
{
  for (guint i = 0; i < FAULT_COUNT; i++) {
    Dist *d = &j->faults.cause[i].detect;
    *d = dist_make (d->kind, d->mean_s * by, d->shape);
  }
}

static void
scale_storage (JobSpec *j, double by)
{
  for (guint i = 0; i < j->ckpt.n_levels; i++) {
    CkptLevel *l = &j->ckpt.level[i];
    if (l->survives != CKPT_ALL)
      continue;
    if (l->persist_s > 0.0)
      l->persist_s /= by;
    else
      l->block_s /= by;
    l->restore_s /= by;
  }
}

static void
scale_restart (JobSpec *j, double by)
{
  j->requeue_s *= by;
  j->swap_s *= by;
  j->init_s *= by;
  j->warmup_s *= by;
  if (j->in_place_s >= 0.0)
    j->in_place_s *= by;
}

static void
scale_failures (JobSpec *j, double by)
{
  for (guint i = 0; i < FAULT_COUNT; i++) {
    FaultCauseSpec *c = &j->faults.cause[i];
    c->rate *= by;
    if (c->own_process)
      c->own_gap = dist_make (c->own_gap.kind, c->own_gap.mean_s / by, c->own_gap.shape);
  }
}

static gboolean
change (JobSpec *j, guint which, const char **what)
{
  static const char *const names[] = {
      "detection halved",      "storage twice as fast",
      "restart halved",        "half as many failures",
      "interval halved",       "interval doubled",
      "twice the spare nodes", "stragglers noticed in half the time"};
  *what = names[which];
  switch (which) {
  case 0:
    scale_detection (j, 0.5);
    return job_down_s (j) > 0.0;
  case 1:
    scale_storage (j, 2.0);
    return TRUE;
  case 2:
    scale_restart (j, 0.5);
    return TRUE;
  case 3:
    scale_failures (j, 0.5);
    return j->faults.trace == NULL;
  case 4:
    j->ckpt.interval_s *= 0.5;
    return TRUE;
  case 5:
    j->ckpt.interval_s *= 2.0;
    return TRUE;
  case 6:
    j->hot_spares = MAX (2 * j->hot_spares, 1);
    j->cold_spares *= 2;
    return j->tracked;
  default:
    break;
  }
  Dist *d = &j->faults.cause[FAULT_STRAGGLER].detect;
  *d = dist_make (d->kind, d->mean_s * 0.5, d->shape);
  return j->faults.cause[FAULT_STRAGGLER].rate > 0.0;
}

gboolean
campaign_sensitivity (const JobSpec *j, guint replicas, guint64 seed, Sensitivity *out, guint *n,
                      GError **error)
{
  g_autofree double *base = g_new (double, replicas), *with = g_new (double, replicas);
  *n = 0;
  if (!sample (j, 0.0, replicas, seed, base, error))
    return FALSE;
  for (guint k = 0; k < SENSITIVITIES; k++) {
    JobSpec other;
    job_copy (&other, j);
    Sensitivity *s = &out[*n];
    *s = (Sensitivity){0};
    gboolean applies = change (&other, k, &s->what);
    gboolean ok = !applies || sample (&other, 0.0, replicas, seed, with, error);
    if (applies && ok) {
      for (guint i = 0; i < replicas; i++)
        with[i] -= base[i];
      s->gain = estimate_of (with, replicas);
      if (job_is_exponential (&other) && isfinite (job_mtbf_s (&other)))
        s->best_interval_s = rel_interval_exact (other.ckpt.level[0].block_s, job_mtbf_s (&other));
      (*n)++;
    }
    job_clear (&other);
    if (!ok)
      return FALSE;
  }
  return TRUE;
}
