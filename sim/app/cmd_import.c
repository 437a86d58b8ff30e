#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "import_hf.h"
#include "json_read.h"
#include "json_write.h"
#include "read_model.h"

/* Each kind turns a file into a scenario part. */
typedef gboolean (*ImportFn) (const char *path, const CliCommon *c, GString *out, GError **error);

static gboolean
import_hf (const char *path, const CliCommon *c, GString *out, GError **error)
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
      jw_begin_array (w, "ignored_keys");
      for (guint i = 0; i < ignored->len; i++)
        jw_string (w, NULL, g_ptr_array_index (ignored, i));
      jw_end_array (w);
    }
    jw_end_object (w);
    g_string_append_c (out, '\n');
  }
  if (!c->quiet && c->format == FORMAT_TEXT && ignored->len > 0) {
    g_string_append (out, "\nkeys that do not matter here and were ignored:");
    for (guint i = 0; i < ignored->len; i++)
      g_string_append_printf (out, " %s", (const char *)g_ptr_array_index (ignored, i));
    g_string_append_c (out, '\n');
  }
  model_clear (&m);
  return TRUE;
}

static const struct {
  const char *name;
  ImportFn fn;
} kinds[] = {{"hf-config", import_hf}};

static gboolean
run (const char *kind, const char *path, const CliCommon *c, GError **error)
{
  for (gsize i = 0; i < G_N_ELEMENTS (kinds); i++) {
    if (strcmp (kinds[i].name, kind) != 0)
      continue;
    g_autoptr (GString) out = g_string_new (NULL);
    return kinds[i].fn (path, c, out, error) && cli_output (c, out->str, (gssize)out->len, error);
  }
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
               "import: unknown kind (found \"%.40s\"; allowed: hf-config)", kind);
  return FALSE;
}

int
cmd_import_run (int argc, char **argv)
{
  g_auto (CliCommon) c = {0};
  GError *error = NULL;
  const CliHelp help = {"KIND FILE",
                        "Reads a file that you already have into a scenario part. KIND: hf-config.",
                        "clustersim import hf-config config.json", 2, 2};
  if (!cli_parse (&argc, &argv, &help, NULL, &c, &error))
    return cli_fail (error);
  return run (argv[1], argv[2], &c, &error) ? CLI_DONE : cli_fail (error);
}
