/* against: the log of a real run beside a prediction of it.
 *
 * Lines that are known, wherever they stand in the line (launchers put a host before them):
 *   Megatron-LM, Megatron-DeepSpeed  "elapsed time per iteration (ms): X", "throughput per GPU
 *                    (TFLOP/s/GPU): X" or "TFLOPs: X", "tokens/sec/gpu: X", "global batch size: N",
 *                    "max allocated: X" (its MB are 2^20 bytes), and the timers "NAME: X" of
 *                    "time (ms)" lines or "NAME ....: (min, max)"
 *   NeMo             "train_step_timing in s: X" (or "=")
 *   Megatron-Bridge  "Step Time : Xs", "GPU utilization: X MODEL_TFLOP/s/GPU"
 *   torchtitan       "step: N … memory: XGiB(…) tps: X tflops: X mfu: X%" (tps is tokens/s/GPU)
 *   DeepSpeed        "iter time (s): X samples/sec: X", "CurrSamplesPerSec=X",
 * "MaxMemAllocated=XGB" and see_memory_usage's "Max_MA X GB … Max_CA X GB" (its GB are 2^30 bytes)
 *   Hugging Face     the Trainer's bar "N/M [… , Xs/it]" or "Xit/s" (the bar that ran longest), and
 *                    'train_samples_per_second': X, a mean of the whole run
 * Of each quantity the median is taken, without the first fifth of its lines (at most ten): these
 * hold allocations and set-up. Memory is the largest.
 */
#ifndef CLUSTERSIM_AGAINST_H
#define CLUSTERSIM_AGAINST_H

#include "cli.h"
#include "predict.h"

typedef struct {
  const char *name, *unit;            /* static */
  double predicted, measured, lo, hi; /* lo, hi: 10 % and 90 % quantile of the log */
  guint lines;
  gboolean largest;   /* measured is the largest of the lines, not their median */
  const char *remark; /* static, or NULL */
} AgainstRow;

/* Array of AgainstRow, in a fixed order; only what the log tells. warnings (char*): where the log
 * and the scenario are not of one run. An error when the log has no line that is known. */
GArray *against_log (const char *path, const Spec *s, const Prediction *p, GPtrArray *warnings,
                     GError **error);

void against_text (GString *out, const char *path, const GArray *rows, const GPtrArray *warnings);
/* Members of one object. */
void against_json (GString *out, const char *path, const GArray *rows, const GPtrArray *warnings);
void against_csv (GString *out, const GArray *rows);

#endif
