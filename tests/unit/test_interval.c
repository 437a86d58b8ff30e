/* interval_fit: synthetic errors whose distribution is known. */
#include "interval_fit.h"

#include <math.h>

#include "rng.h"

#define SOURCES 40
#define EACH    50

/* y = shift_k + spread_k * N(0,1), by feature. */
static void
synthetic (IntervalRun *runs, double shift, double wide)
{
  SimRng rng = sim_rng_from_u64 (7);
  for (guint i = 0; i < SOURCES * EACH; i++) {
    const gboolean has = i % 3 == 0;
    const double z = sim_rng_normal (&rng, 0, 1);
    runs[i] = (IntervalRun){.y = has ? shift + wide * z : 0.04 * z,
                            .features = has ? 1u << FEATURE_EXPERTS : 0,
                            .source = i / EACH};
  }
}

/* Normal errors: centre and ratio of spreads come back; 10 % and 90 % quantiles are centre
 * -+ 1.2816 sigma; four of five runs of unseen sources are inside. */
static void
test_known (void)
{
  g_autofree IntervalRun *runs = g_new (IntervalRun, SOURCES * EACH);
  g_autofree StepInterval *ranges = g_new (StepInterval, SOURCES * EACH);
  IntervalModel m;
  guint inside = 0;
  synthetic (runs, 0.1, 0.12);
  interval_fit (runs, SOURCES * EACH, NULL, &m, ranges);
  g_assert_cmpfloat_with_epsilon (interval_centre (&m, 0), 0, 0.005);
  g_assert_cmpfloat_with_epsilon (interval_centre (&m, 1u << FEATURE_EXPERTS), 0.1, 0.02);
  g_assert_cmpfloat_with_epsilon (
      interval_spread (&m, 1u << FEATURE_EXPERTS) / interval_spread (&m, 0), 3, 0.5);
  const StepInterval plain = interval_of (&m, 0);
  g_assert_cmpfloat_with_epsilon (log (plain.hi), 1.2816 * 0.04, 0.009); /* terms are drawn to 0 */
  g_assert_cmpfloat_with_epsilon (log (plain.lo), -1.2816 * 0.04, 0.009);
  for (guint i = 0; i < SOURCES * EACH; i++)
    inside += exp (runs[i].y) >= ranges[i].lo && exp (runs[i].y) <= ranges[i].hi;
  g_assert_cmpfloat_with_epsilon ((double)inside / (SOURCES * EACH), 0.8, 0.03);
}

/* A feature of few runs borrows: its terms are drawn to 0, to the prior where none has it. */
static void
test_borrows (void)
{
  g_autofree IntervalRun *runs = g_new (IntervalRun, SOURCES * EACH);
  double prior[FEATURE_COUNT + 1] = {0};
  IntervalModel m;
  prior[FEATURE_BORROWED] = 0.4;
  synthetic (runs, 0, 0.04);
  for (guint i = 0; i < SOURCES * EACH; i++)
    runs[i].features = 0;
  runs[0].features = 1u << FEATURE_NARROW;
  runs[0].y = 1;
  interval_fit (runs, SOURCES * EACH, prior, &m, NULL);
  g_assert_cmpfloat (fabs (m.centre[FEATURE_NARROW]), <, 0.15); /* of the 1 that it showed */
  g_assert_cmpfloat_with_epsilon (m.spread[FEATURE_BORROWED], 0.4, 1e-9);
  g_assert_cmpfloat (m.centre[FEATURE_BORROWED], ==, 0);
}

/* x = (1, t), y = 2 + 3 t exactly; with a heavy ridge on the second, it is 0. */
static void
test_ridge (void)
{
  const double x[] = {1, 0, 1, 1, 1, 2}, y[] = {2, 5, 8}, w[] = {1, 1, 1};
  const double swapped[] = {0, 1, 1, 1, 2, 1};
  double b[2];
  ridge_solve (x, y, w, 3, 2, 0, 0, b);
  g_assert_cmpfloat_with_epsilon (b[0], 2, 1e-6);
  g_assert_cmpfloat_with_epsilon (b[1], 3, 1e-6);
  ridge_solve (swapped, y, w, 3, 2, 1, 1e9, b);
  g_assert_cmpfloat_with_epsilon (b[0], 0, 1e-6);
  g_assert_cmpfloat_with_epsilon (b[1], 5, 1e-6);
}

/* Half of the weight of 1, 2, 10 with weights 1, 1, 4 is reached at 10. */
static void
test_quantile (void)
{
  const double v[] = {10, 1, 2}, w[] = {4, 1, 1};
  g_assert_cmpfloat (weighted_quantile (v, w, 3, 0.5), ==, 10);
  g_assert_cmpfloat (weighted_quantile (v, w, 3, 0.1), ==, 1);
  g_assert_cmpfloat (weighted_quantile (v, w, 3, 1), ==, 10);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/interval/known", test_known);
  g_test_add_func ("/interval/borrows", test_borrows);
  g_test_add_func ("/interval/ridge", test_ridge);
  g_test_add_func ("/interval/quantile", test_quantile);
  return g_test_run ();
}
