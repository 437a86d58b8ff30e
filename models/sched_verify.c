/* sched_verify: is a table complete, in order and free of deadlock; and the dry run that says how
 * long it takes with given costs. Everything is O(actions), so that tables can be checked on every
 * run. */
#include "sched.h"

#include <string.h>

enum { DONE_F = 1, DONE_B = 2, DONE_I = 4, DONE_W = 8 };

/* Cells are (stage, micro-batch of its pipeline); an action's cell is base[stage] + micro-batch.
 * The bases save a division an action. */
static gsize *
cell_bases (const SchedTable *t)
{
  gsize *base = g_new (gsize, t->stages);

  for (guint s = 0; s < t->stages; s++)
    base[s] = (gsize)s * sched_pipeline_microbatches (t) - sched_first_microbatch (t, s);
  return base;
}

/* "… 0F1 [0B0] 0F2 …": the neighbours of an action, to find it by eye. */
static char *
around (const SchedTable *t, guint rank, guint32 index)
{
  guint32 first = t->first[rank], last = t->first[rank + 1];
  guint32 from = index - first > 2 ? index - 2 : first;
  guint32 to = last - index > 3 ? index + 3 : last;
  GString *s = g_string_new (from > first ? "… " : "");

  for (guint32 i = from; i < to; i++) {
    char text[SCHED_ACTION_CHARS];

    sched_action_text (&t->actions[i], text);
    g_string_append_printf (s, i == index ? "[%s]%s" : "%s%s", text, i + 1 < to ? " " : "");
  }
  g_string_append (s, to < last ? " …" : "");
  return g_string_free (s, FALSE);
}

G_GNUC_PRINTF (5, 6)
static gboolean
fail_action (GError **error, const SchedTable *t, guint rank, guint32 index, const char *format,
             ...)
{
  va_list args;
  char text[SCHED_ACTION_CHARS];

  va_start (args, format);
  g_autofree char *what = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *where = around (t, rank, index);
  sched_action_text (&t->actions[index], text);
  g_set_error (error, SCHED_ERROR, SCHED_ERROR_ILLEGAL, "rank %u, action %u, %s: %s (in: %s)", rank,
               index - t->first[rank] + 1, text, what, where);
  return FALSE;
}

static gboolean
check_shape (const SchedTable *t, GError **error)
{
  g_assert (t->ranks > 0 && t->pipelines > 0);
  if (t->stages == 0 || t->stages > G_MAXUINT16 || t->microbatches == 0 ||
      t->stages % t->pipelines || t->microbatches % t->pipelines) {
    g_set_error (error, SCHED_ERROR, SCHED_ERROR_ILLEGAL,
                 "%u stages and %u micro-batches do not split into %u pipelines", t->stages,
                 t->microbatches, t->pipelines);
    return FALSE;
  }
  for (guint r = 0; r < t->ranks; r++)
    if (t->first[r] == t->first[r + 1]) {
      g_set_error (error, SCHED_ERROR, SCHED_ERROR_ILLEGAL, "rank %u has no actions", r);
      return FALSE;
    }
  return TRUE;
}

static gboolean
check_place (const SchedTable *t, guint rank, guint32 i, GError **error)
{
  const SchedAction *a = &t->actions[i];
  gboolean follows = i + 1 < t->first[rank + 1];

  if (a->kind > SCHED_W || a->stage >= t->stages || a->microbatch >= t->microbatches)
    return fail_action (error, t, rank, i, "outside the table (%u stages, %u micro-batches)",
                        t->stages, t->microbatches);
  guint low = sched_first_microbatch (t, a->stage), n = sched_pipeline_microbatches (t);
  if (a->microbatch < low || a->microbatch - low >= n)
    return fail_action (error, t, rank, i,
                        "stage %u is of the pipeline that takes micro-batches %u to %u", a->stage,
                        low, low + n - 1);
  if (t->stage_rank[a->stage] != rank)
    return fail_action (error, t, rank, i, "stage %u belongs to rank %u, a stage has one rank",
                        a->stage, t->stage_rank[a->stage]);
  if (a->pair && (a->kind != SCHED_F || !follows || a[1].pair ||
                  (a[1].kind != SCHED_B && a[1].kind != SCHED_I)))
    return fail_action (error, t, rank, i, "a pair is a forward and then a backward (B or I)");
  if (a->pair && a[1].stage == a->stage && a[1].microbatch == a->microbatch)
    return fail_action (error, t, rank, i, "a pair cannot hold a forward and its own backward");
  return TRUE;
}

