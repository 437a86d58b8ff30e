/* Numbers that say where they come from. */
#include "json_priv.h"

#include <string.h>

static const char *const kind_names[] = {"measured", "vendor", "assumed", NULL};

void
prov_entry_free (ProvEntry *e)
{
  if (e == NULL)
    return;
  g_free (e->name);
  g_free (e->source);
  g_free (e);
}

/* "hw/H100-SXM-80GB:/memory/bandwidth_Bps": the last folder and the file's name without ".json", so
 * that the same profile has the same name wherever it is installed. */
static char *
entry_name (const JsonRef *ref)
{
  g_autofree char *path = json_path (ref);
  const char *file = json_file (ref);
  if (file == NULL) {
    guint index, line;
    json_origin (ref, &index, &line);
    const JsonFile *f = g_ptr_array_index (ref->doc->files, index);
    return g_strconcat (f->name, ":", path, NULL);
  }
  g_autofree char *base = g_path_get_basename (file);
  g_autofree char *folder = g_path_get_dirname (file);
  g_autofree char *last = g_path_get_basename (folder);
  if (g_str_has_suffix (base, ".json"))
    base[strlen (base) - strlen (".json")] = '\0';
  if (strcmp (last, ".") == 0 || strcmp (last, "/") == 0)
    return g_strconcat (base, ":", path, NULL);
  return g_strconcat (last, "/", base, ":", path, NULL);
}

static gboolean
read_sourced (const JsonRef *ref, double min, double max, double *out, GPtrArray *prov,
              GError **error)
{
  static const char *const keys[] = {"value", "kind", "source", "note", NULL};
  if (!cJSON_IsObject (ref->node)) {
    g_autofree char *found = json_describe (ref->node);
    return json_fail (
        ref, JSON_ERROR_TYPE, error,
        "a number with its source is expected (found %s; allowed: {\"value\": number, "
        "\"kind\": \"measured|vendor|assumed\", \"source\": \"...\"})",
        found);
  }
  double value;
  int kind;
  const char *source, *note = NULL;
  if (!json_check_keys (ref, keys, error) ||
      !json_get_double (ref, "value", min, max, &value, error) ||
      !json_get_enum (ref, "kind", kind_names, &kind, error) ||
      !json_get_string (ref, "source", &source, error) ||
      !json_opt_string (ref, "note", &note, error))
    return FALSE;
  if (strspn (source, " \t") == strlen (source)) {
    JsonRef at = json_child_ref (ref, "source");
    return json_fail (&at, JSON_ERROR_RANGE, error,
                      "is empty (found \"\"; allowed: where the number is from)");
  }
  *out = value;
  if (prov != NULL) {
    ProvEntry *e = g_new (ProvEntry, 1);
    *e = (ProvEntry){entry_name (ref), value, (ProvKind)kind, g_strdup (source)};
    g_ptr_array_add (prov, e);
  }
  return TRUE;
}

gboolean
json_get_sourced (const JsonRef *obj, const char *key, double min, double max, double *out,
                  GPtrArray *prov, GError **error)
{
  JsonRef ref;
  return json_get_any (obj, key, &ref, error) && read_sourced (&ref, min, max, out, prov, error);
}

gboolean
json_opt_sourced (const JsonRef *obj, const char *key, double min, double max, double *out,
                  GPtrArray *prov, GError **error)
{
  return !json_has (obj, key) || json_get_sourced (obj, key, min, max, out, prov, error);
}
