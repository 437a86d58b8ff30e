#include "campaign_job_load.h"

#include "predict.h"
#include "read_job.h"
#include "rng.h"
#include "scenario_priv.h"

#include <math.h>
#include <string.h>

void
loaded_job_clear (LoadedJob *l)
{
  if (l->assumed == NULL)
    return;
  g_clear_pointer (&l->name, g_free);
  g_clear_pointer (&l->assumed, g_ptr_array_unref);
  job_clear (&l->job);
}

static void assume (LoadedJob *l, const char *format, ...) G_GNUC_PRINTF (2, 3);

static void
assume (LoadedJob *l, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_ptr_array_add (l->assumed, g_strdup_vprintf (format, args));
  va_end (args);
}

/* ---- a job alone ---- */

static gboolean
read_seed (const JsonRef *root, guint64 *seed, GError **error)
{
  static const char *const keys[] = {"seed", NULL};
  JsonRef run;
  gint64 n = 1;
  if (json_has (root, "run") &&
      (!json_get_object (root, "run", &run, error) || !json_check_keys (&run, keys, error) ||
       !json_opt_int (&run, "seed", 0, G_GINT64_CONSTANT (9007199254740991), &n, error)))
    return FALSE;
  *seed = (guint64)n;
  return TRUE;
}

/* As in whole scenarios, of which a campaign may have been cut down: gpu and fabric are names only.
 */
static gboolean
read_cluster (const JsonRef *root, JobContext *c, GError **error)
{
  static const char *const keys[] = {"gpu",          "gpus_per_node", "nodes",
                                     "gpus",         "fabric",        "price_usd_per_gpu_hour",
                                     "node_power_W", "pue",           NULL};
  JsonRef ref, at;
  if (!json_get_object (root, "cluster", &ref, error) || !json_check_keys (&ref, keys, error) ||
      !json_get_int (&ref, "gpus_per_node", 1, 100000, &c->gpus_per_node, error) ||
      !json_opt_int (&ref, "nodes", 1, 10000000, &c->nodes, error) ||
      !json_opt_int (&ref, "gpus", 1, 10000000, &c->gpus, error) ||
      !json_opt_double (&ref, "price_usd_per_gpu_hour", 0, 1e6, &c->usd_per_gpu_hour, error) ||
      !json_opt_double (&ref, "node_power_W", 0, 1e9, &c->node_power_w, error) ||
      !json_opt_double (&ref, "pue", 1, 10, &c->pue, error))
    return FALSE;
  if (c->nodes == 0 && c->gpus == 0)
    return json_get_any (&ref, "nodes", &at, error);
  if (c->nodes == 0)
    c->nodes = (c->gpus + c->gpus_per_node - 1) / c->gpus_per_node;
  if (c->gpus == 0)
    c->gpus = c->nodes * c->gpus_per_node;
  return TRUE;
}

static gboolean
load_alone (const JsonRef *root, LoadedJob *out, GError **error)
{
  static const char *const keys[] = {"format", "name", "description", "cluster",
                                     "job",    "run",  NULL};
  gint64 format;
  JobContext c = {0};
  return json_check_keys (root, keys, error) &&
         json_get_int (root, "format", 1, 1, &format, error) && read_cluster (root, &c, error) &&
         read_seed (root, &out->seed, error) && read_job (root, &c, &out->job, error);
}

/* ---- a whole scenario ---- */

static void
shares_of (const Prediction *p, CostSpec *cost)
{
  double comm = p->part_s[PART_TP_COMM] + p->part_s[PART_CP_COMM] + p->part_s[PART_EP_COMM] +
                p->part_s[PART_PP_COMM] + p->part_s[PART_DP_COMM];
  cost->compute_share = (p->part_s[PART_COMPUTE] + p->part_s[PART_OPTIMIZER]) / p->step_s;
  cost->comm_share = comm / p->step_s;
}

/* tokens/s with `missing` data-parallel units fewer, each with as many micro-batches as before; 0
 * when that layout cannot run. */
