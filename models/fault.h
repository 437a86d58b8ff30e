/* fault: what breaks, when, and for how long.
 *
 * A FaultProfile says how often each cause strikes (per 1000 node-days), how the gaps are
 * distributed, and what makes failures cluster: frail nodes, bursts, epochs of good and bad
 * weather, early life, switches that take their rack. A FaultGen turns a profile into the faults of
 * one replica, in order of time; or it replays a dated trace. It knows nothing of the job: whether
 * a node that is struck was in use is the caller's affair.
 *
 * The process, in words. The pooled process has the sum of all rates. Its gaps are exponential, or
 * drawn from a distribution of the stated shape and the same mean, either for the job as a whole
 * (renewal: the clock restarts at each failure) or for each node. Causes are marks, drawn in
 * proportion to the rates. A cause may have a process of its own (planned maintenance, worn-out
 * GPUs). Epochs and early life multiply the pooled rate over time; frailty decides which node is
 * struck and, by that, which one is struck again.
 *
 * Units: seconds from the start of the run. Ownership: profiles own their trace; a FaultGen borrows
 * its profile. Errors: FAULT_ERROR from fault_profile_check and fault_trace_new.
 */
#ifndef CLUSTERSIM_FAULT_H
#define CLUSTERSIM_FAULT_H

#include "rng.h"

#define FAULT_ERROR fault_error_quark ()
GQuark fault_error_quark (void);
typedef enum { FAULT_ERROR_RANGE, FAULT_ERROR_TRACE } FaultError;

/* ---- distributions of positive times ---- */

typedef enum {
  DIST_FIXED,
  DIST_EXPONENTIAL,
  DIST_WEIBULL,
  DIST_GAMMA,
  DIST_LOGNORMAL,
  DIST_COUNT
} DistKind;
extern const char *const dist_names[]; /* "fixed", "exponential" … NULL-terminated */

typedef struct {
  DistKind kind;
  double mean_s, shape; /* shape: of Weibull and gamma; sigma of lognormal */
  double scale;         /* prepared by dist_make: scale, or mu of lognormal */
} Dist;

/* mean_s >= 0; shape > 0 where the kind has one, ignored elsewhere. */
Dist dist_make (DistKind kind, double mean_s, double shape);
Dist dist_fixed (double s);
double dist_sample (const Dist *d, SimRng *r);
/* Time to the next event of a renewal process that has run for ever: u times a length-biased gap.
 */
double dist_sample_residual (const Dist *d, SimRng *r);

/* ---- causes ---- */

typedef enum {
  FAULT_GPU,
  FAULT_HBM,
  FAULT_NIC,
  FAULT_CABLE,
  FAULT_SWITCH,
  FAULT_HOST,
  FAULT_POWER,
  FAULT_STORAGE,
  FAULT_SOFTWARE,
  FAULT_HANG,
  FAULT_SDC,
  FAULT_MAINTENANCE,
  FAULT_STRAGGLER,
  FAULT_UNKNOWN,
  FAULT_COUNT
} FaultCause;
extern const char *const fault_names[]; /* NULL-terminated, in this order */

typedef enum { FAULT_PER_JOB, FAULT_PER_NODE, FAULT_PER_GPU, FAULT_PER_SWITCH } FaultUnit;
extern const char *const fault_unit_names[]; /* "job", "node", "gpu", "switch" */

typedef struct {
  double rate;           /* per 1000 node-days */
  double takes_node;     /* probability that the node goes to repair */
  gboolean keeps_memory; /* host memory outlives it: in-memory checkpoints of the node are good */
  Dist detect;           /* from the failure to the knowledge of it */
  Dist repair;           /* of a node that was taken */
  double slowdown;       /* stragglers: a step takes 1 + slowdown times as long until detected */
  gboolean own_process;  /* not in the pool: gaps of own_gap for each unit */
  gboolean own_aged;     /* own process begins in its steady state, not with new parts */
  FaultUnit own_unit;
  Dist own_gap;
} FaultCauseSpec;

typedef struct {
  double t_s, repair_s; /* repair_s negative: not known, drawn from the cause */
  guint32 node;
  FaultCause cause;
} FaultTraceEvent;

typedef struct {
  FaultTraceEvent *events; /* ascending t_s; owned */
  guint n, n_nodes;
  double length_s;
} FaultTrace;

