/* Running a plan on an engine and a net: one date, one flow a channel, or every slot. */
#include "coll_plan.h"

#include <math.h>

const char *const coll_fidelity_names[] = {"analytic", "flow", "step", NULL};

typedef struct {
  guint32 done; /* slots */
  gboolean busy, ready;
} EdgeState;

struct CollRun {
  Net *net;
  const CollPlan *plan;
  CollFidelity fidelity;
  NetDone done;
  gpointer self;
  guint64 arg;
  guint phase;
  guint32 left; /* channels, or edges with slots to go, in this phase */
  EdgeState *edge;
  SimTime begin;
  SimTime *offset; /* by rank; STEP only */
  guint16 kind_next, kind_edge, kind_phase;
  gboolean waiting; /* counted as pending work of the engine */
};

static void begin_phase (CollRun *r);

static void
wait_until (CollRun *r, SimTime t, guint16 kind)
{
  r->waiting = TRUE;
  sim_engine_add_pending (r->net->eng, 1);
  if (t < SIM_TIME_MAX)
    sim_engine_at (r->net->eng, t, SIM_PRIO_DONE, kind, r, r->phase);
}

static void
end_wait (CollRun *r)
{
  if (r->waiting)
    sim_engine_add_pending (r->net->eng, -1);
  r->waiting = FALSE;
}

/* ---- slots ------------------------------------------------------------------------------------
 */

static void on_slot (gpointer self, guint64 arg, SimTime when);

/* Bytes of slot j: whole, equal to one, and adding up. */
static gint64
slot_bytes (const CollEdge *e, guint32 j)
{
  return e->bytes / e->slots + (j < (guint64)(e->bytes % e->slots));
}

static void
try_edge (CollRun *r, guint32 id)
{
  EdgeState *st = &r->edge[id];
  const CollEdge *e = coll_plan_edge (r->plan, id);
  const guint32 *deps = (const guint32 *)(const void *)r->plan->deps->data;
  if (st->busy || !st->ready || st->done == e->slots)
    return;
  /* what must be done: slot j - lag of all it waits for */
  guint32 need = st->done + 1 > e->lag ? st->done + 1 - e->lag : 0;
  for (guint32 i = 0; i < e->n_pred; i++) {
    const EdgeState *p = &r->edge[deps[e->pred + i]];
    if (p->done < MIN (need, coll_plan_edge (r->plan, deps[e->pred + i])->slots))
      return;
  }
  NetFlowSpec f = {.path = {.links = &g_array_index (r->plan->links, guint32, e->path),
                            .coef = &g_array_index (r->plan->coefs, double, e->path),
                            .n = e->n_path,
                            .latency_s = e->lag > 0 || st->done == 0 ? e->alpha_s : 0},
                   .bytes = slot_bytes (e, st->done),
                   .cap_Bps = e->cap_Bps};
  st->busy = TRUE;
  net_start (r->net, &f, on_slot, r, id);
}

static void
end_phase (CollRun *r)
{
  r->phase++;
  begin_phase (r);
}

static void
on_slot (gpointer self, guint64 arg, SimTime when)
{
  CollRun *r = self;
  guint32 id = (guint32)arg;
  EdgeState *st = &r->edge[id];
  const CollEdge *e = coll_plan_edge (r->plan, id);
  const guint32 *deps = (const guint32 *)(const void *)r->plan->deps->data;
  (void)when;
  st->busy = FALSE;
  st->done++;
  if (st->done == e->slots)
    r->left--;
  else
    try_edge (r, id);
  for (guint32 i = 0; i < e->n_succ; i++)
    try_edge (r, deps[e->succ + i]);
  if (r->left == 0)
    end_phase (r);
}

static void
on_edge_ready (SimEngine *eng, gpointer self, guint64 arg)
{
  CollRun *r = self;
  (void)eng;
  r->edge[arg].ready = TRUE;
  try_edge (r, (guint32)arg);
}

/* Paths are only known to be borrowed by net flows, so the slots of all phases share one array. */
static void
begin_steps (CollRun *r, const CollPhase *ph)
{
  const CollChannel *a = coll_plan_channel (r->plan, ph->channel);
  const CollChannel *z = coll_plan_channel (r->plan, ph->channel + ph->n_channel - 1);
  guint32 first = a->edge, end = z->edge + z->n_edge;
  SimTime now = sim_engine_now (r->net->eng);
  r->left = end - first;
  for (guint32 i = first; i < end; i++) {
    SimTime ready = now;
    if (r->offset)
      sim_time_add (r->begin, r->offset[coll_plan_edge (r->plan, i)->src], &ready);
    r->edge[i].ready = ready <= now;
    if (ready > now)
      sim_engine_at (r->net->eng, ready, SIM_PRIO_NORMAL, r->kind_edge, r, i);
  }
  for (guint32 i = first; i < end; i++)
    try_edge (r, i);
}

