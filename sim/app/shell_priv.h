/* shell_priv: what the files shell_*.c share. */
#ifndef CLUSTERSIM_SHELL_PRIV_H
#define CLUSTERSIM_SHELL_PRIV_H

#include "shell_words.h"

typedef struct {
  const char *name, *p; /* file; next character */
  guint line, depth;
  GHashTable *vars;      /* name → GPtrArray* of char*; looked up only */
  GHashTable *fixed;     /* names that the script does not change */
  GPtrArray *positional; /* char* */
  GPtrArray *commands;   /* ShellCommand* */
  GPtrArray *set_order;  /* char*: names in the order in which they were first set */
  guint steps;
  GError *error;
} Shell;

/* One word at sh->p becomes fields (appended, char*). split: unquoted expansions are split at
 * blanks; else exactly one field. */
void shell_word (Shell *sh, gboolean split, GPtrArray *fields);

/* Sets sh->error, once, at the current line. */
void shell_fail (Shell *sh, const char *what);

const GPtrArray *shell_get (const Shell *sh, const char *name);  /* NULL: unset */
void shell_set (Shell *sh, const char *name, GPtrArray *values); /* takes values */
GPtrArray *shell_list_of (const char *text); /* of that one text; the caller's */

/* Integer arithmetic; a text with a mark, or that is none, gives a mark. Newly allocated. */
char *shell_arithmetic (Shell *sh, const char *text);
char *shell_mark (const char *what);

/* ---- shell_test.c ---- */
/* The text of a word without its marks; newly allocated. */
char *shell_plain (const char *word);
/* The status of [ … ] or [[ … ]] (pattern); words without the brackets. */
int shell_test (const GPtrArray *words, gboolean pattern);
/* The length of NAME in "NAME=" or "NAME+=", or 0. */
gsize shell_assigned_name (const char *p, gboolean *append);
/* p is at NAME=. exec: the variable is set; env: and noted there. */
void shell_read_assignment (Shell *sh, gsize n, gboolean append, gboolean exec, GPtrArray *env);
GPtrArray *shell_copy_list (const GPtrArray *from); /* NULL: empty */

/* ---- shell_run.c ---- */
void shell_skip_lines (Shell *sh); /* blanks, comments and line ends */
/* Up to one of the words stops (NULL-terminated), a closing bracket or ;;, which are left. exec
 * FALSE: only read over. The status of the last command. */
int shell_run_list (Shell *sh, gboolean exec, const char *const *stops);

#endif
