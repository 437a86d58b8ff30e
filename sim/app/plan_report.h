/* plan_report: what `plan` found, as text, JSON and CSV. The CSV has every layout of the search;
 * the others the best, the edge, and the losers next to them, with the reason why each lost. */
#ifndef CLUSTERSIM_PLAN_REPORT_H
#define CLUSTERSIM_PLAN_REPORT_H

#include "plan.h"

#define PLAN_LOSERS 8 /* shown behind the best: they are proven to be the next */

typedef struct {
  guint top;
  PlanOrder order;
  const char *own_wrong; /* why the scenario's own layout is not legal; NULL: it is, or has none */
} PlanShow;

void plan_text (GString *out, const Spec *s, const PlanResult *r, const PlanShow *show);
void plan_json (GString *out, const Spec *s, const PlanResult *r, const PlanShow *show);
void plan_csv (GString *out, const Spec *s, const PlanResult *r, const PlanShow *show);

#endif
