#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "cross.h"
#include "paths.h"
#include "validate.h"
#include "validate_all.h"

typedef struct {
  char *classes, *group, *cross, **where;
  gboolean rows, stage_times, all;
} ValidateFlags;

static void
flags_clear (ValidateFlags *f)
{
  g_free (f->classes);
  g_free (f->group);
  g_free (f->cross);
  g_strfreev (f->where);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (ValidateFlags, flags_clear)

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
  if (c->format == FORMAT_JSON)
    validate_json (r, out);
  else if (c->format == FORMAT_CSV)
    validate_csv (r, out);
  else
    validate_text (r, f->rows, out);
  return cli_output (c, out->str, (gssize)out->len, error);
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
      {"all", 0, 0, G_OPTION_ARG_NONE, &f.all,
       "All tables of a folder against the project's targets", NULL},
      {"cross", 0, 0, G_OPTION_ARG_STRING, &f.cross,
       "Leave out whole groups and set anew what was set on runs: source, gpu or a column",
       "COLUMN"},
      {"stage-times", 0, 0, G_OPTION_ARG_NONE, &f.stage_times,
       "Use stage_ms in place of the device model", NULL},
      G_OPTION_ENTRY_NULL};
  const CliHelp help = {
      "TABLE.csv", "Predicts every row of a table of published measurements, prints the errors.",
      "clustersim validate scenarios/published/runs.csv --class A --where 'gpu~A100'", 1, 1};
  if (!cli_parse (&argc, &argv, &help, entries, &c, &error))
    return cli_fail (error);
  return run (argv[1], &c, &f, &error) ? CLI_DONE : cli_fail (error);
}
