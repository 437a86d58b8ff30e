#include "fit_device.h"

#include <math.h>
#include <string.h>

#include "fit_device_priv.h"

void
fit_work_clear (FitWork *w)
{
  g_free (w->sample);
  g_free (w->measured);
  g_free (w->weight);
  g_free (w->x);
}
void
fit_work_init (FitWork *w, const GpuProfile *g, const SampleSet *set, FitPicks picks)
{
  guint n = set->samples->len;
  double shortest = G_MAXDOUBLE;
  w->g = *g;
  w->sample = g_new (const Sample *, MAX (n, 1));
  for (guint i = 0; i < n; i++) {
    const Sample *s = &g_array_index (set->samples, Sample, i);
    if (picks (w, s)) {
      w->sample[w->n++] = s;
      shortest = MIN (shortest, s->time_s);
    }
  }
  w->measured = g_new (double, MAX (w->n, 1));
  w->weight = g_new (double, MAX (w->n, 1));
  w->x = g_new (double, MAX (w->n, 1));
  g_autoptr (GHashTable) per_origin = g_hash_table_new (g_direct_hash, g_direct_equal);
  for (guint i = 0; i < w->n; i++) {
    gpointer key = (gpointer)w->sample[i]->origin; /* interned: one pointer an origin */
    guint had = GPOINTER_TO_UINT (g_hash_table_lookup (per_origin, key));
    g_hash_table_insert (per_origin, key, GUINT_TO_POINTER (had + 1));
  }
  for (guint i = 0; i < w->n; i++) {
    gpointer key = (gpointer)w->sample[i]->origin;
    guint of = GPOINTER_TO_UINT (g_hash_table_lookup (per_origin, key));
    w->measured[i] = w->sample[i]->time_s;
    w->weight[i] = pow (w->measured[i] / shortest, 0.25) * pow (of, -0.75);
  }
}

FitProblem
fit_problem_of (FitWork *w, FitParam *params, guint n_params, FitModel model)
{
  return (FitProblem){params, n_params, w->measured, w->weight, w->n, model, w, FIT_HUBER_AT};
}

/* ---- GEMM ---- */

/* Parameters of a GEMM type, in this order. */
enum {
  G_FLOOR,
  G_BURST,
  G_KEPT, /* sustained over burst */
  G_HALF,
  G_K0,
  G_SMALL,
  G_SMOOTH,
  G_SPLIT,
  G_MEMORY,
  G_DGRAD,
  G_WGRAD,
  G_CAST,
  G_ALIGN, /* six: 2 to 64 bytes; 128 is the reference */
  G_COUNT = G_ALIGN + GEMM_N_ALIGN - 1
};

static void
gemm_set (GemmParams *p, double *cast, const double *v)
{
  p->floor_s = v[G_FLOOR];
  p->burst_efficiency = v[G_BURST];
  p->sustained_efficiency = v[G_BURST] * v[G_KEPT];
  p->half_flops = v[G_HALF];
  p->k0 = v[G_K0];
  p->small_tile = v[G_SMALL];
  p->wave_smoothing = v[G_SMOOTH];
  p->split_s = v[G_SPLIT];
  p->memory_fraction = v[G_MEMORY];
  p->role_factor[GEMM_FORWARD] = 1;
  p->role_factor[GEMM_DGRAD] = v[G_DGRAD];
  p->role_factor[GEMM_WGRAD] = v[G_WGRAD];
  *cast = v[G_CAST];
  for (int i = 0; i < GEMM_N_ALIGN - 1; i++)
    p->align_factor[i] = v[G_ALIGN + i];
  p->align_factor[GEMM_N_ALIGN - 1] = 1;
}

static double
gemm_flops (const GemmShape *s)
{
  return 2.0 * (double)s->m * (double)s->n * (double)s->k * (double)s->batch;
}

