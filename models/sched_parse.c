/* sched_parse: the text form of a table. The text may come from anyone: every number is bounded
 * before it is used and nothing is sized by a number that was read. */
#include "sched.h"

#include <string.h>

typedef struct {
  guint32 rank, first, count, line;
} Row;

typedef struct {
  const char *at, *end, *line_start;
  guint line;
  GArray *actions; /* SchedAction */
  GArray *rows;    /* Row */
  guint32 pipelines, stages, microbatches;
  gboolean prefixed; /* the first row had a rank number, so all need one */
  GError **error;
} Parser;

G_GNUC_PRINTF (3, 4)
static gboolean
fail_at (Parser *p, const char *where, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  g_autofree char *what = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (p->error, SCHED_ERROR, SCHED_ERROR_SYNTAX, "line %u, column %" G_GSIZE_FORMAT ": %s",
               p->line, (gsize)(where - p->line_start) + 1, what);
  return FALSE;
}

/* The start of the offending text, short and printable. */
static char *
excerpt (const Parser *p, const char *from)
{
  GString *s = g_string_new ("\"");
  int n = 0;

  for (; from < p->end && n < 24 && !strchr (" \t\r\n,#", *from ? *from : '?'); from++, n++) {
    if (g_ascii_isprint (*from))
      g_string_append_c (s, *from);
    else
      g_string_append_printf (s, "\\x%02x", (guint)(guchar)*from);
  }
  if (n == 0)
    g_string_assign (s, from < p->end && *from == ',' ? "\"," : "the end of the line");
  if (s->str[0] == '"')
    g_string_append_c (s, '"');
  return g_string_free (s, FALSE);
}

static gboolean
fail_expected (Parser *p, const char *where, const char *expected)
{
  g_autofree char *found = excerpt (p, where);

  return fail_at (p, where, "found %s, expected %s", found, expected);
}

static inline gboolean
at_char (const Parser *p, char c)
{
  return p->at < p->end && *p->at == c;
}

static gboolean
skip_word (Parser *p, const char *word)
{
  gsize n = strlen (word);

  if ((gsize)(p->end - p->at) < n || memcmp (p->at, word, n) != 0)
    return FALSE;
  p->at += n;
  return TRUE;
}

static void
skip_blanks (Parser *p, gboolean commas)
{
  while (p->at < p->end &&
         (*p->at == ' ' || *p->at == '\t' || *p->at == '\r' || (commas && *p->at == ',')))
    p->at++;
  if (at_char (p, '#'))
    while (p->at < p->end && *p->at != '\n')
      p->at++;
}

static gboolean
read_number (Parser *p, guint32 most, const char *what, guint32 *value)
{
  const char *start = p->at;
  guint64 n = 0;

  if (p->at == p->end || !g_ascii_isdigit (*p->at)) {
    g_autofree char *expected = g_strdup_printf ("a %s number", what);
    return fail_expected (p, start, expected);
  }
  for (; p->at < p->end && g_ascii_isdigit (*p->at); p->at++) {
    n = n * 10 + (guint64)(*p->at - '0');
    if (n > most)
      return fail_at (p, start, "%s number is too large (at most %u)", what, most);
  }
  *value = (guint32)n;
  return TRUE;
}

static gboolean
read_kind (Parser *p, SchedKind *kind)
{
  static const struct {
    char letter;
    SchedKind kind;
  } kinds[] = {{'F', SCHED_F}, {'B', SCHED_B}, {'I', SCHED_I}, {'W', SCHED_W}};
  static const char *const others[] = {"SEND_", "RECV_", "UNSHARD", "RESHARD", "REDUCE_GRAD"};
  const char *start = p->at;

  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    if (skip_word (p, others[i]))
      return fail_at (p, start,
                      "communication is not part of a table; give the actions of compute only");
  for (guint i = 0; p->at < p->end && i < G_N_ELEMENTS (kinds); i++)
    if (*p->at == kinds[i].letter) {
      *kind = kinds[i].kind;
      p->at++;
      return TRUE;
    }
  return fail_expected (p, start, "F, B, I or W");
}

