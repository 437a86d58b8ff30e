/* clustersim fit: measurements → a device or fabric profile. */
#include "cli.h"
#include "commands.h"
#include "fileio.h"
#include "fit_device.h"
#include "fit_errors.h"
#include "fit_fabric.h"
#include "fit_profile.h"
#include "paths.h"
#include "read_fabric.h"
#include "read_gpu.h"
#include "store.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

typedef struct {
  char *as, *base, *name, *attention, *source, *residuals, *plot;
  char **gpus, **where;
  double hold_out, nic_GBps, nics;
  int resamples, ranks_per_node;
  gboolean one_protocol, leave_out_fifth;
} Flags;

static void
flags_clear (Flags *f)
{
  g_free (f->as);
  g_free (f->base);
  g_free (f->name);
  g_free (f->attention);
  g_free (f->source);
  g_free (f->residuals);
  g_free (f->plot);
  g_strfreev (f->gpus);
  g_strfreev (f->where);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Flags, flags_clear)

typedef struct {
  const CliCommon *c;
  const Flags *f;
  char **files;
  SampleSet *set;
  FitReport *report;
  FitOptions options;
  JsonDoc *doc; /* the profile */
  char *base_path;
} Run;

static void
run_clear (Run *r)
{
  sample_set_free (r->set);
  fit_report_free (r->report);
  json_doc_free (r->doc);
  g_free (r->base_path);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Run, run_clear)

static gboolean
wrong (GError **error, const char *format, const char *what)
{
  g_autofree char *quoted = text_quoted (what);
  g_autofree char *message = g_strdup_printf ("fit: %s", format);
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "%s (found %s)", message, quoted);
  return FALSE;
}

/* ---- which profile to start from ---- */

/* "NVIDIA H100 80GB HBM3" as our names and aliases spell it. */
static char *
device_key (const char *device)
{
  const char *p = g_str_has_prefix (device, "NVIDIA ") ? device + 7 : device;
  return g_strdup (p);
}

static char *
find_base (const Run *r, const char *kind, GError **error)
{
  if (r->f->base != NULL)
    return g_strdup (r->f->base);
  const char *device = r->set->devices->pdata[0];
  if (strcmp (kind, "hw") == 0) {
    g_autoptr (Store) st = store_new ();
    g_autofree char *key = device_key (device);
    const GpuProfile *g = store_gpu (st, key, NULL, NULL);
    if (g == NULL)
      g = store_gpu (st, device, NULL, NULL);
    if (g != NULL)
      return g_strdup (g->name);
  }
  wrong (error, "no shipped profile is of this device; --base NAME says which to start from",
         device);
  return NULL;
}

static gboolean
load_base (Run *r, const char *kind, GError **error)
{
  g_autofree char *base = find_base (r, kind, error);
  if (base == NULL)
    return FALSE;
  r->doc = store_document (kind, base, NULL, error);
  r->base_path = r->doc != NULL ? data_find (kind, base, NULL, error) : NULL;
  return r->base_path != NULL;
}

/* ---- the two kinds of profile ---- */

static gboolean
run_device (Run *r, GError **error)
{
  if (!load_base (r, "hw", error))
    return FALSE;
  JsonRef root = json_root (r->doc);
  g_autoptr (GpuProfile) g = read_gpu_profile (&root, "base", NULL, error);
  if (g == NULL || !fit_device (g, r->set, &r->options, r->report, error))
    return FALSE;
  const char *name = r->f->name != NULL ? r->f->name : g->name;
  const char *aliases[] = {r->set->devices->pdata[0], NULL};
  g_autofree char *source = fit_profile_source (r->files, r->f->source, r->set);
  guint other = sample_set_count (r->set, SAMPLE_COLL);
  if (other > 0)
    fit_report_warn (r->report, "%u timings of collectives belong in a fabric: --as fabric", other);
  if (!fit_profile_rename (r->doc, g->name, name, aliases, error) ||
      !fit_profile_put_device (r->doc, g, &r->set->facts, r->report, source, error))
    return FALSE;
  JsonRef made = json_root (r->doc);
  g_autoptr (GpuProfile) back = read_gpu_profile (&made, name, NULL, error);
  return back != NULL;
}

