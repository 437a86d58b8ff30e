/* Statistics against sums that can be done by hand. */
#include <math.h>

#include "stats.h"

static void
test_moments (void)
{
  /* 2 4 4 4 5 5 7 9: mean 5, squared deviations 9+1+1+1+0+0+4+16 = 32, variance 32/7 */
  const double x[] = {2, 4, 4, 4, 5, 5, 7, 9};
  SimMoments m = {0};
  g_assert_cmpfloat (sim_moments_variance (&m), ==, 0.0);
  for (guint i = 0; i < 8; i++)
    sim_moments_add (&m, x[i]);
  g_assert_cmpuint (m.n, ==, 8);
  g_assert_cmpfloat_with_epsilon (m.mean, 5.0, 1e-15);
  g_assert_cmpfloat_with_epsilon (sim_moments_variance (&m), 32.0 / 7.0, 1e-14);
  g_assert_cmpfloat_with_epsilon (sim_moments_stddev (&m), sqrt (32.0 / 7.0), 1e-14);
  g_assert_cmpfloat_with_epsilon (sim_moments_std_error (&m), sqrt (32.0 / 7.0 / 8.0), 1e-14);
  g_assert_cmpfloat (m.min, ==, 2.0);
  g_assert_cmpfloat (m.max, ==, 9.0);
}

static void
test_moments_offset (void)
{
  /* 1e9 + {4, 7, 13, 16}: variance 30 whatever the offset; the sum of squares would lose it all. */
  const double x[] = {4, 7, 13, 16};
  SimMoments m = {0};
  for (guint i = 0; i < 4; i++)
    sim_moments_add (&m, 1e9 + x[i]);
  g_assert_cmpfloat_with_epsilon (sim_moments_variance (&m), 30.0, 1e-6);
}

static void
test_moments_one (void)
{
  SimMoments m = {0};
  sim_moments_add (&m, -3.5);
  g_assert_cmpfloat (m.mean, ==, -3.5);
  g_assert_cmpfloat (sim_moments_variance (&m), ==, 0.0);
  g_assert_cmpfloat (sim_moments_std_error (&m), ==, 0.0);
  g_assert_cmpfloat (m.max, ==, -3.5);
}

static void
test_moments_merge (void)
{
  /* Any split gives the moments of the whole. */
  for (int split = 0; split <= 100; split += 20) {
    SimMoments a = {0}, b = {0}, all = {0};
    for (int i = 0; i < 100; i++) {
      double x = sin (i) * 1000.0;
      sim_moments_add (i < split ? &a : &b, x);
      sim_moments_add (&all, x);
    }
    sim_moments_merge (&a, &b);
    g_assert_cmpuint (a.n, ==, 100);
    g_assert_cmpfloat_with_epsilon (a.mean, all.mean, 1e-10);
    g_assert_cmpfloat_with_epsilon (a.m2, all.m2, 1e-6);
    g_assert_cmpfloat (a.min, ==, all.min);
    g_assert_cmpfloat (a.max, ==, all.max);
  }
}

static void
test_time_mean (void)
{
  /* 2 over [10, 20), 6 over [20, 25), 0 over [25, 40]: 20 + 30 + 0 over 30 ticks */
  SimTimeMean m;
  sim_time_mean_init (&m, 10, 2.0);
  g_assert_cmpfloat (sim_time_mean_at (&m, 10), ==, 2.0);
  g_assert_cmpfloat (sim_time_mean_at (&m, 15), ==, 2.0);
  sim_time_mean_set (&m, 20, 6.0);
  sim_time_mean_set (&m, 25, 99.0);
  sim_time_mean_set (&m, 25, 0.0); /* 99 held for no time */
  g_assert_cmpfloat_with_epsilon (sim_time_mean_at (&m, 40), 50.0 / 30.0, 1e-15);
  g_assert_cmpfloat_with_epsilon (sim_time_mean_at (&m, 25), 50.0 / 15.0, 1e-15);
  g_assert_cmpfloat (m.max, ==, 99.0);
}

static void
test_time_mean_constant (void)
{
  /* A value that never changes is its own mean to the last bit, and so is one set at the start. */
  SimTimeMean m;
  sim_time_mean_init (&m, 0, 7.0);
  sim_time_mean_set (&m, 0, 0.1);
  for (SimTime t = 1; t < 1000000000; t *= 3) {
    sim_time_mean_set (&m, t, 0.1);
    g_assert_cmpfloat (sim_time_mean_at (&m, t + 1), ==, 0.1);
  }
}

