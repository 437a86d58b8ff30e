/* law fit, check: the user's runs and curves. */
#include "csv.h"
#include "fileio.h"
#include "json_write.h"
#include "law_cmd.h"
#include "paths.h"
#include "text.h"

#include <math.h>
#include <string.h>

/* ---- tables ---- */

void
law_table_clear (LawTable *t)
{
  g_clear_pointer (&t->samples, g_array_unref);
  g_clear_pointer (&t->lines, g_array_unref);
  g_clear_pointer (&t->flops, g_array_unref);
}

static gboolean
cell_fail (const CsvTable *csv, guint row, int col, GError **error)
{
  g_autofree char *quoted = text_quoted (csv_cell (csv, row, col));
  g_set_error (error, CSV_ERROR, CSV_ERROR_VALUE,
               "%s:%u: %s must be positive (found %s; allowed: above 0)", csv_name (csv),
               csv_line (csv, row), csv_col_name (csv, (guint)col), quoted);
  return FALSE;
}

static gboolean
positive_cell (const CsvTable *csv, guint row, int col, double *out, GError **error)
{
  if (!csv_double (csv, row, col, out, error))
    return FALSE;
  return *out > 0 || cell_fail (csv, row, col, error);
}

/* A curve's loss may be nan or inf: that is what a run that diverged logs. */
static gboolean
loss_cell (const CsvTable *csv, guint row, int col, gboolean curve, double *out, GError **error)
{
  g_autofree char *s = g_ascii_strdown (csv_cell (csv, row, col), -1);
  g_strstrip (s);
  if (curve && (strcmp (s, "nan") == 0 || strcmp (s, "inf") == 0)) {
    *out = INFINITY;
    return TRUE;
  }
  return positive_cell (csv, row, col, out, error);
}

/* A curve needs step, tokens, loss; runs need params, tokens, loss. lines of a curve hold steps. */
static gboolean
fill_table (LawTable *t, const CsvTable *csv, gboolean curve, GError **error)
{
  int first = csv_require_col (csv, curve ? "step" : "params", error), tokens, loss;
  if (first < 0 || (tokens = csv_require_col (csv, "tokens", error)) < 0 ||
      (loss = csv_require_col (csv, "loss", error)) < 0)
    return FALSE;
  int flops = curve ? -1 : csv_col (csv, "flops");
  for (guint i = 0; i < csv_n_rows (csv); i++) {
    LawSample s = {0};
    double step = 0, c = 0;
    guint line = csv_line (csv, i);
    gboolean ok = curve ? csv_double (csv, i, first, &step, error)
                        : positive_cell (csv, i, first, &s.params, error);
    if (!ok || !positive_cell (csv, i, tokens, &s.tokens, error) ||
        !loss_cell (csv, i, loss, curve, &s.loss, error))
      return FALSE;
    if (flops >= 0 && *csv_cell (csv, i, flops) != '\0' &&
        !positive_cell (csv, i, flops, &c, error))
      return FALSE;
    g_array_append_val (t->samples, s);
    g_array_append_val (t->lines, line);
    if (curve)
      c = step; /* what a curve's rows are called by */
    g_array_append_val (t->flops, c);
  }
  return TRUE;
}

/* A plain name that is no file here is looked for beside the laws that ship (the examples). */
static char *
table_path (const char *name)
{
  if (strchr (name, '/') == NULL && !g_file_test (name, G_FILE_TEST_EXISTS)) {
    g_autofree char *law = data_find ("laws", "besiroglu-2024", NULL, NULL);
    g_autofree char *folder = law != NULL ? g_path_get_dirname (law) : g_strdup (".");
    g_autofree char *path = g_build_filename (folder, name, NULL);
    if (g_file_test (path, G_FILE_TEST_IS_REGULAR))
      return g_steal_pointer (&path);
  }
  return g_strdup (name);
}

