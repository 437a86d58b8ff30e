/* Failure profiles, and dated traces of failures. */
#include "read_job.h"

#include "csv.h"
#include "paths.h"
#include "text.h"

#include <math.h>
#include <string.h>

static const char *const profile_keys[] = {"format", "name",        "why",
                                           "source", "date",        "rates_per_1000_node_days",
                                           "causes", "process",     "frailty",
                                           "bursts", "epochs",      "early_life",
                                           "scale",  "rates_count", "nodes_per_switch",
                                           "trace",  "mtbf_s",      NULL};
static const char *const cause_keys[] = {
    "detection_s", "takes_node", "keeps_memory", "repair", "slowdown", "process", NULL};
static const char *const process_keys[] = {"distribution", "shape", "of", "mean_s",
                                           "mean_days",    "start", NULL};

/* ---- causes and their rates ---- */

static int
cause_index (const char *name)
{
  for (guint i = 0; i < FAULT_COUNT; i++)
    if (strcmp (fault_names[i], name) == 0)
      return (int)i;
  return -1;
}

static gboolean
read_rates (const JsonRef *obj, FaultProfile *p, GPtrArray *inputs, GError **error)
{
  JsonRef rates;
  if (!json_has (obj, "rates_per_1000_node_days"))
    return TRUE;
  if (!json_get_object (obj, "rates_per_1000_node_days", &rates, error) ||
      !json_check_keys (&rates, fault_names, error))
    return FALSE;
  for (guint i = 0; i < FAULT_COUNT; i++)
    if (!job_number (&rates, fault_names[i], 0.0, 1e6, &p->cause[i].rate, inputs, NULL, error))
      return FALSE;
  return TRUE;
}

/* A process of its own, for one cause. */
static gboolean
read_own_process (const JsonRef *obj, FaultCauseSpec *c, GPtrArray *inputs, GError **error)
{
  static const char *const starts[] = {"new", "aged", NULL};
  JsonRef ref;
  int unit = FAULT_PER_NODE, start = 0;
  if (!json_has (obj, "process"))
    return TRUE;
  if (!json_get_object (obj, "process", &ref, error) ||
      !json_check_keys (&ref, process_keys, error) ||
      !json_opt_enum (&ref, "of", fault_unit_names, &unit, error) ||
      !json_opt_enum (&ref, "start", starts, &start, error) ||
      !job_dist (obj, "process", &c->own_gap, inputs, error))
    return FALSE;
  c->own_process = TRUE;
  c->own_unit = (FaultUnit)unit;
  c->own_aged = start == 1;
  return TRUE;
}

static gboolean
read_cause (const JsonRef *ref, FaultCauseSpec *c, GPtrArray *inputs, GError **error)
{
  return json_check_keys (ref, cause_keys, error) &&
         job_dist (ref, "detection_s", &c->detect, inputs, error) &&
         job_number (ref, "takes_node", 0.0, 1.0, &c->takes_node, inputs, NULL, error) &&
         json_opt_bool (ref, "keeps_memory", &c->keeps_memory, error) &&
         job_dist (ref, "repair", &c->repair, inputs, error) &&
         job_number (ref, "slowdown", 0.0, 1000.0, &c->slowdown, inputs, NULL, error) &&
         read_own_process (ref, c, inputs, error);
}

static gboolean
read_causes (const JsonRef *obj, FaultProfile *p, GPtrArray *inputs, GError **error)
{
  JsonRef causes;
  if (!json_has (obj, "causes"))
    return TRUE;
  if (!json_get_object (obj, "causes", &causes, error) ||
      !json_check_keys (&causes, fault_names, error))
    return FALSE;
  for (int i = 0; i < json_len (&causes); i++) {
    JsonRef one = json_item (&causes, i);
    int k = cause_index (one.key);
    if (k < 0)
      return FALSE;
    /* What never strikes is no input of the result. */
    gboolean strikes =
        p->cause[k].rate > 0.0 || json_has (&one, "process") || json_has (obj, "trace");
    if (!read_cause (&one, &p->cause[k], strikes ? inputs : NULL, error))
      return FALSE;
  }
  return TRUE;
}

/* ---- clustering ---- */

