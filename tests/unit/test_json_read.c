/* The JSON layer: each bad input gives its code, its line and its path; good input reads back. */
#include "json_read.h"
#include "text.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  const char *text;
  JsonError code;
  guint line;
  const char *path;
  const char *part; /* of the message */
} Bad;

/* message = "NAME:LINE: PATH: …part…", in one line. */
static void
assert_error (GError *error, const char *name, JsonError code, guint line, const char *path,
              const char *part)
{
  g_assert_nonnull (error);
  g_autofree char *start = g_strdup_printf ("%s:%u: %s: ", name, line, path);
  if (!g_str_has_prefix (error->message, start) || error->code != (int)code ||
      strstr (error->message, part) == NULL)
    g_test_message ("code %d, message: %s", error->code, error->message);
  g_assert_cmpint (error->code, ==, code);
  g_assert_true (error->domain == JSON_ERROR);
  g_assert_true (g_str_has_prefix (error->message, start));
  g_assert_nonnull (strstr (error->message, part));
  g_assert_null (strpbrk (error->message, "\n\r\t\033"));
  g_assert_true (g_utf8_validate (error->message, -1, NULL));
  g_assert_cmpuint (strlen (error->message), <, 2500);
}

static const Bad bad_text[] = {
    {"", JSON_ERROR_SYNTAX, 1, "/", "empty"},
    {" \n\n ", JSON_ERROR_SYNTAX, 3, "/", "empty"},
    {"hello", JSON_ERROR_SYNTAX, 1, "/", "found 'hello'"},
    {"# comment\n{}", JSON_ERROR_SYNTAX, 1, "/", "found '#'"},
    {"// comment\n{}", JSON_ERROR_SYNTAX, 1, "/", "comments"},
    {"{\"a\": 1 /* x */}", JSON_ERROR_SYNTAX, 1, "/a", "comma"},
    {"{\"a\": 1,\n // x\n \"b\": 2}", JSON_ERROR_SYNTAX, 2, "/", "key is expected"},
    {"<?xml version='1.0'?>", JSON_ERROR_SYNTAX, 1, "/", "found '<'"},
    {"{'a': 1}", JSON_ERROR_SYNTAX, 1, "/", "key is expected"},
    {"{a: 1}", JSON_ERROR_SYNTAX, 1, "/", "found 'a'"},
    {"{\"a\" 1}", JSON_ERROR_SYNTAX, 1, "/a", "colon"},
    {"{\"a\": 1,}", JSON_ERROR_SYNTAX, 1, "/", "found '}'"},
    {"{\"a\": 1\n \"b\": 2}", JSON_ERROR_SYNTAX, 2, "/a", "comma"},
    {"[1, 2,\n]", JSON_ERROR_SYNTAX, 2, "/2", "value is expected"},
    {"[1 2]", JSON_ERROR_SYNTAX, 1, "/0", "comma"},
    {"[1, 2}", JSON_ERROR_SYNTAX, 1, "/1", ", or ]"},
    {"{\"a\": [}", JSON_ERROR_SYNTAX, 1, "/a/0", "found '}'"},
    {"{\"a\": {\"b\": [1, {\"c\": tru}]}}", JSON_ERROR_SYNTAX, 1, "/a/b/1/c", "found 'tru'"},
    {"[truefalse]", JSON_ERROR_SYNTAX, 1, "/0", "truefalse"},
    {"[True]", JSON_ERROR_SYNTAX, 1, "/0", "True"},
    {"[nul]", JSON_ERROR_SYNTAX, 1, "/0", "nul"},
    {"[,1]", JSON_ERROR_SYNTAX, 1, "/0", "found ','"},
    {"{} {}", JSON_ERROR_SYNTAX, 1, "/", "after the end"},
    {"{}\n\nx", JSON_ERROR_SYNTAX, 3, "/", "after the end"},
    {"1 2", JSON_ERROR_SYNTAX, 1, "/", "after the end"},
    {"[1]]", JSON_ERROR_SYNTAX, 1, "/", "after the end"},
    {"{\"x\":\n NaN}", JSON_ERROR_SYNTAX, 2, "/x", "not finite"},
    {"{\"x\": nan}", JSON_ERROR_SYNTAX, 1, "/x", "not finite"},
    {"{\"x\": Infinity}", JSON_ERROR_SYNTAX, 1, "/x", "not finite"},
    {"{\"x\": -Infinity}", JSON_ERROR_SYNTAX, 1, "/x", "not finite"},
    {"{\"x\": inf}", JSON_ERROR_SYNTAX, 1, "/x", "not finite"},
    {"[0,\n1e999]", JSON_ERROR_SYNTAX, 2, "/1", "found 1e999"},
    {"[-1e309]", JSON_ERROR_SYNTAX, 1, "/0", "found -1e309"},
    {"[1E+400]", JSON_ERROR_SYNTAX, 1, "/0", "out of range"},
    {"[01]", JSON_ERROR_SYNTAX, 1, "/0", "leading zero"},
    {"[-01]", JSON_ERROR_SYNTAX, 1, "/0", "leading zero"},
    {"[+1]", JSON_ERROR_SYNTAX, 1, "/0", "found '+1'"},
    {"[.5]", JSON_ERROR_SYNTAX, 1, "/0", "found '.5'"},
    {"[1.]", JSON_ERROR_SYNTAX, 1, "/0", "incomplete number"},
    {"[1e]", JSON_ERROR_SYNTAX, 1, "/0", "incomplete number"},
    {"[1e+]", JSON_ERROR_SYNTAX, 1, "/0", "incomplete number"},
    {"[-]", JSON_ERROR_SYNTAX, 1, "/0", "incomplete number"},
    {"[0x10]", JSON_ERROR_SYNTAX, 1, "/0", "comma"},
    {"[1_000]", JSON_ERROR_SYNTAX, 1, "/0", "comma"},
    {"[0.0000000000000000000000000000000000000000000000000000000000000001]", JSON_ERROR_SYNTAX, 1,
     "/0", "too long"},
    {"[\"abc]", JSON_ERROR_SYNTAX, 1, "/0", "not closed"},
    {"[\"a\nb\"]", JSON_ERROR_SYNTAX, 1, "/0", "\\u000a"},
    {"[\"a\tb\"]", JSON_ERROR_SYNTAX, 1, "/0", "\\u0009"},
    {"[\"\\x41\"]", JSON_ERROR_SYNTAX, 1, "/0", "unknown escape"},
    {"[\"\\u12g4\"]", JSON_ERROR_SYNTAX, 1, "/0", "\\u escape"},
    {"[\"\\u12", JSON_ERROR_SYNTAX, 1, "/0", "\\u escape"},
    {"[\"\\u0000\"]", JSON_ERROR_SYNTAX, 1, "/0", "NUL"},
    {"[\"\\ud800\"]", JSON_ERROR_SYNTAX, 1, "/0", "surrogate"},
    {"[\"\\ud800\\u0041\"]", JSON_ERROR_SYNTAX, 1, "/0", "surrogate"},
    {"[\"\\udc00\"]", JSON_ERROR_SYNTAX, 1, "/0", "surrogate"},
    {"[\"\\", JSON_ERROR_SYNTAX, 1, "/0", "not closed"},
    {"{\"a\": 1,\n\"a\": 2}", JSON_ERROR_SYNTAX, 2, "/a", "given twice (found first in line 1"},
    {"{\"a\": 1,\n\n\"\\u0061\": 2}", JSON_ERROR_SYNTAX, 3, "/a", "given twice"},
    {"{\"p\": [0, {\"tp\": 1,\n\"tp\": 1}]}", JSON_ERROR_SYNTAX, 2, "/p/1/tp", "given twice"},
    {"{\"a/b~\": 1, \"a/b~\": 1}", JSON_ERROR_SYNTAX, 1, "/a~1b~0", "given twice"},
    {"\xef\xbb\xbf{}", JSON_ERROR_SYNTAX, 1, "/", "byte order mark"},
    {"\xff\xfe{", JSON_ERROR_SYNTAX, 1, "/", "UTF-16"},
    {"{\n\"a\": \"\xc3\x28\"}", JSON_ERROR_SYNTAX, 2, "/", "0xc3 at offset 8"},
    {"[\"\xed\xa0\x80\"]", JSON_ERROR_SYNTAX, 1, "/", "not UTF-8"}, /* surrogate, encoded */
    {"[\"\xc0\xaf\"]", JSON_ERROR_SYNTAX, 1, "/", "not UTF-8"},     /* overlong "/" */
    {"[\"\xf4\x90\x80\x80\"]", JSON_ERROR_SYNTAX, 1, "/", "not UTF-8"},
    {"{\"a\x1b[31m\": 1}", JSON_ERROR_SYNTAX, 1, "/", "control character"},
    {"\v{}", JSON_ERROR_SYNTAX, 1, "/", "\\u000b"},
    {"\xc2\xa0{}", JSON_ERROR_SYNTAX, 1, "/", "value is expected"}, /* no-break space */
};

