#include "coll_cost.h"
#include "nccl_tuner.h"

#include <math.h>
#include <string.h>

const char *const coll_op_names[] = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "sendrecv", NULL};
const char *const span_names[] = {"none", "tp", "cp", "ep", "etp", "dp", "edp", "pp", NULL};
const char *const coll_algo_names[] = {"Ring", "Tree",          "NVLS",         "NVLSTree",
                                       "PAT",  "CollNetDirect", "CollNetChain", NULL};
const char *const coll_proto_names[] = {"LL", "LL128", "Simple", NULL};

double
coll_bus_factor (CollOp op, int ranks)
{
  double n = ranks;
  switch (op) {
  case COLL_ALL_REDUCE:
    return 2 * (n - 1) / n;
  case COLL_ALL_GATHER:
  case COLL_REDUCE_SCATTER:
  case COLL_ALLTOALL:
    return (n - 1) / n;
  case COLL_BROADCAST:
  case COLL_SENDRECV:
  case COLL_COUNT:
    break;
  }
  return 1;
}

static double
ramp (double ramp_s, double half_bytes, double bytes)
{
  return ramp_s > 0 ? ramp_s * bytes / (bytes + half_bytes) : 0;
}

/* ---- what the user sets ----
 *
 * The fitted bandwidths hold for NCCL's defaults. A setting changes them by what it is: channels
 * times what one of so many threads moves; a slice of the pipeline costs slice_s whatever its size,
 * so that smaller buffers cost more for each byte; over a network no more than a buffer is on its
 * way in the time of a step.
 */

typedef struct {
  int channels;
  double threads; /* over the default */
  double buffer;  /* over the default */
} CollSetting;

static CollSetting
setting_of (const Fabric *f, const CollGroup *g, CollOp op, gboolean nvls)
{
  NcclPlan plan;
  nccl_plan_init (&plan, f, op, g);
  return (CollSetting){nvls ? plan.nvls_channels : plan.channels,
                       f->env.threads > 0 ? f->env.threads / (double)NCCL_FULL_THREADS : 1,
                       f->env.buff_bytes > 0 ? f->env.buff_bytes / NCCL_BUFF_BYTES : 1};
}

static gboolean
is_set (const Fabric *f)
{
  const NcclEnv *e = &f->env;
  return e->threads > 0 || e->buff_bytes > 0 || e->min_ctas > 0 || e->max_ctas > 0;
}

/* Bus bandwidth with the settings. inter: over the network. */
static double
set_Bps (const Fabric *f, const CollGroup *g, CollProto proto, gboolean inter, double Bps)
{
  if (!is_set (f))
    return Bps;
  CollSetting s = setting_of (f, g, COLL_ALL_REDUCE, FALSE);
  double channel = f->channel_Bps * (proto == PROTO_LL128 ? 1 : s.threads);
  double limit = channel > 0 ? MIN (Bps, s.channels * channel) : Bps;
  if (proto != PROTO_SIMPLE)
    return limit;
  /* A slice is a quarter of the buffer: 2 of its 8 steps. */
  double each = limit / s.channels, slice = NCCL_BUFF_BYTES / 4;
  double now = 1 + f->slice_s * each / (slice * s.buffer), usual = 1 + f->slice_s * each / slice;
  limit *= usual / now;
  if (inter && f->net_hop_s[proto] > 0)
    limit = MIN (limit, s.channels * NCCL_BUFF_BYTES * s.buffer / f->net_hop_s[proto]);
  return limit;
}

/* Bus bandwidth of one GPU in a node, for the group's size in it (meshes give small groups less).
 */
double
coll_bus_Bps (const Fabric *f, const CollGroup *g, CollProto proto)
{
  return set_Bps (f, g, proto, FALSE, f->ring[proto].bus_Bps * fabric_share (f, g));
}

double
coll_net_Bps (const Fabric *f, const CollGroup *g, CollProto proto)
{
  double eff = proto == PROTO_LL      ? f->ll_efficiency
               : proto == PROTO_LL128 ? f->ll128_efficiency
                                      : f->efficiency;
  return set_Bps (f, g, proto, TRUE, eff * fabric_group_net_Bps (f, g));
}

