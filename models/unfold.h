/* unfold: the programs of every GPU of a job.
 *
 * compile_step makes one rank of each pipeline stage stand for all GPUs of the stage. Here every
 * GPU gets its own place: the programs are shared, the peers are those of its own pipeline, and
 * each collective is a rendezvous of the GPUs that take part in it: compute of tp x cp (and ep)
 * ranks    in lockstep, kernel group by kernel group: an operation ends when its slowest member has
 *   gradients, gathered parameters       dp x cp ranks of the stage (experts: those with the same
 *                                        experts; sharded parameters: their shard and replica
 * groups) shared embedding, end of the step    first and last stage of a pipeline; everybody A job
 * in which every GPU is alike runs to the tick as the folded one does, which a test holds. Ranks
 * are numbered as the job numbers them (parallel.order), so that rank / gpus_per_node is the node.
 */
#ifndef CLUSTERSIM_UNFOLD_H
#define CLUSTERSIM_UNFOLD_H

#include "compile.h"

/* Takes folded and returns the set of all ranks. program_of: per rank the block of programs it runs
 * (0: the first n_stages programs of the set, 1: the next …), or NULL when there is one block. */
ProgramSet *unfold_programs (ProgramSet *folded, const Spec *s, const guint8 *block_of);

/* Appends the programs of more (of the same job on another device) to set as a further block; more
 * is freed. Ranks, peers and groups of set stay. */
void unfold_add_block (ProgramSet *set, ProgramSet *more);

/* Ranks of the job in lockstep with one another: a compute operation ends with the slowest. */
gint64 unfold_lockstep (const Spec *s);

#endif
