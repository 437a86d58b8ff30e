/* The check before cJSON: cJSON accepts trailing text, control characters, numbers such as 01 and
 * 1e999, and stops strings at \u0000. This pass accepts exactly RFC 8259, within our limits, so
 * that cJSON never sees a text it could misread, and it notes the line of every value. */
#include "json_priv.h"
#include "text.h"

#include <math.h>
#include <string.h>

#define NUMBER_MAX_CHARS   63 /* cJSON copies no more than this before it converts */
#define PATH_KEY_MAX_CHARS 60

typedef struct {
  const char *key; /* current key (as written, not unescaped), objects only */
  gsize key_len;
  guint index; /* of the current element, arrays only */
  gboolean object;
} Frame;

typedef struct {
  const JsonFile *file;
  const char *p, *end;
  guint32 line;
  guint depth;
  Frame stack[JSON_MAX_DEPTH];
  GArray *lines;
  GError **error;
} Scan;

void
json_path_append (GString *path, const char *part, gssize len)
{
  g_autofree char *plain = text_printable (part, len, PATH_KEY_MAX_CHARS);
  g_string_append_c (path, '/');
  for (const char *p = plain; *p != '\0'; p++) {
    if (*p == '~')
      g_string_append (path, "~0");
    else if (*p == '/')
      g_string_append (path, "~1");
    else
      g_string_append_c (path, *p);
  }
}

static char *
scan_path (const Scan *s)
{
  GString *path = g_string_new (NULL);
  for (guint i = 0; i < s->depth; i++) {
    const Frame *f = &s->stack[i];
    if (!f->object)
      g_string_append_printf (path, "/%u", f->index);
    else if (f->key != NULL)
      json_path_append (path, f->key, (gssize)f->key_len);
  }
  if (path->len == 0)
    g_string_append_c (path, '/');
  return g_string_free (path, FALSE);
}

