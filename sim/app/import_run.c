/* The settings as they are read; import_run_write.c says what they mean. */
#include "import_run.h"

#include <string.h>

#include "cli.h"
#include "import_run_priv.h"
#include "shell_words.h"
#include "text.h"

ImportedRun *
imported_run_new (const char *file)
{
  ImportedRun *r = g_new0 (ImportedRun, 1);
  r->file = g_strdup (file);
  r->ignored = g_ptr_array_new_with_free_func (g_free);
  r->notes = g_ptr_array_new_with_free_func (g_free);
  r->others = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  return r;
}

void
imported_run_free (ImportedRun *r)
{
  if (r == NULL)
    return;
  for (int k = 0; k < K_COUNT; k++)
    g_free (r->value[k]);
  g_free (r->file);
  g_free (r->model);
  g_free (r->software);
  g_ptr_array_unref (r->ignored);
  g_ptr_array_unref (r->notes);
  g_hash_table_unref (r->others);
  g_free (r);
}

const GPtrArray *
imported_run_ignored (const ImportedRun *r)
{
  return r->ignored;
}

const GPtrArray *
imported_run_notes (const ImportedRun *r)
{
  return r->notes;
}

guint
imported_run_count (const ImportedRun *r)
{
  return r->count;
}

void
imported_run_model (ImportedRun *r, const char *shipped)
{
  g_free (r->model);
  r->model = g_strdup (shipped);
}

void
imported_run_software (ImportedRun *r, const char *shipped)
{
  g_free (r->software);
  r->software = g_strdup (shipped);
}

void
imported_run_ignore (ImportedRun *r, const char *name)
{
  for (guint i = 0; i < r->ignored->len; i++)
    if (strcmp (g_ptr_array_index (r->ignored, i), name) == 0)
      return;
  g_ptr_array_add (r->ignored, text_printable (name, -1, 100));
}

void
imported_run_note (ImportedRun *r, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_ptr_array_add (r->notes, text_printable (text, -1, 400));
}

/* ---- settings ---- */

static char *
plain_name (const char *name)
{
  while (*name == '-')
    name++;
  return g_strdelimit (g_ascii_strdown (name, -1), "_", '-');
}

/* The row of the table, or -1. */
static int
find_name (const char *name)
{
  g_autofree char *plain = plain_name (name);
  for (guint i = 0; import_names[i].name != NULL; i++)
    if (strcmp (import_names[i].name, plain) == 0)
      return (int)i;
  return -1;
}

gboolean
imported_run_knows (const char *name)
{
  return find_name (name) >= 0;
}

gboolean
imported_run_is_flag (const char *name)
{
  int i = find_name (name);
  return i >= 0 && import_names[i].kind == FLAG;
}

gboolean
imported_run_has (const ImportedRun *r, const char *name)
{
  int i = find_name (name);
  return i >= 0 && r->value[import_names[i].key] != NULL;
}

gboolean
import_run_fail (const ImportedRun *r, guint line, const char *name, GError **error,
                 const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *what = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *place = line > 0 ? g_strdup_printf ("%s:%u", r->file, line) : g_strdup (r->file);
  g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE, "%s: %s: %s", place, name, what);
  return FALSE;
}

/* A value that nobody has filled in yet. */
static gboolean
check_filled (const ImportedRun *r, const char *name, const char *value, guint line, GError **error)
{
  g_autofree char *unknown = shell_unknown (value);
  if (unknown != NULL && *unknown != '(' && g_ascii_isdigit (*unknown))
    return import_run_fail (
        r, line, name, error,
        "its value is parameter %s of the script (give the script's parameters after "
        "the file, or %s=VALUE)",
        unknown, name);
  if (unknown != NULL)
    return import_run_fail (
        r, line, name, error,
        "its value is known only when it runs: $%s (give %s=VALUE after the file)", unknown,
        g_ascii_isalpha (*unknown) && strpbrk (unknown, " []%") == NULL ? unknown : name);
  if (strcmp (value, "auto") == 0 || strstr (value, "${") != NULL || strchr (value, '<') != NULL)
    return import_run_fail (r, line, name, error,
                            "is a template (found \"%.60s\"; give %s=VALUE after the file)", value,
                            name);
  return TRUE;
}

static gboolean
is_null (const char *value)
{
  return *value == '\0' || g_ascii_strcasecmp (value, "null") == 0 ||
         g_ascii_strcasecmp (value, "none") == 0 || strcmp (value, "~") == 0;
}

gboolean
import_is_false (const char *value)
{
  return g_ascii_strcasecmp (value, "false") == 0 || strcmp (value, "0") == 0 ||
         g_ascii_strcasecmp (value, "no") == 0 || g_ascii_strcasecmp (value, "off") == 0;
}

/* "220_000_000" too. FALSE when it is no whole number. */
gboolean
import_whole_number (const char *text, gint64 *out)
{
  g_autofree char *plain = g_strdup (text);
  char *to = plain;
  for (const char *p = plain; *p != '\0'; p++)
    if (*p != '_')
      *to++ = *p;
  *to = '\0';
  g_strstrip (plain);
  if (g_ascii_string_to_signed (plain, 10, -1, G_MAXINT32, out, NULL))
    return TRUE;
  char *end;
  double v = g_ascii_strtod (plain, &end);
  *out = (gint64)v;
  return end != plain && *end == '\0' && v >= -1 && v < G_MAXINT32 && (double)*out == v;
}

gboolean
imported_run_set (ImportedRun *r, const char *name, const char *value, guint line, GError **error)
{
  int i = find_name (name);
  if (i < 0) {
    imported_run_ignore (r, name);
    g_hash_table_insert (r->others, plain_name (name), g_strdup (value != NULL ? value : ""));
    return TRUE;
  }
  Key k = import_names[i].key;
  gint64 n;
  if (value != NULL && !check_filled (r, name, value, line, error))
    return FALSE;
  g_autofree char *kept = NULL;
  if (value != NULL && is_null (value))
    return TRUE;
  if (import_names[i].kind == FLAG) {
    if (value != NULL && import_is_false (value))
      return TRUE;
    kept = g_strdup ("1");
  } else if (value == NULL) {
    return import_run_fail (r, line, name, error, "has no value");
  } else if (import_names[i].kind == INTEGER) {
    if (!import_whole_number (value, &n))
      return import_run_fail (r, line, name, error, "must be a whole number (found \"%.60s\")",
                              value);
    kept = g_strdup_printf ("%" G_GINT64_FORMAT, n);
  } else
    kept = g_strdup (value);
  if (r->value[k] == NULL)
    r->count++;
  g_free (r->value[k]);
  r->value[k] = g_steal_pointer (&kept);
  r->line[k] = line;
  return TRUE;
}

gint64
imported_run_number (const ImportedRun *r, const char *name, gint64 otherwise)
{
  int i = find_name (name);
  gint64 n;
  const char *value = i >= 0 ? r->value[import_names[i].key] : imported_run_other (r, name);
  return value != NULL && import_whole_number (value, &n) ? n : otherwise;
}

const char *
imported_run_other (const ImportedRun *r, const char *name)
{
  g_autofree char *plain = plain_name (name);
  return g_hash_table_lookup (r->others, plain);
}

gboolean
imported_run_other_is_on (const ImportedRun *r, const char *name)
{
  const char *value = imported_run_other (r, name);
  return value != NULL && !import_is_false (value);
}
