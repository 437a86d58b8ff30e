/* cal_cpu: the samples of one core: GEMM through OpenBLAS in the three layouts of a layer, the
 * memory-bound kernels of a transformer, and the core's own figures. JSON lines on stdout.
 * usage: cal_cpu [--minutes M] [--seed N]
 *
 * Every point: a warm-up, repeats until they lasted 60 ms (5 at least), the median; buffers are
 * rotated through more memory than the last-level cache share of a step, as a step would find them;
 * operands are random; the first GEMM of each layout is checked against a plain triple loop. The
 * most informative points come first; what the budget does not reach is counted in a left_out line.
 */
#include "cal_priority.h"
#include "cpu_ops.h"

#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { POOL = 1 << 24 }; /* floats: 64 MiB, rotated through */

enum { TOKENS = 4096 };

typedef struct {
  float *pool;
  size_t at;
  unsigned long long random_state;
  int target[TOKENS], token[TOKENS];
  double end_s;
  int samples, left_out;
  char device[96], date[16], versions[160];
} Cal;

static double
uniform (Cal *c)
{
  c->random_state ^= c->random_state << 13;
  c->random_state ^= c->random_state >> 7;
  c->random_state ^= c->random_state << 17;
  return (double)(c->random_state >> 11) * 0x1p-53;
}

/* The next n floats of the pool. */
static float *
take (Cal *c, size_t n)
{
  n = (n + 15) & ~(size_t)15;
  if (n > POOL) {
    fprintf (stderr, "cal_cpu: a buffer of %zu floats is too large\n", n);
    exit (1);
  }
  if (c->at + n > POOL)
    c->at = 0;
  c->at += n;
  return c->pool + c->at - n;
}

