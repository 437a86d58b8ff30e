/* fifth: the share of GEMM shapes that no fit and no shipped table may see.
 *
 * A shape belongs to one of five parts by a hash of m, n, k alone (FNV-1a over their decimal digits,
 * "m,n,k"), so that every table, collector, device and type agrees on which shapes are judged. `fit
 * --leave-out-fifth` passes over part FIFTH_HELD; `validate` prints the errors on it apart.
 */
#ifndef CLUSTERSIM_FIFTH_H
#define CLUSTERSIM_FIFTH_H

#include <glib.h>

#define FIFTH_HELD 0

/* 0 to 4. */
guint fifth_of (gint64 m, gint64 n, gint64 k);

#endif
