/* Mixture of experts: FLOPs and bytes against closed forms, load imbalance, overlap, rules. */
#include "../moe_util.h"

#include "compile.h"
#include "fabric.h"
#include "predict.h"

/* Qwen3-235B: 128 experts, 8 a token, hidden 4,096, width 1,536; tp 2 with sequence parallelism, so
 * 2,048 tokens a rank. */
#define TOKENS 2048.0
#define HIDDEN 4096.0

static void
load (Spec *s)
{
  ut_load (s, "qwen3-235b-h100");
  s->train.moe_imbalance = 1;
}

/* Unfused attention, so that every product is a GEMM row: the layer's forward FLOPs of all ranks
 * are those of model_flops_forward with full attention, less head, plus the router that it leaves
 * out. */
static void
test_flops (void)
{
  static const gint64 eps[] = {1, 4, 32};
  for (guint i = 0; i < G_N_ELEMENTS (eps); i++) {
    Spec s;
    load (&s);
    s.parallel.ep = eps[i];
    s.software.attention = ATTN_UNFUSED;
    const ModelSpec *m = &s.model;
    double rank = ut_sum (&s, 5, LP_FORWARD, "", FALSE).flops;
    double router = ut_sum (&s, 5, LP_FORWARD, "router", FALSE).flops;
    double seq = (double)s.train.sequence_tokens;
    double layer = (model_flops_forward (m, s.train.sequence_tokens, FALSE) -
                    2.0 * seq * HIDDEN * (double)m->vocab) /
                   (double)m->num_layers;
    ut_near ((rank - router) * (double)s.parallel.tp, layer, 1e-12);
    ut_near (router, 2.0 * TOKENS * HIDDEN * (double)m->num_experts, 1e-12);
    /* input and weight gradients: twice */
    double back = ut_sum (&s, 5, LP_BACKWARD, "", FALSE).flops;
    ut_near (back, 2.0 * rank, 1e-12);
    spec_clear (&s);
  }
}

/* Plain all-to-all: k copies of each of the rank's tokens, 2 bytes an element; four of them. */
static void
test_alltoall_bytes (void)
{
  Spec s;
  load (&s);
  s.software.ep_dispatch = EP_PLAIN;
  UtSum f = ut_sum (&s, 5, LP_FORWARD, "ep", TRUE), b = ut_sum (&s, 5, LP_BACKWARD, "ep", TRUE);
  g_assert_cmpuint (f.n, ==, 2);
  g_assert_cmpuint (b.n, ==, 2);
  ut_near (f.bytes, 2.0 * TOKENS * 8.0 * HIDDEN * 2.0, 1e-12);
  ut_near (b.bytes, f.bytes, 1e-12);
  /* 32 ranks on 4 nodes: no faster than what leaves a node over its NICs' line rate */
  double leaves = TOKENS * 8.0 * HIDDEN * 2.0 * 24.0 / 32.0;
  g_assert_cmpfloat (f.time_s / 2.0, >, leaves / 50e9);
  spec_clear (&s);
}

/* One copy of a token for each node that it needs: 4 nodes, 8 of 128 experts; the expected number
 * of nodes is 4 (1 - C(96,8)/C(128,8)). */
static void
test_deduplicated (void)
{
  Spec s;
  Pricing p;
  double bytes, none = 1;
  load (&s);
  for (int i = 0; i < 8; i++)
    none *= (96.0 - i) / (128.0 - i);
  pricing_init (&p, &s);
  double t = moe_dispatch_s (&p, TRUE, &bytes);
  double net = TOKENS * HIDDEN * 2.0 * 4.0 * (1.0 - none) * 0.75;
  double wire = net / (50e9 * s.software.ep_net_efficiency);
  g_assert_cmpfloat (t, >, wire);
  g_assert_cmpfloat (t, <, wire * 1.1);
  s.software.ep_dispatch = EP_PLAIN;
  double plain_bytes, plain = moe_dispatch_s (&p, TRUE, &plain_bytes);
  g_assert_cmpfloat (plain, >, 2.0 * t);
  s.software.ep_dispatch = EP_HIERARCHICAL;
  g_assert_cmpfloat (moe_dispatch_s (&p, TRUE, &plain_bytes), >, t);
  /* a router that stays in half of its groups reaches fewer nodes */
  s.software.ep_dispatch = EP_DEEPEP;
  s.model.router_groups = 8;
  s.model.router_topk_groups = 4;
  g_assert_cmpfloat (moe_dispatch_s (&p, TRUE, &bytes), <, t);
  /* 8-bit tokens go out, 16-bit sums come back */
  s.train.precision = DT_FP8;
  s.software.fp8_dispatch = TRUE;
  double out, back;
  moe_dispatch_s (&p, TRUE, &out);
  moe_dispatch_s (&p, FALSE, &back);
  ut_near (back, 2.0 * out, 1e-12);
  spec_clear (&s);
}