gboolean
law_table_read (LawTable *t, const char *name, gboolean curve, GError **error)
{
  g_autofree char *path = table_path (name);
  g_autoptr (CsvTable) csv = csv_load (path, error);
  if (csv == NULL)
    return FALSE;
  t->samples = g_array_new (FALSE, FALSE, sizeof (LawSample));
  t->lines = g_array_new (FALSE, FALSE, sizeof (guint));
  t->flops = g_array_new (FALSE, FALSE, sizeof (double));
  if (csv_n_rows (csv) == 0)
    g_set_error (error, CSV_ERROR, CSV_ERROR_SYNTAX, "%s: no rows (found only the header)", path);
  else if (fill_table (t, csv, curve, error))
    return TRUE;
  law_table_clear (t);
  return FALSE;
}

static LawSample *
samples_of (const LawTable *t)
{
  return (LawSample *)(gpointer)t->samples->data;
}

/* ---- law fit ---- */

static const LawSub fit_sub = {
    .name = "law fit",
    .help =
        {"RUNS.csv",
         "Fits a law to your own runs: CSV with the columns params, tokens, loss and, if known, "
         "flops; final losses of runs that decayed their learning rate. Huber loss on ln L, many "
         "starts, intervals from resampled runs. --save makes a law for --law.",
         "clustersim law fit example-runs.csv --flops 1e22", 1, 1},
    .options = {O_FORM, O_FLOPS, O_BOOTSTRAP, O_LEVEL, O_DELTA, O_STARTS, O_SAVE},
    .n_options = 7};

#define DEFAULT_BOOTSTRAP 1000
#define DEFAULT_SEED      1

static gboolean
fit_options (const LawArgs *a, LawFitOptions *o, GError **error)
{
  double bootstrap = DEFAULT_BOOTSTRAP, starts = 0;
  *o = (LawFitOptions){.form = LAW_ADDITIVE,
                       .level = 0.95,
                       .seed = a->common.has_seed ? a->common.seed : DEFAULT_SEED};
  if (a->v[O_FORM] != NULL) {
    guint form = LAW_ADDITIVE;
    while (form <= LAW_KAPLAN && strcmp (law_form_names[form], a->v[O_FORM]) != 0)
      form++;
    g_autofree char *quoted = text_quoted (a->v[O_FORM]);
    if (form > LAW_KAPLAN)
      return law_usage (error, "--form: unknown (found %s; allowed: additive, power_sum, kaplan)",
                        quoted);
    o->form = (LawForm)form;
  }
  if (!law_number (a, O_BOOTSTRAP, 0, 100000, &bootstrap, error) ||
      !law_number (a, O_STARTS, 1, 100, &starts, error) ||
      !law_number (a, O_LEVEL, 0.5, 0.999, &o->level, error) ||
      !law_number (a, O_DELTA, 1e-6, 10, &o->delta, error))
    return FALSE;
  o->bootstrap = (guint)bootstrap;
  o->starts = (guint)starts;
  return TRUE;
}

/* Figures for law_fit_interval; data is the budget. */
static double
best_params (const Law *law, gpointer data)
{
  LawPoint p;
  return law_optimal (law, data, &p, NULL) ? p.params : NAN;
}

static double
best_tokens (const Law *law, gpointer data)
{
  LawPoint p;
  return law_optimal (law, data, &p, NULL) ? p.tokens : NAN;
}

static double
best_ratio (const Law *law, gpointer data)
{
  LawPoint p;
  return law_optimal (law, data, &p, NULL) ? p.tokens_per_param : NAN;
}

static double
best_loss (const Law *law, gpointer data)
{
  LawPoint p;
  return law_optimal (law, data, &p, NULL) ? p.loss : NAN;
}

/* Exponent of N_opt ~ C^a. */
static double
size_exponent (const Law *law, gpointer data G_GNUC_UNUSED)
{
  return law->form == LAW_KAPLAN ? 1 / (1 + law->alpha / law->beta)
                                 : law->beta / (law->alpha + law->beta);
}

