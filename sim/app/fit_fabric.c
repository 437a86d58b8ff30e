#include "fit_fabric.h"

#include "coll_cost.h"
#include "nccl_tuner.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { FEWEST = 4 };

/* A number of a fabric: its place in the JSON form, and the field with the factor to its unit
 * (negative: the field is seconds per byte and the key a rate). */
typedef struct {
  const char *path;
  size_t offset;
  double unit, min, max; /* min, max: of the value in the file */
} Knob;

#define US        1e-6
#define GBPS      1e9
#define PER_GBPS  (-1e9)
#define MIB       1048576.0
#define AT(field) offsetof (Fabric, field)
#define T_MAX     1e5
#define RATE_MIN  1e-5
#define RATE_MAX  1e4

static const Knob knobs[] = {
    {"node.ring.simple.base_us", AT (ring[PROTO_SIMPLE].base_s), US, 0.01, T_MAX},
    {"node.ring.simple.hop_us", AT (ring[PROTO_SIMPLE].hop_s), US, 0.01, T_MAX},
    {"node.ring.simple.bus_GBps", AT (ring[PROTO_SIMPLE].bus_Bps), GBPS, RATE_MIN, RATE_MAX},
    {"node.ring.simple.ramp_us", AT (ramp_s), US, 0.01, T_MAX},
    {"node.ring.simple.ramp_MiB", AT (ramp_bytes), MIB, 1e-3, 1e3},
    {"node.ring.simple.reduce_copy_GBps", AT (reduce_copy_s_per_byte), PER_GBPS, 1, 1e5},
    {"node.ring.simple.gather_copy_GBps", AT (gather_copy_s_per_byte), PER_GBPS, 1, 1e5},
    {"node.ring.ll.base_us", AT (ring[PROTO_LL].base_s), US, 0.01, T_MAX},
    {"node.ring.ll.hop_us", AT (ring[PROTO_LL].hop_s), US, 0.01, T_MAX},
    {"node.ring.ll.bus_GBps", AT (ring[PROTO_LL].bus_Bps), GBPS, RATE_MIN, RATE_MAX},
    {"node.ring.ll128.base_us", AT (ring[PROTO_LL128].base_s), US, 0.01, T_MAX},
    {"node.ring.ll128.hop_us", AT (ring[PROTO_LL128].hop_s), US, 0.01, T_MAX},
    {"node.ring.ll128.bus_GBps", AT (ring[PROTO_LL128].bus_Bps), GBPS, RATE_MIN, RATE_MAX},
    {"node.nvls.base_us", AT (nvls_curve.base_s), US, 0.01, T_MAX},
    {"node.nvls.rate_GBps", AT (nvls_curve.Bps), GBPS, RATE_MIN, RATE_MAX},
    {"node.nvls.ramp_us", AT (nvls_curve.ramp_s), US, 0.01, T_MAX},
    {"node.nvls.ramp_MiB", AT (nvls_curve.ramp_bytes), MIB, 1e-3, 1e3},
    {"node.nvlstree.base_us", AT (nvlstree.base_s), US, 0.01, T_MAX},
    {"node.nvlstree.rate_GBps", AT (nvlstree.Bps), GBPS, RATE_MIN, RATE_MAX},
    {"node.nvlstree.ramp_us", AT (nvlstree.ramp_s), US, 0.01, T_MAX},
    {"node.nvlstree.ramp_MiB", AT (nvlstree.ramp_bytes), MIB, 1e-3, 1e3},
    {"node.alltoall.base_us", AT (a2a.base_s), US, 0.01, T_MAX},
    {"node.alltoall.peer_us", AT (a2a.hop_s), US, 0.001, T_MAX},
    {"node.alltoall.rate_GBps", AT (a2a.Bps), GBPS, RATE_MIN, RATE_MAX},
    {"node.alltoall.ramp_us", AT (a2a.ramp_s), US, 0.01, T_MAX},
    {"node.alltoall.ramp_MiB", AT (a2a.ramp_bytes), MIB, 1e-3, 1e3},
    {"node.alltoall.copy_GBps", AT (a2a_copy_s_per_byte), PER_GBPS, 1, 1e5},
    {"node.p2p.base_us", AT (p2p.base_s), US, 0.01, T_MAX},
    {"node.p2p.rate_GBps", AT (p2p.Bps), GBPS, RATE_MIN, RATE_MAX},
    {"network.efficiency", AT (efficiency), 1, 0.02, 1},
    {"network.ll_efficiency", AT (ll_efficiency), 1, 0.02, 1},
    {"network.ll128_efficiency", AT (ll128_efficiency), 1, 0.02, 1},
    {"network.tree_efficiency", AT (tree_efficiency), 1, 0.02, 1},
    {"network.nvlstree_efficiency", AT (nvlstree_efficiency), 1, 0.02, 1},
    {"network.pat_efficiency", AT (pat_efficiency), 1, 0.02, 1},
    {"network.alltoall_efficiency", AT (a2a_efficiency), 1, 0.02, 1},
    {"network.base_us", AT (net_base_s), US, 0.01, T_MAX},
    {"network.hop_us.simple", AT (net_hop_s[PROTO_SIMPLE]), US, 0.01, T_MAX},
    {"network.hop_us.ll", AT (net_hop_s[PROTO_LL]), US, 0.01, T_MAX},
    {"network.hop_us.ll128", AT (net_hop_s[PROTO_LL128]), US, 0.01, T_MAX},
    {"network.nvlstree_hop_us", AT (nvlstree.hop_s), US, 0.01, T_MAX},
    {"network.alltoall_peer_us", AT (a2a_net_hop_s), US, 0.001, T_MAX},
    {"network.pat_rank_us", AT (pat_rank_s), US, 0.001, T_MAX},
    {"network.ramp_us", AT (net_ramp_s), US, 0.01, T_MAX},
    {"network.p2p.base_us", AT (net_p2p.base_s), US, 0.01, T_MAX},
    {"network.p2p.ramp_us", AT (net_p2p.ramp_s), US, 0.01, T_MAX},
};
enum { N_KNOBS = G_N_ELEMENTS (knobs) };

