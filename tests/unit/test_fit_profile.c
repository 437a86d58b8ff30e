/* clustersim fit as a whole: readers, what they refuse, and profiles that come back.
 *
 * Recorded samples of this kind of machine are in calibrate/samples; samples of GPUs are made here
 * by a shipped profile itself, so that the numbers to be found are known. */
#include "coll_cost.h"
#include "commands.h"
#include "fit_device.h"
#include "fit_fabric.h"
#include "fit_profile.h"
#include "read_fabric.h"
#include "read_gpu.h"
#include "store.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  char *dir;
} Folder;

static void
folder_up (Folder *f, gconstpointer data)
{
  (void)data;
  f->dir = g_dir_make_tmp ("fit-XXXXXX", NULL);
}

static void
folder_down (Folder *f, gconstpointer data)
{
  (void)data;
  const char *name;
  g_autoptr (GDir) d = g_dir_open (f->dir, 0, NULL);
  while ((name = g_dir_read_name (d)) != NULL) {
    g_autofree char *path = g_build_filename (f->dir, name, NULL);
    g_remove (path);
  }
  g_rmdir (f->dir);
  g_free (f->dir);
}

static char *
put (const Folder *f, const char *name, const char *text)
{
  char *path = g_build_filename (f->dir, name, NULL);
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
  return path;
}

static SampleSet *
read_text (const Folder *f, const char *name, const char *text, GError **error)
{
  const SampleOptions o = {NULL, -1, NULL, 0, FALSE};
  g_autofree char *path = put (f, name, text);
  g_autoptr (SampleSet) s = sample_set_new ();
  if (!sample_set_read (s, path, &o, error) || !sample_set_check (s, &o, error))
    return NULL;
  return g_steal_pointer (&s);
}

/* ---- refusals: one line each, with the place ---- */

#define GEMM_LINE(device, m, us)                                                                   \
  "{\"kind\": \"gemm\", \"device\": \"" device "\", \"dtype\": \"bf16\", \"m\": " m                \
  ", \"n\": 64, \"k\": 64, \"time_us\": " us "}\n"
#define END_LINE(n) "{\"kind\": \"end\", \"device\": \"A\", \"samples\": " n "}\n"

static void
test_refusals (Folder *f, gconstpointer data)
{
  static const struct {
    const char *name, *text, *says;
  } cases[] = {
      {"cut.jsonl", GEMM_LINE ("A", "64", "3") "{\"kind\": \"gemm\", \"dev", ":2: the line is cut"},
      {"noend.jsonl", GEMM_LINE ("A", "64", "3"), "cut: 1 of them follow the last end line"},
      {"fewer.jsonl", GEMM_LINE ("A", "64", "3") END_LINE ("2"),
       ":2: samples are missing (found 1"},
      {"mixed.jsonl", GEMM_LINE ("A", "64", "3") GEMM_LINE ("B", "64", "3") END_LINE ("2"),
       "samples of 2 devices (found A, B"},
      {"zero.jsonl", GEMM_LINE ("A", "64", "0") END_LINE ("1"), ":1: the time is 0 s"},
      {"minus.jsonl", GEMM_LINE ("A", "64", "-2") END_LINE ("1"), ":1: the time is -2e-06 s"},
      {"shape.jsonl", GEMM_LINE ("A", "0", "2") END_LINE ("1"), "/0/m"},
      {"key.jsonl", "{\"kind\": \"gemm\", \"device\": \"A\", \"dtyp\": \"bf16\"}\n" END_LINE ("1"),
       "dtyp"},
      {"nothing.jsonl", END_LINE ("0"), "no sample in the files given"},
      {"notes.txt", "hello\n", "is no file of samples"},
      {"zero.csv", "gpu,dtype,m,n,k,time_us,tflops\nA,bf16,64,64,64,0,\n", ":2: the time is 0 s"},
      {"word.csv", "gpu,dtype,m,n,k,time_us,tflops\nA,bf16,64,64,64,fast,\n",
       "\"fast\" is no time"},
      {"other.csv", "a,b\n1,2\n", "columns are those of no table"},
      {"mixed.csv", "gpu,dtype,m,n,k,time_us,tflops\nA,bf16,64,64,64,2,\nB,bf16,64,64,64,2,\n",
       "samples of 2 devices"},
      {"cut.log", "# nThread 1\n# algbw busbw\n 1024 256 float sum -1 10.0 0.10 0.15 0\n",
       "the log is cut"},
  };
  (void)data;
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (SampleSet) s = read_text (f, cases[i].name, cases[i].text, &error);
    g_assert_null (s);
    g_assert_nonnull (error);
    g_test_message ("%s", error->message);
    g_assert_nonnull (strstr (error->message, cases[i].says));
    g_assert_null (strchr (error->message, '\n'));
  }
}

