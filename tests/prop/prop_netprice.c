/* prop_netprice: random networks under random layouts. Contention never helps: no price is below
 * the profile's, no step shorter than the analytic one; wider links above the leaves never make a
 * price higher when traffic is spread evenly; the same scenario gives the same step again. Bytes
 * over the links of a ring's NICs are the busbw factor. NETPRICE_SEED=n repeats one seed. */
#include "../core_util.h"

#include "coll_plan.h"
#include "fabric.h"
#include "predict.h"
#include "rng.h"

static const char *
pick (SimRng *r, const char *const *of, guint n)
{
  return of[sim_rng_below (r, n)];
}

#define PICK(r, of) pick (r, of, G_N_ELEMENTS (of))

static Prediction
run (GPtrArray *sets)
{
  g_autoptr (GError) error = NULL;
  Spec s;
  Prediction p;
  g_ptr_array_add (sets, NULL);
  if (!scenario_load ("spine-70b-512", (const char *const *)sets->pdata, &s, &error) ||
      !predict (&s, NULL, NULL, &p, &error))
    g_error ("%s", error->message);
  g_ptr_array_remove_index (sets, sets->len - 1);
  spec_clear (&s);
  return p;
}

static void
add (GPtrArray *sets, const char *key, const char *value)
{
  g_ptr_array_add (sets, g_strdup_printf ("%s=%s", key, value));
}

/* The layout, then (from *from on) the network but for its oversubscription. */
static GPtrArray *
draw (SimRng *r, guint *from, gboolean *adaptive)
{
  static const char *const nodes[] = {"8", "12", "16", "24"};
  static const char *const tp[] = {"2", "4", "8"}, *const pp[] = {"1", "2", "4"};
  static const char *const yes[] = {"true", "false"};
  static const char *const kind[] = {"leaf-spine", "clos3", "dragonfly"};
  static const char *const ports[] = {"8", "16", "32"};
  static const char *const routing[] = {"adaptive", "adaptive", "ecmp", "static"};
  static const char *const place[] = {"block", "scattered"};
  static const char *const op[] = {"all_reduce", "alltoall", "all_gather"};
  GPtrArray *sets = g_ptr_array_new_with_free_func (g_free);
  add (sets, "cluster.nodes", PICK (r, nodes));
  add (sets, "train.global_batch_sequences", "768");
  add (sets, "parallel.vpp", "1");
  add (sets, "parallel.schedule", "1f1b");
  add (sets, "parallel.tp", PICK (r, tp));
  add (sets, "parallel.pp", PICK (r, pp));
  *from = sets->len;
  const char *way = PICK (r, routing);
  *adaptive = way[0] == 'a';
  add (sets, "cluster.network.kind", PICK (r, kind));
  add (sets, "cluster.network.leaf_ports", PICK (r, ports));
  add (sets, "cluster.network.rail_optimised", PICK (r, yes));
  add (sets, "cluster.network.routing", way);
  add (sets, "cluster.network.placement", PICK (r, place));
  add (sets, "cluster.network.planes", sim_rng_below (r, 4) == 0 ? "2" : "1");
  if (sim_rng_below (r, 2) == 0) {
    add (sets, "cluster.network.neighbour.nodes", sim_rng_below (r, 2) ? "4" : "9");
    add (sets, "cluster.network.neighbour.op", PICK (r, op));
    add (sets, "cluster.network.neighbour.placement", PICK (r, place));
  }
  if (sim_rng_below (r, 3) == 0)
    add (sets, "cluster.network.fault",
         sim_rng_below (r, 2) ? "{\"where\":\"nic\",\"rate\":0.3,\"count\":3}"
                              : "{\"where\":\"nic\",\"up_s\":0.01,\"down_s\":0.002}");
  return sets;
}

static void
tell (guint64 seed, const GPtrArray *sets)
{
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint i = 0; i < sets->len; i++)
    g_string_append_printf (text, " --set '%s'", (const char *)g_ptr_array_index (sets, i));
  g_test_message ("seed %" G_GUINT64_FORMAT ":%s", seed, text->str);
  g_test_fail ();
}

