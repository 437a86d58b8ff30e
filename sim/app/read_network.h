/* read_network: "cluster.network" and "run.fidelity" of a scenario. Keys are in
 * scenarios/README.md. */
#ifndef CLUSTERSIM_READ_NETWORK_H
#define CLUSTERSIM_READ_NETWORK_H

#include "scenario_priv.h"

/* Reads cluster.network into s->network; notes the topology's file among the profiles. Without the
 * member nothing changes. */
gboolean read_network (const JsonRef *root, Spec *s, GError **error);

/* Reads fidelity, one word for all kinds of groups or an object by kind, from the object "run"
 * (NULL: none). After read_network: what is not said is flow where a network is given. */
gboolean read_fidelity (const JsonRef *run, Spec *s, GError **error);

#endif
