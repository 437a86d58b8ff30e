/* campaign: weeks of training with failures. The work is in models/campaign*; here the scenario
 * becomes a job (its step time is predicted when it is not given), and options choose what is
 * reported. */
#include "campaign_job_load.h"
#include "campaign_runs.h"
#include "cli.h"
#include "commands.h"
#include "report.h"
#include "report_campaign.h"
#include "scenario.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  int replicas;
  char *curve, *gpus, *runs, *progress;
  gboolean best, changes, spares, resume;
} Flags;

static void
flags_clear (Flags *f)
{
  g_free (f->curve);
  g_free (f->gpus);
  g_free (f->runs);
  g_free (f->progress);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Flags, flags_clear)

static const char *const curve_names[] = {"checkpoint", "goodput", "sensitivity", "cost", NULL};
typedef enum {
  CURVE_NONE = -1,
  CURVE_CHECKPOINT,
  CURVE_GOODPUT,
  CURVE_SENSITIVITY,
  CURVE_COST
} Curve;

/* Replicas for each point of a curve: its points share their random numbers, so fewer do. */
static guint
curve_replicas (const Flags *f)
{
  return (guint)CLAMP (f->replicas / 4, 8, 400);
}

/* ---- stopping and progress ---- */

/* While replicas run, Ctrl-C and SIGTERM are held back and looked for between two of them. */
static void
hold_signals (sigset_t *held, sigset_t *before)
{
  sigemptyset (held);
  sigaddset (held, SIGINT);
  sigaddset (held, SIGTERM);
  sigprocmask (SIG_BLOCK, held, before);
}

static gboolean
stop_asked (void)
{
  sigset_t waiting;
  sigpending (&waiting);
  return sigismember (&waiting, SIGINT) == 1 || sigismember (&waiting, SIGTERM) == 1;
}

/* A signal that was answered is taken off, so that it does not end the program before its report.
 */
static void
release_signals (const sigset_t *held, const sigset_t *before)
{
  const struct timespec at_once = {0, 0};
  while (sigtimedwait (held, NULL, &at_once) > 0)
    ;
  sigprocmask (SIG_SETMASK, before, NULL);
}

typedef struct {
  CampaignLog *log; /* NULL: none */
  guint given;
  gboolean show, interrupted;
} Watch;

static gboolean
watch (gpointer self, guint done, guint of, const CampaignRun *run)
{
  Watch *w = self;
  if (w->log != NULL && done > w->given)
    campaign_log_add (w->log, done - 1, run);
  gboolean stop = stop_asked ();
  if (w->show && (done == of || done % 32 == 0 || stop))
    fprintf (stderr, "\rcampaign: %u of %u replicas%s", done, of, done == of || stop ? "\n" : "");
  w->interrupted = stop && done < of;
  return !stop;
}

