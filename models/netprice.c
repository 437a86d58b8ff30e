#include "netprice.h"

#include <math.h>
#include <string.h>

#include "coll_cost.h"

/* Size at which the flow level is run, for each rank: large enough that whole bytes do not matter.
 */
#define RUN_BYTES_PER_RANK ((gint64)16 << 20)

typedef struct {
  CollSpan span;
  CollOp op;
  CollChoice how;
  double bytes; /* 0: of any size */
} Key;

typedef struct {
  Key key;
  double added_s;    /* by the network */
  double per_byte_s; /* the same, where size does not matter */
  guint row;
} Memo;

struct NetPrice {
  const Spec *s;
  const Fabric *base; /* of the scenario, without a net */
  FabricNet net;
  NetWorld real, ideal;
  guint32 *gpu; /* by rank */
  GArray *memo, *rows;
  GError *error;
};

void
net_row_clear (NetRow *r)
{
  g_free (r->busiest);
}

gboolean
netprice_wanted (const Spec *s)
{
  for (int k = 1; k < SPAN_COUNT; k++)
    if (s->run.fidelity[k] != FIDELITY_ANALYTIC)
      return TRUE;
  return FALSE;
}

static void
fail (NetPrice *n, GError *why)
{
  if (n->error == NULL)
    n->error = why;
  else
    g_clear_error (&why);
}

/* ---- groups -----------------------------------------------------------------------------------
 */

/* Whether a rank is the first of its group. */
static gboolean
is_first (const CollSpan *s, gint64 rank)
{
  return rank / s->stride[0] % s->n[0] == 0 && rank / s->stride[1] % s->n[1] == 0;
}

/* GPUs of the group that begins at a rank; FALSE when it goes beyond the job. */
static gboolean
members (const NetPrice *n, const CollSpan *s, gint64 first, guint32 *gpu)
{
  guint32 k = 0;
  for (int j = 0; j < s->n[1]; j++)
    for (int i = 0; i < s->n[0]; i++) {
      gint64 rank = first + i * s->stride[0] + j * s->stride[1];
      if (rank >= n->s->cluster.gpus)
        return FALSE;
      gpu[k++] = n->gpu[rank];
    }
  return TRUE;
}

static int
compare_u32 (gconstpointer a, gconstpointer b)
{
  guint32 x = *(const guint32 *)a, y = *(const guint32 *)b;
  return x < y ? -1 : x > y;
}

static guint
nodes_of (const NetPrice *n, const guint32 *gpu, guint count)
{
  guint32 per = topo_gpus_per_node (n->real.topo);
  g_autofree guint32 *node = g_new (guint32, count);
  guint nodes = 0;
  for (guint i = 0; i < count; i++)
    node[i] = gpu[i] / per;
  qsort (node, count, sizeof *node, compare_u32);
  for (guint i = 0; i < count; i++)
    nodes += i == 0 || node[i] != node[i - 1];
  return nodes;
}

/* How the group lies where placement puts it; as given where ranks fill node after node. */
static CollGroup
placed (const NetPrice *n, const CollGroup *g)
{
  CollGroup out = *g;
  TopoPlaceKind kind = n->s->network.placement;
  int count = g->span.n[0] * g->span.n[1];
  if ((kind != TOPO_PLACE_RAIL && kind != TOPO_PLACE_HOSTS) || count != g->ranks)
    return out;
  g_autofree guint32 *gpu = g_new (guint32, (gsize)count);
  if (!members (n, &g->span, 0, gpu))
    return out;
  int nodes = (int)nodes_of (n, gpu, (guint)count);
  while (count % nodes != 0) /* uneven: as on a few more nodes, evenly */
    nodes++;
  out.nodes = nodes;
  out.ranks_per_node = count / nodes;
  out.sharers = nodes > 1 ? (int)MAX (1, spec_domain_gpus (n->s) / out.ranks_per_node) : 1;
  return out;
}

/* ---- what is run ------------------------------------------------------------------------------
 */

