#include "cost.h"

#include <math.h>
#include <string.h>

const char *const cost_mode_names[] = {"unknown", "rent", "own", NULL};

static const double hours_per_year = 8766.0; /* 365.25 days */

void
cost_init (CostSpec *c)
{
  memset (c, 0, sizeof *c);
  c->kg_co2_per_kwh = -1.0;
}

static void
energy (const CostSpec *c, double gpus, double elapsed_s, double busy_s, CostResult *r)
{
  r->kwh = r->kwh_compute = r->kwh_comm = r->kwh_idle = r->kwh_overhead = -1.0;
  if (c->compute_w <= 0.0)
    return;
  double kwh_per_w = gpus / 3600.0 / 1000.0;
  double compute_s = busy_s * c->compute_share, comm_s = busy_s * c->comm_share;
  r->kwh_compute = kwh_per_w * c->compute_w * compute_s;
  r->kwh_comm = kwh_per_w * c->comm_w * comm_s;
  r->kwh_idle = kwh_per_w * c->idle_w * fmax (elapsed_s - compute_s - comm_s, 0.0);
  double it = r->kwh_compute + r->kwh_comm + r->kwh_idle;
  r->kwh_overhead = it * (fmax (c->pue, 1.0) - 1.0);
  r->kwh = it + r->kwh_overhead;
}

CostResult
cost_of (const CostSpec *c, double gpus, double elapsed_s, double busy_s)
{
  CostResult r = {.days = elapsed_s / 86400.0, .gpu_hours = gpus * elapsed_s / 3600.0};
  energy (c, gpus, elapsed_s, busy_s, &r);
  r.usd = r.usd_machines = r.usd_upkeep = r.usd_power = -1.0;
  if (c->mode == COST_RENT) {
    r.usd = r.usd_machines = r.gpu_hours * c->usd_per_gpu_hour;
    r.usd_upkeep = r.usd_power = 0.0;
  } else if (c->mode == COST_OWN) {
    double years = r.gpu_hours / hours_per_year;
    r.usd_machines = c->capex_usd_per_gpu * (1.0 - c->residual) / c->life_years * years;
    r.usd_upkeep = c->capex_usd_per_gpu * c->upkeep_per_year * years;
    r.usd_power = r.kwh >= 0.0 ? r.kwh * c->usd_per_kwh : 0.0;
    r.usd = r.usd_machines + r.usd_upkeep + r.usd_power;
  }
  r.kg_co2 = c->kg_co2_per_kwh >= 0.0 && r.kwh >= 0.0 ? r.kwh * c->kg_co2_per_kwh : -1.0;
  return r;
}
