/* explain: from source figures to the answer. Every line is a number that the prediction used, in
 * the order in which it is made: kernels of a layer, collectives, stages, step; the equations in
 * words; memory; the range; and the numbers of the profiles that it takes, with source and status.
 */
#include <string.h>

#include "cli.h"
#include "coll_cost.h"
#include "commands.h"
#include "explain_chain.h"
#include "json_read.h"
#include "json_write.h"
#include "layer_cost.h"
#include "predict.h"
#include "report_net.h"
#include "scenario.h"

typedef struct {
  const Spec *s;
  const IntervalTable *intervals;
  gboolean all; /* numbers that the scenario does not take, too */
  Pricing p;
  Prediction pr;
  GString *out;
  JsonWriter *w; /* NULL in text form */
} Explain;

static const char *const pass_names[] = {"forward", "backward (with recomputation)"};
static const char *const prov_names[] = {"measured", "vendor", "assumed"};

static void
title (Explain *x, const char *text)
{
  if (x->w == NULL)
    g_string_append_printf (x->out, "\n%s\n", text);
}

static void
explain_kernels (Explain *x, LayerPass pass)
{
  g_autoptr (GArray) rows = g_array_new (FALSE, FALSE, sizeof (KernelRow));
  PassCost cost;
  layer_pass_kernels (&x->p, x->s->model.num_layers / 2, pass, rows);
  layer_pass_cost (&x->p, x->s->model.num_layers / 2, pass, &cost);
  double total = sim_time_to_s (cost.total, SIM_TICKS_PS);
  g_autofree char *head = g_strdup_printf (
      "one layer, %s: %.3f ms of GPU time, %u kernels and collectives, %.3f ms on the host",
      pass_names[pass], total * 1e3, cost.kernels, sim_time_to_s (cost.host, SIM_TICKS_PS) * 1e3);
  title (x, head);
  if (x->w != NULL)
    jw_begin_array (x->w, pass == LP_FORWARD ? "layer_forward" : "layer_backward");
  for (guint i = 0; i < rows->len; i++) {
    const KernelRow *k = &g_array_index (rows, KernelRow, i);
    if (x->w != NULL) {
      jw_begin_object (x->w, NULL);
      jw_string (x->w, "name", k->name);
      jw_string (x->w, "kind", k->kind);
      jw_double (x->w, "time_s", k->time_s);
      jw_double (x->w, "flops", k->flops);
      jw_double (x->w, "bytes", k->bytes);
      jw_end_object (x->w);
      continue;
    }
    g_string_append_printf (x->out, "  %-28s %-10s %10.1f us", k->name, k->kind, k->time_s * 1e6);
    if (k->flops > 0)
      g_string_append_printf (x->out, "  %8.1f TFLOP/s", k->flops / k->time_s * 1e-12);
    else if (k->bytes > 0)
      g_string_append_printf (x->out, "  %8.1f GB/s%s", k->bytes / k->time_s * 1e-9,
                              k->comm ? " (bytes of the buffer over time)" : "");
    g_string_append_c (x->out, '\n');
  }
  if (x->w != NULL)
    jw_end_array (x->w);
}

static void
put_group (Explain *x, const char *name, const CollGroup *g)
{
  if (g->ranks <= 1)
    return;
  if (x->w != NULL) {
    jw_begin_object (x->w, name);
    jw_int (x->w, "ranks", g->ranks);
    jw_int (x->w, "ranks_per_node", g->ranks_per_node);
    jw_int (x->w, "nodes", g->nodes);
    jw_int (x->w, "sharers", g->sharers);
    jw_end_object (x->w);
    return;
  }
  g_string_append_printf (x->out,
                          "  %-4s %5d ranks, %d in each of %d nodes, %d such groups a node\n", name,
                          g->ranks, g->ranks_per_node, g->nodes, g->sharers);
}

static void
explain_groups (Explain *x)
{
  title (x, "groups of ranks (order tp, cp, dp, pp; innermost first)");
  if (x->w != NULL)
    jw_begin_object (x->w, "groups");
  put_group (x, "tp", &x->p.groups.tp);
  put_group (x, "cp", &x->p.groups.cp);
  put_group (x, "ep", &x->p.groups.ep);
  if (x->p.s->model.num_experts > 0) {
    put_group (x, "etp", &x->p.groups.etp);
    put_group (x, "edp", &x->p.groups.edp);
  }
  put_group (x, "dp", &x->p.groups.dp);
  if (x->w != NULL)
    jw_end_object (x->w);
}

static void
explain_stages (Explain *x)
{
  title (x, "layers of the stages");
  if (x->w != NULL)
    jw_begin_array (x->w, "stage_layers");
  else
    g_string_append (x->out, " ");
  for (guint i = 0; i < x->pr.n_stages; i++)
    if (x->w != NULL)
      jw_int (x->w, NULL, x->pr.stage_layers[i]);
    else
      g_string_append_printf (x->out, " %" G_GINT64_FORMAT, x->pr.stage_layers[i]);
  if (x->w != NULL)
    jw_end_array (x->w);
  else
    g_string_append_printf (x->out,
                            "\n  schedule %s, %" G_GINT64_FORMAT
                            " micro-batches, %" G_GUINT64_FORMAT " operations simulated\n",
                            x->s->parallel.schedule, spec_microbatches (x->s), x->pr.operations);
}

