#include "types.h"

const char *const dtype_names[] = {"fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "fp4", NULL};
const char *const recompute_names[] = {"none", "selective", "full", NULL};
const char *const part_names[] = {"compute", "tp_comm", "cp_comm", "ep_comm",
                                  "pp_comm", "dp_comm", "bubble",  "optimizer",
                                  "host",    "data",    "other",   NULL};

double
dtype_bytes (DType t)
{
  switch (t) {
  case DT_FP32:
  case DT_TF32: /* kept as fp32; only the tensor core rounds */
    return 4;
  case DT_FP16:
  case DT_BF16:
    return 2;
  case DT_FP8:
  case DT_MXFP8:
    return 1;
  case DT_FP4:
    return 0.5;
  case DT_COUNT:
    break;
  }
  g_assert_not_reached ();
}

G_STATIC_ASSERT (G_N_ELEMENTS (dtype_names) == DT_COUNT + 1);
G_STATIC_ASSERT (G_N_ELEMENTS (part_names) == PART_COUNT + 1);
