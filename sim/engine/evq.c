#include "evq.h"

#include <string.h>

__extension__ typedef unsigned __int128 Key;

#define SLOT_BITS 22
#define SEQ_BITS  39
#define PRIO_BITS 3
#define SLOT_MASK (((guint32)1 << SLOT_BITS) - 1)
#define SEQ_END   ((guint64)1 << SEQ_BITS)
#define KEY_NONE  (~(Key)0) /* above every key: times have their top bit clear */

G_STATIC_ASSERT (SLOT_BITS + SEQ_BITS + PRIO_BITS == 64);
G_STATIC_ASSERT (SIM_PRIO_COUNT <= 1 << PRIO_BITS);
G_STATIC_ASSERT (SIM_MAX_OUTSTANDING == (guint32)1 << SLOT_BITS);

/* The root is at ROOT, the children of i at 4 (i - 2) … + 3. With the array on a cache line, the
 * four children, 64 bytes, are one line; choosing among them costs one miss. */
#define ROOT           3
#define ARITY          4
#define FIRST_CHILD(i) (ARITY * ((i)-2))
#define PARENT(i)      ((i) / ARITY + 2)
#define LINE_BYTES     64
#define REBUILD_MIN    64 /* below so many dead keys a rebuild is not worth it */
#define NO_SLOT        G_MAXUINT32

typedef enum { SLOT_FREE, SLOT_IN_HEAP, SLOT_IN_RING, SLOT_DEAD } SlotState;

typedef struct {
  gpointer self;
  guint64 arg;
  guint32 gen;
  guint32 next_free;
  guint16 kind;
  guint8 state;
} Slot;
G_STATIC_ASSERT (sizeof (Slot) == 32);

struct EvQueue {
  Key *heap;     /* all of heap[end … cap-1] is KEY_NONE, so four children can always be read */
  gboolean hole; /* the root was taken and its place not filled yet */
  guint32 end, cap; /* one past the last key; allocated, with 4 spare */
  Key *ring;
  guint32 head, tail, ring_cap; /* running counters, taken modulo the power of two ring_cap */
  Slot *slots;
  guint32 n_slots, slots_cap, free_slot;
  guint32 max_keys;
  guint32 heap_dead, ring_dead;
  SimTime now; /* of the last pop */
  guint64 seq;
  gboolean shuffle;
  SimRng ties;
};

static Key *
keys_new (guint32 n)
{
  return g_aligned_alloc (n, sizeof (Key), LINE_BYTES);
}

EvQueue *
evq_new (guint32 max_keys, const SimRng *ties, guint64 first_seq)
{
  g_assert (max_keys <= SIM_MAX_OUTSTANDING);
  g_assert (first_seq <= SEQ_END);
  EvQueue *q = g_new0 (EvQueue, 1);
  q->max_keys = max_keys > 0 ? max_keys : SIM_MAX_OUTSTANDING;
  q->cap = 64;
  q->end = ROOT;
  q->heap = keys_new (q->cap);
  memset (q->heap, 0xff, q->cap * sizeof (Key));
  q->ring_cap = 64;
  q->ring = keys_new (q->ring_cap);
  q->free_slot = NO_SLOT;
  q->seq = first_seq;
  if (ties != NULL) {
    q->shuffle = TRUE;
    q->ties = *ties;
  }
  return q;
}

void
evq_free (EvQueue *q)
{
  if (q == NULL)
    return;
  g_aligned_free (q->heap);
  g_aligned_free (q->ring);
  g_free (q->slots);
  g_free (q);
}

static inline Key
make_key (SimTime t, SimPrio prio, guint64 seq, guint32 slot)
{
  guint64 low = (guint64)prio << (SEQ_BITS + SLOT_BITS) | seq << SLOT_BITS | slot;
  return (Key)(guint64)t << 64 | low;
}

static inline guint32
key_slot (Key k)
{
  return (guint32)k & SLOT_MASK;
}

static inline SimTime
key_time (Key k)
{
  return (SimTime)(guint64)(k >> 64);
}

/* ---- slots ---- */

static guint32
slot_take (EvQueue *q)
{
  guint32 i = q->free_slot;
  if (i != NO_SLOT) {
    q->free_slot = q->slots[i].next_free;
    return i;
  }
  if (q->n_slots == q->slots_cap) {
    q->slots_cap = q->slots_cap > 0 ? 2 * q->slots_cap : 64;
    q->slots = g_renew (Slot, q->slots, q->slots_cap);
  }
  i = q->n_slots++;
  q->slots[i].gen = 1;
  return i;
}

static inline void
slot_give (EvQueue *q, guint32 i)
{
  q->slots[i].state = SLOT_FREE;
  q->slots[i].next_free = q->free_slot;
  q->free_slot = i;
}

