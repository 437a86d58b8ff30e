/* law optimal, loss, overtrain: from budgets to sizes and losses. */
#include "law_cmd.h"
#include "predict.h"
#include "text.h"

#include <math.h>
#include <string.h>

/* ---- what a budget is in FLOPs ---- */

/* Model FLOPs a second and GPU, from a GPU's peak and an MFU. */
static gboolean
rate_of_gpu (const LawArgs *a, LawReport *r, double *rate, GError **error)
{
  double peak = 0, mfu = 0.4;
  int precision = DT_BF16;
  if (!law_number (a, O_MFU, 1e-6, 1, &mfu, error) ||
      !law_number (a, O_PEAK, 1e-3, 1e9, &peak, error))
    return FALSE;
  if (a->v[O_GPU] != NULL && a->v[O_PEAK] != NULL)
    return law_usage (error, "--gpu and --peak-tflops: one of them");
  if (a->v[O_PRECISION] != NULL) {
    for (precision = 0; precision < DT_COUNT; precision++)
      if (strcmp (dtype_names[precision], a->v[O_PRECISION]) == 0)
        break;
    g_autofree char *quoted = text_quoted (a->v[O_PRECISION]);
    if (precision == DT_COUNT)
      return law_usage (error,
                        "--precision: unknown (found %s; allowed: fp32, tf32, fp16, bf16, "
                        "fp8, mxfp8, fp4)",
                        quoted);
  }
  peak *= 1e12;
  if (a->v[O_GPU] != NULL) {
    g_autoptr (Store) st = store_new ();
    const GpuProfile *g = store_gpu (st, a->v[O_GPU], NULL, error);
    if (g == NULL)
      return FALSE;
    peak = gpu_peak_flops (g, (DType)precision);
    if (peak <= 0)
      return law_usage (error, "--precision: %s has no %s", gpu_name (g), dtype_names[precision]);
    law_report_text (r, "gpu", "GPU", gpu_name (g));
  }
  if (peak <= 0)
    return law_usage (error, "%s: --gpu, --peak-tflops or --scenario is needed", a->argv[0]);
  law_report_number (r, "peak_tflops", "dense peak", peak * 1e-12, SHOW_NUMBER, "TFLOP/s");
  law_report_number (r, "mfu", "MFU", mfu, SHOW_NUMBER, NULL);
  if (a->v[O_MFU] == NULL)
    law_report_note (r, "assumed: MFU 0.4 (give --mfu, or a --scenario to predict it)");
  *rate = peak * mfu;
  return TRUE;
}

/* The same from the predicted step of the scenario. */
static gboolean
rate_of_scenario (const LawModel *m, LawReport *r, double *rate, GError **error)
{
  Prediction p;
  if (!predict (&m->spec, NULL, NULL, &p, error))
    return FALSE;
  *rate = p.tokens_per_s_per_gpu * m->flops_per_token;
  law_report_number (r, "mfu", "predicted MFU", p.mfu, SHOW_NUMBER, NULL);
  law_report_number (r, "tokens_per_s", "predicted throughput", p.tokens_per_s, SHOW_COUNT,
                     "tokens/s");
  law_report_note (r, "assumed: models of other sizes reach the FLOP/s of the scenario's");
  prediction_clear (&p);
  return TRUE;
}

static gboolean
days_budget (const LawArgs *a, const LawModel *m, LawReport *r, double *flops, GError **error)
{
  double days = 0, gpus = m->scenario ? (double)m->spec.cluster.gpus : 0, rate;
  if (!law_number (a, O_DAYS, 1e-6, 1e6, &days, error) ||
      !(m->scenario ? law_number (a, O_GPUS, 1, 1e8, &gpus, error)
                    : law_required (a, O_GPUS, 1, 1e8, &gpus, error)))
    return FALSE;
  law_report_number (r, "days", "time", days, SHOW_NUMBER, "days");
  law_report_number (r, "gpus", "GPUs", gpus, SHOW_NUMBER, NULL);
  if (!(m->scenario ? rate_of_scenario (m, r, &rate, error) : rate_of_gpu (a, r, &rate, error)))
    return FALSE;
  *flops = law_flops_of_days (days, gpus, rate, 1);
  return TRUE;
}