static void
test_bad_text (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (bad_text); i++) {
    const Bad *b = &bad_text[i];
    g_autoptr (GError) error = NULL;
    g_test_message ("case %u: %s", i, b->text);
    g_assert_null (json_doc_parse ("in.json", b->text, strlen (b->text), &error));
    assert_error (error, "in.json", b->code, b->line, b->path, b->part);
  }
}

static void
test_nul_byte (void)
{
  static const char text[] = "{\n\"a\": 1\0}";
  g_autoptr (GError) error = NULL;
  g_assert_null (json_doc_parse ("in.json", text, sizeof text - 1, &error));
  assert_error (error, "in.json", JSON_ERROR_SYNTAX, 2, "/", "NUL byte (found at offset 8");
}

static const char sample[] = "{ \"format\": 1, \"name\": \"caf\xc3\xa9 \\u00e9 \\ud83d\\ude00\",\n"
                             "  \"cluster\": { \"gpu\": \"H100\", \"nodes\": 2, \"t\": true },\n"
                             "  \"list\": [ 1, -2.5, 1e3, null, false, [], {} ],\n"
                             "  \"deep\": { \"a\": { \"b\": [ { \"c\": \"x\" } ] } } }";

/* No prefix of one object is JSON; each is refused in the line in which it ends, at most. */
static void
test_cut_everywhere (void)
{
  gsize n = strlen (sample);
  guint line = 1;
  for (gsize cut = 0; cut < n; cut++) {
    g_autoptr (GError) error = NULL;
    /* An allocation of its own size, so that a sanitizer sees one byte too many. */
    g_autofree char *text = g_memdup2 (sample, MAX (cut, 1));
    g_assert_null (json_doc_parse ("cut.json", text, cut, &error));
    g_assert_error (error, JSON_ERROR, JSON_ERROR_SYNTAX);
    g_autofree char *start = g_strdup_printf ("cut.json:%u: /", line);
    g_assert_true (g_str_has_prefix (error->message, start));
    line += sample[cut] == '\n';
  }
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonDoc) doc = json_doc_parse ("whole.json", sample, n, &error);
  g_assert_no_error (error);
  JsonRef root = json_root (doc);
  const char *name;
  g_assert_true (json_get_string (&root, "name", &name, &error));
  g_assert_cmpstr (name, ==, "caf\xc3\xa9 \xc3\xa9 \xf0\x9f\x98\x80");
}

