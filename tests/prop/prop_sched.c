/* Properties of schedules over random shapes: every generated table verifies and survives printing
 * and parsing; the dry run agrees with a naive one; broken tables are refused; mangled text never
 * crashes. Replay with --seed (the seed is printed). */
#include "sched.h"

#include <string.h>

static guint
rnd (guint low, guint high)
{
  return (guint)g_test_rand_int_range ((gint32)low, (gint32)high + 1);
}

/* A legal table of a random schedule and shape. */
static SchedTable *
random_table (const char **name)
{
  guint pp = rnd (1, 7), vpp = 1, m = rnd (1, 20);

  *name = sched_names[rnd (0, 8)];
  if (strcmp (*name, "interleaved") == 0) {
    vpp = rnd (1, 4);
    m = vpp > 1 ? pp * rnd (1, 4) : m;
  } else if (strcmp (*name, "bfs") == 0) {
    vpp = rnd (1, 4);
  } else if (strcmp (*name, "zb-v") == 0) {
    vpp = 2;
  } else if (strcmp (*name, "dualpipe") == 0) {
    pp = 2 * rnd (1, 4);
    m = 2 * (pp + rnd (0, 8));
  } else if (strcmp (*name, "dualpipev") == 0) {
    vpp = 2;
    m += 2 * pp;
  }

  GError *error = NULL;
  SchedTable *t = sched_generate (*name, pp, vpp, m, &error);
  g_assert_no_error (error);
  return t;
}

static gboolean
same_tables (const SchedTable *a, const SchedTable *b)
{
  return a->ranks == b->ranks && a->stages == b->stages && a->microbatches == b->microbatches &&
         a->pipelines == b->pipelines &&
         memcmp (a->first, b->first, (a->ranks + 1) * sizeof a->first[0]) == 0 &&
         memcmp (a->stage_rank, b->stage_rank, a->stages * sizeof a->stage_rank[0]) == 0 &&
         memcmp (a->actions, b->actions, a->first[a->ranks] * sizeof a->actions[0]) == 0;
}

/* Each action's end by sweeping all ranks until nothing moves: O(actions * ranks), no worklist.
 * Ends are indexed [kind is F ? 0 : 1][stage][micro-batch] over the whole rectangle. Returns the
 * makespan, or -1 when it stalls. */
static gint64
naive_run (const SchedTable *t, const SchedCosts *c)
{
  gsize plane = (gsize)t->stages * t->microbatches;
  g_autofree gint64 *end = g_new (gint64, 2 * plane);
  g_autofree gint64 *now = g_new0 (gint64, t->ranks);
  g_autofree guint32 *at = g_new (guint32, t->ranks);
  guint depth = t->stages / t->pipelines;
  gint64 makespan = 0;
  gboolean moved = TRUE, left = FALSE;

  for (gsize i = 0; i < 2 * plane; i++)
    end[i] = -1;
  for (guint r = 0; r < t->ranks; r++)
    at[r] = t->first[r];
  while (moved) {
    moved = left = FALSE;
    for (guint r = 0; r < t->ranks; r++) {
      gint64 start = now[r], sum = 0, longest = 0;
      guint n = at[r] == t->first[r + 1] ? 0 : t->actions[at[r]].pair ? 2 : 1;

      left = left || n > 0;
      for (guint j = 0; j < n && start >= 0; j++) {
        const SchedAction *a = &t->actions[at[r] + j];
        int step = a->kind == SCHED_F ? -1 : 1;
        gboolean local = a->kind == SCHED_W || (a->stage % depth == 0 && step < 0) ||
                         (a->stage % depth == depth - 1 && step > 0);
        gint64 cost = c->stage ? c->stage[a->stage][a->kind] : c->kind[a->kind];

        sum += cost;
        longest = MAX (longest, cost);
        if (local)
          continue;
        guint from = (guint)(a->stage + step);
        gint64 e = end[(step > 0 ? plane : 0) + (gsize)from * t->microbatches + a->microbatch];
        start = e < 0 ? -1 : MAX (start, e + (t->stage_rank[from] == r ? 0 : c->p2p));
      }
      if (n == 0 || start < 0)
        continue;
      now[r] = start + (n == 2 ? MAX (sum - c->pair_saved, longest) : sum);
      makespan = MAX (makespan, now[r]);
      for (guint j = 0; j < n; j++) {
        const SchedAction *a = &t->actions[at[r] + j];
        if (a->kind != SCHED_W)
          end[(a->kind == SCHED_F ? 0 : plane) + (gsize)a->stage * t->microbatches +
              a->microbatch] = now[r];
      }
      at[r] += n;
      moved = TRUE;
    }
  }
  return left ? -1 : makespan;
}

