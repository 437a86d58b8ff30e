/* trace_private: what trace.c, which has files, tracks, filter and cap, shares with the formats. */
#ifndef CLUSTERSIM_TRACE_PRIVATE_H
#define CLUSTERSIM_TRACE_PRIVATE_H

#include "trace.h"

typedef struct {
  guint32 rank, stream;
  char *process, *thread; /* owned */
  SimTime last_end;
} TraceTrack;

typedef struct {
  const TraceTrack *track;
  const char *name, *category; /* category may be NULL */
  SimTime begin, end;
  int tick_digits; /* ticks_per_s is 10 to this power */
} TraceSpan;

/* What the end of the file has to say about the cap. */
typedef struct {
  guint64 n_dropped;
  gint64 max_bytes;
  SimTime first_dropped;
  int tick_digits;
  gboolean any_record; /* track or span written before */
} TraceEnd;

/* A format appends text to `out` and keeps nothing. first: no record was written before. */
typedef struct {
  void (*head) (GString *out);
  void (*track) (GString *out, const TraceTrack *track, gboolean new_rank, gboolean first);
  void (*span) (GString *out, const TraceSpan *span, gboolean first);
  void (*tail) (GString *out, const TraceEnd *end);
} TraceFormat;

#define TRACE_TAIL_BYTES 1024 /* kept free under the cap for what `tail` writes */

SimTrace *trace_new (const TraceFormat *format, const char *path, const SimTraceOptions *opt,
                     GError **error);

/* t / 10^tick_digits seconds, in units of 10^-unit_digits seconds (0: seconds, 6: microseconds),
 * with at most max_decimals decimals, the rest cut; exact otherwise. */
void trace_append_time (GString *out, SimTime t, int tick_digits, int unit_digits,
                        int max_decimals);

#endif
