/* sweep_pool: many independent points on all cores of one machine.
 *
 * Processes, not threads: a point that takes down its process takes nothing else down, and models
 * stay single-threaded. The parent hands out small lists of points through a pipe and reads results
 * as they come, in any order; a worker ends with its parent, however that ends. With jobs 1 there
 * is no other process.
 */
#ifndef CLUSTERSIM_SWEEP_POOL_H
#define CLUSTERSIM_SWEEP_POOL_H

#include <glib.h>
#include <signal.h>

typedef struct {
  guint jobs;               /* processes, >= 1 */
  guint64 first, step, end; /* points first, first + step, … below end */
  const volatile sig_atomic_t
      *stop;     /* becomes 1: nothing more is handed out; 2: give up what runs, too */
  gpointer data; /* of the calls below */

  /* In the worker. make: once in each; line: appends the result, FALSE when the point failed. */
  gpointer (*make) (gpointer data);
  gboolean (*line) (gpointer worker, guint64 i, GString *out);
  void (*unmake) (gpointer worker);

  /* In the parent. known: the point is done already. hold: wait with further points. result: takes
   * one; flush: after some of them; both may fail, which ends the run. tick: now and then. */
  gboolean (*known) (gpointer data, guint64 i);
  gboolean (*hold) (gpointer data);
  gboolean (*result) (gpointer data, guint64 i, gboolean ok, const char *line, gsize len,
                      GError **error);
  gboolean (*flush) (gpointer data, GError **error);
  void (*tick) (gpointer data);
} PoolJob;

/* Runs until all points are done or stop is set (TRUE in both cases), or something failed. Errors:
 * those of result and flush; CLI_ERROR_FAILED when a worker died, naming its point. */
gboolean sweep_pool_run (const PoolJob *job, GError **error);

#endif