static JsonDoc *
nested (guint depth, GError **error)
{
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < depth; i++)
    g_string_append (text, i % 2 == 0 ? "[" : "{\"k\":");
  g_string_append (text, "1");
  for (guint i = depth; i-- > 0;)
    g_string_append (text, i % 2 == 0 ? "]" : "}");
  JsonDoc *doc = json_doc_parse ("deep.json", text->str, text->len, error);
  g_string_free (text, TRUE);
  return doc;
}

static void
test_depth (void)
{
  static const guint too_deep[] = {JSON_MAX_DEPTH + 1, 10000, 1000000};
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonDoc) doc = nested (JSON_MAX_DEPTH, &error);
  g_assert_no_error (error);
  g_assert_nonnull (doc);
  for (guint i = 0; i < G_N_ELEMENTS (too_deep); i++) {
    g_assert_null (nested (too_deep[i], &error));
    g_assert_error (error, JSON_ERROR, JSON_ERROR_SYNTAX);
    g_assert_true (g_str_has_prefix (error->message, "deep.json:1: /0/k/0/k/"));
    g_assert_nonnull (
        strstr (error->message, "nested too deep (found level 201; allowed: up to 200)"));
    g_assert_nonnull (strstr (error->message, "/0/k..."));
    g_assert_cmpuint (strlen (error->message), <, 300);
    g_clear_error (&error);
  }
}

