/* graph_emit: internal to layer_cost; kernels of the operators of a graph. */
#ifndef CLUSTERSIM_GRAPH_EMIT_H
#define CLUSTERSIM_GRAPH_EMIT_H

#include "graph.h"
#include "layer_cost.h"
#include "layer_emit.h"

/* A block forward, or its operators in reverse for the given backward pass. */
void emit_graph_block (Emit *e, const GraphBlock *b, LayerPass pass);
/* A layer of the model: with what full recomputation runs again, and the host's time of a layer. */
void emit_graph_layer (Emit *e, gint64 layer, LayerPass pass);

#endif
