/* row_rules: what the files that turn a row of training runs into a scenario share; internal.
 *
 * A row's open questions are answered by lists of rules (scenarios/published/rules.json, README
 * there): the first that matches its cells, one list a question.
 */
#ifndef CLUSTERSIM_ROW_RULES_H
#define CLUSTERSIM_ROW_RULES_H

#include "validate.h"
#include "validate_settings.h"

typedef struct {
  GRegex *gpu, *interconnect, *framework, *model, *source, *precision; /* NULL: any */
  GRegex *gpus_per_node;
  gint64 year_min, year_max;
  gint64 experts;          /* -1: any; 0: rows without, 1: with experts alone */
  char *value;             /* fabric, software or model name */
  int sequence_parallel;   /* software rules: default of tp > 1 */
  gint64 zero_stage;       /* software rules: default sharding */
  char *precision_default; /* software rules: what the framework's runs use when it is not stated */
  gboolean fsdp;           /* software rules: zero 2 and 3 are FSDP's */
  gboolean no_accumulation; /* software rules: the batch of a replica is one micro-batch */
  /* The rule stands in for a framework or a network that nobody has described: told as assumed, and
   * the range is wider. Of a fabric rule with stands_for (regular expression of interconnect): for
   * networks whose text does not match. */
  gboolean stand_in;
  GRegex *stands_for;
  gboolean hardware, causal; /* metric rules */
} RunRule;

/* For what a row does not say of its micro-batch and of recomputation (row_fill.c). */
typedef struct {
  gint64 micro_batch_cap;             /* sequences */
  double memory_doubt, memory_wanted; /* shares of the GPU's memory */
} FillRule;

struct RunRules {
  FillRule fill;
  GArray *fabric, *software, *model, *metric;
  RowSettings *settings;
  GArray *wide, *kernel, *collective; /* of the tables of kernels and of collectives */
};

const char *row_cell (const RunContext *c, guint row, const char *col);
/* FALSE when the cell is empty or no number; integers are positive. */
gboolean row_number (const RunContext *c, guint row, const char *col, double *out);
gboolean row_integer (const RunContext *c, guint row, const char *col, gint64 *out);
void row_assume (GString *assumed, const char *what);
/* Sets the reason (owned by the caller) and returns FALSE. */
gboolean row_skip (char **reason, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* The first rule of the list that matches the row, or NULL. */
const RunRule *rule_find (const RunContext *c, const GArray *rules, guint row);

/* Micro-batch and recomputation that the row leaves open: what its memory allows (row_fill.c). The
 * Spec has passed spec_check with the smallest of both. */
gboolean row_fill (const RunContext *c, guint row, Spec *s, const RunRule *software,
                   gboolean open_recompute, GString *assumed, GError **error);

/* The architecture of a row (row_model.c). */
gboolean row_model (const RunContext *c, guint row, Spec *s, GString *assumed, char **reason);

#endif
