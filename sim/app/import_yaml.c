#include "import_yaml.h"

#include <string.h>
#include <yaml.h>

#include "cli.h"

#define FILE_BYTES_MAX ((gsize)16 << 20)
#define PAIRS_MAX      200000u
#define DEPTH_MAX      50u

typedef struct {
  const char *path;
  yaml_document_t doc;
  YamlPairFn pair;
  gpointer data;
  guint pairs;
} Walk;

gboolean
import_text_file (const char *path, char **text, GError **error)
{
  gsize len = 0;
  g_autoptr (GError) why = NULL;
  const char *wrong = NULL;
  if (!g_file_get_contents (path, text, &len, &why))
    wrong = why->message;
  else if (len > FILE_BYTES_MAX)
    wrong = "too big (allowed: up to 16 MB)";
  else if (memchr (*text, '\0', len) != NULL)
    wrong = "is no text (it has a NUL byte)";
  if (wrong == NULL)
    return TRUE;
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "%s: %s", path, wrong);
  g_clear_pointer (text, g_free);
  return FALSE;
}

static gboolean
walk (Walk *w, const yaml_node_t *node, GString *key, guint depth, GError **error)
{
  gsize len = key->len;
  guint line = (guint)node->start_mark.line + 1;
  if (depth > DEPTH_MAX || ++w->pairs > PAIRS_MAX) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "%s:%u: too deep or too long", w->path, line);
    return FALSE;
  }
  if (node->type == YAML_SCALAR_NODE)
    return w->pair (key->str, (const char *)node->data.scalar.value, line, w->data, error);
  if (node->type == YAML_SEQUENCE_NODE) {
    int n = 0;
    for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top;
         i++, n++) {
      g_string_append_printf (key, "%s%d", len > 0 ? "." : "", n);
      gboolean ok = walk (w, yaml_document_get_node (&w->doc, *i), key, depth + 1, error);
      g_string_truncate (key, len);
      if (!ok)
        return FALSE;
    }
    return TRUE;
  }
  if (node->type != YAML_MAPPING_NODE)
    return TRUE;
  for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top;
       p++) {
    const yaml_node_t *name = yaml_document_get_node (&w->doc, p->key);
    if (name->type != YAML_SCALAR_NODE)
      continue;
    g_string_append_printf (key, "%s%s", len > 0 ? "." : "", (const char *)name->data.scalar.value);
    gboolean ok = walk (w, yaml_document_get_node (&w->doc, p->value), key, depth + 1, error);
    g_string_truncate (key, len);
    if (!ok)
      return FALSE;
  }
  return TRUE;
}

gboolean
import_yaml_pairs (const char *path, YamlPairFn pair, gpointer data, GError **error)
{
  g_autofree char *text = NULL;
  yaml_parser_t parser;
  Walk w = {.path = path, .pair = pair, .data = data};
  if (!import_text_file (path, &text, error))
    return FALSE;
  yaml_parser_initialize (&parser);
  yaml_parser_set_input_string (&parser, (const unsigned char *)text, strlen (text));
  gboolean ok = yaml_parser_load (&parser, &w.doc) != 0;
  if (!ok) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "%s:%zu: is no YAML (%s)", path,
                 parser.problem_mark.line + 1,
                 parser.problem != NULL ? parser.problem : "cannot be read");
  } else {
    const yaml_node_t *root = yaml_document_get_root_node (&w.doc);
    g_autoptr (GString) key = g_string_new (NULL);
    ok = root == NULL || walk (&w, root, key, 0, error);
    yaml_document_delete (&w.doc);
  }
  yaml_parser_delete (&parser);
  return ok;
}
