/* NeMo launcher and Megatron-Bridge recipes: YAML with sections trainer, model, train, dataset … */
#include <string.h>

#include "cli.h"
#include "import_run.h"
#include "import_yaml.h"

typedef struct {
  ImportedRun *r;
  GHashTable *pairs; /* dotted key → value, for interpolation; looked up only */
  GPtrArray *keys;   /* in order */
  GArray *lines;
  gboolean card, shape;
} Nemo;

static gboolean
note_pair (const char *key, const char *value, guint line, gpointer data,
           GError **error G_GNUC_UNUSED)
{
  Nemo *n = data;
  /* The launcher nests what a job needs under "training". */
  const char *plain = g_str_has_prefix (key, "training.") ? key + strlen ("training.") : key;
  n->card = n->card || g_str_has_prefix (key, "verification_index.");
  if (!g_hash_table_contains (n->pairs, plain)) {
    g_ptr_array_add (n->keys, g_strdup (plain));
    g_array_append_val (n->lines, line);
    g_hash_table_insert (n->pairs, g_strdup (plain), g_strdup (value));
  }
  return TRUE;
}

static char *interpolate (const Nemo *n, const char *key, const char *value, int depth);

/* The "}" that closes the "${" at p, or NULL. */
static const char *
closing (const char *p)
{
  int open = 0;
  for (; *p != '\0'; p++) {
    open += *p == '{' ? 1 : *p == '}' ? -1 : 0;
    if (*p == '}' && open == 0)
      return p;
  }
  return NULL;
}

/* "multiply:A, B" and "divide:A, B" of whole numbers; NULL for anything else. */
static char *
arithmetic (const Nemo *n, const char *key, const char *inner, int depth)
{
  gboolean multiply = g_str_has_prefix (inner, "multiply:");
  const char *colon = strchr (inner, ':');
  gint64 v[2] = {0, 0}, r = 0;
  if (colon == NULL || (!multiply && !g_str_has_prefix (inner, "divide:")))
    return NULL;
  const char *comma = colon + 1;
  for (int open = 0; *comma != '\0' && (*comma != ',' || open > 0); comma++)
    open += *comma == '{' ? 1 : *comma == '}' ? -1 : 0;
  if (*comma == '\0')
    return NULL;
  g_autofree char *a = g_strstrip (g_strndup (colon + 1, (gsize)(comma - colon - 1)));
  g_autofree char *b = g_strstrip (g_strdup (comma + 1));
  g_autofree char *x = interpolate (n, key, a, depth + 1), *y = interpolate (n, key, b, depth + 1);
  if (!g_ascii_string_to_signed (x, 10, 0, G_MAXINT32, &v[0], NULL) ||
      !g_ascii_string_to_signed (y, 10, 1, G_MAXINT32, &v[1], NULL))
    return NULL;
  r = multiply ? v[0] * v[1] : v[0] / v[1];
  return g_strdup_printf ("%" G_GINT64_FORMAT, r);
}

/* "${model.x}", "${training.model.x}" and "${.x}" are looked up, products and quotients made; what
 * is not there stays. */
static char *
interpolate (const Nemo *n, const char *key, const char *value, int depth)
{
  if (depth > 8 || !g_str_has_prefix (value, "${") || closing (value + 1) == NULL ||
      closing (value + 1)[1] != '\0')
    return g_strdup (value);
  g_autofree char *inner = g_strndup (value + 2, strlen (value) - 3);
  char *number = arithmetic (n, key, inner, depth);
  if (number != NULL)
    return number;
  const char *name = g_str_has_prefix (inner, "training.") ? inner + strlen ("training.") : inner;
  const char *dot = strrchr (key, '.');
  g_autofree char *relative = *name == '.' && dot != NULL
                                  ? g_strdup_printf ("%.*s%s", (int)(dot - key), key, name)
                                  : g_strdup (name);
  const char *found = g_hash_table_lookup (n->pairs, relative);
  return found != NULL ? interpolate (n, relative, found, depth + 1) : g_strdup (value);
}

static gboolean
set_flag (ImportedRun *r, const char *name, gboolean value, guint line, GError **error)
{
  return imported_run_set (r, name, value ? "true" : "false", line, error);
}

static gboolean
is_true (const char *value)
{
  return g_ascii_strcasecmp (value, "true") == 0;
}

