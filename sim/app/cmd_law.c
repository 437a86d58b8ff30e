/* law: scaling laws. The sub-commands and the options that they share. */
#include "commands.h"
#include "law_cmd.h"
#include "scenario.h"
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_LAW      "besiroglu-2024"
#define DEFAULT_SEQUENCE 4096.0

static const struct {
  const char *name, *arg, *help;
} options[O_N] = {
    [O_LAW] = {"law", "NAME", "Law or law file (default besiroglu-2024; see law list)"},
    [O_FLOPS] = {"flops", "C", "Budget of training FLOPs"},
    [O_DAYS] = {"days", "N", "Budget in days, with --gpus and --gpu, or a scenario"},
    [O_GPUS] = {"gpus", "N", "GPUs for --days"},
    [O_GPU] = {"gpu", "NAME", "GPU, for its dense peak (see list gpus)"},
    [O_PEAK] = {"peak-tflops", "X", "Dense peak of one GPU in place of --gpu"},
    [O_PRECISION] = {"precision", "NAME", "Precision of the peak: bf16 (default), fp8 ..."},
    [O_MFU] = {"mfu", "X", "Model FLOPs utilisation, 0 to 1 (default 0.4)"},
    [O_USD] = {"usd", "X", "Budget in money, with a price, a GPU and an MFU, or a scenario"},
    [O_PRICE] = {"usd-per-gpu-hour", "X", "Price of a GPU for an hour"},
    [O_LOSS] = {"loss", "L", "Loss in nats per token"},
    [O_PARAMS] = {"params", "N",
                  "Parameters (active ones of a mixture of experts), e.g. 70e9, 70B"},
    [O_TOKENS] = {"tokens", "D", "Training tokens, e.g. 1.4e12, 1.4T"},
    [O_UNIQUE] = {"unique-tokens", "U", "Different tokens there are; more are repetitions"},
    [O_TOTAL] = {"total-params", "N", "All parameters of a mixture of experts"},
    [O_TOTAL_RATIO] = {"total-ratio", "X", "All over active parameters of a mixture of experts"},
    [O_COUNT] = {"count", "HOW",
                 "N of a mixture in a law of dense models: active (default), total "
                 "or geometric mean"},
    [O_EXPERTS] = {"experts", "E", "Experts, for a law of mixtures (ludziejewski-2025)"},
    [O_GRANULARITY] = {"granularity", "G", "Dense over expert width (krajewski-2024)"},
    [O_MODEL] = {"model", "NAME", "Model, for exact FLOPs in place of 6ND (see list models)"},
    [O_SCENARIO] = {"scenario", "FILE",
                    "Scenario, for its model, cluster, price and predicted MFU"},
    [O_SEQUENCE] = {"sequence", "N", "Sequence length for exact FLOPs of --model (default 4096)"},
    [O_RATIO] = {"ratio", "K", "Tokens per parameter, as a multiple of the optimal"},
    [O_INFERENCE] = {"inference-tokens", "T", "Tokens that the model will process in use"},
    [O_BATCH] = {"batch", "B", "Global batch in tokens, to be judged"},
    [O_NOISE] = {"noise-scale", "B", "Measured gradient noise scale in tokens (McCandlish 2018)"},
    [O_MICRO] = {"micro-batch-tokens", "N", "Tokens of the smallest micro-batch of a replica"},
    [O_REPLICA_GPUS] = {"replica-gpus", "N", "GPUs of one replica (tp x pp x cp)"},
    [O_LR] = {"lr", "X", "Learning rate that is good at --base-batch"},
    [O_BASE_BATCH] = {"base-batch", "B", "Batch in tokens of --lr"},
    [O_FORM] = {"form", "NAME", "additive (default), power_sum or kaplan"},
    [O_DELTA] = {"delta", "X", "Huber threshold on ln L (default 0.001)"},
    [O_BOOTSTRAP] = {"bootstrap", "N", "Resamples for the intervals (default 1000; 0: none)"},
    [O_LEVEL] = {"level", "X", "Level of the intervals (default 0.95)"},
    [O_STARTS] = {"starts", "N", "Starts of the minimiser (default 12)"},
    [O_SAVE] = {"save", "LAW.json", "Write the fitted law, for --law"},
    [O_THRESHOLD] = {"threshold", "PCT", "Deviation that counts, percent (default 15)"},
    [O_SKIP] = {"skip-tokens", "D", "Do not judge up to here (default: one token a parameter)"},
    [O_PATIENCE] = {"patience", "N", "Rows in a row that must deviate (default 1)"},
    [O_WINDOW] = {"window", "N", "Judge the median of so many rows (default 1)"},
    [O_ANCHOR] = {"anchor-tokens", "D", "Scale the law to meet the curve up to here"},
    [O_FROM] = {"from", "C", "Least compute in FLOPs (default 1e18)"},
    [O_TO] = {"to", "C", "Most compute in FLOPs (default 1e26)"},
    [O_SIZES] = {"sizes", "N1,N2,...", "Curves of these sizes too"},
    [O_RUNS] = {"runs", "RUNS.csv", "Points of these runs too"},
};

