/* The worked examples W1 to W16, to 1e-6 relative. Each was checked against Monte Carlo or an
 * independent form before it came here. */
#include "reliability.h"

#include <math.h>

#define REL(found, expected) check_rel (__LINE__, found, expected, 1e-6)

static void
check_rel (int line, double found, double expected, double within)
{
  if (!(fabs (found - expected) <= within * fabs (expected)))
    g_test_message ("line %d: found %.15g, expected %.15g", line, found, expected);
  g_assert_cmpfloat (fabs (found - expected), <=, within * fabs (expected));
}

#define DAY 86400.0

static void
test_w1_w2_intervals (void)
{
  REL (rel_interval_young (60, DAY), 3219.937887599697);
  REL (rel_interval_daly (60, DAY), 3159.937887599697);
  REL (rel_interval_daly_higher (60, DAY), 3180.0621135984475);
  REL (rel_interval_exact (60, DAY), 3180.0627323067138);

  const double expect[4] = {2078.460969082653, 1478.4609690826528, 1697.7059780556401,
                            1699.2308930689949};
  const double eta[4] = {0.480986516995, 0.483605871253, 0.485775463248, 0.485775555648};
  const double found[4] = {rel_interval_young (600, 3600), rel_interval_daly (600, 3600),
                           rel_interval_daly_higher (600, 3600), rel_interval_exact (600, 3600)};
  for (guint i = 0; i < 4; i++) {
    REL (found[i], expect[i]);
    REL (rel_efficiency (found[i], 600, 300, 0, 3600), eta[i]);
  }
  REL (rel_interval_daly_higher (200, 100), 100);
  REL (rel_interval_exact (200, 100), 94.753090254);
  /* w e^w = x */
  for (double x = -0.36787; x < 50.0; x = x * 0.7 + 0.3) {
    double w = rel_lambert_w0 (x);
    g_assert_cmpfloat (fabs (w * exp (w) - x), <, 1e-13 * (1.0 + fabs (x)));
    if (x > 0.99)
      break;
  }
  REL (rel_lambert_w0 (G_E), 1.0);
  /* The exact interval is the same through W0. */
  REL (3600 * (1.0 + rel_lambert_w0 (-exp (-600.0 / 3600 - 1.0))), 1699.2308930689949);
}

static void
test_w3_w5_time (void)
{
  REL (rel_expected_time (1e6, 3000, 60, 120, 0, 20000), 1108799.4041776848);
  REL (rel_efficiency (3000, 60, 120, 0, 20000), 0.9018763865062018);
  REL (rel_expected_time (1e6, 3000, 60, 120, 180, 20000), 1118778.598815284);
  REL (rel_efficiency (3000, 60, 120, 180, 20000), 0.8938318994114984);

  double m = 54.0 * 24 * 3600 / 419;
  REL (m, 11135.08353221957);
  REL (rel_interval_exact (20, m), 654.1192474906463);
  REL (rel_interval_young (20, m), 667.385451811);
  REL (rel_interval_daly (20, m), 647.385451811);
  REL (rel_interval_daly_higher (20, m), 654.118713343);
  REL (rel_efficiency (rel_interval_exact (20, m), 20, 600, 0, m), 0.8918798428985003);
  REL (rel_efficiency (600, 20, 600, 0, m), 0.891684707175);
  REL (rel_efficiency (1800, 20, 600, 0, m), 0.8626293764256192);
  REL (rel_efficiency (3600, 20, 600, 0, m), 0.797420558464);
  REL (rel_expected_time (30 * DAY, 600, 20, 600, 0, m), 2906857.075314);
  REL (rel_expected_time (30 * DAY, 1800, 20, 600, 0, m), 3004766.671337);
  REL (rel_expected_time (30 * DAY, 3600, 20, 600, 0, m), 3250480.530615);
}

