/* Slurm's topology.yaml, by libyaml: a list of topologies, each of one kind. */
#include "import_slurm_priv.h"

#include <string.h>
#include <yaml.h>

typedef struct {
  const char *name;
  yaml_document_t doc;
} Doc;

static guint
line_of (const yaml_node_t *n)
{
  return n ? (guint)n->start_mark.line + 1 : 0;
}

/* Value of a key in a mapping, or NULL. */
static yaml_node_t *
member (Doc *d, const yaml_node_t *map, const char *key)
{
  if (!map || map->type != YAML_MAPPING_NODE)
    return NULL;
  for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top; p++) {
    yaml_node_t *k = yaml_document_get_node (&d->doc, p->key);
    if (k && k->type == YAML_SCALAR_NODE && strcmp ((const char *)k->data.scalar.value, key) == 0)
      return yaml_document_get_node (&d->doc, p->value);
  }
  return NULL;
}

static const char *
scalar (Doc *d, const yaml_node_t *map, const char *key)
{
  yaml_node_t *n = member (d, map, key);
  return n && n->type == YAML_SCALAR_NODE ? (const char *)n->data.scalar.value : NULL;
}

static int
list_len (const yaml_node_t *n)
{
  return n && n->type == YAML_SEQUENCE_NODE
             ? (int)(n->data.sequence.items.top - n->data.sequence.items.start)
             : -1;
}

static yaml_node_t *
item (Doc *d, const yaml_node_t *list, int i)
{
  return yaml_document_get_node (&d->doc, list->data.sequence.items.start[i]);
}

static void
switch_clear (gpointer p)
{
  SlurmSwitch *s = p;
  g_free (s->name);
  g_free (s->children);
  g_free (s->nodes);
}

static TopoDesc *
read_switches (Doc *d, const yaml_node_t *kind, gboolean block, GPtrArray *notes, GError **error)
{
  const char *list_key = block ? "blocks" : "switches", *name_key = block ? "block" : "switch";
  yaml_node_t *list = member (d, kind, list_key);
  int n = list_len (list);
  g_autoptr (GArray) out = g_array_new (FALSE, TRUE, sizeof (SlurmSwitch));
  g_array_set_clear_func (out, switch_clear);
  if (n < 0) {
    import_fail (error, IMPORT_ERROR_MISSING, d->name, line_of (kind), "has no list of %s",
                 list_key);
    return NULL;
  }
  for (int i = 0; i < n; i++) {
    const yaml_node_t *x = item (d, list, i);
    const char *name = scalar (d, x, name_key);
    if (!name || name[0] == '\0') {
      import_fail (error, IMPORT_ERROR_SYNTAX, d->name, line_of (x), "a %s has no name", name_key);
      return NULL;
    }
    SlurmSwitch s = {.name = g_strdup (name),
                     .children = g_strdup (scalar (d, x, "children")),
                     .nodes = g_strdup (scalar (d, x, "nodes")),
                     .line = line_of (x)};
    g_array_append_val (out, s);
  }
  return slurm_to_desc (d->name, out, block, notes, error);
}

/* The topology to take: by name, the default, or the first. */
static yaml_node_t *
choose (Doc *d, const yaml_node_t *root, const char *which, GPtrArray *notes, GError **error)
{
  yaml_node_t *found = NULL;
  int n = list_len (root);
  if (n < 1) {
    import_fail (error, IMPORT_ERROR_MISSING, d->name, line_of (root),
                 "is no list of topologies (allowed: \"- topology: NAME\" items)");
    return NULL;
  }
  g_autoptr (GString) all = g_string_new (NULL);
  for (int i = 0; i < n; i++) {
    yaml_node_t *x = item (d, root, i);
    const char *name = scalar (d, x, "topology"), *def = scalar (d, x, "cluster_default");
    if (!name) {
      import_fail (error, IMPORT_ERROR_SYNTAX, d->name, line_of (x),
                   "an item has no \"topology\" name");
      return NULL;
    }
    if (all->len < 300)
      g_string_append_printf (all, "%s%s", i ? ", " : "", name);
    gboolean is_default = def && g_ascii_strcasecmp (def, "true") == 0;
    if (which ? strcmp (which, name) == 0 : (is_default || (!found && i == n - 1)))
      found = found ? found : x;
  }
  if (!found && !which)
    found = item (d, root, 0);
  if (!found)
    import_fail (error, IMPORT_ERROR_MISSING, d->name, 0,
                 "has no topology of that name (found \"%s\"; allowed: %s)", which, all->str);
  else if (n > 1)
    g_ptr_array_add (notes, g_strdup_printf ("%s of the topologies %s",
                                             scalar (d, found, "topology"), all->str));
  return found;
}

static TopoDesc *
read_doc (Doc *d, const char *which, GError **error)
{
  static const char *const other[] = {"flat", "ring", "torus3d", NULL};
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  yaml_node_t *root = yaml_document_get_root_node (&d->doc);
  yaml_node_t *t = choose (d, root, which, notes, error);
  if (!t)
    return NULL;
  if (member (d, t, "tree"))
    return read_switches (d, member (d, t, "tree"), FALSE, notes, error);
  if (member (d, t, "block"))
    return read_switches (d, member (d, t, "block"), TRUE, notes, error);
  for (int i = 0; other[i]; i++)
    if (member (d, t, other[i])) {
      import_fail (error, IMPORT_ERROR_REFUSED, d->name, line_of (t),
                   "topology %s is %s, which says nothing about switches (allowed: tree, block)",
                   scalar (d, t, "topology"), other[i]);
      return NULL;
    }
  import_fail (error, IMPORT_ERROR_MISSING, d->name, line_of (t),
               "topology %s is of no kind (allowed: tree, block)", scalar (d, t, "topology"));
  return NULL;
}

TopoDesc *
import_slurm_yaml (const char *name, const char *text, gsize len, const char *which, GError **error)
{
  yaml_parser_t parser;
  Doc d = {.name = name};
  TopoDesc *out = NULL;
  if (!yaml_parser_initialize (&parser)) {
    import_fail (error, IMPORT_ERROR_LIMIT, name, 0, "memory is out");
    return NULL;
  }
  yaml_parser_set_input_string (&parser, (const unsigned char *)text, len);
  if (!yaml_parser_load (&parser, &d.doc)) {
    import_fail (error, IMPORT_ERROR_SYNTAX, name, (guint)parser.problem_mark.line + 1,
                 "is not YAML (%s)", parser.problem ? parser.problem : "no reason given");
  } else {
    out = read_doc (&d, which, error);
    yaml_document_delete (&d.doc);
  }
  yaml_parser_delete (&parser);
  return out;
}
