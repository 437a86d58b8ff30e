/* fit_device: samples of one device → the numbers of its profile.
 *
 * g is the profile to start from (prepared); what the samples do not decide stays as it is. Fitted
 * are, where there are samples: GEMM per operand type (models/gpu_gemm.c), attention per kernel
 * (models/gpu_attn.c), memory-bound kernels (floor and a share of the bandwidth per kind), launch
 * intervals and host copies. Every number that was decided is in the report by its JSON path. */
#ifndef CLUSTERSIM_FIT_DEVICE_H
#define CLUSTERSIM_FIT_DEVICE_H

#include "fit_report.h"
#include "gpu_profile.h"

/* SAMPLES_ERROR_TOO_FEW when no group has enough samples. g stays prepared. */
gboolean fit_device (GpuProfile *g, const SampleSet *s, const FitOptions *o, FitReport *r,
                     GError **error);

/* What collectors say of the device itself (peaks, memory, multiprocessors) goes into g first. */
void fit_device_facts (GpuProfile *g, const DeviceFacts *f);

/* The table beside the fitted formula of a type, where its samples are enough for one. */
void fit_gemm_table (GpuProfile *g, DType dtype, const Sample *const *samples, guint n);

#endif
