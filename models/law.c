/* The forms of the loss, their optimum and their inverse; see law.h. */
#include "law.h"

#include <math.h>
#include <string.h>

G_DEFINE_QUARK (clustersim_law_error, law_error)

const char *const law_form_names[] = {"additive", "power_sum", "kaplan", "frontier",
                                      "granular", "joint",     NULL};
const char *const law_count_names[] = {"active", "total", "geometric", NULL};

/* Models outside this range are not asked about by anybody; it bounds every search. */
#define PARAMS_LEAST 1e3
#define PARAMS_MOST  1e18
#define TOKENS_MOST  1e24

void
law_init (Law *law)
{
  memset (law, 0, sizeof *law);
  law->c_unit_flops = 1;
}

void
law_clear (Law *law)
{
  g_clear_pointer (&law->name, g_free);
  g_clear_pointer (&law->title, g_free);
  g_clear_pointer (&law->source, g_free);
}

void
law_copy (Law *dst, const Law *src)
{
  *dst = *src;
  dst->name = g_strdup (src->name);
  dst->title = g_strdup (src->title);
  dst->source = g_strdup (src->source);
}

static gboolean
positive (double v, const char *what, GError **error)
{
  if (isfinite (v) && v > 0)
    return TRUE;
  g_set_error (error, LAW_ERROR, LAW_ERROR_RANGE,
               "%s must be positive and finite (found %g; allowed: above 0)", what, v);
  return FALSE;
}

gboolean
law_check (const Law *law, GError **error)
{
  if (law->form == LAW_FRONTIER)
    return positive (law->n_coef, "n_coef", error) && positive (law->n_exp, "n_exp", error) &&
           positive (law->d_coef, "d_coef", error) && positive (law->d_exp, "d_exp", error) &&
           positive (law->c_unit_flops, "c_unit_flops", error);
  if (!isfinite (law->e) || law->e < 0) {
    g_set_error (error, LAW_ERROR, LAW_ERROR_RANGE,
                 "the irreducible loss must not be negative (found %g; allowed: 0 or more)",
                 law->e);
    return FALSE;
  }
  if (!positive (law->alpha, "alpha", error) || !positive (law->beta, "beta", error))
    return FALSE;
  if (law->form == LAW_POWER_SUM || law->form == LAW_KAPLAN)
    return positive (law->nc, "N_c", error) && positive (law->dc, "D_c", error);
  if (law->form == LAW_JOINT && (!positive (law->e_start, "E_start", error) ||
                                 !positive (law->e_max - law->e_start, "E_max - E_start", error)))
    return FALSE;
  return positive (law->a, "A", error) && positive (law->b, "B", error);
}

gboolean
law_has_loss (const Law *law)
{
  return law->form != LAW_FRONTIER;
}

/* ---- coefficients: power_sum is additive under another name ---- */

/* ln A and ln B of the two terms. */
static double
ln_a (const Law *law)
{
  return law->form == LAW_POWER_SUM ? law->alpha * log (law->nc) : log (law->a);
}

static double
ln_b (const Law *law)
{
  return law->form == LAW_POWER_SUM ? law->beta * log (law->dc) : log (law->b);
}

/* G = (alpha A / (beta B))^(1 / (alpha + beta)). */
static double
ln_g (const Law *law)
{
  return (log (law->alpha / law->beta) + ln_a (law) - ln_b (law)) / (law->alpha + law->beta);
}

static gboolean
is_additive (const Law *law)
{
  return law->form == LAW_ADDITIVE || law->form == LAW_POWER_SUM;
}

static double
total_of (const LawRun *run)
{
  return run->total > 0 ? run->total : run->active;
}

double
law_run_params (const Law *law, const LawRun *run)
{
  if (law->form == LAW_GRANULAR)
    return total_of (run);
  if (law->form == LAW_JOINT || law->form == LAW_FRONTIER || run->count == LAW_COUNT_ACTIVE)
    return run->active;
  return run->count == LAW_COUNT_TOTAL ? total_of (run) : sqrt (run->active * total_of (run));
}

