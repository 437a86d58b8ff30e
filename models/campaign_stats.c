/* Many replicas, and what is said about them. */
#include "campaign_int.h"

#include <math.h>
#include <string.h>

/* 97.5 % quantile of Student's t, by its expansion about the normal one (Abramowitz and Stegun
 * 26.7.5); exact values for the first few, where the expansion is poor. */
static double
student (guint degrees)
{
  static const double few[] = {12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912};
  if (degrees == 0)
    return INFINITY;
  if (degrees <= G_N_ELEMENTS (few))
    return few[degrees - 1];
  double x = 1.959963984540054, n = degrees, x2 = x * x;
  return x + x * (x2 + 1.0) / (4.0 * n) + x * ((5.0 * x2 + 16.0) * x2 + 3.0) / (96.0 * n * n) +
         x * (((3.0 * x2 + 19.0) * x2 + 17.0) * x2 - 15.0) / (384.0 * n * n * n);
}

Estimate
estimate_of (const double *x, guint n)
{
  Estimate e = {0};
  if (n == 0)
    return e;
  SimMoments m = {0};
  SimQuantiles q;
  sim_quantiles_init (&q);
  for (guint i = 0; i < n; i++) {
    sim_moments_add (&m, x[i]);
    sim_quantiles_add (&q, x[i]);
  }
  e.mean = m.mean;
  e.std_error = sim_moments_std_error (&m);
  double half = n > 1 ? student (n - 1) * e.std_error : NAN; /* one run says nothing of it */
  e.lo = e.mean - half;
  e.hi = e.mean + half;
  e.p5 = sim_quantiles_get (&q, 0.05);
  e.p50 = sim_quantiles_get (&q, 0.5);
  e.p95 = sim_quantiles_get (&q, 0.95);
  sim_quantiles_clear (&q);
  return e;
}

Estimate
estimate_clamp (Estimate e)
{
  if (isfinite (e.lo)) {
    e.lo = fmax (e.lo, 0.0);
    e.hi = fmin (e.hi, 1.0);
  }
  return e;
}

/* One number of every run. */
typedef double (*Pick) (const CampaignRun *run, guint which);

static Estimate
estimate (const CampaignRun *runs, guint n, Pick pick, guint which)
{
  g_autofree double *x = g_new (double, MAX (n, 1u));
  for (guint i = 0; i < n; i++)
    x[i] = pick (&runs[i], which);
  return estimate_of (x, n);
}

/* Shares of time: sum over all runs / all their time, so that the shares of one campaign add up to
 * 1 and tend to the renewal-reward value; a mean of ratios would not. Error by the delta method. */
static Estimate
estimate_share (const CampaignRun *runs, guint n, Pick pick, guint which)
{
  Estimate e = estimate (runs, n, pick, which);
  double part = 0.0, whole = 0.0;
  for (guint i = 0; i < n; i++) {
    part += pick (&runs[i], which) * runs[i].elapsed_s;
    whole += runs[i].elapsed_s;
  }
  if (whole <= 0.0)
    return e;
  e.mean = part / whole;
  SimMoments m = {0};
  for (guint i = 0; i < n; i++)
    sim_moments_add (&m, (pick (&runs[i], which) - e.mean) * runs[i].elapsed_s * n / whole);
  e.std_error = sim_moments_std_error (&m);
  double half = n > 1 ? student (n - 1) * e.std_error : NAN;
  e.lo = e.mean - half;
  e.hi = e.mean + half;
  return estimate_clamp (e);
}

static double
pick_goodput (const CampaignRun *r, guint which G_GNUC_UNUSED)
{
  return r->elapsed_s > 0.0 ? r->work_s / r->elapsed_s : 0.0;
}

static double
pick_days (const CampaignRun *r, guint which G_GNUC_UNUSED)
{
  return r->elapsed_s / 86400.0;
}

static double
pick_bad (const CampaignRun *r, guint which)
{
  return r->elapsed_s > 0.0 ? r->bad_s[which] / r->elapsed_s : 0.0;
}

static double
pick_fault (const CampaignRun *r, guint which)
{
  return (double)r->faults[which];
}

static double
pick_faults (const CampaignRun *r, guint which G_GNUC_UNUSED)
{
  double sum = 0.0;
  for (guint i = 0; i < FAULT_COUNT; i++)
    sum += (double)r->faults[i];
  return sum;
}

static double
pick_stops (const CampaignRun *r, guint which G_GNUC_UNUSED)
{
  return (double)r->stops;
}

static double
pick_checkpoints (const CampaignRun *r, guint which G_GNUC_UNUSED)
{
  return (double)r->checkpoints;
}

static double
pick_lost (const CampaignRun *r, guint which G_GNUC_UNUSED)
{
  return r->stops > 0 ? r->bad_s[BAD_WASTED_PROGRESS] / (double)r->stops : 0.0;
}

static double
pick_longest (const CampaignRun *r, guint which G_GNUC_UNUSED)
{
  return r->longest_s;
}

static double
pick_mtbf (const CampaignRun *r, guint which G_GNUC_UNUSED)
{
  return r->elapsed_s / (double)MAX (r->stops, 1u);
}

static void
summarise (const CampaignRun *runs, guint n, CampaignResult *out)
{
  memset (out, 0, sizeof *out);
  out->replicas = n;
  out->fingerprint = 14695981039346656037u;
  for (guint i = 0; i < n; i++) {
    out->finished += runs[i].end == END_FINISHED;
    out->timed_out += runs[i].end == END_TIME;
    out->stuck += runs[i].end == END_STUCK;
    if (runs[i].end == END_STUCK)
      out->why_stuck = runs[i].why;
    out->events += runs[i].events;
    out->fingerprint = (out->fingerprint ^ runs[i].fingerprint) * 1099511628211u;
    out->work_s += runs[i].work_s / n;
    out->elapsed_mean_s += runs[i].elapsed_s / n;
  }
  out->goodput = estimate_share (runs, n, pick_goodput, 0);
  out->days = estimate (runs, n, pick_days, 0);
  out->faults_total = estimate (runs, n, pick_faults, 0);
  out->stops = estimate (runs, n, pick_stops, 0);
  out->checkpoints = estimate (runs, n, pick_checkpoints, 0);
  out->lost_per_stop_s = estimate (runs, n, pick_lost, 0);
  out->longest_s = estimate (runs, n, pick_longest, 0);
  out->mtbf_s = estimate (runs, n, pick_mtbf, 0);
  for (guint i = 0; i < BAD_COUNT; i++)
    out->bad[i] = estimate_share (runs, n, pick_bad, i);
  for (guint i = 0; i < FAULT_COUNT; i++)
    out->faults[i] = estimate (runs, n, pick_fault, i);
}

gboolean
campaign_run (const JobSpec *j, const CampaignOptions *o, CampaignResult *out, GError **error)
{
  g_assert (o->replicas > 0);
  g_autofree CampaignRun *runs = g_new (CampaignRun, o->replicas);
  guint n = 0;
  for (; n < o->replicas; n++) {
    if (n < o->n_given)
      runs[n] = o->given[n];
    else if (!campaign_run_one (j, o->interval_s, o->seed, n, &runs[n], error))
      return FALSE;
    if (o->progress != NULL && !o->progress (o->progress_self, n + 1, o->replicas, &runs[n])) {
      n++;
      break;
    }
  }
  summarise (runs, n, out);
  return TRUE;
}
