#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "fileio.h"
#include "report.h"
#include "scenario.h"
#include "schedule_file.h"
#include "sweep_axes.h"

typedef struct {
  char **vary, *series, *progress;
} SweepFlags;

static void
flags_clear (SweepFlags *f)
{
  g_strfreev (f->vary);
  g_free (f->series);
  g_free (f->progress);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (SweepFlags, flags_clear)

typedef struct {
  const CliCommon *c;
  const SweepFlags *f;
  JsonDoc *base;
  SweepAxes *axes;
  PredictCache *cache;
  ScenarioParts *parts;
  const IntervalTable *intervals;
  GString *out;
  guint64 done, failed;
} Sweep;

/* A point that cannot run is a line of the result too: the reason stands in its last column. */
static void
put_failure (Sweep *w, const char *const *keys, const char *const *values, const GError *why)
{
  w->failed++;
  if (w->c->format == FORMAT_JSON) {
    g_autoptr (JsonWriter) j = json_writer_new (w->out, 0);
    jw_begin_object (j, NULL);
    jw_begin_object (j, "vary");
    for (gsize i = 0; keys[i] != NULL; i++)
      jw_string (j, keys[i], values[i]);
    jw_end_object (j);
    jw_string (j, "error", why->message);
    jw_end_object (j);
    g_string_append_c (w->out, '\n');
    return;
  }
  for (gsize i = 0; keys[i] != NULL; i++) {
    report_csv_field (w->out, values[i]);
    g_string_append_c (w->out, ',');
  }
  report_csv_failure (w->out, w->f->series != NULL ? w->f->series : "", why->message);
}

static void
put_result (Sweep *w, const char *const *keys, const char *const *values, const Spec *s,
            const Prediction *p)
{
  StepInterval iv = interval_for (w->intervals, s, p);
  if (w->c->format != FORMAT_JSON) {
    report_csv_row (w->out, s, p, &iv, values);
    return;
  }
  g_autoptr (JsonWriter) j = json_writer_new (w->out, 0);
  jw_begin_object (j, NULL);
  jw_begin_object (j, "vary");
  for (gsize i = 0; keys[i] != NULL; i++)
    jw_string (j, keys[i], values[i]);
  jw_end_object (j);
  report_json_members (j, s, p, &iv, FALSE);
  jw_end_object (j);
  g_string_append_c (w->out, '\n');
}

static gboolean
predict_point (Sweep *w, const char *const *keys, const char *const *values, GError **error)
{
  JsonRef root = json_root (w->base);
  g_autoptr (JsonDoc) doc = json_doc_copy (&root);
  g_autoptr (SchedTable) table = NULL;
  Spec s;
  Prediction p;
  for (gsize i = 0; keys[i] != NULL; i++) {
    g_autofree char *set = g_strdup_printf ("%s=%s", keys[i], values[i]);
    if (!scenario_set (doc, set, error))
      return FALSE;
  }
  if (!scenario_read_shared (doc, w->parts, &s, error))
    return FALSE;
  if (w->f->series != NULL) {
    g_free (s.name);
    s.name = g_strdup (w->f->series);
  }
  PredictOptions o = {0};
  gboolean ok = schedule_file_load (&s, &table, error);
  o.table = table;
  ok = ok && predict (&s, w->cache, &o, &p, error);
  if (ok) {
    put_result (w, keys, values, &s, &p);
    prediction_clear (&p);
  } else {
    scenario_blame (doc, error);
  }
  spec_clear (&s);
  return ok;
}

static void
progress (const Sweep *w, gboolean last)
{
  const char *mode = w->f->progress != NULL ? w->f->progress : "auto";
  if (w->c->quiet || strcmp (mode, "never") == 0 || (strcmp (mode, "auto") == 0 && !isatty (2)))
    return;
  if (last || w->done % 64 == 0)
    fprintf (stderr,
             "\rsweep: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " points, %" G_GUINT64_FORMAT
             " not possible%s",
             w->done, sweep_axes_points (w->axes), w->failed, last ? "\n" : "");
}

/* Nothing is written until a point could run: when none can, the first reason is the error, and
 * then nothing stands on stdout. A sweep with more failures than this before its first result
 * writes them. */
#define HELD_BYTES_MAX ((gsize)16 << 20)

static gboolean
check_progress (const SweepFlags *f, GError **error)
{
  static const char *const modes[] = {"auto", "always", "never", NULL};
  if (f->progress == NULL || g_strv_contains (modes, f->progress))
    return TRUE;
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
               "--progress: unknown name (found \"%.40s\"; allowed: auto, always, never)",
               f->progress);
  return FALSE;
}

static gboolean
run (const char *path, const CliCommon *c, const SweepFlags *f, GError **error)
{
  if (!check_progress (f, error))
    return FALSE;
  g_autoptr (SweepAxes) axes = sweep_axes_parse ((const char *const *)f->vary, error);
  if (axes == NULL)
    return FALSE;
  g_autoptr (JsonDoc) base = scenario_document (path, (const char *const *)c->sets, error);
  g_autoptr (IntervalTable) intervals = base != NULL ? interval_table_load (error) : NULL;
  if (intervals == NULL)
    return FALSE;
  g_autoptr (Output) file = output_open (c->output, error);
  if (file == NULL)
    return FALSE;
  g_autoptr (GString) out = g_string_new (NULL);
  g_autoptr (PredictCache) cache = predict_cache_new ();
  g_autoptr (ScenarioParts) parts = scenario_parts_new ();
  Sweep w = {.c = c,
             .f = f,
             .base = base,
             .axes = axes,
             .cache = cache,
             .parts = parts,
             .intervals = intervals,
             .out = out};
  const char *const *keys = sweep_axes_keys (axes);
  g_autofree const char **values = g_new0 (const char *, g_strv_length ((char **)keys) + 1);
  g_autoptr (GError) first = NULL;
  if (c->format != FORMAT_JSON)
    report_csv_header (out, keys);
  for (guint64 i = 0; i < sweep_axes_points (axes); i++) {
    g_autoptr (GError) why = NULL;
    sweep_axes_point (axes, i, values);
    if (!predict_point (&w, keys, values, &why)) {
      put_failure (&w, keys, values, why);
      if (first == NULL)
        first = g_steal_pointer (&why);
    }
    w.done++;
    if (w.failed < w.done || out->len > HELD_BYTES_MAX) {
      fwrite (out->str, 1, out->len, output_stream (file));
      g_string_truncate (out, 0);
    }
    progress (&w, w.done == sweep_axes_points (axes));
  }
  if (w.failed == w.done) { /* nothing to show: the first reason is the error */
    output_abort (g_steal_pointer (&file));
    g_propagate_error (error, g_steal_pointer (&first));
    return FALSE;
  }
  return output_commit (g_steal_pointer (&file), error);
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
      {"progress", 0, 0, G_OPTION_ARG_STRING, &f.progress, "auto, always or never", "WHEN"},
      G_OPTION_ENTRY_NULL};
  const CliHelp help = {
      "SCENARIO.json",
      "Predicts the product of the values; one result a line (CSV, or JSON lines).",
      "clustersim sweep gpt3-175b-a100 --vary train.micro_batch_sequences=1,2,4", 1, 1};
  if (!cli_parse (&argc, &argv, &help, entries, &c, &error))
    return cli_fail (error);
  return run (argv[1], &c, &f, &error) ? CLI_DONE : cli_fail (error);
}
