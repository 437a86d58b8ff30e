#include "quick.h"

#include <string.h>

#include "cli.h"
#include "fabric.h"
#include "json_write.h"
#include "paths.h"
#include "predict.h"
#include "scenario.h"
#include "store.h"
#include "text.h"

#define STEP_TOKENS   ((gint64)4 << 20)
#define SEQUENCE      ((gint64)4096)
#define MEMORY_SHARE  0.95
#define GPUS_MAX      1000000
#define DOUBLINGS_MAX 6

typedef struct {
  gint64 tp, pp, vpp, ep;
  const char *recompute;
} Choice;

typedef struct {
  JsonDoc *doc;
  const char *const *sets;
  gint64 gpus, domain, layers, experts;
  PredictCache *cache;
  ScenarioParts *parts;
  Choice best, least; /* fastest that fits; smallest memory of those that run */
  double best_s;
  gint64 least_bytes;
  guint tried, ran;
  GError *first; /* why the first layout could not run */
} Search;

/* ---- the base ---- */

static gboolean
parse_gpus (const char *text, gint64 *n, const char **name, GError **error)
{
  char *end;
  guint64 v = g_ascii_strtoull (text, &end, 10);
  if (g_ascii_isdigit (*text) && v >= 1 && v <= GPUS_MAX && (*end == 'x' || *end == '*') &&
      end[1] != '\0') {
    *n = (gint64)v;
    *name = end + 1;
    return TRUE;
  }
  g_autofree char *quoted = text_quoted (text);
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
               "--gpus: not a number of GPUs (found %s; allowed: NUMBERxGPU, for example 64xH100)",
               quoted);
  return FALSE;
}

/* The fabric that most published runs on this GPU had: the first rule that asks for no words about
 * the network. Newly allocated. */
static char *
usual_fabric (const char *gpu, GError **error)
{
  g_autofree char *path = data_find ("published", "rules", NULL, error);
  g_autoptr (JsonDoc) doc = path != NULL ? json_doc_load (path, error) : NULL;
  JsonRef rules;
  if (doc == NULL)
    return NULL;
  JsonRef root = json_root (doc);
  if (!json_get_array (&root, "fabric", &rules, error))
    return NULL;
  for (int i = 0, n = json_len (&rules); i < n; i++) {
    JsonRef rule = json_item (&rules, i);
    const char *pattern = NULL, *fabric = NULL;
    if (json_has (&rule, "interconnect") || !json_opt_string (&rule, "gpu", &pattern, NULL) ||
        !json_opt_string (&rule, "fabric", &fabric, NULL) || pattern == NULL || fabric == NULL)
      continue;
    if (g_regex_match_simple (pattern, gpu, 0, 0))
      return g_strdup (fabric);
  }
  return g_strdup (g_strrstr (gpu, "L40S") != NULL ? "l40s-pcie4" : "dgx-h100-ndr");
}

/* Positions of the model, when the file tells them and they are fewer than usual. */
static gint64
sequence_of (const char *hf_config)
{
  static const char *const keys[] = {"max_position_embeddings", "n_positions", "n_ctx",
                                     "max_seq_len"};
  gint64 seq = SEQUENCE, v;
  g_autoptr (JsonDoc) doc = json_doc_load (hf_config, NULL);
  if (doc == NULL)
    return seq;
  JsonRef root = json_root (doc);
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    v = 0;
    if (json_is_object (&root) && json_has (&root, keys[i]) &&
        json_opt_int (&root, keys[i], 1, G_MAXINT32, &v, NULL) && v > 0)
      seq = MIN (seq, v);
  }
  return seq;
}

