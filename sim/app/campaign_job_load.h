/* campaign_job_load: a scenario document → the job that campaign simulates.
 *
 * A whole scenario gives the time of a step by prediction (unless job.step_time_s is given), the
 * shares of computing and communicating in it, and the speeds of smaller layouts for an elastic
 * job. A scenario without "model" is a job alone: "cluster" (gpus_per_node and nodes or gpus),
 * "job", "run.seed". */
#ifndef CLUSTERSIM_CAMPAIGN_JOB_LOAD_H
#define CLUSTERSIM_CAMPAIGN_JOB_LOAD_H

#include "campaign.h"
#include "json_read.h"

typedef struct {
  char *name;
  JobSpec job;
  guint64 seed, key;  /* key: hash of the document and the version */
  GPtrArray *assumed; /* char*, ends with NULL */
} LoadedJob;

void loaded_job_clear (LoadedJob *l); /* fine on {0} */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LoadedJob, loaded_job_clear)

gboolean campaign_job_load (JsonDoc *doc, LoadedJob *out, GError **error);
/* The same work on another number of GPUs: predicted anew when the scenario is whole, else in
 * inverse proportion. doc is not changed. */
gboolean campaign_job_load_at (JsonDoc *doc, gint64 gpus, LoadedJob *out, GError **error);

#endif
