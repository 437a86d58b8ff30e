#include "html_plot.h"

#include <glib/gstdio.h>
#include <string.h>

#include "plot.h"
#include "report.h"
#include "scenario.h"

struct HtmlPlots {
  char *folder, *trouble;
  guint drawn;
};

HtmlPlots *
html_plots_new (void)
{
  HtmlPlots *h = g_new0 (HtmlPlots, 1);
  g_autoptr (GError) why = NULL;
  h->folder = g_dir_make_tmp ("clustersim-XXXXXX", &why);
  if (h->folder == NULL)
    h->trouble = g_strdup (why->message);
  return h;
}

void
html_plots_free (HtmlPlots *h)
{
  if (h == NULL)
    return;
  if (h->folder != NULL)
    g_rmdir (h->folder);
  g_free (h->folder);
  g_free (h->trouble);
  g_free (h);
}

char *
html_plots_trouble (const HtmlPlots *h)
{
  return g_strdup (h->trouble);
}

/* Several pictures of gnuplot use the same ids: here each gets its own. */
static void
append_svg (GString *out, const char *svg, guint number)
{
  static const char *const marks[] = {"id='", "id=\"", "url(#", "href='#", "href=\"#"};
  const char *p = strstr (svg, "<svg");
  while (p != NULL && *p != '\0') {
    guint i = 0;
    while (i < G_N_ELEMENTS (marks) && !g_str_has_prefix (p, marks[i]))
      i++;
    if (i < G_N_ELEMENTS (marks)) {
      g_string_append_printf (out, "%sp%u-", marks[i], number);
      p += strlen (marks[i]);
    } else
      g_string_append_c (out, *p++);
  }
}

static void
draw (HtmlPlots *h, GString *out, const char *kind, const GString *csv, const char *title,
      const char *caption)
{
  g_autoptr (GError) why = NULL;
  g_autofree char *file = NULL, *svg = NULL;
  if (h->trouble != NULL)
    return;
  file = g_build_filename (h->folder, "picture.svg", NULL);
  g_autoptr (CsvTable) table = csv_parse (kind, csv->str, csv->len, &why);
  if (table == NULL || !plot_draw (kind, table, file, title, caption, NULL, &why) ||
      !g_file_get_contents (file, &svg, NULL, &why)) {
    h->trouble = g_strdup (why->message);
  } else {
    g_string_append_printf (out, "<figure class=\"%s\">", kind);
    append_svg (out, svg, ++h->drawn);
    g_string_append (out, "</figure>\n");
  }
  g_unlink (file);
}

