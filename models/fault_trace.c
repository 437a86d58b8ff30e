/* Dated traces: checks, and the fit of a profile to one. */
#include "fault.h"

#include "reliability.h"
#include "stats.h"

#include <math.h>
#include <string.h>

FaultTrace *
fault_trace_new (const FaultTraceEvent *events, guint n, guint n_nodes, double length_s,
                 GError **error)
{
  if (n == 0) {
    g_set_error (error, FAULT_ERROR, FAULT_ERROR_TRACE, "the trace has no failures");
    return NULL;
  }
  for (guint i = 0; i < n; i++) {
    const FaultTraceEvent *e = &events[i];
    if (!(e->t_s >= 0.0) || (i > 0 && e->t_s < events[i - 1].t_s)) {
      g_set_error (error, FAULT_ERROR, FAULT_ERROR_TRACE,
                   "failure %u of the trace is out of order (found %g days after %g; allowed: "
                   "ascending dates)",
                   i + 1, e->t_s / 86400.0, i > 0 ? events[i - 1].t_s / 86400.0 : 0.0);
      return NULL;
    }
    if (e->node >= n_nodes) {
      g_set_error (error, FAULT_ERROR, FAULT_ERROR_TRACE,
                   "failure %u of the trace is at node %u (allowed: 0 to %u)", i + 1, e->node,
                   n_nodes - 1);
      return NULL;
    }
  }
  if (length_s <= 0.0)
    length_s = fmax (events[n - 1].t_s, 1.0);
  if (events[n - 1].t_s > length_s) {
    g_set_error (error, FAULT_ERROR, FAULT_ERROR_TRACE,
                 "the trace ends before its last failure (found %g days; allowed: %g or more)",
                 length_s / 86400.0, events[n - 1].t_s / 86400.0);
    return NULL;
  }
  FaultTrace *t = g_new0 (FaultTrace, 1);
  t->events = g_memdup2 (events, n * sizeof *events);
  t->n = n;
  t->n_nodes = n_nodes;
  t->length_s = length_s;
  return t;
}

FaultTrace *
fault_trace_copy (const FaultTrace *t)
{
  FaultTrace *c = g_memdup2 (t, sizeof *t);
  c->events = g_memdup2 (t->events, t->n * sizeof *t->events);
  return c;
}

void
fault_trace_free (FaultTrace *t)
{
  if (t == NULL)
    return;
  g_free (t->events);
  g_free (t);
}

/* ---- fit ---- */

typedef struct {
  double begin, end; /* seconds */
  guint32 node;
  guint group, epoch;
} Episode;

static int
by_node (gconstpointer a, gconstpointer b)
{
  const Episode *x = a, *y = b;
  if (x->node != y->node)
    return x->node < y->node ? -1 : 1;
  return (x->begin > y->begin) - (x->begin < y->begin);
}

static int
by_begin (gconstpointer a, gconstpointer b)
{
  const Episode *x = a, *y = b;
  if (x->begin != y->begin)
    return x->begin < y->begin ? -1 : 1;
  return (x->node > y->node) - (x->node < y->node);
}

/* Overlapping faults of one node are one episode. */
static GArray *
episodes_of (const FaultTrace *t)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (Episode));
  for (guint i = 0; i < t->n; i++) {
    Episode e = {t->events[i].t_s, t->events[i].t_s + fmax (t->events[i].repair_s, 0.0),
                 t->events[i].node, 0, 0};
    g_array_append_val (all, e);
  }
  g_array_sort (all, by_node);
  GArray *merged = g_array_new (FALSE, FALSE, sizeof (Episode));
  for (guint i = 0; i < all->len; i++) {
    Episode e = g_array_index (all, Episode, i);
    Episode *last = merged->len > 0 ? &g_array_index (merged, Episode, merged->len - 1) : NULL;
    if (last != NULL && last->node == e.node && e.begin <= last->end)
      last->end = fmax (last->end, e.end);
    else
      g_array_append_val (merged, e);
  }
  g_array_unref (all);
  g_array_sort (merged, by_begin);
  return merged;
}

