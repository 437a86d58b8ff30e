/* What a job is: defaults, checks, and what closed forms say about it. */
#include "campaign_int.h"

#include "reliability.h"

#include <math.h>
#include <string.h>

G_DEFINE_QUARK (clustersim - campaign - error - quark, campaign_error)

const char *const badput_names[] = {"initialization",  "training_prep",   "program_startup",
                                    "data_loading",    "checkpoint_save", "checkpoint_restore",
                                    "wasted_progress", "detection",       "waiting_for_nodes",
                                    "elastic_changes", "stragglers",      "evaluation",
                                    "maintenance",     "batch_ramp",      NULL};
const char *const recovery_names[] = {"restart", "elastic", "replicated", NULL};

void
job_init (JobSpec *j)
{
  memset (j, 0, sizeof *j);
  fault_profile_init (&j->faults);
  cost_init (&j->cost);
  j->ckpt.n_levels = 1;
  j->ckpt.level[0] = (CkptLevel){.every = 1, .survives = CKPT_ALL};
  j->planned_save_s = -1.0;
  j->in_place_s = -1.0;
  j->min_units = j->min_replicas = 1;
  j->ramp_speed = 1.0;
  j->maintenance_warned = TRUE;
}

void
job_input_free (JobInput *i)
{
  if (i == NULL)
    return;
  g_free (i->key);
  g_free (i->kind);
  g_free (i->source);
  g_free (i);
}

void
job_clear (JobSpec *j)
{
  fault_profile_clear (&j->faults);
  g_clear_pointer (&j->published_source, g_free);
  g_clear_pointer (&j->inputs, g_ptr_array_unref);
}

void
job_copy (JobSpec *to, const JobSpec *from)
{
  *to = *from;
  fault_profile_copy (&to->faults, &from->faults);
  to->published_source = NULL;
  to->inputs = NULL;
}

JobSpec *
job_dup (const JobSpec *j)
{
  JobSpec *copy = g_new (JobSpec, 1);
  job_copy (copy, j);
  return copy;
}

void
job_free (JobSpec *j)
{
  if (j == NULL)
    return;
  job_clear (j);
  g_free (j);
}

/* ---- closed forms ---- */

double
job_mtbf_s (const JobSpec *j)
{
  double rate = fault_profile_rate (&j->faults, j->nodes, j->gpus_per_node);
  return rate > 0.0 ? 1.0 / rate : INFINITY;
}

/* Level that is read back after a node was lost: the cheapest that outlives it. */
static guint
level_after_loss (const JobSpec *j)
{
  for (guint i = 0; i < j->ckpt.n_levels; i++)
    if (j->ckpt.level[i].survives != CKPT_PROCESS)
      return i;
  return j->ckpt.n_levels - 1;
}

double
job_restart_s (const JobSpec *j)
{
  return j->init_s + j->ckpt.level[level_after_loss (j)].restore_s + j->warmup_s;
}

double
job_down_s (const JobSpec *j)
{
  double sum = 0.0, down = 0.0;
  for (guint i = 0; i < FAULT_COUNT; i++) {
    const FaultCauseSpec *c = &j->faults.cause[i];
    if (i == FAULT_STRAGGLER || i == FAULT_SDC)
      continue;
    double lost = c->keeps_memory ? c->takes_node : 1.0;
    sum += c->rate;
    down += c->rate * (c->detect.mean_s + lost * (j->requeue_s + j->swap_s));
  }
  return sum > 0.0 ? down / sum : 0.0;
}

gboolean
job_is_exponential (const JobSpec *j)
{
  const FaultProfile *p = &j->faults;
  gboolean plain = fault_profile_is_poisson (p) && j->ckpt.n_levels == 1 &&
                   j->ckpt.level[0].persist_s <= 0.0 && j->ckpt.level[0].survives == CKPT_ALL &&
                   !j->tracked && j->recovery == RECOVERY_RESTART && j->eval_s <= 0.0 &&
                   j->data_stall <= 0.0 && j->ramp_work_s <= 0.0 && j->maintenance_every_s <= 0.0;
  if (!plain || p->cause[FAULT_STRAGGLER].rate > 0.0 || p->cause[FAULT_SDC].rate > 0.0)
    return FALSE;
  for (guint i = 0; i < FAULT_COUNT; i++) {
    const FaultCauseSpec *c = &p->cause[i];
    gboolean in_place = c->rate > 0.0 && c->keeps_memory && c->takes_node < 1.0;
    if (in_place && j->in_place_s >= 0.0 && j->in_place_s != j->init_s)
      return FALSE;
  }
  return TRUE;
}

double
job_exact_goodput (const JobSpec *j, double interval_s)
{
  const CkptLevel *l = &j->ckpt.level[0];
  double mtbf = job_mtbf_s (j);
  if (!isfinite (mtbf))
    return interval_s / (interval_s + l->block_s);
  return rel_efficiency (interval_s, l->block_s, job_restart_s (j), job_down_s (j), mtbf);
}

/* ---- checks ---- */

static gboolean
fail (GError **error, CampaignError code, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error_literal (error, CAMPAIGN_ERROR, code, text);
  return FALSE;
}

