/* Checkpoint sizes and times, and what a campaign costs. */
#include "ckpt.h"
#include "cost.h"

#include <math.h>

static void
near (double found, double expected)
{
  g_assert_cmpfloat (fabs (found - expected), <=, 1e-6 * fabs (expected));
}

static void
test_w13 (void)
{
  /* 405e9 parameters x 14 B: 2.835 s at 2 TB/s, 0.81 s at 7 TB/s, 0.346069 GB for each of 16,384
   * GPUs. */
  CkptStore s = {.bytes = 405e9 * ckpt_bytes_per_parameter (2, 12),
                 .gpus = 16384,
                 .nodes = 2048,
                 .store_write_Bps = 2e12,
                 .store_read_Bps = 7e12,
                 .store_share = 1};
  near (s.bytes, 5.67e12);
  near (ckpt_write_s (&s), 2.835);
  near (ckpt_read_s (&s), 0.81);
  near (ckpt_bytes_per_gpu (&s) / 1e9, 0.34606933594);
  /* Half of the store belongs to others; few slow writers are the limit after all. */
  s.store_share = 0.5;
  near (ckpt_write_s (&s), 5.67);
  s.writers = 100;
  s.writer_Bps = 1e9;
  near (ckpt_write_s (&s), 56.7);
  s.fixed_s = 3;
  s.reshard_s = 20;
  near (ckpt_write_s (&s), 59.7);
  near (ckpt_read_s (&s), 76.7);
  /* Host memory: a node's share, twice while one is in flight. */
  near (ckpt_host_bytes_per_node (&s, 2), 2 * 5.67e12 / 2048);
  s.snapshot_Bps = 10e9;
  near (ckpt_snapshot_s (&s), 0.034606933594);
}

static void
test_levels (void)
{
  CkptStore s = {.bytes = 8e12,
                 .gpus = 1000,
                 .nodes = 125,
                 .store_write_Bps = 1e11,
                 .store_read_Bps = 2e11,
                 .store_share = 1,
                 .snapshot_Bps = 8e9};
  CkptLevel sync = ckpt_level_sync (&s), async = ckpt_level_async (&s, 0.1);
  near (sync.block_s, 80);
  near (sync.restore_s, 40);
  near (async.block_s, 1);
  near (async.persist_s, 80);
  CkptLevel memory = ckpt_level_memory (&s), peer = ckpt_level_peer (&s, 1e10, 2);
  near (memory.block_s, 1);
  g_assert_cmpint (memory.survives, ==, CKPT_PROCESS);
  near (peer.persist_s, 6.4);
  g_assert_cmpint (peer.survives, ==, CKPT_NODE);
  /* A write longer than its interval makes the next save wait for it. */
  CkptPlan p = {.interval_s = 50, .n_levels = 1, .level = {async}};
  near (ckpt_effective_block_s (&p, 0), 31);
  p.interval_s = 200;
  near (ckpt_effective_block_s (&p, 0), 1);
  GError *error = NULL;
  g_assert_true (ckpt_plan_check (&p, &error));
  p.interval_s = 0;
  g_assert_false (ckpt_plan_check (&p, &error));
  g_assert_error (error, CKPT_ERROR, CKPT_ERROR_RANGE);
  g_clear_error (&error);
  p = (CkptPlan){.interval_s = 50, .n_levels = 2, .level = {memory, sync}};
  p.level[1].every = 0;
  g_assert_false (ckpt_plan_check (&p, &error));
  g_clear_error (&error);
  p.level[1].every = 4;
  g_assert_true (ckpt_plan_check (&p, &error));
}

static void
test_cost (void)
{
  CostSpec c;
  cost_init (&c);
  CostResult r = cost_of (&c, 1000, 86400, 80000);
  near (r.gpu_hours, 24000);
  g_assert_cmpfloat (r.usd, <, 0); /* not known is not free */
  g_assert_cmpfloat (r.kwh, <, 0);
  c.mode = COST_RENT;
  c.usd_per_gpu_hour = 2;
  c.pue = 1.5;
  c.compute_w = 1000;
  c.comm_w = 600;
  c.idle_w = 100;
  c.compute_share = 0.5;
  c.comm_share = 0.25;
  c.kg_co2_per_kwh = 0.4;
  r = cost_of (&c, 1000, 86400, 72000);
  near (r.usd, 48000);
  /* 36,000 s at 1000 W, 18,000 s at 600 W, 32,400 s at 100 W, for each of 1000 GPUs. */
  near (r.kwh_compute, 10000);
  near (r.kwh_comm, 3000);
  near (r.kwh_idle, 900);
  near (r.kwh_overhead, 6950);
  near (r.kwh, 20850);
  near (r.kg_co2, 8340);
  /* Bought for 30,000 a GPU, a fifth left after 4 years: 6000 a year, and 5 % upkeep. */
  c.mode = COST_OWN;
  c.capex_usd_per_gpu = 30000;
  c.life_years = 4;
  c.residual = 0.2;
  c.upkeep_per_year = 0.05;
  c.usd_per_kwh = 0.1;
  r = cost_of (&c, 1000, 86400, 72000);
  near (r.usd_machines, 6000 * 1000 / 365.25);
  near (r.usd_upkeep, 1500 * 1000 / 365.25);
  near (r.usd_power, 2085);
  near (r.usd, r.usd_machines + r.usd_upkeep + r.usd_power);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/ckpt/w13", test_w13);
  g_test_add_func ("/ckpt/levels", test_levels);
  g_test_add_func ("/cost/all", test_cost);
  return g_test_run ();
}