static void
test_no_ep (void)
{
  Spec s;
  load (&s);
  s.parallel.ep = 1;
  g_assert_cmpuint (ut_sum (&s, 5, LP_FORWARD, "ep", TRUE).n, ==, 0);
  g_assert_cmpuint (ut_sum (&s, 5, LP_BACKWARD, "ep", TRUE).n, ==, 0);
  Prediction p;
  g_autoptr (GError) error = NULL;
  g_assert_true (predict (&s, NULL, NULL, &p, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (p.part_s[PART_EP_COMM], ==, 0);
  prediction_clear (&p);
  spec_clear (&s);
}

/* Everything that grows with the busiest rank's rows grows by the imbalance; a capacity cuts it. */
static void
test_imbalance (void)
{
  Spec s;
  load (&s);
  double even = ut_layer_s (&s, 5, LP_FORWARD);
  UtSum up = ut_sum (&s, 5, LP_FORWARD, "experts up", FALSE);
  s.train.moe_imbalance = 1.2;
  double uneven = ut_layer_s (&s, 5, LP_FORWARD);
  ut_near (ut_sum (&s, 5, LP_FORWARD, "experts up", FALSE).flops, 1.2 * up.flops, 1e-3);
  g_assert_cmpfloat (uneven, >, even);
  g_assert_cmpfloat (uneven, <, 1.2 * even);
  s.train.moe_capacity = 1;
  g_assert_cmpfloat (ut_layer_s (&s, 5, LP_FORWARD), <=, even); /* and no count is waited for */
  spec_clear (&s);
}

/* The pair of a forward and a backward: at least the compute and at least the all-to-all of both,
 * at most both one after the other with all compute slowed. */
static void
test_pair (void)
{
  Spec s;
  Pricing p;
  PassCost f, b, both;
  load (&s);
  s.software.ep_overlap_slowdown = 1;
  s.software.host_moe_sync_us = 0;
  pricing_init (&p, &s);
  layer_pass_cost (&p, 5, LP_FORWARD, &f);
  layer_pass_cost (&p, 5, LP_BACKWARD, &b);
  layer_pair_cost (&p, 5, 5, &both);
  SimTime compute = f.part[PART_COMPUTE] + b.part[PART_COMPUTE];
  SimTime comm = f.part[PART_EP_COMM] + b.part[PART_EP_COMM];
  g_assert_cmpint (both.part[PART_COMPUTE], ==, compute);
  g_assert_cmpint (both.total, >=, MAX (compute, comm));
  g_assert_cmpint (both.total, <=, f.total + b.total);
  g_assert_cmpint (both.part[PART_EP_COMM], <, comm / 4);
  spec_clear (&s);
}

static void
test_overlap_step (void)
{
  Spec s;
  Prediction apart, together, events;
  g_autoptr (GError) error = NULL;
  load (&s);
  s.software.host_layer_fwd_us = s.software.host_layer_bwd_us = s.software.host_pair_us = 0;
  g_assert_true (predict (&s, NULL, NULL, &apart, &error));
  s.software.ep_overlap = TRUE;
  g_assert_true (predict (&s, NULL, NULL, &together, &error));
  s.run.exact_events = TRUE;
  g_assert_true (predict (&s, NULL, NULL, &events, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (together.step_s, <, 0.9 * apart.step_s);
  g_assert_cmpfloat (together.step_s, ==, events.step_s);
  g_assert_cmpfloat (together.part_s[PART_EP_COMM], <, 0.5 * apart.part_s[PART_EP_COMM]);
  prediction_clear (&apart);
  prediction_clear (&together);
  prediction_clear (&events);
  spec_clear (&s);
}

/* Module by module: what is run again adds its forward to the backward, and no longer lies in
 * memory. */
static void
test_recompute (void)
{
  static const struct {
    const char *text, *prefix;
    guint more; /* kernels of that name added to backward */
  } cases[] = {{"selective:layernorm", "norm", 2},
               {"selective:moe_act", "gated activation", 1},
               {"selective:moe", "ep", 2},
               {"selective:core_attn", "attention", 1}};
  Spec s;
  load (&s);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_assert_true (recompute_parse ("none", &s.train.recompute, &s.train.recompute_modules));
    gboolean comm = strcmp (cases[i].prefix, "ep") == 0;
    guint before = ut_sum (&s, 5, LP_BACKWARD, cases[i].prefix, comm).n;
    double bytes = model_activation_bytes_layer (&s, 5, RECOMPUTE_NONE);
    g_assert_true (recompute_parse (cases[i].text, &s.train.recompute, &s.train.recompute_modules));
    g_assert_cmpuint (ut_sum (&s, 5, LP_BACKWARD, cases[i].prefix, comm).n, ==,
                      before + cases[i].more);
    g_assert_cmpfloat (model_activation_bytes_layer (&s, 5, s.train.recompute), <, bytes);
  }
  g_assert_false (recompute_parse ("selective:", &s.train.recompute, &s.train.recompute_modules));
  g_assert_false (recompute_parse ("selective:x", &s.train.recompute, &s.train.recompute_modules));
  g_assert_true (recompute_parse ("selective (attention core)", &s.train.recompute,
                                  &s.train.recompute_modules));
  g_assert_cmpuint (s.train.recompute_modules, ==, RECOMP_CORE_ATTN);
  spec_clear (&s);
}

/* Parameters of a stage: experts of a rank = experts of its layers / (ep etp); all ranks together
 * hold them as often as edp says. */
static void
test_params (void)
{
  Spec s;
  StageLayers sl = {0};
  g_autoptr (GError) error = NULL;
  RankGroups g;
  load (&s);
  rank_groups (&s, &g);
  g_assert_true (stage_layers_init (&sl, &s, &error));
  double experts = 0;
  for (guint i = 0; i < sl.n_stages; i++)
    experts += stage_params_per_rank (&s, &sl, i).experts;
  ut_near (experts, 94.0 * 128.0 * 3.0 * 4096.0 * 1536.0 / 32.0, 1e-12);
  /* 256 GPUs / pp 8 = 32 ranks of a stage, all of them one group of ep 32 */
  g_assert_cmpint (g.edp.ranks, ==, 1);
  g_assert_cmpint (g.ep.ranks, ==, 32);
  g_assert_cmpint (g.ep.nodes, ==, 4);
  g_assert_cmpint (g.dp.ranks, ==, 16);
  s.parallel.ep = 8;
  rank_groups (&s, &g);
  g_assert_cmpint (g.edp.ranks, ==, 4);
  g_assert_cmpint (g.ep.nodes, ==, 1);
  stage_layers_clear (&sl);
  spec_clear (&s);
}

static void
test_rules (void)
{
  static const struct {
    gint64 ep, etp;
    gboolean sp;
    const char *key, *says;
  } cases[] = {
      {48, 1, TRUE, "parallel.ep",
       "128 experts are not divisible by ep 48 (nearest that divides: 32 or 64)"},
      {64, 1, TRUE, "parallel.ep", "ep 64 x etp 1 does not divide the tp x cp x dp = 32 ranks"},
      {8, 5, TRUE, "parallel.etp", "moe_ffn_hidden 1536 is not divisible by etp 5"},
      {8, 64, TRUE, "parallel.etp", "etp 64 does not divide the tp x cp x dp = 32 ranks"},
      {8, 1, FALSE, "parallel.etp", "without sequence parallelism"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Spec s;
    const char *key = NULL;
    g_autoptr (GError) error = NULL;
    load (&s);
    s.parallel.ep = cases[i].ep;
    s.parallel.etp = cases[i].etp;
    s.parallel.sequence_parallel = cases[i].sp;
    g_assert_false (spec_check (&s, &key, &error));
    g_assert_cmpstr (key, ==, cases[i].key);
    if (strstr (error->message, cases[i].says) == NULL)
      g_error ("\"%s\" lacks \"%s\"", error->message, cases[i].says);
    spec_clear (&s);
  }
}

/* Expert tensor parallelism: the framework's rule is tp, or 1 where the profile says so. */
static void
test_etp (void)
{
  Spec s;
  load (&s);
  s.parallel.etp = 0;
  g_assert_cmpint (spec_expert_tp (&s), ==, 1);
  s.software.expert_tp_one = FALSE;
  g_assert_cmpint (spec_expert_tp (&s), ==, 2);
  /* same products, gathered rows: FLOPs of a rank do not change, bytes do */
  double flops = ut_sum (&s, 5, LP_FORWARD, "experts", FALSE).flops;
  double bytes = ut_sum (&s, 5, LP_FORWARD, "ep", TRUE).bytes;
  s.parallel.etp = 1;
  ut_near (ut_sum (&s, 5, LP_FORWARD, "experts", FALSE).flops, flops, 1e-12);
  g_assert_cmpfloat (bytes, >, ut_sum (&s, 5, LP_FORWARD, "ep", TRUE).bytes);
  spec_clear (&s);
}

/* 64 of the 72 GPUs of a rack divide a job of 256; eight GPUs are one domain. */
static void
test_domain (void)
{
  Spec s;
  load (&s);
  g_assert_cmpint (spec_domain_gpus (&s), ==, 8);
  s.fabric->domain_gpus = 72;
  s.cluster.gpus_per_node = 4;
  s.cluster.nodes = 64;
  g_assert_cmpint (spec_domain_gpus (&s), ==, 64);
  s.cluster.gpus = 288;
  g_assert_cmpint (spec_domain_gpus (&s), ==, 72);
  s.cluster.gpus = 8;
  g_assert_cmpint (spec_domain_gpus (&s), ==, 8);
  spec_clear (&s);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/moe/flops", test_flops);
  g_test_add_func ("/moe/alltoall-bytes", test_alltoall_bytes);
  g_test_add_func ("/moe/deduplicated", test_deduplicated);
  g_test_add_func ("/moe/no-ep", test_no_ep);
  g_test_add_func ("/moe/imbalance", test_imbalance);
  g_test_add_func ("/moe/pair", test_pair);
  g_test_add_func ("/moe/overlap-step", test_overlap_step);
  g_test_add_func ("/moe/recompute", test_recompute);
  g_test_add_func ("/moe/params", test_params);
  g_test_add_func ("/moe/rules", test_rules);
  g_test_add_func ("/moe/etp", test_etp);
  g_test_add_func ("/moe/domain", test_domain);
  return g_test_run ();
}
