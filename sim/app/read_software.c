#include "read_software.h"

#include <stddef.h>
#include <string.h>

typedef struct {
  const char *key;
  size_t offset;
  double min, max;
} NumberField;

typedef struct {
  const char *key;
  size_t offset;
} SwitchField;

#define NUM(f, lo, hi)                                                                             \
  {                                                                                                \
#f, offsetof(SoftwareProfile, f), lo, hi                                                       \
  }
static const NumberField numbers[] = {
    NUM (grad_bytes, 0, 16),
    NUM (param_bytes, 0, 16),
    NUM (optimizer_state_bytes, 0, 64),
    NUM (optimizer_traffic_bytes, 0, 256),
    NUM (xent_passes, 0, 1000),
    NUM (logits_bytes, 0, 64),
    NUM (tp_overlap_slowdown, 1, 10),
    NUM (dp_overlap_slowdown, 1, 10),
    NUM (dp_bucket_bytes, 0, 1e12),
    NUM (dp_reduce_bytes, 0, 16),
    NUM (dp_gather_bytes, 0, 16),
    NUM (pp_elem_bytes, 0, 16),
    NUM (host_kernel_us, 0, 1e5),
    NUM (host_layer_fwd_us, 0, 1e6),
    NUM (host_layer_bwd_us, 0, 1e6),
    NUM (host_comm_us, 0, 1e5),
    NUM (host_microbatch_us, 0, 1e7),
    NUM (host_chunk_us, 0, 1e6),
    NUM (host_step_us, 0, 1e8),
    NUM (host_optimizer_us, 0, 1e8),
    NUM (data_step_us, 0, 1e9),
    NUM (framework_bytes, 0, 1e11),
    NUM (fragmentation, 0, 1),
    NUM (gemm_duty, 0, GPU_MAX_DUTY),
    NUM (compute_scale, 0.5, 10),
};

/* Left out by profiles of frameworks that know no experts, no 8-bit training and no sharded
 * parameters: then what software_init says. */
static const NumberField optional_numbers[] = {
    NUM (allocated_base_bytes, 0, 1e11), NUM (reserved_share, 0, 4),
    NUM (blas_handles, 0, 64),           NUM (blas_config_bytes, 0, 1e10),
    NUM (te_workspaces, 0, 64),          NUM (grouped_gemm_streams, 0, 64),
    NUM (ep_overlap_slowdown, 1, 10),    NUM (ep_nvlink_efficiency, 0.01, 2),
    NUM (ep_net_efficiency, 0.01, 2),    NUM (ep_base_us, 0, 1e5),
    NUM (moe_imbalance, 1, 100),         NUM (moe_gemm_efficiency, 0.01, 1),
    NUM (host_expert_us, 0, 1e4),        NUM (host_moe_sync_us, 0, 1e5),
    NUM (host_pair_us, 0, 1e6),          NUM (host_graph_share, 0, 1),
    NUM (host_arm_factor, 0.1, 10),      NUM (fsdp_prefetch, 0, 64),
    NUM (fsdp_unit_layers, 1, 1024),     NUM (fsdp_gather_copy_bytes, 0, 64),
    NUM (fsdp_reduce_copy_bytes, 0, 64), NUM (fsdp_host_unit_us, 0, 1e6),
    NUM (activation_passes, 2, 100),     NUM (norm_passes, 2, 100),
    NUM (dropout_extra_bytes, 0, 100),   NUM (attention_copies, 0, 8),
    NUM (amp_cast_bytes, 0, 64),         NUM (conv_layout_passes, 0, 8),
    NUM (conv_layout_passes_tf32, 0, 8), NUM (half_bandwidth, 0.1, 1.5),
    NUM (conv_efficiency, 0.01, 1.5),    NUM (batch_norm_reads, 1, 4),
    NUM (dp_rate_max_Bps, 0, 1e13),      NUM (dp_step_us, 0, 1e7),
    NUM (norm_collectives, 1, 10000),    NUM (data_node_sample_us, 0, 1e6),
    NUM (data_rank_sample_us, 0, 1e6),   NUM (fsdp_net_efficiency, 0.01, 1),
};

#define SW(f)                                                                                      \
  {                                                                                                \
#f, offsetof(SoftwareProfile, f)                                                               \
  }
static const SwitchField switches[] = {
    SW (fused_softmax),   SW (fused_bias_gelu),   SW (fused_bias_dropout_add),
    SW (fused_swiglu),    SW (fused_rope),        SW (fused_norm),
    SW (dropout),         SW (grad_accum_fusion), SW (head_recompute),
    SW (dp_overlap_grad), SW (dp_overlap_param),  SW (pp_overlap),
    SW (p2p_sync),        SW (pp_scatter_gather), SW (cuda_graph),
};

