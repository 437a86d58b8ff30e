#include "layer_cost.h"

#include <math.h>
#include <string.h>

#include "exec.h"
#include "fabric.h"
#include "gpu_profile.h"
#include "layer_emit.h"

static const char *const layer_stream_names[] = {"compute", "comm", "experts", NULL};

void
pricing_init (Pricing *p, const Spec *s)
{
  memset (p, 0, sizeof *p);
  p->s = s;
  rank_groups (s, &p->groups);
  p->tokens = s->train.micro_batch_sequences * s->train.sequence_tokens / s->parallel.cp;
  p->tokens_sp = s->parallel.sequence_parallel ? p->tokens / s->parallel.tp : p->tokens;
  p->vocab_padded = spec_padded_vocab (s);
  p->act_bytes = s->train.precision == DT_FP32 || s->train.precision == DT_TF32 ? 4.0 : 2.0;
  p->gemm_dtype = s->train.precision;
  p->wide_dtype = !spec_narrow (s)                       ? s->train.precision
                  : gpu_peak_flops (s->gpu, DT_BF16) > 0 ? DT_BF16
                                                         : DT_FP16;
  p->attention = gpu_attention_kernel (s->gpu, s->software.attention);
}

static SimTime
ticks (Emit *e, double s)
{
  SimTime t = 0;
  if (sim_time_from_s (s, SIM_TICKS_PS, &t) && t <= KERNEL_TICKS_MAX)
    return t;
  e->overflow = TRUE;
  return 0;
}

/* ---- emitting: two streams, joins where one needs the other ---- */

static void
record (Emit *e, const char *name, const char *kind, double time_s, double flops, double bytes,
        gboolean comm)
{
  if (e->rows == NULL)
    return;
  KernelRow row = {name, kind, time_s, flops, bytes, comm};
  g_array_append_val (e->rows, row);
}

/* The device begins something that takes the host so long to issue. */
static void
wait_for_host (Emit *e, double issue_s, double time_s)
{
  if (!(e->kernel_host_s > 0))
    return;
  e->host_at_s += issue_s;
  double wait_s = e->host_at_s - e->device_at_s;
  if (wait_s > 0) {
    emit_host_gap (e, wait_s * 1e6);
    e->device_at_s = e->host_at_s;
  }
  e->device_at_s += time_s;
}

static void
put_compute (Emit *e, double time_s)
{
  time_s *= e->p->s->software.compute_scale;
  time_s += (e->p->s->software.tp_overlap_slowdown - 1.0) * MIN (time_s, e->beside_s);
  e->beside_s = 0;
  if (e->beside_ep_s != NULL && *e->beside_ep_s > 0) { /* the all-to-all holds some of the SMs */
    double together = MIN (time_s, *e->beside_ep_s);
    *e->beside_ep_s -= together;
    time_s += (e->p->s->software.ep_overlap_slowdown - 1.0) * together;
  }
  wait_for_host (e, e->kernel_host_s, time_s);
  guint32 cost = program_cost (e->b, PART_COMPUTE, ticks (e, time_s));
  program_op (e->b, EMIT_COMPUTE, OP_COMPUTE, cost, OP_TAG (TAG_KERNEL, 0, 0));
  program_wait (e->b, EMIT_COMPUTE, PEER_SELF, EMIT_COMM, e->join);
  program_wait (e->b, EMIT_COMPUTE, PEER_SELF, EMIT_EP, e->join_ep);
  e->join = e->join_ep = 0;
}

