#include "fit_report.h"
#include "json_write.h"
#include "units.h"

#include <math.h>
#include <string.h>

static void
number_free (gpointer p)
{
  FitNumber *n = p;
  g_free (n->path);
  g_free (n);
}

static void
group_free (gpointer p)
{
  FitGroup *g = p;
  g_free (g->name);
  g_free (g);
}

FitReport *
fit_report_new (void)
{
  FitReport *r = g_new (FitReport, 1);
  r->numbers = g_ptr_array_new_with_free_func (number_free);
  r->groups = g_ptr_array_new_with_free_func (group_free);
  r->warnings = g_ptr_array_new_with_free_func (g_free);
  r->points = g_array_new (FALSE, FALSE, sizeof (FitPoint));
  return r;
}

void
fit_report_free (FitReport *r)
{
  if (r == NULL)
    return;
  g_ptr_array_unref (r->numbers);
  g_ptr_array_unref (r->groups);
  g_ptr_array_unref (r->warnings);
  g_array_unref (r->points);
  g_free (r);
}

void
fit_report_warn (FitReport *r, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_ptr_array_add (r->warnings, g_strdup_vprintf (format, args));
  va_end (args);
}

void
fit_report_no_place (const SampleSet *s, FitReport *r)
{
  if (s->no_place > 0)
    fit_report_warn (r,
                     "%u samples are of a precision or a collective that the simulator does not "
                     "know: passed over",
                     s->no_place);
}

FitGroup *
fit_report_group (FitReport *r, const char *name)
{
  FitGroup *g = g_new0 (FitGroup, 1);
  g->name = g_strdup (name);
  g_ptr_array_add (r->groups, g);
  return g;
}

/* Four digits are more than any of these measurements bear, and read well. */
static double
rounded (double v)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  return g_ascii_strtod (g_ascii_formatd (text, sizeof text, "%.4g", v), NULL);
}

void
fit_report_number (FitReport *r, const char *path, double value, double lo, double hi,
                   const FitGroup *g)
{
  FitNumber *n = g_new (FitNumber, 1);
  *n = (FitNumber){g_strdup (path), rounded (value), rounded (lo),
                   rounded (hi),    g->fitted.n,     g->fitted.median_abs};
  g_ptr_array_add (r->numbers, n);
}

const FitNumber *
fit_report_find (const FitReport *r, const char *path)
{
  for (guint i = 0; i < r->numbers->len; i++) {
    const FitNumber *n = r->numbers->pdata[i];
    if (strcmp (n->path, path) == 0)
      return n;
  }
  return NULL;
}

/* ---- one group ---- */

static void
add_points (const FitProblem *f, const GArray *index, const double *p, const FitGroup *g,
            gboolean held_out, FitReport *r)
{
  const guint *at = (const guint *)(const void *)index->data;
  g_autofree double *predicted = g_new (double, MAX (index->len, 1));
  f->model (p, at, index->len, predicted, f->user);
  for (guint i = 0; i < index->len; i++) {
    FitPoint point = {g->name, f->measured[at[i]], predicted[i], held_out};
    g_array_append_val (r->points, point);
  }
}

/* Warnings that a reader must see before trusting the numbers. */
static void
judge (const FitProblem *f, const FitGroup *g, const GArray *all, const double *x,
       const char *x_name, const double *best, FitReport *r)
{
  static const double off = 0.15, median_limit = 0.08;
  const FitStats *s = g->held_out.n >= 8 ? &g->held_out : &g->fitted;
  FitLack lack;
  if (s->n > 0 && s->median_abs > median_limit)
    fit_report_warn (r,
                     "%s: the model is off by %.1f %% (median of %u samples %s; within 8 %% "
                     "is usual)",
                     g->name, 100 * s->median_abs, s->n,
                     s == &g->held_out ? "held out" : "it was fitted to");
  if (x != NULL &&
      fit_lack (f, (const guint *)(const void *)all->data, all->len, best, x, 8, off, &lack))
    fit_report_warn (r,
                     "%s: the model does not describe the samples with %s from %.3g to %.3g: off "
                     "by %+.0f %% (median of %u)",
                     g->name, x_name, lack.from, lack.to, 100 * lack.bias, lack.n);
  for (guint j = 0; j < f->n_params; j++) {
    const FitParam *q = &f->params[j];
    gboolean low = best[j] <= q->min * 1.0001, high = best[j] >= q->max * 0.9999;
    /* zero is a value that many of these may well have, and so is the share 1 */
    if (!q->fixed && ((low && q->min > 0) || (high && q->max != 1)))
      fit_report_warn (r, "%s: %s is at the %s of what is allowed, %.3g", g->name, q->name,
                       low ? "lower end" : "upper end", best[j]);
  }
}

