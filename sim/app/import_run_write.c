/* What the settings mean: parts of a scenario. */
#include "import_run.h"

#include <string.h>

#include "import_run_priv.h"
#include "model.h"
#include "read_model.h"
#include "units.h"

static gint64
number (const ImportedRun *r, Key k, gint64 otherwise)
{
  gint64 n;
  return r->value[k] != NULL && import_whole_number (r->value[k], &n) ? n : otherwise;
}

static gboolean
on (const ImportedRun *r, Key k)
{
  return r->value[k] != NULL;
}

static gboolean
says (const ImportedRun *r, Key k, const char *word)
{
  return r->value[k] != NULL && strstr (r->value[k], word) != NULL;
}

/* Which layers are dense from "([0]*3+[1]*58)" or a period. */
static void
moe_layers (const ImportedRun *r, ModelSpec *m)
{
  const char *text = r->value[K_MOE_FREQ];
  gint64 n;
  m->moe_every = 1;
  if (text == NULL)
    return;
  if (import_whole_number (text, &n)) {
    m->moe_every = MAX (n, 1);
    return;
  }
  const char *zero = strstr (text, "[0]*");
  if (zero != NULL)
    m->dense_first_layers = (gint64)g_ascii_strtoull (zero + strlen ("[0]*"), NULL, 10);
  else if (strstr (text, "[0]+") != NULL)
    m->dense_first_layers = 1;
}

static void
read_experts (const ImportedRun *r, ModelSpec *m)
{
  m->num_experts = number (r, K_EXPERTS, 0);
  if (m->num_experts == 0)
    return;
  m->experts_per_token = number (r, K_TOPK, 2);
  m->moe_ffn_hidden = number (r, K_MOE_FFN, m->ffn_hidden);
  m->shared_ffn_hidden = number (r, K_SHARED_FFN, 0);
  m->shared_experts = m->shared_ffn_hidden > 0 ? 1 : 0;
  m->router_groups = number (r, K_ROUTER_GROUPS, 0);
  m->router_topk_groups = number (r, K_ROUTER_TOP_GROUPS, 0);
  m->router_bias = on (r, K_ROUTER_BIAS);
  moe_layers (r, m);
}

static void
read_latent (const ImportedRun *r, ModelSpec *m)
{
  if (!on (r, K_MLA))
    return;
  m->q_lora_rank = number (r, K_Q_LORA, 0);
  m->kv_lora_rank = number (r, K_KV_LORA, 32);
  m->qk_nope_dim = number (r, K_QK_NOPE, 128);
  m->qk_rope_dim = number (r, K_QK_ROPE, 64);
  m->v_head_dim = number (r, K_V_HEAD, 128);
  m->head_dim = m->qk_nope_dim + m->qk_rope_dim;
  m->qk_norm = FALSE; /* the norms of the latents, which every such model has */
}

static void
read_shape (const ImportedRun *r, ModelSpec *m)
{
  gboolean bias = !on (r, K_NO_BIAS);
  m->num_layers = number (r, K_LAYERS, 0);
  m->hidden = number (r, K_HIDDEN, 0);
  m->heads = number (r, K_HEADS, 0);
  m->kv_heads = on (r, K_GQA) || on (r, K_GROUPS) ? number (r, K_GROUPS, 1) : m->heads;
  m->head_dim = number (r, K_KV_CHANNELS, m->heads > 0 ? m->hidden / m->heads : 0);
  m->gated_mlp = on (r, K_SWIGLU);
  gint64 gated = m->hidden * 4 * 2 / 3 / 64 * 64;
  m->ffn_hidden = number (r, K_FFN, m->gated_mlp ? gated : 4 * m->hidden);
  m->vocab = number (r, K_VOCAB, 0);
  m->act = m->gated_mlp ? ACT_SILU : on (r, K_RELU2) ? ACT_RELU2 : ACT_GELU;
  m->norm = says (r, K_NORM, "RMS") || says (r, K_NORM, "rms") ? NORM_RMSNORM : NORM_LAYERNORM;
  m->pos = POS_LEARNED;
  if (on (r, K_ROPE) || says (r, K_POS, "rope") || says (r, K_POS, "yarn") || on (r, K_MLA))
    m->pos = POS_ROTARY;
  else if (says (r, K_POS, "alibi") || on (r, K_ALIBI))
    m->pos = POS_ALIBI;
  else if (says (r, K_POS, "none"))
    m->pos = POS_NONE;
  m->max_positions = m->pos == POS_LEARNED ? number (r, K_POSITIONS, number (r, K_SEQ, 0)) : 0;
  m->tied_embeddings = !on (r, K_UNTIE);
  m->qkv_bias = bias || on (r, K_QKV_BIAS);
  m->attn_out_bias = m->mlp_bias = bias;
  m->norm_bias = m->norm == NORM_LAYERNORM;
  m->qk_norm = on (r, K_QK_NORM);
  m->embedding_norm = on (r, K_EMBED_NORM);
  m->mtp_layers = number (r, K_MTP, 0);
  m->attn_sinks = says (r, K_SINKS, "learnable");
}

