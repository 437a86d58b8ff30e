/* CPU time and peak memory of one unfolded step with per-GPU jitter: 131,072 GPUs in 1F1B, 16
 * stages, 128 micro-batches; and Llama 3.1 405B on 16,384 H100 as published. And of the same steps
 * folded. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "exec.h"
#include "fold.h"
#include "predict.h"
#include "scenario.h"
#include "unfold.h"

/* CPU seconds, which other work on the machine does not change. */
static double
cpu_s (void)
{
  struct rusage u;
  getrusage (RUSAGE_SELF, &u);
  return (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec * 1e-6;
}

static double
peak_MB (void)
{
  struct rusage u;
  getrusage (RUSAGE_SELF, &u);
  return (double)u.ru_maxrss / 1024.0;
}

static void
bench (const char *name, const char *const *sets, gboolean events)
{
  g_autoptr (GError) error = NULL;
  Spec s;
  StageLayers sl = {0};
  Prediction p;
  if (!scenario_load ("gpt3-175b-h100", sets, &s, &error))
    g_error ("%s", error->message);
  double t0 = cpu_s ();
  if (!predict (&s, NULL, NULL, &p, &error))
    g_error ("%s", error->message);
  double t1 = cpu_s ();
  g_autoptr (SchedTable) t =
      sched_generate (s.parallel.schedule, (guint)s.parallel.pp, (guint)s.parallel.vpp,
                      (guint)spec_microbatches (&s), &error);
  if (t == NULL || !stage_layers_init (&sl, &s, &error))
    g_error ("%s", error->message);
  g_autoptr (ProgramSet) set = unfold_programs (compile_step (&s, t, &sl, NULL, &error), &s, NULL);
  SimOptions so = {.ticks_per_s = SIM_TICKS_PS, .seed = 1, .horizon = SIM_TIME_MAX};
  g_autoptr (SimEngine) engine = sim_engine_new (&so);
  ExecOptions eo = {.jitter = 0.02};
  ExecResult res;
  double t2 = cpu_s ();
  if (!exec_run_lean (set, &eo, 1, 0, &res, &error))
    g_error ("%s", error->message);
  double t3 = cpu_s ();
  printf ("%-28s %7u GPUs %6.1f M operations: folded %.1f ms, unfolded with jitter %.1f s of CPU, "
          "%.0f MB; step %.3f s, with jitter %.3f s\n",
          name, set->n_ranks, (double)res.operations * 1e-6, (t1 - t0) * 1e3, t3 - t2, peak_MB (),
          p.step_s, sim_time_to_s (res.end, SIM_TICKS_PS));
  fflush (stdout);
  SimTime end = res.end;
  exec_result_clear (&res);
  if (events) { /* the same step, event by event */
    if (!exec_run_events (set, engine, &eo, &res, &error))
      g_error ("%s", error->message);
    printf ("  event by event %.1f s of CPU, %.0f MB\n", cpu_s () - t3, peak_MB ());
    g_assert (end == res.end);
  }
  exec_result_clear (&res);
  stage_layers_clear (&sl);
  prediction_clear (&p);
  spec_clear (&s);
}

int
main (void)
{
  const char *const llama[] = {
      "model=llama-3.1-405b", "cluster.nodes=2048",
      "train={\"sequence_tokens\":8192,\"global_batch_sequences\":2048,\"micro_batch_sequences\":1,"
      "\"precision\":\"bf16\",\"recompute\":\"none\"}",
      "parallel={\"tp\":8,\"pp\":16,\"vpp\":8,\"sequence_parallel\":true,\"zero_stage\":1}", NULL};
  const char *const wide[] = {"cluster.nodes=16384",
                              "train={\"sequence_tokens\":2048,\"global_batch_sequences\":1048576,"
                              "\"micro_batch_sequences\":1,"
                              "\"precision\":\"bf16\",\"recompute\":\"full\"}",
                              "parallel={\"tp\":1,\"pp\":16,\"zero_stage\":1}", NULL};
  bench ("Llama 3.1 405B", llama, TRUE);
  bench ("1F1B 16 stages x 128", wide, FALSE);
  return 0;
}