static gboolean
usd_budget (const LawArgs *a, const LawModel *m, LawReport *r, double *flops, GError **error)
{
  double usd = 0, price = m->scenario ? m->spec.cluster.price_usd_per_gpu_hour : 0, rate;
  if (!law_number (a, O_USD, 1e-3, 1e15, &usd, error) ||
      !(price > 0 ? law_number (a, O_PRICE, 1e-4, 1e6, &price, error)
                  : law_required (a, O_PRICE, 1e-4, 1e6, &price, error)))
    return FALSE;
  law_report_number (r, "usd", "money", usd, SHOW_USD, "USD");
  law_report_number (r, "usd_per_gpu_hour", "price", price, SHOW_USD, "USD a GPU-hour");
  if (!(m->scenario ? rate_of_scenario (m, r, &rate, error) : rate_of_gpu (a, r, &rate, error)))
    return FALSE;
  *flops = law_flops_of_usd (usd, price, rate, 1);
  return TRUE;
}

/* One of --flops, --days, --usd, --loss; *loss > 0 for the last. */
static gboolean
read_budget (const LawArgs *a, const LawModel *m, LawReport *r, double *flops, double *loss,
             GError **error)
{
  int n = (a->v[O_FLOPS] != NULL) + (a->v[O_DAYS] != NULL) + (a->v[O_USD] != NULL) +
          (a->v[O_LOSS] != NULL);
  if (n != 1)
    return law_usage (error, "%s: %s --flops, --days, --usd and --loss", a->argv[0],
                      n == 0 ? "the budget is missing: give one of" : "give only one of");
  law_report_group (r, "budget", "budget");
  gboolean ok = TRUE;
  if (a->v[O_DAYS] != NULL)
    ok = days_budget (a, m, r, flops, error);
  else if (a->v[O_USD] != NULL)
    ok = usd_budget (a, m, r, flops, error);
  else if (a->v[O_FLOPS] != NULL)
    ok = law_number (a, O_FLOPS, 1e9, 1e40, flops, error);
  else
    ok = law_number (a, O_LOSS, 1e-3, 100, loss, error);
  return ok;
}

static void
report_point (LawReport *r, const LawPoint *p)
{
  law_report_number (r, "params", "parameters", p->params, SHOW_COUNT, NULL);
  if (p->total_params > p->params * (1 + 1e-9))
    law_report_number (r, "total_params", "all parameters", p->total_params, SHOW_COUNT, NULL);
  law_report_number (r, "tokens", "tokens", p->tokens, SHOW_COUNT, NULL);
  law_report_number (r, "tokens_per_param", "tokens per parameter", p->tokens_per_param,
                     SHOW_NUMBER, NULL);
  if (p->epochs > 1)
    law_report_number (r, "epochs", "epochs", p->epochs, SHOW_NUMBER, NULL);
  law_report_number (r, "flops", "training FLOPs", p->flops, SHOW_FLOPS, NULL);
  law_report_number (r, "loss", "loss", p->loss, SHOW_LOSS, "nats/token");
}

/* ---- law optimal ---- */

static const LawSub optimal_sub = {
    .name = "law optimal",
    .help = {"",
             "Parameters and tokens with the least loss for a budget, or for a loss the least "
             "budget.",
             "clustersim law optimal --days 30 --gpus 1024 --gpu H100-SXM-80GB --mfu 0.4", 0, 0,
             FALSE},
    .options = {O_LAW, O_FLOPS, O_DAYS, O_GPUS, O_GPU, O_PEAK, O_PRECISION, O_MFU, O_USD, O_PRICE,
                O_LOSS, O_UNIQUE, O_TOTAL_RATIO, O_COUNT, O_EXPERTS, O_GRANULARITY, O_MODEL,
                O_SCENARIO, O_SEQUENCE},
    .n_options = 19,
    .all = "Table over all laws that ship"};

