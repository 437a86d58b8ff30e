/* Logs of nccl-tests. The header names ranks, hosts and devices; what it leaves open (the
 * operation, the number of ranks) follows from the ratio of bus to algorithm bandwidth. */
#include "coll.h"
#include "fabric.h"
#include "fit_samples.h"

#include <math.h>
#include <string.h>

typedef struct {
  char *device, *other; /* other: of a rank on another kind of device, or NULL */
  GPtrArray *hosts;     /* distinct */
  int ranks, op, version;
  guint time_col;    /* of a row, from 0: versions and collectives differ in what is before it */
  gboolean no_redop; /* the table has no column of the reduction */
  gboolean no_place; /* a collective that the simulator does not know */
  gboolean failed;   /* results were wrong */
  guint runs;        /* how many have ended */
} Header;

static void
header_clear (Header *h)
{
  g_free (h->device);
  g_free (h->other);
  g_ptr_array_unref (h->hosts);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Header, header_clear)

/* "#  Rank  0 Group  0 Pid 204199 on  node000 device  0 [0009:01:00] NVIDIA GH200 120GB" */
static gboolean
has_host (const Header *h, const char *host)
{
  for (guint i = 0; i < h->hosts->len; i++)
    if (strcmp (h->hosts->pdata[i], host) == 0)
      return TRUE;
  return FALSE;
}

static void
header_rank (Header *h, const char *line)
{
  const char *on = strstr (line, " on "), *dev = strstr (line, " device "), *at;
  if (on == NULL || dev == NULL || dev < on)
    return;
  g_autofree char *host = g_strstrip (g_strndup (on + 4, (gsize)(dev - on - 4)));
  h->ranks++;
  if (!has_host (h, host))
    g_ptr_array_add (h->hosts, g_steal_pointer (&host));
  at = strchr (dev, ']');
  if (at == NULL)
    return;
  g_autofree char *name = g_strstrip (g_strdup (at + 1));
  if (h->device == NULL)
    h->device = g_steal_pointer (&name);
  else if (h->other == NULL && strcmp (h->device, name) != 0)
    h->other = g_steal_pointer (&name);
}

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

/* "#  size  count  type  redop  root  time  algbw  busbw …": a row has a field for each. */
static void
header_columns (Header *h, const char *line)
{
  g_auto (GStrv) f = g_regex_split_simple ("\\s+", strstr (line, "size "), 0, 0);
  for (guint i = 0; f[i] != NULL; i++)
    if (strcmp (f[i], "time") == 0) {
      h->time_col = i;
      break;
    }
  h->no_redop = !g_strv_contains ((const char *const *)f, "redop");
}

static void
header_line (Header *h, const char *line)
{
  const char *version = strstr (line, "NCCL version ");
  if (strstr (line, "Rank") != NULL && strstr (line, " Pid ") != NULL)
    header_rank (h, line);
  if (version != NULL)
    h->version = nccl_version_parse (version + strlen ("NCCL version "));
  if (h->op < 0 && strstr (line, "_perf") != NULL) {
    h->op = op_named_in (line);
    h->no_place |= h->op < 0;
  }
  if (strstr (line, " size ") != NULL && strstr (line, " algbw ") != NULL)
    header_columns (h, line);
  h->failed |= strstr (line, "Out of bounds values") != NULL && strstr (line, "FAILED") != NULL;
  h->runs += strstr (line, "Avg bus bandwidth") != NULL;
}

/* A row of numbers: size count type redop root time algbw busbw … ; FALSE when it is none. */
static gboolean
row_parse (const Header *h, const char *line, double *bytes, double *us, double *algbw,
           double *busbw, char *redop)
{
  g_auto (GStrv) f = g_regex_split_simple ("\\s+", line, 0, 0);
  guint n = g_strv_length (f), k = n > 0 && *f[0] == '\0' ? 1 : 0;
  if (k < n && g_str_has_suffix (f[k], ":")) /* the tag of a launcher: "0:" */
    k++;
  guint at = k + h->time_col;
  if (n < at + 3 || !g_ascii_isdigit (*f[k]) || !g_ascii_isdigit (*f[k + 1]))
    return FALSE;
  *bytes = g_ascii_strtod (f[k], NULL);
  g_strlcpy (redop, h->no_redop ? "none" : f[k + 3], 16);
  *us = g_ascii_strtod (f[at], NULL);
  *algbw = g_ascii_strtod (f[at + 1], NULL);
  *busbw = g_ascii_strtod (f[at + 2], NULL);
  return TRUE;
}

/* The ratio of bus to algorithm bandwidth is that of the operation over so many ranks. It is read
 * off the fastest row, which has most digits; a slow one tells too little. */