static double
rate_without (JsonDoc *doc, const Spec *s, gint64 missing)
{
  JsonRef root = json_root (doc);
  gint64 dp = s->parallel.dp - missing, unit_gpus = s->cluster.gpus / s->parallel.dp;
  if (dp < 1)
    return 0.0;
  g_autoptr (JsonDoc) less = json_doc_copy (&root);
  gint64 gpus = dp * unit_gpus;
  gint64 sequences = s->train.global_batch_sequences / s->parallel.dp * dp;
  char *sets[] = {
      g_strdup_printf ("cluster.nodes=%" G_GINT64_FORMAT,
                       (gpus + s->cluster.gpus_per_node - 1) / s->cluster.gpus_per_node),
      g_strdup_printf ("cluster.gpus=%" G_GINT64_FORMAT, gpus),
      g_strdup_printf ("train.global_batch_sequences=%" G_GINT64_FORMAT, sequences),
      g_strdup_printf ("parallel.dp=%" G_GINT64_FORMAT, dp)};
  gboolean ok = TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (sets); i++) {
    ok = ok && scenario_set (less, sets[i], NULL);
    g_free (sets[i]);
  }
  Spec small;
  Prediction p;
  if (!ok || !scenario_read (less, &small, NULL))
    return 0.0;
  double rate = 0.0;
  if (predict (&small, NULL, NULL, &p, NULL)) {
    rate = p.tokens_per_s;
    prediction_clear (&p);
  }
  spec_clear (&small);
  return rate;
}

/* Speeds of an elastic job with units missing, from predictions of the smaller layouts. */
static void
elastic_speeds (JsonDoc *doc, const Spec *s, double full_rate, LoadedJob *out)
{
  enum {
    PREDICTED = 8
  }; /* more units than that are rarely away at once; beyond it, in proportion */
  JobSpec *j = &out->job;
  if (j->recovery != RECOVERY_ELASTIC || j->n_speeds > 0)
    return;
  j->speed[0] = 1.0;
  guint n = 1;
  for (; n <= PREDICTED; n++) {
    double rate = rate_without (doc, s, n);
    if (rate <= 0.0)
      break;
    j->speed[n] = fmin (rate / full_rate, 1.0);
  }
  j->n_speeds = n;
  assume (out, "speeds with up to %u units missing are predicted from the smaller layouts", n - 1);
}

static void
context_of (const Spec *s, JobContext *c)
{
  c->gpus = s->cluster.gpus;
  c->nodes = s->cluster.nodes;
  c->gpus_per_node = s->cluster.gpus_per_node;
  c->parameters = (double)model_params_total (&s->model);
  c->weight_bytes = s->software.param_bytes;
  c->optimizer_bytes = s->software.optimizer_state_bytes;
  c->tokens_per_step = (double)s->train.global_batch_sequences * (double)s->train.sequence_tokens;
  c->usd_per_gpu_hour = s->cluster.price_usd_per_gpu_hour;
  c->node_power_w = s->cluster.node_power_w;
  c->pue = s->cluster.pue;
}

static gboolean
load_whole (JsonDoc *doc, const JsonRef *root, LoadedJob *out, GError **error)
{
  Spec s;
  Prediction p;
  JobContext c = {0};
  gboolean has_prediction = FALSE;
  if (!scenario_read (doc, &s, error))
    return FALSE;
  out->seed = s.run.seed;
  context_of (&s, &c);
  gboolean ok = TRUE;
  if (read_job_needs_step (root)) {
    ok = has_prediction = predict (&s, NULL, NULL, &p, error);
    if (ok)
      c.step_time_s = p.step_s;
  }
  ok = ok && read_job (root, &c, &out->job, error);
  if (ok && has_prediction) {
    shares_of (&p, &out->job.cost);
    elastic_speeds (doc, &s, p.tokens_per_s, out);
  }
  for (guint i = 0; ok && i < s.assumed->len; i++)
    assume (out, "%s", (const char *)g_ptr_array_index (s.assumed, i));
  if (has_prediction)
    prediction_clear (&p);
  spec_clear (&s);
  return ok;
}

/* ---- both ---- */

