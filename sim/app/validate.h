/* validate: published measurements against predictions.
 *
 * A table's kind is told by its header (interface §4). A row's own columns are the only inputs;
 * what a row leaves open is filled by the rules of scenarios/published/rules.json and marks the row
 * "assumed". error_pct = 100 (predicted / published - 1), for times and for rates alike.
 */
#ifndef CLUSTERSIM_VALIDATE_H
#define CLUSTERSIM_VALIDATE_H

#include "csv.h"
#include "predict.h"
#include "report.h"
#include "store.h"

typedef enum { ROW_OK, ROW_ASSUMED, ROW_SKIPPED } RowStatus;
extern const char *const row_status_names[];

typedef struct {
  char *id, *group, *reason; /* owned; reason "" unless assumed or skipped */
  const char *metric;        /* static: "step_time_s" … */
  double published, predicted, error_pct, lo, hi;
  guint features; /* of training runs: interval_features */
  RowStatus status;
  gboolean judged; /* belongs to the part of the table that has a target of its own */
} RowResult;

typedef struct {
  const char *table;  /* static: "runs" */
  const char *judged; /* static, of TableKind */
  GArray *rows;       /* RowResult */
  char *group_column; /* owned */
} ValidateResult;

typedef struct {
  const char *classes;      /* "A,B" or NULL */
  const char *const *where; /* "COLUMN~REGEX", NULL-terminated, or NULL */
  const char *group;        /* column, or NULL for the table's default */
  gboolean stage_times;
} ValidateOptions;

ValidateResult *validate_table (const CsvTable *t, Store *store, const ValidateOptions *opt,
                                GError **error);
void validate_result_free (ValidateResult *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (ValidateResult, validate_result_free)

/* Whether the columns tell a kind of table. */
gboolean validate_knows (const CsvTable *t);

void validate_json (const ValidateResult *r, GString *out);
void validate_text (const ValidateResult *r, gboolean rows, GString *out);
void validate_csv (const ValidateResult *r, GString *out);

/* ---- the kinds of tables; each a function that appends the results of a row ---- */

typedef struct RunRules RunRules;
typedef struct {
  const CsvTable *t;
  Store *store;
  const RunRules *rules;
  PredictCache *cache;
  const IntervalTable *intervals;
  gboolean stage_times;
  GArray *cells;       /* of wide tables: WideColumn */
  gboolean own_groups; /* no column was asked for: a row may name its group finer than one */
  /* Changes the Spec of a training run before it is predicted (validate --cross), or NULL. */
  void (*adjust) (gpointer self, Spec *s);
  gpointer adjust_self;
} RunContext;

/* A latency column of a wide kernel table and the device that it is of. */
typedef struct {
  int col;
  char *gpu, *kernel; /* owned */
} WideColumn;

typedef struct {
  const char *name;          /* "runs" */
  const char *const *needed; /* columns that name it, NULL-terminated */
  const char *group;         /* default column of the groups; NULL: the device */
  const char *what;          /* in words */
  const char *judged;        /* what its judged rows are, in words; NULL: it has none */
  /* Appends to rows; id is set by the function where a row has several results, else left NULL. */
  void (*row) (const RunContext *c, guint row, GArray *rows);
} TableKind;

extern const TableKind table_runs, table_gemm, table_gemm_aiter, table_gemm_deepbench,
    table_gemm_wide, table_attention, table_attention_wide, table_ops, table_collectives,
    table_memory;

/* Adds a result; reason (copied) makes it skipped when metric is NULL. */
RowResult *validate_add (GArray *rows, const char *metric, double published, double predicted,
                         StepInterval iv);
void validate_skip (GArray *rows, const char *reason);

/* validate_runs.c */
RunRules *run_rules_load (GError **error);
void run_rules_free (RunRules *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RunRules, run_rules_free)
/* Name that the first matching rule of a list gives: "wide", "kernel", "collective". texts: the
 * cells that its regular expressions look at. NULL when none matches. */
const char *run_rules_find (const RunRules *r, const char *list, const char *gpu, const char *text,
                            const char *other);

/* Row → Spec by the rules. FALSE: the row is skipped, *reason (owned by the caller) says why.
 * assumed: what was filled in, appended. */
gboolean run_row_spec (const RunContext *c, guint row, Spec *s, GString *assumed, char **reason);
void validate_run_row (const RunContext *c, guint row, RowResult *out);

#endif
