#include <string.h>

#include "cli.h"
#include "commands.h"
#include "gpu_profile.h"
#include "json_read.h"
#include "paths.h"
#include "sched.h"
#include "store.h"

static const struct {
  const char *word, *folder;
} kinds[] = {{"gpus", "hw"},
             {"models", "models"},
             {"fabrics", "fabrics"},
             {"software", "software"},
             {"schedules", NULL},
             {"scenarios", "train"},
             {"hw", "hw"},
             {"train", "train"},
             {"campaigns", "campaign"},
             {"prices", "prices"},
             {"failures", "failures"}};

static void
describe (GString *out, Store *st, const char *folder, const char *name)
{
  g_string_append (out, name);
  if (strcmp (folder, "hw") == 0) {
    const GpuProfile *g = store_gpu (st, name, NULL, NULL);
    if (g != NULL)
      g_string_append_printf (out, "%*s %7.0f bf16 TFLOP/s  %6.1f GiB  %5.0f GB/s",
                              (int)MAX (0, 24 - (int)strlen (name)), "",
                              gpu_peak_flops (g, DT_BF16) * 1e-12,
                              (double)gpu_capacity_bytes (g) / (1 << 30), g->hbm_Bps * 1e-9);
  } else if (strcmp (folder, "models") == 0) {
    const ModelSpec *m = store_model (st, name, NULL, NULL);
    if (m != NULL)
      g_string_append_printf (out, "%*s %9.3f B parameters", (int)MAX (0, 24 - (int)strlen (name)),
                              "", (double)model_params_total (m) * 1e-9);
  }
  g_string_append_c (out, '\n');
}

static gboolean
list (const char *word, const CliCommon *c, GError **error)
{
  g_autoptr (GString) out = g_string_new (NULL);
  g_autoptr (Store) st = store_new ();
  gsize k = 0;
  while (k < G_N_ELEMENTS (kinds) && strcmp (kinds[k].word, word) != 0)
    k++;
  if (k == G_N_ELEMENTS (kinds)) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
                 "list: unknown kind (found \"%.40s\"; allowed: gpus, models, fabrics, software, "
                 "schedules, scenarios)",
                 word);
    return FALSE;
  }
  g_auto (GStrv) names = kinds[k].folder != NULL ? data_list (kinds[k].folder) : NULL;
  const char *const *list_of = kinds[k].folder != NULL ? (const char *const *)names : sched_names;
  for (gsize i = 0; list_of != NULL && list_of[i] != NULL; i++)
    if (c->format == FORMAT_TEXT && kinds[k].folder != NULL)
      describe (out, st, kinds[k].folder, list_of[i]);
    else
      g_string_append_printf (out, c->format == FORMAT_JSON ? "%s\"%s\"" : "%s%s\n",
                              c->format == FORMAT_JSON ? (i > 0 ? ", " : "[") : "", list_of[i]);
  if (c->format == FORMAT_JSON)
    g_string_append (out, out->len > 0 ? "]\n" : "[]\n");
  return cli_output (c, out->str, (gssize)out->len, error);
}

int
cmd_list_run (int argc, char **argv)
{
  g_auto (CliCommon) c = {0};
  GError *error = NULL;
  const CliHelp help = {"gpus|models|fabrics|software|schedules|scenarios",
                        "Lists what ships.",
                        "clustersim list gpus",
                        1,
                        1,
                        TRUE};
  if (!cli_parse (&argc, &argv, &help, NULL, &c, &error))
    return cli_fail (error);
  return list (argv[1], &c, &error) ? CLI_DONE : cli_fail (error);
}
