/* The engine: dispatch, limits and their messages, stalls, overflow, fingerprints, tie shuffling,
 * and two engines side by side. */
#include <string.h>

#include "engine.h"

#define PS                                                                                         \
  {                                                                                                \
    .ticks_per_s = SIM_TICKS_PS, .seed = 1                                                         \
  }

/* Notes what fires; arg is a character, and some have an effect. */
typedef struct {
  GString *log;
  guint16 kind;
  SimEventId victim;
} Log;

static void
log_event (SimEngine *eng, gpointer self, guint64 arg)
{
  Log *l = self;
  g_string_append_c (l->log, (char)arg);
  if (arg == 'C')
    g_assert_true (sim_engine_cancel (eng, l->victim));
  if (arg == 'S')
    sim_engine_stop (eng);
  if (arg == 'N') {
    sim_engine_after (eng, 0, SIM_PRIO_NORMAL, l->kind, l, 'n');
    sim_engine_after (eng, 0, SIM_PRIO_DONE, l->kind, l, 'd');
  }
  if (arg == 'F')
    sim_engine_fail (eng, g_error_new_literal (SIM_ERROR, 77, "said the handler"));
}

static SimEngine *
engine_with_log (Log *l, const SimOptions *opt)
{
  SimEngine *eng = sim_engine_new (opt);
  l->log = g_string_new (NULL);
  l->kind = sim_engine_kind (eng, "test.log", log_event);
  return eng;
}

static SimEventId
at (SimEngine *eng, Log *l, SimTime t, char name)
{
  return sim_engine_at (eng, t, SIM_PRIO_NORMAL, l->kind, l, (guint64)name);
}

static void
expect_log (Log *l, const char *text)
{
  g_assert_cmpstr (l->log->str, ==, text);
  g_string_free (l->log, TRUE);
  l->log = NULL;
}

/* Runs, expects an error whose message has all the parts ("|" between them). */
static void
expect_error (SimEngine *eng, int code, const char *parts)
{
  g_autoptr (GError) error = NULL;
  g_assert_false (sim_engine_run (eng, &error));
  g_assert_error (error, SIM_ERROR, code);
  g_auto (GStrv) list = g_strsplit (parts, "|", -1);
  for (guint i = 0; error != NULL && list[i] != NULL; i++)
    if (strstr (error->message, list[i]) == NULL) {
      g_test_message ("no \"%s\" in \"%s\"", list[i], error->message);
      g_test_fail ();
    }
}

static void
test_dispatch (void)
{
  SimOptions opt = PS;
  Log l;
  g_autoptr (SimEngine) eng = engine_with_log (&l, &opt);
  at (eng, &l, 20, 'b');
  at (eng, &l, 10, 'N'); /* d before n: its priority number is lower */
  at (eng, &l, 10, 'a'); /* before n: scheduled earlier */
  g_assert_cmpuint (sim_engine_n_outstanding (eng), ==, 3);
  g_assert_true (sim_engine_run (eng, NULL));
  expect_log (&l, "Ndanb");
  g_assert_cmpint (sim_engine_now (eng), ==, 20);
  g_assert_cmpuint (sim_engine_n_events (eng), ==, 5);
  g_assert_cmpuint (sim_engine_n_outstanding (eng), ==, 0);
}

static void
test_cancel_and_stop (void)
{
  SimOptions opt = PS;
  Log l;
  g_autoptr (SimEngine) eng = engine_with_log (&l, &opt);
  SimEventId first = at (eng, &l, 1, 'C');
  l.victim = at (eng, &l, 2, 'x');
  at (eng, &l, 3, 'S');
  at (eng, &l, 4, 'e');
  g_assert_true (sim_engine_run (eng, NULL));
  g_assert_cmpstr (l.log->str, ==, "CS");
  g_assert_false (sim_engine_cancel (eng, first)); /* it has fired */
  g_assert_true (sim_engine_run (eng, NULL));      /* goes on */
  expect_log (&l, "CSe");
}

static void
other_handler (SimEngine *eng, gpointer self, guint64 arg)
{
  (void)eng;
  (void)self;
  (void)arg;
}