typedef struct {
  GPtrArray *plans; /* or … */
  NetPairs pairs;
  guint groups, nodes, ranks;
} Work;

static void
work_clear (Work *w)
{
  g_clear_pointer (&w->plans, g_ptr_array_unref);
  g_clear_pointer (&w->pairs.first, g_array_unref);
  topo_path_clear (&w->pairs.path);
}

static TopoRouteOpts
routing (const NetPrice *n, const NetWorld *w)
{
  return (TopoRouteOpts){.mode = w == &n->ideal ? TOPO_ROUTE_ADAPTIVE : n->s->network.routing,
                         .seed = n->s->run.seed,
                         .queue_pairs = n->s->network.queue_pairs,
                         .no_pxn = n->base->env.no_pxn,
                         .nic = -1};
}

static gboolean
add_plan (NetPrice *n, NetWorld *w, const CollGroup *g, const Key *key, gint64 bytes,
          gboolean steps, const guint32 *gpu, Work *work, GError **error)
{
  PlanAlgo algo = plan_algo_of (key->op, key->how.algo == ALGO_AUTO ? ALGO_RING : key->how.algo);
  CollPlanSpec s = {.topo = w->topo,
                    .gpu = gpu,
                    .n = work->ranks,
                    .op = key->op,
                    .algo = algo,
                    .bytes = bytes,
                    .route = routing (n, w),
                    .costs = coll_costs_from_fabric (n->base, key->op, g, key->how, (double)bytes),
                    .cross_nic = nccl_env_crosses (&n->base->env),
                    .steps = steps,
                    .scratch = w->scratch};
  CollPlan *p = coll_plan_new (&s, error);
  if (p == NULL)
    return FALSE;
  g_ptr_array_add (work->plans, p);
  return TRUE;
}

/* Messages of a group's ranks to the next; the last to the first unless it is a pipeline that a
 * micro-batch crosses once. */
static gboolean
add_pairs (NetPrice *n, NetWorld *w, const CollSpan *span, const guint32 *gpu, Work *work,
           GError **error)
{
  TopoRouteOpts o = routing (n, w);
  gboolean ring = span->kind != SPAN_PP || n->s->parallel.vpp > 1;
  for (guint i = 0; i < work->ranks; i++) {
    guint to = (i + 1) % work->ranks;
    if (to == 0 && !ring)
      break;
    o.key = i;
    if (!topo_route (w->topo, gpu[i], gpu[to], &o, &work->pairs.path)) {
      g_set_error (error, TOPO_ERROR, TOPO_ERROR_UNREACHABLE, "no path is left from GPU %u to %u",
                   gpu[i], gpu[to]);
      return FALSE;
    }
    g_array_append_val (work->pairs.first, work->pairs.path.n);
  }
  return TRUE;
}

/* Everything that groups of this kind do at once and that leaves their nodes. */
static gboolean
make_work (NetPrice *n, NetWorld *w, const CollGroup *g, const Key *key, gint64 bytes,
           gboolean steps, Work *work, GError **error)
{
  const CollSpan *span = &key->span;
  gboolean pairs = key->op == COLL_SENDRECV;
  guint32 zero = 0;
  *work = (Work){.ranks = (guint)(span->n[0] * span->n[1])};
  g_autofree guint32 *gpu = g_new (guint32, work->ranks);
  if (pairs) {
    work->pairs.first = g_array_new (FALSE, FALSE, sizeof (guint32));
    g_array_append_val (work->pairs.first, zero);
    work->pairs.bytes = bytes;
    work->pairs.cap_Bps = n->base->net_p2p.Bps;
  } else {
    work->plans = g_ptr_array_new_with_free_func ((GDestroyNotify)coll_plan_free);
  }
  for (gint64 r = 0; r < n->s->cluster.gpus; r++) {
    if (!is_first (span, r) || !members (n, span, r, gpu))
      continue;
    guint nodes = nodes_of (n, gpu, work->ranks);
    work->groups++;
    work->nodes = MAX (work->nodes, nodes);
    if (nodes < 2)
      continue;
    gboolean ok = pairs ? add_pairs (n, w, span, gpu, work, error)
                        : add_plan (n, w, g, key, bytes, steps, gpu, work, error);
    if (!ok)
      return FALSE;
  }
  return TRUE;
}

