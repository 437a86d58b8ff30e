/* bench_maxmin: flow changes a second, each solved exactly, on a two-tier Clos with 8 rails: 8,192
 * flows between random pairs within their rail; one leaves and another comes, a solve after each.
 * Processor time, since other work on the machine slows wall time only. Every leaf has 32 ports
 * down and 32 up, the spine of a flow is drawn. Exit status 1 below MIN_PER_S.
 */
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>

#include "maxmin.h"
#include "rng.h"

enum {
  RAILS = 8,
  NODES = 1024,
  DOWN = 32,
  SPINES = 32,
  LEAVES = NODES / DOWN,
  FLOWS = RAILS * NODES,
  CHANGES = 20000
};
#define MIN_PER_S 5000.0

/* Links of a rail: NIC up, NIC down, leaf to spine, spine to leaf. */
enum { RAIL_LINKS = 2 * NODES + 2 * LEAVES * SPINES };

static guint
path (SimRng *rng, guint32 *out)
{
  guint32 base = RAIL_LINKS * (guint32)sim_rng_below (rng, RAILS);
  guint32 a = (guint32)sim_rng_below (rng, NODES), b = (guint32)sim_rng_below (rng, NODES - 1);
  b += b >= a;
  guint n = 0;
  out[n++] = base + a;
  if (a / DOWN != b / DOWN) {
    guint32 spine = (guint32)sim_rng_below (rng, SPINES);
    out[n++] = base + 2 * NODES + a / DOWN * SPINES + spine;
    out[n++] = base + 2 * NODES + LEAVES * SPINES + b / DOWN * SPINES + spine;
  }
  out[n++] = base + NODES + b;
  return n;
}

static double
now_us (void)
{
  struct rusage u;
  getrusage (RUSAGE_SELF, &u);
  return 1e6 * (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int
main (void)
{
  SimRng rng = sim_rng_stream (1, 0, "bench.maxmin", 0);
  guint32 links[8], *id = g_new (guint32, FLOWS);
  double *cap = g_new (double, RAILS *RAIL_LINKS);
  for (guint l = 0; l < RAILS * RAIL_LINKS; l++)
    cap[l] = 50e9;
  MaxMin *m = maxmin_new (RAILS * RAIL_LINKS, cap);
  for (guint f = 0; f < FLOWS; f++) {
    guint n = path (&rng, links);
    id[f] = maxmin_add (m, links, NULL, n, INFINITY);
  }
  double t0_us = now_us ();
  maxmin_solve (m, NULL);
  double t1_us = now_us ();
  guint64 before = maxmin_n_visited (m);
  for (guint i = 0; i < CHANGES / 2; i++) {
    guint f = (guint)sim_rng_below (&rng, FLOWS);
    maxmin_remove (m, id[f]);
    maxmin_solve (m, NULL);
    guint n = path (&rng, links);
    id[f] = maxmin_add (m, links, NULL, n, INFINITY);
    maxmin_solve (m, NULL);
  }
  double s = (now_us () - t1_us) * 1e-6;
  double per_s = CHANGES / s;
  printf (
      "maxmin  8,192 flows, random pairs within a rail: full solve %.0f us, %.0f changes/s, %.0f "
      "flows looked at per change\n",
      t1_us - t0_us, per_s, (double)(maxmin_n_visited (m) - before) / CHANGES);
  maxmin_free (m);
  g_free (cap);
  g_free (id);
  return per_s < MIN_PER_S;
}