static gboolean
write_shape (ImportedRun *r, JsonWriter *w, GError **error)
{
  ModelSpec m;
  if (r->model != NULL) {
    jw_string (w, "model", r->model);
    return TRUE;
  }
  if (!on (r, K_LAYERS) || !on (r, K_HIDDEN) || !on (r, K_HEADS)) {
    imported_run_note (r, "the shape of the model is not in the file: add \"model\"");
    return TRUE;
  }
  model_init (&m);
  m.name = g_path_get_basename (r->file);
  read_shape (r, &m);
  read_experts (r, &m);
  read_latent (r, &m);
  gboolean divides = m.hidden > 0 && m.heads > 0 && m.head_dim > 0;
  if (divides && on (r, K_WINDOW))
    imported_run_note (r, "--window-size %s is not taken over: set model.sliding_window",
                       r->value[K_WINDOW]);
  if (m.vocab == 0) {
    imported_run_note (r, "the vocabulary is the tokenizer's and not in the file: 128,256 is "
                          "assumed, set model.vocab (or give vocab-size=N after the file)");
    m.vocab = 128256;
  }
  if (divides) {
    g_autofree char *count = format_count ((double)model_params_total (&m));
    imported_run_note (r, "%s parameters", count);
    write_model (w, "model", &m, r->file);
  }
  model_clear (&m);
  return divides || import_run_fail (r, r->line[K_HEADS], "num-attention-heads", error,
                                     "does not fit hidden-size (found %s and %s)",
                                     r->value[K_HEADS], r->value[K_HIDDEN]);
}

static void
put (JsonWriter *w, const char *key, const ImportedRun *r, Key k)
{
  gint64 n = number (r, k, -1);
  if (n > 0)
    jw_int (w, key, n);
}

static const char *
precision_of (const ImportedRun *r)
{
  if (on (r, K_FP8) && !import_is_false (r->value[K_FP8]))
    return says (r, K_FP8_RECIPE, "mx") || says (r, K_FP8, "mx") ? "mxfp8" : "fp8";
  return on (r, K_BF16) ? "bf16" : on (r, K_FP16) ? "fp16" : NULL;
}

static void
write_recompute (const ImportedRun *r, JsonWriter *w)
{
  if (says (r, K_RECOMPUTE, "full") || (on (r, K_CHECKPOINT_ALL) && !on (r, K_RECOMPUTE))) {
    jw_string (w, "recompute", "full");
    return;
  }
  if (!says (r, K_RECOMPUTE, "selective") && !on (r, K_RECOMPUTE_ALL)) {
    jw_string (w, "recompute", "none");
    return;
  }
  const char *modules = r->value[K_RECOMPUTE_MODULES];
  g_autofree char *list = g_strdup (modules != NULL ? modules : "");
  g_strstrip (g_strdelimit (list, " ", ','));
  g_autofree char *text = g_strconcat ("selective", modules != NULL ? ":" : "", list, NULL);
  jw_string (w, "recompute", text);
}

static void
write_train (ImportedRun *r, JsonWriter *w)
{
  jw_begin_object (w, "train");
  put (w, "sequence_tokens", r, K_SEQ);
  put (w, "global_batch_sequences", r, K_GBS);
  put (w, "micro_batch_sequences", r, K_MBS);
  if (precision_of (r) != NULL)
    jw_string (w, "precision", precision_of (r));
  write_recompute (r, w);
  jw_end_object (w);
  if (!on (r, K_GBS))
    imported_run_note (r, "the global batch is not in the file: add train.global_batch_sequences");
  if (!on (r, K_SEQ))
    imported_run_note (r, "the sequence length is not in the file: add train.sequence_tokens");
  if (precision_of (r) == NULL)
    imported_run_note (r, "the precision is not in the file: add train.precision");
}

