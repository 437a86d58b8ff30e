/* read_law: a law file (scenarios/laws/<name>.json, or a path) → Law or BatchLaw.
 *
 *   { "format": 1, "name", "title", "source", "aliases": […], "notes": […],
 *     "type": "loss",  "form": "additive|power_sum|kaplan|frontier|granular|joint",
 *                      "params_counted": "total|non_embedding", "compute_unit": "flops|pf_days",
 *                      "constants": { … }, "fitted_on": { "params_min": … } }
 *   { …, "type": "batch", "variable": "loss|tokens|flops|params", "critical": bool,
 *        "constants": { "coef", "exponent", "unit", "sequence_tokens", "overhead", "lr_…" } }
 * Every constant says where it is from: { "value", "kind", "source" }. `law fit -o FILE` writes
 * this form too.
 *
 * Errors: JSON_ERROR with FILE:LINE: /path; an unknown name with the nearest one.
 */
#ifndef CLUSTERSIM_READ_LAW_H
#define CLUSTERSIM_READ_LAW_H

#include "json_read.h"
#include "law.h"

typedef struct {
  gboolean is_batch;
  Law law;         /* type loss */
  BatchLaw batch;  /* type batch */
  GPtrArray *prov; /* ProvEntry*, in the order of the file */
  char **notes;    /* NULL-terminated */
  char **aliases;
} LawFile;

void law_file_free (LawFile *f);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LawFile, law_file_free)

LawFile *read_law (const JsonRef *root, GError **error);

/* By the name of a shipped file, an alias, or a path. is_batch: which type is wanted; names of the
 * other are not known then. */
LawFile *law_find (const char *name, gboolean is_batch, GError **error);

/* All that ship, LawFile*, in the order of their names. */
GPtrArray *law_files (gboolean is_batch, GError **error);

#endif
