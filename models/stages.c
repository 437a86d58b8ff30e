/* Layers on stages, and the parameters a stage's rank holds. */
#include "compile.h"
#include "layout.h"

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
  layout_clear (&l);
  return TRUE;
}

gboolean
stage_layers_init (StageLayers *sl, const Spec *s, GError **error)
{
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
  spread (sl, s->model.num_layers, stages);
  return TRUE;
}

void
stage_layers_clear (StageLayers *sl)
{
  g_clear_pointer (&sl->first_layer, g_free);
  g_clear_pointer (&sl->n_layers, g_free);
}

double
stage_params_per_rank (const Spec *s, const StageLayers *sl, guint stage)
{
  const ModelSpec *m = &s->model;
  double tp = (double)s->parallel.tp, sum = 0;
  for (gint64 i = 0; i < sl->n_layers[stage]; i++) {
    gint64 layer = sl->first_layer[stage] + i;
    double experts = (double)model_params_experts (m, layer);
    double matrices = (double)(model_params_attention (m) + model_params_mlp (m, layer)) - experts;
    sum += matrices / tp + (double)model_params_norms (m) +
           experts / (double)(s->parallel.ep * MAX (s->parallel.etp, 1));
  }
  double table = (double)spec_padded_vocab (s) * (double)m->hidden / tp;
  if (stage == 0)
    sum += table + (double)(m->max_positions * m->hidden);
  if (stage + 1 == sl->n_stages && (!m->tied_embeddings || sl->n_stages > 1))
    sum += table;
  return sum;
}
