/* Getters: what a value must be, and the error when it is not. */
#include "json_priv.h"
#include "text.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define MESSAGE_MAX_CHARS 1500
#define PATH_MAX_CHARS    160
#define NAMES_SHOWN       24
#define EXACT_INT_MAX     9007199254740991.0 /* 2^53 - 1: above, neighbours share a double */

/* ---- where, and errors ---- */

char *
json_path (const JsonRef *ref)
{
  const JsonRef *chain[2 * JSON_MAX_DEPTH];
  guint n = 0;
  for (const JsonRef *r = ref; r != NULL && n < G_N_ELEMENTS (chain); r = r->parent)
    chain[n++] = r;
  GString *path = g_string_new (NULL);
  while (n-- > 0) {
    if (chain[n]->key != NULL)
      json_path_append (path, chain[n]->key, -1);
    else if (chain[n]->index >= 0)
      g_string_append_printf (path, "/%d", chain[n]->index);
  }
  if (path->len == 0)
    g_string_append_c (path, '/');
  return g_string_free (path, FALSE);
}

char *
json_place (const char *name, gboolean is_path, guint line)
{
  g_autofree char *plain = text_printable (name, -1, G_MAXSIZE);
  if (!is_path && g_str_has_prefix (name, "--set "))
    return g_steal_pointer (&plain);
  return g_strdup_printf ("%s:%u", plain, line);
}

char *
json_where (const JsonRef *ref)
{
  guint file, line;
  json_origin (ref, &file, &line);
  const JsonFile *f = g_ptr_array_index (ref->doc->files, file);
  return json_place (f->name, f->is_path, line);
}

void
json_set_error (GError **error, JsonError code, const char *place, const char *path,
                const char *message)
{
  glong n = g_utf8_strlen (path, -1);
  g_autofree char *head =
      n > PATH_MAX_CHARS ? g_utf8_substring (path, 0, PATH_MAX_CHARS / 2) : NULL;
  const char *tail = g_utf8_offset_to_pointer (path, MAX (n - PATH_MAX_CHARS / 2, 0));
  g_set_error (error, JSON_ERROR, (int)code, "%s: %s%s%s: %s", place, head != NULL ? head : path,
               head != NULL ? "..." : "", head != NULL ? tail : "", message);
}

gboolean
json_fail (const JsonRef *ref, JsonError code, GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *plain = text_printable (message, -1, MESSAGE_MAX_CHARS);
  g_autofree char *where = json_where (ref);
  g_autofree char *path = json_path (ref);
  json_set_error (error, code, where, path, plain);
  return FALSE;
}

/* The shortest form that reads back the same; buf of at least G_ASCII_DTOSTR_BUF_SIZE. */
static const char *
number_text (double v, char *buf)
{
  if (v == floor (v) && fabs (v) < 1e15)
    return g_ascii_formatd (buf, G_ASCII_DTOSTR_BUF_SIZE, "%.0f", v);
  for (int digits = 6; digits <= 17; digits++) {
    char format[8];
    g_snprintf (format, sizeof format, "%%.%dg", digits);
    g_ascii_formatd (buf, G_ASCII_DTOSTR_BUF_SIZE, format, v);
    if (g_ascii_strtod (buf, NULL) == v)
      break;
  }
  return buf;
}

char *
json_describe (const cJSON *node)
{
  char buf[G_ASCII_DTOSTR_BUF_SIZE];
  if (node == NULL)
    return g_strdup ("nothing");
  if (cJSON_IsNumber (node))
    return g_strconcat ("number ", number_text (node->valuedouble, buf), NULL);
  if (cJSON_IsString (node)) {
    g_autofree char *quoted = text_quoted (node->valuestring);
    return g_strconcat ("string ", quoted, NULL);
  }
  if (cJSON_IsBool (node))
    return g_strdup (cJSON_IsTrue (node) ? "true" : "false");
  return g_strdup (cJSON_IsNull (node) ? "null" : cJSON_IsArray (node) ? "an array" : "an object");
}

static gboolean
fail_type (const JsonRef *ref, const char *allowed, GError **error)
{
  g_autofree char *found = json_describe (ref->node);
  return json_fail (ref, JSON_ERROR_TYPE, error, "wrong type (found %s; allowed: %s)", found,
                    allowed);
}

/* "at least 1", "0 to 8" … for a message. */
static char *
range_text (double min, double max)
{
  char lo[G_ASCII_DTOSTR_BUF_SIZE], hi[G_ASCII_DTOSTR_BUF_SIZE];
  gboolean positive = min > 0 && min <= DBL_MIN; /* "any positive number" */
  gboolean below = min <= (double)G_MININT64 / 2, above = max >= (double)G_MAXINT64 / 2;
  number_text (min, lo);
  number_text (max, hi);
  if (below && above)
    return g_strdup ("any number");
  if (below)
    return g_strdup_printf ("up to %s", hi);
  if (positive)
    return above ? g_strdup ("more than 0") : g_strdup_printf ("more than 0, up to %s", hi);
  return above ? g_strdup_printf ("at least %s", lo) : g_strdup_printf ("%s to %s", lo, hi);
}

