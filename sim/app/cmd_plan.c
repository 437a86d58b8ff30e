#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "identity.h"
#include "plan_report.h"
#include "plan_store.h"
#include "scenario.h"
#include "text.h"

typedef struct {
  gint top;
  char *by, *progress, *shard, **only;
  double seconds, slack;
  gboolean resume, merge;
} PlanFlags;

static void
flags_clear (PlanFlags *f)
{
  g_free (f->by);
  g_free (f->progress);
  g_free (f->shard);
  g_strfreev (f->only);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PlanFlags, flags_clear)

/* lint: allow state: a signal has no other way in */
static volatile sig_atomic_t stop_asked;

static void
ask_stop (int signal_number G_GNUC_UNUSED)
{
  stop_asked = 1;
}

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

/* ---- --only ---- */

typedef enum {
  ONLY_TP,
  ONLY_CP,
  ONLY_PP,
  ONLY_VPP,
  ONLY_EP,
  ONLY_MBS,
  ONLY_ZERO,
  ONLY_SCHEDULE,
  ONLY_RECOMPUTE
} OnlyKey;
static const char *const only_names[] = {
    "tp",         "cp",       "pp",        "vpp", "ep", "micro_batch_sequences",
    "zero_stage", "schedule", "recompute", NULL};

typedef struct {
  OnlyKey key;
  char **values;
} Only;

static void
only_clear (gpointer p)
{
  g_strfreev (((Only *)p)->values);
}

static gboolean
parse_only (const char *text, Only *out, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (text, "=", 2);
  int key = -1;
  for (int i = 0; only_names[i] != NULL; i++)
    if (g_strcmp0 (parts[0], only_names[i]) == 0)
      key = i;
  if (key < 0 || parts[1] == NULL || *parts[1] == '\0') {
    g_autofree char *quoted = text_quoted (text), *all = text_list (only_names, 20);
    return usage (error, "--only: no KEY=V1,V2 (found %s; keys: %s)", quoted, all);
  }
  g_auto (GStrv) values = g_strsplit (parts[1], ",", -1);
  const char *const *names = key == ONLY_SCHEDULE    ? sched_names
                             : key == ONLY_RECOMPUTE ? (const char *const *)recompute_names
                                                     : NULL;
  for (gsize i = 0; values[i] != NULL; i++) {
    guint64 v;
    if (names != NULL ? g_strv_contains (names, values[i])
                      : g_ascii_string_to_unsigned (values[i], 10, 0, 1000000, &v, NULL))
      continue;
    g_autofree char *quoted = text_quoted (values[i]);
    g_autofree char *all = names != NULL ? text_list (names, 20) : g_strdup ("a whole number");
    return usage (error, "--only %s: not a value (found %s; allowed: %s)", only_names[key], quoted,
                  all);
  }
  *out = (Only){(OnlyKey)key, g_steal_pointer (&values)};
  return TRUE;
}

static gboolean
one_of (const Only *o, const PlanPoint *p)
{
  const gint64 numbers[] = {p->tp, p->cp, p->pp, p->vpp, p->ep, p->mbs, p->zero_stage};
  if (o->key == ONLY_SCHEDULE)
    return g_strv_contains ((const char *const *)o->values, p->schedule);
  if (o->key == ONLY_RECOMPUTE)
    return g_strv_contains ((const char *const *)o->values, recompute_names[p->recompute]);
  for (gsize i = 0; o->values[i] != NULL; i++)
    if (g_ascii_strtoll (o->values[i], NULL, 10) == numbers[o->key])
      return TRUE;
  return FALSE;
}

/* ---- a search ---- */

typedef struct {
  const CliCommon *c;
  const PlanFlags *f;
  Spec spec;
  gboolean loaded;
  PlanOrder order;
  char *own_wrong; /* why the scenario's own layout cannot be */
  guint64 first, step;
  GArray *only; /* Only */
  PlanStore *store;
} Job;

static void
job_clear (Job *j)
{
  if (j->loaded)
    spec_clear (&j->spec);
  g_free (j->own_wrong);
  g_clear_pointer (&j->only, g_array_unref);
  plan_store_free (j->store);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, job_clear)

static gboolean
allowed (gpointer data, const PlanPoint *p)
{
  const Job *j = data;
  for (guint i = 0; i < j->only->len; i++)
    if (!one_of (&g_array_index (j->only, Only, i), p))
      return FALSE;
  return TRUE;
}

static gboolean
known (gpointer data, PlanPoint *p)
{
  return plan_store_known (((Job *)data)->store, p);
}

static gboolean
took (gpointer data, const PlanPoint *p, GError **error)
{
  return plan_store_took (((Job *)data)->store, p, error);
}

