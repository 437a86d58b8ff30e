/* plan: 405B on 16,384 H100, the whole search: wall time, layouts, and full predictions a second on
 * one core; that is, the predictions which the search made over the CPU time of all of it (list,
 * bounds, memory, predictions), and over the time of those predictions alone. */
#include <stdio.h>
#include <time.h>

#include "plan.h"
#include "scenario.h"

static double
cpu_s (void)
{
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* All that the search predicted, again: what a prediction takes. */
static double
predict_again (const Spec *s, const PlanResult *r)
{
  g_autoptr (PredictCache) cache = predict_cache_new ();
  double began = cpu_s ();
  for (guint i = 0; i < r->points->len; i++) {
    Spec one = plan_spec (s, &g_array_index (r->points, PlanPoint, i));
    Prediction p;
    if (!spec_check (&one, NULL, NULL) || !predict (&one, cache, NULL, &p, NULL))
      continue;
    prediction_clear (&p);
  }
  return cpu_s () - began;
}

/* The published layout, again and again. */
static double
own_per_s (const Spec *s)
{
  g_autoptr (PredictCache) cache = predict_cache_new ();
  double began = cpu_s ();
  guint n = 0;
  for (; cpu_s () - began < 0.5; n++) {
    Prediction p;
    if (!predict (s, cache, NULL, &p, NULL))
      return 0;
    prediction_clear (&p);
  }
  return n / (cpu_s () - began);
}

int
main (void)
{
  g_autoptr (GError) error = NULL;
  Spec s;
  PlanResult r;
  PlanOptions o = {.top = 13};
  if (!scenario_load ("llama-3.1-405b-16k", NULL, &s, &error))
    g_error ("%s", error->message);
  double cpu = cpu_s ();
  gint64 wall_us = g_get_monotonic_time ();
  if (!plan_run (&s, &o, &r, &error))
    g_error ("%s", error->message);
  cpu = cpu_s () - cpu;
  double wall_s = 1e-6 * (double)(g_get_monotonic_time () - wall_us);
  double again_s = predict_again (&s, &r);
  printf ("plan, 405B on 16,384 H100: %.1f s (%.1f s of CPU), %u layouts listed, %u not left out, "
          "%u predicted; %.0f layouts/s; full predictions/s: %.0f of those it made, %.0f of the "
          "published layout\n",
          wall_s, cpu, (guint)r.listed, (guint)(r.n_unfit + r.predicted), (guint)r.made,
          (double)r.listed / cpu, r.points->len / again_s, own_per_s (&s));
  plan_clear (&r);
  spec_clear (&s);
  return 0;
}
