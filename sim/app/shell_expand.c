/* Words of a shell script: quotes, variables, arithmetic. */
#include <string.h>

#include "shell_priv.h"

#define WORD_BYTES_MAX ((gsize)1 << 20)

char *
shell_mark (const char *what)
{
  char *mark = g_strdup_printf ("%c%s%c", SHELL_MARK, what, SHELL_MARK_END);
  return g_strdelimit (mark, " \t\r\n", '_'); /* one word */
}

char *
shell_unknown (const char *word)
{
  const char *a = strchr (word, SHELL_MARK), *b = a != NULL ? strchr (a, SHELL_MARK_END) : NULL;
  return b != NULL ? g_strndup (a + 1, (gsize)(b - a - 1)) : NULL;
}

/* ---- arithmetic ---- */

typedef struct {
  Shell *sh;
  const char *p;
  gboolean bad;
  guint depth;
} Sum;

static gint64 ternary (Sum *s);

static void
blanks (Sum *s)
{
  while (g_ascii_isspace (*s->p))
    s->p++;
}

static gboolean
take (Sum *s, const char *op)
{
  blanks (s);
  if (!g_str_has_prefix (s->p, op))
    return FALSE;
  s->p += strlen (op);
  return TRUE;
}

static gint64
variable_number (Sum *s, const char *name)
{
  const GPtrArray *v = shell_get (s->sh, name);
  gint64 n = 0;
  const char *text = v != NULL && v->len > 0 ? g_ptr_array_index (v, 0) : "";
  g_autoptr (GString) digits = g_string_new (NULL);
  for (; *text != '\0'; text++)
    if (*text != '_')
      g_string_append_c (digits, *text);
  if (!g_ascii_string_to_signed (digits->str, 10, G_MININT32, G_MAXINT64, &n, NULL))
    s->bad = TRUE;
  return n;
}

static gint64
primary (Sum *s)
{
  blanks (s);
  if (s->depth++ > 100 || *s->p == '\0') {
    s->bad = TRUE;
    return 0;
  }
  gint64 v = 0;
  if (take (s, "(")) {
    v = ternary (s);
    s->bad |= !take (s, ")");
  } else if (take (s, "-")) {
    v = -primary (s);
  } else if (take (s, "!")) {
    v = primary (s) == 0;
  } else if (g_ascii_isdigit (*s->p)) {
    while (g_ascii_isdigit (*s->p) || *s->p == '_') /* Python's 1_000 stands in such scripts */
      if (*s->p++ != '_')
        v = v > G_MAXINT64 / 16 ? v : v * 10 + (s->p[-1] - '0');
  } else if (g_ascii_isalpha (*s->p) || *s->p == '_') {
    const char *from = s->p;
    while (g_ascii_isalnum (*s->p) || *s->p == '_')
      s->p++;
    g_autofree char *name = g_strndup (from, (gsize)(s->p - from));
    v = variable_number (s, name);
  } else {
    s->bad = TRUE;
  }
  s->depth--;
  return v;
}

static gint64
product (Sum *s)
{
  gint64 v = primary (s), w;
  while (!s->bad) {
    if (take (s, "*")) {
      s->bad |= __builtin_mul_overflow (v, primary (s), &v);
    } else if (take (s, "/")) {
      w = primary (s);
      s->bad |= w == 0;
      v = s->bad ? 0 : v / w;
    } else if (take (s, "%")) {
      w = primary (s);
      s->bad |= w == 0;
      v = s->bad ? 0 : v % w;
    } else
      break;
  }
  return v;
}

static gint64
sum (Sum *s)
{
  gint64 v = product (s);
  while (!s->bad) {
    if (take (s, "+"))
      s->bad |= __builtin_add_overflow (v, product (s), &v);
    else if (take (s, "-"))
      s->bad |= __builtin_sub_overflow (v, product (s), &v);
    else
      break;
  }
  return v;
}

