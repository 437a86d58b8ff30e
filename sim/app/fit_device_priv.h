/* fit_device_priv: what the files fit_device*.c share. */
#ifndef CLUSTERSIM_FIT_DEVICE_PRIV_H
#define CLUSTERSIM_FIT_DEVICE_PRIV_H

#include "fit_device.h"

/* Samples that a group must have. */
enum {
  FEWEST_GEMM = 8,
  FEWEST_SQUARES = 3,
  FEWEST_ATTENTION = 6,
  FEWEST_MEMORY = 3,
  FEWEST_COPY = 3
};
#define FIT_HUBER_AT 0.05 /* beyond 5 % an error counts by its size, not its square */

/* A group of samples that is fitted; cleared by its owner. */
typedef struct {
  GpuProfile g;          /* scratch copy: strings are borrowed */
  const Sample **sample; /* of the group */
  double *measured, *weight, *x;
  guint n;
  DType dtype;
  AttnKernel kernel;
  CopyPath path;
} FitWork;

void fit_work_clear (FitWork *w);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (FitWork, fit_work_clear)

typedef gboolean (*FitPicks) (const FitWork *w, const Sample *s);

/* Collects a group. A source counts by the fourth root of its number of samples, so that a table of
 * thousands does not drown a second collector; a sample by the fourth root of its time, as a step
 * spends its time in the long ones. */
void fit_work_init (FitWork *w, const GpuProfile *g, const SampleSet *set, FitPicks picks);
FitProblem fit_problem_of (FitWork *w, FitParam *params, guint n_params, FitModel model);

/* ---- fit_device_rest.c: TRUE when a number of the profile was fitted ---- */
gboolean fit_memory (GpuProfile *g, const SampleSet *set, const FitOptions *o, FitReport *r);
gboolean fit_launch (GpuProfile *g, const SampleSet *set, FitReport *r);
gboolean fit_copies (GpuProfile *g, const SampleSet *set, const FitOptions *o, FitReport *r);
/* What one thing costs beside another has no place in a device profile; it is for the software
 * profile's slow-down factors, so it is said. */
void fit_note_overlap (const SampleSet *set, FitReport *r);

#endif
