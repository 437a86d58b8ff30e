#include "report_html.h"

#include <string.h>

#include "html_plot.h"
#include "units.h"

static const char style[] =
    "body{font:15px/1.45 system-ui,'DejaVu Sans',sans-serif;color:#222;max-width:72em;"
    "margin:2em auto;padding:0 1em}h1{font-size:1.5em}"
    "h2{font-size:1.15em;margin-top:2em;border-bottom:1px solid #ccc}"
    "table{border-collapse:collapse;width:100%;font-size:.85em}"
    "th,td{padding:.25em .6em;border-bottom:1px solid #ddd;text-align:right;vertical-align:top;"
    "white-space:nowrap}th{text-align:left;white-space:normal;background:#f3f3f3;cursor:pointer;"
    "user-select:none}td.t{text-align:left;white-space:normal;min-width:9em}"
    "td:empty{color:#888}th[aria-sort=ascending]::after{content:' \\2191'}"
    "th[aria-sort=descending]::after{content:' \\2193'}"
    ".answer{font-size:1.2em;border-left:5px solid #0072B2;padding:.4em 1em;background:#f2f8fc}"
    ".no{color:#a33;font-weight:bold}.dim{color:#666}.assumed{background:#fff6e5}"
    "figure{margin:1.5em 0;text-align:center}figure svg{max-width:100%;height:auto}"
    "details{margin:.6em 0}"
    "@media print{body{max-width:none;margin:0;font-size:10px}th{cursor:auto}"
    "figure,tr{break-inside:avoid}td,th{white-space:normal}td.t{min-width:6em}}";

/* A click on a head sorts by that column: numbers by data-v, else by text. */
static const char script[] =
    "document.querySelectorAll('table.sort').forEach(function(t){var h=t.tHead.rows[0].cells;"
    "Array.prototype.forEach.call(h,function(c,i){c.tabIndex=0;function go(){"
    "var up=c.getAttribute('aria-sort')!=='ascending',b=t.tBodies[0];"
    "Array.prototype.forEach.call(h,function(x){x.removeAttribute('aria-sort')});"
    "c.setAttribute('aria-sort',up?'ascending':'descending');"
    "Array.prototype.slice.call(b.rows).sort(function(x,y){"
    "var p=x.cells[i].dataset.v,q=y.cells[i].dataset.v,d=p!==undefined&&q!==undefined?p-q:"
    "x.cells[i].textContent.localeCompare(y.cells[i].textContent);return up?d:-d})"
    ".forEach(function(r){b.appendChild(r)})}c.onclick=go;"
    "c.onkeydown=function(e){if(e.key==='Enter')go()}})});"
    /* what is folded is printed too */
    "addEventListener('beforeprint',function(){document.querySelectorAll('details')"
    ".forEach(function(d){d.open=true})});";

void
html_text (GString *out, const char *text)
{
  g_autofree char *safe = g_markup_escape_text (text, -1);
  g_string_append (out, safe);
}

static void cell (GString *out, double value, const char *format, ...) G_GNUC_PRINTF (3, 4);

/* A cell that sorts by value. */
static void
cell (GString *out, double value, const char *format, ...)
{
  char buf[G_ASCII_DTOSTR_BUF_SIZE];
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_string_append_printf (out, "<td data-v=\"%s\">",
                          g_ascii_formatd (buf, sizeof buf, "%.9g", value));
  html_text (out, text);
  g_string_append (out, "</td>");
}

static void
text_cell (GString *out, const char *text)
{
  g_string_append (out, "<td class=\"t\">");
  html_text (out, text);
  g_string_append (out, "</td>");
}

static void
head (GString *out, const char *const *titles)
{
  g_string_append (out, "<table class=\"sort\"><thead><tr>");
  for (gsize i = 0; titles[i] != NULL; i++) {
    g_string_append (out, "<th scope=\"col\">");
    html_text (out, titles[i]);
    g_string_append (out, "</th>");
  }
  g_string_append (out, "</tr></thead><tbody>\n");
}

