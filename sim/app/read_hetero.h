/* read_hetero: the "heterogeneity" part of a scenario. Keys are in scenarios/README.md. */
#ifndef CLUSTERSIM_READ_HETERO_H
#define CLUSTERSIM_READ_HETERO_H

#include "json_read.h"
#include "spec.h"

/* Reads root's member "heterogeneity" into s->hetero; s->cluster must be known. Without the member
 * nothing changes. The profile of a second GPU is left to the caller: *second is its cursor when it
 * is given. */
gboolean read_hetero (const JsonRef *root, Spec *s, JsonRef *second, gboolean *has_second,
                      GError **error);

#endif