/* The given model at the same compute: its tokens and its loss. */
static void
report_model (LawReport *r, const LawModel *m, const LawFile *f, const LawBudget *b, double flops)
{
  LawRun run = {.active = m->active,
                .total = m->total,
                .tokens = flops / m->flops_per_token,
                .unique_tokens = b->unique_tokens,
                .experts = b->experts,
                .granularity = b->granularity,
                .count = b->count};
  law_report_group (r, "model",
                    m->scenario ? "the scenario's model for this compute"
                                : "the given model for this compute");
  law_report_text (r, "name", "model", m->scenario ? m->spec.model.name : m->model.name);
  law_report_number (r, "params", "parameters", m->active, SHOW_COUNT, NULL);
  law_report_number (r, "tokens", "tokens", run.tokens, SHOW_COUNT, NULL);
  law_report_number (r, "loss", "loss", law_loss (&f->law, &run), SHOW_LOSS, "nats/token");
  law_report_number (r, "flops_per_token", "exact FLOPs per token", m->flops_per_token, SHOW_FLOPS,
                     NULL);
  law_report_number (r, "exact_over_6nd", "exact FLOPs over 6ND", m->flops_per_param_token / 6,
                     SHOW_NUMBER, NULL);
  law_report_note (r,
                   "the optimum counts %.3f FLOPs per parameter and token, as this model at %.0f "
                   "tokens a sequence has; 6ND would be 6",
                   m->flops_per_param_token, m->sequence_tokens);
}

static gboolean
optimal_all (LawReport *r, LawBudget *b, double loss, GError **error)
{
  static const char *const columns[] = {"law",   "params", "tokens", "tokens_per_param",
                                        "flops", "loss",   NULL};
  static const LawShow shows[] = {SHOW_NUMBER, SHOW_COUNT, SHOW_COUNT,
                                  SHOW_NUMBER, SHOW_FLOPS, SHOW_LOSS};
  g_autoptr (GPtrArray) files = law_files (FALSE, error);
  if (files == NULL)
    return FALSE;
  law_report_table (r, "laws", columns, shows);
  for (guint i = 0; i < files->len; i++) {
    const LawFile *f = g_ptr_array_index (files, i);
    LawPoint p = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    g_autoptr (GError) inner = NULL;
    if (f->law.form == LAW_GRANULAR && b->total_ratio <= 1) {
      law_report_note (r, "%s is left out: it needs --total-ratio", f->law.name);
      continue;
    }
    gboolean ok = loss > 0 ? law_optimal_for_loss (&f->law, b, loss, &p, &inner)
                           : law_optimal (&f->law, b, &p, &inner);
    if (!ok)
      law_report_note (r, "%s: %s", f->law.name, inner->message);
    law_report_cell_text (r, f->law.name);
    law_report_cell (r, p.params);
    law_report_cell (r, p.tokens);
    law_report_cell (r, p.tokens_per_param);
    law_report_cell (r, p.flops);
    law_report_cell (r, p.loss);
  }
  law_report_note (r, "losses of different laws are of different data and tokenizers: compare the "
                      "splits, not the losses");
  return TRUE;
}