static void
show_progress (gpointer data G_GNUC_UNUSED, guint64 done, guint64 of, const PlanPoint *best)
{
  g_printerr ("\r%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " layouts", done, of);
  if (best != NULL)
    g_printerr (", best %.4f s, %.1f GiB   ", best->step_s, (double)best->peak_bytes / (1 << 30));
}

static gboolean
check_flags (Job *j, GError **error)
{
  static const char *const modes[] = {"auto", "always", "never", NULL};
  const PlanFlags *f = j->f;
  if (f->top < 1 || f->top > 100000)
    return usage (error, "--top: out of range (found %d; allowed: 1 to 100000)", f->top);
  if (f->progress != NULL && !g_strv_contains (modes, f->progress))
    return usage (error, "--progress: unknown name (found \"%.40s\"; allowed: auto, always, never)",
                  f->progress);
  if (!(f->slack >= 1 && f->slack <= 1e6))
    return usage (error, "--slack: out of range (found %g; allowed: 1 to 1e6)", f->slack);
  if (!(f->seconds >= 0 && f->seconds < 1e9))
    return usage (error, "--seconds: out of range (found %g; allowed: 0 to 1e9)", f->seconds);
  for (int i = 0; f->by != NULL && plan_order_names[i] != NULL; i++)
    if (strcmp (f->by, plan_order_names[i]) == 0)
      j->order = (PlanOrder)i;
  if (f->by != NULL && strcmp (f->by, plan_order_names[j->order]) != 0)
    return usage (error, "--by: no such order (found \"%.40s\"; allowed: time, cost, memory)",
                  f->by);
  if (f->resume && j->c->output == NULL)
    return usage (error, "--resume: the result must be a file (add -o FILE)");
  if (f->merge && (f->shard != NULL || f->resume))
    return usage (error, "--merge: takes the scenario, the files of the shards and -o");
  for (gsize i = 0; f->only != NULL && f->only[i] != NULL; i++) {
    Only o;
    if (!parse_only (f->only[i], &o, error))
      return FALSE;
    g_array_append_val (j->only, o);
  }
  return sweep_shard_parse (f->shard, &j->first, &j->step, error);
}

/* A scenario that gives a layout must give one that can be; one that gives none need not start with
 * one. */
static gboolean
load (Job *j, const char *path, GError **error)
{
  g_autoptr (JsonDoc) doc = scenario_document (path, (const char *const *)j->c->sets, error);
  if (doc == NULL)
    return FALSE;
  JsonRef root = json_root (doc);
  g_autoptr (Identity) id = identity_new ();
  identity_document (id, doc);
  for (gsize i = 0; j->f->only != NULL && j->f->only[i] != NULL; i++)
    identity_text (id, j->f->only[i]);
  j->store = plan_store_new (identity_get (id), j->first, j->step);
  if (json_has (&root, "parallel"))
    return j->loaded = scenario_read (doc, &j->spec, error);
  j->loaded = scenario_read_unchecked (doc, &j->spec, error);
  g_autoptr (GError) why = NULL;
  if (j->loaded && j->spec.cluster.gpus <= 0)
    j->spec.cluster.gpus = j->spec.cluster.nodes * j->spec.cluster.gpus_per_node;
  Spec own = j->spec;
  if (j->loaded && !spec_check (&own, NULL, &why))
    j->own_wrong = g_strdup (why->message);
  return j->loaded;
}

static gboolean
write_result (Job *j, const PlanResult *r, GError **error)
{
  const PlanShow show = {(guint)j->f->top, j->order, j->own_wrong};
  g_autoptr (GString) out = g_string_new (NULL);
  if (j->f->shard != NULL)
    plan_store_shard_text (j->store, r, out);
  else if (j->c->format == FORMAT_JSON)
    plan_json (out, &j->spec, r, &show);
  else if (j->c->format == FORMAT_CSV)
    plan_csv (out, &j->spec, r, &show);
  else
    plan_text (out, &j->spec, r, &show);
  return cli_output (j->c, out->str, (gssize)out->len, error);
}

/* Stopped: a part of a shard is of no use, and a file is not to look like a whole answer unless a
 * time was set. What was predicted is in the journal. */
static gboolean
finish (Job *j, const PlanResult *r, GError **error)
{
  if (r->missing > 0) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_FAILED,
                 "%" G_GUINT64_FORMAT " predictions are not in the shards", r->missing);
    return FALSE;
  }
  gboolean keep = !r->complete && j->c->output != NULL;
  if (keep && (j->f->shard != NULL || stop_asked != 0)) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_FAILED,
                 "plan: stopped after %" G_GUINT64_FORMAT
                 " predictions; the same command with --resume goes on",
                 plan_store_count (j->store) + r->made);
    return FALSE;
  }
  if (!write_result (j, r, error))
    return FALSE;
  if (!keep)
    plan_store_drop (j->store);
  return TRUE;
}

