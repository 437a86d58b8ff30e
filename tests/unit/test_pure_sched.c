/* Schedules: closed forms of time and memory, the notation, and what is refused.
 * Each test states its formula; times are exact, in ticks. */
#include "sched.h"

#include <string.h>

typedef struct {
  gint64 makespan;
  gint64 busy; /* of rank 0 */
  gint64 wait; /* largest span - busy of a rank, span from its first start to its last end */
  gint64 idle; /* largest makespan - busy of a rank */
} Figures;

static SchedTable *
make (const char *name, guint pp, guint vpp, guint m)
{
  GError *error = NULL;
  SchedTable *t = sched_generate (name, pp, vpp, m, &error);

  g_assert_no_error (error);
  g_assert_true (sched_verify (t, &error));
  g_assert_no_error (error);
  return t;
}

static Figures
run (const SchedTable *t, gint64 f, gint64 i, gint64 w, gint64 p2p, gint64 saved)
{
  SchedCosts costs = {{f, i + w, i, w}, NULL, p2p, saved};
  g_autofree gint64 *v = g_new (gint64, 3 * (gsize)t->ranks);
  SchedRun r = {0, v, v + t->ranks, v + 2 * t->ranks};
  Figures out = {0, 0, 0, 0};
  GError *error = NULL;

  g_assert_true (sched_dry_run (t, &costs, &r, &error));
  g_assert_no_error (error);
  out.makespan = r.makespan;
  out.busy = r.busy[0];
  for (guint k = 0; k < t->ranks; k++) {
    out.wait = MAX (out.wait, r.end[k] - r.start[k] - r.busy[k]);
    out.idle = MAX (out.idle, r.makespan - r.busy[k]);
  }
  return out;
}

/* Micro-batches in flight over all chunks of a rank. */
static guint
peak (const SchedTable *t, guint rank)
{
  g_autofree double *one = g_new (double, t->stages);

  for (guint s = 0; s < t->stages; s++)
    one[s] = 1;
  return (guint)sched_peak_weighted (t, rank, one);
}

/* GPipe, 1F1B: (m + p - 1)(f + b). In flight: m; min (m, p - rank). */
static void
test_single_chunk (void)
{
  static const guint shapes[][2] = {{1, 1}, {1, 5}, {2, 1}, {4, 2}, {4, 8}, {5, 7}, {16, 64}};

  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++) {
    guint p = shapes[i][0], m = shapes[i][1];
    g_autoptr (SchedTable) gpipe = make ("gpipe", p, 1, m);
    g_autoptr (SchedTable) one = make ("1f1b", p, 1, m);

    g_assert_cmpint (run (gpipe, 1, 1, 1, 0, 0).makespan, ==, (m + p - 1) * 3);
    g_assert_cmpint (run (one, 1, 1, 1, 0, 0).makespan, ==, (m + p - 1) * 3);
    g_assert_cmpint (run (one, 7, 5, 4, 0, 0).makespan, ==, (m + p - 1) * 16);
    g_assert_cmpint (run (one, 7, 5, 4, 0, 0).busy, ==, m * 16);
    for (guint r = 0; r < p; r++) {
      g_assert_cmpuint (peak (gpipe, r), ==, m);
      g_assert_cmpuint (peak (one, r), ==, MIN (m, p - r));
    }
  }
}

/* Sends of c ticks: GPipe pays the fill and the drain, 2(p-1)c, as every other send is covered;
 * 1F1B also waits in its steady state, so it pays more (for m well above p). */
static void
test_send_latency (void)
{
  g_autoptr (SchedTable) gpipe = make ("gpipe", 4, 1, 16);
  g_autoptr (SchedTable) one = make ("1f1b", 4, 1, 16);
  gint64 base = (16 + 3) * 300;

  g_assert_cmpint (run (gpipe, 100, 100, 100, 5, 0).makespan, ==, base + 2 * 3 * 5);
  g_assert_cmpint (run (one, 100, 100, 100, 5, 0).makespan, >, base + 2 * 3 * 5);
}

/* Interleaved and breadth-first (m >= p): (m v + p - 1)(f + b), f and b of one chunk. Interleaved
 * in flight: min (m v, 2 (p - rank - 1) + (v - 1) p + 1) chunks, on rank 0 v p (1 + (p-1)/(p v));
 * breadth-first m v. */
