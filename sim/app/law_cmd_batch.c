/* law batch, remarks: what a batch size allows, and rules of thumb. */
#include "law_cmd.h"

#include <math.h>

/* ---- law batch ---- */

static const LawSub batch_sub = {
    .name = "law batch",
    .help =
        {"",
         "Critical and best batch sizes, the data parallelism that they feed, and the learning "
         "rate at another batch. Give what is known: a law is left out when its variable is not.",
         "clustersim law batch --loss 2.5 --tokens 1.4e12 --params 70e9 --batch 4M", 0, 0},
    .options = {O_LAW, O_LOSS, O_TOKENS, O_PARAMS, O_FLOPS, O_BATCH, O_NOISE, O_MICRO,
                O_REPLICA_GPUS, O_LR, O_BASE_BATCH, O_SCENARIO, O_MODEL, O_SEQUENCE},
    .n_options = 14};

typedef struct {
  double x[4]; /* by BatchVariable; 0: not known */
  double batch, noise, micro, replica_gpus, lr, base_batch;
} BatchInput;

/* A batch at a loss that no model gets to means nothing: refused as `law optimal --loss` refuses
 * it. A law that says nothing of the loss alone (a frontier, a mixture without its experts) refuses
 * none. */
static gboolean
loss_is_reached (const Law *law, double loss, GError **error)
{
  LawPoint p;
  g_autoptr (GError) why = NULL;
  if (law_optimal_for_loss (law, &(LawBudget){0}, loss, &p, &why) ||
      !g_error_matches (why, LAW_ERROR, LAW_ERROR_UNREACHABLE))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&why));
  return FALSE;
}

/* Loss from N and D, and FLOPs 6ND, when they are not given themselves. */
static gboolean
read_batch_input (const LawArgs *a, LawReport *r, const LawFile *f, const LawModel *m,
                  BatchInput *in, GError **error)
{
  *in = (BatchInput){0};
  in->x[BATCH_OF_PARAMS] = m->active;
  if (m->scenario) {
    const Spec *s = &m->spec;
    in->batch = (double)s->train.global_batch_sequences * (double)s->train.sequence_tokens;
    in->micro = (double)s->train.micro_batch_sequences * (double)s->train.sequence_tokens;
    in->replica_gpus = (double)(s->parallel.tp * s->parallel.pp * s->parallel.cp);
  }
  if (!law_number (a, O_LOSS, 1e-3, 100, &in->x[BATCH_OF_LOSS], error) ||
      !law_number (a, O_TOKENS, 1, 1e20, &in->x[BATCH_OF_TOKENS], error) ||
      !law_number (a, O_PARAMS, 1, 1e18, &in->x[BATCH_OF_PARAMS], error) ||
      !law_number (a, O_FLOPS, 1e9, 1e40, &in->x[BATCH_OF_FLOPS], error) ||
      !law_number (a, O_BATCH, 1, 1e15, &in->batch, error) ||
      !law_number (a, O_NOISE, 1, 1e15, &in->noise, error) ||
      !law_number (a, O_MICRO, 1, 1e12, &in->micro, error) ||
      !law_number (a, O_REPLICA_GPUS, 1, 1e7, &in->replica_gpus, error) ||
      !law_number (a, O_LR, 1e-12, 1e3, &in->lr, error) ||
      !law_number (a, O_BASE_BATCH, 1, 1e15, &in->base_batch, error))
    return FALSE;
  if (a->v[O_LOSS] != NULL && !loss_is_reached (&f->law, in->x[BATCH_OF_LOSS], error))
    return FALSE;
  double n = in->x[BATCH_OF_PARAMS], d = in->x[BATCH_OF_TOKENS];
  if (n > 0 && d > 0 && in->x[BATCH_OF_FLOPS] <= 0)
    in->x[BATCH_OF_FLOPS] = 6 * n * d;
  if (n > 0 && d > 0 && in->x[BATCH_OF_LOSS] <= 0 && law_has_loss (&f->law)) {
    in->x[BATCH_OF_LOSS] = law_loss (&f->law, &(LawRun){.active = n, .tokens = d});
    law_report_note (r, "assumed: the final loss of %s, %.4f", f->law.name, in->x[BATCH_OF_LOSS]);
  }
  if ((in->lr > 0) != (in->base_batch > 0))
    return law_usage (error, "%s: --lr and --base-batch belong together", a->argv[0]);
  if (in->lr > 0 && in->batch <= 0)
    return law_usage (error,
                      "%s: --batch is missing: the batch for which the learning rate is wanted",
                      a->argv[0]);
  if (in->x[BATCH_OF_LOSS] <= 0 && d <= 0 && in->x[BATCH_OF_FLOPS] <= 0 && in->noise <= 0 &&
      in->lr <= 0)
    return law_usage (error,
                      "%s: give at least one of --loss, --tokens, --flops, --noise-scale and "
                      "--lr",
                      a->argv[0]);
  return TRUE;
}

