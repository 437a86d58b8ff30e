#include "law_report.h"
#include "json_write.h"
#include "report.h"
#include "units.h"

#include <math.h>
#include <string.h>

typedef enum { ITEM_GROUP, ITEM_NUMBER, ITEM_INTERVAL, ITEM_TEXT } ItemKind;

typedef struct {
  ItemKind kind;
  char *key, *label, *text; /* group: key NULL ends one */
  double value, lo, hi;
  LawShow show;
  const char *unit;
} Item;

typedef struct {
  double value;
  char *text; /* NULL: a number */
} Cell;

struct LawReport {
  char *command;
  GArray *items; /* Item */
  GPtrArray *notes;
  char *table_key;
  char **columns;
  LawShow *shows;
  GArray *cells; /* Cell */
  guint first_row, max_rows;
  gboolean blocks;
  const LawFile *law; /* borrowed */
};

static void
item_clear (gpointer p)
{
  Item *i = p;
  g_free (i->key);
  g_free (i->label);
  g_free (i->text);
}

static void
cell_clear (gpointer p)
{
  g_free (((Cell *)p)->text);
}

LawReport *
law_report_new (const char *command)
{
  LawReport *r = g_new0 (LawReport, 1);
  r->command = g_strdup (command);
  r->items = g_array_new (FALSE, FALSE, sizeof (Item));
  g_array_set_clear_func (r->items, item_clear);
  r->notes = g_ptr_array_new_with_free_func (g_free);
  r->cells = g_array_new (FALSE, FALSE, sizeof (Cell));
  g_array_set_clear_func (r->cells, cell_clear);
  r->max_rows = G_MAXUINT;
  return r;
}

void
law_report_free (LawReport *r)
{
  if (r == NULL)
    return;
  g_free (r->command);
  g_array_unref (r->items);
  g_ptr_array_unref (r->notes);
  g_free (r->table_key);
  g_strfreev (r->columns);
  g_free (r->shows);
  g_array_unref (r->cells);
  g_free (r);
}

/* ---- filling ---- */

void
law_report_group (LawReport *r, const char *key, const char *label)
{
  Item i = {.kind = ITEM_GROUP, .key = g_strdup (key), .label = g_strdup (label)};
  g_array_append_val (r->items, i);
}

void
law_report_number (LawReport *r, const char *key, const char *label, double value, LawShow show,
                   const char *unit)
{
  Item i = {.kind = ITEM_NUMBER,
            .key = g_strdup (key),
            .label = g_strdup (label),
            .value = value,
            .show = show,
            .unit = unit};
  g_array_append_val (r->items, i);
}

void
law_report_interval (LawReport *r, const char *key, const char *label, double value, double lo,
                     double hi, LawShow show, const char *unit)
{
  Item i = {.kind = ITEM_INTERVAL,
            .key = g_strdup (key),
            .label = g_strdup (label),
            .value = value,
            .lo = lo,
            .hi = hi,
            .show = show,
            .unit = unit};
  g_array_append_val (r->items, i);
}

void
law_report_text (LawReport *r, const char *key, const char *label, const char *value)
{
  Item i = {.kind = ITEM_TEXT,
            .key = g_strdup (key),
            .label = g_strdup (label),
            .text = g_strdup (value)};
  g_array_append_val (r->items, i);
}

void
law_report_note (LawReport *r, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_ptr_array_add (r->notes, g_strdup_vprintf (format, args));
  va_end (args);
}

void
law_report_table (LawReport *r, const char *key, const char *const *columns, const LawShow *shows)
{
  g_assert (r->columns == NULL);
  r->table_key = g_strdup (key);
  r->columns = g_strdupv ((char **)columns);
  r->shows = g_memdup2 (shows, sizeof *shows * g_strv_length (r->columns));
}

void
law_report_cell (LawReport *r, double value)
{
  Cell c = {value, NULL};
  g_array_append_val (r->cells, c);
}

void
law_report_cell_text (LawReport *r, const char *value)
{
  Cell c = {0, g_strdup (value)};
  g_array_append_val (r->cells, c);
}

void
law_report_text_rows (LawReport *r, guint first, guint n)
{
  r->first_row = first;
  r->max_rows = n;
}

