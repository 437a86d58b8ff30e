/* Nodes and phases: from a stop to training again. */
#include "campaign_int.h"

#include <math.h>

/* ---- nodes ---- */

/* Takes one out for repair; TRUE when it was in use. */
gboolean
run_take_node (Run *r, guint32 node, double repair_s)
{
  if (!r->j->tracked)
    return TRUE;
  if (r->state[node] != NODE_ACTIVE)
    return FALSE;
  r->state[node] = NODE_REPAIR;
  r->n_active--;
  sim_engine_after (r->eng, run_ticks (fmin (repair_s, 1e11)), SIM_PRIO_DONE, r->kind_repair, r,
                    node);
  for (guint i = 0; i < r->n_slow; i++)
    if (r->slow[i].active && r->slow[i].node == node) {
      r->slow[i].active = FALSE;
      sim_engine_cancel (r->eng, r->slow[i].noticed);
    }
  return TRUE;
}

guint
run_nodes_missing (const Run *r)
{
  return r->j->tracked && r->n_active < r->j->nodes ? r->j->nodes - r->n_active : 0;
}

/* Puts spares in. Hot ones first; *cold is set when cold ones had to be started. */
void
run_fill_from_spares (Run *r, gboolean *cold)
{
  *cold = FALSE;
  while (run_nodes_missing (r) > 0 && r->n_hot > 0) {
    r->state[r->hot[--r->n_hot]] = NODE_ACTIVE;
    r->n_active++;
  }
  while (run_nodes_missing (r) > 0 && r->n_cold > 0) {
    r->state[r->cold[--r->n_cold]] = NODE_ACTIVE;
    r->n_active++;
    *cold = TRUE;
  }
}

guint
run_units_possible (const Run *r)
{
  return (r->j->tracked ? r->n_active : r->j->nodes) / r->j->unit_nodes;
}

/* ---- phases ---- */

/* The part of a restart that has passed: set-up, then restore, then warm-up. */
static void
account_restart (Run *r, double elapsed)
{
  double *bad = r->out->bad_s;
  if (r->starting) {
    bad[BAD_INITIALIZATION] += elapsed;
    return;
  }
  double a = fmin (elapsed, r->reconfigure_s), b = fmin (elapsed - a, r->init_s);
  double c = fmin (elapsed - a - b, r->restore_s);
  bad[BAD_ELASTIC] += a;
  bad[BAD_PROGRAM_STARTUP] += b;
  bad[BAD_CHECKPOINT_RESTORE] += c;
  bad[BAD_TRAINING_PREP] += elapsed - a - b - c;
}

void
run_account_phase (Run *r)
{
  double elapsed = run_now_s (r) - r->since, *bad = r->out->bad_s, first;
  switch (r->phase) {
  case PH_TRAIN:
    run_end_piece (r);
    return;
  case PH_START:
  case PH_RESTART:
    account_restart (r, elapsed);
    break;
  case PH_DOWN:
    first = fmin (elapsed, r->detect_s);
    bad[BAD_DETECTION] += first;
    bad[BAD_WAITING] += elapsed - first;
    break;
  case PH_WAIT:
    bad[BAD_WAITING] += elapsed;
    break;
  case PH_STALL:
    bad[BAD_ELASTIC] += elapsed;
    break;
  case PH_PLANNED:
    first = fmin (elapsed, r->planned_save_s);
    bad[BAD_CHECKPOINT_SAVE] += first;
    bad[r->planned_cause] += elapsed - first;
    break;
  }
  r->since += elapsed;
}

void
run_enter_restart (Run *r, gboolean in_place)
{
  const JobSpec *j = r->j;
  r->init_s = r->starting                        ? j->start_s
              : in_place && j->in_place_s >= 0.0 ? j->in_place_s
                                                 : j->init_s;
  if (r->starting)
    r->restore_s = 0.0;
  double warmup = r->starting ? 0.0 : j->warmup_s;
  fault_gen_restart (r->gen, run_now_s (r));
  run_schedule_fault (r);
  r->replicas_up = j->replicas;
  r->generation++;
  run_set_phase (r, r->starting ? PH_START : PH_RESTART,
                 r->reconfigure_s + r->init_s + r->restore_s + warmup);
}

