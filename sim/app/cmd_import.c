#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "import_hf.h"
#include "import_part.h"
#include "import_run.h"
#include "import_table.h"
#include "import_timeline.h"
#include "json_read.h"
#include "json_write.h"
#include "read_model.h"

/* Each kind turns a file into a scenario part. given: what stands after the file. */
typedef gboolean (*ImportFn) (const char *path, const char *const *given, const CliCommon *c,
                              GString *out, GError **error);

static void
put_list (GString *out, const char *title, const GPtrArray *list, const char *between)
{
  if (list->len == 0)
    return;
  g_string_append (out, title);
  for (guint i = 0; i < list->len; i++)
    g_string_append_printf (out, "%s%s", between, (const char *)g_ptr_array_index (list, i));
  g_string_append_c (out, '\n');
}

static void
json_list (JsonWriter *w, const char *key, const GPtrArray *list)
{
  jw_begin_array (w, key);
  for (guint i = 0; i < list->len; i++)
    jw_string (w, NULL, g_ptr_array_index (list, i));
  jw_end_array (w);
}

static gboolean
import_hf (const char *path, const char *const *given G_GNUC_UNUSED, const CliCommon *c,
           GString *out, GError **error)
{
  g_autoptr (JsonDoc) doc = json_doc_load (path, error);
  if (doc == NULL)
    return FALSE;
  JsonRef root = json_root (doc);
  ModelSpec m;
  g_autoptr (GPtrArray) ignored = g_ptr_array_new_with_free_func (g_free);
  if (!import_hf_config (&root, &m, ignored, error))
    return FALSE;
  if (c->format == FORMAT_TEXT) {
    g_string_append_printf (out,
                            "model       %s\nparameters  %" G_GINT64_FORMAT
                            "\nactive      %" G_GINT64_FORMAT "\n\nas a scenario part:\n",
                            m.name != NULL ? m.name : path, model_params_total (&m),
                            model_params_active (&m));
  }
  if (c->format == FORMAT_CSV) {
    g_string_append_printf (
        out, "model,parameters,active_parameters\n%s,%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT "\n",
        m.name != NULL ? m.name : path, model_params_total (&m), model_params_active (&m));
  } else {
    g_autoptr (JsonWriter) w = json_writer_new (out, 2);
    jw_begin_object (w, NULL);
    write_model (w, "model", &m, path);
    if (c->format == FORMAT_JSON) {
      jw_int (w, "parameters", model_params_total (&m));
      jw_int (w, "active_parameters", model_params_active (&m));
      json_list (w, "ignored_keys", ignored);
    }
    jw_end_object (w);
    g_string_append_c (out, '\n');
  }
  if (!c->quiet && c->format == FORMAT_TEXT)
    put_list (out, "\nkeys that do not matter here and were ignored:", ignored, " ");
  model_clear (&m);
  return TRUE;
}

typedef gboolean (*RunReader) (ImportedRun *r, const char *path, const char *const *given,
                               GError **error);

static gboolean
import_run (RunReader reader, const char *path, const char *const *given, const CliCommon *c,
            GString *out, GError **error)
{
  g_autoptr (ImportedRun) r = imported_run_new (path);
  if (!reader (r, path, given, error))
    return FALSE;
  g_autoptr (JsonWriter) w = json_writer_new (out, 2);
  jw_begin_object (w, NULL);
  if (!imported_run_write (r, w, error))
    return FALSE;
  if (c->format == FORMAT_JSON) {
    json_list (w, "notes", imported_run_notes (r));
    json_list (w, "ignored_keys", imported_run_ignored (r));
  }
  jw_end_object (w);
  g_string_append_c (out, '\n');
  if (!c->quiet && c->format == FORMAT_TEXT) {
    put_list (out, "\nnotes:", imported_run_notes (r), "\n  ");
    put_list (out, "\nkeys that do not matter here and were ignored:", imported_run_ignored (r),
              " ");
  }
  return TRUE;
}

static gboolean
import_megatron_args (const char *path, const char *const *given, const CliCommon *c, GString *out,
                      GError **error)
{
  return import_run (import_megatron, path, given, c, out, error);
}

static gboolean
import_nemo_yaml (const char *path, const char *const *given, const CliCommon *c, GString *out,
                  GError **error)
{
  return import_run (import_nemo, path, given, c, out, error);
}

static gboolean
import_titan (const char *path, const char *const *given, const CliCommon *c, GString *out,
              GError **error)
{
  return import_run (import_torchtitan, path, given, c, out, error);
}

