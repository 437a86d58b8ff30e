/* One row per model_type: what the published implementation does where its config is silent. */
#include "import_hf_priv.h"

#include <string.h>

/* Both the row's act and a key that names it; activations by the names of the transformers library.
 */
static void
read_act (Hf *h, ModelSpec *m)
{
  static const struct {
    const char *name;
    ActKind act;
  } acts[] = {{"gelu", ACT_GELU},       {"gelu_new", ACT_GELU},
              {"gelu_fast", ACT_GELU},  {"gelu_pytorch_tanh", ACT_GELU},
              {"quick_gelu", ACT_GELU}, {"gelu_python", ACT_GELU},
              {"silu", ACT_SILU},       {"swish", ACT_SILU},
              {"relu", ACT_RELU},       {"relu2", ACT_RELU2}};
  const char *name = NULL;

  if (!hf_string (h, &name, "hidden_activation", "hidden_act", "activation_function", NULL))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (acts); i++)
    if (strcmp (acts[i].name, name) == 0) {
      m->act = acts[i].act;
      return;
    }
  hf_fail (h, NULL, "unknown activation \"%s\" (gelu …, silu, relu, relu2)", name);
}

static void
read_sizes (Hf *h, const HfFamily *f, ModelSpec *m)
{
  hf_need (h, &m->num_layers, "num_hidden_layers", "n_layer", "n_layers", "num_layers", NULL);
  hf_need (h, &m->hidden, "hidden_size", "n_embd", "d_model", NULL);
  hf_int (h, &m->heads, "num_attention_heads", "n_head", "n_heads", NULL);
  if (m->heads == 0)
    hf_need (h, &m->heads, "num_attention_heads", "n_head", "n_heads", NULL);
  m->kv_heads = m->heads;
  hf_int (h, &m->kv_heads, "num_key_value_heads", NULL);
  m->ffn_hidden = 4 * m->hidden;
  hf_int (h, &m->ffn_hidden, "intermediate_size", "n_inner", "ffn_dim", NULL);
  if (m->vocab == 0)
    hf_need (h, &m->vocab, "vocab_size", "padded_vocab_size", NULL);
  else
    hf_int (h, &m->vocab, "vocab_size", NULL);
  if (h->error != NULL)
    return;
  m->head_dim = f->head_dim > 0 ? f->head_dim : m->hidden / m->heads;
  if (!hf_int (h, &m->head_dim, "head_dim", NULL) && f->head_dim == 0 && m->hidden % m->heads != 0)
    hf_fail (h, NULL,
             "hidden_size is not a multiple of the heads (%" G_GINT64_FORMAT " by %" G_GINT64_FORMAT
             ")",
             m->hidden, m->heads);
}

static void
read_biases (Hf *h, const HfFamily *f, ModelSpec *m)
{
  gboolean attn = FALSE;

  m->qkv_bias = (f->bias & HF_QKV_BIAS) != 0;
  m->attn_out_bias = (f->bias & HF_OUT_BIAS) != 0;
  m->mlp_bias = (f->bias & HF_MLP_BIAS) != 0;
  m->head_bias = (f->bias & HF_HEAD_BIAS) != 0;
  if (hf_bool (h, &attn, "attention_bias", NULL))
    m->qkv_bias = m->attn_out_bias = attn;
  hf_bool (h, &m->mlp_bias, "mlp_bias", NULL);
}

gboolean
hf_family_read (Hf *h, const HfFamily *f, ModelSpec *m)
{
  m->norm = f->norm;
  m->act = f->act;
  m->pos = f->pos;
  m->gated_mlp = f->gated;
  m->tied_embeddings = f->tied;
  m->norm_bias = f->norm_bias;
  m->norms_per_layer = f->norms;
  m->parallel_block = f->parallel;
  if (strcmp (f->type, "gemma3_text") == 0) { /* its class has defaults for all sizes */
    m->vocab = 262208;
    m->heads = 8;
  }
  read_sizes (h, f, m);
  if (h->error != NULL)
    return FALSE;
  read_act (h, m);
  read_biases (h, f, m);
  hf_bool (h, &m->tied_embeddings, "tie_word_embeddings", NULL);
  if (m->pos == POS_LEARNED)
    hf_need (h, &m->max_positions, "max_position_embeddings", "n_positions", "n_ctx", NULL);
  else
    hf_mark (h, "max_position_embeddings");
  if (f->extra != NULL && h->error == NULL)
    f->extra (h, m);
  return h->error == NULL;
}

/* layer_types, where it is there, must be a pattern "every k-th is full"; any other is left unread.
 */
