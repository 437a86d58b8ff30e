#include "nccl_tuner.h"

#include <math.h>

/* Rows of the version tables: 2.8 to 2.16, 2.17 to 2.20, 2.21 and 2.22, 2.23 and later. */
enum { ERA_8, ERA_18, ERA_21, ERA_23, ERA_COUNT };
enum { HW_NVLINK, HW_PCI, HW_NET, HW_COUNT };
enum { VOLTA, AMPERE, HOPPER, BLACKWELL, CLASS_COUNT };

/* Base latency, us: LL, LL128, Simple. */
static const double base_us[ERA_COUNT][2][PROTO_COUNT] = {
    {{3.6, 10, 8.4}, {4.4, 4.4, 0}},
    {{6.6, 14, 8.4}, {6.8, 14, 0}},
    {{6.6, 14, 8.4}, {6.8, 14, 0}},
    {{6.6, 14, 8.4}, {6.8, 14, 8.4}},
};
static const double pat_base_us = 8;

/* Latency of a step by link, us. */
static const double ring_hw_us[HW_COUNT][PROTO_COUNT] = {
    {0.6, 1.9, 3.4}, {1, 2.5, 5.7}, {2.7, 4, 14}};
static const double tree_hw_us[HW_COUNT][PROTO_COUNT] = {{0.6, 1.25, 4}, {1, 1.9, 4}, {5, 8.5, 14}};
static const double nvls_hw_us = 25, nvls_net_us = 18;
static const double pat_hw_net_us = 14;
/* CollNet: direct, chain; a step within the node, the network, and what every further GPU adds. */
static const double collnet_hw_us[2] = {3.7, 2.8}, collnet_net_us[2] = {31, 30};
static const double collnet_peer_us = 0.4;

/* Bandwidth caps, GB/s: one node, two, more. */
static const double ll_max_GBps[CLASS_COUNT][3] = {
    {39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}};
static const double ring_ll128_channel_GBps[CLASS_COUNT] = {20, 20, 36.7, 40};
static const double tree_ll128_channel_GBps[CLASS_COUNT][3] = {
    {20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}};
static const double tree_channel_GBps[CLASS_COUNT][3] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}};
static const double nvlstree_channel_GBps[CLASS_COUNT][3] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}};

/* Correction of the tree's bandwidth per power of two from 64 bytes. */
static const double tree_correction[PROTO_COUNT][24] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
     .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}};

/* Channel speeds that the search tries, GB/s, highest first: within a node, and over the network.
 */
static const double speeds_node[3][16] = {
    {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3},
    {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3},
    {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18},
};
static const double speeds_net[3][24] = {
    {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12},
    {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12},
    {96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12},
};
static const double net_GBps_per_100G = 12;
enum { NVLS_HEADS = 32 }; /* GPUs of a node, at most, that reduce a slice each through the switch */

/* What the short search found. */
typedef struct {
  double channels, speed_GBps;           /* ring and tree */
  double nvls_channels, nvls_intra_GBps; /* per channel */
  double nvls_inter_GBps;
} Graph;

typedef struct {
  const Fabric *f;
  CollOp op;
  int ranks, per_node, nodes;
  int era, cls, hw, node_index;
  double share; /* of the node's links, in a mesh */
  Graph graph;
} Planner;

static int
era_of (int version)
{
  return version < 21700 ? ERA_8 : version < 22100 ? ERA_18 : version < 22300 ? ERA_21 : ERA_23;
}

static int
class_of (int arch)
{
  return arch < 80 ? VOLTA : arch < 90 ? AMPERE : arch < 100 ? HOPPER : BLACKWELL;
}

static double
link_GBps (const Fabric *f)
{
  if (f->link == FABRIC_PCI)
    return f->pci_Bps / 1e9;
  int a = f->arch;
  double one = a < 70 ? 18 : a < 80 ? 20 : a == 86 ? 12 : a < 90 ? 20 : a < 100 ? 20.6 : 40.1;
  return one * f->links;
}

