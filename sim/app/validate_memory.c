/* Tables of memory: Megatron-LM's own reference runs, with the argument list as recorded. Two
 * results a row: bytes that stay allocated after a step, and the peak over the run, both of the
 * last rank. What the arguments leave open is Megatron's default; one node of 8 GPUs unless the
 * layout asks for more (a case that says "1node" on GB200 has the 4 GPUs of a tray), vocabulary
 * 50,257 padded to make-vocab-size-divisible-by (128) x tp. The tests run in deterministic mode,
 * with the cuBLAS workspaces of that, unless an argument rules it out or the case says not. */
#include "validate.h"

#include <math.h>
#include <string.h>

#include "gpu_profile.h"

#define NODE_GPUS 8 /* of the tests' machines; two trays where they are GB200's */
#define TRAY_GPUS 4

static const StepInterval memory_interval = {0.93, 1.07};

/* ---- arguments ---- */

typedef struct {
  char **items; /* "key=value" or "key" */
} Args;

static Args
args_parse (const char *text)
{
  g_auto (GStrv) raw = g_strsplit (text, "--", -1);
  g_autoptr (GStrvBuilder) b = g_strv_builder_new ();
  for (gsize i = 0; raw[i] != NULL; i++) {
    g_strstrip (raw[i]);
    if (raw[i][0] != '\0')
      g_strv_builder_add (b, raw[i]);
  }
  return (Args){g_strv_builder_end (b)};
}

static const char *
arg (const Args *a, const char *key)
{
  gsize n = strlen (key);
  for (gsize i = 0; a->items[i] != NULL; i++)
    if (strncmp (a->items[i], key, n) == 0 && (a->items[i][n] == '=' || a->items[i][n] == '\0'))
      return a->items[i][n] == '=' ? a->items[i] + n + 1 : "true";
  return NULL;
}

static gboolean
flag (const Args *a, const char *key)
{
  const char *v = arg (a, key);
  return v != NULL && g_ascii_strcasecmp (v, "false") != 0;
}

static gint64
whole (const Args *a, const char *key, gint64 fallback)
{
  const char *v = arg (a, key);
  gint64 n = v != NULL ? g_ascii_strtoll (v, NULL, 10) : 0;
  return n > 0 && n < G_GINT64_CONSTANT (1) << 40 ? n : fallback;
}

static double
real (const Args *a, const char *key, double fallback)
{
  const char *v = arg (a, key);
  return v != NULL ? g_ascii_strtod (v, NULL) : fallback;
}

/* ---- arguments → Spec ---- */

static void
args_model (const Args *a, ModelSpec *m)
{
  model_clear (m);
  model_init (m);
  m->name = g_strdup ("megatron");
  m->num_layers = whole (a, "num-layers", 0);
  m->hidden = whole (a, "hidden-size", 0);
  m->heads = whole (a, "num-attention-heads", 0);
  m->kv_heads = flag (a, "group-query-attention") ? whole (a, "num-query-groups", 1) : m->heads;
  m->head_dim = whole (a, "kv-channels", m->heads > 0 ? m->hidden / m->heads : 0);
  m->gated_mlp = flag (a, "swiglu");
  m->ffn_hidden =
      whole (a, "ffn-hidden-size", m->gated_mlp ? m->hidden * 8 / 3 / 64 * 64 : 4 * m->hidden);
  m->act = m->gated_mlp ? ACT_SILU : flag (a, "squared-relu") ? ACT_RELU2 : ACT_GELU;
  const char *norm = arg (a, "normalization"), *pos = arg (a, "position-embedding-type");
  m->norm = norm != NULL && strcmp (norm, "RMSNorm") == 0 ? NORM_RMSNORM : NORM_LAYERNORM;
  m->norm_bias = m->norm == NORM_LAYERNORM;
  m->pos = pos == NULL                 ? POS_LEARNED
           : strcmp (pos, "rope") == 0 ? POS_ROTARY
           : strcmp (pos, "none") == 0 ? POS_NONE
                                       : POS_LEARNED;
  if (flag (a, "use-rotary-position-embeddings"))
    m->pos = POS_ROTARY;
  m->max_positions = m->pos == POS_LEARNED ? whole (a, "max-position-embeddings", 0) : 0;
  m->qkv_bias = m->attn_out_bias = m->mlp_bias = !flag (a, "disable-bias-linear");
  m->qk_norm = flag (a, "qk-layernorm");
  m->tied_embeddings = !flag (a, "untie-embeddings-and-output-weights");
  m->vocab = whole (a, "vocab-size", 50257);
  m->num_experts = whole (a, "num-experts", 0);
  if (m->num_experts == 0)
    return;
  m->experts_per_token = whole (a, "moe-router-topk", 2);
  m->moe_ffn_hidden = whole (a, "moe-ffn-hidden-size", m->ffn_hidden);
  m->shared_ffn_hidden = whole (a, "moe-shared-expert-intermediate-size", 0);
  m->shared_experts = m->shared_ffn_hidden > 0 ? 1 : 0;
  m->moe_every = 1;
  m->expert_bias = flag (a, "moe-router-enable-expert-bias");
}

