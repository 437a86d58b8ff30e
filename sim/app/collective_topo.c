#include "collective_topo.h"

#include <math.h>
#include <string.h>

#include "cli.h"
#include "fabric.h"
#include "import_topo.h"
#include "read_topo.h"
#include "text.h"

#define MAX_JOBS 64

struct CollTopo {
  Topo *topo;
  char *name;
  const Fabric *f;
  CollGroup group;
  CollFidelity fidelity;
  TopoRouteMode routing;
  gboolean hierarchical;
  guint64 seed;
  int channels;
  guint jobs;
  guint32 *gpu; /* jobs * ranks */
};

void
coll_topo_free (CollTopo *t)
{
  if (t == NULL)
    return;
  topo_free (t->topo);
  g_free (t->name);
  g_free (t->gpu);
  g_free (t);
}

const char *
coll_topo_name (const CollTopo *t)
{
  return t->name;
}

static gboolean
usage (GError **error, const char *option, const char *found, const char *allowed)
{
  g_autofree char *shown = text_printable (found, -1, 60);
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "collective: %s (found \"%s\"; allowed: %s)",
               option, shown, allowed);
  return FALSE;
}

static gboolean
index_of (const char *option, const char *const *names, const char *name, int *out, GError **error)
{
  for (int i = 0; name != NULL && names[i] != NULL; i++)
    if (strcmp (names[i], name) == 0) {
      *out = i;
      return TRUE;
    }
  if (name == NULL)
    return TRUE;
  g_autofree char *all = text_list (names, 20);
  return usage (error, option, name, all);
}

/* A host a line; blank lines and what follows a # do not count. */
static char **
read_hosts (const char *path, GError **error)
{
  gsize len = 0;
  g_autofree char *text = import_load (path, &len, error);
  if (text == NULL)
    return NULL;
  g_autoptr (GStrvBuilder) b = g_strv_builder_new ();
  ImportLines l = {.at = text, .end = text + len};
  for (char *line; (line = import_next_line (&l)) != NULL; g_free (line)) {
    char *hash = strchr (line, '#');
    if (hash != NULL)
      *hash = '\0';
    if (*g_strstrip (line) != '\0')
      g_strv_builder_add (b, line);
  }
  return g_strv_builder_end (b);
}

static gboolean
place (CollTopo *t, const CollTopoSpec *s, GError **error)
{
  static const char *const kinds[] = {"block", "rail", "scattered", NULL};
  guint32 n = (guint32)t->group.ranks;
  int kind = TOPO_PLACE_BLOCK;
  g_auto (GStrv) hosts = NULL;
  if (s->placement != NULL && strchr (s->placement, '/') == NULL &&
      strchr (s->placement, '.') == NULL) {
    if (!index_of ("--placement", kinds, s->placement, &kind, error))
      return FALSE;
  } else if (s->placement != NULL) {
    kind = TOPO_PLACE_HOSTS;
    hosts = read_hosts (s->placement, error);
    if (hosts == NULL)
      return FALSE;
  }
  g_autofree guint8 *used = g_malloc0 (topo_n_gpus (t->topo));
  t->gpu = g_new (guint32, (gsize)n * t->jobs);
  for (guint j = 0; j < t->jobs; j++) {
    TopoPlaceSpec p = {.kind = (TopoPlaceKind)kind,
                       .ranks = n,
                       .ranks_per_node = (guint32)t->group.ranks_per_node,
                       .seed = s->seed + j,
                       .hosts = (const char *const *)hosts};
    if (!topo_place (t->topo, &p, used, t->gpu + (gsize)j * n, error))
      return FALSE;
  }
  return TRUE;
}

CollTopo *
coll_topo_new (const CollTopoSpec *s, const Fabric *f, const CollGroup *g, GError **error)
{
  int fidelity = COLL_FLOW, routing = TOPO_ROUTE_ADAPTIVE;
  g_autofree char *jobs = g_strdup_printf ("%d", s->jobs);
  if (!index_of ("--fidelity", coll_fidelity_names, s->fidelity, &fidelity, error) ||
      !index_of ("--routing", topo_route_names, s->routing, &routing, error))
    return NULL;
  if (s->jobs < 0 || s->jobs > MAX_JOBS) {
    usage (error, "--jobs", jobs, "1 to 64");
    return NULL;
  }
  g_autoptr (TopoPreset) preset = topo_preset_load (s->topology, NULL, NULL, error);
  if (preset == NULL)
    return NULL;
  g_autoptr (CollTopo) t = g_new0 (CollTopo, 1);
  t->jobs = (guint)MAX (1, s->jobs);
  t->name = g_strdup (preset->name);
  /* As many nodes as the topology has, or more where the jobs need them. */
  guint32 need = (guint32)g->nodes * t->jobs;
  t->topo =
      topo_preset_build (preset, preset->net != NULL ? 0 : MAX (need, preset->spec.nodes), error);
  if (t->topo == NULL)
    return NULL;
  t->f = f;
  t->group = *g;
  t->fidelity = (CollFidelity)fidelity;
  t->routing = (TopoRouteMode)routing;
  t->seed = s->seed;
  t->hierarchical = s->hierarchical;
  t->channels = s->channels;
  return place (t, s, error) ? g_steal_pointer (&t) : NULL;
}

static void
on_done (gpointer self, guint64 arg, SimTime when)
{
  ((SimTime *)self)[arg] = when;
}

static CollPlan *
plan_of (CollTopo *t, guint job, CollOp op, CollChoice how, double bytes, GError **error)
{
  const NcclEnv *e = &t->f->env;
  CollPlanSpec s = {.topo = t->topo,
                    .gpu = t->gpu + (gsize)job * (guint)t->group.ranks,
                    .n = (guint32)t->group.ranks,
                    .op = op,
                    .algo = t->hierarchical ? PLAN_HIERARCHICAL : plan_algo_of (op, how.algo),
                    .bytes = (gint64)bytes,
                    .channels = t->channels,
                    .route = {.mode = t->routing, .seed = t->seed, .nic = -1, .no_pxn = e->no_pxn},
                    .costs = coll_costs_from_fabric (t->f, op, &t->group, how, bytes),
                    .cross_nic = nccl_env_crosses (e),
                    .steps = t->fidelity == COLL_STEP};
  if (e->buff_bytes > 0)
    s.slot_bytes = (gint64)(e->buff_bytes / NCCL_BUFF_STEPS);
  return coll_plan_new (&s, error);
}

double
coll_topo_time_s (CollTopo *t, CollOp op, CollChoice how, double bytes, GError **error)
{
  g_autoptr (GPtrArray) plans = g_ptr_array_new_with_free_func ((GDestroyNotify)coll_plan_free);
  for (guint j = 0; j < t->jobs; j++) {
    CollPlan *p = plan_of (t, j, op, how, bytes, error);
    if (p == NULL)
      return 0;
    g_ptr_array_add (plans, p);
  }
  SimTime end[MAX_JOBS] = {0};
  SimOptions o = {.ticks_per_s = SIM_TICKS_PS, .seed = t->seed};
  g_autoptr (SimEngine) eng = sim_engine_new (&o);
  g_autoptr (Net) net = net_flow_new (eng, topo_n_links (t->topo), topo_link_caps (t->topo));
  for (guint j = 0; j < t->jobs; j++)
    coll_run_start (net, g_ptr_array_index (plans, j), t->fidelity, NULL, on_done, end, j);
  return sim_engine_run (eng, error) ? (double)end[0] / SIM_TICKS_PS : 0;
}
