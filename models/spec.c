#include "spec.h"

#include "fabric.h"
#include "gpu_profile.h"
#include "layout.h"
#include "rank_order.h"

#include <string.h>

G_DEFINE_QUARK (clustersim - spec - error - quark, spec_error)

const char *const fidelity_names[] = {"analytic", "flow", "step", NULL};

void
spec_init (Spec *s)
{
  memset (s, 0, sizeof *s);
  model_init (&s->model);
  software_init (&s->software);
  s->parallel.tp = s->parallel.cp = s->parallel.pp = s->parallel.vpp = 1;
  s->parallel.ep = 1;
  s->parallel.reshard = -1;
  s->train.precision = DT_BF16;
  s->train.recompute = RECOMPUTE_NONE;
  s->train.causal_flops = TRUE;
  s->train.micro_batch_sequences = 1;
  s->run.seed = 1;
  network_init (&s->network);
  s->profiles = g_ptr_array_new_with_free_func (g_free);
  s->assumed = g_ptr_array_new_with_free_func (g_free);
}

gint64
spec_microbatches (const Spec *s)
{
  return s->train.global_batch_sequences / (s->train.micro_batch_sequences * s->parallel.dp);
}

gint64
spec_padded_vocab (const Spec *s)
{
  if (s->software.vocab_pad_divided && s->parallel.tp == 1)
    return s->model.vocab;
  gint64 unit = MAX (s->software.vocab_pad, 1) * s->parallel.tp;
  return (s->model.vocab + unit - 1) / unit * unit;
}

gboolean
spec_is_fsdp (const Spec *s)
{
  return (s->parallel.fsdp || s->parallel.zero_stage >= 3) && s->parallel.dp * s->parallel.cp > 1;
}

gboolean
spec_reshards (const Spec *s)
{
  if (s->parallel.reshard >= 0)
    return s->parallel.reshard > 0;
  return s->parallel.zero_stage != 2 && s->parallel.pp == 1;
}

gint64
spec_shard_ranks (const Spec *s)
{
  gint64 all = s->parallel.dp * s->parallel.cp;
  return s->parallel.shard_size > 0 ? MIN (s->parallel.shard_size, all) : all;
}

/* Nearest values below and above v that divide n, in words: "4 or 8". */
static char *
nearest_divisors (gint64 n, gint64 v)
{
  gint64 lo = MIN (v, n), hi = v;
  while (lo > 1 && n % lo != 0)
    lo--;
  while (hi < n && (hi == 0 || n % hi != 0))
    hi++;
  if (hi > n || n % MAX (hi, 1) != 0 || hi == lo)
    return g_strdup_printf ("%" G_GINT64_FORMAT, MAX (lo, 1));
  return g_strdup_printf ("%" G_GINT64_FORMAT " or %" G_GINT64_FORMAT, MAX (lo, 1), hi);
}

static gboolean
must_divide (const char *what, gint64 n, const char *by, gint64 v, const char *key_name,
             const char **key, GError **error)
{
  if (v > 0 && n % v == 0)
    return TRUE;
  g_autofree char *near_values = nearest_divisors (n, v);
  if (key != NULL)
    *key = key_name;
  g_set_error (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT,
               "%s %" G_GINT64_FORMAT " is not divisible by %s %" G_GINT64_FORMAT
               " (nearest that divides: %s)",
               what, n, by, v, near_values);
  return FALSE;
}

/* One degree changed so that the product is the GPUs: " (layouts that fit: …)". */
static char *
layouts_that_fit (const ParallelSpec *p, gint64 gpus)
{
  GString *out = g_string_new (NULL);
  gint64 rest = p->tp * p->cp * p->pp;
  const struct {
    const char *name;
    gint64 others;
  } change[] = {{"dp", rest}, {"pp", p->tp * p->cp * p->dp}, {"tp", p->cp * p->pp * p->dp}};
  for (gsize i = 0; i < G_N_ELEMENTS (change); i++) {
    if (change[i].others > gpus || gpus % change[i].others != 0)
      continue;
    gint64 v = gpus / change[i].others;
    g_string_append_printf (out,
                            "%stp %" G_GINT64_FORMAT " x cp %" G_GINT64_FORMAT
                            " x pp %" G_GINT64_FORMAT " x dp %" G_GINT64_FORMAT,
                            out->len == 0 ? " (layouts that fit: " : ", ", i == 2 ? v : p->tp,
                            p->cp, i == 1 ? v : p->pp, i == 0 ? v : p->dp);
  }
  if (out->len > 0)
    g_string_append_c (out, ')');
  return g_string_free (out, FALSE);
}

