/* test_import_part: every file of the shared collection of users' topologies and logs
 * (CLUSTERSIM_SHARED) becomes a part that reads back, or is refused for the reason stated here. */
#include "import_part.h"
#include "import_table.h"
#include "read_fabric.h"
#include "read_topo.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

/* What is refused, and the words of the reason. */
static const struct {
  const char *file, *reason;
} refusals[] = {
    {"superbench-ibstat.txt", "list of host names"},             /* names beside a fabric */
    {"slurm-test133-case4-topology.conf", "no links lead from"}, /* two halls, no common root */
    {"slurm-test133-case5-topology.conf", "no links lead from"}, /* the same */
    {"slurm-test133-case6-topology.conf", "no links lead from"}, /* "disconnected trunks" */
};

static const char *
refusal_of (const char *file)
{
  for (gsize i = 0; i < G_N_ELEMENTS (refusals); i++)
    if (strcmp (refusals[i].file, file) == 0)
      return refusals[i].reason;
  return NULL;
}

/* The part of one file as JSON; NULL with error. */
static char *
part_of (const char *folder, const char *path, GError **error)
{
  const char *const none[] = {NULL};
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GString) out = g_string_new (NULL);
  g_autoptr (JsonWriter) w = json_writer_new (out, 1);
  g_autoptr (TopoDesc) d = NULL;
  gboolean ok = FALSE;
  if (strcmp (folder, "nvidia_smi_topo") == 0)
    ok = (d = import_smi_topo (path, error)) != NULL &&
         import_part_node (d, "smi", none, w, notes, error);
  else if (strcmp (folder, "nccl_topo") == 0)
    ok = (d = import_nccl_topo (path, error)) != NULL &&
         import_part_node (d, "xml", none, w, notes, error);
  else if (strcmp (folder, "slurm") == 0)
    ok = (d = import_slurm_topo (path, NULL, error)) != NULL &&
         import_part_network (d, "slurm", none, w, notes, error);
  else
    ok = (d = import_ibnet (path, NULL, error)) != NULL &&
         import_part_network (d, "ib", none, w, notes, error);
  return ok ? g_strdup (out->str) : NULL;
}

/* A fabric that reads, or a topology that builds. */
static void
reads_back (const char *file, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = NULL;
  int fd = g_file_open_tmp ("part-XXXXXX.json", &path, &error);
  g_assert_no_error (error);
  close (fd);
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
  g_autoptr (JsonDoc) doc = json_doc_load (path, &error);
  g_assert_no_error (error);
  JsonRef root = json_root (doc), node;
  gboolean fabric = json_get_any (&root, "node", &node, NULL) && json_is_string (&node);
  if (fabric) {
    g_autoptr (Fabric) f = read_fabric (&root, file, NULL, &error);
    g_assert_no_error (error);
    g_assert_nonnull (f);
    g_assert_cmpint (f->domain_gpus, >=, 1);
  } else {
    g_autoptr (TopoPreset) p = topo_preset_load (path, NULL, NULL, &error);
    g_assert_no_error (error);
    g_autoptr (Topo) t = p != NULL ? topo_preset_build (p, 0, &error) : NULL;
    g_assert_no_error (error);
    g_test_message ("%s: %u GPUs, %u links", file, t ? topo_n_gpus (t) : 0,
                    t ? topo_n_links (t) : 0);
  }
  g_test_message ("%s reads back as a %s", file, fabric ? "fabric" : "topology");
  g_unlink (path);
}

static void
one_table (const char *file, const char *path)
{
  const char *const none[] = {NULL}, *const gather[] = {"op=all_gather", NULL};
  g_autoptr (GError) error = NULL;
  g_autoptr (CollTable) t = import_nccl_tests (path, &error);
  g_assert_no_error (error);
  if (t == NULL)
    return;
  g_autoptr (GString) json = g_string_new (NULL), csv = g_string_new (NULL);
  g_assert_true (import_table_json (t, none, json, &error));
  g_assert_no_error (error);
  g_assert_true (import_table_csv (t, t->op < 0 ? gather : none, csv, &error));
  g_assert_no_error (error);
  guint lines = 0;
  for (const char *at = csv->str; (at = strchr (at, '\n')) != NULL; at++)
    lines++;
  g_assert_cmpuint (lines, ==, t->rows->len + 1);
  g_test_message ("%s: %u rows", file, t->rows->len);
}