/* The link of the network with most to carry for its rate, and the part of it in use over end_s. */
static char *
busiest (const NetWorld *w, const Work *work, double end_s, double *load)
{
  guint32 n = topo_n_links (w->topo), best = G_MAXUINT32;
  const double *cap = topo_link_caps (w->topo);
  double most = 0;
  g_autofree double *bytes = g_new0 (double, n);
  for (guint i = 0; work->plans != NULL && i < work->plans->len; i++) {
    const CollPlan *p = g_ptr_array_index (work->plans, i);
    for (guint c = 0; c < p->channels->len; c++) {
      const CollChannel *ch = coll_plan_channel (p, c);
      for (guint32 k = ch->path; k < ch->path + ch->n_path; k++)
        bytes[g_array_index (p->links, guint32, k)] +=
            (double)ch->amount * g_array_index (p->coefs, double, k);
    }
  }
  for (guint k = 0; work->plans == NULL && k < work->pairs.path.n; k++)
    bytes[work->pairs.path.links[k]] += (double)work->pairs.bytes * work->pairs.path.coef[k];
  for (guint32 l = 0; l < n; l++)
    if (topo_link_is_net (w->topo, l) && bytes[l] / cap[l] > most * (1 + 1e-9)) {
      most = bytes[l] / cap[l];
      best = l;
    }
  *load = end_s > 0 ? most / end_s : 0;
  return best == G_MAXUINT32 ? NULL : topo_link_name (w->topo, best);
}

/* Mean over the phases of a flapping link, else one run. */
static gboolean
run_real (NetPrice *n, const Work *work, CollFidelity f, double *end_s, GError **error)
{
  gboolean flaps = n->real.flapping->len > 0;
  guint runs = flaps ? NET_FLAP_PHASES : 1;
  double sum = 0;
  for (guint k = 0; k < runs; k++) {
    double t = 0;
    if (!net_world_run (&n->real, work->plans, work->plans == NULL ? &work->pairs : NULL, f,
                        (k + 0.5) / runs, &t, error))
      return FALSE;
    sum += t;
  }
  *end_s = sum / runs;
  return TRUE;
}

/* What the network adds to one call of so many bytes; fills in the row. */
static gboolean
measure (NetPrice *n, const CollGroup *g, const Key *key, gint64 bytes, NetRow *row,
         double *added_s, GError **error)
{
  gboolean steps = row->fidelity == FIDELITY_STEP && key->op != COLL_SENDRECV;
  Work real = {0}, ideal = {0};
  double real_s = 0, ideal_s = 0;
  gboolean ok = make_work (n, &n->real, g, key, bytes, steps, &real, error);
  row->groups = real.groups;
  row->nodes = real.nodes;
  row->ranks = real.ranks;
  if (ok && real.nodes > 1) {
    ok = make_work (n, &n->ideal, g, key, bytes, FALSE, &ideal, error) &&
         run_real (n, &real, steps ? COLL_STEP : COLL_FLOW, &real_s, error) &&
         net_world_run (&n->ideal, ideal.plans, ideal.plans == NULL ? &ideal.pairs : NULL,
                        COLL_FLOW, 0, &ideal_s, error);
    if (ok)
      row->busiest = busiest (&n->real, &real, real_s, &row->busiest_load);
  }
  work_clear (&real);
  work_clear (&ideal);
  *added_s = real_s - ideal_s;
  return ok;
}

/* ---- prices -----------------------------------------------------------------------------------
 */

static gboolean
same_key (const Key *a, const Key *b)
{
  return a->op == b->op && a->how.algo == b->how.algo && a->how.proto == b->how.proto &&
         a->span.kind == b->span.kind && a->span.n[0] == b->span.n[0] &&
         a->span.n[1] == b->span.n[1] && a->span.stride[0] == b->span.stride[0] &&
         a->span.stride[1] == b->span.stride[1] && a->bytes == b->bytes;
}

