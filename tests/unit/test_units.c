/* Numbers for people: exact text, borders between units. */
#include "units.h"

#include <math.h>

typedef struct {
  double v;
  const char *text;
} Case;

static void
check (const Case *cases, guint n, char *(*format) (double))
{
  for (guint i = 0; i < n; i++) {
    g_autofree char *text = format (cases[i].v);
    g_assert_cmpstr (text, ==, cases[i].text);
  }
}

static void
test_bytes (void)
{
  static const double gib = 1073741824.0;
  const Case cases[] = {
      {0, "0 B"},
      {1, "1 B"},
      {1023, "1023 B"},
      {1024, "1.00 KiB"},
      {1536, "1.50 KiB"},
      {80 * gib, "80.0 GiB"},
      {79.64 * gib, "79.6 GiB"},
      {0.5, "0.50 B"},
      {1023.7 * gib, "1.00 TiB"},
      {-2048, "-2.00 KiB"},
      {192 * gib, "192 GiB"},
      {NAN, "not a number"},
      {INFINITY, "infinite"},
  };
  check (cases, G_N_ELEMENTS (cases), format_bytes);
}

static void
test_seconds (void)
{
  const Case cases[] = {
      {0, "0 s"},
      {1e-12, "1 ps"},
      {1.5e-9, "1.50 ns"},
      {12.34e-6, "12.3 us"},
      {0.9999, "1.00 s"},
      {1.2345, "1.23 s"},
      {99.9, "99.9 s"},
      {100, "1 min 40 s"},
      {125, "2 min 05 s"},
      {3599.6, "1 h 00 min"},
      {12000, "3 h 20 min"},
      {172799, "2.00 days"},
      {4682880, "54.2 days"},
      {-125, "-2 min 05 s"},
      {1e9, "11,574 days"},
      {INFINITY, "infinite"},
  };
  check (cases, G_N_ELEMENTS (cases), format_seconds);
}

static void
test_si (void)
{
  const Case cases[] = {
      {405853388800.0, "406 G"}, {1e3, "1.00 k"},     {950, "950"},        {0.25, "0.25"},
      {989.4e12, "989 T"},       {999.9e9, "1.00 T"}, {-1.5e6, "-1.50 M"},
  };
  check (cases, G_N_ELEMENTS (cases), format_si);
}

static void
test_count (void)
{
  static const struct {
    double n;
    const char *text;
  } cases[] = {{0, "0"},
               {999, "999"},
               {1000, "1,000"},
               {16384, "16,384"},
               {-1234567, "-1,234,567"},
               {-0x1p63, "-9,223,372,036,854,775,808"}};
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *text = format_count (cases[i].n);
    g_assert_cmpstr (text, ==, cases[i].text);
  }
  g_autofree char *fixed = format_fixed (12345.678, 2), *none = format_fixed (-999.5, 0),
                  *long_one = format_fixed (1e300, 0);
  g_assert_cmpstr (fixed, ==, "12,345.68");
  g_assert_cmpstr (none, ==, "-1,000");
  g_assert_true (g_str_has_prefix (long_one, "1,000,000,000,000,000,0"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/units/bytes", test_bytes);
  g_test_add_func ("/units/seconds", test_seconds);
  g_test_add_func ("/units/si", test_si);
  g_test_add_func ("/units/count", test_count);
  return g_test_run ();
}
