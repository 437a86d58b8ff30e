/* The faults of one replica. Two sources are merged by time: the pooled process, and a heap of the
 * clocks of single parts (own processes, and pooled gaps by node). */
#include "fault.h"

#include <math.h>
#include <string.h>

typedef struct {
  double t;
  guint32 node;
  guint16 cause; /* FAULT_COUNT: a node's pooled clock; the cause is then drawn */
} Clock;

/* Walker's alias table (Vose, 1991): one draw, one comparison. */
typedef struct {
  double *keep;
  guint32 *other;
  guint n;
} Alias;

struct FaultGen {
  const FaultProfile *p;
  guint nodes, job_nodes, gpus_per_node;
  guint64 seed, run;
  SimRng gap, mark, node, repair, detect, choice;

  double pooled_rate;             /* events per second, before epochs and early life */
  double cumulative[FAULT_COUNT]; /* of the causes in the pool, ends at 1 */
  Dist unit_gap;                  /* of mean 1: what the pooled process consumes */
  double pooled_next;
  gboolean stopped; /* a job-wide renewal clock that waits for the job */

  /* piecewise constant factor of the pooled rate */
  double piece_begin, piece_end, piece_factor, repair_factor;
  guint64 epoch;

  Alias alias; /* n 0: all nodes alike */
  Clock *heap;
  guint n_heap;

  FaultTraceEvent *replay; /* owned */
  guint n_replay, at_replay;
};

/* ---- nodes ---- */

static void
alias_build (Alias *a, const double *weight, guint n)
{
  a->n = n;
  a->keep = g_new (double, n);
  a->other = g_new (guint32, n);
  g_autofree guint32 *small = g_new (guint32, n), *large = g_new (guint32, n);
  double sum = 0.0;
  for (guint i = 0; i < n; i++)
    sum += weight[i];
  guint n_small = 0, n_large = 0;
  for (guint i = 0; i < n; i++) {
    a->keep[i] = weight[i] * n / sum;
    a->other[i] = i;
    if (a->keep[i] < 1.0)
      small[n_small++] = i;
    else
      large[n_large++] = i;
  }
  while (n_small > 0 && n_large > 0) {
    guint32 s = small[--n_small], l = large[n_large - 1];
    a->other[s] = l;
    a->keep[l] -= 1.0 - a->keep[s];
    if (a->keep[l] < 1.0) {
      n_large--;
      small[n_small++] = l;
    }
  }
  while (n_small > 0)
    a->keep[small[--n_small]] = 1.0;
  while (n_large > 0)
    a->keep[large[--n_large]] = 1.0;
}

static void
build_frailty (FaultGen *g)
{
  const FaultProfile *p = g->p;
  gboolean lemons = p->lemon_fraction > 0.0 && p->lemon_factor != 1.0;
  if (p->frailty_shape <= 0.0 && !lemons)
    return;
  SimRng r = sim_rng_stream (g->seed, g->run, "fault.frailty", 0);
  g_autofree double *weight = g_new (double, g->nodes);
  for (guint i = 0; i < g->nodes; i++) {
    weight[i] =
        p->frailty_shape > 0.0 ? sim_rng_gamma (&r, p->frailty_shape, 1.0 / p->frailty_shape) : 1.0;
    if (lemons && sim_rng_uniform (&r) < p->lemon_fraction)
      weight[i] *= p->lemon_factor;
    weight[i] = fmax (weight[i], 1e-9); /* all zero is not a distribution */
  }
  alias_build (&g->alias, weight, g->nodes);
}

guint32
fault_gen_node (FaultGen *g)
{
  guint32 i = (guint32)sim_rng_below (&g->node, g->nodes);
  if (g->alias.n == 0)
    return i;
  return sim_rng_uniform (&g->node) < g->alias.keep[i] ? i : g->alias.other[i];
}

/* ---- the factor of the pooled rate over time ---- */

/* Mean of 1 + f e^(-t/d) over [a, b]. */
static double
early_mean (const FaultProfile *p, double a, double b)
{
  double d = p->early_decay_s;
  return 1.0 + p->early_factor * d * (exp (-a / d) - exp (-b / d)) / (b - a);
}

