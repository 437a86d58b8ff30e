/* memory: the closed forms of Korthikanti et al. 2022 and of ZeRO, and published measurements. */
#include "gpu_profile.h"
#include "memory.h"

#include <string.h>

static void
fill_gpt (Spec *s, gint64 layers, gint64 hidden, gint64 heads, gint64 vocab, gint64 seq)
{
  ModelSpec *m = &s->model;

  memset (s, 0, sizeof *s);
  model_init (m);
  m->num_layers = layers;
  m->hidden = hidden;
  m->ffn_hidden = 4 * hidden;
  m->heads = m->kv_heads = heads;
  m->head_dim = hidden / heads;
  m->vocab = vocab;
  m->pos = POS_LEARNED;
  m->max_positions = seq;
  m->tied_embeddings = m->qkv_bias = m->attn_out_bias = m->mlp_bias = m->norm_bias = TRUE;
  s->software.attention = ATTN_UNFUSED;
  s->software.dropout = TRUE;
  s->software.param_bytes = 2; /* bf16, fp32 main gradient, fp32 master and moments */
  s->software.grad_bytes = 4;
  s->software.optimizer_state_bytes = 12;
  s->software.logits_bytes = 6; /* 16-bit copy and fp32 */
  s->software.vocab_pad = 128;
  s->train.sequence_tokens = seq;
  s->train.micro_batch_sequences = 1;
  s->train.precision = DT_BF16;
  s->parallel.tp = s->parallel.cp = s->parallel.pp = s->parallel.vpp = s->parallel.ep =
      s->parallel.dp = 1;
}

static void
set_layout (Spec *s, gint64 tp, gint64 pp, gint64 dp, gint64 mbs)
{
  s->parallel.tp = tp;
  s->parallel.pp = pp;
  s->parallel.dp = dp;
  s->train.micro_batch_sequences = mbs;
}

/* Layers spread evenly over pp * vpp stages of the named schedule. */
static MemReport
estimate (const Spec *s, const char *schedule, guint microbatches)
{
  const guint pp = (guint)s->parallel.pp, vpp = (guint)s->parallel.vpp;
  g_autoptr (GError) error = NULL;
  g_autoptr (SchedTable) t = sched_generate (schedule, pp, vpp, microbatches, &error);
  g_assert_no_error (error);
  g_autofree gint64 *layers = g_new (gint64, t->stages);
  MemReport r = {0};

  for (guint v = 0; v < t->stages; v++)
    layers[v] = s->model.num_layers / t->stages;
  g_assert_true (memory_estimate (s, t, layers, &r, &error));
  g_assert_no_error (error);
  return r;
}

static const gint64 korthikanti[][4] = {/* layers, hidden, heads, mbs: table 3 of the paper */
                                        {48, 6144, 64, 4},
                                        {96, 12288, 96, 1},
                                        {105, 20480, 128, 1},
                                        {128, 25600, 160, 1}};

/* arXiv 2205.05198, table 2, bytes of one layer:
 *   tensor parallel            s b h (10 + 24/t + 5 a s/(h t))
 *   with sequence parallelism  s b h / t (34 + 5 a s/h)
 *   selective                  s b h (10 + 24/t), s b h 34/t
 *   full                       2 s b h */
static void
test_korthikanti (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (korthikanti); i++) {
    const double h = (double)korthikanti[i][1], a = (double)korthikanti[i][2],
                 b = (double)korthikanti[i][3];
    const double seq = 2048, t = 8, sbh = seq * b * h;
    Spec s;

    fill_gpt (&s, korthikanti[i][0], korthikanti[i][1], korthikanti[i][2], 51200, 2048);
    set_layout (&s, 8, 1, 1, korthikanti[i][3]);
    g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_NONE), ==,
                       sbh * 10 + sbh * 24 / t + 5 * a * seq * seq * b / t);
    g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_SELECTIVE), ==,
                       sbh * 10 + sbh * 24 / t);
    g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_FULL), ==, 2 * sbh);
    s.parallel.sequence_parallel = TRUE;
    g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_NONE), ==,
                       sbh * 34 / t + 5 * a * seq * seq * b / t);
    g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_SELECTIVE), ==, sbh * 34 / t);
    g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_FULL), ==, 2 * sbh / t);
  }
}

