#include "maxmin.h"

#include <math.h>
#include <string.h>

/* A flow's crossing of a link, seen from the flow and from the link; each knows the other's place,
 * so that leaving costs O(1) per link. */
typedef struct {
  guint32 link, pos; /* pos: index in the link's `on` */
  double coef;
} Hop;
typedef struct {
  guint32 flow, hop;
  double coef;
} Entry;

typedef struct {
  double cap;
  double sat;      /* level at which it froze its flows; INFINITY: it never did */
  double rem, sum; /* while filling: capacity left, coefs of flows still rising */
  Entry *on;
  guint32 n_on, n_alloc;
  double new_sat;
  guint32 n_open;     /* entries of flows still rising */
  guint32 n_kept;     /* entries of flows that keep their rates in this solve */
  guint32 mark;       /* epoch of the last solve that reached it */
  gboolean dirty;     /* touched since the last solve */
  gboolean dirty_all; /* in this solve: the flows that it had frozen are released */
} Link;

typedef struct {
  double cap, old_rate;
  Hop *hops;
  guint32 n_hops, n_alloc;
  guint32 reached; /* epoch of the last solve that released it */
  guint32 frozen;  /* last round that froze it */
  guint32 by;      /* the link that did, or NO_LINK: its own cap */
  guint32 next_free;
  gboolean live;
} Flow;

typedef struct {
  double key;
  guint32 id;
  gboolean is_flow;
} HeapItem;

typedef struct {
  guint32 *v;
  guint32 n, alloc;
} IdList;

struct MaxMin {
  Link *link;
  guint32 n_links;
  Flow *flow;
  double *rate; /* apart from Flow: what the filling reads most */
  guint32 n_slots, slots_alloc, free_head, n_live;
  guint32 n_fresh; /* added since the last solve and not removed */
  guint32 epoch;   /* of solves */
  guint32 round;   /* of fillings; a solve needs one or a few */
  double t0;       /* from removals and capacity changes since the last solve */
  IdList dirty, links, flows, changed;
  HeapItem *heap;
  guint32 n_heap, heap_alloc;
  guint64 n_visited;
};

#define NO_FLOW G_MAXUINT32
#define NO_LINK G_MAXUINT32
/* Levels closer than this, relatively, count as equal. To look at more flows than needed is always
 * right, so the slack only ever widens the search. */
#define SLACK 1e-12

static void
id_push (IdList *l, guint32 id)
{
  if (l->n == l->alloc) {
    l->alloc = MAX (64, 2 * l->alloc);
    l->v = g_renew (guint32, l->v, l->alloc);
  }
  l->v[l->n++] = id;
}

MaxMin *
maxmin_new (guint32 n_links, const double *cap)
{
  MaxMin *m = g_new0 (MaxMin, 1);
  m->n_links = n_links;
  m->link = g_new0 (Link, MAX (1, n_links));
  for (guint32 l = 0; l < n_links; l++) {
    g_assert (isfinite (cap[l]) && cap[l] >= 0);
    m->link[l].cap = cap[l];
    m->link[l].sat = INFINITY;
  }
  m->free_head = NO_FLOW;
  m->t0 = INFINITY;
  return m;
}

void
maxmin_free (MaxMin *m)
{
  if (!m)
    return;
  for (guint32 l = 0; l < m->n_links; l++)
    g_free (m->link[l].on);
  for (guint32 f = 0; f < m->n_slots; f++)
    g_free (m->flow[f].hops);
  g_free (m->link);
  g_free (m->flow);
  g_free (m->rate);
  g_free (m->dirty.v);
  g_free (m->links.v);
  g_free (m->flows.v);
  g_free (m->changed.v);
  g_free (m->heap);
  g_free (m);
}

static void
touch (MaxMin *m, guint32 l)
{
  if (m->link[l].dirty)
    return;
  m->link[l].dirty = TRUE;
  id_push (&m->dirty, l);
}

