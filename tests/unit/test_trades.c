/* What memory or traffic is traded for, each against its closed form: adapters, recomputation of
 * one layer in k, optimizer and activations in host memory, compressed gradients, exchange between
 * sites every H steps, prediction modules away from the loss, gathered keys and values. */
#include <math.h>
#include <string.h>

#include "adapter.h"
#include "compress.h"
#include "exec.h"
#include "offload.h"
#include "outer.h"
#include "predict.h"
#include "scenario.h"

#define LAYERS 32
#define MICRO  32 /* 128 sequences, dp 4 (cp 2) */

static void
load (Spec *s, const char *a, const char *b, const char *c)
{
  g_autoptr (GError) error = NULL;
  const char *sets[] = {a, b, c, NULL};
  g_assert_true (scenario_load ("llama-3-8b-h100", a != NULL ? sets : NULL, s, &error));
  g_assert_no_error (error);
}

static void
run (const Spec *s, Prediction *p)
{
  g_autoptr (GError) error = NULL;
  g_assert_true (predict (s, NULL, NULL, p, &error));
  g_assert_no_error (error);
}

static double
step_of (const Spec *s)
{
  Prediction p;
  run (s, &p);
  double t = p.step_s;
  prediction_clear (&p);
  return t;
}

#define NEAR(a, b) g_assert_cmpfloat_with_epsilon (a, b, 1e-9 * fabs (b) + 1e-12)

/* ---- adapters ---- */

/* Llama 3 8B, inputs + outputs of a layer's maps as Megatron fuses them: qkv 4096 + 6144, proj
 * 4096 + 4096, fc1 4096 + 28672, fc2 14336 + 4096: 69,632. */
#define WIDTHS 69632.0

static void
test_adapter_memory (void)
{
  Spec s;
  Prediction all, few;
  load (&s, "train.adapters={\"rank\":16}", NULL, NULL);
  NEAR (adapter_params (&s), 16 * WIDTHS * LAYERS);
  run (&s, &few);
  s.train.adapter_rank = 0;
  run (&s, &all);
  double trained = 16 * WIDTHS * LAYERS, ranks = (double)(s.parallel.dp * s.parallel.cp);
  const StageMemory *f = &few.memory.stages[0], *a = &all.memory.stages[0];
  g_assert_cmpint (f->gradients_bytes, ==, llround (s.software.grad_bytes * trained));
  g_assert_cmpint (f->optimizer_bytes, ==,
                   llround (s.software.optimizer_state_bytes * trained / ranks));
  g_assert_cmpint (f->weights_bytes - a->weights_bytes, ==,
                   llround (s.software.param_bytes * trained));
  g_assert_cmpint (f->activations_bytes, ==, a->activations_bytes); /* every map has adapters */
  /* two of three passes of the same maps */
  NEAR (few.flops_per_token, all.flops_per_token * 2 / 3);
  g_assert_cmpfloat (few.step_s, <, 0.9 * all.step_s);
  prediction_clear (&all);
  prediction_clear (&few);
  spec_clear (&s);
}

static double
gemm_flops (const Pricing *p, LayerPass pass, const char *with)
{
  g_autoptr (GArray) rows = g_array_new (FALSE, FALSE, sizeof (KernelRow));
  double sum = 0;
  layer_pass_kernels (p, 0, pass, rows);
  for (guint i = 0; i < rows->len; i++) {
    const KernelRow *r = &g_array_index (rows, KernelRow, i);
    if (strcmp (r->kind, "gemm") == 0 && strstr (r->name, with) != NULL)
      sum += r->flops;
  }
  return sum;
}

static void
test_adapter_kernels (void)
{
  Spec s;
  Pricing p;
  load (&s, "train.adapters={\"rank\":16}", NULL, NULL);
  pricing_init (&p, &s);
  double one = 2.0 * (double)p.tokens * 16 * WIDTHS;
  NEAR (gemm_flops (&p, LP_FORWARD, "adapter"), one);
  NEAR (gemm_flops (&p, LP_INPUT_GRAD, "adapter"), one);
  NEAR (gemm_flops (&p, LP_WEIGHT_GRAD, ""), one); /* nothing else has a weight gradient */
  s.train.adapter_targets = adapter_parse ("qkv");
  NEAR (gemm_flops (&p, LP_WEIGHT_GRAD, ""), 2.0 * (double)p.tokens * 16 * (4096 + 6144));
  g_assert_cmpuint (adapter_parse ("qkv+fc2"), ==, ADAPT_QKV | ADAPT_FC2);
  g_assert_cmpuint (adapter_parse ("all"), ==, 15);
  g_assert_cmpuint (adapter_parse ("qkv+nothing"), ==, 0);
  spec_clear (&s);
}

