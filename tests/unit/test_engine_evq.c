/* The event queue: its total order, the ring beside the heap, cancelling, rebuilding, its limits.
 * The random comparison with a sorted list is tests/prop/prop_evq.c. */
#include <string.h>

#include "evq.h"

/* Pushes an event whose arg is its name. */
static SimEventId
push (EvQueue *q, SimTime t, SimPrio prio, char name)
{
  SimEventId id;
  g_assert_cmpint (evq_push (q, t, prio, 0, NULL, (guint64)name, &id), ==, EVQ_OK);
  return id;
}

/* Pops everything; the names in order. */
static char *
drain (EvQueue *q)
{
  GString *s = g_string_new (NULL);
  EvEvent ev;
  SimTime last = 0;
  while (evq_pop (q, SIM_TIME_MAX, &ev) == EVQ_EVENT) {
    g_assert_cmpint (ev.time, >=, last);
    last = ev.time;
    g_string_append_c (s, (char)ev.arg);
  }
  g_assert_cmpuint (evq_len (q), ==, 0);
  g_assert_cmpuint (evq_n_keys (q), ==, 0);
  return g_string_free (s, FALSE);
}

static void
expect (EvQueue *q, const char *names)
{
  g_autofree char *got = drain (q);
  g_assert_cmpstr (got, ==, names);
}

static void
test_order (void)
{
  /* time, then priority, then order of pushing */
  g_autoptr (EvQueue) q = evq_new (0, NULL, 0);
  push (q, 7, SIM_PRIO_NORMAL, 'g');
  push (q, 5, SIM_PRIO_SAMPLE, 'f');
  push (q, 5, SIM_PRIO_NORMAL, 'd');
  push (q, 5, SIM_PRIO_NORMAL, 'e');
  push (q, 5, SIM_PRIO_FAULT, 'b');
  push (q, 5, SIM_PRIO_DONE, 'c');
  push (q, SIM_TIME_MAX, SIM_PRIO_NORMAL, 'h');
  push (q, 3, SIM_PRIO_SAMPLE, 'a');
  expect (q, "abcdefgh");
}

static void
test_payload (void)
{
  g_autoptr (EvQueue) q = evq_new (0, NULL, 0);
  int object;
  SimEventId id;
  evq_push (q, 42, SIM_PRIO_DONE, 65534, &object, G_MAXUINT64, &id);
  EvEvent ev;
  g_assert_cmpint (evq_pop (q, SIM_TIME_MAX, &ev), ==, EVQ_EVENT);
  g_assert_cmpint (ev.time, ==, 42);
  g_assert_cmpuint (ev.kind, ==, 65534);
  g_assert_true (ev.self == &object);
  g_assert_cmpuint (ev.arg, ==, G_MAXUINT64);
  g_assert_cmpint (evq_pop (q, SIM_TIME_MAX, &ev), ==, EVQ_EMPTY);
}

static void
test_ring_does_not_overtake (void)
{
  /* At 10, the ring holds r and s. Before them come what the heap has for 10 at a lower priority
   * number, even if pushed later (b), and at NORMAL what was pushed earlier (a); after them what
   * has a higher number (x) and what was pushed while they waited (t). */
  g_autoptr (EvQueue) q = evq_new (0, NULL, 0);
  EvEvent ev;
  push (q, 10, SIM_PRIO_FAULT, '0');
  push (q, 10, SIM_PRIO_NORMAL, 'a');
  push (q, 11, SIM_PRIO_FAULT, 'y');
  g_assert_cmpint (evq_pop (q, SIM_TIME_MAX, &ev), ==, EVQ_EVENT);
  g_assert_cmpint ((int)ev.arg, ==, '0');
  push (q, 10, SIM_PRIO_NORMAL, 'r');
  push (q, 10, SIM_PRIO_SOLVE, 'x');
  push (q, 10, SIM_PRIO_NORMAL, 's');
  push (q, 10, SIM_PRIO_DONE, 'b');
  g_assert_cmpint (evq_pop (q, SIM_TIME_MAX, &ev), ==, EVQ_EVENT);
  g_assert_cmpint ((int)ev.arg, ==, 'b');
  push (q, 10, SIM_PRIO_NORMAL, 't');
  expect (q, "arstxy");
}

