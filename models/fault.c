/* Distributions and profiles; the generator is in fault_gen.c, traces in fault_trace.c. */
#include "fault.h"

#include "reliability.h"

#include <math.h>
#include <string.h>

G_DEFINE_QUARK (clustersim - fault - error - quark, fault_error)

const char *const dist_names[] = {"fixed", "exponential", "weibull", "gamma", "lognormal", NULL};
const char *const fault_unit_names[] = {"job", "node", "gpu", "switch", NULL};
const char *const fault_names[] = {"gpu",
                                   "hbm",
                                   "nic",
                                   "cable",
                                   "switch",
                                   "host",
                                   "power",
                                   "storage",
                                   "software",
                                   "hang",
                                   "silent_corruption",
                                   "maintenance",
                                   "straggler",
                                   "unknown",
                                   NULL};

/* ---- distributions ---- */

Dist
dist_make (DistKind kind, double mean_s, double shape)
{
  g_assert (mean_s >= 0.0);
  Dist d = {kind, mean_s, shape, mean_s};
  switch (kind) {
  case DIST_WEIBULL:
    g_assert (shape > 0.0);
    d.scale = rel_weibull_scale (mean_s, shape);
    break;
  case DIST_GAMMA:
    g_assert (shape > 0.0);
    d.scale = mean_s / shape;
    break;
  case DIST_LOGNORMAL:
    g_assert (shape >= 0.0);
    d.scale = mean_s > 0.0 ? log (mean_s) - 0.5 * shape * shape : -G_MAXDOUBLE;
    break;
  case DIST_FIXED:
  case DIST_EXPONENTIAL:
  case DIST_COUNT:
    break;
  }
  return d;
}

Dist
dist_fixed (double s)
{
  return dist_make (DIST_FIXED, s, 1.0);
}

double
dist_sample (const Dist *d, SimRng *r)
{
  if (d->mean_s <= 0.0)
    return 0.0;
  switch (d->kind) {
  case DIST_EXPONENTIAL:
    return sim_rng_exponential (r, d->scale);
  case DIST_WEIBULL:
    return sim_rng_weibull (r, d->scale, d->shape);
  case DIST_GAMMA:
    return sim_rng_gamma (r, d->shape, d->scale);
  case DIST_LOGNORMAL:
    return sim_rng_lognormal (r, d->scale, d->shape);
  case DIST_FIXED:
  case DIST_COUNT:
    break;
  }
  return d->scale;
}

/* Length-biased gaps have density x f(x) / mean: gamma of shape + 1; Weibull with (x/scale)^shape
 * gamma of shape 1 + 1/shape; lognormal of mu + sigma^2. */
double
dist_sample_residual (const Dist *d, SimRng *r)
{
  double u = sim_rng_uniform (r), gap = d->mean_s;
  if (d->mean_s <= 0.0)
    return 0.0;
  switch (d->kind) {
  case DIST_EXPONENTIAL:
    return sim_rng_exponential (r, d->scale);
  case DIST_WEIBULL:
    gap = d->scale * pow (sim_rng_gamma (r, 1.0 + 1.0 / d->shape, 1.0), 1.0 / d->shape);
    break;
  case DIST_GAMMA:
    gap = sim_rng_gamma (r, d->shape + 1.0, d->scale);
    break;
  case DIST_LOGNORMAL:
    gap = sim_rng_lognormal (r, d->scale + d->shape * d->shape, d->shape);
    break;
  case DIST_FIXED:
  case DIST_COUNT:
    break;
  }
  return u * gap;
}

/* ---- profiles ---- */

void
fault_profile_init (FaultProfile *p)
{
  memset (p, 0, sizeof *p);
  p->process = DIST_EXPONENTIAL;
  p->process_shape = 1.0;
  p->process_unit = FAULT_PER_JOB;
  p->lemon_factor = 1.0;
  p->burst_extra = 1.0;
  for (guint i = 0; i < FAULT_COUNT; i++) {
    p->cause[i].detect = dist_fixed (0.0);
    p->cause[i].repair = dist_fixed (0.0);
    p->cause[i].own_gap = dist_fixed (0.0);
  }
}

void
fault_profile_clear (FaultProfile *p)
{
  g_clear_pointer (&p->name, g_free);
  g_clear_pointer (&p->trace, fault_trace_free);
}

void
fault_profile_copy (FaultProfile *to, const FaultProfile *from)
{
  *to = *from;
  to->name = g_strdup (from->name);
  to->trace = from->trace != NULL ? fault_trace_copy (from->trace) : NULL;
}

