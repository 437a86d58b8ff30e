/* Traces: exact text of both formats, escaping, rank filter, size cap, files beside and renamed,
 * and every error. JSON is also read back by cJSON, as somebody else's parser. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>
#include <glib/gstdio.h>

#include "trace.h"

typedef SimTrace *(*NewTrace) (const char *, const SimTraceOptions *, GError **);

typedef struct {
  char *dir, *path;
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  (void)data;
  f->dir = g_dir_make_tmp ("trace-XXXXXX", NULL);
  g_assert_nonnull (f->dir);
  f->path = g_build_filename (f->dir, "t.out", NULL);
}

static guint
count_files (const char *dir)
{
  guint n = 0;
  GDir *d = g_dir_open (dir, 0, NULL);
  while (g_dir_read_name (d) != NULL)
    n++;
  g_dir_close (d);
  return n;
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  (void)data;
  GDir *d = g_dir_open (f->dir, 0, NULL);
  for (const char *name; (name = g_dir_read_name (d)) != NULL;) {
    g_autofree char *p = g_build_filename (f->dir, name, NULL);
    g_unlink (p);
  }
  g_dir_close (d);
  g_rmdir (f->dir);
  g_free (f->dir);
  g_free (f->path);
}

static SimTrace *
open_trace (NewTrace new_trace, const char *path, const SimTraceOptions *opt)
{
  g_autoptr (GError) error = NULL;
  SimTrace *t = new_trace (path, opt, &error);
  g_assert_no_error (error);
  g_assert_nonnull (t);
  return t;
}

static char *
close_and_read (SimTrace *t, const char *path)
{
  g_autoptr (GError) error = NULL;
  char *text = NULL;
  g_assert_true (trace_close (t, &error));
  g_assert_no_error (error);
  g_assert_true (g_file_get_contents (path, &text, NULL, &error));
  return text;
}

static void
test_chrome (Fixture *f, gconstpointer data)
{
  (void)data;
  const SimTraceOptions opt = {.ticks_per_s = SIM_TICKS_PS};
  SimTrace *t = open_trace (trace_chrome_new, f->path, &opt);
  guint32 a = trace_track (t, 0, NULL, 0, "compute");
  guint32 b = trace_track (t, 0, "ignored: rank 0 is named", 1, NULL);
  trace_span (t, a, "F0", "compute", 0, 1500000);
  trace_span (t, b, "send", NULL, 1234567, 1500999);
  trace_span (t, a, "B0", "compute", 1500000, 3000000000000);
  g_assert_cmpuint (trace_n_spans (t), ==, 3);
  g_autofree char *text = close_and_read (t, f->path);
  /* send: 1.234567 us and 1.500999 us, both cut to whole ns, so it lasts 0.266 us */
  g_assert_cmpstr (
      text, ==,
      "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
      "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"rank "
      "0\"}},\n"
      "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":"
      "0}},\n"
      "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"thread_name\",\"args\":{\"name\":\"compute\"}},"
      "\n"
      "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":0}"
      "},\n"
      "{\"ph\":\"M\",\"pid\":0,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"stream "
      "1\"}},\n"
      "{\"ph\":\"M\",\"pid\":0,\"tid\":1,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":1}"
      "},\n"
      "{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"name\":\"F0\",\"cat\":\"compute\",\"ts\":0,\"dur\":1.5},"
      "\n"
      "{\"ph\":\"X\",\"pid\":0,\"tid\":1,\"name\":\"send\",\"ts\":1.234,\"dur\":0.266},\n"
      "{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"name\":\"B0\",\"cat\":\"compute\",\"ts\":1.5,"
      "\"dur\":2999998.5}\n]}\n");
  g_assert_cmpuint (count_files (f->dir), ==, 1);
}

