/* clustersim: the command table. Adding a command is a file cmd_NAME.c, its prototype in
 * commands.h, a row in commands below and, when it makes a good first try, one in first_tries. */
#include "cli.h"
#include "commands.h"
#include "json_read.h"
#include "paths.h"
#include "text.h"

#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

/* What a new user can type as it stands; %s is a scenario that ships. The first three of the
 * commands that are there are shown. */
static const struct {
  const char *command, *line;
} first_tries[] = {
    {"predict", "clustersim predict %s"},
    {"plan", "clustersim plan %s --top 5"},
    {"list", "clustersim list gpus"},
    {"explain", "clustersim explain %s"},
    {"campaign", "clustersim campaign llama-3-405b --best"},
};

/* In the order in which --help lists them. */
static const Command commands[] = {
    {"predict", "one training step: time, throughput, MFU, breakdown, memory", cmd_predict_run},
    {"plan", "searches the layouts of a model on a cluster", cmd_plan_run},
    {"sweep", "many predictions: the product of values, one result a line", cmd_sweep_run},
    {"explain", "which numbers, from which source, gave the answer", cmd_explain_run},
    {"validate", "predictions against a table of published measurements", cmd_validate_run},
    {"campaign", "weeks of training with failures: goodput by cause, days, money, energy",
     cmd_campaign_run},
    {"collective", "the nccl-tests table of a cluster, and a measured log beside it",
     cmd_collective_run},
    {"law", "scaling laws: budget to parameters, tokens, loss, days and money", cmd_law_run},
    {"import", "a file you already have into a scenario part", cmd_import_run},
    {"fit", "measurements into a device or fabric profile, with its errors", cmd_fit_run},
    {"report", "one page for a meeting: answer, range, alternatives, pictures, assumptions",
     cmd_report_run},
    {"plot", "a table as one of the standard pictures, through gnuplot", cmd_plot_run},
    {"list", "what ships: gpus, models, fabrics, software, schedules", cmd_list_run},
    {NULL, NULL, NULL},
};

static const Command *
find_command (const char *name)
{
  for (const Command *c = commands; c->name != NULL; c++)
    if (strcmp (c->name, name) == 0)
      return c;
  return NULL;
}

static void
print_first_tries (void)
{
  g_auto (GStrv) scenarios = data_list ("train");
  guint shown = 0;
  for (guint i = 0; i < G_N_ELEMENTS (first_tries) && shown < 3; i++) {
    const char *at = strstr (first_tries[i].line, "%s");
    if (find_command (first_tries[i].command) == NULL || (at != NULL && scenarios[0] == NULL))
      continue;
    if (at == NULL)
      printf ("  %s\n", first_tries[i].line);
    else
      printf ("  %.*s%s%s\n", (int)(at - first_tries[i].line), first_tries[i].line, scenarios[0],
              at + 2);
    shown++;
  }
}

static void
print_overview (void)
{
  puts ("clustersim predicts how the training of large models scales on clusters of GPUs.\n\n"
        "Try:");
  print_first_tries ();
  puts ("\nAll commands: clustersim --help");
}

static void
print_help (void)
{
  puts ("Usage: clustersim COMMAND [OPTION...]\n\nCommands:");
  for (const Command *c = commands; c->name != NULL; c++)
    printf ("  %-11s %s\n", c->name, c->summary);
  puts ("\nclustersim COMMAND --help tells the options of a command. clustersim --version prints "
        "the version.\n"
        "Exit status: 0 done, 1 it could not be done, 2 the call or its input is wrong.\n\nTry:");
  print_first_tries ();
}

static int
unknown_command (const char *name)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (const Command *c = commands; c->name != NULL; c++)
    g_ptr_array_add (names, (gpointer)c->name);
  g_ptr_array_add (names, NULL);
  const char *near = nearest_name (name, (const char *const *)names->pdata);
  g_autofree char *quoted = text_quoted (name);
  return cli_fail (
      g_error_new (CLI_ERROR, CLI_ERROR_USAGE, "unknown %s (found %s; %s%s%ssee clustersim --help)",
                   *name == '-' ? "option" : "command", quoted, near != NULL ? "nearest: " : "",
                   near != NULL ? near : "", near != NULL ? "; " : ""));
}

static int
run_help (int argc, char **argv)
{
  if (argc < 3) {
    print_help ();
    return CLI_DONE;
  }
  const Command *c = find_command (argv[2]);
  char *help_argv[] = {argv[2], (char[]){"--help"}, NULL};
  return c != NULL ? c->run (2, help_argv) : unknown_command (argv[2]);
}

static int
dispatch (int argc, char **argv)
{
  const char *name = argc > 1 ? argv[1] : NULL;
  if (name == NULL) {
    print_overview ();
    return CLI_DONE;
  }
  if (strcmp (name, "--help") == 0 || strcmp (name, "-h") == 0) {
    print_help ();
    return CLI_DONE;
  }
  if (strcmp (name, "--version") == 0 || strcmp (name, "-V") == 0) {
    puts ("clustersim " CLUSTERSIM_VERSION);
    return CLI_DONE;
  }
  if (strcmp (name, "help") == 0)
    return run_help (argc, argv);
  const Command *c = find_command (name);
  return c != NULL ? c->run (argc - 1, argv + 1) : unknown_command (name);
}

int
main (int argc, char **argv)
{
  setlocale (LC_CTYPE, ""); /* not LC_NUMERIC: numbers are the same everywhere */
  g_set_prgname ("clustersim");
  /* Programs of one prediction are used again by the next: keep the memory. */
  mallopt (M_MMAP_THRESHOLD, 1 << 30);
  mallopt (M_TRIM_THRESHOLD, 1 << 30);
  int status = dispatch (argc, argv);
  /* A full disk or a closed pipe is not success. */
  errno = 0;
  if ((fflush (stdout) != 0 || ferror (stdout) != 0) && status == CLI_DONE)
    status = cli_fail (g_error_new (CLI_ERROR, CLI_ERROR_FAILED,
                                    "standard output: cannot be written (%s)",
                                    g_strerror (errno != 0 ? errno : EIO)));
  return status;
}
