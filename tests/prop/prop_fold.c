/* Folded equals unfolded, to the tick: 500 random small jobs (4 to 96 GPUs; all schedules, every
 * parallel dimension, all kinds of sharding, rank orders, tied embeddings, experts), healthy and
 * with slow GPUs and pauses, by both executors. The seed is printed; --seed replays it. */
#include <string.h>

#include "compile.h"
#include "exec.h"
#include "fold.h"
#include "rng.h"
#include "scenario.h"
#include "unfold.h"

#define CASES 500

static SimRng rng;
static guint kinds[16], laid_out;

static gint64
pick (const gint64 *of, guint n)
{
  return of[sim_rng_below (&rng, n)];
}

static gboolean
chance (double p)
{
  return sim_rng_uniform (&rng) < p;
}

/* ---- a random job ---- */

static void
random_model (Spec *s)
{
  ModelSpec *m = &s->model;
  m->num_layers = (gint64)sim_rng_below (&rng, 12) + 1;
  m->hidden = 1024;
  m->heads = 16;
  m->kv_heads = pick ((const gint64[]){16, 8, 4}, 3);
  m->head_dim = 64;
  m->ffn_hidden = 4096;
  m->vocab = 32000;
  m->tied_embeddings = chance (0.5);
  m->num_experts = 0;
  if (chance (0.25)) {
    m->num_experts = 8;
    m->experts_per_token = 2;
    m->moe_ffn_hidden = 1024;
    m->moe_every = 1;
  }
}

static void
random_schedule (ParallelSpec *p)
{
  static const struct {
    const char *name;
    gint64 vpp;
  } known[] = {{"gpipe", 1},    {"1f1b", 1},     {"interleaved", 2}, {"interleaved", 3},
               {"bfs", 2},      {"zb-h1", 1},    {"zb-h2", 1},       {"zb-v", 2},
               {"dualpipe", 1}, {"dualpipev", 2}};
  guint i = (guint)sim_rng_below (&rng, G_N_ELEMENTS (known));
  p->pp = pick ((const gint64[]){1, 2, 2, 4, 4}, 5);
  if (p->pp == 1)
    i = (guint)sim_rng_below (&rng, 2);
  kinds[i]++;
  g_free (p->schedule);
  p->schedule = g_strdup (known[i].name);
  p->vpp = known[i].vpp;
}

static void
random_layout (Spec *s)
{
  static const char *const orders[] = {NULL, NULL, "tp-cp-pp-dp", "pp-tp-cp-dp", "dp-tp-cp-pp"};
  ParallelSpec *p = &s->parallel;
  random_schedule (p);
  p->tp = pick ((const gint64[]){1, 1, 2, 4}, 4);
  p->cp = pick ((const gint64[]){1, 1, 2}, 3);
  gint64 dp = pick ((const gint64[]){1, 2, 3, 4, 6}, 5);
  p->dp = 0;
  s->cluster.gpus = p->tp * p->cp * p->pp * dp;
  s->cluster.gpus_per_node = pick ((const gint64[]){2, 4, 8}, 3);
  s->cluster.nodes = (s->cluster.gpus + s->cluster.gpus_per_node - 1) / s->cluster.gpus_per_node;
  p->ep = s->model.num_experts > 0 ? pick ((const gint64[]){1, 2, 4}, 3) : 1;
  p->etp = 0;
  p->zero_stage = (gint64)sim_rng_below (&rng, 4);
  p->fsdp = p->zero_stage >= 2 && chance (0.5);
  p->shard_size = p->hpz_size = 0;
  p->reshard = (int)sim_rng_below (&rng, 3) - 1;
  if ((p->fsdp || p->zero_stage == 3) && chance (0.4))
    p->shard_size = pick ((const gint64[]){1, 2, 4}, 3);
  if ((p->fsdp || p->zero_stage == 3) && chance (0.3))
    p->hpz_size = pick ((const gint64[]){1, 2}, 2);
  p->sequence_parallel = p->tp > 1 && chance (0.5);
  g_free (p->order);
  p->order = g_strdup (orders[sim_rng_below (&rng, G_N_ELEMENTS (orders))]);
  s->train.sequence_tokens = 512;
  s->train.micro_batch_sequences = 1;
  s->train.global_batch_sequences = dp * pick ((const gint64[]){4, 8, 12, 16}, 4);
}

