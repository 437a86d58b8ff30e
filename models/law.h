/* law: scaling laws of the loss, the best split of a budget, batch sizes, and rules of thumb.
 *
 * Letters as in the papers: N parameters, D training tokens, C training FLOPs, L cross-entropy in
 * nats per token of the law's own tokenizer. C = k N D, with k = 6 unless a model is given (6ND
 * against exact FLOPs: model_flops_forward in model.h). Constants are data (scenarios/laws), read
 * by sim/app/read_law.h; none is in here.
 *
 * Forms:
 *   additive   L = E + A/N^alpha + B/D^beta                           Hoffmann 2022, arXiv
 * 2203.15556 power_sum  L = Linf + (Nc/N)^alpha_N + (Dc/D)^alpha_D             the same curve, A =
 * Nc^alpha_N kaplan     L = Linf + [(Nc/N)^(alpha_N/alpha_D) + Dc/D]^alpha_D   Kaplan 2020, arXiv
 * 2001.08361, 1.5 frontier   only the best split is known: N = n C^p, D = d C^q     Hoffmann's
 * approaches 1 and 2 granular   L = c + (g/G^gamma + a)/N^alpha + b/D^beta             Krajewski
 * 2024, arXiv 2402.07871 joint      L = c + a Ê^delta N^(-alpha + gamma ln Ê) + b Ê^omega D^(-beta
 * + zeta ln Ê) Ludziejewski 2025, arXiv 2502.05172 Repetition (Muennighoff 2023, arXiv 2305.16264):
 * with U unique tokens, D and N above are D' = U + U R*_D (1 - exp (-(D/U - 1) / R*_D)), N'
 * likewise with U_N = min (N, N_opt (U)).
 *
 * Ownership: a Law owns its strings; results are plain values. Errors: domain LAW_ERROR.
 */
#ifndef CLUSTERSIM_LAW_H
#define CLUSTERSIM_LAW_H

#include "spec.h"

#define LAW_ERROR law_error_quark ()
GQuark law_error_quark (void);
typedef enum {
  LAW_ERROR_RANGE,       /* a value that no budget, model or law can have */
  LAW_ERROR_UNSUPPORTED, /* this law cannot answer this question */
  LAW_ERROR_UNREACHABLE, /* a loss below what the law allows */
  LAW_ERROR_DATA         /* runs that do not determine a fit */
} LawError;

typedef enum {
  LAW_ADDITIVE,
  LAW_POWER_SUM,
  LAW_KAPLAN,
  LAW_FRONTIER,
  LAW_GRANULAR,
  LAW_JOINT
} LawForm;
extern const char *const law_form_names[]; /* NULL-terminated, in this order */

/* What a law that was fitted on dense models takes for N of a mixture of experts. */
typedef enum { LAW_COUNT_ACTIVE, LAW_COUNT_TOTAL, LAW_COUNT_GEOMETRIC } LawCount;
extern const char *const law_count_names[]; /* "active", "total", "geometric" */

#define LAW_PFDAY_FLOPS 8.64e19 /* 1e15 FLOP/s for 86,400 s */

typedef struct {
  char *name, *title, *source; /* owned */
  LawForm form;
  gboolean non_embedding; /* the law's N leaves out embeddings (Kaplan, Krajewski) */
  double e;               /* E, Linf, c: the loss that stays */
  double a, alpha, b, beta;
  double nc, dc;             /* power_sum, kaplan (alpha is alpha_N, beta is alpha_D) */
  double rn_star, rd_star;   /* repetition; 0: the law says nothing about it */
  double g, gamma;           /* granular: g, gamma; joint: gamma */
  double delta, omega, zeta; /* joint */
  double e_start, e_max;     /* joint: 1/Ê = 1/(E - 1 + 1/(1/e_start - 1/e_max)) + 1/e_max */
  double n_coef, n_exp, d_coef, d_exp; /* frontier, of C / c_unit_flops */
  double c_unit_flops;                 /* 1, or LAW_PFDAY_FLOPS */
  double l_coef, l_exp;                /* frontier: L = (l_coef c_unit / C)^l_exp; l_exp 0: none */
  double params_min, params_max, tokens_min, tokens_max; /* of the runs it was fitted on; 0: ? */
} Law;

void law_init (Law *law); /* all zero, c_unit_flops 1 */
void law_clear (Law *law);
void law_copy (Law *dst, const Law *src);
/* Positive coefficients and exponents where the form needs them; finite everything. */
gboolean law_check (const Law *law, GError **error);

/* One training run. */
typedef struct {
  double active;        /* parameters that work on a token; N of a dense model */
  double total;         /* all parameters; 0: as active */
  double tokens;        /* processed, repetitions included */
  double unique_tokens; /* 0: all of them */
  double experts;       /* joint: number of experts, 1 dense; 0: 1 */
  double granularity;   /* granular: dense FFN width over expert width; 0: 1 */
  LawCount count;       /* for laws of dense models */
} LawRun;

gboolean law_has_loss (const Law *law);                    /* FALSE for a frontier */
double law_run_params (const Law *law, const LawRun *run); /* the N that the law gets */

