/* Runs a script as far as it tells what is launched: blanks, simple commands, control flow. */
#include <string.h>

#include "shell_priv.h"

#define STEPS_MAX    200000u
#define COMMANDS_MAX 10000u
#define TURNS_MAX    64

static int run_and_or (Shell *sh, gboolean exec);

/* ---- blanks ---- */

static void
skip_comment (Shell *sh)
{
  while (*sh->p != '\0' && *sh->p != '\n')
    sh->p++;
}

/* Blanks inside a line, and lines that go on. */
static void
skip_blanks (Shell *sh)
{
  for (;;) {
    if (*sh->p != '\n' && g_ascii_isspace (*sh->p)) /* a form feed too: it ends words */
      sh->p++;
    else if (*sh->p == '\\' && sh->p[1] == '\n') {
      sh->p += 2;
      sh->line++;
    } else
      return;
  }
}

void
shell_skip_lines (Shell *sh)
{
  for (;;) {
    skip_blanks (sh);
    if (*sh->p == '#')
      skip_comment (sh);
    else if (*sh->p == '\n') {
      sh->p++;
      sh->line++;
    } else
      return;
  }
}

static void
skip_separators (Shell *sh)
{
  for (;;) {
    shell_skip_lines (sh);
    if ((*sh->p == ';' && sh->p[1] != ';') || (*sh->p == '&' && sh->p[1] != '&'))
      sh->p++;
    else
      return;
  }
}

static gboolean
at_word (const Shell *sh, const char *word)
{
  gsize n = strlen (word);
  return strncmp (sh->p, word, n) == 0 &&
         (sh->p[n] == '\0' || g_ascii_isspace (sh->p[n]) || strchr (";&|()", sh->p[n]) != NULL);
}

static gboolean
take_word (Shell *sh, const char *word)
{
  skip_separators (sh);
  if (!at_word (sh, word)) {
    g_autofree char *what = g_strdup_printf ("'%s' is missing", word);
    shell_fail (sh, what);
    return FALSE;
  }
  sh->p += strlen (word);
  return TRUE;
}

/* ---- simple commands ---- */

/* [[ … ]], where && and < are words. */
static int
run_brackets (Shell *sh, gboolean exec)
{
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
  sh->p += 2;
  while (sh->error == NULL) {
    shell_skip_lines (sh);
    if (at_word (sh, "]]"))
      break;
    if (*sh->p == '\0') {
      shell_fail (sh, "']]' is missing");
      return 1;
    }
    gsize n = strspn (sh->p, "&|()<>;");
    if (n > 0) {
      n = *sh->p == '(' || *sh->p == ')' ? 1 : n;
      g_ptr_array_add (words, g_strndup (sh->p, n));
      sh->p += n;
    } else
      shell_word (sh, FALSE, words);
  }
  sh->p += sh->error == NULL ? 2 : 0;
  return exec ? shell_test (words, TRUE) : 1;
}

static void
skip_here_document (Shell *sh, const char *end)
{
  gsize n = strlen (end);
  skip_comment (sh); /* the rest of the line */
  while (*sh->p == '\n') {
    const char *line = ++sh->p;
    sh->line++;
    while (*line == '\t')
      line++;
    skip_comment (sh);
    gsize len = (gsize)(sh->p - line);
    if (len == n && strncmp (line, end, n) == 0)
      return;
  }
}

/* p is at a redirection. Returns the end of a here document that begins on this line, or NULL. */
static char *
skip_redirection (Shell *sh)
{
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
  gboolean here = g_str_has_prefix (sh->p, "<<") && sh->p[2] != '<';
  while (g_ascii_isdigit (*sh->p))
    sh->p++;
  while (*sh->p != '\0' && strchr ("<>&|-", *sh->p) != NULL)
    sh->p++;
  skip_blanks (sh);
  if (*sh->p == '(') { /* <(command) */
    sh->p++;
    static const char *const stops[] = {NULL};
    shell_run_list (sh, FALSE, stops);
    sh->p += *sh->p == ')' ? 1 : 0;
    return NULL;
  }
  shell_word (sh, FALSE, words);
  return here && words->len > 0 ? g_strdup (g_ptr_array_index (words, 0)) : NULL;
}

