/* rank_order: which parallel dimension varies fastest over the ranks of a job.
 *
 * "tp-cp-ep-dp-pp" is Megatron's default: ranks of a tensor-parallel group are neighbours, those of
 * pipeline stages far apart. Ranks fill nodes in order, so the order decides which groups stay on
 * NVLink. ep may be named (it lies inside tp x cp x dp, next to dp) or left out.
 */
#ifndef CLUSTERSIM_RANK_ORDER_H
#define CLUSTERSIM_RANK_ORDER_H

#include <glib.h>

#define RANK_ORDER_DEFAULT "tp-cp-ep-dp-pp"

typedef enum { DIM_TP, DIM_CP, DIM_DP, DIM_PP, DIM_COUNT } RankDim;

/* dims: innermost first. text NULL: the default. Error: which name is wrong, missing or twice. */
gboolean rank_order_parse (const char *text, RankDim dims[DIM_COUNT], GError **error);

/* Distance in ranks between neighbours of each dimension; text must be legal. size: of each. */
void rank_order_strides (const char *text, const gint64 size[DIM_COUNT], gint64 stride[DIM_COUNT]);

#endif