static void
gemm_model (const double *v, const guint *index, guint n, double *out, gpointer user)
{
  FitWork *w = user;
  gemm_set (&w->g.gemm[w->dtype], &w->g.cast_fp8_fraction, v);
  gboolean ok = gpu_profile_prepare (&w->g, NULL);
  g_assert (ok);
  for (guint i = 0; i < n; i++) {
    const Sample *s = w->sample[index[i]];
    const GemmShape *g = &s->gemm.shape;
    out[i] = gpu_gemm_s (&w->g, g, s->gemm.duty);
    if (s->gemm.with_cast)
      out[i] += gpu_cast_fp8_s (&w->g, (double)g->m * (double)g->k * (double)g->batch);
  }
}

static void
gemm_params (const FitWork *w, FitParam *q)
{
  const GpuProfile *g = &w->g;
  const GemmParams *p = &g->gemm_used[w->dtype];
  double cast =
      g->cast_fp8_fraction > 0 ? g->cast_fp8_fraction : g->memk_fraction[MEMK_ELEMENTWISE];
  double largest = 0;
  static const char *const align[] = {"align_factor.2",  "align_factor.4",  "align_factor.8",
                                      "align_factor.16", "align_factor.32", "align_factor.64"};
  for (guint i = 0; i < w->n; i++)
    largest = MAX (largest, gemm_flops (&w->sample[i]->gemm.shape));
  /* sustained is to be a value that the largest shapes reach, no extrapolation */
  enum {
    POWER_FLOPS = 1000000
  }; /* 1e12: a power-limited part has slowed down after a millisecond */
  double half_max = CLAMP (largest / 20, 1e6, 1e6 * POWER_FLOPS);
  /* A clock above the datasheet's is for the base to say, except where the shape is the base's and
   * the rate alone is fitted. */
  double most = w->n < FEWEST_GEMM || p->burst_efficiency > 1 ? 1.5 : 1;
  const FitParam all[] = {
      {"floor_us", p->floor_s, 1e-8, 1e-3, FIT_LOG, FALSE},
      {"burst_efficiency", MIN (p->burst_efficiency, most), 0.03, most, FIT_LOG, FALSE},
      {"sustained_efficiency", p->sustained_efficiency / p->burst_efficiency, 0.6, 1, FIT_LINEAR,
       FALSE},
      {"half_FLOPs", MIN (p->half_flops, half_max), half_max / 10, half_max, FIT_LOG, FALSE},
      {"k0", p->k0, 0, 1000, FIT_LINEAR, FALSE},
      {"small_tile", p->small_tile, 0, 80, FIT_LINEAR, FALSE},
      {"wave_smoothing", p->wave_smoothing, 0, 1, FIT_LINEAR, FALSE},
      {"split_us", CLAMP (p->split_s, 2e-8, 2e-5), 1e-8, 2e-5, FIT_LOG, FALSE},
      {"memory_fraction", p->memory_fraction, 0.02, 1.5, FIT_LOG, FALSE},
      {"role_factor.dgrad", p->role_factor[GEMM_DGRAD], 0.3, 3, FIT_LOG, FALSE},
      {"role_factor.wgrad", p->role_factor[GEMM_WGRAD], 0.3, 3, FIT_LOG, FALSE},
      {"cast_fp8", cast, 0.02, 1.5, FIT_LOG, FALSE},
  };
  memcpy (q, all, sizeof all);
  for (int i = 0; i < GEMM_N_ALIGN - 1; i++)
    q[G_ALIGN + i] = (FitParam){align[i], p->align_factor[i], 0.1, 1, FIT_LOG, FALSE};
}

/* Without samples of both kinds of clocks the two efficiencies cannot be told apart by them; a
 * device whose kernels are all long or all isolated keeps the share of its base. */
static void
gemm_fix_clocks (const FitWork *w, FitParam *q)
{
  gboolean burst = FALSE, cast = FALSE;
  for (guint i = 0; i < w->n; i++) {
    burst |= w->sample[i]->gemm.duty < 0.5;
    cast |= w->sample[i]->gemm.with_cast;
  }
  if (cast) /* the cast beside the GEMM looks like a slower long one: the fall stays the base's */
    q[G_KEPT].fixed = q[G_HALF].fixed = TRUE;
  if (!burst) {
    q[G_KEPT].start = 1;
    q[G_KEPT].fixed = q[G_HALF].fixed = TRUE;
  }
}

/* A sweep of a few sizes says how fast the part is, not how its kernels cut a matrix: the shape
 * numbers stay those of the base. */
