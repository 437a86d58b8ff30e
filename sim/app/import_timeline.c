#include "import_timeline.h"

#include <string.h>

#include "chakra_et.h"
#include "cli.h"
#include "json_read.h"

const char *const timeline_collectives[] = {"all_reduce", "all_gather", "reduce_scatter",
                                            "broadcast",  "alltoall",   "sendrecv",
                                            "other",      NULL};

typedef struct {
  double begin_us, end_us;
} Span;

typedef struct {
  GArray *compute, *comm, *copy, *steps; /* Span */
} Spans;

/* ---- names ---- */

/* Which collective a kernel or an operation is; -1: none. */
static int
collective_of (const char *name)
{
  static const struct {
    const char *word;
    int kind;
  } words[] = {{"allreduce", 0},     {"all_reduce", 0},     {"allgather", 1}, {"all_gather", 1},
               {"reducescatter", 2}, {"reduce_scatter", 2}, {"broadcast", 3}, {"alltoall", 4},
               {"all_to_all", 4},    {"sendrecv", 5},       {"send", 5},      {"recv", 5}};
  g_autofree char *plain = g_ascii_strdown (name, -1);
  if (strstr (plain, "nccl") == NULL && strstr (plain, "c10d") == NULL &&
      strstr (plain, "rccl") == NULL)
    return -1;
  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    if (strstr (plain, words[i].word) != NULL)
      return words[i].kind;
  return 6;
}

/* ---- unions ---- */

static gint
compare_spans (gconstpointer a, gconstpointer b)
{
  const Span *x = a, *y = b;
  return (x->begin_us > y->begin_us) - (x->begin_us < y->begin_us);
}

/* Sorts, and joins what touches. */
static void
unite (GArray *spans)
{
  guint n = 0;
  g_array_sort (spans, compare_spans);
  for (guint i = 0; i < spans->len; i++) {
    Span s = g_array_index (spans, Span, i);
    Span *last = n > 0 ? &g_array_index (spans, Span, n - 1) : NULL;
    if (last != NULL && s.begin_us <= last->end_us)
      last->end_us = MAX (last->end_us, s.end_us);
    else
      g_array_index (spans, Span, n++) = s;
  }
  g_array_set_size (spans, n);
}

static double
length_us (const GArray *united)
{
  double sum = 0;
  for (guint i = 0; i < united->len; i++) {
    const Span *s = &g_array_index (united, Span, i);
    sum += s->end_us - s->begin_us;
  }
  return sum;
}

static double
common_us (const GArray *a, const GArray *b)
{
  double sum = 0;
  for (guint i = 0, k = 0; i < a->len && k < b->len;) {
    const Span *x = &g_array_index (a, Span, i), *y = &g_array_index (b, Span, k);
    double from = MAX (x->begin_us, y->begin_us), to = MIN (x->end_us, y->end_us);
    sum += MAX (to - from, 0);
    if (x->end_us < y->end_us)
      i++;
    else
      k++;
  }
  return sum;
}

static gint
compare_doubles (gconstpointer a, gconstpointer b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double
median_length_s (const GArray *spans)
{
  g_autoptr (GArray) lengths = g_array_new (FALSE, FALSE, sizeof (double));
  if (spans->len == 0)
    return 0;
  for (guint i = 0; i < spans->len; i++) {
    const Span *s = &g_array_index (spans, Span, i);
    double v = (s->end_us - s->begin_us) * 1e-6;
    g_array_append_val (lengths, v);
  }
  g_array_sort (lengths, compare_doubles);
  return g_array_index (lengths, double, (lengths->len - 1) / 2);
}

/* ---- files ---- */

/* The text of a file, unpacked by gzip when it is packed. */
static JsonDoc *
load_packed (const char *path, GError **error)
{
  if (!g_str_has_suffix (path, ".gz"))
    return json_doc_load (path, error);
  const char *argv[] = {"gzip", "-dc", "--", path, NULL};
  g_autofree char *text = NULL, *wrong = NULL;
  g_autoptr (GError) why = NULL;
  int status = 0;
  if (g_str_has_suffix (path, ".tar.gz")) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
                 "%s: is an archive of files (unpack it; allowed: one trace, as .json or .json.gz)",
                 path);
    return NULL;
  }
  if (!g_spawn_sync (NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &text, &wrong,
                     &status, &why) ||
      !g_spawn_check_wait_status (status, &why)) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "%s: cannot be unpacked (%s)", path,
                 wrong != NULL && *wrong != '\0' ? g_strstrip (wrong) : why->message);
    return NULL;
  }
  return json_doc_parse (path, text, strlen (text), error);
}