static void
test_kinds (void)
{
  /* Names are shared by instances; 100 kinds make the table grow. */
  SimOptions opt = PS;
  g_autoptr (SimEngine) eng = sim_engine_new (&opt);
  guint16 a = sim_engine_kind (eng, "a", log_event);
  for (guint i = 0; i < 100; i++) {
    g_autofree char *name = g_strdup_printf ("kind %u", i);
    g_assert_cmpuint (sim_engine_kind (eng, name, other_handler), ==, a + 1u + i);
  }
  g_assert_cmpuint (sim_engine_kind (eng, "a", log_event), ==, a);
}

static void
test_max_events (void)
{
  SimOptions opt = PS;
  opt.max_events = 2;
  Log l;
  g_autoptr (SimEngine) eng = engine_with_log (&l, &opt);
  for (char c = 'a'; c <= 'd'; c++)
    at (eng, &l, 1000000 * (c - 'a' + 1), c);
  expect_error (eng, SIM_ERROR_LIMIT, "limit of 2 events|2 outstanding|2 us|2 events|test.log");
  expect_log (&l, "ab");
}

static void
test_max_events_just_enough (void)
{
  SimOptions opt = PS;
  opt.max_events = 2;
  Log l;
  g_autoptr (SimEngine) eng = engine_with_log (&l, &opt);
  at (eng, &l, 1, 'a');
  at (eng, &l, 2, 'b');
  g_assert_true (sim_engine_run (eng, NULL));
  expect_log (&l, "ab");
}

static void
test_horizon (void)
{
  /* An event on the horizon fires, one after it does not. */
  SimOptions opt = PS;
  opt.horizon = 2000;
  Log l;
  g_autoptr (SimEngine) eng = engine_with_log (&l, &opt);
  at (eng, &l, 2000, 'a');
  at (eng, &l, 2001, 'b');
  expect_error (eng, SIM_ERROR_LIMIT,
                "horizon of 2 ns|due at 2.001 ns|2000 ticks|after 1 events|test.log");
  expect_log (&l, "a");
}

static char *
report_stall (gpointer self)
{
  return g_strdup (self);
}

static void
test_stalled (void)
{
  SimOptions opt = PS;
  Log l;
  g_autoptr (SimEngine) eng = engine_with_log (&l, &opt);
  at (eng, &l, 5, 'a');
  sim_engine_set_pending (eng, 2);
  sim_engine_add_pending (eng, 3);
  sim_engine_add_pending (eng, -1);
  g_assert_cmpint (sim_engine_pending (eng), ==, 4);
  sim_engine_on_stall (eng, report_stall, (gpointer) "rank 3 waits for rank 0");
  expect_error (eng, SIM_ERROR_STALLED,
                "4 pieces of work|rank 3 waits for rank 0|5 ps|1 events|test.log");
  expect_log (&l, "a");
}

static void
test_stalled_at_once (void)
{
  /* Nothing was ever scheduled, and there is no reporter. */
  SimOptions opt = PS;
  g_autoptr (SimEngine) eng = sim_engine_new (&opt);
  sim_engine_set_pending (eng, 1);
  expect_error (eng, SIM_ERROR_STALLED, "1 pieces|0 events");
}

static void
test_overflow_time (void)
{
  SimOptions opt = PS;
  Log l;
  g_autoptr (SimEngine) eng = engine_with_log (&l, &opt);
  at (eng, &l, 5, 'a');
  g_assert_true (sim_engine_run (eng, NULL));
  SimEventId id = sim_engine_after (eng, SIM_TIME_MAX - 2, SIM_PRIO_NORMAL, l.kind, &l, 'b');
  g_assert_cmpuint (id.gen, ==, 0);
  g_assert_false (sim_engine_cancel (eng, id));
  expect_error (eng, SIM_ERROR_OVERFLOW, "\"test.log\" falls beyond the end of the clock|5 ps");
  expect_log (&l, "a");
}

