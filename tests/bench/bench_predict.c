/* Speed of predictions: the eight layouts of Korthikanti et al. 2022 (22B, 175B, 530B, 1T; full
 * recomputation, and selective with sequence parallelism), each with schedule, memory, programs,
 * breakdown and cost; with the schedule tables kept between them, as sweep does, and made anew each
 * time, as predict does. Then predict of 16,384 GPUs from the start of the process to its end, and
 * steps priced on a network. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "predict.h"
#include "scenario.h"

static double
cpu_s (void)
{
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Rows korthikanti-* of scenarios/published/runs.csv. */
static const struct {
  const char *model;
  int pp, vpp, nodes, mbs, gbs;
} layouts[] = {{"korthikanti-22b", 1, 1, 1, 4, 4},
               {"korthikanti-175b", 8, 3, 8, 1, 64},
               {"korthikanti-530b", 35, 3, 35, 1, 280},
               {"korthikanti-1t", 64, 1, 64, 1, 512}};

static void
load (guint i, gboolean selective, Spec *s)
{
  char *sets[10];
  guint n = 0;
  sets[n++] = g_strdup_printf ("model=%s", layouts[i].model);
  sets[n++] = g_strdup_printf ("parallel.pp=%d", layouts[i].pp);
  sets[n++] = g_strdup_printf ("parallel.vpp=%d", layouts[i].vpp);
  sets[n++] = g_strdup_printf ("parallel.schedule=%s", layouts[i].vpp > 1 ? "interleaved" : "1f1b");
  sets[n++] = g_strdup_printf ("cluster.nodes=%d", layouts[i].nodes);
  sets[n++] = g_strdup_printf ("train.micro_batch_sequences=%d", layouts[i].mbs);
  sets[n++] = g_strdup_printf ("train.global_batch_sequences=%d", layouts[i].gbs);
  sets[n++] = g_strdup_printf ("train.recompute=%s", selective ? "selective" : "full");
  sets[n++] = g_strdup_printf ("parallel.sequence_parallel=%s", selective ? "true" : "false");
  sets[n] = NULL;
  g_autoptr (GError) error = NULL;
  if (!scenario_load ("gpt3-175b-a100", (const char *const *)sets, s, &error))
    g_error ("%s", error->message);
  for (guint k = 0; k < n; k++)
    g_free (sets[k]);
}

static guint64
predict_one (const Spec *s, PredictCache *cache)
{
  g_autoptr (GError) error = NULL;
  Prediction p;
  if (!predict (s, cache, NULL, &p, &error))
    g_error ("%s", error->message);
  guint64 operations = p.operations;
  prediction_clear (&p);
  return operations;
}

/* All eight, again and again for a second of CPU; predictions a second. */
static double
bench_all (Spec *specs, PredictCache *cache)
{
  guint n = 0;
  double began = cpu_s (), took = 0;
  while (took < 1.0) {
    for (guint i = 0; i < 8; i++)
      predict_one (&specs[i], cache);
    n += 8;
    took = cpu_s () - began;
  }
  return n / took;
}

static void
bench_each (Spec *specs, PredictCache *cache)
{
  for (guint i = 0; i < 8; i++) {
    guint64 operations = 0;
    double began = cpu_s ();
    for (guint k = 0; k < 20; k++)
      operations = predict_one (&specs[i], cache);
    printf ("predict %-17s %-26s %6.3f ms, %7" G_GUINT64_FORMAT " operations\n",
            specs[i].model.name, i % 2 == 0 ? "full recomputation" : "selective, sequence par.",
            (cpu_s () - began) / 20 * 1e3, operations);
  }
}

/* sweep with a scenario read anew for every point; all of it in the child's CPU time. */
static void
bench_sweep (guint points)
{
  const char *program = g_getenv ("CLUSTERSIM");
  g_autofree char *vary = g_strdup_printf ("run.seed=1..%u+1", points);
  char *argv[] = {(char *)program,
                  (char *)"sweep",
                  (char *)"gpt3-175b-a100",
                  (char *)"--vary",
                  vary,
                  (char *)"--progress",
                  (char *)"never",
                  NULL};
  struct rusage before, after;
  int status = 1;
  if (program == NULL)
    return;
  getrusage (RUSAGE_CHILDREN, &before);
  if (!g_spawn_sync (NULL, argv, NULL, G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL, NULL, &status,
                     NULL) ||
      status != 0)
    return;
  getrusage (RUSAGE_CHILDREN, &after);
  double took = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
                (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
                1e-6 * (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
  printf ("predict sweep of gpt3-175b-a100: %.0f points a CPU-second\n", points / took);
}

static void
bench_start_to_end (const char *scenario)
{
  const char *program = g_getenv ("CLUSTERSIM");
  char *argv[] = {(char *)program, (char *)"predict", (char *)scenario, NULL};
  gint64 best_us = G_MAXINT64;
  for (guint i = 0; program != NULL && i < 10; i++) {
    gint64 began = g_get_monotonic_time ();
    int status = 1;
    if (!g_spawn_sync (NULL, argv, NULL, G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL, NULL,
                       &status, NULL) ||
        status != 0)
      return;
    best_us = MIN (best_us, g_get_monotonic_time () - began);
  }
  if (program != NULL)
    printf ("predict %s from start to end: %.1f ms wall\n", scenario, (double)best_us * 1e-3);
}

/* A step whose collectives are run as flows over the cluster's network, or as steps. */
static void
bench_network (const char *scenario, const char *const *sets)
{
  g_autoptr (GError) error = NULL;
  Spec s;
  if (!scenario_load (scenario, sets, &s, &error))
    g_error ("%s", error->message);
  double began = cpu_s ();
  predict_one (&s, NULL);
  printf ("predict %s, %s, %" G_GINT64_FORMAT " GPUs: %.2f s of processor time\n", scenario,
          sets[0], s.cluster.gpus, cpu_s () - began);
  spec_clear (&s);
}

int
main (void)
{
  Spec specs[8];
  for (guint i = 0; i < 8; i++)
    load (i / 2, i % 2, &specs[i]);
  g_autoptr (PredictCache) cache = predict_cache_new ();
  bench_each (specs, cache);
  printf ("predict 8 layouts: %.0f predictions a CPU-second (tables kept)\n",
          bench_all (specs, cache));
  printf ("predict 8 layouts: %.0f predictions a CPU-second (tables made anew)\n",
          bench_all (specs, NULL));
  for (guint i = 0; i < 8; i++)
    spec_clear (&specs[i]);
  bench_sweep (1000);
  bench_start_to_end ("gpt3-175b-a100");
  bench_start_to_end ("llama-3.1-405b-16k");
  const char *const flow[] = {"run.fidelity=flow", "cluster.network.leaf_oversubscription=4", NULL};
  const char *const step[] = {"run.fidelity=step", "cluster.network.leaf_oversubscription=4", NULL};
  const char *const meta[] = {"cluster.network.topology=meta-24k-roce", NULL};
  bench_network ("spine-moe-1k", flow);
  bench_network ("spine-moe-1k", step);
  bench_network ("llama-3.1-405b-16k", meta);
  return EXIT_SUCCESS;
}
