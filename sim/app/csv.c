#include "csv.h"
#include "text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <glib/gstdio.h>

G_DEFINE_QUARK (clustersim - csv - error - quark, csv_error)

struct CsvTable {
  char *name;
  char *text;         /* the file; cells are cut out of it in place */
  GArray *cells;      /* guint32 offsets into text: header, then row by row */
  GArray *lines;      /* guint32, one a record, the header's first */
  GHashTable *column; /* name -> index + 1; only looked up, never iterated */
  guint n_cols;
};

typedef struct {
  CsvTable *table;
  char *p, *end; /* *end is a NUL of ours, so a last field without newline has room for its own */
  guint line;
} Reader;

typedef enum { AFTER_COMMA, AFTER_RECORD, AFTER_ERROR } After;

static void fail (const Reader *r, guint line, GError **error, const char *format, ...)
    G_GNUC_PRINTF (4, 5);

static void
fail (const Reader *r, guint line, GError **error, const char *format, ...)
{
  va_list ap;
  va_start (ap, format);
  g_autofree char *what = g_strdup_vprintf (format, ap);
  va_end (ap);
  g_set_error (error, CSV_ERROR, CSV_ERROR_SYNTAX, "%s:%u: %s", r->table->name, line, what);
}

static guint
count_lines (const char *from, const char *to)
{
  guint n = 0;
  for (const char *p = from; (p = memchr (p, '\n', (gsize)(to - p))) != NULL; p++)
    n++;
  return n;
}

/* Takes the separator behind a field. The field must end where it is cut (cut <= r->p). */
static After
end_field (Reader *r, char *cut, GError **error)
{
  if (r->p == r->end) {
    *cut = '\0';
    return AFTER_RECORD;
  }
  char c = *r->p;
  *cut = '\0';
  if (c == ',') {
    r->p++;
    return AFTER_COMMA;
  }
  if (c == '\r' && r->p + 1 < r->end && r->p[1] == '\n')
    r->p++;
  else if (c != '\n') {
    if (c == '\r')
      fail (r, r->line, error, "carriage return without a line feed");
    else
      fail (r, r->line, error,
            "text behind a closing quote (double a quote that is part of a field)");
    return AFTER_ERROR;
  }
  r->p++;
  r->line++;
  return AFTER_RECORD;
}

static After
read_quoted (Reader *r, GError **error)
{
  char *start = r->p, *out = start;
  guint opened = r->line;
  r->p++;
  for (;;) {
    char *quote = memchr (r->p, '"', (gsize)(r->end - r->p));
    if (quote == NULL || quote - start > CSV_MAX_FIELD_BYTES) {
      fail (r, opened, error, "the quote that opens here is never closed%s",
            quote ? " (no field may be longer than 1 MiB)" : "");
      return AFTER_ERROR;
    }
    gsize n = (gsize)(quote - r->p);
    r->line += count_lines (r->p, quote);
    memmove (out, r->p, n);
    out += n;
    r->p = quote + 1;
    if (r->p == r->end || *r->p != '"')
      break;
    *out++ = '"';
    r->p++;
  }
  return end_field (r, out, error);
}

static After
read_plain (Reader *r, GError **error)
{
  char *start = r->p;
  char c;
  while ((c = *r->p) != ',' && c != '\n' && c != '\r' && c != '"' && c != '\0')
    r->p++; /* stops at *end at the latest: NULs were refused before */
  if (c == '"') {
    fail (r, r->line, error,
          "a quote inside a field that does not begin with one (quote the whole field)");
    return AFTER_ERROR;
  }
  if (r->p - start > CSV_MAX_FIELD_BYTES) {
    fail (r, r->line, error, "a field is longer than 1 MiB");
    return AFTER_ERROR;
  }
  return end_field (r, r->p, error);
}

static gboolean
skip_blank_line (Reader *r)
{
  if (*r->p == '\n')
    r->p += 1;
  else if (*r->p == '\r' && r->p[1] == '\n')
    r->p += 2;
  else
    return FALSE;
  r->line++;
  return TRUE;
}