static void
test_files (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *dir = g_dir_make_tmp ("clustersim-json-XXXXXX", NULL);
  g_autofree char *path = g_build_filename (dir, "big.json", NULL);

  /* 100 GB that take no space: refused by size, before anything is read. */
  int fd = g_open (path, O_WRONLY | O_CREAT, 0600);
  g_assert_cmpint (ftruncate (fd, G_GINT64_CONSTANT (100000000000)), ==, 0);
  close (fd);
  g_assert_null (json_doc_load (path, &error));
  g_assert_error (error, JSON_ERROR, JSON_ERROR_FILE);
  g_autofree char *too_big = g_strdup_printf (
      "%s: too big (found 100000000000 bytes; allowed: up to %d)", path, JSON_MAX_BYTES);
  g_assert_cmpstr (error->message, ==, too_big);
  g_clear_error (&error);

  /* Devices without a size end at the limit. */
  g_assert_null (json_doc_load ("/dev/zero", &error));
  g_assert_error (error, JSON_ERROR, JSON_ERROR_FILE);
  g_clear_error (&error);

  g_assert_null (json_doc_load (dir, &error));
  g_assert_error (error, JSON_ERROR, JSON_ERROR_FILE);
  g_assert_nonnull (strstr (error->message, "is a directory"));
  g_clear_error (&error);

  g_unlink (path);
  g_assert_null (json_doc_load (path, &error));
  g_assert_error (error, JSON_ERROR, JSON_ERROR_FILE);
  g_assert_nonnull (strstr (error->message, "cannot be opened (No such file"));
  g_clear_error (&error);

  g_assert_true (g_file_set_contents (path, "{\n \"a\": [1,\n 1e999]}", -1, NULL));
  g_assert_null (json_doc_load (path, &error));
  assert_error (error, path, JSON_ERROR_SYNTAX, 3, "/a/1", "1e999");
  g_clear_error (&error);

  g_assert_true (g_file_set_contents (path, "{\n \"a\": [1,\n 2]}", -1, NULL));
  g_autoptr (JsonDoc) doc = json_doc_load (path, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (json_doc_name (doc), ==, path);
  JsonRef root = json_root (doc), a;
  g_assert_true (json_get_array (&root, "a", &a, &error));
  JsonRef second = json_item (&a, 1);
  g_autofree char *where = json_where (&second), *pointer = json_path (&second);
  g_autofree char *expected = g_strconcat (path, ":3", NULL);
  g_assert_cmpstr (where, ==, expected);
  g_assert_cmpstr (pointer, ==, "/a/1");
  g_assert_cmpstr (json_file (&second), ==, path);
  g_unlink (path);
  g_rmdir (dir);
}

/* ---- getters ---- */

static const char *const colours[] = {"red", "green", "blue", NULL};
static const char *const known[] = {"count", "rate", "on",    "name", "colour",
                                    "part",  "list", "speed", NULL};

/* A reader as profiles have them: what the cases below are read with. */
static gboolean
read_thing (const JsonRef *root, GError **error)
{
  gint64 count;
  double rate = 0.5, speed = 0;
  gboolean on = FALSE;
  const char *name = NULL;
  int colour = 0;
  JsonRef part, list;
  if (!json_check_keys (root, known, error) || !json_get_int (root, "count", 1, 8, &count, error) ||
      !json_opt_double (root, "rate", 0, 1, &rate, error) ||
      !json_opt_bool (root, "on", &on, error) || !json_opt_string (root, "name", &name, error) ||
      !json_opt_enum (root, "colour", colours, &colour, error) ||
      !json_opt_sourced (root, "speed", G_MINDOUBLE, 1e12, &speed, NULL, error))
    return FALSE;
  if (json_has (root, "part") && !json_get_object (root, "part", &part, error))
    return FALSE;
  if (!json_has (root, "list"))
    return TRUE;
  if (!json_get_array (root, "list", &list, error))
    return FALSE;
  for (int i = 0; i < json_len (&list); i++) {
    JsonRef item = json_item (&list, i);
    double v;
    if (!json_value_double (&item, -1e6, 1e6, &v, error))
      return FALSE;
  }
  return TRUE;
}

static const Bad bad_thing[] = {
    {"[]", JSON_ERROR_TYPE, 1, "/", "found an array; allowed: an object"},
    {"3", JSON_ERROR_TYPE, 1, "/", "found number 3; allowed: an object"},
    {"{}", JSON_ERROR_MISSING, 1, "/count", "needed: a whole number"},
    {"{\"count\": 1,\n \"color\": \"red\"}", JSON_ERROR_UNKNOWN_KEY, 2, "/color",
     "found \"color\"; nearest: colour; allowed: count, rate"},
    {"{\"count\": 1,\n \"Count\": 1}", JSON_ERROR_UNKNOWN_KEY, 2, "/Count", "nearest: count"},
    {"{\"count\": 1,\n \"qqqqqqq\": 1}", JSON_ERROR_UNKNOWN_KEY, 2, "/qqqqqqq",
     "(found \"qqqqqqq\"; allowed: count"},
    {"{\"count\": 1, \"\": 1}", JSON_ERROR_UNKNOWN_KEY, 1, "/", "found \"\""},
    {"{\"count\": \"1\"}", JSON_ERROR_TYPE, 1, "/count",
     "found string \"1\"; allowed: a whole number"},
    {"{\"count\": null}", JSON_ERROR_TYPE, 1, "/count", "found null"},
    {"{\"count\": 0}", JSON_ERROR_RANGE, 1, "/count", "found 0; allowed: 1 to 8"},
    {"{\"count\":\n 9}", JSON_ERROR_RANGE, 2, "/count", "found 9; allowed: 1 to 8"},
    {"{\"count\": 1.5}", JSON_ERROR_RANGE, 1, "/count", "not a whole number (found 1.5"},
    {"{\"count\": 9007199254740993}", JSON_ERROR_RANGE, 1, "/count", "exactly"},
    {"{\"count\": -1e300}", JSON_ERROR_RANGE, 1, "/count", "exactly"},
    {"{\"count\": 1, \"rate\": 1.0000001}", JSON_ERROR_RANGE, 1, "/rate",
     "found 1.0000001; allowed: 0 to 1"},
    {"{\"count\": 1, \"rate\": true}", JSON_ERROR_TYPE, 1, "/rate",
     "found true; allowed: a number"},
    {"{\"count\": 1, \"on\": 1}", JSON_ERROR_TYPE, 1, "/on",
     "found number 1; allowed: true or false"},
    {"{\"count\": 1, \"name\": {}}", JSON_ERROR_TYPE, 1, "/name", "found an object"},
    {"{\"count\": 1, \"colour\": \"gren\"}", JSON_ERROR_RANGE, 1, "/colour",
     "unknown name (found \"gren\"; nearest: green; allowed: red, green, blue)"},
    {"{\"count\": 1, \"colour\": 2}", JSON_ERROR_TYPE, 1, "/colour", "one of red, green, blue"},
    {"{\"count\": 1, \"colour\": \"a\\nb\\u001b[31m\\u202e\"}", JSON_ERROR_RANGE, 1, "/colour",
     "\"a\\nb\\u001b[31m\\u202e\""},
    {"{\"count\": 1, \"part\": []}", JSON_ERROR_TYPE, 1, "/part", "allowed: an object"},
    {"{\"count\": 1, \"list\": {}}", JSON_ERROR_TYPE, 1, "/list", "allowed: an array"},
    {"{\"count\": 1, \"list\": [1,\n2,\n\"3\"]}", JSON_ERROR_TYPE, 3, "/list/2", "string \"3\""},
    {"{\"count\": 1, \"list\": [1,\n2e9]}", JSON_ERROR_RANGE, 2, "/list/1", "-1000000 to 1000000"},
    {"{\"count\": 1, \"speed\": 3}", JSON_ERROR_TYPE, 1, "/speed", "a number with its source"},
    {"{\"count\": 1, \"speed\": {\"value\": 3}}", JSON_ERROR_MISSING, 1, "/speed/kind", "missing"},
    {"{\"count\": 1, \"speed\": {\"value\": 3, \"kind\": \"guess\", \"source\": \"x\"}}",
     JSON_ERROR_RANGE, 1, "/speed/kind", "measured, vendor, assumed"},
    {"{\"count\": 1, \"speed\": {\"value\": 3, \"kind\": \"vendor\", \"source\": \" \"}}",
     JSON_ERROR_RANGE, 1, "/speed/source", "is empty"},
    {"{\"count\": 1, \"speed\": {\"value\": 0, \"kind\": \"vendor\", \"source\": \"x\"}}",
     JSON_ERROR_RANGE, 1, "/speed/value", "more than 0, up to"},
    {"{\"count\": 1, \"speed\": {\"valu\": 3, \"kind\": \"vendor\", \"source\": \"x\"}}",
     JSON_ERROR_UNKNOWN_KEY, 1, "/speed/valu", "nearest: value"},
};

static void
test_bad_values (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (bad_thing); i++) {
    const Bad *b = &bad_thing[i];
    g_autoptr (GError) error = NULL;
    g_test_message ("case %u: %s", i, b->text);
    g_autoptr (JsonDoc) doc = json_doc_parse ("in.json", b->text, strlen (b->text), &error);
    g_assert_no_error (error);
    JsonRef root = json_root (doc);
    g_assert_false (read_thing (&root, &error));
    assert_error (error, "in.json", b->code, b->line, b->path, b->part);
  }
}

