/* validate_settings: what a row of training runs says in words (framework, comments) about switches
 * that have no column: token dispatcher, overlap of the all-to-all, expert tensor parallelism,
 * forced balance, token drop, CUDA graphs, scales of 8-bit training. Rules: "settings" of
 * scenarios/published/rules.json, each a set of regular expressions and one setting; all that match
 * apply, in order.
 */
#ifndef CLUSTERSIM_VALIDATE_SETTINGS_H
#define CLUSTERSIM_VALIDATE_SETTINGS_H

#include "csv.h"
#include "json_read.h"
#include "spec.h"

typedef struct RowSettings RowSettings;

RowSettings *row_settings_read (const JsonRef *rules, GError **error); /* the root of the rules */
void row_settings_free (RowSettings *s);                               /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RowSettings, row_settings_free)

/* FALSE, with a reason that the caller frees, when a setting says to skip the row. */
gboolean row_settings_apply (const RowSettings *s, const CsvTable *t, guint row, Spec *spec,
                             char **reason);

/* The columns of experts into spec->model, which holds the shipped architecture where known is
 * TRUE. FALSE, with a reason that the caller frees, when the row does not say enough. */
gboolean row_experts (const CsvTable *t, guint row, gboolean known, ModelSpec *m, char **reason);

#endif
