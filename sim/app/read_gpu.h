/* read_gpu: a device profile (scenarios/hw/<name>.json) → GpuProfile. */
#ifndef CLUSTERSIM_READ_GPU_H
#define CLUSTERSIM_READ_GPU_H

#include "gpu.h"
#include "json_read.h"

/* name stands for the profile in reports. prov (ProvEntry*, may be NULL) gets an entry for each
 * number that was read. Returns a new profile, or NULL with an error in domain JSON_ERROR. */
GpuProfile *read_gpu_profile (const JsonRef *root, const char *name, GPtrArray *prov,
                              GError **error);

#endif
