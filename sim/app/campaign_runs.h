/* campaign_runs: finished replicas in a file, a line each, so that a campaign that was stopped goes
 * on where it was. The first column is a key over the scenario and the seed: lines of another
 * campaign are refused. Errors: FILEIO_ERROR, CSV_ERROR. */
#ifndef CLUSTERSIM_CAMPAIGN_RUNS_H
#define CLUSTERSIM_CAMPAIGN_RUNS_H

#include "campaign.h"

typedef struct CampaignLog CampaignLog;

/* Opens for writing. resume: keeps what is there, whose runs 0, 1, 2 … are put in *runs
 * (CampaignRun, to be unref'd); a last line that is not whole is dropped. */
CampaignLog *campaign_log_open (const char *path, guint64 key, gboolean resume, GArray **runs,
                                GError **error);
gboolean campaign_log_add (CampaignLog *log, guint run, const CampaignRun *r);
gboolean campaign_log_close (CampaignLog *log, GError **error); /* frees it in any case */

#endif
