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

/* A part of the scenario and the object that holds it: in place, or the root of its own file. */
typedef struct {
  JsonDoc *file; /* NULL when in place */
  JsonRef in_scenario, object;
  char *name; /* for reports */
} ProfilePart;
void scenario_part_clear (ProfilePart *p);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (ProfilePart, scenario_part_clear)

/* Opens the part under key of obj, and notes its name among the profiles of s. p->object borrows p:
 * do not copy it. */
gboolean scenario_part_open (ProfilePart *p, const JsonRef *obj, const char *key, const char *kind,
                             Spec *s, GError **error);

/* Reads GPU and fabric into s; with parts, once for each pair of names. */
gboolean scenario_share_devices (const JsonRef *root, ScenarioParts *parts, Spec *s,
                                 GError **error);

#endif
