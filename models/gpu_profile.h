/* gpu_profile: the fields of a device profile. Who only asks for times includes gpu.h.
 *
 * A profile is filled field by field (by sim/app/read_gpu.c from JSON, or by a test), then
 * gpu_profile_prepare checks it and builds the tables that make gpu_gemm_s cheap; after that it is
 * constant. No default hides in here: gpu_profile_new gives zeros, and zero is refused where a time
 * needs the number.
 */
#ifndef CLUSTERSIM_GPU_PROFILE_H
#define CLUSTERSIM_GPU_PROFILE_H

#include "gpu.h"

#define GPU_ERROR gpu_error_quark ()
GQuark gpu_error_quark (void);
typedef enum { GPU_ERROR_MISSING, GPU_ERROR_RANGE } GpuError;

#define GEMM_MAX_TILES  12
#define GEMM_MAX_SPLITS 6
#define GEMM_N_ALIGN    7 /* 2, 4, 8, 16, 32, 64, >= 128 bytes */
#define ATTN_N_DIMS     4
/* Head dimensions of the efficiency columns of AttnParams; between them the value is interpolated.
 */
extern const double attn_dims[ATTN_N_DIMS]; /* 32, 64, 128, 256 */

/* A table of measured times beside the formula: nodes at m, n, k = 4^i, i = 0 .. 9. */
#define GEMM_TABLE_SIDE  10
#define GEMM_TABLE_NODES (GEMM_TABLE_SIDE * GEMM_TABLE_SIDE * GEMM_TABLE_SIDE)

/* The GEMM kernels of one operand type. */
typedef struct {
  gboolean present;
  double floor_s;              /* smallest kernel */
  double burst_efficiency;     /* of the dense peak, cool part, main loop of a large tile */
  double sustained_efficiency; /* the same when the part is power limited; <= burst */
  double half_flops;      /* 2mnk at which half of the fall from burst to sustained is reached */
  double k0;              /* k-steps that a tile spends outside its main loop */
  double k_quantum;       /* k is rounded up to a multiple of this */
  double small_tile;      /* loss of rate of tile (Tm,Tn): 1 + small_tile (1/Tm + 1/Tn) */
  double wave_smoothing;  /* 0: whole waves; 1: no quantisation beyond the first wave */
  double split_s;         /* further time of a split-k kernel, at efficiency 1 */
  double memory_fraction; /* of HBM bandwidth, for the operands */
  double
      align_factor[GEMM_N_ALIGN];  /* rate of the main loop by alignment of the rows, 1 = aligned */
  double role_factor[3];           /* time of the compute part by GemmRole, forward = 1 */
  float table_s[GEMM_TABLE_NODES]; /* by gemm_table_node; 0: no measurement near that node */
} GemmParams;

/* One fused attention kernel. Per pass: [PASS_FORWARD], [PASS_BACKWARD]. */
typedef struct {
  gboolean present;
  double floor_s[2];
  double efficiency[2][ATTN_N_DIMS]; /* plateau, of the dense peak of the operand type */
  double kv0[2];                     /* key positions that a query block spends outside its loop */
  double block_q;                    /* query rows of a thread block */
  double dim_quantum;                /* head dimensions are padded to a multiple of this */
  double causal_factor[2];           /* rate of causal over full attention on the plateau */
  double fp8_factor[2]; /* share of the efficiency kept at the 8-bit peak; 0: runs in 16 bit */
} AttnParams;

typedef struct {
  double tile_m, tile_n;
  double step_s; /* seconds of one k-step of one tile at efficiency 1 */
} GemmTile;

