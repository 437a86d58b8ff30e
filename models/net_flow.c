/* Flows on the max-min solver.
 *
 * A flow whose links carry nobody else is not the solver's business: it claims them ("alone"), its
 * rate is that of its narrowest link. When another flow comes to one of its links, both go to the
 * solver. A flow in its latency may already hold a claim: it is only given up when somebody comes
 * before it does. So ring steps on links of their own cost a claim and one date each.
 *
 * Dates lie in a heap of the net's own, with one engine event, for the earliest. A date that moves
 * later stays in place and is set right when it comes up; one that moves earlier is put in anew,
 * and the old entry is dropped when it comes up.
 */
#include "net.h"
#include "maxmin.h"

#include <math.h>

#define NONE G_MAXUINT32

typedef enum { FREE, WAITING, ALONE, SHARED } FlowState;

typedef struct {
  const guint32 *links;
  const double *coef;
  double bytes, left, rate, cap_Bps;
  SimTime since;  /* date that left and rate hold from; in the future while the latency lasts */
  SimTime date;   /* when it enters (WAITING) or ends */
  SimTime queued; /* earliest date under which it is in the heap */
  guint64 seq;    /* of starts: order among equal dates, and tells users of one slot apart */
  NetDone done;
  gpointer self;
  guint64 arg;
  guint32 n_links, solver_id, next_free;
  FlowState state;
} FFlow;

typedef struct {
  double cap, moved;
  guint32 alone;    /* flow that has the claim, or NONE */
  guint32 n_shared; /* crossings by flows that are in the solver */
} FLink;

typedef struct {
  SimTime date;
  guint64 seq;
  guint32 flow;
} Date;

typedef struct {
  Net base;
  MaxMin *solver;
  FLink *link;
  FFlow *flow;
  guint32 n, alloc, free_head;
  guint32 *by_solver_id; /* flow of a solver's id */
  guint32 n_by_id;
  Date *heap;
  guint32 n_heap, heap_alloc;
  guint64 next_seq;
  SimEventId event; /* the one for the earliest date */
  SimTime event_date;
  guint16 kind_date, kind_solve;
  gboolean armed, solve_armed, in_event;
} NetFlow;

/* ---- dates ---------------------------------------------------------------------------------- */

static inline gboolean
before (const Date *a, const Date *b)
{
  return a->date != b->date ? a->date < b->date : a->seq < b->seq;
}

static void
put_date (NetFlow *n, guint32 id)
{
  FFlow *f = &n->flow[id];
  if (f->date >= f->queued || f->date == SIM_TIME_MAX)
    return;
  if (n->n_heap == n->heap_alloc) {
    n->heap_alloc = MAX (64, 2 * n->heap_alloc);
    n->heap = g_renew (Date, n->heap, n->heap_alloc);
  }
  Date x = {.date = f->date, .seq = f->seq, .flow = id};
  f->queued = f->date;
  guint32 i = n->n_heap++;
  while (i > 0) {
    guint32 up = (i - 1) / 4;
    if (!before (&x, &n->heap[up]))
      break;
    n->heap[i] = n->heap[up];
    i = up;
  }
  n->heap[i] = x;
}

static Date
take_date (NetFlow *n)
{
  Date top = n->heap[0], x = n->heap[--n->n_heap];
  guint32 i = 0;
  for (;;) {
    guint32 c = 4 * i + 1, best = c, end = MIN (c + 4, n->n_heap);
    if (c >= n->n_heap)
      break;
    while (++c < end)
      if (before (&n->heap[c], &n->heap[best]))
        best = c;
    if (!before (&n->heap[best], &x))
      break;
    n->heap[i] = n->heap[best];
    i = best;
  }
  n->heap[i] = x;
  return top;
}

static void
arm (NetFlow *n)
{
  if (n->in_event || n->n_heap == 0 || (n->armed && n->event_date <= n->heap[0].date))
    return;
  if (n->armed)
    sim_engine_cancel (n->base.eng, n->event);
  n->armed = TRUE;
  n->event_date = n->heap[0].date;
  n->event = sim_engine_at (n->base.eng, n->event_date, SIM_PRIO_DONE, n->kind_date, n, 0);
}

static void
arm_solve (NetFlow *n)
{
  if (n->solve_armed)
    return;
  n->solve_armed = TRUE;
  sim_engine_at (n->base.eng, sim_engine_now (n->base.eng), SIM_PRIO_SOLVE, n->kind_solve, n, 0);
}

/* ---- a flow and its links ------------------------------------------------------------------- */

static inline double
coef_of (const FFlow *f, guint32 i)
{
  return f->coef ? f->coef[i] : 1;
}

