/* Tables of memory-bound kernels: norms, softmax, activations, cross entropy, embedding, streams,
 * by the bytes that their operands need. Rows of things that are no kernel (host times, copies
 * between parts, collectives, whole steps) are skipped with that reason.
 *
 * A row's count of elements is in its shape, in one of the ways of the sources: "16384x4096";
 * "4096 tokens; Llama-2-7b-hf h=4096 ffn=11008"; "H=1024 {S: 4096, B: 1}". */
#include "validate.h"

#include <math.h>
#include <string.h>

#include "gpu_profile.h"

static const StepInterval kernel_interval = {0.8, 1.25};

typedef enum { CELLS_PRODUCT, CELLS_TOKENS_H, CELLS_TOKENS_FFN, CELLS_BRACES } CellCount;

static const struct {
  const char *op; /* the row's op begins with it */
  MemKernel kind;
  double passes; /* reads and writes of an element */
  double bytes;  /* of an element where the row does not say its type; 0: the row must */
  CellCount cells;
} kernels[] = {
    {"stream_triad", MEMK_STREAM, 3, 8, CELLS_PRODUCT},
    {"stream_scale", MEMK_STREAM, 2, 8, CELLS_PRODUCT},
    {"stream_read", MEMK_STREAM, 1, 8, CELLS_PRODUCT},
    {"elementwise add", MEMK_STREAM, 3, 4, CELLS_PRODUCT},
    {"copy kernel", MEMK_STREAM, 2, 2, CELLS_PRODUCT},
    {"eager tensor copy", MEMK_STREAM, 2, 2, CELLS_PRODUCT},
    {"hbm copy", MEMK_STREAM, 2, 8, CELLS_PRODUCT},
    {"hbm roofline", MEMK_STREAM, 2, 8, CELLS_PRODUCT},
    {"hbm_bandwidth", MEMK_STREAM, 2, 8, CELLS_PRODUCT},
    {"rms_norm_fwd", MEMK_NORM_FWD, 2, 2, CELLS_PRODUCT},
    {"rms_norm_bwd", MEMK_NORM_BWD, 3, 2, CELLS_PRODUCT},
    {"layer_norm_fwd", MEMK_NORM_FWD, 2, 2, CELLS_PRODUCT},
    {"layer_norm_bwd", MEMK_NORM_BWD, 3, 2, CELLS_PRODUCT},
    {"layernorm_fwdbwd", MEMK_COUNT, 0, 0, CELLS_PRODUCT}, /* a time of the host */
    {"layernorm_fwd llm.c", MEMK_NORM_FWD, 2, 4, CELLS_PRODUCT},
    {"layernorm_fwd", MEMK_NORM_FWD, 2, 4, CELLS_PRODUCT},
    {"layernorm", MEMK_NORM_FWD, 2, 2, CELLS_PRODUCT},
    {"softmax_fwd", MEMK_SOFTMAX_FWD, 2, 4, CELLS_PRODUCT},
    {"softmax", MEMK_SOFTMAX_FWD, 2, 2, CELLS_PRODUCT},
    {"gelu", MEMK_ELEMENTWISE, 2, 2, CELLS_PRODUCT},
    {"add", MEMK_STREAM, 3, 2, CELLS_TOKENS_H},
    {"emb", MEMK_EMBEDDING, 2, 2, CELLS_TOKENS_H},
    {"input_layernorm", MEMK_NORM_FWD, 2, 2, CELLS_TOKENS_H},
    {"mlp_act", MEMK_ELEMENTWISE, 3, 2, CELLS_TOKENS_FFN},
    {"megatron_rms_norm_forward", MEMK_NORM_FWD, 2, 2, CELLS_BRACES},
    {"megatron_rms_norm_backward", MEMK_NORM_BWD, 3, 2, CELLS_BRACES},
    {"fused_add_rms_norm_forward", MEMK_NORM_FWD, 4, 4, CELLS_BRACES},
    {"fused_add_rms_norm_backward", MEMK_NORM_BWD, 4, 4, CELLS_BRACES},
    {"megatron_cross_entropy_forward", MEMK_XENT, 3, 2, CELLS_BRACES},
    {"megatron_swiglu_forward", MEMK_ELEMENTWISE, 3, 2, CELLS_BRACES},
    {"megatron_swiglu_backward", MEMK_ELEMENTWISE, 5, 2, CELLS_BRACES},
};