/* Sharded: gathers of the whole model stay, reductions are of the adapters. */
static void
test_adapter_sharded (void)
{
  Spec s;
  load (&s, "train.adapters={\"rank\":16}", "parallel={\"fsdp\":true}", NULL);
  double with = step_of (&s);
  s.train.adapter_rank = 0;
  g_assert_cmpfloat (with, <, step_of (&s));
  spec_clear (&s);
}

/* ---- one layer in k ---- */

static void
test_every (void)
{
  Spec s;
  Prediction p[3];
  load (&s, NULL, NULL, NULL);
  for (int i = 0; i < 3; i++) { /* none, all, one in four */
    s.train.recompute = i == 0 ? RECOMPUTE_NONE : RECOMPUTE_FULL;
    s.train.recompute_every = i == 2 ? 4 : 0;
    run (&s, &p[i]);
  }
  double none = p[0].part_s[PART_COMPUTE], full = p[1].part_s[PART_COMPUTE];
  NEAR (p[2].part_s[PART_COMPUTE], none + (full - none) * 8 / LAYERS);
  double few = (double)p[1].memory.stages[0].activations_bytes,
         most = (double)p[0].memory.stages[0].activations_bytes;
  g_assert_cmpfloat_with_epsilon ((double)p[2].memory.stages[0].activations_bytes,
                                  most + (few - most) * 8 / LAYERS, 1e-3 * most);
  NEAR (p[2].hardware_tflops_per_gpu * p[2].step_s - p[0].hardware_tflops_per_gpu * p[0].step_s,
        (p[1].hardware_tflops_per_gpu * p[1].step_s - p[0].hardware_tflops_per_gpu * p[0].step_s) /
            4);
  for (int i = 0; i < 3; i++)
    prediction_clear (&p[i]);
  spec_clear (&s);
}

/* ---- host memory ---- */

static void
test_offload_optimizer (void)
{
  Spec s;
  Prediction p;
  load (&s, "train.offload={\"optimizer\":\"cpu\",\"host\":\"dgx-h100\"}", NULL, NULL);
  s.offload.host = (HostSpec){10e9, 2e9, 8e9, 4e9, 1e12};
  s.software.dp_overlap_grad = FALSE;
  double params = (double)model_params_total (&s.model), own = params / 8; /* zero 1 over dp x cp */
  double grads = own * s.software.dp_reduce_bytes / 10e9;
  double back = own * s.software.param_bytes / 10e9, update = params / 2e9;
  OffloadTo to[] = {OFFLOAD_NONE, OFFLOAD_CPU, OFFLOAD_NVME};
  double step[3];
  for (guint i = 0; i < 3; i++) {
    s.offload.optimizer = to[i];
    run (&s, &p);
    step[i] = p.step_s;
    g_assert_true ((p.memory.stages[0].optimizer_bytes == 0) == (i > 0));
    prediction_clear (&p);
  }
  double device = gpu_memory_s (s.gpu, MEMK_OPTIMIZER, own * s.software.optimizer_traffic_bytes);
  g_assert_cmpfloat_with_epsilon (step[1] - step[0], grads + update + back - device, 1e-3 * update);
  /* 12 bytes a parameter read at 8 and written at 4 GB/s, longer than the update */
  double drives = params * s.software.optimizer_state_bytes * (1 / 8e9 + 1 / 4e9);
  g_assert_cmpfloat (drives, >, update);
  g_assert_cmpfloat_with_epsilon (step[2] - step[1], drives - update, 1e-6 * drives);
  /* beside backward only what is after the last bucket is seen */
  s.software.dp_overlap_grad = TRUE;
  s.offload.optimizer = OFFLOAD_CPU;
  g_assert_cmpfloat (step_of (&s), <, step[1] - 0.5 * grads);
  spec_clear (&s);
}

