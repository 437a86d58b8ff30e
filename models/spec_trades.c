/* What a scenario trades memory or traffic for: adapters, partial recomputation, compressed
 * gradients, offload, rare synchronisation. Names, and the rules between them. */
#include <string.h>

#include "spec.h"

const char *const cp_comm_names[] = {"ring", "all_gather", NULL};
const char *const compression_names[] = {"none", "onebit", "powersgd", NULL};
const char *const outer_names[] = {"average", "nesterov", NULL};
const char *const offload_names[] = {"none", "cpu", "nvme", NULL};

guint
adapter_parse (const char *text)
{
  static const struct {
    const char *name;
    guint bits;
  } known[] = {{"qkv", ADAPT_QKV},
               {"proj", ADAPT_PROJ},
               {"fc1", ADAPT_FC1},
               {"fc2", ADAPT_FC2},
               {"all", ADAPT_QKV | ADAPT_PROJ | ADAPT_FC1 | ADAPT_FC2}};
  g_auto (GStrv) names = g_strsplit_set (text, ",+", -1);
  guint bits = 0;
  for (gsize i = 0; names[i] != NULL; i++) {
    gsize k = 0;
    while (k < G_N_ELEMENTS (known) && strcmp (g_strstrip (names[i]), known[k].name) != 0)
      k++;
    if (k == G_N_ELEMENTS (known))
      return 0;
    bits |= known[k].bits;
  }
  return bits;
}

Recompute
spec_layer_recompute (const Spec *s, gint64 layer)
{
  const TrainSpec *t = &s->train;
  gboolean skipped =
      t->recompute == RECOMPUTE_FULL && t->recompute_every > 1 && layer % t->recompute_every != 0;
  return skipped ? RECOMPUTE_NONE : t->recompute;
}

static gboolean
refuse (const char *key_name, const char *what, const char **key, GError **error)
{
  if (key != NULL)
    *key = key_name;
  g_set_error_literal (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT, what);
  return FALSE;
}

static gboolean
check_adapters (const Spec *s, const char **key, GError **error)
{
  if (s->train.adapter_rank == 0)
    return TRUE;
  if (s->train.adapter_rank >= s->model.hidden)
    return refuse ("train.adapters",
                   "the rank of adapters must be under the hidden size: they would be larger than "
                   "what they adapt",
                   key, error);
  if (s->parallel.compression != COMPRESS_NONE)
    return refuse ("parallel.compression",
                   "the gradients of adapters are small: compression is for whole models "
                   "(allowed: none)",
                   key, error);
  return TRUE;
}

static gboolean
check_compression (const Spec *s, const char **key, GError **error)
{
  const ParallelSpec *p = &s->parallel;
  if (p->compression == COMPRESS_NONE)
    return TRUE;
  if (p->zero_stage > 0 || p->fsdp)
    return refuse ("parallel.compression",
                   "compressed gradients are all-reduced whole, so nothing can be sharded "
                   "(allowed with compression: zero_stage 0)",
                   key, error);
  if (s->model.num_experts > 0)
    return refuse ("parallel.compression",
                   "gradients of experts are not compressed by any framework known to us "
                   "(allowed with experts: none)",
                   key, error);
  return TRUE;
}

static gboolean
check_outer (const Spec *s, const char **key, GError **error)
{
  const OuterSpec *o = &s->parallel.outer;
  if (o->sites <= 1)
    return TRUE;
  g_autofree char *what = NULL;
  if (s->cluster.gpus % (o->sites * s->cluster.gpus_per_node) != 0 &&
      s->cluster.gpus > s->cluster.gpus_per_node)
    what = g_strdup_printf ("%" G_GINT64_FORMAT " sites must have the same number of whole nodes "
                            "(found %" G_GINT64_FORMAT " GPUs in nodes of %" G_GINT64_FORMAT ")",
                            o->sites, s->cluster.gpus, s->cluster.gpus_per_node);
  else if (s->parallel.dp % o->sites != 0)
    what = g_strdup_printf ("dp %" G_GINT64_FORMAT " is not divisible by the %" G_GINT64_FORMAT
                            " sites: each needs replicas of its own",
                            s->parallel.dp, o->sites);
  else if (s->parallel.shard_size > 0 &&
           s->parallel.dp * s->parallel.cp / o->sites % s->parallel.shard_size != 0)
    what = g_strdup ("a shard group must lie within a site");
  else if (o->fragments > o->every_steps)
    what = g_strdup_printf ("%" G_GINT64_FORMAT " fragments are more than the %" G_GINT64_FORMAT
                            " steps between exchanges",
                            o->fragments, o->every_steps);
  else if (o->overlap_steps * o->fragments > o->every_steps)
    what = g_strdup_printf ("fragments x overlap_steps = %" G_GINT64_FORMAT
                            " must fit into the %" G_GINT64_FORMAT " steps between exchanges",
                            o->overlap_steps * o->fragments, o->every_steps);
  return what == NULL || refuse ("parallel.outer", what, key, error);
}

static gboolean
check_offload (const Spec *s, const char **key, GError **error)
{
  const OffloadSpec *o = &s->offload;
  gboolean any = o->optimizer != OFFLOAD_NONE || o->activations > 0;
  if (any && !(o->host.pcie_Bps > 0))
    return refuse ("train.offload", "offload needs a host (allowed: one of scenarios/hosts)", key,
                   error);
  if (o->optimizer != OFFLOAD_NONE && !(o->host.cpu_adam_params_per_s > 0))
    return refuse ("train.offload", "the host states no cpu_adam_params_per_s", key, error);
  if (o->optimizer == OFFLOAD_NVME && !(o->host.nvme_read_Bps > 0 && o->host.nvme_write_Bps > 0))
    return refuse ("train.offload", "the host states no drives (nvme_read_GBps, nvme_write_GBps)",
                   key, error);
  if (o->optimizer != OFFLOAD_NONE && s->parallel.compression != COMPRESS_NONE)
    return refuse ("parallel.compression",
                   "compression works on gradients in the GPU (allowed with an offloaded "
                   "optimizer: none)",
                   key, error);
  return TRUE;
}

gboolean
spec_check_trades (const Spec *s, const char **key, GError **error)
{
  const TrainSpec *t = &s->train;
  if (t->recompute_every > 1 && t->recompute != RECOMPUTE_FULL)
    return refuse ("train.recompute_every",
                   "recompute_every says which layers are recomputed in full (allowed: with "
                   "recompute full)",
                   key, error);
  if (s->parallel.cp_comm == CP_GATHER && s->model.sliding_chunks && s->parallel.cp > 1)
    return refuse ("parallel.cp_comm",
                   "chunked attention exchanges neighbours only (allowed: ring)", key, error);
  return check_adapters (s, key, error) && check_compression (s, key, error) &&
         check_outer (s, key, error) && check_offload (s, key, error);
}
