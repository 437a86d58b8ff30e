/* Spans as comma-separated values (RFC 4180 with plain newlines): one row a span, in the order in
 * which they ended up here, times in exact seconds. A file cut by the cap ends with a line that
 * begins with '#', which gnuplot skips and pandas does with comment="#". */
#include "trace_private.h"

#include <string.h>

static void
append_field (GString *out, const char *s)
{
  /* A leading '#' would read as a note. */
  if (strpbrk (s, ",\"\r\n") == NULL && *s != '#') {
    g_string_append (out, s);
    return;
  }
  g_string_append_c (out, '"');
  for (; *s != '\0'; s++) {
    if (*s == '"')
      g_string_append_c (out, '"');
    g_string_append_c (out, *s);
  }
  g_string_append_c (out, '"');
}

static void
csv_head (GString *out)
{
  g_string_append (out, "rank,stream,process,thread,name,category,begin_s,end_s\n");
}

static void
csv_track (GString *out, const TraceTrack *track, gboolean new_rank, gboolean first)
{
  /* The names are in each row. */
  (void)out;
  (void)track;
  (void)new_rank;
  (void)first;
}

static void
csv_span (GString *out, const TraceSpan *s, gboolean first)
{
  (void)first;
  g_string_append_printf (out, "%u,%u,", s->track->rank, s->track->stream);
  append_field (out, s->track->process);
  g_string_append_c (out, ',');
  append_field (out, s->track->thread);
  g_string_append_c (out, ',');
  append_field (out, s->name);
  g_string_append_c (out, ',');
  append_field (out, s->category != NULL ? s->category : "");
  g_string_append_c (out, ',');
  trace_append_time (out, s->begin, s->tick_digits, 0, 12);
  g_string_append_c (out, ',');
  trace_append_time (out, s->end, s->tick_digits, 0, 12);
  g_string_append_c (out, '\n');
}

static void
csv_tail (GString *out, const TraceEnd *e)
{
  if (e->n_dropped > 0)
    g_string_append_printf (
        out, "# cap of %" G_GINT64_FORMAT " bytes reached; %" G_GUINT64_FORMAT " spans left out\n",
        e->max_bytes, e->n_dropped);
}

SimTrace *
trace_csv_new (const char *path, const SimTraceOptions *opt, GError **error)
{
  static const TraceFormat format = {csv_head, csv_track, csv_span, csv_tail};
  return trace_new (&format, path, opt, error);
}