static char *
base_text (const char *hf_config, const GpuProfile *part, const char *fabric, gint64 gpus,
           gint64 domain, gint64 seq)
{
  const char *gpu = gpu_name (part);
  gint64 want = (STEP_TOKENS + seq - 1) / seq;
  gint64 batch = (want + gpus - 1) / gpus * gpus;
  g_autofree char *base = g_path_get_basename (hf_config);
  g_autofree char *name = g_strdup_printf ("%s on %" G_GINT64_FORMAT " x %s", base, gpus, gpu);
  GString *text = g_string_new (NULL);
  g_autoptr (JsonWriter) w = json_writer_new (text, 0);
  jw_begin_object (w, NULL);
  jw_int (w, "format", 1);
  jw_string (w, "name", name);
  jw_begin_object (w, "cluster");
  jw_string (w, "gpu", gpu);
  jw_int (w, "gpus_per_node", MIN (domain, gpus));
  jw_int (w, "gpus", gpus);
  jw_string (w, "fabric", fabric);
  jw_end_object (w);
  jw_begin_object (w, "model");
  g_autofree char *full = g_canonicalize_filename (hf_config, NULL);
  jw_string (w, "hf_config", full);
  jw_end_object (w);
  jw_string (w, "software", "megatron-core-2024");
  jw_begin_object (w, "train");
  jw_int (w, "sequence_tokens", seq);
  jw_int (w, "global_batch_sequences", batch);
  jw_int (w, "micro_batch_sequences", 1);
  jw_string (w, "precision", gpu_peak_flops (part, DT_BF16) > 0 ? "bf16" : "fp16");
  jw_string (w, "recompute", "none");
  jw_end_object (w);
  jw_begin_object (w, "parallel");
  jw_int (w, "zero_stage", 1);
  jw_end_object (w);
  jw_end_object (w);
  return g_string_free (text, FALSE);
}

/* ---- the search ---- */

static gboolean
user_set (const Search *q, const char *key)
{
  gsize n = strlen (key);
  for (gsize i = 0; q->sets != NULL && q->sets[i] != NULL; i++)
    if (strncmp (q->sets[i], key, n) == 0 && q->sets[i][n] == '=')
      return TRUE;
  return FALSE;
}

static gboolean
put (const Search *q, JsonDoc *doc, const char *key, const char *value, GError **error)
{
  g_autofree char *set = g_strdup_printf ("%s=%s", key, value);
  return user_set (q, key) || scenario_set (doc, set, error);
}

static gboolean
put_int (const Search *q, JsonDoc *doc, const char *key, gint64 value, GError **error)
{
  g_autofree char *text = g_strdup_printf ("%" G_GINT64_FORMAT, value);
  return put (q, doc, key, text, error);
}

static gboolean
apply (const Search *q, JsonDoc *doc, const Choice *c, GError **error)
{
  return put_int (q, doc, "parallel.tp", c->tp, error) &&
         put_int (q, doc, "parallel.pp", c->pp, error) &&
         put_int (q, doc, "parallel.vpp", c->vpp, error) &&
         put_int (q, doc, "parallel.ep", c->ep, error) &&
         put (q, doc, "parallel.sequence_parallel", c->tp > 1 ? "true" : "false", error) &&
         put (q, doc, "train.recompute", c->recompute, error);
}

/* TRUE when the layout runs and fits. */
static gboolean
try_choice (Search *q, const Choice *c)
{
  JsonRef root = json_root (q->doc);
  g_autoptr (JsonDoc) doc = json_doc_copy (&root);
  g_autoptr (GError) why = NULL;
  Spec s;
  Prediction p;
  q->tried++;
  if (!apply (q, doc, c, &why) || !scenario_read_shared (doc, q->parts, &s, &why)) {
    if (q->first == NULL)
      q->first = g_steal_pointer (&why);
    return FALSE;
  }
  gboolean ran = predict (&s, q->cache, NULL, &p, &why);
  spec_clear (&s);
  if (!ran) {
    if (q->first == NULL)
      q->first = g_steal_pointer (&why);
    return FALSE;
  }
  gboolean fits = (double)p.memory.peak_bytes <= MEMORY_SHARE * (double)p.memory.capacity_bytes;
  if (q->ran++ == 0 || p.memory.peak_bytes < q->least_bytes) {
    q->least = *c;
    q->least_bytes = p.memory.peak_bytes;
  }
  if (fits && (q->best_s <= 0 || p.step_s < q->best_s)) {
    q->best = *c;
    q->best_s = p.step_s;
  }
  prediction_clear (&p);
  return fits;
}

