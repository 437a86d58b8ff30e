/* The C library: sim/include/clustersim.h over the readers and the model. */
#include <clustersim.h>

#include <math.h>
#include <string.h>

#include "interval.h"
#include "report.h"
#include "scenario.h"
#include "schedule_file.h"
#include "text.h"

struct clustersim_scenario {
  JsonDoc *doc;
};

struct clustersim_result {
  char *json;
  JsonDoc *doc;
};

/* Takes e. */
static void
give_error (GError *e, char **error)
{
  if (error != NULL)
    *error = text_printable (e->message, -1, G_MAXSIZE);
  g_error_free (e);
}

static clustersim_scenario *
scenario_of (JsonDoc *doc, GError *e, char **error)
{
  if (doc == NULL) {
    give_error (e, error);
    return NULL;
  }
  clustersim_scenario *s = g_new0 (clustersim_scenario, 1);
  s->doc = doc;
  return s;
}

const char *
clustersim_version (void)
{
  return CLUSTERSIM_VERSION;
}

clustersim_scenario *
clustersim_load (const char *path_or_name, char **error)
{
  GError *e = NULL;
  JsonDoc *doc = scenario_document (path_or_name, NULL, &e);
  return scenario_of (doc, e, error);
}

clustersim_scenario *
clustersim_parse (const char *json, char **error)
{
  GError *e = NULL;
  JsonDoc *doc = scenario_document_text ("scenario", json, &e);
  return scenario_of (doc, e, error);
}

int
clustersim_set (clustersim_scenario *s, const char *key, const char *value, char **error)
{
  GError *e = NULL;
  g_autofree char *set = g_strconcat (key, "=", value, NULL);
  if (scenario_set (s->doc, set, &e))
    return 0;
  give_error (e, error);
  return -1;
}

static gboolean
predict_spec (const Spec *s, GString *out, GError **error)
{
  g_autoptr (SchedTable) table = NULL;
  g_autoptr (IntervalTable) intervals = interval_table_load (error);
  Prediction p;
  if (intervals == NULL || !schedule_file_load (s, &table, error))
    return FALSE;
  PredictOptions o = {.table = table};
  if (!predict (s, NULL, &o, &p, error))
    return FALSE;
  StepInterval iv = interval_for (intervals, s, &p);
  report_json (out, s, &p, &iv);
  prediction_clear (&p);
  return TRUE;
}

static char *
predict_doc (JsonDoc *doc, GError **error)
{
  Spec s;
  g_autoptr (GString) out = g_string_new (NULL);
  if (!scenario_read (doc, &s, error))
    return NULL;
  gboolean ok = predict_spec (&s, out, error);
  spec_clear (&s);
  if (!ok)
    scenario_blame (doc, error);
  return ok ? g_strdup (out->str) : NULL;
}

clustersim_result *
clustersim_predict (const clustersim_scenario *s, char **error)
{
  GError *e = NULL;
  JsonRef root = json_root (s->doc);
  g_autoptr (JsonDoc) doc = json_doc_copy (&root); /* reading must not change what others read */
  char *json = predict_doc (doc, &e);
  if (json == NULL) {
    give_error (e, error);
    return NULL;
  }
  clustersim_result *r = g_new0 (clustersim_result, 1);
  r->json = json;
  r->doc = json_doc_parse ("result", json, strlen (json), NULL);
  g_assert (r->doc != NULL);
  return r;
}

double
clustersim_number (const clustersim_result *r, const char *path)
{
  g_auto (GStrv) parts = g_strsplit (path, ".", -1);
  const cJSON *at = json_root (r->doc).node;
  for (gsize i = 0; parts[i] != NULL && at != NULL; i++) {
    guint64 k;
    if (cJSON_IsObject (at))
      at = cJSON_GetObjectItemCaseSensitive (at, parts[i]);
    else if (cJSON_IsArray (at) && g_ascii_string_to_unsigned (parts[i], 10, 0, G_MAXINT, &k, NULL))
      at = cJSON_GetArrayItem (at, (int)k);
    else
      at = NULL;
  }
  if (cJSON_IsBool (at))
    return cJSON_IsTrue (at) ? 1 : 0;
  return at != NULL && cJSON_IsNumber (at) ? at->valuedouble : (double)NAN;
}

const char *
clustersim_json (const clustersim_result *r)
{
  return r->json;
}

void
clustersim_scenario_free (clustersim_scenario *s)
{
  if (s == NULL)
    return;
  json_doc_free (s->doc);
  g_free (s);
}

void
clustersim_result_free (clustersim_result *r)
{
  if (r == NULL)
    return;
  json_doc_free (r->doc);
  g_free (r->json);
  g_free (r);
}

void
clustersim_free (char *text)
{
  g_free (text);
}
