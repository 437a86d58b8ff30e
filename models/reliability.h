/* reliability: closed forms of failures, checkpoints and spares. No engine, no state.
 *
 * Symbols, all in seconds unless said otherwise:
 *   mtbf      mean time between failures of the whole job (exponential unless said otherwise)
 *   save      time that a checkpoint blocks the job
 *   work      useful work between two checkpoints; the period is work + save
 *   restart   time to come back, in which failures may strike (and then it begins anew)
 *   down      time before the restart, in which none does (detection, waiting)
 *   efficiency  useful work / elapsed time, the field's ETTR or goodput
 * Arguments out of range (mtbf <= 0, negative times) are programmer errors; readers check input.
 *
 * Sources: Young, CACM 17 (1974) 530; Daly, FGCS 22 (2006) 303, eq. 20 and 37; Herault and Robert,
 * "Fault-Tolerance Techniques for High-Performance Computing" (2015), ch. 1; Kokolis et al., arXiv
 * 2410.21680, section on ETTR; Wang et al. (GEMINI), SOSP 2023; Erlang 1917. What is marked (own)
 * is derived where it stands.
 */
#ifndef CLUSTERSIM_RELIABILITY_H
#define CLUSTERSIM_RELIABILITY_H

#include <glib.h>

/* ---- the interval between checkpoints ---- */

double rel_interval_young (double save, double mtbf);       /* sqrt (2 save mtbf) */
double rel_interval_daly (double save, double mtbf);        /* the same less save */
double rel_interval_daly_higher (double save, double mtbf); /* eq. 37; mtbf from save = 2 mtbf on */

/* The maximum of the exact efficiency: mtbf (1 + W0 (-exp (-save / mtbf - 1))). Neither restart nor
 * down time moves it. */
double rel_interval_exact (double save, double mtbf);

/* Principal branch of w e^w = x, x >= -1/e, to rounding. */
double rel_lambert_w0 (double x);

/* Period (work + save) sqrt (2 (mtbf - down - restart) save), and its waste; good while the period
 * is under a quarter of the mtbf. */
double rel_period_herault (double save, double down, double restart, double mtbf);
double rel_waste_herault (double period, double save, double down, double restart, double mtbf);

/* ---- expected time, exponential failures ---- */

/* Time for total_work with failures during work, save and restart:
 *   (mtbf + down) e^(restart/mtbf) (e^((work+save)/mtbf) - 1) total_work / work */
double rel_expected_time (double total_work, double work, double save, double restart, double down,
                          double mtbf);
double rel_efficiency (double work, double save, double restart, double down, double mtbf);

/* Time already spent when a failure strikes in a period, given that one does:
 *   mtbf - period / (e^(period/mtbf) - 1) */
double rel_lost_given_failure (double period, double mtbf);

/* The widest interval [lo, hi] in which the efficiency is at most `loss` below its maximum. */
void rel_flat_band (double save, double restart, double down, double mtbf, double loss, double *lo,
                    double *hi);

/* First order, for a checkpoint that blocks for `blocked` and is safe `persist` later (own):
 *   blocked / period + (period / 2 + persist + restart) / mtbf */
double rel_waste_async (double period, double blocked, double persist, double restart, double mtbf);

/* Expected ETTR by Meta's first-order formula: (1 - (start + interval / 2) / mtbf) / (1 + save /
 * interval), and its best interval sqrt (2 save mtbf). */
double rel_ettr_meta (double interval, double save, double start, double mtbf);
double rel_interval_meta (double save, double mtbf);

/* Time lost for each failure with a store that takes save_time, at a frequency of one in interval:
 * save_time + interval / 2 + retrieve (GEMINI, eq. 1). */
double rel_wasted_gemini (double save_time, double interval, double retrieve);

/* ---- two levels: cheap and fragile (1) inside expensive and safe (2) ---- */

typedef struct {
  double save1, save2;       /* every segment costs save1, each k-th save2 on top */
  double restart1, restart2; /* from either level */
  double rate1, rate2;       /* failures per second that level 1 survives, and that it does not */
} RelTwoLevel;

double rel_two_level_period1 (const RelTwoLevel *t); /* sqrt (2 save1 / rate1) */
double rel_two_level_period2 (const RelTwoLevel *t);
double rel_two_level_ratio (const RelTwoLevel *t);           /* real k*, first order */
double rel_two_level_period (const RelTwoLevel *t, guint k); /* best for this k, first order */
double rel_two_level_waste (const RelTwoLevel *t, double period, guint k); /* first order */
guint rel_two_level_best_k (const RelTwoLevel *t); /* least waste at its period */

/* Expected time of one pattern of k segments of `work` each, exact (own: linear system over the
 * segment that runs; see reliability_levels.c). */
double rel_two_level_expected (const RelTwoLevel *t, double work, guint k);

/* ---- many parts, spares, repair ---- */

/* 1 / sum (count[i] rate[i]); rates per second, infinite when all are 0. */
double rel_series_mtbf (const double *count, const double *rate_per_s, guint n);
double rel_survival (double time, double mtbf);       /* e^(-time/mtbf) */
double rel_weibull_scale (double mean, double shape); /* mean / Gamma (1 + 1/shape) */

/* Probability that all `servers` are busy at an offered load of a erlangs. With servers = spares +
 * 1 and a = nodes * repair / node_mtbf: the share of time that a job stands still for want of a
 * node, when neither idle spares nor nodes of a stopped job fail. */
double rel_erlang_b (guint servers, double a);

/* Smallest k with P (X <= k) >= q. */
guint rel_binomial_quantile (guint n, double p, double q);
guint rel_poisson_quantile (double mean, double q);

/* Efficiency when a failure stalls all for `stall` and keeps one of `replicas` away for `rejoin`.
 */
double rel_efficiency_replicated (double mtbf, double stall, double rejoin, double replicas);

/* Probability that no group of `copies` machines is wholly among `failed` of `machines` (GEMINI's
 * group placement; copies divides machines). */
double rel_memory_survival (guint machines, guint copies, guint failed);

/* ---- fits used for traces ---- */

/* Maximum likelihood of a gamma distribution; x > 0, n >= 2, not all equal. */
void rel_fit_gamma (const double *x, guint n, double *shape, double *scale);
/* Maximum likelihood of a Weibull distribution. */
void rel_fit_weibull (const double *x, guint n, double *shape, double *scale);
/* Of a lognormal one. */
void rel_fit_lognormal (const double *x, guint n, double *mu, double *sigma);

#endif
