/* A network that was read, as a topology preset of that network. */
#include <math.h>
#include <string.h>

#include "import_part_priv.h"
#include "read_topo.h"

/* Cables that a reader could not know the number of (Slurm names no spines): as many as there are
 * hosts below, divided by the oversubscription. below: hosts under each switch, by a walk from the
 * hosts upwards along the links of a tree. */
static void
set_uplinks (TopoDesc *d, double nics, double oversub)
{
  guint n = d->vertices->len;
  g_autofree guint32 *below = g_new0 (guint32, n + 1), *degree = g_new0 (guint32, n + 1);
  g_autofree guint8 *done = g_malloc0 (n + 1);
  g_autoptr (GArray) todo = g_array_new (FALSE, FALSE, sizeof (guint32));
  for (guint i = 0; i < d->edges->len; i++) {
    degree[topo_desc_edge (d, i)->a]++;
    degree[topo_desc_edge (d, i)->b]++;
  }
  g_autofree guint32 *first = g_new0 (guint32, n + 2),
                     *edge = g_new (guint32, 2 * d->edges->len + 1);
  for (guint i = 0; i < n; i++)
    first[i + 1] = first[i] + degree[i];
  g_autofree guint32 *fill = g_memdup2 (first, (n + 1) * sizeof (guint32));
  for (guint32 i = 0; i < d->edges->len; i++) {
    edge[fill[topo_desc_edge (d, i)->a]++] = i;
    edge[fill[topo_desc_edge (d, i)->b]++] = i;
  }
  for (guint32 i = 0; i < n; i++) {
    below[i] = topo_desc_vertex (d, i)->kind == TOPO_HOST;
    if (degree[i] == 1)
      g_array_append_val (todo, i);
  }
  for (guint at = 0; at < todo->len; at++) {
    guint32 v = g_array_index (todo, guint32, at);
    done[v] = TRUE;
    for (guint32 k = first[v]; k < first[v + 1]; k++) {
      TopoEdge *e = &g_array_index (d->edges, TopoEdge, edge[k]);
      guint32 other = e->a == v ? e->b : e->a;
      if (done[other])
        continue;
      double lanes = MAX (1, ceil (below[v] * nics / oversub - 1e-9));
      e->lanes = topo_desc_vertex (d, v)->kind == TOPO_HOST ? 1 : (int)MIN (lanes, 65536);
      below[other] += below[v];
      if (--degree[other] == 1)
        g_array_append_val (todo, other);
    }
  }
}

/* Rate of the fastest port of a host that is stated, bytes/s; 0: none is. */
static double
host_port_Bps (const TopoDesc *d)
{
  double most = 0;
  for (guint i = 0; i < d->edges->len; i++) {
    const TopoEdge *e = topo_desc_edge (d, i);
    if (topo_desc_vertex (d, e->a)->kind == TOPO_HOST ||
        topo_desc_vertex (d, e->b)->kind == TOPO_HOST)
      most = MAX (most, e->Bps / e->lanes);
  }
  return most;
}

static gboolean
one_network (const TopoDesc *d, GError **error)
{
  g_autoptr (GError) why = NULL;
  if (topo_desc_count (d, TOPO_HOST) == 0)
    return import_fail (error, IMPORT_ERROR_REFUSED, d->name, 0,
                        "no host is in it (allowed: switches with hosts below)");
  if (!topo_desc_check (d, &why))
    return import_fail (
        error, IMPORT_ERROR_REFUSED, d->name, 0,
        "its hosts are in no one network, so no job runs across it (%s; join=NAME puts "
        "a switch of that name above)",
        strstr (why->message, "no links") != NULL ? strstr (why->message, "no links")
                                                  : why->message);
  return TRUE;
}

