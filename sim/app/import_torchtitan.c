/* torchtitan's TOML: the part of TOML that such files use. */
#include <string.h>

#include "cli.h"
#include "import_run.h"
#include "import_yaml.h"
#include "paths.h"

typedef struct {
  const char *path, *p;
  guint line;
  GString *table; /* "[parallelism]" */
  char *model, *flavor;
  gint64 local;
  ImportedRun *r;
  const char *const *given;
} Toml;

static gboolean
toml_fail (const Toml *t, GError **error, const char *what)
{
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "%s:%u: %s", t->path, t->line, what);
  return FALSE;
}

static void
blanks (Toml *t)
{
  while (*t->p == ' ' || *t->p == '\t' || *t->p == '\r')
    t->p++;
}

/* A value as text: strings without quotes, arrays whole. */
static char *
read_value (Toml *t, GError **error)
{
  const char *from = t->p;
  if (*t->p == '"' || *t->p == '\'') {
    const char *end = strchr (t->p + 1, *t->p);
    const char *stop = strchr (t->p, '\n');
    if (end == NULL || (stop != NULL && end > stop)) {
      toml_fail (t, error, "a string is not closed");
      return NULL;
    }
    t->p = end + 1;
    return g_strndup (from + 1, (gsize)(end - from - 1));
  }
  if (*t->p == '[' || *t->p == '{') {
    char close = *t->p == '[' ? ']' : '}', open = *t->p;
    int depth = 0;
    for (; *t->p != '\0'; t->p++) {
      depth += *t->p == open ? 1 : *t->p == close ? -1 : 0;
      t->line += *t->p == '\n' ? 1 : 0;
      if (depth == 0)
        return g_strndup (from, (gsize)(++t->p - from));
    }
    toml_fail (t, error, "a list is not closed");
    return NULL;
  }
  t->p += strcspn (t->p, "#\r\n");
  return g_strchomp (g_strndup (from, (gsize)(t->p - from)));
}

static const char *
given_value (const Toml *t, const char *key)
{
  const char *last = strrchr (key, '.') != NULL ? strrchr (key, '.') + 1 : key;
  for (gsize i = 0; t->given != NULL && t->given[i] != NULL; i++) {
    const char *equals = strchr (t->given[i], '=');
    gsize n = equals != NULL ? (gsize)(equals - t->given[i]) : 0;
    if (n > 0 && ((strlen (key) == n && strncmp (t->given[i], key, n) == 0) ||
                  (strlen (last) == n && strncmp (t->given[i], last, n) == 0)))
      return equals + 1;
  }
  return NULL;
}

static gboolean
take_pair (Toml *t, const char *key, const char *value, GError **error)
{
  const char *own = given_value (t, key);
  value = own != NULL ? own : value;
  if (strcmp (key, "model.name") == 0) {
    g_free (t->model);
    t->model = g_strdup (value);
  } else if (strcmp (key, "model.flavor") == 0) {
    g_free (t->flavor);
    t->flavor = g_strdup (value);
  } else if (strcmp (key, "training.local_batch_size") == 0 ||
             strcmp (key, "training.batch_size") == 0) {
    t->local = (gint64)g_ascii_strtoull (value, NULL, 10);
  } else if (strcmp (key, "activation_checkpoint.mode") == 0) {
    return imported_run_set (t->r, "recompute-granularity", value, t->line, error);
  } else if (strcmp (key, "parallelism.data_parallel_shard_degree") == 0) {
    return TRUE; /* -1: what is left; any other is checked against the GPUs by nobody here */
  } else if (strcmp (key, "training.global_batch_size") == 0 && strcmp (value, "-1") == 0) {
    return TRUE;
  } else if (g_str_has_prefix (key, "parallelism.") || strcmp (key, "training.seq_len") == 0 ||
             strcmp (key, "training.global_batch_size") == 0) {
    return imported_run_set (t->r, strchr (key, '.') + 1, value, t->line, error);
  } else {
    imported_run_ignore (t->r, key);
  }
  return TRUE;
}