static gint64
sharding_of (const ImportedRun *r)
{
  if (says (r, K_SHARDING, "optim_grads_params"))
    return 3;
  if (says (r, K_SHARDING, "optim_grads"))
    return 2;
  if (on (r, K_FSDP) && !on (r, K_SHARDING))
    return 3;
  return number (r, K_ZERO, on (r, K_DISTOPT) || says (r, K_SHARDING, "optim") ? 1 : 0);
}

/* Chunks a stage: given, or from the layers of one. */
static gboolean
chunks_of (const ImportedRun *r, gint64 *vpp, GError **error)
{
  gint64 per = number (r, K_VPP_LAYERS, 0), pp = MAX (number (r, K_PP, 1), 1);
  gint64 layers = number (r, K_LAYERS, 0);
  *vpp = number (r, K_VPP, 0);
  if (*vpp > 0 || per <= 0 || layers <= 0)
    return TRUE;
  if (layers % (pp * per) != 0)
    return import_run_fail (r, r->line[K_VPP_LAYERS], "num-layers-per-virtual-pipeline-stage",
                            error,
                            "%" G_GINT64_FORMAT " layers are not divisible by %" G_GINT64_FORMAT
                            " stages of chunks of %" G_GINT64_FORMAT,
                            layers, pp, per);
  *vpp = layers / pp / per;
  return TRUE;
}

static gboolean
write_parallel (ImportedRun *r, JsonWriter *w, GError **error)
{
  gint64 vpp;
  if (!chunks_of (r, &vpp, error))
    return FALSE;
  jw_begin_object (w, "parallel");
  put (w, "tp", r, K_TP);
  put (w, "cp", r, K_CP);
  put (w, "pp", r, K_PP);
  if (vpp > 0 && !on (r, K_LAYOUT))
    jw_int (w, "vpp", vpp);
  put (w, "ep", r, K_EP);
  put (w, "etp", r, K_ETP);
  if (on (r, K_LAYOUT))
    jw_string (w, "layout", r->value[K_LAYOUT]);
  /* Megatron turns it off where there is nothing to share. */
  jw_bool (w, "sequence_parallel", on (r, K_SP) && number (r, K_TP, 1) > 1);
  jw_int (w, "zero_stage", sharding_of (r));
  if (on (r, K_FSDP))
    jw_bool (w, "fsdp", TRUE);
  if (says (r, K_RESHARD, "always") || says (r, K_RESHARD, "never"))
    jw_bool (w, "reshard_after_forward", says (r, K_RESHARD, "always"));
  jw_end_object (w);
  if (number (r, K_REPLICAS, 1) > 1)
    imported_run_note (r,
                       "data_parallel_replicate_degree %s: set parallel.shard_size to the GPUs "
                       "of one replica",
                       r->value[K_REPLICAS]);
  if (on (r, K_SCHEDULE) && number (r, K_PP, 1) > 1)
    imported_run_note (r, "schedule %s: set parallel.schedule (clustersim list schedules)",
                       r->value[K_SCHEDULE]);
  return TRUE;
}

static void
write_cluster (ImportedRun *r, JsonWriter *w)
{
  if (!on (r, K_NODES) && !on (r, K_GPUS) && !on (r, K_GPUS_PER_NODE)) {
    imported_run_note (r, "the cluster is not in the file: add \"cluster\"");
    return;
  }
  jw_begin_object (w, "cluster");
  put (w, "gpus_per_node", r, K_GPUS_PER_NODE);
  put (w, "nodes", r, K_NODES);
  put (w, "gpus", r, K_GPUS);
  jw_end_object (w);
  imported_run_note (r, "the GPU and its network are not in the file: add cluster.gpu and "
                        "cluster.fabric");
}

gboolean
imported_run_write (ImportedRun *r, JsonWriter *w, GError **error)
{
  write_cluster (r, w);
  if (!write_shape (r, w, error))
    return FALSE;
  if (r->software != NULL)
    jw_string (w, "software", r->software);
  write_train (r, w);
  return write_parallel (r, w, error);
}
