/* scenario: a scenario file → Spec.
 *
 * The file is JSON (interface.md names the keys; scenarios/README.md lists them all). "extends"
 * names a file to start from, which may extend another: the members of this file replace those of
 * that one (RFC 7396: objects member by member, null deletes). Overrides "KEY=VALUE" (KEY a dotted
 * path) come last. The parts model, software, cluster.gpu and cluster.fabric are the name of a
 * shipped file, a path relative to the file that mentions it, or an object in place, which may
 * itself have "extends". An override inside a part that is given by name starts from the named
 * file.
 *
 * Errors: JSON_ERROR for what can be placed in a file, with FILE:LINE: /path; the messages of
 * spec_check are placed at the key that they are about. */
#ifndef CLUSTERSIM_SCENARIO_H
#define CLUSTERSIM_SCENARIO_H

#include "json_read.h"
#include "spec.h"

/* path is a file, or the name of a shipped scenario ("clustersim list" of kind train). sets: NULL
 * or NULL-terminated "KEY=VALUE". out is initialised by the call; after TRUE the caller clears it
 * with spec_clear, after FALSE it holds nothing. */
gboolean scenario_load (const char *path, const char *const *sets, Spec *out, GError **error);

/* The two halves of scenario_load: the merged document, and its reading. A sweep loads once, and
 * sets and reads copies (json_doc_copy). "name" of a scenario
 * that has none is its file's. */
JsonDoc *scenario_document (const char *path, const char *const *sets, GError **error);
/* The document of a text; name stands for it in messages. Paths are relative to the working
 * directory. */
JsonDoc *scenario_document_text (const char *name, const char *text, GError **error);
gboolean scenario_set (JsonDoc *doc, const char *key_value, GError **error);
gboolean scenario_read (JsonDoc *doc, Spec *out, GError **error);
/* As scenario_read, without asking whether its layout can be (spec_check): for a search of one. */
gboolean scenario_read_unchecked (JsonDoc *doc, Spec *out, GError **error);

/* Parts that were read before, for the many scenarios of a sweep: a part that is named or written
 * in the same way is read once. out borrows from the cache, which must outlive it, and holds until
 * the next reading with the same cache; its prov lists only what this call itself read. Else as
 * scenario_read, which is this call without a cache. */
typedef struct ScenarioParts ScenarioParts;
ScenarioParts *scenario_parts_new (void);
void scenario_parts_free (ScenarioParts *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (ScenarioParts, scenario_parts_free)
gboolean scenario_read_shared (JsonDoc *doc, ScenarioParts *parts, Spec *out, GError **error);

/* An error of predicting what doc says (a schedule that cannot be, a step beyond the clock) gets
 * the place of the key that it is about, as those of scenario_read have; others stay as they are.
 */
void scenario_blame (JsonDoc *doc, GError **error);

/* The software profile for a scenario that names none. One rule: the profile of the framework that
 * most published runs on that generation used. Static. */
const char *scenario_default_software (const char *gpu_name);

#endif