static gboolean usage (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
usage (GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error_literal (error, CLI_ERROR, CLI_ERROR_USAGE, text);
  return FALSE;
}

static gboolean
check_flags (const Flags *f, Curve *curve, GError **error)
{
  static const char *const modes[] = {"auto", "always", "never", NULL};
  *curve = CURVE_NONE;
  if (f->replicas < 1 || f->replicas > 1000000)
    return usage (error, "--replicas: out of range (found %d; allowed: 1 to 1000000)", f->replicas);
  if (f->progress != NULL && !g_strv_contains (modes, f->progress))
    return usage (error, "--progress: unknown name (found \"%.40s\"; allowed: auto, always, never)",
                  f->progress);
  if (f->resume && f->runs == NULL)
    return usage (error, "--resume needs the file of finished replicas (missing: --runs FILE.csv)");
  if (f->curve == NULL)
    return TRUE;
  for (int i = 0; curve_names[i] != NULL; i++)
    if (strcmp (f->curve, curve_names[i]) == 0)
      *curve = (Curve)i;
  return *curve != CURVE_NONE || usage (error,
                                        "--curve: unknown name (found \"%.40s\"; allowed: "
                                        "checkpoint, goodput, sensitivity, cost)",
                                        f->curve);
}

/* ---- the parts of a report ---- */

/* Runs that do not progress are not results: when none does, that is the error. */
static gboolean
check_stuck (const char *path, const CampaignResult *r, GError **error)
{
  if (r->stuck < r->replicas)
    return TRUE;
  g_set_error (error, CLI_ERROR, CLI_ERROR_FAILED, "%s: such a run can never finish: %s", path,
               r->why_stuck);
  return FALSE;
}

static gboolean
run_replicas (const char *path, const LoadedJob *job, const CliCommon *c, const Flags *f,
              CampaignResult *out, gboolean *interrupted, GError **error)
{
  Watch w = {0};
  g_autoptr (GArray) given = NULL;
  const char *mode = f->progress != NULL ? f->progress : "auto";
  w.show =
      !c->quiet && (strcmp (mode, "always") == 0 || (strcmp (mode, "auto") == 0 && isatty (2)));
  if (f->runs != NULL) {
    w.log = campaign_log_open (f->runs, job->key, f->resume, &given, error);
    if (w.log == NULL)
      return FALSE;
    w.given = MIN (given->len, (guint)f->replicas);
  }
  CampaignOptions o = {.replicas = (guint)f->replicas,
                       .seed = job->seed,
                       .progress = watch,
                       .progress_self = &w,
                       .given = given != NULL ? (const CampaignRun *)(gpointer)given->data : NULL,
                       .n_given = w.given};
  sigset_t held, before;
  hold_signals (&held, &before);
  gboolean ok = campaign_run (&job->job, &o, out, error);
  release_signals (&held, &before);
  if (!campaign_log_close (w.log, ok ? error : NULL))
    ok = FALSE;
  *interrupted = w.interrupted;
  return ok && check_stuck (path, out, error);
}

static gboolean
interval_curve (LoadedJob *job, const Flags *f, IntervalCurve *curve, GError **error)
{
  if (!campaign_interval_curve (&job->job, curve_replicas (f), job->seed, curve, error))
    return FALSE;
  if (job->job.best_interval)
    job->job.ckpt.interval_s = curve->best_s;
  job->job.best_interval = FALSE;
  return TRUE;
}

static gboolean
spare_stats (const LoadedJob *job, const Flags *f, SpareStats *out, GError **error)
{
  const JobSpec *j = &job->job;
  guint nodes = j->tracked ? j->nodes + j->hot_spares + j->cold_spares : j->nodes;
  double days = j->days > 0.0 ? j->days : fmax (j->work_s / 86400.0, 30.0);
  /* Repairs have long tails: half a year goes by before the count. */
  const double warmup_days = 180.0;
  return spares_simulate (&j->faults, nodes, j->gpus_per_node, days, warmup_days,
                          curve_replicas (f), job->seed, out, error);
}

static gboolean
make_report (const char *path, LoadedJob *job, const CliCommon *c, const Flags *f, Curve curve,
             GString *out, GError **error)
{
  CampaignResult result;
  IntervalCurve interval;
  SpareStats spares = {0};
  Sensitivity change[SENSITIVITIES];
  CampaignReport r = {.name = job->name, .job = &job->job, .result = &result, .seed = job->seed};
  if (f->best || job->job.best_interval || curve == CURVE_CHECKPOINT) {
    if (!interval_curve (job, f, &interval, error))
      return FALSE;
    r.curve = &interval;
  }
  if (!run_replicas (path, job, c, f, &result, &r.interrupted, error))
    return FALSE;
  if ((f->changes || curve == CURVE_SENSITIVITY) &&
      !campaign_sensitivity (&job->job, curve_replicas (f), job->seed, change, &r.n_changes, error))
    return FALSE;
  r.change = change;
  if (f->spares) {
    if (!spare_stats (job, f, &spares, error))
      return FALSE;
    r.spares = &spares;
  }
  r.assumed = (const char *const *)job->assumed->pdata;
  if (c->format == FORMAT_JSON)
    report_campaign_json (out, &r);
  else if (curve == CURVE_CHECKPOINT)
    report_checkpoint_csv (out, &r);
  else if (curve == CURVE_GOODPUT)
    report_goodput_csv (out, &r);
  else if (curve == CURVE_SENSITIVITY)
    report_sensitivity_csv (out, &r);
  else if (c->format == FORMAT_CSV)
    report_campaign_csv (out, &r);
  else
    report_campaign_text (out, &r);
  spare_stats_clear (&spares);
  return TRUE;
}

/* ---- days and cost against GPUs ---- */

/* What would take longer than a scenario may ask for is refused before it is simulated. */
static gboolean
check_length (const JobSpec *j, double gpus, GError **error)
{
  const double most_days = 1e5;
  return j->work_s <= most_days * 86400.0 ||
         usage (error, "--gpus: too few (found %.0f, %.3g days of work; allowed: up to %.0f days)",
                gpus, j->work_s / 86400.0, most_days);
}

/* The scenario's name without its own number of GPUs, for a series that runs over sizes:
 * "OPT-175B, 1,024 A100" is "OPT-175B, A100". Newly allocated. */
static char *
name_without_size (const char *name, gint64 gpus)
{
  g_autofree char *plain = g_strdup_printf ("%" G_GINT64_FORMAT " ", gpus);
  g_autoptr (GString) grouped = g_string_new (plain);
  for (gssize at = (gssize)strlen (plain) - 4; at > 0; at -= 3)
    g_string_insert_c (grouped, at, ',');
  const char *const written[] = {grouped->str, plain};
  for (guint i = 0; i < G_N_ELEMENTS (written); i++) {
    const char *at = strstr (name, written[i]);
    if (at == NULL || (at > name && at[-1] != ' '))
      continue;
    const char *rest = at + strlen (written[i]);
    if (strcmp (rest, "GPUs") != 0)
      return g_strdup_printf ("%.*s%s", (int)(at - name), name, rest);
    while (at > name && (at[-1] == ' ' || at[-1] == ','))
      at--;
    return at > name ? g_strndup (name, (gsize)(at - name)) : g_strdup (name);
  }
  return g_strdup (name);
}

static gboolean
cost_row (JsonDoc *doc, const char *path, double gpus, gint64 own_gpus, const CliCommon *c,
          const Flags *f, GString *out, GError **error)
{
  g_auto (LoadedJob) job = {0};
  CampaignResult result;
  gboolean interrupted;
  IntervalCurve interval;
  Flags quiet = *f;
  quiet.runs = NULL;
  quiet.progress = NULL;
  CliCommon silent = *c;
  silent.quiet = TRUE;
  if (!campaign_job_load_at (doc, (gint64)gpus, &job, error) ||
      !check_length (&job.job, gpus, error) ||
      (job.job.best_interval && !interval_curve (&job, f, &interval, error)) ||
      !run_replicas (path, &job, &silent, &quiet, &result, &interrupted, error))
    return FALSE;
  g_autofree char *series = name_without_size (job.name, own_gpus);
  report_csv_field (out, series);
  report_cost_csv_row (out, &job.job, &result);
  return TRUE;
}

/* From a quarter of the scenario's GPUs to eight times as many, or those of --gpus. Sizes that the
 * layout cannot have are left out; when none is left, the first reason is the error. */
static gboolean
cost_curve (JsonDoc *doc, const char *path, const CliCommon *c, const Flags *f, gint64 gpus,
            GString *out, GError **error)
{
  g_autoptr (GError) first = NULL;
  g_autofree char *list =
      f->gpus != NULL
          ? g_strdup (f->gpus)
          : g_strdup_printf ("%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT
                             ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT,
                             gpus / 4, gpus / 2, gpus, gpus * 2, gpus * 4, gpus * 8);
  g_auto (GStrv) sizes = g_strsplit (list, ",", -1);
  report_cost_csv_header (out);
  gsize empty = out->len;
  for (guint i = 0; sizes[i] != NULL; i++) {
    char *end = NULL;
    double n = g_ascii_strtod (sizes[i], &end);
    if (end == sizes[i] || *end != '\0' || n < 1 || n > 1e7 || n != floor (n))
      return usage (error, "--gpus: not a number of GPUs (found \"%.40s\"; allowed: 1 to 10000000)",
                    sizes[i]);
    g_autoptr (GError) why = NULL;
    if (cost_row (doc, path, n, gpus, c, f, out, &why))
      continue;
    if (!c->quiet)
      fprintf (stderr, "clustersim: %s GPUs left out: %s\n", sizes[i], why->message);
    if (first == NULL)
      first = g_steal_pointer (&why);
  }
  if (out->len > empty || first == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&first));
  return FALSE;
}

