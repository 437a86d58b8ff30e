/* read_model: an architecture in our own JSON form (scenarios/models/<name>.json) and back.
 *
 * Keys are the field names of ModelSpec (models/model.h), enumerations as the names of the tables
 * there; "source" says in words where the shape is from. Absent: kv_heads = heads, head_dim =
 * hidden / heads, everything else as model_init sets it.
 */
#ifndef CLUSTERSIM_READ_MODEL_H
#define CLUSTERSIM_READ_MODEL_H

#include "json_read.h"
#include "json_write.h"
#include "model.h"

/* out is initialised by the call and must be cleared by the caller; on FALSE it holds nothing. */
gboolean read_model (const JsonRef *root, ModelSpec *out, GError **error);

/* Writes the object that read_model reads; what equals the default is left out. source may be NULL.
 * Not for models of operators (read_graph.h). */
void write_model (JsonWriter *w, const char *key, const ModelSpec *m, const char *source);

#endif
