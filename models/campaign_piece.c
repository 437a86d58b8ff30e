/* Training between disturbances: speed, marks, what is saved, and going back. */
#include "campaign_int.h"

#include "reliability.h"

#include <math.h>

double
run_now_s (const Run *r)
{
  return sim_time_to_s (sim_engine_now (r->eng), SIM_TICKS_US);
}

SimTime
run_ticks (double s)
{
  SimTime t = SIM_TIME_MAX;
  return sim_time_from_s (s, SIM_TICKS_US, &t) ? t : SIM_TIME_MAX;
}

void
run_set_phase (Run *r, Phase phase, double lasts_s)
{
  r->phase = phase;
  r->since = run_now_s (r);
  r->phase_end = (SimEventId){0, 0};
  if (isfinite (lasts_s))
    r->phase_end =
        sim_engine_after (r->eng, run_ticks (lasts_s), SIM_PRIO_DONE, r->kind_phase, r, 0);
}

void
run_cancel_phase (Run *r)
{
  sim_engine_cancel (r->eng, r->phase_end);
  r->phase_end = (SimEventId){0, 0};
}

/* One event stands for the next fault; it moves when a clock that waited for the job starts. */
void
run_schedule_fault (Run *r)
{
  const double never_s = 1e12; /* 30,000 years: no run lasts as long, and the clock goes further */
  double t = fault_gen_peek_s (r->gen);
  if (r->fault_set && r->fault_at == t)
    return;
  if (r->fault_set)
    sim_engine_cancel (r->eng, r->fault);
  r->fault_set = t < never_s;
  r->fault_at = t;
  if (r->fault_set)
    r->fault = sim_engine_at (r->eng, MAX (run_ticks (t), sim_engine_now (r->eng)), SIM_PRIO_FAULT,
                              r->kind_fault, r, 0);
}

void
run_give_up (Run *r, const char *why)
{
  r->out->end = END_STUCK;
  r->out->why = why;
  sim_engine_stop (r->eng);
}

/* ---- speed ---- */

static double
elastic_speed (const Run *r)
{
  const JobSpec *j = r->j;
  if (j->recovery == RECOVERY_REPLICATED)
    return (double)r->replicas_up / j->replicas;
  if (j->recovery != RECOVERY_ELASTIC)
    return 1.0;
  guint whole = j->nodes / j->unit_nodes, missing = whole - MIN (r->units, whole);
  if (missing == 0)
    return 1.0;
  return missing < j->n_speeds ? j->speed[missing] : (double)r->units / whole;
}

static double
straggler_speed (const Run *r)
{
  double worst = 0.0;
  for (guint i = 0; i < r->n_slow; i++)
    if (r->slow[i].active)
      worst = fmax (worst, r->slow[i].slowdown);
  return 1.0 / (1.0 + worst);
}

/* Share of speed that background writes take, spread over their intervals. */
static double
write_speed (const Run *r)
{
  double lost = 0.0;
  for (guint i = 0; i < r->pat.n_levels; i++) {
    double interval = r->pat.segment_s * (double)r->pat.every[i];
    lost += r->j->ckpt.level[i].slowdown * fmin (1.0, r->pat.persist_s[i] / interval);
  }
  return fmax (1.0 - lost, 0.01);
}

static void
set_speed (Run *r)
{
  const JobSpec *j = r->j;
  double factor[BAD_COUNT];
  for (guint i = 0; i < BAD_COUNT; i++)
    factor[i] = 1.0;
  factor[BAD_ELASTIC] = elastic_speed (r);
  factor[BAD_STRAGGLER] = straggler_speed (r);
  factor[BAD_DATA_LOADING] = 1.0 - j->data_stall;
  factor[BAD_CHECKPOINT_SAVE] = write_speed (r);
  if (j->ramp_work_s > 0.0 && pos_work (&r->pat, r->pos) < j->ramp_work_s * (1.0 - 1e-12))
    factor[BAD_BATCH_RAMP] = j->ramp_speed;
  r->speed = 1.0;
  for (guint i = 0; i < BAD_COUNT; i++) {
    r->log_speed[i] = factor[i] == 1.0 ? 0.0 : log (factor[i]);
    r->speed *= factor[i];
  }
}

/* ---- pieces of training ---- */

/* The next end of the ramp or of all work is an event only when it comes before the next fault. */
void
run_arm_mark (Run *r)
{
  if (r->mark_set || r->phase != PH_TRAIN)
    return;
  double work = pos_work (&r->pat, r->pos), target = r->target_work;
  if (r->j->ramp_work_s > 0.0 && work < r->j->ramp_work_s * (1.0 - 1e-12))
    target = target > 0.0 ? fmin (target, r->j->ramp_work_s) : r->j->ramp_work_s;
  if (target <= 0.0)
    return;
  double left = fmax (target - work, 0.0) / r->speed;
  if (r->since + left > fault_gen_peek_s (r->gen))
    return;
  Pos to = {(gint64)floor (target / r->pat.segment_s + 1e-9), 0.0};
  to.r = fmax (target - (double)to.n * r->pat.segment_s, 0.0);
  if (to.r < 1e-6 * r->pat.segment_s)
    to.r = 0.0;
  double t = r->since +
             (pos_before (r->pos, to) ? pattern_time_to_pos (&r->pat, r->pos, r->speed, to) : 0.0);
  /* One tick late, so that rounding cannot leave the last save open. */
  SimTime at = MAX (run_ticks (t), sim_engine_now (r->eng));
  r->mark = sim_engine_at (r->eng, at + 1, SIM_PRIO_NORMAL, r->kind_mark, r, 0);
  r->mark_set = TRUE;
}

