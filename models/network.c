#include "network.h"

const char *const net_fault_names[] = {"nic", "leaf", "spine", NULL};

void
network_init (NetworkSpec *n)
{
  *n = (NetworkSpec){.topo = {.net = TOPO_NET_SINGLE},
                     .routing = TOPO_ROUTE_ADAPTIVE,
                     .queue_pairs = 1,
                     .neighbour = {.load = 1, .op = COLL_ALL_REDUCE}};
}

void
network_clear (NetworkSpec *n)
{
  g_free (n->name);
  g_strfreev (n->hosts);
  if (n->preset_free != NULL)
    n->preset_free (n->preset);
  network_init (n);
}

static void
add_fault (GString *out, const NetFault *f)
{
  static const char *const what[] = {"port of a NIC", "cable above a leaf", "cable above a spine"};
  if (f->count == 0)
    return;
  g_string_append_printf (out, ", %u x %s ", f->count, what[f->where]);
  if (f->down_s > 0)
    g_string_append_printf (out, "flapping (%g s up, %g s down)", f->up_s, f->down_s);
  else if (f->rate > 0)
    g_string_append_printf (out, "at %g of its rate", f->rate);
  else
    g_string_append (out, "dead");
}

char *
network_text (const NetworkSpec *n)
{
  GString *out = g_string_new (NULL);
  if (n->name != NULL)
    g_string_append_printf (out, "%s, ", n->name);
  g_string_append (out, topo_net_names[n->topo.net]);
  if (n->topo.leaf_oversub > 0)
    g_string_append_printf (out, " %g:1", n->topo.leaf_oversub);
  if (n->topo.spine_oversub > 0)
    g_string_append_printf (out, " then %g:1", n->topo.spine_oversub);
  if (n->topo.rail_optimised)
    g_string_append (out, ", rail-optimised");
  if (n->topo.planes > 1)
    g_string_append_printf (out, ", %d planes", n->topo.planes);
  g_string_append_printf (out, ", %s routing", topo_route_names[n->routing]);
  if (n->routing == TOPO_ROUTE_ECMP && n->queue_pairs > 1)
    g_string_append_printf (out, " of %u queue pairs", n->queue_pairs);
  g_string_append_printf (out, ", %s placement", topo_place_names[n->placement]);
  add_fault (out, &n->fault);
  if (n->neighbour.nodes > 0)
    g_string_append_printf (out, ", beside a job of %u nodes (%s, load %g)", n->neighbour.nodes,
                            coll_op_names[n->neighbour.op], n->neighbour.load);
  return g_string_free (out, FALSE);
}