static char *
layout_text (const Spec *s)
{
  const ParallelSpec *p = &s->parallel;
  g_autofree char *recompute = spec_recompute_text (s);
  return g_strdup_printf (
      "tp %" G_GINT64_FORMAT ", cp %" G_GINT64_FORMAT ", pp %" G_GINT64_FORMAT
      " x %" G_GINT64_FORMAT ", ep %" G_GINT64_FORMAT ", dp %" G_GINT64_FORMAT
      ", zero %" G_GINT64_FORMAT "%s, micro-batch %" G_GINT64_FORMAT ", recompute %s, %s",
      p->tp, p->cp, p->pp, p->vpp, p->ep, p->dp, p->zero_stage, p->fsdp ? " (FSDP)" : "",
      s->train.micro_batch_sequences, recompute, dtype_names[s->train.precision]);
}

static double
gib (gint64 bytes)
{
  return (double)bytes / (double)(1 << 30);
}

/* ---- the answer ---- */

static void
put_answer (GString *out, const HtmlScenario *a)
{
  const Prediction *p = a->p;
  g_autofree char *rate = format_count (p->tokens_per_s);
  g_string_append (out, "<p class=\"answer\">");
  html_text (out, a->s->name);
  g_string_append_printf (
      out,
      ": <b>%.4g s</b> a step (measured should lie in %.4g … %.4g s four times in five), %s "
      "tokens/s, %.0f tokens/s/GPU, %.1f %% MFU.",
      p->step_s, p->step_s * a->iv.lo, p->step_s * a->iv.hi, rate, p->tokens_per_s_per_gpu,
      100 * p->mfu);
  if (a->job_tokens > 0) {
    double days = a->job_tokens / p->tokens_per_s / 86400;
    g_string_append_printf (out,
                            " %.3g tokens take <b>%.1f days</b> (%.1f … %.1f) where nothing fails.",
                            a->job_tokens, days, days * a->iv.lo, days * a->iv.hi);
  }
  g_string_append_printf (out, " Memory: %.1f of %.1f GiB, <span%s>%s</span>.",
                          gib (p->memory.peak_bytes), gib (p->memory.capacity_bytes),
                          p->memory.fits ? "" : " class=\"no\"",
                          p->memory.fits ? "it fits" : "it does not fit");
  g_string_append_printf (out, " %.1f GPU-hours per 1e9 tokens", p->gpu_hours_per_1e9_tokens);
  if (p->usd_per_1e9_tokens >= 0)
    g_string_append_printf (out, ", %.2f USD", p->usd_per_1e9_tokens);
  if (p->kwh_per_1e9_tokens >= 0)
    g_string_append_printf (out, ", %.1f kWh", p->kwh_per_1e9_tokens);
  g_string_append (out, ".</p>\n");
  if (a->s->published_step_s > 0) {
    g_string_append_printf (out, "<p>Published: %.4g s, predicted %+.1f %% from it (",
                            a->s->published_step_s, 100 * (p->step_s / a->s->published_step_s - 1));
    html_text (out, a->s->published_source != NULL ? a->s->published_source : "no source");
    g_string_append (out, ").</p>\n");
  }
}

static void
put_scenarios (GString *out, const HtmlScenario *all, guint n)
{
  static const char *const titles[] = {"Scenario",
                                       "GPUs",
                                       "Layout",
                                       "Step, s",
                                       "Low, s",
                                       "High, s",
                                       "Tokens/s/GPU",
                                       "MFU, %",
                                       "Peak, GiB",
                                       "GPU-hours per 1e9 tokens",
                                       "USD per 1e9 tokens",
                                       NULL};
  g_string_append (out, "<h2>Compared</h2>\n");
  head (out, titles);
  for (guint i = 0; i < n; i++) {
    const Prediction *p = all[i].p;
    g_autofree char *layout = layout_text (all[i].s);
    g_string_append (out, "<tr>");
    text_cell (out, all[i].s->name);
    cell (out, (double)all[i].s->cluster.gpus, "%" G_GINT64_FORMAT " x %s", all[i].s->cluster.gpus,
          gpu_name (all[i].s->gpu));
    text_cell (out, layout);
    cell (out, p->step_s, "%.4g", p->step_s);
    cell (out, p->step_s * all[i].iv.lo, "%.4g", p->step_s * all[i].iv.lo);
    cell (out, p->step_s * all[i].iv.hi, "%.4g", p->step_s * all[i].iv.hi);
    cell (out, p->tokens_per_s_per_gpu, "%.1f", p->tokens_per_s_per_gpu);
    cell (out, p->mfu, "%.1f", 100 * p->mfu);
    cell (out, gib (p->memory.peak_bytes), "%.1f%s", gib (p->memory.peak_bytes),
          p->memory.fits ? "" : " does not fit");
    cell (out, p->gpu_hours_per_1e9_tokens, "%.1f", p->gpu_hours_per_1e9_tokens);
    if (p->usd_per_1e9_tokens >= 0)
      cell (out, p->usd_per_1e9_tokens, "%.2f", p->usd_per_1e9_tokens);
    else
      cell (out, -1, "no price");
    g_string_append (out, "</tr>\n");
  }
  g_string_append (out, "</tbody></table>\n");
}

