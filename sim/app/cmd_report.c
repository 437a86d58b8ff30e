#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "report_html.h"
#include "scenario.h"

#define SCENARIOS_MAX 32

typedef struct {
  char *question;
  int alternatives;
  double search_s;
} ReportFlags;

typedef struct {
  HtmlScenario html;
  JsonDoc *doc;
  Spec s;
  Prediction p;
  gboolean read, predicted;
} Loaded;

static void
loaded_clear (gpointer data)
{
  Loaded *l = data;
  if (l->predicted)
    prediction_clear (&l->p);
  if (l->read)
    spec_clear (&l->s);
  json_doc_free (l->doc);
}

static gboolean
load (Loaded *l, const char *path, const CliCommon *c, const IntervalTable *intervals,
      GError **error)
{
  l->doc = scenario_document (path, (const char *const *)c->sets, error);
  l->read = l->doc != NULL && scenario_read (l->doc, &l->s, error);
  if (!l->read)
    return FALSE;
  l->predicted = predict (&l->s, NULL, NULL, &l->p, error);
  if (!l->predicted) {
    scenario_blame (l->doc, error);
    return FALSE;
  }
  JsonRef root = json_root (l->doc), job;
  const char *description = NULL;
  double tokens = 0;
  json_opt_string (&root, "description", &description, NULL);
  if (json_has (&root, "job") && json_get_object (&root, "job", &job, NULL))
    json_opt_double (&job, "tokens", 0, 1e18, &tokens, NULL);
  l->html = (HtmlScenario){.path = path,
                           .s = &l->s,
                           .p = &l->p,
                           .iv = interval_for (intervals, &l->s, &l->p),
                           .job_tokens = tokens,
                           .doc = l->doc,
                           .description = description};
  return TRUE;
}

static gboolean
run (int n, char **paths, const CliCommon *c, const ReportFlags *f, GError **error)
{
  g_autoptr (IntervalTable) intervals = interval_table_load (error);
  if (intervals == NULL)
    return FALSE;
  if (n > SCENARIOS_MAX || f->alternatives < 0 || f->alternatives > 1000) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
                 "report: too many %s (allowed: up to %d scenarios and 1000 alternatives)",
                 n > SCENARIOS_MAX ? "scenarios" : "alternatives", SCENARIOS_MAX);
    return FALSE;
  }
  g_autoptr (GArray) all = g_array_sized_new (FALSE, TRUE, sizeof (Loaded), (guint)n);
  g_array_set_clear_func (all, loaded_clear);
  g_array_set_size (all, (guint)n);
  g_autofree HtmlScenario *html = g_new0 (HtmlScenario, n);
  for (int i = 0; i < n; i++) {
    Loaded *l = &g_array_index (all, Loaded, i);
    if (!load (l, paths[i], c, intervals, error))
      return FALSE;
    html[i] = l->html;
  }
  HtmlOptions o = {
      .question = f->question, .alternatives = (guint)f->alternatives, .search_s = f->search_s};
  g_autoptr (GString) out = g_string_new (NULL);
  g_autofree char *left_out = NULL;
  if (!report_html (out, html, (guint)n, &o, &left_out, error))
    return FALSE;
  if (left_out != NULL && !c->quiet)
    fprintf (stderr, "clustersim: report: without pictures: %s\n", left_out);
  return cli_output (c, out->str, (gssize)out->len, error);
}

int
cmd_report_run (int argc, char **argv)
{
  g_auto (CliCommon) c = {0};
  ReportFlags f = {.alternatives = 10, .search_s = 30};
  GError *error = NULL;
  const GOptionEntry entries[] = {
      {"question", 0, 0, G_OPTION_ARG_STRING, &f.question,
       "Head of the page (default: the scenario's description)", "TEXT"},
      {"alternatives", 0, 0, G_OPTION_ARG_INT, &f.alternatives,
       "So many other layouts of the first scenario (10; 0: none)", "N"},
      {"seconds", 0, 0, G_OPTION_ARG_DOUBLE, &f.search_s, "Stop searching them then (30)", "S"},
      G_OPTION_ENTRY_NULL};
  const CliHelp help = {
      "SCENARIO.json…",
      "Writes one self-contained HTML page for a meeting: answer, range, alternatives, pictures,\n"
      "assumptions. Several scenarios are compared.",
      "clustersim report gpt3-175b-h100 -o report.html",
      1,
      -1,
      FALSE};
  if (!cli_parse (&argc, &argv, &help, entries, &c, &error))
    return cli_fail (error);
  gboolean ok = run (argc - 1, argv + 1, &c, &f, &error);
  g_free (f.question);
  return ok ? CLI_DONE : cli_fail (error);
}
