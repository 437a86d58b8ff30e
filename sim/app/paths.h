/* paths: where shipped files are, and what a path in a file is relative to.
 *
 * kind is the folder below scenarios/: "hw", "fabrics", "software", "models", "train", "prices" …
 * Shipped files are looked for, in this order, in
 *   1. $CLUSTERSIM_SCENARIOS
 *   2. the folder "scenarios" beside the program, or in the folder above it (a build tree), or
 *      "share/clustersim/scenarios" there (installed somewhere); the same for the shared library
 *   3. CLUSTERSIM_DATADIR/scenarios, /usr/local/share/clustersim if not built otherwise
 * A later place is used for what an earlier one lacks. Errors: JSON_ERROR_RANGE for a name that is
 * not known (the message names the nearest and how to list all), JSON_ERROR_FILE for a path without
 * a file. */
#ifndef CLUSTERSIM_PATHS_H
#define CLUSTERSIM_PATHS_H

#include <glib.h>

/* The file for a name. A name without "/" that does not end in ".json" is a shipped one; any other
 * is a path, relative to the folder of the file from, or to the working directory when from is
 * NULL. Newly allocated; NULL with error. The message has no place in it: the caller knows where
 * the name stands ("unknown GPU (found …; nearest: …)"). */
char *data_find (const char *kind, const char *name, const char *from, GError **error);

/* TRUE when data_find takes name as a path rather than the name of a shipped file. */
gboolean data_is_path (const char *name);

/* Sorted names, without ".json", of what ships of this kind; free with g_strfreev. */
char **data_list (const char *kind);

/* path as seen from the folder of the file from (or the working directory when NULL); newly
 * allocated. */
char *path_relative_to (const char *path, const char *from);

#endif