static gboolean
read_action (Parser *p, gboolean pair, SchedKind *kind)
{
  const char *start = p->at;
  guint32 stage, microbatch;

  if (!read_number (p, G_MAXUINT16 - 1, "stage", &stage) || !read_kind (p, kind) ||
      !read_number (p, G_MAXUINT32 - 1, "micro-batch", &microbatch))
    return FALSE;
  if (p->actions->len == SCHED_MAX_ACTIONS)
    return fail_at (p, start, "more than %u actions", SCHED_MAX_ACTIONS);

  SchedAction a = {microbatch, (guint16)stage, (guint8)*kind, pair ? 1 : 0};
  g_array_append_val (p->actions, a);
  p->stages = MAX (p->stages, stage + 1);
  p->microbatches = MAX (p->microbatches, microbatch + 1);
  return TRUE;
}

/* "(0F3;1B1)OVERLAP_F_B" with p->at on the parenthesis. */
static gboolean
read_pair (Parser *p)
{
  SchedKind kind;
  const char *start;

  p->at++;
  skip_blanks (p, FALSE);
  start = p->at;
  if (!read_action (p, TRUE, &kind))
    return FALSE;
  if (kind != SCHED_F)
    return fail_expected (p, start, "a forward (F) first in the pair");
  skip_blanks (p, FALSE);
  if (!at_char (p, ';'))
    return fail_expected (p, p->at, "';' between the two actions of a pair");
  p->at++;
  skip_blanks (p, FALSE);
  start = p->at;
  if (!read_action (p, FALSE, &kind))
    return FALSE;
  if (kind != SCHED_B && kind != SCHED_I)
    return fail_expected (p, start, "a backward (B or I) second in the pair");
  skip_blanks (p, FALSE);
  if (!at_char (p, ')'))
    return fail_expected (p, p->at, "')' after two actions");
  p->at++;
  start = p->at;
  if (!skip_word (p, "OVERLAP_F_B"))
    return fail_expected (p, start, "OVERLAP_F_B after the pair");
  return TRUE;
}

/* "rank N:" or "N:"; sets *rank and *found. Restores the place when the line has no prefix. */
static gboolean
read_prefix (Parser *p, gboolean *found, guint32 *rank)
{
  const char *start = p->at, *scan;
  gboolean word = skip_word (p, "rank");

  skip_blanks (p, FALSE);
  for (scan = p->at; scan < p->end && g_ascii_isdigit (*scan);)
    scan++;
  while (scan < p->end && (*scan == ' ' || *scan == '\t'))
    scan++;
  *found = word || (scan < p->end && *scan == ':');
  if (!*found) {
    p->at = start;
    return TRUE;
  }
  if (!read_number (p, G_MAXUINT16 - 1, "rank", rank))
    return FALSE;
  skip_blanks (p, FALSE);
  if (!at_char (p, ':'))
    return fail_expected (p, p->at, "':' after the rank");
  p->at++;
  return TRUE;
}

static gboolean
read_pipelines (Parser *p)
{
  const char *start = p->at;

  if (p->rows->len > 0)
    return fail_at (p, start, "\"pipelines\" must come before the first rank");
  skip_blanks (p, FALSE);
  if (at_char (p, ':'))
    p->at++;
  skip_blanks (p, FALSE);
  start = p->at;
  if (!read_number (p, 64, "pipelines", &p->pipelines))
    return FALSE;
  if (p->pipelines == 0)
    return fail_at (p, start, "at least 1 pipeline");
  skip_blanks (p, FALSE);
  if (p->at < p->end && *p->at != '\n')
    return fail_expected (p, p->at, "the end of the line");
  return TRUE;
}

static gboolean
read_actions (Parser *p)
{
  for (gboolean first = TRUE;; first = FALSE) {
    const char *before = p->at;
    SchedKind kind;

    skip_blanks (p, TRUE);
    if (p->at == p->end || *p->at == '\n')
      return TRUE;
    if (!first && before == p->at)
      return fail_expected (p, p->at, "a blank or a comma between actions");
    if (at_char (p, '(') ? !read_pair (p) : !read_action (p, FALSE, &kind))
      return FALSE;
  }
}