static void
show_warnings (const GPtrArray *inputs)
{
  for (guint i = 0; inputs != NULL && i < inputs->len; i++) {
    const JobInput *in = g_ptr_array_index (inputs, i);
    if (g_str_equal (in->kind, "warning"))
      fprintf (stderr, "clustersim: warning: %s\n", in->source);
  }
}

static gboolean
run (const char *path, const CliCommon *c, const Flags *f, GError **error)
{
  Curve curve;
  if (!check_flags (f, &curve, error))
    return FALSE;
  g_autoptr (JsonDoc) doc = scenario_document (path, (const char *const *)c->sets, error);
  if (doc == NULL)
    return FALSE;
  g_auto (LoadedJob) job = {0};
  if (!campaign_job_load (doc, &job, error))
    return FALSE;
  if (curve == CURVE_COST && job.job.work_s <= 0.0)
    return usage (error,
                  "%s: days and cost against GPUs need an amount of work (found job.days alone; "
                  "allowed: job.tokens or job.work_days)",
                  path);
  if (!c->quiet)
    show_warnings (job.job.inputs);
  g_autoptr (GString) out = g_string_new (NULL);
  gboolean ok = curve == CURVE_COST ? cost_curve (doc, path, c, f, job.job.gpus, out, error)
                                    : make_report (path, &job, c, f, curve, out, error);
  return ok && cli_output (c, out->str, (gssize)out->len, error);
}