static void
test_long_values (void)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *x = g_strnfill (100000, 'x');
  g_autofree char *text = g_strdup_printf ("{\"count\": \"%s\", \"rate\": 1}", x);
  g_autoptr (JsonDoc) doc = json_doc_parse ("in.json", text, strlen (text), &error);
  JsonRef root = json_root (doc);
  g_assert_false (read_thing (&root, &error));
  assert_error (error, "in.json", JSON_ERROR_TYPE, 1, "/count", "xxx...\"");
  g_assert_cmpuint (strlen (error->message), <, 200);
  g_clear_error (&error);

  g_autofree char *keyed = g_strdup_printf ("{\"count\": 1, \"%s\": 1}", x);
  g_autoptr (JsonDoc) doc2 = json_doc_parse ("in.json", keyed, strlen (keyed), &error);
  root = json_root (doc2);
  g_assert_false (read_thing (&root, &error));
  g_assert_cmpuint (strlen (error->message), <, 300);
  g_clear_error (&error);

  json_fail (&root, JSON_ERROR_RANGE, &error, "bytes %s", "\xff\x01\n\xe2\x80\xa8 ok");
  g_assert_cmpstr (error->message, ==, "in.json:1: /: bytes \\xff\\u0001\\n\\u2028 ok");
}

static void
test_good_values (void)
{
  static const char text[] =
      "{\"count\": 8.0, \"rate\": 1e-3, \"on\": true, \"name\": \"n\", \"colour\": \"blue\",\n"
      "\"list\": [1, 2.5], \"part\": {\"b\": 1, \"a\": 2},\n"
      "\"speed\": {\"value\": 2.5, \"kind\": \"measured\", \"source\": \"test\", \"note\": \"n\"}}";
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonDoc) doc = json_doc_parse ("in.json", text, strlen (text), &error);
  g_assert_no_error (error);
  JsonRef root = json_root (doc), part;
  g_assert_true (read_thing (&root, &error));
  g_assert_no_error (error);
  gint64 count;
  double rate, speed;
  gboolean on;
  const char *name;
  int colour;
  g_autoptr (GPtrArray) prov = g_ptr_array_new_with_free_func ((GDestroyNotify)prov_entry_free);
  g_assert_true (json_get_int (&root, "count", 1, 8, &count, &error));
  g_assert_true (json_get_double (&root, "rate", 0, 1, &rate, &error));
  g_assert_true (json_get_bool (&root, "on", &on, &error));
  g_assert_true (json_get_string (&root, "name", &name, &error));
  g_assert_true (json_get_enum (&root, "colour", colours, &colour, &error));
  g_assert_true (json_get_sourced (&root, "speed", 0, 10, &speed, prov, &error));
  g_assert_cmpint (count, ==, 8);
  g_assert_cmpfloat (rate, ==, 1e-3);
  g_assert_true (on);
  g_assert_cmpstr (name, ==, "n");
  g_assert_cmpint (colour, ==, 2);
  g_assert_cmpfloat (speed, ==, 2.5);
  g_assert_cmpuint (prov->len, ==, 1);
  const ProvEntry *e = g_ptr_array_index (prov, 0);
  g_assert_cmpstr (e->name, ==, "in.json:/speed");
  g_assert_cmpint (e->kind, ==, PROV_MEASURED);
  g_assert_cmpstr (e->source, ==, "test");

  /* Members keep the order of the file; absent optional members leave the value as it is. */
  g_assert_true (json_get_object (&root, "part", &part, &error));
  g_assert_cmpint (json_len (&part), ==, 2);
  g_assert_cmpstr (json_item (&part, 0).key, ==, "b");
  g_assert_cmpstr (json_item (&part, 1).key, ==, "a");
  g_assert_cmpstr (json_item (&part, 0).key, ==, "b");
  count = 77;
  g_assert_true (json_opt_int (&part, "absent", 0, 1, &count, &error));
  g_assert_cmpint (count, ==, 77);
  /* 2^53 - 1 is the last whole number that is read. */
  g_autoptr (JsonDoc) big = json_doc_parse ("b", "[9007199254740991]", 18, &error);
  JsonRef big_root = json_root (big), item = json_item (&big_root, 0);
  g_assert_true (json_value_int (&item, 0, G_MAXINT64, &count, &error));
  g_assert_cmpint (count, ==, G_GINT64_CONSTANT (9007199254740991));
}

