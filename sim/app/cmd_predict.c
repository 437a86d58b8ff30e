#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "against.h"
#include "cli.h"
#include "commands.h"
#include "fileio.h"
#include "gantt.h"
#include "quick.h"
#include "report.h"
#include "scenario.h"
#include "schedule_file.h"
#include "text.h"
#include "trace.h"

typedef struct {
  char *trace, *trace_ranks, *hf_config, *gpus, *against, *save;
  gboolean require_fit, events, shuffle, gantt;
} PredictFlags;

static void
flags_clear (PredictFlags *f)
{
  g_free (f->trace);
  g_free (f->trace_ranks);
  g_free (f->hf_config);
  g_free (f->gpus);
  g_free (f->against);
  g_free (f->save);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PredictFlags, flags_clear)

static gboolean
open_trace (const PredictFlags *f, const char *file, SimTrace **trace, GError **error)
{
  SimTraceOptions o = {.ticks_per_s = SIM_TICKS_PS, .ranks = f->trace_ranks, .max_bytes = 1 << 30};
  *trace = NULL;
  if (file == NULL)
    return TRUE;
  *trace = g_str_has_suffix (file, ".csv") ? trace_csv_new (file, &o, error)
                                           : trace_chrome_new (file, &o, error);
  return *trace != NULL;
}

/* The report, and what was asked to stand below it. */
static gboolean
put_report (GString *out, const CliCommon *c, const PredictFlags *f, const Spec *s,
            const Prediction *p, const StepInterval *iv, GError **error)
{
  g_autoptr (GPtrArray) warnings = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GArray) rows = NULL;
  if (f->against != NULL) {
    rows = against_log (f->against, s, p, warnings, error);
    if (rows == NULL)
      return FALSE;
  }
  if (c->format == FORMAT_JSON && rows != NULL)
    against_json (out, f->against, rows, warnings);
  else if (c->format == FORMAT_JSON)
    report_json (out, s, p, iv);
  else if (c->format == FORMAT_CSV && rows != NULL)
    against_csv (out, rows);
  else if (c->format == FORMAT_CSV) {
    report_csv_header (out, NULL);
    report_csv_row (out, s, p, iv, NULL);
  } else {
    report_text (out, s, p, iv);
    if (rows != NULL)
      against_text (out, f->against, rows, warnings);
  }
  return TRUE;
}

/* A text Gantt is made of a trace in a file of its own. */
static gboolean
put_gantt (GString *out, const CliCommon *c, const Spec *s, const SchedTable *table, GError **error)
{
  g_autofree char *folder = g_dir_make_tmp ("clustersim-XXXXXX", error);
  if (folder == NULL)
    return FALSE;
  g_autofree char *file = g_build_filename (folder, "trace.csv", NULL);
  const PredictFlags none = {0};
  SimTrace *trace = NULL;
  Prediction p;
  PredictOptions o = {.table = table, .trace_last = G_MAXUINT};
  gboolean ok = open_trace (&none, file, &trace, error);
  o.trace = trace;
  if (ok && (ok = predict (s, NULL, &o, &p, error)))
    prediction_clear (&p);
  if (ok)
    ok = trace_close (trace, error) && (c->format != FORMAT_TEXT || gantt_text (out, file, error));
  else
    trace_free (trace);
  g_unlink (file);
  g_rmdir (folder);
  return ok;
}

/* A filter that lets nothing through is a slip. */
static gboolean
check_ranks (const SimTrace *trace, const char *ranks, const Spec *s, GError **error)
{
  guint32 stages = (guint32)MAX (s->parallel.pp, 1);
  if (trace == NULL || ranks == NULL)
    return TRUE;
  for (guint32 k = 0; k < stages; k++)
    if (trace_wants_rank (trace, k))
      return TRUE;
  g_autofree char *quoted = text_quoted (ranks);
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
               "--trace-ranks: none of the stages (found %s; allowed: 0 to %u)", quoted,
               stages - 1);
  return FALSE;
}

static gboolean
predict_spec (Spec *s, JsonDoc *doc, const CliCommon *c, const PredictFlags *f,
              const IntervalTable *intervals, GError **error)
{
  g_autoptr (SchedTable) table = NULL;
  g_autoptr (SimTrace) trace = NULL;
  Prediction p;
  gboolean ok = schedule_file_load (s, &table, error) && open_trace (f, f->trace, &trace, error) &&
                check_ranks (trace, f->trace_ranks, s, error);
  PredictOptions o = {.table = table, .trace = trace, .trace_last = G_MAXUINT};
  ok = ok && predict (s, NULL, &o, &p, error);
  if (!ok) {
    scenario_blame (doc, error);
    return FALSE;
  }
  StepInterval iv = interval_for (intervals, s, &p);
  g_autoptr (GString) out = g_string_new (NULL);
  gboolean fits = p.memory.fits || !f->require_fit;
  if (!fits)
    g_set_error (error, CLI_ERROR, CLI_ERROR_FAILED,
                 "%s: the layout does not fit: stage %d needs %.2f of %.2f GiB", s->name,
                 p.memory.worst_stage, (double)p.memory.peak_bytes / (1 << 30),
                 (double)p.memory.capacity_bytes / (1 << 30));
  ok = fits && put_report (out, c, f, s, &p, &iv, error) &&
       (!f->gantt || put_gantt (out, c, s, table, error)) &&
       (trace == NULL || trace_close (g_steal_pointer (&trace), error)) &&
       cli_output (c, out->str, (gssize)out->len, error);
  prediction_clear (&p);
  return ok;
}