static void
test_ring_wraps_and_grows (void)
{
  /* A ring that is never empty and whose counters go round many times: strictly first in, first
   * out. */
  g_autoptr (EvQueue) q = evq_new (0, NULL, 0);
  SimEventId id;
  guint64 in = 0, out = 0;
  for (int round = 0; round < 300; round++) {
    for (int i = 0; i < 1 + round % 7 * 10; i++)
      evq_push (q, 0, SIM_PRIO_NORMAL, 0, NULL, in++, &id);
    for (int i = 0; i < 29 && evq_len (q) > 1; i++) {
      EvEvent ev;
      evq_pop (q, SIM_TIME_MAX, &ev);
      g_assert_cmpuint (ev.arg, ==, out++);
    }
  }
  g_assert_cmpuint (evq_len (q), ==, in - out);
}

static void
test_later (void)
{
  /* An event after the limit is told of and stays. */
  g_autoptr (EvQueue) q = evq_new (0, NULL, 0);
  EvEvent ev;
  push (q, 10, SIM_PRIO_NORMAL, 'a');
  g_assert_cmpint (evq_pop (q, 9, &ev), ==, EVQ_LATER);
  g_assert_cmpint (ev.time, ==, 10);
  g_assert_cmpuint (evq_len (q), ==, 1);
  push (q, 9, SIM_PRIO_NORMAL, 'b'); /* the clock has not moved */
  g_assert_cmpint (evq_pop (q, 9, &ev), ==, EVQ_EVENT);
  g_assert_cmpint ((int)ev.arg, ==, 'b');
  g_assert_cmpint (evq_pop (q, 10, &ev), ==, EVQ_EVENT);
}

static void
test_cancel (void)
{
  g_autoptr (EvQueue) q = evq_new (0, NULL, 0);
  SimEventId r = push (q, 0, SIM_PRIO_NORMAL, 'r'); /* in the ring: now is 0 */
  SimEventId a = push (q, 5, SIM_PRIO_NORMAL, 'a');
  push (q, 5, SIM_PRIO_NORMAL, 'b');
  g_assert_true (evq_cancel (q, a));
  g_assert_false (evq_cancel (q, a));
  g_assert_true (evq_cancel (q, r));
  g_assert_false (evq_cancel (q, r));
  g_assert_cmpuint (evq_len (q), ==, 1);
  g_assert_cmpuint (evq_n_keys (q), ==, 3);
  expect (q, "b");
  g_assert_false (evq_cancel (q, (SimEventId){0, 0}));
  g_assert_false (evq_cancel (q, (SimEventId){12345, 1}));
}

static void
test_cancel_after_firing (void)
{
  /* The slot of a fired event is reused; its old id must not hit the new event. */
  g_autoptr (EvQueue) q = evq_new (0, NULL, 0);
  EvEvent ev;
  SimEventId old = push (q, 1, SIM_PRIO_NORMAL, 'a');
  evq_pop (q, SIM_TIME_MAX, &ev);
  g_assert_false (evq_cancel (q, old));
  SimEventId new = push (q, 2, SIM_PRIO_NORMAL, 'b');
  g_assert_cmpuint (new.slot, ==, old.slot);
  g_assert_cmpuint (new.gen, !=, old.gen);
  g_assert_false (evq_cancel (q, old));
  expect (q, "b");
}

static void
test_cancelled_slot_waits (void)
{
  /* While the key of a cancelled event is in the heap its slot is not reused: the key would be
   * taken for the new event's. */
  g_autoptr (EvQueue) q = evq_new (0, NULL, 0);
  SimEventId a = push (q, 5, SIM_PRIO_NORMAL, 'a');
  evq_cancel (q, a);
  SimEventId b = push (q, 9, SIM_PRIO_NORMAL, 'b');
  g_assert_cmpuint (b.slot, !=, a.slot);
  expect (q, "b");
}

