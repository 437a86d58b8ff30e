#include "offload.h"

#include "memory.h"

gboolean
offload_optimizer (const Spec *s)
{
  return s->offload.optimizer != OFFLOAD_NONE;
}

double
offload_gradients_s (const Spec *s, double params)
{
  return params * s->software.dp_reduce_bytes / s->offload.host.pcie_Bps;
}

double
offload_parameters_s (const Spec *s, double params)
{
  return params * s->software.param_bytes / s->offload.host.pcie_Bps;
}

double
offload_update_s (const Spec *s, double params)
{
  const HostSpec *h = &s->offload.host;
  double node = params * (double)MIN (s->cluster.gpus_per_node, s->cluster.gpus);
  double update = node / h->cpu_adam_params_per_s;
  if (s->offload.optimizer != OFFLOAD_NVME)
    return update;
  double bytes = node * s->software.optimizer_state_bytes;
  return MAX (update, bytes / h->nvme_read_Bps + bytes / h->nvme_write_Bps);
}

double
offload_wait_s (const Spec *s, gint64 layer, double total_s)
{
  if (!(s->offload.activations > 0))
    return 0;
  double kept = model_activation_bytes_layer (s, layer, spec_layer_recompute (s, layer));
  return MAX (0.0, s->offload.activations * kept / s->offload.host.pcie_Bps - total_s);
}