static double
ring_s (const Fabric *f, CollOp op, const CollGroup *g, CollProto proto, double bytes)
{
  double n = g->ranks;
  gboolean twice = op == COLL_ALL_REDUCE;
  double cross = twice ? 2.0 * (g->nodes - 1) : g->nodes - 1;
  double inside = (twice ? 2 * (n - 1) : n - 1) - cross;
  const FabricProto *p = &f->ring[proto];
  double bus = g->ranks_per_node > 1 ? coll_bus_Bps (f, g, proto) : INFINITY;
  double t = p->base_s + inside * p->hop_s;
  if (g->nodes > 1) {
    bus = MIN (bus, coll_net_Bps (f, g, proto));
    t += f->net_base_s + cross * f->net_hop_s[proto];
  }
  t += bytes * coll_bus_factor (op, g->ranks) / bus;
  if (proto != PROTO_SIMPLE)
    return t;
  double chunk = bytes / n;
  double copy = op == COLL_ALL_GATHER  ? f->gather_copy_s_per_byte
                : op == COLL_BROADCAST ? 0
                                       : f->reduce_copy_s_per_byte;
  return t + chunk * copy + ramp (inside * f->ramp_s + cross * f->net_ramp_s, f->ramp_bytes, chunk);
}

/* Bytes that a node sends each way per byte of the all-reduce, in the double binary tree over
 * nodes. */
static double
tree_factor (const CollGroup *g)
{
  return g->nodes == 2 ? 1 : 2;
}

static double
tree_s (const Fabric *f, const CollGroup *g, CollProto proto, double bytes)
{
  double levels = log2 (g->nodes), r = g->ranks_per_node;
  const FabricProto *p = &f->ring[proto];
  double t = p->base_s + 2 * (r - 1) * p->hop_s;
  double move = r > 1 ? 2 * bytes / coll_bus_Bps (f, g, proto) : 0;
  if (g->nodes > 1) {
    double net = coll_net_Bps (f, g, proto) * f->tree_efficiency / f->efficiency;
    t += f->net_base_s + 2 * levels * f->net_hop_s[proto];
    move = MAX (move, tree_factor (g) * bytes / net);
  }
  if (proto == PROTO_SIMPLE)
    t += ramp (2 * (r - 1) * f->ramp_s + 2 * levels * f->net_ramp_s, f->ramp_bytes,
               bytes / g->ranks);
  return t + move;
}

/* SHARP: the node's sum goes up once and comes down once. Direct: every GPU sends each head its
 * slice and gets the heads' results, 2 (r-1)/r of the buffer; chain: all of it, up and down. */
static double
collnet_s (const Fabric *f, const CollGroup *g, gboolean direct, double bytes)
{
  double r = g->ranks_per_node, move = 0;
  const FabricProto *p = &f->ring[PROTO_SIMPLE];
  if (r > 1)
    move = 2 * (direct ? (r - 1) / r : 1) * bytes / coll_bus_Bps (f, g, PROTO_SIMPLE);
  double net = f->sharp_efficiency * fabric_group_net_Bps (f, g);
  double hops = direct ? MIN (1, r - 1) : r - 1;
  return p->base_s + f->net_base_s + 2 * hops * p->hop_s + f->sharp_hop_s +
         MAX (move, bytes / net) + ramp (2 * hops * f->ramp_s, f->ramp_bytes, bytes / r);
}

static double
curve_s (const FabricCurve *c, double steps, double move_s, double bytes)
{
  return c->base_s + steps * c->hop_s + move_s + ramp (c->ramp_s, c->ramp_bytes, bytes);
}

/* What the switch moves with the channels that the user allows: few carry less of its rate. */
static double
switch_Bps (const Fabric *f, const CollGroup *g, double Bps)
{
  if (!is_set (f) || !(f->channel_Bps > 0))
    return Bps;
  CollSetting s = setting_of (f, g, COLL_ALL_REDUCE, TRUE);
  return MIN (Bps, s.channels * f->channel_Bps * s.threads);
}

