/* test_netprice: predictions on a network that groups share, against closed forms.
 *
 * The base: 8 GPUs a node with a NIC each, tp 8, so that the 8 ranks of a stage send through one
 * NIC each at the same time. rate = efficiency * 50 GB/s of a NIC or cable; a message of S bytes
 * takes S / rate of the wire time alone. What the network adds is printed beside it in the rows.
 */
#include "../core_util.h"

#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "fabric.h"
#include "predict.h"

#define LEAF      "cluster.network.kind=leaf-spine"
#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Loads a shipped scenario; GError is the caller's. */
static gboolean
run (const char *name, const char *const *sets, Prediction *p, double *rate, GError **error)
{
  Spec s;
  if (!scenario_load (name, sets, &s, error))
    return FALSE;
  if (rate != NULL)
    *rate = s.fabric->efficiency * s.fabric->nic_Bps;
  gboolean ok = predict (&s, NULL, NULL, p, error);
  spec_clear (&s);
  return ok;
}

static Prediction
run_ok (const char *name, const char *const *sets, double *rate)
{
  g_autoptr (GError) error = NULL;
  Prediction p;
  if (!run (name, sets, &p, rate, &error))
    g_error ("%s: %s", name, error->message);
  return p;
}

static const NetRow *
row_of (const Prediction *p, SpanKind kind, CollOp op)
{
  for (guint i = 0; p->net_rows != NULL && i < p->net_rows->len; i++) {
    const NetRow *r = &g_array_index (p->net_rows, NetRow, i);
    if (r->kind == kind && r->op == op)
      return r;
  }
  return NULL;
}

/* Four nodes, one stage each, on leaves of one node each: `up` cables above a leaf at
 * oversubscription 8 / up. */
static Prediction
stages (const char *a, const char *b, const char *c, double *rate)
{
  const char *sets[16] = {"cluster.nodes=4",
                          "train.global_batch_sequences=16",
                          "parallel.tp=8",
                          "parallel.pp=4",
                          "parallel.vpp=1",
                          "parallel.schedule=1f1b",
                          LEAF,
                          "cluster.network.leaf_ports=8",
                          "cluster.network.rail_optimised=false",
                          a,
                          b,
                          c};
  return run_ok ("spine-70b-512", sets, rate);
}

/* A network that is no bottleneck gives the analytic step to the tick, whatever the layout. */
static void
test_no_contention (void)
{
  static const char *const names[] = {"llama-3-70b-h100",  "gpt3-175b-h100",  "gpt3-175b-a100",
                                      "nvl72-deepseek-v3", "bloom-176b-a100", "nine-nodes-neox-20b",
                                      "qwen3-235b-h100",   "two-sites-8b"};
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    Prediction a = run_ok (names[i], NULL, NULL);
    Prediction one = run_ok (names[i], SETS ("run.fidelity=flow"), NULL);
    Prediction clos =
        run_ok (names[i], SETS (LEAF, "cluster.network.leaf_ports=16", "run.fidelity=flow"), NULL);
    Prediction planes = run_ok (names[i], SETS ("cluster.network.planes=2"), NULL);
    g_assert_null (a.net_rows);
    g_assert_nonnull (one.net_rows);
    g_assert_cmpfloat (one.step_s, ==, a.step_s);
    g_assert_cmpfloat_with_epsilon (planes.step_s, a.step_s, 1e-9 * a.step_s);
    g_assert_cmpfloat_with_epsilon (clos.step_s, a.step_s, 1e-9 * a.step_s);
    for (guint k = 0; k < PART_COUNT; k++)
      g_assert_cmpfloat (one.part_s[k], ==, a.part_s[k]);
    for (guint k = 0; k < clos.net_rows->len; k++) {
      const NetRow *r = &g_array_index (clos.net_rows, NetRow, k);
      g_assert_cmpfloat (r->time_s - r->alone_s, <=, 2e-12 + 1e-9 * r->alone_s);
    }
    prediction_clear (&a);
    prediction_clear (&one);
    prediction_clear (&clos);
    prediction_clear (&planes);
  }
}

