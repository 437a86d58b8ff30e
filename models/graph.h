/* graph: a network as a list of operators, for architectures that are not decoder transformers.
 *
 * Encoders, encoder-decoders, vision transformers, convolutional and state-space networks are made
 * of the operators below (scenarios/README.md, "Models of other kinds"). A graph has an input part
 * (first stage), layers (each one of a few blocks) and an output part (last stage). Sizes are per
 * sample; an operator works on rows of a sample: a fixed number, so many per token of the
 * scenario's sequence, or, for images, height x width. Parameters and FLOPs are exact integers and
 * sums (multiply-add = 2).
 *
 * Sources: implicit-GEMM convolution, Chetlur et al. 2014 (arXiv 1410.0759); Mamba-2's chunked
 * scan, Dao and Gu 2024 (arXiv 2405.21060), section 6; relative attention, Dai et al. 2019
 * (arXiv 1901.02860).
 *
 * Ownership: a graph is shared, constant after graph_check, and counted by reference.
 */
#ifndef CLUSTERSIM_GRAPH_H
#define CLUSTERSIM_GRAPH_H

#include "types.h"

typedef enum {
  GOP_LINEAR,
  GOP_CONV,       /* square kernel and image, "same" padding: out = ceil (in / stride) */
  GOP_ATTENTION,  /* scores, softmax, values */
  GOP_NORM,       /* layer norm, or rms norm */
  GOP_BATCH_NORM, /* with the residual add and the ReLU that follow it */
  GOP_ACTIVATION,
  GOP_DROPOUT,
  GOP_ADD, /* residual */
  GOP_POOL,
  GOP_EMBEDDING,
  GOP_PARAMETERS, /* weights without work of their own: positions, class tokens */
  GOP_SCAN,       /* Mamba-2: short convolution and state-space recurrence in chunks */
  GOP_LOSS,       /* softmax cross entropy over classes */
  GOP_ELEMENTWISE,
  GOP_COUNT
} GraphOpKind;
extern const char *const graph_op_names[];

/* How tensor parallelism divides it: columns: outputs (heads, channels of a scan, table rows);
 * rows: inputs, outputs are summed over the ranks. */
typedef enum { SPLIT_NONE, SPLIT_COLUMNS, SPLIT_ROWS } GraphSplit;
extern const char *const graph_split_names[];

typedef struct {
  GraphOpKind kind;
  char *name;                       /* owned */
  gint64 in, out;                   /* widths; one in both where an operator keeps it */
  gint64 kernel, stride, size;      /* conv, pool: size = height = width of the input */
  gint64 groups;                    /* conv; scan: groups of B and C */
  gint64 heads, kv_heads, head_dim; /* attention, scan */
  gint64 state, chunk;              /* scan: state of a channel, tokens of a chunk */
  gint64 rows;                      /* fixed rows of a sample; 0: rows_per_token */
  double rows_per_token;
  gint64 kv_rows; /* attention: rows of the keys; both 0: those of the queries */
  double kv_per_token;
  gint64 count;                           /* parameters */
  double forward_passes, backward_passes; /* elementwise: reads and writes of rows x in */
  GraphSplit split;
  gboolean bias, tied;       /* tied: the matrix is another operator's */
  gboolean causal, relative; /* relative: a second score product and its shift */
  gboolean gated;            /* activation: out = act (a) b, in holds both halves */
  gboolean rms;
  gboolean residual, relu; /* batch norm: fused or separate, by the software profile */
  gboolean first;          /* its input needs no gradient */
  gboolean padded;         /* its width is a vocabulary, padded as the framework does */
} GraphOp;

typedef struct {
  char *name; /* owned */
  GraphOp *ops;
  guint n;
} GraphBlock;

enum { GRAPH_INPUT, GRAPH_OUTPUT, GRAPH_LAYERS }; /* indices of blocks; layers' from the third */
#define GRAPH_MAX_BLOCKS 30

typedef struct {
  gint ref;
  GraphBlock blocks[GRAPH_MAX_BLOCKS];
  guint n_blocks; /* at least 3 */
  guint8 *layer;  /* owned: block of each layer */
  gint64 n_layers;
  gint64 hidden;        /* elements a token that one layer hands to the next */
  gint64 sample_tokens; /* tokens of a sample where the scenario does not say; 0: it must */
  gboolean images;      /* samples are decoded from images by the host's input pipeline */
} ModelGraph;

ModelGraph *graph_new (void); /* one reference, no blocks */
ModelGraph *graph_ref (ModelGraph *g);
void graph_unref (ModelGraph *g);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (ModelGraph, graph_unref)

#define GRAPH_ERROR graph_error_quark ()
GQuark graph_error_quark (void);
gboolean graph_check (const ModelGraph *g, GError **error);
/* Every divided operator must be divisible by tp; the message names it. */
gboolean graph_check_tp (const ModelGraph *g, gint64 tp, GError **error);

/* Rows of one sample of seq tokens that the operator works on (outputs of a convolution), and rows
 * of its keys. */
double graph_rows (const GraphOp *op, gint64 seq);
double graph_kv_rows (const GraphOp *op, gint64 seq);
gint64 graph_out_size (const GraphOp *op); /* side of the output image */

const GraphBlock *graph_layer (const ModelGraph *g, gint64 layer);

/* Parameters: all, and those of one rank of tp. block < 0: of the whole graph. */
gint64 graph_op_params (const GraphOp *op, gint64 tp);
gint64 graph_block_params (const GraphBlock *b, gint64 tp);
gint64 graph_params (const ModelGraph *g, gint64 tp);

/* FLOPs of one sample, forward. half: causal attention counts half of its square. core and output:
 * of that, scores and values, and the output part. */
typedef struct {
  double total, core, output;
} GraphFlops;
void graph_flops (const ModelGraph *g, gint64 seq, gboolean half, GraphFlops *out);

#endif
