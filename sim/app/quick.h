/* quick: a scenario for who has only a model and a number of GPUs.
 *
 * "predict --hf-config config.json --gpus 64xH100" means: this model, on this many of this GPU, in
 * the usual network of its generation (scenarios/published/rules.json), 4,096 tokens a sequence (or
 * as many as the model has positions), the smallest multiple of the GPUs that makes 4 Mi tokens a
 * step, micro-batches of one sequence, bf16. Of the layouts
 *   tp   1, 2, 4, 8 inside a node (sequence parallel from 2 on)
 *   pp   1, 2, 4, 8, 16, … at most one stage a layer
 *   vpp  1, 2, 4 where the layers divide
 *   ep   with experts: 1, 2, 4, … that divides them
 *   recompute  none; selective, full when none does not fit
 * the fastest that leaves 5 % of the memory free is taken; when there is none, the one that needs
 * least, and the smallest doubling of the GPUs that would fit is told. What the user sets by --set
 * is kept and not varied. All of this is told among the assumed.
 */
#ifndef CLUSTERSIM_QUICK_H
#define CLUSTERSIM_QUICK_H

#include "json_read.h"

/* gpus: "64xH100". The document is complete, the --set included; notes (char*) receives a line for
 * each choice with the option that changes it. Errors: CLI_ERROR_USAGE for gpus, else those of
 * reading and predicting. */
JsonDoc *quick_document (const char *hf_config, const char *gpus, const char *const *sets,
                         GPtrArray *notes, GError **error);

#endif