static gboolean
optimal (const LawArgs *a, LawReport *r, LawFile *f, LawModel *m, GError **error)
{
  LawBudget b = {0};
  LawPoint p;
  double loss = 0;
  if (!law_model_read (m, a, NULL, f->law.non_embedding, error) ||
      !law_budget_shape (a, m, &b, error) || !read_budget (a, m, r, &b.flops, &loss, error) ||
      !law_lend_repetition (r, f, b.unique_tokens, error))
    return FALSE;
  if (loss > 0) {
    law_report_number (r, "loss", "loss", loss, SHOW_LOSS, "nats/token");
  } else {
    law_report_number (r, "flops", "compute", b.flops, SHOW_FLOPS, "FLOPs");
    law_report_number (r, "pf_days", "compute", b.flops / LAW_PFDAY_FLOPS, SHOW_NUMBER, "PF-days");
  }
  if (a->all) {
    law_report_group (r, NULL, NULL);
    return optimal_all (r, &b, loss, error);
  }
  if (!(loss > 0 ? law_optimal_for_loss (&f->law, &b, loss, &p, error)
                 : law_optimal (&f->law, &b, &p, error)))
    return FALSE;
  law_report_law (r, f);
  law_report_group (r, "optimum", "compute-optimal");
  report_point (r, &p);
  if (m->given && law_has_loss (&f->law))
    report_model (r, m, f, &b, p.flops);
  if (f->law.non_embedding)
    law_report_note (r, "parameters without embeddings, as the law counts them");
  law_note_count (r, &f->law, b.count);
  law_note_range (r, &f->law, p.params, p.tokens);
  law_note_law (r, f);
  return TRUE;
}

/* The frame of a sub-command that works with one law and perhaps a model. */
typedef gboolean (*WithLaw) (const LawArgs *a, LawReport *r, LawFile *f, LawModel *m,
                             GError **error);

static int
run_with_law (const LawSub *sub, WithLaw work, int argc, char **argv)
{
  g_auto (LawArgs) a = {0};
  g_auto (LawModel) m;
  g_autoptr (LawFile) f = NULL;
  GError *error = NULL;
  law_model_init (&m);
  if (!law_args_parse (&a, sub, argc, argv, &error))
    return cli_fail (error);
  g_autoptr (LawReport) r = law_report_new (strchr (sub->name, ' ') + 1);
  f = law_chosen (&a, &error);
  gboolean ok = f != NULL && work (&a, r, f, &m, &error) && law_report_write (r, &a.common, &error);
  return ok ? CLI_DONE : cli_fail (error);
}

int
law_optimal_run (int argc, char **argv)
{
  return run_with_law (&optimal_sub, optimal, argc, argv);
}

/* ---- law loss ---- */

static const LawSub loss_sub = {
    .name = "law loss",
    .help = {"",
             "The loss of a model of a size after a number of tokens, against the optimum of the "
             "same compute.",
             "clustersim law loss --params 70e9 --tokens 1.4e12 --law chinchilla", 0, 0, FALSE},
    .options = {O_LAW, O_PARAMS, O_TOKENS, O_UNIQUE, O_TOTAL, O_COUNT, O_EXPERTS, O_GRANULARITY,
                O_MODEL, O_SCENARIO, O_SEQUENCE},
    .n_options = 11,
    .all = "Table over all laws that ship"};

static gboolean
loss_all (LawReport *r, const LawRun *run, GError **error)
{
  static const char *const columns[] = {"law", "loss", "loss_floor", "perplexity", NULL};
  static const LawShow shows[] = {SHOW_NUMBER, SHOW_LOSS, SHOW_LOSS, SHOW_NUMBER};
  g_autoptr (GPtrArray) files = law_files (FALSE, error);
  if (files == NULL)
    return FALSE;
  law_report_table (r, "laws", columns, shows);
  for (guint i = 0; i < files->len; i++) {
    const LawFile *f = g_ptr_array_index (files, i);
    if (!law_has_loss (&f->law) || (f->law.form == LAW_GRANULAR && run->total <= run->active))
      continue;
    law_report_cell_text (r, f->law.name);
    law_report_cell (r, law_loss (&f->law, run));
    law_report_cell (r, law_loss_floor (&f->law, run));
    law_report_cell (r, exp (law_loss (&f->law, run)));
  }
  law_report_note (r, "losses of different laws are of different data and tokenizers");
  return TRUE;
}

