#include "paths.h"
#include "json_read.h"
#include "text.h"

#include <dlfcn.h>
#include <string.h>

#define SUFFIX      ".json"
#define NAMES_SHOWN 12

/* What a kind is called in messages, and as the argument of `clustersim list`, where that lists it.
 */
static const struct {
  const char *kind, *noun, *list;
} kinds[] = {
    {"hw", "GPU", "gpus"},          {"fabrics", "fabric", "fabrics"},
    {"models", "model", "models"},  {"software", "software", "software"},
    {"train", "scenario", NULL},    {"failures", "failure profile", NULL},
    {"prices", "price list", NULL}, {"campaign", "campaign", NULL},
};

gboolean
data_is_path (const char *name)
{
  return strchr (name, '/') != NULL || g_str_has_suffix (name, SUFFIX);
}

char *
path_relative_to (const char *path, const char *from)
{
  if (from == NULL || g_path_is_absolute (path))
    return g_strdup (path);
  g_autofree char *folder = g_path_get_dirname (from);
  return strcmp (folder, ".") == 0 ? g_strdup (path) : g_build_filename (folder, path, NULL);
}

static void
add_near (GPtrArray *dirs, const char *file)
{
  g_autofree char *beside = g_path_get_dirname (file);
  g_autofree char *above = g_path_get_dirname (beside);
  g_ptr_array_add (dirs, g_build_filename (beside, "scenarios", NULL));
  g_ptr_array_add (dirs, g_build_filename (above, "scenarios", NULL));
  g_ptr_array_add (dirs, g_build_filename (above, "share", "clustersim", "scenarios", NULL));
}

static const char roots_anchor = 0;

/* The folders in which "KIND/NAME.json" may be, in order. */
static GPtrArray *
roots (void)
{
  GPtrArray *dirs = g_ptr_array_new_with_free_func (g_free);
  const char *env = g_getenv ("CLUSTERSIM_SCENARIOS");
  if (env != NULL && *env != '\0')
    g_ptr_array_add (dirs, g_strdup (env));
  g_autofree char *exe = g_file_read_link ("/proc/self/exe", NULL);
  if (exe != NULL)
    add_near (dirs, exe);
  /* As a shared library: what holds this code is another file than the program. */
  Dl_info self;
  g_autofree char *library =
      dladdr (&roots_anchor, &self) != 0 ? g_canonicalize_filename (self.dli_fname, NULL) : NULL;
  if (library != NULL && g_strcmp0 (library, exe) != 0)
    add_near (dirs, library);
  g_ptr_array_add (dirs, g_build_filename (CLUSTERSIM_DATADIR, "scenarios", NULL));
  return dirs;
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

char **
data_list (const char *kind)
{
  g_autoptr (GPtrArray) dirs = roots ();
  g_autoptr (GPtrArray) found = g_ptr_array_new ();
  for (guint i = 0; i < dirs->len; i++) {
    g_autofree char *folder = g_build_filename (g_ptr_array_index (dirs, i), kind, NULL);
    g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
    const char *entry;
    while (dir != NULL && (entry = g_dir_read_name (dir)) != NULL)
      if (*entry != '.' && g_str_has_suffix (entry, SUFFIX))
        g_ptr_array_add (found, g_strndup (entry, strlen (entry) - strlen (SUFFIX)));
  }
  g_ptr_array_sort (found, compare_names);
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (guint i = 0; i < found->len; i++) {
    char *name = g_ptr_array_index (found, i);
    if (i > 0 && strcmp (name, g_ptr_array_index (names, names->len - 1)) == 0)
      g_free (name);
    else
      g_ptr_array_add (names, name);
  }
  g_ptr_array_add (names, NULL);
  return (char **)g_ptr_array_free (g_steal_pointer (&names), FALSE);
}

static char *
fail_unknown (const char *kind, const char *name, GError **error)
{
  const char *noun = kind, *list = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    if (strcmp (kinds[i].kind, kind) == 0) {
      noun = kinds[i].noun;
      list = kinds[i].list;
    }
  g_auto (GStrv) names = data_list (kind);
  g_autofree char *quoted = text_quoted (name);
  const char *near = nearest_name (name, (const char *const *)names);
  g_autofree char *all = text_list ((const char *const *)names, NAMES_SHOWN);
  g_autofree char *allowed = list != NULL ? g_strdup_printf ("see `clustersim list %s`", list)
                                          : g_strconcat ("allowed: ", all, NULL);
  g_set_error (error, JSON_ERROR, JSON_ERROR_RANGE, "unknown %s (found %s; %s%s%s%s%s)", noun,
               quoted, near != NULL ? "nearest: " : "", near != NULL ? near : "",
               near != NULL ? "; " : "", allowed,
               names[0] == NULL ? "; no shipped files were found" : "");
  return NULL;
}

char *
data_find (const char *kind, const char *name, const char *from, GError **error)
{
  if (data_is_path (name)) {
    g_autofree char *path = path_relative_to (name, from);
    if (g_file_test (path, G_FILE_TEST_EXISTS))
      return g_steal_pointer (&path);
    g_autofree char *plain = text_quoted (path);
    g_set_error (error, JSON_ERROR, JSON_ERROR_FILE, "no such file (found %s)", plain);
    return NULL;
  }
  g_autoptr (GPtrArray) dirs = roots ();
  g_autofree char *file = g_strconcat (name, SUFFIX, NULL);
  for (guint i = 0; *name != '\0' && i < dirs->len; i++) {
    g_autofree char *path = g_build_filename (g_ptr_array_index (dirs, i), kind, file, NULL);
    if (g_file_test (path, G_FILE_TEST_IS_REGULAR))
      return g_steal_pointer (&path);
  }
  return error != NULL ? fail_unknown (kind, name, error) : NULL;
}
