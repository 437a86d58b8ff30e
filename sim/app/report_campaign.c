#include "report_campaign.h"

#include "report.h"
#include "units.h"

#include <math.h>

/* Only the nodes of the job compute, and only while steps or evaluations run: useful, lost or
 * warming up. In every other cause they stand, or wait for input, a slow node or nodes that are
 * missing. Spares idle all the time. */
CostResult
campaign_cost (const JobSpec *j, const CampaignResult *r)
{
  static const Badput computing[] = {BAD_WASTED_PROGRESS, BAD_TRAINING_PREP, BAD_BATCH_RAMP,
                                     BAD_EVALUATION};
  double busy = r->goodput.mean;
  for (guint i = 0; i < G_N_ELEMENTS (computing); i++)
    busy += r->bad[computing[i]].mean;
  guint spares = j->tracked ? j->hot_spares + j->cold_spares : 0;
  double own = (double)j->gpus, all = own + (double)spares * j->gpus_per_node;
  double part = all > 0.0 ? own / all : 0.0;
  return cost_of (&j->cost, all, r->elapsed_mean_s, r->elapsed_mean_s * fmin (busy, 1.0) * part);
}

double
campaign_missing_s (const JobSpec *j, const CampaignResult *r)
{
  return fmax (j->work_s - r->work_s, 0.0);
}

/* ---- text ---- */

/* "1.2 to 3.4"; one run alone has no interval of its mean. */
static char *
range_text (int decimals, double lo, double hi)
{
  return isfinite (lo) && isfinite (hi)
             ? g_strdup_printf ("%.*f to %.*f", decimals, lo, decimals, hi)
             : g_strdup ("unknown");
}

static void
put_share (GString *out, const char *what, const Estimate *e)
{
  g_autofree char *range = range_text (2, 100 * e->lo, 100 * e->hi);
  g_string_append_printf (out, "  %-22s %6.2f %%  (%s)\n", what, 100 * e->mean, range);
}

static void
put_seconds (GString *out, const char *before, double s, const char *after)
{
  g_autofree char *text = format_seconds (s);
  g_string_append_printf (out, "%s%s%s", before, text, after);
}

static void
text_head (GString *out, const CampaignReport *r)
{
  const JobSpec *j = r->job;
  const CampaignResult *c = r->result;
  g_autofree char *gpus = format_count ((double)j->gpus);
  g_string_append_printf (out, "%s: %s GPUs in %u nodes", r->name, gpus, j->nodes);
  if (j->tracked)
    g_string_append_printf (out, ", %u hot and %u cold spare nodes", j->hot_spares, j->cold_spares);
  g_autofree char *goodput = range_text (2, 100 * c->goodput.lo, 100 * c->goodput.hi);
  g_autofree char *days = range_text (2, c->days.lo, c->days.hi);
  g_string_append_printf (out,
                          "\n\nGoodput %.2f %%  (95 %% interval of the mean %s; nine single runs "
                          "in ten %.2f to %.2f)\n",
                          100 * c->goodput.mean, goodput, 100 * c->goodput.p5,
                          100 * c->goodput.p95);
  if (j->work_s > 0.0)
    g_string_append_printf (out,
                            "Days    %.2f  (mean %s; single runs %.2f to %.2f; undisturbed %.2f)\n",
                            c->days.mean, days, c->days.p5, c->days.p95, j->work_s / 86400.0);
  if (j->work_s > 0.0 && c->timed_out > 0)
    g_string_append_printf (
        out,
        "Unfinished: %u of %u replicas were cut off after %.6g days (job.days) before their work "
        "was "
        "done; of the %.2f days of work %.2f are missing in the mean over all replicas\n",
        c->timed_out, c->replicas, j->days, j->work_s / 86400.0,
        campaign_missing_s (j, c) / 86400.0);
  if (j->tokens > 0.0)
    g_string_append_printf (out, "Tokens  %.4g in %.4g steps of %.4g s\n", j->tokens,
                            j->tokens / j->tokens_per_step, j->step_time_s);
  if (j->published_source != NULL)
    g_string_append_printf (out, "Published %s %.2f %%: %s\n",
                            j->published_hi > j->published_goodput   ? "at least"
                            : j->published_lo < j->published_goodput ? "at most"
                                                                     : "about",
                            100 * j->published_goodput, j->published_source);
  g_string_append_printf (out, "%u replicas, seed %" G_GUINT64_FORMAT "%s\n", c->replicas, r->seed,
                          r->interrupted ? ", interrupted" : "");
  if (c->stuck > 0)
    g_string_append_printf (out, "%u of them made no progress any more: %s\n", c->stuck,
                            c->why_stuck);
}

