/* One replica: the state machine of a job on the µs engine. Phases are in campaign_phase.c,
 * training in campaign_piece.c, statistics in campaign_stats.c. */
#include "campaign_int.h"

#include <math.h>
#include <string.h>

/* ---- faults ---- */

static gboolean
is_running (const Run *r)
{
  return r->phase == PH_TRAIN || r->phase == PH_RESTART || r->phase == PH_START ||
         r->phase == PH_STALL;
}

static void
add_straggler (Run *r, const Fault *f)
{
  guint i = 0;
  while (i < r->n_slow && r->slow[i].active)
    i++;
  double slowdown = r->j->faults.cause[f->cause].slowdown;
  if (i == MAX_SLOW || slowdown <= 0.0)
    return;
  r->n_slow = MAX (r->n_slow, i + 1);
  gboolean evict = fault_gen_uniform (r->gen) < r->j->faults.cause[f->cause].takes_node;
  if (r->phase == PH_TRAIN)
    run_end_piece (r);
  r->slow[i] = (Slow){.slowdown = slowdown, .node = f->node, .active = TRUE, .evict = evict};
  r->slow[i].noticed = sim_engine_after (r->eng, run_ticks (fault_gen_detect_s (r->gen, f->cause)),
                                         SIM_PRIO_NORMAL, r->kind_slow, r, i);
  if (r->phase == PH_TRAIN)
    run_begin_piece (r);
}

static void
add_corruption (Run *r, const Fault *f)
{
  guint i = 0;
  while (i < r->n_corrupt && (r->corrupt[i].active))
    i++;
  if (i == MAX_CORRUPT || r->phase != PH_TRAIN)
    return;
  r->n_corrupt = MAX (r->n_corrupt, i + 1);
  run_end_piece (r);
  Corrupt *c = &r->corrupt[i];
  *c = (Corrupt){.active = TRUE};
  for (guint k = 0; k < r->pat.n_levels; k++)
    c->clean[k] = isfinite (r->pending_at[k]) ? r->pending[k] : r->safe[k];
  c->found = sim_engine_after (r->eng, run_ticks (fault_gen_detect_s (r->gen, f->cause)),
                               SIM_PRIO_NORMAL, r->kind_corrupt, r, i);
  run_begin_piece (r);
}

/* Nodes that the fault takes; 0 when only processes died. */
static guint
strike_nodes (Run *r, const Fault *f)
{
  const FaultCauseSpec *c = &r->j->faults.cause[f->cause];
  gboolean takes = f->repair_s >= 0.0 || c->takes_node >= 1.0 ||
                   (c->takes_node > 0.0 && fault_gen_uniform (r->gen) < c->takes_node);
  if (!takes)
    return c->keeps_memory ? 0 : 1;
  if (!r->j->tracked)
    return f->n_nodes;
  guint lost = 0;
  double repair_s = fault_gen_repair_s (r->gen, f);
  for (guint i = 0; i < f->n_nodes; i++) {
    guint32 node = f->rack ? f->node + i : i == 0 ? f->node : fault_gen_node (r->gen);
    gboolean same = i == 0 || f->rack || r->j->faults.burst_shares_repair;
    if (r->state[node] == NODE_ACTIVE &&
        run_take_node (r, node, same ? repair_s : fault_gen_repair_s (r->gen, f)))
      lost++;
  }
  return MAX (lost, 1);
}

/* A replica drops out and the others go on; FALSE when too few are left. */
static gboolean
drop_replicas (Run *r, guint lost_nodes)
{
  const JobSpec *j = r->j;
  guint lost = MIN (MAX (lost_nodes, 1u), j->replicas);
  if (j->recovery != RECOVERY_REPLICATED || (r->phase != PH_TRAIN && r->phase != PH_STALL) ||
      r->replicas_up < j->min_replicas + lost)
    return FALSE;
  run_account_phase (r);
  run_cancel_phase (r);
  r->replicas_up -= lost;
  r->out->stops++;
  gboolean cold;
  run_fill_from_spares (r, &cold);
  double away = j->stall_s + j->rejoin_s + (cold ? j->cold_start_s : 0.0); /* after the stall */
  for (guint i = 0; i < lost; i++)
    sim_engine_after (r->eng, run_ticks (away), SIM_PRIO_NORMAL, r->kind_rejoin, r, r->generation);
  fault_gen_restart (r->gen, run_now_s (r));
  run_set_phase (r, PH_STALL, j->stall_s);
  return TRUE;
}

