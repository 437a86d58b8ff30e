/* import_hf: a config.json of Hugging Face transformers → ModelSpec. */
#ifndef CLUSTERSIM_IMPORT_HF_H
#define CLUSTERSIM_IMPORT_HF_H

#include "json_read.h"
#include "model.h"

/* out is initialised by the call and must be cleared by the caller; on FALSE it holds nothing.
 * ignored_keys (char*, may be NULL) gets the keys that have no bearing here. Domain JSON_ERROR. */
gboolean import_hf_config (const JsonRef *root, ModelSpec *out, GPtrArray *ignored_keys,
                           GError **error);

#endif
