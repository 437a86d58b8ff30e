/* Fuzzes the JSON layer: parse, walk with every getter, write and read back, merge, set.
 *
 * The input is up to four parts with a byte 0xff (which no UTF-8 text has) between them: a
 * document, a patch, a dotted path and the text that is set there. What must hold for every input:
 *   - no crash, no leak, no undefined behaviour (the sanitizers see to that)
 *   - failure if and only if there is an error, which is one line of UTF-8
 *   - a document that was read is the same after writing and reading again
 *   - after merging and setting, every value still has a place
 */
#include "json_read.h"
#include "json_write.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      g_printerr ("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
      abort ();                                                                                    \
    }                                                                                              \
  } while (0)

static void
check_result (gboolean ok, GError **error)
{
  REQUIRE (ok == (*error == NULL));
  if (*error != NULL) {
    const char *m = (*error)->message;
    REQUIRE ((*error)->domain == JSON_ERROR);
    REQUIRE (g_utf8_validate (m, -1, NULL));
    REQUIRE (strpbrk (m, "\n\r\t\033\177") == NULL);
    REQUIRE (strstr (m, ": ") != NULL);
  }
  g_clear_error (error);
}

static void
get_member (const JsonRef *obj, const char *key)
{
  static const char *const names[] = {"red", "1f1b", "bf16", "", NULL};
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) prov = g_ptr_array_new_with_free_func ((GDestroyNotify)prov_entry_free);
  double d;
  gint64 i;
  gboolean b;
  const char *s;
  int n;
  JsonRef ref;
  check_result (json_get_double (obj, key, -1, 1e6, &d, &error), &error);
  check_result (json_get_int (obj, key, G_MININT64, G_MAXINT64, &i, &error), &error);
  check_result (json_get_bool (obj, key, &b, &error), &error);
  check_result (json_get_string (obj, key, &s, &error), &error);
  check_result (json_get_enum (obj, key, names, &n, &error), &error);
  check_result (json_get_object (obj, key, &ref, &error), &error);
  check_result (json_get_array (obj, key, &ref, &error), &error);
  check_result (json_get_any (obj, key, &ref, &error), &error);
  check_result (json_get_sourced (obj, key, 0, 1e12, &d, prov, &error), &error);
  check_result (json_opt_double (obj, key, G_MINDOUBLE, 1, &d, &error), &error);
  check_result (json_opt_int (obj, key, 1, 8, &i, &error), &error);
}

/* Calls what there is for this value and those in it; writes it to w. */
static void
walk (const JsonRef *ref, JsonWriter *w)
{
  static const char *const keys[] = {"format", "cluster", "tp", "value", "kind", "source", NULL};
  g_autoptr (GError) error = NULL;
  g_autofree char *where = json_where (ref), *path = json_path (ref);
  REQUIRE (*where != '\0' && *path == '/');
  double d = 0;
  gint64 i;
  const char *s = NULL;
  check_result (json_value_int (ref, -8, 8, &i, &error), &error);
  check_result (json_value_double (ref, -G_MAXDOUBLE, G_MAXDOUBLE, &d, &error), &error);
  check_result (json_value_string (ref, &s, &error), &error);
  check_result (json_check_keys (ref, keys, &error), &error);
  get_member (ref, "value");
  if (json_is_number (ref))
    jw_double (w, ref->key, d);
  else if (json_is_string (ref))
    jw_string (w, ref->key, s);
  else if (cJSON_IsBool (ref->node))
    jw_bool (w, ref->key, cJSON_IsTrue (ref->node));
  else if (cJSON_IsNull (ref->node))
    jw_null (w, ref->key);
  else {
    gboolean object = json_is_object (ref);
    (object ? jw_begin_object : jw_begin_array) (w, ref->key);
    for (int k = 0; k < json_len (ref); k++) {
      JsonRef item = json_item (ref, k);
      if (object) {
        REQUIRE (json_has (ref, item.key));
        get_member (ref, item.key);
      }
      walk (&item, w);
    }
    (object ? jw_end_object : jw_end_array) (w);
  }
}

static void
check_doc (JsonDoc *doc, int indent)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (JsonWriter) w = json_writer_new (text, indent);
  g_autoptr (GError) error = NULL;
  JsonRef root = json_root (doc);
  walk (&root, w);
  g_autoptr (JsonDoc) again = json_doc_parse ("again", text->str, text->len, &error);
  if (error != NULL)
    g_printerr ("%s\n%s\n", error->message, text->str);
  REQUIRE (again != NULL);
  REQUIRE (cJSON_Compare (root.node, json_root (again).node, TRUE));
  g_autoptr (JsonDoc) copy = json_doc_copy (&root);
  REQUIRE (cJSON_Compare (root.node, json_root (copy).node, TRUE));
}

/* The next part of the input, as a string of its own so that reading past its end is seen. */
static char *
next_part (const uint8_t **data, size_t *size, size_t *len)
{
  const uint8_t *end = *size == 0 ? NULL : memchr (*data, 0xff, *size);
  size_t n = end != NULL ? (size_t)(end - *data) : *size;
  char *part = g_malloc (n + 1);
  if (n > 0)
    memcpy (part, *data, n);
  part[n] = '\0';
  *len = n;
  size_t used = MIN (n + 1, *size);
  *data += used;
  *size -= used;
  return part;
}

/* A copy without the NUL at the end: the parser must not look for one. */
static JsonDoc *
parse_exact (const char *name, const char *text, size_t len)
{
  g_autoptr (GError) error = NULL;
  char *exact = malloc (len > 0 ? len : 1);
  memcpy (exact, text, len);
  JsonDoc *doc = json_doc_parse (name, exact, len, &error);
  free (exact);
  check_result (doc != NULL, &error);
  return doc;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  size_t base_len, patch_len, dotted_len, value_len;
  g_autofree char *base_text = next_part (&data, &size, &base_len);
  g_autofree char *patch_text = next_part (&data, &size, &patch_len);
  g_autofree char *dotted = next_part (&data, &size, &dotted_len);
  g_autofree char *value = next_part (&data, &size, &value_len);
  g_autoptr (JsonDoc) base = parse_exact ("base.json", base_text, base_len);
  if (base == NULL)
    return 0;
  check_doc (base, 0);
  g_autoptr (JsonDoc) patch = parse_exact ("patch.json", patch_text, patch_len);
  if (patch != NULL) {
    json_doc_merge (base, patch);
    check_doc (base, 2);
  }
  g_autoptr (GError) error = NULL;
  check_result (json_doc_set (base, dotted, value, &error), &error);
  check_doc (base, 2);
  json_doc_remove (base, dotted);
  check_doc (base, 0);
  return 0;
}
