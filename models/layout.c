#include "layout.h"

#include <string.h>

G_DEFINE_QUARK (clustersim - layout - error - quark, layout_error)

typedef struct {
  const char *text, *at;
  GString *out; /* written out: letters and '|' */
} Reader;

static gboolean fail (const Reader *r, LayoutError code, GError **error, const char *format, ...)
    G_GNUC_PRINTF (4, 5);

static gboolean
fail (const Reader *r, LayoutError code, GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *what = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, LAYOUT_ERROR, code, "layout \"%.80s\", column %d: %s", r->text,
               (int)(r->at - r->text) + 1, what);
  return FALSE;
}

static void
skip_blanks (Reader *r)
{
  while (*r->at == ',' || *r->at == ' ' || *r->at == '\t')
    r->at++;
}

/* "*N" after a letter or group; n is 1 without one. */
static gboolean
read_count (Reader *r, guint *n, GError **error)
{
  *n = 1;
  skip_blanks (r);
  if (*r->at != '*')
    return TRUE;
  r->at++;
  skip_blanks (r);
  if (!g_ascii_isdigit (*r->at))
    return fail (r, LAYOUT_ERROR_SYNTAX, error, "a number must follow '*'");
  guint v = 0;
  for (; g_ascii_isdigit (*r->at); r->at++) {
    v = v * 10 + (guint)(*r->at - '0');
    if (v > LAYOUT_MAX_LETTERS)
      return fail (r, LAYOUT_ERROR_ILLEGAL, error, "repeated too often (allowed: 1 to %d)",
                   LAYOUT_MAX_LETTERS);
  }
  if (v == 0)
    return fail (r, LAYOUT_ERROR_ILLEGAL, error, "repeated 0 times (allowed: 1 to %d)",
                 LAYOUT_MAX_LETTERS);
  *n = v;
  return TRUE;
}

/* What was written from position start on, n times in all. */
static gboolean
repeat (Reader *r, gsize start, guint n, GError **error)
{
  gsize len = r->out->len - start;
  if (len * n > LAYOUT_MAX_LETTERS - start)
    return fail (r, LAYOUT_ERROR_ILLEGAL, error, "longer than %d letters when written out",
                 LAYOUT_MAX_LETTERS);
  g_autofree char *piece = g_strndup (r->out->str + start, len);
  for (guint i = 1; i < n; i++)
    g_string_append_len (r->out, piece, (gssize)len);
  return TRUE;
}

static gboolean
read_item (Reader *r, GError **error)
{
  gsize start = r->out->len;
  guint n = 1;
  if (*r->at == '(') {
    const char *open = r->at++;
    for (skip_blanks (r); *r->at != ')'; skip_blanks (r)) {
      if (*r->at == '\0') {
        r->at = open;
        return fail (r, LAYOUT_ERROR_SYNTAX, error, "'(' is never closed");
      }
      if (*r->at == '(')
        return fail (r, LAYOUT_ERROR_SYNTAX, error, "a group inside a group (allowed: one level)");
      if (!read_item (r, error))
        return FALSE;
    }
    r->at++;
  } else if (strchr ("EtmL|", *r->at) != NULL) {
    g_string_append_c (r->out, *r->at++);
  } else {
    return fail (r, LAYOUT_ERROR_SYNTAX, error, "'%c' (allowed: E, t, m, L, |, groups and *N)",
                 *r->at);
  }
  return read_count (r, &n, error) && repeat (r, start, n, error);
}

/* One E, at the head of the first stage; one L, at the end of the last. */
static gboolean
check_ends (const Reader *r, GError **error)
{
  const char *s = r->out->str, *e = strchr (s, 'E'), *l = strchr (s, 'L');
  if (e == NULL || strchr (e + 1, 'E') != NULL || e != s)
    return fail (r, LAYOUT_ERROR_ILLEGAL, error,
                 "the first stage must start with the embedding, and no other has one (one E)");
  if (l == NULL || l[1] != '\0')
    return fail (r, LAYOUT_ERROR_ILLEGAL, error,
                 "the last stage must end with the loss, and no other has one (one L)");
  const char *m = strchr (s, 'm');
  if (m != NULL && strchr (m, 't') != NULL)
    return fail (r, LAYOUT_ERROR_ILLEGAL, error, "a layer (t) after a prediction module (m)");
  return TRUE;
}

gboolean
layout_parse (const char *text, Layout *out, GError **error)
{
  g_autoptr (GString) letters = g_string_new (NULL);
  Reader r = {text, text, letters};
  for (skip_blanks (&r); *r.at != '\0'; skip_blanks (&r))
    if (!read_item (&r, error))
      return FALSE;
  if (!check_ends (&r, error))
    return FALSE;
  Layout l = {.n_stages = 1};
  for (gsize i = 0; i < letters->len; i++)
    l.n_stages += letters->str[i] == '|';
  l.layers = g_new0 (gint64, l.n_stages);
  l.mtp = g_new0 (gint64, l.n_stages);
  guint stage = 0;
  for (gsize i = 0; i < letters->len; i++) {
    stage += letters->str[i] == '|';
    l.layers[stage] += letters->str[i] == 't';
    l.mtp[stage] += letters->str[i] == 'm';
  }
  for (guint i = 0; i < l.n_stages; i++) {
    l.total_layers += l.layers[i];
    l.total_mtp += l.mtp[i];
  }
  *out = l;
  return TRUE;
}

void
layout_clear (Layout *l)
{
  g_clear_pointer (&l->layers, g_free);
  g_clear_pointer (&l->mtp, g_free);
}
