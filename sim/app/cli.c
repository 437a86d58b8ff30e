#include "cli.h"
#include "engine.h"
#include "fileio.h"
#include "json_read.h"
#include "text.h"
#include "trace.h"

#include <stdio.h>
#include <string.h>

G_DEFINE_QUARK (clustersim_cli_error, cli_error)

static const char *const format_names[] = {"text", "json", "csv", NULL};

/* ---- options ---- */

void
cli_common_clear (CliCommon *c)
{
  g_strfreev (c->sets);
  g_free (c->output);
  g_free (c->format_name);
  g_free (c->seed_text);
  memset (c, 0, sizeof *c);
}

static gboolean usage_fail (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
usage_fail (GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error_literal (error, CLI_ERROR, CLI_ERROR_USAGE, message);
  return FALSE;
}

static gboolean
check_format (CliCommon *c, GError **error)
{
  if (c->format_name == NULL)
    return TRUE;
  for (int i = 0; format_names[i] != NULL; i++)
    if (strcmp (c->format_name, format_names[i]) == 0) {
      c->format = (OutputFormat)i;
      return TRUE;
    }
  g_autofree char *quoted = text_quoted (c->format_name);
  return usage_fail (error, "--format: unknown name (found %s; allowed: text, json, csv)", quoted);
}

static gboolean
check_seed (CliCommon *c, GError **error)
{
  /* Seeds are keys of the scenario too, and numbers in JSON are exact up to here. */
  static const guint64 max = G_GUINT64_CONSTANT (9007199254740991);
  if (c->seed_text == NULL)
    return TRUE;
  if (!g_ascii_string_to_unsigned (c->seed_text, 10, 0, max, &c->seed, NULL)) {
    g_autofree char *quoted = text_quoted (c->seed_text);
    return usage_fail (error, "--seed: not a seed (found %s; allowed: 0 to 9007199254740991)",
                       quoted);
  }
  c->has_seed = TRUE;
  g_autoptr (GStrvBuilder) sets = g_strv_builder_new ();
  if (c->sets != NULL)
    g_strv_builder_addv (sets, (const char **)c->sets);
  g_autofree char *seed = g_strdup_printf ("run.seed=%" G_GUINT64_FORMAT, c->seed);
  g_strv_builder_add (sets, seed);
  g_strfreev (c->sets);
  c->sets = g_strv_builder_end (sets);
  return TRUE;
}

static gboolean
check_sets (const CliCommon *c, const char *command, const CliHelp *help, GError **error)
{
  if (!help->no_scenario || c->sets == NULL)
    return TRUE;
  g_autofree char *quoted = text_quoted (c->sets[0]);
  return usage_fail (error,
                     "--set: %s takes no scenario whose keys could be set (found %s; allowed: no "
                     "--set)",
                     command, quoted);
}

static gboolean
check_arguments (int argc, char **argv, const CliHelp *help, GError **error)
{
  int n = argc - 1;
  if (n >= help->min_args && (help->max_args < 0 || n <= help->max_args))
    return TRUE;
  if (n < help->min_args)
    return usage_fail (error, "%s: an argument is missing (usage: clustersim %s [OPTION...] %s)",
                       argv[0], argv[0], help->usage);
  g_autofree char *quoted = text_quoted (argv[help->max_args + 1]);
  return usage_fail (error,
                     "%s: one argument too many (found %s; usage: clustersim %s [OPTION...] %s)",
                     argv[0], quoted, argv[0], help->usage);
}

/* Takes --help or -h, when it is there before "--". */
static gboolean
asks_for_help (int argc, char **argv)
{
  for (int i = 1; i < argc && strcmp (argv[i], "--") != 0; i++)
    if (strcmp (argv[i], "--help") == 0 || strcmp (argv[i], "-h") == 0)
      return TRUE;
  return FALSE;
}

/* The name of the program in "Usage:" is g_get_prgname's: "clustersim predict". */
static void
print_help (GOptionContext *context, const char *command)
{
  g_autofree char *was = g_strdup (g_get_prgname ());
  g_autofree char *name = g_strconcat ("clustersim ", command, NULL);
  g_set_prgname (name);
  g_autofree char *text = g_option_context_get_help (context, FALSE, NULL);
  g_set_prgname (was);
  fputs (text, stdout);
}

gboolean
cli_parse (int *argc, char ***argv, const CliHelp *help, const GOptionEntry *entries, CliCommon *c,
           GError **error)
{
  g_autoptr (GOptionContext) context = g_option_context_new (help->usage);
  g_autofree char *example = g_strdup_printf ("Example:\n  %s", help->example);
  g_option_context_set_summary (context, help->summary);
  g_option_context_set_description (context, example);
  g_option_context_set_help_enabled (context, FALSE); /* it would call exit() */
  /* One list of options: a user does not care which are common. FILENAME: bytes as they were typed,
   * whatever the locale; the JSON layer checks that they are UTF-8. */
  const GOptionEntry common[] = {
      {"set", 0, help->no_scenario ? G_OPTION_FLAG_HIDDEN : 0, G_OPTION_ARG_FILENAME_ARRAY,
       &c->sets, "Set a key of the scenario by its path; may be repeated", "KEY=VALUE"},
      {"format", 0, 0, G_OPTION_ARG_STRING, &c->format_name, "text (default), json or csv",
       "FORMAT"},
      {"output", 'o', 0, G_OPTION_ARG_FILENAME, &c->output,
       "Write to FILE instead of standard output", "FILE"},
      {"seed", 0, 0, G_OPTION_ARG_STRING, &c->seed_text, "Seed of random numbers (run.seed)", "N"},
      {"quiet", 'q', 0, G_OPTION_ARG_NONE, &c->quiet, "No progress and no warnings", NULL},
      G_OPTION_ENTRY_NULL};
  if (entries != NULL)
    g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_add_main_entries (context, common, NULL);
  if (asks_for_help (*argc, *argv)) {
    print_help (context, (*argv)[0]);
    return FALSE;
  }
  if (!g_option_context_parse (context, argc, argv, error))
    return FALSE;
  if (*argc > 1 && strcmp ((*argv)[1], "--") == 0) { /* GLib leaves it there */
    for (int i = 1; i + 1 < *argc; i++)
      (*argv)[i] = (*argv)[i + 1];
    --*argc;
  }
  return check_format (c, error) && check_sets (c, (*argv)[0], help, error) &&
         check_seed (c, error) && check_arguments (*argc, *argv, help, error);
}

/* ---- errors and output ---- */

int
cli_status (const GError *error)
{
  if (error->domain == CLI_ERROR)
    return error->code == CLI_ERROR_FAILED ? CLI_FAILED : CLI_WRONG;
  /* What cannot be done though the call is right: files, other programs, limits of a run. */
  gboolean failed = error->domain == FILEIO_ERROR || error->domain == SIM_ERROR ||
                    error->domain == G_SPAWN_ERROR || error->domain == G_SPAWN_EXIT_ERROR ||
                    error->domain == G_FILE_ERROR ||
                    (error->domain == TRACE_ERROR && error->code != TRACE_ERROR_OPTION);
  return failed ? CLI_FAILED : CLI_WRONG;
}

int
cli_fail (GError *error)
{
  if (error == NULL)
    return CLI_DONE;
  int status = cli_status (error);
  g_autofree char *line = text_printable (error->message, -1, G_MAXSIZE);
  fprintf (stderr, "clustersim: %s\n", line);
  g_error_free (error);
  return status;
}

gboolean
cli_output (const CliCommon *c, const char *text, gssize len, GError **error)
{
  return output_write (c->output, text, len, error);
}
