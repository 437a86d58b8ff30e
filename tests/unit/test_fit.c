/* fit: the numbers behind `clustersim fit`. Each case states what must come out. */
#include "fit.h"

#include <math.h>
#include <string.h>

/* y = 3 + 0.5 x exactly: the line comes back to 1e-9, whatever the scale of the columns. */
static void
test_line (void)
{
  double x[20], y[10], beta[2];
  for (int i = 0; i < 10; i++) {
    x[2 * i] = 1;
    x[2 * i + 1] = 1e9 * (i + 1);
    y[i] = 3e-6 + 0.5e-9 * x[2 * i + 1];
  }
  g_assert_true (fit_linear (x, 2, y, 10, 0.05, beta));
  g_assert_cmpfloat_with_epsilon (beta[0] * 1e6, 3, 1e-6);
  g_assert_cmpfloat_with_epsilon (beta[1] * 1e9, 0.5, 1e-9);
}

/* One of ten points is ten times too long: least squares would move the slope by tens of percent,
 * Huber's weights leave it within 2 %. */
static void
test_line_outlier (void)
{
  double x[20], y[10], beta[2];
  for (int i = 0; i < 10; i++) {
    x[2 * i] = 1;
    x[2 * i + 1] = i + 1;
    y[i] = 2 + 4 * x[2 * i + 1];
  }
  y[6] *= 10;
  g_assert_true (fit_linear (x, 2, y, 10, 0.05, beta));
  g_assert_cmpfloat_with_epsilon (beta[1], 4, 0.08);
}

/* y = x - 1 wants a negative constant: it is 0, and the slope is that of the best line through 0.
 */
static void
test_line_nonnegative (void)
{
  double x[12], y[6], beta[2];
  for (int i = 0; i < 6; i++) {
    x[2 * i] = 1;
    x[2 * i + 1] = i + 3;
    y[i] = x[2 * i + 1] - 1;
  }
  g_assert_true (fit_linear (x, 2, y, 6, 0.05, beta));
  g_assert_cmpfloat (beta[0], ==, 0);
  g_assert_cmpfloat (beta[1], >, 0.6);
  g_assert_cmpfloat (beta[1], <, 1);
}

/* Two columns that are one: nothing to tell them apart by. */
static void
test_line_singular (void)
{
  double x[] = {1, 2, 2, 4, 3, 6}, y[] = {1, 2, 3}, beta[2];
  g_assert_false (fit_linear (x, 2, y, 3, 0.05, beta));
}

/* ---- the search: t = a + b x / (x + c) with a hidden floor, over three decades ---- */

typedef struct {
  double x[200];
} Curve;

static void
curve_model (const double *p, const guint *index, guint n, double *out, gpointer user)
{
  const Curve *c = user;
  for (guint i = 0; i < n; i++)
    out[i] = p[0] + p[1] * c->x[index[i]] + p[2] * c->x[index[i]] / (c->x[index[i]] + 50);
}

typedef struct {
  Curve c;
  double y[200];
  guint index[200];
  FitParam q[4];
  FitProblem f;
} Case;

static void
case_init (Case *k, double noise, gboolean outliers)
{
  static const FitParam q[4] = {{"floor", 1, 0.01, 100, FIT_LOG, FALSE},
                                {"slope", 1, 0.01, 100, FIT_LOG, FALSE},
                                {"ramp", 1, 0, 100, FIT_LINEAR, FALSE},
                                {"unused", 7, 1, 100, FIT_LOG, FALSE}};
  for (guint i = 0; i < 200; i++) {
    k->c.x[i] = exp (0.035 * i);
    k->index[i] = i;
    k->y[i] = 4 + 0.2 * k->c.x[i] + 20 * k->c.x[i] / (k->c.x[i] + 50);
    k->y[i] *= exp (noise * sin (12.9898 * i * i)); /* a fixed, patternless wobble */
    if (outliers && i % 20 == 7)
      k->y[i] *= 5;
  }
  for (int j = 0; j < 4; j++)
    k->q[j] = q[j];
  k->f = (FitProblem){k->q, 4, k->y, NULL, 200, curve_model, &k->c, 0.05};
}

static void
test_search (void)
{
  Case k;
  double p[4];
  case_init (&k, 0, FALSE);
  g_assert_cmpuint (fit_fix_unseen (&k.f, k.index, 200, 3), ==, 3); /* the fourth moves nothing */
  g_assert_true (k.q[3].fixed);
  double loss = fit_minimise (&k.f, k.index, 200, 200, p);
  g_assert_cmpfloat (loss, <, 1e-5);
  g_assert_cmpfloat_with_epsilon (p[0], 4, 0.1);
  g_assert_cmpfloat_with_epsilon (p[1], 0.2, 0.005);
  g_assert_cmpfloat_with_epsilon (p[2], 20, 1);
  g_assert_cmpfloat (p[3], ==, 7);
}

