#include "stats.h"

#include <math.h>
#include <stdlib.h>

/* ---- moments ---- */

void
sim_moments_add (SimMoments *m, double x)
{
  g_assert (isfinite (x));
  m->min = m->n == 0 ? x : MIN (m->min, x);
  m->max = m->n == 0 ? x : MAX (m->max, x);
  m->n++;
  double delta = x - m->mean;
  m->mean += delta / (double)m->n;
  m->m2 += delta * (x - m->mean);
}

void
sim_moments_merge (SimMoments *m, const SimMoments *other)
{
  if (other->n == 0)
    return;
  if (m->n == 0) {
    *m = *other;
    return;
  }
  double na = (double)m->n, nb = (double)other->n, n = na + nb;
  double delta = other->mean - m->mean;
  m->mean += delta * (nb / n);
  m->m2 += other->m2 + delta * delta * (na * nb / n);
  m->min = MIN (m->min, other->min);
  m->max = MAX (m->max, other->max);
  m->n += other->n;
}

double
sim_moments_variance (const SimMoments *m)
{
  return m->n < 2 ? 0.0 : m->m2 / (double)(m->n - 1);
}

double
sim_moments_stddev (const SimMoments *m)
{
  return sqrt (sim_moments_variance (m));
}

double
sim_moments_std_error (const SimMoments *m)
{
  return m->n < 2 ? 0.0 : sim_moments_stddev (m) / sqrt ((double)m->n);
}

/* ---- time-weighted mean ---- */

void
sim_time_mean_init (SimTimeMean *m, SimTime begin, double value)
{
  g_assert (isfinite (value));
  *m = (SimTimeMean){begin, begin, value, value, value, value};
}

double
sim_time_mean_at (const SimTimeMean *m, SimTime t)
{
  g_assert (t >= m->last);
  if (t == m->begin)
    return m->value;
  /* The mean is kept, not the integral: a constant value then has exactly itself for its mean. */
  return m->mean + (m->value - m->mean) * ((double)(t - m->last) / (double)(t - m->begin));
}

void
sim_time_mean_set (SimTimeMean *m, SimTime t, double value)
{
  g_assert (isfinite (value));
  double mean = sim_time_mean_at (m, t);
  m->mean = t == m->begin ? value : mean; /* what held before did so for no time */
  m->last = t;
  m->value = value;
  m->min = MIN (m->min, value);
  m->max = MAX (m->max, value);
}

/* ---- quantiles ---- */

void
sim_quantiles_init (SimQuantiles *q)
{
  *q = (SimQuantiles){NULL, 0, 0, TRUE};
}

void
sim_quantiles_clear (SimQuantiles *q)
{
  g_free (q->x);
  sim_quantiles_init (q);
}

void
sim_quantiles_add (SimQuantiles *q, double x)
{
  g_assert (isfinite (x));
  if (q->n == q->cap) {
    q->cap = q->cap > 0 ? 2 * q->cap : 64;
    q->x = g_renew (double, q->x, q->cap);
  }
  q->sorted = q->n == 0 || (q->sorted && q->x[q->n - 1] <= x);
  q->x[q->n++] = x;
}

static int
compare_doubles (const void *pa, const void *pb)
{
  double a = *(const double *)pa, b = *(const double *)pb;
  return (a > b) - (a < b);
}

double
sim_quantiles_get (SimQuantiles *q, double p)
{
  g_assert (q->n > 0);
  g_assert (p >= 0.0 && p <= 1.0);
  if (!q->sorted) {
    qsort (q->x, q->n, sizeof (double), compare_doubles);
    q->sorted = TRUE;
  }
  double at = p * (double)(q->n - 1);
  gsize i = (gsize)at;
  if (i + 1 >= q->n)
    return q->x[q->n - 1];
  double part = at - (double)i;
  return q->x[i] + part * (q->x[i + 1] - q->x[i]);
}

/* ---- histogram ---- */

void
sim_histogram_init (SimHistogram *h, double lo, double hi, guint n_bins, gboolean log10_bins)
{
  g_assert (isfinite (lo) && isfinite (hi) && lo < hi);
  g_assert (n_bins > 0);
  g_assert (!log10_bins || lo > 0.0);
  *h = (SimHistogram){.lo = log10_bins ? log10 (lo) : lo,
                      .hi = log10_bins ? log10 (hi) : hi,
                      .log10_bins = log10_bins,
                      .n_bins = n_bins,
                      .bins = g_new0 (guint64, n_bins)};
}

void
sim_histogram_clear (SimHistogram *h)
{
  g_free (h->bins);
  *h = (SimHistogram){0};
}

/* Edge i on the axis of the bins. */
static double
axis_edge (const SimHistogram *h, guint i)
{
  return i == h->n_bins ? h->hi : h->lo + (h->hi - h->lo) * ((double)i / (double)h->n_bins);
}

double
sim_histogram_edge (const SimHistogram *h, guint i)
{
  g_assert (i <= h->n_bins);
  double e = axis_edge (h, i);
  return h->log10_bins ? pow (10.0, e) : e;
}

void
sim_histogram_add (SimHistogram *h, double x)
{
  g_assert (isfinite (x));
  h->n++;
  if (h->log10_bins && x <= 0.0) {
    h->underflow++;
    return;
  }
  double a = h->log10_bins ? log10 (x) : x;
  if (a < h->lo) {
    h->underflow++;
    return;
  }
  if (a >= h->hi) {
    h->overflow++;
    return;
  }
  guint i = (guint)((a - h->lo) / (h->hi - h->lo) * (double)h->n_bins);
  /* The division may round across an edge; the edges decide. */
  i = MIN (i, h->n_bins - 1);
  if (a < axis_edge (h, i))
    i--;
  else if (i + 1 < h->n_bins && a >= axis_edge (h, i + 1))
    i++;
  h->bins[i]++;
}
