/* The "job" object. What it leaves out comes from scenarios/jobs/common.json, merged below it. */
#include "read_job.h"

#include "paths.h"
#include "scenario_priv.h"

#include <math.h>
#include <string.h>

#define JOBS_COMMON "common"

static const char *const job_keys[] = {"why",
                                       "source",
                                       "tokens",
                                       "work_days",
                                       "days",
                                       "step_time_s",
                                       "tokens_per_step",
                                       "failures",
                                       "checkpoint",
                                       "restart",
                                       "spares",
                                       "recovery",
                                       "elastic",
                                       "replicated",
                                       "idle_failure_factor",
                                       "evaluation",
                                       "data_stall",
                                       "batch_ramp",
                                       "maintenance",
                                       "prices",
                                       "published",
                                       NULL};

/* ---- sections ---- */

static gboolean
read_amount (const JsonRef *job, const JobContext *c, JobSpec *j, GError **error)
{
  double work_days = 0.0;
  gboolean has_tokens, has_work, has_days;
  JsonRef at;
  j->step_time_s = c->step_time_s;
  j->tokens_per_step = c->tokens_per_step;
  if (!job_number (job, "step_time_s", 1e-6, 1e6, &j->step_time_s, j->inputs, NULL, error) ||
      !job_number (job, "tokens_per_step", 1, 1e12, &j->tokens_per_step, j->inputs, NULL, error) ||
      !job_number (job, "tokens", 1, 1e18, &j->tokens, j->inputs, &has_tokens, error) ||
      !job_number (job, "work_days", 1e-6, 1e5, &work_days, j->inputs, &has_work, error) ||
      !job_number (job, "days", 1e-6, 1e5, &j->days, j->inputs, &has_days, error))
    return FALSE;
  if (has_tokens && has_work) {
    json_get_any (job, "work_days", &at, NULL);
    return json_fail (&at, JSON_ERROR_INCONSISTENT, error,
                      "both tokens and work_days are given (allowed: one of them)");
  }
  if (has_work)
    j->work_s = work_days * 86400.0;
  if (has_tokens && (j->step_time_s <= 0.0 || j->tokens_per_step <= 0.0)) {
    json_get_any (job, "tokens", &at, NULL);
    return json_fail (
        &at, JSON_ERROR_MISSING, error,
        "tokens need the time and the tokens of a step (allowed: a whole scenario, or "
        "step_time_s and tokens_per_step)");
  }
  if (has_tokens)
    j->work_s = j->tokens / j->tokens_per_step * j->step_time_s;
  if (!has_tokens && !has_work && !has_days)
    return json_fail (job, JSON_ERROR_MISSING, error,
                      "nothing to do (allowed: tokens, work_days or days)");
  return TRUE;
}

/* "failures": a profile, or { "mtbf_s" } of the whole job. */
static gboolean
read_job_failures (const JsonRef *job, const JobContext *c, JobSpec *j, GError **error)
{
  g_autoptr (JsonDoc) file = NULL;
  JsonRef ref;
  double mtbf = 0.0;
  gboolean has_mtbf;
  if (!job_part (job, "failures", "failures", &file, &ref, error) ||
      !job_number (&ref, "mtbf_s", 1e-3, 1e15, &mtbf, j->inputs, &has_mtbf, error))
    return FALSE;
  fault_profile_clear (&j->faults);
  fault_profile_init (&j->faults);
  if (!read_failures (&ref, &j->faults, j->inputs, error))
    return FALSE;
  if (has_mtbf)
    j->faults.cause[FAULT_UNKNOWN].rate = 1000.0 * 86400.0 / (mtbf * (double)c->nodes);
  return TRUE;
}

