#include "cross.h"

#include <math.h>
#include <string.h>

#include "fabric.h"
#include "interval_fit.h"
#include "json_read.h"
#include "paths.h"
#include "read_software.h"

#define STEP        0.08 /* of ln factor, for the derivatives: well over the grain of the schedules */
#define ITERATIONS  30
#define SMALL_ERROR 0.01 /* errors below are squared, above are absolute */
#define UNTOLD      1e-3 /* weight of derivatives squared under which a number is not told */
#define MAX_FACTORS 16

/* ---- the parameters ---- */

typedef struct {
  char *name;
  GRegex *software, *fabric; /* either is NULL */
  char **keys;
  double low, high, unknown;
} Parameter;

static void
parameter_clear (gpointer data)
{
  Parameter *p = data;
  g_free (p->name);
  g_clear_pointer (&p->software, g_regex_unref);
  g_clear_pointer (&p->fabric, g_regex_unref);
  g_strfreev (p->keys);
}

static gboolean
read_regex (const JsonRef *item, const char *key, GRegex **out, GError **error)
{
  const char *text = NULL;
  g_autoptr (GError) local = NULL;
  if (!json_opt_string (item, key, &text, error))
    return FALSE;
  *out = text != NULL ? g_regex_new (text, G_REGEX_OPTIMIZE, 0, &local) : NULL;
  return local == NULL || json_fail (item, JSON_ERROR_RANGE, error, "%s: %s", key, local->message);
}

static gboolean
read_keys (const JsonRef *item, Parameter *p, GError **error)
{
  JsonRef keys;
  SoftwareProfile any;
  g_autoptr (GStrvBuilder) b = g_strv_builder_new ();
  if (!json_get_array (item, "keys", &keys, error))
    return FALSE;
  for (int i = 0; i < json_len (&keys); i++) {
    JsonRef one = json_item (&keys, i);
    const char *key = NULL;
    if (!json_value_string (&one, &key, error))
      return FALSE;
    if (p->software != NULL && software_number (&any, key) == NULL)
      return json_fail (&one, JSON_ERROR_RANGE, error, "no such number of a software profile");
    g_strv_builder_add (b, key);
  }
  p->keys = g_strv_builder_end (b);
  return TRUE;
}

static gboolean
read_parameter (const JsonRef *item, Parameter *p, GError **error)
{
  static const char *const keys[] = {"name", "software", "fabric",  "keys",
                                     "low",  "high",     "unknown", NULL};
  const char *name = NULL;
  if (!json_check_keys (item, keys, error) || !json_get_string (item, "name", &name, error) ||
      !read_regex (item, "software", &p->software, error) ||
      !read_regex (item, "fabric", &p->fabric, error) || !read_keys (item, p, error) ||
      !json_get_double (item, "low", 0, 1, &p->low, error) ||
      !json_get_double (item, "high", 1, 100, &p->high, error) ||
      !json_get_double (item, "unknown", 0, 100, &p->unknown, error))
    return FALSE;
  p->name = g_strdup (name);
  return (p->software != NULL) != (p->fabric != NULL) ||
         json_fail (item, JSON_ERROR_RANGE, error, "software or fabric must be given, not both");
}

static gboolean
read_priors (const JsonRef *root, double *prior, GError **error)
{
  const char *keys[FEATURE_COUNT + 2] = {"why"};
  JsonRef obj;
  for (guint k = 0; k <= FEATURE_COUNT; k++)
    keys[k + 1] = interval_feature_names[k];
  if (!json_get_object (root, "spread_priors", &obj, error) || !json_check_keys (&obj, keys, error))
    return FALSE;
  for (guint k = 0; k < FEATURE_COUNT; k++)
    if (json_has (&obj, interval_feature_names[k]) &&
        !json_get_double (&obj, interval_feature_names[k], -3, 3, &prior[k], error))
      return FALSE;
  return TRUE;
}

