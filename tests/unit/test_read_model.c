/* read_model: our own JSON form, its errors, writing it back, and every shipped architecture's
 * counts. */
#include "read_model.h"

#include <string.h>

static JsonDoc *
load_shipped (const char *name)
{
  const char *root = g_getenv ("CLUSTERSIM_SCENARIOS");
  g_autofree char *file = g_strconcat (name, ".json", NULL);
  g_autofree char *path =
      g_build_filename (root != NULL ? root : "scenarios", "models", file, NULL);
  g_autoptr (GError) error = NULL;
  JsonDoc *doc = json_doc_load (path, &error);

  g_assert_no_error (error);
  return doc;
}

static gboolean
load (const char *name, ModelSpec *m)
{
  g_autoptr (JsonDoc) doc = load_shipped (name);
  g_autoptr (GError) error = NULL;

  if (doc == NULL)
    return FALSE;
  const JsonRef root = json_root (doc);
  const gboolean ok = read_model (&root, m, &error);
  g_assert_no_error (error);
  return ok;
}

#define G(x) G_GINT64_CONSTANT (x)

/* GPT shapes: 12 l h^2 + 13 l h + (V + s) h + 2 h (arXiv 2104.04473, equation 2, and the final
 * norm); the printed size in billions beside it, with one decimal or four digits. */
static const struct {
  const char *name;
  gint64 layers, hidden, vocab, seq;
  double billions;
} gpts[] = {
    {"gpt3-175b", 96, 12288, 50257, 2048, 174.6},
    {"megatron-1.7b", 24, 2304, 51200, 2048, 1.7},
    {"megatron-3.6b", 30, 3072, 51200, 2048, 3.6},
    {"megatron-7.5b", 36, 4096, 51200, 2048, 7.5},
    {"megatron-18b", 40, 6144, 51200, 2048, 18.4},
    {"megatron-39b", 48, 8192, 51200, 2048, 39.1},
    {"megatron-76b", 60, 10240, 51200, 2048, 76.1},
    {"megatron-145b", 80, 12288, 51200, 2048, 145.6},
    {"megatron-310b", 96, 16384, 51200, 2048, 310.1},
    {"megatron-530b", 105, 20480, 51200, 2048, 529.6},
    {"megatron-1t", 128, 25600, 51200, 2048, 1008.0},
    {"korthikanti-22b", 48, 6144, 51200, 2048, 22.1},
    {"korthikanti-175b", 96, 12288, 51200, 2048, 174.6},
    {"korthikanti-530b", 105, 20480, 51200, 2048, 529.6},
    {"korthikanti-1t", 128, 25600, 51200, 2048, 1008.0},
    {"mpt-125m", 12, 768, 50368, 2048, 0.1253},
    {"mpt-350m", 24, 1024, 50368, 2048, 0.356},
    {"mpt-760m", 24, 1536, 50368, 2048, 0.7605},
    {"mpt-1b", 24, 2048, 50368, 2048, 1.316},
    {"mpt-3b", 32, 2560, 50368, 2048, 2.6518},
    {"mpt-7b", 32, 4096, 50368, 2048, 6.6589},
    {"mpt-13b", 40, 5120, 50368, 2048, 12.854},
    {"mpt-30b", 48, 7168, 50368, 2048, 29.9752},
    {"mpt-70b", 80, 8192, 50368, 2048, 64.8624},
};

