/* model: the architecture of a network, and its exact arithmetic.
 *
 * Counts are exact integers: parameters equal those of the published implementation to the unit.
 * Decoder transformers of the GPT and Llama kinds, with MoE, MLA and MTP fields for those that have
 * them; networks of other kinds are lists of operators (graph.h). Padding of the vocabulary is the
 * framework's matter and is not in here (see software.h).
 */
#ifndef CLUSTERSIM_MODEL_H
#define CLUSTERSIM_MODEL_H

#include "graph.h"
#include "types.h"

typedef enum { NORM_LAYERNORM, NORM_RMSNORM } NormKind;
typedef enum { ACT_GELU, ACT_SILU, ACT_RELU, ACT_RELU2 } ActKind;
typedef enum { POS_LEARNED, POS_ROTARY, POS_ALIBI, POS_NONE } PosKind;
/* Names in JSON, in the order of the enumerations, NULL-terminated. */
extern const char *const norm_names[], *const act_names[], *const pos_names[];

typedef struct {
  char *name; /* owned */
  gint64 num_layers, hidden, ffn_hidden;
  gint64 heads, kv_heads, head_dim; /* head_dim need not be hidden/heads */
  gint64 vocab;                     /* as published, not padded */
  gint64 max_positions;             /* rows of the learned position table; 0 without one */
  NormKind norm;
  ActKind act;
  PosKind pos;
  gboolean gated_mlp;       /* gate and up projections (SwiGLU, GeGLU) */
  gboolean tied_embeddings; /* input table = output matrix */
  gboolean qkv_bias, attn_out_bias, mlp_bias, norm_bias, head_bias;
  gboolean embedding_norm; /* BLOOM: a norm after the embedding */
  gboolean final_norm;     /* norm before the head */
  gboolean qk_norm;        /* norm over head_dim of q and of k (Qwen3) */
  gboolean qk_norm_wide;   /* … over all heads at once (OLMo 2, MiniMax M2); needs qk_norm */
  gboolean parallel_block; /* attention and MLP read the same input (GPT-J, NeoX, Falcon) */
  gint64 norms_per_layer;  /* 2 as a rule; 1 in parallel blocks, 4 in sandwich norms (Gemma 2) */
  gint64 embed_dim; /* width of the token table where it is not hidden (OPT 350M); 0: hidden */
  gboolean attn_gate, attn_sinks; /* extra attention parameters (gpt-oss sinks: one per head) */
  gint64 sliding_window;          /* 0: none */
  gint64 sliding_period;          /* every k-th layer is full attention; 0: all alike */
  gboolean sliding_chunks; /* the window is a fixed chunk of the sequence, not a band (Llama 4) */
  /* gated delta rule in place of attention; linear_period 0: none. Every k-th layer is attention.
   */
  gint64 linear_period, linear_key_heads, linear_value_heads, linear_key_dim, linear_value_dim;
  gint64 linear_conv; /* width of its short convolution */
  /* mixture of experts; num_experts 0: dense */
  gint64 num_experts, experts_per_token, moe_ffn_hidden, shared_experts, shared_ffn_hidden;
  gint64 dense_first_layers; /* so many first layers are dense */
  gint64 moe_every;          /* every k-th layer is MoE (1: all after the dense ones) */
  gint64 router_groups,
      router_topk_groups; /* a token's experts lie in so many of these groups; 0 */
  gboolean router_bias, shared_gate, expert_bias;
  /* multi-head latent attention; kv_lora_rank 0: none */
  gint64 q_lora_rank, kv_lora_rank, qk_nope_dim, qk_rope_dim, v_head_dim;
  gint64 index_heads, index_head_dim, index_topk; /* indexer of sparse attention (DeepSeek V3.2) */
  gint64 mtp_layers; /* multi-token-prediction modules trained beside the model */
  gboolean causal;
  /* Operators in place of the layers above, or NULL. num_layers and hidden are then those of the
   * graph; what else a decoder has is 1 or nothing. One reference is owned. */
  ModelGraph *graph;
} ModelSpec;

