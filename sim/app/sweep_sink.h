/* sweep_sink: where the lines of a sweep go.
 *
 *   stdout, a pipe   in the order of the points; what comes early waits
 *   FILE             FILE.part is a journal: a line of what this sweep is, then for each point, in
 *                    the order of their ends, "+I LEN LINE" ("-" for a point that could not run),
 *                    each written at once and whole. At the end the lines are put in order into
 *                    FILE, written beside and renamed, and the journal goes. A journal that was
 *                    cut off in its last line is taken up from the last whole one.
 *   FILE.db          FILE.db.part is the SQLite database itself, a transaction at a time: table
 *                    "results", with the columns of the CSV and "point"; table "sweep" with keys
 *                    and values. At the end it is renamed.
 * A part is locked while a sweep writes it. Errors: FILEIO_ERROR for the system's, CLI_ERROR_USAGE
 * for a part that is another sweep's, or there without resume.
 */
#ifndef CLUSTERSIM_SWEEP_SINK_H
#define CLUSTERSIM_SWEEP_SINK_H

#include <glib.h>

typedef struct {
  const char *output;       /* as given to -o, or NULL */
  const char *header;       /* first line(s) of the result, "" for none; for a database the CSV's */
  const char *identity;     /* one word that tells this part of this sweep from every other */
  const char *sweep;        /* the same for all its shards */
  guint64 total;            /* points of all shards */
  guint64 first, step, end; /* its points */
  gboolean resume;
  gboolean failures_too; /* a result in which no point could run is a result */
  const char *what;      /* what runs, in messages; NULL: "sweep" */
  /* Told of each point that an earlier run left in a journal; or NULL. */
  void (*taken) (gpointer data, guint64 i, const char *line, gsize len);
  gpointer data;
} SinkPlan;

typedef struct SweepSink SweepSink;
typedef struct {
  gboolean (*known) (const SweepSink *s, guint64 i);
  gboolean (*hold) (const SweepSink *s);
  gboolean (*put) (SweepSink *s, guint64 i, gboolean ok, const char *line, gsize len,
                   GError **error);
  gboolean (*flush) (SweepSink *s, GError **error);
  gboolean (*finish) (SweepSink *s, GError **error); /* all points are there */
  void (*drop) (SweepSink *s);                       /* nothing of it is to stay */
  void (*close) (SweepSink *s); /* frees; what is not finished stays for --resume */
} SinkOps;

struct SweepSink {
  const SinkOps *ops;
  SinkPlan plan;
  guint64 done, failed; /* points, those of earlier runs included */
  gboolean resumable;
};

/* Chooses by the name of the output. plan's strings are borrowed. */
SweepSink *sweep_sink_open (const SinkPlan *plan, GError **error);
gboolean sweep_sink_is_db (const char *output);

/* The three kinds. */
SweepSink *sweep_stream_open (const SinkPlan *plan, GError **error);
SweepSink *sweep_journal_open (const SinkPlan *plan, GError **error);
SweepSink *sweep_db_open (const SinkPlan *plan, GError **error);

/* An error that names the part and tells of --resume. */
gboolean sweep_part_exists (const char *part, const SinkPlan *plan, GError **error);
gboolean sweep_part_other (const char *part, const SinkPlan *plan, GError **error);
gboolean sweep_part_locked (const char *part, const SinkPlan *plan, GError **error);

/* "I/N" → first I - 1 and step N; NULL: 0 and 1. Errors: CLI_ERROR_USAGE. */
gboolean sweep_shard_parse (const char *text, guint64 *first, guint64 *step, GError **error);

#endif