/* A system as this one is, with this network. given: the rate of a NIC was. */
static void
write_network (const TopoDesc *d, JsonWriter *w, const char *system, const char *name,
               const char *source, double nic_GBps, gboolean given, const GPtrArray *notes)
{
  static const char *const replaced[] = {"rail_optimised",
                                         "planes",
                                         "uplink_GBps",
                                         "leaf_ports",
                                         "spine_ports",
                                         "pod_leaves",
                                         "core_ports",
                                         "leaf_oversubscription",
                                         "spine_oversubscription",
                                         NULL};
  jw_begin_object (w, NULL);
  jw_int (w, "format", 1);
  jw_string (w, "extends", system);
  jw_string (w, "name", name);
  import_part_put_note (w, source, notes);
  jw_int (w, "nodes", MAX (1, topo_desc_count (d, TOPO_HOST)));
  jw_begin_object (w, "network");
  jw_string (w, "kind", "graph");
  for (int i = 0; replaced[i] != NULL; i++)
    jw_null (w, replaced[i]);
  import_part_put_number (w, "nic_GBps", nic_GBps, FALSE, given ? "as given" : system);
  import_part_put_graph (w, d, NULL, source, NULL);
  jw_end_object (w);
  jw_end_object (w);
}

gboolean
import_part_network (TopoDesc *d, const char *kind, const char *const *given, JsonWriter *w,
                     GPtrArray *notes, GError **error)
{
  static const char *const names[] = {"name",     "system",           "topology", "names",
                                      "nic_GBps", "oversubscription", "join",     NULL};
  const char *name = import_given (given, "name"), *system = import_given (given, "system");
  double nic_GBps = 0, oversub = 1;
  if (!import_given_check (d->name, given, names, error) ||
      !import_given_number (d->name, given, "nic_GBps", 1e-3, 1e5, &nic_GBps, error) ||
      !import_given_number (d->name, given, "oversubscription", 1, 1000, &oversub, error))
    return FALSE;
  for (guint i = 0; i < d->notes->len; i++)
    import_part_note (notes, "%s", (const char *)g_ptr_array_index (d->notes, i));
  if (system == NULL) {
    system = "dgx-h100-superpod";
    import_part_note (notes, "its nodes are taken from %s (system=NAME of scenarios/topologies)",
                      system);
  }
  g_autoptr (TopoPreset) base = topo_preset_load (system, NULL, NULL, error);
  if (base == NULL)
    return FALSE;
  if (base->node.hosts > 1)
    return import_fail (
        error, IMPORT_ERROR_REFUSED, d->name, 0,
        "a host of it is a tray of %s's rack, and which trays make a rack is not in "
        "the file (allowed: a system of one host a node)",
        system);
  if (import_given (given, "join") != NULL) {
    topo_desc_join (d, import_given (given, "join"));
    import_part_note (notes, "trees without a common root were joined under one more switch");
  }
  double port = host_port_Bps (d);
  if (port > 0 && !(nic_GBps > 0))
    import_part_note (notes,
                      "each of %d NICs of a node of %s hangs on the ports that its host shows",
                      base->node.nics, system);
  nic_GBps = nic_GBps > 0 ? nic_GBps : port > 0 ? port / GBPS : base->spec.nic_Bps / GBPS;
  if (d->tree) {
    set_uplinks (d, MAX (1, base->node.nics), oversub);
    import_part_note (notes,
                      "cables between switches are not in it: as many as the NICs below, over %g "
                      "(oversubscription=X)",
                      oversub);
  }
  for (guint i = 0; i < d->edges->len; i++) {
    TopoEdge *e = &g_array_index (d->edges, TopoEdge, i);
    if (!(e->Bps > 0))
      e->Bps = nic_GBps * GBPS * e->lanes;
  }
  if (!one_network (d, error))
    return FALSE;
  g_autofree char *file = g_path_get_basename (d->name);
  g_autofree char *source = g_strdup_printf ("%s, %s", kind, file);
  write_network (d, w, system, name != NULL ? name : file, source, nic_GBps,
                 import_given (given, "nic_GBps") != NULL, notes);
  return TRUE;
}