static Memo *
lookup (NetPrice *n, const Key *key)
{
  for (guint i = n->memo->len; i-- > 0;) {
    Memo *m = &g_array_index (n->memo, Memo, i);
    if (same_key (&m->key, key))
      return m;
  }
  return NULL;
}

/* One row for each kind and operation; the largest call is told. */
static guint
row_for (NetPrice *n, const Key *key, Fidelity f)
{
  for (guint i = 0; i < n->rows->len; i++) {
    const NetRow *r = &g_array_index (n->rows, NetRow, i);
    if (r->kind == key->span.kind && r->op == key->op)
      return i;
  }
  NetRow r = {.kind = key->span.kind, .fidelity = f, .op = key->op, .how = key->how};
  g_array_append_val (n->rows, r);
  return n->rows->len - 1;
}

static Memo *
make_memo (NetPrice *n, const CollGroup *g, const Key *key, double bytes, Fidelity f)
{
  gboolean any = key->bytes == 0;
  gint64 run = any ? RUN_BYTES_PER_RANK * g->ranks : (gint64)CLAMP (bytes, 1, 0x1p60);
  Memo m = {.key = *key};
  NetRow row = {.kind = key->span.kind, .fidelity = f, .op = key->op, .how = key->how};
  GError *why = NULL;
  if (!measure (n, g, key, run, &row, &m.added_s, &why)) {
    fail (n, why);
    return NULL;
  }
  if (any)
    m.per_byte_s = m.added_s / (double)run;
  m.row = row_for (n, key, f);
  NetRow *old = &g_array_index (n->rows, NetRow, m.row);
  if (old->groups == 0 || bytes > old->bytes) {
    net_row_clear (old);
    *old = row;
  } else {
    net_row_clear (&row);
  }
  g_array_append_val (n->memo, m);
  return &g_array_index (n->memo, Memo, n->memo->len - 1);
}