/* Loss of a run, NaN for a frontier. Values must be positive. */
double law_loss (const Law *law, const LawRun *run);
/* What D -> infinity (with unique_tokens: endless repetition) leaves at this size. */
double law_loss_floor (const Law *law, const LawRun *run);
/* D' and N' of the repetition formula; D and N when the law has no R* or all tokens are unique. */
double law_effective_tokens (const Law *law, double tokens, double unique_tokens);
double law_effective_params (const Law *law, double params, double unique_tokens);

/* A budget of compute and what it is to be spent on. */
typedef struct {
  double flops;
  double flops_per_param_token; /* k; 0: 6 */
  double total_ratio;           /* total / active parameters; 0: 1 (dense) */
  double unique_tokens, experts, granularity;
  LawCount count;
} LawBudget;

typedef struct {
  double params; /* active ones */
  double total_params, tokens, flops;
  double loss;             /* NaN when the law has none */
  double tokens_per_param; /* D / active N */
  double epochs;           /* D / unique tokens; 1 when all are unique */
} LawPoint;

/* Smallest loss for the budget. Closed form where there is one (additive: N = G (C/k)^(beta /
 * (alpha + beta)), G = (alpha A / (beta B))^(1 / (alpha + beta)); kaplan), else a search over N. */
gboolean law_optimal (const Law *law, const LawBudget *budget, LawPoint *out, GError **error);
/* Smallest budget for a loss; budget->flops is not used. */
gboolean law_optimal_for_loss (const Law *law, const LawBudget *budget, double loss, LawPoint *out,
                               GError **error);
/* Tokens with which a model of this size gets to a loss; run->tokens is not used. */
gboolean law_tokens_for_loss (const Law *law, const LawRun *run, double loss, double *tokens,
                              GError **error);

/* Compute from other currencies. peak_flops: of one GPU, dense, per second; mfu 0..1. */
double law_flops_of_days (double days, double gpus, double peak_flops, double mfu);
double law_flops_of_usd (double usd, double usd_per_gpu_hour, double peak_flops, double mfu);

/* A run that is longer and smaller than compute-optimal. */
typedef struct {
  LawPoint run;
  LawPoint same_compute;    /* the optimum of the run's FLOPs */
  LawPoint same_loss;       /* the optimum that reaches the run's loss */
  double ratio;             /* k: (D/N) / (D/N of same_compute) */
  double loss_penalty;      /* L - L of same_compute, nats */
  double compute_factor;    /* FLOPs / FLOPs of same_loss, >= 1 */
  double inference_saving;  /* 1 - N / N of same_loss; negative: the run is larger */
  double break_even_tokens; /* generated tokens from which the smaller model has cost less, at 2 N
                               FLOPs each; NaN when it is not smaller */
} LawOvertrain;

gboolean law_overtrain (const Law *law, const LawRun *run, const LawBudget *budget,
                        LawOvertrain *out, GError **error);
/* The run of a budget's FLOPs whose tokens per parameter are ratio times the optimal ones. */
gboolean law_overtrain_by (const Law *law, const LawBudget *budget, double ratio, LawOvertrain *out,
                           GError **error);
/* Least k N D + 2 N T for a loss, T tokens of inference (Sardana 2024, arXiv 2401.00448). */
gboolean law_lifetime_optimal (const Law *law, const LawBudget *budget, double loss,
                               double inference_tokens, LawPoint *out, GError **error);

/* ---- fits: law_fit.c ---- */

typedef struct {
  double params, tokens, loss;
} LawSample;

typedef struct {
  LawForm form;    /* additive, power_sum or kaplan */
  double delta;    /* Huber threshold on ln L; 0: 1e-3, as Hoffmann */
  guint starts;    /* refined starts; 0: 12 */
  guint bootstrap; /* resamples; 0: no intervals */
  double level;    /* of the intervals; 0: 0.95 */
  guint64 seed;
} LawFitOptions;

#define LAW_FIT_MAX 5 /* parameters of the largest form */

typedef struct {
  guint n_constants; /* additive E A B alpha beta; power_sum L_inf N_c D_c … ; kaplan … */
  const char *names[LAW_FIT_MAX];
  double value[LAW_FIT_MAX], lo[LAW_FIT_MAX], hi[LAW_FIT_MAX]; /* lo = hi = value: no bootstrap */
  Law law;          /* with the fitted constants; cleared by law_fit_clear */
  double objective; /* sum of Huber losses */
  double rms_log;   /* root mean square of ln L residuals */
  double *residual; /* of every sample, ln (measured / fitted); owned */
  guint n_samples, n_starts_agree, n_starts;
  guint n_boot; /* resamples that gave a fit */
  double *boot; /* n_boot rows of n_constants; owned */
  double level;
  guint n_outliers; /* residuals beyond 5 standard deviations (from the median deviation) */
  double
      correlation; /* of ln N and ln D over the runs; near 1 the two terms are hard to tell apart */
} LawFit;