static gboolean scan_fail (const Scan *s, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
scan_fail (const Scan *s, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *path = scan_path (s);
  g_autofree char *where = json_place (s->file->name, s->file->is_path, s->line);
  json_set_error (s->error, JSON_ERROR_SYNTAX, where, path, message);
  return FALSE;
}

/* What stands here, for a message: a word, a character, or the end. Newly allocated. */
static char *
found_here (const Scan *s)
{
  if (s->p >= s->end)
    return g_strdup ("the end of the text");
  const char *q = s->p;
  while (q < s->end && (g_ascii_isalnum (*q) || strchr ("+-._", *q) != NULL))
    q++;
  if (q == s->p)
    q = MIN (g_utf8_next_char (q), s->end);
  g_autofree char *word = text_printable (s->p, q - s->p, 30);
  return g_strconcat ("'", word, "'", NULL);
}

static gboolean
fail_found (const Scan *s, const char *what, const char *allowed)
{
  g_autofree char *found = found_here (s);
  return scan_fail (s, "%s (found %s; allowed: %s)", what, found, allowed);
}

static void
skip_space (Scan *s)
{
  for (; s->p < s->end; s->p++) {
    if (*s->p == '\n')
      s->line++;
    else if (*s->p != ' ' && *s->p != '\t' && *s->p != '\r')
      return;
  }
}

static int
hex4 (const char *p)
{
  int v = 0;
  for (int i = 0; i < 4; i++) {
    int d = g_ascii_xdigit_value (p[i]);
    if (d < 0)
      return -1;
    v = v * 16 + d;
  }
  return v;
}

/* At the backslash of \uXXXX; a pair of surrogates is taken as one. */
static gboolean
scan_unicode_escape (Scan *s)
{
  int c = s->end - s->p >= 6 ? hex4 (s->p + 2) : -1;
  if (c < 0)
    return fail_found (s, "incomplete \\u escape in a string", "\\u and four hexadecimal digits");
  if (c == 0)
    return scan_fail (s, "NUL character in a string (found \\u0000; no text here may hold one)");
  s->p += 6;
  if (c < 0xd800 || c > 0xdfff)
    return TRUE;
  int low =
      c <= 0xdbff && s->end - s->p >= 6 && s->p[0] == '\\' && s->p[1] == 'u' ? hex4 (s->p + 2) : -1;
  if (low < 0xdc00 || low > 0xdfff)
    return scan_fail (
        s, "half of a surrogate pair in a string (found \\u%04x; allowed: both halves)", (guint)c);
  s->p += 6;
  return TRUE;
}

/* At the opening quote; ends after the closing one. */
static gboolean
scan_string (Scan *s)
{
  s->p++;
  while (s->p < s->end) {
    guchar c = (guchar)*s->p;
    if (c == '"') {
      s->p++;
      return TRUE;
    }
    if (c < 0x20)
      return scan_fail (s, "control character in a string (found \\u%04x; allowed: its escape)", c);
    if (c != '\\') {
      s->p++;
      continue;
    }
    if (s->end - s->p < 2)
      break;
    if (s->p[1] == 'u') {
      if (!scan_unicode_escape (s))
        return FALSE;
    } else if (strchr ("\"\\/bfnrt", s->p[1]) != NULL) {
      s->p += 2;
    } else
      return scan_fail (
          s, "unknown escape in a string (allowed: \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX)");
  }
  s->p = s->end;
  return fail_found (s, "a string is not closed", "a double quote");
}

static void
skip_digits (Scan *s)
{
  while (s->p < s->end && g_ascii_isdigit (*s->p))
    s->p++;
}

static gboolean
at_digit (const Scan *s)
{
  return s->p < s->end && g_ascii_isdigit (*s->p);
}

static gboolean
scan_number (Scan *s)
{
  static const char allowed[] = "digits, as in -12, 0.5, 1.5e12";
  const char *start = s->p;
  gboolean exponent = FALSE;
  if (*s->p == '-')
    s->p++;
  if (s->p < s->end && g_ascii_tolower (*s->p) == 'i')
    return fail_found (s, "number is not finite", "finite numbers");
  if (!at_digit (s))
    return fail_found (s, "incomplete number", allowed);
  if (*s->p == '0' && s->p + 1 < s->end && g_ascii_isdigit (s->p[1]))
    return fail_found (s, "number with a leading zero", allowed);
  skip_digits (s);
  if (s->p < s->end && *s->p == '.') {
    s->p++;
    if (!at_digit (s))
      return fail_found (s, "incomplete number", allowed);
    skip_digits (s);
  }
  if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
    exponent = TRUE;
    s->p++;
    if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
      s->p++;
    if (!at_digit (s))
      return fail_found (s, "incomplete number", allowed);
    skip_digits (s);
  }
  gsize n = (gsize)(s->p - start);
  if (n > NUMBER_MAX_CHARS)
    return scan_fail (s,
                      "number too long (found %" G_GSIZE_FORMAT " characters; allowed: up to %d)",
                      n, NUMBER_MAX_CHARS);
  if (exponent) { /* without one, 63 characters cannot overflow a double */
    char text[NUMBER_MAX_CHARS + 1];
    memcpy (text, start, n);
    text[n] = '\0';
    if (!isfinite (g_ascii_strtod (text, NULL)))
      return scan_fail (s, "number out of range (found %s; allowed: up to 1.79e308)", text);
  }
  return TRUE;
}

static gboolean
scan_word (Scan *s)
{
  static const char *const words[] = {"true", "false", "null"};
  gsize n = 0;
  while (s->p + n < s->end && (g_ascii_isalnum (s->p[n]) || s->p[n] == '_'))
    n++;
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (n == strlen (words[i]) && memcmp (s->p, words[i], n) == 0) {
      s->p += n;
      return TRUE;
    }
  if (n == 3 && g_ascii_strncasecmp (s->p, "nan", 3) == 0)
    return fail_found (s, "number is not finite", "finite numbers");
  if (n >= 3 && g_ascii_strncasecmp (s->p, "infinity", n) == 0)
    return fail_found (s, "number is not finite", "finite numbers");
  if (s->p < s->end && *s->p == '/')
    return scan_fail (s, "comments are not JSON (found '/'; allowed: a \"description\" key)");
  return fail_found (s, "a value is expected",
                     "object, array, \"string\", number, true, false, null");
}

/* At the first character of a key; ends after the colon. */
static gboolean
scan_key (Scan *s, gboolean may_end)
{
  if (s->p >= s->end || *s->p != '"')
    return fail_found (s, "a key is expected", may_end ? "\"key\" or }" : "\"key\"");
  Frame *f = &s->stack[s->depth - 1];
  const char *start = s->p + 1;
  if (!scan_string (s))
    return FALSE;
  f->key = start;
  f->key_len = (gsize)(s->p - 1 - start);
  skip_space (s);
  if (s->p >= s->end || *s->p != ':')
    return fail_found (s, "a colon is expected after a key", ":");
  s->p++;
  skip_space (s);
  return TRUE;
}

