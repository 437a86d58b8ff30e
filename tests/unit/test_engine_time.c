/* The clock: seconds to ticks and back, checked sums, readable forms. */
#include <math.h>

#include "simtime.h"

static void
test_from_s (void)
{
  /* round (s * ticks_per_s), ties away from zero */
  static const struct {
    double s, ticks_per_s;
    SimTime ticks;
  } cases[] = {
      {0.0, SIM_TICKS_PS, 0},
      {1.0, SIM_TICKS_PS, 1000000000000},
      {20e-6, SIM_TICKS_PS, 20000000},
      {0.4e-12, SIM_TICKS_PS, 0},
      {0.6e-12, SIM_TICKS_PS, 1},
      {2.5, 1.0, 3},
      {86400.0 * 365, SIM_TICKS_US, 31536000000000},
      /* the last double below 2^63 */
      {9223372036854774784.0, 1.0, 9223372036854774784},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    SimTime t = -1;
    g_assert_true (sim_time_from_s (cases[i].s, cases[i].ticks_per_s, &t));
    g_assert_cmpint (t, ==, cases[i].ticks);
  }
}

static void
test_from_s_refuses (void)
{
  const double bad[] = {-1e-9, NAN, INFINITY, -INFINITY, 9223372.036854775808, 1e300};
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    SimTime t = 42;
    g_assert_false (sim_time_from_s (bad[i], SIM_TICKS_PS, &t));
    g_assert_cmpint (t, ==, 42);
  }
}

static void
test_round_trip (void)
{
  /* Every count of ticks below 2^53 / 1.5 or so comes back: the quotient is off by half a unit in
   * the last place, which the rounding takes away. */
  for (SimTime t = 1; t < (SimTime)1 << 52; t = t * 3 + 1) {
    SimTime back = -1;
    g_assert_true (sim_time_from_s (sim_time_to_s (t, SIM_TICKS_PS), SIM_TICKS_PS, &back));
    g_assert_cmpint (back, ==, t);
  }
}

static void
test_add (void)
{
  SimTime t = -1;
  g_assert_true (sim_time_add (3, 4, &t));
  g_assert_cmpint (t, ==, 7);
  g_assert_true (sim_time_add (SIM_TIME_MAX - 1, 1, &t));
  g_assert_cmpint (t, ==, SIM_TIME_MAX);
  g_assert_true (sim_time_add (0, SIM_TIME_MAX, &t));
  t = 0;
  g_assert_false (sim_time_add (SIM_TIME_MAX, 1, &t));
  g_assert_cmpint (t, ==, SIM_TIME_MAX);
  g_assert_false (sim_time_add (SIM_TIME_MAX, SIM_TIME_MAX, &t));
}

static void
test_format (void)
{
  static const struct {
    SimTime ticks;
    double ticks_per_s;
    const char *text;
  } cases[] = {
      {0, SIM_TICKS_PS, "0 s"},
      {1, SIM_TICKS_PS, "1 ps"},
      {1234567, SIM_TICKS_PS, "1.235 us"},
      {999960000, SIM_TICKS_PS, "1 ms"},
      {999900000, SIM_TICKS_PS, "999.9 us"},
      {1234000000, SIM_TICKS_PS, "1.234 ms"},
      {90000000, SIM_TICKS_US, "90 s"},
      {5400000000, SIM_TICKS_US, "1.5 h"},
      {54 * G_GINT64_CONSTANT (86400000000), SIM_TICKS_US, "54 d"},
      {123456 * G_GINT64_CONSTANT (86400000000), SIM_TICKS_US, "123456 d"},
      {-2000, SIM_TICKS_PS, "-2 ns"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *s = sim_time_format (cases[i].ticks, cases[i].ticks_per_s);
    g_assert_cmpstr (s, ==, cases[i].text);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/engine/time/from_s", test_from_s);
  g_test_add_func ("/engine/time/from_s_refuses", test_from_s_refuses);
  g_test_add_func ("/engine/time/round_trip", test_round_trip);
  g_test_add_func ("/engine/time/add", test_add);
  g_test_add_func ("/engine/time/format", test_format);
  return g_test_run ();
}