/* A list of 200,000 numbers is walked in time proportional to its length (cJSON alone would take
 * its square: 20 thousand million steps). */
static void
test_long_list (void)
{
  enum { N = 200000 };
  GString *text = g_string_new ("[0");
  for (int i = 1; i < N; i++)
    g_string_append_printf (text, ",%d", i);
  g_string_append_c (text, ']');
  g_autoptr (GError) error = NULL;
  g_autoptr (JsonDoc) doc = json_doc_parse ("long", text->str, text->len, &error);
  g_string_free (text, TRUE);
  JsonRef root = json_root (doc);
  double sum = 0;
  for (int i = 0; i < json_len (&root); i++) {
    JsonRef item = json_item (&root, i);
    double v = 0;
    g_assert_true (json_value_double (&item, 0, N, &v, &error));
    sum += v;
  }
  g_assert_cmpfloat (sum, ==, 0.5 * N * (N - 1.0));
}

static void
test_many_keys (void)
{
  GString *text = g_string_new ("{");
  for (int i = 0; i < 1000; i++)
    g_string_append_printf (text, "\"k%d\":%d,\n", i, i);
  g_string_append (text, "\"k500\": 0}");
  g_autoptr (GError) error = NULL;
  g_assert_null (json_doc_parse ("many", text->str, text->len, &error));
  assert_error (error, "many", JSON_ERROR_SYNTAX, 1001, "/k500", "found first in line 501");
  g_string_free (text, TRUE);
}

