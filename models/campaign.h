/* campaign: weeks of training with failures, checkpoints, repair and spares.
 *
 * A coarse simulation on the µs engine, fed by a step time. Between two disturbances the job
 * repeats a pattern (work, save, evaluation pause), which is advanced in one go, whatever its
 * length; events are failures, ends of phases, repairs. Thousands of replicas give intervals.
 *
 * What is modelled, and how:
 *   work is measured in seconds of an undisturbed job; goodput = useful work / elapsed time.
 *   failure → detection → (waiting for nodes, queue) → restart: set-up, restore, warm-up → the lost
 *   work again. In detection, waiting and planned stops nothing further strikes a job that stands
 *   still (but see idle_factor); in the restart it does, and begins anew.
 *   The slowing of background writes is spread evenly over their interval; the last segment is
 * saved like the others; a planned stop saves first.
 *
 * Ownership: a JobSpec owns its profile and tables (job_clear); results are plain values but for
 * what *_clear frees. Errors: CAMPAIGN_ERROR.
 */
#ifndef CLUSTERSIM_CAMPAIGN_H
#define CLUSTERSIM_CAMPAIGN_H

#include "ckpt.h"
#include "cost.h"
#include "fault.h"
#include "stats.h"

#define CAMPAIGN_ERROR campaign_error_quark ()
GQuark campaign_error_quark (void);
typedef enum {
  CAMPAIGN_ERROR_INPUT,   /* a value is out of range */
  CAMPAIGN_ERROR_HOPELESS /* such a run can never finish; the message says why */
} CampaignError;

/* Where time goes that is not useful work, in the names that the field's goodput tools use. */
typedef enum {
  BAD_INITIALIZATION,     /* the first start */
  BAD_TRAINING_PREP,      /* warm-up after a restart */
  BAD_PROGRAM_STARTUP,    /* processes, process groups, compilation at a restart */
  BAD_DATA_LOADING,       /* stalls of the input */
  BAD_CHECKPOINT_SAVE,    /* blocked by, and slowed by, saving */
  BAD_CHECKPOINT_RESTORE, /* reading back, re-sharding */
  BAD_WASTED_PROGRESS,    /* work that was lost and done again */
  BAD_DETECTION,          /* infrastructure recovery: until the failure is known */
  BAD_WAITING,            /* infrastructure recovery: queue, spares, repair */
  BAD_ELASTIC,            /* running with fewer nodes, and changing their number */
  BAD_STRAGGLER,          /* slow nodes until they are noticed */
  BAD_EVALUATION,
  BAD_MAINTENANCE,
  BAD_BATCH_RAMP,
  BAD_COUNT
} Badput;
extern const char *const badput_names[]; /* NULL-terminated */

typedef enum { RECOVERY_RESTART, RECOVERY_ELASTIC, RECOVERY_REPLICATED } Recovery;
extern const char *const recovery_names[]; /* "restart", "elastic", "replicated" */

enum { JOB_SPEEDS = 64 };

/* One number of the input with where it is from, for reports. */
typedef struct {
  char *key, *kind, *source; /* kind: published, measured, vendor, assumed, derived; or warning */
  double value;
} JobInput;

typedef struct JobSpec {
  /* what is to be done */
  gint64 gpus;
  guint nodes, gpus_per_node;
  double step_time_s, tokens_per_step; /* 0: not known; needed only to speak of tokens and steps */
  double tokens;                       /* 0: not given */
  double work_s;                       /* undisturbed seconds; 0: none, run for days */
  double days; /* calendar; the end of a run, or the most it may take; 0: none */

  FaultProfile faults;
  double idle_factor; /* nodes of a job that stands still fail at this part of their rate */

  CkptPlan ckpt;
  double ckpt_bytes;          /* 0: not known */
  double planned_save_s;      /* blocks before a planned stop; negative: the last level's write */
  gboolean best_interval;     /* the interval is to be found */
  double host_bytes_per_node; /* wanted by the checkpoints; 0: none */

  /* restart */
  double start_s;    /* the first one */
  double requeue_s;  /* down, when nodes change */
  double swap_s;     /* down, to put a hot spare in */
  double init_s;     /* processes and process groups */
  double in_place_s; /* the same when all nodes stay; negative: init_s */
  double warmup_s;

  /* nodes */
  gboolean tracked; /* spares are finite */
  guint hot_spares, cold_spares;
  double cold_start_s;

  Recovery recovery;
  guint unit_nodes, min_units;  /* elastic: nodes of one data-parallel unit; fewest that run */
  double reconfigure_s;         /* elastic: each change, on top of the restart */
  double speed[JOB_SPEEDS];     /* elastic: speed with i units missing, [0] is 1 */
  guint n_speeds;               /* beyond it, and when 0: in proportion to the units */
  guint replicas, min_replicas; /* replicated */
  double stall_s, rejoin_s;     /* replicated: all stand; one is away */

  double eval_every_s, eval_s;    /* of work; pause */
  double data_stall;              /* share of time */
  double ramp_work_s, ramp_speed; /* until so much work is done the speed is this; 0: none */
  double maintenance_every_s, maintenance_s; /* calendar */
  gboolean maintenance_warned;

  CostSpec cost;
  double published_goodput, published_lo, published_hi; /* to compare with; 0: none */
  char *published_source;                               /* owned */
  GPtrArray *inputs;                                    /* JobInput*, owned; NULL when none */
} JobSpec;