/* ---- alternatives ---- */

static void
put_point (GString *out, const PlanPoint *q, const PlanPoint *best)
{
  g_autofree char *why = q == best ? g_strdup ("the best") : plan_why (PLAN_BY_TIME, best, q, 0);
  g_autofree char *layout = g_strdup_printf (
      "tp %" G_GINT64_FORMAT ", cp %" G_GINT64_FORMAT ", pp %" G_GINT64_FORMAT
      " x %" G_GINT64_FORMAT ", ep %" G_GINT64_FORMAT ", zero %" G_GINT64_FORMAT "%s",
      q->tp, q->cp, q->pp, q->vpp, q->ep, q->zero_stage, q->fsdp ? " (FSDP)" : "");
  g_string_append (out, "<tr>");
  text_cell (out, layout);
  cell (out, (double)q->mbs, "%" G_GINT64_FORMAT, q->mbs);
  text_cell (out, recompute_names[q->recompute]);
  text_cell (out, q->schedule);
  cell (out, q->step_s, "%.4g", q->step_s);
  cell (out, q->mfu, "%.1f", 100 * q->mfu);
  cell (out, gib (q->peak_bytes), "%.1f", gib (q->peak_bytes));
  text_cell (out, why);
  g_string_append (out, "</tr>\n");
}

static void
put_alternatives (GString *out, const HtmlScenario *a, const PlanResult *r, guint shown)
{
  static const char *const titles[] = {"Layout", "Micro-batch", "Recompute",  "Schedule", "Step, s",
                                       "MFU, %", "Peak, GiB",   "Why behind", NULL};
  g_string_append (out, "<h2>Other layouts on the same GPUs</h2>\n<p class=\"dim\">");
  html_text (out, a->s->name);
  g_string_append_printf (out,
                          ": %" G_GUINT64_FORMAT " legal layouts, %" G_GUINT64_FORMAT
                          " do not fit the memory, %" G_GUINT64_FORMAT " were predicted%s.</p>\n",
                          r->listed, r->n_unfit, r->predicted,
                          r->complete ? "; none of the rest can be among the best"
                                      : "; the search was stopped: these are the best so far");
  head (out, titles);
  const PlanPoint *best = &g_array_index (r->points, PlanPoint, 0);
  for (guint i = 0; i < MIN (shown, r->points->len); i++)
    put_point (out, &g_array_index (r->points, PlanPoint, i), best);
  g_string_append (out, "</tbody></table>\n");
}

/* ---- assumptions ---- */

