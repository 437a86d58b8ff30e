#include "report_campaign.h"

#include "json_write.h"

#include <math.h>

static void
put_estimate (JsonWriter *w, const char *key, const Estimate *e)
{
  jw_begin_object (w, key);
  jw_double (w, "mean", e->mean);
  jw_begin_array (w, "interval_95");
  jw_double (w, NULL, e->lo);
  jw_double (w, NULL, e->hi);
  jw_end_array (w);
  jw_begin_array (w, "runs_90");
  jw_double (w, NULL, e->p5);
  jw_double (w, NULL, e->p95);
  jw_end_array (w);
  jw_end_object (w);
}

/* Unknown is null. */
static void
put_known (JsonWriter *w, const char *key, double v)
{
  jw_double (w, key, v >= 0.0 ? v : NAN);
}

static void
json_time (JsonWriter *w, const CampaignReport *r)
{
  const CampaignResult *c = r->result;
  put_estimate (w, "goodput", &c->goodput);
  put_estimate (w, "days", &c->days);
  jw_begin_object (w, "badput");
  for (guint i = 0; i < BAD_COUNT; i++)
    if (i != BAD_DETECTION && i != BAD_WAITING)
      put_estimate (w, badput_names[i], &c->bad[i]);
  jw_begin_object (w, "infrastructure_recovery");
  jw_double (w, "mean", c->bad[BAD_DETECTION].mean + c->bad[BAD_WAITING].mean);
  put_estimate (w, badput_names[BAD_DETECTION], &c->bad[BAD_DETECTION]);
  put_estimate (w, badput_names[BAD_WAITING], &c->bad[BAD_WAITING]);
  jw_end_object (w);
  jw_end_object (w);
  put_estimate (w, "stops", &c->stops);
  put_estimate (w, "time_between_stops_s", &c->mtbf_s);
  put_estimate (w, "lost_work_per_stop_s", &c->lost_per_stop_s);
  put_estimate (w, "longest_without_progress_s", &c->longest_s);
  put_estimate (w, "checkpoints_saved", &c->checkpoints);
  jw_begin_object (w, "failures");
  for (guint i = 0; i < FAULT_COUNT; i++)
    if (c->faults[i].mean > 0.0)
      put_estimate (w, fault_names[i], &c->faults[i]);
  jw_end_object (w);
}

static void
json_checkpoint (JsonWriter *w, const CampaignReport *r)
{
  const JobSpec *j = r->job;
  jw_begin_object (w, "checkpoint");
  jw_double (w, "interval_s", j->ckpt.interval_s);
  put_known (w, "bytes", j->ckpt_bytes > 0.0 ? j->ckpt_bytes : -1.0);
  put_known (w, "host_bytes_per_node",
             j->host_bytes_per_node > 0.0 ? j->host_bytes_per_node : -1.0);
  jw_begin_array (w, "levels");
  for (guint i = 0; i < j->ckpt.n_levels; i++) {
    const CkptLevel *l = &j->ckpt.level[i];
    jw_begin_object (w, NULL);
    jw_int (w, "every", l->every);
    jw_double (w, "block_s", l->block_s);
    jw_double (w, "persist_s", l->persist_s);
    jw_double (w, "restore_s", l->restore_s);
    jw_string (w, "survives", ckpt_survives_names[l->survives]);
    jw_end_object (w);
  }
  jw_end_array (w);
  const IntervalCurve *k = r->curve;
  if (k != NULL) {
    jw_begin_object (w, "best");
    jw_double (w, "interval_s", k->best_s);
    jw_double (w, "interval_lo_s", k->best_lo_s);
    jw_double (w, "interval_hi_s", k->best_hi_s);
    jw_bool (w, "closed_form", k->exact);
    jw_bool (w, "bracketed", k->rises == 0);
    jw_double (w, "goodput", k->best_goodput);
    jw_double (w, "flat_lo_s", k->flat_lo_s);
    jw_double (w, "flat_hi_s", k->flat_hi_s);
    jw_double (w, "goodput_at_half", k->half);
    jw_double (w, "goodput_at_twice", k->twice);
    jw_end_object (w);
    jw_begin_array (w, "curve");
    for (guint i = 0; i < k->n; i++) {
      jw_begin_object (w, NULL);
      jw_double (w, "interval_s", k->point[i].interval_s);
      put_estimate (w, "goodput", &k->point[i].goodput);
      put_known (w, "exact", k->point[i].exact);
      jw_end_object (w);
    }
    jw_end_array (w);
  }
  jw_end_object (w);
}

