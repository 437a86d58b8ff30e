#include "fit_profile.h"
#include "store.h"
#include "text.h"

#include <string.h>

/* ---- text in the form of the shipped files ---- */

static void
put_number (GString *out, double v)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  for (int digits = 6; digits <= 17; digits++) { /* the shortest that reads back the same */
    g_autofree char *format = g_strdup_printf ("%%.%dg", digits);
    g_ascii_formatd (text, sizeof text, format, v);
    if (g_ascii_strtod (text, NULL) == v)
      break;
  }
  g_string_append (out, text);
}

static void
put_string (GString *out, const char *s)
{
  g_string_append_c (out, '"');
  for (; *s != '\0'; s++) {
    if (*s == '"' || *s == '\\')
      g_string_append_c (out, '\\');
    if ((guchar)*s < 0x20)
      g_string_append_printf (out, "\\u%04x", (guint)(guchar)*s);
    else
      g_string_append_c (out, *s);
  }
  g_string_append_c (out, '"');
}

/* A number with its origin, or an array of plain values: one line. */
static gboolean
is_short (const cJSON *n)
{
  const cJSON *c;
  if (cJSON_IsObject (n) && cJSON_GetObjectItemCaseSensitive (n, "value") != NULL)
    return TRUE;
  if (!cJSON_IsArray (n))
    return FALSE;
  cJSON_ArrayForEach (c, n) if (cJSON_IsArray (c) || cJSON_IsObject (c)) return FALSE;
  return TRUE;
}

static void put_value (GString *out, const cJSON *n, guint depth);

static void
put_members (GString *out, const cJSON *n, guint depth, gboolean one_line)
{
  const cJSON *c;
  gboolean object = cJSON_IsObject (n), first = TRUE;
  g_string_append_c (out, object ? '{' : '[');
  cJSON_ArrayForEach (c, n)
  {
    if (!first)
      g_string_append (out, one_line ? ", " : ",");
    if (!one_line)
      g_string_append_printf (out, "\n%*s", (int)(2 * depth + 2), "");
    else if (first && object)
      g_string_append_c (out, ' ');
    if (object) {
      put_string (out, c->string);
      g_string_append (out, ": ");
    }
    put_value (out, c, depth + 1);
    first = FALSE;
  }
  if (!first && !one_line)
    g_string_append_printf (out, "\n%*s", (int)(2 * depth), "");
  else if (!first && object)
    g_string_append_c (out, ' ');
  g_string_append_c (out, object ? '}' : ']');
}

static void
put_value (GString *out, const cJSON *n, guint depth)
{
  if (cJSON_IsObject (n) || cJSON_IsArray (n))
    put_members (out, n, depth, is_short (n));
  else if (cJSON_IsString (n))
    put_string (out, n->valuestring);
  else if (cJSON_IsNumber (n))
    put_number (out, n->valuedouble);
  else
    g_string_append (out, cJSON_IsTrue (n) ? "true" : cJSON_IsFalse (n) ? "false" : "null");
}

char *
fit_profile_text (JsonDoc *doc)
{
  GString *out = g_string_new (NULL);
  JsonRef root = json_root (doc);
  put_value (out, root.node, 0);
  g_string_append_c (out, '\n');
  return g_string_free (out, FALSE);
}

/* ---- changing the document ---- */

static gboolean
put_sourced (JsonDoc *doc, const char *path, double value, const char *kind, const char *source,
             GError **error)
{
  g_autoptr (GString) text = g_string_new ("{ \"value\": ");
  put_number (text, value);
  g_string_append_printf (text, ", \"kind\": \"%s\", \"source\": ", kind);
  put_string (text, source);
  g_string_append (text, " }");
  return json_doc_set (doc, path, text->str, error);
}

static gboolean
put_text (JsonDoc *doc, const char *path, const char *value, GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);
  put_string (text, value);
  return json_doc_set (doc, path, text->str, error);
}

typedef struct {
  char *path, *source;
  double value;
} Leaf;

static void
leaf_free (gpointer p)
{
  Leaf *l = p;
  g_free (l->path);
  g_free (l->source);
  g_free (l);
}

