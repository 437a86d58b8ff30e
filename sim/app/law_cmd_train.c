/* law train, curve: a scenario to a loss, and loss against compute for a plot. */
#include "law_cmd.h"
#include "predict.h"

#include <math.h>

/* ---- law train ---- */

static const LawSub train_sub = {
    .name = "law train",
    .help = {"SCENARIO.json",
             "Days and money of a scenario to a loss, or to a number of tokens, at its predicted "
             "speed.",
             "clustersim law train gpt3-175b-a100 --tokens 300e9", 1, 1, FALSE},
    .options = {O_LAW, O_LOSS, O_TOKENS, O_UNIQUE, O_COUNT, O_EXPERTS, O_GRANULARITY, O_PRICE},
    .n_options = 8};

static void
report_time (LawReport *r, const Spec *s, const Prediction *p, double tokens, double price)
{
  double seconds = tokens / p->tokens_per_s;
  double gpu_hours = seconds / 3600 * (double)s->cluster.gpus;
  double batch = (double)s->train.global_batch_sequences * (double)s->train.sequence_tokens;
  law_report_group (r, "time", "time and money, without failures");
  law_report_number (r, "step_time_s", "step", p->step_s, SHOW_NUMBER, "s");
  law_report_number (r, "steps", "steps", ceil (tokens / batch), SHOW_COUNT, NULL);
  law_report_number (r, "tokens_per_s", "throughput", p->tokens_per_s, SHOW_COUNT, "tokens/s");
  law_report_number (r, "mfu_pct", "MFU", p->mfu, SHOW_PERCENT, NULL);
  law_report_number (r, "days", "days", seconds / 86400, SHOW_NUMBER, NULL);
  law_report_number (r, "gpu_hours", "GPU-hours", gpu_hours, SHOW_COUNT, NULL);
  law_report_number (r, "usd", "money", price > 0 ? gpu_hours * price : NAN, SHOW_USD, "USD");
  law_report_number (r, "mwh", "energy",
                     p->kwh_per_1e9_tokens >= 0 ? p->kwh_per_1e9_tokens * tokens * 1e-12 : NAN,
                     SHOW_NUMBER, "MWh");
  if (price <= 0)
    law_report_note (r, "no price: give --usd-per-gpu-hour or cluster.price_usd_per_gpu_hour");
  if (!p->memory.fits)
    law_report_note (r, "the layout does not fit the memory of the GPU");
  law_report_note (r, "failures, checkpoints and restarts are not in the days: see campaign");
}

static void
report_remarks (LawReport *r, const Spec *s, double tokens)
{
  g_autoptr (GPtrArray) list = law_remarks (s, tokens, 0, FALSE);
  for (guint i = 0; i < list->len; i++) {
    const LawRemark *k = g_ptr_array_index (list, i);
    law_report_note (r, "%s: %s (%s)", k->rule, k->text, k->source);
  }
}

/* The tokens of the run, from --tokens or --loss. */
static gboolean
tokens_wanted (const LawArgs *a, const LawFile *f, LawRun *run, GError **error)
{
  double loss = 0;
  if ((a->v[O_TOKENS] != NULL) == (a->v[O_LOSS] != NULL))
    return law_usage (error, "%s: give --tokens or --loss, one of them", a->argv[0]);
  if (a->v[O_TOKENS] != NULL)
    return TRUE;
  return law_number (a, O_LOSS, 1e-3, 100, &loss, error) &&
         law_tokens_for_loss (&f->law, run, loss, &run->tokens, error);
}