int
cmd_campaign_run (int argc, char **argv)
{
  g_auto (CliCommon) c = {0};
  g_auto (Flags) f = {.replicas = 200};
  GError *error = NULL;
  const GOptionEntry entries[] = {
      {"replicas", 0, 0, G_OPTION_ARG_INT, &f.replicas, "Simulated runs (200)", "N"},
      {"best", 0, 0, G_OPTION_ARG_NONE, &f.best, "The best checkpoint interval, and how flat it is",
       NULL},
      {"changes", 0, 0, G_OPTION_ARG_NONE, &f.changes,
       "What faster detection, storage … would bring", NULL},
      {"spares", 0, 0, G_OPTION_ARG_NONE, &f.spares,
       "How many nodes are in repair, and spares for it", NULL},
      {"curve", 0, 0, G_OPTION_ARG_STRING, &f.curve,
       "Table for plot: checkpoint, goodput, sensitivity, cost", "KIND"},
      {"gpus", 0, 0, G_OPTION_ARG_STRING, &f.gpus, "Sizes of --curve cost", "LIST"},
      {"runs", 0, 0, G_OPTION_ARG_FILENAME, &f.runs, "Writes a line for each replica", "FILE.csv"},
      {"resume", 0, 0, G_OPTION_ARG_NONE, &f.resume, "Goes on from the replicas in that file",
       NULL},
      {"progress", 0, 0, G_OPTION_ARG_STRING, &f.progress, "auto, always or never", "WHEN"},
      G_OPTION_ENTRY_NULL};
  const CliHelp help = {
      "SCENARIO.json",
      "Simulates weeks of training with failures, checkpoints, repair and spares: goodput "
      "by cause,\ndays, money and energy, each with its range.",
      "clustersim campaign llama-3-405b --best",
      1,
      1,
      FALSE};
  if (!cli_parse (&argc, &argv, &help, entries, &c, &error))
    return cli_fail (error);
  return run (argv[1], &c, &f, &error) ? CLI_DONE : cli_fail (error);
}
