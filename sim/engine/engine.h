/* engine: a deterministic discrete-event engine that knows no model.
 *
 * Purpose: events {time, priority, kind, self, arg} are handed to the handler of their kind in the
 * total order (time, priority, sequence of scheduling). Same calls, same seed, same order: every
 * run has a fingerprint over its events. All state is in the SimEngine, so that any number of them
 * live side by side; one engine belongs to one thread.
 *
 * Units: times are ticks of the engine's own clock (simtime.h); nothing here looks at their size
 * but for messages. Ownership: the engine borrows `self` pointers, the trace and all strings but
 * the names of kinds, which it copies. Errors: domain SIM_ERROR, from sim_engine_run alone. What
 * only a programmer can cause (an event in the past, an unknown kind) is an assertion.
 */
#ifndef CLUSTERSIM_ENGINE_H
#define CLUSTERSIM_ENGINE_H

#include <glib.h>

#include "rng.h"
#include "simtime.h"
#include "trace.h"

#define SIM_ERROR sim_error_quark ()
GQuark sim_error_quark (void);
typedef enum {
  SIM_ERROR_LIMIT,   /* max_events or horizon reached with events left */
  SIM_ERROR_STALLED, /* no events left, but work outstanding: a deadlock in the model */
  SIM_ERROR_OVERFLOW /* a time beyond the clock, too many events outstanding or in all */
} SimError;

/* Order among events of one instant; each has its reason, and there are no others. */
typedef enum {
  SIM_PRIO_FAULT,  /* what breaks at t does not finish at t */
  SIM_PRIO_DONE,   /* ends free resources before anything new at t asks for them */
  SIM_PRIO_NORMAL, /* starts, wake-ups, all else */
  SIM_PRIO_SOLVE,  /* one solve after all changes of the instant */
  SIM_PRIO_SAMPLE, /* observers see the instant as it ends */
  SIM_PRIO_COUNT
} SimPrio;

typedef struct SimEngine SimEngine;
typedef void (*SimHandler) (SimEngine *eng, gpointer self, guint64 arg);

/* Names one event for ever: cancelling is safe after it fired, and {0, 0} is never an event. */
typedef struct {
  guint32 slot, gen;
} SimEventId;

/* Sees each event before its handler; kind is the registered name. For event logs, which two runs
 * can be compared by. */
typedef void (*SimObserver) (gpointer self, SimTime t, const char *kind, guint64 arg);

typedef struct {
  double ticks_per_s;      /* required: SIM_TICKS_PS or SIM_TICKS_US */
  guint64 seed, run;       /* of the random streams */
  guint64 max_events;      /* 0: no limit */
  guint32 max_outstanding; /* events in the queue at once; 0: SIM_MAX_OUTSTANDING, the most */
  SimTime horizon;         /* last tick at which events may fire; 0: no limit */
  gboolean shuffle_ties;   /* random instead of FIFO order within equal (time, priority) */
  SimTrace *trace;         /* borrowed, may be NULL; kept for the models (sim_engine_trace) */
  SimObserver observe;     /* may be NULL */
  gpointer observe_self;
} SimOptions;

#define SIM_MAX_OUTSTANDING ((guint32)1 << 22)

SimEngine *sim_engine_new (const SimOptions *opt);
void sim_engine_free (SimEngine *eng);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (SimEngine, sim_engine_free)

/* Registers a kind of event. The same name with the same handler gives the same kind again, so that
 * several instances of a model share it; with another handler it is an assertion. */
guint16 sim_engine_kind (SimEngine *eng, const char *name, SimHandler fn);

/* Schedules an event at t >= now. SIM_TIME_MAX stands for an overflown sum (sim_time_add): then,
 * and when the queue is full, the run ends with SIM_ERROR_OVERFLOW after the present handler, and
 * the id returned is {0, 0}. */
SimEventId sim_engine_at (SimEngine *eng, SimTime t, SimPrio prio, guint16 kind, gpointer self,
                          guint64 arg);

/* The same at now + delay, delay >= 0, with the sum checked. */
SimEventId sim_engine_after (SimEngine *eng, SimTime delay, SimPrio prio, guint16 kind,
                             gpointer self, guint64 arg);

/* TRUE if the event was outstanding and now is not; FALSE if it fired or was cancelled before. */
gboolean sim_engine_cancel (SimEngine *eng, SimEventId id);

/* Work that the model has begun and not ended. A run that empties its queue with a count above zero
 * has deadlocked, which is SIM_ERROR_STALLED. The count may be set, or kept by differences. */
void sim_engine_set_pending (SimEngine *eng, gint64 count);
void sim_engine_add_pending (SimEngine *eng, gint64 delta);
gint64 sim_engine_pending (const SimEngine *eng);

/* Asked on a stall to say what is waiting for what; the text (owned by the caller, may be NULL)
 * ends the message of the error. */
typedef char *(*SimStallReport) (gpointer self);
void sim_engine_on_stall (SimEngine *eng, SimStallReport report, gpointer self);

/* Runs until the queue is empty, sim_engine_stop or an error. May be called again after TRUE: a
 * stopped run goes on where it was. After FALSE the engine may only be read and freed. */
gboolean sim_engine_run (SimEngine *eng, GError **error);

/* From a handler: the run returns TRUE after it, events may be left. */
void sim_engine_stop (SimEngine *eng);

/* From a handler: the run returns FALSE with this error after it; takes ownership. The first one
 * counts, later ones are freed. */
void sim_engine_fail (SimEngine *eng, GError *error);

SimTime sim_engine_now (const SimEngine *eng);
double sim_engine_ticks_per_s (const SimEngine *eng);
guint64 sim_engine_n_events (const SimEngine *eng);      /* fired so far */
guint32 sim_engine_n_outstanding (const SimEngine *eng); /* scheduled, not fired, not cancelled */
SimTrace *sim_engine_trace (const SimEngine *eng);       /* the borrowed trace, or NULL */

/* Hash over (time, name of kind, arg) of all events fired, in order; nothing else goes in, no
 * address and no number given by the order of registration. Two runs of equal length that differ in
 * one field of one event never have the same one. */
guint64 sim_engine_fingerprint (const SimEngine *eng);

/* The stream (seed, run, purpose, index) by value; purposes that begin with "engine." are the
 * engine's own. */
SimRng sim_engine_stream (const SimEngine *eng, const char *purpose, guint64 index);

#endif