static void
test_csv (Fixture *f, gconstpointer data)
{
  (void)data;
  const SimTraceOptions opt = {.ticks_per_s = SIM_TICKS_PS};
  SimTrace *t = open_trace (trace_csv_new, f->path, &opt);
  guint32 a = trace_track (t, 3, "rank 3, slow", 2, "say \"hi\"");
  trace_span (t, a, "#1", "x\ny", 0, 1234567);
  trace_span (t, a, "plain", NULL, 1234567, 2000000000000);
  g_autofree char *text = close_and_read (t, f->path);
  g_assert_cmpstr (text, ==,
                   "rank,stream,process,thread,name,category,begin_s,end_s\n"
                   "3,2,\"rank 3, slow\",\"say \"\"hi\"\"\",\"#1\",\"x\ny\",0,0.000001234567\n"
                   "3,2,\"rank 3, slow\",\"say \"\"hi\"\"\",plain,,0.000001234567,2\n");
}

static void
test_microsecond_ticks (Fixture *f, gconstpointer data)
{
  (void)data;
  const SimTraceOptions us = {.ticks_per_s = SIM_TICKS_US}, s = {.ticks_per_s = 1.0};
  SimTrace *t = open_trace (trace_csv_new, f->path, &us);
  trace_span (t, trace_track (t, 0, "p", 0, "t"), "n", "c", 5, SIM_TIME_MAX);
  g_autofree char *csv = close_and_read (t, f->path);
  g_assert_nonnull (strstr (csv, ",c,0.000005,9223372036854.775807\n"));

  t = open_trace (trace_chrome_new, f->path, &us);
  trace_span (t, trace_track (t, 0, "p", 0, "t"), "n", "c", 5, SIM_TIME_MAX);
  g_autofree char *json = close_and_read (t, f->path);
  g_assert_nonnull (strstr (json, "\"ts\":5,\"dur\":9223372036854775802}"));

  t = open_trace (trace_chrome_new, f->path, &s); /* ticks coarser than the unit: zeros are added */
  trace_span (t, trace_track (t, 0, "p", 0, "t"), "n", "c", 0, 7);
  g_autofree char *coarse = close_and_read (t, f->path);
  g_assert_nonnull (strstr (coarse, "\"ts\":0,\"dur\":7000000}"));
}

static void
test_escapes (Fixture *f, gconstpointer data)
{
  (void)data;
  const SimTraceOptions opt = {.ticks_per_s = SIM_TICKS_PS};
  const char *nasty = "q\" b\\ n\n t\t \001 \xc3\xa9 \xff end";
  SimTrace *t = open_trace (trace_chrome_new, f->path, &opt);
  guint32 a = trace_track (t, 0, nasty, 0, nasty);
  trace_span (t, a, nasty, nasty, 1, 2);
  g_autofree char *text = close_and_read (t, f->path);
  g_assert_true (g_utf8_validate (text, -1, NULL));
  cJSON *json = cJSON_ParseWithOpts (text, NULL, TRUE);
  g_assert_nonnull (json);
  const cJSON *events = cJSON_GetObjectItemCaseSensitive (json, "traceEvents");
  g_assert_cmpint (cJSON_GetArraySize (events), ==, 5);
  const cJSON *span = cJSON_GetArrayItem (events, 4);
  const char *want = "q\" b\\ n\n t\t \001 \xc3\xa9 \xef\xbf\xbd end";
  g_assert_cmpstr (cJSON_GetObjectItemCaseSensitive (span, "name")->valuestring, ==, want);
  g_assert_cmpstr (cJSON_GetObjectItemCaseSensitive (span, "cat")->valuestring, ==, want);
  cJSON_Delete (json);
}

static void
test_empty (Fixture *f, gconstpointer data)
{
  (void)data;
  const SimTraceOptions opt = {.ticks_per_s = SIM_TICKS_PS};
  g_autofree char *text = close_and_read (open_trace (trace_chrome_new, f->path, &opt), f->path);
  g_assert_cmpstr (text, ==, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n]}\n");
}

