#include "read_topo.h"
#include "store.h"

#include <math.h>
#include <stddef.h>

#define GBPS 1e9
#define US   1e-6

typedef struct {
  const char *key;
  size_t offset; /* in TopoPreset */
  gboolean whole;
  double unit, min, max;
  gboolean required;
} Field;

#define COUNT(key, field, min, max, required)                                                      \
  {                                                                                                \
    key, offsetof (TopoPreset, field), TRUE, 1, min, max, required                                 \
  }
#define REAL(key, field, unit, min, max, required)                                                 \
  {                                                                                                \
    key, offsetof (TopoPreset, field), FALSE, unit, min, max, required                             \
  }

static const Field node_fields[] = {
    COUNT ("hosts", node.hosts, 1, 4096, FALSE),
    COUNT ("gpus_per_host", node.gpus, 1, 4096, FALSE),
    COUNT ("numa_per_host", node.numa, 1, 64, FALSE),
    COUNT ("pcie_switches_per_host", node.pcie_switches, 0, 256, FALSE),
    COUNT ("nics_per_host", node.nics, 0, 255, FALSE),
    REAL ("nvlink_GBps", node.nvlink_Bps, GBPS, 1e-6, 1e5, FALSE),
    REAL ("pcie_GBps", node.pcie_Bps, GBPS, 1e-6, 1e5, FALSE),
    REAL ("nic_pcie_GBps", node.nic_pcie_Bps, GBPS, 1e-6, 1e5, FALSE),
    REAL ("pcie_up_GBps", node.pcie_up_Bps, GBPS, 1e-6, 1e5, FALSE),
    REAL ("smp_GBps", node.smp_Bps, GBPS, 1e-6, 1e5, FALSE),
    REAL ("link_us", spec.node_latency_s, US, 0, 1e6, FALSE)};

static const Field net_fields[] = {
    COUNT ("planes", spec.planes, 1, 8, FALSE),
    REAL ("nic_GBps", spec.nic_Bps, GBPS, 1e-6, 1e5, TRUE),
    REAL ("uplink_GBps", spec.up_Bps, GBPS, 1e-6, 1e5, FALSE),
    REAL ("efficiency", spec.efficiency, 1, 1e-3, 1, FALSE),
    COUNT ("leaf_ports", spec.leaf_ports, 1, 65536, FALSE),
    COUNT ("spine_ports", spec.spine_ports, 1, 65536, FALSE),
    COUNT ("pod_leaves", spec.pod_leaves, 1, 65536, FALSE),
    COUNT ("core_ports", spec.core_ports, 1, 65536, FALSE),
    REAL ("leaf_oversubscription", spec.leaf_oversub, 1, 1e-3, 1000, FALSE),
    REAL ("spine_oversubscription", spec.spine_oversub, 1, 1e-3, 1000, FALSE),
    REAL ("switch_us", spec.switch_s, US, 0, 1e6, FALSE)};

static gboolean
read_fields (const JsonRef *obj, const Field *f, guint n, TopoPreset *p, GPtrArray *prov,
             GError **error)
{
  for (guint i = 0; i < n; i++) {
    double value = 0;
    JsonRef at;
    if (!f[i].required && !json_has (obj, f[i].key))
      continue;
    if (!json_get_sourced (obj, f[i].key, f[i].min, f[i].max, &value, prov, error) ||
        !json_get_any (obj, f[i].key, &at, error))
      return FALSE;
    if (f[i].whole && value != floor (value))
      return json_fail (&at, JSON_ERROR_RANGE, error,
                        "is not a whole number (found %g; allowed: %g to %g)", value, f[i].min,
                        f[i].max);
    char *where = (char *)p + f[i].offset;
    if (f[i].whole)
      *(int *)(void *)where = (int)value;
    else
      *(double *)(void *)where = value * f[i].unit;
  }
  return TRUE;
}

/* Keys of a table and those beside it. */
static gboolean
check_keys (const JsonRef *obj, const Field *f, guint n, const char *const *more, GError **error)
{
  const char *keys[32];
  guint k = 0;
  for (guint i = 0; i < n; i++)
    keys[k++] = f[i].key;
  for (guint i = 0; more[i]; i++)
    keys[k++] = more[i];
  g_assert (k < G_N_ELEMENTS (keys));
  keys[k] = NULL;
  return json_check_keys (obj, keys, error);
}