static gboolean
period_of (const JsonRef *types, const char *full, gint64 *period)
{
  const int n = json_len (types);
  int first = 0;

  while (first < n) {
    const JsonRef item = json_item (types, first);
    if (!cJSON_IsString (item.node))
      return FALSE;
    if (strcmp (item.node->valuestring, full) == 0)
      break;
    first++;
  }
  for (int i = 0; i < n; i++) {
    const JsonRef item = json_item (types, i);
    const gboolean is_full =
        cJSON_IsString (item.node) && strcmp (item.node->valuestring, full) == 0;
    if (is_full != ((i + 1) % (first + 1) == 0))
      return FALSE;
  }
  *period = first == n ? 0 : first + 1;
  return TRUE;
}

void
hf_sliding (Hf *h, ModelSpec *m, gint64 period)
{
  JsonRef types;

  hf_int (h, &m->sliding_window, "sliding_window", NULL);
  m->sliding_period = period;
  if (json_has (h->obj, "layer_types") && json_get_any (h->obj, "layer_types", &types, NULL) &&
      json_is_array (&types) && period_of (&types, "full_attention", &m->sliding_period))
    hf_mark (h, "layer_types");
  if (m->sliding_period == 1)
    m->sliding_window = m->sliding_period = 0;
}

static void
extra_gpt_bigcode (Hf *h, ModelSpec *m)
{
  gboolean one = TRUE;

  hf_bool (h, &one, "multi_query", NULL);
  if (one)
    m->kv_heads = 1;
}

static void
extra_neox (Hf *h, ModelSpec *m)
{
  hf_bool (h, &m->parallel_block, "use_parallel_residual", NULL);
}

static void
extra_opt (Hf *h, ModelSpec *m)
{
  gboolean before = TRUE, removed = FALSE, bias = TRUE;
  gint64 width = m->hidden;

  m->max_positions += 2; /* its table has two rows for the padding offset */
  hf_bool (h, &before, "do_layer_norm_before", NULL);
  hf_bool (h, &removed, "_remove_final_layer_norm", NULL);
  hf_bool (h, &bias, "enable_bias", NULL);
  m->final_norm = before && !removed;
  m->qkv_bias = m->attn_out_bias = m->mlp_bias = bias;
  hf_int (h, &width, "word_embed_proj_dim", NULL);
  m->embed_dim = width == m->hidden ? 0 : width;
}

static void
extra_bloom (Hf *h, ModelSpec *m)
{
  (void)h;
  m->embedding_norm = TRUE;
}

static void
extra_mpt (Hf *h, ModelSpec *m)
{
  gboolean no_bias = FALSE, alibi = FALSE, learned = TRUE, qk_norm = FALSE;
  gint64 ratio = 4, positions = 0;
  JsonRef attn, ffn;

  hf_bool (h, &no_bias, "no_bias", NULL);
  if (hf_int (h, &ratio, "expansion_ratio", NULL))
    m->ffn_hidden = ratio * m->hidden;
  hf_bool (h, &learned, "learned_pos_emb", NULL);
  hf_int (h, &positions, "max_seq_len", NULL);
  if (hf_object (h, "attn_config", &attn)) {
    const char *type = "multihead_attention";

    json_opt_bool (&attn, "alibi", &alibi, &h->error);
    if (h->error == NULL)
      json_opt_bool (&attn, "qk_ln", &qk_norm, &h->error);
    if (h->error == NULL)
      json_opt_string (&attn, "attn_type", &type, &h->error);
    if (strcmp (type, "multiquery_attention") == 0)
      m->kv_heads = 1;
    if (h->error == NULL)
      json_opt_int (&attn, "kv_n_heads", 1, HF_INT_MAX, &m->kv_heads, &h->error);
  }
  if (hf_object (h, "ffn_config", &ffn) && h->error == NULL && json_has (&ffn, "ffn_hidden_size"))
    json_get_int (&ffn, "ffn_hidden_size", 1, HF_INT_MAX, &m->ffn_hidden, &h->error);
  m->pos = alibi ? POS_ALIBI : learned ? POS_LEARNED : POS_ROTARY;
  m->max_positions = m->pos == POS_LEARNED ? positions : 0;
  m->qkv_bias = m->attn_out_bias = m->mlp_bias = m->norm_bias = !no_bias;
  m->qk_norm = m->qk_norm_wide = qk_norm;
}

/* Old files (RefinedWeb): n_head_kv or multi_query; new ones new_decoder_architecture, num_kv_heads
 * that count only there. The new block has a norm of its own for the MLP. */
