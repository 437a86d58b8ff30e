#include "spares.h"

#include "engine.h"
#include "reliability.h"
#include "stats.h"

#include <math.h>
#include <string.h>

typedef struct {
  FaultGen *gen;
  guint nodes, down;
  gboolean shared_repair;
  guint8 *is_down;
  double *share; /* seconds with k down, k <= nodes */
  double begin_s, last_s, end_s;
  double takes[FAULT_COUNT]; /* probability that the cause takes the node */
  guint16 kind_fault, kind_repair;
} Yard;

static double
now_s (const SimEngine *eng)
{
  return sim_time_to_s (sim_engine_now (eng), SIM_TICKS_US);
}

static SimTime
ticks (double s)
{
  SimTime t = SIM_TIME_MAX;
  return sim_time_from_s (s, SIM_TICKS_US, &t) ? t : SIM_TIME_MAX;
}

static void
count_until (Yard *y, double t)
{
  t = fmin (t, y->end_s);
  double from = fmax (y->last_s, y->begin_s);
  if (t > from)
    y->share[y->down] += t - from;
  y->last_s = t;
}

static void
next_fault (Yard *y, SimEngine *eng)
{
  double t = fault_gen_peek_s (y->gen);
  if (t < y->end_s)
    sim_engine_at (eng, MAX (ticks (t), sim_engine_now (eng)), SIM_PRIO_FAULT, y->kind_fault, y, 0);
}

static void
strike (Yard *y, SimEngine *eng, const Fault *f, guint32 node, double repair_s)
{
  if (y->is_down[node] || (f->repair_s < 0.0 && fault_gen_uniform (y->gen) >= y->takes[f->cause]))
    return;
  y->is_down[node] = 1;
  y->down++;
  sim_engine_after (eng, ticks (fmin (repair_s, 1e12)), SIM_PRIO_DONE, y->kind_repair, y, node);
}

static void
on_fault (SimEngine *eng, gpointer self, guint64 arg G_GNUC_UNUSED)
{
  Yard *y = self;
  Fault f;
  fault_gen_pop (y->gen, &f);
  count_until (y, now_s (eng));
  /* A job-wide process always strikes a node that is up. */
  for (guint i = 0; !f.rack && fault_gen_hits_job (y->gen) && y->is_down[f.node] && i < 1000; i++)
    f.node = fault_gen_node (y->gen);
  double repair_s = fault_gen_repair_s (y->gen, &f);
  for (guint i = 0; i < f.n_nodes; i++) {
    guint32 node = f.rack ? f.node + i : i == 0 ? f.node : fault_gen_node (y->gen);
    gboolean same = i == 0 || f.rack || y->shared_repair;
    strike (y, eng, &f, node, same ? repair_s : fault_gen_repair_s (y->gen, &f));
  }
  fault_gen_restart (y->gen, f.t_s);
  next_fault (y, eng);
}

static void
on_repair (SimEngine *eng, gpointer self, guint64 node)
{
  Yard *y = self;
  count_until (y, now_s (eng));
  y->is_down[node] = 0;
  y->down--;
}

static guint
quantile (const double *share, guint n, double q)
{
  double total = 0.0, sum = 0.0;
  for (guint i = 0; i < n; i++)
    total += share[i];
  for (guint i = 0; i < n; i++) {
    sum += share[i];
    if (sum >= q * total * (1.0 - 1e-12))
      return i;
  }
  return n - 1;
}

static gboolean
one_replica (Yard *y, guint64 seed, guint64 run, GError **error)
{
  const SimOptions opt = {
      .ticks_per_s = SIM_TICKS_US, .seed = seed, .run = run, .horizon = ticks (y->end_s)};
  g_autoptr (SimEngine) eng = sim_engine_new (&opt);
  y->kind_fault = sim_engine_kind (eng, "spares.fault", on_fault);
  y->kind_repair = sim_engine_kind (eng, "spares.repair", on_repair);
  next_fault (y, eng);
  g_autoptr (GError) why = NULL;
  if (!sim_engine_run (eng, &why) && !g_error_matches (why, SIM_ERROR, SIM_ERROR_LIMIT)) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  count_until (y, y->end_s);
  return TRUE;
}

static void
summarise (SpareStats *out, SimQuantiles *p99s)
{
  double total = 0.0;
  out->mean_down = 0.0;
  for (guint i = 0; i < out->n_share; i++)
    total += out->share[i];
  for (guint i = 0; i < out->n_share; i++) {
    out->share[i] /= total;
    out->mean_down += i * out->share[i];
    if (out->share[i] > 0.0)
      out->most = i;
  }
  out->p50 = quantile (out->share, out->n_share, 0.5);
  out->p90 = quantile (out->share, out->n_share, 0.9);
  out->p95 = quantile (out->share, out->n_share, 0.95);
  out->p99 = quantile (out->share, out->n_share, 0.99);
  out->p99_lo = sim_quantiles_get (p99s, 0.1);
  out->p99_hi = sim_quantiles_get (p99s, 0.9);
  out->independent_p99 = rel_poisson_quantile (out->mean_down, 0.99);
}

gboolean
spares_simulate (const FaultProfile *p, guint nodes, guint gpus_per_node, double days,
                 double warmup_days, guint replicas, guint64 seed, SpareStats *out, GError **error)
{
  g_assert (nodes > 0 && days > 0.0 && replicas > 0);
  memset (out, 0, sizeof *out);
  out->n_share = nodes + 1;
  out->share = g_new0 (double, out->n_share);
  g_autofree double *share = g_new (double, nodes + 1);
  g_autofree guint8 *is_down = g_new (guint8, nodes);
  SimQuantiles p99s;
  sim_quantiles_init (&p99s);
  gboolean ok = TRUE;
  for (guint r = 0; ok && r < replicas; r++) {
    g_autoptr (FaultGen) gen = fault_gen_new (p, nodes, nodes, gpus_per_node, seed, r);
    Yard y = {.gen = gen,
              .nodes = nodes,
              .shared_repair = p->burst_shares_repair,
              .is_down = is_down,
              .share = share,
              .begin_s = warmup_days * 86400.0,
              .end_s = (warmup_days + days) * 86400.0};
    for (guint i = 0; i < FAULT_COUNT; i++)
      y.takes[i] = p->cause[i].takes_node;
    memset (share, 0, (nodes + 1) * sizeof *share);
    memset (is_down, 0, nodes);
    ok = one_replica (&y, seed, r, error);
    for (guint i = 0; i <= nodes; i++)
      out->share[i] += share[i];
    sim_quantiles_add (&p99s, quantile (share, nodes + 1, 0.99));
  }
  if (ok)
    summarise (out, &p99s);
  else
    spare_stats_clear (out);
  sim_quantiles_clear (&p99s);
  return ok;
}

guint
spares_needed (const SpareStats *s, double q)
{
  return quantile (s->share, s->n_share, q);
}

void
spare_stats_clear (SpareStats *s)
{
  g_clear_pointer (&s->share, g_free);
}