/* [[gpu, gpu, lanes], …] */
static gboolean
read_mesh (const JsonRef *node, TopoPreset *p, GError **error)
{
  JsonRef list;
  if (!json_get_array (node, "mesh", &list, error))
    return FALSE;
  for (int i = 0; i < json_len (&list); i++) {
    JsonRef row = json_item (&list, i);
    gint64 v[3];
    if (!json_is_array (&row) || json_len (&row) != 3)
      return json_fail (&row, JSON_ERROR_TYPE, error,
                        "is no mesh link (allowed: [gpu, gpu, lanes])");
    for (int k = 0; k < 3; k++) {
      JsonRef cell = json_item (&row, k);
      if (!json_value_int (&cell, 0, 4095, &v[k], error))
        return FALSE;
    }
    TopoMeshLink m = {(int)v[0], (int)v[1], (int)v[2]};
    g_array_append_val (p->mesh, m);
  }
  p->node.mesh = (const TopoMeshLink *)(const void *)p->mesh->data;
  p->node.n_mesh = (int)p->mesh->len;
  return TRUE;
}

/* Numbers that a node from numbers cannot do without. */
static gboolean
need_numbers (const JsonRef *node, GError **error)
{
  static const char *const needed[] = {"gpus_per_host", "pcie_GBps", NULL};
  JsonRef at;
  for (int i = 0; needed[i] != NULL; i++)
    if (!json_get_any (node, needed[i], &at, error))
      return FALSE;
  return TRUE;
}

static gboolean
read_node_graph (const JsonRef *node, TopoPreset *p, GPtrArray *prov, GError **error)
{
  static const char *const keys[] = {"graph", "link_us", NULL};
  JsonRef graph;
  if (!json_check_keys (node, keys, error) || !json_get_object (node, "graph", &graph, error) ||
      !read_fields (node, &node_fields[G_N_ELEMENTS (node_fields) - 1], 1, p, prov, error))
    return FALSE;
  p->graph = read_topo_graph (&graph, p->name, prov, error);
  return p->graph != NULL;
}

static gboolean
read_node (const JsonRef *root, TopoPreset *p, GPtrArray *prov, GError **error)
{
  static const char *const ups[] = {"none", "mesh", "nvswitch", NULL};
  static const char *const more[] = {"scale_up", "mesh", NULL};
  JsonRef node;
  int up = TOPO_UP_NONE;
  if (!json_get_object (root, "node", &node, error))
    return FALSE;
  if (json_has (&node, "graph"))
    return read_node_graph (&node, p, prov, error);
  if (!need_numbers (&node, error) ||
      !check_keys (&node, node_fields, G_N_ELEMENTS (node_fields), more, error) ||
      !json_opt_enum (&node, "scale_up", ups, &up, error) ||
      !read_fields (&node, node_fields, G_N_ELEMENTS (node_fields), p, prov, error))
    return FALSE;
  p->node.scale_up = (TopoScaleUp)up;
  if (up != TOPO_UP_NONE && !(p->node.nvlink_Bps > 0))
    return json_fail (&node, JSON_ERROR_MISSING, error,
                      "nvlink_GBps is missing (allowed: above 0 with scale_up)");
  if ((up == TOPO_UP_MESH) != json_has (&node, "mesh"))
    return json_fail (&node, JSON_ERROR_INCONSISTENT, error,
                      "mesh and scale_up do not agree (allowed: both mesh, or neither)");
  return up != TOPO_UP_MESH || read_mesh (&node, p, error);
}

static gboolean
read_network (const JsonRef *root, TopoPreset *p, GPtrArray *prov, GError **error)
{
  static const char *const kinds[] = {"single-switch", "leaf-spine", "clos3",
                                      "dragonfly",     "graph",      NULL};
  static const char *const more[] = {"kind", "rail_optimised", "graph", NULL};
  JsonRef net, graph;
  int kind = 0;
  p->spec.net = TOPO_NET_NONE;
  if (!json_has (root, "network"))
    return TRUE;
  if (!json_get_object (root, "network", &net, error) ||
      !check_keys (&net, net_fields, G_N_ELEMENTS (net_fields), more, error) ||
      !json_get_enum (&net, "kind", kinds, &kind, error) ||
      !json_opt_bool (&net, "rail_optimised", &p->spec.rail_optimised, error) ||
      !read_fields (&net, net_fields, G_N_ELEMENTS (net_fields), p, prov, error))
    return FALSE;
  p->spec.net = (TopoNetKind)(TOPO_NET_SINGLE + kind);
  if ((p->spec.net == TOPO_NET_DESC) != json_has (&net, "graph"))
    return json_fail (&net, JSON_ERROR_INCONSISTENT, error,
                      "kind and graph do not agree (allowed: kind graph with a graph)");
  if (p->spec.net != TOPO_NET_DESC)
    return TRUE;
  if (!json_get_object (&net, "graph", &graph, error))
    return FALSE;
  p->net = read_topo_graph (&graph, p->name, prov, error);
  return p->net != NULL;
}