static void
extra_falcon (Hf *h, ModelSpec *m)
{
  gboolean multi_query = TRUE, decoder = FALSE, bias = FALSE, alibi = FALSE;
  gint64 kv = m->heads, norms = 2;
  const gboolean legacy = hf_int (h, &kv, "n_head_kv", NULL);

  hf_bool (h, &multi_query, "multi_query", NULL);
  hf_bool (h, &decoder, "new_decoder_architecture", NULL);
  if (!legacy)
    hf_int (h, &kv, "num_kv_heads", NULL);
  hf_bool (h, &m->parallel_block, "parallel_attn", NULL);
  hf_bool (h, &bias, "bias", NULL);
  hf_bool (h, &alibi, "alibi", NULL);
  hf_int (h, &norms, "num_ln_in_parallel_attn", NULL);
  hf_int (h, &m->ffn_hidden, "ffn_hidden_size", NULL);
  decoder = decoder || legacy;
  if (decoder)
    m->parallel_block = TRUE;
  m->kv_heads = decoder ? kv : multi_query ? 1 : m->heads;
  m->norms_per_layer = decoder ? norms : m->parallel_block ? 1 : 2;
  m->pos = alibi ? POS_ALIBI : POS_ROTARY;
  m->qkv_bias = m->attn_out_bias = m->mlp_bias = bias;
}

static void
extra_mistral (Hf *h, ModelSpec *m)
{
  hf_sliding (h, m, 0);
}

/* Qwen names a window that is off unless use_sliding_window says otherwise. */
static void
extra_qwen2 (Hf *h, ModelSpec *m)
{
  gboolean on = FALSE;

  hf_bool (h, &on, "use_sliding_window", NULL);
  hf_mark (h, "sliding_window");
  hf_mark (h, "max_window_layers");
  if (on)
    hf_sliding (h, m, 0);
}

static void
extra_qwen3 (Hf *h, ModelSpec *m)
{
  m->qk_norm = TRUE;
  extra_qwen2 (h, m);
}

/* Qwen 1 counts gate and up together, and its biases are those of q, k and v. */
static void
extra_qwen (Hf *h, ModelSpec *m)
{
  hf_int (h, &m->head_dim, "kv_channels", NULL);
  hf_mark (h, "no_bias");
  m->ffn_hidden /= 2;
}

static void
extra_gemma2 (Hf *h, ModelSpec *m)
{
  m->sliding_window = 4096; /* default of its class */
  hf_sliding (h, m, 2);
}

static void
extra_gemma3 (Hf *h, ModelSpec *m)
{
  gint64 period = 6;

  if (m->kv_heads == m->heads && !json_has (h->obj, "num_key_value_heads"))
    m->kv_heads = 4; /* default of its class */
  m->qk_norm = TRUE;
  m->sliding_window = 4096;
  hf_int (h, &period, "sliding_window_pattern", "_sliding_window_pattern", NULL);
  hf_sliding (h, m, period);
}

static void
extra_phi (Hf *h, ModelSpec *m)
{
  hf_int (h, &m->kv_heads, "n_head_kv", NULL);
  hf_bool (h, &m->qk_norm, "qk_layernorm", NULL);
}

static void
extra_starcoder2 (Hf *h, ModelSpec *m)
{
  gboolean bias = TRUE;

  hf_bool (h, &bias, "use_bias", NULL);
  m->qkv_bias = m->attn_out_bias = m->mlp_bias = bias;
  hf_sliding (h, m, 0);
}

static void
extra_stablelm (Hf *h, ModelSpec *m)
{
  hf_bool (h, &m->qkv_bias, "use_qkv_bias", NULL);
  hf_bool (h, &m->parallel_block, "use_parallel_residual", NULL);
  if (m->parallel_block)
    m->norms_per_layer = 1;
}

static void
extra_cohere (Hf *h, ModelSpec *m)
{
  hf_bool (h, &m->qk_norm, "use_qk_norm", NULL);
  m->qk_norm_wide = m->qk_norm; /* a weight for each head */
}

static void
extra_olmo2 (Hf *h, ModelSpec *m)
{
  (void)h;
  m->qk_norm = m->qk_norm_wide = TRUE;
}

static void
extra_internlm (Hf *h, ModelSpec *m)
{
  gboolean bias = m->qkv_bias;

  hf_bool (h, &bias, "bias", NULL);
  m->qkv_bias = m->attn_out_bias = bias;
}