static int
compare (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

typedef void (*Run) (Cal *c, const void *point);

typedef struct {
  double median, p10, p90;
  int n;
} Timing;

static Timing
measure (Cal *c, Run run, const void *point)
{
  enum { MOST = 200 };
  double t[MOST], sum = 0;
  Timing out = {0, 0, 0, 0};
  run (c, point);
  while (out.n < MOST && (out.n < 5 || sum < 0.06)) {
    double start = op_now_s ();
    run (c, point);
    t[out.n] = op_now_s () - start;
    sum += t[out.n++];
  }
  qsort (t, (size_t)out.n, sizeof *t, compare);
  out.median = t[out.n / 2];
  out.p10 = t[out.n / 10];
  out.p90 = t[out.n * 9 / 10];
  return out;
}

static void
print_head (Cal *c, const char *kind)
{
  printf ("{\"kind\": \"%s\", \"device\": \"%s\", \"date\": \"%s\", \"versions\": \"%s\"", kind,
          c->device, c->date, c->versions);
}

static void
print_timing (Cal *c, const Timing *t)
{
  printf (", \"time_us\": %.3f, \"p10_us\": %.3f, \"p90_us\": %.3f, \"reps\": %d}\n",
          t->median * 1e6, t->p10 * 1e6, t->p90 * 1e6, t->n);
  fflush (stdout);
  c->samples++;
}

/* ---- GEMM ---- */

typedef struct {
  int m, n, k, batch, role; /* of C[m,n], k summed */
} Gemm;

static const char *const roles[] = {"forward", "dgrad", "wgrad"};

static void
run_gemm (Cal *c, const void *point)
{
  const Gemm *g = point;
  for (int b = 0; b < g->batch; b++) {
    float *x = take (c, (size_t)g->m * (size_t)g->k), *w = take (c, (size_t)g->n * (size_t)g->k);
    float *y = take (c, (size_t)g->m * (size_t)g->n);
    if (g->role == 0)
      op_linear (g->m, g->n, g->k, x, w, y);
    else if (g->role == 1)
      op_dgrad (g->m, g->k, g->n, x, w, y);
    else
      op_wgrad (g->k, g->m, g->n, x, w, y);
  }
}

/* Every layout once against a triple loop in double; the program ends when one is wrong. */
static void
check_gemm (Cal *c)
{
  enum { M = 19, N = 23, K = 29 };
  float *x = take (c, M * K), *w = take (c, N * K), *y = take (c, M * N);
  for (int role = 0; role < 3; role++) {
    memset (y, 0, sizeof (float) * M * N);
    if (role == 0)
      op_linear (M, N, K, x, w, y);
    else if (role == 1)
      op_dgrad (M, K, N, x, w, y);
    else
      op_wgrad (K, M, N, x, w, y);
    for (int i = 0; i < M; i++)
      for (int j = 0; j < N; j++) {
        double sum = 0;
        for (int k = 0; k < K; k++)
          sum += (double)(role == 2 ? x[k * M + i] : x[i * K + k]) *
                 (double)(role == 0 ? w[j * K + k] : w[k * N + j]);
        if (fabs (sum - (double)y[i * N + j]) > 1e-4) {
          fprintf (stderr, "cal_cpu: the %s GEMM is wrong\n", roles[role]);
          exit (1);
        }
      }
  }
}

static void
sample_gemm (Cal *c, const Gemm *g)
{
  if (op_now_s () > c->end_s) {
    c->left_out++;
    return;
  }
  Timing t = measure (c, run_gemm, g);
  print_head (c, "gemm");
  printf (
      ", \"dtype\": \"fp32\", \"role\": \"%s\", \"m\": %d, \"n\": %d, \"k\": %d, \"batch\": %d, "
      "\"accumulate\": %s, \"mode\": \"sustained\", \"library\": \"OpenBLAS\"",
      roles[g->role], g->m, g->n, g->k, g->batch, g->role == 2 ? "true" : "false");
  print_timing (c, &t);
}

/* The three GEMMs of linears as layers have them: tokens x (in -> out). */
static void
layer_gemms (Cal *c)
{
  static const int tokens[] = {256, 128, 512, 1024}, hidden[] = {256, 512, 384, 768, 1024};
  for (unsigned t = 0; t < sizeof tokens / sizeof *tokens; t++)
    for (unsigned h = 0; h < sizeof hidden / sizeof *hidden; h++) {
      int T = tokens[t], H = hidden[h];
      const int shapes[][2] = {{3 * H, H}, {4 * H, H}, {H, 4 * H}, {H, H}}; /* out, in */
      for (int s = 0; s < 4; s++) {
        int out = shapes[s][0], in = shapes[s][1];
        const Gemm all[] = {{T, out, in, 1, 0}, {T, in, out, 1, 1}, {out, in, T, 1, 2}};
        /* a third of the grid each way round, so that a short budget still sees all layouts */
        for (int r = 0; r < 3; r++)
          if ((double)T * out * in < 3e8 && (t + h + (unsigned)s + (unsigned)r) % 2 == 0)
            sample_gemm (c, &all[r]);
      }
    }
}

/* Attention's batched GEMMs, and shapes spread over the space of sizes. */
static void
other_gemms (Cal *c, int count)
{
  for (int s = 128; s <= 512; s *= 2)
    for (int hd = 32; hd <= 128; hd *= 2) {
      const Gemm scores = {s, s, hd, 4, 0}, values = {s, hd, s, 4, 1};
      sample_gemm (c, &scores);
      sample_gemm (c, &values);
    }
  for (int i = 0; i < count; i++) {
    Gemm g = {(int)exp (3 + 4 * uniform (c)), (int)exp (3 + 4.5 * uniform (c)),
              (int)exp (3 + 4.5 * uniform (c)), 1, (int)(3 * uniform (c))};
    g.m = (g.m + 7) & ~7;
    g.n = (g.n + 7) & ~7;
    g.k = (g.k + 7) & ~7;
    sample_gemm (c, &g);
  }
}

/* ---- memory-bound kernels ---- */

typedef struct {
  const char *op;
  int rows, width;
  double bytes; /* a call */
  Run run;
} Mem;

static void
run_triad (Cal *c, const void *point)
{
  const Mem *p = point;
  size_t n = (size_t)p->rows * (size_t)p->width;
  float *a = take (c, n), *b = take (c, n), *y = take (c, n);
  op_triad ((long)n, a, b, y);
}

static void
run_add (Cal *c, const void *point)
{
  const Mem *p = point;
  size_t n = (size_t)p->rows * (size_t)p->width;
  float *a = take (c, n), *b = take (c, n), *y = take (c, n);
  op_add ((long)n, a, b, y);
}

static void
run_relu (Cal *c, const void *point)
{
  const Mem *p = point;
  size_t n = (size_t)p->rows * (size_t)p->width;
  op_relu ((long)n, take (c, n));
}

static void
run_norm (Cal *c, const void *point)
{
  const Mem *p = point;
  size_t n = (size_t)p->rows * (size_t)p->width;
  float *x = take (c, n), *y = take (c, n);
  op_norm (p->rows, p->width, x, take (c, (size_t)p->width), y, take (c, (size_t)p->rows));
}

static void
run_norm_back (Cal *c, const void *point)
{
  const Mem *p = point;
  size_t n = (size_t)p->rows * (size_t)p->width;
  float *x = take (c, n), *dy = take (c, n), *dx = take (c, n);
  op_norm_back (p->rows, p->width, x, take (c, (size_t)p->width), take (c, (size_t)p->rows), dy, dx,
                take (c, (size_t)p->width));
}

static void
run_softmax (Cal *c, const void *point)
{
  const Mem *p = point;
  size_t n = (size_t)p->width * (size_t)p->width;
  for (int i = 0; i < p->rows; i++)
    op_softmax (p->width, 0.125f, take (c, n));
}

static void
run_softmax_back (Cal *c, const void *point)
{
  const Mem *p = point;
  size_t n = (size_t)p->width * (size_t)p->width;
  for (int i = 0; i < p->rows; i++) {
    float *a = take (c, n);
    op_softmax_back (p->width, 0.125f, a, take (c, n));
  }
}

static void
run_loss (Cal *c, const void *point)
{
  const Mem *p = point;
  float *logits = take (c, (size_t)p->rows * (size_t)p->width), *inv = take (c, (size_t)p->rows);
  (void)op_loss (p->rows, p->width, logits, c->target, inv);
  op_loss_back (p->rows, p->width, logits, c->target, inv, 1e-3f);
  for (long i = 0; i < 64; i++)
    logits[i] = 0.1f; /* stay away from denormal numbers */
}

static void
run_adam (Cal *c, const void *point)
{
  const Mem *p = point;
  size_t n = (size_t)p->rows * (size_t)p->width;
  float *w = take (c, n), *g = take (c, n), *m = take (c, n), *v = take (c, n);
  for (size_t i = 0; i < n; i += 4096)
    v[i] = fabsf (v[i]);
  op_adam ((long)n, 1e-6f, 1, 10, w, g, m, v);
}

static void
run_embed (Cal *c, const void *point)
{
  const Mem *p = point;
  float *table = take (c, (size_t)1024 * (size_t)p->width);
  op_embed (p->rows, p->width, c->token, table, take (c, (size_t)p->rows * (size_t)p->width));
}

static void
refill (Cal *c)
{
  for (size_t i = 0; i < POOL; i++)
    c->pool[i] = (float)(uniform (c) - 0.5);
}

static void
sample_memory (Cal *c, const Mem *p)
{
  if (op_now_s () > c->end_s) {
    c->left_out++;
    return;
  }
  Timing t = measure (c, p->run, p);
  print_head (c, "memory");
  printf (", \"op\": \"%s\", \"bytes\": %.0f", p->op, p->bytes);
  print_timing (c, &t);
}

static void
memory_kernels (Cal *c)
{
  static const int rows[] = {256, 512, 1024}, widths[] = {256, 512, 1024};
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      int r = rows[i], w = widths[j];
      double n = (double)r * w;
      /* vectors of the optimizer are those of a layer's weights: 12 w^2 */
      const Mem all[] = {
          {"elementwise", r, w, 12 * n, run_add},  {"elementwise", r, 4 * w, 32 * n, run_relu},
          {"norm_fwd", r, w, 8 * n, run_norm},     {"norm_bwd", r, w, 12 * n, run_norm_back},
          {"stream", r, 4 * w, 48 * n, run_triad}, {"xent", r, 2 * w, 40 * n, run_loss},
          {"embedding", r, w, 8 * n, run_embed}};
      for (unsigned k = 0; k < sizeof all / sizeof *all; k++)
        sample_memory (c, &all[k]);
      if (j == i) {
        const Mem square[] = {{"optimizer", w, 4 * w, 32.0 * 4 * w * w, run_adam},
                              {"softmax_fwd", 4, r / 2, 8.0 * r * r, run_softmax},
                              {"softmax_bwd", 4, r / 2, 12.0 * r * r, run_softmax_back},
                              {"softmax_fwd", 4, r / 4, 2.0 * r * r, run_softmax},
                              {"softmax_bwd", 4, r / 4, 3.0 * r * r, run_softmax_back}};
        for (unsigned k = 0; k < sizeof square / sizeof *square; k++)
          sample_memory (c, &square[k]);
        refill (c);
      }
    }
}

