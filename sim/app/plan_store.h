/* plan_store: the predictions of a search, kept from one run to the next and from part to whole.
 *
 * While a search into a file runs, FILE.part is the journal of sweep_sink.h with a record for each
 * full prediction: a fact about one layout, whatever is asked for. A shard's file is
 *   clustersim-plan 1 IDENTITY I N
 *   RECORD …
 *   end COUNT
 * Times are written so that they read back to the bit. Errors: CLI_ERROR_USAGE with file and line;
 * FILEIO_ERROR. */
#ifndef CLUSTERSIM_PLAN_STORE_H
#define CLUSTERSIM_PLAN_STORE_H

#include "plan.h"
#include "sweep_sink.h"

#define PLAN_LAYOUTS_MAX ((guint64)4 << 20)

typedef struct PlanStore PlanStore;

/* identity: of the search without its part. */
PlanStore *plan_store_new (const char *identity, guint64 first, guint64 step);
void plan_store_free (PlanStore *st);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PlanStore, plan_store_free)

/* Opens the journal beside output. */
gboolean plan_store_open (PlanStore *st, const char *output, gboolean resume, GError **error);
/* The journal goes: the result is written. */
void plan_store_drop (PlanStore *st);

/* For PlanOptions; data is the store. */
gboolean plan_store_known (gpointer store, PlanPoint *p);
gboolean plan_store_took (gpointer store, const PlanPoint *p, GError **error);
guint plan_store_count (const PlanStore *st); /* predictions known */

void plan_store_shard_text (const PlanStore *st, const PlanResult *r, GString *out);
/* Reads the files of all shards, which must be there, each once. */
gboolean plan_store_merge (PlanStore *st, const char *const *files, GError **error);

#endif