/* Smallest micro-batch of stage that no action with a kind of mask has. It is at most the number of
 * such actions, so this works for tables that claim absurd sizes. */
static guint
smallest_missing (const SchedTable *t, guint stage, guint mask, guint32 have)
{
  g_autofree guint8 *seen = g_new0 (guint8, (gsize)have + 1);
  guint low = sched_first_microbatch (t, stage), k = 0;

  for (guint32 i = 0; i < t->first[t->ranks]; i++) {
    const SchedAction *a = &t->actions[i];

    if (a->stage == stage && ((1u << a->kind) & mask) && a->microbatch - low < have)
      seen[a->microbatch - low] = 1;
  }
  while (seen[k])
    k++;
  return low + k;
}

/* Too few actions for the claimed size: names one that is missing. */
static gboolean
fail_sparse (const SchedTable *t, GError **error)
{
  static const guint masks[2] = {1u << SCHED_F, (1u << SCHED_B) | (1u << SCHED_I)};
  g_autofree guint32 *have = g_new0 (guint32, (gsize)t->stages * 2);

  for (guint32 i = 0; i < t->first[t->ranks]; i++)
    for (guint pass = 0; pass < 2; pass++)
      if ((1u << t->actions[i].kind) & masks[pass])
        have[t->actions[i].stage * 2u + pass]++;
  for (guint s = 0; s < t->stages; s++)
    for (guint pass = 0; pass < 2; pass++)
      if (have[s * 2 + pass] < sched_pipeline_microbatches (t)) {
        g_set_error (error, SCHED_ERROR, SCHED_ERROR_ILLEGAL,
                     "incomplete: %u stages and %u micro-batches, but no rank has %u%s%u",
                     t->stages, t->microbatches, s, pass ? "B" : "F",
                     smallest_missing (t, s, masks[pass], have[s * 2 + pass]));
        return FALSE;
      }
  g_assert_not_reached (); /* fewer than two actions a cell: some stage is short of one */
}

/* Order within the row: what the action needs on its own rank has run, and it has not. */
static gboolean
check_order (const SchedTable *t, guint rank, guint32 i, const gsize *base, guint8 *done,
             GError **error)
{
  const SchedAction *a = &t->actions[i];
  guint8 *cell = &done[base[a->stage] + a->microbatch];
  guint8 bit = (guint8)(1u << a->kind);
  gboolean back = a->kind == SCHED_B || a->kind == SCHED_I;

  G_STATIC_ASSERT (1 << SCHED_F == DONE_F && 1 << SCHED_B == DONE_B && 1 << SCHED_I == DONE_I &&
                   1 << SCHED_W == DONE_W);
  if (*cell & bit)
    return fail_action (error, t, rank, i, "is there twice");
  if (back && !(*cell & DONE_F))
    return fail_action (error, t, rank, i, "comes before its forward %uF%u", a->stage,
                        a->microbatch);
  if (back && *cell & (DONE_B | DONE_I))
    return fail_action (error, t, rank, i, "has its backward twice (B is I and W together)");
  if (a->kind == SCHED_W && *cell & DONE_B)
    return fail_action (error, t, rank, i, "follows a full backward (B is I and W together)");
  if (a->kind == SCHED_W && !(*cell & DONE_I))
    return fail_action (error, t, rank, i, "comes before its input gradient %uI%u", a->stage,
                        a->microbatch);
  *cell |= bit;
  return TRUE;
}

static gboolean
check_complete (const SchedTable *t, const guint8 *done, GError **error)
{
  guint n = sched_pipeline_microbatches (t);

  for (guint s = 0; s < t->stages; s++)
    for (guint k = 0; k < n; k++) {
      guint8 d = done[(gsize)s * n + k];

      if (d == (DONE_F | DONE_B) || d == (DONE_F | DONE_I | DONE_W))
        continue;
      const char *kind = !(d & DONE_F) ? "F" : d & DONE_I ? "W" : "B";
      if (t->stage_rank[s] >= t->ranks)
        g_set_error (error, SCHED_ERROR, SCHED_ERROR_ILLEGAL, "incomplete: stage %u is on no rank",
                     s);
      else
        g_set_error (error, SCHED_ERROR, SCHED_ERROR_ILLEGAL, "incomplete: rank %u has no %u%s%u",
                     t->stage_rank[s], s, kind, sched_first_microbatch (t, s) + k);
      return FALSE;
    }
  return TRUE;
}