static gboolean
read_line (Toml *t, GError **error)
{
  blanks (t);
  if (*t->p == '[') {
    const char *end = strpbrk (t->p, "]\n");
    if (end == NULL || *end != ']')
      return toml_fail (t, error, "a table's name is not closed");
    while (*t->p == '[')
      t->p++;
    g_string_truncate (t->table, 0);
    g_string_append_len (t->table, t->p, end - t->p);
    t->p = end + strspn (end, "]");
  } else if (*t->p != '#' && *t->p != '\n' && *t->p != '\0') {
    gsize n = strcspn (t->p, "=\n");
    if (t->p[n] != '=')
      return toml_fail (t, error, "no \"key = value\"");
    g_autofree char *name = g_strstrip (g_strndup (t->p, n));
    t->p += n + 1;
    blanks (t);
    g_autofree char *value = read_value (t, error);
    g_autofree char *key =
        t->table->len > 0 ? g_strdup_printf ("%s.%s", t->table->str, name) : g_strdup (name);
    if (value == NULL || !take_pair (t, key, value, error))
      return FALSE;
  }
  blanks (t);
  if (*t->p == '#')
    t->p += strcspn (t->p, "\n");
  if (*t->p != '\0' && *t->p != '\n')
    return toml_fail (t, error, "text after the value");
  return TRUE;
}

static char *
letters (const char *text)
{
  GString *out = g_string_new (NULL);
  for (; *text != '\0'; text++)
    if (g_ascii_isalnum (*text))
      g_string_append_c (out, g_ascii_tolower (*text));
  return g_string_free (out, FALSE);
}

/* "llama3" and "70B" are the shipped llama-3-70b. */
static void
find_model (Toml *t)
{
  g_auto (GStrv) shipped = data_list ("models");
  g_autofree char *joined =
      g_strconcat (t->model != NULL ? t->model : "", t->flavor != NULL ? t->flavor : "", NULL);
  g_autofree char *want = letters (joined);
  for (gsize i = 0; shipped[i] != NULL; i++) {
    g_autofree char *have = letters (shipped[i]);
    if (strcmp (have, want) == 0) {
      imported_run_model (t->r, shipped[i]);
      return;
    }
  }
  if (*want != '\0')
    imported_run_note (t->r,
                       "model %s %s does not ship: add \"model\" (clustersim import hf-config)",
                       t->model != NULL ? t->model : "", t->flavor != NULL ? t->flavor : "");
}

/* The batch of a rank is one micro-batch; with the GPUs, the global one follows. */
static gboolean
take_batch (Toml *t, GError **error)
{
  const char *gpus = given_value (t, "gpus");
  g_autofree char *local = g_strdup_printf ("%" G_GINT64_FORMAT, MAX (t->local, 1));
  if (gpus != NULL && !imported_run_set (t->r, "gpus", gpus, 0, error))
    return FALSE;
  if (t->local > 0 && !imported_run_set (t->r, "micro-batch-size", local, 0, error))
    return FALSE;
  if (!imported_run_has (t->r, "global-batch-size") && t->local > 0)
    imported_run_note (t->r,
                       "global batch = local_batch_size %" G_GINT64_FORMAT
                       " x data-parallel ranks (GPUs / (tp x cp x pp)): set "
                       "train.global_batch_sequences",
                       t->local);
  return imported_run_set (t->r, "bf16", NULL, 0, error); /* its mixed precision is bf16 */
}

gboolean
import_torchtitan (ImportedRun *r, const char *path, const char *const *given, GError **error)
{
  g_autofree char *text = NULL;
  if (!import_text_file (path, &text, error))
    return FALSE;
  Toml t = {.path = path, .p = text, .line = 1, .r = r, .given = given};
  t.table = g_string_new (NULL);
  gboolean ok = TRUE;
  while (ok && *t.p != '\0') {
    ok = read_line (&t, error);
    if (ok && *t.p == '\n') {
      t.p++;
      t.line++;
    }
  }
  if (ok && imported_run_count (r) == 0)
    ok = toml_fail (&t, error, "no key of torchtitan (allowed: tables training, parallelism …)");
  if (ok) {
    find_model (&t);
    imported_run_software (r, "torchtitan-2025");
    ok = imported_run_set (r, "use-torch-fsdp2", NULL, 0, error) && take_batch (&t, error);
  }
  g_string_free (t.table, TRUE);
  g_free (t.model);
  g_free (t.flavor);
  return ok;
}
