/* Arena and pool: alignment, no overlap, nothing moves, reuse. */
#include <string.h>

#include "arena.h"

static void
test_alloc (void)
{
  /* Many sizes, some above the block: each piece keeps its fill, so none overlaps another. */
  g_autoptr (SimArena) a = sim_arena_new (256);
  guchar *p[300];
  for (guint i = 0; i < G_N_ELEMENTS (p); i++) {
    gsize size_bytes = i * 7 % 613;
    p[i] = sim_arena_alloc (a, size_bytes);
    g_assert_cmpuint ((guintptr)p[i] % SIM_ARENA_ALIGN, ==, 0);
    memset (p[i], (int)(i % 251), size_bytes);
  }
  for (guint i = 0; i < G_N_ELEMENTS (p); i++)
    for (gsize k = 0; k < i * 7 % 613; k++)
      g_assert_cmpuint (p[i][k], ==, i % 251);
}

static void
test_zero_size (void)
{
  g_autoptr (SimArena) a = sim_arena_new (0);
  gpointer p = sim_arena_alloc (a, 0), q = sim_arena_alloc (a, 0);
  g_assert_nonnull (p);
  g_assert_true (p != q);
  g_assert_nonnull (sim_arena_dup (a, NULL, 0));
}

static void
test_copies (void)
{
  g_autoptr (SimArena) a = sim_arena_new (64);
  char text[] = "rank 0";
  char *copy = sim_arena_strdup (a, text);
  text[5] = '1';
  g_assert_cmpstr (copy, ==, "rank 0");
  guint32 *n = sim_arena_array (a, guint32, 1000);
  for (int i = 0; i < 1000; i++)
    g_assert_cmpuint (n[i], ==, 0);
}

static void
test_large_keeps_head (void)
{
  /* 16 bytes, one piece larger than a block, 16 bytes: the last follows the first, since the large
   * one has a block of its own. */
  g_autoptr (SimArena) a = sim_arena_new (4096);
  char *first = sim_arena_alloc (a, 16);
  sim_arena_alloc (a, 100000);
  g_assert_true ((char *)sim_arena_alloc (a, 16) == first + 16);
}

static void
test_reset (void)
{
  g_autoptr (SimArena) a = sim_arena_new (64);
  sim_arena_reset (a); /* nothing yet */
  for (int i = 0; i < 1000; i++)
    sim_arena_alloc (a, 48);
  g_assert_cmpuint (sim_arena_used_bytes (a), ==, 48000);
  g_assert_cmpuint (sim_arena_reserved_bytes (a), >=, 48000);
  sim_arena_reset (a);
  g_assert_cmpuint (sim_arena_used_bytes (a), ==, 0);
  gsize kept_bytes = sim_arena_reserved_bytes (a);
  g_assert_cmpuint (kept_bytes, >, 0);
  for (gsize used = 0; used < kept_bytes; used += 16)
    memset (sim_arena_alloc (a, 16), 0xa5, 16);
  g_assert_cmpuint (sim_arena_reserved_bytes (a), ==, kept_bytes);
}

static void
test_pool (void)
{
  g_autoptr (SimPool) p = sim_pool_new (24, 8);
  guint64 *item[100];
  for (guint i = 0; i < 100; i++) {
    item[i] = sim_pool_get (p);
    g_assert_cmpuint (item[i][0] | item[i][1] | item[i][2], ==, 0);
    item[i][0] = item[i][1] = item[i][2] = i;
  }
  g_assert_cmpuint (sim_pool_n_used (p), ==, 100);
  for (guint i = 0; i < 100; i++)
    g_assert_cmpuint (item[i][2], ==, i);

  /* Last in, first out; what comes back is zeroed. */
  sim_pool_put (p, item[3]);
  sim_pool_put (p, item[7]);
  sim_pool_put (p, NULL);
  g_assert_cmpuint (sim_pool_n_used (p), ==, 98);
  guint64 *again = sim_pool_get (p);
  g_assert_true (again == item[7]);
  g_assert_cmpuint (again[0] | again[1] | again[2], ==, 0);
  g_assert_true (sim_pool_get (p) == (gpointer)item[3]);
  g_assert_cmpuint (item[4][1], ==, 4);
}

static void
test_pool_tiny_items (void)
{
  /* Items smaller than the link of the free list. */
  g_autoptr (SimPool) p = sim_pool_new (1, 0);
  char *a = sim_pool_get (p), *b = sim_pool_get (p);
  g_assert_true (a != b);
  sim_pool_put (p, a);
  sim_pool_put (p, b);
  g_assert_true (sim_pool_get (p) == b && sim_pool_get (p) == a);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/engine/arena/alloc", test_alloc);
  g_test_add_func ("/engine/arena/zero_size", test_zero_size);
  g_test_add_func ("/engine/arena/copies", test_copies);
  g_test_add_func ("/engine/arena/large_keeps_head", test_large_keeps_head);
  g_test_add_func ("/engine/arena/reset", test_reset);
  g_test_add_func ("/engine/arena/pool", test_pool);
  g_test_add_func ("/engine/arena/pool_tiny_items", test_pool_tiny_items);
  return g_test_run ();
}