/* Every number with its origin below n, by its dotted path. */
static void
collect (const cJSON *n, const char *path, GPtrArray *leaves)
{
  const cJSON *v = cJSON_GetObjectItemCaseSensitive (n, "value"),
              *s = cJSON_GetObjectItemCaseSensitive (n, "source"), *c;
  if (cJSON_IsNumber (v) && cJSON_IsString (s)) {
    Leaf *l = g_new (Leaf, 1);
    *l = (Leaf){g_strdup (path), g_strdup (s->valuestring), v->valuedouble};
    g_ptr_array_add (leaves, l);
    return;
  }
  if (!cJSON_IsObject (n))
    return;
  cJSON_ArrayForEach (c, n)
  {
    g_autofree char *below =
        *path != '\0' ? g_strdup_printf ("%s.%s", path, c->string) : g_strdup (c->string);
    collect (c, below, leaves);
  }
}

gboolean
fit_profile_rename (JsonDoc *doc, const char *base, const char *name, const char *const *aliases,
                    GError **error)
{
  g_autoptr (GPtrArray) leaves = g_ptr_array_new_with_free_func (leaf_free);
  JsonRef root = json_root (doc);
  if (strcmp (base, name) == 0)
    return TRUE;
  collect (root.node, "", leaves);
  for (guint i = 0; i < leaves->len; i++) {
    const Leaf *l = leaves->pdata[i];
    g_autofree char *source = g_strdup_printf ("as %s: %s", base, l->source);
    if (!put_sourced (doc, l->path, l->value, "assumed", source, error))
      return FALSE;
  }
  g_autofree char *note =
      g_strdup_printf ("Fitted by clustersim; what the samples do not say is that of %s.", base);
  json_doc_remove (doc, "aliases");
  if (!put_text (doc, "name", name, error) || !put_text (doc, "note", note, error))
    return FALSE;
  if (aliases == NULL || aliases[0] == NULL)
    return TRUE;
  g_autoptr (GString) list = g_string_new ("[");
  for (guint i = 0; aliases[i] != NULL; i++) {
    if (i > 0)
      g_string_append (list, ", ");
    put_string (list, aliases[i]);
  }
  g_string_append_c (list, ']');
  return json_doc_set (doc, "aliases", list->str, error);
}

char *
fit_profile_source (char **files, const char *said, const SampleSet *s)
{
  g_autoptr (GString) out = g_string_new ("clustersim fit of ");
  if (said != NULL)
    g_string_append (out, said);
  for (guint i = 0; said == NULL && files[i] != NULL; i++) {
    g_autofree char *base = g_path_get_basename (files[i]);
    g_string_append_printf (out, "%s%s", i > 0 ? ", " : "", base);
  }
  if (s->first_date != NULL && strcmp (s->first_date, s->last_date) != 0)
    g_string_append_printf (out, " (measured %s to %s)", s->first_date, s->last_date);
  else if (s->first_date != NULL)
    g_string_append_printf (out, " (measured %s)", s->first_date);
  return g_string_free (g_steal_pointer (&out), FALSE);
}

static char *
number_source (const FitNumber *n, const char *source)
{
  return g_strdup_printf ("%s: %u samples, median error %.1f %%, 0.8 of fits from %.4g to %.4g",
                          source, n->n, 100 * n->median_error, n->lo, n->hi);
}

gboolean
fit_profile_put (JsonDoc *doc, const FitReport *r, const char *source, GError **error)
{
  for (guint i = 0; i < r->numbers->len; i++) {
    const FitNumber *n = r->numbers->pdata[i];
    g_autofree char *text = number_source (n, source);
    if (!put_sourced (doc, n->path, n->value, "measured", text, error))
      return FALSE;
  }
  return TRUE;
}

/* ---- devices ---- */

