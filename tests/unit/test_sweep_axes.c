/* "--vary" texts: lists, ranges, keys that move together, products; and what is refused. */
#include "sweep_axes.h"

#include <string.h>

#include "cli.h"

#define TEXTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The points as "k=v k2=v2|…". */
static char *
points (const char *const *texts)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (SweepAxes) a = sweep_axes_parse (texts, &error);
  g_assert_no_error (error);
  const char *const *keys = sweep_axes_keys (a);
  const char *values[16];
  GString *out = g_string_new (NULL);
  for (guint64 i = 0; i < sweep_axes_points (a); i++) {
    sweep_axes_point (a, i, values);
    guint k = 0;
    for (; keys[k] != NULL; k++)
      g_string_append_printf (out, "%s%s=%s", k > 0 ? " " : i > 0 ? "|" : "", keys[k], values[k]);
    g_assert_null (values[k]);
  }
  return g_string_free (out, FALSE);
}

static void
gives (const char *expected, const char *const *texts)
{
  g_autofree char *got = points (texts);
  g_assert_cmpstr (got, ==, expected);
}

static void
test_lists (void)
{
  gives ("a=1|a=2|a=x y", TEXTS ("a=1, 2,x y"));
  gives ("a=1 b=3|a=1 b=4|a=2 b=3|a=2 b=4", TEXTS ("a=1,2", "b=3,4")); /* the last one fastest */
  gives ("a.b.c=../x.json|a.b.c=..", TEXTS ("a.b.c=../x.json,.."));    /* dots, but no range */
  gives ("a=b=c", TEXTS ("a=b=c"));                                    /* the first = divides */
  gives ("v=2.27.7|v=1.5", TEXTS ("v=2.27.7,1.5"));
  g_autofree char *none = points (NULL); /* no axes: one point */
  g_assert_cmpstr (none, ==, "");
}

static void
test_ranges (void)
{
  gives ("n=64|n=128|n=256|n=512", TEXTS ("n=64..512*2"));
  gives ("n=64|n=128|n=256", TEXTS ("n=64..511*2"));
  gives ("n=1|n=2|n=4|n=7", TEXTS ("n=1..4*2,7")); /* a range among values */
  gives ("n=5", TEXTS ("n=5..5*2"));
  gives ("n=1|n=4|n=7|n=10", TEXTS ("n=1..10+3"));
  gives ("n=1|n=4|n=7|n=10", TEXTS ("n=1..12+3"));
  gives ("x=0|x=0.1|x=0.2|x=0.3", TEXTS ("x=0..0.3+0.1"));
  gives ("x=-0.5|x=-0.25|x=0|x=0.25", TEXTS ("x=-.5...25+.25"));
  gives ("x=-4|x=-3|x=-2", TEXTS ("x=-4..-2+1"));
  gives ("x=-1|x=0", TEXTS ("x=-1..0+1"));
  gives ("t=1000000000000|t=10000000000000", TEXTS ("t=1e12..1e13*10"));
  gives ("x=1.5|x=3", TEXTS ("x=1.5..3*2"));
}

/* 0 … 1e5 by 0.1: each value is the shortest decimal, none is lost to a drifting sum. */
static void
test_long_range (void)
{
  g_autoptr (SweepAxes) a = sweep_axes_parse (TEXTS ("x=0..99999.9+0.1"), NULL);
  const char *values[2];
  g_assert_cmpuint (sweep_axes_points (a), ==, 1000000);
  sweep_axes_point (a, 999999, values);
  g_assert_cmpstr (values[0], ==, "99999.9");
  sweep_axes_point (a, 314159, values);
  g_assert_cmpstr (values[0], ==, "31415.9");
}

static void
test_together (void)
{
  gives ("a=1 b=x|a=2 b=y", TEXTS ("a=1,2;b=x,y"));
  gives ("a=8 b=1|a=16 b=2|a=32 b=4", TEXTS ("a=8..32*2;b=1..4*2"));
  gives ("a=1 b=3 c=5|a=1 b=3 c=6|a=2 b=4 c=5|a=2 b=4 c=6", TEXTS ("a=1,2;b=3,4", "c=5,6"));
  gives ("c=5 a=1 b=3|c=5 a=2 b=4|c=6 a=1 b=3|c=6 a=2 b=4", TEXTS ("c=5,6", "a=1,2;b=3,4"));
}

/* A hundred million points are counted, not made. */
static void
test_large (void)
{
  g_autoptr (SweepAxes) a =
      sweep_axes_parse (TEXTS ("a=1..100+1", "b=1..1000+1", "c=1..1000+1"), NULL);
  const char *values[4];
  g_assert_cmpuint (sweep_axes_points (a), ==, 100000000);
  sweep_axes_point (a, 99999999, values);
  g_assert_cmpstr (values[0], ==, "100");
  g_assert_cmpstr (values[2], ==, "1000");
  sweep_axes_point (a, 1000, values);
  g_assert_cmpstr (values[1], ==, "2");
  g_assert_cmpstr (values[2], ==, "1");
}

static void
test_refused (void)
{
  static const struct {
    const char *text, *says;
  } cases[] = {
      {"", "must be KEY="},         {"a", "must be KEY="},          {"=1", "must be KEY="},
      {"a=", "must be KEY="},       {"a=1,,2", "an empty value"},   {"a=1,", "an empty value"},
      {"a= ", "an empty value"},    {"a=1;a=2", "varied twice"},    {"a=1,2;b=3", "as many values"},
      {"a=1,2;", "must be KEY="},   {"a=1..5", "a range must be"},  {"a=1..5-1", "a range must be"},
      {"a=5..1*2", "a range must"}, {"a=1..5*1", "a range must"},   {"a=1..5*0", "a range must"},
      {"a=1..5+0", "a range must"}, {"a=1..5+-1", "a range must"},  {"a=0..5*2", "a range must"},
      {"a=1..5*", "a range must"},  {"a=1..5*2x", "a range must"},  {"a=1..inf*2", "a range must"},
      {"a=1..nan+1", "a range"},    {"a=1..5+inf", "a range must"}, {"a=1..1e300+1", "1,000,000"},
      {"a=1..1e7+1", "1,000,000"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (SweepAxes) a = sweep_axes_parse (TEXTS (cases[i].text), &error);
    g_assert_null (a);
    g_assert_error (error, CLI_ERROR, CLI_ERROR_USAGE);
    if (strstr (error->message, cases[i].says) == NULL ||
        !g_str_has_prefix (error->message, "--vary "))
      g_error ("%s: \"%s\" does not say \"%s\"", cases[i].text, error->message, cases[i].says);
  }
  g_autoptr (GError) error = NULL;
  g_autoptr (SweepAxes) twice = sweep_axes_parse (TEXTS ("a=1", "a=2"), &error);
  g_assert_null (twice);
  g_assert_nonnull (strstr (error->message, "varied twice"));
  g_clear_error (&error);
  g_autoptr (SweepAxes) many =
      sweep_axes_parse (TEXTS ("a=1..1e5+1", "b=1..1e5+1", "c=1..1e5+1"), &error);
  g_assert_null (many);
  g_assert_nonnull (strstr (error->message, "100,000,000 points"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/sweep-axes/lists", test_lists);
  g_test_add_func ("/sweep-axes/ranges", test_ranges);
  g_test_add_func ("/sweep-axes/long-range", test_long_range);
  g_test_add_func ("/sweep-axes/together", test_together);
  g_test_add_func ("/sweep-axes/large", test_large);
  g_test_add_func ("/sweep-axes/refused", test_refused);
  return g_test_run ();
}
