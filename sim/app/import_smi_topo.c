/* `nvidia-smi topo -m`: a square of words between GPUs and NICs, then affinities. Which PCIe
 * switches there are follows from the words: PIX and PXB join parts under one tree, PHB and NODE
 * under one NUMA node. */
#include "import_topo.h"

#include <string.h>

enum {
  MAX_PARTS = 256,
  MAX_NVLINKS = 18 /* of one GPU of any generation: equal counts beyond it need switches */
};

typedef enum { WAY_SELF, WAY_NVLINK, WAY_PIX, WAY_PXB, WAY_PHB, WAY_NODE, WAY_SYS } Way;

typedef struct {
  const char *name;
  guint n, n_gpus;
  char *part[MAX_PARTS], *numa[MAX_PARTS]; /* numa: NULL where not stated */
  gboolean has_numa;                       /* a column of it */
  gboolean gpu[MAX_PARTS], seen[MAX_PARTS];
  guint8 way[MAX_PARTS][MAX_PARTS], lanes[MAX_PARTS][MAX_PARTS];
  GPtrArray *legend; /* "NIC0: mlx5_0" */
} Smi;

static gboolean
read_way (const char *word, guint8 *way, guint8 *lanes)
{
  static const struct {
    const char *word;
    Way way;
  } known[] = {{"X", WAY_SELF},  {"PIX", WAY_PIX},   {"PXB", WAY_PXB}, {"PSB", WAY_PXB},
               {"PHB", WAY_PHB}, {"NODE", WAY_NODE}, {"SYS", WAY_SYS}, {"SOC", WAY_SYS}};
  for (gsize i = 0; i < G_N_ELEMENTS (known); i++)
    if (strcmp (known[i].word, word) == 0) {
      *way = (guint8)known[i].way;
      return TRUE;
    }
  if (strncmp (word, "NV", 2) != 0 || !g_ascii_isdigit (word[2]) || strlen (word) > 5)
    return FALSE;
  guint64 k = g_ascii_strtoull (word + 2, NULL, 10);
  *way = WAY_NVLINK;
  *lanes = (guint8)MIN (k, 255);
  return k > 0 && k <= 255;
}

/* The header names GPUs and NICs until the affinity columns begin. */
static gboolean
read_header (Smi *s, char **word, guint line, GError **error)
{
  for (guint i = 0; word[i] && strcmp (word[i], "CPU") != 0 && strcmp (word[i], "NUMA") != 0; i++) {
    if (s->n == MAX_PARTS)
      return import_fail (error, IMPORT_ERROR_LIMIT, s->name, line,
                          "too many columns (allowed: %d)", MAX_PARTS);
    for (guint k = 0; k < s->n; k++)
      if (strcmp (s->part[k], word[i]) == 0)
        return import_fail (error, IMPORT_ERROR_SYNTAX, s->name, line, "column %s stands twice",
                            word[i]);
    s->gpu[s->n] = g_str_has_prefix (word[i], "GPU");
    s->n_gpus += s->gpu[s->n] ? 1 : 0;
    s->part[s->n++] = g_strdup (word[i]);
  }
  for (guint i = 0; word[i]; i++)
    s->has_numa = s->has_numa || strcmp (word[i], "NUMA") == 0;
  return TRUE;
}

static gboolean
read_row (Smi *s, char **word, guint line, GError **error)
{
  guint row = 0;
  while (row < s->n && strcmp (s->part[row], word[0]) != 0)
    row++;
  if (row == s->n)
    return TRUE;
  if (s->seen[row])
    return import_fail (error, IMPORT_ERROR_SYNTAX, s->name, line, "row %s stands twice", word[0]);
  s->seen[row] = TRUE;
  for (guint i = 0; i < s->n; i++) {
    if (!word[i + 1])
      return import_fail (error, IMPORT_ERROR_SYNTAX, s->name, line,
                          "row %s is cut off (found %u of %u columns)", word[0], i, s->n);
    if (!read_way (word[i + 1], &s->way[row][i], &s->lanes[row][i]))
      return import_fail (error, IMPORT_ERROR_SYNTAX, s->name, line,
                          "unknown connection (found \"%s\"; allowed: X, NV1 to NV255, PIX, PXB, "
                          "PHB, NODE, SYS)",
                          word[i + 1]);
    if ((s->way[row][i] == WAY_SELF) != (i == row))
      return import_fail (error, IMPORT_ERROR_SYNTAX, s->name, line,
                          "row %s: X is not on the diagonal", word[0]);
  }
  /* then the CPUs, one word, and the NUMA node */
  if (s->has_numa && word[s->n + 1] && word[s->n + 2] && g_ascii_isdigit (word[s->n + 2][0]))
    s->numa[row] = g_strdup (word[s->n + 2]);
  return TRUE;
}

