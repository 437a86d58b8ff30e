#include "read_network.h"
#include "read_topo.h"

#include <string.h>

#define GBPS 1e9

static const char *const network_keys[] = {"topology",
                                           "kind",
                                           "nodes",
                                           "rail_optimised",
                                           "planes",
                                           "uplink_GBps",
                                           "leaf_ports",
                                           "spine_ports",
                                           "pod_leaves",
                                           "core_ports",
                                           "leaf_oversubscription",
                                           "spine_oversubscription",
                                           "routing",
                                           "queue_pairs",
                                           "placement",
                                           "hosts",
                                           "fault",
                                           "neighbour",
                                           NULL};
static const char *const fault_keys[] = {"where", "first", "count", "rate", "up_s", "down_s", NULL};
static const char *const neighbour_keys[] = {"nodes", "op", "load", "placement", NULL};
static const char *const fidelity_keys[] = {"tp", "cp", "ep", "etp", "dp", "edp", "pp", NULL};

/* A file's topology, or one in place. */
static TopoPreset *
load_topology (const JsonRef *at, Spec *s, GError **error)
{
  if (!json_is_string (at)) {
    if (!json_is_object (at)) {
      json_fail (at, JSON_ERROR_TYPE, error,
                 "wrong type (allowed: a name, a path of a .json file, or an object)");
      return NULL;
    }
    return read_topo (at, "in place", s->prov, error);
  }
  g_autofree char *path = scenario_find_file (at, "topologies", error);
  g_autoptr (JsonDoc) doc = path != NULL ? scenario_load_chain (path, "topologies", error) : NULL;
  if (doc == NULL)
    return NULL;
  JsonRef root = json_root (doc);
  g_autofree char *base = g_path_get_basename (path);
  if (g_str_has_suffix (base, ".json"))
    base[strlen (base) - strlen (".json")] = '\0';
  g_ptr_array_add (s->profiles, g_strconcat ("topologies/", base, NULL));
  return read_topo (&root, base, s->prov, error);
}

static gboolean
read_topology (const JsonRef *ref, Spec *s, GError **error)
{
  NetworkSpec *n = &s->network;
  JsonRef at;
  if (!json_has (ref, "topology"))
    return TRUE;
  TopoPreset *p = json_get_any (ref, "topology", &at, error) ? load_topology (&at, s, error) : NULL;
  if (p == NULL)
    return FALSE;
  n->preset = p;
  n->preset_free = (GDestroyNotify)topo_preset_free;
  n->name = g_strdup (p->name);
  n->has_node = TRUE;
  n->node = p->node;
  n->topo = p->spec;
  if (n->topo.net == TOPO_NET_NONE)
    n->topo.net = TOPO_NET_SINGLE;
  return TRUE;
}

static gboolean
read_counts (const JsonRef *ref, NetworkSpec *n, GError **error)
{
  TopoSpec *t = &n->topo;
  struct {
    const char *key;
    int *out;
    gint64 max;
  } const counts[] = {{"planes", &t->planes, 8},
                      {"leaf_ports", &t->leaf_ports, 65536},
                      {"spine_ports", &t->spine_ports, 65536},
                      {"pod_leaves", &t->pod_leaves, 65536},
                      {"core_ports", &t->core_ports, 65536}};
  gint64 nodes = 0, queue_pairs = n->queue_pairs;
  for (guint i = 0; i < G_N_ELEMENTS (counts); i++) {
    gint64 v = *counts[i].out;
    if (!json_opt_int (ref, counts[i].key, 1, counts[i].max, &v, error))
      return FALSE;
    *counts[i].out = (int)v;
  }
  if (!json_opt_int (ref, "nodes", 1, TOPO_MAX_GPUS, &nodes, error) ||
      !json_opt_int (ref, "queue_pairs", 1, 128, &queue_pairs, error))
    return FALSE;
  n->queue_pairs = (guint)queue_pairs;
  n->nodes = (guint32)nodes;
  return TRUE;
}

