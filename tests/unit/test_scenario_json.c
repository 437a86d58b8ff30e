/* Scenarios: merging, parts, overrides; each bad scenario gives its code, place and message. What
 * needs a GPU or fabric profile uses the first that ships, else skips. */
#include "paths.h"
#include "scenario.h"

#include <glib/gstdio.h>
#include <string.h>

typedef struct {
  char *dir, *env; /* env: $CLUSTERSIM_SCENARIOS as it was */
} Fixture;

/* One key a line, so that places are easy to tell. */
static const char good[] = "{ \"format\": 1,\n"                                          /* 1 */
                           "  \"cluster\": {\n"                                          /* 2 */
                           "    \"gpu\": \"G1\",\n"                                      /* 3 */
                           "    \"gpus_per_node\": 8,\n"                                 /* 4 */
                           "    \"nodes\": 4,\n"                                         /* 5 */
                           "    \"fabric\": \"F1\" },\n"                                 /* 6 */
                           "  \"model\": \"tiny\",\n"                                    /* 7 */
                           "  \"train\": { \"sequence_tokens\": 128,\n"                  /* 8 */
                           "    \"global_batch_sequences\": 64 },\n"                     /* 9 */
                           "  \"parallel\": { \"tp\": 2, \"pp\": 2 },\n"                 /* 10 */
                           "  \"job\": { \"tokens\": 1e9 },\n"                           /* 11 */
                           "  \"run\": { \"fidelity\": \"analytic\", \"seed\": 3 } }\n"; /* 12 */

static const char tiny_model[] =
    "{ \"name\": \"tiny\", \"num_layers\": 4, \"hidden\": 64, \"ffn_hidden\": 256,\n"
    "  \"heads\": 4, \"vocab\": 1000, \"norm\": \"rmsnorm\" }\n";

static char *
put (const Fixture *f, const char *folder, const char *name, const char *text)
{
  g_autofree char *dir = g_build_filename (f->dir, folder, NULL);
  char *path = g_build_filename (dir, name, NULL);
  g_assert_cmpint (g_mkdir_with_parents (dir, 0700), ==, 0);
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
  return path;
}

static void
put_away (const Fixture *f, const char *folder, const char *name, const char *text)
{
  g_free (put (f, folder, name, text));
}

static void
set_up (Fixture *f, gconstpointer data G_GNUC_UNUSED)
{
  f->dir = g_dir_make_tmp ("clustersim-scenario-XXXXXX", NULL);
  f->env = g_strdup (g_getenv ("CLUSTERSIM_SCENARIOS"));
  put_away (f, "train", "good.json", good);
  put_away (f, "models", "tiny.json", tiny_model);
  put_away (f, "models", "tinier.json", "{ \"extends\": \"tiny\",\n \"num_layers\": 2 }");
  g_setenv ("CLUSTERSIM_SCENARIOS", f->dir, TRUE);
}

static void
remove_tree (const char *path)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  const char *entry;
  while (dir != NULL && (entry = g_dir_read_name (dir)) != NULL) {
    g_autofree char *child = g_build_filename (path, entry, NULL);
    if (g_file_test (child, G_FILE_TEST_IS_DIR))
      remove_tree (child);
    else
      g_unlink (child);
  }
  g_rmdir (path);
}

static void
tear_down (Fixture *f, gconstpointer data G_GNUC_UNUSED)
{
  if (f->env != NULL)
    g_setenv ("CLUSTERSIM_SCENARIOS", f->env, TRUE);
  else
    g_unsetenv ("CLUSTERSIM_SCENARIOS");
  remove_tree (f->dir);
  g_free (f->dir);
  g_free (f->env);
}

static void
assert_json (JsonDoc *doc, const char *expected)
{
  g_assert_nonnull (doc);
  JsonRef root = json_root (doc);
  char *text = cJSON_PrintUnformatted (root.node);
  g_assert_cmpstr (text, ==, expected);
  cJSON_free (text);
}

/* ---- documents ---- */