/* Totals and active parameters that the publishers' own files hold; 0: all are active. */
static const struct {
  const char *name;
  gint64 total, active;
} others[] = {
    {"gpt-neox-20b", G (20554567680), 0},
    {"bloom-176b", G (176247271424), 0},
    {"llama-2-7b", G (6738415616), 0},
    {"llama-2-13b", G (13015864320), 0},
    {"llama-2-70b", G (68976648192), 0},
    {"llama-3-8b", G (8030261248), 0},
    {"llama-3.1-8b", G (8030261248), 0},
    {"llama-3-70b", G (70553706496), 0},
    {"llama-3.1-70b", G (70553706496), 0},
    {"llama-3.1-405b", G (405853388800), 0},
    /* 2 V h + l (h (2 h + 2 kv 128) + 2 h f + 4 h) + 2 h: 15.6 and 341 billion in the papers */
    {"nemotron-4-15b",
     2 * G (256000) * 6144 + 32 * (G (6144) * (2 * 6144 + 2048 + 2 * 24576) + 4 * 6144) + 2 * 6144,
     0},
    {"nemotron-4-340b",
     2 * G (256000) * 18432 + 96 * (G (18432) * (2 * 18432 + 2 * 8 * 192 + 2 * 73728) + 4 * 18432) +
         2 * 18432,
     0},
    /* biases on q, k, v and o: 2 V h + l (4 h^2 + 4 h + 3 h f + 2 h) + h */
    {"internlm-7b", 2 * G (103168) * 4096 + 32 * (G (4096) * (4 * 4096 + 4 + 3 * 11008 + 2)) + 4096,
     0},
    {"qwen2.5-7b", G (7615616512), 0},
    {"qwen2.5-32b", G (32763876352), 0},
    {"mistral-7b", G (7241732096), 0},
    {"mixtral-8x7b", G (46702792704), G (12879925248)},
    {"mixtral-8x22b", G (140620634112), G (39152031744)},
    /* 2 V h + l (h (2 h + 2 512) + h + 2 512 + (64 or 8) 3 h 2560 + 3 h 20480 + 64 h + h + 2 h) + h
     */
    {"qwen2-57b-a14b",
     2 * G (151936) * 3584 + 28 * G (3584) * (2 * 3584 + 1024 + 64 * 3 * 2560 + 3 * 20480 + 68) +
         28 * 1024 + 3584,
     2 * G (151936) * 3584 + 28 * G (3584) * (2 * 3584 + 1024 + 8 * 3 * 2560 + 3 * 20480 + 68) +
         28 * 1024 + 3584},
    {"qwen3-30b-a3b", G (30532122624), G (3353032704)},
    {"qwen3-235b-a22b", G (235093634560), G (22190763520)},
    {"qwen3-next-80b-a3b", G (79674391296), G (3874929408)},
    {"deepseek-v2-lite", G (15706484224), G (2661150208)},
    {"deepseek-v2", G (235741434880), G (21375800320)},
    {"deepseek-v3", G (671026419200), G (37552297472)},
    {"kimi-k2", G (1026408232448), G (32861500928)},
    {"glm-5", G (743911218432), G (41784728832)},
    {"gpt-oss-120b", G (116829156672), G (5711982912)},
    {"gpt-oss-20b", G (20914757184), G (4187440704)},
    {"grok-1", G (315684820992), G (83756587008)},
    {"llama-4-scout", G (107769861120), G (17172894720)},
    {"llama-4-maverick", G (400711848960), G (17184691200)},
    /* lists of operators: counts that torchvision, transformers and timm print; BERT with both
     * pre-training heads */
    {"resnet-50", G (25557032), 0},
    {"resnet-101", G (44549160), 0},
    {"resnet-152", G (60192808), 0},
    {"bert-base", G (110106428), 0},
    {"bert-large", G (336226108), 0},
    {"bert-large-dense-head", G (336226108), 0},
    {"vit-b-16", G (86567656), 0},
    {"vit-l-16", G (304326632), 0},
    {"vit-h-14", G (632045800), 0},
    /* l (4 h h + 4 h + 2 h f + f + h + 4 h) + patches (588 + 1) h + class h + 257 h + 2 h + head */
    {"vit-g-14",
     48 * (4 * G (1664) * 1664 + 2 * G (1664) * 8192 + 9 * 1664 + 8192) +
         1664 * (589 + 1 + 257 + 2 + 1000) + 1000,
     0},
    {"t5-base", G (222903552), 0},
    {"t5-large", G (737668096), 0},
    {"t5-3b", G (2851598336), 0},
    {"t5-11b", G (11307321344), 0},
    {"t5-v1.1-xl", G (2849757184), 0},
    /* words V h, biases V, three clusters 3 h + 3; a layer: q, k, v, distances and o of a = 64 n
     * columns, two biases of a, MLP, two norms: l (5 h a + 2 a + 2 h f + f + h + 4 h) */
    {"transformer-xl-base",
     G (267735) * 513 + 3 * 512 + 3 + 16 * (G (512) * (5 * 512 + 2 + 2 * 2048 + 5) + 2048), 0},
    /* … with words of h, h / 4, h / 16 and h / 64 and their projections */
    {"transformer-xl-large",
     G (19997) * 1024 + 20000 * 256 + 160000 * 64 + 67738 * 16 + 1024 * (1024 + 256 + 64 + 16) +
         1024 * 1024 + 3 * 1024 + 3 + 267735 +
         18 * (G (1024) * (5 * 1024 + 2 + 2 * 4096 + 5) + 4096),
     0},
    /* 2 V h + h; Mamba: h (2 i + 2 n g + m) + i h + 5 (i + 2 n g) + 3 m + i + h, i = 64 m */
    {"nemotron-h-4b", G (4489223040), 0},
    {"nemotron-h-8b", G (8100852736), 0},
    {"nemotron-h-56b", G (56324350464), 0},
};

