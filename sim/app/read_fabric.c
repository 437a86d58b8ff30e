#include "read_fabric.h"
#include "paths.h"

#include <math.h>
#include <stddef.h>

/* Units of the keys, as the factor to the field's unit. */
#define US   1e-6
#define GBPS 1e9
#define MIB  1048576.0
/* A field that holds seconds per byte and a key that holds GB/s. */
#define PER_GBPS (-1e9)

typedef struct {
  const char *key;
  size_t offset;
  double unit;     /* field = value * unit; negative: 1 / (value * -unit) */
  double min, max; /* of the value in the file */
  gboolean required;
} Field;

#define NEED(key, field, unit, min, max)                                                           \
  {                                                                                                \
    key, offsetof (Fabric, field), unit, min, max, TRUE                                            \
  }
#define MAY(key, field, unit, min, max)                                                            \
  {                                                                                                \
    key, offsetof (Fabric, field), unit, min, max, FALSE                                           \
  }
#define END                                                                                        \
  {                                                                                                \
    NULL, 0, 0, 0, 0, FALSE                                                                        \
  }

/* Limits are those of sense, wide enough for what comes next: up to a second, up to 100 TB/s. */
#define TIME(key, field)     NEED (key, field, US, 0, 1e6)
#define MAY_TIME(key, field) MAY (key, field, US, 0, 1e6)
#define RATE(key, field)     NEED (key, field, GBPS, 1e-6, 1e5)
#define PART(key, field)     NEED (key, field, 1, 1e-3, 1)

static const Field ll_fields[] = {TIME ("base_us", ring[PROTO_LL].base_s),
                                  TIME ("hop_us", ring[PROTO_LL].hop_s),
                                  RATE ("bus_GBps", ring[PROTO_LL].bus_Bps), END};
static const Field ll128_fields[] = {TIME ("base_us", ring[PROTO_LL128].base_s),
                                     TIME ("hop_us", ring[PROTO_LL128].hop_s),
                                     RATE ("bus_GBps", ring[PROTO_LL128].bus_Bps), END};
static const Field simple_fields[] = {
    TIME ("base_us", ring[PROTO_SIMPLE].base_s),
    TIME ("hop_us", ring[PROTO_SIMPLE].hop_s),
    RATE ("bus_GBps", ring[PROTO_SIMPLE].bus_Bps),
    MAY_TIME ("ramp_us", ramp_s),
    MAY ("ramp_MiB", ramp_bytes, MIB, 1e-6, 1e6),
    MAY ("reduce_copy_GBps", reduce_copy_s_per_byte, PER_GBPS, 1e-3, 1e6),
    MAY ("gather_copy_GBps", gather_copy_s_per_byte, PER_GBPS, 1e-3, 1e6),
    END};
static const Field nvls_fields[] = {TIME ("base_us", nvls_curve.base_s),
                                    RATE ("rate_GBps", nvls_curve.Bps),
                                    TIME ("ramp_us", nvls_curve.ramp_s),
                                    NEED ("ramp_MiB", nvls_curve.ramp_bytes, MIB, 1e-6, 1e6), END};
static const Field nvlstree_fields[] = {
    TIME ("base_us", nvlstree.base_s), RATE ("rate_GBps", nvlstree.Bps),
    TIME ("ramp_us", nvlstree.ramp_s), NEED ("ramp_MiB", nvlstree.ramp_bytes, MIB, 1e-6, 1e6), END};
static const Field alltoall_fields[] = {TIME ("base_us", a2a.base_s),
                                        TIME ("peer_us", a2a.hop_s),
                                        RATE ("rate_GBps", a2a.Bps),
                                        MAY_TIME ("ramp_us", a2a.ramp_s),
                                        MAY ("ramp_MiB", a2a.ramp_bytes, MIB, 1e-6, 1e6),
                                        MAY ("copy_GBps", a2a_copy_s_per_byte, PER_GBPS, 1e-3, 1e9),
                                        MAY ("share_of_2", a2a_share2, 1, 1e-3, 100),
                                        MAY ("share_of_4", a2a_share4, 1, 1e-3, 100),
                                        END};
