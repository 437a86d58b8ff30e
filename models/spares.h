/* spares: how many nodes are in repair at once, by the failure and repair processes alone.
 *
 * The question of a spare pool is a quantile of this count over time. Independent failures give a
 * Poisson count with mean rate x repair, whatever the repair times are (M/G/infinity); frailty,
 * bursts and epochs widen it. Nodes in repair do not fail. Simulated on the µs engine.
 */
#ifndef CLUSTERSIM_SPARES_H
#define CLUSTERSIM_SPARES_H

#include "fault.h"

typedef struct {
  double mean_down;               /* nodes, over time and replicas */
  guint p50, p90, p95, p99, most; /* time-weighted over all replicas */
  double p99_lo, p99_hi;          /* middle 80 % of the P99 of single replicas */
  guint independent_p99;          /* Poisson of the same mean */
  double *share;                  /* time with k nodes down, k = 0 … n_share - 1; owned */
  guint n_share;
} SpareStats;

void spare_stats_clear (SpareStats *s);

/* warmup_s: simulated before the count begins. */
gboolean spares_simulate (const FaultProfile *p, guint nodes, guint gpus_per_node, double days,
                          double warmup_days, guint replicas, guint64 seed, SpareStats *out,
                          GError **error);

/* Smallest number of spares that is exceeded at most (1 - q) of the time. */
guint spares_needed (const SpareStats *s, double q);

#endif