static void
batch_row (LawReport *r, const char *name, const char *kind, double batch, double overhead_at_batch,
           const BatchInput *in, double lr)
{
  double replicas = in->micro > 0 ? law_batch_replicas (batch, in->micro, 1) : NAN;
  law_report_cell_text (r, name);
  law_report_cell_text (r, kind);
  law_report_cell (r, batch);
  law_report_cell (r, replicas);
  law_report_cell (r, in->replica_gpus > 0 ? replicas * in->replica_gpus : NAN);
  law_report_cell (r, in->batch > 0 ? in->batch / batch : NAN);
  law_report_cell (r, overhead_at_batch);
  law_report_cell (r, lr);
}

static gboolean
batch_table (LawReport *r, const BatchInput *in, GError **error)
{
  static const char *const columns[] = {
      "law",      "kind",        "batch_tokens",     "max_replicas",
      "max_gpus", "batch_ratio", "extra_tokens_pct", "learning_rate",
      NULL};
  static const LawShow shows[] = {SHOW_NUMBER, SHOW_NUMBER, SHOW_COUNT,   SHOW_COUNT,
                                  SHOW_COUNT,  SHOW_NUMBER, SHOW_PERCENT, SHOW_NUMBER};
  g_autoptr (GPtrArray) files = law_files (TRUE, error);
  if (files == NULL)
    return FALSE;
  law_report_table (r, "batches", columns, shows);
  if (in->noise > 0)
    batch_row (r, "measured noise scale", "critical", in->noise,
               in->batch > 0 ? in->batch / in->noise : NAN, in, NAN);
  for (guint i = 0; i < files->len; i++) {
    const LawFile *f = g_ptr_array_index (files, i);
    const BatchLaw *b = &f->batch;
    if (in->x[b->variable] <= 0)
      continue;
    double batch = batch_law_tokens (b, in->x[b->variable]);
    double extra = b->critical && in->batch > 0 ? batch_law_overhead (b, batch, in->batch) : NAN;
    double lr = NAN;
    /* Each exponent needs its variable. */
    if ((b->lr_n >= 0 || in->x[BATCH_OF_PARAMS] > 0) && b->lr_coef > 0)
      lr = batch_law_lr (b, MAX (1, in->x[BATCH_OF_PARAMS]), MAX (1, in->x[BATCH_OF_TOKENS]),
                         MAX (1, in->x[BATCH_OF_FLOPS]));
    batch_row (r, b->name, b->critical ? "critical" : "best", batch, extra, in, lr);
    law_report_note (r, "%s: %s", b->name, b->source);
    for (gsize k = 0; f->notes[k] != NULL; k++)
      law_report_note (r, "%s: %s", b->name, f->notes[k]);
  }
  return TRUE;
}

static void
report_learning_rates (LawReport *r, const BatchInput *in)
{
  if (in->lr <= 0)
    return;
  law_report_group (r, "learning_rate", "learning rate at --batch, from that at --base-batch");
  for (int rule = LR_LINEAR; rule <= LR_NOISE; rule++) {
    if (rule == LR_NOISE && in->noise <= 0)
      continue;
    law_report_number (r, lr_rule_names[rule], lr_rule_names[rule],
                       law_lr_at ((LrRule)rule, in->lr, in->base_batch, in->batch, in->noise),
                       SHOW_NUMBER, NULL);
    law_report_note (r, "learning rate, %s: %s", lr_rule_names[rule], lr_rule_sources[rule]);
  }
}

