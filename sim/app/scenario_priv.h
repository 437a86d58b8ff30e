/* scenario_priv: what scenario.c (documents) and scenario_read.c (values) share. */
#ifndef CLUSTERSIM_SCENARIO_PRIV_H
#define CLUSTERSIM_SCENARIO_PRIV_H

#include "scenario.h"

/* Loads the file at path and what it extends; kind is where names in "extends" are looked up. */
JsonDoc *scenario_load_chain (const char *path, const char *kind, GError **error);

/* The cursors from the root to the value at a dotted path. at[0] is the root. Returns how many
 * parts of the path exist; at has that many + 1 entries. */
enum { SCENARIO_KEY_PARTS = 16 };
guint scenario_locate (JsonDoc *doc, const char *dotted, JsonRef at[SCENARIO_KEY_PARTS + 1]);

/* The file that a string at ref names: a shipped one of this kind, or a path relative to ref's
 * file. Errors are placed at ref. */
char *scenario_find_file (const JsonRef *ref, const char *kind, GError **error);

/* ---- scenario_parts.c: each reads its part into s and notes its name among the profiles; cache
 * may be NULL ---- */
gboolean scenario_read_devices (const JsonRef *root, ScenarioParts *cache, Spec *s, GError **error);
gboolean scenario_read_model (const JsonRef *root, ScenarioParts *cache, Spec *s, GError **error);
gboolean scenario_read_software (const JsonRef *root, ScenarioParts *cache, Spec *s,
                                 GError **error);
/* The GPU of a second type, in obj under "gpu". */
gboolean scenario_read_second_gpu (const JsonRef *obj, Spec *s, GError **error);
/* Forgets all parts when there are too many; nobody may borrow any. */
void scenario_parts_trim (ScenarioParts *c);

/* Notes among the assumed what was filled in for the user. */
void scenario_assume (Spec *s, const char *format, ...) G_GNUC_PRINTF (2, 3);

#endif
