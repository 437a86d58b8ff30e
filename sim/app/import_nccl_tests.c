/* Logs of nccl-tests. The layout of a row follows from the row: the line that names the columns is
 * often cut off, and versions differ in them. What the log does not say (operation, ranks) follows
 * from the ratios in it where it can. */
#include "import_topo.h"

#include <math.h>
#include <string.h>

enum { MAX_ROWS = 1000000 };

typedef struct {
  const char *name;
  CollTable *t;
  int max_rank, n_gpus; /* of "Rank N", of "nGpus N" */
  GHashTable *hosts;
  gboolean in_place_only, any_out;
  int stated_op;
  int root; /* of the rows: -2 none yet */
  gint64 first_bytes, first_count;
  guint empty;
} Log;

void
coll_table_free (CollTable *t)
{
  if (!t)
    return;
  g_free (t->source);
  g_free (t->gpu);
  g_free (t->other);
  g_free (t->version);
  g_free (t->type);
  g_free (t->redop);
  g_array_unref (t->rows);
  g_ptr_array_unref (t->notes);
  g_free (t);
}

static void note (CollTable *t, const char *format, ...) G_GNUC_PRINTF (2, 3);
static void
note (CollTable *t, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_ptr_array_add (t->notes, g_strdup_vprintf (format, args));
  va_end (args);
}

static gboolean
whole (const char *w, gint64 *out)
{
  char *end = NULL;
  if (!w || !(g_ascii_isdigit (w[0]) || (w[0] == '-' && g_ascii_isdigit (w[1]))) || strlen (w) > 18)
    return FALSE;
  *out = g_ascii_strtoll (w, &end, 10);
  return *end == '\0';
}

static gboolean
number (const char *w, double *out)
{
  char *end = NULL;
  if (!w || !g_ascii_isdigit (w[0]))
    return FALSE;
  *out = g_ascii_strtod (w, &end);
  return *end == '\0' && isfinite (*out);
}

static gint64
type_bytes (const char *type)
{
  static const struct {
    const char *name;
    gint64 bytes;
  } known[] = {{"int8", 1},     {"uint8", 1},    {"int32", 4},  {"uint32", 4}, {"int64", 8},
               {"uint64", 8},   {"half", 2},     {"float", 4},  {"double", 8}, {"bfloat16", 2},
               {"fp8_e4m3", 1}, {"fp8_e5m2", 1}, {"f8e4m3", 1}, {"f8e5m2", 1}};
  for (gsize i = 0; i < G_N_ELEMENTS (known); i++)
    if (strcmp (known[i].name, type) == 0)
      return known[i].bytes;
  return 0;
}

/* time, algbw and busbw at w; TRUE if bytes over time is the algbw printed. */
static gboolean
read_three (char **w, gint64 bytes, double *time, double *alg, double *bus)
{
  if (!number (w[0], time) || !w[1] || !number (w[1], alg) || !w[2] || !number (w[2], bus))
    return FALSE;
  double real = *time > 0 ? (double)bytes / *time * 1e-3 : 0;
  return fabs (real - *alg) <= 0.006 + 0.01 * real;
}

/* After the type: [redop] [root] time algbw busbw [wrong] [time algbw busbw [wrong]]. */
static gboolean
read_figures (Log *l, char **w, CollTableRow *r)
{
  double t = 0, a = 0, b = 0;
  gint64 root = -2;
  if (*w && g_ascii_isalpha ((*w)[0])) {
    if (!l->t->redop)
      l->t->redop = g_strdup (*w);
    w++;
  }
  if (!read_three (w, r->bytes, &t, &a, &b)) {
    if (!whole (*w, &root) || !read_three (w + 1, r->bytes, &t, &a, &b))
      return FALSE;
    w++;
  } else {
    root = -2;
  }
  l->root = l->root == -2 ? (int)CLAMP (root, -2, 1000000) : l->root;
  r->time_us = t, r->algbw_GBps = a, r->busbw_GBps = b;
  w += 3;
  /* What follows: nothing, errors, a second three, or both, before and after it. */
  guint left = g_strv_length (w);
  if (left == 1 || left > 4 || (left == 4 && read_three (w + 1, r->bytes, &t, &a, &b)))
    w++;
  if (*w && read_three (w, r->bytes, &t, &a, &b))
    r->ip_time_us = t, r->ip_algbw_GBps = a, r->ip_busbw_GBps = b;
  if (l->in_place_only && r->ip_time_us == 0) {
    r->ip_time_us = r->time_us, r->ip_algbw_GBps = r->algbw_GBps, r->ip_busbw_GBps = r->busbw_GBps;
    r->time_us = r->algbw_GBps = r->busbw_GBps = 0;
  }
  return TRUE;
}

