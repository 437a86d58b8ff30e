/* chakra_et: binary Chakra execution traces (.et).
 *
 * Format: messages of protocol buffers, each behind its length as a varint: one of global metadata,
 * then nodes (github.com/mlcommons/chakra, schema/protobuf/et_def.proto). Of a node only name,
 * type, duration and two attributes are of use, so the wire format is walked here and unknown
 * fields are passed over, as the format asks; a generated parser would need the schema of one
 * version. */
#ifndef CLUSTERSIM_CHAKRA_ET_H
#define CLUSTERSIM_CHAKRA_ET_H

#include <glib.h>

typedef enum { CHAKRA_COMPUTE = 4, CHAKRA_SEND, CHAKRA_RECV, CHAKRA_COLLECTIVE } ChakraNodeType;

typedef struct {
  const char *name; /* not terminated, name_len bytes; may be NULL */
  gsize name_len;
  guint64 type; /* ChakraNodeType, or another number of the schema */
  gboolean has_duration, cpu;
  double duration_us;
  gint64 comm_type; /* number of the schema's CollectiveCommType; -1: not stated */
} ChakraNode;

typedef void (*ChakraNodeFn) (const ChakraNode *node, gpointer data);

/* Calls fn for each node of the bytes. FALSE with a message (what is wrong at which byte) when they
 * are no such trace or end within a message. */
gboolean chakra_et_walk (const guint8 *bytes, gsize len, ChakraNodeFn fn, gpointer data,
                         GError **error);

#endif