/* ---- repetition ---- */

static double
decayed (double unique, double n, double r_star)
{
  if (n <= unique)
    return n;
  return unique * (1 + r_star * -expm1 (-(n / unique - 1) / r_star));
}

double
law_effective_tokens (const Law *law, double tokens, double unique_tokens)
{
  if (unique_tokens <= 0 || law->rd_star <= 0 || !is_additive (law))
    return tokens;
  return decayed (unique_tokens, tokens, law->rd_star);
}

double
law_effective_params (const Law *law, double params, double unique_tokens)
{
  if (unique_tokens <= 0 || law->rn_star <= 0 || !is_additive (law))
    return params;
  /* The size for which U tokens are optimal: N = (U G)^(beta / alpha) G. */
  double un = exp ((log (unique_tokens) + ln_g (law)) * law->beta / law->alpha + ln_g (law));
  return decayed (un, params, law->rn_star);
}

/* ---- loss ---- */

static double
ln_e_hat (const Law *law, double experts)
{
  double shift = 1 / (1 / law->e_start - 1 / law->e_max);
  return -log (1 / (MAX (experts, 1) - 1 + shift) + 1 / law->e_max);
}

/* tokens may be infinite. */
static double
loss_at (const Law *law, const LawRun *run, double tokens)
{
  double unique = tokens > run->unique_tokens ? run->unique_tokens : 0;
  double n = law_effective_params (law, law_run_params (law, run), unique);
  double d = unique > 0 && law->rd_star > 0 && is_additive (law) && isinf (tokens)
                 ? unique * (1 + law->rd_star)
                 : law_effective_tokens (law, tokens, unique);
  double x = log (n), y = log (d), l;
  switch (law->form) {
  case LAW_ADDITIVE:
  case LAW_POWER_SUM:
    return law->e + exp (ln_a (law) - law->alpha * x) + exp (ln_b (law) - law->beta * y);
  case LAW_KAPLAN:
    return law->e +
           pow (exp (law->alpha / law->beta * (log (law->nc) - x)) + law->dc / d, law->beta);
  case LAW_GRANULAR:
    return law->e +
           (law->g / pow (run->granularity > 0 ? run->granularity : 1, law->gamma) + law->a) *
               exp (-law->alpha * x) +
           law->b * exp (-law->beta * y);
  case LAW_JOINT:
    l = ln_e_hat (law, run->experts);
    return law->e + law->a * exp (law->delta * l + (law->gamma * l - law->alpha) * x) +
           law->b * exp (law->omega * l + (law->zeta * l - law->beta) * y);
  case LAW_FRONTIER:
    break;
  }
  return NAN;
}

double
law_loss (const Law *law, const LawRun *run)
{
  g_assert (run->active > 0 && run->tokens > 0);
  return loss_at (law, run, run->tokens);
}

double
law_loss_floor (const Law *law, const LawRun *run)
{
  g_assert (run->active > 0);
  return law_has_loss (law) ? loss_at (law, run, INFINITY) : NAN;
}

/* ---- optimum ---- */

static double
k_of (const LawBudget *b)
{
  return b->flops_per_param_token > 0 ? b->flops_per_param_token : 6;
}

static LawRun
run_of (const LawBudget *b, double active, double tokens)
{
  double ratio = b->total_ratio > 0 ? b->total_ratio : 1;
  return (LawRun){.active = active,
                  .total = active * ratio,
                  .tokens = tokens,
                  .unique_tokens = b->unique_tokens,
                  .experts = b->experts,
                  .granularity = b->granularity,
                  .count = b->count};
}

static void
point_fill (LawPoint *p, const Law *law, const LawBudget *b, double active, double tokens)
{
  LawRun run = run_of (b, active, tokens);
  p->params = active;
  p->total_params = run.total;
  p->tokens = tokens;
  p->flops = k_of (b) * active * tokens;
  p->loss = law_loss (law, &run);
  p->tokens_per_param = tokens / active;
  p->epochs = b->unique_tokens > 0 ? MAX (1, tokens / b->unique_tokens) : 1;
}