static void
try_recompute (Search *q, Choice c)
{
  static const char *const modes[] = {"none", "selective", "full"};
  for (guint i = 0; i < G_N_ELEMENTS (modes); i++) {
    c.recompute = modes[i];
    if (try_choice (q, &c) || user_set (q, "train.recompute"))
      return;
  }
}

static void
search (Search *q)
{
  gint64 tp_max = user_set (q, "parallel.tp") ? 1 : MIN (MIN (q->domain, q->gpus), 8);
  for (gint64 tp = 1; tp <= tp_max; tp *= 2) {
    gint64 pp_max = user_set (q, "parallel.pp") ? 1 : MIN (q->gpus / tp, q->layers);
    for (gint64 pp = 1; pp <= pp_max; pp *= 2) {
      gint64 vpp_max = pp > 1 && !user_set (q, "parallel.vpp") ? 4 : 1;
      if (q->gpus % (tp * pp) != 0)
        continue;
      for (gint64 vpp = 1; vpp <= vpp_max; vpp *= 2) {
        gint64 ep_max = user_set (q, "parallel.ep") || q->experts == 0
                            ? 1
                            : MIN (q->experts, q->gpus / (tp * pp) * tp);
        if (vpp > 1 && q->layers % (pp * vpp) != 0)
          continue;
        for (gint64 ep = 1; ep <= ep_max; ep *= 2)
          if (q->experts == 0 || q->experts % ep == 0)
            try_recompute (q, (Choice){tp, pp, vpp, ep, "none"});
      }
    }
  }
}

/* ---- telling ---- */

static void note (GPtrArray *notes, const char *format, ...) G_GNUC_PRINTF (2, 3);

static void
note (GPtrArray *notes, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_ptr_array_add (notes, g_strdup_vprintf (format, args));
  va_end (args);
}

static void
note_base (const Search *q, const Spec *s, const char *fabric, GPtrArray *notes)
{
  if (!user_set (q, "cluster.fabric"))
    note (notes,
          "network %s, the usual one of this GPU   --set cluster.fabric=NAME (clustersim list "
          "fabrics)",
          fabric);
  if (!user_set (q, "train.sequence_tokens"))
    note (notes, "%" G_GINT64_FORMAT " tokens a sequence   --set train.sequence_tokens=N",
          s->train.sequence_tokens);
  if (!user_set (q, "train.global_batch_sequences"))
    note (notes,
          "%" G_GINT64_FORMAT " sequences a step, about 4 Mi tokens   --set "
          "train.global_batch_sequences=N",
          s->train.global_batch_sequences);
  if (!user_set (q, "train.precision"))
    note (notes, "bf16 with Adam, 32-bit master weights and sharded states   --set "
                 "train.precision=fp8, parallel.zero_stage=0");
  if (!user_set (q, "software"))
    note (notes, "software megatron-core-2024   --set software=NAME (clustersim list software)");
}

