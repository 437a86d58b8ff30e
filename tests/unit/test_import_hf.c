/* import_hf: the keys of well-known configs (those that matter, in their own spelling) against the
 * counts their publishers state, quirks and errors, and all of
 * CLUSTERSIM_SHARED/data/inputs/hf_config against its params.csv. Single quotes stand for double
 * ones in the texts below. */
#include "csv.h"
#include "import_hf.h"
#include "read_model.h"

#include <string.h>

static gboolean
import (const char *text, ModelSpec *m, GPtrArray *ignored, GError **error)
{
  g_autofree char *json = g_strdelimit (g_strdup (text), "'", '"');
  g_autoptr (JsonDoc) doc = json_doc_parse ("config.json", json, (gsize)strlen (json), error);

  if (doc == NULL)
    return FALSE;
  const JsonRef root = json_root (doc);
  return import_hf_config (&root, m, ignored, error);
}

/* clang-format off */
#define SHAPE(l, h, f, a, kv, v) "'num_hidden_layers':" #l ",'hidden_size':" #h ",'intermediate_size':" #f \
  ",'num_attention_heads':" #a ",'num_key_value_heads':" #kv ",'vocab_size':" #v
#define GPT2(l, h, a) "'n_layer':" #l ",'n_embd':" #h ",'n_head':" #a
#define ROTARY ",'max_position_embeddings':4096"