const char *
law_option_name (LawOption o)
{
  return options[o].name;
}

void
law_args_clear (LawArgs *a)
{
  cli_common_clear (&a->common);
  for (guint i = 0; i < O_N; i++)
    g_free (a->v[i]);
  memset (a, 0, sizeof *a);
}

gboolean
law_args_parse (LawArgs *a, const LawSub *sub, int argc, char **argv, GError **error)
{
  GOptionEntry entries[LAW_MAX_OPTIONS + 3] = {{0}};
  guint n = 0;
  g_assert (sub->n_options <= LAW_MAX_OPTIONS);
  for (guint i = 0; i < sub->n_options; i++) {
    LawOption o = sub->options[i];
    gboolean file = o == O_SCENARIO || o == O_SAVE || o == O_RUNS || o == O_LAW;
    entries[n++] = (GOptionEntry){options[o].name,
                                  0,
                                  0,
                                  file ? G_OPTION_ARG_FILENAME : G_OPTION_ARG_STRING,
                                  &a->v[o],
                                  options[o].help,
                                  options[o].arg};
  }
  if (sub->all != NULL)
    entries[n++] = (GOptionEntry){"all", 0, 0, G_OPTION_ARG_NONE, &a->all, sub->all, NULL};
  if (sub->fail != NULL)
    entries[n++] = (GOptionEntry){"fail", 0, 0, G_OPTION_ARG_NONE, &a->fail, sub->fail, NULL};
  argv[0] = (char *)sub->name;
  if (!cli_parse (&argc, &argv, &sub->help, entries, &a->common, error))
    return FALSE;
  /* --seed stands among them, behind all others. */
  guint sets = a->common.sets != NULL ? g_strv_length (a->common.sets) : 0;
  if (sets > (a->common.has_seed ? 1u : 0u) && a->v[O_SCENARIO] == NULL &&
      strstr (sub->help.usage, "SCENARIO") == NULL)
    return law_usage (error, "--set: %s has no scenario whose keys could be set", sub->name);
  a->argc = argc;
  a->argv = argv;
  return TRUE;
}

gboolean
law_usage (GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error_literal (error, CLI_ERROR, CLI_ERROR_USAGE, message);
  return FALSE;
}

/* ---- numbers ---- */

static double
suffix_factor (const char *s)
{
  static const struct {
    char name;
    double factor;
  } suffixes[] = {{'k', 1e3}, {'K', 1e3},  {'M', 1e6},  {'B', 1e9},
                  {'G', 1e9}, {'T', 1e12}, {'P', 1e15}, {'E', 1e18}};
  if (*s == '\0')
    return 1;
  for (guint i = 0; i < G_N_ELEMENTS (suffixes); i++)
    if (s[0] == suffixes[i].name && s[1] == '\0')
      return suffixes[i].factor;
  return NAN;
}

gboolean
law_parse_number (const char *what, const char *text, double min, double max, double *out,
                  GError **error)
{
  char *end;
  /* strtod takes more than people write: hexadecimal, inf, nan */
  gboolean plain = text[strspn (text, "+-.0123456789eEkKMBGTP")] == '\0' && *text != '\0';
  double v = plain ? g_ascii_strtod (text, &end) : NAN;
  if (plain && end != text)
    v *= suffix_factor (end);
  else
    v = NAN;
  g_autofree char *quoted = text_quoted (text);
  if (isnan (v))
    return law_usage (error, "%s: not a number (found %s; allowed: e.g. 7e9, 7B, 1.4T)", what,
                      quoted);
  if (v < min || v > max)
    return law_usage (error, "%s: out of range (found %s; allowed: %g to %g)", what, quoted, min,
                      max);
  *out = v;
  return TRUE;
}

