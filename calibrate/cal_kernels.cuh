/* cal_kernels: the memory-bound kernels of a transformer in bf16, each one pass over its operands
 * as a fused kernel of a framework is; the bytes an element that the simulator counts are said at
 * each (models/layer_emit.c). Used by the collectors and by the layer that is timed as a whole. */
#ifndef CAL_KERNELS_CUH
#define CAL_KERNELS_CUH

#include "cal_common.cuh"

typedef __nv_bfloat16 bf16;

/* Eight values a thread and access: 16 bytes. */
struct alignas (16) Vec8 {
  bf16 v[8];
};

__device__ inline float
block_sum (float x)
{
  __shared__ float part[32];
  for (int o = 16; o > 0; o /= 2)
    x += __shfl_xor_sync (0xffffffffu, x, o);
  if (threadIdx.x % 32 == 0)
    part[threadIdx.x / 32] = x;
  __syncthreads ();
  x = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
  if (threadIdx.x < 32)
    for (int o = 16; o > 0; o /= 2)
      x += __shfl_xor_sync (0xffffffffu, x, o);
  if (threadIdx.x == 0)
    part[0] = x;
  __syncthreads ();
  x = part[0];
  __syncthreads ();
  return x;
}

__device__ inline float
block_max (float x)
{
  __shared__ float part[32];
  for (int o = 16; o > 0; o /= 2)
    x = fmaxf (x, __shfl_xor_sync (0xffffffffu, x, o));
  if (threadIdx.x % 32 == 0)
    part[threadIdx.x / 32] = x;
  __syncthreads ();
  x = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : -1e30f;
  if (threadIdx.x < 32)
    for (int o = 16; o > 0; o /= 2)
      x = fmaxf (x, __shfl_xor_sync (0xffffffffu, x, o));
  if (threadIdx.x == 0)
    part[0] = x;
  __syncthreads ();
  x = part[0];
  __syncthreads ();
  return x;
}

/* Root-mean-square norm of rows; a block a row: 4 bytes an element. width % 8 == 0. */
__global__ static void
k_norm (const bf16 *x, const bf16 *g, bf16 *y, float *inv, int width)
{
  const Vec8 *in = (const Vec8 *)(x + (size_t)blockIdx.x * width);
  Vec8 *out = (Vec8 *)(y + (size_t)blockIdx.x * width);
  const Vec8 *gain = (const Vec8 *)g;
  float sum = 0;
  for (int i = threadIdx.x; i < width / 8; i += blockDim.x) {
    Vec8 v = in[i];
    for (int j = 0; j < 8; j++)
      sum += (float)v.v[j] * (float)v.v[j];
  }
  float f = rsqrtf (block_sum (sum) / width + 1e-6f);
  if (threadIdx.x == 0)
    inv[blockIdx.x] = f;
  for (int i = threadIdx.x; i < width / 8; i += blockDim.x) {
    Vec8 v = in[i], w = gain[i];
    for (int j = 0; j < 8; j++)
      v.v[j] = (bf16)((float)v.v[j] * f * (float)w.v[j]);
    out[i] = v;
  }
}

/* Reads x, dy, writes dx: 6 bytes an element. */
__global__ static void
k_norm_back (const bf16 *x, const bf16 *g, const float *inv, const bf16 *dy, bf16 *dx, int width)
{
  size_t row = (size_t)blockIdx.x * width;
  const Vec8 *in = (const Vec8 *)(x + row), *d = (const Vec8 *)(dy + row);
  const Vec8 *gain = (const Vec8 *)g;
  Vec8 *out = (Vec8 *)(dx + row);
  float f = inv[blockIdx.x], dot = 0;
  for (int i = threadIdx.x; i < width / 8; i += blockDim.x) {
    Vec8 a = in[i], b = d[i], w = gain[i];
    for (int j = 0; j < 8; j++)
      dot += (float)a.v[j] * (float)b.v[j] * (float)w.v[j];
  }
  dot = block_sum (dot) * f * f * f / width;
  for (int i = threadIdx.x; i < width / 8; i += blockDim.x) {
    Vec8 a = in[i], b = d[i], w = gain[i];
    for (int j = 0; j < 8; j++)
      a.v[j] = (bf16)((float)b.v[j] * (float)w.v[j] * f - (float)a.v[j] * dot);
    out[i] = a;
  }
}