static const char *
cell (const RunContext *c, guint row, const char *col)
{
  return csv_cell (c->t, row, csv_col (c->t, col));
}

static double
number (const RunContext *c, guint row, const char *col)
{
  const char *text = cell (c, row, col);
  char *end = NULL;
  double v = g_ascii_strtod (text, &end);
  return end == text || *end != '\0' || !isfinite (v) || v < 0 ? 0 : v;
}

/* The number after a word of a text; 0 without. */
static double
after (const char *text, const char *word)
{
  const char *at = strstr (text, word);
  return at != NULL ? g_ascii_strtod (at + strlen (word), NULL) : 0;
}

static double
cells_of (const char *shape, CellCount how)
{
  double n = g_ascii_strtod (shape, NULL);
  char *end = NULL;
  switch (how) {
  case CELLS_TOKENS_H:
    return n * after (shape, "h=");
  case CELLS_TOKENS_FFN:
    return n * after (shape, "ffn=");
  case CELLS_BRACES: /* width, then tokens as one number or as sequence and batch */
    n = after (shape, "=") * MAX (after (shape, "{M: "), after (shape, "{S: "));
    return n * MAX (1, after (shape, "B: "));
  case CELLS_PRODUCT:
    break;
  }
  for (n = 1; g_ascii_isdigit (*shape); shape = end + (*end == 'x')) {
    n *= g_ascii_strtod (shape, &end);
    if (*end != 'x')
      return n;
  }
  return 0;
}

static int
kernel_of (const char *op)
{
  for (gsize i = 0; i < G_N_ELEMENTS (kernels); i++)
    if (g_str_has_prefix (op, kernels[i].op))
      return kernels[i].kind < MEMK_COUNT ? (int)i : -1;
  return -1;
}

static void
ops_row (const RunContext *c, guint row, GArray *rows)
{
  const char *op = cell (c, row, "op"), *gpu = cell (c, row, "gpu");
  const char *name = g_str_has_prefix (gpu, "NVIDIA ") ? gpu + strlen ("NVIDIA ") : gpu;
  const GpuProfile *g = store_gpu (c->store, name, NULL, NULL);
  int k = kernel_of (op);
  if (g == NULL || k < 0) {
    g_autofree char *why = k < 0 ? g_strdup_printf ("%s is no memory-bound kernel of a part", op)
                                 : g_strdup_printf ("no profile of %s", gpu);
    validate_skip (rows, why);
    return;
  }
  double us = number (c, row, "time_us"), GBps = number (c, row, "GBps");
  double bytes = number (c, row, "bytes");
  if (!(bytes > 0))
    bytes =
        kernels[k].passes * kernels[k].bytes * cells_of (cell (c, row, "shape"), kernels[k].cells);
  RowResult *r;
  if (us > 0 && bytes > 0) {
    r = validate_add (rows, "time_us", us, 1e6 * gpu_memory_s (g, kernels[k].kind, bytes),
                      kernel_interval);
    r->judged = bytes >= 3e7;
  } else if (GBps > 0) { /* a plateau: no launch in it */
    r = validate_add (rows, "GBps", GBps, 1e-9 * g->memk_fraction[kernels[k].kind] * g->hbm_Bps,
                      kernel_interval);
    r->judged = TRUE;
  } else {
    validate_skip (rows, "neither a time with its bytes nor a rate");
    return;
  }
  if (c->own_groups)
    r->group = g_strdup_printf ("%s %s", gpu, op);
}

static const char *const needed[] = {"gpu", "op", "shape", "bytes", "time_us", "GBps", NULL};
const TableKind table_ops = {
    "ops", needed, "gpu", "memory-bound kernels", "30 MB and more, and plateaus:", ops_row};
