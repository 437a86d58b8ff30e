/* Batch sizes, their limit on data parallelism, and the learning rate; see law.h. */
#include "law.h"

#include <math.h>

const char *const batch_variable_names[] = {"loss", "tokens", "flops", "params", NULL};
const char *const lr_rule_names[] = {"linear", "sqrt", "noise", NULL};
const char *const lr_rule_sources[] = {
    "Goyal 2017, arXiv 1706.02677: for SGD, with warm-up, while the batch is well below the "
    "critical one",
    "Krizhevsky 2014, arXiv 1404.5997; Malladi 2022, arXiv 2205.10287: for Adam and its kin, while "
    "gradient noise dominates (small batch against the critical one)",
    "McCandlish 2018, arXiv 1812.06162, 2.10: for SGD, flattens at the noise scale; for Adam the "
    "optimum can even fall beyond it (Li 2024, arXiv 2405.14578)"};

void
batch_law_init (BatchLaw *b)
{
  *b = (BatchLaw){.unit = 1, .sequence_tokens = 1, .overhead = 1};
}

void
batch_law_clear (BatchLaw *b)
{
  g_clear_pointer (&b->name, g_free);
  g_clear_pointer (&b->title, g_free);
  g_clear_pointer (&b->source, g_free);
}

double
batch_law_tokens (const BatchLaw *b, double x)
{
  return b->coef * pow (x / b->unit, b->exponent) * b->sequence_tokens;
}

double
batch_law_lr (const BatchLaw *b, double params, double tokens, double flops)
{
  return b->lr_coef <= 0
             ? NAN
             : b->lr_coef * pow (params, b->lr_n) * pow (tokens, b->lr_d) * pow (flops, b->lr_c);
}

double
law_batch_step_factor (double batch, double critical)
{
  return 1 + critical / batch;
}

double
law_batch_token_factor (double batch, double critical)
{
  return 1 + batch / critical;
}

double
batch_law_overhead (const BatchLaw *b, double critical, double batch)
{
  return b->overhead * batch / critical;
}

double
law_batch_replicas (double batch, double micro_batch_sequences, double sequence_tokens)
{
  return MAX (1, floor (batch / (micro_batch_sequences * sequence_tokens) * (1 + 1e-12)));
}

double
law_lr_at (LrRule rule, double base_lr, double base_batch, double batch, double noise)
{
  switch (rule) {
  case LR_LINEAR:
    return base_lr * batch / base_batch;
  case LR_SQRT:
    return base_lr * sqrt (batch / base_batch);
  case LR_NOISE:
    return base_lr * (1 + noise / base_batch) / (1 + noise / batch);
  }
  g_assert_not_reached ();
}
