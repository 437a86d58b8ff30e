/* nccl_env: what a user sets in NCCL's environment, as far as it changes what NCCL chooses or what
 * a call costs.
 *
 * NCCL_ALGO, NCCL_PROTO   "Ring,Tree", "^NVLS" (all but), or by operation, as from 2.24:
 *                         "allreduce:tree,ring;allgather:ring"
 * NCCL_BUFFSIZE           bytes of a Simple buffer, 8 steps of a channel and peer (4 MiB)
 * NCCL_NTHREADS           threads of a channel with Simple and LL: 64, 128, 256, 512
 * NCCL_MIN_CTAS, NCCL_MAX_CTAS (and ..._NCHANNELS)  channels
 * NCCL_CROSS_NIC          0 a ring keeps to a rail, 1 it may change, 2 only if that helps
 * NCCL_PXN_DISABLE        1: a GPU uses its own NICs for every peer
 * NCCL_NVLS_ENABLE        0: no NVLS, no NVLSTree
 * NCCL_COLLNET_ENABLE     1: SHARP where the network has it
 *
 * Source: NVIDIA's list of NCCL environment variables, and the defaults in NCCL 2.30.7. Errors:
 * NCCL_ENV_ERROR, "NAME: what is wrong (found …; allowed: …)".
 */
#ifndef CLUSTERSIM_NCCL_ENV_H
#define CLUSTERSIM_NCCL_ENV_H

#include "coll.h"

#define NCCL_ENV_ERROR nccl_env_error_quark ()
GQuark nccl_env_error_quark (void);
typedef enum { NCCL_ENV_ERROR_NAME, NCCL_ENV_ERROR_VALUE } NcclEnvError;

/* All zero: nothing is set. */
typedef struct {
  guint not_algos[COLL_COUNT], not_protos[COLL_COUNT]; /* bits of what is forbidden */
  gboolean protos_given;
  double buff_bytes; /* 0: not set, as below */
  int threads, min_ctas, max_ctas;
  gboolean cross_given;
  int cross_nic;
  gboolean no_pxn, no_nvls, collnet;
} NcclEnv;

extern const char *const nccl_env_names[];

gboolean nccl_env_set (NcclEnv *e, const char *name, const char *value, GError **error);

/* Rings change the rail between nodes (NCCL_CROSS_NIC=1; 2 lets NCCL stay on it, as it does). */
gboolean nccl_env_crosses (const NcclEnv *e);

/* NCCL's default where nothing is set. */
#define NCCL_BUFF_BYTES   ((double)(4 << 20))
#define NCCL_BUFF_STEPS   8
#define NCCL_FULL_THREADS 512

#endif