typedef struct {
  Fabric *f; /* changed while it is fitted */
  const Sample **sample;
  CollChoice *how; /* as stated or as planned */
  double *measured, *weight, *x;
  guint n;
  gboolean like_simple;
} Work;

static double *
field_of (Fabric *f, const Knob *k)
{
  return (double *)(void *)((char *)f + k->offset);
}

static double
knob_get (Fabric *f, const Knob *k)
{
  double v = *field_of (f, k);
  if (k->unit > 0)
    return v / k->unit;
  return v > 0 ? 1 / (v * -k->unit) : 0;
}

static void
knob_set (Fabric *f, const Knob *k, double v)
{
  *field_of (f, k) = k->unit > 0 ? v * k->unit : 1 / (v * -k->unit);
}

/* One protocol: see fit_fabric.h. */
static void
spread_simple (Fabric *f)
{
  for (int p = 0; p < PROTO_SIMPLE; p++) {
    f->ring[p] = f->ring[PROTO_SIMPLE];
    f->net_hop_s[p] = f->net_hop_s[PROTO_SIMPLE];
  }
  f->ll_efficiency = f->ll128_efficiency = f->efficiency;
}

static void
fabric_model (const double *v, const guint *index, guint n, double *out, gpointer user)
{
  Work *w = user;
  for (guint j = 0; j < N_KNOBS; j++)
    if (v[j] > 0)
      knob_set (w->f, &knobs[j], v[j]);
  if (w->like_simple)
    spread_simple (w->f);
  for (guint i = 0; i < n; i++) {
    const Sample *s = w->sample[index[i]];
    out[i] = coll_algo_time_s (w->f, s->coll.op, &s->coll.group, w->how[index[i]], s->coll.bytes);
  }
}

/* Ranks within one scale-up domain are one node, however many trays they sit in. */
static CollGroup
group_on (const Fabric *f, const CollGroup *g)
{
  CollGroup out = *g;
  if (f->domain_gpus > 8 && g->ranks <= f->domain_gpus)
    out = (CollGroup){g->ranks, g->ranks, 1, g->sharers, {0}};
  return out;
}

/* Samples of one shape, operation and version weigh together what any other set does; below 64 KiB
 * the harness counts as much as the fabric, so those weigh a third. */
static void
weigh (Work *w)
{
  g_autoptr (GHashTable) alike_of = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GPtrArray) keys = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < w->n; i++) {
    const Sample *a = w->sample[i];
    char *key = g_strdup_printf ("%d %d %d %d %d %d", (int)a->coll.op, a->coll.group.ranks,
                                 a->coll.group.nodes, a->coll.version, (int)a->coll.how.algo,
                                 (int)a->coll.how.proto);
    guint had = GPOINTER_TO_UINT (g_hash_table_lookup (alike_of, key));
    g_hash_table_replace (alike_of, g_strdup (key), GUINT_TO_POINTER (had + 1));
    g_ptr_array_add (keys, key);
  }
  for (guint i = 0; i < w->n; i++) {
    const Sample *a = w->sample[i];
    guint alike = GPOINTER_TO_UINT (g_hash_table_lookup (alike_of, keys->pdata[i]));
    w->weight[i] = (a->coll.bytes < 65536 ? 1.0 / 3 : 1) / alike;
    w->x[i] = a->coll.bytes;
  }
}

