/* Scenario documents: extends, parts by name, overrides. What the values mean is in
 * scenario_read.c. */
#include "scenario_priv.h"
#include "json_write.h"
#include "paths.h"
#include "store.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

#define EXTENDS_MAX 16

static const struct {
  const char *key, *kind;
  gboolean late; /* its reader resolves "extends" itself */
} parts[] = {
    {"model", "models", FALSE},         {"software", "software", FALSE},
    {"cluster.gpu", "hw", FALSE},       {"cluster.fabric", "fabrics", FALSE},
    {"job.failures", "failures", TRUE}, {"job.prices", "prices", TRUE},
};

/* ---- extends ---- */

/* The files that are being loaded, from the first to the one that extends no further: real paths to
 * compare, names to show. */
typedef struct {
  char *real[EXTENDS_MAX], *shown[EXTENDS_MAX];
  guint n;
} Chain;

static void
chain_clear (Chain *c)
{
  for (guint i = 0; i < c->n; i++) {
    free (c->real[i]);
    g_free (c->shown[i]);
  }
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Chain, chain_clear)

/* TRUE when path is new in the chain. by: the value that names it; NULL for the first. */
static gboolean
chain_add (Chain *c, const char *path, const JsonRef *by, GError **error)
{
  char *real = realpath (path, NULL);
  for (guint i = 0; by != NULL && real != NULL && i < c->n; i++) {
    if (strcmp (real, c->real[i]) != 0)
      continue;
    GString *circle = g_string_new (NULL);
    for (guint k = i; k < c->n; k++)
      g_string_append_printf (circle, "%s -> ", c->shown[k]);
    g_string_append (circle, c->shown[i]);
    json_fail (by, JSON_ERROR_INCONSISTENT, error,
               "a file extends itself (found %s; allowed: a chain that ends)", circle->str);
    g_string_free (circle, TRUE);
    free (real);
    return FALSE;
  }
  if (c->n == EXTENDS_MAX) {
    free (real);
    return json_fail (by, JSON_ERROR_INCONSISTENT, error,
                      "too many files extend each other (allowed: up to %d)", EXTENDS_MAX);
  }
  c->real[c->n] = real != NULL ? real : strdup (path);
  c->shown[c->n++] = g_path_get_basename (path);
  return TRUE;
}

char *
scenario_find_file (const JsonRef *ref, const char *kind, GError **error)
{
  const char *name;
  if (!json_value_string (ref, &name, error))
    return NULL;
  g_autoptr (GError) why = NULL;
  char *path = data_find (kind, name, json_file (ref), &why);
  if (path == NULL && strcmp (kind, "hw") == 0) { /* a name in use: "MI300X", "RTX 4090" */
    g_autoptr (Store) st = store_new ();
    const GpuProfile *g = store_gpu (st, name, NULL, NULL);
    path = g != NULL ? data_find (kind, gpu_name (g), NULL, NULL) : NULL;
  }
  if (path == NULL)
    json_fail (ref, (JsonError)why->code, error, "%s", why->message);
  return path;
}

static JsonDoc *load_extended (const char *path, const char *kind, const JsonRef *by, Chain *chain,
                               GError **error);

/* What doc's "extends" names, with doc merged over it; doc itself when it has none. Takes doc. */
static JsonDoc *
apply_extends (JsonDoc *doc, const char *kind, Chain *chain, GError **error)
{
  g_autoptr (JsonDoc) own = doc;
  JsonRef root = json_root (own), extends;
  if (!json_has (&root, "extends"))
    return g_steal_pointer (&own);
  if (!json_get_any (&root, "extends", &extends, error))
    return NULL;
  g_autofree char *path = scenario_find_file (&extends, kind, error);
  if (path == NULL)
    return NULL;
  JsonDoc *base = load_extended (path, kind, &extends, chain, error);
  if (base == NULL)
    return NULL;
  json_doc_remove (own, "extends");
  json_doc_merge (base, own);
  return base;
}

