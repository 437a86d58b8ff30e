/* Property: whatever is pushed, popped and cancelled, the event queue behaves like a list sorted by
 * (time, priority, order of pushing).
 *
 * Without arguments a fixed range of seeds is tried; `--seed N` tries one alone, for the seed that
 * a failure prints or for new ones.
 */
#include <string.h>

#include "evq.h"

#define N_SEEDS 60
#define N_STEPS 3000

typedef struct {
  SimTime time;
  SimPrio prio;
  guint64 name; /* its order of pushing too */
  SimEventId id;
} Item;

typedef struct {
  EvQueue *queue;
  GArray *list;  /* of Item, sorted */
  GArray *ended; /* of SimEventId: fired or cancelled */
  SimRng rng;
  SimTime now;
  guint64 n_pushed;
} Pair;

static gboolean
item_before (const Item *a, const Item *b)
{
  if (a->time != b->time)
    return a->time < b->time;
  if (a->prio != b->prio)
    return a->prio < b->prio;
  return a->name < b->name;
}

static guint64
draw (Pair *p, guint64 n)
{
  return sim_rng_below (&p->rng, n);
}

/* Now, soon with many ties, or anywhere on the clock. */
static SimTime
draw_time (Pair *p)
{
  SimTime delay = 0;
  switch (draw (p, 8)) {
  case 0:
  case 1:
  case 2:
    break;
  case 3:
    delay = (SimTime)draw (p, G_MAXINT64);
    break;
  default:
    delay = (SimTime)draw (p, 20);
  }
  return p->now + MIN (delay, SIM_TIME_MAX - p->now);
}

static void
step_push (Pair *p)
{
  Item it = {.time = draw_time (p), .prio = SIM_PRIO_NORMAL, .name = p->n_pushed++};
  if (draw (p, 2) == 0)
    it.prio = (SimPrio)draw (p, SIM_PRIO_COUNT);
  g_assert_cmpint (
      evq_push (p->queue, it.time, it.prio, (guint16)(it.name % 1000), p, it.name, &it.id), ==,
      EVQ_OK);
  guint i = p->list->len;
  while (i > 0 && item_before (&it, &g_array_index (p->list, Item, i - 1)))
    i--;
  g_array_insert_val (p->list, i, it);
}

static void
end_item (Pair *p, guint i)
{
  g_array_append_val (p->ended, g_array_index (p->list, Item, i).id);
  g_array_remove_index (p->list, i);
}

static void
step_pop (Pair *p)
{
  EvEvent ev;
  SimTime last = draw (p, 4) == 0 ? p->now + MIN (3, SIM_TIME_MAX - p->now) : SIM_TIME_MAX;
  EvqPop r = evq_pop (p->queue, last, &ev);
  if (p->list->len == 0) {
    g_assert_cmpint (r, ==, EVQ_EMPTY);
    return;
  }
  const Item *first = &g_array_index (p->list, Item, 0);
  g_assert_cmpint (r, ==, first->time > last ? EVQ_LATER : EVQ_EVENT);
  g_assert_cmpint (ev.time, ==, first->time);
  g_assert_cmpuint (ev.arg, ==, first->name);
  g_assert_cmpuint (ev.kind, ==, first->name % 1000);
  g_assert_true (ev.self == p);
  if (r == EVQ_EVENT) {
    p->now = ev.time;
    end_item (p, 0);
  }
}

static void
step_cancel (Pair *p)
{
  if (p->list->len > 0) {
    guint i = (guint)draw (p, p->list->len);
    g_assert_true (evq_cancel (p->queue, g_array_index (p->list, Item, i).id));
    end_item (p, i);
  }
  /* What has ended cannot be cancelled, and trying harms nobody. */
  if (p->ended->len > 0) {
    guint i = (guint)draw (p, p->ended->len);
    g_assert_false (evq_cancel (p->queue, g_array_index (p->ended, SimEventId, i)));
  }
}

