/* Rules that follow from several parts of a scenario: experts, recomputation, scale-up domains. */
#include <string.h>

#include "fabric.h"
#include "spec.h"

gint64
spec_expert_tp (const Spec *s)
{
  if (s->parallel.etp > 0)
    return s->parallel.etp;
  return s->software.expert_tp_one ? 1 : MAX (s->parallel.tp, 1);
}

double
spec_moe_load (const Spec *s)
{
  double load = s->train.moe_imbalance > 0 ? s->train.moe_imbalance : s->software.moe_imbalance;
  if (s->train.moe_capacity > 0)
    load = MIN (load, s->train.moe_capacity);
  return MAX (1.0, load);
}

gboolean
spec_recomputes (const Spec *s, RecomputeModule m)
{
  if (s->train.recompute != RECOMPUTE_SELECTIVE)
    return FALSE;
  guint modules = s->train.recompute_modules != 0 ? s->train.recompute_modules : RECOMP_CORE_ATTN;
  return (modules & m) != 0;
}

gboolean
spec_narrow (const Spec *s)
{
  return dtype_bytes (s->train.precision) < 2;
}

gint64
spec_domain_gpus (const Spec *s)
{
  gint64 node = MIN (s->cluster.gpus_per_node, s->cluster.gpus);
  gint64 domain = s->fabric != NULL ? s->fabric->domain_gpus : 0;
  if (node < 1 || domain <= node)
    return node;
  for (gint64 n = domain / node * node; n > node; n -= node)
    if (s->cluster.gpus % n == 0)
      return n;
  return node;
}

/* ---- names of recomputed modules ---- */

static const struct {
  const char *name;
  RecomputeModule bit;
} modules_known[] = {
    {"core_attn", RECOMP_CORE_ATTN},
    {"attention core", RECOMP_CORE_ATTN},
    {"layernorm", RECOMP_LAYERNORM},
    {"norm", RECOMP_LAYERNORM},
    {"moe_act", RECOMP_MOE_ACT},
    {"act", RECOMP_MOE_ACT},
    {"mla_up_proj", RECOMP_MLA_UP},
    {"moe", RECOMP_MOE},
    {"shared_experts", RECOMP_SHARED},
    {"shared_expert", RECOMP_SHARED},
    {"mlp", RECOMP_MLP},
};

static guint
module_bit (const char *name)
{
  for (gsize i = 0; i < G_N_ELEMENTS (modules_known); i++)
    if (strcmp (modules_known[i].name, name) == 0)
      return modules_known[i].bit;
  return 0;
}

gboolean
recompute_parse (const char *text, Recompute *how, guint *modules)
{
  for (int i = 0; recompute_names[i] != NULL; i++)
    if (strcmp (text, recompute_names[i]) == 0) {
      *how = (Recompute)i;
      *modules = 0;
      return TRUE;
    }
  if (!g_str_has_prefix (text, "selective"))
    return FALSE;
  g_autofree char *list = g_strdup (text + strlen ("selective"));
  g_strdelimit (list, ":()", ' ');
  g_auto (GStrv) names = g_strsplit_set (list, ",+", -1);
  guint bits = 0;
  for (gsize i = 0; names[i] != NULL; i++) {
    guint bit = module_bit (g_strstrip (names[i]));
    if (bit == 0)
      return FALSE;
    bits |= bit;
  }
  if (bits == 0)
    return FALSE;
  *how = RECOMPUTE_SELECTIVE;
  *modules = bits;
  return TRUE;
}

char *
spec_recompute_text (const Spec *s)
{
  guint modules = s->train.recompute == RECOMPUTE_SELECTIVE ? s->train.recompute_modules : 0;
  g_autoptr (GString) text = g_string_new (recompute_names[s->train.recompute]);
  guint told = 0;
  for (gsize i = 0; i < G_N_ELEMENTS (modules_known); i++) {
    guint bit = modules_known[i].bit;
    if (!(modules & bit) || (told & bit))
      continue;
    g_string_append_printf (text, "%s%s", told == 0 ? " (" : ", ", modules_known[i].name);
    told |= bit;
  }
  if (told != 0)
    g_string_append_c (text, ')');
  return g_string_free (g_steal_pointer (&text), FALSE);
}

/* ---- experts ---- */

static gboolean refuse (const char *key_name, const char **key, GError **error, const char *format,
                        ...) G_GNUC_PRINTF (4, 5);