/* States of a node's eight GPUs, 12 bytes a parameter and the 16- or 32-bit gradients, are in host
 * memory: all of the model's, as 8 ranks share them out. */
static void
test_host_memory (void)
{
  Spec s;
  Prediction p;
  load (&s, "train.offload={\"optimizer\":\"cpu\",\"host\":\"dgx-h100\"}", NULL, NULL);
  double each = s.software.optimizer_state_bytes + s.software.dp_reduce_bytes;
  double want = each * (double)model_params_total (&s.model);
  run (&s, &p);
  g_assert_cmpfloat_with_epsilon ((double)p.memory.host_bytes, want, 1e-5 * want);
  g_assert_true (p.memory.fits);
  prediction_clear (&p);
  s.offload.host.memory_bytes = 0.9 * want;
  run (&s, &p);
  g_assert_false (p.memory.fits);
  prediction_clear (&p);
  spec_clear (&s);
}

/* An update beside the next step that takes longer than the step sets the pace. */
static void
test_offload_delayed (void)
{
  Spec s;
  load (&s, "train.offload={\"optimizer\":\"cpu\",\"delayed\":true,\"host\":\"dgx-h100\"}", NULL,
        NULL);
  double plain = step_of (&s), params = (double)model_params_total (&s.model);
  s.offload.host.cpu_adam_params_per_s = params / 10; /* 10 s */
  g_assert_cmpfloat_with_epsilon (step_of (&s), plain, 1e-9);
  s.offload.host.cpu_adam_params_per_s = params / 40;
  double slow = step_of (&s);
  s.offload.host.cpu_adam_params_per_s = params / 50;
  g_assert_cmpfloat_with_epsilon (step_of (&s) - slow, 10.0, 1e-4);
  spec_clear (&s);
}

static void
test_offload_activations (void)
{
  Spec s;
  Prediction p[3];
  load (&s, "train.offload={\"activations\":1,\"host\":\"dgx-h100\"}", NULL, NULL);
  for (int i = 0; i < 3; i++) {
    s.offload.host.pcie_Bps = i == 0 ? 2e9 : i == 1 ? 1e9 : 1e12;
    run (&s, &p[i]);
  }
  /* each layer's pass is as long as its activations travel, there and back */
  double bytes = model_activation_bytes_layer (&s, 0, RECOMPUTE_NONE);
  double travel = 2.0 * LAYERS * MICRO * bytes / 2e9;
  g_assert_cmpfloat_with_epsilon (p[1].part_s[PART_HOST] - p[0].part_s[PART_HOST], travel,
                                  1e-6 * travel);
  g_assert_cmpfloat (p[2].part_s[PART_HOST], <, 1e-3 * travel); /* hidden */
  /* two layers' activations are there */
  g_assert_cmpfloat ((double)p[0].memory.stages[0].activations_bytes, <, 8 * bytes);
  for (int i = 0; i < 3; i++)
    prediction_clear (&p[i]);
  spec_clear (&s);
}

/* ---- compressed gradients ---- */

static void
test_compression (void)
{
  Spec s;
  load (&s, "parallel={\"compression\":{\"method\":\"powersgd\",\"rank\":4}}", "cluster.nodes=16",
        NULL);
  /* of each matrix n x k stay 4 (n + k); two tables */
  double whole = 0, small = 0;
  const double n[] = {6144, 4096, 28672, 4096}, k[] = {4096, 4096, 4096, 14336};
  for (int i = 0; i < 4; i++) {
    whole += LAYERS * n[i] * k[i];
    small += LAYERS * 4 * (n[i] + k[i]);
  }
  double vocab = (double)spec_padded_vocab (&s);
  whole += 2 * vocab * 4096;
  small += 2 * 4 * (vocab + 4096);
  NEAR (compress_ratio (&s), small / whole);
  RankGroups g;
  rank_groups (&s, &g);
  NEAR (compress_reduce_s (&s, &g.dp, 1e9),
        2 * coll_time_s (s.fabric, COLL_ALL_REDUCE, &g.dp,
                         1e9 * s.software.dp_reduce_bytes * small / whole / 2, NULL));
  s.software.dp_overlap_grad = FALSE;
  s.software.dp_overlap_slowdown = 1;
  Prediction p, q, r;
  run (&s, &p);
  s.parallel.compression = COMPRESS_NONE;
  run (&s, &q);
  s.parallel.compression = COMPRESS_ONEBIT;
  run (&s, &r);
  double params = (double)model_params_total (&s.model);
  /* a bit for each element there and back: 1/8 byte, all-to-all and all-gather */
  g_assert_cmpfloat_with_epsilon (
      r.part_s[PART_DP_COMM],
      coll_time_s (s.fabric, COLL_ALLTOALL, &g.dp, params / 8, NULL) +
          coll_time_s (s.fabric, COLL_ALL_GATHER, &g.dp, params / 8, NULL),
      1e-3 * r.part_s[PART_DP_COMM]);
  g_assert_cmpfloat (p.part_s[PART_DP_COMM], <, 0.05 * q.part_s[PART_DP_COMM]);
  g_assert_cmpfloat (p.part_s[PART_OPTIMIZER], >, q.part_s[PART_OPTIMIZER]);
  prediction_clear (&p);
  prediction_clear (&q);
  prediction_clear (&r);
  spec_clear (&s);
}

