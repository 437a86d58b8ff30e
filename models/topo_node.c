#include "topo.h"

/* Volta's hybrid cube mesh: each half of four is a full mesh, with doubled edges, and the halves
 * are joined by doubled edges too; 6 lanes a GPU. As `nvidia-smi topo -m` prints it on DGX-1V. */
const TopoMeshLink topo_mesh_dgx1_v100[] = {
    {0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1}, {1, 5, 2}, {2, 3, 2},
    {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1}, {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
const int topo_mesh_dgx1_v100_n = G_N_ELEMENTS (topo_mesh_dgx1_v100);

static gboolean
check_spec (const TopoNodeSpec *s, GError **error)
{
  gint64 gpus = (gint64)MAX (1, s->hosts) * s->gpus;
  if (s->gpus < 1 || gpus > 4096 || s->nics < 0 || s->nics > 256 || s->hosts < 0 || s->numa < 0 ||
      s->numa > 64 || s->pcie_switches < 0 || s->pcie_switches > 256) {
    g_set_error (error, TOPO_ERROR, TOPO_ERROR_RANGE,
                 "%s: a node of %d hosts with %d GPUs, %d NICs, %d PCIe switches, %d NUMA nodes "
                 "each (allowed: 1 to 4096 GPUs in all, up to 256, 256, 64)",
                 s->name ? s->name : "node", MAX (1, s->hosts), s->gpus, s->nics, s->pcie_switches,
                 s->numa);
    return FALSE;
  }
  for (int i = 0; s->scale_up == TOPO_UP_MESH && i < s->n_mesh; i++) {
    const TopoMeshLink *m = &s->mesh[i];
    if (m->a >= 0 && m->b >= 0 && m->a < gpus && m->b < gpus && m->a != m->b && m->lanes >= 1)
      continue;
    g_set_error (error, TOPO_ERROR, TOPO_ERROR_RANGE,
                 "%s: mesh link %d joins GPUs %d and %d with %d lanes (allowed: two of %d GPUs, at "
                 "least 1 lane)",
                 s->name ? s->name : "node", i, m->a, m->b, m->lanes, (int)gpus);
    return FALSE;
  }
  return TRUE;
}

static guint32
add_named (TopoDesc *d, TopoKind kind, const char *what, int number, int host)
{
  g_autofree char *name = g_strdup_printf ("%s%d", what, number);
  return topo_desc_add (d, kind, name, host);
}

/* GPUs first, so that GPU i is vertex i; then the PCIe trees of each host. */
static void
add_host (TopoDesc *d, const TopoNodeSpec *s, int host, guint32 first_gpu, guint32 first_nic)
{
  int numa = MAX (1, s->numa), n_sw = s->pcie_switches;
  double up = s->pcie_up_Bps > 0 ? s->pcie_up_Bps : s->pcie_Bps;
  g_autofree guint32 *cpu = g_new (guint32, numa), *sw = g_new (guint32, MAX (1, n_sw));
  for (int i = 0; i < numa; i++) {
    cpu[i] = add_named (d, TOPO_CPU, "cpu", host * numa + i, host);
    for (int j = 0; j < i; j++)
      topo_desc_link (d, cpu[j], cpu[i], TOPO_LINK_SMP, s->smp_Bps > 0 ? s->smp_Bps : up, 1);
  }
  for (int i = 0; i < n_sw; i++) {
    sw[i] = add_named (d, TOPO_PCI_SWITCH, "pci", host * n_sw + i, host);
    topo_desc_link (d, sw[i], cpu[i * numa / n_sw], TOPO_LINK_PCI, up, 1);
  }
  for (int i = 0; i < s->gpus; i++)
    topo_desc_link (d, first_gpu + (guint32)i,
                    n_sw > 0 ? sw[i * n_sw / s->gpus] : cpu[i * numa / s->gpus], TOPO_LINK_PCI,
                    s->pcie_Bps, 1);
  for (int i = 0; i < s->nics; i++)
    topo_desc_link (d, first_nic + (guint32)i,
                    n_sw > 0 ? sw[i * n_sw / s->nics] : cpu[i * numa / s->nics], TOPO_LINK_PCI,
                    s->nic_pcie_Bps > 0 ? s->nic_pcie_Bps : s->pcie_Bps, 1);
}

TopoDesc *
topo_node_build (const TopoNodeSpec *s, GError **error)
{
  if (!check_spec (s, error))
    return NULL;
  g_autoptr (TopoDesc) d = topo_desc_new (s->name ? s->name : "node");
  int hosts = MAX (1, s->hosts), gpus = hosts * s->gpus;
  for (int i = 0; i < gpus; i++)
    add_named (d, TOPO_GPU, "gpu", i, i / s->gpus);
  for (int i = 0; i < hosts * s->nics; i++)
    add_named (d, TOPO_NIC, "nic", i, i / s->nics);
  for (int h = 0; h < hosts; h++)
    add_host (d, s, h, (guint32)(h * s->gpus), (guint32)(gpus + h * s->nics));
  if (s->scale_up == TOPO_UP_NVSWITCH) {
    guint32 sw = topo_desc_add (d, TOPO_NVSWITCH, "nvswitch", 0);
    for (int i = 0; i < gpus; i++)
      topo_desc_link (d, (guint32)i, sw, TOPO_LINK_NVLINK, s->nvlink_Bps, 1);
  }
  for (int i = 0; s->scale_up == TOPO_UP_MESH && i < s->n_mesh; i++)
    topo_desc_link (d, (guint32)s->mesh[i].a, (guint32)s->mesh[i].b, TOPO_LINK_NVLINK,
                    s->nvlink_Bps * s->mesh[i].lanes, s->mesh[i].lanes);
  if (!topo_desc_check (d, error))
    return NULL;
  return g_steal_pointer (&d);
}
