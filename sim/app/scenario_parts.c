/* The parts of a scenario (gpu, fabric, model, software): from their own files or in place, each
 * read once where a cache is given. */
#include "import_hf.h"
#include "paths.h"
#include "read_fabric.h"
#include "read_gpu.h"
#include "read_model.h"
#include "read_software.h"
#include "scenario_priv.h"

#include <string.h>

typedef enum { SCEN_GPU, SCEN_FABRIC, SCEN_MODEL, SCEN_SOFTWARE } ScenPartKind;
static const char *const kind_folders[] = {"hw", "fabrics", "models", "software"};
static const char *const kind_keys[] = {"gpu", "fabric", "model", "software"};

typedef struct {
  ScenPartKind kind;
  gpointer data; /* GpuProfile, Fabric, ModelSpec or SoftwareProfile; owned */
  char *profile; /* "hw/H100-SXM-80GB", for provenance */
} ScenPart;

struct ScenarioParts {
  GHashTable *parts; /* what names it (see part_key) → ScenPart; only looked up */
};

/* More than a sweep over the shipped profiles needs; values inside a part can be varied without
 * end. */
#define CACHE_PARTS_MAX 256

static void
part_free (gpointer p)
{
  ScenPart *part = p;
  if (part == NULL)
    return;
  if (part->data != NULL && part->kind == SCEN_GPU)
    gpu_profile_free (part->data);
  if (part->data != NULL && part->kind == SCEN_FABRIC)
    fabric_free (part->data);
  if (part->data != NULL && part->kind == SCEN_MODEL) {
    model_clear (part->data);
    g_free (part->data);
  }
  if (part->data != NULL && part->kind == SCEN_SOFTWARE) {
    software_clear (part->data);
    g_free (part->data);
  }
  g_free (part->profile);
  g_free (part);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (ScenPart, part_free)

ScenarioParts *
scenario_parts_new (void)
{
  ScenarioParts *c = g_new0 (ScenarioParts, 1);
  c->parts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, part_free);
  return c;
}

void
scenario_parts_free (ScenarioParts *c)
{
  if (c == NULL)
    return;
  g_hash_table_unref (c->parts);
  g_free (c);
}

void
scenario_parts_trim (ScenarioParts *c)
{
  if (c != NULL && g_hash_table_size (c->parts) > CACHE_PARTS_MAX)
    g_hash_table_remove_all (c->parts);
}

/* ---- opening ---- */

/* A part and the object that holds it: in place, or the root of its own file. */
typedef struct {
  JsonDoc *file; /* NULL when in place */
  JsonRef in_scenario, object;
  char *name; /* for reports */
} OpenPart;

