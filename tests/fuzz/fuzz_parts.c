/* Fuzzes what reads other people's files. The first byte of an input says which reader gets the
 * rest: topologies (nvidia-smi, NCCL's XML, Slurm, ibnetdiscover), logs of nccl-tests, traces
 * (.et), launch scripts, and our own JSON of topologies, networks, fabrics, models of operators and
 * two kinds of GPU. What must hold for every input:
 *   - no crash, no leak, no undefined behaviour (the sanitizers see to that)
 *   - a result or an error, never both and never neither; an error is one line of UTF-8
 *   - a topology that was read is one that can be checked
 */
#include "chakra_et.h"
#include "import_topo.h"
#include "json_read.h"
#include "read_fabric.h"
#include "read_graph.h"
#include "read_hetero.h"
#include "read_network.h"
#include "read_topo.h"
#include "shell_words.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

static void
check_result (gboolean ok, const GError *error)
{
  const char *m = error != NULL ? error->message : "";
  if (ok == (error == NULL) && g_utf8_validate (m, -1, NULL) &&
      strpbrk (m, "\n\r\t\033\177") == NULL)
    return;
  g_printerr ("ok %d, error: %s\n", ok, error != NULL ? m : "none");
  abort ();
}

/* ---- text ---- */

static void
read_desc (int which, const char *text, gsize len)
{
  g_autoptr (GError) error = NULL;
  TopoDesc *d = which == 0   ? import_smi_topo_text ("in", text, len, &error)
                : which == 1 ? import_nccl_topo_text ("in", text, len, &error)
                : which == 2 ? import_slurm_topo_text ("in", text, len, NULL, &error)
                             : import_ibnet_text ("in", text, len, NULL, &error);
  check_result (d != NULL, error);
  if (d == NULL)
    return;
  g_autoptr (GError) why = NULL;
  if (topo_desc_check (d, &why) !=
      (why == NULL)) /* its text has names as they are; callers clean it */
    abort ();
  topo_desc_free (d);
}

static void
read_log (const char *text, gsize len)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (CollTable) t = import_nccl_tests_text ("in", text, len, &error);
  check_result (t != NULL, error);
}

static void
count_node (const ChakraNode *node, gpointer data)
{
  gsize *n = data;
  *n += node->name_len;
}

static void
read_trace (const char *text, gsize len)
{
  g_autoptr (GError) error = NULL;
  gsize names = 0;
  gboolean ok = chakra_et_walk ((const guint8 *)text, len, count_node, &names, &error);
  check_result (ok, error);
}

static void
read_script (const char *text)
{
  static const char *const given[] = {"8", "NODES=2", NULL};
  g_autoptr (GError) error = NULL;
  if (!g_utf8_validate (text, -1, NULL))
    return; /* its caller refuses such a file */
  g_autoptr (GPtrArray) commands = shell_commands ("in", text, given, &error);
  check_result (commands != NULL, error);
  g_autoptr (GPtrArray) words = shell_split (text);
  g_autofree char *expanded = shell_expand (text, given);
}

/* ---- JSON ---- */

static void
read_spec_part (const JsonRef *root, gboolean network)
{
  g_autoptr (GError) error = NULL;
  Spec s;
  JsonRef second;
  gboolean has_second = FALSE;
  spec_init (&s);
  s.cluster.nodes = 4;
  s.cluster.gpus_per_node = 8;
  s.cluster.gpus = 32;
  gboolean ok = network ? read_network (root, &s, &error)
                        : read_hetero (root, &s, &second, &has_second, &error);
  check_result (ok, error);
  spec_clear (&s);
}

static void
read_json (int which, const JsonRef *root)
{
  g_autoptr (GError) error = NULL;
  if (which == 0) {
    g_autoptr (TopoPreset) p = read_topo (root, "in", NULL, &error);
    check_result (p != NULL, error);
    /* what is small is built; refusing is allowed */
    g_autoptr (Topo) t = p != NULL && p->net == NULL ? topo_preset_build (p, 2, NULL) : NULL;
  } else if (which == 1) {
    TopoDesc *d = read_topo_graph (root, "in", NULL, &error);
    check_result (d != NULL, error);
    g_clear_pointer (&d, topo_desc_free);
  } else if (which == 2) {
    g_autoptr (Fabric) f = read_fabric (root, "in", NULL, &error);
    check_result (f != NULL, error);
  } else if (which == 3 && json_is_object (root) && is_graph_model (root)) {
    ModelSpec m;
    model_init (&m);
    check_result (read_graph_model (root, &m, &error), error);
    model_clear (&m);
  } else if (which >= 4 && json_is_object (root)) {
    read_spec_part (root, which == 4);
  }
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
  if (size == 0)
    return 0;
  const int which = (data[0] - '0') & 15;
  const gsize len = size - 1;
  g_autofree char *text = g_malloc (len + 1); /* ends here, so that reading past it is seen */
  if (len > 0)
    memcpy (text, data + 1, len);
  text[len] = '\0';
  if (which < 4)
    read_desc (which, text, len);
  else if (which == 4)
    read_log (text, len);
  else if (which == 5)
    read_trace (text, len);
  else if (which == 6)
    read_script (text);
  else {
    g_autoptr (JsonDoc) doc = json_doc_parse ("in", text, len, NULL);
    JsonRef root = doc != NULL ? json_root (doc) : (JsonRef){0};
    if (doc != NULL)
      read_json ((which - 7) % 6, &root);
  }
  return 0;
}
