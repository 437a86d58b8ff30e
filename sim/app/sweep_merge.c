#include "sweep_merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "fileio.h"
#include "sweep_point.h"
#include "sweep_sink.h"

typedef struct {
  const char *name;
  FILE *in;
  guint64 line; /* of the record, from 1 */
  GString *record;
  gboolean json;
  guint64 point, points;
  gsize skip; /* bytes of the record that tell the point */
} Shard;

typedef struct {
  guint n;
  Shard *shards;
  GHashTable *heads; /* guint64* point → Shard* that has it next; looked up only */
  GString *header;   /* of CSV, without the column of points */
  guint64 points;
} Merge;

static gboolean shard_fail (const Shard *s, GError **error, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

static gboolean
shard_fail (const Shard *s, GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *what = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "%s:%" G_GUINT64_FORMAT ": %s", s->name, s->line,
               what);
  return FALSE;
}

/* A record of CSV goes on while a quote is open. FALSE without error at the end. */
static gboolean
read_record (Shard *s, GError **error)
{
  gboolean open = FALSE;
  g_string_truncate (s->record, 0);
  s->line++;
  for (int c = getc (s->in); c != EOF; c = getc (s->in)) {
    g_string_append_c (s->record, (char)c);
    open = (c == '"') != open;
    if (c == '\n' && (s->json || !open))
      return TRUE;
  }
  if (ferror (s->in))
    return shard_fail (s, error, "cannot be read (%s)", g_strerror (errno));
  return s->record->len == 0 ? FALSE : shard_fail (s, error, "the last line is not whole");
}

static gboolean
no_shard (const Shard *s, GError **error)
{
  return shard_fail (s, error,
                     "no line of a shard (allowed: what sweep --shard wrote, CSV or JSON lines)");
}

/* {"point": I, "points": N, … */
static gboolean
json_point (Shard *s, GError **error)
{
  static const char first[] = "{\"point\": ", second[] = ", \"points\": ";
  char *end;
  if (!g_str_has_prefix (s->record->str, first))
    return no_shard (s, error);
  s->point = g_ascii_strtoull (s->record->str + strlen (first), &end, 10);
  if (!g_str_has_prefix (end, second))
    return no_shard (s, error);
  s->points = g_ascii_strtoull (end + strlen (second), &end, 10);
  if (!g_str_has_prefix (end, ", "))
    return no_shard (s, error);
  s->skip = (gsize)(end + 2 - s->record->str);
  return TRUE;
}

static gboolean
csv_point (Shard *s, GError **error)
{
  char *end;
  s->point = g_ascii_strtoull (s->record->str, &end, 10);
  s->skip = (gsize)(end + 1 - s->record->str);
  return (end != s->record->str && *end == ',') || no_shard (s, error);
}

/* The next line of a shard becomes one of the heads. */
static gboolean
advance (Merge *m, Shard *s, guint64 at_least, GError **error)
{
  GError *why = NULL;
  if (!read_record (s, &why)) {
    if (why != NULL)
      g_propagate_error (error, why);
    return why == NULL;
  }
  if (!(s->json ? json_point (s, error) : csv_point (s, error)))
    return FALSE;
  const Shard *other = g_hash_table_lookup (m->heads, &s->point);
  if (s->point < at_least || other != NULL)
    return shard_fail (s, error, "point %" G_GUINT64_FORMAT " is there twice (also in %s)",
                       s->point, other != NULL ? other->name : "an earlier line");
  if (m->points == 0)
    m->points = s->points;
  if (s->points != m->points || s->point >= m->points)
    return shard_fail (s, error, "is of another sweep than %s", m->shards[0].name);
  g_hash_table_insert (m->heads, &s->point, s);
  return TRUE;
}

