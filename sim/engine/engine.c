#include "engine.h"
#include "evq.h"

typedef struct {
  SimHandler fn;
  guint64 name_hash;
  char *name; /* owned */
} Kind;

struct SimEngine {
  SimOptions opt;
  EvQueue *queue;
  Kind *kinds;
  guint n_kinds, kinds_cap;
  SimTime now;
  guint64 n_events, fingerprint;
  gint64 pending;
  SimStallReport stall_report;
  gpointer stall_self;
  GError *failure;   /* set by a handler; ends the run */
  guint16 last_kind; /* of the last event fired; valid once n_events > 0 */
  gboolean stop, running, failed;
};

GQuark
sim_error_quark (void)
{
  return g_quark_from_static_string ("sim-error");
}

SimEngine *
sim_engine_new (const SimOptions *opt)
{
  g_assert (opt->ticks_per_s > 0.0);
  g_assert (opt->horizon >= 0);
  SimEngine *eng = g_new0 (SimEngine, 1);
  eng->opt = *opt;
  if (eng->opt.max_events == 0)
    eng->opt.max_events = G_MAXUINT64;
  if (eng->opt.horizon == 0)
    eng->opt.horizon = SIM_TIME_MAX;
  SimRng ties = sim_engine_stream (eng, "engine.ties", 0);
  eng->queue = evq_new (opt->max_outstanding, opt->shuffle_ties ? &ties : NULL, 0);
  eng->fingerprint = sim_hash_string ("clustersim");
  return eng;
}

void
sim_engine_free (SimEngine *eng)
{
  if (eng == NULL)
    return;
  for (guint i = 0; i < eng->n_kinds; i++)
    g_free (eng->kinds[i].name);
  g_free (eng->kinds);
  evq_free (eng->queue);
  g_clear_error (&eng->failure);
  g_free (eng);
}

guint16
sim_engine_kind (SimEngine *eng, const char *name, SimHandler fn)
{
  g_assert (fn != NULL);
  for (guint i = 0; i < eng->n_kinds; i++)
    if (g_str_equal (eng->kinds[i].name, name)) {
      g_assert (eng->kinds[i].fn == fn);
      return (guint16)i;
    }
  g_assert (eng->n_kinds < G_MAXUINT16);
  if (eng->n_kinds == eng->kinds_cap) {
    eng->kinds_cap = eng->kinds_cap > 0 ? 2 * eng->kinds_cap : 16;
    eng->kinds = g_renew (Kind, eng->kinds, eng->kinds_cap);
  }
  eng->kinds[eng->n_kinds] = (Kind){fn, sim_hash_string (name), g_strdup (name)};
  return (guint16)eng->n_kinds++;
}

/* ---- messages ---- */

/* "1.234 ms (1234000000 ticks) after 17 events, the last of kind "exec.done"" */
static char *
describe_position (const SimEngine *eng)
{
  g_autofree char *when = sim_time_format (eng->now, eng->opt.ticks_per_s);
  g_autoptr (GString) s = g_string_new (NULL);
  g_string_append_printf (s, "%s (%" G_GINT64_FORMAT " ticks) after %" G_GUINT64_FORMAT " events",
                          when, eng->now, eng->n_events);
  if (eng->n_events > 0)
    g_string_append_printf (s, ", the last of kind \"%s\"", eng->kinds[eng->last_kind].name);
  return g_string_free (g_steal_pointer (&s), FALSE);
}

static void G_GNUC_PRINTF (3, 4) fail_here (SimEngine *eng, SimError code, const char *format, ...)
{
  if (eng->failure != NULL)
    return;
  va_list args;
  va_start (args, format);
  g_autofree char *what = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *where = describe_position (eng);
  eng->failure = g_error_new (SIM_ERROR, (gint)code, "%s, at %s", what, where);
}

static void
fail_horizon (SimEngine *eng, const EvEvent *next)
{
  g_autofree char *horizon = sim_time_format (eng->opt.horizon, eng->opt.ticks_per_s);
  g_autofree char *due = sim_time_format (next->time, eng->opt.ticks_per_s);
  fail_here (eng, SIM_ERROR_LIMIT,
             "the horizon of %s is reached, the next event (kind \"%s\") is due at %s", horizon,
             eng->kinds[next->kind].name, due);
}

static void
fail_stalled (SimEngine *eng)
{
  g_autofree char *more = eng->stall_report != NULL ? eng->stall_report (eng->stall_self) : NULL;
  fail_here (eng, SIM_ERROR_STALLED,
             "nothing is left to happen, but %" G_GINT64_FORMAT
             " pieces of work are unfinished%s%s",
             eng->pending, more != NULL ? ": " : "", more != NULL ? more : "");
}

/* ---- scheduling ---- */

