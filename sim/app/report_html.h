/* report_html: one page for a meeting, without a network: the question, the answer with its range,
 * alternatives in tables that sort, pictures, and every assumption with its source.
 *
 * The page is one file: styles, script and pictures (SVG) stand in it. Text of the user is escaped.
 * Pictures are gnuplot's; without it the page says so and has none. */
#ifndef CLUSTERSIM_REPORT_HTML_H
#define CLUSTERSIM_REPORT_HTML_H

#include "interval.h"
#include "json_read.h"
#include "plan.h"

/* One scenario of the page; all borrowed. */
typedef struct {
  const char *path; /* as given */
  const Spec *s;
  const Prediction *p;
  StepInterval iv;
  double job_tokens; /* 0: none */
  JsonDoc *doc;      /* to try other sizes */
  const char *description;
} HtmlScenario;

typedef struct {
  const char *question; /* NULL: the scenario's description, or its name */
  guint alternatives;   /* layouts shown; 0: none are searched */
  double search_s;      /* then the search stops */
} HtmlOptions;

/* Appends the page. pictures_left_out: why there are none, newly allocated, or NULL. An error only
 * where a prediction that must be possible is not. */
gboolean report_html (GString *out, const HtmlScenario *all, guint n, const HtmlOptions *opt,
                      char **pictures_left_out, GError **error);

/* Text between tags or in a quoted attribute. */
void html_text (GString *out, const char *text);

#endif