/* Blackwell was planned as twice Hopper in 2.25 to 2.27, and as Hopper before. */
static double
cap (const Planner *p, const double *hopper, const double *own)
{
  int v = p->f->nccl_version;
  if (p->cls != BLACKWELL || v >= 22800)
    return *own;
  return v >= 22500 ? 2 * *hopper : *hopper;
}

static double
speed_at_most (const double *list, double limit)
{
  int i = 0;
  while (list[i + 1] > 0 && list[i] > limit)
    i++;
  return MIN (list[i], limit);
}

/* The speed of the list, up to limit, and the channels, up to max, that move the most over a link
 * of total GB/s; the faster at a draw. Infinite total: nothing but the limits binds. */
static void
best_channels (const double *list, double limit, double max, double total, Graph *g)
{
  g->speed_GBps = speed_at_most (list, limit);
  g->channels = 1;
  double best = MIN (g->speed_GBps, total);
  for (int i = 0; list[i] > 0; i++) {
    double channels = MIN (max, floor (total / list[i] + 1e-9));
    if (list[i] <= limit && channels * list[i] > best + 1e-9) {
      best = channels * list[i];
      g->speed_GBps = list[i];
      g->channels = channels;
    }
  }
}

static int
max_channels (const Fabric *f)
{
  return f->nccl_version >= 22500 ? 64 : 32;
}

/* Rings, trees and NVLS heads: what the links and NICs carry. */
static void
search (Planner *p)
{
  const Fabric *f = p->f;
  int row = f->arch < 90 ? 0 : f->arch < 100 ? 1 : 2;
  double intra = link_GBps (f) * p->share;
  Graph *g = &p->graph;
  if (p->nodes == 1) {
    best_channels (speeds_node[row], intra, max_channels (f) / 2, intra, g);
    g->nvls_channels = MIN (p->per_node, NVLS_HEADS);
    g->nvls_intra_GBps = speed_at_most (speeds_node[row], intra / g->nvls_channels);
    g->nvls_inter_GBps = 0;
  } else {
    double nics = MAX (1, floor (MIN (f->nics, p->per_node * fabric_nics_per_gpu (f))));
    double nic = f->nic_Bps / 12.5e9 * net_GBps_per_100G;
    best_channels (speeds_net[row], nic, nics, p->per_node > 1 ? intra : INFINITY, g);
    g->nvls_channels = MIN (MIN (p->per_node, nics), NVLS_HEADS);
    double limit = MIN (intra / g->nvls_channels, nics * nic / g->nvls_channels);
    g->nvls_intra_GBps = g->nvls_inter_GBps = speed_at_most (speeds_net[row], limit);
  }
  gboolean few = f->arch <= 80 || g->speed_GBps >= 50 || g->channels <= 4;
  if (g->speed_GBps >= 25 && few) {
    g->channels *= 2;
    g->speed_GBps /= 2;
  }
}

static double
ll_max (const Planner *p)
{
  int cls = p->cls, v = p->f->nccl_version;
  if (p->nodes > 1)
    return ll_max_GBps[p->f->cpu == FABRIC_AMD ? AMPERE : VOLTA][p->node_index];
  if (cls >= HOPPER && v < 22100)
    cls = AMPERE;
  return cap (p, &ll_max_GBps[HOPPER][0], &ll_max_GBps[cls][0]);
}

static double
ring_bus_GBps (const Planner *p, CollProto proto)
{
  double bus = p->graph.channels * p->graph.speed_GBps;
  if (proto == PROTO_LL) {
    double part = p->era > ERA_18                            ? 1 / 2.0
                  : p->nodes > 1 || p->op == COLL_ALL_REDUCE ? 1 / 4.0
                                                             : 1 / 3.0;
    return MIN (ll_max (p), bus * part);
  }
  if (proto == PROTO_LL128) {
    double part = p->era < ERA_23 && p->per_node == 1 ? 0.7 : 0.92;
    double channel = cap (p, &ring_ll128_channel_GBps[HOPPER], &ring_ll128_channel_GBps[p->cls]);
    return MIN (part * bus, p->graph.channels * channel);
  }
  return p->era == ERA_8 && p->cls == AMPERE ? MIN (bus, 235) : bus;
}