static gboolean
import_ds (const char *path, const char *const *given, const CliCommon *c, GString *out,
           GError **error)
{
  return import_run (import_deepspeed, path, given, c, out, error);
}

static void
timeline_json (JsonWriter *w, const Timeline *t)
{
  jw_begin_object (w, NULL);
  jw_begin_object (w, "timeline");
  if (t->has_times) {
    jw_double (w, "span_s", t->span_s);
    jw_int (w, "steps", (gint64)t->steps);
    if (t->steps > 0)
      jw_double (w, "step_time_s", t->step_s);
  }
  jw_double (w, "compute_s", t->compute_s);
  jw_double (w, "communication_s", t->communication_s);
  if (t->has_times) {
    jw_double (w, "exposed_communication_s", t->exposed_s);
    jw_double (w, "copy_s", t->copy_s);
    jw_double (w, "idle_s", t->idle_s);
  } else
    jw_double (w, "host_s", t->host_s);
  jw_begin_object (w, "collectives_s");
  for (int i = 0; i < TIMELINE_COLLECTIVES; i++)
    if (t->collective_s[i] > 0)
      jw_double (w, timeline_collectives[i], t->collective_s[i]);
  jw_end_object (w);
  jw_int (w, "kernels", (gint64)t->kernels);
  jw_int (w, "collective_kernels", (gint64)t->collectives);
  jw_int (w, "skipped", (gint64)t->skipped);
  jw_end_object (w);
  jw_end_object (w);
}

static void
timeline_row (GString *out, const char *name, double v_s, gboolean csv)
{
  if (csv)
    g_string_append_printf (out, "%s,%.9g\n", name, v_s);
  else
    g_string_append_printf (out, "  %-22s %12.6f s\n", name, v_s);
}

static void
timeline_rows (GString *out, const Timeline *t, gboolean csv)
{
  const struct {
    const char *name;
    double v_s;
    gboolean shown;
  } rows[] = {{"span", t->span_s, t->has_times},
              {"step_time", t->step_s, t->steps > 0},
              {"compute", t->compute_s, TRUE},
              {"communication", t->communication_s, TRUE},
              {"exposed_communication", t->exposed_s, t->has_times},
              {"copy", t->copy_s, t->has_times},
              {"idle", t->idle_s, t->has_times},
              {"host", t->host_s, !t->has_times}};
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    if (rows[i].shown)
      timeline_row (out, rows[i].name, rows[i].v_s, csv);
  for (int i = 0; i < TIMELINE_COLLECTIVES; i++)
    if (t->collective_s[i] > 0)
      timeline_row (out, timeline_collectives[i], t->collective_s[i], csv);
}

static gboolean
put_timeline (const Timeline *t, const CliCommon *c, GString *out)
{
  if (c->format == FORMAT_JSON) {
    g_autoptr (JsonWriter) w = json_writer_new (out, 2);
    timeline_json (w, t);
    g_string_append_c (out, '\n');
  } else if (c->format == FORMAT_CSV) {
    g_string_append (out, "part,seconds\n");
    timeline_rows (out, t, TRUE);
  } else {
    g_string_append_printf (out,
                            "%" G_GUINT64_FORMAT " kernels of the GPU, %" G_GUINT64_FORMAT
                            " of them collectives, %" G_GUINT64_FORMAT " steps; %" G_GUINT64_FORMAT
                            " entries were not understood\n",
                            t->kernels, t->collectives, t->steps, t->skipped);
    timeline_rows (out, t, FALSE);
  }
  return TRUE;
}

static gboolean
import_kineto_trace (const char *path, const char *const *given G_GNUC_UNUSED, const CliCommon *c,
                     GString *out, GError **error)
{
  Timeline t;
  return import_kineto (path, &t, error) && put_timeline (&t, c, out);
}

static gboolean
import_chakra_trace (const char *path, const char *const *given G_GNUC_UNUSED, const CliCommon *c,
                     GString *out, GError **error)
{
  Timeline t;
  return import_chakra (path, &t, error) && put_timeline (&t, c, out);
}

/* ---- links ---- */

typedef gboolean (*PartWriter) (TopoDesc *d, const char *kind, const char *const *given,
                                JsonWriter *w, GPtrArray *notes, GError **error);

static gboolean
node_writer (TopoDesc *d, const char *kind, const char *const *given, JsonWriter *w,
             GPtrArray *notes, GError **error)
{
  return import_part_node (d, kind, given, w, notes, error);
}

