/* compress: gradients made small before they are all-reduced.
 *
 * 1-bit Adam (arXiv 2102.02888), after its warm-up: the sign of each element and a scale, sent to
 * the rank that averages its part (all-to-all) and gathered again, with the error kept and added
 * the next time: 1/8 byte per parameter each way in place of a 2-byte all-reduce. PowerSGD (arXiv
 * 1905.13727): a gradient M of n x k becomes P = M Q (n x r) and Q = M' P (k x r), both
 * all-reduced: r (n + k) elements in place of n k. Their kernels run on the compute stream at the
 * end of the step.
 */
#ifndef CLUSTERSIM_COMPRESS_H
#define CLUSTERSIM_COMPRESS_H

#include "layer_cost.h"

/* Elements on the wire per gradient element of the matrices of a rank (1 without compression). */
double compress_ratio (const Spec *s);
/* Time on the wire for the gradients of so many parameters. */
double compress_reduce_s (const Spec *s, const CollGroup *group, double params);
/* Kernels that compress and decompress the gradients of so many parameters. */
double compress_kernels_s (const Spec *s, const CollGroup *group, double params);

#endif
