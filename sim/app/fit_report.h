/* fit_report: what a fit found and how well it holds, for people, scripts and the profile. */
#ifndef CLUSTERSIM_FIT_REPORT_H
#define CLUSTERSIM_FIT_REPORT_H

#include "fit.h"
#include "fit_samples.h"

/* One number of a profile that samples decide. path: its place in the profile
 * ("gemm.types.bf16.k0"); value in the unit of that key; lo and hi hold it four times in five. */
typedef struct {
  char *path;
  double value, lo, hi;
  guint n; /* samples of its group */
  double median_error;
} FitNumber;

/* A group of samples that one model explains together. */
typedef struct {
  char *name;
  FitStats fitted, held_out; /* n 0: none held out */
  FitStats long_held_out;    /* of those held out, the ones of ten times the shortest and more */
} FitGroup;

/* A sample beside its prediction, for the picture. */
typedef struct {
  const char *group; /* borrowed from the report's groups */
  double measured_s, predicted_s;
  gboolean held_out;
} FitPoint;

typedef struct {
  GPtrArray *numbers;  /* FitNumber* */
  GPtrArray *groups;   /* FitGroup* */
  GPtrArray *warnings; /* char* */
  GArray *points;      /* FitPoint */
} FitReport;

FitReport *fit_report_new (void);
void fit_report_free (FitReport *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (FitReport, fit_report_free)

void fit_report_warn (FitReport *r, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* Says how many samples no profile has a place for. */
void fit_report_no_place (const SampleSet *s, FitReport *r);
FitGroup *fit_report_group (FitReport *r, const char *name);
void fit_report_number (FitReport *r, const char *path, double value, double lo, double hi,
                        const FitGroup *g);
const FitNumber *fit_report_find (const FitReport *r, const char *path);

void fit_report_text (GString *out, const SampleSet *s, const FitReport *r, const char *title);
void fit_report_json (GString *out, const SampleSet *s, const FitReport *r, const char *title);
void fit_report_csv (GString *out, const FitReport *r);
/* group,measured_s,predicted_s,held_out: what plots/fit.gp draws. */
void fit_report_points (GString *out, const FitReport *r);

typedef struct {
  double hold_out; /* share of the samples */
  guint resamples;
  guint64 seed;
} FitOptions;

/* Fits f to the samples that index (of guint, into set->samples) names, all of one group: splits,
 * fixes what the samples do not feel, minimises, resamples, judges. best, lo, hi: n_params each.
 * x: what the residuals are looked through by, one a problem sample, with its name for the warning.
 * Returns the group. */
FitGroup *fit_group (FitProblem *f, const char *name, const double *x, const char *x_name,
                     const FitOptions *o, FitReport *r, double *best, double *lo, double *hi);

#endif