/* ---- Kineto ---- */

static const char *
text_of (const JsonRef *obj, const char *key)
{
  const char *text = "";
  json_opt_string (obj, key, &text, NULL);
  return text;
}

static void
take_event (const JsonRef *event, Spans *spans, Timeline *out)
{
  double ts = 0, dur = -1;
  static const double most_us = 1e18;
  if (!json_is_object (event) || strcmp (text_of (event, "ph"), "X") != 0)
    return;
  const char *category = text_of (event, "cat"), *name = text_of (event, "name");
  gboolean step =
      g_str_has_prefix (name, "ProfilerStep#") && strcmp (category, "user_annotation") == 0;
  gboolean copy = strcmp (category, "gpu_memcpy") == 0 || strcmp (category, "gpu_memset") == 0;
  gboolean kernel = strcmp (category, "kernel") == 0;
  if (!step && !copy && !kernel)
    return;
  if (!json_opt_double (event, "ts", 0, most_us, &ts, NULL) ||
      !json_opt_double (event, "dur", 0, most_us, &dur, NULL) || dur < 0) {
    out->skipped++;
    return;
  }
  Span s = {ts, ts + dur};
  int collective = kernel ? collective_of (name) : -1;
  GArray *to = step              ? spans->steps
               : copy            ? spans->copy
               : collective >= 0 ? spans->comm
                                 : spans->compute;
  g_array_append_val (to, s);
  out->kernels += kernel ? 1 : 0;
  out->collectives += collective >= 0 ? 1 : 0;
  if (collective >= 0)
    out->collective_s[collective] += dur * 1e-6;
}

static void
sum_up (Spans *spans, Timeline *out)
{
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (Span));
  GArray *parts[] = {spans->compute, spans->comm, spans->copy};
  out->steps = spans->steps->len;
  out->step_s = median_length_s (spans->steps);
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++) {
    g_array_append_vals (all, parts[i]->data, parts[i]->len);
    unite (parts[i]);
  }
  unite (all);
  out->has_times = TRUE;
  out->compute_s = length_us (spans->compute) * 1e-6;
  out->communication_s = length_us (spans->comm) * 1e-6;
  out->copy_s = length_us (spans->copy) * 1e-6;
  out->exposed_s = out->communication_s - common_us (spans->comm, spans->compute) * 1e-6;
  if (all->len == 0)
    return;
  double first = g_array_index (all, Span, 0).begin_us;
  double last = g_array_index (all, Span, all->len - 1).end_us;
  out->span_s = (last - first) * 1e-6;
  out->idle_s = out->span_s - length_us (all) * 1e-6;
}

gboolean
import_kineto (const char *path, Timeline *out, GError **error)
{
  memset (out, 0, sizeof *out);
  g_autoptr (JsonDoc) doc = load_packed (path, error);
  JsonRef events;
  if (doc == NULL)
    return FALSE;
  JsonRef root = json_root (doc);
  if (json_is_array (&root))
    events = root;
  else if (!json_is_object (&root))
    return json_fail (&root, JSON_ERROR_TYPE, error, "wrong type (allowed: a Chrome trace)");
  else if (!json_get_array (&root, "traceEvents", &events, error))
    return FALSE;
  Spans spans = {
      g_array_new (FALSE, FALSE, sizeof (Span)), g_array_new (FALSE, FALSE, sizeof (Span)),
      g_array_new (FALSE, FALSE, sizeof (Span)), g_array_new (FALSE, FALSE, sizeof (Span))};
  for (int i = 0, n = json_len (&events); i < n; i++) {
    JsonRef event = json_item (&events, i);
    take_event (&event, &spans, out);
  }
  sum_up (&spans, out);
  g_array_unref (spans.compute);
  g_array_unref (spans.comm);
  g_array_unref (spans.copy);
  g_array_unref (spans.steps);
  if (out->kernels > 0)
    return TRUE;
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
               "%s: has no kernel of a GPU (allowed: a trace of the PyTorch profiler with "
               "ProfilerActivity.CUDA)",
               path);
  return FALSE;
}

/* ---- Chakra ---- */

static gboolean
number_of (const JsonRef *node, const char *const *keys, double *v)
{
  for (gsize i = 0; keys[i] != NULL; i++)
    if (json_has (node, keys[i]))
      return json_opt_double (node, keys[i], 0, 1e18, v, NULL);
  return FALSE;
}

