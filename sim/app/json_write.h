/* json_write: streaming JSON writer into a GString. Numbers are written with g_ascii_dtostr
 * (shortest form that reads back the same), never locale dependent; not-finite numbers become null.
 * Commas and indentation are kept by the writer; misuse (a key outside an object) is an assertion.
 */
#ifndef CLUSTERSIM_JSON_WRITE_H
#define CLUSTERSIM_JSON_WRITE_H

#include <glib.h>

typedef struct JsonWriter JsonWriter;

/* indent 0 writes one line (sweep, plan), 2 the usual form. */
JsonWriter *json_writer_new (GString *out, int indent);
void json_writer_free (JsonWriter *w);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (JsonWriter, json_writer_free)

void jw_begin_object (JsonWriter *w, const char *key); /* key NULL at the root and in arrays */
void jw_end_object (JsonWriter *w);
void jw_begin_array (JsonWriter *w, const char *key);
void jw_end_array (JsonWriter *w);
void jw_string (JsonWriter *w, const char *key, const char *value); /* NULL writes null */
void jw_double (JsonWriter *w, const char *key, double value);
void jw_int (JsonWriter *w, const char *key, gint64 value);
void jw_bool (JsonWriter *w, const char *key, gboolean value);
void jw_null (JsonWriter *w, const char *key);

#endif
