/* import_run: the configuration of a training run in a framework's own file → parts of a scenario.
 *
 * Readers (launch scripts, YAML, TOML, JSON) hand over names and values; one table knows what the
 * names mean, in the spelling of Megatron-LM's arguments (dashes or underscores, with or without
 * the leading ones), with the aliases of NeMo, Megatron-Bridge and DeepSpeed. What is not in the
 * table is told as ignored. A value that only running would tell (a shell variable that is not set,
 * "${...}", "auto", a placeholder) is refused with its name when it matters, and ignored when not.
 *
 * Defaults where a file is silent are those of Megatron-LM: LayerNorm, GELU, biases, tied and
 * learned embeddings, 4 h wide MLP (8/3 h, in multiples of 64, when gated), micro-batch 1.
 */
#ifndef CLUSTERSIM_IMPORT_RUN_H
#define CLUSTERSIM_IMPORT_RUN_H

#include "json_read.h"
#include "json_write.h"

typedef struct ImportedRun ImportedRun;

ImportedRun *imported_run_new (const char *file);
void imported_run_free (ImportedRun *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (ImportedRun, imported_run_free)

/* Takes one setting. value NULL: a flag. line 0: not known. Errors: CLI_ERROR_USAGE,
 * "FILE:LINE: NAME: …". */
gboolean imported_run_set (ImportedRun *r, const char *name, const char *value, guint line,
                           GError **error);
gboolean imported_run_knows (const char *name);
/* The name stands for a switch that takes no value on a command line. */
gboolean imported_run_is_flag (const char *name);
gboolean imported_run_has (const ImportedRun *r, const char *name);
/* A setting that is a whole number; otherwise where it is not there. */
gint64 imported_run_number (const ImportedRun *r, const char *name, gint64 otherwise);
/* The value of a setting that is ignored here ("" of a flag), or NULL; whether it is there and not
 * "false". */
const char *imported_run_other (const ImportedRun *r, const char *name);
gboolean imported_run_other_is_on (const ImportedRun *r, const char *name);
guint imported_run_count (const ImportedRun *r); /* settings that matter */

void imported_run_ignore (ImportedRun *r, const char *name);
void imported_run_note (ImportedRun *r, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* A part by the name of a shipped file, in place of the shape that is in no setting. */
void imported_run_model (ImportedRun *r, const char *shipped);
void imported_run_software (ImportedRun *r, const char *shipped);

/* Writes the members cluster, model, software, train, parallel, as far as they are known. An error
 * when settings contradict each other. */
gboolean imported_run_write (ImportedRun *r, JsonWriter *w, GError **error);
const GPtrArray *imported_run_ignored (const ImportedRun *r); /* char* */
const GPtrArray *imported_run_notes (const ImportedRun *r);

/* ---- readers: each of a file; given: "NAME=VALUE" and positional parameters of the user ---- */
gboolean import_megatron (ImportedRun *r, const char *path, const char *const *given,
                          GError **error);
gboolean import_nemo (ImportedRun *r, const char *path, const char *const *given, GError **error);
gboolean import_torchtitan (ImportedRun *r, const char *path, const char *const *given,
                            GError **error);
gboolean import_deepspeed (ImportedRun *r, const char *path, const char *const *given,
                           GError **error);

#endif
