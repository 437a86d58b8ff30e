/* cost: days, money, energy and carbon of a campaign.
 *
 * Money: rent (price of a GPU-hour) or purchase (what the machines cost, spread over their life,
 * plus upkeep and power). Energy: power by what a GPU does (computing, communicating, idle), not
 * rated power times time; PUE covers cooling and losses. Carbon is the grid's intensity, an input.
 * Idle spares cost and draw idle power like the rest.
 */
#ifndef CLUSTERSIM_COST_H
#define CLUSTERSIM_COST_H

#include <glib.h>

typedef enum { COST_UNKNOWN, COST_RENT, COST_OWN } CostMode;
extern const char *const cost_mode_names[]; /* "unknown", "rent", "own" */

typedef struct {
  CostMode mode;
  double usd_per_gpu_hour;          /* rent */
  double capex_usd_per_gpu;         /* own: GPU with its share of server, network, building */
  double life_years, residual;      /* share of the price left after that */
  double upkeep_per_year;           /* share of the price: staff, repair, space */
  double usd_per_kwh;               /* own; in rent it is in the price */
  double pue;                       /* 0: not known, 1 is used and said */
  double compute_w, comm_w, idle_w; /* per GPU with its share of the node; 0: not known */
  double compute_share, comm_share; /* of a training step; the rest of it is idle */
  double kg_co2_per_kwh;            /* negative: not known */
} CostSpec;

typedef struct {
  double days, gpu_hours;
  double usd, usd_machines, usd_upkeep, usd_power;           /* negative: not known */
  double kwh, kwh_compute, kwh_comm, kwh_idle, kwh_overhead; /* negative: not known */
  double kg_co2;                                             /* negative: not known */
} CostResult;

void cost_init (CostSpec *c);

/* gpus: of the job and its idle spares. busy_s: of elapsed_s, the time in which steps ran (useful
 * or lost), as a mean over all these GPUs: spares have none. */
CostResult cost_of (const CostSpec *c, double gpus, double elapsed_s, double busy_s);

#endif