static gboolean
fail (GError **error, const char *what, double found, const char *allowed)
{
  g_set_error (error, FAULT_ERROR, FAULT_ERROR_RANGE, "%s (found %g; allowed: %s)", what, found,
               allowed);
  return FALSE;
}

static gboolean
check_cause (const FaultCauseSpec *c, const char *name, GError **error)
{
  g_autofree char *rate = g_strdup_printf ("rate of %s", name);
  if (!(c->rate >= 0.0) || !isfinite (c->rate))
    return fail (error, rate, c->rate, "0 or more per 1000 node-days");
  if (!(c->takes_node >= 0.0 && c->takes_node <= 1.0))
    return fail (error, "probability that a node is taken", c->takes_node, "0 to 1");
  if (!(c->slowdown >= 0.0))
    return fail (error, "slowdown", c->slowdown, "0 or more");
  if (c->own_process && !(c->own_gap.mean_s > 0.0))
    return fail (error, "mean gap of a process", c->own_gap.mean_s, "more than 0 s");
  return TRUE;
}

gboolean
fault_profile_check (const FaultProfile *p, GError **error)
{
  for (guint i = 0; i < FAULT_COUNT; i++)
    if (!check_cause (&p->cause[i], fault_names[i], error))
      return FALSE;
  if (p->process == DIST_FIXED)
    return fail (error, "distribution of the gaps: fixed", 0,
                 "exponential, weibull, gamma, lognormal");
  if (!(p->process_shape > 0.0))
    return fail (error, "shape", p->process_shape, "more than 0");
  if (!(p->frailty_shape >= 0.0))
    return fail (error, "frailty shape", p->frailty_shape, "0 or more");
  if (!(p->lemon_fraction >= 0.0 && p->lemon_fraction < 1.0))
    return fail (error, "share of lemon nodes", p->lemon_fraction, "0 to less than 1");
  if (!(p->burst_probability >= 0.0 && p->burst_probability <= 1.0))
    return fail (error, "burst probability", p->burst_probability, "0 to 1");
  if (p->burst_probability > 0.0 && !(p->burst_extra >= 1.0))
    return fail (error, "further nodes of a burst", p->burst_extra, "1 or more");
  if ((p->epoch_rate_shape > 0.0 || p->epoch_repair_shape > 0.0) && !(p->epoch_s > 0.0))
    return fail (error, "length of an epoch", p->epoch_s, "more than 0 s");
  return TRUE;
}

/* Nodes that one pooled event takes on average. */
static double
mean_burst (const FaultProfile *p)
{
  return 1.0 + p->burst_probability * p->burst_extra;
}

double
fault_profile_rate (const FaultProfile *p, guint nodes, guint gpus_per_node)
{
  if (p->trace != NULL)
    return (double)p->trace->n / p->trace->length_s * (double)nodes / (double)p->trace->n_nodes;
  double pooled = 0.0, own = 0.0;
  for (guint i = 0; i < FAULT_COUNT; i++) {
    const FaultCauseSpec *c = &p->cause[i];
    if (i == FAULT_STRAGGLER || i == FAULT_SDC)
      continue;
    if (!c->own_process) {
      pooled += c->rate;
      continue;
    }
    double units = c->own_unit == FAULT_PER_JOB    ? 1.0
                   : c->own_unit == FAULT_PER_NODE ? (double)nodes
                   : c->own_unit == FAULT_PER_GPU
                       ? (double)nodes * gpus_per_node
                       : ceil ((double)nodes / MAX (p->nodes_per_switch, 1u));
    own += units / c->own_gap.mean_s;
  }
  double rate = pooled * (double)nodes / (1000.0 * 86400.0);
  if (p->rates_count_nodes)
    rate /= mean_burst (p);
  if (p->scale_nodes > 0.0 && nodes > p->scale_nodes)
    rate *= pow ((double)nodes / p->scale_nodes, p->scale_exponent);
  return rate + own;
}

gboolean
fault_profile_is_poisson (const FaultProfile *p)
{
  if (p->trace != NULL || p->process != DIST_EXPONENTIAL || p->epoch_rate_shape > 0.0 ||
      p->early_factor > 0.0)
    return FALSE;
  for (guint i = 0; i < FAULT_COUNT; i++)
    if (p->cause[i].own_process && p->cause[i].own_gap.kind != DIST_EXPONENTIAL)
      return FALSE;
  return TRUE;
}
