/* sweep_db: what the writer of a database and the merge share. */
#ifndef CLUSTERSIM_SWEEP_DB_H
#define CLUSTERSIM_SWEEP_DB_H

#include <glib.h>
#include <sqlite3.h>

/* Sets the error of the last call on db; returns FALSE. */
gboolean sweep_db_fail (sqlite3 *db, const char *path, GError **error);

/* The fields of one record of CSV; char*, owned by the array. */
GPtrArray *sweep_csv_fields (const char *line, gsize len);

#endif