static void
open_clear (OpenPart *p)
{
  g_clear_pointer (&p->file, json_doc_free);
  g_clear_pointer (&p->name, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (OpenPart, open_clear)

static gboolean
open_file (OpenPart *p, const char *kind, GError **error)
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

/* p->object borrows p: do not copy it. profile: what provenance calls it. */
static gboolean
open_part (OpenPart *p, const char *kind, char **profile, GError **error)
{
  const char *name = "unnamed";
  if (json_is_string (&p->in_scenario)) {
    if (!open_file (p, kind, error))
      return FALSE;
    *profile = g_strdup_printf ("%s/%s", kind, p->name);
    return TRUE;
  }
  if (!json_is_object (&p->in_scenario))
    return json_fail (&p->in_scenario, JSON_ERROR_TYPE, error,
                      "wrong type (allowed: a name, a path of a .json file, or an object)");
  p->object = p->in_scenario;
  if (!json_opt_string (&p->object, "name", &name, error))
    return FALSE;
  p->name = g_strdup (name);
  *profile = g_strdup_printf ("%s/%s (in place)", kind, name);
  return TRUE;
}

/* ---- reading ---- */

/* "model": { "hf_config": PATH } */
static gboolean
read_hf_model (const JsonRef *model, ModelSpec *out, char **profile, GError **error)
{
  static const char *const keys[] = {"hf_config", NULL};
  JsonRef at;
  const char *name;
  if (!json_check_keys (model, keys, error) ||
      !json_get_string (model, "hf_config", &name, error) ||
      !json_get_any (model, "hf_config", &at, error))
    return FALSE;
  g_autofree char *path = path_relative_to (name, json_file (&at));
  if (!g_file_test (path, G_FILE_TEST_EXISTS))
    return json_fail (&at, JSON_ERROR_FILE, error, "no such file (found \"%s\")", path);
  g_autoptr (JsonDoc) doc = json_doc_load (path, error);
  if (doc == NULL)
    return FALSE;
  JsonRef root = json_root (doc);
  g_autofree char *base = g_path_get_basename (path);
  *profile = g_strdup_printf ("models/%s (Hugging Face)", base);
  return import_hf_config (&root, out, NULL, error);
}

static ModelSpec *
read_model_part (OpenPart *p, char **profile, GError **error)
{
  ModelSpec *m = g_new0 (ModelSpec, 1);
  gboolean hf = json_is_object (&p->in_scenario) && json_has (&p->in_scenario, "hf_config");
  /* The readers initialise it, also when they fail. */
  gboolean ok = hf ? read_hf_model (&p->in_scenario, m, profile, error)
                   : open_part (p, kind_folders[SCEN_MODEL], profile, error) &&
                         read_model (&p->object, m, error);
  if (!ok) {
    g_free (m);
    return NULL;
  }
  if (!hf && m->name == NULL)
    m->name = g_strdup (p->name);
  return m;
}

static SoftwareProfile *
read_software_part (OpenPart *p, char **profile, GPtrArray *prov, GError **error)
{
  SoftwareProfile *sw = g_new0 (SoftwareProfile, 1);
  if (open_part (p, kind_folders[SCEN_SOFTWARE], profile, error) &&
      read_software (&p->object, sw, prov, error))
    return sw;
  g_free (sw);
  return NULL;
}

static gpointer
read_kind (ScenPartKind kind, OpenPart *p, char **profile, GPtrArray *prov, GError **error)
{
  if (kind == SCEN_MODEL)
    return read_model_part (p, profile, error);
  if (kind == SCEN_SOFTWARE)
    return read_software_part (p, profile, prov, error);
  if (!open_part (p, kind_folders[kind], profile, error))
    return NULL;
  return kind == SCEN_GPU ? (gpointer)read_gpu_profile (&p->object, p->name, prov, error)
                          : (gpointer)read_fabric (&p->object, p->name, prov, error);
}

/* Kind, the file that mentions the part, and its name or all of its text. */
static char *
part_key (ScenPartKind kind, const JsonRef *ref)
{
  char *text = cJSON_PrintUnformatted (ref->node);
  const char *file = json_file (ref);
  char *key = g_strdup_printf ("%d\n%s\n%s", (int)kind, file != NULL ? file : "", text);
  cJSON_free (text);
  return key;
}

/* The part under its key in obj. Without a cache the caller owns it (*own is set), else the cache.
 */
static ScenPart *
get_part (ScenarioParts *cache, ScenPartKind kind, const JsonRef *obj, Spec *s, ScenPart **own,
          GError **error)
{
  g_auto (OpenPart) open = {0};
  g_autofree char *key = NULL;
  *own = NULL;
  if (!json_get_any (obj, kind_keys[kind], &open.in_scenario, error))
    return NULL;
  if (cache != NULL) {
    key = part_key (kind, &open.in_scenario);
    ScenPart *known = g_hash_table_lookup (cache->parts, key);
    if (known != NULL) {
      g_ptr_array_add (s->profiles, g_strdup (known->profile));
      return known;
    }
  }
  g_autoptr (ScenPart) part = g_new0 (ScenPart, 1);
  part->kind = kind;
  part->data = read_kind (kind, &open, &part->profile, s->prov, error);
  if (part->data == NULL)
    return NULL;
  g_ptr_array_add (s->profiles, g_strdup (part->profile));
  ScenPart *result = g_steal_pointer (&part);
  if (cache != NULL)
    g_hash_table_insert (cache->parts, g_steal_pointer (&key), result);
  else
    *own = result;
  return result;
}

gboolean
scenario_read_devices (const JsonRef *root, ScenarioParts *cache, Spec *s, GError **error)
{
  g_autoptr (ScenPart) own_gpu = NULL;
  g_autoptr (ScenPart) own_fabric = NULL;
  JsonRef cluster;
  if (!json_get_object (root, "cluster", &cluster, error))
    return FALSE;
  ScenPart *gpu = get_part (cache, SCEN_GPU, &cluster, s, &own_gpu, error);
  ScenPart *fabric =
      gpu != NULL ? get_part (cache, SCEN_FABRIC, &cluster, s, &own_fabric, error) : NULL;
  if (fabric == NULL)
    return FALSE;
  s->borrowed = cache != NULL;
  s->gpu = gpu->data;
  s->fabric = fabric->data;
  if (own_gpu != NULL)
    own_gpu->data = NULL; /* the Spec's now */
  if (own_fabric != NULL)
    own_fabric->data = NULL;
  return TRUE;
}

gboolean
scenario_read_second_gpu (const JsonRef *obj, Spec *s, GError **error)
{
  g_autoptr (ScenPart) own = NULL;
  ScenPart *gpu = get_part (NULL, SCEN_GPU, obj, s, &own, error); /* a Spec owns its second one */
  if (gpu == NULL)
    return FALSE;
  s->hetero.second = g_steal_pointer (&gpu->data);
  return TRUE;
}

gboolean
scenario_read_model (const JsonRef *root, ScenarioParts *cache, Spec *s, GError **error)
{
  g_autoptr (ScenPart) own = NULL;
  const ScenPart *part = get_part (cache, SCEN_MODEL, root, s, &own, error);
  if (part == NULL)
    return FALSE;
  model_clear (&s->model);
  model_copy (&s->model, part->data);
  return TRUE;
}

/* The software profile of a scenario that names none. */
static gboolean
read_default_software (const JsonRef *root, Spec *s, GError **error)
{
  const char *name = scenario_default_software (gpu_name (s->gpu));
  g_autoptr (GError) why = NULL;
  g_autofree char *path = data_find ("software", name, NULL, &why);
  if (path == NULL) {
    JsonRef at = {root->doc, NULL, root, "software", -1};
    return json_fail (&at, (JsonError)why->code, error, "is not given, and its default: %s",
                      why->message);
  }
  g_autoptr (JsonDoc) doc = scenario_load_chain (path, "software", error);
  if (doc == NULL)
    return FALSE;
  JsonRef object = json_root (doc);
  scenario_assume (s, "software is not given: %s", name);
  g_ptr_array_add (s->profiles, g_strconcat ("software/", name, NULL));
  software_clear (&s->software);
  if (read_software (&object, &s->software, s->prov, error))
    return TRUE;
  software_init (&s->software);
  return FALSE;
}

gboolean
scenario_read_software (const JsonRef *root, ScenarioParts *cache, Spec *s, GError **error)
{
  if (!json_has (root, "software"))
    return read_default_software (root, s, error);
  g_autoptr (ScenPart) own = NULL;
  const ScenPart *part = get_part (cache, SCEN_SOFTWARE, root, s, &own, error);
  if (part == NULL)
    return FALSE;
  const SoftwareProfile *sw = part->data;
  software_clear (&s->software);
  s->software = *sw;
  s->software.name = g_strdup (sw->name);
  return TRUE;
}
