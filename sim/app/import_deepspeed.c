/* DeepSpeed's JSON. Sizes may be "auto", which whoever starts the run fills in. */
#include <string.h>

#include "cli.h"
#include "import_run.h"

/* The user's value of a key, or NULL. */
static const char *
given_value (const char *const *given, const char *key)
{
  gsize n = strlen (key);
  for (gsize i = 0; given != NULL && given[i] != NULL; i++)
    if (strncmp (given[i], key, n) == 0 && given[i][n] == '=')
      return given[i] + n + 1;
  return NULL;
}

/* option: what the user gives it by. */
static gboolean
take (ImportedRun *r, const JsonRef *at, const char *name, const char *key, const char *option,
      const char *const *given, GError **error)
{
  JsonRef ref;
  const char *own = given_value (given, option);
  if (own != NULL)
    return imported_run_set (r, name, own, 0, error);
  if (!json_has (at, key) || !json_get_any (at, key, &ref, error))
    return TRUE;
  g_autofree char *where = json_where (&ref), *path = json_path (&ref);
  const char *colon = strrchr (where, ':');
  guint line = colon != NULL ? (guint)g_ascii_strtoull (colon + 1, NULL, 10) : 0;
  char *text = cJSON_PrintUnformatted (ref.node);
  gsize len = strlen (text);
  gboolean quoted = len > 1 && text[0] == '"';
  g_autofree char *value = quoted ? g_strndup (text + 1, len - 2) : g_strdup (text);
  cJSON_free (text);
  if (strcmp (value, "auto") == 0) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
                 "%s: %s: is \"auto\": who starts the run fills it in (give %s=VALUE after the "
                 "file)",
                 where, path, option);
    return FALSE;
  }
  return imported_run_set (r, name, value, line, error);
}

static gboolean
take_enabled (ImportedRun *r, const JsonRef *root, const char *key, const char *const *given,
              GError **error)
{
  JsonRef ref;
  const char *own = given_value (given, key);
  if (own != NULL)
    return imported_run_set (r, key, own, 0, error);
  if (!json_has (root, key) || imported_run_has (r, "bf16") || imported_run_has (r, "fp16"))
    return TRUE;
  return json_get_object (root, key, &ref, error) &&
         take (r, &ref, key, "enabled", key, given, error);
}

static gboolean
take_zero (ImportedRun *r, const JsonRef *root, const char *const *given, GError **error)
{
  static const char *const offloads[] = {"offload_optimizer", "offload_param"};
  JsonRef zero, at;
  if (!json_has (root, "zero_optimization"))
    return TRUE;
  if (!json_get_object (root, "zero_optimization", &zero, error) ||
      !take (r, &zero, "zero-stage", "stage", "stage", given, error))
    return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (offloads); i++) {
    const char *device = "none";
    if (json_has (&zero, offloads[i]) && (!json_get_object (&zero, offloads[i], &at, error) ||
                                          !json_opt_string (&at, "device", &device, error)))
      return FALSE;
    if (strcmp (device, "none") != 0)
      imported_run_note (r, "%s to %s is not simulated: memory and time are those without it",
                         offloads[i], device);
  }
  for (int i = 0; i < json_len (&zero); i++) {
    JsonRef member = json_item (&zero, i);
    if (strcmp (member.key, "stage") != 0 && !g_str_has_prefix (member.key, "offload_")) {
      g_autofree char *name = g_strconcat ("zero_optimization.", member.key, NULL);
      imported_run_ignore (r, name);
    }
  }
  return TRUE;
}

static void
ignore_rest (ImportedRun *r, const JsonRef *root)
{
  static const char *const read[] = {"train_batch_size",
                                     "train_micro_batch_size_per_gpu",
                                     "bf16",
                                     "fp16",
                                     "zero_optimization",
                                     "tensor_parallel",
                                     NULL};
  for (int i = 0; i < json_len (root); i++) {
    JsonRef member = json_item (root, i);
    if (!g_strv_contains (read, member.key))
      imported_run_ignore (r, member.key);
  }
}

gboolean
import_deepspeed (ImportedRun *r, const char *path, const char *const *given, GError **error)
{
  JsonRef tensor;
  g_autoptr (GError) why = NULL;
  g_autoptr (JsonDoc) doc = json_doc_load (path, &why);
  if (doc == NULL) {
    /* A bare word where a value should be: a template that nobody filled in. */
    g_set_error (error, why->domain, why->code, "%s%s", why->message,
                 why->code == JSON_ERROR_SYNTAX
                     ? " (a template? its placeholders must be filled in first)"
                     : "");
    return FALSE;
  }
  JsonRef root = json_root (doc);
  if (!json_is_object (&root))
    return json_fail (&root, JSON_ERROR_TYPE, error, "wrong type (allowed: an object)");
  if (!take_zero (r, &root, given, error) || !take_enabled (r, &root, "bf16", given, error) ||
      !take_enabled (r, &root, "fp16", given, error) ||
      !take (r, &root, "global-batch-size", "train_batch_size", "train_batch_size", given, error) ||
      !take (r, &root, "micro-batch-size", "train_micro_batch_size_per_gpu",
             "train_micro_batch_size_per_gpu", given, error))
    return FALSE;
  if (json_has (&root, "tensor_parallel") &&
      (!json_get_object (&root, "tensor_parallel", &tensor, error) ||
       !take (r, &tensor, "tp", "autotp_size", "autotp_size", given, error)))
    return FALSE;
  ignore_rest (r, &root);
  imported_run_software (r, "megatron-deepspeed-2022");
  imported_run_note (r, "software: clustersim list software has what ships");
  return TRUE;
}