static void
work_init (Work *w, Fabric *f, const SampleSet *set, GPtrArray *copies, FitReport *r)
{
  guint n = set->samples->len, no_network = 0;
  *w = (Work){.f = f};
  w->sample = g_new (const Sample *, MAX (n, 1));
  for (guint i = 0; i < n; i++) {
    const Sample *s = &g_array_index (set->samples, Sample, i);
    if (s->kind != SAMPLE_COLL)
      continue;
    Sample *copy = g_memdup2 (s, sizeof *s);
    g_ptr_array_add (copies, copy);
    copy->coll.group = group_on (f, &s->coll.group);
    if (copy->coll.group.nodes > 1 && !(f->nics > 0))
      no_network++;
    else
      w->sample[w->n++] = copy;
  }
  if (no_network > 0)
    fit_report_warn (r, "%u samples cross nodes and the fabric has no network: passed over",
                     no_network);
  w->how = g_new (CollChoice, MAX (w->n, 1));
  w->measured = g_new (double, MAX (w->n, 1));
  w->weight = g_new (double, MAX (w->n, 1));
  w->x = g_new (double, MAX (w->n, 1));
  int version = f->nccl_version;
  for (guint i = 0; i < w->n; i++) {
    const Sample *s = w->sample[i];
    NcclPlan plan;
    f->nccl_version = s->coll.version > 0 ? s->coll.version : version;
    nccl_plan_init (&plan, f, s->coll.op, &s->coll.group);
    w->how[i] = nccl_plan_choose (&plan, s->coll.bytes, s->coll.how);
    w->measured[i] = s->time_s;
  }
  f->nccl_version = version;
  weigh (w);
}

static void
work_clear (Work *w)
{
  g_free (w->sample);
  g_free (w->how);
  g_free (w->measured);
  g_free (w->weight);
  g_free (w->x);
}

/* What no sample of its own decides follows the ring where there is one protocol. */
static void
spread_rest (Fabric *f, const FitParam *q)
{
  for (guint j = 0; j < N_KNOBS; j++)
    if (q[j].fixed && (strcmp (knobs[j].path, "network.tree_efficiency") == 0 ||
                       strcmp (knobs[j].path, "network.nvlstree_efficiency") == 0 ||
                       strcmp (knobs[j].path, "network.pat_efficiency") == 0 ||
                       strcmp (knobs[j].path, "network.alltoall_efficiency") == 0))
      *field_of (f, &knobs[j]) = f->efficiency;
}

static void
report_numbers (Fabric *f, gboolean like_simple, const FitParam *q, const double *lo,
                const double *hi, const FitGroup *grp, FitReport *r)
{
  for (guint j = 0; j < N_KNOBS; j++) {
    const char *path = knobs[j].path;
    double v = knob_get (f, &knobs[j]);
    gboolean follows =
        like_simple && (strstr (path, ".ll") != NULL || strstr (path, "_eff") != NULL);
    if (!q[j].fixed)
      fit_report_number (r, path, v, lo[j], hi[j], grp);
    else if (follows && v > 0 && v != q[j].start)
      fit_report_number (r, path, v, v, v, grp);
  }
}

gboolean
fit_fabric (Fabric *f, const SampleSet *s, gboolean like_simple, const FitOptions *o, FitReport *r,
            GError **error)
{
  FitParam q[N_KNOBS];
  double best[N_KNOBS], lo[N_KNOBS], hi[N_KNOBS];
  g_autoptr (GPtrArray) copies = g_ptr_array_new_with_free_func (g_free);
  Work w;
  work_init (&w, f, s, copies, r);
  if (w.n < FEWEST) {
    g_set_error (error, SAMPLES_ERROR, SAMPLES_ERROR_TOO_FEW,
                 "%u timings of collectives are too few for a fabric (at least %d)", w.n,
                 (int)FEWEST);
    work_clear (&w);
    return FALSE;
  }
  w.like_simple = like_simple;
  for (guint j = 0; j < N_KNOBS; j++) {
    double v = knob_get (f, &knobs[j]);
    q[j] = (FitParam){knobs[j].path, v, knobs[j].min, knobs[j].max, FIT_LOG, !(v > 0)};
    if (v > 0)
      q[j].start = CLAMP (v, knobs[j].min, knobs[j].max);
  }
  FitProblem p = {q, N_KNOBS, w.measured, w.weight, w.n, fabric_model, &w, 0.05};
  FitGroup *grp = fit_group (&p, "collectives", w.x, "bytes", o, r, best, lo, hi);
  for (guint j = 0; j < N_KNOBS; j++)
    if (best[j] > 0)
      knob_set (f, &knobs[j], best[j]);
  if (like_simple) {
    spread_simple (f);
    spread_rest (f, q);
  }
  fit_report_no_place (s, r);
  report_numbers (f, like_simple, q, lo, hi, grp, r);
  fabric_changed (f);
  work_clear (&w);
  return TRUE;
}
