/* collective: the table that nccl-tests prints, for the fabric of a scenario, and a measured log
 * beside it, with the likely cause where it is far below. Sizes, counts, busbw and the header are
 * those of nccl-tests, so that scripts which read its output read this one. */
#include <math.h>
#include <string.h>

#include "cli.h"
#include "coll_diagnose.h"
#include "collective_topo.h"
#include "commands.h"
#include "fabric.h"
#include "import_topo.h"
#include "json_write.h"
#include "nccl_tuner.h"
#include "scenario.h"
#include "text.h"

#define MAX_SIZES 1000

typedef struct {
  char *op, *min, *max, *algo, *proto, *against, *version;
  char *topology, *fidelity, *placement, *routing;
  char **env;
  gint64 ranks;
  int per_node, jobs, channels;
  double factor;
} CollFlags;

static void
flags_clear (CollFlags *f)
{
  g_free (f->op);
  g_free (f->min);
  g_free (f->max);
  g_free (f->algo);
  g_free (f->proto);
  g_free (f->against);
  g_free (f->version);
  g_free (f->topology);
  g_free (f->fidelity);
  g_free (f->placement);
  g_free (f->routing);
  g_strfreev (f->env);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (CollFlags, flags_clear)

/* One line of the table. measured_us 0: the log has no such size. */
typedef struct {
  double bytes, time_us, algbw_GBps, busbw_GBps, measured_us, measured_busbw_GBps;
  CollChoice choice;
  int channels;
} CollLine;

typedef struct {
  Fabric *fabric;
  CollOp op;
  CollGroup group;
  CollChoice forced;
  GArray *lines;  /* CollLine */
  CollTable *log; /* NULL: none */
  double median_pct;
  guint matched;
  CollTopo *topo; /* NULL: the fabric's closed forms */
  gboolean hierarchical;
  NcclPlan plan;
  CollCause cause[CAUSE_COUNT];
  guint n_causes;
} Call;

static gboolean
usage (GError **error, const char *option, const char *found, const char *allowed)
{
  g_autofree char *shown = text_printable (found, -1, 60);
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "collective: %s (found \"%s\"; allowed: %s)",
               option, shown, allowed);
  return FALSE;
}

static int
index_of (const char *const *names, int n, const char *name)
{
  for (int i = 0; i < n; i++)
    if (g_ascii_strcasecmp (names[i], name) == 0)
      return i;
  return -1;
}

/* auto (or nothing) is -1, as in CollAlgo and CollProto. */
static gboolean
parse_name (const char *option, const char *text, const char *const *names, int n, int *out,
            GError **error)
{
  *out = -1;
  if (text == NULL || g_ascii_strcasecmp (text, "auto") == 0)
    return TRUE;
  *out = index_of (names, n, text);
  if (*out >= 0)
    return TRUE;
  g_autoptr (GString) all = g_string_new (NULL);
  for (int i = 0; i < n; i++)
    g_string_append_printf (all, "%s%s", i > 0 ? ", " : "", names[i]);
  return usage (error, option, text, all->str);
}

/* "8", "64K", "1M", "8G": powers of 1024, as nccl-tests reads them. */
static gboolean
parse_size (const char *option, const char *text, double fallback, double *out, GError **error)
{
  static const char units[] = "KMGT";
  *out = fallback;
  if (text == NULL)
    return TRUE;
  char *end = NULL;
  double v = g_ascii_strtod (text, &end);
  const char *unit = *end != '\0' ? strchr (units, g_ascii_toupper (*end)) : NULL;
  if (unit != NULL) {
    v *= pow (1024, 1 + (double)(unit - units));
    end++;
  }
  if (end == text || *end != '\0' || !isfinite (v) || v < 1 || v > 1e15)
    return usage (error, option, text, "1 to 1e15 bytes, like 8, 64K, 1M or 8G");
  *out = floor (v);
  return TRUE;
}

