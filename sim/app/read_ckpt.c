/* The "checkpoint" object of a job. */
#include "read_job.h"

#include <math.h>
#include <string.h>

static const char *const checkpoint_keys[] = {
    "interval_s",          "interval_steps", "mode",    "block_s",   "write_s",
    "restore_s",           "slowdown",       "keep",    "copies",    "bytes",
    "bytes_per_parameter", "parameters",     "storage", "writers",   "writer_GBps",
    "snapshot_GBps",       "peer_GBps",      "fixed_s", "reshard_s", "host_memory_GiB",
    "planned_save_s",      "levels",         NULL};
static const char *const storage_keys[] = {"write_GBps",        "read_GBps", "write_GBps_per_gpu",
                                           "read_GBps_per_gpu", "share",     NULL};
static const char *const level_keys[] = {"mode",     "every", "block_s", "write_s", "restore_s",
                                         "slowdown", "keep",  "copies",  NULL};
typedef enum { MODE_SYNC, MODE_ASYNC, MODE_MEMORY, MODE_PEER } Mode;
static const char *const mode_names[] = {"sync", "async", "memory", "peer", NULL};

#define GB 1e9

typedef struct {
  CkptStore store;
  double peer_Bps;
  gboolean has_bytes, has_store;
} Source;

/* Numbers that are needed together read better in a table. */
typedef struct {
  const char *key;
  double unit;
  double *out;
} Rate;

static gboolean
read_storage (const JsonRef *ref, const JobContext *c, Source *s, JobSpec *job, GError **error)
{
  JsonRef storage;
  double write = 0, read = 0, write_gpu = 0, read_gpu = 0;
  s->store.store_share = 1.0;
  if (!json_has (ref, "storage"))
    return TRUE;
  if (!json_get_object (ref, "storage", &storage, error) ||
      !json_check_keys (&storage, storage_keys, error) ||
      !job_number (&storage, "write_GBps", 1e-6, 1e9, &write, job->inputs, NULL, error) ||
      !job_number (&storage, "read_GBps", 1e-6, 1e9, &read, job->inputs, NULL, error) ||
      !job_number (&storage, "write_GBps_per_gpu", 1e-9, 1e6, &write_gpu,
                   write > 0.0 ? NULL : job->inputs, NULL, error) ||
      !job_number (&storage, "read_GBps_per_gpu", 1e-9, 1e6, &read_gpu,
                   read > 0.0 || write > 0.0 ? NULL : job->inputs, NULL, error) ||
      !job_number (&storage, "share", 1e-6, 1, &s->store.store_share, job->inputs, NULL, error))
    return FALSE;
  s->store.store_write_Bps = GB * (write > 0.0 ? write : write_gpu * (double)c->gpus);
  /* A store that is only said to write reads as fast. */
  s->store.store_read_Bps = GB * (read > 0.0    ? read
                                  : write > 0.0 ? write
                                                : read_gpu * (double)c->gpus);
  s->has_store = s->store.store_write_Bps > 0.0;
  return TRUE;
}

static gboolean
read_bytes (const JsonRef *ref, const JobContext *c, Source *s, JobSpec *job, GError **error)
{
  double per = c->weight_bytes + c->optimizer_bytes, parameters = c->parameters, bytes = 0.0;
  gboolean has_bytes;
  if (!job_number (ref, "bytes", 1, 1e18, &bytes, job->inputs, &has_bytes, error) ||
      !job_number (ref, "bytes_per_parameter", 0.1, 100, &per, has_bytes ? NULL : job->inputs, NULL,
                   error) ||
      !job_number (ref, "parameters", 1, 1e16, &parameters, job->inputs, NULL, error))
    return FALSE;
  s->store.bytes = has_bytes ? bytes : per * parameters;
  s->has_bytes = s->store.bytes > 0.0;
  job->ckpt_bytes = s->store.bytes;
  return TRUE;
}

