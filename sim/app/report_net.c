#include "report_net.h"

static const char *
algo_name (const NetRow *r)
{
  return r->op == COLL_ALLTOALL || r->op == COLL_SENDRECV || r->how.algo == ALGO_AUTO
             ? "pairs"
             : coll_algo_names[r->how.algo];
}

static void
text_row (GString *out, const NetRow *r)
{
  g_autofree char *size = r->bytes >= 0x1p20 ? g_strdup_printf ("%.1f MiB", r->bytes / 0x1p20)
                                             : g_strdup_printf ("%.1f KiB", r->bytes / 0x1p10);
  g_string_append_printf (out, "  %-4s %-8s  %-14s %-8s %12s  %4u of %-5u", span_names[r->kind],
                          fidelity_names[r->fidelity], coll_op_names[r->op], algo_name (r), size,
                          r->groups, r->ranks);
  if (r->nodes < 2) {
    g_string_append_printf (out, " %10.3f ms  inside a node\n", r->alone_s * 1e3);
    return;
  }
  g_string_append_printf (out, " %10.3f ms %+7.1f %%", r->alone_s * 1e3,
                          r->alone_s > 0 ? 100 * (r->time_s / r->alone_s - 1) : 0.0);
  if (r->busiest != NULL)
    g_string_append_printf (out, "  %s, %.0f %%", r->busiest, 100 * MIN (1, r->busiest_load));
  g_string_append_c (out, '\n');
}

void
report_net_text (GString *out, const Spec *s, const Prediction *p)
{
  if (p->net_rows == NULL)
    return;
  g_autofree char *text = network_text (&s->network);
  g_string_append_printf (out, "\nnetwork: %s\n", text);
  g_string_append (out, "  kind fidelity  operation      algorithm        size  groups of    "
                        "alone (profile)  shared  busiest link, in use\n");
  for (guint i = 0; i < p->net_rows->len; i++)
    text_row (out, &g_array_index (p->net_rows, NetRow, i));
  g_string_append (out, "  all else is analytic: the profile's time, each group with its share of "
                        "the node's NICs\n");
}

static void
json_row (JsonWriter *w, const NetRow *r)
{
  jw_begin_object (w, NULL);
  jw_string (w, "kind", span_names[r->kind]);
  jw_string (w, "fidelity", fidelity_names[r->fidelity]);
  jw_string (w, "op", coll_op_names[r->op]);
  jw_string (w, "algo", algo_name (r));
  jw_int (w, "groups", r->groups);
  jw_int (w, "ranks", r->ranks);
  jw_int (w, "nodes", r->nodes);
  jw_double (w, "bytes", r->bytes);
  jw_double (w, "alone_s", r->alone_s);
  jw_double (w, "time_s", r->time_s);
  if (r->busiest != NULL) {
    jw_string (w, "busiest_link", r->busiest);
    jw_double (w, "busiest_load", MIN (1, r->busiest_load));
  }
  jw_end_object (w);
}

void
report_net_json (JsonWriter *w, const Spec *s, const Prediction *p)
{
  if (p->net_rows == NULL)
    return;
  g_autofree char *text = network_text (&s->network);
  jw_begin_object (w, "network");
  jw_string (w, "topology", text);
  jw_begin_object (w, "fidelity");
  for (int k = 1; k < SPAN_COUNT; k++)
    jw_string (w, span_names[k], fidelity_names[s->run.fidelity[k]]);
  jw_end_object (w);
  jw_begin_array (w, "priced");
  for (guint i = 0; i < p->net_rows->len; i++)
    json_row (w, &g_array_index (p->net_rows, NetRow, i));
  jw_end_array (w);
  jw_end_object (w);
}
