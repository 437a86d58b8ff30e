/* Speed of the executors. 1F1B of 16 stages and 128 micro-batches, 3 streams a rank and a reduction
 * over all ranks of a stage at the end: one pipeline, then 8,192 of them side by side, unfolded:
 * 131,072 ranks that share 16 programs and find their peers by a table. Best of several; operations
 * a second of CPU time.
 */
#include "../core_util.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

enum { STAGES = 16, MICROBATCHES = 128 };

static double
cpu_s (void)
{
  struct timespec t;
  clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double
peak_MB (void)
{
  struct rusage u;
  getrusage (RUSAGE_SELF, &u);
  return (double)u.ru_maxrss / 1e3;
}

/* One program a stage; replicas x STAGES ranks; the last operation of each meets those of its
 * stage. */
static ProgramSet *
pipelines (guint replicas)
{
  g_autoptr (SchedTable) t = ut_table ("1f1b", STAGES, 1, MICROBATCHES);
  g_autofree guint32 *acts = g_new0 (guint32, STAGES * MICROBATCHES),
                     *grads = g_new0 (guint32, STAGES * MICROBATCHES);
  gint64 cost[STAGES][4];
  for (guint s = 0; s < STAGES; s++)
    for (guint k = 0; k < 4; k++)
      cost[s][k] = k == SCHED_F ? 1000000 + 100 * s : 2000000 + 200 * s;
  UtLower l = {t, (const gint64 (*)[4])cost, {acts, grads}};
  g_autoptr (ProgramBuilder) b = program_builder_new (UT_STREAMS, ut_stream_names);
  guint32 send = program_cost (b, PART_PP_COMM, 20000),
          reduce = program_cost (b, PART_DP_COMM, 5000000);
  ut_count_sends (&l);
  for (guint r = 0; r < STAGES; r++) {
    program_begin (b);
    for (guint32 i = t->first[r]; i < t->first[r + 1]; i++)
      ut_action (&l, b, r, &t->actions[i], send);
    program_op (b, UT_COMPUTE, OP_COLL, reduce, OP_TAG (TAG_GRAD_REDUCE, r, 0));
    program_group (b, UT_COMPUTE, 0);
  }
  ProgramSet *set = program_builder_finish (b, STAGES * replicas, 2, 1, STAGES);
  for (guint i = 0; i < set->n_ranks; i++) {
    guint r = i % STAGES, first = i - r;
    set->rank_program[i] = r;
    set->peers[2 * i] = first + (r + 1) % STAGES;
    set->peers[2 * i + 1] = first + (r + STAGES - 1) % STAGES;
    set->groups[i] = r;
    set->group_size[r] = replicas;
  }
  return set;
}

typedef struct {
  double best_s, operations;
  SimTime end;
} Run;

static Run
run (const ProgramSet *set, gboolean fast, const ExecOptions *o, guint rounds)
{
  Run best = {1e9, 0, 0};
  for (guint i = 0; i < rounds; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (SimEngine) engine = ut_engine (1, FALSE);
    ExecResult res;
    double began = cpu_s ();
    gboolean ok =
        fast ? exec_run_fast (set, &res, &error) : exec_run_events (set, engine, o, &res, &error);
    double took = cpu_s () - began;
    if (!ok)
      g_error ("%s", error->message);
    best = (Run){MIN (took, best.best_s), (double)res.operations, res.end};
    exec_result_clear (&res);
  }
  return best;
}

static void
print (const char *name, const Run *r)
{
  printf ("exec %-28s %9.0f operations, %8.3f ms, %5.1f M operations/s\n", name, r->operations,
          r->best_s * 1e3, r->operations / r->best_s * 1e-6);
}

int
main (void)
{
  const ExecOptions record = {.record = TRUE}, jitter = {.jitter = 0.02};
  g_autoptr (ProgramSet) one = pipelines (1);
  Run fast = run (one, TRUE, NULL, 300), events = run (one, FALSE, NULL, 300),
      recorded = run (one, FALSE, &record, 300);
  print ("16 ranks, fast", &fast);
  print ("16 ranks, events", &events);
  print ("16 ranks, events, recorded", &recorded);
  if (fast.end != events.end)
    g_error ("the executors differ");
  g_autoptr (ProgramSet) some = pipelines (64);
  fast = run (some, TRUE, NULL, 5);
  events = run (some, FALSE, NULL, 5);
  print ("1,024 ranks, fast", &fast);
  print ("1,024 ranks, events", &events);
  g_autoptr (ProgramSet) all = pipelines (131072 / STAGES);
  double before_MB = peak_MB ();
  gint64 began = g_get_monotonic_time ();
  events = run (all, FALSE, NULL, 1);
  double wall_s = (double)(g_get_monotonic_time () - began) * 1e-6;
  print ("131,072 ranks, events", &events);
  printf ("exec 131,072 ranks unfolded, one step: %.1f s wall, peak RSS %.0f MB (%.0f MB before)\n",
          wall_s, peak_MB (), before_MB);
  if (g_getenv ("CLUSTERSIM_TEST_FULL") != NULL) {
    events = run (all, FALSE, &jitter, 1);
    print ("131,072 ranks, with jitter", &events);
  }
  return 0;
}
