#include "read_law.h"
#include "paths.h"
#include "text.h"

#include <string.h>

/* Above anything sensible, to catch a unit that is wrong by far. */
#define CONSTANT_MOST 1e40
#define COUNT_MOST    1e18

static const char *const type_names[] = {"loss", "batch", NULL};
static const char *const counted_names[] = {"total", "non_embedding", NULL};
static const char *const unit_names[] = {"flops", "pf_days", NULL};

void
law_file_free (LawFile *f)
{
  if (f == NULL)
    return;
  law_clear (&f->law);
  batch_law_clear (&f->batch);
  g_ptr_array_unref (f->prov);
  g_strfreev (f->notes);
  g_strfreev (f->aliases);
  g_free (f);
}

/* ---- parts ---- */

typedef struct {
  const char *key;
  double *to;
  gboolean required;
  double min;
} Constant;

/* All constants of the list, and no others, in the order of the list. */
static gboolean
read_constants (const JsonRef *root, const Constant *list, guint n, GPtrArray *prov, GError **error)
{
  g_autofree const char **keys = g_new0 (const char *, n + 1);
  JsonRef ref;
  for (guint i = 0; i < n; i++)
    keys[i] = list[i].key;
  if (!json_get_object (root, "constants", &ref, error) || !json_check_keys (&ref, keys, error))
    return FALSE;
  for (guint i = 0; i < n; i++) {
    gboolean ok = list[i].required ? json_get_sourced (&ref, list[i].key, list[i].min,
                                                       CONSTANT_MOST, list[i].to, prov, error)
                                   : json_opt_sourced (&ref, list[i].key, list[i].min,
                                                       CONSTANT_MOST, list[i].to, prov, error);
    if (!ok)
      return FALSE;
  }
  return TRUE;
}

static gboolean
read_strings (const JsonRef *root, const char *key, char ***out, GError **error)
{
  g_autoptr (GStrvBuilder) b = g_strv_builder_new ();
  JsonRef arr;
  if (json_has (root, key)) {
    if (!json_get_array (root, key, &arr, error))
      return FALSE;
    for (int i = 0; i < json_len (&arr); i++) {
      JsonRef item = json_item (&arr, i);
      const char *s;
      if (!json_value_string (&item, &s, error))
        return FALSE;
      g_strv_builder_add (b, s);
    }
  }
  *out = g_strv_builder_end (b);
  return TRUE;
}

static gboolean
read_range (const JsonRef *root, Law *law, GError **error)
{
  static const char *const keys[] = {"params_min", "params_max", "tokens_min", "tokens_max", NULL};
  JsonRef ref;
  if (!json_has (root, "fitted_on"))
    return TRUE;
  if (!json_get_object (root, "fitted_on", &ref, error) || !json_check_keys (&ref, keys, error) ||
      !json_opt_double (&ref, "params_min", 0, COUNT_MOST, &law->params_min, error) ||
      !json_opt_double (&ref, "params_max", 0, COUNT_MOST, &law->params_max, error) ||
      !json_opt_double (&ref, "tokens_min", 0, COUNT_MOST, &law->tokens_min, error) ||
      !json_opt_double (&ref, "tokens_max", 0, COUNT_MOST, &law->tokens_max, error))
    return FALSE;
  if (law->params_max < law->params_min || law->tokens_max < law->tokens_min)
    return json_fail (&ref, JSON_ERROR_INCONSISTENT, error,
                      "a range ends before it begins (found params %g to %g, tokens %g to %g)",
                      law->params_min, law->params_max, law->tokens_min, law->tokens_max);
  return TRUE;
}

