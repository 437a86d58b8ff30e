#include "fold.h"

#include <stdlib.h>
#include <string.h>

/* Two independent 64-bit hashes of what a rank sees; equal signatures are taken for equal sights,
 * and the end result is checked rank by rank (check_classes). */
typedef struct {
  guint64 a, b;
} Sign;

static inline void
mix (Sign *s, guint64 v)
{
  s->a = (s->a ^ v) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  s->a ^= s->a >> 29;
  s->b = (s->b + v + 1) * G_GUINT64_CONSTANT (0xff51afd7ed558ccd);
  s->b ^= s->b >> 32;
}

static guint
sign_hash (gconstpointer p)
{
  return (guint)((const Sign *)p)->a;
}

static gboolean
sign_equal (gconstpointer p, gconstpointer q)
{
  const Sign *a = p, *b = q;
  return a->a == b->a && a->b == b->b;
}

/* Members of every group, and the classes that they show, sorted and without repeats. */
typedef struct {
  const ProgramSet *set;
  guint32 *first, *member;  /* by group */
  guint32 *shown, *n_shown; /* shown at first[g] … */
} Groups;

static void
groups_init (Groups *g, const ProgramSet *set)
{
  gsize cells = (gsize)set->n_ranks * set->n_slots;
  g->set = set;
  g->first = g_new0 (guint32, set->n_groups + 2);
  for (gsize i = 0; i < cells; i++)
    if (set->groups[i] != GROUP_NONE)
      g->first[set->groups[i] + 2]++;
  for (guint i = 2; i < set->n_groups + 2; i++)
    g->first[i] += g->first[i - 1];
  guint32 total = g->first[set->n_groups + 1];
  g->member = g_new (guint32, MAX (total, 1));
  g->shown = g_new (guint32, MAX (total, 1));
  g->n_shown = g_new0 (guint32, MAX (set->n_groups, 1));
  for (gsize i = 0; i < cells; i++)
    if (set->groups[i] != GROUP_NONE)
      g->member[g->first[set->groups[i] + 1]++] = (guint32)(i / set->n_slots);
}

static void
groups_clear (Groups *g)
{
  g_free (g->first);
  g_free (g->member);
  g_free (g->shown);
  g_free (g->n_shown);
}

static int
compare (const void *a, const void *b)
{
  guint32 x = *(const guint32 *)a, y = *(const guint32 *)b;
  return (x > y) - (x < y);
}

static void
show (Groups *g, const guint32 *class_of, guint32 n_classes)
{
  g_autofree guint32 *seen = g_new0 (guint32, n_classes);
  for (guint i = 0; i < g->set->n_groups; i++) {
    guint32 n = 0, *out = g->shown + g->first[i];
    for (guint32 k = g->first[i]; k < g->first[i + 1]; k++) {
      guint32 c = class_of[g->member[k]];
      if (seen[c] != i + 1) {
        seen[c] = i + 1;
        out[n++] = c;
      }
    }
    qsort (out, n, sizeof *out, compare);
    g->n_shown[i] = n;
  }
}

static Sign
sight (const Groups *g, const guint32 *class_of, guint32 rank)
{
  const ProgramSet *set = g->set;
  Sign s = {class_of[rank], set->rank_program[rank]};
  mix (&s, class_of[rank]);
  for (guint k = 0; k < set->n_peers; k++)
    mix (&s, class_of[set->peers[(gsize)rank * set->n_peers + k]]);
  for (guint k = 0; k < set->n_slots; k++) {
    guint32 id = set->groups[(gsize)rank * set->n_slots + k];
    mix (&s, id == GROUP_NONE ? G_MAXUINT64 : g->n_shown[id]);
    for (guint32 i = 0; id != GROUP_NONE && i < g->n_shown[id]; i++)
      mix (&s, g->shown[g->first[id] + i]);
  }
  return s;
}

/* Numbers ranks by their signs, in the order of first sight. Returns the number of classes. */
static guint32
label (const Sign *sign, guint32 n, guint32 *class_of)
{
  g_autoptr (GHashTable) known = g_hash_table_new (sign_hash, sign_equal);
  for (guint32 r = 0; r < n; r++) {
    gpointer v = g_hash_table_lookup (known, &sign[r]);
    if (v == NULL) {
      v = GUINT_TO_POINTER (g_hash_table_size (known) + 1);
      g_hash_table_insert (known, (gpointer)&sign[r], v);
    }
    class_of[r] = GPOINTER_TO_UINT (v) - 1;
  }
  return g_hash_table_size (known);
}

static guint32
refine (Groups *g, const guint32 *colour, guint32 *class_of)
{
  const ProgramSet *set = g->set;
  g_autofree Sign *sign = g_new (Sign, set->n_ranks);
  for (guint32 r = 0; r < set->n_ranks; r++) {
    sign[r] = (Sign){1, 2};
    mix (&sign[r], set->rank_program[r]);
    mix (&sign[r], colour != NULL ? colour[r] : 0);
  }
  guint32 n = label (sign, set->n_ranks, class_of), before = 0;
  while (n != before) {
    before = n;
    show (g, class_of, n);
    for (guint32 r = 0; r < set->n_ranks; r++)
      sign[r] = sight (g, class_of, r);
    n = label (sign, set->n_ranks, class_of);
  }
  show (g, class_of, n);
  return n;
}