/* The scenario that was made, so that plan, sweep, report and campaign can go on from it. */
static gboolean
save_scenario (const char *file, JsonDoc *doc, GError **error)
{
  JsonRef root = json_root (doc);
  char *text = cJSON_Print (root.node);
  g_autofree char *line = g_strconcat (text, "\n", NULL);
  cJSON_free (text);
  return output_write (file, line, -1, error);
}

static gboolean
run (const char *path, const CliCommon *c, const PredictFlags *f, GError **error)
{
  Spec s;
  const char *const *sets = (const char *const *)c->sets;
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (IntervalTable) intervals = interval_table_load (error);
  if (intervals == NULL)
    return FALSE;
  g_autoptr (JsonDoc) doc = f->hf_config != NULL
                                ? quick_document (f->hf_config, f->gpus, sets, notes, error)
                                : scenario_document (path, sets, error);
  if (doc == NULL || !scenario_read (doc, &s, error))
    return FALSE;
  s.run.exact_events |= f->events || f->shuffle;
  s.run.shuffle_ties |= f->shuffle;
  for (guint i = 0; i < notes->len; i++)
    g_ptr_array_add (s.assumed, g_strdup (g_ptr_array_index (notes, i)));
  gboolean ok = (f->save == NULL || save_scenario (f->save, doc, error)) &&
                predict_spec (&s, doc, c, f, intervals, error);
  spec_clear (&s);
  return ok;
}

/* A scenario, or a model and a number of GPUs. */
static gboolean
check_call (int argc, const PredictFlags *f, GError **error)
{
  const char *wrong = NULL;
  if (f->hf_config == NULL && f->gpus == NULL)
    wrong = argc < 2 ? "an argument is missing (usage: clustersim predict [OPTION...] "
                       "SCENARIO.json, or --hf-config config.json --gpus 64xH100)"
                     : NULL;
  else if (f->hf_config == NULL || f->gpus == NULL)
    wrong = "--hf-config and --gpus go together (allowed: --hf-config config.json --gpus 64xH100)";
  else if (argc > 1)
    wrong = "a scenario and --hf-config (allowed: one of them)";
  if (wrong == NULL && f->trace_ranks != NULL && f->trace == NULL)
    wrong = "--trace-ranks: only with --trace FILE";
  if (wrong == NULL && f->save != NULL && f->hf_config == NULL)
    wrong = "--save: only with --hf-config (a scenario is a file already)";
  if (wrong == NULL)
    return TRUE;
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "predict: %s", wrong);
  return FALSE;
}

int
cmd_predict_run (int argc, char **argv)
{
  g_auto (CliCommon) c = {0};
  g_auto (PredictFlags) f = {0};
  GError *error = NULL;
  const GOptionEntry entries[] = {
      {"hf-config", 0, 0, G_OPTION_ARG_FILENAME, &f.hf_config,
       "No scenario: a Hugging Face config.json …", "FILE"},
      {"gpus", 0, 0, G_OPTION_ARG_STRING, &f.gpus, "… on so many GPUs, e.g. 64xH100", "NxGPU"},
      {"save", 0, 0, G_OPTION_ARG_FILENAME, &f.save,
       "Write the scenario of --hf-config, for plan, sweep, report", "FILE.json"},
      {"against", 0, 0, G_OPTION_ARG_FILENAME, &f.against,
       "Compare with the log of a run (Megatron, DeepSpeed, NeMo, torchtitan, Hugging Face)",
       "LOG"},
      {"gantt", 0, 0, G_OPTION_ARG_NONE, &f.gantt, "The timeline as text", NULL},
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
                        "clustersim predict gpt3-175b-a100\n"
                        "  clustersim predict --hf-config config.json --gpus 64xH100",
                        0,
                        1,
                        FALSE};
  if (!cli_parse (&argc, &argv, &help, entries, &c, &error) || !check_call (argc, &f, &error))
    return cli_fail (error);
  return run (argv[1], &c, &f, &error) ? CLI_DONE : cli_fail (error);
}
