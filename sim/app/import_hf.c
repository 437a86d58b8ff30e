#include "import_hf_priv.h"

#include <stdarg.h>
#include <string.h>

void
hf_init (Hf *h, const JsonRef *obj, const char *prefix)
{
  h->obj = obj;
  h->prefix = prefix;
  h->seen = g_ptr_array_new ();
  h->error = NULL;
}

static gboolean
was_seen (const Hf *h, const char *key)
{
  for (guint i = 0; i < h->seen->len; i++)
    if (strcmp (g_ptr_array_index (h->seen, i), key) == 0)
      return TRUE;
  return FALSE;
}

gboolean
hf_finish (Hf *h, GPtrArray *ignored, GError **error)
{
  const int n = json_len (h->obj);

  for (int i = 0; h->error == NULL && ignored != NULL && i < n; i++) {
    const JsonRef item = json_item (h->obj, i);

    if (!was_seen (h, item.key))
      g_ptr_array_add (ignored, g_strconcat (h->prefix, item.key, NULL));
  }
  g_ptr_array_free (h->seen, TRUE);
  h->seen = NULL;
  if (h->error == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&h->error));
  return FALSE;
}

void
hf_mark (Hf *h, const char *key)
{
  g_ptr_array_add (h->seen, (gpointer)key);
}

static gboolean
member (Hf *h, const char *key, JsonRef *out)
{
  if (h->error != NULL)
    return FALSE;
  hf_mark (h, key);
  if (!json_has (h->obj, key))
    return FALSE;
  if (!json_get_any (h->obj, key, out, &h->error))
    return FALSE;
  return !cJSON_IsNull (out->node);
}

gboolean
hf_object (Hf *h, const char *key, JsonRef *out)
{
  return member (h, key, out) &&
         (json_is_object (out) || json_get_object (h->obj, key, out, &h->error));
}

gboolean
hf_array (Hf *h, const char *key, JsonRef *out)
{
  return member (h, key, out) &&
         (json_is_array (out) || json_get_array (h->obj, key, out, &h->error));
}

/* The first alias that is there and not null, or NULL. All are marked: one of them was meant. */
static const char *
find (Hf *h, va_list keys)
{
  const char *found = NULL;

  for (const char *key = va_arg (keys, const char *); key != NULL;
       key = va_arg (keys, const char *)) {
    JsonRef ref;

    if (member (h, key, &ref) && found == NULL)
      found = key;
  }
  return found;
}

gboolean
hf_int (Hf *h, gint64 *out, ...)
{
  va_list keys;

  va_start (keys, out);
  const char *key = find (h, keys);
  va_end (keys);
  return key != NULL && json_get_int (h->obj, key, 0, HF_INT_MAX, out, &h->error);
}

gboolean
hf_bool (Hf *h, gboolean *out, ...)
{
  va_list keys;

  va_start (keys, out);
  const char *key = find (h, keys);
  va_end (keys);
  return key != NULL && json_get_bool (h->obj, key, out, &h->error);
}

gboolean
hf_string (Hf *h, const char **out, ...)
{
  va_list keys;

  va_start (keys, out);
  const char *key = find (h, keys);
  va_end (keys);
  return key != NULL && json_get_string (h->obj, key, out, &h->error);
}

void
hf_need (Hf *h, gint64 *out, ...)
{
  va_list keys, again;

  va_start (keys, out);
  va_copy (again, keys);
  const char *key = find (h, keys);
  va_end (keys);
  if (key != NULL) {
    json_get_int (h->obj, key, 1, HF_INT_MAX, out, &h->error);
  } else if (h->error == NULL) {
    g_autoptr (GString) names = g_string_new (NULL);

    for (key = va_arg (again, const char *); key != NULL; key = va_arg (again, const char *))
      g_string_append_printf (names, "%s%s", names->len > 0 ? " or " : "", key);
    json_fail (h->obj, JSON_ERROR_MISSING, &h->error, "%s is missing", names->str);
  }
  va_end (again);
}

void
hf_fail (Hf *h, const char *key, const char *format, ...)
{
  JsonRef at;
  va_list ap;

  if (h->error != NULL)
    return;
  va_start (ap, format);
  g_autofree char *text = g_strdup_vprintf (format, ap);
  va_end (ap);
  if (key != NULL && json_has (h->obj, key) && json_get_any (h->obj, key, &at, NULL))
    json_fail (&at, JSON_ERROR_RANGE, &h->error, "%s", text);
  else
    json_fail (h->obj, JSON_ERROR_RANGE, &h->error, "%s", text);
}

static void
unknown_type (Hf *h, const char *type)
{
  g_autofree const char **names = hf_family_names ();
  g_autofree char *all = g_strjoinv (", ", (char **)names);
  const char *near = nearest_name (type, names);

  if (near != NULL)
    hf_fail (h, "model_type", "unknown model_type \"%s\" (nearest: %s; supported: %s)", type, near,
             all);
  else
    hf_fail (h, "model_type", "unknown model_type \"%s\" (supported: %s)", type, all);
}

static void
check (Hf *h, const ModelSpec *m)
{
  g_autoptr (GError) why = NULL;

  if (h->error == NULL && !model_check (m, &why))
    json_fail (h->obj, JSON_ERROR_INCONSISTENT, &h->error, "%s", why->message);
}

/* The text part may lack model_type, or say it more exactly than the file around it. */
static void
read_text (Hf *h, const JsonRef *text, const char *outer_type, ModelSpec *m, GPtrArray *ignored)
{
  const char *type = outer_type;
  Hf inner;

  hf_init (&inner, text, "text_config.");
  hf_string (&inner, &type, "model_type", NULL);
  const HfFamily *f = hf_family_find (type);
  if (f == NULL)
    unknown_type (&inner, type);
  else
    hf_family_read (&inner, f, m);
  check (&inner, m);
  hf_finish (&inner, ignored, &h->error);
}

gboolean
import_hf_config (const JsonRef *root, ModelSpec *out, GPtrArray *ignored_keys, GError **error)
{
  const char *type = NULL, *name = NULL;
  JsonRef text;
  Hf h;

  model_init (out);
  if (!json_is_object (root))
    return json_fail (root, JSON_ERROR_TYPE, error, "a config.json is an object");
  hf_init (&h, root, "");
  if (!hf_string (&h, &type, "model_type", NULL) && h.error == NULL)
    json_fail (root, JSON_ERROR_MISSING, &h.error,
               "model_type is missing: not a Hugging Face config.json?");
  hf_string (&h, &name, "_name_or_path", NULL);
  if (h.error == NULL) {
    out->name = g_strdup (name != NULL && *name != '\0' ? name : type);
    if (hf_object (&h, "text_config", &text)) {
      read_text (&h, &text, type, out, ignored_keys);
    } else {
      const HfFamily *f = hf_family_find (type);

      if (f == NULL)
        unknown_type (&h, type);
      else
        hf_family_read (&h, f, out);
      check (&h, out);
    }
  }
  if (hf_finish (&h, ignored_keys, error))
    return TRUE;
  model_clear (out);
  return FALSE;
}