static JsonDoc *
load_extended (const char *path, const char *kind, const JsonRef *by, Chain *chain, GError **error)
{
  if (!chain_add (chain, path, by, error))
    return NULL;
  g_autoptr (JsonDoc) doc = json_doc_load (path, error);
  if (doc == NULL)
    return NULL;
  JsonRef root = json_root (doc);
  if (!json_is_object (&root)) {
    json_fail (&root, JSON_ERROR_TYPE, error, "wrong type (allowed: an object)");
    return NULL;
  }
  return apply_extends (g_steal_pointer (&doc), kind, chain, error);
}

JsonDoc *
scenario_load_chain (const char *path, const char *kind, GError **error)
{
  g_auto (Chain) chain = {.n = 0};
  return load_extended (path, kind, NULL, &chain, error);
}

/* ---- parts ---- */

guint
scenario_locate (JsonDoc *doc, const char *dotted, JsonRef at[SCENARIO_KEY_PARTS + 1])
{
  g_auto (GStrv) keys = g_strsplit (dotted, ".", SCENARIO_KEY_PARTS);
  guint n = 0;
  at[0] = json_root (doc);
  while (keys[n] != NULL && json_has (&at[n], keys[n]) &&
         json_get_any (&at[n], keys[n], &at[n + 1], NULL))
    n++;
  return n;
}

/* The value of a part, when the document has it. */
static gboolean
find_part (JsonDoc *doc, const char *key, JsonRef at[SCENARIO_KEY_PARTS + 1], JsonRef *part)
{
  guint want = strchr (key, '.') == NULL ? 1 : 2;
  if (scenario_locate (doc, key, at) != want)
    return FALSE;
  *part = at[want];
  return TRUE;
}

/* A part given by name becomes the object in the named file. */
static gboolean
expand_named (JsonDoc *doc, guint i, GError **error)
{
  JsonRef at[SCENARIO_KEY_PARTS + 1], part;
  if (!find_part (doc, parts[i].key, at, &part) || !json_is_string (&part))
    return TRUE;
  g_autofree char *path = scenario_find_file (&part, parts[i].kind, error);
  g_autoptr (JsonDoc) file = path == NULL ? NULL : scenario_load_chain (path, parts[i].kind, error);
  return file != NULL && json_doc_put (doc, parts[i].key, file, error);
}

/* A part in place that has "extends" is merged over what it extends. */
static gboolean
expand_extends (JsonDoc *doc, GError **error)
{
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++) {
    JsonRef at[SCENARIO_KEY_PARTS + 1], part;
    if (parts[i].late || !find_part (doc, parts[i].key, at, &part) || !json_is_object (&part) ||
        !json_has (&part, "extends"))
      continue;
    /* Errors are to show the place in the scenario, so that the name is looked up there first. */
    JsonRef extends;
    g_assert (json_get_any (&part, "extends", &extends, NULL));
    g_autofree char *path = scenario_find_file (&extends, parts[i].kind, error);
    g_autoptr (JsonDoc) base =
        path == NULL ? NULL : scenario_load_chain (path, parts[i].kind, error);
    if (base == NULL)
      return FALSE;
    g_autoptr (JsonDoc) over = json_doc_copy (&part);
    json_doc_remove (over, "extends");
    json_doc_merge (base, over);
    if (!json_doc_put (doc, parts[i].key, base, error))
      return FALSE;
  }
  return TRUE;
}

/* ---- overrides ---- */

/* What was measured on a run says nothing about the run that an override makes of it. */
static void
drop_published (JsonDoc *doc, const char *key)
{
  static const char *const same_run[] = {"name", "run.", "published"};
  for (guint i = 0; i < G_N_ELEMENTS (same_run); i++)
    if (g_str_has_prefix (key, same_run[i]))
      return;
  json_doc_remove (doc, "published");
}

gboolean
scenario_set (JsonDoc *doc, const char *key_value, GError **error)
{
  const char *equals = strchr (key_value, '=');
  if (equals == NULL || equals == key_value) {
    g_autofree char *quoted = text_quoted (key_value);
    g_set_error (error, JSON_ERROR, JSON_ERROR_SYNTAX,
                 "--set: no KEY=VALUE (found %s; allowed: a key and a value, as in parallel.tp=8)",
                 quoted);
    return FALSE;
  }
  g_autofree char *key = g_strndup (key_value, (gsize)(equals - key_value));
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++) {
    gsize n = strlen (parts[i].key);
    if (strncmp (key, parts[i].key, n) == 0 && key[n] == '.' && !expand_named (doc, i, error))
      return FALSE;
  }
  drop_published (doc, key);
  return json_doc_set (doc, key, equals + 1, error);
}