static void
next_piece (FaultGen *g, double from)
{
  const FaultProfile *p = g->p;
  gboolean epochs = p->epoch_rate_shape > 0.0 || p->epoch_repair_shape > 0.0;
  gboolean early =
      p->early_factor > 0.0 && p->early_decay_s > 0.0 && from < 16.0 * p->early_decay_s;
  g->piece_begin = from;
  g->piece_end = INFINITY;
  g->piece_factor = 1.0;
  if (epochs) {
    g->epoch = (guint64)(from / p->epoch_s + 1e-9);
    SimRng r = sim_rng_stream (g->seed, g->run, "fault.epoch", g->epoch);
    if (p->epoch_rate_shape > 0.0)
      g->piece_factor = sim_rng_gamma (&r, p->epoch_rate_shape, 1.0 / p->epoch_rate_shape);
    if (p->epoch_repair_shape > 0.0)
      g->repair_factor = sim_rng_gamma (&r, p->epoch_repair_shape, 1.0 / p->epoch_repair_shape);
    g->piece_end = (double)(g->epoch + 1) * p->epoch_s;
  }
  if (early) {
    g->piece_end = fmin (g->piece_end, from + p->early_decay_s / 8.0);
    g->piece_factor *= early_mean (p, from, g->piece_end);
  }
}

/* The date at which the pooled process, from t on, has consumed `need` mean gaps. */
static double
consume (FaultGen *g, double t, double need)
{
  if (g->pooled_rate <= 0.0)
    return INFINITY;
  while (t >= g->piece_end)
    next_piece (g, g->piece_end);
  for (guint guard = 0; guard < 1000000; guard++) {
    double rate = g->pooled_rate * g->piece_factor;
    if ((g->piece_end - t) * rate >= need)
      return t + need / rate;
    need -= (g->piece_end - t) * rate;
    t = g->piece_end;
    next_piece (g, t);
  }
  return INFINITY;
}

/* ---- clocks of parts ---- */

static void
sift_down (FaultGen *g, guint i)
{
  Clock c = g->heap[i];
  for (;;) {
    guint child = 2 * i + 1;
    if (child >= g->n_heap)
      break;
    if (child + 1 < g->n_heap && g->heap[child + 1].t < g->heap[child].t)
      child++;
    if (c.t <= g->heap[child].t)
      break;
    g->heap[i] = g->heap[child];
    i = child;
  }
  g->heap[i] = c;
}

static double
clock_gap (FaultGen *g, const Clock *c, gboolean first)
{
  if (c->cause == FAULT_COUNT)
    return dist_sample (&g->unit_gap, &g->gap) * g->nodes / g->pooled_rate;
  const FaultCauseSpec *s = &g->p->cause[c->cause];
  return first && s->own_aged ? dist_sample_residual (&s->own_gap, &g->gap)
                              : dist_sample (&s->own_gap, &g->gap);
}

static guint
units_of (const FaultGen *g, FaultUnit u)
{
  switch (u) {
  case FAULT_PER_JOB:
    return 1;
  case FAULT_PER_NODE:
    return g->nodes;
  case FAULT_PER_GPU:
    return g->nodes * g->gpus_per_node;
  case FAULT_PER_SWITCH:
    break;
  }
  guint per = MAX (g->p->nodes_per_switch, 1u);
  return (g->nodes + per - 1) / per;
}

static void
add_clocks (FaultGen *g, guint16 cause, FaultUnit unit)
{
  guint n = units_of (g, unit);
  g->heap = g_renew (Clock, g->heap, g->n_heap + n);
  for (guint i = 0; i < n; i++) {
    Clock c = {0.0, i, cause};
    if (unit == FAULT_PER_GPU)
      c.node = i / g->gpus_per_node;
    else if (unit == FAULT_PER_SWITCH)
      c.node = i * MAX (g->p->nodes_per_switch, 1u);
    c.t = clock_gap (g, &c, TRUE);
    g->heap[g->n_heap++] = c;
  }
}

static void
build_clocks (FaultGen *g)
{
  for (guint i = 0; i < FAULT_COUNT; i++)
    if (g->p->cause[i].own_process)
      add_clocks (g, (guint16)i, g->p->cause[i].own_unit);
  gboolean by_node = g->p->process != DIST_EXPONENTIAL && g->p->process_unit == FAULT_PER_NODE;
  if (by_node && g->pooled_rate > 0.0) {
    add_clocks (g, FAULT_COUNT, FAULT_PER_NODE);
    g->pooled_next = INFINITY;
  }
  for (guint i = g->n_heap / 2; i-- > 0;)
    sift_down (g, i);
}

