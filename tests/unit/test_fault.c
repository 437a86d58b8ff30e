/* Failure processes: moments of the distributions, rates, clustering, replay, and the fit to a year
 * of a real cluster with the spare count that follows. */
#include "fault.h"
#include "read_job.h"
#include "reliability.h"
#include "spares.h"
#include "stats.h"

#include <math.h>
#include <string.h>

#define DAY 86400.0

static void
test_distributions (void)
{
  /* Means as asked; variances by the closed forms; residuals have mean E[x^2] / (2 E[x]). */
  const struct {
    DistKind kind;
    double shape, cv2; /* variance / mean^2 */
  } rows[] = {{DIST_FIXED, 1, 0},
              {DIST_EXPONENTIAL, 1, 1},
              {DIST_WEIBULL, 0.7, 2.1387},
              {DIST_GAMMA, 0.49, 1 / 0.49},
              {DIST_LOGNORMAL, 0.8, 0.8964808793}};
  SimRng r = sim_rng_stream (3, 0, "test", 0);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    Dist d = dist_make (rows[i].kind, 100.0, rows[i].shape);
    SimMoments m = {0}, res = {0};
    for (guint k = 0; k < 200000; k++) {
      sim_moments_add (&m, dist_sample (&d, &r));
      sim_moments_add (&res, dist_sample_residual (&d, &r));
    }
    g_test_message ("%s: mean %.2f, cv2 %.3f, residual %.2f", dist_names[i], m.mean,
                    sim_moments_variance (&m) / 1e4, res.mean);
    g_assert_cmpfloat (fabs (m.mean - 100.0), <=, 5 * sim_moments_std_error (&m) + 1e-9);
    g_assert_cmpfloat (fabs (sim_moments_variance (&m) / 1e4 - rows[i].cv2), <=,
                       0.06 * rows[i].cv2);
    g_assert_cmpfloat (fabs (res.mean - 50.0 * (1 + rows[i].cv2)), <=,
                       5 * sim_moments_std_error (&res));
  }
  Dist none = dist_make (DIST_WEIBULL, 0.0, 0.5);
  g_assert_cmpfloat (dist_sample (&none, &r), ==, 0.0);
}

/* Counts of faults over a time, by the profile. */
static SimMoments
count_faults (const FaultProfile *p, guint nodes, double days, guint runs, guint64 *by_cause)
{
  SimMoments m = {0};
  for (guint run = 0; run < runs; run++) {
    g_autoptr (FaultGen) g = fault_gen_new (p, nodes, nodes, 8, 9, run);
    double last = 0.0;
    guint n = 0;
    Fault f;
    while (fault_gen_peek_s (g) < days * DAY) {
      fault_gen_pop (g, &f);
      g_assert_cmpfloat (f.t_s, >=, last);
      g_assert_cmpuint (f.node, <, nodes);
      last = f.t_s;
      by_cause[f.cause]++;
      n += 1;
      fault_gen_restart (g, f.t_s);
    }
    sim_moments_add (&m, n);
  }
  return m;
}