/* One record; its fields are appended to the table. */
static gboolean
read_record (Reader *r, GError **error)
{
  CsvTable *t = r->table;
  guint line = r->line, n = 0;
  for (After after = AFTER_COMMA; after == AFTER_COMMA;) {
    guint32 offset = (guint32)(r->p - t->text);
    after = *r->p == '"' ? read_quoted (r, error) : read_plain (r, error);
    if (after == AFTER_ERROR)
      return FALSE;
    if (++n > CSV_MAX_COLUMNS) {
      fail (r, line, error, "too many fields (more than %d)", CSV_MAX_COLUMNS);
      return FALSE;
    }
    g_array_append_val (t->cells, offset);
  }
  if (t->n_cols == 0)
    t->n_cols = n;
  if (n != t->n_cols) {
    fail (r, line, error, "wrong number of fields (found %u; the header has %u)", n, t->n_cols);
    return FALSE;
  }
  g_array_append_val (t->lines, line);
  return TRUE;
}

static gboolean
index_header (Reader *r, GError **error)
{
  CsvTable *t = r->table;
  t->column = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint c = 0; c < t->n_cols; c++) {
    char *column = g_strstrip (t->text + g_array_index (t->cells, guint32, c));
    if (*column == '\0')
      continue; /* an index column without a name: there, but nobody asks for it */
    if (!g_hash_table_insert (t->column, column, GUINT_TO_POINTER (c + 1))) {
      fail (r, g_array_index (t->lines, guint32, 0), error, "column \"%s\" stands twice", column);
      return FALSE;
    }
    /* g_strstrip moved the text to the front of its cell, so the offset still holds. */
  }
  return TRUE;
}

/* What makes the whole unreadable, before any cutting. */
static gboolean
check_text (Reader *r, gsize len, GError **error)
{
  const char *text = r->table->text, *bad;
  if (len >= 2 && (memcmp (text, "\xff\xfe", 2) == 0 || memcmp (text, "\xfe\xff", 2) == 0)) {
    fail (r, 1, error, "the text is UTF-16 (save the table as UTF-8)");
    return FALSE;
  }
  if (g_utf8_validate_len (text, len, &bad))
    return TRUE;
  guint line = 1 + count_lines (text, bad);
  if (*bad == '\0')
    fail (r, line, error, "a NUL byte: this is not a text file");
  else
    fail (r, line, error, "the text is not UTF-8 (byte 0x%02x; save the table as UTF-8)",
          (guint)(guchar)*bad);
  return FALSE;
}

/* Takes text, which has one writable byte behind len. */
static CsvTable *
parse (const char *name, char *text, gsize len, GError **error)
{
  g_autoptr (CsvTable) t = g_new0 (CsvTable, 1);
  t->name = g_strdup (name);
  t->text = text;
  t->cells = g_array_new (FALSE, FALSE, sizeof (guint32));
  t->lines = g_array_new (FALSE, FALSE, sizeof (guint32));
  text[len] = '\0';

  Reader r = {.table = t, .p = text, .end = text + len, .line = 1};
  if (!check_text (&r, len, error))
    return NULL;
  if (len >= 3 && memcmp (text, "\xef\xbb\xbf", 3) == 0)
    r.p += 3;
  while (r.p < r.end) {
    if (skip_blank_line (&r))
      continue;
    if (!read_record (&r, error) || (t->column == NULL && !index_header (&r, error)))
      return NULL;
  }
  if (t->column == NULL) {
    fail (&r, 1, error, "the table is empty (the first line names the columns)");
    return NULL;
  }
  return g_steal_pointer (&t);
}

CsvTable *
csv_parse (const char *name, const char *text, gsize len, GError **error)
{
  if (len > CSV_MAX_BYTES) {
    g_set_error (error, CSV_ERROR, CSV_ERROR_FILE, "%s:1: the table is larger than %d MiB", name,
                 CSV_MAX_BYTES >> 20);
    return NULL;
  }
  char *copy = g_malloc (len + 1);
  if (len > 0)
    memcpy (copy, text, len);
  return parse (name, copy, len, error);
}

