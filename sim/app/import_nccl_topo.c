/* NCCL's topology XML, by expat. A file may be only a skeleton of CPUs and PCIe devices. */
#include "import_topo.h"

#include <expat.h>
#include <string.h>

enum { MAX_DEPTH = 32, MAX_ELEMENTS = 10000, MAX_CPUS = 64 };

typedef struct {
  guint32 parent; /* in dev, or G_MAXUINT32 */
  TopoKind kind;
  char *busid, *name;
  double up_Bps, net_Bps;
  guint nets; /* NICs: ports found within */
} Device;

typedef struct {
  guint32 gpu; /* in dev */
  char *target;
  int count;
  gboolean to_switch;
} NvLink;

typedef struct {
  const char *name;
  XML_Parser xml;
  GError **error;
  gboolean failed;
  GArray *dev, *nv;
  guint32 stack[MAX_DEPTH]; /* device that each open element stands in */
  guint depth, elements, unknown, cpus;
  int sm;
} Reader;

#define NONE G_MAXUINT32

static void
stop (Reader *r, ImportError code, const char *what, const char *found)
{
  if (!r->failed)
    import_fail (r->error, code, r->name, (guint)XML_GetCurrentLineNumber (r->xml), "%s%s%s%s",
                 what, found ? " (found \"" : "", found ? found : "", found ? "\")" : "");
  r->failed = TRUE;
  XML_StopParser (r->xml, XML_FALSE);
}

static const char *
attr (const char **a, const char *key)
{
  for (guint i = 0; a[i]; i += 2)
    if (strcmp (a[i], key) == 0)
      return a[i + 1];
  return NULL;
}

/* "8 GT/s", "16 GT/s", "32 GT/s PCIe/s", "32.0 GT/s PCIe", "": transfers a lane. */
static double
pcie_Bps (const char *speed, const char *width)
{
  double gt = speed ? g_ascii_strtod (speed, NULL) : 0;
  gint64 lanes = width ? g_ascii_strtoll (width, NULL, 10) : 0;
  if (!(gt > 0) || gt > 1000 || lanes < 1 || lanes > 32)
    return 0;
  double coding = gt < 8 ? 8.0 / 10 : 128.0 / 130; /* PCI Express: 8b/10b up to 5 GT/s */
  return gt * 1e9 * (double)lanes * coding / 8;
}

static guint32
add_device (Reader *r, TopoKind kind, const char *busid)
{
  Device d = {.parent = r->depth > 0 ? r->stack[r->depth - 1] : NONE,
              .kind = kind,
              .busid = g_strdup (busid ? busid : "")};
  g_array_append_val (r->dev, d);
  return r->dev->len - 1;
}

static TopoKind
kind_of_class (Reader *r, const char *class)
{
  guint64 c = class ? g_ascii_strtoull (class, NULL, 16) >> 8 : 0;
  switch (c) {
  case 0x0300:
  case 0x0302:
    return TOPO_GPU;
  case 0x0200:
  case 0x0207:
  case 0x0280:
    return TOPO_NIC;
  case 0x0604:
    return TOPO_PCI_SWITCH;
  case 0x0680:
    return TOPO_NVSWITCH;
  default:
    stop (r, IMPORT_ERROR_SYNTAX, "pci device of a class that is neither GPU, NIC nor bridge",
          class ? class : "");
    return TOPO_PCI_SWITCH;
  }
}

static void
begin_pci (Reader *r, const char **a)
{
  const char *busid = attr (a, "busid");
  if (!busid) {
    stop (r, IMPORT_ERROR_SYNTAX, "pci without busid", NULL);
    return;
  }
  guint32 i = add_device (r, kind_of_class (r, attr (a, "class")), busid);
  Device *d = &g_array_index (r->dev, Device, i);
  d->up_Bps = pcie_Bps (attr (a, "link_speed"), attr (a, "link_width"));
  r->stack[r->depth] = i;
}

