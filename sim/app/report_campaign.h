/* report_campaign: a campaign as text, JSON and CSV, and its curves as tables for `plot`. */
#ifndef CLUSTERSIM_REPORT_CAMPAIGN_H
#define CLUSTERSIM_REPORT_CAMPAIGN_H

#include "campaign.h"
#include "spares.h"

typedef struct {
  const char *name;
  const JobSpec *job;
  const CampaignResult *result;
  const IntervalCurve *curve; /* NULL: not asked */
  const Sensitivity *change;  /* n_changes of them */
  guint n_changes;
  const SpareStats *spares;   /* NULL: not asked */
  const char *const *assumed; /* plain words, NULL-terminated */
  guint64 seed;
  gboolean interrupted; /* fewer replicas than were asked for */
} CampaignReport;

/* Money and energy of the mean run. */
CostResult campaign_cost (const JobSpec *j, const CampaignResult *r);

/* Work that is not done, mean over all replicas, s; 0 when the job has no amount of work. */
double campaign_missing_s (const JobSpec *j, const CampaignResult *r);

void report_campaign_text (GString *out, const CampaignReport *r);
void report_campaign_json (GString *out, const CampaignReport *r);
void report_campaign_csv (GString *out, const CampaignReport *r); /* header and one line */

/* Tables for `plot`: goodput by cause; checkpoint interval. */
void report_goodput_csv (GString *out, const CampaignReport *r);
void report_checkpoint_csv (GString *out, const CampaignReport *r);
void report_sensitivity_csv (GString *out, const CampaignReport *r);

/* days and cost against GPUs: a header, then a line a result. */
void report_cost_csv_header (GString *out);
void report_cost_csv_row (GString *out, const JobSpec *j, const CampaignResult *r);

#endif