/* Scale, causal mask and softmax of rows of scores, in place; a block a row: 4 bytes an element. */
__global__ static void
k_softmax (bf16 *p, int n, float scale)
{
  bf16 *row = p + (size_t)blockIdx.x * n;
  Vec8 *v = (Vec8 *)row;
  int seen = (int)(blockIdx.x % n) + 1;
  float top = -1e30f, sum = 0;
  for (int i = threadIdx.x; i < n / 8; i += blockDim.x) {
    Vec8 x = v[i];
    for (int j = 0; j < 8; j++)
      if (8 * i + j < seen)
        top = fmaxf (top, (float)x.v[j]);
  }
  top = block_max (top);
  for (int i = threadIdx.x; i < n / 8; i += blockDim.x) {
    Vec8 x = v[i];
    for (int j = 0; j < 8; j++)
      sum += 8 * i + j < seen ? __expf (((float)x.v[j] - top) * scale) : 0;
  }
  sum = 1 / block_sum (sum);
  for (int i = threadIdx.x; i < n / 8; i += blockDim.x) {
    Vec8 x = v[i];
    for (int j = 0; j < 8; j++)
      x.v[j] = (bf16)(8 * i + j < seen ? __expf (((float)x.v[j] - top) * scale) * sum : 0.0f);
    v[i] = x;
  }
}

/* dp becomes the gradient of the scores: 6 bytes an element. */
__global__ static void
k_softmax_back (const bf16 *p, bf16 *dp, int n, float scale)
{
  const Vec8 *a = (const Vec8 *)(p + (size_t)blockIdx.x * n);
  Vec8 *d = (Vec8 *)(dp + (size_t)blockIdx.x * n);
  float dot = 0;
  for (int i = threadIdx.x; i < n / 8; i += blockDim.x) {
    Vec8 x = a[i], y = d[i];
    for (int j = 0; j < 8; j++)
      dot += (float)x.v[j] * (float)y.v[j];
  }
  dot = block_sum (dot);
  for (int i = threadIdx.x; i < n / 8; i += blockDim.x) {
    Vec8 x = a[i], y = d[i];
    for (int j = 0; j < 8; j++)
      y.v[j] = (bf16)((float)x.v[j] * ((float)y.v[j] - dot) * scale);
    d[i] = y;
  }
}

__global__ static void
k_gelu (bf16 *x, size_t n) /* 4 bytes an element */
{
  Vec8 *v = (Vec8 *)x;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n / 8;
       i += (size_t)gridDim.x * blockDim.x) {
    Vec8 a = v[i];
    for (int j = 0; j < 8; j++) {
      float f = (float)a.v[j];
      a.v[j] = (bf16)(0.5f * f * (1 + tanhf (0.7978845608f * (f + 0.044715f * f * f * f))));
    }
    v[i] = a;
  }
}

/* Gradient times a gate that is taken from the output's sign: reads y, dy, writes dy: 6. */
__global__ static void
k_act_back (const bf16 *y, bf16 *dy, size_t n)
{
  const Vec8 *a = (const Vec8 *)y;
  Vec8 *d = (Vec8 *)dy;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n / 8;
       i += (size_t)gridDim.x * blockDim.x) {
    Vec8 x = a[i], z = d[i];
    for (int j = 0; j < 8; j++)
      z.v[j] = (float)x.v[j] > 0 ? z.v[j] : (bf16)0.0f;
    d[i] = z;
  }
}

__global__ static void
k_add (const bf16 *a, const bf16 *b, bf16 *y, size_t n) /* 6 bytes an element */
{
  const Vec8 *u = (const Vec8 *)a, *w = (const Vec8 *)b;
  Vec8 *out = (Vec8 *)y;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n / 8;
       i += (size_t)gridDim.x * blockDim.x) {
    Vec8 x = u[i], z = w[i];
    for (int j = 0; j < 8; j++)
      x.v[j] = (bf16)((float)x.v[j] + (float)z.v[j]);
    out[i] = x;
  }
}

/* SwiGLU of gate and up projections side by side: 6 bytes an element of the result. */
__global__ static void
k_swiglu (const bf16 *gate, const bf16 *up, bf16 *y, size_t n)
{
  const Vec8 *u = (const Vec8 *)gate, *w = (const Vec8 *)up;
  Vec8 *out = (Vec8 *)y;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n / 8;
       i += (size_t)gridDim.x * blockDim.x) {
    Vec8 x = u[i], z = w[i];
    for (int j = 0; j < 8; j++) {
      float f = (float)x.v[j];
      x.v[j] = (bf16)(f / (1 + __expf (-f)) * (float)z.v[j]);
    }
    out[i] = x;
  }
}