static void
test_too_many_values (void)
{
  g_autoptr (GError) error = NULL;
  GString *text = g_string_new ("[1");
  for (int i = 1; i <= JSON_MAX_VALUES; i++)
    g_string_append (text, ",1");
  g_string_append_c (text, ']');
  g_assert_null (json_doc_parse ("many", text->str, text->len, &error));
  assert_error (error, "many", JSON_ERROR_SYNTAX, 1, "/1999999", "too many values");
  g_string_free (text, TRUE);
}

static void
test_nearest (void)
{
  static const char *const names[] = {"H100-SXM-80GB", "A100-SXM4-80GB", "llama-3.1-405b",
                                      "gpt3-175b", NULL};
  static const char *const colour[] = {"tp", "pp", "cp", NULL};
  g_assert_cmpstr (nearest_name ("h100-sxm-80gb", names), ==, "H100-SXM-80GB");
  g_assert_cmpstr (nearest_name ("H100", names), ==, "H100-SXM-80GB");
  g_assert_cmpstr (nearest_name ("A100-SXM-80GB", names), ==, "A100-SXM4-80GB");
  g_assert_cmpstr (nearest_name ("llama3.1-405b", names), ==, "llama-3.1-405b");
  g_assert_cmpstr (nearest_name ("gtp3-175b", names), ==, "gpt3-175b");
  g_assert_null (nearest_name ("zzzzzzzzzzzz", names));
  g_assert_null (nearest_name ("", names));
  g_assert_cmpstr (nearest_name ("tpp", colour), ==, "tp"); /* a tie: the first */
  g_autofree char *cut = text_printable ("abcdef", -1, 3);
  g_assert_cmpstr (cut, ==, "abc...");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/json/bad-text", test_bad_text);
  g_test_add_func ("/json/nul-byte", test_nul_byte);
  g_test_add_func ("/json/cut-everywhere", test_cut_everywhere);
  g_test_add_func ("/json/depth", test_depth);
  g_test_add_func ("/json/files", test_files);
  g_test_add_func ("/json/bad-values", test_bad_values);
  g_test_add_func ("/json/long-values", test_long_values);
  g_test_add_func ("/json/good-values", test_good_values);
  g_test_add_func ("/json/long-list", test_long_list);
  g_test_add_func ("/json/many-keys", test_many_keys);
  g_test_add_func ("/json/too-many-values", test_too_many_values);
  g_test_add_func ("/json/nearest", test_nearest);
  return g_test_run ();
}