static const Field sharp_fields[] = {PART ("efficiency", sharp_efficiency),
                                     TIME ("hop_us", sharp_hop_s), END};
static const Field p2p_fields[] = {TIME ("base_us", p2p.base_s), RATE ("rate_GBps", p2p.Bps),
                                   MAY_TIME ("ramp_us", p2p.ramp_s),
                                   MAY ("ramp_MiB", p2p.ramp_bytes, MIB, 1e-6, 1e6), END};
static const Field node_fields[] = {NEED ("nvlinks", links, 1, 0, 1000),
                                    RATE ("pci_GBps", pci_Bps),
                                    MAY ("share_of_2", share2, 1, 1e-3, 100),
                                    MAY ("channel_GBps", channel_Bps, GBPS, 1e-3, 1e5),
                                    MAY_TIME ("slice_us", slice_s),
                                    MAY ("share_of_4", share4, 1, 1e-3, 100),
                                    END};

static const Field net_fields[] = {PART ("efficiency", efficiency),
                                   PART ("ll_efficiency", ll_efficiency),
                                   PART ("ll128_efficiency", ll128_efficiency),
                                   PART ("tree_efficiency", tree_efficiency),
                                   PART ("nvlstree_efficiency", nvlstree_efficiency),
                                   PART ("pat_efficiency", pat_efficiency),
                                   PART ("alltoall_efficiency", a2a_efficiency),
                                   TIME ("base_us", net_base_s),
                                   TIME ("nvlstree_hop_us", nvlstree.hop_s),
                                   TIME ("pat_rank_us", pat_rank_s),
                                   TIME ("alltoall_peer_us", a2a_net_hop_s),
                                   MAY_TIME ("ramp_us", net_ramp_s),
                                   END};
static const Field net_hop_fields[] = {TIME ("ll", net_hop_s[PROTO_LL]),
                                       TIME ("ll128", net_hop_s[PROTO_LL128]),
                                       TIME ("simple", net_hop_s[PROTO_SIMPLE]), END};
static const Field net_p2p_fields[] = {TIME ("base_us", net_p2p.base_s),
                                       MAY ("rate_GBps", net_p2p.Bps, GBPS, 1e-6, 1e5),
                                       MAY_TIME ("ramp_us", net_p2p.ramp_s),
                                       MAY ("ramp_MiB", net_p2p.ramp_bytes, MIB, 1e-6, 1e6), END};
static const Field nic_fields[] = {NEED ("nics_per_node", nics, 1, 1, 1e5),
                                   RATE ("nic_GBps", nic_Bps), END};
/* What a system has of its own, in place of its transport's. */
static const Field own_fields[] = {MAY ("efficiency", efficiency, 1, 1e-3, 1),
                                   MAY ("nvlstree_nics", nvlstree_nics, 1, 1, 1e5),
                                   MAY ("alltoall_efficiency", a2a_efficiency, 1, 1e-3, 1), END};

/* An object that holds fields and nothing else. */
typedef struct {
  const char *key;
  const Field *fields;
  gboolean required;
} Section;

static const Section ring_sections[] = {
    {"ll", ll_fields, TRUE}, {"ll128", ll128_fields, TRUE}, {"simple", simple_fields, TRUE}};
static const Section node_sections[] = {{"nvls", nvls_fields, FALSE},
                                        {"nvlstree", nvlstree_fields, FALSE},
                                        {"alltoall", alltoall_fields, TRUE},
                                        {"p2p", p2p_fields, TRUE}};
static const Section net_sections[] = {{"hop_us", net_hop_fields, TRUE},
                                       {"sharp", sharp_fields, FALSE},
                                       {"p2p", net_p2p_fields, TRUE}};