static void
prop_generated (void)
{
  for (int round = 0; round < 1000; round++) {
    const char *name;
    g_autoptr (SchedTable) t = random_table (&name);
    GError *error = NULL;

    g_assert_true (sched_verify (t, &error));
    g_assert_no_error (error);

    g_autofree char *text = sched_print (t);
    g_autoptr (SchedTable) back = sched_parse (text, -1, &error);
    g_assert_no_error (error);
    g_assert_true (same_tables (t, back));

    g_autofree gint64 *stage = g_new (gint64, t->stages * 4);
    for (guint i = 0; i < t->stages * 4; i++)
      stage[i] = rnd (0, 50);
    SchedCosts costs = {
        {rnd (0, 9), rnd (0, 9), rnd (0, 9), rnd (0, 9)}, NULL, rnd (0, 9), rnd (0, 20)};
    if (rnd (0, 1))
      costs.stage = (const gint64 (*)[4]) (void *)stage;
    g_autofree gint64 *busy = g_new (gint64, t->ranks);
    SchedRun run = {0, busy, NULL, NULL};
    g_assert_true (sched_dry_run (t, &costs, &run, &error));
    g_assert_no_error (error);
    g_assert_cmpint (run.makespan, ==, naive_run (t, &costs));
    for (guint r = 0; r < t->ranks; r++)
      g_assert_cmpint (busy[r], <=, run.makespan);

    g_autofree guint32 *peak = g_new (guint32, t->stages);
    for (guint r = 0; r < t->ranks; r++) {
      sched_peak_in_flight (t, r, peak);
      for (guint s = 0; s < t->stages; s++)
        if (t->stage_rank[s] == r)
          g_assert_true (peak[s] >= 1 && peak[s] <= t->microbatches / t->pipelines);
        else
          g_assert_cmpuint (peak[s], ==, 0);
    }
  }
}

static SchedTable *
copy_with_room (const SchedTable *t)
{
  SchedTable *c = g_new (SchedTable, 1);
  guint32 n = t->first[t->ranks];

  *c = *t;
  c->first = g_memdup2 (t->first, (t->ranks + 1) * sizeof t->first[0]);
  c->stage_rank = g_memdup2 (t->stage_rank, t->stages * sizeof t->stage_rank[0]);
  c->actions = g_new0 (SchedAction, n + 1);
  memcpy (c->actions, t->actions, n * sizeof c->actions[0]);
  return c;
}

static guint
row_of (const SchedTable *t, guint32 i)
{
  guint r = 0;

  while (i >= t->first[r + 1])
    r++;
  return r;
}

static void
drop (SchedTable *t, guint32 i)
{
  guint32 n = t->first[t->ranks];

  memmove (&t->actions[i], &t->actions[i + 1], (n - i - 1) * sizeof t->actions[0]);
  for (guint r = row_of (t, i) + 1; r <= t->ranks; r++)
    t->first[r]--;
}

static void
duplicate (SchedTable *t, guint32 i)
{
  guint32 n = t->first[t->ranks];
  guint row = row_of (t, i);

  memmove (&t->actions[i + 1], &t->actions[i], (n - i) * sizeof t->actions[0]);
  for (guint r = row + 1; r <= t->ranks; r++)
    t->first[r]++;
}

/* Exchanges an F and its B or I, in place. */
static void
swap_with_backward (SchedTable *t, guint32 i)
{
  guint last = t->first[row_of (t, i) + 1];

  while (t->actions[i].kind != SCHED_F)
    i--; /* every row begins with an F */
  for (guint32 j = i + 1; j < last; j++) {
    SchedAction *a = &t->actions[i], *b = &t->actions[j];

    if (b->stage == a->stage && b->microbatch == a->microbatch && b->kind != SCHED_W) {
      guint8 kind = a->kind;
      a->kind = b->kind;
      b->kind = kind;
      return;
    }
  }
  g_assert_not_reached ();
}

static void
expect_refused (const SchedTable *t, const char *name, const char *what)
{
  g_autoptr (GError) error = NULL;

  if (sched_verify (t, &error)) {
    g_autofree char *text = sched_print (t);
    g_test_fail_printf ("%s after %s passes:\n%s", name, what, text);
    return;
  }
  g_assert_error (error, SCHED_ERROR, SCHED_ERROR_ILLEGAL);
  g_assert_null (strchr (error->message, '\n'));
}