static gboolean
read_line (Parser *p)
{
  const char *start;
  gboolean found;
  Row row = {p->rows->len, p->actions->len, 0, p->line};

  skip_blanks (p, TRUE);
  if (p->at == p->end || *p->at == '\n')
    return TRUE;
  if (skip_word (p, "pipelines"))
    return read_pipelines (p);
  start = p->at;
  if (!read_prefix (p, &found, &row.rank))
    return FALSE;
  if (p->rows->len == 0)
    p->prefixed = found;
  else if (found != p->prefixed)
    return fail_at (p, start, "either every line has a rank number or none has");
  if (p->rows->len == G_MAXUINT16)
    return fail_at (p, start, "more than %u ranks", G_MAXUINT16);
  if (!read_actions (p))
    return FALSE;
  row.count = p->actions->len - row.first;
  g_array_append_val (p->rows, row);
  return TRUE;
}

/* Rows may come in any order; each rank 0 … n-1 must come once. */
static gboolean
order_rows (Parser *p, Row *sorted)
{
  g_autofree gboolean *seen = g_new0 (gboolean, p->rows->len + 1);

  for (guint i = 0; i < p->rows->len; i++) {
    const Row *row = &g_array_index (p->rows, Row, i);

    p->line = row->line;
    p->line_start = p->at;
    if (row->rank < p->rows->len && seen[row->rank])
      return fail_at (p, p->at, "rank %u has two lines", row->rank);
    if (row->rank < p->rows->len) {
      seen[row->rank] = TRUE;
      sorted[row->rank] = *row;
    }
  }
  for (guint r = 0; r < p->rows->len; r++)
    if (!seen[r])
      return fail_at (p, p->at, "rank %u is missing (%u lines, so ranks 0 to %u)", r, p->rows->len,
                      p->rows->len - 1);
  return TRUE;
}

static SchedTable *
build_table (Parser *p)
{
  g_autofree Row *rows = g_new0 (Row, p->rows->len + 1);

  if (p->actions->len == 0) {
    fail_at (p, p->at, "the table has no actions");
    return NULL;
  }
  if (!order_rows (p, rows))
    return NULL;
  if (p->stages % p->pipelines || p->microbatches % p->pipelines) {
    fail_at (p, p->at, "%u pipelines do not divide %u stages and %u micro-batches", p->pipelines,
             p->stages, p->microbatches);
    return NULL;
  }

  SchedTable *t = g_new0 (SchedTable, 1);
  const SchedAction *from = (const SchedAction *)(void *)p->actions->data;
  guint32 n = 0;

  t->ranks = p->rows->len;
  t->stages = p->stages;
  t->microbatches = p->microbatches;
  t->pipelines = p->pipelines;
  t->first = g_new0 (guint32, (gsize)t->ranks + 1);
  t->actions = g_new (SchedAction, p->actions->len);
  t->stage_rank = g_new (guint16, t->stages);
  memset (t->stage_rank, 0xff, t->stages * sizeof t->stage_rank[0]); /* nobody's, until seen */
  for (guint r = 0; r < t->ranks; r++) {
    t->first[r] = n;
    for (guint32 i = 0; i < rows[r].count; i++) {
      const SchedAction *a = &from[rows[r].first + i];

      t->actions[n++] = *a;
      if (t->stage_rank[a->stage] == G_MAXUINT16)
        t->stage_rank[a->stage] = (guint16)r;
    }
  }
  t->first[t->ranks] = n;
  return t;
}

SchedTable *
sched_parse (const char *text, gssize len, GError **error)
{
  Parser p = {.at = text, .line_start = text, .line = 1, .pipelines = 1, .error = error};
  SchedTable *t = NULL;

  p.end = text + (len < 0 ? strlen (text) : (gsize)len);
  p.actions = g_array_new (FALSE, FALSE, sizeof (SchedAction));
  p.rows = g_array_new (FALSE, FALSE, sizeof (Row));
  while (read_line (&p)) {
    if (p.at == p.end) {
      t = build_table (&p);
      break;
    }
    p.at++; /* the newline */
    p.line++;
    p.line_start = p.at;
  }
  g_array_free (p.actions, TRUE);
  g_array_free (p.rows, TRUE);
  return t;
}
