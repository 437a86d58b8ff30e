/* ibnetdiscover: a record for each switch and channel adapter, a line for each of its ports. Every
 * link stands at both ends; it is counted once. */
#include "import_topo.h"

#include <string.h>

enum { MAX_PORTS = 4000000 };

typedef struct {
  char *id;   /* "S-…", "H-…" */
  char *desc; /* text after the # */
  gboolean described;
} Guid;

typedef struct {
  guint32 node, peer; /* in guids */
  guint port, peer_port;
  double Bps;
} Port;

typedef struct {
  const char *name;
  GArray *guids, *ports;
  GHashTable *index; /* id → place + 1 */
  GHashTable *hosts; /* port GUID → host name; from the list of names */
  guint unknown_speed;
} Net;

static guint32
guid_of (Net *n, const char *id)
{
  guint32 i = GPOINTER_TO_UINT (g_hash_table_lookup (n->index, id));
  if (i == 0) {
    Guid g = {.id = g_strdup (id)};
    g_array_append_val (n->guids, g);
    i = n->guids->len;
    g_hash_table_insert (n->index, g.id, GUINT_TO_POINTER (i));
  }
  return i - 1;
}

/* The next "…" from *p on; moves *p behind it. NULL when there is none. */
static char *
quoted (const char **p)
{
  const char *open = strchr (*p, '"');
  const char *close = open ? strchr (open + 1, '"') : NULL;
  if (!close)
    return NULL;
  *p = close + 1;
  return g_strndup (open + 1, (gsize)(close - open - 1));
}

/* "4xHDR" as bytes a second: lanes by data rate of a lane (InfiniBand Architecture, after coding).
 */
static double
speed_Bps (const char *line)
{
  static const struct {
    const char *name;
    double lane_Gbps;
  } rate[] = {{"SDR", 2},  {"DDR", 4},  {"QDR", 8},   {"FDR10", 10}, {"FDR", 13.64},
              {"EDR", 25}, {"HDR", 50}, {"NDR", 100}, {"XDR", 200}};
  g_auto (GStrv) word = import_words (line);
  for (guint i = 0; word[i]; i++) {
    char *end = NULL;
    guint64 lanes = g_ascii_isdigit (word[i][0]) ? g_ascii_strtoull (word[i], &end, 10) : 0;
    if (lanes < 1 || lanes > 12 || *end != 'x')
      continue;
    for (gsize k = 0; k < G_N_ELEMENTS (rate); k++)
      if (strcmp (end + 1, rate[k].name) == 0)
        return (double)lanes * rate[k].lane_Gbps * 1e9 / 8;
  }
  return 0;
}

/* "Switch  41 "S-…"  # "text" …" or "Ca 1 …", "Rt 1 …". */
static gboolean
read_record (Net *n, const char *line, guint at, guint32 *node, GError **error)
{
  const char *p = line;
  g_autofree char *id = quoted (&p);
  if (!id)
    return import_fail (error, IMPORT_ERROR_SYNTAX, n->name, at, "a record without its GUID");
  *node = guid_of (n, id);
  Guid *g = &g_array_index (n->guids, Guid, *node);
  if (g->described)
    return import_fail (error, IMPORT_ERROR_SYNTAX, n->name, at, "%s is described twice", id);
  g->described = TRUE;
  g_free (g->desc);
  g->desc = quoted (&p);
  return TRUE;
}

/* "[1](guid) "S-…"[21](guid)  # "text" lid 226 4xHDR …"; the first GUID only at an adapter. */
static gboolean
read_port (Net *n, const char *line, guint at, guint32 node, GError **error)
{
  char *end = NULL;
  const char *p = line;
  Port x = {.node = node, .port = (guint)MIN (g_ascii_strtoull (line + 1, &end, 10), 10000)};
  g_autofree char *id = *end == ']' ? quoted (&p) : NULL;
  if (!id || *p != '[')
    return import_fail (error, IMPORT_ERROR_SYNTAX, n->name, at,
                        "is no port (allowed: [1] \"S-0002c902\"[2] # …)");
  x.peer_port = (guint)MIN (g_ascii_strtoull (p + 1, NULL, 10), 10000);
  x.peer = guid_of (n, id);
  x.Bps = speed_Bps (p);
  n->unknown_speed += x.Bps > 0 ? 0 : 1;
  g_autofree char *desc = quoted (&p);
  Guid *g = &g_array_index (n->guids, Guid, x.peer);
  if (!g->desc)
    g->desc = g_steal_pointer (&desc);
  if (n->ports->len >= MAX_PORTS)
    return import_fail (error, IMPORT_ERROR_LIMIT, n->name, at, "more than %d ports", MAX_PORTS);
  g_array_append_val (n->ports, x);
  return TRUE;
}

static gboolean
read_text (Net *n, const char *text, gsize len, GError **error)
{
  ImportLines in = {text, text + len, 0};
  guint32 node = G_MAXUINT32;
  for (char *raw; (raw = import_next_line (&in)) != NULL;) {
    g_autofree char *line = raw;
    g_strchug (line);
    gboolean ok = TRUE;
    if (g_str_has_prefix (line, "Switch") || g_str_has_prefix (line, "Ca") ||
        g_str_has_prefix (line, "Rt"))
      ok = read_record (n, line, in.line, &node, error);
    else if (line[0] == '[' && node == G_MAXUINT32)
      ok = import_fail (error, IMPORT_ERROR_SYNTAX, n->name, in.line, "a port before any record");
    else if (line[0] == '[')
      ok = read_port (n, line, in.line, node, error);
    if (!ok)
      return FALSE;
  }
  if (n->ports->len > 0)
    return TRUE;
  gboolean list = strstr (text, "VM_hostname") != NULL;
  return import_fail (error, IMPORT_ERROR_MISSING, n->name, 0,
                      list ? "is a list of host names and port GUIDs and no fabric (allowed: the "
                             "output of ibnetdiscover, this list beside it)"
                           : "has no ports (allowed: the output of ibnetdiscover)");
}