static void
report_compute (LawReport *r, const LawModel *m, const LawRun *run)
{
  law_report_group (r, "compute", "compute");
  law_report_number (r, "flops_6nd", "6ND", 6 * run->active * run->tokens, SHOW_FLOPS, "FLOPs");
  if (!m->given)
    return;
  law_report_number (r, "flops_exact", "exact (causal attention)", m->flops_per_token * run->tokens,
                     SHOW_FLOPS, "FLOPs");
  law_report_number (r, "exact_over_6nd", "exact over 6ND", m->flops_per_param_token / 6,
                     SHOW_NUMBER, NULL);
  law_report_number (r, "sequence_tokens", "sequence", m->sequence_tokens, SHOW_NUMBER, "tokens");
}

static gboolean
loss (const LawArgs *a, LawReport *r, LawFile *f, LawModel *m, GError **error)
{
  LawRun run;
  LawOvertrain o;
  double unused;
  if (!law_model_read (m, a, NULL, f->law.non_embedding, error) ||
      !law_run_read (a, m, &run, error) || !law_required (a, O_TOKENS, 1, 1e20, &unused, error) ||
      !law_lend_repetition (r, f, run.unique_tokens, error))
    return FALSE;
  law_report_group (r, "run", "run");
  law_report_number (r, "params", "parameters", run.active, SHOW_COUNT, NULL);
  if (run.total > run.active)
    law_report_number (r, "total_params", "all parameters", run.total, SHOW_COUNT, NULL);
  law_report_number (r, "tokens", "tokens", run.tokens, SHOW_COUNT, NULL);
  if (run.unique_tokens > 0) {
    law_report_number (r, "epochs", "epochs", MAX (1, run.tokens / run.unique_tokens), SHOW_NUMBER,
                       NULL);
    law_report_number (r, "effective_tokens", "worth in new tokens",
                       law_effective_tokens (&f->law, run.tokens, run.unique_tokens), SHOW_COUNT,
                       NULL);
  }
  if (a->all) {
    report_compute (r, m, &run);
    law_report_group (r, NULL, NULL);
    return loss_all (r, &run, error);
  }
  LawBudget b = {.flops_per_param_token = m->flops_per_param_token};
  if (!law_overtrain (&f->law, &run, &b, &o, error))
    return FALSE;
  law_report_law (r, f);
  law_report_number (r, "tokens_per_param", "tokens per parameter", run.tokens / run.active,
                     SHOW_NUMBER, NULL);
  law_report_number (r, "loss", "loss", o.run.loss, SHOW_LOSS, "nats/token");
  law_report_number (r, "perplexity", "perplexity", exp (o.run.loss), SHOW_NUMBER, NULL);
  law_report_number (r, "loss_floor", "loss with endless training", law_loss_floor (&f->law, &run),
                     SHOW_LOSS, "nats/token");
  report_compute (r, m, &run);
  law_report_group (r, "optimum", "compute-optimal for the same compute");
  report_point (r, &o.same_compute);
  law_report_number (r, "loss_penalty", "loss above it", o.loss_penalty, SHOW_LOSS, "nats/token");
  law_note_count (r, &f->law, run.count);
  law_note_range (r, &f->law, run.active, run.tokens);
  law_note_law (r, f);
  return TRUE;
}

int
law_loss_run (int argc, char **argv)
{
  return run_with_law (&loss_sub, loss, argc, argv);
}

/* ---- law overtrain ---- */

static const LawSub overtrain_sub = {
    .name = "law overtrain",
    .help = {"",
             "A model that is smaller and trained longer than compute-optimal: what it costs in "
             "loss, saves in inference, and when that has paid.",
             "clustersim law overtrain --params 8.03e9 --tokens 15e12 --inference-tokens 1e13", 0,
             0, FALSE},
    .options = {O_LAW, O_PARAMS, O_TOKENS, O_FLOPS, O_RATIO, O_INFERENCE, O_UNIQUE, O_TOTAL,
                O_TOTAL_RATIO, O_COUNT, O_EXPERTS, O_GRANULARITY, O_MODEL, O_SCENARIO, O_SEQUENCE},
    .n_options = 15};

