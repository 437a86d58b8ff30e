/* What a row does not say of its micro-batch and of recomputation: what its memory allows. */
#include "row_rules.h"

/* Whether the step of the Spec needs at most this share of the memory; TRUE when that cannot be
 * told. */
static gboolean
fits (const RunContext *c, const Spec *s, double share)
{
  const PredictOptions options = {.only_memory = TRUE};
  Prediction p;
  if (!predict (s, c->cache, &options, &p, NULL))
    return TRUE;
  const MemReport *m = &p.memory;
  const gboolean ok = (double)m->peak_bytes <= share * (double)m->capacity_bytes;
  prediction_clear (&p);
  return ok;
}

/* From nothing to everything, as trainers offer it: the core of attention; what costs little to run
 * again (norms, activations of experts, up-projections of latent attention); of one layer in so
 * many all of it; all. */
static const struct {
  Recompute how;
  guint modules;
  gint64 every;
} ladder[] = {
    {RECOMPUTE_NONE, 0, 0},
    {RECOMPUTE_SELECTIVE, 0, 0},
    {RECOMPUTE_SELECTIVE, RECOMP_CORE_ATTN | RECOMP_LAYERNORM | RECOMP_MOE_ACT | RECOMP_MLA_UP, 0},
    {RECOMPUTE_FULL, 0, 8},
    {RECOMPUTE_FULL, 0, 4},
    {RECOMPUTE_FULL, 0, 2},
    {RECOMPUTE_FULL, 0, 0}};

/* The least recomputation with which the step fits; all where none does. */
static void
fill_recompute (const RunContext *c, Spec *s)
{
  if (fits (c, s, c->rules->fill.memory_doubt))
    return;
  for (gsize i = 1; i < G_N_ELEMENTS (ladder); i++) {
    s->train.recompute = ladder[i].how;
    s->train.recompute_modules = ladder[i].modules;
    s->train.recompute_every = ladder[i].every;
    if (fits (c, s, c->rules->fill.memory_wanted))
      return;
  }
}

/* Sequences of a replica in one micro-batch: all of them where the framework could not accumulate
 * gradients; one where a pipeline wants many; else the largest power of two that divides them and
 * fits. */
static void
fill_micro_batch (const RunContext *c, Spec *s, gboolean no_accumulation)
{
  gint64 *mbs = &s->train.micro_batch_sequences;
  const gint64 replica = s->train.global_batch_sequences / MAX (s->parallel.dp, 1);
  if (s->parallel.pp > 1)
    return;
  if (no_accumulation) {
    *mbs = MAX (replica, 1);
    return;
  }
  while (2 * *mbs <= c->rules->fill.micro_batch_cap && replica % (2 * *mbs) == 0) {
    *mbs *= 2;
    if (!fits (c, s, 1)) {
      *mbs /= 2;
      return;
    }
  }
}

gboolean
row_fill (const RunContext *c, guint row, Spec *s, const RunRule *software, gboolean open_recompute,
          GString *assumed, GError **error)
{
  gint64 stated = 0;
  const gboolean open_batch = !row_integer (c, row, "mbs", &stated);
  if (open_recompute) {
    if (s->train.recompute == RECOMPUTE_NONE && s->model.graph == NULL)
      fill_recompute (c, s);
    g_autofree char *text =
        s->train.recompute_every > 1
            ? g_strdup_printf ("recompute of one layer in %" G_GINT64_FORMAT,
                               s->train.recompute_every)
            : g_strdup_printf ("recompute %s%s", recompute_names[s->train.recompute],
                               s->train.recompute_modules != 0 ? " of norms and activations" : "");
    row_assume (assumed, text);
  }
  if (open_batch) {
    fill_micro_batch (c, s, software->no_accumulation);
    g_autofree char *text =
        g_strdup_printf ("micro-batch %" G_GINT64_FORMAT, s->train.micro_batch_sequences);
    row_assume (assumed, text);
  }
  return spec_check (s, NULL, error);
}
