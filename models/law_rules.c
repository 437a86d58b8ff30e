/* Rules of thumb of the field as remarks on a scenario; see law.h.
 *
 * The ranges are those of the sources named beside them. They are habits, not laws: a remark never
 * stops a prediction, and says what it costs to be outside where that is known. */
#include "law.h"

#include <math.h>

const char *const remark_level_names[] = {"ok", "note", "warning", NULL};

void
law_remark_free (LawRemark *r)
{
  if (r == NULL)
    return;
  g_free (r->text);
  g_free (r);
}

/* A rule with a range; values outside [low, high] get the level. */
typedef struct {
  const char *name, *source;
  double low, high;
  RemarkLevel level;
} Rule;

static const Rule tokens_per_parameter = {
    "tokens_per_parameter",
    "Hoffmann 2022, arXiv 2203.15556, table 3 (about 20 are compute-optimal); Sardana 2024, arXiv "
    "2401.00448 (loss still falls at 10,000)",
    20, 200, REMARK_NOTE};
static const Rule depth_to_width = {
    "width_per_layer",
    "Kaplan 2020, arXiv 2001.08361, section 3.1 (loss moves by a few percent over a factor of 40 "
    "in this ratio); published models of 1 B to 540 B lie between about 60 and 210",
    40, 256, REMARK_NOTE};
static const Rule head_size = {
    "head_size",
    "Anthony 2024, arXiv 2401.14489 (head size a multiple of 64 for full tensor-core tiles); Dao "
    "2023, arXiv 2307.08691 (fused attention kernels up to 256)",
    64, 256, REMARK_NOTE};
static const Rule hidden_size = {
    "hidden_alignment",
    "Anthony 2024, arXiv 2401.14489 (sizes of matrix products that divide by 64, after division "
    "by tp)",
    64, INFINITY, REMARK_NOTE};
static const Rule vocabulary = {
    "vocabulary_alignment",
    "Shoeybi 2019, arXiv 1909.08053 (vocabulary padded to a multiple of 128 times tp); Anthony "
    "2024, arXiv 2401.14489 (multiple of 64)",
    64, INFINITY, REMARK_NOTE};
static const Rule mlp_width = {
    "mlp_width",
    "Vaswani 2017, arXiv 1706.03762 (4 times the width); Shazeer 2020, arXiv 2002.05202 (8/3 times "
    "with a gate); Kaplan 2020, figure 5 (flat between about 2 and 8)",
    2, 8, REMARK_NOTE};
static const Rule expert_sparsity = {"experts_per_active_expert",
                                     "Ludziejewski 2025, arXiv 2502.05172 (fitted on 1 to 32 "
                                     "experts a dense layer); Krajewski 2024, "
                                     "arXiv 2402.07871 (fitted at 16 and 64)",
                                     4, 64, REMARK_NOTE};
static const Rule expert_granularity = {
    "expert_granularity",
    "Krajewski 2024, arXiv 2402.07871 (experts as wide as the dense layer are almost never "
    "optimal; granularity 8 to 32 from 1e18 to 1e22 FLOPs)",
    2, 64, REMARK_NOTE};
static const Rule tp_in_node = {
    "tp_inside_node",
    "Narayanan 2021, arXiv 2104.04473, takeaway 1 (tensor parallelism up to the GPUs of a node, "
    "pipeline parallelism across nodes)",
    0, 1, REMARK_WARNING};
static const Rule ep_in_node = {
    "ep_inside_node",
    "DeepSeek-V3 2024, arXiv 2412.19437, section 3.2 (tokens go to at most 4 nodes, since the "
    "all-to-all between nodes is several times slower than inside)",
    0, 1, REMARK_NOTE};
static const Rule microbatches = {
    "microbatches_per_stage",
    "Huang 2019, arXiv 1811.06965 (bubble small from 4 micro-batches a stage on); Narayanan 2021, "
    "arXiv 2104.04473 (bubble (p-1)/(m v) of the ideal time)",
    4, INFINITY, REMARK_NOTE};
