/* Every flow alone on its path: one event each. */
#include "net.h"

#include <math.h>

typedef struct {
  NetPath path;
  double cap_Bps, bytes, left, rate;
  SimTime since; /* date that left and rate hold from; in the future while the latency lasts */
  SimEventId event;
  NetDone done;
  gpointer self;
  guint64 arg;
  guint32 next_free;
  gboolean live;
} AFlow;

typedef struct {
  Net base;
  double *cap, *moved;
  AFlow *flow;
  guint32 n, alloc, free_head;
  guint16 kind;
} NetAnalytic;

#define NONE G_MAXUINT32

static double
alone_rate (const NetAnalytic *n, const AFlow *f)
{
  double r = f->cap_Bps > 0 ? f->cap_Bps : INFINITY;
  for (guint i = 0; i < f->path.n; i++) {
    double a = 0; /* a link that stands twice is loaded twice */
    for (guint j = 0; f->path.n <= 64 && j < f->path.n; j++)
      if (f->path.links[j] == f->path.links[i])
        a += f->path.coef ? f->path.coef[j] : 1;
    if (f->path.n > 64)
      a = f->path.coef ? f->path.coef[i] : 1;
    r = MIN (r, n->cap[f->path.links[i]] / a);
  }
  return r;
}

static void
schedule (NetAnalytic *n, guint32 id)
{
  AFlow *f = &n->flow[id];
  SimTime end = SIM_TIME_MAX;
  if (f->left <= 0 || f->rate > 0)
    sim_time_add (f->since, f->left > 0 ? net_ticks (&n->base, f->left / f->rate) : 0, &end);
  f->event = (SimEventId){0, 0};
  if (end < SIM_TIME_MAX)
    f->event = sim_engine_at (n->base.eng, end, SIM_PRIO_DONE, n->kind, n, id);
}

static guint32
start (Net *base, const NetFlowSpec *s, NetDone done, gpointer self, guint64 arg)
{
  NetAnalytic *n = (NetAnalytic *)base;
  guint32 id = n->free_head;
  if (id != NONE) {
    n->free_head = n->flow[id].next_free;
  } else {
    if (n->n == n->alloc) {
      n->alloc = MAX (64, 2 * n->alloc);
      n->flow = g_renew (AFlow, n->flow, n->alloc);
    }
    id = n->n++;
  }
  AFlow *f = &n->flow[id];
  *f = (AFlow){.path = s->path,
               .cap_Bps = s->cap_Bps,
               .bytes = (double)s->bytes,
               .left = (double)s->bytes,
               .done = done,
               .self = self,
               .arg = arg,
               .live = TRUE};
  f->rate = alone_rate (n, f);
  sim_time_add (sim_engine_now (base->eng), net_ticks (base, s->path.latency_s), &f->since);
  sim_engine_add_pending (base->eng, 1);
  schedule (n, id);
  return id;
}

/* Brings left up to now. */
static void
settle (NetAnalytic *n, AFlow *f)
{
  SimTime now = sim_engine_now (n->base.eng);
  if (now <= f->since)
    return;
  double s = sim_time_to_s (now - f->since, sim_engine_ticks_per_s (n->base.eng));
  f->left = isinf (f->rate) ? 0 : MAX (0, f->left - f->rate * s);
  f->since = now;
}

static void
account (NetAnalytic *n, guint32 id, double moved)
{
  AFlow *f = &n->flow[id];
  for (guint i = 0; i < f->path.n; i++)
    n->moved[f->path.links[i]] += moved * (f->path.coef ? f->path.coef[i] : 1);
  f->live = FALSE;
  f->next_free = n->free_head;
  n->free_head = id;
  sim_engine_add_pending (n->base.eng, -1);
}

static void
on_done (SimEngine *eng, gpointer self, guint64 arg)
{
  NetAnalytic *n = self;
  AFlow f = n->flow[arg];
  account (n, (guint32)arg, f.bytes);
  f.done (f.self, f.arg, sim_engine_now (eng));
}

static void
cancel (Net *base, guint32 id)
{
  NetAnalytic *n = (NetAnalytic *)base;
  g_assert (id < n->n && n->flow[id].live);
  settle (n, &n->flow[id]);
  sim_engine_cancel (base->eng, n->flow[id].event);
  account (n, id, n->flow[id].bytes - n->flow[id].left);
}

static void
set_link (Net *base, guint32 link, double cap_Bps)
{
  NetAnalytic *n = (NetAnalytic *)base;
  n->cap[link] = cap_Bps;
  for (guint32 id = 0; id < n->n; id++) {
    AFlow *f = &n->flow[id];
    gboolean hit = FALSE;
    for (guint i = 0; f->live && i < f->path.n && !hit; i++)
      hit = f->path.links[i] == link;
    if (!hit)
      continue;
    settle (n, f);
    sim_engine_cancel (base->eng, f->event);
    f->rate = alone_rate (n, f);
    schedule (n, id);
  }
}

static double
link_bytes (Net *base, guint32 link)
{
  NetAnalytic *n = (NetAnalytic *)base;
  double sum = n->moved[link];
  for (guint32 id = 0; id < n->n; id++) {
    AFlow *f = &n->flow[id];
    for (guint i = 0; f->live && i < f->path.n; i++) {
      if (f->path.links[i] != link)
        continue;
      AFlow now = *f;
      settle (n, &now);
      sum += (now.bytes - now.left) * (f->path.coef ? f->path.coef[i] : 1);
    }
  }
  return sum;
}

static void
free_net (Net *base)
{
  NetAnalytic *n = (NetAnalytic *)base;
  net_clear (base);
  g_free (n->cap);
  g_free (n->moved);
  g_free (n->flow);
  g_free (n);
}

static const NetOps analytic_ops = {start, cancel, set_link, link_bytes, free_net};

Net *
net_analytic_new (SimEngine *eng, guint32 n_links, const double *cap_Bps)
{
  NetAnalytic *n = g_new0 (NetAnalytic, 1);
  net_init (&n->base, &analytic_ops, eng, n_links);
  n->cap = g_memdup2 (cap_Bps, n_links * sizeof (double));
  n->moved = g_new0 (double, MAX (1, n_links));
  n->free_head = NONE;
  n->kind = sim_engine_kind (eng, "net.alone", on_done);
  return &n->base;
}
