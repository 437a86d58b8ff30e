#include "simtime.h"

#include <math.h>

gboolean
sim_time_from_s (double s, double ticks_per_s, SimTime *out)
{
  g_assert (ticks_per_s > 0.0);
  /* 2^63 is a double, SIM_TIME_MAX is not: the comparison must be with the former and strict. The
   * negation also catches NaN. */
  double ticks = round (s * ticks_per_s);
  if (!(s >= 0.0 && ticks < 9223372036854775808.0))
    return FALSE;
  *out = (SimTime)ticks;
  return TRUE;
}

double
sim_time_to_s (SimTime t, double ticks_per_s)
{
  g_assert (ticks_per_s > 0.0);
  return (double)t / ticks_per_s;
}

gboolean
sim_time_add (SimTime a, SimTime b, SimTime *out)
{
  g_assert (a >= 0);
  g_assert (b >= 0);
  if (a > SIM_TIME_MAX - b) {
    *out = SIM_TIME_MAX;
    return FALSE;
  }
  *out = a + b;
  return TRUE;
}

char *
sim_time_format (SimTime t, double ticks_per_s)
{
  static const struct {
    double size_s;
    const char *name;
  } units[] = {{1e-12, "ps"}, {1e-9, "ns"},  {1e-6, "us"},  {1e-3, "ms"},
               {1.0, "s"},    {3600.0, "h"}, {86400.0, "d"}};
  double s = sim_time_to_s (t, ticks_per_s);
  double a = fabs (s);
  if (t == 0)
    return g_strdup ("0 s");

  /* The largest unit of which the time has at least one. The half unit of the fourth digit is added
   * first, so that 999.96 us reads "1 ms" and not "1000 us". */
  guint u = 0;
  while (u + 1 < G_N_ELEMENTS (units) && a * (1.0 + 0.5e-4) >= units[u + 1].size_s)
    u++;
  double x = s / units[u].size_s;
  char buf[G_ASCII_DTOSTR_BUF_SIZE];
  g_ascii_formatd (buf, sizeof buf, fabs (x) >= 9999.5 ? "%.0f" : "%.4g", x);
  return g_strconcat (buf, " ", units[u].name, NULL);
}