/* The ranks fill whole nodes unless there is one node only. */
static gboolean
set_group (Call *call, const Spec *s, const CollFlags *f, GError **error)
{
  /* A node is the scale-up domain: 72 GPUs of a rack whose servers have 4. */
  int domain = MAX ((int)MAX (1, s->cluster.gpus_per_node), call->fabric->domain_gpus);
  gint64 ranks = f->ranks > 0 ? f->ranks : s->cluster.gpus;
  g_autofree char *found = g_strdup_printf ("%" G_GINT64_FORMAT, f->ranks > 0 ? f->ranks : ranks);
  if (f->ranks < 0 || ranks < 2 || ranks > 10000000)
    return usage (error, "--ranks", found, "2 to 10000000");
  int per_node = f->per_node > 0 ? f->per_node : (int)MIN (ranks, domain);
  while (f->per_node == 0 && ranks % per_node != 0)
    per_node--;
  g_autofree char *per = g_strdup_printf ("%d", f->per_node != 0 ? f->per_node : per_node);
  g_autofree char *most =
      g_strdup_printf ("1 to %d, a divisor of the %" G_GINT64_FORMAT " ranks", domain, ranks);
  if (f->per_node < 0 || per_node > domain || ranks % per_node != 0)
    return usage (error, "--ranks-per-node", per, most);
  call->group = (CollGroup){(int)ranks, per_node, (int)(ranks / per_node), 1, {0}};
  if (call->group.nodes > 1 && !(call->fabric->nics > 0))
    return usage (error, "--ranks", found, "the ranks of one node, as the fabric has no network");
  return TRUE;
}

static gboolean
read_log (Call *call, const char *path, GError **error)
{
  if (path == NULL)
    return TRUE;
  call->log = import_nccl_tests (path, error);
  if (call->log == NULL)
    return FALSE;
  gboolean could = call->log->op == (int)call->op ||
                   (call->log->op < 0 && (call->log->could >> call->op & 1) != 0);
  if (!could)
    return usage (error, "--against: the log is of another operation", path,
                  coll_op_names[call->op]);
  if (call->log->ranks > 0 && call->log->ranks != call->group.ranks) {
    g_autofree char *found = g_strdup_printf ("%d ranks", call->log->ranks);
    g_autofree char *allowed = g_strdup_printf ("%d ranks, see --ranks", call->group.ranks);
    return usage (error, "--against: the log is of another number of ranks", found, allowed);
  }
  return TRUE;
}

static gboolean
put_line (Call *call, double bytes, double measured_us, GError **error)
{
  CollLine l = {.bytes = bytes, .choice = call->forced, .measured_us = measured_us};
  l.time_us = 1e6 * coll_time_s (call->fabric, call->op, &call->group, bytes, &l.choice);
  if (call->topo != NULL)
    l.time_us = 1e6 * coll_topo_time_s (call->topo, call->op, l.choice, bytes, error);
  if (!(l.time_us > 0))
    return FALSE;
  l.channels = call->plan.n > 0 ? nccl_plan_channels (&call->plan, l.choice, bytes, NULL) : 0;
  double factor = coll_bus_factor (call->op, call->group.ranks);
  l.algbw_GBps = bytes / l.time_us * 1e-3;
  l.busbw_GBps = l.algbw_GBps * factor;
  l.measured_busbw_GBps = measured_us > 0 ? bytes / measured_us * 1e-3 * factor : 0;
  g_array_append_val (call->lines, l);
  return TRUE;
}

static int
by_value (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void
find_causes (Call *call)
{
  g_autoptr (GArray) points = g_array_new (FALSE, FALSE, sizeof (CollPoint));
  for (guint i = 0; i < call->lines->len; i++) {
    const CollLine *l = &g_array_index (call->lines, CollLine, i);
    CollPoint p = {l->bytes, l->measured_us * 1e-6, l->time_us * 1e-6};
    g_array_append_val (points, p);
  }
  call->n_causes =
      coll_diagnose (call->fabric, call->op, &call->group,
                     (const CollPoint *)(const void *)points->data, points->len, call->cause);
}

/* The sizes of the log, so that nothing is between two points. */
static gboolean
lines_of_log (Call *call, GError **error)
{
  g_autoptr (GArray) errors = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint i = 0; i < call->log->rows->len; i++) {
    const CollTableRow *r = &g_array_index (call->log->rows, CollTableRow, i);
    double us = r->time_us > 0 ? r->time_us : r->ip_time_us;
    if (r->bytes < 1 || !(us > 0))
      continue;
    if (!put_line (call, (double)r->bytes, us, error))
      return FALSE;
    const CollLine *l = &g_array_index (call->lines, CollLine, call->lines->len - 1);
    double e = fabs (100 * (l->time_us / l->measured_us - 1));
    g_array_append_val (errors, e);
  }
  g_array_sort (errors, by_value);
  call->matched = errors->len;
  if (errors->len > 0)
    call->median_pct = (g_array_index (errors, double, (errors->len - 1) / 2) +
                        g_array_index (errors, double, errors->len / 2)) /
                       2;
  find_causes (call);
  return TRUE;
}