static const SwitchField optional_switches[] = {
    SW (expert_tp_one),       SW (ep_overlap),           SW (moe_shared_overlap),
    SW (moe_fused_router),    SW (moe_fused_permute),    SW (fp8_dispatch),
    SW (fp8_param_gather),    SW (fp8_tp_gather),        SW (attn_sinks_unfused),
    SW (dp_reduce_every),     SW (recompute_early_stop), SW (fsdp_root_held),
    SW (fsdp_barrier),        SW (fsdp_replicas_last),   SW (post_validation),
    SW (no_sharded_pipeline), SW (attn_scores_kept),     SW (recompute_partitioned),
    SW (vocab_pad_divided),   SW (tp_comm_blocks),       SW (bias_kernel),
    SW (fused_batch_norm),    SW (no_grad_norm),
};

static gboolean
check_keys (const JsonRef *root, GError **error)
{
  static const char *const others[] = {"name",       "format",     "source",      "why",
                                       "extends",    "frameworks", "attention",   "optimizer",
                                       "tp_overlap", "vocab_pad",  "ep_dispatch", "fp8_recipe"};
  const char
      *allowed[G_N_ELEMENTS (numbers) + G_N_ELEMENTS (optional_numbers) + G_N_ELEMENTS (switches) +
               G_N_ELEMENTS (optional_switches) + G_N_ELEMENTS (others) + 1];
  gsize n = 0;
  for (gsize i = 0; i < G_N_ELEMENTS (others); i++)
    allowed[n++] = others[i];
  for (gsize i = 0; i < G_N_ELEMENTS (numbers); i++)
    allowed[n++] = numbers[i].key;
  for (gsize i = 0; i < G_N_ELEMENTS (switches); i++)
    allowed[n++] = switches[i].key;
  for (gsize i = 0; i < G_N_ELEMENTS (optional_numbers); i++)
    allowed[n++] = optional_numbers[i].key;
  for (gsize i = 0; i < G_N_ELEMENTS (optional_switches); i++)
    allowed[n++] = optional_switches[i].key;
  allowed[n] = NULL;
  return json_check_keys (root, allowed, error);
}

static gboolean
read_optional (const JsonRef *root, SoftwareProfile *out, GPtrArray *prov, GError **error)
{
  int dispatch = EP_PLAIN, recipe = FP8_DELAYED;
  for (gsize i = 0; i < G_N_ELEMENTS (optional_numbers); i++) {
    const NumberField *f = &optional_numbers[i];
    if (json_has (root, f->key) &&
        !json_get_sourced (root, f->key, f->min, f->max,
                           (double *)(void *)((char *)out + f->offset), prov, error))
      return FALSE;
  }
  for (gsize i = 0; i < G_N_ELEMENTS (optional_switches); i++)
    if (!json_opt_bool (root, optional_switches[i].key,
                        (gboolean *)(void *)((char *)out + optional_switches[i].offset), error))
      return FALSE;
  if (!json_opt_enum (root, "ep_dispatch", ep_dispatch_names, &dispatch, error) ||
      !json_opt_enum (root, "fp8_recipe", fp8_recipe_names, &recipe, error))
    return FALSE;
  out->ep_dispatch = (EpDispatch)dispatch;
  out->fp8_recipe = (Fp8Recipe)recipe;
  return TRUE;
}

double *
software_number (SoftwareProfile *s, const char *key)
{
  for (gsize i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (strcmp (numbers[i].key, key) == 0)
      return (double *)(void *)((char *)s + numbers[i].offset);
  for (gsize i = 0; i < G_N_ELEMENTS (optional_numbers); i++)
    if (strcmp (optional_numbers[i].key, key) == 0)
      return (double *)(void *)((char *)s + optional_numbers[i].offset);
  return NULL;
}

gboolean
read_software (const JsonRef *root, SoftwareProfile *out, GPtrArray *prov, GError **error)
{
  const char *name = NULL;
  int attention = 0, optimizer = 0, overlap = 0;
  software_init (out);
  if (!check_keys (root, error) || !json_get_string (root, "name", &name, error) ||
      !json_get_enum (root, "attention", attn_kernel_names, &attention, error) ||
      !json_get_enum (root, "optimizer", optimizer_names, &optimizer, error) ||
      !json_get_enum (root, "tp_overlap", tp_overlap_names, &overlap, error) ||
      !json_get_int (root, "vocab_pad", 1, 1 << 20, &out->vocab_pad, error))
    return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (numbers); i++)
    if (!json_get_sourced (root, numbers[i].key, numbers[i].min, numbers[i].max,
                           (double *)(void *)((char *)out + numbers[i].offset), prov, error))
      return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (switches); i++)
    if (!json_get_bool (root, switches[i].key,
                        (gboolean *)(void *)((char *)out + switches[i].offset), error))
      return FALSE;
  if (!read_optional (root, out, prov, error))
    return FALSE;
  out->attention = (AttnKernel)attention;
  out->optimizer = (OptimizerKind)optimizer;
  out->tp_overlap = (TpOverlap)overlap;
  g_free (out->name);
  out->name = g_strdup (name);
  return TRUE;
}
