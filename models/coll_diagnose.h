/* coll_diagnose: why measured collectives are slower than predicted ones, from their shape alone.
 *
 * Input: one run of one operation, by size, beside its prediction, and the fabric that was
 * predicted. Rules look at the plateau (median over the largest sizes), at small sizes, at steps
 * from size to size and at repeated sizes; each is a symptom that was seen on real systems (NCCL
 * and nccl-tests issues, vendors' guides; the set is in the text of the cause). A cause is what is
 * likely and worth looking at first, no proof.
 *
 * Units: bytes, seconds. Results are static text, most likely first.
 */
#ifndef CLUSTERSIM_COLL_DIAGNOSE_H
#define CLUSTERSIM_COLL_DIAGNOSE_H

#include "fabric.h"

typedef enum {
  CAUSE_HOST_STAGED,   /* no peer to peer between GPUs of a node */
  CAUSE_PCIE_CROWDED,  /* PCIe cards share bridges and the way between sockets */
  CAUSE_MIDSIZE_DIP,   /* a switch of algorithm or protocol at the wrong size */
  CAUSE_TIMEOUTS,      /* lost packets: adaptive routing off, no flow control */
  CAUSE_UNSTABLE,      /* large messages far off and uneven */
  CAUSE_SOCKETS,       /* no RDMA: the network plugin was not loaded */
  CAUSE_MANY_NODES,    /* more than two nodes get half of what two get */
  CAUSE_ONE_GPU_NICS,  /* one GPU cannot fill all NICs of its node */
  CAUSE_SLOW_GDR,      /* one GPU, one NIC: GPUDirect RDMA slow or off */
  CAUSE_SMALL_LATENCY, /* small messages several times slower, steadily */
  CAUSE_HALF_RATE,     /* a part of the NICs or of their rate is missing */
  CAUSE_TWO_MODES,     /* the same call takes one of two times: a neighbour */
  CAUSE_SMALL_JITTER,  /* small messages slow and uneven: virtual functions, noise */
  CAUSE_REGRESSION,    /* in the node, slower than other versions or flags */
  CAUSE_COUNT
} CollCause;
extern const char *const coll_cause_names[]; /* "host-staged" … */
extern const char *const coll_cause_texts[];

typedef struct {
  double bytes, measured_s, predicted_s;
} CollPoint;

/* cause: room for CAUSE_COUNT. Returns how many there are; 0 when nothing is far off. points in the
 * order of the log; repeated sizes may follow each other. */
guint coll_diagnose (const Fabric *f, CollOp op, const CollGroup *g, const CollPoint *points,
                     guint n, CollCause *cause);

/* Median of measured over predicted busbw at the plateau; 0 without points. */
double coll_plateau_ratio (const CollPoint *points, guint n);

#endif