/* k:1: the 8 messages of a stage share 8 / k cables, and take k times the wire time. */
static void
test_oversubscription (void)
{
  for (int k = 1; k <= 8; k *= 2) {
    double rate = 0;
    g_autofree char *set = g_strdup_printf ("cluster.network.leaf_oversubscription=%d", k);
    Prediction p = stages (set, NULL, NULL, &rate);
    const NetRow *r = row_of (&p, SPAN_PP, COLL_SENDRECV);
    g_assert_nonnull (r);
    double want = (k - 1) * r->bytes / rate;
    g_assert_cmpfloat_with_epsilon (r->time_s - r->alone_s, want, 1e-9 * r->alone_s);
    g_assert_cmpuint (r->groups, ==, 8);
    g_assert_cmpuint (r->nodes, ==, 4);
    g_assert_cmpfloat_with_epsilon (r->busiest_load, 1, 1e-6);
    g_assert_null (row_of (&p, SPAN_DP, COLL_ALL_GATHER)); /* one replica */
    g_assert_cmpuint (row_of (&p, SPAN_TP, COLL_ALL_GATHER)->nodes, ==, 1);
    prediction_clear (&p);
  }
}

/* One of 4 cables (2:1) dead: 8 messages over 3, so 8/3 of the wire time; at half its rate: 8 over
 * 3.5. A NIC at a quarter: four times the wire time for its message, and the step waits for it. A
 * dead port of two: twice. */
static void
test_faults (void)
{
  static const struct {
    const char *a, *b, *c;
    double factor;
  } x[] = {{"cluster.network.fault.where=leaf", "cluster.network.fault.rate=0",
            "cluster.network.leaf_oversubscription=2", 8.0 / 3},
           {"cluster.network.fault.where=leaf", "cluster.network.fault.rate=0.5",
            "cluster.network.leaf_oversubscription=2", 8 / 3.5},
           {"cluster.network.fault.where=nic", "cluster.network.fault.rate=0.25", NULL, 4},
           {"cluster.network.fault.where=nic", "cluster.network.fault.rate=0",
            "cluster.network.planes=2", 2},
           {"cluster.network.fault.where=leaf", "cluster.network.fault.count=0", NULL, 1}};
  for (gsize i = 0; i < G_N_ELEMENTS (x); i++) {
    double rate = 0;
    Prediction p = stages (x[i].a, x[i].b, x[i].c, &rate);
    const NetRow *r = row_of (&p, SPAN_PP, COLL_SENDRECV);
    g_assert_cmpfloat_with_epsilon (r->time_s - r->alone_s, (x[i].factor - 1) * r->bytes / rate,
                                    1e-9 * r->alone_s);
    prediction_clear (&p);
  }
}

/* A port that is up U and down D in turn, met at any time by a message of T < U: it finds the port
 * down with D / (U + D) and waits D / 2 on average, or is caught by the next outage with
 * T / (U + D) and waits D. 16 phases are the mean to within a sixteenth of the period. */
static void
test_flapping (void)
{
  double rate = 0, u = 0.02, d = 0.01;
  Prediction p = stages ("cluster.network.fault.where=nic", "cluster.network.fault.up_s=0.02",
                         "cluster.network.fault.down_s=0.01", &rate);
  const NetRow *r = row_of (&p, SPAN_PP, COLL_SENDRECV);
  double t = r->bytes / rate, want = (d * d / 2 + t * d) / (u + d);
  g_assert_cmpfloat (t, <, u);
  g_assert_cmpfloat_with_epsilon (r->time_s - r->alone_s, want, d / 16);
  prediction_clear (&p);
}

/* ECMP: the same seed the same paths; no seed beats spreading evenly, and some collide;
 * with many queue pairs they spread. */
