/* import_run_priv: the settings that matter, for import_run*.c. */
#ifndef CLUSTERSIM_IMPORT_RUN_PRIV_H
#define CLUSTERSIM_IMPORT_RUN_PRIV_H

#include "import_run.h"

typedef enum {
  K_LAYERS,
  K_HIDDEN,
  K_FFN,
  K_HEADS,
  K_GQA,
  K_GROUPS,
  K_KV_CHANNELS,
  K_VOCAB,
  K_POSITIONS,
  K_SEQ,
  K_MBS,
  K_GBS,
  K_TP,
  K_PP,
  K_CP,
  K_EP,
  K_ETP,
  K_VPP_LAYERS,
  K_VPP,
  K_LAYOUT,
  K_SP,
  K_DISTOPT,
  K_ZERO,
  K_FSDP,
  K_SHARDING,
  K_BF16,
  K_FP16,
  K_FP8,
  K_FP8_RECIPE,
  K_RECOMPUTE_ALL,
  K_RECOMPUTE,
  K_RECOMPUTE_MODULES,
  K_CHECKPOINT_ALL,
  K_SWIGLU,
  K_RELU2,
  K_NORM,
  K_POS,
  K_ROPE,
  K_UNTIE,
  K_NO_BIAS,
  K_QKV_BIAS,
  K_QK_NORM,
  K_EMBED_NORM,
  K_EXPERTS,
  K_TOPK,
  K_MOE_FFN,
  K_SHARED_FFN,
  K_MOE_FREQ,
  K_MLA,
  K_Q_LORA,
  K_KV_LORA,
  K_QK_NOPE,
  K_QK_ROPE,
  K_V_HEAD,
  K_MTP,
  K_ROUTER_GROUPS,
  K_ROUTER_TOP_GROUPS,
  K_ROUTER_BIAS,
  K_NODES,
  K_GPUS_PER_NODE,
  K_GPUS,
  K_WINDOW,
  K_SINKS,
  K_ALIBI,
  K_REPLICAS,
  K_RESHARD,
  K_SCHEDULE,
  K_COUNT
} Key;

typedef enum { INTEGER, FLAG, NAME } Kind;

typedef struct {
  const char *name;
  Key key;
  Kind kind;
} ImportName;
extern const ImportName import_names[]; /* a NULL name ends them */

struct ImportedRun {
  char *file, *model, *software;
  char *value[K_COUNT]; /* NULL: not there */
  guint line[K_COUNT], count;
  GPtrArray *ignored, *notes; /* names; text */
  GHashTable *others; /* plain name → value ("" of a flag), of settings that are ignored */
};

/* CLI_ERROR_USAGE, "FILE:LINE: NAME: …"; FALSE. */
gboolean import_run_fail (const ImportedRun *r, guint line, const char *name, GError **error,
                          const char *format, ...) G_GNUC_PRINTF (5, 6);
gboolean import_is_false (const char *value);
/* "220_000_000" too. FALSE when it is no whole number. */
gboolean import_whole_number (const char *text, gint64 *out);

#endif