static void
extra_chatglm (Hf *h, ModelSpec *m)
{
  gboolean multi_query = FALSE, rms = TRUE, bias = FALSE, post = TRUE;

  hf_int (h, &m->ffn_hidden, "ffn_hidden_size", NULL);
  hf_int (h, &m->head_dim, "kv_channels", NULL);
  hf_bool (h, &multi_query, "multi_query_attention", NULL);
  if (multi_query)
    hf_need (h, &m->kv_heads, "multi_query_group_num", NULL);
  hf_bool (h, &m->qkv_bias, "add_qkv_bias", NULL);
  if (hf_bool (h, &bias, "add_bias_linear", NULL)) {
    m->attn_out_bias = m->mlp_bias = bias;
    m->qkv_bias = m->qkv_bias || bias;
  }
  hf_bool (h, &rms, "rmsnorm", NULL);
  m->norm = rms ? NORM_RMSNORM : NORM_LAYERNORM;
  m->norm_bias = !rms;
  hf_bool (h, &post, "post_layer_norm", NULL);
  m->final_norm = post;
}

#define LN  NORM_LAYERNORM
#define RMS NORM_RMSNORM

/* Sources: the configuration and model classes of the transformers library (v4.57), and for the
 * types it lacks the code beside the published weights. clang-format off keeps the table a table.
 */