static void
test_overflow_outstanding (void)
{
  SimOptions opt = PS;
  opt.max_outstanding = 2;
  Log l;
  g_autoptr (SimEngine) eng = engine_with_log (&l, &opt);
  for (char c = 'a'; c <= 'd'; c++)
    at (eng, &l, 5, c);
  expect_error (eng, SIM_ERROR_OVERFLOW, "more than 2 events are outstanding");
  expect_log (&l, "");
}

static void
test_handler_fails (void)
{
  SimOptions opt = PS;
  Log l;
  g_autoptr (SimEngine) eng = engine_with_log (&l, &opt);
  at (eng, &l, 1, 'F');
  at (eng, &l, 2, 'b');
  expect_error (eng, 77, "said the handler");
  expect_log (&l, "F");
}

/* ---- fingerprints ---- */

typedef struct {
  SimTime t;
  const char *kind;
  guint64 arg;
} Step;

/* The fingerprint of a run of the given events. padding kinds are registered first and the objects
 * lie elsewhere each time: neither may show. */
static guint64
fingerprint_of (const Step *steps, guint n, guint padding)
{
  SimOptions opt = PS;
  g_autoptr (SimEngine) eng = sim_engine_new (&opt);
  g_autofree char *object = g_malloc (1 + 1000 * padding);
  for (guint i = 0; i < padding; i++) {
    g_autofree char *name = g_strdup_printf ("padding %u", i);
    sim_engine_kind (eng, name, other_handler);
  }
  for (guint i = 0; i < n; i++)
    sim_engine_at (eng, steps[i].t, SIM_PRIO_NORMAL,
                   sim_engine_kind (eng, steps[i].kind, other_handler), object, steps[i].arg);
  g_assert_true (sim_engine_run (eng, NULL));
  return sim_engine_fingerprint (eng);
}

static void
test_fingerprint (void)
{
  const Step base[] = {{1, "x", 5}, {2, "y", 6}, {2, "x", 0}};
  Step s[3];
  guint64 f = fingerprint_of (base, 3, 0);
  g_assert_cmphex (fingerprint_of (base, 3, 0), ==, f);
  g_assert_cmphex (fingerprint_of (base, 3, 9), ==, f);

  /* Any one field of any one event changes it, and so do one event less and another order of a tie.
   */
  for (guint i = 0; i < 3; i++)
    for (int field = 0; field < 3; field++) {
      memcpy (s, base, sizeof s);
      if (field == 0)
        s[i].t += i == 0 ? -1 : 1;
      else if (field == 1)
        s[i].kind = "z";
      else
        s[i].arg ^= G_GUINT64_CONSTANT (1) << 63;
      g_assert_cmphex (fingerprint_of (s, 3, 0), !=, f);
    }
  g_assert_cmphex (fingerprint_of (base, 2, 0), !=, f);
  memcpy (s, base, sizeof s);
  s[1] = base[2];
  s[2] = base[1];
  g_assert_cmphex (fingerprint_of (s, 3, 0), !=, f);
}

static void
test_fingerprint_ignores_cancelled (void)
{
  guint64 f[2];
  for (int k = 0; k < 2; k++) {
    SimOptions opt = PS;
    Log l;
    g_autoptr (SimEngine) eng = engine_with_log (&l, &opt);
    at (eng, &l, 5, 'a');
    if (k == 1)
      sim_engine_cancel (eng, at (eng, &l, 4, 'x'));
    g_assert_true (sim_engine_run (eng, NULL));
    f[k] = sim_engine_fingerprint (eng);
    expect_log (&l, "a");
  }
  g_assert_cmphex (f[0], ==, f[1]);
}

/* ---- a model with random delays and many ties: jobs that visit stations ---- */

enum { N_JOBS = 50, N_STATIONS = 7, N_VISITS = 20 };

typedef struct {
  guint16 arrive;
  SimRng rng[N_JOBS];
  guint visits[N_JOBS];
  guint64 per_station[N_STATIONS], total_arg;
  SimTime busy;
} Jobs;

