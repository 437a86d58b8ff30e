/* bench_evq: speed of the event queue against GLib's GTree in the hold model: with n events
 * outstanding, take the first and schedule another an exponential delay later, again and again.
 *
 * Both order by (time, sequence), carry the same payload, allocate it for each event (the queue
 * from its pool of slots, the tree by g_slice) and get the same delays from a table, so that
 * drawing is not timed. A checksum over the times popped must agree. The two take turns in short
 * slices and the best slice of each counts, since a neighbour on the machine can only slow a slice
 * down. Figures: million holds (one pop and one push) a second. Exit status 1 if the orders differ,
 * or if the queue is less than MIN_RATIO times as fast at 10,000 outstanding.
 */
#include <stdio.h>

#include <glib.h>

#include "evq.h"
#include "rng.h"

#define N_DELAYS   ((guint32)1 << 16)
#define MEAN_TICKS 1e9
#define N_SLICES   9
#define MIN_RATIO  4.0

typedef struct {
  const SimTime *delays;
  guint32 next_delay;
  guint64 checksum, seq;
  double best_Mps;
  EvQueue *queue; /* one of these two */
  GTree *tree;
} Bench;

typedef struct {
  SimTime time;
  guint64 seq;
  gpointer self;
  guint64 arg;
} TreeEvent;

static double
now_s (void)
{
  return (double)g_get_monotonic_time () / 1e6;
}

static SimTime
draw_delay (Bench *b)
{
  return b->delays[b->next_delay++ % N_DELAYS];
}

static void
evq_fill (Bench *b, guint32 n)
{
  SimEventId id;
  b->queue = evq_new (0, NULL, 0);
  for (guint32 i = 0; i < n; i++)
    evq_push (b->queue, draw_delay (b), SIM_PRIO_NORMAL, 0, b, i, &id);
}

static void
evq_hold (Bench *b, guint32 holds)
{
  for (guint32 i = 0; i < holds; i++) {
    EvEvent ev;
    SimEventId id;
    evq_pop (b->queue, SIM_TIME_MAX, &ev);
    b->checksum = b->checksum * 31 + (guint64)ev.time;
    evq_push (b->queue, ev.time + draw_delay (b), SIM_PRIO_NORMAL, 0, ev.self, ev.arg, &id);
  }
}

static gint
compare_events (gconstpointer pa, gconstpointer pb, gpointer unused)
{
  const TreeEvent *a = pa, *b = pb;
  (void)unused;
  if (a->time != b->time)
    return a->time < b->time ? -1 : 1;
  return (a->seq > b->seq) - (a->seq < b->seq);
}

static void
free_event (gpointer event)
{
  g_slice_free (TreeEvent, event);
}

static void
tree_push (Bench *b, SimTime t, gpointer self, guint64 arg)
{
  TreeEvent *ev = g_slice_new (TreeEvent);
  *ev = (TreeEvent){t, b->seq++, self, arg};
  g_tree_insert (b->tree, ev, ev);
}

static void
tree_fill (Bench *b, guint32 n)
{
  b->tree = g_tree_new_full (compare_events, NULL, NULL, free_event);
  for (guint32 i = 0; i < n; i++)
    tree_push (b, draw_delay (b), b, i);
}

static void
tree_hold (Bench *b, guint32 holds)
{
  for (guint32 i = 0; i < holds; i++) {
    TreeEvent *first = g_tree_node_value (g_tree_node_first (b->tree));
    TreeEvent ev = *first;
    g_tree_remove (b->tree, first);
    b->checksum = b->checksum * 31 + (guint64)ev.time;
    tree_push (b, ev.time + draw_delay (b), ev.self, ev.arg);
  }
}

static void
time_slice (Bench *b, void (*hold) (Bench *, guint32), guint32 holds)
{
  double begin_s = now_s ();
  hold (b, holds);
  b->best_Mps = MAX (b->best_Mps, holds / (now_s () - begin_s) / 1e6);
}

/* Returns FALSE when the two disagree, or the queue is too slow where that is asked. */
static gboolean
compare_at (const SimTime *delays, guint32 n, guint32 holds)
{
  Bench e = {.delays = delays}, t = {.delays = delays};
  evq_fill (&e, n);
  tree_fill (&t, n);
  for (int i = 0; i < N_SLICES; i++) {
    time_slice (&e, evq_hold, holds);
    time_slice (&t, tree_hold, holds);
  }
  evq_free (e.queue);
  g_tree_destroy (t.tree);

  double ratio = e.best_Mps / t.best_Mps;
  printf ("%12u %10.2f %10.2f %7.1fx\n", n, e.best_Mps, t.best_Mps, ratio);
  fflush (stdout);
  if (e.checksum != t.checksum) {
    printf ("FAIL: the two gave different orders\n");
    return FALSE;
  }
  if (n == 10000 && ratio < MIN_RATIO) {
    printf ("FAIL: less than %.0f times GTree\n", MIN_RATIO);
    return FALSE;
  }
  return TRUE;
}

int
main (void)
{
  static const struct {
    guint32 n, holds; /* holds of one slice */
  } cases[] = {{100, 200000}, {1000, 200000}, {10000, 200000}, {100000, 100000}, {1000000, 100000}};
  SimRng r = sim_rng_stream (1, 0, "bench.delays", 0);
  g_autofree SimTime *delays = g_new (SimTime, N_DELAYS);
  for (guint32 i = 0; i < N_DELAYS; i++)
    delays[i] = 1 + (SimTime)sim_rng_exponential (&r, MEAN_TICKS);

  printf ("event queue, hold model, exponential delays (million holds/s)\n");
  printf ("%12s %10s %10s %8s\n", "outstanding", "evq", "GTree", "ratio");
  gboolean ok = TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    ok = compare_at (delays, cases[i].n, cases[i].holds) && ok;
  return ok ? 0 : 1;
}