void job_init (JobSpec *j);
void job_clear (JobSpec *j);
void job_copy (JobSpec *to, const JobSpec *from); /* without inputs and sources */
JobSpec *job_dup (const JobSpec *j);              /* the same, on the heap */
void job_free (JobSpec *j);                       /* clears and frees; NULL is fine */
void job_input_free (JobInput *i);

/* Every range and contradiction; also that the run is not hopeless (HOPELESS). */
gboolean job_check (const JobSpec *j, GError **error);

/* Mean time between stops of the job, by the profile, s; infinite without failures. */
double job_mtbf_s (const JobSpec *j);
/* Restart in which failures can strike, from the best level after the loss of a node; and the down
 * time before it, averaged over causes. */
double job_restart_s (const JobSpec *j);
double job_down_s (const JobSpec *j);
/* TRUE when rel_efficiency is exact for this job: Poisson failures, one synchronous level, endless
 * spares, nothing else that takes time. */
gboolean job_is_exponential (const JobSpec *j);
double job_exact_goodput (const JobSpec *j, double interval_s);

/* ---- one replica ---- */

typedef enum {
  END_FINISHED, /* all work done */
  END_TIME,     /* the days were over */
  END_STUCK     /* no progress in sight */
} CampaignEnd;

typedef struct {
  CampaignEnd end;
  const char *why; /* static; END_STUCK */
  double elapsed_s, work_s;
  double bad_s[BAD_COUNT];
  guint64 faults[FAULT_COUNT];                           /* that struck the job or a node of it */
  guint64 stops;                                         /* times the job stopped, unplanned */
  guint64 planned_stops, checkpoints, restores, scratch; /* scratch: nothing left to restore */
  guint64 waits;                                         /* stops that waited for a node */
  double longest_s;                                      /* stretch without progress */
  guint64 events, fingerprint;
} CampaignRun;

/* interval_s 0: the plan's. Equal arguments give equal results, bit for bit. */
gboolean campaign_run_one (const JobSpec *j, double interval_s, guint64 seed, guint64 run,
                           CampaignRun *out, GError **error);

/* ---- many ---- */

/* A mean with its 95 % confidence interval (NAN: not known, of fewer than two), and the middle 90 %
 * of single runs. */
typedef struct {
  double mean, lo, hi, p5, p50, p95, std_error;
} Estimate;

typedef struct {
  guint replicas, finished, timed_out, stuck;
  const char *why_stuck;
  Estimate goodput, days, bad[BAD_COUNT], faults_total, stops, faults[FAULT_COUNT];
  Estimate checkpoints, lost_per_stop_s, longest_s, mtbf_s;
  double work_s, elapsed_mean_s; /* for cost and energy */
  guint64 events, fingerprint;
} CampaignResult;

/* Called after each replica; FALSE ends the campaign with what there is. */
typedef gboolean (*CampaignProgress) (gpointer self, guint done, guint of, const CampaignRun *run);

typedef struct {
  guint replicas;
  guint64 seed;
  double interval_s;         /* 0: the plan's */
  CampaignProgress progress; /* may be NULL */
  gpointer progress_self;
  const CampaignRun *given; /* results of runs 0 … n_given - 1 that are not to be simulated again */
  guint n_given;
} CampaignOptions;

gboolean campaign_run (const JobSpec *j, const CampaignOptions *o, CampaignResult *out,
                       GError **error);

/* Estimate of a sample; x is not changed. */
Estimate estimate_of (const double *x, guint n);
/* The interval of a share ends at 0 and at 1. */
Estimate estimate_clamp (Estimate e);

/* ---- the interval ---- */

enum { CURVE_POINTS = 25 };

typedef struct {
  double interval_s;
  Estimate goodput;
  double exact; /* negative: no closed form */
} CurvePoint;

typedef struct {
  CurvePoint point[CURVE_POINTS];
  guint n;
  double best_s, best_lo_s, best_hi_s; /* optimum and its 95 % interval (NAN: not known) */
  int rises; /* goodput still rises below the shortest (-1) or above the longest
              * interval searched (1), which best_s is then; 0: bracketed */
  double best_goodput;
  gboolean exact;              /* the optimum is that of the closed form */
  double flat_lo_s, flat_hi_s; /* at most half a point below the best */
  double half, twice;          /* goodput at half and at twice the best interval */
  double young_s, daly_s;      /* closed forms, for reference; 0: they do not apply */
} IntervalCurve;

/* U-curve about the guess (Young's rule), common random numbers at all points. While the best is at
 * an end, the points move that way, down to a step or 0.1 s and up to the length of the run. The
 * optimum by a parabola in the logarithm, its interval by jackknife over replicas. */
gboolean campaign_interval_curve (const JobSpec *j, guint replicas, guint64 seed,
                                  IntervalCurve *out, GError **error);

typedef struct {
  const char *what;       /* static: "detection halved" … */
  Estimate gain;          /* of goodput, paired with the base by replica */
  double best_interval_s; /* 0: not asked */
} Sensitivity;

enum { SENSITIVITIES = 8 };
/* out: SENSITIVITIES entries; returns through n how many were filled. */
gboolean campaign_sensitivity (const JobSpec *j, guint replicas, guint64 seed, Sensitivity *out,
                               guint *n, GError **error);

#endif
