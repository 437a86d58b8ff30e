/* Chrome's trace event format, as JSON object: "M" events name processes and threads, "X" events
 * are spans with ts and dur in microseconds. One event a line. */
#include "trace_private.h"

/* A JSON string with its quotes; what is not UTF-8 becomes the replacement character. */
static void
append_string (GString *out, const char *s)
{
  g_autofree char *valid = g_utf8_validate (s, -1, NULL) ? NULL : g_utf8_make_valid (s, -1);
  g_string_append_c (out, '"');
  for (const char *p = valid != NULL ? valid : s; *p != '\0'; p++) {
    if (*p == '"' || *p == '\\')
      g_string_append_c (out, '\\');
    if ((guchar)*p < 0x20)
      g_string_append_printf (out, "\\u%04x", (guint)(guchar)*p);
    else
      g_string_append_c (out, *p);
  }
  g_string_append_c (out, '"');
}

static void
chrome_head (GString *out)
{
  g_string_append (out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
}

static void
begin_event (GString *out, gboolean first)
{
  g_string_append (out, first ? "\n" : ",\n");
}

/* One "M" event about a process or a thread; name NULL: the sort index. */
static void
append_meta (GString *out, const TraceTrack *t, const char *what, const char *name, guint32 index,
             gboolean first)
{
  begin_event (out, first);
  g_string_append_printf (out, "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"%s\",\"args\":{",
                          t->rank, t->stream, what);
  if (name != NULL) {
    g_string_append (out, "\"name\":");
    append_string (out, name);
  } else {
    g_string_append_printf (out, "\"sort_index\":%u", index);
  }
  g_string_append (out, "}}");
}

static void
chrome_track (GString *out, const TraceTrack *t, gboolean new_rank, gboolean first)
{
  if (new_rank) {
    append_meta (out, t, "process_name", t->process, 0, first);
    append_meta (out, t, "process_sort_index", NULL, t->rank, FALSE);
  }
  append_meta (out, t, "thread_name", t->thread, 0, first && !new_rank);
  append_meta (out, t, "thread_sort_index", NULL, t->stream, FALSE);
}

/* Ticks cut to nanoseconds where they are finer; whatever the ticks, the result is in ticks. */
static SimTime
cut_to_ns (SimTime t, int tick_digits)
{
  SimTime per_ns = 1;
  for (int i = 9; i < tick_digits; i++)
    per_ns *= 10;
  return t - t % per_ns;
}

static void
append_us (GString *out, SimTime t, int tick_digits)
{
  trace_append_time (out, t, tick_digits, 6, 3);
}

static void
chrome_span (GString *out, const TraceSpan *s, gboolean first)
{
  SimTime begin = cut_to_ns (s->begin, s->tick_digits);
  SimTime end = cut_to_ns (s->end, s->tick_digits);
  begin_event (out, first);
  g_string_append_printf (out, "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"name\":", s->track->rank,
                          s->track->stream);
  append_string (out, s->name);
  if (s->category != NULL) {
    g_string_append (out, ",\"cat\":");
    append_string (out, s->category);
  }
  g_string_append (out, ",\"ts\":");
  append_us (out, begin, s->tick_digits);
  g_string_append (out, ",\"dur\":");
  append_us (out, end - begin, s->tick_digits);
  g_string_append_c (out, '}');
}

static void
chrome_tail (GString *out, const TraceEnd *e)
{
  if (e->n_dropped == 0) {
    g_string_append (out, "\n]}\n");
    return;
  }
  g_autofree char *note = g_strdup_printf ("trace cut: cap of %" G_GINT64_FORMAT
                                           " bytes reached; %" G_GUINT64_FORMAT " spans left out",
                                           e->max_bytes, e->n_dropped);
  /* A mark across all tracks where the picture stops being complete. */
  begin_event (out, !e->any_record);
  g_string_append_printf (
      out, "{\"ph\":\"i\",\"s\":\"g\",\"pid\":0,\"tid\":0,\"name\":\"%s\",\"ts\":", note);
  append_us (out, e->first_dropped, e->tick_digits);
  g_string_append_printf (out, "}\n],\"otherData\":{\"note\":\"%s\"}}\n", note);
}

SimTrace *
trace_chrome_new (const char *path, const SimTraceOptions *opt, GError **error)
{
  static const TraceFormat format = {chrome_head, chrome_track, chrome_span, chrome_tail};
  return trace_new (&format, path, opt, error);
}
