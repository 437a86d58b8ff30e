/* gpu_attn: fused attention as blocks of query rows that walk over the keys.
 *
 * A thread block owns Bq query rows (key rows in the backward pass) of one head and walks over the
 * keys it may see. With rate = efficiency(kernel, pass, head dim) * peak / SMs,
 *   t = floor + waves * Bq * (keys + kv0) * F / rate
 * where F is FLOPs per query and key, 2 (d_qk + d_v) forward and 2 (3 d_qk + 2 d_v) backward (2.5
 * times forward when the dimensions are equal), keys the mean number of visible keys, kv0 prologue
 * and epilogue in keys. A causal mask leaves half of the keys, plus half a block on the diagonal,
 * so a causal kernel needs twice the sequence to reach the same share of its plateau. The operands
 * move once through HBM beside it.
 */
#include "gpu_profile.h"

#include <math.h>

/* Mean number of keys that a block of query rows walks over. */
static double
keys_walked (const AttnShape *s, double block_q)
{
  double kv = (double)s->seq_kv, w = (double)s->window;
  double keys = s->causal ? MIN (kv, (kv + block_q) / 2) : kv;

  if (s->window > 0 && w < kv) {
    /* Each row sees min(i + 1, w) keys when causal, w + the same ahead when not; a block sees those
     * of its first to its last row. */
    double span = s->causal ? w : MIN (kv, 2 * w);
    double lost =
        s->causal ? w * w / (2 * kv) : 0; /* the first rows have fewer than w before them */
    keys = MIN (keys, span - lost + block_q);
  }
  return keys;
}

static double
dim_efficiency (const double *eff, double d)
{
  if (d <= attn_dims[0])
    return eff[0];
  for (int i = 1; i < ATTN_N_DIMS; i++)
    if (d <= attn_dims[i]) {
      double x = (d - attn_dims[i - 1]) / (attn_dims[i] - attn_dims[i - 1]);
      return eff[i - 1] + x * (eff[i] - eff[i - 1]);
    }
  return eff[ATTN_N_DIMS - 1];
}

/* Forward reads q, k, v and writes o; backward reads q, k, v, o, do, adds into an fp32 dq, which is
 * then converted, and writes dk, dv per query head before they are summed over a group. */
static double
attention_bytes (const AttnShape *s)
{
  double e = dtype_bytes (s->dtype), b = (double)s->batch;
  double dqk = (double)s->head_dim_qk, dv = (double)s->head_dim_v;
  double q = b * (double)s->heads * (double)s->seq_q;
  double kv = b * (double)s->kv_heads * (double)s->seq_kv;
  double kv_heads_full = b * (double)s->heads * (double)s->seq_kv;
  double fwd = (q * (dqk + dv) + kv * (dqk + dv)) * e;

  if (s->pass == PASS_FORWARD)
    return fwd;
  fwd += q * dv * e;                /* do */
  fwd += q * dqk * (4 + 4 + 4 + e); /* dq */
  fwd += kv_heads_full * (dqk + dv) * e;
  if (s->kv_heads != s->heads)
    fwd += (kv_heads_full + kv) * (dqk + dv) * e;
  return fwd;
}

/* Kernels of inference servers, and of one library, are no stand-in for another. */
static gboolean
stands_in (const GpuProfile *g, int k, AttnKernel wanted)
{
  return g->attn[k].present &&
         (k == (int)wanted || (k != ATTN_XFORMERS && k != ATTN_TRTLLM_MHA && k != ATTN_TRTLLM));
}

AttnKernel
gpu_attention_kernel (const GpuProfile *g, AttnKernel wanted)
{
  g_assert (wanted < ATTN_COUNT);
  for (int k = (int)wanted; k > ATTN_UNFUSED; k--)
    if (stands_in (g, k, wanted))
      return (AttnKernel)k;
  for (int k = (int)wanted; k < ATTN_COUNT && wanted != ATTN_UNFUSED; k++)
    if (stands_in (g, k, wanted))
      return (AttnKernel)k;
  return ATTN_UNFUSED;
}

/* Peak that the efficiency is of. 8-bit kernels keep softmax in 16 bit or wider and so lose a part
 * of the double rate; a kernel without an 8-bit form runs in 16 bit. */
static double
peak_rate (const GpuProfile *g, const AttnParams *p, const AttnShape *s)
{
  double peak = g->peak_flops[s->dtype], factor = p->fp8_factor[s->pass];

  if (dtype_bytes (s->dtype) >= 2)
    return peak;
  if (factor > 0 && g->peak_flops[DT_FP8] > 0)
    return factor * g->peak_flops[DT_FP8];
  return MAX (g->peak_flops[DT_BF16], g->peak_flops[DT_FP16]);
}

static double
padded (gint64 dim, double quantum)
{
  return ceil ((double)dim / quantum) * quantum;
}

double
gpu_attention_s (const GpuProfile *g, AttnKernel kernel, const AttnShape *s, double duty)
{
  AttnKernel used = gpu_attention_kernel (g, kernel);
  const AttnParams *p = &g->attn[used];
  double dqk, dv, flops, blocks, waves, keys, rate, c2, m2;

  g_assert (g->ready && used != ATTN_UNFUSED && p->present);
  g_assert (s->dtype < DT_COUNT && duty >= 0 && duty <= GPU_MAX_DUTY);
  if (s->batch == 0 || s->heads == 0 || s->seq_q == 0 || s->seq_kv == 0)
    return 0;
  dqk = padded (s->head_dim_qk, p->dim_quantum);
  dv = padded (s->head_dim_v, p->dim_quantum);
  flops = s->pass == PASS_FORWARD ? 2 * (dqk + dv) : 2 * (3 * dqk + 2 * dv);
  blocks = (double)s->batch * (double)s->heads * ceil ((double)s->seq_q / p->block_q);
  waves = blocks / g->sm_count;
  /* Causal blocks differ in length and the long ones start first, so that their waves merge. */
  waves = MAX (1.0, s->causal ? waves : ceil (waves));
  keys = keys_walked (s, p->block_q) + p->kv0[s->pass];
  rate =
      dim_efficiency (p->efficiency[s->pass], (dqk + dv) / 2) * peak_rate (g, p, s) / g->sm_count;
  if (s->causal)
    rate *= p->causal_factor[s->pass];
  rate *= 1 - duty * (1 - g->attn_sustained);
  c2 = waves * p->block_q * keys * flops / rate;
  c2 *= c2;
  m2 = attention_bytes (s) / (g->memk_fraction[MEMK_STREAM] * g->hbm_Bps);
  m2 *= m2;
  return p->floor_s[s->pass] + sqrt (sqrt (c2 * c2 + m2 * m2));
}
