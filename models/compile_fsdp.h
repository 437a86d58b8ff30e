/* compile_fsdp: sharded parameters in the programs of a step; internal to compile.c.
 * See compile_fsdp.c for what is modelled. */
#ifndef CLUSTERSIM_COMPILE_FSDP_H
#define CLUSTERSIM_COMPILE_FSDP_H

#include "compile_int.h"

/* Sets c->fsdp; fsdp_costs prices it once the stages' own costs are known. */
void fsdp_init (Compile *c);
void fsdp_costs (Compile *c, const gboolean kinds[4]);
void fsdp_free (Fsdp *f);

/* Operations that an action puts on the compute stream. last: it completes the stage's gradients.
 */
guint fsdp_compute_ops (const Compile *c, const SchedAction *a, gboolean last);

/* A rank starts its step: all its parameters are sharded. */
void fsdp_row (Compile *c, guint rank);

/* The gathers that go before an action, and the cost of its first piece; the caller appends that to
 * the compute stream, adds its own waits and calls fsdp_rest. */
guint32 fsdp_begin (Compile *c, const SchedAction *a);
guint32 fsdp_piece (const Compile *c, const SchedAction *a, guint k);
void fsdp_rest (Compile *c, const SchedAction *a, guint32 tag, gboolean last);
/* What is left when the last backward of a rank with so many parameters is done. */
void fsdp_end (Compile *c, StageParams held);

#endif
