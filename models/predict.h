/* predict: one training step of a scenario, end to end.
 *
 * spec → stage layers, schedule table (verified), memory → programs → executor → breakdown, rates.
 * The fast pass of exec.h is used unless spec.run.exact_events asks for the event engine.
 * Formulas: MFU = model FLOPs per second and GPU / dense peak of the precision; HFU counts the
 * recomputed operations too; model FLOPs = 3 x forward (backward is twice the forward), in the
 * causal or full convention of train.causal_flops. Ownership: prediction_clear frees what
 * prediction holds. Errors are those of the parts.
 */
#ifndef CLUSTERSIM_PREDICT_H
#define CLUSTERSIM_PREDICT_H

#include "compile.h"
#include "hetero.h"
#include "memory.h"
#include "netprice.h"
#include "trace.h"

typedef struct {
  double step_s;
  double tokens_per_s, tokens_per_s_per_gpu;
  double model_tflops_per_gpu, hardware_tflops_per_gpu, mfu, hfu, peak_tflops;
  double part_s[PART_COUNT];
  double bubble_share; /* of the step */
  gint64 parameters, active_parameters;
  double flops_per_token; /* forward + backward, in the convention */
  MemReport memory;
  gint64 *stage_layers; /* pp * vpp */
  guint n_stages;
  gint64 *rank_layers; /* pp: layers that a rank of the pipeline holds, in all its chunks */
  HeteroResult hetero; /* healthy_s 0: all GPUs alike */
  GArray *net_rows;    /* NetRow: what the network was asked; NULL when all is analytic */
  guint64 operations, fingerprint;
  double gpu_hours_per_1e9_tokens, usd_per_1e9_tokens, kwh_per_1e9_tokens; /* negative: not known */
} Prediction;

void prediction_clear (Prediction *p);

/* Verified schedule tables of earlier predictions, by name and shape; sweeps and plans share one.
 */
typedef struct PredictCache PredictCache;
PredictCache *predict_cache_new (void);
void predict_cache_free (PredictCache *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (PredictCache, predict_cache_free)

typedef struct {
  const StageTimes *times; /* NULL: device model */
  const SchedTable *table; /* NULL: generated from the scenario */
  SimTrace *trace;         /* NULL: none; borrowed */
  guint trace_first, trace_last;
  gboolean programs;     /* build the whole programs even where compile_eval would do */
  gboolean only_fitting; /* a layout that does not fit is not run: step_s stays 0 */
  gboolean only_memory;  /* nothing is run */
} PredictOptions;

/* cache and opt may be NULL. */
gboolean predict (const Spec *s, PredictCache *cache, const PredictOptions *opt, Prediction *out,
                  GError **error);

/* Floating-point operations of one step and GPU: model (3 x forward) and hardware (with
 * recomputation). */
void predict_flops (const Spec *s, gboolean causal, double *model, double *hardware);

#endif