static void
begin_net (Reader *r, const char **a)
{
  const char *name = attr (a, "name"), *speed = attr (a, "speed");
  guint32 at = r->stack[r->depth - 1];
  double Mbps = speed ? g_ascii_strtod (speed, NULL) : 0;
  guint32 port = add_device (r, TOPO_NIC, "");
  Device *d = &g_array_index (r->dev, Device, port);
  d->name = g_strdup (name ? name : "");
  d->net_Bps = Mbps > 0 && Mbps < 1e9 ? Mbps * 1e6 / 8 : 0;
  if (at != NONE && g_array_index (r->dev, Device, at).kind == TOPO_NIC)
    g_array_index (r->dev, Device, at).nets++;
}

static void
begin_nvlink (Reader *r, const char **a)
{
  const char *target = attr (a, "target"), *count = attr (a, "count"), *tclass = attr (a, "tclass");
  guint32 at = r->stack[r->depth - 1];
  gint64 n = count ? g_ascii_strtoll (count, NULL, 10) : 0;
  if (!target || n < 1 || n > 255 || at == NONE ||
      g_array_index (r->dev, Device, at).kind != TOPO_GPU) {
    stop (r, IMPORT_ERROR_SYNTAX, "nvlink outside a GPU, or without target and a count of 1 to 255",
          count ? count : "");
    return;
  }
  guint64 c = tclass ? g_ascii_strtoull (tclass, NULL, 16) >> 8 : 0x0302;
  NvLink l = {.gpu = at, .target = g_strdup (target), .count = (int)n, .to_switch = c == 0x0680};
  g_array_append_val (r->nv, l);
}

static void
on_begin (void *self, const char *tag, const char **a)
{
  Reader *r = self;
  if (r->failed)
    return;
  if (r->depth >= MAX_DEPTH || ++r->elements > MAX_ELEMENTS) {
    stop (r, IMPORT_ERROR_LIMIT, "too deep or too many elements (allowed: 32 levels, 10000)", NULL);
    return;
  }
  if (r->depth == 0 && strcmp (tag, "system") != 0) {
    stop (r, IMPORT_ERROR_MISSING, "no NCCL topology: the outer element is not <system>", tag);
    return;
  }
  r->stack[r->depth] = r->depth > 0 ? r->stack[r->depth - 1] : NONE;
  if (strcmp (tag, "cpu") == 0) {
    const char *id = attr (a, "numaid");
    r->stack[r->depth] = add_device (r, TOPO_CPU, id ? id : "");
    if (++r->cpus > MAX_CPUS)
      stop (r, IMPORT_ERROR_LIMIT, "too many cpu elements (allowed: 64)", NULL);
  } else if (strcmp (tag, "pci") == 0) {
    begin_pci (r, a);
  } else if (strcmp (tag, "gpu") == 0) {
    guint32 at = r->stack[r->depth];
    if (at == NONE || g_array_index (r->dev, Device, at).kind != TOPO_GPU)
      stop (r, IMPORT_ERROR_SYNTAX, "gpu outside a pci device of a GPU's class", NULL);
    const char *sm = attr (a, "sm");
    r->sm = sm ? (int)CLAMP (g_ascii_strtoll (sm, NULL, 10), 0, 999) : r->sm;
  } else if (strcmp (tag, "net") == 0) {
    begin_net (r, a);
  } else if (strcmp (tag, "nvlink") == 0) {
    begin_nvlink (r, a);
  } else if (strcmp (tag, "nic") != 0 && strcmp (tag, "system") != 0) {
    r->unknown++;
  }
  r->depth++;
}

static void
on_end (void *self, const char *tag)
{
  Reader *r = self;
  (void)tag;
  r->depth -= r->depth > 0;
}

static void
on_doctype (void *self, const char *name, const char *sysid, const char *pubid, int internal)
{
  (void)sysid;
  (void)pubid;
  (void)internal;
  stop (self, IMPORT_ERROR_REFUSED, "document types are not taken", name);
}