static void
number (GString *csv, double v)
{
  char buf[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append_c (csv, ',');
  g_string_append (csv, g_ascii_formatd (buf, sizeof buf, "%.9g", v));
}

static void
end_line (GString *csv)
{
  g_string_append_c (csv, '\n');
}

static char *
caption_of (const HtmlScenario *a)
{
  const ParallelSpec *p = &a->s->parallel;
  return g_strdup_printf (
      "%s, %" G_GINT64_FORMAT " x %s, tp %" G_GINT64_FORMAT ", cp %" G_GINT64_FORMAT
      ", pp %" G_GINT64_FORMAT " x %" G_GINT64_FORMAT ", %s, %s attention",
      a->s->model.name != NULL ? a->s->model.name : "model", a->s->cluster.gpus,
      gpu_name (a->s->gpu), p->tp, p->cp, p->pp, p->vpp, dtype_names[a->s->train.precision],
      a->s->train.causal_flops ? "causal" : "full");
}

void
html_plot_step (HtmlPlots *h, GString *out, const HtmlScenario *all, guint n)
{
  g_autoptr (GString) csv = g_string_new ("label");
  for (guint k = 0; k < PART_COUNT; k++)
    g_string_append_printf (csv, ",%s_s", part_names[k]);
  end_line (csv);
  for (guint i = 0; i < n; i++) {
    report_csv_field (csv, all[i].s->name);
    for (guint k = 0; k < PART_COUNT; k++)
      number (csv, MAX (all[i].p->part_s[k], 0));
    end_line (csv);
  }
  g_autofree char *caption = caption_of (&all[0]);
  draw (h, out, "step", csv, "Where the time of a step goes", n == 1 ? caption : NULL);
}

void
html_plot_memory (HtmlPlots *h, GString *out, const HtmlScenario *a)
{
  static const double gib = 1 << 30;
  const MemReport *m = &a->p->memory;
  g_autoptr (GString) csv =
      g_string_new ("stage,weights_GiB,gradients_GiB,optimizer_GiB,activations_"
                    "GiB,buffers_GiB,framework_GiB,capacity_GiB\n");
  for (guint i = 0; i < m->n_stages; i++) {
    const StageMemory *st = &m->stages[i];
    g_string_append_printf (csv, "%u", i);
    const gint64 parts[] = {st->weights_bytes,     st->gradients_bytes, st->optimizer_bytes,
                            st->activations_bytes, st->buffers_bytes,   st->framework_bytes,
                            m->capacity_bytes};
    for (guint k = 0; k < G_N_ELEMENTS (parts); k++)
      number (csv, (double)MAX (parts[k], 0) / gib);
    end_line (csv);
  }
  g_autofree char *caption = caption_of (a);
  draw (h, out, "memory", csv, "Memory of each pipeline stage", caption);
}

/* One size: nodes and batch times up / down. FALSE when it cannot be. */
static gboolean
put_size (GString *csv, const HtmlScenario *a, gint64 up, gint64 down)
{
  JsonRef root = json_root (a->doc);
  g_autoptr (JsonDoc) doc = json_doc_copy (&root);
  const ClusterSpec *c = &a->s->cluster;
  gint64 gpus = c->gpus * up / down, batch = a->s->train.global_batch_sequences * up / down;
  Spec s;
  Prediction p;
  if (c->gpus * up % down != 0 || a->s->train.global_batch_sequences * up % down != 0)
    return FALSE;
  char *set[] = {g_strdup_printf ("cluster.gpus=%" G_GINT64_FORMAT, gpus),
                 g_strdup_printf ("cluster.nodes=%" G_GINT64_FORMAT,
                                  (gpus + c->gpus_per_node - 1) / c->gpus_per_node),
                 g_strdup_printf ("train.global_batch_sequences=%" G_GINT64_FORMAT, batch)};
  gboolean ok = TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (set); i++)
    ok = ok && scenario_set (doc, set[i], NULL);
  ok = ok && scenario_read (doc, &s, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (set); i++)
    g_free (set[i]);
  if (!ok)
    return FALSE;
  ok = predict (&s, NULL, NULL, &p, NULL);
  spec_clear (&s);
  if (!ok)
    return FALSE;
  report_csv_field (csv, a->s->name);
  g_string_append_printf (csv, ",%" G_GINT64_FORMAT, gpus);
  number (csv, p.tokens_per_s);
  number (csv, p.mfu);
  end_line (csv);
  prediction_clear (&p);
  return TRUE;
}

void
html_plot_scaling (HtmlPlots *h, GString *out, const HtmlScenario *all, guint n)
{
  static const gint64 sizes[][2] = {{1, 4}, {1, 2}, {1, 1}, {2, 1}, {4, 1}};
  g_autoptr (GString) csv = g_string_new ("series,gpus,tokens_per_s,mfu\n");
  guint points = 0;
  if (h->trouble != NULL)
    return;
  for (guint i = 0; i < n; i++)
    for (guint k = 0; k < G_N_ELEMENTS (sizes); k++)
      points += put_size (csv, &all[i], sizes[k][0], sizes[k][1]) ? 1 : 0;
  if (points >= 2)
    draw (h, out, "scaling", csv, "More GPUs, with the batch in proportion",
          "the layout of each scenario; data parallelism grows");
}

void
html_plot_pareto (HtmlPlots *h, GString *out, const HtmlScenario *a, const PlanResult *r)
{
  g_autoptr (GString) csv =
      g_string_new ("tp,cp,pp,vpp,ep,micro_batch_sequences,recompute,step_time_s,"
                    "mfu,peak_bytes,pareto\n");
  for (guint i = 0; i < r->points->len; i++) {
    const PlanPoint *q = &g_array_index (r->points, PlanPoint, i);
    g_string_append_printf (csv,
                            "%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT
                            ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%s",
                            q->tp, q->cp, q->pp, q->vpp, q->ep, q->mbs,
                            recompute_names[q->recompute]);
    number (csv, q->step_s);
    number (csv, q->mfu);
    g_string_append_printf (csv, ",%" G_GINT64_FORMAT ",%d\n", q->peak_bytes, q->pareto ? 1 : 0);
  }
  g_autofree char *caption = caption_of (a);
  draw (h, out, "pareto", csv, "The layouts that were predicted", caption);
}
