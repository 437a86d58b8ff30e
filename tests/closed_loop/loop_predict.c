/* loop_predict: what clustersim says of collectives on the closed loop's network, by the functions
 * that predict uses (models/coll.h).
 * usage: loop_predict FABRIC.json < lines of "ALGO RANKS LINK_MBIT UPLINK_MBIT MIB"; one time a
 * line
 *
 * The fabric is the fitted one; its NIC gets the line's rate. An uplink (0: none) makes two nodes
 * of the ranks: a node is a side of the uplink, its ranks reach each other over their own links,
 * and the uplink is its NIC. ring is an all-reduce by that algorithm. doubling is log2 (ranks)
 * exchanges of the whole message between pairs; those of a side share the uplink in the last. */
#include "fabric.h"
#include "read_fabric.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double bytes_per_mbit = 1e6 / 8;

static void
set_links (Fabric *f, double link_mbit, double uplink_mbit)
{
  double link_Bps = link_mbit * bytes_per_mbit;
  f->nic_Bps = uplink_mbit > 0 ? uplink_mbit * bytes_per_mbit : link_Bps;
  for (int p = 0; p < PROTO_COUNT; p++) {
    f->ring[p].bus_Bps = f->efficiency * link_Bps;
    f->ring[p].hop_s = f->net_hop_s[p];
  }
  f->p2p = f->net_p2p;
  f->p2p.Bps = f->efficiency * link_Bps;
  fabric_changed (f);
}

static double
predict_s (const Fabric *f, const char *algo, int ranks, gboolean uplink, double bytes)
{
  int per_node = uplink ? ranks / 2 : 1;
  CollGroup g = {ranks, per_node, ranks / per_node, 1, {0}};
  CollChoice how = {ALGO_RING, PROTO_SIMPLE};
  double t = 0;
  if (strcmp (algo, "ring") == 0 || strcmp (algo, "mpi") == 0)
    return coll_time_s (f, COLL_ALL_REDUCE, &g, bytes, &how);
  for (int bit = 1; bit < ranks; bit *= 2) {
    gboolean inside = bit < per_node;
    t += p2p_time_s (f, inside, inside ? 1 : per_node, bytes);
  }
  return t;
}

int
main (int argc, char **argv)
{
  GError *error = NULL;
  char line[256];
  if (argc != 2) {
    fprintf (stderr, "usage: loop_predict FABRIC.json < lines\n");
    return 2;
  }
  g_autoptr (JsonDoc) doc = json_doc_load (argv[1], &error);
  JsonRef root;
  g_autoptr (Fabric) f = NULL;
  if (doc != NULL) {
    root = json_root (doc);
    f = read_fabric (&root, "fitted", NULL, &error);
  }
  if (f == NULL) {
    fprintf (stderr, "loop_predict: %s\n", error->message);
    g_error_free (error);
    return 2;
  }
  while (fgets (line, sizeof line, stdin) != NULL) {
    g_auto (GStrv) field = g_strsplit (g_strstrip (line), " ", -1);
    if (g_strv_length (field) != 5) {
      fprintf (stderr, "loop_predict: a line needs 5 fields (found \"%s\")\n", line);
      return 2;
    }
    int ranks = (int)g_ascii_strtoll (field[1], NULL, 10);
    double link = g_ascii_strtod (field[2], NULL), uplink = g_ascii_strtod (field[3], NULL);
    double mib = g_ascii_strtod (field[4], NULL);
    set_links (f, link, uplink);
    printf ("%.6f\n", predict_s (f, field[0], ranks, uplink > 0, mib * 1048576));
  }
  return 0;
}
