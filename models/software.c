#include "software.h"

#include <string.h>

const char *const tp_overlap_names[] = {"none", "dgrad", "pipelined", NULL};
const char *const optimizer_names[] = {"adam", "sgd", "adam8bit", "lamb", NULL};
const char *const ep_dispatch_names[] = {"plain", "hierarchical", "deepep", NULL};
const char *const fp8_recipe_names[] = {"delayed", "current", "block", NULL};

void
software_init (SoftwareProfile *s)
{
  memset (s, 0, sizeof *s);
  s->compute_scale = s->tp_overlap_slowdown = s->dp_overlap_slowdown = 1.0;
  s->ep_overlap_slowdown = s->ep_nvlink_efficiency = s->ep_net_efficiency = 1.0;
  s->host_graph_share = s->host_arm_factor = 1.0;
  s->moe_imbalance = s->moe_gemm_efficiency = 1.0;
  s->vocab_pad = 1;
  s->activation_passes = s->norm_passes = s->attention_copies = 4.0;
  s->half_bandwidth = s->conv_efficiency = s->norm_collectives = 1.0;
  s->batch_norm_reads = 2.0;
  s->fsdp_prefetch = s->fsdp_unit_layers = s->fsdp_net_efficiency = 1.0;
  s->fsdp_root_held = s->fsdp_barrier = TRUE;
}

void
software_clear (SoftwareProfile *s)
{
  g_clear_pointer (&s->name, g_free);
}
