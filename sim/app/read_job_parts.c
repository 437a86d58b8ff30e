/* Numbers, distributions and parts of the "job" object. */
#include "read_job.h"

#include "paths.h"
#include "scenario_priv.h"

#include <math.h>
#include <string.h>

static const char *const number_keys[] = {"value", "kind", "source", "points", NULL};
static const char *const number_kinds[] = {"published", "measured", "vendor",
                                           "derived",   "assumed",  NULL};

static gboolean
note_input (const JsonRef *ref, double value, GPtrArray *inputs, GError **error)
{
  int kind = 0;
  const char *source = NULL;
  if (!json_check_keys (ref, number_keys, error) ||
      !json_get_enum (ref, "kind", number_kinds, &kind, error) ||
      !json_get_string (ref, "source", &source, error))
    return FALSE;
  if (inputs == NULL)
    return TRUE;
  JobInput *i = g_new0 (JobInput, 1);
  i->key = json_path (ref);
  i->kind = g_strdup (number_kinds[kind]);
  i->source = g_strdup (source);
  i->value = value;
  g_ptr_array_add (inputs, i);
  return TRUE;
}

gboolean
job_number (const JsonRef *obj, const char *key, double min, double max, double *out,
            GPtrArray *inputs, gboolean *found, GError **error)
{
  JsonRef ref;
  gboolean has = json_has (obj, key);
  if (found != NULL)
    *found = has;
  if (!has)
    return TRUE;
  if (!json_get_any (obj, key, &ref, error))
    return FALSE;
  if (!json_is_object (&ref))
    return json_value_double (&ref, min, max, out, error);
  return json_get_double (&ref, "value", min, max, out, error) &&
         note_input (&ref, *out, inputs, error);
}

gboolean
job_count (const JsonRef *obj, const char *key, gint64 min, gint64 max, guint *out,
           GPtrArray *inputs, GError **error)
{
  JsonRef ref;
  gint64 n = 0;
  if (!json_has (obj, key))
    return TRUE;
  if (!json_get_any (obj, key, &ref, error))
    return FALSE;
  if (!json_is_object (&ref) ? !json_get_int (obj, key, min, max, &n, error)
                             : !json_get_int (&ref, "value", min, max, &n, error) ||
                                   !note_input (&ref, (double)n, inputs, error))
    return FALSE;
  *out = (guint)n;
  return TRUE;
}

/* Either a number, or points [gpus, seconds], linear in log gpus; flat before the first, straight
 * on after the last. */
static gboolean
points_at (const JsonRef *ref, double gpus, double *out, GError **error)
{
  JsonRef points;
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  if (!json_get_array (ref, "points", &points, error))
    return FALSE;
  int n = json_len (&points);
  if (n < 1)
    return json_fail (&points, JSON_ERROR_RANGE, error, "no points (allowed: [[gpus, s], …])");
  for (int i = 0; i < n; i++) {
    JsonRef p = json_item (&points, i);
    if (!json_is_array (&p) || json_len (&p) != 2)
      return json_fail (&p, JSON_ERROR_TYPE, error, "not a point (allowed: [gpus, seconds])");
    JsonRef a = json_item (&p, 0), b = json_item (&p, 1);
    double x, y;
    if (!json_value_double (&a, 1, 1e9, &x, error) || !json_value_double (&b, 0, 1e7, &y, error))
      return FALSE;
    if (i > 0 && x <= x1)
      return json_fail (&a, JSON_ERROR_RANGE, error,
                        "points out of order (found %g after %g; allowed: ascending)", x, x1);
    if (i > 0 && x1 >= gpus)
      continue; /* the rest is only checked */
    x0 = i > 0 ? x1 : x;
    y0 = i > 0 ? y1 : y;
    x1 = x;
    y1 = y;
  }
  double f = x1 > x0 ? log (gpus / x0) / log (x1 / x0) : 0.0;
  *out = fmax (y0 + fmax (f, 0.0) * (y1 - y0), 0.0);
  return TRUE;
}

gboolean
job_scaled_number (const JsonRef *obj, const char *key, double gpus, double *out, GPtrArray *inputs,
                   GError **error)
{
  JsonRef ref;
  if (!json_has (obj, key))
    return TRUE;
  if (!json_get_any (obj, key, &ref, error))
    return FALSE;
  if (json_is_object (&ref) && json_has (&ref, "points"))
    return points_at (&ref, gpus, out, error) && note_input (&ref, *out, inputs, error);
  return job_number (obj, key, 0, 1e8, out, inputs, NULL, error);
}

