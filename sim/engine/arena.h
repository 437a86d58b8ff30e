/* arena: two ways to allocate many small things without a malloc for each.
 *
 * SimArena hands out bytes that live until the whole arena is reset or freed: for what is built
 * once (programs, routes, names). SimPool hands out items of one size that come back one by one:
 * for what comes and goes during a run (flows, calls). Both grow by blocks and never move what they
 * gave.
 *
 * Ownership: memory belongs to the arena or pool; nothing given out is freed alone, nothing in it
 * is finalised. Errors: none; out of memory aborts, as everywhere with GLib.
 */
#ifndef CLUSTERSIM_ARENA_H
#define CLUSTERSIM_ARENA_H

#include <glib.h>

#define SIM_ARENA_ALIGN 16 /* of all that is handed out, bytes */

typedef struct SimArena SimArena;

/* block_bytes: size of the first block, 0 for a default; larger wishes get a block of their own. */
SimArena *sim_arena_new (gsize block_bytes);
void sim_arena_free (SimArena *a);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (SimArena, sim_arena_free)

/* size_bytes may be 0: the pointer is then valid and unique, but has no bytes. */
gpointer sim_arena_alloc (SimArena *a, gsize size_bytes);  /* contents undefined */
gpointer sim_arena_alloc0 (SimArena *a, gsize size_bytes); /* zeroed */
gpointer sim_arena_dup (SimArena *a, gconstpointer data, gsize size_bytes);
char *sim_arena_strdup (SimArena *a, const char *s);

/* An array of n items of a type, zeroed; the product is checked. */
#define sim_arena_array(a, type, n) ((type *)sim_arena_alloc_n (a, n, sizeof (type)))
gpointer sim_arena_alloc_n (SimArena *a, gsize n, gsize item_bytes);

/* Takes everything back at once; keeps the largest block for the next round. */
void sim_arena_reset (SimArena *a);

gsize sim_arena_used_bytes (const SimArena *a);     /* handed out, with alignment */
gsize sim_arena_reserved_bytes (const SimArena *a); /* taken from the system */

typedef struct SimPool SimPool;

/* items_per_block 0: a default. */
SimPool *sim_pool_new (gsize item_bytes, guint items_per_block);
void sim_pool_free (SimPool *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (SimPool, sim_pool_free)

gpointer sim_pool_get (SimPool *p);            /* zeroed */
void sim_pool_put (SimPool *p, gpointer item); /* item of this pool, or NULL */
gsize sim_pool_n_used (const SimPool *p);      /* items that are out */

#endif
