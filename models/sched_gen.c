/* sched_gen: the generators. Each writes one row from closed counts, so a table costs O(actions).
 * Sources: GPipe (Huang 2019), 1F1B and interleaved (Narayanan 2021), breadth-first (Lamy-Poirier
 * 2211.05953), ZB-H1 and ZB-H2 (Qi 2401.10241), ZB-V (Qi 2405.15362), DualPipe (2412.19437). */
#include "sched.h"

#include <string.h>

typedef struct {
  guint pp, vpp, m, rank;
} Shape;

/* Writes rank's row at a and returns the place after it. */
typedef SchedAction *(*RowFunc) (const Shape *s, SchedAction *a);

/* Which micro-batch counts a generator takes: fills the nearest legal ones, returns if m is one. */
typedef gboolean (*CountFunc) (guint pp, guint m, guint64 *below, guint64 *above);

typedef struct {
  RowFunc row;
  CountFunc count;  /* NULL: any */
  guint8 vpp;       /* the one legal value; 0: any */
  guint8 per_cell;  /* actions per stage and micro-batch at most */
  guint8 pipelines; /* see SchedTable */
  gboolean even_pp; /* needs an even number of ranks */
  gboolean turns;   /* stage s >= pp sits on rank 2*pp-1-s (V or two-way), else on s % pp */
} Generator;

static inline SchedAction *
put (SchedAction *a, guint stage, SchedKind kind, guint microbatch)
{
  *a = (SchedAction){microbatch, (guint16)stage, (guint8)kind, 0};
  return a + 1;
}

static inline SchedAction *
put_pair (SchedAction *a, guint f_stage, guint f_mb, guint b_stage, guint b_mb)
{
  a[0] = (SchedAction){f_mb, (guint16)f_stage, SCHED_F, 1};
  return put (a + 1, b_stage, SCHED_B, b_mb);
}

/* GPipe for one chunk, looped breadth-first for several: all micro-batches of a chunk, then the
 * next chunk; backward in the opposite chunk order. */
static SchedAction *
row_breadth_first (const Shape *s, SchedAction *a)
{
  for (guint v = 0; v < s->vpp; v++)
    for (guint k = 0; k < s->m; k++)
      a = put (a, v * s->pp + s->rank, SCHED_F, k);
  for (guint v = s->vpp; v-- > 0;)
    for (guint k = 0; k < s->m; k++)
      a = put (a, v * s->pp + s->rank, SCHED_B, k);
  return a;
}

static SchedAction *
row_1f1b (const Shape *s, SchedAction *a)
{
  guint warm = MIN (s->m, s->pp - s->rank - 1);

  for (guint k = 0; k < warm; k++)
    a = put (a, s->rank, SCHED_F, k);
  for (guint k = 0; k < s->m; k++) {
    if (k + warm < s->m)
      a = put (a, s->rank, SCHED_F, k + warm);
    a = put (a, s->rank, SCHED_B, k);
  }
  return a;
}

/* 1F1B with the backward split: warm forwards, then F I, and W lag micro-batches behind I. What
 * fills a bubble is the lag: the later ranks, which wait at the end, keep W for then. */
static SchedAction *
row_zero_bubble (const Shape *s, SchedAction *a, guint warm, guint lag)
{
  warm = MIN (s->m, warm);
  lag = MIN (s->m, lag);
  for (guint k = 0; k < warm; k++)
    a = put (a, s->rank, SCHED_F, k);
  for (guint k = 0; k < s->m; k++) {
    if (k + warm < s->m)
      a = put (a, s->rank, SCHED_F, k + warm);
    a = put (a, s->rank, SCHED_I, k);
    if (k >= lag)
      a = put (a, s->rank, SCHED_W, k - lag);
  }
  for (guint k = s->m - lag; k < s->m; k++)
    a = put (a, s->rank, SCHED_W, k);
  return a;
}

/* In flight p - rank as in 1F1B, plus rank whose W is still owed: pp on every rank. */
static SchedAction *
row_zb_h1 (const Shape *s, SchedAction *a)
{
  return row_zero_bubble (s, a, s->pp - s->rank - 1, s->rank);
}

/* Enough forwards to last until the first I comes back (2(pp-rank)-1), W 2*rank behind: 2pp-1 on
 * every rank. */
static SchedAction *
row_zb_h2 (const Shape *s, SchedAction *a)
{
  return row_zero_bubble (s, a, 2 * (s->pp - s->rank - 1), 2 * s->rank);
}

/* Walks (chunk, micro-batch) as Megatron does: pp micro-batches of chunk 0, the same of chunk 1, …
 */
typedef struct {
  guint chunk, base, lane;
} Walk;

