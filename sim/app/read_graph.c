#include "read_graph.h"

#include <stddef.h>
#include <string.h>

#define MAX_SIZES  64
#define MAX_OPS    4096
#define MAX_LAYERS 65536

typedef struct {
  NamedSize list[MAX_SIZES];
  guint n;
} Sizes;

static gint64
known (const Sizes *z, const char *name, gint64 otherwise)
{
  for (guint i = 0; i < z->n; i++)
    if (strcmp (z->list[i].name, name) == 0)
      return z->list[i].value;
  return otherwise;
}

/* An integer, or an expression of sizes. */
static gboolean
value_of (const JsonRef *ref, const Sizes *z, gint64 *out, GError **error)
{
  const char *text = NULL, *why = NULL;
  if (!json_is_string (ref))
    return json_value_int (ref, 0, G_MAXINT32, out, error);
  if (!json_value_string (ref, &text, error))
    return FALSE;
  if (size_expression (text, z->list, z->n, out, &why))
    return TRUE;
  return json_fail (ref, JSON_ERROR_RANGE, error, "%s (found \"%s\")", why, text);
}

static gboolean
opt_value (const JsonRef *obj, const char *key, const Sizes *z, gint64 *out, GError **error)
{
  JsonRef at;
  if (!json_has (obj, key))
    return TRUE;
  return json_get_any (obj, key, &at, error) && value_of (&at, z, out, error);
}

static gboolean
read_sizes (const JsonRef *root, Sizes *z, GError **error)
{
  JsonRef obj;
  if (!json_has (root, "sizes"))
    return TRUE;
  if (!json_get_object (root, "sizes", &obj, error))
    return FALSE;
  if (json_len (&obj) > MAX_SIZES)
    return json_fail (&obj, JSON_ERROR_RANGE, error, "more than %d sizes", MAX_SIZES);
  for (int i = 0; i < json_len (&obj); i++) {
    JsonRef item = json_item (&obj, i);
    gint64 v = 0;
    if (!value_of (&item, z, &v, error))
      return FALSE;
    z->list[z->n++] = (NamedSize){item.key, v};
  }
  return TRUE;
}

/* ---- one operator ---- */

#define FIELD(f)                                                                                   \
  {                                                                                                \
#f, offsetof(GraphOp, f)                                                                       \
  }
static const struct {
  const char *key;
  gsize offset;
} op_sizes[] = {FIELD (in),     FIELD (out),   FIELD (kernel),   FIELD (stride),   FIELD (size),
                FIELD (groups), FIELD (heads), FIELD (kv_heads), FIELD (head_dim), FIELD (state),
                FIELD (chunk),  FIELD (rows),  FIELD (kv_rows),  FIELD (count)},
  op_flags[] = {FIELD (bias), FIELD (tied),     FIELD (causal), FIELD (relative), FIELD (gated),
                FIELD (rms),  FIELD (residual), FIELD (relu),   FIELD (first),    FIELD (padded)},
  op_numbers[] = {FIELD (rows_per_token), FIELD (kv_per_token), FIELD (forward_passes),
                  FIELD (backward_passes)};

static gboolean
check_op_keys (const JsonRef *obj, GError **error)
{
  const char
      *keys[G_N_ELEMENTS (op_sizes) + G_N_ELEMENTS (op_flags) + G_N_ELEMENTS (op_numbers) + 5];
  guint n = 0;
  for (guint i = 0; i < G_N_ELEMENTS (op_sizes); i++)
    keys[n++] = op_sizes[i].key;
  for (guint i = 0; i < G_N_ELEMENTS (op_flags); i++)
    keys[n++] = op_flags[i].key;
  for (guint i = 0; i < G_N_ELEMENTS (op_numbers); i++)
    keys[n++] = op_numbers[i].key;
  keys[n++] = "op";
  keys[n++] = "name";
  keys[n++] = "width"; /* in and out at once */
  keys[n++] = "split";
  keys[n] = NULL;
  return json_check_keys (obj, keys, error);
}