/* ---- to a graph --------------------------------------------------------------------------------
 */

/* Nearest thing above that became a vertex. */
static guint32
vertex_above (const Reader *r, const guint32 *vertex, guint32 i)
{
  for (guint32 p = g_array_index (r->dev, Device, i).parent; p != NONE;
       p = g_array_index (r->dev, Device, p).parent)
    if (vertex[p] != NONE)
      return p;
  return NONE;
}

/* GPUs and NICs first, in the order of the file; a NIC device with several ports is a bridge. */
static void
add_vertices (const Reader *r, TopoDesc *d, guint32 *vertex)
{
  guint n[TOPO_KIND_COUNT] = {0};
  static const TopoKind order[] = {TOPO_GPU, TOPO_NIC, TOPO_PCI_SWITCH, TOPO_CPU};
  for (gsize k = 0; k < G_N_ELEMENTS (order); k++)
    for (guint32 i = 0; i < r->dev->len; i++) {
      const Device *x = &g_array_index (r->dev, Device, i);
      gboolean port = x->kind == TOPO_NIC && x->name;
      gboolean holder = x->kind == TOPO_NIC && !x->name && x->nets > 0;
      TopoKind kind = holder ? TOPO_PCI_SWITCH : x->kind;
      if (kind != order[k])
        continue;
      g_autofree char *plain = g_strdup_printf ("%s%u", topo_kind_names[kind], n[kind]++);
      vertex[i] = topo_desc_add (d, kind, port && x->name[0] ? x->name : plain, 0);
      g_array_index (d->vertices, TopoVertex, vertex[i]).net_Bps = x->net_Bps;
    }
}

static void
add_tree (const Reader *r, TopoDesc *d, const guint32 *vertex)
{
  guint32 last_cpu = NONE;
  for (guint32 i = 0; i < r->dev->len; i++) {
    const Device *x = &g_array_index (r->dev, Device, i);
    if (vertex[i] == NONE)
      continue;
    if (x->kind == TOPO_CPU) {
      for (guint32 k = 0; k < i; k++)
        if (g_array_index (r->dev, Device, k).kind == TOPO_CPU)
          topo_desc_link (d, vertex[k], vertex[i], TOPO_LINK_SMP, 0, 1);
      last_cpu = i;
      continue;
    }
    guint32 above = vertex_above (r, vertex, i);
    above = above == NONE ? last_cpu : above;
    if (above == NONE)
      continue;
    double Bps = x->up_Bps;
    if (x->kind == TOPO_NIC && x->name) /* a port within its device shares the device's link */
      Bps = g_array_index (r->dev, Device, above).up_Bps;
    topo_desc_link (d, vertex[above], vertex[i], TOPO_LINK_PCI, Bps, 1);
  }
}

static void
add_nvlinks (const Reader *r, TopoDesc *d, const guint32 *vertex)
{
  g_autofree int *to_switch = g_new0 (int, r->dev->len + 1);
  guint32 sw = NONE;
  guint self = 0, lost = 0;
  for (guint i = 0; i < r->nv->len; i++) {
    const NvLink *l = &g_array_index (r->nv, NvLink, i);
    guint32 to = NONE;
    if (l->to_switch) {
      to_switch[l->gpu] += l->count;
      continue;
    }
    for (guint32 k = 0; k < r->dev->len && to == NONE; k++)
      if (g_array_index (r->dev, Device, k).kind == TOPO_GPU &&
          strcmp (g_array_index (r->dev, Device, k).busid, l->target) == 0)
        to = k;
    self += to == l->gpu;
    lost += to == NONE;
    if (to != NONE && l->gpu < to) /* the other end says the same */
      topo_desc_link (d, vertex[l->gpu], vertex[to], TOPO_LINK_NVLINK, 0, l->count);
  }
  for (guint32 k = 0; k < r->dev->len; k++) {
    if (to_switch[k] == 0)
      continue;
    if (sw == NONE)
      sw = topo_desc_add (d, TOPO_NVSWITCH, "nvswitch", 0);
    topo_desc_link (d, vertex[k], sw, TOPO_LINK_NVLINK, 0, to_switch[k]);
  }
  if (self > 0)
    topo_desc_note (d, "%u NVLinks lead from a GPU to itself and were left out", self);
  if (lost > 0)
    topo_desc_note (d, "%u NVLinks lead to a device that is not in the file and were left out",
                    lost);
  if (r->nv->len == 0)
    topo_desc_note (d, "no NVLinks in it: only CPUs and PCIe");
}