static inline void
walk_next (Walk *w, const Shape *s)
{
  if (++w->lane < s->pp)
    return;
  w->lane = 0;
  if (++w->chunk < s->vpp)
    return;
  w->chunk = 0;
  w->base += s->pp;
}

static SchedAction *
row_interleaved (const Shape *s, SchedAction *a)
{
  if (s->vpp == 1)
    return row_1f1b (s, a);

  guint total = s->m * s->vpp;
  guint warm = MIN (total, (s->pp - s->rank - 1) * 2 + (s->vpp - 1) * s->pp);
  Walk f = {0, 0, 0}, b = {0, 0, 0};

  for (guint k = 0; k < warm + total; k++) {
    if (k < total) {
      a = put (a, f.chunk * s->pp + s->rank, SCHED_F, f.base + f.lane);
      walk_next (&f, s);
    }
    if (k >= warm) {
      a = put (a, (s->vpp - 1 - b.chunk) * s->pp + s->rank, SCHED_B, b.base + b.lane);
      walk_next (&b, s);
    }
  }
  return a;
}

/* Next action of one kind on one of the two chunks of a V: micro-batches in order. Those beyond the
 * last are skipped, which is how a V made for more micro-batches serves fewer. */
typedef struct {
  guint stage[2];
  guint f[2], b[2], w[2];
  guint m, offset[2];
} Vee;

static inline SchedAction *
vee_put (Vee *v, SchedAction *a, guint chunk, SchedKind kind)
{
  guint *n = kind == SCHED_F ? v->f : kind == SCHED_W ? v->w : v->b;
  guint k = n[chunk]++;

  return k < v->m ? put (a, v->stage[chunk], kind, v->offset[chunk] + k) : a;
}

static SchedAction *
row_zb_v (const Shape *s, SchedAction *a)
{
  /* The shape below needs 2pp-1 micro-batches; fewer are a part of it. */
  guint n = MAX (s->m, 2 * s->pp - 1);
  guint left = s->pp - s->rank;
  Vee v = {.stage = {s->rank, 2 * s->pp - 1 - s->rank}, .m = s->m};

  for (guint i = 0; i < 2 * left - 1; i++)
    a = vee_put (&v, a, 0, SCHED_F);
  for (guint i = 0; i < s->rank; i++) {
    a = vee_put (&v, a, 1, SCHED_F);
    a = vee_put (&v, a, 0, SCHED_F);
  }
  for (guint i = 0; i < left; i++) {
    a = vee_put (&v, a, 1, SCHED_F);
    a = vee_put (&v, a, 1, SCHED_I);
    a = vee_put (&v, a, 1, SCHED_W);
  }
  while (v.f[1] < n) {
    if (v.f[0] < n)
      a = vee_put (&v, a, 0, SCHED_F);
    a = vee_put (&v, a, 0, SCHED_I);
    a = vee_put (&v, a, 0, SCHED_W);
    a = vee_put (&v, a, 1, SCHED_F);
    a = vee_put (&v, a, 1, SCHED_I);
    a = vee_put (&v, a, 1, SCHED_W);
  }
  for (guint i = 0; i < s->rank; i++) {
    a = vee_put (&v, a, 0, SCHED_I);
    a = vee_put (&v, a, 1, SCHED_I);
  }
  for (guint i = 0; i < left; i++) {
    a = vee_put (&v, a, 0, SCHED_I);
    a = vee_put (&v, a, 0, SCHED_W);
  }
  while (v.w[1] < n)
    a = vee_put (&v, a, 1, SCHED_W);
  while (v.w[0] < n)
    a = vee_put (&v, a, 0, SCHED_W);
  return a;
}

static inline SchedAction *
vee_pair (Vee *v, SchedAction *a, guint f_chunk, guint b_chunk)
{
  guint f = v->f[f_chunk]++, b = v->b[b_chunk]++;

  return put_pair (a, v->stage[f_chunk], v->offset[f_chunk] + f, v->stage[b_chunk],
                   v->offset[b_chunk] + b);
}

/* W of the oldest I of this row that still owes it; *cursor never goes back, so the row stays O(n).
 */
static inline SchedAction *
put_oldest_w (SchedAction *a, SchedAction **cursor)
{
  while ((*cursor)->kind != SCHED_I)
    (*cursor)++;
  a = put (a, (*cursor)->stage, SCHED_W, (*cursor)->microbatch);
  (*cursor)++;
  return a;
}

/* One rank of a V of `ranks` ranks in DualPipe's order; v->m micro-batches a chunk, at least
 * 2*ranks. Eight phases: F0 | F0 F1 | I1 W F1 | pairs F0+B1, F1+B0 | B1, F1+B0 | B1 B0 | W I0 | W.
 * Half-way through the sixth the backward splits, so that W can fill the last bubbles. */