/* The command's status; what it says on stderr does not go among the test's lines. */
static int
fit_silently (int argc, char **argv)
{
  fflush (stderr);
  int kept = dup (STDERR_FILENO), null = open ("/dev/null", O_WRONLY | O_CLOEXEC);
  g_assert_cmpint (kept, >=, 0);
  g_assert_cmpint (null, >=, 0);
  dup2 (null, STDERR_FILENO);
  int status = cmd_fit_run (argc, argv);
  fflush (stderr);
  dup2 (kept, STDERR_FILENO);
  close (kept);
  close (null);
  return status;
}

/* Through the command: status 2, and no profile, not even for too few samples. */
static void
test_no_profile (Folder *f, gconstpointer data)
{
  (void)data;
  g_autofree char *few = put (f, "few.jsonl", GEMM_LINE ("A", "64", "3") END_LINE ("1"));
  g_autofree char *out = g_build_filename (f->dir, "out.json", NULL);
  char *argv[] = {(char[]){"fit"}, few, (char[]){"--base"},  (char[]){"H100-SXM-80GB"},
                  (char[]){"-o"},  out, (char[]){"--quiet"}, NULL};
  g_assert_cmpint (fit_silently (7, argv), ==, 2);
  g_assert_false (g_file_test (out, G_FILE_TEST_EXISTS));
}

/* ---- a device that is known ---- */

static GpuProfile *
device (const char *name, JsonDoc **doc)
{
  GError *error = NULL;
  JsonDoc *d = store_document ("hw", name, NULL, &error);
  g_assert_no_error (error);
  JsonRef root = json_root (d);
  GpuProfile *g = read_gpu_profile (&root, name, NULL, &error);
  g_assert_no_error (error);
  if (doc != NULL)
    *doc = d;
  else
    json_doc_free (d);
  return g;
}

/* Samples of g over sizes of layers, with 2 % of wobble: GEMM in three layouts, attention, memory.
 */
static char *
samples_of (const GpuProfile *g)
{
  static const int sizes[] = {64, 256, 512, 1024, 2048, 4096, 8192};
  g_autoptr (GString) out = g_string_new (NULL);
  guint n = 0;
  for (int a = 0; a < 7; a++)
    for (int b = 0; b < 7; b++)
      for (int c = 0; c < 7; c++) {
        GemmShape s = {.m = sizes[a],
                       .n = sizes[b],
                       .k = sizes[c],
                       .batch = 1,
                       .dtype = DT_BF16,
                       .role = (GemmRole)((a + b + c) % 3)};
        static const char *const roles[] = {"forward", "dgrad", "wgrad"};
        int duty = (a + b) % 2;
        double t = gpu_gemm_s (g, &s, duty) * (1 + 0.02 * sin (78.233 * n * n));
        g_string_append_printf (out,
                                "{\"kind\": \"gemm\", \"device\": \"made\", \"dtype\": \"bf16\", "
                                "\"role\": \"%s\", \"mode\": \"%s\", \"m\": %d, \"n\": %d, \"k\": "
                                "%d, \"time_us\": %.6f}\n",
                                roles[s.role], duty ? "sustained" : "burst", sizes[a], sizes[b],
                                sizes[c], 1e6 * t);
        n++;
      }
  for (int seq = 256; seq <= 16384; seq *= 2)
    for (int pass = 0; pass < 2; pass++)
      for (int causal = 0; causal < 2; causal++) {
        AttnShape s = {.batch = 2,
                       .heads = 32,
                       .kv_heads = 8,
                       .seq_q = seq,
                       .seq_kv = seq,
                       .head_dim_qk = 128,
                       .head_dim_v = 128,
                       .causal = causal,
                       .dtype = DT_BF16,
                       .pass = (Pass)pass};
        g_string_append_printf (
            out,
            "{\"kind\": \"attention\", \"device\": \"made\", \"kernel\": \"flash3\", \"dtype\": "
            "\"bf16\", \"batch\": 2, \"heads\": 32, \"kv_heads\": 8, \"seq_q\": %d, \"seq_kv\": "
            "%d, \"head_dim_qk\": 128, \"head_dim_v\": 128, \"causal\": %s, \"pass\": \"%s\", "
            "\"time_us\": %.6f}\n",
            seq, seq, causal ? "true" : "false", pass ? "backward" : "forward",
            1e6 * gpu_attention_s (g, ATTN_FLASH3, &s, 0));
        n++;
      }
  for (int k = 0; k < MEMK_COUNT; k++)
    for (double bytes = 1e5; bytes < 1e10; bytes *= 10, n++)
      g_string_append_printf (out,
                              "{\"kind\": \"memory\", \"device\": \"made\", \"op\": \"%s\", "
                              "\"bytes\": %.0f, \"time_us\": %.6f}\n",
                              memk_names[k], bytes, 1e6 * gpu_memory_s (g, (MemKernel)k, bytes));
  g_string_append (out, "{\"kind\": \"launch\", \"device\": \"made\", \"how\": \"stream\", "
                        "\"time_us\": 3.5}\n");
  n++;
  g_string_append_printf (out, "{\"kind\": \"end\", \"device\": \"made\", \"samples\": %u}\n", n);
  return g_string_free (g_steal_pointer (&out), FALSE);
}