static void
job_arrives (SimEngine *eng, gpointer self, guint64 job)
{
  Jobs *m = self;
  m->per_station[sim_rng_below (&m->rng[job], N_STATIONS)]++;
  m->total_arg += job;
  if (++m->visits[job] == N_VISITS) {
    sim_engine_add_pending (eng, -1);
    return;
  }
  /* 0, 10 or 20 ticks, so that most events tie with others */
  SimTime delay = 10 * (SimTime)sim_rng_below (&m->rng[job], 3);
  m->busy += delay;
  sim_engine_after (eng, delay, SIM_PRIO_NORMAL, m->arrive, m, job);
}

static void
jobs_start (SimEngine *eng, Jobs *m)
{
  memset (m, 0, sizeof *m);
  m->arrive = sim_engine_kind (eng, "job.arrive", job_arrives);
  for (guint64 j = 0; j < N_JOBS; j++) {
    m->rng[j] = sim_engine_stream (eng, "job", j);
    sim_engine_at (eng, 0, SIM_PRIO_NORMAL, m->arrive, m, j);
  }
  sim_engine_set_pending (eng, N_JOBS);
}

static guint64
jobs_run (guint64 seed, guint64 run, gboolean shuffle, Jobs *m, SimTime *end)
{
  SimOptions opt = {.ticks_per_s = SIM_TICKS_US, .seed = seed, .run = run, .shuffle_ties = shuffle};
  g_autoptr (SimEngine) eng = sim_engine_new (&opt);
  g_autoptr (GError) error = NULL;
  jobs_start (eng, m);
  g_assert_true (sim_engine_run (eng, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (sim_engine_n_events (eng), ==, N_JOBS * N_VISITS);
  *end = sim_engine_now (eng);
  return sim_engine_fingerprint (eng);
}

static void
test_same_seed_same_run (void)
{
  Jobs a, b;
  SimTime end_a, end_b;
  guint64 f = jobs_run (3, 4, FALSE, &a, &end_a);
  g_assert_cmphex (jobs_run (3, 4, FALSE, &b, &end_b), ==, f);
  g_assert_cmpint (end_a, ==, end_b);
  g_assert_true (memcmp (&a, &b, sizeof a) == 0);
  g_assert_cmphex (jobs_run (4, 4, FALSE, &b, &end_b), !=, f);
  g_assert_cmphex (jobs_run (3, 5, FALSE, &b, &end_b), !=, f);
}

static void
test_shuffle_ties (void)
{
  /* Jobs do not meet, so the order within a tie cannot matter: with ties shuffled the fingerprint
   * is another, every total is the same, and the streams of the model have drawn the same numbers.
   */
  Jobs fifo, shuffled;
  SimTime end_fifo, end_shuffled;
  guint64 f = jobs_run (3, 0, FALSE, &fifo, &end_fifo);
  guint64 g = jobs_run (3, 0, TRUE, &shuffled, &end_shuffled);
  g_assert_cmphex (f, !=, g);
  g_assert_cmphex (jobs_run (3, 0, TRUE, &shuffled, &end_shuffled), ==, g);
  g_assert_cmpint (end_fifo, ==, end_shuffled);
  g_assert_true (memcmp (&fifo, &shuffled, sizeof fifo) == 0);
}

static void
run_other_engine (SimEngine *eng, gpointer self, guint64 arg)
{
  (void)eng;
  (void)arg;
  g_assert_true (sim_engine_run (self, NULL));
}

static void
test_two_engines (void)
{
  /* Two engines interleaved, one even run from within a handler of the other: both as if alone. */
  Jobs alone, a, b;
  SimTime end;
  guint64 f = jobs_run (9, 0, FALSE, &alone, &end);
  SimOptions opt = {.ticks_per_s = SIM_TICKS_US, .seed = 9};
  g_autoptr (SimEngine) one = sim_engine_new (&opt);
  g_autoptr (SimEngine) two = sim_engine_new (&opt);
  g_autoptr (SimEngine) outer = sim_engine_new (&opt);
  jobs_start (one, &a);
  jobs_start (two, &b);
  guint16 kind = sim_engine_kind (outer, "outer", run_other_engine);
  sim_engine_at (outer, 7, SIM_PRIO_NORMAL, kind, two, 0);
  sim_engine_at (outer, 8, SIM_PRIO_NORMAL, kind, one, 0);
  g_assert_true (sim_engine_run (outer, NULL));
  g_assert_cmphex (sim_engine_fingerprint (one), ==, f);
  g_assert_cmphex (sim_engine_fingerprint (two), ==, f);
  g_assert_true (memcmp (&a, &alone, sizeof a) == 0);
  g_assert_cmpint (sim_engine_now (one), ==, end);
  g_assert_cmpint (sim_engine_now (outer), ==, 8);
}

static void
observe (gpointer self, SimTime t, const char *kind, guint64 arg)
{
  g_string_append_printf (self, "%d %s %c;", (int)t, kind, (char)arg);
}

static void
test_observer (void)
{
  g_autoptr (GString) seen = g_string_new (NULL);
  SimOptions opt = PS;
  opt.observe = observe;
  opt.observe_self = seen;
  Log l;
  g_autoptr (SimEngine) eng = engine_with_log (&l, &opt);
  at (eng, &l, 4, 'b');
  at (eng, &l, 3, 'a');
  g_assert_true (sim_engine_run (eng, NULL));
  expect_log (&l, "ab");
  g_assert_cmpstr (seen->str, ==, "3 test.log a;4 test.log b;");
}

static void
test_stream (void)
{
  SimOptions opt = {.ticks_per_s = 1.0, .seed = 11, .run = 12};
  g_autoptr (SimEngine) eng = sim_engine_new (&opt);
  SimRng a = sim_engine_stream (eng, "p", 5), b = sim_rng_stream (11, 12, "p", 5);
  g_assert_true (memcmp (&a, &b, sizeof a) == 0);
  g_assert_null (sim_engine_trace (eng));
  g_assert_cmpfloat (sim_engine_ticks_per_s (eng), ==, 1.0);
}

static void
test_past_is_a_fault (void)
{
  /* Scheduling before now is the programmer's error: an assertion in a process of its own. */
  if (g_test_subprocess ()) {
    SimOptions opt = PS;
    Log l;
    g_autoptr (SimEngine) eng = engine_with_log (&l, &opt);
    at (eng, &l, 5, 'a');
    sim_engine_run (eng, NULL);
    at (eng, &l, 4, 'b');
    return;
  }
  g_test_trap_subprocess (NULL, 0, 0);
  g_test_trap_assert_failed ();
  g_test_trap_assert_stderr ("*t >= eng->now*");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/engine/run/dispatch", test_dispatch);
  g_test_add_func ("/engine/run/cancel_and_stop", test_cancel_and_stop);
  g_test_add_func ("/engine/run/kinds", test_kinds);
  g_test_add_func ("/engine/run/max_events", test_max_events);
  g_test_add_func ("/engine/run/max_events_just_enough", test_max_events_just_enough);
  g_test_add_func ("/engine/run/horizon", test_horizon);
  g_test_add_func ("/engine/run/stalled", test_stalled);
  g_test_add_func ("/engine/run/stalled_at_once", test_stalled_at_once);
  g_test_add_func ("/engine/run/overflow_time", test_overflow_time);
  g_test_add_func ("/engine/run/overflow_outstanding", test_overflow_outstanding);
  g_test_add_func ("/engine/run/handler_fails", test_handler_fails);
  g_test_add_func ("/engine/run/fingerprint", test_fingerprint);
  g_test_add_func ("/engine/run/fingerprint_cancelled", test_fingerprint_ignores_cancelled);
  g_test_add_func ("/engine/run/same_seed_same_run", test_same_seed_same_run);
  g_test_add_func ("/engine/run/shuffle_ties", test_shuffle_ties);
  g_test_add_func ("/engine/run/two_engines", test_two_engines);
  g_test_add_func ("/engine/run/observer", test_observer);
  g_test_add_func ("/engine/run/stream", test_stream);
  g_test_add_func ("/engine/run/past_is_a_fault", test_past_is_a_fault);
  return g_test_run ();
}
