#include "outer.h"

#include "adapter.h"

/* Pseudo-gradients and outer states are 32 bits wide. */
#define WIDE_BYTES 4.0

gboolean
outer_wanted (const Spec *s)
{
  return s->parallel.outer.sites > 1;
}

/* Slow GPUs of one site, numbered as that site numbers its ranks. */
static void
site_hetero (const Spec *s, gint64 site, gint64 gpus, Spec *inner)
{
  HeteroSpec *h = &inner->hetero;
  gint64 first = site * gpus, last = first + gpus - 1;
  h->n_slow = 0;
  for (guint i = 0; i < s->hetero.n_slow; i++) {
    SlowGpus one = s->hetero.slow[i];
    if (one.last < first || one.first > last)
      continue;
    one.first = MAX (one.first, first) - first;
    one.last = MIN (one.last, last) - first;
    h->slow[h->n_slow++] = one;
  }
  if (h->second == NULL)
    return;
  if (h->second_last < first || h->second_first > last)
    h->second = NULL;
  h->second_first = MAX (h->second_first, first) - first;
  h->second_last = MIN (h->second_last, last) - first;
}

void
outer_inner_spec (const Spec *s, gint64 site, Spec *inner)
{
  gint64 sites = s->parallel.outer.sites;
  SlowGpus *room = inner->hetero.slow; /* of the caller: as many as s has */
  *inner = *s;
  inner->hetero.slow = room;
  inner->cluster.gpus /= sites;
  inner->cluster.nodes =
      (inner->cluster.gpus + s->cluster.gpus_per_node - 1) / s->cluster.gpus_per_node;
  inner->parallel.dp /= sites;
  inner->train.global_batch_sequences /= sites;
  inner->run.seed += (guint64)site * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  site_hetero (s, site, inner->cluster.gpus, inner);
}

static double
params (const Spec *s)
{
  return s->train.adapter_rank > 0 ? adapter_params (s) : (double)model_params_total (&s->model);
}

double
outer_exchange_bytes (const Spec *s)
{
  double m = (double)s->parallel.outer.sites;
  return 2.0 * (m - 1.0) / m * params (s) * s->parallel.outer.wire_bytes;
}

double
outer_exchange_s (const Spec *s)
{
  const OuterSpec *o = &s->parallel.outer;
  double fragment = 1.0 / (double)o->fragments, hops = 2.0 * (double)(o->sites - 1);
  if (o->link_Bps > 0)
    return outer_exchange_bytes (s) * fragment / o->link_Bps + hops * o->link_latency_s;
  gint64 gpus = s->cluster.gpus / o->sites, node = MIN (spec_domain_gpus (s), gpus);
  CollGroup g = {(int)o->sites, 1, (int)o->sites, (int)node, {0}};
  double bytes = params (s) * o->wire_bytes * fragment / (double)gpus;
  return coll_time_s (s->fabric, COLL_ALL_REDUCE, &g, bytes, NULL) + hops * o->link_latency_s;
}

double
outer_state_bytes (const Spec *s)
{
  /* the parameters of the last exchange and a momentum of their change; an average needs neither */
  return outer_wanted (s) && s->parallel.outer.optimizer == OUTER_NESTEROV ? 2.0 * WIDE_BYTES : 0.0;
}

double
outer_update_s (const Spec *s)
{
  double part = params (s) / (double)(s->cluster.gpus / s->parallel.outer.sites);
  /* read: parameters, those of the last exchange, momentum; written: all three */
  double passes = s->parallel.outer.optimizer == OUTER_NESTEROV ? 6.0 : 2.0;
  return gpu_memory_s (s->gpu, MEMK_STREAM, part * passes * WIDE_BYTES);
}

void
outer_step_s (const Spec *s, double inner_s, double *exposed, double *update)
{
  const OuterSpec *o = &s->parallel.outer;
  double left = outer_exchange_s (s) - (double)o->overlap_steps * inner_s;
  *exposed = (double)o->fragments * MAX (left, 0.0) / (double)o->every_steps;
  *update = outer_update_s (s) / (double)o->every_steps;
}