static gboolean
put_facts (JsonDoc *doc, const DeviceFacts *f, const char *source, GError **error)
{
  const struct {
    const char *path;
    double value;
  } facts[] = {{"device.tdp_W", f->tdp_W},         {"device.sm_count", f->sm_count},
               {"device.boost_MHz", f->boost_MHz}, {"device.memory_GiB", f->memory_GiB},
               {"device.hbm_GBps", f->hbm_GBps},   {"device.nvlink_GBps", f->nvlink_GBps},
               {"device.pcie_GBps", f->pcie_GBps}, {"device.scaleup_gpus", f->scaleup_gpus}};
  g_autofree char *said = g_strdup_printf ("%s: what the device reports", source);
  for (gsize i = 0; i < G_N_ELEMENTS (facts); i++)
    if (facts[i].value > 0 &&
        !put_sourced (doc, facts[i].path, facts[i].value, "measured", said, error))
      return FALSE;
  for (int t = 0; t < DT_COUNT; t++) {
    g_autofree char *path = g_strdup_printf ("peak_TFLOPs.%s", dtype_names[t]);
    if (f->peak_TFLOPs[t] > 0 &&
        !put_sourced (doc, path, f->peak_TFLOPs[t], "measured", said, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
has_path (JsonDoc *doc, const char *path)
{
  JsonRef root = json_root (doc);
  const cJSON *n = root.node;
  g_auto (GStrv) keys = g_strsplit (path, ".", -1);
  for (guint i = 0; keys[i] != NULL && n != NULL; i++)
    n = cJSON_GetObjectItemCaseSensitive (n, keys[i]);
  return n != NULL;
}

/* Writes a number unless the document has it; the fitted ones come over it afterwards. */
static gboolean
put_missing (JsonDoc *doc, const char *at, const char *key, double value, GError **error)
{
  g_autofree char *path = g_strdup_printf ("%s.%s", at, key);
  return has_path (doc, path) ||
         put_sourced (doc, path, value, "assumed",
                      "not in the samples; as the nearest type or kernel of the base", error);
}

static gboolean
put_gemm_type (JsonDoc *doc, const GpuProfile *g, DType t, GError **error)
{
  static const char *const align[] = {"2", "4", "8", "16", "32", "64", "128"};
  const GemmParams *p = &g->gemm[t];
  g_autofree char *at = g_strdup_printf ("gemm.types.%s", dtype_names[t]);
  g_autofree char *a = g_strdup_printf ("%s.align_factor", at);
  g_autofree char *role = g_strdup_printf ("%s.role_factor", at);
  const struct {
    const char *key;
    double value;
  } fields[] = {{"floor_us", p->floor_s * 1e6},
                {"burst_efficiency", p->burst_efficiency},
                {"sustained_efficiency", p->sustained_efficiency},
                {"half_FLOPs", p->half_flops},
                {"k0", p->k0},
                {"k_quantum", p->k_quantum},
                {"small_tile", p->small_tile},
                {"wave_smoothing", p->wave_smoothing},
                {"split_us", p->split_s * 1e6},
                {"memory_fraction", p->memory_fraction}};
  for (gsize i = 0; i < G_N_ELEMENTS (fields); i++)
    if (!put_missing (doc, at, fields[i].key, fields[i].value, error))
      return FALSE;
  for (int i = 0; i < GEMM_N_ALIGN; i++)
    if (!put_missing (doc, a, align[i], p->align_factor[i], error))
      return FALSE;
  return put_missing (doc, role, "dgrad", p->role_factor[GEMM_DGRAD], error) &&
         put_missing (doc, role, "wgrad", p->role_factor[GEMM_WGRAD], error);
}

/* The table of a type, a node a line; none: an old one goes. */
static gboolean
put_gemm_table (JsonDoc *doc, const GpuProfile *g, DType t, const char *source, GError **error)
{
  const float *table = g->gemm[t].table_s;
  g_autofree char *at = g_strdup_printf ("gemm.types.%s.table", dtype_names[t]);
  g_autoptr (GString) nodes = g_string_new (NULL);
  char us[G_ASCII_DTOSTR_BUF_SIZE];
  for (int i = 0; i < GEMM_TABLE_NODES; i++) {
    GemmShape s;
    if (!(table[i] > 0))
      continue;
    gemm_table_shape (i, &s);
    g_ascii_formatd (us, sizeof us, "%.4g", 1e6 * (double)table[i]);
    g_string_append_printf (
        nodes, "%s[%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT ", %" G_GINT64_FORMAT ", %s]",
        nodes->len > 0 ? ", " : "", s.m, s.n, s.k, us);
  }
  if (nodes->len == 0 && !has_path (doc, at))
    return TRUE;
  g_autoptr (GString) text = g_string_new ("{ \"kind\": \"measured\", \"source\": ");
  put_string (text, source);
  g_string_append_printf (text, ", \"nodes\": [%s] }", nodes->str);
  return json_doc_set (doc, at, text->str, error);
}

static gboolean
put_attention_kernel (JsonDoc *doc, const GpuProfile *g, AttnKernel k, GError **error)
{
  static const char *const passes[] = {"forward", "backward"}, *const dims[] = {"32", "64", "128",
                                                                                "256"};
  const AttnParams *p = &g->attn[k];
  g_autofree char *at = g_strdup_printf ("attention.kernels.%s", attn_kernel_names[k]);
  if (!put_missing (doc, at, "block_q", p->block_q, error) ||
      !put_missing (doc, at, "dim_quantum", p->dim_quantum, error))
    return FALSE;
  for (int pass = 0; pass < 2; pass++) {
    g_autofree char *in = g_strdup_printf ("%s.%s", at, passes[pass]);
    g_autofree char *eff = g_strdup_printf ("%s.efficiency", in);
    if (!put_missing (doc, in, "floor_us", p->floor_s[pass] * 1e6, error) ||
        !put_missing (doc, in, "kv0", p->kv0[pass], error) ||
        !put_missing (doc, in, "causal_factor", p->causal_factor[pass], error) ||
        (p->fp8_factor[pass] > 0 &&
         !put_missing (doc, in, "fp8_factor", p->fp8_factor[pass], error)))
      return FALSE;
    for (int d = 0; d < ATTN_N_DIMS; d++) {
      g_autofree char *path = g_strdup_printf ("%s.%s", eff, dims[d]);
      char text[G_ASCII_DTOSTR_BUF_SIZE];
      double v = p->efficiency[pass][d];
      /* one that followed its neighbours (fit_device.c) changes too */
      if (has_path (doc, path)) {
        g_autofree char *value = g_strdup_printf ("%s.value", path);
        v = g_ascii_strtod (g_ascii_formatd (text, sizeof text, "%.4g", v), NULL);
        g_ascii_dtostr (text, sizeof text, v);
        if (!json_doc_set (doc, value, text, error))
          return FALSE;
      } else if (!put_missing (doc, eff, dims[d], v, error))
        return FALSE;
    }
  }
  return TRUE;
}

static gboolean
touched (const FitReport *r, const char *prefix)
{
  for (guint i = 0; i < r->numbers->len; i++)
    if (g_str_has_prefix (((const FitNumber *)r->numbers->pdata[i])->path, prefix))
      return TRUE;
  return FALSE;
}

gboolean
fit_profile_put_device (JsonDoc *doc, const GpuProfile *g, const DeviceFacts *facts,
                        const FitReport *r, const char *source, GError **error)
{
  if (!put_facts (doc, facts, source, error))
    return FALSE;
  for (int t = 0; t < DT_COUNT; t++) {
    g_autofree char *at = g_strdup_printf ("gemm.types.%s.", dtype_names[t]);
    if (touched (r, at) && (!put_gemm_type (doc, g, (DType)t, error) ||
                            !put_gemm_table (doc, g, (DType)t, source, error)))
      return FALSE;
  }
  for (int k = ATTN_FLASH1; k < ATTN_COUNT; k++) {
    g_autofree char *at = g_strdup_printf ("attention.kernels.%s.", attn_kernel_names[k]);
    if (touched (r, at) && !put_attention_kernel (doc, g, (AttnKernel)k, error))
      return FALSE;
  }
  return fit_profile_put (doc, r, source, error);
}

/* ---- fabrics ---- */

gboolean
fit_profile_inline_parts (JsonDoc *doc, GError **error)
{
  static const char *const keys[] = {"node", "network"}, *const kinds[] = {"fabrics/nodes",
                                                                           "fabrics/networks"};
  for (int i = 0; i < 2; i++) {
    JsonRef root = json_root (doc);
    const cJSON *n = cJSON_GetObjectItemCaseSensitive (root.node, keys[i]);
    if (!cJSON_IsString (n))
      continue;
    g_autofree char *name = g_strdup (n->valuestring);
    g_autoptr (JsonDoc) part = store_document (kinds[i], name, json_doc_name (doc), error);
    if (part == NULL || !json_doc_put (doc, keys[i], part, error))
      return FALSE;
  }
  return TRUE;
}