static const struct {
  const char *name, *config;
  gint64 total, active; /* active 0: total */
} published[] = {
  { "gpt2", "{'model_type':'gpt2'," GPT2 (12, 768, 12) ",'n_ctx':1024,'n_positions':1024,'n_inner':null,"
    "'vocab_size':50257,'activation_function':'gelu_new'}", 124439808, 0 },
  { "gpt-j", "{'model_type':'gptj'," GPT2 (28, 4096, 16) ",'n_inner':null,'vocab_size':50400,'n_positions':2048,"
    "'tie_word_embeddings':false}", 6050882784, 0 },
  { "pythia-1b", "{'model_type':'gpt_neox','hidden_size':2048,'intermediate_size':8192,'num_attention_heads':8,"
    "'num_hidden_layers':16,'vocab_size':50304}", 1011781632, 0 },
  { "opt-125m", "{'model_type':'opt','ffn_dim':3072,'hidden_size':768,'num_attention_heads':12,'num_hidden_layers':12,"
    "'max_position_embeddings':2048,'vocab_size':50272,'word_embed_proj_dim':768,'do_layer_norm_before':true}", 125239296, 0 },
  { "opt-350m", "{'model_type':'opt','ffn_dim':4096,'hidden_size':1024,'num_attention_heads':16,'num_hidden_layers':24,"
    "'max_position_embeddings':2048,'vocab_size':50272,'word_embed_proj_dim':512,'do_layer_norm_before':false}", 331196416, 0 },
  { "bloom", "{'model_type':'bloom','n_layer':70,'hidden_size':14336,'n_head':112,'vocab_size':250880}", 176247271424, 0 },
  { "mpt-7b", "{'model_type':'mpt','d_model':4096,'n_heads':32,'n_layers':32,'expansion_ratio':4,'max_seq_len':2048,"
    "'vocab_size':50432,'no_bias':true,'learned_pos_emb':true,'attn_config':{'alibi':true,'attn_type':'multihead_attention'}}",
    6649286656, 0 },
  { "falcon-7b", "{'model_type':'falcon','alibi':false,'bias':false,'hidden_size':4544,'multi_query':true,"
    "'new_decoder_architecture':false,'num_attention_heads':71,'num_hidden_layers':32,'num_kv_heads':71,'parallel_attn':true,"
    "'vocab_size':65024}", 6921720704, 0 },
  { "falcon-40b, old keys", "{'model_type':'RefinedWeb','hidden_size':8192,'n_head':128,'n_head_kv':8,'n_layer':60,"
    "'alibi':false,'bias':false,'parallel_attn':true,'vocab_size':65024}", 41303293952, 0 },
  { "falcon-40b", "{'model_type':'falcon','hidden_size':8192,'num_attention_heads':128,'num_kv_heads':8,'num_hidden_layers':60,"
    "'new_decoder_architecture':true,'alibi':false,'bias':false,'parallel_attn':true,'vocab_size':65024}", 41303293952, 0 },
  { "phi-2", "{'model_type':'phi'," SHAPE (32, 2560, 10240, 32, 32, 51200) ",'qk_layernorm':false}", 2779683840, 0 },
  { "phi-1.5, old keys", "{'model_type':'mixformer-sequential'," GPT2 (24, 2048, 32) ",'n_inner':null,'vocab_size':51200}",
    1418270720, 0 },
  { "phi-3.5-mini", "{'model_type':'phi3'," SHAPE (32, 3072, 8192, 32, 32, 32064) ",'sliding_window':262144}", 3821079552, 0 },
  { "phi-4-mini", "{'model_type':'phi3'," SHAPE (32, 3072, 8192, 24, 8, 200064) ",'tie_word_embeddings':true}", 3836021760, 0 },
  { "starcoder2-7b", "{'model_type':'starcoder2'," SHAPE (32, 4608, 18432, 36, 4, 49152) ",'use_bias':true,'sliding_window':4096}",
    7173923840, 0 },
  { "santacoder", "{'model_type':'gpt_bigcode'," GPT2 (24, 2048, 16) ",'n_positions':2048,'multi_query':true,'vocab_size':49280}",
    1124886528, 0 },
  { "llama-2-7b", "{'model_type':'llama'," SHAPE (32, 4096, 11008, 32, 32, 32000) ROTARY "}", 6738415616, 0 },
  { "llama-3.2-1b", "{'model_type':'llama'," SHAPE (16, 2048, 8192, 32, 8, 128256) ",'head_dim':64,'tie_word_embeddings':true}",
    1235814400, 0 },
  { "mistral-7b", "{'model_type':'mistral'," SHAPE (32, 4096, 14336, 32, 8, 32000) ",'sliding_window':4096}", 7241732096, 0 },
  { "qwen2-7b", "{'model_type':'qwen2'," SHAPE (28, 3584, 18944, 28, 4, 152064) ",'use_sliding_window':false}", 7615616512, 0 },
  { "qwen3-8b", "{'model_type':'qwen3'," SHAPE (36, 4096, 12288, 32, 8, 151936) ",'head_dim':128,'attention_bias':false}",
    8190735360, 0 },
  { "gemma-2b", "{'model_type':'gemma'," SHAPE (18, 2048, 16384, 8, 1, 256000) ",'head_dim':256,'hidden_act':'gelu'}", 2506172416, 0 },
  { "gemma-2-27b", "{'model_type':'gemma2'," SHAPE (46, 4608, 36864, 32, 16, 256000) ",'head_dim':128,'sliding_window':4096}",
    27227128320, 0 },
  { "gemma-3-1b", "{'model_type':'gemma3_text'," SHAPE (26, 1152, 6912, 4, 1, 262144) ",'head_dim':256,'sliding_window':512,"
    "'sliding_window_pattern':6}", 999885952, 0 },
  { "olmo-2-7b", "{'model_type':'olmo2'," SHAPE (32, 4096, 11008, 32, 32, 100352) "}", 7298617344, 0 },
  { "nemotron-4-15b", "{'model_type':'nemotron'," SHAPE (32, 6144, 24576, 48, 8, 256000) ",'hidden_act':'relu2'}",
    G_GINT64_CONSTANT (2) * 256000 * 6144 + 32 * (G_GINT64_CONSTANT (6144) * (2 * 6144 + 2 * 1024 + 2 * 24576) + 4 * 6144) + 2 * 6144, 0 },
  { "mixtral-8x7b", "{'model_type':'mixtral'," SHAPE (32, 4096, 14336, 32, 8, 32000) ",'num_local_experts':8,"
    "'num_experts_per_tok':2,'sliding_window':null}", 46702792704, 12879925248 },
  { "qwen1.5-moe", "{'model_type':'qwen2_moe'," SHAPE (24, 2048, 5632, 16, 16, 151936) ",'moe_intermediate_size':1408,"
    "'shared_expert_intermediate_size':5632,'num_experts':60,'num_experts_per_tok':4,'decoder_sparse_step':1}", 14315784192, 2689173504 },
  { "qwen3-235b", "{'model_type':'qwen3_moe'," SHAPE (94, 4096, 12288, 64, 4, 151936) ",'head_dim':128,'num_experts':128,"
    "'num_experts_per_tok':8,'moe_intermediate_size':1536,'mlp_only_layers':[]}", 235093634560, 22190763520 },
  { "qwen3-next", "{'model_type':'qwen3_next'," SHAPE (48, 2048, 5120, 16, 2, 151936) ",'head_dim':256,'num_experts':512,"
    "'num_experts_per_tok':10,'moe_intermediate_size':512,'shared_expert_intermediate_size':512,'full_attention_interval':4,"
    "'linear_num_key_heads':16,'linear_num_value_heads':32,'linear_key_head_dim':128,'linear_value_head_dim':128,"
    "'linear_conv_kernel_dim':4}", 79674391296, 3874929408 },
  { "deepseek-v2-lite", "{'model_type':'deepseek_v2'," SHAPE (27, 2048, 10944, 16, 16, 102400) ",'q_lora_rank':null,'kv_lora_rank':512,"
    "'qk_nope_head_dim':128,'qk_rope_head_dim':64,'v_head_dim':128,'n_routed_experts':64,'num_experts_per_tok':6,"
    "'moe_intermediate_size':1408,'n_shared_experts':2,'first_k_dense_replace':1,'moe_layer_freq':1,'topk_method':'greedy'}",
    15706484224, 2661150208 },
  { "deepseek-v3", "{'model_type':'deepseek_v3'," SHAPE (61, 7168, 18432, 128, 128, 129280) ",'q_lora_rank':1536,'kv_lora_rank':512,"
    "'qk_nope_head_dim':128,'qk_rope_head_dim':64,'v_head_dim':128,'n_routed_experts':256,'num_experts_per_tok':8,"
    "'moe_intermediate_size':2048,'n_shared_experts':1,'first_k_dense_replace':3,'topk_method':'noaux_tc',"
    "'num_nextn_predict_layers':1}", 671026419200, 37552297472 },
  { "gpt-oss-20b", "{'model_type':'gpt_oss'," SHAPE (24, 2880, 2880, 64, 8, 201088) ",'head_dim':64,'num_local_experts':32,"
    "'num_experts_per_tok':4,'attention_bias':true,'sliding_window':128}", 20914757184, 4187440704 },
  { "dbrx", "{'model_type':'dbrx','d_model':6144,'n_heads':48,'n_layers':40,'vocab_size':100352,'attn_config':{'kv_n_heads':8},"
    "'ffn_config':{'ffn_hidden_size':10752,'moe_num_experts':16,'moe_top_k':4}}", 131596523520, 36469708800 },
  { "grok-1", "{'model_type':'grok-1'," SHAPE (64, 6144, 32768, 48, 8, 131072) ",'num_experts':8,'num_experts_per_tok':2,"
    "'tie_word_embeddings':true}", 315684820992, 83756587008 },
  { "llama-4-maverick", "{'model_type':'llama4','vision_config':{},'text_config':{'model_type':'llama4_text'," SHAPE (48, 5120, 8192, 40, 8, 202048)
    ",'intermediate_size_mlp':16384,'head_dim':128,'num_local_experts':128,'num_experts_per_tok':1,"
    "'interleave_moe_layer_step':2,'attention_chunk_size':8192}}", 400711848960, 17184691200 },
  { "llama-4-scout", "{'model_type':'llama4','text_config':{" SHAPE (48, 5120, 8192, 40, 8, 202048)
    ",'intermediate_size_mlp':16384,'head_dim':128,'num_local_experts':16,'num_experts_per_tok':1,"
    "'interleave_moe_layer_step':1}}", 107769861120, 17172894720 },
  { "minimax-m2.5", "{'model_type':'minimax_m2'," SHAPE (62, 3072, 1536, 48, 8, 200064) ",'head_dim':128,'num_local_experts':256,"
    "'num_experts_per_tok':8,'use_qk_norm':true,'use_routing_bias':true,'use_mtp':true,'num_mtp_modules':3}", 228689764864, 11030553088 },
};
/* clang-format on */