/* Moments of a count give the shape of the gamma that mixes it; excess is the variance that the
 * count would have without it. 0: no mixing seen. */
static double
mixing_shape (const SimMoments *m, double without)
{
  double excess = sim_moments_variance (m) - without;
  return excess > 0.0 && m->mean > 0.0 ? m->mean * m->mean / excess : 0.0;
}

static void
fit_nodes (const GArray *ep, guint n_nodes, FaultFit *fit)
{
  g_autofree double *count = g_new0 (double, n_nodes);
  SimMoments m = {0};
  for (guint i = 0; i < ep->len; i++)
    count[g_array_index (ep, Episode, i).node] += 1.0;
  for (guint i = 0; i < n_nodes; i++)
    sim_moments_add (&m, count[i]);
  fit->frailty_shape = mixing_shape (&m, m.mean);
}

/* Groups of episodes that begin within the window of the one before. Returns their number. */
static guint
fit_bursts (GArray *ep, double window_s, FaultFit *fit)
{
  guint groups = 0, larger = 0;
  guint size = 0;
  for (guint i = 0; i < ep->len; i++) {
    Episode *e = &g_array_index (ep, Episode, i);
    gboolean joins = i > 0 && e->begin - g_array_index (ep, Episode, i - 1).begin <= window_s;
    if (!joins) {
      groups++;
      size = 0;
    }
    if (++size == 2)
      larger++;
    e->group = groups - 1;
  }
  fit->burst_probability = (double)larger / groups;
  fit->burst_extra = larger > 0 ? (double)(ep->len - groups) / larger : 1.0;
  return groups;
}

/* Gamma of all positive gaps, for the report; and of the gaps between groups, each in units of its
 * epoch's mean gap, for the process within an epoch. */
static double
fit_gaps (const GArray *ep, double epoch_s, const double *groups_in_epoch, FaultFit *fit)
{
  g_autofree double *gap = g_new (double, ep->len), *scaled = g_new (double, ep->len);
  guint n = 0, m = 0;
  for (guint i = 1; i < ep->len; i++) {
    const Episode *a = &g_array_index (ep, Episode, i - 1), *b = &g_array_index (ep, Episode, i);
    if (b->begin <= a->begin)
      continue;
    gap[n++] = b->begin - a->begin;
    if (b->group != a->group && b->epoch == a->epoch)
      scaled[m++] = (b->begin - a->begin) * groups_in_epoch[b->epoch] / epoch_s;
  }
  fit->gap_shape = fit->gap_scale_s = 0.0;
  if (n >= 2)
    rel_fit_gamma (gap, n, &fit->gap_shape, &fit->gap_scale_s);
  double shape = 1.0, scale;
  if (m >= 20)
    rel_fit_gamma (scaled, m, &shape, &scale);
  return shape;
}

static double
fit_epochs (const GArray *ep, guint n_epochs, const double *groups_in_epoch, double within_shape,
            FaultFit *fit)
{
  SimMoments counts = {0}, means = {0};
  double sampling = 0.0;
  g_autofree SimMoments *repair = g_new0 (SimMoments, n_epochs);
  for (guint i = 0; i < ep->len; i++) {
    const Episode *e = &g_array_index (ep, Episode, i);
    sim_moments_add (&repair[e->epoch], e->end - e->begin);
  }
  SimMoments all = {0};
  for (guint i = 0; i < n_epochs; i++)
    sim_moments_merge (&all, &repair[i]);
  for (guint i = 0; i < n_epochs; i++) {
    sim_moments_add (&counts, groups_in_epoch[i]);
    if (repair[i].n == 0)
      continue;
    sim_moments_add (&means, repair[i].mean);
    sampling += sim_moments_variance (&all) / (double)repair[i].n;
  }
  fit->epoch_rate_shape = mixing_shape (&counts, counts.mean / within_shape);
  fit->epoch_repair_shape = means.n > 1 ? mixing_shape (&means, sampling / (double)means.n) : 0.0;
  return all.mean;
}