FitGroup *
fit_group (FitProblem *f, const char *name, const double *x, const char *x_name,
           const FitOptions *o, FitReport *r, double *best, double *lo, double *hi)
{
  enum { SEARCH_ROUNDS = 120, BOOTSTRAP_SAMPLES = 300, FEWEST = 3, MAX_SEARCHED = 4000 };
  g_autoptr (GArray) fit = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autoptr (GArray) held = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autoptr (GArray) some = g_array_new (FALSE, FALSE, sizeof (guint));
  FitGroup *g = fit_report_group (r, name);
  /* few samples are all needed */
  fit_split (f->n, f->n >= 24 ? o->hold_out : 0, o->seed, fit, held);
  for (guint i = 0; i < fit->len; i += 1 + fit->len / MAX_SEARCHED)
    g_array_append_val (some, g_array_index (fit, guint, i));
  const guint *at = (const guint *)(const void *)some->data;
  fit_fix_unseen (f, at, some->len, FEWEST);
  fit_minimise (f, at, some->len, SEARCH_ROUNDS, best);
  fit_bootstrap (f, at, some->len, best, o->resamples, BOOTSTRAP_SAMPLES, o->seed, lo, hi);
  fit_stats (f, (const guint *)(const void *)fit->data, fit->len, best, &g->fitted);
  fit_stats (f, (const guint *)(const void *)held->data, held->len, best, &g->held_out);
  double shortest = G_MAXDOUBLE;
  for (guint i = 0; i < f->n; i++)
    shortest = MIN (shortest, f->measured[i]);
  g_array_set_size (some, 0);
  for (guint i = 0; i < held->len; i++)
    if (f->measured[g_array_index (held, guint, i)] >= 10 * shortest)
      g_array_append_val (some, g_array_index (held, guint, i));
  fit_stats (f, (const guint *)(const void *)some->data, some->len, best, &g->long_held_out);
  judge (f, g, fit, x, x_name, best, r);
  add_points (f, fit, best, g, FALSE, r);
  add_points (f, held, best, g, TRUE, r);
  return g;
}

/* ---- output ---- */

static void
text_stats (GString *out, const FitStats *s)
{
  if (s->n == 0)
    g_string_append_printf (out, "  %6s %8s %8s %8s", "-", "-", "-", "-");
  else
    g_string_append_printf (out, "  %6u %7.1f%% %7.1f%% %+7.1f%%", s->n, 100 * s->median_abs,
                            100 * s->p90_abs, 100 * s->bias);
}

void
fit_report_text (GString *out, const SampleSet *s, const FitReport *r, const char *title)
{
  g_string_append_printf (out, "%s: %u samples", title, s->samples->len);
  if (s->left_out > 0)
    g_string_append_printf (out, " (%u points left out by the collector's time budget)",
                            s->left_out);
  g_string_append_printf (out, "\n\n%-34s  %-33s  %s\n%-34s", "", "fitted to", "held out", "group");
  for (int i = 0; i < 2; i++)
    g_string_append_printf (out, "  %6s %8s %8s %8s", "n", "median", "p90", "bias");
  g_string_append_c (out, '\n');
  for (guint i = 0; i < r->groups->len; i++) {
    const FitGroup *g = r->groups->pdata[i];
    g_string_append_printf (out, "%-34s", g->name);
    text_stats (out, &g->fitted);
    text_stats (out, &g->held_out);
    g_string_append_c (out, '\n');
  }
  g_string_append_printf (out, "\n%-44s %12s   %s\n", "number", "value",
                          "four times in five between");
  for (guint i = 0; i < r->numbers->len; i++) {
    const FitNumber *n = r->numbers->pdata[i];
    g_string_append_printf (out, "%-44s %12.5g   %.4g … %.4g\n", n->path, n->value, n->lo, n->hi);
  }
  for (guint i = 0; i < r->warnings->len; i++)
    g_string_append_printf (out, "%swarning: %s\n", i == 0 ? "\n" : "",
                            (const char *)r->warnings->pdata[i]);
}