static void
explain_step (Explain *x)
{
  title (x, "the step: parts of the last rank's timeline");
  if (x->w != NULL)
    jw_begin_object (x->w, "breakdown_s");
  for (guint i = 0; i < PART_COUNT; i++)
    if (x->w != NULL)
      jw_double (x->w, part_names[i], x->pr.part_s[i]);
    else if (x->pr.part_s[i] > 0)
      g_string_append_printf (x->out, "  %-10s %12.6f s\n", part_names[i], x->pr.part_s[i]);
  if (x->w != NULL) {
    jw_end_object (x->w);
    jw_double (x->w, "step_time_s", x->pr.step_s);
  } else {
    g_string_append_printf (x->out, "  %-10s %12.6f s\n", "step", x->pr.step_s);
  }
}

static void
explain_numbers (Explain *x)
{
  guint of[G_N_ELEMENTS (prov_names)] = {0}, left = 0;
  title (x, "numbers of the profiles that this scenario takes, each with its source");
  if (x->w != NULL)
    jw_begin_array (x->w, "numbers");
  for (guint i = 0; x->s->prov != NULL && i < x->s->prov->len; i++) {
    const ProvEntry *e = g_ptr_array_index (x->s->prov, i);
    const gboolean used = explain_uses (x->s, e->name);
    if (used)
      of[e->kind]++;
    else if (!x->all) {
      left++;
      continue;
    }
    if (x->w != NULL) {
      jw_begin_object (x->w, NULL);
      jw_string (x->w, "name", e->name);
      jw_double (x->w, "value", e->value);
      jw_string (x->w, "kind", prov_names[e->kind]);
      jw_string (x->w, "source", e->source);
      jw_bool (x->w, "used", used);
      jw_end_object (x->w);
    } else {
      g_string_append_printf (x->out, "  %-56s %12.6g  %-8s  %s\n", e->name, e->value,
                              prov_names[e->kind], e->source);
    }
  }
  if (x->w != NULL) {
    jw_end_array (x->w);
    return;
  }
  g_string_append_printf (x->out, "  taken: %u measured, %u of the vendor, %u assumed", of[0],
                          of[1], of[2]);
  if (left > 0)
    g_string_append_printf (x->out, "; %u that this scenario does not take are left out (--all)",
                            left);
  g_string_append_c (x->out, '\n');
}

/* The network's rows; prices inside the layers are made with it too. */
static void
explain_network (Explain *x)
{
  if (x->w != NULL)
    report_net_json (x->w, x->s, &x->pr);
  else
    report_net_text (x->out, x->s, &x->pr);
}

static void
explain_all (Explain *x)
{
  if (x->w != NULL)
    jw_begin_object (x->w, NULL);
  else
    g_string_append_printf (x->out, "%s\n", x->s->name);
  if (x->w != NULL)
    jw_string (x->w, "name", x->s->name);
  explain_step (x);
  explain_stages (x);
  explain_groups (x);
  explain_network (x);
  explain_kernels (x, LP_FORWARD);
  explain_kernels (x, LP_BACKWARD);
  explain_equations (x->s, &x->pr, x->out, x->w);
  explain_memory (x->s, &x->pr, x->out, x->w);
  explain_range (x->intervals, x->s, &x->pr, x->out, x->w);
  explain_numbers (x);
  if (x->w != NULL) {
    jw_end_object (x->w);
    g_string_append_c (x->out, '\n');
  }
}

static gboolean
run (const char *path, gboolean all, const CliCommon *c, GError **error)
{
  Spec s;
  g_autoptr (IntervalTable) intervals = interval_table_load (error);
  if (intervals == NULL || !scenario_load (path, (const char *const *)c->sets, &s, error))
    return FALSE;
  g_autoptr (GString) out = g_string_new (NULL);
  Explain x = {.s = &s, .intervals = intervals, .all = all, .out = out};
  g_autoptr (NetPrice) net = netprice_wanted (&s) ? netprice_new (&s, NULL) : NULL;
  Fabric fabric = {.cache = NULL};
  Spec own;
  if (net != NULL)
    netprice_apply (net, &own, &fabric);
  pricing_init (&x.p, net != NULL ? &own : &s);
  gboolean ok = predict (&s, NULL, NULL, &x.pr, error);
  if (ok) {
    if (c->format == FORMAT_JSON)
      x.w = json_writer_new (out, 1);
    explain_all (&x);
    json_writer_free (x.w);
    prediction_clear (&x.pr);
  }
  coll_cache_free (fabric.cache);
  spec_clear (&s);
  return ok && cli_output (c, out->str, (gssize)out->len, error);
}

int
cmd_explain_run (int argc, char **argv)
{
  g_auto (CliCommon) c = {0};
  gboolean all = FALSE;
  GError *error = NULL;
  const GOptionEntry entries[] = {{"all", 0, 0, G_OPTION_ARG_NONE, &all,
                                   "Numbers of the profiles that are not taken, too", NULL},
                                  G_OPTION_ENTRY_NULL};
  const CliHelp help = {"SCENARIO.json",
                        "Tells which kernels, collectives and numbers, from which source, gave the "
                        "step time.",
                        "clustersim explain gpt3-175b-a100",
                        1,
                        1,
                        FALSE};
  if (!cli_parse (&argc, &argv, &help, entries, &c, &error))
    return cli_fail (error);
  if (c.format == FORMAT_CSV)
    return cli_fail (g_error_new (CLI_ERROR, CLI_ERROR_USAGE,
                                  "explain: --format csv is not offered (allowed: text, json)"));
  return run (argv[1], all, &c, &error) ? CLI_DONE : cli_fail (error);
}
