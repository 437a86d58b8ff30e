#include "against.h"

#include <math.h>
#include <string.h>

#include "json_write.h"

enum {
  Q_STEP,
  Q_TFLOPS,
  Q_TOKENS,
  Q_SAMPLES,
  Q_MFU,
  Q_FORWARD_BACKWARD,
  Q_GRADS,
  Q_PARAMS,
  Q_OPTIMIZER,
  Q_ALLOCATED,
  Q_RESERVED,
  Q_BATCH,
  Q_COUNT
};

static const struct {
  const char *name, *unit, *remark;
} quantities[Q_COUNT] = {
    [Q_STEP] = {"step_time", "s", NULL},
    [Q_TFLOPS] = {"model_tflops_per_gpu", "TFLOP/s",
                  "frameworks count operations in their own way"},
    [Q_TOKENS] = {"tokens_per_s_per_gpu", "tokens/s", NULL},
    [Q_SAMPLES] = {"samples_per_s", "1/s", NULL},
    [Q_MFU] = {"mfu", "%", NULL},
    [Q_FORWARD_BACKWARD] = {"forward_backward", "s", "compute, tp, cp, ep, pp and bubble"},
    [Q_GRADS] = {"gradient_reduction", "s", "with parameter gathering: dp_comm"},
    [Q_PARAMS] = {"parameter_gathering", "s", "part of dp_comm"},
    [Q_OPTIMIZER] = {"optimizer", "s", NULL},
    [Q_ALLOCATED] = {"memory_allocated", "GiB", "without CUDA context and NCCL"},
    [Q_RESERVED] = {"memory_peak", "GiB", NULL},
    [Q_BATCH] = {"global_batch", "sequences", NULL},
};

/* DeepSpeed's see_memory_usage; its GB are 2^30 bytes. */
#define SEEN_ALLOCATED "Max_MA "
#define SEEN_RESERVED  "Max_CA "

/* What stands before a number, and what makes our unit of it. */
static const struct {
  const char *before;
  int quantity;
  double scale;
} marks[] = {
    {"elapsed time per iteration (ms):", Q_STEP, 1e-3},
    {"train_step_timing in s:", Q_STEP, 1},
    {"train_step_timing in s=", Q_STEP, 1},
    {"'train_step_timing in s':", Q_STEP, 1},
    {"Step Time :", Q_STEP, 1},
    {"iter time (s):", Q_STEP, 1},
    {"throughput per GPU (TFLOP/s/GPU):", Q_TFLOPS, 1},
    {"TFLOPs:", Q_TFLOPS, 1},
    {"GPU utilization:", Q_TFLOPS, 1},
    {"tflops:", Q_TFLOPS, 1},
    {"tps:", Q_TOKENS, 1},
    {"tokens/sec/gpu:", Q_TOKENS, 1},
    {"tokens-per-second-per-gpu:", Q_TOKENS, 1},
    {"train_samples_per_second':", Q_SAMPLES, 1},
    {"train_samples_per_second\":", Q_SAMPLES, 1},
    {"train_samples_per_second =", Q_SAMPLES, 1},
    {"CurrSamplesPerSec=", Q_SAMPLES, 1},
    {"samples/sec:", Q_SAMPLES, 1},
    {"samples per second:", Q_SAMPLES, 1},
    {"mfu:", Q_MFU, 1},
    {"forward-backward:", Q_FORWARD_BACKWARD, 1e-3},
    {"all-grads-sync:", Q_GRADS, 1e-3},
    {"backward-params-all-reduce:", Q_GRADS, 1e-3},
    {"grads-all-reduce:", Q_GRADS, 1e-3},
    {"grads-reduce-scatter:", Q_GRADS, 1e-3},
    {"params-all-gather:", Q_PARAMS, 1e-3},
    {"optimizer:", Q_OPTIMIZER, 1e-3},
    {"| max allocated:", Q_ALLOCATED, 1.0 / 1024},
    {"| max reserved:", Q_RESERVED, 1.0 / 1024},
    {"MaxMemAllocated=", Q_ALLOCATED, 1},
    {SEEN_ALLOCATED, Q_ALLOCATED, 1},
    {SEEN_RESERVED, Q_RESERVED, 1},
    {"memory:", Q_RESERVED, 1},
    {"global batch size:", Q_BATCH, 1},
};

/* Colours of terminals and the dots between a timer's name and its value are taken out, so that
 * "optimizer .....: (12.1, 13.0)" reads "optimizer: 13.0" (the slowest rank). */