static gboolean
ratio_fits (const SampleReader *r, const Header *h, double algbw, double ratio, GError **error)
{
  double want = coll_bus_factor ((CollOp)h->op, h->ranks);
  if (algbw < 1 || fabs (ratio / want - 1) < 0.03)
    return TRUE;
  return sample_fail (r, 0, SAMPLES_ERROR_VALUE, error,
                      "busbw over algbw is %.3f, where %s over %d ranks has %.3f (is the list of "
                      "ranks whole?)",
                      ratio, coll_op_names[h->op], h->ranks, want);
}

static gboolean
settle_shape (SampleReader *r, Header *h, double ratio, const char *redop, GError **error)
{
  gboolean twice = ratio > 1.01;
  if (h->no_place)
    return sample_fail (r, 0, SAMPLES_ERROR_VALUE, error,
                        "times a collective that the simulator does not know (allowed: "
                        "all_reduce, all_gather, reduce_scatter, broadcast, alltoall, sendrecv)");
  if (h->op < 0)
    h->op = op_named_in (r->label);
  if (h->op < 0)
    h->op = twice                                                  ? (int)COLL_ALL_REDUCE
            : strcmp (redop, "sum") == 0 && ratio > 0 && ratio < 1 ? (int)COLL_REDUCE_SCATTER
                                                                   : -1;
  if (h->op < 0)
    return sample_fail (r, 0, SAMPLES_ERROR_VALUE, error,
                        "does not say which collective it timed (allowed: a header that names "
                        "X_perf, or the name in the file's name)");
  if (h->ranks == 0 && ratio > 0)
    h->ranks = (int)(twice ? 2 / (2 - ratio) + 0.5 : 1 / (1 - ratio) + 0.5);
  if (h->ranks < 2 || h->ranks > 1 << 20)
    return sample_fail (r, 0, SAMPLES_ERROR_VALUE, error,
                        "does not say how many ranks took part (allowed: the list of ranks, or "
                        "rows whose busbw and algbw tell it)");
  if (h->hosts->len > 0)
    return TRUE;
  int per_node = r->options->ranks_per_node > 0 ? r->options->ranks_per_node : h->ranks;
  for (int i = 0; i < h->ranks / per_node; i++)
    g_ptr_array_add (h->hosts, g_strdup_printf ("host %d", i));
  return TRUE;
}

/* One run to its end, on one kind of device, with results that were right. */
static gboolean
whole (const SampleReader *r, const Header *h, GError **error)
{
  if (h->runs == 0)
    return sample_fail (r, 0, SAMPLES_ERROR_CUT, error,
                        "the log is cut: it has no line \"Avg bus bandwidth\" at the end");
  if (h->runs > 1)
    return sample_fail (r, 0, SAMPLES_ERROR_MIXED, error,
                        "%u runs in one log (allowed: one a file, as their header is that of all)",
                        h->runs);
  if (h->failed)
    return sample_fail (r, 0, SAMPLES_ERROR_VALUE, error,
                        "the results of the run were wrong (\"Out of bounds values\")");
  if (h->other != NULL)
    return sample_fail (r, 0, SAMPLES_ERROR_MIXED, error,
                        "ranks on two kinds of device (found %s, %s; allowed: one)", h->device,
                        h->other);
  return TRUE;
}

gboolean
samples_read_nccl (SampleReader *r, const char *text, GError **error)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  g_auto (Header) h = {.hosts = g_ptr_array_new_with_free_func (g_free), .op = -1, .time_col = 5};
  double best = 0, ratio = 0;
  char redop[16] = "";
  double bytes, us, algbw, busbw;
  for (guint i = 0; lines[i] != NULL; i++) {
    header_line (&h, lines[i]);
    if (row_parse (&h, lines[i], &bytes, &us, &algbw, &busbw, redop) && algbw > best) {
      best = algbw; /* the row with most digits */
      ratio = busbw / algbw;
    }
  }
  if (!whole (r, &h, error))
    return FALSE;
  if (!settle_shape (r, &h, ratio, redop, error) || !ratio_fits (r, &h, best, ratio, error))
    return FALSE;
  const char *device = h.device != NULL && *h.device != '\0' ? h.device : "unnamed";
  int nodes = (int)h.hosts->len;
  if (h.ranks % nodes != 0)
    return sample_fail (r, 0, SAMPLES_ERROR_VALUE, error, "%d ranks do not divide over %d hosts",
                        h.ranks, nodes);
  for (guint i = 0; lines[i] != NULL; i++) {
    if (!row_parse (&h, lines[i], &bytes, &us, &algbw, &busbw, redop) || !(bytes > 0) ||
        !sample_device_wanted (r, device))
      continue;
    Sample s = {.kind = SAMPLE_COLL, .line = i + 1, .time_s = us * 1e-6};
    s.coll.op = (CollOp)h.op;
    s.coll.group = (CollGroup){h.ranks, h.ranks / nodes, nodes, 1, {0}};
    s.coll.how = (CollChoice){ALGO_AUTO, PROTO_AUTO};
    s.coll.bytes = bytes;
    s.coll.version = h.version;
    if (!sample_add (r, &s, device, error))
      return FALSE;
  }
  return TRUE;
}
