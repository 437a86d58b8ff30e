#include "text.h"
#include "json_read.h"

#include <string.h>

#define QUOTED_MAX_CHARS 60
#define NEAREST_MAX_CHARS                                                                          \
  80 /* longer names are not typing errors; bounds the edit distance's work */

static gboolean
is_plain (gunichar c)
{
  if (c < 0x20 || c == 0x7f)
    return FALSE;
  if (c < 0x7f)
    return TRUE;
  GUnicodeType type = g_unichar_type (c);
  return g_unichar_isprint (c) && type != G_UNICODE_LINE_SEPARATOR &&
         type != G_UNICODE_PARAGRAPH_SEPARATOR;
}

static void
append_escaped (GString *out, gunichar c)
{
  if (c == '\n')
    g_string_append (out, "\\n");
  else if (c == '\r')
    g_string_append (out, "\\r");
  else if (c == '\t')
    g_string_append (out, "\\t");
  else
    g_string_append_printf (out, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
}

char *
text_printable (const char *s, gssize len, gsize max_chars)
{
  const char *p = s, *end = s + (len < 0 ? strlen (s) : (gsize)len);
  GString *out = g_string_sized_new (64);
  for (gsize n = 0; p < end; n++) {
    if (n == max_chars) {
      g_string_append (out, "...");
      break;
    }
    gunichar c = g_utf8_get_char_validated (p, end - p);
    if (c == (gunichar)-1 || c == (gunichar)-2) {
      g_string_append_printf (out, "\\x%02x", (guint)(guchar)*p++);
      continue;
    }
    const char *next = g_utf8_next_char (p);
    if (c ==
        0) { /* g_utf8_get_char_validated reads a NUL as a character or as the end: by version */
      g_string_append (out, "\\u0000");
      next = p + 1;
    } else if (is_plain (c))
      g_string_append_len (out, p, next - p);
    else
      append_escaped (out, c);
    p = next;
  }
  return g_string_free (out, FALSE);
}

char *
text_quoted (const char *s)
{
  g_autofree char *plain = text_printable (s, -1, QUOTED_MAX_CHARS);
  GString *out = g_string_new ("\"");
  for (const char *p = plain; *p != '\0'; p++) {
    if (*p == '"')
      g_string_append_c (out, '\\');
    g_string_append_c (out, *p);
  }
  g_string_append_c (out, '"');
  return g_string_free (out, FALSE);
}

char *
text_list (const char *const *names, guint max)
{
  GString *out = g_string_new (NULL);
  guint n = 0;
  for (; names[n] != NULL && n < max; n++)
    g_string_append_printf (out, "%s%s", n > 0 ? ", " : "", names[n]);
  guint rest = 0;
  while (names[n + rest] != NULL)
    rest++;
  if (rest > 0)
    g_string_append_printf (out, " and %u more", rest);
  if (n == 0)
    g_string_assign (out, "none");
  return g_string_free (out, FALSE);
}

/* Optimal string alignment distance: insert, delete, replace, swap of neighbours; each costs 1. */
static guint
edit_distance (const char *a, gsize na, const char *b, gsize nb)
{
  guint row[3][NEAREST_MAX_CHARS + 1];
  guint *before = row[0], *last = row[1], *now = row[2];
  for (gsize j = 0; j <= nb; j++)
    last[j] = (guint)j;
  memcpy (before, last, sizeof row[0]);
  for (gsize i = 1; i <= na; i++) {
    now[0] = (guint)i;
    for (gsize j = 1; j <= nb; j++) {
      guint d = last[j - 1] + (a[i - 1] != b[j - 1]);
      d = MIN (d, MIN (last[j], now[j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d = MIN (d, before[j - 2] + 1);
      now[j] = d;
    }
    guint *spare = before;
    before = last;
    last = now;
    now = spare;
  }
  return last[nb];
}

const char *
nearest_name (const char *found, const char *const *names)
{
  g_autofree char *a = g_ascii_strdown (found, -1);
  gsize na = strlen (a);
  if (na == 0 || na > NEAREST_MAX_CHARS)
    return NULL;
  const char *best = NULL;
  guint best_distance = G_MAXUINT, best_common = 0;
  for (guint i = 0; names[i] != NULL; i++) {
    g_autofree char *b = g_ascii_strdown (names[i], -1);
    gsize nb = strlen (b);
    if (nb == 0 || nb > NEAREST_MAX_CHARS)
      continue;
    guint d = edit_distance (a, na, b, nb);
    /* "H100" for "H100-SXM-80GB": what was typed is a whole part of the name. */
    gboolean part = na >= 3 && strstr (b, a) != NULL;
    guint limit = (guint)(MAX (na, nb) + 2) / 3;
    guint common = 0; /* the start of a name is seldom where the error is */
    while (a[common] != '\0' && a[common] == b[common])
      common++;
    if ((d <= limit || part) &&
        (d < best_distance || (d == best_distance && common > best_common))) {
      best = names[i];
      best_distance = d;
      best_common = common;
    }
  }
  return best;
}
