/* Common options, exit status. */
#include "cli.h"
#include "engine.h"
#include "fileio.h"
#include "json_read.h"
#include "trace.h"

#include <string.h>

static const CliHelp one_argument = {
    "SCENARIO.json", "Does a thing.", "clustersim thing a.json", 1, 1, FALSE};

/* Parses a command line split at blanks. *argc and what is left go to the caller by out. */
static gboolean
parse (const char *line, CliCommon *c, const GOptionEntry *entries, char **left, GError **error)
{
  g_auto (GStrv) words = g_strsplit (line, " ", -1);
  int argc = (int)g_strv_length (words);
  /* GLib moves and drops pointers in argv: keep the array of the words apart. */
  g_autofree char **argv = g_memdup2 (words, (gsize)(argc + 1) * sizeof *words);
  gboolean ok = cli_parse (&argc, &argv, &one_argument, entries, c, error);
  if (left != NULL)
    *left = ok ? g_strdup (argv[1]) : NULL;
  return ok;
}

static void
test_good (void)
{
  g_autoptr (GError) error = NULL;
  g_auto (CliCommon) c = {0};
  g_autofree char *left = NULL;
  int top = 0;
  const GOptionEntry entries[] = {{"top", 0, 0, G_OPTION_ARG_INT, &top, "How many", "N"},
                                  G_OPTION_ENTRY_NULL};
  g_assert_true (parse ("thing --set a.b=1 --format json a.json -o out.json --seed 7 --top 3 "
                        "--set c==x --quiet",
                        &c, entries, &left, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (left, ==, "a.json");
  g_assert_cmpint (c.format, ==, FORMAT_JSON);
  g_assert_cmpstr (c.output, ==, "out.json");
  g_assert_true (c.quiet);
  g_assert_true (c.has_seed);
  g_assert_cmpuint (c.seed, ==, 7);
  g_assert_cmpint (top, ==, 3);
  g_assert_cmpstr (c.sets[0], ==, "a.b=1");
  g_assert_cmpstr (c.sets[1], ==, "c==x");
  g_assert_cmpstr (c.sets[2], ==, "run.seed=7");
  g_assert_null (c.sets[3]);

  g_auto (CliCommon) d = {0};
  g_autofree char *dash = NULL;
  g_assert_true (parse ("thing -- -odd.json", &d, NULL, &dash, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (dash, ==, "-odd.json");
  g_assert_null (d.sets);
  g_assert_cmpint (d.format, ==, FORMAT_TEXT);
  g_assert_false (d.has_seed);
}

static void
test_bad (void)
{
  static const char *const cases[][2] = {
      {"thing",
       "thing: an argument is missing (usage: clustersim thing [OPTION...] SCENARIO.json)"},
      {"thing a b", "thing: one argument too many (found \"b\";"},
      {"thing a --format xml", "--format: unknown name (found \"xml\"; allowed: text, json, csv)"},
      {"thing a --seed -1", "--seed: not a seed (found \"-1\""},
      {"thing a --seed 1e3", "--seed: not a seed"},
      {"thing a --seed 99999999999999999999", "--seed: not a seed"},
      {"thing a --nothing", "Unknown option --nothing"},
      {"thing a --set", "Missing argument for --set"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_auto (CliCommon) c = {0};
    g_assert_false (parse (cases[i][0], &c, NULL, NULL, &error));
    g_assert_nonnull (error);
    if (!g_str_has_prefix (error->message, cases[i][1]))
      g_test_message ("%s", error->message);
    g_assert_true (g_str_has_prefix (error->message, cases[i][1]));
    g_assert_cmpint (cli_status (error), ==, CLI_WRONG);
  }
}

static void
test_help (void)
{
  if (g_test_subprocess ()) {
    g_autoptr (GError) error = NULL;
    g_auto (CliCommon) c = {0};
    g_assert_false (parse ("thing --set x --help", &c, NULL, NULL, &error));
    g_assert_no_error (error);
    return;
  }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_passed ();
  g_test_trap_assert_stdout ("*Usage:*clustersim thing*SCENARIO.json*Does a thing.*--set=KEY=VALUE*"
                             "--format=FORMAT*--output=FILE*--seed=N*--quiet*Example:*"
                             "clustersim thing a.json*");
}

static void
test_status (void)
{
  const struct {
    GQuark domain;
    int code, status;
  } cases[] = {
      {JSON_ERROR, JSON_ERROR_FILE, CLI_WRONG},
      {JSON_ERROR, JSON_ERROR_RANGE, CLI_WRONG},
      {FILEIO_ERROR, FILEIO_ERROR_OPEN, CLI_FAILED},
      {FILEIO_ERROR, FILEIO_ERROR_WRITE, CLI_FAILED},
      {SIM_ERROR, SIM_ERROR_LIMIT, CLI_FAILED},
      {CLI_ERROR, CLI_ERROR_USAGE, CLI_WRONG},
      {CLI_ERROR, CLI_ERROR_FAILED, CLI_FAILED},
      {G_OPTION_ERROR, 0, CLI_WRONG},
      {TRACE_ERROR, TRACE_ERROR_FILE, CLI_FAILED},
      {TRACE_ERROR, TRACE_ERROR_OPTION, CLI_WRONG},
      {G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT, CLI_FAILED},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GError error = {cases[i].domain, cases[i].code, (char[]){"x"}};
    g_assert_cmpint (cli_status (&error), ==, cases[i].status);
  }
  g_assert_cmpint (cli_fail (NULL), ==, CLI_DONE);
}

static void
test_fail_line (void)
{
  if (g_test_subprocess ()) {
    g_assert_cmpint (cli_fail (g_error_new (CLI_ERROR, CLI_ERROR_FAILED, "two\nlines \033[1m")), ==,
                     1);
    return;
  }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_passed ();
  g_test_trap_assert_stderr ("*clustersim: two\\nlines \\u001b?1m\n*");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/cli/good", test_good);
  g_test_add_func ("/cli/bad", test_bad);
  g_test_add_func ("/cli/help", test_help);
  g_test_add_func ("/cli/status", test_status);
  g_test_add_func ("/cli/fail-line", test_fail_line);
  return g_test_run ();
}