static void
test_looped (void)
{
  static const guint shapes[][3] = {{1, 2, 3}, {2, 2, 2},  {4, 2, 4},
                                    {4, 3, 8}, {8, 4, 32}, {3, 5, 9}};

  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++) {
    guint p = shapes[i][0], v = shapes[i][1], m = shapes[i][2];
    g_autoptr (SchedTable) inter = make ("interleaved", p, v, m);
    g_autoptr (SchedTable) bfs = make ("bfs", p, v, m);

    g_assert_cmpint (run (inter, 1, 1, 1, 0, 0).makespan, ==, (m * v + p - 1) * 3);
    g_assert_cmpint (run (inter, 7, 5, 4, 0, 0).makespan, ==, (m * v + p - 1) * 16);
    g_assert_cmpint (run (bfs, 7, 5, 4, 0, 0).makespan, ==, (m * v + p - 1) * 16);
    for (guint r = 0; r < p; r++) {
      g_assert_cmpuint (peak (inter, r), ==, MIN (m * v, 2 * (p - r - 1) + (v - 1) * p + 1));
      g_assert_cmpuint (peak (bfs, r), ==, m * v);
    }
  }
}

/* "interleaved" with one chunk is 1F1B, whatever m; bfs with one chunk is GPipe. */
static void
test_same_tables (void)
{
  g_autoptr (SchedTable) a = make ("interleaved", 4, 1, 7);
  g_autoptr (SchedTable) b = make ("1f1b", 4, 1, 7);
  g_autoptr (SchedTable) c = make ("bfs", 4, 1, 7);
  g_autoptr (SchedTable) d = make ("gpipe", 4, 1, 7);
  g_autofree char *ta = sched_print (a), *tb = sched_print (b);
  g_autofree char *tc = sched_print (c), *td = sched_print (d);

  g_assert_cmpstr (ta, ==, tb);
  g_assert_cmpstr (tc, ==, td);
}

/* Zero bubble (arXiv 2401.10241, table 1): ZB-H1 waits (p-1)(f + i - w) and holds p micro-batches
 * on every rank; ZB-H2 waits (p-1)(f + i - 2w), within each rank's own span, and holds 2p-1. For
 * m >= p and m >= 2p - 1 and w no larger than what the formula can absorb. */
static void
test_zero_bubble (void)
{
  static const gint64 costs[][3] = {{1, 1, 1}, {10, 11, 9}, {12, 13, 7}, {20, 20, 10}};

  for (guint p = 2; p <= 8; p++) {
    g_autoptr (SchedTable) h1 = make ("zb-h1", p, 1, p + p / 2);
    g_autoptr (SchedTable) h2 = make ("zb-h2", p, 1, 2 * p - 1);

    for (guint c = 0; c < G_N_ELEMENTS (costs); c++) {
      gint64 f = costs[c][0], i = costs[c][1], w = costs[c][2];
      Figures one = run (h1, f, i, w, 0, 0), two = run (h2, f, i, w, 0, 0);

      g_assert_cmpint (one.idle, ==, (p - 1) * (f + i - w));
      g_assert_cmpint (two.wait, ==, (p - 1) * (f + i - 2 * w));
    }
    for (guint r = 0; r < p; r++) {
      g_assert_cmpuint (peak (h1, r), ==, p);
      g_assert_cmpuint (peak (h2, r), ==, 2 * p - 1);
    }
  }
}

/* ZB-V (arXiv 2405.15362): with f = i = w no rank waits between its first and last action, and
 * every rank holds at most 2p chunks, what 1F1B's first rank holds. Rank r starts at r f, so the
 * step takes 6 m + p - 1. Fewer than 2p - 1 micro-batches keep the memory but not the zero. */
static void
test_zb_v (void)
{
  for (guint p = 1; p <= 8; p++)
    for (guint m = 1; m < 4 * p; m++) {
      g_autoptr (SchedTable) t = make ("zb-v", p, 2, m);
      Figures got = run (t, 1, 1, 1, 0, 0);

      if (m >= 2 * p - 1) {
        g_assert_cmpint (got.wait, ==, 0);
        g_assert_cmpint (got.makespan, ==, 6 * m + p - 1);
      }
      for (guint r = 0; r < p; r++)
        g_assert_cmpuint (peak (t, r), <=, 2 * p);
      if (m >= 2 * p)
        g_assert_cmpuint (peak (t, 0), ==, 2 * p);
    }
}