static void
report_figure (LawReport *r, const LawFit *f, const char *key, const char *label, LawFigure figure,
               LawBudget *b, LawShow how)
{
  double lo, hi;
  law_fit_interval (f, figure, b, &lo, &hi);
  law_report_interval (r, key, label, figure (&f->law, b), lo, hi, how, NULL);
}

/* k = C / (N D) of the runs, when the table has FLOPs: the median. */
static double
runs_k (const LawTable *t)
{
  g_autoptr (GArray) k = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint i = 0; i < t->samples->len; i++) {
    double c = g_array_index (t->flops, double, i);
    double v = c / (samples_of (t)[i].params * samples_of (t)[i].tokens);
    if (c > 0) {
      guint at = k->len;
      while (at > 0 && g_array_index (k, double, at - 1) > v)
        at--;
      g_array_insert_val (k, at, v);
    }
  }
  return k->len > 0 ? g_array_index (k, double, k->len / 2) : 0;
}

static void
report_fit (LawReport *r, const LawFit *f, const LawTable *t, const LawFitOptions *o)
{
  law_report_text (r, "form", "form", law_form_names[f->law.form]);
  law_report_number (r, "runs", "runs", f->n_samples, SHOW_NUMBER, NULL);
  law_report_number (r, "rms_pct", "typical deviation of a run", f->rms_log, SHOW_PERCENT, NULL);
  law_report_number (r, "objective", "sum of Huber losses", f->objective, SHOW_NUMBER, NULL);
  law_report_number (r, "starts_that_agree", "starts that found this fit", f->n_starts_agree,
                     SHOW_NUMBER, NULL);
  law_report_number (r, "starts", "of", f->n_starts, SHOW_NUMBER, NULL);
  law_report_number (r, "outliers", "outliers (5 standard deviations)", f->n_outliers, SHOW_NUMBER,
                     NULL);
  if (o->bootstrap > 0) {
    law_report_number (r, "resamples", "resamples for the intervals", f->n_boot, SHOW_NUMBER, NULL);
    law_report_number (r, "level", "level of the intervals", f->level, SHOW_NUMBER, NULL);
    law_report_number (r, "seed", "seed", (double)o->seed, SHOW_NUMBER, NULL);
  }
  law_report_group (r, "constants", "constants");
  for (guint j = 0; j < f->n_constants; j++)
    law_report_interval (r, f->names[j], f->names[j], f->value[j], f->lo[j], f->hi[j], SHOW_NUMBER,
                         NULL);
  report_figure (r, f, "size_exponent", "optimal size grows as C to the", size_exponent, NULL,
                 SHOW_NUMBER);
  double sd = f->rms_log;
  for (guint i = 0; i < f->n_samples && f->n_outliers > 0; i++)
    if (fabs (f->residual[i]) > 3 * sd)
      law_report_note (r, "line %u is %+.1f %% off the fit", g_array_index (t->lines, guint, i),
                       100 * expm1 (f->residual[i]));
  if (fabs (f->correlation) > 0.97)
    law_report_note (
        r,
        "tokens and parameters of the runs rise together (correlation %.3f): the two "
        "terms are hard to tell apart; add runs of one size with fewer and more tokens",
        f->correlation);
  if (f->n_starts_agree < MIN (3, f->n_starts))
    law_report_note (r, "few starts found this fit: the runs may not determine it");
  if (o->bootstrap > 0 && f->n_boot < o->bootstrap)
    law_report_note (r, "%u resamples had too few sizes or token counts and were left out",
                     o->bootstrap - f->n_boot);
}