/* --- dry run --- */

enum { EDGE_FIRST = 1, EDGE_LAST = 2 };

typedef struct {
  const SchedTable *t;
  const SchedCosts *costs;
  SchedRun *run;
  gint64 *f_end, *b_end; /* by cell; -1: not yet */
  gint64 *free_at;       /* by rank: when its last action ended */
  guint32 *at;           /* by rank: next action */
  guint32 *ready;        /* stack of ranks to look at */
  guint8 *queued;        /* by rank: is on the stack */
  guint n_ready;
  const gsize *base; /* by stage, see cell_bases */
  guint8 *edge;      /* by stage: EDGE_FIRST and EDGE_LAST part of the model */
} Dry;

static inline gint64
add_sat (gint64 a, gint64 b)
{
  gint64 sum;

  return __builtin_add_overflow (a, b, &sum) ? G_MAXINT64 : sum;
}

/* The stage whose output a needs, or -1. */
static inline int
input_stage (const Dry *d, const SchedAction *a)
{
  if (a->kind == SCHED_F)
    return d->edge[a->stage] & EDGE_FIRST ? -1 : a->stage - 1;
  return a->kind == SCHED_W || d->edge[a->stage] & EDGE_LAST ? -1 : a->stage + 1;
}

/* When the input of a is on its rank; -1 when that has not been computed. */
static inline gint64
input_ready (const Dry *d, const SchedAction *a)
{
  int from = input_stage (d, a);
  gint64 end;

  if (from < 0)
    return 0;
  end = (a->kind == SCHED_F ? d->f_end : d->b_end)[d->base[from] + a->microbatch];
  if (end < 0 || d->t->stage_rank[from] == d->t->stage_rank[a->stage])
    return end;
  return add_sat (end, d->costs->p2p);
}

static inline gint64
cost_of (const Dry *d, const SchedAction *a)
{
  return d->costs->stage ? d->costs->stage[a->stage][a->kind] : d->costs->kind[a->kind];
}

/* Notes the end of a and wakes the rank that may wait for it. */
static inline void
complete (Dry *d, const SchedAction *a, gint64 end)
{
  guint next;

  if (a->kind == SCHED_W)
    return;
  (a->kind == SCHED_F ? d->f_end : d->b_end)[d->base[a->stage] + a->microbatch] = end;
  if (d->edge[a->stage] & (a->kind == SCHED_F ? EDGE_LAST : EDGE_FIRST))
    return;
  next = d->t->stage_rank[a->kind == SCHED_F ? a->stage + 1 : a->stage - 1];
  if (!d->queued[next]) {
    d->queued[next] = 1;
    d->ready[d->n_ready++] = next;
  }
}

/* Runs rank until it must wait or is done. */
static void
run_rank (Dry *d, guint rank)
{
  const SchedTable *t = d->t;
  guint32 i = d->at[rank], last = t->first[rank + 1];

  while (i < last) {
    const SchedAction *a = &t->actions[i];
    gint64 start = input_ready (d, a), took = cost_of (d, a);

    if (start < 0)
      break;
    if (a->pair) {
      gint64 second = input_ready (d, a + 1), other = cost_of (d, a + 1);

      if (second < 0)
        break;
      start = MAX (start, second);
      took = MAX (add_sat (took, other) - d->costs->pair_saved, MAX (took, other));
    }
    start = MAX (start, d->free_at[rank]);
    d->free_at[rank] = add_sat (start, took);
    if (d->run->busy)
      d->run->busy[rank] = add_sat (d->run->busy[rank], took);
    if (d->run->start && i == t->first[rank])
      d->run->start[rank] = start;
    complete (d, a, d->free_at[rank]);
    if (a->pair)
      complete (d, a + 1, d->free_at[rank]);
    i += 1 + a->pair;
  }
  d->at[rank] = i;
}

