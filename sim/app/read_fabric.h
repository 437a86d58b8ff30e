/* read_fabric: a fabric in our own JSON form (scenarios/fabrics/<name>.json).
 *
 * A fabric names its two parts or holds them in place: "node" (scenarios/fabrics/nodes/<name>.json:
 * the scale-up domain) and "network" (scenarios/fabrics/networks/<name>.json: the transport), with
 * the NICs that join them. Every number is { "value", "kind", "source" }; keys and units: the
 * README.md there.
 */
#ifndef CLUSTERSIM_READ_FABRIC_H
#define CLUSTERSIM_READ_FABRIC_H

#include "fabric.h"
#include "json_read.h"

/* root: the fabric's object, in a file of its own or in a scenario. name: what it is called where
 * the object does not say. prov: array of ProvEntry* that is added to, or NULL. NULL with error
 * (JSON_ERROR, with the place) when it cannot be read; the caller frees the result with
 * fabric_free. */
Fabric *read_fabric (const JsonRef *root, const char *name, GPtrArray *prov, GError **error);

#endif
