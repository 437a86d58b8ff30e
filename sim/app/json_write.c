#include "json_write.h"

#include <math.h>
#include <string.h>

typedef struct {
  gboolean object, empty;
} Level;

struct JsonWriter {
  GString *out; /* borrowed */
  int indent;
  GArray *levels; /* Level; one for each open container */
  gboolean done;  /* the root has been written */
};

JsonWriter *
json_writer_new (GString *out, int indent)
{
  g_assert (out != NULL && indent >= 0);
  JsonWriter *w = g_new0 (JsonWriter, 1);
  w->out = out;
  w->indent = indent;
  w->levels = g_array_new (FALSE, FALSE, sizeof (Level));
  return w;
}

void
json_writer_free (JsonWriter *w)
{
  if (w == NULL)
    return;
  g_array_unref (w->levels);
  g_free (w);
}

static Level *
level (JsonWriter *w)
{
  return w->levels->len == 0 ? NULL : &g_array_index (w->levels, Level, w->levels->len - 1);
}

static void
new_line (JsonWriter *w)
{
  if (w->indent == 0)
    return;
  g_string_append_c (w->out, '\n');
  for (gsize n = (gsize)w->indent * w->levels->len; n > 0; n--)
    g_string_append_c (w->out, ' ');
}

/* A run of bytes that need no escape is appended at once; bytes that are not UTF-8 become U+FFFD.
 */
static void
append_string (GString *out, const char *s)
{
  g_autofree char *valid = g_utf8_validate (s, -1, NULL) ? NULL : g_utf8_make_valid (s, -1);
  const char *p = valid != NULL ? valid : s;
  g_string_append_c (out, '"');
  while (*p != '\0') {
    gsize n = 0;
    while ((guchar)p[n] >= 0x20 && p[n] != '"' && p[n] != '\\')
      n++;
    g_string_append_len (out, p, (gssize)n);
    p += n;
    if (*p == '\0')
      break;
    static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
    const char *at = strchr (from, *p);
    if (at != NULL)
      g_string_append_printf (out, "\\%c", to[at - from]);
    else
      g_string_append_printf (out, "\\u%04x", (guint)(guchar)*p);
    p++;
  }
  g_string_append_c (out, '"');
}

/* Comma, indentation and key of the next value. */
static void
begin_value (JsonWriter *w, const char *key)
{
  Level *l = level (w);
  if (l == NULL) {
    g_assert (!w->done && key == NULL);
    w->done = TRUE;
    return;
  }
  g_assert (l->object == (key != NULL));
  if (!l->empty)
    g_string_append (w->out, w->indent == 0 ? ", " : ",");
  l->empty = FALSE;
  new_line (w);
  if (key != NULL) {
    append_string (w->out, key);
    g_string_append (w->out, ": ");
  }
}

static void
begin (JsonWriter *w, const char *key, gboolean object)
{
  begin_value (w, key);
  g_string_append_c (w->out, object ? '{' : '[');
  Level l = {object, TRUE};
  g_array_append_val (w->levels, l);
}

static void
end (JsonWriter *w, gboolean object)
{
  Level *l = level (w);
  g_assert (l != NULL && l->object == object);
  gboolean empty = l->empty;
  g_array_set_size (w->levels, w->levels->len - 1);
  if (!empty)
    new_line (w);
  g_string_append_c (w->out, object ? '}' : ']');
}

void
jw_begin_object (JsonWriter *w, const char *key)
{
  begin (w, key, TRUE);
}

void
jw_end_object (JsonWriter *w)
{
  end (w, TRUE);
}

void
jw_begin_array (JsonWriter *w, const char *key)
{
  begin (w, key, FALSE);
}

void
jw_end_array (JsonWriter *w)
{
  end (w, FALSE);
}

void
jw_string (JsonWriter *w, const char *key, const char *value)
{
  begin_value (w, key);
  if (value == NULL)
    g_string_append (w->out, "null");
  else
    append_string (w->out, value);
}

void
jw_double (JsonWriter *w, const char *key, double value)
{
  begin_value (w, key);
  if (!isfinite (value)) {
    g_string_append (w->out, "null");
    return;
  }
  static const char *const formats[] = {"%.15g", "%.16g", "%.17g"};
  char buf[G_ASCII_DTOSTR_BUF_SIZE];
  for (guint i = 0; i < G_N_ELEMENTS (formats); i++) {
    g_ascii_formatd (buf, sizeof buf, formats[i], value);
    if (g_ascii_strtod (buf, NULL) == value)
      break;
  }
  g_string_append (w->out, buf);
}

void
jw_int (JsonWriter *w, const char *key, gint64 value)
{
  begin_value (w, key);
  g_string_append_printf (w->out, "%" G_GINT64_FORMAT, value);
}

void
jw_bool (JsonWriter *w, const char *key, gboolean value)
{
  begin_value (w, key);
  g_string_append (w->out, value ? "true" : "false");
}

void
jw_null (JsonWriter *w, const char *key)
{
  begin_value (w, key);
  g_string_append (w->out, "null");
}
