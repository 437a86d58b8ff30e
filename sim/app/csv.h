/* csv: reading a table by RFC 4180, strictly.
 *
 * The first record is the header; every further record must have as many fields. Accepted beyond
 * the RFC: LF as well as CRLF, a UTF-8 byte order mark, blank lines (skipped), blanks around header
 * names (dropped). Refused, with FILE:LINE: ragged rows, a quote that is never closed or that
 * stands inside an unquoted field, NUL, text that is not UTF-8, a column name used twice, tables
 * over the limits below. Other separators than the comma are not guessed.
 *
 * Ownership: the table owns every string; cells and names are borrowed until csv_table_free.
 * Errors: domain CSV_ERROR; messages start with "FILE:LINE: ". Cost: one pass in place, 4 bytes a
 * cell.
 */
#ifndef CLUSTERSIM_CSV_H
#define CLUSTERSIM_CSV_H

#include <glib.h>

#define CSV_ERROR csv_error_quark ()
GQuark csv_error_quark (void);
typedef enum {
  CSV_ERROR_FILE,   /* cannot be read, or too big */
  CSV_ERROR_SYNTAX, /* not a table by the rules above */
  CSV_ERROR_COLUMN, /* a column that is needed is not there */
  CSV_ERROR_VALUE   /* a cell that is not what the caller needs */
} CsvError;

#define CSV_MAX_BYTES   (64 << 20) /* larger files are refused */
#define CSV_MAX_COLUMNS 4096       /* wider tables are refused */
#define CSV_MAX_FIELD_BYTES                                                                        \
  (1 << 20) /* a longer field is most likely a quote that is never closed */

typedef struct CsvTable CsvTable;

CsvTable *csv_load (const char *path, GError **error);
/* name stands for the file in messages. text is copied. */
CsvTable *csv_parse (const char *name, const char *text, gsize len, GError **error);
void csv_table_free (CsvTable *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (CsvTable, csv_table_free)

const char *csv_name (const CsvTable *t); /* the file, as in messages */
guint csv_n_rows (const CsvTable *t);     /* without the header */
guint csv_n_cols (const CsvTable *t);

/* Index of a column by its exact name, or -1. */
int csv_col (const CsvTable *t, const char *column);
/* The same for a column that must be there: -1 and an error that lists the columns there are. */
int csv_require_col (const CsvTable *t, const char *column, GError **error);
const char *csv_col_name (const CsvTable *t, guint col);

/* The text of a cell; "" when it is empty, and for col -1, so that an absent column reads as a
 * column without entries. row must be below csv_n_rows. */
const char *csv_cell (const CsvTable *t, guint row, int col);

/* Line of the file on which a row begins, from 1. */
guint csv_line (const CsvTable *t, guint row);

/* A cell as a finite number (blanks around it are allowed); VALUE error when it is anything else.
 */
gboolean csv_double (const CsvTable *t, guint row, int col, double *out, GError **error);

#endif
