/* Fits of a law to runs, and a running curve against a law; see law.h.
 *
 * ln N and ln D are taken relative to their means, else A and alpha (B and beta) are almost the
 * same direction (correlation 0.999 on Chinchilla-like runs) and no minimiser gets far. */
#include "law.h"
#include "rng.h"

#include <math.h>
#include <string.h>

#define MAX_ITERATIONS 400
#define EXPONENT_LEAST 1e-3
#define EXPONENT_MOST  5.0
#define VANISHING      (-20.0) /* ln of a term that counts for nothing */

typedef struct {
  gboolean kaplan;
  guint n, p;        /* samples; parameters: 5, kaplan 4 */
  double *x, *y, *l; /* ln N and ln D less their means, ln L */
  double mean_x, mean_y;
} Problem;

/* theta: additive a b e alpha beta: ln L = LSE (a - alpha x, b - beta y, e)
 *        kaplan   a b alpha beta:   ln L = beta LSE ((a - alpha x) / beta, (b - beta y) / beta) */
static double
model (const Problem *pr, const double *th, double x, double y, double *grad)
{
  double beta = th[pr->p - 1], alpha = th[pr->p - 2];
  double scale = pr->kaplan ? beta : 1;
  double t1 = (th[0] - alpha * x) / scale, t2 = (th[1] - beta * y) / scale;
  double t3 = pr->kaplan ? -INFINITY : th[2];
  double top = MAX (MAX (t1, t2), t3);
  double s1 = exp (t1 - top), s2 = exp (t2 - top), s3 = exp (t3 - top), sum = s1 + s2 + s3;
  double lse = top + log (sum);
  s1 /= sum;
  s2 /= sum;
  if (grad != NULL) {
    grad[0] = s1;
    grad[1] = s2;
    if (!pr->kaplan)
      grad[2] = s3 / sum;
    grad[pr->p - 2] = -s1 * x;
    grad[pr->p - 1] = pr->kaplan ? lse - s1 * t1 - s2 * t2 - s2 * y : -s2 * y;
  }
  return scale * lse;
}

static double
huber (double r, double delta)
{
  double a = fabs (r);
  return a <= delta ? r * r / 2 : delta * (a - delta / 2);
}

static double
objective (const Problem *pr, const guint *rows, const double *th, double delta)
{
  double sum = 0;
  for (guint i = 0; i < pr->n; i++) {
    guint k = rows[i];
    sum += huber (pr->l[k] - model (pr, th, pr->x[k], pr->y[k], NULL), delta);
  }
  return sum;
}

static void
clamp (const Problem *pr, double *th)
{
  th[pr->p - 1] = CLAMP (th[pr->p - 1], EXPONENT_LEAST, EXPONENT_MOST);
  th[pr->p - 2] = CLAMP (th[pr->p - 2], EXPONENT_LEAST, EXPONENT_MOST);
  for (guint j = 0; j + 2 < pr->p; j++)
    th[j] = CLAMP (th[j], VANISHING, -3 * VANISHING);
}

/* Solves m x = v by Cholesky, m symmetric p x p, in place; FALSE when m is not positive. */
static gboolean
solve (double m[LAW_FIT_MAX][LAW_FIT_MAX], double *v, guint p)
{
  for (guint i = 0; i < p; i++)
    for (guint j = 0; j <= i; j++) {
      double s = m[i][j];
      for (guint k = 0; k < j; k++)
        s -= m[i][k] * m[j][k];
      if (i == j && !(s > 0))
        return FALSE;
      m[i][j] = i == j ? sqrt (s) : s / m[j][j];
    }
  for (guint i = 0; i < p; i++) {
    for (guint k = 0; k < i; k++)
      v[i] -= m[i][k] * v[k];
    v[i] /= m[i][i];
  }
  for (guint i = p; i-- > 0;) {
    for (guint k = i + 1; k < p; k++)
      v[i] -= m[k][i] * v[k];
    v[i] /= m[i][i];
  }
  return TRUE;
}

/* The weighted normal equations at th; weights min (1, delta / |r|) make Huber of squares. */
static void
normal_equations (const Problem *pr, const guint *rows, const double *th, double delta,
                  double m[LAW_FIT_MAX][LAW_FIT_MAX], double *v)
{
  memset (m, 0, sizeof (double) * LAW_FIT_MAX * LAW_FIT_MAX);
  memset (v, 0, sizeof (double) * LAW_FIT_MAX);
  for (guint i = 0; i < pr->n; i++) {
    double g[LAW_FIT_MAX];
    guint k = rows[i];
    double r = pr->l[k] - model (pr, th, pr->x[k], pr->y[k], g), a = fabs (r);
    double w = a <= delta ? 1 : delta / a;
    for (guint j = 0; j < pr->p; j++) {
      v[j] += w * r * g[j];
      for (guint q = 0; q <= j; q++)
        m[j][q] += w * g[j] * g[q];
    }
  }
}

