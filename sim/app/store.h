/* store: shipped and given profiles, each read once.
 *
 * A profile may start with "extends": NAME, which is merged under it first (up to 8 deep). GPUs are
 * found by file name or by one of the aliases of their profiles ("A100-80GB", "H100-80GB-SXM (A3)"
 * …). Ownership: the store owns what it returns; it must outlive the Specs that borrow from it.
 * Errors: those of reading, with file and line; unknown names with the nearest known one.
 */
#ifndef CLUSTERSIM_STORE_H
#define CLUSTERSIM_STORE_H

#include "json_read.h"
#include "spec.h"

typedef struct Store Store;
Store *store_new (void);
void store_free (Store *st);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Store, store_free)

/* from: the file that mentions the name, for relative paths, or NULL. */
GpuProfile *store_gpu (Store *st, const char *name, const char *from, GError **error);
Fabric *store_fabric (Store *st, const char *name, const char *from, GError **error);
const SoftwareProfile *store_software (Store *st, const char *name, const char *from,
                                       GError **error);
/* A shipped model of operators with other sizes: those that its file has among its named sizes are
 * replaced. out must be cleared by the caller; FALSE: it holds nothing. */
gboolean store_model_sized (const char *name, const char *const *sizes, const gint64 *values,
                            guint n, ModelSpec *out, GError **error);
const ModelSpec *store_model (Store *st, const char *name, const char *from, GError **error);

/* Numbers of a profile with their sources (ProvEntry*), borrowed; NULL when it has none. */
const GPtrArray *store_provenance (Store *st, const char *kind, const char *name);

/* A profile's file as a document, "extends" merged and removed. */
JsonDoc *store_document (const char *kind, const char *name, const char *from, GError **error);

#endif