/* ---- children ---- */

const cJSON *
json_child (const JsonRef *obj, const char *key)
{
  return cJSON_IsObject (obj->node) ? cJSON_GetObjectItemCaseSensitive (obj->node, key) : NULL;
}

JsonRef
json_child_ref (const JsonRef *obj, const char *key)
{
  const cJSON *node = json_child (obj, key);
  return (JsonRef){obj->doc, node, obj, node != NULL ? node->string : key, -1};
}

gboolean
json_has (const JsonRef *obj, const char *key)
{
  return json_child (obj, key) != NULL;
}

gboolean
json_is_object (const JsonRef *ref)
{
  return cJSON_IsObject (ref->node);
}

gboolean
json_is_string (const JsonRef *ref)
{
  return cJSON_IsString (ref->node);
}

gboolean
json_is_array (const JsonRef *ref)
{
  return cJSON_IsArray (ref->node);
}

gboolean
json_is_number (const JsonRef *ref)
{
  return cJSON_IsNumber (ref->node);
}

/* A required member; allowed says in the error what it should be. */
static gboolean
require (const JsonRef *obj, const char *key, const char *allowed, JsonRef *out, GError **error)
{
  if (!cJSON_IsObject (obj->node))
    return fail_type (obj, "an object", error);
  *out = json_child_ref (obj, key);
  if (out->node != NULL)
    return TRUE;
  return json_fail (out, JSON_ERROR_MISSING, error, "is missing (found no such key; needed: %s)",
                    allowed);
}

gboolean
json_get_any (const JsonRef *obj, const char *key, JsonRef *out, GError **error)
{
  return require (obj, key, "a value", out, error);
}

gboolean
json_get_object (const JsonRef *obj, const char *key, JsonRef *out, GError **error)
{
  if (!require (obj, key, "an object", out, error))
    return FALSE;
  return json_is_object (out) || fail_type (out, "an object", error);
}

gboolean
json_get_array (const JsonRef *obj, const char *key, JsonRef *out, GError **error)
{
  if (!require (obj, key, "an array", out, error))
    return FALSE;
  return json_is_array (out) || fail_type (out, "an array", error);
}

static void
cursor_at (const JsonRef *arr)
{
  if (arr->doc->cursor.parent == arr->node)
    return;
  arr->doc->cursor.parent = arr->node;
  arr->doc->cursor.node = NULL;
  arr->doc->cursor.len = -1;
}

int
json_len (const JsonRef *arr)
{
  g_assert (json_is_array (arr) || json_is_object (arr));
  cursor_at (arr);
  if (arr->doc->cursor.len < 0)
    arr->doc->cursor.len = cJSON_GetArraySize (arr->node);
  return arr->doc->cursor.len;
}

JsonRef
json_item (const JsonRef *arr, int i)
{
  g_assert (json_is_array (arr) || json_is_object (arr));
  g_assert (i >= 0);
  cursor_at (arr);
  const cJSON *node = arr->doc->cursor.node;
  int at = arr->doc->cursor.index;
  if (node == NULL || at > i) {
    node = arr->node->child;
    at = 0;
  }
  for (; at < i && node != NULL; at++)
    node = node->next;
  g_assert (node != NULL);
  arr->doc->cursor.node = node;
  arr->doc->cursor.index = i;
  gboolean object = json_is_object (arr);
  return (JsonRef){arr->doc, node, arr, object ? node->string : NULL, object ? -1 : i};
}

/* ---- values ---- */

gboolean
json_value_double (const JsonRef *ref, double min, double max, double *out, GError **error)
{
  if (!json_is_number (ref))
    return fail_type (ref, "a number", error);
  double v = ref->node->valuedouble;
  if (isfinite (v) && v >= min && v <= max) {
    *out = v;
    return TRUE;
  }
  g_autofree char *range = range_text (min, max);
  char buf[G_ASCII_DTOSTR_BUF_SIZE];
  return json_fail (ref, JSON_ERROR_RANGE, error, "out of range (found %s; allowed: %s)",
                    number_text (v, buf), range);
}

static gboolean
fail_int (const JsonRef *ref, gint64 min, gint64 max, GError **error)
{
  g_autofree char *range = range_text ((double)min, (double)max);
  char buf[G_ASCII_DTOSTR_BUF_SIZE];
  double v = ref->node->valuedouble;
  number_text (v, buf);
  if (v != floor (v))
    return json_fail (ref, JSON_ERROR_RANGE, error,
                      "not a whole number (found %s; allowed: whole numbers, %s)", buf, range);
  if (fabs (v) > EXACT_INT_MAX)
    return json_fail (ref, JSON_ERROR_RANGE, error,
                      "too big to be read exactly (found %s; allowed: up to 9007199254740991)",
                      buf);
  return json_fail (ref, JSON_ERROR_RANGE, error, "out of range (found %s; allowed: %s)", buf,
                    range);
}