/* DualPipe: (P/2 - 1)(F&B + B - 3W) of waiting with P parts of the model and P + 1 micro-batches in
 * flight (DeepSeek-V3, arXiv 2412.19437, table 2; the DualPipe repository gives the same line for
 * DualPipeV on P/2 ranks). Exact when f = i and w <= i. Here F&B = f + b - saved. */
static void
test_dualpipe (void)
{
  static const gint64 costs[][2] = {{1, 1}, {10, 8}, {10, 10}, {12, 4}};

  for (guint p = 2; p <= 8; p += 2) {
    g_autoptr (SchedTable) dual = make ("dualpipe", p, 1, 2 * p + 4);
    g_autoptr (SchedTable) vee = make ("dualpipev", p / 2, 2, p + 2);

    for (guint c = 0; c < G_N_ELEMENTS (costs); c++) {
      gint64 f = costs[c][0], w = costs[c][1], b = f + w;
      gint64 expected = (p / 2 - 1) * (f + b + b - 3 * w);
      Figures d = run (dual, f, f, w, 0, 0), v = run (vee, f, f, w, 0, 0);

      g_assert_cmpint (d.idle, ==, expected);
      g_assert_cmpint (v.idle, ==, expected);
    }
    for (guint r = 0; r < p; r++)
      g_assert_cmpuint (peak (dual, r), ==, p + 1);
    for (guint r = 0; r < p / 2; r++)
      g_assert_cmpuint (peak (vee, r), ==, p + 1);
    /* A pair that takes less: the published figure is that of the middle ranks, which wait most. */
    Figures saved = run (dual, 10, 10, 8, 0, 8);
    g_assert_cmpint (saved.idle, ==, (p / 2 - 1) * ((28 - 8) + 18 - 24));
  }
}

/* Both copies of a part sit on mirrored ranks and share the micro-batches half and half. */
static void
test_dualpipe_layout (void)
{
  g_autoptr (SchedTable) t = make ("dualpipe", 4, 1, 10);

  g_assert_cmpuint (t->pipelines, ==, 2);
  g_assert_cmpuint (t->stages, ==, 8);
  g_assert_cmpuint (sched_depth (t), ==, 4);
  g_assert_cmpuint (sched_part (t, 5), ==, 1);
  g_assert_cmpuint (sched_first_microbatch (t, 3), ==, 0);
  g_assert_cmpuint (sched_first_microbatch (t, 5), ==, 5);
  for (guint s = 0; s < 4; s++) {
    g_assert_cmpuint (t->stage_rank[s], ==, s);
    g_assert_cmpuint (t->stage_rank[4 + s], ==, 3 - s);
  }
}

/* Per-stage costs: m micro-batches of 1F1B behind one slow stage take m (f + b) of that stage, plus
 * the others' once for fill and drain: p = 3, slow middle. */
static void
test_stage_costs (void)
{
  g_autoptr (SchedTable) t = make ("gpipe", 3, 1, 10);
  const gint64 stage[3][4] = {{1, 2, 1, 1}, {10, 20, 10, 10}, {1, 2, 1, 1}};
  SchedCosts costs = {.stage = stage};
  SchedRun r = {0, NULL, NULL, NULL};

  g_assert_true (sched_dry_run (t, &costs, &r, NULL));
  g_assert_cmpint (r.makespan, ==, 10 * 30 + 2 * 3);
}

static void
test_huge_costs (void)
{
  g_autoptr (SchedTable) t = make ("1f1b", 4, 1, 8);

  g_assert_cmpint (run (t, G_MAXINT64 / 4, G_MAXINT64 / 4, G_MAXINT64 / 4, G_MAXINT64, 0).makespan,
                   ==, G_MAXINT64);
}

/* In flight by stage, and weighted by what a chunk holds. Row: F of chunk 0 twice, of chunk 1 once.
 */
static void
test_peaks (void)
{
  g_autoptr (SchedTable) t = sched_parse ("0F0 0F1 1F0 1I0 0B0 1W0 1F1 1B1 0B1", -1, NULL);
  guint32 in_flight[2];
  const double weight[2] = {1.0, 0.25};

  g_assert_true (sched_verify (t, NULL));
  sched_peak_in_flight (t, 0, in_flight);
  g_assert_cmpuint (in_flight[0], ==, 2);
  g_assert_cmpuint (in_flight[1], ==, 1); /* I does not let go, W does */
  g_assert_cmpfloat (sched_peak_weighted (t, 0, weight), ==, 2.25);
}

/* --- what is refused --- */