static gboolean
args_scope (const Args *a, char **reason)
{
  static const char *const others[] = {"encoder-num-layers",
                                       "img-h",
                                       "hybrid-layer-pattern",
                                       "hybrid-override-pattern",
                                       "model-provider",
                                       "use-megatron-fsdp",
                                       "multi-latent-attention",
                                       "mtp-num-layers",
                                       "moe-layer-freq",
                                       "perform-rl-step",
                                       "pipeline-model-parallel-layout",
                                       "spec",
                                       NULL};
  for (gsize i = 0; others[i] != NULL; i++)
    if (arg (a, others[i]) != NULL) {
      *reason = g_strdup_printf ("--%s: not predicted from an argument list yet", others[i]);
      return FALSE;
    }
  return TRUE;
}

/* Megatron refuses deterministic mode beside these. */
static gboolean
args_deterministic (const Args *a)
{
  return !flag (a, "cross-entropy-loss-fusion") && !flag (a, "use-flash-attn") &&
         !flag (a, "tp-comm-overlap");
}

static void
args_software (const Args *a, SoftwareProfile *sw)
{
  const char *backend = arg (a, "attention-backend");
  sw->attention =
      backend != NULL && g_str_has_prefix (backend, "unfused") ? ATTN_UNFUSED : ATTN_CUDNN;
  if (backend != NULL && g_str_has_prefix (backend, "local"))
    sw->attention = ATTN_UNFUSED;
  const char *impl = arg (a, "transformer-impl");
  gboolean local = impl != NULL && g_str_has_prefix (impl, "local");
  if (local && !flag (a, "use-flash-attn"))
    sw->attention = ATTN_UNFUSED;
  /* Megatron's own unfused attention has a buffer for its products, Transformer Engine's not */
  sw->attn_scores_kept = local && sw->attention == ATTN_UNFUSED;
  if (local)
    sw->te_workspaces = 0;
  if (local || !flag (a, "moe-grouped-gemm"))
    sw->grouped_gemm_streams = 0;
  sw->dropout = real (a, "hidden-dropout", 0.1) > 0;
  sw->grad_bytes = flag (a, "fp16") ? 6 : 4;
  sw->vocab_pad = whole (a, "make-vocab-size-divisible-by", 128);
}

static void
args_parallel (const Args *a, gint64 node_gpus, Spec *s)
{
  ParallelSpec *p = &s->parallel;
  p->tp = whole (a, "tensor-model-parallel-size", 1);
  p->pp = whole (a, "pipeline-model-parallel-size", 1);
  p->cp = whole (a, "context-parallel-size", 1);
  p->ep = whole (a, "expert-model-parallel-size", 1);
  p->etp = whole (a, "expert-tensor-parallel-size", 0);
  gint64 chunk = whole (a, "num-layers-per-virtual-pipeline-stage", 0);
  p->vpp = chunk > 0 && p->pp > 1 ? MAX (s->model.num_layers / (p->pp * chunk), 1)
                                  : whole (a, "num-virtual-stages-per-pipeline-rank", 1);
  if (p->pp == 1)
    p->vpp = 1;
  p->sequence_parallel = flag (a, "sequence-parallel") && p->tp > 1;
  p->zero_stage = flag (a, "use-distributed-optimizer") ? 1 : 0;
  if (p->zero_stage == 1) /* a shard spans an instance of the optimizer */
    p->shard_size = -whole (a, "num-distributed-optimizer-instances", 1);
  s->cluster.gpus_per_node = node_gpus;
  gint64 need = p->tp * p->pp * p->cp;
  if (p->ep > 1 && need % p->ep != 0)
    need = p->pp * MAX (p->tp * p->cp, p->ep);
  s->cluster.gpus = MAX (node_gpus, need);
  s->cluster.nodes = (s->cluster.gpus + node_gpus - 1) / node_gpus;
  gint64 replicas = s->cluster.gpus / (p->tp * p->pp);
  p->shard_size = p->shard_size < -1 ? MAX (replicas / -p->shard_size, 1) : 0;
}