static gboolean
search (Job *j, GError **error)
{
  const PlanFlags *f = j->f;
  PlanResult r;
  PlanOptions o = {.order = j->order,
                   .top = (guint)f->top + PLAN_LOSERS,
                   .slack = f->slack,
                   .stop = &stop_asked,
                   .first = j->first,
                   .step = j->step,
                   .data = j,
                   .allow = allowed,
                   .known = known,
                   .known_only = f->merge,
                   .took = took};
  gboolean shown =
      g_strcmp0 (f->progress, "always") == 0 ||
      (g_strcmp0 (f->progress, "never") != 0 && !j->c->quiet && isatty (STDERR_FILENO));
  if (f->seconds > 0)
    o.deadline = g_get_monotonic_time () + (gint64)(f->seconds * 1e6);
  if (shown)
    o.progress = show_progress;
  struct sigaction act = {.sa_handler = ask_stop}, before_int, before_term;
  sigaction (SIGINT, &act, &before_int);
  sigaction (SIGTERM, &act, &before_term);
  gboolean ok = plan_run (&j->spec, &o, &r, error);
  sigaction (SIGINT, &before_int, NULL);
  sigaction (SIGTERM, &before_term, NULL);
  if (shown)
    g_printerr ("\r%70s\r", "");
  if (!ok)
    return FALSE;
  ok = finish (j, &r, error);
  plan_clear (&r);
  return ok;
}

static gboolean
run (int argc, char **argv, const CliCommon *c, const PlanFlags *f, GError **error)
{
  g_auto (Job) j = {.c = c, .f = f};
  j.only = g_array_new (FALSE, FALSE, sizeof (Only));
  g_array_set_clear_func (j.only, only_clear);
  if (!f->merge && argc > 2) {
    g_autofree char *quoted = text_quoted (argv[2]);
    return usage (error, "plan: one argument too many (found %s)", quoted);
  }
  if (!check_flags (&j, error) || !load (&j, argv[1], error))
    return FALSE;
  if (f->merge) {
    g_autofree const char **files = g_new0 (const char *, argc);
    for (int i = 2; i < argc; i++)
      files[i - 2] = argv[i];
    return plan_store_merge (j.store, files, error) && search (&j, error);
  }
  if (c->output != NULL && !plan_store_open (j.store, c->output, f->resume, error))
    return FALSE;
  return search (&j, error);
}

int
cmd_plan_run (int argc, char **argv)
{
  g_auto (CliCommon) c = {0};
  g_auto (PlanFlags) f = {.top = 5, .slack = 1.5};
  GError *error = NULL;
  const GOptionEntry entries[] = {
      {"top", 0, 0, G_OPTION_ARG_INT, &f.top, "So many of the best (5)", "N"},
      {"by", 0, 0, G_OPTION_ARG_STRING, &f.by, "Best by time, cost or memory (time)", "ORDER"},
      {"only", 0, 0, G_OPTION_ARG_STRING_ARRAY, &f.only,
       "Only these: tp, cp, pp, vpp, ep, schedule, recompute …; may be repeated", "KEY=V1,V2"},
      {"slack", 0, 0, G_OPTION_ARG_DOUBLE, &f.slack,
       "The edge of time and memory goes up to so many times the best time (1.5)", "X"},
      {"seconds", 0, 0, G_OPTION_ARG_DOUBLE, &f.seconds, "Stop then, with the best so far", "S"},
      {"resume", 0, 0, G_OPTION_ARG_NONE, &f.resume,
       "Go on with a search that was stopped or killed", NULL},
      {"shard", 0, 0, G_OPTION_ARG_STRING, &f.shard, "Only the I-th of N parts, for job arrays",
       "I/N"},
      {"merge", 0, 0, G_OPTION_ARG_NONE, &f.merge,
       "Put shards together: SCENARIO --merge A B … -o ALL", NULL},
      {"progress", 0, 0, G_OPTION_ARG_STRING, &f.progress, "auto, always or never", "WHEN"},
      G_OPTION_ENTRY_NULL};
  const CliHelp help = {
      "SCENARIO.json",
      "Searches the layouts of a scenario's model on its cluster, and says why the "
      "others lost.",
      "clustersim plan gpt3-175b-h100 --top 3",
      1,
      -1,
      FALSE};
  if (!cli_parse (&argc, &argv, &help, entries, &c, &error))
    return cli_fail (error);
  return run (argc, argv, &c, &f, &error) ? CLI_DONE : cli_fail (error);
}