static gboolean
read_overtrain (const LawArgs *a, LawReport *r, LawFile *f, LawModel *m, LawBudget *b,
                LawOvertrain *o, GError **error)
{
  gboolean by_ratio = a->v[O_FLOPS] != NULL || a->v[O_RATIO] != NULL;
  double ratio = 1, unused;
  LawRun run;
  if (!law_model_read (m, a, NULL, f->law.non_embedding, error) ||
      !law_budget_shape (a, m, b, error) || !law_lend_repetition (r, f, b->unique_tokens, error))
    return FALSE;
  if (by_ratio) {
    if (a->v[O_PARAMS] != NULL || a->v[O_TOKENS] != NULL)
      return law_usage (error, "%s: either --params and --tokens, or --flops and --ratio",
                        a->argv[0]);
    return law_required (a, O_FLOPS, 1e9, 1e40, &b->flops, error) &&
           law_required (a, O_RATIO, 1e-6, 1e6, &ratio, error) &&
           law_overtrain_by (&f->law, b, ratio, o, error);
  }
  return law_run_read (a, m, &run, error) && law_required (a, O_TOKENS, 1, 1e20, &unused, error) &&
         law_overtrain (&f->law, &run, b, o, error);
}

static void
report_overtrain (LawReport *r, const LawOvertrain *o)
{
  law_report_group (r, "run", "run");
  report_point (r, &o->run);
  law_report_group (r, "same_compute", "compute-optimal for the same compute");
  report_point (r, &o->same_compute);
  law_report_group (r, "same_loss", "compute-optimal for the same loss");
  report_point (r, &o->same_loss);
  law_report_group (r, "tradeoff", "what it costs and saves");
  law_report_number (r, "ratio", "tokens per parameter, x optimal", o->ratio, SHOW_NUMBER, NULL);
  law_report_number (r, "loss_penalty", "loss above the optimum", o->loss_penalty, SHOW_LOSS,
                     "nats/token");
  law_report_number (r, "compute_factor", "training compute, x optimal", o->compute_factor,
                     SHOW_NUMBER, NULL);
  law_report_number (r, "inference_saving_pct", "saving of inference FLOPs", o->inference_saving,
                     SHOW_PERCENT, NULL);
  law_report_number (r, "break_even_tokens", "paid back after", o->break_even_tokens, SHOW_COUNT,
                     "tokens of inference");
}

static gboolean
overtrain (const LawArgs *a, LawReport *r, LawFile *f, LawModel *m, GError **error)
{
  LawBudget b = {0};
  LawOvertrain o;
  double inference = 0;
  if (!read_overtrain (a, r, f, m, &b, &o, error) ||
      !law_number (a, O_INFERENCE, 1, 1e22, &inference, error))
    return FALSE;
  law_report_law (r, f);
  report_overtrain (r, &o);
  if (inference > 0) {
    LawPoint p;
    b.total_ratio = o.run.total_params / o.run.params;
    if (!law_lifetime_optimal (&f->law, &b, o.run.loss, inference, &p, error))
      return FALSE;
    law_report_group (r, "lifetime", "least training and inference compute for this loss");
    law_report_number (r, "inference_tokens", "tokens of inference", inference, SHOW_COUNT, NULL);
    report_point (r, &p);
    double mine = o.run.flops + 2 * o.run.params * inference,
           best = p.flops + 2 * p.params * inference;
    law_report_number (r, "total_flops", "training and inference", best, SHOW_FLOPS, "FLOPs");
    law_report_number (r, "run_over_best", "the run's, x this", mine / best, SHOW_NUMBER, NULL);
  }
  law_report_note (r,
                   "inference is counted as 2 N FLOPs a token; its utilisation is far below that "
                   "of training, which favours the smaller model further (Sardana 2024, arXiv "
                   "2401.00448)");
  law_note_count (r, &f->law, b.count);
  law_note_range (r, &f->law, o.run.params, o.run.tokens);
  law_note_law (r, f);
  return TRUE;
}

int
law_overtrain_run (int argc, char **argv)
{
  return run_with_law (&overtrain_sub, overtrain, argc, argv);
}