static GArray *
parameters_load (double *prior, GError **error)
{
  static const char *const keys[] = {"format", "why", "spread_priors", "parameters", NULL};
  g_autofree char *path = data_find ("published", "fitted", NULL, error);
  g_autoptr (JsonDoc) doc = path != NULL ? json_doc_load (path, error) : NULL;
  JsonRef list;
  if (doc == NULL)
    return NULL;
  JsonRef root = json_root (doc);
  g_autoptr (GArray) out = g_array_new (FALSE, TRUE, sizeof (Parameter));
  g_array_set_clear_func (out, parameter_clear);
  if (!json_check_keys (&root, keys, error) || !read_priors (&root, prior, error) ||
      !json_get_array (&root, "parameters", &list, error))
    return NULL;
  if (json_len (&list) > MAX_FACTORS) {
    json_fail (&list, JSON_ERROR_RANGE, error, "at most %d parameters", MAX_FACTORS);
    return NULL;
  }
  for (int i = 0; i < json_len (&list); i++) {
    JsonRef item = json_item (&list, i);
    Parameter p = {0};
    gboolean ok = read_parameter (&item, &p, error);
    g_array_append_val (out, p);
    if (!ok)
      return NULL;
  }
  return g_steal_pointer (&out);
}

/* ---- a prediction under factors ---- */

typedef struct {
  const GArray *parameters;
  const double *factors; /* of the parameters */
  guint touched;         /* bit k: parameter k is one of this run */
  Fabric fabric;         /* changed copy that the Spec borrows meanwhile */
} Adjust;

static void
scale (double *value, const char *key, double factor)
{
  if (g_str_has_suffix (key, "_slowdown"))
    *value = 1 + (*value - 1) * factor;
  else
    *value *= factor;
}

static void
adjust (gpointer self, Spec *s)
{
  Adjust *a = self;
  a->touched = 0;
  for (guint k = 0; k < a->parameters->len; k++) {
    const Parameter *p = &g_array_index (a->parameters, Parameter, k);
    if (p->software != NULL && g_regex_match (p->software, s->software.name, 0, NULL)) {
      for (gsize i = 0; p->keys[i] != NULL; i++)
        scale (software_number (&s->software, p->keys[i]), p->keys[i], a->factors[k]);
      s->software.gemm_duty = MIN (s->software.gemm_duty, GPU_MAX_DUTY);
      s->software.fsdp_net_efficiency = MIN (s->software.fsdp_net_efficiency, 1);
      a->touched |= 1u << k;
    }
    if (p->fabric != NULL && s->fabric != NULL && s->cluster.nodes > 1 &&
        g_regex_match (p->fabric, s->fabric->name, 0, NULL)) {
      if (s->fabric != &a->fabric) {
        fabric_changed (&a->fabric);
        a->fabric = *s->fabric;
        a->fabric.cache = NULL; /* its prices are of the fabric as it was */
      }
      a->fabric.efficiency = MIN (a->fabric.efficiency * a->factors[k], 1);
      s->fabric = &a->fabric;
      a->touched |= 1u << k;
    }
  }
}

typedef struct {
  RunContext c;
  Adjust a;
  CrossResult *out;
  double *jacobian; /* runs x parameters: d y / d ln factor */
  guint *touched;   /* runs */
  guint n_par, done, of;
  void (*progress) (guint done, guint of, gpointer self);
  gpointer self;
} Cross;

/* ln (measured / predicted) step time of a run; FALSE: it is skipped. */
static gboolean
error_of (Cross *x, guint row, const double *factors, double *y, guint *features)
{
  RowResult r = {0};
  x->a.factors = factors;
  validate_run_row (&x->c, row, &r);
  const gboolean ok = r.status != ROW_SKIPPED;
  if (ok) {
    *y = log (r.published / r.predicted) * (strcmp (r.metric, "step_time_s") == 0 ? 1 : -1);
    if (features != NULL)
      *features = r.features;
  }
  g_free (r.reason);
  if (x->progress != NULL && ++x->done % 64 == 0)
    x->progress (x->done, x->of, x->self);
  return ok;
}