static gboolean
lines_of_range (Call *call, const CollFlags *f, GError **error)
{
  double min, max;
  if (!parse_size ("--min", f->min, 8, &min, error) ||
      !parse_size ("--max", f->max, 8.0 * (1 << 30), &max, error))
    return FALSE;
  if (min > max)
    return usage (error, "--min", f->min != NULL ? f->min : "8", "at most --max");
  if (!(f->factor > 1) || !isfinite (f->factor)) {
    g_autofree char *found = g_strdup_printf ("%g", f->factor);
    return usage (error, "--factor", found, "a number above 1");
  }
  for (double bytes = min; bytes <= max * (1 + 1e-12); bytes = MAX (bytes * f->factor, bytes + 1)) {
    if (call->lines->len >= MAX_SIZES)
      return usage (error, "--factor", "more than 1000 sizes", "a larger factor");
    if (!put_line (call, floor (bytes), 0, error))
      return FALSE;
  }
  return TRUE;
}

static const char *
algo_name (const Call *call, const CollLine *l)
{
  if (call->hierarchical)
    return plan_algo_names[PLAN_HIERARCHICAL];
  return l->choice.algo < 0 ? "p2p" : coll_algo_names[l->choice.algo];
}

static const char *
proto_name (const CollLine *l)
{
  return l->choice.proto < 0 ? "Simple" : coll_proto_names[l->choice.proto];
}

/* What was asked for and cannot show in the table. */
static void
put_notes (const Call *call, GString *out)
{
  const NcclEnv *e = &call->fabric->env;
  if (call->topo == NULL && (e->cross_given || e->no_pxn))
    g_string_append (out, "# NCCL_CROSS_NIC and NCCL_PXN_DISABLE say which links are used: they "
                          "count with --topology\n");
  for (guint i = 0; call->forced.algo >= 0 && i < call->lines->len; i++) {
    CollAlgo algo = g_array_index (call->lines, CollLine, i).choice.algo;
    if (algo == call->forced.algo)
      continue;
    g_string_append_printf (out, "# no %s for %s here: NCCL would stop, the table is of its next\n",
                            coll_algo_names[call->forced.algo], coll_op_names[call->op]);
    break;
  }
}

