#include "gantt.h"

#include <stdlib.h>
#include <string.h>

#include "csv.h"

#define COLUMNS  100
#define ROWS_MAX 32u

typedef struct {
  double most_s[COLUMNS]; /* of a cell, the longest part of one mark */
  char mark[COLUMNS + 1];
  guint rank;
  char *name;
} Row;

static char
mark_of (const char *category, const char *name)
{
  const char *at = strstr (name, "micro-batch ");
  guint64 mb = at != NULL ? g_ascii_strtoull (at + strlen ("micro-batch "), NULL, 10) : 0;
  if (strcmp (category, "F") == 0)
    return (char)('0' + mb % 10);
  if (strcmp (category, "B") == 0 || strcmp (category, "I") == 0)
    return (char)('a' + mb % 26);
  if (strcmp (category, "W") == 0)
    return 'W';
  if (strcmp (category, "optimizer") == 0)
    return 'O';
  return '=';
}

static void
paint (Row *r, double begin_s, double end_s, double cell_s, char mark)
{
  int first = (int)(begin_s / cell_s), last = (int)(end_s / cell_s);
  for (int c = MAX (first, 0); c <= MIN (last, COLUMNS - 1); c++) {
    double from = MAX (begin_s, c * cell_s), to = MIN (end_s, (c + 1) * cell_s);
    if (to - from > r->most_s[c]) {
      r->most_s[c] = to - from;
      r->mark[c] = mark;
    }
  }
}

/* The row of a rank; new ones at the end. Ranks come in order. */
static Row *
row_of (GPtrArray *rows, guint rank, const char *name)
{
  Row *last = rows->len > 0 ? g_ptr_array_index (rows, rows->len - 1) : NULL;
  if (last != NULL && last->rank == rank)
    return last;
  Row *r = g_new0 (Row, 1);
  r->rank = rank;
  r->name = g_strdup (name);
  memset (r->mark, '.', COLUMNS);
  g_ptr_array_add (rows, r);
  return r;
}

static void
row_free (gpointer p)
{
  Row *r = p;
  g_free (r->name);
  g_free (r);
}

static void
put_rows (GString *out, const GPtrArray *rows, double end_s)
{
  gboolean cut = FALSE;
  g_string_append_printf (out, "\ntimeline, %.4g s across; a column is %.4g s\n", end_s,
                          end_s / COLUMNS);
  for (guint i = 0; i < rows->len; i++) {
    const Row *r = g_ptr_array_index (rows, i);
    if (rows->len > ROWS_MAX && i >= ROWS_MAX / 2 && i < rows->len - ROWS_MAX / 2) {
      if (!cut)
        g_string_append (out, "       ...\n");
      cut = TRUE;
      continue;
    }
    g_string_append_printf (out, "  %4u |%s|\n", r->rank, r->mark);
  }
  g_string_append (out, "  0-9 forward, a-z backward (micro-batch modulo 10 and 26), W weight "
                        "gradient, O optimizer,\n  = other work, . waiting\n");
}

gboolean
gantt_text (GString *out, const char *trace_csv, GError **error)
{
  g_autoptr (CsvTable) t = csv_load (trace_csv, error);
  if (t == NULL)
    return FALSE;
  int rank = csv_col (t, "rank"), thread = csv_col (t, "thread"), name = csv_col (t, "name");
  int category = csv_col (t, "category"), begin = csv_col (t, "begin_s");
  int end = csv_col (t, "end_s"), process = csv_col (t, "process");
  double end_s = 0, a, b, r;
  for (guint i = 0; i < csv_n_rows (t); i++)
    if (csv_double (t, i, end, &b, NULL))
      end_s = MAX (end_s, b);
  if (end_s <= 0)
    return TRUE;
  g_autoptr (GPtrArray) rows = g_ptr_array_new_with_free_func (row_free);
  for (guint i = 0; i < csv_n_rows (t); i++) {
    if (strcmp (csv_cell (t, i, thread), "compute") != 0)
      continue;
    if (!csv_double (t, i, rank, &r, error) || !csv_double (t, i, begin, &a, error) ||
        !csv_double (t, i, end, &b, error))
      return FALSE;
    paint (row_of (rows, (guint)r, csv_cell (t, i, process)), a, b, end_s / COLUMNS,
           mark_of (csv_cell (t, i, category), csv_cell (t, i, name)));
  }
  put_rows (out, rows, end_s);
  return TRUE;
}
