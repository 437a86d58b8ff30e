/* test_net: dates of flows against closed forms, for both implementations, and net_flow against a
 * fluid reference that solves everything anew at each event. */
#include "net.h"
#include "../oracle/maxmin_ref.h"

#include <math.h>

typedef struct {
  SimEngine *eng;
  Net *net;
  SimTime done[64];
  guint n_done;
} World;

static void
on_done (gpointer self, guint64 arg, SimTime when)
{
  World *w = self;
  w->done[arg] = when;
  w->n_done++;
}

static World
world (gboolean flow, guint n_links, const double *cap)
{
  SimOptions opt = {.ticks_per_s = SIM_TICKS_PS, .seed = 1};
  World w = {.eng = sim_engine_new (&opt)};
  w.net = flow ? net_flow_new (w.eng, n_links, cap) : net_analytic_new (w.eng, n_links, cap);
  for (guint i = 0; i < 64; i++)
    w.done[i] = -1;
  return w;
}

static void
world_clear (World *w)
{
  net_free (w->net);
  sim_engine_free (w->eng);
}

static void
go (World *w)
{
  g_autoptr (GError) error = NULL;
  g_assert_true (sim_engine_run (w->eng, &error));
  g_assert_no_error (error);
}

/* Starts are scheduled, as models do it. */
typedef struct {
  World *w;
  NetFlowSpec spec;
  guint64 arg;
} Start;

static void
on_start (SimEngine *eng, gpointer self, guint64 arg)
{
  Start *s = self;
  (void)eng;
  (void)arg;
  net_start (s->w->net, &s->spec, on_done, s->w, s->arg);
}

static void
start_at (Start *s, SimTime t)
{
  guint16 kind = sim_engine_kind (s->w->eng, "test.start", on_start);
  sim_engine_at (s->w->eng, t, SIM_PRIO_NORMAL, kind, s, 0);
}

#define S ((SimTime)1000000000000)

static const guint32 link0[] = {0}, link1[] = {1}, both[] = {0, 1}, twice[] = {0, 0};

/* t = latency + bytes / min (cap / coef, own cap); zero bytes take the latency; no links, nothing.
 */
static void
test_alone (gconstpointer flow)
{
  double cap[] = {10, 4}, half[] = {0.5, 0.5};
  World w = world (flow != NULL, 2, cap);
  NetFlowSpec f = {.path = {both, NULL, 2, 0.25}, .bytes = 8};
  net_start (w.net, &f, on_done, &w, 0); /* 0.25 + 8 / 4 */
  go (&w);
  g_assert_cmpint (w.done[0], ==, 9 * S / 4);
  f = (NetFlowSpec){.path = {both, half, 2, 0}, .bytes = 8};
  net_start (w.net, &f, on_done, &w, 1); /* 8 / (4 / 0.5) */
  go (&w);
  g_assert_cmpint (w.done[1], ==, 13 * S / 4);
  f = (NetFlowSpec){.path = {both, NULL, 2, 0}, .bytes = 8, .cap_Bps = 2};
  net_start (w.net, &f, on_done, &w, 2);
  go (&w);
  g_assert_cmpint (w.done[2], ==, 29 * S / 4);
  f = (NetFlowSpec){.path = {both, NULL, 2, 1}, .bytes = 0};
  net_start (w.net, &f, on_done, &w, 3);
  f = (NetFlowSpec){.bytes = 100};
  net_start (w.net, &f, on_done, &w, 4);
  f = (NetFlowSpec){.path = {twice, NULL, 2, 0}, .bytes = 10};
  net_start (w.net, &f, on_done, &w, 5); /* crosses twice: 10 / (10 / 2) */
  go (&w);
  g_assert_cmpint (w.done[3], ==, 33 * S / 4);
  g_assert_cmpint (w.done[4], ==, 29 * S / 4);
  g_assert_cmpint (w.done[5], ==, 37 * S / 4);
  g_assert_cmpfloat (net_link_bytes (w.net, 0), ==, 8 + 4 + 8 + 20);
  g_assert_cmpfloat (net_link_bytes (w.net, 1), ==, 8 + 4 + 8);
  world_clear (&w);
}

