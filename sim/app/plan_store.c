#include "plan_store.h"

#include <string.h>

#include "cli.h"

#define MAGIC "clustersim-plan 1"

struct PlanStore {
  char *identity;
  guint64 first, step;
  GHashTable *known; /* guint64* index → PlanPoint*, what was predicted; only looked up */
  SweepSink *sink;
};

PlanStore *
plan_store_new (const char *identity, guint64 first, guint64 step)
{
  PlanStore *st = g_new0 (PlanStore, 1);
  st->identity = g_strdup (identity);
  st->first = first;
  st->step = step;
  st->known = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free);
  return st;
}

void
plan_store_free (PlanStore *st)
{
  if (st == NULL)
    return;
  if (st->sink != NULL)
    st->sink->ops->close (st->sink);
  g_hash_table_unref (st->known);
  g_free (st->identity);
  g_free (st);
}

/* ---- records ---- */

static void
put_double (GString *out, double v)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append_printf (out, " %s", g_ascii_dtostr (text, sizeof text, v));
}

static void
record_text (const PlanPoint *p, GString *out)
{
  g_string_append_printf (out, "%" G_GUINT64_FORMAT " %" G_GINT64_FORMAT, p->index, p->peak_bytes);
  put_double (out, p->step_s);
  put_double (out, p->mfu);
  put_double (out, p->usd_per_1e9_tokens);
  for (guint i = 0; i < PART_COUNT; i++)
    put_double (out, p->part_s[i]);
  g_string_append_c (out, '\n');
}

static gboolean
record_read (const char *line, PlanPoint *out)
{
  g_auto (GStrv) words = g_strsplit (line, " ", -1);
  double v[3 + PART_COUNT];
  memset (out, 0, sizeof *out);
  if (g_strv_length (words) != 2 + G_N_ELEMENTS (v) ||
      !g_ascii_string_to_unsigned (words[0], 10, 0, PLAN_LAYOUTS_MAX, &out->index, NULL) ||
      !g_ascii_string_to_signed (words[1], 10, 1, G_MAXINT64, &out->peak_bytes, NULL))
    return FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (v); i++) {
    char *end = NULL;
    v[i] = g_ascii_strtod (words[2 + i], &end);
    if (end == words[2 + i] || *end != '\0' || !(v[i] > -1e300 && v[i] < 1e300))
      return FALSE;
  }
  out->step_s = v[0];
  out->mfu = v[1];
  out->usd_per_1e9_tokens = v[2];
  memcpy (out->part_s, v + 3, sizeof out->part_s);
  return out->step_s > 0;
}

/* FALSE when it is no record, or of a point that is there already. */
static gboolean
add_record (PlanStore *st, const char *line)
{
  PlanPoint p;
  if (!record_read (line, &p) || g_hash_table_contains (st->known, &p.index))
    return FALSE;
  PlanPoint *kept = g_memdup2 (&p, sizeof p);
  g_hash_table_insert (st->known, &kept->index, kept);
  return TRUE;
}

gboolean
plan_store_known (gpointer store, PlanPoint *p)
{
  PlanStore *st = store;
  const PlanPoint *k = g_hash_table_lookup (st->known, &p->index);
  if (k == NULL)
    return FALSE;
  p->step_s = k->step_s;
  p->mfu = k->mfu;
  p->usd_per_1e9_tokens = k->usd_per_1e9_tokens;
  p->peak_bytes = k->peak_bytes;
  memcpy (p->part_s, k->part_s, sizeof p->part_s);
  return TRUE;
}

guint
plan_store_count (const PlanStore *st)
{
  return g_hash_table_size (st->known);
}

/* ---- the journal ---- */

static void
take_line (gpointer data, guint64 i G_GNUC_UNUSED, const char *line, gsize len)
{
  g_autofree char *text = g_strndup (line, len > 0 ? len - 1 : 0);
  add_record (data, text);
}

gboolean
plan_store_open (PlanStore *st, const char *output, gboolean resume, GError **error)
{
  g_autofree char *id = g_strdup_printf ("%s-%" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT,
                                         st->identity, st->first, st->step);
  const SinkPlan plan = {.output = output,
                         .header = "",
                         .identity = id,
                         .sweep = st->identity,
                         .total = PLAN_LAYOUTS_MAX,
                         .first = st->first,
                         .step = st->step,
                         .end = PLAN_LAYOUTS_MAX,
                         .resume = resume,
                         .what = "plan",
                         .taken = take_line,
                         .data = st};
  st->sink = sweep_journal_open (&plan, error);
  return st->sink != NULL;
}