static void
test_shipped_gpt (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (gpts); i++) {
    const gint64 l = gpts[i].layers, h = gpts[i].hidden;
    ModelSpec m;

    if (!load (gpts[i].name, &m))
      continue;
    g_assert_cmpstr (m.name, ==, gpts[i].name);
    g_assert_cmpint (model_params_total (&m), ==,
                     12 * l * h * h + 13 * l * h + (gpts[i].vocab + gpts[i].seq) * h + 2 * h);
    g_assert_cmpfloat_with_epsilon ((double)model_params_total (&m) / 1e9, gpts[i].billions,
                                    gpts[i].vocab == 51200 ? 0.06 : 0.001 * gpts[i].billions);
    model_clear (&m);
  }
}

static void
test_shipped_others (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    const gint64 active = others[i].active > 0 ? others[i].active : others[i].total;
    ModelSpec m;

    if (!load (others[i].name, &m))
      continue;
    g_assert_cmpstr (m.name, ==, others[i].name);
    if (model_params_total (&m) != others[i].total || model_params_active (&m) != active)
      g_test_message ("%s: %" G_GINT64_FORMAT ", active %" G_GINT64_FORMAT, m.name,
                      model_params_total (&m), model_params_active (&m));
    g_assert_cmpint (model_params_total (&m), ==, others[i].total);
    g_assert_cmpint (model_params_active (&m), ==, active);
    model_clear (&m);
  }
}

/* No file ships without a count above, and each has its source. */
static void
test_all_are_counted (void)
{
  const char *root = g_getenv ("CLUSTERSIM_SCENARIOS");
  g_autofree char *dir = g_build_filename (root != NULL ? root : "scenarios", "models", NULL);
  g_autoptr (GDir) d = g_dir_open (dir, 0, NULL);
  guint files = 0;

  g_assert_nonnull (d);
  for (const char *name = g_dir_read_name (d); name != NULL; name = g_dir_read_name (d))
    if (g_str_has_suffix (name, ".json")) {
      g_autofree char *stem = g_strndup (name, strlen (name) - strlen (".json"));
      g_autoptr (JsonDoc) doc = load_shipped (stem);
      const JsonRef r = json_root (doc);
      const char *source = "";

      g_assert_true (json_get_string (&r, "source", &source, NULL));
      g_assert_cmpuint (strlen (source), >, 10);
      files++;
    }
  g_assert_cmpuint (files, ==, G_N_ELEMENTS (gpts) + G_N_ELEMENTS (others));
}