gboolean
job_dist (const JsonRef *obj, const char *key, Dist *out, GPtrArray *inputs, GError **error)
{
  static const char *const keys[] = {"distribution", "mean_s", "mean_days", "shape",
                                     "of",           "start",  NULL};
  JsonRef ref;
  if (!json_has (obj, key))
    return TRUE;
  if (!json_get_any (obj, key, &ref, error))
    return FALSE;
  double mean = 0.0, shape = 1.0;
  if (!json_is_object (&ref) || json_has (&ref, "value")) {
    if (!job_number (obj, key, 0, 1e10, &mean, inputs, NULL, error))
      return FALSE;
    *out = dist_fixed (mean);
    return TRUE;
  }
  int kind = DIST_FIXED;
  gboolean has_s, has_days, has_shape;
  if (!json_check_keys (&ref, keys, error) ||
      !json_get_enum (&ref, "distribution", dist_names, &kind, error) ||
      !job_number (&ref, "mean_s", 0, 1e10, &mean, inputs, &has_s, error))
    return FALSE;
  if (!has_s) {
    if (!job_number (&ref, "mean_days", 0, 1e6, &mean, inputs, &has_days, error))
      return FALSE;
    if (!has_days)
      return json_get_any (&ref, "mean_s", &ref, error);
    mean *= 86400.0;
  }
  if (!job_number (&ref, "shape", 1e-3, 1e3, &shape, inputs, &has_shape, error))
    return FALSE;
  JsonRef at;
  gboolean wants = kind == DIST_WEIBULL || kind == DIST_GAMMA || kind == DIST_LOGNORMAL;
  if (wants && !has_shape)
    return json_get_any (&ref, "shape", &at, error);
  *out = dist_make ((DistKind)kind, mean, shape);
  return TRUE;
}

/* A number or distribution of `over` takes the place of that in base whole: merged member by
 * member, a value would stand beside the points that it replaces. */
static gboolean
clear_numbers (JsonDoc *base, const JsonRef *over, const char *path, GError **error)
{
  if (!json_is_object (over))
    return TRUE;
  if (json_has (over, "value") || json_has (over, "points") || json_has (over, "distribution")) {
    JsonRef at[SCENARIO_KEY_PARTS + 1];
    g_auto (GStrv) keys = g_strsplit (path, ".", SCENARIO_KEY_PARTS);
    if (scenario_locate (base, path, at) == g_strv_length (keys))
      return json_doc_set (base, path, "0", error);
    return TRUE;
  }
  for (int i = 0; i < json_len (over); i++) {
    JsonRef one = json_item (over, i);
    g_autofree char *below =
        *path != '\0' ? g_strdup_printf ("%s.%s", path, one.key) : g_strdup (one.key);
    if (!clear_numbers (base, &one, below, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
job_merge_over (JsonDoc *base, JsonDoc *over, GError **error)
{
  JsonRef root = json_root (over);
  if (!clear_numbers (base, &root, "", error))
    return FALSE;
  json_doc_merge (base, over);
  return TRUE;
}

gboolean
job_part (const JsonRef *obj, const char *key, const char *kind, JsonDoc **file, JsonRef *out,
          GError **error)
{
  JsonRef extends;
  *file = NULL;
  if (!json_get_any (obj, key, out, error))
    return FALSE;
  if (json_is_string (out)) {
    g_autofree char *path = scenario_find_file (out, kind, error);
    *file = path != NULL ? scenario_load_chain (path, kind, error) : NULL;
    if (*file == NULL)
      return FALSE;
    *out = json_root (*file);
    return TRUE;
  }
  if (!json_is_object (out))
    return json_fail (out, JSON_ERROR_TYPE, error,
                      "wrong type (allowed: a name, a path of a .json file, or an object)");
  if (!json_has (out, "extends"))
    return TRUE;
  if (!json_get_any (out, "extends", &extends, error))
    return FALSE;
  g_autofree char *path = scenario_find_file (&extends, kind, error);
  *file = path != NULL ? scenario_load_chain (path, kind, error) : NULL;
  if (*file == NULL)
    return FALSE;
  g_autoptr (JsonDoc) over = json_doc_copy (out);
  json_doc_remove (over, "extends");
  if (!job_merge_over (*file, over, error))
    return FALSE;
  *out = json_root (*file);
  return TRUE;
}
