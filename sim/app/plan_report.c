#include "plan_report.h"

#include "json_write.h"
#include "report.h"

#define UNFIT_SHOWN 4 /* in text */
#define GIB         ((double)(1 << 30))

static const PlanPoint *
best_of (const PlanResult *r)
{
  return r->points->len > 0 ? &g_array_index (r->points, PlanPoint, 0) : NULL;
}

static const char *
sharding (const PlanPoint *p)
{
  static const char *const zero[] = {"ddp", "zero1", "zero2", "zero3"};
  return p->fsdp ? (p->zero_stage == 2 ? "fsdp-zero2" : "fsdp") : zero[p->zero_stage];
}

static char *
why (const Spec *s, const PlanResult *r, const PlanShow *show, const PlanPoint *p)
{
  return plan_why (show->order, best_of (r), p, gpu_capacity_bytes (s->gpu));
}

/* ---- text ---- */

static void
layout_text (GString *out, const PlanPoint *p)
{
  g_string_append_printf (out,
                          "tp %" G_GINT64_FORMAT " cp %" G_GINT64_FORMAT " pp %" G_GINT64_FORMAT
                          " vpp %" G_GINT64_FORMAT " ep %" G_GINT64_FORMAT " mb %" G_GINT64_FORMAT
                          " %s %s recompute %s",
                          p->tp, p->cp, p->pp, p->vpp, p->ep, p->mbs, p->schedule, sharding (p),
                          recompute_names[p->recompute]);
}

static void
text_row (GString *out, const Spec *s, const PlanResult *r, const PlanShow *show,
          const PlanPoint *p, const char *mark)
{
  g_string_append_printf (out, "%-4s %10.4f s  MFU %4.1f %%  %6.1f GiB %s  ", mark, p->step_s,
                          100 * p->mfu, (double)p->peak_bytes / GIB, p->pareto ? "*" : " ");
  layout_text (out, p);
  g_autofree char *reason = why (s, r, show, p);
  if (best_of (r) != p && *reason != '\0')
    g_string_append_printf (out, "   %s", reason);
  g_string_append_c (out, '\n');
}

static void
text_head (GString *out, const Spec *s, const PlanResult *r)
{
  g_string_append_printf (
      out,
      "%s: %s on %" G_GINT64_FORMAT " x %s\n%" G_GUINT64_FORMAT " legal layouts, %" G_GUINT64_FORMAT
      " predicted, %" G_GUINT64_FORMAT " do not fit, %" G_GUINT64_FORMAT
      " proven to be neither among the best nor on the edge%s\n\n",
      s->name, s->model.name, s->cluster.gpus, gpu_name (s->gpu), r->listed, r->predicted,
      r->n_unfit, r->pruned, r->complete ? "" : " (stopped before the end: best so far)");
}

static void
text_own (GString *out, const Spec *s, const PlanResult *r, const PlanShow *show)
{
  if (show->own_wrong != NULL)
    g_string_append_printf (out, "\nthe scenario has no layout that runs: %s\n", show->own_wrong);
  if (r->own.step_s <= 0 || best_of (r) == NULL)
    return;
  g_string_append (out, "\nthe scenario's own layout\n");
  text_row (out, s, r, show, &r->own, r->own.fits ? "" : "!");
  PlanPoint own = r->own;
  own.fits = TRUE; /* what its time is made of, also where its memory is too much */
  g_autofree char *slower = plan_why (PLAN_BY_TIME, best_of (r), &own, 0);
  if (!r->own.fits)
    g_string_append_printf (out, "     (!: does not fit; against the best: %s)\n", slower);
}

void
plan_text (GString *out, const Spec *s, const PlanResult *r, const PlanShow *show)
{
  guint n = r->points->len, top = MIN (show->top, n), shown = MIN (top + PLAN_LOSERS, n);
  text_head (out, s, r);
  g_string_append (out, "best (*: no other is both faster and smaller)\n");
  for (guint i = 0; i < top; i++) {
    g_autofree char *mark = g_strdup_printf ("%u", i + 1);
    text_row (out, s, r, show, &g_array_index (r->points, PlanPoint, i), mark);
  }
  if (shown > top)
    g_string_append (out, "\nthe next, and why they lost\n");
  for (guint i = top; i < shown; i++)
    text_row (out, s, r, show, &g_array_index (r->points, PlanPoint, i), "");
  for (guint i = 0; i < MIN (UNFIT_SHOWN, r->unfit->len); i++) {
    const PlanPoint *p = &g_array_index (r->unfit, PlanPoint, i);
    g_string_append_printf (out, "     does not fit: %.1f of %.1f GiB                 ",
                            (double)p->peak_bytes / GIB, (double)gpu_capacity_bytes (s->gpu) / GIB);
    layout_text (out, p);
    g_string_append_c (out, '\n');
  }
  gboolean any = FALSE;
  for (guint i = shown; i < n; i++) {
    const PlanPoint *p = &g_array_index (r->points, PlanPoint, i);
    if (p->pareto && !any)
      g_string_append (out, "\nthe edge further on: less memory, more time\n");
    any = any || p->pareto;
    if (p->pareto)
      text_row (out, s, r, show, p, "");
  }
  text_own (out, s, r, show);
}

