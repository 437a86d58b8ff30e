/* html_plot: pictures of a page, as SVG in its text. Private to report_html. */
#ifndef CLUSTERSIM_HTML_PLOT_H
#define CLUSTERSIM_HTML_PLOT_H

#include "report_html.h"

/* A folder for gnuplot, and the first thing that went wrong; then nothing more is drawn. */
typedef struct HtmlPlots HtmlPlots;
HtmlPlots *html_plots_new (void);
void html_plots_free (HtmlPlots *h);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (HtmlPlots, html_plots_free)
char *html_plots_trouble (const HtmlPlots *h); /* newly allocated, or NULL */

void html_plot_step (HtmlPlots *h, GString *out, const HtmlScenario *all, guint n);
void html_plot_memory (HtmlPlots *h, GString *out, const HtmlScenario *a);
/* Weak scaling: a quarter to four times the nodes, with the batch. */
void html_plot_scaling (HtmlPlots *h, GString *out, const HtmlScenario *all, guint n);
void html_plot_pareto (HtmlPlots *h, GString *out, const HtmlScenario *a, const PlanResult *r);

#endif
