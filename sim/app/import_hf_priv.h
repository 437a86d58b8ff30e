/* import_hf_priv: what the files of the Hugging Face reader share. */
#ifndef CLUSTERSIM_IMPORT_HF_PRIV_H
#define CLUSTERSIM_IMPORT_HF_PRIV_H

#include "import_hf.h"

#define HF_INT_MAX (1 << 26)

/* A config object that remembers which of its keys were read. The first error stays; every read
 * after it does nothing, so a family's function need not check each one. */
typedef struct {
  const JsonRef *obj;
  const char *prefix; /* "" or "text_config." … in ignored keys */
  GPtrArray *seen;    /* char*, borrowed key literals */
  GError *error;
} Hf;

void hf_init (Hf *h, const JsonRef *obj, const char *prefix);
/* Adds what was not read to ignored (may be NULL), moves the error; TRUE without one. */
gboolean hf_finish (Hf *h, GPtrArray *ignored, GError **error);

/* Each takes aliases up to NULL and reads the first that is there and not null; FALSE: none, *out
 * is left as it is. A range is 0 … HF_INT_MAX. */
gboolean hf_int (Hf *h, gint64 *out, ...) G_GNUC_NULL_TERMINATED;
gboolean hf_bool (Hf *h, gboolean *out, ...) G_GNUC_NULL_TERMINATED;
gboolean hf_string (Hf *h, const char **out, ...) G_GNUC_NULL_TERMINATED;
/* As hf_int, but absent is an error. */
void hf_need (Hf *h, gint64 *out, ...) G_GNUC_NULL_TERMINATED;
/* Members of one kind; FALSE when absent or null, and, with the error set, when of another kind. */
gboolean hf_object (Hf *h, const char *key, JsonRef *out);
gboolean hf_array (Hf *h, const char *key, JsonRef *out);
/* Marks key as read without reading it: its value cannot change what we compute. */
void hf_mark (Hf *h, const char *key);
void hf_fail (Hf *h, const char *key, const char *format, ...) G_GNUC_PRINTF (3, 4);

typedef enum { HF_QKV_BIAS = 1, HF_OUT_BIAS = 2, HF_MLP_BIAS = 4, HF_HEAD_BIAS = 8 } HfBias;
#define HF_ALL_BIAS (HF_QKV_BIAS | HF_OUT_BIAS | HF_MLP_BIAS)

typedef struct {
  const char *type;
  NormKind norm;
  ActKind act;
  PosKind pos;
  gboolean gated, tied, norm_bias;
  guint bias;
  gint64 norms;
  gboolean parallel;
  gint64 head_dim; /* default where the class has one of its own; 0: hidden / heads */
  void (*extra) (Hf *h, ModelSpec *m); /* keys of its own, after the common ones; may be NULL */
} HfFamily;

const HfFamily *hf_family_find (const char *type);
/* NULL-terminated names of all families; free the array, not the strings. */
const char **hf_family_names (void);
/* The common keys, then the family's own. */
gboolean hf_family_read (Hf *h, const HfFamily *f, ModelSpec *m);

void hf_moe_mixtral (Hf *h, ModelSpec *m);
void hf_moe_qwen2 (Hf *h, ModelSpec *m);
void hf_moe_qwen3 (Hf *h, ModelSpec *m);
void hf_moe_qwen3_next (Hf *h, ModelSpec *m);
void hf_moe_deepseek (Hf *h, ModelSpec *m);
void hf_moe_deepseek_mla (Hf *h, ModelSpec *m);
void hf_moe_glm4 (Hf *h, ModelSpec *m);
void hf_moe_gpt_oss (Hf *h, ModelSpec *m);
void hf_moe_dbrx (Hf *h, ModelSpec *m);
void hf_moe_grok (Hf *h, ModelSpec *m);
void hf_moe_llama4 (Hf *h, ModelSpec *m);
void hf_moe_minimax (Hf *h, ModelSpec *m);
/* sliding_window with layer_types, or every period-th layer full. */
void hf_sliding (Hf *h, ModelSpec *m, gint64 period);

#endif
