/* prop_maxmin: the incremental solver against the textbook one (tests/oracle/maxmin_ref.c) over
 * random batches of arrivals, departures and capacity changes: more than a million changes in all.
 * MAXMIN_SEED=n repeats one seed; a failure prints its own. */
#include "maxmin.h"
#include "rng.h"
#include "../oracle/maxmin_ref.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_LINKS = 24, MAX_FLOWS = 40 };
#define TOLERANCE 1e-9

typedef struct {
  SimRng rng;
  MaxMin *m;
  guint32 n_links, n_flows;
  double cap[MAX_LINKS];
  RefFlow ref[MAX_FLOWS];
  guint32 id[MAX_FLOWS];
  gboolean unit, caps;
  double spread; /* coefs are 10^(-spread … spread) */
  guint64 changes;
  double worst;
} World;

static double
random_cap (World *w)
{
  guint64 k = sim_rng_below (&w->rng, 20);
  if (k == 0)
    return 0;
  return k < 10 ? (double)(1 + sim_rng_below (&w->rng, 8)) : 0.01 + 10 * sim_rng_uniform (&w->rng);
}

static void
add_flow (World *w, guint slot)
{
  RefFlow *f = &w->ref[slot];
  f->n = 1 + (guint)sim_rng_below (&w->rng, 5);
  f->live = TRUE;
  f->rate = 0;
  for (guint h = 0; h < f->n; h++) {
    f->link[h] = (guint32)sim_rng_below (&w->rng, w->n_links);
    f->coef[h] = w->unit ? 1 : pow (10, w->spread * (2 * sim_rng_uniform (&w->rng) - 1));
  }
  f->cap = w->caps && sim_rng_below (&w->rng, 3) == 0 ? random_cap (w) : INFINITY;
  w->id[slot] = maxmin_add (w->m, f->link, w->unit ? NULL : f->coef, f->n, f->cap);
}

static void
change (World *w)
{
  guint slot = (guint)sim_rng_below (&w->rng, w->n_flows);
  w->changes++;
  if (sim_rng_below (&w->rng, 4) == 0) {
    guint32 l = (guint32)sim_rng_below (&w->rng, w->n_links);
    w->cap[l] = random_cap (w);
    maxmin_set_cap (w->m, l, w->cap[l]);
  } else if (w->ref[slot].live) {
    maxmin_remove (w->m, w->id[slot]);
    w->ref[slot].live = FALSE;
  } else {
    add_flow (w, slot);
  }
}

static void
compare (World *w, guint64 seed)
{
  double before[MAX_FLOWS];
  gboolean listed[MAX_FLOWS] = {FALSE};
  const guint32 *changed = NULL;
  for (guint s = 0; s < w->n_flows; s++)
    before[s] = w->ref[s].live ? maxmin_rate (w->m, w->id[s]) : 0;
  guint n = maxmin_solve (w->m, &changed);
  maxmin_ref_solve (w->cap, w->n_links, w->ref, w->n_flows);
  for (guint s = 0; s < w->n_flows; s++)
    for (guint i = 0; w->ref[s].live && i < n; i++)
      listed[s] = listed[s] || changed[i] == w->id[s];
  for (guint s = 0; s < w->n_flows; s++) {
    if (!w->ref[s].live)
      continue;
    double got = maxmin_rate (w->m, w->id[s]), want = w->ref[s].rate;
    double off = fabs (got - want) / MAX (1e-3, want);
    w->worst = MAX (w->worst, off);
    if (off > TOLERANCE || (!listed[s] && got != before[s])) {
      g_test_message ("seed %" G_GUINT64_FORMAT ": flow %u has %.17g, should have %.17g%s", seed, s,
                      got, want, listed[s] ? "" : " (not listed as changed)");
      g_test_fail ();
    }
  }
}

static void
one_world (World *w, guint64 seed, guint batches)
{
  w->rng = sim_rng_stream (seed, 0, "prop.maxmin", 0);
  w->n_links = 1 + (guint32)sim_rng_below (&w->rng, MAX_LINKS);
  w->n_flows = 1 + (guint32)sim_rng_below (&w->rng, MAX_FLOWS);
  for (guint32 l = 0; l < w->n_links; l++)
    w->cap[l] = random_cap (w);
  for (guint s = 0; s < w->n_flows; s++)
    w->ref[s].live = FALSE;
  w->m = maxmin_new (w->n_links, w->cap);
  for (guint b = 0; b < batches && !g_test_failed (); b++) {
    guint64 k = 1 + sim_rng_below (&w->rng, sim_rng_below (&w->rng, 8) == 0 ? 40 : 4);
    while (k-- > 0)
      change (w);
    compare (w, seed);
  }
  maxmin_free (w->m);
}

static void
run (gboolean unit, gboolean caps, double spread, guint64 want)
{
  const char *only = g_getenv ("MAXMIN_SEED"), *sanitized = g_getenv ("SANITIZED");
  World w = {.unit = unit, .caps = caps, .spread = spread};
  if (sanitized && *sanitized)
    want /= 10;
  guint64 seed = only ? g_ascii_strtoull (only, NULL, 10) : 1, first = seed;
  do
    one_world (&w, seed++, 200);
  while (!only && w.changes < want && !g_test_failed ());
  g_test_message ("%" G_GUINT64_FORMAT " changes, seeds %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
                  ", worst relative difference %.2g",
                  w.changes, first, seed - 1, w.worst);
}

static void
test_unit (void)
{
  run (TRUE, FALSE, 0, 500000);
}

static void
test_unit_caps (void)
{
  run (TRUE, TRUE, 0, 250000);
}

static void
test_coef (void)
{
  run (FALSE, TRUE, 1, 250000);
}

static void
test_wide_coef (void)
{
  run (FALSE, TRUE, 3, 100000);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/maxmin/oracle/unit", test_unit);
  g_test_add_func ("/maxmin/oracle/unit-caps", test_unit_caps);
  g_test_add_func ("/maxmin/oracle/coef", test_coef);
  g_test_add_func ("/maxmin/oracle/wide-coef", test_wide_coef);
  return g_test_run ();
}
