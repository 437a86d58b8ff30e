#include "report.h"
#include "report_net.h"
#include "text.h"

#include <string.h>

#include "json_read.h"
#include "units.h"

static const char *
precision_of (const Spec *s)
{
  return dtype_names[s->train.precision];
}

static void
line_layout (GString *out, const Spec *s)
{
  const ParallelSpec *p = &s->parallel;
  g_autofree char *recompute = spec_recompute_text (s);
  g_autofree char *experts = s->model.num_experts > 0 ? g_strdup_printf ("  ep %" G_GINT64_FORMAT
                                                                         "  etp %" G_GINT64_FORMAT,
                                                                         p->ep, spec_expert_tp (s))
                                                      : g_strdup ("");
  g_string_append_printf (out,
                          "layout       tp %" G_GINT64_FORMAT "  cp %" G_GINT64_FORMAT
                          "  pp %" G_GINT64_FORMAT "  vpp %" G_GINT64_FORMAT
                          "  dp %" G_GINT64_FORMAT "%s  %s%s, zero %" G_GINT64_FORMAT
                          ", %s, recompute %s\n",
                          p->tp, p->cp, p->pp, p->vpp, p->dp, experts, p->schedule,
                          p->sequence_parallel ? ", sequence parallel" : "", p->zero_stage,
                          precision_of (s), recompute);
  g_string_append_printf (out,
                          "batch        %" G_GINT64_FORMAT " sequences of %" G_GINT64_FORMAT
                          " tokens, micro-batch %" G_GINT64_FORMAT ", %" G_GINT64_FORMAT
                          " micro-batches a pipeline\n",
                          s->train.global_batch_sequences, s->train.sequence_tokens,
                          s->train.micro_batch_sequences, spec_microbatches (s));
}

/* Runs of stages with as many layers: "1, 2 x30, 0". Only where they are not all alike. */
static void
line_stages (GString *out, const Spec *s, const Prediction *p)
{
  guint n = p->n_stages, alike = 1;
  while (alike < n && p->stage_layers[alike] == p->stage_layers[0])
    alike++;
  if (n < 2 || (alike == n && s->parallel.layout == NULL))
    return;
  g_string_append (out, "layers       ");
  for (guint i = 0; i < n;) {
    guint k = i;
    while (k < n && p->stage_layers[k] == p->stage_layers[i])
      k++;
    g_string_append_printf (out, "%s%" G_GINT64_FORMAT, i > 0 ? ", " : "", p->stage_layers[i]);
    if (k - i > 1)
      g_string_append_printf (out, " x%u", k - i);
    i = k;
  }
  g_string_append_printf (out, "   (stages 0 to %u; embedding on the first, loss on the last)\n",
                          n - 1);
}

/* Part of the slowdown that goes away with a cause. */
static double
explained (const HeteroResult *h, guint cause)
{
  double lost = h->mean_s - h->healthy_s;
  return lost > 0 ? (h->mean_s - h->without_s[cause]) / lost : 0;
}

static void
write_what_if (JsonWriter *w, const HeteroResult *h)
{
  gboolean open = FALSE;
  for (guint i = 0; i < HETERO_CAUSES; i++) {
    if (!(h->without_s[i] > 0))
      continue;
    if (!open)
      jw_begin_object (w, "without");
    open = TRUE;
    jw_begin_object (w, hetero_cause_names[i]);
    jw_double (w, "step_time_s", h->without_s[i]);
    jw_double (w, "explains", explained (h, i));
    jw_end_object (w);
  }
  if (open)
    jw_end_object (w);
}

static void
line_what_if (GString *out, const HeteroResult *h)
{
  for (guint i = 0; i < HETERO_CAUSES; i++)
    if (h->without_s[i] > 0)
      g_string_append_printf (out, "  without %-11s %.4f s   (explains %.0f %% of the slowdown)\n",
                              hetero_cause_names[i], h->without_s[i], 100.0 * explained (h, i));
}