void
law_report_blocks (LawReport *r)
{
  r->blocks = TRUE;
}

void
law_report_law (LawReport *r, const LawFile *f)
{
  r->law = f;
}

/* ---- text ---- */

char *
law_show_count (double v)
{
  static const char *const names[] = {"", " k", " M", " B", " T"};
  guint i = 0;
  while (i + 1 < G_N_ELEMENTS (names) && fabs (v) >= 999.5) {
    v /= 1000;
    i++;
  }
  if (fabs (v) >= 99999)
    return g_strdup_printf ("%.3g%s", v, names[i]);
  int decimals = i == 0 && v == floor (v) ? 0 : fabs (v) < 9.995 ? 2 : fabs (v) < 99.95 ? 1 : 0;
  return g_strdup_printf ("%.*f%s", decimals, v, names[i]);
}

static char *
show (double v, LawShow how)
{
  if (isnan (v))
    return g_strdup ("-");
  switch (how) {
  case SHOW_COUNT:
    return law_show_count (v);
  case SHOW_FLOPS:
    return g_strdup_printf ("%.4g", v);
  case SHOW_LOSS:
    return g_strdup_printf ("%.4f", v);
  case SHOW_PERCENT:
    return g_strdup_printf ("%.1f %%", 100 * v);
  case SHOW_USD:
    return format_fixed (v, v < 100 ? 2 : 0);
  case SHOW_NUMBER:
    break;
  }
  if (v == floor (v) && fabs (v) < 1e9)
    return g_strdup_printf ("%.0f", v);
  return g_strdup_printf ("%.4g", v);
}

static void
text_item (GString *out, const Item *i, gboolean indent)
{
  if (i->kind == ITEM_GROUP) {
    if (i->key != NULL)
      g_string_append_printf (out, "%s%s\n", out->len > 0 ? "\n" : "", i->label);
    return;
  }
  g_autofree char *value = i->kind == ITEM_TEXT ? g_strdup (i->text) : show (i->value, i->show);
  g_string_append_printf (out, "%s%-*s %s", indent ? "  " : "", indent ? 30 : 32, i->label, value);
  if (i->kind == ITEM_INTERVAL) {
    g_autofree char *lo = show (i->lo, i->show), *hi = show (i->hi, i->show);
    g_string_append_printf (out, "  [%s, %s]", lo, hi);
  }
  if (i->kind != ITEM_TEXT && i->unit != NULL && !isnan (i->value))
    g_string_append_printf (out, " %s", i->unit);
  g_string_append_c (out, '\n');
}

/* A row of long texts as a paragraph. */
static void
text_blocks (GString *out, const LawReport *r)
{
  guint n = g_strv_length (r->columns);
  for (guint i = 0; i < r->cells->len; i++) {
    guint j = i % n;
    const char *text = g_array_index (r->cells, Cell, i).text;
    if (j < 2)
      g_string_append_printf (out, "%s%-*s", j == 0 ? "\n" : " ", j == 0 ? 8 : 0, text);
    else
      g_string_append_printf (out, "%s%s", j == 2 ? "\n  " : "\n  source: ", text);
    if (j == n - 1)
      g_string_append_c (out, '\n');
  }
}

static void
text_table (GString *out, const LawReport *r)
{
  guint n = g_strv_length (r->columns), rows = r->cells->len / n;
  guint begin = MIN (r->first_row, rows), end = MIN (rows, begin + MIN (r->max_rows, rows));
  g_autoptr (GPtrArray) cells = g_ptr_array_new_with_free_func (g_free);
  g_autofree glong *width = g_new0 (glong, n);
  for (guint j = 0; j < n; j++)
    width[j] = g_utf8_strlen (r->columns[j], -1);
  for (guint i = begin * n; i < end * n; i++) {
    const Cell *c = &g_array_index (r->cells, Cell, i);
    char *s = c->text != NULL ? g_strdup (c->text) : show (c->value, r->shows[i % n]);
    g_ptr_array_add (cells, s);
    width[i % n] = MAX (width[i % n], g_utf8_strlen (s, -1));
  }
  if (out->len > 0)
    g_string_append_c (out, '\n');
  for (guint i = 0; i < cells->len + n; i++) {
    guint j = i % n;
    const char *s = i < n ? r->columns[j] : g_ptr_array_index (cells, i - n);
    gboolean text = r->cells->len > 0 && g_array_index (r->cells, Cell, j).text != NULL;
    int pad = (int)(width[j] - g_utf8_strlen (s, -1));
    gboolean last = j == n - 1;
    g_string_append_printf (out, "%s%*s%s%*s%s", j > 0 ? "  " : "", text ? 0 : pad, "", s,
                            text && !last ? pad : 0, "", last ? "\n" : "");
  }
  if (end - begin < rows)
    g_string_append_printf (out, "(%u of %u rows; all with --format csv)\n", end - begin, rows);
}

