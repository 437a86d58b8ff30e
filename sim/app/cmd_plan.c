#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "json_write.h"
#include "plan.h"
#include "report.h"
#include "scenario.h"

typedef struct {
  gint top;
  char *by, *progress;
  double seconds;
} PlanFlags;

static void
flags_clear (PlanFlags *f)
{
  g_free (f->by);
  g_free (f->progress);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (PlanFlags, flags_clear)

static void
layout_text (GString *out, const PlanPoint *p)
{
  g_string_append_printf (out,
                          "tp %" G_GINT64_FORMAT " cp %" G_GINT64_FORMAT " pp %" G_GINT64_FORMAT
                          " vpp %" G_GINT64_FORMAT " ep %" G_GINT64_FORMAT " mb %" G_GINT64_FORMAT
                          " %s %s recompute %s",
                          p->tp, p->cp, p->pp, p->vpp, p->ep, p->mbs, p->schedule,
                          p->fsdp             ? "fsdp"
                          : p->zero_stage > 0 ? "zero1"
                                              : "ddp",
                          recompute_names[p->recompute]);
}

static void
text_row (GString *out, const PlanPoint *best, const PlanPoint *p, const char *mark)
{
  g_string_append_printf (out, "%-4s %10.4f s  MFU %4.1f %%  %6.1f GiB %s  ", mark, p->step_s,
                          100 * p->mfu, (double)p->peak_bytes / (1 << 30), p->pareto ? "*" : " ");
  layout_text (out, p);
  if (best != NULL && best != p && p->step_s > best->step_s) {
    g_autofree char *why = plan_why (best, p);
    g_string_append_printf (out, "   %s", why);
  }
  g_string_append_c (out, '\n');
}

#define LOSERS 8 /* shown behind the best */

static void
plan_text (GString *out, const Spec *s, const PlanResult *r, const PlanFlags *f)
{
  guint top = MIN ((guint)f->top, r->points->len);
  const PlanPoint *best = r->points->len > 0 ? &g_array_index (r->points, PlanPoint, 0) : NULL;
  g_string_append_printf (
      out,
      "%s: %s on %" G_GINT64_FORMAT " x %s\n%" G_GUINT64_FORMAT " legal layouts, %" G_GUINT64_FORMAT
      " predicted, %" G_GUINT64_FORMAT " do not fit, %" G_GUINT64_FORMAT
      " cannot be among the best even at peak rate%s\n\n",
      s->name, s->model.name, s->cluster.gpus, gpu_name (s->gpu), r->listed, r->predicted,
      r->n_unfit, r->pruned, r->complete ? "" : " (stopped before the end: best so far)");
  g_string_append (out, "best (*: no other is both faster and smaller)\n");
  for (guint i = 0; i < top; i++) {
    g_autofree char *mark = g_strdup_printf ("%u", i + 1);
    text_row (out, best, &g_array_index (r->points, PlanPoint, i), mark);
  }
  g_string_append (out, "\nthe next, and why they lost\n");
  for (guint i = top; i < MIN (top + LOSERS, r->points->len); i++)
    text_row (out, best, &g_array_index (r->points, PlanPoint, i), "");
  for (guint i = 0; i < MIN (LOSERS / 2, r->unfit->len); i++) {
    const PlanPoint *p = &g_array_index (r->unfit, PlanPoint, i);
    g_string_append_printf (out, "     does not fit: %.1f of %.1f GiB                 ",
                            (double)p->peak_bytes / (1 << 30),
                            (double)gpu_capacity_bytes (s->gpu) / (1 << 30));
    layout_text (out, p);
    g_string_append_c (out, '\n');
  }
  if (r->own.step_s > 0 && best != NULL) {
    g_string_append (out, "\nthe scenario's own layout\n");
    text_row (out, best, &r->own, r->own.fits ? "" : "!");
    if (!r->own.fits)
      g_string_append (out, "     (!: does not fit)\n");
  }
}

static void
json_point (JsonWriter *w, const char *key, const PlanPoint *best, const PlanPoint *p)
{
  jw_begin_object (w, key);
  jw_begin_object (w, "parallel");
  jw_int (w, "tp", p->tp);
  jw_int (w, "cp", p->cp);
  jw_int (w, "pp", p->pp);
  jw_int (w, "vpp", p->vpp);
  jw_int (w, "ep", p->ep);
  jw_bool (w, "sequence_parallel", p->sequence_parallel);
  jw_string (w, "schedule", p->schedule);
  jw_int (w, "zero_stage", p->zero_stage);
  jw_bool (w, "fsdp", p->fsdp);
  jw_end_object (w);
  jw_int (w, "micro_batch_sequences", p->mbs);
  jw_string (w, "recompute", recompute_names[p->recompute]);
  if (p->step_s > 0)
    jw_double (w, "step_time_s", p->step_s);
  else
    jw_null (w, "step_time_s");
  jw_double (w, "mfu", p->mfu);
  jw_int (w, "peak_bytes", p->peak_bytes);
  jw_bool (w, "fits", p->fits);
  jw_bool (w, "pareto", p->pareto);
  if (p->usd_per_1e9_tokens > 0)
    jw_double (w, "usd_per_1e9_tokens", p->usd_per_1e9_tokens);
  else
    jw_null (w, "usd_per_1e9_tokens");
  g_autofree char *why = !p->fits ? g_strdup ("does not fit the memory")
                         : best != NULL && p->step_s > best->step_s ? plan_why (best, p)
                                                                    : g_strdup ("");
  jw_string (w, "why", why);
  jw_end_object (w);
}

static void
plan_json (GString *out, const Spec *s, const PlanResult *r, const PlanFlags *f)
{
  g_autoptr (JsonWriter) w = json_writer_new (out, 1);
  const PlanPoint *best = r->points->len > 0 ? &g_array_index (r->points, PlanPoint, 0) : NULL;
  guint n = MIN ((guint)f->top + LOSERS, r->points->len);
  jw_begin_object (w, NULL);
  jw_string (w, "name", s->name);
  jw_int (w, "gpus", s->cluster.gpus);
  jw_string (w, "order", f->by != NULL ? f->by : "time");
  jw_int (w, "listed", (gint64)r->listed);
  jw_int (w, "predicted", (gint64)r->predicted);
  jw_int (w, "unfit", (gint64)r->n_unfit);
  jw_int (w, "pruned", (gint64)r->pruned);
  jw_bool (w, "complete", r->complete);
  jw_begin_array (w, "layouts");
  for (guint i = 0; i < n; i++)
    json_point (w, NULL, best, &g_array_index (r->points, PlanPoint, i));
  jw_end_array (w);
  jw_begin_array (w, "unfit_layouts");
  for (guint i = 0; i < MIN (LOSERS, r->unfit->len); i++)
    json_point (w, NULL, best, &g_array_index (r->unfit, PlanPoint, i));
  jw_end_array (w);
  if (r->own.step_s > 0)
    json_point (w, "own", best, &r->own);
  jw_end_object (w);
  g_string_append_c (out, '\n');
}

static void
plan_csv (GString *out, const PlanResult *r)
{
  g_string_append (out, "tp,cp,pp,vpp,ep,micro_batch_sequences,schedule,zero_stage,fsdp,recompute,"
                        "step_time_s,mfu,peak_bytes,pareto\n");
  for (guint i = 0; i < r->points->len; i++) {
    const PlanPoint *p = &g_array_index (r->points, PlanPoint, i);
    g_string_append_printf (out,
                            "%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT
                            ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT
                            ",%s,%" G_GINT64_FORMAT ",%d,%s,%.9g,%.6g,%" G_GINT64_FORMAT ",%d\n",
                            p->tp, p->cp, p->pp, p->vpp, p->ep, p->mbs, p->schedule, p->zero_stage,
                            p->fsdp, recompute_names[p->recompute], p->step_s, p->mfu,
                            p->peak_bytes, p->pareto);
  }
}

static void
show_progress (gpointer data, guint64 done, guint64 of, const PlanPoint *best)
{
  (void)data;
  g_printerr ("\r%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " layouts, best %.4f s   ", done, of,
              best->step_s);
}

static gboolean
parse_order (const char *by, PlanOrder *out, GError **error)
{
  *out = PLAN_BY_TIME;
  for (int i = 0; by != NULL && plan_order_names[i] != NULL; i++)
    if (g_strcmp0 (by, plan_order_names[i]) == 0) {
      *out = (PlanOrder)i;
      return TRUE;
    }
  if (by == NULL)
    return TRUE;
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
               "--by: no such order (found \"%.40s\"; allowed: time, cost, memory)", by);
  return FALSE;
}

