/* law_report: what a `law` sub-command found, as text, JSON or CSV from one list of figures.
 *
 * Keys are the names in JSON and CSV and stay stable; labels are for people. A group is an object
 * in JSON and a prefix of the column in CSV ("optimum_params"). A report has at most one table; CSV
 * is the table when there is one, else one line with all figures. NaN is null, "" and "-".
 */
#ifndef CLUSTERSIM_LAW_REPORT_H
#define CLUSTERSIM_LAW_REPORT_H

#include "cli.h"
#include "read_law.h"

typedef struct LawReport LawReport;

LawReport *law_report_new (const char *command); /* "optimal" */
void law_report_free (LawReport *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LawReport, law_report_free)

typedef enum {
  SHOW_COUNT,   /* 70.2 B */
  SHOW_FLOPS,   /* 5.76e+23 */
  SHOW_LOSS,    /* 1.9364 */
  SHOW_NUMBER,  /* 4 significant digits */
  SHOW_PERCENT, /* the value is a share: 0.153 is shown as 15.3 %, and is 15.3 under a key that ends
                   in _pct */
  SHOW_USD
} LawShow;

/* A new group; key NULL ends the last one. */
void law_report_group (LawReport *r, const char *key, const char *label);
void law_report_number (LawReport *r, const char *key, const char *label, double value,
                        LawShow show, const char *unit);
void law_report_interval (LawReport *r, const char *key, const char *label, double value, double lo,
                          double hi, LawShow show, const char *unit);
void law_report_text (LawReport *r, const char *key, const char *label, const char *value);
/* An assumption, a warning, what the law leaves out. */
void law_report_note (LawReport *r, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* Columns: names NULL-terminated, shows of those that hold numbers. */
void law_report_table (LawReport *r, const char *key, const char *const *columns,
                       const LawShow *shows);
/* The next cell; a row is complete when all columns have one. */
void law_report_cell (LawReport *r, double value);
void law_report_cell_text (LawReport *r, const char *value);
/* Rows beyond these are left out of text (not of JSON and CSV); default all. */
void law_report_text_rows (LawReport *r, guint first, guint n);

/* In text, rows are paragraphs: level and rule on a line, then the remark, then its source. */
void law_report_blocks (LawReport *r);

/* The law that was used: name, title, source, its constants with theirs. */
void law_report_law (LawReport *r, const LawFile *f);

/* 70.2 B: thousands, millions, billions and trillions, as the field says them. Newly allocated. */
char *law_show_count (double v);

/* Writes it to c->output or stdout in c->format. */
gboolean law_report_write (LawReport *r, const CliCommon *c, GError **error);

#endif
