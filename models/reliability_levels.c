/* Two levels of checkpoints, and maximum-likelihood fits. */
#include "reliability.h"

#include <math.h>

double
rel_two_level_period1 (const RelTwoLevel *t)
{
  return sqrt (2.0 * t->save1 / t->rate1);
}

double
rel_two_level_period2 (const RelTwoLevel *t)
{
  return sqrt (2.0 * t->save2 / t->rate2);
}

double
rel_two_level_ratio (const RelTwoLevel *t)
{
  return sqrt (t->save2 * t->rate1 / (t->save1 * t->rate2));
}

double
rel_two_level_period (const RelTwoLevel *t, guint k)
{
  return sqrt (2.0 * (t->save1 + t->save2 / k) / (t->rate1 + k * t->rate2));
}

double
rel_two_level_waste (const RelTwoLevel *t, double period, guint k)
{
  return t->save1 / period + t->save2 / (k * period) + t->rate1 * (period / 2.0 + t->restart1) +
         t->rate2 * (k * period / 2.0 + t->restart2);
}

guint
rel_two_level_best_k (const RelTwoLevel *t)
{
  double real = rel_two_level_ratio (t);
  guint below = (guint)CLAMP (floor (real), 1.0, 1e9);
  double a = rel_two_level_waste (t, rel_two_level_period (t, below), below);
  double b = rel_two_level_waste (t, rel_two_level_period (t, below + 1), below + 1);
  return a <= b ? below : below + 1;
}

/* E[i], the expected time from the start of segment i to the end of the pattern, is linear in E[0],
 * because a failure of level 2 leads back there: E[i] = a + b E[0]. Going down from E[k] = 0:
 *   E_i = (1-p)/l + p E_next + (1-p) (l1/l V1 + l2/l V2),        p = e^(-l segment)
 *   V1  = (1-q)/l + q E_i + (1-q) (l1/l V1 + l2/l V2),           q = e^(-l restart1)
 *   V2  = (e^(l restart2) - 1)/l + E_0
 * V1 is eliminated first. */
double
rel_two_level_expected (const RelTwoLevel *t, double work, guint k)
{
  g_assert (k > 0 && work > 0.0);
  double l = t->rate1 + t->rate2;
  double s1 = t->rate1 / l, s2 = t->rate2 / l;
  double q = exp (-l * t->restart1);
  double v2_const = expm1 (l * t->restart2) / l; /* V2 = v2_const + E0 */
  double denominator = 1.0 - (1.0 - q) * s1;
  /* V1 = v_const + v_self E_i + v_zero E0 */
  double v_const = ((1.0 - q) / l + (1.0 - q) * s2 * v2_const) / denominator;
  double v_self = q / denominator, v_zero = (1.0 - q) * s2 / denominator;

  double a = 0.0, b = 0.0; /* E_next = a + b E0 */
  for (guint i = k; i-- > 0;) {
    double segment = work + t->save1 + (i + 1 == k ? t->save2 : 0.0);
    double p = exp (-l * segment), f = -expm1 (-l * segment);
    double own = 1.0 - f * s1 * v_self;
    a = (f / l + p * a + f * (s1 * v_const + s2 * v2_const)) / own;
    b = (p * b + f * (s1 * v_zero + s2)) / own;
  }
  return a / (1.0 - b);
}

/* ---- fits ---- */

static double
digamma (double x)
{
  double r = 0.0;
  for (; x < 10.0; x += 1.0)
    r -= 1.0 / x;
  double f = 1.0 / (x * x);
  return r + log (x) - 0.5 / x - f * (1.0 / 12 - f * (1.0 / 120 - f * (1.0 / 252 - f / 240)));
}

static double
trigamma (double x)
{
  double r = 0.0;
  for (; x < 10.0; x += 1.0)
    r += 1.0 / (x * x);
  double f = 1.0 / (x * x);
  return r + 1.0 / x + f / 2 + f / x * (1.0 / 6 - f * (1.0 / 30 - f * (1.0 / 42 - f / 30)));
}

void
rel_fit_gamma (const double *x, guint n, double *shape, double *scale)
{
  double mean = 0.0, mean_log = 0.0;
  for (guint i = 0; i < n; i++) {
    mean += x[i] / n;
    mean_log += log (x[i]) / n;
  }
  double s = log (mean) - mean_log; /* > 0 unless all are equal */
  double k = (3.0 - s + sqrt ((s - 3.0) * (s - 3.0) + 24.0 * s)) / (12.0 * s);
  for (guint i = 0; i < 50; i++) {
    double step = (log (k) - digamma (k) - s) / (1.0 / k - trigamma (k));
    k = k - step > 0.0 ? k - step : k / 2.0;
    if (fabs (step) < 1e-12 * k)
      break;
  }
  *shape = k;
  *scale = mean / k;
}

void
rel_fit_weibull (const double *x, guint n, double *shape, double *scale)
{
  double mean_log = 0.0, most = 0.0;
  for (guint i = 0; i < n; i++) {
    mean_log += log (x[i]) / n;
    most = fmax (most, x[i]);
  }
  /* f (k) = sum x^k log x / sum x^k - 1/k - mean log x grows with k; powers of x / max are safe. */
  double lo = 1e-3, hi = 1e3;
  for (guint i = 0; i < 200; i++) {
    double k = sqrt (lo * hi), s0 = 0.0, s1 = 0.0;
    for (guint j = 0; j < n; j++) {
      double p = pow (x[j] / most, k);
      s0 += p;
      s1 += p * log (x[j]);
    }
    if (s1 / s0 - 1.0 / k - mean_log > 0.0)
      hi = k;
    else
      lo = k;
  }
  double sum = 0.0;
  *shape = sqrt (lo * hi);
  for (guint j = 0; j < n; j++)
    sum += pow (x[j] / most, *shape) / n;
  *scale = most * pow (sum, 1.0 / *shape);
}

void
rel_fit_lognormal (const double *x, guint n, double *mu, double *sigma)
{
  double m = 0.0, v = 0.0;
  for (guint i = 0; i < n; i++)
    m += log (x[i]) / n;
  for (guint i = 0; i < n; i++)
    v += (log (x[i]) - m) * (log (x[i]) - m) / n;
  *mu = m;
  *sigma = sqrt (v);
}