gboolean
law_number (const LawArgs *a, LawOption o, double min, double max, double *out, GError **error)
{
  if (a->v[o] == NULL)
    return TRUE;
  g_autofree char *what = g_strconcat ("--", options[o].name, NULL);
  return law_parse_number (what, a->v[o], min, max, out, error);
}

gboolean
law_required (const LawArgs *a, LawOption o, double min, double max, double *out, GError **error)
{
  if (a->v[o] == NULL)
    return law_usage (error, "%s: --%s %s is missing", a->argv[0], options[o].name, options[o].arg);
  return law_number (a, o, min, max, out, error);
}

LawFile *
law_chosen (const LawArgs *a, GError **error)
{
  return law_find (a->v[O_LAW] != NULL ? a->v[O_LAW] : DEFAULT_LAW, FALSE, error);
}

/* ---- models ---- */

void
law_model_init (LawModel *m)
{
  memset (m, 0, sizeof *m);
}

void
law_model_clear (LawModel *m)
{
  if (m->scenario)
    spec_clear (&m->spec);
  else if (m->given)
    model_clear (&m->model);
  memset (m, 0, sizeof *m);
}

/* Tables of tokens and positions, and the output matrix, are what "non-embedding" leaves out. */
static double
embeddings (const ModelSpec *m)
{
  double n = (double)model_params_embedding (m);
  double width = (double)(m->embed_dim > 0 ? m->embed_dim : m->hidden);
  return m->tied_embeddings ? n : n + width * (double)m->vocab;
}

static void
model_figures (LawModel *m, const ModelSpec *spec, gboolean non_embedding)
{
  double less = non_embedding ? embeddings (spec) : 0;
  m->active = (double)model_params_active (spec) - less;
  m->total = (double)model_params_total (spec) - less;
  m->flops_per_token =
      3 * model_flops_forward (spec, (gint64)m->sequence_tokens, TRUE) / m->sequence_tokens;
  m->flops_per_param_token = m->flops_per_token / m->active;
}

gboolean
law_model_read (LawModel *m, const LawArgs *a, const char *scenario, gboolean non_embedding,
                GError **error)
{
  const char *path = scenario != NULL ? scenario : a->v[O_SCENARIO];
  m->sequence_tokens = DEFAULT_SEQUENCE;
  if (path != NULL && a->v[O_MODEL] != NULL)
    return law_usage (error, "--model and --scenario: one of them (the scenario has a model)");
  if (a->v[O_SEQUENCE] != NULL && a->v[O_MODEL] == NULL)
    return law_usage (error, "--sequence: only with --model");
  if (path != NULL) {
    if (!scenario_load (path, (const char *const *)a->common.sets, &m->spec, error))
      return FALSE;
    m->given = m->scenario = TRUE;
    m->sequence_tokens = (double)m->spec.train.sequence_tokens;
    model_figures (m, &m->spec.model, non_embedding);
    return TRUE;
  }
  if (a->v[O_MODEL] == NULL)
    return TRUE;
  g_autoptr (Store) st = store_new ();
  const ModelSpec *found = store_model (st, a->v[O_MODEL], NULL, error);
  if (found == NULL)
    return FALSE;
  if (!law_number (a, O_SEQUENCE, 1, 1e8, &m->sequence_tokens, error))
    return FALSE;
  model_copy (&m->model, found);
  m->given = TRUE;
  model_figures (m, &m->model, non_embedding);
  return TRUE;
}

static gboolean
read_count (const LawArgs *a, LawCount *count, GError **error)
{
  if (a->v[O_COUNT] == NULL)
    return TRUE;
  for (int i = 0; law_count_names[i] != NULL; i++)
    if (strcmp (a->v[O_COUNT], law_count_names[i]) == 0) {
      *count = (LawCount)i;
      return TRUE;
    }
  g_autofree char *quoted = text_quoted (a->v[O_COUNT]);
  return law_usage (error, "--count: unknown (found %s; allowed: active, total, geometric)",
                    quoted);
}

