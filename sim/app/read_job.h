/* read_job: the "job" object of a scenario → JobSpec; failure profiles and prices by name.
 *
 * A number may be given bare or as { "value", "kind", "source" }, kind one of published, measured,
 * vendor, derived, assumed; those are kept in JobSpec.inputs. What the job does not give comes from
 * scenarios/jobs/common.json, where every number has its source. Failure profiles are in
 * scenarios/failures, prices in scenarios/prices; both also by path or in place, with "extends".
 * Errors: JSON_ERROR, placed in the file. */
#ifndef CLUSTERSIM_READ_JOB_H
#define CLUSTERSIM_READ_JOB_H

#include "campaign.h"
#include "json_read.h"
#include "spec.h"

/* What of a scenario a job needs to know. */
typedef struct {
  gint64 gpus, nodes, gpus_per_node;
  double parameters;                    /* of the model; 0: not known */
  double weight_bytes, optimizer_bytes; /* per parameter; 0: not known */
  double step_time_s;     /* predicted; 0: not known, the job must give it where it needs one */
  double tokens_per_step; /* 0: not known */
  double usd_per_gpu_hour, node_power_w, pue; /* of the cluster; 0: not given */
} JobContext;

/* root: the scenario, which must have "job". out is initialised by the call; after TRUE the caller
 * clears it with job_clear. In the second form nothing is simulated or checked that needs the step
 * time. */
gboolean read_job (const JsonRef *root, const JobContext *c, JobSpec *out, GError **error);

/* Only that the keys of "job" are known; TRUE when the scenario has none. */
gboolean read_job_keys (const JsonRef *root, GError **error);

/* TRUE when the job cannot do without the time of a step: tokens are given and no step_time_s. */
gboolean read_job_needs_step (const JsonRef *root);

/* ---- shared by the readers of job parts ---- */

/* The same for a whole number. */
gboolean job_count (const JsonRef *obj, const char *key, gint64 min, gint64 max, guint *out,
                    GPtrArray *inputs, GError **error);
/* A bare or sourced number, when it is there. inputs may be NULL. *found (may be NULL) says
 * whether. */
gboolean job_number (const JsonRef *obj, const char *key, double min, double max, double *out,
                     GPtrArray *inputs, gboolean *found, GError **error);
/* Seconds, where the member is there: a number, or points over the number of GPUs ([gpus, seconds],
 * linear in log gpus). */
gboolean job_scaled_number (const JsonRef *obj, const char *key, double gpus, double *out,
                            GPtrArray *inputs, GError **error);
/* Merges over into base; a number of it takes the place of that in base whole. */
gboolean job_merge_over (JsonDoc *base, JsonDoc *over, GError **error);
/* A distribution: a number (fixed), or { "distribution", "mean_s" | "mean_days", "shape" }. */
gboolean job_dist (const JsonRef *obj, const char *key, Dist *out, GPtrArray *inputs,
                   GError **error);
/* The object that a member gives by name, path or in place, with "extends" resolved. *file holds it
 * when it is another file (free after use). */
gboolean job_part (const JsonRef *obj, const char *key, const char *kind, JsonDoc **file,
                   JsonRef *out, GError **error);

/* read_failures.c */
gboolean read_failures (const JsonRef *object, FaultProfile *out, GPtrArray *inputs,
                        GError **error);
FaultTrace *read_fault_trace (const char *path, guint nodes, double days, GError **error);
FaultCause fault_cause_of (const char *text);

/* read_prices.c */
gboolean read_prices (const JsonRef *object, CostSpec *out, GPtrArray *inputs, GError **error);

/* read_ckpt.c */
gboolean read_checkpoint (const JsonRef *obj, const JobContext *c, JobSpec *job, GError **error);

#endif
