/* Prices, power and carbon. */
#include "read_job.h"

static const char *const keys[] = {"format",
                                   "name",
                                   "why",
                                   "source",
                                   "date",
                                   "mode",
                                   "usd_per_gpu_hour",
                                   "capex_usd_per_gpu",
                                   "life_years",
                                   "residual",
                                   "upkeep_per_year",
                                   "usd_per_kWh",
                                   "pue",
                                   "compute_W",
                                   "comm_W",
                                   "idle_W",
                                   "kg_co2_per_kWh",
                                   NULL};

gboolean
read_prices (const JsonRef *object, CostSpec *out, GPtrArray *inputs, GError **error)
{
  int mode = COST_UNKNOWN;
  gint64 format = 1;
  const char *date = NULL;
  JsonRef at;
  if (!json_check_keys (object, keys, error) ||
      !json_opt_int (object, "format", 1, 1, &format, error) ||
      !json_opt_string (object, "date", &date, error) ||
      !json_get_enum (object, "mode", cost_mode_names, &mode, error) ||
      !job_number (object, "usd_per_gpu_hour", 0, 1e6, &out->usd_per_gpu_hour, inputs, NULL,
                   error) ||
      !job_number (object, "capex_usd_per_gpu", 0, 1e9, &out->capex_usd_per_gpu, inputs, NULL,
                   error) ||
      !job_number (object, "life_years", 0.01, 1000, &out->life_years, inputs, NULL, error) ||
      !job_number (object, "residual", 0, 1, &out->residual, inputs, NULL, error) ||
      !job_number (object, "upkeep_per_year", 0, 10, &out->upkeep_per_year, inputs, NULL, error) ||
      !job_number (object, "usd_per_kWh", 0, 1e3, &out->usd_per_kwh, inputs, NULL, error) ||
      !job_number (object, "pue", 1, 10, &out->pue, inputs, NULL, error) ||
      !job_number (object, "compute_W", 0, 1e6, &out->compute_w, inputs, NULL, error) ||
      !job_number (object, "comm_W", 0, 1e6, &out->comm_w, inputs, NULL, error) ||
      !job_number (object, "idle_W", 0, 1e6, &out->idle_w, inputs, NULL, error) ||
      !job_number (object, "kg_co2_per_kWh", 0, 100, &out->kg_co2_per_kwh, inputs, NULL, error))
    return FALSE;
  out->mode = (CostMode)mode;
  const char *needed = mode == COST_RENT  ? "usd_per_gpu_hour"
                       : mode == COST_OWN ? "capex_usd_per_gpu"
                                          : NULL;
  if (needed != NULL && !json_get_any (object, needed, &at, error))
    return FALSE;
  if (mode == COST_RENT && out->usd_per_gpu_hour <= 0.0)
    return json_fail (&at, JSON_ERROR_RANGE, error,
                      "a price of nothing (found 0; allowed: more than 0, or mode \"unknown\")");
  if (mode == COST_OWN && out->capex_usd_per_gpu <= 0.0)
    return json_fail (&at, JSON_ERROR_RANGE, error,
                      "a price of nothing (found 0; allowed: more than 0, or mode \"unknown\")");
  if (mode == COST_OWN && out->life_years <= 0.0)
    return json_get_any (object, "life_years", &at, error);
  return TRUE;
}