static void
test_rebuild (void)
{
  /* 1000 events, all but each tenth cancelled: keys stay within twice the live ones (and the least
   * number for a rebuild), and the rest keeps its order. */
  for (SimTime base = 0; base <= 1; base++) { /* 0: all in the ring, 1: in the heap */
    g_autoptr (EvQueue) q = evq_new (0, NULL, 0);
    SimEventId id[1000];
    for (guint64 i = 0; i < 1000; i++)
      evq_push (q, base * (SimTime)(1 + i * 7919 % 1000), SIM_PRIO_NORMAL, 0, NULL, i, &id[i]);
    for (guint64 i = 0; i < 1000; i++)
      if (i % 10 != 0) {
        g_assert_true (evq_cancel (q, id[i]));
        g_assert_cmpuint (evq_n_keys (q), <=, 2 * evq_len (q) + 64);
      }
    g_assert_cmpuint (evq_len (q), ==, 100);
    EvEvent ev, before = {0};
    for (guint64 n = 0; evq_pop (q, SIM_TIME_MAX, &ev) == EVQ_EVENT; n++, before = ev) {
      g_assert_cmpuint (ev.arg % 10, ==, 0);
      if (base == 0)
        g_assert_cmpuint (ev.arg, ==, 10 * n);
      else if (n > 0)
        g_assert_cmpint (ev.time, >, before.time);
    }
    g_assert_cmpuint (evq_n_keys (q), ==, 0);
  }
}

static void
test_rebuild_after_pop (void)
{
  /* A pop leaves its key at the root until the next push or pop. Here its slot is reused by an
   * event in the ring, that is cancelled, and then the heap is rebuilt: the stale key must not be
   * taken for a dead one, which would give its slot back twice. All slots given out later must
   * differ. */
  g_autoptr (EvQueue) q = evq_new (0, NULL, 0);
  SimEventId id[200];
  EvEvent ev;
  push (q, 1, SIM_PRIO_NORMAL, 'x');
  for (guint i = 0; i < 200; i++)
    id[i] = push (q, 10 + i, SIM_PRIO_NORMAL, 'y');
  evq_pop (q, SIM_TIME_MAX, &ev);
  evq_cancel (q, push (q, 1, SIM_PRIO_NORMAL, 'r'));
  for (guint i = 0; i < 150; i++)
    evq_cancel (q, id[i]);
  g_assert_cmpuint (evq_n_keys (q), <, 201);
  while (evq_pop (q, SIM_TIME_MAX, &ev) == EVQ_EVENT)
    ;
  gboolean taken[300] = {FALSE};
  for (guint i = 0; i < 250; i++) {
    guint32 slot = push (q, 1000, SIM_PRIO_DONE, 'z').slot;
    g_assert_cmpuint (slot, <, 300);
    g_assert_false (taken[slot]);
    taken[slot] = TRUE;
  }
}

static void
test_push_cancel_forever (void)
{
  /* A timer that is set anew each time, at one instant or later: memory stays bounded. */
  g_autoptr (EvQueue) q = evq_new (200, NULL, 0);
  for (int i = 0; i < 10000; i++) {
    SimEventId id;
    g_assert_cmpint (evq_push (q, i % 2 * 100, SIM_PRIO_NORMAL, 0, NULL, 0, &id), ==, EVQ_OK);
    g_assert_true (evq_cancel (q, id));
  }
  g_assert_cmpuint (evq_n_keys (q), <=, 2 * 64);
}

