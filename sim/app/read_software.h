/* read_software: a framework profile (scenarios/software/<name>.json) → SoftwareProfile. */
#ifndef CLUSTERSIM_READ_SOFTWARE_H
#define CLUSTERSIM_READ_SOFTWARE_H

#include "json_read.h"
#include "software.h"

/* out is initialised by the call and must be cleared by the caller; on FALSE it holds nothing. prov
 * (ProvEntry*, may be NULL) gets an entry for each number that was read. Domain JSON_ERROR. */
gboolean read_software (const JsonRef *root, SoftwareProfile *out, GPtrArray *prov, GError **error);

#endif
