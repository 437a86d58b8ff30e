#include "nccl_env.h"

#include <string.h>

G_DEFINE_QUARK (clustersim - nccl - env - error, nccl_env_error)

enum {
  V_ALGO,
  V_PROTO,
  V_BUFFSIZE,
  V_NTHREADS,
  V_MIN_CTAS,
  V_MAX_CTAS,
  V_MIN_NCHANNELS,
  V_MAX_NCHANNELS,
  V_CROSS_NIC,
  V_PXN_DISABLE,
  V_NVLS_ENABLE,
  V_COLLNET_ENABLE,
  V_COUNT
};
const char *const nccl_env_names[] = {"NCCL_ALGO",
                                      "NCCL_PROTO",
                                      "NCCL_BUFFSIZE",
                                      "NCCL_NTHREADS",
                                      "NCCL_MIN_CTAS",
                                      "NCCL_MAX_CTAS",
                                      "NCCL_MIN_NCHANNELS",
                                      "NCCL_MAX_NCHANNELS",
                                      "NCCL_CROSS_NIC",
                                      "NCCL_PXN_DISABLE",
                                      "NCCL_NVLS_ENABLE",
                                      "NCCL_COLLNET_ENABLE",
                                      NULL};

static gboolean
wrong (GError **error, int var, const char *found, const char *allowed)
{
  g_set_error (error, NCCL_ENV_ERROR, NCCL_ENV_ERROR_VALUE,
               "%s: is no value of it (found \"%.60s\"; allowed: %s)", nccl_env_names[var], found,
               allowed);
  return FALSE;
}

/* Names of NCCL's own lists: "allreduce" for all_reduce. */
static int
op_named (const char *name)
{
  static const char *const ops[] = {"allreduce", "allgather", "reducescatter", "broadcast"};
  for (gsize i = 0; i < G_N_ELEMENTS (ops); i++)
    if (g_ascii_strcasecmp (name, ops[i]) == 0)
      return (int)i;
  return -1;
}

static int
index_of (const char *const *names, const char *name)
{
  for (int i = 0; names[i] != NULL; i++)
    if (g_ascii_strcasecmp (names[i], name) == 0)
      return i;
  return -1;
}

/* "a,b" or "^a,b" to the bits of what is forbidden. */
static gboolean
one_list (int var, const char *text, const char *const *names, guint *forbidden, GError **error)
{
  gboolean but = *text == '^';
  guint named = 0, all = 0;
  g_auto (GStrv) part = g_strsplit (but ? text + 1 : text, ",", -1);
  for (int i = 0; part[i] != NULL; i++) {
    int at = index_of (names, g_strstrip (part[i]));
    if (at < 0) {
      g_autofree char *allowed = g_strjoinv (", ", (char **)names);
      return wrong (error, var, part[i], allowed);
    }
    named |= 1u << at;
  }
  for (int i = 0; names[i] != NULL; i++)
    all |= 1u << i;
  *forbidden = but ? named : all & ~named;
  if (named == 0 || *forbidden == all)
    return wrong (error, var, text, "a list that leaves one");
  return TRUE;
}

/* "ring" for all operations, or "allreduce:tree;allgather:ring" for some. */
static gboolean
lists (int var, const char *text, const char *const *names, guint *forbidden, GError **error)
{
  g_auto (GStrv) part = g_strsplit (text, ";", -1);
  if (*text == '\0')
    return wrong (error, var, text,
                  names == coll_proto_names ? "LL, LL128, Simple" : "Ring, Tree …");
  for (int i = 0; part[i] != NULL; i++) {
    const char *colon = strchr (part[i], ':');
    guint bits = 0;
    if (!one_list (var, colon != NULL ? colon + 1 : part[i], names, &bits, error))
      return FALSE;
    if (colon == NULL) {
      for (int op = 0; op < COLL_COUNT; op++)
        forbidden[op] = bits;
      continue;
    }
    g_autofree char *name = g_strndup (part[i], (gsize)(colon - part[i]));
    int op = op_named (g_strstrip (name));
    if (op < 0)
      return wrong (error, var, name, "allreduce, allgather, reducescatter, broadcast");
    forbidden[op] = bits;
  }
  return TRUE;
}

static gboolean
whole (int var, const char *text, gint64 min, gint64 max, gint64 *out, GError **error)
{
  char *end = NULL;
  *out = g_ascii_strtoll (text, &end, 10);
  if (end != text && *end == '\0' && *out >= min && *out <= max)
    return TRUE;
  g_autofree char *allowed =
      g_strdup_printf ("%" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, min, max);
  return wrong (error, var, text, allowed);
}

static gboolean
set_number (NcclEnv *e, int var, const char *value, GError **error)
{
  static const struct {
    gint64 min, max;
  } range[V_COUNT] = {[V_BUFFSIZE] = {4096, (gint64)1 << 30},
                      [V_NTHREADS] = {64, 512},
                      [V_MIN_CTAS] = {1, 64},
                      [V_MAX_CTAS] = {1, 64},
                      [V_MIN_NCHANNELS] = {1, 64},
                      [V_MAX_NCHANNELS] = {1, 64},
                      [V_CROSS_NIC] = {0, 2},
                      [V_PXN_DISABLE] = {0, 1},
                      [V_NVLS_ENABLE] = {0, 2},
                      [V_COLLNET_ENABLE] = {0, 1}};
  gint64 n = 0;
  if (!whole (var, value, range[var].min, range[var].max, &n, error))
    return FALSE;
  if (var == V_BUFFSIZE)
    e->buff_bytes = (double)n;
  else if (var == V_NTHREADS)
    e->threads = (int)n;
  else if (var == V_MIN_CTAS || var == V_MIN_NCHANNELS)
    e->min_ctas = (int)n;
  else if (var == V_MAX_CTAS || var == V_MAX_NCHANNELS)
    e->max_ctas = (int)n;
  else if (var == V_CROSS_NIC)
    e->cross_nic = (int)n, e->cross_given = TRUE;
  else if (var == V_PXN_DISABLE)
    e->no_pxn = n == 1;
  else if (var == V_NVLS_ENABLE)
    e->no_nvls = n == 0;
  else
    e->collnet = n == 1;
  if (var == V_NTHREADS && (n & (n - 1)) != 0)
    return wrong (error, var, value, "64, 128, 256, 512");
  if (e->min_ctas > 0 && e->max_ctas > 0 && e->min_ctas > e->max_ctas)
    return wrong (error, var, value, "NCCL_MIN_CTAS at most NCCL_MAX_CTAS");
  return TRUE;
}

gboolean
nccl_env_set (NcclEnv *e, const char *name, const char *value, GError **error)
{
  int var = index_of (nccl_env_names, name);
  if (var < 0) {
    g_autofree char *all = g_strjoinv (", ", (char **)nccl_env_names);
    g_set_error (error, NCCL_ENV_ERROR, NCCL_ENV_ERROR_NAME,
                 "%.60s: is no variable that changes a prediction (allowed: %s)", name, all);
    return FALSE;
  }
  if (var == V_ALGO)
    return lists (var, value, coll_algo_names, e->not_algos, error);
  if (var != V_PROTO)
    return set_number (e, var, value, error);
  e->protos_given = TRUE;
  return lists (var, value, coll_proto_names, e->not_protos, error);
}

gboolean
nccl_env_crosses (const NcclEnv *e)
{
  return e->cross_given && e->cross_nic == 1;
}
