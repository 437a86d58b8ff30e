/* All groups of a kind at once on one network. */
#include "netprice.h"

/* Bytes of a flow that never ends on its own. */
#define ENDLESS_BYTES ((gint64)1 << 60)

/* Transfers of a step run that take minutes and gigabytes. */
#define TRANSFERS_MAX 400e6

typedef struct {
  const NetWorld *w;
  SimEngine *eng;
  Net *net;
  guint left;
  SimTime end;
  GArray *beside;    /* guint32: flows of the neighbour */
  SimEventId toggle; /* the next one of the flapping links */
  SimTime up, down;  /* 0: none flap */
  guint16 kind_toggle;
  gboolean is_up;
} Run;

void
net_world_clear (NetWorld *w)
{
  g_clear_pointer (&w->topo, topo_free);
  g_clear_pointer (&w->scratch, g_free);
  g_clear_pointer (&w->beside, g_ptr_array_unref);
  g_clear_pointer (&w->flapping, g_array_unref);
}

static void
on_end (gpointer self, guint64 arg, SimTime when)
{
  Run *r = self;
  (void)arg;
  r->end = when;
  if (--r->left > 0)
    return;
  for (guint i = 0; i < r->beside->len; i++)
    net_cancel (r->net, g_array_index (r->beside, guint32, i));
  if (r->up > 0)
    sim_engine_cancel (r->eng, r->toggle);
}

static void
on_never (gpointer self, guint64 arg, SimTime when)
{
  (void)self;
  (void)arg;
  (void)when;
}

/* ---- what disturbs ----------------------------------------------------------------------------
 */

static void
start_beside (Run *r)
{
  for (guint i = 0; r->w->beside != NULL && i < r->w->beside->len; i++) {
    const CollPlan *p = g_ptr_array_index (r->w->beside, i);
    const CollPhase *ph = coll_plan_phase (p, 0);
    double alone_s = coll_plan_phase_time_s (p, 0);
    for (guint c = 0; c < ph->n_channel; c++) {
      const CollChannel *ch = coll_plan_channel (p, ph->channel + c);
      NetFlowSpec f = {.path = {.links = &g_array_index (p->links, guint32, ch->path),
                                .coef = &g_array_index (p->coefs, double, ch->path),
                                .n = ch->n_path},
                       .bytes = ENDLESS_BYTES,
                       .cap_Bps = (double)ch->amount / alone_s * r->w->load};
      guint32 id = net_start (r->net, &f, on_never, NULL, 0);
      g_array_append_val (r->beside, id);
    }
  }
}

static void
set_flapping (Run *r, gboolean up)
{
  const double *cap = topo_link_caps (r->w->topo);
  r->is_up = up;
  for (guint i = 0; i < r->w->flapping->len; i++) {
    guint32 l = g_array_index (r->w->flapping, guint32, i);
    net_set_link (r->net, l, up ? cap[l] : 0);
  }
}

static void
on_toggle (SimEngine *eng, gpointer self, guint64 arg)
{
  Run *r = self;
  SimTime next = 0;
  (void)arg;
  set_flapping (r, !r->is_up);
  sim_time_add (sim_engine_now (eng), r->is_up ? r->up : r->down, &next);
  r->toggle = sim_engine_at (eng, next, SIM_PRIO_FAULT, r->kind_toggle, r, 0);
}

/* The period begins with its up time; the run meets it at `phase`. */
static void
start_flapping (Run *r, double phase)
{
  if (r->w->flapping == NULL || r->w->flapping->len == 0)
    return;
  r->up = MAX (1, net_ticks (r->net, r->w->up_s));
  r->down = MAX (1, net_ticks (r->net, r->w->down_s));
  SimTime at = (SimTime)(phase * (double)(r->up + r->down));
  set_flapping (r, at < r->up);
  r->kind_toggle = sim_engine_kind (r->eng, "netprice.toggle", on_toggle);
  r->toggle = sim_engine_at (r->eng, r->is_up ? r->up - at : r->up + r->down - at, SIM_PRIO_FAULT,
                             r->kind_toggle, r, 0);
}

/* ---- what is priced ---------------------------------------------------------------------------
 */

static void
start_pairs (Run *r, const NetPairs *p)
{
  r->left += p->first->len - 1;
  for (guint i = 0; i + 1 < p->first->len; i++) {
    guint32 at = g_array_index (p->first, guint32, i);
    NetFlowSpec f = {.path = {.links = p->path.links + at,
                              .coef = p->path.coef + at,
                              .n = g_array_index (p->first, guint32, i + 1) - at},
                     .bytes = p->bytes,
                     .cap_Bps = p->cap_Bps};
    net_start (r->net, &f, on_end, r, i);
  }
}

static gboolean
check_size (const GPtrArray *plans, CollFidelity fidelity, GError **error)
{
  double n = 0;
  for (guint i = 0; fidelity == COLL_STEP && i < plans->len; i++)
    n += (double)coll_plan_n_transfers (g_ptr_array_index (plans, i));
  if (n <= TRANSFERS_MAX)
    return TRUE;
  g_set_error (error, TOPO_ERROR, TOPO_ERROR_RANGE,
               "%.3g transfers in one collective are too many for the step fidelity (allowed: "
               "%.3g; flow has no such limit)",
               n, TRANSFERS_MAX);
  return FALSE;
}

gboolean
net_world_run (const NetWorld *w, const GPtrArray *plans, const NetPairs *pairs,
               CollFidelity fidelity, double phase, double *end_s, GError **error)
{
  SimOptions o = {.ticks_per_s = SIM_TICKS_PS, .horizon = SIM_TIME_MAX};
  *end_s = 0;
  if (plans != NULL && !check_size (plans, fidelity, error))
    return FALSE;
  g_autoptr (SimEngine) eng = sim_engine_new (&o);
  g_autoptr (Net) net = net_flow_new (eng, topo_n_links (w->topo), topo_link_caps (w->topo));
  g_autoptr (GArray) beside = g_array_new (FALSE, FALSE, sizeof (guint32));
  Run r = {.w = w, .eng = eng, .net = net, .beside = beside, .is_up = TRUE};
  start_flapping (&r, phase);
  start_beside (&r);
  if (plans != NULL)
    r.left += plans->len;
  for (guint i = 0; plans != NULL && i < plans->len; i++)
    coll_run_start (net, g_ptr_array_index (plans, i), fidelity, NULL, on_end, &r, i);
  if (pairs != NULL)
    start_pairs (&r, pairs);
  gboolean ok = r.left == 0 || sim_engine_run (eng, error);
  *end_s = sim_time_to_s (r.end, SIM_TICKS_PS);
  return ok;
}
