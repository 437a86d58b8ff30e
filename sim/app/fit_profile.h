/* fit_profile: a profile's document with fitted numbers put in, and its text in the form of the
 * shipped files: a number with its origin on one line. */
#ifndef CLUSTERSIM_FIT_PROFILE_H
#define CLUSTERSIM_FIT_PROFILE_H

#include "fit_report.h"
#include "gpu_profile.h"
#include "json_read.h"

/* Where the numbers come from: "clustersim fit of FILE, FILE (measured 2026-12-01)"; said (may be
 * NULL) stands in place of the files. Newly allocated. */
char *fit_profile_source (char **files, const char *said, const SampleSet *s);

/* doc: the profile that the fit started from, by the name base. When name is another device, what
 * stays of the base becomes "assumed, as BASE: …" and aliases are those given (may be NULL).
 * source: of the fitted numbers. */
gboolean fit_profile_rename (JsonDoc *doc, const char *base, const char *name,
                             const char *const *aliases, GError **error);
gboolean fit_profile_put (JsonDoc *doc, const FitReport *r, const char *source, GError **error);

/* A device: also what the collector says of the part itself, and the types and kernels that the
 * base lacked, taken from g with the rest of their numbers marked assumed. */
gboolean fit_profile_put_device (JsonDoc *doc, const GpuProfile *g, const DeviceFacts *facts,
                                 const FitReport *r, const char *source, GError **error);

/* A fabric: its parts by name are put in place first, so that the profile stands alone. */
gboolean fit_profile_inline_parts (JsonDoc *doc, GError **error);

char *fit_profile_text (JsonDoc *doc);

#endif