/* Levenberg and Marquardt on the reweighted squares, from th; returns the objective. */
static double
refine_at (const Problem *pr, const guint *rows, double *th, double delta)
{
  double f = objective (pr, rows, th, delta), lambda = 1e-3;
  guint still = 0;
  for (guint it = 0; it < MAX_ITERATIONS && still < 3 && lambda < 1e12; it++) {
    double m[LAW_FIT_MAX][LAW_FIT_MAX], full[LAW_FIT_MAX][LAW_FIT_MAX], v[LAW_FIT_MAX],
        step[LAW_FIT_MAX], next[LAW_FIT_MAX];
    normal_equations (pr, rows, th, delta, full, v);
    for (;; lambda *= 4) {
      if (lambda >= 1e12)
        break;
      memcpy (m, full, sizeof m);
      memcpy (step, v, sizeof step);
      for (guint j = 0; j < pr->p; j++)
        m[j][j] += lambda * full[j][j] + 1e-14;
      if (!solve (m, step, pr->p))
        continue;
      for (guint j = 0; j < pr->p; j++)
        next[j] = th[j] + step[j];
      clamp (pr, next);
      double g = objective (pr, rows, next, delta);
      if (!(g <= f))
        continue;
      still = f - g <= 1e-11 * f ? still + 1 : 0;
      f = g;
      memcpy (th, next, sizeof (double) * pr->p);
      lambda = MAX (lambda / 10, 1e-9);
      break;
    }
  }
  return f;
}

/* A wide Huber threshold first: the objective is smooth there and its minimum is near. */
static double
refine (const Problem *pr, const guint *rows, double *th, double delta)
{
  for (double d = 0.1; d > 3 * delta; d /= 10)
    refine_at (pr, rows, th, d);
  return refine_at (pr, rows, th, delta);
}

/* ---- starts: for given exponents the form is linear in its other constants ---- */

/* Least squares of 1 on the columns that are in the set; FALSE when one comes out negative. */
static gboolean
nonnegative (double full[LAW_FIT_MAX][LAW_FIT_MAX], const double *rhs, guint set, double *c)
{
  double m[LAW_FIT_MAX][LAW_FIT_MAX], v[LAW_FIT_MAX];
  guint at[3] = {0}, n = 0;
  for (guint j = 0; j < 3; j++)
    if ((set >> j & 1) != 0)
      at[n++] = j;
  for (guint i = 0; i < n; i++) {
    v[i] = rhs[at[i]];
    for (guint j = 0; j <= i; j++)
      m[i][j] = full[MAX (at[i], at[j])][MIN (at[i], at[j])] * (i == j ? 1 + 1e-10 : 1);
  }
  if (!solve (m, v, n))
    return FALSE;
  c[0] = c[1] = c[2] = 0;
  for (guint i = 0; i < n; i++) {
    if (v[i] <= 0)
      return FALSE;
    c[at[i]] = v[i];
  }
  return TRUE;
}

/* The start for given exponents: relative least squares with constants that are not negative. */
static gboolean
start_at (const Problem *pr, const guint *rows, double alpha, double beta, double *th)
{
  static const guint sets[] = {7, 3, 6, 5, 1, 2}; /* bits: A, B, E */
  double m[LAW_FIT_MAX][LAW_FIT_MAX] = {{0}}, rhs[3] = {0}, c[3];
  double power = pr->kaplan ? 1 / beta : 1;
  for (guint i = 0; i < pr->n; i++) {
    guint k = rows[i];
    double l = power * pr->l[k];
    double col[3] = {exp (-alpha * power * pr->x[k] - l), exp (-beta * power * pr->y[k] - l),
                     pr->kaplan ? 0 : exp (-l)};
    for (guint j = 0; j < 3; j++) {
      rhs[j] += col[j];
      for (guint q = 0; q <= j; q++)
        m[j][q] += col[j] * col[q];
    }
  }
  for (guint s = 0; s < G_N_ELEMENTS (sets); s++) {
    if ((pr->kaplan && (sets[s] & 4) != 0) || !nonnegative (m, rhs, sets[s], c))
      continue;
    double most = MAX (MAX (c[0], c[1]), c[2]);
    for (guint j = 0; j < 3; j++)
      c[j] = log (MAX (c[j], 1e-3 * most));
    th[0] = c[0] / power;
    th[1] = c[1] / power;
    if (!pr->kaplan)
      th[2] = c[2];
    th[pr->p - 2] = alpha;
    th[pr->p - 1] = beta;
    clamp (pr, th);
    return TRUE;
  }
  return FALSE;
}