static guint32
take_slot (MaxMin *m)
{
  guint32 f = m->free_head;
  if (f != NO_FLOW) {
    m->free_head = m->flow[f].next_free;
    return f;
  }
  if (m->n_slots == m->slots_alloc) {
    guint32 more = MAX (64, 2 * m->slots_alloc);
    m->flow = g_renew (Flow, m->flow, more);
    m->rate = g_renew (double, m->rate, more);
    memset (m->flow + m->slots_alloc, 0, (more - m->slots_alloc) * sizeof (Flow));
    m->slots_alloc = more;
  }
  return m->n_slots++;
}

static void
attach (MaxMin *m, guint32 f, guint32 h, guint32 l, double coef)
{
  Link *k = &m->link[l];
  if (k->n_on == k->n_alloc) {
    k->n_alloc = MAX (4, 2 * k->n_alloc);
    k->on = g_renew (Entry, k->on, k->n_alloc);
  }
  m->flow[f].hops[h] = (Hop){.link = l, .pos = k->n_on, .coef = coef};
  k->on[k->n_on++] = (Entry){.flow = f, .hop = h, .coef = coef};
  m->t0 = MIN (m->t0, k->sat); /* more load never saturates a link later */
  touch (m, l);
}

guint32
maxmin_add (MaxMin *m, const guint32 *links, const double *coef, guint n, double cap)
{
  g_assert (n > 0 && cap >= 0);
  guint32 f = take_slot (m);
  Flow *w = &m->flow[f];
  if (w->n_alloc < n) {
    w->n_alloc = MAX (n, 8);
    w->hops = g_renew (Hop, w->hops, w->n_alloc);
  }
  w->cap = cap;
  w->n_hops = n;
  w->reached = w->frozen = 0;
  w->live = TRUE;
  m->rate[f] = INFINITY;
  for (guint32 h = 0; h < n; h++) {
    double a = coef ? coef[h] : 1;
    g_assert (links[h] < m->n_links && a > 0 && isfinite (a));
    attach (m, f, h, links[h], a);
  }
  m->n_live++;
  m->n_fresh++;
  return f;
}

void
maxmin_remove (MaxMin *m, guint32 flow)
{
  g_assert (flow < m->n_slots && m->flow[flow].live);
  Flow *w = &m->flow[flow];
  for (guint32 h = 0; h < w->n_hops; h++) {
    Link *k = &m->link[w->hops[h].link];
    guint32 pos = w->hops[h].pos;
    Entry last = k->on[--k->n_on];
    if (pos != k->n_on) {
      k->on[pos] = last;
      m->flow[last.flow].hops[last.hop].pos = pos;
    }
    m->t0 = MIN (m->t0, k->sat);
    touch (m, w->hops[h].link);
  }
  if (isinf (m->rate[flow]))
    m->n_fresh--;
  w->live = FALSE;
  w->next_free = m->free_head;
  m->free_head = flow;
  m->n_live--;
}

void
maxmin_set_cap (MaxMin *m, guint32 link, double cap)
{
  g_assert (link < m->n_links && isfinite (cap) && cap >= 0);
  Link *k = &m->link[link];
  if (k->cap == cap)
    return;
  m->t0 = MIN (m->t0, k->sat);
  k->cap = cap;
  touch (m, link);
}

/* Least level above which the link cannot carry its flows, if every flow stops at its old rate (new
 * ones at their cap); or anything >= limit when the level is not below limit. Load is a concave
 * rising function of the level, so Newton's steps from below end on it. */
static double
new_saturation (const MaxMin *m, const Link *k, double limit)
{
  double sum = 0, load = 0;
  if (k->n_on == 0)
    return INFINITY;
  for (guint32 i = 0; i < k->n_on; i++) {
    const Entry *e = &k->on[i];
    sum += e->coef;
    load += e->coef * MIN (limit, MIN (m->rate[e->flow], m->flow[e->flow].cap));
  }
  if (load <= k->cap)
    return limit;
  double s = k->cap / sum;
  while (s < limit) {
    double rem = k->cap, open = 0;
    for (guint32 i = 0; i < k->n_on; i++) {
      const Entry *e = &k->on[i];
      double stop = MIN (m->rate[e->flow], m->flow[e->flow].cap);
      if (stop > s)
        open += e->coef;
      else
        rem -= e->coef * stop;
    }
    if (!(open > 0))
      return INFINITY;
    double next = rem / open;
    if (!(next > s * (1 + 1e-15)))
      break;
    s = next;
  }
  return s;
}