static void
put_assumptions (GString *out, const HtmlScenario *a)
{
  static const char *const kinds[] = {"measured", "vendor", "assumed"};
  static const char *const titles[] = {"Number", "Value", "Kind", "Source", NULL};
  guint counts[3] = {0, 0, 0};
  g_string_append (out, "<h3>");
  html_text (out, a->s->name);
  g_string_append (out, "</h3>\n<ul>\n");
  for (guint i = 0; i < a->s->assumed->len; i++) {
    g_string_append (out, "<li class=\"assumed\">");
    html_text (out, g_ptr_array_index (a->s->assumed, i));
    g_string_append (out, "</li>\n");
  }
  for (guint i = 0; i < a->s->profiles->len; i++) {
    g_string_append (out, "<li>profile ");
    html_text (out, g_ptr_array_index (a->s->profiles, i));
    g_string_append (out, "</li>\n");
  }
  for (guint i = 0; i < a->s->prov->len; i++)
    counts[((const ProvEntry *)g_ptr_array_index (a->s->prov, i))->kind]++;
  g_string_append_printf (out,
                          "</ul>\n<details><summary>%u numbers of the profiles: %u measured, %u "
                          "of the vendor, %u assumed</summary>\n",
                          a->s->prov->len, counts[PROV_MEASURED], counts[PROV_VENDOR],
                          counts[PROV_ASSUMED]);
  head (out, titles);
  for (guint i = 0; i < a->s->prov->len; i++) {
    const ProvEntry *e = g_ptr_array_index (a->s->prov, i);
    g_string_append_printf (out, "<tr%s>", e->kind == PROV_ASSUMED ? " class=\"assumed\"" : "");
    text_cell (out, e->name);
    cell (out, e->value, "%.6g", e->value);
    text_cell (out, kinds[e->kind]);
    text_cell (out, e->source);
    g_string_append (out, "</tr>\n");
  }
  g_string_append (out, "</tbody></table></details>\n");
}

/* ---- the page ---- */

static void
put_pictures (GString *out, const HtmlScenario *all, guint n, const PlanResult *plan,
              char **left_out)
{
  g_autoptr (HtmlPlots) plots = html_plots_new ();
  g_string_append (out, "<h2>Pictures</h2>\n");
  html_plot_step (plots, out, all, n);
  html_plot_memory (plots, out, &all[0]);
  html_plot_scaling (plots, out, all, n);
  if (plan != NULL)
    html_plot_pareto (plots, out, &all[0], plan);
  *left_out = html_plots_trouble (plots);
  if (*left_out != NULL) {
    g_string_append (out, "<p class=\"no\">Without pictures: ");
    html_text (out, *left_out);
    g_string_append (out, "</p>\n");
  }
}

static void
put_head (GString *out, const char *question)
{
  g_string_append (out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                        "<meta name=\"viewport\" content=\"width=device-width\"><title>");
  html_text (out, question);
  g_string_append_printf (out, "</title>\n<style>%s</style></head><body>\n<h1>", style);
  html_text (out, question);
  g_string_append (out, "</h1>\n");
}

gboolean
report_html (GString *out, const HtmlScenario *all, guint n, const HtmlOptions *opt,
             char **pictures_left_out, GError **error)
{
  PlanResult plan = {0};
  gboolean planned = opt->alternatives > 0;
  if (planned) {
    PlanOptions o = {.order = PLAN_BY_TIME, .top = opt->alternatives};
    if (opt->search_s > 0)
      o.deadline = g_get_monotonic_time () + (gint64)(opt->search_s * 1e6);
    if (!plan_run (all[0].s, &o, &plan, error))
      return FALSE;
  }
  gboolean any = planned && plan.points->len > 0;
  put_head (out, opt->question != NULL        ? opt->question
                 : all[0].description != NULL ? all[0].description
                                              : all[0].s->name);
  for (guint i = 0; i < n; i++)
    put_answer (out, &all[i]);
  put_scenarios (out, all, n);
  if (any)
    put_alternatives (out, &all[0], &plan, opt->alternatives);
  put_pictures (out, all, n, any ? &plan : NULL, pictures_left_out);
  g_string_append (out, "<h2>What this rests on</h2>\n<p>A simulation of one healthy step, not a "
                        "measurement. The range comes from the errors of the same program on "
                        "published runs. What was assumed is marked.</p>\n");
  for (guint i = 0; i < n; i++)
    put_assumptions (out, &all[i]);
  g_string_append (out, "<p class=\"dim\">clustersim " CLUSTERSIM_VERSION);
  for (guint i = 0; i < n; i++) {
    g_string_append (out, "; ");
    html_text (out, all[i].path);
    g_string_append_printf (out, " %016" G_GINT64_MODIFIER "x", all[i].p->fingerprint);
  }
  g_string_append_printf (out, "</p>\n<script>%s</script>\n</body></html>\n", script);
  if (planned)
    plan_clear (&plan);
  return TRUE;
}