static void
test_extends (Fixture *f, gconstpointer data G_GNUC_UNUSED)
{
  g_autoptr (GError) error = NULL;
  put_away (f, "a", "one.json", "{ \"x\": 1, \"p\": { \"q\": 1, \"r\": [ 1, 2 ] }, \"gone\": 5 }");
  put_away (f, "b", "two.json", "{ \"extends\": \"../a/one.json\", \"p\": { \"q\": 2 } }");
  g_autofree char *three = put (
      f, "b", "three.json", "{ \"extends\": \"two.json\", \"gone\": null,\n \"p\": { \"s\": 3 } }");
  static const char *const sets[] = {"p.t.u=4", "x=word", "p.r.1=[]", NULL};
  g_autoptr (JsonDoc) doc = scenario_document (three, sets, &error);
  g_assert_no_error (error);
  assert_json (doc, "{\"x\":\"word\",\"p\":{\"q\":2,\"r\":[1,[]],\"s\":3,\"t\":{\"u\":4}},"
                    "\"name\":\"three\"}");

  /* A shipped scenario by its name. */
  g_autoptr (JsonDoc) named = scenario_document ("good", NULL, &error);
  g_assert_no_error (error);
  g_assert_nonnull (named);
  put_away (f, "c", "8.json", "{ \"extends\": \"good\", \"model\": null, \"cluster\": null }");
  g_autofree char *eight = g_build_filename (f->dir, "c", "8.json", NULL);
  g_autoptr (JsonDoc) child = scenario_document (eight, NULL, &error);
  g_assert_no_error (error);
  JsonRef root = json_root (child);
  const char *name;
  g_assert_false (json_has (&root, "model"));
  g_assert_true (json_get_string (&root, "name", &name, &error));
  g_assert_cmpstr (name, ==, "8"); /* a string, though it looks like a number */
}