static void
test_cut_never_overlaps (Fixture *f, gconstpointer data)
{
  /* Spans back to back with ends at odd picoseconds: in whole nanoseconds each begins where the one
   * before ends, or later. */
  (void)data;
  const SimTraceOptions opt = {.ticks_per_s = SIM_TICKS_PS};
  SimTrace *t = open_trace (trace_chrome_new, f->path, &opt);
  guint32 a = trace_track (t, 0, NULL, 0, NULL);
  for (SimTime at = 0, i = 1; i < 200; at += i * 37, i++)
    trace_span (t, a, "s", NULL, at, at + i * 37);
  g_autofree char *text = close_and_read (t, f->path);
  cJSON *json = cJSON_ParseWithOpts (text, NULL, TRUE);
  const cJSON *e;
  glong end_ns = 0;
  cJSON_ArrayForEach (e, cJSON_GetObjectItemCaseSensitive (json, "traceEvents"))
  {
    const cJSON *ts = cJSON_GetObjectItemCaseSensitive (e, "ts");
    const cJSON *dur = cJSON_GetObjectItemCaseSensitive (e, "dur");
    if (ts == NULL)
      continue;
    glong ts_ns = (glong)(ts->valuedouble * 1000 + 0.5);
    g_assert_cmpint (ts_ns, >=, end_ns);
    end_ns = ts_ns + (glong)(dur->valuedouble * 1000 + 0.5);
  }
  g_assert_cmpint (end_ns, ==, 199 * 200 / 2 * 37 / 1000);
  cJSON_Delete (json);
}

static void
test_rank_filter (Fixture *f, gconstpointer data)
{
  (void)data;
  const SimTraceOptions opt = {.ticks_per_s = SIM_TICKS_PS, .ranks = "2,8-10"};
  SimTrace *t = open_trace (trace_csv_new, f->path, &opt);
  for (guint32 rank = 0; rank < 12; rank++) {
    guint32 track = trace_track (t, rank, NULL, 0, NULL);
    gboolean wanted = rank == 2 || (rank >= 8 && rank <= 10);
    g_assert_cmpint (trace_wants_rank (t, rank), ==, wanted);
    g_assert_cmpint (track != TRACE_NO_TRACK, ==, wanted);
    trace_span (t, track, "s", NULL, 0, 1);
  }
  g_assert_cmpuint (trace_n_spans (t), ==, 4);
  g_assert_cmpuint (trace_n_dropped (t), ==, 0);
  g_autofree char *text = close_and_read (t, f->path);
  g_assert_nonnull (strstr (text, "\n8,0,rank 8,stream 0,s,,0,0.000000000001\n"));
  g_assert_null (strstr (text, "rank 7"));
}

static void
test_bad_options (Fixture *f, gconstpointer data)
{
  (void)data;
  const char *bad[] = {"",
                       "x",
                       "1,",
                       ",1",
                       "1-",
                       "5-3",
                       "1 2",
                       "-1",
                       "1-2-3",
                       "4294967295",
                       "99999999999999999999999"};
  SimTraceOptions opt = {.ticks_per_s = SIM_TICKS_PS};
  for (guint i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;
    opt.ranks = bad[i];
    g_assert_null (trace_chrome_new (f->path, &opt, &error));
    g_assert_error (error, TRACE_ERROR, TRACE_ERROR_OPTION);
  }
  g_autoptr (GError) error = NULL;
  opt = (SimTraceOptions){.ticks_per_s = SIM_TICKS_PS, .max_bytes = TRACE_MIN_BYTES - 1};
  g_assert_null (trace_csv_new (f->path, &opt, &error));
  g_assert_error (error, TRACE_ERROR, TRACE_ERROR_OPTION);
  g_assert_cmpuint (count_files (f->dir), ==, 0);
}

