/* offload: optimizer and activations in host memory or on drives.
 *
 * Optimizer (ZeRO-Offload, arXiv 2101.06840): gradients go to the host over PCIe as they are
 * reduced, the processors update their part of the master weights, and the new parameters come
 * back. Drives (ZeRO-Infinity, arXiv 2104.07857): the states are read and written beside the
 * update, which then takes the longer of the two. The processors of a node work for all its GPUs.
 * Delayed: the update runs beside the next step. Activations: a share of what a layer keeps leaves
 * in forward and returns in backward beside the layers' own kernels; what PCIe needs beyond them is
 * waited for.
 */
#ifndef CLUSTERSIM_OFFLOAD_H
#define CLUSTERSIM_OFFLOAD_H

#include "spec.h"

gboolean offload_optimizer (const Spec *s);
/* Gradients of so many parameters of a GPU to the host; new parameters back. */
double offload_gradients_s (const Spec *s, double params);
double offload_parameters_s (const Spec *s, double params);
/* The update of so many parameters of each GPU of a node. */
double offload_update_s (const Spec *s, double params);
/* How much longer than total_s a pass of a layer takes because its activations travel. */
double offload_wait_s (const Spec *s, gint64 layer, double total_s);

#endif