static gboolean
budget_check (const LawBudget *b, GError **error)
{
  if (b->total_ratio > 0 && b->total_ratio < 1) {
    g_set_error (error, LAW_ERROR, LAW_ERROR_RANGE,
                 "total parameters below the active ones (found a ratio of %g; allowed: 1 or more)",
                 b->total_ratio);
    return FALSE;
  }
  return positive (k_of (b), "FLOPs per parameter and token", error);
}

typedef double (*Cost) (double ln_n, gpointer data);

/* Least of f on ln N: a grid (f may be infinite at its ends), then golden section to 1e-12. */
static double
minimise (Cost f, gpointer data, double lo, double hi, double *least)
{
  const int steps = 400;
  const double inv_phi = 0.6180339887498949;
  double h = (hi - lo) / steps, best = lo, f_best = f (lo, data);
  for (int i = 1; i <= steps; i++) {
    double x = lo + h * i, v = f (x, data);
    if (v < f_best) {
      f_best = v;
      best = x;
    }
  }
  double a = MAX (lo, best - h), b = MIN (hi, best + h);
  double c = b - inv_phi * (b - a), d = a + inv_phi * (b - a);
  double fc = f (c, data), fd = f (d, data);
  while (b - a > 1e-12 * MAX (1, fabs (a))) {
    if (fc < fd) {
      b = d;
      d = c;
      fd = fc;
      c = b - inv_phi * (b - a);
      fc = f (c, data);
    } else {
      a = c;
      c = d;
      fc = fd;
      d = a + inv_phi * (b - a);
      fd = f (d, data);
    }
    if (!(c > a && d < b)) /* no further doubles between */
      break;
  }
  double x = (a + b) / 2, v = f (x, data);
  *least = MIN (v, f_best);
  return v <= f_best ? x : best;
}

typedef struct {
  const Law *law;
  const LawBudget *budget;
  double loss, inference_tokens;
} Search;

static double
loss_of_size (double ln_n, gpointer data)
{
  const Search *s = data;
  double n = exp (ln_n), d = s->budget->flops / (k_of (s->budget) * n);
  LawRun run = run_of (s->budget, n, d);
  return law_loss (s->law, &run);
}

/* N_law / N_active, which the closed forms need; 1 for dense models. */
static double
count_factor (const Law *law, const LawBudget *b)
{
  LawRun unit = run_of (b, 1, 1);
  return law_run_params (law, &unit);
}

static gboolean
optimal_frontier (const Law *law, const LawBudget *b, LawPoint *out)
{
  double c = b->flops / law->c_unit_flops;
  point_fill (out, law, b, law->n_coef * pow (c, law->n_exp), law->d_coef * pow (c, law->d_exp));
  out->flops = b->flops; /* the two lines are separate fits: k N D is only near C */
  if (law->l_exp > 0)
    out->loss = pow (law->l_coef / c, law->l_exp);
  return TRUE;
}

gboolean
law_optimal (const Law *law, const LawBudget *b, LawPoint *out, GError **error)
{
  if (!budget_check (b, error) || !positive (b->flops, "the budget of FLOPs", error))
    return FALSE;
  if (law->form == LAW_FRONTIER)
    return optimal_frontier (law, b, out);
  double ln_ck = log (b->flops / k_of (b)), ln_n, unused;
  gboolean repeats = b->unique_tokens > 0 && law->rd_star > 0 && is_additive (law);
  double f = log (count_factor (law, b));
  if (is_additive (law)) {
    /* A / (f N)^alpha = (A / f^alpha) / N^alpha */
    double ab = law->alpha + law->beta;
    ln_n = ln_g (law) - law->alpha * f / ab + ln_ck * law->beta / ab;
  } else if (law->form == LAW_KAPLAN) {
    /* r (Nc/N)^r = Dc N k / C, r = alpha_N / alpha_D */
    double r = law->alpha / law->beta;
    ln_n = (log (r) + r * (log (law->nc) - f) + ln_ck - log (law->dc)) / (r + 1);
  } else {
    repeats = TRUE;
    ln_n = 0;
  }
  if (repeats && !(is_additive (law) && exp (ln_ck - ln_n) <= b->unique_tokens)) {
    Search s = {.law = law, .budget = b};
    ln_n = minimise (loss_of_size, &s, log (PARAMS_LEAST), log (PARAMS_MOST), &unused);
  }
  double n = exp (ln_n);
  point_fill (out, law, b, n, b->flops / (k_of (b) * n));
  return TRUE;
}