/* The model's own samples of one device, fitted from another's profile with the same peak: the
 * numbers come back, held-out points are within 2.5 %, and the file reads back to the same times.
 */
static void
test_device (Folder *f, gconstpointer data)
{
  (void)data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GpuProfile) truth = device ("H100-SXM-80GB", NULL);
  truth->gemm[DT_BF16].burst_efficiency = 0.8;
  memset (truth->gemm[DT_BF16].table_s, 0, sizeof truth->gemm[DT_BF16].table_s); /* formula alone */
  truth->gemm[DT_BF16].role_factor[GEMM_WGRAD] = 1.2;
  truth->memk_fraction[MEMK_OPTIMIZER] = 0.5;
  truth->attn[ATTN_FLASH3].efficiency[PASS_BACKWARD][2] = 0.4;
  g_assert_true (gpu_profile_prepare (truth, &error));
  g_autofree char *text = samples_of (truth);
  g_autofree char *path = put (f, "made.jsonl", text);
  g_autofree char *out = g_build_filename (f->dir, "made.json", NULL);
  char *argv[] = {(char[]){"fit"},         path,
                  (char[]){"--base"},      (char[]){"H100-SXM-80GB"},
                  (char[]){"--name"},      (char[]){"made"},
                  (char[]){"-o"},          out,
                  (char[]){"--resamples"}, (char[]){"10"},
                  (char[]){"--quiet"},     NULL};
  g_assert_cmpint (cmd_fit_run (11, argv), ==, 0);
  g_autoptr (GpuProfile) back = device (out, NULL);
  g_assert_cmpstr (back->name, ==, "made");
  g_assert_cmpfloat_with_epsilon (back->memk_fraction[MEMK_OPTIMIZER], 0.5, 0.01);
  g_assert_cmpfloat_with_epsilon (back->launch_stream_s, 3.5e-6, 1e-12);
  g_assert_cmpfloat_with_epsilon (back->gemm[DT_BF16].role_factor[GEMM_WGRAD], 1.2, 0.05);
  g_assert_cmpfloat_with_epsilon (back->attn[ATTN_FLASH3].efficiency[PASS_BACKWARD][2], 0.4, 0.02);
  for (int m = 128; m <= 8192; m *= 4) {
    GemmShape s = {.m = m, .n = 3072, .k = 5120, .batch = 1, .dtype = DT_BF16};
    double r = gpu_gemm_s (back, &s, 1) / gpu_gemm_s (truth, &s, 1);
    g_test_message ("m %d: %.4f", m, r);
    g_assert_cmpfloat_with_epsilon (r, 1, 0.04);
  }
}

/* ---- a fabric that is known: samples of a ring over 2 to 8 nodes ---- */