static gboolean
read_text (Smi *s, const char *text, gsize len, GError **error)
{
  ImportLines in = {text, text + len, 0};
  for (char *raw; (raw = import_next_line (&in)) != NULL;) {
    g_autofree char *line = raw;
    g_auto (GStrv) word = import_words (line);
    gboolean ok = TRUE;
    if (!word[0])
      continue;
    if (s->n == 0 && strcmp (word[0], "GPU0") == 0 && (!word[1] || strcmp (word[1], "X") != 0))
      ok = read_header (s, word, in.line, error);
    else if (s->n > 0 && word[1] && g_str_has_suffix (word[0], ":") && strlen (word[0]) > 1)
      g_ptr_array_add (s->legend, g_strdup_printf ("%s %s", word[0], word[1]));
    else if (s->n > 0)
      ok = read_row (s, word, in.line, error);
    if (!ok)
      return FALSE;
  }
  if (s->n == 0)
    return import_fail (error, IMPORT_ERROR_MISSING, s->name, 0,
                        "has no line of columns that begins with GPU0 (allowed: the output of "
                        "nvidia-smi topo -m)");
  for (guint i = 0; i < s->n; i++)
    if (s->gpu[i] && !s->seen[i])
      return import_fail (error, IMPORT_ERROR_MISSING, s->name, 0, "the row of %s is missing",
                          s->part[i]);
  for (guint i = 0; i < s->n; i++)
    for (guint k = 0; k < i; k++) {
      if (!s->seen[i]) { /* no row of its own: the other's word holds */
        s->way[i][k] = s->way[k][i];
        continue;
      }
      if (s->seen[k] && (s->way[i][k] != s->way[k][i] || s->lanes[i][k] != s->lanes[k][i]))
        return import_fail (error, IMPORT_ERROR_SYNTAX, s->name, 0,
                            "%s to %s and back are not the same", s->part[k], s->part[i]);
    }
  return TRUE;
}

/* ---- from words to a graph ---------------------------------------------------------------------
 */

static guint
group_root (guint *up, guint i)
{
  while (up[i] != i)
    i = up[i] = up[up[i]];
  return i;
}

/* Groups of parts that are joined by a way from WAY_PIX to `worst`. NVLink hides the PCIe way
 * between two GPUs, so these join through what they share and by their NUMA node. */
static void
group (const Smi *s, Way worst, guint *up)
{
  for (guint i = 0; i < s->n; i++)
    up[i] = i;
  for (guint i = 0; i < s->n; i++)
    for (guint k = 0; k < i; k++)
      if ((s->way[i][k] >= WAY_PIX && s->way[i][k] <= worst) ||
          (worst == WAY_NODE && s->numa[i] && s->numa[k] && strcmp (s->numa[i], s->numa[k]) == 0))
        up[group_root (up, i)] = group_root (up, k);
}

static guint
group_size (const Smi *s, guint *up, guint root)
{
  guint n = 0;
  for (guint i = 0; i < s->n; i++)
    n += group_root (up, i) == root ? 1 : 0;
  return n;
}

static void
add_nvlinks (const Smi *s, TopoDesc *d)
{
  guint lanes = 0, pairs = 0;
  gboolean equal = TRUE;
  for (guint i = 0; i < s->n; i++)
    for (guint k = 0; k < i; k++) {
      if (!s->gpu[i] || !s->gpu[k])
        continue;
      lanes = lanes ? lanes : s->lanes[i][k];
      equal = equal && s->lanes[i][k] == lanes;
      pairs += s->lanes[i][k] > 0;
    }
  if (pairs == 0)
    return;
  if (equal && lanes * (s->n_gpus - 1) > MAX_NVLINKS) {
    guint32 sw = topo_desc_add (d, TOPO_NVSWITCH, "nvswitch", 0);
    for (guint i = 0; i < s->n; i++)
      if (s->gpu[i])
        topo_desc_link (d, i, sw, TOPO_LINK_NVLINK, 0, (int)lanes);
    topo_desc_note (d, "every GPU has %u NVLinks to every other: taken as NVSwitches", lanes);
    return;
  }
  for (guint i = 0; i < s->n; i++)
    for (guint k = 0; k < i; k++)
      if (s->lanes[i][k] > 0)
        topo_desc_link (d, k, i, TOPO_LINK_NVLINK, 0, s->lanes[i][k]);
}

/* Trees of PCIe switches: one for each group by PXB, with one more below for each group by PIX that
 * is not all of it. */
