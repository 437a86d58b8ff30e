/* types: the small enumerations that all models share. Names in JSON are the lower-case ones of
 * the tables below, in the same order. */
#ifndef CLUSTERSIM_TYPES_H
#define CLUSTERSIM_TYPES_H

#include <glib.h>

typedef enum { DT_FP32, DT_TF32, DT_FP16, DT_BF16, DT_FP8, DT_MXFP8, DT_FP4, DT_COUNT } DType;
extern const char *const dtype_names[]; /* "fp32" … NULL-terminated */
double dtype_bytes (DType t);           /* bytes of one element in memory; fp4 is 0.5 */

typedef enum { RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL } Recompute;
extern const char *const recompute_names[];

/* Where time goes; the parts of breakdown_s, in this order. */
typedef enum {
  PART_COMPUTE,
  PART_TP_COMM,
  PART_CP_COMM,
  PART_EP_COMM,
  PART_PP_COMM,
  PART_DP_COMM,
  PART_BUBBLE,
  PART_OPTIMIZER,
  PART_HOST,
  PART_DATA,
  PART_OTHER,
  PART_COUNT
} Part;
extern const char *const part_names[];

#endif
