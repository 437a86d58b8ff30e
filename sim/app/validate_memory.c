/* Tables of memory: Megatron-LM's own reference runs, with the argument list as recorded. Two
 * results a row: bytes that stay allocated after a step, and the peak over the run, both of the
 * last rank. What the arguments leave open is Megatron's default; one node of 8 GPUs unless the
 * layout asks for more (a case that says "1node" on GB200 has the 4 GPUs of a tray), vocabulary
 * 50,257 padded to make-vocab-size-divisible-by (128) x tp. The tests run in deterministic mode,
 * with the cuBLAS workspaces of that, unless an argument rules it out or the case says not. */
#include "validate.h"

#include <math.h>
#include <string.h>

#include "gpu_profile.h"
#include "import_run.h"
#include "scenario.h"

#define NODE_GPUS 8 /* of the tests' machines; two trays where they are GB200's */
#define TRAY_GPUS 4

static const StepInterval memory_interval = {0.93, 1.07};

/* ---- arguments → Spec ----
 * The importer of Megatron's arguments says what they mean; here is only what a scenario says
 * beside them: the machine, and the software's own choices. */

static gboolean
args_read (ImportedRun *r, const char *text, GError **error)
{
  g_auto (GStrv) items = g_strsplit (text, "--", -1);
  for (gsize i = 0; items[i] != NULL; i++) {
    char *value = strchr (g_strstrip (items[i]), '=');
    if (value != NULL)
      *value++ = '\0';
    if (*items[i] != '\0' && !imported_run_set (r, items[i], value, 0, error))
      return FALSE;
  }
  return (imported_run_has (r, "vocab-size") ||
          imported_run_set (r, "vocab-size", "50257", 0, error)) &&
         (imported_run_has (r, "global-batch-size") ||
          imported_run_set (r, "global-batch-size", "8", 0, error));
}

static gboolean
args_scope (const ImportedRun *r, char **reason)
{
  static const char *const others[] = {"encoder-num-layers",
                                       "img-h",
                                       "hybrid-layer-pattern",
                                       "hybrid-override-pattern",
                                       "model-provider",
                                       "use-megatron-fsdp",
                                       "multi-latent-attention",
                                       "mtp-num-layers",
                                       "moe-layer-freq",
                                       "perform-rl-step",
                                       "pipeline-model-parallel-layout",
                                       "spec",
                                       NULL};
  for (gsize i = 0; others[i] != NULL; i++)
    if (imported_run_other (r, others[i]) != NULL || imported_run_has (r, others[i])) {
      *reason = g_strdup_printf ("--%s: not predicted from an argument list yet", others[i]);
      return FALSE;
    }
  return TRUE;
}

/* Megatron refuses deterministic mode beside these. */
static gboolean
args_deterministic (const ImportedRun *r)
{
  return !imported_run_other_is_on (r, "cross-entropy-loss-fusion") &&
         !imported_run_other_is_on (r, "use-flash-attn") &&
         !imported_run_other_is_on (r, "tp-comm-overlap");
}

static gboolean
begins (const ImportedRun *r, const char *name, const char *prefix)
{
  const char *value = imported_run_other (r, name);
  return value != NULL && g_str_has_prefix (value, prefix);
}

static void
args_software (const ImportedRun *r, SoftwareProfile *sw)
{
  const gboolean local = begins (r, "transformer-impl", "local");
  sw->attention = ATTN_CUDNN;
  if (begins (r, "attention-backend", "unfused") || begins (r, "attention-backend", "local") ||
      (local && !imported_run_other_is_on (r, "use-flash-attn")))
    sw->attention = ATTN_UNFUSED;
  /* Megatron's own unfused attention has a buffer for its products, Transformer Engine's not */
  sw->attn_scores_kept = local && sw->attention == ATTN_UNFUSED;
  if (local)
    sw->te_workspaces = 0;
  if (local || !imported_run_other_is_on (r, "moe-grouped-gemm"))
    sw->grouped_gemm_streams = 0;
  const char *dropout = imported_run_other (r, "hidden-dropout");
  sw->dropout = dropout == NULL || g_ascii_strtod (dropout, NULL) > 0;
  sw->grad_bytes = imported_run_has (r, "fp16") ? 6 : 4;
  sw->vocab_pad = imported_run_number (r, "make-vocab-size-divisible-by", 128);
}