static void
test_legal_counts (void)
{
  static const struct {
    const char *name;
    guint pp, vpp, m;
    int code;
    const char *says;
  } cases[] = {
      {"interleaved", 4, 2, 10, SCHED_ERROR_DIVISIBILITY, "nearest legal: 8 or 12"},
      {"interleaved", 4, 2, 3, SCHED_ERROR_DIVISIBILITY, "nearest legal: 4)"},
      {"dualpipe", 5, 1, 20, SCHED_ERROR_DIVISIBILITY, "nearest legal: 4 or 6"},
      {"dualpipe", 4, 1, 11, SCHED_ERROR_DIVISIBILITY, "nearest legal: 10 or 12"},
      {"dualpipe", 4, 1, 6, SCHED_ERROR_DIVISIBILITY, "nearest legal: 8)"},
      {"dualpipev", 4, 2, 7, SCHED_ERROR_DIVISIBILITY, "nearest legal: 8)"},
      {"1f1b", 4, 2, 8, SCHED_ERROR_DIVISIBILITY, "1f1b has vpp 1 (found 2"},
      {"zb-v", 4, 1, 8, SCHED_ERROR_DIVISIBILITY, "zb-v has vpp 2 (found 1"},
      {"1f1b", 0, 1, 8, SCHED_ERROR_ILLEGAL, "at least 1"},
      {"1f1b", 4, 1, 0, SCHED_ERROR_ILLEGAL, "at least 1"},
      {"1f1b", 70000, 1, 1, SCHED_ERROR_ILLEGAL, "too large"},
      {"interleaved", 65535, 65535, 65535, SCHED_ERROR_ILLEGAL, "too large"},
      {"bfs", G_MAXUINT, G_MAXUINT, G_MAXUINT, SCHED_ERROR_ILLEGAL, "too large"},
      {"dualpipe", 4294967294u, 1, 4294967294u, SCHED_ERROR_DIVISIBILITY, "at least 2 pp"},
      {"1f1b", 4, 1, 4000000000u, SCHED_ERROR_ILLEGAL, "too large"},
      {"pipedream", 4, 1, 8, SCHED_ERROR_ILLEGAL, "known: gpipe, 1f1b, "},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    SchedTable *t = sched_generate (cases[i].name, cases[i].pp, cases[i].vpp, cases[i].m, &error);

    g_assert_null (t);
    g_assert_error (error, SCHED_ERROR, cases[i].code);
    if (!strstr (error->message, cases[i].says))
      g_test_fail_printf ("case %u: %s", i, error->message);
  }
}