static void
add_pcie (const Smi *s, TopoDesc *d)
{
  guint pix[MAX_PARTS], pxb[MAX_PARTS], node[MAX_PARTS];
  guint32 cpu_of[MAX_PARTS] = {0}, sw_of[MAX_PARTS] = {0}, low_of[MAX_PARTS] = {0};
  guint n_cpu = 0, n_sw = 0;
  g_autoptr (GArray) cpus = g_array_new (FALSE, FALSE, sizeof (guint32));
  group (s, WAY_PIX, pix);
  group (s, WAY_PXB, pxb);
  group (s, WAY_NODE, node);
  for (guint i = 0; i < s->n; i++) {
    if (group_root (node, i) != i)
      continue;
    g_autofree char *name = g_strdup_printf ("cpu%u", n_cpu++);
    cpu_of[i] = topo_desc_add (d, TOPO_CPU, name, 0);
    for (guint k = 0; k < cpus->len; k++)
      topo_desc_link (d, g_array_index (cpus, guint32, k), cpu_of[i], TOPO_LINK_SMP, 0, 1);
    g_array_append_val (cpus, cpu_of[i]);
  }
  for (guint pass = 0; pass < 2; pass++)
    for (guint i = 0; i < s->n; i++) {
      guint *up = pass == 0 ? pxb : pix;
      guint size = group_size (s, up, i), whole = group_size (s, pxb, group_root (pxb, i));
      if (group_root (up, i) != i || size < 2 || (pass == 1 && size == whole))
        continue;
      g_autofree char *name = g_strdup_printf ("pci%u", n_sw++);
      guint32 v = topo_desc_add (d, TOPO_PCI_SWITCH, name, 0);
      if (pass == 0)
        topo_desc_link (d, v, cpu_of[group_root (node, i)], TOPO_LINK_PCI, 0, 1);
      else
        topo_desc_link (d, v, sw_of[group_root (pxb, i)], TOPO_LINK_PCI, 0, 1);
      (pass == 0 ? sw_of : low_of)[i] = v;
    }
  for (guint i = 0; i < s->n; i++) {
    guint x = group_root (pix, i), y = group_root (pxb, i);
    guint32 parent = group_size (s, pxb, y) < 2 ? cpu_of[group_root (node, i)] : sw_of[y];
    if (group_size (s, pix, x) >= 2 && group_size (s, pix, x) < group_size (s, pxb, y))
      parent = low_of[x];
    topo_desc_link (d, i, parent, TOPO_LINK_PCI, 0, 1);
  }
}

static TopoDesc *
to_desc (const Smi *s, GError **error)
{
  g_autoptr (TopoDesc) d = topo_desc_new (s->name);
  guint gpu = 0, nic = 0;
  for (guint i = 0; i < s->n; i++) {
    g_autofree char *name =
        s->gpu[i] ? g_strdup_printf ("gpu%u", gpu++) : g_strdup_printf ("nic%u", nic++);
    const char *label = name;
    for (guint k = 0; k < s->legend->len && !s->gpu[i]; k++) {
      const char *entry = g_ptr_array_index (s->legend, k);
      gsize n = strlen (s->part[i]);
      if (strncmp (entry, s->part[i], n) == 0 && entry[n] == ':')
        label = entry + n + 2;
    }
    topo_desc_add (d, s->gpu[i] ? TOPO_GPU : TOPO_NIC,
                   !s->gpu[i] && !g_str_has_prefix (s->part[i], "NIC") ? s->part[i] : label, 0);
  }
  add_nvlinks (s, d);
  add_pcie (s, d);
  if (nic == 0)
    topo_desc_note (d, "no NICs in it");
  topo_desc_note (d, "speeds are not in it");
  return topo_desc_check_shape (d, TRUE, error) ? g_steal_pointer (&d) : NULL;
}

TopoDesc *
import_smi_topo_text (const char *name, const char *text, gsize len, GError **error)
{
  Smi *s = g_new0 (Smi, 1);
  s->name = name;
  s->legend = g_ptr_array_new_with_free_func (g_free);
  TopoDesc *d = read_text (s, text, len, error) ? to_desc (s, error) : NULL;
  for (guint i = 0; i < s->n; i++)
    g_free (s->part[i]);
  for (guint i = 0; i < s->n; i++)
    g_free (s->numa[i]);
  g_ptr_array_unref (s->legend);
  g_free (s);
  return d;
}

TopoDesc *
import_smi_topo (const char *path, GError **error)
{
  gsize len = 0;
  g_autofree char *text = import_load (path, &len, error);
  return text ? import_smi_topo_text (path, text, len, error) : NULL;
}
