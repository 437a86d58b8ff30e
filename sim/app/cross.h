/* cross: how right predictions are on runs that nobody tuned to.
 *
 * A few numbers of the profiles were set on published runs (scenarios/published/fitted.json lists
 * them). For each group of a table (a source, a GPU) they are set anew from the other groups alone,
 * and the group is predicted with what comes out. The fit is robust least squares on ln(measured /
 * predicted), a run weighs 1 / sqrt(runs of its group), from the derivatives at the shipped values;
 * what the other runs do not tell takes the factor "unknown" of the list: such a row is of a
 * framework or a network that nothing was known about.
 */
#ifndef CLUSTERSIM_CROSS_H
#define CLUSTERSIM_CROSS_H

#include "validate.h"

typedef struct {
  guint row;                        /* of the table */
  guint group, source;              /* indices */
  double shipped, refitted, unseen; /* ln (measured / predicted): as shipped; numbers set on all
                                     * groups; on all but its own */
  guint features;                   /* interval_features as shipped */
  gboolean told; /* the other groups tell all the numbers that this run's prediction takes */
} CrossRun;

typedef struct {
  GPtrArray *groups, *sources;            /* char*, in the order of the table; owned */
  GPtrArray *parameters;                  /* char*: names */
  GArray *runs;                           /* CrossRun */
  double *factors;                        /* parameters: set on all groups; then for each group */
  double spread_prior[FEATURE_COUNT + 1]; /* of the list, for interval_fit */
  guint skipped;
} CrossResult;

/* column: of the groups ("source_title", "gpu"). classes: "A,B" or NULL. progress may be NULL. */
CrossResult *cross_validate (const CsvTable *t, Store *store, const char *classes,
                             const char *column,
                             void (*progress) (guint done, guint of, gpointer self), gpointer self,
                             GError **error);
void cross_free (CrossResult *r);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (CrossResult, cross_free)

void cross_text (const CrossResult *r, GString *out);
void cross_json (const CrossResult *r, GString *out);
void cross_csv (const CrossResult *r, GString *out);

#endif