/* Ends the life of the present id of a slot; 0 is left out so that {0, 0} is never an id. */
static inline void
slot_retire_id (Slot *s)
{
  if (++s->gen == 0)
    s->gen = 1;
}

/* ---- heap ---- */

static void
heap_grow (EvQueue *q)
{
  guint32 cap = 2 * q->cap;
  Key *heap = keys_new (cap);
  memcpy (heap, q->heap, q->end * sizeof (Key));
  memset (heap + q->end, 0xff, (cap - q->end) * sizeof (Key));
  g_aligned_free (q->heap);
  q->heap = heap;
  q->cap = cap;
}

static inline void
sift_up (Key *h, gsize i, Key k)
{
  while (i > ROOT) {
    gsize p = PARENT (i);
    if (h[p] < k)
      break;
    h[i] = h[p];
    i = p;
  }
  h[i] = k;
}

/* The least of four neighbours. The outcome is random, so a branch would be mispredicted half of
 * the time: the last choice is made by a mask, because compilers turn a conditional there into a
 * jump. */
static inline gsize
least_of_four (const Key *h, gsize first)
{
  const Key *c = h + first;
  gsize a = c[1] < c[0];
  gsize b = 2 + (gsize)(c[3] < c[2]);
  Key ka = c[1] < c[0] ? c[1] : c[0];
  Key kb = c[3] < c[2] ? c[3] : c[2];
  gsize take_b = 0 - (gsize)(kb < ka);
  return first + (a ^ ((a ^ b) & take_b));
}

/* The children of four neighbours are four lines in a row; asking for all of them while choosing
 * among the neighbours halves the time of large heaps. The address may lie beyond the array, hence
 * no pointer arithmetic. */
static inline void
prefetch_grandchildren (const Key *h, gsize c)
{
  guintptr first = (guintptr)h + FIRST_CHILD (c) * sizeof (Key);
  for (guintptr line = 0; line < ARITY; line++)
    __builtin_prefetch ((const void *)(first + line * LINE_BYTES));
}

/* Fills the empty root with k: the hole sinks along the least children to a leaf without comparing
 * with k, which mostly belongs near the leaves, and k rises from there. */
static void
heap_fill_root (EvQueue *q, Key k)
{
  Key *h = q->heap;
  gsize end = q->end;
  gsize hole = ROOT;
  for (gsize c = ROOT + 1; c < end; c = FIRST_CHILD (hole)) {
    prefetch_grandchildren (h, c);
    gsize m = least_of_four (h, c);
    h[hole] = h[m];
    hole = m;
  }
  sift_up (h, hole, k);
  /* The next pop reads this slot; its miss passes while the model works. */
  __builtin_prefetch (&q->slots[key_slot (h[ROOT])]);
}

/* A pop leaves a hole at the root. As a rule the event's handler schedules another event, which
 * fills it: one way through the heap instead of two. If not, the last key does, here. */
static void
heap_settle (EvQueue *q)
{
  Key last = q->heap[--q->end];
  q->heap[q->end] = KEY_NONE;
  q->hole = FALSE;
  if (q->end > ROOT)
    heap_fill_root (q, last);
}

static void
heap_push (EvQueue *q, Key k)
{
  if (q->hole) {
    q->hole = FALSE;
    heap_fill_root (q, k);
    return;
  }
  if (q->end + ARITY >= q->cap)
    heap_grow (q);
  sift_up (q->heap, q->end++, k);
}

static void
sift_down (Key *h, gsize end, gsize i)
{
  Key k = h[i];
  for (gsize c = FIRST_CHILD (i); c < end; c = FIRST_CHILD (i)) {
    gsize m = least_of_four (h, c);
    if (k < h[m])
      break;
    h[i] = h[m];
    i = m;
  }
  h[i] = k;
}

/* Drops the dead keys and orders the rest anew, in linear time. */
static void
heap_rebuild (EvQueue *q)
{
  if (q->hole)
    heap_settle (q);
  Key *h = q->heap;
  guint32 end = ROOT;
  for (guint32 i = ROOT; i < q->end; i++) {
    guint32 slot = key_slot (h[i]);
    if (q->slots[slot].state == SLOT_DEAD)
      slot_give (q, slot);
    else
      h[end++] = h[i];
  }
  memset (h + end, 0xff, (q->end - end) * sizeof (Key));
  q->end = end;
  q->heap_dead = 0;
  if (end > ROOT + 1)
    for (guint32 i = PARENT (end - 1); i >= ROOT; i--)
      sift_down (h, end, i);
}

/* ---- ring ---- */

static inline guint32
ring_len (const EvQueue *q)
{
  return q->tail - q->head;
}

static void
ring_grow (EvQueue *q)
{
  Key *ring = keys_new (2 * q->ring_cap);
  guint32 n = ring_len (q);
  for (guint32 i = 0; i < n; i++)
    ring[i] = q->ring[(q->head + i) & (q->ring_cap - 1)];
  g_aligned_free (q->ring);
  q->ring = ring;
  q->ring_cap *= 2;
  q->head = 0;
  q->tail = n;
}