/* Weibull of the repairs, each in units of its epoch's mean when epochs differ. */
static void
fit_repair (const GArray *ep, guint n_epochs, FaultFit *fit)
{
  g_autofree SimMoments *by_epoch = g_new0 (SimMoments, n_epochs);
  SimMoments all = {0};
  for (guint i = 0; i < ep->len; i++) {
    const Episode *e = &g_array_index (ep, Episode, i);
    sim_moments_add (&by_epoch[e->epoch], e->end - e->begin);
    sim_moments_add (&all, e->end - e->begin);
  }
  g_autofree double *x = g_new (double, ep->len);
  guint n = 0;
  for (guint i = 0; i < ep->len; i++) {
    const Episode *e = &g_array_index (ep, Episode, i);
    double mean = fit->epoch_repair_shape > 0.0 ? by_epoch[e->epoch].mean : 1.0;
    if (e->end > e->begin && mean > 0.0)
      x[n++] = (e->end - e->begin) / mean;
  }
  double scale;
  fit->repair_mean_s = all.mean;
  fit->repair_shape = 1.0;
  if (n >= 2)
    rel_fit_weibull (x, n, &fit->repair_shape, &scale);
}

typedef struct {
  double t;
  int change;
} Step;

static int
by_time (gconstpointer a, gconstpointer b)
{
  const Step *x = a, *y = b;
  if (x->t != y->t)
    return x->t < y->t ? -1 : 1;
  return x->change - y->change;
}

static void
fit_down (const GArray *ep, double length_s, FaultFit *fit)
{
  g_autofree Step *s = g_new (Step, 2 * ep->len);
  g_autofree double *at = g_new0 (double, ep->len + 2);
  guint n = 0;
  for (guint i = 0; i < ep->len; i++) {
    const Episode *e = &g_array_index (ep, Episode, i);
    /* One that ends as it begins would be ended first. */
    if (e->end <= e->begin)
      continue;
    s[n++] = (Step){e->begin, 1};
    s[n++] = (Step){e->end, -1};
  }
  if (n > 1)
    qsort (s, n, sizeof *s, by_time);
  double last = 0.0;
  int down = 0;
  for (guint i = 0; i < n; i++) {
    double t = fmin (s[i].t, length_s);
    at[down] += fmax (t - last, 0.0);
    last = fmax (last, t);
    down += s[i].change;
  }
  at[0] += length_s - last;
  double sum = 0.0;
  fit->mean_down = 0.0;
  for (guint k = 0; k <= ep->len; k++) {
    double before = sum / length_s;
    sum += at[k];
    double after = sum / length_s;
    fit->mean_down += k * at[k] / length_s;
    if (before < 0.5 && after >= 0.5)
      fit->down_p50 = k;
    if (before < 0.9 && after >= 0.9)
      fit->down_p90 = k;
    if (before < 0.99 && after >= 0.99)
      fit->down_p99 = k;
  }
}

/* Nodes that are down cannot fail, and frail nodes are down more often: the rate while up that
 * gives the observed one solves E [w l / (1 + w l repair)] = observed, w the frailty. */
static double
rate_while_up (double observed, double repair, double frailty_shape)
{
  enum { DRAWS = 4096 };
  g_autofree double *w = g_new (double, DRAWS);
  SimRng r = sim_rng_stream (1, 0, "fault.fit", 0);
  for (guint i = 0; i < DRAWS; i++)
    w[i] = frailty_shape > 0.0 ? sim_rng_gamma (&r, frailty_shape, 1.0 / frailty_shape) : 1.0;
  double lo = observed, hi = observed * 100.0;
  for (guint k = 0; k < 100; k++) {
    double l = sqrt (lo * hi), sum = 0.0;
    for (guint i = 0; i < DRAWS; i++)
      sum += w[i] * l / (1.0 + w[i] * l * repair) / DRAWS;
    if (sum < observed)
      lo = l;
    else
      hi = l;
  }
  return lo;
}

