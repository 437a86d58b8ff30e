/* What of a device is not its matrix units: memory-bound kernels, launches, copies. */
#include "fit_device_priv.h"

#include <math.h>

/* ---- memory-bound kernels ---- */

enum { M_FLOOR, M_KIND, M_COUNT = M_KIND + MEMK_COUNT + 1 };

static void
memory_model (const double *v, const guint *index, guint n, double *out, gpointer user)
{
  const FitWork *w = user;
  for (guint i = 0; i < n; i++) {
    const Sample *s = w->sample[index[i]];
    out[i] = v[M_FLOOR] + s->memory.bytes / (v[M_KIND + s->memory.kind] * w->g.hbm_Bps);
  }
}

static gboolean
is_memory (const FitWork *w, const Sample *s)
{
  (void)w;
  return s->kind == SAMPLE_MEMORY;
}

gboolean
fit_memory (GpuProfile *g, const SampleSet *set, const FitOptions *o, FitReport *r)
{
  g_auto (FitWork) w = {0};
  FitParam q[M_COUNT];
  double best[M_COUNT], lo[M_COUNT], hi[M_COUNT];
  fit_work_init (&w, g, set, is_memory);
  if (w.n < FEWEST_MEMORY) {
    if (w.n > 0)
      fit_report_warn (r, "memory-bound kernels: %u samples are too few for a fit (at least %d)",
                       w.n, (int)FEWEST_MEMORY);
    return FALSE;
  }
  q[M_FLOOR] = (FitParam){"kernel_floor_us", g->kernel_floor_s, 1e-8, 1e-3, FIT_LOG, FALSE};
  for (int k = 0; k <= MEMK_COUNT; k++) {
    double start = k < MEMK_COUNT             ? g->memk_fraction[k]
                   : g->cast_fp8_fraction > 0 ? g->cast_fp8_fraction
                                              : g->memk_fraction[MEMK_ELEMENTWISE];
    q[M_KIND + k] =
        (FitParam){k < MEMK_COUNT ? memk_names[k] : "cast_fp8", start, 0.002, 1.5, FIT_LOG, FALSE};
  }
  for (guint i = 0; i < w.n; i++)
    w.x[i] = w.sample[i]->memory.bytes;
  FitProblem f = fit_problem_of (&w, q, M_COUNT, memory_model);
  FitGroup *grp = fit_group (&f, "memory-bound kernels", w.x, "bytes", o, r, best, lo, hi);
  g->kernel_floor_s = best[M_FLOOR];
  if (!q[M_FLOOR].fixed)
    fit_report_number (r, "device.kernel_floor_us", 1e6 * best[M_FLOOR], 1e6 * lo[M_FLOOR],
                       1e6 * hi[M_FLOOR], grp);
  for (guint k = 0; k <= MEMK_COUNT; k++) {
    guint j = M_KIND + k;
    if (q[j].fixed)
      continue;
    g_autofree char *path = g_strdup_printf ("memory_fraction.%s", q[j].name);
    fit_report_number (r, path, best[j], lo[j], hi[j], grp);
    *(k < MEMK_COUNT ? &g->memk_fraction[k] : &g->cast_fp8_fraction) = best[j];
  }
  return TRUE;
}

/* ---- launches and copies ---- */

static FitGroup *
simple_group (FitReport *r, const char *name, double *residual, guint n)
{
  FitGroup *g = fit_report_group (r, name);
  fit_stats_of (residual, n, &g->fitted);
  return g;
}

gboolean
fit_launch (GpuProfile *g, const SampleSet *set, FitReport *r)
{
  static const char *const paths[] = {"device.launch_stream_us", "device.launch_graph_us"};
  gboolean any = FALSE;
  for (int how = LAUNCH_STREAM; how <= LAUNCH_HOST; how++) {
    g_autoptr (GArray) v = g_array_new (FALSE, FALSE, sizeof (double));
    double low = G_MAXDOUBLE, high = 0; /* of the repeats, as there is one sample as a rule */
    for (guint i = 0; i < set->samples->len; i++) {
      const Sample *s = &g_array_index (set->samples, Sample, i);
      if (s->kind != SAMPLE_LAUNCH || (int)s->launch != how)
        continue;
      g_array_append_val (v, s->time_s);
      low = MIN (low, s->p10_s > 0 ? s->p10_s : s->time_s);
      high = MAX (high, s->p90_s > 0 ? s->p90_s : s->time_s);
    }
    if (v->len == 0)
      continue;
    double *t = (double *)(void *)v->data, m = fit_median (t, v->len);
    double lo = MIN (low, fit_quantile (t, v->len, 0.1)),
           hi = MAX (high, fit_quantile (t, v->len, 0.9));
    for (guint i = 0; i < v->len; i++)
      t[i] = log (m / t[i]);
    g_autofree char *name = g_strdup_printf ("launch %s", launch_names[how]);
    if (how == LAUNCH_HOST) { /* of the software: its dispatch */
      fit_report_warn (r, "%s: %.2f us each; a number for the software profile, not for this one",
                       name, 1e6 * m);
      continue;
    }
    FitGroup *grp = simple_group (r, name, t, v->len);
    fit_report_number (r, paths[how], 1e6 * m, 1e6 * lo, 1e6 * hi, grp);
    *(how == LAUNCH_STREAM ? &g->launch_stream_s : &g->launch_graph_s) = m;
    any = TRUE;
  }
  return any;
}