/* ---- sites ---- */

static void
test_outer (void)
{
  Spec one, two;
  Prediction a, b;
  load (&one, NULL, NULL, NULL);
  double batch = (double)one.train.global_batch_sequences;
  g_autofree char *train = g_strdup_printf ("train.global_batch_sequences=%g", 2 * batch);
  load (&two, "cluster.nodes=2", train,
        "parallel.outer={\"sites\":2,\"every_steps\":50,\"link_Gbps\":10,\"link_latency_s\":0.03}");
  two.parallel.cp = one.parallel.cp;
  run (&one, &a);
  run (&two, &b);
  double params = (double)model_params_total (&one.model);
  /* two sites: each sends and gets half of the model twice: 2 (M-1)/M = 1 */
  double exchange = params * 4 / (10e9 / 8) + 2 * 0.03;
  double update = gpu_memory_s (one.gpu, MEMK_STREAM, params / 8 * 24);
  NEAR (outer_exchange_s (&two), exchange);
  g_assert_cmpfloat_with_epsilon (b.step_s, a.step_s + (exchange + update) / 50, 1e-9);
  g_assert_cmpfloat_with_epsilon (b.part_s[PART_DP_COMM] - a.part_s[PART_DP_COMM], exchange / 50,
                                  1e-9);
  g_assert_cmpfloat_with_epsilon (b.tokens_per_s, 2 * a.tokens_per_s * a.step_s / b.step_s, 1e-3);
  /* 8 bytes a parameter, shared out as the optimizer's are */
  g_assert_cmpint (b.memory.stages[0].optimizer_bytes - a.memory.stages[0].optimizer_bytes, ==,
                   llround (8 * params / 8));
  /* in fragments beside the training: hidden when the steps are long enough */
  two.parallel.outer.fragments = 10;
  two.parallel.outer.overlap_steps = 5;
  g_assert_cmpfloat_with_epsilon (step_of (&two), a.step_s + update / 50, 1e-9);
  two.parallel.outer.link_Bps = 1e8 / 8; /* 100 Mb/s: what five steps do not hide */
  double fragment = params * 4 / 10 / (1e8 / 8) + 2 * 0.03;
  g_assert_cmpfloat_with_epsilon (step_of (&two),
                                  a.step_s + (10 * (fragment - 5 * a.step_s) + update) / 50, 1e-6);
  prediction_clear (&a);
  prediction_clear (&b);
  spec_clear (&one);
  spec_clear (&two);
}

