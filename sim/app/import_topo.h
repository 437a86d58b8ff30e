/* import_topo: topologies and logs that a user already has, into neutral structures.
 *
 * Readers make a TopoDesc (models/topo.h): the inside of one node from `nvidia-smi topo -m` or a
 * NCCL topology file, a network from Slurm's topology.conf or topology.yaml or from ibnetdiscover.
 * What a file does not say stays unsaid: speeds are 0 until topo_desc_default_Bps gives them. What
 * was assumed or left out stands in the notes. nccl-tests logs become a CollTable.
 *
 * Errors: domain IMPORT_ERROR, "FILE:LINE: what is wrong (what was found; what is allowed)"; shape
 * errors (loops, twins) are TOPO_ERROR. Files come from strangers: sizes, counts and depths are
 * limited, nothing is fetched or executed, XML document types are refused. The _text forms take the
 * contents; name stands for the file. Results are the caller's.
 */
#ifndef CLUSTERSIM_IMPORT_TOPO_H
#define CLUSTERSIM_IMPORT_TOPO_H

#include "coll.h"
#include "topo.h"

#define IMPORT_ERROR import_error_quark ()
GQuark import_error_quark (void);
typedef enum {
  IMPORT_ERROR_FILE,    /* cannot be read, or too big */
  IMPORT_ERROR_SYNTAX,  /* not what it should be */
  IMPORT_ERROR_MISSING, /* the part that matters is not there */
  IMPORT_ERROR_REFUSED, /* understood, but of a kind that is not handled */
  IMPORT_ERROR_LIMIT
} ImportError;

#define IMPORT_MAX_BYTES (64 << 20)
#define IMPORT_MAX_HOSTS 1000000

/* `nvidia-smi topo -m`. Equal NV# to all, more than a GPU has links for each: an NVSwitch. */
TopoDesc *import_smi_topo (const char *path, GError **error);
TopoDesc *import_smi_topo_text (const char *name, const char *text, gsize len, GError **error);

/* NCCL_TOPO_FILE or NCCL_TOPO_DUMP_FILE. */
TopoDesc *import_nccl_topo (const char *path, GError **error);
TopoDesc *import_nccl_topo_text (const char *name, const char *text, gsize len, GError **error);

/* topology.conf, or topology.yaml when the text looks like it. which: the topology of a yaml file
 * to take; NULL: its default. Tree and block are handled. */
TopoDesc *import_slurm_topo (const char *path, const char *which, GError **error);
TopoDesc *import_slurm_topo_text (const char *name, const char *text, gsize len, const char *which,
                                  GError **error);

/* ibnetdiscover. names: NULL, or the text of a list of "VM_hostname NAME" lines, each followed by
 * the GUIDs of its ports, which then name the hosts. */
TopoDesc *import_ibnet (const char *path, const char *names_path, GError **error);
TopoDesc *import_ibnet_text (const char *name, const char *text, gsize len, const char *names,
                             GError **error);

/* ---- nccl-tests --------------------------------------------------------------------------------
 */

typedef struct {
  gint64 bytes, count;
  double time_us, algbw_GBps, busbw_GBps;          /* out of place; time 0: not there */
  double ip_time_us, ip_algbw_GBps, ip_busbw_GBps; /* in place */
  guint line;
} CollTableRow;

typedef struct {
  char *source;
  int op;              /* CollOp, or -1 when the log does not tell */
  guint could;         /* then: bits of the operations that it may be */
  int ranks;           /* 0: not known */
  int nodes;           /* 0: not known */
  char *gpu;           /* as the log names it, or NULL */
  char *other;         /* of a rank on another kind of GPU, or NULL */
  guint runs;          /* that have ended */
  gboolean unknown_op; /* a program of nccl-tests whose collective is none of CollOp */
  gboolean wrong;      /* results were */
  guint cut, cut_line; /* rows left out, as they are cut off or contradict themselves; first one */
  char *version;       /* of NCCL, or NULL */
  char *type, *redop;
  double avg_busbw_GBps; /* as the log says; 0: it does not */
  GArray *rows;          /* CollTableRow, as in the log */
  GPtrArray *notes;      /* char* */
} CollTable;

void coll_table_free (CollTable *t);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (CollTable, coll_table_free)
CollTable *import_nccl_tests (const char *path, GError **error);
CollTable *import_nccl_tests_text (const char *name, const char *text, gsize len, GError **error);

/* ---- shared by the readers (import_text.c) ------------------------------------------------------
 */

/* The file's text, NUL-terminated; g_free. */
char *import_load (const char *path, gsize *len, GError **error);

/* Always FALSE. line 0: none. Text is made printable. */
gboolean import_fail (GError **error, ImportError code, const char *name, guint line,
                      const char *format, ...) G_GNUC_PRINTF (5, 6);

/* A line at a time, without its end and without terminal escapes; NULL at the end. Begin with
 * line 0. The line is the caller's. */
typedef struct {
  const char *at, *end;
  guint line;
} ImportLines;
char *import_next_line (ImportLines *l);

/* Words between blanks; NULL-terminated. */
char **import_words (const char *line);

/* Slurm's host lists: "a,b[1-3,07-09]c[1-2]" appended to out (char*, owned). */
gboolean import_hostlist (const char *name, guint line, const char *list, GPtrArray *out,
                          GError **error);

#endif