/* ---- the core ---- */

static void
device_name (char *out, size_t n)
{
  char line[256];
  FILE *f = fopen ("/proc/cpuinfo", "r");
  snprintf (out, n, "CPU core");
  while (f != NULL && fgets (line, sizeof line, f) != NULL) {
    char *colon = strchr (line, ':');
    if (strncmp (line, "model name", 10) != 0 || colon == NULL)
      continue;
    colon[strcspn (colon, "\n")] = '\0';
    snprintf (out, n, "1 core of %.60s", colon + 2);
    break;
  }
  if (f != NULL)
    fclose (f);
  for (char *p = out; *p != '\0'; p++)
    if (*p == '"' || *p == '\\' || *p < 32)
      *p = ' ';
}

/* "Linux 6.1.0, OpenBLAS 0.3.21 … Zen": the kernel, and the library with the code path it took. */
static void
name_versions (char *out, size_t n)
{
  struct utsname u;
  const char *system = uname (&u) == 0 ? u.release : "unknown";
  snprintf (out, n, "Linux %.40s, %.100s", system, op_library ());
  for (char *p = out; *p != '\0'; p++)
    if (*p == '"' || *p == '\\' || *p < 32)
      *p = ' ';
}

static void
print_device (Cal *c)
{
  static const Mem triad = {"stream", 512, 2048, 12.0 * 512 * 2048, run_triad};
  double peak = op_peak_flops (0.5);
  Timing t = measure (c, run_triad, &triad);
  print_head (c, "device");
  printf (
      ", \"sm_count\": 1, \"memory_GiB\": %.2f, \"hbm_GBps\": %.2f, \"peak_TFLOPs\": {\"fp32\": "
      "%.5f}}\n",
      (double)sysconf (_SC_PHYS_PAGES) * (double)sysconf (_SC_PAGESIZE) / 1073741824.0,
      triad.bytes / t.median * 1e-9, peak * 1e-12);
}