/* The header of CSV; the first character tells JSON. */
static gboolean
open_shard (Merge *m, Shard *s, GError **error)
{
  s->record = g_string_new (NULL);
  s->in = fopen (s->name, "re");
  if (s->in == NULL) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "%s: cannot be opened (%s)", s->name,
                 g_strerror (errno));
    return FALSE;
  }
  int c = getc (s->in);
  if (c != EOF)
    ungetc (c, s->in);
  s->json = c == '{' || c == EOF; /* a shard of JSON without points is empty */
  if (s->json)
    return advance (m, s, 0, error);
  GError *why = NULL;
  if (!read_record (s, &why))
    return why != NULL ? (g_propagate_error (error, why), FALSE) : no_shard (s, error);
  char *end = s->record->str;
  if (g_str_has_prefix (end, SWEEP_POINT_COLUMN))
    s->points = g_ascii_strtoull (end + strlen (SWEEP_POINT_COLUMN), &end, 10);
  if (*end != ',')
    return no_shard (s, error);
  if (m->header->len == 0)
    g_string_assign (m->header, end + 1);
  if (strcmp (m->header->str, end + 1) != 0)
    return shard_fail (s, error, "is of another sweep than %s (other columns)", m->shards[0].name);
  return advance (m, s, 0, error);
}

static gboolean
merge_lines (Merge *m, FILE *out, GError **error)
{
  guint64 missing = 0, first = 0;
  if (out != NULL)
    fputs (m->header->str, out);
  for (guint64 i = 0; i < m->points; i++) {
    Shard *s = g_hash_table_lookup (m->heads, &i);
    if (s == NULL) {
      first = missing++ == 0 ? i : first;
      continue;
    }
    g_hash_table_remove (m->heads, &i);
    if (out != NULL && s->json)
      fputc ('{', out);
    if (out != NULL)
      fwrite (s->record->str + s->skip, 1, s->record->len - s->skip, out);
    if (!advance (m, s, i + 1, error))
      return FALSE;
  }
  if (missing == 0 && m->points > 0)
    return TRUE;
  g_set_error (error, CLI_ERROR, CLI_ERROR_FAILED,
               "sweep --merge: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
               " points are missing, the first is %" G_GUINT64_FORMAT
               " (a shard is not given, or not finished: run it again with --resume)",
               missing, m->points, first);
  return FALSE;
}

static gboolean
open_shards (Merge *m, GError **error)
{
  gboolean ok = TRUE;
  for (guint k = 0; ok && k < m->n; k++)
    ok = open_shard (m, &m->shards[k], error);
  return ok;
}

static void
close_shards (Merge *m)
{
  for (guint k = 0; k < m->n; k++) {
    Shard *s = &m->shards[k];
    if (s->in != NULL)
      fclose (s->in);
    if (s->record != NULL)
      g_string_free (s->record, TRUE);
    *s = (Shard){.name = s->name};
  }
  g_hash_table_remove_all (m->heads);
}

static gboolean
merge_into (Merge *m, const char *output, GError **error)
{
  /* Nothing can be taken back from stdout, so that all is looked at first. */
  if (output == NULL) {
    gboolean ok = open_shards (m, error) && merge_lines (m, NULL, error);
    close_shards (m);
    if (!ok)
      return FALSE;
  }
  g_autoptr (Output) out = open_shards (m, error) ? output_open (output, error) : NULL;
  return out != NULL && merge_lines (m, output_stream (out), error) &&
         output_commit (g_steal_pointer (&out), error);
}

static gboolean
merge_text (const char *const *files, const char *output, GError **error)
{
  Merge m = {.n = g_strv_length ((char **)files)};
  m.shards = g_new0 (Shard, m.n);
  m.heads = g_hash_table_new (g_int64_hash, g_int64_equal);
  m.header = g_string_new (NULL);
  for (guint k = 0; k < m.n; k++)
    m.shards[k].name = files[k];
  gboolean ok = merge_into (&m, output, error);
  close_shards (&m);
  g_string_free (m.header, TRUE);
  g_hash_table_unref (m.heads);
  g_free (m.shards);
  return ok;
}

gboolean
sweep_merge (const char *const *files, const char *output, GError **error)
{
  guint dbs = 0, n = g_strv_length ((char **)files);
  for (guint i = 0; i < n; i++)
    dbs += sweep_sink_is_db (files[i]) ? 1 : 0;
  if (dbs == 0 && !sweep_sink_is_db (output))
    return merge_text (files, output, error);
  if (dbs == n && sweep_sink_is_db (output))
    return sweep_merge_db (files, output, error);
  g_set_error (
      error, CLI_ERROR, CLI_ERROR_USAGE,
      "sweep --merge: databases and text together (allowed: all files and the output *.db, "
      "or none of them)");
  return FALSE;
}
