/* A running loss curve against a law; see law.h. */
#include "law.h"

#include <math.h>
#include <string.h>

static int
by_value (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double
median (double *v, guint n)
{
  qsort (v, n, sizeof *v, by_value);
  return n % 2 == 1 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static gboolean
judged (const LawSample *s, const LawCheckOptions *opt)
{
  return s->tokens >= opt->skip_tokens;
}

/* What the law is multiplied by so that its median meets the curve's up to the anchor. */
static gboolean
anchor_scale (const double *ratio, const LawSample *s, guint n, const LawCheckOptions *opt,
              double *scale, GError **error)
{
  *scale = 1;
  if (opt->anchor_tokens <= 0)
    return TRUE;
  g_autofree double *v = g_new (double, n);
  guint m = 0;
  for (guint i = 0; i < n; i++)
    if (judged (&s[i], opt) && s[i].tokens <= opt->anchor_tokens)
      v[m++] = ratio[i];
  if (m == 0) {
    g_set_error (error, LAW_ERROR, LAW_ERROR_DATA,
                 "no sample to anchor the law at (found none from %g to %g tokens)",
                 opt->skip_tokens, opt->anchor_tokens);
    return FALSE;
  }
  *scale = median (v, m);
  return TRUE;
}

/* deviation[i] from the ratios: the median of the last `window` judged ones. */
static void
smooth (const double *ratio, const LawSample *s, guint n, const LawCheckOptions *opt, double scale,
        double *deviation)
{
  guint window = MAX (1, opt->window), kept = 0;
  g_autofree double *last = g_new (double, window), *v = g_new (double, window);
  for (guint i = 0; i < n; i++) {
    deviation[i] = NAN;
    if (!judged (&s[i], opt))
      continue;
    last[kept++ % window] = ratio[i];
    guint m = MIN (kept, window);
    memcpy (v, last, sizeof *v * m);
    deviation[i] = median (v, m) / scale - 1;
  }
}

static void
find_first (const double *deviation, guint n, const LawCheckOptions *opt, LawCheck *out)
{
  guint patience = MAX (1, opt->patience), row = 0;
  gint begin = -1;
  out->first = out->worst = -1;
  for (guint i = 0; i < n; i++) {
    double d = deviation[i];
    if (isnan (d)) {
      out->n_skipped++;
      continue;
    }
    out->n_checked++;
    out->last_deviation = d;
    if (out->worst < 0 || fabs (d) > fabs (out->worst_deviation)) {
      out->worst = (gint)i;
      out->worst_deviation = d;
    }
    row = fabs (d) > opt->threshold ? row + 1 : 0;
    if (row == 1)
      begin = (gint)i;
    if (row == patience && out->first < 0)
      out->first = begin;
  }
}

gboolean
law_check_curve (const Law *law, const LawRun *run, const LawSample *s, guint n,
                 const LawCheckOptions *opt, double *deviation, LawCheck *out, GError **error)
{
  memset (out, 0, sizeof *out);
  if (!law_has_loss (law)) {
    g_set_error (error, LAW_ERROR, LAW_ERROR_UNSUPPORTED,
                 "this law has no loss to hold a curve against");
    return FALSE;
  }
  if (!(opt->threshold > 0)) {
    g_set_error (error, LAW_ERROR, LAW_ERROR_RANGE,
                 "the threshold must be positive (found %g; allowed: above 0)", opt->threshold);
    return FALSE;
  }
  g_autofree double *ratio = g_new (double, n);
  for (guint i = 0; i < n; i++) {
    if (!isfinite (s[i].tokens) || s[i].tokens <= 0 || isnan (s[i].loss) || s[i].loss <= 0) {
      g_set_error (error, LAW_ERROR, LAW_ERROR_RANGE,
                   "sample %u: tokens and loss must be positive (found %g and %g)", i + 1,
                   s[i].tokens, s[i].loss);
      return FALSE;
    }
    LawRun at = *run;
    at.tokens = s[i].tokens;
    ratio[i] = s[i].loss / law_loss (law, &at);
  }
  if (!anchor_scale (ratio, s, n, opt, &out->scale, error))
    return FALSE;
  smooth (ratio, s, n, opt, out->scale, deviation);
  find_first (deviation, n, opt, out);
  return TRUE;
}