void
emit_gemm (Emit *e, const char *name, GemmRole role, gint64 m, gint64 n, gint64 k, gint64 batch)
{
  const Spec *s = e->p->s;
  if (m <= 0 || n <= 0 || k <= 0 || batch <= 0)
    return;
  GemmShape shape = {.m = m,
                     .n = n,
                     .k = k,
                     .batch = batch,
                     .dtype = e->wide ? e->p->wide_dtype : e->p->gemm_dtype,
                     .role = role,
                     .accumulate = role == GEMM_WGRAD && s->software.grad_accum_fusion};
  double t = gpu_gemm_s (s->gpu, &shape, s->software.gemm_duty);
  if (e->experts > 0) {
    t /= s->software.moe_gemm_efficiency;
    e->host_us += s->software.host_expert_us * (double)batch;
  }
  record (e, name, "gemm", t, 2.0 * (double)m * (double)n * (double)k * (double)batch, 0, FALSE);
  put_compute (e, t);
  e->kernels++;
}

/* Side of the output tiles that the cuts of a weight gradient count. */
#define CONV_TILE 128

void
emit_conv (Emit *e, const char *name, GemmRole role, gint64 m, gint64 n, gint64 k, gint64 groups,
           double bytes)
{
  const Spec *s = e->p->s;
  GemmShape shape = {.m = m,
                     .n = n,
                     .k = k,
                     .batch = groups,
                     .dtype = e->p->gemm_dtype,
                     .role = role,
                     .bytes = bytes};
  if (m <= 0 || n <= 0 || k <= 0 || groups <= 0)
    return;
  if (role == GEMM_WGRAD) { /* the sum over all images is cut until the SMs are full */
    double tiles = ceil ((double)m / CONV_TILE) * ceil ((double)n / CONV_TILE) * (double)groups;
    gint64 cuts =
        (gint64)CLAMP (2.0 * gpu_sm_count (s->gpu) / tiles, 1.0, (double)k / CONV_TILE + 1);
    shape.batch = groups * cuts;
    shape.k = MAX (k / cuts, 1);
  }
  double t = gpu_gemm_s (s->gpu, &shape, s->software.gemm_duty) / s->software.conv_efficiency;
  record (e, name, "conv", t, 2.0 * (double)m * (double)n * (double)k * (double)groups, bytes,
          FALSE);
  put_compute (e, t);
  e->kernels++;
}

void
emit_memory (Emit *e, const char *name, MemKernel kind, double bytes)
{
  if (bytes <= 0)
    return;
  double t = gpu_memory_s (e->p->s->gpu, kind, bytes);
  record (e, name, "memory", t, 0, bytes, FALSE);
  put_compute (e, t);
  e->kernels++;
}

void
emit_attention (Emit *e, const char *name, const AttnShape *shape)
{
  const Spec *s = e->p->s;
  double t = gpu_attention_s (s->gpu, e->p->attention, shape, s->software.gemm_duty);
  record (e, name, "attention", t, 0, 0, FALSE);
  put_compute (e, t);
  e->kernels += shape->pass == PASS_FORWARD ? 1 : 3;
}

guint32
emit_comm_s (Emit *e, const char *name, Part part, double time_s, double bytes, gboolean beside)
{
  if (time_s <= 0)
    return 0;
  record (e, name, "collective", time_s, 0, bytes, TRUE);
  if (!beside) {
    wait_for_host (e, e->p->s->software.host_comm_us * 1e-6, time_s);
    e->host_at_s = e->device_at_s;
  }
  guint32 cost = program_cost (e->b, part, ticks (e, time_s));
  program_op (e->b, EMIT_COMM, OP_COLL, cost, OP_TAG (TAG_KERNEL, 0, 1));
  program_wait (e->b, EMIT_COMM, PEER_SELF, EMIT_COMPUTE, program_count (e->b, EMIT_COMPUTE));
  guint32 count = program_count (e->b, EMIT_COMM);
  e->calls++;
  if (!beside)
    e->join = count;
  return count;
}

