#include "interval.h"

#include <math.h>

#include "gpu_profile.h"
#include "json_read.h"
#include "paths.h"

#define HOST_BOUND 0.1 /* share of the step, see FEATURE_HOST */

const char *const interval_feature_names[] = {"narrow precision",
                                              "experts",
                                              "sharded parameters",
                                              "host-bound",
                                              "several nodes",
                                              "pipeline",
                                              "no kernel table of the GPU",
                                              "something assumed",
                                              "framework or network not known",
                                              NULL};
G_STATIC_ASSERT (G_N_ELEMENTS (interval_feature_names) == FEATURE_COUNT + 1);

struct IntervalTable {
  IntervalModel model;
};

/* 16-bit types run at one rate, so that the table of one is the other's. */
static gboolean
has_gemm_table (const GpuProfile *g, DType t)
{
  const gboolean half = t == DT_BF16 || t == DT_FP16;
  return g->gemm[t].burst_efficiency > 0 ||
         (half && (g->gemm[DT_BF16].burst_efficiency > 0 || g->gemm[DT_FP16].burst_efficiency > 0));
}

guint
interval_features (const Spec *s, const Prediction *p)
{
  const DType t = s->train.precision;
  const gboolean has[FEATURE_COUNT] = {
      [FEATURE_NARROW] = t == DT_FP8 || t == DT_MXFP8 || t == DT_FP4,
      [FEATURE_EXPERTS] = s->model.num_experts > 0,
      [FEATURE_SHARDED] = s->parallel.fsdp || s->parallel.zero_stage >= 3,
      [FEATURE_HOST] = p->part_s[PART_HOST] > HOST_BOUND * p->step_s,
      [FEATURE_NODES] = s->cluster.gpus > s->cluster.gpus_per_node,
      [FEATURE_PIPELINE] = s->parallel.pp > 1,
      [FEATURE_BORROWED] = s->gpu != NULL && !has_gemm_table (s->gpu, t),
      [FEATURE_ASSUMED] = s->assumed != NULL && s->assumed->len > 0,
      [FEATURE_STAND_IN] = s->stand_in || s->software.stand_in,
  };
  guint bits = 0;
  for (guint k = 0; k < FEATURE_COUNT; k++)
    bits |= has[k] ? 1u << k : 0;
  return bits;
}

static double
sum (const double *terms, guint features)
{
  double v = terms[FEATURE_COUNT];
  for (guint k = 0; k < FEATURE_COUNT; k++)
    v += features >> k & 1 ? terms[k] : 0;
  return v;
}

double
interval_centre (const IntervalModel *m, guint features)
{
  return sum (m->centre, features);
}

double
interval_spread (const IntervalModel *m, guint features)
{
  return exp (sum (m->spread, features));
}

StepInterval
interval_of (const IntervalModel *m, guint features)
{
  double c = interval_centre (m, features), s = interval_spread (m, features);
  double lo = exp (c + s * m->low), hi = exp (c + s * m->high);
  return (StepInterval){MIN (lo, 1), MAX (hi, 1)}; /* a range without its own figure is no use */
}

static gboolean
read_terms (const JsonRef *terms, const char *name, double *centre, double *spread, GError **error)
{
  static const char *const keys[] = {"centre", "spread", "runs", "sources", NULL};
  JsonRef ref;
  return json_get_object (terms, name, &ref, error) && json_check_keys (&ref, keys, error) &&
         json_get_double (&ref, "centre", -1, 1, centre, error) &&
         json_get_double (&ref, "spread", -10, 10, spread, error);
}

IntervalTable *
interval_table_load (GError **error)
{
  static const char *const keys[] = {"format",   "why", "made_by", "all",
                                     "features", "low", "high",    NULL};
  g_autofree char *path = data_find ("published", "errors", NULL, error);
  g_autoptr (JsonDoc) doc = path != NULL ? json_doc_load (path, error) : NULL;
  if (doc == NULL)
    return NULL;
  JsonRef root = json_root (doc), features;
  g_autoptr (IntervalTable) t = g_new0 (IntervalTable, 1);
  IntervalModel *m = &t->model;
  if (!json_check_keys (&root, keys, error) ||
      !json_get_object (&root, "features", &features, error) ||
      !json_check_keys (&features, interval_feature_names, error) ||
      !json_get_double (&root, "low", -100, 0, &m->low, error) ||
      !json_get_double (&root, "high", 0, 100, &m->high, error) ||
      !read_terms (&root, "all", &m->centre[FEATURE_COUNT], &m->spread[FEATURE_COUNT], error))
    return NULL;
  for (guint k = 0; k < FEATURE_COUNT; k++)
    if (!read_terms (&features, interval_feature_names[k], &m->centre[k], &m->spread[k], error))
      return NULL;
  return g_steal_pointer (&t);
}

void
interval_table_free (IntervalTable *t)
{
  g_free (t);
}

StepInterval
interval_for (const IntervalTable *t, const Spec *s, const Prediction *p)
{
  if (t == NULL)
    return (StepInterval){1, 1};
  return interval_of (&t->model, interval_features (s, p));
}

const IntervalModel *
interval_model (const IntervalTable *t)
{
  return &t->model;
}