static gboolean
fill_dp (Spec *s, const char **key, GError **error)
{
  ParallelSpec *p = &s->parallel;
  gint64 mp = p->tp * p->cp * p->pp;
  gint64 gpus = s->cluster.gpus;
  if (gpus % mp != 0 || (p->dp > 0 && mp * p->dp != gpus)) {
    if (key != NULL)
      *key = p->dp > 0 ? "parallel.dp" : "parallel.tp";
    if (p->dp > 0) {
      g_autofree char *nearest = layouts_that_fit (p, gpus);
      g_set_error (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT,
                   "%" G_GINT64_FORMAT "-way tensor, %" G_GINT64_FORMAT
                   "-way context, %" G_GINT64_FORMAT "-way pipeline and %" G_GINT64_FORMAT
                   "-way data parallel multiply to %" G_GINT64_FORMAT
                   " GPUs, the cluster has %" G_GINT64_FORMAT "%s",
                   p->tp, p->cp, p->pp, p->dp, mp * p->dp, gpus, nearest);
    } else
      g_set_error (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT,
                   "tp %" G_GINT64_FORMAT " x cp %" G_GINT64_FORMAT " x pp %" G_GINT64_FORMAT
                   " = %" G_GINT64_FORMAT " does not divide the %" G_GINT64_FORMAT
                   " GPUs (nearest numbers of GPUs: %" G_GINT64_FORMAT " or %" G_GINT64_FORMAT ")",
                   p->tp, p->cp, p->pp, mp, gpus, MAX (gpus / mp, 1) * mp, (gpus / mp + 1) * mp);
    return FALSE;
  }
  p->dp = gpus / mp;
  return TRUE;
}

static gboolean
check_batch (const Spec *s, const char **key, GError **error)
{
  const ParallelSpec *p = &s->parallel;
  gint64 unit = s->train.micro_batch_sequences * p->dp;
  gint64 gbs = s->train.global_batch_sequences;
  if (gbs % unit != 0) {
    if (key != NULL)
      *key = "train.global_batch_sequences";
    g_autofree char *below = gbs > unit
                                 ? g_strdup_printf ("%" G_GINT64_FORMAT " or ", gbs / unit * unit)
                                 : g_strdup ("");
    g_set_error (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT,
                 "global batch %" G_GINT64_FORMAT
                 " is not a multiple of micro-batch %" G_GINT64_FORMAT " x dp %" G_GINT64_FORMAT
                 " (nearest: %s%" G_GINT64_FORMAT ")",
                 gbs, s->train.micro_batch_sequences, p->dp, below, (gbs / unit + 1) * unit);
    return FALSE;
  }
  gint64 cp_unit = p->cp > 1 ? 2 * p->cp : 1;
  if (s->train.sequence_tokens % cp_unit != 0)
    return must_divide ("sequence", s->train.sequence_tokens, "2 x cp", cp_unit,
                        "train.sequence_tokens", key, error);
  if (p->sequence_parallel && p->tp > 1)
    return must_divide ("sequence per cp rank", s->train.sequence_tokens / p->cp, "tp", p->tp,
                        "parallel.sequence_parallel", key, error);
  return TRUE;
}

static gboolean
unsupported (const char *key_name, const char *what, const char **key, GError **error)
{
  if (key != NULL)
    *key = key_name;
  g_set_error (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT, "%s", what);
  return FALSE;
}

