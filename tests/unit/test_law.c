/* law: published optima and tables from their constants, closed forms, inverses. Constants are
 * written out here: scenarios/laws is tested in test_law_files.
 */
#include "law.h"

#include <math.h>
#include <string.h>

static Law
additive (double e, double a, double b, double alpha, double beta)
{
  Law law;
  law_init (&law);
  law.form = LAW_ADDITIVE;
  law.e = e;
  law.a = a;
  law.b = b;
  law.alpha = alpha;
  law.beta = beta;
  return law;
}

static Law
besiroglu (void)
{
  return additive (1.8172, 482.01, 2085.43, 0.3478, 0.3658);
}

static Law
muennighoff (void)
{
  Law law = additive (exp (0.6254804), exp (6.255414), exp (7.3049974), 0.3526596, 0.3526596);
  law.rn_star = 5.309743;
  law.rd_star = 15.387756;
  return law;
}

static Law
kaplan (void)
{
  Law law;
  law_init (&law);
  law.form = LAW_KAPLAN;
  law.nc = 6.4e13;
  law.dc = 1.8e13;
  law.alpha = 0.076;
  law.beta = 0.103;
  return law;
}

static Law
ludziejewski (void)
{
  Law law = additive (1.3637, 35.91, 35.98, 0.1889, 0.1775);
  law.form = LAW_JOINT;
  law.delta = -0.2285;
  law.gamma = 0.0098;
  law.omega = 0.5529;
  law.zeta = -0.0259;
  law.e_start = 2.0732;
  law.e_max = 290.4521;
  return law;
}

#define assert_near(x, want, rel) assert_near_at (__LINE__, (x), (want), (rel))

static void
assert_near_at (int line, double x, double want, double rel)
{
  if (!(fabs (x - want) <= rel * fabs (want)))
    g_test_message ("line %d: %.10g, wanted %.10g within %g", line, x, want, rel);
  g_assert_true (fabs (x - want) <= rel * fabs (want));
}

static LawPoint
optimal (const Law *law, double flops)
{
  LawBudget b = {.flops = flops};
  LawPoint p = {0};
  GError *error = NULL;
  g_assert_true (law_optimal (law, &b, &p, &error));
  g_assert_no_error (error);
  return p;
}

/* Chinchilla: 70 B parameters, 1.4 T tokens, the compute of Gopher (5.76e23). The corrected fit
 * puts the optimum there; approach 3 of the paper itself does not (40 B, Hoffmann 2022, table 2 and
 * text). L (70 B, 1.4 T) of the printed constants: 1.69 + 0.083 + 0.163 = 1.936, by hand: 406.4 /
 * (7e10)^0.34 = 0.0833, 410.7 / (1.4e12)^0.28 = 0.1632. */
static void
test_chinchilla_point (void)
{
  Law law = besiroglu ();
  LawPoint p = optimal (&law, 5.76e23);
  assert_near (p.params, 70e9, 0.05);
  assert_near (p.tokens, 1.4e12, 0.08);
  g_assert_cmpfloat (p.tokens_per_param, >, 17);
  g_assert_cmpfloat (p.tokens_per_param, <, 23);
  Law printed = additive (1.69, 406.4, 410.7, 0.34, 0.28);
  LawRun run = {.active = 70e9, .tokens = 1.4e12};
  assert_near (law_loss (&printed, &run), 1.9364, 1e-3);
  p = optimal (&printed, 5.76e23);
  g_assert_cmpfloat (p.params, <, 45e9);
  g_assert_cmpfloat (p.tokens_per_param, >, 60);
}

/* Hoffmann 2022, table A3, approach 3: size, FLOPs, tokens. Its slope (0.4587 over these rows) and
 * that of the known digits of the constants (0.2849 / 0.6241 = 0.4565) differ by what the early
 * stop of the minimiser left open: 7 % in N from 1e23 to 1e27. */
