/* Logs of nccl-tests as samples. import_nccl_tests.c reads them; here is what a fit asks of them
 * beside: one whole run with right results, on one kind of device, whose ratio of bus to algorithm
 * bandwidth is that of its operation over its ranks. */
#include <math.h>
#include <string.h>

#include "coll.h"
#include "fabric.h"
#include "fit_samples.h"
#include "import_topo.h"

static int
op_named_in (const char *text)
{
  static const struct {
    const char *part;
    CollOp op;
  } words[] = {{"all_reduce", COLL_ALL_REDUCE},
               {"allreduce", COLL_ALL_REDUCE},
               {"reduce_scatter", COLL_REDUCE_SCATTER},
               {"reducescatter", COLL_REDUCE_SCATTER},
               {"all_gather", COLL_ALL_GATHER},
               {"allgather", COLL_ALL_GATHER},
               {"alltoall", COLL_ALLTOALL},
               {"broadcast", COLL_BROADCAST},
               {"sendrecv", COLL_SENDRECV}};
  g_autofree char *low = g_ascii_strdown (text, -1);
  for (gsize i = 0; i < G_N_ELEMENTS (words); i++)
    if (strstr (low, words[i].part) != NULL)
      return (int)words[i].op;
  return -1;
}

/* The row with most digits. */
static const CollTableRow *
fastest_row (const CollTable *t)
{
  const CollTableRow *best = NULL;
  for (guint i = 0; i < t->rows->len; i++) {
    const CollTableRow *row = &g_array_index (t->rows, CollTableRow, i);
    if (row->time_us > 0 && (best == NULL || row->algbw_GBps > best->algbw_GBps))
      best = row;
  }
  return best;
}

/* The ratio of bus to algorithm bandwidth is that of the operation over so many ranks. It is read
 * off the fastest row, which has most digits; a slow one tells too little. */
static gboolean
ratio_fits (const SampleReader *r, const CollTable *t, const CollTableRow *best, GError **error)
{
  double want = coll_bus_factor ((CollOp)t->op, t->ranks);
  if (best == NULL || best->algbw_GBps < 1)
    return TRUE;
  double ratio = best->busbw_GBps / best->algbw_GBps;
  if (fabs (ratio / want - 1) < 0.03)
    return TRUE;
  return sample_fail (r, 0, SAMPLES_ERROR_VALUE, error,
                      "busbw over algbw is %.3f, where %s over %d ranks has %.3f (is the list of "
                      "ranks whole?)",
                      ratio, coll_op_names[t->op], t->ranks, want);
}

/* Operation, ranks and nodes, where the log itself does not tell: by the file's name, the ratio of
 * the bandwidths, the user. */
static gboolean
settle_shape (SampleReader *r, CollTable *t, const CollTableRow *best, GError **error)
{
  double ratio = best != NULL && best->algbw_GBps > 0 ? best->busbw_GBps / best->algbw_GBps : 0;
  if (t->unknown_op)
    return sample_fail (r, 0, SAMPLES_ERROR_VALUE, error,
                        "times a collective that the simulator does not know (allowed: "
                        "all_reduce, all_gather, reduce_scatter, broadcast, alltoall, sendrecv)");
  if (t->op < 0)
    t->op = op_named_in (r->label);
  if (t->op < 0)
    return sample_fail (r, 0, SAMPLES_ERROR_VALUE, error,
                        "does not say which collective it timed (allowed: a header that names "
                        "X_perf, or the name in the file's name)");
  if (t->ranks == 0 && ratio > 0)
    t->ranks = (int)(ratio > 1.01 ? 2 / (2 - ratio) + 0.5 : 1 / (1 - ratio) + 0.5);
  if (t->ranks < 2 || t->ranks > 1 << 20)
    return sample_fail (r, 0, SAMPLES_ERROR_VALUE, error,
                        "does not say how many ranks took part (allowed: the list of ranks, or "
                        "rows whose busbw and algbw tell it)");
  const int per_node = r->options->ranks_per_node;
  if (t->nodes == 0)
    t->nodes = per_node > 0 ? MAX (t->ranks / per_node, 1) : 1;
  if (t->ranks % t->nodes != 0)
    return sample_fail (r, 0, SAMPLES_ERROR_VALUE, error, "%d ranks do not divide over %d hosts",
                        t->ranks, t->nodes);
  return TRUE;
}

/* One run to its end, on one kind of device, with results that were right. */
static gboolean
whole (const SampleReader *r, const CollTable *t, GError **error)
{
  if (t->runs == 0)
    return sample_fail (r, 0, SAMPLES_ERROR_CUT, error,
                        "the log is cut: it has no line \"Avg bus bandwidth\" at the end");
  if (t->runs > 1)
    return sample_fail (r, 0, SAMPLES_ERROR_MIXED, error,
                        "%u runs in one log (allowed: one a file, as their header is that of all)",
                        t->runs);
  if (t->wrong)
    return sample_fail (r, 0, SAMPLES_ERROR_VALUE, error,
                        "the results of the run were wrong (\"Out of bounds values\")");
  if (t->cut > 0)
    return sample_fail (r, t->cut_line, SAMPLES_ERROR_VALUE, error,
                        "the row is cut off, or its bytes, time and algbw contradict each other "
                        "(%u such rows)",
                        t->cut);
  if (t->other != NULL)
    return sample_fail (r, 0, SAMPLES_ERROR_MIXED, error,
                        "ranks on two kinds of device (found %s, %s; allowed: one)", t->gpu,
                        t->other);
  return TRUE;
}

gboolean
samples_read_nccl (SampleReader *r, const char *text, GError **error)
{
  g_autoptr (GError) why = NULL;
  g_autoptr (CollTable) t = import_nccl_tests_text (r->path, text, strlen (text), &why);
  if (t == NULL)
    return sample_fail (
        r, 0, SAMPLES_ERROR_CUT, error,
        "the log is cut: it has no whole row of size, count, type, time, algbw, busbw");
  const CollTableRow *best = fastest_row (t);
  if (!whole (r, t, error) || !settle_shape (r, t, best, error) || !ratio_fits (r, t, best, error))
    return FALSE;
  const char *device = t->gpu != NULL && *t->gpu != '\0' ? t->gpu : "unnamed";
  for (guint i = 0; i < t->rows->len; i++) {
    const CollTableRow *row = &g_array_index (t->rows, CollTableRow, i);
    if (!(row->time_us > 0) || !sample_device_wanted (r, device))
      continue;
    Sample s = {.kind = SAMPLE_COLL, .line = row->line, .time_s = row->time_us * 1e-6};
    s.coll.op = (CollOp)t->op;
    s.coll.group = (CollGroup){t->ranks, t->ranks / t->nodes, t->nodes, 1, {0}};
    s.coll.how = (CollChoice){ALGO_AUTO, PROTO_AUTO};
    s.coll.bytes = (double)row->bytes;
    s.coll.version = t->version != NULL ? nccl_version_parse (t->version) : 0;
    if (!sample_add (r, &s, device, error))
      return FALSE;
  }
  return TRUE;
}
