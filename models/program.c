#include "program.h"

#include <string.h>

G_DEFINE_QUARK (clustersim - program - error - quark, program_error)

/* While building, each stream of the current program grows in its own array; finishing a program
 * appends them to the set in stream order. Waits of one operation must lie together, so they are
 * kept in the order of their operations per stream and copied along. */
typedef struct {
  Op *ops;
  guint n_ops, cap_ops;
  Wait *waits;
  guint n_waits, cap_waits;
} StreamBuf;

struct ProgramBuilder {
  ProgramEval eval; /* first: see program_eval_of */
  guint n_streams, n_programs;
  const char *const *names;
  StreamBuf *cur;
  gboolean open, overflown;
  guint32 *first_op;
  guint cap_first;
  Op *ops;
  guint n_ops, cap_ops;
  Wait *waits;
  guint n_waits, cap_waits;
  OpCost *costs;
  guint n_costs, cap_costs;
};

static inline void *
grow (void *data, guint used, guint more, guint *cap, gsize size)
{
  if (used + more <= *cap)
    return data;
  guint n = MAX (*cap * 2, used + more);
  n = MAX (n, 64);
  *cap = n;
  return g_realloc_n (data, n, size);
}

ProgramBuilder *
program_builder_new (guint n_streams, const char *const *stream_names)
{
  ProgramBuilder *b = g_new0 (ProgramBuilder, 1);
  b->n_streams = n_streams;
  b->names = stream_names;
  g_assert (n_streams <= PROGRAM_MAX_STREAMS);
  b->cur = g_new0 (StreamBuf, n_streams);
  return b;
}

void
program_builder_free (ProgramBuilder *b)
{
  if (b == NULL)
    return;
  for (guint i = 0; i < b->n_streams; i++) {
    g_free (b->cur[i].ops);
    g_free (b->cur[i].waits);
  }
  for (guint i = 0; b->eval.all != NULL && i < b->eval.selected * b->n_streams; i++)
    g_free (b->eval.all[i].ends);
  g_free (b->eval.all);
  g_free (b->eval.slot_offset);
  g_free (b->cur);
  g_free (b->first_op);
  g_free (b->ops);
  g_free (b->waits);
  g_free (b->costs);
  g_free (b);
}

void
program_set_free (ProgramSet *set)
{
  if (set == NULL)
    return;
  g_free (set->first_op);
  g_free (set->ops);
  g_free (set->waits);
  g_free (set->costs);
  g_free (set->rank_program);
  g_free (set->peers);
  g_free (set->groups);
  g_free (set->group_size);
  g_free (set->rank_weight);
  g_free (set);
}

guint32
program_cost_parts (ProgramBuilder *b, const SimTime part[PART_COUNT])
{
  b->costs = grow (b->costs, b->n_costs, 1, &b->cap_costs, sizeof (OpCost));
  b->eval.costs = b->costs;
  OpCost *c = &b->costs[b->n_costs];
  c->duration = 0;
  for (guint i = 0; i < PART_COUNT; i++) {
    c->part[i] = part[i];
    c->duration += part[i];
  }
  return b->n_costs++;
}

guint32
program_cost (ProgramBuilder *b, Part part, SimTime duration)
{
  SimTime parts[PART_COUNT] = {0};
  parts[part] = duration;
  return program_cost_parts (b, parts);
}