/* Every rank sees what the representative of its class does: the proof that the fold rests on. */
static void
check_classes (const Groups *g, const guint32 *colour, const Fold *f)
{
  const ProgramSet *set = g->set;
  for (guint32 r = 0; r < set->n_ranks; r++) {
    guint32 q = f->representative[f->class_of[r]];
    g_assert (set->rank_program[r] == set->rank_program[q]);
    g_assert (colour == NULL || colour[r] == colour[q]);
    for (guint k = 0; k < set->n_peers; k++)
      g_assert (f->class_of[set->peers[(gsize)r * set->n_peers + k]] ==
                f->class_of[set->peers[(gsize)q * set->n_peers + k]]);
    for (guint k = 0; k < set->n_slots; k++) {
      guint32 a = set->groups[(gsize)r * set->n_slots + k];
      guint32 b = set->groups[(gsize)q * set->n_slots + k];
      g_assert ((a == GROUP_NONE) == (b == GROUP_NONE));
      g_assert (a == GROUP_NONE || (g->n_shown[a] == g->n_shown[b] &&
                                    memcmp (g->shown + g->first[a], g->shown + g->first[b],
                                            g->n_shown[a] * sizeof (guint32)) == 0));
    }
  }
}

static ProgramSet *
copy_programs (const ProgramSet *from, guint n_ranks)
{
  ProgramSet *set = g_new0 (ProgramSet, 1);
  *set = *from;
  set->first_op =
      g_memdup2 (from->first_op, (from->n_programs * from->n_streams + 1) * sizeof *from->first_op);
  set->ops = g_memdup2 (from->ops, from->n_ops * sizeof *from->ops);
  set->waits = g_memdup2 (from->waits, from->n_waits * sizeof *from->waits);
  set->costs = g_memdup2 (from->costs, from->n_costs * sizeof *from->costs);
  set->n_ranks = n_ranks;
  set->rank_program = g_new (guint32, n_ranks);
  set->rank_weight = g_new0 (guint32, n_ranks);
  set->peers = g_new0 (guint32, (gsize)n_ranks * MAX (from->n_peers, 1));
  set->groups = g_new (guint32, (gsize)n_ranks * MAX (from->n_slots, 1));
  return set;
}

/* One group for each set of classes that meet in a slot; of one class alone: no rendezvous. */
static void
link_groups (Fold *f, const Groups *g)
{
  const ProgramSet *from = g->set;
  ProgramSet *set = f->set;
  g_autoptr (GArray) sizes = g_array_new (FALSE, TRUE, sizeof (guint32));
  for (gsize i = 0; i < (gsize)f->n_classes * from->n_slots; i++)
    set->groups[i] = GROUP_NONE;
  for (guint32 c = 0; c < f->n_classes; c++)
    for (guint k = 0; k < from->n_slots; k++) {
      guint32 id = from->groups[(gsize)f->representative[c] * from->n_slots + k];
      /* the lowest class of a set numbers it for all */
      if (id == GROUP_NONE || g->n_shown[id] < 2 || g->shown[g->first[id]] != c)
        continue;
      for (guint32 i = 0; i < g->n_shown[id]; i++)
        set->groups[(gsize)g->shown[g->first[id] + i] * from->n_slots + k] = sizes->len;
      g_array_append_val (sizes, g->n_shown[id]);
    }
  set->n_groups = sizes->len;
  set->group_size = g_new0 (guint32, MAX (sizes->len, 1));
  if (sizes->len > 0)
    memcpy (set->group_size, sizes->data, sizes->len * sizeof (guint32));
}

void
fold_init (Fold *f, const ProgramSet *unfolded, const guint32 *colour)
{
  Groups g;
  groups_init (&g, unfolded);
  f->class_of = g_new (guint32, unfolded->n_ranks);
  f->n_classes = refine (&g, colour, f->class_of);
  f->representative = g_new (guint32, f->n_classes);
  for (guint32 r = unfolded->n_ranks; r-- > 0;)
    f->representative[f->class_of[r]] = r;
  check_classes (&g, colour, f);
  f->set = copy_programs (unfolded, f->n_classes);
  for (guint32 r = 0; r < unfolded->n_ranks; r++)
    f->set->rank_weight[f->class_of[r]] += unfolded->rank_weight[r];
  for (guint32 c = 0; c < f->n_classes; c++) {
    guint32 r = f->representative[c];
    f->set->rank_program[c] = unfolded->rank_program[r];
    for (guint k = 0; k < unfolded->n_peers; k++)
      f->set->peers[(gsize)c * unfolded->n_peers + k] =
          f->class_of[unfolded->peers[(gsize)r * unfolded->n_peers + k]];
  }
  link_groups (f, &g);
  groups_clear (&g);
}

void
fold_clear (Fold *f)
{
  g_clear_pointer (&f->set, program_set_free);
  g_clear_pointer (&f->class_of, g_free);
  g_clear_pointer (&f->representative, g_free);
}
