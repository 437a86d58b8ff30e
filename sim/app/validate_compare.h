/* validate_compare: what the errors of single rows do not tell.
 *
 *   ranks     groups of layouts of one model on one machine: is their order right? (Kendall's tau-b
 * of published against predicted, and the place of the fastest published layout among the
 *             predicted)
 *   pairs     rows alike but for one setting: does the prediction move the way the measurement did?
 *   features  errors by what a row uses: experts, context parallelism, sharding …
 * All work on a table of training runs and its result. Rows are compared in their own metric.
 */
#ifndef CLUSTERSIM_VALIDATE_COMPARE_H
#define CLUSTERSIM_VALIDATE_COMPARE_H

#include "json_write.h"
#include "validate.h"

#define RANK_ROWS_MIN 5 /* different layouts in a group */
#define RANK_TOP      3
#define PAIR_MIN_PCT  3.0 /* published differences up to this are noise */

typedef struct {
  char *name;  /* source, model, GPUs; owned */
  guint n;     /* layouts */
  double tau;  /* Kendall's tau-b */
  guint place; /* of the fastest published layout among the predicted, from 1 */
} RankGroup;

typedef struct {
  double mean_tau; /* of the groups; 0 of none */
  guint in_top;    /* groups whose fastest layout is among the RANK_TOP fastest predicted */
} RankSummary;

typedef struct {
  const char *kind; /* the setting, static: "micro-batch" … */
  const RowResult *a, *b;
  double published_pct, predicted_pct; /* b over a, - 1 */
  gboolean right;
} RowPair;

typedef struct {
  const char *feature; /* static */
  guint n, skipped;
  double median_pct, p90_pct, mean_pct; /* of |error|, |error|, error */
} FeatureErrors;

/* Arrays of the above; free with g_array_unref. */
GArray *validate_ranks (const CsvTable *t, const ValidateResult *r);
RankSummary validate_ranks_summary (const GArray *ranks);
GArray *validate_pairs (const CsvTable *t, const ValidateResult *r);
GArray *validate_features (const CsvTable *t, const ValidateResult *r);

/* Reports; json TRUE: an object. rows: list every wrong pair. */
void validate_ranks_print (const GArray *ranks, gboolean json, GString *out);
void validate_pairs_print (const GArray *pairs, gboolean rows, gboolean json, GString *out);
void validate_features_print (const GArray *features, gboolean json, GString *out);

#endif