/* The doubling of the GPUs from which something fits, or 0. */
static gint64
doubling_that_fits (const Search *q)
{
  for (gint64 k = 2; k <= 1 << DOUBLINGS_MAX; k *= 2) {
    JsonRef root = json_root (q->doc);
    g_autoptr (JsonDoc) doc = json_doc_copy (&root);
    Search more = {.doc = doc,
                   .sets = q->sets,
                   .gpus = q->gpus * k,
                   .domain = q->domain,
                   .layers = q->layers,
                   .experts = q->experts,
                   .cache = q->cache,
                   .parts = q->parts};
    g_autofree char *gpus = g_strdup_printf ("cluster.gpus=%" G_GINT64_FORMAT, more.gpus);
    g_autofree char *node =
        g_strdup_printf ("cluster.gpus_per_node=%" G_GINT64_FORMAT, MIN (more.gpus, q->domain));
    g_autofree char *batch = g_strdup_printf ("train.global_batch_sequences=%" G_GINT64_FORMAT,
                                              MAX (more.gpus, (gint64)1024));
    if (!scenario_set (doc, gpus, NULL) || !scenario_set (doc, node, NULL) ||
        !scenario_set (doc, batch, NULL))
      return 0;
    search (&more);
    g_clear_error (&more.first);
    if (more.best_s > 0)
      return more.gpus;
  }
  return 0;
}

static void
note_layout (const Search *q, GPtrArray *notes)
{
  if (q->best_s > 0) {
    note (notes,
          "layout: the fastest of %u that leaves 5 %% of the memory free   --set parallel.tp=N, "
          "parallel.pp=N, train.recompute=MODE …",
          q->tried);
    return;
  }
  gint64 fits = doubling_that_fits (q);
  note (notes, "layout: none of %u leaves 5 %% of the memory free; this one needs least", q->tried);
  if (fits > 0)
    note (notes,
          "it fits from %" G_GINT64_FORMAT " of these GPUs on   --gpus %" G_GINT64_FORMAT "x…",
          fits, fits);
}

static gboolean
choose (Search *q, const char *fabric, GPtrArray *notes, GError **error)
{
  Spec s;
  JsonRef root = json_root (q->doc);
  g_autoptr (JsonDoc) probe = json_doc_copy (&root);
  if (!scenario_read_shared (probe, q->parts, &s, error))
    return FALSE;
  q->layers = s.model.num_layers;
  q->experts = s.model.num_experts;
  note_base (q, &s, fabric, notes);
  spec_clear (&s);
  search (q);
  if (q->ran == 0) {
    g_propagate_error (error, g_steal_pointer (&q->first));
    return FALSE;
  }
  note_layout (q, notes);
  return apply (q, q->doc, q->best_s > 0 ? &q->best : &q->least, error);
}

JsonDoc *
quick_document (const char *hf_config, const char *gpus, const char *const *sets, GPtrArray *notes,
                GError **error)
{
  gint64 n;
  const char *name;
  g_autoptr (Store) store = store_new ();
  if (!parse_gpus (gpus, &n, &name, error))
    return NULL;
  const GpuProfile *gpu = store_gpu (store, name, NULL, error);
  if (gpu == NULL)
    return NULL;
  g_autofree char *fabric_name = usual_fabric (gpu_name (gpu), error);
  const Fabric *fabric =
      fabric_name != NULL ? store_fabric (store, fabric_name, NULL, error) : NULL;
  if (fabric == NULL)
    return NULL;
  gint64 domain = fabric->domain_gpus;
  g_autofree char *text =
      base_text (hf_config, gpu, fabric_name, n, domain, sequence_of (hf_config));
  g_autoptr (JsonDoc) doc = json_doc_parse ("--hf-config", text, strlen (text), error);
  if (doc == NULL)
    return NULL;
  for (gsize i = 0; sets != NULL && sets[i] != NULL; i++)
    if (!scenario_set (doc, sets[i], error))
      return NULL;
  g_autoptr (PredictCache) cache = predict_cache_new ();
  g_autoptr (ScenarioParts) parts = scenario_parts_new ();
  Search q = {
      .doc = doc, .sets = sets, .gpus = n, .domain = domain, .cache = cache, .parts = parts};
  gboolean ok = choose (&q, fabric_name, notes, error);
  g_clear_error (&q.first);
  return ok ? g_steal_pointer (&doc) : NULL;
}