static void
test_rates (void)
{
  /* 200 nodes, 5 per 1000 node-days, 100 days: 100 faults, whatever the process, of which 3/5 are
   * of the GPUs. A Poisson count has variance = mean; a gamma renewal of shape k variance near mean
   * / k. */
  FaultProfile p;
  fault_profile_init (&p);
  p.cause[FAULT_GPU].rate = 3;
  p.cause[FAULT_NIC].rate = 2;
  g_assert_cmpfloat (fabs (1 / fault_profile_rate (&p, 200, 8) - DAY), <, 1e-6);
  g_assert_true (fault_profile_is_poisson (&p));
  const struct {
    DistKind kind;
    double shape;
    FaultUnit unit;
    double dispersion;
  } rows[] = {{DIST_EXPONENTIAL, 1, FAULT_PER_JOB, 1},
              {DIST_GAMMA, 0.5, FAULT_PER_JOB, 2},
              {DIST_GAMMA, 3, FAULT_PER_JOB, 1.0 / 3}};
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    guint64 by_cause[FAULT_COUNT] = {0};
    p.process = rows[i].kind;
    p.process_shape = rows[i].shape;
    p.process_unit = rows[i].unit;
    SimMoments m = count_faults (&p, 200, 100, 3000, by_cause);
    /* A renewal process that begins with a failure is ahead by (1/k - 1) / 2 on average. */
    double expected = 100 + (1 / rows[i].shape - 1) / 2;
    g_assert_cmpfloat (fabs (m.mean - expected), <=, 5 * sim_moments_std_error (&m));
    g_assert_cmpfloat (fabs (sim_moments_variance (&m) / 100 / rows[i].dispersion - 1), <, 0.12);
    double share =
        (double)by_cause[FAULT_GPU] / (double)(by_cause[FAULT_GPU] + by_cause[FAULT_NIC]);
    g_assert_cmpfloat (fabs (share - 0.6), <, 0.005);
  }
  /* New parts that wear out (shape 3, per node, mean 200 days): next to none fails in the first 20
   * days: 1 - e^(-(20 / 223.97)^3) = 0.000712. */
  guint64 by_cause[FAULT_COUNT] = {0};
  p.process = DIST_WEIBULL;
  p.process_shape = 3;
  p.process_unit = FAULT_PER_NODE;
  SimMoments m = count_faults (&p, 200, 20, 2000, by_cause);
  double scale = rel_weibull_scale (200, 3), first = -expm1 (-pow (20 / scale, 3));
  g_assert_cmpfloat (fabs (m.mean - 200 * first), <=, 5 * sim_moments_std_error (&m));
  fault_profile_clear (&p);
}

static void
test_clustering (void)
{
  FaultProfile p;
  guint64 by_cause[FAULT_COUNT] = {0};
  fault_profile_init (&p);
  p.cause[FAULT_GPU].rate = 5;
  /* Epochs of gamma shape 4 over 10 days: variance of a count in 10 days = mean + mean^2 / 4. */
  p.epoch_s = 10 * DAY;
  p.epoch_rate_shape = 4;
  SimMoments m = count_faults (&p, 400, 10, 4000, by_cause);
  g_assert_cmpfloat (fabs (m.mean - 20), <=, 5 * sim_moments_std_error (&m));
  g_assert_cmpfloat (fabs (sim_moments_variance (&m) / (20 + 100) - 1), <, 0.1);
  p.epoch_rate_shape = 0;
  /* Early life: 1 + 3 e^(-t/10 d) over 20 days: mean 2 (20 + 30 (1 - e^-2)). */
  p.early_factor = 3;
  p.early_decay_s = 10 * DAY;
  m = count_faults (&p, 400, 20, 2000, by_cause);
  g_assert_cmpfloat (fabs (m.mean - 2 * (20 + 30 * -expm1 (-2))), <=,
                     5 * sim_moments_std_error (&m));
  p.early_factor = 0;
  /* Lemons: 5 % of nodes at 20 times the rate take 0.05 * 20 / (1 + 0.05 * 19) = 51 % of all. */
  p.lemon_fraction = 0.05;
  p.lemon_factor = 20;
  g_autoptr (FaultGen) g = fault_gen_new (&p, 1000, 1000, 8, 1, 0);
  g_autofree guint *hits = g_new0 (guint, 1000);
  Fault f;
  for (guint i = 0; i < 200000; i++) {
    fault_gen_pop (g, &f);
    hits[f.node]++;
  }
  guint lemons = 0, in_lemons = 0;
  for (guint i = 0; i < 1000; i++)
    if (hits[i] > 1000) {
      lemons++;
      in_lemons += hits[i];
    }
  g_assert_cmpuint (lemons, >, 30);
  g_assert_cmpuint (lemons, <, 75);
  double share = in_lemons / 200000.0, expected = lemons * 20.0 / (lemons * 20.0 + 1000 - lemons);
  g_assert_cmpfloat (fabs (share - expected), <, 0.01);
  p.lemon_fraction = 0;
  /* Bursts: a tenth of the faults takes 1 + 3 nodes on average. */
  p.burst_probability = 0.1;
  p.burst_extra = 3;
  g_autoptr (FaultGen) b = fault_gen_new (&p, 1000, 1000, 8, 1, 1);
  double nodes = 0;
  for (guint i = 0; i < 100000; i++) {
    fault_gen_pop (b, &f);
    nodes += f.n_nodes;
  }
  g_assert_cmpfloat (fabs (nodes / 100000 - 1.3), <, 0.02);
  /* A switch takes its rack, of which the last may be smaller. */
  memset (p.cause, 0, sizeof p.cause);
  p.cause[FAULT_SWITCH].rate = 1;
  p.nodes_per_switch = 16;
  g_autoptr (FaultGen) s = fault_gen_new (&p, 40, 40, 8, 1, 2);
  for (guint i = 0; i < 1000; i++) {
    fault_gen_pop (s, &f);
    g_assert_true (f.rack);
    g_assert_cmpuint (f.node % 16, ==, 0);
    g_assert_cmpuint (f.n_nodes, ==, f.node == 32 ? 8 : 16);
  }
  fault_profile_clear (&p);
}