static guint
index_of (GPtrArray *names, const char *name)
{
  for (guint i = 0; i < names->len; i++)
    if (strcmp (g_ptr_array_index (names, i), name) == 0)
      return i;
  g_ptr_array_add (names, g_strdup (name));
  return names->len - 1;
}

/* All runs as shipped. */
static void
collect (Cross *x, const char *classes, int class_col, int group_col, int source_col)
{
  const CsvTable *t = x->c.t;
  double ones[MAX_FACTORS];
  g_auto (GStrv) list = classes != NULL ? g_strsplit (classes, ",", -1) : NULL;
  g_autoptr (GArray) touched = g_array_new (FALSE, FALSE, sizeof (guint));
  for (guint k = 0; k < MAX_FACTORS; k++)
    ones[k] = 1;
  for (guint row = 0; row < csv_n_rows (t); row++) {
    CrossRun run = {.row = row};
    if (list != NULL && !g_strv_contains ((const char *const *)list, csv_cell (t, row, class_col)))
      continue;
    if (!error_of (x, row, ones, &run.shipped, &run.features)) {
      x->out->skipped++;
      continue;
    }
    run.group = index_of (x->out->groups, csv_cell (t, row, group_col));
    run.source = index_of (x->out->sources, csv_cell (t, row, source_col));
    g_array_append_val (x->out->runs, run);
    g_array_append_val (touched, x->a.touched);
  }
  x->touched = (guint *)(void *)g_array_steal (touched, NULL);
  x->of = x->done + 4 * x->out->runs->len;
}

/* Derivatives, one-sided to where the factor has room. */
static void
derivatives (Cross *x)
{
  const guint n = x->out->runs->len;
  x->jacobian = g_new0 (double, (gsize)n *MAX (x->n_par, 1));
  for (guint k = 0; k < x->n_par; k++) {
    double factors[MAX_FACTORS];
    for (guint i = 0; i < x->n_par; i++)
      factors[i] = i == k ? exp (-STEP) : 1;
    for (guint i = 0; i < n; i++) {
      const CrossRun *run = &g_array_index (x->out->runs, CrossRun, i);
      double y = 0;
      if ((x->touched[i] >> k & 1) && error_of (x, run->row, factors, &y, NULL))
        x->jacobian[i * x->n_par + k] = (run->shipped - y) / STEP;
    }
  }
}

/* Factors from the runs of all groups but one (G_MAXUINT: of all); bit k: those runs do not tell
 * factor k. */
static guint
refit (const Cross *x, guint but, double *factors)
{
  const GArray *runs = x->out->runs;
  const guint k = x->n_par;
  g_autofree double *count = g_new0 (double, x->out->groups->len);
  g_autofree double *w = g_new0 (double, runs->len), *v = g_new (double, runs->len),
                    *y = g_new (double, runs->len);
  double b[MAX_FACTORS] = {0}, told[MAX_FACTORS] = {0};
  guint untold = 0;
  for (guint i = 0; i < runs->len; i++)
    count[g_array_index (runs, CrossRun, i).group]++;
  for (guint i = 0; i < runs->len; i++) {
    const CrossRun *run = &g_array_index (runs, CrossRun, i);
    w[i] = run->group == but ? 0 : 1 / sqrt (count[run->group]);
    y[i] = -run->shipped;
    for (guint p = 0; p < k; p++)
      told[p] += w[i] * x->jacobian[i * k + p] * x->jacobian[i * k + p];
  }
  for (guint it = 0; it < ITERATIONS; it++) {
    for (guint i = 0; i < runs->len; i++) {
      double r = -y[i];
      for (guint p = 0; p < k; p++)
        r += x->jacobian[i * k + p] * b[p];
      v[i] = w[i] / MAX (fabs (r), SMALL_ERROR);
    }
    ridge_solve (x->jacobian, y, v, runs->len, k, 0, 0, b);
  }
  for (guint p = 0; p < k; p++) {
    const Parameter *par = &g_array_index (x->a.parameters, Parameter, p);
    factors[p] = told[p] < UNTOLD ? par->unknown : CLAMP (exp (b[p]), par->low, par->high);
    untold |= told[p] < UNTOLD ? 1u << p : 0;
  }
  return untold;
}