static gboolean
never_below (const Prediction *p)
{
  gboolean ok = TRUE;
  for (guint i = 0; i < p->net_rows->len; i++) {
    const NetRow *r = &g_array_index (p->net_rows, NetRow, i);
    ok = ok && r->time_s >= r->alone_s && r->busiest_load <= 1 + 1e-6;
  }
  return ok;
}

static gboolean
never_longer (const Prediction *narrow, const Prediction *wide)
{
  gboolean ok = TRUE;
  for (guint i = 0; i < narrow->net_rows->len; i++)
    ok = ok && g_array_index (wide->net_rows, NetRow, i).time_s <=
                   g_array_index (narrow->net_rows, NetRow, i).time_s * (1 + 1e-6);
  return ok;
}

static void
one (guint64 seed)
{
  SimRng r = sim_rng_stream (seed, 0, "prop.netprice", 0);
  guint from;
  gboolean adaptive;
  g_autoptr (GPtrArray) sets = draw (&r, &from, &adaptive);
  g_autoptr (GPtrArray) plain = g_ptr_array_new ();
  for (guint i = 0; i < from; i++)
    g_ptr_array_add (plain, g_ptr_array_index (sets, i));
  g_ptr_array_add (plain, (gpointer) "run.fidelity=analytic");
  Prediction a = run (plain);
  add (sets, "cluster.network.leaf_oversubscription", "4");
  Prediction narrow = run (sets), again = run (sets);
  g_ptr_array_remove_index (sets, sets->len - 1);
  add (sets, "cluster.network.leaf_oversubscription", sim_rng_below (&r, 2) ? "1" : "2");
  Prediction wide = run (sets);
  gboolean ok = never_below (&narrow) && never_below (&wide) &&
                narrow.step_s >= a.step_s * (1 - 1e-12) && wide.step_s >= a.step_s * (1 - 1e-12) &&
                narrow.step_s == again.step_s && (!adaptive || never_longer (&narrow, &wide));
  if (!ok)
    tell (seed, sets);
  prediction_clear (&a);
  prediction_clear (&narrow);
  prediction_clear (&again);
  prediction_clear (&wide);
}

static void
test_random (void)
{
  const char *only = g_getenv ("NETPRICE_SEED"), *sanitized = g_getenv ("SANITIZED");
  guint64 first = only ? g_ascii_strtoull (only, NULL, 10) : 1;
  guint64 n = only                                ? 1
              : sanitized && *sanitized           ? 10
              : g_getenv ("CLUSTERSIM_TEST_FULL") ? 500
                                                  : 60;
  for (guint64 seed = first; seed < first + n; seed++)
    one (seed);
}

/* Rings of all sizes over the nodes of a job: what a NIC sends is 2 (n-1)/n or (n-1)/n of the
 * buffer, over the NICs that the group drives. */
static void
test_bytes (void)
{
  Spec s;
  g_autoptr (GError) error = NULL;
  g_assert_true (scenario_load ("spine-70b-512", NULL, &s, &error));
  g_autoptr (NetPrice) net = netprice_new (&s, &error);
  g_assert_no_error (error);
  Topo *t = netprice_peek_topo (net);
  guint32 gpu[512];
  for (guint32 i = 0; i < 512; i++)
    gpu[i] = i;
  for (guint32 n = 16; n <= 512; n *= 2)
    for (int op = COLL_ALL_REDUCE; op <= COLL_REDUCE_SCATTER; op++) {
      CollPlanSpec ps = {.topo = t,
                         .gpu = gpu,
                         .n = n,
                         .op = (CollOp)op,
                         .bytes = (gint64)n << 23,
                         .route = {.mode = TOPO_ROUTE_ADAPTIVE, .nic = -1}};
      g_autoptr (CollPlan) p = coll_plan_new (&ps, &error);
      g_assert_no_error (error);
      for (guint32 node = 0; node < n / 8; node++)
        for (int k = 0; k < 8; k++)
          g_assert_cmpfloat_with_epsilon (
              8 * coll_plan_link_bytes (p, topo_nic_link (t, node, k, 0, TRUE)) / (double)p->bytes,
              coll_bus_factor ((CollOp)op, (int)n), 1e-9);
    }
  spec_clear (&s);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/netprice/random", test_random);
  g_test_add_func ("/netprice/bytes", test_bytes);
  return g_test_run ();
}