/* 100 B from 0, 50 B from 5 s on 10 B/s: 5 s alone, then 5 B/s each: both end at 15 s. */
static void
test_share (void)
{
  double cap[] = {10, 100};
  World w = world (TRUE, 2, cap);
  Start a = {&w, {.path = {link0, NULL, 1, 0}, .bytes = 100}, 0};
  Start b = {&w, {.path = {both, NULL, 2, 0}, .bytes = 50}, 1};
  Start c = {&w, {.path = {link1, NULL, 1, 0}, .bytes = 950}, 2}; /* 5 s at 100, 450 left at 95 */
  start_at (&a, 0);
  start_at (&b, 5 * S);
  start_at (&c, 0);
  go (&w);
  g_assert_cmpint (w.done[0], ==, 15 * S);
  g_assert_cmpint (w.done[1], ==, 15 * S);
  g_assert_cmpint (ABS (w.done[2] - (5 * S + (SimTime)(450.0 / 95 * SIM_TICKS_PS))), <=, 1);
  g_assert_cmpfloat (net_link_bytes (w.net, 0), ==, 150);
  g_assert_cmpfloat (net_link_bytes (w.net, 1), ==, 1000);
  world_clear (&w);
}

/* 100 B at 10 B/s; half speed from 2 s to 4 s (20 + 10 moved), down to 5 s, then flapping 1 s down,
 * 1 s up from 6 s: 10 B in (5, 6), then 10 B in each of (7, 8), (9, 10), and 40 B from 11 s on. */
static void
test_faults (gconstpointer flow)
{
  double cap[] = {10, 1};
  World w = world (flow != NULL, 2, cap);
  Start a = {&w, {.path = {link0, NULL, 1, 0}, .bytes = 100}, 0};
  start_at (&a, 0);
  net_set_link_at (w.net, 2 * S, 0, 5);
  net_set_link_at (w.net, 4 * S, 0, 0);
  net_set_link_at (w.net, 5 * S, 0, 10);
  net_flap_link (w.net, 6 * S, 0, 10, S, S, 3);
  go (&w);
  g_assert_cmpint (w.done[0], ==, 15 * S);
  world_clear (&w);
}

static void
on_cancel (SimEngine *eng, gpointer self, guint64 arg)
{
  World *w = self;
  (void)eng;
  net_cancel (w->net, (guint32)arg);
}

/* Two flows of 100 B on 10 B/s; one is cancelled at 4 s (20 B moved), the other has 80 B left. */
static void
test_cancel (void)
{
  double cap[] = {10, 1};
  World w = world (TRUE, 2, cap);
  NetFlowSpec f = {.path = {link0, NULL, 1, 0}, .bytes = 100};
  guint32 a = net_start (w.net, &f, on_done, &w, 0);
  net_start (w.net, &f, on_done, &w, 1);
  sim_engine_at (w.eng, 4 * S, SIM_PRIO_NORMAL, sim_engine_kind (w.eng, "test.cancel", on_cancel),
                 &w, a);
  go (&w);
  g_assert_cmpint (w.done[0], ==, -1);
  g_assert_cmpint (w.done[1], ==, 12 * S);
  g_assert_cmpfloat (net_link_bytes (w.net, 0), ==, 120);
  g_assert_cmpint (sim_engine_pending (w.eng), ==, 0);
  world_clear (&w);
}

static void
test_dead_link (gconstpointer flow)
{
  double cap[] = {0, 1};
  World w = world (flow != NULL, 2, cap);
  NetFlowSpec f = {.path = {link0, NULL, 1, 0}, .bytes = 100};
  g_autoptr (GError) error = NULL;
  net_start (w.net, &f, on_done, &w, 0);
  g_assert_false (sim_engine_run (w.eng, &error));
  g_assert_error (error, SIM_ERROR, SIM_ERROR_STALLED);
  world_clear (&w);
}

/* ---- against the fluid reference ------------------------------------------------------------- */

enum { LINKS = 6, FLOWS = 24 };

