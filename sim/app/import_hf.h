/* import_hf: a Hugging Face config.json as a ModelSpec.
 *
 * Each model_type is one row of a table (import_hf_families.c): what its published implementation
 * does where the file is silent (tied embeddings, biases, norms), and a function for keys of its
 * own. Counts then equal the implementation's to the unit, without MTP modules, quantisation scales
 * and vision towers. Files that nest a text model (text_config) are read from there.
 */
#ifndef CLUSTERSIM_IMPORT_HF_H
#define CLUSTERSIM_IMPORT_HF_H

#include "json_read.h"
#include "model.h"

/* out is initialised by the call and must be cleared by the caller; on FALSE it holds nothing.
 * ignored_keys: array of char* (owned by it; free function g_free) that receives the keys nothing
 * was read from, nested ones as "text_config.key"; may be NULL. An unknown model_type is a RANGE
 * error that names the nearest and all supported ones. */
gboolean import_hf_config (const JsonRef *root, ModelSpec *out, GPtrArray *ignored_keys,
                           GError **error);

#endif
