/* Scenario values: a merged document → Spec. Keys are checked before any profile is read, so that
 * the first error of a file is the nearest to its top. */
#include "layout.h"
#include "paths.h"
#include "program.h"
#include "read_hetero.h"
#include "read_job.h"
#include "read_network.h"
#include "read_trades.h"
#include "scenario_priv.h"
#include "sched.h"

#include <string.h>

/* Limits are there to keep products of counts inside 64 bits and loops finite; all are far above
 * what anybody has built. */
#define GPUS_MAX      G_GINT64_CONSTANT (10000000)
#define SEQUENCES_MAX G_GINT64_CONSTANT (100000000)
#define TOKENS_MAX    G_GINT64_CONSTANT (100000000)
#define VPP_MAX       10000
#define EVENTS_MAX    G_GINT64_CONSTANT (9007199254740991)

static const char *const root_keys[] = {
    "format",   "name", "description", "cluster",   "model",         "software", "train",
    "parallel", "job",  "run",         "published", "heterogeneity", NULL};
static const char *const cluster_keys[] = {
    "gpu",          "gpus_per_node", "nodes",   "gpus", "fabric", "price_usd_per_gpu_hour",
    "node_power_W", "pue",           "network", NULL};
static const char *const train_keys[] = {"sequence_tokens",
                                         "global_batch_sequences",
                                         "micro_batch_sequences",
                                         "precision",
                                         "recompute",
                                         "moe_imbalance",
                                         "moe_capacity",
                                         "mfu_convention",
                                         "recompute_every",
                                         "adapters",
                                         "offload",
                                         "sequence_fill",
                                         NULL};
static const char *const parallel_keys[] = {"tp",
                                            "cp",
                                            "pp",
                                            "vpp",
                                            "ep",
                                            "etp",
                                            "dp",
                                            "sequence_parallel",
                                            "schedule",
                                            "schedule_file",
                                            "order",
                                            "layout",
                                            "zero_stage",
                                            "fsdp",
                                            "shard_size",
                                            "hpz_size",
                                            "reshard_after_forward",
                                            "cp_comm",
                                            "compression",
                                            "outer",
                                            NULL};
static const char *const published_keys[] = {"step_time_s", "source", NULL};
static const char *const run_keys[] = {"fidelity",     "seed",         "max_events",
                                       "shuffle_ties", "exact_events", NULL};

const char *
scenario_default_software (const char *gpu_name G_GNUC_UNUSED)
{
  return "megatron-core-2024";
}

/* Notes what was filled in for the user. */
void
scenario_assume (Spec *s, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_ptr_array_add (s->assumed, g_strdup_vprintf (format, args));
  va_end (args);
}

/* ---- sections ---- */

static gboolean
read_cluster (const JsonRef *root, Spec *s, GError **error)
{
  ClusterSpec *c = &s->cluster;
  JsonRef ref, at;
  if (!json_get_object (root, "cluster", &ref, error) ||
      !json_check_keys (&ref, cluster_keys, error) || !json_get_any (&ref, "gpu", &at, error) ||
      !json_get_any (&ref, "fabric", &at, error))
    return FALSE;
  gboolean has_nodes = json_has (&ref, "nodes"), has_gpus = json_has (&ref, "gpus");
  if (!json_get_int (&ref, "gpus_per_node", 1, GPUS_MAX, &c->gpus_per_node, error) ||
      !json_opt_int (&ref, "gpus", 1, GPUS_MAX, &c->gpus, error) ||
      !json_opt_int (&ref, "nodes", 1, GPUS_MAX, &c->nodes, error) ||
      !json_opt_double (&ref, "price_usd_per_gpu_hour", 0, 1e6, &c->price_usd_per_gpu_hour,
                        error) ||
      !json_opt_double (&ref, "node_power_W", 0, 1e9, &c->node_power_w, error) ||
      !json_opt_double (&ref, "pue", 1, 10, &c->pue, error))
    return FALSE;
  if (!has_nodes && !has_gpus)
    return json_get_any (&ref, "nodes", &at, error);
  if (!has_nodes)
    c->nodes = (c->gpus + c->gpus_per_node - 1) / c->gpus_per_node;
  gint64 most = c->nodes * c->gpus_per_node; /* at most 1e14 */
  if (!has_gpus)
    c->gpus = most;
  if (c->gpus > most) {
    json_get_any (&ref, "gpus", &at, NULL);
    return json_fail (&at, JSON_ERROR_INCONSISTENT, error,
                      "more GPUs than the nodes have (found %" G_GINT64_FORMAT
                      "; allowed: up to nodes * gpus_per_node = %" G_GINT64_FORMAT ")",
                      c->gpus, most);
  }
  if (c->gpus > GPUS_MAX) {
    json_get_any (&ref, "nodes", &at, NULL);
    return json_fail (&at, JSON_ERROR_RANGE, error,
                      "too many GPUs (found nodes * gpus_per_node = %" G_GINT64_FORMAT
                      "; allowed: up to %" G_GINT64_FORMAT ")",
                      c->gpus, GPUS_MAX);
  }
  return TRUE;
}

