/* Documents: parsing, where each value came from, merging, setting. */
#include "json_priv.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

G_DEFINE_QUARK (clustersim_json_error, json_error)

/* ---- origins ---- */

static void
json_file_free (gpointer p)
{
  JsonFile *f = p;
  g_free (f->name);
  g_free (f);
}

static guint
add_file (JsonDoc *doc, const char *name, gboolean is_path)
{
  JsonFile *f = g_new (JsonFile, 1);
  *f = (JsonFile){.name = g_strdup (name), .is_path = is_path};
  g_ptr_array_add (doc->files, f);
  return doc->files->len - 1;
}

static void
set_origin (JsonDoc *doc, const cJSON *node, guint file, guint line)
{
  guint64 packed = (guint64)file << 32 | line;
  g_hash_table_insert (doc->origin, (gpointer)node, GSIZE_TO_POINTER (packed));
}

static gboolean
get_origin (const JsonDoc *doc, const cJSON *node, guint *file, guint *line)
{
  guint64 packed = node == NULL ? 0 : GPOINTER_TO_SIZE (g_hash_table_lookup (doc->origin, node));
  *file = (guint)(packed >> 32);
  *line = (guint)packed; /* lines start at 1, so that 0 is "not known" */
  return packed != 0;
}

void
json_origin (const JsonRef *ref, guint *file, guint *line)
{
  for (const JsonRef *r = ref; r != NULL; r = r->parent)
    if (get_origin (r->doc, r->node, file, line))
      return;
  *file = 0;
  *line = 1;
}

const char *
json_file (const JsonRef *ref)
{
  guint file, line;
  json_origin (ref, &file, &line);
  const JsonFile *f = g_ptr_array_index (ref->doc->files, file);
  return f->is_path ? f->name : NULL;
}

/* The nodes below and at node become dst's: their origins move over. Depth is bounded by
 * JSON_MAX_DEPTH. */
static void
adopt (JsonDoc *dst, JsonDoc *src, guint file_offset, cJSON *node)
{
  guint file, line;
  if (get_origin (src, node, &file, &line))
    set_origin (dst, node, file + file_offset, line);
  else
    g_hash_table_remove (dst->origin, node); /* of an earlier node at this address */
  for (cJSON *c = node->child; c != NULL; c = c->next)
    adopt (dst, src, file_offset, c);
}

/* src's files become known to dst; returns the offset of their numbers. */
static guint
adopt_files (JsonDoc *dst, const JsonDoc *src)
{
  guint offset = dst->files->len;
  for (guint i = 0; i < src->files->len; i++) {
    const JsonFile *f = g_ptr_array_index (src->files, i);
    add_file (dst, f->name, f->is_path);
  }
  return offset;
}

static void
tree_changed (JsonDoc *doc)
{
  doc->cursor.parent = doc->cursor.node = NULL;
  doc->cursor.len = -1;
}

/* ---- parsing ---- */

static JsonDoc *
doc_new (const char *name, gboolean is_path)
{
  JsonDoc *doc = g_new0 (JsonDoc, 1);
  doc->files = g_ptr_array_new_with_free_func (json_file_free);
  doc->origin = g_hash_table_new (g_direct_hash, g_direct_equal);
  add_file (doc, name, is_path);
  tree_changed (doc);
  return doc;
}

void
json_doc_free (JsonDoc *doc)
{
  if (doc == NULL)
    return;
  cJSON_Delete (doc->root);
  g_hash_table_destroy (doc->origin);
  g_ptr_array_unref (doc->files);
  g_free (doc);
}

/* The second of two equal keys of an object, or NULL. Keys are compared as decoded, so that
 * "\u0061" repeats "a". Few keys are compared pairwise; many go through a hash table. */
static const cJSON *
repeated_key (const cJSON *object)
{
  enum { PAIRWISE = 12 };
  int n = 0;
  for (const cJSON *c = object->child; c != NULL && n <= PAIRWISE; c = c->next, n++)
    for (const cJSON *d = object->child; d != c; d = d->next)
      if (strcmp (c->string, d->string) == 0)
        return c;
  if (n <= PAIRWISE)
    return NULL;
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (const cJSON *c = object->child; c != NULL; c = c->next)
    if (!g_hash_table_add (seen, c->string))
      return c;
  return NULL;
}

/* Walks the tree in the order of the text, giving each node its line, then looks for repeated keys.
 */
