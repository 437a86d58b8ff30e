/* schedule_file: parallel.schedule_file of a scenario → a verified action table that fits it. */
#ifndef CLUSTERSIM_SCHEDULE_FILE_H
#define CLUSTERSIM_SCHEDULE_FILE_H

#include "sched.h"
#include "spec.h"

/* *out NULL with TRUE when the scenario names no file. Errors name the file. */
gboolean schedule_file_load (const Spec *s, SchedTable **out, GError **error);

#endif
