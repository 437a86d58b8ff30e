/* layer_emit: internal to layer_cost; emits the kernels of a pass into a two-stream program. */
#ifndef CLUSTERSIM_LAYER_EMIT_H
#define CLUSTERSIM_LAYER_EMIT_H

#include "breakdown.h"
#include "layer_cost.h"

enum { EMIT_COMPUTE, EMIT_COMM };

typedef struct {
  const Pricing *p;
  ProgramBuilder *b;
  GArray *rows;    /* KernelRow, or NULL */
  guint32 join;    /* comm operations the next kernel must wait for */
  double beside_s; /* the next kernel runs beside that much of a collective and is slowed by it */
  guint kernels, calls;
  double host_us;
  gboolean overflow; /* a kernel's time did not fit the clock */
} Emit;

void emit_gemm (Emit *e, const char *name, GemmRole role, gint64 m, gint64 n, gint64 k,
                gint64 batch);
void emit_memory (Emit *e, const char *name, MemKernel kind, double bytes);
void emit_attention (Emit *e, const char *name, const AttnShape *shape);
/* Collectives: beside FALSE: the next kernel waits for it; TRUE: the caller joins later (returns
 * the count to put into e->join, 0 when there is nothing to wait for). */
guint32 emit_comm_s (Emit *e, const char *name, Part part, double time_s, double bytes,
                     gboolean beside);
guint32 emit_tp_comm (Emit *e, const char *name, CollOp op, double bytes, gboolean beside);

void emit_layer (Emit *e, gint64 layer, LayerPass pass);
void emit_embedding (Emit *e, gint64 layer, LayerPass pass);
void emit_head (Emit *e, gint64 layer, LayerPass pass);

/* attention core (scores, softmax, values), in layer_attention.c */
void emit_attention_core (Emit *e, gint64 layer, Pass pass);

#endif