static void
test_published (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (published); i++) {
    g_autoptr (GError) error = NULL;
    ModelSpec m;

    if (!import (published[i].config, &m, NULL, &error)) {
      g_test_message ("%s: %s", published[i].name, error->message);
      g_assert_no_error (error);
      continue;
    }
    const gint64 active = published[i].active > 0 ? published[i].active : published[i].total;
    if (model_params_total (&m) != published[i].total || model_params_active (&m) != active)
      g_test_message ("%s: %" G_GINT64_FORMAT " parameters, %" G_GINT64_FORMAT " active",
                      published[i].name, model_params_total (&m), model_params_active (&m));
    g_assert_cmpint (model_params_total (&m), ==, published[i].total);
    g_assert_cmpint (model_params_active (&m), ==, active);
    model_clear (&m);
  }
}

static void
test_attention_patterns (void)
{
  ModelSpec m;

  g_assert_true (import (
      "{'model_type':'gpt_oss'," SHAPE (
          4, 64, 64, 4, 2,
          100) ",'head_dim':16,'num_local_experts':4,'num_experts_per_tok':2,'sliding_window':8,'"
               "layer_types':"
               "['sliding_attention','full_attention','sliding_attention','full_attention']}",
      &m, NULL, NULL));
  g_assert_cmpint (m.sliding_window, ==, 8);
  g_assert_cmpint (m.sliding_period, ==, 2);
  g_assert_true (m.attn_sinks);
  model_clear (&m);
  g_assert_true (
      import ("{'model_type':'qwen2'," SHAPE (4, 64, 64, 4, 2, 100) ",'sliding_window':8}", &m,
              NULL, NULL));
  g_assert_cmpint (m.sliding_window, ==, 0); /* off unless use_sliding_window */
  model_clear (&m);
  g_assert_true (
      import ("{'model_type':'qwen3'," SHAPE (4, 64, 64, 4, 2, 100) "}", &m, NULL, NULL));
  g_assert_cmpint (m.head_dim, ==, 128); /* default of the class, not hidden / heads */
  model_clear (&m);
}

