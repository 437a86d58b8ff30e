/* net: flows over a network whose links they share, behind one interface.
 *
 * Two implementations: net_analytic (every flow alone on its path: no contention) and net_flow
 * (max-min fair sharing, maxmin.h). Both have the same dates, to the tick, when nothing is shared.
 *
 * A flow waits latency_s, then moves `bytes` over its links at its rate r, loading link l with
 * coef(l) * r, and is done. Rate: at most cap_Bps, and coef * r summed over the flows of a link is
 * at most the link's capacity. Several routes with coefs below 1 spread a flow; a collective in
 * lockstep is one flow over the union of its edges' routes (coef = edges on that link).
 * Idealised: fluid, no packet loss, no PFC pauses, no incast; rates follow every change at once.
 * An end is an event, never a remainder that is small enough: bytes delivered are exact.
 *
 * Units: bytes, bytes/s, seconds; dates are ticks of the engine. Ownership: the net borrows the
 * engine, which must outlive it; paths are borrowed until the flow's end. Flows count as pending
 * work of the engine, so a flow on a dead link is SIM_ERROR_STALLED and not silence.
 */
#ifndef CLUSTERSIM_NET_H
#define CLUSTERSIM_NET_H

#include "engine.h"

typedef void (*NetDone) (gpointer self, guint64 arg, SimTime when);

/* coef NULL: all 1. The same link may stand twice (up to 64 links). n 0: nothing is shared, only
 * latency and the flow's own cap count (both ends on one GPU). */
typedef struct {
  const guint32 *links;
  const double *coef;
  guint n;
  double latency_s;
} NetPath;

typedef struct {
  NetPath path;
  gint64 bytes;   /* >= 0 */
  double cap_Bps; /* own limit, or 0: none */
  guint8 tclass;  /* for traces; does not change rates */
} NetFlowSpec;

typedef struct Net Net;
typedef struct {
  guint32 (*start) (Net *n, const NetFlowSpec *f, NetDone done, gpointer self, guint64 arg);
  void (*cancel) (Net *n, guint32 flow);
  void (*set_link) (Net *n, guint32 link, double cap_Bps);
  double (*link_bytes) (Net *n, guint32 link);
  void (*free) (Net *n);
} NetOps;

/* What every implementation begins with. */
struct Net {
  const NetOps *ops;
  SimEngine *eng;
  guint32 n_links;
  GArray *changes; /* of link capacities at later dates; see net_init */
};

/* For implementations: fills in the base, and takes it apart. */
void net_init (Net *n, const NetOps *ops, SimEngine *eng, guint32 n_links);
void net_clear (Net *n);

/* cap_Bps: n_links capacities, copied. */
Net *net_analytic_new (SimEngine *eng, guint32 n_links, const double *cap_Bps);
Net *net_flow_new (SimEngine *eng, guint32 n_links, const double *cap_Bps);
void net_free (Net *n);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Net, net_free)

/* done is called once, in an event at the flow's end; it may start flows. The id is valid until
 * then, or until net_cancel, and reused after. */
guint32 net_start (Net *n, const NetFlowSpec *f, NetDone done, gpointer self, guint64 arg);

/* Ends a flow without calling done; what it moved so far counts in net_link_bytes. */
void net_cancel (Net *n, guint32 flow);

/* Capacity of a link from now on; 0 is down. */
void net_set_link (Net *n, guint32 link, double cap_Bps);

/* The same at a date (SIM_PRIO_FAULT). */
void net_set_link_at (Net *n, SimTime when, guint32 link, double cap_Bps);

/* A flapping link: `times` times down for down_ticks, then up at cap_Bps for up_ticks, from
 * `first` on. */
void net_flap_link (Net *n, SimTime first, guint32 link, double cap_Bps, SimTime down_ticks,
                    SimTime up_ticks, guint times);

/* Bytes that crossed a link so far (coef * bytes over all flows), up to now. */
double net_link_bytes (Net *n, guint32 link);

/* Seconds to ticks for net implementations: SIM_TIME_MAX when there is no such tick. */
SimTime net_ticks (const Net *n, double s);

#endif
