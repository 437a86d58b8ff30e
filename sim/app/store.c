#include "store.h"

#include <string.h>

#include "fabric.h"
#include "gpu_profile.h"
#include "paths.h"
#include "read_fabric.h"
#include "read_gpu.h"
#include "read_model.h"
#include "read_software.h"

typedef enum { KIND_GPU, KIND_FABRIC, KIND_SOFTWARE, KIND_MODEL, KIND_COUNT } Kind;
static const char *const kind_folder[KIND_COUNT] = {"hw", "fabrics", "software", "models"};

typedef struct {
  Kind kind;
  gpointer data;
  GPtrArray *prov;
} Entry;

struct Store {
  GHashTable *entries; /* "kind/path" → Entry*; only looked up */
  GHashTable *aliases; /* GPU alias → file name; made when first needed */
};

static void
entry_free (gpointer p)
{
  Entry *e = p;
  switch (e->kind) {
  case KIND_GPU:
    gpu_profile_free (e->data);
    break;
  case KIND_FABRIC:
    fabric_free (e->data);
    break;
  case KIND_SOFTWARE:
    software_clear (e->data);
    g_free (e->data);
    break;
  default:
    model_clear (e->data);
    g_free (e->data);
  }
  g_clear_pointer (&e->prov, g_ptr_array_unref);
  g_free (e);
}

Store *
store_new (void)
{
  Store *st = g_new0 (Store, 1);
  st->entries = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, entry_free);
  return st;
}

void
store_free (Store *st)
{
  if (st == NULL)
    return;
  g_hash_table_unref (st->entries);
  g_clear_pointer (&st->aliases, g_hash_table_unref);
  g_free (st);
}

JsonDoc *
store_document (const char *kind, const char *name, const char *from, GError **error)
{
  JsonDoc *doc = NULL;
  g_autofree char *next = g_strdup (name);
  g_autofree char *where = g_strdup (from);
  for (guint depth = 0; next != NULL; depth++) {
    if (depth > 8) {
      g_set_error (error, JSON_ERROR, JSON_ERROR_INCONSISTENT,
                   "%s: extends goes round in a circle or is more than 8 deep", name);
      json_doc_free (doc);
      return NULL;
    }
    g_autofree char *path = data_find (kind, next, where, error);
    JsonDoc *base = path != NULL ? json_doc_load (path, error) : NULL;
    if (base == NULL) {
      json_doc_free (doc);
      return NULL;
    }
    JsonRef root = json_root (base);
    const char *extends = NULL;
    if (!json_is_object (&root) || !json_opt_string (&root, "extends", &extends, error)) {
      if (error != NULL && *error == NULL)
        json_fail (&root, JSON_ERROR_TYPE, error, "a profile must be an object");
      json_doc_free (base);
      json_doc_free (doc);
      return NULL;
    }
    g_free (next);
    next = g_strdup (extends);
    g_free (where);
    where = g_strdup (path);
    json_doc_remove (base, "extends");
    if (doc != NULL) {
      json_doc_merge (base, doc);
      json_doc_free (doc);
    }
    doc = base;
  }
  return doc;
}

static gpointer
read_kind (Kind kind, const JsonRef *root, const char *name, GPtrArray *prov, GError **error)
{
  if (kind == KIND_GPU)
    return read_gpu_profile (root, name, prov, error);
  if (kind == KIND_FABRIC)
    return read_fabric (root, name, prov, error);
  if (kind == KIND_SOFTWARE) {
    SoftwareProfile *sw = g_new (SoftwareProfile, 1);
    software_init (sw);
    if (read_software (root, sw, prov, error))
      return sw;
    software_clear (sw);
    g_free (sw);
    return NULL;
  }
  ModelSpec *m = g_new (ModelSpec, 1);
  model_init (m);
  if (read_model (root, m, error))
    return m;
  model_clear (m);
  g_free (m);
  return NULL;
}