/* ---- the inverse: tokens and compute for a loss ---- */

static gboolean
unsupported (const Law *law, const char *what, GError **error)
{
  g_set_error (error, LAW_ERROR, LAW_ERROR_UNSUPPORTED,
               "the law %s gives only the best split of a budget, not %s (allowed: a law with a "
               "loss, e.g. besiroglu-2024)",
               law->name != NULL ? law->name : "given", what);
  return FALSE;
}

gboolean
law_tokens_for_loss (const Law *law, const LawRun *run, double loss, double *tokens, GError **error)
{
  if (!law_has_loss (law))
    return unsupported (law, "the loss of a run", error);
  if (!positive (loss, "the loss", error) || !positive (run->active, "the parameters", error))
    return FALSE;
  double floor = law_loss_floor (law, run);
  LawRun r = *run;
  r.tokens = TOKENS_MOST;
  if (loss <= floor || law_loss (law, &r) > loss) {
    g_set_error (error, LAW_ERROR, LAW_ERROR_UNREACHABLE,
                 "a model of %.4g parameters does not get to this loss%s (found %g; allowed: above "
                 "%.4f by this law)",
                 run->active, run->unique_tokens > 0 ? " with so few unique tokens" : "", loss,
                 floor);
    return FALSE;
  }
  double lo = 0, hi = log (TOKENS_MOST); /* loss falls with tokens: bisection on ln D */
  for (int i = 0; i < 200 && hi - lo > 1e-14 * hi; i++) {
    double mid = (lo + hi) / 2;
    r.tokens = exp (mid);
    if (law_loss (law, &r) > loss)
      lo = mid;
    else
      hi = mid;
  }
  *tokens = exp (hi);
  return TRUE;
}

/* Training and inference FLOPs of the model of this size that reaches the loss. */
static double
cost_of_size (double ln_n, gpointer data)
{
  const Search *s = data;
  double n = exp (ln_n), d;
  LawRun run = run_of (s->budget, n, 1);
  if (law_loss_floor (s->law, &run) >= s->loss ||
      !law_tokens_for_loss (s->law, &run, s->loss, &d, NULL))
    return INFINITY;
  return log (k_of (s->budget) * n * d + 2 * n * s->inference_tokens);
}

gboolean
law_lifetime_optimal (const Law *law, const LawBudget *b, double loss, double inference_tokens,
                      LawPoint *out, GError **error)
{
  if (!law_has_loss (law))
    return unsupported (law, "the compute for a loss", error);
  if (!budget_check (b, error) || !positive (loss, "the loss", error))
    return FALSE;
  if (!isfinite (inference_tokens) || inference_tokens < 0)
    return positive (inference_tokens, "the tokens of inference", error);
  if (is_additive (law) && b->unique_tokens <= 0 && inference_tokens <= 0 && loss > law->e) {
    /* At the optimum alpha u = beta v, u and v the two terms, u + v = L - E. */
    double ab = law->alpha + law->beta, f = count_factor (law, b);
    double u = (loss - law->e) * law->beta / ab, v = (loss - law->e) * law->alpha / ab;
    point_fill (out, law, b, exp ((ln_a (law) - log (u)) / law->alpha) / f,
                exp ((ln_b (law) - log (v)) / law->beta));
    return TRUE;
  }
  Search s = {.law = law, .budget = b, .loss = loss, .inference_tokens = inference_tokens};
  double least, ln_n = minimise (cost_of_size, &s, log (PARAMS_LEAST), log (PARAMS_MOST), &least);
  double tokens;
  LawRun run = run_of (b, exp (ln_n), 1);
  if (!isfinite (least)) {
    LawRun largest = run_of (b, PARAMS_MOST, 1);
    g_set_error (error, LAW_ERROR, LAW_ERROR_UNREACHABLE,
                 "no model gets to this loss%s (found %g; allowed: above %.4f by this law)",
                 b->unique_tokens > 0 ? " with so few unique tokens" : "", loss,
                 law_loss_floor (law, &largest));
    return FALSE;
  }
  if (!law_tokens_for_loss (law, &run, loss, &tokens, error))
    return FALSE;
  point_fill (out, law, b, run.active, tokens);
  return TRUE;
}