/* Names the first rank that stands, what it waits for and where the other stands. */
static gboolean
fail_deadlock (const Dry *d, GError **error)
{
  const SchedTable *t = d->t;
  guint rank = 0;

  while (d->at[rank] == t->first[rank + 1])
    rank++;
  guint32 i = d->at[rank];
  const SchedAction *a = &t->actions[i];
  if (input_ready (d, a) >= 0) {
    g_assert (a->pair); /* its second action is what waits */
    a++;
    i++;
  }
  guint from = (guint)input_stage (d, a), owner = t->stage_rank[from];
  guint32 stands = d->at[owner];
  const char *kind = a->kind == SCHED_F ? "F" : "B";
  if (owner == rank)
    return fail_action (error, t, rank, i,
                        "deadlock: waits for %u%s%u, which is not before it on the same rank", from,
                        kind, a->microbatch);
  g_assert (stands < t->first[owner + 1]); /* complete, so it is still to come */
  char text[SCHED_ACTION_CHARS];
  sched_action_text (&t->actions[stands], text);
  return fail_action (error, t, rank, i,
                      "deadlock: waits for %u%s%u of rank %u, which itself waits at action %u, %s",
                      from, kind, a->microbatch, owner, stands - t->first[owner] + 1, text);
}

gboolean
sched_dry_run (const SchedTable *t, const SchedCosts *costs, SchedRun *run, GError **error)
{
  gsize cells = (gsize)t->stages * sched_pipeline_microbatches (t);
  g_autofree gint64 *ends = g_new (gint64, 2 * cells);
  g_autofree gint64 *free_at = g_new0 (gint64, t->ranks);
  g_autofree guint32 *words = g_new (guint32, 2 * (gsize)t->ranks);
  g_autofree guint8 *queued = g_new (guint8, t->ranks);
  g_autofree gsize *base = cell_bases (t);
  g_autofree guint8 *edge = g_new0 (guint8, t->stages);
  Dry d = {.t = t,
           .costs = costs,
           .run = run,
           .f_end = ends,
           .b_end = ends + cells,
           .free_at = free_at,
           .at = words,
           .ready = words + t->ranks,
           .queued = queued,
           .n_ready = t->ranks,
           .base = base,
           .edge = edge};
  gboolean stuck = FALSE;

  memset (ends, 0xff, 2 * cells * sizeof ends[0]);
  memset (queued, 1, t->ranks);
  for (guint s = 0; s < t->stages; s += sched_depth (t)) {
    edge[s] |= EDGE_FIRST;
    edge[s + sched_depth (t) - 1] |= EDGE_LAST;
  }
  for (guint r = 0; r < t->ranks; r++) {
    d.at[r] = t->first[r];
    d.ready[r] = t->ranks - 1 - r; /* rank 0 on top: it has the first work */
    if (run->busy)
      run->busy[r] = 0;
  }
  while (d.n_ready > 0) {
    guint rank = d.ready[--d.n_ready];

    /* Off the stack only after it ran: it wakes itself by going on. */
    run_rank (&d, rank);
    queued[rank] = 0;
  }
  run->makespan = 0;
  for (guint r = 0; r < t->ranks; r++) {
    stuck = stuck || d.at[r] < t->first[r + 1];
    run->makespan = MAX (run->makespan, free_at[r]);
    if (run->end)
      run->end[r] = free_at[r];
  }
  return stuck ? fail_deadlock (&d, error) : TRUE;
}

gboolean
sched_verify (const SchedTable *t, GError **error)
{
  static const SchedCosts unit = {.kind = {1, 1, 1, 1}};
  SchedRun run = {0, NULL, NULL, NULL};

  if (!check_shape (t, error))
    return FALSE;
  for (guint r = 0; r < t->ranks; r++)
    for (guint32 i = t->first[r]; i < t->first[r + 1]; i++)
      if (!check_place (t, r, i, error))
        return FALSE;

  guint64 cells = (guint64)t->stages * sched_pipeline_microbatches (t);
  if (cells * 2 > t->first[t->ranks])
    return fail_sparse (t, error);

  g_autofree gsize *base = cell_bases (t);
  g_autofree guint8 *done = g_new0 (guint8, cells);
  for (guint r = 0; r < t->ranks; r++)
    for (guint32 i = t->first[r]; i < t->first[r + 1]; i++)
      if (!check_order (t, r, i, base, done, error))
        return FALSE;
  return check_complete (t, done, error) && sched_dry_run (t, &unit, &run, error);
}