static gboolean
read_op (const JsonRef *obj, const Sizes *z, const GraphOp *block, GraphOp *op, GError **error)
{
  int kind = 0, split = SPLIT_NONE;
  const char *name = NULL;
  gint64 width = 0;
  *op = *block;
  op->groups = op->stride = 1;
  if (!check_op_keys (obj, error) || !json_get_enum (obj, "op", graph_op_names, &kind, error) ||
      !json_opt_string (obj, "name", &name, error) ||
      !json_opt_enum (obj, "split", graph_split_names, &split, error) ||
      !opt_value (obj, "width", z, &width, error))
    return FALSE;
  op->kind = (GraphOpKind)kind;
  op->split = (GraphSplit)split;
  op->in = op->out = width;
  op->name = g_strdup (name != NULL ? name : graph_op_names[kind]);
  for (guint i = 0; i < G_N_ELEMENTS (op_sizes); i++)
    if (!opt_value (obj, op_sizes[i].key, z, (gint64 *)(void *)((char *)op + op_sizes[i].offset),
                    error))
      return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (op_flags); i++)
    if (!json_opt_bool (obj, op_flags[i].key, (gboolean *)(void *)((char *)op + op_flags[i].offset),
                        error))
      return FALSE;
  for (guint i = 0; i < G_N_ELEMENTS (op_numbers); i++)
    if (!json_opt_double (obj, op_numbers[i].key, 0, 1e6,
                          (double *)(void *)((char *)op + op_numbers[i].offset), error))
      return FALSE;
  if (json_has (obj, "rows_per_token") && !json_has (obj, "rows"))
    op->rows = 0;
  if (op->kv_heads == 0)
    op->kv_heads = op->heads;
  return TRUE;
}

/* ---- blocks ---- */

