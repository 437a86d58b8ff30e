#include "ckpt.h"

#include <math.h>

G_DEFINE_QUARK (clustersim - ckpt - error - quark, ckpt_error)

const char *const ckpt_survives_names[] = {"process", "node", "all", NULL};

static gboolean
fail (GError **error, guint level, const char *what, double found, const char *allowed)
{
  g_set_error (error, CKPT_ERROR, CKPT_ERROR_RANGE,
               "%s of checkpoint level %u (found %g; allowed: %s)", what, level + 1, found,
               allowed);
  return FALSE;
}

gboolean
ckpt_plan_check (const CkptPlan *p, GError **error)
{
  if (!(p->interval_s > 0.0) || !isfinite (p->interval_s)) {
    g_set_error (error, CKPT_ERROR, CKPT_ERROR_RANGE,
                 "checkpoint interval (found %g s; allowed: more than 0)", p->interval_s);
    return FALSE;
  }
  g_assert (p->n_levels >= 1 && p->n_levels <= CKPT_LEVELS);
  for (guint i = 0; i < p->n_levels; i++) {
    const CkptLevel *l = &p->level[i];
    guint below = i > 0 ? p->level[i - 1].every : 1;
    if (i == 0 ? l->every != 1 : l->every < below || l->every % below != 0)
      return fail (error, i, "every", l->every, i == 0 ? "1" : "a multiple of the level below");
    if (!(l->block_s >= 0.0 && l->persist_s >= 0.0 && l->restore_s >= 0.0))
      return fail (error, i, "a time", fmin (l->block_s, fmin (l->persist_s, l->restore_s)),
                   "0 or more");
    if (!(l->slowdown >= 0.0 && l->slowdown < 1.0))
      return fail (error, i, "slowdown", l->slowdown, "0 to less than 1");
    if (l->survives == CKPT_NODE && l->copies < 2)
      return fail (error, i, "copies", l->copies, "2 or more");
    if (i > 0 && l->survives < p->level[i - 1].survives)
      return fail (error, i, "survives", l->survives, "no less than the level below");
  }
  return TRUE;
}

double
ckpt_effective_block_s (const CkptPlan *p, guint level)
{
  const CkptLevel *l = &p->level[level];
  return l->block_s + fmax (0.0, l->persist_s - p->interval_s * l->every);
}

double
ckpt_bytes_per_parameter (double weight_bytes, double optimizer_bytes)
{
  return weight_bytes + optimizer_bytes;
}

/* Seconds at the least of the limits; 0 is no limit. */
static double
through (double bytes, double a_Bps, double b_Bps)
{
  double least = INFINITY;
  if (a_Bps > 0.0)
    least = a_Bps;
  if (b_Bps > 0.0)
    least = fmin (least, b_Bps);
  return isfinite (least) ? bytes / least : 0.0;
}

static double
writers_Bps (const CkptStore *s)
{
  return s->writer_Bps * (s->writers > 0.0 ? s->writers : s->gpus);
}

double
ckpt_write_s (const CkptStore *s)
{
  return s->fixed_s + through (s->bytes, writers_Bps (s), s->store_write_Bps * s->store_share);
}

double
ckpt_read_s (const CkptStore *s)
{
  return s->reshard_s + through (s->bytes, writers_Bps (s), s->store_read_Bps * s->store_share);
}

double
ckpt_bytes_per_gpu (const CkptStore *s)
{
  return s->bytes / s->gpus;
}

double
ckpt_snapshot_s (const CkptStore *s)
{
  return through (ckpt_bytes_per_gpu (s), s->snapshot_Bps, 0.0);
}

double
ckpt_host_bytes_per_node (const CkptStore *s, guint copies)
{
  return s->bytes / s->nodes * copies;
}

CkptLevel
ckpt_level_sync (const CkptStore *s)
{
  return (CkptLevel){
      .every = 1, .block_s = ckpt_write_s (s), .restore_s = ckpt_read_s (s), .survives = CKPT_ALL};
}

CkptLevel
ckpt_level_async (const CkptStore *s, double slowdown)
{
  return (CkptLevel){.every = 1,
                     .block_s = ckpt_snapshot_s (s),
                     .persist_s = ckpt_write_s (s),
                     .slowdown = slowdown,
                     .restore_s = ckpt_read_s (s),
                     .survives = CKPT_ALL};
}

CkptLevel
ckpt_level_memory (const CkptStore *s)
{
  double snapshot = ckpt_snapshot_s (s);
  return (CkptLevel){
      .every = 1, .block_s = snapshot, .restore_s = snapshot, .survives = CKPT_PROCESS};
}

CkptLevel
ckpt_level_peer (const CkptStore *s, double peer_Bps, guint copies)
{
  double send = peer_Bps > 0.0 ? s->bytes / s->nodes * (copies - 1) / peer_Bps : 0.0;
  double snapshot = ckpt_snapshot_s (s);
  return (CkptLevel){.every = 1,
                     .block_s = snapshot,
                     .persist_s = send,
                     .restore_s = snapshot + (copies > 1 ? send / (copies - 1) : 0.0),
                     .survives = CKPT_NODE,
                     .copies = copies};
}