static gboolean
put_nic (Run *r, GError **error)
{
  char value[G_ASCII_DTOSTR_BUF_SIZE];
  const struct {
    const char *key;
    double given;
  } nic[] = {{"nic_GBps", r->f->nic_GBps}, {"nics_per_node", r->f->nics}};
  for (int i = 0; i < 2; i++) {
    if (!(nic[i].given > 0))
      continue;
    g_ascii_dtostr (value, sizeof value, nic[i].given);
    g_autofree char *text = g_strdup_printf (
        "{ \"value\": %s, \"kind\": \"vendor\", \"source\": \"given to clustersim fit\" }", value);
    if (!json_doc_set (r->doc, nic[i].key, text, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
run_fabric (Run *r, GError **error)
{
  if (!load_base (r, "fabrics", error) || !fit_profile_inline_parts (r->doc, error) ||
      !put_nic (r, error))
    return FALSE;
  JsonRef root = json_root (r->doc);
  g_autoptr (Fabric) f = read_fabric (&root, "base", NULL, error);
  if (f == NULL || !fit_fabric (f, r->set, r->f->one_protocol, &r->options, r->report, error))
    return FALSE;
  g_autofree char *base = g_strdup (f->name);
  g_autofree char *source = fit_profile_source (r->files, r->f->source, r->set);
  const char *name = r->f->name != NULL ? r->f->name : base;
  if (!fit_profile_rename (r->doc, base, name, NULL, error) || !put_nic (r, error) ||
      !fit_profile_put (r->doc, r->report, source, error))
    return FALSE;
  JsonRef made = json_root (r->doc);
  g_autoptr (Fabric) back = read_fabric (&made, name, NULL, error);
  return back != NULL;
}

/* ---- output ---- */

static gboolean
draw (const Run *r, GError **error)
{
  g_autofree char *kind = g_path_get_dirname (r->base_path);
  g_autofree char *script = NULL, *data = NULL, *set_data = NULL, *set_out = NULL;
  for (guint up = 0; up < 3 && script == NULL; up++) { /* hw/, scenarios/, beside scenarios */
    g_autofree char *at = g_build_filename (kind, "plots", "fit.gp", NULL);
    g_autofree char *above = g_path_get_dirname (kind);
    if (g_file_test (at, G_FILE_TEST_EXISTS))
      script = g_steal_pointer (&at);
    g_free (kind);
    kind = g_steal_pointer (&above);
  }
  if (script == NULL && g_file_test ("plots/fit.gp", G_FILE_TEST_EXISTS))
    script = g_strdup ("plots/fit.gp");
  if (script == NULL) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_FAILED, "fit: plots/fit.gp is not there");
    return FALSE;
  }
  g_autoptr (GString) csv = g_string_new (NULL);
  fit_report_points (csv, r->report);
  data = g_strconcat (r->f->plot, ".csv", NULL);
  set_data = g_strdup_printf ("data='%s'", data);
  set_out = g_strdup_printf ("out='%s'", r->f->plot);
  if (strchr (r->f->plot, '\'') != NULL)
    return wrong (error, "--plot: a name without quotes is needed", r->f->plot);
  if (!output_write (data, csv->str, (gssize)csv->len, error))
    return FALSE;
  char *argv[] = {
      (char[]){"gnuplot"}, (char[]){"-e"}, set_data, (char[]){"-e"}, set_out, script, NULL};
  int status = 0;
  g_autofree char *said = NULL;
  g_autoptr (GError) local = NULL;
  gboolean ok = g_spawn_sync (NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, &said,
                              &status, &local) &&
                g_spawn_check_wait_status (status, &local);
  if (r->f->residuals == NULL)
    remove (data);
  if (!ok) {
    g_autofree char *line = text_printable (said != NULL ? said : "", -1, 200);
    g_set_error (error, CLI_ERROR, CLI_ERROR_FAILED, "fit: gnuplot: %s %s", local->message, line);
  }
  return ok;
}

static gboolean
write_all (const Run *r, GError **error)
{
  g_autoptr (GString) out = g_string_new (NULL), csv = g_string_new (NULL);
  JsonRef root = json_root (r->doc);
  const char *name = "profile";
  g_autofree char *text = fit_profile_text (r->doc);
  if (!json_opt_string (&root, "name", &name, error))
    return FALSE;
  if (r->c->format == FORMAT_JSON)
    fit_report_json (out, r->set, r->report, name);
  else if (r->c->format == FORMAT_CSV)
    fit_report_csv (out, r->report);
  else
    fit_report_text (out, r->set, r->report, name);
  fit_report_points (csv, r->report);
  if ((r->f->plot != NULL && !draw (r, error)) ||
      (r->f->residuals != NULL &&
       !output_write (r->f->residuals, csv->str, (gssize)csv->len, error)) ||
      (r->c->output != NULL && !output_write (r->c->output, text, -1, error)))
    return FALSE;
  CliCommon to_stdout = *r->c;
  to_stdout.output = NULL;
  return r->c->quiet || cli_output (&to_stdout, out->str, (gssize)out->len, error);
}

static gboolean
check_flags (const Flags *f, SampleOptions *o, gboolean *fabric, GError **error)
{
  *o = (SampleOptions){f->gpus, -1, f->where, f->ranks_per_node, f->leave_out_fifth};
  *fabric = f->as != NULL && strcmp (f->as, "fabric") == 0;
  if (f->as != NULL && !*fabric && strcmp (f->as, "device") != 0)
    return wrong (error, "--as: unknown kind (allowed: device, fabric)", f->as);
  for (int k = ATTN_FLASH1; f->attention != NULL && k < ATTN_COUNT; k++)
    if (strcmp (attn_kernel_names[k], f->attention) == 0)
      o->attention = k;
  if (f->attention != NULL && o->attention < 0)
    return wrong (error,
                  "--attention-kernel: allowed: flash1, flash2, flash3, cudnn and others of a "
                  "device profile",
                  f->attention);
  for (guint i = 0; f->where != NULL && f->where[i] != NULL; i++)
    if (strchr (f->where[i], '~') == NULL)
      return wrong (error, "--where: is no COLUMN~TEXT", f->where[i]);
  if (!(f->hold_out >= 0 && f->hold_out <= 0.9) || f->resamples < 0 || f->resamples > 10000) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
                 "fit: --hold-out is a share from 0 to 0.9, --resamples a number from 0 to 10000");
    return FALSE;
  }
  return TRUE;
}