gboolean
law_optimal_for_loss (const Law *law, const LawBudget *b, double loss, LawPoint *out,
                      GError **error)
{
  if (law->form == LAW_FRONTIER && law->l_exp > 0) { /* L = (l / C)^e inverted */
    if (!positive (loss, "the loss", error))
      return FALSE;
    LawBudget at = *b;
    at.flops = law->l_coef * law->c_unit_flops * pow (loss, -1 / law->l_exp);
    return law_optimal (law, &at, out, error);
  }
  return law_lifetime_optimal (law, b, loss, 0, out, error);
}

/* ---- other currencies ---- */

double
law_flops_of_days (double days, double gpus, double peak_flops, double mfu)
{
  return days * 86400 * gpus * peak_flops * mfu;
}

double
law_flops_of_usd (double usd, double usd_per_gpu_hour, double peak_flops, double mfu)
{
  return usd / usd_per_gpu_hour * 3600 * peak_flops * mfu;
}

/* ---- over-training ---- */

gboolean
law_overtrain (const Law *law, const LawRun *run, const LawBudget *budget, LawOvertrain *out,
               GError **error)
{
  if (!law_has_loss (law))
    return unsupported (law, "the loss of a run", error);
  if (!positive (run->active, "the parameters", error) ||
      !positive (run->tokens, "the tokens", error))
    return FALSE;
  LawBudget b = *budget;
  b.total_ratio = total_of (run) / run->active;
  b.unique_tokens = run->unique_tokens;
  b.experts = run->experts;
  b.granularity = run->granularity;
  b.count = run->count;
  point_fill (&out->run, law, &b, run->active, run->tokens);
  b.flops = out->run.flops;
  if (!law_optimal (law, &b, &out->same_compute, error) ||
      !law_optimal_for_loss (law, &b, out->run.loss, &out->same_loss, error))
    return FALSE;
  const LawPoint *r = &out->run, *e = &out->same_loss;
  out->ratio = r->tokens_per_param / out->same_compute.tokens_per_param;
  out->loss_penalty = MAX (0, r->loss - out->same_compute.loss);
  out->compute_factor = MAX (1, r->flops / e->flops);
  out->inference_saving = 1 - r->params / e->params;
  /* Training FLOPs above the optimum, paid back 2 (N_opt - N) a token. */
  out->break_even_tokens =
      r->params < e->params ? MAX (0, r->flops - e->flops) / (2 * (e->params - r->params)) : NAN;
  return TRUE;
}

gboolean
law_overtrain_by (const Law *law, const LawBudget *budget, double ratio, LawOvertrain *out,
                  GError **error)
{
  LawPoint best;
  if (!positive (ratio, "the ratio of tokens per parameter", error) ||
      !law_optimal (law, budget, &best, error))
    return FALSE;
  /* N D stays, D / N becomes ratio times as large. */
  LawRun run = run_of (budget, best.params / sqrt (ratio), best.tokens * sqrt (ratio));
  return law_overtrain (law, &run, budget, out, error);
}