static gboolean
read_tiers (const JsonRef *ref, NetworkSpec *n, GError **error)
{
  static const char *const kinds[] = {"single-switch", "leaf-spine", "clos3", "dragonfly", NULL};
  TopoSpec *t = &n->topo;
  int kind = (int)t->net - TOPO_NET_SINGLE;
  double up_GBps = t->up_Bps / GBPS;
  JsonRef at;
  if (!json_opt_enum (ref, "kind", kinds, &kind, error) ||
      !json_opt_bool (ref, "rail_optimised", &t->rail_optimised, error) ||
      !json_opt_double (ref, "uplink_GBps", 1e-6, 1e5, &up_GBps, error) ||
      !json_opt_double (ref, "leaf_oversubscription", 1e-3, 1000, &t->leaf_oversub, error) ||
      !json_opt_double (ref, "spine_oversubscription", 1e-3, 1000, &t->spine_oversub, error) ||
      !read_counts (ref, n, error))
    return FALSE;
  t->net = (TopoNetKind)(TOPO_NET_SINGLE + kind);
  t->up_Bps = up_GBps * GBPS;
  if (t->net != TOPO_NET_SINGLE && t->leaf_ports == 0)
    return json_fail (ref, JSON_ERROR_MISSING, error,
                      "leaf_ports is missing (a %s network needs to know how many NIC ports a leaf "
                      "switch takes)",
                      kinds[kind]);
  for (guint i = 0; t->net == TOPO_NET_SINGLE && network_keys[i] != NULL; i++)
    if (strstr (network_keys[i], "oversubscription") != NULL && json_has (ref, network_keys[i]) &&
        json_get_any (ref, network_keys[i], &at, NULL))
      return json_fail (&at, JSON_ERROR_INCONSISTENT, error,
                        "one switch has no oversubscription (allowed: with kind leaf-spine, clos3, "
                        "dragonfly)");
  return TRUE;
}

static gboolean
read_hosts (const JsonRef *ref, NetworkSpec *n, GError **error)
{
  JsonRef list;
  if (json_has (ref, "hosts") != (n->placement == TOPO_PLACE_HOSTS))
    return json_fail (ref, JSON_ERROR_INCONSISTENT, error,
                      "hosts and placement do not agree (allowed: a list of hosts with placement "
                      "hosts)");
  if (n->placement != TOPO_PLACE_HOSTS)
    return TRUE;
  if (!json_get_array (ref, "hosts", &list, error))
    return FALSE;
  g_autoptr (GStrvBuilder) b = g_strv_builder_new ();
  for (int i = 0; i < json_len (&list); i++) {
    JsonRef item = json_item (&list, i);
    const char *name;
    if (!json_value_string (&item, &name, error))
      return FALSE;
    g_strv_builder_add (b, name);
  }
  n->hosts = g_strv_builder_end (b);
  return TRUE;
}

static gboolean
read_fault (const JsonRef *ref, int planes, NetFault *f, GError **error)
{
  JsonRef at;
  int where = NET_FAULT_LEAF;
  gint64 first = 0, count = 1;
  if (!json_has (ref, "fault"))
    return TRUE;
  if (!json_get_object (ref, "fault", &at, error) || !json_check_keys (&at, fault_keys, error) ||
      !json_opt_enum (&at, "where", net_fault_names, &where, error) ||
      !json_opt_int (&at, "first", 0, TOPO_MAX_LINKS, &first, error) ||
      !json_opt_int (&at, "count", 0, 4096, &count, error) ||
      !json_opt_double (&at, "rate", 0, 1, &f->rate, error) ||
      !json_opt_double (&at, "up_s", 1e-4, 1e6, &f->up_s, error) ||
      !json_opt_double (&at, "down_s", 1e-4, 1e6, &f->down_s, error))
    return FALSE;
  f->where = (NetFaultWhere)where;
  f->first = (guint32)first;
  f->count = (guint32)count;
  if (json_has (&at, "up_s") != json_has (&at, "down_s"))
    return json_fail (&at, JSON_ERROR_INCONSISTENT, error,
                      "a flapping link is up and down in turn (found one of up_s and down_s; "
                      "allowed: both)");
  if (f->where == NET_FAULT_NIC && f->count > 0 && !(f->rate > 0) && !(f->down_s > 0) && planes < 2)
    return json_fail (&at, JSON_ERROR_INCONSISTENT, error,
                      "a dead port of a NIC stops the job (allowed: rate above 0, or planes 2)");
  if (f->down_s > 0 && json_has (&at, "rate"))
    return json_fail (&at, JSON_ERROR_INCONSISTENT, error,
                      "rate does not go with up_s and down_s (allowed: a slow or dead link, or one "
                      "that flaps)");
  return TRUE;
}