/* What is not as usual: adapters, offload, compressed gradients, sites. */
static void
line_trades (GString *out, const Spec *s)
{
  const TrainSpec *t = &s->train;
  const OffloadSpec *o = &s->offload;
  const OuterSpec *x = &s->parallel.outer;
  gsize before = out->len;
  if (t->recompute_every > 1)
    g_string_append_printf (out, ", recompute one layer in %" G_GINT64_FORMAT, t->recompute_every);
  if (t->adapter_rank > 0)
    g_string_append_printf (out, ", adapters of rank %" G_GINT64_FORMAT " alone are trained",
                            t->adapter_rank);
  if (o->optimizer != OFFLOAD_NONE)
    g_string_append_printf (out, ", optimizer on %s%s", offload_names[o->optimizer],
                            o->delayed ? ", a step late" : "");
  if (o->activations > 0)
    g_string_append_printf (out, ", %.0f %% of activations in host memory", 100 * o->activations);
  if (s->parallel.compression != COMPRESS_NONE)
    g_string_append_printf (out, ", gradients by %s", compression_names[s->parallel.compression]);
  if (x->sites > 1)
    g_string_append_printf (out,
                            ", %" G_GINT64_FORMAT " sites that exchange every %" G_GINT64_FORMAT
                            " steps (the mean step of a round)",
                            x->sites, x->every_steps);
  if (out->len == before)
    return;
  g_string_erase (out, (gssize)before, 2);
  g_string_insert (out, (gssize)before, "beside       ");
  g_string_append_c (out, '\n');
}

static void
line_hetero (GString *out, const Prediction *p)
{
  const HeteroResult *h = &p->hetero;
  if (h->healthy_s <= 0)
    return;
  g_string_append_printf (out,
                          "healthy      %.4f s with all GPUs alike: %+.2f %% by what differs\n",
                          h->healthy_s, 100.0 * (h->mean_s / h->healthy_s - 1.0));
  if (h->steps > 1)
    g_string_append_printf (out, "steps        %u simulated: %.4f … %.4f s\n", h->steps, h->min_s,
                            h->max_s);
  g_string_append_printf (out, "simulated    %u %s\n", h->simulated,
                          h->folded ? "classes of GPUs" : "GPUs");
  line_what_if (out, h);
}

static void
line_published (GString *out, const Spec *s, const Prediction *p)
{
  if (s->published_step_s <= 0)
    return;
  g_string_append_printf (out, "published    %.4g s, predicted %.4g s: %+.1f %%   (%s)\n",
                          s->published_step_s, p->step_s,
                          100.0 * (p->step_s / s->published_step_s - 1.0),
                          s->published_source != NULL ? s->published_source : "no source given");
}

static void
block_breakdown (GString *out, const Prediction *p)
{
  g_string_append (out, "\nwhere the time goes (the last rank to finish)\n");
  for (guint i = 0; i < PART_COUNT; i++) {
    if (p->part_s[i] <= 0)
      continue;
    double share = p->part_s[i] / p->step_s;
    g_string_append_printf (out, "  %-10s %10.4f s  %5.1f %%", part_names[i], p->part_s[i],
                            100.0 * share);
    for (int k = 0, n = (int)(share * 50.0 + 0.5); k < n; k++)
      g_string_append (out, k == 0 ? "  #" : "#");
    g_string_append_c (out, '\n');
  }
  g_string_append_printf (out, "  %-10s %10.4f s  100.0 %%\n", "total", p->step_s);
}

static double
gib (gint64 bytes)
{
  return (double)bytes / (double)(1 << 30);
}