static void
test_quantiles (void)
{
  /* 1 … 5 shuffled: p (n - 1) = 4 p */
  const double x[] = {5, 1, 4, 2, 3};
  SimQuantiles q;
  sim_quantiles_init (&q);
  sim_quantiles_add (&q, 7.0);
  g_assert_cmpfloat (sim_quantiles_get (&q, 0.3), ==, 7.0);
  sim_quantiles_clear (&q);
  for (guint i = 0; i < 5; i++)
    sim_quantiles_add (&q, x[i]);
  g_assert_cmpfloat (sim_quantiles_get (&q, 0.0), ==, 1.0);
  g_assert_cmpfloat (sim_quantiles_get (&q, 0.5), ==, 3.0);
  g_assert_cmpfloat_with_epsilon (sim_quantiles_get (&q, 0.9), 4.6, 1e-15);
  g_assert_cmpfloat (sim_quantiles_get (&q, 1.0), ==, 5.0);
  sim_quantiles_add (&q, 0.0); /* sorted again: 0 … 5 */
  g_assert_cmpfloat (sim_quantiles_get (&q, 0.5), ==, 2.5);
  sim_quantiles_clear (&q);

  for (int i = 0; i <= 1000; i++)
    sim_quantiles_add (&q, (double)(i * 7919 % 1001));
  g_assert_cmpfloat_with_epsilon (sim_quantiles_get (&q, 0.99), 990.0, 1e-10);
  sim_quantiles_clear (&q);
}

static void
test_histogram (void)
{
  /* [0, 10) in 5 bins of 2: edges belong to the bin above, hi to the overflow */
  const double x[] = {-0.001, 0, 1.999, 2, 2.5, 9.999, 10, 1e300};
  const guint64 want[] = {2, 2, 0, 0, 1};
  SimHistogram h;
  sim_histogram_init (&h, 0.0, 10.0, 5, FALSE);
  for (guint i = 0; i < G_N_ELEMENTS (x); i++)
    sim_histogram_add (&h, x[i]);
  for (guint i = 0; i < 5; i++)
    g_assert_cmpuint (h.bins[i], ==, want[i]);
  g_assert_cmpuint (h.underflow, ==, 1);
  g_assert_cmpuint (h.overflow, ==, 2);
  g_assert_cmpuint (h.n, ==, 8);
  g_assert_cmpfloat (sim_histogram_edge (&h, 1), ==, 2.0);
  g_assert_cmpfloat (sim_histogram_edge (&h, 5), ==, 10.0);
  sim_histogram_clear (&h);
}

static void
test_histogram_edges (void)
{
  /* Every edge falls into its own bin, and the number just below into the one before, however the
   * division rounds. */
  SimHistogram h;
  sim_histogram_init (&h, 0.1, 1.3, 97, FALSE);
  for (guint i = 1; i < 97; i++) {
    double e = sim_histogram_edge (&h, i);
    sim_histogram_add (&h, e);
    sim_histogram_add (&h, nextafter (e, 0.0));
  }
  g_assert_cmpuint (h.bins[0], ==, 1);
  g_assert_cmpuint (h.bins[96], ==, 1);
  for (guint i = 1; i < 96; i++)
    g_assert_cmpuint (h.bins[i], ==, 2);
  sim_histogram_clear (&h);
}

static void
test_histogram_log (void)
{
  /* 1 … 10,000 in 4 bins of one decade */
  const double x[] = {0, -5, 0.5, 1, 9.99, 10, 5000, 10000};
  const guint64 want[] = {2, 1, 0, 1};
  SimHistogram h;
  sim_histogram_init (&h, 1.0, 10000.0, 4, TRUE);
  for (guint i = 0; i < G_N_ELEMENTS (x); i++)
    sim_histogram_add (&h, x[i]);
  for (guint i = 0; i < 4; i++)
    g_assert_cmpuint (h.bins[i], ==, want[i]);
  g_assert_cmpuint (h.underflow, ==, 3);
  g_assert_cmpuint (h.overflow, ==, 1);
  g_assert_cmpfloat_with_epsilon (sim_histogram_edge (&h, 2), 100.0, 1e-12);
  sim_histogram_clear (&h);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/engine/stats/moments", test_moments);
  g_test_add_func ("/engine/stats/moments_offset", test_moments_offset);
  g_test_add_func ("/engine/stats/moments_one", test_moments_one);
  g_test_add_func ("/engine/stats/moments_merge", test_moments_merge);
  g_test_add_func ("/engine/stats/time_mean", test_time_mean);
  g_test_add_func ("/engine/stats/time_mean_constant", test_time_mean_constant);
  g_test_add_func ("/engine/stats/quantiles", test_quantiles);
  g_test_add_func ("/engine/stats/histogram", test_histogram);
  g_test_add_func ("/engine/stats/histogram_edges", test_histogram_edges);
  g_test_add_func ("/engine/stats/histogram_log", test_histogram_log);
  return g_test_run ();
}