static void
gemm_fix_shape (const FitWork *w, FitParam *q)
{
  if (w->n >= FEWEST_GEMM)
    return;
  for (int i = 0; i < G_COUNT; i++)
    q[i].fixed = i != G_BURST && i != G_KEPT;
  q[G_KEPT].fixed |= w->n < FEWEST_SQUARES + 2;
}

static void
gemm_report (const FitWork *w, const FitParam *q, const double *v, const double *lo,
             const double *hi, const FitGroup *grp, FitReport *r)
{
  g_autofree char *at = g_strdup_printf ("gemm.types.%s", dtype_names[w->dtype]);
  for (guint j = 0; j < G_COUNT; j++) {
    double unit = j == G_FLOOR || j == G_SPLIT ? 1e6 : 1;
    if (q[j].fixed && j != G_KEPT)
      continue;
    if (j == G_CAST) {
      fit_report_number (r, "memory_fraction.cast_fp8", v[j], lo[j], hi[j], grp);
      continue;
    }
    if (j == G_KEPT) /* sustained follows burst even where their ratio is kept */
      unit = v[G_BURST];
    g_autofree char *path = g_strdup_printf ("%s.%s", at, q[j].name);
    fit_report_number (r, path, v[j] * unit, lo[j] * unit, hi[j] * unit, grp);
  }
}

static gboolean
is_gemm (const FitWork *w, const Sample *s)
{
  return s->kind == SAMPLE_GEMM && s->gemm.shape.dtype == w->dtype;
}

static gboolean
fit_gemm (GpuProfile *g, DType dtype, const SampleSet *set, const FitOptions *o, FitReport *r)
{
  g_auto (FitWork) w = {.dtype = dtype};
  FitParam q[G_COUNT];
  double best[G_COUNT], lo[G_COUNT], hi[G_COUNT];
  fit_work_init (&w, g, set, is_gemm);
  if (w.n == 0)
    return FALSE;
  g_autofree char *name = g_strdup_printf ("gemm %s", dtype_names[dtype]);
  if (w.n < FEWEST_SQUARES || g->peak_flops[dtype] <= 0 || !g->gemm_used[dtype].present) {
    fit_report_warn (r,
                     w.n < FEWEST_SQUARES ? "%s: %u samples are too few for a fit (at least %d)"
                                          : "%s: the profile has no peak for this type: its %u "
                                            "samples are passed over",
                     name, w.n, (int)FEWEST_SQUARES);
    return FALSE;
  }
  w.g.gemm[dtype] = g->gemm_used[dtype];
  memset (w.g.gemm[dtype].table_s, 0, sizeof w.g.gemm[dtype].table_s); /* the formula is fitted */
  gemm_params (&w, q);
  gemm_fix_clocks (&w, q);
  gemm_fix_shape (&w, q);
  for (guint i = 0; i < w.n; i++)
    w.x[i] = gemm_flops (&w.sample[i]->gemm.shape);
  FitProblem f = fit_problem_of (&w, q, G_COUNT, gemm_model);
  FitGroup *grp = fit_group (&f, name, w.x, "FLOPs", o, r, best, lo, hi);
  g->gemm[dtype] = g->gemm_used[dtype];
  gemm_set (&g->gemm[dtype], &g->cast_fp8_fraction, best);
  memset (g->gemm[dtype].table_s, 0, sizeof g->gemm[dtype].table_s);
  if (gpu_profile_prepare (g, NULL))
    fit_gemm_table (g, dtype, w.sample, w.n);
  gemm_report (&w, q, best, lo, hi, grp, r);
  return TRUE;
}

/* ---- attention ---- */

/* Parameters of a kernel: these seven for forward, then for backward. */
enum { A_FLOOR, A_KV0, A_CAUSAL, A_EFF, A_FP8 = A_EFF + ATTN_N_DIMS, A_PASS, A_COUNT = 2 * A_PASS };