static char *
plain_line (const char *line, gsize len)
{
  GString *out = g_string_sized_new (len);
  for (gsize i = 0; i < len; i++) {
    if (line[i] == '\x1b' && i + 1 < len && line[i + 1] == '[') {
      while (i + 1 < len && !g_ascii_isalpha (line[i]))
        i++;
      continue;
    }
    if (line[i] == ' ' && i + 2 < len && line[i + 1] == '.' && line[i + 2] == '.') {
      gsize k = i + 1;
      while (k < len && line[k] == '.')
        k++;
      if (k < len && line[k] == ':')
        i = k;
    }
    g_string_append_c (out, line[i]);
  }
  return g_string_free (out, FALSE);
}

/* A number after blanks or quotes; of "(min, max)" the second; thousands may be grouped by commas.
 */
static gboolean
number_at (const char *p, double *v)
{
  char digits[64];
  gsize n = 0;
  while (*p == ' ' || *p == '\'' || *p == '"')
    p++;
  if (*p == '(') {
    const char *comma = strchr (p, ',');
    if (comma == NULL)
      return FALSE;
    for (p = comma + 1; *p == ' '; p++)
      ;
  }
  for (; n < sizeof digits - 1 && (g_ascii_isdigit (*p) || strchr ("+-.eE,", *p) != NULL) && *p;
       p++)
    if (*p != ',')
      digits[n++] = *p;
    else if (!g_ascii_isdigit (p[1]) || !g_ascii_isdigit (p[2]) || !g_ascii_isdigit (p[3]))
      break;
  digits[n] = '\0';
  char *end;
  *v = g_ascii_strtod (digits, &end);
  return end != digits && *v - *v == 0 && *v >= 0;
}

static void
take_line (const char *line, GArray *of[Q_COUNT])
{
  gboolean taken[Q_COUNT] = {FALSE};
  for (guint i = 0; i < G_N_ELEMENTS (marks); i++) {
    const char *at = strstr (line, marks[i].before);
    double v;
    int q = marks[i].quantity;
    /* A word of its own: "mfu:" and not "hmfu:". */
    if (at == NULL || taken[q] || (at > line && g_ascii_isalpha (at[-1])) ||
        !number_at (at + strlen (marks[i].before), &v))
      continue;
    if (strcmp (marks[i].before, "memory:") == 0 && strstr (at, "GiB") == NULL)
      continue;
    v *= marks[i].scale;
    g_array_append_val (of[q], v);
    taken[q] = TRUE;
  }
}

/* ---- progress bars ---- */

typedef struct {
  gint64 total;
  double elapsed_s, step_s;
} Bar;

/* "1:02:03", "02:03". */
static gboolean
clock_at (const char **p, double *s)
{
  char *end;
  *s = 0;
  do {
    if (!g_ascii_isdigit (**p))
      return FALSE;
    *s = *s * 60 + (double)g_ascii_strtoull (*p, &end, 10);
    *p = end;
  } while (*(*p)++ == ':');
  --*p;
  return TRUE;
}

/* The Trainer's bar, " 12%|#3   | 2/16 [02:00<13:54, 59.61s/it]" or "… 1.20it/s]", has no words
 * before it; those that stand before loading and mapping do. */
static void
take_bar (const char *line, GArray *bars)
{
  const char *at = line;
  Bar bar;
  char *end;
  double v, left;
  while (*at == ' ')
    at++;
  for (const char *digits = at; g_ascii_isdigit (*at); at++)
    if (at - digits > 3)
      return;
  if (at == line || !g_str_has_prefix (at, "%|") || (at = strrchr (at, '[')) == NULL)
    return;
  const char *slash = at;
  while (slash > line && *slash != '/')
    slash--;
  bar.total = g_ascii_strtoll (slash + 1, &end, 10);
  at++;
  if (bar.total <= 0 || end == slash + 1 || !clock_at (&at, &bar.elapsed_s) || *at++ != '<' ||
      !clock_at (&at, &left) || *at++ != ',')
    return;
  while (*at == ' ')
    at++;
  v = g_ascii_strtod (at, &end);
  if (!(v > 0 && v < 1e9))
    return;
  if (g_str_has_prefix (end, "s/it"))
    bar.step_s = v;
  else if (g_str_has_prefix (end, "it/s"))
    bar.step_s = 1 / v;
  else
    return;
  g_array_append_val (bars, bar);
}

/* The training's bar is the one that ran longest: those of evaluations and of loading are shorter.
 * A step that the framework itself tells counts before it. */
static void
steps_of_bars (const GArray *bars, GArray *steps)
{
  const Bar *longest = NULL;
  for (guint i = 0; i < bars->len; i++) {
    const Bar *b = &g_array_index (bars, Bar, i);
    if (longest == NULL || b->elapsed_s > longest->elapsed_s)
      longest = b;
  }
  if (steps->len > 0)
    return;
  for (guint i = 0; i < bars->len; i++) {
    const Bar *b = &g_array_index (bars, Bar, i);
    if (b->total == longest->total)
      g_array_append_val (steps, b->step_s);
  }
}

