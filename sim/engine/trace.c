#include "trace_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <glib/gstdio.h>

typedef struct {
  guint32 first, last;
} RankRange;

struct SimTrace {
  const TraceFormat *format;
  char *path, *tmp_path; /* tmp_path NULL: path is written directly */
  FILE *file;
  GString *line;
  GArray *tracks;    /* of TraceTrack */
  GHashTable *named; /* ranks whose process is named: looked up, never listed */
  RankRange *ranges; /* NULL: all ranks */
  guint n_ranges;
  int tick_digits;
  gint64 max_bytes, written_bytes;
  guint64 n_records, n_spans, n_dropped;
  SimTime first_dropped;
  gboolean full;
  GError *failure;
};

GQuark
trace_error_quark (void)
{
  return g_quark_from_static_string ("trace-error");
}

/* ---- options ---- */

static gboolean
parse_rank (const char **p, guint32 *out)
{
  if (!g_ascii_isdigit (**p))
    return FALSE;
  char *end;
  guint64 v = g_ascii_strtoull (*p, &end, 10);
  if (v >= G_MAXUINT32)
    return FALSE;
  *p = end;
  *out = (guint32)v;
  return TRUE;
}

static gboolean
parse_ranks (SimTrace *t, const char *text, GError **error)
{
  g_autoptr (GArray) a = g_array_new (FALSE, FALSE, sizeof (RankRange));
  const char *p = text;
  for (;;) {
    RankRange r;
    gboolean ok = parse_rank (&p, &r.first);
    r.last = r.first;
    if (ok && *p == '-') {
      p++;
      ok = parse_rank (&p, &r.last) && r.last >= r.first;
    }
    if (!ok || (*p != ',' && *p != '\0')) {
      g_set_error (error, TRACE_ERROR, TRACE_ERROR_OPTION,
                   "\"%s\" is no list of ranks (allowed: numbers and ranges, as in \"0,8-15\")",
                   text);
      return FALSE;
    }
    g_array_append_val (a, r);
    if (*p++ == '\0')
      break;
  }
  t->n_ranges = a->len;
  t->ranges = (RankRange *)(gpointer)g_array_free (g_steal_pointer (&a), FALSE);
  return TRUE;
}

static int
digits_of (double ticks_per_s)
{
  int digits = 0;
  double power = 1.0;
  while (power < ticks_per_s && digits < 12) {
    power *= 10.0;
    digits++;
  }
  g_assert (power == ticks_per_s); /* powers of ten are exact in a double this far */
  return digits;
}

/* ---- files ---- */

static gboolean
file_failed (SimTrace *t, int err)
{
  if (t->failure == NULL)
    t->failure = g_error_new (TRACE_ERROR, TRACE_ERROR_FILE, "%s: cannot be written (%s)", t->path,
                              g_strerror (err));
  return FALSE;
}

/* Sets path to what is replaced in the end: links are followed, so that the link stays. */
static gboolean
open_file (SimTrace *t, const char *path)
{
  struct stat st;
  gboolean exists = stat (path, &st) == 0;
  char *resolved = exists ? realpath (path, NULL) : NULL; /* malloc'ed */
  t->path = g_strdup (resolved != NULL ? resolved : path);
  free (resolved);

  int fd;
  if (exists && S_ISDIR (st.st_mode))
    return file_failed (t, EISDIR);
  if (exists && !S_ISREG (st.st_mode)) {
    fd = g_open (t->path, O_WRONLY, 0);
  } else {
    char *tmp = g_strconcat (t->path, ".XXXXXX", NULL);
    fd = g_mkstemp_full (tmp, O_WRONLY, exists ? (int)(st.st_mode & 0777) : 0666);
    int err = errno;
    if (fd >= 0)
      t->tmp_path = tmp;
    else
      g_free (tmp);
    errno = err;
  }
  if (fd < 0)
    return file_failed (t, errno);
  t->file = fdopen (fd, "w");
  if (t->file == NULL) {
    int err = errno;
    close (fd);
    return file_failed (t, err);
  }
  return TRUE;
}

static void
write_line (SimTrace *t)
{
  if (t->failure == NULL && fwrite (t->line->str, 1, t->line->len, t->file) != t->line->len)
    file_failed (t, errno);
  t->written_bytes += (gint64)t->line->len;
  g_string_truncate (t->line, 0);
}

/* Writes the line if the cap has room for it and the tail; if not, no later record is written
 * either, so that the file is complete up to here. */
static gboolean
write_record (SimTrace *t)
{
  gint64 end = t->written_bytes + (gint64)t->line->len + TRACE_TAIL_BYTES;
  if (t->full || (t->max_bytes > 0 && end > t->max_bytes)) {
    t->full = TRUE;
    g_string_truncate (t->line, 0);
    return FALSE;
  }
  write_line (t);
  t->n_records++;
  return TRUE;
}

/* ---- life ---- */

static void
track_clear (gpointer data)
{
  TraceTrack *track = data;
  g_free (track->process);
  g_free (track->thread);
}

