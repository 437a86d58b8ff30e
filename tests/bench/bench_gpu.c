/* Time of one gpu_gemm_s call on a mix of training and small shapes; prints ns a call. */
#include "gpu_profile.h"
#include "read_gpu.h"

#include <stdio.h>

int
main (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonDoc) doc = json_doc_load ("scenarios/hw/H100-SXM-80GB.json", &error);
  g_autoptr (GpuProfile) g = NULL;
  static const gint64 sizes[] = {1, 64, 129, 1024, 4096, 8192, 12288, 32768};
  const gint64 calls = 8 * 8 * 8 * 1000;
  double sum = 0;
  gint64 t0, t1;
  JsonRef root;

  if (doc != NULL) {
    root = json_root (doc);
    g = read_gpu_profile (&root, "H100-SXM-80GB", NULL, &error);
  }
  if (g == NULL) {
    fprintf (stderr, "bench_gpu: %s\n", error->message);
    return 1;
  }
  t0 = g_get_monotonic_time ();
  for (gint64 i = 0; i < calls; i++) {
    GemmShape s = {.m = sizes[i & 7],
                   .n = sizes[i >> 3 & 7],
                   .k = sizes[i >> 6 & 7],
                   .batch = 1,
                   .dtype = DT_BF16,
                   .role = GEMM_FORWARD};
    sum += gpu_gemm_s (g, &s, 0.5);
  }
  t1 = g_get_monotonic_time ();
  printf ("gpu_gemm_s: %.0f ns a call (%" G_GINT64_FORMAT " calls, sum %.6g s)\n",
          (double)(t1 - t0) * 1e3 / (double)calls, calls, sum);
  return 0;
}