static gboolean
read_form_constants (const JsonRef *root, Law *l, GPtrArray *prov, GError **error)
{
  const Constant additive[] = {{"E", &l->e, TRUE, 0},
                               {"A", &l->a, TRUE, 0},
                               {"B", &l->b, TRUE, 0},
                               {"alpha", &l->alpha, TRUE, 0},
                               {"beta", &l->beta, TRUE, 0},
                               {"R_N_star", &l->rn_star, FALSE, 0},
                               {"R_D_star", &l->rd_star, FALSE, 0}};
  const Constant sum[] = {{"L_inf", &l->e, FALSE, 0},         {"N_c", &l->nc, TRUE, 0},
                          {"D_c", &l->dc, TRUE, 0},           {"alpha_N", &l->alpha, TRUE, 0},
                          {"alpha_D", &l->beta, TRUE, 0},     {"R_N_star", &l->rn_star, FALSE, 0},
                          {"R_D_star", &l->rd_star, FALSE, 0}};
  const Constant frontier[] = {{"n_coef", &l->n_coef, TRUE, 0},  {"n_exp", &l->n_exp, TRUE, 0},
                               {"d_coef", &l->d_coef, TRUE, 0},  {"d_exp", &l->d_exp, TRUE, 0},
                               {"l_coef", &l->l_coef, FALSE, 0}, {"l_exp", &l->l_exp, FALSE, 0}};
  const Constant granular[] = {{"E", &l->e, TRUE, 0},        {"A", &l->a, TRUE, 0},
                               {"B", &l->b, TRUE, 0},        {"alpha", &l->alpha, TRUE, 0},
                               {"beta", &l->beta, TRUE, 0},  {"g", &l->g, TRUE, 0},
                               {"gamma", &l->gamma, TRUE, 0}};
  const Constant joint[] = {{"E", &l->e, TRUE, 0},           {"A", &l->a, TRUE, 0},
                            {"B", &l->b, TRUE, 0},           {"alpha", &l->alpha, TRUE, 0},
                            {"beta", &l->beta, TRUE, 0},     {"delta", &l->delta, TRUE, -10},
                            {"gamma", &l->gamma, TRUE, -10}, {"omega", &l->omega, TRUE, -10},
                            {"zeta", &l->zeta, TRUE, -10},   {"E_start", &l->e_start, TRUE, 0},
                            {"E_max", &l->e_max, TRUE, 0}};
  switch (l->form) {
  case LAW_ADDITIVE:
    return read_constants (root, additive, G_N_ELEMENTS (additive), prov, error);
  case LAW_POWER_SUM:
    return read_constants (root, sum, G_N_ELEMENTS (sum), prov, error);
  case LAW_KAPLAN: /* as the sum, without repetition */
    return read_constants (root, sum, G_N_ELEMENTS (sum) - 2, prov, error);
  case LAW_FRONTIER:
    return read_constants (root, frontier, G_N_ELEMENTS (frontier), prov, error);
  case LAW_GRANULAR:
    return read_constants (root, granular, G_N_ELEMENTS (granular), prov, error);
  case LAW_JOINT:
    return read_constants (root, joint, G_N_ELEMENTS (joint), prov, error);
  }
  g_assert_not_reached ();
}

static gboolean
read_loss (const JsonRef *root, LawFile *f, GError **error)
{
  static const char *const keys[] = {
      "format", "name",           "title",        "source",    "type",      "aliases", "notes",
      "form",   "params_counted", "compute_unit", "constants", "fitted_on", NULL};
  Law *l = &f->law;
  int form = 0, counted = 0, unit = 0;
  if (!json_check_keys (root, keys, error) ||
      !json_get_enum (root, "form", law_form_names, &form, error) ||
      !json_opt_enum (root, "params_counted", counted_names, &counted, error) ||
      !json_opt_enum (root, "compute_unit", unit_names, &unit, error))
    return FALSE;
  l->form = (LawForm)form;
  l->non_embedding = counted == 1;
  l->c_unit_flops = unit == 1 ? LAW_PFDAY_FLOPS : 1;
  if (!read_form_constants (root, l, f->prov, error) || !read_range (root, l, error))
    return FALSE;
  GError *inner = NULL;
  JsonRef at;
  if (law_check (l, &inner))
    return TRUE;
  json_get_any (root, "constants", &at, NULL);
  json_fail (&at, JSON_ERROR_RANGE, error, "%s", inner->message);
  g_error_free (inner);
  return FALSE;
}

static gboolean
read_batch (const JsonRef *root, LawFile *f, GError **error)
{
  static const char *const keys[] = {"format",   "name",      "title", "source",
                                     "type",     "aliases",   "notes", "variable",
                                     "critical", "constants", NULL};
  BatchLaw *b = &f->batch;
  const Constant list[] = {
      {"coef", &b->coef, TRUE, 0},          {"exponent", &b->exponent, TRUE, -100},
      {"unit", &b->unit, FALSE, 0},         {"sequence_tokens", &b->sequence_tokens, FALSE, 0},
      {"overhead", &b->overhead, FALSE, 0}, {"lr_coef", &b->lr_coef, FALSE, 0},
      {"lr_N", &b->lr_n, FALSE, -100},      {"lr_D", &b->lr_d, FALSE, -100},
      {"lr_C", &b->lr_c, FALSE, -100}};
  int variable = 0;
  JsonRef at;
  if (!json_check_keys (root, keys, error) ||
      !json_get_enum (root, "variable", batch_variable_names, &variable, error) ||
      !json_get_bool (root, "critical", &b->critical, error) ||
      !read_constants (root, list, G_N_ELEMENTS (list), f->prov, error))
    return FALSE;
  b->variable = (BatchVariable)variable;
  if (b->coef > 0 && b->unit > 0 && b->sequence_tokens > 0)
    return TRUE;
  json_get_any (root, "constants", &at, NULL);
  return json_fail (&at, JSON_ERROR_RANGE, error,
                    "coef, unit and sequence_tokens must be positive (found %g, %g, %g)", b->coef,
                    b->unit, b->sequence_tokens);
}

