/* spec: a validated scenario as plain structs; no JSON in here.
 * Units end the names. -1 or 0 for "not given" is said at the field. */
#ifndef CLUSTERSIM_SPEC_H
#define CLUSTERSIM_SPEC_H

#include "coll.h"
#include "gpu.h"
#include "model.h"
#include "network.h"
#include "software.h"
#include "types.h"

#define SPEC_ERROR spec_error_quark ()
GQuark spec_error_quark (void);
typedef enum { SPEC_ERROR_RANGE, SPEC_ERROR_INCONSISTENT } SpecError;

typedef struct {
  gint64 gpus_per_node, nodes, gpus; /* gpus = nodes * gpus_per_node, or fewer when stated */
  double price_usd_per_gpu_hour;     /* 0: not known */
  double node_power_w, pue;          /* for energy; 0: not known */
} ClusterSpec;

/* What a selective recomputation runs again; names in JSON and in the tables of runs. */
typedef enum {
  RECOMP_CORE_ATTN = 1 << 0,
  RECOMP_LAYERNORM = 1 << 1,
  RECOMP_MOE_ACT = 1 << 2, /* activation between the two matrices of an expert */
  RECOMP_MLA_UP = 1 << 3,  /* up-projections of latent attention */
  RECOMP_MOE = 1 << 4,     /* router, dispatch, experts, combine */
  RECOMP_SHARED = 1 << 5,  /* shared experts */
  RECOMP_MLP = 1 << 6      /* dense MLP */
} RecomputeModule;

/* Parses "none", "full", "selective" or "selective:a,b" (',' or '+' between the modules;
 * "core_attn", "layernorm" or "norm", "moe_act" or "act", "mla_up_proj", "moe", "shared_experts",
 * "mlp"). FALSE, and nothing set, when it is none of them. */
gboolean recompute_parse (const char *text, Recompute *how, guint *modules);

/* Linear maps that have adapters (LoRA, arXiv 2106.09685), all else frozen. */
typedef enum {
  ADAPT_QKV = 1 << 0,
  ADAPT_PROJ = 1 << 1, /* output of the attention */
  ADAPT_FC1 = 1 << 2,  /* of dense MLPs and shared experts; routed experts stay frozen */
  ADAPT_FC2 = 1 << 3
} AdapterTarget;
/* "qkv", "proj", "fc1", "fc2", several of them with '+' or ',' between, or "all". 0: none of them.
 */
guint adapter_parse (const char *text);

typedef struct {
  gint64 sequence_tokens, global_batch_sequences, micro_batch_sequences;
  DType precision;
  Recompute recompute;
  guint
      recompute_modules; /* RecomputeModule bits of a selective recomputation; 0: attention core */
  double
      moe_imbalance; /* load of the busiest expert rank over the mean; 0: the software profile's */
  double moe_capacity;    /* tokens an expert takes at most, over the mean; 0: dropless */
  gint64 recompute_every; /* full recomputation of one layer in so many, counted over the model
                           * (torchtitan's selective option); 0 and 1: of every layer */
  gint64 adapter_rank;    /* LoRA: only adapters of this rank are trained; 0: all parameters */
  guint adapter_targets;  /* AdapterTarget bits */
  double sequence_fill;   /* share of positions that hold a token, where the others are left out of
                           * the work (operator lists); 0: all */
  gboolean causal_flops;  /* MFU convention: causal half (default) or full */
} TrainSpec;

/* How context-parallel ranks come by each other's keys and values. */
typedef enum { CP_RING, CP_GATHER } CpComm;
extern const char *const cp_comm_names[];

/* What is done to gradients before they are all-reduced. onebit: 1-bit Adam after its warm-up
 * (arXiv 2102.02888): signs and a scale travel, with error feedback, at the end of the step.
 * powersgd: two factors of this rank in place of each matrix (arXiv 1905.13727), bucket by bucket.
 */
typedef enum { COMPRESS_NONE, COMPRESS_ONEBIT, COMPRESS_POWERSGD } Compression;
extern const char *const compression_names[];