static void
test_extends_bad (Fixture *f, gconstpointer data G_GNUC_UNUSED)
{
  static const struct {
    const char *text;
    JsonError code;
    const char *after; /* the file's name */
  } cases[] = {
      {"{\n\"extends\": \"self.json\" }", JSON_ERROR_INCONSISTENT,
       ":2: /extends: a file extends itself (found self.json -> self.json; allowed: a chain that "
       "ends)"},
      {"{\n\"extends\": \"../t/../t/self.json\" }", JSON_ERROR_INCONSISTENT,
       ":2: /extends: a file extends itself (found self.json -> self.json"},
      {"{ \"extends\": 3 }", JSON_ERROR_TYPE, ":1: /extends: wrong type (found number 3"},
      {"{ \"extends\": \"none.json\" }", JSON_ERROR_FILE, ":1: /extends: no such file (found \""},
      {"{ \"extends\": \"goood\" }", JSON_ERROR_RANGE,
       ":1: /extends: unknown scenario (found \"goood\"; nearest: good;"},
      {"[]", JSON_ERROR_TYPE, ":1: /: wrong type (allowed: an object)"},
      {"{ \"model\": {\n\"extends\": \"tinyy\" } }", JSON_ERROR_RANGE,
       ":2: /model/extends: unknown model (found \"tinyy\"; nearest: tiny; see `clustersim list "
       "models`)"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *path = put (f, "t", "self.json", cases[i].text);
    g_assert_null (scenario_document (path, NULL, &error));
    g_assert_error (error, JSON_ERROR, (int)cases[i].code);
    g_autofree char *start = g_strconcat (path, cases[i].after, NULL);
    if (!g_str_has_prefix (error->message, start))
      g_test_message ("%s", error->message);
    /* Through "../t/.." the file has another name; what follows it counts. */
    g_assert_nonnull (strstr (error->message, cases[i].after));
  }
  /* a -> b -> c -> a */
  g_autoptr (GError) error = NULL;
  g_autofree char *a = put (f, "t", "a.json", "{ \"extends\": \"b.json\" }");
  put_away (f, "t", "b.json", "{ \"extends\": \"c.json\" }");
  put_away (f, "t", "c.json", "{ \"extends\": \"./a.json\" }");
  g_assert_null (scenario_document (a, NULL, &error));
  g_assert_nonnull (strstr (error->message, "c.json:1: /extends: a file extends itself (found "
                                            "a.json -> b.json -> c.json -> a.json;"));
  g_clear_error (&error);
  /* 17 files in a row. */
  for (int i = 0; i < 17; i++) {
    g_autofree char *name = g_strdup_printf ("n%d.json", i);
    g_autofree char *text = g_strdup_printf ("{ \"extends\": \"n%d.json\" }", i + 1);
    put_away (f, "t", name, text);
  }
  put_away (f, "t", "n17.json", "{}");
  g_autofree char *n0 = g_build_filename (f->dir, "t", "n0.json", NULL);
  g_assert_null (scenario_document (n0, NULL, &error));
  g_assert_error (error, JSON_ERROR, JSON_ERROR_INCONSISTENT);
  g_assert_nonnull (strstr (error->message, "n15.json:1: /extends: too many files"));
}

/* An override inside a part that is a name, and a part that extends a shipped file. */
static void
test_parts (Fixture *f, gconstpointer data G_GNUC_UNUSED)
{
  g_autoptr (GError) error = NULL;
  static const char *const sets[] = {"model.num_layers=7", NULL};
  g_autofree char *path = put (f, "t", "p.json", "{ \"name\": \"p\", \"model\": \"tinier\" }");
  g_autoptr (JsonDoc) doc = scenario_document (path, sets, &error);
  g_assert_no_error (error);
  assert_json (doc, "{\"name\":\"p\",\"model\":{\"name\":\"tiny\",\"num_layers\":7,\"hidden\":64,"
                    "\"ffn_hidden\":256,\"heads\":4,\"vocab\":1000,\"norm\":\"rmsnorm\"}}");
  g_autofree char *path2 =
      put (f, "t", "q.json",
           "{ \"name\": \"q\", \"model\": { \"extends\": \"tinier\", \"heads\": 8 } }");
  static const char *const sets2[] = {"model.hidden=128", NULL};
  g_autoptr (JsonDoc) doc2 = scenario_document (path2, sets2, &error);
  g_assert_no_error (error);
  assert_json (doc2, "{\"name\":\"q\",\"model\":{\"name\":\"tiny\",\"num_layers\":2,\"hidden\":128,"
                     "\"ffn_hidden\":256,\"heads\":8,\"vocab\":1000,\"norm\":\"rmsnorm\"}}");
  /* The whole part by an override, with an override inside it after. */
  static const char *const sets3[] = {"model=tiny", "model.vocab=9", "model.norm=layernorm", NULL};
  g_autoptr (JsonDoc) doc3 = scenario_document (path2, sets3, &error);
  g_assert_no_error (error);
  assert_json (doc3, "{\"name\":\"q\",\"model\":{\"name\":\"tiny\",\"num_layers\":4,\"hidden\":64,"
                     "\"ffn_hidden\":256,\"heads\":4,\"vocab\":9,\"norm\":\"layernorm\"}}");
  /* A value keeps the file it came from. */
  JsonRef root = json_root (doc2), model, layers;
  g_assert_true (json_get_object (&root, "model", &model, &error));
  g_assert_true (json_get_any (&model, "num_layers", &layers, &error));
  g_autofree char *where = json_where (&layers);
  g_assert_true (g_str_has_suffix (where, "/models/tinier.json:2"));
}

/* ---- values ---- */

typedef struct {
  const char *set; /* override that makes the good scenario bad */
  JsonError code;
  const char *message; /* start */
} BadSet;

static const BadSet bad_sets[] = {
    {"format=2", JSON_ERROR_RANGE,
     "--set format: /format: out of range (found 2; allowed: 1 to 1)"},
    {"format=one", JSON_ERROR_TYPE, "--set format: /format: wrong type (found string \"one\""},
    {"name=3", JSON_ERROR_TYPE, "--set name: /name: wrong type (found number 3"},
    {"paralel.tp=2", JSON_ERROR_UNKNOWN_KEY,
     "--set paralel.tp: /paralel: unknown key (found \"paralel\"; nearest: parallel; allowed:"},
    {"extends=x", JSON_ERROR_UNKNOWN_KEY, "--set extends: /extends: unknown key"},
    {"cluster.gpus=33", JSON_ERROR_INCONSISTENT,
     "--set cluster.gpus: /cluster/gpus: more GPUs than the nodes have (found 33; allowed: up to "
     "nodes * "
     "gpus_per_node = 32)"},
    {"cluster.nodes=0", JSON_ERROR_RANGE,
     "--set cluster.nodes: /cluster/nodes: out of range (found 0;"},
    {"cluster.nodes=1e7", JSON_ERROR_RANGE,
     "--set cluster.nodes: /cluster/nodes: too many GPUs (found nodes * gpus_per_node = 80000000;"},
    {"cluster.nodes=1.5", JSON_ERROR_RANGE,
     "--set cluster.nodes: /cluster/nodes: not a whole number"},
    {"cluster.nodes=-1", JSON_ERROR_RANGE, "--set cluster.nodes: /cluster/nodes: out of range"},
    {"cluster.gpus_per_nod=1", JSON_ERROR_UNKNOWN_KEY,
     "--set cluster.gpus_per_nod: /cluster/gpus_per_nod: unknown key (found \"gpus_per_nod\"; "
     "nearest: "
     "gpus_per_node;"},
    {"cluster.price_usd_per_gpu_hour=-1", JSON_ERROR_RANGE,
     "--set cluster.price_usd_per_gpu_hour: /cluster/price_usd_per_gpu_hour: out of range"},
    {"cluster.pue=0.5", JSON_ERROR_RANGE, "--set cluster.pue: /cluster/pue: out of range"},
    {"cluster.node_power_w=1", JSON_ERROR_UNKNOWN_KEY,
     "--set cluster.node_power_w: /cluster/node_power_w: unknown key (found \"node_power_w\"; "
     "nearest: "
     "node_power_W;"},
    {"cluster=[]", JSON_ERROR_TYPE, "--set cluster: /cluster: wrong type (found an array"},
    {"train.sequence_tokens=\"8\"", JSON_ERROR_TYPE,
     "--set train.sequence_tokens: /train/sequence_tokens: wrong type (found string \"8\""},
    {"train.sequence_tokens=1e300", JSON_ERROR_RANGE,
     "--set train.sequence_tokens: /train/sequence_tokens: too big to be read exactly"},
    {"train.micro_batch_sequences=0", JSON_ERROR_RANGE,
     "--set train.micro_batch_sequences: /train/micro_batch_sequences: out of range"},
    {"train.precision=bf17", JSON_ERROR_RANGE,
     "--set train.precision: /train/precision: unknown name (found \"bf17\"; nearest: bf16;"},
    {"train.recompute=everything", JSON_ERROR_RANGE,
     "--set train.recompute: /train/recompute: unknown name (found \"everything\"; allowed: none, "
     "selective, full)"},
    {"train.recompute=true", JSON_ERROR_TYPE,
     "--set train.recompute: /train/recompute: wrong type"},
    {"train.mfu_convention=half", JSON_ERROR_RANGE,
     "--set train.mfu_convention: /train/mfu_convention: unknown name"},
    {"train=null", JSON_ERROR_TYPE, "--set train: /train: wrong type (found null"},
    {"parallel.tp=0", JSON_ERROR_RANGE,
     "--set parallel.tp: /parallel/tp: out of range (found 0; allowed: 1 to 32)"},
    {"parallel.tp=64", JSON_ERROR_RANGE,
     "--set parallel.tp: /parallel/tp: out of range (found 64; allowed: 1 to 32)"},
    {"parallel.pp=32", JSON_ERROR_INCONSISTENT,
     "--set parallel.pp: /parallel/pp: tp * cp * pp is more than the GPUs (found 2 * 1 * 32; "
     "allowed: "
     "up to 32)"},
    {"parallel.vp=2", JSON_ERROR_UNKNOWN_KEY, "--set parallel.vp: /parallel/vp: unknown key"},
    {"parallel.zero_stage=4", JSON_ERROR_RANGE,
     "--set parallel.zero_stage: /parallel/zero_stage: out of range (found 4; allowed: 0 to 3)"},
    {"parallel.schedule=1f1bb", JSON_ERROR_RANGE,
     "--set parallel.schedule: /parallel/schedule: unknown name (found \"1f1bb\"; nearest: 1f1b;"},
    {"parallel.sequence_parallel=yes", JSON_ERROR_TYPE,
     "--set parallel.sequence_parallel: /parallel/sequence_parallel: wrong type (found string "
     "\"yes\"; "
     "allowed: true or false)"},
    {"parallel.layout=3", JSON_ERROR_TYPE, "--set parallel.layout: /parallel/layout: wrong type"},
    {"parallel.tp.x=3", JSON_ERROR_TYPE,
     "--set parallel.tp.x: /parallel/tp: cannot set \"x\" in it (found number 2"},
    {"job.token=3", JSON_ERROR_UNKNOWN_KEY, "--set job.token: /job/token: unknown key"},
    {"job=3", JSON_ERROR_TYPE, "--set job: /job: wrong type"},
    {"run.fidelity=exact", JSON_ERROR_RANGE, "--set run.fidelity: /run/fidelity: unknown name"},
    {"run.seed=-1", JSON_ERROR_RANGE, "--set run.seed: /run/seed: out of range"},
    {"run.seed=18446744073709551616", JSON_ERROR_RANGE, "--set run.seed: /run/seed: too big"},
    {"run.max_events=0", JSON_ERROR_RANGE, "--set run.max_events: /run/max_events: out of range"},
    {"published.step_time_s=1", JSON_ERROR_MISSING,
     "--set published.step_time_s: /published/source:"},
    {"published.step_time_s=0", JSON_ERROR_RANGE,
     "--set published.step_time_s: /published/step_time_s: out of range"},
    {"cluster.gpu=nothing-like-it", JSON_ERROR_RANGE,
     "--set cluster.gpu: /cluster/gpu: unknown GPU (found \"nothing-like-it\"; "},
    {"cluster.gpu=7", JSON_ERROR_TYPE,
     "--set cluster.gpu: /cluster/gpu: wrong type (allowed: a name,"},
    {"cluster.gpu=nowhere.json", JSON_ERROR_FILE, "--set cluster.gpu: /cluster/gpu: no such file"},
    {"no-equals", JSON_ERROR_SYNTAX, "--set: no KEY=VALUE (found \"no-equals\";"},
    {"=3", JSON_ERROR_SYNTAX, "--set: no KEY=VALUE"},
    {"a\nb", JSON_ERROR_SYNTAX, "--set: no KEY=VALUE (found \"a\\nb\";"},
    {"cluster..gpu=3", JSON_ERROR_SYNTAX, "--set cluster..gpu: /cluster: empty part"},
};

static void
test_bad_sets (Fixture *f G_GNUC_UNUSED, gconstpointer data G_GNUC_UNUSED)
{
  for (guint i = 0; i < G_N_ELEMENTS (bad_sets); i++) {
    const BadSet *b = &bad_sets[i];
    const char *const sets[] = {b->set, NULL};
    g_autoptr (GError) error = NULL;
    Spec spec;
    g_test_message ("--set %s", b->set);
    g_assert_false (scenario_load ("good", sets, &spec, &error));
    g_assert_error (error, JSON_ERROR, (int)b->code);
    if (!g_str_has_prefix (error->message, b->message))
      g_test_message ("%s", error->message);
    g_assert_true (g_str_has_prefix (error->message, b->message));
    g_assert_null (strpbrk (error->message, "\n\033"));
  }
}

/* Each required key taken away, by a file that extends the good one and deletes it. */
static void
test_missing (Fixture *f, gconstpointer data G_GNUC_UNUSED)
{
  static const char *const cases[][3] = {
      {"{ \"extends\": \"good\", \"format\": null }", "1", "/format"},
      {"{ \"extends\": \"good\", \"cluster\": null }", "1", "/cluster"},
      {"{ \"extends\": \"good\", \"model\": null }", "1", "/model"},
      {"{ \"extends\": \"good\", \"train\": null }", "1", "/train"},
      {"{ \"extends\": \"good\", \"cluster\": { \"gpu\": null } }", "2", "/cluster/gpu"},
      {"{ \"extends\": \"good\", \"cluster\": { \"fabric\": null } }", "2", "/cluster/fabric"},
      {"{ \"extends\": \"good\", \"cluster\": { \"nodes\": null } }", "2", "/cluster/nodes"},
      {"{ \"extends\": \"good\", \"cluster\": { \"gpus_per_node\": null } }", "2",
       "/cluster/gpus_per_node"},
      {"{ \"extends\": \"good\", \"train\": { \"sequence_tokens\": null } }", "8",
       "/train/sequence_tokens"},
      {"{ \"extends\": \"good\", \"train\": { \"global_batch_sequences\": null } }", "8",
       "/train/global_batch_sequences"},
  };
  g_autofree char *base = g_build_filename (f->dir, "train", "good.json", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    Spec spec;
    g_autofree char *path = put (f, "t", "m.json", cases[i][0]);
    g_autofree char *start = g_strdup_printf (
        "%s:%s: %s: is missing (found no such key; needed: ", base, cases[i][1], cases[i][2]);
    g_assert_false (scenario_load (path, NULL, &spec, &error));
    g_assert_error (error, JSON_ERROR, JSON_ERROR_MISSING);
    if (!g_str_has_prefix (error->message, start))
      g_test_message ("%s", error->message);
    g_assert_true (g_str_has_prefix (error->message, start));
  }
}

static void
test_files (Fixture *f, gconstpointer data G_GNUC_UNUSED)
{
  g_autoptr (GError) error = NULL;
  Spec spec;
  g_assert_false (scenario_load ("no-such.json", NULL, &spec, &error));
  g_assert_error (error, JSON_ERROR, JSON_ERROR_FILE);
  g_assert_cmpstr (error->message, ==,
                   "no-such.json: cannot be opened (No such file or directory)");
  g_clear_error (&error);
  g_assert_false (scenario_load ("goo", NULL, &spec, &error));
  g_assert_error (error, JSON_ERROR, JSON_ERROR_RANGE);
  g_assert_true (
      g_str_has_prefix (error->message, "unknown scenario (found \"goo\"; nearest: good;"));
  g_clear_error (&error);
  g_autofree char *cut = put (f, "t", "cut.json", "{ \"format\": 1,\n \"clus");
  g_assert_false (scenario_load (cut, NULL, &spec, &error));
  g_assert_error (error, JSON_ERROR, JSON_ERROR_SYNTAX);
  g_autofree char *start = g_strconcat (cut, ":2: /: a string is not closed", NULL);
  g_assert_true (g_str_has_prefix (error->message, start));
}

/* ---- with what ships ---- */

/* A scenario on the first GPU and fabric that ship; NULL after g_test_skip when there are none. */
static char *
shipped_scenario (const Fixture *f)
{
  g_auto (GStrv) gpus = data_list ("hw");
  g_auto (GStrv) fabrics = data_list ("fabrics");
  g_auto (GStrv) software = data_list ("software");
  if (gpus[0] == NULL || fabrics[0] == NULL || software[0] == NULL) {
    g_test_skip ("no GPU, fabric or software profiles ship in $CLUSTERSIM_SCENARIOS");
    return NULL;
  }
  g_autofree char *text = g_strdup_printf (
      "{ \"format\": 1, \"cluster\": { \"gpu\": \"%s\", \"gpus_per_node\": 8, \"gpus\": 30,\n"
      "\"fabric\": \"%s\" }, \"model\": %s,\n\"train\": { \"sequence_tokens\": 128,\n"
      "\"global_batch_sequences\": 60 },\n\"parallel\": {\n\"tp\": 2,\n\"pp\": 3 } }",
      gpus[0], fabrics[0], tiny_model);
  return put (f, "t", "ship.json", text);
}

static void
test_reads (Fixture *f, gconstpointer data G_GNUC_UNUSED)
{
  g_autofree char *path = shipped_scenario (f);
  if (path == NULL)
    return;
  g_autoptr (GError) error = NULL;
  Spec s;
  static const char *const sets[] = {"run.seed=77", "parallel.sequence_parallel=true",
                                     "model.num_layers=6", "parallel.vpp=2", NULL};
  g_assert_true (scenario_load (path, sets, &s, &error));
  g_assert_no_error (error);
  g_assert_cmpstr (s.name, ==, "ship");
  g_assert_cmpint (s.cluster.gpus, ==, 30);
  g_assert_cmpint (s.cluster.nodes, ==, 4);         /* ceil (30 / 8) */
  g_assert_cmpint (s.parallel.dp, ==, 5);           /* 30 / (2 * 3) */
  g_assert_cmpint (spec_microbatches (&s), ==, 12); /* 60 / (1 * 5) */
  g_assert_cmpint (s.model.num_layers, ==, 6);
  g_assert_cmpint (s.model.hidden, ==, 64);
  g_assert_cmpstr (s.parallel.schedule, ==, "interleaved");
  g_assert_true (s.parallel.sequence_parallel);
  g_assert_cmpuint (s.run.seed, ==, 77);
  g_assert_true (s.train.causal_flops);
  g_assert_nonnull (s.gpu);
  g_assert_nonnull (s.fabric);
  g_assert_cmpuint (s.profiles->len, ==, 4);
  g_assert_true (g_str_has_prefix (g_ptr_array_index (s.profiles, 0), "hw/"));
  g_assert_cmpstr (g_ptr_array_index (s.profiles, 2), ==, "models/tiny (in place)");
  g_assert_cmpuint (s.assumed->len, ==, 4); /* micro-batch, precision, recompute, software */
  g_assert_cmpuint (s.prov->len, >, 0);
  const ProvEntry *e = g_ptr_array_index (s.prov, s.prov->len - 1);
  g_assert_true (g_str_has_prefix (e->name, "software/"));
  spec_clear (&s);
}

/* What the cross-field checks refuse is placed at its key; a key that the file lacks, at its
 * parent. */
static void
test_checks (Fixture *f, gconstpointer data G_GNUC_UNUSED)
{
  static const struct {
    const char *set, *place;
    JsonError code;
  } cases[] = {
      {"train.global_batch_sequences=61",
       "--set train.global_batch_sequences: /train/global_batch_sequences: ",
       JSON_ERROR_INCONSISTENT},
      {"parallel.dp=4", "--set parallel.dp: /parallel/dp: ", JSON_ERROR_INCONSISTENT},
      {"cluster.gpus=28", ":8: /parallel/tp: ", JSON_ERROR_INCONSISTENT},
      {"model.heads=1", ":8: /parallel/tp: ", JSON_ERROR_INCONSISTENT},
      {"model.layers=3", "--set model.layers: /model/layers: unknown key", JSON_ERROR_UNKNOWN_KEY},
      {"software=none-such", "--set software: /software: unknown software", JSON_ERROR_RANGE},
      {"model={\"hf_config\": \"none.json\"}", "--set model: /model/hf_config: no such file",
       JSON_ERROR_FILE},
      {"model={\"hf_config\": \"none.json\", \"heads\": 3}",
       "--set model: /model/heads: unknown key", JSON_ERROR_UNKNOWN_KEY},
  };
  g_autofree char *path = shipped_scenario (f);
  for (guint i = 0; path != NULL && i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    Spec s;
    const char *const sets[] = {cases[i].set, NULL};
    g_test_message ("--set %s", cases[i].set);
    g_assert_false (scenario_load (path, sets, &s, &error));
    g_assert_error (error, JSON_ERROR, (int)cases[i].code);
    if (strstr (error->message, cases[i].place) == NULL)
      g_test_message ("%s", error->message);
    g_assert_nonnull (strstr (error->message, cases[i].place));
  }
}

#define ADD(name, env, test) g_test_add ("/scenario/" name, Fixture, NULL, env, test, tear_down)

/* As set_up, but with what ships. */
static void
set_up_shipped (Fixture *f, gconstpointer data G_GNUC_UNUSED)
{
  f->dir = g_dir_make_tmp ("clustersim-scenario-XXXXXX", NULL);
  f->env = g_strdup (g_getenv ("CLUSTERSIM_SCENARIOS"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  ADD ("extends", set_up, test_extends);
  ADD ("extends-bad", set_up, test_extends_bad);
  ADD ("parts", set_up, test_parts);
  ADD ("bad-sets", set_up, test_bad_sets);
  ADD ("missing", set_up, test_missing);
  ADD ("files", set_up, test_files);
  ADD ("reads", set_up_shipped, test_reads);
  ADD ("checks", set_up_shipped, test_checks);
  return g_test_run ();
}