/* Keys whose meaning is not that of a Megatron argument of the same name. *done: was one. */
static gboolean
take_special (ImportedRun *r, const char *last, const char *value, guint line, gboolean *done,
              GError **error)
{
  *done = TRUE;
  if (strcmp (last, "precision") == 0)
    return strstr (value, "bf16") != NULL ? set_flag (r, "bf16", TRUE, line, error)
           : strstr (value, "16") != NULL ? set_flag (r, "fp16", TRUE, line, error)
                                          : TRUE;
  if (strcmp (last, "bias") == 0 || strcmp (last, "add_bias_linear") == 0)
    return set_flag (r, "disable-bias-linear", !is_true (value), line, error);
  if (strcmp (last, "share_embeddings_and_output_weights") == 0)
    return set_flag (r, "untie-embeddings-and-output-weights", !is_true (value), line, error);
  if (strcmp (last, "activation") == 0) {
    gboolean gated = strstr (value, "swiglu") != NULL || strstr (value, "geglu") != NULL;
    return (strstr (value, "squared") == NULL || set_flag (r, "squared-relu", TRUE, line, error)) &&
           set_flag (r, "swiglu", gated, line, error);
  }
  if (strcmp (last, "gated_linear_unit") == 0)
    return set_flag (r, "swiglu", is_true (value), line, error);
  if (strcmp (last, "activations_checkpoint_method") == 0)
    return TRUE; /* what the granularity means, not whether */
  if (strcmp (last, "fp8") == 0)
    return !is_true (value) || imported_run_set (r, "fp8", "hybrid", line, error);
  *done = FALSE;
  return TRUE;
}

static gboolean
take_pair (Nemo *n, const char *key, guint line, GError **error)
{
  static const char *const sections[] = {"trainer.", "model.", "train.", "dataset.", NULL};
  const char *last = strrchr (key, '.');
  gboolean ours = FALSE, done;
  last = last != NULL ? last + 1 : key;
  for (gsize i = 0; sections[i] != NULL; i++)
    ours = ours || (g_str_has_prefix (key, sections[i]) && key + strlen (sections[i]) == last);
  g_autofree char *value = interpolate (n, key, g_hash_table_lookup (n->pairs, key), 0);
  if (strcmp (key, "model.optim.name") == 0)
    return set_flag (n->r, "use-distributed-optimizer", strstr (value, "distributed") != NULL, line,
                     error);
  if (strcmp (key, "ddp.use_distributed_optimizer") == 0)
    return set_flag (n->r, "use-distributed-optimizer", is_true (value), line, error);
  if (!ours) {
    imported_run_ignore (n->r, key);
    return TRUE;
  }
  if (!take_special (n->r, last, value, line, &done, error) || done)
    return done;
  if (!imported_run_knows (last)) {
    imported_run_ignore (n->r, key);
    return TRUE;
  }
  return imported_run_set (n->r, last, value, line, error);
}

static gboolean
take_all (Nemo *n, const char *path, GError **error)
{
  if (n->card) {
    g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
                 "%s: is a card that tells how a model was verified, no recipe (found "
                 "verification_index; allowed: a recipe with sections model, train or trainer)",
                 path);
    return FALSE;
  }
  for (guint i = 0; i < n->keys->len; i++)
    if (!take_pair (n, g_ptr_array_index (n->keys, i), g_array_index (n->lines, guint, i), error))
      return FALSE;
  if (imported_run_count (n->r) > 0)
    return TRUE;
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
               "%s: no key of a recipe (allowed: sections model, train, dataset or trainer)", path);
  return FALSE;
}

gboolean
import_nemo (ImportedRun *r, const char *path, const char *const *given, GError **error)
{
  Nemo n = {.r = r};
  n.pairs = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  n.keys = g_ptr_array_new_with_free_func (g_free);
  n.lines = g_array_new (FALSE, FALSE, sizeof (guint));
  gboolean ok = TRUE;
  /* The user's values first: the first of a name counts. */
  for (gsize i = 0; ok && given != NULL && given[i] != NULL; i++) {
    const char *equals = strchr (given[i], '=');
    g_autofree char *name =
        equals != NULL ? g_strndup (given[i], (gsize)(equals - given[i])) : NULL;
    g_autofree char *key = name == NULL                 ? NULL
                           : strchr (name, '.') != NULL ? g_strdup (name)
                                                        : g_strconcat ("model.", name, NULL);
    if (key != NULL)
      ok = note_pair (key, equals + 1, 0, &n, error);
  }
  ok = ok && import_yaml_pairs (path, note_pair, &n, error) && take_all (&n, path, error);
  imported_run_software (r, "megatron-core-2024");
  g_hash_table_unref (n.pairs);
  g_ptr_array_unref (n.keys);
  g_array_unref (n.lines);
  return ok;
}