static void
test_ignored_keys (void)
{
  g_autoptr (GPtrArray) ignored = g_ptr_array_new_with_free_func (g_free);
  ModelSpec m;

  g_assert_true (
      import ("{'model_type':'llama4','torch_dtype':'bfloat16','_name_or_path':'mine','text_config'"
              ":{" SHAPE (4, 64, 64, 4, 2, 100) ",'num_local_experts':4,'rope_theta':5e5}}",
              &m, ignored, NULL));
  g_assert_cmpstr (m.name, ==, "mine");
  g_assert_cmpuint (ignored->len, ==, 2);
  g_assert_cmpstr (g_ptr_array_index (ignored, 0), ==, "text_config.rope_theta");
  g_assert_cmpstr (g_ptr_array_index (ignored, 1), ==, "torch_dtype");
  model_clear (&m);
}

static void
expect_error (const char *config, int code, const char *part)
{
  g_autoptr (GError) error = NULL;
  ModelSpec m;

  g_assert_false (import (config, &m, NULL, &error));
  g_assert_error (error, JSON_ERROR, code);
  if (error != NULL && strstr (error->message, part) == NULL)
    g_test_message ("no \"%s\" in: %s", part, error->message);
  g_assert_true (error != NULL && strstr (error->message, part) != NULL);
}

static void
test_errors (void)
{
  expect_error ("{'model_type':'lama'," SHAPE (4, 64, 64, 4, 2, 100) "}", JSON_ERROR_RANGE,
                "nearest: llama");
  expect_error ("{'model_type':'nemotron_h'}", JSON_ERROR_RANGE, "supported: gpt2, ");
  expect_error ("{'hidden_size':64}", JSON_ERROR_MISSING, "model_type is missing");
  expect_error ("{'model_type':'llama','hidden_size':64}", JSON_ERROR_MISSING,
                "num_hidden_layers or n_layer");
  expect_error ("{'model_type':'llama'," SHAPE (4, 64, 64, 5, 5, 100) "}", JSON_ERROR_RANGE,
                "not a multiple");
  expect_error ("{'model_type':'llama'," SHAPE (4, 64, 64, 4, 3, 100) "}", JSON_ERROR_INCONSISTENT,
                "3 kv_heads");
  expect_error ("{'model_type':'llama'," SHAPE (4, 64, 64, 4, 2, 100) ",'hidden_act':'sin'}",
                JSON_ERROR_RANGE, "sin");
  expect_error ("{'model_type':'llama'," SHAPE (4, 64, 64, 4, 2, -5) "}", JSON_ERROR_RANGE,
                "vocab_size");
  expect_error ("{'model_type':'llama'," SHAPE (4, 64, 64, 'four', 2, 100) "}", JSON_ERROR_TYPE,
                "num_attention_heads");
  expect_error ("{'model_type':'mixtral'," SHAPE (4, 64, 64, 4, 2, 100) "}", JSON_ERROR_MISSING,
                "num_local_experts");
  expect_error (
      "{'model_type':'mpt','attn_config':3,'d_model':64,'n_heads':4,'n_layers':2,'vocab_size':10}",
      JSON_ERROR_TYPE, "attn_config");
  expect_error ("[]", JSON_ERROR_TYPE, "object");
}

