#include "import_part.h"

#include <math.h>
#include <string.h>

#include "import_part_priv.h"
#include "json_read.h"
#include "paths.h"
#include "text.h"

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

gboolean
import_given_number (const char *file, const char *const *given, const char *name, double min,
                     double max, double *out, GError **error)
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

void
import_part_note (GPtrArray *notes, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_ptr_array_add (notes, g_strdup_vprintf (format, args));
  va_end (args);
}

void
import_part_put_note (JsonWriter *w, const char *source, const GPtrArray *notes)
{
  g_autoptr (GString) all = g_string_new (source);
  for (guint i = 0; i < notes->len; i++)
    g_string_append_printf (all, "; %s", (const char *)g_ptr_array_index (notes, i));
  g_autofree char *shown = text_printable (all->str, -1, 2000);
  jw_string (w, "note", shown);
}

/* ---- writing -------------------------------------------------------------------------------- */

void
import_part_put_number (JsonWriter *w, const char *key, double value, gboolean stated,
                        const char *source)
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

void
import_part_put_graph (JsonWriter *w, const TopoDesc *d, const guint8 *keep, const char *source,
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
  import_part_put_note (w, p->source, p->notes);
  jw_string (w, "node", p->node);
  import_part_put_number (w, "gpus_per_node", p->gpus, TRUE, p->source);
  if (p->network != NULL && p->nics > 0) {
    jw_string (w, "network", p->network);
    import_part_put_number (w, "nics_per_node", p->nics, TRUE, p->source);
    import_part_put_number (w, "nic_GBps", p->nic_GBps, p->nic_stated,
                            p->nic_stated ? p->source
                                          : "usual with this node; the file does not say");
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
  import_part_put_note (w, p->source, p->notes);
  if (p->system == NULL || p->nodes > 0)
    jw_int (w, "nodes", (gint64)MAX (1, p->nodes));
  jw_begin_object (w, "node");
  for (int i = 0; p->system != NULL && number_keys[i] != NULL; i++)
    jw_null (w, number_keys[i]);
  import_part_put_graph (w, p->d, p->keep, p->source, lanes);
  jw_end_object (w);
  if (p->system == NULL && p->nics > 0) {
    jw_begin_object (w, "network");
    jw_string (w, "kind", "single-switch");
    import_part_put_number (w, "nic_GBps", p->nic_GBps, p->nic_stated, p->source);
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
  if (!import_given_number (file, given, "nics", 0, 255, &nics, error) ||
      !import_given_number (file, given, "nic_GBps", 1e-3, 1e5, &rate, error) ||
      !import_given_number (file, given, "nodes", 1, TOPO_MAX_GPUS, &p->nodes, error))
    return FALSE;
  p->nic_stated = rate > 0;
  p->nic_GBps = rate > 0 ? rate : p->nic_GBps;
  p->nics = nics;
  if (left > 0)
    import_part_note (
        notes, "%u NICs are behind no GPU's PCIe switch and were left out (nics=N to count them)",
        left);
  if (r->note != NULL && import_given (given, "node") == NULL)
    import_part_note (notes, "%s", r->note);
  if (p->nics > 0 && !p->nic_stated)
    import_part_note (notes, "the rate of a NIC is not in it: %g GB/s taken (nic_GBps=X)",
                      p->nic_GBps);
  if (p->nics < 1)
    import_part_note (notes, "no NIC in it: one node only (nics=N network=NAME)");
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
    import_part_note (notes, "%s", (const char *)g_ptr_array_index (d->notes, i));
  if (!node_part (&p, &r, given, notes, error))
    return FALSE;
  if (part == NULL && p.node == NULL)
    import_part_note (
        notes,
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
