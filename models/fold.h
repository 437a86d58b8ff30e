/* fold: GPUs that must behave alike are simulated once.
 *
 * Colour refinement on the graph of ranks, peers and groups: ranks start with a colour for what
 * they run and how fast, and are split as long as two of a colour have peers of different colours,
 * or groups whose members show different sets of colours. Ranks of a final class run to the tick
 * alike: their end times are the same expression over those of their peers' classes and, in a
 * rendezvous, of the set of classes that meet. Hence one representative a class is enough, and a
 * rendezvous has one arrival a class. A healthy job folds to its pipeline stages; one slow GPU
 * splits off itself, its lockstep group, its pipeline and nothing else.
 */
#ifndef CLUSTERSIM_FOLD_H
#define CLUSTERSIM_FOLD_H

#include "program.h"

typedef struct {
  ProgramSet *set; /* one rank a class; owned. Its programs are copies. */
  guint n_classes;
  guint32 *class_of;       /* per rank of the unfolded set */
  guint32 *representative; /* per class: its lowest rank */
} Fold;

/* colour: per rank, equal where speed and pauses are equal; NULL: all alike. */
void fold_init (Fold *f, const ProgramSet *unfolded, const guint32 *colour);
void fold_clear (Fold *f);

#endif