static void
write_text (GString *out, const LawReport *r)
{
  gboolean in_group = FALSE;
  if (r->law != NULL) {
    const char *name = r->law->is_batch ? r->law->batch.name : r->law->law.name;
    const char *title = r->law->is_batch ? r->law->batch.title : r->law->law.title;
    const char *source = r->law->is_batch ? r->law->batch.source : r->law->law.source;
    g_string_append_printf (out, "law %s: %s\n    %s\n", name, title, source);
    if (r->items->len > 0 && g_array_index (r->items, Item, 0).kind != ITEM_GROUP)
      g_string_append_c (out, '\n');
  }
  for (guint i = 0; i < r->items->len; i++) {
    const Item *item = &g_array_index (r->items, Item, i);
    if (item->kind == ITEM_GROUP)
      in_group = item->key != NULL;
    text_item (out, item, in_group);
  }
  if (r->columns != NULL && r->blocks)
    text_blocks (out, r);
  else if (r->columns != NULL)
    text_table (out, r);
  for (guint i = 0; i < r->notes->len; i++)
    g_string_append_printf (out, "%snote: %s\n", i == 0 ? "\n" : "",
                            (const char *)g_ptr_array_index (r->notes, i));
}

/* ---- JSON ---- */

/* Shares become percents where the key says so. */
static double
scaled (const char *key, double v)
{
  return g_str_has_suffix (key, "_pct") ? 100 * v : v;
}

static void
json_law (JsonWriter *w, const LawFile *f)
{
  static const char *const kinds[] = {"measured", "vendor", "assumed"};
  jw_begin_object (w, "law");
  jw_string (w, "name", f->is_batch ? f->batch.name : f->law.name);
  jw_string (w, "title", f->is_batch ? f->batch.title : f->law.title);
  jw_string (w, "source", f->is_batch ? f->batch.source : f->law.source);
  if (!f->is_batch) {
    jw_string (w, "form", law_form_names[f->law.form]);
    jw_string (w, "params_counted", f->law.non_embedding ? "non_embedding" : "total");
  }
  jw_begin_array (w, "constants");
  for (guint i = 0; i < f->prov->len; i++) {
    const ProvEntry *p = g_ptr_array_index (f->prov, i);
    const char *name = strrchr (p->name, '/');
    jw_begin_object (w, NULL);
    jw_string (w, "name", name != NULL ? name + 1 : p->name);
    jw_double (w, "value", p->value);
    jw_string (w, "kind", kinds[p->kind]);
    jw_string (w, "source", p->source);
    jw_end_object (w);
  }
  jw_end_array (w);
  jw_end_object (w);
}

static void
write_item (JsonWriter *w, const Item *i, gboolean *in_group)
{
  switch (i->kind) {
  case ITEM_GROUP:
    if (*in_group)
      jw_end_object (w);
    *in_group = i->key != NULL;
    if (*in_group)
      jw_begin_object (w, i->key);
    break;
  case ITEM_TEXT:
    jw_string (w, i->key, i->text);
    break;
  case ITEM_INTERVAL:
  case ITEM_NUMBER:
    jw_double (w, i->key, scaled (i->key, i->value));
    if (i->kind == ITEM_INTERVAL) {
      g_autofree char *key = g_strconcat (i->key, "_interval", NULL);
      jw_begin_array (w, key);
      jw_double (w, NULL, scaled (i->key, i->lo));
      jw_double (w, NULL, scaled (i->key, i->hi));
      jw_end_array (w);
    }
    break;
  }
}