static void
close_program (ProgramBuilder *b)
{
  if (!b->open)
    return;
  for (guint s = 0; s < b->n_streams; s++) {
    StreamBuf *c = &b->cur[s];
    b->first_op =
        grow (b->first_op, b->n_programs * b->n_streams + s, 2, &b->cap_first, sizeof (guint32));
    b->first_op[b->n_programs * b->n_streams + s] = b->n_ops;
    b->ops = grow (b->ops, b->n_ops, c->n_ops, &b->cap_ops, sizeof (Op));
    b->waits = grow (b->waits, b->n_waits, c->n_waits, &b->cap_waits, sizeof (Wait));
    for (guint i = 0; i < c->n_ops; i++) {
      b->ops[b->n_ops + i] = c->ops[i];
      b->ops[b->n_ops + i].wait0 += b->n_waits;
    }
    if (c->n_waits > 0)
      memcpy (b->waits + b->n_waits, c->waits, c->n_waits * sizeof (Wait));
    b->n_ops += c->n_ops;
    b->n_waits += c->n_waits;
    c->n_ops = c->n_waits = 0;
  }
  b->n_programs++;
  b->first_op[b->n_programs * b->n_streams] = b->n_ops;
  b->open = FALSE;
}

void
program_begin (ProgramBuilder *b)
{
  close_program (b);
  b->open = TRUE;
}

ProgramBuilder *
program_evaluator_new (guint n_streams, const char *const *stream_names, guint n_ranks,
                       const guint32 *slot_offset, guint n_slots, const guint8 *mirror)
{
  ProgramBuilder *b = program_builder_new (n_streams, stream_names);
  guint selected = mirror != NULL ? n_ranks / 2 : n_ranks;
  g_assert (mirror == NULL || n_ranks % 2 == 0);
  b->eval =
      (ProgramEval){.all = g_new0 (EvalStream, selected * n_streams),
                    .n_streams = n_streams,
                    .n_ranks = n_ranks,
                    .selected = selected,
                    .slot_offset = g_memdup2 (slot_offset, MAX (n_slots, 1) * sizeof (guint32))};
  b->eval.now = b->eval.all;
  if (mirror != NULL)
    memcpy (b->eval.mirror, mirror, n_streams);
  return b;
}

void
program_select (ProgramBuilder *b, guint rank)
{
  g_assert (rank < b->eval.selected);
  b->eval.rank = rank;
  b->eval.now = b->eval.all + (gsize)rank * b->n_streams;
}

void
program_reserve (ProgramBuilder *b, guint rank, guint stream, guint32 n_ops)
{
  EvalStream *e = program_eval_stream (&b->eval, rank, stream);
  e->ends = grow (e->ends, e->n, n_ops, &e->cap, sizeof (SimTime));
}

void
program_eval_grow (EvalStream *e)
{
  e->ends = grow (e->ends, e->n, 1, &e->cap, sizeof (SimTime));
}

guint32
program_eval_count (const ProgramBuilder *b, guint rank, guint stream)
{
  return program_eval_stream (&b->eval, rank, stream)->n;
}

const SimTime *
program_eval_ends (const ProgramBuilder *b, guint rank, guint stream)
{
  return program_eval_stream (&b->eval, rank, stream)->ends;
}

gboolean
program_eval_unresolved (const ProgramBuilder *b)
{
  return b->eval.unresolved;
}

gboolean
program_eval_overflow (const ProgramBuilder *b)
{
  return b->eval.late;
}

void
program_copy_costs (ProgramBuilder *to, const ProgramBuilder *from)
{
  g_assert (to->n_costs == 0);
  to->costs = grow (to->costs, 0, from->n_costs, &to->cap_costs, sizeof (OpCost));
  memcpy (to->costs, from->costs, from->n_costs * sizeof (OpCost));
  to->n_costs = from->n_costs;
  to->eval.costs = to->costs;
}

guint32
program_append_op (ProgramBuilder *b, guint stream, OpKind kind, guint32 cost, guint32 tag)
{
  g_assert (stream < b->n_streams && cost < b->n_costs);
  g_assert (b->open);
  StreamBuf *c = &b->cur[stream];
  if (G_UNLIKELY (c->n_ops == c->cap_ops))
    c->ops = grow (c->ops, c->n_ops, 1, &c->cap_ops, sizeof (Op));
  c->ops[c->n_ops++] = (Op){
      .kind = (guint8)kind, .group = OP_NO_GROUP, .wait0 = c->n_waits, .cost = cost, .tag = tag};
  return c->n_ops;
}