static gboolean
run (const char *path, const CliCommon *c, const PlanFlags *f, GError **error)
{
  Spec s;
  PlanResult r;
  PlanOptions o = {.top = (guint)f->top};
  gboolean shown = g_strcmp0 (f->progress, "always") == 0 ||
                   (g_strcmp0 (f->progress, "never") != 0 && !c->quiet && isatty (STDERR_FILENO));
  if (!parse_order (f->by, &o.order, error) ||
      !scenario_load (path, (const char *const *)c->sets, &s, error))
    return FALSE;
  if (f->seconds > 0)
    o.deadline = g_get_monotonic_time () + (gint64)(f->seconds * 1e6);
  if (shown)
    o.progress = show_progress;
  if (!plan_run (&s, &o, &r, error)) {
    spec_clear (&s);
    return FALSE;
  }
  if (shown)
    g_printerr ("\r%60s\r", "");
  g_autoptr (GString) out = g_string_new (NULL);
  if (c->format == FORMAT_JSON)
    plan_json (out, &s, &r, f);
  else if (c->format == FORMAT_CSV)
    plan_csv (out, &r);
  else
    plan_text (out, &s, &r, f);
  gboolean ok = cli_output (c, out->str, (gssize)out->len, error);
  plan_clear (&r);
  spec_clear (&s);
  return ok;
}

int
cmd_plan_run (int argc, char **argv)
{
  g_auto (CliCommon) c = {0};
  g_auto (PlanFlags) f = {.top = 5};
  GError *error = NULL;
  const GOptionEntry entries[] = {
      {"top", 0, 0, G_OPTION_ARG_INT, &f.top, "So many of the best (5)", "N"},
      {"by", 0, 0, G_OPTION_ARG_STRING, &f.by, "Best by time, cost or memory (time)", "ORDER"},
      {"seconds", 0, 0, G_OPTION_ARG_DOUBLE, &f.seconds, "Stop then, with the best so far", "S"},
      {"progress", 0, 0, G_OPTION_ARG_STRING, &f.progress, "auto, always or never", "WHEN"},
      G_OPTION_ENTRY_NULL};
  const CliHelp help = {
      "SCENARIO.json",
      "Searches the layouts of a scenario's model on its cluster, and says why the "
      "others lost.",
      "clustersim plan gpt3-175b-h100 --top 3", 1, 1};
  if (!cli_parse (&argc, &argv, &help, entries, &c, &error))
    return cli_fail (error);
  if (f.top < 1 || f.top > 100000) {
    g_set_error (&error, CLI_ERROR, CLI_ERROR_USAGE,
                 "--top: out of range (found %d; allowed: 1 to 100000)", f.top);
    return cli_fail (error);
  }
  return run (argv[1], &c, &f, &error) ? CLI_DONE : cli_fail (error);
}