/* The law as a file that read_law takes. */
static gboolean
save_fit (const LawFit *f, const char *path, const char *runs, const LawTable *t, GError **error)
{
  g_autoptr (GString) out = g_string_new (NULL);
  g_autofree char *base = g_path_get_basename (runs), *own = g_path_get_basename (path);
  g_autofree char *source = g_strdup_printf ("fit of %u runs of %s, typical deviation %.2g %%",
                                             f->n_samples, base, 100 * f->rms_log);
  if (g_str_has_suffix (own, ".json"))
    own[strlen (own) - strlen (".json")] = '\0';
  double range[4] = {INFINITY, 0, INFINITY, 0};
  for (guint i = 0; i < t->samples->len; i++) {
    const LawSample *s = &samples_of (t)[i];
    range[0] = MIN (range[0], s->params);
    range[1] = MAX (range[1], s->params);
    range[2] = MIN (range[2], s->tokens);
    range[3] = MAX (range[3], s->tokens);
  }
  JsonWriter *w = json_writer_new (out, 2);
  jw_begin_object (w, NULL);
  jw_int (w, "format", 1);
  jw_string (w, "name", own);
  jw_string (w, "title", "fit of own runs");
  jw_string (w, "source", source);
  jw_string (w, "type", "loss");
  jw_string (w, "form", law_form_names[f->law.form]);
  jw_string (w, "params_counted", "total");
  jw_begin_object (w, "constants");
  for (guint j = 0; j < f->n_constants; j++) {
    g_autofree char *interval = g_strdup_printf ("interval %.6g to %.6g", f->lo[j], f->hi[j]);
    jw_begin_object (w, f->names[j]);
    jw_double (w, "value", f->value[j]);
    jw_string (w, "kind", "measured");
    jw_string (w, "source", source);
    if (f->n_boot > 0)
      jw_string (w, "note", interval);
    jw_end_object (w);
  }
  jw_end_object (w);
  jw_begin_object (w, "fitted_on");
  static const char *const keys[] = {"params_min", "params_max", "tokens_min", "tokens_max"};
  for (guint j = 0; j < 4; j++)
    jw_double (w, keys[j], range[j]);
  jw_end_object (w);
  jw_end_object (w);
  json_writer_free (w);
  g_string_append_c (out, '\n');
  return output_write (path, out->str, (gssize)out->len, error);
}

static gboolean
fit (const LawArgs *a, LawReport *r, LawTable *t, LawFit *f, GError **error)
{
  LawFitOptions o;
  LawBudget b = {0};
  if (!fit_options (a, &o, error) || !law_number (a, O_FLOPS, 1e9, 1e40, &b.flops, error) ||
      !law_table_read (t, a->argv[1], FALSE, error))
    return FALSE;
  if (!law_fit (samples_of (t), t->samples->len, &o, f, error)) {
    g_prefix_error (error, "%s: ", a->argv[1]);
    return FALSE;
  }
  report_fit (r, f, t, &o);
  if (b.flops > 0) {
    b.flops_per_param_token = runs_k (t);
    law_report_group (r, "optimum", "compute-optimal for --flops");
    law_report_number (r, "flops", "training FLOPs", b.flops, SHOW_FLOPS, NULL);
    report_figure (r, f, "params", "parameters", best_params, &b, SHOW_COUNT);
    report_figure (r, f, "tokens", "tokens", best_tokens, &b, SHOW_COUNT);
    report_figure (r, f, "tokens_per_param", "tokens per parameter", best_ratio, &b, SHOW_NUMBER);
    report_figure (r, f, "loss", "loss", best_loss, &b, SHOW_LOSS);
    if (b.flops_per_param_token > 0)
      law_report_note (r, "FLOPs per parameter and token of the runs: %.3f (median)",
                       b.flops_per_param_token);
    LawPoint p;
    if (law_optimal (&f->law, &b, &p, NULL)) {
      double largest = 0;
      for (guint i = 0; i < t->samples->len; i++)
        largest = MAX (largest, samples_of (t)[i].params);
      if (p.params > largest)
        law_report_note (r, "extrapolates: %.3g times the largest model of the runs",
                         p.params / largest);
    }
  }
  return a->v[O_SAVE] == NULL || save_fit (f, a->v[O_SAVE], a->argv[1], t, error);
}