/* What memory or traffic is traded for. */
static void
random_trades (Spec *s)
{
  ParallelSpec *p = &s->parallel;
  TrainSpec *t = &s->train;
  t->recompute = (Recompute)sim_rng_below (&rng, 3);
  t->recompute_every = t->recompute == RECOMPUTE_FULL ? (gint64)sim_rng_below (&rng, 4) : 0;
  t->adapter_rank = chance (0.2) ? 16 : 0;
  t->adapter_targets = ADAPT_QKV | ADAPT_FC2;
  p->cp_comm = chance (0.5) ? CP_GATHER : CP_RING;
  p->compression = COMPRESS_NONE;
  p->compression_rank = 4;
  if (p->zero_stage == 0 && chance (0.5))
    p->compression = chance (0.5) ? COMPRESS_ONEBIT : COMPRESS_POWERSGD;
  s->offload = (OffloadSpec){.host = {10e9, 2e9, 8e9, 4e9, 1e13}};
  if (chance (0.25))
    s->offload.optimizer = chance (0.5) ? OFFLOAD_CPU : OFFLOAD_NVME;
  s->offload.delayed = chance (0.5);
  s->offload.activations = chance (0.2) ? 0.5 : 0;
}

/* Uneven stages by a layout string, with the prediction module anywhere but on the first. */
static void
random_stages (Spec *s)
{
  ParallelSpec *p = &s->parallel;
  gint64 stages = p->pp * p->vpp, layers = s->model.num_layers;
  s->model.mtp_layers = chance (0.2) ? 1 : 0;
  g_clear_pointer (&p->layout, g_free);
  if (stages < 2 || chance (0.6))
    return;
  gint64 module = 1 + (gint64)sim_rng_below (&rng, (guint64)stages - 1);
  g_autoptr (GString) text = g_string_new ("E");
  for (gint64 i = 0; i < stages; i++) {
    gint64 n = i + 1 == stages ? layers : (gint64)sim_rng_below (&rng, (guint64)layers + 1);
    layers -= n;
    if (i > 0)
      g_string_append_c (text, '|');
    if (n > 0)
      g_string_append_printf (text, "t*%d", (int)n);
    if (s->model.mtp_layers > 0 && i == module)
      g_string_append_c (text, 'm');
  }
  g_string_append_c (text, 'L');
  p->layout = g_string_free (g_steal_pointer (&text), FALSE);
  laid_out++;
}

static void
random_software (Spec *s)
{
  SoftwareProfile *w = &s->software;
  w->pp_overlap = chance (0.5);
  w->dp_overlap_grad = chance (0.6);
  w->dp_overlap_param = chance (0.5);
  w->dp_reduce_every = chance (0.5);
  w->dp_bucket_bytes = (double)pick ((const gint64[]){0, 4000000, 40000000}, 3);
  w->fsdp_prefetch = (double)sim_rng_below (&rng, 3);
  w->fsdp_root_held = chance (0.5);
  w->fsdp_barrier = chance (0.5);
  w->fsdp_replicas_last = chance (0.3);
  w->post_validation = chance (0.3);
  w->host_kernel_us = chance (0.3) ? 200 : 4;
  w->p2p_sync = chance (0.2);
  w->data_step_us = chance (0.3) ? 1000 : 0;
}

/* ---- what is held against what ---- */

typedef struct {
  double *scale;
  guint32 *colour;
  GArray *delays; /* ExecDelay */
} Trouble;

static guint
n_ops (const ProgramSet *set, guint32 rank)
{
  return program_ops_of (set, set->rank_program[rank], STREAM_COMPUTE);
}

static void
random_trouble (const ProgramSet *set, Trouble *t)
{
  t->scale = g_new (double, set->n_ranks);
  t->colour = g_new0 (guint32, set->n_ranks);
  t->delays = g_array_new (FALSE, FALSE, sizeof (ExecDelay));
  for (guint i = 0; i < set->n_ranks; i++)
    t->scale[i] = 1.0;
  guint slow = (guint)sim_rng_below (&rng, 3);
  for (guint i = 0; i < slow; i++) {
    guint r = (guint)sim_rng_below (&rng, set->n_ranks);
    t->scale[r] = 1.25;
    t->colour[r] = 1;
  }
  if (chance (0.5)) {
    guint r = (guint)sim_rng_below (&rng, set->n_ranks);
    ExecDelay d = {r, (guint32)sim_rng_below (&rng, n_ops (set, r)), 1000000000};
    g_array_append_val (t->delays, d);
    t->colour[r] += 2;
  }
}

