/* sweep_axes: "--vary" texts into the points of a sweep.
 *
 *   KEY=V1,V2,V3          one key, listed values
 *   KEY=64..4096*2        64, 128, … up to 4096 (also "+STEP")
 *   KEY=1,2;KEY2=3,4      keys that move together (as many values each)
 * Several axes make their product, the last one fastest. Errors: CLI_ERROR_USAGE.
 */
#ifndef CLUSTERSIM_SWEEP_AXES_H
#define CLUSTERSIM_SWEEP_AXES_H

#include <glib.h>

#define SWEEP_MAX_POINTS G_GUINT64_CONSTANT (100000000)

typedef struct SweepAxes SweepAxes;
SweepAxes *sweep_axes_parse (const char *const *varies, GError **error);
void sweep_axes_free (SweepAxes *a);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (SweepAxes, sweep_axes_free)

guint64 sweep_axes_points (const SweepAxes *a);
/* Keys of all axes, NULL-terminated, borrowed. */
const char *const *sweep_axes_keys (const SweepAxes *a);
/* Values of point i, one per key, in the same order; values: array of n keys + 1, NULL-terminated
 * by the call; strings are borrowed. */
void sweep_axes_point (const SweepAxes *a, guint64 i, const char **values);

#endif
