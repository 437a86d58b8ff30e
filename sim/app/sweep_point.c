#include "sweep_point.h"

#include "report.h"
#include "scenario.h"
#include "schedule_file.h"

struct SweepWorker {
  const SweepPlan *plan;
  PredictCache *schedules;
  ScenarioParts *parts;
  const char **values; /* of the point at hand */
};

SweepWorker *
sweep_worker_new (const SweepPlan *plan)
{
  SweepWorker *w = g_new0 (SweepWorker, 1);
  w->plan = plan;
  w->schedules = predict_cache_new ();
  w->parts = scenario_parts_new ();
  w->values = g_new0 (const char *, g_strv_length ((char **)sweep_axes_keys (plan->axes)) + 1);
  return w;
}

void
sweep_worker_free (SweepWorker *w)
{
  if (w == NULL)
    return;
  predict_cache_free (w->schedules);
  scenario_parts_free (w->parts);
  g_free (w->values);
  g_free (w);
}

void
sweep_plan_header (const SweepPlan *plan, GString *out)
{
  if (plan->format == FORMAT_JSON)
    return;
  if (plan->number)
    g_string_append_printf (out, SWEEP_POINT_COLUMN "%" G_GUINT64_FORMAT ",",
                            sweep_axes_points (plan->axes));
  report_csv_header (out, sweep_axes_keys (plan->axes));
}

/* What a line begins with: the number and the values. */
static void
begin_json (const SweepWorker *w, guint64 i, JsonWriter *j)
{
  const char *const *keys = sweep_axes_keys (w->plan->axes);
  jw_begin_object (j, NULL);
  if (w->plan->number) {
    jw_int (j, "point", (gint64)i);
    jw_int (j, "points", (gint64)sweep_axes_points (w->plan->axes));
  }
  jw_begin_object (j, "vary");
  for (gsize k = 0; keys[k] != NULL; k++)
    jw_string (j, keys[k], w->values[k]);
  jw_end_object (j);
}

static void
begin_csv (const SweepWorker *w, guint64 i, GString *out)
{
  if (w->plan->number)
    g_string_append_printf (out, "%" G_GUINT64_FORMAT ",", i);
}

static void
put_failure (const SweepWorker *w, guint64 i, GString *out, const GError *why)
{
  if (w->plan->format == FORMAT_JSON) {
    g_autoptr (JsonWriter) j = json_writer_new (out, 0);
    begin_json (w, i, j);
    jw_string (j, "error", why->message);
    jw_end_object (j);
    g_string_append_c (out, '\n');
    return;
  }
  begin_csv (w, i, out);
  for (gsize k = 0; w->values[k] != NULL; k++) {
    report_csv_field (out, w->values[k]);
    g_string_append_c (out, ',');
  }
  report_csv_failure (out, w->plan->series != NULL ? w->plan->series : "", why->message);
}

static void
put_result (const SweepWorker *w, guint64 i, GString *out, const Spec *s, const Prediction *p)
{
  StepInterval iv = interval_for (w->plan->intervals, s, p);
  if (w->plan->format != FORMAT_JSON) {
    begin_csv (w, i, out);
    report_csv_row (out, s, p, &iv, w->values);
    return;
  }
  g_autoptr (JsonWriter) j = json_writer_new (out, 0);
  begin_json (w, i, j);
  report_json_members (j, s, p, &iv, FALSE);
  jw_end_object (j);
  g_string_append_c (out, '\n');
}

static gboolean
predict_spec (SweepWorker *w, guint64 i, Spec *s, GString *out, GError **error)
{
  g_autoptr (SchedTable) table = NULL;
  Prediction p;
  if (w->plan->series != NULL) {
    g_free (s->name);
    s->name = g_strdup (w->plan->series);
  }
  PredictOptions o = {0};
  if (!schedule_file_load (s, &table, error))
    return FALSE;
  o.table = table;
  if (!predict (s, w->schedules, &o, &p, error))
    return FALSE;
  put_result (w, i, out, s, &p);
  prediction_clear (&p);
  return TRUE;
}

static gboolean
predict_point (SweepWorker *w, guint64 i, GString *out, GError **error)
{
  const char *const *keys = sweep_axes_keys (w->plan->axes);
  JsonRef root = json_root (w->plan->base);
  g_autoptr (JsonDoc) doc = json_doc_copy (&root);
  Spec s;
  for (gsize k = 0; keys[k] != NULL; k++) {
    g_autofree char *set = g_strdup_printf ("%s=%s", keys[k], w->values[k]);
    if (!scenario_set (doc, set, error))
      return FALSE;
  }
  if (!scenario_read_shared (doc, w->parts, &s, error))
    return FALSE;
  gboolean ok = predict_spec (w, i, &s, out, error);
  if (!ok)
    scenario_blame (doc, error);
  spec_clear (&s);
  return ok;
}

gboolean
sweep_worker_line (SweepWorker *w, guint64 i, GString *out, GError **why)
{
  g_autoptr (GError) error = NULL;
  sweep_axes_point (w->plan->axes, i, w->values);
  if (predict_point (w, i, out, &error))
    return TRUE;
  put_failure (w, i, out, error);
  g_propagate_error (why, g_steal_pointer (&error));
  return FALSE;
}