guint32
emit_ep_comm_s (Emit *e, const char *name, double time_s, double bytes, gboolean beside)
{
  if (time_s <= 0)
    return 0;
  record (e, name, "collective", time_s, 0, bytes, TRUE);
  guint32 cost = program_cost (e->b, PART_EP_COMM, ticks (e, time_s));
  program_op (e->b, EMIT_EP, OP_COLL, cost, OP_TAG (TAG_KERNEL, 0, 2));
  program_wait (e->b, EMIT_EP, PEER_SELF, EMIT_COMPUTE, program_count (e->b, EMIT_COMPUTE));
  program_wait (e->b, EMIT_EP, PEER_SELF, EMIT_COMM, e->join);
  guint32 count = program_count (e->b, EMIT_EP);
  e->calls++;
  if (!beside)
    e->join_ep = count;
  else if (e->beside_ep_s != NULL)
    *e->beside_ep_s += time_s;
  return count;
}

void
emit_small (Emit *e)
{
  put_compute (e, gpu_kernel_floor_s (e->p->s->gpu));
}

/* The scale of a whole tensor is taken from the tensor itself: it is read once more for its
 * maximum. */
static gboolean
scales_tensor (const Spec *s)
{
  return s->train.precision == DT_FP4 ||
         (s->train.precision == DT_FP8 && s->software.fp8_recipe == FP8_CURRENT);
}

/* Bytes read and written for an element: 2 in; 1 (or half) out for each orientation, and in 4 bits
 * a read for each, as one of them is rotated (random Hadamard transform). */
static double
quantise_bytes (const Spec *s, gboolean both)
{
  double out = dtype_bytes (s->train.precision) * (both ? 2.0 : 1.0);
  double in = s->train.precision == DT_FP4 && both ? 4.0 : 2.0;
  return in + out + (scales_tensor (s) ? 2.0 : 0.0);
}

/* Kernels of a conversion: the cast; for tensor scales the maximum and the scale before it; for
 * block scales their reordering for the GEMM, in each orientation. */
static double
quantise_kernels (const Spec *s)
{
  gboolean delayed = s->train.precision == DT_FP8 && s->software.fp8_recipe == FP8_DELAYED;
  return delayed ? 1.0 : 3.0;
}

/* Grouped linear layers quantise the rows of each expert apart, each kernel at least the smallest.
 */
static void
quantise (Emit *e, const char *name, double elements, double bytes)
{
  const Spec *s = e->p->s;
  if (e->wide || !spec_narrow (s) || elements <= 0)
    return;
  bytes *= elements;
  double t = gpu_cast_fp8_s (s->gpu, bytes / 3.0); /* that function moves 3 bytes an element */
  double launches = quantise_kernels (s) * (double)MAX (e->experts, 1);
  t += (launches - 1.0) * gpu_kernel_floor_s (s->gpu);
  record (e, name, "memory", t, 0, bytes, FALSE);
  put_compute (e, t);
  e->kernels++;
  e->host_us += (double)e->experts * s->software.host_expert_us * quantise_kernels (s);
}

void
emit_quantise (Emit *e, const char *name, double elements, gboolean both)
{
  /* the second orientation is the weight gradient's, which frozen maps have not */
  gboolean frozen = e->p->s->train.adapter_rank > 0;
  quantise (e, name, elements, quantise_bytes (e->p->s, both && !frozen));
}

/* The norm before writes the quantised input when it knows the scale (delayed); what is left is its
 * transpose for the weight gradient. */
void
emit_quantise_normed (Emit *e, const char *name, double elements)
{
  const Spec *s = e->p->s;
  gboolean delayed = s->train.precision == DT_FP8 && s->software.fp8_recipe == FP8_DELAYED;
  gboolean frozen = s->train.adapter_rank > 0, fused = delayed && s->software.fused_norm;
  if (!(fused && frozen))
    quantise (e, name, elements, fused ? 2.0 : quantise_bytes (s, !frozen));
}

void
emit_host_gap (Emit *e, double us)
{
  if (us <= 0)
    return;
  guint32 cost = program_cost (e->b, PART_HOST, ticks (e, us * 1e-6));
  program_op (e->b, EMIT_COMPUTE, OP_HOST, cost, OP_TAG (TAG_HOST, 0, 0));
  program_wait (e->b, EMIT_COMPUTE, PEER_SELF, EMIT_COMM, e->join);
  program_wait (e->b, EMIT_COMPUTE, PEER_SELF, EMIT_EP, e->join_ep);
  e->join = e->join_ep = 0;
}