gboolean
law_budget_shape (const LawArgs *a, const LawModel *m, LawBudget *b, GError **error)
{
  if (m->given) {
    const ModelSpec *spec = m->scenario ? &m->spec.model : &m->model;
    b->flops_per_param_token = m->flops_per_param_token;
    b->total_ratio = MAX (1, m->total / m->active);
    b->experts =
        spec->num_experts > 0 ? (double)spec->num_experts / (double)spec->experts_per_token : 0;
  }
  return law_number (a, O_TOTAL_RATIO, 1, 1e4, &b->total_ratio, error) &&
         law_number (a, O_UNIQUE, 1, 1e20, &b->unique_tokens, error) &&
         law_number (a, O_EXPERTS, 1, 1e5, &b->experts, error) &&
         law_number (a, O_GRANULARITY, 1, 1e4, &b->granularity, error) &&
         read_count (a, &b->count, error);
}

gboolean
law_run_read (const LawArgs *a, const LawModel *m, LawRun *run, GError **error)
{
  LawBudget b = {0};
  if (!law_budget_shape (a, m, &b, error))
    return FALSE;
  *run = (LawRun){.active = m->active,
                  .total = m->given ? m->total : 0,
                  .unique_tokens = b.unique_tokens,
                  .experts = b.experts,
                  .granularity = b.granularity,
                  .count = b.count};
  if (m->given ? a->v[O_PARAMS] != NULL : a->v[O_PARAMS] == NULL)
    return law_usage (error, "%s: either --params or a model is needed", a->argv[0]);
  if (!law_number (a, O_PARAMS, 1, 1e18, &run->active, error) ||
      !law_number (a, O_TOTAL, 1, 1e18, &run->total, error) ||
      !law_number (a, O_TOKENS, 1, 1e20, &run->tokens, error))
    return FALSE;
  if (run->total > 0 && run->total < run->active)
    return law_usage (error,
                      "--total-params: below the active parameters (found %g; allowed: %g "
                      "or more)",
                      run->total, run->active);
  return TRUE;
}

/* ---- notes ---- */

void
law_note_law (LawReport *r, const LawFile *f)
{
  for (gsize i = 0; f->notes[i] != NULL; i++)
    law_report_note (r, "%s", f->notes[i]);
}

void
law_note_count (LawReport *r, const Law *law, LawCount count)
{
  gboolean dense = law->form != LAW_GRANULAR && law->form != LAW_JOINT && law->form != LAW_FRONTIER;
  if (dense && count != LAW_COUNT_ACTIVE)
    law_report_note (
        r,
        "assumed: the %s parameters of a mixture of experts stand for N; a habit of the "
        "field without a published fit (a law of mixtures: --law ludziejewski-2025)",
        law_count_names[count]);
}

static void
note_range (LawReport *r, const char *what, const char *longest, double v, double min, double max)
{
  g_autofree char *value = law_show_count (v), *least = law_show_count (min),
                  *most = law_show_count (max);
  if (max > 0 && v > max)
    law_report_note (r, "extrapolates: %s %s are %.3g times the %s that the law was fitted on (%s)",
                     value, what, v / max, longest, most);
  if (min > 0 && v < min)
    law_report_note (r, "extrapolates: %s %s are fewer than the law was fitted on (%s or more)",
                     value, what, least);
}

void
law_note_range (LawReport *r, const Law *law, double params, double tokens)
{
  note_range (r, "parameters", "largest model", params, law->params_min, law->params_max);
  note_range (r, "tokens", "longest run", tokens, law->tokens_min, law->tokens_max);
}

gboolean
law_lend_repetition (LawReport *r, LawFile *f, double unique_tokens, GError **error)
{
  Law *law = &f->law;
  gboolean additive = law->form == LAW_ADDITIVE || law->form == LAW_POWER_SUM;
  if (unique_tokens <= 0 || law->rd_star > 0)
    return TRUE;
  if (!additive)
    return law_usage (error,
                      "--unique-tokens: the law %s says nothing about repeated tokens "
                      "(allowed: a law of form additive, e.g. muennighoff-2023)",
                      law->name);
  g_autoptr (LawFile) m = law_find ("muennighoff-2023", FALSE, error);
  if (m == NULL)
    return FALSE;
  law->rn_star = m->law.rn_star;
  law->rd_star = m->law.rd_star;
  law_report_note (r,
                   "assumed: repeated tokens and excess parameters lose value as in %s (R*_D %.4g, "
                   "R*_N %.4g), which was fitted with other constants",
                   m->law.name, law->rd_star, law->rn_star);
  return TRUE;
}

