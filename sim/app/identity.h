/* identity: a fingerprint of all that a long run reads, so that what was done before is taken up
 * only by the very same run.
 *
 * A file belongs to it when a string of the scenario names it, as the name of a shipped file of any
 * kind or as a path, and what that file names in turn. Names that only look like one of a file do
 * no harm: they add a file that does not change by itself. */
#ifndef CLUSTERSIM_IDENTITY_H
#define CLUSTERSIM_IDENTITY_H

#include "json_read.h"

typedef struct Identity Identity;
Identity *identity_new (void); /* begins with the version of the program */
void identity_free (Identity *id);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Identity, identity_free)

void identity_text (Identity *id, const char *text); /* NULL is another text than "" */
/* The document, and the files that it names. */
void identity_document (Identity *id, JsonDoc *doc);
/* A value, perhaps the name of a file; as seen from the file from, or NULL. */
void identity_name (Identity *id, const char *name, const char *from);
/* The fingerprint, hexadecimal; nothing can be added then. Borrowed. */
const char *identity_get (Identity *id);

#endif
