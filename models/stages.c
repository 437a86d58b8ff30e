/* Layers on stages, and the parameters a stage's rank holds. */
#include "compile.h"

#include <string.h>

#include "layout.h"

/* With multi-token modules, these and the loss take a slot of a layer each and the stages are
 * filled from the first: 61 layers, one module and the loss on 16 stages are 15 of four layers and
 * one of one. */
static void
spread_with_modules (StageLayers *sl, gint64 layers, gint64 stages, gint64 modules)
{
  gint64 per =
      (layers + modules + stages) / stages; /* (layers + modules + 1) / stages, rounded up */
  for (gint64 i = 0, next = 0; i < stages; i++) {
    sl->first_layer[i] = next;
    sl->n_layers[i] = MIN (per, layers - next);
    next += sl->n_layers[i];
  }
}

static void
spread (StageLayers *sl, gint64 layers, gint64 stages)
{
  gint64 per = layers / stages, extra = layers % stages;
  gboolean ends = extra != 0 && stages > 2 && (layers + 2) % stages == 0;
  for (gint64 i = 0, next = 0; i < stages; i++) {
    gint64 n = per + (i < extra ? 1 : 0);
    if (ends)
      n = (layers + 2) / stages - (i == 0 || i == stages - 1 ? 1 : 0);
    sl->first_layer[i] = next;
    sl->n_layers[i] = n;
    next += n;
  }
}

gint64
stage_mtp (const StageLayers *sl, const ModelSpec *m, guint stage)
{
  if (sl->mtp != NULL)
    return sl->mtp[stage];
  return stage + 1 == sl->n_stages ? m->mtp_layers : 0;
}

gint64
stage_mtp_before (const StageLayers *sl, guint stage)
{
  gint64 n = 0;
  for (guint i = 0; sl->mtp != NULL && i < stage; i++)
    n += sl->mtp[i];
  return n;
}

/* By the scenario's layout string, which spec_check has held against model, pp and vpp. */
static gboolean
by_layout (StageLayers *sl, const Spec *s, GError **error)
{
  Layout l;
  if (!layout_parse (s->parallel.layout, &l, error))
    return FALSE;
  g_assert (l.n_stages == s->parallel.pp * s->parallel.vpp);
  sl->n_stages = l.n_stages;
  sl->first_layer = g_new (gint64, l.n_stages);
  sl->n_layers = g_new (gint64, l.n_stages);
  for (gint64 i = 0, next = 0; i < l.n_stages; i++) {
    sl->first_layer[i] = next;
    sl->n_layers[i] = l.layers[i];
    next += l.layers[i];
  }
  if (l.total_mtp > l.mtp[l.n_stages - 1])
    sl->mtp = g_steal_pointer (&l.mtp);
  layout_clear (&l);
  return TRUE;
}

gboolean
stage_layers_init (StageLayers *sl, const Spec *s, GError **error)
{
  memset (sl, 0, sizeof *sl);
  if (s->parallel.layout != NULL)
    return by_layout (sl, s, error);
  gint64 stages = s->parallel.pp * s->parallel.vpp;
  if (!spec_stages_legal (s, stages)) {
    g_set_error (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT,
                 "pp %" G_GINT64_FORMAT " x vpp %" G_GINT64_FORMAT " needs %" G_GINT64_FORMAT
                 " layers or more, the model has %" G_GINT64_FORMAT,
                 s->parallel.pp, s->parallel.vpp, stages, s->model.num_layers);
    return FALSE;
  }
  sl->n_stages = (guint)stages;
  sl->first_layer = g_new (gint64, stages);
  sl->n_layers = g_new (gint64, stages);
  if (s->model.mtp_layers > 0 && stages > 1)
    spread_with_modules (sl, s->model.num_layers, stages, s->model.mtp_layers);
  else
    spread (sl, s->model.num_layers, stages);
  return TRUE;
}

void
stage_layers_clear (StageLayers *sl)
{
  g_clear_pointer (&sl->first_layer, g_free);
  g_clear_pointer (&sl->n_layers, g_free);
  g_clear_pointer (&sl->mtp, g_free);
}

static double
table_params (const Spec *s)
{
  return (double)spec_padded_vocab (s) * (double)s->model.hidden / (double)s->parallel.tp;
}

double
stage_input_params (const Spec *s)
{
  const ModelSpec *m = &s->model;
  if (m->graph != NULL)
    return (double)model_rank_embedding (m, m->vocab, s->parallel.tp);
  return table_params (s) + (double)(m->max_positions * m->hidden);
}

double
stage_output_params (const Spec *s)
{
  const ModelSpec *m = &s->model;
  return m->graph != NULL ? (double)model_rank_head (m, m->vocab, s->parallel.tp)
                          : table_params (s);
}

/* Experts are divided by ep and etp, all else by tp; a stage with MTP modules holds them and, where
 * it is not the first, a copy of the token table that they read (a tied one is the head's on the
 * last stage). */
StageParams
stage_params_per_rank (const Spec *s, const StageLayers *sl, guint stage)
{
  const ModelSpec *m = &s->model;
  gint64 tp = s->parallel.tp, ep = s->parallel.ep, etp = spec_expert_tp (s);
  StageParams sum = {0, 0};
  for (gint64 i = 0; i < sl->n_layers[stage]; i++) {
    RankParams r = model_rank_layer (m, sl->first_layer[stage] + i, tp, ep, etp);
    sum.dense += (double)r.dense;
    sum.experts += (double)r.experts;
  }
  if (stage == 0)
    sum.dense += stage_input_params (s);
  gint64 modules = stage_mtp (sl, m, stage);
  gboolean last = stage + 1 == sl->n_stages;
  if (last && (m->graph != NULL || !m->tied_embeddings || sl->n_stages > 1))
    sum.dense += stage_output_params (s);
  if (modules > 0) {
    RankParams r = model_rank_mtp (m, tp, ep, etp);
    double part = (double)modules / (double)m->mtp_layers, table = table_params (s);
    if (stage > 0 && !(last && m->tied_embeddings))
      sum.dense += table;
    sum.dense += (double)r.dense * part;
    sum.experts += (double)r.experts * part;
  }
  return sum;
}