struct GpuProfile {
  char *name;     /* owned */
  char **aliases; /* NULL-terminated, owned; may be NULL */
  double tdp_w;
  double sm_count;
  double boost_Hz;
  double peak_flops[DT_COUNT]; /* dense, per second; 0: the part lacks the type */
  double memory_bytes;         /* what the device reports */
  double hbm_Bps;              /* datasheet */
  double memk_fraction[MEMK_COUNT];
  double cast_fp8_fraction;    /* of HBM bandwidth, kernel that casts 16-bit to 8-bit; 0: no such
                                  kernel */
  double kernel_floor_s;       /* GPU time of the smallest kernel */
  double launch_stream_s;      /* interval of back-to-back small kernels of one stream */
  double launch_graph_s;       /* the same inside a graph */
  double nvlink_Bps;           /* per direction and GPU; 0: none */
  int scaleup_domain;          /* GPUs that share one scale-up fabric, >= 1 */
  double pcie_Bps;             /* per direction; 0: not known */
  double blas_workspace_bytes; /* that PyTorch keeps for each cuBLAS handle and stream */
  double te_workspace_bytes;   /* that Transformer Engine keeps for cuBLASLt */
  int n_tiles, n_splits;
  double tile_m[GEMM_MAX_TILES], tile_n[GEMM_MAX_TILES];
  double splits[GEMM_MAX_SPLITS]; /* ascending, first is 1 */
  GemmParams gemm[DT_COUNT];
  AttnParams attn[ATTN_COUNT];
  double attn_sustained; /* rate of attention at duty 1 over duty 0, <= 1 */
  /* made by gpu_profile_prepare */
  gboolean ready;
  GemmTile tiles[DT_COUNT][GEMM_MAX_TILES];
  GemmParams gemm_used[DT_COUNT]; /* with the types that lack their own taken from their kin */
  gboolean has_table[DT_COUNT];
  float table_ratio[DT_COUNT][GEMM_TABLE_NODES]; /* measured over formula; 1 where not measured */
};

GpuProfile *gpu_profile_new (const char *name);
void gpu_profile_free (GpuProfile *g);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GpuProfile, gpu_profile_free)

/* Checks that all that a time needs is there and builds the tables; FALSE with GPU_ERROR_*. */
gboolean gpu_profile_prepare (GpuProfile *g, GError **error);

double gpu_kernel_floor_s (const GpuProfile *g);
double gpu_launch_stream_s (const GpuProfile *g);
double gpu_nvlink_Bps (const GpuProfile *g);
int gpu_scaleup_domain (const GpuProfile *g);
double gpu_tdp_w (const GpuProfile *g);
double gpu_sm_count (const GpuProfile *g);

/* The kernel that stands in when a profile lacks the asked one: the nearest older generation that
 * is present, else the nearest newer; ATTN_UNFUSED when the profile has none. */
AttnKernel gpu_attention_kernel (const GpuProfile *g, AttnKernel wanted);

/* Cast of 16-bit elements to fp8 (a read of 2 bytes, a write of 1): the kernel that an 8-bit GEMM
 * needs before it when nothing upstream writes fp8. gpu_gemm_s does not contain it. A part without
 * a figure takes that of elementwise kernels. */
double gpu_cast_fp8_s (const GpuProfile *g, double elements);

/* The eight nodes round a shape and their weights, which sum to 1. Shapes beyond the last node
 * count as the last. FALSE: nothing of the table applies (batched, or empty). */
gboolean gemm_table_around (const GemmShape *s, int node[8], double weight[8]);
/* m, n, k of a node. */
void gemm_table_shape (int node, GemmShape *s);
/* Makes the ratios of a type out of its table_s; part of gpu_profile_prepare. */
void gemm_table_prepare (GpuProfile *g, DType t);

/* What gpu_gemm_s chose, for `explain` and for tests. */
typedef struct {
  int tile, split; /* indices; -1 for an empty GEMM */
  double waves, compute_s, memory_s, efficiency, bytes;
  double table; /* measured over formula, interpolated; 1 where there is no table */
  double total_s;
} GemmPlan;
void gpu_gemm_plan (const GpuProfile *g, const GemmShape *s, double duty, GemmPlan *out);
/* The same by the formula alone. */
void gpu_gemm_formula (const GpuProfile *g, const GemmShape *s, double duty, GemmPlan *out);

#endif