static gint64
comparison (Sum *s)
{
  gint64 v = sum (s);
  while (!s->bad) {
    if (take (s, "<="))
      v = v <= sum (s);
    else if (take (s, ">="))
      v = v >= sum (s);
    else if (take (s, "=="))
      v = v == sum (s);
    else if (take (s, "!="))
      v = v != sum (s);
    else if (take (s, "<"))
      v = v < sum (s);
    else if (take (s, ">"))
      v = v > sum (s);
    else
      break;
  }
  return v;
}

static gint64
logic (Sum *s)
{
  gint64 v = comparison (s);
  while (!s->bad) {
    if (take (s, "&&")) {
      gint64 w = comparison (s);
      v = v != 0 && w != 0;
    } else if (take (s, "||")) {
      gint64 w = comparison (s);
      v = v != 0 || w != 0;
    } else
      break;
  }
  return v;
}

static gint64
ternary (Sum *s)
{
  gint64 v = logic (s);
  if (s->bad || !take (s, "?"))
    return v;
  gint64 a = ternary (s);
  s->bad |= !take (s, ":");
  gint64 b = ternary (s);
  return v != 0 ? a : b;
}

char *
shell_arithmetic (Shell *sh, const char *text)
{
  Sum s = {sh, text, FALSE, 0};
  g_autofree char *unknown = shell_unknown (text);
  if (unknown != NULL)
    return shell_mark (unknown);
  gint64 v = ternary (&s);
  blanks (&s);
  return s.bad || *s.p != '\0' ? shell_mark (text) : g_strdup_printf ("%" G_GINT64_FORMAT, v);
}

/* ---- expansion ---- */

typedef struct {
  Shell *sh;
  GString *field; /* being built */
  gboolean any;   /* it is there, though it may be empty */
  gboolean split;
  GPtrArray *fields;
} Build;

static void
end_field (Build *b)
{
  if (!b->any)
    return;
  g_ptr_array_add (b->fields, g_strdup (b->field->str));
  g_string_truncate (b->field, 0);
  b->any = FALSE;
}

static void
put_text (Build *b, const char *text, gboolean quoted)
{
  if (b->field->len > WORD_BYTES_MAX) {
    shell_fail (b->sh, "a word grows without end");
    return;
  }
  if (quoted || !b->split) {
    g_string_append (b->field, text);
    b->any = b->any || quoted || *text != '\0';
    return;
  }
  for (; *text != '\0'; text++) {
    if (g_ascii_isspace (*text))
      end_field (b);
    else {
      g_string_append_c (b->field, *text);
      b->any = TRUE;
    }
  }
}

/* All elements: fields of their own, or joined by blanks where there is to be one field. */
static void
put_list (Build *b, const GPtrArray *list, gboolean quoted)
{
  for (guint i = 0; list != NULL && i < list->len; i++) {
    if (i > 0 && b->split && quoted)
      end_field (b);
    else if (i > 0)
      put_text (b, " ", quoted);
    put_text (b, g_ptr_array_index (list, i), quoted);
  }
}

static void expand_dollar (Build *b, gboolean quoted);

/* From after an opening character to its closing one, at any depth; newly allocated, and p behind
 * it. */
static char *
inside (Shell *sh, char open, char close)
{
  guint depth = 1;
  const char *from = sh->p;
  for (; *sh->p != '\0'; sh->p++) {
    if (*sh->p == '\n')
      sh->line++;
    if (*sh->p == '\\' && sh->p[1] != '\0')
      sh->p++;
    else if (*sh->p == '\'' && close == ')') {
      const char *end = strchr (sh->p + 1, '\'');
      sh->p = end != NULL ? end : sh->p;
    } else if (*sh->p == open)
      depth++;
    else if (*sh->p == close && --depth == 0)
      return g_strndup (from, (gsize)(sh->p++ - from));
  }
  shell_fail (sh, "a bracket is not closed");
  return g_strdup ("");
}