static gpointer
get (Store *st, Kind kind, const char *name, const char *from, GError **error)
{
  g_autofree char *path = data_find (kind_folder[kind], name, from, error);
  if (path == NULL)
    return NULL;
  g_autofree char *key = g_strdup_printf ("%d/%s", kind, path);
  Entry *e = g_hash_table_lookup (st->entries, key);
  if (e != NULL)
    return e->data;
  g_autoptr (JsonDoc) doc = store_document (kind_folder[kind], name, from, error);
  if (doc == NULL)
    return NULL;
  JsonRef root = json_root (doc);
  g_autoptr (GPtrArray) prov = g_ptr_array_new_with_free_func ((GDestroyNotify)prov_entry_free);
  gpointer data = read_kind (kind, &root, name, prov, error);
  if (data == NULL)
    return NULL;
  e = g_new0 (Entry, 1);
  e->kind = kind;
  e->data = data;
  e->prov = g_steal_pointer (&prov);
  g_hash_table_insert (st->entries, g_steal_pointer (&key), e);
  return data;
}

/* All aliases of the shipped GPUs. Damaged profiles are left to those who ask for them by name. */
static void
load_aliases (Store *st)
{
  st->aliases = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  g_auto (GStrv) names = data_list ("hw");
  for (gsize i = 0; names != NULL && names[i] != NULL; i++) {
    g_hash_table_insert (st->aliases, g_strdup (names[i]), g_strdup (names[i]));
    const GpuProfile *g = get (st, KIND_GPU, names[i], NULL, NULL);
    for (gsize k = 0; g != NULL && g->aliases != NULL && g->aliases[k] != NULL; k++)
      if (!g_hash_table_contains (st->aliases, g->aliases[k]))
        g_hash_table_insert (st->aliases, g_strdup (g->aliases[k]), g_strdup (names[i]));
  }
}

GpuProfile *
store_gpu (Store *st, const char *name, const char *from, GError **error)
{
  g_autoptr (GError) first = NULL;
  GpuProfile *g = get (st, KIND_GPU, name, from, &first);
  if (g != NULL)
    return g;
  if (!data_is_path (name)) {
    if (st->aliases == NULL)
      load_aliases (st);
    const char *file = g_hash_table_lookup (st->aliases, name);
    if (file != NULL && strcmp (file, name) != 0)
      return get (st, KIND_GPU, file, NULL, error);
  }
  g_propagate_error (error, g_steal_pointer (&first));
  return NULL;
}

Fabric *
store_fabric (Store *st, const char *name, const char *from, GError **error)
{
  return get (st, KIND_FABRIC, name, from, error);
}

const SoftwareProfile *
store_software (Store *st, const char *name, const char *from, GError **error)
{
  return get (st, KIND_SOFTWARE, name, from, error);
}

const ModelSpec *
store_model (Store *st, const char *name, const char *from, GError **error)
{
  return get (st, KIND_MODEL, name, from, error);
}

gboolean
store_model_sized (const char *name, const char *const *sizes, const gint64 *values, guint n,
                   ModelSpec *out, GError **error)
{
  g_autoptr (JsonDoc) doc = store_document (kind_folder[KIND_MODEL], name, NULL, error);
  if (doc == NULL)
    return FALSE;
  JsonRef root = json_root (doc), at;
  for (guint i = 0; i < n; i++) {
    g_autofree char *key = g_strdup_printf ("sizes.%s", sizes[i]);
    g_autofree char *text = g_strdup_printf ("%" G_GINT64_FORMAT, values[i]);
    if (!json_get_object (&root, "sizes", &at, NULL) || !json_has (&at, sizes[i]))
      continue;
    if (!json_doc_set (doc, key, text, error))
      return FALSE;
  }
  root = json_root (doc);
  return read_model (&root, out, error);
}

const GPtrArray *
store_provenance (Store *st, const char *kind, const char *name)
{
  for (Kind k = 0; k < KIND_COUNT; k++) {
    if (strcmp (kind_folder[k], kind) != 0)
      continue;
    g_autofree char *path = data_find (kind, name, NULL, NULL);
    g_autofree char *key = g_strdup_printf ("%d/%s", k, path != NULL ? path : "");
    const Entry *e = g_hash_table_lookup (st->entries, key);
    return e != NULL ? e->prov : NULL;
  }
  return NULL;
}
