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

/* ---- numbers and parts ---- */

static const char *const number_keys[] = {"value", "kind", "source", "points", NULL};
static const char *const number_kinds[] = {"published", "measured", "vendor",
                                           "derived",   "assumed",  NULL};

static gboolean
note_input (const JsonRef *ref, double value, GPtrArray *inputs, GError **error)
{
  int kind = 0;
  const char *source = NULL;
  if (!json_check_keys (ref, number_keys, error) ||
      !json_get_enum (ref, "kind", number_kinds, &kind, error) ||
      !json_get_string (ref, "source", &source, error))
    return FALSE;
  if (inputs == NULL)
    return TRUE;
  JobInput *i = g_new0 (JobInput, 1);
  i->key = json_path (ref);
  i->kind = g_strdup (number_kinds[kind]);
  i->source = g_strdup (source);
  i->value = value;
  g_ptr_array_add (inputs, i);
  return TRUE;
}

gboolean
job_number (const JsonRef *obj, const char *key, double min, double max, double *out,
            GPtrArray *inputs, gboolean *found, GError **error)
{
  JsonRef ref;
  gboolean has = json_has (obj, key);
  if (found != NULL)
    *found = has;
  if (!has)
    return TRUE;
  if (!json_get_any (obj, key, &ref, error))
    return FALSE;
  if (!json_is_object (&ref))
    return json_value_double (&ref, min, max, out, error);
  return json_get_double (&ref, "value", min, max, out, error) &&
         note_input (&ref, *out, inputs, error);
}

gboolean
job_count (const JsonRef *obj, const char *key, gint64 min, gint64 max, guint *out,
           GPtrArray *inputs, GError **error)
{
  JsonRef ref;
  gint64 n = 0;
  if (!json_has (obj, key))
    return TRUE;
  if (!json_get_any (obj, key, &ref, error))
    return FALSE;
  if (!json_is_object (&ref) ? !json_get_int (obj, key, min, max, &n, error)
                             : !json_get_int (&ref, "value", min, max, &n, error) ||
                                   !note_input (&ref, (double)n, inputs, error))
    return FALSE;
  *out = (guint)n;
  return TRUE;
}

/* Either a number, or points [gpus, seconds], linear in log gpus; flat before the first, straight
 * on after the last. */
static gboolean
points_at (const JsonRef *ref, double gpus, double *out, GError **error)
{
  JsonRef points;
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  if (!json_get_array (ref, "points", &points, error))
    return FALSE;
  int n = json_len (&points);
  if (n < 1)
    return json_fail (&points, JSON_ERROR_RANGE, error, "no points (allowed: [[gpus, s], …])");
  for (int i = 0; i < n; i++) {
    JsonRef p = json_item (&points, i);
    if (!json_is_array (&p) || json_len (&p) != 2)
      return json_fail (&p, JSON_ERROR_TYPE, error, "not a point (allowed: [gpus, seconds])");
    JsonRef a = json_item (&p, 0), b = json_item (&p, 1);
    double x, y;
    if (!json_value_double (&a, 1, 1e9, &x, error) || !json_value_double (&b, 0, 1e7, &y, error))
      return FALSE;
    if (i > 0 && x <= x1)
      return json_fail (&a, JSON_ERROR_RANGE, error,
                        "points out of order (found %g after %g; allowed: ascending)", x, x1);
    if (i > 0 && x1 >= gpus)
      continue; /* the rest is only checked */
    x0 = i > 0 ? x1 : x;
    y0 = i > 0 ? y1 : y;
    x1 = x;
    y1 = y;
  }
  double f = x1 > x0 ? log (gpus / x0) / log (x1 / x0) : 0.0;
  *out = fmax (y0 + fmax (f, 0.0) * (y1 - y0), 0.0);
  return TRUE;
}

static gboolean
scaled_number (const JsonRef *obj, const char *key, double gpus, double *out, GPtrArray *inputs,
               GError **error)
{
  JsonRef ref;
  if (!json_has (obj, key))
    return TRUE;
  if (!json_get_any (obj, key, &ref, error))
    return FALSE;
  if (json_is_object (&ref) && json_has (&ref, "points"))
    return points_at (&ref, gpus, out, error) && note_input (&ref, *out, inputs, error);
  return job_number (obj, key, 0, 1e8, out, inputs, NULL, error);
}