static void
attention_set (AttnParams *p, const double *v)
{
  for (int pass = 0; pass < 2; pass++, v += A_PASS) {
    p->floor_s[pass] = v[A_FLOOR];
    p->kv0[pass] = v[A_KV0];
    p->causal_factor[pass] = v[A_CAUSAL];
    p->fp8_factor[pass] = v[A_FP8];
    for (int d = 0; d < ATTN_N_DIMS; d++)
      p->efficiency[pass][d] = v[A_EFF + d];
  }
}

static void
attention_model (const double *v, const guint *index, guint n, double *out, gpointer user)
{
  FitWork *w = user;
  attention_set (&w->g.attn[w->kernel], v);
  for (guint i = 0; i < n; i++) {
    const Sample *s = w->sample[index[i]];
    AttnShape shape = s->attention.shape;
    out[i] = 0;
    for (int pass = 0; pass < 2; pass++) {
      shape.pass = (Pass)pass;
      if (pass == PASS_FORWARD ? s->attention.forward : s->attention.backward)
        out[i] += gpu_attention_s (&w->g, w->kernel, &shape, 0);
    }
  }
}

static void
attention_params (const AttnParams *p, FitParam *q)
{
  static const char *const dims[] = {"efficiency.32", "efficiency.64", "efficiency.128",
                                     "efficiency.256"};
  for (int pass = 0; pass < 2; pass++, q += A_PASS) {
    q[A_FLOOR] = (FitParam){"floor_us", p->floor_s[pass], 1e-8, 1e-3, FIT_LOG, FALSE};
    q[A_KV0] = (FitParam){"kv0", p->kv0[pass], 0, 8000, FIT_LINEAR, FALSE};
    q[A_CAUSAL] = (FitParam){"causal_factor", p->causal_factor[pass], 0.3, 1.3, FIT_LOG, FALSE};
    for (int d = 0; d < ATTN_N_DIMS; d++)
      q[A_EFF + d] = (FitParam){dims[d], p->efficiency[pass][d], 0.01, 1, FIT_LOG, FALSE};
    /* 0 says that there is no 8-bit form: nothing to fit */
    q[A_FP8] =
        (FitParam){"fp8_factor", p->fp8_factor[pass], 0, 2, FIT_LINEAR, !(p->fp8_factor[pass] > 0)};
  }
}

/* Causal samples alone, or full ones alone, do not tell the factor between the two. */
static void
attention_fix_mask (const FitWork *w, FitParam *q)
{
  for (int pass = 0; pass < 2; pass++) {
    guint causal = 0, full = 0;
    for (guint i = 0; i < w->n; i++) {
      const Sample *s = w->sample[i];
      if (pass == PASS_FORWARD ? s->attention.forward : s->attention.backward)
        *(s->attention.shape.causal ? &causal : &full) += 1;
    }
    q[pass * A_PASS + A_CAUSAL].fixed = causal < 3 || full < 3;
  }
}

/* Head dimensions without samples keep their ratio to the measured ones of the pass. */
static void
attention_rest (const FitParam *q, double *v)
{
  for (int pass = 0; pass < 2; pass++, q += A_PASS, v += A_PASS) {
    double log_sum = 0;
    guint n = 0;
    for (int d = A_EFF; d < A_EFF + ATTN_N_DIMS; d++)
      if (!q[d].fixed) {
        log_sum += log (v[d] / q[d].start);
        n++;
      }
    for (int d = A_EFF; d < A_EFF + ATTN_N_DIMS; d++)
      if (q[d].fixed && n > 0)
        v[d] = CLAMP (q[d].start * exp (log_sum / n), 0.01, 1);
  }
}

static gboolean
is_attention (const FitWork *w, const Sample *s)
{
  const AttnShape *a = &s->attention.shape;
  return s->kind == SAMPLE_ATTENTION && s->attention.kernel == w->kernel && a->batch > 0 &&
         a->heads > 0 && a->kv_heads > 0 && a->seq_q > 0 && a->seq_kv > 0 &&
         w->g.peak_flops[a->dtype] > 0;
}