/* A mode, or "selective:" with the modules that are run again. */
static gboolean
read_recompute (const JsonRef *ref, TrainSpec *t, int *mode, GError **error)
{
  JsonRef at;
  const char *text = NULL;
  Recompute how = RECOMPUTE_NONE;
  t->recompute_modules = 0;
  if (!json_has (ref, "recompute") || !json_get_any (ref, "recompute", &at, NULL) ||
      !json_is_string (&at) || !json_get_string (ref, "recompute", &text, NULL) ||
      !g_str_has_prefix (text, "selective:"))
    return json_opt_enum (ref, "recompute", recompute_names, mode, error);
  if (!recompute_parse (text, &how, &t->recompute_modules))
    return json_fail (
        &at, JSON_ERROR_RANGE, error,
        "unknown module (found \"%s\"; allowed: core_attn, layernorm, moe_act, mla_up_proj, "
        "moe, shared_experts, mlp)",
        text);
  *mode = (int)how;
  return TRUE;
}

static gboolean
read_train (const JsonRef *root, Spec *s, GError **error)
{
  static const char *const conventions[] = {"causal", "full", NULL};
  TrainSpec *t = &s->train;
  JsonRef ref;
  int precision = DT_BF16, recompute = RECOMPUTE_NONE, convention = 0;
  t->micro_batch_sequences = 1;
  if (!json_get_object (root, "train", &ref, error) || !json_check_keys (&ref, train_keys, error) ||
      !json_get_int (&ref, "global_batch_sequences", 1, SEQUENCES_MAX, &t->global_batch_sequences,
                     error) ||
      !json_opt_int (&ref, "sequence_tokens", 1, TOKENS_MAX, &t->sequence_tokens, error) ||
      !json_opt_int (&ref, "micro_batch_sequences", 1, SEQUENCES_MAX, &t->micro_batch_sequences,
                     error) ||
      !json_opt_enum (&ref, "precision", dtype_names, &precision, error) ||
      !read_recompute (&ref, t, &recompute, error) ||
      !json_opt_double (&ref, "moe_imbalance", 1, 1000, &t->moe_imbalance, error) ||
      !json_opt_double (&ref, "moe_capacity", 1, 1000, &t->moe_capacity, error) ||
      !json_opt_int (&ref, "recompute_every", 1, 1000000, &t->recompute_every, error) ||
      !json_opt_double (&ref, "sequence_fill", 0.01, 1, &t->sequence_fill, error) ||
      !json_opt_enum (&ref, "mfu_convention", conventions, &convention, error) ||
      !read_train_trades (&ref, s, error))
    return FALSE;
  t->precision = (DType)precision;
  t->recompute = (Recompute)recompute;
  t->causal_flops = convention == 0;
  if (!json_has (&ref, "micro_batch_sequences"))
    scenario_assume (s, "train.micro_batch_sequences is not given: 1");
  if (!json_has (&ref, "precision"))
    scenario_assume (s, "train.precision is not given: %s", dtype_names[precision]);
  if (!json_has (&ref, "recompute"))
    scenario_assume (s, "train.recompute is not given: %s", recompute_names[recompute]);
  return TRUE;
}

