/* memory_graph: internal to memory; activation bytes of a graph, for one micro-batch on one GPU. */
#ifndef CLUSTERSIM_MEMORY_GRAPH_H
#define CLUSTERSIM_MEMORY_GRAPH_H

#include "spec.h"

/* Kept from the forward to the backward of a block; with full recomputation its input alone. */
double graph_kept_bytes (const Spec *s, const GraphBlock *b, Recompute r);
/* Lives only while the backward of the block runs. */
double graph_working_bytes (const Spec *s, const GraphBlock *b, Recompute r);
double graph_logits_bytes (const Spec *s); /* of the output's losses */

#endif