SimEventId
sim_engine_at (SimEngine *eng, SimTime t, SimPrio prio, guint16 kind, gpointer self, guint64 arg)
{
  g_assert (t >= eng->now);
  g_assert (kind < eng->n_kinds);
  SimEventId id = {0, 0};
  if (G_UNLIKELY (t == SIM_TIME_MAX)) {
    fail_here (eng, SIM_ERROR_OVERFLOW, "an event of kind \"%s\" falls beyond the end of the clock",
               eng->kinds[kind].name);
    return id;
  }
  EvqPush r = evq_push (eng->queue, t, prio, kind, self, arg, &id);
  if (G_UNLIKELY (r == EVQ_FULL))
    fail_here (eng, SIM_ERROR_OVERFLOW, "more than %u events are outstanding",
               evq_len (eng->queue));
  else if (G_UNLIKELY (r == EVQ_NO_SEQ))
    fail_here (eng, SIM_ERROR_OVERFLOW, "more than 2^39 events were scheduled in one run");
  return id;
}

SimEventId
sim_engine_after (SimEngine *eng, SimTime delay, SimPrio prio, guint16 kind, gpointer self,
                  guint64 arg)
{
  SimTime t;
  (void)sim_time_add (eng->now, delay, &t); /* saturates, which sim_engine_at reports */
  return sim_engine_at (eng, t, prio, kind, self, arg);
}

gboolean
sim_engine_cancel (SimEngine *eng, SimEventId id)
{
  return evq_cancel (eng->queue, id);
}

void
sim_engine_set_pending (SimEngine *eng, gint64 count)
{
  g_assert (count >= 0);
  eng->pending = count;
}

void
sim_engine_add_pending (SimEngine *eng, gint64 delta)
{
  sim_engine_set_pending (eng, eng->pending + delta);
}

gint64
sim_engine_pending (const SimEngine *eng)
{
  return eng->pending;
}

void
sim_engine_on_stall (SimEngine *eng, SimStallReport report, gpointer self)
{
  eng->stall_report = report;
  eng->stall_self = self;
}

void
sim_engine_stop (SimEngine *eng)
{
  eng->stop = TRUE;
}

void
sim_engine_fail (SimEngine *eng, GError *error)
{
  g_assert (error != NULL);
  if (eng->failure == NULL)
    eng->failure = error;
  else
    g_error_free (error);
}

/* ---- running ---- */

/* For each x a bijection of h, and for each h of x: a difference in one field of one event cannot
 * vanish again. The odd factor is 2^64 divided by the golden ratio. */
static inline guint64
mix (guint64 h, guint64 x)
{
  h = (h ^ x) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  return h ^ (h >> 32);
}

static inline void
fire (SimEngine *eng, const EvEvent *ev)
{
  Kind *kind = &eng->kinds[ev->kind];
  eng->now = ev->time;
  eng->last_kind = ev->kind;
  eng->n_events++;
  eng->fingerprint =
      mix (mix (mix (eng->fingerprint, (guint64)ev->time), kind->name_hash), ev->arg);
  if (G_UNLIKELY (eng->opt.observe != NULL))
    eng->opt.observe (eng->opt.observe_self, ev->time, kind->name, ev->arg);
  kind->fn (eng, ev->self, ev->arg);
}

gboolean
sim_engine_run (SimEngine *eng, GError **error)
{
  g_assert (!eng->running);
  g_assert (!eng->failed);
  eng->running = TRUE;
  eng->stop = FALSE;
  while (eng->failure == NULL && !eng->stop) {
    EvEvent ev;
    if (G_UNLIKELY (eng->n_events >= eng->opt.max_events) && evq_len (eng->queue) > 0) {
      fail_here (eng, SIM_ERROR_LIMIT,
                 "the limit of %" G_GUINT64_FORMAT " events is reached with %u outstanding",
                 eng->opt.max_events, evq_len (eng->queue));
      break;
    }
    EvqPop r = evq_pop (eng->queue, eng->opt.horizon, &ev);
    if (G_LIKELY (r == EVQ_EVENT)) {
      fire (eng, &ev);
      continue;
    }
    if (r == EVQ_LATER)
      fail_horizon (eng, &ev);
    else if (eng->pending > 0)
      fail_stalled (eng);
    break;
  }
  eng->running = FALSE;
  if (eng->failure == NULL)
    return TRUE;
  eng->failed = TRUE;
  g_propagate_error (error, g_steal_pointer (&eng->failure));
  return FALSE;
}

/* ---- reading ---- */

SimTime
sim_engine_now (const SimEngine *eng)
{
  return eng->now;
}

double
sim_engine_ticks_per_s (const SimEngine *eng)
{
  return eng->opt.ticks_per_s;
}

guint64
sim_engine_n_events (const SimEngine *eng)
{
  return eng->n_events;
}

guint32
sim_engine_n_outstanding (const SimEngine *eng)
{
  return evq_len (eng->queue);
}

SimTrace *
sim_engine_trace (const SimEngine *eng)
{
  return eng->opt.trace;
}

guint64
sim_engine_fingerprint (const SimEngine *eng)
{
  return eng->fingerprint;
}

SimRng
sim_engine_stream (const SimEngine *eng, const char *purpose, guint64 index)
{
  return sim_rng_stream (eng->opt.seed, eng->opt.run, purpose, index);
}
