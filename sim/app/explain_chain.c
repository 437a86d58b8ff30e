#include "explain_chain.h"

#include <math.h>
#include <string.h>

#include "gpu_profile.h"

#define GIB 1073741824.0

/* ---- which numbers are taken ---- */

/* The part of path after key, up to the next "/", is name. */
static gboolean
next_is (const char *at, const char *name)
{
  const gsize n = strlen (name);
  return strncmp (at, name, n) == 0 && (at[n] == '/' || at[n] == '\0');
}

static gboolean
any_next (const char *at, const char *const *names)
{
  for (gsize i = 0; names[i] != NULL; i++)
    if (next_is (at, names[i]))
      return TRUE;
  return FALSE;
}

static gboolean
uses_type (const Spec *s, const char *at)
{
  const DType t = s->train.precision;
  const gboolean narrow = dtype_bytes (t) < 2;
  /* Head, router and attention stay in 16 bits; a type without numbers takes those of its kin. */
  const gboolean kin = !(s->gpu->gemm[t].burst_efficiency > 0) &&
                       (next_is (at, dtype_names[DT_BF16]) || next_is (at, dtype_names[DT_FP16]));
  return next_is (at, dtype_names[t]) || kin || (narrow && next_is (at, dtype_names[DT_BF16]));
}

static gboolean
uses_software (const Spec *s, const char *key)
{
  static const char *const of_experts[] = {"ep_overlap_slowdown",
                                           "ep_nvlink_efficiency",
                                           "ep_net_efficiency",
                                           "ep_base_us",
                                           "moe_imbalance",
                                           "moe_gemm_efficiency",
                                           "host_expert_us",
                                           "host_moe_sync_us",
                                           "host_pair_us",
                                           "grouped_gemm_streams",
                                           NULL};
  static const char *const of_shards[] = {"fsdp_prefetch",
                                          "fsdp_unit_layers",
                                          "fsdp_gather_copy_bytes",
                                          "fsdp_reduce_copy_bytes",
                                          "fsdp_host_unit_us",
                                          "fsdp_net_efficiency",
                                          NULL};
  static const char *const of_data[] = {"dp_overlap_slowdown", "dp_bucket_bytes", "dp_reduce_bytes",
                                        "dp_gather_bytes", NULL};
  if (any_next (key, of_experts))
    return s->model.num_experts > 0;
  if (any_next (key, of_shards))
    return spec_is_fsdp (s);
  if (any_next (key, of_data))
    return s->parallel.dp * s->parallel.cp > 1;
  if (next_is (key, "pp_elem_bytes"))
    return s->parallel.pp > 1;
  if (next_is (key, "host_graph_share"))
    return s->software.cuda_graph;
  if (next_is (key, "host_kernel_us"))
    return !s->software.cuda_graph || s->software.host_graph_share > 0;
  return TRUE;
}

gboolean
explain_uses (const Spec *s, const char *number)
{
  static const char *const types[] = {":/peak_TFLOPs/", ":/gemm/types/"};
  const char *at;
  for (gsize i = 0; i < G_N_ELEMENTS (types); i++)
    if ((at = strstr (number, types[i])) != NULL)
      return uses_type (s, at + strlen (types[i]));
  if ((at = strstr (number, ":/attention/kernels/")) != NULL) {
    const AttnKernel k = gpu_attention_kernel (s->gpu, s->software.attention);
    return k != ATTN_UNFUSED &&
           next_is (at + strlen (":/attention/kernels/"), attn_kernel_names[k]);
  }
  if (g_str_has_prefix (number, "software/") && (at = strstr (number, ":/")) != NULL)
    return uses_software (s, at + 2);
  if (g_str_has_prefix (number, "networks/") || strstr (number, ":/nic") != NULL)
    return s->cluster.gpus > s->gpu->scaleup_domain || s->cluster.nodes > 1;
  return strstr (number, "cast_fp8") == NULL || dtype_bytes (s->train.precision) < 2;
}

/* ---- equations ---- */

typedef struct {
  GString *out;
  JsonWriter *w;
} Sink;

static void put (const Sink *k, const char *what, const char *format, ...) G_GNUC_PRINTF (3, 4);

static void
put (const Sink *k, const char *what, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  if (k->w == NULL) {
    g_string_append_printf (k->out, "  %-16s %s\n", what, text);
    return;
  }
  jw_begin_object (k->w, NULL);
  jw_string (k->w, "what", what);
  jw_string (k->w, "equation", text);
  jw_end_object (k->w);
}

static void
open_list (const Sink *k, const char *title, const char *key)
{
  if (k->w != NULL)
    jw_begin_array (k->w, key);
  else
    g_string_append_printf (k->out, "\n%s\n", title);
}

static void
close_list (const Sink *k)
{
  if (k->w != NULL)
    jw_end_array (k->w);
}

static void
kernel_equations (const Spec *s, const Sink *k)
{
  put (k, "GEMM",
       "the slower of: tiles / SMs, rounded up to waves (a share wave_smoothing of the rounding "
       "forgiven), each (k + k0) steps at peak x efficiency; and its operands over memory_fraction "
       "of HBM. Efficiency falls from burst to sustained with the operations of the call (half of "
       "it at half_FLOPs), on with gemm_duty %g",
       s->software.gemm_duty);
  put (k, "attention",
       "operations (half of them, times causal_factor, under the mask) over peak x "
       "efficiency of the head dimension, plus floor_us");
  put (k, "other kernels",
       "bytes read and written over memory_fraction of HBM, at least "
       "kernel_floor_us");
  put (k, "collective",
       "the fastest that NCCL would choose of: base + hops + bytes x (n-1)/n (twice "
       "for all-reduce) over the bus rate; of several nodes the slower of NVLink and "
       "NICs");
  put (k, "host",
       "kernels x host_kernel_us + calls x host_comm_us + host_layer_us a layer; the GPU "
       "waits where the host is later");
}