/* Names of whole runs and of campaigns alike. */
static void
unknown_scenario (const char *name, GError **error)
{
  const guint shown = 60;
  g_auto (GStrv) train = data_list ("train"), campaign = data_list ("campaign");
  g_autoptr (GPtrArray) both = g_ptr_array_new ();
  for (guint i = 0; train[i] != NULL; i++)
    g_ptr_array_add (both, train[i]);
  for (guint i = 0; campaign[i] != NULL; i++)
    g_ptr_array_add (both, campaign[i]);
  guint n = both->len;
  g_ptr_array_add (both, NULL);
  const char *const *names = (const char *const *)(gpointer)both->pdata;
  const char *near = nearest_name (name, names);
  g_autofree char *quoted = text_quoted (name), *all = text_list (names, shown);
  g_set_error (error, JSON_ERROR, JSON_ERROR_RANGE,
               "unknown scenario (found %s; %s%s%sallowed: %s%s)", quoted,
               near != NULL ? "nearest: " : "", near != NULL ? near : "", near != NULL ? "; " : "",
               all, n == 0 ? "; no shipped files were found" : "");
}

/* The file of a scenario given on the command line. A file in the working directory goes before a
 * shipped scenario of the same name. */
static char *
scenario_path (const char *name, GError **error)
{
  if (data_is_path (name) || g_file_test (name, G_FILE_TEST_IS_REGULAR))
    return g_strdup (name);
  char *path = data_find ("train", name, NULL, NULL);
  if (path == NULL)
    path = data_find ("campaign", name, NULL, NULL);
  if (path == NULL)
    unknown_scenario (name, error);
  return path;
}

/* A scenario without a name has that of its file. */
static gboolean
set_name (JsonDoc *doc, const char *file, GError **error)
{
  JsonRef root = json_root (doc);
  if (json_has (&root, "name"))
    return TRUE;
  g_autofree char *base = g_path_get_basename (file);
  if (g_str_has_suffix (base, ".json"))
    base[strlen (base) - strlen (".json")] = '\0';
  g_autoptr (GString) quoted = g_string_new (NULL);
  g_autoptr (JsonWriter) w = json_writer_new (quoted, 0);
  jw_string (w, NULL, base);
  return json_doc_set (doc, "name", quoted->str, error);
}

JsonDoc *
scenario_document (const char *path, const char *const *sets, GError **error)
{
  g_autofree char *file = scenario_path (path, error);
  if (file == NULL)
    return NULL;
  g_autoptr (JsonDoc) doc = scenario_load_chain (file, "train", error);
  if (doc == NULL || !expand_extends (doc, error) || !set_name (doc, file, error))
    return NULL;
  for (guint i = 0; sets != NULL && sets[i] != NULL; i++)
    if (!scenario_set (doc, sets[i], error))
      return NULL;
  /* Again: an override may be a whole part. */
  return expand_extends (doc, error) ? g_steal_pointer (&doc) : NULL;
}

JsonDoc *
scenario_document_text (const char *name, const char *text, GError **error)
{
  g_auto (Chain) chain = {.n = 0};
  g_autoptr (JsonDoc) parsed = json_doc_parse (name, text, strlen (text), error);
  if (parsed == NULL)
    return NULL;
  JsonRef root = json_root (parsed);
  if (!json_is_object (&root)) {
    json_fail (&root, JSON_ERROR_TYPE, error, "wrong type (allowed: an object)");
    return NULL;
  }
  g_autoptr (JsonDoc) doc = apply_extends (g_steal_pointer (&parsed), "train", &chain, error);
  return doc != NULL && expand_extends (doc, error) && set_name (doc, name, error)
             ? g_steal_pointer (&doc)
             : NULL;
}

gboolean
scenario_load (const char *path, const char *const *sets, Spec *out, GError **error)
{
  g_autoptr (JsonDoc) doc = scenario_document (path, sets, error);
  return doc != NULL && scenario_read (doc, out, error);
}
