#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "identity.h"
#include "scenario.h"
#include "sweep_merge.h"
#include "sweep_point.h"
#include "sweep_pool.h"
#include "sweep_sink.h"
#include "text.h"

typedef struct {
  char **vary, *series, *progress, *shard;
  int jobs;
  gboolean resume, merge;
} SweepFlags;

static void
flags_clear (SweepFlags *f)
{
  g_strfreev (f->vary);
  g_free (f->series);
  g_free (f->progress);
  g_free (f->shard);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (SweepFlags, flags_clear)

typedef struct {
  const CliCommon *c;
  const SweepFlags *f;
  SweepPlan plan;
  guint64 first, step, total, mine; /* points: of this shard and of all */
  char *sweep, *identity;           /* fingerprints: of the sweep, of this shard of it */
  GString *header;
  SweepSink *sink;
  gint64 start_us, told_us;
  guint64 before; /* points that were done already */
} Sweep;

/* Ctrl-C once: finish what runs; twice: at once. */
/* lint: allow state: a signal has no other way in */
static volatile sig_atomic_t stop_asked;

static void
ask_stop (int signal_number G_GNUC_UNUSED)
{
  stop_asked = stop_asked + 1;
}

static void
sweep_clear (Sweep *w)
{
  if (w->sink != NULL)
    w->sink->ops->close (w->sink);
  g_free (w->sweep);
  g_free (w->identity);
  if (w->header != NULL)
    g_string_free (w->header, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Sweep, sweep_clear)

/* ---- options ---- */

static gboolean usage (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
usage (GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error_literal (error, CLI_ERROR, CLI_ERROR_USAGE, message);
  return FALSE;
}

static gboolean
check_flags (const SweepFlags *f, const CliCommon *c, GError **error)
{
  static const char *const modes[] = {"auto", "always", "never", NULL};
  if (f->progress != NULL && !g_strv_contains (modes, f->progress))
    return usage (error, "--progress: unknown name (found \"%.40s\"; allowed: auto, always, never)",
                  f->progress);
  if (f->jobs < 0 || f->jobs > 4096)
    return usage (error, "--jobs: not a number of processes (found %d; allowed: 1 to 4096)",
                  f->jobs);
  if (sweep_sink_is_db (c->output) && c->format_name != NULL)
    return usage (error, "--format: a database has one form (found %s; allowed: no --format)",
                  c->format_name);
  return TRUE;
}

/* ---- which sweep this is ---- */

/* What was asked, the files that it names, and the line of the first point, which changes with the
 * models. */
static void
identify (Sweep *w)
{
  g_autoptr (Identity) id = identity_new ();
  g_autoptr (SweepWorker) worker = sweep_worker_new (&w->plan);
  g_autoptr (GString) line = g_string_new (NULL);
  sweep_worker_line (worker, 0, line, NULL);
  identity_document (id, w->plan.base);
  for (gsize i = 0; w->f->vary != NULL && w->f->vary[i] != NULL; i++) {
    identity_text (id, w->f->vary[i]);
    g_auto (GStrv) words = g_strsplit_set (w->f->vary[i], "=,;", -1);
    for (gsize k = 0; words[k] != NULL; k++) /* values may name files */
      identity_name (id, words[k], NULL);
  }
  identity_text (id, w->f->series);
  identity_text (id, w->plan.format == FORMAT_JSON ? "json" : "csv");
  identity_text (id, line->str);
  w->sweep = g_strdup (identity_get (id));
  w->identity =
      g_strdup_printf ("%s-%" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT, w->sweep, w->first, w->step);
}

/* ---- running ---- */

static void
tell (Sweep *w, gboolean last)
{
  const char *mode = w->f->progress != NULL ? w->f->progress : "auto";
  if (w->c->quiet || strcmp (mode, "never") == 0 || (strcmp (mode, "auto") == 0 && !isatty (2)))
    return;
  gint64 now_us = g_get_monotonic_time ();
  if (!last && now_us - w->told_us < 200000)
    return;
  w->told_us = now_us;
  double seconds = (double)MAX (now_us - w->start_us, 1) * 1e-6;
  double rate = (double)(w->sink->done - w->before) / seconds;
  guint64 left = w->mine - w->sink->done;
  g_autofree char *eta = last || rate <= 0
                             ? g_strdup ("")
                             : g_strdup_printf (", %.0f s left", (double)left / MAX (rate, 1e-9));
  fprintf (stderr,
           "\rsweep: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " points, %" G_GUINT64_FORMAT
           " not possible, %.0f a second%s   %s",
           w->sink->done, w->mine, w->sink->failed, rate, eta, last ? "\n" : "");
}

static gpointer
make_worker (gpointer data)
{
  return sweep_worker_new (&((Sweep *)data)->plan);
}

static gboolean
line_of (gpointer worker, guint64 i, GString *out)
{
  return sweep_worker_line (worker, i, out, NULL);
}

static void
unmake_worker (gpointer worker)
{
  sweep_worker_free (worker);
}

static gboolean
is_known (gpointer data, guint64 i)
{
  const Sweep *w = data;
  return w->sink->ops->known (w->sink, i);
}

static gboolean
must_hold (gpointer data)
{
  const Sweep *w = data;
  return w->sink->ops->hold (w->sink);
}

static gboolean
put_result (gpointer data, guint64 i, gboolean ok, const char *line, gsize len, GError **error)
{
  Sweep *w = data;
  return w->sink->ops->put (w->sink, i, ok, line, len, error);
}

static gboolean
flush_results (gpointer data, GError **error)
{
  Sweep *w = data;
  return w->sink->ops->flush (w->sink, error);
}

static void
tick (gpointer data)
{
  tell (data, FALSE);
}

/* A process is worth its start for some points only. */
static guint
jobs_for (const Sweep *w)
{
  guint64 most = w->mine / 8 + 1;
  guint asked = w->f->jobs > 0 ? (guint)w->f->jobs : g_get_num_processors ();
  return (guint)MIN (asked, w->f->jobs > 0 ? MAX (w->mine, 1) : most);
}

static gboolean
run_points (Sweep *w, GError **error)
{
  const PoolJob job = {.jobs = jobs_for (w),
                       .first = w->first,
                       .step = w->step,
                       .end = w->total,
                       .stop = &stop_asked,
                       .data = w,
                       .make = make_worker,
                       .line = line_of,
                       .unmake = unmake_worker,
                       .known = is_known,
                       .hold = must_hold,
                       .result = put_result,
                       .flush = flush_results,
                       .tick = tick};
  struct sigaction act = {.sa_handler = ask_stop}, before_int, before_term;
  sigaction (SIGINT, &act, &before_int);
  sigaction (SIGTERM, &act, &before_term);
  w->start_us = g_get_monotonic_time ();
  w->before = w->sink->done;
  gboolean ok = sweep_pool_run (&job, error);
  sigaction (SIGINT, &before_int, NULL);
  sigaction (SIGTERM, &before_term, NULL);
  if (ok)
    tell (w, TRUE);
  return ok;
}

/* The reason why the first point could not run. */
static gboolean
first_reason (const Sweep *w, GError **error)
{
  g_autoptr (SweepWorker) worker = sweep_worker_new (&w->plan);
  g_autoptr (GString) line = g_string_new (NULL);
  return sweep_worker_line (worker, w->first, line, error);
}

static gboolean
end_sweep (Sweep *w, GError **error)
{
  SweepSink *s = w->sink;
  if (s->done < w->mine) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_FAILED,
                 "sweep: stopped after %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " points%s",
                 s->done, w->mine, s->resumable ? "; the same command with --resume goes on" : "");
    return FALSE;
  }
  if (s->failed == s->done && w->f->shard == NULL) { /* nothing to show */
    s->ops->drop (s);
    return first_reason (w, error);
  }
  return s->ops->finish (s, error);
}

static gboolean
run (const char *path, const CliCommon *c, const SweepFlags *f, GError **error)
{
  g_auto (Sweep) w = {.c = c, .f = f};
  if (!check_flags (f, c, error) || !sweep_shard_parse (f->shard, &w.first, &w.step, error))
    return FALSE;
  g_autoptr (SweepAxes) axes = sweep_axes_parse ((const char *const *)f->vary, error);
  if (axes == NULL)
    return FALSE;
  g_autoptr (JsonDoc) base = scenario_document (path, (const char *const *)c->sets, error);
  g_autoptr (IntervalTable) intervals = base != NULL ? interval_table_load (error) : NULL;
  if (intervals == NULL)
    return FALSE;
  gboolean db = sweep_sink_is_db (c->output);
  w.total = sweep_axes_points (axes);
  w.mine = w.first < w.total ? (w.total - w.first - 1) / w.step + 1 : 0;
  w.header = g_string_new (NULL);
  w.plan = (SweepPlan){.base = base,
                       .axes = axes,
                       .intervals = intervals,
                       .series = f->series,
                       .format = c->format,
                       .number = f->shard != NULL && !db};
  sweep_plan_header (&w.plan, w.header);
  identify (&w);
  const SinkPlan sink = {.output = c->output,
                         .header = w.header->str,
                         .identity = w.identity,
                         .sweep = w.sweep,
                         .total = w.total,
                         .first = w.first,
                         .step = w.step,
                         .end = w.total,
                         .resume = f->resume,
                         .failures_too = f->shard != NULL};
  w.sink = sweep_sink_open (&sink, error);
  return w.sink != NULL && run_points (&w, error) && end_sweep (&w, error);
}

static gboolean
run_merge (int argc, char **argv, const CliCommon *c, const SweepFlags *f, GError **error)
{
  if (f->vary != NULL || f->shard != NULL || f->resume || c->sets != NULL)
    return usage (error, "--merge: takes the files of the shards and -o alone");
  g_autofree const char **files = g_new0 (const char *, argc);
  for (int i = 1; i < argc; i++)
    files[i - 1] = argv[i];
  return sweep_merge (files, c->output, error);
}

int
cmd_sweep_run (int argc, char **argv)
{
  g_auto (CliCommon) c = {0};
  g_auto (SweepFlags) f = {0};
  GError *error = NULL;
  const GOptionEntry entries[] = {
      {"vary", 0, 0, G_OPTION_ARG_STRING_ARRAY, &f.vary,
       "Values of a key: V1,V2 or FROM..TO*FACTOR; \"A=1,2;B=3,4\" moves keys together",
       "KEY=V1,V2"},
      {"series", 0, 0, G_OPTION_ARG_STRING, &f.series, "Name of the series in the result", "NAME"},
      {"jobs", 0, 0, G_OPTION_ARG_INT, &f.jobs, "Processes (default: one a core)", "N"},
      {"resume", 0, 0, G_OPTION_ARG_NONE, &f.resume,
       "Go on with a sweep that was stopped or killed", NULL},
      {"shard", 0, 0, G_OPTION_ARG_STRING, &f.shard, "Only the I-th of N parts, for job arrays",
       "I/N"},
      {"merge", 0, 0, G_OPTION_ARG_NONE, &f.merge, "Put shards together: --merge A B … -o ALL",
       NULL},
      {"progress", 0, 0, G_OPTION_ARG_STRING, &f.progress, "auto, always or never", "WHEN"},
      G_OPTION_ENTRY_NULL};
  const CliHelp help = {
      "SCENARIO.json",
      "Predicts the product of the values; one result a line (CSV, or JSON lines; -o FILE.db: "
      "SQLite).",
      "clustersim sweep gpt3-175b-a100 --vary train.micro_batch_sequences=1,2,4",
      1,
      -1,
      FALSE};
  if (!cli_parse (&argc, &argv, &help, entries, &c, &error))
    return cli_fail (error);
  if (f.merge)
    return run_merge (argc, argv, &c, &f, &error) ? CLI_DONE : cli_fail (error);
  if (argc > 2) {
    g_autofree char *quoted = text_quoted (argv[2]);
    usage (&error,
           "sweep: one argument too many (found %s; usage: clustersim sweep [OPTION...] %s)",
           quoted, help.usage);
    return cli_fail (error);
  }
  return run (argv[1], &c, &f, &error) ? CLI_DONE : cli_fail (error);
}
