#include "fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

/* Splitmix64 (Steele, Lea, Flood 2014): a stream per seed, enough for resampling. */
static guint64
next_random (guint64 *state)
{
  guint64 z = (*state += G_GUINT64_CONSTANT (0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static int
compare_doubles (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double
fit_quantile (double *v, guint n, double q)
{
  if (n == 0)
    return NAN;
  qsort (v, n, sizeof *v, compare_doubles);
  double at = q * (n - 1);
  guint i = (guint)at;
  return i + 1 < n ? v[i] + (at - i) * (v[i + 1] - v[i]) : v[n - 1];
}

double
fit_median (double *v, guint n)
{
  return fit_quantile (v, n, 0.5);
}

/* ---- the loss ---- */

typedef struct {
  const FitProblem *f;
  const guint *index;
  guint n;
  double *predicted; /* scratch */
  double weight_sum;
} Loss;

static double
huber (double r, double d)
{
  double a = fabs (r);
  return a <= d ? 0.5 * r * r : d * (a - 0.5 * d);
}

static double
loss_at (const Loss *l, const double *p)
{
  const FitProblem *f = l->f;
  double sum = 0;
  f->model (p, l->index, l->n, l->predicted, f->user);
  for (guint i = 0; i < l->n; i++) {
    guint k = l->index[i];
    double r = l->predicted[i] > 0 ? log (l->predicted[i] / f->measured[k]) : -50;
    sum += (f->weight != NULL ? f->weight[k] : 1) * huber (r, f->huber);
  }
  return sum / l->weight_sum;
}

static void
loss_init (Loss *l, const FitProblem *f, const guint *index, guint n)
{
  *l = (Loss){f, index, n, g_new (double, MAX (n, 1)), 0};
  for (guint i = 0; i < n; i++)
    l->weight_sum += f->weight != NULL ? f->weight[index[i]] : 1;
}

/* ---- pattern search ---- */

static double
stepped (const FitParam *q, double value, double step)
{
  value = q->scale == FIT_LOG ? value * exp (step) : value + step * (q->max - q->min);
  return CLAMP (value, q->min, q->max);
}

/* One pass over the parameters: each goes where it helps, and its step grows or shrinks. */
static double
explore (const Loss *l, double *p, double *step, double at)
{
  const FitProblem *f = l->f;
  for (guint j = 0; j < f->n_params; j++) {
    double was = p[j], won = at, to = was;
    if (f->params[j].fixed)
      continue;
    for (int side = 1; side >= -1 && won >= at; side -= 2) {
      p[j] = stepped (&f->params[j], was, side * step[j]);
      double v = p[j] == was ? at : loss_at (l, p);
      if (v < won) {
        won = v;
        to = p[j];
        step[j] *= side; /* the side that helped is tried first next time */
      }
    }
    p[j] = to;
    step[j] *= won < at ? 1.5 : 0.5;
    at = won;
  }
  return at;
}

/* The move of the last pass once more. */
static double
extrapolate (const Loss *l, const double *before, double *p, double at)
{
  const FitProblem *f = l->f;
  g_autofree double *ahead = g_new (double, f->n_params);
  for (guint j = 0; j < f->n_params; j++) {
    const FitParam *q = &f->params[j];
    double to = q->scale == FIT_LOG ? p[j] * p[j] / before[j] : 2 * p[j] - before[j];
    ahead[j] = q->fixed ? p[j] : CLAMP (to, q->min, q->max);
  }
  double v = loss_at (l, ahead);
  if (v >= at)
    return at;
  memcpy (p, ahead, f->n_params * sizeof *p);
  return v;
}

static double
search (const Loss *l, double first_step, guint max_rounds, double *p)
{
  static const double smallest = 5e-4; /* of a factor or of the range: below what data can tell */
  guint n = l->f->n_params;
  g_autofree double *step = g_new (double, n), *before = g_new (double, n);
  double at = loss_at (l, p);
  for (guint j = 0; j < n; j++)
    step[j] = first_step;
  for (guint round = 0; round < max_rounds; round++) {
    double largest = 0, was = at;
    memcpy (before, p, n * sizeof *p);
    at = explore (l, p, step, at);
    if (at < was)
      at = extrapolate (l, before, p, at);
    for (guint j = 0; j < n; j++)
      if (!l->f->params[j].fixed)
        largest = MAX (largest, fabs (step[j]));
    if (largest < smallest)
      break;
  }
  return at;
}

static const double no_gain = 1e-3; /* of the loss */

static void
check_problem (const FitProblem *f)
{
  g_assert (f->huber > 0 && f->model != NULL);
  for (guint j = 0; j < f->n_params; j++) {
    const FitParam *q = &f->params[j];
    g_assert (q->min <= q->max && (q->scale != FIT_LOG || q->min > 0));
  }
}

double
fit_minimise (const FitProblem *f, const guint *index, guint n, guint max_rounds, double *best)
{
  Loss l;
  check_problem (f);
  for (guint j = 0; j < f->n_params; j++) {
    const FitParam *q = &f->params[j];
    best[j] = q->fixed ? q->start : CLAMP (q->start, q->min, q->max);
  }
  if (n == 0)
    return 0;
  loss_init (&l, f, index, n);
  g_autofree double *start = g_memdup2 (best, f->n_params * sizeof *best);
  double first = loss_at (&l, best), at = search (&l, 0.2, max_rounds, best);
  /* Small steps again from there, all of the same size: a search that has narrowed one step early
   * may have left a valley. */
  at = search (&l, 0.05, max_rounds, best);
  /* A gain that the samples cannot tell is none: so a fit that starts from what a fit has found
   * comes back to it, number by number. */
  if (at > first * (1 - no_gain)) {
    memcpy (best, start, f->n_params * sizeof *best);
    at = first;
  }
  g_free (l.predicted);
  return at;
}

guint
fit_fix_unseen (FitProblem *f, const guint *index, guint n, guint min_samples)
{
  g_autofree double *p = g_new (double, MAX (f->n_params, 1));
  g_autofree double *at = g_new (double, MAX (n, 1)), *moved = g_new (double, MAX (n, 1));
  guint left = 0;
  for (guint j = 0; j < f->n_params; j++)
    p[j] = f->params[j].start;
  f->model (p, index, n, at, f->user);
  for (guint j = 0; j < f->n_params; j++) {
    FitParam *q = &f->params[j];
    guint felt = 0;
    if (q->fixed)
      continue;
    for (int side = -1; side <= 1; side += 2) {
      p[j] = stepped (q, q->start, side * (q->scale == FIT_LOG ? 1.5 : 0.3));
      f->model (p, index, n, moved, f->user);
      guint k = 0;
      for (guint i = 0; i < n; i++)
        k += fabs (moved[i] / at[i] - 1) > 0.01;
      felt = MAX (felt, k);
    }
    p[j] = q->start;
    q->fixed = felt < min_samples;
    left += !q->fixed;
  }
  return left;
}

/* ---- intervals ---- */

void
fit_bootstrap (const FitProblem *f, const guint *index, guint n, const double *best,
               guint resamples, guint max_m, guint64 seed, double *lo, double *hi)
{
  guint m = MIN (n, max_m), k = f->n_params;
  g_autofree guint *pick = g_new (guint, MAX (m, 1));
  g_autofree double *found = g_new (double, MAX (k * resamples, 1)),
                    *p = g_new (double, MAX (k, 1));
  guint64 state = seed;
  memcpy (lo, best, k * sizeof *lo);
  memcpy (hi, best, k * sizeof *hi);
  if (m < 2 || resamples < 2)
    return;
  for (guint b = 0; b < resamples; b++) {
    Loss l;
    for (guint i = 0; i < m; i++)
      pick[i] = index[next_random (&state) % n];
    loss_init (&l, f, pick, m);
    memcpy (p, best, k * sizeof *p);
    search (&l, 0.05, 8, p);
    g_free (l.predicted);
    for (guint j = 0; j < k; j++)
      found[j * resamples + b] = p[j];
  }
  double narrower = sqrt ((double)m / n);
  for (guint j = 0; j < k; j++) {
    const FitParam *q = &f->params[j];
    if (q->fixed)
      continue;
    double a = fit_quantile (found + j * resamples, resamples, 0.1);
    double c = fit_quantile (found + j * resamples, resamples, 0.9);
    double mid = fit_quantile (found + j * resamples, resamples, 0.5);
    lo[j] = CLAMP (best[j] + (a - mid) * narrower, q->min, q->max);
    hi[j] = CLAMP (best[j] + (c - mid) * narrower, q->min, q->max);
  }
}

/* ---- residuals ---- */

static double *
residuals (const FitProblem *f, const guint *index, guint n, const double *p)
{
  double *r = g_new (double, MAX (n, 1));
  f->model (p, index, n, r, f->user);
  for (guint i = 0; i < n; i++)
    r[i] = log (r[i] / f->measured[index[i]]);
  return r;
}

void
fit_stats_of (double *r, guint n, FitStats *out)
{
  *out = (FitStats){.n = n};
  out->bias = fit_median (r, n);
  for (guint i = 0; i < n; i++)
    r[i] = fabs (r[i]);
  out->median_abs = fit_median (r, n);
  out->p90_abs = fit_quantile (r, n, 0.9);
  out->max_abs = n > 0 ? r[n - 1] : NAN;
}

void
fit_stats (const FitProblem *f, const guint *index, guint n, const double *p, FitStats *out)
{
  g_autofree double *r = residuals (f, index, n, p);
  guint worst = 0;
  for (guint i = 1; i < n; i++)
    if (fabs (r[i]) > fabs (r[worst]))
      worst = i;
  worst = n > 0 ? index[worst] : 0;
  fit_stats_of (r, n, out);
  out->worst = worst;
}

typedef struct {
  double x, r;
} Point;

static int
compare_points (const void *a, const void *b)
{
  return compare_doubles (&((const Point *)a)->x, &((const Point *)b)->x);
}

gboolean
fit_lack (const FitProblem *f, const guint *index, guint n, const double *p, const double *x,
          guint bins, double limit, FitLack *out)
{
  enum { FEWEST = 8 };
  g_autofree double *r = residuals (f, index, n, p), *part = g_new (double, MAX (n, 1));
  g_autofree Point *points = g_new (Point, MAX (n, 1));
  for (guint i = 0; i < n; i++)
    points[i] = (Point){x[index[i]], r[i]};
  qsort (points, n, sizeof *points, compare_points);
  bins = MIN (bins, n / FEWEST);
  for (guint b = 0; b < bins; b++) {
    guint from = (guint)((guint64)n * b / bins), to = (guint)((guint64)n * (b + 1) / bins);
    for (guint i = from; i < to; i++)
      part[i - from] = points[i].r;
    double bias = fit_median (part, to - from);
    if (fabs (bias) > limit) {
      *out = (FitLack){points[from].x, points[to - 1].x, bias, to - from};
      return TRUE;
    }
  }
  return FALSE;
}

void
fit_split (guint n, double share, guint64 seed, GArray *fit, GArray *held_out)
{
  for (guint i = 0; i < n; i++) {
    guint64 state = seed ^ ((guint64)i * G_GUINT64_CONSTANT (0xd1342543de82ef95));
    double u = (double)(next_random (&state) >> 11) * 0x1p-53;
    g_array_append_val (u < share ? held_out : fit, i);
  }
}

/* ---- linear ---- */

/* Gauss with pivoting on the k active columns; FALSE when singular. */
static gboolean
solve (double a[FIT_MAX_COLUMNS][FIT_MAX_COLUMNS + 1], guint k)
{
  for (guint c = 0; c < k; c++) {
    guint pivot = c;
    for (guint r = c + 1; r < k; r++)
      if (fabs (a[r][c]) > fabs (a[pivot][c]))
        pivot = r;
    if (!(fabs (a[pivot][c]) > 1e-12))
      return FALSE;
    for (guint j = 0; j <= k; j++) {
      double t = a[c][j];
      a[c][j] = a[pivot][j];
      a[pivot][j] = t;
    }
    for (guint r = 0; r < k; r++) {
      double by = r == c ? 0 : a[r][c] / a[c][c];
      for (guint j = c; by != 0 && j <= k; j++)
        a[r][j] -= by * a[c][j];
    }
  }
  return TRUE;
}

/* Weighted least squares of the relative residuals on the active columns. Columns are scaled by
 * their largest relative entry, so that seconds and seconds per byte meet as equals. */
static gboolean
least_squares (const double *x, guint k, const double *y, guint n, const double *w,
               const gboolean *active, double *beta)
{
  double a[FIT_MAX_COLUMNS][FIT_MAX_COLUMNS + 1] = {{0}}, scale[FIT_MAX_COLUMNS] = {0};
  guint used[FIT_MAX_COLUMNS], m = 0;
  for (guint j = 0; j < k; j++) {
    beta[j] = 0;
    if (!active[j])
      continue;
    for (guint i = 0; i < n; i++)
      scale[j] = MAX (scale[j], fabs (x[i * k + j] / y[i]));
    if (scale[j] > 0)
      used[m++] = j;
  }
  for (guint i = 0; i < n; i++)
    for (guint r = 0; r < m; r++) {
      double xr = x[i * k + used[r]] / y[i] / scale[used[r]];
      for (guint c = 0; c < m; c++)
        a[r][c] += w[i] * xr * x[i * k + used[c]] / y[i] / scale[used[c]];
      a[r][m] += w[i] * xr;
    }
  if (m == 0 || !solve (a, m))
    return FALSE;
  for (guint r = 0; r < m; r++)
    beta[used[r]] = a[r][m] / a[r][r] / scale[used[r]];
  return TRUE;
}

gboolean
fit_linear (const double *x, guint k, const double *y, guint n, double huber_at, double *beta)
{
  enum { ROUNDS = 50 };
  gboolean active[FIT_MAX_COLUMNS];
  g_autofree double *w = g_new (double, MAX (n, 1));
  g_assert (k >= 1 && k <= FIT_MAX_COLUMNS && huber_at > 0);
  for (guint j = 0; j < k; j++)
    active[j] = TRUE;
  for (guint i = 0; i < n; i++)
    w[i] = 1;
  if (n < k)
    return FALSE;
  for (guint round = 0; round < ROUNDS; round++) {
    if (!least_squares (x, k, y, n, w, active, beta))
      return FALSE;
    guint most = 0;
    for (guint j = 1; j < k; j++)
      if (beta[j] < beta[most])
        most = j;
    if (beta[most] < 0) { /* one after the other, the most negative first */
      active[most] = FALSE;
      continue;
    }
    for (guint i = 0; i < n; i++) {
      double at = 0;
      for (guint j = 0; j < k; j++)
        at += beta[j] * x[i * k + j];
      double r = fabs (at / y[i] - 1);
      w[i] = r <= huber_at ? 1 : huber_at / r;
    }
  }
  return TRUE;
}
