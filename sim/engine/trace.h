/* trace: a timeline of spans, streamed to a file as the run goes.
 *
 * A track is one stream of one rank; a span is what the stream did from `begin` to `end`. Spans of
 * one track come in order of time and do not overlap (viewers draw nonsense else); spans of
 * different tracks come as they like. Writers: Chrome JSON, which Perfetto and chrome://tracing
 * open (process = rank, thread = stream), and CSV, for gnuplot and the like.
 *
 * Units: ticks of `ticks_per_s`, a power of ten from 1 to 1e12. CSV has exact seconds; the JSON has
 * microseconds cut to whole nanoseconds, at both ends of a span alike, so that cutting cannot make
 * spans overlap.
 * Ownership: strings are used during the call only. A SimTrace belongs to one thread.
 * Files: written beside the target and renamed by trace_close, so that the target is old or whole;
 * what exists and is no regular file (a pipe, /dev/null) is written directly. trace_free discards.
 * Errors: domain TRACE_ERROR, from opening and from trace_close, which reports what went wrong on
 * the way; in between, calls do nothing once something has.
 */
#ifndef CLUSTERSIM_TRACE_H
#define CLUSTERSIM_TRACE_H

#include <glib.h>

#include "simtime.h"

#define TRACE_ERROR trace_error_quark ()
GQuark trace_error_quark (void);
typedef enum {
  TRACE_ERROR_FILE,   /* cannot be created, written or renamed */
  TRACE_ERROR_OPTION, /* a list of ranks that cannot be read, a cap that is too small */
  TRACE_ERROR_ORDER   /* spans of one track overlap or go back: a fault of the model */
} TraceError;

typedef struct SimTrace SimTrace;

typedef struct {
  double ticks_per_s;
  const char *ranks; /* "0,8-15": tracks of other ranks are left out; NULL: all */
  gint64 max_bytes;  /* of the file, at least TRACE_MIN_BYTES; 0: no cap. Once it is reached, spans
                        are  left out and the file ends with a note that says so */
} SimTraceOptions;

#define TRACE_MIN_BYTES 4096
#define TRACE_NO_TRACK  G_MAXUINT32

SimTrace *trace_chrome_new (const char *path, const SimTraceOptions *opt, GError **error);
SimTrace *trace_csv_new (const char *path, const SimTraceOptions *opt, GError **error);

/* Ends the file and puts it in place; frees the trace whatever the outcome. */
gboolean trace_close (SimTrace *t, GError **error);

/* Frees the trace and leaves no file. */
void trace_free (SimTrace *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (SimTrace, trace_free)

/* A new track, once for each (rank, stream). process NULL: "rank N", the first name of a rank
 * stays; thread NULL: "stream N". TRACE_NO_TRACK, which trace_span ignores, if t is NULL or the
 * rank is filtered out. */
guint32 trace_track (SimTrace *t, guint32 rank, const char *process, guint32 stream,
                     const char *thread);

/* category may be NULL. begin <= end; begin not before the end of the track's last span. */
void trace_span (SimTrace *t, guint32 track, const char *name, const char *category, SimTime begin,
                 SimTime end);

gboolean trace_wants_rank (const SimTrace *t, guint32 rank); /* FALSE if t is NULL */
guint64 trace_n_spans (const SimTrace *t);                   /* written */
guint64 trace_n_dropped (const SimTrace *t);                 /* left out for the cap */

#endif