/* A model of images, or of anything that is no sequence of tokens, says how many a sample is. */
static gboolean
read_sequence (const JsonRef *root, ScenarioParts *parts, Spec *s, GError **error)
{
  JsonRef train;
  if (s->train.sequence_tokens > 0)
    return TRUE;
  if (!json_get_object (root, "train", &train, error) ||
      !scenario_read_model (root, parts, s, error))
    return FALSE;
  const ModelGraph *g = s->model.graph;
  if (g == NULL || g->sample_tokens == 0)
    return json_get_int (&train, "sequence_tokens", 1, TOKENS_MAX, &s->train.sequence_tokens,
                         error);
  s->train.sequence_tokens = g->sample_tokens;
  return TRUE;
}

/* Each degree is at most the number of GPUs, and so is tp * cp * pp; products stay far inside 64
 * bits. */
static gboolean
read_degrees (const JsonRef *ref, gint64 gpus, ParallelSpec *p, GError **error)
{
  struct {
    const char *key;
    gint64 *out;
    gboolean multiplies;
  } const degrees[] = {{"tp", &p->tp, TRUE},
                       {"cp", &p->cp, TRUE},
                       {"pp", &p->pp, TRUE},
                       {"dp", &p->dp, FALSE},
                       {"ep", &p->ep, FALSE},
                       {"etp", &p->etp, FALSE},
                       {"vpp", &p->vpp, FALSE},
                       {"shard_size", &p->shard_size, FALSE},
                       {"hpz_size", &p->hpz_size, FALSE}};
  gint64 product = 1;
  for (guint i = 0; i < G_N_ELEMENTS (degrees); i++) {
    gint64 max = strcmp (degrees[i].key, "vpp") == 0 ? VPP_MAX : gpus;
    if (!json_opt_int (ref, degrees[i].key, 1, max, degrees[i].out, error))
      return FALSE;
    product *= degrees[i].multiplies ? *degrees[i].out : 1;
    if (product > gpus) {
      JsonRef at;
      json_get_any (ref, degrees[i].key, &at, NULL);
      return json_fail (&at, JSON_ERROR_INCONSISTENT, error,
                        "tp * cp * pp is more than the GPUs (found %" G_GINT64_FORMAT
                        " * %" G_GINT64_FORMAT " * %" G_GINT64_FORMAT
                        "; allowed: up to %" G_GINT64_FORMAT ")",
                        p->tp, p->cp, p->pp, gpus);
    }
  }
  return TRUE;
}

/* The layout says how many stages there are; one that is wrong is left to spec_check. */
static void
vpp_of_layout (ParallelSpec *p)
{
  Layout l;
  if (!layout_parse (p->layout, &l, NULL))
    return;
  if (l.n_stages % p->pp == 0)
    p->vpp = l.n_stages / p->pp;
  layout_clear (&l);
}

/* Which schedule: by name, in a file, or the usual one for vpp. */
static gboolean
read_schedule (const JsonRef *ref, ParallelSpec *p, GError **error)
{
  int which = -1;
  const char *file = NULL, *layout = NULL, *order = NULL;
  if (!json_opt_enum (ref, "schedule", sched_names, &which, error) ||
      !json_opt_string (ref, "schedule_file", &file, error) ||
      !json_opt_string (ref, "layout", &layout, error) ||
      !json_opt_string (ref, "order", &order, error))
    return FALSE;
  g_free (p->order);
  p->order = g_strdup (order);
  g_free (p->layout);
  p->layout = g_strdup (layout);
  if (layout != NULL && !json_has (ref, "vpp"))
    vpp_of_layout (p);
  if (file != NULL) {
    JsonRef at;
    json_get_any (ref, "schedule_file", &at, NULL);
    if (which >= 0)
      return json_fail (&at, JSON_ERROR_INCONSISTENT, error,
                        "a schedule by name and one in a file (found both; allowed: one of them)");
    g_free (p->schedule_file);
    p->schedule_file = path_relative_to (file, json_file (&at));
  }
  const char *usual = p->vpp > 1 ? "interleaved" : "1f1b";
  g_free (p->schedule);
  p->schedule = g_strdup (which >= 0 ? sched_names[which] : usual);
  return TRUE;
}

