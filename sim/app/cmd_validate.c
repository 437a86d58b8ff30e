#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "cross.h"
#include "paths.h"
#include "validate.h"
#include "validate_all.h"
#include "validate_compare.h"

typedef struct {
  char *classes, *group, *by, *cross, **where;
  gboolean rows, stage_times, rank, pairs, all;
} ValidateFlags;

static void
flags_clear (ValidateFlags *f)
{
  g_free (f->classes);
  g_free (f->group);
  g_free (f->by);
  g_free (f->cross);
  g_strfreev (f->where);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (ValidateFlags, flags_clear)

/* One of the views of validate_compare.h, when one is asked for. */
static gboolean
compare (const CsvTable *t, const ValidateResult *r, const CliCommon *c, const ValidateFlags *f,
         GString *out, gboolean *done, GError **error)
{
  gboolean json = c->format == FORMAT_JSON, feature = f->by != NULL;
  *done = f->rank || f->pairs || feature;
  if (!*done)
    return TRUE;
  if (feature && g_strcmp0 (f->by, "feature") != 0)
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
                 "--by: unknown name (found \"%.40s\"; allowed: feature; --group takes columns)",
                 f->by);
  else if ((int)f->rank + (int)f->pairs + (int)feature > 1)
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "--rank, --pairs, --by: one of them at a time");
  else if (g_strcmp0 (r->table, table_runs.name) != 0)
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
                 "--rank, --pairs and --by are of training runs (found: a table of %s)", r->table);
  else if (c->format == FORMAT_CSV)
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
                 "--format: not with --rank, --pairs and --by (found csv; allowed: text, json)");
  else {
    g_autoptr (GArray) list = f->rank    ? validate_ranks (t, r)
                              : f->pairs ? validate_pairs (t, r)
                                         : validate_features (t, r);
    if (f->rank)
      validate_ranks_print (list, json, out);
    else if (f->pairs)
      validate_pairs_print (list, f->rows, json, out);
    else
      validate_features_print (list, json, out);
    return TRUE;
  }
  return FALSE;
}

static void
show_share (guint done, guint of, gpointer self G_GNUC_UNUSED)
{
  g_printerr ("\r%3u %%", MIN (100, 100 * done / MAX (of, 1)));
}

/* Groups left out one by one; the short names stand for the usual columns. */
static gboolean
run_cross (const CsvTable *t, Store *store, const CliCommon *c, const ValidateFlags *f,
           GError **error)
{
  const char *column = strcmp (f->cross, "source") == 0 ? "source_title" : f->cross;
  const gboolean shown = !c->quiet && isatty (STDERR_FILENO);
  g_autoptr (CrossResult) r =
      cross_validate (t, store, f->classes, column, shown ? show_share : NULL, NULL, error);
  if (shown)
    g_printerr ("\r     \r");
  if (r == NULL)
    return FALSE;
  g_autoptr (GString) out = g_string_new (NULL);
  if (c->format == FORMAT_JSON)
    cross_json (r, out);
  else if (c->format == FORMAT_CSV)
    cross_csv (r, out);
  else
    cross_text (r, out);
  return cli_output (c, out->str, (gssize)out->len, error);
}

static gboolean
run_all (const char *folder, const CliCommon *c, GError **error)
{
  g_autoptr (Store) store = store_new ();
  g_autoptr (GArray) targets = validate_all (folder, store, error);
  g_autoptr (GString) out = g_string_new (NULL);
  if (targets == NULL)
    return FALSE;
  if (c->format == FORMAT_JSON)
    targets_json (targets, out);
  else if (c->format == FORMAT_CSV)
    targets_csv (targets, out);
  else
    targets_text (targets, out);
  return cli_output (c, out->str, (gssize)out->len, error);
}