static gboolean
read_process (const JsonRef *obj, FaultProfile *p, GPtrArray *inputs, GError **error)
{
  static const char *const of[] = {"job", "node", NULL};
  JsonRef ref;
  int kind = DIST_EXPONENTIAL, unit = 0;
  if (!json_has (obj, "process"))
    return TRUE;
  if (!json_get_object (obj, "process", &ref, error) ||
      !json_check_keys (&ref, process_keys, error) ||
      !json_get_enum (&ref, "distribution", dist_names, &kind, error) ||
      !json_opt_enum (&ref, "of", of, &unit, error) ||
      !job_number (&ref, "shape", 1e-3, 1e3, &p->process_shape, inputs, NULL, error))
    return FALSE;
  p->process = (DistKind)kind;
  p->process_unit = unit == 0 ? FAULT_PER_JOB : FAULT_PER_NODE;
  return TRUE;
}

/* One number of an optional object. */
typedef struct {
  const char *key;
  double min, max, unit;
  double *out;
} Field;

static gboolean
read_fields (const JsonRef *obj, const char *key, const Field *fields, guint n, const char *extra,
             GPtrArray *inputs, GError **error)
{
  JsonRef ref;
  if (!json_has (obj, key))
    return TRUE;
  const char *allowed[12] = {NULL};
  for (guint i = 0; i < n; i++)
    allowed[i] = fields[i].key;
  allowed[n] = extra;
  if (!json_get_object (obj, key, &ref, error) || !json_check_keys (&ref, allowed, error))
    return FALSE;
  for (guint i = 0; i < n; i++) {
    gboolean found;
    if (!job_number (&ref, fields[i].key, fields[i].min, fields[i].max, fields[i].out, inputs,
                     &found, error))
      return FALSE;
    if (found)
      *fields[i].out *= fields[i].unit;
  }
  return TRUE;
}

static gboolean
read_clustering (const JsonRef *obj, FaultProfile *p, GPtrArray *inputs, GError **error)
{
  static const char *const counts[] = {"events", "nodes", NULL};
  double per_switch = p->nodes_per_switch;
  int count = p->rates_count_nodes;
  JsonRef bursts;
  const Field frailty[] = {{"shape", 0, 1e6, 1, &p->frailty_shape},
                           {"lemon_fraction", 0, 0.999, 1, &p->lemon_fraction},
                           {"lemon_factor", 0, 1e6, 1, &p->lemon_factor}};
  const Field burst[] = {{"probability", 0, 1, 1, &p->burst_probability},
                         {"extra_nodes", 1, 1e5, 1, &p->burst_extra}};
  const Field epochs[] = {{"days", 1e-3, 1e5, 86400, &p->epoch_s},
                          {"rate_shape", 0, 1e6, 1, &p->epoch_rate_shape},
                          {"repair_shape", 0, 1e6, 1, &p->epoch_repair_shape}};
  const Field early[] = {{"factor", 0, 1e4, 1, &p->early_factor},
                         {"decay_days", 1e-3, 1e5, 86400, &p->early_decay_s}};
  const Field scale[] = {{"nodes", 1, 1e9, 1, &p->scale_nodes},
                         {"exponent", -5, 5, 1, &p->scale_exponent}};
  if (!read_fields (obj, "frailty", frailty, 3, NULL, inputs, error) ||
      !read_fields (obj, "bursts", burst, 2, "shared_repair", inputs, error) ||
      !read_fields (obj, "epochs", epochs, 3, NULL, inputs, error) ||
      !read_fields (obj, "early_life", early, 2, NULL, inputs, error) ||
      !read_fields (obj, "scale", scale, 2, NULL, inputs, error) ||
      !json_opt_enum (obj, "rates_count", counts, &count, error) ||
      !job_number (obj, "nodes_per_switch", 1, 1e6, &per_switch, inputs, NULL, error))
    return FALSE;
  if (json_has (obj, "bursts") &&
      (!json_get_object (obj, "bursts", &bursts, error) ||
       !json_opt_bool (&bursts, "shared_repair", &p->burst_shares_repair, error)))
    return FALSE;
  p->nodes_per_switch = (guint)per_switch;
  p->rates_count_nodes = count == 1;
  return TRUE;
}

/* ---- traces ---- */