static void
put_text (const Call *call, GString *out)
{
  g_string_append_printf (
      out, "# %s on %s: %d ranks, %d in each of %d nodes, NCCL %d.%d.%d, float\n",
      coll_op_names[call->op], call->fabric->name, call->group.ranks, call->group.ranks_per_node,
      call->group.nodes, call->fabric->nccl_version / 10000, call->fabric->nccl_version / 100 % 100,
      call->fabric->nccl_version % 100);
  if (call->topo != NULL)
    g_string_append_printf (out, "# over the links of %s\n", coll_topo_name (call->topo));
  put_notes (call, out);
  g_string_append_printf (out, "#%13s %14s %12s %9s %9s  %-8s %-6s %4s%s\n", "size", "count",
                          "time", "algbw", "busbw", "algo", "proto", "chan",
                          call->log != NULL ? "    measured     busbw   error  ratio" : "");
  g_string_append_printf (out, "#%13s %14s %12s %9s %9s  %-8s %-6s %4s%s\n", "(B)", "(elements)",
                          "(us)", "(GB/s)", "(GB/s)", "", "", "",
                          call->log != NULL ? "        (us)    (GB/s)     (%)       " : "");
  double sum = 0;
  for (guint i = 0; i < call->lines->len; i++) {
    const CollLine *l = &g_array_index (call->lines, CollLine, i);
    sum += l->busbw_GBps;
    g_string_append_printf (out, "%14.0f %14.0f %12.2f %9.2f %9.2f  %-8s %-6s", l->bytes,
                            floor (l->bytes / 4), l->time_us, l->algbw_GBps, l->busbw_GBps,
                            algo_name (call, l), proto_name (l));
    if (l->channels > 0)
      g_string_append_printf (out, " %4d", l->channels);
    else
      g_string_append (out, "    -");
    if (l->measured_us > 0)
      g_string_append_printf (out, "%12.2f %9.2f %7.1f %6.3f", l->measured_us,
                              l->measured_busbw_GBps, 100 * (l->time_us / l->measured_us - 1),
                              l->time_us / l->measured_us);
    g_string_append_c (out, '\n');
  }
  g_string_append_printf (out, "# Avg bus bandwidth    : %.4g\n",
                          call->lines->len > 0 ? sum / call->lines->len : 0.0);
  if (call->log != NULL)
    g_string_append_printf (out, "# median error against %u measured sizes: %.1f %%\n",
                            call->matched, call->median_pct);
  for (guint i = 0; i < call->n_causes; i++)
    g_string_append_printf (out, "# %s %s: %s\n", i == 0 ? "likely cause:" : "or:          ",
                            coll_cause_names[call->cause[i]], coll_cause_texts[call->cause[i]]);
}

static void
put_csv (const Call *call, GString *out)
{
  g_string_append (out, "size_bytes,time_us,algbw_GBps,busbw_GBps,algo,proto,measured_us,"
                        "measured_busbw_GBps,error_pct,channels,ratio\n");
  for (guint i = 0; i < call->lines->len; i++) {
    const CollLine *l = &g_array_index (call->lines, CollLine, i);
    g_string_append_printf (out, "%.0f,%.6g,%.6g,%.6g,%s,%s", l->bytes, l->time_us, l->algbw_GBps,
                            l->busbw_GBps, algo_name (call, l), proto_name (l));
    if (l->measured_us > 0)
      g_string_append_printf (out, ",%.6g,%.6g,%.3f,%d,%.4g\n", l->measured_us,
                              l->measured_busbw_GBps, 100 * (l->time_us / l->measured_us - 1),
                              l->channels, l->time_us / l->measured_us);
    else
      g_string_append_printf (out, ",,,,%d,\n", l->channels);
  }
}

static void
put_json (const Call *call, GString *out)
{
  JsonWriter *w = json_writer_new (out, 1);
  jw_begin_object (w, NULL);
  jw_string (w, "op", coll_op_names[call->op]);
  jw_string (w, "fabric", call->fabric->name);
  jw_int (w, "ranks", call->group.ranks);
  jw_int (w, "ranks_per_node", call->group.ranks_per_node);
  jw_int (w, "nodes", call->group.nodes);
  jw_begin_array (w, "rows");
  for (guint i = 0; i < call->lines->len; i++) {
    const CollLine *l = &g_array_index (call->lines, CollLine, i);
    jw_begin_object (w, NULL);
    jw_double (w, "size_bytes", l->bytes);
    jw_double (w, "time_us", l->time_us);
    jw_double (w, "algbw_GBps", l->algbw_GBps);
    jw_double (w, "busbw_GBps", l->busbw_GBps);
    jw_string (w, "algo", algo_name (call, l));
    jw_string (w, "proto", proto_name (l));
    if (l->channels > 0)
      jw_int (w, "channels", l->channels);
    if (l->measured_us > 0) {
      jw_double (w, "measured_us", l->measured_us);
      jw_double (w, "error_pct", 100 * (l->time_us / l->measured_us - 1));
      jw_double (w, "ratio", l->time_us / l->measured_us);
    }
    jw_end_object (w);
  }
  jw_end_array (w);
  if (call->log != NULL) {
    jw_int (w, "measured_sizes", call->matched);
    jw_double (w, "median_abs_error_pct", call->median_pct);
    jw_begin_array (w, "causes");
    for (guint i = 0; i < call->n_causes; i++) {
      jw_begin_object (w, NULL);
      jw_string (w, "name", coll_cause_names[call->cause[i]]);
      jw_string (w, "text", coll_cause_texts[call->cause[i]]);
      jw_end_object (w);
    }
    jw_end_array (w);
  }
  jw_end_object (w);
  g_string_append_c (out, '\n');
  json_writer_free (w);
}