/* restart.detection_s: one number for all causes, or an object by cause; over the profile's. */
static gboolean
read_detection (const JsonRef *restart, JobSpec *j, GError **error)
{
  JsonRef ref;
  if (!json_has (restart, "detection_s"))
    return TRUE;
  if (!json_get_any (restart, "detection_s", &ref, error))
    return FALSE;
  gboolean by_cause =
      json_is_object (&ref) && !json_has (&ref, "value") && !json_has (&ref, "distribution");
  if (by_cause && !json_check_keys (&ref, fault_names, error))
    return FALSE;
  for (guint i = 0; i < FAULT_COUNT; i++) {
    Dist *d = &j->faults.cause[i].detect;
    if (by_cause ? !job_dist (&ref, fault_names[i], d, j->inputs, error)
                 : i != FAULT_SDC && i != FAULT_STRAGGLER &&
                       !job_dist (restart, "detection_s", d, i == 0 ? j->inputs : NULL, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
read_restart (const JsonRef *job, const JobContext *c, JobSpec *j, GError **error)
{
  static const char *const keys[] = {"start_s",    "requeue_s", "swap_s",      "init_s",
                                     "in_place_s", "warmup_s",  "detection_s", NULL};
  JsonRef ref;
  double gpus = (double)c->gpus;
  if (!json_get_object (job, "restart", &ref, error) || !json_check_keys (&ref, keys, error) ||
      !job_scaled_number (&ref, "init_s", gpus, &j->init_s, j->inputs, error))
    return FALSE;
  j->start_s = j->init_s;
  return job_scaled_number (&ref, "start_s", gpus, &j->start_s, j->inputs, error) &&
         job_scaled_number (&ref, "requeue_s", gpus, &j->requeue_s, j->inputs, error) &&
         job_scaled_number (&ref, "swap_s", gpus, &j->swap_s, j->inputs, error) &&
         job_scaled_number (&ref, "in_place_s", gpus, &j->in_place_s, j->inputs, error) &&
         job_scaled_number (&ref, "warmup_s", gpus, &j->warmup_s, j->inputs, error) &&
         read_detection (&ref, j, error);
}

static gboolean
read_spares (const JsonRef *job, JobSpec *j, GError **error)
{
  static const char *const keys[] = {"hot", "cold", "cold_start_s", NULL};
  JsonRef ref;
  if (!json_has (job, "spares"))
    return TRUE;
  if (!json_get_any (job, "spares", &ref, error))
    return FALSE;
  const char *text;
  if (json_is_string (&ref)) {
    if (!json_value_string (&ref, &text, error))
      return FALSE;
    return strcmp (text, "unlimited") == 0 ||
           json_fail (&ref, JSON_ERROR_RANGE, error,
                      "unknown spares (found \"%s\"; allowed: an object, or \"unlimited\")", text);
  }
  if (!json_get_object (job, "spares", &ref, error) || !json_check_keys (&ref, keys, error) ||
      !job_count (&ref, "hot", 0, 1000000, &j->hot_spares, j->inputs, error) ||
      !job_count (&ref, "cold", 0, 1000000, &j->cold_spares, j->inputs, error) ||
      !job_number (&ref, "cold_start_s", 0, 1e7, &j->cold_start_s, j->inputs, NULL, error))
    return FALSE;
  j->tracked = TRUE;
  return TRUE;
}

static gboolean
read_elastic (const JsonRef *job, JobSpec *j, GError **error)
{
  static const char *const keys[] = {"unit_nodes", "min_units", "reconfigure_s", "speed", NULL};
  JsonRef ref, speeds;
  j->unit_nodes = j->min_units = 1;
  if (!json_get_object (job, "elastic", &ref, error) || !json_check_keys (&ref, keys, error) ||
      !job_count (&ref, "unit_nodes", 1, 10000000, &j->unit_nodes, j->inputs, error) ||
      !job_count (&ref, "min_units", 1, 10000000, &j->min_units, j->inputs, error) ||
      !job_number (&ref, "reconfigure_s", 0, 1e7, &j->reconfigure_s, j->inputs, NULL, error))
    return FALSE;
  if (!json_has (&ref, "speed"))
    return TRUE;
  if (!json_get_array (&ref, "speed", &speeds, error))
    return FALSE;
  int n = json_len (&speeds);
  if (n < 1 || n > JOB_SPEEDS)
    return json_fail (&speeds, JSON_ERROR_RANGE, error,
                      "number of speeds (found %d; allowed: 1 to %d)", n, JOB_SPEEDS);
  for (int i = 0; i < n; i++) {
    JsonRef one = json_item (&speeds, i);
    if (!json_value_double (&one, 1e-6, 1, &j->speed[i], error))
      return FALSE;
  }
  j->n_speeds = (guint)n;
  return TRUE;
}

static gboolean
read_replicated (const JsonRef *job, JobSpec *j, GError **error)
{
  static const char *const keys[] = {"replicas", "min_replicas", "stall_s", "rejoin_s", NULL};
  JsonRef ref;
  j->replicas = 0;
  j->min_replicas = 1;
  if (!json_get_object (job, "replicated", &ref, error) || !json_check_keys (&ref, keys, error) ||
      !job_count (&ref, "replicas", 2, 1000000, &j->replicas, j->inputs, error) ||
      !job_count (&ref, "min_replicas", 1, 1000000, &j->min_replicas, j->inputs, error) ||
      !job_number (&ref, "stall_s", 0, 1e7, &j->stall_s, j->inputs, NULL, error) ||
      !job_number (&ref, "rejoin_s", 0, 1e7, &j->rejoin_s, j->inputs, NULL, error))
    return FALSE;
  return TRUE;
}

static gboolean
read_recovery (const JsonRef *job, JobSpec *j, GError **error)
{
  int recovery = RECOVERY_RESTART;
  if (!json_opt_enum (job, "recovery", recovery_names, &recovery, error) ||
      !job_number (job, "idle_failure_factor", 0, 1, &j->idle_factor, j->inputs, NULL, error))
    return FALSE;
  j->recovery = (Recovery)recovery;
  if (j->recovery == RECOVERY_ELASTIC)
    return read_elastic (job, j, error);
  return j->recovery != RECOVERY_REPLICATED || read_replicated (job, j, error);
}

static gboolean
read_pauses (const JsonRef *job, JobSpec *j, GError **error)
{
  static const char *const eval_keys[] = {"interval_s", "pause_s", NULL};
  static const char *const ramp_keys[] = {"work_days", "tokens", "speed", NULL};
  static const char *const maintenance_keys[] = {"interval_days", "duration_s", "warned", NULL};
  JsonRef ref;
  double days = 0.0, tokens = 0.0;
  if (json_has (job, "evaluation") &&
      (!json_get_object (job, "evaluation", &ref, error) ||
       !json_check_keys (&ref, eval_keys, error) ||
       !job_number (&ref, "interval_s", 1e-3, 1e9, &j->eval_every_s, j->inputs, NULL, error) ||
       !job_number (&ref, "pause_s", 0, 1e7, &j->eval_s, j->inputs, NULL, error)))
    return FALSE;
  if (!job_number (job, "data_stall", 0, 0.999, &j->data_stall, j->inputs, NULL, error))
    return FALSE;
  if (json_has (job, "batch_ramp")) {
    if (!json_get_object (job, "batch_ramp", &ref, error) ||
        !json_check_keys (&ref, ramp_keys, error) ||
        !job_number (&ref, "work_days", 0, 1e5, &days, j->inputs, NULL, error) ||
        !job_number (&ref, "tokens", 0, 1e18, &tokens, j->inputs, NULL, error) ||
        !job_number (&ref, "speed", 1e-3, 1, &j->ramp_speed, j->inputs, NULL, error))
      return FALSE;
    j->ramp_work_s = days * 86400.0;
    if (tokens > 0.0 && j->tokens_per_step > 0.0)
      j->ramp_work_s = tokens / j->tokens_per_step * j->step_time_s;
  }
  if (!json_has (job, "maintenance"))
    return TRUE;
  days = 0.0;
  if (!json_get_object (job, "maintenance", &ref, error) ||
      !json_check_keys (&ref, maintenance_keys, error) ||
      !job_number (&ref, "interval_days", 1e-3, 1e5, &days, j->inputs, NULL, error) ||
      !job_number (&ref, "duration_s", 0, 1e8, &j->maintenance_s, j->inputs, NULL, error) ||
      !json_opt_bool (&ref, "warned", &j->maintenance_warned, error))
    return FALSE;
  j->maintenance_every_s = days * 86400.0;
  return TRUE;
}

static gboolean
read_job_prices (const JsonRef *job, const JobContext *c, JobSpec *j, GError **error)
{
  CostSpec *cost = &j->cost;
  cost->pue = c->pue;
  cost->compute_share = 1.0;
  if (c->usd_per_gpu_hour > 0.0) {
    cost->mode = COST_RENT;
    cost->usd_per_gpu_hour = c->usd_per_gpu_hour;
  }
  if (c->node_power_w > 0.0)
    cost->compute_w = cost->comm_w = cost->idle_w = c->node_power_w / (double)c->gpus_per_node;
  if (!json_has (job, "prices"))
    return TRUE;
  g_autoptr (JsonDoc) file = NULL;
  JsonRef ref;
  return job_part (job, "prices", "prices", &file, &ref, error) &&
         read_prices (&ref, cost, j->inputs, error);
}

/* What was published about the run, to compare with. */
static gboolean
read_published (const JsonRef *job, JobSpec *j, GError **error)
{
  static const char *const keys[] = {"goodput", "bound", "source", "note", NULL};
  static const char *const bounds[] = {"about", "at_least", "at_most", NULL};
  JsonRef ref;
  int bound = 0;
  const char *source = NULL, *note = NULL;
  if (!json_has (job, "published"))
    return TRUE;
  if (!json_get_object (job, "published", &ref, error) || !json_check_keys (&ref, keys, error) ||
      !json_get_double (&ref, "goodput", 0, 1, &j->published_goodput, error) ||
      !json_opt_enum (&ref, "bound", bounds, &bound, error) ||
      !json_get_string (&ref, "source", &source, error) ||
      !json_opt_string (&ref, "note", &note, error))
    return FALSE;
  j->published_lo = bound == 2 ? 0.0 : j->published_goodput;
  j->published_hi = bound == 1 ? 1.0 : j->published_goodput;
  j->published_source = note != NULL ? g_strdup_printf ("%s; %s", source, note) : g_strdup (source);
  return TRUE;
}

/* ---- the whole ---- */

gboolean
read_job_keys (const JsonRef *root, GError **error)
{
  JsonRef ref;
  if (!json_has (root, "job"))
    return TRUE;
  return json_get_object (root, "job", &ref, error) && json_check_keys (&ref, job_keys, error);
}

gboolean
read_job_needs_step (const JsonRef *root)
{
  JsonRef job, ckpt;
  if (!json_get_object (root, "job", &job, NULL) || json_has (&job, "step_time_s"))
    return FALSE;
  gboolean steps =
      json_get_object (&job, "checkpoint", &ckpt, NULL) && json_has (&ckpt, "interval_steps");
  return steps || json_has (&job, "tokens");
}

/* The scenario with the common defaults below its job. */
static JsonDoc *
with_defaults (const JsonRef *root, GError **error)
{
  JsonRef job;
  g_autoptr (GError) why = NULL;
  if (!read_job_keys (root, error) || !json_get_object (root, "job", &job, error))
    return NULL;
  g_autofree char *path = data_find ("jobs", JOBS_COMMON, NULL, &why);
  if (path == NULL) {
    json_fail (&job, JSON_ERROR_FILE, error, "the defaults of a job: %s", why->message);
    return NULL;
  }
  g_autoptr (JsonDoc) doc = scenario_load_chain (path, "jobs", error);
  g_autoptr (JsonDoc) over = json_doc_copy (root);
  if (doc == NULL || !job_merge_over (doc, over, error))
    return NULL;
  return g_steal_pointer (&doc);
}

static gboolean
read_sections (const JsonRef *job, const JobContext *c, JobSpec *j, GError **error)
{
  return read_amount (job, c, j, error) && read_job_failures (job, c, j, error) &&
         read_restart (job, c, j, error) && read_checkpoint (job, c, j, error) &&
         read_spares (job, j, error) && read_recovery (job, j, error) &&
         read_pauses (job, j, error) && read_job_prices (job, c, j, error) &&
         read_published (job, j, error);
}

/* What is missing is missing in the scenario: the defaults below it are not the user's to fill. */
static gboolean
blame_scenario (const JsonRef *root, GError *why, GError **error)
{
  const char *place = strstr (why->message, ": /job");
  JsonRef at;
  if (!g_error_matches (why, JSON_ERROR, JSON_ERROR_MISSING) || place == NULL ||
      !json_get_object (root, "job", &at, NULL)) {
    g_propagate_error (error, why);
    return FALSE;
  }
  json_fail (&at, JSON_ERROR_MISSING, error, "%s", place + 2);
  g_error_free (why);
  return FALSE;
}

gboolean
read_job (const JsonRef *root, const JobContext *c, JobSpec *out, GError **error)
{
  job_init (out);
  g_autoptr (JsonDoc) doc = with_defaults (root, error);
  if (doc == NULL)
    return FALSE;
  out->inputs = g_ptr_array_new_with_free_func ((GDestroyNotify)job_input_free);
  out->gpus = c->gpus;
  out->nodes = (guint)c->nodes;
  out->gpus_per_node = (guint)c->gpus_per_node;
  JsonRef merged = json_root (doc), job;
  g_autoptr (GError) why = NULL;
  if (!json_get_object (&merged, "job", &job, &why) || !read_sections (&job, c, out, &why)) {
    job_clear (out);
    return blame_scenario (root, g_steal_pointer (&why), error);
  }
  if (job_check (out, &why))
    return TRUE;
  job_clear (out);
  JsonRef at;
  json_get_any (root, "job", &at, NULL);
  return json_fail (&at, JSON_ERROR_RANGE, error, "%s", why->message);
}
