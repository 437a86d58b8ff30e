/* units: numbers for people. All results are newly allocated, free with g_free; none depends on the
 * locale. Machine-readable output (JSON, CSV) does not go through here. */
#ifndef CLUSTERSIM_UNITS_H
#define CLUSTERSIM_UNITS_H

#include <glib.h>

/* "512 B", "1.50 KiB", "79.6 GiB": powers of 1024, three significant digits. */
char *format_bytes (double bytes);

/* "12.3 us", "1.23 s", "2 min 05 s", "3 h 20 min", "54.2 days". */
char *format_seconds (double seconds);

/* "16,384": the nearest whole number, exact up to 2^53; also negative. */
char *format_count (double n);

/* "405 G", "1.23 M", "950": powers of 1000 with k, M, G, T, P, E; three significant digits. For
 * quantities that have a unit, append it: "989 T" "FLOP/s". */
char *format_si (double v);

/* Fixed decimals with thousands separated: "12,345.68". */
char *format_fixed (double v, int decimals);

#endif