static void
block_memory (GString *out, const Prediction *p)
{
  const MemReport *m = &p->memory;
  g_string_append (out, "\nmemory, GiB a GPU\n  stage  layers  weights  grads  optimizer  "
                        "activations  buffers  framework    peak\n");
  guint shown = 0;
  for (guint i = 0; i < m->n_stages; i++) {
    gboolean edge = i < 2 || i + 2 >= m->n_stages || (int)i == m->worst_stage;
    if (m->n_stages > 8 && !edge) {
      if (shown++ == 0)
        g_string_append (out, "    ...\n");
      continue;
    }
    const StageMemory *st = &m->stages[i];
    g_string_append_printf (
        out, "  %5u  %6" G_GINT64_FORMAT "  %7.2f  %5.2f  %9.2f  %11.2f  %7.2f  %9.2f  %6.2f%s\n",
        i, p->rank_layers[i], gib (st->weights_bytes), gib (st->gradients_bytes),
        gib (st->optimizer_bytes), gib (st->activations_bytes), gib (st->buffers_bytes),
        gib (st->framework_bytes), gib (st->peak_bytes),
        (int)i == m->worst_stage ? "  <- worst" : "");
  }
  double head = gib (m->capacity_bytes - m->peak_bytes);
  g_string_append_printf (out, "  %s: %.2f of %.2f GiB, %.2f GiB %s\n",
                          m->fits ? "fits" : "DOES NOT FIT", gib (m->peak_bytes),
                          gib (m->capacity_bytes), head < 0 ? -head : head,
                          head < 0 ? "too much" : "left");
  const StageMemory *worst = &m->stages[m->worst_stage];
  g_string_append_printf (
      out,
      "  as the framework reports it there: %.2f allocated after a step, %.2f at "
      "the peak, %.2f reserved\n",
      gib (worst->after_step_bytes), gib (worst->allocated_bytes), gib (worst->reserved_bytes));
  if (m->host_bytes > 0)
    g_string_append_printf (out, "  host memory: %.0f of %.0f GiB a node%s\n", gib (m->host_bytes),
                            gib (m->host_capacity_bytes),
                            m->host_capacity_bytes > 0 && m->host_bytes > m->host_capacity_bytes
                                ? "  <- does not fit"
                                : "");
}

static void
block_assumed (GString *out, const Spec *s)
{
  if (s->assumed->len == 0)
    return;
  g_string_append (out, "\nassumed\n");
  for (guint i = 0; i < s->assumed->len; i++)
    g_string_append_printf (out, "  %s\n", (const char *)g_ptr_array_index (s->assumed, i));
}

void
report_text (GString *out, const Spec *s, const Prediction *p, const StepInterval *iv)
{
  g_autofree char *params = format_count ((double)p->parameters);
  g_autofree char *rate = format_count (p->tokens_per_s);
  g_autofree char *name = text_printable (s->name != NULL ? s->name : "scenario", -1, 200);
  g_string_append_printf (out, "%s\n", name);
  g_string_append_printf (
      out, "model        %s, %s parameters\ncluster      %" G_GINT64_FORMAT " x %s\n",
      s->model.name, params, s->cluster.gpus, gpu_name (s->gpu));
  g_string_append_printf (out, "software     %s\n", s->software.name);
  line_layout (out, s);
  line_stages (out, s, p);
  line_trades (out, s);
  g_string_append_printf (
      out, "\nstep time    %.4f s   (measured should lie in %.4g … %.4g s four times in five)\n",
      p->step_s, p->step_s * iv->lo, p->step_s * iv->hi);
  line_published (out, s, p);
  line_hetero (out, p);
  g_string_append_printf (out, "throughput   %s tokens/s, %.1f tokens/s/GPU\n", rate,
                          p->tokens_per_s_per_gpu);
  g_string_append_printf (
      out,
      "efficiency   %.1f model TFLOP/s/GPU, MFU %.1f %%, HFU %.1f %%   (%s attention, "
      "dense %s peak %.1f TFLOP/s)\n",
      p->model_tflops_per_gpu, 100 * p->mfu, 100 * p->hfu,
      s->train.causal_flops ? "causal" : "full", precision_of (s), p->peak_tflops);
  g_string_append_printf (out, "cost         %.1f GPU-hours per 1e9 tokens",
                          p->gpu_hours_per_1e9_tokens);
  if (p->usd_per_1e9_tokens >= 0)
    g_string_append_printf (out, ", %.2f USD", p->usd_per_1e9_tokens);
  if (p->kwh_per_1e9_tokens >= 0)
    g_string_append_printf (out, ", %.1f kWh", p->kwh_per_1e9_tokens);
  g_string_append_c (out, '\n');
  block_breakdown (out, p);
  report_net_text (out, s, p);
  block_memory (out, p);
  block_assumed (out, s);
  g_string_append_printf (out, "\nfingerprint  %016" G_GINT64_MODIFIER "x\n", p->fingerprint);
}