static gboolean
train (const LawArgs *a, LawReport *r, LawFile *f, LawModel *m, GError **error)
{
  LawRun run;
  Prediction p;
  if (!law_model_read (m, a, a->argv[1], f->law.non_embedding, error) ||
      !law_run_read (a, m, &run, error) || !law_lend_repetition (r, f, run.unique_tokens, error) ||
      !tokens_wanted (a, f, &run, error))
    return FALSE;
  const Spec *s = &m->spec;
  double price = s->cluster.price_usd_per_gpu_hour;
  if (!law_number (a, O_PRICE, 1e-4, 1e6, &price, error) || !predict (s, NULL, NULL, &p, error))
    return FALSE;
  law_report_law (r, f);
  law_report_text (r, "scenario", "scenario", s->name != NULL ? s->name : a->argv[1]);
  law_report_text (r, "model", "model", s->model.name);
  law_report_number (r, "gpus", "GPUs", (double)s->cluster.gpus, SHOW_NUMBER, NULL);
  law_report_group (r, "run", "run");
  law_report_number (r, "params", "parameters", run.active, SHOW_COUNT, NULL);
  law_report_number (r, "tokens", "tokens", run.tokens, SHOW_COUNT, NULL);
  law_report_number (r, "tokens_per_param", "tokens per parameter", run.tokens / run.active,
                     SHOW_NUMBER, NULL);
  law_report_number (r, "loss", "loss", law_loss (&f->law, &run), SHOW_LOSS, "nats/token");
  law_report_number (r, "flops_6nd", "6ND", 6 * run.active * run.tokens, SHOW_FLOPS, "FLOPs");
  law_report_number (r, "flops_exact", "exact FLOPs", m->flops_per_token * run.tokens, SHOW_FLOPS,
                     "FLOPs");
  law_report_number (r, "exact_over_6nd", "exact over 6ND", m->flops_per_param_token / 6,
                     SHOW_NUMBER, NULL);
  report_time (r, s, &p, run.tokens, price);
  report_remarks (r, s, run.tokens);
  law_note_range (r, &f->law, run.active, run.tokens);
  law_note_law (r, f);
  prediction_clear (&p);
  return TRUE;
}

int
law_train_run (int argc, char **argv)
{
  g_auto (LawArgs) a = {0};
  g_auto (LawModel) m;
  g_autoptr (LawFile) f = NULL;
  GError *error = NULL;
  law_model_init (&m);
  if (!law_args_parse (&a, &train_sub, argc, argv, &error))
    return cli_fail (error);
  g_autoptr (LawReport) r = law_report_new ("train");
  f = law_chosen (&a, &error);
  gboolean ok =
      f != NULL && train (&a, r, f, &m, &error) && law_report_write (r, &a.common, &error);
  return ok ? CLI_DONE : cli_fail (error);
}

/* ---- law curve ---- */

static const LawSub curve_sub = {
    .name = "law curve",
    .help = {"",
             "Loss against compute: the compute-optimal line, lines of given sizes, and the "
             "points of your runs. CSV by default; plots/loss.gp draws it.",
             "clustersim law curve --from 1e19 --to 1e25 --sizes 1e9,7e9,70e9 -o loss.csv", 0, 0,
             FALSE},
    .options = {O_LAW, O_FROM, O_TO, O_SIZES, O_RUNS, O_UNIQUE, O_TOTAL_RATIO, O_COUNT, O_EXPERTS,
                O_GRANULARITY},
    .n_options = 10,
    .all = "The compute-optimal lines of all laws that ship"};

#define STEPS_A_DECADE 5

typedef struct {
  LawReport *report;
  double from, to, series; /* series: number of the next one */
} CurveOut;

static void
curve_row (const CurveOut *o, const char *series, const char *kind, double flops, double loss,
           double params, double tokens)
{
  law_report_cell_text (o->report, series);
  law_report_cell (o->report, o->series);
  law_report_cell_text (o->report, kind);
  law_report_cell (o->report, flops);
  law_report_cell (o->report, loss);
  law_report_cell (o->report, params);
  law_report_cell (o->report, tokens);
}

static gboolean
curve_frontier (CurveOut *o, const Law *law, const LawBudget *shape, GError **error)
{
  guint n = (guint)ceil (log10 (o->to / o->from) * STEPS_A_DECADE - 1e-9);
  for (guint i = 0; i <= n; i++) {
    LawBudget b = *shape;
    LawPoint p;
    b.flops = i == n ? o->to : o->from * pow (10, (double)i / STEPS_A_DECADE);
    if (!law_optimal (law, &b, &p, error))
      return FALSE;
    curve_row (o, law->name, "optimal", p.flops, p.loss, p.params, p.tokens);
  }
  o->series++;
  return TRUE;
}

/* From a tenth of a token to 10,000 tokens a parameter, within the range of compute. */
static void
curve_size (CurveOut *o, const Law *law, const LawBudget *shape, double params)
{
  g_autofree char *size = law_show_count (params);
  g_autofree char *name = g_strconcat (size, " parameters", NULL);
  gboolean any = FALSE;
  for (double ratio = 0.1; ratio < 1.01e4; ratio *= pow (10, 1.0 / STEPS_A_DECADE)) {
    double flops = 6 * params * params * ratio;
    LawRun run = {.active = params,
                  .total = params * MAX (1, shape->total_ratio),
                  .tokens = params * ratio,
                  .unique_tokens = shape->unique_tokens,
                  .experts = shape->experts,
                  .granularity = shape->granularity,
                  .count = shape->count};
    if (flops < o->from || flops > o->to)
      continue;
    curve_row (o, name, "size", flops, law_loss (law, &run), params, run.tokens);
    any = TRUE;
  }
  o->series += any;
}