FaultCause
fault_cause_of (const char *text)
{
  /* In this order: "GPU DBE" is memory, "NCCL timeout" a hang, "slow gpu" a straggler. */
  static const struct {
    const char *word;
    FaultCause cause;
  } words[] = {{"silent", FAULT_SDC},
               {"sdc", FAULT_SDC},
               {"slow", FAULT_STRAGGLER},
               {"straggler", FAULT_STRAGGLER},
               {"hbm", FAULT_HBM},
               {"dbe", FAULT_HBM},
               {"ecc", FAULT_HBM},
               {"hang", FAULT_HANG},
               {"deadlock", FAULT_HANG},
               {"watchdog", FAULT_HANG},
               {"timeout", FAULT_HANG},
               {"gpu", FAULT_GPU},
               {"xid", FAULT_GPU},
               {"cuda", FAULT_GPU},
               {"nvlink", FAULT_GPU},
               {"cable", FAULT_CABLE},
               {"link", FAULT_CABLE},
               {"optic", FAULT_CABLE},
               {"nic", FAULT_NIC},
               {"switch", FAULT_SWITCH},
               {"maintenance", FAULT_MAINTENANCE},
               {"change", FAULT_MAINTENANCE},
               {"power", FAULT_POWER},
               {"psu", FAULT_POWER},
               {"fan", FAULT_POWER},
               {"cool", FAULT_POWER},
               {"disk", FAULT_STORAGE},
               {"ssd", FAULT_STORAGE},
               {"storage", FAULT_STORAGE},
               {"file system", FAULT_STORAGE},
               {"software", FAULT_SOFTWARE},
               {"operating system", FAULT_SOFTWARE},
               {"firmware", FAULT_SOFTWARE},
               {"kernel", FAULT_SOFTWARE},
               {"cpu", FAULT_HOST},
               {"board", FAULT_HOST},
               {"memory", FAULT_HOST},
               {"host", FAULT_HOST},
               {"node", FAULT_HOST},
               {"machine", FAULT_HOST}};
  int exact = cause_index (text);
  if (exact >= 0)
    return (FaultCause)exact;
  g_autofree char *lower = g_ascii_strdown (text, -1);
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (strstr (lower, words[i].word) != NULL)
      return words[i].cause;
  return FAULT_UNKNOWN;
}

/* Columns of a table of failures; -1 where it has none. */
typedef struct {
  int start, end, repair, date, time, node, cause, kind;
} TraceCols;

/* Rows whose cause is told, in words that are not known. */
typedef struct {
  guint n;
  const char *first; /* the table's */
  guint line;
} OddCauses;

/* "2022-03-21" with an optional time of day in another column, to days since 1970. */
static gboolean
date_days (const CsvTable *t, guint row, const TraceCols *c, double *out)
{
  g_autofree char *text = g_strndup (csv_cell (t, row, c->date), 10);
  g_autoptr (GTimeZone) utc = g_time_zone_new_utc ();
  g_autofree char *iso = g_strconcat (text, "T00:00:00Z", NULL);
  g_autoptr (GDateTime) date = g_date_time_new_from_iso8601 (iso, utc);
  if (date == NULL)
    return FALSE;
  *out = (double)g_date_time_to_unix (date) / 86400.0;
  /* "11:42 PST": what can be read of the time of day. */
  g_auto (GStrv) part = g_strsplit (csv_cell (t, row, c->time), ":", 3);
  double unit = 1.0 / 24.0;
  for (guint i = 0; part[i] != NULL; i++, unit /= 60.0) {
    guint64 n = g_ascii_strtoull (part[i], NULL, 10);
    *out += n < 60 ? (double)n * unit : 0.0;
  }
  return TRUE;
}

static gboolean
bad_row (const CsvTable *t, guint row, GError **error, const char *what, const char *found)
{
  g_set_error (error, CSV_ERROR, CSV_ERROR_VALUE, "%s:%u: %s (found \"%s\")", csv_name (t),
               csv_line (t, row), what, found);
  return FALSE;
}