static double
nvlstree_s (const Fabric *f, const CollGroup *g, double bytes)
{
  const FabricCurve *c = &f->nvlstree;
  double net = fabric_group_net_Bps (f, g);
  if (f->nvlstree_nics > 0)
    net = MIN (net, f->nvlstree_nics * f->nic_Bps);
  net *= f->nvlstree_efficiency;
  double move = MAX (bytes / switch_Bps (f, g, c->Bps), tree_factor (g) * bytes / net);
  return curve_s (c, 2 * log2 (g->nodes), move, bytes);
}

/* NVLS, and with SHARP between nodes. */
static double
nvls_s (const Fabric *f, const CollGroup *g, double bytes)
{
  const FabricCurve *c = &f->nvls_curve;
  double move = bytes / switch_Bps (f, g, c->Bps);
  if (g->nodes > 1)
    move = MAX (move, bytes / (f->sharp_efficiency * fabric_group_net_Bps (f, g)));
  return curve_s (c, 0, move, bytes) + (g->nodes > 1 ? f->net_base_s + f->sharp_hop_s : 0);
}

static double
pat_s (const Fabric *f, CollOp op, const CollGroup *g, double bytes)
{
  double net = f->pat_efficiency * fabric_group_net_Bps (f, g);
  return f->ring[PROTO_SIMPLE].base_s + f->net_base_s +
         log2 (g->nodes) * f->net_hop_s[PROTO_SIMPLE] + g->ranks * f->pat_rank_s +
         bytes * coll_bus_factor (op, g->ranks) / net;
}

double
coll_alltoall_Bps (const Fabric *f, const CollGroup *g)
{
  double rate = f->a2a.Bps * fabric_alltoall_share (f, g);
  if (f->env.max_ctas > 0 && f->channel_Bps > 0)
    rate = MIN (rate, f->env.max_ctas * f->channel_Bps);
  return rate;
}

static double
alltoall_s (const Fabric *f, const CollGroup *g, double bytes)
{
  double n = g->ranks, r = g->ranks_per_node;
  double part = bytes / n; /* what one rank sends to one peer */
  double move = r > 1 ? part * (r - 1) / coll_alltoall_Bps (f, g) : 0;
  double t = part * f->a2a_copy_s_per_byte;
  if (g->nodes > 1) {
    double net = f->a2a_efficiency * fabric_group_net_Bps (f, g);
    move = MAX (move, r * part * (n - r) / net);
    t += f->net_base_s + (n - r) * f->a2a_net_hop_s;
  }
  return t + curve_s (&f->a2a, r - 1, move, bytes);
}

double
coll_p2p_net_Bps (const Fabric *f)
{
  double rate = f->efficiency * f->nic_Bps * MIN (f->nics, fabric_nics_per_gpu (f));
  return f->net_p2p.Bps > 0 ? MIN (rate, f->net_p2p.Bps) : rate;
}

double
p2p_time_s (const Fabric *f, gboolean same_node, int sharers, double bytes)
{
  if (!(bytes > 0))
    return 0;
  if (same_node)
    return curve_s (&f->p2p, 0, bytes / f->p2p.Bps, bytes);
  return curve_s (&f->net_p2p, 0, bytes * MAX (1, sharers) / coll_p2p_net_Bps (f), bytes);
}