static void
test_ecmp (void)
{
  Prediction even = stages (NULL, NULL, NULL, NULL);
  double least = row_of (&even, SPAN_PP, COLL_SENDRECV)->time_s, most = 0;
  for (int seed = 1; seed <= 6; seed++) {
    g_autofree char *set = g_strdup_printf ("run.seed=%d", seed);
    Prediction a = stages ("cluster.network.routing=ecmp", set, NULL, NULL);
    Prediction b = stages ("cluster.network.routing=ecmp", set, NULL, NULL);
    double t = row_of (&a, SPAN_PP, COLL_SENDRECV)->time_s;
    g_assert_cmpfloat (a.step_s, ==, b.step_s);
    g_assert_cmpfloat (t, >=, least);
    most = MAX (most, t);
    prediction_clear (&a);
    prediction_clear (&b);
  }
  g_assert_cmpfloat (most, >, 1.5 * least);
  Prediction many =
      stages ("cluster.network.routing=ecmp", "cluster.network.queue_pairs=64", NULL, NULL);
  double t = row_of (&many, SPAN_PP, COLL_SENDRECV)->time_s;
  g_assert_cmpfloat (t, >=, least);
  g_assert_cmpfloat (t, <, (most + least) / 2);
  prediction_clear (&many);
  prediction_clear (&even);
}

/* Another job on other leaves does nothing to one that has its own; scattered over the same leaves
 * it does, and the more the more it sends. */
static void
test_neighbour (void)
{
  const char *const base[] = {LEAF,
                              "cluster.nodes=16",
                              "cluster.network.leaf_ports=32", /* 4 nodes a leaf */
                              "cluster.network.rail_optimised=false",
                              "cluster.network.leaf_oversubscription=4",
                              "train.global_batch_sequences=128",
                              "cluster.network.neighbour.nodes=16",
                              NULL};
  double last = 0;
  for (int k = 0; k < 4; k++) {
    const char *sets[16] = {NULL};
    guint n = g_strv_length ((char **)base);
    memcpy (sets, base, n * sizeof *base);
    sets[n++] = k == 0   ? "cluster.network.neighbour.load=1"
                : k == 1 ? "cluster.network.neighbour.load=0.001"
                : k == 2 ? "cluster.network.neighbour.load=0.3"
                         : "cluster.network.neighbour.load=1";
    sets[n++] = k == 0 ? "cluster.network.placement=block" : "cluster.network.placement=scattered";
    Prediction p = run_ok ("spine-70b-512", sets, NULL);
    const NetRow *r = row_of (&p, SPAN_DP, COLL_REDUCE_SCATTER);
    if (k == 0)
      g_assert_cmpfloat (r->time_s - r->alone_s, <=, 1e-9 * r->alone_s);
    else
      g_assert_cmpfloat (r->time_s, >=, last * (1 - 1e-9));
    if (k == 3)
      g_assert_cmpfloat (r->time_s, >, 1.2 * r->alone_s);
    last = r->time_s;
    prediction_clear (&p);
  }
}

/* A word for all, or an object by kind; what it leaves out is analytic. With a network the usual
 * fidelity is flow. */
static void
test_by_kind (void)
{
  const char *four = "cluster.network.leaf_oversubscription=4";
  Prediction all = stages (four, NULL, NULL, NULL);
  Prediction none = stages (four, "run.fidelity=analytic", NULL, NULL);
  Prediction tp = stages (four, "run.fidelity={\"tp\":\"flow\"}", NULL, NULL);
  Prediction pp = stages (four, "run.fidelity={\"pp\":\"step\"}", NULL, NULL);
  g_assert_null (none.net_rows);
  g_assert_cmpuint (pp.net_rows->len, ==, 1);
  g_assert_cmpint (row_of (&pp, SPAN_PP, COLL_SENDRECV)->fidelity, ==, FIDELITY_STEP);
  g_assert_null (row_of (&tp, SPAN_PP, COLL_SENDRECV));
  g_assert_cmpfloat (tp.step_s, ==, none.step_s); /* inside a node */
  g_assert_cmpfloat (pp.step_s, ==, all.step_s);  /* a message is one step */
  g_assert_cmpfloat (all.step_s, >, none.step_s);
  prediction_clear (&all);
  prediction_clear (&none);
  prediction_clear (&tp);
  prediction_clear (&pp);
}