static gboolean
at_redirection (const Shell *sh)
{
  const char *p = sh->p;
  if (*p == '&')
    return p[1] == '>';
  while (g_ascii_isdigit (*p))
    p++;
  return *p == '<' || *p == '>';
}

static void
shift (Shell *sh, const GPtrArray *words)
{
  guint64 n = words->len > 1 ? g_ascii_strtoull (g_ptr_array_index (words, 1), NULL, 10) : 1;
  g_ptr_array_remove_range (sh->positional, 0, (guint)MIN (n, sh->positional->len));
}

static void
set_positional (Shell *sh, const GPtrArray *words)
{
  if (words->len < 2 || strcmp (g_ptr_array_index (words, 1), "--") != 0)
    return;
  g_ptr_array_set_size (sh->positional, 0);
  for (guint i = 2; i < words->len; i++)
    g_ptr_array_add (sh->positional, g_strdup (g_ptr_array_index (words, i)));
}

/* Takes env and words. */
static int
run_words (Shell *sh, guint line, GPtrArray *env, GPtrArray *words)
{
  static const char *const quiet[] = {
      "echo",  "printf", "mkdir", "cd",   "source", ".",    "exit",   "return", "rm", "cp",
      "chmod", "touch",  "sleep", "wait", "unset",  "trap", "ulimit", "true",   ":",  NULL};
  const char *w = g_ptr_array_index (words, 0);
  int status = 0;
  if (strcmp (w, "[") == 0 || strcmp (w, "test") == 0) {
    g_ptr_array_remove_index (words, 0);
    if (words->len > 0 && strcmp (g_ptr_array_index (words, words->len - 1), "]") == 0)
      g_ptr_array_remove_index (words, words->len - 1);
    status = shell_test (words, FALSE);
  } else if (strcmp (w, "false") == 0) {
    status = 1;
  } else if (strcmp (w, "shift") == 0) {
    shift (sh, words);
  } else if (strcmp (w, "set") == 0) {
    set_positional (sh, words);
  } else if (!g_strv_contains (quiet, w) && sh->commands->len < COMMANDS_MAX) {
    ShellCommand *c = g_new0 (ShellCommand, 1);
    *c = (ShellCommand){.line = line, .env = env, .words = words};
    g_ptr_array_add (sh->commands, c);
    return 0;
  }
  g_ptr_array_unref (env);
  g_ptr_array_unref (words);
  return status;
}

static int
run_simple (Shell *sh, gboolean exec)
{
  static const char *const declare[] = {"export", "local", "declare", "readonly", "typeset", NULL};
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  GPtrArray *env = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *here = NULL;
  gboolean declares = FALSE;
  guint line = sh->line;
  for (skip_blanks (sh); sh->error == NULL; skip_blanks (sh)) {
    gboolean append = FALSE;
    gsize n = words->len == 0 || declares ? shell_assigned_name (sh->p, &append) : 0;
    if (at_redirection (sh)) {
      char *end = skip_redirection (sh);
      if (end != NULL) {
        g_free (here);
        here = end;
      }
    } else if (*sh->p == '\0' || strchr ("\n;&|)", *sh->p) != NULL || *sh->p == '#') {
      break;
    } else if (n > 0) {
      shell_read_assignment (sh, n, append, exec, declares ? NULL : env);
    } else if (*sh->p == '(') {
      break;
    } else {
      shell_word (sh, TRUE, words);
      declares = declares || (words->len == 1 && g_strv_contains (declare, words->pdata[0]));
    }
  }
  if (*sh->p == '(' && words->len == 1 && sh->p[1] == ')') { /* NAME () { … }: defined, not run */
    sh->p += 2;
    shell_skip_lines (sh);
    exec = FALSE;
    run_and_or (sh, FALSE);
  } else if (*sh->p == '(') {
    shell_fail (sh, "'(' where no command begins");
  }
  if (here != NULL)
    skip_here_document (sh, here);
  if (exec && sh->error == NULL && words->len > 0 && !declares)
    return run_words (sh, line, env, words);
  g_ptr_array_unref (words);
  g_ptr_array_unref (env);
  return 0;
}

/* ---- control flow ---- */