static gboolean
run (const char *path, const CliCommon *c, const ValidateFlags *f, GError **error)
{
  if (f->all)
    return run_all (path, c, error);
  g_autoptr (CsvTable) t = csv_load (path, error);
  if (t == NULL)
    return FALSE;
  g_autoptr (Store) store = store_new ();
  if (f->cross != NULL)
    return run_cross (t, store, c, f, error);
  ValidateOptions o = {f->classes, (const char *const *)f->where, f->group, f->stage_times};
  g_autoptr (ValidateResult) r = validate_table (t, store, &o, error);
  if (r == NULL)
    return FALSE;
  g_autoptr (GString) out = g_string_new (NULL);
  gboolean compared = FALSE;
  if (!compare (t, r, c, f, out, &compared, error))
    return FALSE;
  if (compared)
    return cli_output (c, out->str, (gssize)out->len, error);
  if (c->format == FORMAT_JSON)
    validate_json (r, out);
  else if (c->format == FORMAT_CSV)
    validate_csv (r, out);
  else
    validate_text (r, f->rows, out);
  return cli_output (c, out->str, (gssize)out->len, error);
}

/* An option that changes nothing would be believed to. */
static gboolean
check_flags (const ValidateFlags *f, GError **error)
{
  const char *mode = f->all ? "--all" : f->cross != NULL ? "--cross" : NULL;
  const struct {
    const char *name;
    gboolean given;
  } others[] = {{"--where", f->where != NULL},
                {"--group", f->group != NULL},
                {"--rows", f->rows},
                {"--rank", f->rank},
                {"--pairs", f->pairs},
                {"--by", f->by != NULL},
                {"--stage-times", f->stage_times}};
  if (f->all && (f->cross != NULL || f->classes != NULL)) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "--all: not with %s",
                 f->cross != NULL ? "--cross" : "--class");
    return FALSE;
  }
  for (gsize i = 0; mode != NULL && i < G_N_ELEMENTS (others); i++)
    if (others[i].given) {
      g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "%s: not with %s", mode, others[i].name);
      return FALSE;
    }
  return TRUE;
}

int
cmd_validate_run (int argc, char **argv)
{
  g_auto (CliCommon) c = {0};
  g_auto (ValidateFlags) f = {0};
  GError *error = NULL;
  const GOptionEntry entries[] = {
      {"class", 0, 0, G_OPTION_ARG_STRING, &f.classes, "Only rows of these classes", "A,B"},
      {"where", 0, 0, G_OPTION_ARG_STRING_ARRAY, &f.where,
       "Only rows whose COLUMN matches; may be repeated", "COLUMN~REGEX"},
      {"group", 0, 0, G_OPTION_ARG_STRING, &f.group, "Column of the groups (source_title)",
       "COLUMN"},
      {"rows", 0, 0, G_OPTION_ARG_NONE, &f.rows, "Print every row", NULL},
      {"rank", 0, 0, G_OPTION_ARG_NONE, &f.rank, "The order of layouts of one model on one machine",
       NULL},
      {"pairs", 0, 0, G_OPTION_ARG_NONE, &f.pairs,
       "The direction of rows that differ in one setting", NULL},
      {"by", 0, 0, G_OPTION_ARG_STRING, &f.by, "Errors by what the rows use", "feature"},
      {"all", 0, 0, G_OPTION_ARG_NONE, &f.all,
       "All tables of a folder against the project's targets", NULL},
      {"cross", 0, 0, G_OPTION_ARG_STRING, &f.cross,
       "Leave out whole groups and set anew what was set on runs: source, gpu or a column",
       "COLUMN"},
      {"stage-times", 0, 0, G_OPTION_ARG_NONE, &f.stage_times,
       "Use stage_ms in place of the device model", NULL},
      G_OPTION_ENTRY_NULL};
  const CliHelp help = {
      "TABLE.csv",
      "Predicts every row of a table of published measurements, prints the errors.",
      "clustersim validate scenarios/published/runs.csv --class A --where 'gpu~A100'",
      1,
      1,
      TRUE};
  if (!cli_parse (&argc, &argv, &help, entries, &c, &error))
    return cli_fail (error);
  return check_flags (&f, &error) && run (argv[1], &c, &f, &error) ? CLI_DONE : cli_fail (error);
}
