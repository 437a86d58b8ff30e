/* Merging, setting and copying documents: results, and where each value then says it is from. */
#include "json_read.h"

#include <string.h>

/* A reader as profiles have them, of two keys. */
static gboolean
read_thing (const JsonRef *root, GError **error)
{
  gint64 count;
  double rate = 0.5;
  return json_get_int (root, "count", 1, 8, &count, error) &&
         json_opt_double (root, "rate", 0, 1, &rate, error);
}

static void
assert_error (GError *error, JsonError code, const char *start)
{
  g_assert_error (error, JSON_ERROR, (int)code);
  if (!g_str_has_prefix (error->message, start))
    g_test_message ("%s", error->message);
  g_assert_true (g_str_has_prefix (error->message, start));
}

static JsonDoc *
parse (const char *name, const char *text)
{
  g_autoptr (GError) error = NULL;
  JsonDoc *doc = json_doc_parse (name, text, strlen (text), &error);
  g_assert_no_error (error);
  return doc;
}

static void
assert_json (JsonDoc *doc, const char *expected)
{
  JsonRef root = json_root (doc);
  char *text = cJSON_PrintUnformatted (root.node);
  g_assert_cmpstr (text, ==, expected);
  cJSON_free (text);
}

/* The examples of RFC 7396, appendix A. */
static void
test_merge_rfc (void)
{
  static const char *const cases[][3] = {
      {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
      {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
      {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
      {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
      {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
      {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
      {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
      {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
      {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
      {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
      {"{\"a\":\"foo\"}", "null", "null"},
      {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
      {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
      {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
      {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (JsonDoc) base = parse ("base", cases[i][0]);
    g_autoptr (JsonDoc) patch = parse ("patch", cases[i][1]);
    json_doc_merge (base, patch);
    assert_json (base, cases[i][2]);
  }
}

/* After merging, each value still names the file and line that it came from. */
static void
test_merge_lines (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonDoc) base = parse ("base", "{\"count\": 1,\n\"rate\": 2,\n\"part\": {\"x\":\n1}}");
  g_autoptr (JsonDoc) patch =
      parse ("patch", "{\n\n\n\"count\": 0,\n\"part\": {\"y\": 1,\n\"z\": [\n5]}}");
  json_doc_merge (base, patch);
  JsonRef root = json_root (base), part, z;
  g_assert_false (read_thing (&root, &error));
  assert_error (error, JSON_ERROR_RANGE, "patch:4: /count: out of range (found 0;");
  g_clear_error (&error);
  json_get_object (&root, "part", &part, NULL);
  json_get_array (&part, "z", &z, NULL);
  JsonRef five = json_item (&z, 0);
  g_autofree char *a = json_where (&part), *b = json_where (&z), *c = json_where (&five);
  g_assert_cmpstr (a, ==, "base:3");
  g_assert_cmpstr (b, ==, "patch:6");
  g_assert_cmpstr (c, ==, "patch:7");
  g_assert_true (json_doc_set (base, "count", "2", &error));
  g_assert_false (read_thing (&root, &error));
  assert_error (error, JSON_ERROR_RANGE, "base:2: /rate: out of range (found 2;");
}

static void
test_merge_deep (void)
{
  GString *text = g_string_new (NULL);
  for (int i = 0; i < JSON_MAX_DEPTH; i++)
    g_string_append (text, "{\"k\":");
  g_autofree char *head = g_strdup (text->str);
  g_autofree char *tail = g_strnfill (JSON_MAX_DEPTH, '}');
  g_autofree char *one = g_strconcat (head, "1", tail, NULL);
  g_autofree char *two = g_strconcat (head, "2", tail, NULL);
  g_autoptr (JsonDoc) base = parse ("one", one);
  g_autoptr (JsonDoc) patch = parse ("two", two);
  json_doc_merge (base, patch);
  assert_json (base, two);
  /* One level more, by --set, is refused and changes nothing. */
  g_string_assign (text, "k");
  for (int i = 1; i <= JSON_MAX_DEPTH; i++)
    g_string_append (text, ".k");
  g_autoptr (GError) error = NULL;
  g_assert_false (json_doc_set (base, text->str, "3", &error));
  g_assert_error (error, JSON_ERROR, JSON_ERROR_SYNTAX);
  assert_json (base, two);
  g_string_free (text, TRUE);
}

static void
test_set (void)
{
  static const char *const cases[][3] = {
      {"a", "1", "{\"a\":1,\"s\":\"x\",\"l\":[1,{\"q\":0}]}"},
      {"a", "true", "{\"a\":true,\"s\":\"x\",\"l\":[1,{\"q\":0}]}"},
      {"a", "word", "{\"a\":\"word\",\"s\":\"x\",\"l\":[1,{\"q\":0}]}"},
      {"a", "\"7\"", "{\"a\":\"7\",\"s\":\"x\",\"l\":[1,{\"q\":0}]}"},
      {"a", "", "{\"a\":\"\",\"s\":\"x\",\"l\":[1,{\"q\":0}]}"},
      {"a", "Et*3|(tt|)*29,m|L", "{\"a\":\"Et*3|(tt|)*29,m|L\",\"s\":\"x\",\"l\":[1,{\"q\":0}]}"},
      {"a.b", "1", "{\"a\":{\"b\":1},\"s\":\"x\",\"l\":[1,{\"q\":0}]}"},
      {"a.o.b", "[1]", "{\"a\":{\"o\":{\"b\":[1]}},\"s\":\"x\",\"l\":[1,{\"q\":0}]}"},
      {"l.0", "2", "{\"a\":{},\"s\":\"x\",\"l\":[2,{\"q\":0}]}"},
      {"l.1", "2", "{\"a\":{},\"s\":\"x\",\"l\":[1,2]}"},
      {"l.1.q", "{\"r\":2}", "{\"a\":{},\"s\":\"x\",\"l\":[1,{\"q\":{\"r\":2}}]}"},
      {"l.1.n.m", "2", "{\"a\":{},\"s\":\"x\",\"l\":[1,{\"q\":0,\"n\":{\"m\":2}}]}"},
      {"new", "null", "{\"a\":{},\"s\":\"x\",\"l\":[1,{\"q\":0}],\"new\":null}"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (JsonDoc) doc = parse ("d", "{\"a\":{},\"s\":\"x\",\"l\":[1,{\"q\":0}]}");
    g_assert_true (json_doc_set (doc, cases[i][0], cases[i][1], &error));
    g_assert_no_error (error);
    assert_json (doc, cases[i][2]);
  }
}

static void
test_bad_set (void)
{
  static const struct {
    const char *dotted, *text;
    JsonError code;
    const char *message;
  } cases[] = {
      {"", "1", JSON_ERROR_SYNTAX, "--set : /: the path is empty"},
      {".", "1", JSON_ERROR_SYNTAX, "--set .: /: empty part"},
      {"a.", "1", JSON_ERROR_SYNTAX, "--set a.: /a: empty part"},
      {"a..b", "1", JSON_ERROR_SYNTAX, "--set a..b: /a: empty part"},
      {"a.n..b", "1", JSON_ERROR_SYNTAX, "--set a.n..b: /a: empty part"},
      {"s.x", "1", JSON_ERROR_TYPE, "--set s.x: /s: cannot set \"x\" in it (found string \"x\""},
      {"l.2", "1", JSON_ERROR_RANGE,
       "--set l.2: /l: no such element (found \"2\"; allowed: 0 to 1)"},
      {"l.x", "1", JSON_ERROR_RANGE, "--set l.x: /l: no such element"},
      {"l.-1", "1", JSON_ERROR_RANGE, "--set l.-1: /l: no such element"},
      {"l.0.x", "1", JSON_ERROR_TYPE, "--set l.0.x: /l/0: cannot set \"x\""},
      {"a", "{\"b\":1", JSON_ERROR_SYNTAX, "--set a: /b: a comma or the end"},
      {"a", "[1,", JSON_ERROR_SYNTAX, "--set a: /1: a value is expected"},
      {"a", "\"x", JSON_ERROR_SYNTAX, "--set a: /: a string is not closed"},
      {"a", "NaN", JSON_ERROR_SYNTAX, "--set a: /: number is not finite"},
      {"a", "1e999", JSON_ERROR_SYNTAX, "--set a: /: number out of range"},
      {"a", "-inf", JSON_ERROR_SYNTAX, "--set a: /: number is not finite"},
      {"a", "\xff", JSON_ERROR_SYNTAX, "--set a: /: not UTF-8"},
      {"\xff", "1", JSON_ERROR_SYNTAX, "--set \\xff: /: the path is not UTF-8"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (JsonDoc) doc = parse ("d", "{\"a\":{},\"s\":\"x\",\"l\":[1,{\"q\":0}]}");
    g_test_message ("set %s=%s", cases[i].dotted, cases[i].text);
    g_assert_false (json_doc_set (doc, cases[i].dotted, cases[i].text, &error));
    assert_error (error, cases[i].code, cases[i].message);
    assert_json (doc, "{\"a\":{},\"s\":\"x\",\"l\":[1,{\"q\":0}]}");
  }
  /* A value that --set gave is named as such when a reader refuses it. */
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonDoc) doc = parse ("d", "{}");
  g_assert_true (json_doc_set (doc, "count", "12", &error));
  JsonRef root = json_root (doc);
  g_assert_false (read_thing (&root, &error));
  g_assert_cmpstr (error->message, ==,
                   "--set count: /count: out of range (found 12; allowed: 1 to 8)");
}

static void
test_put_copy_remove (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonDoc) doc = parse ("d", "{\"a\": {\"b\":\n[1, 2]}, \"c\": \"name\"}");
  JsonRef root = json_root (doc), a;
  g_assert_true (json_get_object (&root, "a", &a, &error));
  g_autoptr (JsonDoc) copy = json_doc_copy (&a);
  assert_json (copy, "{\"b\":[1,2]}");
  json_doc_remove (doc, "a");
  json_doc_remove (doc, "a");
  assert_json (doc, "{\"c\":\"name\"}");
  g_assert_true (json_doc_put (doc, "c", copy, &error));
  assert_json (doc, "{\"c\":{\"b\":[1,2]}}");
  JsonRef c, b;
  g_assert_true (json_get_object (&root, "c", &c, &error));
  g_assert_true (json_get_array (&c, "b", &b, &error));
  g_autofree char *where = json_where (&b);
  g_assert_cmpstr (where, ==, "d:2");
  g_assert_null (json_file (&b));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/json-merge/rfc7396", test_merge_rfc);
  g_test_add_func ("/json-merge/lines", test_merge_lines);
  g_test_add_func ("/json-merge/deep", test_merge_deep);
  g_test_add_func ("/json-merge/set", test_set);
  g_test_add_func ("/json-merge/bad-set", test_bad_set);
  g_test_add_func ("/json-merge/put-copy-remove", test_put_copy_remove);
  return g_test_run ();
}
