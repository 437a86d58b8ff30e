/* report: a prediction as text, JSON or CSV, in the names of the contract. Numbers with units;
 * parts that add up; the provenance of every number that was used. */
#ifndef CLUSTERSIM_REPORT_H
#define CLUSTERSIM_REPORT_H

#include "interval.h"
#include "json_write.h"
#include "predict.h"

void report_text (GString *out, const Spec *s, const Prediction *p, const StepInterval *iv);
/* Members of one result object, without the braces. */
void report_json_members (JsonWriter *w, const Spec *s, const Prediction *p, const StepInterval *iv,
                          gboolean with_provenance);
void report_json (GString *out, const Spec *s, const Prediction *p, const StepInterval *iv);

/* CSV: stable column names; header once, then a line per result. extra: further leading columns. */
void report_csv_header (GString *out, const char *const *extra);
void report_csv_row (GString *out, const Spec *s, const Prediction *p, const StepInterval *iv,
                     const char *const *extra_values);

/* A row of a point that cannot run: only series and the reason. */
void report_csv_failure (GString *out, const char *series, const char *reason);

/* Quotes a CSV field when it needs it. */
void report_csv_field (GString *out, const char *text);

#endif