guint32
emit_tp_comm (Emit *e, const char *name, CollOp op, double bytes, gboolean beside)
{
  const Spec *s = e->p->s;
  if (s->parallel.tp <= 1)
    return 0;
  return emit_comm_s (e, name, PART_TP_COMM,
                      coll_time_s (s->fabric, op, &e->p->groups.tp, bytes, NULL), bytes, beside);
}

/* ---- running a pass ---- */

/* Host time of the kernels, without that of collectives. */
static double
kernels_host_s (const Emit *e)
{
  const SoftwareProfile *sw = &e->p->s->software;
  double layer_us = e->host_layer_us * (sw->cuda_graph ? sw->host_graph_share : 1.0);
  double host_us =
      (sw->cuda_graph ? 0.0 : sw->host_kernel_us) * (double)e->kernels + e->host_us + layer_us;
  return 1e-6 * host_us * (e->p->s->fabric->cpu == FABRIC_ARM ? sw->host_arm_factor : 1.0);
}

static double
calls_host_s (const Emit *e)
{
  const SoftwareProfile *sw = &e->p->s->software;
  return 1e-6 * sw->host_comm_us * (double)e->calls *
         (e->p->s->fabric->cpu == FABRIC_ARM ? sw->host_arm_factor : 1.0);
}

static void
finish_pass (Emit *e, PassCost *out)
{
  memset (out, 0, sizeof *out);
  out->kernels = e->kernels + e->calls;
  out->host = ticks (e, kernels_host_s (e) + calls_host_s (e));
  out->overflow = e->overflow;
  if (program_count (e->b, EMIT_COMPUTE) == 0 && program_count (e->b, EMIT_COMM) == 0)
    return;
  /* a last, empty operation joins the two streams */
  guint32 zero = program_cost (e->b, PART_COMPUTE, 0);
  program_op (e->b, EMIT_COMPUTE, OP_MARK, zero, 0);
  program_wait (e->b, EMIT_COMPUTE, PEER_SELF, EMIT_COMM, program_count (e->b, EMIT_COMM));
  program_wait (e->b, EMIT_COMPUTE, PEER_SELF, EMIT_EP, program_count (e->b, EMIT_EP));
  g_autoptr (ProgramSet) set = program_builder_finish (e->b, 1, 0, 0, 0);
  ExecResult res;
  if (!exec_run_fast (set, &res, NULL)) { /* it cannot deadlock: too many long kernels */
    out->overflow = TRUE;
    return;
  }
  Breakdown bd;
  breakdown_compute (set, &res, 0, EMIT_COMPUTE, &bd);
  memcpy (out->part, bd.part, sizeof bd.part);
  out->total = bd.total;
  exec_result_clear (&res);
}

typedef void (*EmitFn) (Emit *e, gint64 layer, LayerPass pass);

/* Again, now that the host's time is known, with the host waiting for each collective: it issues
 * what follows only when the collective is done, so that the device waits for every kernel that is
 * shorter than its issue until a longer one lets the host run ahead. Host and device end the pass
 * in step. */
static void
run_coupled (const Emit *plain, gint64 layer, LayerPass pass, EmitFn fn, PassCost *out)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (EMIT_STREAMS, layer_stream_names);
  Emit e = {.p = plain->p,
            .b = b,
            .kernel_host_s = kernels_host_s (plain) / (double)plain->kernels,
            .overflow = plain->overflow};
  program_begin (b);
  fn (&e, layer, pass);
  finish_pass (&e, out);
  out->host = out->total;
}

