/* read_graph: a model as a list of operators (models/graph.h) in our JSON form; the keys are told
 * in scenarios/README.md. Sizes are integers or expressions of named sizes: + - * / and brackets,
 * division rounding down.
 */
#ifndef CLUSTERSIM_READ_GRAPH_H
#define CLUSTERSIM_READ_GRAPH_H

#include "json_read.h"
#include "model.h"

/* Does the object describe operators rather than a decoder? */
gboolean is_graph_model (const JsonRef *root);

/* Fills out, which model_init has made; FALSE with JSON_ERROR_*. */
gboolean read_graph_model (const JsonRef *root, ModelSpec *out, GError **error);

/* Value of an expression over sizes (names and values, n of them); FALSE with a reason of static
 * storage in why. Results are 0 to 2^31 - 1, steps on the way at most 2^62. */
typedef struct {
  const char *name;
  gint64 value;
} NamedSize;
gboolean size_expression (const char *text, const NamedSize *sizes, guint n, gint64 *out,
                          const char **why);

#endif