/* The scenario's fabric is its own: what is set here is for this call. */
static gboolean
set_nccl (Call *call, const CollFlags *f, GError **error)
{
  Fabric *fabric = call->fabric;
  int version = f->version != NULL ? nccl_version_parse (f->version) : fabric->nccl_version;
  if (f->version != NULL && version < 20800)
    return usage (error, "--nccl-version", f->version, "2.8 and later, such as 2.27.7");
  fabric->nccl_version = version;
  for (gsize i = 0; f->env != NULL && f->env[i] != NULL; i++) {
    const char *equals = strchr (f->env[i], '=');
    if (equals == NULL)
      return usage (error, "--env", f->env[i], "NCCL_NAME=VALUE");
    g_autofree char *name = g_strndup (f->env[i], (gsize)(equals - f->env[i]));
    g_autoptr (GError) why = NULL;
    if (!nccl_env_set (&fabric->env, name, equals + 1, &why)) {
      g_autofree char *shown = text_printable (why->message, -1, 600);
      g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "collective: --env: %s", shown);
      return FALSE;
    }
  }
  fabric_changed (fabric);
  return TRUE;
}

static gboolean
set_topo (Call *call, const Spec *s, const CollFlags *f, GError **error)
{
  if (f->topology == NULL) {
    const char *needs[] = {f->fidelity, f->placement, f->routing};
    for (gsize i = 0; i < G_N_ELEMENTS (needs); i++)
      if (needs[i] != NULL)
        return usage (error, "--fidelity, --placement, --routing", needs[i],
                      "with --topology NAME|FILE only");
    if (f->jobs != 0 || f->channels != 0)
      return usage (error, "--jobs, --channels", f->jobs != 0 ? "jobs" : "channels",
                    "with --topology NAME|FILE only");
    return TRUE;
  }
  CollTopoSpec t = {.topology = f->topology,
                    .fidelity = f->fidelity,
                    .placement = f->placement,
                    .routing = f->routing,
                    .jobs = f->jobs,
                    .channels = f->channels,
                    .hierarchical = call->hierarchical,
                    .seed = s->run.seed};
  call->topo = coll_topo_new (&t, call->fabric, &call->group, error);
  return call->topo != NULL;
}

static gboolean
fill (Call *call, const Spec *s, const CollFlags *f, GError **error)
{
  int algo = -1, proto, op;
  call->hierarchical = f->algo != NULL && g_ascii_strcasecmp (f->algo, "hierarchical") == 0;
  if (call->hierarchical && f->topology == NULL)
    return usage (error, "--algo", f->algo, "hierarchical with --topology only");
  if (!parse_name ("--op", f->op != NULL ? f->op : "all_reduce", coll_op_names, COLL_COUNT, &op,
                   error) ||
      !parse_name ("--algo", call->hierarchical ? NULL : f->algo, coll_algo_names, ALGO_COUNT,
                   &algo, error) ||
      !parse_name ("--proto", f->proto, coll_proto_names, PROTO_COUNT, &proto, error))
    return FALSE;
  if (op < 0)
    return usage (error, "--op", f->op, "a collective, like all_reduce");
  call->op = (CollOp)op;
  call->forced = (CollChoice){(CollAlgo)algo, (CollProto)proto};
  if (!set_group (call, s, f, error) || !set_nccl (call, f, error) ||
      !read_log (call, f->against, error) || !set_topo (call, s, f, error))
    return FALSE;
  nccl_plan_init (&call->plan, call->fabric, call->op, &call->group);
  return call->log != NULL ? lines_of_log (call, error) : lines_of_range (call, f, error);
}