/* Per token and layer, 2-byte elements, no dropout, fused attention, SwiGLU:
 * 2 norms in and out 8 h, q k v o 2 (2 h_q + 2 h_kv), log-sum-exp 4 a, gate, up and product 6 f. */
static void
test_llama_layer (void)
{
  Spec s;
  fill_gpt (&s, 32, 4096, 32, 128256, 8192);
  ModelSpec *m = &s.model;
  m->kv_heads = 8;
  m->ffn_hidden = 14336;
  m->gated_mlp = TRUE;
  s.software.dropout = FALSE;
  s.software.fused_swiglu = TRUE;
  s.software.attention = ATTN_FLASH2;

  const double token = 8.0 * 4096 + 2 * (2 * 4096 + 2 * 1024) + 4 * 32 + 6 * 14336;
  g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_NONE), ==, 8192 * token);
  /* selective recomputation has only the log-sum-exp to drop */
  g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_SELECTIVE), ==,
                     8192 * (token - 4 * 32));
  /* context parallelism divides everything, sequence parallelism the rest of what tp does not */
  s.parallel.cp = 4;
  g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_NONE), ==, 2048 * token);
  s.parallel.tp = 8;
  s.parallel.sequence_parallel = TRUE;
  g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_NONE), ==, 2048 * token / 8);
  /* 16 ranks on 8 kv heads: each keeps one head of k and of v */
  s.parallel.tp = 16;
  g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_NONE), ==,
                     2048 * ((token - 4 * 1024) / 16 + 2 * 2 * 128));
  /* fp8: inputs of the four maps in one byte, and the attention output beside its quantised copy */
  s.parallel.tp = s.parallel.cp = 1;
  s.parallel.sequence_parallel = FALSE;
  s.train.precision = DT_FP8;
  g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_NONE), ==,
                     8192 * (token - 2 * 4096 + 4096 - 14336));
}

/* Experts: k tokens dispatched of each of the rank's own; latent attention: compressed streams. */
static void
test_moe_layer (void)
{
  Spec s;
  fill_gpt (&s, 4, 2048, 16, 32000, 4096);
  ModelSpec *m = &s.model;
  m->gated_mlp = TRUE;
  m->num_experts = 64;
  m->experts_per_token = 6;
  m->moe_ffn_hidden = m->shared_ffn_hidden = 1408;
  m->shared_experts = 2;
  m->kv_lora_rank = 512;
  m->qk_nope_dim = m->v_head_dim = 128;
  m->qk_rope_dim = 64;
  s.software.dropout = FALSE;
  s.software.fused_swiglu = TRUE;
  s.software.attention = ATTN_FLASH2;
  s.parallel.ep = 8;
  s.parallel.etp = 1;

  const double norms = 8 * 2048, latent = 2 * (512 + 64) + 2 * 512;
  const double core = 2 * (16 * (2 * 192 + 128) + 16 * 128) + 4 * 16;
  const double experts = 6 * (2 * 2048 + 6 * 1408 + 2 * 2048), router = 64 * 8,
               shared = 2 * 1408 * 6;
  g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_NONE), ==,
                     4096 * (norms + latent + core + experts + router + shared));
  /* ep moves tokens, it does not change how many a rank has when the routing is even */
  s.parallel.ep = 1;
  g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_NONE), ==,
                     4096 * (norms + latent + core + experts + router + shared));
}

/* P parameters on a rank: 2 P + 4 P + 12 P; 6 P + 12 P/n with the distributed optimizer; 2 P + 16
 * P/n with gradients sharded; 18 P/n with weights sharded. */