static void
text_causes (GString *out, const CampaignReport *r)
{
  const CampaignResult *c = r->result;
  g_string_append (out, "\nWhere the time goes (95 % interval of the mean)\n");
  put_share (out, "useful work", &c->goodput);
  for (guint i = 0; i < BAD_COUNT; i++)
    if (c->bad[i].mean > 5e-7)
      put_share (out, badput_names[i], &c->bad[i]);
  g_string_append_printf (out, "\nStops %.1f a run (%.1f to %.1f), one in ", c->stops.mean,
                          c->stops.p5, c->stops.p95);
  put_seconds (out, "", c->mtbf_s.mean, "; lost work a stop ");
  put_seconds (out, "", c->lost_per_stop_s.mean, "; longest stretch without progress ");
  put_seconds (out, "", c->longest_s.mean, "\nFailures a run:");
  gboolean any = FALSE;
  for (guint i = 0; i < FAULT_COUNT; i++)
    if (c->faults[i].mean > 0.0) {
      g_string_append_printf (out, "%s %s %.1f", any ? "," : "", fault_names[i], c->faults[i].mean);
      any = TRUE;
    }
  g_string_append (out, any ? "\n" : " none\n");
}

static void
text_checkpoints (GString *out, const CampaignReport *r)
{
  const JobSpec *j = r->job;
  put_seconds (out, "\nCheckpoints every ", j->ckpt.interval_s, " of work");
  for (guint i = 0; i < j->ckpt.n_levels; i++) {
    const CkptLevel *l = &j->ckpt.level[i];
    g_string_append_printf (out,
                            "\n  every %u: blocks %.3g s, safe after %.3g s, restores in %.3g s, "
                            "outlives %s",
                            l->every, l->block_s, l->persist_s, l->restore_s,
                            l->survives == CKPT_PROCESS ? "a crash of processes"
                            : l->survives == CKPT_NODE  ? "the loss of a node"
                                                        : "all");
  }
  if (j->ckpt_bytes > 0.0) {
    g_autofree char *bytes = format_bytes (j->ckpt_bytes);
    g_string_append_printf (out, "\n  size %s", bytes);
  }
  g_string_append_c (out, '\n');
  const IntervalCurve *k = r->curve;
  if (k == NULL)
    return;
  if (k->rises != 0) {
    put_seconds (out, "  best interval not bracketed: goodput still rises, or stays, at ",
                 k->best_s, k->rises < 0 ? " and shorter" : " and longer");
  } else {
    put_seconds (out, "  best interval ", k->best_s, k->exact ? " (closed form)" : " (simulated, ");
    if (!k->exact && isfinite (k->best_lo_s)) {
      put_seconds (out, "", k->best_lo_s, " to ");
      put_seconds (out, "", k->best_hi_s, ")");
    } else if (!k->exact) {
      g_string_append (out, "its error unknown)");
    }
  }
  put_seconds (out, "; within half a point from ", k->flat_lo_s, " to ");
  put_seconds (out, "", k->flat_hi_s, "\n");
  g_string_append_printf (out, "  half of it costs %.2f points, twice %.2f points\n",
                          100 * (k->best_goodput - k->half), 100 * (k->best_goodput - k->twice));
  if (k->young_s > 0.0) {
    put_seconds (out, "  Young's rule ", k->young_s, ", Daly's ");
    put_seconds (out, "", k->daly_s, "\n");
  }
}

static void
text_changes (GString *out, const CampaignReport *r)
{
  if (r->n_changes == 0)
    return;
  g_string_append (out, "\nWhat a change would bring (points of goodput, paired replicas)\n");
  for (guint i = 0; i < r->n_changes; i++) {
    const Sensitivity *s = &r->change[i];
    g_string_append_printf (out, "  %-36s %+.2f  (%+.2f to %+.2f)\n", s->what, 100 * s->gain.mean,
                            100 * s->gain.lo, 100 * s->gain.hi); /* always eight replicas or more */
  }
}

