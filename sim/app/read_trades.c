#include "read_trades.h"

#include "paths.h"
#include "scenario_priv.h"

#include <string.h>

/* ---- train ---- */

static gboolean
read_adapters (const JsonRef *train, TrainSpec *t, GError **error)
{
  static const char *const keys[] = {"rank", "targets", NULL};
  JsonRef ref, at;
  const char *targets = "all";
  t->adapter_rank = 0;
  if (!json_has (train, "adapters"))
    return TRUE;
  if (!json_get_object (train, "adapters", &ref, error) || !json_check_keys (&ref, keys, error) ||
      !json_get_int (&ref, "rank", 1, 65536, &t->adapter_rank, error) ||
      !json_opt_string (&ref, "targets", &targets, error))
    return FALSE;
  t->adapter_targets = adapter_parse (targets);
  if (t->adapter_targets != 0)
    return TRUE;
  json_get_any (&ref, "targets", &at, NULL);
  return json_fail (&at, JSON_ERROR_RANGE, error,
                    "unknown target (found \"%s\"; allowed: qkv, proj, fc1, fc2, all)", targets);
}

/* A profile of scenarios/hosts, by name, path or in place. */
static gboolean
read_host (const JsonRef *offload, Spec *s, GError **error)
{
  static const char *const keys[] = {"format",
                                     "name",
                                     "extends",
                                     "why",
                                     "note",
                                     "pcie_GBps",
                                     "cpu_adam_Gparams_per_s",
                                     "nvme_read_GBps",
                                     "nvme_write_GBps",
                                     "memory_GiB",
                                     NULL};
  HostSpec *h = &s->offload.host;
  JsonRef ref;
  g_autoptr (JsonDoc) file = NULL;
  const char *name = "unnamed";
  if (!json_has (offload, "host") || !json_get_any (offload, "host", &ref, error))
    return !json_has (offload, "host");
  if (json_is_string (&ref)) {
    g_autofree char *path = scenario_find_file (&ref, "hosts", error);
    file = path != NULL ? scenario_load_chain (path, "hosts", error) : NULL;
    if (file == NULL)
      return FALSE;
    ref = json_root (file);
  }
  if (!json_check_keys (&ref, keys, error) || !json_opt_string (&ref, "name", &name, error) ||
      !json_get_sourced (&ref, "pcie_GBps", 1e-3, 1e5, &h->pcie_Bps, s->prov, error) ||
      !json_opt_sourced (&ref, "cpu_adam_Gparams_per_s", 1e-6, 1e4, &h->cpu_adam_params_per_s,
                         s->prov, error) ||
      !json_opt_sourced (&ref, "nvme_read_GBps", 1e-3, 1e5, &h->nvme_read_Bps, s->prov, error) ||
      !json_opt_sourced (&ref, "nvme_write_GBps", 1e-3, 1e5, &h->nvme_write_Bps, s->prov, error) ||
      !json_opt_sourced (&ref, "memory_GiB", 1, 1e7, &h->memory_bytes, s->prov, error))
    return FALSE;
  h->pcie_Bps *= 1e9;
  h->cpu_adam_params_per_s *= 1e9;
  h->nvme_read_Bps *= 1e9;
  h->nvme_write_Bps *= 1e9;
  h->memory_bytes *= 1024.0 * 1024.0 * 1024.0;
  g_ptr_array_add (s->profiles, g_strconcat ("hosts/", name, NULL));
  return TRUE;
}

static gboolean
read_offload (const JsonRef *train, Spec *s, GError **error)
{
  static const char *const keys[] = {"optimizer", "delayed", "activations", "host", NULL};
  OffloadSpec *o = &s->offload;
  JsonRef ref;
  int to = OFFLOAD_NONE;
  if (!json_has (train, "offload"))
    return TRUE;
  if (!json_get_object (train, "offload", &ref, error) || !json_check_keys (&ref, keys, error) ||
      !json_opt_enum (&ref, "optimizer", offload_names, &to, error) ||
      !json_opt_bool (&ref, "delayed", &o->delayed, error) ||
      !json_opt_double (&ref, "activations", 0, 1, &o->activations, error))
    return FALSE;
  o->optimizer = (OffloadTo)to;
  return read_host (&ref, s, error);
}

gboolean
read_train_trades (const JsonRef *train, Spec *s, GError **error)
{
  return read_adapters (train, &s->train, error) && read_offload (train, s, error);
}

/* ---- parallel ---- */

static gboolean
read_compression (const JsonRef *parallel, ParallelSpec *p, GError **error)
{
  static const char *const keys[] = {"method", "rank", NULL};
  JsonRef ref;
  int method = COMPRESS_NONE;
  p->compression = COMPRESS_NONE;
  if (!json_has (parallel, "compression"))
    return TRUE;
  if (!json_get_object (parallel, "compression", &ref, error) ||
      !json_check_keys (&ref, keys, error) ||
      !json_get_enum (&ref, "method", compression_names, &method, error))
    return FALSE;
  p->compression = (Compression)method;
  p->compression_rank = 0;
  return method == COMPRESS_POWERSGD
             ? json_get_int (&ref, "rank", 1, 65536, &p->compression_rank, error)
             : json_opt_int (&ref, "rank", 1, 65536, &p->compression_rank, error);
}

static gboolean
read_outer (const JsonRef *parallel, OuterSpec *o, GError **error)
{
  static const char *const keys[] = {"sites",      "every_steps",   "optimizer",
                                     "wire_bytes", "link_Gbps",     "link_latency_s",
                                     "fragments",  "overlap_steps", NULL};
  JsonRef ref;
  int optimizer = OUTER_NESTEROV;
  double link = 0;
  *o = (OuterSpec){.wire_bytes = 4, .fragments = 1};
  if (!json_has (parallel, "outer"))
    return TRUE;
  if (!json_get_object (parallel, "outer", &ref, error) || !json_check_keys (&ref, keys, error) ||
      !json_get_int (&ref, "sites", 1, 1000000, &o->sites, error) ||
      !json_get_int (&ref, "every_steps", 1, 1000000000, &o->every_steps, error) ||
      !json_opt_enum (&ref, "optimizer", outer_names, &optimizer, error) ||
      !json_opt_double (&ref, "wire_bytes", 0.01, 16, &o->wire_bytes, error) ||
      !json_opt_double (&ref, "link_Gbps", 1e-6, 1e7, &link, error) ||
      !json_opt_double (&ref, "link_latency_s", 0, 1e3, &o->link_latency_s, error) ||
      !json_opt_int (&ref, "fragments", 1, 1000000, &o->fragments, error) ||
      !json_opt_int (&ref, "overlap_steps", 0, 1000000, &o->overlap_steps, error))
    return FALSE;
  o->optimizer = (OuterOptimizer)optimizer;
  o->link_Bps = link * 1e9 / 8.0;
  return TRUE;
}

gboolean
read_parallel_trades (const JsonRef *parallel, ParallelSpec *p, GError **error)
{
  int comm = CP_RING;
  if (!json_opt_enum (parallel, "cp_comm", cp_comm_names, &comm, error))
    return FALSE;
  p->cp_comm = (CpComm)comm;
  return read_compression (parallel, p, error) && read_outer (parallel, &p->outer, error);
}