static gboolean
curve_sizes (const LawArgs *a, CurveOut *o, const Law *law, const LawBudget *shape, GError **error)
{
  if (a->v[O_SIZES] == NULL)
    return TRUE;
  if (!law_has_loss (law))
    return law_usage (error, "--sizes: the law %s has no loss", law->name);
  g_auto (GStrv) parts = g_strsplit (a->v[O_SIZES], ",", -1);
  for (gsize i = 0; parts[i] != NULL; i++) {
    double params = 0;
    if (!law_parse_number ("--sizes", g_strstrip (parts[i]), 1, 1e18, &params, error))
      return FALSE;
    curve_size (o, law, shape, params);
  }
  return TRUE;
}

static gboolean
curve_runs (const LawArgs *a, CurveOut *o, GError **error)
{
  if (a->v[O_RUNS] == NULL)
    return TRUE;
  LawTable t;
  if (!law_table_read (&t, a->v[O_RUNS], FALSE, error))
    return FALSE;
  for (guint i = 0; i < t.samples->len; i++) {
    const LawSample *s = &g_array_index (t.samples, LawSample, i);
    double flops = g_array_index (t.flops, double, i);
    curve_row (o, "runs", "run", flops > 0 ? flops : 6 * s->params * s->tokens, s->loss, s->params,
               s->tokens);
  }
  o->series++;
  law_table_clear (&t);
  return TRUE;
}

static gboolean
curve (const LawArgs *a, LawReport *r, LawFile *f, GError **error)
{
  static const char *const columns[] = {"series", "series_number", "kind",   "compute_flops",
                                        "loss",   "params",        "tokens", NULL};
  static const LawShow shows[] = {SHOW_NUMBER, SHOW_NUMBER, SHOW_NUMBER, SHOW_FLOPS,
                                  SHOW_LOSS,   SHOW_COUNT,  SHOW_COUNT};
  CurveOut o = {r, 1e18, 1e26, 0};
  LawBudget shape = {0};
  const LawModel none = {0};
  if (!law_number (a, O_FROM, 1e9, 1e40, &o.from, error) ||
      !law_number (a, O_TO, 1e9, 1e40, &o.to, error) || !law_budget_shape (a, &none, &shape, error))
    return FALSE;
  if (o.from >= o.to)
    return law_usage (error, "--from: not below --to (found %g and %g)", o.from, o.to);
  if (!law_lend_repetition (r, f, shape.unique_tokens, error))
    return FALSE;
  law_report_table (r, "points", columns, shows);
  if (a->all) {
    g_autoptr (GPtrArray) files = law_files (FALSE, error);
    if (files == NULL)
      return FALSE;
    for (guint i = 0; i < files->len; i++) {
      const LawFile *one = g_ptr_array_index (files, i);
      gboolean dense = one->law.form != LAW_GRANULAR || shape.total_ratio > 1;
      gboolean has = dense && (law_has_loss (&one->law) || one->law.l_exp > 0);
      if (has && !curve_frontier (&o, &one->law, &shape, error))
        return FALSE;
    }
  } else if (!curve_frontier (&o, &f->law, &shape, error)) {
    return FALSE;
  }
  return curve_sizes (a, &o, &f->law, &shape, error) && curve_runs (a, &o, error);
}

int
law_curve_run (int argc, char **argv)
{
  g_auto (LawArgs) a = {0};
  g_autoptr (LawFile) f = NULL;
  GError *error = NULL;
  if (!law_args_parse (&a, &curve_sub, argc, argv, &error))
    return cli_fail (error);
  g_autoptr (LawReport) r = law_report_new ("curve");
  if (a.common.format_name == NULL)
    a.common.format = FORMAT_CSV;
  f = law_chosen (&a, &error);
  gboolean ok = f != NULL && curve (&a, r, f, &error) && law_report_write (r, &a.common, &error);
  return ok ? CLI_DONE : cli_fail (error);
}