/* ---- statistics ---- */

static gint
compare (gconstpointer a, gconstpointer b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double
quantile (const GArray *sorted, double q)
{
  double at = q * (double)(sorted->len - 1);
  guint i = (guint)at, k = MIN (i + 1, sorted->len - 1);
  double a = g_array_index (sorted, double, i), b = g_array_index (sorted, double, k);
  return a + (b - a) * (at - (double)i);
}

static void
drop_start (GArray *values)
{
  guint n = MIN (values->len / 5, 10);
  if (n == 0 && values->len > 1)
    n = 1;
  g_array_remove_range (values, 0, n);
}

static double
predicted_of (int q, const Spec *s, const Prediction *p)
{
  const double *t = p->part_s;
  static const double gib = 1 << 30;
  switch (q) {
  case Q_STEP:
    return p->step_s;
  case Q_TFLOPS:
    return p->model_tflops_per_gpu;
  case Q_TOKENS:
    return p->tokens_per_s_per_gpu;
  case Q_SAMPLES:
    return (double)s->train.global_batch_sequences / p->step_s;
  case Q_MFU:
    return 100 * p->mfu;
  case Q_FORWARD_BACKWARD:
    return t[PART_COMPUTE] + t[PART_TP_COMM] + t[PART_CP_COMM] + t[PART_EP_COMM] + t[PART_PP_COMM] +
           t[PART_BUBBLE] + t[PART_HOST];
  case Q_GRADS:
  case Q_PARAMS:
    return t[PART_DP_COMM];
  case Q_OPTIMIZER:
    return t[PART_OPTIMIZER];
  case Q_ALLOCATED: {
    const StageMemory *worst = &p->memory.stages[p->memory.worst_stage];
    return (double)worst->allocated_bytes / gib;
  }
  case Q_RESERVED:
    return (double)p->memory.stages[p->memory.worst_stage].reserved_bytes / gib;
  default:
    return (double)s->train.global_batch_sequences;
  }
}

static AgainstRow
row_of (int q, GArray *values, const Spec *s, const Prediction *p)
{
  guint lines = values->len;
  gboolean memory = q == Q_ALLOCATED || q == Q_RESERVED;
  if (!memory)
    drop_start (values);
  g_array_sort (values, compare);
  return (AgainstRow){.name = quantities[q].name,
                      .unit = quantities[q].unit,
                      .remark = quantities[q].remark,
                      .predicted = predicted_of (q, s, p),
                      .measured = quantile (values, memory ? 1.0 : 0.5),
                      .lo = quantile (values, 0.1),
                      .hi = quantile (values, 0.9),
                      .lines = lines,
                      .largest = memory};
}

/* How far samples a second times the step may be from the batch: the first is a mean of the whole
 * run, with its start and end. */
#define ABOUT 0.2

static void
check_batch (GArray *of[Q_COUNT], const Spec *s, GPtrArray *warnings)
{
  double want = (double)s->train.global_batch_sequences;
  if (of[Q_BATCH]->len > 0) {
    double last = g_array_index (of[Q_BATCH], double, of[Q_BATCH]->len - 1);
    if (last != want)
      g_ptr_array_add (warnings, g_strdup_printf ("the log's global batch is %.0f sequences, the "
                                                  "scenario's %.0f: not one run",
                                                  last, want));
  } else if (of[Q_SAMPLES]->len > 0 && of[Q_STEP]->len > 0) {
    double about = g_array_index (of[Q_SAMPLES], double, of[Q_SAMPLES]->len - 1) *
                   g_array_index (of[Q_STEP], double, of[Q_STEP]->len - 1);
    if (fabs (about - want) > ABOUT * want)
      g_ptr_array_add (warnings,
                       g_strdup_printf ("the log's samples a second times its step are about %.0f "
                                        "sequences, the scenario's batch is %.0f: not one run",
                                        about, want));
  }
}

/* All known lines of a text. Bars go back to the line's start where they are written anew. */
static void
take_text (const char *text, gsize len, GArray *of[Q_COUNT], GPtrArray *warnings)
{
  gboolean seen = FALSE;
  g_autoptr (GArray) bars = g_array_new (FALSE, FALSE, sizeof (Bar));
  for (const char *at = text, *end = text + len; at < end;) {
    gsize n = 0;
    while (at + n < end && at[n] != '\n' && at[n] != '\r')
      n++;
    g_autofree char *line = plain_line (at, n);
    take_line (line, of);
    take_bar (line, bars);
    seen = seen || strstr (line, SEEN_ALLOCATED) != NULL;
    at += n + 1;
  }
  steps_of_bars (bars, of[Q_STEP]);
  if (seen)
    g_ptr_array_add (warnings, g_strdup ("see_memory_usage is of the moments where DeepSpeed calls "
                                         "it, most before the first step: a step may need more"));
}

GArray *
against_log (const char *path, const Spec *s, const Prediction *p, GPtrArray *warnings,
             GError **error)
{
  g_autofree char *text = NULL;
  gsize len;
  g_autoptr (GError) why = NULL;
  if (!g_file_get_contents (path, &text, &len, &why)) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "%s: cannot be read (%s)", path, why->message);
    return NULL;
  }
  GArray *of[Q_COUNT];
  for (int q = 0; q < Q_COUNT; q++)
    of[q] = g_array_new (FALSE, FALSE, sizeof (double));
  take_text (text, len, of, warnings);
  GArray *rows = g_array_new (FALSE, FALSE, sizeof (AgainstRow));
  check_batch (of, s, warnings);
  for (int q = 0; q < Q_BATCH; q++) {
    if (of[q]->len > 0) {
      AgainstRow row = row_of (q, of[q], s, p);
      g_array_append_val (rows, row);
    }
  }
  for (int q = 0; q < Q_COUNT; q++)
    g_array_unref (of[q]);
  if (rows->len > 0)
    return rows;
  g_array_unref (rows);
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
               "%s: no line of a training log (allowed: logs of Megatron-LM, Megatron-DeepSpeed, "
               "NeMo, Megatron-Bridge, torchtitan, DeepSpeed, the Hugging Face Trainer)",
               path);
  return NULL;
}