static guint64
key_of (const JsonRef *root)
{
  char *text = cJSON_PrintUnformatted (root->node);
  guint64 key = sim_hash_string (text) ^ sim_hash_string (CLUSTERSIM_VERSION);
  cJSON_free (text);
  return key;
}

gboolean
campaign_job_load (JsonDoc *doc, LoadedJob *out, GError **error)
{
  JsonRef root = json_root (doc), at;
  const char *name = NULL;
  memset (out, 0, sizeof *out);
  if (!json_get_object (&root, "job", &at, error) || !json_opt_string (&root, "name", &name, error))
    return FALSE;
  out->assumed = g_ptr_array_new_with_free_func (g_free);
  out->name = g_strdup (name != NULL ? name : json_doc_name (doc));
  out->key = key_of (&root);
  gboolean whole = json_has (&root, "model");
  job_init (&out->job);
  if (!(whole ? load_whole (doc, &root, out, error) : load_alone (&root, out, error))) {
    loaded_job_clear (out);
    return FALSE;
  }
  if (out->job.cost.compute_w > 0.0 && out->job.cost.comm_share <= 0.0)
    assume (out,
            "energy: what of a step is communication is not known, all of it counts as computing");
  g_ptr_array_add (out->assumed, NULL);
  return TRUE;
}

/* As many spares for each node as in the scenario, rounded up. */
static guint
scale_spares (guint spares, gint64 nodes, gint64 old_nodes)
{
  return old_nodes > 0 ? (guint)ceil ((double)spares * (double)nodes / (double)old_nodes - 1e-9)
                       : spares;
}

gboolean
campaign_job_load_at (JsonDoc *doc, gint64 gpus, LoadedJob *out, GError **error)
{
  JsonRef root = json_root (doc), cluster, parallel;
  gint64 per_node = 1;
  double before = 0.0;
  memset (out, 0, sizeof *out);
  g_autoptr (JsonDoc) copy = json_doc_copy (&root);
  if (!json_get_object (&root, "cluster", &cluster, error) ||
      !json_get_int (&cluster, "gpus_per_node", 1, 100000, &per_node, error))
    return FALSE;
  if (gpus % per_node != 0)
    return json_fail (&cluster, JSON_ERROR_RANGE, error,
                      "no whole nodes (found %" G_GINT64_FORMAT
                      " GPUs; allowed: multiples of the %" G_GINT64_FORMAT " of a node)",
                      gpus, per_node);
  g_autofree char *nodes = g_strdup_printf ("cluster.nodes=%" G_GINT64_FORMAT, gpus / per_node);
  g_autofree char *size = g_strdup_printf ("cluster.gpus=%" G_GINT64_FORMAT, gpus);
  if (!scenario_set (copy, nodes, error) || !scenario_set (copy, size, error))
    return FALSE;
  if (json_get_object (&root, "parallel", &parallel, NULL) && json_has (&parallel, "dp") &&
      !scenario_set (copy, "parallel.dp=0", error))
    return FALSE;
  JsonRef job;
  gboolean predicted = json_has (&root, "model") && read_job_needs_step (&root);
  if (!campaign_job_load (copy, out, error))
    return FALSE;
  gint64 old_nodes = 0, old_gpus = 0;
  json_opt_int (&cluster, "nodes", 1, 10000000, &old_nodes, NULL);
  json_opt_int (&cluster, "gpus", 1, 10000000, &old_gpus, NULL);
  gint64 nodes_before = old_nodes > 0 ? old_nodes : (old_gpus + per_node - 1) / per_node;
  out->job.hot_spares = scale_spares (out->job.hot_spares, gpus / per_node, nodes_before);
  out->job.cold_spares = scale_spares (out->job.cold_spares, gpus / per_node, nodes_before);
  if (predicted || !json_get_object (&root, "job", &job, NULL))
    return TRUE;
  /* Nothing says how it scales: as if without loss. */
  before = old_gpus > 0 ? (double)old_gpus : (double)(old_nodes * per_node);
  out->job.work_s *= before / (double)gpus;
  out->job.step_time_s *= before / (double)gpus;
  return TRUE;
}
