#include "net.h"

/* A change that waits for its date. */
typedef struct {
  guint32 link;
  double cap_Bps;
} LinkChange;

void
net_init (Net *n, const NetOps *ops, SimEngine *eng, guint32 n_links)
{
  n->ops = ops;
  n->eng = eng;
  n->n_links = n_links;
  n->changes = g_array_new (FALSE, FALSE, sizeof (LinkChange));
}

void
net_clear (Net *n)
{
  g_array_unref (n->changes);
}

void
net_free (Net *n)
{
  if (n)
    n->ops->free (n);
}

guint32
net_start (Net *n, const NetFlowSpec *f, NetDone done, gpointer self, guint64 arg)
{
  g_assert (f->bytes >= 0 && f->path.latency_s >= 0 && f->cap_Bps >= 0);
  for (guint i = 0; i < f->path.n; i++)
    g_assert (f->path.links[i] < n->n_links);
  return n->ops->start (n, f, done, self, arg);
}

void
net_cancel (Net *n, guint32 flow)
{
  n->ops->cancel (n, flow);
}

void
net_set_link (Net *n, guint32 link, double cap_Bps)
{
  g_assert (link < n->n_links && cap_Bps >= 0);
  n->ops->set_link (n, link, cap_Bps);
}

static void
on_link_change (SimEngine *eng, gpointer self, guint64 arg)
{
  (void)eng;
  Net *n = self;
  LinkChange c = g_array_index (n->changes, LinkChange, (guint)arg);
  net_set_link (n, c.link, c.cap_Bps);
}

void
net_set_link_at (Net *n, SimTime when, guint32 link, double cap_Bps)
{
  LinkChange c = {.link = link, .cap_Bps = cap_Bps};
  g_assert (link < n->n_links && cap_Bps >= 0);
  guint16 kind = sim_engine_kind (n->eng, "net.link", on_link_change);
  sim_engine_at (n->eng, when, SIM_PRIO_FAULT, kind, n, n->changes->len);
  g_array_append_val (n->changes, c);
}

void
net_flap_link (Net *n, SimTime first, guint32 link, double cap_Bps, SimTime down_ticks,
               SimTime up_ticks, guint times)
{
  SimTime t = first;
  for (guint i = 0; i < times; i++) {
    net_set_link_at (n, t, link, 0);
    sim_time_add (t, down_ticks, &t);
    net_set_link_at (n, t, link, cap_Bps);
    sim_time_add (t, up_ticks, &t);
  }
}

double
net_link_bytes (Net *n, guint32 link)
{
  g_assert (link < n->n_links);
  return n->ops->link_bytes (n, link);
}

SimTime
net_ticks (const Net *n, double s)
{
  SimTime t = 0;
  return sim_time_from_s (s, sim_engine_ticks_per_s (n->eng), &t) ? t : SIM_TIME_MAX;
}