SimTrace *
trace_new (const TraceFormat *format, const char *path, const SimTraceOptions *opt, GError **error)
{
  g_assert (opt->max_bytes >= 0);
  g_autoptr (SimTrace) t = g_new0 (SimTrace, 1);
  t->format = format;
  t->tick_digits = digits_of (opt->ticks_per_s);
  t->max_bytes = opt->max_bytes;
  t->line = g_string_sized_new (512);
  t->tracks = g_array_new (FALSE, TRUE, sizeof (TraceTrack));
  g_array_set_clear_func (t->tracks, track_clear);
  t->named = g_hash_table_new (NULL, NULL);
  if (opt->max_bytes > 0 && opt->max_bytes < TRACE_MIN_BYTES) {
    g_set_error (error, TRACE_ERROR, TRACE_ERROR_OPTION,
                 "a trace of at most %" G_GINT64_FORMAT " bytes has no room (allowed: from %d)",
                 opt->max_bytes, TRACE_MIN_BYTES);
    return NULL;
  }
  if (opt->ranks != NULL && !parse_ranks (t, opt->ranks, error))
    return NULL;
  if (!open_file (t, path)) {
    g_propagate_error (error, g_steal_pointer (&t->failure));
    return NULL;
  }
  format->head (t->line);
  write_line (t);
  return g_steal_pointer (&t);
}

void
trace_free (SimTrace *t)
{
  if (t == NULL)
    return;
  if (t->file != NULL)
    fclose (t->file);
  if (t->tmp_path != NULL)
    g_unlink (t->tmp_path);
  g_free (t->tmp_path);
  g_free (t->path);
  g_string_free (t->line, TRUE);
  g_array_free (t->tracks, TRUE);
  g_hash_table_destroy (t->named);
  g_free (t->ranges);
  g_clear_error (&t->failure);
  g_free (t);
}

gboolean
trace_close (SimTrace *t_in, GError **error)
{
  g_autoptr (SimTrace) t = t_in;
  TraceEnd end = {t->n_dropped, t->max_bytes, t->first_dropped, t->tick_digits, t->n_records > 0};
  t->format->tail (t->line, &end);
  write_line (t);
  FILE *file = g_steal_pointer (&t->file);
  if (fclose (file) != 0)
    file_failed (t, errno);
  if (t->failure == NULL && t->tmp_path != NULL) {
    if (g_rename (t->tmp_path, t->path) != 0)
      file_failed (t, errno);
    else
      g_clear_pointer (&t->tmp_path, g_free);
  }
  if (t->failure == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&t->failure));
  return FALSE;
}

/* ---- records ---- */

gboolean
trace_wants_rank (const SimTrace *t, guint32 rank)
{
  if (t == NULL)
    return FALSE;
  for (guint i = 0; i < t->n_ranges; i++)
    if (rank >= t->ranges[i].first && rank <= t->ranges[i].last)
      return TRUE;
  return t->ranges == NULL;
}

guint32
trace_track (SimTrace *t, guint32 rank, const char *process, guint32 stream, const char *thread)
{
  if (!trace_wants_rank (t, rank))
    return TRACE_NO_TRACK;
  TraceTrack track = {.rank = rank, .stream = stream};
  track.process = process != NULL ? g_strdup (process) : g_strdup_printf ("rank %u", rank);
  track.thread = thread != NULL ? g_strdup (thread) : g_strdup_printf ("stream %u", stream);
  g_array_append_val (t->tracks, track);
  gboolean new_rank = g_hash_table_add (t->named, GUINT_TO_POINTER (rank));
  t->format->track (t->line, &track, new_rank, t->n_records == 0);
  if (t->line->len > 0)
    write_record (t);
  return t->tracks->len - 1;
}

void
trace_span (SimTrace *t, guint32 track, const char *name, const char *category, SimTime begin,
            SimTime end)
{
  if (t == NULL || track == TRACE_NO_TRACK || t->failure != NULL)
    return;
  g_assert (track < t->tracks->len);
  g_assert (begin >= 0 && begin <= end);
  TraceTrack *tr = &g_array_index (t->tracks, TraceTrack, track);
  if (begin < tr->last_end) {
    t->failure = g_error_new (TRACE_ERROR, TRACE_ERROR_ORDER,
                              "%s, %s: span \"%s\" begins at tick %" G_GINT64_FORMAT
                              ", before the one before it ends at %" G_GINT64_FORMAT,
                              tr->process, tr->thread, name, begin, tr->last_end);
    return;
  }
  tr->last_end = end;
  if (!t->full) {
    TraceSpan span = {tr, name, category, begin, end, t->tick_digits};
    t->format->span (t->line, &span, t->n_records == 0);
    if (write_record (t)) {
      t->n_spans++;
      return;
    }
  }
  t->first_dropped = t->n_dropped == 0 ? begin : MIN (t->first_dropped, begin);
  t->n_dropped++;
}

guint64
trace_n_spans (const SimTrace *t)
{
  return t->n_spans;
}

guint64
trace_n_dropped (const SimTrace *t)
{
  return t->n_dropped;
}

void
trace_append_time (GString *out, SimTime t, int tick_digits, int unit_digits, int max_decimals)
{
  /* The decimal digits of the ticks, with the point moved: no division by a rounded power. */
  char digits[32];
  int n = g_snprintf (digits, sizeof digits, "%" G_GINT64_FORMAT, t);
  int decimals = tick_digits - unit_digits; /* of the exact value; negative: zeros to append */
  if (decimals <= 0) {
    g_string_append (out, digits);
    for (int i = decimals; i < 0 && t != 0; i++)
      g_string_append_c (out, '0');
    return;
  }
  if (n > decimals)
    g_string_append_len (out, digits, n - decimals);
  else
    g_string_append_c (out, '0');
  int keep = MIN (decimals, max_decimals);
  /* Trailing zeros say nothing. */
  while (keep > 0 && (n - decimals + keep - 1 < 0 || digits[n - decimals + keep - 1] == '0'))
    keep--;
  if (keep > 0)
    g_string_append_c (out, '.');
  for (int i = 0; i < keep; i++)
    g_string_append_c (out, n - decimals + i < 0 ? '0' : digits[n - decimals + i]);
}