static gboolean
args_spec (const RunContext *c, const char *gpu, gint64 node_gpus, const Args *a, Spec *s,
           char **reason)
{
  g_autoptr (GError) err = NULL;
  const SoftwareProfile *sw = store_software (c->store, "megatron-core-tests", NULL, &err);
  s->gpu = sw != NULL ? store_gpu (c->store, gpu, NULL, &err) : NULL;
  s->fabric = s->gpu != NULL ? store_fabric (c->store, "dgx-h100-ndr", NULL, &err) : NULL;
  if (s->fabric == NULL) {
    *reason = g_strdup (err->message);
    return FALSE;
  }
  s->borrowed = TRUE;
  args_model (a, &s->model);
  s->software = *sw;
  s->software.name = g_strdup (sw->name);
  args_software (a, &s->software);
  args_parallel (a, node_gpus, s);
  TrainSpec *t = &s->train;
  t->sequence_tokens = whole (a, "seq-length", 0);
  t->micro_batch_sequences = whole (a, "micro-batch-size", 1);
  t->global_batch_sequences = whole (a, "global-batch-size", 8);
  t->precision = flag (a, "fp16") ? DT_FP16 : flag (a, "bf16") ? DT_BF16 : DT_FP32;
  const char *rc = arg (a, "recompute-granularity");
  t->recompute = rc == NULL                      ? RECOMPUTE_NONE
                 : g_str_has_prefix (rc, "full") ? RECOMPUTE_FULL
                                                 : RECOMPUTE_SELECTIVE;
  if (!spec_check (s, NULL, &err)) {
    *reason = g_strdup (err->message);
    return FALSE;
  }
  return TRUE;
}

/* ---- results ---- */

static double
cell_number (const RunContext *c, guint row, const char *col)
{
  return g_ascii_strtod (csv_cell (c->t, row, csv_col (c->t, col)), NULL);
}

static void
add_result (const RunContext *c, guint row, GArray *rows, const char *suffix, const char *metric,
            double published, double predicted)
{
  if (!(published > 0) || !(predicted > 0))
    return;
  RowResult *r = validate_add (rows, metric, published, predicted, memory_interval);
  r->id = g_strdup_printf ("%s:%s", csv_cell (c->t, row, csv_col (c->t, "id")), suffix);
}

static void
memory_row (const RunContext *c, guint row, GArray *rows)
{
  Spec s;
  Prediction p;
  char *reason = NULL;
  const char *platform = csv_cell (c->t, row, csv_col (c->t, "platform"));
  const char *gpu = g_str_has_prefix (platform, "A100")    ? "A100-SXM-80GB"
                    : g_str_has_prefix (platform, "GB200") ? "GB200-186GB"
                                                           : "H100-SXM-80GB";
  const char *name = csv_cell (c->t, row, csv_col (c->t, "case"));
  gint64 node_gpus =
      strstr (name, "1node") != NULL && g_str_has_prefix (gpu, "GB200") ? TRAY_GPUS : NODE_GPUS;
  Args a = args_parse (csv_cell (c->t, row, csv_col (c->t, "megatron_args")));
  g_autoptr (GError) err = NULL;
  spec_init (&s);
  gboolean ok = args_scope (&a, &reason) && args_spec (c, gpu, node_gpus, &a, &s, &reason);
  if (!args_deterministic (&a) || strstr (name, "nondeterministic") != NULL)
    s.software.blas_config_bytes = 0;
  if (ok && !predict (&s, c->cache, NULL, &p, &err)) {
    reason = g_strdup (err->message);
    ok = FALSE;
  }
  if (ok) {
    const StageMemory *last = &p.memory.stages[p.memory.n_stages - 1];
    add_result (c, row, rows, "after_step", "allocated_after_step_bytes",
                cell_number (c, row, "allocated_after_step_bytes"), (double)last->after_step_bytes);
    add_result (c, row, rows, "peak", "max_allocated_bytes",
                cell_number (c, row, "max_allocated_bytes"), (double)last->allocated_bytes);
    prediction_clear (&p);
  } else {
    validate_skip (rows, reason);
  }
  g_free (reason);
  g_strfreev (a.items);
  spec_clear (&s);
}

static const char *const needed[] = {"max_allocated_bytes", "megatron_args", NULL};
const TableKind table_memory = {"memory", needed, "platform", "memory", NULL, memory_row};