static void
set_end (NetFlow *n, guint32 id)
{
  FFlow *f = &n->flow[id];
  f->date = SIM_TIME_MAX;
  if (f->left <= 0)
    f->date = f->since;
  else if (f->rate > 0)
    sim_time_add (f->since, net_ticks (&n->base, f->left / f->rate), &f->date);
  put_date (n, id);
}

static void
settle (const NetFlow *n, FFlow *f)
{
  SimTime now = sim_engine_now (n->base.eng);
  if (now <= f->since || f->state == WAITING)
    return;
  double s = sim_time_to_s (now - f->since, sim_engine_ticks_per_s (n->base.eng));
  f->left = isinf (f->rate) ? 0 : MAX (0, f->left - f->rate * s);
  f->since = now;
}

static double
alone_rate (const NetFlow *n, const FFlow *f)
{
  double r = f->cap_Bps;
  for (guint32 i = 0; i < f->n_links; i++)
    r = MIN (r, n->link[f->links[i]].cap / coef_of (f, i));
  return r;
}

static void
drop_claim (NetFlow *n, guint32 id, guint32 up_to)
{
  const FFlow *f = &n->flow[id];
  for (guint32 i = 0; i < up_to; i++)
    n->link[f->links[i]].alone = NONE;
}

static gboolean
claim (NetFlow *n, guint32 id)
{
  FFlow *f = &n->flow[id];
  for (guint32 i = 0; i < f->n_links; i++) {
    FLink *k = &n->link[f->links[i]];
    if (k->alone != NONE || k->n_shared > 0) { /* or by itself: the link stands twice */
      drop_claim (n, id, i);
      return FALSE;
    }
    k->alone = id;
  }
  f->state = ALONE;
  f->rate = alone_rate (n, f);
  set_end (n, id);
  return TRUE;
}

static void
join_solver (NetFlow *n, guint32 id)
{
  FFlow *f = &n->flow[id];
  f->state = SHARED;
  f->solver_id = maxmin_add (n->solver, f->links, f->coef, f->n_links, f->cap_Bps);
  if (f->solver_id >= n->n_by_id) {
    n->n_by_id = MAX (64, MAX (f->solver_id + 1, 2 * n->n_by_id));
    n->by_solver_id = g_renew (guint32, n->by_solver_id, n->n_by_id);
  }
  n->by_solver_id[f->solver_id] = id;
  for (guint32 i = 0; i < f->n_links; i++)
    n->link[f->links[i]].n_shared++;
}

/* Another flow comes to a link that this one had for itself. */
static void
end_claim (NetFlow *n, guint32 id)
{
  FFlow *f = &n->flow[id];
  drop_claim (n, id, f->n_links);
  if (f->since > sim_engine_now (n->base.eng)) {
    f->state = WAITING;
    f->date = f->since;
    put_date (n, id);
    return;
  }
  settle (n, f);
  join_solver (n, id);
}

/* The latency is over: onto the links. */
static void
enter (NetFlow *n, guint32 id)
{
  if (claim (n, id))
    return;
  FFlow *f = &n->flow[id];
  for (guint32 i = 0; i < f->n_links; i++) {
    guint32 other = n->link[f->links[i]].alone;
    if (other != NONE)
      end_claim (n, other);
  }
  f->rate = 0;
  f->date = SIM_TIME_MAX;
  join_solver (n, id);
  arm_solve (n);
}

static void
leave (NetFlow *n, guint32 id, double moved)
{
  FFlow *f = &n->flow[id];
  gboolean shared = f->state == SHARED;
  for (guint32 i = 0; i < f->n_links; i++) {
    FLink *k = &n->link[f->links[i]];
    k->moved += coef_of (f, i) * moved;
    if (shared)
      k->n_shared--;
    else if (f->state == ALONE)
      k->alone = NONE;
  }
  if (shared) {
    maxmin_remove (n->solver, f->solver_id);
    arm_solve (n);
  }
  f->state = FREE;
  f->next_free = n->free_head;
  n->free_head = id;
  sim_engine_add_pending (n->base.eng, -1);
}

/* ---- events --------------------------------------------------------------------------------- */

static void
on_date (SimEngine *eng, gpointer self, guint64 arg)
{
  NetFlow *n = self;
  SimTime now = sim_engine_now (eng);
  (void)arg;
  n->armed = FALSE;
  n->in_event = TRUE;
  while (n->n_heap > 0 && n->heap[0].date <= now) {
    Date d = take_date (n);
    FFlow *f = &n->flow[d.flow];
    if (f->state == FREE || f->seq != d.seq || f->queued != d.date)
      continue;
    f->queued = SIM_TIME_MAX;
    if (f->date > now) {
      put_date (n, d.flow);
    } else if (f->state == WAITING) {
      enter (n, d.flow);
    } else {
      NetDone done = f->done;
      gpointer who = f->self;
      guint64 what = f->arg;
      leave (n, d.flow, f->bytes);
      done (who, what, now);
    }
  }
  n->in_event = FALSE;
  arm (n);
}

