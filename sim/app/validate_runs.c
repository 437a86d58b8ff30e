/* One row of the table of training runs: prediction and error. */
#include "row_rules.h"

#include <string.h>

#include "text.h"

/* Column stage_ms: "T_F/T_B/T_W/T_comm", milliseconds of one stage and micro-batch. */
static gboolean
row_stage_times (const RunContext *c, guint row, StageTimes *out)
{
  g_auto (GStrv) parts = g_strsplit (row_cell (c, row, "stage_ms"), "/", -1);
  double v[4];
  if (g_strv_length (parts) != G_N_ELEMENTS (v))
    return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (v); i++) {
    char *end = NULL;
    v[i] = g_ascii_strtod (parts[i], &end);
    if (end == parts[i] || *end != '\0' || !(v[i] >= 0 && v[i] < 1e9))
      return FALSE;
  }
  *out = (StageTimes){v[0] * 1e-3, v[1] * 1e-3, v[2] * 1e-3, v[3] * 1e-3};
  return TRUE;
}

/* ---- what is compared ---- */

/* The convention of a printed TFLOP/s or MFU: tags of metric_note where the table has them, else
 * the rule of the source. */
static void
convention (const RunContext *c, guint row, gboolean *hardware, gboolean *causal)
{
  const RunRule *r = rule_find (c, c->rules->metric, row);
  const char *note = row_cell (c, row, "metric_note");
  *hardware = r != NULL && r->hardware;
  *causal = r != NULL && r->causal;
  if (strstr (note, "flops=hardware") != NULL)
    *hardware = TRUE;
  else if (strstr (note, "flops=model") != NULL)
    *hardware = FALSE;
  if (strstr (note, "attention=causal") != NULL)
    *causal = TRUE;
  else if (strstr (note, "attention=full") != NULL)
    *causal = FALSE;
}

/* The first figure that the row states; one that is stated and is none makes the row useless. */
static gboolean
published (const RunContext *c, guint row, RowResult *out)
{
  static const char *const metrics[] = {"step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu",
                                        "mfu_pct"};
  for (gsize i = 0; i < G_N_ELEMENTS (metrics); i++) {
    const char *found = row_cell (c, row, metrics[i]);
    if (*found == '\0')
      continue;
    if (row_number (c, row, metrics[i], &out->published) && out->published > 0) {
      out->metric = metrics[i];
      return TRUE;
    }
    g_autofree char *shown = text_quoted (found);
    return row_skip (&out->reason, "%s is no positive number (found %s)", metrics[i], shown);
  }
  return row_skip (&out->reason, "no result that can be compared");
}

static double
predicted_metric (const RunContext *c, guint row, const Spec *s, const Prediction *p,
                  const char *metric, double step_s)
{
  gboolean hardware = FALSE, causal = FALSE;
  double model = 0, hard = 0;
  if (strcmp (metric, "step_time_s") == 0)
    return step_s;
  if (strcmp (metric, "tokens_per_s_per_gpu") == 0)
    return p->tokens_per_s_per_gpu * p->step_s / step_s;
  convention (c, row, &hardware, &causal);
  predict_flops (s, causal, &model, &hard);
  double tflops = (hardware ? hard : model) / step_s * 1e-12;
  return strcmp (metric, "tflops_per_gpu") == 0 ? tflops : 100.0 * tflops / p->peak_tflops;
}

void
validate_run_row (const RunContext *c, guint row, RowResult *out)
{
  Spec s;
  g_autoptr (GString) assumed = g_string_new (NULL);
  out->status = ROW_SKIPPED;
  if (!published (c, row, out))
    return;
  spec_init (&s);
  Prediction p;
  g_autoptr (GError) err = NULL;
  if (!run_row_spec (c, row, &s, assumed, &out->reason)) {
    spec_clear (&s);
    return;
  }
  if (assumed->len > 0) /* the range knows it */
    g_ptr_array_add (s.assumed, g_strdup (assumed->str));
  if (c->adjust != NULL)
    c->adjust (c->adjust_self, &s);
  StageTimes times;
  PredictOptions options = {0};
  if (c->stage_times && row_stage_times (c, row, &times))
    options.times = &times;
  if (!predict (&s, c->cache, &options, &p, &err)) {
    out->reason = g_strdup (err->message);
    spec_clear (&s);
    return;
  }
  StepInterval iv = interval_for (c->intervals, &s, &p);
  double a = predicted_metric (c, row, &s, &p, out->metric, p.step_s * iv.lo);
  double b = predicted_metric (c, row, &s, &p, out->metric, p.step_s * iv.hi);
  out->predicted = predicted_metric (c, row, &s, &p, out->metric, p.step_s);
  out->error_pct = 100.0 * (out->predicted / out->published - 1.0);
  out->features = interval_features (&s, &p);
  out->lo = MIN (a, b);
  out->hi = MAX (a, b);
  out->status = assumed->len > 0 ? ROW_ASSUMED : ROW_OK;
  out->reason = g_strdup (assumed->str);
  prediction_clear (&p);
  spec_clear (&s);
}