static gboolean
trace_row (const CsvTable *t, guint row, const TraceCols *c, double *day, double *repair,
           GError **error)
{
  *repair = -1.0;
  if (c->start >= 0) {
    if (!csv_double (t, row, c->start, day, error))
      return FALSE;
  } else if (!date_days (t, row, c, day)) {
    return bad_row (t, row, error, "not a date (allowed: YYYY-MM-DD)", csv_cell (t, row, c->date));
  }
  if (c->repair >= 0 && *csv_cell (t, row, c->repair) != '\0')
    return csv_double (t, row, c->repair, repair, error);
  if (c->end < 0 || *csv_cell (t, row, c->end) == '\0')
    return TRUE;
  double end;
  if (!csv_double (t, row, c->end, &end, error))
    return FALSE;
  if (end < *day)
    return bad_row (t, row, error, "dates out of order: the end is before the start",
                    csv_cell (t, row, c->end));
  *repair = end - *day;
  return TRUE;
}

/* Rows that are no failures: other kinds of a log, and dates without a day. */
static gboolean
skip_row (const CsvTable *t, guint row, const TraceCols *c)
{
  const char *kind = csv_cell (t, row, c->kind);
  if (c->kind >= 0 && strcmp (kind, "failure") != 0 && strcmp (kind, "hang") != 0)
    return TRUE;
  return c->start < 0 && strchr (csv_cell (t, row, c->date), 'X') != NULL;
}

static gboolean
fill_trace (const CsvTable *t, const TraceCols *c, GArray *events, guint *max_node, OddCauses *odd,
            GError **error)
{
  double first = 0.0, last = -INFINITY;
  for (guint row = 0; row < csv_n_rows (t); row++) {
    double day = 0.0, repair = -1.0, node = 0.0;
    if (skip_row (t, row, c))
      continue;
    if (!trace_row (t, row, c, &day, &repair, error))
      return FALSE;
    if (day < last)
      return bad_row (t, row, error, "dates out of order: earlier than the row before",
                      csv_cell (t, row, c->start >= 0 ? c->start : c->date));
    last = day;
    if (c->start < 0 && events->len == 0)
      first = day;
    if (c->node >= 0 && !csv_double (t, row, c->node, &node, error))
      return FALSE;
    if (!(node >= 0.0 && node < 1e7 && node == floor (node)))
      return bad_row (t, row, error, "not a node's number (allowed: whole, 0 to 9999999)",
                      csv_cell (t, row, c->node));
    if (c->start >= 0 && day < 0.0)
      return bad_row (t, row, error, "before the beginning of the trace",
                      csv_cell (t, row, c->start));
    FaultTraceEvent e = {.t_s = (day - first) * 86400.0,
                         .repair_s = repair >= 0.0 ? repair * 86400.0 : -1.0,
                         .node = (guint32)node,
                         .cause = fault_cause_of (csv_cell (t, row, c->cause))};
    const char *cause = csv_cell (t, row, c->cause);
    if (e.cause == FAULT_UNKNOWN && *cause != '\0' && g_ascii_strcasecmp (cause, "unknown") != 0 &&
        odd->n++ == 0) {
      odd->first = cause;
      odd->line = csv_line (t, row);
    }
    *max_node = MAX (*max_node, e.node);
    g_array_append_val (events, e);
  }
  return TRUE;
}

static void
note_odd_causes (GPtrArray *inputs, const char *path, const OddCauses *odd)
{
  JobInput *i = g_new0 (JobInput, 1);
  g_autofree char *quoted = text_quoted (odd->first);
  i->key = g_strdup ("/failures/trace");
  i->kind = g_strdup ("warning");
  i->value = odd->n;
  i->source = g_strdup_printf ("%s: rows with a cause that is not known count as unknown (%u of "
                               "them, first %s in line %u)",
                               path, odd->n, quoted, odd->line);
  g_ptr_array_add (inputs, i);
}

