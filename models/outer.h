/* outer: low-frequency synchronisation between sites.
 *
 * Each of M sites trains a replica of its own on its share of the batch and, every H steps, the
 * sites average what has changed and take an outer step (local SGD, arXiv 1805.09767; DiLoCo, arXiv
 * 2311.08105; in fragments and beside the training, arXiv 2501.18512). A round is
 *   H x inner step + F x max (0, exchange of a fragment - overlapped steps x inner step) + update
 * and the step that is told is a round / H. The exchange is a ring all-reduce between the sites:
 * 2 (M-1)/M x bytes / link + 2 (M-1) x latency for each fragment, all GPUs of a site sharing its
 * link; without a link of its own, over the cluster's network, each GPU with its part of the model.
 * The sites must be alike but for their slow GPUs: a round ends with the slowest site.
 * Units: seconds, bytes.
 */
#ifndef CLUSTERSIM_OUTER_H
#define CLUSTERSIM_OUTER_H

#include "spec.h"

gboolean outer_wanted (const Spec *s); /* more than one site */
/* The job of one site; borrows everything from s: not to be cleared. */
void outer_inner_spec (const Spec *s, gint64 site, Spec *inner);
/* One fragment between all sites. s: the whole job. */
double outer_exchange_s (const Spec *s);
double outer_exchange_bytes (const Spec *s); /* what leaves a site in a round */
/* The outer optimizer's pass over a GPU's part of the model. */
double outer_update_s (const Spec *s);
double outer_state_bytes (const Spec *s); /* per parameter, kept for the outer optimizer */
/* Per step: exposed exchange and update. */
void outer_step_s (const Spec *s, double inner_s, double *exposed, double *update);

#endif