static double
tree_bus_GBps (const Planner *p, CollProto proto)
{
  int i = p->node_index;
  double n = p->graph.channels;
  double bw = MIN (0.92 * n * p->graph.speed_GBps,
                   n * cap (p, &tree_channel_GBps[HOPPER][i], &tree_channel_GBps[p->cls][i]));
  if (proto == PROTO_LL)
    return MIN (bw / 3.8, ll_max (p));
  if (proto == PROTO_LL128)
    return MIN (
        bw * (p->nodes == 1 ? 7 / 9.0 : 120 / 128.0),
        n * cap (p, &tree_ll128_channel_GBps[HOPPER][i], &tree_ll128_channel_GBps[p->cls][i]));
  return bw;
}

static double
nvls_bus_GBps (const Planner *p, CollAlgo algo)
{
  const Graph *g = &p->graph;
  double n = g->nvls_channels;
  double eff = p->cls == BLACKWELL && p->f->nccl_version >= 22800 ? 0.74 : 0.85;
  double part = p->op == COLL_ALL_REDUCE ? 2 : (p->per_node - 1.0) / p->per_node;
  double bw = g->nvls_intra_GBps * eff * (n - 1) / n * part;
  if (algo == ALGO_NVLS && p->nodes > 1)
    bw = MIN (bw, g->nvls_inter_GBps);
  if (algo == ALGO_NVLSTREE) {
    int i = p->node_index;
    bw = MIN (bw, g->nvls_inter_GBps * (p->nodes == 2 ? 2 : 1));
    bw = MIN (bw, cap (p, &nvlstree_channel_GBps[HOPPER][i], &nvlstree_channel_GBps[p->cls][i]));
  }
  return bw * n;
}

static double
ring_hw (const Planner *p, int hw, CollProto proto)
{
  int v = p->f->nccl_version;
  if (p->era == ERA_8 && hw == HW_NVLINK && proto == PROTO_LL)
    return 0.47;
  if (p->era == ERA_8 && hw == HW_NET && proto == PROTO_SIMPLE)
    return v >= 21200 && v < 21600 ? 28 : 9.6;
  return ring_hw_us[hw][proto];
}

static double
tree_hw (const Planner *p, int hw, CollProto proto)
{
  if (proto == PROTO_SIMPLE) {
    if (p->era == ERA_8 || p->era == ERA_21)
      return 28;
    if (p->era == ERA_18 && hw == HW_PCI)
      return 6;
  }
  if (p->era == ERA_8 && hw == HW_NVLINK && proto == PROTO_LL)
    return 0.52;
  return tree_hw_us[hw][proto];
}

static double
ring_latency_us (const Planner *p, CollProto proto)
{
  double steps = p->op == COLL_ALL_REDUCE ? 2.0 * (p->ranks - 1) : p->ranks - 1;
  double net = p->op == COLL_ALL_REDUCE ? 2.0 * (p->nodes - 1) : p->nodes - 1;
  double intra = ring_hw (p, p->hw, proto);
  double inter = p->per_node == 1 ? tree_hw (p, HW_NET, proto) : ring_hw (p, HW_NET, proto);
  if (p->nodes > 1) {
    double host = p->f->cpu == FABRIC_AMD ? 2 : 1;
    intra = MAX (intra, proto == PROTO_SIMPLE ? 3 * host : host);
  }
  return base_us[p->era][0][proto] + (steps - net) * intra + net * inter;
}

