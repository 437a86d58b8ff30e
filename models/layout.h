/* layout: Megatron's string for what every pipeline stage holds.
 *
 * "Et*2|(tt|)*29|tmL": E embedding, t transformer layer, m multi-token-prediction module, L head
 * and loss; '|' ends a stage; x*N and (...)*N repeat a letter or a group; commas and blanks are for
 * the eye. Stages are virtual ones in the order of the model: stage i is chunk i / pp of rank i %
 * pp. E belongs to the first stage and L to the last, as Megatron demands; a stage may be empty.
 */
#ifndef CLUSTERSIM_LAYOUT_H
#define CLUSTERSIM_LAYOUT_H

#include <glib.h>

#define LAYOUT_ERROR layout_error_quark ()
GQuark layout_error_quark (void);
typedef enum { LAYOUT_ERROR_SYNTAX, LAYOUT_ERROR_ILLEGAL } LayoutError;

/* A layout has at most so many letters when written out. */
#define LAYOUT_MAX_LETTERS 100000

typedef struct {
  guint n_stages;
  gint64 *layers, *mtp; /* of each stage; owned */
  gint64 total_layers, total_mtp;
} Layout;

/* Errors carry the column (from 1) and what is allowed there. out is set only on success. */
gboolean layout_parse (const char *text, Layout *out, GError **error);
void layout_clear (Layout *l);

#endif
