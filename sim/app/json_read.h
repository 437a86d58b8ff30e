/* json_read: strict reading over cJSON.
 *
 * Why a layer of our own: cJSON accepts trailing text, duplicate keys, 1e999 and rounds large
 * integers; it keeps no line numbers. A JsonDoc is a parsed file that was checked as a whole
 * (UTF-8, size, depth, duplicate keys, finite numbers, nothing after the value), and every node
 * knows the file and line it came from, also after merging, so each error reads FILE:LINE:
 * /json/path: what is wrong (what was found; what is allowed)
 *
 * Ownership: json_doc_free frees the tree; strings returned by json_get_string are borrowed from
 * the document. JsonRef is a cursor by value; it borrows its parent cursor, which must outlive it.
 * Errors: domain JSON_ERROR; every function that can fail returns FALSE/NULL and sets error.
 */
#ifndef CLUSTERSIM_JSON_READ_H
#define CLUSTERSIM_JSON_READ_H

#include <glib.h>
#include <cjson/cJSON.h>

#define JSON_ERROR json_error_quark ()
GQuark json_error_quark (void);
typedef enum {
  JSON_ERROR_FILE,        /* cannot be read, or too big */
  JSON_ERROR_SYNTAX,      /* not JSON, not UTF-8, too deep, duplicate key, trailing text */
  JSON_ERROR_UNKNOWN_KEY, /* a key that nobody reads; the nearest known one is named */
  JSON_ERROR_TYPE,
  JSON_ERROR_RANGE, /* out of range, not an integer, not finite, unknown name */
  JSON_ERROR_MISSING,
  JSON_ERROR_INCONSISTENT /* two values that contradict each other */
} JsonError;

#define JSON_MAX_BYTES  (64 << 20) /* larger files are refused */
#define JSON_MAX_DEPTH  200
#define JSON_MAX_VALUES 2000000 /* in one document; a value takes some 150 bytes once parsed */

typedef struct JsonDoc JsonDoc;
typedef struct JsonRef JsonRef;
struct JsonRef {
  JsonDoc *doc;
  const cJSON *node;
  const JsonRef *parent; /* NULL at the root */
  const char *key;       /* key in the parent object, or NULL */
  int index;             /* index in the parent array, or -1 */
};

JsonDoc *json_doc_load (const char *path, GError **error);
/* name stands for the file in messages, e.g. "--set parallel.tp". */
JsonDoc *json_doc_parse (const char *name, const char *text, gsize len, GError **error);
void json_doc_free (JsonDoc *doc);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (JsonDoc, json_doc_free)

const char *json_doc_name (const JsonDoc *doc);
/* The file that a value comes from, also after merging: what a path in it is relative to. NULL when
 * it does not come from a file (--set, json_doc_parse). Borrowed from the document. */
const char *json_file (const JsonRef *ref);
JsonRef json_root (JsonDoc *doc);

/* RFC 7396 merge patch: the members of patch replace those of base, objects recursively, null
 * deletes. Takes what it needs out of patch, which must still be freed. Lines stay those of the
 * origin. */
void json_doc_merge (JsonDoc *base, JsonDoc *patch);

/* Sets the value at a dotted path ("parallel.tp", "stages.2.layers"), making objects on the way; an
 * array element must exist, and what is on the way must be an object or array. text is JSON if it
 * parses as JSON, else taken as a string; but text that begins with { [ or " must be JSON, and NaN
 * or a number out of range is an error. Errors name "--set dotted" as the file. */
gboolean json_doc_set (JsonDoc *doc, const char *dotted, const char *text, GError **error);

/* As json_doc_set, with the whole of value, whose lines stay those of its own file. Takes what it
 * needs out of value, which must still be freed. */
gboolean json_doc_put (JsonDoc *doc, const char *dotted, JsonDoc *value, GError **error);

/* Removes a top-level member if present. */
void json_doc_remove (JsonDoc *doc, const char *key);

/* A document of its own with a copy of the value at ref and of where it came from. */
JsonDoc *json_doc_copy (const JsonRef *ref);