static SchedAction *
dual_row (Vee *v, guint ranks, guint rank, SchedAction *a)
{
  guint outer = ranks - rank - 1; /* ranks between this one and the turn of the V */
  guint inner = rank + 1;
  SchedAction *cursor = a;

  for (guint i = 0; i < 2 * outer; i++)
    a = vee_put (v, a, 0, SCHED_F);
  for (guint i = 0; i < inner; i++) {
    a = vee_put (v, a, 0, SCHED_F);
    a = vee_put (v, a, 1, SCHED_F);
  }
  for (guint i = 0; i < outer; i++) {
    a = vee_put (v, a, 1, SCHED_I);
    a = put_oldest_w (a, &cursor);
    a = vee_put (v, a, 1, SCHED_F);
  }
  for (guint i = 0; i < v->m - 2 * ranks + inner; i++) {
    if (i == 0 && outer == 0) { /* at the turn the first two apart let the others start earlier */
      a = vee_put (v, a, 0, SCHED_F);
      a = vee_put (v, a, 1, SCHED_B);
    } else {
      a = vee_pair (v, a, 0, 1);
    }
    a = vee_pair (v, a, 1, 0);
  }
  for (guint i = 0; i < outer; i++) {
    a = vee_put (v, a, 1, SCHED_B);
    a = vee_pair (v, a, 1, 0);
  }
  for (guint i = 0; i < 2 * inner; i++)
    a = vee_put (v, a, i % 2 == 0, i >= inner ? SCHED_I : SCHED_B);
  for (guint i = 0; i < outer; i++) {
    a = put_oldest_w (a, &cursor);
    a = vee_put (v, a, 0, SCHED_I);
  }
  for (guint i = 0; i < inner; i++)
    a = put_oldest_w (a, &cursor);
  return a;
}

static SchedAction *
row_dualpipev (const Shape *s, SchedAction *a)
{
  Vee v = {.stage = {s->rank, 2 * s->pp - 1 - s->rank}, .m = s->m};

  return dual_row (&v, s->pp, s->rank, a);
}

/* Two V's of pp/2 ranks, mirrored: rank r and rank pp-1-r hold the same two parts, and what turns
 * back in a V crosses to the other half instead. */
static SchedAction *
row_dualpipe (const Shape *s, SchedAction *a)
{
  guint back = s->rank >= s->pp / 2; /* its near pipeline is the second */
  guint near = back ? s->pp - 1 - s->rank : s->rank;
  guint half = s->m / 2;
  Vee v = {.m = half};

  v.stage[0] = back * s->pp + near;
  v.stage[1] = (1 - back) * s->pp + s->pp - 1 - near;
  v.offset[0] = back * half;
  v.offset[1] = (1 - back) * half;
  return dual_row (&v, s->pp / 2, near, a);
}

static gboolean
count_multiple (guint pp, guint m, guint64 *below, guint64 *above)
{
  *below = MAX (m / pp * (guint64)pp, pp);
  *above = m < pp ? pp : *below + pp;
  return m % pp == 0;
}

static gboolean
count_dual (guint pp, guint m, guint64 *below, guint64 *above)
{
  *below = MAX (m - m % 2, 2 * (guint64)pp);
  *above = m < 2 * (guint64)pp ? *below : *below + 2;
  return m % 2 == 0 && m >= 2 * (guint64)pp;
}

static gboolean
count_dualv (guint pp, guint m, guint64 *below, guint64 *above)
{
  *below = *above = 2 * (guint64)pp;
  return m >= 2 * (guint64)pp;
}

const char *const sched_names[] = {"gpipe", "1f1b", "interleaved", "bfs",       "zb-h1",
                                   "zb-h2", "zb-v", "dualpipe",    "dualpipev", NULL};

/* In the order of sched_names. */
static const Generator generators[] = {
    {row_breadth_first, NULL, 1, 2, 1, FALSE, FALSE},
    {row_1f1b, NULL, 1, 2, 1, FALSE, FALSE},
    {row_interleaved, count_multiple, 0, 2, 1, FALSE, FALSE},
    {row_breadth_first, NULL, 0, 2, 1, FALSE, FALSE},
    {row_zb_h1, NULL, 1, 3, 1, FALSE, FALSE},
    {row_zb_h2, NULL, 1, 3, 1, FALSE, FALSE},
    {row_zb_v, NULL, 2, 3, 1, FALSE, TRUE},
    {row_dualpipe, count_dual, 1, 3, 2, TRUE, TRUE},
    {row_dualpipev, count_dualv, 2, 3, 1, FALSE, TRUE},
};
G_STATIC_ASSERT (G_N_ELEMENTS (generators) + 1 == G_N_ELEMENTS (sched_names));