typedef struct {
  char *name; /* owned */
  FaultCauseSpec cause[FAULT_COUNT];
  DistKind process; /* of the pooled gaps */
  double process_shape;
  FaultUnit process_unit;                /* of the pooled process: job or node */
  double frailty_shape;                  /* gamma, mean 1, of the nodes' rates; 0: all alike */
  double lemon_fraction, lemon_factor;   /* this share of nodes fails factor times as often */
  double burst_probability, burst_extra; /* a fault takes 1 + geometric (mean extra >= 1) nodes */
  gboolean burst_shares_repair;          /* nodes of a burst come back together */
  gboolean rates_count_nodes;            /* rates count nodes that failed, not events */
  double epoch_s, epoch_rate_shape, epoch_repair_shape; /* gamma factors, mean 1; 0: none */
  double early_factor, early_decay_s;                   /* rate x (1 + factor e^(-t/decay)) */
  double scale_nodes,
      scale_exponent;     /* larger jobs: rate x (nodes / scale_nodes)^exponent; 0: none */
  guint nodes_per_switch; /* a switch fault takes them all; 0: one node */
  FaultTrace *trace;      /* replayed in place of all the above; owned or NULL */
} FaultProfile;

void fault_profile_init (FaultProfile *p);
void fault_profile_clear (FaultProfile *p);
void fault_profile_copy (FaultProfile *to, const FaultProfile *from); /* to is overwritten */
gboolean fault_profile_check (const FaultProfile *p, GError **error);

/* Sum of the pooled and own rates that interrupt a job of so many nodes, per second: 1 / MTBF. For
 * a trace, its events per node and second. Stragglers and silent corruption are left out. */
double fault_profile_rate (const FaultProfile *p, guint nodes, guint gpus_per_node);
/* TRUE when the interruptions are one Poisson process, so that closed forms hold. */
gboolean fault_profile_is_poisson (const FaultProfile *p);

/* ---- traces ---- */

/* Takes copies. Errors: no events, times out of order or negative, an end before its start.
 * length_s 0: the last event's time. */
FaultTrace *fault_trace_new (const FaultTraceEvent *events, guint n, guint n_nodes, double length_s,
                             GError **error);
FaultTrace *fault_trace_copy (const FaultTrace *t);
void fault_trace_free (FaultTrace *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (FaultTrace, fault_trace_free)

/* What fault_trace_fit found, for reports. */
typedef struct {
  guint episodes;                /* overlapping faults of one node are one */
  double rate;                   /* episodes per 1000 node-days */
  double gap_shape, gap_scale_s; /* gamma of the gaps between episodes, zero gaps left out */
  double frailty_shape;
  double burst_probability, burst_extra; /* episodes within burst_window_s of the last one */
  double epoch_s, epoch_rate_shape, epoch_repair_shape;
  double repair_mean_s, repair_shape; /* Weibull */
  double mean_down;                   /* nodes */
  guint down_p50, down_p90, down_p99; /* time-weighted */
} FaultFit;

/* A profile (rates by cause, frailty, bursts, epochs, repair) from a trace by moments and maximum
 * likelihood. burst_window_s: what counts as at once; epoch_s: length of the epochs. */
void fault_trace_fit (const FaultTrace *t, double burst_window_s, double epoch_s, FaultFit *fit,
                      FaultProfile *out);

/* ---- the faults of one replica ---- */

typedef struct {
  double t_s;
  FaultCause cause;
  guint32 node;         /* the first struck */
  guint32 n_nodes;      /* struck at once; further ones by fault_gen_node, or the rack's */
  gboolean rack;        /* nodes node … node + n_nodes - 1 */
  double repair_s;      /* negative: draw */
  double repair_factor; /* of the epoch */
} Fault;

typedef struct FaultGen FaultGen;
/* nodes: all that can be struck, spares too. job_nodes: those in use, on which a job-wide process
 * depends. Equal (seed, run) give equal faults. */
FaultGen *fault_gen_new (const FaultProfile *p, guint nodes, guint job_nodes, guint gpus_per_node,
                         guint64 seed, guint64 run);
void fault_gen_free (FaultGen *g);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (FaultGen, fault_gen_free)

double fault_gen_peek_s (const FaultGen *g); /* of the next fault; infinite when there is none */
/* The next fault. When the pool is a job-wide renewal process its clock stops here until
 * fault_gen_restart. */
void fault_gen_pop (FaultGen *g, Fault *out);
/* The job runs or restarts from t on: a stopped clock starts anew. */
void fault_gen_restart (FaultGen *g, double t_s);
/* TRUE when the fault's node must be one in use: the caller draws again until it is. */
gboolean fault_gen_hits_job (const FaultGen *g);
guint32 fault_gen_node (FaultGen *g); /* by frailty */
double fault_gen_repair_s (FaultGen *g, const Fault *f);
double fault_gen_detect_s (FaultGen *g, FaultCause c);
double fault_gen_uniform (FaultGen *g); /* for the caller's own choices about faults */

#endif