static void
test_cap (Fixture *f, gconstpointer data)
{
  /* 1000 spans of some 60 bytes and more do not fit into 8,192: the file stays within the cap, is
   * whole, and says what is missing and, in JSON, from when. */
  NewTrace new_trace = ((const NewTrace *)data)[0];
  const SimTraceOptions opt = {.ticks_per_s = SIM_TICKS_PS, .max_bytes = 8192};
  SimTrace *t = open_trace (new_trace, f->path, &opt);
  guint32 a = trace_track (t, 0, NULL, 0, NULL);
  for (SimTime i = 0; i < 1000; i++)
    trace_span (t, a, "a span", "compute", i * 1000000, i * 1000000 + 500000);
  guint64 n = trace_n_spans (t), dropped = trace_n_dropped (t);
  g_assert_cmpuint (n + dropped, ==, 1000);
  g_assert_cmpuint (dropped, >, 500);
  g_autofree char *text = close_and_read (t, f->path);
  gsize len = strlen (text);
  g_assert_cmpuint (len, <=, 8192);
  g_assert_cmpuint (len, >, 8192 - 1200);
  g_autofree char *note =
      g_strdup_printf ("cap of 8192 bytes reached; %u spans left out", (guint)dropped);
  g_assert_nonnull (strstr (text, note));
  if (new_trace == trace_csv_new) {
    g_assert_nonnull (strstr (text, "\n# "));
    return;
  }
  cJSON *json = cJSON_ParseWithOpts (text, NULL, TRUE);
  g_assert_nonnull (json);
  const cJSON *events = cJSON_GetObjectItemCaseSensitive (json, "traceEvents");
  int size = cJSON_GetArraySize (events);
  g_assert_cmpint (size, ==, 4 + (int)n + 1);
  const cJSON *mark = cJSON_GetArrayItem (events, size - 1);
  g_assert_cmpfloat (cJSON_GetObjectItemCaseSensitive (mark, "ts")->valuedouble, ==, (double)n);
  cJSON_Delete (json);
}

static void
test_file_appears_at_the_end (Fixture *f, gconstpointer data)
{
  /* Until trace_close the old file is there, whole; a discarded trace leaves it so. */
  (void)data;
  const SimTraceOptions opt = {.ticks_per_s = SIM_TICKS_PS};
  g_assert_true (g_file_set_contents (f->path, "old", -1, NULL));
  for (int round = 0; round < 2; round++) {
    SimTrace *t = open_trace (trace_csv_new, f->path, &opt);
    trace_span (t, trace_track (t, 0, NULL, 0, NULL), "s", NULL, 0, 1);
    g_autofree char *before = NULL;
    g_assert_true (g_file_get_contents (f->path, &before, NULL, NULL));
    g_assert_cmpstr (before, ==, "old");
    if (round == 0) {
      trace_free (t);
    } else {
      g_autofree char *after = close_and_read (t, f->path);
      g_assert_true (g_str_has_prefix (after, "rank,stream,"));
    }
    g_assert_cmpuint (count_files (f->dir), ==, 1);
  }
}

static void
test_link_stays (Fixture *f, gconstpointer data)
{
  (void)data;
  const SimTraceOptions opt = {.ticks_per_s = SIM_TICKS_PS};
  g_autofree char *target = g_build_filename (f->dir, "target", NULL);
  g_assert_true (g_file_set_contents (target, "old", -1, NULL));
  g_assert_cmpint (symlink ("target", f->path), ==, 0);
  g_autofree char *text = close_and_read (open_trace (trace_csv_new, f->path, &opt), target);
  g_assert_true (g_str_has_prefix (text, "rank,stream,"));
  g_assert_true (g_file_test (f->path, G_FILE_TEST_IS_SYMLINK));
}

static void
test_errors_of_files (Fixture *f, gconstpointer data)
{
  (void)data;
  const SimTraceOptions opt = {.ticks_per_s = SIM_TICKS_PS};
  g_autoptr (GError) error = NULL;
  g_autofree char *nowhere = g_build_filename (f->dir, "no", "such", "folder", NULL);
  g_assert_null (trace_chrome_new (nowhere, &opt, &error));
  g_assert_error (error, TRACE_ERROR, TRACE_ERROR_FILE);
  g_assert_nonnull (strstr (error->message, nowhere));
  g_clear_error (&error);

  g_assert_null (trace_chrome_new (f->dir, &opt, &error)); /* a folder */
  g_assert_error (error, TRACE_ERROR, TRACE_ERROR_FILE);
  g_assert_cmpuint (count_files (f->dir), ==, 0);
}