int
main (int argc, char **argv)
{
  double minutes = 1;
  Cal c = {.random_state = 1};
  time_t now = time (NULL);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp (argv[i], "--minutes") == 0)
      minutes = g_ascii_strtod (argv[i + 1], NULL);
    else if (strcmp (argv[i], "--seed") == 0)
      c.random_state = 2 * g_ascii_strtoull (argv[i + 1], NULL, 10) + 1;
  }
  if (argc % 2 == 0 || !(minutes > 0)) {
    fprintf (stderr, "usage: cal_cpu [--minutes M] [--seed N]\n");
    return 2;
  }
  cal_priority ();
  op_init ();
  c.pool = g_aligned_alloc (POOL, sizeof (float), 64);
  for (int i = 0; i < TOKENS; i++) {
    c.target[i] = (int)(uniform (&c) * 256);
    c.token[i] = (int)(uniform (&c) * 1024);
  }
  refill (&c);
  device_name (c.device, sizeof c.device);
  name_versions (c.versions, sizeof c.versions);
  strftime (c.date, sizeof c.date, "%Y-%m-%d", gmtime (&now));
  c.end_s = op_now_s () + 60 * minutes;
  check_gemm (&c);
  print_device (&c);
  memory_kernels (&c);
  refill (&c);
  layer_gemms (&c);
  other_gemms (&c, 60);
  if (c.left_out > 0) {
    print_head (&c, "left_out");
    printf (", \"points\": %d, \"why\": \"the budget of %g minutes\"}\n", c.left_out, minutes);
  }
  print_head (&c, "end");
  printf (", \"samples\": %d}\n", c.samples);
  g_aligned_free (c.pool);
  return 0;
}
