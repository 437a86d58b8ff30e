#include <string.h>

#include "cli.h"
#include "commands.h"
#include "report.h"
#include "scenario.h"
#include "schedule_file.h"
#include "trace.h"

typedef struct {
  char *trace, *trace_ranks;
  gboolean require_fit, events, shuffle;
} PredictFlags;

static void
flags_clear (PredictFlags *f)
{
  g_free (f->trace);
  g_free (f->trace_ranks);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PredictFlags, flags_clear)

static gboolean
open_trace (const PredictFlags *f, SimTrace **trace, GError **error)
{
  SimTraceOptions o = {.ticks_per_s = SIM_TICKS_PS, .ranks = f->trace_ranks, .max_bytes = 1 << 30};
  *trace = NULL;
  if (f->trace == NULL)
    return TRUE;
  *trace = g_str_has_suffix (f->trace, ".csv") ? trace_csv_new (f->trace, &o, error)
                                               : trace_chrome_new (f->trace, &o, error);
  return *trace != NULL;
}

static gboolean
run (const char *path, const CliCommon *c, const PredictFlags *f, GError **error)
{
  Spec s;
  g_autoptr (IntervalTable) intervals = interval_table_load (error);
  g_autoptr (JsonDoc) doc =
      intervals != NULL ? scenario_document (path, (const char *const *)c->sets, error) : NULL;
  if (doc == NULL || !scenario_read (doc, &s, error))
    return FALSE;
  s.run.exact_events |= f->events || f->shuffle;
  s.run.shuffle_ties |= f->shuffle;
  g_autoptr (SchedTable) table = NULL;
  g_autoptr (SimTrace) trace = NULL;
  Prediction p;
  gboolean ok = schedule_file_load (&s, &table, error) && open_trace (f, &trace, error);
  PredictOptions o = {.table = table, .trace = trace, .trace_last = G_MAXUINT};
  ok = ok && predict (&s, NULL, &o, &p, error);
  if (!ok) {
    scenario_blame (doc, error);
    spec_clear (&s);
    return FALSE;
  }
  StepInterval iv = interval_for (intervals, &s, &p);
  g_autoptr (GString) out = g_string_new (NULL);
  if (c->format == FORMAT_JSON)
    report_json (out, &s, &p, &iv);
  else if (c->format == FORMAT_CSV) {
    report_csv_header (out, NULL);
    report_csv_row (out, &s, &p, &iv, NULL);
  } else
    report_text (out, &s, &p, &iv);
  gboolean fits = p.memory.fits || !f->require_fit;
  if (!fits)
    g_set_error (error, CLI_ERROR, CLI_ERROR_FAILED,
                 "%s: the layout does not fit: stage %d needs %.2f of %.2f GiB", path,
                 p.memory.worst_stage, (double)p.memory.peak_bytes / (1 << 30),
                 (double)p.memory.capacity_bytes / (1 << 30));
  ok = fits && (trace == NULL || trace_close (g_steal_pointer (&trace), error)) &&
       cli_output (c, out->str, (gssize)out->len, error);
  prediction_clear (&p);
  spec_clear (&s);
  return ok;
}

int
cmd_predict_run (int argc, char **argv)
{
  g_auto (CliCommon) c = {0};
  g_auto (PredictFlags) f = {0};
  GError *error = NULL;
  const GOptionEntry entries[] = {
      {"trace", 0, 0, G_OPTION_ARG_FILENAME, &f.trace, "Timeline for Perfetto (or .csv)", "FILE"},
      {"trace-ranks", 0, 0, G_OPTION_ARG_STRING, &f.trace_ranks, "Only these stages, e.g. 0,3-5",
       "LIST"},
      {"require-fit", 0, 0, G_OPTION_ARG_NONE, &f.require_fit, "Fail when the layout does not fit",
       NULL},
      {"events", 0, 0, G_OPTION_ARG_NONE, &f.events, "Run the event engine, not the fast pass",
       NULL},
      {"shuffle-ties", 0, 0, G_OPTION_ARG_NONE, &f.shuffle,
       "Random order of equal times (by --seed)", NULL},
      G_OPTION_ENTRY_NULL};
  const CliHelp help = {"SCENARIO.json",
                        "Predicts one training step: time, throughput, MFU, breakdown, memory.",
                        "clustersim predict gpt3-175b-a100", 1, 1};
  if (!cli_parse (&argc, &argv, &help, entries, &c, &error))
    return cli_fail (error);
  return run (argv[1], &c, &f, &error) ? CLI_DONE : cli_fail (error);
}