static void
text_spares (GString *out, const CampaignReport *r)
{
  const SpareStats *s = r->spares;
  if (s == NULL)
    return;
  g_string_append_printf (
      out,
      "\nNodes in repair: mean %.1f, P50 %u, P90 %u, P99 %u (single runs %.0f to "
      "%.0f); independent failures would say %u at P99\n",
      s->mean_down, s->p50, s->p90, s->p99, s->p99_lo, s->p99_hi, s->independent_p99);
  g_string_append_printf (out, "Spares for 95 %% of the time %u, for 99 %% %u, for 99.9 %% %u\n",
                          spares_needed (s, 0.95), spares_needed (s, 0.99),
                          spares_needed (s, 0.999));
}

static void
text_cost (GString *out, const CampaignReport *r)
{
  CostResult c = campaign_cost (r->job, r->result);
  g_autofree char *hours = format_fixed (c.gpu_hours, 0);
  g_string_append_printf (out, "\nGPU-hours %s", hours);
  if (c.usd >= 0.0) {
    g_autofree char *usd = format_fixed (c.usd, 0);
    g_string_append_printf (out, "; USD %s", usd);
    if (r->job->cost.mode == COST_OWN)
      g_string_append_printf (out, " (machines %.0f, upkeep %.0f, power %.0f)", c.usd_machines,
                              c.usd_upkeep, c.usd_power);
  } else {
    g_string_append (out, "; no price is given (job.prices)");
  }
  if (c.kwh >= 0.0)
    g_string_append_printf (
        out,
        "\nEnergy %.4g MWh: computing %.4g, communicating %.4g, idle %.4g, cooling "
        "and losses %.4g",
        c.kwh / 1e3, c.kwh_compute / 1e3, c.kwh_comm / 1e3, c.kwh_idle / 1e3, c.kwh_overhead / 1e3);
  if (c.kg_co2 >= 0.0)
    g_string_append_printf (out, "; CO2 %.4g t", c.kg_co2 / 1e3);
  g_string_append_c (out, '\n');
}

void
report_campaign_text (GString *out, const CampaignReport *r)
{
  text_head (out, r);
  text_causes (out, r);
  text_checkpoints (out, r);
  text_changes (out, r);
  text_spares (out, r);
  text_cost (out, r);
  guint assumed = 0;
  for (guint i = 0; r->job->inputs != NULL && i < r->job->inputs->len; i++) {
    const JobInput *in = g_ptr_array_index (r->job->inputs, i);
    if (g_str_equal (in->kind, "assumed"))
      g_string_append_printf (out, "%s  %s = %.6g: %s\n", assumed++ == 0 ? "\nAssumed\n" : "",
                              in->key, in->value, in->source);
  }
  for (guint i = 0; r->assumed != NULL && r->assumed[i] != NULL; i++)
    g_string_append_printf (out, "%s  %s\n", assumed++ == 0 ? "\nAssumed\n" : "", r->assumed[i]);
}

/* ---- CSV ---- */

static void
put (GString *out, double v)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append_c (out, ',');
  if (isfinite (v) && v > -1e300)
    g_string_append (out, g_ascii_formatd (text, sizeof text, "%.9g", v));
}

void
report_campaign_csv (GString *out, const CampaignReport *r)
{
  const CampaignResult *c = r->result;
  CostResult cost = campaign_cost (r->job, c);
  g_string_append (out,
                   "name,gpus,replicas,finished,stuck,goodput,goodput_lo,goodput_hi,goodput_p5,"
                   "goodput_p95,days,days_lo,days_hi,stops,interval_s");
  for (guint i = 0; i < BAD_COUNT; i++)
    g_string_append_printf (out, ",%s", badput_names[i]);
  g_string_append (out, ",gpu_hours,usd,kwh,kg_co2\n");
  report_csv_field (out, r->name);
  const double v[] = {(double)r->job->gpus, c->replicas,
                      c->finished,          c->stuck,
                      c->goodput.mean,      c->goodput.lo,
                      c->goodput.hi,        c->goodput.p5,
                      c->goodput.p95,       c->days.mean,
                      c->days.lo,           c->days.hi,
                      c->stops.mean,        r->job->ckpt.interval_s};
  for (guint i = 0; i < G_N_ELEMENTS (v); i++)
    put (out, v[i]);
  for (guint i = 0; i < BAD_COUNT; i++)
    put (out, c->bad[i].mean);
  put (out, cost.gpu_hours);
  put (out, cost.usd >= 0 ? cost.usd : NAN);
  put (out, cost.kwh >= 0 ? cost.kwh : NAN);
  put (out, cost.kg_co2 >= 0 ? cost.kg_co2 : NAN);
  g_string_append_c (out, '\n');
}

