/* Commands of a shell script: variables, and what is asked of it. Running it is in shell_run.c,
 * words are in shell_expand.c, tests and assignments in shell_test.c. */
#include "shell_words.h"

#include <string.h>

#include "cli.h"
#include "shell_priv.h"

void
shell_fail (Shell *sh, const char *what)
{
  if (sh->error == NULL)
    sh->error = g_error_new (CLI_ERROR, CLI_ERROR_USAGE, "%s:%u: %s", sh->name, sh->line, what);
}

/* ---- variables ---- */

static void
list_free (gpointer p)
{
  g_ptr_array_unref (p);
}

const GPtrArray *
shell_get (const Shell *sh, const char *name)
{
  return g_hash_table_lookup (sh->vars, name);
}

void
shell_set (Shell *sh, const char *name, GPtrArray *values)
{
  if (g_hash_table_contains (sh->fixed, name)) {
    g_ptr_array_unref (values);
    return;
  }
  if (!g_hash_table_contains (sh->vars, name))
    g_ptr_array_add (sh->set_order, g_strdup (name));
  g_hash_table_insert (sh->vars, g_strdup (name), values);
}

GPtrArray *
shell_list_of (const char *text)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (list, g_strdup (text));
  return list;
}

/* ---- entry ---- */

static void
command_free (gpointer p)
{
  ShellCommand *c = p;
  g_ptr_array_unref (c->env);
  g_ptr_array_unref (c->words);
  g_free (c);
}

/* What Slurm would set from the lines "#SBATCH --nodes=N". */
static void
read_sbatch (Shell *sh, const char *text)
{
  static const struct {
    const char *option, *variable;
  } known[] = {{"--nodes=", "SLURM_NNODES"},
               {"--nodes ", "SLURM_NNODES"},
               {"-N ", "SLURM_NNODES"},
               {"--gpus-per-node=", "SLURM_GPUS_PER_NODE"},
               {"--gres=gpu:", "SLURM_GPUS_PER_NODE"},
               {"--ntasks-per-node=", "SLURM_NTASKS_PER_NODE"}};
  for (const char *at = text; (at = strstr (at, "#SBATCH ")) != NULL;) {
    at += strlen ("#SBATCH ");
    for (guint i = 0; i < G_N_ELEMENTS (known); i++) {
      if (!g_str_has_prefix (at, known[i].option))
        continue;
      const char *value = at + strlen (known[i].option);
      gsize n = strspn (value, "0123456789");
      g_autofree char *digits = g_strndup (value, n);
      if (n > 0)
        shell_set (sh, known[i].variable, shell_list_of (digits));
    }
  }
  const GPtrArray *nodes = shell_get (sh, "SLURM_NNODES");
  if (nodes != NULL)
    shell_set (sh, "SLURM_JOB_NUM_NODES", shell_copy_list (nodes));
}

static void
give (Shell *sh, const char *const *given)
{
  for (gsize i = 0; given != NULL && given[i] != NULL; i++) {
    gboolean append = FALSE;
    gsize n = shell_assigned_name (given[i], &append);
    gsize word = strspn (given[i], G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "-._");
    if (n == 0 && word > 0 && given[i][word] == '=')
      continue; /* micro-batch-size=1: an argument, which is the caller's matter */
    if (n == 0) {
      g_ptr_array_add (sh->positional, g_strdup (given[i]));
      continue;
    }
    char *name = g_strndup (given[i], n);
    shell_set (sh, name, shell_list_of (given[i] + n + 1));
    g_hash_table_add (sh->fixed, name);
  }
}

static void
shell_init (Shell *sh, const char *name, const char *text)
{
  *sh = (Shell){.name = name, .p = text, .line = 1};
  sh->vars = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, list_free);
  sh->fixed = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  sh->positional = g_ptr_array_new_with_free_func (g_free);
  sh->commands = g_ptr_array_new_with_free_func (command_free);
  sh->set_order = g_ptr_array_new_with_free_func (g_free);
}

static void
shell_clear (Shell *sh)
{
  g_hash_table_unref (sh->vars);
  g_hash_table_unref (sh->fixed);
  g_ptr_array_unref (sh->positional);
  g_ptr_array_unref (sh->set_order);
  g_clear_pointer (&sh->commands, g_ptr_array_unref);
  g_clear_error (&sh->error);
}

/* The variables, for scripts that leave the launch to another file. */
static void
add_variables (Shell *sh)
{
  for (guint i = 0; i < sh->set_order->len; i++) {
    ShellCommand *c = g_new0 (ShellCommand, 1);
    c->variable = TRUE;
    c->env = g_ptr_array_new_with_free_func (g_free);
    c->words = shell_copy_list (shell_get (sh, g_ptr_array_index (sh->set_order, i)));
    g_ptr_array_add (sh->commands, c);
  }
}

GPtrArray *
shell_commands (const char *name, const char *text, const char *const *given, GError **error)
{
  static const char *const none[] = {NULL};
  Shell sh;
  GPtrArray *commands = NULL;
  shell_init (&sh, name, text);
  read_sbatch (&sh, text);
  give (&sh, given);
  shell_run_list (&sh, TRUE, none);
  if (sh.error == NULL && *sh.p != '\0')
    shell_fail (&sh, "a bracket or a word of control that nothing opened");
  add_variables (&sh);
  if (sh.error != NULL)
    g_propagate_error (error, g_steal_pointer (&sh.error));
  else
    commands = g_steal_pointer (&sh.commands);
  shell_clear (&sh);
  return commands;
}

GPtrArray *
shell_split (const char *text)
{
  Shell sh;
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  shell_init (&sh, "", text);
  for (;;) {
    sh.p += strspn (sh.p, " \t\r\f\v\n\\;&|()<>");
    if (*sh.p == '\0' || sh.error != NULL)
      break;
    const char *before = sh.p;
    shell_word (&sh, TRUE, words);
    if (sh.p == before) /* a character that begins no word */
      sh.p++;
  }
  shell_clear (&sh);
  return words;
}

char *
shell_expand (const char *text, const char *const *given)
{
  Shell sh;
  GString *out = g_string_new (NULL);
  shell_init (&sh, "", "");
  give (&sh, given);
  for (const char *p = text; *p != '\0';) {
    if (*p != '$') {
      g_string_append_c (out, *p++);
      continue;
    }
    g_autoptr (GPtrArray) field = g_ptr_array_new_with_free_func (g_free);
    const char *end =
        p[1] == '{' ? strchr (p, '}')
                    : p + 1 + strspn (p + 1, G_CSET_a_2_z "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    end = end == NULL ? p + strlen (p) : p[1] == '{' ? end + 1 : end;
    g_autofree char *one = g_strndup (p, (gsize)(end - p));
    sh.p = one;
    shell_word (&sh, FALSE, field);
    g_string_append (out, field->len > 0 ? g_ptr_array_index (field, 0) : one);
    p = end;
  }
  shell_clear (&sh);
  return g_string_free (out, FALSE);
}
