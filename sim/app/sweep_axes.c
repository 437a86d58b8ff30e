#include "sweep_axes.h"

#include <math.h>
#include <string.h>

#include "cli.h"

typedef struct {
  guint n_values, n_keys;
  GPtrArray *values; /* key by key: n_keys x n_values char* */
} Axis;

struct SweepAxes {
  GArray *axes;    /* Axis */
  GPtrArray *keys; /* char*, NULL at the end */
  guint64 points;
};

static void
axis_clear (gpointer p)
{
  g_ptr_array_unref (((Axis *)p)->values);
}

void
sweep_axes_free (SweepAxes *a)
{
  if (a == NULL)
    return;
  g_array_unref (a->axes);
  g_ptr_array_unref (a->keys);
  g_free (a);
}

static gboolean
usage (GError **error, const char *text, const char *what)
{
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "--vary %.80s: %s", text, what);
  return FALSE;
}

typedef struct {
  double from, to, step;
  char op; /* '*' or '+' */
} Range;

/* "FROM..TO*FACTOR" or "FROM..TO+STEP": TRUE when text begins like a range, two numbers with ".."
 * between them ("../x.json" does not); *ok is whether it is a whole and sensible one. */
static gboolean
parse_range (const char *text, Range *r, gboolean *ok)
{
  const char *dots = strstr (text, "..");
  char *end = NULL;
  if (dots == NULL)
    return FALSE;
  r->from = g_ascii_strtod (text, &end);
  if (end == text || (end != dots && end != dots + 1)) /* "1..": strtod may eat the first dot */
    return FALSE;
  r->to = g_ascii_strtod (dots + 2, &end);
  if (end == dots + 2)
    return FALSE;
  r->op = *end;
  const char *step = *end != '\0' ? end + 1 : end;
  r->step = g_ascii_strtod (step, &end);
  *ok = (r->op == '*' || r->op == '+') && end != step && *end == '\0' && isfinite (r->from) &&
        isfinite (r->to) && isfinite (r->step) && r->to >= r->from &&
        (r->op == '*' ? r->step > 1 && r->from > 0 : r->step > 0);
  return TRUE;
}

/* Appends the values of a range, when text is one; else leaves *is_range FALSE. */
static gboolean
expand_range (const char *text, GPtrArray *values, gboolean *is_range, const char *whole,
              GError **error)
{
  static const double most = 1e6, slack = 1e-9; /* slack: 0.1 + 0.1 + 0.1 reaches 0.3 */
  gboolean ok = FALSE;
  Range r;
  *is_range = parse_range (text, &r, &ok);
  if (!*is_range)
    return TRUE;
  if (!ok)
    return usage (error, whole, "a range must be FROM..TO*FACTOR (factor > 1) or FROM..TO+STEP");
  double steps = r.op == '*' ? log (r.to / r.from) / log (r.step) : (r.to - r.from) / r.step;
  if (!(steps < most))
    return usage (error, whole, "a range of more than 1,000,000 values");
  guint n = (guint)(steps + slack) + 1;
  double product = r.from;
  for (guint i = 0; i < n; i++, product *= r.step) {
    char buf[G_ASCII_DTOSTR_BUF_SIZE];
    double v = r.op == '*' ? product : r.from + i * r.step; /* no sum that drifts */
    g_ptr_array_add (values, g_strdup (g_ascii_formatd (buf, sizeof buf, "%.15g", v)));
  }
  return TRUE;
}

static gboolean
parse_key (SweepAxes *a, Axis *axis, const char *part, const char *whole, GError **error)
{
  const char *eq = strchr (part, '=');
  if (eq == NULL || eq == part || eq[1] == '\0')
    return usage (error, whole, "must be KEY=V1,V2,… (for example parallel.tp=1,2,4,8)");
  g_autofree char *key = g_strstrip (g_strndup (part, (gsize)(eq - part)));
  for (guint i = 0; i < a->keys->len; i++)
    if (strcmp (g_ptr_array_index (a->keys, i), key) == 0)
      return usage (error, whole, "a key is varied twice");
  guint before = axis->values->len;
  g_auto (GStrv) items = g_strsplit (eq + 1, ",", -1);
  for (gsize i = 0; items[i] != NULL; i++) {
    gboolean range = FALSE;
    g_strstrip (items[i]);
    if (items[i][0] == '\0')
      return usage (error, whole, "an empty value");
    if (!expand_range (items[i], axis->values, &range, whole, error))
      return FALSE;
    if (!range)
      g_ptr_array_add (axis->values, g_strdup (items[i]));
  }
  guint n = axis->values->len - before;
  if (axis->n_keys > 0 && n != axis->n_values)
    return usage (error, whole, "keys that move together need as many values each");
  axis->n_values = n;
  axis->n_keys++;
  g_ptr_array_add (a->keys, g_steal_pointer (&key));
  return TRUE;
}

SweepAxes *
sweep_axes_parse (const char *const *varies, GError **error)
{
  g_autoptr (SweepAxes) a = g_new0 (SweepAxes, 1);
  a->axes = g_array_new (FALSE, TRUE, sizeof (Axis));
  g_array_set_clear_func (a->axes, axis_clear);
  a->keys = g_ptr_array_new_with_free_func (g_free);
  a->points = 1;
  for (gsize i = 0; varies != NULL && varies[i] != NULL; i++) {
    Axis axis = {0, 0, g_ptr_array_new_with_free_func (g_free)};
    g_auto (GStrv) parts = g_strsplit (varies[i], ";", -1);
    gboolean ok = parts[0] != NULL || usage (error, "''", "must be KEY=V1,V2,…");
    for (gsize k = 0; ok && parts[k] != NULL; k++)
      ok = parse_key (a, &axis, parts[k], varies[i], error);
    g_array_append_val (a->axes, axis);
    if (!ok)
      return NULL;
    if (axis.n_values > SWEEP_MAX_POINTS / a->points) {
      usage (error, varies[i], "more than 100,000,000 points");
      return NULL;
    }
    a->points *= axis.n_values;
  }
  g_ptr_array_add (a->keys, NULL);
  return g_steal_pointer (&a);
}

guint64
sweep_axes_points (const SweepAxes *a)
{
  return a->points;
}

const char *const *
sweep_axes_keys (const SweepAxes *a)
{
  return (const char *const *)a->keys->pdata;
}

void
sweep_axes_point (const SweepAxes *a, guint64 i, const char **values)
{
  guint n_keys = a->keys->len - 1, at = n_keys;
  values[n_keys] = NULL;
  for (guint k = a->axes->len; k-- > 0;) {
    const Axis *axis = &g_array_index (a->axes, Axis, k);
    guint v = (guint)(i % axis->n_values);
    i /= axis->n_values;
    at -= axis->n_keys;
    for (guint q = 0; q < axis->n_keys; q++)
      values[at + q] = g_ptr_array_index (axis->values, q * axis->n_values + v);
  }
}