static double
tree_latency_us (const Planner *p, CollProto proto)
{
  double up =
      (p->per_node - 1) * tree_hw (p, p->hw, proto) + log2 (p->nodes) * tree_hw (p, HW_NET, proto);
  return base_us[p->era][1][proto] + 2 * up;
}

static double
nvls_latency_us (const Planner *p, CollAlgo algo)
{
  int v = p->f->nccl_version;
  double intra = p->era == ERA_18 ? 23 : nvls_hw_us;
  double inter = v < 22100 ? 19 : v < 22900 ? 14 : 20.9;
  if (algo == ALGO_NVLS)
    return p->nodes > 1 ? intra + nvls_net_us : intra;
  return intra + 2 * log2 (p->nodes) * inter;
}

/* Connecting makes two channels of each that the search found (trees 0 and 1), and two of these
 * again on Hopper and later over a network that leaves few. Threads: Simple and LL 512, LL128 640.
 */
static void
set_channels (const Planner *p, NcclPlan *plan)
{
  const NcclEnv *e = &p->f->env;
  int most = max_channels (p->f), n = (int)p->graph.channels * 2;
  if (p->nodes > 1 && p->f->arch >= 90 && p->graph.speed_GBps > 45 && n < 16)
    n *= 2;
  int nvls = p->f->arch < 100 ? 16 : p->nodes > 1 ? 32 : 24;
  int low = e->min_ctas > 0 ? e->min_ctas : 1, high = e->max_ctas > 0 ? e->max_ctas : most;
  plan->channels = CLAMP (n, MIN (low, high), MIN (high, most));
  plan->nvls_channels = CLAMP (nvls, MIN (low, high), MIN (high, most));
  int threads = e->threads > 0 ? e->threads : NCCL_FULL_THREADS;
  plan->threads[PROTO_LL] = plan->threads[PROTO_SIMPLE] = threads;
  plan->threads[PROTO_LL128] = 640;
  plan->ranks = p->ranks;
}

int
nccl_plan_channels (const NcclPlan *plan, CollChoice how, double bytes, int *threads)
{
  gboolean nvls = how.algo == ALGO_NVLS || how.algo == ALGO_NVLSTREE;
  gboolean collnet = how.algo == ALGO_COLLNET_DIRECT || how.algo == ALGO_COLLNET_CHAIN;
  int proto = how.proto < 0 ? PROTO_SIMPLE : (int)how.proto;
  int channels = nvls ? plan->nvls_channels : plan->channels, n = plan->threads[proto];
  double threshold = collnet ? 512 : proto == PROTO_SIMPLE ? 64 : 8;
  if (proto == PROTO_LL && how.algo == ALGO_RING)
    threshold *= plan->ranks;
  while (!nvls && channels > 1 && bytes < (double)channels * n * threshold)
    channels--;
  while (!nvls && n > 64 && bytes < (double)channels * n * threshold)
    n /= 2;
  if (threads != NULL)
    *threads = n;
  return channels;
}

/* CollNet: the search's channels, GPUs per head f, half of the bus as for trees. */
static double
collnet_bus_GBps (const Planner *p, gboolean direct)
{
  double bus = p->graph.channels * p->graph.speed_GBps;
  if (!direct)
    return bus;
  double f = p->per_node / MIN (p->graph.channels, p->per_node);
  return bus / (f - (f - 1) / 2) * (p->f->arch >= 90 ? 0.85 : 1);
}

static double
collnet_latency_us (const Planner *p, gboolean direct)
{
  double peers = p->per_node - 1;
  double within = direct ? MIN (1, peers) * collnet_hw_us[0] + collnet_peer_us * peers
                         : peers * collnet_hw_us[1];
  return 2 * within + collnet_net_us[direct ? 0 : 1];
}