static int
run_if (Shell *sh, gboolean exec)
{
  static const char *const then[] = {"then", NULL}, *const ends[] = {"elif", "else", "fi", NULL};
  gboolean open = exec; /* no branch was taken yet */
  int status = 0;
  sh->p += 2;
  for (;;) {
    gboolean taken = shell_run_list (sh, open, then) == 0 && open;
    if (!take_word (sh, "then"))
      return 1;
    int inner = shell_run_list (sh, taken, ends);
    status = taken ? inner : status;
    open = open && !taken;
    skip_separators (sh);
    if (!at_word (sh, "elif"))
      break;
    sh->p += strlen ("elif");
  }
  if (at_word (sh, "else")) {
    sh->p += strlen ("else");
    shell_run_list (sh, open, ends);
  }
  take_word (sh, "fi");
  return status;
}

static int
run_while (Shell *sh, gboolean exec, gboolean until)
{
  static const char *const go[] = {"do", NULL}, *const ends[] = {"done", NULL};
  sh->p += strlen (until ? "until" : "while");
  const char *start = sh->p;
  guint line = sh->line;
  for (int turn = 0; sh->error == NULL; turn++) {
    gboolean on = exec && turn < TURNS_MAX;
    int status = shell_run_list (sh, on, go);
    on = on && (status == 0) != until;
    if (!take_word (sh, "do"))
      return 1;
    shell_run_list (sh, on, ends);
    if (!take_word (sh, "done") || !on)
      break;
    sh->p = start;
    sh->line = line;
  }
  return 0;
}

static int
run_for (Shell *sh, gboolean exec)
{
  static const char *const ends[] = {"done", NULL};
  g_autoptr (GPtrArray) items = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) name = g_ptr_array_new_with_free_func (g_free);
  sh->p += strlen ("for");
  skip_blanks (sh);
  if (*sh->p == '(') { /* for ((;;)): not followed */
    while (*sh->p != '\0' && !at_word (sh, "do"))
      sh->line += *sh->p++ == '\n' ? 1 : 0;
    exec = FALSE;
  } else {
    shell_word (sh, FALSE, name);
    shell_skip_lines (sh);
    if (at_word (sh, "in"))
      sh->p += 2;
    for (skip_blanks (sh); *sh->p != '\0' && strchr ("\n;", *sh->p) == NULL && sh->error == NULL;
         skip_blanks (sh)) {
      const char *before = sh->p;
      shell_word (sh, TRUE, items);
      if (sh->p == before) /* a bracket or &, which is no word */
        shell_fail (sh, "cannot be followed");
    }
  }
  if (!take_word (sh, "do"))
    return 1;
  const char *start = sh->p;
  guint line = sh->line;
  for (guint i = 0; i == 0 || (exec && i < MIN (items->len, TURNS_MAX)); i++) {
    gboolean on = exec && i < items->len;
    sh->p = start;
    sh->line = line;
    if (on && name->len > 0)
      shell_set (sh, g_ptr_array_index (name, 0), shell_list_of (g_ptr_array_index (items, i)));
    shell_run_list (sh, on, ends);
  }
  take_word (sh, "done");
  return 0;
}

static int
run_case (Shell *sh, gboolean exec)
{
  static const char *const ends[] = {"esac", NULL};
  g_autoptr (GPtrArray) word = g_ptr_array_new_with_free_func (g_free);
  gboolean open = exec;
  sh->p += strlen ("case");
  skip_blanks (sh);
  shell_word (sh, FALSE, word);
  if (!take_word (sh, "in") || word->len == 0)
    return 1;
  g_autofree char *value = shell_plain (g_ptr_array_index (word, 0));
  while (sh->error == NULL) {
    gboolean match = FALSE;
    skip_separators (sh);
    if (at_word (sh, "esac") || *sh->p == '\0')
      break;
    sh->p += *sh->p == '(' ? 1 : 0;
    while (*sh->p != ')' && *sh->p != '\0' && sh->error == NULL) {
      g_autoptr (GPtrArray) pattern = g_ptr_array_new_with_free_func (g_free);
      const char *before = sh->p;
      skip_blanks (sh);
      shell_word (sh, FALSE, pattern);
      match = match ||
              (pattern->len > 0 && g_pattern_match_simple (g_ptr_array_index (pattern, 0), value));
      skip_blanks (sh);
      sh->p += *sh->p == '|' ? 1 : 0;
      if (sh->p == before)
        shell_fail (sh, "a pattern of case is not closed");
    }
    sh->p += *sh->p == ')' ? 1 : 0;
    shell_run_list (sh, open && match, ends);
    open = open && !match;
    shell_skip_lines (sh);
    if (g_str_has_prefix (sh->p, ";;"))
      sh->p += 2;
  }
  take_word (sh, "esac");
  return 0;
}

