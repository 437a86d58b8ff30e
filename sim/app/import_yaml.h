/* import_yaml: a YAML file as pairs of a dotted key and a scalar. */
#ifndef CLUSTERSIM_IMPORT_YAML_H
#define CLUSTERSIM_IMPORT_YAML_H

#include <glib.h>

/* Called for each scalar in the order of the file; key "model.num_layers", "list.0". FALSE with
 * error ends the reading. */
typedef gboolean (*YamlPairFn) (const char *key, const char *value, guint line, gpointer data,
                                GError **error);

/* Errors: CLI_ERROR_USAGE, "FILE:LINE: …". Aliases are followed up to a depth of 50. */
gboolean import_yaml_pairs (const char *path, YamlPairFn pair, gpointer data, GError **error);

/* Reads a text file of at most 16 MB; newly allocated, NUL-terminated. */
gboolean import_text_file (const char *path, char **text, GError **error);

#endif