static gboolean
check_scope (const Spec *s, const char **key, GError **error)
{
  const ParallelSpec *p = &s->parallel;
  RankDim dims[DIM_COUNT];
  if (!rank_order_parse (p->order, dims, error)) {
    if (key != NULL)
      *key = "parallel.order";
    return FALSE;
  }
  if (p->cp > 1 && s->software.attention == ATTN_UNFUSED)
    return unsupported (
        "parallel.cp",
        "context parallelism needs a fused attention kernel, the software profile has "
        "unfused attention (allowed: cp 1)",
        key, error);
  if (p->cp > 1 && s->model.graph != NULL)
    return unsupported ("parallel.cp",
                        "a model of operators has no context parallelism (allowed: cp 1)", key,
                        error);
  return TRUE;
}

gboolean
spec_stages_legal (const Spec *s, gint64 stages)
{
  return stages <= s->model.num_layers || stages == s->model.num_layers + 2;
}

static gboolean layout_wrong (const char **key, GError **error, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

static gboolean
layout_wrong (const char **key, GError **error, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *what = g_strdup_vprintf (format, args);
  va_end (args);
  return unsupported ("parallel.layout", what, key, error);
}

/* The layout against the model and the pipeline. */
static gboolean
check_layout (const Spec *s, const char **key, GError **error)
{
  const ParallelSpec *p = &s->parallel;
  g_autoptr (GError) why = NULL;
  Layout l;
  if (!layout_parse (p->layout, &l, &why))
    return layout_wrong (key, error, "%s", why->message);
  gint64 stages = l.n_stages, layers = l.total_layers, mtp = l.total_mtp;
  layout_clear (&l);
  if (stages != p->pp * p->vpp)
    return layout_wrong (key, error,
                         "the layout has %" G_GINT64_FORMAT " stages, pp %" G_GINT64_FORMAT
                         " x vpp %" G_GINT64_FORMAT " = %" G_GINT64_FORMAT "%s",
                         stages, p->pp, p->vpp, p->pp * p->vpp,
                         stages % p->pp == 0 ? " (set vpp to stages / pp)" : "");
  if (layers != s->model.num_layers)
    return layout_wrong (
        key, error, "the layout has %" G_GINT64_FORMAT " layers (t), the model %" G_GINT64_FORMAT,
        layers, s->model.num_layers);
  if (mtp != 0 && mtp != s->model.mtp_layers)
    return layout_wrong (key, error,
                         "the layout has %" G_GINT64_FORMAT
                         " prediction modules (m), the model %" G_GINT64_FORMAT,
                         mtp, s->model.mtp_layers);
  return TRUE;
}

static gboolean
check_shape (const Spec *s, const char **key, GError **error)
{
  const ParallelSpec *p = &s->parallel;
  const ModelSpec *m = &s->model;
  gboolean dense = !model_layer_is_moe (m, 0) || m->moe_every > 1;
  if (m->graph != NULL) {
    if (!graph_check_tp (m->graph, p->tp, error)) {
      if (key != NULL)
        *key = "parallel.tp";
      return FALSE;
    }
  } else if (!must_divide ("heads", m->heads, "tp", p->tp, "parallel.tp", key, error) ||
             (dense &&
              !must_divide ("ffn_hidden", m->ffn_hidden, "tp", p->tp, "parallel.tp", key, error)))
    return FALSE;
  if (m->graph == NULL && m->kv_lora_rank == 0 && m->kv_heads % p->tp != 0 &&
      p->tp % m->kv_heads != 0)
    return must_divide ("kv_heads", m->kv_heads, "tp", p->tp, "parallel.tp", key, error);
  if (p->layout != NULL)
    return check_layout (s, key, error);
  if (!spec_stages_legal (s, p->pp * p->vpp)) {
    if (key != NULL)
      *key = p->vpp > 1 ? "parallel.vpp" : "parallel.pp";
    g_set_error (
        error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT,
        "pp %" G_GINT64_FORMAT " x vpp %" G_GINT64_FORMAT
        " stages are more than the %" G_GINT64_FORMAT " layers (at most %" G_GINT64_FORMAT ")",
        p->pp, p->vpp, m->num_layers, p->vpp > 1 ? MAX (m->num_layers / p->pp, 1) : m->num_layers);
    return FALSE;
  }
  if (p->vpp > 1 && p->pp == 1)
    return unsupported ("parallel.vpp", "vpp needs a pipeline: pp is 1 (allowed: vpp 1)", key,
                        error);
  return TRUE;
}

static gboolean
check_sharding (const Spec *s, const char **key, GError **error)
{
  const ParallelSpec *p = &s->parallel;
  gint64 ranks = p->dp * p->cp;
  if (s->software.no_sharded_pipeline && p->pp > 1 && p->zero_stage >= 2)
    return unsupported ("parallel.zero_stage",
                        "this framework does not divide gradients or parameters in a pipeline "
                        "(allowed with pp > 1: zero_stage 0 or 1)",
                        key, error);
  if (p->fsdp && p->zero_stage == 1)
    return unsupported (
        "parallel.zero_stage",
        "fsdp shards more than the optimizer (allowed: 3, or 2 to keep the parameters "
        "gathered from forward to backward)",
        key, error);
  if (p->shard_size > 0 && !must_divide ("dp x cp", ranks, "shard_size", p->shard_size,
                                         "parallel.shard_size", key, error))
    return FALSE;
  if (p->shard_size > 0 && p->zero_stage == 0 && !spec_is_fsdp (s) && ranks > 1)
    return unsupported ("parallel.shard_size",
                        "a shard group needs something to share out (zero_stage 1 to 3, or fsdp)",
                        key, error);
  if (p->hpz_size > 0 && !must_divide ("shard group", spec_shard_ranks (s), "hpz_size", p->hpz_size,
                                       "parallel.hpz_size", key, error))
    return FALSE;
  if (p->hpz_size > 0 && !spec_is_fsdp (s) && ranks > 1)
    return unsupported ("parallel.hpz_size",
                        "a second copy needs sharded parameters (zero_stage 3 or fsdp)", key,
                        error);
  return TRUE;
}

gboolean
spec_check (Spec *s, const char **key, GError **error)
{
  if (key != NULL)
    *key = NULL;
  if (s->cluster.gpus <= 0)
    s->cluster.gpus = s->cluster.nodes * s->cluster.gpus_per_node;
  if (!model_check (&s->model, error)) {
    if (key != NULL)
      *key = "model";
    return FALSE;
  }
  if (s->parallel.schedule == NULL)
    s->parallel.schedule = g_strdup (s->parallel.vpp > 1 ? "interleaved" : "1f1b");
  if (gpu_peak_flops (s->gpu, s->train.precision) <= 0) {
    if (key != NULL)
      *key = "train.precision";
    g_set_error (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT, "%s has no %s arithmetic",
                 gpu_name (s->gpu), dtype_names[s->train.precision]);
    return FALSE;
  }
  return check_scope (s, key, error) && check_shape (s, key, error) && fill_dp (s, key, error) &&
         spec_check_experts (s, key, error) && check_batch (s, key, error) &&
         check_sharding (s, key, error) && spec_check_trades (s, key, error);
}

void
spec_clear (Spec *s)
{
  model_clear (&s->model);
  software_clear (&s->software);
  if (!s->borrowed) {
    gpu_profile_free (s->gpu);
    fabric_free (s->fabric);
  }
  gpu_profile_free (s->hetero.second);
  g_free (s->hetero.slow);
  network_clear (&s->network);
  g_free (s->name);
  g_free (s->parallel.schedule);
  g_free (s->parallel.schedule_file);
  g_free (s->parallel.layout);
  g_free (s->parallel.order);
  g_free (s->published_source);
  g_clear_pointer (&s->profiles, g_ptr_array_unref);
  g_clear_pointer (&s->prov, g_ptr_array_unref);
  g_clear_pointer (&s->assumed, g_ptr_array_unref);
  memset (s, 0, sizeof *s);
}
