#include "fit_errors.h"

#include <math.h>
#include <unistd.h>

#include "cli.h"
#include "fileio.h"
#include "interval_fit.h"

/* A run of a framework that only its own source tells the host costs of: with them, as a user of
 * the shipped profile has them. */
static double
error_of (const CrossRun *run)
{
  return run->told ? run->unseen : run->refitted;
}

static void
json_terms (JsonWriter *w, const char *name, const IntervalModel *m, guint k, guint runs,
            guint sources)
{
  jw_begin_object (w, name);
  jw_double (w, "centre", m->centre[k]);
  jw_double (w, "spread", m->spread[k]);
  jw_int (w, "runs", runs);
  jw_int (w, "sources", sources);
  jw_end_object (w);
}

static void
count (const CrossResult *r, guint k, guint *runs, guint *sources)
{
  g_autofree gboolean *seen = g_new0 (gboolean, r->sources->len);
  *runs = *sources = 0;
  for (guint i = 0; i < r->runs->len; i++) {
    const CrossRun *run = &g_array_index (r->runs, CrossRun, i);
    if (k < FEATURE_COUNT && !(run->features >> k & 1))
      continue;
    ++*runs;
    *sources += seen[run->source] ? 0 : 1;
    seen[run->source] = TRUE;
  }
}

/* Six digits: the file is the same on every machine. */
static double
rounded (double v)
{
  return round (v * 1e6) / 1e6;
}

static void
round_model (IntervalModel *m)
{
  for (guint k = 0; k <= FEATURE_COUNT; k++) {
    m->centre[k] = rounded (m->centre[k]);
    m->spread[k] = rounded (m->spread[k]);
  }
  m->low = rounded (m->low);
  m->high = rounded (m->high);
}

static void
write_file (const CrossResult *r, const IntervalModel *m, const char *table, GString *file)
{
  g_autoptr (JsonWriter) w = json_writer_new (file, 2);
  g_autofree char *made = g_strdup_printf ("clustersim fit errors %s", table);
  guint runs, sources;
  jw_begin_object (w, NULL);
  jw_int (w, "format", 1);
  jw_string (
      w, "why",
      "y = ln(measured / predicted step time) of published runs, each source predicted with "
      "numbers set without it: centre and ln of spread of y as sums over the features that a "
      "run has; low and high are the 10 % and 90 % quantiles of (y - centre) / spread");
  jw_string (w, "made_by", made);
  count (r, FEATURE_COUNT, &runs, &sources);
  json_terms (w, "all", m, FEATURE_COUNT, runs, sources);
  jw_begin_object (w, "features");
  for (guint k = 0; k < FEATURE_COUNT; k++) {
    count (r, k, &runs, &sources);
    json_terms (w, interval_feature_names[k], m, k, runs, sources);
  }
  jw_end_object (w);
  jw_double (w, "low", m->low);
  jw_double (w, "high", m->high);
  jw_end_object (w);
  g_string_append_c (file, '\n');
}

#define SOURCE_RUNS 5 /* a source counts from so many on in the mean */

typedef struct {
  double n, in, wide;
} Coverage;

/* Of each source, and last of all runs; owned by the caller. */
static Coverage *
coverage_of (const CrossResult *r, const StepInterval *ranges)
{
  Coverage *c = g_new0 (Coverage, r->sources->len + 1);
  for (guint i = 0; i < r->runs->len; i++) {
    const CrossRun *run = &g_array_index (r->runs, CrossRun, i);
    const double ratio = exp (error_of (run));
    Coverage *at[] = {&c[run->source], &c[r->sources->len]};
    for (guint k = 0; k < G_N_ELEMENTS (at); k++) {
      at[k]->n++;
      at[k]->in += ratio >= ranges[i].lo && ratio <= ranges[i].hi;
      at[k]->wide += ranges[i].hi / ranges[i].lo - 1;
    }
  }
  return c;
}

static double
mean_coverage (const CrossResult *r, const Coverage *c, guint *n)
{
  double sum = 0;
  *n = 0;
  for (guint s = 0; s < r->sources->len; s++)
    if (c[s].n >= SOURCE_RUNS) {
      sum += 100 * c[s].in / c[s].n;
      ++*n;
    }
  return *n > 0 ? sum / *n : 0;
}