static void
trouble_clear (Trouble *t)
{
  g_free (t->scale);
  g_free (t->colour);
  g_array_unref (t->delays);
}

static void
same_ends (const ProgramSet *all, const ExecResult *a, const ProgramSet *few, const ExecResult *b,
           const guint32 *class_of)
{
  g_assert_cmpint (a->end, ==, b->end);
  for (guint r = 0; r < all->n_ranks; r++) {
    guint c = class_of[r];
    g_assert_cmpint (a->rank_end[r], ==, b->rank_end[c]);
    for (guint st = 0; a->ends != NULL && b->ends != NULL && st < all->n_streams; st++)
      for (guint i = 0; i < program_ops_of (all, all->rank_program[r], st); i++)
        if (exec_op_end (all, a, r, st, i) != exec_op_end (few, b, c, st, i)) {
          g_test_message ("rank %u, class %u, stream %u, operation %u", r, c, st, i);
          g_test_fail ();
          return;
        }
  }
}

/* The pass without events draws the same chances and ends every rank at the same tick; of ranks
 * that are recorded, every operation. */
static void
check_lean (const ProgramSet *all, const ExecOptions *trouble)
{
  g_autoptr (GError) error = NULL;
  ExecResult events, lean;
  ExecOptions o = *trouble;
  g_autofree guint8 *mask = g_new0 (guint8, all->n_ranks);
  o.jitter = chance (0.7) ? 0.03 : 0;
  o.record = chance (0.5);
  o.record_ranks = mask;
  for (guint r = 0; r < all->n_ranks; r++)
    mask[r] = chance (0.3) ? 1 : 0;
  SimOptions so = {.ticks_per_s = SIM_TICKS_PS, .horizon = SIM_TIME_MAX, .seed = 7, .run = 3};
  g_autoptr (SimEngine) engine = sim_engine_new (&so);
  g_assert_true (exec_run_events (all, engine, &o, &events, &error));
  g_assert_true (exec_run_lean (all, &o, 7, 3, &lean, &error));
  g_assert_cmpint (lean.end, ==, events.end);
  g_assert_cmpuint (lean.last_rank, ==, events.last_rank);
  g_assert_cmpuint (lean.operations, ==, events.operations);
  for (guint r = 0; r < all->n_ranks; r++) {
    g_assert_cmpint (lean.rank_end[r], ==, events.rank_end[r]);
    for (guint st = 0; o.record && mask[r] && st < all->n_streams; st++)
      for (guint i = 0; i < program_ops_of (all, all->rank_program[r], st); i++)
        if (exec_op_end (all, &lean, r, st, i) != exec_op_end (all, &events, r, st, i))
          g_test_fail ();
  }
  exec_result_clear (&events);
  exec_result_clear (&lean);
}

static void
check_trouble (const ProgramSet *all)
{
  g_autoptr (GError) error = NULL;
  Trouble t;
  Fold f;
  ExecResult whole, folded, events;
  random_trouble (all, &t);
  fold_init (&f, all, t.colour);
  g_assert_true (program_verify (f.set, &error));
  g_assert_no_error (error);
  ExecOptions o = {.rank_scale = t.scale,
                   .delays = (const ExecDelay *)(void *)t.delays->data,
                   .n_delays = t.delays->len};
  g_assert_true (exec_run_fast_with (all, &o, &whole, &error));
  SimOptions so = {.ticks_per_s = SIM_TICKS_PS, .horizon = SIM_TIME_MAX, .seed = 1};
  g_autoptr (SimEngine) engine = sim_engine_new (&so);
  g_assert_true (exec_run_events (all, engine, &o, &events, &error));
  g_assert_cmpint (events.end, ==, whole.end);
  check_lean (all, &o);
  g_autofree double *scale = g_new (double, f.n_classes);
  for (guint c = 0; c < f.n_classes; c++)
    scale[c] = t.scale[f.representative[c]];
  if (t.delays->len > 0)
    g_array_index (t.delays, ExecDelay, 0).rank =
        f.class_of[g_array_index (t.delays, ExecDelay, 0).rank];
  o.rank_scale = scale;
  g_assert_true (exec_run_fast_with (f.set, &o, &folded, &error));
  same_ends (all, &whole, f.set, &folded, f.class_of);
  exec_result_clear (&whole);
  exec_result_clear (&folded);
  exec_result_clear (&events);
  fold_clear (&f);
  trouble_clear (&t);
}

