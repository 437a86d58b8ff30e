#include "cli.h"
#include "commands.h"
#include "paths.h"
#include "validate.h"

typedef struct {
  char *classes, *group, **where;
  gboolean rows, stage_times;
} ValidateFlags;

static void
flags_clear (ValidateFlags *f)
{
  g_free (f->classes);
  g_free (f->group);
  g_strfreev (f->where);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (ValidateFlags, flags_clear)

static gboolean
run (const char *path, const CliCommon *c, const ValidateFlags *f, GError **error)
{
  g_autoptr (CsvTable) t = csv_load (path, error);
  if (t == NULL)
    return FALSE;
  g_autoptr (Store) store = store_new ();
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
