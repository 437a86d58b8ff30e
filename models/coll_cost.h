/* coll_cost: what a collective costs once algorithm and protocol are known. See fabric.h for the
 * form of the ring; the others: tree      t = base + 2 ((r-1) hop + log2(N) net_hop) + max (2 S /
 * bus, k S / NICs) + ramp NVLS      t = base + S / rate + ramp S / (S + half) NVLSTree  t = base +
 * 2 log2(N) hop + max (S / rate, k S / NICs) + ramp S / (S + half) PAT       t = base + log2(N)
 * net_hop + ranks pat_rank + wire / NICs alltoall  t = base + peers + max (in-node part / rate,
 * crossing part / NICs) + copy + ramp for S bytes, r ranks in each of N nodes. k = 1 for two nodes:
 * one half-tree up and one down in each direction of a link; k = 2 for more, as an inner node of
 * the double binary tree sends one half up, one half down to each of two children, and is a leaf of
 * the other tree. The ring moves 2(n-1)/n S, so only on two nodes do trees beat the NICs' line rate
 * in nccl-tests' busbw.
 */
#ifndef CLUSTERSIM_COLL_COST_H
#define CLUSTERSIM_COLL_COST_H

#include "fabric.h"

typedef struct CollCache CollCache;
void coll_cache_free (CollCache *cache); /* NULL is fine */

/* The closed form of one algorithm and protocol. Infinite across nodes when f has no network. */
double coll_algo_time_s (const Fabric *f, CollOp op, const CollGroup *g, CollChoice how,
                         double bytes);

/* Bus bandwidth that the settings of f->env leave a GPU in its node, and a group over its NICs
 * (Ring). */
double coll_bus_Bps (const Fabric *f, const CollGroup *g, CollProto proto);
double coll_net_Bps (const Fabric *f, const CollGroup *g, CollProto proto);

/* What a GPU sends in its node in an alltoall, and over its NICs in one message. */
double coll_alltoall_Bps (const Fabric *f, const CollGroup *g);
double coll_p2p_net_Bps (const Fabric *f);

/* NCCL's choice and the closed form, without the precomputed table of coll_time_s: exact, but it
 * may fall where NCCL changes its mind. choice as in coll_time_s. */
double coll_direct_time_s (const Fabric *f, CollOp op, const CollGroup *g, double bytes,
                           CollChoice *choice);

#endif