static void
test_refused_tables (void)
{
  static const char *const cases[][2] = {
      {"0F0 0F0 0B0", "rank 0, action 2, 0F0: is there twice (in: 0F0 [0F0] 0B0)"},
      {"0B0 0F0", "comes before its forward 0F0"},
      {"0F0 0B0 0B0", "is there twice"},
      {"0F0 0I0 0B0", "has its backward twice"},
      {"0F0 0B0 0W0", "follows a full backward"},
      {"0F0 0W0 0I0", "comes before its input gradient 0I0"},
      {"0F0 0I0", "rank 0 has no 0W0"},
      {"0F0 0I0 0F1 0I1 0W1", "rank 0 has no 0W0"},
      {"0F0 0F1 0B1 0F2 0I2 0W2", "rank 0 has no 0B0"},
      {"0F0 0B0 0F1 0F2", "no rank has 0B1"},
      {"0F0 0B0\n2F0 2B0", "no rank has 1F0"},
      {"0F0 0F1 0B0 0B1\n1F0 1B0", "no rank has 1F1"},
      {"0F0 0B0\n0F1 0B1", "stage 0 belongs to rank 0"},
      {"0F0 0B0\n1:", "rank number"},
      {"rank 0: 0F0 0B0\nrank 1:", "rank 1 has no actions"},
      {"65534F4294967294", "no rank has 0F0"},
      {"0F4294967294 0F1 0F0 0B0", "no rank has 0F2"},
      {"pipelines 2\n0F0 1B1", "no rank has 0B0"},
      {"pipelines 2\n0F1 1F1", "takes micro-batches 0 to 0"},
      /* each waits for the other */
      {"0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1", "rank 0, action 2, 0B0: deadlock: waits for 1B0 of rank "
                                           "1, which itself waits at action 2, 1F1 "
                                           "(in: 0F0 [0B0] 0F1 0B1)"},
      {"1F0 0F0 1B0 0B0", "waits for 0F0, which is not before it on the same rank"},
      /* a pair cannot feed itself, nor wait for what follows it */
      {"(0F0;0B0)OVERLAP_F_B", "cannot hold a forward and its own backward"},
      {"0F0 1F0 (0F1;0B0)OVERLAP_F_B 1B0 1F1 1B1 0B1", "0B0: deadlock: waits for 1B0"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (SchedTable) t = sched_parse (cases[i][0], -1, &error);

    if (t)
      g_assert_false (sched_verify (t, &error));
    g_assert_nonnull (error);
    if (error && !strstr (error->message, cases[i][1]))
      g_test_fail_printf ("case %u \"%s\": %s", i, cases[i][0], error->message);
  }
}

static void
test_refused_text (void)
{
  static const char *const cases[][2] = {
      {"", "line 1, column 1: the table has no actions"},
      {"# nothing\n\n", "no actions"},
      {"0F0 0X1", "line 1, column 6: found \"X1\", expected F, B, I or W"},
      {"0F0\n  0F", "line 2, column 5: found the end of the line, expected a micro-batch number"},
      {"F0", "expected a stage number"},
      {"65535F0", "line 1, column 1: stage number is too large (at most 65534)"},
      {"0F4294967295", "line 1, column 3: micro-batch number is too large"},
      {"0F99999999999999999999999999999", "too large"},
      {"99999999999999999999999999999F0", "too large"},
      {"rank 99999999999999999999: 0F0", "rank number is too large"},
      {"rank: 0F0", "expected a rank number"},
      {"rank 0 0F0", "expected ':' after the rank"},
      {"rank 1: 1F0\n", "rank 0 is missing"},
      {"rank 0: 0F0\nrank 0: 0B0", "line 2, column 1: rank 0 has two lines"},
      {"rank 0: 0F0\nrank 2: 1F0\n", "rank 1 is missing (2 lines, so ranks 0 to 1)"},
      {"rank 0: 0F0\n1F0\n", "either every line has a rank number"},
      {"0F0\nrank 1: 1F0\n", "either every line has a rank number"},
      {"0F00B0", "line 1, column 5: found \"B0\", expected a blank or a comma"},
      {"(0F0;0B1", "expected ')'"},
      {"(0F0 0B1)OVERLAP_F_B", "expected ';'"},
      {"(0F0;0B1)", "expected OVERLAP_F_B"},
      {"(0F0;0B1)OVERLAP_F_BB", "expected a blank"},
      {"(0B0;0F1)OVERLAP_F_B", "column 2: found \"0B0;0F1)OVERLAP_F_B\", expected a forward"},
      {"(0F0;0F1)OVERLAP_F_B", "expected a backward (B or I) second"},
      {"((0F0;0B1);0B1)OVERLAP_F_B", "expected a stage number"},
      {"0F0 0SEND_F0", "communication is not part of a table"},
      {"0F0 0\xff\x01", "found \"\\xff\\x01\""},
      {"pipelines 0\n0F0", "at least 1 pipeline"},
      {"pipelines 2\n0F0 0B0", "do not divide"},
      {"pipelines 2 3\n0F0 0B0", "expected the end of the line"},
      {"0F0\npipelines 2\n", "before the first rank"},
      {"-1F0", "expected a stage number"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (sched_parse (cases[i][0], -1, &error));
    g_assert_error (error, SCHED_ERROR, SCHED_ERROR_SYNTAX);
    if (!strstr (error->message, cases[i][1]))
      g_test_fail_printf ("case %u \"%s\": %s", i, cases[i][0], error->message);
    g_assert_null (strchr (error->message, '\n'));
  }
}

/* A NUL inside the text, more than 10^7 actions, and a line of megabytes with an error at its end.
 */
static void
test_hostile_text (void)
{
  g_autoptr (GError) error = NULL;
  gsize n = (gsize)(SCHED_MAX_ACTIONS + 1) * 4;
  g_autofree char *big = g_malloc (n);

  g_assert_null (sched_parse ("0F0 \0 0B0", 9, &error));
  g_assert_error (error, SCHED_ERROR, SCHED_ERROR_SYNTAX);
  g_clear_error (&error);

  for (gsize i = 0; i < n; i += 4)
    memcpy (big + i, "0F0 ", 4);
  g_assert_null (sched_parse (big, (gssize)n, &error));
  g_assert_error (error, SCHED_ERROR, SCHED_ERROR_SYNTAX);
  g_assert_cmpstr (error->message, ==, "line 1, column 40000001: more than 10000000 actions");
  g_clear_error (&error);

  memset (big, ' ', 4000000);
  memset (big + 2000000, '7', 2000000);
  g_assert_null (sched_parse (big, 4000000, &error));
  g_assert_error (error, SCHED_ERROR, SCHED_ERROR_SYNTAX);
  g_assert_cmpuint (strlen (error->message), <, 200);
}

/* --- notation --- */

static void
test_notation (void)
{
  static const char *const same[] = {
      "rank 0: 0F0 (0F1;0B0)OVERLAP_F_B 0I1 0W1\n",
      "0F0 (0F1;0B0)OVERLAP_F_B 0I1 0W1",
      "0F0,(0F1;0B0)OVERLAP_F_B,,0I1,0W1,\r\n\r\n",
      "  0 : 0F0\t( 0F1 ; 0B0 )OVERLAP_F_B 0I1 0W1 # the end\n",
      "# first\n\nrank0:0F0 (0F1;0B0)OVERLAP_F_B 0I1 0W1# x",
      "pipelines: 1 # one\nrank 0 : 00F00 (0F01;0B0)OVERLAP_F_B 0I1 0W1",
  };

  for (guint i = 0; i < G_N_ELEMENTS (same); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (SchedTable) t = sched_parse (same[i], -1, &error);

    g_assert_no_error (error);
    g_autofree char *text = sched_print (t);
    g_assert_cmpstr (text, ==, same[0]);
  }

  /* Rows in any order when they are numbered. */
  g_autoptr (SchedTable) t = sched_parse ("1: 1F0 1B0\n0: 0F0 0B0\n", -1, NULL);
  g_autofree char *text = sched_print (t);
  g_assert_cmpstr (text, ==, "rank 0: 0F0 0B0\nrank 1: 1F0 1B0\n");
  g_assert_true (sched_verify (t, NULL));
}

/* tests/golden/sched_NAME.txt: 4 ranks, 8 micro-batches. CLUSTERSIM_GOLDEN_UPDATE=1 rewrites them.
 */
static void
test_golden (void)
{
  const char *root = g_getenv ("G_TEST_SRCDIR");

  for (guint i = 0; sched_names[i]; i++) {
    const char *name = sched_names[i];
    guint vpp = strcmp (name, "interleaved") == 0 || strcmp (name, "bfs") == 0 ||
                        strcmp (name, "zb-v") == 0 || strcmp (name, "dualpipev") == 0
                    ? 2
                    : 1;
    g_autofree char *file = g_strdup_printf ("sched_%s.txt", name);
    g_autofree char *path = g_build_filename (root ? root : ".", "tests", "golden", file, NULL);
    g_autoptr (SchedTable) t = make (name, 4, vpp, 8);
    g_autofree char *text = sched_print (t), *stored = NULL;
    GError *error = NULL;

    if (g_getenv ("CLUSTERSIM_GOLDEN_UPDATE"))
      g_file_set_contents (path, text, -1, &error);
    g_assert_no_error (error);
    g_file_get_contents (path, &stored, NULL, &error);
    g_assert_no_error (error);
    g_assert_cmpstr (text, ==, stored);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/sched/time/single-chunk", test_single_chunk);
  g_test_add_func ("/sched/time/send-latency", test_send_latency);
  g_test_add_func ("/sched/time/looped", test_looped);
  g_test_add_func ("/sched/time/zero-bubble", test_zero_bubble);
  g_test_add_func ("/sched/time/zb-v", test_zb_v);
  g_test_add_func ("/sched/time/dualpipe", test_dualpipe);
  g_test_add_func ("/sched/time/stage-costs", test_stage_costs);
  g_test_add_func ("/sched/time/huge-costs", test_huge_costs);
  g_test_add_func ("/sched/same-tables", test_same_tables);
  g_test_add_func ("/sched/dualpipe-layout", test_dualpipe_layout);
  g_test_add_func ("/sched/peaks", test_peaks);
  g_test_add_func ("/sched/refused/counts", test_legal_counts);
  g_test_add_func ("/sched/refused/tables", test_refused_tables);
  g_test_add_func ("/sched/refused/text", test_refused_text);
  g_test_add_func ("/sched/refused/hostile", test_hostile_text);
  g_test_add_func ("/sched/notation", test_notation);
  g_test_add_func ("/sched/golden", test_golden);
  return g_test_run ();
}