/* ---- reports ---- */

void
against_text (GString *out, const char *path, const GArray *rows, const GPtrArray *warnings)
{
  g_string_append_printf (
      out,
      "\nagainst %s (median of the log, its start left out; memory: the largest)\n"
      "  %-22s %12s %12s  %-9s %6s  %s\n",
      path, "", "predicted", "measured", "", "ratio", "10 … 90 % of the log");
  for (guint i = 0; i < rows->len; i++) {
    const AgainstRow *r = &g_array_index (rows, AgainstRow, i);
    g_string_append_printf (out,
                            "  %-22s %12.5g %12.5g  %-9s %6.3f  %.5g … %.5g, %u line%s%s%s%s%s\n",
                            r->name, r->predicted, r->measured, r->unit, r->predicted / r->measured,
                            r->lo, r->hi, r->lines, r->lines == 1 ? "" : "s",
                            r->largest && r->lines > 1 ? ", measured is the largest of them" : "",
                            r->remark != NULL ? "  (" : "", r->remark != NULL ? r->remark : "",
                            r->remark != NULL ? ")" : "");
  }
  for (guint i = 0; i < warnings->len; i++)
    g_string_append_printf (out, "  warning: %s\n", (const char *)g_ptr_array_index (warnings, i));
}

void
against_json (GString *out, const char *path, const GArray *rows, const GPtrArray *warnings)
{
  g_autoptr (JsonWriter) w = json_writer_new (out, 2);
  jw_begin_object (w, NULL);
  jw_string (w, "log", path);
  jw_begin_array (w, "rows");
  for (guint i = 0; i < rows->len; i++) {
    const AgainstRow *r = &g_array_index (rows, AgainstRow, i);
    jw_begin_object (w, NULL);
    jw_string (w, "quantity", r->name);
    jw_string (w, "unit", r->unit);
    jw_double (w, "predicted", r->predicted);
    jw_double (w, "measured", r->measured);
    jw_double (w, "ratio", r->predicted / r->measured);
    jw_double (w, "measured_p10", r->lo);
    jw_double (w, "measured_p90", r->hi);
    jw_int (w, "lines", r->lines);
    jw_string (w, "statistic", r->largest ? "largest" : "median");
    jw_end_object (w);
  }
  jw_end_array (w);
  jw_begin_array (w, "warnings");
  for (guint i = 0; i < warnings->len; i++)
    jw_string (w, NULL, g_ptr_array_index (warnings, i));
  jw_end_array (w);
  jw_end_object (w);
  g_string_append_c (out, '\n');
}

void
against_csv (GString *out, const GArray *rows)
{
  g_string_append (out, "quantity,unit,predicted,measured,ratio,measured_p10,measured_p90,lines,"
                        "statistic\n");
  for (guint i = 0; i < rows->len; i++) {
    const AgainstRow *r = &g_array_index (rows, AgainstRow, i);
    g_string_append_printf (out, "%s,%s,%.9g,%.9g,%.9g,%.9g,%.9g,%u,%s\n", r->name, r->unit,
                            r->predicted, r->measured, r->predicted / r->measured, r->lo, r->hi,
                            r->lines, r->largest ? "largest" : "median");
  }
}