static void
test_shared (void)
{
  static const char *const folders[] = {"nvidia_smi_topo", "nccl_topo", "slurm", "fabric",
                                        "nccl_tests"};
  const char *shared = g_getenv ("CLUSTERSIM_SHARED");
  if (!shared || !*shared) {
    g_test_skip ("CLUSTERSIM_SHARED is not set: the collection of users' files is not here");
    return;
  }
  guint files = 0;
  for (gsize i = 0; i < G_N_ELEMENTS (folders); i++) {
    g_autofree char *dir = g_build_filename (shared, "data", "inputs", folders[i], NULL);
    g_autoptr (GDir) d = g_dir_open (dir, 0, NULL);
    g_assert_nonnull (d);
    for (const char *file; d && (file = g_dir_read_name (d)) != NULL; files++) {
      g_autofree char *path = g_build_filename (dir, file, NULL);
      g_autoptr (GError) error = NULL;
      if (strcmp (folders[i], "nccl_tests") == 0) {
        one_table (file, path);
        continue;
      }
      g_autofree char *text = part_of (folders[i], path, &error);
      const char *reason = refusal_of (file);
      if (error)
        g_test_message ("%s refused: %s", file, error->message);
      g_assert_cmpint (text == NULL, ==, reason != NULL);
      if (reason != NULL && error != NULL)
        g_assert_nonnull (strstr (error->message, reason));
      if (text != NULL)
        reads_back (file, text);
    }
  }
  g_assert_cmpuint (files, >=, 30);
}

/* NICs that serve no GPU are left out unless no NIC does; rates of the file win over the rule's. */
static void
test_nics (void)
{
  static const char smi[] = "\tGPU0\tGPU1\tGPU2\tNIC0\tNIC1\n"
                            "GPU0\t X \tNV18\tNV18\tPIX\tSYS\nGPU1\tNV18\t X \tNV18\tSYS\tSYS\n"
                            "GPU2\tNV18\tNV18\t X \tSYS\tSYS\nNIC0\tPIX\tSYS\tSYS\t X \tSYS\n"
                            "NIC1\tSYS\tSYS\tSYS\tSYS\t X \n";
  const struct {
    const char *given, *part;
  } x[] = {{NULL, "\"nics_per_node\""},
           {"nics=2", "\"value\": 2"},
           {"nic_GBps=12.5", "12.5"},
           {"node=nvlink5-b200", "nvlink5-b200"}};
  g_autoptr (GError) error = NULL;
  for (gsize i = 0; i < G_N_ELEMENTS (x); i++) {
    const char *const given[] = {x[i].given, NULL};
    g_autoptr (TopoDesc) d = import_smi_topo_text ("f", smi, strlen (smi), &error);
    g_assert_no_error (error);
    g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
    g_autoptr (GString) out = g_string_new (NULL);
    g_autoptr (JsonWriter) w = json_writer_new (out, 1);
    g_assert_true (import_part_node (d, "smi", given, w, notes, &error));
    g_assert_no_error (error);
    if (!strstr (out->str, x[i].part))
      g_test_message ("%s lacks %s", out->str, x[i].part);
    g_assert_nonnull (strstr (out->str, x[i].part));
    g_assert_cmpint (notes->len, >, 1);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_setenv ("CLUSTERSIM_SCENARIOS", "scenarios", FALSE);
  g_test_add_func ("/import-part/shared", test_shared);
  g_test_add_func ("/import-part/nics", test_nics);
  return g_test_run ();
}