/* TRUE when the fault strikes something that the job uses. */
static gboolean
is_hit (Run *r, Fault *f)
{
  if (!is_running (r) && r->j->idle_factor < 1.0 && fault_gen_uniform (r->gen) >= r->j->idle_factor)
    return FALSE;
  if (!r->j->tracked)
    return TRUE;
  for (guint i = 0;
       !f->rack && fault_gen_hits_job (r->gen) && r->state[f->node] != NODE_ACTIVE && i < 10000;
       i++)
    f->node = fault_gen_node (r->gen);
  if (!f->rack)
    return r->state[f->node] == NODE_ACTIVE;
  for (guint i = 0; i < f->n_nodes; i++)
    if (r->state[f->node + i] == NODE_ACTIVE)
      return TRUE;
  return FALSE;
}

static void
on_fault (SimEngine *eng G_GNUC_UNUSED, gpointer self, guint64 arg G_GNUC_UNUSED)
{
  Run *r = self;
  Fault f;
  r->fault_set = FALSE;
  fault_gen_pop (r->gen, &f);
  if (is_hit (r, &f)) {
    r->out->faults[f.cause]++;
    if (f.cause == FAULT_STRAGGLER)
      add_straggler (r, &f);
    else if (f.cause == FAULT_SDC)
      add_corruption (r, &f);
    else {
      gboolean running = is_running (r);
      guint lost = strike_nodes (r, &f);
      if (running && !drop_replicas (r, lost))
        run_stop (r, lost, fault_gen_detect_s (r->gen, f.cause));
    }
  }
  /* A clock that waits for the job goes on when the job was not stopped by this. */
  if (is_running (r))
    fault_gen_restart (r->gen, run_now_s (r));
  run_schedule_fault (r);
  run_arm_mark (r);
}

/* ---- the other events ---- */

static void
on_slow (SimEngine *eng G_GNUC_UNUSED, gpointer self, guint64 i)
{
  Run *r = self;
  Slow *s = &r->slow[i];
  if (!s->active)
    return;
  gboolean training = r->phase == PH_TRAIN;
  if (training)
    run_end_piece (r);
  s->active = FALSE;
  if (training)
    run_begin_piece (r);
  if (!s->evict || !training)
    return;
  Fault f = {.cause = FAULT_STRAGGLER, .node = s->node, .repair_s = -1.0, .repair_factor = 1.0};
  if (r->j->tracked && r->state[s->node] == NODE_ACTIVE)
    run_take_node (r, s->node, fault_gen_repair_s (r->gen, &f));
  run_plan_stop (r, r->j->swap_s, TRUE, BAD_STRAGGLER);
}

/* Corruption is found: no checkpoint that was taken since is any good. */
static void
on_corrupt (SimEngine *eng G_GNUC_UNUSED, gpointer self, guint64 i)
{
  Run *r = self;
  Corrupt *c = &r->corrupt[i];
  if (!c->active)
    return;
  if (r->phase != PH_TRAIN) {
    c->due = TRUE;
    return;
  }
  run_end_piece (r);
  for (guint k = 0; k < r->pat.n_levels; k++) {
    if (!pos_before (c->clean[k], r->safe[k]))
      continue;
    gint64 newer = (r->safe[k].n - c->clean[k].n) / r->pat.every[k];
    guint keep = r->j->ckpt.level[k].keep;
    r->safe[k] = keep > 0 && newer >= keep ? (Pos){-1, 0.0} : c->clean[k];
  }
  c->active = FALSE;
  r->phase = PH_DOWN; /* nothing of the piece is left to account */
  r->since = run_now_s (r);
  gboolean takes = fault_gen_uniform (r->gen) < r->j->faults.cause[FAULT_SDC].takes_node;
  run_stop (r, takes ? 1 : 0, 0.0);
}