static FaultTrace *
shipped_trace (void)
{
  GError *error = NULL;
  g_autofree char *path =
      g_build_filename (g_getenv ("G_TEST_SRCDIR") != NULL ? g_getenv ("G_TEST_SRCDIR") : ".",
                        "scenarios/failures/infinitehbd-faults.csv", NULL);
  FaultTrace *t = read_fault_trace (path, 400, 349, &error);
  g_assert_no_error (error);
  return t;
}

static void
test_replay (void)
{
  /* Run 0 is the trace as it is: mean 9.26 nodes down of 400, P50 7, P90 22, P95 26, P99 31. */
  FaultProfile p;
  SpareStats s;
  fault_profile_init (&p);
  p.trace = shipped_trace ();
  for (guint i = 0; i < FAULT_COUNT; i++)
    p.cause[i].takes_node = 1;
  g_assert_cmpuint (p.trace->n, ==, 584);
  g_assert_true (spares_simulate (&p, 400, 8, 348, 0, 1, 1, &s, NULL));
  g_assert_cmpfloat (fabs (s.mean_down - 9.26), <, 0.03);
  g_assert_cmpuint (s.p50, ==, 7);
  g_assert_cmpuint (s.p90, ==, 22);
  g_assert_cmpuint (s.p95, ==, 26);
  g_assert_cmpuint (s.p99, ==, 31);
  spare_stats_clear (&s);
  /* Other runs are the same year from another date: as many faults in a round, other nodes. */
  g_autoptr (FaultGen) g = fault_gen_new (&p, 400, 400, 8, 1, 5);
  Fault f;
  double last = 0;
  for (guint i = 0; i < 584; i++) {
    fault_gen_pop (g, &f);
    g_assert_cmpfloat (f.t_s, >=, last);
    last = f.t_s;
  }
  g_assert_cmpfloat (last, <=, p.trace->length_s);
  g_assert_cmpfloat (fault_gen_peek_s (g), >=, p.trace->length_s); /* and round again */
  /* A cluster of 1000 nodes has two and a half copies. */
  g_autoptr (FaultGen) big = fault_gen_new (&p, 1000, 1000, 8, 1, 5);
  guint n = 0;
  while (fault_gen_peek_s (big) < p.trace->length_s) {
    fault_gen_pop (big, &f);
    g_assert_cmpuint (f.node, <, 1000);
    n++;
  }
  g_assert_cmpuint (n, >, 2 * 584);
  g_assert_cmpuint (n, <, 3 * 584);
  fault_profile_clear (&p);
}