/* As many GPUs as the layout needs, in whole nodes; a shard spans an instance of the optimizer. */
static void
write_machine (const ImportedRun *r, const char *gpu, gint64 node_gpus, JsonWriter *w)
{
  const gint64 tp = imported_run_number (r, "tensor-model-parallel-size", 1),
               pp = imported_run_number (r, "pipeline-model-parallel-size", 1),
               cp = imported_run_number (r, "context-parallel-size", 1),
               ep = imported_run_number (r, "expert-model-parallel-size", 1),
               instances = imported_run_number (r, "num-distributed-optimizer-instances", 1);
  gint64 need = MAX (tp * pp * cp, 1);
  if (ep > 1 && need % ep != 0)
    need = pp * MAX (tp * cp, ep);
  const gint64 gpus = MAX (node_gpus, need);
  jw_begin_object (w, NULL);
  jw_int (w, "format", 1);
  jw_begin_object (w, "cluster");
  jw_string (w, "gpu", gpu);
  jw_string (w, "fabric", "dgx-h100-ndr");
  jw_int (w, "gpus_per_node", node_gpus);
  jw_int (w, "gpus", gpus);
  jw_int (w, "nodes", (gpus + node_gpus - 1) / node_gpus);
  jw_end_object (w);
  jw_string (w, "software", "megatron-core-tests");
  if (instances > 1) {
    jw_begin_object (w, "parallel");
    jw_int (w, "shard_size", MAX (gpus / MAX (tp * pp, 1) / instances, 1));
    jw_end_object (w);
  }
  if (!imported_run_has (r, "bf16") && !imported_run_has (r, "fp16")) {
    jw_begin_object (w, "train");
    jw_string (w, "precision", "fp32");
    jw_end_object (w);
  }
  jw_end_object (w);
}

static gboolean
args_spec (const char *gpu, gint64 node_gpus, ImportedRun *r, Spec *s, GError **error)
{
  g_autoptr (GString) run_text = g_string_new (NULL), machine_text = g_string_new (NULL);
  g_autoptr (JsonWriter) w = json_writer_new (run_text, 0),
                         machine = json_writer_new (machine_text, 0);
  jw_begin_object (w, NULL);
  if (!imported_run_write (r, w, error))
    return FALSE;
  jw_end_object (w);
  write_machine (r, gpu, node_gpus, machine);
  g_autoptr (JsonDoc) doc = scenario_document_text ("the arguments", run_text->str, error);
  g_autoptr (JsonDoc) beside = scenario_document_text ("the machine", machine_text->str, error);
  if (doc == NULL || beside == NULL)
    return FALSE;
  json_doc_merge (doc, beside);
  if (!scenario_read (doc, s, error))
    return FALSE;
  args_software (r, &s->software);
  return TRUE;
}

/* ---- results ---- */

static double
cell_number (const RunContext *c, guint row, const char *col)
{
  return g_ascii_strtod (csv_cell (c->t, row, csv_col (c->t, col)), NULL);
}

static void
add_result (const RunContext *c, guint row, GArray *rows, const char *suffix, const char *metric,
            double published, double predicted)
{
  if (!(published > 0) || !(predicted > 0))
    return;
  RowResult *r = validate_add (rows, metric, published, predicted, memory_interval);
  r->id = g_strdup_printf ("%s:%s", csv_cell (c->t, row, csv_col (c->t, "id")), suffix);
}

static gboolean
memory_predict (const RunContext *c, guint row, ImportedRun *r, Prediction *p, char **reason)
{
  const char *platform = csv_cell (c->t, row, csv_col (c->t, "platform"));
  const char *name = csv_cell (c->t, row, csv_col (c->t, "case"));
  const char *gpu = g_str_has_prefix (platform, "A100")    ? "A100-SXM-80GB"
                    : g_str_has_prefix (platform, "GB200") ? "GB200-186GB"
                                                           : "H100-SXM-80GB";
  gint64 node_gpus =
      strstr (name, "1node") != NULL && g_str_has_prefix (gpu, "GB200") ? TRAY_GPUS : NODE_GPUS;
  g_autoptr (GError) err = NULL;
  Spec s;
  gboolean ok = FALSE;
  if (args_read (r, csv_cell (c->t, row, csv_col (c->t, "megatron_args")), &err) &&
      args_scope (r, reason) && args_spec (gpu, node_gpus, r, &s, &err)) {
    if (!args_deterministic (r) || strstr (name, "nondeterministic") != NULL)
      s.software.blas_config_bytes = 0;
    ok = predict (&s, c->cache, NULL, p, &err);
    spec_clear (&s);
  }
  if (err != NULL)
    *reason = g_strdup (err->message);
  return ok;
}

static void
memory_row (const RunContext *c, guint row, GArray *rows)
{
  g_autoptr (ImportedRun) r = imported_run_new ("the arguments");
  g_autofree char *reason = NULL;
  Prediction p;
  if (!memory_predict (c, row, r, &p, &reason)) {
    validate_skip (rows, reason);
    return;
  }
  const StageMemory *last = &p.memory.stages[p.memory.n_stages - 1];
  add_result (c, row, rows, "after_step", "allocated_after_step_bytes",
              cell_number (c, row, "allocated_after_step_bytes"), (double)last->after_step_bytes);
  add_result (c, row, rows, "peak", "max_allocated_bytes",
              cell_number (c, row, "max_allocated_bytes"), (double)last->allocated_bytes);
  prediction_clear (&p);
}

static const char *const needed[] = {"max_allocated_bytes", "megatron_args", NULL};
const TableKind table_memory = {"memory", needed, "platform", "memory", NULL, memory_row};