static double
shared_s (gpointer self, CollOp op, const CollGroup *g, CollChoice how, double bytes,
          double alone_s)
{
  NetPrice *n = self;
  Fidelity f = n->s->run.fidelity[g->span.kind];
  CollGroup on = placed (n, g);
  if (f == FIDELITY_ANALYTIC || g->ranks <= 1 || n->error != NULL)
    return alone_s;
  if (on.nodes != g->nodes && op == COLL_SENDRECV)
    alone_s = p2p_time_s (n->base, on.nodes == 1, on.sharers, bytes);
  else if (on.nodes != g->nodes)
    alone_s = coll_time_s (n->base, op, &on, bytes, &how);
  gboolean sized = (f == FIDELITY_STEP && op != COLL_SENDRECV) || n->real.flapping->len > 0;
  Key key = {.span = g->span, .op = op, .how = how, .bytes = sized ? bytes : 0};
  Memo *m = lookup (n, &key);
  if (m == NULL && (m = make_memo (n, &on, &key, bytes, f)) == NULL)
    return alone_s;
  /* The ideal run is never slower, but for rounding. */
  double t = alone_s + MAX (0, sized ? m->added_s : m->per_byte_s * bytes);
  NetRow *row = &g_array_index (n->rows, NetRow, m->row);
  if (bytes > row->bytes) {
    row->bytes = bytes;
    row->how = how;
    row->alone_s = alone_s;
    row->time_s = t;
  }
  return t;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

static guint32
nodes_for (gint64 gpus, gint64 per_node)
{
  return (guint32)((gpus + per_node - 1) / per_node);
}

static gboolean
make_neighbour (NetPrice *n, const guint32 *gpu, guint32 count, GError **error)
{
  const NetNeighbour *b = &n->s->network.neighbour;
  CollPlanSpec s = {.topo = n->real.topo,
                    .gpu = gpu,
                    .n = count,
                    .op = b->op,
                    .algo = plan_algo_of (b->op, ALGO_RING),
                    .bytes = RUN_BYTES_PER_RANK * count,
                    .route = routing (n, &n->real),
                    .scratch = n->real.scratch};
  s.route.seed++; /* its queue pairs hash elsewhere */
  CollPlan *p = coll_plan_new (&s, error);
  if (p == NULL)
    return FALSE;
  n->real.beside = g_ptr_array_new_with_free_func ((GDestroyNotify)coll_plan_free);
  n->real.load = b->load;
  g_ptr_array_add (n->real.beside, p);
  return TRUE;
}

static gboolean
make_worlds (NetPrice *n, GError **error)
{
  const NetworkSpec *w = &n->s->network;
  gint64 per =
      w->placement == TOPO_PLACE_HOSTS ? n->s->cluster.gpus_per_node : spec_domain_gpus (n->s);
  guint32 least = nodes_for (n->s->cluster.gpus, per) + w->neighbour.nodes;
  guint32 nodes = w->nodes > 0 ? w->nodes : least;
  n->real.topo = netprice_make_topo (n->s, w->topo.net, nodes, error);
  n->ideal.topo =
      n->real.topo != NULL ? netprice_make_topo (n->s, TOPO_NET_SINGLE, nodes, error) : NULL;
  if (n->ideal.topo == NULL)
    return FALSE;
  n->real.scratch = g_new0 (double, topo_n_links (n->real.topo));
  n->ideal.scratch = g_new0 (double, topo_n_links (n->ideal.topo));
  n->real.flapping = g_array_new (FALSE, FALSE, sizeof (guint32));
  n->real.up_s = w->fault.up_s;
  n->real.down_s = w->fault.down_s;
  guint32 beside = w->neighbour.nodes * topo_gpus_per_node (n->real.topo);
  n->gpu = g_new (guint32, (gsize)n->s->cluster.gpus);
  g_autofree guint32 *other = g_new (guint32, beside + 1);
  return netprice_place (n->s, n->real.topo, n->gpu, other, beside, error) &&
         netprice_break (n->s, n->real.topo, n->real.flapping, error) &&
         (beside == 0 || make_neighbour (n, other, beside, error));
}

NetPrice *
netprice_new (const Spec *s, GError **error)
{
  g_autoptr (NetPrice) n = g_new0 (NetPrice, 1);
  n->s = s;
  n->base = s->fabric;
  n->net = (FabricNet){n, shared_s};
  n->memo = g_array_new (FALSE, FALSE, sizeof (Memo));
  n->rows = g_array_new (FALSE, TRUE, sizeof (NetRow));
  g_array_set_clear_func (n->rows, (GDestroyNotify)net_row_clear);
  return make_worlds (n, error) ? g_steal_pointer (&n) : NULL;
}

void
netprice_free (NetPrice *n)
{
  if (n == NULL)
    return;
  net_world_clear (&n->real);
  net_world_clear (&n->ideal);
  g_free (n->gpu);
  g_array_unref (n->memo);
  g_clear_pointer (&n->rows, g_array_unref);
  g_clear_error (&n->error);
  g_free (n);
}

void
netprice_apply (const NetPrice *n, Spec *own, Fabric *fabric)
{
  *own = *n->s;
  *fabric = *n->base;
  fabric->cache = NULL;
  fabric->net = &n->net;
  own->fabric = fabric;
}

Topo *
netprice_peek_topo (const NetPrice *n)
{
  return n->real.topo;
}

gboolean
netprice_check (NetPrice *n, GError **error)
{
  if (n->error == NULL)
    return TRUE;
  g_propagate_error (error, g_error_copy (n->error));
  return FALSE;
}

static gint
compare_rows (gconstpointer a, gconstpointer b)
{
  const NetRow *x = a, *y = b;
  return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : x->op < y->op ? -1 : x->op > y->op;
}

GArray *
netprice_take_rows (NetPrice *n)
{
  g_array_sort (n->rows, compare_rows);
  return g_steal_pointer (&n->rows);
}