static void
prop_mutations (void)
{
  for (int round = 0; round < 1000; round++) {
    const char *name;
    g_autoptr (SchedTable) t = random_table (&name);
    guint32 n = t->first[t->ranks];
    guint32 i = rnd (0, n - 1), j = rnd (0, n - 1);
    g_autoptr (SchedTable) dropped = copy_with_room (t);
    g_autoptr (SchedTable) twice = copy_with_room (t);
    g_autoptr (SchedTable) swapped = copy_with_room (t);
    g_autoptr (SchedTable) moved = copy_with_room (t);
    g_autoptr (SchedTable) outside = copy_with_room (t);

    drop (dropped, i);
    expect_refused (dropped, name, "a drop");
    duplicate (twice, i);
    expect_refused (twice, name, "a duplicate");
    swap_with_backward (swapped, i);
    expect_refused (swapped, name, "an exchange of F and B");
    outside->actions[i].microbatch += t->microbatches;
    expect_refused (outside, name, "a micro-batch too far");

    /* Any two actions exchanged: refused, or a table that runs; never a hang or a wrong "yes". */
    SchedAction keep = moved->actions[i];
    moved->actions[i] = moved->actions[j];
    moved->actions[j] = keep;
    g_autoptr (GError) error = NULL;
    SchedCosts unit = {{1, 2, 1, 1}, NULL, 1, 0};
    if (sched_verify (moved, &error))
      g_assert_cmpint (naive_run (moved, &unit), >, 0);
    else
      g_assert_nonnull (error);
    if (row_of (t, i) != row_of (t, j))
      g_assert_nonnull (error);
  }
}

/* A deadlock is found exactly when the naive run stalls: rows shuffled but in local order. */
static void
prop_deadlocks (void)
{
  guint stalls = 0, runs = 0;

  for (int round = 0; round < 1000; round++) {
    g_autoptr (SchedTable) t = sched_generate ("1f1b", rnd (2, 4), 1, rnd (2, 5), NULL);
    SchedCosts unit = {{1, 2, 1, 1}, NULL, 0, 0};
    g_autoptr (GError) error = NULL;

    for (guint swap = rnd (1, 6); swap-- > 0;) {
      guint32 i = rnd (0, t->first[t->ranks] - 2);
      SchedAction *a = &t->actions[i];

      if (row_of (t, i) != row_of (t, i + 1) || a[0].microbatch == a[1].microbatch)
        continue; /* F before its own B stays */
      SchedAction keep = a[0];
      a[0] = a[1];
      a[1] = keep;
    }
    gboolean ok = sched_verify (t, &error);
    gint64 naive = naive_run (t, &unit);
    g_assert_cmpint (ok, ==, naive >= 0);
    if (!ok) {
      g_assert_nonnull (strstr (error->message, "deadlock"));
      stalls++;
    }
    runs += (guint)ok;
  }
  g_assert_cmpuint (stalls, >, 0);
  g_assert_cmpuint (runs, >, 0);
}

static void
prop_mangled_text (void)
{
  static const char alphabet[] = "0123456789FBIW();:,# \n\tOVERLAP_rankpipelines-\x80";

  for (int round = 0; round < 3000; round++) {
    const char *name;
    g_autoptr (SchedTable) t = random_table (&name);
    g_autofree char *text = sched_print (t);
    gsize len = strlen (text);
    g_autoptr (GError) error = NULL;

    for (guint hits = rnd (1, 4); hits-- > 0;)
      text[rnd (0, (guint)len - 1)] = alphabet[rnd (0, sizeof alphabet - 1)];
    if (rnd (0, 4) == 0)
      len = rnd (0, (guint)len);
    g_autoptr (SchedTable) got = sched_parse (text, (gssize)len, &error);
    if (!got) {
      g_assert_error (error, SCHED_ERROR, SCHED_ERROR_SYNTAX);
      continue;
    }
    g_assert_no_error (error);
    g_autofree char *again = sched_print (got);
    g_autoptr (SchedTable) back = sched_parse (again, -1, &error);
    g_assert_no_error (error);
    g_assert_true (same_tables (got, back));
    g_assert_true (sched_verify (got, &error) == (error == NULL));
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/sched/prop/generated", prop_generated);
  g_test_add_func ("/sched/prop/mutations", prop_mutations);
  g_test_add_func ("/sched/prop/deadlocks", prop_deadlocks);
  g_test_add_func ("/sched/prop/mangled-text", prop_mangled_text);
  return g_test_run ();
}