static void
on_rejoin (SimEngine *eng, gpointer self, guint64 generation)
{
  Run *r = self;
  if (generation != r->generation)
    return;
  if (run_nodes_missing (r) > 0) { /* no node to rejoin with: look again when one is repaired */
    gboolean cold;
    run_fill_from_spares (r, &cold);
  }
  if (run_nodes_missing (r) > 0) {
    const double again_s = 600.0; /* how often a controller looks; only delays a late spare */
    sim_engine_after (eng, run_ticks (again_s), SIM_PRIO_NORMAL, r->kind_rejoin, r, generation);
    return;
  }
  gboolean training = r->phase == PH_TRAIN;
  if (training)
    run_end_piece (r);
  r->replicas_up = MIN (r->replicas_up + 1, r->j->replicas);
  if (training)
    run_begin_piece (r);
}

static void
on_repair (SimEngine *eng G_GNUC_UNUSED, gpointer self, guint64 node)
{
  Run *r = self;
  const JobSpec *j = r->j;
  gboolean wants = run_nodes_missing (r) > 0;
  if (r->n_hot < j->hot_spares || j->cold_spares == 0) {
    r->state[node] = NODE_HOT;
    r->hot[r->n_hot++] = (guint32)node;
  } else {
    r->state[node] = NODE_COLD;
    r->cold[r->n_cold++] = (guint32)node;
  }
  if (!wants)
    return;
  if (r->phase == PH_WAIT) {
    run_account_phase (r);
    run_leave_down (r);
  } else if (j->recovery == RECOVERY_ELASTIC && r->phase == PH_TRAIN) {
    gboolean cold;
    run_fill_from_spares (r, &cold);
    if (run_units_possible (r) > r->units)
      run_plan_stop (r, 0.0, TRUE, BAD_ELASTIC);
  }
}

static void
on_mark (SimEngine *eng, gpointer self, guint64 arg G_GNUC_UNUSED)
{
  Run *r = self;
  run_end_piece (r);
  r->mark_set = FALSE;
  /* The mark lies one tick behind the place. */
  double work = pos_work (&r->pat, r->pos);
  if (r->target_work > 0.0 && work >= r->target_work * (1.0 - 1e-9)) {
    r->out->end = END_FINISHED;
    sim_engine_stop (eng);
    return;
  }
  run_begin_piece (r);
}

static void
on_maintenance (SimEngine *eng, gpointer self, guint64 arg G_GNUC_UNUSED)
{
  Run *r = self;
  const JobSpec *j = r->j;
  sim_engine_after (eng, run_ticks (j->maintenance_every_s), SIM_PRIO_NORMAL, r->kind_maintenance,
                    r, 0);
  if (r->phase == PH_TRAIN)
    run_plan_stop (r, j->maintenance_s, j->maintenance_warned, BAD_MAINTENANCE);
}

/* Not done after twenty times the undisturbed time and a month: where most of that went. */
static const char *
why_late (const Run *r)
{
  const JobSpec *j = r->j;
  Badput most = 0;
  for (guint i = 1; i < BAD_COUNT; i++)
    if (r->out->bad_s[i] > r->out->bad_s[most])
      most = (Badput)i;
  switch (most) {
  case BAD_WAITING:
    if (j->tracked && j->hot_spares + j->cold_spares == 0)
      return "not done after twenty times the undisturbed time; there are no spares, so that each "
             "node in repair stops the job, most of the time (allowed: more job.spares)";
    return j->tracked
               ? "not done after twenty times the undisturbed time; most of it the job waits "
                 "for nodes in repair (allowed: more job.spares, or faster repair)"
               : "not done after twenty times the undisturbed time; most of it the job waits "
                 "in the queue (job.restart.requeue_s)";
  case BAD_DETECTION:
    return "not done after twenty times the undisturbed time; most of it passes until failures are "
           "noticed (job.restart.detection_s)";
  case BAD_WASTED_PROGRESS:
    return "not done after twenty times the undisturbed time; most work is lost again "
           "(job.checkpoint, job.failures)";
  case BAD_CHECKPOINT_SAVE:
    return "not done after twenty times the undisturbed time; most of it goes into saving "
           "(job.checkpoint)";
  case BAD_PROGRAM_STARTUP:
  case BAD_CHECKPOINT_RESTORE:
  case BAD_TRAINING_PREP:
    return "not done after twenty times the undisturbed time; most of it goes into restarts "
           "(job.restart, job.failures)";
  default:
    return "not done after twenty times the undisturbed time";
  }
}