void model_init (ModelSpec *m);  /* defaults: causal, final norm, 2 norms, rotary, untied */
void model_clear (ModelSpec *m); /* frees what it owns */
void model_copy (ModelSpec *dst, const ModelSpec *src);

/* Cross-field checks (heads divisible by kv_heads, positive sizes …). Error domain MODEL_ERROR. */
#define MODEL_ERROR model_error_quark ()
GQuark model_error_quark (void);
gboolean model_check (const ModelSpec *m, GError **error);

/* Exact parameter counts. layer index i in 0 … num_layers-1. */
gboolean model_layer_is_moe (const ModelSpec *m, gint64 i);
gboolean model_layer_is_linear (const ModelSpec *m, gint64 i); /* delta rule, not attention */
gint64 model_layer_window (const ModelSpec *m, gint64 i);      /* 0: full attention */
gint64 model_params_attention (const ModelSpec *m); /* projections, biases, qk norms, sinks */
gint64 model_params_attention_layer (const ModelSpec *m, gint64 i); /* … or the delta rule's */
gint64 model_params_mlp (const ModelSpec *m,
                         gint64 i); /* dense MLP or all experts + router + shared */
gint64 model_params_mlp_active (const ModelSpec *m, gint64 i);
gint64 model_params_experts (const ModelSpec *m,
                             gint64 i);         /* routed experts only: what ep divides */
gint64 model_params_norms (const ModelSpec *m); /* norms of one layer */
gint64 model_params_layer (const ModelSpec *m, gint64 i);
gint64 model_params_embedding (const ModelSpec *m); /* token table + positions + embedding norm */
gint64 model_params_head (const ModelSpec *m);      /* final norm + head (0 for a tied matrix) */
gint64 model_params_total (const ModelSpec *m);
gint64 model_params_active (const ModelSpec *m); /* per token: top-k experts only */
gint64 model_params_mtp (const ModelSpec *m); /* all MTP modules; in no other count, as published */

/* What one rank holds. vocab is the padded vocabulary; tp, ep, etp >= 1. Column- and row-parallel
 * matrices are divided by tp (keys and values by at most kv_heads), norms, routers, biases after a
 * row- parallel matrix and the down-projections of latent attention are on every rank, as Megatron
 * does. */
typedef struct {
  gint64 dense;   /* reduced over dp*cp */
  gint64 experts; /* routed experts: reduced over dp*cp*tp / (ep*etp) */
} RankParams;
RankParams model_rank_layer (const ModelSpec *m, gint64 i, gint64 tp, gint64 ep, gint64 etp);
gint64 model_rank_embedding (const ModelSpec *m, gint64 vocab, gint64 tp);
gint64 model_rank_head (const ModelSpec *m, gint64 vocab, gint64 tp); /* tied: without the table */
RankParams model_rank_mtp (const ModelSpec *m, gint64 tp, gint64 ep, gint64 etp);

/* FLOPs of the model for one sequence of s tokens, forward only, multiply-add = 2; backward is
 * twice. full counts s*s attention, causal half of it (s*(s+1)/2 rounded as s*s/2, the field's
 * habit). Recomputation is not in here (that is hardware FLOPs). Includes the head and MTP modules,
 * not the table look-up, and not routers and norms, which the counters of the field leave out too.
 * A window w makes s*w of s*s, and w*s - w*w/2 of its causal half. Equals 6 N + 12 L h s per token
 * for a Llama (forward and backward), the convention of PaLM's appendix B (arXiv 2204.02311). */
double model_flops_forward (const ModelSpec *m, gint64 seq, gboolean causal_half);
/* Of that: scores and values of attention, which selective recomputation does again, and the head,
 * which full recomputation does not. */
double model_flops_core (const ModelSpec *m, gint64 seq, gboolean causal_half);
double model_flops_head (const ModelSpec *m, gint64 seq);

#endif