/* fsdp without zero_stage is full sharding. */
static gboolean
read_sharding (const JsonRef *ref, ParallelSpec *p, GError **error)
{
  gboolean reshard = FALSE;
  if (!json_opt_int (ref, "zero_stage", 0, 3, &p->zero_stage, error) ||
      !json_opt_bool (ref, "fsdp", &p->fsdp, error) ||
      !json_opt_bool (ref, "reshard_after_forward", &reshard, error))
    return FALSE;
  if (p->fsdp && !json_has (ref, "zero_stage"))
    p->zero_stage = 3;
  p->reshard = json_has (ref, "reshard_after_forward") ? reshard : -1;
  return TRUE;
}

static gboolean
read_parallel (const JsonRef *root, Spec *s, GError **error)
{
  ParallelSpec *p = &s->parallel;
  JsonRef ref;
  p->tp = p->cp = p->pp = p->vpp = p->ep = 1;
  p->dp = p->shard_size = p->hpz_size = 0;
  if (!json_has (root, "parallel")) {
    scenario_assume (s, "parallel is not given: data parallel over all GPUs");
    g_free (p->schedule);
    p->schedule = g_strdup ("1f1b");
    return TRUE;
  }
  return json_get_object (root, "parallel", &ref, error) &&
         json_check_keys (&ref, parallel_keys, error) &&
         read_degrees (&ref, s->cluster.gpus, p, error) &&
         json_opt_bool (&ref, "sequence_parallel", &p->sequence_parallel, error) &&
         read_sharding (&ref, p, error) && read_schedule (&ref, p, error) &&
         read_parallel_trades (&ref, p, error);
}

static gboolean
read_run (const JsonRef *root, Spec *s, GError **error)
{
  JsonRef ref;
  if (!json_has (root, "run"))
    return TRUE;
  gint64 seed = (gint64)s->run.seed, max_events = 0;
  if (!json_get_object (root, "run", &ref, error) || !json_check_keys (&ref, run_keys, error) ||
      !json_opt_int (&ref, "seed", 0, EVENTS_MAX, &seed, error) ||
      !json_opt_int (&ref, "max_events", 1, EVENTS_MAX, &max_events, error) ||
      !json_opt_bool (&ref, "shuffle_ties", &s->run.shuffle_ties, error) ||
      !json_opt_bool (&ref, "exact_events", &s->run.exact_events, error))
    return FALSE;
  s->run.seed = (guint64)seed;
  if (max_events > 0)
    s->run.max_events = (guint64)max_events;
  return TRUE;
}

/* A measured step of this very run, which reports print beside the prediction. */
static gboolean
read_published (const JsonRef *root, Spec *s, GError **error)
{
  JsonRef ref;
  const char *source;
  if (!json_has (root, "published"))
    return TRUE;
  if (!json_get_object (root, "published", &ref, error) ||
      !json_check_keys (&ref, published_keys, error) ||
      !json_get_double (&ref, "step_time_s", 1e-6, 1e9, &s->published_step_s, error) ||
      !json_get_string (&ref, "source", &source, error))
    return FALSE;
  g_free (s->published_source);
  s->published_source = g_strdup (source);
  return TRUE;
}

/* The network of the cluster, and which fidelity that makes the usual one. */
static gboolean
read_net (const JsonRef *root, Spec *s, GError **error)
{
  JsonRef run;
  gboolean has = json_has (root, "run");
  return (!has || json_get_object (root, "run", &run, error)) && read_network (root, s, error) &&
         read_fidelity (has ? &run : NULL, s, error);
}

/* ---- what differs ---- */

/* What differs between GPUs, and the profile of a second type of them. */
static gboolean
read_differences (const JsonRef *root, Spec *s, GError **error)
{
  JsonRef second;
  gboolean has = FALSE;
  if (!read_hetero (root, s, &second, &has, error))
    return FALSE;
  return !has || scenario_read_second_gpu (&second, s, error);
}

/* ---- the whole ---- */

/* An error at a dotted key (NULL: the root), or at the nearest thing above it that the document
 * has. */