static void
test_fabric (Folder *f, gconstpointer data)
{
  (void)data;
  GError *error = NULL;
  g_autoptr (JsonDoc) doc = json_doc_load ("calibrate/base/mpi.json", &error);
  g_assert_no_error (error);
  JsonRef root = json_root (doc);
  g_autoptr (Fabric) truth = read_fabric (&root, "truth", NULL, &error);
  g_assert_no_error (error);
  truth->efficiency = 0.9;
  truth->net_hop_s[PROTO_SIMPLE] = 400e-6;
  g_autoptr (GString) out = g_string_new (NULL);
  guint n = 0;
  for (int ranks = 2; ranks <= 8; ranks *= 2)
    for (int mib = 1; mib <= 16; mib *= 2, n++) {
      CollGroup g = {ranks, 1, ranks, 1, {0}};
      CollChoice how = {ALGO_RING, PROTO_SIMPLE};
      double t = coll_algo_time_s (truth, COLL_ALL_REDUCE, &g, how, mib * 1048576.0);
      g_string_append_printf (out,
                              "{\"kind\": \"coll\", \"device\": \"net\", \"op\": \"all_reduce\", "
                              "\"algo\": \"Ring\", \"proto\": \"Simple\", \"ranks\": %d, "
                              "\"nodes\": %d, \"bytes\": %d, \"time_us\": %.3f}\n",
                              ranks, ranks, mib << 20, 1e6 * t);
    }
  g_string_append_printf (out, "{\"kind\": \"end\", \"device\": \"net\", \"samples\": %u}\n", n);
  g_autofree char *path = put (f, "net.jsonl", out->str);
  g_autofree char *to = g_build_filename (f->dir, "net.json", NULL);
  char *argv[] = {(char[]){"fit"},
                  path,
                  (char[]){"--as"},
                  (char[]){"fabric"},
                  (char[]){"--base"},
                  (char[]){"calibrate/base/mpi.json"},
                  (char[]){"--name"},
                  (char[]){"net"},
                  (char[]){"--one-protocol"},
                  (char[]){"-o"},
                  to,
                  (char[]){"--quiet"},
                  NULL};
  g_assert_cmpint (cmd_fit_run (12, argv), ==, 0);
  g_autoptr (JsonDoc) made = json_doc_load (to, &error);
  g_assert_no_error (error);
  JsonRef made_root = json_root (made);
  g_autoptr (Fabric) back = read_fabric (&made_root, "net", NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpfloat_with_epsilon (back->efficiency, 0.9, 0.01);
  g_assert_cmpfloat_with_epsilon (back->net_hop_s[PROTO_SIMPLE], 400e-6, 40e-6);
  g_assert_cmpfloat (back->ll_efficiency, ==, back->efficiency); /* one protocol */
  /* another link rate and message: within 1 % */
  truth->nic_Bps = back->nic_Bps = 0.1e9;
  fabric_changed (truth);
  fabric_changed (back);
  CollGroup g = {6, 1, 6, 1, {0}};
  CollChoice how = {ALGO_RING, PROTO_SIMPLE};
  double r = coll_time_s (back, COLL_ALL_REDUCE, &g, 3e6, &how);
  how = (CollChoice){ALGO_RING, PROTO_SIMPLE};
  r /= coll_time_s (truth, COLL_ALL_REDUCE, &g, 3e6, &how);
  g_assert_cmpfloat_with_epsilon (r, 1, 0.02);
}

/* ---- recorded samples ---- */

static void
test_recorded (Folder *f, gconstpointer data)
{
  (void)data;
  GError *error = NULL;
  g_autofree char *out = g_build_filename (f->dir, "core.json", NULL);
  char *argv[] = {(char[]){"fit"},     (char[]){"calibrate/samples/epyc-core/core.jsonl"},
                  (char[]){"--base"},  (char[]){"calibrate/base/cpu.json"},
                  (char[]){"--name"},  (char[]){"epyc-core"},
                  (char[]){"-o"},      out,
                  (char[]){"--quiet"}, NULL};
  g_assert_cmpint (cmd_fit_run (9, argv), ==, 0);
  g_autoptr (JsonDoc) doc = json_doc_load (out, &error);
  g_assert_no_error (error);
  JsonRef root = json_root (doc);
  g_autoptr (GpuProfile) g = read_gpu_profile (&root, "core", NULL, &error);
  g_assert_no_error (error);
  /* 512^3 in fp32 is 0.268 GFLOP; one core of that machine does 70 to 100 GFLOP/s */
  GemmShape s = {.m = 512, .n = 512, .k = 512, .batch = 1, .dtype = DT_FP32};
  double t = gpu_gemm_s (g, &s, 1);
  g_assert_cmpfloat (t, >, 2.4e-3);
  g_assert_cmpfloat (t, <, 4.5e-3);
}

/* ---- published tables: held-out points within 8 % ---- */

static void
test_held_out (void)
{
  static const struct {
    const char *profile, *column;
  } cases[] = {{"A100-SXM-80GB", "a100_sxm80_sglang"},    {"H100-SXM-80GB", "h100_sxm_sglang"},
               {"H200-SXM-141GB", "h200_sxm_sglang"},     {"B200-SXM-180GB", "b200_sxm_sglang"},
               {"GB200-186GB", "gb200_sglang"},           {"GB300-288GB", "gb300_sglang"},
               {"RTX-PRO-6000-96GB", "rtxpro6000_sglang"}};
  const char *shared = g_getenv ("CLUSTERSIM_SHARED");
  if (shared == NULL) {
    g_test_skip ("CLUSTERSIM_SHARED is not set: no published tables to fit");
    return;
  }
  g_autofree char *path =
      g_build_filename (shared, "data", "ops", "aiconfigurator_gemm_bf16_us.csv", NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    char *gpus[] = {(char *)cases[i].column, NULL};
    const SampleOptions so = {gpus, -1, NULL, 0, FALSE};
    const FitOptions fo = {0.25, 0, 1};
    g_autoptr (SampleSet) s = sample_set_new ();
    g_autoptr (FitReport) r = fit_report_new ();
    g_autoptr (GpuProfile) g = device (cases[i].profile, NULL);
    GError *error = NULL;
    g_assert_true (sample_set_read (s, path, &so, &error));
    g_assert_true (fit_device (g, s, &fo, r, &error));
    const FitGroup *grp = r->groups->pdata[0];
    g_test_message ("%-20s %u held out, median %.1f %%, p90 %.1f %%", cases[i].profile,
                    grp->held_out.n, 100 * grp->held_out.median_abs, 100 * grp->held_out.p90_abs);
    g_assert_cmpuint (grp->held_out.n, >, 2000);
    g_assert_cmpfloat (grp->held_out.median_abs, <=, 0.08);
  }
}

/* nccl-tests logs of others: ranks, hosts, operation and device are found. */
static void
test_nccl_logs (void)
{
  static const struct {
    const char *file, *device;
    int op, ranks, nodes;
  } cases[] = {{"cscs-alps-gh200-1.log", "NVIDIA GH200 120GB", COLL_ALL_REDUCE, 8, 2},
               {"superbench-nccl_reducescatter.log", NULL, COLL_REDUCE_SCATTER, 8, 1}};
  const char *shared = g_getenv ("CLUSTERSIM_SHARED");
  if (shared == NULL) {
    g_test_skip ("CLUSTERSIM_SHARED is not set: no logs to read");
    return;
  }
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    const SampleOptions o = {NULL, -1, NULL, 0, FALSE};
    g_autoptr (SampleSet) s = sample_set_new ();
    g_autofree char *path =
        g_build_filename (shared, "data", "inputs", "nccl_tests", cases[i].file, NULL);
    GError *error = NULL;
    g_assert_true (sample_set_read (s, path, &o, &error));
    g_assert_no_error (error);
    const Sample *first = &g_array_index (s->samples, Sample, s->samples->len - 1);
    g_test_message ("%s: %s, %d ranks on %d nodes", cases[i].file, first->device,
                    first->coll.group.ranks, first->coll.group.nodes);
    g_assert_cmpint ((int)first->coll.op, ==, cases[i].op);
    g_assert_cmpint (first->coll.group.ranks, ==, cases[i].ranks);
    g_assert_cmpint (first->coll.group.nodes, ==, cases[i].nodes);
    if (cases[i].device != NULL)
      g_assert_cmpstr (first->device, ==, cases[i].device);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_setenv ("CLUSTERSIM_SCENARIOS", "scenarios", FALSE);
#define ADD(path, fn) g_test_add (path, Folder, NULL, folder_up, fn, folder_down)
  ADD ("/fit-profile/refusals", test_refusals);
  ADD ("/fit-profile/no-profile", test_no_profile);
  ADD ("/fit-profile/device", test_device);
  ADD ("/fit-profile/fabric", test_fabric);
  ADD ("/fit-profile/recorded", test_recorded);
  g_test_add_func ("/fit-profile/held-out", test_held_out);
  g_test_add_func ("/fit-profile/nccl-logs", test_nccl_logs);
  return g_test_run ();
}
