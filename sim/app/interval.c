#include "interval.h"

#include <string.h>

#include "json_read.h"
#include "paths.h"

enum { KIND_FP8, KIND_MOE, KIND_SHARDED, KIND_HOST, KIND_PIPELINE, KIND_DENSE, KIND_COUNT };
static const char *const kind_names[] = {"fp8",   "moe", "fully-sharded", "host-bound", "pipeline",
                                         "dense", NULL};

struct IntervalTable {
  StepInterval kind[KIND_COUNT];
};

static int
kind_of (const Spec *s, const Prediction *p)
{
  if (s->train.precision == DT_FP8 || s->train.precision == DT_MXFP8 ||
      s->train.precision == DT_FP4)
    return KIND_FP8;
  if (s->model.num_experts > 0)
    return KIND_MOE;
  if (s->parallel.fsdp || s->parallel.zero_stage >= 3)
    return KIND_SHARDED;
  if (p->part_s[PART_HOST] > 0.1 * p->step_s)
    return KIND_HOST;
  return s->parallel.pp > 1 ? KIND_PIPELINE : KIND_DENSE;
}

const char *
interval_kind (const Spec *s, const Prediction *p)
{
  return kind_names[kind_of (s, p)];
}

static gboolean
read_kind (const JsonRef *kinds, int k, StepInterval *out, GError **error)
{
  static const char *const keys[] = {"lo", "hi", "rows", "source", NULL};
  JsonRef ref;
  return json_get_object (kinds, kind_names[k], &ref, error) &&
         json_check_keys (&ref, keys, error) &&
         json_get_double (&ref, "lo", 0.05, 1, &out->lo, error) &&
         json_get_double (&ref, "hi", 1, 20, &out->hi, error);
}

IntervalTable *
interval_table_load (GError **error)
{
  static const char *const keys[] = {"format", "why", "kinds", NULL};
  g_autofree char *path = data_find ("published", "errors", NULL, error);
  g_autoptr (JsonDoc) doc = path != NULL ? json_doc_load (path, error) : NULL;
  if (doc == NULL)
    return NULL;
  JsonRef root = json_root (doc), kinds;
  g_autoptr (IntervalTable) t = g_new0 (IntervalTable, 1);
  if (!json_check_keys (&root, keys, error) || !json_get_object (&root, "kinds", &kinds, error) ||
      !json_check_keys (&kinds, kind_names, error))
    return NULL;
  for (int k = 0; k < KIND_COUNT; k++)
    if (!read_kind (&kinds, k, &t->kind[k], error))
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
  return t->kind[kind_of (s, p)];
}