static gboolean
read_fields (const JsonRef *obj, const Field *fields, Fabric *f, GPtrArray *prov, GError **error)
{
  for (const Field *d = fields; d->key != NULL; d++) {
    if (!d->required && !json_has (obj, d->key))
      continue;
    double value = 0;
    if (!json_get_sourced (obj, d->key, d->min, d->max, &value, prov, error))
      return FALSE;
    double *out = (double *)(void *)((char *)f + d->offset);
    *out = d->unit > 0 ? value * d->unit : 1 / (value * -d->unit);
  }
  return TRUE;
}

static gboolean
read_section (const JsonRef *parent, const Section *s, Fabric *f, GPtrArray *prov, GError **error)
{
  const char *keys[16];
  guint n = 0;
  JsonRef obj;
  if (!s->required && !json_has (parent, s->key))
    return TRUE;
  for (const Field *d = s->fields; d->key != NULL; d++)
    keys[n++] = d->key;
  g_assert (n < G_N_ELEMENTS (keys));
  keys[n] = NULL;
  return json_get_object (parent, s->key, &obj, error) && json_check_keys (&obj, keys, error) &&
         read_fields (&obj, s->fields, f, prov, error);
}

static gboolean
read_sections (const JsonRef *parent, const Section *s, guint n, Fabric *f, GPtrArray *prov,
               GError **error)
{
  for (guint i = 0; i < n; i++)
    if (!read_section (parent, &s[i], f, prov, error))
      return FALSE;
  return TRUE;
}

/* A ramp without its half size would be a step at zero bytes; both or none. */
static gboolean
check_ramp (const JsonRef *at, const char *what, double ramp_s, double half, GError **error)
{
  if (ramp_s > 0 && !(half > 0))
    return json_fail (at, JSON_ERROR_INCONSISTENT, error,
                      "%s has a ramp without its half size (found ramp_us alone; allowed: ramp_us "
                      "and ramp_MiB, or none)",
                      what);
  return TRUE;
}

static gboolean
read_whole (const JsonRef *obj, const char *key, double min, double max, int *out, GPtrArray *prov,
            GError **error)
{
  double value = 0;
  JsonRef at;
  if (!json_get_sourced (obj, key, min, max, &value, prov, error) ||
      !json_get_any (obj, key, &at, error))
    return FALSE;
  if (value != floor (value))
    return json_fail (&at, JSON_ERROR_RANGE, error,
                      "is not a whole number (found %g; allowed: %g to %g)", value, min, max);
  *out = (int)value;
  return TRUE;
}

static gboolean
read_node (const JsonRef *obj, Fabric *f, GPtrArray *prov, GError **error)
{
  static const char *const keys[] = {
      "format",   "name",     "note",     "arch",     "gpus_per_node", "link",       "cpu",
      "nvswitch", "ll128",    "nvlinks",  "pci_GBps", "share_of_2",    "share_of_4", "ring",
      "nvls",     "nvlstree", "alltoall", "p2p",      "channel_GBps",  "slice_us",   NULL};
  const char *text = NULL;
  gint64 format = 1;
  int link = 0, cpu = 0;
  JsonRef ring;
  if (!json_check_keys (obj, keys, error) || !json_opt_int (obj, "format", 1, 1, &format, error) ||
      !json_opt_string (obj, "name", &text, error) ||
      !json_opt_string (obj, "note", &text, error) ||
      !read_whole (obj, "arch", 60, 999, &f->arch, prov, error) ||
      !read_whole (obj, "gpus_per_node", 1, 65536, &f->domain_gpus, prov, error) ||
      !json_get_enum (obj, "link", fabric_link_names, &link, error) ||
      !json_get_enum (obj, "cpu", fabric_cpu_names, &cpu, error) ||
      !json_get_bool (obj, "nvswitch", &f->nvswitch, error) ||
      !json_get_bool (obj, "ll128", &f->ll128, error) ||
      !read_fields (obj, node_fields, f, prov, error) ||
      !json_get_object (obj, "ring", &ring, error) ||
      !read_sections (&ring, ring_sections, G_N_ELEMENTS (ring_sections), f, prov, error) ||
      !read_sections (obj, node_sections, G_N_ELEMENTS (node_sections), f, prov, error))
    return FALSE;
  static const char *const ring_keys[] = {"ll", "ll128", "simple", NULL};
  if (!json_check_keys (&ring, ring_keys, error))
    return FALSE;
  f->link = (FabricLink)link;
  f->cpu = (FabricCpu)cpu;
  f->nvls = json_has (obj, "nvls");
  if (f->nvls != json_has (obj, "nvlstree"))
    return json_fail (obj, JSON_ERROR_INCONSISTENT, error,
                      "one of nvls and nvlstree is missing (allowed: both, or none)");
  if (f->link == FABRIC_NVLINK && !(f->links > 0))
    return json_fail (obj, JSON_ERROR_INCONSISTENT, error,
                      "link is nvlink and nvlinks is 0 (allowed: at least 1)");
  return check_ramp (obj, "ring.simple", f->ramp_s, f->ramp_bytes, error) &&
         check_ramp (obj, "alltoall", f->a2a.ramp_s, f->a2a.ramp_bytes, error) &&
         check_ramp (obj, "p2p", f->p2p.ramp_s, f->p2p.ramp_bytes, error);
}

