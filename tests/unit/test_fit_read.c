/* What fit reads and refuses, beyond test_fit_profile.c: each kind of file with what cannot be in
 * it, one line each and nothing of the file kept; and numbers that follow by hand. */
#include "commands.h"
#include "fit_device.h"
#include "fit_fabric.h"
#include "read_gpu.h"
#include "store.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

static SampleSet *
read_text (const char *name, const char *text, GError **error)
{
  const SampleOptions o = {.attention = -1};
  g_autofree char *dir = g_dir_make_tmp ("fit-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (dir, name, NULL);
  g_autoptr (SampleSet) s = sample_set_new ();
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
  gboolean ok = sample_set_read (s, path, &o, error) && sample_set_check (s, &o, error);
  g_remove (path);
  g_rmdir (dir);
  return ok ? g_steal_pointer (&s) : NULL;
}

#define LINE(kind, device, rest) "{\"kind\": \"" kind "\", \"device\": \"" device "\", " rest "}\n"
#define GEMM(device, rest)                                                                         \
  LINE ("gemm", device, "\"dtype\": \"bf16\", \"m\": 64, \"n\": 64, \"k\": 64, " rest)
#define END(n)       LINE ("end", "A", "\"samples\": " n)
#define HEAD         "# nThread 1\n# all_reduce_perf\n"
#define RANK(n, gpu) "#  Rank " n " Group 0 Pid 1 on node000 device " n " [0000:8f:00] " gpu "\n"
#define COLUMNS      "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw\n"
#define ROW          " 1048576 262144 float sum -1 100.0 10.49 10.49 0 100.0 10.49 10.49 0\n"
#define FOOT         "# Avg bus bandwidth    : 10\n"

static void
test_refusals (void)
{
  static const struct {
    const char *name, *text, *says;
  } cases[] = {
      /* a part that is named without a sample is a device too */
      {"part.jsonl",
       LINE ("device", "A", "\"sm_count\": 80") GEMM ("B", "\"time_us\": 3") END ("1"),
       "samples of 2 devices (found A, B"},
      {"p10.jsonl", GEMM ("A", "\"time_us\": 3, \"p10_us\": 4") END ("1"),
       ":1: the time 3 us is not between its p10_us 4"},
      {"p90.jsonl", GEMM ("A", "\"time_us\": 3, \"p90_us\": 2") END ("1"), "p90_us 2"},
      {"low.jsonl", GEMM ("A", "\"time_us\": 3, \"p10_us\": -1") END ("1"), "p10_us -1"},
      {"huge.jsonl", GEMM ("A", "\"time_us\": 1e14") END ("1"), "are the units right?"},
      {"fp64.jsonl",
       LINE ("gemm", "A", "\"dtype\": \"fp64\", \"m\": 8, \"n\": 8, \"k\": 8, \"time_us\": 0")
           END ("1"),
       ":1: the time is 0 s"},
      {"op.jsonl",
       LINE ("coll", "A", "\"op\": \"shout\", \"ranks\": 2, \"bytes\": 8, \"time_us\": 1"),
       "shout"},
      {"m.csv", "gpu,dtype,m,n,k,time_us,tflops\nA,bf16,sixty,64,64,3,\n",
       ":2: m is \"sixty\" (allowed: a whole number"},
      {"m0.csv", "gpu,dtype,m,n,k,time_us,tflops\nA,bf16,0,64,64,3,\n", ":2: m is \"0\""},
      {"m1e300.csv", "gpu,dtype,m,n,k,time_us,tflops\nA,bf16,1e300,64,64,3,\n", "m is \"1e300\""},
      {"half.csv", "m,n,k,A\n64,64.5,64,3\n", ":2: n is \"64.5\""},
      {"rate.csv", "gpu,dtype,m,n,k,time_us,tflops\nA,bf16,64,64,64,,-3\n", "tflops is \"-3\""},
      {"nan.csv", "gpu,dtype,m,n,k,time_us,tflops\nA,bf16,64,64,64,,nan\n", "tflops is \"nan\""},
      {"bus.csv", "op,size_bytes,ranks,busbw_GBps,time_us,gpu,nodes\nall_reduce,1024,8,0.00,,A,1\n",
       "busbw_GBps is \"0.00\""},
      {"vidur.csv", "gpu,num_tokens,n_embd,add_ms\nA,64,64,-1\n", "the time is -0.001 s"},
      {"two.log", HEAD COLUMNS ROW FOOT HEAD COLUMNS ROW FOOT, "2 runs in one log"},
      {"wrong.log",
       HEAD RANK ("0", "X") RANK ("1", "X") COLUMNS ROW "# Out of bounds values : 3 FAILED\n" FOOT,
       "results of the run were wrong"},
      {"mixed.log", HEAD RANK ("0", "NVIDIA H100") RANK ("1", "NVIDIA A100") COLUMNS ROW FOOT,
       "two kinds of device (found NVIDIA H100, NVIDIA A100"},
      {"part.log",
       HEAD RANK ("0", "X") RANK ("1", "X") RANK ("2", "X") RANK ("3", "X") COLUMNS ROW FOOT,
       "is the list of ranks whole?"},
      {"zero.log",
       HEAD RANK ("0", "X") RANK ("1", "X") COLUMNS
       " 1048576 262144 float sum -1 0.00 10.49 10.49 0\n" FOOT,
       "it has no whole row of size, count, type, time"},
      {"rows.log",
       HEAD RANK ("0", "X") RANK ("1", "X") COLUMNS ROW
       " 1048576 262144 float sum -1 9.00 10.49 10.49 0\n" FOOT,
       ":7: the row is cut off, or its bytes, time and algbw contradict each other"},
      {"other.log",
       "# nThread 1\n# hypercube_perf\n" RANK ("0", "X") RANK ("1", "X") COLUMNS ROW FOOT,
       "a collective that the simulator does not know"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (SampleSet) s = read_text (cases[i].name, cases[i].text, &error);
    g_test_message ("%s: %s", cases[i].name, error != NULL ? error->message : "no error");
    g_assert_null (s);
    g_assert_nonnull (error);
    if (error == NULL)
      continue;
    g_assert_nonnull (strstr (error->message, cases[i].says));
    g_assert_null (strchr (error->message, '\n'));
  }
}

/* Tables of nccl-tests differ in their columns by version and collective, launchers tag lines, and
 * times of five digits have no point: the time is that of the column. */
static void
test_log_columns (void)
{
  static const struct {
    const char *columns, *row;
    double us;
  } cases[] = {{COLUMNS, " 1295053440 323763360 float sum -1 123456 10.49 10.49 0\n", 123456},
               {"#  size  count  type  redop  time  algbw  busbw  error\n",
                " 1295053440 323763360 float sum 123456 10.49 10.49 1e-7\n", 123456},
               {"0: #  size  count  type  redop  root  time  algbw  busbw #wrong\n",
                "0: 812976 203244 float sum -1 77.5 10.49 10.49 0\n", 77.5}};
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *text = g_strconcat (HEAD RANK ("0", "X") RANK ("1", "X"), cases[i].columns,
                                         cases[i].row, FOOT, NULL);
    g_autoptr (SampleSet) s = read_text ("a.log", text, &error);
    g_assert_no_error (error);
    g_assert_cmpuint (s->samples->len, ==, 1);
    g_assert_cmpfloat_with_epsilon (g_array_index (s->samples, Sample, 0).time_s,
                                    cases[i].us * 1e-6, 1e-12);
  }
}

/* What the simulator has no place for is counted and passed over; dates give their range. */
static void
test_passed_over (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (SampleSet) s = read_text (
      "a.jsonl",
      LINE ("gemm", "A", "\"dtype\": \"fp64\", \"m\": 8, \"n\": 8, \"k\": 8, \"time_us\": 2") LINE (
          "coll", "A",
          "\"op\": \"reduce\", \"ranks\": 2, \"bytes\": 8, \"time_us\": 1, \"algo\": \"Ring\"")
          LINE ("coll", "A",
                "\"op\": \"gather\", \"ranks\": 2, \"bytes\": 8, \"time_us\": 1, \"algo\": "
                "\"Ring\"") GEMM ("A",
                                  "\"time_us\": 3, \"date\": \"2026-12-02\", \"driver\": \"580\"")
              GEMM ("A", "\"time_us\": 3, \"date\": \"2026-11-30\", \"versions\": \"x\"")
                  LINE ("left_out", "A", "\"points\": 4, \"why\": \"budget\", \"driver\": \"580\"")
                      LINE ("end", "A", "\"samples\": 5, \"driver\": \"580\", \"versions\": \"x\""),
      &error);
  g_assert_no_error (error);
  g_assert_cmpuint (s->samples->len, ==, 2);
  g_assert_cmpuint (s->no_place, ==, 3);
  g_assert_cmpuint (s->left_out, ==, 4);
  g_assert_cmpstr (s->first_date, ==, "2026-11-30");
  g_assert_cmpstr (s->last_date, ==, "2026-12-02");
}

/* Copies of 10 us + bytes / 50 GB/s up and 10 us + bytes / 40 GB/s down: the profile has 40 GB/s,
 * its interval holds that. A launch of 3.5 us with repeats from 3.2 to 4.1: so is its interval. */
static void
test_copies_and_launch (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GString) text = g_string_new (NULL);
  guint n = 1;
  for (double bytes = 65536; bytes < 3e8; bytes *= 4)
    for (int up = 0; up < 2; up++, n++)
      g_string_append_printf (
          text, LINE ("copy", "A", "\"path\": \"%s\", \"bytes\": %.0f, \"time_us\": %.6f"),
          up ? "h2d" : "d2h", bytes, 10 + bytes / (up ? 50e3 : 40e3));
  g_string_append (text, LINE ("launch", "A",
                               "\"how\": \"stream\", \"time_us\": 3.5, \"p10_us\": 3.2, "
                               "\"p90_us\": 4.1"));
  g_string_append_printf (text, LINE ("end", "A", "\"samples\": %u"), n);
  g_autoptr (SampleSet) s = read_text ("a.jsonl", text->str, &error);
  g_assert_no_error (error);
  g_autoptr (JsonDoc) doc = store_document ("hw", "H100-SXM-80GB", NULL, &error);
  g_assert_no_error (error);
  JsonRef root = json_root (doc);
  g_autoptr (GpuProfile) g = read_gpu_profile (&root, "H100-SXM-80GB", NULL, &error);
  g_assert_no_error (error);
  g_autoptr (FitReport) r = fit_report_new ();
  const FitOptions o = {0.25, 20, 1};
  g_assert_true (fit_device (g, s, &o, r, &error));
  const FitNumber *copy = fit_report_find (r, "device.pcie_GBps"),
                  *launch = fit_report_find (r, "device.launch_stream_us");
  g_assert_cmpfloat_with_epsilon (copy->value, 40, 0.05);
  g_assert_cmpfloat (copy->lo, <=, copy->value);
  g_assert_cmpfloat (copy->hi, >=, copy->value);
  g_assert_cmpfloat_with_epsilon (launch->value, 3.5, 1e-9);
  g_assert_cmpfloat_with_epsilon (launch->lo, 3.2, 1e-9);
  g_assert_cmpfloat_with_epsilon (launch->hi, 4.1, 1e-9);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_setenv ("CLUSTERSIM_SCENARIOS", "scenarios", FALSE);
  g_test_add_func ("/fit-read/refusals", test_refusals);
  g_test_add_func ("/fit-read/log-columns", test_log_columns);
  g_test_add_func ("/fit-read/passed-over", test_passed_over);
  g_test_add_func ("/fit-read/copies-and-launch", test_copies_and_launch);
  return g_test_run ();
}
