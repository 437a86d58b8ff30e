#include "fabric.h"
#include "coll_cost.h"

const char *const fabric_tuner_names[] = {"nccl", "aws-ofi", NULL};
const char *const fabric_link_names[] = {"nvlink", "pci", NULL};
const char *const fabric_cpu_names[] = {"intel", "amd", "arm", "power", NULL};

Fabric *
fabric_new (void)
{
  Fabric *f = g_new0 (Fabric, 1);
  f->share2 = f->share4 = 1;
  return f;
}

void
fabric_free (Fabric *f)
{
  if (!f)
    return;
  coll_cache_free (f->cache);
  g_free (f->name);
  g_free (f->node);
  g_free (f->network);
  g_free (f);
}

void
fabric_changed (Fabric *f)
{
  coll_cache_free (f->cache);
  f->cache = NULL;
}

int
nccl_version_parse (const char *text)
{
  gint64 part[3] = {0, 0, 0};
  for (int i = 0; i < 3; i++) {
    char *end = NULL;
    if (!g_ascii_isdigit (*text))
      return 0;
    part[i] = g_ascii_strtoll (text, &end, 10);
    if (part[i] > 99)
      return 0;
    if (*end == '\0')
      return i == 0 ? 0 : (int)(part[0] * 10000 + part[1] * 100 + part[2]);
    if (*end != '.')
      return 0;
    text = end + 1;
  }
  return 0;
}

double
fabric_nics_per_gpu (const Fabric *f)
{
  return MAX (1.0, f->nics / MAX (1, f->domain_gpus));
}

double
fabric_share (const Fabric *f, const CollGroup *g)
{
  return g->ranks_per_node <= 2 ? f->share2 : g->ranks_per_node <= 4 ? f->share4 : 1;
}

double
fabric_alltoall_share (const Fabric *f, const CollGroup *g)
{
  double own = g->ranks_per_node <= 2 ? f->a2a_share2 : g->ranks_per_node <= 4 ? f->a2a_share4 : 0;
  return own > 0 ? own : fabric_share (f, g);
}

double
fabric_group_net_Bps (const Fabric *f, const CollGroup *g)
{
  double own = g->ranks_per_node * fabric_nics_per_gpu (f);
  double share = f->nics / MAX (1, g->sharers);
  return MIN (own, share) * f->nic_Bps;
}