static void
reach_link (MaxMin *m, guint32 l)
{
  Link *k = &m->link[l];
  if (k->mark == m->epoch)
    return;
  k->mark = m->epoch;
  k->dirty_all = FALSE;
  id_push (&m->links, l);
}

/* Lets a flow go: its rate is found anew. */
static void
release (MaxMin *m, guint32 f)
{
  Flow *w = &m->flow[f];
  if (w->reached == m->epoch)
    return;
  w->reached = m->epoch;
  w->old_rate = m->rate[f];
  id_push (&m->flows, f);
  for (guint32 h = 0; h < w->n_hops; h++)
    reach_link (m, w->hops[h].link);
}

static void
release_from (MaxMin *m, const Link *k, double level)
{
  for (guint32 i = 0; i < k->n_on; i++)
    if (m->rate[k->on[i].flow] >= level)
      release (m, k->on[i].flow);
}

/* What may change, as a first guess: on touched links the flows from t0 on, then, link by link, the
 * flows that a reached link had frozen. Flows that are held elsewhere, and links that had room, may
 * join later (check_links). i: the first flow whose links are to be looked at. */
static void
spread (MaxMin *m, guint32 i)
{
  for (; i < m->flows.n; i++) {
    const Flow *w = &m->flow[m->flows.v[i]];
    for (guint32 h = 0; h < w->n_hops; h++) {
      Link *k = &m->link[w->hops[h].link];
      if (k->dirty_all || isinf (k->sat))
        continue;
      k->dirty_all = TRUE;
      release_from (m, k, k->sat * (1 - SLACK));
    }
  }
}

/* What the flows that stay leave to those released. */
static void
prepare (MaxMin *m)
{
  m->round++;
  for (guint32 i = 0; i < m->links.n; i++) {
    Link *k = &m->link[m->links.v[i]];
    k->new_sat = INFINITY;
    k->rem = k->cap;
    k->sum = 0;
    k->n_open = 0;
    for (guint32 j = 0; j < k->n_on; j++) {
      const Entry *e = &k->on[j];
      if (m->flow[e->flow].reached == m->epoch) {
        k->sum += e->coef;
        k->n_open++;
      } else {
        k->rem -= e->coef * m->rate[e->flow];
      }
    }
    k->n_kept = k->n_on - k->n_open;
  }
  m->n_visited += m->flows.n;
}

/* ---- heap of levels at which something freezes ---------------------------------------------- */

static void
sift_down (MaxMin *m, guint32 i, HeapItem x)
{
  for (;;) {
    guint32 c = 2 * i + 1;
    if (c >= m->n_heap)
      break;
    if (c + 1 < m->n_heap && m->heap[c + 1].key < m->heap[c].key)
      c++;
    if (!(m->heap[c].key < x.key))
      break;
    m->heap[i] = m->heap[c];
    i = c;
  }
  m->heap[i] = x;
}

static void
heap_add (MaxMin *m, HeapItem x)
{
  if (m->n_heap == m->heap_alloc) {
    m->heap_alloc = MAX (64, 2 * m->heap_alloc);
    m->heap = g_renew (HeapItem, m->heap, m->heap_alloc);
  }
  m->heap[m->n_heap++] = x;
}

