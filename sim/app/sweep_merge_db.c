/* Shards that are databases into one. */
#include <errno.h>
#include <glib/gstdio.h>

#include "cli.h"
#include "fileio.h"
#include "sweep_db.h"
#include "sweep_merge.h"

/* The first value of a statement as text, or NULL; ?1 is arg. Newly allocated. */
static char *
ask (sqlite3 *db, const char *sql)
{
  sqlite3_stmt *st = NULL;
  char *text = NULL;
  if (sqlite3_prepare_v2 (db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step (st) == SQLITE_ROW)
    text = g_strdup ((const char *)sqlite3_column_text (st, 0));
  sqlite3_finalize (st);
  return text;
}

static gboolean
run_sql (sqlite3 *db, const char *sql, const char *part, GError **error)
{
  return sqlite3_exec (db, sql, NULL, NULL, NULL) == SQLITE_OK || sweep_db_fail (db, part, error);
}

static gboolean
attach (sqlite3 *db, const char *file, GError **error)
{
  char *sql = sqlite3_mprintf ("ATTACH %Q AS shard", file);
  gboolean ok = g_file_test (file, G_FILE_TEST_IS_REGULAR) &&
                sqlite3_exec (db, sql, NULL, NULL, NULL) == SQLITE_OK;
  sqlite3_free (sql);
  g_autofree char *sweep =
      ok ? ask (db, "SELECT value FROM shard.sweep WHERE key = 'sweep'") : NULL;
  if (sweep != NULL)
    return TRUE;
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "%s: is no database of a sweep", file);
  return FALSE;
}

static gboolean
add_shard (sqlite3 *db, const char *file, const char *part, GError **error)
{
  if (!attach (db, file, error))
    return FALSE;
  g_autofree char *create =
      ask (db, "SELECT sql FROM shard.sqlite_master WHERE name = 'results' AND NOT EXISTS "
               "(SELECT 1 FROM main.sqlite_master WHERE name = 'results')");
  if (create != NULL &&
      (!run_sql (db, create, part, error) ||
       !run_sql (db,
                 "CREATE TABLE main.sweep (key TEXT PRIMARY KEY, value);"
                 "INSERT INTO main.sweep SELECT * FROM shard.sweep WHERE key <> 'identity'",
                 part, error)))
    return FALSE;
  g_autofree char *same =
      ask (db, "SELECT 1 FROM main.sweep a JOIN shard.sweep b USING (key, value)"
               " WHERE key = 'sweep'");
  g_autofree char *twice =
      ask (db, "SELECT point FROM main.results JOIN shard.results USING (point) LIMIT 1");
  if (same == NULL || twice != NULL) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "%s: %s%s", file,
                 same == NULL ? "is of another sweep" : "a point is there twice: ",
                 same == NULL ? "" : twice);
    return FALSE;
  }
  return run_sql (db, "INSERT INTO main.results SELECT * FROM shard.results; DETACH shard", part,
                  error);
}

static gboolean
check_whole (sqlite3 *db, GError **error)
{
  g_autofree char *missing =
      ask (db, "SELECT value - (SELECT count(*) FROM results) FROM sweep WHERE key = 'points'");
  if (g_strcmp0 (missing, "0") == 0)
    return TRUE;
  g_set_error (error, CLI_ERROR, CLI_ERROR_FAILED,
               "sweep --merge: %s points are missing (a shard is not given, or not finished: run "
               "it again with --resume)",
               missing);
  return FALSE;
}

gboolean
sweep_merge_db (const char *const *files, const char *output, GError **error)
{
  g_autofree char *part = g_strconcat (output, ".merge", NULL);
  sqlite3 *db = NULL;
  g_unlink (part);
  gboolean ok = sqlite3_open (part, &db) == SQLITE_OK || sweep_db_fail (db, part, error);
  ok = ok && run_sql (db, "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY", part, error);
  for (gsize i = 0; ok && files[i] != NULL; i++)
    ok = add_shard (db, files[i], part, error);
  ok = ok && check_whole (db, error);
  sqlite3_close (db);
  if (ok && g_rename (part, output) != 0) {
    g_set_error (error, FILEIO_ERROR, FILEIO_ERROR_WRITE, "%s: cannot be written (%s)", output,
                 g_strerror (errno));
    ok = FALSE;
  }
  if (!ok)
    g_unlink (part);
  return ok;
}