/* Minimises sum Huber_delta (ln L_i - ln fit_i), from a grid of exponents (Hoffmann's approach 3,
 * sums as Besiroglu 2024 asks for). Cases are resampled for the intervals. Errors: DATA with what
 * is missing (too few runs, too few sizes, all on one line), RANGE for values that are not
 * positive. */
gboolean law_fit (const LawSample *s, guint n, const LawFitOptions *opt, LawFit *out,
                  GError **error);
void law_fit_clear (LawFit *f);
/* Interval of a quantity that follows from the constants: f (law, data) over the resamples. */
typedef double (*LawFigure) (const Law *law, gpointer data);
void law_fit_interval (const LawFit *fit, LawFigure f, gpointer data, double *lo, double *hi);

/* ---- a running curve against the law: law_fit.c ---- */

typedef struct {
  guint n_checked, n_skipped;
  gint first; /* index of the first sample of the first run of deviations, or -1 */
  gint worst;
  double worst_deviation; /* loss / expected - 1, the one of largest size */
  double last_deviation;
  double scale; /* expected losses were multiplied by this */
} LawCheck;

typedef struct {
  double threshold;     /* 0.15: deviations beyond it count, of either sign */
  guint window;         /* deviations are medians of so many samples up to here; 0: 1 */
  guint patience;       /* so many samples in a row must deviate; 0: 1 */
  double skip_tokens;   /* earlier samples are not judged */
  double anchor_tokens; /* > 0: the law is scaled so that it meets the curve up to here (median of
                           the judged samples), for another tokenizer or data set */
} LawCheckOptions;

/* deviation: n values to fill, NaN where not judged. Samples in order of time; tokens may go back
 * after a restart. run->tokens is not used, nor are the params of the samples. */
gboolean law_check_curve (const Law *law, const LawRun *run, const LawSample *s, guint n,
                          const LawCheckOptions *opt, double *deviation, LawCheck *out,
                          GError **error);

/* ---- batch sizes: law_batch.c ---- */

typedef enum { BATCH_OF_LOSS, BATCH_OF_TOKENS, BATCH_OF_FLOPS, BATCH_OF_PARAMS } BatchVariable;
extern const char *const batch_variable_names[]; /* "loss", "tokens", "flops", "params" */

/* B = coef (x / unit)^exponent sequence_tokens, in tokens. */
typedef struct {
  char *name, *title, *source; /* owned */
  BatchVariable variable;
  double coef, exponent, unit, sequence_tokens;
  gboolean critical; /* FALSE: the batch of least loss, not the largest useful one */
  double overhead;   /* critical: further tokens that a run needs at this batch, as a share */
  /* learning rate = lr_coef N^lr_n D^lr_d C^lr_c; lr_coef 0: the source has none */
  double lr_coef, lr_n, lr_d, lr_c;
} BatchLaw;

void batch_law_init (BatchLaw *b);
void batch_law_clear (BatchLaw *b);

double batch_law_tokens (const BatchLaw *b, double x);
double batch_law_lr (const BatchLaw *b, double params, double tokens, double flops);

/* (S/S_min - 1)(E/E_min - 1) = 1 (McCandlish 2018, arXiv 1812.06162): steps and tokens at batch B,
 * as multiples of their least values; at B = B_crit both are 2. */
double law_batch_step_factor (double batch, double critical);
double law_batch_token_factor (double batch, double critical);
/* Further tokens at a batch by a law whose critical batch means an overhead of its own. */
double batch_law_overhead (const BatchLaw *b, double critical, double batch);
/* Replicas that a batch feeds: floor (batch / (micro-batch x sequence)), at least 1. */
double law_batch_replicas (double batch, double micro_batch_sequences, double sequence_tokens);

typedef enum { LR_LINEAR, LR_SQRT, LR_NOISE } LrRule;
extern const char *const lr_rule_names[];
extern const char *const lr_rule_sources[]; /* where each is from and where it ends */
/* Learning rate at a batch from that at base_batch. LR_NOISE: eta_max / (1 + noise / B), McCandlish
 * 2018, with noise the noise scale in the unit of the batches. */
double law_lr_at (LrRule rule, double base_lr, double base_batch, double batch, double noise);

/* ---- rules of thumb: law_rules.c ---- */

typedef enum { REMARK_OK, REMARK_NOTE, REMARK_WARNING } RemarkLevel;
extern const char *const remark_level_names[]; /* "ok", "note", "warning" */

typedef struct {
  RemarkLevel level;
  const char *rule;   /* "tokens_per_parameter" …; static */
  char *text;         /* what is found, what the rule says; owned */
  const char *source; /* static */
  double value;       /* what was found */
  double low, high;   /* the rule's range; 0 or infinity: open */
} LawRemark;
void law_remark_free (LawRemark *r);

/* Remarks on a scenario, in a fixed order, LawRemark*. tokens: planned training tokens, 0 not
 * known. with_ok: rules that are met are in it too. critical_batch_tokens 0: not known. */
GPtrArray *law_remarks (const Spec *s, double tokens, double critical_batch_tokens,
                        gboolean with_ok);

#endif