static void
test_hoffmann_table_a3 (void)
{
  static const double rows[][3] = {{4e8, 2.21e19, 9.2e9},     {1e9, 1.62e20, 27.1e9},
                                   {1e10, 2.46e22, 410.1e9},  {67e9, 1.71e24, 4.1e12},
                                   {175e9, 1.26e25, 12.0e12}, {280e9, 3.52e25, 20.1e12},
                                   {520e9, 1.36e26, 43.5e12}, {1e12, 5.65e26, 94.1e12}};
  Law law = additive (1.6934, 406.4, 410.7, 0.3392, 0.2849);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    LawPoint p = optimal (&law, rows[i][1]);
    assert_near (p.params, rows[i][0], 0.07);
    assert_near (p.tokens, rows[i][2], 0.12);
  }
}

/* At an optimum under C = k N D: alpha A/N^alpha = beta B/D^beta, and 1 % to either side is worse.
 */
static void
test_first_order (void)
{
  const Law laws[] = {besiroglu (), additive (1.45, 33.66, 138.9, 0.18, 0.24)};
  for (guint i = 0; i < G_N_ELEMENTS (laws); i++)
    for (double c = 1e18; c < 1e27; c *= 100) {
      LawPoint p = optimal (&laws[i], c);
      assert_near (laws[i].alpha * laws[i].a / pow (p.params, laws[i].alpha),
                   laws[i].beta * laws[i].b / pow (p.tokens, laws[i].beta), 1e-9);
      assert_near (6 * p.params * p.tokens, c, 1e-12);
      for (int side = -1; side <= 1; side += 2) {
        LawRun run = {.active = p.params * (1 + 0.01 * side),
                      .tokens = p.tokens / (1 + 0.01 * side)};
        g_assert_cmpfloat (law_loss (&laws[i], &run), >, p.loss);
      }
    }
}

/* Kaplan: L (N) -> (Nc/N)^0.076, L (D) -> (Dc/D)^0.103 in the limits; under C = 6 N D the optimum
 * grows as N ~ C^(1 / (1 + alpha_N / alpha_D)) = C^0.5754; published exponents 0.73 and 0.27 belong
 * to the frontier of table 6, at 1 PF-day 1.3e9 parameters. L (C) = (3.1e8 / C)^0.05: factor
 * 10^-0.05 a decade. Overfitting line: D ~ 5e3 N^0.74 (equation 4.4): the exponent alpha_N /
 * alpha_D = 0.738. */
static void
test_kaplan (void)
{
  Law law = kaplan ();
  LawRun big_data = {.active = 1e9, .tokens = 1e22}, big_model = {.active = 1e22, .tokens = 1e10};
  assert_near (law_loss (&law, &big_data), pow (6.4e13 / 1e9, 0.076), 1e-6);
  assert_near (law_loss (&law, &big_model), pow (1.8e13 / 1e10, 0.103), 1e-3);
  assert_near (law_loss_floor (&law, &big_data), pow (6.4e13 / 1e9, 0.076), 1e-12);
  LawPoint p = optimal (&law, 1e20), q = optimal (&law, 1e22);
  assert_near (log (q.params / p.params) / log (100), 1 / (1 + 0.076 / 0.103), 1e-9);
  for (int side = -1; side <= 1; side += 2) {
    LawRun run = {.active = p.params * (1 + 0.01 * side), .tokens = p.tokens / (1 + 0.01 * side)};
    g_assert_cmpfloat (law_loss (&law, &run), >, p.loss);
  }
  assert_near (law.alpha / law.beta, 0.74, 0.01);

  Law compute;
  law_init (&compute);
  compute.form = LAW_FRONTIER;
  compute.n_coef = 1.3e9;
  compute.n_exp = 0.73;
  compute.d_coef = 2e10;
  compute.d_exp = 0.27;
  compute.l_coef = 3.1e8;
  compute.l_exp = 0.05;
  compute.c_unit_flops = LAW_PFDAY_FLOPS;
  p = optimal (&compute, LAW_PFDAY_FLOPS);
  assert_near (p.params, 1.3e9, 1e-12);
  assert_near (p.tokens, 2e10, 1e-12);
  q = optimal (&compute, 10 * LAW_PFDAY_FLOPS);
  assert_near (log10 (q.params / p.params), 0.73, 1e-9);
  assert_near (log10 (q.tokens / p.tokens), 0.27, 1e-9);
  assert_near (q.loss / p.loss, pow (10, -0.05), 1e-9);
  LawBudget b = {0};
  g_assert_true (law_optimal_for_loss (&compute, &b, q.loss, &p, NULL));
  assert_near (p.flops, 10 * LAW_PFDAY_FLOPS, 1e-9);
}