gboolean
job_dist (const JsonRef *obj, const char *key, Dist *out, GPtrArray *inputs, GError **error)
{
  static const char *const keys[] = {"distribution", "mean_s", "mean_days", "shape",
                                     "of",           "start",  NULL};
  JsonRef ref;
  if (!json_has (obj, key))
    return TRUE;
  if (!json_get_any (obj, key, &ref, error))
    return FALSE;
  double mean = 0.0, shape = 1.0;
  if (!json_is_object (&ref) || json_has (&ref, "value")) {
    if (!job_number (obj, key, 0, 1e10, &mean, inputs, NULL, error))
      return FALSE;
    *out = dist_fixed (mean);
    return TRUE;
  }
  int kind = DIST_FIXED;
  gboolean has_s, has_days, has_shape;
  if (!json_check_keys (&ref, keys, error) ||
      !json_get_enum (&ref, "distribution", dist_names, &kind, error) ||
      !job_number (&ref, "mean_s", 0, 1e10, &mean, inputs, &has_s, error))
    return FALSE;
  if (!has_s) {
    if (!job_number (&ref, "mean_days", 0, 1e6, &mean, inputs, &has_days, error))
      return FALSE;
    if (!has_days)
      return json_get_any (&ref, "mean_s", &ref, error);
    mean *= 86400.0;
  }
  if (!job_number (&ref, "shape", 1e-3, 1e3, &shape, inputs, &has_shape, error))
    return FALSE;
  JsonRef at;
  gboolean wants = kind == DIST_WEIBULL || kind == DIST_GAMMA || kind == DIST_LOGNORMAL;
  if (wants && !has_shape)
    return json_get_any (&ref, "shape", &at, error);
  *out = dist_make ((DistKind)kind, mean, shape);
  return TRUE;
}

/* A number or distribution of `over` takes the place of that in base whole: merged member by
 * member, a value would stand beside the points that it replaces. */
static gboolean
clear_numbers (JsonDoc *base, const JsonRef *over, const char *path, GError **error)
{
  if (!json_is_object (over))
    return TRUE;
  if (json_has (over, "value") || json_has (over, "points") || json_has (over, "distribution")) {
    JsonRef at[SCENARIO_KEY_PARTS + 1];
    g_auto (GStrv) keys = g_strsplit (path, ".", SCENARIO_KEY_PARTS);
    if (scenario_locate (base, path, at) == g_strv_length (keys))
      return json_doc_set (base, path, "0", error);
    return TRUE;
  }
  for (int i = 0; i < json_len (over); i++) {
    JsonRef one = json_item (over, i);
    g_autofree char *below =
        *path != '\0' ? g_strdup_printf ("%s.%s", path, one.key) : g_strdup (one.key);
    if (!clear_numbers (base, &one, below, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
merge_over (JsonDoc *base, JsonDoc *over, GError **error)
{
  JsonRef root = json_root (over);
  if (!clear_numbers (base, &root, "", error))
    return FALSE;
  json_doc_merge (base, over);
  return TRUE;
}

gboolean
job_part (const JsonRef *obj, const char *key, const char *kind, JsonDoc **file, JsonRef *out,
          GError **error)
{
  JsonRef extends;
  *file = NULL;
  if (!json_get_any (obj, key, out, error))
    return FALSE;
  if (json_is_string (out)) {
    g_autofree char *path = scenario_find_file (out, kind, error);
    *file = path != NULL ? scenario_load_chain (path, kind, error) : NULL;
    if (*file == NULL)
      return FALSE;
    *out = json_root (*file);
    return TRUE;
  }
  if (!json_is_object (out))
    return json_fail (out, JSON_ERROR_TYPE, error,
                      "wrong type (allowed: a name, a path of a .json file, or an object)");
  if (!json_has (out, "extends"))
    return TRUE;
  if (!json_get_any (out, "extends", &extends, error))
    return FALSE;
  g_autofree char *path = scenario_find_file (&extends, kind, error);
  *file = path != NULL ? scenario_load_chain (path, kind, error) : NULL;
  if (*file == NULL)
    return FALSE;
  g_autoptr (JsonDoc) over = json_doc_copy (out);
  json_doc_remove (over, "extends");
  if (!merge_over (*file, over, error))
    return FALSE;
  *out = json_root (*file);
  return TRUE;
}

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
      !scaled_number (&ref, "init_s", gpus, &j->init_s, j->inputs, error))
    return FALSE;
  j->start_s = j->init_s;
  return scaled_number (&ref, "start_s", gpus, &j->start_s, j->inputs, error) &&
         scaled_number (&ref, "requeue_s", gpus, &j->requeue_s, j->inputs, error) &&
         scaled_number (&ref, "swap_s", gpus, &j->swap_s, j->inputs, error) &&
         scaled_number (&ref, "in_place_s", gpus, &j->in_place_s, j->inputs, error) &&
         scaled_number (&ref, "warmup_s", gpus, &j->warmup_s, j->inputs, error) &&
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
  if (doc == NULL || !merge_over (doc, over, error))
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