static gboolean
read_neighbour (const JsonRef *ref, NetNeighbour *b, GError **error)
{
  JsonRef at;
  int op = (int)b->op, placement = TOPO_PLACE_BLOCK;
  gint64 nodes = 0;
  if (!json_has (ref, "neighbour"))
    return TRUE;
  if (!json_get_object (ref, "neighbour", &at, error) ||
      !json_check_keys (&at, neighbour_keys, error) ||
      !json_get_int (&at, "nodes", 0, TOPO_MAX_GPUS, &nodes, error) ||
      !json_opt_enum (&at, "op", coll_op_names, &op, error) ||
      !json_opt_double (&at, "load", 1e-3, 1, &b->load, error) ||
      !json_opt_enum (&at, "placement", topo_place_names, &placement, error))
    return FALSE;
  if (placement != TOPO_PLACE_BLOCK && placement != TOPO_PLACE_SCATTERED)
    return json_fail (&at, JSON_ERROR_RANGE, error,
                      "placement of a neighbour (found %s; allowed: block, scattered)",
                      topo_place_names[placement]);
  b->nodes = (guint32)nodes;
  b->op = (CollOp)op;
  b->placement = (TopoPlaceKind)placement;
  return TRUE;
}

gboolean
read_network (const JsonRef *root, Spec *s, GError **error)
{
  NetworkSpec *n = &s->network;
  JsonRef cluster, ref;
  int routing = (int)n->routing, placement = (int)n->placement;
  if (!json_get_object (root, "cluster", &cluster, error))
    return FALSE;
  if (!json_has (&cluster, "network"))
    return TRUE;
  if (!json_get_object (&cluster, "network", &ref, error) ||
      !json_check_keys (&ref, network_keys, error) || !read_topology (&ref, s, error) ||
      !read_tiers (&ref, n, error) ||
      !json_opt_enum (&ref, "routing", topo_route_names, &routing, error) ||
      !json_opt_enum (&ref, "placement", topo_place_names, &placement, error))
    return FALSE;
  n->given = TRUE;
  n->routing = (TopoRouteMode)routing;
  n->placement = (TopoPlaceKind)placement;
  return read_hosts (&ref, n, error) && read_fault (&ref, n->topo.planes, &n->fault, error) &&
         read_neighbour (&ref, &n->neighbour, error);
}

gboolean
read_fidelity (const JsonRef *run, Spec *s, GError **error)
{
  int all = s->network.given ? FIDELITY_FLOW : FIDELITY_ANALYTIC;
  gboolean has = run != NULL && json_has (run, "fidelity"), said = FALSE;
  JsonRef at;
  if (has && !json_get_any (run, "fidelity", &at, error))
    return FALSE;
  gboolean by_kind = has && json_is_object (&at);
  if (by_kind && !json_check_keys (&at, fidelity_keys, error))
    return FALSE;
  if (has && !by_kind && !json_get_enum (run, "fidelity", fidelity_names, &all, error))
    return FALSE;
  if (by_kind)
    all = FIDELITY_ANALYTIC;
  for (int k = 1; k < SPAN_COUNT; k++) {
    int f = all;
    if (by_kind && !json_opt_enum (&at, span_names[k], fidelity_names, &f, error))
      return FALSE;
    s->run.fidelity[k] = (Fidelity)f;
    said = said || f != FIDELITY_ANALYTIC;
  }
  if (s->network.given && !said)
    scenario_assume (s, "cluster.network counts for nothing: run.fidelity is analytic");
  if (!s->network.given && said)
    scenario_assume (s, "cluster.network is not given: one switch that is no bottleneck");
  return TRUE;
}