/* Begins with a size, a count and a type: a row. FALSE only when it is one and cannot be read. */
static void
read_row (Log *l, char **w, guint line)
{
  CollTableRow r = {.line = line};
  if (!whole (w[0], &r.bytes) || !whole (w[1], &r.count) || !w[2] || !type_bytes (w[2]))
    return;
  if (r.bytes <= 0) {
    l->empty++;
    return;
  }
  if (!read_figures (l, w + 3, &r) || l->t->rows->len >= MAX_ROWS) {
    if (l->t->cut++ == 0)
      l->t->cut_line = line;
    return;
  }
  if (!l->t->type)
    l->t->type = g_strdup (w[2]);
  l->first_bytes = r.bytes;
  l->first_count = r.count;
  g_array_append_val (l->t->rows, r);
}

/* "Rank 3 [Group 0] Pid 1 on HOST device 3 [0x1b] NVIDIA H100 …". */
static void
read_rank (Log *l, char **w)
{
  gint64 k;
  for (guint i = 0; w[i]; i++) {
    if (strcmp (w[i], "Rank") == 0 && w[i + 1] && whole (w[i + 1], &k) && k >= 0 && k < 10000000)
      l->max_rank = MAX (l->max_rank, (int)k);
    if (strcmp (w[i], "on") == 0 && w[i + 1])
      g_hash_table_add (l->hosts, g_strdup (w[i + 1]));
    if (strcmp (w[i], "device") == 0 && w[i + 1] && w[i + 2] && w[i + 3]) {
      guint at = w[i + 2][0] == '[' ? i + 3 : i + 2;
      g_autofree char *rest = g_strjoinv (" ", w + at), *gpu = g_strndup (rest, 80);
      if (!l->t->gpu)
        l->t->gpu = g_steal_pointer (&gpu);
      else if (!l->t->other && strcmp (l->t->gpu, gpu) != 0)
        l->t->other = g_steal_pointer (&gpu);
    }
  }
}

static void
read_words (Log *l, char **w, const char *line, guint at)
{
  static const char *const program[] = {"all_reduce_perf", "all_gather_perf", "reduce_scatter_perf",
                                        "broadcast_perf",  "alltoall_perf",   "sendrecv_perf"};
  for (int i = 0; i < COLL_COUNT; i++)
    if (strstr (line, program[i]) && l->stated_op < 0)
      l->stated_op = i;
  l->t->unknown_op |= l->stated_op < 0 && strstr (line, "_perf") != NULL;
  l->t->wrong |= strstr (line, "Out of bounds values") != NULL && strstr (line, "FAILED") != NULL;
  l->t->runs += strstr (line, "Avg bus bandwidth") != NULL;
  gboolean out = strstr (line, "out-of-place") != NULL;
  l->any_out = l->any_out || out;
  if (!out && strstr (line, "in-place") && !l->any_out)
    l->in_place_only = TRUE;
  for (guint i = 0; w[i] && w[i + 1]; i++) {
    gint64 k;
    if (strcmp (w[i], "nGpus") == 0 && whole (w[i + 1], &k) && k > 0 && k < 1000)
      l->n_gpus = (int)k;
    if (strcmp (w[i], "version") == 0 && i > 0 && strcmp (w[i - 1], "NCCL") == 0 && !l->t->version)
      l->t->version = g_strndup (w[i + 1], 40);
    if (strcmp (w[i], "bandwidth") == 0 && strcmp (w[i + 1], ":") == 0 && w[i + 2])
      number (w[i + 2], &l->t->avg_busbw_GBps);
  }
  if (strstr (line, "Rank ") && strstr (line, "device"))
    read_rank (l, w);
  /* tags that launchers put before a line end in ':' or '>'; '#' is the log's own */
  while (*w && ((*w)[0] == '#' || g_str_has_suffix (*w, ":") || g_str_has_suffix (*w, ">")))
    w++;
  if (*w && w[1] && w[2])
    read_row (l, w, at);
}

/* ---- what it was -------------------------------------------------------------------------------
 */

