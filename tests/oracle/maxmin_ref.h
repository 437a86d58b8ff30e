/* maxmin_ref: the textbook solver, as an oracle: fills all flows from zero each time, looking at
 * every link in every round. Nothing shared with models/maxmin.c. */
#ifndef CLUSTERSIM_MAXMIN_REF_H
#define CLUSTERSIM_MAXMIN_REF_H

#include <glib.h>

typedef struct {
  guint n;
  guint32 link[8];
  double coef[8];
  double cap, rate; /* rate: the result */
  gboolean live;
} RefFlow;

void maxmin_ref_solve (const double *cap, guint32 n_links, RefFlow *flow, guint n_flows);

#endif