static void
add (Planner *p, NcclPlan *plan, CollAlgo algo, CollProto proto, double latency_us, double bw_GBps)
{
  const NcclEnv *e = &p->f->env;
  if (!(bw_GBps > 0) || (e->not_algos[p->op] >> algo & 1) != 0 ||
      (e->not_protos[p->op] >> proto & 1) != 0)
    return;
  g_assert (plan->n < (int)G_N_ELEMENTS (plan->c));
  NcclCandidate *c = &plan->c[plan->n++];
  *c = (NcclCandidate){.algo = algo,
                       .proto = proto,
                       .latency_us = latency_us,
                       .bandwidth_GBps = bw_GBps,
                       .plateau_latency = 1,
                       .corrected = algo == ALGO_TREE};
  /* From 2.30 also NVLSTree on Blackwell beside an x86 CPU. */
  gboolean x86 = p->f->cpu == FABRIC_INTEL || p->f->cpu == FABRIC_AMD;
  if (algo == ALGO_NVLSTREE && p->cls == BLACKWELL && x86 && p->f->nccl_version >= 23000)
    c->corrected = TRUE;
  if (algo == ALGO_RING && proto == PROTO_SIMPLE && p->op == COLL_ALL_REDUCE && p->nodes > 1) {
    c->plateau_latency = p->cls < AMPERE ? 1.9 : 1.4;
    c->plateau_bytes = 64 * p->graph.channels * p->ranks;
  }
}

static void
add_all (Planner *p, NcclPlan *plan)
{
  const Fabric *f = p->f;
  double n = p->ranks;
  double steps = p->op == COLL_ALL_REDUCE ? 2 * (n - 1) : p->op == COLL_BROADCAST ? n : n - 1;
  gboolean ll128 = f->ll128 || p->per_node == 1 || f->env.protos_given;
  for (int proto = 0; proto < PROTO_COUNT; proto++) {
    if (proto == PROTO_LL128 && (!ll128 || f->arch < 70))
      continue;
    add (p, plan, ALGO_RING, (CollProto)proto, ring_latency_us (p, (CollProto)proto),
         ring_bus_GBps (p, (CollProto)proto) * n / steps);
    if (p->op == COLL_ALL_REDUCE)
      add (p, plan, ALGO_TREE, (CollProto)proto, tree_latency_us (p, (CollProto)proto),
           tree_bus_GBps (p, (CollProto)proto) * 0.5);
  }
  gboolean nvls =
      f->nvls && !f->env.no_nvls && f->nvswitch && f->arch >= 90 && f->nccl_version >= 21700;
  if (nvls && p->nodes == 1 && p->graph.nvls_channels >= 2 && p->op != COLL_BROADCAST)
    add (p, plan, ALGO_NVLS, PROTO_SIMPLE, nvls_latency_us (p, ALGO_NVLS),
         nvls_bus_GBps (p, ALGO_NVLS) * n / steps);
  if (nvls && p->nodes > 1 && p->graph.nvls_channels >= 2 && p->op == COLL_ALL_REDUCE &&
      f->nccl_version >= 21800)
    add (p, plan, ALGO_NVLSTREE, PROTO_SIMPLE, nvls_latency_us (p, ALGO_NVLSTREE),
         nvls_bus_GBps (p, ALGO_NVLSTREE) * n / steps);
  /* The plugin's tuner keeps to the ring on more than two nodes, but not against NCCL_ALGO. */
  if (f->tuner == FABRIC_TUNER_AWS_OFI && p->nodes > 2 && f->env.not_algos[p->op] == 0)
    for (int i = 0; i < plan->n; i++)
      plan->c[i].if_asked = plan->c[i].algo == ALGO_NVLSTREE;
  gboolean pat = f->nccl_version >= 22300 && p->per_node == 1 && p->nodes > 1;
  if (pat && (p->op == COLL_ALL_GATHER || p->op == COLL_REDUCE_SCATTER))
    add (p, plan, ALGO_PAT, PROTO_SIMPLE,
         pat_base_us + log2 (p->nodes) * pat_hw_net_us / 3.5 + 2.8 * n,
         0.75 * p->graph.channels * p->graph.speed_GBps);
  if (f->sharp && f->env.collnet && p->nodes > 1 && p->per_node <= 8 && p->op == COLL_ALL_REDUCE) {
    if (f->nvswitch)
      add (p, plan, ALGO_COLLNET_DIRECT, PROTO_SIMPLE, collnet_latency_us (p, TRUE),
           collnet_bus_GBps (p, TRUE) * 0.5);
    add (p, plan, ALGO_COLLNET_CHAIN, PROTO_SIMPLE, collnet_latency_us (p, FALSE),
         collnet_bus_GBps (p, FALSE) * 0.5);
    if (nvls && p->graph.nvls_channels >= 2)
      add (p, plan, ALGO_NVLS, PROTO_SIMPLE, nvls_latency_us (p, ALGO_NVLS),
           nvls_bus_GBps (p, ALGO_NVLS) * n / steps);
  }
}

