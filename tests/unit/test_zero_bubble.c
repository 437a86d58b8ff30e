/* The schedules of the zero-bubble paper with the stage times that it prints: the schedule alone is
 * tested. Median at most 5 %, maximum 9 %, and the order of the schedules of every model,
 * micro-batch and number of micro-batches as measured; 10 % (median) with our own device model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "validate.h"

static ValidateResult *
run (gboolean stage_times)
{
  const char *top = g_getenv ("G_TEST_SRCDIR");
  g_autofree char *path =
      g_build_filename (top ? top : ".", "scenarios", "published", "runs.csv", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (CsvTable) t = csv_load (path, &error);
  g_assert_no_error (error);
  g_autoptr (Store) store = store_new ();
  const char *const where[] = {"source_title~Zero Bubble", stage_times ? "stage_ms~." : NULL, NULL};
  ValidateOptions o = {.where = where, .stage_times = stage_times};
  ValidateResult *r = validate_table (t, store, &o, &error);
  g_assert_no_error (error);
  return r;
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Rows must all be predicted. Returns the median of the absolute errors. */
static double
errors (const ValidateResult *r, double *max)
{
  g_autofree double *e = g_new (double, r->rows->len);
  for (guint i = 0; i < r->rows->len; i++) {
    const RowResult *row = &g_array_index (r->rows, RowResult, i);
    g_assert_cmpint (row->status, !=, ROW_SKIPPED);
    e[i] = fabs (row->error_pct);
  }
  qsort (e, r->rows->len, sizeof *e, compare);
  *max = e[r->rows->len - 1];
  return e[r->rows->len / 2];
}

/* "zb-14.6b-1f1b-i-m64-b1" without its schedule: two rows of one case have the same. */
static char *
case_of (const char *id)
{
  static const char *const names[] = {"-1f1b-i-", "-1f1b-", "-zb-1p-", "-zb-2p-"};
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    const char *at = strstr (id, names[i]);
    if (at != NULL)
      return g_strdup_printf ("%.*s/%s", (int)(at - id), id, at + strlen (names[i]));
  }
  return g_strdup (id);
}

static void
test_stage_times (void)
{
  g_autoptr (ValidateResult) r = run (TRUE);
  double max = 0, median = errors (r, &max);
  g_test_message ("%u rows, median %.1f %%, maximum %.1f %%", r->rows->len, median, max);
  g_assert_cmpuint (r->rows->len, ==, 22);
  g_assert_cmpfloat (median, <=, 5);
  g_assert_cmpfloat (max, <=, 9);
}

static void
test_order (void)
{
  g_autoptr (ValidateResult) r = run (TRUE);
  guint pairs = 0;
  for (guint i = 0; i < r->rows->len; i++)
    for (guint k = i + 1; k < r->rows->len; k++) {
      const RowResult *a = &g_array_index (r->rows, RowResult, i);
      const RowResult *b = &g_array_index (r->rows, RowResult, k);
      g_autofree char *ca = case_of (a->id), *cb = case_of (b->id);
      if (strcmp (ca, cb) != 0)
        continue;
      pairs++;
      if ((a->published > b->published) != (a->predicted > b->predicted)) {
        g_test_message ("%s and %s change places", a->id, b->id);
        g_test_fail ();
      }
    }
  g_assert_cmpuint (pairs, >=, 10);
}

static void
test_device_model (void)
{
  g_autoptr (ValidateResult) r = run (FALSE);
  double max = 0, median = errors (r, &max);
  g_test_message ("%u rows, median %.1f %%, maximum %.1f %%", r->rows->len, median, max);
  g_assert_cmpfloat (median, <=, 10);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/zero-bubble/stage-times", test_stage_times);
  g_test_add_func ("/zero-bubble/order", test_order);
  g_test_add_func ("/zero-bubble/device-model", test_device_model);
  return g_test_run ();
}
