/* law_cmd: what the sub-commands of `law` share: their options and how these become numbers, models
 * and budgets. Private to cmd_law*.c. */
#ifndef CLUSTERSIM_LAW_CMD_H
#define CLUSTERSIM_LAW_CMD_H

#include "cli.h"
#include "law_report.h"
#include "store.h"

typedef enum {
  O_LAW,
  O_FLOPS,
  O_DAYS,
  O_GPUS,
  O_GPU,
  O_PEAK,
  O_PRECISION,
  O_MFU,
  O_USD,
  O_PRICE,
  O_LOSS,
  O_PARAMS,
  O_TOKENS,
  O_UNIQUE,
  O_TOTAL,
  O_TOTAL_RATIO,
  O_COUNT,
  O_EXPERTS,
  O_GRANULARITY,
  O_MODEL,
  O_SCENARIO,
  O_SEQUENCE,
  O_RATIO,
  O_INFERENCE,
  O_BATCH,
  O_NOISE,
  O_MICRO,
  O_REPLICA_GPUS,
  O_LR,
  O_BASE_BATCH,
  O_FORM,
  O_DELTA,
  O_BOOTSTRAP,
  O_LEVEL,
  O_STARTS,
  O_SAVE,
  O_THRESHOLD,
  O_SKIP,
  O_PATIENCE,
  O_WINDOW,
  O_ANCHOR,
  O_FROM,
  O_TO,
  O_SIZES,
  O_RUNS,
  O_N
} LawOption;

typedef struct {
  CliCommon common;
  char *v[O_N];  /* as typed, NULL: not given */
  gboolean all;  /* --all */
  gboolean fail; /* --fail */
  int argc;
  char **argv; /* the arguments, argv[0] the command */
} LawArgs;

void law_args_clear (LawArgs *a);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LawArgs, law_args_clear)

#define LAW_MAX_OPTIONS 32
typedef struct {
  const char *name; /* "law optimal": of the sub-command, as argv[0] */
  CliHelp help;
  LawOption options[LAW_MAX_OPTIONS];
  guint n_options;
  const char *all, *fail; /* what --all and --fail mean; NULL: not an option here */
} LawSub;

/* FALSE with *error NULL: help was printed. */
gboolean law_args_parse (LawArgs *a, const LawSub *sub, int argc, char **argv, GError **error);

/* The number of an option, e.g. 70e9, 70B, 1.4T (k M B G T P E). FALSE with error when it is none
 * or out of [min, max]; *out stays as it is when the option is not given. */
gboolean law_number (const LawArgs *a, LawOption o, double min, double max, double *out,
                     GError **error);
gboolean law_required (const LawArgs *a, LawOption o, double min, double max, double *out,
                       GError **error);
gboolean law_parse_number (const char *what, const char *text, double min, double max, double *out,
                           GError **error);
gboolean law_usage (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);
const char *law_option_name (LawOption o); /* "--flops" */

/* --law NAME, or besiroglu-2024, the corrected fit of Chinchilla. */
LawFile *law_chosen (const LawArgs *a, GError **error);

/* The model of --model or --scenario and its exact arithmetic. */
typedef struct {
  gboolean given, scenario;
  ModelSpec model; /* cleared by law_model_clear unless the scenario owns it */
  Spec spec;
  double sequence_tokens;
  double active, total;         /* parameters as the law counts them */
  double flops_per_token;       /* forward and backward, exact, causal convention */
  double flops_per_param_token; /* flops_per_token / active: 6 for 6ND */
} LawModel;

void law_model_init (LawModel *m);
void law_model_clear (LawModel *m);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LawModel, law_model_clear)
/* non_embedding: as the law counts. scenario: an argument that names one, or NULL: --scenario. */
gboolean law_model_read (LawModel *m, const LawArgs *a, const char *scenario,
                         gboolean non_embedding, GError **error);

/* --total-ratio, --experts, … into a budget, --params, --total-params, … into a run. */
gboolean law_budget_shape (const LawArgs *a, const LawModel *m, LawBudget *b, GError **error);
gboolean law_run_read (const LawArgs *a, const LawModel *m, LawRun *run, GError **error);

/* Notes of a law, and those on N and D beyond what it was fitted on. */
void law_note_law (LawReport *r, const LawFile *f);
void law_note_count (LawReport *r, const Law *law, LawCount count);
void law_note_range (LawReport *r, const Law *law, double params, double tokens);
/* Lends the law the repetition constants of muennighoff-2023 when unique tokens are given and it
 * has none of its own; notes it. */
gboolean law_lend_repetition (LawReport *r, LawFile *f, double unique_tokens, GError **error);

int law_optimal_run (int argc, char **argv);
int law_loss_run (int argc, char **argv);
int law_overtrain_run (int argc, char **argv);
int law_train_run (int argc, char **argv);
int law_batch_run (int argc, char **argv);
int law_remarks_run (int argc, char **argv);
int law_fit_run (int argc, char **argv);
int law_check_run (int argc, char **argv);
int law_curve_run (int argc, char **argv);
int law_list_run (int argc, char **argv);

/* Runs of a CSV file: columns params, tokens, loss and, when there, flops (else flops stay 0).
 * Samples and lines (of the file) are LawSample and guint; flops are double. */
typedef struct {
  GArray *samples, *lines, *flops;
} LawTable;
void law_table_clear (LawTable *t);
gboolean law_table_read (LawTable *t, const char *name, gboolean curve, GError **error);

#endif