/* Step against flow, alone and shared: never before it, and behind it by the filling of pipelines
 * and the unequal hops of a ring, a few per cent at these sizes. */
static void
test_step (void)
{
  static const char *const over[] = {"cluster.network.leaf_oversubscription=1",
                                     "cluster.network.leaf_oversubscription=4"};
  for (gsize k = 0; k < G_N_ELEMENTS (over); k++) {
    const char *const sets[] = {"cluster.nodes=16",
                                "train.global_batch_sequences=128",
                                over[k],
                                "cluster.network.rail_optimised=false",
                                "cluster.network.leaf_ports=16",
                                "run.fidelity=flow",
                                NULL};
    const char *again[G_N_ELEMENTS (sets)];
    memcpy (again, sets, sizeof sets);
    again[5] = "run.fidelity=step";
    Prediction f = run_ok ("spine-70b-512", sets, NULL), s = run_ok ("spine-70b-512", again, NULL);
    for (guint i = 0; i < f.net_rows->len; i++) {
      const NetRow *a = &g_array_index (f.net_rows, NetRow, i);
      const NetRow *b = &g_array_index (s.net_rows, NetRow, i);
      g_assert_cmpint (a->kind, ==, b->kind);
      g_assert_cmpfloat (b->time_s, >=, a->time_s * (1 - 1e-3));
      g_assert_cmpfloat (b->time_s, <=, a->time_s * 1.05);
    }
    prediction_clear (&f);
    prediction_clear (&s);
  }
}

static void
test_refused (void)
{
  static const struct {
    const char *sets[3];
    const char *part;
  } x[] = {
      {{"cluster.network.topology=dgx-h100-superpod", "cluster.fabric.nics_per_node.value=4"},
       "they must agree"},
      {{"cluster.network.topology=no-such"}, "unknown"},
      {{"cluster.network.fault.where=nic"}, "a dead port of a NIC stops the job"},
      {{"cluster.network.fault.first=100000000"}, "out of range"},
      {{"cluster.network.fault.first=1000000"}, "no link number"},
      {{"cluster.network.fault.up_s=1"}, "allowed: both"},
      {{"cluster.network.nodes=3"}, "find a GPU"},
      {{"cluster.network.placement=hosts"}, "hosts and placement do not agree"},
      {{"cluster.network.placement=hosts", "cluster.network.hosts=[\"a\"]"}, "no host is called a"},
      {{"cluster.network.kind=single-switch"}, "one switch has no oversubscription"},
      {{"cluster.network.leaf_ports=4", "cluster.network.rail_optimised=false"}, "takes no host"},
      {{"cluster.network.leaf_oversubscription=0"}, "out of range"},
      {{"cluster.network.spine_ports=1"}, "more ports, or one more tier"},
      {{"cluster.network.routing=eccmp"}, "nearest: ecmp"},
      {{"run.fidelity={\"dq\":\"flow\"}"}, "unknown key"},
      {{"run.fidelity=packet"}, "unknown name"}};
  for (gsize i = 0; i < G_N_ELEMENTS (x); i++) {
    g_autoptr (GError) error = NULL;
    Prediction p;
    g_assert_false (run ("spine-70b-512", x[i].sets, &p, NULL, &error));
    g_assert_nonnull (error);
    if (strstr (error->message, x[i].part) == NULL) {
      g_test_message ("%s: %s", x[i].sets[0], error->message);
      g_test_fail ();
    }
  }
}

/* Neighbours in rank on different nodes: tensor parallelism leaves the node, and its price with
 * it. Listed hosts in order are a block. */
