/* Parts of a scenario: a profile by name, by path or in place; devices that many scenarios share.
 */
#include "fabric.h"
#include "gpu_profile.h"
#include "read_fabric.h"
#include "read_gpu.h"
#include "scenario_priv.h"

#include <string.h>

void
scenario_part_clear (ProfilePart *p)
{
  g_clear_pointer (&p->file, json_doc_free);
  g_clear_pointer (&p->name, g_free);
}

static gboolean
part_from_file (ProfilePart *p, const char *kind, GError **error)
{
  g_autofree char *path = scenario_find_file (&p->in_scenario, kind, error);
  p->file = path == NULL ? NULL : scenario_load_chain (path, kind, error);
  if (p->file == NULL)
    return FALSE;
  p->object = json_root (p->file);
  p->name = g_path_get_basename (path);
  if (g_str_has_suffix (p->name, ".json"))
    p->name[strlen (p->name) - strlen (".json")] = '\0';
  return TRUE;
}

gboolean
scenario_part_open (ProfilePart *p, const JsonRef *obj, const char *key, const char *kind, Spec *s,
                    GError **error)
{
  const char *name = "unnamed";
  if (!json_get_any (obj, key, &p->in_scenario, error))
    return FALSE;
  if (json_is_string (&p->in_scenario)) {
    if (!part_from_file (p, kind, error))
      return FALSE;
    g_ptr_array_add (s->profiles, g_strdup_printf ("%s/%s", kind, p->name));
    return TRUE;
  }
  if (!json_is_object (&p->in_scenario))
    return json_fail (&p->in_scenario, JSON_ERROR_TYPE, error,
                      "wrong type (allowed: a name, a path of a .json file, or an object)");
  p->object = p->in_scenario;
  if (!json_opt_string (&p->object, "name", &name, error))
    return FALSE;
  p->name = g_strdup (name);
  g_ptr_array_add (s->profiles, g_strdup_printf ("%s/%s (in place)", kind, name));
  return TRUE;
}

/* ---- devices, shared or not ---- */

typedef struct {
  char *gpu_name, *fabric_name; /* as "hw/NAME" among the profiles */
  GpuProfile *gpu;
  Fabric *fabric;
  GPtrArray *prov; /* of both */
} Devices;

struct ScenarioParts {
  GHashTable
      *devices; /* "path of the GPU's file\npath of the fabric's" → Devices*; looked up only */
};

static void
devices_free (gpointer p)
{
  Devices *d = p;
  g_free (d->gpu_name);
  g_free (d->fabric_name);
  gpu_profile_free (d->gpu);
  fabric_free (d->fabric);
  g_ptr_array_unref (d->prov);
  g_free (d);
}

ScenarioParts *
scenario_parts_new (void)
{
  ScenarioParts *p = g_new0 (ScenarioParts, 1);
  p->devices = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, devices_free);
  return p;
}

void
scenario_parts_free (ScenarioParts *p)
{
  if (p == NULL)
    return;
  g_hash_table_unref (p->devices);
  g_free (p);
}

/* The key of both devices when both are given by name, else NULL. */
static char *
devices_key (const JsonRef *cluster)
{
  JsonRef gpu, fabric;
  if (!json_get_any (cluster, "gpu", &gpu, NULL) || !json_is_string (&gpu) ||
      !json_get_any (cluster, "fabric", &fabric, NULL) || !json_is_string (&fabric))
    return NULL;
  g_autofree char *g = scenario_find_file (&gpu, "hw", NULL);
  g_autofree char *f = scenario_find_file (&fabric, "fabrics", NULL);
  return g != NULL && f != NULL ? g_strconcat (g, "\n", f, NULL) : NULL;
}

static gpointer
copy_prov (gconstpointer p, gpointer unused G_GNUC_UNUSED)
{
  const ProvEntry *from = p;
  ProvEntry *e = g_memdup2 (from, sizeof *from);
  e->name = g_strdup (from->name);
  e->source = g_strdup (from->source);
  return e;
}

static void
borrow_devices (const Devices *d, Spec *s)
{
  s->gpu = d->gpu;
  s->fabric = d->fabric;
  s->borrowed = TRUE;
  g_ptr_array_add (s->profiles, g_strdup (d->gpu_name));
  g_ptr_array_add (s->profiles, g_strdup (d->fabric_name));
  g_ptr_array_extend (s->prov, d->prov, copy_prov, NULL);
}

static gboolean
read_devices (const JsonRef *root, Spec *s, GError **error)
{
  g_auto (ProfilePart) gpu = {0}, fabric = {0};
  JsonRef cluster;
  if (!json_get_object (root, "cluster", &cluster, error) ||
      !scenario_part_open (&gpu, &cluster, "gpu", "hw", s, error))
    return FALSE;
  s->gpu = read_gpu_profile (&gpu.object, gpu.name, s->prov, error);
  if (s->gpu == NULL || !scenario_part_open (&fabric, &cluster, "fabric", "fabrics", s, error))
    return FALSE;
  s->fabric = read_fabric (&fabric.object, fabric.name, s->prov, error);
  return s->fabric != NULL;
}

gboolean
scenario_share_devices (const JsonRef *root, ScenarioParts *parts, Spec *s, GError **error)
{
  JsonRef cluster;
  if (!json_get_object (root, "cluster", &cluster, error))
    return FALSE;
  g_autofree char *key = parts != NULL ? devices_key (&cluster) : NULL;
  Devices *d = key != NULL ? g_hash_table_lookup (parts->devices, key) : NULL;
  if (d != NULL) {
    borrow_devices (d, s);
    return TRUE;
  }
  guint before = s->prov->len;
  if (!read_devices (root, s, error))
    return FALSE;
  if (key == NULL)
    return TRUE;
  d = g_new0 (Devices, 1);
  d->gpu = s->gpu; /* they belong to parts from now on */
  d->fabric = s->fabric;
  s->borrowed = TRUE;
  d->gpu_name = g_strdup (g_ptr_array_index (s->profiles, s->profiles->len - 2));
  d->fabric_name = g_strdup (g_ptr_array_index (s->profiles, s->profiles->len - 1));
  d->prov = g_ptr_array_new_with_free_func ((GDestroyNotify)prov_entry_free);
  for (guint i = before; i < s->prov->len; i++)
    g_ptr_array_add (d->prov, copy_prov (g_ptr_array_index (s->prov, i), NULL));
  g_hash_table_insert (parts->devices, g_steal_pointer (&key), d);
  return TRUE;
}