/* Some node is in repair then, and comes back. */
static void
wait_for_node (Run *r)
{
  r->out->waits++;
  run_set_phase (r, PH_WAIT, INFINITY);
}

/* Detection and queue are over: are there nodes? */
void
run_leave_down (Run *r)
{
  const JobSpec *j = r->j;
  gboolean cold;
  r->reconfigure_s = 0.0;
  run_fill_from_spares (r, &cold);
  guint before = r->units;
  if (j->recovery == RECOVERY_ELASTIC) {
    r->units = MIN (run_units_possible (r), j->nodes / j->unit_nodes);
    if (r->units != before)
      r->reconfigure_s = j->reconfigure_s;
    if (r->units < j->min_units) {
      wait_for_node (r);
      return;
    }
  } else if (run_nodes_missing (r) > 0) {
    wait_for_node (r);
    return;
  }
  if (cold && j->cold_start_s > 0.0) {
    r->detect_s = 0.0;
    r->wait_s = j->cold_start_s;
    run_set_phase (r, PH_DOWN, j->cold_start_s);
    return;
  }
  run_enter_restart (r, r->in_place && r->units == before);
}

/* The job has stopped: account, go back, wait to be noticed. lost: nodes that went. */
void
run_stop (Run *r, guint lost_nodes, double detect_s)
{
  run_account_phase (r);
  run_cancel_phase (r);
  run_lose_levels (r, lost_nodes);
  run_roll_back (r);
  r->out->stops++;
  r->out->restores++;
  if (++r->stops_without > STUCK_STOPS) {
    run_give_up (r, "failures come faster than the job can restart and reach its next checkpoint");
    return;
  }
  const JobSpec *j = r->j;
  r->in_place = lost_nodes == 0;
  r->detect_s = detect_s;
  r->wait_s = lost_nodes > 0 ? j->requeue_s + (j->tracked && r->n_hot == 0 ? 0.0 : j->swap_s) : 0.0;
  if (r->detect_s + r->wait_s > 0.0)
    run_set_phase (r, PH_DOWN, r->detect_s + r->wait_s);
  else
    run_leave_down (r);
}

/* A stop that was planned: saved first, if there is time, and nothing lost. */
void
run_plan_stop (Run *r, double lasts_s, gboolean save, Badput cause)
{
  run_account_phase (r);
  run_cancel_phase (r);
  r->planned_save_s = save ? r->j->planned_save_s : 0.0;
  r->planned_cause = cause;
  if (save) {
    r->restore_s = r->j->ckpt.level[r->pat.n_levels - 1].restore_s;
    for (guint i = 0; i < r->pat.n_levels; i++) {
      r->safe[i] = r->pos;
      r->pending_at[i] = INFINITY;
    }
    run_note_progress (r);
  } else {
    run_lose_levels (r, 1);
    run_roll_back (r);
  }
  r->in_place = FALSE;
  r->out->planned_stops++;
  run_set_phase (r, PH_PLANNED, r->planned_save_s + lasts_s);
}

static void
start_due_corruption (Run *r)
{
  for (guint i = 0; i < r->n_corrupt; i++)
    if (r->corrupt[i].active && r->corrupt[i].due) {
      r->corrupt[i].found = sim_engine_after (r->eng, 0, SIM_PRIO_NORMAL, r->kind_corrupt, r, i);
      return;
    }
}

static void
begin_training (Run *r)
{
  if (r->starting)
    r->best_since = run_now_s (r);
  r->starting = FALSE;
  /* What was read back is in memory again: cheaper levels have it too. */
  for (guint i = 0; i < r->pat.n_levels; i++)
    if (r->safe[i].n < 0)
      r->safe[i] = r->pos;
  run_begin_piece (r);
  start_due_corruption (r);
}

void
run_on_phase (SimEngine *eng G_GNUC_UNUSED, gpointer self, guint64 arg G_GNUC_UNUSED)
{
  Run *r = self;
  run_account_phase (r);
  switch (r->phase) {
  case PH_DOWN:
  case PH_PLANNED:
    run_leave_down (r);
    break;
  case PH_START:
  case PH_RESTART:
  case PH_STALL:
    begin_training (r);
    break;
  case PH_TRAIN:
  case PH_WAIT:
    g_assert_not_reached ();
  }
}
