/* The rules that fill what a row of training runs leaves open: reading, and finding the one that
 * matches. */
#include "row_rules.h"

#include <math.h>
#include <string.h>

#include "json_read.h"
#include "paths.h"

static void
rule_clear (gpointer p)
{
  RunRule *r = p;
  g_clear_pointer (&r->gpu, g_regex_unref);
  g_clear_pointer (&r->interconnect, g_regex_unref);
  g_clear_pointer (&r->framework, g_regex_unref);
  g_clear_pointer (&r->model, g_regex_unref);
  g_clear_pointer (&r->source, g_regex_unref);
  g_clear_pointer (&r->precision, g_regex_unref);
  g_clear_pointer (&r->gpus_per_node, g_regex_unref);
  g_clear_pointer (&r->stands_for, g_regex_unref);
  g_free (r->value);
  g_free (r->precision_default);
}

static gboolean
opt_regex (const JsonRef *obj, const char *key, GRegex **out, GError **error)
{
  const char *text = NULL;
  if (!json_opt_string (obj, key, &text, error))
    return FALSE;
  if (text == NULL)
    return TRUE;
  g_autoptr (GError) local = NULL;
  *out = g_regex_new (text, G_REGEX_OPTIMIZE | G_REGEX_CASELESS, 0, &local);
  return *out != NULL || json_fail (obj, JSON_ERROR_RANGE, error, "%s: %s", key, local->message);
}

static gboolean
read_rule (const JsonRef *obj, const char *value_key, RunRule *r, GError **error)
{
  const char *const keys[] = {"gpu",
                              "interconnect",
                              "framework",
                              "model",
                              "source_title",
                              "year_min",
                              "precision",
                              "fsdp",
                              "default_precision",
                              "year_max",
                              "sequence_parallel",
                              "zero_stage",
                              "flops",
                              "attention",
                              "why",
                              "gpus_per_node",
                              "experts",
                              "no_accumulation",
                              "stand_in",
                              "stands_for",
                              value_key,
                              NULL};
  const char *value = NULL, *flops = "model", *attention = "full", *precision = NULL;
  gboolean sp = FALSE, experts = FALSE;
  r->year_max = 9999;
  if (!json_check_keys (obj, keys, error) || !opt_regex (obj, "gpu", &r->gpu, error) ||
      !opt_regex (obj, "interconnect", &r->interconnect, error) ||
      !opt_regex (obj, "framework", &r->framework, error) ||
      !opt_regex (obj, "model", &r->model, error) ||
      !opt_regex (obj, "source_title", &r->source, error) ||
      !opt_regex (obj, "precision", &r->precision, error) ||
      !opt_regex (obj, "gpus_per_node", &r->gpus_per_node, error) ||
      !opt_regex (obj, "stands_for", &r->stands_for, error) ||
      !json_opt_bool (obj, "stand_in", &r->stand_in, error) ||
      !json_opt_bool (obj, "no_accumulation", &r->no_accumulation, error) ||
      !json_opt_bool (obj, "experts", &experts, error) ||
      !json_opt_bool (obj, "fsdp", &r->fsdp, error) ||
      !json_opt_string (obj, "default_precision", &precision, error) ||
      !json_opt_int (obj, "year_min", 0, 9999, &r->year_min, error) ||
      !json_opt_int (obj, "year_max", 0, 9999, &r->year_max, error) ||
      !json_opt_int (obj, "zero_stage", 0, 3, &r->zero_stage, error) ||
      !json_opt_bool (obj, "sequence_parallel", &sp, error) ||
      !json_opt_string (obj, "flops", &flops, error) ||
      !json_opt_string (obj, "attention", &attention, error) ||
      (strcmp (value_key, "flops") != 0 && !json_get_string (obj, value_key, &value, error)))
    return FALSE;
  r->experts = json_has (obj, "experts") ? experts : -1;
  r->value = g_strdup (value);
  r->precision_default = g_strdup (precision);
  r->sequence_parallel = sp;
  r->hardware = strcmp (flops, "hardware") == 0;
  r->causal = strcmp (attention, "causal") == 0;
  return TRUE;
}

static GArray *
read_rules (const JsonRef *root, const char *key, const char *value_key, GError **error)
{
  JsonRef arr;
  if (!json_get_array (root, key, &arr, error))
    return NULL;
  g_autoptr (GArray) rules = g_array_new (FALSE, TRUE, sizeof (RunRule));
  g_array_set_clear_func (rules, rule_clear);
  for (int i = 0; i < json_len (&arr); i++) {
    JsonRef item = json_item (&arr, i);
    RunRule r = {0};
    gboolean ok = read_rule (&item, value_key, &r, error);
    g_array_append_val (rules, r);
    if (!ok)
      return NULL;
  }
  return g_steal_pointer (&rules);
}

static gboolean
read_fill (const JsonRef *root, FillRule *f, GError **error)
{
  static const char *const keys[] = {"why", "micro_batch_cap", "memory_doubt", "memory_wanted",
                                     NULL};
  JsonRef obj;
  return json_get_object (root, "fill", &obj, error) && json_check_keys (&obj, keys, error) &&
         json_get_int (&obj, "micro_batch_cap", 1, 1 << 20, &f->micro_batch_cap, error) &&
         json_get_double (&obj, "memory_doubt", 1, 10, &f->memory_doubt, error) &&
         json_get_double (&obj, "memory_wanted", 0.1, 10, &f->memory_wanted, error);
}

