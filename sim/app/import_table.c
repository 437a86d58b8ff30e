#include "import_table.h"

#include <string.h>

#include "import_part.h"
#include "json_write.h"
#include "text.h"

static const char *const names[] = {"op", "gpu", "nic", "gpus_per_node", "nodes", "set", NULL};

typedef struct {
  int op, nodes, per_node; /* op -1, others 0: not known */
  const char *gpu, *nic, *set;
} Known;

static gboolean
whole (const CollTable *t, const char *const *given, const char *name, int *out, GError **error)
{
  const char *text = import_given (given, name);
  char *end = NULL;
  if (text == NULL)
    return TRUE;
  gint64 v = g_ascii_strtoll (text, &end, 10);
  if (*text == '\0' || *end != '\0' || v < 1 || v > 10000000)
    return import_fail (error, IMPORT_ERROR_MISSING, t->source, 0,
                        "%s is no such number (found \"%.40s\"; allowed: 1 to 10000000)", name,
                        text);
  *out = (int)v;
  return TRUE;
}

static gboolean
known_of (const CollTable *t, const char *const *given, Known *k, GError **error)
{
  *k =
      (Known){t->op, t->nodes, 0, t->gpu, import_given (given, "nic"), import_given (given, "set")};
  const char *op = import_given (given, "op");
  if (!import_given_check (t->source, given, names, error) ||
      !whole (t, given, "nodes", &k->nodes, error) ||
      !whole (t, given, "gpus_per_node", &k->per_node, error))
    return FALSE;
  if (import_given (given, "gpu") != NULL)
    k->gpu = import_given (given, "gpu");
  for (int i = 0; op != NULL && i < COLL_COUNT; i++)
    if (strcmp (op, coll_op_names[i]) == 0)
      k->op = i;
  if (op != NULL && (k->op < 0 || strcmp (op, coll_op_names[k->op]) != 0))
    return import_fail (error, IMPORT_ERROR_MISSING, t->source, 0,
                        "op is not known (found \"%.40s\"; allowed: all_reduce, all_gather, "
                        "reduce_scatter, broadcast, alltoall, sendrecv)",
                        op);
  if (op != NULL && t->op >= 0 && t->op != k->op)
    return import_fail (error, IMPORT_ERROR_MISSING, t->source, 0,
                        "the log is of %s (found: op=%s)", coll_op_names[t->op], op);
  if (k->per_node == 0 && k->nodes > 0 && t->ranks % k->nodes == 0)
    k->per_node = t->ranks / k->nodes;
  if (k->nodes == 0 && k->per_node > 0 && t->ranks % k->per_node == 0)
    k->nodes = t->ranks / k->per_node;
  return TRUE;
}

static void
maybe_int (JsonWriter *w, const char *key, int value)
{
  if (value > 0)
    jw_int (w, key, value);
  else
    jw_null (w, key);
}

gboolean
import_table_json (const CollTable *t, const char *const *given, GString *out, GError **error)
{
  Known k;
  if (!known_of (t, given, &k, error))
    return FALSE;
  g_autoptr (JsonWriter) w = json_writer_new (out, 1);
  jw_begin_object (w, NULL);
  jw_string (w, "op", k.op >= 0 ? coll_op_names[k.op] : NULL);
  jw_begin_array (w, "could_be");
  for (int i = 0; k.op < 0 && i < COLL_COUNT; i++)
    if (t->could >> i & 1)
      jw_string (w, NULL, coll_op_names[i]);
  jw_end_array (w);
  maybe_int (w, "ranks", t->ranks);
  maybe_int (w, "nodes", k.nodes);
  maybe_int (w, "gpus_per_node", k.per_node);
  jw_string (w, "gpu", k.gpu);
  jw_string (w, "nccl_version", t->version);
  jw_string (w, "dtype", t->type);
  jw_begin_array (w, "rows");
  for (guint i = 0; i < t->rows->len; i++) {
    const CollTableRow *r = &g_array_index (t->rows, CollTableRow, i);
    jw_begin_object (w, NULL);
    jw_int (w, "size_bytes", r->bytes);
    jw_double (w, "time_us", r->time_us > 0 ? r->time_us : r->ip_time_us);
    jw_double (w, "algbw_GBps", r->time_us > 0 ? r->algbw_GBps : r->ip_algbw_GBps);
    jw_double (w, "busbw_GBps", r->time_us > 0 ? r->busbw_GBps : r->ip_busbw_GBps);
    jw_end_object (w);
  }
  jw_end_array (w);
  jw_begin_array (w, "notes");
  for (guint i = 0; i < t->notes->len; i++)
    jw_string (w, NULL, g_ptr_array_index (t->notes, i));
  jw_end_array (w);
  jw_end_object (w);
  g_string_append_c (out, '\n');
  return TRUE;
}

/* A cell that a comma, quote or line would break is quoted. */
static void
put_cell (GString *out, const char *text)
{
  if (text != NULL && strpbrk (text, ",\"\r\n") != NULL) {
    g_auto (GStrv) parts = g_strsplit (text, "\"", -1);
    g_autofree char *doubled = g_strjoinv ("\"\"", parts);
    g_string_append_printf (out, "\"%s\"", doubled);
  } else if (text != NULL) {
    g_string_append (out, text);
  }
  g_string_append_c (out, ',');
}

static void
put_count (GString *out, int value)
{
  if (value > 0)
    g_string_append_printf (out, "%d", value);
  g_string_append_c (out, ',');
}

gboolean
import_table_csv (const CollTable *t, const char *const *given, GString *out, GError **error)
{
  Known k;
  if (!known_of (t, given, &k, error))
    return FALSE;
  if (k.op < 0) {
    g_autoptr (GString) could = g_string_new (NULL);
    for (int i = 0; i < COLL_COUNT; i++)
      if (t->could >> i & 1)
        g_string_append_printf (could, "%sop=%s", could->len > 0 ? ", " : "", coll_op_names[i]);
    return import_fail (error, IMPORT_ERROR_MISSING, t->source, 0,
                        "the log does not tell its operation (allowed: %s after the file)",
                        could->str);
  }
  g_autofree char *base = g_path_get_basename (t->source);
  const char *set = k.set != NULL ? k.set : base;
  g_string_append (out, "set,gpu,gpus_per_node,nodes,ranks,nic,system,nccl_version,algo,proto,op,"
                        "dtype,size_bytes,time_us,algbw_GBps,busbw_GBps\n");
  for (guint i = 0; i < t->rows->len; i++) {
    const CollTableRow *r = &g_array_index (t->rows, CollTableRow, i);
    double us = r->time_us > 0 ? r->time_us : r->ip_time_us;
    put_cell (out, set);
    put_cell (out, k.gpu);
    put_count (out, k.per_node);
    put_count (out, k.nodes);
    put_count (out, t->ranks);
    put_cell (out, k.nic);
    put_cell (out, NULL);
    put_cell (out, t->version);
    put_cell (out, NULL);
    put_cell (out, NULL);
    put_cell (out, coll_op_names[k.op]);
    put_cell (out, t->type);
    g_string_append_printf (out, "%" G_GINT64_FORMAT ",%.10g,%.10g,%.10g\n", r->bytes, us,
                            r->time_us > 0 ? r->algbw_GBps : r->ip_algbw_GBps,
                            r->time_us > 0 ? r->busbw_GBps : r->ip_busbw_GBps);
  }
  return TRUE;
}
