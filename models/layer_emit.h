/* layer_emit: internal to layer_cost; emits the kernels of a pass into a two-stream program. */
#ifndef CLUSTERSIM_LAYER_EMIT_H
#define CLUSTERSIM_LAYER_EMIT_H

#include "breakdown.h"
#include "layer_cost.h"

enum { EMIT_COMPUTE, EMIT_COMM, EMIT_EP, EMIT_STREAMS };

typedef struct {
  const Pricing *p;
  ProgramBuilder *b;
  GArray *rows;    /* KernelRow, or NULL */
  guint32 join;    /* comm operations the next kernel must wait for */
  guint32 join_ep; /* all-to-all operations the next kernel must wait for */
  double beside_s; /* the next kernel runs beside that much of a collective and is slowed by it */
  double *beside_ep_s;  /* all-to-all time that kernels run beside, shared by a pair; or NULL */
  double message_scale; /* tp messages over tokens x hidden; 0: 1 */
  gboolean wide;        /* GEMMs in 16 bits whatever the precision */
  gint64 experts;       /* > 0: GEMMs are grouped over so many local experts */
  guint kernels, calls;
  double host_us, host_layer_us; /* host_layer_us: the part that graphs can take */
  double kernel_host_s; /* > 0: kernels wait for the host, which takes so long for each … */
  double host_at_s, device_at_s; /* … and waits for each collective; both since the pass began */
  gboolean overflow;             /* a kernel's time did not fit the clock */
} Emit;

void emit_gemm (Emit *e, const char *name, GemmRole role, gint64 m, gint64 n, gint64 k,
                gint64 batch);
/* An implicit GEMM of groups products; bytes: what it reads and writes in place of its operands. */
void emit_conv (Emit *e, const char *name, GemmRole role, gint64 m, gint64 n, gint64 k,
                gint64 groups, double bytes);
void emit_memory (Emit *e, const char *name, MemKernel kind, double bytes);
void emit_attention (Emit *e, const char *name, const AttnShape *shape);
/* Collectives: beside FALSE: the next kernel waits for it; TRUE: the caller joins later (returns
 * the count to put into e->join, 0 when there is nothing to wait for). */
guint32 emit_comm_s (Emit *e, const char *name, Part part, double time_s, double bytes,
                     gboolean beside);
guint32 emit_tp_comm (Emit *e, const char *name, CollOp op, double bytes, gboolean beside);

/* An all-to-all on the stream of the experts; beside as above, joined through join_ep. */
guint32 emit_ep_comm_s (Emit *e, const char *name, double time_s, double bytes, gboolean beside);
/* A kernel too small to fill the device: the profile's kernel floor (not counted among kernels). */
void emit_small (Emit *e);
/* Host waits for the device (PART_HOST on the compute stream). */
void emit_host_gap (Emit *e, double us);
/* Conversion of elements to the training precision, in both orientations when both; nothing in
 * 16-bit training or for wide GEMMs. */
void emit_quantise (Emit *e, const char *name, double elements, gboolean both);
void emit_quantise_normed (Emit *e, const char *name, double elements); /* output of a norm */

void emit_layer (Emit *e, gint64 layer, LayerPass pass);
void emit_layer_again (Emit *e, gint64 layer); /* what a backward pass runs again before it */
void emit_mtp (Emit *e, gint64 layer, LayerPass pass);
void emit_mtp_body (Emit *e, gint64 layer, LayerPass pass); /* … without its head */
void emit_embedding (Emit *e, gint64 layer, LayerPass pass);
void emit_head (Emit *e, gint64 layer, LayerPass pass);

/* Linear layers with their tensor-parallel collectives: columns (forward, backward), rows. */
void emit_column_forward (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k);
void emit_row_forward (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k);
void emit_column_backward (Emit *e, const char *name, LayerPass pass, gint64 tokens, gint64 n,
                           gint64 k);
void emit_row_backward (Emit *e, const char *name, LayerPass pass, gint64 tokens, gint64 n,
                        gint64 k);
void emit_wgrad (Emit *e, const char *name, gint64 tokens, gint64 n, gint64 k);
void emit_norm (Emit *e, gboolean forward, gint64 tokens, gint64 width);
void emit_activation (Emit *e, gboolean forward, gint64 tokens, gint64 ffn);

/* A layer in pieces, for pairs: attention half (up to the second norm) and what is after the MLP.
 */
void emit_attention_half_forward (Emit *e, gint64 layer);
void emit_attention_half_backward (Emit *e, gint64 layer, LayerPass pass);
void emit_mlp_tail_forward (Emit *e);
void emit_mlp_tail_backward (Emit *e);

/* Mixture of experts, in layer_moe.c. Five pieces each way; dispatch and combine are all-to-alls.
 */
void emit_moe_forward (Emit *e);
void emit_moe_backward (Emit *e, LayerPass pass);
void emit_moe_route (Emit *e);
guint32 emit_moe_dispatch (Emit *e, gboolean forward, gboolean beside);
guint32 emit_moe_combine (Emit *e, gboolean forward, gboolean beside);
void emit_moe_experts (Emit *e);
void emit_moe_collect (Emit *e);
void emit_moe_collect_backward (Emit *e);
void emit_moe_experts_backward (Emit *e, LayerPass pass);
void emit_moe_route_backward (Emit *e, LayerPass pass);
/* Time of one dispatch (out) or combine (back), and its bytes on the wire of a rank. */
double moe_dispatch_s (const Pricing *p, gboolean out, double *bytes);

/* Latent attention and the delta rule, in layer_mla.c: mixers between the norm and the residual. */
void emit_latent_forward (Emit *e, gint64 layer);
void emit_latent_backward (Emit *e, gint64 layer, LayerPass pass);
void emit_delta_forward (Emit *e, gint64 layer);
void emit_delta_backward (Emit *e, gint64 layer, LayerPass pass);

/* attention core (scores, softmax, values), in layer_attention.c */
void emit_attention_core (Emit *e, gint64 layer, Pass pass);

#endif