static gboolean
read_network (const JsonRef *obj, Fabric *f, GPtrArray *prov, GError **error)
{
  static const char *const keys[] = {"format",
                                     "name",
                                     "note",
                                     "tuner",
                                     "efficiency",
                                     "ll_efficiency",
                                     "ll128_efficiency",
                                     "tree_efficiency",
                                     "nvlstree_efficiency",
                                     "pat_efficiency",
                                     "alltoall_efficiency",
                                     "base_us",
                                     "hop_us",
                                     "nvlstree_hop_us",
                                     "pat_rank_us",
                                     "alltoall_peer_us",
                                     "ramp_us",
                                     "p2p",
                                     "sharp",
                                     NULL};
  const char *text = NULL;
  gint64 format = 1;
  int tuner = FABRIC_TUNER_NCCL;
  if (!json_check_keys (obj, keys, error) || !json_opt_int (obj, "format", 1, 1, &format, error) ||
      !json_opt_string (obj, "name", &text, error) ||
      !json_opt_string (obj, "note", &text, error) ||
      !json_opt_enum (obj, "tuner", fabric_tuner_names, &tuner, error) ||
      !read_fields (obj, net_fields, f, prov, error) ||
      !read_sections (obj, net_sections, G_N_ELEMENTS (net_sections), f, prov, error))
    return FALSE;
  f->tuner = (FabricTuner)tuner;
  f->sharp = json_has (obj, "sharp");
  return check_ramp (obj, "p2p", f->net_p2p.ramp_s, f->net_p2p.ramp_bytes, error);
}

typedef gboolean (*PartReader) (const JsonRef *obj, Fabric *f, GPtrArray *prov, GError **error);

/* A part in place, or by the name of a shipped one or a path. *label: what it is called; owned. */
static gboolean
read_part (const JsonRef *root, const char *key, const char *kind, PartReader reader, Fabric *f,
           char **label, GPtrArray *prov, GError **error)
{
  JsonRef ref;
  if (!json_get_any (root, key, &ref, error))
    return FALSE;
  if (!json_is_string (&ref)) {
    if (!json_get_object (root, key, &ref, error))
      return FALSE;
    *label = g_strdup (f->name);
    return reader (&ref, f, prov, error);
  }
  const char *name = NULL;
  g_autoptr (GError) local = NULL;
  if (!json_value_string (&ref, &name, error))
    return FALSE;
  g_autofree char *path = data_find (kind, name, json_doc_name (root->doc), &local);
  if (path == NULL)
    return json_fail (&ref, (JsonError)local->code, error, "%s", local->message);
  g_autoptr (JsonDoc) doc = json_doc_load (path, error);
  if (doc == NULL)
    return FALSE;
  JsonRef part = json_root (doc);
  *label = g_strdup (name);
  return reader (&part, f, prov, error);
}

