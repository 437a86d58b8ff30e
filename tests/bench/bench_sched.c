/* Speed of schedule tables: 64 stages, 512 micro-batches. Best of 20; one line a schedule. */
#include "sched.h"

#include <stdio.h>

static void
bench (const char *name, guint pp, guint vpp)
{
  gint64 made = G_MAXINT64, checked = G_MAXINT64, began;
  guint32 n = 0;

  for (int i = 0; i < 20; i++) {
    began = g_get_monotonic_time ();
    g_autoptr (SchedTable) t = sched_generate (name, pp, vpp, 512, NULL);
    made = MIN (made, g_get_monotonic_time () - began);
    n = t->first[pp];
    began = g_get_monotonic_time ();
    if (!sched_verify (t, NULL))
      g_error ("%s does not verify", name);
    checked = MIN (checked, g_get_monotonic_time () - began);
  }
  printf ("sched %-11s pp %u vpp %u: %u actions, generate %" G_GINT64_FORMAT
          " us, verify %" G_GINT64_FORMAT " us\n",
          name, pp, vpp, n, made, checked);
}

int
main (void)
{
  bench ("1f1b", 64, 1);
  bench ("interleaved", 8, 8);
  bench ("interleaved", 64, 8);
  bench ("zb-v", 32, 2);
  bench ("dualpipe", 64, 1);
  return 0;
}
