#include "campaign_runs.h"

#include "csv.h"
#include "fileio.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct CampaignLog {
  FILE *f;
  char *path;
  guint64 key;
  gboolean failed;
};

/* Numbers of a run in the order of the columns. */
enum { N_COUNTS = 8 };

static void
pack (CampaignRun *r, double *times[], guint64 *counts[N_COUNTS])
{
  guint n = 0;
  times[n++] = &r->elapsed_s;
  times[n++] = &r->work_s;
  times[n++] = &r->longest_s;
  for (guint i = 0; i < BAD_COUNT; i++)
    times[n++] = &r->bad_s[i];
  guint64 *const c[N_COUNTS] = {&r->stops,   &r->planned_stops, &r->checkpoints, &r->restores,
                                &r->scratch, &r->waits,         &r->events,      &r->fingerprint};
  memcpy (counts, c, sizeof c);
}

enum { N_TIMES = 3 + BAD_COUNT };

static void
put_header (FILE *f)
{
  fputs ("key,run,end,elapsed_s,work_s,longest_s", f);
  for (guint i = 0; i < BAD_COUNT; i++)
    fprintf (f, ",%s_s", badput_names[i]);
  fputs (",stops,planned_stops,checkpoints,restores,scratch,waits,events,fingerprint", f);
  for (guint i = 0; i < FAULT_COUNT; i++)
    fprintf (f, ",failures_%s", fault_names[i]);
  fputc ('\n', f);
}

static gboolean
parse_line (char **cell, guint64 key, guint want, CampaignRun *r)
{
  guint n = 3;
  double *times[N_TIMES];
  guint64 *counts[N_COUNTS];
  memset (r, 0, sizeof *r);
  if (g_strv_length (cell) != 3 + N_TIMES + N_COUNTS + FAULT_COUNT ||
      g_ascii_strtoull (cell[0], NULL, 16) != key || g_ascii_strtoull (cell[1], NULL, 10) != want)
    return FALSE;
  pack (r, times, counts);
  r->end = (CampaignEnd)CLAMP (g_ascii_strtoll (cell[2], NULL, 10), END_FINISHED, END_STUCK);
  if (r->end == END_STUCK)
    r->why = "as an earlier run of this campaign found";
  for (guint i = 0; i < N_TIMES; i++)
    *times[i] = g_ascii_strtod (cell[n++], NULL);
  for (guint i = 0; i < N_COUNTS; i++)
    *counts[i] = g_ascii_strtoull (cell[n++], NULL, 10);
  for (guint i = 0; i < FAULT_COUNT; i++)
    r->faults[i] = g_ascii_strtoull (cell[n++], NULL, 10);
  return TRUE;
}

/* Whole lines of an earlier campaign. */
static gboolean
load (const char *path, guint64 key, GArray *runs, gsize *keep, GError **error)
{
  g_autofree char *text = NULL;
  gsize length = 0;
  *keep = 0;
  if (!g_file_get_contents (path, &text, &length, NULL))
    return TRUE; /* nothing to go on from */
  guint line = 0;
  for (char *p = text, *end; (end = strchr (p, '\n')) != NULL; p = end + 1, line++) {
    g_autofree char *one = g_strndup (p, (gsize)(end - p));
    g_auto (GStrv) cell = g_strsplit (one, ",", -1);
    CampaignRun r;
    if (line > 0 && !parse_line (cell, key, runs->len, &r)) {
      g_set_error (
          error, CSV_ERROR, CSV_ERROR_VALUE,
          "%s:%u: not a replica of this campaign (allowed: what the same command wrote, with the "
          "same scenario, options and seed)",
          path, line + 1);
      return FALSE;
    }
    if (line > 0)
      g_array_append_val (runs, r);
    *keep = (gsize)(end + 1 - text);
  }
  return TRUE;
}

static CampaignLog *
cannot (const char *path, GError **error)
{
  g_set_error (error, FILEIO_ERROR, FILEIO_ERROR_OPEN, "%s: cannot be written (%s)", path,
               g_strerror (errno));
  return NULL;
}

CampaignLog *
campaign_log_open (const char *path, guint64 key, gboolean resume, GArray **runs, GError **error)
{
  gsize keep = 0;
  *runs = g_array_new (FALSE, FALSE, sizeof (CampaignRun));
  if (resume && !load (path, key, *runs, &keep, error))
    return NULL;
  /* The whole lines are written anew: a last line that was cut off is gone. */
  g_autofree char *old = NULL;
  if (keep > 0 && !g_file_get_contents (path, &old, NULL, error))
    return NULL;
  FILE *f = fopen (path, "w");
  if (f == NULL)
    return cannot (path, error);
  if (keep > 0)
    fwrite (old, 1, keep, f);
  else
    put_header (f);
  CampaignLog *log = g_new0 (CampaignLog, 1);
  log->f = f;
  log->path = g_strdup (path);
  log->key = key;
  return log;
}

gboolean
campaign_log_add (CampaignLog *log, guint run, const CampaignRun *r)
{
  CampaignRun copy = *r;
  double *times[N_TIMES];
  guint64 *counts[N_COUNTS];
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  pack (&copy, times, counts);
  fprintf (log->f, "%016" G_GINT64_MODIFIER "x,%u,%d", log->key, run, (int)r->end);
  for (guint i = 0; i < N_TIMES; i++)
    fprintf (log->f, ",%s", g_ascii_dtostr (text, sizeof text, *times[i]));
  for (guint i = 0; i < N_COUNTS; i++)
    fprintf (log->f, ",%" G_GUINT64_FORMAT, *counts[i]);
  for (guint i = 0; i < FAULT_COUNT; i++)
    fprintf (log->f, ",%" G_GUINT64_FORMAT, r->faults[i]);
  fputc ('\n', log->f);
  /* A whole line at a time, so that a kill leaves whole lines. */
  if (fflush (log->f) != 0)
    log->failed = TRUE;
  return !log->failed;
}

gboolean
campaign_log_close (CampaignLog *log, GError **error)
{
  if (log == NULL)
    return TRUE;
  gboolean ok = fclose (log->f) == 0 && !log->failed;
  if (!ok)
    cannot (log->path, error);
  g_free (log->path);
  g_free (log);
  return ok;
}