static gboolean
annotate (const JsonRef *ref, const guint32 **next_line, GError **error)
{
  set_origin (ref->doc, ref->node, 0, *(*next_line)++);
  gboolean object = cJSON_IsObject (ref->node);
  int i = 0;
  for (const cJSON *c = ref->node->child; c != NULL; c = c->next, i++) {
    JsonRef child = {ref->doc, c, ref, object ? c->string : NULL, object ? -1 : i};
    if (!annotate (&child, next_line, error))
      return FALSE;
  }
  const cJSON *twice = object ? repeated_key (ref->node) : NULL;
  if (twice == NULL)
    return TRUE;
  JsonRef child = {ref->doc, twice, ref, twice->string, -1};
  JsonRef first = json_child_ref (ref, twice->string);
  guint file, line;
  json_origin (&first, &file, &line);
  return json_fail (&child, JSON_ERROR_SYNTAX, error,
                    "key is given twice (found first in line %u; allowed: once)", line);
}

static gboolean
parse_into (JsonDoc *doc, const char *text, gsize len, GError **error)
{
  const char *name = json_doc_name (doc);
  if (len > JSON_MAX_BYTES) {
    g_autofree char *plain = text_printable (name, -1, G_MAXSIZE);
    g_set_error (error, JSON_ERROR, JSON_ERROR_FILE,
                 "%s: too big (found %" G_GSIZE_FORMAT " bytes; allowed: up to %d)", plain, len,
                 JSON_MAX_BYTES);
    return FALSE;
  }
  g_autoptr (GArray) lines = g_array_new (FALSE, FALSE, sizeof (guint32));
  if (!json_scan (g_ptr_array_index (doc->files, 0), text, len, lines, error))
    return FALSE;
  doc->root = cJSON_ParseWithLengthOpts (text, len, NULL, FALSE);
  JsonRef root = json_root (doc);
  if (doc->root == NULL) /* not known to happen: the scan is the stricter of the two */
    return json_fail (&root, JSON_ERROR_SYNTAX, error, "the JSON library refuses this text");
  const guint32 *next_line = (const guint32 *)(gpointer)lines->data;
  if (!annotate (&root, &next_line, error))
    return FALSE;
  g_assert (next_line == (const guint32 *)(gpointer)lines->data + lines->len);
  return TRUE;
}

JsonDoc *
json_doc_parse (const char *name, const char *text, gsize len, GError **error)
{
  g_autoptr (JsonDoc) doc = doc_new (name, FALSE);
  return parse_into (doc, text, len, error) ? g_steal_pointer (&doc) : NULL;
}