void
program_append_wait (ProgramBuilder *b, guint stream, gint peer, guint wait_stream, guint32 count)
{
  if (count == 0)
    return;
  StreamBuf *c = &b->cur[stream];
  g_assert (c->n_ops > 0 && wait_stream < b->n_streams && peer <= PROGRAM_MAX_PEERS);
  if (G_UNLIKELY (count > PROGRAM_MAX_COUNT))
    b->overflown = TRUE;
  if (G_UNLIKELY (c->n_waits == c->cap_waits))
    c->waits = grow (c->waits, c->n_waits, 1, &c->cap_waits, sizeof (Wait));
  Wait *w = &c->waits[c->n_waits++];
  w->peer = peer < 0 ? PEER_SELF : peer & PROGRAM_MAX_PEERS;
  w->stream = wait_stream & 7;
  w->count = count & PROGRAM_MAX_COUNT;
  c->ops[c->n_ops - 1].n_waits++;
}

void
program_append_group (ProgramBuilder *b, guint stream, guint slot)
{
  StreamBuf *c = &b->cur[stream];
  g_assert (c->n_ops > 0 && slot < OP_NO_GROUP);
  c->ops[c->n_ops - 1].group = (guint8)slot;
}

guint32
program_append_count (const ProgramBuilder *b, guint stream)
{
  return b->cur[stream].n_ops;
}

gboolean
program_builder_overflown (const ProgramBuilder *b)
{
  return b->overflown;
}

ProgramSet *
program_builder_finish (ProgramBuilder *b, guint n_ranks, guint n_peers, guint n_slots,
                        guint n_groups)
{
  close_program (b);
  g_assert (b->n_programs > 0);
  ProgramSet *set = g_new0 (ProgramSet, 1);
  set->n_programs = b->n_programs;
  set->n_streams = b->n_streams;
  set->n_ranks = n_ranks;
  set->n_peers = n_peers;
  set->n_slots = n_slots;
  set->n_groups = n_groups;
  set->first_op = g_steal_pointer (&b->first_op);
  set->ops = g_steal_pointer (&b->ops);
  set->waits = g_steal_pointer (&b->waits);
  set->costs = g_steal_pointer (&b->costs);
  set->n_ops = b->n_ops;
  set->n_waits = b->n_waits;
  set->n_costs = b->n_costs;
  set->stream_names = b->names;
  set->rank_program = g_new (guint32, n_ranks);
  set->rank_weight = g_new (guint32, n_ranks);
  for (guint r = 0; r < n_ranks; r++) {
    set->rank_program[r] = MIN (r, b->n_programs - 1);
    set->rank_weight[r] = 1;
  }
  set->peers = g_new0 (guint32, (gsize)n_ranks * MAX (n_peers, 1));
  set->groups = g_new (guint32, (gsize)n_ranks * MAX (n_slots, 1));
  for (gsize i = 0; i < (gsize)n_ranks * MAX (n_slots, 1); i++)
    set->groups[i] = GROUP_NONE;
  set->group_size = g_new0 (guint32, MAX (n_groups, 1));
  b->n_programs = b->n_ops = b->n_waits = b->n_costs = 0;
  b->cap_first = b->cap_ops = b->cap_waits = b->cap_costs = 0;
  return set;
}

