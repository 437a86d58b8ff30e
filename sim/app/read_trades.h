/* read_trades: what a scenario trades memory or traffic for (train.adapters, train.offload,
 * parallel.cp_comm, compression, outer). Errors are those of json_read.h; rules between keys are
 * spec_check's. */
#ifndef CLUSTERSIM_READ_TRADES_H
#define CLUSTERSIM_READ_TRADES_H

#include "json_read.h"
#include "spec.h"

gboolean read_train_trades (const JsonRef *train, Spec *s, GError **error);
gboolean read_parallel_trades (const JsonRef *parallel, ParallelSpec *p, GError **error);

#endif