static void
test_w6_meta (void)
{
  const struct {
    double nodes, rate, save, start, mtbf, interval, ettr, exact;
  } rows[] = {/* minutes */
              {1500, 6.5e-3, 5, 5, 147.69230769230768, 38.43075691322091, 0.7397917500667334,
               0.735800993562},
              {1500, 1e-3, 5, 5, 960, 97.97958971132712, 0.8979379273840343, 0.896645619598},
              {1500, 6.5e-3, 10.0 / 60, 5, 147.69230769230768, 7.016464154, 0.920526314438, 0},
              {2048, 6.5e-3, 5, 5, 108.173076923, 32.889675724, 0.695953219974, 0.692128678930}};
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    double count = rows[i].nodes, rate = rows[i].rate / DAY;
    double m = rel_series_mtbf (&count, &rate, 1) / 60.0;
    REL (m, rows[i].mtbf);
    double interval = rel_interval_meta (rows[i].save, m);
    REL (interval, rows[i].interval);
    REL (rel_ettr_meta (interval, rows[i].save, rows[i].start, m), rows[i].ettr);
    if (rows[i].exact > 0)
      REL (rel_efficiency (interval, rows[i].save, rows[i].start, 0, m), rows[i].exact);
  }
}

static void
test_w7_herault (void)
{
  double p = rel_period_herault (120, 60, 300, 14400);
  REL (p, 1835.6470248934024);
  REL (rel_waste_herault (p, 120, 60, 300, 14400), 0.14830882117315297);
  REL (rel_efficiency (p - 120, 120, 300, 60, 14400), 0.854693104068201);
}

static void
test_w8_two_levels (void)
{
  const RelTwoLevel t = {2, 60, 60, 600, 1.0 / (4 * 3600), 1.0 / (40 * 3600)};
  REL (rel_two_level_ratio (&t), 17.320508075688775);
  REL (rel_two_level_period1 (&t), 240);
  REL (rel_two_level_period2 (&t), 4156.921938165);
  guint k = rel_two_level_best_k (&t);
  g_assert_cmpuint (k, ==, 17);
  double p = rel_two_level_period (&t, k);
  REL (p, 242.858790569);
  REL (rel_two_level_waste (&t, p, k), 0.053869356565);
  double e = rel_two_level_expected (&t, p, k);
  REL (e, 4359.753335723);
  REL (k * p / e, 0.946980051796);
  e = rel_two_level_expected (&t, 300, 12);
  REL (e, 3804.2873951563774);
  REL (12 * 300 / e, 0.9463007459908322);
  RelTwoLevel one = t;
  one.rate2 = 0;
  /* Level 2 still writes in the one segment. */
  REL (rel_two_level_expected (&one, 300, 1), 368.119146938);
  /* With one level and one kind of failure it is the one-level formula. */
  REL (rel_two_level_expected (&one, 300, 1), rel_expected_time (300, 300, 62, 60, 0, 4 * 3600));
}

static void
test_w9_w10_spares (void)
{
  double a = 1024 * 5.5521 / 233.623;
  REL (a, 24.335576548541887);
  REL (rel_erlang_b (17, a), 0.3616171930139);
  REL (rel_erlang_b (25, a), 0.13013736616913948);
  REL (rel_erlang_b (33, a), 0.017980015132159577);
  REL (rel_erlang_b (41, a), 0.0005533272976005497);
  for (guint i = 0; i < 4; i++)
    g_assert_cmpuint (rel_binomial_quantile (128u << i, 0.0012, 0.99), ==,
                      ((const guint[]){2, 2, 3, 4})[i]);
  g_assert_cmpuint (rel_binomial_quantile (10, 0.0, 0.99), ==, 0);
  g_assert_cmpuint (rel_binomial_quantile (10, 1.0, 0.99), ==, 10);
  /* Mean 9.26 nodes in repair: independent failures say 17 at P99. */
  g_assert_cmpuint (rel_poisson_quantile (9.26, 0.99), ==, 17);
}

