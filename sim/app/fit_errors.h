/* fit_errors: `clustersim fit errors TABLE.csv`: the error distribution of predictions on published
 * runs, as the file that ranges are made from (scenarios/published/errors.json). Errors are those
 * of cross-validation by source (cross.h): each source is predicted with numbers set without it. */
#ifndef CLUSTERSIM_FIT_ERRORS_H
#define CLUSTERSIM_FIT_ERRORS_H

#include "cross.h"

/* file: the JSON; report: the coverage by source, on runs whose source neither numbers nor range
 * had seen. table: its name as it goes into the file. */
void fit_errors (const CrossResult *r, const char *table, GString *file, GString *report);

/* Share in per cent of the runs of a source that are inside the range of a model that had not seen
 * the source, as a mean over the sources of 5 runs and more; n: how many they are. */
double fit_errors_coverage (const CrossResult *r, guint *n);

int cmd_fit_errors_run (int argc, char **argv);

#endif