static void
heap_build (MaxMin *m)
{
  m->n_heap = 0;
  for (guint32 i = 0; i < m->links.n; i++) {
    const Link *k = &m->link[m->links.v[i]];
    if (k->n_open > 0)
      heap_add (m, (HeapItem){MAX (0, k->rem) / k->sum, m->links.v[i], FALSE});
  }
  for (guint32 i = 0; i < m->flows.n; i++)
    if (isfinite (m->flow[m->flows.v[i]].cap))
      heap_add (m, (HeapItem){m->flow[m->flows.v[i]].cap, m->flows.v[i], TRUE});
  for (guint32 i = m->n_heap / 2; i-- > 0;)
    sift_down (m, i, m->heap[i]);
}

static void
heap_drop_top (MaxMin *m)
{
  HeapItem last = m->heap[--m->n_heap];
  if (m->n_heap > 0)
    sift_down (m, 0, last);
}

/* ---- filling -------------------------------------------------------------------------------- */

static void
freeze (MaxMin *m, guint32 f, double level, guint32 by)
{
  Flow *w = &m->flow[f];
  w->frozen = m->round;
  w->by = by;
  m->rate[f] = level;
  for (guint32 h = 0; h < w->n_hops; h++) {
    Link *k = &m->link[w->hops[h].link];
    k->rem -= w->hops[h].coef * level;
    k->sum -= w->hops[h].coef;
    k->n_open--;
  }
}

/* The level of a link that is next, summed afresh: differences kept while filling carry the
 * rounding of all flows that ever rose on it. */
static double
exact_level (const MaxMin *m, const Link *k)
{
  double rem = k->cap, sum = 0;
  for (guint32 i = 0; i < k->n_on; i++) {
    const Entry *e = &k->on[i];
    const Flow *w = &m->flow[e->flow];
    if (w->reached == m->epoch && w->frozen != m->round)
      sum += e->coef;
    else
      rem -= e->coef * m->rate[e->flow];
  }
  return MAX (0, rem) / sum;
}

/* Keys only grow while others freeze, so a stale one is set right when it comes up: FALSE if
 * another is before it then. */
static gboolean
still_first (MaxMin *m, HeapItem top, double key)
{
  if (!(key > m->heap[0].key))
    return TRUE;
  sift_down (m, 0, (HeapItem){key, top.id, FALSE});
  return m->heap[0].id == top.id && !m->heap[0].is_flow;
}

static void
fill (MaxMin *m)
{
  double level = 0;
  guint32 left = m->flows.n;
  heap_build (m);
  while (left > 0) {
    g_assert (m->n_heap > 0);
    HeapItem top = m->heap[0];
    if (top.is_flow) {
      heap_drop_top (m);
      if (m->flow[top.id].frozen != m->round) {
        freeze (m, top.id, top.key, NO_LINK);
        level = MAX (level, top.key);
        left--;
      }
      continue;
    }
    Link *k = &m->link[top.id];
    if (k->n_open == 0) {
      heap_drop_top (m);
      continue;
    }
    if (!still_first (m, top, k->sum > 0 ? MAX (0, k->rem) / k->sum : 0))
      continue;
    double exact = exact_level (m, k);
    if (!still_first (m, top, exact))
      continue;
    heap_drop_top (m);
    level = MAX (level, exact);
    k->new_sat = level;
    for (guint32 i = 0; i < k->n_on; i++) {
      guint32 f = k->on[i].flow;
      if (m->flow[f].frozen == m->round || m->flow[f].reached != m->epoch)
        continue;
      freeze (m, f, MIN (level, m->flow[f].cap), top.id);
      left--;
    }
  }
}

/* The level at which a link fills when the flows that it holds, kept or released, rise without end
 * and all others stop at their rates. */
static double
held_level (const MaxMin *m, guint32 l)
{
  const Link *k = &m->link[l];
  double rem = k->cap, sum = 0;
  for (guint32 i = 0; i < k->n_on; i++) {
    const Entry *e = &k->on[i];
    const Flow *w = &m->flow[e->flow];
    gboolean held = w->reached == m->epoch ? w->by == l : m->rate[e->flow] >= k->sat * (1 - SLACK);
    if (held)
      sum += e->coef;
    else
      rem -= e->coef * m->rate[e->flow];
  }
  return sum > 0 ? MAX (0, rem) / sum : INFINITY;
}