void
plan_store_drop (PlanStore *st)
{
  if (st->sink != NULL)
    st->sink->ops->drop (st->sink);
}

gboolean
plan_store_took (gpointer store, const PlanPoint *p, GError **error)
{
  PlanStore *st = store;
  if (st->sink == NULL)
    return TRUE;
  g_autoptr (GString) line = g_string_new (NULL);
  record_text (p, line);
  return st->sink->ops->put (st->sink, p->index, TRUE, line->str, line->len, error) &&
         st->sink->ops->flush (st->sink, error);
}

/* ---- shards ---- */

void
plan_store_shard_text (const PlanStore *st, const PlanResult *r, GString *out)
{
  guint n = 0;
  g_string_append_printf (out, MAGIC " %s %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT "\n",
                          st->identity, st->first + 1, st->step);
  for (guint i = 0; i < r->all->len; i++) {
    const PlanPoint *p = &g_array_index (r->all, PlanPoint, i);
    if (p->step_s > 0) {
      record_text (p, out);
      n++;
    }
  }
  g_string_append_printf (out, "end %u\n", n);
}

static gboolean wrong (const char *file, guint line, GError **error, const char *what);

static gboolean
wrong (const char *file, guint line, GError **error, const char *what)
{
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "%s:%u: %s", file, line, what);
  return FALSE;
}

/* The head: which shard; 0 with error. */
static guint64
shard_head (PlanStore *st, const char *file, const char *line, guint64 *of, GError **error)
{
  g_auto (GStrv) words = g_strsplit (line, " ", -1);
  guint64 i = 0;
  if (!g_str_has_prefix (line, MAGIC " ") || g_strv_length (words) != 5 ||
      !g_ascii_string_to_unsigned (words[4], 10, 1, 1000000, of, NULL) ||
      !g_ascii_string_to_unsigned (words[3], 10, 1, *of, &i, NULL)) {
    wrong (file, 1, error, "no shard of a plan (allowed: what plan --shard I/N -o FILE wrote)");
    return 0;
  }
  if (strcmp (words[2], st->identity) == 0)
    return i;
  wrong (file, 1, error,
         "is of another plan (the scenario, the profiles, --only or the version differ)");
  return 0;
}

static guint64
read_shard (PlanStore *st, const char *file, guint64 *of, GError **error)
{
  g_autofree char *text = NULL;
  if (!g_file_get_contents (file, &text, NULL, error))
    return 0;
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  guint n = g_strv_length (lines);
  guint64 which = shard_head (st, file, n > 0 ? lines[0] : "", of, error);
  if (which == 0)
    return 0;
  g_autofree char *end = g_strdup_printf ("end %u", n >= 3 ? n - 3 : 0);
  if (n < 3 || strcmp (lines[n - 2], end) != 0) {
    wrong (file, n, error, "the file is cut off");
    return 0;
  }
  for (guint i = 1; i + 2 < n; i++)
    if (!add_record (st, lines[i])) {
      wrong (file, i + 1, error, "no record of a layout, or one that is there twice");
      return 0;
    }
  return which;
}

gboolean
plan_store_merge (PlanStore *st, const char *const *files, GError **error)
{
  guint64 of = 0, n = 0;
  g_autofree gboolean *there = NULL;
  for (gsize k = 0; files[k] != NULL; k++, n++) {
    guint64 shards = 0, i = read_shard (st, files[k], &shards, error);
    if (i == 0)
      return FALSE;
    if (there == NULL) {
      of = shards;
      there = g_new0 (gboolean, of + 1);
    }
    if (shards != of || there[i])
      return wrong (files[k], 1, error,
                    shards != of ? "is of another number of shards" : "the shard is there twice");
    there[i] = TRUE;
  }
  if (n == of && n > 0)
    return TRUE;
  guint64 first = 1;
  while (there != NULL && first < of && there[first])
    first++;
  g_set_error (error, CLI_ERROR, CLI_ERROR_FAILED,
               "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
               " shards are missing, the first is %" G_GUINT64_FORMAT,
               of - n, of, first);
  return FALSE;
}