static void
json_changes (JsonWriter *w, const CampaignReport *r)
{
  if (r->n_changes == 0)
    return;
  jw_begin_array (w, "sensitivity");
  for (guint i = 0; i < r->n_changes; i++) {
    jw_begin_object (w, NULL);
    jw_string (w, "change", r->change[i].what);
    put_estimate (w, "gain", &r->change[i].gain);
    if (r->change[i].best_interval_s > 0.0)
      jw_double (w, "best_interval_s", r->change[i].best_interval_s);
    jw_end_object (w);
  }
  jw_end_array (w);
}

static void
json_spares (JsonWriter *w, const SpareStats *s)
{
  if (s == NULL)
    return;
  jw_begin_object (w, "nodes_in_repair");
  jw_double (w, "mean", s->mean_down);
  jw_int (w, "p50", s->p50);
  jw_int (w, "p90", s->p90);
  jw_int (w, "p99", s->p99);
  jw_double (w, "p99_of_runs_lo", s->p99_lo);
  jw_double (w, "p99_of_runs_hi", s->p99_hi);
  jw_int (w, "independent_p99", s->independent_p99);
  jw_end_object (w);
}

static void
json_cost (JsonWriter *w, const CampaignReport *r)
{
  CostResult c = campaign_cost (r->job, r->result);
  jw_begin_object (w, "cost");
  jw_double (w, "gpu_hours", c.gpu_hours);
  put_known (w, "usd", c.usd);
  put_known (w, "usd_machines", c.usd_machines);
  put_known (w, "usd_upkeep", c.usd_upkeep);
  put_known (w, "usd_power", c.usd_power);
  put_known (w, "kwh", c.kwh);
  put_known (w, "kwh_compute", c.kwh_compute);
  put_known (w, "kwh_comm", c.kwh_comm);
  put_known (w, "kwh_idle", c.kwh_idle);
  put_known (w, "kwh_overhead", c.kwh_overhead);
  put_known (w, "kg_co2", c.kg_co2);
  jw_end_object (w);
}

static void
json_provenance (JsonWriter *w, const CampaignReport *r)
{
  jw_begin_object (w, "provenance");
  jw_string (w, "version", CLUSTERSIM_VERSION);
  jw_string (w, "failures", r->job->faults.name);
  jw_begin_array (w, "inputs");
  for (guint i = 0; r->job->inputs != NULL && i < r->job->inputs->len; i++) {
    const JobInput *in = g_ptr_array_index (r->job->inputs, i);
    jw_begin_object (w, NULL);
    jw_string (w, "key", in->key);
    jw_double (w, "value", in->value);
    jw_string (w, "kind", in->kind);
    jw_string (w, "source", in->source);
    jw_end_object (w);
  }
  jw_end_array (w);
  jw_begin_array (w, "assumed");
  for (guint i = 0; r->assumed != NULL && r->assumed[i] != NULL; i++)
    jw_string (w, NULL, r->assumed[i]);
  jw_end_array (w);
  jw_end_object (w);
}

void
report_campaign_json (GString *out, const CampaignReport *r)
{
  const JobSpec *j = r->job;
  g_autoptr (JsonWriter) w = json_writer_new (out, 2);
  jw_begin_object (w, NULL);
  jw_string (w, "name", r->name);
  jw_int (w, "gpus", j->gpus);
  jw_int (w, "nodes", j->nodes);
  jw_int (w, "replicas", r->result->replicas);
  jw_int (w, "finished", r->result->finished);
  jw_int (w, "stuck", r->result->stuck);
  jw_int (w, "cut_off", j->work_s > 0.0 ? r->result->timed_out : 0);
  jw_double (w, "missing_work_days", campaign_missing_s (j, r->result) / 86400.0);
  if (r->result->why_stuck != NULL)
    jw_string (w, "why_stuck", r->result->why_stuck);
  jw_bool (w, "interrupted", r->interrupted);
  put_known (w, "undisturbed_days", j->work_s > 0.0 ? j->work_s / 86400.0 : -1.0);
  put_known (w, "tokens", j->tokens > 0.0 ? j->tokens : -1.0);
  put_known (w, "step_time_s", j->step_time_s > 0.0 ? j->step_time_s : -1.0);
  json_time (w, r);
  json_checkpoint (w, r);
  json_changes (w, r);
  json_spares (w, r->spares);
  json_cost (w, r);
  if (j->published_source != NULL) {
    jw_begin_object (w, "published");
    jw_double (w, "goodput", j->published_goodput);
    jw_string (w, "source", j->published_source);
    jw_end_object (w);
  }
  json_provenance (w, r);
  g_autofree char *print = g_strdup_printf ("%016" G_GINT64_MODIFIER "x", r->result->fingerprint);
  jw_string (w, "fingerprint", print);
  jw_end_object (w);
  g_string_append_c (out, '\n');
}