RunRules *
run_rules_load (GError **error)
{
  g_autofree char *path = data_find ("published", "rules", NULL, error);
  g_autoptr (JsonDoc) doc = path != NULL ? json_doc_load (path, error) : NULL;
  if (doc == NULL)
    return NULL;
  JsonRef root = json_root (doc);
  g_autoptr (RunRules) r = g_new0 (RunRules, 1);
  static const char *const keys[] = {"format",   "why",  "fabric", "software",   "model", "metric",
                                     "settings", "wide", "kernel", "collective", "fill",  NULL};
  if (!json_check_keys (&root, keys, error) || !read_fill (&root, &r->fill, error) ||
      (r->fabric = read_rules (&root, "fabric", "fabric", error)) == NULL ||
      (r->software = read_rules (&root, "software", "software", error)) == NULL ||
      (r->model = read_rules (&root, "model", "architecture", error)) == NULL ||
      (r->metric = read_rules (&root, "metric", "flops", error)) == NULL ||
      (r->wide = read_rules (&root, "wide", "device", error)) == NULL ||
      (r->kernel = read_rules (&root, "kernel", "kernel", error)) == NULL ||
      (r->collective = read_rules (&root, "collective", "fabric", error)) == NULL ||
      (r->settings = row_settings_read (&root, error)) == NULL)
    return NULL;
  return g_steal_pointer (&r);
}

void
run_rules_free (RunRules *r)
{
  if (r == NULL)
    return;
  g_clear_pointer (&r->fabric, g_array_unref);
  g_clear_pointer (&r->software, g_array_unref);
  g_clear_pointer (&r->model, g_array_unref);
  g_clear_pointer (&r->metric, g_array_unref);
  g_clear_pointer (&r->wide, g_array_unref);
  g_clear_pointer (&r->kernel, g_array_unref);
  g_clear_pointer (&r->collective, g_array_unref);
  g_clear_pointer (&r->settings, row_settings_free);
  g_free (r);
}

static gboolean
matches (GRegex *re, const char *text)
{
  return re == NULL || g_regex_match (re, text != NULL ? text : "", 0, NULL);
}

const char *
run_rules_find (const RunRules *r, const char *list, const char *gpu, const char *text,
                const char *other)
{
  const GArray *rules = strcmp (list, "wide") == 0     ? r->wide
                        : strcmp (list, "kernel") == 0 ? r->kernel
                                                       : r->collective;
  for (guint i = 0; i < rules->len; i++) {
    const RunRule *rule = &g_array_index (rules, RunRule, i);
    if (matches (rule->gpu, gpu) && matches (rule->interconnect, text) &&
        matches (rule->model, other))
      return rule->value;
  }
  return NULL;
}

/* ---- cells ---- */

const char *
row_cell (const RunContext *c, guint row, const char *col)
{
  return csv_cell (c->t, row, csv_col (c->t, col));
}

/* FALSE when the cell is empty or no positive number. */
gboolean
row_number (const RunContext *c, guint row, const char *col, double *out)
{
  const char *text = row_cell (c, row, col);
  char *end = NULL;
  if (*text == '\0')
    return FALSE;
  double v = g_ascii_strtod (text, &end);
  if (end == text || *end != '\0' || !isfinite (v) || v < 0 || v > 1e15)
    return FALSE;
  *out = v;
  return TRUE;
}

gboolean
row_integer (const RunContext *c, guint row, const char *col, gint64 *out)
{
  double v;
  if (!row_number (c, row, col, &v) || v != floor (v) || v < 1)
    return FALSE;
  *out = (gint64)v;
  return TRUE;
}

const RunRule *
rule_find (const RunContext *c, const GArray *rules, guint row)
{
  double year = 0, experts = 0;
  row_number (c, row, "year", &year);
  const gboolean moe = row_number (c, row, "moe_experts", &experts) && experts > 0;
  for (guint i = 0; i < rules->len; i++) {
    const RunRule *r = &g_array_index (rules, RunRule, i);
    if (matches (r->gpu, row_cell (c, row, "gpu")) &&
        matches (r->interconnect, row_cell (c, row, "interconnect")) &&
        matches (r->framework, row_cell (c, row, "framework")) &&
        matches (r->model, row_cell (c, row, "model")) &&
        matches (r->source, row_cell (c, row, "source_title")) &&
        matches (r->precision, row_cell (c, row, "precision")) &&
        matches (r->gpus_per_node, row_cell (c, row, "gpus_per_node")) &&
        (r->experts < 0 || r->experts == moe) &&
        (year == 0 || ((gint64)year >= r->year_min && (gint64)year <= r->year_max)))
      return r;
  }
  return NULL;
}

void
row_assume (GString *assumed, const char *what)
{
  if (assumed->len > 0)
    g_string_append (assumed, "; ");
  g_string_append (assumed, what);
}

gboolean
row_skip (char **reason, const char *format, ...)
{
  va_list ap;
  va_start (ap, format);
  *reason = g_strdup_vprintf (format, ap);
  va_end (ap);
  return FALSE;
}