CrossResult *
cross_validate (const CsvTable *t, Store *store, const char *classes, const char *column,
                void (*progress) (guint done, guint of, gpointer self), gpointer self,
                GError **error)
{
  const int group_col = csv_require_col (t, column, error);
  const int source_col = group_col >= 0 ? csv_require_col (t, "source_title", error) : -1;
  if (source_col >= 0 && classes != NULL && csv_require_col (t, "class", error) < 0) {
    g_prefix_error (error, "--class: ");
    return NULL;
  }
  g_autoptr (RunRules) rules = source_col >= 0 ? run_rules_load (error) : NULL;
  double prior[FEATURE_COUNT + 1] = {0};
  g_autoptr (GArray) parameters = rules != NULL ? parameters_load (prior, error) : NULL;
  if (parameters == NULL)
    return NULL;
  g_autoptr (PredictCache) cache = predict_cache_new ();
  g_autoptr (CrossResult) r = g_new0 (CrossResult, 1);
  memcpy (r->spread_prior, prior, sizeof prior);
  r->groups = g_ptr_array_new_with_free_func (g_free);
  r->sources = g_ptr_array_new_with_free_func (g_free);
  r->parameters = g_ptr_array_new_with_free_func (g_free);
  r->runs = g_array_new (FALSE, TRUE, sizeof (CrossRun));
  Cross x = {.a = {.parameters = parameters},
             .out = r,
             .n_par = parameters->len,
             .of = 5 * csv_n_rows (t),
             .progress = progress,
             .self = self};
  x.c = (RunContext){.t = t,
                     .store = store,
                     .rules = rules,
                     .cache = cache,
                     .adjust = adjust,
                     .adjust_self = &x.a};
  for (guint k = 0; k < parameters->len; k++)
    g_ptr_array_add (r->parameters, g_strdup (g_array_index (parameters, Parameter, k).name));
  collect (&x, classes, csv_col (t, "class"), group_col, source_col);
  derivatives (&x);
  r->factors = g_new0 (double, (gsize)(r->groups->len + 1) * MAX (x.n_par, 1));
  refit (&x, G_MAXUINT, r->factors);
  g_autofree guint *untold = g_new (guint, r->groups->len);
  for (guint g = 0; g < r->groups->len; g++)
    untold[g] = refit (&x, g, r->factors + (g + 1) * x.n_par);
  for (guint i = 0; i < r->runs->len; i++) {
    CrossRun *run = &g_array_index (r->runs, CrossRun, i);
    error_of (&x, run->row, r->factors, &run->refitted, NULL);
    error_of (&x, run->row, r->factors + (run->group + 1) * x.n_par, &run->unseen, NULL);
    run->told = (x.touched[i] & untold[run->group]) == 0;
  }
  g_free (x.jacobian);
  g_free (x.touched);
  if (r->runs->len == 0) {
    g_set_error (error, CSV_ERROR, CSV_ERROR_VALUE, "%s: no run to predict", csv_name (t));
    return NULL;
  }
  fabric_changed (&x.a.fabric);
  return g_steal_pointer (&r);
}

void
cross_free (CrossResult *r)
{
  if (r == NULL)
    return;
  g_ptr_array_unref (r->groups);
  g_ptr_array_unref (r->sources);
  g_ptr_array_unref (r->parameters);
  g_array_unref (r->runs);
  g_free (r->factors);
  g_free (r);
}