/* All in seconds and doubles: solve, go to the next start or end, again. */
static void
reference (const double *cap, RefFlow *f, const double *begin, double *left, double *end)
{
  double now = 0;
  gboolean gone[FLOWS] = {FALSE};
  for (;;) {
    double next = INFINITY;
    for (guint i = 0; i < FLOWS; i++)
      f[i].live = !gone[i] && begin[i] <= now;
    maxmin_ref_solve (cap, LINKS, f, FLOWS);
    guint who = FLOWS;
    for (guint i = 0; i < FLOWS; i++) {
      double t = gone[i]     ? INFINITY
                 : f[i].live ? (f[i].rate > 0 ? now + left[i] / f[i].rate : INFINITY)
                             : begin[i];
      if (t < next) {
        next = t;
        who = i;
      }
    }
    if (who == FLOWS)
      return;
    for (guint i = 0; i < FLOWS; i++)
      if (f[i].live)
        left[i] -= f[i].rate * (next - now);
    if (f[who].live) {
      gone[who] = TRUE;
      end[who] = next;
    }
    now = next;
  }
}

static void
one_case (guint64 seed)
{
  SimRng r = sim_rng_stream (seed, 0, "test.net", 0);
  double cap[LINKS], begin[FLOWS], left[FLOWS], end[FLOWS];
  RefFlow ref[FLOWS];
  Start st[FLOWS];
  for (guint l = 0; l < LINKS; l++)
    cap[l] = 1 + (double)sim_rng_below (&r, 5);
  World w = world (TRUE, LINKS, cap);
  for (guint i = 0; i < FLOWS; i++) {
    SimTime begin_ticks = (SimTime)sim_rng_below (&r, 20) * S;
    SimTime lat = (SimTime)sim_rng_below (&r, 3) * S;
    ref[i] = (RefFlow){.n = 1 + (guint)sim_rng_below (&r, 3),
                       .cap = sim_rng_below (&r, 3) ? INFINITY : 0.5 + sim_rng_uniform (&r)};
    for (guint h = 0; h < ref[i].n; h++) {
      ref[i].link[h] = (guint32)sim_rng_below (&r, LINKS);
      ref[i].coef[h] = 0.25 + sim_rng_uniform (&r);
    }
    gint64 bytes = (gint64)sim_rng_below (&r, 30);
    st[i] = (Start){&w,
                    {.path = {ref[i].link, ref[i].coef, ref[i].n, (double)lat / SIM_TICKS_PS},
                     .bytes = bytes,
                     .cap_Bps = isinf (ref[i].cap) ? 0 : ref[i].cap},
                    i};
    begin[i] = (double)(begin_ticks + lat) / SIM_TICKS_PS;
    left[i] = (double)bytes;
    start_at (&st[i], begin_ticks);
  }
  reference (cap, ref, begin, left, end);
  go (&w);
  g_assert_cmpint (w.n_done, ==, FLOWS);
  for (guint i = 0; i < FLOWS; i++)
    if (fabs ((double)w.done[i] / SIM_TICKS_PS - end[i]) > 1e-9 * (1 + end[i])) {
      g_test_message ("seed %" G_GUINT64_FORMAT ": flow %u ends at %.12g, should at %.12g", seed, i,
                      (double)w.done[i] / SIM_TICKS_PS, end[i]);
      g_test_fail ();
    }
  world_clear (&w);
}

static void
test_reference (void)
{
  for (guint64 seed = 1; seed <= 300 && !g_test_failed (); seed++)
    one_case (seed);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_data_func ("/net/analytic/alone", NULL, test_alone);
  g_test_add_data_func ("/net/analytic/faults", NULL, test_faults);
  g_test_add_data_func ("/net/analytic/dead-link", NULL, test_dead_link);
  g_test_add_data_func ("/net/flow/alone", "flow", test_alone);
  g_test_add_data_func ("/net/flow/faults", "flow", test_faults);
  g_test_add_data_func ("/net/flow/dead-link", "flow", test_dead_link);
  g_test_add_func ("/net/flow/share", test_share);
  g_test_add_func ("/net/flow/cancel", test_cancel);
  g_test_add_func ("/net/flow/reference", test_reference);
  return g_test_run ();
}
