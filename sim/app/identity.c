#include "identity.h"

#include <string.h>

#include "paths.h"

#define NAMED_DEPTH 8 /* files that name files */

struct Identity {
  GChecksum *sum;
  GHashTable *seen; /* paths that are in already; only looked up */
  guint depth;
};

Identity *
identity_new (void)
{
  Identity *id = g_new0 (Identity, 1);
  id->sum = g_checksum_new (G_CHECKSUM_SHA256);
  id->seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  identity_text (id, CLUSTERSIM_VERSION);
  return id;
}

void
identity_free (Identity *id)
{
  if (id == NULL)
    return;
  g_checksum_free (id->sum);
  g_hash_table_unref (id->seen);
  g_free (id);
}

void
identity_text (Identity *id, const char *text)
{
  g_checksum_update (id->sum, (const guchar *)(text != NULL ? text : "\x01"), -1);
  g_checksum_update (id->sum, (const guchar *)"\0", 1);
}

static void
add_strings (Identity *id, const cJSON *node, const char *from)
{
  if (cJSON_IsString (node) && node->valuestring != NULL)
    identity_name (id, node->valuestring, from);
  for (const cJSON *c = node->child; c != NULL; c = c->next)
    add_strings (id, c, from);
}

static void
add_file (Identity *id, const char *path)
{
  g_autofree char *text = NULL;
  gsize len = 0;
  if (!g_hash_table_add (id->seen, g_strdup (path)) || id->depth >= NAMED_DEPTH ||
      !g_file_test (path, G_FILE_TEST_IS_REGULAR) || !g_file_get_contents (path, &text, &len, NULL))
    return;
  g_checksum_update (id->sum, (const guchar *)text, (gssize)len);
  identity_text (id, NULL);
  g_autoptr (JsonDoc) doc =
      g_str_has_suffix (path, ".json") ? json_doc_parse (path, text, len, NULL) : NULL;
  if (doc == NULL)
    return;
  id->depth++;
  add_strings (id, json_root (doc).node, path);
  id->depth--;
}

void
identity_name (Identity *id, const char *name, const char *from)
{
  static const char *const kinds[] = {"hw",     "fabrics", "models",     "software", "failures",
                                      "prices", "train",   "topologies", NULL};
  if (*name == '\0' || strlen (name) > 4096 || strchr (name, '\n') != NULL)
    return;
  if (data_is_path (name) || strchr (name, '.') != NULL) {
    g_autofree char *path = path_relative_to (name, from);
    add_file (id, path);
  }
  for (gsize i = 0; !data_is_path (name) && kinds[i] != NULL; i++) {
    g_autofree char *path = data_find (kinds[i], name, from, NULL);
    if (path != NULL)
      add_file (id, path);
  }
}

void
identity_document (Identity *id, JsonDoc *doc)
{
  JsonRef root = json_root (doc);
  char *text = cJSON_PrintUnformatted (root.node);
  identity_text (id, text);
  cJSON_free (text);
  const char *file = json_file (&root);
  add_strings (id, root.node, file != NULL ? file : json_doc_name (doc));
  g_autofree char *errors = data_find ("published", "errors", NULL, NULL); /* ranges of results */
  if (errors != NULL)
    add_file (id, errors);
}

const char *
identity_get (Identity *id)
{
  return g_checksum_get_string (id->sum);
}