static void
run_pass (const Pricing *p, gint64 layer, LayerPass pass, EmitFn fn, GArray *rows, PassCost *out)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (EMIT_STREAMS, layer_stream_names);
  Emit e = {.p = p, .b = b, .rows = rows};
  program_begin (b);
  fn (&e, layer, pass);
  if (p->s->software.tp_comm_blocks && e.calls > 0 && e.kernels > 0) {
    run_coupled (&e, layer, pass, fn, out);
    return;
  }
  finish_pass (&e, out);
}

void
layer_pass_cost (const Pricing *p, gint64 layer, LayerPass pass, PassCost *out)
{
  run_pass (p, layer, pass, emit_layer, NULL, out);
}

void
layer_pass_kernels (const Pricing *p, gint64 layer, LayerPass pass, GArray *rows)
{
  PassCost unused;
  run_pass (p, layer, pass, emit_layer, rows, &unused);
}

void
mtp_pass_cost (const Pricing *p, LayerPass pass, PassCost *out)
{
  run_pass (p, p->s->model.num_layers - 1, pass, emit_mtp, NULL, out);
}

void
mtp_body_cost (const Pricing *p, LayerPass pass, PassCost *out)
{
  run_pass (p, p->s->model.num_layers - 1, pass, emit_mtp_body, NULL, out);
}

/* Megatron-Core's order of the pieces: compute  attention F | MLP B, MLP F | attention B
 *                                      experts  combine B | dispatch F, dispatch B | combine F */
void
layer_pair_cost (const Pricing *p, gint64 forward_layer, gint64 backward_layer, PassCost *out)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (EMIT_STREAMS, layer_stream_names);
  double beside = 0;
  Emit f = {.p = p, .b = b, .beside_ep_s = &beside};
  Emit r = {.p = p, .b = b, .beside_ep_s = &beside};
  program_begin (b);
  r.host_layer_us += p->s->software.host_layer_bwd_us;
  f.host_layer_us += p->s->software.host_layer_fwd_us;
  emit_layer_again (&r, backward_layer);
  emit_mlp_tail_backward (&r);
  emit_moe_collect_backward (&r);
  guint32 back_in = emit_moe_combine (&r, FALSE, TRUE);
  emit_attention_half_forward (&f, forward_layer);
  emit_moe_route (&f);
  guint32 out_there = emit_moe_dispatch (&f, TRUE, TRUE);
  r.join_ep = back_in;
  emit_moe_experts_backward (&r, LP_BACKWARD);
  guint32 back_out = emit_moe_dispatch (&r, FALSE, TRUE);
  f.join_ep = out_there;
  emit_moe_experts (&f);
  guint32 in_there = emit_moe_combine (&f, TRUE, TRUE);
  r.join_ep = back_out;
  emit_moe_route_backward (&r, LP_BACKWARD);
  emit_attention_half_backward (&r, backward_layer, LP_BACKWARD);
  f.join_ep = in_there;
  emit_moe_collect (&f);
  emit_mlp_tail_forward (&f);
  f.kernels += r.kernels;
  f.calls += r.calls;
  f.host_us += r.host_us;
  f.host_layer_us += r.host_layer_us;
  finish_pass (&f, out);
}

void
embedding_pass_cost (const Pricing *p, LayerPass pass, PassCost *out)
{
  run_pass (p, 0, pass, emit_embedding, NULL, out);
}

void
head_pass_cost (const Pricing *p, LayerPass pass, PassCost *out)
{
  run_pass (p, 0, pass, emit_head, NULL, out);
}

void
pass_cost_add (PassCost *sum, const PassCost *more)
{
  for (guint i = 0; i < PART_COUNT; i++)
    sum->part[i] += more->part[i];
  sum->total += more->total;
  sum->host += more->host;
  sum->kernels += more->kernels;
  sum->overflow |= more->overflow || more->total > PASS_TICKS_MAX || sum->total > PASS_TICKS_MAX ||
                   sum->host > PASS_TICKS_MAX;
  if (sum->overflow)
    memset (sum->part, 0, sizeof sum->part), sum->total = sum->host = 0;
}