/* (Nc/N)^alpha = Nc^alpha / N^alpha: the power sum is the additive curve. */
static void
test_power_sum (void)
{
  Law law = besiroglu (), sum = law;
  sum.form = LAW_POWER_SUM;
  sum.nc = pow (law.a, 1 / law.alpha);
  sum.dc = pow (law.b, 1 / law.beta);
  sum.a = sum.b = 0;
  for (double n = 1e7; n < 1e12; n *= 10) {
    LawRun run = {.active = n, .tokens = 30 * n};
    assert_near (law_loss (&sum, &run), law_loss (&law, &run), 1e-12);
  }
  LawPoint p = optimal (&law, 1e23), q = optimal (&sum, 1e23);
  assert_near (q.params, p.params, 1e-9);
  g_assert_true (law_check (&sum, NULL));
}

/* Loss falls with N and with D, and is above E: over the forms. */
static void
test_monotone (void)
{
  const Law laws[] = {besiroglu (), kaplan (), ludziejewski (), muennighoff ()};
  for (guint i = 0; i < G_N_ELEMENTS (laws); i++) {
    double last = INFINITY;
    for (double d = 1e9; d < 1e15; d *= 3) {
      LawRun run = {.active = 1e9, .tokens = d, .experts = 8};
      double l = law_loss (&laws[i], &run);
      g_assert_cmpfloat (l, <, last);
      g_assert_cmpfloat (l, >, law_loss_floor (&laws[i], &run));
      last = l;
    }
    last = INFINITY;
    for (double n = 1e7; n < 1e13; n *= 3) {
      LawRun run = {.active = n, .tokens = 1e11, .experts = 8};
      g_assert_cmpfloat (law_loss (&laws[i], &run), <, last);
      last = law_loss (&laws[i], &run);
    }
  }
}

/* Muennighoff's worked example: U 1, 5 epochs, R* 3: D' = 1 + 3 (1 - exp (-4/3)) = 3.2092; endless
 * repetition U (1 + R*) = 4. His U_N = 0.051 U_D. One epoch changes nothing. Four epochs are nearly
 * as good as new data (his section 6): loss within 1 %. */
static void
test_repetition (void)
{
  Law law = muennighoff ();
  Law three = law;
  three.rd_star = 3;
  assert_near (law_effective_tokens (&three, 5, 1), 1 + 3 * (1 - exp (-4.0 / 3)), 1e-12);
  assert_near (law_effective_tokens (&three, 1000, 1), 4, 1e-9);
  g_assert_cmpfloat (law_effective_tokens (&law, 7e9, 7e9), ==, 7e9);
  g_assert_cmpfloat (law_effective_tokens (&law, 7e9, 0), ==, 7e9);
  g_assert_cmpfloat (law_effective_params (&law, 5e8, 1e10), ==, 5e8); /* below U_N */
  /* far above U_N = 0.051 U: N' -> U_N (1 + R*_N) */
  assert_near (law_effective_params (&law, 1e15, 1e10), 0.051 * 1e10 * (1 + 5.309743), 0.01);
  LawRun fresh = {.active = 1e9, .tokens = 8e10};
  LawRun four = {.active = 1e9, .tokens = 8e10, .unique_tokens = 2e10};
  LawRun forty = {.active = 1e9, .tokens = 8e10, .unique_tokens = 2e9};
  double l = law_loss (&law, &fresh);
  g_assert_cmpfloat (law_loss (&law, &four), >, l);
  g_assert_cmpfloat (law_loss (&law, &four) / l, <, 1.01);
  g_assert_cmpfloat (law_loss (&law, &forty), >, law_loss (&law, &four));
}