LawFile *
read_law (const JsonRef *root, GError **error)
{
  g_autoptr (LawFile) f = g_new0 (LawFile, 1);
  const char *name, *title, *source;
  gint64 format;
  int type;
  law_init (&f->law);
  batch_law_init (&f->batch);
  f->prov = g_ptr_array_new_with_free_func ((GDestroyNotify)prov_entry_free);
  if (!json_get_int (root, "format", 1, 1, &format, error) ||
      !json_get_string (root, "name", &name, error) ||
      !json_get_string (root, "title", &title, error) ||
      !json_get_string (root, "source", &source, error) ||
      !json_get_enum (root, "type", type_names, &type, error) ||
      !read_strings (root, "notes", &f->notes, error) ||
      !read_strings (root, "aliases", &f->aliases, error))
    return NULL;
  f->is_batch = type == 1;
  char **names[] = {f->is_batch ? &f->batch.name : &f->law.name,
                    f->is_batch ? &f->batch.title : &f->law.title,
                    f->is_batch ? &f->batch.source : &f->law.source};
  *names[0] = g_strdup (name);
  *names[1] = g_strdup (title);
  *names[2] = g_strdup (source);
  if (!(f->is_batch ? read_batch (root, f, error) : read_loss (root, f, error)))
    return NULL;
  return g_steal_pointer (&f);
}

/* ---- finding ---- */

static LawFile *
load (const char *name, GError **error)
{
  g_autofree char *path = data_find ("laws", name, NULL, error);
  if (path == NULL)
    return NULL;
  g_autoptr (JsonDoc) doc = json_doc_load (path, error);
  if (doc == NULL)
    return NULL;
  JsonRef root = json_root (doc);
  return read_law (&root, error);
}

GPtrArray *
law_files (gboolean is_batch, GError **error)
{
  g_autoptr (GPtrArray) out = g_ptr_array_new_with_free_func ((GDestroyNotify)law_file_free);
  g_auto (GStrv) names = data_list ("laws");
  for (gsize i = 0; names[i] != NULL; i++) {
    g_autoptr (LawFile) f = load (names[i], error);
    if (f == NULL)
      return NULL;
    if (f->is_batch == is_batch)
      g_ptr_array_add (out, g_steal_pointer (&f));
  }
  return g_steal_pointer (&out);
}

static void
unknown_law (const char *name, const GPtrArray *files, gboolean is_batch, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (guint i = 0; i < files->len; i++) {
    const LawFile *f = g_ptr_array_index (files, i);
    g_ptr_array_add (names, is_batch ? f->batch.name : f->law.name);
    for (gsize k = 0; f->aliases[k] != NULL; k++)
      g_ptr_array_add (names, f->aliases[k]);
  }
  g_ptr_array_add (names, NULL);
  const char *near = nearest_name (name, (const char *const *)names->pdata);
  g_autofree char *quoted = text_quoted (name);
  g_set_error (error, JSON_ERROR, JSON_ERROR_RANGE,
               "unknown %s (found %s; %s%s%sall: clustersim law list)",
               is_batch ? "batch law" : "law", quoted, near != NULL ? "nearest: " : "",
               near != NULL ? near : "", near != NULL ? "; " : "");
}

LawFile *
law_find (const char *name, gboolean is_batch, GError **error)
{
  if (data_is_path (name)) {
    g_autoptr (LawFile) f = load (name, error);
    if (f == NULL || f->is_batch == is_batch)
      return g_steal_pointer (&f);
    g_set_error (error, JSON_ERROR, JSON_ERROR_RANGE,
                 "%s: a law of another type (found type %s; allowed: %s)", name,
                 type_names[f->is_batch], type_names[is_batch]);
    return NULL;
  }
  g_autoptr (GPtrArray) files = law_files (is_batch, error);
  if (files == NULL)
    return NULL;
  for (guint i = 0; i < files->len; i++) {
    LawFile *f = g_ptr_array_index (files, i);
    if (g_strcmp0 (is_batch ? f->batch.name : f->law.name, name) == 0 ||
        g_strv_contains ((const char *const *)f->aliases, name)) {
      g_ptr_array_set_free_func (files, NULL);
      for (guint k = 0; k < files->len; k++)
        if (k != i)
          law_file_free (g_ptr_array_index (files, k));
      return f;
    }
  }
  unknown_law (name, files, is_batch, error);
  return NULL;
}
