/* Tests and assignments of a shell script. */
#include <string.h>

#include "shell_priv.h"

/* ---- tests ---- */

char *
shell_plain (const char *word)
{
  GString *out = g_string_new (NULL);
  gboolean in = FALSE;
  for (; *word != '\0'; word++) {
    in = *word == SHELL_MARK || (in && *word != SHELL_MARK_END);
    if (!in && *word != SHELL_MARK_END)
      g_string_append_c (out, *word);
  }
  return g_string_free (out, FALSE);
}

typedef struct {
  const GPtrArray *words;
  guint at;
  gboolean pattern; /* == takes a pattern */
} Test;

static gboolean test_or (Test *t);

static const char *
peek (const Test *t, guint ahead)
{
  return t->at + ahead < t->words->len ? g_ptr_array_index (t->words, t->at + ahead) : "";
}

static gboolean
compare (const Test *t, const char *a, const char *op, const char *b, gboolean *known)
{
  g_autofree char *x = shell_plain (a), *y = shell_plain (b);
  gint64 i = 0, k = 0;
  *known = TRUE;
  if (strcmp (op, "=") == 0 || strcmp (op, "==") == 0)
    return t->pattern ? g_pattern_match_simple (y, x) : strcmp (x, y) == 0;
  if (strcmp (op, "!=") == 0)
    return t->pattern ? !g_pattern_match_simple (y, x) : strcmp (x, y) != 0;
  if (strcmp (op, "=~") == 0)
    return g_regex_match_simple (y, x, 0, 0);
  g_ascii_string_to_signed (x, 10, G_MININT32, G_MAXINT64, &i, NULL);
  g_ascii_string_to_signed (y, 10, G_MININT32, G_MAXINT64, &k, NULL);
  static const char *const ops[] = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge", NULL};
  const gboolean results[] = {i == k, i != k, i<k, i <= k, i> k, i >= k};
  for (guint n = 0; ops[n] != NULL; n++)
    if (strcmp (op, ops[n]) == 0)
      return results[n];
  *known = FALSE;
  return FALSE;
}

static gboolean
test_primary (Test *t)
{
  const char *w = peek (t, 0);
  gboolean known, result;
  if (strcmp (w, "!") == 0) {
    t->at++;
    return !test_primary (t);
  }
  if (strcmp (w, "(") == 0) {
    t->at++;
    result = test_or (t);
    t->at++;
    return result;
  }
  if (t->at + 2 < t->words->len) {
    result = compare (t, w, peek (t, 1), peek (t, 2), &known);
    if (known) {
      t->at += 3;
      return result;
    }
  }
  if (w[0] == '-' && w[1] != '\0' && w[2] == '\0' && t->at + 1 < t->words->len) {
    g_autofree char *x = shell_plain (peek (t, 1));
    t->at += 2;
    return w[1] == 'z' ? *x == '\0' : w[1] == 'n' || w[1] == 'v' ? *x != '\0' : TRUE;
  }
  t->at++;
  g_autofree char *x = shell_plain (w);
  return *x != '\0';
}

static gboolean
test_or (Test *t)
{
  gboolean v = test_primary (t);
  while (t->at < t->words->len) {
    const char *op = peek (t, 0);
    gboolean and = strcmp (op, "&&") == 0 || strcmp (op, "-a") == 0;
    if (!and&&strcmp (op, "||") != 0 && strcmp (op, "-o") != 0)
      break;
    t->at++;
    gboolean w = test_primary (t);
    v = and? v && w : v || w;
  }
  return v;
}

int
shell_test (const GPtrArray *words, gboolean pattern)
{
  Test t = {words, 0, pattern};
  return words->len > 0 && test_or (&t) ? 0 : 1;
}

/* ---- simple commands ---- */

/* The length of NAME in "NAME=" or "NAME+=", or 0. */
gsize
shell_assigned_name (const char *p, gboolean *append)
{
  gsize n = 0;
  if (!g_ascii_isalpha (*p) && *p != '_')
    return 0;
  while (g_ascii_isalnum (p[n]) || p[n] == '_')
    n++;
  *append = p[n] == '+' && p[n + 1] == '=';
  return *append || p[n] == '=' ? n : 0;
}

/* Elements between ( and ), on any number of lines. */
static GPtrArray *
read_array (Shell *sh)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (g_free);
  for (sh->p++; sh->error == NULL;) {
    shell_skip_lines (sh);
    if (*sh->p == ')')
      break;
    if (*sh->p == '\0' || strchr (";&|(<>", *sh->p) != NULL) {
      shell_fail (sh, "an array is not closed");
      break;
    }
    shell_word (sh, TRUE, list);
  }
  sh->p += *sh->p == ')' ? 1 : 0;
  return list;
}

GPtrArray *
shell_copy_list (const GPtrArray *from)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; from != NULL && i < from->len; i++)
    g_ptr_array_add (list, g_strdup (g_ptr_array_index (from, i)));
  return list;
}

/* p is at NAME=. With env the value is only noted there. */
void
shell_read_assignment (Shell *sh, gsize n, gboolean append, gboolean exec, GPtrArray *env)
{
  g_autofree char *name = g_strndup (sh->p, n);
  sh->p += n + (append ? 2 : 1);
  gboolean array = *sh->p == '(';
  GPtrArray *value;
  if (array)
    value = read_array (sh);
  else {
    value = g_ptr_array_new_with_free_func (g_free);
    shell_word (sh, FALSE, value);
    if (value->len == 0)
      g_ptr_array_add (value, g_strdup (""));
  }
  const GPtrArray *old = shell_get (sh, name);
  if (!exec) {
    g_ptr_array_unref (value);
    return;
  }
  if (append && old != NULL) {
    GPtrArray *sum = shell_copy_list (old);
    if (array || sum->len == 0) {
      for (guint i = 0; i < value->len; i++)
        g_ptr_array_add (sum, g_strdup (g_ptr_array_index (value, i)));
    } else {
      char *joined = g_strconcat (g_ptr_array_index (sum, 0), g_ptr_array_index (value, 0), NULL);
      g_free (g_ptr_array_index (sum, 0));
      sum->pdata[0] = joined;
    }
    g_ptr_array_unref (value);
    value = sum;
  }
  if (env != NULL && !array)
    g_ptr_array_add (env, g_strconcat (name, "=", g_ptr_array_index (value, 0), NULL));
  shell_set (sh, name, value);
}