double
coll_algo_time_s (const Fabric *f, CollOp op, const CollGroup *g, CollChoice how, double bytes)
{
  g_assert (g->nodes >= 1 && g->ranks == g->nodes * g->ranks_per_node);
  if (g->ranks <= 1 || !(bytes > 0))
    return 0;
  if (g->nodes > 1 && !(f->nics > 0))
    return INFINITY;
  if (op == COLL_ALLTOALL)
    return alltoall_s (f, g, bytes);
  if (op == COLL_SENDRECV)
    return p2p_time_s (f, g->nodes == 1, g->sharers, bytes);
  switch (how.algo) {
  case ALGO_TREE:
    return tree_s (f, g, how.proto, bytes);
  case ALGO_NVLS:
    return nvls_s (f, g, bytes);
  case ALGO_NVLSTREE:
    return nvlstree_s (f, g, bytes);
  case ALGO_PAT:
    return pat_s (f, op, g, bytes);
  case ALGO_COLLNET_DIRECT:
  case ALGO_COLLNET_CHAIN:
    return f->sharp ? collnet_s (f, g, how.algo == ALGO_COLLNET_DIRECT, bytes) : INFINITY;
  case ALGO_RING:
  case ALGO_AUTO:
  case ALGO_COUNT:
    break;
  }
  return ring_s (f, op, g, how.proto, bytes);
}

double
coll_direct_time_s (const Fabric *f, CollOp op, const CollGroup *g, double bytes,
                    CollChoice *choice)
{
  NcclPlan plan;
  CollChoice how = choice ? *choice : (CollChoice){ALGO_AUTO, PROTO_AUTO};
  nccl_plan_init (&plan, f, op, g);
  how = nccl_plan_choose (&plan, bytes, how);
  if (choice)
    *choice = how;
  return coll_algo_time_s (f, op, g, how, bytes);
}

/* ---- the precomputed table --------------------------------------------------------------------
 */

/* Times at 1, 1.25, 1.5 and 1.75 times each power of two, as the largest time of all points so far,
 * and straight lines between. So a time never falls when bytes grow, though NCCL's switch between
 * two algorithms may make the real one jump either way; a closed form that is straight stays exact.
 */
enum {
  POINTS_PER_OCTAVE = 4,
  OCTAVES = 44,
  N_POINTS = OCTAVES * POINTS_PER_OCTAVE + 1,
  SLOTS = 256
};

typedef struct {
  CollGroup group;
  gint8 op, algo, proto;
} CacheKey;

typedef struct {
  CacheKey key;
  NcclPlan plan;
  double time_s[N_POINTS];
} CacheEntry;

struct CollCache {
  CacheEntry *slot[SLOTS];
};

void
coll_cache_free (CollCache *cache)
{
  if (!cache)
    return;
  for (int i = 0; i < SLOTS; i++)
    g_free (cache->slot[i]);
  g_free (cache);
}

static double
point_bytes (int i)
{
  return ldexp (1 + (i % POINTS_PER_OCTAVE) / (double)POINTS_PER_OCTAVE, i / POINTS_PER_OCTAVE);
}

static guint
key_slot (const CacheKey *k)
{
  guint h = 2166136261u;
  const guint part[] = {(guint)k->group.ranks_per_node, (guint)k->group.nodes,
                        (guint)k->group.sharers,
                        (guint)(k->op + 16 * (k->algo + 1) + 256 * (k->proto + 1))};
  for (gsize i = 0; i < G_N_ELEMENTS (part); i++)
    h = (h ^ part[i]) * 16777619u;
  return (h ^ h >> 15) % SLOTS;
}

static gboolean
key_equal (const CacheKey *a, const CacheKey *b)
{
  return a->group.ranks_per_node == b->group.ranks_per_node && a->group.nodes == b->group.nodes &&
         a->group.sharers == b->group.sharers && a->op == b->op && a->algo == b->algo &&
         a->proto == b->proto;
}

/* The largest time of all sizes so far, into time_s, which may hold those of fewer nodes. */
static void
fill_points (double *time_s, const Fabric *f, CollOp op, const CollGroup *g, const NcclPlan *plan,
             CollChoice force)
{
  double so_far = 0;
  for (int i = 0; i < N_POINTS; i++) {
    double bytes = point_bytes (i);
    CollChoice how = nccl_plan_choose (plan, bytes, force);
    so_far = MAX (so_far, coll_algo_time_s (f, op, g, how, bytes));
    time_s[i] = so_far = MAX (so_far, time_s[i]);
  }
}

/* Nor does a time fall when nodes are added: where NCCL would choose worse for 2, 4, 8 … nodes,
 * that time is the least. */
