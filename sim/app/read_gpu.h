/* read_gpu: a device profile from JSON (scenarios/hw/README.md lists the keys).
 *
 * Strict: unknown keys, missing numbers and bare numbers (without kind and source) are errors with
 * file, line and path. Every number is appended to prov (ProvEntry *), which may be NULL.
 */
#ifndef CLUSTERSIM_READ_GPU_H
#define CLUSTERSIM_READ_GPU_H

#include "gpu_profile.h"
#include "json_read.h"

/* name stands for the profile in messages and reports when the file does not name itself. Returns a
 * prepared profile, owned by the caller, or NULL with error (JSON_ERROR). */
GpuProfile *read_gpu_profile (const JsonRef *root, const char *name, GPtrArray *prov,
                              GError **error);

/* The "aliases" of a profile without reading the rest; NULL-terminated, owned by the caller (empty
 * when there are none). For the lookup by name over a folder of profiles. */
char **read_gpu_aliases (const JsonRef *root, GError **error);

#endif