static gboolean
fit_attention (GpuProfile *g, AttnKernel kernel, const SampleSet *set, const FitOptions *o,
               FitReport *r)
{
  g_auto (FitWork) w = {.kernel = kernel, .g = *g};
  FitParam q[A_COUNT];
  double best[A_COUNT], lo[A_COUNT], hi[A_COUNT];
  AttnKernel like = gpu_attention_kernel (g, kernel);
  fit_work_init (&w, g, set, is_attention);
  if (w.n < FEWEST_ATTENTION || like == ATTN_UNFUSED) {
    if (w.n > 0)
      fit_report_warn (r, "attention %s: %s (%u samples; at least %d)", attn_kernel_names[kernel],
                       like == ATTN_UNFUSED ? "the profile has no kernel to start from"
                                            : "too few for a fit",
                       w.n, (int)FEWEST_ATTENTION);
    return FALSE;
  }
  w.g.attn[kernel] = g->attn[like];
  attention_params (&w.g.attn[kernel], q);
  attention_fix_mask (&w, q);
  for (guint i = 0; i < w.n; i++)
    w.x[i] = (double)w.sample[i]->attention.shape.seq_kv;
  g_autofree char *name = g_strdup_printf ("attention %s", attn_kernel_names[kernel]);
  FitProblem f = fit_problem_of (&w, q, A_COUNT, attention_model);
  FitGroup *grp = fit_group (&f, name, w.x, "sequence length", o, r, best, lo, hi);
  attention_rest (q, best);
  g->attn[kernel] = g->attn[like];
  attention_set (&g->attn[kernel], best);
  for (guint j = 0; j < A_COUNT; j++) {
    double unit = j % A_PASS == A_FLOOR ? 1e6 : 1;
    if (q[j].fixed)
      continue;
    g_autofree char *path =
        g_strdup_printf ("attention.kernels.%s.%s.%s", attn_kernel_names[kernel],
                         j < A_PASS ? "forward" : "backward", q[j].name);
    fit_report_number (r, path, best[j] * unit, lo[j] * unit, hi[j] * unit, grp);
  }
  return TRUE;
}

void
fit_device_facts (GpuProfile *g, const DeviceFacts *f)
{
  const struct {
    double said, unit, *field;
  } facts[] = {{f->tdp_W, 1, &g->tdp_w},          {f->sm_count, 1, &g->sm_count},
               {f->boost_MHz, 1e6, &g->boost_Hz}, {f->memory_GiB, 1073741824.0, &g->memory_bytes},
               {f->hbm_GBps, 1e9, &g->hbm_Bps},   {f->nvlink_GBps, 1e9, &g->nvlink_Bps},
               {f->pcie_GBps, 1e9, &g->pcie_Bps}};
  for (gsize i = 0; i < G_N_ELEMENTS (facts); i++)
    if (facts[i].said > 0)
      *facts[i].field = facts[i].said * facts[i].unit;
  if (f->scaleup_gpus > 0)
    g->scaleup_domain = (int)f->scaleup_gpus;
  for (int t = 0; t < DT_COUNT; t++)
    if (f->peak_TFLOPs[t] > 0)
      g->peak_flops[t] = f->peak_TFLOPs[t] * 1e12;
}

gboolean
fit_device (GpuProfile *g, const SampleSet *s, const FitOptions *o, FitReport *r, GError **error)
{
  gboolean any = FALSE;
  fit_device_facts (g, &s->facts);
  if (!gpu_profile_prepare (g, error))
    return FALSE;
  any |= fit_memory (g, s, o, r);
  for (int t = 0; t < DT_COUNT; t++)
    any |= fit_gemm (g, (DType)t, s, o, r);
  for (int k = ATTN_FLASH1; k < ATTN_COUNT; k++)
    any |= fit_attention (g, (AttnKernel)k, s, o, r);
  any |= fit_launch (g, s, r);
  any |= fit_copies (g, s, o, r);
  fit_note_overlap (s, r);
  fit_report_no_place (s, r);
  if (!any) {
    g_set_error (error, SAMPLES_ERROR, SAMPLES_ERROR_TOO_FEW,
                 "no group of samples is large enough for a fit (found %u samples in all; a GEMM "
                 "type needs %d, an attention kernel %d, memory-bound kernels %d)",
                 s->samples->len, (int)FEWEST_SQUARES, (int)FEWEST_ATTENTION, (int)FEWEST_MEMORY);
    return FALSE;
  }
  return gpu_profile_prepare (g, error);
}
