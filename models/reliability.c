#include "reliability.h"

#include <math.h>

/* ---- intervals ---- */

double
rel_interval_young (double save, double mtbf)
{
  return sqrt (2.0 * save * mtbf);
}

double
rel_interval_daly (double save, double mtbf)
{
  return rel_interval_young (save, mtbf) - save;
}

double
rel_interval_daly_higher (double save, double mtbf)
{
  if (save >= 2.0 * mtbf)
    return mtbf;
  double ratio = save / (2.0 * mtbf);
  return rel_interval_young (save, mtbf) * (1.0 + sqrt (ratio) / 3.0 + ratio / 9.0) - save;
}

double
rel_lambert_w0 (double x)
{
  g_assert (x >= -exp (-1.0) - 1e-15);
  /* Near the branch point the series in p = sqrt (2 (e x + 1)) is the better start (Corless et al.,
   * 1996); elsewhere the logarithm. */
  double p = sqrt (fmax (0.0, 2.0 * (G_E * x + 1.0)));
  double w = x < 0.0 ? -1.0 + p - p * p / 3.0 + 11.0 / 72.0 * p * p * p : log1p (x);
  for (guint i = 0; i < 60; i++) {
    double e = exp (w), f = w * e - x;
    double slope = e * (w + 1.0);
    if (slope == 0.0)
      break;
    double step = f / (slope - (w + 2.0) * f / (2.0 * w + 2.0)); /* Halley */
    if (!isfinite (step))
      break;
    w -= step;
    if (fabs (step) <= 1e-16 * (1.0 + fabs (w)))
      break;
  }
  return w;
}

/* 1 + W0 (-e^(-1-y)) for y >= 0, without the cancellation that the formula has when y is small:
 * with w = W0, t = 1 + w solves t + log (1 - t) = -y. */
static double
one_plus_w (double y)
{
  if (y <= 0.0)
    return 0.0;
  double t = sqrt (2.0 * y);
  t = t < 1.0 ? t / (1.0 + t / 3.0) : 1.0 - exp (-1.0 - y);
  for (guint i = 0; i < 60; i++) {
    double f = t + log1p (-t) + y, slope = -t / (1.0 - t);
    double next = t - f / slope;
    if (next >= 1.0)
      next = 0.5 * (1.0 + t);
    if (next <= 0.0)
      next = 0.5 * t;
    double moved = fabs (next - t);
    t = next;
    if (moved <= 1e-16 * t)
      break;
  }
  return t;
}

double
rel_interval_exact (double save, double mtbf)
{
  return mtbf * one_plus_w (save / mtbf);
}

double
rel_period_herault (double save, double down, double restart, double mtbf)
{
  return sqrt (2.0 * fmax (0.0, mtbf - (down + restart)) * save);
}

double
rel_waste_herault (double period, double save, double down, double restart, double mtbf)
{
  double without_failures = save / period;
  double failures = (down + restart + period / 2.0) / mtbf;
  return without_failures + failures - without_failures * failures;
}

/* ---- expected time ---- */

double
rel_expected_time (double total_work, double work, double save, double restart, double down,
                   double mtbf)
{
  g_assert (work > 0.0);
  return (mtbf + down) * exp (restart / mtbf) * expm1 ((work + save) / mtbf) * (total_work / work);
}

double
rel_efficiency (double work, double save, double restart, double down, double mtbf)
{
  return 1.0 / rel_expected_time (1.0, work, save, restart, down, mtbf);
}

double
rel_lost_given_failure (double period, double mtbf)
{
  return mtbf - period / expm1 (period / mtbf);
}

void
rel_flat_band (double save, double restart, double down, double mtbf, double loss, double *lo,
               double *hi)
{
  double best = rel_interval_exact (save, mtbf);
  double floor_eta = rel_efficiency (best, save, restart, down, mtbf) - loss;
  for (int side = -1; side <= 1; side += 2) {
    double inside = best, outside = best;
    for (guint i = 0; i < 200; i++) {
      outside *= side < 0 ? 0.5 : 2.0;
      if (rel_efficiency (outside, save, restart, down, mtbf) < floor_eta)
        break;
      inside = outside;
    }
    for (guint i = 0; i < 100; i++) {
      double middle = sqrt (inside * outside);
      if (rel_efficiency (middle, save, restart, down, mtbf) < floor_eta)
        outside = middle;
      else
        inside = middle;
    }
    *(side < 0 ? lo : hi) = inside;
  }
}

double
rel_waste_async (double period, double blocked, double persist, double restart, double mtbf)
{
  return blocked / period + (period / 2.0 + persist + restart) / mtbf;
}

double
rel_ettr_meta (double interval, double save, double start, double mtbf)
{
  return (1.0 - (start + interval / 2.0) / mtbf) / (1.0 + save / interval);
}

double
rel_interval_meta (double save, double mtbf)
{
  return sqrt (2.0 * save * mtbf);
}

double
rel_wasted_gemini (double save_time, double interval, double retrieve)
{
  return save_time + interval / 2.0 + retrieve;
}

/* ---- many parts ---- */

double
rel_series_mtbf (const double *count, const double *rate_per_s, guint n)
{
  double total = 0.0;
  for (guint i = 0; i < n; i++)
    total += count[i] * rate_per_s[i];
  return 1.0 / total;
}

double
rel_survival (double time, double mtbf)
{
  return exp (-time / mtbf);
}

double
rel_weibull_scale (double mean, double shape)
{
  return mean / tgamma (1.0 + 1.0 / shape);
}

double
rel_erlang_b (guint servers, double a)
{
  double b = 1.0;
  for (guint i = 1; i <= servers; i++)
    b = a * b / ((double)i + a * b);
  return b;
}

guint
rel_binomial_quantile (guint n, double p, double q)
{
  g_assert (p >= 0.0 && p <= 1.0);
  if (p <= 0.0)
    return 0;
  if (p >= 1.0)
    return n;
  double sum = 0.0;
  for (guint k = 0; k < n; k++) {
    double ways =
        lgamma ((double)n + 1.0) - lgamma ((double)k + 1.0) - lgamma ((double)(n - k) + 1.0);
    sum += exp (ways + (double)k * log (p) + (double)(n - k) * log1p (-p));
    if (sum >= q)
      return k;
  }
  return n;
}

guint
rel_poisson_quantile (double mean, double q)
{
  double sum = 0.0;
  guint most = (guint)(mean + 40.0 * sqrt (mean + 1.0) + 40.0);
  for (guint k = 0; k < most; k++) {
    sum += mean > 0.0 ? exp ((double)k * log (mean) - mean - lgamma ((double)k + 1.0)) : k == 0;
    if (sum >= q)
      return k;
  }
  return most;
}

double
rel_efficiency_replicated (double mtbf, double stall, double rejoin, double replicas)
{
  return (mtbf - stall - rejoin / replicas) / mtbf;
}

static double
log_choose (double n, double k)
{
  return lgamma (n + 1.0) - lgamma (k + 1.0) - lgamma (n - k + 1.0);
}

double
rel_memory_survival (guint machines, guint copies, guint failed)
{
  g_assert (copies > 0 && machines % copies == 0);
  if (failed >= machines)
    return 0.0;
  /* Inclusion and exclusion over the groups that are lost. */
  guint groups = machines / copies;
  double p = 0.0, all = log_choose (machines, failed);
  for (guint j = 0; j <= groups && j * copies <= failed; j++) {
    double term = exp (log_choose (groups, j) +
                       log_choose (machines - j * copies, failed - j * copies) - all);
    p += j % 2 == 0 ? term : -term;
  }
  return CLAMP (p, 0.0, 1.0);
}