/* text with its expansions done, as one field. */
static char *
expand_text (Shell *sh, const char *text)
{
  const char *was = sh->p;
  guint line = sh->line;
  g_autoptr (GPtrArray) out = g_ptr_array_new_with_free_func (g_free);
  Build b = {sh, g_string_new (NULL), FALSE, FALSE, out};
  if (++sh->depth > 50) {
    shell_fail (sh, "too deep");
  } else {
    for (sh->p = text; *sh->p != '\0' && sh->error == NULL;) {
      if (*sh->p == '$')
        expand_dollar (&b, TRUE);
      else if (*sh->p == '\'' || *sh->p == '"')
        sh->p++;
      else
        g_string_append_c (b.field, *sh->p++);
    }
  }
  sh->depth--;
  sh->p = was;
  sh->line = line;
  return g_string_free (b.field, FALSE);
}

static void
put_unset (Build *b, const char *what)
{
  g_autofree char *mark = shell_mark (what);
  put_text (b, mark, TRUE);
}

static const GPtrArray *
positional (const Shell *sh, const char *name, GPtrArray *one)
{
  guint64 n = g_ascii_strtoull (name, NULL, 10);
  if (n < 1 || n > sh->positional->len)
    return NULL;
  g_ptr_array_add (one, g_ptr_array_index (sh->positional, n - 1));
  return one;
}

static const GPtrArray *
value_of (const Shell *sh, const char *name, GPtrArray *one)
{
  if (strcmp (name, "@") == 0 || strcmp (name, "*") == 0)
    return sh->positional;
  return g_ascii_isdigit (*name) ? positional (sh, name, one) : shell_get (sh, name);
}

/* ${…}: p is behind the brace. */
static void
expand_braces (Build *b, gboolean quoted)
{
  g_autofree char *body = inside (b->sh, '{', '}');
  g_autoptr (GPtrArray) one = g_ptr_array_new ();
  gsize n = 0;
  gboolean all = FALSE;
  if (strcmp (body, "#") == 0) {
    g_autofree char *count = g_strdup_printf ("%u", b->sh->positional->len);
    put_text (b, count, quoted);
    return;
  }
  while (g_ascii_isalnum (body[n]) || body[n] == '_' || body[n] == '@')
    n++;
  g_autofree char *name = g_strndup (body, n);
  const char *rest = body + n;
  if (g_str_has_prefix (rest, "[@]") || g_str_has_prefix (rest, "[*]")) {
    all = TRUE;
    rest += 3;
  }
  const GPtrArray *v = n > 0 ? value_of (b->sh, name, one) : NULL;
  gboolean empty = v == NULL || v->len == 0 || (v->len == 1 && *(char *)v->pdata[0] == '\0');
  if (*rest == ':' && (rest[1] == '-' || rest[1] == '=' || rest[1] == '+'))
    rest++;
  else
    empty = v == NULL;
  if (*rest == '-' || *rest == '=') {
    if (empty) {
      g_autofree char *text = expand_text (b->sh, rest + 1);
      put_text (b, text, quoted);
      return;
    }
  } else if (*rest == '+') {
    g_autofree char *text = empty ? g_strdup ("") : expand_text (b->sh, rest + 1);
    put_text (b, text, quoted);
    return;
  } else if (*rest != '\0') { /* ${V%x}, ${#V} …: only running would tell */
    put_unset (b, body);
    return;
  }
  if (v == NULL && !all && strcmp (name, "@") != 0)
    put_unset (b, name);
  else if (all || strcmp (name, "@") == 0)
    put_list (b, v, quoted);
  else if (v->len > 0)
    put_text (b, g_ptr_array_index (v, 0), quoted);
}

static void
expand_name (Build *b, gboolean quoted)
{
  Shell *sh = b->sh;
  g_autoptr (GPtrArray) one = g_ptr_array_new ();
  const char *from = sh->p;
  if (*sh->p == '#') {
    g_autofree char *count = g_strdup_printf ("%u", sh->positional->len);
    sh->p++;
    put_text (b, count, quoted);
    return;
  }
  if (g_ascii_isdigit (*sh->p) || strchr ("@*?$!-", *sh->p) != NULL)
    sh->p++;
  else
    while (g_ascii_isalnum (*sh->p) || *sh->p == '_')
      sh->p++;
  g_autofree char *name = g_strndup (from, (gsize)(sh->p - from));
  const GPtrArray *v = value_of (sh, name, one);
  if (strcmp (name, "@") == 0 || strcmp (name, "*") == 0)
    put_list (b, v, quoted);
  else if (v == NULL)
    put_unset (b, name);
  else if (v->len > 0)
    put_text (b, g_ptr_array_index (v, 0), quoted);
}