static gboolean
not_negative (GError **error, const char *what, double v)
{
  if (v >= 0.0 && isfinite (v))
    return TRUE;
  return fail (error, CAMPAIGN_ERROR_INPUT, "%s (found %g s; allowed: 0 or more)", what, v);
}

static gboolean
check_times (const JobSpec *j, GError **error)
{
  if (!not_negative (error, "first start", j->start_s) ||
      !not_negative (error, "queue time", j->requeue_s) ||
      !not_negative (error, "swap of a spare", j->swap_s) ||
      !not_negative (error, "set-up time", j->init_s) ||
      !not_negative (error, "warm-up", j->warmup_s) ||
      !not_negative (error, "evaluation pause", j->eval_s) ||
      !not_negative (error, "stall", j->stall_s) || !not_negative (error, "rejoin", j->rejoin_s))
    return FALSE;
  if (j->work_s <= 0.0 && j->days <= 0.0)
    return fail (error, CAMPAIGN_ERROR_INPUT,
                 "nothing to do (found neither tokens, work_days nor days; allowed: one of them)");
  if (j->eval_s > 0.0 && !(j->eval_every_s > 0.0))
    return fail (error, CAMPAIGN_ERROR_INPUT,
                 "interval of evaluations (found %g s; allowed: more than 0)", j->eval_every_s);
  if (!(j->data_stall >= 0.0 && j->data_stall < 1.0))
    return fail (error, CAMPAIGN_ERROR_INPUT,
                 "share of data stalls (found %g; allowed: 0 to less than 1)", j->data_stall);
  return TRUE;
}

static gboolean
check_recovery (const JobSpec *j, GError **error)
{
  if (j->recovery == RECOVERY_ELASTIC) {
    if (j->unit_nodes == 0 || j->unit_nodes > j->nodes)
      return fail (error, CAMPAIGN_ERROR_INPUT,
                   "nodes of an elastic unit (found %u; allowed: 1 to the job's %u)", j->unit_nodes,
                   j->nodes);
    if (j->min_units == 0 || j->min_units > j->nodes / j->unit_nodes)
      return fail (error, CAMPAIGN_ERROR_INPUT, "fewest units (found %u; allowed: 1 to %u)",
                   j->min_units, j->nodes / j->unit_nodes);
    if (!j->tracked)
      return fail (
          error, CAMPAIGN_ERROR_INPUT,
          "an elastic job with endless spares never shrinks (allowed: a number of spares)");
  }
  if (j->recovery == RECOVERY_REPLICATED &&
      (j->replicas < 2 || j->min_replicas == 0 || j->min_replicas > j->replicas))
    return fail (error, CAMPAIGN_ERROR_INPUT,
                 "replicas (found %u, fewest %u; allowed: 2 or more, fewest 1 to replicas)",
                 j->replicas, j->min_replicas);
  return TRUE;
}

/* Where even the closed form has no progress, simulation would not end. Other processes are judged
 * by the exponential one of the same mean, with a wide margin. */
static gboolean
check_hope (const JobSpec *j, GError **error)
{
  double mtbf = job_mtbf_s (j), restart = job_restart_s (j);
  if (j->recovery == RECOVERY_REPLICATED)
    restart = j->stall_s;
  if (mtbf < restart)
    return fail (
        error, CAMPAIGN_ERROR_HOPELESS,
        "the time between failures is shorter than the restart (found %.3g s against %.3g s;"
        " allowed: longer): the job would hardly ever run",
        mtbf, restart);
  if (j->recovery == RECOVERY_REPLICATED || j->best_interval)
    return TRUE;
  double interval = j->ckpt.interval_s, block = j->ckpt.level[0].block_s;
  double eta = rel_efficiency (interval, block, restart, 0.0, mtbf);
  double cycles = (interval + block) / mtbf;
  if (eta < 1e-3 || (cycles > 20.0 && fault_profile_is_poisson (&j->faults)))
    return fail (error, CAMPAIGN_ERROR_HOPELESS,
                 "such a run can never finish: a failure every %.3g s leaves no time for a restart "
                 "of %.3g s and the %.3g s to the next checkpoint",
                 mtbf, restart, interval + block);
  return TRUE;
}

gboolean
job_check (const JobSpec *j, GError **error)
{
  if (j->nodes == 0)
    return fail (error, CAMPAIGN_ERROR_INPUT, "nodes (found 0; allowed: 1 or more)");
  if (!fault_profile_check (&j->faults, error) || !check_times (j, error) ||
      !check_recovery (j, error))
    return FALSE;
  CkptPlan plan = j->ckpt;
  if (j->best_interval)
    plan.interval_s = MAX (plan.interval_s, 1.0);
  if (!ckpt_plan_check (&plan, error))
    return FALSE;
  guint all = j->tracked ? j->nodes + j->hot_spares + j->cold_spares : j->nodes;
  if (j->faults.trace != NULL && all == 0)
    return fail (error, CAMPAIGN_ERROR_INPUT, "a trace without nodes");
  return check_hope (j, error);
}
