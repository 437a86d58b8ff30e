/* ckpt: what a checkpoint weighs, how long it takes, and what survives which failure.
 *
 * Bytes: weights and optimizer state are saved, gradients are not. Mixed-precision Adam keeps bf16
 * weights 2, fp32 master 4, first and second moment 4 + 4: 14 bytes per parameter, as BLOOM's
 * project counts it. Time to write: bytes over the least of what the writers, and the store less
 * what others take of it, can do. An asynchronous save blocks only while it is copied to host
 * memory.
 *
 * Levels are ordered from the cheapest to the safest: each is taken at every `every`-th checkpoint,
 * on top of the cheaper ones.
 */
#ifndef CLUSTERSIM_CKPT_H
#define CLUSTERSIM_CKPT_H

#include "types.h"

#define CKPT_ERROR ckpt_error_quark ()
GQuark ckpt_error_quark (void);
typedef enum { CKPT_ERROR_RANGE, CKPT_ERROR_MEMORY } CkptError;

/* What a level outlives. */
typedef enum {
  CKPT_PROCESS, /* in host memory: a crash of the processes, not the loss of a node */
  CKPT_NODE,    /* copies in peers' memory: the loss of a node, mostly (GEMINI) */
  CKPT_ALL      /* on shared storage */
} CkptSurvives;
extern const char *const ckpt_survives_names[]; /* "process", "node", "all" */

typedef struct {
  guint every;      /* in checkpoints; 1 for the first level */
  double block_s;   /* the job stands still */
  double persist_s; /* then until it is safe; 0: at once (synchronous) */
  double slowdown;  /* share of speed lost while it persists */
  double restore_s; /* read back, with re-sharding */
  CkptSurvives survives;
  guint copies; /* CKPT_NODE: machines that hold each part, the owner among them */
  guint keep;   /* newest ones kept; 0: all */
} CkptLevel;

enum { CKPT_LEVELS = 4 };

typedef struct {
  double interval_s; /* of work, between checkpoints of the first level */
  guint n_levels;
  CkptLevel level[CKPT_LEVELS];
} CkptPlan;

/* Levels in order, every rising by whole multiples, interval > 0, times >= 0. */
gboolean ckpt_plan_check (const CkptPlan *p, GError **error);

/* A write that takes longer than its interval makes the next save wait: what each save of the level
 * blocks in all. */
double ckpt_effective_block_s (const CkptPlan *p, guint level);

/* ---- sizes and times ---- */

/* Saved bytes per parameter: weights as they are kept (2 for bf16, 0 when only the master is saved)
 * and optimizer state (12: master and two moments in fp32; 8-bit Adam 6, SGD 8 …). */
double ckpt_bytes_per_parameter (double weight_bytes, double optimizer_bytes);

typedef struct {
  double bytes;                           /* of the whole checkpoint */
  double gpus, nodes;                     /* that hold it, each part once */
  double writers;                         /* processes that write at once; 0: one for each GPU */
  double writer_Bps;                      /* each; 0: no limit */
  double store_write_Bps, store_read_Bps; /* aggregate; 0: no limit */
  double store_share;  /* of the store, the rest belongs to other jobs; 0 … 1 */
  double snapshot_Bps; /* device to host, each GPU; 0: no limit */
  double fixed_s;      /* of each save: barriers, metadata, planning */
  double reshard_s;    /* of each restore */
} CkptStore;

double ckpt_write_s (const CkptStore *s);
double ckpt_read_s (const CkptStore *s); /* with reshard_s */
double ckpt_snapshot_s (const CkptStore *s);
double ckpt_bytes_per_gpu (const CkptStore *s);
/* In flight: one copy while the next is taken needs two. */
double ckpt_host_bytes_per_node (const CkptStore *s, guint copies);

/* Levels for the usual ways. */
CkptLevel ckpt_level_sync (const CkptStore *s);
CkptLevel ckpt_level_async (const CkptStore *s, double slowdown);
CkptLevel ckpt_level_memory (const CkptStore *s);
/* peer_Bps: each node to its peer. */
CkptLevel ckpt_level_peer (const CkptStore *s, double peer_Bps, guint copies);

#endif