/* A round simulated whole: both sites, H steps each, then the exchange as a rendezvous. */
static void
test_outer_round (void)
{
  static const char *const names[] = {"site", NULL};
  const guint steps = 20;
  const SimTime inner[2] = {1000003, 1200007}, exchange = 5000011;
  g_autoptr (ProgramBuilder) b = program_builder_new (1, names);
  for (guint site = 0; site < 2; site++) {
    program_begin (b);
    guint32 step = program_cost (b, PART_COMPUTE, inner[site]);
    guint32 meet = program_cost (b, PART_DP_COMM, exchange);
    for (guint i = 0; i < steps; i++)
      program_op (b, 0, OP_COMPUTE, step, OP_TAG (TAG_FORWARD, 0, i));
    program_op (b, 0, OP_COLL, meet, OP_TAG (TAG_GRAD_REDUCE, 0, 0));
    program_group (b, 0, 0);
  }
  g_autoptr (ProgramSet) set = program_builder_finish (b, 2, 0, 1, 1);
  set->group_size[0] = 2;
  set->groups[0] = set->groups[1] = 0;
  ExecResult res;
  g_assert_true (exec_run_fast (set, &res, NULL));
  g_assert_cmpint (res.end, ==, steps * inner[1] + exchange);
  exec_result_clear (&res);
  /* and in a prediction: the slow site's step sets the round */
  Spec s;
  const char *outer = "parallel.outer={\"sites\":2,\"every_steps\":20,\"link_Gbps\":100}";
  load (&s, "cluster.nodes=2", outer, "heterogeneity.slow_gpus=[{\"gpu\":9,\"factor\":1.5}]");
  double slow = step_of (&s);
  s.hetero.slow[0] = (SlowGpus){1, 1, 1.5}; /* the same GPU of the other site */
  g_assert_cmpfloat (step_of (&s), ==, slow);
  s.hetero.n_slow = 0;
  g_assert_cmpfloat (step_of (&s), <, slow);
  spec_clear (&s);
}

/* ---- prediction modules ---- */

static void
test_modules (void)
{
  Spec near, far;
  g_autoptr (GError) error = NULL;
  StageLayers a = {0}, b = {0};
  load (&near, "model.mtp_layers=1", "parallel={\"pp\":4,\"layout\":\"Et*8|t*8|t*8|t*8mL\"}",
        "model.num_layers=32");
  load (&far, "model.mtp_layers=1", "parallel={\"pp\":4,\"layout\":\"Et*11|t*11|t*10m|L\"}",
        "model.num_layers=32");
  g_assert_true (stage_layers_init (&a, &near, &error));
  g_assert_true (stage_layers_init (&b, &far, &error));
  g_assert_null (a.mtp);
  g_assert_cmpint (stage_mtp (&b, &far.model, 2), ==, 1);
  g_assert_cmpint (stage_mtp (&b, &far.model, 3), ==, 0);
  g_assert_cmpint (stage_mtp_before (&b, 3), ==, 1);
  double pa = 0, pb = 0;
  for (guint i = 0; i < 4; i++) {
    pa += stage_params_per_rank (&near, &a, i).dense;
    pb += stage_params_per_rank (&far, &b, i).dense;
  }
  NEAR (pa, pb); /* the copy of the table moves with its module */
  /* two hidden states travel to the stage with the loss, one elsewhere */
  g_autoptr (SchedTable) t = sched_generate ("1f1b", 4, 1, (guint)spec_microbatches (&far), &error);
  g_autoptr (ProgramSet) set = compile_step (&far, t, &b, NULL, &error);
  g_assert_no_error (error);
  Pricing p;
  pricing_init (&p, &far);
  double bytes = (double)p.tokens * (double)far.model.hidden * far.software.pp_elem_bytes;
  for (guint r = 0; r + 1 < 4; r++) {
    const Op *send = &set->ops[set->first_op[r * set->n_streams + STREAM_NEXT]];
    double want = p2p_time_s (far.fabric, p.groups.pp_same_node, p.groups.pp_sharers,
                              bytes * (r == 2 ? 2 : 1));
    g_assert_cmpfloat_with_epsilon (sim_time_to_s (set->costs[send->cost].duration, SIM_TICKS_PS),
                                    want, 2e-12);
  }
  /* sharded by units and in memory too */
  Prediction q;
  run (&far, &q);
  g_assert_cmpint (q.memory.stages[3].weights_bytes, <, q.memory.stages[2].weights_bytes);
  prediction_clear (&q);
  stage_layers_clear (&a);
  stage_layers_clear (&b);
  spec_clear (&near);
  spec_clear (&far);
}

/* ---- context parallelism ---- */

