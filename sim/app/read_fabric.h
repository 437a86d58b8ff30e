/* read_fabric: a fabric profile (scenarios/fabrics/<name>.json) → Fabric. */
#ifndef CLUSTERSIM_READ_FABRIC_H
#define CLUSTERSIM_READ_FABRIC_H

#include "coll.h"
#include "json_read.h"

/* name stands for the profile in reports. prov (ProvEntry*, may be NULL) gets an entry for each
 * number that was read. Returns a new profile, or NULL with an error in domain JSON_ERROR. */
Fabric *read_fabric (const JsonRef *root, const char *name, GPtrArray *prov, GError **error);

#endif
