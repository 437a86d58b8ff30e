/* Slurm's topology.conf: lines of Key=Value. topology.yaml: import_slurm_yaml.c. */
#include "import_slurm_priv.h"

#include <string.h>

typedef struct {
  const char *name;
  TopoDesc *d;
  GHashTable *sw, *host; /* name → vertex + 1 */
} Maker;

static guint32
look_up (GHashTable *t, const char *name)
{
  return GPOINTER_TO_UINT (g_hash_table_lookup (t, name)); /* 0: not there */
}

static gboolean
add_nodes (Maker *m, const SlurmSwitch *s, guint32 vertex, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  if (s->nodes && !import_hostlist (m->name, s->line, s->nodes, names, error))
    return FALSE;
  for (guint i = 0; i < names->len; i++) {
    const char *host = g_ptr_array_index (names, i);
    guint32 v = look_up (m->host, host);
    if (v == 0) {
      if (g_hash_table_size (m->host) >= IMPORT_MAX_HOSTS)
        return import_fail (error, IMPORT_ERROR_LIMIT, m->name, s->line, "more than %d nodes",
                            IMPORT_MAX_HOSTS);
      v = topo_desc_add (m->d, TOPO_HOST, host, 0) + 1;
      g_hash_table_insert (m->host, g_strdup (host), GUINT_TO_POINTER (v));
    } else {
      return import_fail (error, IMPORT_ERROR_SYNTAX, m->name, s->line,
                          "host %s is below two switches, or two hosts have that name", host);
    }
    topo_desc_link (m->d, v - 1, vertex, TOPO_LINK_NET, 0, 1);
  }
  return TRUE;
}

static gboolean
add_children (Maker *m, const SlurmSwitch *s, guint32 vertex, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  if (s->children && !import_hostlist (m->name, s->line, s->children, names, error))
    return FALSE;
  for (guint i = 0; i < names->len; i++) {
    guint32 v = look_up (m->sw, g_ptr_array_index (names, i));
    if (v == 0)
      return import_fail (error, IMPORT_ERROR_MISSING, m->name, s->line,
                          "switch %s has a child %s that is described nowhere", s->name,
                          (const char *)g_ptr_array_index (names, i));
    if (v - 1 == vertex)
      return import_fail (error, IMPORT_ERROR_SYNTAX, m->name, s->line,
                          "switch %s is its own child", s->name);
    topo_desc_link (m->d, v - 1, vertex, TOPO_LINK_NET, 0, 1);
  }
  return TRUE;
}

/* How many pieces the switches form. */
static guint
count_trees (const TopoDesc *d)
{
  guint n = d->vertices->len, pieces = n;
  g_autofree guint32 *up = g_new (guint32, n + 1);
  for (guint i = 0; i < n; i++)
    up[i] = i;
  for (guint i = 0; i < d->edges->len; i++) {
    guint32 a = topo_desc_edge (d, i)->a, b = topo_desc_edge (d, i)->b;
    while (up[a] != a)
      a = up[a] = up[up[a]];
    while (up[b] != b)
      b = up[b] = up[up[b]];
    pieces -= a != b;
    up[a] = b;
  }
  return pieces;
}

TopoDesc *
slurm_to_desc (const char *name, const GArray *switches, gboolean block, GPtrArray *notes,
               GError **error)
{
  g_autoptr (TopoDesc) d = topo_desc_new (name);
  g_autoptr (GHashTable) sw = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GHashTable) host = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  Maker m = {.name = name, .d = d, .sw = sw, .host = host};
  d->tree = TRUE;
  if (switches->len == 0) {
    import_fail (error, IMPORT_ERROR_MISSING, name, 0,
                 "has no switch and no block (allowed: SwitchName= or BlockName= lines, or a "
                 "topology.yaml)");
    return NULL;
  }
  for (guint i = 0; i < switches->len; i++) {
    const SlurmSwitch *s = &g_array_index (switches, SlurmSwitch, i);
    if (look_up (sw, s->name)) {
      import_fail (error, IMPORT_ERROR_SYNTAX, name, s->line, "%s %s is described twice",
                   block ? "block" : "switch", s->name);
      return NULL;
    }
    guint32 v = topo_desc_add (d, TOPO_SWITCH, s->name, 0);
    g_hash_table_insert (sw, g_strdup (s->name), GUINT_TO_POINTER (v + 1));
  }
  for (guint i = 0; i < switches->len; i++) {
    const SlurmSwitch *s = &g_array_index (switches, SlurmSwitch, i);
    if (!add_nodes (&m, s, i, error) || !add_children (&m, s, i, error))
      return NULL;
  }
  guint pieces = count_trees (d);
  if (pieces > 1)
    topo_desc_note (d,
                    block ? "%u blocks; what joins them is not in it: taken as one more switch"
                          : "%u trees without a common root",
                    pieces);
  if (block)
    topo_desc_join (d, "above the blocks");
  topo_desc_note (d, "speeds are not in it");
  for (guint i = 0; i < notes->len; i++)
    topo_desc_note (d, "%s", (const char *)g_ptr_array_index (notes, i));
  return topo_desc_check_shape (d, FALSE, error) ? g_steal_pointer (&d) : NULL;
}

/* ---- topology.conf -----------------------------------------------------------------------------
 */