/* Low-frequency synchronisation: sites train on their own and exchange every so many steps (local
 * SGD, DiLoCo arXiv 2311.08105). sites 0: none. See outer.h. */
typedef enum { OUTER_AVERAGE, OUTER_NESTEROV } OuterOptimizer;
extern const char *const outer_names[];
typedef struct {
  gint64 sites, every_steps;
  OuterOptimizer optimizer;
  double wire_bytes;     /* per parameter and exchange */
  double link_Bps;       /* of a site to the others, one direction; 0: the cluster's own network */
  double link_latency_s; /* one way */
  gint64 fragments;      /* the model is exchanged in so many parts, spread over the steps */
  gint64 overlap_steps;  /* steps that go on while a part is exchanged */
} OuterSpec;

/* The computer around the GPUs, for what is moved out of their memory; profiles in scenarios/hosts.
 */
typedef struct {
  double pcie_Bps;              /* GPU to host memory, one direction, each GPU at the same time */
  double cpu_adam_params_per_s; /* of a node */
  double nvme_read_Bps, nvme_write_Bps; /* of a node */
  double memory_bytes;                  /* of a node */
} HostSpec;
typedef enum { OFFLOAD_NONE, OFFLOAD_CPU, OFFLOAD_NVME } OffloadTo;
extern const char *const offload_names[];
typedef struct {
  OffloadTo optimizer; /* where master weights, moments and their update are */
  gboolean delayed;    /* the update runs beside the next step (one step late) */
  double activations;  /* share of what forward keeps that waits in host memory, 0 … 1 */
  HostSpec host;
} OffloadSpec;

typedef struct {
  gint64 tp, cp, pp, vpp, ep, dp; /* dp 0: follows from the rest */
  gint64 etp; /* tensor parallelism of experts; 0: the framework's rule (spec_expert_tp) */
  gboolean sequence_parallel;
  gint64 zero_stage; /* 0 … 3; 1 = distributed optimizer */
  gboolean fsdp;     /* zero 3 done by FSDP */
  gint64 shard_size; /* ranks a shard group spans (hybrid sharding); 0: all of dp */
  int reshard; /* 1: parameters are freed after forward and gathered again for backward; 0: kept;
                * -1: the frameworks' default, 1 without a pipeline, 0 with one; zero 2: 0 */
  CpComm cp_comm;
  Compression compression;
  gint64 compression_rank; /* powersgd */
  OuterSpec outer;
  gint64 hpz_size; /* ranks of the second copy that backward gathers from (ZeRO++ hpZ); 0: none */
  char *schedule;  /* one of sched_names; owned */
  char *schedule_file; /* action table in a file, or NULL; owned */
  char *order;         /* of ranks, innermost first (rank_order.h), or NULL: the default; owned */
  char *layout;        /* Megatron layout string, or NULL; owned */
} ParallelSpec;

/* Chance that holds for a whole run: some GPUs are slower for good. */
typedef struct {
  double share;  /* of the GPUs, drawn with the seed */
  double factor; /* on the time of their compute */
} Stragglers;

typedef struct {
  gint64 first, last; /* ranks */
  double factor;      /* on the time of their compute, > 0 */
} SlowGpus;

/* What makes GPUs differ; all zero: nothing. See hetero.h. */
typedef struct {
  SlowGpus *slow; /* owned */
  guint n_slow;
  GpuProfile *second; /* another type of GPU on ranks second_first … second_last, or NULL; owned */
  gint64 second_first, second_last;
  double spread;                     /* lognormal sigma of a factor that each GPU keeps */
  Stragglers stragglers;             /* share 0: none */
  gboolean what_if;                  /* repeat the steps without each cause */
  double jitter;                     /* lognormal sigma of each compute operation */
  double stall_probability, stall_s; /* of a rank's data loader, at the start of a step */
  gint64 pause_every_steps;          /* a rank stops once in so many steps; 0: never */
  double pause_s;
  gint64 steps;    /* to simulate when there is chance in it; at least 1 */
  gboolean unfold; /* simulate every GPU even without chance */
} HeteroSpec;