static gboolean
batch (const LawArgs *a, LawReport *r, const LawFile *f, LawModel *m, GError **error)
{
  BatchInput in;
  if (!law_model_read (m, a, NULL, f->law.non_embedding, error) ||
      !read_batch_input (a, r, f, m, &in, error))
    return FALSE;
  static const char *const labels[] = {"loss", "tokens", "training FLOPs", "parameters"};
  law_report_group (r, "input", "input");
  for (int v = BATCH_OF_LOSS; v <= BATCH_OF_PARAMS; v++)
    if (in.x[v] > 0)
      law_report_number (r, batch_variable_names[v], labels[v], in.x[v],
                         v == BATCH_OF_LOSS    ? SHOW_LOSS
                         : v == BATCH_OF_FLOPS ? SHOW_FLOPS
                                               : SHOW_COUNT,
                         NULL);
  if (in.batch > 0)
    law_report_number (r, "batch_tokens", "batch", in.batch, SHOW_COUNT, "tokens");
  if (in.micro > 0)
    law_report_number (r, "micro_batch_tokens", "micro-batch of a replica", in.micro, SHOW_COUNT,
                       "tokens");
  report_learning_rates (r, &in);
  law_report_group (r, NULL, NULL);
  law_report_note (r, "extra_tokens_pct: tokens that the run needs beyond a small batch's, by this "
                      "law, at --batch; time saved beyond the critical batch is small");
  return batch_table (r, &in, error);
}

int
law_batch_run (int argc, char **argv)
{
  g_auto (LawArgs) a = {0};
  g_auto (LawModel) m;
  g_autoptr (LawFile) f = NULL;
  GError *error = NULL;
  law_model_init (&m);
  if (!law_args_parse (&a, &batch_sub, argc, argv, &error))
    return cli_fail (error);
  g_autoptr (LawReport) r = law_report_new ("batch");
  f = law_chosen (&a, &error);
  gboolean ok =
      f != NULL && batch (&a, r, f, &m, &error) && law_report_write (r, &a.common, &error);
  return ok ? CLI_DONE : cli_fail (error);
}

/* ---- law remarks ---- */

static const LawSub remarks_sub = {
    .name = "law remarks",
    .help =
        {"SCENARIO.json",
         "Rules of thumb of the field on a scenario: shape of the model, experts, layout, batch, "
         "and with --tokens the training length; each with its source.",
         "clustersim law remarks gpt3-175b-a100 --tokens 300e9 --all", 1, 1},
    .options = {O_LAW, O_TOKENS},
    .n_options = 2,
    .all = "Tell the rules that are met, too"};

/* Critical batch by the tokens, from the law of the largest study. */
static gboolean
critical_of (double tokens, double *critical, GError **error)
{
  *critical = 0;
  if (tokens <= 0)
    return TRUE;
  g_autoptr (LawFile) f = law_find ("bergsma-2025-batch", TRUE, error);
  if (f == NULL)
    return FALSE;
  *critical = batch_law_tokens (&f->batch, tokens);
  return TRUE;
}

static gboolean
remarks (const LawArgs *a, LawReport *r, LawModel *m, GError **error)
{
  static const char *const columns[] = {"level", "rule", "remark", "source", NULL};
  static const LawShow shows[4] = {SHOW_NUMBER};
  double tokens = 0, critical;
  if (!law_model_read (m, a, a->argv[1], FALSE, error) ||
      !law_number (a, O_TOKENS, 1, 1e20, &tokens, error) || !critical_of (tokens, &critical, error))
    return FALSE;
  g_autoptr (GPtrArray) list = law_remarks (&m->spec, tokens, critical, a->all);
  law_report_text (r, "scenario", "scenario", m->spec.name != NULL ? m->spec.name : a->argv[1]);
  law_report_table (r, "remarks", columns, shows);
  law_report_blocks (r);
  for (guint i = 0; i < list->len; i++) {
    const LawRemark *k = g_ptr_array_index (list, i);
    law_report_cell_text (r, remark_level_names[k->level]);
    law_report_cell_text (r, k->rule);
    law_report_cell_text (r, k->text);
    law_report_cell_text (r, k->source);
  }
  if (list->len == 0)
    law_report_note (r, "no remarks: all rules of thumb are met (--all lists them)");
  if (tokens <= 0)
    law_report_note (r, "tokens per parameter and the critical batch are judged with --tokens");
  return TRUE;
}

int
law_remarks_run (int argc, char **argv)
{
  g_auto (LawArgs) a = {0};
  g_auto (LawModel) m;
  GError *error = NULL;
  law_model_init (&m);
  if (!law_args_parse (&a, &remarks_sub, argc, argv, &error))
    return cli_fail (error);
  g_autoptr (LawReport) r = law_report_new ("remarks");
  gboolean ok = remarks (&a, r, &m, &error) && law_report_write (r, &a.common, &error);
  return ok ? CLI_DONE : cli_fail (error);
}