static void
test_zero (void)
{
  Spec s;
  fill_gpt (&s, 4, 1024, 16, 51200, 2048);
  set_layout (&s, 1, 1, 8, 1);
  s.parallel.cp = 2;
  const double p = (double)model_params_total (&s.model), n = 16;

  for (gint64 zero = 0; zero <= 3; zero++) {
    s.parallel.zero_stage = zero;
    MemReport r = estimate (&s, "1f1b", 4);
    const StageMemory *o = &r.stages[0];
    g_assert_cmpint (o->weights_bytes, ==, (gint64)(2 * p / (zero >= 3 ? n : 1) + 0.5));
    g_assert_cmpint (o->gradients_bytes, ==, (gint64)(4 * p / (zero >= 2 ? n : 1) + 0.5));
    g_assert_cmpint (o->optimizer_bytes, ==, (gint64)(12 * p / (zero >= 1 ? n : 1) + 0.5));
    g_assert_cmpint (o->peak_bytes, ==,
                     o->weights_bytes + o->gradients_bytes + o->optimizer_bytes +
                         o->activations_bytes + o->buffers_bytes + o->framework_bytes);
    memory_clear (&r);
  }
  s.parallel.zero_stage = 1;
  s.parallel.shard_size = 4; /* sharded inside groups of four */
  MemReport r = estimate (&s, "1f1b", 4);
  g_assert_cmpint (r.stages[0].optimizer_bytes, ==, (gint64)(3 * p));
  memory_clear (&r);
}

/* Experts are sharded over dp*cp*tp / (ep*etp) ranks only. */
static void
test_expert_shards (void)
{
  Spec s;
  fill_gpt (&s, 2, 1024, 16, 51200, 2048);
  set_layout (&s, 2, 1, 8, 1);
  s.model.num_experts = 16;
  s.model.experts_per_token = 2;
  s.model.moe_ffn_hidden = 4096;
  s.parallel.ep = 4;
  s.parallel.etp = 1;
  s.parallel.zero_stage = 1;
  g_autoptr (SchedTable) t = sched_generate ("1f1b", 1, 1, 4, NULL);
  const gint64 layers[] = {2};
  const RankParams p = memory_rank_params (&s, t, layers, 0);
  g_assert_cmpint (p.experts, ==, 2 * 4 * 2 * 1024 * 4096);
  MemReport r = estimate (&s, "1f1b", 4);
  g_assert_cmpint (r.stages[0].optimizer_bytes, ==,
                   (gint64)(12 * ((double)p.dense / 8 + (double)p.experts / 4) + 0.5));
  memory_clear (&r);
  /* two copies of the optimizer: 4 of the 8 ranks hold one of the dense part, 2 of the 4 of the
   * experts' */
  s.parallel.shard_size = 4;
  r = estimate (&s, "1f1b", 4);
  g_assert_cmpint (r.stages[0].optimizer_bytes, ==,
                   (gint64)(12 * ((double)p.dense / 4 + (double)p.experts / 2) + 0.5));
  memory_clear (&r);
}

/* 1F1B: stage i of p holds min(p - i, m) micro-batches; GPipe all m. A tied table is on both ends.
 */
static void
test_in_flight (void)
{
  Spec s;
  fill_gpt (&s, 8, 1024, 16, 51200, 2048);
  set_layout (&s, 1, 4, 1, 1);
  const double layer = model_activation_bytes_layer (&s, 0, RECOMPUTE_NONE), mask = 2048 * 1024;
  MemReport r = estimate (&s, "1f1b", 8);

  g_assert_cmpint (r.n_stages, ==, 4);
  g_assert_cmpint (r.stages[0].activations_bytes, ==, (gint64)(4 * (2 * layer + mask)));
  g_assert_cmpint (r.stages[1].activations_bytes, ==, (gint64)(3 * 2 * layer));
  g_assert_cmpint (r.stages[2].activations_bytes, ==, (gint64)(2 * 2 * layer));
  g_assert_cmpint (
      r.stages[3].activations_bytes, ==,
      (gint64)(2 * layer + 2 * 2 * mask + 6.0 * 2048 * 51200)); /* and final norm, head, logits */
  const gint64 middle = 2 * 2 * model_params_layer (&s.model, 0);
  g_assert_cmpint (r.stages[1].weights_bytes, ==, middle);
  g_assert_cmpint (r.stages[0].weights_bytes, ==, middle + 2 * (51200 + 2048) * 1024);
  g_assert_cmpint (r.stages[3].weights_bytes, ==, middle + 2 * (51200 + 2) * 1024);
  memory_clear (&r);
  r = estimate (&s, "gpipe", 8);
  g_assert_cmpint (r.stages[1].activations_bytes, ==, (gint64)(8 * 2 * layer));
  memory_clear (&r);
  s.train.recompute = RECOMPUTE_FULL; /* the input of each layer in flight, one layer recomputed */
  r = estimate (&s, "1f1b", 8);
  g_assert_cmpint (r.stages[1].activations_bytes, ==, 3 * 2 * 2 * 2048 * 1024);
  g_assert_cmpint (r.stages[1].buffers_bytes, >, (gint64)layer - 2 * 2048 * 1024);
  g_assert_cmpint (r.worst_stage, ==, 0);
  g_assert_cmpint (r.peak_bytes, ==, r.stages[0].peak_bytes);
  memory_clear (&r);
}

