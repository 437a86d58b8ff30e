/* Topologies given part by part: what somebody's own tools told (import_topo.h), in JSON. */
#include "read_topo.h"

#define GBPS      1e9
#define MAX_LANES 65536

static const char *const lane_keys[] = {"nvlink", "pci", "smp", "net", NULL};

static gboolean
read_part (const JsonRef *part, TopoDesc *d, GError **error)
{
  static const char *const keys[] = {"kind", "name", "host", NULL};
  const char *name = "";
  gint64 host = 0;
  int kind = 0;
  if (!json_is_object (part))
    return json_fail (part, JSON_ERROR_TYPE, error, "is no part (allowed: {\"kind\": …})");
  if (!json_check_keys (part, keys, error) ||
      !json_get_enum (part, "kind", topo_kind_names, &kind, error) ||
      !json_opt_string (part, "name", &name, error) ||
      !json_opt_int (part, "host", 0, 4095, &host, error))
    return FALSE;
  topo_desc_add (d, (TopoKind)kind, name, (int)host);
  return TRUE;
}

static gboolean
read_link (const JsonRef *link, TopoDesc *d, GError **error)
{
  static const char *const keys[] = {"a", "b", "kind", "lanes", "GBps", NULL};
  gint64 a = 0, b = 0, lanes = 1, last = (gint64)d->vertices->len - 1;
  int kind = 0;
  double GBps = 0;
  if (!json_is_object (link))
    return json_fail (link, JSON_ERROR_TYPE, error, "is no link (allowed: {\"a\": 0, \"b\": 1 …})");
  if (!json_check_keys (link, keys, error) || !json_get_int (link, "a", 0, last, &a, error) ||
      !json_get_int (link, "b", 0, last, &b, error) ||
      !json_get_enum (link, "kind", topo_link_names, &kind, error) ||
      !json_opt_int (link, "lanes", 1, MAX_LANES, &lanes, error) ||
      !json_opt_double (link, "GBps", 1e-6, 1e9, &GBps, error))
    return FALSE;
  topo_desc_link (d, (guint32)a, (guint32)b, (TopoLinkKind)kind, GBps * GBPS, (int)lanes);
  return TRUE;
}

static gboolean
read_list (const JsonRef *obj, const char *key,
           gboolean (*one) (const JsonRef *, TopoDesc *, GError **), TopoDesc *d, GError **error)
{
  JsonRef list;
  if (!json_get_array (obj, key, &list, error))
    return FALSE;
  int n = json_len (&list);
  /* A list of cJSON is walked from its head for every index: by the node's own chain instead. */
  const cJSON *at = list.node->child;
  for (int i = 0; i < n; i++, at = at->next) {
    JsonRef item = {list.doc, at, &list, NULL, i};
    if (!one (&item, d, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
read_lanes (const JsonRef *obj, TopoDesc *d, GPtrArray *prov, GError **error)
{
  JsonRef lanes;
  if (!json_has (obj, "lane_GBps"))
    return TRUE;
  if (!json_get_object (obj, "lane_GBps", &lanes, error) ||
      !json_check_keys (&lanes, lane_keys, error))
    return FALSE;
  for (int k = 0; lane_keys[k] != NULL; k++) {
    double GBps = 0;
    if (!json_has (&lanes, lane_keys[k]))
      continue;
    if (!json_get_sourced (&lanes, lane_keys[k], 1e-6, 1e5, &GBps, prov, error))
      return FALSE;
    topo_desc_default_Bps (d, (TopoLinkKind)k, GBps * GBPS);
  }
  return TRUE;
}

TopoDesc *
read_topo_graph (const JsonRef *obj, const char *name, GPtrArray *prov, GError **error)
{
  static const char *const keys[] = {"source", "parts", "links", "lane_GBps", NULL};
  const char *source = NULL;
  g_autoptr (TopoDesc) d = topo_desc_new (name);
  if (!json_check_keys (obj, keys, error) || !json_get_string (obj, "source", &source, error) ||
      !read_list (obj, "parts", read_part, d, error) ||
      !read_list (obj, "links", read_link, d, error) || !read_lanes (obj, d, prov, error))
    return NULL;
  g_autoptr (GError) why = NULL;
  if (!topo_desc_check (d, &why)) {
    json_fail (obj, JSON_ERROR_INCONSISTENT, error, "%s", why->message);
    return NULL;
  }
  return g_steal_pointer (&d);
}