static void
test_full (void)
{
  g_autoptr (EvQueue) q = evq_new (3, NULL, 0);
  SimEventId id;
  push (q, 4, SIM_PRIO_NORMAL, 'c');
  SimEventId b = push (q, 3, SIM_PRIO_NORMAL, 'b');
  push (q, 2, SIM_PRIO_NORMAL, 'a');
  g_assert_cmpint (evq_push (q, 1, SIM_PRIO_NORMAL, 0, NULL, 0, &id), ==, EVQ_FULL);
  g_assert_cmpuint (id.gen, ==, 0);
  g_assert_cmpuint (evq_len (q), ==, 3);
  /* A dead key is no reason to refuse. */
  evq_cancel (q, b);
  push (q, 9, SIM_PRIO_NORMAL, 'd');
  expect (q, "acd");
}

static void
test_sequence_ends (void)
{
  /* 39 bits: the last two numbers are given out, and then no more. */
  g_autoptr (EvQueue) q = evq_new (0, NULL, ((guint64)1 << 39) - 2);
  SimEventId id;
  push (q, 1, SIM_PRIO_NORMAL, 'a');
  push (q, 1, SIM_PRIO_NORMAL, 'b');
  g_assert_cmpint (evq_push (q, 1, SIM_PRIO_NORMAL, 0, NULL, 0, &id), ==, EVQ_NO_SEQ);
  g_assert_cmpuint (id.gen, ==, 0);
  expect (q, "ab");
}

static void
test_shuffle (void)
{
  /* Random among equals, and only there; the same stream gives the same order, another another. */
  char *order[3];
  for (int run = 0; run < 3; run++) {
    SimRng ties = sim_rng_stream (run == 2 ? 2 : 1, 0, "engine.ties", 0);
    g_autoptr (EvQueue) q = evq_new (0, &ties, 0);
    for (char c = 'a'; c <= 'z'; c++) {
      push (q, 5, SIM_PRIO_NORMAL, c);
      push (q, 0, SIM_PRIO_NORMAL, (char)(c - 'a' + 'A'));
    }
    push (q, 5, SIM_PRIO_DONE, '1');
    push (q, 5, SIM_PRIO_SOLVE, '2');
    order[run] = drain (q);
    g_assert_cmpuint (strspn (order[run], "ABCDEFGHIJKLMNOPQRSTUVWXYZ"), ==, 26);
    g_assert_cmpint (order[run][26], ==, '1');
    g_assert_cmpuint (strspn (order[run] + 27, "abcdefghijklmnopqrstuvwxyz"), ==, 26);
    g_assert_cmpint (order[run][53], ==, '2');
  }
  g_assert_cmpstr (order[0], ==, order[1]);
  g_assert_cmpstr (order[0], !=, order[2]);
  g_assert_cmpint (strncmp (order[0], "ABCDEFGHIJKLMNOPQRSTUVWXYZ", 26), !=, 0);
  for (int run = 0; run < 3; run++)
    g_free (order[run]);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/engine/evq/order", test_order);
  g_test_add_func ("/engine/evq/payload", test_payload);
  g_test_add_func ("/engine/evq/ring_does_not_overtake", test_ring_does_not_overtake);
  g_test_add_func ("/engine/evq/ring_wraps_and_grows", test_ring_wraps_and_grows);
  g_test_add_func ("/engine/evq/later", test_later);
  g_test_add_func ("/engine/evq/cancel", test_cancel);
  g_test_add_func ("/engine/evq/cancel_after_firing", test_cancel_after_firing);
  g_test_add_func ("/engine/evq/cancelled_slot_waits", test_cancelled_slot_waits);
  g_test_add_func ("/engine/evq/rebuild", test_rebuild);
  g_test_add_func ("/engine/evq/rebuild_after_pop", test_rebuild_after_pop);
  g_test_add_func ("/engine/evq/push_cancel_forever", test_push_cancel_forever);
  g_test_add_func ("/engine/evq/full", test_full);
  g_test_add_func ("/engine/evq/sequence_ends", test_sequence_ends);
  g_test_add_func ("/engine/evq/shuffle", test_shuffle);
  return g_test_run ();
}
