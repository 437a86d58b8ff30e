/* read_fabric: units, parts in place, and what is refused, with the place in the message. */
#include "fabric.h"
#include "read_fabric.h"

#include <string.h>

#define N(v) "{\"value\": " v ", \"kind\": \"assumed\", \"source\": \"test\"}"

/* clang-format off */
#define RING_PART "{\"base_us\": " N ("10") ", \"hop_us\": " N ("2") ", \"bus_GBps\": " N ("100") "}"
#define NODE                                                                                       \
  "{\"arch\": " N ("80") ", \"gpus_per_node\": " N ("4") ", \"link\": \"nvlink\", \"cpu\": \"amd\"," \
  "\"nvswitch\": false, \"ll128\": true, \"nvlinks\": " N ("12") ", \"pci_GBps\": " N ("24") ","      \
  "\"ring\": {\"ll\": " RING_PART ", \"ll128\": " RING_PART ", \"simple\": " RING_PART "},"            \
  "\"alltoall\": {\"base_us\": " N ("5") ", \"peer_us\": " N ("1") ", \"rate_GBps\": " N ("50") ","     \
  "\"copy_GBps\": " N ("500") "}, \"p2p\": {\"base_us\": " N ("4") ", \"rate_GBps\": " N ("60") "}}"
/* clang-format on */

static Fabric *
read_text (const char *text, GPtrArray *prov, GError **error)
{
  g_autoptr (JsonDoc) doc = json_doc_parse ("f.json", text, strlen (text), error);
  if (doc == NULL)
    return NULL;
  JsonRef root = json_root (doc);
  return read_fabric (&root, "inline", prov, error);
}

static void
assert_refused (const char *text, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (Fabric) f = read_text (text, NULL, &error);
  g_assert_null (f);
  g_assert_nonnull (error);
  if (strstr (error->message, part) == NULL)
    g_test_message ("%s lacks \"%s\"", error->message, part);
  g_assert_nonnull (strstr (error->message, part));
}

static void
test_in_place (void)
{
  g_autoptr (GPtrArray) prov = g_ptr_array_new_with_free_func ((GDestroyNotify)prov_entry_free);
  GError *error = NULL;
  g_autoptr (Fabric) f =
      read_text ("{\"node\": " NODE
                 ", \"network\": \"roce\", \"nics_per_node\": " N ("2") ", \"nic_GBps\": " N (
                     "12.5") ", \"efficiency\": " N ("0.5") ", \"nccl_version\": \"2.18.3\"}",
                 prov, &error);
  g_assert_no_error (error);
  g_assert_cmpstr (f->name, ==, "inline");
  g_assert_cmpstr (f->node, ==, "inline");
  g_assert_cmpstr (f->network, ==, "roce");
  g_assert_cmpint (f->nccl_version, ==, 21803);
  g_assert_cmpint (f->arch, ==, 80);
  g_assert_cmpint (f->domain_gpus, ==, 4);
  g_assert_cmpint (f->cpu, ==, FABRIC_AMD);
  g_assert_false (f->nvls);
  g_assert_cmpfloat_with_epsilon (f->ring[PROTO_SIMPLE].hop_s, 2e-6, 1e-15);
  g_assert_cmpfloat_with_epsilon (f->ring[PROTO_LL].bus_Bps, 100e9, 1);
  g_assert_cmpfloat_with_epsilon (f->a2a_copy_s_per_byte, 1 / 500e9,
                                  1e-24); /* a rate in the file */
  g_assert_cmpfloat_with_epsilon (f->nic_Bps, 12.5e9, 1);
  g_assert_cmpfloat (f->efficiency, ==, 0.5); /* the fabric's own, over the transport's */
  g_assert_cmpfloat (f->net_hop_s[PROTO_LL], >, 0);
  g_assert_cmpuint (prov->len, >, 30);
  CollGroup g = {2, 1, 2, 1, {0}};
  g_assert_cmpfloat_with_epsilon (fabric_group_net_Bps (f, &g), 12.5e9, 1);
}

static void
test_refused (void)
{
  assert_refused ("{\"node\": \"nvlink3-a100\"}", "nccl_version");
  assert_refused ("{\"node\": \"nvlink3-a100\", \"nccl_version\": \"new\"}",
                  "/nccl_version: is no NCCL");
  assert_refused ("{\"node\": \"nvlink3-a101\", \"nccl_version\": \"2.18.3\"}", "nvlink3-a100");
  assert_refused ("{\"node\": 3, \"nccl_version\": \"2.18.3\"}", "/node");
  assert_refused (
      "{\"node\": \"nvlink3-a100\", \"nccl_version\": \"2.18.3\", \"nic_GBps\": " N ("1") "}",
      "without a network");
  assert_refused (
      "{\"node\": \"nvlink3-a100\", \"network\": \"roce\", \"nccl_version\": \"2.18.3\"}",
      "nics_per_node");
  assert_refused ("{\"node\": \"nvlink3-a100\", \"nccl_version\": \"2.18.3\", \"nic\": 1}", "nic");
  assert_refused ("{\"node\": {\"arch\": 80}, \"nccl_version\": \"2.18.3\"}", "/node/arch");
  assert_refused ("{\"node\": {\"arch\": " N ("80.5") "}, \"nccl_version\": \"2.18.3\"}",
                  "not a whole number");
  assert_refused ("{\"node\": \"nvlink3-a100\", \"network\": \"roce\", \"nics_per_node\": " N (
                      "1") ", \"nic_GBps\": " N ("-1") ", \"nccl_version\": \"2.18.3\"}",
                  "/nic_GBps");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_setenv ("CLUSTERSIM_SCENARIOS", "scenarios", FALSE);
  g_test_add_func ("/read-fabric/in-place", test_in_place);
  g_test_add_func ("/read-fabric/refused", test_refused);
  return g_test_run ();
}
