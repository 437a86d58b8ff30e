/* validate_all: `clustersim validate --all FOLDER`: every table of a folder (and of its folder ops)
 * against the targets that the project sets itself, one line each: the target, the figure measured,
 * and whether it holds or by how much it is missed. Tables that are not there are told as such. */
#ifndef CLUSTERSIM_VALIDATE_ALL_H
#define CLUSTERSIM_VALIDATE_ALL_H

#include "validate.h"

typedef struct {
  const char *what, *unit; /* static */
  double low, high;        /* the target: from low to high */
  double measured;
  guint n;      /* rows, groups or sources behind it; 0: nothing to measure */
  char *detail; /* the worst of several, or NULL; owned */
} Target;

/* Target, in the order of the table. Errors: an unreadable folder or table. */
GArray *validate_all (const char *folder, Store *store, GError **error);
gboolean target_holds (const Target *t);

void targets_text (const GArray *targets, GString *out);
void targets_json (const GArray *targets, GString *out);
void targets_csv (const GArray *targets, GString *out);

#endif