/* p is at the dollar. */
static void
expand_dollar (Build *b, gboolean quoted)
{
  Shell *sh = b->sh;
  sh->p++;
  if (*sh->p == '(' && sh->p[1] == '(') {
    sh->p += 2;
    g_autofree char *body = inside (sh, '(', ')');
    if (*sh->p == ')')
      sh->p++;
    g_autofree char *text = expand_text (sh, body);
    g_autofree char *value = shell_arithmetic (sh, text);
    put_text (b, value, quoted);
  } else if (*sh->p == '(') {
    sh->p++;
    g_autofree char *body = inside (sh, '(', ')');
    put_unset (b, "(command)");
  } else if (*sh->p == '{') {
    sh->p++;
    expand_braces (b, quoted);
  } else if (g_ascii_isalnum (*sh->p) || (*sh->p != '\0' && strchr ("_@*#?$!", *sh->p) != NULL)) {
    expand_name (b, quoted);
  } else {
    put_text (b, "$", quoted);
  }
}

static void
double_quoted (Build *b)
{
  Shell *sh = b->sh;
  put_text (b, "", TRUE);
  for (sh->p++; *sh->p != '"' && sh->error == NULL;) {
    if (*sh->p == '\0') {
      shell_fail (sh, "a quote is not closed");
      return;
    }
    if (*sh->p == '\n')
      sh->line++;
    if (*sh->p == '$') {
      expand_dollar (b, TRUE);
      continue;
    }
    if (*sh->p == '`') {
      sh->p++;
      g_autofree char *body = inside (sh, '\x03', '`');
      put_unset (b, "(command)");
      continue;
    }
    if (*sh->p == '\\' && sh->p[1] == '\n') { /* the line goes on */
      sh->p += 2;
      sh->line++;
      continue;
    }
    if (*sh->p == '\\' && sh->p[1] != '\0' && strchr ("\"\\$`", sh->p[1]) != NULL)
      sh->p++;
    g_string_append_c (b->field, *sh->p++);
  }
  if (*sh->p == '"') /* else an error, maybe at the end of the text */
    sh->p++;
}

void
shell_word (Shell *sh, gboolean split, GPtrArray *fields)
{
  Build b = {sh, g_string_new (NULL), !split, split, fields};
  while (*sh->p != '\0' && !g_ascii_isspace (*sh->p) && strchr (";&|()<>", *sh->p) == NULL &&
         sh->error == NULL) {
    if (*sh->p == '\\') {
      sh->p++;
      sh->line += *sh->p == '\n' ? 1 : 0;
      if (*sh->p == '\n') {
        sh->p++;
        break;
      }
      if (*sh->p != '\0')
        put_text (&b, (char[]){*sh->p++, '\0'}, TRUE);
    } else if (*sh->p == '\'') {
      const char *end = strchr (sh->p + 1, '\'');
      if (end == NULL) {
        shell_fail (sh, "a quote is not closed");
        break;
      }
      g_autofree char *text = g_strndup (sh->p + 1, (gsize)(end - sh->p - 1));
      for (const char *c = text; *c != '\0'; c++)
        sh->line += *c == '\n' ? 1 : 0;
      put_text (&b, text, TRUE);
      sh->p = end + 1;
    } else if (*sh->p == '"') {
      double_quoted (&b);
    } else if (*sh->p == '`') {
      sh->p++;
      g_autofree char *body = inside (sh, '\x03', '`');
      put_unset (&b, "(command)");
    } else if (*sh->p == '$') {
      expand_dollar (&b, FALSE);
    } else {
      g_string_append_c (b.field, *sh->p++);
      b.any = TRUE;
    }
  }
  end_field (&b);
  g_string_free (b.field, TRUE);
}