static const Rule sequence_parallel = {
    "sequence_parallel",
    "Korthikanti 2022, arXiv 2205.05198 (activations between tensor-parallel regions split too, at "
    "the same communication volume)",
    1, 1, REMARK_NOTE};
static const Rule critical_batch = {
    "critical_batch",
    "McCandlish 2018, arXiv 1812.06162 (at the critical batch a run takes twice the least tokens)",
    0, 1, REMARK_WARNING};

/* Where remarks go, and whether rules that are met are told too. */
typedef struct {
  GPtrArray *list;
  gboolean with_ok;
} Out;

static void add (const Out *out, const Rule *r, double value, gboolean met, const char *format, ...)
    G_GNUC_PRINTF (5, 6);

static gboolean
in_range (const Rule *r, double value)
{
  return value >= r->low && value <= r->high;
}

static void
add (const Out *out, const Rule *r, double value, gboolean met, const char *format, ...)
{
  if (met && !out->with_ok)
    return;
  va_list args;
  va_start (args, format);
  LawRemark *m = g_new0 (LawRemark, 1);
  *m = (LawRemark){.level = met ? REMARK_OK : r->level,
                   .rule = r->name,
                   .text = g_strdup_vprintf (format, args),
                   .source = r->source,
                   .value = value,
                   .low = r->low,
                   .high = r->high};
  va_end (args);
  g_ptr_array_add (out->list, m);
}

/* Largest power of two, up to 4096, that divides n. */
static double
alignment (gint64 n)
{
  gint64 a = 1;
  while (a < 4096 && n > 0 && n % (2 * a) == 0)
    a *= 2;
  return (double)a;
}

static void
shape_remarks (const Spec *s, const Out *out)
{
  const ModelSpec *m = &s->model;
  const gint64 tp = MAX (1, s->parallel.tp);
  double aspect = (double)m->hidden / (double)m->num_layers;
  add (out, &depth_to_width, aspect, in_range (&depth_to_width, aspect),
       "hidden %" G_GINT64_FORMAT " over %" G_GINT64_FORMAT
       " layers is %.0f a layer; usual are 40 to 256",
       m->hidden, m->num_layers, aspect);
  double head = m->kv_lora_rank > 0 ? (double)m->v_head_dim : (double)m->head_dim;
  gboolean aligned = fmod (head, 64) == 0; /* else part of each tile is empty */
  add (out, &head_size, head, aligned && in_range (&head_size, head),
       "head size %.0f%s; usual are 64, 128 and 256", head,
       aligned ? "" : " is not a multiple of 64");
  if (m->hidden % tp == 0)
    add (out, &hidden_size, alignment (m->hidden / tp),
         in_range (&hidden_size, alignment (m->hidden / tp)),
         "hidden %" G_GINT64_FORMAT " / tp %" G_GINT64_FORMAT " divides by %.0f; 64 or more wanted",
         m->hidden, tp, alignment (m->hidden / tp));
  gint64 vocab = spec_padded_vocab (s);
  add (out, &vocabulary, alignment (vocab / tp), in_range (&vocabulary, alignment (vocab / tp)),
       "padded vocabulary %" G_GINT64_FORMAT " / tp %" G_GINT64_FORMAT
       " divides by %.0f; 64 or more wanted",
       vocab, tp, alignment (vocab / tp));
  if (m->num_experts == 0 && m->hidden > 0) {
    double ratio = (double)m->ffn_hidden / (double)m->hidden;
    add (out, &mlp_width, ratio, in_range (&mlp_width, ratio),
         "MLP width is %.2f times hidden; usual are 4, or 8/3 with a gate", ratio);
  }
}

