#include "arena.h"

#include <string.h>

#define DEFAULT_BLOCK_BYTES     ((gsize)16 << 10)
#define MAX_BLOCK_BYTES         ((gsize)4 << 20) /* blocks double up to here */
#define DEFAULT_ITEMS_PER_BLOCK 64

typedef struct Block Block;
struct Block {
  Block *next;
  gsize size_bytes, used_bytes; /* of the data after the header */
};

/* The data begins at the next multiple of the alignment after the header. */
#define HEADER_BYTES ((sizeof (Block) + SIM_ARENA_ALIGN - 1) / SIM_ARENA_ALIGN * SIM_ARENA_ALIGN)

struct SimArena {
  Block *blocks; /* the head is the one being filled */
  gsize next_block_bytes, used_bytes, reserved_bytes;
};

static Block *
block_new (gsize size_bytes)
{
  Block *b = g_aligned_alloc (1, HEADER_BYTES + size_bytes, SIM_ARENA_ALIGN);
  b->next = NULL;
  b->size_bytes = size_bytes;
  b->used_bytes = 0;
  return b;
}

static void
blocks_free (Block *b)
{
  while (b != NULL) {
    Block *next = b->next;
    g_aligned_free (b);
    b = next;
  }
}

static gsize
round_up (gsize size_bytes)
{
  g_assert (size_bytes <= G_MAXSIZE / 2);
  return (size_bytes + SIM_ARENA_ALIGN - 1) / SIM_ARENA_ALIGN * SIM_ARENA_ALIGN;
}

SimArena *
sim_arena_new (gsize block_bytes)
{
  SimArena *a = g_new0 (SimArena, 1);
  a->next_block_bytes = round_up (block_bytes > 0 ? block_bytes : DEFAULT_BLOCK_BYTES);
  return a;
}

void
sim_arena_free (SimArena *a)
{
  if (a == NULL)
    return;
  blocks_free (a->blocks);
  g_free (a);
}

static Block *
arena_add_block (SimArena *a, gsize size_bytes)
{
  /* A wish larger than a block goes behind the head, so that the rest of the head is not lost. */
  gboolean large = size_bytes > a->next_block_bytes;
  Block *b = block_new (large ? size_bytes : a->next_block_bytes);
  a->reserved_bytes += b->size_bytes;
  if (large && a->blocks != NULL) {
    b->next = a->blocks->next;
    a->blocks->next = b;
  } else {
    b->next = a->blocks;
    a->blocks = b;
  }
  if (!large)
    a->next_block_bytes = MAX (a->next_block_bytes, MIN (2 * a->next_block_bytes, MAX_BLOCK_BYTES));
  return b;
}

gpointer
sim_arena_alloc (SimArena *a, gsize size_bytes)
{
  gsize need_bytes = round_up (MAX (size_bytes, 1));
  Block *b = a->blocks;
  if (b == NULL || b->size_bytes - b->used_bytes < need_bytes)
    b = arena_add_block (a, need_bytes);
  gpointer p = (char *)b + HEADER_BYTES + b->used_bytes;
  b->used_bytes += need_bytes;
  a->used_bytes += need_bytes;
  return p;
}

gpointer
sim_arena_alloc0 (SimArena *a, gsize size_bytes)
{
  return memset (sim_arena_alloc (a, size_bytes), 0, size_bytes);
}

gpointer
sim_arena_alloc_n (SimArena *a, gsize n, gsize item_bytes)
{
  g_assert (item_bytes == 0 || n <= G_MAXSIZE / 2 / item_bytes);
  return sim_arena_alloc0 (a, n * item_bytes);
}

gpointer
sim_arena_dup (SimArena *a, gconstpointer data, gsize size_bytes)
{
  gpointer p = sim_arena_alloc (a, size_bytes);
  if (size_bytes > 0) /* data may be NULL then */
    memcpy (p, data, size_bytes);
  return p;
}

char *
sim_arena_strdup (SimArena *a, const char *s)
{
  return sim_arena_dup (a, s, strlen (s) + 1);
}

void
sim_arena_reset (SimArena *a)
{
  Block *keep = a->blocks;
  for (Block *b = a->blocks; b != NULL; b = b->next)
    if (b->size_bytes > keep->size_bytes)
      keep = b;
  for (Block *b = a->blocks, *next; b != NULL; b = next) {
    next = b->next;
    if (b != keep)
      g_aligned_free (b);
  }
  a->blocks = keep;
  a->used_bytes = 0;
  a->reserved_bytes = keep != NULL ? keep->size_bytes : 0;
  if (keep != NULL) {
    keep->next = NULL;
    keep->used_bytes = 0;
  }
}

gsize
sim_arena_used_bytes (const SimArena *a)
{
  return a->used_bytes;
}

gsize
sim_arena_reserved_bytes (const SimArena *a)
{
  return a->reserved_bytes;
}

/* ---- pool ---- */

typedef struct FreeItem FreeItem;
struct FreeItem {
  FreeItem *next;
};

struct SimPool {
  SimArena *arena;
  FreeItem *free_items;
  gsize item_bytes, n_used;
};

SimPool *
sim_pool_new (gsize item_bytes, guint items_per_block)
{
  SimPool *p = g_new0 (SimPool, 1);
  p->item_bytes = round_up (MAX (item_bytes, sizeof (FreeItem)));
  guint n = items_per_block > 0 ? items_per_block : DEFAULT_ITEMS_PER_BLOCK;
  g_assert (n <= G_MAXSIZE / 2 / p->item_bytes);
  p->arena = sim_arena_new (n * p->item_bytes);
  return p;
}

void
sim_pool_free (SimPool *p)
{
  if (p == NULL)
    return;
  sim_arena_free (p->arena);
  g_free (p);
}

gpointer
sim_pool_get (SimPool *p)
{
  FreeItem *item = p->free_items;
  p->n_used++;
  if (item == NULL)
    return sim_arena_alloc0 (p->arena, p->item_bytes);
  p->free_items = item->next;
  return memset (item, 0, p->item_bytes);
}

void
sim_pool_put (SimPool *p, gpointer item)
{
  if (item == NULL)
    return;
  g_assert (p->n_used > 0);
  FreeItem *f = item;
  f->next = p->free_items;
  p->free_items = f;
  p->n_used--;
}

gsize
sim_pool_n_used (const SimPool *p)
{
  return p->n_used;
}