/* A head inside the recomputed region keeps its input in flight, and its logits once, while it
 * runs. */
static void
test_head_recompute (void)
{
  Spec s;
  fill_gpt (&s, 8, 1024, 16, 51200, 2048);
  set_layout (&s, 1, 2, 1, 1);
  s.software.head_recompute = TRUE;
  s.software.attention = ATTN_FLASH2;
  s.train.recompute = RECOMPUTE_FULL;
  MemReport r = estimate (&s, "gpipe", 8);
  g_assert_cmpint (r.stages[1].activations_bytes, ==, 8 * (4 + 1) * 2 * 2048 * 1024);
  g_assert_cmpint (r.stages[1].buffers_bytes, ==, 6 * 2048 * 51200 + 2 * 2 * 2048 * 1024);
  memory_clear (&r);
}

/* FSDP: the layer at work and the next gathered in 2 bytes, its gradient in dp_reduce_bytes. */
static void
test_fsdp_buffers (void)
{
  Spec s;
  fill_gpt (&s, 4, 1024, 16, 51200, 2048);
  set_layout (&s, 1, 1, 8, 1);
  s.parallel.zero_stage = 1;
  MemReport one = estimate (&s, "1f1b", 4);
  s.parallel.zero_stage = 3;
  s.parallel.reshard = 1;
  s.software.fsdp_prefetch = s.software.fsdp_unit_layers = 1;
  s.software.dp_reduce_bytes = 4;
  MemReport three = estimate (&s, "1f1b", 4);
  g_assert_cmpint (three.stages[0].buffers_bytes - one.stages[0].buffers_bytes, ==,
                   model_params_layer (&s.model, 0) * (2 * 2 + 4));
  /* the root unit (the table) stays gathered */
  s.software.fsdp_root_held = TRUE;
  MemReport root = estimate (&s, "1f1b", 4);
  g_assert_cmpint (root.stages[0].buffers_bytes - three.stages[0].buffers_bytes, ==,
                   2 * 51200 * 1024);
  /* without resharding all of the model is gathered, in 2 bytes; its shards are as small as ever */
  s.parallel.reshard = 0;
  MemReport kept = estimate (&s, "1f1b", 4);
  g_assert_cmpint (kept.stages[0].buffers_bytes - one.stages[0].buffers_bytes, ==,
                   model_params_layer (&s.model, 0) * 4 + 2 * model_params_total (&s.model));
  g_assert_cmpint (kept.stages[0].weights_bytes, ==, three.stages[0].weights_bytes);
  /* a shard group of 2 of the 8 ranks holds four times as much */
  s.parallel.shard_size = 2;
  MemReport hybrid = estimate (&s, "1f1b", 4);
  g_assert_cmpint (hybrid.stages[0].optimizer_bytes, ==, 4 * kept.stages[0].optimizer_bytes);
  memory_clear (&root);
  memory_clear (&kept);
  memory_clear (&hybrid);
  memory_clear (&one);
  memory_clear (&three);
}

static void
within (const char *what, double got, double want, double share)
{
  g_test_message ("%s: %.2f GB, published %.2f GB (%+.1f %%)", what, got / 1e9, want / 1e9,
                  100 * (got / want - 1));
  g_assert_cmpfloat_with_epsilon (got, want, share * want);
}

static double
allocated (const StageMemory *o)
{
  return (double)(o->peak_bytes - o->framework_bytes);
}

static double
states (const StageMemory *o)
{
  return (double)(o->weights_bytes + o->gradients_bytes + o->optimizer_bytes);
}

