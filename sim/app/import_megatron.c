/* Megatron-LM arguments: on a line, in a launch script, or as the MODEL_ARGS of a YAML file. */
#include <string.h>

#include "cli.h"
#include "import_run.h"
#include "import_yaml.h"
#include "shell_words.h"

/* Words of a command; one that is a whole command itself (bash -c "…") is taken apart. */
static GPtrArray *
flat_words (const ShellCommand *c)
{
  GPtrArray *out = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < c->words->len; i++) {
    const char *w = g_ptr_array_index (c->words, i);
    if (strpbrk (w, " \t\n") == NULL || strstr (w, "--") == NULL) {
      g_ptr_array_add (out, g_strdup (w));
      continue;
    }
    g_autoptr (GPtrArray) parts = shell_split (w);
    for (guint k = 0; k < parts->len; k++)
      g_ptr_array_add (out, g_strdup (g_ptr_array_index (parts, k)));
  }
  return out;
}

static guint
known_words (const GPtrArray *words)
{
  guint n = 0;
  for (guint i = 0; i < words->len; i++) {
    const char *w = g_ptr_array_index (words, i);
    g_autofree char *name = g_strndup (w, strcspn (w, "="));
    n += g_str_has_prefix (w, "--") && imported_run_knows (name) ? 1 : 0;
  }
  return n;
}

static gboolean
is_option (const char *w)
{
  return g_str_has_prefix (w, "--") && w[2] != '\0';
}

/* The values of the option at i, joined by blanks. */
static char *
values_after (const GPtrArray *words, guint *i)
{
  g_autoptr (GString) text = g_string_new (NULL);
  while (*i + 1 < words->len && !is_option (g_ptr_array_index (words, *i + 1))) {
    g_string_append_printf (text, "%s%s", text->len > 0 ? " " : "",
                            (const char *)g_ptr_array_index (words, ++*i));
  }
  return g_strdup (text->str);
}

static gboolean
take_words (ImportedRun *r, const GPtrArray *words, guint line, GError **error)
{
  for (guint i = 0; i < words->len; i++) {
    const char *w = g_ptr_array_index (words, i);
    if (!is_option (w))
      continue;
    const char *equals = strchr (w, '=');
    g_autofree char *name = g_strndup (w, equals != NULL ? (gsize)(equals - w) : strlen (w));
    g_autofree char *value = equals != NULL ? g_strdup (equals + 1) : values_after (words, &i);
    gboolean flag = imported_run_is_flag (name);
    /* One number each, though a script's own words may follow the last option. */
    if (!flag && strcmp (name, "--recompute-modules") != 0 && equals == NULL)
      value[strcspn (value, " ")] = '\0';
    if (!imported_run_set (r, name, flag && equals == NULL ? NULL : value, line, error))
      return FALSE;
  }
  return TRUE;
}

/* PP=8 TP=2 bash other_script.sh: what the other script would read. */
static gboolean
take_env (ImportedRun *r, const ShellCommand *c, GError **error)
{
  for (guint i = 0; i < c->env->len; i++) {
    const char *set = g_ptr_array_index (c->env, i), *equals = strchr (set, '=');
    g_autofree char *name = g_strndup (set, (gsize)(equals - set));
    if (strcmp (name, "PR") == 0) { /* precision, in the scripts of Megatron-MoE-ModelZoo */
      gboolean narrow = strstr (equals, "fp8") != NULL;
      if (!imported_run_set (r, narrow ? "fp8" : equals + 1, narrow ? equals + 1 : NULL, c->line,
                             error))
        return FALSE;
    } else if (imported_run_knows (name) && !imported_run_set (r, name, equals + 1, c->line, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
take_script (ImportedRun *r, const char *path, const char *text, const char *const *given,
             GError **error)
{
  g_autoptr (GPtrArray) commands = shell_commands (path, text, given, error);
  if (commands == NULL)
    return FALSE;
  const ShellCommand *best = NULL;
  guint most = 0, launches = 0;
  for (guint i = 0; i < commands->len; i++) {
    const ShellCommand *c = g_ptr_array_index (commands, i);
    g_autoptr (GPtrArray) words = flat_words (c);
    guint n = known_words (words);
    /* A variable counts when no command has arguments. */
    if (c->variable && best != NULL && !best->variable)
      break;
    launches += n > 1 && !c->variable ? 1 : 0;
    if (n > most) {
      most = n;
      best = c;
    }
  }
  /* Two or three in a variable are extras of a launch that stands elsewhere. */
  if (best == NULL || (best->variable && most < 4)) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
                 "%s: no command with arguments of Megatron-LM (such as --num-layers) would run: "
                 "is the launch in another file?",
                 path);
    return FALSE;
  }
  if (launches > 1)
    imported_run_note (r, "the file has %u launches: the one in line %u is taken", launches,
                       best->line);
  g_autoptr (GPtrArray) words = flat_words (best);
  return take_env (r, best, error) && take_words (r, words, best->line, error);
}

typedef struct {
  ImportedRun *r;
  const char *const *given;
} YamlArgs;

/* "--flag: value" pairs; the values are the shell's. */
static gboolean
take_pair (const char *key, const char *value, guint line, gpointer data, GError **error)
{
  const YamlArgs *a = data;
  const char *dashes = strstr (key, "--");
  if (dashes == NULL)
    return TRUE;
  g_autofree char *expanded = shell_expand (value, a->given);
  return imported_run_set (a->r, dashes, expanded, line, error);
}

/* The user's own values go over those of the file. */
static gboolean
take_given (ImportedRun *r, const char *const *given, GError **error)
{
  for (gsize i = 0; given != NULL && given[i] != NULL; i++) {
    const char *equals = strchr (given[i], '=');
    g_autofree char *name =
        equals != NULL ? g_strndup (given[i], (gsize)(equals - given[i])) : NULL;
    /* NAMES_IN_CAPITALS are variables of the script. */
    if (name != NULL && g_ascii_islower (name[strspn (name, "-")]) &&
        !imported_run_set (r, name, equals + 1, 0, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
import_megatron (ImportedRun *r, const char *path, const char *const *given, GError **error)
{
  g_autofree char *text = NULL;
  gboolean yaml = g_str_has_suffix (path, ".yaml") || g_str_has_suffix (path, ".yml");
  YamlArgs args = {r, given};
  if (yaml) {
    if (!import_yaml_pairs (path, take_pair, &args, error))
      return FALSE;
    if (imported_run_count (r) == 0) {
      g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
                   "%s: no pair \"--argument: value\" of Megatron-LM (a NeMo file? clustersim "
                   "import nemo)",
                   path);
      return FALSE;
    }
    return take_given (r, given, error);
  }
  if (!import_text_file (path, &text, error))
    return FALSE;
  return take_script (r, path, text, given, error) && take_given (r, given, error);
}
