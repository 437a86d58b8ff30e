/* A sweep into an SQLite database. */
#include <errno.h>
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "fileio.h"
#include "sweep_db.h"
#include "sweep_sink.h"

typedef struct {
  SweepSink base;
  char *path; /* of the part */
  sqlite3 *db;
  sqlite3_stmt *insert;
  GPtrArray *columns; /* char*, of a line */
  guint8 *known;      /* a bit a point */
  gboolean open;      /* a transaction */
} Db;

gboolean
sweep_db_fail (sqlite3 *db, const char *path, GError **error)
{
  if (sqlite3_errcode (db) == SQLITE_BUSY)
    return sweep_part_locked (path, NULL, error);
  g_set_error (error, FILEIO_ERROR, FILEIO_ERROR_WRITE, "%s: SQLite: %s", path,
               sqlite3_errmsg (db));
  return FALSE;
}

/* ---- text ---- */

GPtrArray *
sweep_csv_fields (const char *line, gsize len)
{
  GPtrArray *fields = g_ptr_array_new_with_free_func (g_free);
  const char *p = line, *end = line + len;
  while (end > p && (end[-1] == '\n' || end[-1] == '\r'))
    end--;
  for (gboolean more = TRUE; more;) {
    GString *f = g_string_new (NULL);
    gboolean quoted = p < end && *p == '"';
    for (p += quoted; p < end && (quoted || *p != ','); p++) {
      if (quoted && *p == '"') {
        quoted = p + 1 < end && p[1] == '"';
        p += quoted ? 1 : 0;
        if (!quoted)
          continue;
      }
      g_string_append_c (f, *p);
    }
    g_ptr_array_add (fields, g_string_free (f, FALSE));
    more = p < end;
    p++;
  }
  return fields;
}

static void
append_name (GString *sql, const char *name)
{
  g_string_append_c (sql, '"');
  for (const char *p = name; *p != '\0'; p++) {
    if (*p == '"')
      g_string_append_c (sql, '"');
    g_string_append_c (sql, *p);
  }
  g_string_append_c (sql, '"');
}

/* Numbers as numbers, nothing as NULL. */
static void
bind_field (sqlite3_stmt *st, int at, const char *text)
{
  gint64 whole;
  char *end;
  if (*text == '\0') {
    sqlite3_bind_null (st, at);
    return;
  }
  if (g_ascii_string_to_signed (text, 10, G_MININT64, G_MAXINT64, &whole, NULL)) {
    sqlite3_bind_int64 (st, at, whole);
    return;
  }
  double v = g_ascii_strtod (text, &end);
  if (*end == '\0' && v - v == 0)
    sqlite3_bind_double (st, at, v);
  else
    sqlite3_bind_text (st, at, text, -1, SQLITE_TRANSIENT);
}

/* ---- a running sweep ---- */

static gboolean
exec (Db *d, const char *sql, GError **error)
{
  return sqlite3_exec (d->db, sql, NULL, NULL, NULL) == SQLITE_OK ||
         sweep_db_fail (d->db, d->path, error);
}

static guint64
slot_of (const Db *d, guint64 i)
{
  return (i - d->base.plan.first) / d->base.plan.step;
}

static gboolean
db_known (const SweepSink *s, guint64 i)
{
  const Db *d = (const Db *)s;
  guint64 k = slot_of (d, i);
  return (d->known[k / 8] >> (k % 8) & 1) != 0;
}

static gboolean
db_hold (const SweepSink *s G_GNUC_UNUSED)
{
  return FALSE;
}

static void
note (Db *d, guint64 i, gboolean ok)
{
  guint64 k = slot_of (d, i);
  d->known[k / 8] |= (guint8)(1u << (k % 8));
  d->base.done++;
  d->base.failed += ok ? 0 : 1;
}

static gboolean
db_put (SweepSink *s, guint64 i, gboolean ok, const char *line, gsize len, GError **error)
{
  Db *d = (Db *)s;
  g_autoptr (GPtrArray) fields = sweep_csv_fields (line, len);
  g_assert (fields->len == d->columns->len);
  if (!d->open && !exec (d, "BEGIN", error))
    return FALSE;
  d->open = TRUE;
  sqlite3_bind_int64 (d->insert, 1, (sqlite3_int64)i);
  for (guint k = 0; k < fields->len; k++)
    bind_field (d->insert, (int)k + 2, g_ptr_array_index (fields, k));
  int rc = sqlite3_step (d->insert);
  sqlite3_reset (d->insert);
  if (rc != SQLITE_DONE)
    return sweep_db_fail (d->db, d->path, error);
  note (d, i, ok);
  return TRUE;
}

static gboolean
db_flush (SweepSink *s, GError **error)
{
  Db *d = (Db *)s;
  if (!d->open)
    return TRUE;
  d->open = FALSE;
  return exec (d, "COMMIT", error);
}

static gboolean
db_finish (SweepSink *s, GError **error)
{
  Db *d = (Db *)s;
  if (!db_flush (s, error) || !exec (d, "PRAGMA journal_mode = DELETE", error))
    return FALSE;
  g_clear_pointer (&d->insert, sqlite3_finalize);
  g_clear_pointer (&d->db, sqlite3_close);
  if (g_rename (d->path, s->plan.output) == 0)
    return TRUE;
  g_set_error (error, FILEIO_ERROR, FILEIO_ERROR_WRITE, "%s: cannot be written (%s)",
               s->plan.output, g_strerror (errno));
  return FALSE;
}