static gboolean
scan_open (Scan *s, gboolean object)
{
  if (s->depth == JSON_MAX_DEPTH)
    return scan_fail (s, "nested too deep (found level %d; allowed: up to %d)", JSON_MAX_DEPTH + 1,
                      JSON_MAX_DEPTH);
  s->stack[s->depth++] = (Frame){.object = object};
  s->p++;
  skip_space (s);
  return TRUE;
}

/* One value that is not the inside of a container. *opened: it is a container with something in it.
 */
static gboolean
scan_value_start (Scan *s, gboolean *opened)
{
  *opened = FALSE;
  if (s->lines->len == JSON_MAX_VALUES)
    return scan_fail (s, "too many values (found more than %d)", JSON_MAX_VALUES);
  g_array_append_val (s->lines, s->line);
  char c = s->p < s->end ? *s->p : '\0';
  if (c == '"')
    return scan_string (s);
  if (c == '-' || g_ascii_isdigit (c))
    return scan_number (s);
  if (c != '{' && c != '[')
    return scan_word (s);
  if (!scan_open (s, c == '{'))
    return FALSE;
  if (s->p < s->end && *s->p == (c == '{' ? '}' : ']')) {
    s->p++;
    s->depth--;
    return TRUE;
  }
  *opened = TRUE;
  return c == '[' || scan_key (s, TRUE);
}

/* After a value: closes what ends here, or moves to the next member. *done: the root has ended. */
static gboolean
scan_value_end (Scan *s, gboolean *done)
{
  for (;;) {
    skip_space (s);
    *done = s->depth == 0;
    if (*done)
      return TRUE;
    Frame *f = &s->stack[s->depth - 1];
    char c = s->p < s->end ? *s->p : '\0';
    if (c == ',') {
      s->p++;
      skip_space (s);
      f->index++;
      f->key = NULL;
      return !f->object || scan_key (s, FALSE);
    }
    if (c != (f->object ? '}' : ']'))
      return fail_found (s, "a comma or the end is expected", f->object ? ", or }" : ", or ]");
    s->p++;
    s->depth--;
  }
}

/* UTF-8 throughout, no NUL, no byte order mark. */
static gboolean
scan_encoding (Scan *s)
{
  gsize len = (gsize)(s->end - s->p);
  const guchar *b = (const guchar *)s->p;
  if (len >= 3 && b[0] == 0xef && b[1] == 0xbb && b[2] == 0xbf)
    return scan_fail (s, "byte order mark (found ef bb bf; allowed: UTF-8 without it)");
  if (len >= 2 && ((b[0] == 0xff && b[1] == 0xfe) || (b[0] == 0xfe && b[1] == 0xff)))
    return scan_fail (s, "not UTF-8 (found the mark of UTF-16; allowed: UTF-8)");
  const char *bad;
  if (g_utf8_validate_len (s->p, len, &bad))
    return TRUE;
  for (const char *q = s->p; q < bad; q++)
    s->line += *q == '\n';
  if (*bad == '\0')
    return scan_fail (s, "NUL byte (found at offset %" G_GSIZE_FORMAT "; allowed: text)",
                      (gsize)(bad - s->p));
  return scan_fail (s,
                    "not UTF-8 (found byte 0x%02x at offset %" G_GSIZE_FORMAT "; allowed: UTF-8)",
                    (guint)(guchar)*bad, (gsize)(bad - s->p));
}

gboolean
json_scan (const JsonFile *file, const char *text, gsize len, GArray *lines, GError **error)
{
  Scan s = {.file = file, .p = text, .end = text + len, .line = 1, .lines = lines, .error = error};
  if (!scan_encoding (&s))
    return FALSE;
  skip_space (&s);
  if (s.p == s.end)
    return scan_fail (&s, "the text is empty (allowed: one JSON value)");
  for (gboolean done = FALSE; !done;) {
    gboolean opened;
    if (!scan_value_start (&s, &opened))
      return FALSE;
    if (!opened && !scan_value_end (&s, &done))
      return FALSE;
  }
  if (s.p != s.end)
    return fail_found (&s, "text after the end of the value", "nothing");
  return TRUE;
}
