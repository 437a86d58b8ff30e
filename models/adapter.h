/* adapter: low-rank adapters beside frozen linear maps (LoRA, arXiv 2106.09685).
 *
 * y = W x + B A x with A of rank x inputs, B of outputs x rank. W is frozen: its weight gradient is
 * not computed, not reduced and not updated, its input gradient is. A and B are trained. Under
 * tensor parallelism either is divided as its base map is and the rank-wide activations between
 * them are all-reduced (Megatron's parallel adapters). Embedding, head, norms, router and routed
 * experts are frozen and have none.
 *
 * Forward of an adapter on T tokens of a map k -> n: 2 T r (k + n) operations; backward twice that.
 */
#ifndef CLUSTERSIM_ADAPTER_H
#define CLUSTERSIM_ADAPTER_H

#include "layer_emit.h"
#include "compile.h"

/* After the base map's product; k and n are the rank's own inputs and outputs. name: the kernel's
 * of the base map. Nothing without adapters or where the map has none. */
void emit_adapter_forward (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k);
void emit_adapter_dgrad (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k);
/* TRUE: the base map is frozen, so its weight gradient is left out; the adapter's is emitted. */
gboolean emit_adapter_wgrad (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k);

/* Trainable parameters of a layer's adapters, whole and on one rank of tp. */
double adapter_params_layer (const Spec *s, gint64 layer);
double adapter_params (const Spec *s);
/* Kept by frozen maps without adapters in full training, not here: bytes of a layer's activations,
 * of so many tokens. lin: bytes of an element of a linear map's input; seq_div: what divides the
 * norm's outputs. */
double adapter_unkept_bytes (const Spec *s, gint64 layer, double tokens, double lin,
                             double seq_div);

/* Parameters that a stage's rank trains: all, or its adapters. */
StageParams stage_trainable_per_rank (const Spec *s, const StageLayers *sl, guint stage);

#endif