/* ---- JSON ---- */

static void
json_parallel (JsonWriter *w, const ParallelSpec *p)
{
  jw_begin_object (w, "parallel");
  jw_int (w, "tp", p->tp);
  jw_int (w, "cp", p->cp);
  jw_int (w, "pp", p->pp);
  jw_int (w, "vpp", p->vpp);
  jw_int (w, "ep", p->ep);
  jw_int (w, "dp", p->dp);
  jw_bool (w, "sequence_parallel", p->sequence_parallel);
  jw_string (w, "schedule", p->schedule);
  jw_int (w, "zero_stage", p->zero_stage);
  if (p->fsdp)
    jw_bool (w, "fsdp", TRUE);
  if (p->shard_size > 0)
    jw_int (w, "shard_size", p->shard_size);
  if (p->compression != COMPRESS_NONE)
    jw_string (w, "compression", compression_names[p->compression]);
  if (p->outer.sites > 1) {
    jw_int (w, "sites", p->outer.sites);
    jw_int (w, "every_steps", p->outer.every_steps);
  }
  if (p->order != NULL)
    jw_string (w, "order", p->order);
  if (p->layout != NULL)
    jw_string (w, "layout", p->layout);
  jw_end_object (w);
}

static void
json_memory (JsonWriter *w, const MemReport *m)
{
  jw_begin_object (w, "memory");
  jw_bool (w, "fits", m->fits);
  jw_int (w, "capacity_bytes", m->capacity_bytes);
  jw_int (w, "peak_bytes", m->peak_bytes);
  jw_int (w, "worst_stage", m->worst_stage);
  if (m->host_bytes > 0) {
    jw_int (w, "host_bytes", m->host_bytes);
    jw_int (w, "host_capacity_bytes", m->host_capacity_bytes);
  }
  jw_begin_array (w, "stages");
  for (guint i = 0; i < m->n_stages; i++) {
    const StageMemory *st = &m->stages[i];
    jw_begin_object (w, NULL);
    jw_int (w, "weights_bytes", st->weights_bytes);
    jw_int (w, "gradients_bytes", st->gradients_bytes);
    jw_int (w, "optimizer_bytes", st->optimizer_bytes);
    jw_int (w, "activations_bytes", st->activations_bytes);
    jw_int (w, "buffers_bytes", st->buffers_bytes);
    jw_int (w, "framework_bytes", st->framework_bytes);
    jw_int (w, "peak_bytes", st->peak_bytes);
    jw_int (w, "after_step_bytes", st->after_step_bytes);
    jw_int (w, "allocated_bytes", st->allocated_bytes);
    jw_int (w, "reserved_bytes", st->reserved_bytes);
    jw_end_object (w);
  }
  jw_end_array (w);
  jw_end_object (w);
}

static void
json_known (JsonWriter *w, const char *key, double v)
{
  if (v >= 0)
    jw_double (w, key, v);
  else
    jw_null (w, key);
}