static void
json_stats (JsonWriter *w, const char *key, const FitStats *s)
{
  jw_begin_object (w, key);
  jw_int (w, "n", s->n);
  jw_double (w, "median_abs_error_pct", 100 * s->median_abs);
  jw_double (w, "p90_abs_error_pct", 100 * s->p90_abs);
  jw_double (w, "bias_pct", 100 * s->bias);
  jw_end_object (w);
}

void
fit_report_json (GString *out, const SampleSet *s, const FitReport *r, const char *title)
{
  g_autoptr (JsonWriter) w = json_writer_new (out, 2);
  jw_begin_object (w, NULL);
  jw_string (w, "profile", title);
  jw_int (w, "samples", s->samples->len);
  jw_int (w, "left_out", s->left_out);
  jw_begin_array (w, "groups");
  for (guint i = 0; i < r->groups->len; i++) {
    const FitGroup *g = r->groups->pdata[i];
    jw_begin_object (w, NULL);
    jw_string (w, "name", g->name);
    json_stats (w, "fitted", &g->fitted);
    json_stats (w, "held_out", &g->held_out);
    json_stats (w, "long_held_out", &g->long_held_out);
    jw_end_object (w);
  }
  jw_end_array (w);
  jw_begin_array (w, "numbers");
  for (guint i = 0; i < r->numbers->len; i++) {
    const FitNumber *n = r->numbers->pdata[i];
    jw_begin_object (w, NULL);
    jw_string (w, "path", n->path);
    jw_double (w, "value", n->value);
    jw_double (w, "low", n->lo);
    jw_double (w, "high", n->hi);
    jw_int (w, "samples", n->n);
    jw_end_object (w);
  }
  jw_end_array (w);
  jw_begin_array (w, "warnings");
  for (guint i = 0; i < r->warnings->len; i++)
    jw_string (w, NULL, r->warnings->pdata[i]);
  jw_end_array (w);
  jw_end_object (w);
  g_string_append_c (out, '\n');
}

void
fit_report_csv (GString *out, const FitReport *r)
{
  g_string_append (out, "path,value,low,high,samples,median_error_pct\n");
  for (guint i = 0; i < r->numbers->len; i++) {
    const FitNumber *n = r->numbers->pdata[i];
    char v[3][G_ASCII_DTOSTR_BUF_SIZE], e[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf (
        out, "%s,%s,%s,%s,%u,%s\n", n->path, g_ascii_dtostr (v[0], sizeof v[0], n->value),
        g_ascii_dtostr (v[1], sizeof v[1], n->lo), g_ascii_dtostr (v[2], sizeof v[2], n->hi), n->n,
        g_ascii_formatd (e, sizeof e, "%.2f", 100 * n->median_error));
  }
}

void
fit_report_points (GString *out, const FitReport *r)
{
  g_string_append (out, "group,measured_s,predicted_s,held_out\n");
  for (guint i = 0; i < r->points->len; i++) {
    const FitPoint *p = &g_array_index (r->points, FitPoint, i);
    char a[G_ASCII_DTOSTR_BUF_SIZE], b[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf (out, "%s,%s,%s,%d\n", p->group,
                            g_ascii_formatd (a, sizeof a, "%.6g", p->measured_s),
                            g_ascii_formatd (b, sizeof b, "%.6g", p->predicted_s), p->held_out);
  }
}