/* Megatron-LM's own test of a 7B model on 8 A100: TP4 DP2 (case M046): 6 P + 12 P/2,
 * measured 20.634 GB after the step and 58.188 GB at the peak (57.144 on H100). */
static void
test_megatron_7b (void)
{
  Spec s;
  fill_gpt (&s, 32, 4096, 32, 131073, 8192);
  s.model.kv_heads = 8;
  s.model.tied_embeddings = FALSE;
  s.software.attention = ATTN_CUDNN;
  s.parallel.zero_stage = 1;
  set_layout (&s, 4, 1, 2, 2);
  MemReport r = estimate (&s, "1f1b", 2);
  within ("after step", states (&r.stages[0]), 20634103808.0, 0.03);
  within ("peak", allocated (&r.stages[0]), 58188115968.0, 0.05);
  memory_clear (&r);
}

/* Megatron-LM's 12-layer tests (hidden 512, mbs 4, seq 1024, TP1, padded vocabulary 50304), last
 * pipeline rank, peak less the bytes after the step: unfused attention keeps 5 a s^2 b. */
static void
test_megatron_small (void)
{
  Spec s;
  fill_gpt (&s, 12, 512, 8, 50257, 1024);
  set_layout (&s, 1, 4, 2, 4);
  MemReport r = estimate (&s, "1f1b", 4);
  within ("tp1 pp4", (double)(r.stages[3].activations_bytes + r.stages[3].buffers_bytes),
          2685758976.0 - 719180288.0, 0.05);
  memory_clear (&r);
  s.parallel.vpp = 3;
  r = estimate (&s, "interleaved", 4);
  within ("tp1 pp4 vp1", (double)(r.stages[3].activations_bytes + r.stages[3].buffers_bytes),
          4122704384.0 - 733860352.0, 0.05);
  memory_clear (&r);
  s.parallel.vpp = 1;
  s.software.attention = ATTN_FLASH2;
  r = estimate (&s, "1f1b", 4);
  within ("tp1 pp4 fused attention",
          (double)(r.stages[3].activations_bytes + r.stages[3].buffers_bytes),
          2195171328.0 - 718931456.0, 0.05);
  memory_clear (&r);
}

/* BigScience's layouts of 181B and 187B models (cases M034 to M045): Megatron-DeepSpeed, vocabulary
 * 250,880, full recomputation, ZeRO 1, "GB peak" of a whole GPU, so with 1.5 GB of context. */
static void
test_bigscience (void)
{
  static const struct {
    gint64 layers, hidden, pp, dp, mbs;
    double gb;
  } rows[] = {{72, 14336, 12, 4, 1, 29}, {72, 14336, 12, 4, 2, 37}, {72, 14336, 12, 4, 4, 49},
              {72, 14336, 6, 8, 1, 38},  {80, 13824, 10, 4, 4, 53}, {80, 13824, 10, 4, 8, 73}};

  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    Spec s;
    fill_gpt (&s, rows[i].layers, rows[i].hidden, 64, 250880, 2048);
    set_layout (&s, 8, rows[i].pp, rows[i].dp, rows[i].mbs);
    s.train.recompute = RECOMPUTE_FULL;
    s.parallel.zero_stage = 1;
    s.software.framework_bytes = 1.5e9;
    MemReport r = estimate (&s, "1f1b", (guint)(2048 / rows[i].dp / rows[i].mbs));
    g_autofree char *what = g_strdup_printf ("%" G_GINT64_FORMAT " layers, pp %" G_GINT64_FORMAT
                                             ", mbs %" G_GINT64_FORMAT,
                                             rows[i].layers, rows[i].pp, rows[i].mbs);
    within (what, (double)r.peak_bytes, rows[i].gb * 1e9, 0.15);
    memory_clear (&r);
  }
}

/* Workspaces: two of cuBLAS, one of Transformer Engine and four more for grouped GEMMs, and one
 * tensor of scores 2 a s^2 b / t. After a step: 18 P and those; the peak and the reserved bytes
 * nest. */