/* ---- flows ------------------------------------------------------------------------------------
 */

static void
on_phase_end (SimEngine *eng, gpointer self, guint64 arg)
{
  (void)eng;
  (void)arg;
  end_wait (self);
  end_phase (self);
}

static void
on_channel (gpointer self, guint64 arg, SimTime when)
{
  CollRun *r = self;
  (void)arg;
  if (--r->left > 0)
    return;
  SimTime end = 0;
  sim_time_add (when, net_ticks (r->net, coll_plan_phase (r->plan, r->phase)->alpha_s), &end);
  wait_until (r, end, r->kind_phase);
}

static void
begin_flows (CollRun *r, const CollPhase *ph)
{
  r->left = ph->n_channel;
  for (guint c = 0; c < ph->n_channel; c++) {
    const CollChannel *ch = coll_plan_channel (r->plan, ph->channel + c);
    NetFlowSpec f = {.path = {.links = &g_array_index (r->plan->links, guint32, ch->path),
                              .coef = &g_array_index (r->plan->coefs, double, ch->path),
                              .n = ch->n_path},
                     .bytes = ch->amount,
                     .cap_Bps = ch->cap_Bps};
    net_start (r->net, &f, on_channel, r, c);
  }
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static void
begin_phase (CollRun *r)
{
  if (r->fidelity == COLL_ANALYTIC || r->phase == r->plan->phases->len) {
    NetDone done = r->done;
    gpointer self = r->self;
    guint64 arg = r->arg;
    SimTime now = sim_engine_now (r->net->eng);
    g_free (r->edge);
    g_free (r->offset);
    g_free (r);
    done (self, arg, now);
    return;
  }
  const CollPhase *ph = coll_plan_phase (r->plan, r->phase);
  if (r->fidelity == COLL_STEP)
    begin_steps (r, ph);
  else
    begin_flows (r, ph);
}

static void
on_begin (SimEngine *eng, gpointer self, guint64 arg)
{
  CollRun *r = self;
  (void)arg;
  r->begin = sim_engine_now (eng);
  end_wait (r);
  begin_phase (r);
}

/* The same ticks that a flow run alone adds up, each part rounded once. */
static SimTime
analytic_ticks (const Net *net, const CollPlan *p)
{
  SimTime t = p->phases->len > 0 ? net_ticks (net, p->start_s) : 0;
  for (guint i = 0; i < p->phases->len; i++) {
    sim_time_add (t, net_ticks (net, coll_plan_phase_time_s (p, i)), &t);
    sim_time_add (t, net_ticks (net, coll_plan_phase (p, i)->alpha_s), &t);
  }
  return t;
}

CollRun *
coll_run_start (Net *net, const CollPlan *plan, CollFidelity fidelity, const SimTime *offset,
                NetDone done, gpointer self, guint64 arg)
{
  g_assert (fidelity != COLL_STEP || plan->steps || plan->phases->len == 0);
  CollRun *r = g_new0 (CollRun, 1);
  *r = (CollRun){.net = net,
                 .plan = plan,
                 .fidelity = fidelity,
                 .done = done,
                 .self = self,
                 .arg = arg,
                 .kind_next = sim_engine_kind (net->eng, "coll.begin", on_begin),
                 .kind_phase = sim_engine_kind (net->eng, "coll.phase", on_phase_end),
                 .kind_edge = sim_engine_kind (net->eng, "coll.ready", on_edge_ready)};
  SimTime last = 0, begin = 0;
  for (guint32 i = 0; offset && i < plan->n; i++)
    last = MAX (last, offset[i]);
  if (fidelity == COLL_STEP) {
    r->edge = g_new0 (EdgeState, plan->edges->len + 1);
    r->offset = offset ? g_memdup2 (offset, plan->n * sizeof (SimTime)) : NULL;
    last = 0;
  }
  sim_time_add (sim_engine_now (net->eng), last, &begin);
  SimTime wait = plan->phases->len > 0 ? net_ticks (net, plan->start_s) : 0;
  sim_time_add (begin, fidelity == COLL_ANALYTIC ? analytic_ticks (net, plan) : wait, &begin);
  wait_until (r, begin, r->kind_next);
  return r;
}