static void
json_provenance (JsonWriter *w, const Spec *s, const Prediction *p)
{
  jw_begin_object (w, "provenance");
  jw_string (w, "version", CLUSTERSIM_VERSION);
  jw_begin_array (w, "profiles");
  for (guint i = 0; i < s->profiles->len; i++)
    jw_string (w, NULL, g_ptr_array_index (s->profiles, i));
  jw_end_array (w);
  jw_begin_array (w, "assumed");
  for (guint i = 0; i < s->assumed->len; i++)
    jw_string (w, NULL, g_ptr_array_index (s->assumed, i));
  for (guint i = 0; s->prov != NULL && i < s->prov->len; i++) {
    const ProvEntry *e = g_ptr_array_index (s->prov, i);
    if (e->kind != PROV_ASSUMED)
      continue;
    g_autofree char *text = g_strdup_printf ("%s = %.6g", e->name, e->value);
    jw_string (w, NULL, text);
  }
  jw_end_array (w);
  jw_begin_array (w, "warnings");
  if (!p->memory.fits)
    jw_string (w, NULL, "the layout does not fit the memory of the GPU");
  jw_end_array (w);
  jw_end_object (w);
}

void
report_json_members (JsonWriter *w, const Spec *s, const Prediction *p, const StepInterval *iv,
                     gboolean with_provenance)
{
  jw_string (w, "name", s->name);
  jw_int (w, "gpus", s->cluster.gpus);
  json_parallel (w, &s->parallel);
  jw_double (w, "step_time_s", p->step_s);
  jw_begin_array (w, "step_time_interval_s");
  jw_double (w, NULL, p->step_s * iv->lo);
  jw_double (w, NULL, p->step_s * iv->hi);
  jw_end_array (w);
  if (p->hetero.healthy_s > 0) {
    jw_begin_object (w, "heterogeneity");
    jw_double (w, "healthy_step_time_s", p->hetero.healthy_s);
    jw_double (w, "slowdown", p->hetero.mean_s / p->hetero.healthy_s);
    jw_int (w, "steps", p->hetero.steps);
    jw_double (w, "min_step_time_s", p->hetero.min_s);
    jw_double (w, "max_step_time_s", p->hetero.max_s);
    jw_int (w, "simulated", p->hetero.simulated);
    jw_bool (w, "folded", p->hetero.folded);
    write_what_if (w, &p->hetero);
    jw_end_object (w);
  }
  if (s->published_step_s > 0) {
    jw_double (w, "published_step_time_s", s->published_step_s);
    jw_double (w, "error_pct", 100.0 * (p->step_s / s->published_step_s - 1.0));
  }
  jw_double (w, "tokens_per_s", p->tokens_per_s);
  jw_double (w, "tokens_per_s_per_gpu", p->tokens_per_s_per_gpu);
  jw_double (w, "model_tflops_per_gpu", p->model_tflops_per_gpu);
  jw_double (w, "mfu", p->mfu);
  jw_double (w, "hfu", p->hfu);
  jw_string (w, "mfu_convention", s->train.causal_flops ? "causal" : "full");
  jw_begin_object (w, "breakdown_s");
  for (guint i = 0; i < PART_COUNT; i++)
    jw_double (w, part_names[i], p->part_s[i]);
  jw_end_object (w);
  report_net_json (w, s, p);
  json_memory (w, &p->memory);
  jw_begin_object (w, "model");
  jw_int (w, "parameters", p->parameters);
  jw_int (w, "active_parameters", p->active_parameters);
  jw_double (w, "flops_per_token", p->flops_per_token);
  jw_end_object (w);
  jw_begin_object (w, "cost");
  jw_double (w, "gpu_hours_per_1e9_tokens", p->gpu_hours_per_1e9_tokens);
  json_known (w, "usd_per_1e9_tokens", p->usd_per_1e9_tokens);
  json_known (w, "kwh_per_1e9_tokens", p->kwh_per_1e9_tokens);
  jw_end_object (w);
  if (with_provenance)
    json_provenance (w, s, p);
  g_autofree char *fp = g_strdup_printf ("%016" G_GINT64_MODIFIER "x", p->fingerprint);
  jw_string (w, "fingerprint", fp);
}