/* Reads by pieces up to the limit, so that a pipe works and an endless one ends. */
CsvTable *
csv_load (const char *path, GError **error)
{
  FILE *f = g_fopen (path, "rbe");
  if (f == NULL) {
    g_set_error (error, CSV_ERROR, CSV_ERROR_FILE, "%s: cannot be opened (%s)", path,
                 g_strerror (errno));
    return NULL;
  }
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  guint8 piece[65536];
  gsize got;
  int why = 0;
  while (bytes->len <= CSV_MAX_BYTES && (got = fread (piece, 1, sizeof piece, f)) > 0)
    g_byte_array_append (bytes, piece, (guint)got);
  if (ferror (f))
    why = errno;
  fclose (f);
  if (why != 0) {
    g_set_error (error, CSV_ERROR, CSV_ERROR_FILE, "%s: cannot be read (%s)", path,
                 g_strerror (why));
    return NULL;
  }
  if (bytes->len > CSV_MAX_BYTES) {
    g_set_error (error, CSV_ERROR, CSV_ERROR_FILE, "%s: the table is larger than %d MiB", path,
                 CSV_MAX_BYTES >> 20);
    return NULL;
  }
  gsize len = bytes->len;
  g_byte_array_append (bytes, (const guint8 *)"", 1);
  return parse (path, (char *)g_byte_array_free (g_steal_pointer (&bytes), FALSE), len, error);
}

void
csv_table_free (CsvTable *t)
{
  if (t == NULL)
    return;
  g_clear_pointer (&t->column, g_hash_table_unref);
  g_array_unref (t->cells);
  g_array_unref (t->lines);
  g_free (t->text);
  g_free (t->name);
  g_free (t);
}

const char *
csv_name (const CsvTable *t)
{
  return t->name;
}

guint
csv_n_rows (const CsvTable *t)
{
  return t->lines->len - 1;
}

guint
csv_n_cols (const CsvTable *t)
{
  return t->n_cols;
}

int
csv_col (const CsvTable *t, const char *column)
{
  return GPOINTER_TO_INT (g_hash_table_lookup (t->column, column)) - 1;
}

int
csv_require_col (const CsvTable *t, const char *column, GError **error)
{
  int col = csv_col (t, column);
  if (col >= 0)
    return col;
  g_autoptr (GString) have = g_string_new (NULL);
  for (guint c = 0; c < t->n_cols && have->len < 400; c++)
    g_string_append_printf (have, "%s%s", c ? ", " : "", csv_col_name (t, c));
  g_set_error (error, CSV_ERROR, CSV_ERROR_COLUMN, "%s:%u: column \"%s\" is missing (found: %s%s)",
               t->name, g_array_index (t->lines, guint32, 0), column, have->str,
               have->len < 400 ? "" : ", ...");
  return -1;
}

const char *
csv_col_name (const CsvTable *t, guint col)
{
  g_assert (col < t->n_cols);
  return t->text + g_array_index (t->cells, guint32, col);
}

const char *
csv_cell (const CsvTable *t, guint row, int col)
{
  g_assert (row < csv_n_rows (t) && col < (int)t->n_cols);
  if (col < 0)
    return "";
  gsize i = (gsize)(row + 1) * t->n_cols + (gsize)col;
  return t->text + ((const guint32 *)(void *)t->cells->data)[i]; /* g_array_index counts in guint */
}

guint
csv_line (const CsvTable *t, guint row)
{
  g_assert (row < csv_n_rows (t));
  return g_array_index (t->lines, guint32, row + 1);
}

gboolean
csv_double (const CsvTable *t, guint row, int col, double *out, GError **error)
{
  const char *cell = csv_cell (t, row, col);
  char *rest;
  double v = g_ascii_strtod (cell, &rest);
  gboolean number = rest != cell;
  while (g_ascii_isspace (*rest))
    rest++;
  if (number && *rest == '\0' && isfinite (v)) {
    *out = v;
    return TRUE;
  }
  g_autofree char *shown = text_quoted (cell);
  g_set_error (error, CSV_ERROR, CSV_ERROR_VALUE,
               "%s:%u: column \"%s\": not a finite number (found %s)", t->name, csv_line (t, row),
               col < 0 ? "" : csv_col_name (t, (guint)col), shown);
  return FALSE;
}