static gboolean
read_source (const JsonRef *ref, const JobContext *c, Source *s, JobSpec *job, GError **error)
{
  memset (s, 0, sizeof *s);
  s->store.gpus = (double)c->gpus;
  s->store.nodes = (double)c->nodes;
  const Rate rates[] = {
      {"writers", 1.0, &s->store.writers},           {"writer_GBps", GB, &s->store.writer_Bps},
      {"snapshot_GBps", GB, &s->store.snapshot_Bps}, {"peer_GBps", GB, &s->peer_Bps},
      {"fixed_s", 1.0, &s->store.fixed_s},           {"reshard_s", 1.0, &s->store.reshard_s}};
  if (!read_bytes (ref, c, s, job, error) || !read_storage (ref, c, s, job, error))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (rates); i++) {
    gboolean found;
    if (!job_number (ref, rates[i].key, 0, 1e9, rates[i].out, job->inputs, &found, error))
      return FALSE;
    if (found)
      *rates[i].out *= rates[i].unit;
  }
  return TRUE;
}

static CkptLevel
level_of (Mode mode, const Source *s, double slowdown, guint copies)
{
  switch (mode) {
  case MODE_ASYNC:
    return ckpt_level_async (&s->store, slowdown);
  case MODE_MEMORY:
    return ckpt_level_memory (&s->store);
  case MODE_PEER:
    return ckpt_level_peer (&s->store, s->peer_Bps, copies);
  case MODE_SYNC:
    break;
  }
  return ckpt_level_sync (&s->store);
}

/* One level: what its mode makes of the store, then the times that are given. */
static gboolean
read_level (const JsonRef *ref, const Source *s, JobSpec *job, CkptLevel *out, GError **error)
{
  int mode = MODE_SYNC;
  guint copies = 2, every = 1, keep = 0;
  double slowdown = 0, write = 0;
  gboolean has_block, has_write, has_restore;
  if (!json_opt_enum (ref, "mode", mode_names, &mode, error) ||
      !job_count (ref, "copies", 2, 16, &copies, job->inputs, error) ||
      !job_count (ref, "every", 1, 1000000000, &every, job->inputs, error) ||
      !job_count (ref, "keep", 0, 1000000000, &keep, job->inputs, error) ||
      !job_number (ref, "slowdown", 0, 0.999, &slowdown, job->inputs, NULL, error))
    return FALSE;
  *out = level_of ((Mode)mode, s, slowdown, copies);
  if (!job_number (ref, "block_s", 0, 1e7, &out->block_s, job->inputs, &has_block, error) ||
      !job_number (ref, "write_s", 0, 1e7, &write, job->inputs, &has_write, error) ||
      !job_number (ref, "restore_s", 0, 1e7, &out->restore_s, job->inputs, &has_restore, error))
    return FALSE;
  if (has_write && (mode == MODE_SYNC || mode == MODE_MEMORY) && !has_block)
    out->block_s = write;
  else if (has_write && mode != MODE_SYNC && mode != MODE_MEMORY)
    out->persist_s = write;
  if (has_write && !has_restore && mode == MODE_SYNC)
    out->restore_s = write + s->store.reshard_s; /* reads as fast as it writes */
  gboolean known = has_write || (has_block && mode != MODE_ASYNC && mode != MODE_PEER) ||
                   (s->has_bytes && (s->has_store || mode == MODE_MEMORY || mode == MODE_PEER));
  if (!known)
    return json_fail (ref, JSON_ERROR_MISSING, error,
                      "how long a save takes is not known (allowed: write_s, or a size and "
                      "storage.write_GBps)");
  out->every = every;
  out->keep = keep;
  return TRUE;
}