static void
expert_remarks (const Spec *s, const Out *out)
{
  const ModelSpec *m = &s->model;
  if (m->num_experts <= 0 || m->experts_per_token <= 0 || m->moe_ffn_hidden <= 0)
    return;
  double sparsity = (double)m->num_experts / (double)m->experts_per_token;
  add (out, &expert_sparsity, sparsity, in_range (&expert_sparsity, sparsity),
       "%" G_GINT64_FORMAT " experts, %" G_GINT64_FORMAT
       " of them active: %.1f to one; studied are 4 to 64",
       m->num_experts, m->experts_per_token, sparsity);
  /* The dense layer of this width: 4 h, or 8/3 h with a gate. */
  double dense = (m->gated_mlp ? 8.0 / 3.0 : 4.0) * (double)m->hidden;
  double granularity = dense / (double)m->moe_ffn_hidden;
  add (out, &expert_granularity, granularity, in_range (&expert_granularity, granularity),
       "experts of width %" G_GINT64_FORMAT
       " are 1/%.1f of a dense layer; finer ones (1/2 to 1/64) give less loss for the same compute",
       m->moe_ffn_hidden, granularity);
  const gint64 gpn = MIN (s->cluster.gpus_per_node, s->cluster.gpus);
  const gint64 span = MAX (1, s->parallel.ep) * MAX (1, s->parallel.etp);
  if (s->parallel.ep > 1 && gpn > 0)
    add (out, &ep_in_node, (double)span / (double)gpn,
         in_range (&ep_in_node, (double)span / (double)gpn),
         "expert parallelism spans %" G_GINT64_FORMAT " GPUs, the node has %" G_GINT64_FORMAT, span,
         gpn);
}

static void
layout_remarks (const Spec *s, const Out *out)
{
  const ParallelSpec *p = &s->parallel;
  const gint64 gpn = s->cluster.gpus_per_node;
  if (p->tp > 1 && gpn > 0)
    add (out, &tp_in_node, (double)p->tp / (double)gpn,
         in_range (&tp_in_node, (double)p->tp / (double)gpn),
         "tensor parallelism over %" G_GINT64_FORMAT " GPUs, the node has %" G_GINT64_FORMAT
         "; keep tp inside the node",
         p->tp, gpn);
  if (p->tp > 1)
    add (out, &sequence_parallel, p->sequence_parallel ? 1 : 0,
         in_range (&sequence_parallel, p->sequence_parallel ? 1 : 0),
         p->sequence_parallel
             ? "tensor parallelism with sequence parallelism"
             : "tensor parallelism without sequence parallelism: more activations, same traffic");
  if (p->pp > 1 && p->dp > 0) {
    double m = (double)spec_microbatches (s), stages = (double)p->pp;
    double bubble = (stages - 1) / (m * (double)MAX (1, p->vpp));
    add (out, &microbatches, m / stages, in_range (&microbatches, m / stages),
         "%.0f micro-batches over %.0f pipeline stages is %.2f a stage; 4 or more wanted (1F1B "
         "bubble %.1f %% of the ideal time)",
         m, stages, m / stages, 100 * bubble);
  }
}

GPtrArray *
law_remarks (const Spec *s, double tokens, double critical_batch_tokens, gboolean with_ok)
{
  GPtrArray *list = g_ptr_array_new_with_free_func ((GDestroyNotify)law_remark_free);
  const Out to = {list, with_ok}, *out = &to;
  if (tokens > 0) {
    double n = (double)model_params_active (&s->model), ratio = tokens / n;
    add (out, &tokens_per_parameter, ratio, in_range (&tokens_per_parameter, ratio),
         "%.4g tokens are %.1f per active parameter; %s", tokens, ratio,
         ratio < tokens_per_parameter.low
             ? "a smaller model on more tokens would have less loss for this compute (about 20)"
         : ratio > tokens_per_parameter.high
             ? "far beyond compute-optimal (about 20), which pays when inference dominates"
             : "about 20 are compute-optimal, more pays when inference dominates");
  }
  shape_remarks (s, out);
  expert_remarks (s, out);
  layout_remarks (s, out);
  double batch = (double)s->train.global_batch_sequences * (double)s->train.sequence_tokens;
  if (critical_batch_tokens > 0 && batch > 0)
    add (out, &critical_batch, batch / critical_batch_tokens,
         in_range (&critical_batch, batch / critical_batch_tokens),
         "global batch of %.3g tokens is %.2f times the critical one (%.3g); beyond it, further "
         "replicas save little time",
         batch, batch / critical_batch_tokens, critical_batch_tokens);
  return list;
}