static void
test_workspaces (void)
{
  Spec s;
  GpuProfile gpu = {.blas_workspace_bytes = 8e6, .te_workspace_bytes = 4e6, .memory_bytes = 8e10};
  fill_gpt (&s, 4, 1024, 16, 51200, 2048);
  set_layout (&s, 2, 1, 4, 1);
  s.gpu = &gpu;
  s.software.allocated_base_bytes = 1e6;
  s.software.blas_handles = 2;
  s.software.te_workspaces = 1;
  s.software.grouped_gemm_streams = 4;
  s.software.framework_bytes = 1e9;
  s.software.fragmentation = 0.1;
  g_assert_cmpfloat (memory_workspace_bytes (&s), ==, 1e6 + 2 * 8e6 + 4e6);
  MemReport r = estimate (&s, "1f1b", 4);
  const StageMemory *o = &r.stages[0];
  g_assert_cmpint (o->after_step_bytes, ==,
                   o->weights_bytes + o->gradients_bytes + o->optimizer_bytes + 21000000);
  g_assert_cmpint (o->allocated_bytes, ==,
                   o->after_step_bytes + o->activations_bytes + o->buffers_bytes);
  g_assert_cmpint (o->reserved_bytes, ==, o->peak_bytes - 1000000000);
  const gint64 allocated = o->allocated_bytes;
  memory_clear (&r);
  s.software.reserved_share = 0.5; /* where there is room; the step needs no more for it */
  r = estimate (&s, "1f1b", 4);
  g_assert_cmpint (r.stages[0].allocated_bytes, ==, allocated);
  g_assert_cmpint (r.stages[0].reserved_bytes, ==, allocated + (allocated + 1) / 2);
  memory_clear (&r);
  s.software.blas_config_bytes = 32e6;
  s.software.attn_scores_kept = TRUE;
  s.model.num_experts = 4;
  g_assert_cmpfloat (memory_workspace_bytes (&s), ==,
                     1e6 + 2 * 32e6 + 5 * 4e6 + 2.0 * 16 / 2 * 2048 * 2048);
  s.software.attention = ATTN_FLASH2;
  g_assert_cmpfloat (memory_workspace_bytes (&s), ==, 1e6 + 2 * 32e6 + 5 * 4e6);
}

/* Inputs of recomputed layers split over tp: 2 s b h / t, as sequence parallelism has them anyway.
 */
static void
test_partitioned (void)
{
  Spec s;
  fill_gpt (&s, 4, 1024, 16, 51200, 2048);
  set_layout (&s, 4, 1, 1, 1);
  s.software.recompute_partitioned = TRUE;
  g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_FULL), ==,
                     2.0 * 2048 * 1024 / 4);
  s.parallel.sequence_parallel = TRUE;
  g_assert_cmpfloat (model_activation_bytes_layer (&s, 0, RECOMPUTE_FULL), ==,
                     2.0 * 2048 * 1024 / 4);
}

static void
test_errors (void)
{
  Spec s;
  g_autoptr (GError) error = NULL;
  MemReport r;
  const gint64 layers[] = {3, 4};
  fill_gpt (&s, 8, 1024, 16, 51200, 2048);
  set_layout (&s, 1, 2, 1, 1);
  g_autoptr (SchedTable) t = sched_generate ("1f1b", 2, 1, 2, NULL);

  g_assert_false (memory_estimate (&s, t, layers, &r, &error));
  g_assert_error (error, MEMORY_ERROR, 0);
  g_assert_nonnull (strstr (error->message, "7 layers"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/memory/korthikanti", test_korthikanti);
  g_test_add_func ("/memory/llama-layer", test_llama_layer);
  g_test_add_func ("/memory/moe-layer", test_moe_layer);
  g_test_add_func ("/memory/zero", test_zero);
  g_test_add_func ("/memory/expert-shards", test_expert_shards);
  g_test_add_func ("/memory/in-flight", test_in_flight);
  g_test_add_func ("/memory/head-recompute", test_head_recompute);
  g_test_add_func ("/memory/fsdp-buffers", test_fsdp_buffers);
  g_test_add_func ("/memory/megatron-7b", test_megatron_7b);
  g_test_add_func ("/memory/megatron-small", test_megatron_small);
  g_test_add_func ("/memory/bigscience", test_bigscience);
  g_test_add_func ("/memory/workspaces", test_workspaces);
  g_test_add_func ("/memory/partitioned", test_partitioned);
  g_test_add_func ("/memory/errors", test_errors);
  return g_test_run ();
}