static TopoDesc *
to_desc (const Reader *r, GError **error)
{
  g_autoptr (TopoDesc) d = topo_desc_new (r->name);
  g_autofree guint32 *vertex = g_new (guint32, r->dev->len + 1);
  memset (vertex, 0xff, (r->dev->len + 1) * sizeof (guint32));
  add_vertices (r, d, vertex);
  if (topo_desc_count (d, TOPO_GPU) == 0) {
    import_fail (error, IMPORT_ERROR_MISSING, r->name, 0,
                 "has no GPU (allowed: at least one pci "
                 "device of class 0x0300.. or 0x0302..)");
    return NULL;
  }
  add_tree (r, d, vertex);
  add_nvlinks (r, d, vertex);
  d->sm = r->sm;
  if (r->unknown > 0)
    topo_desc_note (d, "%u elements of unknown name were left out", r->unknown);
  if (topo_desc_count (d, TOPO_NIC) == 0)
    topo_desc_note (d, "no NICs in it");
  return topo_desc_check_shape (d, TRUE, error) ? g_steal_pointer (&d) : NULL;
}

static gboolean
no_twins (const Reader *r, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < r->dev->len; i++) {
    const Device *x = &g_array_index (r->dev, Device, i);
    if (x->kind == TOPO_GPU && !g_hash_table_add (seen, x->busid))
      return import_fail (error, IMPORT_ERROR_SYNTAX, r->name, 0, "two GPUs have the busid %s",
                          x->busid);
  }
  return TRUE;
}

TopoDesc *
import_nccl_topo_text (const char *name, const char *text, gsize len, GError **error)
{
  Reader r = {.name = name, .xml = XML_ParserCreate (NULL), .error = error};
  TopoDesc *d = NULL;
  r.dev = g_array_new (FALSE, TRUE, sizeof (Device));
  r.nv = g_array_new (FALSE, TRUE, sizeof (NvLink));
  XML_SetUserData (r.xml, &r);
  XML_SetElementHandler (r.xml, on_begin, on_end);
  XML_SetStartDoctypeDeclHandler (r.xml, on_doctype);
  if (XML_Parse (r.xml, text, (int)len, 1) == XML_STATUS_ERROR) {
    if (!r.failed)
      import_fail (error, IMPORT_ERROR_SYNTAX, name, (guint)XML_GetCurrentLineNumber (r.xml),
                   "is not XML (%s)", XML_ErrorString (XML_GetErrorCode (r.xml)));
  } else if (!r.failed && no_twins (&r, error)) {
    d = to_desc (&r, error);
  }
  for (guint i = 0; i < r.dev->len; i++) {
    g_free (g_array_index (r.dev, Device, i).busid);
    g_free (g_array_index (r.dev, Device, i).name);
  }
  for (guint i = 0; i < r.nv->len; i++)
    g_free (g_array_index (r.nv, NvLink, i).target);
  g_array_unref (r.dev);
  g_array_unref (r.nv);
  XML_ParserFree (r.xml);
  return d;
}

TopoDesc *
import_nccl_topo (const char *path, GError **error)
{
  gsize len = 0;
  g_autofree char *text = import_load (path, &len, error);
  return text ? import_nccl_topo_text (path, text, len, error) : NULL;
}