/* With few unique tokens the optimum goes to more epochs, and no grid of sizes does better. */
static void
test_repetition_optimum (void)
{
  Law law = muennighoff ();
  LawBudget b = {.flops = 1e22, .unique_tokens = 1e10};
  LawPoint p, free_p = optimal (&law, 1e22);
  g_assert_true (law_optimal (&law, &b, &p, NULL));
  g_assert_cmpfloat (p.loss, >, free_p.loss);
  assert_near (p.epochs, p.tokens / 1e10, 1e-12);
  g_assert_cmpfloat (p.epochs, >, 1);
  assert_near (6 * p.params * p.tokens, 1e22, 1e-9);
  /* excess parameters decay faster than epochs: more tokens per parameter than without the limit */
  g_assert_cmpfloat (p.tokens_per_param, >, free_p.tokens_per_param);
  for (double n = 1e7; n < 1e13; n *= 1.07) {
    LawRun run = {.active = n, .tokens = 1e22 / (6 * n), .unique_tokens = 1e10};
    g_assert_cmpfloat (law_loss (&law, &run), >=, p.loss - 1e-12);
  }
  b.unique_tokens = 1e13; /* more than wanted: the free optimum */
  g_assert_true (law_optimal (&law, &b, &p, NULL));
  assert_near (p.params, free_p.params, 1e-9);
}

/* Ludziejewski 2025, table of compute-optimal splits: FLOPs, experts, N_act, D. */
static void
test_joint_moe (void)
{
  static const double rows[][4] = {
      {1e20, 1, 1.7e9, 9.7e9},   {1e20, 4, 1.2e9, 13.9e9},   {1e20, 8, 990e6, 17e9},
      {1e20, 16, 810e6, 20.7e9}, {1e21, 4, 4.4e9, 38e9},     {1e21, 8, 3.8e9, 44.3e9},
      {1e21, 16, 3.3e9, 51.2e9}, {1e22, 4, 15.8e9, 105.4e9}, {1e22, 8, 14.4e9, 115.8e9}};
  Law law = ludziejewski ();
  double last = INFINITY;
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    LawBudget b = {.flops = rows[i][0], .experts = rows[i][1], .total_ratio = rows[i][1]};
    LawPoint p;
    g_assert_true (law_optimal (&law, &b, &p, NULL));
    assert_near (p.params, rows[i][2], 0.03);
    assert_near (p.tokens, rows[i][3], 0.03);
    assert_near (p.total_params, p.params * MAX (1, rows[i][1]), 1e-12);
    if (rows[i][0] == 1e20) /* more experts, less loss for the same compute */
      g_assert_cmpfloat (p.loss, <, last);
    last = p.loss;
  }
}

/* Krajewski 2024: 64 x 7 B, G 32, 137.6 B tokens has loss 2.076 by the paper. N are all parameters:
 * attention 4 d^2 and MLP 64 x 8 d^2 a layer, 43 times the dense 12 d^2. Two digits of its
 * exponents leave 1 %. Finer experts are better. */
static void
test_granular_moe (void)
{
  Law law = additive (0.47, 18.1, 30.8, 0.115, 0.147);
  law.form = LAW_GRANULAR;
  law.g = 2.1;
  law.gamma = 0.58;
  LawRun run = {.active = 7e9, .total = 43 * 7e9, .tokens = 137.6e9, .granularity = 32};
  assert_near (law_loss (&law, &run), 2.076, 0.012);
  LawRun coarse = run;
  coarse.granularity = 1;
  g_assert_cmpfloat (law_loss (&law, &coarse), >, law_loss (&law, &run));
  LawBudget b = {.flops = 1e21, .total_ratio = 43, .granularity = 16};
  LawPoint p;
  g_assert_true (law_optimal (&law, &b, &p, NULL));
  for (int side = -1; side <= 1; side += 2) {
    LawRun near = {.active = p.params * (1 + 0.02 * side),
                   .total = 43 * p.params * (1 + 0.02 * side),
                   .tokens = p.tokens / (1 + 0.02 * side),
                   .granularity = 16};
    g_assert_cmpfloat (law_loss (&law, &near), >, p.loss);
  }
}