static gboolean invalid (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
invalid (GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error_literal (error, PROGRAM_ERROR, PROGRAM_ERROR_INVALID, text);
  return FALSE;
}

static gboolean
verify_costs (const ProgramSet *set, GError **error)
{
  for (guint i = 0; i < set->n_costs; i++) {
    SimTime sum = 0;
    for (guint p = 0; p < PART_COUNT; p++) {
      if (set->costs[i].part[p] < 0)
        return invalid (error, "cost %u has a negative share", i);
      sum += set->costs[i].part[p];
    }
    if (sum != set->costs[i].duration)
      return invalid (
          error, "cost %u: shares add up to %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " ticks", i,
          sum, set->costs[i].duration);
  }
  return TRUE;
}

static gboolean
verify_wait (const ProgramSet *set, guint r, guint32 op, const Wait *wait, GError **error)
{
  guint peer = r;
  if (wait->peer != PEER_SELF) {
    if (wait->peer < 0 || (guint)wait->peer >= set->n_peers)
      return invalid (error, "rank %u, operation %u waits for peer %d of %u", r, op, wait->peer,
                      set->n_peers);
    peer = set->peers[(gsize)r * set->n_peers + (gsize)wait->peer];
  }
  if (wait->stream >= set->n_streams || peer >= set->n_ranks || wait->count == 0 ||
      wait->count > program_ops_of (set, set->rank_program[peer], wait->stream))
    return invalid (error,
                    "rank %u, operation %u waits for operation %u of stream %u of rank %u, which "
                    "does not exist",
                    r, op, wait->count, wait->stream, peer);
  return TRUE;
}

/* One stream a slot. */
static gboolean
verify_slots (const ProgramSet *set, guint p, GError **error)
{
  guint16 stream_of[OP_NO_GROUP + 1];
  memset (stream_of, 0xff, sizeof stream_of);
  for (guint s = 0; s < set->n_streams; s++)
    for (guint32 i = set->first_op[p * set->n_streams + s];
         i < set->first_op[p * set->n_streams + s + 1]; i++) {
      guint8 slot = set->ops[i].group;
      if (slot == OP_NO_GROUP)
        continue;
      if (stream_of[slot] != G_MAXUINT16 && stream_of[slot] != s)
        return invalid (error, "program %u: group slot %u is used on streams %u and %u", p, slot,
                        stream_of[slot], s);
      stream_of[slot] = (guint16)s;
    }
  return TRUE;
}

static gboolean
verify_rank (const ProgramSet *set, guint r, guint32 *members, GError **error)
{
  guint p = set->rank_program[r];
  if (p >= set->n_programs)
    return invalid (error, "rank %u runs program %u of %u", r, p, set->n_programs);
  guint32 first = set->first_op[p * set->n_streams];
  guint32 last = set->first_op[(p + 1) * set->n_streams];
  for (guint32 i = first; i < last; i++) {
    const Op *op = &set->ops[i];
    if (op->cost >= set->n_costs || (guint64)op->wait0 + op->n_waits > set->n_waits)
      return invalid (error, "operation %u is damaged", i);
    for (guint w = 0; w < op->n_waits; w++)
      if (!verify_wait (set, r, i, &set->waits[op->wait0 + w], error))
        return FALSE;
    if (op->group != OP_NO_GROUP && op->group >= set->n_slots)
      return invalid (error, "rank %u: no group slot %u", r, op->group);
  }
  for (guint s = 0; s < set->n_slots; s++) {
    guint32 g = set->groups[(gsize)r * set->n_slots + s];
    if (g == GROUP_NONE)
      continue;
    if (g >= set->n_groups)
      return invalid (error, "rank %u: no group %u", r, g);
    for (guint k = 0; k < s; k++)
      if (set->groups[(gsize)r * set->n_slots + k] == g)
        return invalid (error, "rank %u: group %u is in slots %u and %u", r, g, k, s);
    members[g]++;
  }
  return TRUE;
}

gboolean
program_verify (const ProgramSet *set, GError **error)
{
  if (!verify_costs (set, error))
    return FALSE;
  for (guint p = 0; p < set->n_programs; p++)
    if (!verify_slots (set, p, error))
      return FALSE;
  g_autofree guint32 *members = g_new0 (guint32, MAX (set->n_groups, 1));
  for (guint r = 0; r < set->n_ranks; r++)
    if (!verify_rank (set, r, members, error))
      return FALSE;
  for (guint g = 0; g < set->n_groups; g++)
    if (members[g] != set->group_size[g])
      return invalid (error, "group %u has %u members, not %u", g, members[g], set->group_size[g]);
  return TRUE;
}
