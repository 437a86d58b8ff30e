/* coll_plan_priv: the builder of plans, shared by coll_plan*.c. */
#ifndef CLUSTERSIM_COLL_PLAN_PRIV_H
#define CLUSTERSIM_COLL_PLAN_PRIV_H

#include "coll_plan.h"

/* The ranks of one node, in rank order. */
typedef struct {
  guint32 first, n; /* in Builder.by_node */
  guint32 node;
} NodeRanks;

typedef struct {
  const CollPlanSpec *s;
  CollPlan *p;
  GError **error;
  NodeRanks *node;
  guint32 n_nodes;
  guint32 *by_node; /* ranks, grouped by node */
  guint32 ppn;      /* ranks of the first node; equal on all if even */
  gboolean even;
  guint8 nics[256]; /* those that the group drives, on every node */
  guint n_nics;
  int enter; /* of edges to come, as TopoRouteOpts.enter */
  /* the channel under construction */
  CollChannel ch;
  double *acc; /* by link: weight on it */
  GArray *touched;
  TopoPath path;           /* scratch of one edge */
  GArray *pred_a, *pred_b; /* dependencies as pairs: edge pred_a waits for pred_b */
  guint32 slots, lag;      /* of edges to come */
} Builder;

gboolean plan_fail (const Builder *b, const char *format, ...) G_GNUC_PRINTF (2, 3);

void plan_phase_begin (Builder *b);
void plan_phase_end (Builder *b, double alpha_s);
/* cap_Bps: limit on the amount's rate, 0 for none. */
void plan_channel_begin (Builder *b, gint64 amount, double cap_Bps, guint32 slots, guint32 lag);
void plan_channel_end (Builder *b);

/* Adds the scratch path as an edge; returns its number (meaningless without steps). */
guint32 plan_edge (Builder *b, guint32 src_rank, double weight, double alpha_s);
void plan_wait (Builder *b, guint32 edge, guint32 for_edge);

/* From rank to rank over a NIC (-1: their own). FALSE with error when no path is left. */
gboolean plan_edge_ranks (Builder *b, guint32 from, guint32 to, int nic, double weight,
                          guint32 *edge);
double plan_hop_s (const Builder *b, gboolean cross);
gboolean plan_crosses (const Builder *b, guint32 rank_a, guint32 rank_b);

/* part k of n of an amount, in whole bytes that add up. */
gint64 plan_part (gint64 amount, guint32 k, guint32 n);
guint32 plan_slots (const Builder *b, gint64 amount);
double plan_limit (double a, double b); /* the smaller of two limits, 0 being none */

/* A ring of n given ranks in the open channel: every edge weight `factor`. */
gboolean plan_ring_edges (Builder *b, const guint32 *rank, guint32 n, int nic, double weight,
                          gboolean chain, double *wire_s);

/* Ranks in the order of channel c's ring. */
void plan_ring_order (const Builder *b, guint c, guint32 *order);

gboolean plan_tree (Builder *b); /* coll_plan_tree.c */
gboolean plan_nvls (Builder *b);
gboolean plan_nvlstree (Builder *b);
gboolean plan_collnet (Builder *b);
gboolean plan_hierarchical (Builder *b); /* coll_plan_hier.c */
gboolean plan_pat (Builder *b);
gboolean plan_pairs (Builder *b);

/* coll_plan_mesh.c: rings of distinct NVLink lanes through the given ranks of one node; each n
 * ranks in out, one after the other. Returns how many, 0 if there are no direct links. */
/* Puts ranks of one node that a mesh joins into an order along its direct links; the first and the
 * last stay. Leaves them as they are where there is no such order. */
void plan_mesh_path (const Builder *b, guint32 *rank, guint32 n);

/* Rings of distinct NVLink lanes through all ranks, which are in one node; each n ranks in out, one
 * after the other. Returns how many, 0 if there are no direct links. */
guint plan_mesh_rings (const Builder *b, guint32 *out, guint max);

#endif