static inline void
ring_push (EvQueue *q, Key k)
{
  if (ring_len (q) == q->ring_cap)
    ring_grow (q);
  q->ring[q->tail++ & (q->ring_cap - 1)] = k;
}

static void
ring_rebuild (EvQueue *q)
{
  guint32 mask = q->ring_cap - 1;
  guint32 to = q->head;
  for (guint32 i = q->head; i != q->tail; i++) {
    Key k = q->ring[i & mask];
    guint32 slot = key_slot (k);
    if (q->slots[slot].state == SLOT_DEAD)
      slot_give (q, slot);
    else
      q->ring[to++ & mask] = k;
  }
  q->tail = to;
  q->ring_dead = 0;
}

/* ---- queue ---- */

guint32
evq_n_keys (const EvQueue *q)
{
  return q->end - ROOT - (guint32)q->hole + ring_len (q);
}

guint32
evq_len (const EvQueue *q)
{
  return evq_n_keys (q) - q->heap_dead - q->ring_dead;
}

/* Makes room out of dead keys; FALSE if there are none. */
static gboolean
drop_dead (EvQueue *q)
{
  if (q->heap_dead + q->ring_dead == 0)
    return FALSE;
  heap_rebuild (q);
  ring_rebuild (q);
  return TRUE;
}

EvqPush
evq_push (EvQueue *q, SimTime t, SimPrio prio, guint16 kind, gpointer self, guint64 arg,
          SimEventId *id)
{
  g_assert (t >= q->now);
  g_assert (prio < SIM_PRIO_COUNT);
  *id = (SimEventId){0, 0};
  if (evq_n_keys (q) >= q->max_keys && !drop_dead (q))
    return EVQ_FULL;
  if (q->seq == SEQ_END)
    return EVQ_NO_SEQ;

  guint32 i = slot_take (q);
  Slot *s = &q->slots[i];
  s->self = self;
  s->arg = arg;
  s->kind = kind;
  *id = (SimEventId){i, s->gen};

  if (q->shuffle) {
    /* Equal random numbers are told apart by the slot, so the order is total here too. */
    s->state = SLOT_IN_HEAP;
    heap_push (q, make_key (t, prio, sim_rng_next (&q->ties) >> (64 - SEQ_BITS), i));
  } else if (t == q->now && prio == SIM_PRIO_NORMAL) {
    s->state = SLOT_IN_RING;
    ring_push (q, make_key (t, prio, q->seq++, i));
  } else {
    s->state = SLOT_IN_HEAP;
    heap_push (q, make_key (t, prio, q->seq++, i));
  }
  return EVQ_OK;
}

EvqPop
evq_pop (EvQueue *q, SimTime last, EvEvent *ev)
{
  for (;;) {
    if (q->hole)
      heap_settle (q);
    Key k = q->heap[ROOT];
    gboolean ring = q->head != q->tail && q->ring[q->head & (q->ring_cap - 1)] < k;
    if (ring)
      k = q->ring[q->head & (q->ring_cap - 1)];
    else if (k == KEY_NONE)
      return EVQ_EMPTY;

    guint32 i = key_slot (k);
    Slot *s = &q->slots[i];
    SimTime t = key_time (k);
    if (t > last && s->state != SLOT_DEAD) {
      *ev = (EvEvent){t, s->self, s->arg, s->kind};
      return EVQ_LATER;
    }
    if (ring)
      q->head++;
    else
      q->hole = TRUE;

    if (G_UNLIKELY (s->state == SLOT_DEAD)) {
      if (ring)
        q->ring_dead--;
      else
        q->heap_dead--;
      slot_give (q, i);
      continue;
    }
    *ev = (EvEvent){t, s->self, s->arg, s->kind};
    slot_retire_id (s);
    slot_give (q, i);
    q->now = t;
    return EVQ_EVENT;
  }
}

gboolean
evq_cancel (EvQueue *q, SimEventId id)
{
  if (id.slot >= q->n_slots || q->slots[id.slot].gen != id.gen)
    return FALSE;
  Slot *s = &q->slots[id.slot];
  if (s->state != SLOT_IN_HEAP && s->state != SLOT_IN_RING)
    return FALSE; /* an id made up: that generation has not been given out */
  gboolean ring = s->state == SLOT_IN_RING;
  slot_retire_id (s);
  s->state = SLOT_DEAD;
  if (ring) {
    q->ring_dead++;
    if (q->ring_dead >= REBUILD_MIN && q->ring_dead > ring_len (q) / 2)
      ring_rebuild (q);
  } else {
    q->heap_dead++;
    if (q->heap_dead >= REBUILD_MIN && q->heap_dead > (q->end - ROOT) / 2)
      heap_rebuild (q);
  }
  return TRUE;
}