/* 5 % of the samples five times too long, the rest with 3 % of wobble: within 5 %. */
static void
test_search_outliers (void)
{
  Case k;
  double p[4];
  FitStats s;
  case_init (&k, 0.03, TRUE);
  fit_fix_unseen (&k.f, k.index, 200, 3);
  fit_minimise (&k.f, k.index, 200, 200, p);
  g_assert_cmpfloat_with_epsilon (p[1], 0.2, 0.01);
  fit_stats (&k.f, k.index, 200, p, &s);
  g_assert_cmpuint (s.n, ==, 200);
  g_assert_cmpfloat (s.median_abs, <, 0.03);
  g_assert_cmpfloat_with_epsilon (s.max_abs, log (5), 0.06);
  g_assert_cmpuint (s.worst % 20, ==, 7);
}

/* The interval holds the truth, has a width, and is the same for the same seed. */
static void
test_bootstrap (void)
{
  Case k;
  double p[4], lo[4], hi[4], lo2[4], hi2[4];
  case_init (&k, 0.05, FALSE);
  fit_fix_unseen (&k.f, k.index, 200, 3);
  fit_minimise (&k.f, k.index, 200, 200, p);
  fit_bootstrap (&k.f, k.index, 200, p, 40, 200, 1, lo, hi);
  fit_bootstrap (&k.f, k.index, 200, p, 40, 200, 1, lo2, hi2);
  for (int j = 0; j < 4; j++) {
    g_assert_cmpfloat (lo[j], ==, lo2[j]);
    g_assert_cmpfloat (hi[j], ==, hi2[j]);
    g_assert_cmpfloat (lo[j], <=, hi[j]);
  }
  g_assert_cmpfloat (lo[1], <, hi[1]);
  g_assert_cmpfloat (lo[1] * 0.97, <, 0.2);
  g_assert_cmpfloat (hi[1] * 1.03, >, 0.2);
  g_assert_cmpfloat (lo[3], ==, 7);
}

/* A model without the ramp cannot describe the middle: the lack is found, and none in the true one.
 */
static void
test_lack (void)
{
  Case k;
  double p[4];
  FitLack lack;
  case_init (&k, 0.01, FALSE);
  fit_minimise (&k.f, k.index, 200, 200, p);
  g_assert_false (fit_lack (&k.f, k.index, 200, p, k.c.x, 8, 0.15, &lack));
  k.q[2].fixed = TRUE;
  k.q[2].start = 0;
  fit_minimise (&k.f, k.index, 200, 200, p);
  g_assert_true (fit_lack (&k.f, k.index, 200, p, k.c.x, 8, 0.15, &lack));
  g_assert_cmpuint (lack.n, >=, 8);
  g_assert_cmpfloat (fabs (lack.bias), >, 0.15);
}

/* Everything is in one of the two, about the asked share is held out, the same each time. */
static void
test_split (void)
{
  g_autoptr (GArray) fit = g_array_new (FALSE, FALSE, sizeof (guint)),
                     held = g_array_new (FALSE, FALSE, sizeof (guint)),
                     again = g_array_new (FALSE, FALSE, sizeof (guint)),
                     none = g_array_new (FALSE, FALSE, sizeof (guint));
  fit_split (4000, 0.25, 1, fit, held);
  fit_split (4000, 0.25, 1, none, again);
  g_assert_cmpuint (fit->len + held->len, ==, 4000);
  g_assert_cmpuint (held->len, >, 900);
  g_assert_cmpuint (held->len, <, 1100);
  g_assert_cmpuint (held->len, ==, again->len);
  g_assert_cmpint (memcmp (held->data, again->data, held->len * sizeof (guint)), ==, 0);
}

/* 1 … 5: median 3, quantile 0.25 is 2, and of two values halfway. */
static void
test_quantile (void)
{
  double v[] = {5, 1, 4, 2, 3}, w[] = {1, 2};
  g_assert_cmpfloat (fit_median (v, 5), ==, 3);
  g_assert_cmpfloat (fit_quantile (v, 5, 0.25), ==, 2);
  g_assert_cmpfloat (fit_median (w, 2), ==, 1.5);
  g_assert_true (isnan (fit_median (w, 0)));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/fit/line", test_line);
  g_test_add_func ("/fit/line/outlier", test_line_outlier);
  g_test_add_func ("/fit/line/nonnegative", test_line_nonnegative);
  g_test_add_func ("/fit/line/singular", test_line_singular);
  g_test_add_func ("/fit/search", test_search);
  g_test_add_func ("/fit/search/outliers", test_search_outliers);
  g_test_add_func ("/fit/bootstrap", test_bootstrap);
  g_test_add_func ("/fit/lack", test_lack);
  g_test_add_func ("/fit/split", test_split);
  g_test_add_func ("/fit/quantile", test_quantile);
  return g_test_run ();
}
