#include "compress.h"

#include "gpu_profile.h"

#define SIGN_BYTES (1.0 / 8.0)
#define WIDE_BYTES 4.0 /* momentum and error */

typedef struct {
  gint64 n, k, count;
} Matrix;
#define N_MATRICES 5

/* The weight matrices of a rank, all layers. */
static void
matrices (const Spec *s, Matrix m[N_MATRICES])
{
  const ModelSpec *d = &s->model;
  gint64 tp = s->parallel.tp, layers = d->num_layers / s->parallel.pp;
  gint64 q = d->heads * d->head_dim / tp, kv = MAX (d->kv_heads / tp, 1) * d->head_dim;
  layers = MAX (layers, 1);
  m[0] = (Matrix){q + 2 * kv, d->hidden, layers};
  m[1] = (Matrix){d->hidden, q, layers};
  m[2] = (Matrix){(d->gated_mlp ? 2 : 1) * d->ffn_hidden / tp, d->hidden, layers};
  m[3] = (Matrix){d->hidden, d->ffn_hidden / tp, layers};
  m[4] = (Matrix){spec_padded_vocab (s) / tp, d->hidden,
                  s->parallel.pp == 1 && !d->tied_embeddings ? 2 : 1};
}

static void
totals (const Spec *s, double *whole, double *small)
{
  Matrix m[N_MATRICES];
  matrices (s, m);
  *whole = *small = 0;
  for (guint i = 0; i < N_MATRICES; i++) {
    *whole += (double)m[i].count * (double)m[i].n * (double)m[i].k;
    *small += (double)m[i].count * (double)s->parallel.compression_rank * (double)(m[i].n + m[i].k);
  }
}

double
compress_ratio (const Spec *s)
{
  double whole, small;
  if (s->parallel.compression != COMPRESS_POWERSGD)
    return 1;
  totals (s, &whole, &small);
  return MIN (1.0, small / whole);
}

double
compress_reduce_s (const Spec *s, const CollGroup *group, double params)
{
  if (s->parallel.compression == COMPRESS_ONEBIT)
    return coll_time_s (s->fabric, COLL_ALLTOALL, group, params * SIGN_BYTES, NULL) +
           coll_time_s (s->fabric, COLL_ALL_GATHER, group, params * SIGN_BYTES, NULL);
  /* the two factors one after the other, half of the elements each */
  double bytes = params * s->software.dp_reduce_bytes * compress_ratio (s) * 0.5;
  return 2.0 * coll_time_s (s->fabric, COLL_ALL_REDUCE, group, bytes, NULL);
}

/* Of one matrix: both products, the sum of the factors, and the error kept. */
static double
factor_s (const Spec *s, const Matrix *m)
{
  gint64 r = s->parallel.compression_rank;
  DType type = s->train.precision == DT_FP32 ? DT_FP32 : DT_BF16;
  const GemmShape shapes[] = {
      {.m = m->n, .n = r, .k = m->k, .batch = 1, .dtype = type, .role = GEMM_FORWARD},
      {.m = m->k, .n = r, .k = m->n, .batch = 1, .dtype = type, .role = GEMM_FORWARD},
      {.m = m->n, .n = m->k, .k = r, .batch = 1, .dtype = type, .role = GEMM_FORWARD}};
  double t = 0, elements = (double)m->n * (double)m->k;
  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++)
    t += gpu_gemm_s (s->gpu, &shapes[i], s->software.gemm_duty);
  t += (double)r * gpu_kernel_floor_s (s->gpu); /* P is made orthogonal column by column */
  return t + gpu_memory_s (s->gpu, MEMK_STREAM, 3.0 * elements * s->software.dp_reduce_bytes);
}

double
compress_kernels_s (const Spec *s, const CollGroup *group, double params)
{
  double whole, small, t = 0;
  Matrix m[N_MATRICES];
  if (group->ranks <= 1 || s->parallel.compression == COMPRESS_NONE)
    return 0;
  if (s->parallel.compression == COMPRESS_ONEBIT) {
    /* read momentum and error, write error and signs; a part of them averaged; signs read, written
     * wide */
    double own = 3.0 * WIDE_BYTES + SIGN_BYTES, back = SIGN_BYTES + WIDE_BYTES;
    double server = (2.0 * WIDE_BYTES + 2.0 * SIGN_BYTES) / (double)group->ranks;
    return gpu_memory_s (s->gpu, MEMK_STREAM, params * (own + back + server));
  }
  totals (s, &whole, &small);
  matrices (s, m);
  for (guint i = 0; i < N_MATRICES; i++)
    t += (double)m[i].count * factor_s (s, &m[i]);
  return t * params / whole;
}