void
report_json (GString *out, const Spec *s, const Prediction *p, const StepInterval *iv)
{
  g_autoptr (JsonWriter) w = json_writer_new (out, 2);
  jw_begin_object (w, NULL);
  report_json_members (w, s, p, iv, TRUE);
  jw_end_object (w);
  g_string_append_c (out, '\n');
}

/* ---- CSV ---- */

void
report_csv_field (GString *out, const char *text)
{
  if (strpbrk (text, ",\"\n\r") == NULL) {
    g_string_append (out, text);
    return;
  }
  g_string_append_c (out, '"');
  for (const char *p = text; *p != '\0'; p++) {
    if (*p == '"')
      g_string_append_c (out, '"');
    g_string_append_c (out, *p);
  }
  g_string_append_c (out, '"');
}

static void
csv_num (GString *out, double v)
{
  char buf[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append_c (out, ',');
  g_string_append (out, g_ascii_formatd (buf, sizeof buf, "%.9g", v));
}

void
report_csv_header (GString *out, const char *const *extra)
{
  for (gsize i = 0; extra != NULL && extra[i] != NULL; i++) {
    report_csv_field (out, extra[i]);
    g_string_append_c (out, ',');
  }
  g_string_append (
      out, "series,gpus,tokens_per_s,tokens_per_s_per_gpu,mfu,step_time_s,step_lo_s,step_hi_s,"
           "tp,cp,pp,vpp,dp,micro_batch,global_batch,model_tflops_per_gpu,fits,"
           "peak_GiB,gpu_hours_per_1e9_tokens");
  for (guint i = 0; i < PART_COUNT; i++)
    g_string_append_printf (out, ",%s_s", part_names[i]);
  g_string_append (out, ",error\n");
}

void
report_csv_row (GString *out, const Spec *s, const Prediction *p, const StepInterval *iv,
                const char *const *extra_values)
{
  for (gsize i = 0; extra_values != NULL && extra_values[i] != NULL; i++) {
    report_csv_field (out, extra_values[i]);
    g_string_append_c (out, ',');
  }
  report_csv_field (out, s->name != NULL ? s->name : "scenario");
  g_string_append_printf (out, ",%" G_GINT64_FORMAT, s->cluster.gpus);
  csv_num (out, p->tokens_per_s);
  csv_num (out, p->tokens_per_s_per_gpu);
  csv_num (out, p->mfu);
  csv_num (out, p->step_s);
  csv_num (out, p->step_s * iv->lo);
  csv_num (out, p->step_s * iv->hi);
  const gint64 ints[] = {s->parallel.tp,
                         s->parallel.cp,
                         s->parallel.pp,
                         s->parallel.vpp,
                         s->parallel.dp,
                         s->train.micro_batch_sequences,
                         s->train.global_batch_sequences};
  for (gsize i = 0; i < G_N_ELEMENTS (ints); i++)
    g_string_append_printf (out, ",%" G_GINT64_FORMAT, ints[i]);
  csv_num (out, p->model_tflops_per_gpu);
  g_string_append_printf (out, ",%d", p->memory.fits ? 1 : 0);
  csv_num (out, gib (p->memory.peak_bytes));
  csv_num (out, p->gpu_hours_per_1e9_tokens);
  for (guint i = 0; i < PART_COUNT; i++)
    csv_num (out, p->part_s[i]);
  g_string_append (out, ",\n");
}

void
report_csv_failure (GString *out, const char *series, const char *reason)
{
  report_csv_field (out, series);
  for (guint i = 0; i < 19 + PART_COUNT; i++) /* the columns of report_csv_header between the two */
    g_string_append_c (out, ',');
  report_csv_field (out, reason);
  g_string_append_c (out, '\n');
}