/* Mean of busbw over algbw of the rows with the most digits. */
static double
ratio (const CollTable *t)
{
  double alg = 0, bus = 0;
  for (guint i = 0; i < t->rows->len; i++) {
    const CollTableRow *r = &g_array_index (t->rows, CollTableRow, i);
    alg += r->time_us > 0 ? r->algbw_GBps : r->ip_algbw_GBps;
    bus += r->time_us > 0 ? r->busbw_GBps : r->ip_busbw_GBps;
  }
  return alg > 0 ? bus / alg : 0;
}

/* Root, reduction and how size and count relate leave one operation, or two. */
static void
find_op (Log *l)
{
  CollTable *t = l->t;
  gint64 elem = t->type ? type_bytes (t->type) : 0;
  gboolean part = l->first_count * elem < l->first_bytes;
  gboolean reduces = t->redop && strcmp (t->redop, "none") != 0;
  if (l->stated_op >= 0)
    t->could = 1u << l->stated_op;
  else if (reduces)
    t->could = 1u << (part ? COLL_REDUCE_SCATTER : COLL_ALL_REDUCE);
  else if (part)
    t->could = 1u << COLL_ALL_GATHER | 1u << COLL_ALLTOALL;
  else
    t->could = l->root >= 0 ? 1u << COLL_BROADCAST : 1u << COLL_SENDRECV | 1u << COLL_BROADCAST;
  t->op = -1;
  for (int i = 0; i < COLL_COUNT; i++)
    if (t->could == 1u << i)
      t->op = i;
  if (t->op < 0)
    note (t, "the log does not tell whether it is %s",
          part ? "all_gather or alltoall" : "sendrecv or broadcast");
}

static void
find_ranks (Log *l)
{
  CollTable *t = l->t;
  gint64 elem = t->type ? type_bytes (t->type) : 0;
  double r = ratio (t);
  t->nodes = (int)g_hash_table_size (l->hosts);
  if (l->max_rank >= 0) {
    t->ranks = l->max_rank + 1;
    if (t->nodes == 1 && t->ranks > 8 && l->max_rank >= t->ranks - 1 && t->rows->len > 0 &&
        l->n_gpus < t->ranks)
      t->nodes = 0; /* only the last rank's line is left: says nothing about nodes */
    return;
  }
  t->nodes = 0;
  if (elem > 0 && l->first_count > 0 && l->first_bytes > l->first_count * elem) {
    t->ranks = (int)MIN (l->first_bytes / (l->first_count * elem), 10000000);
    note (t, "%d ranks by size over count", t->ranks);
  } else if (t->op == COLL_ALL_REDUCE && r >= 1 && r < 1.9995) {
    t->ranks = (int)lround (2 / (2 - r));
    note (t, "%d ranks by busbw over algbw", t->ranks);
  }
}

CollTable *
import_nccl_tests_text (const char *name, const char *text, gsize len, GError **error)
{
  g_autoptr (CollTable) t = g_new0 (CollTable, 1);
  t->source = g_strdup (name);
  t->rows = g_array_new (FALSE, TRUE, sizeof (CollTableRow));
  t->notes = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GHashTable) hosts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  Log l = {.name = name, .t = t, .max_rank = -1, .hosts = hosts, .stated_op = -1, .root = -2};
  ImportLines in = {text, text + len, 0};
  for (char *raw; (raw = import_next_line (&in)) != NULL;) {
    g_autofree char *line = raw;
    g_auto (GStrv) word = import_words (line);
    read_words (&l, word, line, in.line);
  }
  if (t->rows->len == 0) {
    import_fail (error, IMPORT_ERROR_MISSING, name, 0,
                 "has no row of size, count, type, time, algbw, busbw (found %u rows cut off; "
                 "allowed: the output of nccl-tests)",
                 t->cut);
    return NULL;
  }
  if (t->cut > 0)
    note (t, "%u rows are cut off or contradict themselves and were left out", t->cut);
  if (l.empty > 0)
    note (t, "%u rows of size 0 were left out", l.empty);
  find_op (&l);
  find_ranks (&l);
  return g_steal_pointer (&t);
}

CollTable *
import_nccl_tests (const char *path, GError **error)
{
  gsize len = 0;
  g_autofree char *text = import_load (path, &len, error);
  return text ? import_nccl_tests_text (path, text, len, error) : NULL;
}