static const Generator *
find_generator (const char *name, GError **error)
{
  for (guint i = 0; sched_names[i]; i++)
    if (strcmp (name, sched_names[i]) == 0)
      return &generators[i];

  g_autofree char *all = g_strjoinv (", ", (char **)sched_names);
  g_autofree char *shown = g_strndup (name, 40);
  g_autofree char *clean = g_strescape (shown, NULL);
  g_set_error (error, SCHED_ERROR, SCHED_ERROR_ILLEGAL, "unknown schedule \"%s\" (known: %s)",
               clean, all);
  return NULL;
}

static gboolean
check_shape (const Generator *g, const char *name, guint pp, guint vpp, guint m, GError **error)
{
  guint64 below, above;

  if (pp == 0 || vpp == 0 || m == 0) {
    g_set_error (error, SCHED_ERROR, SCHED_ERROR_ILLEGAL,
                 "%s: pp %u, vpp %u, micro-batches %u: each must be at least 1", name, pp, vpp, m);
    return FALSE;
  }
  if (g->vpp && vpp != g->vpp) {
    g_set_error (error, SCHED_ERROR, SCHED_ERROR_DIVISIBILITY,
                 "%s has vpp %u (found %u; several chunks: interleaved, bfs; two in a V: zb-v, "
                 "dualpipev)",
                 name, g->vpp, vpp);
    return FALSE;
  }
  if (g->even_pp && pp % 2) {
    g_set_error (error, SCHED_ERROR, SCHED_ERROR_DIVISIBILITY,
                 "%s needs an even pp (found %u; nearest legal: %u or %u)", name, pp,
                 pp > 1 ? pp - 1 : 2, pp > 1 ? pp + 1 : 4);
    return FALSE;
  }
  if (g->count && !(vpp == 1 && g->vpp == 0) && !g->count (pp, m, &below, &above)) {
    g_autofree char *other =
        below == above ? g_strdup ("") : g_strdup_printf (" or %" G_GUINT64_FORMAT, above);
    g_set_error (error, SCHED_ERROR, SCHED_ERROR_DIVISIBILITY,
                 "%s with pp %u cannot take %u micro-batches (%s; nearest legal: %" G_GUINT64_FORMAT
                 "%s)",
                 name, pp, m,
                 g->count == count_multiple ? "they come in groups of pp"
                 : g->count == count_dual   ? "an even number, at least 2 pp"
                                            : "at least 2 pp",
                 below, other);
    return FALSE;
  }
  guint64 stages = (guint64)pp * vpp * g->pipelines;
  if (pp > G_MAXUINT16 || vpp > G_MAXUINT16 || stages > G_MAXUINT16 ||
      m > SCHED_MAX_ACTIONS / (stages / g->pipelines * g->per_cell)) {
    g_set_error (error, SCHED_ERROR, SCHED_ERROR_ILLEGAL,
                 "%s: pp %u x vpp %u x %u micro-batches is too large (at most %u stages and %u "
                 "actions)",
                 name, pp, vpp, m, G_MAXUINT16, SCHED_MAX_ACTIONS);
    return FALSE;
  }
  return TRUE;
}

SchedTable *
sched_generate (const char *name, guint pp, guint vpp, guint microbatches, GError **error)
{
  const Generator *g = find_generator (name, error);

  if (!g || !check_shape (g, name, pp, vpp, microbatches, error))
    return NULL;

  SchedTable *t = g_new0 (SchedTable, 1);
  gsize most = (gsize)pp * vpp * microbatches * g->per_cell;

  t->ranks = pp;
  t->stages = pp * vpp * g->pipelines;
  t->microbatches = microbatches;
  t->pipelines = g->pipelines;
  t->first = g_new (guint32, (gsize)pp + 1);
  t->actions = g_new (SchedAction, most);
  t->stage_rank = g_new (guint16, t->stages);
  for (guint s = 0; s < t->stages; s++)
    t->stage_rank[s] = (guint16)(g->turns && s >= pp ? 2 * pp - 1 - s : s % pp);

  Shape shape = {pp, vpp, microbatches, 0};
  SchedAction *a = t->actions;
  for (guint r = 0; r < pp; r++) {
    t->first[r] = (guint32)(a - t->actions);
    shape.rank = r;
    a = g->row (&shape, a);
  }
  t->first[pp] = (guint32)(a - t->actions);
  g_assert (t->first[pp] <= most);
  if (t->first[pp] < most) /* the DualPipes split only some backwards */
    t->actions = g_renew (SchedAction, t->actions, t->first[pp]);
  return t;
}