static FaultTrace *
load_trace (const char *path, guint nodes, double days, GPtrArray *inputs, GError **error)
{
  g_autoptr (CsvTable) t = csv_load (path, error);
  if (t == NULL)
    return NULL;
  TraceCols c = {.start = csv_col (t, "start_day"),
                 .end = csv_col (t, "end_day"),
                 .repair = csv_col (t, "repair_days"),
                 .date = csv_col (t, "date"),
                 .time = csv_col (t, "time"),
                 .node = csv_col (t, "node"),
                 .cause = csv_col (t, "cause"),
                 .kind = csv_col (t, "kind")};
  if (c.cause < 0)
    c.cause = csv_col (t, "class");
  if (c.start < 0 && c.date < 0 && csv_require_col (t, "start_day", error) < 0)
    return NULL;
  g_autoptr (GArray) events = g_array_new (FALSE, FALSE, sizeof (FaultTraceEvent));
  guint max_node = 0;
  OddCauses odd = {0};
  if (!fill_trace (t, &c, events, &max_node, &odd, error))
    return NULL;
  if (odd.n > 0 && inputs != NULL)
    note_odd_causes (inputs, path, &odd);
  g_autoptr (GError) why = NULL;
  FaultTrace *trace = fault_trace_new ((const FaultTraceEvent *)(gpointer)events->data, events->len,
                                       nodes > 0 ? nodes : max_node + 1, days * 86400.0, &why);
  if (trace == NULL)
    g_set_error (error, CSV_ERROR, CSV_ERROR_VALUE, "%s: %s", path, why->message);
  return trace;
}

FaultTrace *
read_fault_trace (const char *path, guint nodes, double days, GError **error)
{
  return load_trace (path, nodes, days, NULL, error);
}

static gboolean
read_trace (const JsonRef *obj, FaultProfile *p, GPtrArray *inputs, GError **error)
{
  static const char *const keys[] = {"file",       "nodes",          "days", "fit",
                                     "epoch_days", "burst_window_s", NULL};
  JsonRef at, ref;
  const char *file;
  guint nodes = 0;
  double days = 0.0, epoch = 0.0, window = 0.0;
  gboolean fit = FALSE;
  if (!json_has (obj, "trace"))
    return TRUE;
  if (!json_get_object (obj, "trace", &ref, error) || !json_check_keys (&ref, keys, error) ||
      !json_get_string (&ref, "file", &file, error) || !json_get_any (&ref, "file", &at, error) ||
      !job_count (&ref, "nodes", 1, 10000000, &nodes, inputs, error) ||
      !job_number (&ref, "days", 1e-6, 1e6, &days, inputs, NULL, error) ||
      !job_number (&ref, "epoch_days", 0.1, 1e5, &epoch, inputs, NULL, error) ||
      !job_number (&ref, "burst_window_s", 0, 1e7, &window, inputs, NULL, error) ||
      !json_opt_bool (&ref, "fit", &fit, error))
    return FALSE;
  g_autofree char *path = path_relative_to (file, json_file (&at));
  FaultTrace *trace = load_trace (path, nodes, days, inputs, error);
  if (trace == NULL)
    return FALSE;
  if (!fit) {
    p->trace = trace;
    return TRUE;
  }
  if (epoch <= 0.0) {
    fault_trace_free (trace);
    return json_fail (&ref, JSON_ERROR_MISSING, error,
                      "a fit needs the length of its epochs (allowed: epoch_days)");
  }
  FaultFit found;
  FaultProfile fitted;
  fault_trace_fit (trace, window, epoch * 86400.0, &found, &fitted);
  for (guint i = 0; i < FAULT_COUNT; i++) {
    fitted.cause[i].detect = p->cause[i].detect;
    fitted.cause[i].keeps_memory = p->cause[i].keeps_memory;
  }
  fitted.name = g_steal_pointer (&p->name);
  fault_trace_free (trace);
  *p = fitted;
  return TRUE;
}

gboolean
read_failures (const JsonRef *object, FaultProfile *out, GPtrArray *inputs, GError **error)
{
  const char *name = "in place";
  gint64 format = 1;
  fault_profile_init (out);
  if (!json_check_keys (object, profile_keys, error) ||
      !json_opt_int (object, "format", 1, 1, &format, error) ||
      !json_opt_string (object, "name", &name, error))
    return FALSE;
  out->name = g_strdup (name);
  g_autoptr (GError) why = NULL;
  if (!read_rates (object, out, inputs, error) || !read_causes (object, out, inputs, error) ||
      !read_process (object, out, inputs, error) || !read_clustering (object, out, inputs, error) ||
      !read_trace (object, out, inputs, error)) {
    fault_profile_clear (out);
    return FALSE;
  }
  if (fault_profile_check (out, &why))
    return TRUE;
  fault_profile_clear (out);
  return json_fail (object, JSON_ERROR_RANGE, error, "%s", why->message);
}
