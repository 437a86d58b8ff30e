#include "sweep_sink.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "fileio.h"
#include "text.h"

static const char *
what_of (const SinkPlan *plan)
{
  return plan != NULL && plan->what != NULL ? plan->what : "sweep";
}

gboolean
sweep_part_exists (const char *part, const SinkPlan *plan, GError **error)
{
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
               "%s: an unfinished %s is there (add --resume to go on with it, or remove it)", part,
               what_of (plan));
  return FALSE;
}

gboolean
sweep_part_other (const char *part, const SinkPlan *plan, GError **error)
{
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
               "%s: is of another %s (the scenario, the profiles, the values, the format, the "
               "shard or the version differ; allowed: the same command with --resume)",
               part, what_of (plan));
  return FALSE;
}

gboolean
sweep_part_locked (const char *part, const SinkPlan *plan, GError **error)
{
  g_set_error (error, CLI_ERROR, CLI_ERROR_FAILED, "%s: another %s is writing it", part,
               what_of (plan));
  return FALSE;
}

gboolean
sweep_shard_parse (const char *text, guint64 *first, guint64 *step, GError **error)
{
  *first = 0;
  *step = 1;
  if (text == NULL)
    return TRUE;
  g_auto (GStrv) parts = g_strsplit (text, "/", -1);
  guint64 i, n;
  if (g_strv_length (parts) != 2 ||
      !g_ascii_string_to_unsigned (parts[1], 10, 1, 1000000, &n, NULL) ||
      !g_ascii_string_to_unsigned (parts[0], 10, 1, n, &i, NULL)) {
    g_autofree char *quoted = text_quoted (text);
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
                 "--shard: not a shard (found %s; allowed: 1/N to N/N)", quoted);
    return FALSE;
  }
  *first = i - 1;
  *step = n;
  return TRUE;
}

/* ---- in order, to a stream ---- */

/* Results that came before their turn; beyond this nothing further is started. Also held back is
 * everything before the first point that could run: when none can, stdout stays empty. */
#define HELD_BYTES_MAX ((gsize)16 << 20)

typedef struct {
  SweepSink base;
  Output *out;
  GHashTable *early; /* guint64* → GBytes */
  gsize early_bytes;
  guint64 next;
  GString *ready;
  gboolean any; /* a point could run */
} Stream;

static gboolean
stream_known (const SweepSink *s G_GNUC_UNUSED, guint64 i G_GNUC_UNUSED)
{
  return FALSE;
}

static gboolean
stream_hold (const SweepSink *s)
{
  return ((const Stream *)s)->early_bytes > HELD_BYTES_MAX;
}

static void
release_early (Stream *st)
{
  GBytes *line;
  while ((line = g_hash_table_lookup (st->early, &st->next)) != NULL) {
    gsize len;
    const char *text = g_bytes_get_data (line, &len);
    g_string_append_len (st->ready, text, (gssize)len);
    st->early_bytes -= len;
    g_hash_table_remove (st->early, &st->next);
    st->next += st->base.plan.step;
  }
}

static gboolean
stream_put (SweepSink *s, guint64 i, gboolean ok, const char *line, gsize len,
            GError **error G_GNUC_UNUSED)
{
  Stream *st = (Stream *)s;
  s->done++;
  s->failed += ok ? 0 : 1;
  st->any = st->any || ok;
  if (i != st->next) {
    g_hash_table_insert (st->early, g_memdup2 (&i, sizeof i), g_bytes_new (line, len));
    st->early_bytes += len;
    return TRUE;
  }
  g_string_append_len (st->ready, line, (gssize)len);
  st->next += s->plan.step;
  release_early (st);
  return TRUE;
}

static gboolean
stream_flush (SweepSink *s, GError **error)
{
  Stream *st = (Stream *)s;
  if (!st->any && !s->plan.failures_too && st->ready->len <= HELD_BYTES_MAX)
    return TRUE;
  FILE *out = output_stream (st->out);
  fwrite (st->ready->str, 1, st->ready->len, out);
  g_string_truncate (st->ready, 0);
  if (fflush (out) == 0 && !ferror (out))
    return TRUE;
  g_set_error (error, FILEIO_ERROR, FILEIO_ERROR_WRITE, "%s: cannot be written (%s)",
               s->plan.output != NULL ? s->plan.output : "standard output", g_strerror (errno));
  return FALSE;
}

static gboolean
stream_finish (SweepSink *s, GError **error)
{
  Stream *st = (Stream *)s;
  st->any = TRUE;
  return stream_flush (s, error) && output_commit (g_steal_pointer (&st->out), error);
}

static void
stream_drop (SweepSink *s)
{
  Stream *st = (Stream *)s;
  g_clear_pointer (&st->out, output_abort);
}

static void
stream_close (SweepSink *s)
{
  Stream *st = (Stream *)s;
  if (st->out != NULL) {
    fflush (output_stream (st->out));
    output_abort (st->out);
  }
  g_hash_table_unref (st->early);
  g_string_free (st->ready, TRUE);
  g_free (st);
}

SweepSink *
sweep_stream_open (const SinkPlan *plan, GError **error)
{
  static const SinkOps ops = {stream_known,  stream_hold, stream_put,  stream_flush,
                              stream_finish, stream_drop, stream_close};
  if (plan->resume) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
                 "--resume: the result must be a file (add -o FILE)");
    return NULL;
  }
  Output *out = output_open (plan->output, error);
  if (out == NULL)
    return NULL;
  Stream *st = g_new0 (Stream, 1);
  st->base.ops = &ops;
  st->base.plan = *plan;
  st->out = out;
  st->early =
      g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, (GDestroyNotify)g_bytes_unref);
  st->ready = g_string_new (plan->header);
  st->next = plan->first;
  return &st->base;
}

/* ---- which ---- */

gboolean
sweep_sink_is_db (const char *output)
{
  return output != NULL &&
         (g_str_has_suffix (output, ".db") || g_str_has_suffix (output, ".sqlite") ||
          g_str_has_suffix (output, ".sqlite3"));
}

SweepSink *
sweep_sink_open (const SinkPlan *plan, GError **error)
{
  struct stat st;
  const char *path = plan->output;
  if (path == NULL || strcmp (path, "-") == 0 || *path == '\0' ||
      (stat (path, &st) == 0 && !S_ISREG (st.st_mode)))
    return sweep_stream_open (plan, error);
  return sweep_sink_is_db (path) ? sweep_db_open (plan, error) : sweep_journal_open (plan, error);
}