/* ---- to a graph --------------------------------------------------------------------------------
 */

/* An adapter's host: from the list of names by its GUID, else the first word of its text. */
static char *
host_name (const Net *n, const Guid *g)
{
  const char *listed = n->hosts ? g_hash_table_lookup (n->hosts, g->id + 2) : NULL;
  if (listed)
    return g_strdup (listed);
  g_auto (GStrv) word = import_words (g->desc ? g->desc : "");
  return g_strdup (word[0] ? word[0] : g->id);
}

static void
make_vertices (const Net *n, TopoDesc *d, guint32 *vertex)
{
  g_autoptr (GHashTable) hosts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  guint skipped = 0, absent = 0;
  for (guint i = 0; i < n->guids->len; i++) {
    const Guid *g = &g_array_index (n->guids, Guid, i);
    vertex[i] = G_MAXUINT32;
    absent += g->described ? 0 : 1;
    if (g->id[0] == 'S') {
      vertex[i] = topo_desc_add (d, TOPO_SWITCH, g->desc && g->desc[0] ? g->desc : g->id, 0);
      continue;
    }
    if (g->desc && strstr (g->desc, "Aggregation Node")) { /* SHARP's own port in a switch */
      skipped++;
      continue;
    }
    char *name = host_name (n, g);
    guint32 v = GPOINTER_TO_UINT (g_hash_table_lookup (hosts, name));
    if (v == 0)
      v = topo_desc_add (d, TOPO_HOST, name, 0) + 1;
    g_hash_table_insert (hosts, name, GUINT_TO_POINTER (v));
    vertex[i] = v - 1;
  }
  if (skipped > 0)
    topo_desc_note (d, "%u aggregation nodes within switches were left out", skipped);
  if (absent > skipped)
    topo_desc_note (d, "%u devices are named as neighbours but not described", absent - skipped);
  if (n->unknown_speed > 0)
    topo_desc_note (d, "%u ports state no known speed", n->unknown_speed);
}

static TopoDesc *
to_desc (const Net *n, GError **error)
{
  g_autoptr (TopoDesc) d = topo_desc_new (n->name);
  g_autofree guint32 *vertex = g_new (guint32, n->guids->len + 1);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  make_vertices (n, d, vertex);
  for (guint i = 0; i < n->ports->len; i++) {
    Port p = g_array_index (n->ports, Port, i);
    if (p.node > p.peer || (p.node == p.peer && p.port > p.peer_port)) {
      Port back = {
          .node = p.peer, .peer = p.node, .port = p.peer_port, .peer_port = p.port, .Bps = p.Bps};
      p = back;
    }
    char *key = g_strdup_printf ("%u/%u-%u/%u", p.node, p.port, p.peer, p.peer_port);
    if (!g_hash_table_add (seen, key) || vertex[p.node] == G_MAXUINT32 ||
        vertex[p.peer] == G_MAXUINT32)
      continue;
    topo_desc_link (d, vertex[p.node], vertex[p.peer], TOPO_LINK_NET, p.Bps, 1);
  }
  return topo_desc_check_shape (d, FALSE, error) ? g_steal_pointer (&d) : NULL;
}

/* "VM_hostname NAME", then a line for each port GUID of that host. */
static GHashTable *
read_names (const char *text)
{
  GHashTable *out = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  ImportLines in = {text, text + strlen (text), 0};
  g_autofree char *host = NULL;
  for (char *raw; (raw = import_next_line (&in)) != NULL;) {
    g_autofree char *line = raw;
    g_auto (GStrv) word = import_words (line);
    if (word[0] && word[1] && strcmp (word[0], "VM_hostname") == 0) {
      g_free (host);
      host = g_strdup (word[1]);
    } else if (word[0] && !word[1] && host) {
      g_hash_table_insert (out, g_strdup (word[0]), g_strdup (host));
    }
  }
  return out;
}

TopoDesc *
import_ibnet_text (const char *name, const char *text, gsize len, const char *names, GError **error)
{
  Net n = {.name = name,
           .guids = g_array_new (FALSE, TRUE, sizeof (Guid)),
           .ports = g_array_new (FALSE, FALSE, sizeof (Port)),
           .index = g_hash_table_new (g_str_hash, g_str_equal),
           .hosts = names ? read_names (names) : NULL};
  TopoDesc *d = read_text (&n, text, len, error) ? to_desc (&n, error) : NULL;
  for (guint i = 0; i < n.guids->len; i++) {
    g_free (g_array_index (n.guids, Guid, i).id);
    g_free (g_array_index (n.guids, Guid, i).desc);
  }
  g_array_unref (n.guids);
  g_array_unref (n.ports);
  g_hash_table_unref (n.index);
  if (n.hosts)
    g_hash_table_unref (n.hosts);
  return d;
}

TopoDesc *
import_ibnet (const char *path, const char *names_path, GError **error)
{
  gsize len = 0, names_len = 0;
  g_autofree char *text = import_load (path, &len, error);
  g_autofree char *names = text && names_path ? import_load (names_path, &names_len, error) : NULL;
  if (!text || (names_path && !names))
    return NULL;
  return import_ibnet_text (path, text, len, names, error);
}