static gboolean file_fail (const char *path, GError **error, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

static gboolean
file_fail (const char *path, GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *plain = text_printable (path, -1, G_MAXSIZE);
  g_set_error (error, JSON_ERROR, JSON_ERROR_FILE, "%s: %s", plain, message);
  return FALSE;
}

/* Reads all of fd, and stops one byte after the limit: pipes and devices do not tell their size. */
static gboolean
read_all (const char *path, int fd, GByteArray *out, GError **error)
{
  static const gsize chunk = 64 * 1024;
  while (out->len <= JSON_MAX_BYTES) {
    guint at = out->len;
    g_byte_array_set_size (out, at + (guint)chunk);
    ssize_t n = read (fd, out->data + at, chunk);
    g_byte_array_set_size (out, at + (guint)MAX (n, 0));
    if (n == 0)
      return TRUE;
    if (n < 0 && errno != EINTR)
      return file_fail (path, error, "cannot be read (%s)", g_strerror (errno));
  }
  return file_fail (path, error, "too big (found more than %d bytes; allowed: up to %d)",
                    JSON_MAX_BYTES, JSON_MAX_BYTES);
}

static gboolean
read_file (const char *path, GByteArray *out, GError **error)
{
  int fd = open (path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return file_fail (path, error, "cannot be opened (%s)", g_strerror (errno));
  struct stat st;
  gboolean ok;
  if (fstat (fd, &st) != 0)
    ok = file_fail (path, error, "cannot be read (%s)", g_strerror (errno));
  else if (S_ISDIR (st.st_mode))
    ok = file_fail (path, error, "is a directory (allowed: a JSON file)");
  else if (S_ISREG (st.st_mode) && st.st_size > JSON_MAX_BYTES)
    ok = file_fail (path, error, "too big (found %" G_GINT64_FORMAT " bytes; allowed: up to %d)",
                    (gint64)st.st_size, JSON_MAX_BYTES);
  else
    ok = read_all (path, fd, out, error);
  close (fd);
  return ok;
}

JsonDoc *
json_doc_load (const char *path, GError **error)
{
  g_autoptr (GByteArray) text = g_byte_array_new ();
  if (!read_file (path, text, error))
    return NULL;
  g_autoptr (JsonDoc) doc = doc_new (path, TRUE);
  const char *bytes = text->len > 0 ? (const char *)text->data : "";
  return parse_into (doc, bytes, text->len, error) ? g_steal_pointer (&doc) : NULL;
}

const char *
json_doc_name (const JsonDoc *doc)
{
  const JsonFile *f = g_ptr_array_index (doc->files, 0);
  return f->name;
}

JsonRef
json_root (JsonDoc *doc)
{
  return (JsonRef){doc, doc->root, NULL, NULL, -1};
}

static void
copy_origin (JsonDoc *dst, JsonDoc *src, cJSON *to, const cJSON *from)
{
  guint file, line;
  if (get_origin (src, from, &file, &line))
    set_origin (dst, to, file + 1, line);
  for (cJSON *a = to->child, *b = from->child; a != NULL; a = a->next, b = b->next)
    copy_origin (dst, src, a, b);
}

JsonDoc *
json_doc_copy (const JsonRef *ref)
{
  g_assert (ref->node != NULL);
  const JsonFile *own = g_ptr_array_index (ref->doc->files, 0);
  JsonDoc *copy = doc_new (own->name, own->is_path);
  guint offset = adopt_files (copy, ref->doc);
  g_assert (offset == 1);
  copy->root = cJSON_Duplicate (ref->node, TRUE);
  g_clear_pointer (&copy->root->string, cJSON_free); /* a root has no key */
  copy_origin (copy, ref->doc, copy->root, ref->node);
  return copy;
}

/* ---- merging (RFC 7396) ---- */

static cJSON *
detach_first (cJSON *parent)
{
  return cJSON_DetachItemViaPointer (parent, parent->child);
}

/* Nulls inside what is taken over whole mean "delete" too, and there is nothing to delete. */
static void
drop_nulls (cJSON *node)
{
  if (!cJSON_IsObject (node))
    return;
  for (cJSON *c = node->child, *next; c != NULL; c = next) {
    next = c->next;
    if (cJSON_IsNull (c))
      cJSON_Delete (cJSON_DetachItemViaPointer (node, c));
    else
      drop_nulls (c);
  }
}

/* Moves the members of patch into target, both objects. */
static void
merge_objects (JsonDoc *base, JsonDoc *from, guint offset, cJSON *target, cJSON *patch)
{
  while (patch->child != NULL) {
    cJSON *value = detach_first (patch);
    cJSON *old = cJSON_GetObjectItemCaseSensitive (target, value->string);
    if (old != NULL && cJSON_IsObject (old) && cJSON_IsObject (value)) {
      merge_objects (base, from, offset, old, value);
      cJSON_Delete (value);
    } else if (cJSON_IsNull (value)) {
      if (old != NULL)
        cJSON_Delete (cJSON_DetachItemViaPointer (target, old));
      cJSON_Delete (value);
    } else {
      drop_nulls (value);
      adopt (base, from, offset, value);
      if (old != NULL)
        cJSON_ReplaceItemViaPointer (target, old, value);
      else
        cJSON_AddItemToArray (target, value); /* appends, and keeps the key that value carries */
    }
  }
}

void
json_doc_merge (JsonDoc *base, JsonDoc *patch)
{
  guint offset = adopt_files (base, patch);
  if (cJSON_IsObject (base->root) && cJSON_IsObject (patch->root)) {
    merge_objects (base, patch, offset, base->root, patch->root);
  } else {
    cJSON_Delete (base->root);
    base->root = g_steal_pointer (&patch->root);
    drop_nulls (base->root);
    adopt (base, patch, offset, base->root);
    patch->root = cJSON_CreateNull ();
  }
  tree_changed (base);
  tree_changed (patch);
}

void
json_doc_remove (JsonDoc *doc, const char *key)
{
  cJSON *old =
      cJSON_IsObject (doc->root) ? cJSON_GetObjectItemCaseSensitive (doc->root, key) : NULL;
  if (old != NULL)
    cJSON_Delete (cJSON_DetachItemViaPointer (doc->root, old));
  tree_changed (doc);
}

/* ---- setting ---- */

static guint
tree_depth (const cJSON *node)
{
  guint deepest = 0;
  for (const cJSON *c = node->child; c != NULL; c = c->next)
    deepest = MAX (deepest, tree_depth (c));
  return (cJSON_IsObject (node) || cJSON_IsArray (node) ? 1 : 0) + deepest;
}

static gboolean
set_fail (const JsonRef *at, const JsonDoc *value, JsonError code, GError **error, const char *what)
{
  g_autofree char *path = json_path (at);
  g_autofree char *name = text_printable (json_doc_name (value), -1, 200);
  g_autofree char *plain = text_printable (what, -1, 400);
  json_set_error (error, code, name, path, plain);
  return FALSE;
}

/* The child of at named part. *child has node NULL when an object lacks it. */
static gboolean
set_step (const JsonRef *at, const char *part, const JsonDoc *value, JsonRef *child, GError **error)
{
  g_autofree char *quoted = text_quoted (part);
  g_autofree char *found = json_describe (at->node);
  g_autofree char *what = NULL;
  if (*part == '\0')
    return set_fail (at, value, JSON_ERROR_SYNTAX, error,
                     "empty part in the path (found \"\"; allowed: keys with dots between them)");
  if (cJSON_IsObject (at->node)) {
    *child = json_child_ref (at, part);
    return TRUE;
  }
  if (!cJSON_IsArray (at->node)) {
    what = g_strdup_printf ("cannot set %s in it (found %s; allowed: an object)", quoted, found);
    return set_fail (at, value, JSON_ERROR_TYPE, error, what);
  }
  guint64 i;
  int n = json_len (at);
  if (n > 0 && g_ascii_string_to_unsigned (part, 10, 0, (guint64)n - 1, &i, NULL)) {
    *child = json_item (at, (int)i);
    return TRUE;
  }
  what = g_strdup_printf ("no such element (found %s; allowed: 0 to %d)", quoted, n - 1);
  return set_fail (at, value, JSON_ERROR_RANGE, error, what);
}

/* Puts node where child is: in place of what is there, or as a new member of its parent. */
static void
place (const JsonRef *child, cJSON *node)
{
  cJSON *parent = (cJSON *)child->parent->node;
  if (child->node == NULL) {
    cJSON_AddItemToObject (parent, child->key, node);
  } else if (child->key != NULL) {
    cJSON_AddItemToObject (parent, child->key, node); /* gives it its own copy of the key … */
    cJSON_DetachItemViaPointer (parent, node);
    cJSON_ReplaceItemViaPointer (parent, (cJSON *)child->node, node); /* … and its old place */
  } else
    cJSON_ReplaceItemViaPointer (parent, (cJSON *)child->node, node);
}

gboolean
json_doc_put (JsonDoc *doc, const char *dotted, JsonDoc *value, GError **error)
{
  JsonRef at[JSON_MAX_DEPTH + 1];
  g_auto (GStrv) parts = g_strsplit (dotted, ".", JSON_MAX_DEPTH + 1);
  guint n = g_strv_length (parts);
  at[0] = json_root (doc);
  if (!g_utf8_validate (dotted, -1, NULL))
    return set_fail (&at[0], value, JSON_ERROR_SYNTAX, error, "the path is not UTF-8");
  if (n == 0 || n + tree_depth (value->root) > JSON_MAX_DEPTH)
    return set_fail (&at[0], value, JSON_ERROR_SYNTAX, error,
                     n == 0 ? "the path is empty (allowed: keys with dots between them)"
                            : "the path is too deep");
  guint exist = 0; /* parts that are there already */
  while (exist < n) {
    if (!set_step (&at[exist], parts[exist], value, &at[exist + 1], error))
      return FALSE;
    if (at[exist + 1].node == NULL)
      break;
    exist++;
  }
  for (guint i = exist + 1; i < n; i++)
    if (*parts[i] == '\0')
      return set_fail (&at[exist], value, JSON_ERROR_SYNTAX, error,
                       "empty part in the path (found \"\"; allowed: keys with dots between them)");
  guint offset = adopt_files (doc, value);
  cJSON *node = g_steal_pointer (&value->root);
  value->root = cJSON_CreateNull ();
  adopt (doc, value, offset, node);
  for (guint i = n; i > exist + 1; i--) { /* the objects on the way, from the inside out */
    cJSON *object = cJSON_CreateObject ();
    cJSON_AddItemToObject (object, parts[i - 1], node);
    set_origin (doc, object, offset, 1);
    node = object;
  }
  place (&at[MIN (exist + 1, n)], node);
  tree_changed (doc);
  tree_changed (value);
  return TRUE;
}

/* Text that was meant as JSON but is not: better an error than a string that looks like it. */
static gboolean
must_be_json (const char *text)
{
  while (g_ascii_isspace (*text))
    text++;
  if (*text != '\0' && strchr ("{[\"", *text) != NULL)
    return TRUE;
  char *end;
  double v = g_ascii_strtod (text, &end);
  return end != text && *end == '\0' && (v != v || v - v != 0); /* NaN, inf, 1e999 */
}

gboolean
json_doc_set (JsonDoc *doc, const char *dotted, const char *text, GError **error)
{
  g_autofree char *name = g_strconcat ("--set ", dotted, NULL);
  g_autoptr (GError) why = NULL;
  g_autoptr (JsonDoc) value = json_doc_parse (name, text, strlen (text), &why);
  if (value == NULL) {
    if (must_be_json (text) || !g_utf8_validate (text, -1, NULL)) {
      g_propagate_error (error, g_steal_pointer (&why));
      return FALSE;
    }
    value = doc_new (name, FALSE);
    value->root = cJSON_CreateString (text);
    set_origin (value, value->root, 0, 1);
  }
  return json_doc_put (doc, dotted, value, error);
}
