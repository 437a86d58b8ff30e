/* cal_priority: measuring on a machine that others use too. With CAL_PRIORITY set in the
 * environment a program asks for the highest share that the scheduler gives (nice -20, and the same
 * for its group of processes); where that is refused it goes on as it is. */
#ifndef CLUSTERSIM_CAL_PRIORITY_H
#define CLUSTERSIM_CAL_PRIORITY_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static inline void
cal_priority (void)
{
  if (getenv ("CAL_PRIORITY") == NULL)
    return;
  (void)setsid (); /* an own group, so that no other program's share changes with ours */
  FILE *f = fopen ("/proc/self/autogroup", "w");
  if (f != NULL) {
    fputs ("-20\n", f);
    fclose (f);
  }
  (void)setpriority (PRIO_PROCESS, 0, -20);
}

#endif
