#include "schedule_file.h"

#include "json_read.h"

gboolean
schedule_file_load (const Spec *s, SchedTable **out, GError **error)
{
  const char *path = s->parallel.schedule_file;
  g_autofree char *text = NULL;
  gsize len = 0;
  *out = NULL;
  if (path == NULL)
    return TRUE;
  g_autoptr (GError) why = NULL;
  if (!g_file_get_contents (path, &text, &len, &why)) {
    g_set_error (error, JSON_ERROR, JSON_ERROR_FILE, "%s", why->message);
    return FALSE;
  }
  g_autoptr (SchedTable) t = sched_parse (text, (gssize)len, &why);
  if (t == NULL || !sched_verify (t, &why)) {
    g_set_error (error, JSON_ERROR, JSON_ERROR_SYNTAX, "%s: %s", path, why->message);
    return FALSE;
  }
  if (t->ranks != s->parallel.pp || sched_depth (t) != s->parallel.pp * s->parallel.vpp ||
      t->microbatches != spec_microbatches (s)) {
    g_set_error (
        error, JSON_ERROR, JSON_ERROR_INCONSISTENT,
        "%s: the table has %u ranks, %u stages, %u micro-batches; the scenario %" G_GINT64_FORMAT
        ", %" G_GINT64_FORMAT ", %" G_GINT64_FORMAT,
        path, t->ranks, sched_depth (t), t->microbatches, s->parallel.pp,
        s->parallel.pp * s->parallel.vpp, spec_microbatches (s));
    return FALSE;
  }
  *out = g_steal_pointer (&t);
  return TRUE;
}
