/* cal_attention: fused attention through cuDNN's graphs, forward and backward. Without a mask by
 * the library's own attention operations; causal as the graphs of matrix products, mask and softmax
 * that its fused engines take. usage: cal_attention [--minutes M] [--gpu I]
 *
 * A graph that no engine of the installed version takes is counted as left out; PyTorch's kernels
 * are timed by cal_attention.py. Results and gradients are checked against the host, in double, on
 * a small shape. A backward is timed on the results of its own forward. */
#include "cal_common.cuh"

#include <cmath>
#include <cudnn.h>

typedef __nv_bfloat16 bf16;

/* Descriptors of the backend; status keeps the first failure of a whole graph. */
struct Graph {
  cudnnHandle_t handle;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  std::vector<cudnnBackendDescriptor_t> all, ops;
  int64_t next_id = 1;
  std::vector<int64_t> ids; /* of tensors with memory, in the order they were made */
  std::vector<void *> pointers;
  cudnnBackendDescriptor_t plan = nullptr;
  void *workspace = nullptr;

  explicit Graph (cudnnHandle_t h) : handle (h)
  {
  }

  ~Graph ()
  {
    for (auto it = all.rbegin (); it != all.rend (); ++it)
      cudnnBackendDestroyDescriptor (*it);
    if (workspace != nullptr)
      cudaFree (workspace);
  }

  void
  note (cudnnStatus_t s)
  {
    if (status == CUDNN_STATUS_SUCCESS)
      status = s;
  }

  cudnnBackendDescriptor_t
  make (cudnnBackendDescriptorType_t type)
  {
    cudnnBackendDescriptor_t d = nullptr;
    note (cudnnBackendCreateDescriptor (type, &d));
    if (d != nullptr)
      all.push_back (d);
    return d;
  }

  void
  set (cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
       cudnnBackendAttributeType_t type, int64_t n, const void *value)
  {
    if (status == CUDNN_STATUS_SUCCESS)
      note (cudnnBackendSetAttribute (d, name, type, n, value));
  }

  void
  set (cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t v)
  {
    set (d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &v);
  }

  void
  finish (cudnnBackendDescriptor_t d)
  {
    if (status == CUDNN_STATUS_SUCCESS)
      note (cudnnBackendFinalize (d));
  }