void
nccl_plan_init (NcclPlan *plan, const Fabric *f, CollOp op, const CollGroup *g)
{
  plan->n = 0;
  if (op == COLL_ALLTOALL || op == COLL_SENDRECV || g->ranks <= 1)
    return;
  Planner p = {.f = f,
               .op = op,
               .ranks = g->ranks,
               .per_node = g->ranks_per_node,
               .nodes = g->nodes,
               .era = era_of (f->nccl_version),
               .cls = class_of (f->arch),
               .hw = f->link == FABRIC_NVLINK ? HW_NVLINK : HW_PCI,
               .node_index = MIN (g->nodes, 3) - 1,
               .share = MIN (1, fabric_share (f, g))};
  search (&p);
  set_channels (&p, plan);
  add_all (&p, plan);
  /* NCCL stops with an error when nothing is left; a prediction of what was asked for least badly
   * says more: the algorithm without the protocol, then the protocol without the algorithm. */
  for (int pass = 0; plan->n == 0 && pass < 2; pass++) {
    Fabric free_of = *f;
    guint *less = pass == 0 ? free_of.env.not_protos : free_of.env.not_algos;
    less[op] = 0;
    p.f = &free_of;
    add_all (&p, plan);
  }
}

double
nccl_plan_time_us (const NcclPlan *plan, int i, double bytes)
{
  const NcclCandidate *c = &plan->c[i];
  double bw = c->bandwidth_GBps, latency = c->latency_us;
  if (c->corrected) {
    /* frexp gives floor(log2(x)) + 1 exactly */
    int e = 0;
    frexp (bytes / 64, &e);
    if (e >= 1 && e <= 24)
      bw *= tree_correction[c->proto][e - 1];
  }
  if (c->plateau_bytes > 0 && bytes >= c->plateau_bytes)
    latency *= c->plateau_latency;
  return latency + bytes / (1000 * bw);
}

CollChoice
nccl_plan_choose (const NcclPlan *plan, double bytes, CollChoice force)
{
  enum { BOTH, ALGO_ONLY, ANY, PASSES };
  for (int pass = BOTH; pass < PASSES; pass++) {
    const NcclCandidate *best = NULL;
    double best_us = INFINITY;
    for (int i = 0; i < plan->n; i++) {
      const NcclCandidate *c = &plan->c[i];
      if (c->if_asked && force.algo != c->algo && plan->n > 1)
        continue;
      if (pass < ANY && force.algo != ALGO_AUTO && force.algo != c->algo)
        continue;
      if (pass == BOTH && force.proto != PROTO_AUTO && force.proto != c->proto)
        continue;
      double us = nccl_plan_time_us (plan, i, bytes);
      if (us < best_us) {
        best = c;
        best_us = us;
      }
    }
    if (best)
      return (CollChoice){best->algo, best->proto};
  }
  return (CollChoice){ALGO_AUTO, PROTO_SIMPLE};
}
