/* fit_samples: measurements of one machine, from whatever file they are in.
 *
 * Read are: JSON lines of the collectors in calibrate/ (calibrate/README.md lists the keys), logs
 * of nccl-tests, and CSV tables of other collectors, told by their columns: GEMM and attention
 * tables, long (a device column) or wide (a column a device); cuDNN frontend attention and norms;
 * Liger kernels; Vidur MLP operators; copies and launches (op, bytes, time_us); collectives.
 *
 * Times are seconds, bytes are bytes. A time that is not above zero, a file of JSON lines without
 * its end line, or samples of several devices are errors (SAMPLES_ERROR) with file and line.
 * Ownership: the set owns its samples and their strings. */
#ifndef CLUSTERSIM_FIT_SAMPLES_H
#define CLUSTERSIM_FIT_SAMPLES_H

#include "coll.h"
#include "gpu.h"

#define SAMPLES_ERROR samples_error_quark ()
GQuark samples_error_quark (void);
typedef enum {
  SAMPLES_ERROR_FILE,   /* cannot be read, or of no known kind */
  SAMPLES_ERROR_CUT,    /* incomplete */
  SAMPLES_ERROR_VALUE,  /* a sample that cannot be */
  SAMPLES_ERROR_MIXED,  /* several devices */
  SAMPLES_ERROR_TOO_FEW /* less than the fit needs */
} SamplesError;

typedef enum {
  SAMPLE_GEMM,
  SAMPLE_ATTENTION,
  SAMPLE_MEMORY,
  SAMPLE_LAUNCH,
  SAMPLE_COPY,
  SAMPLE_COLL,
  SAMPLE_OVERLAP,
  SAMPLE_KINDS
} SampleKind;
extern const char *const sample_kind_names[];

typedef enum { LAUNCH_STREAM, LAUNCH_GRAPH, LAUNCH_HOST, LAUNCH_COUNT } LaunchHow;
extern const char *const launch_names[]; /* "stream", "graph", "host" */
typedef enum { COPY_H2D, COPY_D2H, COPY_D2D, COPY_P2P, COPY_COUNT } CopyPath;
extern const char *const copy_names[];

#define SAMPLE_CAST_FP8                                                                            \
  MEMK_COUNT /* memory samples: the cast kernel beside the kinds of MemKernel */

typedef struct {
  SampleKind kind;
  const char *device, *origin; /* as the file says; the file and, in a wide table, the column */
  guint line;                  /* of the file, from 1 */
  double time_s;
  union {
    struct {
      GemmShape shape;
      double duty;        /* 1: measured back to back for long; 0: short bursts */
      gboolean with_cast; /* the time includes the cast of the activations to 8 bits */
    } gemm;
    struct {
      AttnKernel kernel;
      AttnShape shape; /* pass is not used */
      gboolean forward, backward;
    } attention;
    struct {
      int kind; /* MemKernel or SAMPLE_CAST_FP8 */
      double bytes;
    } memory;
    LaunchHow launch;
    struct {
      CopyPath path;
      double bytes;
    } copy;
    struct {
      CollOp op;
      CollGroup group;
      CollChoice how; /* AUTO where the source does not say */
      double bytes;
      int version; /* NCCL's, as 22707; 0: not stated */
    } coll;
    struct {
      const char *what; /* "gemm beside copy" */
      double alone_s;   /* the same work with nothing beside it; time_s is beside */
    } overlap;
  };
} Sample;

/* What the collector says of the device itself; 0: not said. */
typedef struct {
  double tdp_W, sm_count, boost_MHz, memory_GiB, hbm_GBps, nvlink_GBps, pcie_GBps, scaleup_gpus;
  double peak_TFLOPs[DT_COUNT];
} DeviceFacts;

typedef struct {
  GArray *samples; /* of Sample */
  DeviceFacts facts;
  guint left_out; /* points that a collector's time budget left out */
  GStringChunk *text;
  GPtrArray *devices; /* names seen in rows that were taken, borrowed from text */
  GPtrArray *dates;   /* dates seen, borrowed from text */
} SampleSet;

/* How to read: NULL and -1 for what is not given. */
typedef struct {
  char **gpus;        /* names or columns that are the one device; others are passed over */
  int attention;      /* AttnKernel of tables that do not name theirs; -1 */
  char **where;       /* "COLUMN~TEXT": rows of CSV tables whose cell contains the text */
  int ranks_per_node; /* of nccl-tests logs that do not say; 0 */
  gboolean leave_out_fifth; /* GEMM shapes of fifth.h are passed over */
} SampleOptions;

SampleSet *sample_set_new (void);
void sample_set_free (SampleSet *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (SampleSet, sample_set_free)

/* Adds a file's samples. */
gboolean sample_set_read (SampleSet *s, const char *path, const SampleOptions *o, GError **error);

/* After all files: one device, at least one sample. */
gboolean sample_set_check (const SampleSet *s, const SampleOptions *o, GError **error);

guint sample_set_count (const SampleSet *s, SampleKind kind);

/* ---- for the readers ---- */

typedef struct {
  SampleSet *set;
  const SampleOptions *options;
  const char *path, *label; /* label: base name, for origins */
} SampleReader;

/* Appends after the checks that hold for all; where: line of the file. */
gboolean sample_add (SampleReader *r, Sample *s, const char *device, GError **error);
gboolean sample_device_wanted (const SampleReader *r, const char *device);
gboolean sample_fail (const SampleReader *r, guint line, SamplesError code, GError **error,
                      const char *format, ...) G_GNUC_PRINTF (5, 6);
gboolean samples_read_csv (SampleReader *r, GError **error);
gboolean samples_read_jsonl (SampleReader *r, const char *text, GError **error);
gboolean samples_read_nccl (SampleReader *r, const char *text, GError **error);

#endif