/* Kept flows are right as long as the links that hold them still fill at the old level, and no link
 * fills below a kept rate. Releases those for which it is not so; TRUE when there were none. */
static gboolean
check_links (MaxMin *m)
{
  guint32 n_links = m->links.n, n_flows = m->flows.n;
  for (guint32 i = 0; i < n_links; i++) {
    guint32 l = m->links.v[i];
    Link *k = &m->link[l];
    if (k->n_kept == 0)
      continue;
    double level = held_level (m, l);
    if (isfinite (k->sat) && fabs (level - k->sat) <= SLACK * k->sat) {
      k->new_sat = k->sat;
      continue;
    }
    if (level > k->sat)
      release_from (m, k, k->sat * (1 - SLACK));
    else if (isfinite (level))
      release_from (m, k, level * (1 + SLACK));
  }
  if (m->flows.n == n_flows)
    return TRUE;
  spread (m, n_flows);
  return FALSE;
}

static void
solve_from (MaxMin *m, double t0)
{
  m->links.n = m->flows.n = 0;
  for (guint32 i = 0; i < m->dirty.n; i++)
    reach_link (m, m->dirty.v[i]);
  for (guint32 i = 0; i < m->dirty.n; i++) {
    m->link[m->dirty.v[i]].dirty_all = TRUE;
    release_from (m, &m->link[m->dirty.v[i]], t0 * (1 - SLACK));
  }
  spread (m, 0);
  do {
    prepare (m);
    fill (m);
  } while (!check_links (m));
  for (guint32 i = 0; i < m->links.n; i++)
    m->link[m->links.v[i]].sat = m->link[m->links.v[i]].new_sat;
  for (guint32 i = 0; i < m->flows.n; i++)
    if (m->rate[m->flows.v[i]] != m->flow[m->flows.v[i]].old_rate)
      id_push (&m->changed, m->flows.v[i]);
}

/* After 2^32 solves or fillings the marks of old ones would look fresh. */
static void
next_epoch (MaxMin *m)
{
  if (m->epoch < G_MAXUINT32 - 1 && m->round < G_MAXUINT32 / 2) {
    m->epoch++;
    return;
  }
  for (guint32 l = 0; l < m->n_links; l++)
    m->link[l].mark = 0;
  for (guint32 f = 0; f < m->n_slots; f++)
    m->flow[f].reached = m->flow[f].frozen = 0;
  m->epoch = 1;
  m->round = 0;
}

guint
maxmin_solve (MaxMin *m, const guint32 **changed)
{
  double t0 = m->t0;
  m->changed.n = 0;
  next_epoch (m);
  for (guint32 i = 0; i < m->dirty.n; i++)
    t0 = MIN (t0, new_saturation (m, &m->link[m->dirty.v[i]], t0));
  if (isfinite (t0) || m->n_fresh > 0)
    solve_from (m, t0);
  for (guint32 i = 0; i < m->dirty.n; i++)
    m->link[m->dirty.v[i]].dirty = FALSE;
  m->dirty.n = 0;
  m->n_fresh = 0;
  m->t0 = INFINITY;
  if (changed)
    *changed = m->changed.v;
  return m->changed.n;
}

double
maxmin_rate (const MaxMin *m, guint32 flow)
{
  g_assert (flow < m->n_slots && m->flow[flow].live);
  return m->rate[flow];
}

double
maxmin_link_load (const MaxMin *m, guint32 link)
{
  g_assert (link < m->n_links);
  const Link *k = &m->link[link];
  double load = 0;
  for (guint32 i = 0; i < k->n_on; i++)
    load += k->on[i].coef * m->rate[k->on[i].flow];
  return load;
}

guint32
maxmin_n_flows (const MaxMin *m)
{
  return m->n_live;
}

guint64
maxmin_n_visited (const MaxMin *m)
{
  return m->n_visited;
}