static void
fill_profile (const FaultTrace *t, const FaultFit *fit, double within_shape, FaultProfile *out)
{
  double count[FAULT_COUNT] = {0}, sum = 0.0;
  for (guint i = 0; i < t->n; i++)
    count[t->events[i].cause] += 1.0;
  for (guint i = 0; i < FAULT_COUNT; i++)
    sum += count[i];
  double observed = fit->rate / (1000.0 * 86400.0);
  double up = rate_while_up (observed, fit->repair_mean_s, fit->frailty_shape);
  for (guint i = 0; i < FAULT_COUNT; i++) {
    out->cause[i].rate = up * 1000.0 * 86400.0 * count[i] / sum;
    out->cause[i].takes_node = 1.0;
    out->cause[i].repair = dist_make (DIST_WEIBULL, fit->repair_mean_s, fit->repair_shape);
  }
  out->process = within_shape < 0.99 || within_shape > 1.01 ? DIST_GAMMA : DIST_EXPONENTIAL;
  out->process_shape = within_shape;
  out->process_unit = FAULT_PER_JOB;
  out->frailty_shape = fit->frailty_shape;
  out->burst_probability = fit->burst_probability;
  out->burst_extra = fit->burst_extra;
  out->rates_count_nodes = TRUE;
  out->epoch_s = fit->epoch_s;
  out->epoch_rate_shape = fit->epoch_rate_shape;
  out->epoch_repair_shape = fit->epoch_repair_shape;
}

/* Whether nodes of one burst come back together: the spread of log (repair) inside bursts is under
 * half of that over all. */
static gboolean
repairs_are_shared (const GArray *ep)
{
  const double minute = 60.0; /* repairs of 0 have a logarithm too */
  SimMoments all = {0};
  double inside = 0.0;
  guint n_inside = 0;
  for (guint i = 0; i < ep->len;) {
    SimMoments group = {0};
    guint j = i;
    for (; j < ep->len &&
           g_array_index (ep, Episode, j).group == g_array_index (ep, Episode, i).group;
         j++) {
      const Episode *e = &g_array_index (ep, Episode, j);
      double x = log (e->end - e->begin + minute);
      sim_moments_add (&group, x);
      sim_moments_add (&all, x);
    }
    if (group.n > 1) {
      inside += group.m2;
      n_inside += (guint)group.n - 1;
    }
    i = j;
  }
  return n_inside > 0 && inside / n_inside < 0.5 * sim_moments_variance (&all);
}

void
fault_trace_fit (const FaultTrace *t, double burst_window_s, double epoch_s, FaultFit *fit,
                 FaultProfile *out)
{
  memset (fit, 0, sizeof *fit);
  fault_profile_init (out);
  g_autoptr (GArray) ep = episodes_of (t);
  fit->episodes = ep->len;
  fit->rate = ep->len / ((double)t->n_nodes * t->length_s / 86400.0) * 1000.0;
  fit->epoch_s = epoch_s;
  guint n_epochs = MAX ((guint)(t->length_s / epoch_s), 1u);
  g_autofree double *groups_in_epoch = g_new0 (double, n_epochs);
  fit_bursts (ep, burst_window_s, fit);
  for (guint i = 0; i < ep->len; i++) {
    Episode *e = &g_array_index (ep, Episode, i);
    e->epoch = MIN ((guint)(e->begin / epoch_s), n_epochs - 1);
    if (i == 0 || e->group != g_array_index (ep, Episode, i - 1).group)
      groups_in_epoch[e->epoch] += 1.0;
  }
  fit_nodes (ep, t->n_nodes, fit);
  double within = fit_gaps (ep, epoch_s, groups_in_epoch, fit);
  fit_epochs (ep, n_epochs, groups_in_epoch, within, fit);
  fit_repair (ep, n_epochs, fit);
  fit_down (ep, t->length_s, fit);
  fill_profile (t, fit, within, out);
  out->burst_shares_repair = repairs_are_shared (ep);
}