static void
report_coverage (const CrossResult *r, const StepInterval *ranges, GString *out)
{
  g_autofree Coverage *c = coverage_of (r, ranges);
  guint n = 0;
  const double mean = mean_coverage (r, c, &n);
  g_string_append (out,
                   "coverage by source, on runs that neither numbers nor range had seen\n    n "
                   "inside %  width %   source_title\n");
  for (guint s = 0; s <= r->sources->len; s++)
    g_string_append_printf (out, "%5.0f %8.0f %8.0f   %.70s\n", c[s].n, 100 * c[s].in / c[s].n,
                            100 * c[s].wide / c[s].n,
                            s < r->sources->len ? (const char *)g_ptr_array_index (r->sources, s)
                                                : "all rows");
  g_string_append_printf (out, "mean of the %u sources with %d rows or more %.0f %%\n", n,
                          SOURCE_RUNS, mean);
}

static void
fit_ranges (const CrossResult *r, IntervalModel *m, StepInterval *ranges)
{
  g_autofree IntervalRun *runs = g_new (IntervalRun, r->runs->len);
  for (guint i = 0; i < r->runs->len; i++) {
    const CrossRun *run = &g_array_index (r->runs, CrossRun, i);
    runs[i] = (IntervalRun){error_of (run), run->features, run->source};
  }
  interval_fit (runs, r->runs->len, r->spread_prior, m, ranges);
}

double
fit_errors_coverage (const CrossResult *r, guint *n)
{
  IntervalModel m;
  g_autofree StepInterval *ranges = g_new (StepInterval, r->runs->len);
  fit_ranges (r, &m, ranges);
  g_autofree Coverage *c = coverage_of (r, ranges);
  return mean_coverage (r, c, n);
}

void
fit_errors (const CrossResult *r, const char *table, GString *file, GString *report)
{
  IntervalModel m;
  g_autofree StepInterval *ranges = g_new (StepInterval, r->runs->len);
  fit_ranges (r, &m, ranges);
  round_model (&m);
  write_file (r, &m, table, file);
  report_coverage (r, ranges, report);
}

static void
show (guint done, guint of, gpointer self G_GNUC_UNUSED)
{
  g_printerr ("\r%3u %%", MIN (100, 100 * done / MAX (of, 1)));
}

static gboolean
run (const char *path, const char *classes, const CliCommon *c, GError **error)
{
  g_autoptr (CsvTable) t = csv_load (path, error);
  if (t == NULL)
    return FALSE;
  g_autoptr (Store) store = store_new ();
  const gboolean shown = !c->quiet && isatty (STDERR_FILENO);
  g_autoptr (CrossResult) r =
      cross_validate (t, store, classes, "source_title", shown ? show : NULL, NULL, error);
  if (shown)
    g_printerr ("\r     \r");
  if (r == NULL)
    return FALSE;
  g_autofree char *base = g_path_get_basename (path);
  g_autoptr (GString) file = g_string_new (NULL), report = g_string_new (NULL);
  fit_errors (r, base, file, report);
  if (c->output != NULL && !output_write (c->output, file->str, (gssize)file->len, error))
    return FALSE;
  CliCommon to_stdout = *c;
  to_stdout.output = NULL;
  const GString *shown_text = c->output != NULL && c->format == FORMAT_TEXT ? report : file;
  return cli_output (&to_stdout, shown_text->str, (gssize)shown_text->len, error);
}

int
cmd_fit_errors_run (int argc, char **argv)
{
  g_auto (CliCommon) c = {0};
  g_autofree char *classes = NULL;
  GError *error = NULL;
  const GOptionEntry entries[] = {
      {"class", 0, 0, G_OPTION_ARG_STRING, &classes, "Rows of these classes (A,B)", "A,B"},
      G_OPTION_ENTRY_NULL};
  const CliHelp help = {
      "TABLE.csv",
      "Errors of predictions on published runs into the file that ranges are made "
      "from.\n-o FILE is that file; the coverage goes to standard output.",
      "clustersim fit errors scenarios/published/runs.csv -o errors.json",
      1,
      1,
      FALSE};
  if (!cli_parse (&argc, &argv, &help, entries, &c, &error))
    return cli_fail (error);
  return run (argv[1], classes != NULL ? classes : "A,B", &c, &error) ? CLI_DONE : cli_fail (error);
}