/* Dense laws on a mixture: N = active, total or their geometric mean. */
static void
test_moe_counts (void)
{
  Law law = besiroglu ();
  LawRun run = {.active = 37e9, .total = 671e9, .tokens = 14.8e12};
  const double want[] = {37e9, 671e9, sqrt (37e9 * 671e9)};
  double last = INFINITY;
  for (guint c = LAW_COUNT_ACTIVE; c <= LAW_COUNT_GEOMETRIC; c++) {
    run.count = (LawCount)c;
    assert_near (law_run_params (&law, &run), want[c], 1e-12);
    LawBudget b = {.flops = 1e24, .total_ratio = 18, .count = run.count};
    LawPoint p;
    g_assert_true (law_optimal (&law, &b, &p, NULL));
    assert_near (6 * p.params * p.tokens, 1e24, 1e-12);
    for (int side = -1; side <= 1; side += 2) {
      LawRun near = {.active = p.params * (1 + 0.01 * side),
                     .total = 18 * p.params * (1 + 0.01 * side),
                     .tokens = p.tokens / (1 + 0.01 * side),
                     .count = run.count};
      g_assert_cmpfloat (law_loss (&law, &near), >, p.loss);
    }
    if (c == LAW_COUNT_TOTAL)
      g_assert_cmpfloat (p.loss, <, last);
    last = p.loss;
  }
}

/* Tokens for a loss invert the loss; compute for a loss inverts the optimum. */
static void
test_inverses (void)
{
  const Law laws[] = {besiroglu (), kaplan (), ludziejewski (), muennighoff ()};
  for (guint i = 0; i < G_N_ELEMENTS (laws); i++) {
    LawRun run = {.active = 8e9, .tokens = 3e11, .experts = 4};
    double tokens, loss = law_loss (&laws[i], &run);
    g_assert_true (law_tokens_for_loss (&laws[i], &run, loss, &tokens, NULL));
    assert_near (tokens, 3e11, 1e-9);
    LawBudget b = {.flops = 1e22, .experts = 4};
    LawPoint p, q;
    g_assert_true (law_optimal (&laws[i], &b, &p, NULL));
    g_assert_true (law_optimal_for_loss (&laws[i], &b, p.loss, &q, NULL));
    assert_near (q.flops, 1e22, 1e-6);
    assert_near (q.params, p.params, 1e-3);
    assert_near (q.loss, p.loss, 1e-9);
  }
}

static void
assert_refused (gboolean ok, GError *error, LawError code, const char *part)
{
  g_assert_false (ok);
  g_assert_error (error, LAW_ERROR, (gint)code);
  if (strstr (error->message, part) == NULL)
    g_test_message ("%s", error->message);
  g_assert_nonnull (strstr (error->message, part));
  g_assert_null (strchr (error->message, '\n'));
  g_error_free (error);
}