/* ---- JSON ---- */

static void
json_point (JsonWriter *w, const char *key, const Spec *s, const PlanResult *r,
            const PlanShow *show, const PlanPoint *p)
{
  jw_begin_object (w, key);
  jw_begin_object (w, "parallel");
  jw_int (w, "tp", p->tp);
  jw_int (w, "cp", p->cp);
  jw_int (w, "pp", p->pp);
  jw_int (w, "vpp", p->vpp);
  jw_int (w, "ep", p->ep);
  jw_int (w, "dp", s->cluster.gpus / (p->tp * p->cp * p->pp));
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
  g_autofree char *reason = why (s, r, show, p);
  jw_string (w, "why", p == best_of (r) ? "" : reason);
  jw_end_object (w);
}

void
plan_json (GString *out, const Spec *s, const PlanResult *r, const PlanShow *show)
{
  g_autoptr (JsonWriter) w = json_writer_new (out, 1);
  guint n = MIN (show->top + PLAN_LOSERS, r->points->len);
  jw_begin_object (w, NULL);
  jw_string (w, "name", s->name);
  jw_int (w, "gpus", s->cluster.gpus);
  jw_string (w, "order", plan_order_names[show->order]);
  jw_int (w, "listed", (gint64)r->listed);
  jw_int (w, "predicted", (gint64)r->predicted);
  jw_int (w, "unfit", (gint64)r->n_unfit);
  jw_int (w, "pruned", (gint64)r->pruned);
  jw_bool (w, "complete", r->complete);
  jw_begin_array (w, "layouts");
  for (guint i = 0; i < n; i++)
    json_point (w, NULL, s, r, show, &g_array_index (r->points, PlanPoint, i));
  jw_end_array (w);
  jw_begin_array (w, "edge");
  for (guint i = 0; i < r->points->len; i++)
    if (g_array_index (r->points, PlanPoint, i).pareto)
      json_point (w, NULL, s, r, show, &g_array_index (r->points, PlanPoint, i));
  jw_end_array (w);
  jw_begin_array (w, "unfit_layouts");
  for (guint i = 0; i < MIN (PLAN_LOSERS, r->unfit->len); i++)
    json_point (w, NULL, s, r, show, &g_array_index (r->unfit, PlanPoint, i));
  jw_end_array (w);
  if (r->own.step_s > 0)
    json_point (w, "own", s, r, show, &r->own);
  jw_end_object (w);
  g_string_append_c (out, '\n');
}

/* ---- CSV ---- */

static void
csv_row (GString *out, const Spec *s, const PlanResult *r, const PlanShow *show, const PlanPoint *p)
{
  g_autofree char *reason = why (s, r, show, p);
  g_string_append_printf (out,
                          "%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT
                          ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT
                          ",%s,%" G_GINT64_FORMAT ",%d,%s,",
                          p->tp, p->cp, p->pp, p->vpp, p->ep, p->mbs, p->schedule, p->zero_stage,
                          p->fsdp, recompute_names[p->recompute]);
  if (p->state == PLAN_PREDICTED) /* not more than was needed: the same in every run */
    g_string_append_printf (out, "%.9g,%.6g,%" G_GINT64_FORMAT ",%d,", p->step_s, p->mfu,
                            p->peak_bytes, p->pareto);
  else if (p->state == PLAN_UNFIT)
    g_string_append_printf (out, ",,%" G_GINT64_FORMAT ",0,", p->peak_bytes);
  else
    g_string_append (out, ",,,0,");
  g_string_append_printf (out, "%s,%.9g,", plan_state_names[p->state], p->bound_s);
  report_csv_field (out, p == best_of (r) ? "" : reason);
  g_string_append_c (out, '\n');
}

void
plan_csv (GString *out, const Spec *s, const PlanResult *r, const PlanShow *show)
{
  g_string_append (out, "tp,cp,pp,vpp,ep,micro_batch_sequences,schedule,zero_stage,fsdp,recompute,"
                        "step_time_s,mfu,peak_bytes,pareto,state,at_least_s,why\n");
  for (guint i = 0; i < r->points->len; i++)
    csv_row (out, s, r, show, &g_array_index (r->points, PlanPoint, i));
  for (guint i = 0; i < r->all->len; i++) {
    const PlanPoint *p = &g_array_index (r->all, PlanPoint, i);
    if (p->state != PLAN_PREDICTED && p->state != PLAN_ILLEGAL)
      csv_row (out, s, r, show, p);
  }
}
