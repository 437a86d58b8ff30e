/* Tables of a cross-validation; see cross.h. */
#include "cross.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
  guint n;
  double median, p90, mean; /* of the error of the prediction, in per cent of the figure */
} Summary;

typedef enum { AS_SHIPPED, REFITTED, UNSEEN, WAYS } Way;
static const char *const way_names[] = {"shipped", "refitted", "unseen"};

static double
error_pct (const CrossRun *run, Way way)
{
  const double y = way == AS_SHIPPED ? run->shipped : way == REFITTED ? run->refitted : run->unseen;
  return 100 * (exp (-y) - 1); /* predicted over measured step time */
}

static int
compare (const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double
quantile (const double *sorted, guint n, double q)
{
  const double at = q * (n - 1);
  const guint i = (guint)at, k = MIN (i + 1, n - 1);
  return sorted[i] + (sorted[k] - sorted[i]) * (at - i);
}

/* group G_MAXUINT: of all runs. */
static Summary
summary_of (const CrossResult *r, guint group, Way way)
{
  Summary s = {0};
  g_autofree double *e = g_new (double, r->runs->len);
  for (guint i = 0; i < r->runs->len; i++) {
    const CrossRun *run = &g_array_index (r->runs, CrossRun, i);
    if (group != G_MAXUINT && run->group != group)
      continue;
    const double v = error_pct (run, way);
    e[s.n++] = fabs (v);
    s.mean += v;
  }
  if (s.n == 0)
    return s;
  qsort (e, s.n, sizeof *e, compare);
  s.median = quantile (e, s.n, 0.5);
  s.p90 = quantile (e, s.n, 0.9);
  s.mean /= s.n;
  return s;
}

static double
mean_of_medians (const CrossResult *r, Way way)
{
  double sum = 0;
  for (guint g = 0; g < r->groups->len; g++)
    sum += summary_of (r, g, way).median;
  return sum / r->groups->len;
}

static void
text_row (GString *out, const CrossResult *r, guint group, const char *name)
{
  const Summary a = summary_of (r, group, AS_SHIPPED), b = summary_of (r, group, REFITTED),
                c = summary_of (r, group, UNSEEN);
  g_string_append_printf (out, "%5u %8.1f %8.1f %+8.1f %8.1f %8.1f %8.1f %+8.1f   %.70s\n", a.n,
                          a.median, a.p90, a.mean, b.median, c.median, c.p90, c.mean, name);
}

void
cross_text (const CrossResult *r, GString *out)
{
  const guint k = r->parameters->len;
  g_string_append (out, "      as shipped                 refitted left out: numbers set without "
                        "this group\n    n median %    p90 %   mean % median % median %    p90 %   "
                        "mean %\n");
  for (guint g = 0; g < r->groups->len; g++)
    text_row (out, r, g, g_ptr_array_index (r->groups, g));
  text_row (out, r, G_MAXUINT, "all rows");
  g_string_append_printf (out,
                          "mean of the groups' medians %.2f %% as shipped, %.2f %% refitted, %.2f "
                          "%% left out\n\nfactors on the numbers that were set on runs: on all "
                          "groups, and the least and most with one left out\n",
                          mean_of_medians (r, AS_SHIPPED), mean_of_medians (r, REFITTED),
                          mean_of_medians (r, UNSEEN));
  for (guint p = 0; p < k; p++) {
    double lo = HUGE_VAL, hi = -HUGE_VAL;
    for (guint g = 0; g < r->groups->len; g++) {
      lo = MIN (lo, r->factors[(g + 1) * k + p]);
      hi = MAX (hi, r->factors[(g + 1) * k + p]);
    }
    g_string_append_printf (out, "  %-42s %6.3f   %6.3f … %6.3f\n",
                            (const char *)g_ptr_array_index (r->parameters, p), r->factors[p], lo,
                            hi);
  }
}

void
cross_json (const CrossResult *r, GString *out)
{
  g_autoptr (JsonWriter) w = json_writer_new (out, 1);
  const guint k = r->parameters->len;
  jw_begin_object (w, NULL);
  jw_begin_array (w, "groups");
  for (guint g = 0; g <= r->groups->len; g++) {
    const gboolean all = g == r->groups->len;
    jw_begin_object (w, NULL);
    jw_string (w, "value", all ? "all rows" : g_ptr_array_index (r->groups, g));
    jw_int (w, "n", summary_of (r, all ? G_MAXUINT : g, AS_SHIPPED).n);
    for (guint way = 0; way < WAYS; way++) {
      const Summary s = summary_of (r, all ? G_MAXUINT : g, (Way)way);
      jw_begin_object (w, way_names[way]);
      jw_double (w, "median_abs_error_pct", s.median);
      jw_double (w, "p90_abs_error_pct", s.p90);
      jw_double (w, "mean_error_pct", s.mean);
      jw_end_object (w);
    }
    jw_begin_object (w, "factors");
    for (guint p = 0; p < k; p++)
      jw_double (w, g_ptr_array_index (r->parameters, p), r->factors[(all ? 0 : g + 1) * k + p]);
    jw_end_object (w);
    jw_end_object (w);
  }
  jw_end_array (w);
  jw_begin_object (w, "mean_of_group_medians_pct");
  for (guint way = 0; way < WAYS; way++)
    jw_double (w, way_names[way], mean_of_medians (r, (Way)way));
  jw_end_object (w);
  jw_end_object (w);
  g_string_append_c (out, '\n');
}

void
cross_csv (const CrossResult *r, GString *out)
{
  g_string_append (out, "line,group,shipped_error_pct,refitted_error_pct,unseen_error_pct\n");
  for (guint i = 0; i < r->runs->len; i++) {
    const CrossRun *run = &g_array_index (r->runs, CrossRun, i);
    g_string_append_printf (out, "%u,", run->row + 1);
    report_csv_field (out, g_ptr_array_index (r->groups, run->group));
    for (guint way = 0; way < WAYS; way++)
      g_string_append_printf (out, ",%.4f", error_pct (run, (Way)way));
    g_string_append_c (out, '\n');
  }
}
