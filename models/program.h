/* program: a training step as data.
 *
 * A program is what one class of GPU runs: a few in-order streams of operations, each with waits of
 * the form "stream S of peer P has completed at least K operations", which is what CUDA streams and
 * events are. Programs are immutable once built and shared by all ranks of a class; a rank owns
 * only its positions in them. Peers are relative (a small table per rank), so one program serves
 * every rank of a pipeline stage.
 *
 * Durations are ticks of 1 ps. An operation's cost says how its time divides over the parts of the
 * breakdown; the shares add up to the duration (program_verify checks it).
 *
 * Ownership: program_builder_finish returns a ProgramSet owned by the caller.
 */
#ifndef CLUSTERSIM_PROGRAM_H
#define CLUSTERSIM_PROGRAM_H

#include "simtime.h"
#include "types.h"

#define PROGRAM_ERROR program_error_quark ()
GQuark program_error_quark (void);
typedef enum { PROGRAM_ERROR_INVALID, PROGRAM_ERROR_DEADLOCK, PROGRAM_ERROR_OVERFLOW } ProgramError;

typedef enum { OP_COMPUTE, OP_SEND, OP_COLL, OP_HOST, OP_MARK } OpKind;

#define OP_NO_GROUP 255
#define PEER_SELF   (-1)
#define GROUP_NONE  G_MAXUINT32

typedef struct {
  guint8 kind;
  guint8 group; /* slot in the rank's group table for a rendezvous, or OP_NO_GROUP */
  guint16 n_waits;
  guint32 wait0; /* index into waits */
  guint32 cost;  /* index into costs */
  guint32 tag;   /* OP_TAG: what, stage, micro-batch: names in traces */
} Op;            /* 16 bytes */

/* Packed: a step of a deep pipeline has hundreds of thousands of them, and the fast pass is bound
 * by the memory it walks through. */
typedef struct {
  gint32 peer : 5; /* index in the rank's peer table, or PEER_SELF */
  guint32 stream : 3;
  guint32 count : 24; /* that many operations of the stream are done */
} Wait;               /* 4 bytes */
#define PROGRAM_MAX_PEERS   15
#define PROGRAM_MAX_STREAMS 8
#define PROGRAM_MAX_COUNT   ((1u << 24) - 1)

typedef struct {
  SimTime duration;
  SimTime part[PART_COUNT];
} OpCost;

typedef enum {
  TAG_NONE,
  TAG_FORWARD,
  TAG_BACKWARD,
  TAG_INPUT_GRAD,
  TAG_WEIGHT_GRAD,
  TAG_SEND_ACT,
  TAG_SEND_GRAD,
  TAG_GRAD_REDUCE,
  TAG_PARAM_GATHER,
  TAG_OPTIMIZER,
  TAG_GRAD_NORM,
  TAG_EMBED_GRAD,
  TAG_HOST,
  TAG_DATA,
  TAG_KERNEL,
  TAG_OFFLOAD
} OpTag;
#define OP_TAG(what, stage, mb)                                                                    \
  ((guint32)(what) << 28 | ((guint32)(stage)&0xfff) << 16 | ((guint32)(mb)&0xffff))
#define OP_TAG_WHAT(tag)  ((tag) >> 28)
#define OP_TAG_STAGE(tag) (((tag) >> 16) & 0xfff)
#define OP_TAG_MB(tag)    ((tag)&0xffff)

typedef struct {
  guint n_programs, n_streams, n_ranks, n_peers, n_slots, n_groups;
  guint32 *first_op; /* n_programs * n_streams + 1 */
  Op *ops;
  Wait *waits;
  OpCost *costs;
  guint n_ops, n_waits, n_costs;
  guint32 *rank_program;           /* n_ranks */
  guint32 *peers;                  /* n_ranks * n_peers absolute ranks */
  guint32 *groups;                 /* n_ranks * n_slots group ids or GROUP_NONE */
  guint32 *group_size;             /* n_groups */
  guint32 *rank_weight;            /* n_ranks: how many real GPUs this one stands for */
  const char *const *stream_names; /* static, n_streams */
} ProgramSet;

void program_set_free (ProgramSet *set);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (ProgramSet, program_set_free)

static inline guint
program_ops_of (const ProgramSet *set, guint program, guint stream)
{
  guint i = program * set->n_streams + stream;
  return set->first_op[i + 1] - set->first_op[i];
}

/* Builder: operations may be added to the streams of one program in any order; programs are made
 * one after the other. */
typedef struct ProgramBuilder ProgramBuilder;
ProgramBuilder *program_builder_new (guint n_streams, const char *const *stream_names);
void program_builder_free (ProgramBuilder *b);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (ProgramBuilder, program_builder_free)

/* A cost of one part, or of several; returns its index. Equal consecutive costs are not merged. */
guint32 program_cost (ProgramBuilder *b, Part part, SimTime duration);
guint32 program_cost_parts (ProgramBuilder *b, const SimTime part[PART_COUNT]);

void program_begin (ProgramBuilder *b); /* next program */
/* What program_op, program_wait and program_group do while building; program_eval.h has those. */
guint32 program_append_op (ProgramBuilder *b, guint stream, OpKind kind, guint32 cost, guint32 tag);
void program_append_wait (ProgramBuilder *b, guint stream, gint peer, guint wait_stream,
                          guint32 count);
void program_append_group (ProgramBuilder *b, guint stream, guint slot);
guint32 program_append_count (const ProgramBuilder *b, guint stream);
/* TRUE once a stream has had more operations than a wait can count: the set must not be used. */
gboolean program_builder_overflown (const ProgramBuilder *b);

/* Evaluation in place of building: the same calls, made rank by rank in an order in which whatever
 * an operation waits for has been called before, give the completion times at once and keep nothing
 * else. slot_offset: for each peer slot the distance on the ring of ranks. Rendezvous are not for
 * it. A wait for what has not been called yet sets "unresolved": the times are then worth nothing.
 * mirror: NULL, or, where rank n_ranks - 1 - r does at every moment what rank r does, the stream of
 * the one that does the work of each stream of the other; the upper half of the ranks is then not
 * selected but read from the lower.
 */
ProgramBuilder *program_evaluator_new (guint n_streams, const char *const *stream_names,
                                       guint n_ranks, const guint32 *slot_offset, guint n_slots,
                                       const guint8 *mirror);
void program_select (ProgramBuilder *b, guint rank); /* further calls are about this rank */
void program_reserve (ProgramBuilder *b, guint rank, guint stream, guint32 n_ops);
guint32 program_eval_count (const ProgramBuilder *b, guint rank, guint stream);
/* Completion times of a stream, program_eval_count of them; borrowed. */
const SimTime *program_eval_ends (const ProgramBuilder *b, guint rank, guint stream);
gboolean program_eval_unresolved (const ProgramBuilder *b);
gboolean program_eval_overflow (const ProgramBuilder *b); /* a time ran over the end of the clock */
/* The costs of from are copied to the start of to, which must have none: indices stay valid. */
void program_copy_costs (ProgramBuilder *to, const ProgramBuilder *from);

/* Ends building. ranks: one per program, in order, weight 1, until changed by the caller through
 * the returned set's arrays: peers (n_peers each) and groups are zeroed / GROUP_NONE. */
ProgramSet *program_builder_finish (ProgramBuilder *b, guint n_ranks, guint n_peers, guint n_slots,
                                    guint n_groups);

/* Checks indices, that waits name existing operations, groups have their members, shares add up. */
gboolean program_verify (const ProgramSet *set, GError **error);

#include "program_eval.h"

#endif
