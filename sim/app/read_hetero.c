#include "read_hetero.h"

static const char *const keys[] = {"slow_gpus",  "second_gpu", "jitter", "data_stall",
                                   "gc_pause",   "steps",      "unfold", "spread",
                                   "stragglers", "what_if",    NULL};

/* { "gpu": rank, "factor": f } or { "node": n, "factor": f }. */
static gboolean
read_slow (const JsonRef *item, const Spec *s, SlowGpus *out, GError **error)
{
  static const char *const slow_keys[] = {"gpu", "node", "factor", NULL};
  gint64 gpn = s->cluster.gpus_per_node, at = 0;
  gboolean node = json_has (item, "node");
  gint64 most = node ? (s->cluster.gpus - 1) / gpn : s->cluster.gpus - 1;
  if (!json_check_keys (item, slow_keys, error) ||
      !json_get_int (item, node ? "node" : "gpu", 0, most, &at, error) ||
      !json_get_double (item, "factor", 0.01, 1000, &out->factor, error))
    return FALSE;
  if (node && json_has (item, "gpu"))
    return json_fail (item, JSON_ERROR_INCONSISTENT, error,
                      "a slow GPU or a slow node (found both; allowed: one of them)");
  out->first = node ? at * gpn : at;
  out->last = node ? MIN (out->first + gpn, s->cluster.gpus) - 1 : at;
  return TRUE;
}

static gboolean
read_all_slow (const JsonRef *obj, Spec *s, GError **error)
{
  JsonRef list;
  HeteroSpec *h = &s->hetero;
  if (!json_has (obj, "slow_gpus"))
    return TRUE;
  if (!json_get_array (obj, "slow_gpus", &list, error))
    return FALSE;
  int n = json_len (&list);
  if (n > 1000)
    return json_fail (&list, JSON_ERROR_RANGE, error, "too many (found %d; allowed: up to 1000)",
                      n);
  g_free (h->slow);
  h->slow = g_new0 (SlowGpus, MAX (n, 1));
  h->n_slow = 0;
  for (int i = 0; i < n; i++) {
    JsonRef item = json_item (&list, i);
    if (!read_slow (&item, s, &h->slow[i], error))
      return FALSE;
    h->n_slow++;
  }
  return TRUE;
}

/* { "gpu": …, "first_node": n, "nodes": k }: k nodes from the n-th have another type of GPU. */
static gboolean
read_second (const JsonRef *obj, Spec *s, JsonRef *second, gboolean *has, GError **error)
{
  static const char *const second_keys[] = {"gpu", "first_node", "nodes", NULL};
  gint64 gpn = s->cluster.gpus_per_node, nodes = (s->cluster.gpus + gpn - 1) / gpn;
  gint64 first = 0, count = 1;
  JsonRef at;
  *has = json_has (obj, "second_gpu");
  if (!*has)
    return TRUE;
  if (!json_get_object (obj, "second_gpu", second, error) ||
      !json_check_keys (second, second_keys, error) || !json_get_any (second, "gpu", &at, error) ||
      !json_get_int (second, "first_node", 0, nodes - 1, &first, error) ||
      !json_get_int (second, "nodes", 1, nodes - first, &count, error))
    return FALSE;
  s->hetero.second_first = first * gpn;
  s->hetero.second_last = MIN ((first + count) * gpn, s->cluster.gpus) - 1;
  return TRUE;
}

static gboolean
read_chance (const JsonRef *obj, HeteroSpec *h, GError **error)
{
  static const char *const stall_keys[] = {"probability", "duration_s", NULL};
  static const char *const pause_keys[] = {"interval_steps", "duration_s", NULL};
  static const char *const straggler_keys[] = {"share", "factor", NULL};
  JsonRef part;
  if (json_has (obj, "stragglers") &&
      (!json_get_object (obj, "stragglers", &part, error) ||
       !json_check_keys (&part, straggler_keys, error) ||
       !json_get_double (&part, "share", 0, 1, &h->stragglers.share, error) ||
       !json_get_double (&part, "factor", 0.01, 1000, &h->stragglers.factor, error)))
    return FALSE;
  if (json_has (obj, "data_stall") &&
      (!json_get_object (obj, "data_stall", &part, error) ||
       !json_check_keys (&part, stall_keys, error) ||
       !json_get_double (&part, "probability", 0, 1, &h->stall_probability, error) ||
       !json_get_double (&part, "duration_s", 0, 1e5, &h->stall_s, error)))
    return FALSE;
  if (json_has (obj, "gc_pause") &&
      (!json_get_object (obj, "gc_pause", &part, error) ||
       !json_check_keys (&part, pause_keys, error) ||
       !json_get_int (&part, "interval_steps", 1, 1000000000, &h->pause_every_steps, error) ||
       !json_get_double (&part, "duration_s", 0, 1e5, &h->pause_s, error)))
    return FALSE;
  return json_opt_double (obj, "jitter", 0, 2, &h->jitter, error) &&
         json_opt_double (obj, "spread", 0, 2, &h->spread, error) &&
         json_opt_bool (obj, "what_if", &h->what_if, error) &&
         json_opt_int (obj, "steps", 1, 100000, &h->steps, error) &&
         json_opt_bool (obj, "unfold", &h->unfold, error);
}

gboolean
read_hetero (const JsonRef *root, Spec *s, JsonRef *second, gboolean *has_second, GError **error)
{
  JsonRef obj;
  *has_second = FALSE;
  if (!json_has (root, "heterogeneity"))
    return TRUE;
  return json_get_object (root, "heterogeneity", &obj, error) &&
         json_check_keys (&obj, keys, error) && read_all_slow (&obj, s, error) &&
         read_second (&obj, s, second, has_second, error) && read_chance (&obj, &s->hetero, error);
}