void
explain_equations (const Spec *s, const Prediction *p, GString *out, JsonWriter *w)
{
  const Sink k = {out, w};
  const gint64 m = spec_microbatches (s);
  open_list (&k, "equations, from kernel to step", "equations");
  kernel_equations (s, &k);
  put (&k, "pass",
       "sum of a layer's kernels in their order; what runs beside them on another stream "
       "delays them only where they wait for it");
  put (&k, "stage",
       "layers of the stage x pass, for each of %" G_GINT64_FORMAT
       " micro-batches = batch %" G_GINT64_FORMAT " / (micro-batch %" G_GINT64_FORMAT
       " x dp %" G_GINT64_FORMAT ")",
       m, s->train.global_batch_sequences, s->train.micro_batch_sequences, s->parallel.dp);
  put (&k, "step",
       "the %s schedule of %u stages, simulated operation by operation (an operation begins when "
       "its stream and all that it waits for are done), then reduction, optimizer and gathering: "
       "%.6g s",
       s->parallel.schedule, p->n_stages, p->step_s);
  put (&k, "tokens/s",
       "batch x sequence / step = %" G_GINT64_FORMAT " x %" G_GINT64_FORMAT " / %.6g = %.6g",
       s->train.global_batch_sequences, s->train.sequence_tokens, p->step_s, p->tokens_per_s);
  put (&k, "MFU",
       "operations of the model (3 x forward, %s attention) %.6g a token x tokens/s / "
       "(%" G_GINT64_FORMAT " GPUs x %g TFLOP/s) = %.4g %%",
       s->train.causal_flops ? "half of the" : "full", p->flops_per_token, s->cluster.gpus,
       p->peak_tflops, 100 * p->mfu);
  close_list (&k);
}

void
explain_memory (const Spec *s, const Prediction *p, GString *out, JsonWriter *w)
{
  const Sink k = {out, w};
  const MemReport *r = &p->memory;
  const StageMemory *m = &r->stages[r->worst_stage];
  const SoftwareProfile *sw = &s->software;
  g_autofree char *title = g_strdup_printf ("memory of stage %d, the fullest", r->worst_stage);
  open_list (&k, title, "memory_equations");
  put (&k, "weights", "%g bytes a parameter%s: %.2f GiB", sw->param_bytes,
       spec_is_fsdp (s) || s->parallel.zero_stage >= 3 ? ", over the shard group" : "",
       (double)m->weights_bytes / GIB);
  put (&k, "gradients", "%g bytes a parameter%s: %.2f GiB", sw->grad_bytes,
       spec_is_fsdp (s) || s->parallel.zero_stage >= 2 ? ", over the shard group" : "",
       (double)m->gradients_bytes / GIB);
  put (&k, "optimizer", "%g bytes a parameter%s: %.2f GiB", sw->optimizer_state_bytes,
       spec_is_fsdp (s) || s->parallel.zero_stage >= 1 ? ", over the shard group" : "",
       (double)m->optimizer_bytes / GIB);
  put (&k, "activations",
       "what forward keeps of each layer (recompute %s) x micro-batches in flight by the schedule; "
       "logits %g bytes each on the last stage: %.2f GiB",
       recompute_names[s->train.recompute], sw->logits_bytes, (double)m->activations_bytes / GIB);
  put (&k, "buffers", "the layer at work, messages, gathered weights: %.2f GiB",
       (double)m->buffers_bytes / GIB);
  put (&k, "framework",
       "context and NCCL %.2f + workspaces %.3f + %g of the activations lost to the allocator: "
       "%.2f GiB",
       sw->framework_bytes / GIB, memory_workspace_bytes (s) / GIB, sw->fragmentation,
       (double)m->framework_bytes / GIB);
  put (&k, "peak", "their sum %.2f GiB, of %.2f", (double)m->peak_bytes / GIB,
       (double)r->capacity_bytes / GIB);
  close_list (&k);
}

/* ---- the range ---- */

void
explain_range (const IntervalTable *t, const Spec *s, const Prediction *p, GString *out,
               JsonWriter *w)
{
  const Sink k = {out, w};
  const IntervalModel *m = interval_model (t);
  const guint features = interval_features (s, p);
  const StepInterval iv = interval_of (m, features);
  open_list (&k, "the range, from the errors on published runs (scenarios/published/errors.json)",
             "range");
  put (&k, "all runs", "centre %+.3f, spread %.3f (of ln measured / predicted)",
       m->centre[FEATURE_COUNT], exp (m->spread[FEATURE_COUNT]));
  for (guint f = 0; f < FEATURE_COUNT; f++)
    if (features >> f & 1)
      put (&k, interval_feature_names[f], "centre %+.3f, spread x %.2f", m->centre[f],
           exp (m->spread[f]));
  put (&k, "range", "predicted x exp (centre %+.3f + spread %.3f x (%.2f … %.2f)) = %.6g … %.6g s",
       interval_centre (m, features), interval_spread (m, features), m->low, m->high,
       p->step_s * iv.lo, p->step_s * iv.hi);
  close_list (&k);
}
