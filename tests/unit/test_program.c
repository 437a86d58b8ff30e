/* Programs: what the builder lays down, and that the verifier refuses each kind of damage. */
#include "program.h"

#include <string.h>

static const char *const names[] = {"a", "b", NULL};

G_STATIC_ASSERT (sizeof (Op) == 16);
G_STATIC_ASSERT (sizeof (Wait) == 4);

/* Operations of several streams and programs in mixed order; waits stay with their operation. */
static void
test_builder (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (2, names);
  guint32 c5 = program_cost (b, PART_COMPUTE, 5);
  const SimTime parts[PART_COUNT] = {[PART_COMPUTE] = 3, [PART_TP_COMM] = 4};
  guint32 c7 = program_cost_parts (b, parts);
  for (guint p = 0; p < 3; p++) {
    program_begin (b);
    g_assert_cmpuint (program_count (b, 0), ==, 0);
    for (guint i = 0; i < 100; i++) {
      g_assert_cmpuint (program_op (b, 0, OP_COMPUTE, c5, OP_TAG (TAG_FORWARD, p, i)), ==, i + 1);
      for (guint k = 0; k < i % 4; k++)
        program_wait (b, 0, PEER_SELF, 1, k); /* count 0 is dropped */
      g_assert_cmpuint (program_op (b, 1, OP_SEND, c7, OP_TAG (TAG_SEND_ACT, p, i)), ==, i + 1);
      program_wait (b, 1, PEER_SELF, 0, i + 1);
    }
    g_assert_cmpuint (program_count (b, 1), ==, 100);
  }
  g_autoptr (ProgramSet) set = program_builder_finish (b, 5, 1, 1, 0);
  g_autoptr (GError) error = NULL;
  g_assert_true (program_verify (set, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (set->n_programs, ==, 3);
  g_assert_cmpuint (set->n_ops, ==, 600);
  g_assert_cmpuint (set->n_costs, ==, 2);
  g_assert_cmpint (set->costs[1].duration, ==, 7);
  for (guint p = 0; p < 3; p++)
    for (guint s = 0; s < 2; s++) {
      g_assert_cmpuint (program_ops_of (set, p, s), ==, 100);
      for (guint i = 0; i < 100; i++) {
        const Op *op = &set->ops[set->first_op[p * 2 + s] + i];
        g_assert_cmpuint (op->kind, ==, s == 0 ? OP_COMPUTE : OP_SEND);
        g_assert_cmpuint (OP_TAG_STAGE (op->tag), ==, p);
        g_assert_cmpuint (OP_TAG_MB (op->tag), ==, i);
        g_assert_cmpuint (op->n_waits, ==, s == 1 ? 1 : i % 4 == 0 ? 0 : i % 4 - 1);
        for (guint k = 0; k < op->n_waits; k++)
          g_assert_cmpuint (set->waits[op->wait0 + k].count, ==, s == 1 ? i + 1 : k + 1);
      }
    }
  /* Ranks beyond the programs run the last one. */
  for (guint r = 0; r < 5; r++) {
    g_assert_cmpuint (set->rank_program[r], ==, MIN (r, 2));
    g_assert_cmpuint (set->rank_weight[r], ==, 1);
    g_assert_cmpuint (set->groups[r], ==, GROUP_NONE);
  }
}

/* A builder can make a second set after it gave the first away. */
static void
test_builder_again (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (1, names);
  for (guint round = 1; round <= 3; round++) {
    guint32 cost = program_cost (b, PART_OTHER, round);
    g_assert_cmpuint (cost, ==, 0);
    program_begin (b);
    for (guint i = 0; i < round * 100; i++)
      program_op (b, 0, OP_MARK, cost, 0);
    g_autoptr (ProgramSet) set = program_builder_finish (b, 1, 0, 0, 0);
    g_assert_cmpuint (program_ops_of (set, 0, 0), ==, round * 100);
    g_assert_cmpint (set->costs[0].duration, ==, round);
  }
}

static void
test_empty (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (2, names);
  program_begin (b);
  program_begin (b);
  g_autoptr (ProgramSet) set = program_builder_finish (b, 2, 0, 0, 0);
  g_assert_cmpuint (set->n_programs, ==, 2);
  g_assert_cmpuint (program_ops_of (set, 1, 1), ==, 0);
  g_assert_true (program_verify (set, NULL));
}

static void
test_tags (void)
{
  guint32 tag = OP_TAG (TAG_KERNEL, 4095, 65535);
  g_assert_cmpuint (OP_TAG_WHAT (tag), ==, TAG_KERNEL);
  g_assert_cmpuint (OP_TAG_STAGE (tag), ==, 4095);
  g_assert_cmpuint (OP_TAG_MB (tag), ==, 65535);
}

/* Two ranks, two streams; one wait on a peer, one group of both. */
static ProgramSet *
sound (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (2, names);
  guint32 cost = program_cost (b, PART_COMPUTE, 10);
  program_begin (b);
  program_op (b, 0, OP_COMPUTE, cost, 0);
  program_op (b, 1, OP_SEND, cost, 0);
  program_wait (b, 1, 0, 0, 1);
  program_op (b, 1, OP_COLL, cost, 0);
  program_group (b, 1, 0);
  ProgramSet *set = program_builder_finish (b, 2, 1, 1, 1);
  set->peers[0] = 1;
  set->peers[1] = 0;
  set->groups[0] = set->groups[1] = 0;
  set->group_size[0] = 2;
  return set;
}

static void
refused (const ProgramSet *set, const char *what)
{
  g_autoptr (GError) error = NULL;
  g_assert_false (program_verify (set, &error));
  g_assert_error (error, PROGRAM_ERROR, PROGRAM_ERROR_INVALID);
  if (strstr (error->message, what) == NULL)
    g_error ("\"%s\" does not say \"%s\"", error->message, what);
}

#define DAMAGE(change, what)                                                                       \
  {                                                                                                \
    g_autoptr (ProgramSet) set = sound ();                                                         \
    g_assert_true (program_verify (set, NULL));                                                    \
    change;                                                                                        \
    refused (set, what);                                                                           \
  }

static void
test_verify (void)
{
  DAMAGE (set->waits[0].count = 2, "does not exist");
  DAMAGE (set->waits[0].count = 0, "does not exist");
  DAMAGE (set->waits[0].stream = 2, "does not exist");
  DAMAGE (set->waits[0].peer = 1, "waits for peer 1 of 1");
  DAMAGE (set->waits[0].peer = -2, "waits for peer -2");
  DAMAGE (set->peers[1] = 2, "of rank 2");
  DAMAGE (set->ops[2].group = 1, "no group slot 1");
  DAMAGE (set->groups[1] = 1, "no group 1");
  DAMAGE (set->groups[1] = GROUP_NONE, "group 0 has 1 members, not 2");
  DAMAGE (set->group_size[0] = 3, "group 0 has 2 members, not 3");
  DAMAGE (set->costs[0].part[PART_BUBBLE] = -1, "negative share");
  DAMAGE (set->costs[0].part[PART_BUBBLE] = 1, "shares add up to 11 of 10");
  DAMAGE (set->ops[0].cost = 1, "damaged");
  DAMAGE (set->ops[1].n_waits = 2, "damaged");
  DAMAGE (set->ops[1].wait0 = G_MAXUINT32, "damaged");
  DAMAGE (set->ops[0].group = 0, "slot 0 is used on streams 0 and 1");
  DAMAGE (set->rank_program[1] = 1, "runs program 1 of 1");
}

/* A rank that is in a group twice could come to one meeting twice. */
static void
test_verify_twice (void)
{
  g_autoptr (ProgramBuilder) b = program_builder_new (2, names);
  guint32 cost = program_cost (b, PART_COMPUTE, 10);
  program_begin (b);
  for (guint s = 0; s < 2; s++) {
    program_op (b, s, OP_COLL, cost, 0);
    program_group (b, s, s);
  }
  g_autoptr (ProgramSet) set = program_builder_finish (b, 1, 0, 2, 1);
  set->groups[0] = set->groups[1] = 0;
  set->group_size[0] = 2;
  refused (set, "rank 0: group 0 is in slots 0 and 1");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/program/builder", test_builder);
  g_test_add_func ("/program/builder-again", test_builder_again);
  g_test_add_func ("/program/empty", test_empty);
  g_test_add_func ("/program/tags", test_tags);
  g_test_add_func ("/program/verify", test_verify);
  g_test_add_func ("/program/verify-twice", test_verify_twice);
  return g_test_run ();
}