/* Communication by its number or name in the schema. */
static gboolean
is_communication (const JsonRef *node)
{
  static const char *const keys[] = {"NodeType", "type", "node_type", NULL};
  double v = 0;
  for (gsize i = 0; keys[i] != NULL; i++)
    if (g_str_has_prefix (text_of (node, keys[i]), "COMM_"))
      return TRUE;
  return number_of (node, keys, &v) && v >= 5 && v <= 7; /* send, receive, collective */
}

/* A node that has a duration; collective: its kind, -1 when it does not communicate. */
static void
add_node (Timeline *out, double us, gboolean cpu, int collective)
{
  if (cpu) {
    out->host_s += us * 1e-6;
    return;
  }
  out->kernels++;
  if (collective < 0) {
    out->compute_s += us * 1e-6;
    return;
  }
  out->collectives++;
  out->communication_s += us * 1e-6;
  out->collective_s[collective] += us * 1e-6;
}

static void
take_node (const JsonRef *node, Timeline *out)
{
  static const char *const durations[] = {"runtime", "durationMicros", "duration_micros", NULL};
  double us = 0;
  gboolean cpu = FALSE;
  if (!json_is_object (node) || !number_of (node, durations, &us)) {
    out->skipped++;
    return;
  }
  json_opt_bool (node, "is_cpu_op", &cpu, NULL);
  const char *name = json_has (node, "Name") ? text_of (node, "Name") : text_of (node, "name");
  int kind = collective_of (name);
  add_node (out, us, cpu, !is_communication (node) ? -1 : kind >= 0 ? kind : 6);
}

/* Kinds of timeline_collectives by the numbers of the schema: ALL_REDUCE 0, ALL_GATHER 2, BROADCAST
 * 5, ALL_TO_ALL 6, REDUCE_SCATTER 7. */
static int
collective_of_type (gint64 comm_type)
{
  static const int kinds[] = {0, 6, 1, 6, 6, 3, 4, 2};
  return comm_type >= 0 && comm_type < (gint64)G_N_ELEMENTS (kinds) ? kinds[comm_type] : 6;
}

static void
take_binary_node (const ChakraNode *node, gpointer data)
{
  Timeline *out = data;
  if (!node->has_duration) {
    out->skipped++;
    return;
  }
  g_autofree char *name = g_strndup (node->name, node->name_len);
  int kind = node->comm_type >= 0 ? collective_of_type (node->comm_type) : collective_of (name);
  gboolean pair = node->type == CHAKRA_SEND || node->type == CHAKRA_RECV;
  add_node (out, node->duration_us, node->cpu,
            pair                              ? 5
            : node->type != CHAKRA_COLLECTIVE ? -1
            : kind >= 0                       ? kind
                                              : 6);
}

static gboolean
import_binary (const char *path, Timeline *out, GError **error)
{
  g_autoptr (GMappedFile) file = g_mapped_file_new (path, FALSE, error);
  if (file == NULL)
    return FALSE;
  gsize len = g_mapped_file_get_length (file);
  if (len > 0 && !chakra_et_walk ((const guint8 *)g_mapped_file_get_contents (file), len,
                                  take_binary_node, out, error)) {
    g_prefix_error (error, "%s: ", path);
    return FALSE;
  }
  if (out->kernels > 0 || out->host_s > 0)
    return TRUE;
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "%s: has no node with a duration", path);
  return FALSE;
}

gboolean
import_chakra (const char *path, Timeline *out, GError **error)
{
  static const char *const lists[] = {"workload_graph", "nodes", "node", NULL};
  memset (out, 0, sizeof *out);
  JsonRef nodes;
  if (g_str_has_suffix (path, ".et"))
    return import_binary (path, out, error);
  g_autoptr (JsonDoc) doc = load_packed (path, error);
  if (doc == NULL)
    return FALSE;
  JsonRef root = json_root (doc);
  gboolean found = json_is_array (&root);
  nodes = root;
  for (gsize i = 0; !found && json_is_object (&root) && lists[i] != NULL; i++)
    found = json_has (&root, lists[i]) && json_get_array (&root, lists[i], &nodes, NULL);
  if (!found)
    return json_fail (&root, JSON_ERROR_MISSING, error,
                      "has no list of nodes (allowed: workload_graph, nodes)");
  for (int i = 0, n = json_len (&nodes); i < n; i++) {
    JsonRef node = json_item (&nodes, i);
    take_node (&node, out);
  }
  if (out->kernels > 0 || out->host_s > 0)
    return TRUE;
  return json_fail (&nodes, JSON_ERROR_MISSING, error,
                    "has no node with a duration (allowed: runtime or durationMicros)");
}