typedef struct {
  double f, th[LAW_FIT_MAX];
} Start;

static int
by_objective (const void *a, const void *b)
{
  double x = ((const Start *)a)->f, y = ((const Start *)b)->f;
  return (x > y) - (x < y);
}

static const double grid[] = {0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.75, 1.0, 1.5};

/* Best of the refined starts in *best; FALSE when no start exists. */
static gboolean
fit_from_grid (const Problem *pr, const guint *rows, double delta, guint starts, LawFit *out,
               Start *best)
{
  Start all[G_N_ELEMENTS (grid) * G_N_ELEMENTS (grid)];
  guint n = 0;
  for (guint i = 0; i < G_N_ELEMENTS (grid); i++)
    for (guint j = 0; j < G_N_ELEMENTS (grid); j++)
      if (start_at (pr, rows, grid[i], grid[j], all[n].th)) {
        all[n].f = objective (pr, rows, all[n].th, MAX (delta, 0.01));
        n++;
      }
  if (n == 0)
    return FALSE;
  qsort (all, n, sizeof all[0], by_objective);
  n = MIN (n, starts);
  for (guint i = 0; i < n; i++)
    all[i].f = refine (pr, rows, all[i].th, delta);
  qsort (all, n, sizeof all[0], by_objective);
  *best = all[0];
  out->n_starts = n;
  for (guint i = 0; i < n; i++)
    out->n_starts_agree += all[i].f <= all[0].f * (1 + 1e-3) + 1e-18;
  return TRUE;
}

/* ---- from theta to the constants of the form ---- */

static void
law_of (const Problem *pr, LawForm form, const double *th, Law *law)
{
  double alpha = th[pr->p - 2], beta = th[pr->p - 1];
  double ln_a = th[0] + alpha * pr->mean_x, ln_b = th[1] + beta * pr->mean_y;
  law->form = form;
  law->alpha = alpha;
  law->beta = beta;
  law->e = pr->kaplan ? 0 : exp (th[2]);
  law->a = exp (ln_a);
  law->b = exp (ln_b);
  law->nc = exp (ln_a / alpha);
  law->dc = exp (ln_b / beta);
}

static void
constants_of (const Law *law, double *v)
{
  const double additive[] = {law->e, law->a, law->b, law->alpha, law->beta};
  const double sum[] = {law->e, law->nc, law->dc, law->alpha, law->beta};
  const double kaplan[] = {law->nc, law->dc, law->alpha, law->beta};
  if (law->form == LAW_KAPLAN)
    memcpy (v, kaplan, sizeof kaplan);
  else
    memcpy (v, law->form == LAW_POWER_SUM ? sum : additive, sizeof sum);
}

static void
law_from_constants (LawForm form, const double *v, Law *law)
{
  law_init (law);
  law->form = form;
  if (form == LAW_KAPLAN) {
    law->nc = v[0];
    law->dc = v[1];
    law->alpha = v[2];
    law->beta = v[3];
    return;
  }
  law->e = v[0];
  law->a = law->nc = v[1];
  law->b = law->dc = v[2];
  law->alpha = v[3];
  law->beta = v[4];
}

/* ---- data ---- */