static gboolean
parse (const char *text, ModelSpec *m, GError **error)
{
  g_autofree char *json = g_strdelimit (g_strdup (text), "'", '"');
  g_autoptr (JsonDoc) doc = json_doc_parse ("m.json", json, (gsize)strlen (json), error);

  if (doc == NULL)
    return FALSE;
  const JsonRef r = json_root (doc);
  return read_model (&r, m, error);
}

static void
test_defaults (void)
{
  ModelSpec m;

  g_assert_true (
      parse ("{'num_layers':2,'hidden':64,'ffn_hidden':256,'heads':4,'vocab':100}", &m, NULL));
  g_assert_cmpint (m.kv_heads, ==, 4);
  g_assert_cmpint (m.head_dim, ==, 16);
  g_assert_cmpint (m.norms_per_layer, ==, 2);
  g_assert_true (m.causal);
  g_assert_cmpint (m.pos, ==, POS_ROTARY);
  model_clear (&m);
}

static void
expect_error (const char *text, int code, const char *part)
{
  g_autoptr (GError) error = NULL;
  ModelSpec m;

  g_assert_false (parse (text, &m, &error));
  g_assert_error (error, JSON_ERROR, code);
  if (error != NULL && strstr (error->message, part) == NULL)
    g_test_message ("no \"%s\" in: %s", part, error->message);
  g_assert_true (error != NULL && strstr (error->message, part) != NULL);
}

static void
test_errors (void)
{
  expect_error ("{'num_layers':2,'hidden':64,'ffn_hidden':256,'heads':4,'vocab':100,'hiden':1}",
                JSON_ERROR_UNKNOWN_KEY, "hidden");
  expect_error ("{'num_layers':2,'hidden':64,'ffn_hidden':256,'heads':4}", JSON_ERROR_MISSING,
                "vocab");
  expect_error ("{'num_layers':2,'hidden':64,'ffn_hidden':256,'heads':5,'vocab':100}",
                JSON_ERROR_INCONSISTENT, "head_dim");
  expect_error ("{'num_layers':2,'hidden':64,'ffn_hidden':256,'heads':4,'kv_heads':3,'vocab':100}",
                JSON_ERROR_INCONSISTENT, "kv_heads");
  expect_error ("{'num_layers':2.5,'hidden':64,'ffn_hidden':256,'heads':4,'vocab':100}",
                JSON_ERROR_RANGE, "num_layers");
  expect_error ("{'num_layers':2,'hidden':64,'ffn_hidden':256,'heads':4,'vocab':100,'act':'gelo'}",
                JSON_ERROR_RANGE, "gelu");
  expect_error ("{'num_layers':2,'hidden':64,'ffn_hidden':256,'heads':0,'vocab':100}",
                JSON_ERROR_RANGE, "heads");
}

/* What is written reads back as the same model. Lists of operators are read only. */
static void
test_round_trip (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    g_autoptr (GString) text = g_string_new (NULL);
    g_autoptr (JsonWriter) w = json_writer_new (text, 2);
    g_autoptr (GError) error = NULL;
    ModelSpec m, again;

    if (!load (others[i].name, &m))
      continue;
    if (m.graph != NULL) {
      model_clear (&m);
      continue;
    }
    write_model (w, NULL, &m, "a test");
    g_assert_true (parse (text->str, &again, &error));
    g_assert_no_error (error);
    g_assert_cmpstr (again.name, ==, m.name);
    g_free (again.name);
    again.name = m.name;
    g_assert_true (memcmp (&again, &m, sizeof m) == 0);
    model_clear (&m);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/read_model/shipped-gpt", test_shipped_gpt);
  g_test_add_func ("/read_model/shipped-others", test_shipped_others);
  g_test_add_func ("/read_model/all-are-counted", test_all_are_counted);
  g_test_add_func ("/read_model/defaults", test_defaults);
  g_test_add_func ("/read_model/errors", test_errors);
  g_test_add_func ("/read_model/round-trip", test_round_trip);
  return g_test_run ();
}
