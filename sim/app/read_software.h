/* read_software: a software profile (scenarios/software/<name>.json) into a SoftwareProfile.
 * Numbers carry value, kind and source; switches are plain. Every key is required unless a profile
 * is extended, so that nothing is filled in silently. */
#ifndef CLUSTERSIM_READ_SOFTWARE_H
#define CLUSTERSIM_READ_SOFTWARE_H

#include "json_read.h"
#include "software.h"

gboolean read_software (const JsonRef *root, SoftwareProfile *out, GPtrArray *prov, GError **error);

/* The number of that key in a profile, to be set by a caller that varies it; NULL: no such key. */
double *software_number (SoftwareProfile *s, const char *key);

#endif