static void
entry_fill (CacheEntry *e, const Fabric *f, const CacheKey *key)
{
  CollOp op = (CollOp)key->op;
  CollChoice force = {(CollAlgo)key->algo, (CollProto)key->proto};
  e->key = *key;
  memset (e->time_s, 0, sizeof e->time_s);
  for (int nodes = 2; nodes < key->group.nodes; nodes *= 2) {
    CollGroup fewer = key->group;
    fewer.nodes = nodes;
    fewer.ranks = nodes * fewer.ranks_per_node;
    nccl_plan_init (&e->plan, f, op, &fewer);
    fill_points (e->time_s, f, op, &fewer, &e->plan, force);
  }
  nccl_plan_init (&e->plan, f, op, &key->group);
  fill_points (e->time_s, f, op, &key->group, &e->plan, force);
}

/* f is const to callers: the table is a memory of results, not a part of the fabric's state. */
static const CacheEntry *
cache_get (const Fabric *f, const CacheKey *key)
{
  if (!f->cache)
    ((Fabric *)f)->cache = g_new0 (CollCache, 1);
  CacheEntry **slot = &f->cache->slot[key_slot (key)];
  if (*slot && key_equal (&(*slot)->key, key))
    return *slot;
  if (!*slot)
    *slot = g_new (CacheEntry, 1);
  entry_fill (*slot, f, key);
  return *slot;
}

static double
entry_time_s (const CacheEntry *e, const Fabric *f, double bytes, CollChoice force)
{
  int exponent;
  double mantissa = frexp (bytes, &exponent); /* 0.5 … 1 */
  double x = (2 * mantissa - 1) * POINTS_PER_OCTAVE;
  int i = (exponent - 1) * POINTS_PER_OCTAVE + (int)x;
  if (i < 0)
    return e->time_s[0];
  if (i >= N_POINTS - 1) {
    CollChoice how = nccl_plan_choose (&e->plan, bytes, force);
    double t = coll_algo_time_s (f, (CollOp)e->key.op, &e->key.group, how, bytes);
    return MAX (t, e->time_s[N_POINTS - 1]);
  }
  return e->time_s[i] + (e->time_s[i + 1] - e->time_s[i]) * (x - (int)x);
}

double
coll_time_s (const Fabric *f, CollOp op, const CollGroup *g, double bytes, CollChoice *choice)
{
  CollChoice force = choice ? *choice : (CollChoice){ALGO_AUTO, PROTO_AUTO};
  g_assert (g->nodes >= 1 && g->ranks == g->nodes * g->ranks_per_node);
  if (g->ranks <= 1 || !(bytes > 0))
    return 0;
  if (g->nodes > 1 &&
      !(f->nics > 0)) /* no table of infinities: their differences are not numbers */
    return coll_direct_time_s (f, op, g, bytes, choice);
  CacheKey key = {
      .group = *g, .op = (gint8)op, .algo = (gint8)force.algo, .proto = (gint8)force.proto};
  const CacheEntry *e = cache_get (f, &key);
  double t = entry_time_s (e, f, bytes, force);
  gboolean shared = f->net != NULL && g->span.kind != SPAN_NONE;
  if (!choice && !shared)
    return t;
  CollChoice how = nccl_plan_choose (&e->plan, bytes, force);
  if (choice)
    *choice = how;
  return shared ? f->net->shared_s (f->net->self, op, g, how, bytes, t) : t;
}

double
coll_shared_s (const Fabric *f, CollOp op, const CollGroup *g, double bytes, double t)
{
  const CollChoice how = {ALGO_AUTO, PROTO_SIMPLE};
  if (f->net == NULL || g->span.kind == SPAN_NONE || !(bytes > 0) || !(t > 0))
    return t;
  return f->net->shared_s (f->net->self, op, g, how, bytes, t);
}

double
p2p_group_time_s (const Fabric *f, const CollGroup *g, gboolean same_node, int sharers,
                  double bytes)
{
  return coll_shared_s (f, COLL_SENDRECV, g, bytes, p2p_time_s (f, same_node, sharers, bytes));
}