/* ---- replay ---- */

static int
compare_events (gconstpointer a, gconstpointer b)
{
  const FaultTraceEvent *x = a, *y = b;
  if (x->t_s != y->t_s)
    return x->t_s < y->t_s ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

/* Run 0 replays the trace as it is. Later runs begin at a random place of it (it is taken as a
 * circle) with its nodes in random order. A cluster larger than the trace's gets further copies,
 * each with a place of its own; of the last copy only as many nodes as are needed. */
static void
build_replay (FaultGen *g)
{
  const FaultTrace *t = g->p->trace;
  SimRng r = sim_rng_stream (g->seed, g->run, "fault.replay", 0);
  guint copies = (g->nodes + t->n_nodes - 1) / t->n_nodes;
  g->replay = g_new (FaultTraceEvent, (gsize)copies * t->n);
  g_autofree guint32 *order = g_new (guint32, t->n_nodes);
  for (guint c = 0; c < copies; c++) {
    double shift = g->run == 0 && c == 0 ? 0.0 : sim_rng_uniform (&r) * t->length_s;
    for (guint i = 0; i < t->n_nodes; i++)
      order[i] = i;
    for (guint i = t->n_nodes; i > 1 && !(g->run == 0 && c == 0); i--) {
      guint j = (guint)sim_rng_below (&r, i);
      guint32 swap = order[i - 1];
      order[i - 1] = order[j];
      order[j] = swap;
    }
    for (guint i = 0; i < t->n; i++) {
      FaultTraceEvent e = t->events[i];
      e.node = c * t->n_nodes + order[e.node];
      e.t_s = e.t_s >= shift ? e.t_s - shift : e.t_s - shift + t->length_s;
      if (e.node < g->nodes)
        g->replay[g->n_replay++] = e;
    }
  }
  qsort (g->replay, g->n_replay, sizeof *g->replay, compare_events);
}

/* The trace begins again when it is over. */
static double
replay_time (const FaultGen *g)
{
  if (g->n_replay == 0)
    return INFINITY;
  guint rounds = g->at_replay / g->n_replay; /* whole passes through the trace */
  return g->replay[g->at_replay % g->n_replay].t_s + rounds * g->p->trace->length_s;
}

/* ---- the generator ---- */

static void
prepare_pool (FaultGen *g)
{
  const FaultProfile *p = g->p;
  double sum = 0.0;
  for (guint i = 0; i < FAULT_COUNT; i++) {
    if (!p->cause[i].own_process)
      sum += p->cause[i].rate;
    g->cumulative[i] = sum;
  }
  for (guint i = 0; i < FAULT_COUNT; i++)
    g->cumulative[i] = sum > 0.0 ? g->cumulative[i] / sum : 1.0;
  guint struck = fault_gen_hits_job (g) ? g->job_nodes : g->nodes;
  g->pooled_rate = sum * struck / (1000.0 * 86400.0);
  if (p->rates_count_nodes)
    g->pooled_rate /= 1.0 + p->burst_probability * p->burst_extra;
  if (p->scale_nodes > 0.0 && g->job_nodes > p->scale_nodes)
    g->pooled_rate *= pow (g->job_nodes / p->scale_nodes, p->scale_exponent);
  g->unit_gap = dist_make (p->process, 1.0, p->process_shape);
}

FaultGen *
fault_gen_new (const FaultProfile *p, guint nodes, guint job_nodes, guint gpus_per_node,
               guint64 seed, guint64 run)
{
  g_assert (nodes > 0 && job_nodes > 0 && job_nodes <= nodes);
  FaultGen *g = g_new0 (FaultGen, 1);
  g->p = p;
  g->nodes = nodes;
  g->job_nodes = job_nodes;
  g->gpus_per_node = MAX (gpus_per_node, 1u);
  g->seed = seed;
  g->run = run;
  g->gap = sim_rng_stream (seed, run, "fault.gap", 0);
  g->mark = sim_rng_stream (seed, run, "fault.mark", 0);
  g->node = sim_rng_stream (seed, run, "fault.node", 0);
  g->repair = sim_rng_stream (seed, run, "fault.repair", 0);
  g->detect = sim_rng_stream (seed, run, "fault.detect", 0);
  g->choice = sim_rng_stream (seed, run, "fault.choice", 0);
  g->repair_factor = 1.0;
  g->pooled_next = INFINITY;
  if (p->trace != NULL) {
    build_replay (g);
    return g;
  }
  prepare_pool (g);
  build_frailty (g);
  next_piece (g, 0.0);
  g->pooled_next = consume (g, 0.0, dist_sample (&g->unit_gap, &g->gap));
  build_clocks (g);
  return g;
}

void
fault_gen_free (FaultGen *g)
{
  if (g == NULL)
    return;
  g_free (g->alias.keep);
  g_free (g->alias.other);
  g_free (g->heap);
  g_free (g->replay);
  g_free (g);
}

gboolean
fault_gen_hits_job (const FaultGen *g)
{
  return g->p->trace == NULL && g->p->process != DIST_EXPONENTIAL &&
         g->p->process_unit == FAULT_PER_JOB;
}

double
fault_gen_peek_s (const FaultGen *g)
{
  if (g->replay != NULL)
    return replay_time (g);
  return g->n_heap > 0 ? fmin (g->pooled_next, g->heap[0].t) : g->pooled_next;
}

static FaultCause
draw_cause (FaultGen *g)
{
  double u = sim_rng_uniform (&g->mark);
  guint i = 0;
  while (i + 1 < FAULT_COUNT && u >= g->cumulative[i])
    i++;
  return (FaultCause)i;
}

/* How many nodes, and whether they are a rack. */
static void
widen (FaultGen *g, Fault *f)
{
  const FaultProfile *p = g->p;
  if (f->cause == FAULT_SWITCH && p->nodes_per_switch > 1) {
    f->node -= f->node % p->nodes_per_switch;
    f->n_nodes = MIN (p->nodes_per_switch, g->nodes - f->node);
    f->rack = TRUE;
    return;
  }
  if (p->burst_probability <= 0.0 || sim_rng_uniform (&g->mark) >= p->burst_probability)
    return;
  /* Geometric from 1 on with mean extra, by inversion. */
  double u = sim_rng_uniform (&g->mark);
  double more =
      p->burst_extra > 1.0 ? 1.0 + floor (log1p (-u) / log1p (-1.0 / p->burst_extra)) : 1.0;
  f->n_nodes = 1 + (guint32)fmin (more, g->nodes - 1);
}

void
fault_gen_pop (FaultGen *g, Fault *out)
{
  *out = (Fault){.t_s = fault_gen_peek_s (g), .n_nodes = 1, .repair_s = -1.0, .repair_factor = 1.0};
  g_assert (isfinite (out->t_s));
  if (g->replay != NULL) {
    const FaultTraceEvent *e = &g->replay[g->at_replay++ % g->n_replay];
    out->cause = e->cause;
    out->node = e->node;
    out->repair_s = e->repair_s;
    return;
  }
  out->repair_factor = g->repair_factor;
  if (g->n_heap > 0 && g->heap[0].t <= g->pooled_next) {
    Clock *c = &g->heap[0];
    out->cause = c->cause == FAULT_COUNT ? draw_cause (g) : (FaultCause)c->cause;
    gboolean of_job = c->cause < FAULT_COUNT && g->p->cause[c->cause].own_unit == FAULT_PER_JOB;
    out->node = of_job ? fault_gen_node (g) : c->node;
    c->t += clock_gap (g, c, FALSE);
    sift_down (g, 0);
  } else {
    out->cause = draw_cause (g);
    out->node = fault_gen_node (g);
    if (fault_gen_hits_job (g)) {
      g->stopped = TRUE;
      g->pooled_next = INFINITY;
    } else {
      g->pooled_next = consume (g, g->pooled_next, dist_sample (&g->unit_gap, &g->gap));
    }
  }
  widen (g, out);
}

void
fault_gen_restart (FaultGen *g, double t_s)
{
  if (!g->stopped)
    return;
  g->stopped = FALSE;
  g->pooled_next = consume (g, t_s, dist_sample (&g->unit_gap, &g->gap));
}

double
fault_gen_repair_s (FaultGen *g, const Fault *f)
{
  if (f->repair_s >= 0.0)
    return f->repair_s;
  return f->repair_factor * dist_sample (&g->p->cause[f->cause].repair, &g->repair);
}

double
fault_gen_detect_s (FaultGen *g, FaultCause c)
{
  return dist_sample (&g->p->cause[c].detect, &g->detect);
}

double
fault_gen_uniform (FaultGen *g)
{
  return sim_rng_uniform (&g->choice);
}
