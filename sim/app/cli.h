/* cli: what all commands share: the table, the common options, and how an error ends the program.
 *
 * Exit status: 0 done; 1 it could not be done (a file unwritable, a limit reached, gnuplot
 * missing); 2 the call or its input is wrong. Errors are one line on stderr, "clustersim: …", and
 * nothing is on stdout then: a command builds its output first and gives it to cli_output at the
 * end. */
#ifndef CLUSTERSIM_CLI_H
#define CLUSTERSIM_CLI_H

#include <glib.h>

#define CLI_DONE   0
#define CLI_FAILED 1
#define CLI_WRONG  2

typedef struct {
  const char *name, *summary;
  int (*run) (int argc, char **argv); /* argv[0] is the command's name; returns the exit status */
} Command;

#define CLI_ERROR cli_error_quark ()
GQuark cli_error_quark (void);
typedef enum {
  CLI_ERROR_USAGE, /* exit status 2 */
  CLI_ERROR_FAILED /* exit status 1 */
} CliError;

typedef enum { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV } OutputFormat;

/* The common options. Initialise with {0}; free with cli_common_clear. */
typedef struct {
  char **sets; /* "KEY=VALUE", NULL-terminated, or NULL when there are none. --seed N is among them,
                * as run.seed=N, after all others */
  OutputFormat format;
  char *output;   /* -o FILE, or NULL for stdout */
  gboolean quiet; /* no progress and no warnings on stderr */
  gboolean has_seed;
  guint64 seed;
  /* as parsed, before they are checked */
  char *format_name, *seed_text;
} CliCommon;

void cli_common_clear (CliCommon *c);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (CliCommon, cli_common_clear)

/* Parses the options of a command: entries (may be NULL) and the common ones into c. usage: what
 * follows the command's name, "SCENARIO.json"; summary and example are for --help, where example is
 * a whole command line that works. What is left in argv are the arguments: from min_args to
 * max_args of them (max_args -1: any number). TRUE: go on. FALSE with *error NULL: --help was
 * printed, end with CLI_DONE. Else the call is wrong. */
typedef struct {
  const char *usage, *summary, *example;
  int min_args, max_args;
  gboolean no_scenario; /* there are no keys to set: --set is refused */
} CliHelp;
gboolean cli_parse (int *argc, char ***argv, const CliHelp *help, const GOptionEntry *entries,
                    CliCommon *c, GError **error);

/* Prints the error as one line on stderr, frees it and returns the exit status for it. NULL:
 * CLI_DONE. */
int cli_fail (GError *error);

/* What a failed call must end with; never 0. */
int cli_status (const GError *error);

/* Writes text to c->output, or stdout. */
gboolean cli_output (const CliCommon *c, const char *text, gssize len, GError **error);

#endif
