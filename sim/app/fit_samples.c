#include "fifth.h"
#include "fit_samples.h"
#include "text.h"

#include <math.h>
#include <string.h>

G_DEFINE_QUARK (clustersim - samples - error, samples_error)

const char *const sample_kind_names[] = {"gemm", "attention", "memory",  "launch",
                                         "copy", "coll",      "overlap", NULL};
const char *const launch_names[] = {"stream", "graph", "host", NULL};
const char *const copy_names[] = {"h2d", "d2h", "d2d", "p2p", NULL};

SampleSet *
sample_set_new (void)
{
  SampleSet *s = g_new0 (SampleSet, 1);
  s->samples = g_array_new (FALSE, FALSE, sizeof (Sample));
  s->text = g_string_chunk_new (1024);
  s->devices = g_ptr_array_new ();
  s->dates = g_ptr_array_new ();
  return s;
}

void
sample_set_free (SampleSet *s)
{
  if (s == NULL)
    return;
  g_array_unref (s->samples);
  g_string_chunk_free (s->text);
  g_ptr_array_unref (s->devices);
  g_ptr_array_unref (s->dates);
  g_free (s);
}

guint
sample_set_count (const SampleSet *s, SampleKind kind)
{
  guint n = 0;
  for (guint i = 0; i < s->samples->len; i++)
    n += g_array_index (s->samples, Sample, i).kind == kind;
  return n;
}

gboolean
sample_fail (const SampleReader *r, guint line, SamplesError code, GError **error,
             const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *raw = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *message = text_printable (raw, -1, 400);
  if (line > 0)
    g_set_error (error, SAMPLES_ERROR, (int)code, "%s:%u: %s", r->path, line, message);
  else
    g_set_error (error, SAMPLES_ERROR, (int)code, "%s: %s", r->path, message);
  return FALSE;
}

gboolean
sample_device_wanted (const SampleReader *r, const char *device)
{
  char **g = r->options->gpus;
  return g == NULL || g_strv_contains ((const char *const *)g, device);
}

static void
remember (SampleSet *set, GPtrArray *names, const char *name, const char **kept)
{
  for (guint i = 0; i < names->len; i++)
    if (strcmp (names->pdata[i], name) == 0) {
      *kept = names->pdata[i];
      return;
    }
  *kept = g_string_chunk_insert_const (set->text, name);
  g_ptr_array_add (names, (gpointer)*kept);
}

gboolean
sample_add (SampleReader *r, Sample *s, const char *device, GError **error)
{
  if (!(s->time_s > 0) || !isfinite (s->time_s))
    return sample_fail (r, s->line, SAMPLES_ERROR_VALUE, error,
                        "the time is %g s (allowed: above 0)", s->time_s);
  if (s->kind == SAMPLE_OVERLAP && !(s->overlap.alone_s > 0))
    return sample_fail (r, s->line, SAMPLES_ERROR_VALUE, error,
                        "the time alone is %g s (allowed: above 0)", s->overlap.alone_s);
  if (s->time_s > 1e5)
    return sample_fail (r, s->line, SAMPLES_ERROR_VALUE, error,
                        "the time is %g s (allowed: up to a day; are the units right?)", s->time_s);
  if (s->kind == SAMPLE_GEMM && r->options->leave_out_fifth &&
      fifth_of (s->gemm.shape.m, s->gemm.shape.n, s->gemm.shape.k) == FIFTH_HELD)
    return TRUE;
  remember (r->set, r->set->devices, device, &s->device);
  if (s->origin == NULL)
    s->origin = g_string_chunk_insert_const (r->set->text, r->label);
  g_array_append_val (r->set->samples, *s);
  return TRUE;
}

gboolean
sample_set_check (const SampleSet *s, const SampleOptions *o, GError **error)
{
  if (s->samples->len == 0) {
    g_autofree char *names = o->gpus != NULL ? g_strjoinv (", ", o->gpus) : NULL;
    g_set_error (error, SAMPLES_ERROR, SAMPLES_ERROR_TOO_FEW, "no sample%s%s in the files given",
                 names != NULL ? " of " : "", names != NULL ? names : "");
    return FALSE;
  }
  if (o->gpus == NULL && s->devices->len > 1) {
    g_autoptr (GPtrArray) sorted = g_ptr_array_copy (s->devices, NULL, NULL);
    g_ptr_array_add (sorted, NULL);
    g_autofree char *list = text_list ((const char *const *)sorted->pdata, 12);
    g_set_error (error, SAMPLES_ERROR, SAMPLES_ERROR_MIXED,
                 "samples of %u devices (found %s; allowed: one, or say with --gpu which names are "
                 "the one to fit)",
                 s->devices->len, list);
    return FALSE;
  }
  return TRUE;
}

/* ---- which kind of file ---- */

static gboolean
looks_like_nccl (const char *text)
{
  return strstr (text, "nThread") != NULL || strstr (text, "algbw") != NULL;
}

gboolean
sample_set_read (SampleSet *s, const char *path, const SampleOptions *o, GError **error)
{
  g_autofree char *label = g_path_get_basename (path), *text = NULL;
  SampleReader r = {s, o, path, label};
  gsize len = 0;
  g_autoptr (GError) local = NULL;
  if (g_str_has_suffix (path, ".csv"))
    return samples_read_csv (&r, error);
  if (!g_file_get_contents (path, &text, &len, &local)) {
    g_set_error (error, SAMPLES_ERROR, SAMPLES_ERROR_FILE, "%s", local->message);
    return FALSE;
  }
  if (!g_utf8_validate (text, (gssize)len, NULL))
    return sample_fail (&r, 0, SAMPLES_ERROR_FILE, error, "is not text in UTF-8");
  const char *p = text;
  while (g_ascii_isspace (*p))
    p++;
  if (*p == '{')
    return samples_read_jsonl (&r, text, error);
  if (looks_like_nccl (text))
    return samples_read_nccl (&r, text, error);
  return sample_fail (&r, 0, SAMPLES_ERROR_FILE, error,
                      "is no file of samples (allowed: JSON lines of the collectors, nccl-tests "
                      "logs, tables that end in .csv)");
}