static gboolean
run (const char *path, const CollFlags *f, const CliCommon *c, GError **error)
{
  Spec s;
  if (!scenario_load (path, (const char *const *)c->sets, &s, error))
    return FALSE;
  g_autoptr (GString) out = g_string_new (NULL);
  Call call = {.fabric = s.fabric, .lines = g_array_new (FALSE, FALSE, sizeof (CollLine))};
  gboolean ok = fill (&call, &s, f, error);
  if (ok)
    (c->format == FORMAT_JSON  ? put_json
     : c->format == FORMAT_CSV ? put_csv
                               : put_text) (&call, out);
  g_array_unref (call.lines);
  coll_table_free (call.log);
  coll_topo_free (call.topo);
  spec_clear (&s);
  return ok && cli_output (c, out->str, (gssize)out->len, error);
}

int
cmd_collective_run (int argc, char **argv)
{
  g_auto (CliCommon) c = {0};
  g_auto (CollFlags) f = {.factor = 2};
  const GOptionEntry entries[] = {
      {"op", 0, 0, G_OPTION_ARG_STRING, &f.op,
       "all_reduce (default), all_gather, reduce_scatter, broadcast, alltoall, sendrecv", "OP"},
      {"ranks", 0, 0, G_OPTION_ARG_INT64, &f.ranks, "Ranks (default: the cluster's GPUs)", "N"},
      {"ranks-per-node", 0, 0, G_OPTION_ARG_INT, &f.per_node,
       "Ranks of a node (default: all its GPUs)", "N"},
      {"min", 0, 0, G_OPTION_ARG_STRING, &f.min, "Smallest size (default 8)", "BYTES"},
      {"max", 0, 0, G_OPTION_ARG_STRING, &f.max, "Largest size (default 8G)", "BYTES"},
      {"factor", 0, 0, G_OPTION_ARG_DOUBLE, &f.factor, "From size to size (default 2)", "X"},
      {"nccl-version", 0, 0, G_OPTION_ARG_STRING, &f.version, "NCCL's version (the fabric's)",
       "2.X.Y"},
      {"env", 0, 0, G_OPTION_ARG_STRING_ARRAY, &f.env,
       "A variable of NCCL, as NCCL_ALGO=Ring; may be repeated", "NAME=VALUE"},
      {"topology", 0, 0, G_OPTION_ARG_STRING, &f.topology,
       "Links that the ranks share, a shipped topology or a file", "NAME"},
      {"fidelity", 0, 0, G_OPTION_ARG_STRING, &f.fidelity,
       "On a topology: analytic, flow (default), step", "LEVEL"},
      {"placement", 0, 0, G_OPTION_ARG_STRING, &f.placement,
       "block (default), rail, scattered, or a file of hosts", "HOW"},
      {"routing", 0, 0, G_OPTION_ARG_STRING, &f.routing, "adaptive (default), ecmp, static", "HOW"},
      {"jobs", 0, 0, G_OPTION_ARG_INT, &f.jobs, "Equal groups at the same time (1)", "N"},
      {"channels", 0, 0, G_OPTION_ARG_INT, &f.channels, "Rings or trees (one a NIC)", "N"},
      {"algo", 0, 0, G_OPTION_ARG_STRING, &f.algo, "Force an algorithm, as NCCL_ALGO", "NAME"},
      {"proto", 0, 0, G_OPTION_ARG_STRING, &f.proto, "Force a protocol, as NCCL_PROTO", "NAME"},
      {"against", 0, 0, G_OPTION_ARG_FILENAME, &f.against,
       "An nccl-tests log: its sizes, its times beside the predicted ones", "LOG"},
      {NULL, 0, 0, G_OPTION_ARG_NONE, NULL, NULL, NULL}};
  GError *error = NULL;
  const CliHelp help = {"SCENARIO.json",
                        "Prints the nccl-tests table of this cluster: time, algbw, busbw, "
                        "algorithm and protocol by size.",
                        "clustersim collective llama-3.1-405b-16k --op all_gather --ranks 64 --min "
                        "1M",
                        1,
                        1,
                        FALSE};
  if (!cli_parse (&argc, &argv, &help, entries, &c, &error))
    return cli_fail (error);
  return run (argv[1], &f, &c, &error) ? CLI_DONE : cli_fail (error);
}
