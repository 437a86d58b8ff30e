/* simtime: the integer clock of a simulation.
 *
 * One engine has one tick size; the engine itself never looks at the unit. Step simulations use
 * picoseconds (horizon 106 days), campaign simulations microseconds (292,000 years).
 * This is the only place where seconds become ticks: rounded to nearest, once, and checked.
 */
#ifndef CLUSTERSIM_SIMTIME_H
#define CLUSTERSIM_SIMTIME_H

#include <glib.h>

typedef gint64 SimTime; /* ticks */

#define SIM_TICKS_PS 1000000000000.0 /* ticks per second of step simulations */
#define SIM_TICKS_US 1000000.0       /* ticks per second of campaign simulations */
#define SIM_TIME_MAX G_MAXINT64

/* Seconds to ticks, to nearest (ties away from zero). FALSE when not finite, negative, or too big
 * for the clock; *out is untouched then. */
gboolean sim_time_from_s (double s, double ticks_per_s, SimTime *out);

/* Ticks to seconds. */
double sim_time_to_s (SimTime t, double ticks_per_s);

/* a + b for non-negative times; saturates at SIM_TIME_MAX and returns FALSE on overflow. */
gboolean sim_time_add (SimTime a, SimTime b, SimTime *out);

/* Human form with a fitting unit ("1.234 ms"); newly allocated, free with g_free. */
char *sim_time_format (SimTime t, double ticks_per_s);

#endif