static void
on_end (SimEngine *eng, gpointer self, guint64 arg G_GNUC_UNUSED)
{
  Run *r = self;
  run_account_phase (r);
  if (r->j->days > 0.0)
    r->out->end = END_TIME;
  else
    run_give_up (r, why_late (r));
  sim_engine_stop (eng);
}

/* ---- a run ---- */

static void
init_nodes (Run *r)
{
  const JobSpec *j = r->j;
  r->nodes = j->tracked ? j->nodes + j->hot_spares + j->cold_spares : j->nodes;
  r->n_active = j->nodes;
  r->units = j->unit_nodes > 0 ? j->nodes / j->unit_nodes : 1;
  r->replicas_up = j->replicas;
  if (!j->tracked)
    return;
  r->state = g_new0 (guint8, r->nodes);
  r->hot = g_new (guint32, r->nodes);
  r->cold = g_new (guint32, r->nodes);
  for (guint i = j->nodes; i < r->nodes; i++) {
    gboolean hot = i < j->nodes + j->hot_spares;
    r->state[i] = hot ? NODE_HOT : NODE_COLD;
    if (hot)
      r->hot[r->n_hot++] = i;
    else
      r->cold[r->n_cold++] = i;
  }
}

static void
register_kinds (Run *r)
{
  r->kind_fault = sim_engine_kind (r->eng, "campaign.fault", on_fault);
  r->kind_phase = sim_engine_kind (r->eng, "campaign.phase", run_on_phase);
  r->kind_repair = sim_engine_kind (r->eng, "campaign.repair", on_repair);
  r->kind_slow = sim_engine_kind (r->eng, "campaign.slow", on_slow);
  r->kind_corrupt = sim_engine_kind (r->eng, "campaign.corrupt", on_corrupt);
  r->kind_rejoin = sim_engine_kind (r->eng, "campaign.rejoin", on_rejoin);
  r->kind_mark = sim_engine_kind (r->eng, "campaign.mark", on_mark);
  r->kind_maintenance = sim_engine_kind (r->eng, "campaign.maintenance", on_maintenance);
  r->kind_end = sim_engine_kind (r->eng, "campaign.end", on_end);
}

static void
begin_run (Run *r)
{
  const JobSpec *j = r->j;
  init_nodes (r);
  for (guint i = 0; i < CKPT_LEVELS; i++)
    r->pending_at[i] = INFINITY;
  r->target_work = j->work_s;
  r->starting = TRUE;
  run_schedule_fault (r);
  if (j->maintenance_every_s > 0.0)
    sim_engine_at (r->eng, run_ticks (j->maintenance_every_s), SIM_PRIO_NORMAL, r->kind_maintenance,
                   r, 0);
  double end_s = j->days > 0.0 ? j->days * 86400.0 : 20.0 * j->work_s + 30.0 * 86400.0;
  sim_engine_at (r->eng, run_ticks (end_s), SIM_PRIO_SAMPLE, r->kind_end, r, 0);
  run_enter_restart (r, FALSE);
}

gboolean
campaign_run_one (const JobSpec *j, double interval_s, guint64 seed, guint64 run, CampaignRun *out,
                  GError **error)
{
  memset (out, 0, sizeof *out);
  g_autofree Run *r = g_new0 (Run, 1);
  r->j = j;
  r->out = out;
  pattern_init (&r->pat, j, interval_s);
  const SimOptions opt = {.ticks_per_s = SIM_TICKS_US, .seed = seed, .run = run};
  g_autoptr (SimEngine) eng = sim_engine_new (&opt);
  guint all = j->tracked ? j->nodes + j->hot_spares + j->cold_spares : j->nodes;
  g_autoptr (FaultGen) gen = fault_gen_new (&j->faults, all, j->nodes, j->gpus_per_node, seed, run);
  r->eng = eng;
  r->gen = gen;
  register_kinds (r);
  begin_run (r);
  gboolean ok = sim_engine_run (eng, error);
  out->elapsed_s = sim_time_to_s (sim_engine_now (eng), SIM_TICKS_US);
  out->work_s = pos_work (&r->pat, r->pos);
  out->longest_s = fmax (out->longest_s, out->elapsed_s - r->best_since);
  out->events = sim_engine_n_events (eng);
  out->fingerprint = sim_engine_fingerprint (eng);
  g_free (r->state);
  g_free (r->hot);
  g_free (r->cold);
  return ok;
}