void
report_goodput_csv (GString *out, const CampaignReport *r)
{
  g_string_append (out, "series,cause,percent,lo,hi\n");
  for (guint i = 0; i <= BAD_COUNT; i++) {
    const Estimate *e = i == 0 ? &r->result->goodput : &r->result->bad[i - 1];
    report_csv_field (out, r->name);
    g_string_append_printf (out, ",%s", i == 0 ? "useful_work" : badput_names[i - 1]);
    put (out, 100 * e->mean);
    put (out, 100 * e->lo);
    put (out, 100 * e->hi);
    g_string_append_c (out, '\n');
  }
}

static void
checkpoint_row (GString *out, const CampaignReport *r, const char *kind, double interval_s,
                double mean, double lo, double hi)
{
  report_csv_field (out, r->name);
  g_string_append_printf (out, ",%s", kind);
  put (out, interval_s);
  put (out, 100 * mean);
  put (out, 100 * lo);
  put (out, 100 * hi);
  g_string_append_c (out, '\n');
}

void
report_checkpoint_csv (GString *out, const CampaignReport *r)
{
  const IntervalCurve *k = r->curve;
  g_assert (k != NULL);
  g_string_append (out, "series,kind,interval_s,goodput_percent,lo_percent,hi_percent\n");
  for (guint i = 0; i < k->n; i++) {
    const CurvePoint *p = &k->point[i];
    checkpoint_row (out, r, "simulated", p->interval_s, p->goodput.mean, p->goodput.lo,
                    p->goodput.hi);
    if (p->exact >= 0.0)
      checkpoint_row (out, r, "closed form", p->interval_s, p->exact, p->exact, p->exact);
  }
  double best = k->best_goodput;
  checkpoint_row (out, r, "best", k->best_s, best, best, best);
  checkpoint_row (out, r, "flat from", k->flat_lo_s, best, best, best);
  checkpoint_row (out, r, "flat to", k->flat_hi_s, best, best, best);
}

void
report_sensitivity_csv (GString *out, const CampaignReport *r)
{
  g_string_append (out, "series,change,gain_points,lo,hi,best_interval_s\n");
  for (guint i = 0; i < r->n_changes; i++) {
    const Sensitivity *s = &r->change[i];
    report_csv_field (out, r->name);
    g_string_append_c (out, ',');
    report_csv_field (out, s->what);
    put (out, 100 * s->gain.mean);
    put (out, 100 * s->gain.lo);
    put (out, 100 * s->gain.hi);
    put (out, s->best_interval_s > 0 ? s->best_interval_s : NAN);
    g_string_append_c (out, '\n');
  }
}

void
report_cost_csv_header (GString *out)
{
  g_string_append (out,
                   "series,gpus,days,days_lo,days_hi,undisturbed_days,usd,kwh,gpu_hours,goodput,"
                   "step_time_s,hot_spares,cold_spares\n");
}

void
report_cost_csv_row (GString *out, const JobSpec *j, const CampaignResult *r)
{
  CostResult c = campaign_cost (j, r);
  const double v[] = {(double)j->gpus,
                      r->days.mean,
                      r->days.p5,
                      r->days.p95,
                      j->work_s / 86400.0,
                      c.usd,
                      c.kwh,
                      c.gpu_hours,
                      r->goodput.mean,
                      j->step_time_s,
                      j->tracked ? j->hot_spares : -1.0,
                      j->tracked ? j->cold_spares : -1.0};
  for (guint i = 0; i < G_N_ELEMENTS (v); i++)
    put (out, v[i] >= 0 ? v[i] : NAN);
  g_string_append_c (out, '\n');
}
