#include "units.h"

#include <math.h>
#include <string.h>

/* Three significant digits, without an exponent, for |v| < 10,000 or so. */
static char *
three_digits (double v)
{
  double a = fabs (v);
  int decimals = a < 9.995 ? 2 : a < 99.95 ? 1 : 0;
  char buf[G_ASCII_DTOSTR_BUF_SIZE], format[] = "%.0f";
  format[2] = (char)('0' + decimals);
  return g_strdup (g_ascii_formatd (buf, sizeof buf, format, v));
}

/* v in the largest unit of names in which it is at least 1; what would round up to the next unit
 * moves there, so that 1023.9 MiB is not shown as "1024 MiB". */
static char *
scaled (double v, double step, const char *const *names)
{
  guint i = 0;
  while (names[i + 1] != NULL && fabs (v) >= step - 0.5) {
    v /= step;
    i++;
  }
  if (!isfinite (v))
    return g_strdup (isnan (v) ? "not a number" : v > 0 ? "infinite" : "-infinite");
  gboolean whole = i == 0 && v == floor (v);
  char buf[G_ASCII_DTOSTR_BUF_SIZE];
  g_autofree char *digits =
      whole ? g_strdup (g_ascii_formatd (buf, sizeof buf, "%.0f", v)) : three_digits (v);
  return *names[i] == '\0' ? g_steal_pointer (&digits) : g_strconcat (digits, " ", names[i], NULL);
}

char *
format_bytes (double bytes)
{
  static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", NULL};
  return scaled (bytes, 1024, names);
}

char *
format_si (double v)
{
  static const char *const names[] = {"", "k", "M", "G", "T", "P", "E", NULL};
  return scaled (v, 1000, names);
}

static char *
small_seconds (double s)
{
  static const char *const names[] = {"ps", "ns", "us", "ms", "s", NULL};
  return s == 0 ? g_strdup ("0 s") : scaled (s * 1e12, 1000, names);
}

char *
format_seconds (double seconds)
{
  double a = fabs (seconds);
  const char *sign = seconds < 0 ? "-" : "";
  if (!isfinite (seconds))
    return scaled (seconds, 1000, (const char *const[]){"s", NULL});
  if (a < 99.95)
    return small_seconds (seconds);
  double whole_s = floor (a + 0.5), minutes = floor (a / 60 + 0.5);
  if (whole_s < 3600)
    return g_strdup_printf ("%s%d min %02d s", sign, (int)whole_s / 60, (int)whole_s % 60);
  if (minutes < 48 * 60)
    return g_strdup_printf ("%s%d h %02d min", sign, (int)minutes / 60, (int)minutes % 60);
  double days = a / 86400;
  g_autofree char *digits = days < 999.5 ? three_digits (days) : format_fixed (days, 0);
  return g_strconcat (sign, digits, " days", NULL);
}

/* Puts a comma after each group of three of the digits before the point. */
static char *
with_thousands (const char *digits)
{
  GString *out = g_string_new (NULL);
  if (*digits == '-')
    g_string_append_c (out, *digits++);
  gsize before = strspn (digits, "0123456789");
  for (gsize i = 0; i < before; i++) {
    if (i > 0 && (before - i) % 3 == 0)
      g_string_append_c (out, ',');
    g_string_append_c (out, digits[i]);
  }
  g_string_append (out, digits + before);
  return g_string_free (out, FALSE);
}

char *
format_count (double n)
{
  return format_fixed (n, 0);
}

char *
format_fixed (double v, int decimals)
{
  g_assert (decimals >= 0 && decimals <= 15);
  char buf[400]; /* the longest double has 309 digits before the point */
  g_autofree char *format = g_strdup_printf ("%%.%df", decimals);
  return isfinite (v) ? with_thousands (g_ascii_formatd (buf, sizeof buf, format, v))
                      : format_si (v);
}