static void
test_gather (void)
{
  Spec s;
  Pricing p;
  load (&s, "parallel={\"cp\":2,\"cp_comm\":\"all_gather\"}", NULL, NULL);
  pricing_init (&p, &s);
  g_autoptr (GArray) rows = g_array_new (FALSE, FALSE, sizeof (KernelRow));
  layer_pass_kernels (&p, 0, LP_FORWARD, rows);
  /* keys and values of the whole sequence, 8 heads of 128 each, 2 bytes */
  double bytes = 8192.0 * 2 * 8 * 128 * 2, found = 0;
  for (guint i = 0; i < rows->len; i++) {
    const KernelRow *r = &g_array_index (rows, KernelRow, i);
    if (strcmp (r->name, "cp all-gather") == 0) {
      found++;
      NEAR (r->bytes, bytes);
      NEAR (r->time_s, coll_time_s (s.fabric, COLL_ALL_GATHER, &p.groups.cp, bytes, NULL));
    }
  }
  g_assert_cmpfloat (found, ==, 1);
  spec_clear (&s);
}

/* ---- the head in the recomputed region ---- */

/* Its forward runs once more, before its backward. */
static void
test_head_again (void)
{
  Spec s;
  Pricing p;
  PassCost forward, plain, again;
  load (&s, NULL, NULL, NULL);
  pricing_init (&p, &s);
  head_pass_cost (&p, LP_FORWARD, &forward);
  head_pass_cost (&p, LP_BACKWARD, &plain);
  s.software.head_recompute = TRUE;
  head_pass_cost (&p, LP_BACKWARD, &again);
  g_assert_cmpint (again.total, ==, plain.total + forward.total);
  head_pass_cost (&p, LP_WEIGHT_GRAD, &plain);
  s.software.head_recompute = FALSE;
  head_pass_cost (&p, LP_WEIGHT_GRAD, &again);
  g_assert_cmpint (again.total, ==, plain.total);
  spec_clear (&s);
}

/* ---- what is refused ---- */

static void
test_refused (void)
{
  static const struct {
    const char *set, *says;
  } bad[] = {
      {"parallel={\"zero_stage\":1,\"compression\":{\"method\":\"onebit\"}}", "zero_stage 0"},
      {"parallel={\"outer\":{\"sites\":3,\"every_steps\":5}}", "sites"},
      {"parallel={\"outer\":{\"sites\":2,\"every_steps\":5,\"fragments\":9}}", "fragments"},
      {"train.offload={\"optimizer\":\"cpu\"}", "host"},
      {"train.offload={\"optimizer\":\"nvme\",\"host\":{\"pcie_GBps\":{\"value\":1,"
       "\"kind\":\"assumed\",\"source\":\"x\"},\"cpu_adam_Gparams_per_s\":{\"value\":1,"
       "\"kind\":\"assumed\",\"source\":\"x\"}}}",
       "drives"},
      {"train.adapters={\"rank\":8192}", "rank"},
      {"train.adapters={\"rank\":8,\"targets\":\"nose\"}", "nose"},
      {"train.recompute_every=2", "recompute full"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    const char *sets[] = {bad[i].set, "cluster.nodes=2", NULL};
    g_autoptr (GError) error = NULL;
    Spec s;
    gboolean ok = scenario_load ("llama-3-8b-h100", sets, &s, &error);
    g_assert_false (ok);
    if (ok)
      spec_clear (&s);
    else if (strstr (error->message, bad[i].says) == NULL) {
      g_test_message ("%s: %s", bad[i].set, error->message);
      g_test_fail ();
    }
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/trades/adapters/memory", test_adapter_memory);
  g_test_add_func ("/trades/adapters/kernels", test_adapter_kernels);
  g_test_add_func ("/trades/adapters/sharded", test_adapter_sharded);
  g_test_add_func ("/trades/recompute-every", test_every);
  g_test_add_func ("/trades/offload/optimizer", test_offload_optimizer);
  g_test_add_func ("/trades/offload/host-memory", test_host_memory);
  g_test_add_func ("/trades/offload/delayed", test_offload_delayed);
  g_test_add_func ("/trades/offload/activations", test_offload_activations);
  g_test_add_func ("/trades/compression", test_compression);
  g_test_add_func ("/trades/outer/closed-form", test_outer);
  g_test_add_func ("/trades/outer/round", test_outer_round);
  g_test_add_func ("/trades/modules", test_modules);
  g_test_add_func ("/trades/gather", test_gather);
  g_test_add_func ("/trades/head-again", test_head_again);
  g_test_add_func ("/trades/refused", test_refused);
  return g_test_run ();
}