static void
on_solve (SimEngine *eng, gpointer self, guint64 arg)
{
  NetFlow *n = self;
  const guint32 *changed = NULL;
  (void)eng;
  (void)arg;
  n->solve_armed = FALSE;
  guint k = maxmin_solve (n->solver, &changed);
  for (guint i = 0; i < k; i++) {
    guint32 id = n->by_solver_id[changed[i]];
    FFlow *f = &n->flow[id];
    settle (n, f);
    f->rate = maxmin_rate (n->solver, changed[i]);
    set_end (n, id);
  }
  arm (n);
}

/* ---- the interface -------------------------------------------------------------------------- */

static guint32
start (Net *base, const NetFlowSpec *s, NetDone done, gpointer self, guint64 arg)
{
  NetFlow *n = (NetFlow *)base;
  guint32 id = n->free_head;
  if (id != NONE) {
    n->free_head = n->flow[id].next_free;
  } else {
    if (n->n == n->alloc) {
      n->alloc = MAX (64, 2 * n->alloc);
      n->flow = g_renew (FFlow, n->flow, n->alloc);
    }
    id = n->n++;
  }
  FFlow *f = &n->flow[id];
  *f = (FFlow){.links = s->path.links,
               .coef = s->path.coef,
               .n_links = s->path.n,
               .bytes = (double)s->bytes,
               .left = (double)s->bytes,
               .cap_Bps = s->cap_Bps > 0 ? s->cap_Bps : INFINITY,
               .queued = SIM_TIME_MAX,
               .seq = n->next_seq++,
               .done = done,
               .self = self,
               .arg = arg,
               .state = WAITING};
  SimTime now = sim_engine_now (base->eng);
  sim_time_add (now, s->path.latency_s > 0 ? net_ticks (base, s->path.latency_s) : 0, &f->since);
  sim_engine_add_pending (base->eng, 1);
  if (!claim (n, id)) {
    f->date = f->since;
    if (f->since > now)
      put_date (n, id);
    else
      enter (n, id);
  }
  arm (n);
  return id;
}

static void
cancel (Net *base, guint32 id)
{
  NetFlow *n = (NetFlow *)base;
  g_assert (id < n->n && n->flow[id].state != FREE);
  settle (n, &n->flow[id]);
  leave (n, id, n->flow[id].bytes - n->flow[id].left);
}

static void
set_link (Net *base, guint32 link, double cap_Bps)
{
  NetFlow *n = (NetFlow *)base;
  FLink *k = &n->link[link];
  if (k->cap == cap_Bps)
    return;
  k->cap = cap_Bps;
  maxmin_set_cap (n->solver, link, cap_Bps);
  if (k->n_shared > 0)
    arm_solve (n);
  if (k->alone == NONE)
    return;
  FFlow *f = &n->flow[k->alone];
  settle (n, f);
  f->rate = alone_rate (n, f);
  set_end (n, k->alone);
  arm (n);
}

static double
link_bytes (Net *base, guint32 link)
{
  NetFlow *n = (NetFlow *)base;
  double sum = n->link[link].moved;
  for (guint32 id = 0; id < n->n; id++) {
    const FFlow *f = &n->flow[id];
    for (guint32 i = 0; f->state != FREE && i < f->n_links; i++) {
      if (f->links[i] != link)
        continue;
      FFlow now = *f;
      settle (n, &now);
      sum += (now.bytes - now.left) * coef_of (f, i);
    }
  }
  return sum;
}

static void
free_net (Net *base)
{
  NetFlow *n = (NetFlow *)base;
  net_clear (base);
  maxmin_free (n->solver);
  g_free (n->link);
  g_free (n->flow);
  g_free (n->by_solver_id);
  g_free (n->heap);
  g_free (n);
}

static const NetOps flow_ops = {start, cancel, set_link, link_bytes, free_net};

Net *
net_flow_new (SimEngine *eng, guint32 n_links, const double *cap_Bps)
{
  NetFlow *n = g_new0 (NetFlow, 1);
  net_init (&n->base, &flow_ops, eng, n_links);
  n->solver = maxmin_new (n_links, cap_Bps);
  n->link = g_new (FLink, MAX (1, n_links));
  for (guint32 l = 0; l < n_links; l++)
    n->link[l] = (FLink){.cap = cap_Bps[l], .alone = NONE};
  n->free_head = NONE;
  n->kind_date = sim_engine_kind (eng, "net.date", on_date);
  n->kind_solve = sim_engine_kind (eng, "net.solve", on_solve);
  return &n->base;
}