typedef struct {
  const char *name;
  GArray *list;
  gboolean block, any;
  GPtrArray *notes;
} Conf;

/* One line: words of Key=Value, keys in any case. */
static gboolean
read_conf_line (Conf *c, const char *text, guint line, GError **error)
{
  SlurmSwitch s = {.line = line};
  gboolean ok = TRUE, block = FALSE;
  g_auto (GStrv) word = import_words (text);
  for (guint i = 0; ok && word[i]; i++) {
    char *eq = strchr (word[i], '=');
    if (!eq) {
      ok = import_fail (error, IMPORT_ERROR_SYNTAX, c->name, line,
                        "is no Key=Value (found \"%s\"; allowed: SwitchName, Switches, Nodes, "
                        "LinkSpeed, BlockName, BlockSizes)",
                        word[i]);
      break;
    }
    *eq = '\0';
    const char *key = word[i], *value = eq + 1;
    char **into = NULL;
    if (g_ascii_strcasecmp (key, "SwitchName") == 0)
      into = &s.name;
    else if (g_ascii_strcasecmp (key, "Switches") == 0)
      into = &s.children;
    else if (g_ascii_strcasecmp (key, "Nodes") == 0)
      into = &s.nodes;
    else if (g_ascii_strcasecmp (key, "BlockName") == 0) {
      into = &s.name;
      block = TRUE;
    } else if (g_ascii_strcasecmp (key, "BlockSizes") == 0)
      g_ptr_array_add (c->notes, g_strdup_printf ("block sizes %s", value));
    else if (g_ascii_strcasecmp (key, "LinkSpeed") == 0)
      g_ptr_array_add (c->notes, g_strdup ("LinkSpeed has no unit in Slurm and is left out"));
    else
      ok = import_fail (
          error, IMPORT_ERROR_SYNTAX, c->name, line,
          "unknown key %s (allowed: SwitchName, Switches, Nodes, LinkSpeed, BlockName, "
          "BlockSizes)",
          key);
    if (into) {
      g_free (*into);
      *into = g_strdup (value);
    }
  }
  if (ok && s.name && c->any && block != c->block)
    ok = import_fail (error, IMPORT_ERROR_SYNTAX, c->name, line,
                      "switches and blocks in one file (allowed: one of them)");
  if (ok && !s.name && (s.nodes || s.children))
    ok = import_fail (error, IMPORT_ERROR_SYNTAX, c->name, line,
                      "a line without SwitchName or BlockName");
  if (ok && s.name) {
    c->any = TRUE;
    c->block = block;
    g_array_append_val (c->list, s);
    return TRUE;
  }
  g_free (s.name);
  g_free (s.children);
  g_free (s.nodes);
  return ok;
}

static gboolean
read_conf (Conf *c, const char *text, gsize len, GError **error)
{
  ImportLines in = {text, text + len, 0};
  g_autoptr (GString) whole = g_string_new (NULL);
  guint first = 0;
  for (char *raw; (raw = import_next_line (&in)) != NULL;) {
    g_autofree char *line = raw;
    char *hash = strchr (line, '#');
    if (hash)
      *hash = '\0';
    g_strchomp (line);
    gsize n = strlen (line);
    first = whole->len == 0 ? in.line : first;
    gboolean more = n > 0 && line[n - 1] == '\\';
    g_string_append_len (whole, line, (gssize)(more ? n - 1 : n));
    if (more)
      continue;
    if (!read_conf_line (c, whole->str, first, error))
      return FALSE;
    g_string_truncate (whole, 0);
  }
  return whole->len == 0 || read_conf_line (c, whole->str, first, error);
}

static void
switch_clear (gpointer p)
{
  SlurmSwitch *s = p;
  g_free (s->name);
  g_free (s->children);
  g_free (s->nodes);
}

/* A yaml file begins with its document mark or its list of topologies. */
static gboolean
looks_like_yaml (const char *text, gsize len)
{
  ImportLines in = {text, text + len, 0};
  for (char *raw; (raw = import_next_line (&in)) != NULL;) {
    g_autofree char *line = raw;
    g_strstrip (line);
    if (line[0] == '\0' || line[0] == '#')
      continue;
    return g_str_has_prefix (line, "---") || line[0] == '-' || line[0] == '%' || line[0] == '[';
  }
  return FALSE;
}

TopoDesc *
import_slurm_topo_text (const char *name, const char *text, gsize len, const char *which,
                        GError **error)
{
  if (looks_like_yaml (text, len))
    return import_slurm_yaml (name, text, len, which, error);
  Conf c = {.name = name,
            .list = g_array_new (FALSE, TRUE, sizeof (SlurmSwitch)),
            .notes = g_ptr_array_new_with_free_func (g_free)};
  g_array_set_clear_func (c.list, switch_clear);
  TopoDesc *d = read_conf (&c, text, len, error)
                    ? slurm_to_desc (name, c.list, c.block, c.notes, error)
                    : NULL;
  g_array_unref (c.list);
  g_ptr_array_unref (c.notes);
  return d;
}

TopoDesc *
import_slurm_topo (const char *path, const char *which, GError **error)
{
  gsize len = 0;
  g_autofree char *text = import_load (path, &len, error);
  return text ? import_slurm_topo_text (path, text, len, which, error) : NULL;
}