static void
db_close (SweepSink *s)
{
  Db *d = (Db *)s;
  if (d->open)
    db_flush (s, NULL);
  sqlite3_finalize (d->insert);
  sqlite3_close (d->db);
  g_ptr_array_unref (d->columns);
  g_free (d->known);
  g_free (d->path);
  g_free (d);
}

static void
db_drop (SweepSink *s)
{
  static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
  Db *d = (Db *)s;
  d->open = FALSE;
  g_clear_pointer (&d->insert, sqlite3_finalize);
  g_clear_pointer (&d->db, sqlite3_close);
  for (guint i = 0; i < G_N_ELEMENTS (endings); i++) {
    g_autofree char *file = g_strconcat (d->path, endings[i], NULL);
    g_unlink (file);
  }
}

/* ---- opening ---- */

static char *
sql_create (const Db *d)
{
  GString *sql = g_string_new ("CREATE TABLE results (\"point\" INTEGER PRIMARY KEY");
  for (guint k = 0; k < d->columns->len; k++) {
    g_string_append (sql, ", ");
    append_name (sql, g_ptr_array_index (d->columns, k));
  }
  g_string_append (sql, "); CREATE TABLE sweep (key TEXT PRIMARY KEY, value)");
  return g_string_free (sql, FALSE);
}

static char *
sql_insert (const Db *d)
{
  GString *sql = g_string_new ("INSERT INTO results VALUES (?");
  for (guint k = 0; k < d->columns->len; k++)
    g_string_append (sql, ", ?");
  g_string_append_c (sql, ')');
  return g_string_free (sql, FALSE);
}

/* What a sweep of this identity has, or why it is not one. */
static gboolean
take_up (Db *d, GError **error)
{
  sqlite3_stmt *st = NULL;
  gboolean same = FALSE;
  if (sqlite3_prepare_v2 (d->db, "SELECT value FROM sweep WHERE key = 'identity'", -1, &st, NULL) ==
          SQLITE_OK &&
      sqlite3_step (st) == SQLITE_ROW)
    same = g_strcmp0 ((const char *)sqlite3_column_text (st, 0), d->base.plan.identity) == 0;
  sqlite3_finalize (st);
  if (!same)
    return sweep_part_other (d->path, &d->base.plan, error);
  if (sqlite3_prepare_v2 (d->db, "SELECT point, error IS NULL FROM results", -1, &st, NULL) !=
      SQLITE_OK)
    return sweep_db_fail (d->db, d->path, error);
  while (sqlite3_step (st) == SQLITE_ROW)
    note (d, (guint64)sqlite3_column_int64 (st, 0), sqlite3_column_int (st, 1) != 0);
  sqlite3_finalize (st);
  return TRUE;
}

static gboolean
begin (Db *d, GError **error)
{
  const SinkPlan *p = &d->base.plan;
  g_autofree char *create = sql_create (d);
  char *meta = sqlite3_mprintf ("INSERT INTO sweep VALUES ('identity', %Q), ('sweep', %Q), "
                                "('points', %lld), ('version', %Q)",
                                p->identity, p->sweep, (long long)p->total, CLUSTERSIM_VERSION);
  gboolean ok = exec (d, "BEGIN", error) && exec (d, create, error) && exec (d, meta, error) &&
                exec (d, "COMMIT", error);
  sqlite3_free (meta);
  return ok;
}

static gboolean
has_tables (const Db *d)
{
  sqlite3_stmt *st = NULL;
  gboolean has =
      sqlite3_prepare_v2 (d->db, "SELECT 1 FROM sqlite_master", -1, &st, NULL) == SQLITE_OK &&
      sqlite3_step (st) == SQLITE_ROW;
  sqlite3_finalize (st);
  return has;
}

static gboolean
open_part (Db *d, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (d->base.plan.output);
  gboolean there;
  if (access (folder, W_OK) != 0) {
    g_set_error (error, FILEIO_ERROR, FILEIO_ERROR_OPEN, "%s: cannot be written (%s)",
                 d->base.plan.output, g_strerror (errno));
    return FALSE;
  }
  if (sqlite3_open (d->path, &d->db) != SQLITE_OK)
    return sweep_db_fail (d->db, d->path, error);
  /* Exclusive: a lock against a second sweep. WAL: a commit is one write; NORMAL: what a process
   * wrote outlives it, and a power cut leaves a whole database. */
  if (!exec (d,
             "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; "
             "PRAGMA synchronous = NORMAL; BEGIN EXCLUSIVE; COMMIT",
             error))
    return FALSE;
  there = has_tables (d); /* killed before it began: not there */
  if (there && !d->base.plan.resume)
    return sweep_part_exists (d->path, &d->base.plan, error);
  if (there ? !take_up (d, error) : !begin (d, error))
    return FALSE;
  g_autofree char *insert = sql_insert (d);
  return sqlite3_prepare_v2 (d->db, insert, -1, &d->insert, NULL) == SQLITE_OK ||
         sweep_db_fail (d->db, d->path, error);
}

SweepSink *
sweep_db_open (const SinkPlan *plan, GError **error)
{
  static const SinkOps ops = {db_known, db_hold, db_put, db_flush, db_finish, db_drop, db_close};
  Db *d = g_new0 (Db, 1);
  guint64 n = plan->end > plan->first ? (plan->end - plan->first - 1) / plan->step + 1 : 0;
  d->base.ops = &ops;
  d->base.plan = *plan;
  d->base.resumable = TRUE;
  d->path = g_strconcat (plan->output, ".part", NULL);
  d->columns = sweep_csv_fields (plan->header, strlen (plan->header));
  d->known = g_malloc0 (n / 8 + 1);
  if (open_part (d, error))
    return &d->base;
  db_close (&d->base);
  return NULL;
}