/* Cross entropy of a row, and its gradient in place of the logits: 3 reads and a write: 8 bytes. */
__global__ static void
k_loss (bf16 *logits, const int *target, float *loss, int vocab, float scale)
{
  bf16 *row = logits + (size_t)blockIdx.x * vocab;
  Vec8 *v = (Vec8 *)row;
  float top = -1e30f, sum = 0, at = (float)row[target[blockIdx.x]];
  for (int i = threadIdx.x; i < vocab / 8; i += blockDim.x) {
    Vec8 x = v[i];
    for (int j = 0; j < 8; j++)
      top = fmaxf (top, (float)x.v[j]);
  }
  top = block_max (top);
  for (int i = threadIdx.x; i < vocab / 8; i += blockDim.x) {
    Vec8 x = v[i];
    for (int j = 0; j < 8; j++)
      sum += __expf ((float)x.v[j] - top);
  }
  sum = block_sum (sum);
  if (threadIdx.x == 0)
    loss[blockIdx.x] = logf (sum) - (at - top);
  float f = scale / sum;
  for (int i = threadIdx.x; i < vocab / 8; i += blockDim.x) {
    Vec8 x = v[i];
    for (int j = 0; j < 8; j++)
      x.v[j] = (bf16)(__expf ((float)x.v[j] - top) * f -
                      (8 * i + j == target[blockIdx.x] ? scale : 0.0f));
    v[i] = x;
  }
}

/* Adam on fp32 master, moments and gradient, with a 16-bit copy of the weight: reads 16, writes 12,
 * zeroes 4, writes 2: 34 bytes a parameter. */
__global__ static void
k_adam (float *w, float *g, float *m, float *v, bf16 *copy, size_t n, float lr, float c1, float c2)
{
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n / 4;
       i += (size_t)gridDim.x * blockDim.x) {
    float4 ww = ((float4 *)w)[i], gg = ((float4 *)g)[i], mm = ((float4 *)m)[i],
           vv = ((float4 *)v)[i];
    float *pw = &ww.x, *pg = &gg.x, *pm = &mm.x, *pv = &vv.x;
    for (int j = 0; j < 4; j++) {
      pm[j] = 0.9f * pm[j] + 0.1f * pg[j];
      pv[j] = 0.95f * pv[j] + 0.05f * pg[j] * pg[j];
      pw[j] -= lr * pm[j] * c1 / (sqrtf (pv[j] * c2) + 1e-8f);
      pg[j] = 0;
      copy[4 * i + j] = (bf16)pw[j];
    }
    ((float4 *)w)[i] = ww;
    ((float4 *)g)[i] = gg;
    ((float4 *)m)[i] = mm;
    ((float4 *)v)[i] = vv;
  }
}

__global__ static void
k_embed (const int *token, const bf16 *table, bf16 *y, int width) /* 4 bytes an element */
{
  const Vec8 *from = (const Vec8 *)(table + (size_t)token[blockIdx.x] * width);
  Vec8 *to = (Vec8 *)(y + (size_t)blockIdx.x * width);
  for (int i = threadIdx.x; i < width / 8; i += blockDim.x)
    to[i] = from[i];
}

__global__ static void
k_cast_fp8 (const bf16 *x, __nv_fp8_e4m3 *y, size_t n) /* 3 bytes an element */
{
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n / 8;
       i += (size_t)gridDim.x * blockDim.x) {
    Vec8 a = ((const Vec8 *)x)[i];
    union {
      __nv_fp8_e4m3 e[8];
      uint2 u;
    } out;
    for (int j = 0; j < 8; j++)
      out.e[j] = (__nv_fp8_e4m3)((float)a.v[j]);
    ((uint2 *)y)[i] = out.u;
  }
}

__global__ static void
k_square_sum (const float *g, float *sum, size_t n) /* 4 bytes a parameter */
{
  float x = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n / 4;
       i += (size_t)gridDim.x * blockDim.x) {
    float4 v = ((const float4 *)g)[i];
    x += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  x = block_sum (x);
  if (threadIdx.x == 0)
    atomicAdd (sum, x);
}

#endif