/* One legal job; FALSE when the draw is none. */
static gboolean
one (Spec *s)
{
  g_autoptr (GError) error = NULL;
  StageLayers sl = {0};
  ExecResult base, whole;
  random_model (s);
  random_layout (s);
  random_trades (s);
  random_stages (s);
  random_software (s);
  if (!spec_check (s, NULL, NULL))
    return FALSE;
  g_autoptr (SchedTable) t =
      sched_generate (s->parallel.schedule, (guint)s->parallel.pp, (guint)s->parallel.vpp,
                      (guint)spec_microbatches (s), NULL);
  if (t == NULL || !stage_layers_init (&sl, s, NULL))
    return FALSE;
  g_autoptr (ProgramSet) set = compile_step (s, t, &sl, NULL, &error);
  g_assert_no_error (error);
  g_assert_true (exec_run_fast (set, &base, &error));
  g_autofree guint32 *stage_of = g_new (guint32, s->cluster.gpus);
  ProgramSet *again = compile_step (s, t, &sl, NULL, &error);
  g_autoptr (ProgramSet) all = unfold_programs (again, s, NULL);
  g_assert_true (program_verify (all, &error));
  g_assert_no_error (error);
  for (guint r = 0; r < all->n_ranks; r++)
    stage_of[r] = all->rank_program[r];
  g_assert_true (exec_run_fast (all, &whole, &error));
  g_assert_no_error (error);
  same_ends (all, &whole, set, &base, stage_of);
  exec_result_clear (&base);
  exec_result_clear (&whole);
  /* a healthy job folds back to its stages */
  Fold f;
  fold_init (&f, all, NULL);
  g_assert_cmpuint (f.n_classes, ==, set->n_ranks);
  for (guint c = 0; c < f.n_classes; c++)
    g_assert_cmpint (f.set->rank_weight[c], ==, s->cluster.gpus / s->parallel.pp);
  fold_clear (&f);
  check_trouble (all);
  stage_layers_clear (&sl);
  return TRUE;
}

static void
test_fold (void)
{
  g_autoptr (GError) error = NULL;
  guint64 seed = (guint64)g_test_rand_int ();
  g_test_message ("seed %" G_GUINT64_FORMAT, seed);
  rng = sim_rng_stream (seed, 0, "fold", 0);
  Spec s;
  g_assert_true (scenario_load ("gpt3-175b-h100", NULL, &s, &error));
  g_assert_no_error (error);
  guint done = 0, tried = 0;
  while (done < CASES && tried < 100 * CASES && !g_test_failed ()) {
    tried++;
    if (one (&s))
      done++;
    if (g_test_failed ())
      g_test_message (
          "case %u: tp %d cp %d pp %d vpp %d dp %d ep %d %s zero %d fsdp %d shard %d hpz %d "
          "reshard %d layers %d order %s",
          done, (int)s.parallel.tp, (int)s.parallel.cp, (int)s.parallel.pp, (int)s.parallel.vpp,
          (int)s.parallel.dp, (int)s.parallel.ep, s.parallel.schedule, (int)s.parallel.zero_stage,
          s.parallel.fsdp, (int)s.parallel.shard_size, (int)s.parallel.hpz_size, s.parallel.reshard,
          (int)s.model.num_layers, s.parallel.order);
  }
  g_test_message ("%u jobs of %u draws", done, tried);
  g_test_message ("with layout strings: %u draws", laid_out);
  g_assert_cmpuint (done, ==, CASES);
  spec_clear (&s);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/fold/equals-unfolded", test_fold);
  return g_test_run ();
}