static void
check_seed (guint64 seed)
{
  Pair p = {.queue = evq_new (0, NULL, 0), .rng = sim_rng_stream (seed, 0, "prop.evq", 0)};
  p.list = g_array_new (FALSE, FALSE, sizeof (Item));
  p.ended = g_array_new (FALSE, FALSE, sizeof (SimEventId));
  /* The mix changes every so often, so that the queue fills, drains, and goes through rebuilds. */
  guint64 push = 5, pop = 4, cancel = 1;
  for (int i = 0; i < N_STEPS && !g_test_failed (); i++) {
    if (i % 200 == 0) {
      push = 1 + draw (&p, 10);
      pop = draw (&p, 10);
      cancel = draw (&p, 3) == 0 ? 1 + draw (&p, 20) : draw (&p, 2);
    }
    guint64 which = draw (&p, push + pop + cancel);
    if (which < push)
      step_push (&p);
    else if (which < push + pop)
      step_pop (&p);
    else
      step_cancel (&p);
    g_assert_cmpuint (evq_len (p.queue), ==, p.list->len);
    g_assert_cmpuint (evq_n_keys (p.queue), <=, 2 * p.list->len + 2 * 64);
  }
  while (p.list->len > 0 && !g_test_failed ())
    step_pop (&p);
  if (g_test_failed ())
    g_test_message ("failed with --seed %" G_GUINT64_FORMAT, seed);
  evq_free (p.queue);
  g_array_free (p.list, TRUE);
  g_array_free (p.ended, TRUE);
}

/* With shuffled ties: the multiset comes out, in order of (time, priority). */
static void
check_seed_shuffled (guint64 seed)
{
  SimRng rng = sim_rng_stream (seed, 0, "prop.evq.shuffle", 0);
  SimRng ties = sim_rng_stream (seed, 0, "engine.ties", 0);
  g_autoptr (EvQueue) q = evq_new (0, &ties, 0);
  guint64 sum_in = 0, sum_out = 0, n = 0, before = 0;
  SimEventId id;
  EvEvent ev;
  for (guint64 i = 0; i < 1000; i++) {
    SimTime t = (SimTime)sim_rng_below (&rng, 30);
    SimPrio prio = (SimPrio)sim_rng_below (&rng, SIM_PRIO_COUNT);
    guint64 rank = (guint64)t * SIM_PRIO_COUNT + prio;
    guint64 arg = rank << 32 | i;
    evq_push (q, t, prio, 0, NULL, arg, &id);
    if (sim_rng_below (&rng, 4) == 0)
      g_assert_true (evq_cancel (q, id));
    else
      sum_in += arg;
  }
  for (; evq_pop (q, SIM_TIME_MAX, &ev) == EVQ_EVENT; n++) {
    g_assert_cmpuint (ev.arg >> 32, >=, before);
    before = ev.arg >> 32;
    sum_out += ev.arg;
  }
  g_assert_cmpuint (sum_in, ==, sum_out);
  if (g_test_failed ())
    g_test_message ("failed with --seed %" G_GUINT64_FORMAT, seed);
}

typedef struct {
  guint64 first, count;
} Seeds;

static void
test_sorted_list (gconstpointer data)
{
  const Seeds *s = data;
  g_test_message ("seeds %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, s->first,
                  s->first + s->count - 1);
  for (guint64 i = 0; i < s->count && !g_test_failed (); i++)
    check_seed (s->first + i);
}

static void
test_shuffled (gconstpointer data)
{
  const Seeds *s = data;
  for (guint64 i = 0; i < s->count && !g_test_failed (); i++)
    check_seed_shuffled (s->first + i);
}

/* Takes "--seed N" out of the arguments, before GLib reads its own option of that name. */
static Seeds
take_seed (int *argc, char **argv)
{
  Seeds s = {1, N_SEEDS};
  for (int i = 1; i + 1 < *argc; i++)
    if (g_str_equal (argv[i], "--seed")) {
      s = (Seeds){g_ascii_strtoull (argv[i + 1], NULL, 10), 1};
      for (int k = i; k + 2 <= *argc; k++)
        argv[k] = argv[k + 2];
      *argc -= 2;
      break;
    }
  return s;
}

int
main (int argc, char **argv)
{
  Seeds seeds = take_seed (&argc, argv);
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_data_func ("/prop/evq/sorted_list", &seeds, test_sorted_list);
  g_test_add_data_func ("/prop/evq/shuffled", &seeds, test_shuffled);
  return g_test_run ();
}
