#include "campaign_int.h"

#include <math.h>

void
pattern_init (Pattern *p, const JobSpec *j, double interval_s)
{
  CkptPlan plan = j->ckpt;
  if (interval_s > 0.0)
    plan.interval_s = interval_s;
  p->segment_s = plan.interval_s;
  p->n_levels = plan.n_levels;
  p->mean_block_s = 0.0;
  for (guint i = 0; i < plan.n_levels; i++) {
    p->every[i] = plan.level[i].every;
    p->block_s[i] = ckpt_effective_block_s (&plan, i);
    p->persist_s[i] = plan.level[i].persist_s;
    p->mean_block_s += p->block_s[i] / (double)p->every[i];
  }
  p->eval_every_s = j->eval_s > 0.0 ? j->eval_every_s : 0.0;
  p->eval_s = j->eval_s;
  if (p->eval_every_s > 0.0)
    p->mean_block_s += p->eval_s * p->segment_s / p->eval_every_s;
}

static double
saves_between (const Pattern *p, gint64 from, gint64 to)
{
  double s = 0.0;
  for (guint i = 0; i < p->n_levels; i++)
    s += p->block_s[i] *
         (double)(p->every[i] == 1 ? to - from : to / p->every[i] - from / p->every[i]);
  return s;
}

/* Pauses that are over once the work has passed from a to b. */
static double
evals_between (const Pattern *p, double a, double b)
{
  if (p->eval_every_s <= 0.0)
    return 0.0;
  return floor (b / p->eval_every_s) - floor (a / p->eval_every_s);
}

double
pattern_time_to (const Pattern *p, Pos from, double speed, gint64 n)
{
  double work = (double)(n - from.n) * p->segment_s - from.r;
  return work / speed + saves_between (p, from.n, n) +
         p->eval_s * evals_between (p, pos_work (p, from), (double)n * p->segment_s);
}

/* Inside one segment: work from place a (seconds of all work) with pauses, for at most t. */
static double
work_with_pauses (const Pattern *p, double a, double most, double speed, double t, double *paused)
{
  *paused = 0.0;
  if (p->eval_every_s <= 0.0)
    return fmin (t * speed, most);
  double done = 0.0;
  while (done < most) {
    double to_pause = (floor ((a + done) / p->eval_every_s) + 1.0) * p->eval_every_s - (a + done);
    double piece = fmin (to_pause, most - done);
    if (t * speed < piece)
      return done + t * speed;
    done += piece;
    t -= piece / speed;
    if (piece < to_pause)
      break;
    double pause = fmin (p->eval_s, t);
    *paused += pause;
    t -= pause;
    if (pause < p->eval_s)
      break;
  }
  return done;
}

Advance
pattern_advance (const Pattern *p, Pos from, double speed, double t)
{
  Advance out = {.pos = from};
  if (t <= 0.0)
    return out;
  double mean = p->segment_s / speed + p->mean_block_s;
  gint64 n = from.n + (gint64)((t + from.r / speed) / mean);
  double at = n > from.n ? pattern_time_to (p, from, speed, n) : 0.0;
  while (n > from.n && at > t) {
    n--;
    at = n > from.n ? pattern_time_to (p, from, speed, n) : 0.0;
  }
  for (double next; (next = pattern_time_to (p, from, speed, n + 1)) <= t; n++)
    at = next;
  /* In segment n + 1, at - t before now it began. */
  double begin = n == from.n ? from.r : 0.0, paused = 0.0;
  double rest = t - at;
  double done = work_with_pauses (p, (double)n * p->segment_s + begin, p->segment_s - begin, speed,
                                  rest, &paused);
  double in_save = fmax (0.0, rest - done / speed - paused);
  out.pos = (Pos){n, begin + done};
  /* A segment whose work is done but not its save counts as work done, not as saved. */
  out.save_s = saves_between (p, from.n, n) + (done >= p->segment_s - begin ? in_save : 0.0);
  out.eval_s = paused;
  if (n > from.n)
    out.eval_s += p->eval_s * evals_between (p, pos_work (p, from), (double)n * p->segment_s);
  out.work_time_s = t - out.save_s - out.eval_s;
  return out;
}

double
pattern_time_to_pos (const Pattern *p, Pos from, double speed, Pos to)
{
  double t = to.n > from.n ? pattern_time_to (p, from, speed, to.n) : 0.0;
  Pos begin = to.n > from.n ? (Pos){to.n, 0.0} : from;
  double work = to.r - begin.r;
  return t + work / speed + p->eval_s * evals_between (p, pos_work (p, begin), pos_work (p, to));
}