gboolean json_has (const JsonRef *obj, const char *key);
gboolean json_is_object (const JsonRef *ref);
gboolean json_is_string (const JsonRef *ref);
gboolean json_is_array (const JsonRef *ref);
gboolean json_is_number (const JsonRef *ref);

/* Child cursors. json_get_* are for required members, json_opt_* leave *out as it is when absent.
 */
gboolean json_get_object (const JsonRef *obj, const char *key, JsonRef *out, GError **error);
gboolean json_get_array (const JsonRef *obj, const char *key, JsonRef *out, GError **error);
gboolean json_get_any (const JsonRef *obj, const char *key, JsonRef *out, GError **error);
int json_len (const JsonRef *arr); /* array or object */
JsonRef json_item (const JsonRef *arr,
                   int i); /* i-th element, or i-th member of an object (key set) */

gboolean json_get_double (const JsonRef *obj, const char *key, double min, double max, double *out,
                          GError **error);
gboolean json_opt_double (const JsonRef *obj, const char *key, double min, double max, double *out,
                          GError **error);
gboolean json_get_int (const JsonRef *obj, const char *key, gint64 min, gint64 max, gint64 *out,
                       GError **error);
gboolean json_opt_int (const JsonRef *obj, const char *key, gint64 min, gint64 max, gint64 *out,
                       GError **error);
gboolean json_get_bool (const JsonRef *obj, const char *key, gboolean *out, GError **error);
gboolean json_opt_bool (const JsonRef *obj, const char *key, gboolean *out, GError **error);
gboolean json_get_string (const JsonRef *obj, const char *key, const char **out, GError **error);
gboolean json_opt_string (const JsonRef *obj, const char *key, const char **out, GError **error);
/* names: NULL-terminated; *out becomes the index. The error names the nearest allowed name. */
gboolean json_get_enum (const JsonRef *obj, const char *key, const char *const *names, int *out,
                        GError **error);
gboolean json_opt_enum (const JsonRef *obj, const char *key, const char *const *names, int *out,
                        GError **error);

/* The value of a cursor itself (array items). */
gboolean json_value_double (const JsonRef *ref, double min, double max, double *out,
                            GError **error);
gboolean json_value_int (const JsonRef *ref, gint64 min, gint64 max, gint64 *out, GError **error);
gboolean json_value_string (const JsonRef *ref, const char **out, GError **error);

/* Every member of obj must be among allowed (NULL-terminated); else UNKNOWN_KEY with the nearest.
 */
gboolean json_check_keys (const JsonRef *obj, const char *const *allowed, GError **error);

/* Sets an error placed at ref ("FILE:LINE: /path: message"); returns FALSE for tail calls. The
 * message is made one line: control characters and bytes that are not UTF-8 in it are escaped. */
gboolean json_fail (const JsonRef *ref, JsonError code, GError **error, const char *format, ...)
    G_GNUC_PRINTF (4, 5);

/* "FILE:LINE" of a node; newly allocated. */
char *json_where (const JsonRef *ref);
char *json_path (const JsonRef *ref); /* "/a/b/2"; newly allocated */

/* A number with its origin, as profiles hold it:
 *   "key": { "value": 0.84, "kind": "measured|vendor|assumed", "source": "…" }
 * A bare number is refused: every physical constant says where it is from. */
typedef enum { PROV_MEASURED, PROV_VENDOR, PROV_ASSUMED } ProvKind;
typedef struct {
  char *name; /* "profile:/path" */
  double value;
  ProvKind kind;
  char *source;
} ProvEntry;
void prov_entry_free (ProvEntry *e);
/* prov: array of ProvEntry* (owned by the array), may be NULL. */
gboolean json_get_sourced (const JsonRef *obj, const char *key, double min, double max, double *out,
                           GPtrArray *prov, GError **error);
gboolean json_opt_sourced (const JsonRef *obj, const char *key, double min, double max, double *out,
                           GPtrArray *prov, GError **error);

/* Nearest name by edit distance, or NULL when none is near; for messages of other modules too. */
const char *nearest_name (const char *found, const char *const *names);

#endif