static gboolean
read_block (const JsonRef *obj, const char *name, const Sizes *z, ModelGraph *g, GError **error)
{
  static const char *const keys[] = {"ops", "rows", "rows_per_token", NULL};
  GraphOp rows = {.rows_per_token = 1.0};
  JsonRef ops;
  if (g->n_blocks == GRAPH_MAX_BLOCKS)
    return json_fail (obj, JSON_ERROR_RANGE, error, "more than %d blocks", GRAPH_MAX_BLOCKS - 2);
  if (!json_check_keys (obj, keys, error) || !json_get_array (obj, "ops", &ops, error) ||
      !opt_value (obj, "rows", z, &rows.rows, error) ||
      !json_opt_double (obj, "rows_per_token", 0, 1e6, &rows.rows_per_token, error))
    return FALSE;
  if (json_len (&ops) > MAX_OPS)
    return json_fail (&ops, JSON_ERROR_RANGE, error, "more than %d operators", MAX_OPS);
  GraphBlock *b = &g->blocks[g->n_blocks++];
  b->name = g_strdup (name);
  b->ops = g_new0 (GraphOp, MAX (json_len (&ops), 1));
  for (int i = 0; i < json_len (&ops); i++) {
    JsonRef item = json_item (&ops, i);
    if (!json_is_object (&item))
      return json_fail (&item, JSON_ERROR_TYPE, error, "an operator must be an object");
    b->n++;
    if (!read_op (&item, z, &rows, &b->ops[i], error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
read_blocks (const JsonRef *root, const Sizes *z, ModelGraph *g, GError **error)
{
  JsonRef part;
  static const char *const ends[] = {"input", "output"};
  for (guint i = 0; i < G_N_ELEMENTS (ends); i++)
    if (!json_get_object (root, ends[i], &part, error) || !read_block (&part, ends[i], z, g, error))
      return FALSE;
  if (!json_get_object (root, "blocks", &part, error))
    return FALSE;
  for (int i = 0; i < json_len (&part); i++) {
    JsonRef item = json_item (&part, i);
    if (!json_is_object (&item))
      return json_fail (&item, JSON_ERROR_TYPE, error, "a block must be an object");
    if (!read_block (&item, item.key, z, g, error))
      return FALSE;
  }
  return TRUE;
}

/* ---- layers ---- */

static int
find_block (const ModelGraph *g, const char *name, gsize len)
{
  for (guint i = GRAPH_LAYERS; i < g->n_blocks; i++)
    if (strlen (g->blocks[i].name) == len && strncmp (g->blocks[i].name, name, len) == 0)
      return (int)i;
  return -1;
}

static gboolean
append (const JsonRef *at, ModelGraph *g, GByteArray *out, const char *name, gsize len,
        gint64 repeat, GError **error)
{
  int block = find_block (g, name, len);
  if (block < 0)
    return json_fail (at, JSON_ERROR_RANGE, error, "no block is named \"%.*s\"", (int)len, name);
  if (repeat < 0 || repeat > MAX_LAYERS - (gint64)out->len)
    return json_fail (at, JSON_ERROR_RANGE, error, "more than %d layers", MAX_LAYERS);
  guint8 index = (guint8)block;
  for (gint64 i = 0; i < repeat; i++)
    g_byte_array_append (out, &index, 1);
  return TRUE;
}

static gboolean
read_list (const JsonRef *root, const Sizes *z, ModelGraph *g, GByteArray *out, GError **error)
{
  static const char *const keys[] = {"block", "repeat", NULL};
  JsonRef arr;
  if (!json_get_array (root, "layers", &arr, error))
    return FALSE;
  for (int i = 0; i < json_len (&arr); i++) {
    JsonRef item = json_item (&arr, i);
    const char *name = NULL;
    gint64 repeat = 1;
    if (!json_check_keys (&item, keys, error) || !json_get_string (&item, "block", &name, error) ||
        !opt_value (&item, "repeat", z, &repeat, error) ||
        !append (&item, g, out, name, strlen (name), repeat, error))
      return FALSE;
  }
  return TRUE;
}

/* layers: blocks with their repetitions; or pattern: a letter a layer, the name of its block. */
static gboolean
read_layers (const JsonRef *root, const Sizes *z, ModelGraph *g, GError **error)
{
  const char *pattern = NULL;
  g_autoptr (GByteArray) out = g_byte_array_new ();
  JsonRef at;
  if (!json_has (root, "pattern")) {
    if (!read_list (root, z, g, out, error))
      return FALSE;
  } else {
    if (!json_get_string (root, "pattern", &pattern, error) ||
        !json_get_any (root, "pattern", &at, error))
      return FALSE;
    if (json_has (root, "layers"))
      return json_fail (&at, JSON_ERROR_INCONSISTENT, error, "layers and pattern are both given");
    for (; *pattern != '\0'; pattern++)
      if (!append (&at, g, out, pattern, 1, 1, error))
        return FALSE;
  }
  g->n_layers = out->len;
  g->layer = g_byte_array_free (g_steal_pointer (&out), FALSE);
  return TRUE;
}

/* ---- the model ---- */

gboolean
is_graph_model (const JsonRef *root)
{
  return json_has (root, "blocks");
}

static gboolean
has_tied (const ModelGraph *g)
{
  for (guint i = 0; i < g->blocks[GRAPH_OUTPUT].n; i++)
    if (g->blocks[GRAPH_OUTPUT].ops[i].tied)
      return TRUE;
  return FALSE;
}

gboolean
read_graph_model (const JsonRef *root, ModelSpec *out, GError **error)
{
  static const char *const keys[] = {"name",   "source",        "sizes",   "input",
                                     "blocks", "layers",        "pattern", "output",
                                     "hidden", "sample_tokens", "images",  NULL};
  Sizes z = {.n = 0};
  const char *text = NULL;
  g_autoptr (ModelGraph) g = graph_new ();
  if (!json_check_keys (root, keys, error) || !json_opt_string (root, "source", &text, error) ||
      !read_sizes (root, &z, error))
    return FALSE;
  text = NULL;
  g->hidden = known (&z, "hidden", 0);
  if (!json_opt_string (root, "name", &text, error) || !read_blocks (root, &z, g, error) ||
      !read_layers (root, &z, g, error) || !opt_value (root, "hidden", &z, &g->hidden, error) ||
      !opt_value (root, "sample_tokens", &z, &g->sample_tokens, error) ||
      !json_opt_bool (root, "images", &g->images, error))
    return FALSE;
  if (g->hidden < 1)
    return json_fail (root, JSON_ERROR_MISSING, error,
                      "hidden is needed: elements a token that one layer hands to the next");
  out->name = g_strdup (text != NULL ? text : "model");
  out->num_layers = g->n_layers;
  out->hidden = g->hidden;
  out->vocab = known (&z, "vocab", 1);
  out->heads = out->kv_heads = out->head_dim = 1;
  out->ffn_hidden = 1;
  out->pos = POS_NONE;
  out->norms_per_layer = 0;
  out->final_norm = FALSE;
  out->tied_embeddings = has_tied (g);
  out->graph = g_steal_pointer (&g);
  g_autoptr (GError) why = NULL;
  if (!model_check (out, &why))
    return json_fail (root, JSON_ERROR_INCONSISTENT, error, "%s", why->message);
  return TRUE;
}
