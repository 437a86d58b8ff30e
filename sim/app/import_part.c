#include "import_part.h"

#include <math.h>
#include <string.h>

#include "json_read.h"
#include "paths.h"
#include "read_topo.h"
#include "text.h"

#define GBPS 1e9

/* What a rule of scenarios/import/nodes.json gave. */
typedef struct {
  char *node, *network, *note; /* NULL: none */
  double nic_GBps;
  JsonDoc *doc;   /* the rules */
  JsonRef lanes;  /* lane_GBps of the rule */
  JsonRef parent; /* of lanes */
} NodeRule;

static void
rule_clear (NodeRule *r)
{
  g_free (r->node);
  g_free (r->network);
  g_free (r->note);
  json_doc_free (r->doc);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (NodeRule, rule_clear)

/* ---- what was given beside the file --------------------------------------------------------- */

const char *
import_given (const char *const *given, const char *name)
{
  gsize n = strlen (name);
  for (gsize i = 0; given != NULL && given[i] != NULL; i++)
    if (strncmp (given[i], name, n) == 0 && given[i][n] == '=')
      return given[i] + n + 1;
  return NULL;
}

gboolean
import_given_check (const char *file, const char *const *given, const char *const *names,
                    GError **error)
{
  for (gsize i = 0; given != NULL && given[i] != NULL; i++) {
    const char *equals = strchr (given[i], '=');
    g_autofree char *name =
        equals != NULL ? g_strndup (given[i], (gsize)(equals - given[i])) : NULL;
    if (name != NULL && g_strv_contains (names, name))
      continue;
    g_autofree char *shown = text_printable (given[i], -1, 60);
    g_autofree char *all = text_list (names, 20);
    return import_fail (error, IMPORT_ERROR_MISSING, file, 0,
                        "what follows the file is not known (found \"%s\"; allowed: NAME=VALUE "
                        "with %s)",
                        shown, all);
  }
  return TRUE;
}

static gboolean
given_number (const char *file, const char *const *given, const char *name, double min, double max,
              double *out, GError **error)
{
  const char *text = import_given (given, name);
  char *end = NULL;
  if (text == NULL)
    return TRUE;
  double v = g_ascii_strtod (text, &end);
  if (end == text || *end != '\0' || !isfinite (v) || v < min || v > max) {
    g_autofree char *shown = text_printable (text, -1, 40);
    return import_fail (error, IMPORT_ERROR_MISSING, file, 0,
                        "%s is no such number (found \"%s\"; allowed: %g to %g)", name, shown, min,
                        max);
  }
  *out = v;
  return TRUE;
}

/* ---- rules ---------------------------------------------------------------------------------- */

/* NVLinks of the GPU that has the most. */
static int
nvlinks_of (const TopoDesc *d)
{
  g_autofree int *n = g_new0 (int, d->vertices->len + 1);
  int most = 0;
  for (guint i = 0; i < d->edges->len; i++) {
    const TopoEdge *e = topo_desc_edge (d, i);
    if (e->kind == TOPO_LINK_NVLINK) {
      n[e->a] += e->lanes;
      n[e->b] += e->lanes;
    }
  }
  for (guint i = 0; i < d->vertices->len; i++)
    if (topo_desc_vertex (d, i)->kind == TOPO_GPU)
      most = MAX (most, n[i]);
  return most;
}

static const char *
scale_up_of (const TopoDesc *d)
{
  if (nvlinks_of (d) == 0)
    return "none";
  return topo_desc_count (d, TOPO_NVSWITCH) > 0 ? "nvswitch" : "mesh";
}

/* TRUE with *fits when the rule is of such a machine. */
static gboolean
rule_fits (const JsonRef *rule, const TopoDesc *d, gboolean *fits, GError **error)
{
  static const char *const keys[] = {"scale_up", "nvlinks",  "sm",        "node", "network",
                                     "note",     "nic_GBps", "lane_GBps", NULL};
  const char *up = NULL;
  gint64 links = 0, sm = 0;
  if (!json_check_keys (rule, keys, error) || !json_get_string (rule, "scale_up", &up, error) ||
      !json_opt_int (rule, "nvlinks", 0, 1000, &links, error) ||
      !json_opt_int (rule, "sm", 0, 999, &sm, error))
    return FALSE;
  *fits = strcmp (up, scale_up_of (d)) == 0 && (links == 0 || links == nvlinks_of (d)) &&
          (sm == 0 || sm == d->sm);
  return TRUE;
}

static gboolean
rule_take (const JsonRef *rule, NodeRule *r, GError **error)
{
  const char *node = NULL, *network = NULL, *note = NULL;
  r->parent = *rule;
  if (!json_opt_string (rule, "node", &node, error) ||
      !json_opt_string (rule, "network", &network, error) ||
      !json_opt_string (rule, "note", &note, error) ||
      !json_get_sourced (rule, "nic_GBps", 1e-3, 1e5, &r->nic_GBps, NULL, error) ||
      !json_get_object (rule, "lane_GBps", &r->lanes, error))
    return FALSE;
  r->lanes.parent = &r->parent;
  r->node = g_strdup (node);
  r->network = g_strdup (network);
  r->note = g_strdup (note);
  return TRUE;
}

static gboolean
rule_find (const TopoDesc *d, NodeRule *r, GError **error)
{
  g_autofree char *path = data_find ("import", "nodes", NULL, error);
  r->doc = path != NULL ? json_doc_load (path, error) : NULL;
  if (r->doc == NULL)
    return FALSE;
  JsonRef root = json_root (r->doc), list, other;
  if (!json_get_array (&root, "nodes", &list, error) ||
      !json_get_object (&root, "other", &other, error))
    return FALSE;
  for (int i = 0; i < json_len (&list); i++) {
    JsonRef rule = json_item (&list, i);
    gboolean fits = FALSE;
    if (!rule_fits (&rule, d, &fits, error))
      return FALSE;
    if (fits)
      return rule_take (&rule, r, error);
  }
  return rule_take (&other, r, error);
}

static void note (GPtrArray *notes, const char *format, ...) G_GNUC_PRINTF (2, 3);
static void
note (GPtrArray *notes, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_ptr_array_add (notes, g_strdup_vprintf (format, args));
  va_end (args);
}

/* What stands in the part itself: where it is from, and what was assumed. */
static void
put_note (JsonWriter *w, const char *source, const GPtrArray *notes)
{
  g_autoptr (GString) all = g_string_new (source);
  for (guint i = 0; i < notes->len; i++)
    g_string_append_printf (all, "; %s", (const char *)g_ptr_array_index (notes, i));
  g_autofree char *shown = text_printable (all->str, -1, 2000);
  jw_string (w, "note", shown);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void
put_number (JsonWriter *w, const char *key, double value, gboolean stated, const char *source)
{
  jw_begin_object (w, key);
  jw_double (w, "value", value);
  jw_string (w, "kind", stated ? "vendor" : "assumed");
  jw_string (w, "source", source);
  jw_end_object (w);
}

static void
put_lanes (JsonWriter *w, const JsonRef *lanes)
{
  jw_begin_object (w, "lane_GBps");
  for (int i = 0; i < json_len (lanes); i++) {
    JsonRef item = json_item (lanes, i);
    const char *kind = "", *source = "";
    double value = 0;
    if (!json_get_double (&item, "value", 0, 1e6, &value, NULL) ||
        !json_get_string (&item, "kind", &kind, NULL) ||
        !json_get_string (&item, "source", &source, NULL))
      continue;
    jw_begin_object (w, item.key);
    jw_double (w, "value", value);
    jw_string (w, "kind", kind);
    jw_string (w, "source", source);
    jw_end_object (w);
  }
  jw_end_object (w);
}

/* The graph without the parts that keep says to leave out (NULL: all). lanes NULL: none. */
static void
put_graph (JsonWriter *w, const TopoDesc *d, const guint8 *keep, const char *source,
           const JsonRef *lanes)
{
  g_autofree int *index = g_new (int, d->vertices->len + 1);
  int n = 0;
  jw_begin_object (w, "graph");
  jw_string (w, "source", source);
  jw_begin_array (w, "parts");
  for (guint i = 0; i < d->vertices->len; i++) {
    const TopoVertex *v = topo_desc_vertex (d, i);
    index[i] = keep == NULL || keep[i] ? n++ : -1;
    if (index[i] < 0)
      continue;
    jw_begin_object (w, NULL);
    jw_string (w, "kind", topo_kind_names[v->kind]);
    if (v->name[0] != '\0')
      jw_string (w, "name", v->name);
    if (v->host > 0)
      jw_int (w, "host", v->host);
    jw_end_object (w);
  }
  jw_end_array (w);
  jw_begin_array (w, "links");
  for (guint i = 0; i < d->edges->len; i++) {
    const TopoEdge *e = topo_desc_edge (d, i);
    if (index[e->a] < 0 || index[e->b] < 0)
      continue;
    jw_begin_object (w, NULL);
    jw_int (w, "a", index[e->a]);
    jw_int (w, "b", index[e->b]);
    jw_string (w, "kind", topo_link_names[e->kind]);
    if (e->lanes != 1)
      jw_int (w, "lanes", e->lanes);
    if (e->Bps > 0)
      jw_double (w, "GBps", e->Bps / GBPS);
    jw_end_object (w);
  }
  jw_end_array (w);
  if (lanes != NULL)
    put_lanes (w, lanes);
  jw_end_object (w);
}

/* ---- NICs that serve GPUs ------------------------------------------------------------------- */

static guint32
root_of (guint32 *up, guint32 i)
{
  while (up[i] != i)
    i = up[i] = up[up[i]];
  return i;
}

/* keep: which parts stay. A NIC behind a PCIe switch of no GPU is for storage or management,
 * unless no NIC is behind one. Returns how many NICs stay. */
static guint
keep_nics (const TopoDesc *d, guint8 *keep)
{
  guint n = d->vertices->len, near = 0;
  g_autofree guint32 *up = g_new (guint32, n + 1);
  g_autofree guint8 *has_gpu = g_malloc0 (n + 1);
  for (guint i = 0; i < n; i++)
    up[i] = i;
  for (guint i = 0; i < d->edges->len; i++) {
    const TopoEdge *e = topo_desc_edge (d, i);
    if (e->kind == TOPO_LINK_PCI && topo_desc_vertex (d, e->a)->kind != TOPO_CPU &&
        topo_desc_vertex (d, e->b)->kind != TOPO_CPU)
      up[root_of (up, e->a)] = root_of (up, e->b);
  }
  for (guint32 i = 0; i < n; i++)
    if (topo_desc_vertex (d, i)->kind == TOPO_GPU)
      has_gpu[root_of (up, i)] = TRUE;
  for (guint32 i = 0; i < n; i++) {
    gboolean nic = topo_desc_vertex (d, i)->kind == TOPO_NIC;
    keep[i] = !nic || has_gpu[root_of (up, i)];
    near += nic && keep[i];
  }
  if (near > 0)
    return near;
  memset (keep, TRUE, n);
  return topo_desc_count (d, TOPO_NIC);
}

static double
fastest_nic_GBps (const TopoDesc *d, const guint8 *keep)
{
  double most = 0;
  for (guint i = 0; i < d->vertices->len; i++)
    if (topo_desc_vertex (d, i)->kind == TOPO_NIC && keep[i])
      most = MAX (most, topo_desc_vertex (d, i)->net_Bps / GBPS);
  return most;
}

/* ---- a node --------------------------------------------------------------------------------- */

typedef struct {
  const TopoDesc *d;
  const char *kind, *name;
  const char *node, *network, *system;
  guint8 *keep;
  double gpus, nics, nic_GBps, nodes;
  gboolean nic_stated;
  const char *source;
  const GPtrArray *notes;
} NodePart;

static void
put_fabric (JsonWriter *w, const NodePart *p, const char *nccl)
{
  jw_int (w, "format", 1);
  jw_string (w, "name", p->name);
  put_note (w, p->source, p->notes);
  jw_string (w, "node", p->node);
  put_number (w, "gpus_per_node", p->gpus, TRUE, p->source);
  if (p->network != NULL && p->nics > 0) {
    jw_string (w, "network", p->network);
    put_number (w, "nics_per_node", p->nics, TRUE, p->source);
    put_number (w, "nic_GBps", p->nic_GBps, p->nic_stated,
                p->nic_stated ? p->source : "usual with this node; the file does not say");
  }
  jw_string (w, "nccl_version", nccl != NULL ? nccl : "2.27.7");
}

/* Keys of a node from numbers, which those of a graph replace when a shipped topology is built on.
 */
static const char *const number_keys[] = {"hosts",
                                          "gpus_per_host",
                                          "numa_per_host",
                                          "pcie_switches_per_host",
                                          "nics_per_host",
                                          "scale_up",
                                          "nvlink_GBps",
                                          "mesh",
                                          "pcie_GBps",
                                          "nic_pcie_GBps",
                                          "pcie_up_GBps",
                                          "smp_GBps",
                                          NULL};

static void
put_topology (JsonWriter *w, const NodePart *p, const JsonRef *lanes)
{
  jw_int (w, "format", 1);
  if (p->system != NULL)
    jw_string (w, "extends", p->system);
  jw_string (w, "name", p->name);
  put_note (w, p->source, p->notes);
  if (p->system == NULL || p->nodes > 0)
    jw_int (w, "nodes", (gint64)MAX (1, p->nodes));
  jw_begin_object (w, "node");
  for (int i = 0; p->system != NULL && number_keys[i] != NULL; i++)
    jw_null (w, number_keys[i]);
  put_graph (w, p->d, p->keep, p->source, lanes);
  jw_end_object (w);
  if (p->system == NULL && p->nics > 0) {
    jw_begin_object (w, "network");
    jw_string (w, "kind", "single-switch");
    put_number (w, "nic_GBps", p->nic_GBps, p->nic_stated, p->source);
    jw_end_object (w);
  }
}

static gboolean
node_part (NodePart *p, const NodeRule *r, const char *const *given, GPtrArray *notes,
           GError **error)
{
  const char *file = p->d->name;
  p->gpus = topo_desc_count (p->d, TOPO_GPU);
  p->nics = keep_nics (p->d, p->keep);
  guint left = topo_desc_count (p->d, TOPO_NIC) - (guint)p->nics;
  p->node = import_given (given, "node") != NULL ? import_given (given, "node") : r->node;
  p->network =
      import_given (given, "network") != NULL ? import_given (given, "network") : r->network;
  p->system = import_given (given, "system");
  double in_file = fastest_nic_GBps (p->d, p->keep), nics = p->nics, rate = in_file;
  p->nic_GBps = in_file > 0 ? in_file : r->nic_GBps;
  if (!given_number (file, given, "nics", 0, 255, &nics, error) ||
      !given_number (file, given, "nic_GBps", 1e-3, 1e5, &rate, error) ||
      !given_number (file, given, "nodes", 1, TOPO_MAX_GPUS, &p->nodes, error))
    return FALSE;
  p->nic_stated = rate > 0;
  p->nic_GBps = rate > 0 ? rate : p->nic_GBps;
  p->nics = nics;
  if (left > 0)
    note (notes, "%u NICs are behind no GPU's PCIe switch and were left out (nics=N to count them)",
          left);
  if (r->note != NULL && import_given (given, "node") == NULL)
    note (notes, "%s", r->note);
  if (p->nics > 0 && !p->nic_stated)
    note (notes, "the rate of a NIC is not in it: %g GB/s taken (nic_GBps=X)", p->nic_GBps);
  if (p->nics < 1)
    note (notes, "no NIC in it: one node only (nics=N network=NAME)");
  return TRUE;
}

gboolean
import_part_node (const TopoDesc *d, const char *kind, const char *const *given, JsonWriter *w,
                  GPtrArray *notes, GError **error)
{
  static const char *const names[] = {"part",     "name",   "node",  "network", "nics",
                                      "nic_GBps", "system", "nodes", "nccl",    NULL};
  g_auto (NodeRule) r = {0};
  const char *part = import_given (given, "part"), *name = import_given (given, "name");
  if (!import_given_check (d->name, given, names, error) || !rule_find (d, &r, error))
    return FALSE;
  const char *node = import_given (given, "node") != NULL ? import_given (given, "node") : r.node;
  gboolean topology = part != NULL ? strcmp (part, "topology") == 0 : node == NULL;
  if (part != NULL && !topology && strcmp (part, "fabric") != 0)
    return import_fail (error, IMPORT_ERROR_MISSING, d->name, 0,
                        "part is not known (found \"%.40s\"; allowed: fabric, topology)", part);
  g_autofree char *base = g_path_get_basename (d->name);
  g_autofree char *source = g_strdup_printf ("%s, %s", kind, base);
  g_autofree guint8 *keep = g_malloc0 (d->vertices->len + 1);
  NodePart p = {.d = d,
                .kind = kind,
                .name = name != NULL ? name : base,
                .keep = keep,
                .source = source,
                .notes = notes};
  for (guint i = 0; i < d->notes->len; i++)
    note (notes, "%s", (const char *)g_ptr_array_index (d->notes, i));
  if (!node_part (&p, &r, given, notes, error))
    return FALSE;
  if (part == NULL && p.node == NULL)
    note (notes,
          "no shipped node is known by such links (%g GPUs, %s): links alone; node=NAME of "
          "scenarios/fabrics/nodes makes it a fabric",
          p.gpus, scale_up_of (d));
  if (!topology && p.node == NULL)
    return import_fail (error, IMPORT_ERROR_REFUSED, d->name, 0,
                        "no shipped node is known by such links (found: %g GPUs, %s, %d NVLinks "
                        "each; allowed: node=NAME of scenarios/fabrics/nodes, or part=topology)",
                        p.gpus, scale_up_of (d), nvlinks_of (d));
  jw_begin_object (w, NULL);
  if (topology)
    put_topology (w, &p, &r.lanes);
  else
    put_fabric (w, &p, import_given (given, "nccl"));
  jw_end_object (w);
  return TRUE;
}

/* ---- a network ------------------------------------------------------------------------------ */

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

gboolean
import_part_network (TopoDesc *d, const char *kind, const char *const *given, JsonWriter *w,
                     GPtrArray *notes, GError **error)
{
  static const char *const names[] = {"name",     "system",           "topology", "names",
                                      "nic_GBps", "oversubscription", "join",     NULL};
  const char *name = import_given (given, "name"), *system = import_given (given, "system");
  double nic_GBps = 0, oversub = 1;
  if (!import_given_check (d->name, given, names, error) ||
      !given_number (d->name, given, "nic_GBps", 1e-3, 1e5, &nic_GBps, error) ||
      !given_number (d->name, given, "oversubscription", 1, 1000, &oversub, error))
    return FALSE;
  for (guint i = 0; i < d->notes->len; i++)
    note (notes, "%s", (const char *)g_ptr_array_index (d->notes, i));
  if (system == NULL) {
    system = "dgx-h100-superpod";
    note (notes, "its nodes are taken from %s (system=NAME of scenarios/topologies)", system);
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
    note (notes, "trees without a common root were joined under one more switch");
  }
  double port = host_port_Bps (d);
  if (port > 0 && !(nic_GBps > 0))
    note (notes, "each of %d NICs of a node of %s hangs on the ports that its host shows",
          base->node.nics, system);
  nic_GBps = nic_GBps > 0 ? nic_GBps : port > 0 ? port / GBPS : base->spec.nic_Bps / GBPS;
  if (d->tree) {
    set_uplinks (d, MAX (1, base->node.nics), oversub);
    note (notes,
          "cables between switches are not in it: as many as the NICs below, over %g "
          "(oversubscription=X)",
          oversub);
  }
  for (guint i = 0; i < d->edges->len; i++) {
    TopoEdge *e = &g_array_index (d->edges, TopoEdge, i);
    if (!(e->Bps > 0))
      e->Bps = nic_GBps * GBPS * e->lanes;
  }
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
  g_autofree char *file = g_path_get_basename (d->name);
  g_autofree char *source = g_strdup_printf ("%s, %s", kind, file);
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
  jw_string (w, "name", name != NULL ? name : file);
  put_note (w, source, notes);
  jw_int (w, "nodes", MAX (1, topo_desc_count (d, TOPO_HOST)));
  jw_begin_object (w, "network");
  jw_string (w, "kind", "graph");
  for (int i = 0; replaced[i] != NULL; i++)
    jw_null (w, replaced[i]);
  put_number (w, "nic_GBps", nic_GBps, FALSE,
              import_given (given, "nic_GBps") != NULL ? "as given" : system);
  put_graph (w, d, NULL, source, NULL);
  jw_end_object (w);
  jw_end_object (w);
  return TRUE;
}