gboolean
json_value_int (const JsonRef *ref, gint64 min, gint64 max, gint64 *out, GError **error)
{
  if (!json_is_number (ref))
    return fail_type (ref, "a whole number", error);
  double v = ref->node->valuedouble;
  if (v != floor (v) || fabs (v) > EXACT_INT_MAX || (gint64)v < min || (gint64)v > max)
    return fail_int (ref, min, max, error);
  *out = (gint64)v;
  return TRUE;
}

gboolean
json_value_string (const JsonRef *ref, const char **out, GError **error)
{
  if (!json_is_string (ref))
    return fail_type (ref, "a string", error);
  *out = ref->node->valuestring;
  return TRUE;
}

static gboolean
value_enum (const JsonRef *ref, const char *const *names, int *out, GError **error)
{
  if (!json_is_string (ref)) {
    g_autofree char *list = text_list (names, NAMES_SHOWN);
    g_autofree char *allowed = g_strconcat ("one of ", list, NULL);
    return fail_type (ref, allowed, error);
  }
  const char *found = ref->node->valuestring;
  for (int i = 0; names[i] != NULL; i++)
    if (strcmp (found, names[i]) == 0) {
      *out = i;
      return TRUE;
    }
  g_autofree char *list = text_list (names, NAMES_SHOWN);
  g_autofree char *quoted = text_quoted (found);
  const char *near = nearest_name (found, names);
  return json_fail (ref, JSON_ERROR_RANGE, error, "unknown name (found %s; %s%s%sallowed: %s)",
                    quoted, near != NULL ? "nearest: " : "", near != NULL ? near : "",
                    near != NULL ? "; " : "", list);
}

gboolean
json_get_double (const JsonRef *obj, const char *key, double min, double max, double *out,
                 GError **error)
{
  JsonRef ref;
  return require (obj, key, "a number", &ref, error) &&
         json_value_double (&ref, min, max, out, error);
}

gboolean
json_opt_double (const JsonRef *obj, const char *key, double min, double max, double *out,
                 GError **error)
{
  return !json_has (obj, key) || json_get_double (obj, key, min, max, out, error);
}

gboolean
json_get_int (const JsonRef *obj, const char *key, gint64 min, gint64 max, gint64 *out,
              GError **error)
{
  JsonRef ref;
  return require (obj, key, "a whole number", &ref, error) &&
         json_value_int (&ref, min, max, out, error);
}

gboolean
json_opt_int (const JsonRef *obj, const char *key, gint64 min, gint64 max, gint64 *out,
              GError **error)
{
  return !json_has (obj, key) || json_get_int (obj, key, min, max, out, error);
}

gboolean
json_get_bool (const JsonRef *obj, const char *key, gboolean *out, GError **error)
{
  JsonRef ref;
  if (!require (obj, key, "true or false", &ref, error))
    return FALSE;
  if (!cJSON_IsBool (ref.node))
    return fail_type (&ref, "true or false", error);
  *out = cJSON_IsTrue (ref.node);
  return TRUE;
}

gboolean
json_opt_bool (const JsonRef *obj, const char *key, gboolean *out, GError **error)
{
  return !json_has (obj, key) || json_get_bool (obj, key, out, error);
}

gboolean
json_get_string (const JsonRef *obj, const char *key, const char **out, GError **error)
{
  JsonRef ref;
  return require (obj, key, "a string", &ref, error) && json_value_string (&ref, out, error);
}

gboolean
json_opt_string (const JsonRef *obj, const char *key, const char **out, GError **error)
{
  return !json_has (obj, key) || json_get_string (obj, key, out, error);
}

gboolean
json_get_enum (const JsonRef *obj, const char *key, const char *const *names, int *out,
               GError **error)
{
  JsonRef ref;
  return require (obj, key, "a name", &ref, error) && value_enum (&ref, names, out, error);
}

gboolean
json_opt_enum (const JsonRef *obj, const char *key, const char *const *names, int *out,
               GError **error)
{
  return !json_has (obj, key) || json_get_enum (obj, key, names, out, error);
}

gboolean
json_check_keys (const JsonRef *obj, const char *const *allowed, GError **error)
{
  if (!json_is_object (obj))
    return fail_type (obj, "an object", error);
  for (const cJSON *c = obj->node->child; c != NULL; c = c->next) {
    if (g_strv_contains (allowed, c->string))
      continue;
    JsonRef ref = {obj->doc, c, obj, c->string, -1};
    g_autofree char *quoted = text_quoted (c->string);
    g_autofree char *list = text_list (allowed, NAMES_SHOWN);
    const char *near = nearest_name (c->string, allowed);
    return json_fail (
        &ref, JSON_ERROR_UNKNOWN_KEY, error, "unknown key (found %s; %s%s%sallowed: %s)", quoted,
        near != NULL ? "nearest: " : "", near != NULL ? near : "", near != NULL ? "; " : "", list);
  }
  return TRUE;
}