static void
test_placement (void)
{
  const char *four = "cluster.nodes=4";
  Prediction block = stages (NULL, NULL, NULL, NULL);
  Prediction rail = run_ok ("spine-70b-512",
                            SETS (four, "train.global_batch_sequences=16", "parallel.tp=4",
                                  "parallel.pp=4", "cluster.network.placement=rail"),
                            NULL);
  Prediction list = stages ("cluster.network.placement=hosts",
                            "cluster.network.hosts=[\"node0000\",\"node0001\",\"node0002\","
                            "\"node0003\"]",
                            NULL, NULL);
  const NetRow *r = row_of (&rail, SPAN_TP, COLL_ALL_GATHER);
  g_assert_cmpuint (r->nodes, ==, 4);
  g_assert_cmpfloat (r->alone_s, >, 2 * row_of (&block, SPAN_TP, COLL_ALL_GATHER)->alone_s);
  g_assert_cmpfloat (list.step_s, ==, block.step_s);
  prediction_clear (&block);
  prediction_clear (&rail);
  prediction_clear (&list);
}

/* A step of 1,024 GPUs with flows in well under a few seconds. */
/* On rails under leaves at 8:1 an all-to-all that leaves by the far end's rail (PXN) stays under
 * its leaf; without it, and with rings that change the rail, more goes over the narrow spine. Where
 * the spine is no bottleneck neither changes anything. */
static void
test_settings (void)
{
  static const char *const set[] = {"cluster.fabric.env.NCCL_PXN_DISABLE=0",
                                    "cluster.fabric.env.NCCL_PXN_DISABLE=1",
                                    "cluster.fabric.env.NCCL_CROSS_NIC=1"};
  double step_s[2][3];
  for (int narrow = 0; narrow < 2; narrow++)
    for (int i = 0; i < 3; i++) {
      Prediction p = run_ok ("spine-moe-1k",
                             SETS ("cluster.network.rail_optimised=true", set[i],
                                   narrow ? "cluster.network.leaf_oversubscription=8"
                                          : "cluster.network.leaf_oversubscription=1"),
                             NULL);
      step_s[narrow][i] = p.step_s;
      prediction_clear (&p);
    }
  g_assert_cmpfloat_with_epsilon (step_s[0][1], step_s[0][0], 1e-9 * step_s[0][0]);
  g_assert_cmpfloat_with_epsilon (step_s[0][2], step_s[0][0], 1e-9 * step_s[0][0]);
  g_assert_cmpfloat (step_s[1][1], >, 1.5 * step_s[1][0]);
  g_assert_cmpfloat (step_s[1][2], >, step_s[1][0]);
}

static void
test_speed (void)
{
  const char *sanitized = g_getenv ("SANITIZED");
  if (sanitized != NULL && *sanitized != '\0') {
    g_test_skip ("slow under sanitizers");
    return;
  }
  struct rusage a, b;
  getrusage (RUSAGE_SELF, &a);
  Prediction p = run_ok (
      "spine-moe-1k",
      SETS ("cluster.network.leaf_oversubscription=4", "cluster.network.rail_optimised=false"),
      NULL);
  getrusage (RUSAGE_SELF, &b);
  double s = (double)(b.ru_utime.tv_sec - a.ru_utime.tv_sec) +
             1e-6 * (double)(b.ru_utime.tv_usec - a.ru_utime.tv_usec);
  g_test_message ("1,024 GPUs: %.2f s of processor time", s);
  g_assert_cmpfloat (s, <, 3);
  g_assert_cmpfloat (row_of (&p, SPAN_EP, COLL_ALLTOALL)->time_s, >,
                     row_of (&p, SPAN_EP, COLL_ALLTOALL)->alone_s);
  prediction_clear (&p);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/netprice/no-contention", test_no_contention);
  g_test_add_func ("/netprice/oversubscription", test_oversubscription);
  g_test_add_func ("/netprice/faults", test_faults);
  g_test_add_func ("/netprice/flapping", test_flapping);
  g_test_add_func ("/netprice/ecmp", test_ecmp);
  g_test_add_func ("/netprice/neighbour", test_neighbour);
  g_test_add_func ("/netprice/by-kind", test_by_kind);
  g_test_add_func ("/netprice/step", test_step);
  g_test_add_func ("/netprice/refused", test_refused);
  g_test_add_func ("/netprice/placement", test_placement);
  g_test_add_func ("/netprice/settings", test_settings);
  g_test_add_func ("/netprice/speed", test_speed);
  return g_test_run ();
}