static gboolean
run (char **files, const CliCommon *c, const Flags *f, GError **error)
{
  g_auto (Run) r = {.c = c, .f = f, .files = files};
  SampleOptions so;
  gboolean fabric;
  if (!check_flags (f, &so, &fabric, error))
    return FALSE;
  r.set = sample_set_new ();
  r.report = fit_report_new ();
  r.options = (FitOptions){f->hold_out, (guint)f->resamples, c->has_seed ? c->seed : 1};
  for (guint i = 0; files[i] != NULL; i++)
    if (!sample_set_read (r.set, files[i], &so, error))
      return FALSE;
  if (!sample_set_check (r.set, &so, error))
    return FALSE;
  if (f->as == NULL)
    fabric = sample_set_count (r.set, SAMPLE_COLL) == r.set->samples->len;
  return (fabric ? run_fabric (&r, error) : run_device (&r, error)) && write_all (&r, error);
}

/* A sample that cannot be is the caller's input. */
static int
finish (GError *error)
{
  if (error != NULL && (error->domain == SAMPLES_ERROR || error->domain == GPU_ERROR)) {
    GError *mine = g_error_new_literal (CLI_ERROR, CLI_ERROR_USAGE, error->message);
    g_error_free (error);
    return cli_fail (mine);
  }
  return cli_fail (error);
}

int
cmd_fit_run (int argc, char **argv)
{
  if (argc > 1 && strcmp (argv[1], "errors") == 0)
    return cmd_fit_errors_run (argc - 1, argv + 1);
  g_auto (CliCommon) c = {0};
  g_auto (Flags) f = {.hold_out = 0.25, .resamples = 40};
  GError *error = NULL;
  const GOptionEntry entries[] = {
      {"as", 0, 0, G_OPTION_ARG_STRING, &f.as, "device or fabric (else by the samples)", "KIND"},
      {"base", 0, 0, G_OPTION_ARG_STRING, &f.base, "Profile that holds what samples do not",
       "NAME"},
      {"name", 0, 0, G_OPTION_ARG_STRING, &f.name, "Name of the new profile", "NAME"},
      {"gpu", 0, 0, G_OPTION_ARG_STRING_ARRAY, &f.gpus, "Device or column to take (repeat)",
       "NAME"},
      {"where", 0, 0, G_OPTION_ARG_STRING_ARRAY, &f.where, "Rows of tables to take", "COLUMN~TEXT"},
      {"attention-kernel", 0, 0, G_OPTION_ARG_STRING, &f.attention, "Of tables without one",
       "NAME"},
      {"one-protocol", 0, 0, G_OPTION_ARG_NONE, &f.one_protocol, "Fabric of MPI, not of NCCL",
       NULL},
      {"source", 0, 0, G_OPTION_ARG_STRING, &f.source, "Where the samples are from", "TEXT"},
      {"nics", 0, 0, G_OPTION_ARG_DOUBLE, &f.nics, "NICs of a node", "N"},
      {"nic-GBps", 0, 0, G_OPTION_ARG_DOUBLE, &f.nic_GBps, "Line rate of a NIC", "RATE"},
      {"ranks-per-node", 0, 0, G_OPTION_ARG_INT, &f.ranks_per_node, "Of logs without hosts", "N"},
      {"hold-out", 0, 0, G_OPTION_ARG_DOUBLE, &f.hold_out, "Share not fitted to (0.25)", "SHARE"},
      {"leave-out-fifth", 0, 0, G_OPTION_ARG_NONE, &f.leave_out_fifth,
       "No GEMM shapes of the fifth that validate judges", NULL},
      {"resamples", 0, 0, G_OPTION_ARG_INT, &f.resamples, "For the intervals (40)", "N"},
      {"residuals", 0, 0, G_OPTION_ARG_FILENAME, &f.residuals, "Measured against model",
       "FILE.csv"},
      {"plot", 0, 0, G_OPTION_ARG_FILENAME, &f.plot, "The same as a picture", "FILE.svg"},
      G_OPTION_ENTRY_NULL};
  const CliHelp help = {
      "SAMPLES…",
      "Measurements into a device or fabric profile, with the residuals of the "
      "fit.\n-o FILE is the profile; the report goes to standard output. `fit errors TABLE.csv` "
      "makes the\nfile of the ranges.",
      "clustersim fit calibrate/samples/epyc-core/core.jsonl --base "
      "calibrate/base/cpu.json -o core.json",
      1,
      -1,
      TRUE};
  if (!cli_parse (&argc, &argv, &help, entries, &c, &error))
    return cli_fail (error);
  return run (argv + 1, &c, &f, &error) ? CLI_DONE : finish (error);
}