static gboolean
read_all (const JsonRef *root, TopoPreset *p, GPtrArray *prov, GError **error)
{
  static const char *const keys[] = {"format", "name", "note", "nodes", "node", "network", NULL};
  const char *text = NULL;
  gint64 format = 1, nodes = 1;
  if (!json_check_keys (root, keys, error) ||
      !json_opt_int (root, "format", 1, 1, &format, error) ||
      !json_opt_string (root, "note", &text, error))
    return FALSE;
  text = NULL;
  if (!json_opt_string (root, "name", &text, error) ||
      !json_opt_int (root, "nodes", 1, TOPO_MAX_GPUS, &nodes, error))
    return FALSE;
  if (text) {
    g_free (p->name);
    p->name = g_strdup (text);
  }
  p->spec.nodes = (guint32)nodes;
  return read_node (root, p, prov, error) && read_network (root, p, prov, error);
}

TopoPreset *
read_topo (const JsonRef *root, const char *name, GPtrArray *prov, GError **error)
{
  g_autoptr (TopoPreset) p = g_new0 (TopoPreset, 1);
  p->name = g_strdup (name ? name : "");
  p->mesh = g_array_new (FALSE, FALSE, sizeof (TopoMeshLink));
  if (!read_all (root, p, prov, error))
    return NULL;
  p->node.name = p->name;
  return g_steal_pointer (&p);
}

void
topo_preset_free (TopoPreset *p)
{
  if (!p)
    return;
  g_free (p->name);
  g_array_unref (p->mesh);
  topo_desc_free (p->graph);
  topo_desc_free (p->net);
  g_free (p);
}

TopoPreset *
topo_preset_load (const char *name, const char *from, GPtrArray *prov, GError **error)
{
  g_autoptr (JsonDoc) doc = store_document ("topologies", name, from, error);
  if (doc == NULL)
    return NULL;
  JsonRef root = json_root (doc);
  return read_topo (&root, name, prov, error);
}

/* Nodes of a network that was given host by host. */
static gboolean
nodes_of_net (const TopoPreset *p, const TopoDesc *node, guint32 asked, TopoSpec *s, GError **error)
{
  guint32 hosts = topo_desc_count (p->net, TOPO_HOST), per = 1;
  for (guint32 i = 0; i < node->vertices->len; i++)
    per = MAX (per, (guint32)MAX (0, topo_desc_vertex (node, i)->host) + 1);
  s->net_desc = p->net;
  s->nodes = hosts / per;
  if (hosts % per == 0 && hosts > 0 && (asked == 0 || asked <= s->nodes))
    return TRUE;
  g_set_error (error, TOPO_ERROR, TOPO_ERROR_RANGE,
               "%s: the network has %u hosts, %u to a node (found: %u nodes asked for; allowed: up "
               "to %u)",
               p->name, hosts, per, asked, s->nodes);
  return FALSE;
}

Topo *
topo_preset_build (const TopoPreset *p, guint32 nodes, GError **error)
{
  TopoSpec s = p->spec;
  g_autoptr (TopoDesc) d = p->graph == NULL ? topo_node_build (&p->node, error) : NULL;
  if (d == NULL && p->graph == NULL)
    return NULL;
  s.node = d != NULL ? d : p->graph;
  s.nodes = nodes > 0 ? nodes : s.nodes;
  if (p->net != NULL && !nodes_of_net (p, s.node, nodes, &s, error))
    return NULL;
  if (s.nodes == 1 && s.nic_Bps <= 0)
    s.net = TOPO_NET_NONE;
  return topo_new (&s, error);
}