static void
test_refusals (void)
{
  Law law = besiroglu (), frontier;
  law_init (&frontier);
  frontier.form = LAW_FRONTIER;
  frontier.n_coef = frontier.d_coef = frontier.n_exp = frontier.d_exp = 0.5;
  LawRun run = {.active = 1e8};
  LawBudget b = {.flops = -1}, few = {.unique_tokens = 1e6};
  LawPoint p;
  double tokens;
  GError *e = NULL;
  gboolean ok = law_tokens_for_loss (&law, &run, 1.9, &tokens, &e);
  assert_refused (ok, e, LAW_ERROR_UNREACHABLE, "above 2.6");
  e = NULL;
  ok = law_tokens_for_loss (&frontier, &run, 1.9, &tokens, &e);
  assert_refused (ok, e, LAW_ERROR_UNSUPPORTED, "best split");
  e = NULL;
  ok = law_optimal (&law, &b, &p, &e);
  assert_refused (ok, e, LAW_ERROR_RANGE, "budget");
  e = NULL;
  ok = law_optimal_for_loss (&law, &b, 1.8, &p, &e);
  assert_refused (ok, e, LAW_ERROR_UNREACHABLE, "above 1.817");
  e = NULL;
  b.total_ratio = 0.5;
  ok = law_optimal (&law, &b, &p, &e);
  assert_refused (ok, e, LAW_ERROR_RANGE, "total");
  Law repeated = muennighoff ();
  e = NULL;
  ok = law_optimal_for_loss (&repeated, &few, 2.0, &p, &e);
  assert_refused (ok, e, LAW_ERROR_UNREACHABLE, "unique");
  g_assert_true (isnan (law_loss (&frontier, &(LawRun){.active = 1, .tokens = 1})));
  Law bad = law;
  bad.alpha = -0.3;
  e = NULL;
  ok = law_check (&bad, &e);
  assert_refused (ok, e, LAW_ERROR_RANGE, "alpha");
}

/* 1 day of 8 GPUs of 1e15 FLOP/s at MFU 0.4: 86400 x 8 x 4e14; the same GPU-hours for money. */
static void
test_budgets (void)
{
  assert_near (law_flops_of_days (1, 8, 1e15, 0.4), 86400.0 * 8 * 4e14, 1e-12);
  assert_near (law_flops_of_usd (8 * 24 * 2.5, 2.5, 1e15, 0.4), 86400.0 * 8 * 4e14, 1e-12);
  assert_near (law_flops_of_days (1, 1, 1e15, 1), LAW_PFDAY_FLOPS, 1e-12);
  assert_near (law_flops_of_days (2, 3, 5, 0.5), 2 * 3 * law_flops_of_days (1, 1, 5, 0.5), 1e-12);
}

/* Dimensions: tokens counted in thousands (D / 1000, B / 1000^beta) and k in kFLOP per thousand
 * tokens give the same model; twice k for the same N and D is twice the compute. */
static void
test_dimensions (void)
{
  Law law = besiroglu (), kilo = law;
  kilo.b = law.b / pow (1000, law.beta);
  LawBudget b = {.flops = 1e22}, bk = {.flops = 1e22, .flops_per_param_token = 6000};
  LawPoint p, q;
  g_assert_true (law_optimal (&law, &b, &p, NULL));
  g_assert_true (law_optimal (&kilo, &bk, &q, NULL));
  assert_near (q.params, p.params, 1e-9);
  assert_near (q.tokens * 1000, p.tokens, 1e-9);
  assert_near (q.loss, p.loss, 1e-12);
  LawBudget twice = {.flops = 2e22, .flops_per_param_token = 12};
  g_assert_true (law_optimal (&law, &twice, &q, NULL));
  assert_near (q.params, p.params, 1e-12);
}

/* Over-training by k at the same compute: N* / sqrt k, D* sqrt k; k = 1 costs nothing. Break-even:
 * 6 N D + 2 N T = C_opt + 2 N_opt T. Llama 3 8B on 15 T tokens, by the corrected fit: some 90 to
 * 110 times Chinchilla's ratio at its compute. */