/* A copy of bytes: v[0] + bytes / v[1]. */
enum { C_BASE, C_RATE, C_COUNT };

static void
copy_model (const double *v, const guint *index, guint n, double *out, gpointer user)
{
  const FitWork *w = user;
  for (guint i = 0; i < n; i++)
    out[i] = v[C_BASE] + w->sample[index[i]]->copy.bytes / v[C_RATE];
}

static gboolean
is_copy (const FitWork *w, const Sample *s)
{
  return s->kind == SAMPLE_COPY && s->copy.path == w->path;
}

/* TRUE with the rate of a path and its interval. */
static gboolean
fit_copy_path (const GpuProfile *g, const SampleSet *set, CopyPath path, const FitOptions *o,
               FitReport *r, FitGroup **grp, double *rate, double *low, double *high)
{
  g_auto (FitWork) w = {.path = path};
  double best[C_COUNT], lo[C_COUNT], hi[C_COUNT], beta[2];
  g_autofree char *name = g_strdup_printf ("copy %s", copy_names[path]);
  fit_work_init (&w, g, set, is_copy);
  if (w.n < FEWEST_COPY) {
    if (w.n > 0)
      fit_report_warn (r, "%s: %u samples are too few for a fit (at least %d)", name, w.n,
                       (int)FEWEST_COPY);
    return FALSE;
  }
  g_autofree double *x = g_new (double, 2 * w.n);
  for (guint i = 0; i < w.n; i++) {
    x[2 * i] = 1;
    x[2 * i + 1] = w.x[i] = w.sample[i]->copy.bytes;
  }
  if (!fit_linear (x, 2, w.measured, w.n, FIT_HUBER_AT, beta) || !(beta[1] > 0)) {
    fit_report_warn (r, "%s: its samples tell no rate (sizes that differ are needed)", name);
    return FALSE;
  }
  FitParam q[C_COUNT] = {{"base", CLAMP (beta[0], 1e-9, 1), 1e-9, 1, FIT_LOG, FALSE},
                         {"rate", CLAMP (1 / beta[1], 1e3, 1e14), 1e3, 1e14, FIT_LOG, FALSE}};
  FitProblem f = fit_problem_of (&w, q, C_COUNT, copy_model);
  *grp = fit_group (&f, name, w.x, "bytes", o, r, best, lo, hi);
  *rate = best[C_RATE];
  *low = lo[C_RATE];
  *high = hi[C_RATE];
  return TRUE;
}

/* The profile keeps the slower direction between host and device; what copies on the device itself
 * and between two do is said, as a profile of a device has no place for it. */
gboolean
fit_copies (GpuProfile *g, const SampleSet *set, const FitOptions *o, FitReport *r)
{
  double slowest = 0, low = 0, high = 0;
  FitGroup *of = NULL;
  for (int path = COPY_H2D; path < COPY_COUNT; path++) {
    double rate, lo, hi;
    FitGroup *grp;
    if (!fit_copy_path (g, set, (CopyPath)path, o, r, &grp, &rate, &lo, &hi))
      continue;
    if (path > COPY_D2H)
      fit_report_warn (r, "copy %s: %.1f GB/s (%.1f to %.1f); not a number of this profile",
                       copy_names[path], 1e-9 * rate, 1e-9 * lo, 1e-9 * hi);
    else if (of == NULL || rate < slowest) {
      slowest = rate;
      low = lo;
      high = hi;
      of = grp;
    }
  }
  if (of == NULL)
    return FALSE;
  g->pcie_Bps = slowest;
  fit_report_number (r, "device.pcie_GBps", slowest * 1e-9, low * 1e-9, high * 1e-9, of);
  return TRUE;
}

void
fit_note_overlap (const SampleSet *set, FitReport *r)
{
  for (guint i = 0; i < set->samples->len; i++) {
    const Sample *s = &g_array_index (set->samples, Sample, i);
    gboolean seen = FALSE;
    if (s->kind != SAMPLE_OVERLAP)
      continue;
    g_autoptr (GArray) v = g_array_new (FALSE, FALSE, sizeof (double));
    for (guint j = 0; j < set->samples->len; j++) {
      const Sample *t = &g_array_index (set->samples, Sample, j);
      if (t->kind != SAMPLE_OVERLAP || t->overlap.what != s->overlap.what)
        continue;
      seen |= j < i;
      double ratio = t->time_s / t->overlap.alone_s;
      g_array_append_val (v, ratio);
    }
    if (v->len > 0 && !seen)
      fit_report_warn (r,
                       "%s: %.3f times as long (median of %u); a number for the software "
                       "profile, not for this one",
                       s->overlap.what, fit_median ((double *)(void *)v->data, v->len), v->len);
  }
}