static int
by_value (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static guint
distinct (const double *v, guint n)
{
  g_autofree double *s = g_new (double, n);
  memcpy (s, v, sizeof *s * n);
  qsort (s, n, sizeof *s, by_value);
  guint d = 1;
  for (guint i = 1; i < n; i++)
    d += s[i] - s[i - 1] > 1e-6; /* of the logarithm */
  return d;
}

static double
correlation (const double *x, const double *y, guint n)
{
  double xx = 0, yy = 0, xy = 0; /* both have mean 0 */
  for (guint i = 0; i < n; i++) {
    xx += x[i] * x[i];
    yy += y[i] * y[i];
    xy += x[i] * y[i];
  }
  return xx > 0 && yy > 0 ? xy / sqrt (xx * yy) : 1;
}

static gboolean
samples_check (const LawSample *s, guint n, guint p, GError **error)
{
  if (n < p + 1) {
    g_set_error (error, LAW_ERROR, LAW_ERROR_DATA,
                 "too few runs for %u constants (found %u; allowed: %u or more)", p, n, p + 1);
    return FALSE;
  }
  for (guint i = 0; i < n; i++) {
    const double v[] = {s[i].params, s[i].tokens, s[i].loss};
    static const char *const names[] = {"params", "tokens", "loss"};
    for (guint j = 0; j < 3; j++)
      if (!isfinite (v[j]) || v[j] <= 0) {
        g_set_error (error, LAW_ERROR, LAW_ERROR_RANGE,
                     "run %u: %s must be positive and finite (found %g; allowed: above 0)", i + 1,
                     names[j], v[j]);
        return FALSE;
      }
  }
  return TRUE;
}

static gboolean
spread_check (const Problem *pr, double corr, GError **error)
{
  static const char *const what[] = {"model sizes", "token counts"};
  const double *v[] = {pr->x, pr->y};
  for (guint j = 0; j < 2; j++) {
    guint d = distinct (v[j], pr->n);
    if (d < 3) {
      g_set_error (error, LAW_ERROR, LAW_ERROR_DATA,
                   "too few different %s to find an exponent (found %u; allowed: 3 or more)",
                   what[j], d);
      return FALSE;
    }
  }
  if (fabs (corr) > 0.9999) {
    g_set_error (error, LAW_ERROR, LAW_ERROR_DATA,
                 "the runs lie on one line of tokens against parameters, which cannot tell the two "
                 "terms apart (found correlation %.6f of their logarithms; allowed: below 0.9999, "
                 "so vary tokens at a fixed size)",
                 corr);
    return FALSE;
  }
  return TRUE;
}

static double
mean (const double *v, guint n)
{
  double sum = 0;
  for (guint i = 0; i < n; i++)
    sum += v[i];
  return sum / n;
}

static gboolean
problem_init (Problem *pr, LawForm form, const LawSample *s, guint n, GError **error)
{
  memset (pr, 0, sizeof *pr);
  pr->kaplan = form == LAW_KAPLAN;
  pr->p = pr->kaplan ? 4 : 5;
  pr->n = n;
  if (!samples_check (s, n, pr->p, error))
    return FALSE;
  pr->x = g_new (double, n);
  pr->y = g_new (double, n);
  pr->l = g_new (double, n);
  for (guint i = 0; i < n; i++) {
    pr->x[i] = log (s[i].params);
    pr->y[i] = log (s[i].tokens);
    pr->l[i] = log (s[i].loss);
  }
  pr->mean_x = mean (pr->x, n);
  pr->mean_y = mean (pr->y, n);
  for (guint i = 0; i < n; i++) {
    pr->x[i] -= pr->mean_x;
    pr->y[i] -= pr->mean_y;
  }
  return TRUE;
}

static void
problem_clear (Problem *pr)
{
  g_free (pr->x);
  g_free (pr->y);
  g_free (pr->l);
}

/* ---- intervals ---- */

/* Between order statistics (type 7), v sorted. */
static double
quantile (const double *v, guint n, double q)
{
  double at = q * (n - 1);
  guint i = MIN ((guint)at, n - 1), j = MIN (i + 1, n - 1);
  return v[i] + (at - i) * (v[j] - v[i]);
}

static void
interval (double *v, guint n, double level, double *lo, double *hi)
{
  qsort (v, n, sizeof *v, by_value);
  *lo = quantile (v, n, (1 - level) / 2);
  *hi = quantile (v, n, (1 + level) / 2);
}

static void
bootstrap (const Problem *pr, const LawFitOptions *opt, double delta, const double *best,
           LawFit *out)
{
  g_autofree guint *rows = g_new (guint, pr->n);
  g_autofree double *x = g_new (double, pr->n), *y = g_new (double, pr->n);
  out->boot = g_new (double, (gsize)opt->bootstrap * out->n_constants);
  for (guint b = 0; b < opt->bootstrap; b++) {
    SimRng rng = sim_rng_stream (opt->seed, 0, "law.fit", b);
    for (guint i = 0; i < pr->n; i++) {
      rows[i] = (guint)sim_rng_below (&rng, pr->n);
      x[i] = pr->x[rows[i]];
      y[i] = pr->y[rows[i]];
    }
    if (distinct (x, pr->n) < 3 || distinct (y, pr->n) < 3)
      continue; /* a resample that leaves an exponent open says nothing */
    double th[LAW_FIT_MAX];
    memcpy (th, best, sizeof th);
    refine (pr, rows, th, delta);
    Law law;
    law_init (&law);
    law_of (pr, out->law.form, th, &law);
    constants_of (&law, out->boot + (gsize)out->n_boot * out->n_constants);
    out->n_boot++;
  }
  g_autofree double *column = g_new (double, MAX (1, out->n_boot));
  for (guint j = 0; j < out->n_constants && out->n_boot > 0; j++) {
    for (guint b = 0; b < out->n_boot; b++)
      column[b] = out->boot[(gsize)b * out->n_constants + j];
    interval (column, out->n_boot, out->level, &out->lo[j], &out->hi[j]);
  }
}

void
law_fit_interval (const LawFit *fit, LawFigure f, gpointer data, double *lo, double *hi)
{
  g_autofree double *v = g_new (double, fit->n_boot + 1);
  guint n = 0;
  for (guint b = 0; b < fit->n_boot; b++) {
    Law law;
    law_from_constants (fit->law.form, fit->boot + (gsize)b * fit->n_constants, &law);
    double x = f (&law, data);
    if (!isnan (x))
      v[n++] = x;
  }
  if (n == 0)
    *lo = *hi = f (&fit->law, data);
  else
    interval (v, n, fit->level, lo, hi);
}

/* ---- residuals ---- */

static double
median (double *v, guint n)
{
  qsort (v, n, sizeof *v, by_value);
  return quantile (v, n, 0.5);
}

static void
residuals (const Problem *pr, const double *th, LawFit *out)
{
  g_autofree double *size = g_new (double, pr->n);
  double squares = 0;
  out->residual = g_new (double, pr->n);
  for (guint i = 0; i < pr->n; i++) {
    double r = pr->l[i] - model (pr, th, pr->x[i], pr->y[i], NULL);
    out->residual[i] = r;
    size[i] = fabs (r);
    squares += r * r;
  }
  out->rms_log = sqrt (squares / pr->n);
  double sd = 1.4826 * median (size, pr->n); /* of a normal distribution */
  for (guint i = 0; i < pr->n; i++)
    out->n_outliers += sd > 1e-9 && fabs (out->residual[i]) > 5 * sd;
}

gboolean
law_fit (const LawSample *s, guint n, const LawFitOptions *opt, LawFit *out, GError **error)
{
  static const char *const names[][LAW_FIT_MAX] = {
      [LAW_ADDITIVE] = {"E", "A", "B", "alpha", "beta"},
      [LAW_POWER_SUM] = {"L_inf", "N_c", "D_c", "alpha_N", "alpha_D"},
      [LAW_KAPLAN] = {"N_c", "D_c", "alpha_N", "alpha_D", NULL}};
  g_assert (opt->form <= LAW_KAPLAN);
  Problem pr;
  memset (out, 0, sizeof *out);
  if (!problem_init (&pr, opt->form, s, n, error))
    return FALSE;
  out->correlation = correlation (pr.x, pr.y, n);
  if (!spread_check (&pr, out->correlation, error)) {
    problem_clear (&pr);
    return FALSE;
  }
  double delta = opt->delta > 0 ? opt->delta : 1e-3;
  g_autofree guint *rows = g_new (guint, n);
  for (guint i = 0; i < n; i++)
    rows[i] = i;
  Start best;
  if (!fit_from_grid (&pr, rows, delta, opt->starts > 0 ? opt->starts : 12, out, &best)) {
    problem_clear (&pr);
    g_set_error (error, LAW_ERROR, LAW_ERROR_DATA,
                 "the losses do not fall with parameters or tokens, so this form has no fit");
    return FALSE;
  }
  law_init (&out->law);
  law_of (&pr, opt->form, best.th, &out->law);
  out->n_constants = pr.p;
  out->n_samples = n;
  out->objective = best.f;
  out->level = opt->level > 0 ? opt->level : 0.95;
  constants_of (&out->law, out->value);
  for (guint j = 0; j < pr.p; j++) {
    out->names[j] = names[opt->form][j];
    out->lo[j] = out->hi[j] = out->value[j];
  }
  residuals (&pr, best.th, out);
  if (opt->bootstrap > 0)
    bootstrap (&pr, opt, delta, best.th, out);
  problem_clear (&pr);
  return TRUE;
}

void
law_fit_clear (LawFit *f)
{
  law_clear (&f->law);
  g_clear_pointer (&f->residual, g_free);
  g_clear_pointer (&f->boot, g_free);
}