static int
run_group (Shell *sh, gboolean exec, char close)
{
  static const char *const brace[] = {"}", NULL}, *const none[] = {NULL};
  sh->p++;
  int status = shell_run_list (sh, exec, close == '}' ? brace : none);
  skip_separators (sh);
  if (*sh->p == close)
    sh->p++;
  else
    shell_fail (sh, "a group of commands is not closed");
  return status;
}

static int
run_command (Shell *sh, gboolean exec)
{
  int status;
  if (++sh->steps > STEPS_MAX || ++sh->depth > 100) {
    shell_fail (sh, "too long or too deep to follow");
    return 1;
  }
  skip_blanks (sh);
  if (at_word (sh, "if"))
    status = run_if (sh, exec);
  else if (at_word (sh, "while"))
    status = run_while (sh, exec, FALSE);
  else if (at_word (sh, "until"))
    status = run_while (sh, exec, TRUE);
  else if (at_word (sh, "for"))
    status = run_for (sh, exec);
  else if (at_word (sh, "case"))
    status = run_case (sh, exec);
  else if (at_word (sh, "[["))
    status = run_brackets (sh, exec);
  else if (at_word (sh, "function")) {
    sh->p += strlen ("function");
    skip_blanks (sh);
    while (*sh->p != '\0' && *sh->p != '{' && *sh->p != '\n')
      sh->p++;
    shell_skip_lines (sh);
    status = run_command (sh, FALSE);
  } else if (at_word (sh, "{"))
    status = run_group (sh, exec, '}');
  else if (*sh->p == '(')
    status = run_group (sh, exec, ')');
  else
    status = run_simple (sh, exec);
  sh->depth--;
  for (skip_blanks (sh); sh->error == NULL && at_redirection (sh); skip_blanks (sh)) {
    g_autofree char *here = skip_redirection (sh);
    if (here != NULL)
      skip_here_document (sh, here);
  }
  return status;
}

static int
run_pipeline (Shell *sh, gboolean exec)
{
  gboolean not = FALSE;
  skip_blanks (sh);
  if (*sh->p == '!' && g_ascii_isspace (sh->p[1])) {
    not = TRUE;
    sh->p++;
  }
  int status = run_command (sh, exec);
  while (sh->error == NULL && *sh->p == '|' && sh->p[1] != '|') {
    sh->p += sh->p[1] == '&' ? 2 : 1;
    shell_skip_lines (sh);
    status = run_command (sh, exec);
  }
  return not ? status == 0 : status;
}

static int
run_and_or (Shell *sh, gboolean exec)
{
  int status = run_pipeline (sh, exec);
  for (skip_blanks (sh); sh->error == NULL; skip_blanks (sh)) {
    gboolean and = g_str_has_prefix (sh->p, "&&");
    if (!and&&!g_str_has_prefix (sh->p, "||"))
      break;
    sh->p += 2;
    shell_skip_lines (sh);
    gboolean go = exec && (status == 0) == and;
    int next = run_pipeline (sh, go);
    status = go ? next : status;
  }
  return status;
}

/* Up to one of the words stops, a closing bracket or ;;, which are left. */
int
shell_run_list (Shell *sh, gboolean exec, const char *const *stops)
{
  int status = 0;
  while (sh->error == NULL) {
    skip_separators (sh);
    if (*sh->p == '\0' || *sh->p == ')' || g_str_has_prefix (sh->p, ";;"))
      return status;
    for (gsize i = 0; stops[i] != NULL; i++)
      if (at_word (sh, stops[i]))
        return status;
    const char *before = sh->p;
    status = run_and_or (sh, exec);
    if (sh->p == before)
      shell_fail (sh, "cannot be followed");
  }
  return status;
}