typedef enum { FIDELITY_ANALYTIC, FIDELITY_FLOW, FIDELITY_STEP } Fidelity;
extern const char *const fidelity_names[];

typedef struct {
  Fidelity fidelity[SPAN_COUNT]; /* of each kind of group; [SPAN_NONE] stays analytic */
  guint64 seed, max_events;
  gboolean shuffle_ties, exact_events; /* exact_events: run the event executor, not the fast pass */
} RunSpec;

typedef struct {
  char *name; /* owned */
  ClusterSpec cluster;
  GpuProfile *gpu; /* owned */
  Fabric *fabric;  /* owned */
  ModelSpec model;
  SoftwareProfile software;
  TrainSpec train;
  ParallelSpec parallel;
  RunSpec run;
  HeteroSpec hetero;
  NetworkSpec network;
  OffloadSpec offload;
  GPtrArray *profiles;     /* char*: "hw/H100-SXM-80GB" … used, for provenance; owned */
  GPtrArray *prov;         /* ProvEntry* of app, opaque here; owned, freed by its own free func */
  GPtrArray *assumed;      /* char*: what was filled in for the user, in plain words; owned */
  gboolean stand_in;       /* framework or network is another's, for want of its own: wider range */
  gboolean borrowed;       /* gpu and fabric belong to somebody else (a store of profiles) */
  double published_step_s; /* measured step to print beside the prediction; 0: none */
  char *published_source;  /* owned */
} Spec;

void spec_init (Spec *s);
void spec_clear (Spec *s);

/* Fills dp, checks that tp*cp*pp*dp = gpus and every divisibility rule; the message names the
 * values and the nearest legal ones. key of the offending value (a scenario path such as
 * "parallel.tp") is stored in *key (static) when not NULL. */
gboolean spec_check (Spec *s, const char **key, GError **error);

/* Parameters are gathered unit by unit (FSDP, ZeRO 3), and are they freed after forward? */
gboolean spec_is_fsdp (const Spec *s);
gboolean spec_reshards (const Spec *s);
/* Ranks that share one copy of the parameters: shard_size, or all of dp x cp. */
gint64 spec_shard_ranks (const Spec *s);
/* One layer a stage at least; or one less on the first and the last, whose embedding and loss count
 * as a layer each (126 layers on 128 stages). */
gboolean spec_stages_legal (const Spec *s, gint64 stages);

gint64 spec_microbatches (const Spec *s); /* per pipeline and step */
gint64 spec_padded_vocab (const Spec *s);

/* Tensor-parallel degree of experts: as given, else 1 where the software profile says so, else tp.
 */
gint64 spec_expert_tp (const Spec *s);
/* Load of the busiest expert rank over the mean, >= 1; capacity cuts it off. */
double spec_moe_load (const Spec *s);
/* TRUE when backward runs this module again (full recomputation is not a module: FALSE). */
gboolean spec_recomputes (const Spec *s, RecomputeModule m);
/* "none", "selective", "selective (layernorm, moe_act)"; the caller frees. */
char *spec_recompute_text (const Spec *s);
/* GPUs of one scale-up domain that the job fills: racks of 72 are filled with the largest multiple
 * of a node that divides the GPUs. */
gint64 spec_domain_gpus (const Spec *s);
/* How this layer (0 … layers-1) is recomputed: train.recompute, or nothing where recompute_every
 * leaves it out. */
Recompute spec_layer_recompute (const Spec *s, gint64 layer);
/* The rules of adapters, recompute_every, compression, offload and sites. Called by spec_check. */
gboolean spec_check_trades (const Spec *s, const char **key, GError **error);
/* Bits of the operands: fp8, mxfp8, fp4 (TRUE) or 16 and more. */
gboolean spec_narrow (const Spec *s);
/* The rules of experts: ep, etp, imbalance, capacity. Called by spec_check. */
gboolean spec_check_experts (const Spec *s, const char **key, GError **error);

#endif
