/* The writer: exact bytes, numbers that read back the same, strings that stay JSON. */
#include "json_read.h"
#include "json_write.h"

#include <math.h>
#include <string.h>

static void
write_sample (JsonWriter *w)
{
  jw_begin_object (w, NULL);
  jw_string (w, "name", "a");
  jw_begin_array (w, "list");
  jw_int (w, NULL, 1);
  jw_double (w, NULL, 0.5);
  jw_null (w, NULL);
  jw_begin_object (w, NULL);
  jw_bool (w, "on", TRUE);
  jw_bool (w, "off", FALSE);
  jw_end_object (w);
  jw_end_array (w);
  jw_begin_object (w, "empty");
  jw_end_object (w);
  jw_begin_array (w, "none");
  jw_end_array (w);
  jw_string (w, "nothing", NULL);
  jw_end_object (w);
}

static void
test_layout (void)
{
  g_autoptr (GString) line = g_string_new (NULL), page = g_string_new (NULL);
  g_autoptr (JsonWriter) a = json_writer_new (line, 0);
  g_autoptr (JsonWriter) b = json_writer_new (page, 2);
  write_sample (a);
  write_sample (b);
  g_assert_cmpstr (line->str, ==,
                   "{\"name\": \"a\", \"list\": [1, 0.5, null, {\"on\": true, \"off\": false}], "
                   "\"empty\": {}, \"none\": [], \"nothing\": null}");
  g_assert_cmpstr (page->str, ==,
                   "{\n  \"name\": \"a\",\n  \"list\": [\n    1,\n    0.5,\n    null,\n    {\n"
                   "      \"on\": true,\n      \"off\": false\n    }\n  ],\n  \"empty\": {},\n"
                   "  \"none\": [],\n  \"nothing\": null\n}");
}

static char *
one_double (double v)
{
  GString *out = g_string_new (NULL);
  g_autoptr (JsonWriter) w = json_writer_new (out, 0);
  jw_double (w, NULL, v);
  return g_string_free (out, FALSE);
}

static void
test_numbers (void)
{
  static const struct {
    double v;
    const char *text;
  } cases[] = {
      {0, "0"},
      {1, "1"},
      {-1.5, "-1.5"},
      {0.1, "0.1"},
      {1.0 / 3, "0.3333333333333333"},
      {2048, "2048"},
      {15.6e12, "15600000000000"},
      {1e300, "1e+300"},
      {INFINITY, "null"},
      {-INFINITY, "null"},
      {NAN, "null"},
      {9007199254740992.0, "9007199254740992"},
      {5e-324, "4.94065645841247e-324"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *text = one_double (cases[i].v);
    g_assert_cmpstr (text, ==, cases[i].text);
  }
  /* Every bit pattern of a walk through the doubles reads back the same. */
  guint64 bits = 1;
  for (int i = 0; i < 20000; i++) {
    bits =
        bits * G_GUINT64_CONSTANT (6364136223846793005) + G_GUINT64_CONSTANT (1442695040888963407);
    double v;
    memcpy (&v, &bits, sizeof v);
    if (!isfinite (v))
      continue;
    g_autofree char *text = one_double (v);
    g_assert_cmpfloat (g_ascii_strtod (text, NULL), ==, v);
  }
  g_autoptr (GString) out = g_string_new (NULL);
  g_autoptr (JsonWriter) w = json_writer_new (out, 0);
  jw_begin_array (w, NULL);
  jw_int (w, NULL, G_MININT64);
  jw_int (w, NULL, G_MAXINT64);
  jw_end_array (w);
  g_assert_cmpstr (out->str, ==, "[-9223372036854775808, 9223372036854775807]");
}

/* What the writer writes, the strict reader reads, and gets the same string. */
static void
test_strings (void)
{
  static const char *const cases[][2] = {
      {"", ""},
      {"plain", "plain"},
      {"\"quoted\" \\ /", "\"quoted\" \\ /"},
      {"a\nb\tc\rd\be\ff\x01\x1f\x7f", "a\nb\tc\rd\be\ff\x01\x1f\x7f"},
      {"caf\xc3\xa9 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xf0\x9f\x98\x80"},
      {"bad \xff\xc3(", "bad \xef\xbf\xbd\xef\xbf\xbd("},
      {"</script>", "</script>"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GString) out = g_string_new (NULL);
    g_autoptr (JsonWriter) w = json_writer_new (out, 2);
    g_autoptr (GError) error = NULL;
    jw_begin_object (w, NULL);
    jw_string (w, i % 2 == 0 ? "k" : "k\n\"", cases[i][0]);
    jw_end_object (w);
    g_autoptr (JsonDoc) doc = json_doc_parse ("out", out->str, out->len, &error);
    g_assert_no_error (error);
    JsonRef root = json_root (doc);
    const char *back = NULL;
    g_assert_true (json_get_string (&root, i % 2 == 0 ? "k" : "k\n\"", &back, &error));
    g_assert_cmpstr (back, ==, cases[i][1]);
  }
}

/* Misuse is a programmer's error: the process stops. */
static void
test_misuse (void)
{
  if (g_test_subprocess ()) {
    g_autoptr (GString) out = g_string_new (NULL);
    g_autoptr (JsonWriter) w = json_writer_new (out, 0);
    jw_begin_array (w, NULL);
    jw_int (w, "key", 1); /* a key in an array */
    return;
  }
  g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
  g_test_trap_assert_failed ();
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/json-write/layout", test_layout);
  g_test_add_func ("/json-write/numbers", test_numbers);
  g_test_add_func ("/json-write/strings", test_strings);
  g_test_add_func ("/json-write/misuse", test_misuse);
  return g_test_run ();
}
