/* shell_words: what the commands of a launch script would be, without running any of them.
 *
 * Understands what launch scripts use: variables, arrays, ${V}, ${V:-default}, ${V[@]}, quotes,
 * $((arithmetic)), #SBATCH --nodes, if and case and while and for with tests of strings and
 * numbers, here documents, pipes and redirections. Files are taken to be there, other commands to
 * succeed, and exit to be for those who run the script. What only running would tell (unset
 * variables, command substitution, operators like ${V%x}) becomes a mark that names it:
 * \x01NAME\x02. Nothing is executed, read or written.
 */
#ifndef CLUSTERSIM_SHELL_WORDS_H
#define CLUSTERSIM_SHELL_WORDS_H

#include <glib.h>

#define SHELL_MARK     '\x01'
#define SHELL_MARK_END '\x02'

typedef struct {
  guint line;        /* 0: not known */
  gboolean variable; /* no command: the value of a variable, after all commands */
  GPtrArray *env;    /* char* "NAME=VALUE" before the command */
  GPtrArray *words;  /* char*, after expansion and splitting */
} ShellCommand;

/* Commands in the order in which they would run, at most 10,000 (ShellCommand*, owned). given:
 * NULL-terminated; "NAME=VALUE" sets a variable that the script does not change, "an-option=VALUE"
 * is left to the caller, anything else is the next positional parameter. Errors: CLI_ERROR_USAGE,
 * "NAME:LINE: …", for text that is no shell. */
GPtrArray *shell_commands (const char *name, const char *text, const char *const *given,
                           GError **error);

/* Splits text that became one word (the string of bash -c) into words; newly allocated array of
 * char*. */
GPtrArray *shell_split (const char *text);

/* The name in the first mark of a word, newly allocated, or NULL. */
char *shell_unknown (const char *word);

/* ${NAME} and ${NAME:-default} in text by the given "NAME=VALUE"; newly allocated. */
char *shell_expand (const char *text, const char *const *given);

#endif
