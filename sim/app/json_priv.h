/* json_priv: what the files of the JSON reader share; nobody else includes this.
 *
 * json_scan.c  checks the text: strict RFC 8259, in one pass, without recursion
 * json_doc.c   owns trees: parse, where a node came from, merge, set
 * json_read.c  getters and their errors
 * json_prov.c  numbers with their source
 */
#ifndef CLUSTERSIM_JSON_PRIV_H
#define CLUSTERSIM_JSON_PRIV_H

#include "json_read.h"

typedef struct {
  char *name;       /* as messages name it */
  gboolean is_path; /* name is a path of a file, to which other paths can be relative */
} JsonFile;

struct JsonDoc {
  cJSON *root;
  GPtrArray *files;   /* JsonFile*; [0] is the document's own */
  GHashTable *origin; /* node → file index and line, packed; looked up only, never iterated */
  /* The last element that json_item returned, so that a loop over a long list is linear. */
  struct {
    const cJSON *parent, *node;
    int index, len; /* len -1: not counted yet */
  } cursor;
};

/* Checks text and appends the line of every value, in document order, to lines (guint32). Values
 * are counted before their members. After TRUE, cJSON reads the same text without an error. */
gboolean json_scan (const JsonFile *file, const char *text, gsize len, GArray *lines,
                    GError **error);

/* Appends "/part" to a path, with / and ~ escaped as in JSON pointers (RFC 6901), on one line. */
void json_path_append (GString *path, const char *part, gssize len);

/* "FILE:LINE: /path: message", where a path that is very long shows its two ends. place is
 * "FILE:LINE". */
void json_set_error (GError **error, JsonError code, const char *place, const char *path,
                     const char *message);

/* "FILE:LINE", or FILE alone for "--set KEY", which is one line; newly allocated. */
char *json_place (const char *name, gboolean is_path, guint line);

/* "number 3.5", "string \"x\"", "an object" …; newly allocated. */
char *json_describe (const cJSON *node);

const cJSON *json_child (const JsonRef *obj, const char *key); /* by exact key; NULL when absent */
JsonRef json_child_ref (const JsonRef *obj, const char *key);  /* node NULL when absent */

/* File index and line of the nearest node with a known origin, from ref up to the root. */
void json_origin (const JsonRef *ref, guint *file, guint *line);

#endif