static void
test_w11_w16_rest (void)
{
  REL (rel_efficiency_replicated (18, 10, 0, 1), 0.4444444444444444);
  REL (rel_efficiency_replicated (18, 3, 7, 12), 0.8009259259259259);

  const struct {
    double nodes, rate, survive, mtbf_h;
  } rows[] = {{2048, 6.5e-3, 1.6545193736213887e-06, 1.8028846153846154},
              {128, 6.5e-3, 0, 28.846153846},
              {16384, 6.5e-3, 0, 0.225360577},
              {4000, 2.3e-3, 1.01039402e-4, 2.608695652}};
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    double rate = rows[i].rate / DAY, m = rel_series_mtbf (&rows[i].nodes, &rate, 1);
    REL (m / 3600, rows[i].mtbf_h);
    if (rows[i].survive > 0)
      REL (rel_survival (DAY, m), rows[i].survive);
  }
  REL (rel_lost_given_failure (1820, 11135.08353), 885.2215143571902);
  REL (rel_weibull_scale (11135.08353, 0.5), 5567.541766109785);
  REL (rel_weibull_scale (11135.08353, 0.7), 8796.710978217263);
  REL (rel_weibull_scale (11135.08353, 1.5), 12334.690215687217);
  REL (rel_memory_survival (16, 2, 2), 0.933333333333);
  g_assert_cmpfloat (rel_memory_survival (16, 2, 1), ==, 1.0);
  g_assert_cmpfloat (rel_memory_survival (16, 2, 16), ==, 0.0);
  /* MT-NLG 530B to a remote store: 42 + 21 + 42 minutes. */
  REL (rel_wasted_gemini (42, 42, 42), 105);
  /* First-order asynchronous waste of the references. */
  REL (1 - rel_waste_async (216.2, 0.2, 120, 600, 21093.75), 0.959817);
}

static void
test_band_and_optimum (void)
{
  double m = 11135.08353, lo = 0, hi = 0;
  double best = rel_interval_exact (20, m), eta = rel_efficiency (best, 20, 600, 0, m);
  rel_flat_band (20, 600, 0, m, 0.001, &lo, &hi);
  g_assert_cmpfloat (lo, <, best);
  g_assert_cmpfloat (hi, >, best);
  REL (rel_efficiency (lo, 20, 600, 0, m), eta - 0.001);
  REL (rel_efficiency (hi, 20, 600, 0, m), eta - 0.001);
  /* A maximum: a little more or less is worse. */
  g_assert_cmpfloat (rel_efficiency (best * 1.01, 20, 600, 0, m), <, eta);
  g_assert_cmpfloat (rel_efficiency (best * 0.99, 20, 600, 0, m), <, eta);
}

static void
test_fits (void)
{
  /* Quantiles of a distribution stand for a sample of it; 4000 of them leave an error of the tails.
   */
  enum { N = 4000 };
  static double weibull[N], lognormal[N];
  double shape, scale;
  for (guint i = 0; i < N; i++) {
    double u = (i + 0.5) / N;
    weibull[i] = 7.0 * pow (-log1p (-u), 1 / 0.6);
    lognormal[i] = exp (0.4 + 1.2 * sqrt (2) * (u - 0.5)); /* any spread of logarithms */
  }
  rel_fit_weibull (weibull, N, &shape, &scale);
  check_rel (__LINE__, shape, 0.6, 2e-3);
  check_rel (__LINE__, scale, 7.0, 2e-3);
  rel_fit_lognormal (lognormal, N, &shape, &scale);
  check_rel (__LINE__, shape, 0.4, 1e-9);
  rel_fit_gamma (weibull, N, &shape, &scale);
  /* The likelihood equation of the mean holds whatever the data are. */
  double mean = 0;
  for (guint i = 0; i < N; i++)
    mean += weibull[i] / N;
  check_rel (__LINE__, shape * scale, mean, 1e-12);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/reliability/w1-w2-intervals", test_w1_w2_intervals);
  g_test_add_func ("/reliability/w3-w5-time", test_w3_w5_time);
  g_test_add_func ("/reliability/w6-meta", test_w6_meta);
  g_test_add_func ("/reliability/w7-herault", test_w7_herault);
  g_test_add_func ("/reliability/w8-two-levels", test_w8_two_levels);
  g_test_add_func ("/reliability/w9-w10-spares", test_w9_w10_spares);
  g_test_add_func ("/reliability/w11-w16-rest", test_w11_w16_rest);
  g_test_add_func ("/reliability/band-and-optimum", test_band_and_optimum);
  g_test_add_func ("/reliability/fits", test_fits);
  return g_test_run ();
}
