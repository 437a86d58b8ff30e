#include "fifth.h"

guint
fifth_of (gint64 m, gint64 n, gint64 k)
{
  g_autofree char *text = g_strdup_printf ("%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT
                                           ",%" G_GINT64_FORMAT,
                                           m, n, k);
  guint64 h = G_GUINT64_CONSTANT (14695981039346656037);
  for (const char *c = text; *c != '\0'; c++)
    h = (h ^ (guchar)*c) * G_GUINT64_CONSTANT (1099511628211);
  return (guint)((h >> 32) % 5); /* the low bits of FNV mix less */
}