static void
test_disk_full (Fixture *f, gconstpointer data)
{
  (void)f;
  (void)data;
  if (!g_file_test ("/dev/full", G_FILE_TEST_EXISTS)) {
    g_test_skip ("there is no /dev/full");
    return;
  }
  const SimTraceOptions opt = {.ticks_per_s = SIM_TICKS_PS};
  g_autoptr (GError) error = NULL;
  SimTrace *t = open_trace (trace_chrome_new, "/dev/full", &opt);
  guint32 a = trace_track (t, 0, NULL, 0, NULL);
  for (SimTime i = 0; i < 10000; i++)
    trace_span (t, a, "s", NULL, i, i + 1);
  g_assert_false (trace_close (t, &error));
  g_assert_error (error, TRACE_ERROR, TRACE_ERROR_FILE);
  g_assert_nonnull (strstr (error->message, "/dev/full"));
  g_assert_true (g_file_test ("/dev/full", G_FILE_TEST_EXISTS));
}

static void
test_overlap (Fixture *f, gconstpointer data)
{
  (void)data;
  const SimTraceOptions opt = {.ticks_per_s = SIM_TICKS_PS};
  g_autoptr (GError) error = NULL;
  SimTrace *t = open_trace (trace_chrome_new, f->path, &opt);
  guint32 a = trace_track (t, 0, NULL, 0, "compute"), b = trace_track (t, 1, NULL, 0, NULL);
  trace_span (t, a, "one", NULL, 0, 10);
  trace_span (t, b, "elsewhere", NULL, 5, 15); /* another track */
  trace_span (t, a, "two", NULL, 10, 10);
  trace_span (t, a, "three", NULL, 9, 20);
  g_assert_false (trace_close (t, &error));
  g_assert_error (error, TRACE_ERROR, TRACE_ERROR_ORDER);
  g_assert_nonnull (strstr (error->message, "rank 0, compute: span \"three\""));
  g_assert_cmpuint (count_files (f->dir), ==, 0);
}

static void
test_null_trace (Fixture *f, gconstpointer data)
{
  (void)f;
  (void)data;
  g_assert_false (trace_wants_rank (NULL, 0));
  guint32 track = trace_track (NULL, 0, NULL, 0, NULL);
  g_assert_cmpuint (track, ==, TRACE_NO_TRACK);
  trace_span (NULL, track, "s", NULL, 0, 1);
  trace_free (NULL);
}

#define ADD(name, data, fn) g_test_add ("/engine/trace/" name, Fixture, data, set_up, fn, tear_down)

int
main (int argc, char **argv)
{
  static const NewTrace chrome = trace_chrome_new, csv = trace_csv_new;
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  ADD ("chrome", NULL, test_chrome);
  ADD ("csv", NULL, test_csv);
  ADD ("microsecond_ticks", NULL, test_microsecond_ticks);
  ADD ("escapes", NULL, test_escapes);
  ADD ("empty", NULL, test_empty);
  ADD ("cut_never_overlaps", NULL, test_cut_never_overlaps);
  ADD ("rank_filter", NULL, test_rank_filter);
  ADD ("bad_options", NULL, test_bad_options);
  ADD ("cap_chrome", &chrome, test_cap);
  ADD ("cap_csv", &csv, test_cap);
  ADD ("file_appears_at_the_end", NULL, test_file_appears_at_the_end);
  ADD ("link_stays", NULL, test_link_stays);
  ADD ("errors_of_files", NULL, test_errors_of_files);
  ADD ("disk_full", NULL, test_disk_full);
  ADD ("overlap", NULL, test_overlap);
  ADD ("null_trace", NULL, test_null_trace);
  return g_test_run ();
}