static void
test_overtrain (void)
{
  Law law = besiroglu ();
  LawBudget b = {.flops = 1e23};
  LawPoint best = optimal (&law, 1e23);
  LawOvertrain o;
  g_assert_true (law_overtrain_by (&law, &b, 1, &o, NULL));
  assert_near (o.run.params, best.params, 1e-9);
  g_assert_cmpfloat (o.loss_penalty, <, 1e-12);
  assert_near (o.compute_factor, 1, 1e-9);
  double last = 0;
  for (double k = 2; k < 200; k *= 2) {
    g_assert_true (law_overtrain_by (&law, &b, k, &o, NULL));
    assert_near (o.ratio, k, 1e-9);
    assert_near (o.run.params, best.params / sqrt (k), 1e-9);
    assert_near (o.run.flops, 1e23, 1e-9);
    g_assert_cmpfloat (o.loss_penalty, >, last);
    last = o.loss_penalty;
    assert_near (o.same_loss.loss, o.run.loss, 1e-9);
    g_assert_cmpfloat (o.inference_saving, >, 0);
    double t = o.break_even_tokens;
    assert_near (o.run.flops + 2 * o.run.params * t, o.same_loss.flops + 2 * o.same_loss.params * t,
                 1e-9);
  }
  LawRun llama = {.active = 8.03e9, .tokens = 15e12};
  g_assert_true (law_overtrain (&law, &llama, &(LawBudget){0}, &o, NULL));
  g_assert_cmpfloat (o.ratio, >, 80);
  g_assert_cmpfloat (o.ratio, <, 120);
  /* a note in the literature puts the compute above the frontier at 5.5 times for these constants
   */
  assert_near (o.compute_factor, 5.5, 0.06);
  LawRun large = {.active = 175e9, .tokens = 3e11}; /* GPT-3: too large for its tokens */
  g_assert_true (law_overtrain (&law, &large, &(LawBudget){0}, &o, NULL));
  g_assert_cmpfloat (o.ratio, <, 0.2);
  g_assert_cmpfloat (o.inference_saving, <, 0);
  g_assert_true (isnan (o.break_even_tokens));
}

/* Sardana: without inference the compute-optimal model; with more of it a smaller one on more
 * tokens, of the same loss; first-order condition eps_N / eps_D = 1 + T / (3 D), with eps the
 * elasticities alpha A/N^alpha and beta B/D^beta. */
static void
test_lifetime (void)
{
  Law law = besiroglu ();
  LawBudget b = {0};
  LawPoint p, q;
  double loss = optimal (&law, 1e23).loss, last = INFINITY;
  g_assert_true (law_lifetime_optimal (&law, &b, loss, 0, &p, NULL));
  assert_near (p.flops, 1e23, 1e-9);
  for (double t = 1e11; t < 1e15; t *= 10) {
    g_assert_true (law_lifetime_optimal (&law, &b, loss, t, &q, NULL));
    g_assert_cmpfloat (q.params, <, last);
    last = q.params;
    assert_near (q.loss, loss, 1e-9);
    double u = law.alpha * law.a / pow (q.params, law.alpha),
           v = law.beta * law.b / pow (q.tokens, law.beta);
    assert_near (u / v, 1 + t / (3 * q.tokens), 1e-4);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/law/chinchilla-point", test_chinchilla_point);
  g_test_add_func ("/law/hoffmann-table-a3", test_hoffmann_table_a3);
  g_test_add_func ("/law/first-order", test_first_order);
  g_test_add_func ("/law/kaplan", test_kaplan);
  g_test_add_func ("/law/power-sum", test_power_sum);
  g_test_add_func ("/law/monotone", test_monotone);
  g_test_add_func ("/law/repetition", test_repetition);
  g_test_add_func ("/law/repetition-optimum", test_repetition_optimum);
  g_test_add_func ("/law/joint-moe", test_joint_moe);
  g_test_add_func ("/law/granular-moe", test_granular_moe);
  g_test_add_func ("/law/moe-counts", test_moe_counts);
  g_test_add_func ("/law/inverses", test_inverses);
  g_test_add_func ("/law/refusals", test_refusals);
  g_test_add_func ("/law/budgets", test_budgets);
  g_test_add_func ("/law/dimensions", test_dimensions);
  g_test_add_func ("/law/overtrain", test_overtrain);
  g_test_add_func ("/law/lifetime", test_lifetime);
  return g_test_run ();
}