/* ---- list and dispatch ---- */

int
law_list_run (int argc, char **argv)
{
  static const char *const columns[] = {"name", "type", "form", "title", "source", NULL};
  static const LawShow shows[5] = {SHOW_NUMBER};
  static const LawSub sub = {.name = "law list",
                             .help = {"", "Lists the laws that ship: of loss and of batch size.",
                                      "clustersim law list", 0, 0, FALSE}};
  g_auto (LawArgs) a = {0};
  GError *error = NULL;
  if (!law_args_parse (&a, &sub, argc, argv, &error))
    return cli_fail (error);
  g_autoptr (LawReport) r = law_report_new ("list");
  law_report_table (r, "laws", columns, shows);
  for (int batch = 0; batch < 2; batch++) {
    g_autoptr (GPtrArray) files = law_files (batch == 1, &error);
    if (files == NULL)
      return cli_fail (error);
    for (guint i = 0; i < files->len; i++) {
      const LawFile *f = g_ptr_array_index (files, i);
      law_report_cell_text (r, batch ? f->batch.name : f->law.name);
      law_report_cell_text (r, batch ? "batch" : "loss");
      law_report_cell_text (r, batch ? batch_variable_names[f->batch.variable]
                                     : law_form_names[f->law.form]);
      law_report_cell_text (r, batch ? f->batch.title : f->law.title);
      law_report_cell_text (r, batch ? f->batch.source : f->law.source);
    }
  }
  return law_report_write (r, &a.common, &error) ? CLI_DONE : cli_fail (error);
}

static const Command subs[] = {
    {"optimal", "budget to parameters and tokens: FLOPs, days or money, or a loss",
     law_optimal_run},
    {"loss", "parameters and tokens to a loss, against the optimum", law_loss_run},
    {"overtrain", "smaller and longer than optimal: penalty, saving, break-even",
     law_overtrain_run},
    {"train", "a scenario to a loss or a number of tokens: days and money", law_train_run},
    {"batch", "critical and best batch, limit of data parallelism, learning rate", law_batch_run},
    {"remarks", "rules of thumb on a scenario, each with its source", law_remarks_run},
    {"fit", "your own runs (CSV) to a law, with intervals", law_fit_run},
    {"check", "a running loss curve (CSV) against a law", law_check_run},
    {"curve", "loss against compute as CSV, for plots/loss.gp", law_curve_run},
    {"list", "the laws that ship", law_list_run},
    {NULL, NULL, NULL}};

static void
print_overview (void)
{
  puts ("Usage: clustersim law SUBCOMMAND [OPTION...]\n\nScaling laws: what a budget buys.\n");
  for (const Command *c = subs; c->name != NULL; c++)
    printf ("  %-10s %s\n", c->name, c->summary);
  puts ("\nclustersim law SUBCOMMAND --help tells its options.\n\nExample:\n"
        "  clustersim law optimal --flops 5.76e23");
}

int
cmd_law_run (int argc, char **argv)
{
  if (argc < 2 || strcmp (argv[1], "--help") == 0 || strcmp (argv[1], "-h") == 0) {
    print_overview ();
    return CLI_DONE;
  }
  for (const Command *c = subs; c->name != NULL; c++)
    if (strcmp (c->name, argv[1]) == 0)
      return c->run (argc - 1, argv + 1);
  const char *names[G_N_ELEMENTS (subs)];
  for (guint i = 0; i < G_N_ELEMENTS (subs); i++)
    names[i] = subs[i].name;
  const char *near = nearest_name (argv[1], names);
  g_autofree char *quoted = text_quoted (argv[1]);
  GError *error = NULL;
  law_usage (&error, "law: unknown sub-command (found %s; %s%s%ssee clustersim law --help)", quoted,
             near != NULL ? "nearest: " : "", near != NULL ? near : "", near != NULL ? "; " : "");
  return cli_fail (error);
}