static gboolean
refuse (const char *key_name, const char **key, GError **error, const char *format, ...)
{
  va_list ap;
  va_start (ap, format);
  g_autofree char *text = g_strdup_vprintf (format, ap);
  va_end (ap);
  if (key != NULL)
    *key = key_name;
  g_set_error_literal (error, SPEC_ERROR, SPEC_ERROR_INCONSISTENT, text);
  return FALSE;
}

/* Largest value up to v, and smallest above it, that divides n: "4 or 8". */
static char *
nearest (gint64 n, gint64 v)
{
  gint64 lo = CLAMP (v, 1, n), hi = MAX (v + 1, 1);
  while (n % lo != 0)
    lo--;
  while (hi < n && n % hi != 0)
    hi++;
  if (hi > n)
    return g_strdup_printf ("%" G_GINT64_FORMAT, lo);
  return g_strdup_printf ("%" G_GINT64_FORMAT " or %" G_GINT64_FORMAT, lo, hi);
}

static gboolean
check_dense_model (const Spec *s, const char **key, GError **error)
{
  if (s->parallel.ep > 1)
    return refuse ("parallel.ep", key, error,
                   "ep %" G_GINT64_FORMAT " needs a mixture-of-experts model (allowed: 1)",
                   s->parallel.ep);
  if (s->parallel.etp > 1)
    return refuse ("parallel.etp", key, error,
                   "etp %" G_GINT64_FORMAT " needs a mixture-of-experts model (allowed: 1)",
                   s->parallel.etp);
  return TRUE;
}

static gboolean
check_expert_groups (const Spec *s, const char **key, GError **error)
{
  const ParallelSpec *p = &s->parallel;
  gint64 ranks = p->tp * p->cp * p->dp, etp = spec_expert_tp (s);
  if (s->model.num_experts % p->ep != 0) {
    g_autofree char *near_values = nearest (s->model.num_experts, p->ep);
    return refuse ("parallel.ep", key, error,
                   "%" G_GINT64_FORMAT " experts are not divisible by ep %" G_GINT64_FORMAT
                   " (nearest that divides: %s)",
                   s->model.num_experts, p->ep, near_values);
  }
  if (s->model.moe_ffn_hidden % etp != 0) {
    g_autofree char *near_values = nearest (s->model.moe_ffn_hidden, etp);
    return refuse ("parallel.etp", key, error,
                   "moe_ffn_hidden %" G_GINT64_FORMAT " is not divisible by etp %" G_GINT64_FORMAT
                   " (nearest that divides: %s)",
                   s->model.moe_ffn_hidden, etp, near_values);
  }
  if (etp > ranks || ranks % etp != 0) {
    g_autofree char *near_values = nearest (ranks, etp);
    return refuse ("parallel.etp", key, error,
                   "etp %" G_GINT64_FORMAT " does not divide the tp x cp x dp = %" G_GINT64_FORMAT
                   " ranks of a stage (nearest that divides: %s)",
                   etp, ranks, near_values);
  }
  if (ranks / etp % p->ep != 0) {
    g_autofree char *near_values = nearest (ranks / etp, p->ep);
    return refuse ("parallel.ep", key, error,
                   "ep %" G_GINT64_FORMAT " x etp %" G_GINT64_FORMAT
                   " does not divide the tp x cp x dp = %" G_GINT64_FORMAT
                   " ranks of a stage (nearest ep: %s)",
                   p->ep, etp, ranks, near_values);
  }
  return TRUE;
}

gboolean
spec_check_experts (const Spec *s, const char **key, GError **error)
{
  const ParallelSpec *p = &s->parallel;
  if (s->model.num_experts == 0)
    return check_dense_model (s, key, error);
  if (!check_expert_groups (s, key, error))
    return FALSE;
  if (p->tp > 1 && !p->sequence_parallel && spec_expert_tp (s) != p->tp)
    return refuse ("parallel.etp", key, error,
                   "without sequence parallelism every tp rank holds all tokens, so etp must be tp "
                   "%" G_GINT64_FORMAT " (found %" G_GINT64_FORMAT "), or sequence_parallel true",
                   p->tp, spec_expert_tp (s));
  if (s->train.moe_imbalance != 0 && s->train.moe_imbalance < 1)
    return refuse (
        "train.moe_imbalance", key, error,
        "moe_imbalance is the load of the busiest rank over the mean (found %g; allowed: 1 "
        "and more)",
        s->train.moe_imbalance);
  if (s->train.moe_capacity != 0 && s->train.moe_capacity < 1)
    return refuse (
        "train.moe_capacity", key, error,
        "a capacity under the mean load drops tokens even when the routing is even (found "
        "%g; allowed: 1 and more)",
        s->train.moe_capacity);
  return TRUE;
}