static gboolean
fail_at (JsonDoc *doc, const char *key, JsonError code, const char *message, GError **error)
{
  JsonRef at[SCENARIO_KEY_PARTS + 1];
  g_auto (GStrv) keys = g_strsplit (key != NULL ? key : "", ".", SCENARIO_KEY_PARTS);
  guint n = scenario_locate (doc, key != NULL ? key : "", at);
  for (; keys[n] != NULL; n++)
    at[n + 1] = (JsonRef){doc, NULL, &at[n], keys[n], -1};
  return json_fail (&at[n], code, error, "%s", message);
}

static gboolean
check_spec (JsonDoc *doc, Spec *s, GError **error)
{
  g_autoptr (GError) why = NULL;
  const char *key = NULL;
  if (spec_check (s, &key, &why))
    return TRUE;
  gboolean range = g_error_matches (why, SPEC_ERROR, SPEC_ERROR_RANGE);
  return fail_at (doc, key, range ? JSON_ERROR_RANGE : JSON_ERROR_INCONSISTENT, why->message,
                  error);
}

void
scenario_blame (JsonDoc *doc, GError **error)
{
  const char *key = NULL;
  if ((*error)->domain == SCHED_ERROR)
    key = "parallel.schedule";
  else if (g_error_matches (*error, PROGRAM_ERROR, PROGRAM_ERROR_OVERFLOW))
    key = "train";
  else if ((*error)->domain == TOPO_ERROR)
    key = "cluster.network";
  else if ((*error)->domain == PROGRAM_ERROR)
    key = "parallel";
  if (key == NULL)
    return;
  g_autoptr (GError) why = g_steal_pointer (error);
  fail_at (doc, key, JSON_ERROR_INCONSISTENT, why->message, error);
}

static gboolean
read_name (JsonDoc *doc, const JsonRef *root, Spec *s, GError **error)
{
  const char *name = NULL, *description = NULL;
  gint64 format;
  if (!json_check_keys (root, root_keys, error) ||
      !json_get_int (root, "format", 1, 1, &format, error) ||
      !json_opt_string (root, "name", &name, error) ||
      !json_opt_string (root, "description", &description, error))
    return FALSE;
  g_free (s->name);
  s->name = name != NULL ? g_strdup (name) : g_path_get_basename (json_doc_name (doc));
  return TRUE;
}

static gboolean
read_all (JsonDoc *doc, ScenarioParts *parts, Spec *s, GError **error)
{
  JsonRef root = json_root (doc), at;
  return read_name (doc, &root, s, error) && read_cluster (&root, s, error) &&
         json_get_any (&root, "model", &at, error) && read_train (&root, s, error) &&
         read_sequence (&root, parts, s, error) && read_parallel (&root, s, error) &&
         read_job_keys (&root, error) && read_run (&root, s, error) && read_net (&root, s, error) &&
         read_published (&root, s, error) && scenario_read_devices (&root, parts, s, error) &&
         read_differences (&root, s, error) &&
         (s->model.name != NULL || scenario_read_model (&root, parts, s, error)) &&
         scenario_read_software (&root, parts, s, error);
}

gboolean
scenario_read (JsonDoc *doc, Spec *out, GError **error)
{
  return scenario_read_shared (doc, NULL, out, error);
}

static gboolean
read_spec (JsonDoc *doc, ScenarioParts *parts, gboolean check, Spec *out, GError **error)
{
  scenario_parts_trim (parts);
  spec_init (out);
  g_clear_pointer (&out->prov, g_ptr_array_unref);
  out->prov = g_ptr_array_new_with_free_func ((GDestroyNotify)prov_entry_free);
  if (out->profiles == NULL)
    out->profiles = g_ptr_array_new_with_free_func (g_free);
  if (out->assumed == NULL)
    out->assumed = g_ptr_array_new_with_free_func (g_free);
  if (read_all (doc, parts, out, error) && (!check || check_spec (doc, out, error)))
    return TRUE;
  spec_clear (out);
  memset (out, 0, sizeof *out);
  return FALSE;
}

gboolean
scenario_read_shared (JsonDoc *doc, ScenarioParts *parts, Spec *out, GError **error)
{
  return read_spec (doc, parts, TRUE, out, error);
}

gboolean
scenario_read_unchecked (JsonDoc *doc, Spec *out, GError **error)
{
  return read_spec (doc, NULL, FALSE, out, error);
}