  /* b, h, rows, columns with the strides given; pointer NULL: between operations only. */
  cudnnBackendDescriptor_t
  tensor (const int64_t dim[4], const int64_t stride[4], cudnnDataType_t type, void *pointer,
          bool by_value = false)
  {
    cudnnBackendDescriptor_t t = make (CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t id = next_id++, align = by_value ? 4 : 16;
    bool virt = pointer == nullptr;
    set (t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set (t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
    set (t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
    set (t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set (t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
    set (t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &virt);
    set (t, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    finish (t);
    if (!virt) {
      ids.push_back (id);
      pointers.push_back (pointer);
    }
    return t;
  }

  cudnnBackendDescriptor_t
  packed (int64_t b, int64_t h, int64_t r, int64_t c, cudnnDataType_t type, void *p)
  {
    const int64_t dim[4] = {b, h, r, c}, stride[4] = {h * r * c, r * c, c, 1};
    return tensor (dim, stride, type, p);
  }

  cudnnBackendDescriptor_t
  scalar (float *value)
  {
    const int64_t one[4] = {1, 1, 1, 1};
    return tensor (one, one, CUDNN_DATA_FLOAT, value, true);
  }

  void
  add (cudnnBackendDescriptor_t op)
  {
    finish (op);
    ops.push_back (op);
  }

  void
  pointwise (cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
             cudnnBackendDescriptor_t y, cudnnBackendDescriptor_t t = nullptr, int64_t axis = -1)
  {
    cudnnDataType_t f = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t m = make (CUDNN_BACKEND_POINTWISE_DESCRIPTOR),
                             op = make (CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set (m, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set (m, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &f);
    if (axis >= 0)
      set (m, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
    finish (m);
    set (op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, m);
    set (op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b != nullptr)
      set (op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    if (t != nullptr)
      set (op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
    set (op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    add (op);
  }

  void
  reduce (cudnnReduceTensorOp_t how, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y)
  {
    cudnnDataType_t f = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t m = make (CUDNN_BACKEND_REDUCTION_DESCRIPTOR),
                             op = make (CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set (m, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &how);
    set (m, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &f);
    finish (m);
    set (op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set (op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    set (op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, m);
    add (op);
  }

  void
  matmul (cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t c)
  {
    cudnnDataType_t f = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t m = make (CUDNN_BACKEND_MATMUL_DESCRIPTOR),
                             op = make (CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set (m, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &f);
    finish (m);
    set (op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set (op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set (op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    set (op, CUDNN_ATTR_OPERATION_MATMUL_DESC, m);
    add (op);
  }

  void
  reshape (cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y)
  {
    cudnnBackendDescriptor_t op = make (CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set (op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    set (op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    add (op);
  }

  /* The first engine that the heuristics name and that takes the graph. */
  bool
  build ()
  {
    cudnnBackendDescriptor_t g = make (CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR),
                             heur = make (CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    int64_t found = 0;
    set (g, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    set (g, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, (int64_t)ops.size (),
         ops.data ());
    finish (g);
    set (heur, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, g);
    set (heur, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    finish (heur);
    if (status != CUDNN_STATUS_SUCCESS)
      return false;
    std::vector<cudnnBackendDescriptor_t> config (8);
    for (auto &c : config)
      c = make (CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    note (cudnnBackendGetAttribute (heur, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, (int64_t)config.size (), &found,
                                    config.data ()));
    for (int64_t i = 0; i < found && status == CUDNN_STATUS_SUCCESS; i++) {
      cudnnBackendDescriptor_t p = make (CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      int64_t bytes = 0, n = 0;
      if (cudnnBackendSetAttribute (p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1,
                                    &handle) != CUDNN_STATUS_SUCCESS ||
          cudnnBackendSetAttribute (p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                    CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                    &config[(size_t)i]) != CUDNN_STATUS_SUCCESS ||
          cudnnBackendFinalize (p) != CUDNN_STATUS_SUCCESS ||
          cudnnBackendGetAttribute (p, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                    1, &n, &bytes) != CUDNN_STATUS_SUCCESS ||
          (bytes > 0 && cudaMalloc (&workspace, (size_t)bytes) != cudaSuccess))
        continue;
      plan = p;
      return true;
    }
    return false;
  }

  cudnnBackendDescriptor_t
  variant_pack ()
  {
    cudnnBackendDescriptor_t v = make (CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set (v, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, (int64_t)ids.size (),
         ids.data ());
    set (v, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, (int64_t)pointers.size (),
         pointers.data ());
    set (v, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    finish (v);
    return v;
  }
};

struct Shape {
  int64_t batch, heads, seq, dim;
};

struct Buffers {
  bf16 *q, *k, *v, *o, *dq, *dk, *dv, *dout;
  float *stats;
  float scale, minus; /* host: passed by value */
  size_t elements, rows;
};

static const cudnnDataType_t half_type = CUDNN_DATA_BFLOAT16, full_type = CUDNN_DATA_FLOAT;

/* The library's attention operation, without a mask. */
static bool
plain_forward (Graph &g, const Shape &s, Buffers &m)
{
#if CUDNN_VERSION >= 91300
  cudnnBackendDescriptor_t op = g.make (CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
  auto t = [&] (bf16 *p) { return g.packed (s.batch, s.heads, s.seq, s.dim, half_type, p); };
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, t (m.q));
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, t (m.k));
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, t (m.v));
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, t (m.o));
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC,
         g.packed (s.batch, s.heads, s.seq, 1, full_type, m.stats));
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, g.scalar (&m.scale));
  g.add (op);
  return g.build ();
#else
  (void)g, (void)s, (void)m;
  return false;
#endif
}

static bool
plain_backward (Graph &g, const Shape &s, Buffers &m)
{
#if CUDNN_VERSION >= 91500
  cudnnBackendDescriptor_t op = g.make (CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR);
  auto t = [&] (bf16 *p) { return g.packed (s.batch, s.heads, s.seq, s.dim, half_type, p); };
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC, t (m.q));
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC, t (m.k));
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC, t (m.v));
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC, t (m.o));
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC, t (m.dout));
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC,
         g.packed (s.batch, s.heads, s.seq, 1, full_type, m.stats));
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC, g.scalar (&m.scale));
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC, t (m.dq));
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC, t (m.dk));
  g.set (op, CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC, t (m.dv));
  g.add (op);
  return g.build ();
#else
  (void)g, (void)s, (void)m;
  return false;
#endif
}

/* Q K^T scaled, -inf above the diagonal. */
static cudnnBackendDescriptor_t
causal_scores (Graph &g, const Shape &s, Buffers &m, cudnnBackendDescriptor_t q)
{
  int64_t b = s.batch, h = s.heads, n = s.seq, d = s.dim;
  const int64_t kt_dim[4] = {b, h, d, n}, kt_stride[4] = {h * n * d, n * d, 1, d};
  auto score = [&] { return g.packed (b, h, n, n, full_type, nullptr); };
  cudnnBackendDescriptor_t kt = g.tensor (kt_dim, kt_stride, half_type, m.k), s0 = score (),
                           s1 = score (), s2 = score ();
  cudnnBackendDescriptor_t ri = g.packed (b, h, n, n, CUDNN_DATA_INT32, nullptr),
                           ci = g.packed (b, h, n, n, CUDNN_DATA_INT32, nullptr),
                           seen = g.packed (b, h, n, n, CUDNN_DATA_BOOLEAN, nullptr);
  g.matmul (q, kt, s0);
  g.pointwise (CUDNN_POINTWISE_MUL, s0, g.scalar (&m.scale), s1);
  g.pointwise (CUDNN_POINTWISE_GEN_INDEX, s1, nullptr, ri, nullptr, 2);
  g.pointwise (CUDNN_POINTWISE_GEN_INDEX, s1, nullptr, ci, nullptr, 3);
  g.pointwise (CUDNN_POINTWISE_CMP_GE, ri, ci, seen);
  g.pointwise (CUDNN_POINTWISE_BINARY_SELECT, s1, g.scalar (&m.minus), s2, seen);
  return s2;
}

/* Softmax of the scores by maximum and sum, times V; with the logarithm of the sum for the backward
 * where keep says so. */
static bool
causal (Graph &g, const Shape &s, Buffers &m, bool keep)
{
  int64_t b = s.batch, h = s.heads, n = s.seq, d = s.dim;
  auto score = [&] { return g.packed (b, h, n, n, full_type, nullptr); };
  auto row = [&] (float *at) { return g.packed (b, h, n, 1, full_type, at); };
  cudnnBackendDescriptor_t q = g.packed (b, h, n, d, half_type, m.q),
                           v = g.packed (b, h, n, d, half_type, m.v),
                           o = g.packed (b, h, n, d, half_type, m.o),
                           p = g.packed (b, h, n, n, half_type, nullptr);
  cudnnBackendDescriptor_t s2 = causal_scores (g, s, m, q), s3 = score (), e = score (),
                           top = row (nullptr), sum = row (nullptr);
  g.reduce (CUDNN_REDUCE_TENSOR_MAX, s2, top);
  g.pointwise (CUDNN_POINTWISE_SUB, s2, top, s3);
  g.pointwise (CUDNN_POINTWISE_EXP, s3, nullptr, e);
  g.reduce (CUDNN_REDUCE_TENSOR_ADD, e, sum);
  if (keep) {
    cudnnBackendDescriptor_t log_sum = row (nullptr);
    g.pointwise (CUDNN_POINTWISE_LOG, sum, nullptr, log_sum);
    g.pointwise (CUDNN_POINTWISE_ADD, log_sum, top, row (m.stats));
  }
  g.pointwise (CUDNN_POINTWISE_DIV, e, sum, p);
  g.matmul (p, v, o);
  return g.build ();
}

static bool
causal_forward (Graph &g, const Shape &s, Buffers &m)
{
  return causal (g, s, m, true);
}

static bool
causal_inference (Graph &g, const Shape &s, Buffers &m)
{
  return causal (g, s, m, false);
}

/* P from the scores and what the forward kept of their sums; dV = P^T dO; dS = P (dO V^T - sum of
 * dO O) scale; dQ = dS K; dK = dS^T Q. */
static bool
causal_backward (Graph &g, const Shape &s, Buffers &m)
{
  int64_t b = s.batch, h = s.heads, n = s.seq, d = s.dim;
  const int64_t vt_dim[4] = {b, h, d, n}, vt_stride[4] = {h * n * d, n * d, 1, d};
  const int64_t t_dim[4] = {b, h, n, n}, t_stride[4] = {h * n * n, n * n, 1, n};
  auto in = [&] (bf16 *at) { return g.packed (b, h, n, d, half_type, at); };
  auto score = [&] (cudnnDataType_t t) { return g.packed (b, h, n, n, t, nullptr); };
  auto row = [&] (float *at) { return g.packed (b, h, n, 1, full_type, at); };
  cudnnBackendDescriptor_t q = in (m.q), k = in (m.k), grad = in (m.dout),
                           vt = g.tensor (vt_dim, vt_stride, half_type, m.v);
  cudnnBackendDescriptor_t both = g.packed (b, h, n, d, full_type, nullptr), sum = row (nullptr);
  g.pointwise (CUDNN_POINTWISE_MUL, grad, in (m.o), both);
  g.reduce (CUDNN_REDUCE_TENSOR_ADD, both, sum);
  cudnnBackendDescriptor_t s2 = causal_scores (g, s, m, q), s3 = score (full_type),
                           p = score (half_type),
                           pt = g.tensor (t_dim, t_stride, half_type, nullptr);
  g.pointwise (CUDNN_POINTWISE_SUB, s2, row (m.stats), s3);
  g.pointwise (CUDNN_POINTWISE_EXP, s3, nullptr, p);
  g.reshape (p, pt);
  g.matmul (pt, grad, in (m.dv));
  cudnnBackendDescriptor_t dp = score (full_type), d1 = score (full_type), d2 = score (full_type),
                           ds = score (half_type),
                           dst = g.tensor (t_dim, t_stride, half_type, nullptr);
  g.matmul (grad, vt, dp);
  g.pointwise (CUDNN_POINTWISE_SUB, dp, sum, d1);
  g.pointwise (CUDNN_POINTWISE_MUL, d1, p, d2);
  g.pointwise (CUDNN_POINTWISE_MUL, d2, g.scalar (&m.scale), ds);
  g.matmul (ds, k, in (m.dq));
  g.reshape (ds, dst);
  g.matmul (dst, q, in (m.dk));
  return g.build ();
}

/* ---- check ---- */

typedef std::vector<double> Values;

static Values
fetch (const bf16 *from, size_t n)
{
  std::vector<bf16> raw (n);
  CHECK (cudaMemcpy (raw.data (), from, n * sizeof (bf16), cudaMemcpyDeviceToHost));
  Values v;
  for (bf16 x : raw)
    v.push_back ((double)(float)x);
  return v;
}

/* One head by the definition. */
struct Expected {
  Values o, dq, dk, dv;

  Expected (const Values &q, const Values &k, const Values &v, const Values &grad, size_t n,
            size_t d, double scale, bool causal)
      : o (n * d), dq (n * d), dk (n * d), dv (n * d)
  {
    for (size_t r = 0; r < n; r++) {
      size_t seen = causal ? r + 1 : n;
      Values p (seen), dp (seen);
      double sum = 0, dot = 0;
      for (size_t j = 0; j < seen; j++) {
        for (size_t i = 0; i < d; i++) {
          p[j] += scale * q[r * d + i] * k[j * d + i];
          dp[j] += grad[r * d + i] * v[j * d + i];
        }
        p[j] = std::exp (p[j]);
        sum += p[j];
      }
      for (size_t j = 0; j < seen; j++)
        dot += (p[j] /= sum) * dp[j];
      for (size_t j = 0; j < seen; j++)
        for (size_t i = 0; i < d; i++) {
          double ds = p[j] * (dp[j] - dot) * scale;
          o[r * d + i] += p[j] * v[j * d + i];
          dv[j * d + i] += p[j] * grad[r * d + i];
          dq[r * d + i] += ds * k[j * d + i];
          dk[j * d + i] += ds * q[r * d + i];
        }
    }
  }
};

static void
compare (const char *what, bool causal, const Values &got, size_t at, const Values &want)
{
  for (size_t i = 0; i < want.size (); i++)
    if (!(std::fabs (got[at + i] - want[i]) <= 0.03 * std::max (1.0, std::fabs (want[i])))) {
      fprintf (stderr, "cal_attention: %s%s is wrong at %zu: %g for %g\n", causal ? "causal " : "",
               what, i, got[at + i], want[i]);
      exit (1);
    }
}

typedef bool (*Builder) (Graph &g, const Shape &s, Buffers &m);

/* Builds and runs once; FALSE when this version of the library does not. */
static bool
run_once (Cal &c, cudnnHandle_t handle, const Shape &s, Buffers &m, Builder build)
{
  Graph g (handle);
  m.scale = 1 / std::sqrt ((float)s.dim);
  if (!build (g, s, m) ||
      cudnnBackendExecute (handle, g.plan, g.variant_pack ()) != CUDNN_STATUS_SUCCESS)
    return false;
  CHECK (cudaStreamSynchronize (c.stream));
  return true;
}

/* Forward and backward against the host, as far as the library goes; FALSE when not even forward.
 */
static bool
check (Cal &c, cudnnHandle_t handle, Buffers &m, Builder forward, Builder backward, bool causal)
{
  const Shape s = {1, 2, 256, 64};
  size_t head = (size_t)(s.seq * s.dim), n = head * (size_t)s.heads;
  if (!run_once (c, handle, s, m, forward))
    return false;
  bool both = backward != nullptr && run_once (c, handle, s, m, backward);
  Values in[4], out[4];
  const bf16 *const from[] = {m.q, m.k, m.v, m.dout}, *const to[] = {m.o, m.dq, m.dk, m.dv};
  for (int i = 0; i < 4; i++) {
    in[i] = fetch (from[i], n);
    out[i] = fetch (to[i], n);
  }
  for (size_t at = 0; at < n; at += head) {
    auto part = [&] (int i) {
      return Values (in[i].begin () + (long)at, in[i].begin () + (long)(at + head));
    };
    Expected e (part (0), part (1), part (2), part (3), (size_t)s.seq, (size_t)s.dim,
                (double)m.scale, causal);
    compare ("forward", causal, out[0], at, e.o);
    if (both) {
      compare ("gradient of Q", causal, out[1], at, e.dq);
      compare ("gradient of K", causal, out[2], at, e.dk);
      compare ("gradient of V", causal, out[3], at, e.dv);
    }
  }
  return true;
}

/* ---- points ---- */

/* before: what must have run on this shape, or NULL. */
static void
sample (Cal &c, cudnnHandle_t handle, const Shape &s, Buffers &m, Builder before, Builder build,
        bool causal)
{
  size_t n = (size_t)(s.batch * s.heads * s.seq * s.dim);
  Graph g (handle);
  if (c.spent () || n > m.elements || (size_t)(s.batch * s.heads * s.seq) > m.rows ||
      (before != nullptr && !run_once (c, handle, s, m, before))) {
    c.left_out++;
    return;
  }
  m.scale = 1 / std::sqrt ((float)s.dim);
  if (!build (g, s, m)) {
    c.left_out++;
    return;
  }
  cudnnBackendDescriptor_t pack = g.variant_pack ();
  cudnnStatus_t bad = g.status;
  Timing t = c.burst (
      [&] (cudaStream_t) {
        cudnnStatus_t r = cudnnBackendExecute (handle, g.plan, pack);
        bad = bad == CUDNN_STATUS_SUCCESS ? r : bad;
      },
      0.05, 40);
  if (bad != CUDNN_STATUS_SUCCESS) {
    c.left_out++;
    return;
  }
  c.head ("attention");
  printf (", \"kernel\": \"cudnn\", \"library\": \"cuDNN %zu\", \"dtype\": \"bf16\", \"pass\": "
          "\"%s\", \"causal\": %s, \"batch\": %lld, \"heads\": %lld, \"kv_heads\": %lld, "
          "\"seq_q\": %lld, \"seq_kv\": %lld, \"head_dim_qk\": %lld, \"head_dim_v\": %lld",
          cudnnGetVersion (), before != nullptr ? "backward" : "forward", causal ? "true" : "false",
          (long long)s.batch, (long long)s.heads, (long long)s.heads, (long long)s.seq,
          (long long)s.seq, (long long)s.dim, (long long)s.dim);
  c.tail (t);
}

int
main (int argc, char **argv)
{
  Cal c (argc, argv, 0.5);
  cudnnHandle_t handle;
  Buffers m{};
  c.versions += ", cuDNN " + std::to_string (cudnnGetVersion ());
  m.elements = (size_t)1 << 27;
  m.rows = (size_t)1 << 22;
  m.minus = -1e30f;
  bf16 **all[] = {&m.q, &m.k, &m.v, &m.o, &m.dq, &m.dk, &m.dv, &m.dout};
  for (size_t i = 0; i < 8; i++)
    *all[i] = device_random<bf16> (m.elements, (unsigned)i);
  m.stats = device_random<float> (m.rows, 9);
  if (cudnnCreate (&handle) != CUDNN_STATUS_SUCCESS ||
      cudnnSetStream (handle, c.stream) != CUDNN_STATUS_SUCCESS) {
    fprintf (stderr, "cal_attention: cuDNN does not start\n");
    return 1;
  }
  check (c, handle, m, plain_forward, plain_backward, false);
  bool kept = check (c, handle, m, causal_forward, causal_backward, true);
  if (!kept)
    check (c, handle, m, causal_inference, nullptr, true);
  for (int64_t seq : {4096, 2048, 8192, 1024, 16384, 512, 32768})
    for (int64_t dim : {128, 64, 256})
      for (int64_t heads : {32, 64}) {
        Shape s = {std::max ((int64_t)1, 16384 / seq), heads, seq, dim};
        sample (c, handle, s, m, nullptr, kept ? causal_forward : causal_inference, true);
        if (kept)
          sample (c, handle, s, m, causal_forward, causal_backward, true);
        else
          c.left_out++;
        sample (c, handle, s, m, nullptr, plain_forward, false);
        sample (c, handle, s, m, plain_forward, plain_backward, false);
      }
  c.end ();
  cudnnDestroy (handle);
  return 0;
}