/* clang-format off */
static const HfFamily families[] = {
  /* type         norm act       position      gated  tied   n.bias bias           norms parallel head_dim extra */
  { "gpt2",        LN, ACT_GELU, POS_LEARNED, FALSE, TRUE,  TRUE,  HF_ALL_BIAS,    2, FALSE, 0, NULL },
  { "gpt_bigcode", LN, ACT_GELU, POS_LEARNED, FALSE, TRUE,  TRUE,  HF_ALL_BIAS,    2, FALSE, 0, extra_gpt_bigcode },
  { "gptj",        LN, ACT_GELU, POS_ROTARY,  FALSE, FALSE, TRUE,  HF_MLP_BIAS | HF_HEAD_BIAS, 1, TRUE, 0, NULL },
  { "codegen",     LN, ACT_GELU, POS_ROTARY,  FALSE, FALSE, TRUE,  HF_MLP_BIAS | HF_HEAD_BIAS, 1, TRUE, 0, NULL },
  { "gpt_neox",    LN, ACT_GELU, POS_ROTARY,  FALSE, FALSE, TRUE,  HF_ALL_BIAS,    2, TRUE,  0, extra_neox },
  { "opt",         LN, ACT_RELU, POS_LEARNED, FALSE, TRUE,  TRUE,  HF_ALL_BIAS,    2, FALSE, 0, extra_opt },
  { "bloom",       LN, ACT_GELU, POS_ALIBI,   FALSE, TRUE,  TRUE,  HF_ALL_BIAS,    2, FALSE, 0, extra_bloom },
  { "mpt",         LN, ACT_GELU, POS_ALIBI,   FALSE, TRUE,  TRUE,  HF_ALL_BIAS,    2, FALSE, 0, extra_mpt },
  { "falcon",      LN, ACT_GELU, POS_ROTARY,  FALSE, TRUE,  TRUE,  0,              1, TRUE,  0, extra_falcon },
  { "RefinedWeb",  LN, ACT_GELU, POS_ROTARY,  FALSE, TRUE,  TRUE,  0,              1, TRUE,  0, extra_falcon },
  { "RefinedWebModel", LN, ACT_GELU, POS_ROTARY, FALSE, TRUE, TRUE, 0,             1, TRUE,  0, extra_falcon },
  { "phi",         LN, ACT_GELU, POS_ROTARY,  FALSE, FALSE, TRUE,  HF_ALL_BIAS | HF_HEAD_BIAS, 1, TRUE, 0, extra_phi },
  { "phi-msft",    LN, ACT_GELU, POS_ROTARY,  FALSE, FALSE, TRUE,  HF_ALL_BIAS | HF_HEAD_BIAS, 1, TRUE, 0, extra_phi },
  { "mixformer-sequential", LN, ACT_GELU, POS_ROTARY, FALSE, FALSE, TRUE, HF_ALL_BIAS | HF_HEAD_BIAS, 1, TRUE, 0, extra_phi },
  { "phi3",        RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, extra_mistral },
  { "starcoder2",  LN, ACT_GELU, POS_ROTARY,  FALSE, TRUE,  TRUE,  HF_ALL_BIAS,    2, FALSE, 0, extra_starcoder2 },
  { "stablelm",    LN, ACT_SILU, POS_ROTARY,  TRUE,  FALSE, TRUE,  0,              2, FALSE, 0, extra_stablelm },
  { "cohere",      LN, ACT_SILU, POS_ROTARY,  TRUE,  TRUE,  FALSE, 0,              1, TRUE,  0, extra_cohere },
  { "nemotron",    LN, ACT_RELU2, POS_ROTARY, FALSE, FALSE, TRUE,  0,              2, FALSE, 0, NULL },
  { "llama",       RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, NULL },
  { "granite",     RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, NULL },
  { "internlm",    RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, HF_QKV_BIAS | HF_OUT_BIAS, 2, FALSE, 0, extra_internlm },
  { "internlm2",   RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, extra_internlm },
  { "baichuan",    RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, NULL },
  { "mistral",     RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, extra_mistral },
  { "qwen",        RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, HF_QKV_BIAS,    2, FALSE, 0, extra_qwen },
  { "qwen2",       RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, HF_QKV_BIAS,    2, FALSE, 0, extra_qwen2 },
  { "qwen3",       RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 128, extra_qwen3 },
  { "olmo2",       RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, extra_olmo2 },
  { "gemma",       RMS, ACT_GELU, POS_ROTARY, TRUE,  TRUE,  FALSE, 0,              2, FALSE, 256, NULL },
  { "gemma2",      RMS, ACT_GELU, POS_ROTARY, TRUE,  TRUE,  FALSE, 0,              4, FALSE, 256, extra_gemma2 },
  { "gemma3_text", RMS, ACT_GELU, POS_ROTARY, TRUE,  TRUE,  FALSE, 0,              4, FALSE, 256, extra_gemma3 },
  { "glm",         RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, HF_QKV_BIAS,    2, FALSE, 128, NULL },
  { "glm4",        RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, HF_QKV_BIAS,    4, FALSE, 128, NULL },
  { "chatglm",     RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, HF_QKV_BIAS,    2, FALSE, 0, extra_chatglm },
  { "mixtral",     RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, hf_moe_mixtral },
  { "qwen2_moe",   RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, HF_QKV_BIAS,    2, FALSE, 0, hf_moe_qwen2 },
  { "qwen3_moe",   RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, hf_moe_qwen3 },
  { "qwen3_next",  RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 256, hf_moe_qwen3_next },
  { "deepseek",    RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, hf_moe_deepseek },
  { "deepseek_v2", RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, hf_moe_deepseek_mla },
  { "deepseek_v3", RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, hf_moe_deepseek_mla },
  { "deepseek_v32", RMS, ACT_SILU, POS_ROTARY, TRUE, FALSE, FALSE, 0,              2, FALSE, 0, hf_moe_deepseek_mla },
  { "kimi_k2",     RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, hf_moe_deepseek_mla },
  { "glm4_moe",    RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, hf_moe_glm4 },
  { "glm_moe_dsa", RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, hf_moe_deepseek_mla },
  { "minimax_m2",  RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, hf_moe_minimax },
  { "gpt_oss",     RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, HF_QKV_BIAS | HF_OUT_BIAS, 2, FALSE, 64, hf_moe_gpt_oss },
  { "dbrx",        LN, ACT_SILU, POS_ROTARY,  TRUE,  FALSE, FALSE, 0,              2, FALSE, 0, hf_moe_dbrx },
  { "grok-1",      RMS, ACT_GELU, POS_ROTARY, TRUE,  TRUE,  FALSE, 0,              4, FALSE, 0, hf_moe_grok },
  { "llama4_text", RMS, ACT_SILU, POS_ROTARY, TRUE,  FALSE, FALSE, 0,              2, FALSE, 128, hf_moe_llama4 },
};
/* clang-format on */

/* Types that mean a row under another name: the file around a text_config that lacks its own. */
static const struct {
  const char *alias, *type;
} aliases[] = {{"llama4", "llama4_text"},
               {"gemma3", "gemma3_text"},
               {"grok", "grok-1"},
               {"deepseek_v3_2", "deepseek_v32"},
               {"internlm3", "internlm2"}};

const HfFamily *
hf_family_find (const char *type)
{
  for (guint i = 0; i < G_N_ELEMENTS (aliases); i++)
    if (strcmp (aliases[i].alias, type) == 0)
      type = aliases[i].type;
  for (guint i = 0; i < G_N_ELEMENTS (families); i++)
    if (strcmp (families[i].type, type) == 0)
      return &families[i];
  return NULL;
}

const char **
hf_family_names (void)
{
  const char **names = g_new0 (const char *, G_N_ELEMENTS (families) + G_N_ELEMENTS (aliases) + 1);
  guint n = 0;

  for (guint i = 0; i < G_N_ELEMENTS (families); i++)
    names[n++] = families[i].type;
  for (guint i = 0; i < G_N_ELEMENTS (aliases); i++)
    names[n++] = aliases[i].alias;
  return names;
}