static gboolean
read_version (const JsonRef *root, Fabric *f, GError **error)
{
  const char *text = NULL;
  JsonRef at;
  if (!json_get_string (root, "nccl_version", &text, error) ||
      !json_get_any (root, "nccl_version", &at, error))
    return FALSE;
  f->nccl_version = nccl_version_parse (text);
  if (f->nccl_version < 20000)
    return json_fail (&at, JSON_ERROR_RANGE, error,
                      "is no NCCL version (found \"%s\"; allowed: such as \"2.27.7\")", text);
  return TRUE;
}

/* "env": { "NCCL_ALGO": "Ring", "NCCL_BUFFSIZE": 8388608 } */
static gboolean
read_env (const JsonRef *root, Fabric *f, GError **error)
{
  JsonRef env;
  if (!json_has (root, "env"))
    return TRUE;
  if (!json_get_object (root, "env", &env, error) || !json_check_keys (&env, nccl_env_names, error))
    return FALSE;
  for (int i = 0; i < json_len (&env); i++) {
    JsonRef item = json_item (&env, i);
    const char *text = NULL;
    gint64 n = 0;
    g_autoptr (GError) why = NULL;
    if (json_is_string (&item) ? !json_value_string (&item, &text, error)
                               : !json_value_int (&item, 0, G_MAXINT, &n, error))
      return FALSE;
    g_autofree char *number = g_strdup_printf ("%" G_GINT64_FORMAT, n);
    if (!nccl_env_set (&f->env, item.key, text != NULL ? text : number, &why))
      return json_fail (&item, JSON_ERROR_RANGE, error, "%s", why->message);
  }
  return TRUE;
}

static gboolean
read_all (const JsonRef *root, Fabric *f, GPtrArray *prov, GError **error)
{
  static const char *const keys[] = {"format",
                                     "name",
                                     "note",
                                     "node",
                                     "network",
                                     "nccl_version",
                                     "nics_per_node",
                                     "nic_GBps",
                                     "efficiency",
                                     "nvlstree_nics",
                                     "alltoall_efficiency",
                                     "gpus_per_node",
                                     "env",
                                     NULL};
  static const char *const lone[] = {
      "nics_per_node", "nic_GBps", "efficiency", "nvlstree_nics", "alltoall_efficiency", NULL};
  const char *text = NULL;
  gint64 format = 1;
  if (!json_check_keys (root, keys, error) ||
      !json_opt_int (root, "format", 1, 1, &format, error) ||
      !json_opt_string (root, "note", &text, error))
    return FALSE;
  text = NULL;
  if (!json_opt_string (root, "name", &text, error))
    return FALSE;
  if (text != NULL) {
    g_free (f->name);
    f->name = g_strdup (text);
  }
  if (!read_version (root, f, error) || !read_env (root, f, error) ||
      !read_part (root, "node", "fabrics/nodes", read_node, f, &f->node, prov, error) ||
      (json_has (root, "gpus_per_node") &&
       !read_whole (root, "gpus_per_node", 1, 65536, &f->domain_gpus, prov, error)))
    return FALSE;
  if (json_has (root, "network"))
    return read_part (root, "network", "fabrics/networks", read_network, f, &f->network, prov,
                      error) &&
           read_fields (root, nic_fields, f, prov, error) &&
           read_fields (root, own_fields, f, prov, error);
  for (int i = 0; lone[i] != NULL; i++)
    if (json_has (root, lone[i]))
      return json_fail (root, JSON_ERROR_INCONSISTENT, error,
                        "%s is given without a network (allowed: with \"network\")", lone[i]);
  return TRUE;
}

Fabric *
read_fabric (const JsonRef *root, const char *name, GPtrArray *prov, GError **error)
{
  g_autoptr (Fabric) f = fabric_new ();
  f->name = g_strdup (name != NULL ? name : "");
  if (!read_all (root, f, prov, error))
    return NULL;
  return g_steal_pointer (&f);
}
