/* maxmin: rates of flows that share links, max-min fair, exact and incremental.
 *
 * Flow f loads link l with coef(f,l) * rate(f). A rate vector is max-min fair when no rate can be
 * raised without lowering one that is not larger: sum over f of coef * rate <= capacity on every
 * link, rate <= the flow's own cap, and every flow below its cap crosses a saturated link on which
 * no rate is larger (Bertsekas and Gallager, "Data Networks", section 6.5.2). Water-filling finds
 * it: all rates rise together; a link that fills freezes its flows, a flow that meets its cap
 * freezes.
 *
 * Incremental: a change cannot alter what froze below the first level t0 at which the old and the
 * new filling differ. t0 is the least of: old saturation levels of links that lost a flow or whose
 * capacity changed; new saturation levels of all links touched. The solver releases the flows from
 * t0 on that cross touched links and, link by link, those held by a link that these cross, and
 * fills them on the capacity that the others leave. Then it checks the definition above for every
 * kept flow on those links, releases the ones for which it fails, and fills again until none does:
 * the result is the fair one wherever the search stopped. Any number of changes between two solves
 * is one batch, and costs one solve.
 *
 * Units: capacities and rates in any one unit (bytes/s here); coefs are plain numbers > 0.
 * Ownership: arrays given are copied. Knows neither time nor engine. Errors: none; out of range is
 * an assertion.
 */
#ifndef CLUSTERSIM_MAXMIN_H
#define CLUSTERSIM_MAXMIN_H

#include <glib.h>

typedef struct MaxMin MaxMin;

/* cap: n_links capacities, finite and >= 0. */
MaxMin *maxmin_new (guint32 n_links, const double *cap);
void maxmin_free (MaxMin *m);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MaxMin, maxmin_free)

/* A new flow over n > 0 links; coef NULL: all 1. The same link may stand twice, loads then add up.
 * cap: its own limit, INFINITY for none. The id is reused after maxmin_remove. */
guint32 maxmin_add (MaxMin *m, const guint32 *links, const double *coef, guint n, double cap);
void maxmin_remove (MaxMin *m, guint32 flow);
void maxmin_set_cap (MaxMin *m, guint32 link, double cap);

/* Brings all rates up to date. Returns how many changed; *changed (may be NULL) lists them, new
 * ones among them, borrowed until the next call of any function here. */
guint maxmin_solve (MaxMin *m, const guint32 **changed);

/* As of the last solve; INFINITY for a flow added since. */
double maxmin_rate (const MaxMin *m, guint32 flow);

double maxmin_link_load (const MaxMin *m,
                         guint32 link); /* sum of coef * rate, as of the last solve */
guint32 maxmin_n_flows (const MaxMin *m);

/* Flows that the solves so far have looked at: the measure of what being incremental saves. */
guint64 maxmin_n_visited (const MaxMin *m);

#endif
