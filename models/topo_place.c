#include "topo_priv.h"

#include "rng.h"

#include <string.h>

const char *const topo_place_names[] = {"block", "rail", "scattered", "hosts", NULL};

/* Free GPUs of a node or host that a job may take, at most `want`; which: receives them. */
static guint32
free_gpus (const Topo *t, const guint8 *used, guint32 node, int host, guint32 want, guint32 *which)
{
  guint32 n = 0, g = 0;
  for (guint i = 0; i < t->node->vertices->len && n < want; i++) {
    const TopoVertex *v = topo_desc_vertex (t->node, i);
    if (v->kind != TOPO_GPU)
      continue;
    guint32 gpu = node * t->gpus + g++;
    if ((host < 0 || v->host == host) && !used[gpu])
      which[n++] = gpu;
  }
  return n;
}

static gboolean
no_room (const TopoPlaceSpec *s, guint32 found, const char *why, GError **error)
{
  g_set_error (error, TOPO_ERROR, TOPO_ERROR_PLACEMENT,
               "placement %s: %u of %u ranks find a GPU (%s)", topo_place_names[s->kind], found,
               s->ranks, why);
  return FALSE;
}

static void
take (guint8 *used, guint32 *gpu, guint32 *n, const guint32 *which, guint32 count)
{
  for (guint32 i = 0; i < count; i++) {
    gpu[(*n)++] = which[i];
    used[which[i]] = TRUE;
  }
}

/* The hosts listed, in their order; one that stands twice gets the next of its GPUs. */
static gboolean
place_hosts (const Topo *t, const TopoPlaceSpec *s, guint8 *used, guint32 *gpu, guint32 *which,
             GError **error)
{
  g_autoptr (GHashTable) index = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint32 h = 0; h < t->nodes * t->hosts; h++)
    g_hash_table_insert (index, t->host_names[h], GUINT_TO_POINTER (h + 1));
  guint32 n = 0, want = s->ranks_per_node > 0 ? s->ranks_per_node : t->gpus;
  for (guint i = 0; s->hosts && s->hosts[i] && n < s->ranks; i++) {
    guint32 h = GPOINTER_TO_UINT (g_hash_table_lookup (index, s->hosts[i]));
    if (h == 0) {
      g_set_error (error, TOPO_ERROR, TOPO_ERROR_PLACEMENT, "placement hosts: no host is called %s",
                   s->hosts[i]);
      return FALSE;
    }
    h--;
    guint32 m =
        free_gpus (t, used, h / t->hosts, (int)(h % t->hosts), MIN (want, s->ranks - n), which);
    take (used, gpu, &n, which, m);
  }
  return n == s->ranks ? TRUE
                       : no_room (s, n, "more hosts in the list, or free GPUs on them", error);
}

static gboolean
place_nodes (const Topo *t, const TopoPlaceSpec *s, guint8 *used, guint32 *gpu, guint32 *which,
             GError **error)
{
  guint32 want = s->ranks_per_node > 0 ? MIN (s->ranks_per_node, t->gpus) : t->gpus, n = 0;
  g_autofree guint32 *order = g_new (guint32, t->nodes);
  for (guint32 i = 0; i < t->nodes; i++)
    order[i] = i;
  SimRng rng = sim_rng_stream (s->seed, 0, "topo.place", 0);
  for (guint32 i = t->nodes; s->kind == TOPO_PLACE_SCATTERED && i > 1; i--) {
    guint32 j = (guint32)sim_rng_below (&rng, i), swap = order[j];
    order[j] = order[i - 1];
    order[i - 1] = swap;
  }
  for (guint32 i = 0; i < t->nodes && n < s->ranks; i++) {
    guint32 ask = MIN (want, s->ranks - n);
    guint32 m = free_gpus (t, used, order[i], -1, ask, which);
    if (m == ask) /* nodes are taken whole, as schedulers give them out */
      take (used, gpu, &n, which, m);
  }
  return n == s->ranks ? TRUE : no_room (s, n, "too few nodes have enough free GPUs", error);
}

/* From blocks to rails: rank r is GPU r / N of node r % N. */
static void
to_rails (guint32 *gpu, guint32 ranks, guint32 per_node)
{
  guint32 nodes = ranks / per_node;
  g_autofree guint32 *block = g_memdup2 (gpu, ranks * sizeof (guint32));
  for (guint32 r = 0; r < ranks; r++)
    gpu[r] = block[r % nodes * per_node + r / nodes];
}

gboolean
topo_place (const Topo *t, const TopoPlaceSpec *s, guint8 *used, guint32 *gpu, GError **error)
{
  g_autofree guint8 *own = g_malloc0 (topo_n_gpus (t));
  g_autofree guint32 *which = g_new (guint32, t->gpus);
  guint32 per_node = s->ranks_per_node > 0 ? MIN (s->ranks_per_node, t->gpus) : t->gpus;
  if (used)
    memcpy (own, used, topo_n_gpus (t));
  if (s->kind == TOPO_PLACE_RAIL && s->ranks > per_node && s->ranks % per_node != 0) {
    g_set_error (error, TOPO_ERROR, TOPO_ERROR_PLACEMENT,
                 "placement rail: %u ranks do not fill nodes of %u GPUs", s->ranks, per_node);
    return FALSE;
  }
  gboolean ok = s->kind == TOPO_PLACE_HOSTS ? place_hosts (t, s, own, gpu, which, error)
                                            : place_nodes (t, s, own, gpu, which, error);
  if (!ok)
    return FALSE;
  if (s->kind == TOPO_PLACE_RAIL && s->ranks > per_node)
    to_rails (gpu, s->ranks, per_node);
  if (used)
    memcpy (used, own, topo_n_gpus (t));
  return TRUE;
}
