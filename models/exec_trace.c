#include "exec.h"

static const char *const tag_names[16] = {"op",        "F",           "B",
                                          "I",         "W",           "send act",
                                          "send grad", "grad reduce", "param gather",
                                          "optimizer", "grad norm",   "embed grad",
                                          "host",      "data",        "kernel",
                                          "?"};

char *
op_tag_name (guint32 tag)
{
  guint what = OP_TAG_WHAT (tag);
  if (what == TAG_FORWARD || what == TAG_BACKWARD || what == TAG_INPUT_GRAD ||
      what == TAG_WEIGHT_GRAD || what == TAG_SEND_ACT || what == TAG_SEND_GRAD)
    return g_strdup_printf ("%s stage %u micro-batch %u", tag_names[what], OP_TAG_STAGE (tag),
                            OP_TAG_MB (tag));
  return g_strdup (tag_names[what]);
}

static void
trace_stream (const ProgramSet *set, const ExecResult *res, SimTrace *trace, guint rank,
              guint stream)
{
  guint p = set->rank_program[rank];
  guint n = program_ops_of (set, p, stream);
  if (n == 0)
    return;
  g_autofree char *process = g_strdup_printf ("stage %u (x%u GPUs)", rank, set->rank_weight[rank]);
  guint32 track = trace_track (trace, rank, process, stream, set->stream_names[stream]);
  for (guint i = 0; i < n; i++) {
    const Op *op = &set->ops[set->first_op[p * set->n_streams + stream] + i];
    SimTime d = set->costs[op->cost].duration;
    if (d == 0)
      continue;
    SimTime end = exec_op_end (set, res, rank, stream, i);
    g_autofree char *name = op_tag_name (op->tag);
    trace_span (trace, track, name, tag_names[OP_TAG_WHAT (op->tag)], end - d, end);
  }
}

void
exec_trace (const ProgramSet *set, const ExecResult *res, SimTrace *trace, guint first, guint last)
{
  for (guint r = first; r <= last && r < set->n_ranks; r++)
    if (trace_wants_rank (trace, r))
      for (guint s = 0; s < set->n_streams; s++)
        trace_stream (set, res, trace, r, s);
}