int
law_fit_run (int argc, char **argv)
{
  g_auto (LawArgs) a = {0};
  LawTable t = {NULL, NULL, NULL};
  LawFit f = {0};
  GError *error = NULL;
  if (!law_args_parse (&a, &fit_sub, argc, argv, &error))
    return cli_fail (error);
  g_autoptr (LawReport) r = law_report_new ("fit");
  gboolean ok = fit (&a, r, &t, &f, &error) && law_report_write (r, &a.common, &error);
  law_fit_clear (&f);
  law_table_clear (&t);
  return ok ? CLI_DONE : cli_fail (error);
}

/* ---- law check ---- */

static const LawSub check_sub = {
    .name = "law check",
    .help = {"CURVE.csv",
             "Holds a running loss curve (CSV: step, tokens, loss; nan and inf count as diverged) "
             "against a law and tells the first step that deviates beyond the threshold, to either "
             "side.",
             "clustersim law check example-curve.csv --params 7e9 --anchor-tokens 20e9", 1, 1,
             FALSE},
    .options = {O_LAW, O_PARAMS, O_MODEL, O_SCENARIO, O_SEQUENCE, O_THRESHOLD, O_SKIP, O_PATIENCE,
                O_WINDOW, O_ANCHOR, O_UNIQUE, O_TOTAL, O_COUNT, O_EXPERTS, O_GRANULARITY},
    .n_options = 15,
    .fail = "Exit status 1 when the curve deviates"};

static gboolean
check_options (const LawArgs *a, const LawRun *run, LawCheckOptions *o, GError **error)
{
  double percent = 15, patience = 1, window = 1;
  *o = (LawCheckOptions){.skip_tokens = run->active};
  if (!law_number (a, O_THRESHOLD, 1e-3, 1e4, &percent, error) ||
      !law_number (a, O_SKIP, 0, 1e20, &o->skip_tokens, error) ||
      !law_number (a, O_PATIENCE, 1, 1e6, &patience, error) ||
      !law_number (a, O_WINDOW, 1, 1e5, &window, error) ||
      !law_number (a, O_ANCHOR, 1, 1e20, &o->anchor_tokens, error))
    return FALSE;
  o->threshold = percent / 100;
  o->patience = (guint)patience;
  o->window = (guint)window;
  return TRUE;
}

static void
check_table (LawReport *r, const LawTable *t, const LawFile *f, const LawRun *run,
             const double *dev, const LawCheck *c, const LawCheckOptions *o)
{
  static const char *const columns[] = {"step",          "tokens", "loss", "expected",
                                        "deviation_pct", "flag",   NULL};
  static const LawShow shows[] = {SHOW_NUMBER, SHOW_COUNT,   SHOW_LOSS,
                                  SHOW_LOSS,   SHOW_PERCENT, SHOW_NUMBER};
  law_report_table (r, "curve", columns, shows);
  for (guint i = 0; i < t->samples->len; i++) {
    const LawSample *s = &samples_of (t)[i];
    LawRun at = *run;
    at.tokens = s->tokens;
    law_report_cell (r, g_array_index (t->flops, double, i));
    law_report_cell (r, s->tokens);
    law_report_cell (r, s->loss);
    law_report_cell (r, c->scale * law_loss (&f->law, &at));
    law_report_cell (r, dev[i]);
    law_report_cell_text (r, isnan (dev[i])           ? "skipped"
                             : dev[i] > o->threshold  ? "high"
                             : dev[i] < -o->threshold ? "low"
                                                      : "ok");
  }
  guint about = (guint)MAX (0, (c->first >= 0 ? c->first : (gint)t->samples->len - 8) - 4);
  law_report_text_rows (r, about, 12);
}

