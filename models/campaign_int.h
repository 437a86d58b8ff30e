/* campaign_int: the repeating pattern of an undisturbed job, and the state of one replica; internal
 * to campaign*.c and their tests. */
#ifndef CLUSTERSIM_CAMPAIGN_INT_H
#define CLUSTERSIM_CAMPAIGN_INT_H

#include "campaign.h"
#include "engine.h"

/* A place in the work: n whole segments and r seconds. n < 0: nowhere. */
typedef struct {
  gint64 n;
  double r;
} Pos;

/* Segments of `segment_s` of work; after the n-th, every level whose `every` divides n saves. */
typedef struct {
  double segment_s;
  guint n_levels;
  gint64 every[CKPT_LEVELS];
  double block_s[CKPT_LEVELS], persist_s[CKPT_LEVELS];
  double eval_every_s, eval_s;
  double mean_block_s; /* of one segment, evaluation too */
} Pattern;

void pattern_init (Pattern *p, const JobSpec *j, double interval_s);

typedef struct {
  Pos pos;
  double work_time_s, save_s, eval_s; /* add up to the elapsed time */
} Advance;

/* Where the job is, t after it was at `from`, at this speed. */
Advance pattern_advance (const Pattern *p, Pos from, double speed, double t);
/* Time from `from` until the n-th segment and its saves are done; n >= from.n. */
double pattern_time_to (const Pattern *p, Pos from, double speed, gint64 n);
/* Time to a place that is ahead. */
double pattern_time_to_pos (const Pattern *p, Pos from, double speed, Pos to);

static inline double
pos_work (const Pattern *p, Pos a)
{
  return (double)a.n * p->segment_s + a.r;
}

static inline gboolean
pos_before (Pos a, Pos b)
{
  return a.n < b.n || (a.n == b.n && a.r < b.r);
}

/* ---- a replica ---- */

enum {
  MAX_SLOW = 64,     /* stragglers at once; further ones change nothing */
  MAX_CORRUPT = 16,  /* corruptions not yet found; further ones are found with them */
  STUCK_STOPS = 2000 /* stops in a row without progress that are called stuck */
};

typedef enum { PH_START, PH_TRAIN, PH_DOWN, PH_WAIT, PH_RESTART, PH_STALL, PH_PLANNED } Phase;
typedef enum { NODE_ACTIVE, NODE_HOT, NODE_COLD, NODE_REPAIR } NodeState;

typedef struct {
  double slowdown;
  guint32 node;
  gboolean active, evict;
  SimEventId noticed; /* cancelled with it, so that it is not taken for that of a later one */
} Slow;

typedef struct {
  Pos clean[CKPT_LEVELS];
  gboolean active, due;
  SimEventId found; /* cancelled with it */
} Corrupt;

typedef struct {
  const JobSpec *j;
  Pattern pat;
  FaultGen *gen;
  SimEngine *eng;
  CampaignRun *out;
  guint16 kind_fault, kind_phase, kind_repair, kind_slow, kind_corrupt, kind_rejoin, kind_mark,
      kind_maintenance, kind_end;

  Phase phase;
  double since; /* of the phase, or of the piece of training */
  SimEventId phase_end, mark, fault;
  gboolean mark_set, fault_set;
  double fault_at;
  double detect_s, wait_s;                 /* of PH_DOWN, in this order */
  double init_s, restore_s, reconfigure_s; /* of PH_RESTART, then warm-up */
  double planned_s, planned_save_s;
  Badput planned_cause;
  gboolean starting; /* no start has succeeded yet */
  gboolean in_place; /* no node has to change */

  Pos pos;                            /* at `since` */
  double speed, log_speed[BAD_COUNT]; /* of the piece; log of each cause's factor */
  Pos safe[CKPT_LEVELS];              /* newest durable of each level; n < 0: lost */
  Pos pending[CKPT_LEVELS];
  double pending_at[CKPT_LEVELS]; /* when it is durable; infinite: none */
  double target_work;             /* 0: none */

  Slow slow[MAX_SLOW];
  guint n_slow;
  Corrupt corrupt[MAX_CORRUPT];
  guint n_corrupt;

  guint nodes; /* all */
  guint8 *state;
  guint32 *hot, *cold; /* stacks */
  guint n_hot, n_cold, n_active;
  guint units, replicas_up; /* running */
  guint generation;         /* of the replicas, counts full restarts */

  Pos best;          /* furthest durable place */
  double best_since; /* when the job last stood there, for the longest stretch */
  guint stops_without;
} Run;

/* campaign_piece.c: time, events, training without disturbance, checkpoints, going back */
double run_now_s (const Run *r);
SimTime run_ticks (double s);
void run_set_phase (Run *r, Phase phase, double lasts_s);
void run_cancel_phase (Run *r);
void run_schedule_fault (Run *r);
void run_give_up (Run *r, const char *why);
void run_arm_mark (Run *r);
void run_begin_piece (Run *r);
void run_end_piece (Run *r);
void run_note_progress (Run *r);
void run_roll_back (Run *r);
void run_lose_levels (Run *r, guint lost_nodes);
gboolean run_take_node (Run *r, guint32 node, double repair_s);
guint run_nodes_missing (const Run *r);
void run_fill_from_spares (Run *r, gboolean *cold);
guint run_units_possible (const Run *r);
void run_account_phase (Run *r);
void run_enter_restart (Run *r, gboolean in_place);
void run_leave_down (Run *r);
void run_stop (Run *r, guint lost_nodes, double detect_s);
void run_plan_stop (Run *r, double lasts_s, gboolean save, Badput cause);
void run_on_phase (SimEngine *eng G_GNUC_UNUSED, gpointer self, guint64 arg G_GNUC_UNUSED);

#endif
