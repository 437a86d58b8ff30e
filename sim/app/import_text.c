#include "import_topo.h"
#include "text.h"

#include <string.h>

G_DEFINE_QUARK (clustersim - import - error, import_error)

gboolean
import_fail (GError **error, ImportError code, const char *name, guint line, const char *format,
             ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *raw = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *text = text_printable (raw, -1, 400);
  if (line > 0)
    g_set_error (error, IMPORT_ERROR, (int)code, "%s:%u: %s", name, line, text);
  else
    g_set_error (error, IMPORT_ERROR, (int)code, "%s: %s", name, text);
  return FALSE;
}

char *
import_load (const char *path, gsize *len, GError **error)
{
  g_autoptr (GError) local = NULL;
  g_autoptr (GMappedFile) map = g_mapped_file_new (path, FALSE, &local);
  if (!map) {
    import_fail (error, IMPORT_ERROR_FILE, path, 0, "cannot be read (%s)", local->message);
    return NULL;
  }
  *len = g_mapped_file_get_length (map);
  if (*len > IMPORT_MAX_BYTES) {
    import_fail (error, IMPORT_ERROR_FILE, path, 0,
                 "is too big (found %" G_GSIZE_FORMAT " bytes; allowed: %d)", *len,
                 IMPORT_MAX_BYTES);
    return NULL;
  }
  char *text = g_malloc (*len + 1);
  if (*len > 0)
    memcpy (text, g_mapped_file_get_contents (map), *len);
  text[*len] = '\0';
  return text;
}

/* A terminal's escape sequence: ESC [ … letter, or ESC and one character. */
static const char *
skip_escape (const char *p, const char *end)
{
  if (++p < end && *p == '[')
    for (p++; p < end && !g_ascii_isalpha (*p); p++)
      ;
  return p < end ? p + 1 : end;
}

char *
import_next_line (ImportLines *l)
{
  if (l->at >= l->end)
    return NULL;
  GString *s = g_string_new (NULL);
  const char *p = l->at;
  while (p < l->end && *p != '\n') {
    if (*p == '\033') {
      p = skip_escape (p, l->end);
      continue;
    }
    if (*p != '\r' && *p != '\0')
      g_string_append_c (s, *p);
    p++;
  }
  l->at = p < l->end ? p + 1 : p;
  l->line++;
  return g_string_free (s, FALSE);
}

char **
import_words (const char *line)
{
  g_autoptr (GPtrArray) out = g_ptr_array_new ();
  for (const char *p = line; *p;) {
    while (g_ascii_isspace (*p))
      p++;
    const char *start = p;
    while (*p && !g_ascii_isspace (*p))
      p++;
    if (p > start)
      g_ptr_array_add (out, g_strndup (start, (gsize)(p - start)));
  }
  g_ptr_array_add (out, NULL);
  return (char **)g_ptr_array_free (g_steal_pointer (&out), FALSE);
}

/* ---- host lists ------------------------------------------------------------------------------ */

static gboolean expand (const char *name, guint line, const char *prefix, const char *rest,
                        GPtrArray *out, int depth, GError **error);

/* One of "lo-hi" or "x" within brackets, with what comes after them. */
static gboolean
expand_range (const char *name, guint line, const char *prefix, const char *range,
              const char *after, GPtrArray *out, int depth, GError **error)
{
  const char *dash = strchr (range, '-');
  gsize width = dash ? (gsize)(dash - range) : strlen (range);
  char *end = NULL;
  if (!g_ascii_isdigit (range[0]) || width > 18 || (dash && strlen (dash) > 19))
    return import_fail (error, IMPORT_ERROR_SYNTAX, name, line,
                        "host range is no number (found \"%s\"; allowed: such as 01-16)", range);
  guint64 lo = g_ascii_strtoull (range, &end, 10), hi = lo;
  if (dash) {
    if (end != dash || !g_ascii_isdigit (dash[1]))
      return import_fail (error, IMPORT_ERROR_SYNTAX, name, line,
                          "host range is no number (found \"%s\"; allowed: such as 01-16)", range);
    hi = g_ascii_strtoull (dash + 1, &end, 10);
  }
  if (*end != '\0' || hi < lo)
    return import_fail (error, IMPORT_ERROR_SYNTAX, name, line,
                        "host range is empty or no number (found \"%s\")", range);
  for (guint64 k = lo; k <= hi; k++) {
    g_autofree char *next = g_strdup_printf ("%s%0*" G_GUINT64_FORMAT, prefix, (int)width, k);
    if (!expand (name, line, next, after, out, depth + 1, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
expand (const char *name, guint line, const char *prefix, const char *rest, GPtrArray *out,
        int depth, GError **error)
{
  const char *open = strchr (rest, '[');
  if (!open) {
    if (out->len >= IMPORT_MAX_HOSTS)
      return import_fail (error, IMPORT_ERROR_LIMIT, name, line,
                          "too many names (allowed: %d in a list)", IMPORT_MAX_HOSTS);
    g_ptr_array_add (out, g_strconcat (prefix, rest, NULL));
    return TRUE;
  }
  const char *close = strchr (open, ']');
  if (!close || depth > 4)
    return import_fail (error, IMPORT_ERROR_SYNTAX, name, line,
                        "brackets of a host list are not closed, or too many (found \"%s\")", rest);
  g_autofree char *head = g_strndup (rest, (gsize)(open - rest));
  g_autofree char *base = g_strconcat (prefix, head, NULL);
  g_autofree char *inner = g_strndup (open + 1, (gsize)(close - open - 1));
  g_auto (GStrv) part = g_strsplit (inner, ",", -1);
  for (guint i = 0; part[i]; i++)
    if (!expand_range (name, line, base, g_strstrip (part[i]), close + 1, out, depth, error))
      return FALSE;
  return TRUE;
}

gboolean
import_hostlist (const char *name, guint line, const char *list, GPtrArray *out, GError **error)
{
  int level = 0;
  for (const char *start = list, *p = list;; p++) {
    level += *p == '[' ? 1 : *p == ']' ? -1 : 0;
    if (*p != '\0' && (*p != ',' || level > 0))
      continue;
    g_autofree char *one = g_strstrip (g_strndup (start, (gsize)(p - start)));
    if (one[0] != '\0' && !expand (name, line, "", one, out, 0, error))
      return FALSE;
    if (*p == '\0')
      return TRUE;
    start = p + 1;
  }
}