static void
test_fit_and_spares (void)
{
  /* The figures of the trace, and the spares that a model fitted to it asks for: 26 to 36 at P99,
   * where independent failures would say 17. */
  g_autoptr (FaultTrace) t = shipped_trace ();
  FaultFit fit;
  FaultProfile p;
  fault_trace_fit (t, 600, 29 * DAY, &fit, &p);
  g_assert_cmpuint (fit.episodes, ==, 582);
  g_assert_cmpfloat (fabs (fit.gap_shape - 0.489694), <, 5e-4);
  g_assert_cmpfloat (fabs (fit.gap_scale_s / DAY - 1.33646), <, 2e-3);
  g_assert_cmpfloat (fabs (fit.frailty_shape - 0.93), <, 0.005);
  g_assert_cmpfloat (fabs (fit.burst_probability - 56.0 / 481), <, 1e-9);
  g_assert_cmpfloat (fabs (fit.repair_mean_s / DAY - 5.5521), <, 2e-3);
  g_assert_cmpuint (fit.down_p99, ==, 31);
  SpareStats s;
  g_assert_true (spares_simulate (&p, 400, 8, 348, 200, 200, 2, &s, NULL));
  g_test_message ("mean %.2f, P50 %u, P90 %u, P99 %u (single runs %.0f to %.0f), independent %u",
                  s.mean_down, s.p50, s.p90, s.p99, s.p99_lo, s.p99_hi, s.independent_p99);
  g_assert_cmpuint (s.p99, >=, 26);
  g_assert_cmpuint (s.p99, <=, 36);
  g_assert_cmpuint (rel_poisson_quantile (fit.mean_down, 0.99), ==, 17);
  g_assert_cmpfloat (fabs (s.mean_down - 9.26), <, 1.0);
  spare_stats_clear (&s);
  /* Independent failures of the same rate and repair do give 17 by simulation too. */
  FaultProfile plain;
  fault_profile_init (&plain);
  plain.cause[FAULT_GPU].rate = 1000.0 * 582 / 400 / 349;
  plain.cause[FAULT_GPU].takes_node = 1;
  plain.cause[FAULT_GPU].repair = dist_make (DIST_WEIBULL, 5.5521 * DAY, 0.45);
  g_assert_true (spares_simulate (&plain, 400, 8, 348, 300, 100, 2, &s, NULL));
  g_assert_cmpuint (s.p99, >=, 16);
  g_assert_cmpuint (s.p99, <=, 18);
  spare_stats_clear (&s);
  fault_profile_clear (&p);
}

static void
test_errors (void)
{
  GError *error = NULL;
  const FaultTraceEvent back[] = {{.t_s = 100, .node = 0}, {.t_s = 50, .node = 0}};
  g_assert_null (fault_trace_new (back, 0, 1, 0, &error));
  g_assert_error (error, FAULT_ERROR, FAULT_ERROR_TRACE);
  g_clear_error (&error);
  g_assert_null (fault_trace_new (back, 2, 1, 0, &error));
  g_assert_error (error, FAULT_ERROR, FAULT_ERROR_TRACE);
  g_clear_error (&error);
  FaultProfile p;
  fault_profile_init (&p);
  p.cause[FAULT_HBM].rate = -1;
  g_assert_false (fault_profile_check (&p, &error));
  g_assert_error (error, FAULT_ERROR, FAULT_ERROR_RANGE);
  g_clear_error (&error);
  g_assert_cmpint (fault_cause_of ("Parameter Plane Cable"), ==, FAULT_CABLE);
  g_assert_cmpint (fault_cause_of ("GPU DBE(Double Bit ECC)"), ==, FAULT_HBM);
  g_assert_cmpint (fault_cause_of ("NCCL timeout"), ==, FAULT_HANG);
  g_assert_cmpint (fault_cause_of ("silent_corruption"), ==, FAULT_SDC);
  g_assert_cmpint (fault_cause_of ("gremlins"), ==, FAULT_UNKNOWN);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/fault/distributions", test_distributions);
  g_test_add_func ("/fault/rates", test_rates);
  g_test_add_func ("/fault/clustering", test_clustering);
  g_test_add_func ("/fault/replay", test_replay);
  g_test_add_func ("/fault/fit-and-spares", test_fit_and_spares);
  g_test_add_func ("/fault/errors", test_errors);
  return g_test_run ();
}