/* Every key of every config removed in turn, and set to wrong types: an error or a model, never a
 * crash. */
static void
test_damaged (void)
{
  static const char *const wrong[] = {"null", "-1", "\"x\"", "[]", "{}", "1e9", "true", "[3]", "0"};

  for (guint i = 0; i < G_N_ELEMENTS (published); i++) {
    g_autofree char *json = g_strdelimit (g_strdup (published[i].config), "'", '"');
    g_autoptr (JsonDoc) whole = json_doc_parse ("c", json, (gsize)strlen (json), NULL);
    const JsonRef root = json_root (whole);
    const int n = json_len (&root);

    for (int k = 0; k < n; k++)
      for (guint w = 0; w <= G_N_ELEMENTS (wrong); w++) {
        g_autoptr (JsonDoc) doc = json_doc_parse ("c", json, (gsize)strlen (json), NULL);
        const JsonRef damaged = json_root (doc), item = json_item (&damaged, k);
        g_autofree char *key = g_strdup (item.key);
        g_autoptr (GError) error = NULL;
        ModelSpec m;

        if (w == G_N_ELEMENTS (wrong))
          json_doc_remove (doc, key);
        else
          json_doc_set (doc, key, wrong[w], NULL);
        const JsonRef again = json_root (doc);
        if (import_hf_config (&again, &m, NULL, &error))
          model_clear (&m);
        else
          g_assert_nonnull (error);
      }
  }
}

/* All files with their table. Rows without a file or a count are passed over. */
static void
test_shared (void)
{
  const char *shared = g_getenv ("CLUSTERSIM_SHARED");
  guint checked = 0;

  if (shared == NULL) {
    g_test_skip ("CLUSTERSIM_SHARED is not set");
    return;
  }
  g_autofree char *dir = g_build_filename (shared, "data", "inputs", "hf_config", NULL);
  g_autofree char *csv = g_build_filename (dir, "params.csv", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (CsvTable) t = csv_load (csv, &error);
  g_assert_no_error (error);
  for (guint row = 0; row < csv_n_rows (t); row++) {
    g_autofree char *path = g_build_filename (dir, csv_cell (t, row, csv_col (t, "file")), NULL);
    const gint64 total =
        g_ascii_strtoll (csv_cell (t, row, csv_col (t, "total_computed")), NULL, 10);
    const gint64 active =
        g_ascii_strtoll (csv_cell (t, row, csv_col (t, "active_computed")), NULL, 10);
    ModelSpec m;

    if (!g_file_test (path, G_FILE_TEST_EXISTS) || total == 0)
      continue;
    g_autoptr (JsonDoc) doc = json_doc_load (path, &error);
    g_assert_no_error (error);
    const JsonRef root = json_root (doc);
    if (!import_hf_config (&root, &m, NULL, &error)) {
      g_assert_no_error (error);
      g_clear_error (&error);
      continue;
    }
    if (model_params_total (&m) != total || model_params_active (&m) != active)
      g_test_message ("%s: off by %" G_GINT64_FORMAT ", active by %" G_GINT64_FORMAT, path,
                      model_params_total (&m) - total, model_params_active (&m) - active);
    g_assert_cmpint (model_params_total (&m), ==, total);
    g_assert_cmpint (model_params_active (&m), ==, active);
    model_clear (&m);
    checked++;
  }
  g_test_message ("%u configs checked", checked);
  g_assert_cmpuint (checked, >, 30);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/import_hf/published", test_published);
  g_test_add_func ("/import_hf/attention-patterns", test_attention_patterns);
  g_test_add_func ("/import_hf/ignored-keys", test_ignored_keys);
  g_test_add_func ("/import_hf/errors", test_errors);
  g_test_add_func ("/import_hf/damaged", test_damaged);
  g_test_add_func ("/import_hf/shared-configs", test_shared);
  return g_test_run ();
}