static void
json_table (JsonWriter *w, const LawReport *r)
{
  guint n = g_strv_length (r->columns);
  jw_begin_array (w, r->table_key);
  for (guint i = 0; i < r->cells->len; i++) {
    const Cell *c = &g_array_index (r->cells, Cell, i);
    const char *key = r->columns[i % n];
    if (i % n == 0)
      jw_begin_object (w, NULL);
    if (c->text != NULL)
      jw_string (w, key, c->text);
    else
      jw_double (w, key, scaled (key, c->value));
    if (i % n == n - 1)
      jw_end_object (w);
  }
  jw_end_array (w);
}

static void
write_json (GString *out, const LawReport *r)
{
  g_autoptr (JsonWriter) w = json_writer_new (out, 2);
  gboolean in_group = FALSE;
  jw_begin_object (w, NULL);
  jw_string (w, "command", r->command);
  if (r->law != NULL)
    json_law (w, r->law);
  for (guint i = 0; i < r->items->len; i++)
    write_item (w, &g_array_index (r->items, Item, i), &in_group);
  if (in_group)
    jw_end_object (w);
  if (r->columns != NULL)
    json_table (w, r);
  jw_begin_array (w, "notes");
  for (guint i = 0; i < r->notes->len; i++)
    jw_string (w, NULL, g_ptr_array_index (r->notes, i));
  jw_end_array (w);
  jw_end_object (w);
  g_string_append_c (out, '\n');
}

/* ---- CSV ---- */

static void
csv_value (GString *out, const char *key, double v, const char *text)
{
  char buf[G_ASCII_DTOSTR_BUF_SIZE];
  if (text != NULL)
    report_csv_field (out, text);
  else if (!isnan (v))
    g_string_append (out, g_ascii_formatd (buf, sizeof buf, "%.9g", scaled (key, v)));
}

static void
csv_table (GString *out, const LawReport *r)
{
  guint n = g_strv_length (r->columns);
  for (guint j = 0; j < n; j++)
    g_string_append_printf (out, "%s%s", r->columns[j], j + 1 < n ? "," : "\n");
  for (guint i = 0; i < r->cells->len; i++) {
    const Cell *c = &g_array_index (r->cells, Cell, i);
    csv_value (out, r->columns[i % n], c->value, c->text);
    g_string_append_c (out, i % n < n - 1 ? ',' : '\n');
  }
}

static void
csv_column (GString *head, GString *line, const char *group, const char *key, const char *suffix,
            double v, const char *text)
{
  g_string_append_printf (head, "%s%s%s%s%s", head->len > 0 ? "," : "", group != NULL ? group : "",
                          group != NULL ? "_" : "", key, suffix);
  if (head->len > 0 && line->len > 0)
    g_string_append_c (line, ',');
  csv_value (line, key, v, text);
}

static void
write_csv (GString *out, const LawReport *r)
{
  if (r->columns != NULL) {
    csv_table (out, r);
    return;
  }
  g_autoptr (GString) head = g_string_new (NULL), line = g_string_new (NULL);
  const char *group = NULL;
  if (r->law != NULL)
    csv_column (head, line, NULL, "law", "", 0,
                r->law->is_batch ? r->law->batch.name : r->law->law.name);
  else
    csv_column (head, line, NULL, "command", "", 0, r->command);
  for (guint i = 0; i < r->items->len; i++) {
    const Item *it = &g_array_index (r->items, Item, i);
    if (it->kind == ITEM_GROUP) {
      group = it->key;
      continue;
    }
    csv_column (head, line, group, it->key, "", it->value, it->text);
    if (it->kind == ITEM_INTERVAL) {
      csv_column (head, line, group, it->key, "_lo", it->lo, NULL);
      csv_column (head, line, group, it->key, "_hi", it->hi, NULL);
    }
  }
  g_string_append_printf (out, "%s\n%s\n", head->str, line->str);
}

gboolean
law_report_write (LawReport *r, const CliCommon *c, GError **error)
{
  g_autoptr (GString) out = g_string_new (NULL);
  g_assert (r->columns == NULL || r->cells->len % g_strv_length (r->columns) == 0);
  if (c->format == FORMAT_JSON)
    write_json (out, r);
  else if (c->format == FORMAT_CSV)
    write_csv (out, r);
  else
    write_text (out, r);
  return cli_output (c, out->str, (gssize)out->len, error);
}