static gboolean
read_levels (const JsonRef *ref, const Source *s, JobSpec *job, GError **error)
{
  JsonRef levels;
  job->ckpt.n_levels = 1;
  if (!json_has (ref, "levels"))
    return read_level (ref, s, job, &job->ckpt.level[0], error);
  if (!json_get_array (ref, "levels", &levels, error))
    return FALSE;
  int n = json_len (&levels);
  if (n < 1 || n > CKPT_LEVELS)
    return json_fail (&levels, JSON_ERROR_RANGE, error,
                      "number of levels (found %d; allowed: 1 to %d)", n, CKPT_LEVELS);
  job->ckpt.n_levels = (guint)n;
  for (int i = 0; i < n; i++) {
    JsonRef one = json_item (&levels, i);
    if (!json_check_keys (&one, level_keys, error) ||
        !read_level (&one, s, job, &job->ckpt.level[i], error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
read_interval (const JsonRef *ref, const JobContext *c, JobSpec *job, GError **error)
{
  JsonRef at;
  double steps = 0.0;
  gboolean has_steps;
  if (json_has (ref, "interval_s")) {
    if (!json_get_any (ref, "interval_s", &at, error))
      return FALSE;
    const char *text = NULL;
    if (json_is_string (&at)) {
      if (!json_value_string (&at, &text, error))
        return FALSE;
      if (strcmp (text, "best") != 0)
        return json_fail (&at, JSON_ERROR_RANGE, error,
                          "unknown interval (found \"%s\"; allowed: seconds, or \"best\")", text);
      job->best_interval = TRUE;
      job->ckpt.interval_s = 3600.0; /* replaced by the best one before it is used */
      return TRUE;
    }
    return job_number (ref, "interval_s", 1e-3, 1e9, &job->ckpt.interval_s, job->inputs, NULL,
                       error);
  }
  if (!job_number (ref, "interval_steps", 1, 1e9, &steps, job->inputs, &has_steps, error))
    return FALSE;
  if (!has_steps)
    return json_get_any (ref, "interval_s", &at, error);
  double step = job->step_time_s > 0.0 ? job->step_time_s : c->step_time_s;
  if (step <= 0.0) {
    json_get_any (ref, "interval_steps", &at, NULL);
    return json_fail (&at, JSON_ERROR_MISSING, error,
                      "steps need the time of a step (allowed: job.step_time_s, or interval_s)");
  }
  job->ckpt.interval_s = steps * step;
  return TRUE;
}

static gboolean
check_host_memory (const JsonRef *ref, const Source *s, JobSpec *job, GError **error)
{
  double limit = 0.0;
  JsonRef at;
  guint copies = 0;
  for (guint i = 0; i < job->ckpt.n_levels; i++) {
    const CkptLevel *l = &job->ckpt.level[i];
    if (l->survives == CKPT_NODE)
      copies += l->copies;
    else if (l->survives == CKPT_PROCESS || l->persist_s > 0.0)
      copies += 1;
  }
  job->host_bytes_per_node = ckpt_host_bytes_per_node (&s->store, copies);
  if (!job_number (ref, "host_memory_GiB", 0, 1e6, &limit, job->inputs, NULL, error))
    return FALSE;
  if (limit <= 0.0 || job->host_bytes_per_node <= limit * 1073741824.0)
    return TRUE;
  json_get_any (ref, "host_memory_GiB", &at, NULL);
  return json_fail (&at, JSON_ERROR_INCONSISTENT, error,
                    "checkpoints in host memory do not fit (found %.1f GiB a node for %u copies; "
                    "allowed: %.1f GiB)",
                    job->host_bytes_per_node / 1073741824.0, copies, limit);
}

gboolean
read_checkpoint (const JsonRef *obj, const JobContext *c, JobSpec *job, GError **error)
{
  JsonRef ref;
  Source s;
  if (!json_get_object (obj, "checkpoint", &ref, error) ||
      !json_check_keys (&ref, checkpoint_keys, error) || !read_interval (&ref, c, job, error) ||
      !read_source (&ref, c, &s, job, error) || !read_levels (&ref, &s, job, error) ||
      !check_host_memory (&ref, &s, job, error) ||
      !job_number (&ref, "planned_save_s", 0, 1e7, &job->planned_save_s, job->inputs, NULL, error))
    return FALSE;
  if (job->planned_save_s < 0.0) {
    const CkptLevel *last = &job->ckpt.level[job->ckpt.n_levels - 1];
    job->planned_save_s = last->block_s + last->persist_s;
  }
  g_autoptr (GError) why = NULL;
  return ckpt_plan_check (&job->ckpt, &why) ||
         json_fail (&ref, JSON_ERROR_RANGE, error, "%s", why->message);
}
