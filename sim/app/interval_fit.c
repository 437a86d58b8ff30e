#include "interval_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TERMS     32
#define RIDGE         2.0   /* runs' weight that a feature must outweigh to be heard */
#define HUBER_K       1.345 /* 95 % efficient on normal errors (Huber 1981) */
#define MAD_TO_SIGMA  1.4826
#define ITERATIONS    20
#define LEAST_ERROR   0.002 /* ln of smaller errors says nothing of the spread */
#define EVENNESS      1.0   /* of sources in the quantiles: the promise is to a new one */
#define COVERAGE_LOW  0.1
#define COVERAGE_HIGH 0.9

void
ridge_solve (const double *x, const double *y, const double *w, guint n, guint k, guint n_pulled,
             double ridge, double *b)
{
  double a[MAX_TERMS][MAX_TERMS + 1];
  g_assert (k <= MAX_TERMS);
  memset (a, 0, sizeof a);
  for (guint i = 0; i < n; i++)
    for (guint r = 0; r < k; r++) {
      const double v = w[i] * x[i * k + r];
      for (guint c = 0; c < k; c++)
        a[r][c] += v * x[i * k + c];
      a[r][k] += v * y[i];
    }
  for (guint r = 0; r < k; r++)
    a[r][r] += r < n_pulled ? ridge : 1e-9;
  for (guint p = 0; p < k; p++) { /* symmetric and positive: no pivots are needed */
    for (guint r = p + 1; r < k; r++) {
      const double f = a[r][p] / a[p][p];
      for (guint c = p; c <= k; c++)
        a[r][c] -= f * a[p][c];
    }
  }
  for (guint p = k; p-- > 0;) {
    b[p] = a[p][k];
    for (guint c = p + 1; c < k; c++)
      b[p] -= a[p][c] * b[c];
    b[p] /= a[p][p];
  }
}

typedef struct {
  double value, weight;
} Weighted;

static int
compare_weighted (const void *a, const void *b)
{
  const double x = ((const Weighted *)a)->value, y = ((const Weighted *)b)->value;
  return (x > y) - (x < y);
}

double
weighted_quantile (const double *values, const double *weights, guint n, double q)
{
  g_autofree Weighted *sorted = g_new (Weighted, n);
  double total = 0, sum = 0;
  for (guint i = 0; i < n; i++) {
    sorted[i] = (Weighted){values[i], weights[i]};
    total += weights[i];
  }
  qsort (sorted, n, sizeof *sorted, compare_weighted);
  for (guint i = 0; i < n; i++) {
    sum += sorted[i].weight;
    if (sum >= q * total)
      return sorted[i].value;
  }
  return sorted[n - 1].value;
}

/* ---- one model ---- */

#define TERMS (FEATURE_COUNT + 1)

typedef struct {
  guint n;
  double *x, *y, *w, *r, *v, *z;
} Work;

static void
work_init (Work *k, guint n)
{
  double *all = g_new0 (double, (gsize)n *(TERMS + 5));
  *k = (Work){0,
              all,
              all + n * TERMS,
              all + n * (TERMS + 1),
              all + n * (TERMS + 2),
              all + n * (TERMS + 3),
              all + n * (TERMS + 4)};
}

static void
take (Work *k, const IntervalRun *run, double weight)
{
  double *x = k->x + k->n * TERMS;
  for (guint f = 0; f < FEATURE_COUNT; f++)
    x[f] = run->features >> f & 1;
  x[FEATURE_COUNT] = 1;
  k->y[k->n] = run->y;
  k->w[k->n++] = weight;
}

static double
dot (const double *x, const double *b)
{
  double v = 0;
  for (guint i = 0; i < TERMS; i++)
    v += x[i] * b[i];
  return v;
}

static void
fit_terms (Work *k, const double *prior, IntervalModel *m)
{
  memcpy (k->v, k->w, k->n * sizeof *k->v);
  for (guint it = 0; it < ITERATIONS; it++) {
    ridge_solve (k->x, k->y, k->v, k->n, TERMS, FEATURE_COUNT, RIDGE, m->centre);
    for (guint i = 0; i < k->n; i++)
      k->r[i] = fabs (k->y[i] - dot (k->x + i * TERMS, m->centre));
    const double sigma =
        MAX (MAD_TO_SIGMA * weighted_quantile (k->r, k->w, k->n, 0.5), LEAST_ERROR);
    for (guint i = 0; i < k->n; i++)
      k->v[i] = k->w[i] * MIN (1, HUBER_K * sigma / MAX (k->r[i], 1e-12));
  }
  for (guint i = 0; i < k->n; i++)
    k->z[i] = log (MAX (k->r[i], LEAST_ERROR)) - dot (k->x + i * TERMS, prior);
  ridge_solve (k->x, k->z, k->w, k->n, TERMS, FEATURE_COUNT, RIDGE, m->spread);
  for (guint i = 0; i < TERMS; i++)
    m->spread[i] += prior[i];
}

static double
standardised (const IntervalModel *m, const IntervalRun *run)
{
  return (run->y - interval_centre (m, run->features)) / interval_spread (m, run->features);
}

/* The terms from all runs but those of one source. */
static void
leave_out (const IntervalRun *runs, guint n, const double *weight, guint skip, const double *prior,
           IntervalModel *m)
{
  Work k;
  work_init (&k, n);
  for (guint i = 0; i < n; i++)
    if (runs[i].source != skip)
      take (&k, &runs[i], weight[i]);
  if (k.n > 0)
    fit_terms (&k, prior, m);
  g_free (k.x);
}

static void
quantiles (const double *z, const double *weight, guint n, IntervalModel *m)
{
  m->low = MIN (0, weighted_quantile (z, weight, n, COVERAGE_LOW));
  m->high = MAX (0, weighted_quantile (z, weight, n, COVERAGE_HIGH));
}

void
interval_fit (const IntervalRun *runs, guint n, const double *prior, IntervalModel *out,
              StepInterval *ranges)
{
  static const double none[TERMS] = {0};
  if (prior == NULL)
    prior = none;
  guint n_sources = 0;
  for (guint i = 0; i < n; i++)
    n_sources = MAX (n_sources, runs[i].source + 1);
  g_autofree double *count = g_new0 (double, n_sources), *weight = g_new (double, n);
  g_autofree double *even = g_new (double, n);
  g_autofree double *z = g_new0 (double, n), *kept = g_new (double, n), *kept_w = g_new (double, n);
  for (guint i = 0; i < n; i++)
    count[runs[i].source]++;
  for (guint i = 0; i < n; i++) {
    weight[i] = 1 / sqrt (count[runs[i].source]);
    even[i] = 1 / pow (count[runs[i].source], EVENNESS);
  }
  g_autofree IntervalModel *without = g_new0 (IntervalModel, n_sources);
  for (guint s = 0; s < n_sources; s++)
    leave_out (runs, n, weight, s, prior, &without[s]);
  for (guint i = 0; i < n; i++)
    z[i] = standardised (&without[runs[i].source], &runs[i]);
  leave_out (runs, n, weight, G_MAXUINT, prior, out);
  quantiles (z, even, n, out);
  for (guint s = 0; ranges != NULL && s < n_sources; s++) {
    guint m = 0;
    for (guint i = 0; i < n; i++)
      if (runs[i].source != s) {
        kept[m] = z[i];
        kept_w[m++] = even[i];
      }
    if (m > 0)
      quantiles (kept, kept_w, m, &without[s]);
    for (guint i = 0; i < n; i++)
      if (runs[i].source == s)
        ranges[i] = interval_of (&without[s], runs[i].features);
  }
}