static void
report_check (LawReport *r, const LawTable *t, const LawCheck *c, const LawCheckOptions *o)
{
  gboolean bad = c->first >= 0;
  law_report_text (r, "verdict", "verdict", bad ? "deviates" : "within the threshold");
  if (bad) {
    law_report_number (r, "first_step", "first step that deviates",
                       g_array_index (t->flops, double, c->first), SHOW_NUMBER, NULL);
    law_report_number (r, "first_tokens", "at", samples_of (t)[c->first].tokens, SHOW_COUNT,
                       "tokens");
  }
  law_report_number (r, "threshold_pct", "threshold", o->threshold, SHOW_PERCENT, NULL);
  law_report_number (r, "worst_deviation_pct", "largest deviation",
                     c->worst >= 0 ? c->worst_deviation : NAN, SHOW_PERCENT, NULL);
  if (c->worst >= 0)
    law_report_number (r, "worst_step", "at step", g_array_index (t->flops, double, c->worst),
                       SHOW_NUMBER, NULL);
  law_report_number (r, "last_deviation_pct", "last deviation",
                     c->n_checked > 0 ? c->last_deviation : NAN, SHOW_PERCENT, NULL);
  law_report_number (r, "checked", "rows judged", c->n_checked, SHOW_NUMBER, NULL);
  law_report_number (r, "skipped", "rows before --skip-tokens", c->n_skipped, SHOW_NUMBER, NULL);
  if (o->anchor_tokens > 0)
    law_report_number (r, "scale", "law scaled by", c->scale, SHOW_NUMBER, NULL);
  if (c->n_checked == 0)
    law_report_note (r, "no row is judged: all have fewer than %.3g tokens (--skip-tokens)",
                     o->skip_tokens);
  law_report_note (r, "a law tells the loss of runs that end there with a decayed learning rate; a "
                      "running curve lies some percent above it until its own decay");
  if (o->anchor_tokens <= 0)
    law_report_note (r, "the law is of other data and another tokenizer: --anchor-tokens scales it "
                        "to the beginning of the curve, or fit your own (law fit)");
}

static gboolean
check (const LawArgs *a, LawReport *r, LawFile *f, LawModel *m, gboolean *deviates, GError **error)
{
  LawTable t = {NULL, NULL, NULL};
  LawRun run;
  LawCheckOptions o;
  LawCheck c;
  if (!law_model_read (m, a, NULL, f->law.non_embedding, error) ||
      !law_run_read (a, m, &run, error) || !law_lend_repetition (r, f, run.unique_tokens, error) ||
      !check_options (a, &run, &o, error) || !law_table_read (&t, a->argv[1], TRUE, error))
    return FALSE;
  guint n = t.samples->len;
  g_autofree double *dev = g_new (double, n);
  gboolean ok = law_check_curve (&f->law, &run, samples_of (&t), n, &o, dev, &c, error);
  if (ok) {
    law_report_law (r, f);
    report_check (r, &t, &c, &o);
    check_table (r, &t, f, &run, dev, &c, &o);
    *deviates = c.first >= 0;
  } else {
    g_prefix_error (error, "%s: ", a->argv[1]);
  }
  law_table_clear (&t);
  return ok;
}

int
law_check_run (int argc, char **argv)
{
  g_auto (LawArgs) a = {0};
  g_auto (LawModel) m;
  g_autoptr (LawFile) f = NULL;
  gboolean deviates = FALSE;
  GError *error = NULL;
  law_model_init (&m);
  if (!law_args_parse (&a, &check_sub, argc, argv, &error))
    return cli_fail (error);
  g_autoptr (LawReport) r = law_report_new ("check");
  f = law_chosen (&a, &error);
  if (f == NULL || !check (&a, r, f, &m, &deviates, &error) ||
      !law_report_write (r, &a.common, &error))
    return cli_fail (error);
  return deviates && a.fail ? CLI_FAILED : CLI_DONE;
}