/* The output is the part alone, whatever the format, so that -o FILE makes one that reads. */
static gboolean
put_part (TopoDesc *d, const char *kind, PartWriter writer, const char *const *given,
          const CliCommon *c, GString *out, GError **error)
{
  if (c->format == FORMAT_CSV) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
                 "import: %s has no such form (found \"csv\"; allowed: text, json)", kind);
    return FALSE;
  }
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (JsonWriter) w = json_writer_new (out, 1);
  if (!writer (d, kind, given, w, notes, error))
    return FALSE;
  g_string_append_c (out, '\n');
  return TRUE;
}

static gboolean
import_smi (const char *path, const char *const *given, const CliCommon *c, GString *out,
            GError **error)
{
  g_autoptr (TopoDesc) d = import_smi_topo (path, error);
  return d != NULL && put_part (d, "nvidia-smi topo -m", node_writer, given, c, out, error);
}

static gboolean
import_nccl_xml (const char *path, const char *const *given, const CliCommon *c, GString *out,
                 GError **error)
{
  g_autoptr (TopoDesc) d = import_nccl_topo (path, error);
  return d != NULL && put_part (d, "NCCL topology", node_writer, given, c, out, error);
}

static gboolean
import_slurm (const char *path, const char *const *given, const CliCommon *c, GString *out,
              GError **error)
{
  g_autoptr (TopoDesc) d = import_slurm_topo (path, import_given (given, "topology"), error);
  return d != NULL && put_part (d, "Slurm topology", import_part_network, given, c, out, error);
}

static gboolean
import_ib (const char *path, const char *const *given, const CliCommon *c, GString *out,
           GError **error)
{
  g_autoptr (TopoDesc) d = import_ibnet (path, import_given (given, "names"), error);
  return d != NULL && put_part (d, "ibnetdiscover", import_part_network, given, c, out, error);
}

static gboolean
import_tests_log (const char *path, const char *const *given, const CliCommon *c, GString *out,
                  GError **error)
{
  g_autoptr (CollTable) t = import_nccl_tests (path, error);
  if (t == NULL)
    return FALSE;
  return c->format == FORMAT_JSON ? import_table_json (t, given, out, error)
                                  : import_table_csv (t, given, out, error);
}

static const struct {
  const char *name;
  ImportFn fn;
} kinds[] = {{"hf-config", import_hf},
             {"megatron-args", import_megatron_args},
             {"deepspeed", import_ds},
             {"nemo", import_nemo_yaml},
             {"torchtitan", import_titan},
             {"kineto", import_kineto_trace},
             {"chakra", import_chakra_trace},
             {"nvidia-smi-topo", import_smi},
             {"nccl-topo", import_nccl_xml},
             {"slurm-topology", import_slurm},
             {"ibnet", import_ib},
             {"nccl-tests", import_tests_log}};

static gboolean
run (const char *kind, const char *path, const char *const *given, const CliCommon *c,
     GError **error)
{
  g_autoptr (GString) names = g_string_new (NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++) {
    g_string_append_printf (names, "%s%s", i > 0 ? ", " : "", kinds[i].name);
    if (strcmp (kinds[i].name, kind) != 0)
      continue;
    g_autoptr (GString) out = g_string_new (NULL);
    return kinds[i].fn (path, given, c, out, error) &&
           cli_output (c, out->str, (gssize)out->len, error);
  }
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
               "import: unknown kind (found \"%.40s\"; allowed: %s)", kind, names->str);
  return FALSE;
}

int
cmd_import_run (int argc, char **argv)
{
  g_auto (CliCommon) c = {0};
  GError *error = NULL;
  const CliHelp help = {
      "KIND FILE [NAME=VALUE…]",
      "Reads a file that you already have into a scenario part.\n"
      "KIND: hf-config, megatron-args, deepspeed, nemo, torchtitan, kineto, chakra,\n"
      "nvidia-smi-topo and nccl-topo (a fabric, or with part=topology links), slurm-topology and\n"
      "ibnet (a topology), nccl-tests (a table).\n"
      "What a template leaves open is given after the file; a launch script "
      "takes its own parameters there.",
      "clustersim import hf-config config.json",
      2,
      -1,
      TRUE};
  if (!cli_parse (&argc, &argv, &help, NULL, &c, &error))
    return cli_fail (error);
  g_autofree const char **given = g_new0 (const char *, argc);
  for (int i = 3; i < argc; i++)
    given[i - 3] = argv[i];
  return run (argv[1], argv[2], given, &c, &error) ? CLI_DONE : cli_fail (error);
}