static void
disarm_mark (Run *r)
{
  if (r->mark_set)
    sim_engine_cancel (r->eng, r->mark);
  r->mark_set = FALSE;
}

void
run_begin_piece (Run *r)
{
  r->phase = PH_TRAIN;
  r->since = run_now_s (r);
  set_speed (r);
  run_arm_mark (r);
}

static Pos
multiple_of (Pos p, gint64 every)
{
  return (Pos){p.n / every * every, 0.0};
}

/* The checkpoints of the piece that ends now. */
static void
note_checkpoints (Run *r, double elapsed, Pos end)
{
  double t = r->since + elapsed;
  for (guint i = 0; i < r->pat.n_levels; i++) {
    gint64 every = r->pat.every[i];
    if (r->pending_at[i] <= t) {
      if (pos_before (r->safe[i], r->pending[i]))
        r->safe[i] = r->pending[i];
      r->pending_at[i] = INFINITY;
    }
    Pos last = multiple_of (end, every), durable = last;
    r->out->checkpoints += (guint64)(end.n / every - r->pos.n / every);
    if (last.n <= r->pos.n)
      continue;
    if (r->pat.persist_s[i] > 0.0) {
      double ago = elapsed - r->pat.persist_s[i];
      durable = ago > 0.0
                    ? multiple_of (pattern_advance (&r->pat, r->pos, r->speed, ago).pos, every)
                    : r->pos;
      if (last.n > durable.n) {
        r->pending[i] = last;
        r->pending_at[i] =
            r->since + pattern_time_to (&r->pat, r->pos, r->speed, last.n) + r->pat.persist_s[i];
      }
    }
    if (durable.n > r->pos.n && pos_before (r->safe[i], durable))
      r->safe[i] = durable;
  }
}

/* Slow running is shared out among its causes by the logarithms of their factors. */
static void
note_slow (Run *r, double lost_s)
{
  double sum = log (r->speed);
  if (sum >= 0.0 || lost_s <= 0.0)
    return;
  for (guint i = 0; i < BAD_COUNT; i++)
    if (r->log_speed[i] != 0.0)
      r->out->bad_s[i] += lost_s * r->log_speed[i] / sum;
}

/* The job stood at pos `safe` of a durable checkpoint: how far it is for good. */
void
run_note_progress (Run *r)
{
  for (guint i = 0; i < r->pat.n_levels; i++)
    if (pos_before (r->best, r->safe[i])) {
      r->best = r->safe[i];
      r->stops_without = 0;
    }
}

/* Brings position, checkpoints and accounts up to now. */
void
run_end_piece (Run *r)
{
  double elapsed = run_now_s (r) - r->since;
  Advance a = pattern_advance (&r->pat, r->pos, r->speed, elapsed);
  note_checkpoints (r, elapsed, a.pos);
  r->out->bad_s[BAD_CHECKPOINT_SAVE] += a.save_s;
  r->out->bad_s[BAD_EVALUATION] += a.eval_s;
  note_slow (r, a.work_time_s * (1.0 - r->speed));
  if (pos_before (r->pos, a.pos)) {
    double first = r->since;
    r->out->longest_s = fmax (r->out->longest_s, first - r->best_since);
    r->best_since = r->since + elapsed;
  }
  r->pos = a.pos;
  run_note_progress (r);
  disarm_mark (r);
}

/* ---- going back ---- */

/* The newest checkpoint that is left; the cheaper of two equal ones. */
static guint
best_level (const Run *r)
{
  guint best = r->pat.n_levels;
  for (guint i = 0; i < r->pat.n_levels; i++)
    if (r->safe[i].n >= 0 && (best == r->pat.n_levels || pos_before (r->safe[best], r->safe[i])))
      best = i;
  return best;
}

void
run_roll_back (Run *r)
{
  guint level = best_level (r);
  Pos to = {0, 0.0};
  r->restore_s = 0.0;
  if (level < r->pat.n_levels) {
    to = r->safe[level];
    r->restore_s = r->j->ckpt.level[level].restore_s;
  } else {
    r->out->scratch++;
  }
  r->out->bad_s[BAD_WASTED_PROGRESS] += pos_work (&r->pat, r->pos) - pos_work (&r->pat, to);
  r->pos = to;
  for (guint i = 0; i < r->pat.n_levels; i++)
    r->pending_at[i] = INFINITY;
  /* Corruption that the restored state does not contain is gone; from scratch, all of it. */
  for (guint i = 0; i < r->n_corrupt; i++)
    if (r->corrupt[i].active &&
        (level == r->pat.n_levels || !pos_before (r->corrupt[i].clean[level], to))) {
      r->corrupt[i].active = FALSE;
      sim_engine_cancel (r->eng, r->corrupt[i].found);
    }
}

/* Levels that a loss of so many nodes (0: of processes only) takes with it. */
void
run_lose_levels (Run *r, guint lost_nodes)
{
  if (lost_nodes == 0)
    return;
  for (guint i = 0; i < r->pat.n_levels; i++) {
    const CkptLevel *l = &r->j->ckpt.level[i];
    gboolean survives = l->survives == CKPT_ALL;
    if (l->survives == CKPT_NODE) {
      guint machines = (r->j->nodes + l->copies - 1) / l->copies * l->copies;
      double p =
          lost_nodes < l->copies ? 1.0 : rel_memory_survival (machines, l->copies, lost_nodes);
      survives = fault_gen_uniform (r->gen) < p;
    }
    if (!survives)
      r->safe[i].n = -1;
  }
}
